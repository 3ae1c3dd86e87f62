"""Legendre and spherical harmonic functions with derivatives as outputs, of one degree and order and of all up to one.

Outputs have SciPy's shapes: an axis of derivatives in front of Legendre functions, behind those of spherical harmonics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.core import Array, Primitive, operand, shape_of
from func.interpreters.primitives.elementwise.table import exp
from func.interpreters.primitives.special import legendre as ops
from func.interpreters.primitives.special.integrals import sph_harm_y as harmonic
from func.interpreters.primitives.structural.shapes import where
from func.numpy.joining import stack

__all__ = [
    "assoc_legendre_p", "assoc_legendre_p_all", "legendre_p", "legendre_p_all", "sph_harm_y", "sph_harm_y_all",
    "sph_legendre_p", "sph_legendre_p_all",
]  # fmt: skip


def _order(diff_n: Any) -> int:
    if not isinstance(diff_n, (int, np.integer)) or not 0 <= diff_n <= 2:
        raise ValueError(f"diff_n is currently only implemented for orders 0, 1, and 2, received: {diff_n}.")
    return int(diff_n)


def _outputs(primitive: Primitive, *args: Any) -> list[Array]:
    out = primitive(*[operand(x) for x in args])
    return list(out) if primitive.multiple else [out]


def _degrees(n: Any, z: Array) -> Any:
    """0 … n along an axis in front of those of z."""
    if not isinstance(n, (int, np.integer)) or n < 0:
        raise ValueError("n must be a non-negative integer.")
    return np.arange(int(n) + 1).reshape(-1, *[1] * len(shape_of(z)))


def _degrees_and_orders(n: Any, m: Any, z: Array) -> tuple[Any, Any]:
    """All degrees and the orders 0 … m, -m … -1, along two axes in front of those of z."""
    if not isinstance(m, (int, np.integer)):
        raise ValueError("m must be an integer.")
    size = abs(int(m))
    orders = np.concatenate([np.arange(size + 1), np.arange(-size, 0)])
    degrees = _degrees(n, z)
    return degrees[:, None], orders.reshape(-1, *[1] * len(shape_of(z)))


def legendre_p(n: Array, z: Array, *, diff_n: int = 0) -> Array:
    """The Legendre polynomial of integer degree n, and its derivatives up to diff_n ≤ 2, along the first axis.

    >>> import numpy as np, func
    >>> [float(x) for x in func.special.legendre_p(2, 0.5, diff_n=1)]
    [-0.125, 1.5]
    """
    return stack(_outputs(ops.legendre_p[_order(diff_n)], n, z))


def legendre_p_all(n: int, z: Array, *, diff_n: int = 0) -> Array:
    """`legendre_p` of all degrees up to n, along the second axis."""
    z = operand(z)
    return legendre_p(_degrees(n, z), z, diff_n=diff_n)


def assoc_legendre_p(
    n: Array, m: Array, z: Array, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Array:
    """The associated Legendre function of integer degree n and order m, with derivatives along the first axis."""
    family = ops.assoc_legendre_p_normalized if norm else ops.assoc_legendre_p
    return stack(_outputs(family[_order(diff_n)], n, m, z, branch_cut))


def assoc_legendre_p_all(
    n: int, m: int, z: Array, *, branch_cut: Any = 2, norm: bool = False, diff_n: int = 0
) -> Array:
    """`assoc_legendre_p` of all degrees up to n and orders up to ±m, along the second and the third axis."""
    z = operand(z)
    if m < 0:
        raise ValueError("m must be a non-negative integer.")
    degrees, orders = _degrees_and_orders(n, m, z)
    return assoc_legendre_p(degrees, orders, z, branch_cut=branch_cut, norm=norm, diff_n=diff_n)


def sph_legendre_p(n: Array, m: Array, theta: Array, *, diff_n: int = 0) -> Array:
    """The spherical Legendre function of degree n and order m, with derivatives along the first axis."""
    return stack(_outputs(ops.sph_legendre_p[_order(diff_n)], n, m, theta))


def sph_legendre_p_all(n: int, m: int, theta: Array, *, diff_n: int = 0) -> Array:
    """`sph_legendre_p` of all degrees up to n and orders up to ±m, along the second and the third axis."""
    theta = operand(theta)
    degrees, orders = _degrees_and_orders(n, m, theta)
    return sph_legendre_p(degrees, orders, theta, diff_n=diff_n)


def sph_harm_y(n: Array, m: Array, theta: Array, phi: Array, *, diff_n: int = 0) -> Any:
    """The spherical harmonic of degree n and order m at the polar angle θ and the azimuth φ. DLMF 14.30.1.

    With `diff_n`, a tuple of it, its gradient (…, 2), and its Hessian (…, 2, 2).
    """
    n, m, theta, phi = [operand(x) for x in (n, m, theta, phi)]
    if _order(diff_n) == 0:
        return harmonic(n, m, theta, phi)
    turn = exp(1j * m * phi)
    w = [part * turn for part in _outputs(ops.sph_legendre_p[diff_n], n, m, theta)]
    slope = 1j * m
    gradient = stack([w[1], slope * w[0]], -1)
    if diff_n == 1:
        return w[0], gradient
    mixed = slope * w[1]
    return w[0], gradient, stack([stack([w[2], mixed], -1), stack([mixed, slope * slope * w[0]], -1)], -1)


def sph_harm_y_all(n: int, m: int, theta: Array, phi: Array, *, diff_n: int = 0) -> Any:
    """`sph_harm_y` of all degrees up to n and orders up to ±m, along the first two axes; zero where |m| > n."""
    theta, phi = operand(theta), operand(phi)
    both = np.empty(np.broadcast_shapes(shape_of(theta), shape_of(phi)))
    degrees, orders = _degrees_and_orders(n, m, both)
    inside = abs(orders) <= degrees
    out = sph_harm_y(np.where(inside, degrees, 0), np.where(inside, orders, 0), theta, phi, diff_n=diff_n)
    outs = [out] if diff_n == 0 else list(out)
    masked = []
    for i, part in enumerate(outs):
        masked.append(where(inside.reshape(*inside.shape, *[1] * i), part, 0.0 * part))
    return masked[0] if diff_n == 0 else tuple(masked)
