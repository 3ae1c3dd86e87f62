"""Sums of exponentials: softmax, its logarithm, and logarithms of weighted sums with their sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import (
    ZERO,
    Array,
    Aval,
    Params,
    Primitive,
    add_tangents,
    dtype_of,
    general,
    shape_of,
    zeros_like,
)
from func.interpreters.core.parameters import AXES, FLAG
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import conjugate, multiply, nan_safe_multiply
from func.interpreters.primitives.elementwise.table import (
    equal,
    exp,
    imag,
    isfinite,
    logical_and,
    logical_not,
    real,
    subtract,
)
from func.interpreters.primitives.scipy_functions import special
from func.interpreters.primitives.special.builders import times
from func.interpreters.primitives.structural.reductions import (
    Axes,
    Reduction,
    centered,
    exponential_share,
    keep_axes,
    reduction,
)
from func.interpreters.primitives.structural.shapes import align_ranks, convert, drop_axes, full_like, reduce_sum, where
from func.interpreters.primitives.written_pullbacks import direct


def _shifted(params: Params) -> dict[str, Any]:
    """The parameters for arrays with a leading batch axis."""
    return {**params, "axes": tuple([axis + 1 for axis in params["axes"]])}


def _softmax_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Any]:
    """p (dx - Σ p dx)."""
    (x,), (dx,) = primals, tangents
    out = softmax(x, axes=axes)
    return out, multiply(out, centered(out, dx, axes))


def _log_softmax_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes) -> tuple[Array, Any]:
    """dx - Σ p dx."""
    (x,), (dx,) = primals, tangents
    return log_softmax(x, axes=axes), centered(softmax(x, axes=axes), dx, axes)


def _softmax_adjoint(ct: Array, parents: Any, saved: Any, *, axes: Axes) -> tuple[Array]:
    """p̄ (ct - Σ p̄ ct)."""
    out = conjugate(saved[-1])
    return (multiply(out, centered(out, ct, axes)),)


def _log_softmax_adjoint(ct: Array, parents: Any, saved: Any, *, axes: Axes) -> tuple[Array]:
    """ct - p̄ Σ ct, whose sum is zero; it also removes the remainder by rounding where one p is nearly one."""
    out = conjugate(exp(saved[-1]))
    for _ in range(2):
        ct = subtract(ct, multiply(out, keep_axes(reduce_sum(ct, axes=axes), shape_of(out), axes)))
    return (ct,)


softmax: Primitive = direct(
    "softmax",
    lambda xp, x, *, axes: special(xp, "softmax")(x, axis=axes),
    _softmax_adjoint,
    aval=lambda x, *, axes: x,
    parameters={"axes": AXES},
    batch=lambda size, batched, args, params: softmax(*args, **_shifted(params)),
    jvp=_softmax_jvp,
    cost=20,
)
log_softmax: Primitive = direct(
    "log_softmax",
    lambda xp, x, *, axes: special(xp, "log_softmax")(x, axis=axes),
    _log_softmax_adjoint,
    aval=lambda x, *, axes: x,
    parameters={"axes": AXES},
    batch=lambda size, batched, args, params: log_softmax(*args, **_shifted(params)),
    jvp=_log_softmax_jvp,
    cost=20,
)


def _logsumexp_impl(xp: Any, x: Array, *, axes: Axes) -> Array:
    return special(xp, "logsumexp")(x, axis=axes)


logsumexp: Reduction = reduction("logsumexp", _logsumexp_impl, exponential_share, cost=costs.log_sum_exp)


def _weighted_impl(xp: Any, x: Array, b: Array, *, axes: Axes, signed: bool) -> tuple[Array, ...]:
    outs = special(xp, "logsumexp")(x, axis=axes, b=b, return_sign=signed)
    return tuple(outs) if signed else (outs,)


def _weighted_aval(x: Aval, b: Aval, *, axes: Axes, signed: bool) -> tuple[Aval, ...]:
    shape = drop_axes(np.broadcast_shapes(x.shape, b.shape), axes)
    probes = _weighted_impl(np, np.ones(1, x.dtype), np.ones(1, b.dtype), axes=(0,), signed=signed)
    return tuple([Aval(shape, np.asarray(probe).dtype) for probe in probes])


def _weighted_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], *, axes: Axes, signed: bool
) -> tuple[Any, tuple[Any, ...]]:
    """q = d(sum) / sum = Σ e^(x - out) / sign (b dx + db); the logarithm moves by Re q, the phase by i Im q."""
    (x, b), (dx, db) = primals, tangents
    outs = weighted_logsumexp(x, b, axes=axes, signed=signed)
    out = keep_axes(outs[0], shape_of(x), axes)
    infinite = logical_and(equal(x, out), logical_not(isfinite(out)))
    share = exp(where(infinite, full_like(x, 0, ()), subtract(x, out)))
    change: Any = ZERO
    if dx is not ZERO:
        change = nan_safe_multiply(multiply(share, dx), b)  # b = 0 leaves a term out
    if db is not ZERO:
        change = add_tangents(change, multiply(share, db))
    d_log = reduce_sum(change, axes=axes)
    if not signed:
        return outs, (convert(d_log, dtype=dtype_of(outs[0])),)
    d_log = multiply(d_log, conjugate(outs[1]))
    phase = zeros_like(outs[1])
    if dtype_of(outs[1]).kind == "c":
        phase = times(outs[1], imag(d_log), 1j)
    return outs, (convert(real(d_log), dtype=dtype_of(outs[0])), phase)


weighted_logsumexp: Primitive = general(
    "weighted_logsumexp",
    _weighted_impl,
    aval=_weighted_aval,
    parameters={"axes": AXES, "signed": FLAG},
    fits=lambda x, b, **params: len(x.shape) == len(b.shape),
    batch=lambda size, batched, args, params: weighted_logsumexp(*align_ranks(size, batched, args), **_shifted(params)),
    jvp=_weighted_jvp,
    multiple=True,
    cost=costs.log_sum_exp,
)
"""(log|Σ b e^x|, its sign), or where not signed (log Σ b e^x,), of arrays of one rank."""
