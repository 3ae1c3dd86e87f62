"""Minima: of functions of one or many variables, free, within bounds or under constraints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func.host.private_names import private_module
from func.interpreters.core import Array, Tracer
from func.interpreters.core.errors import NotDifferentiableError
from func.scipy.kinds.traces import part
from func.scipy.optimize import solving
from func.scipy.optimize.conditions import Constraint, Model, limits, minimum
from func.scipy.optimize.solving import Run, as_array, as_tuple, on_numbers, original, scalar, vector_of
from func.transforms.forward import hvp
from func.transforms.jacobians import hessian, jacobian
from func.transforms.reverse import grad

_optimize = private_module("scipy.optimize._optimize")
TAKING_GRADIENT = frozenset(
    [
        "cg",
        "bfgs",
        "newton-cg",
        "l-bfgs-b",
        "tnc",
        "slsqp",
        "dogleg",
        "trust-ncg",
        "trust-krylov",
        "trust-exact",
        "trust-constr",
    ]
)
WANTING_BOTH = frozenset(["bfgs", "l-bfgs-b", "cg", "tnc"])
"""Methods that ask for the gradient wherever they ask for the value."""
TAKING_HESSIAN = frozenset(["dogleg", "trust-exact"])
TAKING_PRODUCTS = frozenset(["newton-cg", "trust-ncg", "trust-krylov"])
TOLERANCES = {"trust-constr": 1e-4, "cobyla": 1e-3, "cobyqa": 1e-4, "nelder-mead": 1e-5, "powell": 1e-5}
"""The distances from a bound or constraint within which methods may end at it; other methods stop at it."""


def value_only(fun: Callable[..., Any], jac: Any) -> Callable[..., Any]:
    """The objective of a function that also returns its gradient if `jac` is True."""
    return (lambda *args: fun(*args)[0]) if jac is True or (jac is not None and jac is not False and jac == 1) else fun


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """scipy.optimize.minimize, whose solution differentiates, with func's derivatives of `fun`.

    Methods that take a gradient, a Hessian or products with it get the exact ones by default, and do not use
    differences. `x`, `fun` and `jac` of the result are functions of the parameters: of `args`, of the closure of `fun`,
    of bounds and of constraints. Conditions of active bounds and constraints are part of the equation of the solution.

    Example:
        >>> import numpy as np, func
        >>> def best(p):
        ...     f = lambda x: np.sum((x - p) ** 2 + x**4)
        ...     return func.scipy.optimize.minimize(f, np.zeros(2), tol=1e-10).x.sum()
        >>> func.grad(best)(np.array([3.0, 6.0])).round(6)
        array([0.142857, 0.086469])
    """
    slopes, as_scipys = (jac, hess, hessp), solving.is_unmodified()
    return _minimized(
        "minimize", fun, x0, args, method, slopes, bounds, constraints, tol, callback, options, with_exact, as_scipys
    )


def _minimized(
    name: str,
    fun: Callable[..., Any],
    x0: Any,
    args: Any,
    method: Any,
    slopes: Sequence[Any],
    bounds: Any,
    constraints: Any,
    tol: float | None,
    callback: Any,
    options: dict[str, Any] | None,
    complete: Callable[..., list[Any]],
    as_scipys: bool = False,
) -> Any:
    """The result of `minimize`, for functions of several names; `complete` finds derivatives that are missing."""
    args, jac = as_tuple(args), slopes[0]
    traced = solving.has_traced(fun, x0, args, slopes, _parts(bounds), _constraint_parts(constraints))
    if not traced and as_scipys:
        return original("minimize")(fun, x0, args, method, *slopes, bounds, constraints, tol, callback, options)
    run = Run(name)
    size = solving.size_of(x0)
    own = [as_constraint(constraint) for constraint in _listed(constraints)]
    objective = value_only(fun, jac)

    def minimise(model: Model, x0: Any, functions: Any) -> Any:
        slopes = complete(model.objective, x0, model.args, _name(method), functions[1:])
        fun, *slopes = [on_numbers(function, name) for function in (functions[0], *slopes)]
        if callable(slopes[0]) and not (callable(jac) or jac) and _name(method) in WANTING_BOTH and not own:
            paired = solving.Paired(model.objective)
            fun, slopes[0] = paired.value, paired.slope
        plain_bounds, plain_constraints = _as_scipy(model, bounds, constraints)
        return original("minimize")(
            fun, x0, model.args, method, *slopes, plain_bounds, plain_constraints, tol, callback, options
        )

    functions = (fun, *slopes)
    if not traced:
        return minimise(Model(objective, args, _AS_GIVEN), x0, functions)
    lower, upper = limits(bounds, size)
    model = Model(objective, args, lower, upper, tuple(own))
    tolerance = TOLERANCES.get(str(method).lower(), 1e-6)
    x, info, _ = minimum(run, model, (x0,), (functions,), minimise, size, tolerance)
    return solving.result_of(run, info, x=x, fun=model.value(x), jac=grad(model.value)(x))


_AS_GIVEN = object()


def _as_scipy(model: Model, bounds: Any, constraints: Any) -> tuple[Any, Any]:
    """Bounds and constraints for SciPy, with the numbers of a model."""
    if model.lower is _AS_GIVEN:
        return bounds, constraints
    if bounds is not None and model.lower is not None:
        keep = getattr(bounds, "keep_feasible", False)
        bounds = scipy_optimize.Bounds(np.asarray(model.lower, float), np.asarray(model.upper, float), keep)
    return bounds, [
        _constraint_as_scipy(own, old) for own, old in zip(model.constraints, _listed(constraints), strict=True)
    ]


def _constraint_as_scipy(own: Constraint, old: Any) -> Any:
    function = on_numbers(lambda x: own.value(x), "minimize")
    if isinstance(old, dict):
        new = {"type": old["type"], "fun": function}
        slope = old.get("jac")
        if callable(slope):
            new["jac"] = lambda x: slope(x, *own.args)
        else:
            exact = jacobian(own.value)
            new["jac"] = exact
        return new
    if isinstance(old, scipy_optimize.LinearConstraint):
        matrix = own.args[0]
        return scipy_optimize.LinearConstraint(
            np.asarray(matrix, float), np.asarray(own.lower, float), np.asarray(own.upper, float), old.keep_feasible
        )
    slope = old.jac if callable(old.jac) else jacobian(own.value)
    return scipy_optimize.NonlinearConstraint(
        function,
        np.asarray(own.lower, float),
        np.asarray(own.upper, float),
        slope,
        old.hess,
        old.keep_feasible,
        old.finite_diff_rel_step,
        old.finite_diff_jac_sparsity,
    )


def as_constraint(constraint: Any) -> Constraint:
    """A constraint of SciPy as a function with bounds."""
    if isinstance(constraint, dict):
        upper = 0.0 if str(constraint["type"]).lower() == "eq" else np.inf
        return Constraint(constraint["fun"], as_tuple(constraint.get("args", ())), 0.0, upper)
    if isinstance(constraint, scipy_optimize.LinearConstraint):
        return Constraint(_times, (_dense(constraint.A),), _bound(constraint.lb), _bound(constraint.ub))
    if isinstance(constraint, scipy_optimize.NonlinearConstraint):
        return Constraint(constraint.fun, (), _bound(constraint.lb), _bound(constraint.ub))
    raise TypeError(f"func.scipy.optimize: a constraint is a dict or an object of SciPy's, not {type(constraint)}")


def _times(x: Array, matrix: Array) -> Array:
    return matrix @ x


def _dense(matrix: Any) -> Any:
    if hasattr(matrix, "toarray"):
        matrix = matrix.toarray()
    matrix = _bound(matrix)
    return matrix if len(np.shape(matrix)) == 2 else np.reshape(matrix, (1, -1))


def _bound(value: Any) -> Any:
    """Numbers of a constraint, which SciPy may keep in an array of objects."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array(value.tolist()) if value.shape else value.item()
    return value


