"""Colourings: groups of columns (rows) of a sparse Jacobian or Hessian to evaluate together.

Columns without a common row may have one colour: one product of the Jacobian, with the sum of their unit vectors,
contains all their entries. A star colouring of a symmetric pattern allows more: neighbours differ in colour,
and each path of four vertices has at least three colours. A product then shows H[i, j] or H[j, i]. An acyclic colouring
allows still more: the vertices of any two colours form trees, along which substitution yields the entries.

Source: Gebremedhin, Manne, Pothen (2005), SIAM Review 47; Gebremedhin et al. (2007), SIAM J. Sci. Comput. 29;
Gebremedhin et al. (2009), INFORMS J. Comput. 21.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from func.backends.llvm import routine_code
from func.errors import ArgumentError


@routine_code.native_routine
def greedy_distance_two(  # type: ignore[no-untyped-def]
    order, count, columns_start, columns_rows, rows_start, rows_columns, colors, marks
):
    """Give each column, in an order, the least colour without a conflict in its rows; return the number of colours."""
    used = 0
    for position in range(0, count):
        column = order[position]
        for i in range(columns_start[column], columns_start[column + 1]):
            row = columns_rows[i]
            for k in range(rows_start[row], rows_start[row + 1]):
                other = rows_columns[k]
                if colors[other] >= 0:
                    marks[colors[other]] = column
        color = 0
        while marks[color] == column:
            color += 1
        colors[column] = color
        if color >= used:
            used = color + 1
    return used


@routine_code.native_routine
def greedy_star(  # type: ignore[no-untyped-def]
    order, count, starts, neighbours, edges, colors, forbidden, first_from, first_to, first_edge, treated, star, hub
):
    """Give each vertex the least colour of a star colouring; `star` numbers each edge's star, `hub` its centre."""
    used = 0
    stars = 0
    for position in range(0, count):
        v = order[position]
        for i in range(starts[v], starts[v + 1]):
            w = neighbours[i]
            if colors[w] >= 0:
                c = colors[w]
                forbidden[c] = v
                if first_from[c] == v:
                    q = first_to[c]
                    if treated[q] != v:
                        for k in range(starts[q], starts[q + 1]):
                            x = neighbours[k]
                            if colors[x] >= 0:
                                forbidden[colors[x]] = v
                        treated[q] = v
                    for k in range(starts[w], starts[w + 1]):
                        x = neighbours[k]
                        if colors[x] >= 0:
                            forbidden[colors[x]] = v
                    treated[w] = v
                else:
                    first_from[c] = v
                    first_to[c] = w
                    first_edge[c] = edges[i]
                    for k in range(starts[w], starts[w + 1]):
                        x = neighbours[k]
                        if x != v and colors[x] >= 0 and hub[star[edges[k]]] == x:
                            forbidden[colors[x]] = v
        color = 0
        while forbidden[color] == v:
            color += 1
        colors[v] = color
        if color >= used:
            used = color + 1
        for i in range(starts[v], starts[v + 1]):
            w = neighbours[i]
            if colors[w] >= 0:
                has_free = 0
                for k in range(starts[w], starts[w + 1]):
                    x = neighbours[k]
                    if x != v and colors[x] == color:
                        hub[star[edges[k]]] = w
                        star[edges[i]] = star[edges[k]]
                        has_free = 1
                        break
                if has_free == 0:
                    c = colors[w]
                    if first_from[c] == v and first_to[c] != w:
                        hub[star[first_edge[c]]] = v
                        star[edges[i]] = star[first_edge[c]]
                    else:
                        star[edges[i]] = stars
                        hub[stars] = -1
                        stars += 1
    return used


@routine_code.native_routine
def greedy_acyclic(  # type: ignore[no-untyped-def]
    order, count, starts, neighbours, edges, colors, forbidden, first_from, first_edge, visit_from, visit_to, parent
):
    """Give each vertex the least colour of an acyclic colouring; `parent` joins the edges of a tree of two colours."""
    used = 0
    for position in range(0, count):
        v = order[position]
        for i in range(starts[v], starts[v + 1]):
            if colors[neighbours[i]] >= 0:
                forbidden[colors[neighbours[i]]] = v
        for i in range(starts[v], starts[v + 1]):
            w = neighbours[i]
            if colors[w] >= 0:
                for k in range(starts[w], starts[w + 1]):
                    x = neighbours[k]
                    if colors[x] >= 0 and forbidden[colors[x]] != v:
                        e = edges[k]
                        while parent[e] != e:
                            parent[e] = parent[parent[e]]
                            e = parent[e]
                        if visit_from[e] != v:
                            visit_from[e] = v
                            visit_to[e] = w
                        else:
                            if visit_to[e] != w:
                                forbidden[colors[x]] = v
        color = 0
        while forbidden[color] == v:
            color += 1
        colors[v] = color
        if color >= used:
            used = color + 1
        for i in range(starts[v], starts[v + 1]):
            w = neighbours[i]
            if colors[w] >= 0:
                c = colors[w]
                if first_from[c] != v:
                    first_from[c] = v
                    first_edge[c] = edges[i]
                else:
                    e = first_edge[c]
                    while parent[e] != e:
                        e = parent[e]
                    parent[edges[i]] = e
        for i in range(starts[v], starts[v + 1]):
            w = neighbours[i]
            if colors[w] >= 0:
                for k in range(starts[w], starts[w + 1]):
                    x = neighbours[k]
                    if x != v and colors[x] == color:
                        e = edges[i]
                        while parent[e] != e:
                            e = parent[e]
                        other = edges[k]
                        while parent[other] != other:
                            parent[other] = parent[parent[other]]
                            other = parent[other]
                        parent[e] = other
    return used


