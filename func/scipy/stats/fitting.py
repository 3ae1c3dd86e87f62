"""Estimates of parameters, likelihoods and expectations of SciPy's distributions on traced values.

SciPy finds the estimate. It differentiates as the point where the derivative of the likelihood is zero (method of
moments: where the moments agree). This is the implicit function theorem, refined by Newton's method. At an end of the
support, or after an early end of the search, an estimate has no derivative that follows from the likelihood. This
raises an error, and gives NaN under `vmap` and `jit`. Where SciPy has a formula or solves another equation, its code
runs on the traced data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import _continuous_distns as _continuous
from scipy.stats import _distn_infrastructure as _infrastructure

import func
from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Aval, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.host.source import at_line
from func.random.keys import known
from func.scipy.kinds.traces import as_float, part
from func.scipy.stats import counting, standard
from func.scipy.stats.distribution_methods import dist_shapes

FORMULAS = frozenset(
    [
        "gumbel_l", "gumbel_r", "halfcauchy", "halflogistic", "halfnorm", "laplace", "loglaplace", "logistic",
        "lognorm", "norm", "pareto", "powerlaw", "rayleigh", "vonmises", "gamma", "erlang", "invgauss", "beta",
    ]
)  # fmt: skip
"""The distributions whose own `fit` is a formula or the root of an equation, or else calls the general one."""
CLOSED = frozenset(["expon", "uniform"])
"""Those whose formula is the same for all data."""

TOLERANCE = 0.02
"""The distance, in units of the scale, that SciPy's estimate may have from the exact point."""


def _names(dist: Any) -> list[str]:
    return [*dist_shapes(dist), "loc", "scale"]


def _fixed_parameters(dist: Any, kwds: dict[str, Any]) -> dict[int, Any]:
    """The parameters that a call fixes, by place."""
    fixed = {}
    for place, name in enumerate(_names(dist)):
        words = [f"f{name}"] if name in ("loc", "scale") else [f"f{name}", f"fix_{name}", f"f{place}"]
        for word in words:
            if kwds.get(word) is not None:
                fixed[place] = kwds[word]
    return fixed


def _fit_of(kind: type) -> Callable[..., tuple[Any, ...]]:
    """`fit` of a class of SciPy with its own method, on traced data."""
    own = vars(kind)["fit"]
    name = kind.__name__.removesuffix("_gen")
    closed = part(own.__wrapped__, float=as_float) if name in CLOSED else None

    def fit(self: Any, data: Any, *args: Any, **kwds: Any) -> tuple[Any, ...]:
        run = original(own)  # by now it has its hook
        data = np.ravel(np.asarray(data, float))
        if str(kwds.get("method", "mle")).lower() == "mle":
            if closed is not None:
                try:
                    return tuple([np.asarray(x, float)[()] for x in closed(self, data, *args, **kwds)])
                except _continuous.FitDataError:
                    raise ValueError(f"{name}.fit: the data do not fit the fixed parameters{at_line()}") from None
            if name in FORMULAS and _is_number(data):
                return tuple([np.asarray(x)[()] for x in intercepted_call(run)(self, data, *args, **kwds)])
        return general_fit(run, self, data, *args, **kwds)

    return fit


def rv_continuous_fit(self: Any, data: Any, *args: Any, **kwds: Any) -> tuple[Any, ...]:
    """rv_continuous.fit on traced data."""
    run = original(_infrastructure.rv_continuous.fit)
    return general_fit(run, self, np.ravel(np.asarray(data, float)), *args, **kwds)


def _is_number(x: Any) -> bool:
    """Whether the numbers behind a traced value are known, and are not a batch."""
    numbers = known(x)
    return numbers is not None and numbers.shape == shape_of(x)


