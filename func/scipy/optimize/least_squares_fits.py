"""Least squares: minima of a cost ½ Σ ρ(r²), whose equation is Jᵀ ρ' r = 0 with all second derivatives of r."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func import numpy as func_numpy
from func.interpreters.core import Array, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.linalg import solve_triangular
from func.scipy.optimize import solving
from func.scipy.optimize.conditions import Model, limits, minimum
from func.scipy.optimize.solving import Run, as_array, as_tuple, on_numbers, original, vector_of
from func.transforms.forward import jvp
from func.transforms.jacobians import jacobian
from func.transforms.reverse import grad

TOLERANCE = 1e-5
"""The distance from a bound within which a solution counts as at it: SciPy's method trf stays inside."""


def _huber(z: Array) -> Array:
    return np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1)


LOSSES: dict[str, Callable[[Array], Array]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": _huber,
    "cauchy": np.log1p,
    "arctan": np.arctan,
}
"""SciPy's losses ρ(z)."""


class RobustCost:
    """The cost of residuals."""

    def __init__(self, loss: Any, f_scale: Any) -> None:
        self.loss = loss
        self.f_scale = f_scale

    def rho(self, z: Array) -> Array:
        """The loss of squared residuals."""
        return LOSSES[self.loss](z) if isinstance(self.loss, str) else self.loss(z)[0]

    def __call__(self, residuals: Array) -> Array:
        if self.loss == "linear":
            return 0.5 * np.sum(residuals**2)
        return 0.5 * self.f_scale**2 * np.sum(self.rho((residuals / self.f_scale) ** 2))

    def weights(self, residuals: Array) -> tuple[Array, Array]:
        """(ρ', the factors by which SciPy scales the rows of the Jacobian)."""
        z = (residuals / self.f_scale) ** 2
        ones = np.ones_like(z)
        if not isinstance(self.loss, str):
            first, second = self.loss(z)[1], self.loss(z)[2]
        else:
            first, second = jvp(lambda z: jvp(self.rho, (z,), (ones,))[1], (z,), (ones,))
        scale = first + 2 * second * z
        eps = np.finfo(np.float64).eps
        return first, np.sqrt(np.where(scale < eps, eps, scale))


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: Any = 1e-08,
    xtol: Any = 1e-08,
    gtol: Any = 1e-08,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: Any = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: Any = None,
    callback: Any = None,
    workers: Any = None,
) -> Any:
    """scipy.optimize.least_squares, whose solution differentiates, with the Jacobian of func by default.

    `x`, `cost`, `fun`, `jac` and `grad` are functions of the parameters in `args`, `kwargs`, `bounds`, `f_scale` and in
    the closure of `fun`. Their derivatives include the second derivatives of the residuals, unlike Gauss and Newton.

    Example:
        >>> import numpy as np, func
        >>> t = np.array([0.0, 1.0, 2.0])
        >>> def rate(y):
        ...     return func.scipy.optimize.least_squares(lambda k: np.exp(-k * t) - y, np.array([0.3]), xtol=1e-12).x[0]
        >>> func.grad(rate)(np.exp(-0.5 * t)).round(6)
        array([-0.      , -0.667089, -0.809219])
    """
    args, kwargs = tuple(args), dict(kwargs or {})
    rest: dict[str, Any] = {
        "ftol": ftol, "xtol": xtol, "gtol": gtol, "diff_step": diff_step, "tr_solver": tr_solver,
        "tr_options": {} if tr_options is None else tr_options, "jac_sparsity": jac_sparsity, "max_nfev": max_nfev,
        "verbose": verbose, "callback": callback, "workers": workers, "method": method, "loss": loss,
    }  # fmt: skip
    parts = (fun, x0, jac, args, kwargs, f_scale, x_scale, loss, _limit_parts(bounds))
    traced = solving.has_traced(parts)
    if x_scale is not None:
        rest["x_scale"] = x_scale
    if not traced and solving.is_unmodified():
        return original("least_squares")(fun, x0, jac, bounds, args=args, kwargs=kwargs, f_scale=f_scale, **rest)
    run = Run("least_squares")
    is_default = isinstance(jac, str) and jac == "2-point" and diff_step is None and jac_sparsity is None

    def call(x0: Any, bounds: Any, fun: Any, jac: Any, args: Any, kwargs: Any, f_scale: Any) -> Any:
        slope = on_numbers(jac, "least_squares")
        if is_default:
            exact = solving.exact_jacobian(_with(fun, kwargs), np.atleast_1d(np.asarray(x0, float)), args)
            slope = slope if exact is None else (lambda x, *args, **kwargs: exact(x, *args))
        plain = on_numbers(fun, "least_squares")
        return original("least_squares")(plain, x0, slope, bounds, args=args, kwargs=kwargs, f_scale=f_scale, **rest)

    if not traced:
        return call(x0, bounds, fun, jac, args, kwargs, f_scale)
    size = solving.size_of(x0)
    lower, upper = unaliased(bounds, size)

    def objective(x: Array, fun: Any, args: Any, kwargs: Any, cost: Any) -> Array:
        loss, f_scale = cost
        return RobustCost(loss, f_scale)(vector_of(fun(x, *args, **kwargs)))

    def minimise(model: Model, x0: Any, jac: Any) -> Any:
        fun, args, kwargs, (_, f_scale) = model.args
        box = (-np.inf, np.inf) if lower is None else (np.asarray(model.lower, float), np.asarray(model.upper, float))
        return call(x0, box, fun, jac[0], args, kwargs, f_scale)

    model = Model(objective, (fun, args, kwargs, (loss, f_scale)), lower, upper)
    x, info, _ = minimum(run, model, (x0,), ((jac,),), minimise, size, TOLERANCE)

    def residuals(x: Array) -> Array:
        return vector_of(fun(x, *args, **kwargs))

    value, matrix = residuals(x), jacobian(residuals)(x)
    if loss != "linear":
        matrix = matrix * RobustCost(loss, f_scale).weights(value)[1][:, None]
    slope = grad(model.value)(x)
    return solving.result_of(run, info, x=x, cost=model.value(x), fun=value, jac=matrix, grad=slope)


