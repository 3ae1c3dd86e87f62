"""Branches as one primitive, `cond_call(index, *operands, branches=...)`.

Branches are compiled calls with the same operands. A derivative is again a choice of branches. The known programs of
all branches return the residuals of every branch, with zeros for the branches that did not run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters import drivers
from func.interpreters.calls.call_primitives import CallPrimitive, CallPullback
from func.interpreters.calls.compiled_call import (
    CompiledCall,
    PartitionedCall,
    agree,
    outputs_and_tangents,
    snapshots,
    takes,
)
from func.interpreters.calls.partition import active_arguments, dense_cotangents, expand, select
from func.interpreters.calls.series_calls import SeriesForm, active_series, call_with_series, present
from func.interpreters.control.compiled_bodies import (
    choose,
    compiled_function,
    dependents,
    on_backend,
    representative,
    split,
    unshared,
    zeros,
)
from func.interpreters.control.masked_bodies import operands_with_masks, outputs_with_masks, with_masks
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped
from func.interpreters.core.parameters import COMPILED, Kind
from func.interpreters.nan_safe import with_fallback
from func.interpreters.primitives.elementwise.table import equal, maximum, minimum
from func.interpreters.primitives.structural.indexing import gather
from func.interpreters.primitives.structural.reductions import reduce_any
from func.interpreters.primitives.structural.shapes import convert
from func.interpreters.structural_zeros import StructuralZeros, has_mask, without_mask

INDEX = np.dtype(np.int64)


class PartitionedBranches:
    """The derivative of all branches as two choices of branches.

    Residuals that are operands are passed by position (`direct`). The others share slots: each branch fills the slots
    of its shapes and dtypes, and returns zeros in the rest. `known` are the branches (*operands) -> (*outputs, *slots),
    `linear` the branches (*direct operands, *slots, *seeds) -> the (co)tangents at the positions in `results`.
    """

    def __init__(
        self, derivatives: Sequence[PartitionedCall], results: Sequence[int], result_avals: Sequence[Aval]
    ) -> None:
        self.outputs = derivatives[0].outputs
        self.results = results
        slots: dict[tuple[Aval, int], int] = {}
        sources: list[list[tuple[bool, int]]] = []
        for derivative in derivatives:
            program = derivative.known.program
            position = {var: i for i, var in enumerate(program.inputs)}
            counts: dict[Aval, int] = {}
            branch_sources = []
            for x in program.outputs[self.outputs :]:
                if x in position:
                    branch_sources.append((True, position[x]))
                    continue
                aval = Aval(x.shape, x.dtype)
                counts[aval] = counts.get(aval, 0) + 1
                branch_sources.append((False, slots.setdefault((aval, counts[aval]), len(slots))))
            sources.append(branch_sources)
        self.direct = sorted({i for branch_sources in sources for is_direct, i in branch_sources if is_direct})
        slot_avals = [aval for aval, _ in slots]
        inputs = derivatives[0].known.in_avals
        linear_avals = [*[inputs[i] for i in self.direct], *slot_avals, *derivatives[0].seed_avals]
        pairs = list(zip(derivatives, sources, strict=True))
        self.known = tuple([compiled_function(self._known(*pair, slot_avals), inputs) for pair in pairs])
        self.linear = tuple(
            [compiled_function(self._linear(*pair, len(slot_avals), result_avals), linear_avals) for pair in pairs]
        )

    def _known(
        self, derivative: PartitionedCall, sources: Sequence[tuple[bool, int]], slot_avals: Sequence[Aval]
    ) -> Any:
        def known(*operands: Array) -> list[Array]:
            outs, residuals = split(derivative.known.run_on(*operands), self.outputs)
            slots = {slot: x for (is_direct, slot), x in zip(sources, residuals, strict=True) if not is_direct}
            return [*outs, *[slots[i] if i in slots else zeros(aval) for i, aval in enumerate(slot_avals)]]

        return known

    def _linear(
        self,
        derivative: PartitionedCall,
        sources: Sequence[tuple[bool, int]],
        slot_count: int,
        result_avals: Sequence[Aval],
    ) -> Any:
        def linear(*values: Array) -> list[Array]:
            operands, slots, seeds = split(values, len(self.direct), slot_count)
            direct = dict(zip(self.direct, operands, strict=True))
            residuals = [direct[i] if is_direct else slots[i] for is_direct, i in sources]
            outs = derivative.inline_linear(residuals, seeds)
            pairs = zip([outs[i] for i in self.results], result_avals, strict=True)
            return [zeros(aval) if out is ZERO else out for out, aval in pairs]

        return linear

    def run_known(self, index: Array, operands: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """(outputs, residuals: the direct operands and the slots)."""
        outs, slots = split(cond_call(index, *operands, branches=self.known), self.outputs)
        return outs, [*[operands[i] for i in self.direct], *slots]


def _outputs_with_tangent(branches: Sequence[CompiledCall], active: Sequence[bool]) -> list[int]:
    """The outputs that depend on the active operands in some branch."""
    depends = zip(*[dependents(branch.program, active) for branch in branches], strict=True)
    return [i for i, flags in enumerate(depends) if any(flags)]


def _jvp_partition(branches: tuple[CompiledCall, ...], active: tuple[bool, ...]) -> PartitionedBranches:
    """The partition for tangents of the active operands."""

    def derive() -> PartitionedBranches:
        results, avals = _outputs_with_tangent(branches, active), branches[0].out_avals
        derivatives = [branch.jvp_partition(active) for branch in branches]
        return PartitionedBranches(derivatives, results, [avals[i] for i in results])

    return branches[0].memoized(("cond jvp", branches, active), derive)


def _vjp_partition(branches: tuple[CompiledCall, ...], active: tuple[bool, ...]) -> PartitionedBranches:
    """The partition for cotangents of the inexact outputs."""

    def derive() -> PartitionedBranches:
        avals = select(branches[0].in_avals, active)
        derivatives = [branch.vjp_partition(active) for branch in branches]
        return PartitionedBranches(derivatives, range(len(avals)), avals)

    return branches[0].memoized(("cond vjp", branches, active), derive)


class CondPrimitive(CallPrimitive):
    """A choice of one branch."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        index, *operands = primals
        active = active_arguments(operands, tangents[1:])
        if not any(active) or not _outputs_with_tangent(params["branches"], active):
            return self(*primals, **params), ZERO

        def push(*branches: CompiledCall) -> Any:
            derivative = _jvp_partition(branches, active)
            outs, residuals = derivative.run_known(index, operands)
            seeds = select(tangents[1:], active)
            douts = cond_call(index, *residuals, *seeds, branches=derivative.linear)
            return outs, tuple(expand(douts, [i in derivative.results for i in range(len(outs))]))

        return with_fallback(push, params["branches"], outputs_and_tangents)

    def reached(self, inputs: Sequence[bool], params: Params) -> Sequence[bool]:
        """By any of the branches; an unknown index reaches everything."""
        flags = [dependents(branch.program, inputs[1:], derivatives=False) for branch in params["branches"]]
        return [inputs[0] or any(f) for f in zip(*flags, strict=True)]

    def apply_masked(self, structural: StructuralZeros, args: tuple[Array, ...], params: Params) -> Any:
        """The same choice among branches that return masks too."""
        index, *operands = args
        traced = tuple([has_mask(x) for x in operands])
        branches = params["branches"]
        flags = tuple([any(f) for f in zip(*[dependents(branch.program, traced) for branch in branches], strict=True)])
        bodies = branches[0].memoized(
            ("cond masked", branches, traced, flags),
            lambda: tuple([with_masks(branch, (), (), traced, flags) for branch in branches]),
        )
        outs = cond_call(without_mask(index), *operands_with_masks(operands, traced, ()), branches=bodies)
        return outputs_with_masks(structural, outs, flags, ())

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """The same choice among series programs."""
        branches, (index, *operands), own = params["branches"], values, coefficients[1:]
        active = active_series(operands, own)
        flags = [any(f) for f in zip(*[dependents(branch.program, active) for branch in branches], strict=True)]
        if not any(flags):
            return [(out, None) for out in self(*values, **params)]
        form = SeriesForm(order, tuple(present(own)), tuple(flags), (len(operands),), (len(flags),))

        def call(bodies: tuple[CompiledCall, ...], series: list[Array]) -> Sequence[Array]:
            return cond_call(index, *series, branches=bodies)  # type: ignore[no-any-return]

        return call_with_series(form, branches, operands, own, call)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        active = active_arguments(values[1:], parents[1:])
        values = snapshots(values, (False, *active))
        if not any(active) or not any([any(dependents(branch.program, active)) for branch in params["branches"]]):
            return self(*values, **params), None, None

        def run_forward(*branches: CompiledCall) -> Any:
            return branches, *_vjp_partition(branches, active).run_known(values[0], values[1:])

        branches, outs, residuals = with_fallback(run_forward, params["branches"], lambda result: result[1])
        return outs, COND_PULLBACK, (branches, active, values, residuals)