def _listed(constraints: Any) -> list[Any]:
    if constraints is None:
        return []
    return list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]


def _parts(bounds: Any) -> Any:
    """Bounds for the search for traced values."""
    return (bounds.lb, bounds.ub) if isinstance(bounds, scipy_optimize.Bounds) else bounds


def _constraint_parts(constraints: Any) -> Any:
    return [
        constraint
        if isinstance(constraint, dict)
        else [vars(constraint).get(name) for name in ("A", "fun", "lb", "ub")]
        for constraint in _listed(constraints)
    ]


def _name(method: Any) -> str:
    """The name of the method, or SciPy's default, which takes a gradient."""
    return "bfgs" if method is None else str(method).lower()


def as_given(fun: Any, x0: Any, args: tuple[Any, ...], method: str, slopes: Sequence[Any]) -> list[Any]:
    """(jac, hess, hessp) as the caller passes them; SciPy takes differences where they are missing."""
    return list(slopes)


def with_exact(fun: Any, x0: Any, args: tuple[Any, ...], method: str, slopes: Sequence[Any]) -> list[Any]:
    """(jac, hess, hessp), by default func's for a method that takes them."""
    jac, hess, hessp = slopes
    start = np.atleast_1d(np.asarray(x0, float)).ravel()
    if (jac is None or jac is False) and method in TAKING_GRADIENT:
        jac = solving.exact_gradient(fun, start, args)

    def value(x: Any, *args: Any) -> Any:
        return scalar(fun(x, *args))

    if hess is None and hessp is None and jac is not None and method in TAKING_HESSIAN | TAKING_PRODUCTS:

        def product(x: Any, p: Any, *args: Any) -> Any:
            return hvp(lambda x: value(x, *args), (x,), (np.asarray(p, float),))

        if method in TAKING_HESSIAN:
            hess = hessian(value) if solving.works(hessian(value), start, *args) else None
        elif solving.works(product, start, np.ones_like(start), *args):
            hessp = product
    return [jac, hess, hessp]


