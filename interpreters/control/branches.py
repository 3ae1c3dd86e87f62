"""Branches as one row, `cond_call(index, *operands, branches=...)`.

Branches are staged programs of the same operands. A derivative is again a choice of branches: the first halves of all
branches leave their residuals side by side, with zeros in the places of those that did not run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.call_primitives import CallPrimitive
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.bodies import (
    Half,
    any_nan,
    backward_half,
    borrowed,
    dependents,
    derived,
    filled,
    forward_half,
    input_avals,
    is_moving,
    on_backend,
    parts,
    remembered,
    select,
    settled,
    spread,
    unshared,
    zeros,
)
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, is_inexact
from func.interpreters.primitives.elementwise.table import equal, maximum, minimum
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.shapes import convert

INDEX = np.dtype(np.int64)


# --- the halves of branches -------------------------------------------------------------------------------------


class Branches:
    """The halves of all branches: `first` with equal outputs, the residuals behind them in common slots; `second` of
    (operands in `given`, slots, tangents or cotangents), with a result at every place in `wanted`."""

    def __init__(
        self, halves: Sequence[Half], outputs: int, needs_cotangent: Sequence[int], results: Sequence[Aval]
    ) -> None:
        self.outputs = outputs
        slots: dict[tuple[Aval, int], int] = {}
        places: list[list[tuple[bool, int]]] = []
        for half in halves:
            position = {var: i for i, var in enumerate(half.first.inputs)}
            counts: dict[Aval, int] = {}
            own = []
            for x in half.first.outputs[outputs:]:
                if x in position:
                    own.append((True, position[x]))
                    continue
                aval = Aval(x.shape, x.dtype)
                counts[aval] = counts.get(aval, 0) + 1
                own.append((False, slots.setdefault((aval, counts[aval]), len(slots))))
            places.append(own)
        self.given = sorted({i for own in places for direct, i in own if direct})
        avals = [aval for aval, _ in slots]
        inputs = [var.aval for var in halves[0].first.inputs]
        second_avals = [*[inputs[i] for i in self.given], *avals, *halves[0].moved]
        self.first = tuple(
            [derived(self._first(half, own, avals), inputs) for half, own in zip(halves, places, strict=True)]
        )
        self.second = tuple(
            [
                derived(self._second(half, own, len(avals), needs_cotangent, results), second_avals)
                for half, own in zip(halves, places, strict=True)
            ]
        )

    def _first(self, half: Half, own: Sequence[tuple[bool, int]], avals: Sequence[Aval]) -> Any:
        def first(*operands: Array) -> list[Array]:
            outs = half.first.run(operands)
            slots = {slot: x for (direct, slot), x in zip(own, outs[self.outputs :], strict=True) if not direct}
            return [*outs[: self.outputs], *[slots[i] if i in slots else zeros(aval) for i, aval in enumerate(avals)]]

        return first

    def _second(
        self,
        half: Half,
        own: Sequence[tuple[bool, int]],
        count: int,
        needs_cotangent: Sequence[int],
        results: Sequence[Aval],
    ) -> Any:
        def second(*values: Array) -> list[Array]:
            given, slots, moving = parts(values, len(self.given), count)
            direct = dict(zip(self.given, given, strict=True))
            residuals = [direct[i] if is_direct else slots[i] for is_direct, i in own]
            contribution = half.second(residuals, moving)
            return [
                zeros(aval) if contribution[i] is ZERO else contribution[i]
                for i, aval in zip(needs_cotangent, results, strict=True)
            ]

        return second

    def run(self, index: Array, operands: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """The outputs, and what the second half starts from."""
        outs = cond_call(index, *operands, branches=self.first)
        return list(outs[: self.outputs]), [*[operands[i] for i in self.given], *outs[self.outputs :]]


# --- the row ----------------------------------------------------------------------------------------------------


class CondPrimitive(CallPrimitive):
    """A choice of one branch."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        index, *operands = primals
        branches: tuple[CompiledCall, ...] = params["branches"]
        active = is_moving(operands, tangents[1:])
        outs = [dependents(branch.program, active) for branch in branches]
        needs_cotangent = [i for i, which in enumerate(zip(*outs, strict=True)) if any(which)]
        if not any(active) or not needs_cotangent:
            return self(*primals, **params), ZERO

        def make() -> Branches:
            halves = [forward_half(branch, active) for branch in branches]
            return Branches(halves, len(outs[0]), needs_cotangent, [branches[0].out_avals[i] for i in needs_cotangent])

        halves = remembered(branches[0], ("cond jvp", branches, active), make)
        values, residuals = halves.run(index, operands)
        other = _alternatives(branches) if any_nan(values) else None
        if other is not None:
            return self.forward(primals, tangents, {"branches": other})
        given = [t for t, on in zip(tangents[1:], active, strict=True) if on]
        moved = cond_call(index, *residuals, *given, branches=halves.second)
        return values, tuple(spread(moved, [i in needs_cotangent for i in range(len(outs[0]))]))

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        branches: tuple[CompiledCall, ...] = params["branches"]
        active = is_moving(values[1:], parents[1:])
        values = (settled(values[0]), *[x if on else settled(x) for x, on in zip(values[1:], active, strict=True)])
        if not any(active) or not any([any(dependents(branch.program, active)) for branch in branches]):
            return self(*values, **params), None, None
        outs, residuals = _pulled(branches, active, False).run(values[0], values[1:])
        other = _alternatives(branches) if any_nan(outs) else None
        if other is not None:
            return self.record(values, parents, {"branches": other})
        return outs, PULLED_COND, (branches, active, values, residuals)