def _with(fun: Any, kwargs: dict[str, Any]) -> Any:
    return lambda x, *args: fun(x, *args, **kwargs)


def _limit_parts(bounds: Any) -> Any:
    return (bounds.lb, bounds.ub) if isinstance(bounds, scipy_optimize.Bounds) else bounds


def unaliased(bounds: Any, size: int) -> tuple[Any, Any]:
    """Lower and upper bounds of a pair (lower, upper) of numbers or vectors; None where all are infinite."""
    if isinstance(bounds, scipy_optimize.Bounds):
        return limits(bounds, size)
    lower, upper = [func_numpy.asarray(bound) for bound in bounds]
    if not solving.has_traced(lower, upper) and np.all(np.isneginf(lower)) and np.all(np.isposinf(upper)):
        return None, None
    return _wide(lower, size), _wide(upper, size)


def _wide(bound: Any, size: int) -> Any:
    return np.broadcast_to(np.reshape(bound, -1), (size,))


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-08,
    xtol: float = 1.49012e-08,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """scipy.optimize.leastsq, whose solution (and `cov_x`) differentiates; as `least_squares`."""
    args = as_tuple(args)
    rest = (ftol, xtol, gtol, maxfev, epsfcn, factor, diag)
    traced = solving.has_traced(func, x0, args, Dfun)
    if not traced and solving.is_unmodified():
        return original("leastsq")(func, x0, args, Dfun, full_output, col_deriv, *rest)
    run = Run("leastsq")

    def call(x0: Any, func: Any, Dfun: Any, args: Any) -> Any:
        slope, by_columns = on_numbers(Dfun, "leastsq"), col_deriv
        if Dfun is None:
            slope = solving.exact_jacobian(func, np.asarray(x0, float).ravel(), args)
            by_columns = False if slope is not None else col_deriv
        return original("leastsq")(on_numbers(func, "leastsq"), x0, args, slope, full_output, by_columns, *rest)

    if not traced:
        return call(x0, func, Dfun, args)

    def objective(x: Array, func: Any, args: Any) -> Array:
        return 0.5 * np.sum(vector_of(func(x, *args)) ** 2)

    def minimise(model: Model, x0: Any, slope: Any) -> Any:
        found = call(x0, model.args[0], slope[0], model.args[1])
        return {"x": found[0], "success": found[-1] in (1, 2, 3, 4), "status": found[-1], "found": found}

    model = Model(objective, (func, args))
    x, info, _ = minimum(run, model, (x0,), ((Dfun,),), minimise, solving.size_of(x0))
    if not full_output:
        return x, info[1]

    def residuals(x: Array) -> Array:
        return vector_of(func(x, *args))

    matrix = jacobian(residuals)(x)
    known = None if run.known is None else run.known["found"]
    covariance = None if known is not None and known[1] is None else np.linalg.inv(matrix.T @ matrix)
    value = residuals(x)
    if known is None:
        return x, covariance, {"fvec": value}, "what the solver says is not known in compiled code", info[1]
    return x, covariance, {**known[2], "fvec": value}, known[3], known[4]


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: Any = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: Any = None,
    **kwargs: Any,
) -> Any:
    """scipy.optimize.curve_fit, whose parameters and covariance differentiate; it uses func's Jacobian by default.

    They are functions of `xdata`, `ydata`, `sigma`, of bounds, and of values in the closure of `f`.

    Example:
        >>> import numpy as np, func
        >>> t = np.array([0.0, 1.0, 2.0, 3.0])
        >>> line = lambda t, a, b: a * t + b
        >>> func.jacobian(lambda y: func.scipy.optimize.curve_fit(line, t, y)[0])(2 * t).round(3)[0]
        array([-0.3, -0.1,  0.1,  0.3])
    """
    traced = solving.has_traced(f, xdata, ydata, p0, sigma, jac, _limit_parts(bounds), kwargs)
    rest = {"absolute_sigma": absolute_sigma, "check_finite": check_finite, "method": method}
    if not traced and solving.is_unmodified():
        return original("curve_fit")(
            f,
            xdata,
            ydata,
            p0,
            sigma,
            bounds=bounds,
            jac=jac,
            full_output=full_output,
            nan_policy=nan_policy,
            **rest,
            **kwargs,
        )
    if traced and nan_policy == "omit":
        raise UnsupportedFunctionError(
            "scipy.optimize.curve_fit: nan_policy='omit' chooses rows by their numbers, which traced values do not "
            "have; leave the rows with NaN out before"
        )
    run = Run("curve_fit")
    xdata = _data(xdata)

    def call(p0: Any, xdata: Any, ydata: Any, sigma: Any, bounds: Any, f: Any, jac: Any, full: bool) -> Any:
        slope = on_numbers(jac, "curve_fit")
        if jac is None and not (nan_policy == "omit" or (method is None and len(np.shape(sigma)) == 2)):
            count = _count_of(f, p0, bounds)
            by_parameters = jacobian(lambda p, x: vector_of(f(x, *[p[i] for i in range(count)])))
            start = np.ones(count) if p0 is None else np.atleast_1d(np.asarray(p0, float))
            if solving.works(by_parameters, start, xdata):

                def slope(x: Any, *p: Any) -> Any:
                    return solving.number(by_parameters(np.array(p, float), x), "curve_fit")

        return original("curve_fit")(
            on_numbers(f, "curve_fit"),
            xdata,
            ydata,
            p0,
            sigma,
            bounds=bounds,
            jac=slope,
            full_output=full,
            nan_policy=nan_policy,
            **rest,
            **kwargs,
        )

    if not traced:
        return call(p0, xdata, ydata, sigma, bounds, f, jac, full_output)
    size = _count_of(f, p0, bounds)
    lower, upper = unaliased(bounds, size)
    data = (f, xdata, vector_of(ydata), None if sigma is None else as_array(sigma))

    def objective(p: Array, *data: Any) -> Array:
        return 0.5 * np.sum(_misfit(p, *data) ** 2)

    def minimise(model: Model, p0: Any, jac: Any) -> Any:
        f, xdata, ydata, sigma = model.args
        box = bounds if lower is None else (np.asarray(model.lower, float), np.asarray(model.upper, float))
        found = call(p0, xdata, ydata, sigma, box, f, jac[0], True)
        info = {"success": found[4] in (1, 2, 3, 4), "status": found[4], "fun": found[2]["fvec"]}
        return {"x": found[0], "found": found, **info}

    model = Model(objective, data, lower, upper)
    popt, info, _ = minimum(run, model, (p0,), ((jac,),), minimise, size, TOLERANCE)
    pcov = _covariance(run, popt, data, size, absolute_sigma)
    if not full_output:
        return popt, pcov
    value = _misfit(popt, *data)
    known = None if run.known is None else run.known["found"]
    if known is None:
        return popt, pcov, {"fvec": value}, "what the solver says is not known in compiled code", info[1]
    return popt, pcov, {**known[2], "fvec": value}, *known[3:]


