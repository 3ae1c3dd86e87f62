"""Functions over lanes: what batching a call row re-binds it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from func.interpreters.core import ZERO, Array, dtype_of, is_inexact, zeros_like
from func.interpreters.drivers import Flat, all_mapped, map_flat
from func.interpreters.primitives.structural.shapes import reduce_sum


@dataclass(frozen=True)
class Mapped:
    """fun over lanes, every output mapped."""

    fun: Flat
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        outs, mapped = map_flat(self.fun, self.size, self.which, args)
        return all_mapped(outs, mapped, self.size)


@dataclass(frozen=True)
class MappedRule:
    """A custom_jvp rule over lanes; a tangent is mapped where its primal is."""

    rule: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
        given = [i for i, t in enumerate(tangents) if t is not ZERO]

        def flat(*args: Array) -> list[Array]:
            ts: list[Any] = [ZERO] * len(primals)
            for i, t in zip(given, args[len(primals) :], strict=True):
                ts[i] = t
            outs, douts = self.rule(list(args[: len(primals)]), ts)
            return [*outs, *[zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]]

        which = (*self.which, *[self.which[i] for i in given])
        both = Mapped(flat, self.size, which)(*primals, *[tangents[i] for i in given])
        half = len(both) // 2
        return both[:half], [
            d if is_inexact(dtype_of(o)) else ZERO for o, d in zip(both[:half], both[half:], strict=True)
        ]


@dataclass(frozen=True)
class MappedForward:
    """A custom_vjp fwd over lanes: outputs and residuals are all mapped."""

    fwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> tuple[list[Array], list[Array]]:
        counts: list[int] = []

        def flat(*inner: Array) -> list[Array]:
            outs, residuals = self.fwd(*inner)
            counts[:] = [len(outs)]
            return [*outs, *residuals]

        both = Mapped(flat, self.size, self.which)(*args)
        return both[: counts[0]], both[counts[0] :]


@dataclass(frozen=True)
class MappedCustomBackward:
    """A custom_vjp bwd over lanes; cotangents of unmapped arguments are summed over the lanes."""

    bwd: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Array]) -> list[Any]:
        count = len(residuals)

        def flat(*inner: Array) -> list[Array]:
            contribution = self.bwd(inner[:count], inner[count:])
            missing[:] = [ct is None or ct is ZERO for ct in contribution]
            return [ct for ct in contribution if not (ct is None or ct is ZERO)]

        missing: list[bool] = []
        outs = iter(Mapped(flat, self.size, (True,) * (count + len(cts)))(*residuals, *cts))
        full = [None if absent else next(outs) for absent in missing]
        return [
            ct if ct is None or mapped else reduce_sum(ct, axes=(0,))
            for ct, mapped in zip(full, self.which, strict=True)
        ]


@dataclass(frozen=True)
class MappedBackward:
    """The backward of a linear call over lanes; cotangents of unmapped arguments are summed over the lanes."""

    backward: Any
    size: int
    which: tuple[bool, ...]
    residuals: int

    def __call__(self, known: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        positions = list(ct)
        count = len(known)

        def flat(*inner: Array) -> list[Array]:
            return self.backward(inner[:count], dict(zip(positions, inner[count:], strict=True)))  # type: ignore[no-any-return]

        which = (*self.which[: self.residuals], *[True] * len(positions))
        outs = Mapped(flat, self.size, which)(*known, *ct.values())
        return [
            out if mapped else reduce_sum(out, axes=(0,))
            for out, mapped in zip(outs, self.which[self.residuals :], strict=True)
        ]


@dataclass(frozen=True)
class MappedPush:
    """A tangent rule over lanes."""

    push: Any
    size: int
    which: tuple[bool, ...]

    def __call__(self, known: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        places = [i for i, tangent in enumerate(tangents) if tangent is not None]
        missing: list[bool] = []

        def flat(*inner: Array) -> list[Array]:
            full: list[Any] = [None] * len(tangents)
            for i, tangent in zip(places, inner[len(known) :], strict=True):
                full[i] = tangent
            douts = self.push(inner[: len(known)], full)
            missing[:] = [dout is None for dout in douts]
            return [dout for dout in douts if dout is not None]

        mapped = (True,) * len(known) + tuple([self.which[i] for i in places])
        outs = iter(Mapped(flat, self.size, mapped)(*known, *[tangents[i] for i in places]))
        return [None if absent else next(outs) for absent in missing]
