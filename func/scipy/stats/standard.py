"""The methods of standardised distributions on traced values, one function per method.

If SciPy's own private method (`_logpdf`, `_cdf`, ...) is NumPy code, it runs on the traced values. `densities.OWN` has
func's own formulas, which take its place. `densities.HOST` lists the methods that only SciPy itself can compute: their
derivatives follow from the density.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import _distn_infrastructure as _infrastructure

import func
from func.host.interception import intercepted_call
from func.interpreters.core import Array
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line
from func.scipy.stats import by_density, counting, densities, double_exponential, masking, masses
from func.scipy.stats.by_density import interior
from func.scipy.stats.host_values import RULES, Function, along, from_host

_GENERIC = (_infrastructure.rv_generic, _infrastructure.rv_continuous, _infrastructure.rv_discrete)


def method(dist: Any, name: str) -> Function:
    """A method of a distribution of location 0 and scale 1, as a function of (x, *shapes) inside the support."""
    key = _key(type(dist))
    if not isinstance(dist, _infrastructure.rv_continuous) or not key or not _has_logpdf(dist):
        return formula(dist, name)
    if name == "pdf" and "logpdf" in densities.OWN.get(key, {}) and key not in densities.BY_FORMULA:
        return by_density.density(method(dist, "logpdf"), formula(dist, name), lambda shapes: support(dist, shapes))
    if name not in ("cdf", "sf", "logcdf", "logsf", "ppf", "isf") or key not in densities.BY_DENSITY:
        return formula(dist, name)
    tails = by_density.Tails(
        method(dist, "logpdf"), formula(dist, "cdf"), formula(dist, "ppf"), lambda shapes: support(dist, shapes)
    )
    value = formula(dist, name)
    if name not in ("ppf", "isf"):
        return lambda *args: by_density.with_slopes(value, lambda i, args: tails.slope(name, i, args), args)

    def quantile(*args: Array) -> Array:
        def slope(i: int, args: tuple[Array, ...]) -> Array:
            return tails.of_quantile(name, i, method(dist, name)(*args), args[1:])

        return by_density.with_slopes(value, slope, args)

    return quantile


def _has_logpdf(dist: Any) -> bool:
    """Whether the logarithm of the density has a separate formula."""
    if _key(type(dist)) in densities.LOGARITHMS_OF_DENSITIES:
        return False
    own = densities.OWN.get(_key(type(dist)), {})
    return "logpdf" in own or any(["_logpdf" in vars(c) for c in type(dist).__mro__ if c not in _GENERIC])


def formula(dist: Any, name: str) -> Function:
    """A method by func's own formula, SciPy's code or SciPy's values."""
    owner, own, is_host = _source(dist, name)
    if own is not None:
        return own
    if is_host:
        return _defaults(dist, name) if name.startswith("log") else from_host(dist, name)
    if f"_{name}" in vars(dist) or owner not in _GENERIC:
        return scipys(dist, name)
    return _defaults(dist, name)


def _source(dist: Any, name: str) -> tuple[type, Function | None, bool]:
    """The class that defines a private method, func's own formula, and whether the values are SciPy's own."""
    kind = type(dist)
    owner = next((c for c in kind.__mro__ if f"_{name}" in vars(c)), _infrastructure.rv_generic)
    for key in (_key(kind), _key(owner)):
        own, is_host = densities.OWN.get(key, {}).get(name), name in densities.HOST.get(key, "").split()
        if own is not None or is_host:
            return owner, own, is_host and own is None
    return owner, None, False


def _key(kind: type) -> str:
    """The name of a class of SciPy in the tables; "" for others."""
    return kind.__name__.removesuffix("_gen") if kind.__module__.startswith("scipy.stats") else ""