def _one_variable(name: str) -> Callable[..., Any]:
    """A search for a minimum in one variable: (run, fun, args, starts, bounds, minimise) -> x, info."""

    def find(fun: Any, args: Any, starts: Any, bounds: Any, minimise: Any) -> Any:
        run = Run(name)

        def of_vector(x: Array, *args: Any) -> Any:
            return scalar(fun(x[0], *args))

        lower, upper = (None, None) if bounds is None else (vector_of(bounds[0]), vector_of(bounds[1]))

        def solve(model: Model, *parts: Any) -> Any:
            plain = on_numbers(parts[-1][0], name)
            numbers = None if model.lower is None else (float(model.lower[0]), float(model.upper[0]))
            return minimise(plain, model.args, numbers, *parts[:-1])

        model = Model(of_vector, args, lower, upper)
        x, info, _ = minimum(run, model, starts, ((fun,),), solve, 1, 1e-4)
        return run, x[0], info

    return find


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """scipy.optimize.minimize_scalar, whose solution differentiates where f'(x) = 0, or with its active bound.

    Example:
        >>> import func
        >>> func.grad(lambda p: func.scipy.optimize.minimize_scalar(lambda x: (x * x - p) ** 2, (0, 1)).x)(4.0).round(4)
        np.float64(0.25)
    """
    args = as_tuple(args)
    if not solving.has_traced(fun, bracket, bounds, args):
        return original("minimize_scalar")(fun, bracket, bounds, args, method, tol, options)

    def minimise(plain: Any, args: Any, numbers: Any, bracket: Any) -> Any:
        return original("minimize_scalar")(plain, bracket, numbers, args, method, tol, options)

    run, x, info = _one_variable("minimize_scalar")(fun, args, (bracket,), bounds, minimise)
    return solving.result_of(run, info, x=x, fun=scalar(fun(x, *args)))


