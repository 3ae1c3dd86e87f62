"""Rows of reductions of three numbers: closed forms of gradients and Hessians, and bounds with their reasons.

A bound with `terms` is that of a sum whose terms cancel: the condition number of the derivative. A row that `inherits`
allows partials the error of NumPy's own value, whose squares and powers may leave the range of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import scipy.special
from mpmath import mpf

from tools.enumerate.exact_partials import Domain, Orders, Row

COUNT = 3
VALUES = Domain(points=(1.0, -0.75, 1 + 2.0**-20, 1e-10, -1e25, 1e100, -1e160, 1e-160, 0.0))
"""Ordinary, tiny and huge numbers, close ones, and zero."""
MIDDLE = Domain(points=(1.0, -0.75, 3.0, 1 + 2.0**-20, 1e-3, -1e3, 1e-8, 1e8, 0.0))
"""Numbers whose norm has a third power: on their way, second partials of roots of sums pass the inverse of it."""
MODEST = Domain(points=(1.0, -0.75, 3.0, 1 + 2.0**-20, 0.01, -30.0, 0.0))
"""Numbers whose powers have powers: the derivatives of sums of powers pass them."""
EXPONENTS = Domain(points=(0.0, 1.0, 40.0, 40.5, -80.0, 710.0, 1e5, 1e-10))
"""Logarithms of terms."""

Vector = Sequence[Any]
Element = Callable[..., Any]


def _units() -> list[Orders]:
    return [tuple([int(i == place) for i in range(COUNT)]) for place in range(COUNT)]


def _orders(i: int, j: int) -> Orders:
    return tuple([a + b for a, b in zip(_units()[i], _units()[j], strict=True)])


def _first(form: Element) -> dict[Orders, Element]:
    return {orders: lambda *x, i=i: form(x, i) for i, orders in enumerate(_units())}


def _second(form: Element) -> dict[Orders, Element]:
    return {_orders(i, j): lambda *x, i=i, j=j: form(x, i, j) for i in range(COUNT) for j in range(i, COUNT)}


def _row(
    name: str,
    reduce: Callable[[Any], Any],
    exact: Callable[[Vector], Any],
    gradient: Element,
    hessian: Element,
    domain: Domain = VALUES,
    terms: tuple[Element | None, Element | None] = (None, None),
    where: Callable[[Vector], bool] = lambda x: True,
    **more: Any,
) -> Row:
    """A row of a function of an array along its first axis."""
    sizes: dict[Orders, Element] = {}
    if terms[0] is not None:
        sizes |= _first(terms[0])
    if terms[1] is not None:
        sizes |= _second(terms[1])
    return Row(
        name,
        lambda *x: reduce(np.stack(x)),
        lambda *x: exact(x),
        (domain,) * COUNT,
        closed=_first(gradient) | _second(hessian),
        terms=sizes,
        where=lambda *x: where(x),
        **more,
    )


def _zero(x: Vector, i: int, j: int = 0) -> Any:
    return mpf(0)


def _same(i: int, j: int) -> int:
    return int(i == j)


def _others(x: Vector, *left_out: int) -> Any:
    return mpmath.fprod([value for k, value in enumerate(x) if k not in left_out])


def _mean(x: Vector) -> Any:
    return mpmath.fsum(x) / COUNT


def _largest(x: Vector) -> Any:
    return max([abs(value) for value in x])


def _has_no_zero(x: Vector) -> bool:
    return all([value != 0 for value in x])


def _has_no_tie(x: Vector) -> bool:
    return len({abs(value) for value in x}) == COUNT


def _selecting(choose: Callable[[Vector], Any], sign: Callable[[Any], Any] = lambda x: mpf(1)) -> Element:
    return lambda x, i: sign(x[i]) if x[i] == choose(x) else mpf(0)


def _selections(name: str, function: Any) -> Row:
    exact = max if "max" in name else min
    return _row(name, lambda z: function(z, axis=0), exact, _selecting(exact), _zero, where=_has_no_tie)


SUMS = {
    "sum": np.sum,
    "nansum": np.nansum,
    "cumsum": lambda z, axis: np.cumsum(z, axis)[-1],
    "add.reduce": np.add.reduce,
}
PRODUCTS = {
    "prod": np.prod,
    "nanprod": np.nanprod,
    "multiply.reduce": np.multiply.reduce,
    "cumprod": lambda z, axis: np.cumprod(z, axis)[-1],
    "nancumprod": lambda z, axis: np.nancumprod(z, axis)[-1],
    "multiply.accumulate": lambda z, axis: np.multiply.accumulate(z, axis)[-1],
}
MEANS = {"mean": np.mean, "nanmean": np.nanmean, "average": np.average}
EXTREMA = {"max": np.max, "min": np.min, "nanmax": np.nanmax, "nanmin": np.nanmin}
OVERFLOWS = "the product overflows or underflows"

LINEAR = (
    *[_row(n, lambda z, f=f: f(z, axis=0), mpmath.fsum, lambda x, i: mpf(1), _zero) for n, f in SUMS.items()],
    *[_row(n, lambda z, f=f: f(z, axis=0), _mean, lambda x, i: mpf(1) / 3, _zero) for n, f in MEANS.items()],
    *[_selections(name, function) for name, function in EXTREMA.items()],
    _row(
        "median",
        lambda z: np.median(z, axis=0),
        lambda x: sorted(x)[1],
        _selecting(lambda x: sorted(x)[1]),
        _zero,
        where=_has_no_tie,
    ),
    _row(
        "ptp",
        lambda z: np.ptp(z, axis=0),
        lambda x: max(x) - min(x),
        lambda x, i: mpf(int(x[i] == max(x)) - int(x[i] == min(x))),
        _zero,
        where=_has_no_tie,
    ),
)
PRODUCT_ROWS = tuple(
    [
        _row(
            name,
            lambda z, f=f: f(z, axis=0),
            mpmath.fprod,
            lambda x, i: _others(x, i),
            lambda x, i, j: mpf(0) if i == j else _others(x, i, j),
            inherits=OVERFLOWS,
        )
        for name, f in PRODUCTS.items()
    ]
)

BESIDE = (1e-150, 1e-150, 1e160, 1e160)
"""Factors of a number, the last of which have a product that is none."""


def _beside(x: Vector) -> Vector:
    return (*x, *map(mpf, BESIDE))


PRODUCT_ROWS += (
    _row(
        "prod beside others",
        lambda z: np.prod(np.concatenate([z, np.array(BESIDE)[:, None] + z[:1] * 0]), axis=0),
        lambda x: mpmath.fprod(_beside(x)),
        lambda x, i: _others(_beside(x), i),
        _zero,
        MODEST,
        where=_has_no_zero,
        inherits=OVERFLOWS,
        second=False,
        dtypes=("float64",),
    ),
)

CENTERED = "NumPy's variance subtracts the mean, and its squares overflow and underflow"


def _variance(x: Vector, ddof: int) -> Any:
    return mpmath.fsum([(value - _mean(x)) ** 2 for value in x]) / (COUNT - ddof)


def _variance_rows(name: str, function: Any, ddof: int) -> Row:
    n = COUNT - ddof
    return _row(
        f"{name} ddof={ddof}",
        lambda z: function(z, axis=0, ddof=ddof),
        lambda x: _variance(x, ddof),
        lambda x, i: 2 * (x[i] - _mean(x)) / n,
        lambda x, i, j: 2 * (_same(i, j) - mpf(1) / COUNT) / n,
        terms=(lambda x, i: 2 * _largest(x) / n, None),
    )


def _deviation(x: Vector, ddof: int) -> Any:
    return mpmath.sqrt(_variance(x, ddof))


def _deviation_rows(name: str, function: Any, ddof: int, second: bool) -> Row:
    n = COUNT - ddof

    def gradient(x: Vector, i: int) -> Any:
        return (x[i] - _mean(x)) / (n * _deviation(x, ddof))

    def hessian(x: Vector, i: int, j: int) -> Any:
        size = _deviation(x, ddof)
        return ((_same(i, j) - mpf(1) / COUNT) / n - gradient(x, i) * gradient(x, j)) / size

    def condition(x: Vector) -> Any:
        """How much larger the numbers are than their deviation."""
        return 1 + _largest(x) / _deviation(x, ddof)

    return _row(
        f"{name} ddof={ddof}{SECOND * second}",
        lambda z: function(z, axis=0, ddof=ddof),
        lambda x: _deviation(x, ddof),
        gradient,
        hessian,
        terms=(lambda x, i: condition(x), lambda x, i, j: condition(x) ** 2 / _deviation(x, ddof)),
        domain=MIDDLE if second else VALUES,
        where=lambda x: len(set(x)) > 1,
        inherits=CENTERED,
        second=second,
    )


SECOND = ", second partials"
SPREADS = (
    *[_variance_rows(n, f, ddof) for n, f in {"var": np.var, "nanvar": np.nanvar}.items() for ddof in (0, 1)],
    *[
        _deviation_rows(name, function, ddof, second)
        for name, function in {"std": np.std, "nanstd": np.nanstd}.items()
        for ddof in (0, 1)
        for second in (False, True)
    ],
)

SQUARES = "NumPy's squares and powers of elements overflow and underflow"


def _norm(x: Vector, p: Any) -> Any:
    return mpmath.fsum([abs(value) ** p for value in x]) ** (1 / p)


def _norm_row(name: str, function: Callable[[Any], Any], p: Any, domain: Domain, second: bool = True) -> Row:
    p, folds = mpf(p), name.startswith("hypot")

    def gradient(x: Vector, i: int) -> Any:
        return mpmath.sign(x[i]) * (abs(x[i]) / _norm(x, p)) ** (p - 1)

    def hessian(x: Vector, i: int, j: int) -> Any:
        size = _norm(x, p)
        own = (abs(x[i]) / size) ** (p - 2) if i == j else 0
        return (p - 1) / size * (own - gradient(x, i) * gradient(x, j))

    def sizes(x: Vector, i: int, j: int) -> Any:
        own = abs(p - 1) / _norm(x, p) * (abs(x[i]) / _norm(x, p)) ** (p - 2)
        return own if i == j or folds else 0  # of pairs, mixed partials are differences, too

    def where(x: Vector) -> bool:
        return _has_no_zero(x) if p != 2 else any([value != 0 for value in (x[:2] if folds else x)])

    return _row(
        name,
        function,
        lambda x: _norm(x, p),
        gradient,
        hessian,
        domain,
        terms=(None, sizes),
        where=where,
        inherits=SQUARES,
        second=second,
    )


EUCLIDEAN = {
    "norm": lambda z: np.linalg.norm(z, axis=0),
    "norm fro": lambda z: np.linalg.norm(z[None], "fro", axis=(0, 1)),
    "hypot.reduce": lambda z: np.hypot.reduce(z, axis=0),
}


NORMS = (
    _row(
        "norm 1",
        lambda z: np.linalg.norm(z, 1, axis=0),
        lambda x: mpmath.fsum([abs(value) for value in x]),
        lambda x, i: mpmath.sign(x[i]),
        _zero,
        where=_has_no_zero,
    ),
    *[
        _row(
            f"norm {order}",
            lambda z, order=order: np.linalg.norm(z, order, axis=0),
            lambda x, choose=choose: choose([abs(value) for value in x]),
            _selecting(lambda x, choose=choose: choose(x, key=abs), mpmath.sign),
            _zero,
            where=lambda x: _has_no_tie(x) and _has_no_zero(x),
        )
        for order, choose in {np.inf: max, -np.inf: min}.items()
    ],
    *[_norm_row(f"norm {p}", lambda z, p=p: np.linalg.norm(z, p, axis=0), p, MODEST) for p in (3, 4, 2.5, 0.5, -1, -2)],
    *[_norm_row(name, function, 2, VALUES, False) for name, function in EUCLIDEAN.items()],
    *[_norm_row(name + SECOND, function, 2, MIDDLE, True) for name, function in EUCLIDEAN.items()],
)


def _log_sum(x: Vector, base: Any = mpmath.e) -> Any:
    return mpmath.log(mpmath.fsum([base**value for value in x])) / mpmath.log(base)


def _part(x: Vector, i: int, base: Any = mpmath.e) -> Any:
    """The part of a term in the sum of exponentials."""
    return 1 / mpmath.fsum([base ** (value - x[i]) for value in x])


def _rest(x: Vector, i: int, base: Any = mpmath.e) -> Any:
    """The part of all other terms."""
    return mpmath.fsum([_part(x, k, base) for k in range(COUNT) if k != i])


def _turned(x: Vector, i: int, j: int, base: Any = mpmath.e) -> Any:
    """The derivative of a part."""
    return _part(x, i, base) * (_rest(x, i, base) if i == j else -_part(x, j, base))


def _apart(*x: Any) -> Any:
    """The condition number of exponentials of differences."""
    return 1 + max(x) - min(x)


def _magnitude(*x: Any) -> Any:
    """The condition number of a share in a sum of exponentials: all logarithms may be moved by their rounding."""
    return 1 + _largest(x)


def _log_sum_row(name: str, function: Callable[[Any], Any], base: Any = mpmath.e) -> Row:
    return _row(
        name,
        function,
        lambda x: _log_sum(x, base),
        lambda x, i: _part(x, i, base),
        lambda x, i, j: mpmath.log(base) * _turned(x, i, j, base),
        EXPONENTS,
        condition=_magnitude,
    )


def _softmax_second(x: Vector, i: int, j: int) -> Any:
    part, rest = [_part(x, k) for k in range(COUNT)], [_rest(x, k) for k in range(COUNT)]
    if i != j and 0 not in (i, j):
        return 2 * part[0] * part[i] * part[j]
    if i == j:
        return part[0] * (rest[0] if i == 0 else part[i]) * (rest[i] - part[i]) * (1 if i == 0 else -1)
    other = max(i, j)
    return part[0] * part[other] * (part[0] - rest[0])


def _softmax_terms(x: Vector, i: int, j: int) -> Any:
    """The size without the factor that has a zero."""
    other = max(i, j)
    if i != j and 0 not in (i, j):
        return 0
    return _part(x, 0) * (_rest(x, 0) if other == 0 else _part(x, other))


EXPONENTIALS = (
    _log_sum_row("logsumexp", lambda z: scipy.special.logsumexp(z, axis=0)),
    _log_sum_row("logaddexp.reduce", lambda z: np.logaddexp.reduce(z, axis=0)),
    _log_sum_row("logaddexp2.reduce", lambda z: np.logaddexp2.reduce(z, axis=0), 2),
    _row(
        "softmax",
        lambda z: scipy.special.softmax(z, axis=0)[0],
        lambda x: _part(x, 0),
        lambda x, i: _turned(x, i, 0),
        _softmax_second,
        EXPONENTS,
        terms=(None, _softmax_terms),
        condition=_apart,
    ),
    _row(
        "log_softmax",
        lambda z: scipy.special.log_softmax(z, axis=0)[0],
        lambda x: mpmath.log(_part(x, 0)),
        lambda x, i: _rest(x, 0) if i == 0 else -_part(x, i),
        lambda x, i, j: -_turned(x, i, j),
        EXPONENTS,
        condition=_apart,
    ),
)

ROWS = (*LINEAR, *PRODUCT_ROWS, *SPREADS, *NORMS, *EXPONENTIALS)
