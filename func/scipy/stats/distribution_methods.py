"""The public methods of SciPy's distributions on traced values; frozen distributions call them as well.

SciPy computes where its conditions hold and fills in the rest. Here every element is computed, those outside at a safe
point, and then selected. Outside the support derivatives are zero, and invalid parameters give NaN. A density at an
infinite argument is zero, also where SciPy's formula gives NaN there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import _distn_infrastructure as _infrastructure

import func
from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced
from func.interpreters.host.source import at_line
from func.scipy.kinds.plain_values import without_derivative
from func.scipy.stats import by_density, densities, standard


class Call(NamedTuple):
    """The arguments of a method: standardised argument, shapes, location, scale, and where all are valid."""

    x: Any
    shapes: tuple[Any, ...]
    loc: Any
    scale: Any
    valid: Any
    low: Any
    high: Any


def _parsed(dist: Any, args: Sequence[Any], kwds: dict[str, Any]) -> tuple[tuple[Any, ...], Any, Any, Any]:
    """Shapes, location and scale as SciPy reads them, and where SciPy accepts them."""
    shapes, loc, scale = dist._parse_args(*args, **kwds)
    shapes = tuple([np.asarray(s) for s in shapes])
    loc, scale = np.asarray(loc), np.asarray(scale)
    for name, value in (("loc", loc), ("scale", scale), *zip(dist_shapes(dist), shapes, strict=False)):
        if value.dtype.kind == "c":
            raise TypeError(f"{dist.name}: {name} is complex; distributions have real parameters{at_line()}")
    with np.errstate(all="ignore"):
        valid = standard.accepted(dist, shapes) & (scale > 0)
    return shapes, loc, scale, valid


def dist_shapes(dist: Any) -> list[str]:
    """The names of the shape parameters."""
    return [] if not dist.shapes else [name.strip() for name in dist.shapes.split(",")]


def _call(dist: Any, x: Any, args: Sequence[Any], kwds: dict[str, Any], standardise: bool = True) -> Call:
    shapes, loc, scale, valid = _parsed(dist, args, kwds)
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"{dist.name}: the argument is complex; distributions have real arguments{at_line()}")
    with np.errstate(all="ignore"):
        low, high = standard.support(dist, shapes)
        if standardise:
            x = (x - loc) / scale
    x = np.asarray(x, dtype=np.promote_types(x.dtype, np.float64))
    return Call(x, shapes, loc, scale, valid, low, high)


def selected(where: Any, dist: Any, name: str, x: Any, shapes: Sequence[Any], safe: Any) -> Any:
    """A standard method where a condition holds; elsewhere it runs on constants, to be replaced later."""
    shape = np.broadcast_shapes(np.shape(where), np.shape(x), *[np.shape(s) for s in shapes])
    where = np.broadcast_to(where, shape)
    x = np.where(where, x, safe)
    shapes = [_held(where, s) for s in shapes]
    with np.errstate(all="ignore"):
        return standard.method(dist, name)(x, *shapes)


def _held(where: Any, parameter: Any) -> Any:
    """A parameter that is a constant where a condition does not hold; integers stay integers."""
    if parameter.dtype.kind in "biu":
        return np.broadcast_to(parameter, np.shape(where))
    return np.where(where, parameter, func.stop_gradient(parameter))


def _out(x: Any) -> Any:
    return x[()] if isinstance(x, np.ndarray) else x


def _bad(dist: Any, *numbers: Any) -> Any:
    """SciPy's result for invalid arguments; if they are NaN, so are the derivatives."""
    lost: Any = 0.0
    for number in numbers:
        kept = np.where(np.isnan(number), number, 0.0)
        lost = lost + kept * kept
    return lost + dist.badvalue


def _at(dist: Any, name: str, c: Call, inside: Any, safe: Any, outside: Any) -> Any:
    """A method inside the support, a number outside of it, and SciPy's result for invalid arguments."""
    value = selected(inside, dist, name, c.x, c.shapes, safe)
    if name == "pdf":
        value = value / np.where(c.valid, c.scale, 1.0)
    elif name == "logpdf":
        value = value - np.log(np.where(c.valid, c.scale, 1.0))
    elif _is_discrete(dist) and not name.startswith("log"):
        value = np.where(value < 0, 0.0, np.where(value > 1, 1.0, value))
    return _out(np.where(inside, value, np.where(c.valid & ~np.isnan(c.x), outside, _bad(dist, c.x, *c.shapes))))


