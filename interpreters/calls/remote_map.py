"""`remote_map`: a runner computes a function of the rows of arrays chunk by chunk, on other processes or machines.

`remote_map(*operands, fun, split, joined, runner)` is fun(*operands), where fun takes any number of rows at once. The
runner cuts operands in `split` into chunks along their first axis; every chunk gets the others whole. The chunks of an
output in `joined` are concatenated; any other output is the sum over the chunks. Tangents, cotangents and batches of a
remote map are remote maps of other functions, so the workers compute derivatives of every order.

A runner may own data: each chunk gets its part, which `bind_data` passes to the innermost function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from func.backends.records import ValueRecord
from func.interpreters import drivers
from func.interpreters.calls.call_primitives import (
    CallPrimitive,
    CallPullback,
    avals_of,
    linear_call,
    without_integer_tangents,
)
from func.interpreters.calls.compiled_call import snapshots
from func.interpreters.calls.partition import active_arguments, expand, select
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, Tracer, dtype_of, is_inexact, shape_of, zeros_like
from func.interpreters.core.parameters import FUNCTION, Kind
from func.interpreters.drivers import Flat
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import not_equal
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.interpreters.primitives.structural.shapes import full_like, move_axis
from func.interpreters.structural_zeros import UNTRACED, StructuralZeros, has_mask

Joined = bool | tuple[bool, ...]
"""The outputs that are joined; a bool means all or none."""


def is_joined(joined: Joined, place: int) -> bool:
    """Whether an output is joined."""
    return joined if isinstance(joined, bool) else joined[place]


def bind_data(fun: Any, data: Sequence[Any]) -> Flat:
    """A chunk function with its part of the runner's data; the innermost function takes it by `with_data`."""
    if isinstance(fun, ChunkFunction):
        return fun.with_fields(fun=bind_data(fun.fun, data))  # type: ignore[return-value]
    return fun.with_data(data)  # type: ignore[no-any-return]


def innermost_function(fun: Any) -> Any:
    """The function from which the others derive."""
    while isinstance(fun, ChunkFunction):
        fun = fun.fun
    return fun


class ChunkFunction(ValueRecord):
    """A function that derives from another one, `fun`, and runs where that runs."""

    fun: Any


class PushedChunk(ChunkFunction):
    """(*primals, *tangents of the active ones): the outputs, unless `tangents_alone`, and the tangents of all."""

    fun: Any
    active: tuple[bool, ...]
    tangents_alone: bool

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.active)
        outs, douts = drivers.jvp_flat(self.fun, args[:count], expand(args[count:], self.active))
        dense = [
            zeros_like(out) if dout is ZERO or not is_inexact(dtype_of(out)) else dout
            for out, dout in zip(outs, douts, strict=True)
        ]
        return dense if self.tangents_alone else [*outs, *dense]


class PulledChunk(ChunkFunction):
    """(*primals, *cotangents of the outputs at `positions`): the cotangents of the active primals."""

    fun: Any
    active: tuple[bool, ...]
    positions: tuple[int, ...]

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.active)
        places = [i for i, is_active in enumerate(self.active) if is_active]
        cts = drivers.pull_flat(self.fun, args[:count], places, dict(zip(self.positions, args[count:], strict=True)))
        return [zeros_like(args[i]) if ct is ZERO else ct for i, ct in zip(places, cts, strict=True)]


class ObjectiveChunk(ChunkFunction):
    """(*primals): the one output, a real number, and its gradients by the active primals."""

    fun: Any
    active: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        places = [i for i, is_active in enumerate(self.active) if is_active]
        (value,), cts = drivers.value_and_pull_flat(self.fun, args, places)
        return [value, *[zeros_like(args[i]) if ct is ZERO else ct for i, ct in zip(places, cts, strict=True)]]


class BatchedChunk(ChunkFunction):
    """fun for a batch of operands: the batch axis leads, or comes second where the first one is cut into chunks."""

    fun: Any
    size: int
    which: tuple[bool, ...]
    split: tuple[bool, ...]
    joined: Joined

    def __call__(self, *args: Array) -> list[Array]:
        elements = [
            move_axis(x, 1, 0) if is_batched and is_split else x
            for x, is_batched, is_split in zip(args, self.which, self.split, strict=True)
        ]
        outs, are_mapped = drivers.map_flat(self.fun, self.size, self.which, elements)
        full = drivers.all_mapped(outs, are_mapped, self.size)
        return [move_axis(out, 0, 1) if is_joined(self.joined, i) else out for i, out in enumerate(full)]


