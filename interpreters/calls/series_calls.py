"""Series through the calls of programs: the program of a body on the coefficients of its inputs.

A series program takes and returns groups of values: each value is followed by its coefficients, in order. An input has
the coefficients that are not ZERO, an output has all or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from func.interpreters import drivers
from func.interpreters.core import ZERO, Array, Aval, dtype_of, is_inexact, shape_of
from func.interpreters.nan_safe import with_fallback
from func.interpreters.program.program import Program
from func.interpreters.stage import DerivedStage
from func.interpreters.structural_zeros import absent_like

Coefficients: TypeAlias = Sequence[Any] | None
"""The coefficients of a value beyond its first, ZERO or an array each; None of a constant."""


class Body(Protocol):
    """The calls that make series programs: a compiled call."""

    @property
    def in_avals(self) -> list[Aval]: ...

    @property
    def has_pullbacks(self) -> bool: ...

    def run_on(self, *args: Array) -> tuple[Any, ...]: ...

    def memoized(self, key: Any, derive: Callable[[], Any]) -> Any: ...

    def transformed(self, transform: Callable[[Any], Program]) -> Any: ...

    def nan_safe_variant(self) -> Any: ...


class SeriesForm(NamedTuple):
    """The coefficients of a body's inputs and outputs, and their groups."""

    order: int
    present: tuple[tuple[int, ...], ...]
    """For each input the numbers of the coefficients that are passed."""
    has_series: tuple[bool, ...]
    """The outputs that have coefficients."""
    inputs: tuple[int, ...]
    """The lengths of the groups of inputs."""
    outputs: tuple[int, ...]

    def counts(self) -> list[int]:
        """The number of operands of each group of inputs."""
        return [len(group) + sum([len(self.present[i]) for i in group]) for group in _groups(self.inputs)]

    def results(self) -> list[int]:
        """The number of values of each group of outputs."""
        return [len(group) + self.order * sum([self.has_series[i] for i in group]) for group in _groups(self.outputs)]

    def operands(self, values: Sequence[Array], coefficients: Sequence[Coefficients]) -> list[Array]:
        """The operands of a series program; zeros in the place of a ZERO that must be passed."""
        like = next((x for own in coefficients for x in own or () if x is not ZERO), None)
        operands: list[Array] = []
        for group in _groups(self.inputs):
            operands.extend([values[i] for i in group])
            for i in group:
                for k in self.present[i]:
                    own = coefficients[i]
                    x = ZERO if own is None else own[k - 1]
                    operands.append(absent_like(like, shape_of(values[i]), dtype_of(values[i])) if x is ZERO else x)
        return operands

    def avals(self, avals: Sequence[Aval]) -> list[Aval]:
        """The abstract values of the operands, given those of a body's inputs."""
        result: list[Aval] = []
        for group in _groups(self.inputs):
            result.extend([avals[i] for i in group])
            result.extend([Aval(avals[i].shape, avals[i].dtype) for i in group for _ in self.present[i]])
        return result

    def run(self, fun: Callable[..., Sequence[Array]], operands: Sequence[Array]) -> list[Array]:
        """The outputs of a series program: a function at series."""
        rest = iter(operands)
        values: list[Array] = [None] * len(self.present)
        coefficients: list[Coefficients] = [None] * len(self.present)
        for group in _groups(self.inputs):
            for i in group:
                values[i] = next(rest)
            for i in group:
                if self.present[i]:
                    passed = {k: next(rest) for k in self.present[i]}
                    coefficients[i] = [passed.get(k, ZERO) for k in range(1, self.order + 1)]
        outs = drivers.taylor_flat(fun, self.order, values, coefficients)
        results: list[Array] = []
        for group in _groups(self.outputs):
            results.extend([outs[i][0] for i in group])
            for i in group:
                if self.has_series[i]:
                    first = outs[i][0]
                    zero = np.zeros(shape_of(first), dtype_of(first))
                    results.extend([zero if x is ZERO else x for x in outs[i][1:]])
        return results

    def pairs(self, results: Sequence[Array]) -> list[tuple[Array, Coefficients]]:
        """The outputs of a series program, each with its coefficients."""
        rest = iter(results)
        values: dict[int, Array] = {}
        coefficients: dict[int, Coefficients] = {}
        for group in _groups(self.outputs):
            for i in group:
                values[i] = next(rest)
            for i in group:
                coefficients[i] = [next(rest) for _ in range(self.order)] if self.has_series[i] else None
        return [(values[i], coefficients[i]) for i in values]


def _groups(lengths: Sequence[int]) -> Iterator[range]:
    """The places in each group."""
    start = 0
    for length in lengths:
        yield range(start, start + length)
        start += length


def active_series(values: Sequence[Array], coefficients: Sequence[Coefficients]) -> tuple[bool, ...]:
    """The values with a coefficient that is not ZERO."""
    return tuple(
        [
            own is not None and is_inexact(dtype_of(value)) and any([x is not ZERO for x in own])
            for value, own in zip(values, coefficients, strict=True)
        ]
    )


def present(coefficients: Sequence[Coefficients]) -> list[tuple[int, ...]]:
    """The numbers of the coefficients that are not ZERO."""
    return [() if own is None else tuple([k for k, x in enumerate(own, 1) if x is not ZERO]) for own in coefficients]


def carried_series(
    order: int, coefficients: Sequence[Coefficients], active: Sequence[bool], consts: int, carries: int
) -> tuple[tuple[int, ...], ...]:
    """The operands for the body of a loop: every coefficient of an active carry, as a step may make all of them."""
    passed = present(coefficients)
    for i in range(consts, consts + carries):
        passed[i] = tuple(range(1, order + 1)) if active[i] else ()
    return tuple(passed)


def series_body(body: Body, form: SeriesForm) -> Any:
    """The series program of a body, made once."""

    def series_program(compiled: Body) -> Program:
        avals = form.avals(compiled.in_avals)
        return drivers.stage_flat(lambda *xs: form.run(compiled.run_on, xs), avals, DerivedStage("jet"))

    return body.memoized(("series", form), lambda: body.transformed(series_program))


def call_with_series(
    form: SeriesForm,
    bodies: Sequence[Body],
    values: Sequence[Array],
    coefficients: Sequence[Coefficients],
    call: Callable[[tuple[Any, ...], list[Array]], Sequence[Array]],
) -> list[tuple[Array, Coefficients]]:
    """The outputs, with their coefficients, of `call` with the series programs of some bodies."""
    operands = form.operands(values, coefficients)

    def push(*chosen: Body) -> list[Array]:
        return list(call(tuple([series_body(body, form) for body in chosen]), operands))

    return form.pairs(with_fallback(push, tuple(bodies), lambda outs: outs))
