"""Bessel functions and related ones. Derivatives are by the argument; none by the order is defined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from func.interpreters.core import Array, Primitive, dtype_of
from func.interpreters.primitives.elementwise.builder import Elementwise, add, multiply, negative
from func.interpreters.primitives.elementwise.table import (
    absolute,
    divide,
    equal,
    exp,
    greater,
    log,
    maximum,
    remainder,
    sign,
    sqrt,
    subtract,
)
from func.interpreters.primitives.scipy_functions import special
from func.interpreters.primitives.special.builders import (
    by_name,
    check_real,
    missing,
    publish,
    special_primitive,
    times,
)
from func.interpreters.primitives.special.gamma import rgamma
from func.interpreters.primitives.structural.shapes import full_like, where


def _half(first: Array, second: Array) -> Array:
    """(first + second) / 2."""
    return multiply(add(first, second), 0.5)


def _half_gap(first: Array, second: Array) -> Array:
    """(first - second) / 2."""
    return multiply(subtract(first, second), 0.5)


def _by_order(name: str, is_complex: bool = False) -> Elementwise:
    """A function of the order v (as x) and the argument (as y) with C'_v = (C_(v-1) - C_(v+1)) / 2."""

    def partial(x: Array, y: Array) -> Array:
        return _half_gap(primitive(subtract(x, 1), y), primitive(add(x, 1), y))

    primitive = special_primitive(name, missing(name, "its order v"), partial, is_complex=is_complex)
    return primitive


jv: Elementwise = _by_order("jv")
publish(jv, "v z", "The Bessel function of the first kind and real order v. DLMF 10.2.2.")
yv: Elementwise = _by_order("yv")
publish(yv, "v z", "The Bessel function of the second kind and real order v. DLMF 10.2.3.")
hankel1: Elementwise = _by_order("hankel1", is_complex=True)
publish(hankel1, "v z", "The Hankel function of the first kind, J + i Y. DLMF 10.4.3.")
hankel2: Elementwise = _by_order("hankel2", is_complex=True)
publish(hankel2, "v z", "The Hankel function of the second kind, J - i Y. DLMF 10.4.3.")
yn: Elementwise = special_primitive(
    "yn", missing("yn", "its order n"), lambda x, y: _half_gap(yv(subtract(x, 1), y), yv(add(x, 1), y))
)
publish(yn, "n x", "The Bessel function of the second kind and integer order n, x > 0.")

j0: Elementwise = special_primitive("j0", lambda x: negative(j1(x)))
publish(
    j0,
    "x",
    """The Bessel function of the first kind and order 0. DLMF 10.2.2.

    >>> import func
    >>> float(func.grad(func.special.j0)(0.0))
    -0.0
    """,
)
j1: Elementwise = special_primitive("j1", lambda x: _half_gap(j0(x), jv(2, x)))
publish(j1, "x", "The Bessel function of the first kind and order 1. DLMF 10.2.2.")
y0: Elementwise = special_primitive("y0", lambda x: negative(y1(x)))
publish(y0, "x", "The Bessel function of the second kind and order 0, x > 0. DLMF 10.2.3.")
y1: Elementwise = special_primitive("y1", lambda x: subtract(y0(x), divide(y1(x), x)))
publish(y1, "x", "The Bessel function of the second kind and order 1, x > 0. DLMF 10.2.3.")


def _jve_partial(x: Array, y: Array) -> Array:
    """For real y the scaled function is the plain one; for complex y the factor is not holomorphic."""
    check_real("jve", y)
    return _half_gap(jve(subtract(x, 1), y), jve(add(x, 1), y))


def _yve_partial(x: Array, y: Array) -> Array:
    """For real y the scaled function is the plain one; for complex y the factor is not holomorphic."""
    check_real("yve", y)
    return _half_gap(yve(subtract(x, 1), y), yve(add(x, 1), y))


jve: Elementwise = special_primitive("jve", missing("jve", "its order v"), _jve_partial)
publish(jve, "v z", "jv(v, z) exp(-|Im z|); holomorphic for real z only.")
yve: Elementwise = special_primitive("yve", missing("yve", "its order v"), _yve_partial)
publish(yve, "v z", "yv(v, z) exp(-|Im z|); holomorphic for real z only.")
hankel1e: Elementwise = special_primitive(
    "hankel1e",
    missing("hankel1e", "its order v"),
    lambda x, y, out: subtract(_half_gap(hankel1e(subtract(x, 1), y), hankel1e(add(x, 1), y)), multiply(out, 1j)),
    is_complex=True,
)
publish(hankel1e, "v z", "hankel1(v, z) exp(-i z).")
hankel2e: Elementwise = special_primitive(
    "hankel2e",
    missing("hankel2e", "its order v"),
    lambda x, y, out: add(_half_gap(hankel2e(subtract(x, 1), y), hankel2e(add(x, 1), y)), multiply(out, 1j)),
    is_complex=True,
)
publish(hankel2e, "v z", "hankel2(v, z) exp(i z).")

