"""Samples of SciPy's univariate distributions, `rvs`, that differentiate by shapes, location and scale.

A sample is a quantile: x with F(x; θ) = u for a u that does not depend on the parameters θ. So its derivative is
dx = -∂F/∂θ dθ / f, whichever algorithm drew it. `random_state` may be a key of func.random or a func.random.Generator;
then the samples are func's, on every path. With a seed, a generator of NumPy or None they are SciPy's own, with the
same derivative. Samples of discrete distributions are constants.

>>> import numpy as np, func, func.scipy.stats
>>> key = func.random.key(0)
>>> draw = lambda a: np.mean(func.scipy.stats.gamma.rvs(a, size=400, random_state=key))
>>> abs(func.grad(draw)(3.0) - 1.0) < 0.1
np.True_

Source: M. Figurnov, S. Mohamed, A. Mnih (2018), Implicit reparameterization gradients, equation 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import _distn_infrastructure as _infrastructure

import func
from func import random
from func.host.scipy_hooks import holds_traced, is_key, original
from func.interpreters.core import Array, Aval, shape_of
from func.interpreters.core.scopes import current_staging
from func.interpreters.host.source import at_line
from func.random.keys import known
from func.scipy.stats import standard
from func.scipy.stats.distribution_methods import is_of_trials
from func.scipy.stats.host_values import along

_SMALLEST = 2.0**-54


def key_of(state: Any) -> Array | None:
    """The key of a `random_state` that is a key or a func.random.Generator; else None."""
    if isinstance(state, random.Generator):
        return state.next_key()
    return state if is_key(state) else None


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform samples of (0, 1) without its ends."""
    u = random.uniform(key, shape)
    return np.where(u > 0, u, _SMALLEST)


def _sqrt_of_chi2(key: Array, df: Array, shape: tuple[int, ...]) -> Array:
    return np.exp(0.5 * (random.loggamma(key, df / 2, shape) + np.log(2.0)))


def _norminvgauss(first: Array, second: Array, shape: tuple[int, ...], a: Array, b: Array) -> Array:
    gamma = np.sqrt((a - b) * (a + b))
    mixed = random.wald(first, gamma, shape) / (gamma * gamma)
    return b * mixed + np.sqrt(mixed) * random.normal(second, shape)


SAMPLERS: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda key, shape, p: random.bernoulli(key, p, shape),
    "beta": lambda key, shape, a, b: random.beta(key, a, b, shape),
    "binom": lambda key, shape, n, p: random.binomial(key, n, p, shape),
    "chi": lambda key, shape, df: _sqrt_of_chi2(key, df, shape),
    "chi2": lambda key, shape, df: random.chisquare(key, df, shape),
    "erlang": lambda key, shape, a: random.gamma(key, a, shape),
    "expon": lambda key, shape: random.exponential(key, shape),
    "f": lambda key, shape, dfn, dfd: random.f(key, dfn, dfd, shape),
    "foldnorm": lambda key, shape, c: np.abs(random.normal(key, shape) + c),
    "gamma": lambda key, shape, a: random.gamma(key, a, shape),
    "gengamma": lambda key, shape, a, c: np.exp(random.loggamma(key, a, shape) / c),
    "geom": lambda key, shape, p: random.geometric(key, p, shape),
    "halfnorm": lambda key, shape: np.abs(random.normal(key, shape)),
    "invgamma": lambda key, shape, a: np.exp(-random.loggamma(key, a, shape)),
    "invgauss": lambda key, shape, mu: random.wald(key, mu, shape),
    "loggamma": lambda key, shape, c: random.loggamma(key, c, shape),
    "lognorm": lambda key, shape, s: np.exp(s * random.normal(key, shape)),
    "maxwell": lambda key, shape: random.maxwell(key, shape),
    "nakagami": lambda key, shape, nu: np.exp(0.5 * (random.loggamma(key, nu, shape) - np.log(nu))),
    "norm": lambda key, shape: random.normal(key, shape),
    "poisson": lambda key, shape, mu: random.poisson(key, mu, shape),
    "t": lambda key, shape, df: random.t(key, df, shape),
    "truncnorm": lambda key, shape, a, b: random.truncated_normal(key, a, b, shape),
    "wald": lambda key, shape: random.wald(key, 1.0, shape),
}
"""Samples of standardised distributions by a key, by faster ways than the quantile of a uniform sample."""