def _older(name: str, solver: str, solve: Callable[..., Any]) -> Callable[..., Any]:
    """One of SciPy's older functions: its own code, which calls this solver instead of SciPy's."""
    own = part(
        getattr(scipy_optimize, name),
        **{solver: solve},
        MemoizeJac=_WithoutSlope,
        _wrap_callback=lambda callback, *method: callback,  # minimize does so
    )

    def minimiser(*args: Any, **options: Any) -> Any:
        if solving.is_unmodified() and not solving.has_traced(args, options):
            return original(name)(*args, **options)
        return own(*args, **options)

    minimiser.__name__ = minimiser.__qualname__ = name
    minimiser.__doc__ = f"scipy.optimize.{name}, whose minimum differentiates; as `minimize`."
    minimiser.__signature__ = inspect.signature(original(name))  # type: ignore[attr-defined]
    return minimiser


class _WithoutSlope:
    """An objective without another function for its gradient: it returns its value, or (value, gradient)."""

    derivative = None

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def returns_pair(self, x0: Any, args: Any) -> bool:
        """Whether it returns (value, gradient)."""
        out = self.fun(np.asarray(x0, float).ravel() if not isinstance(x0, Tracer) else as_array(x0), *args)
        return isinstance(out, tuple) and len(out) == 2


def _older_minimiser(name: str, solver: str, method: str, *names: str) -> Callable[..., Any]:
    """One of SciPy's older functions for a method of `minimize`; `names` are those of the solver's arguments."""

    def solve(fun: Any, x0: Any, args: Any = (), *more: Any, **options: Any) -> Any:
        given = dict(zip(names, more, strict=False)) | options
        jac, hess, hessp, bounds, constraints, callback = [given.pop(key, None) for key in _ARGUMENTS]
        complete = with_exact
        if isinstance(fun, _WithoutSlope):
            fun, jac = fun.fun, fun.returns_pair(x0, args) or None
        elif method in ("l-bfgs-b", "tnc"):  # without a gradient the caller wants differences
            complete = as_given
        if isinstance(bounds, (list, tuple)) and not bounds:
            bounds = None
        result = _minimized(
            name, fun, x0, args, method, (jac, hess, hessp), bounds, constraints, None, callback, given, complete
        )
        for key in _OUTPUTS:
            result.setdefault(key, "not known in a batch or in compiled code")
        return result

    return _older(name, solver, solve)


_ARGUMENTS = ("jac", "hess", "hessp", "bounds", "constraints", "callback")
_OUTPUTS = ("njev", "nhev", "hess_inv", "direc", "allvecs")
"""Results of the solvers that func's minimize does not have in compiled code."""
fmin = _older_minimiser("fmin", "_minimize_neldermead", "nelder-mead")
fmin_powell = _older_minimiser("fmin_powell", "_minimize_powell", "powell")
fmin_cg = _older_minimiser("fmin_cg", "_minimize_cg", "cg", "jac")
fmin_bfgs = _older_minimiser("fmin_bfgs", "_minimize_bfgs", "bfgs", "jac")
fmin_ncg = _older_minimiser("fmin_ncg", "_minimize_newtoncg", "newton-cg", "jac", "hess", "hessp")
fmin_l_bfgs_b = _older_minimiser("fmin_l_bfgs_b", "_minimize_lbfgsb", "l-bfgs-b")
fmin_tnc = _older_minimiser("fmin_tnc", "_minimize_tnc", "tnc", "jac", "bounds")
fmin_slsqp = _older_minimiser("fmin_slsqp", "_minimize_slsqp", "slsqp")
fmin_cobyla = _older_minimiser("fmin_cobyla", "_minimize_cobyla", "cobyla")


def _older_search(name: str, solver: str) -> Callable[..., Any]:
    """One of SciPy's older functions for a minimum in one variable."""

    def solve(fun: Any, where: Any, args: Any = (), **options: Any) -> Any:
        args = as_tuple(args)
        own = getattr(_optimize, solver)
        if not solving.has_traced(fun, where, args):
            return own(fun, where, args, **options)
        starts, bounds = ((), where) if name == "fminbound" else ((where,), None)

        def minimise(plain: Any, args: Any, bounds: Any, *starts: Any) -> Any:
            return own(plain, *(starts or (bounds,)), args, **options)

        run, x, info = _one_variable(name)(fun, args, starts, bounds, minimise)
        return solving.result_of(run, info, x=x, fun=scalar(fun(x, *args)))

    return _older(name, solver, solve)


