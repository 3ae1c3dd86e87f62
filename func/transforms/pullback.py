"""The result of `func.vjp`: a reusable map of cotangents, which prints and pickles its graph of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters.compiled_backward import pull_back
from func.interpreters.core import ZERO, Array, Tracer, dtype_of, innermost, is_inexact, known_value, shape_of
from func.interpreters.core.errors import TangentError
from func.interpreters.grad import LEAF, OUTPUT, PARENTS, SERIAL, SERIALS, Node
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.structural.identity import as_seeds, is_abstract_value
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.interpreters.structural_zeros import is_recorded
from func.transforms.arguments import Arguments, Selection
from func.transforms.boundary import array_leaf, as_input_type, own


def graph_of(roots: Iterable[Any]) -> list[Node]:
    """All nodes that some roots (skipping None) depend on, oldest first."""
    seen: dict[int, Node] = {}
    stack = [root for root in roots if root is not None]
    while stack:
        node = stack.pop()
        if node[SERIAL] not in seen:
            seen[node[SERIAL]] = Node(*node)
            stack.extend([parent for parent in node[PARENTS] if parent is not None])
    return [seen[index] for index in sorted(seen, reverse=True)]


def graph_table(nodes: Sequence[Node]) -> tuple[list[Any], dict[int, int]]:
    """Nodes with their parents as numbers in the table, and the number of each node's index."""
    numbers = {node.serial: i for i, node in enumerate(nodes)}
    table = []
    for node in nodes:
        parents = [None if parent is None else numbers[parent[SERIAL]] for parent in node.parents]
        needs_cotangent = None if node.rule is OUTPUT else list(node.needs_cotangent)
        table.append((node.rule, parents, needs_cotangent, node.saved, node.params, node.aval))
    return table, numbers


def rebuild_graph(table: Sequence[Any]) -> list[Any]:
    """The nodes of a table."""
    nodes: list[Any] = []
    for rule, numbers, needs_cotangent, saved, params, aval in table:
        parents = [None if number is None else nodes[number] for number in numbers]
        nodes.append(
            (next(SERIALS), rule, parents, parents if needs_cotangent is None else needs_cotangent, saved, params, aval)
        )
    return nodes


def cotangent_argument(cts: Sequence[Any], name: str, spec: Any) -> Any:
    """The argument of a pullback, or an error that says what a pullback takes."""
    if len(cts) == 1:
        return cts[0]
    raise TangentError(
        f"the pullback of {name} takes one argument, a cotangent with the tree of its output, {tree.shown(spec)}, "
        f"but was called with {len(cts)}"
    )