iv: Elementwise = special_primitive(
    "iv", missing("iv", "its order v"), lambda x, y: _half(iv(subtract(x, 1), y), iv(add(x, 1), y))
)
publish(iv, "v z", "The modified Bessel function of the first kind and real order v. DLMF 10.25.2.")
kv: Elementwise = special_primitive(
    "kv", missing("kv", "its order v"), lambda x, y: negative(_half(kv(subtract(x, 1), y), kv(add(x, 1), y)))
)
publish(kv, "v z", "The modified Bessel function of the second kind and real order v. DLMF 10.25.3.")
kn: Elementwise = special_primitive(
    "kn", missing("kn", "its order n"), lambda x, y: negative(_half(kv(subtract(x, 1), y), kv(add(x, 1), y)))
)
publish(kn, "n x", "The modified Bessel function of the second kind and integer order n, x > 0.")
FAR, TERMS = 40.0, 24
"""Where Hankel's expansions begin for the order 0, and their number of terms."""


def _far_slope(v: Array, x: Array, scale: float, step: float) -> Array:
    """-x^(-3/2) Σ (k + 1/2) aₖ(v) (step/x)ᵏ, the derivative of a scaled function for large x. DLMF 10.40.1.

    Without the scale, the function and its derivative are nearly equal there.
    """
    square_v, inverse = multiply(multiply(v, v), 4.0), divide(step, x)
    term = full_like(inverse, scale, ())
    total = multiply(term, 0.5)
    for k in range(1, TERMS):
        term = multiply(multiply(term, divide(subtract(square_v, (2 * k - 1) ** 2), 8 * k)), inverse)
        total = add(total, multiply(term, k + 0.5))
    return negative(divide(divide(total, x), sqrt(x)))


def _scaled_slope(v: Array, x: Array, scale: float, step: float, plain: Callable[[Array], Array]) -> Array:
    """The derivative of a scaled function: by the expansion where it holds, which for the order v is from v² on.

    A function that is even or odd by its order is taken at |x|.
    """
    size = absolute(x)
    is_far = greater(size, add(multiply(v, v), FAR))
    is_even = equal(remainder(v, 2), 0)
    far = _far_slope(v, where(is_far, size, full_like(x, FAR, ())), scale, step)
    far = where(is_even, multiply(sign(x), far), far)
    return where(is_far, far, plain(where(is_far, full_like(x, FAR, ()), x)))


I_SCALE, K_SCALE = 1 / math.sqrt(2 * math.pi), math.sqrt(math.pi / 2)


def _ie_slope(v: Array, x: Array, plain: Callable[[Array], Array]) -> Array:
    """The derivative of e^(-|x|) I_v(x)."""
    return _scaled_slope(v, x, I_SCALE, -1.0, plain)


def _ke_slope(v: Array, x: Array, plain: Callable[[Array], Array]) -> Array:
    """The derivative of e^x K_v(x), x > 0."""
    return _scaled_slope(v, x, K_SCALE, 1.0, plain)


def _kve_partial(x: Array, y: Array, out: Array) -> Array:
    """K_v - (K_(v-1) + K_(v+1)) / 2, scaled."""

    def plain(y: Array) -> Array:
        return subtract(kve(x, y), _half(kve(subtract(x, 1), y), kve(add(x, 1), y)))

    return plain(y) if dtype_of(y).kind == "c" else _ke_slope(x, y, plain)


kve: Elementwise = special_primitive("kve", missing("kve", "its order v"), _kve_partial)
publish(kve, "v z", "kv(v, z) exp(z).")


def _ive_partial(x: Array, y: Array, out: Array) -> Array:
    """The scale is e^(-|Re y|), which is not holomorphic."""
    check_real("ive", y)

    def plain(y: Array) -> Array:
        return subtract(_half(ive(subtract(x, 1), y), ive(add(x, 1), y)), multiply(sign(y), ive(x, y)))

    return _ie_slope(x, y, plain)


ive: Elementwise = special_primitive("ive", missing("ive", "its order v"), _ive_partial)
publish(ive, "v z", "iv(v, z) exp(-|Re z|); holomorphic for real z only.")