def _method(name: str, region: Callable[[Any, Call], Any], outside: Callable[[Call], Any]) -> Callable[..., Any]:
    """A method of continuous or discrete distributions that is computed in a region and is a number elsewhere."""
    is_discrete = region in (_mass_region, _step_region)
    call = _call_discrete if is_discrete else _call
    safe = _first if is_discrete else _interior

    def method(self: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        c = call(self, x, args, kwds)
        with np.errstate(all="ignore"):
            return _at(self, name, c, c.valid & region(self, c), safe(c), outside(c))

    return _named(method, f"rv_{'discrete' if is_discrete else 'continuous'}_{name}")


def _density_region(dist: Any, c: Call) -> Any:
    inside = intercepted_call(dist._support_mask)(c.x, *c.shapes)
    return inside if dist.name in densities.PERIODIC else inside & ~np.isinf(c.x)


def _open_region(dist: Any, c: Call) -> Any:
    return intercepted_call(dist._open_support_mask)(c.x, *c.shapes)


def _mass_region(dist: Any, c: Call) -> Any:
    inside = (c.x >= c.low) & (c.x <= c.high) & ~np.isinf(c.x)
    is_sample = isinstance(dist, _infrastructure.rv_sample)
    return inside if is_sample else inside & intercepted_call(dist._nonzero)(c.x, *c.shapes)


def _step_region(dist: Any, c: Call) -> Any:
    return (c.x >= c.low) & (c.x < c.high) & np.isfinite(c.x)


def _interior(c: Call) -> Any:
    """A point of the support."""
    return by_density.interior(c.low, c.high)


def _first(c: Call) -> Any:
    """An outcome of the support."""
    low, high = [func.stop_gradient(np.asarray(end, float)) for end in (c.low, c.high)]
    return np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))


def _always(value: float) -> Callable[[Call], float]:
    return lambda c: value


def _sides(below: float, above: float) -> Callable[[Call], Any]:
    return lambda c: np.where(c.x >= c.high, above, below)


def _quantile(name: str) -> Callable[..., Any]:
    def method(self: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        c = _call(self, q, args, kwds, standardise=False)
        with np.errstate(all="ignore"):
            valid = c.valid & (c.loc == c.loc)
            inside = valid & (c.x > 0) & (c.x < 1)
            value = selected(inside, self, name, c.x, c.shapes, 0.3819) * c.scale + c.loc
            low, high = c.low * c.scale + c.loc, c.high * c.scale + c.loc
            if name == "isf":
                low, high = high, low
            bad = _bad(self, c.x, c.loc, c.scale, *c.shapes)
            ends = np.where(c.x == 0, low, np.where(c.x == 1, high, bad))
            return _out(np.where(inside, value, np.where(valid, ends, bad)))

    return _named(method, f"rv_continuous_{name}")


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name.rsplit('_', 1)[0]}.{name.rsplit('_', 1)[1]} of scipy.stats on traced values."
    return function


rv_continuous_ppf, rv_continuous_isf = _quantile("ppf"), _quantile("isf")


def _support(self: Any, *args: Any, **kwds: Any) -> Any:
    """rv_generic.support on traced values."""
    shapes, loc, scale, valid = _parsed(self, args, kwds)
    low, high = standard.support(self, shapes)
    ends = [end * scale + loc for end in np.broadcast_arrays(low, high, valid, loc, scale)[:2]]
    return tuple([_out(np.where(valid, end, self.badvalue)) for end in ends])


def _statistics(dist: Any, shapes: Sequence[Any], moments: str) -> list[Any]:
    """Mean, variance, skewness and excess kurtosis of the standardised distribution, those requested."""
    found: Any = standard.statistics(dist, shapes, moments)
    mean, variance, skewness, kurtosis = found
    has_variance, has_skewness = [value is not None for value in (variance, skewness)]

    def raw(order: int) -> Any:
        return standard.moment(dist, order, shapes)

    if mean is None:
        mean = raw(1)
    if not has_variance and any([m in moments for m in "vsk"]):
        second = raw(2)
        variance = np.where(np.isinf(mean), np.inf, second - mean**2)
    third = None
    if not has_skewness and "s" in moments:
        third = (-mean * mean - 3 * variance) * mean + raw(3)
        skewness = third / np.power(variance, 1.5)
    if kurtosis is None and "k" in moments:
        if third is None:
            third = (
                skewness * np.power(variance, 1.5) if has_skewness else (-mean * mean - 3 * variance) * mean + raw(3)
            )
        fourth = ((-(mean**2) - 6 * variance) * mean - 4 * third) * mean + raw(4)
        kurtosis = fourth / variance**2.0 - 3.0
    return [mean, variance, skewness, kurtosis]


def _stats(self: Any, *args: Any, **kwds: Any) -> Any:
    """rv_generic.stats on traced values."""
    shapes, loc, scale, moments = self._parse_args_stats(*args, **kwds)
    if is_of_trials(self):
        shapes = (np.stack(np.broadcast_arrays(*shapes), axis=-1),)
    shapes, loc, scale, valid = _parsed(self, shapes, {"loc": loc, **({} if _is_discrete(self) else {"scale": scale})})
    valid = valid & (loc == loc)
    with np.errstate(all="ignore"):
        held = [_held(valid, s) for s in shapes]
        mean, variance, skewness, kurtosis = _statistics(self, held, moments)
        found = {"m": lambda: mean * scale + loc, "v": lambda: variance * scale * scale}
        found |= {"s": lambda: skewness, "k": lambda: kurtosis}
        outs = [np.where(valid, found[m](), self.badvalue) for m in "mvsk" if m in moments]
    outs = [_out(np.asarray(out, float)) for out in outs]
    return outs[0] if len(outs) == 1 else tuple(outs)