@routine_code.native_routine
def leaves_first(count, ends, others, starts, edges_at, degrees, queue, removed, below, above):  # type: ignore[no-untyped-def]
    """The edges of a forest, children first: `queue` has them, `below` and `above` the ends of each."""
    length = 0
    for node in range(0, count):
        leaf = node
        while degrees[leaf] == 1:
            i = starts[leaf]
            while removed[edges_at[i]] == 1:
                i += 1
            e = edges_at[i]
            other = ends[e]
            if other == leaf:
                other = others[e]
            removed[e] = 1
            below[length] = leaf
            above[length] = other
            queue[length] = e
            length += 1
            degrees[leaf] = 0
            degrees[other] -= 1
            if other > node:
                break
            leaf = other
    return length


@routine_code.native_routine
def substitute(  # type: ignore[no-untyped-def]
    count, places, below, above, products: routine_code.Floats, sums: routine_code.Floats, values: routine_code.Floats
):
    """Each edge's value: its product without the values of the edges below."""
    for i in range(0, count):
        values[i] = products[places[i]] - sums[below[i]]
        sums[above[i]] += values[i]
    return count


def _int64(array: Any) -> Any:
    return np.ascontiguousarray(array, np.int64)


MAX_MEETINGS = 3_000_000_000
"""The limit of common rows of columns, beyond which each column gets a separate colour."""


def color_columns(pattern: Any) -> Any:
    """The colour of each column of a CSR pattern: columns of one colour have no common row.

    Goes through the columns in order, which is best for bands, or from the fullest on if that needs fewer colours.
    """
    count = pattern.shape[1]
    if np.sum(np.diff(pattern.indptr).astype(float) ** 2) > MAX_MEETINGS:
        return np.arange(count)
    columns = pattern.tocsc()
    lengths = np.diff(columns.indptr)
    graph = [_int64(x) for x in (columns.indptr, columns.indices, pattern.indptr, pattern.indices)]
    least = int(np.diff(pattern.indptr).max(initial=0))
    best: Any = None
    for order in (np.arange(count), np.argsort(-lengths, kind="stable")):
        colors, marks = np.full(count, -1, np.int64), np.full(count + 1, -1, np.int64)
        used = greedy_distance_two(_int64(order), count, *graph, colors, marks)
        if best is None or used < best[0]:
            best = used, colors
        if best[0] <= least + 1:
            break
    return best[1]


class StarColoring:
    """A star colouring of a symmetric pattern: colours of vertices, and for each entry the end that is the hub."""

    __slots__ = ("colors", "hubs")

    def __init__(self, colors: Any, hubs: Any) -> None:
        self.colors = colors
        self.hubs = hubs
        """For each entry of the pattern in CSR order: the vertex (row or column) whose colour's product shows it."""


def color_star(pattern: Any) -> StarColoring:
    """A star colouring of a symmetric CSR pattern without regard to its diagonal."""
    count = pattern.shape[0]
    rows = np.repeat(np.arange(count), np.diff(pattern.indptr))
    off = np.flatnonzero(rows != pattern.indices)
    heads, tails = rows[off], _int64(pattern.indices[off])
    graph = _Edges(heads, tails, count)
    colors = np.full(count, -1, np.int64)
    marks = [np.full(count + 1, -1, np.int64) for _ in range(5)]
    star, hub = np.zeros(graph.count + 1, np.int64), np.full(graph.count + 1, -1, np.int64)
    greedy_star(graph.order, count, graph.starts, tails, graph.edges, colors, *marks, star, hub)
    hubs = np.array(pattern.indices, np.int64)
    centres = hub[star[graph.edges]]
    hubs[off] = np.where(centres < 0, np.maximum(heads, tails), centres)
    return StarColoring(colors, hubs)