class MaskedChunk(ChunkFunction):
    """(*operands, *masks of the (co)tangents in `which`): the outputs, and their masks as numbers."""

    fun: Any
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        count = len(self.which)
        structural = StructuralZeros()
        masks = iter(args[count:])
        lifted = [
            structural.lift(x, next(masks)) if is_masked else x for x, is_masked in zip(args, self.which, strict=False)
        ]
        outs = self.fun(*lifted)
        values, flags = structural.unpacked(outs)
        numbers = [
            full_like(x, 1, None, float) if flag is None or flag is UNTRACED else full_like(x, 0, None, float) + flag
            for x, flag in zip(values, flags, strict=True)
        ]
        return [*values, *numbers]


class TransposedChunk(ChunkFunction):
    """(*known operands, *cotangents of the outputs at `positions`): those of the others, in which fun is linear."""

    fun: Any
    unknown: tuple[Aval | None, ...]
    """The avals of the unknown operands; None for the others."""
    split: tuple[bool, ...]
    positions: tuple[int, ...]
    joined: Joined

    def __call__(self, *args: Array) -> list[Array]:
        count = sum([aval is None for aval in self.unknown])
        known, cts = iter(args[:count]), dict(zip(self.positions, args[count:], strict=True))
        rows = self._rows(args[:count], cts)
        operands = [
            next(known)
            if aval is None
            else Aval((rows, *aval.shape[1:]), aval.dtype)
            if is_split and rows is not None
            else aval
            for aval, is_split in zip(self.unknown, self.split, strict=True)
        ]
        found = drivers.transpose_flat(self.fun, operands, cts)
        like = next(iter(cts.values()))
        return [
            full_like(like, 0, operand.shape, operand.dtype) if ct is ZERO else ct
            for operand, aval, ct in zip(operands, self.unknown, found, strict=True)
            if aval is not None
        ]

    def _rows(self, known: Sequence[Array], cts: dict[int, Array]) -> int | None:
        """The number of rows of the chunk."""
        for place, ct in cts.items():
            if is_joined(self.joined, place):
                return shape_of(ct)[0]
        flags = [is_split for aval, is_split in zip(self.unknown, self.split, strict=True) if aval is None]
        return next((shape_of(x)[0] for x, is_split in zip(known, flags, strict=True) if is_split), None)


class RemoteMapForward(ValueRecord):
    """The linear map from tangents of the active operands to those of the outputs."""

    fun: Any
    split: tuple[bool, ...]
    joined: Joined
    runner: Any
    active: tuple[bool, ...]

    def __call__(self, *args: Array) -> tuple[Array, ...]:
        return remote_map(  # type: ignore[no-any-return]
            *args,
            fun=PushedChunk(self.fun, self.active, True),
            split=(*self.split, *select(self.split, self.active)),
            joined=self.joined,
            runner=self.runner,
        )