SAMPLERS_OF_TWO_KEYS: dict[str, Callable[..., Any]] = {
    "betaprime": lambda key, other, n, a, b: np.exp(random.loggamma(key, a, n) - random.loggamma(other, b, n)),
    "exponnorm": lambda key, other, n, rate: random.normal(key, n) + rate * random.exponential(other, n),
    "nct": lambda key, other, n, df, nc: (random.normal(key, n) + nc) * np.sqrt(df) / _sqrt_of_chi2(other, df, n),
    "norminvgauss": _norminvgauss,
    "rice": lambda key, other, n, b: np.hypot(random.normal(key, n) + b, random.normal(other, n)),
    "skewnorm": lambda key, other, n, a: (
        (a * np.abs(random.normal(key, n)) + random.normal(other, n)) / np.sqrt(1 + a * a)
    ),
}


def by_key(dist: Any, key: Array, shape: tuple[int, ...], shapes: Sequence[Array]) -> Array:
    """Samples of the standardised distribution."""
    is_discrete = isinstance(dist, _infrastructure.rv_discrete)
    name = type(dist).__name__.removesuffix("_gen") if type(dist).__module__.startswith("scipy.stats") else ""
    if name in SAMPLERS:
        return SAMPLERS[name](key, shape, *shapes)
    if name in SAMPLERS_OF_TWO_KEYS:
        return SAMPLERS_OF_TWO_KEYS[name](*random.split(key), shape, *shapes)
    if not _is_generic(dist):
        drawn = _seeded(dist, key, shape, shapes, {"discrete": True} if is_discrete else {})
        changes = not is_discrete and any([holds_traced(s) for s in shapes])
        return moved(dist, drawn, [np.broadcast_to(s, shape) for s in shapes]) if changes else drawn
    u = uniform(key, shape)
    with np.errstate(all="ignore"):
        if is_discrete:
            return standard.discrete_quantile(dist, "ppf", u, *[func.stop_gradient(s) for s in shapes])
        return standard.method(dist, "ppf")(u, *shapes)


def _is_generic(dist: Any) -> bool:
    """Whether SciPy's samples of it are quantiles of uniform ones."""
    owner = next(c for c in type(dist).__mro__ if "_rvs" in vars(c))
    return owner in (_infrastructure.rv_generic, _infrastructure.rv_continuous, _infrastructure.rv_discrete)


def _seeded(dist: Any, key: Array, shape: tuple[int, ...], shapes: Sequence[Array], options: dict[str, Any]) -> Array:
    """SciPy's own samples by a generator of NumPy that is made of the key."""
    scipys = original(_infrastructure.rv_generic.rvs)

    def sampler(key: Any, *shapes: Any) -> Any:
        state = np.random.default_rng([int(word) for word in key])
        return np.asarray(scipys(dist, *shapes, size=shape, random_state=state, **options), float)

    fixed = [func.stop_gradient(np.asarray(s)) for s in shapes]
    return func.pure_callback(sampler, Aval(shape, np.dtype(np.float64)), key, *fixed, vmap_method="sequential")


def moved(dist: Any, y: Array, shapes: Sequence[Array]) -> Array:
    """Samples drawn at these shapes as functions of the shapes: quantiles of constant probabilities."""

    @func.custom_jvp
    def sample(y: Array, *shapes: Array) -> Array:
        return y + 0.0

    def sample_jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Array, Array]:
        out, shapes = sample(*primals), primals[1:]
        dots = list(tangents[1:])
        with np.errstate(all="ignore"):
            lower = func.stop_gradient(standard.method(dist, "cdf")(out, *shapes)) < 0.5
            below, above = [
                along(lambda *s, method=method: standard.method(dist, method)(out, *s), shapes, dots)
                for method in ("cdf", "sf")
            ]
            return out, -np.where(lower, below, -above) / standard.method(dist, "pdf")(out, *shapes)

    sample.defjvp(sample_jvp)
    return sample(np.asarray(y, float), *[np.asarray(s, float) for s in shapes])


