"""Densities, distribution functions and quantiles whose derivatives follow from the logarithm of the density.

With L the logarithm of the density f, ∂f = f ∂L, computed at a scale at which it is finite even if f is not. The
logarithm of a tail is a sum over fixed nodes in logarithms, whose partials are averages of those of the density's
logarithm. So nothing underflows or cancels, however far out the tail is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import func
from func.interpreters.calls.custom_rules import with_tangents
from func.interpreters.core import Array, Tracer
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.scipy.stats.host_values import along

Function = Callable[..., Any]


def times_exp(factor: Array, exponent: Array) -> Array:
    """A factor times e to a power that may overflow or underflow alone; zero if no factor helps."""
    half = np.exp(exponent / 2)
    return np.where(half == 0, 0.0, half * np.where(half == 0, 0.0, factor) * half)


def with_slopes(value: Function, slope: Callable[[int, tuple[Array, ...]], Array], args: Sequence[Any]) -> Array:
    """value(*args), whose partial by the argument with an index is slope(index, args)."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    arrays: list[Any] = [x if type(x) is Tracer else np.asarray(x, float) for x in args]
    args = tuple([np.broadcast_to(x, shape) for x in arrays])

    def tangents(primals: Sequence[Array], outs: Sequence[Array], dots: Sequence[Any]) -> list[Any]:
        places = [i for i, dot in enumerate(dots) if dot is not None]
        return [sum([slope(i, tuple(primals)) * dots[i] for i in places], start=np.zeros(shape))]

    with np.errstate(all="ignore"):
        return with_tangents([value(*[func.stop_gradient(x) for x in args])], args, tangents)[0]


def by_one(f: Function, index: int, args: Sequence[Array]) -> Array:
    """The partial of an elementwise function by one argument."""
    dots = [np.ones(np.shape(x)) if i == index else None for i, x in enumerate(args)]
    return along(f, args, dots)


def density(logpdf: Function, pdf: Function, ends: Callable[[Sequence[Array]], tuple[Any, Any]]) -> Function:
    """The density by its logarithm; at finite ends of the support, where that is infinite, by a formula."""

    def inside(*args: Array) -> Array:
        def slope(index: int, args: tuple[Array, ...]) -> Array:
            return times_exp(by_one(logpdf, index, args), logpdf(*args))

        return with_slopes(lambda *args: np.exp(logpdf(*args)), slope, args)

    def method(x: Array, *shapes: Array) -> Array:
        low, high = ends(shapes)
        at_end = func.stop_gradient((x == low) | (x == high))
        if not is_abstract_value(at_end) and not np.any(at_end):
            return inside(x, *shapes)
        middle = interior(low, high)
        away = inside(np.where(at_end, middle, x), *shapes)
        return np.where(at_end, pdf(np.where(at_end, x, middle), *shapes), away)

    return method


def interior(low: Any, high: Any) -> Array:
    """A point inside the support that is not a point of symmetry."""
    low, high = [func.stop_gradient(np.asarray(end, float)) for end in (low, high)]
    below, above = np.isfinite(low), np.isfinite(high)
    a, b = np.where(below, low, 0.0), np.where(above, high, 0.0)
    return np.where(below & above, a + (b - a) * 0.3819, np.where(below, a + 0.618, np.where(above, b - 0.618, 0.618)))


@functools.cache
def _nodes() -> tuple[Array, Array, Array, Array]:
    """Nodes of (0, 1) and of (0, inf) and the logarithms of their weights.

    Source: H. Takahasi, M. Mori (1974), Double exponential formulas for numerical integration.
    """
    step = 1 / 32
    u = np.arange(-6.0, 6.0 + step / 2, step)
    bent, log_slope = np.pi / 2 * np.sinh(u), np.log(step * np.pi / 2 * np.cosh(u))
    log_unit, log_rest = -np.logaddexp(0, -2 * bent), -np.logaddexp(0, 2 * bent)
    return np.exp(log_unit), log_slope + np.log(2.0) + log_unit + log_rest, np.exp(bent), log_slope + bent


STEEP = 1e6
"""The change of the logarithm of the density over the size of a number beyond which no sum has digits."""


