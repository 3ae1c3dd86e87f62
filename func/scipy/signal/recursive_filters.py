"""Filters with feedback: y_n = Σ b_k x_(n-k) - Σ a_k y_(n-k), by one primitive for the feedback.

The part without feedback is a correlation. All are differentiable in b, a, x and the initial state, in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal as _scipy
from numpy.lib.array_utils import normalize_axis_index

from func import numpy as fnp
from func.interpreters.core import Array, known_value, operand
from func.interpreters.primitives.structural.filters import correlate_windows, recurrence
from func.scipy.kinds.versions import version_of


def _coefficients(values: Any, name: str) -> Array:
    values = fnp.atleast_1d(fnp.asarray(values))
    if values.ndim != 1 or values.shape[0] == 0:
        raise ValueError(f"Parameter {name} is not a non-empty 1d array, since {name}.shape={values.shape!r}!")
    return values


def _longer(values: Array, length: int) -> Array:
    """Zeros appended up to a length."""
    missing = length - values.shape[-1]
    if missing <= 0:
        return values
    return fnp.concatenate([values, fnp.zeros((*values.shape[:-1], missing), values.dtype)], -1)


def _delayed(values: Array, length: int) -> Array:
    """Zeros prepended."""
    return fnp.concatenate([fnp.zeros((*values.shape[:-1], length), values.dtype), values], -1)


def _weighted(wide: Array, taps: Array) -> Array:
    """Σ_k taps_k wide_(n-k) over the last axis, where all terms exist."""
    return correlate_windows(operand(wide), operand(fnp.flip(taps)), axes=(wide.ndim - 1,), stack=0)


def _filtered(b: Array, a: Array, x: Array, state: Array | None) -> tuple[Array, Any]:
    """The output and the last state, over the last axis; b and a are equally long, and a_0 is one."""
    order, n = b.shape[0] - 1, x.shape[-1]
    forced = _weighted(_delayed(x, order), b) if n else x
    if state is not None and order:
        kept = state[..., :n]
        forced = forced + _longer(kept, n)
    y = recurrence(operand(forced), operand(a[1:])) if order else forced
    if state is None:
        return y, None
    if not order:
        return y, state
    # the contribution of the past to later outputs
    coming = [_weighted(_longer(_delayed(v, order)[..., v.shape[-1] :], 2 * order), t) for v, t in ((x, b), (y, a))]
    return y, coming[0] - coming[1] + _longer(state[..., n:], order)


def _state(zi: Any, shape: tuple[int, ...]) -> Array:
    """The initial state in its shape; axes of length one are broadcast."""
    zi = fnp.asarray(zi)
    if zi.ndim != len(shape):
        raise ValueError(
            f"Dimensions of parameters x and zi must match, but x.ndim={len(shape)!r}, zi.ndim={zi.ndim!r}!"
        )
    if any([m not in (n, 1) for m, n in zip(zi.shape[:-1], shape[:-1], strict=True)]) or zi.shape[-1] != shape[-1]:
        raise ValueError(f"Unexpected shape for parameter zi: expected {shape}, found {zi.shape}.")
    return fnp.broadcast_to(zi, shape)


@version_of(_scipy.lfilter)
def lfilter(b: Array, a: Array, x: Array, axis: int = -1, zi: Any = None) -> Any:
    """A recursive filter along an axis, as scipy.signal.lfilter.

    >>> import numpy as np, func
    >>> def last(a):
    ...     return func.scipy.signal.lfilter([1.0], np.stack([1.0, a]), np.ones(3))[-1]
    >>> func.value_and_grad(last)(-0.5)
    (np.float64(1.75), np.float64(-2.0))
    """
    b, a, x = _coefficients(b, "b"), _coefficients(a, "a"), fnp.asarray(x)
    if x.ndim == 0:
        raise ValueError("x must be at least 1-D")
    axis = normalize_axis_index(axis, x.ndim)
    if zi is not None:
        zi = fnp.asarray(zi)
        if zi.ndim != x.ndim:
            raise ValueError(
                f"Dimensions of parameters x and zi must match, but x.ndim={x.ndim!r}, zi.ndim={zi.ndim!r}!"
            )
    dtype = np.result_type(*[v.dtype for v in (b, a, x)], *([] if zi is None else [zi.dtype]))
    if dtype.char not in "fdgFDG":
        raise NotImplementedError(f"Parameter's dtypes produced result type '{dtype}', which is not supported!")
    if known_value(a) is not None and a.shape[0] > 1 and bool(a[0] == 0):
        raise ValueError("BUG: filter coefficient a[0] == 0 not supported yet")
    b, a, x = [fnp.astype(v, dtype, copy=False) for v in (b, a, fnp.moveaxis(x, axis, -1))]
    length = max(b.shape[0], a.shape[0])
    b, a = _longer(b / a[0], length), _longer(a / a[0], length)
    if zi is None:
        return fnp.moveaxis(_filtered(b, a, x, None)[0], -1, axis)
    state = _state(fnp.moveaxis(fnp.astype(zi, dtype, copy=False), axis, -1), (*x.shape[:-1], length - 1))
    return tuple([fnp.moveaxis(v, -1, axis) for v in _filtered(b, a, x, state)])


@version_of(_scipy.lfilter_zi)
def lfilter_zi(b: Array, a: Array) -> Array:
    """The state of a filter whose input has always been one, as scipy.signal.lfilter_zi."""
    b, a = fnp.atleast_1d(fnp.asarray(b)), fnp.atleast_1d(fnp.asarray(a))
    for name, values in (("Numerator b", b), ("Denominator a", a)):
        if values.ndim != 1:
            raise ValueError(f"{name} must be 1-D.")
    while known_value(a) is not None and a.shape[0] > 1 and bool(a[0] == 0.0):
        a = a[1:]
    if a.shape[0] < 1:
        raise ValueError("There must be at least one nonzero `a` coefficient.")
    b, a = b / a[0], a / a[0]
    length = max(a.shape[0], b.shape[0])
    a, b = _longer(a, length), _longer(b, length)
    if length == 1:
        return fnp.zeros(0, np.result_type(a.dtype, b.dtype))
    # z_(k+1) = z_k - b_k + a_k y for a constant output y = Σ b / Σ a
    right = b[1:] - a[1:] * b[0]
    first = fnp.sum(right) / fnp.sum(a)
    rest = fnp.cumsum(a[:-1])[1:] * first - fnp.cumsum(right)[:-1]
    return fnp.concatenate([first[None], rest])


def _sections(sos: Any) -> Array:
    """Second-order sections (n, 6), whose denominators begin with one."""
    sos = fnp.asarray(sos)
    if sos.ndim < 2:
        sos = fnp.atleast_2d(sos)
    if sos.ndim != 2:
        raise ValueError("sos array must be 2D")
    if sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    if known_value(sos) is not None and not bool(fnp.all(sos[:, 3] == 1)):
        raise ValueError("sos[:, 3] should be all ones")
    return sos


@version_of(_scipy.sosfilt)
def sosfilt(sos: Array, x: Array, axis: int = -1, zi: Any = None) -> Any:
    """Filters of second order in a row, as scipy.signal.sosfilt; it does not check that sos[:, 3] is one."""
    x, sos = fnp.asarray(x), _sections(sos)
    if x.ndim == 0:
        raise ValueError("x must be at least 1-D")
    axis = normalize_axis_index(axis, x.ndim)
    shape = (sos.shape[0], *x.shape[:axis], 2, *x.shape[axis + 1 :])
    if zi is not None:
        zi = fnp.asarray(zi)
    dtype = np.result_type(sos.dtype, x.dtype, *([] if zi is None else [zi.dtype]))
    if dtype.char not in "fdgFDG":
        raise NotImplementedError(f"input type '{dtype}' not supported")
    if zi is not None and zi.shape != shape:
        raise ValueError(
            f"Invalid zi shape. With axis={axis!r}, an input with shape {x.shape!r}, and an sos array with "
            f"{sos.shape[0]} sections, zi must have shape {shape!r}, got {zi.shape!r}."
        )
    sos, y = fnp.astype(sos, dtype, copy=False), fnp.moveaxis(fnp.astype(x, dtype, copy=False), axis, -1)
    states = []
    for section in range(sos.shape[0]):
        start = None if zi is None else fnp.moveaxis(fnp.astype(zi[section], dtype, copy=False), axis, -1)
        y, state = _filtered(sos[section, :3], sos[section, 3:], y, start)
        states.append(None if state is None else fnp.moveaxis(state, -1, axis))
    y = fnp.moveaxis(y, -1, axis)
    return y if zi is None else (y, fnp.stack(states) if states else zi)
