"""Rows of complex numbers: derivatives of holomorphic functions, and partials of moduli, phases and parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from tools.enumerate.exact_partials import Domain, Row

DTYPES = ("complex128", "complex64")
COMPONENTS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -20.0, 1e-3, -1e-10, 1e-25, 1e-160, 1e-300, 1e10, 1e25, -1e160, 1e300)
"""Real and imaginary parts: zeros of both signs, ordinary, tiny and huge numbers."""
CLOSE = tuple([sign * (1 + side * 2.0**-k) for sign in (1, -1) for side in (1, -1) for k in (8, 20, 45)])
"""Numbers next to 1 and -1."""


def _plane(parts: tuple[float, ...] = COMPONENTS, *more: complex) -> Domain:
    return Domain(points=(*[complex(x, y) for x in parts for y in parts], *more))


def _beside(point: complex) -> list[complex]:
    """Numbers on the four sides of a point, at several distances, with zeros of both signs."""
    return [
        complex(point.real + x * size, point.imag + y * size)
        for size in (0.25, 2.0**-10, 2.0**-20, 2.0**-45)
        for x in (0.0, -0.0, 1.0, -1.0)
        for y in (0.0, -0.0, 1.0, -1.0)
        if x or y
    ]


PLANE = _plane()
AROUND_ONE = _plane(COMPONENTS, *_beside(1), *_beside(-1))
AROUND_I = _plane(COMPONENTS, *_beside(1j), *_beside(-1j))
ANGLES = _plane(
    COMPONENTS, *_beside(math.pi / 2), *[complex(x, y) for x in (0.5, 30.0) for y in (19.0, -40.0, 80.0, 300.0)]
)
NEAR_ZERO = _plane((0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, -1e-10, 1e-160))
"""Where 1 - tanh² keeps digits."""
TURNS = _plane(
    COMPONENTS, *_beside(1j * math.pi / 2), *[complex(y, x) for x in (0.5, 30.0) for y in (19.0, -40.0, 80.0)]
)


def _root(z: Any) -> Any:
    return mpmath.sqrt(z)


def _sine(z: Any) -> Any:
    """√(1 - z²) on the side of its cut on which z lies."""
    return _root(1 - z) * _root(1 + z)


def _hyperbolic(z: Any) -> Any:
    return _root(1 + 1j * z) * _root(1 - 1j * z)


def _wide(z: Any) -> Any:
    return _root(z - 1) * _root(z + 1)


LN2 = functools.partial(mpmath.log, 2)
LN10 = functools.partial(mpmath.log, 10)

FORMS: dict[str, tuple[Domain, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "reciprocal": (PLANE, lambda z: -1 / z**2, lambda z: 2 / z**3),
    "positive": (PLANE, lambda z: mpf(1), lambda z: mpf(0)),
    "negative": (PLANE, lambda z: mpf(-1), lambda z: mpf(0)),
    "square": (PLANE, lambda z: 2 * z, lambda z: mpf(2)),
    "sqrt": (PLANE, lambda z: 0.5 / _root(z), lambda z: -0.25 / (z * _root(z))),
    "exp": (PLANE, mpmath.exp, mpmath.exp),
    "exp2": (PLANE, lambda z: mpmath.exp(z * LN2()) * LN2(), lambda z: mpmath.exp(z * LN2()) * LN2() ** 2),
    "expm1": (PLANE, mpmath.exp, mpmath.exp),
    "log": (AROUND_ONE, lambda z: 1 / z, lambda z: -1 / z**2),
    "log2": (AROUND_ONE, lambda z: 1 / (z * LN2()), lambda z: -1 / (z**2 * LN2())),
    "log10": (AROUND_ONE, lambda z: 1 / (z * LN10()), lambda z: -1 / (z**2 * LN10())),
    "log1p": (AROUND_ONE, lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "sin": (ANGLES, mpmath.cos, lambda z: -mpmath.sin(z)),
    "cos": (ANGLES, lambda z: -mpmath.sin(z), lambda z: -mpmath.cos(z)),
    "tan": (ANGLES, lambda z: 1 / mpmath.cos(z) ** 2, lambda z: 2 * mpmath.sin(z) / mpmath.cos(z) ** 3),
    "arcsin": (AROUND_ONE, lambda z: 1 / _sine(z), lambda z: z / _sine(z) ** 3),
    "arccos": (AROUND_ONE, lambda z: -1 / _sine(z), lambda z: -z / _sine(z) ** 3),
    "arctan": (AROUND_I, lambda z: 1 / (1 + z**2), lambda z: -2 * z / (1 + z**2) ** 2),
    "sinh": (TURNS, mpmath.cosh, mpmath.sinh),
    "cosh": (TURNS, mpmath.sinh, mpmath.cosh),
    "tanh": (TURNS, lambda z: 1 / mpmath.cosh(z) ** 2, lambda z: -2 * mpmath.sinh(z) / mpmath.cosh(z) ** 3),
    "arcsinh": (AROUND_I, lambda z: 1 / _hyperbolic(z), lambda z: -z / _hyperbolic(z) ** 3),
    "arccosh": (AROUND_ONE, lambda z: 1 / _wide(z), lambda z: -z / _wide(z) ** 3),
    "arctanh": (AROUND_ONE, lambda z: 1 / (1 - z**2), lambda z: 2 * z / (1 - z**2) ** 2),
}
"""Where a function is tried, and its two derivatives."""
VALUES = {"exp2": lambda z: mpmath.exp(z * LN2())}
"""Functions of which NumPy's own value has lost digits."""
UNARY = tuple(
    [
        Row(
            name,
            getattr(np, name),
            VALUES.get(name, mpmath.sqrt),
            (domain,),
            closed={(1,): first, (2,): second},
            dtypes=DTYPES,
            inherits="NumPy computes exp(z log 2)" if name in VALUES else "",
        )
        for name, (domain, first, second) in FORMS.items()
    ]
)