brent = _older_search("brent", "_minimize_scalar_brent")
golden = _older_search("golden", "_minimize_scalar_golden")
fminbound = _older_search("fminbound", "_minimize_scalar_bounded")


def _searching(name: str) -> Callable[..., Any]:
    """One of SciPy's global searches, whose result is a minimum."""
    signature = inspect.signature(original(name))

    def search(*positional: Any, **options: Any) -> Any:
        given = dict(signature.bind(*positional, **options).arguments)
        fun, args = given.pop("func"), as_tuple(given.pop("args", ()))
        key = "x0" if name == "basinhopping" else "bounds"
        start = given.pop(key)
        if name == "basinhopping":
            own = dict(given.get("minimizer_kwargs") or {})
            args = as_tuple(own.get("args", ()))
        if not solving.has_traced(fun, args, _parts(start), given):
            return original(name)(*positional, **options)
        run = Run(name)
        if name == "basinhopping":
            size, lower, upper = solving.size_of(start), None, None
        else:
            size = solving.size_of(start.lb) if isinstance(start, scipy_optimize.Bounds) else len(start)
            lower, upper = limits(start, size)

        def minimise(model: Model, held: Any) -> Any:
            plain, more = on_numbers(held[0], name), dict(given)
            if name == "basinhopping":
                more["minimizer_kwargs"] = {**(given.get("minimizer_kwargs") or {}), "args": model.args}
                return original(name)(plain, _numbers(held[1]), **more)
            box = scipy_optimize.Bounds(np.asarray(model.lower, float), np.asarray(model.upper, float))
            return original(name)(plain, box, args=model.args, **more)

        model = Model(fun, args, lower, upper)
        held = (fun, start if name == "basinhopping" else None)
        x, info, _ = minimum(run, model, (), (held,), minimise, size, TOLERANCES["powell"])
        return solving.result_of(run, info, x=x, fun=model.value(x))

    search.__name__ = search.__qualname__ = name
    search.__doc__ = f"scipy.optimize.{name}, whose minimum differentiates; as `minimize`."
    return search


def _numbers(value: Any) -> Any:
    return np.asarray(value, float)


basinhopping, differential_evolution, direct, dual_annealing, shgo = [
    _searching(name) for name in ("basinhopping", "differential_evolution", "direct", "dual_annealing", "shgo")
]


def brute(
    func: Callable[..., Any],
    ranges: Any,
    args: Any = (),
    Ns: int = 20,
    full_output: Any = 0,
    finish: Any = scipy_optimize.fmin,
    disp: bool = False,
    workers: Any = 1,
) -> Any:
    """scipy.optimize.brute, whose minimum differentiates if `finish` has found it, unlike points of the grid.

    Raises:
        NotDifferentiableError: Without `finish`: the result is the best point of a grid (a TypeError).
    """
    args = as_tuple(args)
    rest = (Ns, full_output, finish, disp, workers)
    if not solving.has_traced(func, args, ranges):
        return original("brute")(func, ranges, args, *rest)
    if finish is None:
        raise NotDifferentiableError(
            "scipy.optimize.brute with finish=None returns a point of a grid, which has no derivative; pass finish, "
            "or call it on plain numbers (func.stop_gradient)"
        )
    run = Run("brute")

    def minimise(model: Model, func: Any) -> Any:
        found = original("brute")(on_numbers(func[0], "brute"), ranges, model.args, *rest)
        return {"x": found[0] if full_output else found, "found": found}

    size = len(ranges) if isinstance(ranges, (list, tuple)) else 1
    model = Model(func, args)
    x, _, _ = minimum(run, model, (), ((func,),), minimise, size, TOLERANCES["powell"])
    if not full_output:
        return x
    rest_of = ("not known in a batch or in compiled code",) if run.known is None else run.known["found"][2:]
    return (x, model.value(x), *rest_of)