def is_of_trials(dist: Any) -> bool:
    """Whether its parameter is one array of probabilities, which SciPy splits into shapes."""
    return type(dist).__name__ == "poisson_binom_gen"


def _is_discrete(dist: Any) -> bool:
    return isinstance(dist, _infrastructure.rv_discrete)


def _entropy(self: Any, *args: Any, **kwds: Any) -> Any:
    """rv_generic.entropy on traced values."""
    shapes, loc, scale, valid = _parsed(self, args, kwds)
    valid = valid & (loc == loc)
    with np.errstate(all="ignore"):
        value = standard.entropy(self, [_held(valid, s) for s in shapes])
        return _out(np.where(valid, value + np.log(np.where(valid, scale, 1.0)), self.badvalue))


def _moment(self: Any, order: int, *args: Any, **kwds: Any) -> Any:
    """rv_generic.moment on traced values."""
    shapes, loc, scale, valid = _parsed(self, args, kwds)
    if np.floor(order) != order:
        raise ValueError("Moment must be an integer.")
    if order < 0:
        raise ValueError("Moment must be positive.")
    order = int(order)
    with np.errstate(all="ignore"):
        held = [_held(valid, s) for s in shapes]
        needed = {1: "m", 2: "v", 3: "vs", 4: "mvsk"}.get(order)
        given = (None,) * 4 if needed is None else standard.statistics(self, held, needed)

        def raw(k: int, *shapes: Any) -> Any:
            return standard.moment(self, k, shapes)

        total: Any = loc**order + np.zeros(np.shape(valid))
        for k in range(1, order + 1):
            term = math.comb(order, k) * scale**k * _infrastructure._moment_from_stats(k, *given, raw, held)
            total = total + (term if k == order else np.where(loc == 0, 0.0, term) * loc ** (order - k))
        return _out(np.where(valid, total, self.badvalue))


_distn_infrastructure_rv_generic_stats, _distn_infrastructure_rv_generic_entropy = _stats, _entropy
_distn_infrastructure_rv_generic_moment, _distn_infrastructure_rv_generic_support = _moment, _support


_outcome = without_derivative(
    "probabilities of a discrete distribution have no derivative by the outcome\n"
    "Differentiate by the parameters; write func.stop_gradient(k) for outcomes that are computed."
)


def _call_discrete(dist: Any, k: Any, args: Sequence[Any], kwds: dict[str, Any]) -> Call:
    shapes, loc, scale, valid = _parsed(dist, args, kwds)
    k = np.asarray(k)
    low, high = standard.support(dist, shapes)
    x = k - loc
    if x.dtype.kind == "f" and holds_traced(x):
        x = _outcome(x)
    return Call(np.asarray(x, dtype=np.promote_types(x.dtype, np.float64)), shapes, loc, scale, valid, low, high)


def _discrete_quantile(name: str) -> Callable[..., Any]:
    def method(self: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        shapes, loc, _, valid = _parsed(self, args, kwds)
        fixed = [func.stop_gradient(x) for x in (q, *shapes)]
        value = standard.discrete_quantile(self, name, *fixed)
        return _out(np.where(valid & (loc == loc), value + loc, _bad(self, loc, *shapes)))

    return _named(method, f"rv_discrete_{name}")


_CUMULATIVE = {
    "cdf": _sides(0.0, 1.0),
    "sf": _sides(1.0, 0.0),
    "logcdf": _sides(-np.inf, 0.0),
    "logsf": _sides(0.0, -np.inf),
}
"""Functions of both kinds of distributions, and their values outside of the support."""
globals().update({f"rv_continuous_{name}": _method(name, _open_region, rest) for name, rest in _CUMULATIVE.items()})
globals().update({f"rv_discrete_{name}": _method(name, _step_region, rest) for name, rest in _CUMULATIVE.items()})
rv_continuous_pdf = _method("pdf", _density_region, _always(0.0))
rv_continuous_logpdf = _method("logpdf", _density_region, _always(-np.inf))
rv_discrete_pmf = _method("pmf", _mass_region, _always(0.0))
rv_discrete_logpmf = _method("logpmf", _mass_region, _always(-np.inf))
rv_discrete_ppf, rv_discrete_isf = _discrete_quantile("ppf"), _discrete_quantile("isf")

__all__ = [name for name in globals() if name.startswith(("rv_", "_distn_infrastructure_rv_"))]
