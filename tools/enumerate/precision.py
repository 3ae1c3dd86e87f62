"""Precision: first and second partials of the elementwise primitives of NumPy and of reductions, at all magnitudes.

    python -m tools.enumerate precision --part one --complete
    python -m tools.enumerate precision --part two --time 10m

The bounds are those of the primitives' rows, `Elementwise.ulps`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from func.interpreters.primitives.elementwise import table
from tools.enumerate import _complex_rows, _reduction_rows
from tools.enumerate.exact_partials import Bound, Domain, Row, part

QUICK = 300

INF = math.inf
EDGES = (-1.0, 1.0)


def _row(name: str, exact: Callable[..., Any], *domains: Domain, **more: Any) -> Row:
    """The row of a primitive, with the primitive's own bound."""
    primitive = getattr(table, name)
    bound = Bound(getattr(primitive, "ulps", 16))
    return Row(name, getattr(np, name), exact, domains or (Domain(),), (bound, bound), **more)


def _trunc(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x))


def _cbrt(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


LN2 = functools.partial(mpmath.log, 2)
LN10 = functools.partial(mpmath.log, 10)


def _sech2(x: Any) -> Any:
    return mpmath.sech(x) ** 2


def _sinc_first(x: Any) -> Any:
    u = mpmath.pi * x
    return mpmath.pi * (mpmath.cos(u) / u - mpmath.sin(u) / u**2) if x else mpf(0)


def _sinc_second(x: Any) -> Any:
    u = mpmath.pi * x
    if not x:
        return -(mpmath.pi**2) / 3
    return mpmath.pi**2 * (-mpmath.sin(u) / u - 2 * mpmath.cos(u) / u**2 + 2 * mpmath.sin(u) / u**3)


def _i0_second(x: Any) -> Any:
    return (mpmath.besseli(0, x) + mpmath.besseli(2, x)) / 2


def _one(first: Callable[..., Any], second: Callable[..., Any]) -> dict[tuple[int, ...], Callable[..., Any]]:
    return {(1,): first, (2,): second}


def _two(*forms: Callable[..., Any]) -> dict[tuple[int, ...], Callable[..., Any]]:
    return dict(zip([(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)], forms, strict=True))


def nothing(*point: Any) -> Any:
    """A derivative that vanishes."""
    return mpf(0)


def one(*point: Any) -> Any:
    """A derivative of one."""
    return mpf(1)


def minus_one(*point: Any) -> Any:
    """A derivative of minus one."""
    return mpf(-1)


POSITIVE = Domain(0.0)
AROUND_ONE = Domain(0.0, near=(1.0,))
INSIDE = Domain(-1.0, 1.0, near=(-1.0, 1.0))

UNARY = (
    _row("reciprocal", lambda x: 1 / x, closed=_one(lambda x: -1 / x**2, lambda x: 2 / x**3)),
    _row("positive", lambda x: x, closed=_one(one, nothing)),
    _row("negative", lambda x: -x, closed=_one(minus_one, nothing)),
    _row("absolute", abs, closed=_one(mpmath.sign, nothing)),
    _row("square", lambda x: x * x, closed=_one(lambda x: 2 * x, lambda x: mpf(2))),
    _row("sqrt", mpmath.sqrt, POSITIVE, closed=_one(lambda x: 0.5 * x**-0.5, lambda x: -0.25 / (x * mpmath.sqrt(x)))),
    _row(
        "cbrt",
        _cbrt,
        closed=_one(lambda x: 1 / (3 * _cbrt(x) ** 2), lambda x: -2 / (9 * x * _cbrt(x) ** 2)),
    ),
    _row("exp", mpmath.exp, closed=_one(mpmath.exp, mpmath.exp)),
    _row("exp2", lambda x: mpf(2) ** x, closed=_one(lambda x: mpf(2) ** x * LN2(), lambda x: mpf(2) ** x * LN2() ** 2)),
    _row("expm1", mpmath.expm1, closed=_one(mpmath.exp, mpmath.exp)),
    _row("log", mpmath.log, AROUND_ONE, closed=_one(lambda x: 1 / x, lambda x: -1 / x**2)),
    _row("log2", mpmath.log, AROUND_ONE, closed=_one(lambda x: 1 / (x * LN2()), lambda x: -1 / (x**2 * LN2()))),
    _row("log10", mpmath.log, AROUND_ONE, closed=_one(lambda x: 1 / (x * LN10()), lambda x: -1 / (x**2 * LN10()))),
    _row(
        "log1p",
        mpmath.log1p,
        Domain(-1.0, near=(-1.0,)),
        closed=_one(lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    ),
    _row("sin", mpmath.sin, closed=_one(mpmath.cos, lambda x: -mpmath.sin(x))),
    _row("cos", mpmath.cos, closed=_one(lambda x: -mpmath.sin(x), lambda x: -mpmath.cos(x))),
    _row(
        "tan",
        mpmath.tan,
        Domain(near=(math.pi / 2,)),
        closed=_one(lambda x: mpmath.sec(x) ** 2, lambda x: 2 * mpmath.tan(x) * mpmath.sec(x) ** 2),
    ),
    _row(
        "arcsin",
        mpmath.asin,
        INSIDE,
        closed=_one(lambda x: 1 / mpmath.sqrt(1 - x**2), lambda x: x / mpmath.sqrt(1 - x**2) ** 3),
    ),
    _row(
        "arccos",
        mpmath.acos,
        INSIDE,
        closed=_one(lambda x: -1 / mpmath.sqrt(1 - x**2), lambda x: -x / mpmath.sqrt(1 - x**2) ** 3),
    ),
    _row("arctan", mpmath.atan, closed=_one(lambda x: 1 / (1 + x**2), lambda x: -2 * x / (1 + x**2) ** 2)),
    _row("sinh", mpmath.sinh, Domain(near=(0.0,), extra=(710.2, 89.2)), closed=_one(mpmath.cosh, mpmath.sinh)),
    _row("cosh", mpmath.cosh, Domain(near=(0.0,), extra=(710.2, 89.2)), closed=_one(mpmath.sinh, mpmath.cosh)),
    _row(
        "tanh",
        mpmath.tanh,
        Domain(near=(0.0,), extra=(1.5, 9.0, 19.1, 44.0, 354.8)),
        closed=_one(_sech2, lambda x: -2 * mpmath.tanh(x) * _sech2(x)),
    ),
    _row(
        "arcsinh",
        mpmath.asinh,
        closed=_one(lambda x: 1 / mpmath.sqrt(x**2 + 1), lambda x: -x / mpmath.sqrt(x**2 + 1) ** 3),
    ),
    _row(
        "arccosh",
        mpmath.acosh,
        Domain(1.0, near=(1.0,)),
        closed=_one(lambda x: 1 / mpmath.sqrt(x**2 - 1), lambda x: -x / mpmath.sqrt(x**2 - 1) ** 3),
    ),
    _row("arctanh", mpmath.atanh, INSIDE, closed=_one(lambda x: 1 / (1 - x**2), lambda x: 2 * x / (1 - x**2) ** 2)),
    _row("deg2rad", lambda x: x * mpmath.pi / 180, closed=_one(lambda x: mpmath.pi / 180, nothing)),
    _row("rad2deg", lambda x: x * 180 / mpmath.pi, closed=_one(lambda x: 180 / mpmath.pi, nothing)),
)
"""Rows of one operand."""


def _integer(y: Any) -> bool:
    return float(y).is_integer()


def _log_power(x: Any, y: Any) -> Any:
    return x**y * mpmath.log(x)


def _share(x: Any, y: Any) -> Any:
    return 1 / (1 + mpmath.exp(y - x))


def _share2(x: Any, y: Any) -> Any:
    return 1 / (1 + mpf(2) ** (y - x))


def _both(x: Any, y: Any) -> Any:
    return _share(x, y) * _share(y, x)


def _both2(x: Any, y: Any) -> Any:
    return _share2(x, y) * _share2(y, x) * LN2()


def _ball(x: Any, y: Any) -> Any:
    return x * x + y * y


def _cube(x: Any, y: Any) -> Any:
    return mpmath.sqrt(_ball(x, y)) ** 3


POWER = _two(
    lambda x, y: y * x ** (y - 1),
    _log_power,
    lambda x, y: y * (y - 1) * x ** (y - 2),
    lambda x, y: x ** (y - 1) * (1 + y * mpmath.log(x)),
    lambda x, y: x**y * mpmath.log(x) ** 2,
)
POWER_TERMS = {(1, 1): lambda x, y: x ** (y - 1) * (1 + abs(y * mpmath.log(x)))}
"""1 + y log x has a zero, around which the digits of the logarithm decide."""
EXPONENTS = Domain(near=(1.0, 2.0), extra=(3.0, 0.3, 1 / 3, -0.7, 1e16))


def _selected(first: Callable[..., bool]) -> dict[tuple[int, ...], Callable[..., Any]]:
    return _two(lambda x, y: mpf(first(x, y)), lambda x, y: mpf(not first(x, y)), nothing, nothing, nothing)


BINARY = (
    _row("add", lambda x, y: x + y, Domain(), Domain(), closed=_two(one, one, nothing, nothing, nothing)),
    _row("subtract", lambda x, y: x - y, Domain(), Domain(), closed=_two(one, minus_one, nothing, nothing, nothing)),
    _row(
        "multiply",
        lambda x, y: x * y,
        Domain(),
        Domain(),
        closed=_two(lambda x, y: y, lambda x, y: x, nothing, one, nothing),
    ),
    _row(
        "divide",
        lambda x, y: x / y,
        Domain(),
        Domain(),
        closed=_two(
            lambda x, y: 1 / y, lambda x, y: -x / y**2, nothing, lambda x, y: -1 / y**2, lambda x, y: 2 * x / y**3
        ),
    ),
    _row("power", lambda x, y: x**y, AROUND_ONE, EXPONENTS, closed=POWER, terms=POWER_TERMS),
    _row("float_power", lambda x, y: x**y, AROUND_ONE, EXPONENTS, closed=POWER, terms=POWER_TERMS, dtypes=("float64",)),
    _row(
        "remainder",
        lambda x, y: x - y * mpmath.floor(x / y),
        Domain(),
        Domain(),
        closed=_two(one, lambda x, y: -mpmath.floor(x / y), nothing, nothing, nothing),
        where=lambda x, y: abs(x / y) < 2.0**20 and not _integer(x / y),
    ),
    _row(
        "fmod",
        lambda x, y: x - y * _trunc(x / y),
        Domain(),
        Domain(),
        closed=_two(one, lambda x, y: -_trunc(x / y), nothing, nothing, nothing),
        where=lambda x, y: abs(x / y) < 2.0**20 and not _integer(x / y),
    ),
    *[
        _row(
            name,
            lambda x, y: max(x, y),
            Domain(),
            Domain(),
            closed=_selected(lambda x, y, sign=sign: sign * (x - y) > 0),
            where=lambda x, y: x != y,
        )
        for name, sign in {"maximum": 1, "fmax": 1, "minimum": -1, "fmin": -1}.items()
    ],
    _row(
        "copysign",
        lambda x, y: abs(x) * mpmath.sign(y),
        Domain(),
        Domain(),
        by=(0,),
        closed={(1, 0): lambda x, y: mpmath.sign(x) * mpmath.sign(y), (2, 0): nothing},
    ),
    _row(
        "logaddexp",
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        Domain(-1e30, 1e30),
        Domain(-1e30, 1e30, near=(0.0,), extra=(36.0, -37.5, 40.0, -100.0)),
        closed=_two(_share, lambda x, y: _share(y, x), _both, lambda x, y: -_both(x, y), _both),
    ),
    _row(
        "logaddexp2",
        lambda x, y: mpmath.log(mpf(2) ** x + mpf(2) ** y) / LN2(),
        Domain(-1e30, 1e30),
        Domain(-1e30, 1e30, near=(0.0,), extra=(52.0, -53.5, 60.0, -100.0)),
        closed=_two(_share2, lambda x, y: _share2(y, x), _both2, lambda x, y: -_both2(x, y), _both2),
    ),
    _row(
        "hypot",
        lambda x, y: mpmath.sqrt(_ball(x, y)),
        Domain(),
        Domain(),
        closed=_two(
            lambda x, y: x / mpmath.sqrt(_ball(x, y)),
            lambda x, y: y / mpmath.sqrt(_ball(x, y)),
            lambda x, y: y * y / _cube(x, y),
            lambda x, y: -x * y / _cube(x, y),
            lambda x, y: x * x / _cube(x, y),
        ),
    ),
    _row(
        "arctan2",
        mpmath.atan2,
        Domain(),
        Domain(),
        closed=_two(
            lambda x, y: y / _ball(x, y),
            lambda x, y: -x / _ball(x, y),
            lambda x, y: -2 * x * y / _ball(x, y) ** 2,
            lambda x, y: (x - y) * (x + y) / _ball(x, y) ** 2,
            lambda x, y: 2 * x * y / _ball(x, y) ** 2,
        ),
    ),
)
"""Rows of two operands."""


def _angle(x: Any, y: Any) -> Any:
    return np.angle(y + 1j * x)


COMPOSED = (
    Row(
        "1e250 * reciprocal(y)",
        lambda y: 1e250 * np.reciprocal(y),
        lambda y: mpf(1e250) / y,
        (Domain(extra=(1e200,)),),
        closed={(1,): lambda y: -mpf(1e250) / y**2},
        dtypes=("float64",),
        modes=("reverse", "compiled"),
        second=False,
    ),
    Row(
        "1 / exp(x)",
        lambda x: 1 / np.exp(x),
        lambda x: mpmath.exp(-x),
        (Domain(-700.0, 700.0, extra=(400.0,)),),
        closed={(1,): lambda x: -mpmath.exp(-x)},
        dtypes=("float64",),
        modes=("forward",),
        second=False,
    ),
    Row(
        "1 / (1 + exp(-x))",
        lambda x: 1 / (1 + np.exp(-x)),
        lambda x: 1 / (1 + mpmath.exp(-x)),
        (Domain(-85.0, 85.0, extra=(-50.0,)),),
        closed={(1,): lambda x: 1 / (2 + mpmath.exp(x) + mpmath.exp(-x))},
        modes=("forward",),
        second=False,
    ),
    Row(
        "log1p(x * x)",
        lambda x: np.log1p(x * x),
        lambda x: mpmath.log1p(x * x),
        (Domain(extra=(1e100,)),),
        closed=_one(lambda x: 2 * x / (1 + x * x), lambda x: 2 * (1 - x * x) / (1 + x * x) ** 2),
        terms={(2,): lambda x: 6 * (1 + x * x) / (1 + x * x) ** 2},
        where=lambda x: abs(x) < 1e9 or abs(x) == 1e100,
    ),
    Row(
        "angle(y + i x)",
        _angle,
        mpmath.atan2,
        (Domain(), Domain()),
        closed=BINARY[-1].closed,
        by=(0, 1),
        second=False,
    ),
)
"""Functions of several primitives whose derivatives need a factor after the other."""


PARTS = (
    part("one", UNARY),
    part("two", BINARY),
    part("complex", _complex_rows.ROWS),
    part("composed", COMPOSED),
    part("reductions", _reduction_rows.ROWS),
)