FEW = _plane((0.0, -0.0, 1.0, -3.0, 1e-160, 1e160))
"""Numbers of pairs."""
EXPONENTS = Domain(points=(2.0, 1.0, 0.5, -1.0, 3.0, 1j, -0.25 + 2j, 1e-10 - 1e-10j, 0.0))

ORDERS = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]


def _two(*forms: Callable[..., Any]) -> dict[tuple[int, ...], Callable[..., Any]]:
    return dict(zip(ORDERS, forms, strict=True))


def _nothing(*point: Any) -> Any:
    return mpf(0)


def _one(*point: Any) -> Any:
    return mpf(1)


def _minus_one(*point: Any) -> Any:
    return mpf(-1)


POWER = _two(
    lambda x, y: y * x ** (y - 1),
    lambda x, y: x**y * mpmath.log(x),
    lambda x, y: y * (y - 1) * x ** (y - 2),
    lambda x, y: x ** (y - 1) * (1 + y * mpmath.log(x)),
    lambda x, y: x**y * mpmath.log(x) ** 2,
)


def _condition_of_power(x: Any, y: Any) -> Any:
    """NumPy's complex power is exp(y log x)."""
    return 1 + abs(y * mpmath.log(x))


BINARY = (
    *[
        Row(name, getattr(np, name), lambda x, y: x, (FEW, FEW), closed=closed, dtypes=DTYPES)
        for name, closed in {
            "add": _two(_one, _one, _nothing, _nothing, _nothing),
            "subtract": _two(_one, _minus_one, _nothing, _nothing, _nothing),
            "multiply": _two(lambda x, y: y, lambda x, y: x, _nothing, _one, _nothing),
            "divide": _two(
                lambda x, y: 1 / y,
                lambda x, y: -x / y**2,
                _nothing,
                lambda x, y: -1 / y**2,
                lambda x, y: 2 * x / y**3,
            ),
        }.items()
    ],
    *[
        Row(
            name,
            getattr(np, name),
            lambda x, y: x**y,
            (PLANE, EXPONENTS),
            closed=POWER,
            dtypes=DTYPES[:number],
            condition=_condition_of_power,
            where=lambda x, y: x != 0,
        )
        for name, number in {"power": 2, "float_power": 1}.items()
    ],
)

REALS = Domain(points=(0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -20.0, 1e-3, -1e-10, 1e-100, 1e10, 1e25, -1e160, 1e300))
"""Parts whose second partials are numbers."""


def _of_parts(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of a complex number as one of its real and imaginary parts."""

    def of_parts(x: Any, y: Any) -> Any:
        z = x.astype(np.result_type(x, np.complex64)) if isinstance(x, np.ndarray) else x + 0j
        return function(z + 1j * y)

    return of_parts


def _size(x: Any, y: Any) -> Any:
    return mpmath.sqrt(x * x + y * y)


MODULUS = _two(
    lambda x, y: x / _size(x, y),
    lambda x, y: y / _size(x, y),
    lambda x, y: y * y / _size(x, y) ** 3,
    lambda x, y: -x * y / _size(x, y) ** 3,
    lambda x, y: x * x / _size(x, y) ** 3,
)
PHASE = _two(
    lambda x, y: -y / _size(x, y) ** 2,
    lambda x, y: x / _size(x, y) ** 2,
    lambda x, y: 2 * x * y / _size(x, y) ** 4,
    lambda x, y: (y - x) * (y + x) / _size(x, y) ** 4,
    lambda x, y: -2 * x * y / _size(x, y) ** 4,
)
COSINE = {
    (1, 0): MODULUS[2, 0],
    (0, 1): MODULUS[1, 1],
    (2, 0): lambda x, y: -3 * x * y**2 / _size(x, y) ** 5,
    (1, 1): lambda x, y: y * (2 * x * x - y * y) / _size(x, y) ** 5,
    (0, 2): lambda x, y: x * (2 * y * y - x * x) / _size(x, y) ** 5,
}
"""Of x / √(x² + y²), the real part of the sign."""
COSINE_TERMS = {
    (1, 1): lambda x, y: abs(y) / _size(x, y) ** 3,
    (0, 2): lambda x, y: abs(x) / _size(x, y) ** 3,
}
"""Sizes without the factors that have a zero."""


def _is_no_zero(x: Any, y: Any) -> bool:
    return bool(x or y)


OF_PARTS = (
    Row("absolute", _of_parts(np.absolute), _size, (REALS, REALS), closed=MODULUS, where=_is_no_zero),
    Row("angle", _of_parts(np.angle), lambda x, y: mpmath.atan2(y, x), (REALS, REALS), closed=PHASE, where=_is_no_zero),
    Row(
        "sign",
        _of_parts(lambda z: np.sign(z).real),
        lambda x, y: x / _size(x, y),
        (REALS, REALS),
        closed=COSINE,
        terms=COSINE_TERMS,
        where=_is_no_zero,
    ),
    Row(
        "conjugate",
        _of_parts(lambda z: np.conjugate(z).imag),
        lambda x, y: -y,
        (REALS, REALS),
        closed=_two(_nothing, _minus_one, _nothing, _nothing, _nothing),
    ),
)
"""Functions of the parts of a complex number, which have no complex derivative."""

ROWS = (*UNARY, *BINARY, *OF_PARTS)