def general_fit(run: Callable[..., Any], self: Any, data: Any, *args: Any, **kwds: Any) -> tuple[Any, ...]:
    """SciPy's estimate by `run`, as the root of an equation."""
    method = str(kwds.get("method", "mle")).lower()
    fixed = _fixed_parameters(self, kwds)
    traced = {key: value for key, value in kwds.items() if holds_traced(value)}
    rest = {key: value for key, value in kwds.items() if key not in traced}
    count = len(_names(self))

    def found(data: Any, args: Any, traced: Any) -> Any:
        return np.asarray(
            run(self, data, *[float(x) for x in args], **rest, **{k: float(x) for k, x in traced.items()}), float
        )

    estimate = func.pure_callback(
        found,
        Aval((count,), np.dtype(np.float64)),
        func.stop_gradient(data),
        tuple([func.stop_gradient(np.asarray(x, float)) for x in args]),
        {key: func.stop_gradient(np.asarray(value, float)) for key, value in traced.items()},
        vmap_method="sequential",
    )
    free = [place for place in range(count) if place not in fixed]
    if not free:
        return tuple([np.asarray(fixed[place], float)[()] for place in range(count)])

    places = sorted(fixed)

    def full(theta: Any, fixed: Sequence[Any]) -> list[Any]:
        at = dict(zip(places, fixed, strict=True)) | {p: theta[i] for i, p in enumerate(free)}
        return [at[place] for place in range(count)]

    def loss(theta: Any, data: Any, fixed: Sequence[Any]) -> Any:
        return -np.mean(self.logpdf(data, *full(theta, fixed)))

    def equation(theta: Any, data: Any, fixed: Sequence[Any]) -> Any:
        if method == "mm":
            parameters = full(theta, fixed)
            moments = [(self.moment(k, *parameters) / np.mean(data**k) - 1.0) for k in range(1, len(free) + 1)]
            return np.stack(moments)
        return func.grad(loss)(theta, data, fixed)

    start = estimate[np.array(free)]
    held = tuple([np.asarray(fixed[place], float) for place in places])
    refined, is_root = _refined(
        lambda t: equation(t, func.stop_gradient(data), [func.stop_gradient(x) for x in held]), start
    )
    _require_root(self, is_root)

    def regular(theta: Any, data: Any, fixed: Sequence[Any]) -> Any:
        return np.where(is_root, equation(theta, data, fixed), theta - refined)

    theta = func.custom_root(regular, lambda g, x0: x0)(refined, data, held)
    moving = _poisoned(theta - func.stop_gradient(theta), (data, *held), is_root)
    out = full(start + moving, held)
    return tuple([np.asarray(x)[()] for x in out])


def _refined(equation: Callable[[Any], Any], start: Any) -> tuple[Any, Any]:
    """A root of an equation near to a start by three steps of Newton's method, and whether there is one."""
    scale = np.max(np.abs(start)) + 1e-300
    x, is_near = start, np.asarray(True)
    size: Any = np.inf
    with np.errstate(all="ignore"):
        for _ in range(3):
            matrix = func.jacobian(equation)(x)
            side = equation(x)
            finite = np.all(np.isfinite(matrix)) & np.all(np.isfinite(side))
            matrix = np.where(finite, matrix, np.eye(len(start)))
            regular = np.abs(np.linalg.det(matrix / (np.max(np.abs(matrix)) + 1e-300))) > 1e-14
            step = np.linalg.solve(np.where(regular, matrix, np.eye(len(start))), np.where(finite, side, 0.0))
            size = np.max(np.abs(step)) / scale
            is_near = is_near & finite & regular & (size < TOLERANCE)
            x = np.where(is_near, x - step, x)
    return func.stop_gradient(x), func.stop_gradient(is_near & (size < 1e-5))


def _require_root(dist: Any, is_root: Any) -> None:
    number = known(np.asarray(is_root))
    if number is not None and not number.ndim and not number:
        raise NotDifferentiableError(
            f"{dist.name}.fit found parameters where the derivative of the likelihood is not zero{at_line()}\n"
            "The estimate is at an end of the support, or the search stopped early, so that its derivative does not "
            "follow from the likelihood. Fix a parameter (floc=, fscale=), give starting values, or pass "
            "func.stop_gradient(data) for a constant estimate."
        )


