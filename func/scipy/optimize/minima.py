"""Minima: of functions of one or many variables, free, within bounds or under constraints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func.interpreters.core import Array, Tracer
from func.interpreters.core.errors import NotDifferentiableError
from func.scipy.optimize import solving
from func.scipy.optimize.conditions import Constraint, Model, limits, minimum
from func.scipy.optimize.solving import Run, as_array, as_tuple, on_numbers, original, scalar, vector_of
from func.transforms.forward import hvp
from func.transforms.jacobians import hessian, jacobian
from func.transforms.reverse import grad

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
    args = as_tuple(args)
    given = (jac, hess, hessp)
    traced = solving.has_traced(fun, x0, args, given, _parts(bounds), _constraint_parts(constraints))
    if not traced and solving.is_unmodified():
        return original("minimize")(
            fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options
        )
    run = Run("minimize")
    size = solving.size_of(x0)
    own = [as_constraint(constraint) for constraint in _listed(constraints)]
    objective = value_only(fun, jac)

    def minimise(model: Model, x0: Any, functions: Any) -> Any:
        slopes = with_exact(model.objective, x0, model.args, _name(method), functions[1:])
        fun, *slopes = [on_numbers(function, "minimize") for function in (functions[0], *slopes)]
        if callable(slopes[0]) and not (callable(jac) or jac) and _name(method) in WANTING_BOTH and not own:
            paired = solving.Paired(model.objective)
            fun, slopes[0] = paired.value, paired.slope
        plain_bounds, plain_constraints = _as_scipy(model, bounds, constraints)
        return original("minimize")(
            fun, x0, model.args, method, *slopes, plain_bounds, plain_constraints, tol, callback, options
        )

    functions = (fun, *given)
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


def brent(
    func: Callable[..., Any],
    args: Any = (),
    brack: Any = None,
    tol: float = 1.48e-08,
    full_output: Any = 0,
    maxiter: int = 500,
) -> Any:
    """scipy.optimize.brent, whose minimum differentiates; as `minimize_scalar`."""
    return _legacy_scalar("brent", func, args, (brack,), None, (tol, full_output, maxiter), full_output)


def golden(
    func: Callable[..., Any],
    args: Any = (),
    brack: Any = None,
    tol: float = float(np.sqrt(np.finfo(float).eps)),
    full_output: Any = 0,
    maxiter: int = 5000,
) -> Any:
    """scipy.optimize.golden, whose minimum differentiates; as `minimize_scalar`."""
    return _legacy_scalar("golden", func, args, (brack,), None, (tol, full_output, maxiter), full_output)


def fminbound(
    func: Callable[..., Any],
    x1: Any,
    x2: Any,
    args: Any = (),
    xtol: float = 1e-05,
    maxfun: int = 500,
    full_output: Any = 0,
    disp: int = 1,
) -> Any:
    """scipy.optimize.fminbound, whose minimum differentiates; as `minimize_scalar`."""
    return _legacy_scalar("fminbound", func, args, (), (x1, x2), (xtol, maxfun, full_output, disp), full_output)


def _legacy_scalar(name: str, fun: Any, args: Any, starts: Any, bounds: Any, rest: Any, full: Any) -> Any:
    args = as_tuple(args)

    def call(fun: Any, args: Any, numbers: Any, *starts: Any) -> Any:
        return original(name)(fun, *(() if numbers is None else numbers), args, *starts, *rest)

    if not solving.has_traced(fun, args, starts, bounds):
        return call(fun, args, bounds, *starts)

    def minimise(plain: Any, args: Any, numbers: Any, *starts: Any) -> Any:
        found = call(plain, args, numbers, *starts)
        return {"x": found[0] if full else found, "found": found}

    run, x, _ = _one_variable(name)(fun, args, starts, bounds, minimise)
    if not full:
        return x
    known = run.known
    return (x, scalar(fun(x, *args)), *(("not known in compiled code",) if known is None else known["found"][2:]))


def _legacy(name: str, gradient: str | None, bounded: bool = False) -> Callable[..., Any]:
    """One of SciPy's older functions for one method of `minimize`."""
    signature = inspect.signature(original(name))
    first = next(iter(signature.parameters))

    def minimiser(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        given = dict(bound.arguments)
        fun, x0 = given.pop(first), given.pop("x0")
        params = as_tuple(given.pop("args", ()))
        slopes = {key: given.pop(key) for key in ("fprime", "fhess", "fhess_p") if key in given}
        box = given.pop("bounds", None) if bounded else None
        traced = solving.has_traced(fun, x0, params, slopes, box, given)
        if not traced and solving.is_unmodified():
            return original(name)(*args, **options)
        pairs = bounded and slopes.get("fprime") is None and not given.get("approx_grad")
        if not traced and pairs and not solving.works(grad(_scalar_of(fun)), np.asarray(x0, float).ravel(), *params):
            return original(name)(*args, **options)
        run = Run(name)
        objective = fun
        if pairs and _returns_pair(fun, x0, params):
            objective = value_only(fun, True)
            pairs = True
        else:
            pairs = False

        def minimise(model: Model, x0: Any, held: Any, slopes: Any) -> Any:
            plain = on_numbers(held[0], name)
            used = {key: on_numbers(slope, name) for key, slope in slopes.items()}
            more = dict(given)
            if gradient is not None and used.get("fprime") is None and not given.get("approx_grad") and not pairs:
                exact = solving.exact_gradient(held[0], np.asarray(x0, float).ravel(), model.args)
                if exact is not None:
                    used["fprime"] = exact
            if model.lower is not None:
                low, high = np.asarray(model.lower, float), np.asarray(model.upper, float)
                more["bounds"] = list(zip(low.tolist(), high.tolist(), strict=True))
            found = original(name)(plain, x0, args=model.args, **used, **more)
            x = found[0] if isinstance(found, tuple) else found
            return {"x": x, "found": found}

        size = solving.size_of(x0)
        lower, upper = limits(box, size)
        model = Model(objective, params, lower, upper)
        if not traced:
            return minimise(model, x0, (fun,), slopes)["found"]
        x, _, _ = minimum(run, model, (x0,), ((fun,), slopes), minimise, size, TOLERANCES["powell"])
        known = run.known
        found = None if known is None else known["found"]
        if not (isinstance(found, tuple) if known is not None else _is_full(name, given)):
            return x
        rest = ("not known in a batch or in compiled code",) if found is None else found[2:]
        if name == "fmin_tnc":
            return (x, *(rest if found is None else found[1:]))
        return (x, model.value(x), *rest)

    minimiser.__name__ = minimiser.__qualname__ = name
    minimiser.__doc__ = f"scipy.optimize.{name}, whose minimum differentiates; as `minimize`."
    return minimiser


def _is_full(name: str, given: dict[str, Any]) -> bool:
    return name in ("fmin_l_bfgs_b", "fmin_tnc") or bool(given.get("full_output")) or bool(given.get("retall"))


def _scalar_of(fun: Any) -> Any:
    return lambda x, *args: scalar(fun(x, *args))


def _returns_pair(fun: Any, x0: Any, args: Any) -> bool:
    """Whether a function returns (value, gradient), as for the older functions without fprime."""
    out = fun(np.asarray(x0, float).ravel() if not isinstance(x0, Tracer) else as_array(x0), *args)
    return isinstance(out, tuple) and len(out) == 2


fmin, fmin_powell = _legacy("fmin", None), _legacy("fmin_powell", None)
fmin_cg, fmin_bfgs, fmin_ncg = (
    _legacy("fmin_cg", "fprime"),
    _legacy("fmin_bfgs", "fprime"),
    _legacy("fmin_ncg", "fprime"),
)
fmin_l_bfgs_b, fmin_tnc = _legacy("fmin_l_bfgs_b", "fprime", True), _legacy("fmin_tnc", "fprime", True)


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


def _constrained(name: str) -> Callable[..., Any]:
    """fmin_slsqp or fmin_cobyla, whose constraints are functions."""
    signature = inspect.signature(original(name))

    def minimiser(*args: Any, **options: Any) -> Any:
        given = dict(signature.bind(*args, **options).arguments)
        fun, x0 = given.pop("func"), given.pop("x0")
        params = as_tuple(given.pop("args", ()))
        if not solving.has_traced(fun, x0, params, given):
            return original(name)(*args, **options)
        constraints = _of_slsqp(given, params) if name == "fmin_slsqp" else _of_cobyla(given, params)
        size = solving.size_of(x0)
        lower, upper = limits(given.get("bounds"), size)
        run = Run(name)

        def minimise(model: Model, x0: Any, parts: Any) -> Any:
            fun, given = parts
            more = {key: _on_numbers_inside(value, name) for key, value in given.items()}
            if model.lower is not None:
                low, high = np.asarray(model.lower, float), np.asarray(model.upper, float)
                more["bounds"] = list(zip(low.tolist(), high.tolist(), strict=True))
            if name == "fmin_slsqp" and more.get("fprime") is None:
                exact = solving.exact_gradient(fun, np.asarray(x0, float).ravel(), model.args)
                more = more if exact is None else {**more, "fprime": exact}
            found = original(name)(on_numbers(fun, name), x0, args=model.args, **more)
            x = found[0] if isinstance(found, tuple) else found
            succeeded = not isinstance(found, tuple) or name != "fmin_slsqp" or found[3] == 0
            return {"x": x, "found": found, "success": succeeded}

        model = Model(fun, params, lower, upper, tuple(constraints))
        x, info, _ = minimum(run, model, (x0,), ((fun, given),), minimise, size, TOLERANCES.get(name[5:], 1e-6))
        if not given.get("full_output"):
            return x
        if run.known is None:
            return x, model.value(x), info[3], info[1], "what the solver says is not known in compiled code"
        return (x, model.value(x), *run.known["found"][2:])

    minimiser.__name__ = minimiser.__qualname__ = name
    minimiser.__doc__ = f"scipy.optimize.{name}, whose minimum differentiates; as `minimize`."
    return minimiser


def _on_numbers_inside(value: Any, name: str) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_on_numbers_inside(part, name) for part in value])
    return on_numbers(value, name)


def _of_slsqp(given: dict[str, Any], params: Any) -> list[Constraint]:
    """The constraints of fmin_slsqp; functions of all equations or inequalities take precedence over lists."""
    own = []
    for several, single, upper in (("f_eqcons", "eqcons", 0.0), ("f_ieqcons", "ieqcons", np.inf)):
        functions = [given[several]] if given.get(several) is not None else given.get(single, ())
        own += [Constraint(function, params, 0.0, upper) for function in functions]
    return own


def _of_cobyla(given: dict[str, Any], params: Any) -> list[Constraint]:
    functions = given["cons"]
    extra = params if given.get("consargs") is None else as_tuple(given["consargs"])
    return [
        Constraint(function, extra, 0.0, np.inf)
        for function in (functions if isinstance(functions, (list, tuple)) else [functions])
    ]


fmin_slsqp, fmin_cobyla = _constrained("fmin_slsqp"), _constrained("fmin_cobyla")


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