def _cond_pull(saved: Any, ct: dict[int, Any]) -> list[Any]:
    """The same choice among pullbacks."""
    branches, active, values, residuals = saved
    cts = dense_cotangents(branches[0].out_avals, ct)
    if has_mask(cts[0]) and any([branch.has_pullbacks for branch in branches]):
        branches = tuple([branch.nan_safe_variant() or branch for branch in branches])
        residuals = _vjp_partition(branches, active).run_known(values[0], values[1:])[1]
    derivative = _vjp_partition(branches, active)
    return [ZERO, *expand(cond_call(values[0], *residuals, *cts, branches=derivative.linear), active)]


COND_PULLBACK = CallPullback("cond_call", _cond_pull)


def _cond_impl(xp: Any, index: Array, *operands: Array, branches: tuple[CompiledCall, ...]) -> tuple[Any, ...]:
    branch = branches[min(max(int(index), 0), len(branches) - 1)]
    return unshared(branch, branch.execute(xp, on_backend(xp, operands)))


def _cond_transpose(
    ct: dict[int, Any], index: Array, *operands: Any, branches: tuple[CompiledCall, ...]
) -> tuple[Any, ...]:
    unknown = tuple([isinstance(x, Shaped) for x in operands])
    is_known = [not is_unknown for is_unknown in unknown]
    seeds = tuple(ct)

    def derive() -> tuple[CompiledCall, ...]:
        avals = [*select(branches[0].in_avals, is_known), *[branches[0].out_avals[i] for i in seeds]]
        return tuple([compiled_function(_transposed(branch, unknown, seeds), avals) for branch in branches])

    transposed = branches[0].memoized(("cond transpose", branches, unknown, seeds), derive)
    known = select(operands, is_known)
    return ZERO, *expand(cond_call(index, *known, *ct.values(), branches=transposed), unknown)