def refuse_staged(state: Any) -> None:
    """Raise an error if a traced program would contain the samples of one run."""
    transform = current_staging()
    if transform is not None and not _is_seed(state):
        raise random.RandomnessError(
            f"rvs with random_state={'None' if state is None else type(state).__name__} inside func.{transform}"
            f"{at_line()}\nThe program would give the same numbers each time that it runs: pass a key of func.random "
            "as an argument of the function and as random_state, or a seed."
        )


def _is_seed(state: Any) -> bool:
    return isinstance(state, (int, np.integer)) and not isinstance(state, bool)


def draw(sampler: Callable[..., Any], shape: tuple[int, ...], state: Any, parameters: Sequence[Any]) -> Any:
    """sampler(*parameters) of SciPy at the numbers behind traced parameters.

    With a seed it is a function of the parameters, which runs once per batch element, and under `jit` when the program
    runs. A generator of NumPy draws once, from parameters that are known.
    """
    if not any([holds_traced(p) for p in parameters]):
        refuse_staged(state)
        return sampler(*parameters)
    fixed = [func.stop_gradient(np.asarray(p)) for p in parameters]
    if _is_seed(state):
        return func.pure_callback(
            lambda *values: np.asarray(sampler(*values), float),
            Aval(shape, np.dtype(np.float64)),
            *fixed,
            vmap_method="sequential",
        )
    refuse_staged(state)
    numbers = [known(p) for p in fixed]
    if any([x is None or x.shape != shape_of(p) for x, p in zip(numbers, fixed, strict=True)]):
        raise random.RandomnessError(
            f"rvs of parameters that func.vmap maps, with a random state that it cannot see{at_line()}\n"
            "Map keys of func.random as well: func.vmap(f)(x, func.random.split(key, n)), with random_state=key in f; "
            "or pass a func.random.Generator and randomness= to func.vmap."
        )
    return sampler(*numbers)


def rvs(self: Any, *args: Any, **kwds: Any) -> Any:
    """rv_generic.rvs of traced parameters, and of keys of func.random."""
    scipys = original(_infrastructure.rv_generic.rvs)
    discrete, state = kwds.pop("discrete", None), kwds.pop("random_state", None)
    key = key_of(state)
    if is_of_trials(self):
        return _successes(self, key, state, *args, **kwds)
    shapes, loc, scale, size = self._parse_args_rvs(*args, **kwds)
    shape = tuple([int(n) for n in size])
    with np.errstate(all="ignore"):
        valid = standard.accepted(self, shapes) & (scale >= 0)
    is_valid = known(np.asarray(func.stop_gradient(valid)))
    if is_valid is not None and not np.all(is_valid):
        raise ValueError(
            f"{self.name}.rvs: the scale must not be negative, and a shape parameter is out of its domain{at_line()}"
        )
    options = {} if discrete is None else {"discrete": True}
    if key is not None:
        y = by_key(self, key, shape, shapes)
    else:

        def sampler(*shapes: Any) -> Any:
            return scipys(self, *shapes, size=shape, random_state=state, **options)

        y = draw(sampler, shape, state, shapes)
        if not discrete and any([holds_traced(s) for s in shapes]):
            y = moved(self, y, [np.broadcast_to(s, shape) for s in shapes])
    if discrete and not isinstance(self, _infrastructure.rv_sample):
        return np.trunc(np.asarray(y) + func.stop_gradient(loc)).astype(np.int64)[()]
    return np.where(valid, y * scale + loc, np.nan)[()]


def _successes(dist: Any, key: Array | None, state: Any, p: Any, loc: Any = 0, size: Any = None) -> Any:
    """The numbers of successes of trials with probabilities (…, n)."""
    p, loc = np.asarray(p), np.asarray(loc)
    *_, size = dist._argcheck_rvs(np.zeros(p.shape[:-1]), np.zeros(loc.shape), 1.0, size=size)
    shape = tuple([int(n) for n in size])
    if key is not None:
        drawn = np.sum(random.bernoulli(key, func.stop_gradient(p), (*shape, p.shape[-1])), axis=-1)
    else:
        scipys = original(_infrastructure.rv_generic.rvs)
        drawn = draw(lambda p: scipys(dist, p, size=shape, random_state=state, discrete=True), shape, state, [p])
    return (np.asarray(drawn, np.int64) + func.stop_gradient(loc).astype(np.int64))[()]


_distn_infrastructure_rv_generic_rvs = rvs
__all__ = ["_distn_infrastructure_rv_generic_rvs"]