class AcyclicColoring:
    """An acyclic colouring of a symmetric pattern, and the order in which its entries follow from products."""

    __slots__ = ("above", "below", "colors", "columns", "diagonal", "nodes", "off", "rows", "values")

    def __init__(self, pattern: Any) -> None:
        count = pattern.shape[0]
        rows = np.repeat(np.arange(count), np.diff(pattern.indptr))
        self.diagonal = np.flatnonzero(rows == pattern.indices)
        self.off = np.flatnonzero(rows != pattern.indices)
        """The places of the diagonal and of the other entries among those of the pattern."""
        graph = _Edges(rows[self.off], _int64(pattern.indices[self.off]), count)
        self.colors = colors = np.full(count, -1, np.int64)
        marks = [np.full(count + 1, -1, np.int64) for _ in range(3)]
        visits = [np.full(graph.count + 1, -1, np.int64) for _ in range(2)]
        parent = np.arange(graph.count + 1)
        greedy_acyclic(graph.order, count, graph.starts, graph.tails, graph.edges, colors, *marks, *visits, parent)
        while not np.array_equal(parent, parent[parent]):
            parent = parent[parent]
        # A vertex has a node in each tree.
        low, high = graph.ends
        trees = parent[: graph.count]
        nodes, numbers = np.unique(np.concatenate([trees * count + low, trees * count + high]), return_inverse=True)
        ends, others = numbers.reshape(2, -1)
        self.nodes = len(nodes)
        both = np.concatenate([ends, others])
        order = np.argsort(both, kind="stable")
        degrees = np.bincount(both, minlength=self.nodes)
        starts = np.append(0, np.cumsum(degrees))
        queue, below, above = (np.zeros(graph.count, np.int64) for _ in range(3))
        leaves_first(
            self.nodes, _int64(ends), _int64(others), starts, _int64(order % max(graph.count, 1)), degrees, queue,
            np.zeros(graph.count, np.int64), below, above,
        )  # fmt: skip
        self.below, self.above = below, above
        self.rows, self.columns = nodes[below] % max(count, 1), nodes[above] % max(count, 1)
        """For each edge in the order of substitution: its lower and its upper vertex."""
        positions = np.empty(graph.count, np.int64)
        positions[queue] = np.arange(graph.count)
        self.values = positions[graph.edges]
        """For each entry off the diagonal the position of its edge in that order."""

    def read(self, products: Any, colors: Any, nnz: int) -> Any:
        """The entries in CSR order from the products of all colours, (colours, rows)."""
        size = products.shape[1]
        flat = np.asarray(products, np.float64).reshape(-1)
        values = np.empty(len(self.below))
        places = colors[self.columns] * size + self.rows
        substitute(len(values), places, self.below, self.above, flat, np.zeros(self.nodes), values)
        data = np.empty(nnz, products.dtype)
        data[self.off] = values[self.values]
        return data


class _Edges:
    """The edges of a graph whose entries (heads, tails) hold each of them twice, and an order of its vertices."""

    __slots__ = ("count", "edges", "ends", "order", "starts", "tails")

    def __init__(self, heads: Any, tails: Any, count: int) -> None:
        self.tails = tails
        self.starts = np.append(0, np.cumsum(np.bincount(heads, minlength=count)))
        pairs, edges = np.unique(np.minimum(heads, tails) * count + np.maximum(heads, tails), return_inverse=True)
        self.edges = edges.reshape(-1)
        self.count = len(pairs)
        self.ends = pairs // max(count, 1), pairs % max(count, 1)
        degrees = np.diff(self.starts)
        limit = max(16, 8 * int(degrees.mean())) if count else 0
        self.order = np.argsort(np.where(degrees > limit, degrees, 0), kind="stable")
        """Those with many neighbours come last."""


def check_coloring(pattern: Any, colors: Any, transform: str) -> None:
    """Raise ArgumentError for two columns of one colour with a common row."""
    named = ' or "star" or "acyclic"' if transform == "sparse_hessian" else ""
    if isinstance(colors, str):
        raise ArgumentError(
            f"func.{transform}: coloring must be an array of {pattern.shape[1]} colours{named}; got {colors!r}"
        )
    colors = np.asarray(colors)
    if colors.shape != (pattern.shape[1],) or colors.dtype.kind not in "iu" or colors.min(initial=0) < 0:
        raise ArgumentError(
            f"func.{transform}: coloring must be an array of {pattern.shape[1]} colours, non-negative integers, one "
            f"for each column; got shape {colors.shape} of {colors.dtype}"
        )
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    keys = colors[pattern.indices].astype(np.int64)
    order = np.lexsort((pattern.indices, keys, rows))
    clash = (np.diff(rows[order]) == 0) & (np.diff(keys[order]) == 0)
    if clash.any():
        first = int(np.flatnonzero(clash)[0])
        row, a, b = rows[order[first]], pattern.indices[order[first]], pattern.indices[order[first + 1]]
        raise ArgumentError(
            f"func.{transform}: the colouring clashes: columns {a} and {b} have colour {keys[order[first]]}, and both "
            f"have an entry in row {row}; give them different colours, or leave out coloring"
        )


def bipartite(pattern: Any) -> Any:
    """The symmetric pattern [[0, J], [Jᵀ, 0]], whose vertices are the rows and then the columns of J."""
    return scipy.sparse.block_array([[None, pattern], [pattern.T, None]], format="csr")
