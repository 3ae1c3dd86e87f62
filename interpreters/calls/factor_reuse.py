"""Factors that a backward pass reuses: Cholesky factors among its inputs, and parts of them.

The program of a pass begins with arrays, but the closed forms of `passes/linalg/` need the origin of a matrix. So this
module marks the factor that a node saved (`known_factor`). Other nodes may have saved a part of it, such as its
diagonal, or a solve with it. The program derives these from the factor again instead of reading separate arrays. The
numbers are the same unless an unrecorded write changed them, which the program checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Shaped, bind, dtype_of, shape_of
from func.interpreters.grad import PARAMS, PARENTS, RULE, SAVED, SERIAL
from func.interpreters.primitives.elementwise.table import equal, not_equal
from func.interpreters.primitives.linalg.solving import cholesky, known_factor, triangular_solve
from func.interpreters.primitives.structural.diagonals import take
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.shapes import convert, full_like, permute, reduce_sum, reshape, where
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.primitives.written_pullbacks import Direct

SELECTIONS = {primitive.name: primitive for primitive in (permute, reshape, getitem, gather, take)}
"""Primitives that take parts of a matrix, also by the names of the rules that represent them on plain arrays."""


def stand_ins(nodes: Sequence[Any], traced: Callable[[Any], Any], claims: list[tuple[Any, Any]]) -> dict[int, Any]:
    """By identity of a saved value, the traced value in its place. `nodes` come before those they belong to.

    An unrecorded write changes numbers and no node, so a stand-in may have other numbers than the saved value. `claims`
    gets the pairs of both for the program to compare. `traced` returns the traced value of a saved one.
    """
    found: dict[int, Any] = {}
    values: dict[int, Any] = {}
    """The traced value of a node, by its serial."""

    def known(value: Any) -> Any:
        return found[id(value)] if id(value) in found else traced(value)

    for node in reversed(nodes):
        serial, rule, parents, saved, params = node[SERIAL], node[RULE], node[PARENTS], node[SAVED], node[PARAMS]
        above = [None if parent is None else values.get(parent[SERIAL]) for parent in parents]
        if rule is cholesky or rule is triangular_solve:
            out = known(saved[-1])
            values[serial] = found[id(saved[-1])] = known_factor(out, **params) if rule is cholesky else out
        primitive = SELECTIONS.get(getattr(rule, "name", ""))
        if primitive is not None and above[0] is not None:
            indices = [] if saved is None else saved[1:]
            values[serial] = bind(primitive, (above[0], *[known(index) for index in indices]), params or {})
        elif saved is not None and any([value is not None for value in above]):
            for place, value in _operands(rule, saved):
                own = above[place] if place < len(above) else None
                if own is not None and id(value) not in found and _is_alike(value, own):
                    claims.append((traced(value), own))
                    found[id(value)] = own
    return found


def nan_unless_equal(claims: Sequence[tuple[Any, Any]], ct: Array) -> Array:
    """A cotangent, or NaN, on which code gives up, if the values of some pair differ."""
    for saved, own in claims:
        differ = reduce_sum(convert(not_equal(saved, own), dtype=np.dtype(float)), axes=tuple(range(len(own.shape))))
        ct = where(equal(differ, 0.0), ct, full_like(ct, np.nan, ()))
    return ct


def _operands(rule: Any, saved: Any) -> list[tuple[int, Any]]:
    """(place, value) of the arguments that a rule has saved."""
    if isinstance(rule, Direct):
        return list(enumerate(saved[:-1]))
    operands: list[tuple[int, Any]] = []

    def note(place: int | None, value: Any, *_: Any) -> Any:
        if place is not None and value is not None:
            operands.append((place, value))
        return value

    if hasattr(rule, "retraced"):
        rule.retraced(saved, note)
    return operands


def _is_alike(value: Any, own: Any) -> bool:
    return not isinstance(value, Shaped) and shape_of(value) == shape_of(own) and dtype_of(value) == dtype_of(own)
