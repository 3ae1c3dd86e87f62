"""einsum by contractions of two operands at a time, in the order that opt_einsum chooses."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import memory_order_of, order_letter, stand_in
from func.interpreters.core import Array, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.shapes import broadcast, permute, reduce_sum
from func.numpy.argument_checks import arrayed, as_array, rank_of, scalar_of, to_dtype
from func.numpy.inplace import view_diagonal, view_permute, write_into
from func.numpy.memory import in_order, is_plain, with_order_of
from func.numpy.protocol import implements
from func.numpy.shaping import moveaxis

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@implements(np.einsum)
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
) -> Array:
    """A sum of products over labelled axes, in NumPy's notation, as numpy.einsum.

    Contracts three or more operands in pairs. `optimize` names a strategy of opt_einsum, or is a path from einsum_path.
    """
    order = order_letter(order)
    terms, output, arrays = parse(operands)
    _check_cast(arrays, dtype, out, casting)
    if len(arrays) == 1 and out is None and set(output) == set(terms[0]) and type(arrays[0]) is Tracer:
        return _view(arrays[0], terms[0], output, dtype, order)
    if dtype is None and len(arrays) > 2 and not optimize:
        dtype = np.result_type(*[dtype_of(a) for a in arrays])  # not in the dtype of the first two
    arrays = [to_dtype(a, dtype) for a in arrays]
    sizes = _sizes(terms, arrays)
    reduced = [_take_diagonals(a, term) for a, term in zip(arrays, terms, strict=True)]
    pool = [list(pair) for pair in reduced]
    for i, j in _pairs(terms, output, sizes, optimize):
        second, first = pool.pop(max(i, j)), pool.pop(min(i, j))
        later = set(output).union(*[set(term) for _, term in pool])
        pool.append(list(_contract_pair(first, second, later, output if not pool else None)))
    array, term = pool[0]
    array, term = _sum_away(array, term, set(output))
    result = permute(array, order=tuple([term.index(c) for c in output])) if term != output else array
    if out is not None:
        if shape_of(out) != shape_of(result):
            raise ValueError(f"einsum: out has shape {shape_of(out)}, the result has {shape_of(result)}")
        return write_into(out, result)
    if order in ("C", "F") and output:
        return in_order(result, order)
    if not output:  # NumPy's contractions by `optimize` are tensordots, which give 0-d arrays
        is_contracted = any([label in other for term, other in itertools.combinations(terms, 2) for label in term])
        return as_array(result) if optimize and is_contracted else scalar_of(result)
    if len(output) < 2:
        return result
    way = tuple(map(_as_key, optimize)) if isinstance(optimize, (list, tuple)) else optimize
    if order == "K" and not way and all(map(is_plain, arrays)) and _gives_c_order(tuple(terms), output):
        return in_order(result, "C")
    find = functools.partial(_axes_in_memory, f"{','.join(terms)}->{output}", way, order)
    return with_order_of(result, find, arrays)


def _as_key(entry: Any) -> Any:
    return tuple(entry) if isinstance(entry, list) else entry


@functools.lru_cache(maxsize=512)
def _gives_c_order(terms: tuple[str, ...], output: str) -> bool:
    """Whether NumPy's result of operands in C order is in C order."""
    arrays = [np.empty([2] * len(term)) for term in terms]
    return bool(_axes_in_memory(f"{','.join(terms)}->{output}", False, "K", *arrays) == tuple(range(len(output))))


def _axes_in_memory(text: str, way: Any, order: str, *arrays: Any) -> Any:
    """The axes of NumPy's result from the slowest to the fastest."""
    return _asked_axes(text, way, order, tuple([(array.shape, array.strides) for array in arrays]))


@functools.lru_cache(maxsize=512)
def _asked_axes(text: str, way: Any, order: Any, layouts: tuple[Any, ...]) -> Any:
    arrays = [stand_in(shape, strides, np.dtype(float)) for shape, strides in layouts]
    way = list(way) if isinstance(way, tuple) and way[0] == "einsum_path" else way  # NumPy takes such paths as lists
    path = way and np.einsum_path(text, *arrays, optimize=way)[0]
    return memory_order_of(lambda *ones: np.einsum(text, *ones, optimize=path, order=order), *arrays)


