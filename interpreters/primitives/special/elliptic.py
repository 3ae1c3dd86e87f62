"""Carlson's symmetric elliptic integrals and Jacobi's elliptic functions. DLMF 19.18 and 22.13.

Where two arguments of R_D are equal, one of them the last, none of SciPy's functions gives its first derivative. There
the derivatives of R_D and R_J are NaN.
"""

from __future__ import annotations

from func.interpreters.core import Array, Primitive
from func.interpreters.primitives.elementwise.table import equal, sqrt
from func.interpreters.primitives.special.builders import by_name
from func.interpreters.primitives.special.integrals import ellipkinc_dm
from func.interpreters.primitives.structural.shapes import full_like, where


def _degenerate(x: Array, y: Array, regular: Array, slope: Array) -> Array:
    """The regular rule, and where both arguments are equal its limit."""
    return where(equal(x, y), slope, regular)


def _apart(x: Array, y: Array) -> Array:
    """x - y, and one where they are equal."""
    gap = x - y
    return where(equal(gap, 0), full_like(gap, 1, ()), gap)


def _carlson_c_x(x: Array, y: Array, out: Array) -> Array:
    """(1/√x - R_C) / (2 (x - y)), and for equal arguments -R_D / 6."""
    regular = (1 / sqrt(x) - out) / (2 * _apart(x, y))
    return _degenerate(x, y, regular, elliprd(y, y, x) / -6)


def _carlson_c_y(x: Array, y: Array, out: Array) -> Array:
    """(R_C - √x/y) / (2 (x - y)), and for equal arguments -R_D / 3."""
    regular = (out - sqrt(x) / y) / (2 * _apart(x, y))
    aside = where(equal(x, y), y, 2 * y + x)  # so that the derivative is regular where this is not selected
    return _degenerate(x, y, regular, elliprd(x, y, aside) / -3)


elliprc: Primitive = by_name("elliprc", "x y", x=_carlson_c_x, y=_carlson_c_y)
elliprf: Primitive = by_name(
    "elliprf",
    "x y z",
    x=lambda x, y, z, out: elliprd(y, z, x) / -6,
    y=lambda x, y, z, out: elliprd(z, x, y) / -6,
    z=lambda x, y, z, out: elliprd(x, y, z) / -6,
)
"""DLMF 19.18.1."""


def _carlson_d_x(x: Array, y: Array, z: Array, out: Array) -> Array:
    """(R_D(x, y, z) - R_D(y, z, x)) / (2 (z - x)), from the Euler-Poisson equation. DLMF 19.18.4."""
    return (out - elliprd(y, z, x)) / (2 * (z - x))


elliprd: Primitive = by_name(
    "elliprd",
    "x y z",
    x=_carlson_d_x,
    y=lambda x, y, z, out: _carlson_d_x(y, x, z, out),
    z=lambda x, y, z, out: (-1.5 * out - x * _carlson_d_x(x, y, z, out) - y * _carlson_d_x(y, x, z, out)) / z,
)


def _carlson_g_x(x: Array, y: Array, z: Array, out: Array) -> Array:
    """A quarter of √(y / (x z)) - y/3 R_D(y, z, x) - (y - z)/3 R_D(x, y, z), from DLMF 19.21.10."""
    root = sqrt(y) / (sqrt(x) * sqrt(z))
    return (root - (y * elliprd(y, z, x) + (y - z) * elliprd(x, y, z)) / 3) / 4


elliprg: Primitive = by_name(
    "elliprg",
    "x y z",
    x=_carlson_g_x,
    y=lambda x, y, z, out: _carlson_g_x(y, z, x, out),
    z=lambda x, y, z, out: _carlson_g_x(z, x, y, out),
)


def _carlson_j_x(x: Array, y: Array, z: Array, p: Array, out: Array) -> Array:
    """(R_J(x, y, z, p) - R_D(y, z, x)) / (2 (p - x)), from the Euler-Poisson equation."""
    return (out - elliprd(y, z, x)) / (2 * (p - x))


def _carlson_j_p(x: Array, y: Array, z: Array, p: Array, out: Array) -> Array:
    """R_J is homogeneous of degree -3/2."""
    others = x * _carlson_j_x(x, y, z, p, out) + y * _carlson_j_x(y, z, x, p, out) + z * _carlson_j_x(z, x, y, p, out)
    return (-1.5 * out - others) / p


elliprj: Primitive = by_name(
    "elliprj",
    "x y z p",
    x=_carlson_j_x,
    y=lambda x, y, z, p, out: _carlson_j_x(y, z, x, p, out),
    z=lambda x, y, z, p, out: _carlson_j_x(z, x, y, p, out),
    p=_carlson_j_p,
)


def _jacobi_m(u: Array, m: Array, sn: Array, cn: Array, dn: Array, phi: Array) -> tuple[Array, ...]:
    """From F(φ, m) = u: ∂φ/∂m = -dn ∂F/∂m."""
    slope = -dn * ellipkinc_dm(phi, m)
    return cn * slope, -sn * slope, -(sn * sn + 2 * m * sn * cn * slope) / (2 * dn), slope


ellipj: Primitive = by_name(
    "ellipj",
    "u m",
    outs=4,
    u=lambda u, m, sn, cn, dn, phi: (cn * dn, -sn * dn, -m * sn * cn, dn),
    m=_jacobi_m,
)
"""sn, cn, dn and the amplitude. DLMF 22.13.1."""
