"""solve_bvp, whose solution differentiates by its collocation equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipy

import func as _func
from func.host.patching import with_converters
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Tracer, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy import asarray
from func.scipy.integrate.numbers import Parameters, check_plain, numbers_of
from func.scipy.kinds.traces import in_original
from func.transforms.custom import stop_gradient

_bvp = private_module("scipy.integrate._bvp")


@with_converters
def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    tol: Any = 1e-3,
    max_nodes: Any = 1000,
    verbose: Any = 0,
    bc_tol: Any = None,
) -> Any:
    """Solution of a boundary value problem, with derivatives in everything that `fun`, `bc` and `S` reach.

    SciPy solves on numbers. States, unknown parameters `p` and the spline differentiate by the equations of collocation
    on SciPy's final mesh, which is a constant. The guess has no derivative. A traced mesh raises an error, and so does
    compiled code, where the number of nodes is unknown.

    Raises:
        UnsupportedFunctionError: In compiled code, or of a mesh that is traced (a TypeError).
    """
    parameters = Parameters((fun, bc, S))
    if not parameters.is_traced and not holds_traced((x, y, p)):
        return original(_scipy.solve_bvp)(fun, bc, x, y, p, S, fun_jac, bc_jac, tol, max_nodes, verbose, bc_tol)
    guesses = [None if guess is None else asarray(guess) for guess in (y, p)]
    traced = [*guesses, parameters.vector(), *parameters.rest()]
    numbers = [None if value is None else numbers_of(value) for value in traced]
    if holds_traced(x) or any([n is None and value is not None for n, value in zip(numbers, traced, strict=True)]):
        what = "a mesh that is traced" if holds_traced(x) else "compiled code, where the mesh it ends with is not known"
        raise UnsupportedFunctionError(
            f"solve_bvp with {what}{at_line()}\nMap the interval to one that is fixed, x = a + (b - a) * s, with a and "
            "b as parameters, and call solve_bvp outside of func.jit."
        )
    run_fun, run_bc, run_s = parameters.rebuilt(numbers[2], numbers[3:])
    result = original(_scipy.solve_bvp)(
        _plain(run_fun), _plain(run_bc), x, np.array(numbers[0]), numbers[1], run_s, fun_jac, bc_jac, tol, max_nodes,
        verbose, bc_tol,
    )  # fmt: skip
    if result.status == 2:
        return result
    return _differentiated(fun, bc, S, result)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        out = function(*args)
        return check_plain(out, "solve_bvp") if type(out) in (Tracer, list, tuple) else out

    return call


def _differentiated(fun: Any, bc: Any, singular: Any, result: Any) -> Any:
    """The solution on traced values: the numbers, plus three Newton steps, which have the derivatives.

    Each step doubles the number of correct orders of the derivative: up to the seventh.
    """
    x, h = result.x, np.diff(result.x)
    size, count = result.y.shape
    has_p = result.p is not None
    is_complex = result.y.dtype.kind == "c"
    correction = None if singular is None else np.linalg.pinv(np.eye(size) - singular)

    def slope(x: Any, y: Array, p: Array) -> Array:
        out = asarray(fun(x, y, p) if has_p else fun(x, y))
        if singular is None:
            return out
        # The term S y / (x - a), and its limit at the end a.
        is_start = x == result.x[0]
        away = out + singular @ y / np.where(is_start, 1.0, x - result.x[0])
        return np.where(is_start, correction @ out, away)

    def equations(z: Array) -> Array:
        y, p = _parts(z, size, count, is_complex)
        f = slope(x, y, p)
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        f_middle = slope(x[:-1] + 0.5 * h, middle, p)
        collocation = y[:, 1:] - y[:, :-1] - h / 6 * (f[:, :-1] + f[:, 1:] + 4 * f_middle)
        ends = asarray(bc(y[:, 0], y[:, -1], p) if has_p else bc(y[:, 0], y[:, -1]))
        return _real(np.concatenate([np.ravel(collocation), np.ravel(ends)]), is_complex)

    start = _real(np.concatenate([result.y.ravel(), result.p if has_p else np.zeros(0)]), is_complex)
    z: Array = start
    for _ in range(3):
        z = z - np.linalg.solve(_func.jacfwd(equations)(z), equations(z))
    z = start + (z - stop_gradient(z))
    y, p = _parts(z, size, count, is_complex)
    yp = slope(x, y, p)
    fields = dict(result)
    fields.update(y=y, yp=yp, p=p if has_p else None, sol=in_original(_bvp.create_spline, y, yp, x, h))
    return _bvp.BVPResult(**fields)


def _real(z: Array, is_complex: bool) -> Array:
    return np.concatenate([np.real(z), np.imag(z)]) if is_complex else z


def _parts(z: Array, size: int, count: int, is_complex: bool) -> tuple[Array, Array]:
    """The states at the nodes, and the unknown parameters."""
    if is_complex:
        half = shape_of(z)[0] // 2
        z = z[:half] + 1j * z[half:]
    return np.reshape(z[: size * count], (size, count)), z[size * count :]
