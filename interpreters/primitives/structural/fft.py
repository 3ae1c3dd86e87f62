"""Discrete Fourier transforms of one axis: linear primitives, whose transposes are Fourier transforms too.

`norm` is NumPy's, the direction that divides by n: "backward", "forward", or both by its root, "ortho". The adjoint
runs in the other direction with the same factor, the other normalisation: "backward" and "forward" change places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers.strides import iterated_order
from func.interpreters.core import COMPLEX, Array, Aval, Linear, Params, Shaped, linear, shape_of
from func.interpreters.core.parameters import AXIS, FLAG, integer, one_of
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import real
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.shapes import full_like, reshape, same_dtype, where

SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
"""The norm of the adjoint, and that of the other direction with the same factor."""

NORM = one_of(*SWAPPED)


def _complex_aval(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, 1j)


def _real_aval(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(np.real(np.empty(0, dtype)).dtype, 1.0)


def _resized(x: Any, axis: int, length: int) -> tuple[int, ...]:
    shape = list(x.shape)
    shape[axis] = length
    return tuple(shape)


def _fft_impl(xp: Any, x: Array, *, axis: int, norm: str, inverse: bool) -> Array:
    return xp.fft.ifft(x, None, axis, norm) if inverse else xp.fft.fft(x, None, axis, norm)


def _fft_transpose(ct: Array, x: Shaped, *, axis: int, norm: str, inverse: bool) -> tuple[Array]:
    contribution = fft(ct, axis=axis, norm=SWAPPED[norm], inverse=not inverse)
    return (same_dtype(contribution, x),)


def _cost(ins: Sequence[Aval], outs: Sequence[Aval], params: Params) -> float:
    """5 n log₂ n real operations; the factor `COMPLEX` is divided out again."""
    axis = params["axis"]
    length = max(ins[0].shape[axis], outs[0].shape[axis])
    count = ins[0].size // max(ins[0].shape[axis], 1)
    half = 1 if ins[0].dtype.kind == outs[0].dtype.kind else 2
    return 5 * length * math.log2(max(length, 2)) * count / half / COMPLEX


fft: Linear = linear(
    "fft",
    _fft_impl,
    aval=lambda x, *, axis, norm, inverse: Aval(x.shape, _complex_aval(x.dtype)),
    parameters={"axis": AXIS, "norm": NORM, "inverse": FLAG},
    transpose=_fft_transpose,
    batch=lambda x, *, axis, norm, inverse: fft(x, axis=axis + 1, norm=norm, inverse=inverse),
    cost=_cost,
    layout=iterated_order,
)
"""The transform of a whole axis, or its inverse; real input counts as complex."""


def _half_weights(x: Array, axis: int, length: int, inside: float) -> Array:
    """x with every frequency but zero and (of an even length) the highest multiplied: those count twice."""
    shape = shape_of(x)
    places = iota(shape[axis], x)
    alone = (places == 0) | (places * 2 == length)
    weights = where(alone, full_like(real(x), 1, ()), full_like(real(x), inside, ()))
    return multiply(x, reshape(weights, shape=tuple([n if i == axis else 1 for i, n in enumerate(shape)])))


def _rfft_transpose(ct: Array, x: Shaped, *, axis: int, norm: str) -> tuple[Array]:
    """irfft counts the inner frequencies twice, the adjoint of rfft once."""
    length = x.shape[axis]
    contribution = irfft(_half_weights(ct, axis, length, 0.5), axis=axis, length=length, norm=SWAPPED[norm])
    return (same_dtype(contribution, x),)


rfft: Linear = linear(
    "rfft",
    lambda xp, x, *, axis, norm: xp.fft.rfft(x, None, axis, norm),
    aval=lambda x, *, axis, norm: Aval(_resized(x, axis, x.shape[axis] // 2 + 1), _complex_aval(x.dtype)),
    parameters={"axis": AXIS, "norm": NORM},
    transpose=_rfft_transpose,
    batch=lambda x, *, axis, norm: rfft(x, axis=axis + 1, norm=norm),
    cost=_cost,
    layout=iterated_order,
)
"""The non-negative frequencies of a real axis."""


def _irfft_transpose(ct: Array, x: Shaped, *, axis: int, length: int, norm: str) -> tuple[Array]:
    contribution = _half_weights(rfft(ct, axis=axis, norm=SWAPPED[norm]), axis, length, 2.0)
    return (same_dtype(contribution, x),)


irfft: Linear = linear(
    "irfft",
    lambda xp, x, *, axis, length, norm: xp.fft.irfft(x, length, axis, norm),
    aval=lambda x, *, axis, length, norm: Aval(_resized(x, axis, length), _real_aval(x.dtype)),
    parameters={"axis": AXIS, "length": integer(1), "norm": NORM},
    transpose=_irfft_transpose,
    batch=lambda x, *, axis, length, norm: irfft(x, axis=axis + 1, length=length, norm=norm),
    cost=_cost,
    layout=iterated_order,
)
"""The real axis of a length with given non-negative frequencies, length // 2 + 1 of them."""
