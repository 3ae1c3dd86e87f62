"""Roots and fixed points: at x with f(x, p) = 0, dx = -(df/dx)⁻¹ (df/dp) dp."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func.interpreters.core import Array, Aval, shape_of
from func.scipy.optimize import solving
from func.scipy.optimize.native_newton import newton_or
from func.scipy.optimize.solving import INFO, Run, as_array, as_tuple, on_numbers, original, scalar
from func.transforms.implicit import Problem
from func.transforms.reverse import grad

DENSE = 64
"""The most roots of an elementwise function for which its Jacobian is a matrix."""


def _succeeded(aux: Any) -> Any:
    return aux[0] != 0


def _first(fun: Callable[..., Any], jac: Any) -> Callable[..., Any]:
    """The value of a function that also returns its Jacobian if `jac` is True."""
    return (lambda *args: fun(*args)[0]) if jac is True else fun


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Any = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """scipy.optimize.root, whose solution differentiates by the implicit function theorem.

    SciPy finds the root, by default with func's Jacobian for the methods hybr and lm. `x` and `fun` are functions of
    the parameters: of `args`, and of values in the closure of `fun`.

    Example:
        >>> import numpy as np, func
        >>> def norm_of_root(p):
        ...     sol = func.scipy.optimize.root(lambda x: x**3 + x - p, np.zeros(2), tol=1e-12)
        ...     return np.sum(sol.x)
        >>> func.grad(norm_of_root)(np.array([2.0, 10.0])).round(6)
        array([0.25    , 0.076923])
    """
    args = as_tuple(args)
    traced = solving.has_traced(fun, x0, args, jac)
    if not traced and solving.is_unmodified():
        return original("root")(fun, x0, args, method, jac, tol, callback, options)
    run = Run("root")
    value = _first(fun, jac)
    shape = (solving.size_of(x0),) if method in ("hybr", "lm") else shape_of(as_array(x0))

    def residual(x: Any, aux: Any, fun: Any, args: Any, jac: Any) -> Any:
        return as_array(_first(fun, jac)(x, *args))

    def solve(x0: Any, fun: Any, args: Any, jac: Any) -> Any:
        plain, slope = on_numbers(fun, "root"), on_numbers(jac, "root")
        if method in ("hybr", "lm") and not callable(jac) and not jac:
            slope = solving.exact_jacobian(fun, np.asarray(x0, float).ravel(), args)
        result = run.note(original("root")(plain, x0, args, method, slope, tol, callback, options))
        return np.asarray(result.x), solving.info_of(result)

    problem = Problem(residual, solve, None, (x0,), (fun, args, jac), solving.check_of("root", _succeeded))
    if not traced:
        solve(x0, fun, args, jac)
        return run.result
    if method in ("hybr", "lm") and options is None and callback is None:
        problem = problem._replace(native=newton_or)
    x, info = solving.solve(problem, (Aval(shape, solving.float_dtype(x0)), INFO))
    return solving.result_of(run, info, x=x, fun=as_array(value(x, *args)))


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: float = 1.49012e-08,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """scipy.optimize.fsolve, whose root differentiates; as `root`.

    Example:
        >>> import numpy as np, func
        >>> func.grad(lambda p: func.scipy.optimize.fsolve(lambda x: x**2 - p, 1.0)[0])(4.0).round(6)
        np.float64(0.25)
    """
    args = as_tuple(args)
    rest = (col_deriv, xtol, maxfev, band, epsfcn, factor, diag)
    traced = solving.has_traced(func, x0, args, fprime)
    if not traced and solving.is_unmodified():
        return original("fsolve")(func, x0, args, fprime, full_output, *rest)
    run = Run("fsolve")

    def residual(x: Any, aux: Any, fun: Any, args: Any, fprime: Any) -> Any:
        return as_array(fun(x, *args))

    def solve(x0: Any, fun: Any, args: Any, fprime: Any) -> Any:
        plain, slope, flags = on_numbers(fun, "fsolve"), on_numbers(fprime, "fsolve"), rest
        if fprime is None and band is None:
            slope = solving.exact_jacobian(fun, np.asarray(x0, float).ravel(), args)
            flags = (0, *rest[1:]) if slope is not None else rest
        found = original("fsolve")(plain, x0, args, slope, full_output, *flags)
        run.note(found)
        x, status = (found[0], found[2]) if full_output else (found, 1)
        return np.asarray(x), np.array([status == 1, status, 0, 0], np.int64)

    if not traced:
        solve(x0, func, args, fprime)
        return run.result
    check = solving.check_of("fsolve", _succeeded)
    problem = Problem(residual, solve, None, (x0,), (func, args, fprime), check)
    shape = (solving.size_of(x0),)
    if band is None and diag is None and not maxfev:
        problem = problem._replace(native=newton_or)
    x, info = solving.solve(problem, (Aval(shape, solving.float_dtype(x0)), INFO))
    if not full_output:
        return x
    value = as_array(func(x, *args))
    known = run.known
    if known is None:
        return x, {"fvec": value}, info[1], "what the solver says is not known in a batch or in compiled code"
    return x, {**known[1], "fvec": value}, *known[2:]


def _scalar_problem(name: str, residual: Any, solve: Any, starts: Any, params: Any) -> Problem:
    return Problem(residual, solve, None, starts, params, solving.check_of(name, _succeeded))


def _root_results(run: Run, x: Any, info: Array, method: str) -> Any:
    """SciPy's RootResults with a root that differentiates."""
    known = run.known
    if known is not None:
        result = copy.copy(known)
        result["root"] = x
        return result
    result = scipy_optimize.RootResults(root=x, iterations=info[3], function_calls=info[2], flag=0, method=method)
    result["converged"] = info[0] != 0
    result["flag"] = "what the solver says is not known in a batch or in compiled code; see converged"
    return result


