"""Idioms of Python and NumPy that numeric code mixes: conversions, containers, builtins, decorators, in-place work."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import itertools
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.support.natural_code import ALL_BUT_VMAP, Row


def validated(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that converts and checks all arguments."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arrays = [np.asanyarray(a, dtype=float) for a in args]
        for i, a in enumerate(arrays):
            if not np.isfinite(a).all():
                raise ValueError(f"argument {i} of {f.__name__} is not finite: {a}")
        out = f(*arrays, **kwargs)
        return out if np.ndim(out) else out[()]

    return wrapper


@validated
def softplus(x: Any, beta: float = 1.0) -> Any:
    return np.where(beta * x > 20, x, np.log1p(np.exp(beta * x)) / beta)


def scalar_or_array(x: Any) -> Any:
    scalar_input = False
    x = np.asarray(x)
    if x.ndim == 0:
        x = x[None]
        scalar_input = True
    ret = np.exp(-(x**2))
    if scalar_input:
        return np.squeeze(ret)
    return ret


def filled_by_cases(x: Any) -> Any:
    out = np.full(x.shape, np.nan)
    small = np.abs(x) < 0.5
    out[small] = x[small] - x[small] ** 3 / 6
    out[~small] = np.sin(x[~small])
    if np.isnan(out).any():
        raise FloatingPointError("some elements are not set")
    return out


def filled_like(x: Any) -> Any:
    out = np.empty_like(x, dtype=float)
    for idx, value in np.ndenumerate(x):
        out[idx] = value**2 if value > 0 else -value
    return out


def accumulate_in_place(x: Any, y: Any) -> Any:
    total = np.array(x, copy=True)
    total += y
    total *= 2
    total -= total.mean()
    total /= np.abs(total).max()
    np.multiply(total, y, out=total)
    return total


def grown_list(x: Any, limit: Any) -> Any:
    result: Any = np.array([])
    for v in x:
        if v > limit:
            result = np.append(result, v * limit)
    return result.sum()


def padded_loop(x: Any) -> Any:
    y = np.zeros(2 * len(x) + 1)
    y[1::2] = x
    y[2:-1:2] = 0.5 * (x[1:] + x[:-1])
    y[0], y[-1] = y[1], y[-2]
    return y


def builtins_on_elements(x: Any) -> Any:
    ordered = sorted(x)
    biggest, smallest = max(x), min(x)
    return sum(x) + biggest * smallest + ordered[1] ** 2 + abs(ordered[0] - 3) + round(2.0, 1) * pow(x[0], 2)


def ranked(x: Any) -> Any:
    pairs = sorted(enumerate(x), key=operator.itemgetter(1), reverse=True)
    return np.array([v / (i + 1) for i, (_, v) in enumerate(pairs)])


def windowed(x: Any) -> Any:
    window: collections.deque[Any] = collections.deque(maxlen=3)
    means = []
    for v in x:
        window.append(v)
        means.append(sum(window) / len(window))
    return np.asarray(means)


def grouped(x: Any) -> Any:
    bins = collections.defaultdict(list)
    for i, v in enumerate(x):
        bins["even" if i % 2 == 0 else "odd"].append(v)
    return {k: np.prod(v) for k, v in bins.items()}


def pairwise_products(x: Any) -> Any:
    return np.array([a * b for a, b in itertools.combinations(x, 2)])


def fibonacci_like(x: Any, n: int = 6) -> Any:
    @functools.cache
    def term(k: int) -> Any:
        return x if k < 2 else term(k - 1) + 0.3 * term(k - 2)

    return term(n)


def composed(x: Any) -> Any:
    steps = [np.sin, lambda t: t * t, functools.partial(np.multiply, 3.0), np.tanh]
    return functools.reduce(lambda value, f: f(value), steps, x)


def halving(x: Any, tol: float = 1e-3) -> Any:
    def terms() -> Iterator[Any]:
        t = x
        while abs(t) > tol:
            yield t
            t = -t * x / 2

    return sum(terms())


def adaptive_simpson(f: Callable[[Any], Any], a: Any, b: Any, eps: float = 1e-6, depth: int = 6) -> Any:
    m = (a + b) / 2
    fa, fm, fb = f(a), f(m), f(b)
    whole = (b - a) / 6 * (fa + 4 * fm + fb)
    left = (m - a) / 6 * (fa + 4 * f((a + m) / 2) + fm)
    right = (b - m) / 6 * (fm + 4 * f((m + b) / 2) + fb)
    if depth <= 0 or abs(left + right - whole) < 15 * eps:
        return left + right + (left + right - whole) / 15
    return adaptive_simpson(f, a, m, eps / 2, depth - 1) + adaptive_simpson(f, m, b, eps / 2, depth - 1)


def simpson_gauss(width: Any) -> Any:
    return adaptive_simpson(lambda t: np.exp(-(t**2) / width), 0.0, 1.5)


def copies(x: Any) -> Any:
    state = {"x": x, "history": [x]}
    other = copy.deepcopy(state)
    other["x"] = other["x"] * 2
    other["history"].append(other["x"])
    return np.stack(other["history"]) - state["x"]


def suppressed(x: Any) -> Any:
    out = x
    with contextlib.suppress(np.linalg.LinAlgError), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        out = np.linalg.inv(np.outer(x, x) + np.eye(len(x))) @ x
    return out


def tried(x: Any) -> Any:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        w, v = np.linalg.eigh(x)
        return v * np.sqrt(np.maximum(w, 1e-3))


def by_table(x: Any, kind: Any = 1) -> Any:
    table = np.array([[0.1, 0.4, 0.9], [0.2, 0.5, 1.1]])
    level = np.digitize(x, [0.5, 1.5])
    return x * table[kind, level]


def interpolated_rows(x: Any) -> Any:
    grid = np.linspace(0.0, 3.0, 7)
    values = np.vstack([np.interp(grid, [0, 1, 3], [0.0, v, 2 * v]) for v in x])
    return values.mean(axis=0)


class Lazy:
    """An object whose numbers are computed when they are asked for."""

    def __init__(self, data: Any, **options: Any) -> None:
        self.data = data
        self.__dict__.update(options)

    @functools.cached_property
    def mean(self) -> Any:
        return self.data.mean()

    @property
    def centred(self) -> Any:
        return self.data - self.mean

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: Any) -> Any:
        return self.centred[i] * getattr(self, "scale", 1.0)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def lazy_moments(x: Any) -> Any:
    lazy = Lazy(x, scale=2.0)
    return np.array([v**3 for v in lazy]).sum() / len(lazy)


def typed(x: Any) -> Any:
    if isinstance(x, np.ndarray) and np.issubdtype(x.dtype, np.floating):
        return x.astype(np.complex128).real * np.finfo(x.dtype).max ** 0 + np.float32(0.5)
    return np.asarray(x, float) * -1


def reported(x: Any) -> Any:
    lines = [f"{i}: {v:8.3f} ({v!s:.4})" for i, v in enumerate(x)]
    if len("\n".join(lines)) == 0:
        raise ValueError(f"nothing to report for {x!r}")
    return x.dot(x)


def by_iterator(x: Any) -> Any:
    it = iter(x)
    first = next(it)
    rest = list(it)
    return np.array([first - v for v in rest]), np.fromiter((v * first for v in rest), dtype=float)


def integer_power(x: Any) -> Any:
    n = int(np.ceil(x))
    result = 1.0
    while n:
        if n & 1:
            result = result * x
        x = x * x
        n >>= 1
    return result


def as_float_first(x: Any) -> Any:
    return float(x) ** 2


def as_list(x: Any) -> Any:
    return np.array([v**2 for v in x.tolist()])


V = np.array([0.4, 1.3, 0.8, 2.2])
ROWS = [
    Row(softplus, V),
    Row(softplus, 0.7),
    Row(scalar_or_array, 0.7),
    Row(filled_by_cases, V, intercept=True),
    Row(filled_like, V.reshape(2, 2)),
    Row(accumulate_in_place, V, np.array([0.5, 0.2, 1.1, 0.9])),
    Row(grown_list, V, 0.9),
    Row(padded_loop, V, intercept=True),
    Row(builtins_on_elements, V),
    Row(ranked, V),
    Row(windowed, V),
    Row(grouped, V),
    Row(pairwise_products, V),
    Row(fibonacci_like, 0.7),
    Row(composed, V),
    Row(halving, 0.7),
    Row(simpson_gauss, 0.7),
    Row(copies, V),
    Row(suppressed, V),
    Row(tried, np.array([[2.0, 0.3], [0.3, 1.0]])),
    Row(by_table, V),
    Row(interpolated_rows, V[:2]),
    Row(lazy_moments, V),
    Row(typed, V),
    Row(reported, V),
    Row(by_iterator, V),
    Row(integer_power, 1.3),
    Row(as_float_first, 1.3, refused=ALL_BUT_VMAP, word="Keep it an array"),
    Row(as_list, V, refused=ALL_BUT_VMAP, word="Keep it an array"),
]