def _view(a: Tracer, term: str, output: str, dtype: Any, order: str) -> Array:
    """An operand without summed axes, as a view with the output's diagonals and axes."""
    while len(set(term)) != len(term):
        label = next(c for c in term if term.count(c) > 1)
        first = term.index(label)
        second = term.index(label, first + 1)
        a = view_diagonal(a, 0, first, second, writable=True)
        term = "".join([c for k, c in enumerate(term) if k not in (first, second)]) + label
    a = view_permute(a, tuple([term.index(c) for c in output]))
    return a if dtype is None else in_order(to_dtype(a, dtype), order)


def _check_cast(arrays: Sequence[Array], dtype: Any, out: Any, casting: Any) -> None:
    """Raise if NumPy would not cast the operands to the dtype of the result, or the result to that of `out`."""
    outs = [] if out is None else [dtype_of(out)]
    common = np.result_type(*[dtype_of(a) for a in arrays], *outs) if dtype is None else np.dtype(dtype)
    for source, target in [*[(dtype_of(a), common) for a in arrays], *[(common, other) for other in outs]]:
        if not np.can_cast(source, target, casting):
            raise TypeError(f"Iterator requested dtype could not be cast from {source!r} to {target!r}, by '{casting}'")


def parse(operands: Sequence[Any]) -> tuple[list[str], str, list[Array]]:
    """The labels of each operand, the labels of the output, and the operands; "..." is expanded."""
    if isinstance(operands[0], str):
        text = operands[0].replace(" ", "")
        arrays = [arrayed(operand(x)) for x in operands[1:]]
    else:
        lists = list(operands)
        tail = lists.pop() if len(lists) % 2 else None
        arrays = [arrayed(operand(x)) for x in lists[0::2]]
        words = ["".join(["..." if k is Ellipsis else _LETTERS[k] for k in labels]) for labels in lists[1::2]]
        text = ",".join(words)
        if tail is not None:
            text += "->" + "".join(["..." if k is Ellipsis else _LETTERS[k] for k in tail])
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum: the subscripts name {len(terms)} operands, but got {len(arrays)}")
    spare = [c for c in _LETTERS if c not in text]
    widths = [rank_of(a) - len(t.replace("...", "")) for a, t in zip(arrays, terms, strict=True) if "..." in t]
    dots = "".join(spare[: max(widths, default=0)])
    full = []
    for a, term in zip(arrays, terms, strict=True):
        width = rank_of(a) - len(term.replace("...", ""))
        if width < 0 or ("..." not in term and width):
            raise ValueError(f"einsum: {term!r} does not fit an operand with {rank_of(a)} axes")
        full.append(term.replace("...", dots[len(dots) - width :]))
    for a, term in zip(arrays, full, strict=True):
        _check_diagonals(term, shape_of(a))
    if arrow:
        output = right.replace("...", dots)
    else:
        joined = "".join([t.replace("...", "") for t in terms])
        output = dots + "".join(sorted([c for c in set(joined) if joined.count(c) == 1]))
    if len(set(output)) != len(output) or not set(output) <= set("".join(full)):
        raise ValueError(f"einsum: the output subscripts {right!r} repeat a label or name one that no operand has")
    return full, output, arrays


def _check_diagonals(term: str, shape: tuple[int, ...]) -> None:
    """Raise for axes of one operand with one label and two lengths; NumPy reads past the array for 0 and 1."""
    if len(set(term)) == len(term):
        return
    for label, length in zip(term, shape, strict=True):
        if length != (first := shape[term.index(label)]):
            raise ValueError(f"einsum: label {label!r} has lengths {first} and {length} in one operand")