class Tails:
    """The tail of a distribution on the side of a point with the smaller probability."""

    def __init__(
        self,
        logpdf: Function,
        cdf: Function,
        quantile: Function,
        ends: Callable[[Sequence[Array]], tuple[Any, Any]],
    ) -> None:
        self.logpdf, self._cdf, self._quantile, self._ends = logpdf, cdf, quantile, ends

    def lower(self, x: Array, *shapes: Array) -> Array:
        """Whether it is the lower tail."""
        return self._cdf(*[func.stop_gradient(s) for s in (x, *shapes)]) < 0.5

    def ratio(self, x: Array, *shapes: Array) -> Array:
        """The logarithm of the probability of the tail over the density."""
        fixed = [func.stop_gradient(s) for s in (x, *shapes)]
        lower = self.lower(*fixed)
        quartiles = [self._quantile(np.asarray(q), *fixed[1:]) for q in (0.25, 0.5, 0.75)]
        reach = np.maximum(quartiles[2] - quartiles[0], np.abs(fixed[0] - quartiles[1]))
        slope = func.stop_gradient(by_one(self.logpdf, 0, fixed))
        falls = np.maximum(np.where(lower, slope, -slope), 0.0)
        steep = falls * np.abs(fixed[0]) >= STEEP
        width = np.where(steep | (falls * reach < 1), reach, 1 / np.where(falls > 0, falls, 1.0))
        value = self._by_sum(lower, width, *[np.where(steep, quartiles[1], x), *shapes])
        if not is_abstract_value(steep) and not np.any(steep):
            return value
        return np.where(steep, self._far_out(x, *shapes), value)

    def _far_out(self, x: Array, *shapes: Array) -> Array:
        """Where the density falls so fast that it differs between neighbouring numbers: two terms of the expansion."""

        def slope(*args: Array) -> Array:
            return by_one(self.logpdf, 0, args)

        first, second = slope(x, *shapes), by_one(slope, 0, (x, *shapes))
        curved = second / first / first
        return np.log1p(np.where(np.abs(curved) < 0.5, curved, 0.0)) - np.log(np.abs(first))

    def logarithm(self, *args: Array) -> Array:
        """The logarithm of the probability of the tail."""
        return self.logpdf(*args) + self.ratio(*args)

    def average(self, index: int, args: tuple[Array, ...]) -> Array:
        """The partial of the logarithm of the tail's probability by a shape: the mean of that of the density."""
        return by_one(self.ratio, index, args) + by_one(self.logpdf, index, args)

    def _by_sum(self, lower: Array, width: Array, x: Array, *shapes: Array) -> Array:
        fixed = func.stop_gradient(x)
        end = np.broadcast_to(np.where(lower, *self._ends(shapes)), np.shape(x))
        layered = func.stop_gradient(np.abs(end - x)) > 50 * width
        unit, unit_weight, half, half_weight = _nodes()
        bounded = ~layered[..., None]
        end, start, width = end[..., None], x[..., None], width[..., None]
        stop = np.where(bounded, end, 0.0)
        sign = np.where(lower, -1.0, 1.0)[..., None]
        t = np.where(bounded, stop + (start - stop) * unit, start + sign * width * half)
        length = np.where(bounded, np.abs(start - stop), width)
        weight = np.log(length) + np.where(bounded, unit_weight, half_weight)
        wide = [s[..., None] for s in shapes]
        place, last = func.stop_gradient(t), func.stop_gradient(end)
        held = [func.stop_gradient(s) for s in wide]
        known = self.logpdf(place, *held) - self.logpdf(fixed[..., None], *held) + func.stop_gradient(weight)
        inside = np.isfinite(place) & (sign * (last - place) > 0)
        known = np.where(np.isfinite(known) & inside, known, -np.inf)
        top = np.max(known, axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        kept = known > top - 90
        t = np.where(kept, t, fixed[..., None])
        at = self.logpdf(x, *shapes)
        terms = np.exp(np.where(kept, self.logpdf(t, *wide) - at[..., None] + weight - top, -np.inf))
        return np.log(np.sum(terms, axis=-1)) + top[..., 0]

    def slope(self, name: str, index: int, args: tuple[Array, ...]) -> Array:
        """A partial of cdf, sf, logcdf or logsf."""
        sign = 1.0 if name.endswith("cdf") else -1.0
        if index == 0 and not name.startswith("log"):
            return times_exp(np.asarray(sign), self.logpdf(*args))
        lower, ratio = self.lower(*args), self.ratio(*args)
        density = self.logpdf(*args)
        tail = density + ratio
        rest = np.log1p(-np.exp(np.minimum(tail, -0.5)))
        is_own = lower == (sign > 0)
        if index == 0:
            return sign * np.where(is_own, np.exp(-ratio), times_exp(np.ones_like(tail), density - rest))
        average = self.average(index, args)
        if not name.startswith("log"):
            return times_exp(np.where(is_own, average, -average), tail)
        return np.where(is_own, average, -times_exp(average, tail - rest))

    def of_quantile(self, name: str, index: int, x: Array, shapes: Sequence[Array]) -> Array:
        """A partial of ppf or isf at the quantile."""
        args = (x, *shapes)
        if index == 0:
            return times_exp(np.asarray(1.0 if name == "ppf" else -1.0), -self.logpdf(*args))
        average = self.average(index, args)
        return np.where(self.lower(*args), -average, average) * np.exp(self.ratio(*args))
