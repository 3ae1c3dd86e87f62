"""Rules given by hand as parameters of rows: custom_vjp as a linear call, custom_vmap under forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from func.interpreters.core import ZERO, Array, Aval, dtype_of, is_inexact, materialize, shape_of, zeros_like
from func.interpreters.core.errors import CustomRuleError
from func.interpreters.core.source import at_line
from func.interpreters.drivers import Flat, jvp_flat, stage_flat
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.interpreters.stage import DerivedStage
from func.interpreters.transpose import transpose_program

Info: TypeAlias = tuple[tuple[int, ...], Any]
"""The shape and dtype of an argument or output."""


@dataclass(frozen=True)
class CustomBackward:
    """The user's bwd as the transpose of a linear call: cotangents of the active arguments."""

    bwd: Any
    active: tuple[int, ...]
    args: tuple[Info, ...]
    outs: tuple[Info, ...]

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Array]:
        like = next(iter(ct.values()))
        if getattr(self.bwd, "takes_missing", False):
            cts = [ct.get(i) for i in range(len(self.outs))]
        else:
            cts = [ct[i] if i in ct else full_like(like, 0, *info) for i, info in enumerate(self.outs)]
        contribution = self.bwd(residuals, cts)
        if len(contribution) != len(self.args):
            raise CustomRuleError(
                f"the backward rule returned {len(contribution)} cotangents for {len(self.args)} arguments{at_line()}"
            )
        return [self._checked(contribution[i], i, like) for i in self.active]

    def _checked(self, ct: Any, i: int, like: Array) -> Array:
        shape, dtype = self.args[i]
        if ct is None or ct is ZERO:
            return full_like(like, 0, shape, dtype)
        if shape_of(ct) != shape:
            raise CustomRuleError(
                f"the backward rule returned a cotangent of shape {shape_of(ct)} for argument {i} of shape {shape}"
            )
        return ct if dtype_of(ct) == dtype else convert(ct, dtype=dtype)


@dataclass(frozen=True)
class CustomForward:
    """The user's tangent rule as the forward direction of a linear call: push(residuals, tangents), None for zero."""

    push: Any
    residuals: int
    active: tuple[int, ...]
    args: int
    outs: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        known, given = operands[: self.residuals], operands[self.residuals :]
        tangents: list[Any] = [None] * self.args
        for i, tangent in zip(self.active, given, strict=True):
            tangents[i] = tangent
        douts = self.push(known, tangents)
        return [
            full_like(given[0], 0, *info) if dout is None else dout for dout, info in zip(douts, self.outs, strict=True)
        ]


@dataclass(frozen=True)
class TransposedBackward:
    """The forward direction of a linear call that is only known backwards."""

    backward: CustomBackward
    residuals: int
    args: tuple[Info, ...]

    def __call__(self, *operands: Array) -> list[Any]:
        known, tangents = operands[: self.residuals], operands[self.residuals :]
        inexact = [i for i, (_, dtype) in enumerate(self.backward.outs) if is_inexact(dtype)]
        avals = [Aval(*self.backward.outs[i]) for i in inexact]

        def of_cotangents(*cts: Array) -> Sequence[Array]:
            return self.backward(known, dict(zip(inexact, cts, strict=True)))

        program = stage_flat(of_cotangents, avals, DerivedStage("custom_vjp"), tangents[0])
        contribution = transpose_program(program, tangents)
        full = [full_like(tangents[0], 0, *info) for info in self.backward.outs]
        for i, dout in zip(inexact, contribution, strict=True):
            if dout is not ZERO:
                full[i] = dout
        return full


@dataclass(frozen=True)
class TangentOf:
    """(*primals, *tangents of the active ones) -> tangents of the outputs."""

    fun: Flat
    active: tuple[int, ...]
    primals: int

    def __call__(self, *args: Array) -> list[Array]:
        primals = args[: self.primals]
        tangents: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, args[self.primals :], strict=True):
            tangents[i] = t
        outs, douts = jvp_flat(self.fun, primals, tangents)
        return [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]


@dataclass(frozen=True)
class TangentOfRule:
    """A custom_vmap rule carried along with TangentOf: the rule itself is differentiated forwards."""

    rule: Any
    active: tuple[int, ...]
    primals: int

    def __call__(self, size: int, which: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        primals, tangents = list(args[: self.primals]), list(args[self.primals :])
        flags = list(which[: self.primals])
        for k, i in enumerate(self.active):
            both = which[i] or which[self.primals + k]
            (primals[i],) = materialize(size, [flags[i]], [primals[i]]) if both else (primals[i],)
            (tangents[k],) = materialize(size, [which[self.primals + k]], [tangents[k]]) if both else (tangents[k],)
            flags[i] = both
        out_flags: list[bool] = []

        def flat(*inner: Array) -> Sequence[Array]:
            outs: Sequence[Array]
            outs, batched = self.rule(size, tuple(flags), inner)
            out_flags[:] = batched
            return outs

        full: list[Any] = [ZERO] * self.primals
        for i, t in zip(self.active, tangents, strict=True):
            full[i] = t
        outs, douts = jvp_flat(flat, primals, full)
        douts = [zeros_like(o) if d is ZERO else d for o, d in zip(outs, douts, strict=True)]
        return douts, out_flags
