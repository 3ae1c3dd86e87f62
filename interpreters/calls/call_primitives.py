"""Call primitives: primitives whose parameters are functions, and the linear call, of which their derivatives consist.

A function here takes and returns flat lists of arrays. Interpreters bind a call again with transformed functions, which
are small classes with fields: func compares, prints and pickles them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.records import ValueRecord
from func.interpreters import drivers
from func.interpreters.calls.partition import expand, select
from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    Shaped,
    bind,
    dtype_of,
    is_inexact,
    shape_of,
    unboxed,
    zeros_like,
)
from func.interpreters.core.parameters import FUNCTION, NO_PARAMETERS, Kind, Kinds, integer
from func.interpreters.core.primitive import Transpose
from func.interpreters.drivers import Flat
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.structural.shapes import reduce_sum
from func.interpreters.structural_zeros import absent_like
from func.interpreters.vmap import MappedCall, Vmap


class CallPrimitive(Primitive):
    """A primitive that calls its `fun`, directly if all arguments are concrete: `fun` may close over tracers."""

    __slots__ = ()

    def apply_series(
        self, order: int, values: tuple[Array, ...], coefficients: Sequence[Any], params: Params
    ) -> Sequence[tuple[Array, Any]]:
        """The outputs with their coefficients.

        k yₖ is coefficient k-1 of the tangent, which the rule computes at series that are one coefficient shorter.
        """
        outs = bind(self, values, params)
        active = [own is not None and is_inexact(dtype_of(x)) for x, own in zip(values, coefficients, strict=True)]
        if order == 0 or not any(active):
            return [(out, None) for out in outs]
        dots = [
            derivative_of(x, own) for x, own in zip(select(values, active), select(coefficients, active), strict=True)
        ]
        has_tangent: list[bool] = []

        def tangents(*args: Array) -> Sequence[Array]:
            primals, moving = args[: len(values)], args[len(values) :]
            douts = self.forward(primals, tuple(expand(moving, active)), params)[1]
            has_tangent[:] = [False] * len(outs) if douts is ZERO else [dout is not ZERO for dout in douts]
            return select(douts, has_tangent) if any(has_tangent) else []

        shorter = [own if own is None else own[: order - 1] for own in coefficients]
        series = drivers.taylor_flat(
            tangents, order - 1, [*values, *[dot[0] for dot in dots]], [*shorter, *[dot[1:] for dot in dots]]
        )
        by_output = expand([[divided(x, k) for k, x in enumerate(own, 1)] for own in series], has_tangent)
        return [(out, None if own is ZERO else own) for out, own in zip(outs, by_output, strict=True)]


def derivative_of(value: Array, coefficients: Sequence[Any]) -> list[Any]:
    """The coefficients of x′, the first of them an array."""
    like = next((x for x in coefficients if x is not ZERO), value)
    first = absent_like(like, shape_of(value), dtype_of(value)) if coefficients[0] is ZERO else coefficients[0]
    return [first, *[x if x is ZERO else multiply(x, k) for k, x in enumerate(coefficients[1:], 2)]]


def divided(x: Any, k: int) -> Any:
    """x / k."""
    return x if x is ZERO or k == 1 else multiply(x, 1 / k)


class LinearCallPrimitive(CallPrimitive):
    """A call of a function that is linear in its last arguments, with its transpose."""

    __slots__ = ()

    def series_body(self, params: Params) -> Flat:
        """The replacement in Taylor mode."""
        return params["forward"]  # type: ignore[no-any-return]


class CallPullback(ValueRecord):
    """The pullback of a call primitive: `pull_saved(saved, ct)` returns the cotangents of the arguments."""

    name: str
    pull_saved: Callable[[Any, dict[int, Any]], Sequence[Any]]
    covers = False

    def pull(self, ct: dict[int, Any], parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        return self.pull_saved(saved, ct)


def _function_call_impl(xp: Any, *args: Array, fun: Flat, **params: Any) -> tuple[Array, ...]:
    return tuple([unboxed(out) for out in fun(*args)])


def _function_call_aval(*avals: Aval, fun: Flat, **params: Any) -> tuple[Aval, ...]:
    known: tuple[Aval, ...] | None = getattr(fun, "out_avals", None)  # spares users' functions a run
    return drivers.output_avals(fun, avals) if known is None else known


def function_call(
    name: str,
    *rules: str,
    batch: Callable[..., Any],
    jvp: Callable[..., Any],
    transpose: Transpose | None = None,
    parameters: Kinds = NO_PARAMETERS,
    mask: str | None = None,
    kind: type[CallPrimitive] = CallPrimitive,
) -> CallPrimitive:
    """A primitive that calls its parameter `fun`, a Python function; the parameters named in `rules` are functions
    too."""
    return kind(
        name,
        _function_call_impl,
        aval=_function_call_aval,
        parameters={"fun": FUNCTION, **dict.fromkeys(rules, FUNCTION), **parameters},
        batch=batch,
        jvp=jvp,
        transpose=transpose,
        multiple=True,
        cost=0,
        calls_python=True,
        body=lambda params: params["fun"],
        layout=lambda *operands, fun, **params: drivers.output_strides(fun, operands),
        mask=mask,
    )


class BatchedFunction(ValueRecord):
    """fun on a leading batch axis of the arguments in `which`; all outputs have it."""

    fun: Flat
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Array) -> list[Array]:
        level = Vmap("vmap", np.arange(self.size), MappedCall(self.size), is_stand_in=True)
        outs, are_mapped = drivers.map_flat(self.fun, self.size, self.which, args, level)
        return drivers.all_mapped(outs, are_mapped, self.size)


def sum_over_batch(cts: Sequence[Any], which: Sequence[bool]) -> list[Any]:
    """Batched cotangents of arguments, summed over the batch for the arguments without a batch axis."""
    return [
        ct if ct is None or is_batched else reduce_sum(ct, axes=(0,)) for ct, is_batched in zip(cts, which, strict=True)
    ]


def inexact_tangents(primals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of all inexact primals, zeros for ZERO; ZERO for the other primals."""
    like = next((tangent for tangent in tangents if tangent is not ZERO), None)
    return [
        ZERO
        if not is_inexact(dtype_of(primal))
        else tangent
        if tangent is not ZERO
        else zeros_like(primal)
        if like is None
        else absent_like(like, shape_of(primal), dtype_of(primal))
        for primal, tangent in zip(primals, tangents, strict=True)
    ]