def _transposed(branch: CompiledCall, unknown: Sequence[bool], seeds: Sequence[int]) -> Any:
    """(*known operands, *cotangents of the outputs in `seeds`) -> cotangents of the unknown operands."""
    inputs = branch.in_avals

    def transposed(*values: Array) -> list[Array]:
        known, cts = split(values, len(unknown) - sum(unknown))
        rest = iter(known)
        operands = [aval if is_unknown else next(rest) for aval, is_unknown in zip(inputs, unknown, strict=True)]
        cotangents = drivers.transpose_flat(branch.run_on, operands, dict(zip(seeds, cts, strict=True)))
        return [
            zeros(aval) if cotangent is ZERO else cotangent
            for cotangent, aval in zip(select(cotangents, unknown), select(inputs, unknown), strict=True)
        ]

    return transposed


def _cond_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    index, *operands = args
    branches: tuple[CompiledCall, ...] = params["branches"]
    which = tuple(batched[1:])
    if not batched[0]:
        return cond_call(index, *operands, branches=tuple([branch.batched(size, which) for branch in branches]))
    index = minimum(maximum(index, 0), len(branches) - 1)
    chosen: list[Array] = []
    for number, branch in enumerate(branches):
        selected = equal(index, number)
        elements = representative(size, selected)
        gathered = [gather(x, elements, axis=0) if on else x for x, on in zip(operands, which, strict=True)]
        pair = branch.memoized(("cond batch", size, which), functools.partial(_zeros_or_batched, branch, size, which))
        outs = cond_call(convert(reduce_any(selected, axes=(0,)), dtype=INDEX), *gathered, branches=pair)
        chosen = [choose(selected, new, old) for new, old in zip(outs, chosen, strict=True)] if number else list(outs)
    return tuple(chosen)


def _zeros_or_batched(branch: CompiledCall, size: int, which: tuple[bool, ...]) -> tuple[CompiledCall, CompiledCall]:
    """Zeros if no batch element takes the branch; otherwise the branch of all elements."""
    batched = branch.batched(size, which)
    avals = batched.out_avals
    return compiled_function(lambda *operands: [zeros(aval) for aval in avals], batched.in_avals), batched


def _are_branches(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return type(value) is tuple and len(value) > 0 and all([COMPILED.accepts(entry, avals, params) for entry in value])


def _have_equal_signatures(index: Aval, *operands: Aval, branches: tuple[CompiledCall, ...]) -> bool:
    """Whether the index is an integer, and every branch accepts the operands and returns equal avals."""
    outs = branches[0].out_avals
    return (index.shape, index.dtype.kind in "iu") == ((), True) and all(
        [takes(branch, operands) and agree(branch.out_avals, outs) for branch in branches]
    )


cond_call = CondPrimitive(
    "cond_call",
    _cond_impl,
    aval=lambda index, *operands, branches: branches[0].out_avals,
    parameters={"branches": Kind("compiled calls", _are_branches)},
    fits=_have_equal_signatures,
    batch=_cond_batch,
    transpose=_cond_transpose,
    multiple=True,
)
"""branches[index](*operands), where the index is clamped to the branches."""