def _defaults(dist: Any, name: str) -> Function:
    """Methods that SciPy's base classes define by other methods."""
    if name == "logpdf":
        return lambda x, *shapes: np.log(formula(dist, "pdf")(x, *shapes))
    if name == "logpmf":
        return lambda x, *shapes: np.log(method(dist, "pmf")(x, *shapes))
    if name == "pdf":
        cdf = method(dist, "cdf")
        return lambda x, *shapes: along(lambda t: cdf(t, *shapes), [x], [np.ones(np.shape(x))])
    if name == "pmf":
        cdf = method(dist, "cdf")
        return lambda k, *shapes: cdf(k, *shapes) - cdf(k - 1, *shapes)
    if name == "sf":
        return lambda x, *shapes: 1.0 - formula(dist, "cdf")(x, *shapes)
    if name == "isf":
        return lambda q, *shapes: formula(dist, "ppf")(1.0 - q, *shapes)
    if name in ("logcdf", "logsf"):
        one, other = ("cdf", "sf") if name == "logcdf" else ("sf", "cdf")
        if not isinstance(dist, _infrastructure.rv_continuous):
            return lambda x, *shapes: np.log(formula(dist, one)(x, *shapes))

        def logarithm(x: Array, *shapes: Array) -> Array:
            p, complement = formula(dist, one)(x, *shapes), formula(dist, other)(x, *shapes)
            small = p < 0.5
            return np.where(small, np.log(np.where(small, p, 0.25)), np.log1p(-np.where(small, 0.25, complement)))

        return logarithm
    return from_host(dist, name)


def scipys(dist: Any, name: str) -> Function:
    """SciPy's private method on arrays of one axis, as SciPy calls it."""
    run = intercepted_call(getattr(dist, f"_{name}"))
    return lambda *args: _on_one_axis(run, args)


