"""The parts of filters: correlation with weights, linear recurrences, and the coefficients of splines.

The kernels are SciPy's. A correlation is linear in the elements and in the weights. Its transposes are a correlation
again, and the products of the elements with those of the output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import filter_kernels
from func.interpreters import core
from func.interpreters.core import ZERO, Array, Aval, Bilinear, Linear, Params, Primitive, Shaped
from func.interpreters.core.parameters import AXIS, Kind, are_axes, integer, one_of
from func.interpreters.primitives.elementwise.builder import conjugate, multiply, negative
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import fit_cotangent, result_dtype
from func.interpreters.primitives.structural.slicing import embed, getitem

AXES = {
    "axes": Kind("axes of the first operand", lambda value, avals, params: are_axes(value, len(avals[0].shape))),
    "stack": integer(0),
}


def _conjugated(x: Array) -> Array:
    return conjugate(x) if core.dtype_of(x).kind == "c" else x


def _flipped(x: Array, first: int) -> Array:
    """The axes from the first on backwards."""
    return getitem(
        x, index=tuple([(0, n, 1) if i < first else (n - 1, -1, -1) for i, n in enumerate(core.shape_of(x))])
    )


def _framed(x: Array, axes: tuple[int, ...], widths: Sequence[int]) -> Array:
    """Zeros on both sides of axes."""
    shape = list(core.shape_of(x))
    index = [(0, n, 1) for n in shape]
    for axis, width in zip(axes, widths, strict=True):
        index[axis] = (width, width + shape[axis], 1)
        shape[axis] += 2 * width
    return embed(x, index=tuple(index), shape=tuple(shape))


def _stacked(params: Params) -> Params:
    """Parameters of operands with a batch axis in front."""
    return {"axes": tuple([axis + 1 for axis in params["axes"]]), "stack": params["stack"] + 1}


def _correlate_aval(x: Aval, w: Aval, *, axes: tuple[int, ...], stack: int) -> Aval:
    shape = list(x.shape)
    for axis, size in zip(axes, w.shape[stack:], strict=True):
        shape[axis] -= size - 1
    return Aval(tuple(shape), result_dtype(x, w))


def _are_windows(x: Aval, w: Aval, *, axes: tuple[int, ...], stack: int) -> bool:
    sizes = w.shape[stack:]
    return (
        x.shape[:stack] == w.shape[:stack]
        and len(sizes) == len(axes)
        and all([stack <= axis and 1 <= size <= x.shape[axis] + 1 for axis, size in zip(axes, sizes, strict=True)])
    )


def _correlate_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    if not batched[1] and not params["stack"]:
        return correlate_windows(*args, axes=_stacked(params)["axes"], stack=0)
    return correlate_windows(*core.materialize(size, batched, args), **_stacked(params))


def _correlate_transpose(ct: Array, x: Any, w: Any, *, axes: tuple[int, ...], stack: int) -> tuple[Any, Any]:
    if isinstance(x, Shaped):
        framed = _framed(ct, axes, [size - 1 for size in core.shape_of(w)[stack:]])
        pulled = correlate_windows(framed, _flipped(_conjugated(w), stack), axes=axes, stack=stack)
        return fit_cotangent(pulled, x), ZERO
    return ZERO, fit_cotangent(window_products(_conjugated(x), ct, axes=axes, stack=stack), w)


correlate_windows: Bilinear = Bilinear(
    "correlate_windows",
    reporting_missing(filter_kernels.correlate_windows, "ndimage"),
    aval=_correlate_aval,
    parameters=AXES,
    fits=_are_windows,
    batch=_correlate_batch,
    cost=lambda ins, outs, params: 2 * outs[0].size * math.prod(ins[1].shape[params["stack"] :]),
    transpose=_correlate_transpose,
    covers=True,
)
"""Σ_j x_(i+j) w_j over axes, for the windows that lie inside; w has the axes in their order, after the first `stack`
axes, which are those of x."""


def _products_aval(x: Aval, c: Aval, *, axes: tuple[int, ...], stack: int) -> Aval:
    sizes = [x.shape[axis] - c.shape[axis] + 1 for axis in axes]
    return Aval((*x.shape[:stack], *sizes), result_dtype(x, c))


def _are_outputs(x: Aval, c: Aval, *, axes: tuple[int, ...], stack: int) -> bool:
    return len(x.shape) == len(c.shape) and all(
        [
            m <= n if axis in axes and axis >= stack else m == n
            for axis, (n, m) in enumerate(zip(x.shape, c.shape, strict=True))
        ]
    )


def _products_transpose(ct: Array, x: Any, c: Any, *, axes: tuple[int, ...], stack: int) -> tuple[Any, Any]:
    if isinstance(x, Shaped):
        framed = _framed(_conjugated(c), axes, [size - 1 for size in core.shape_of(ct)[stack:]])
        return fit_cotangent(correlate_windows(framed, _flipped(ct, stack), axes=axes, stack=stack), x), ZERO
    return ZERO, fit_cotangent(correlate_windows(_conjugated(x), ct, axes=axes, stack=stack), c)


window_products: Bilinear = Bilinear(
    "window_products",
    filter_kernels.window_products,
    aval=_products_aval,
    parameters=AXES,
    fits=_are_outputs,
    batch=lambda size, batched, args, params: window_products(
        *core.materialize(size, batched, args), **_stacked(params)
    ),
    cost=lambda ins, outs, params: 2 * ins[1].size * outs[0].size,
    transpose=_products_transpose,
    covers=True,
)
"""Σ_i x_(i+j) c_i for each offset j along axes: the cotangent of the weights of `correlate_windows`."""


def _recurrence_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Any]:
    """dy solves the same recurrence with dx_n - Σ_k da_k y_(n-k) on its right."""
    (x, a), (dx, da) = primals, tangents
    y = recurrence(x, a)
    right = dx
    if da is not ZERO:
        shape, order, stack = list(core.shape_of(y)), core.shape_of(a)[-1], len(core.shape_of(a)) - 1
        n = shape[-1]
        whole = [(0, length, 1) for length in shape[:-1]]
        past = getitem(y, index=(*whole, (0, max(n - 1, 0), 1)))
        shape[-1] = order + max(n - 1, 0)
        past = embed(past, index=(*whole, (order, shape[-1], 1)), shape=tuple(shape))
        weights = getitem(
            da,
            index=(*[(0, length, 1) for length in core.shape_of(a)[:-1]], (order - 1, -1, -1) if order else (0, 0, 1)),
        )
        if order and n:
            fed = correlate_windows(past, weights, axes=(len(shape) - 1,), stack=stack)
            right = core.add_tangents(right, negative(fed))
    return y, ZERO if right is ZERO else recurrence(right, a)


def _recurrence_transpose(ct: Array, x: Shaped, a: Array) -> tuple[Any, Any]:
    last = len(core.shape_of(ct)) - 1
    pulled = _flipped(recurrence(_flipped(ct, last), _conjugated(a)), last)
    return fit_cotangent(pulled, x), ZERO


recurrence: Primitive = core.general(
    "recurrence",
    reporting_missing(filter_kernels.recurrence, "signal"),
    aval=lambda x, a: Aval(x.shape, result_dtype(x, a)),
    fits=lambda x, a: 1 <= len(a.shape) <= len(x.shape) and a.shape[:-1] == x.shape[: len(a.shape) - 1],
    batch=lambda size, batched, args, params: _recurrence_batch(size, batched, args),
    jvp=_recurrence_jvp,
    transpose=_recurrence_transpose,
    cost=lambda ins, outs, params: 2 * outs[0].size * ins[1].shape[-1],
)
"""y_n = x_n - Σ_k a_k y_(n-k), k = 1 … K, over the last axis, from rest; a is (…, K) with the leading axes of x."""


def _recurrence_batch(size: int, batched: Sequence[bool], args: Sequence[Array]) -> Array:
    if not batched[1] and len(core.shape_of(args[1])) == 1:
        return recurrence(*args)
    return recurrence(*core.materialize(size, batched, args))


_LONG = 48
"""The length from which on the effect of one end at the other is below the precision of doubles."""


def _spline_transpose(ct: Array, x: Shaped, *, order: int, axis: int, boundary: str) -> tuple[Array]:
    """The inverse of a symmetric matrix, with two exceptions.

    With a boundary that folds at the sample the ends count half. If the boundary folds next to it, SciPy's sum at the
    first element differs slightly from the infinite extension. The matrix itself shows this on a short axis.
    """
    n = x.shape[axis]
    apply = functools.partial(spline_coefficients, order=order, axis=axis, boundary=boundary)
    if n < 2 or boundary == "grid-wrap" or (boundary == "reflect" and n >= _LONG):
        return (fit_cotangent(apply(ct), x),)
    if boundary == "reflect":
        matrix = filter_kernels.spline_coefficients(np, np.eye(n), order=order, axis=0, boundary=boundary)
        labels = tuple(range(len(x.shape)))
        pulled = contract(
            ct, matrix, spec=spec(labels, (axis, len(labels)), (*labels[:axis], len(labels), *labels[axis + 1 :]))
        )
        return (fit_cotangent(pulled, x),)
    ends = np.ones((n,) + (1,) * (len(x.shape) - 1 - axis))
    ends[0] = ends[-1] = 0.5
    return (fit_cotangent(multiply(apply(multiply(ct, 1 / ends)), ends), x),)


spline_coefficients: Linear = core.linear(
    "spline_coefficients",
    reporting_missing(filter_kernels.spline_coefficients, "ndimage"),
    aval=lambda x, **params: Aval(x.shape, np.promote_types(x.dtype, np.float64)),
    parameters={"order": one_of(2, 3, 4, 5), "axis": AXIS, "boundary": one_of("mirror", "reflect", "grid-wrap")},
    transpose=_spline_transpose,
    batch=lambda x, *, order, axis, boundary: spline_coefficients(x, order=order, axis=axis + 1, boundary=boundary),
    cost=lambda ins, outs, params: 4 * params["order"] * ins[0].size,
)
"""The coefficients of the splines through the elements along an axis. Source: Unser, Aldroubi, Eden (1991)."""