class Pullback:
    """The map from a cotangent of the output of a function to cotangents of its primals."""

    def __init__(
        self,
        name: str,
        arguments: Arguments,
        leaves: list[Any],
        nodes: list[Any],
        values: list[Any],
        spec: Any,
        form: Selection | None = None,
    ) -> None:
        self._name = name
        self._leaves = leaves
        """The node of each active leaf of the arguments."""
        self._nodes = nodes
        """The node of each leaf of the output; None where it does not depend on the arguments."""
        self._outs = [(shape_of(v), dtype_of(v)) for v in values]
        self._recorded = [value for value in values if type(value) is Tracer and is_recorded(value)]
        """The values of the output that an outer level records."""
        self._traced_values = [value for value in values if is_abstract_value(value)][:1]
        """A value of the output in a Program that is being traced."""
        self._spec = spec
        self._form = form
        """The structure of the cotangents; None for a tuple with one per primal."""
        self._zeros = [ZerosLike(leaf) for leaf in arguments.values()]
        self._arguments = Arguments(arguments.specs, [None] * len(arguments.leaves), arguments.active)

    @without_engine_frames
    def __call__(self, *cts: Any) -> Any:
        ct = cotangent_argument(cts, self._name, self._spec)
        seeds = [
            (node, seed)
            for node, seed in zip(self._nodes, as_seeds(self._checked(ct), self._traced_values), strict=True)
            if node is not None and seed is not ZERO
        ]
        cotangents = pull_back(seeds, self._leaves, self._recorded)
        for i, zeros in enumerate(self._zeros):
            cotangents[i] = as_input_type(zeros() if cotangents[i] is ZERO else cotangents[i], zeros.example)
        arranged = self._arguments.arranged(own(cotangents))
        return tuple(arranged) if self._form is None else self._form.arranged(arranged)

    def _checked(self, ct: Any) -> list[Any]:
        leaves, spec = tree.flatten(ct)
        if spec != self._spec:
            raise TangentError(
                f"the cotangent of {self._name} must have the tree of its output, {tree.shown(self._spec)}, but has "
                f"{tree.shown(spec)}; pass it as the function returns it, not wrapped in a tuple"
            )
        return [self._fit(i, leaf, *out) for i, (leaf, out) in enumerate(zip(leaves, self._outs, strict=True))]

    def _fit(self, i: int, leaf: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """A cotangent of the output's shape and dtype (converts numbers and integers), or a TangentError."""
        leaf = array_leaf(leaf, f"cotangent {i}", "vjp")
        if shape_of(leaf) != shape:
            raise TangentError(
                f"cotangent {i} of {self._name} has shape {shape_of(leaf)}, but the output has shape {shape}"
            )
        if not is_inexact(dtype):
            return ZERO
        have = dtype_of(leaf)
        if have == dtype and hasattr(leaf, "dtype"):
            return leaf
        if have.kind == "c" and dtype.kind != "c":
            raise TangentError(f"cotangent {i} of {self._name} is {have}, but the output is {dtype}")
        if type(leaf) is np.ndarray and is_inexact(have):
            raise TangentError(
                f"cotangent {i} of {self._name} has dtype {have}, but the output has dtype {dtype}; "
                f"convert it with .astype(np.{dtype})"
            )
        return convert(leaf, dtype=dtype)

    def __repr__(self) -> str:
        nodes = graph_of(self._nodes)
        total, shown = 0, []
        for node in nodes:
            arrays = {id(v): v for v in arrays_in(node.saved)}
            size = sum([v.nbytes for v in arrays.values()])
            total += size
            if size:
                saved = ", ".join([f"{v.dtype}{list(v.shape)}" for v in arrays.values()])
                shown.append(f"  {node.rule.name}: {saved} ({size} bytes)")
        operations = sum([node.rule is not LEAF for node in nodes])
        head = f"<pullback of {self._name}: {operations} operations, {total} bytes saved>"
        return "\n".join([head, *shown[:20], *([f"  ... {len(shown) - 20} more"] if len(shown) > 20 else [])])

    def __getstate__(self) -> dict[str, Any]:
        nodes = graph_of([*self._nodes, *self._leaves])
        for node in nodes:
            if any([type(value) is Tracer for value in values_in(node.saved)]):
                raise TypeError("this pullback holds values of an outer transform and cannot be pickled")
        table, numbers = graph_table(nodes)
        state = dict(self.__dict__)
        state["_nodes"] = [None if node is None else numbers[node[SERIAL]] for node in self._nodes]
        state["_leaves"] = [numbers[leaf[SERIAL]] for leaf in self._leaves]
        return {"state": state, "table": table}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        nodes = rebuild_graph(pickled["table"])
        self.__dict__.update(pickled["state"])
        self._nodes = [None if number is None else nodes[number] for number in self._nodes]
        self._leaves = [nodes[number] for number in self._leaves]


class ZerosLike:
    """Zeros like an input, and an example of its kind of object, without a reference to the input."""

    def __init__(self, leaf: Array) -> None:
        self.shape, self.dtype = shape_of(leaf), dtype_of(leaf)
        bottom = innermost(leaf)
        like = 0.0 if bottom is None else bottom
        self.example = np.empty(0) if type(leaf) is np.ndarray else full_like(like, 0, (), np.float64)[()]

    def __call__(self) -> Array:
        return full_like(self.example, 0, self.shape, self.dtype)


def values_in(saved: Any) -> list[Any]:
    """All values that a node of the graph saves, also in tuples and programs."""
    if isinstance(saved, (tuple, list)):
        return [value for item in saved for value in values_in(item)]
    constants = getattr(saved, "constants", None)
    return list(constants.values()) if isinstance(constants, dict) else [saved]


def arrays_in(saved: Any) -> list[Any]:
    """The arrays among the saved values; for values of outer transforms the arrays behind them."""
    values = [known_value(value) for value in values_in(saved)]
    return [value for value in values if hasattr(value, "nbytes") and hasattr(value, "shape")]
