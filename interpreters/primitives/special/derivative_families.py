"""Functions whose derivatives of every order are one primitive each: sinc, and the Bessel function behind np.i0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.array_helpers import special
from func.backends.array_helpers.strides import iterated_order
from func.interpreters.core import Array, Aval, Params, Primitive, dtype_of, general
from func.interpreters.core.parameters import ORDER
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.scipy_functions import reporting_missing
from func.interpreters.primitives.structural.shapes import convert


def _ordered(name: str, impl: Callable[..., Array], slope: Callable[[Array, int], Array], cost: float) -> Primitive:
    """A primitive with a parameter `order`, the function's derivative of that order; the caller states its slope."""

    def aval(x: Aval, *, order: int) -> Aval:
        return Aval(x.shape, x.dtype if x.dtype.kind in "fc" else np.float64)

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Array]:
        (x,), (dx,) = primals, tangents
        out = primitive(x, order=order)
        return out, convert(multiply(slope(x, order), dx), dtype=dtype_of(out))

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], **params)

    primitive = general(
        name, impl, aval=aval, parameters={"order": ORDER}, batch=batch, jvp=jvp, cost=cost, layout=iterated_order
    )
    return primitive


sinc: Primitive = _ordered("sinc", special.sinc, lambda x, order: sinc(x, order=order + 1), 20)
"""The derivative of an order of sin(πx) / (πx); order zero is as NumPy computes it."""


def _i0_slope(x: Array, order: int) -> Array:
    if order == 0:
        return i0(x, order=1)
    return multiply(add(i0(x, order=order - 1), i0(x, order=order + 1)), 0.5)


i0: Primitive = _ordered("i0", reporting_missing(special.i0, "special"), _i0_slope, costs.SPECIAL)
"""The modified Bessel function of the first kind; order zero is as NumPy computes it."""