def _info_of_root(result: Any) -> Array:
    return np.array([bool(result.converged), 0, result.function_calls, result.iterations], np.int64)


def _bracketing(name: str) -> Callable[..., Any]:
    """A function of SciPy that finds the root of a scalar function in a bracket."""
    signature = inspect.signature(original(name))

    def solver(f: Callable[..., Any], a: Any, b: Any, *more: Any, **options: Any) -> Any:
        bound = signature.bind(f, a, b, *more, **options)
        bound.apply_defaults()
        given = dict(bound.arguments)
        args, full_output = as_tuple(given.pop("args")), given.pop("full_output")
        for key in ("f", "a", "b"):
            del given[key]
        if not solving.has_traced(f, a, b, args, given):
            return original(name)(f, a, b, *more, **options)
        run = Run(name)

        def residual(x: Any, aux: Any, f: Any, args: Any) -> Any:
            return scalar(f(x, *args))

        def solve(a: Any, b: Any, given: Any, f: Any, args: Any) -> Any:
            plain = on_numbers(f, name)

            def at(x: float, *args: Any) -> float:
                return float(scalar(plain(x, *args)))

            x, result = original(name)(at, float(a), float(b), args=args, full_output=True, **given)
            run.note(result)
            return np.float64(x), _info_of_root(result)

        problem = _scalar_problem(name, residual, solve, (a, b, given), (f, args))
        x, info = solving.solve(problem, (Aval((), solving.FLOAT), INFO))
        return (x, _root_results(run, x, info, name)) if full_output else x

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = (
        f"scipy.optimize.{name}, whose root differentiates by the implicit function theorem, in `args` and in what f "
        "has in its closure; the bracket only chooses the root."
    )
    return solver


bisect, brenth, brentq, ridder, toms748 = [
    _bracketing(name) for name in ("bisect", "brenth", "brentq", "ridder", "toms748")
]


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    tol: float = 1.48e-08,
    maxiter: int = 50,
    fprime2: Any = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """scipy.optimize.newton (the methods of Newton, Halley and the secant), whose root differentiates.

    From many starts, for which SciPy wants an elementwise function, every root differentiates. The derivative is right
    even if the start is the root.

    Example:
        >>> import func
        >>> root = lambda p: func.scipy.optimize.newton(lambda x: x**2 - p, 2.0, fprime=lambda x: 2 * x)
        >>> func.grad(root)(4.0)
        np.float64(0.25)
    """
    args = tuple(args)  # SciPy unpacks any iterable
    rest = {"tol": tol, "maxiter": maxiter, "rtol": rtol, "disp": disp}
    if not solving.has_traced(func, x0, fprime, args, fprime2, x1):
        return original("newton")(func, x0, fprime, args, fprime2=fprime2, x1=x1, full_output=full_output, **rest)
    run = Run("newton")
    shape, dtype = shape_of(as_array(x0)), solving.float_dtype(x0)
    is_scalar = solving.size_of(x0) <= 1 and shape == ()

    def residual(x: Any, aux: Any, func: Any, args: Any, slopes: Any) -> Any:
        return as_array(func(x, *args))

    def solve(x0: Any, x1: Any, func: Any, args: Any, slopes: Any) -> Any:
        plain = [on_numbers(function, "newton") for function in (func, *slopes)]
        found = original("newton")(plain[0], x0, plain[1], args, fprime2=plain[2], x1=x1, full_output=True, **rest)
        run.note(found[1])
        if is_scalar:
            return dtype.type(found[0]), _info_of_root(found[1])
        flags = np.array([np.all(found[1]), 0, 0, 0], np.int64)
        return np.asarray(found[0], dtype), (flags, np.asarray(found[1]), np.asarray(found[2]))

    params = (func, args, (fprime, fprime2))
    if is_scalar:
        problem = _scalar_problem("newton", residual, solve, (x0, x1), params)
        x, info = solving.solve(problem, (Aval((), dtype), INFO))
        return (x, _root_results(run, x, info, "newton")) if full_output else x
    flags = Aval(shape, np.dtype(bool))
    problem = Problem(
        residual,
        solve,
        None if solving.size_of(x0) <= DENSE else _diagonal,
        (x0, x1),
        params,
        solving.check_of("newton", lambda aux: aux[0][0] != 0),
    )
    x, (_, converged, zero_der) = solving.solve(problem, (Aval(shape, dtype), (INFO, flags, flags)))
    if not full_output:
        return x
    return x, converged, zero_der