i0: Elementwise = special_primitive("bessel_i0", lambda x: i1(x), ufunc="i0")
publish(i0, "x", "The modified Bessel function of the first kind and order 0. DLMF 10.25.2.")
i1: Elementwise = special_primitive("i1", lambda x: _half(i0(x), iv(2, x)))
publish(i1, "x", "The modified Bessel function of the first kind and order 1. DLMF 10.25.2.")
i0e: Elementwise = special_primitive(
    "i0e", lambda x: _ie_slope(0, x, lambda x: subtract(i1e(x), multiply(sign(x), i0e(x))))
)
publish(i0e, "x", "i0(x) exp(-|x|), where the derivative of |x| at zero is taken as zero.")
i1e: Elementwise = special_primitive(
    "i1e", lambda x: _ie_slope(1, x, lambda x: subtract(_half(i0e(x), ive(2, x)), multiply(sign(x), i1e(x))))
)
publish(i1e, "x", "i1(x) exp(-|x|).")
k0: Elementwise = special_primitive("k0", lambda x: negative(k1(x)))
publish(k0, "x", "The modified Bessel function of the second kind and order 0, x > 0. DLMF 10.25.3.")
k1: Elementwise = special_primitive("k1", lambda x, out: negative(add(k0(x), divide(out, x))))
publish(k1, "x", "The modified Bessel function of the second kind and order 1, x > 0. DLMF 10.25.3.")
k0e: Elementwise = special_primitive("k0e", lambda x: _ke_slope(0, x, lambda x: subtract(k0e(x), k1e(x))))
publish(k0e, "x", "k0(x) exp(x).")
k1e: Elementwise = special_primitive(
    "k1e", lambda x: _ke_slope(1, x, lambda x: subtract(k1e(x), add(k0e(x), divide(k1e(x), x))))
)
publish(k1e, "x", "k1(x) exp(x).")


def _spherical(name: str, below: int, above: int) -> Elementwise:
    """(2n + 1) f'_n = below n f_(n-1) + above (n + 1) f_(n+1), regular also where the argument is zero."""

    def partial(x: Array, y: Array) -> Array:
        first = times(primitive(maximum(subtract(x, 1), 0), y), x, below)
        second = times(primitive(add(x, 1), y), add(x, 1), above)
        return divide(add(first, second), add(multiply(x, 2), 1))

    def impl(xp: Any, n: Array, z: Array) -> Array:
        return special(xp, name)(n, z)

    primitive = special_primitive(name, missing(name, "its order n"), partial, impl=impl)
    return primitive


spherical_jn: Elementwise = _spherical("spherical_jn", 1, -1)
spherical_yn: Elementwise = _spherical("spherical_yn", 1, -1)
spherical_in: Elementwise = _spherical("spherical_in", 1, 1)
spherical_kn: Elementwise = _spherical("spherical_kn", -1, -1)


def _airy_slopes(z: Array, ai: Array, aip: Array, bi: Array, bip: Array) -> tuple[Array, ...]:
    """Ai'' = z Ai, and so for Bi. DLMF 9.2.1."""
    return aip, multiply(z, ai), bip, multiply(z, bi)


airy: Primitive = by_name(
    "airy",
    "z",
    outs=4,
    z=_airy_slopes,
    doc="The Airy functions and their derivatives (Ai, Ai', Bi, Bi'), real or complex. DLMF 9.2.",
)


def _struve_rest(v: Array, x: Array) -> Array:
    """(x / 2)^v / (√π Γ(v + 3/2))."""
    power = exp(multiply(v, log(multiply(x, 0.5))))
    return times(power, rgamma(add(v, 1.5)), 1 / math.sqrt(math.pi))


def _struve_partial(x: Array, y: Array) -> Array:
    """H'_v = (H_(v-1) - H_(v+1) + (x/2)^v / (√π Γ(v + 3/2))) / 2."""
    return multiply(add(subtract(struve(subtract(x, 1), y), struve(add(x, 1), y)), _struve_rest(x, y)), 0.5)


def _modstruve_partial(x: Array, y: Array) -> Array:
    """L'_v = (L_(v-1) + L_(v+1) + (x/2)^v / (√π Γ(v + 3/2))) / 2."""
    return multiply(add(add(modstruve(subtract(x, 1), y), modstruve(add(x, 1), y)), _struve_rest(x, y)), 0.5)


struve: Elementwise = special_primitive("struve", missing("struve", "its order v"), _struve_partial)
publish(struve, "v x", "Struve's function of real order v, x > 0. DLMF 11.2.1.")
modstruve: Elementwise = special_primitive("modstruve", missing("modstruve", "its order v"), _modstruve_partial)
publish(modstruve, "v x", "The modified Struve function of real order v, x > 0. DLMF 11.2.2.")