def _poisoned(x: Any, sources: Sequence[Any], is_valid: Any) -> Any:
    """x; its derivative by its sources is NaN where it is not valid."""

    @func.custom_jvp
    def held(x: Any, is_valid: Any, *sources: Any) -> Any:
        return x + 0.0

    def held_jvp(primals: Any, tangents: Any) -> Any:
        factor = np.where(primals[1], 0.0, np.nan)
        moved = [np.sum(dot) for dot in tangents[2:]]
        return held(*primals), tangents[0] + factor * sum(moved)

    held.defjvp(held_jvp)
    return held(x, is_valid, *sources)


def nnlf(self: Any, theta: Any, x: Any) -> Any:
    """rv_generic.nnlf: the negative logarithm of the likelihood; infinite outside of the support."""
    if not isinstance(self, _infrastructure.rv_continuous):
        return intercepted_call(original(_infrastructure.rv_generic.nnlf))(self, theta, x)
    value = -np.sum(self.logpdf(x, *theta), axis=0)
    return np.where(np.isnan(func.stop_gradient(value)), np.inf, value)[()]


def rv_discrete_expect(
    self: Any, func: Any = None, args: Any = (), loc: Any = 0, lb: Any = None, ub: Any = None,
    conditional: bool = False, maxcount: int = 1000, tolerance: float = 1e-10, chunksize: int = 32,
) -> Any:  # fmt: skip
    """rv_discrete.expect: the sum over all outcomes, or over those between the bounds."""
    scipys = original(_infrastructure.rv_discrete.expect)
    options = {"maxcount": maxcount, "tolerance": tolerance, "chunksize": chunksize}
    if isinstance(self, _infrastructure.rv_sample) or not dist_shapes(self):
        return intercepted_call(scipys)(self, func, args, loc, lb, ub, conditional, **options)
    args = args if isinstance(args, tuple) else (args,)
    value = None if func is None else func(_an_outcome(self, args, loc))
    if not any([holds_traced(x) for x in (*args, loc, value)]):
        return intercepted_call(scipys)(self, func, args, loc, lb, ub, conditional, **options)
    shapes, *_ = self._parse_args(*args)
    return _expectation(self, func, tuple([np.asarray(x) for x in shapes]), loc, lb, ub, conditional)


def _an_outcome(dist: Any, args: Sequence[Any], loc: Any) -> Any:
    """An outcome near the middle, in an array as SciPy passes them to functions."""
    fixed = [func.stop_gradient(np.asarray(s, float)) for s in dist._parse_args(*args)[0]]
    return standard.discrete_quantile(dist, "ppf", np.array([0.5]), *fixed) + loc


def _expectation(dist: Any, f: Any, shapes: tuple[Any, ...], loc: Any, lb: Any, ub: Any, conditional: bool) -> Any:
    low, high = standard.support(dist, shapes)
    low = low if lb is None else np.maximum(low, np.ceil(func.stop_gradient(np.asarray(lb) - loc)))
    high = high if ub is None else np.minimum(high, np.floor(func.stop_gradient(np.asarray(ub) - loc)))
    fixed = [func.stop_gradient(s) for s in shapes]
    middle = np.clip(standard.discrete_quantile(dist, "ppf", np.asarray(0.5), *fixed), low, high)
    mass = standard._mass(dist, shapes)

    def term(j: Any) -> Any:
        return (j + loc if f is None else f(j + loc)) * mass(j)

    value = counting.everywhere(term, middle, np.asarray(low, float), np.asarray(high, float))
    if not conditional:
        return value[()]
    return (value / counting.everywhere(mass, middle, np.asarray(low, float), np.asarray(high, float)))[()]


_CLASSES = [
    value
    for name, value in vars(_continuous).items()
    if isinstance(value, type) and "fit" in vars(value) and name.endswith("_gen")
]
OWN: dict[str, Callable[..., Any]] = {
    "rv_continuous_fit": rv_continuous_fit,
    "rv_discrete_expect": rv_discrete_expect,
    "_distn_infrastructure_rv_generic_nnlf": nnlf,
    **{f"_continuous_distns_{kind.__name__}_fit": _fit_of(kind) for kind in _CLASSES},
}
__all__ = list(OWN)
globals().update(OWN)