def _diagonal(g: Callable[[Any], Any], y: Any) -> Any:
    """The x with g(x) = y for a linear map that takes each number separately."""
    return y / g(np.ones_like(y))


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """scipy.optimize.root_scalar, whose `root` differentiates; Newton and Halley get func's derivatives of f.

    Example:
        >>> import func
        >>> func.grad(lambda p: func.scipy.optimize.root_scalar(lambda x: x**3 - p, x0=2.0).root)(8.0).round(6)
        np.float64(0.083333)
    """
    args = as_tuple(args)
    rest = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}
    traced = solving.has_traced(f, args, bracket, fprime, fprime2, x0, x1)
    if not traced and solving.is_unmodified():
        return original("root_scalar")(f, args, method, bracket, fprime, fprime2, x0, x1, **rest)
    run = Run("root_scalar")
    pairs = fprime is True  # f returns its derivatives as well
    many = fprime2 is True

    def value(f: Any) -> Any:
        return (lambda *a: f(*a)[0]) if pairs or many else f

    def residual(x: Any, aux: Any, f: Any, args: Any, slopes: Any) -> Any:
        return scalar(value(f)(x, *args))

    def solve(bracket: Any, x0: Any, x1: Any, f: Any, args: Any, slopes: Any) -> Any:
        plain = on_numbers(f, "root_scalar")
        first, second = [on_numbers(function, "root_scalar") for function in slopes]
        if first is None and x0 is not None and x1 is None and bracket is None and method in (None, "newton", "halley"):
            start = float(np.real(x0)) if np.isrealobj(x0) else complex(x0)
            exact = grad(lambda x, *args: scalar(f(x, *args)))
            if solving.works(exact, start, *args):
                first = on_numbers(exact, "root_scalar")
                if method == "halley" and second is None:
                    second = on_numbers(grad(exact), "root_scalar")
        result = original("root_scalar")(plain, args, method, bracket, first, second, x0, x1, **rest)
        run.note(result)
        return np.asarray(result.root)[()], _info_of_root(result)

    params = (f, args, (fprime, fprime2))
    if not traced:
        solve(bracket, x0, x1, *params)
        return run.result
    dtype = solving.FLOAT if x0 is None else solving.float_dtype(x0)
    problem = _scalar_problem("root_scalar", residual, solve, (bracket, x0, x1), params)
    x, info = solving.solve(problem, (Aval((), dtype), INFO))
    return _root_results(run, x, info, method or "newton")


def fixed_point(
    func: Callable[..., Any], x0: Any, args: Any = (), xtol: float = 1e-08, maxiter: int = 500, method: str = "del2"
) -> Any:
    """scipy.optimize.fixed_point, whose result differentiates as the x with func(x) = x.

    Example:
        >>> import numpy as np, func
        >>> func.grad(lambda p: func.scipy.optimize.fixed_point(lambda x: np.cos(p * x), 1.0))(1.0).round(6)
        np.float64(-0.297474)
    """
    args = as_tuple(args)
    if not solving.has_traced(func, x0, args):
        return original("fixed_point")(func, x0, args, xtol, maxiter, method)
    run = Run("fixed_point")

    def residual(x: Any, aux: Any, func: Any, args: Any) -> Any:
        return x - func(x, *args)

    def solve(x0: Any, func: Any, args: Any) -> Any:
        plain = on_numbers(func, "fixed_point")
        x = run.note(original("fixed_point")(plain, x0, args, xtol, maxiter, method))
        return np.asarray(x)[()], np.ones(1, bool)

    problem = _scalar_problem("fixed_point", residual, solve, (x0,), (func, args))
    aux = Aval((1,), np.dtype(bool))
    return solving.solve(problem, (Aval(shape_of(as_array(x0)), solving.float_dtype(x0)), aux))[0]


def _nonlinear(name: str) -> Callable[..., Any]:
    """A solver of SciPy for large systems by approximate Jacobians."""

    def solver(F: Callable[..., Any], xin: Any, iter: Any = None, *more: Any, **options: Any) -> Any:
        if not solving.has_traced(F, xin):
            return original(name)(F, xin, iter, *more, **options)
        shape, dtype = shape_of(as_array(xin)), solving.float_dtype(xin)

        def residual(x: Any, aux: Any, F: Any) -> Any:
            return as_array(F(x))

        def solve(xin: Any, F: Any) -> Any:
            x = original(name)(on_numbers(F, name), xin, iter, *more, **options)
            return np.asarray(x, dtype), np.ones(1, bool)

        problem = _scalar_problem(name, residual, solve, (xin,), (F,))
        return solving.solve(problem, (Aval(shape, dtype), Aval((1,), np.dtype(bool))))[0]

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = f"scipy.optimize.{name}, whose root differentiates in what F has in its closure."
    return solver


anderson, broyden1, broyden2, diagbroyden, excitingmixing, linearmixing, newton_krylov = [
    _nonlinear(name)
    for name in ("anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing", "newton_krylov")
]