def without_integer_tangents(outs: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """The tangents of outputs, ZERO for those without derivatives."""
    return tuple([tangent if is_inexact(dtype_of(out)) else ZERO for out, tangent in zip(outs, tangents, strict=True)])


def jvp_with_zeros(fun: Flat, primals: Sequence[Array], tangents: Sequence[Any], active: Sequence[bool]) -> list[Array]:
    """The tangents of all outputs of fun, for tangents of the active arguments."""
    outs, douts = drivers.jvp_flat(fun, primals, expand(tangents, active))
    return [
        absent_like(tangents[0], shape_of(out), dtype_of(out)) if dout is ZERO else dout
        for out, dout in zip(outs, douts, strict=True)
    ]


def avals_of(values: Sequence[Array]) -> tuple[Aval, ...]:
    """The abstract values of arrays."""
    return tuple([Aval(shape_of(value), dtype_of(value)) for value in values])


class BatchedLinearBackward(ValueRecord):
    """The backward of a linear call on a leading batch axis; cotangents of unbatched arguments are summed over it."""

    backward: Any
    size: int
    which: tuple[bool, ...]
    residuals: int

    def __call__(self, residuals: Sequence[Array], ct: dict[int, Any]) -> list[Any]:
        positions = list(ct)
        count = len(residuals)

        def flat(*args: Array) -> list[Array]:
            return self.backward(args[:count], dict(zip(positions, args[count:], strict=True)))  # type: ignore[no-any-return]

        which = (*self.which[: self.residuals], *[True] * len(positions))
        cts = BatchedFunction(flat, self.size, which)(*residuals, *ct.values())
        return sum_over_batch(cts, self.which[self.residuals :])


def _linear_call_impl(
    xp: Any, *args: Array, forward: Flat, backward: Any, residuals: int, outs: Any
) -> tuple[Array, ...]:
    return tuple(forward(*args))


def _linear_call_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, forward: Flat, backward: Any, residuals: int, outs: Any
) -> Any:
    return drivers.jvp_flat(forward, primals, tangents)


def _linear_call_transpose(
    ct: dict[int, Any], *operands: Any, forward: Flat, backward: Any, residuals: int, outs: Any
) -> tuple[Any, ...]:
    known, linear = operands[:residuals], operands[residuals:]
    if any([isinstance(x, Shaped) for x in known]):
        raise AssertionError("a linear call was transposed with respect to its residuals")
    cts = backward(known, ct)
    linear_cts = [x_ct if isinstance(x, Shaped) else ZERO for x, x_ct in zip(linear, cts, strict=True)]
    return (*[ZERO] * residuals, *linear_cts)


AVALS = Kind(
    "abstract values",
    lambda value, avals, params: type(value) is tuple and all([type(aval) is Aval for aval in value]),
)


def _linear_call_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    which = tuple(batched)
    residuals = params["residuals"]
    return linear_call(
        *args,
        forward=BatchedFunction(params["forward"], size, which),
        backward=BatchedLinearBackward(params["backward"], size, which, residuals),
        residuals=residuals,
        outs=tuple([Aval((size, *out.shape), out.dtype) for out in params["outs"]]),
    )


linear_call = LinearCallPrimitive(
    "linear_call",
    _linear_call_impl,
    aval=lambda *avals, outs, **params: outs,
    parameters={"forward": FUNCTION, "backward": FUNCTION, "residuals": integer(0), "outs": AVALS},
    batch=_linear_call_batch,
    jvp=_linear_call_jvp,
    transpose=_linear_call_transpose,
    multiple=True,
    cost=0,
    calls_python=True,
    body=lambda params: params["forward"],
    mask="body",
)
"""forward(*residuals, *tangents), linear in the tangents; backward(residuals, cts) is its transpose."""