def _data(values: Any) -> Any:
    """The independent variable: numbers as an array, anything else unchanged."""
    if isinstance(values, (list, tuple)):
        return func_numpy.array(values, dtype=np.float64)
    if isinstance(values, np.ndarray) and type(values) is np.ndarray and values.dtype.kind in "iub":
        return values.astype(np.float64)
    return values


def _misfit(p: Array, f: Any, xdata: Any, ydata: Array, sigma: Any) -> Array:
    """The weighted residuals."""
    residuals = vector_of(f(xdata, *[p[i] for i in range(shape_of(p)[0])])) - ydata
    if sigma is None:
        return residuals
    if len(shape_of(sigma)) == 2:
        return solve_triangular(np.linalg.cholesky(sigma), residuals, lower=True)
    return residuals / sigma


def _covariance(run: Run, popt: Array, data: Any, size: int, is_absolute: bool) -> Array:
    known = None if run.known is None else run.known["found"]
    if known is not None and not np.all(np.isfinite(known[1])):
        return known[1]
    matrix = jacobian(lambda p: _misfit(p, *data))(popt)
    covariance = np.linalg.inv(matrix.T @ matrix)
    rows = shape_of(matrix)[0]
    if is_absolute:
        return covariance
    if rows <= size:
        return np.full((size, size), np.inf)
    return covariance * (np.sum(_misfit(popt, *data) ** 2) / (rows - size))


def _count_of(f: Any, p0: Any, bounds: Any) -> int:
    """The number of parameters of a model: by p0, by the bounds, or by the signature after the first."""
    if p0 is not None:
        return solving.size_of(p0)
    parameters = list(inspect.signature(f).parameters.values())
    if any([p.kind == p.VAR_POSITIONAL for p in parameters]):
        for bound in _limit_parts(bounds):
            if np.ndim(bound) == 1:
                return len(bound)
        raise ValueError("Unable to determine number of fit parameters.")
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(named) < 2:
        raise ValueError("Unable to determine number of fit parameters.")
    return len(named) - 1