def _on_one_axis(run: Function, args: Sequence[Any]) -> Any:
    """A function of arrays of one axis, applied to arrays that broadcast; None among its results is dropped."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    flat = [np.reshape(np.broadcast_to(x, shape), (-1,)) for x in args]

    def shaped(x: Any) -> Any:
        return None if x is None else np.reshape(np.broadcast_to(x, flat[0].shape), shape)

    with np.errstate(all="ignore"):
        out = run(*flat)
    return tuple([shaped(x) for x in out]) if isinstance(out, tuple) else shaped(out)


def support(dist: Any, shapes: Sequence[Array]) -> tuple[Any, Any]:
    """The ends of the support of the standardised distribution."""
    low, high = intercepted_call(dist._get_support)(*shapes)
    return low, high


def accepted(dist: Any, shapes: Sequence[Array]) -> Any:
    """Where the shapes are valid."""
    own = densities.ARGUMENTS.get(type(dist).__name__.removesuffix("_gen"))
    return (intercepted_call(dist._argcheck) if own is None else own)(*shapes)


def _fixed(x: Any) -> Any:
    return func.stop_gradient(x)


def _width(dist: Any, shapes: Sequence[Array]) -> Array:
    """The distance of the quartiles, as a constant."""
    shapes = [_fixed(s) for s in shapes]
    low, high = [from_host(dist, "ppf")(np.asarray(q), *shapes) for q in (0.25, 0.75)]
    return _fixed(high - low)


def density(dist: Any, t: Array, shapes: Sequence[Array]) -> Array:
    """The density at nodes (…, n) of shapes (…); zero outside the support, and a constant zero where it is tiny."""
    low, high = support(dist, shapes)
    pdf = method(dist, "pdf")
    shapes = [np.expand_dims(s, -1) for s in shapes]
    inside = (t > np.expand_dims(low, -1)) & (t < np.expand_dims(high, -1))
    safe = np.where(inside, t, np.expand_dims(interior(low, high), -1))
    with np.errstate(all="ignore"):
        inside = inside & (pdf(_fixed(safe), *[_fixed(s) for s in shapes]) > 1e-290)
        held = masking.held(inside, np.broadcast_arrays(safe, *shapes))
        return np.where(inside, pdf(*held), 0.0)


def _tail(dist: Any, lower: Array, x: Array, shapes: Sequence[Array]) -> Array:
    """The probability beyond x, below it where `lower` holds and above it elsewhere, by quadrature."""
    low, high = support(dist, shapes)
    nodes = double_exponential.towards(np.where(lower, low, high), x, _width(dist, shapes))
    return double_exponential.integral(lambda t: density(dist, t, shapes), nodes)


def _tail_sum(dist: Any, lower: Array, k: Array, shapes: Sequence[Array]) -> Array:
    """The probability of outcomes up to k, or above k, as a sum."""
    low, high = support(dist, shapes)
    k = np.floor(_fixed(k))
    return counting.one_sided(_mass(dist, shapes), np.where(lower, k, k + 1), np.where(lower, low, high), ~lower)


def _mass(dist: Any, shapes: Sequence[Array]) -> Function:
    """The probabilities of outcomes (…, n)."""
    pmf = method(dist, "pmf")
    shapes = [np.expand_dims(s, -1) for s in shapes]

    def mass(j: Array) -> Array:
        with np.errstate(all="ignore"):
            inside = pmf(_fixed(j), *[_fixed(s) for s in shapes]) > 1e-290
            held = masking.held(inside, np.broadcast_arrays(j, *shapes))
            return np.where(inside, pmf(*held), 0.0)

    return mass


def cdf_slope(dist: Any, x: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """The derivative of the distribution function along tangents of the shapes (None: no tangent), at fixed x."""
    own = densities.SLOPES.get(type(dist).__name__.removesuffix("_gen"))
    if own is not None:
        return own(x, shapes, dots)
    lower = _fixed(from_host(dist, "cdf")(_fixed(x), *[_fixed(s) for s in shapes])) < 0.5
    if isinstance(dist, _infrastructure.rv_discrete):
        return _discrete_slope(dist, lower, x, shapes, dots)
    tail = along(lambda *moved: _tail(dist, lower, x, moved), shapes, dots)
    return np.where(lower, tail, -tail)


def _discrete_slope(dist: Any, lower: Array, k: Array, shapes: Sequence[Array], dots: Sequence[Any]) -> Array:
    """By the sum on the nearer side; at the last outcome from below, as outcomes beyond it have slopes."""
    last = masses.LAST_OUTCOMES.get(type(dist).__name__.removesuffix("_gen"))
    total: Any = 0.0
    for side, own in ((lower, False), (np.ones_like(lower), True)):
        chosen = [dot if (place == last) == own else None for place, dot in enumerate(dots)]
        if any([dot is not None for dot in chosen]):
            tail = along(lambda *moved, side=side: _tail_sum(dist, side, k, moved), shapes, chosen)
            total = total + np.where(side, tail, -tail)
    return total


def _cumulative(sign: float) -> Function:
    def rule(dist: Any) -> Function:
        def tangent(primals: Sequence[Array], dots: Sequence[Any], out: Array) -> Any:
            x, *shapes = primals
            total: Any = 0.0
            if dots[0] is not None and not isinstance(dist, _infrastructure.rv_discrete):
                low, high = support(dist, shapes)
                inside = (x > low) & (x < high)
                safe = np.where(inside, x, interior(low, high))
                total = np.where(inside, method(dist, "pdf")(safe, *shapes), 0.0) * dots[0]
            if any([dot is not None for dot in dots[1:]]):
                total = total + cdf_slope(dist, x, shapes, dots[1:])
            return sign * total

        return tangent

    return rule


def _quantile(sign: float) -> Function:
    def rule(dist: Any) -> Function:
        def tangent(primals: Sequence[Array], dots: Sequence[Any], out: Array) -> Any:
            shapes = primals[1:]
            total: Any = 0.0 if dots[0] is None else sign * dots[0]
            if any([dot is not None for dot in dots[1:]]):
                total = total - cdf_slope(dist, out, shapes, dots[1:])
            return total / method(dist, "pdf")(out, *shapes)

        return tangent

    return rule


def expectation(dist: Any, f: Function, shapes: Sequence[Array]) -> Array:
    """E f(X) by quadrature, with f a function of nodes (…, n) and of the density there."""
    low, high = support(dist, shapes)
    if isinstance(dist, _infrastructure.rv_discrete):
        median = _fixed(from_host(dist, "ppf")(np.asarray(0.5), *[_fixed(s) for s in shapes]))
        mass = _mass(dist, shapes)
        return counting.everywhere(lambda j: f(j, mass(j)), median, low, high)
    split = densities.MIDDLES.get(type(dist).__name__.removesuffix("_gen"))
    fixed = [_fixed(s) for s in shapes]
    middle = _fixed(from_host(dist, "ppf")(np.asarray(0.5), *fixed)) if split is None else split(*shapes)
    nodes = double_exponential.over(low, high, middle, _width(dist, shapes))
    return double_exponential.integral(lambda t: f(t, density(dist, t, shapes)), nodes)


def _entropy(dist: Any, *shapes: Array) -> Array:
    def integrand(t: Array, p: Array) -> Array:
        positive = p > 1e-120  # keeps squares in second derivatives above zero
        return -np.where(positive, p * np.log(np.where(positive, p, 1.0)), 0.0)

    return expectation(dist, integrand, shapes)


def _moment(dist: Any, order: int, *shapes: Array) -> Array:
    return expectation(dist, lambda t, p: t**order * p, shapes)


def _statistic(dist: Any, which: int, *shapes: Array) -> Array:
    mean = _moment(dist, 1, *shapes)
    if which == 0:
        return mean

    def central(order: int) -> Array:
        return expectation(dist, lambda t, p: (t - np.expand_dims(mean, -1)) ** order * p, shapes)

    variance = central(2)
    if which == 1:
        return variance
    return central(3) / variance**1.5 if which == 2 else central(4) / variance**2 - 3.0


def _of_shapes(f: Function, *options: Any) -> Function:
    """The rule of a function of the shapes alone: the derivative of its quadrature."""

    def rule(dist: Any) -> Function:
        return lambda primals, dots, out: along(lambda *shapes: f(dist, *options, *shapes), primals, dots)

    return rule


RULES.update(cdf=_cumulative(1.0), sf=_cumulative(-1.0), ppf=_quantile(1.0), isf=_quantile(-1.0))


def _refused(dist: Any) -> Function:
    raise NotDifferentiableError(f"no derivative of the density of scipy.stats.{dist.name} is defined{at_line()}")


def _integers(dist: Any) -> Function:
    raise NotDifferentiableError(
        f"probabilities of scipy.stats.{dist.name} have no derivative: its parameters are integers{at_line()}"
    )


RULES["pdf"], RULES["pmf"] = _refused, _integers
RULES["entropy"] = _of_shapes(_entropy)
RULES.update({f"munp{n}": _of_shapes(_moment, n) for n in range(1, 30)})
RULES.update({f"stats{i}": _of_shapes(_statistic, i) for i in range(4)})


def discrete_quantile(dist: Any, name: str, *args: Any) -> Any:
    """A quantile of a discrete distribution, which is a constant."""
    return _fixed(from_host(dist, name)(*args))


def _of_parameters(run: Function, shapes: Sequence[Any]) -> Any:
    """A private method of the shapes alone, as SciPy calls it."""
    return _on_one_axis(run, shapes) if shapes else run()


def statistics(dist: Any, shapes: Sequence[Any], moments: str) -> tuple[Any, Any, Any, Any]:
    """Mean, variance, skewness and kurtosis, each None where SciPy computes it from the moments."""
    _, own, is_host = _source(dist, "stats")
    if is_host:
        host = [from_host(dist, f"stats{i}")(*shapes) if m in moments else None for i, m in enumerate("mvsk")]
        return host[0], host[1], host[2], host[3]
    options = {"moments": moments} if own is None and dist._stats_has_moments else {}
    run = intercepted_call(dist._stats) if own is None else own
    mean, variance, skewness, kurtosis = _of_parameters(lambda *flat: tuple(run(*flat, **options)), shapes)
    return mean, variance, skewness, kurtosis


def moment(dist: Any, order: int, shapes: Sequence[Any]) -> Any:
    """E Xⁿ."""
    owner, own, is_host = _source(dist, "munp")
    if not shapes:
        return dist._munp(order)
    if own is not None:
        return own(order, *shapes)
    if is_host or owner in _GENERIC:
        return from_host(dist, f"munp{order}")(*shapes)
    run = intercepted_call(dist._munp)
    return _of_parameters(lambda *flat: run(order, *flat), shapes)


def entropy(dist: Any, shapes: Sequence[Any]) -> Any:
    """The entropy."""
    owner, own, is_host = _source(dist, "entropy")
    if not shapes:
        return dist._entropy()
    if is_host or (own is None and owner in _GENERIC):
        return from_host(dist, "entropy")(*shapes)
    return _of_parameters(intercepted_call(dist._entropy) if own is None else own, shapes)