class RemoteMapBackward(ValueRecord):
    """Its transpose: from cotangents of outputs to those of the active operands."""

    fun: Any
    split: tuple[bool, ...]
    joined: Joined
    runner: Any
    active: tuple[bool, ...]

    def __call__(self, operands: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        positions = tuple(sorted(ct))
        return list(
            remote_map(
                *operands,
                *[ct[i] for i in positions],
                fun=PulledChunk(self.fun, self.active, positions),
                split=(*self.split, *[is_joined(self.joined, i) for i in positions]),
                joined=tuple(select(self.split, self.active)),
                runner=self.runner,
            )
        )


class RemoteMap(CallPrimitive):
    """A call whose chunks a runner computes."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        active = active_arguments(primals, tangents)
        if not any(active):
            return self(*primals, **params), ZERO
        moving = select(tangents, active)
        fun, split, joined, runner = (params[name] for name in ("fun", "split", "joined", "runner"))
        if any([is_abstract_value(dx) or has_mask(dx) for dx in moving]):
            outs = self(*primals, **params)
            douts = linear_call(
                *primals,
                *moving,
                forward=RemoteMapForward(fun, split, joined, runner, active),
                backward=RemoteMapBackward(fun, split, joined, runner, active),
                residuals=len(primals),
                outs=avals_of(outs),
            )
        else:
            both = self(
                *primals,
                *moving,
                fun=PushedChunk(fun, active, False),
                split=(*split, *select(split, active)),
                joined=joined if isinstance(joined, bool) else (*joined, *joined),
                runner=runner,
            )
            outs, douts = both[: len(both) // 2], both[len(both) // 2 :]
        return outs, without_integer_tangents(outs, douts)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        active = active_arguments(values, parents)
        values = snapshots(values, active)
        if not any(active):
            return self(*values, **params), None, None
        fun, split, runner = params["fun"], params["split"], params["runner"]
        if getattr(fun, "is_objective", False):
            joined = (False, *select(split, active))
            value, *gradients = self(
                *values, fun=ObjectiveChunk(fun, active), split=split, joined=joined, runner=runner
            )
            return (value,), REMOTE_MAP_PULLBACK, (params, active, values, gradients, None)
        if runner.keeps_results and not any([type(x) is Tracer for x in values]):
            outs, kept = runner.forward_and_keep(fun, active, split, params["joined"], values)
            return tuple(outs), REMOTE_MAP_PULLBACK, (params, active, values, None, kept)
        return self(*values, **params), REMOTE_MAP_PULLBACK, (params, active, values, None, None)

    def apply_masked(self, structural: StructuralZeros, args: tuple[Array, ...], params: Params) -> Any:
        """The outputs with the masks that the function computes, chunk by chunk."""
        values, masks = structural.unpacked(args)
        which = tuple([mask is not UNTRACED for mask in masks])
        dense = [
            full_like(x, True, None, bool) if mask is None else mask
            for x, mask in zip(values, masks, strict=True)
            if mask is not UNTRACED
        ]
        split, joined = params["split"], params["joined"]
        both = self(
            *values,
            *dense,
            fun=MaskedChunk(params["fun"], which),
            split=(*split, *select(split, which)),
            joined=joined if isinstance(joined, bool) else (*joined, *joined),
            runner=params["runner"],
        )
        count = len(both) // 2
        return tuple(
            [
                structural.lift(x, not_equal(number, 0)) if is_inexact(dtype_of(x)) else x
                for x, number in zip(both[:count], both[count:], strict=True)
            ]
        )


def _remote_map_pull(saved: Any, ct: dict[int, Any]) -> list[Any]:
    params, active, values, gradients, kept = saved
    cts: Sequence[Any]
    is_plain = not any([type(x) is Tracer for x in ct.values()])
    if gradients is not None and not has_mask(ct[0]):
        cts = [multiply(gradient, ct[0]) for gradient in gradients]
    elif kept is not None and is_plain:
        cts = params["runner"].resident_cotangents(kept, ct)
    else:
        rest = (params["split"], params["joined"], params["runner"])
        cts = RemoteMapBackward(params["fun"], *rest, active)(values, ct)
    return expand(cts, active)


REMOTE_MAP_PULLBACK = CallPullback("remote_map", _remote_map_pull)


def _remote_map_impl(
    xp: Any, *args: Array, fun: Flat, split: tuple[bool, ...], joined: Joined, runner: Callable[..., Any]
) -> tuple[Array, ...]:
    return tuple(runner(fun, split, joined, args))


def _remote_map_aval(*avals: Aval, fun: Flat, split: tuple[bool, ...], joined: Joined, runner: Any) -> tuple[Aval, ...]:
    return drivers.output_avals(runner.example(fun), avals)


def _remote_map_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    split, joined, which = params["split"], params["joined"], tuple(batched)
    operands = [
        move_axis(x, 0, 1) if is_batched and is_split else x
        for x, is_batched, is_split in zip(args, which, split, strict=True)
    ]
    outs = remote_map(*operands, **{**params, "fun": BatchedChunk(params["fun"], size, which, split, joined)})
    return tuple([move_axis(out, 1, 0) if is_joined(joined, i) else out for i, out in enumerate(outs)])


def _remote_map_transpose(
    ct: dict[int, Any], *operands: Any, fun: Flat, split: tuple[bool, ...], joined: Joined, runner: Any
) -> tuple[Any, ...]:
    unknown = tuple([Aval(x.shape, x.dtype) if isinstance(x, Shaped) else None for x in operands])
    is_known = [aval is None for aval in unknown]
    positions = tuple(sorted(ct))
    cts = remote_map(
        *select(operands, is_known),
        *[ct[i] for i in positions],
        fun=TransposedChunk(fun, unknown, split, positions, joined),
        split=(*select(split, is_known), *[is_joined(joined, i) for i in positions]),
        joined=tuple(select(split, [not flag for flag in is_known])),
        runner=runner,
    )
    return tuple(expand(cts, [not flag for flag in is_known]))


SPLIT = Kind(
    "a bool for each operand",
    lambda value, avals, params: type(value) is tuple and all([type(flag) is bool for flag in value]),
)
JOINED = Kind(
    "a bool, or one for each output",
    lambda value, avals, params: type(value) is bool or SPLIT.test(value, avals, params),
)

remote_map = RemoteMap(
    "remote_map",
    _remote_map_impl,
    aval=_remote_map_aval,
    parameters={"fun": FUNCTION, "split": SPLIT, "joined": JOINED, "runner": FUNCTION},
    batch=_remote_map_batch,
    transpose=_remote_map_transpose,
    multiple=True,
    cost=0,
    calls_python=True,
)
"""fun(*operands), chunk by chunk."""