def _sizes(terms: Sequence[str], arrays: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, a in zip(terms, arrays, strict=True):
        for label, n in zip(term, shape_of(a), strict=True):
            known = sizes.setdefault(label, n)
            if known != n and 1 not in (known, n):
                raise ValueError(f"einsum: label {label!r} has length {known} in one operand and {n} in another")
            sizes[label] = max(known, n)
    return sizes


def _take_diagonals(a: Array, term: str) -> tuple[Array, str]:
    """The operand without repeated labels: two axes of one label become their diagonal."""
    while len(set(term)) != len(term):
        label = next(c for c in term if term.count(c) > 1)
        first = term.index(label)
        second = term.index(label, first + 1)
        a = moveaxis(a, (first, second), (0, 1))
        i = np.arange(shape_of(a)[0])
        a = gather(a, i, i, axis=0)
        term = label + "".join([c for k, c in enumerate(term) if k not in (first, second)])
    return a, term


def _pairs(terms: Sequence[str], output: str, sizes: dict[str, int], optimize: Any) -> Sequence[tuple[int, int]]:
    """The positions of the two operands of each contraction; its result goes to the end of the list."""
    if len(terms) <= 2:
        return [(0, 1)] * (len(terms) - 1)
    shapes = tuple([tuple([sizes[c] for c in term]) for term in terms])
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return _in_pairs(optimize[1:], len(terms))
    if isinstance(optimize, (list, tuple)):
        optimize = optimize[0]  # ("greedy", memory limit): contractions of pairs need no more memory than NumPy's
    strategy = optimize if isinstance(optimize, str) else "auto"
    return _cached_path(f"{','.join(terms)}->{output}", shapes, strategy)


@functools.lru_cache(maxsize=512)
def _cached_path(text: str, shapes: tuple[tuple[int, ...], ...], strategy: str) -> list[tuple[int, int]]:
    import opt_einsum  # first use: `import func` does without it

    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=strategy)
    return _in_pairs(path, len(shapes))


def _in_pairs(path: Sequence[Sequence[int]], count: int) -> list[tuple[int, int]]:
    """A path whose steps may take several operands, as steps of two operands."""
    pool, new, pairs = list(range(count)), count, []
    for step in path:
        numbers = [pool[place] for place in step]
        while len(numbers) > 1:
            first, second = numbers.pop(0), numbers.pop(0)
            pairs.append((pool.index(first), pool.index(second)))
            pool = [number for number in pool if number not in (first, second)] + [new]
            numbers.append(new)
            new += 1
    return pairs + [(0, 1)] * (len(pool) - 1)


def _sum_away(a: Array, term: str, needed: set[str]) -> tuple[Array, str]:
    summed = tuple([i for i, c in enumerate(term) if c not in needed])
    if not summed:
        return a, term
    remaining = "".join([c for c in term if c in needed])
    if a.dtype.kind == "b":
        return reduce_any(a, axes=summed), remaining
    return to_dtype(reduce_sum(a, axes=summed), a.dtype), remaining


def _contract_pair(first: Any, second: Any, later: set[str], output: str | None) -> tuple[Array, str]:
    (x, s), (y, t) = first, second
    x, s = _sum_away(x, s, set(t) | later)
    y, t = _sum_away(y, t, set(s) | later)
    x, s, y, t = _broadcast_ones(x, s, y, t)
    out = "".join(dict.fromkeys([c for c in s + t if c in later])) if output is None else output
    if output is not None and set(output) != {c for c in s + t if c in later}:
        out = "".join(dict.fromkeys([c for c in s + t if c in later]))
    code = {c: i for i, c in enumerate(dict.fromkeys(s + t))}
    labels = [tuple([code[c] for c in word]) for word in (s, t, out)]
    return contract(x, y, spec=spec(*labels)), out


def _broadcast_ones(x: Array, s: str, y: Array, t: str) -> tuple[Array, str, Array, str]:
    """Both operands with equal lengths of shared labels: length one is broadcast."""
    a, b = shape_of(x), shape_of(y)
    for label in set(s) & set(t):
        n, m = a[s.index(label)], b[t.index(label)]
        if n != m:
            if n == 1:
                a = tuple([m if c == label else k for c, k in zip(s, a, strict=True)])
            else:
                b = tuple([n if c == label else k for c, k in zip(t, b, strict=True)])
    x = x if a == shape_of(x) else broadcast(x, shape=a)
    return x, s, y if b == shape_of(y) else broadcast(y, shape=b), t


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """NumPy's contraction path, from the shapes alone, as numpy.einsum_path."""
    terms, output, arrays = parse(operands)
    shapes = [np.broadcast_to(np.zeros(()), shape_of(a)) for a in arrays]
    return np.einsum_path(f"{','.join(terms)}->{output}", *shapes, optimize=optimize)