def _pulled(branches: tuple[CompiledCall, ...], active: tuple[bool, ...], nan_safe: bool) -> Branches:
    def make() -> Branches:
        halves = [backward_half(branch, active, nan_safe) for branch in branches]
        results = [aval for aval, on in zip(input_avals(branches[0]), active, strict=True) if on]
        return Branches(halves, len(branches[0].out_avals), range(len(results)), results)

    return remembered(branches[0], ("cond vjp", branches, active, nan_safe), make)


def _alternatives(branches: tuple[CompiledCall, ...]) -> tuple[CompiledCall, ...] | None:
    """The branches with pullbacks inside in which zero cotangents win, if there are any pullbacks."""
    if not any([branch.pulls for branch in branches]):
        return None
    return tuple([branch.nan_safe_variant() or branch for branch in branches])


class PulledCondRule:
    """The pullback of a choice: the same choice among pullbacks."""

    name = "cond_call"

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        branches, active, _, residuals = saved
        return self._through(_pulled(branches, active, False), residuals, saved, ct)

    def pull_nan_safe(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        branches, active, values, _ = saved
        halves = _pulled(branches, active, True)
        return self._through(halves, [values[1 + i] for i in halves.given], saved, ct)

    def _through(self, halves: Branches, residuals: Sequence[Array], saved: Any, ct: Any) -> list[Any]:
        branches, active, values, _ = saved
        avals = branches[0].out_avals
        cts = filled(avals, [i for i, aval in enumerate(avals) if is_inexact(aval.dtype)], ct)
        contribution = cond_call(values[0], *residuals, *cts, branches=halves.second)
        return [ZERO, *spread(contribution, active)]

    def __reduce__(self) -> str:
        return "PULLED_COND"


PULLED_COND = PulledCondRule()


def _cond_impl(xp: Any, index: Array, *operands: Array, branches: tuple[CompiledCall, ...]) -> tuple[Any, ...]:
    branch = branches[min(max(int(index), 0), len(branches) - 1)]
    return unshared(branch, branch.execute(xp, on_backend(xp, operands)))


def _cond_transpose(ct: Any, index: Array, *operands: Any, branches: tuple[CompiledCall, ...]) -> tuple[Any, ...]:
    unknown = tuple([isinstance(x, Shaped) for x in operands])
    given = tuple(ct)

    def make() -> tuple[CompiledCall, ...]:
        inputs = input_avals(branches[0])
        known = [aval for aval, on in zip(inputs, unknown, strict=True) if not on]
        avals = [*known, *[branches[0].out_avals[i] for i in given]]
        return tuple([derived(_transposed(branch, inputs, unknown, given), avals) for branch in branches])

    found = remembered(branches[0], ("cond transpose", branches, unknown, given), make)
    known = [x for x, on in zip(operands, unknown, strict=True) if not on]
    return ZERO, *spread(cond_call(index, *known, *ct.values(), branches=found), unknown)


def _transposed(branch: CompiledCall, inputs: Sequence[Aval], unknown: Sequence[bool], given: Sequence[int]) -> Any:
    count = len(unknown) - sum(unknown)

    def transposed(*values: Array) -> list[Array]:
        known, cts = parts(values, count)
        rest = iter(known)
        operands = [aval if on else next(rest) for aval, on in zip(inputs, unknown, strict=True)]
        contribution = drivers.transpose_flat(branch.run_on, operands, dict(zip(given, cts, strict=True)))
        return [
            zeros(aval) if g is ZERO else g for g, aval, on in zip(contribution, inputs, unknown, strict=True) if on
        ]

    return transposed


def _cond_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    index, *operands = args
    branches: tuple[CompiledCall, ...] = params["branches"]
    which = tuple(batched[1:])
    if not batched[0]:
        return cond_call(index, *operands, branches=tuple([branch.mapped(size, which) for branch in branches]))
    index = minimum(maximum(index, 0), len(branches) - 1)
    chosen: list[Array] = []
    for number, branch in enumerate(branches):
        hit = equal(index, number)
        lanes = borrowed(size, hit)
        moved = [gather(x, lanes, axis=0) if on else x for x, on in zip(operands, which, strict=True)]
        mapped = remembered(branch, ("cond batch", size, which), functools.partial(_or_zeros, branch, size, which))
        outs = cond_call(convert(reduce_any(hit, axes=(0,)), dtype=INDEX), *moved, branches=mapped)
        chosen = [select(hit, new, old) for new, old in zip(outs, chosen, strict=True)] if number else list(outs)
    return tuple(chosen)


def _or_zeros(branch: CompiledCall, size: int, which: tuple[bool, ...]) -> tuple[CompiledCall, CompiledCall]:
    """What a branch gives for all lanes, after what is given where no lane takes it."""
    mapped = branch.mapped(size, which)
    avals = mapped.out_avals
    return derived(lambda *operands: [zeros(aval) for aval in avals], input_avals(mapped)), mapped


cond_call = CondPrimitive(
    "cond_call",
    _cond_impl,
    aval=lambda index, *operands, branches: branches[0].out_avals,
    batch=_cond_batch,
    transpose=_cond_transpose,
    multiple=True,
)
"""branches[index](*operands), the index being moved into range."""
