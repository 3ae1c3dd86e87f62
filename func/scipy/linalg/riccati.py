"""Algebraic Riccati equations, with derivatives by a Lyapunov equation of the closed loop.

Where SciPy's X does not satisfy the equation (with e and balanced=True it need not), the derivative is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func import linalg as _dense
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.linalg import checks
from func.scipy.linalg.scipy_values import adjoint, by_equation, over_batch, scipy_function
from func.transforms.forward import jvp


def solve_continuous_are(
    a: Array, b: Array, q: Array, r: Array, e: Array | None = None, s: Array | None = None, balanced: bool = True
) -> Array:
    """The stabilizing X of aᴴ X e + eᴴ X a - (eᴴ X b + s) r⁻¹ (bᴴ X e + sᴴ) + q = 0.

    a, q and e are (…, m, m), b and s (…, m, n), r (…, n, n); q and r are Hermitian. The derivative is that of the
    Hermitian part of X.

    Source: the equation differentiated at X, with K = r⁻¹ (bᴴ X e + sᴴ) and A = (a - b K) e⁻¹: Aᴴ Y + Y A = -e⁻ᴴ R e⁻¹
    for the change R of the left side at constant X; P. Lancaster and L. Rodman (1995), "Algebraic Riccati Equations",
    chapter 11.
    """
    return _solution("solve_continuous_are", [a, b, q, r, e, s], balanced, _continuous_sides, _continuous_change)


def solve_discrete_are(
    a: Array, b: Array, q: Array, r: Array, e: Array | None = None, s: Array | None = None, balanced: bool = True
) -> Array:
    """The stabilizing X of aᴴ X a - eᴴ X e - (aᴴ X b + s) (r + bᴴ X b)⁻¹ (bᴴ X a + sᴴ) + q = 0.

    a, q and e are (…, m, m), b and s (…, m, n), r (…, n, n); q and r are Hermitian. The derivative is that of the
    Hermitian part of X.

    Source: the equation differentiated at X, with K = (r + bᴴ X b)⁻¹ (bᴴ X a + sᴴ) and A = (a - b K) e⁻¹:
    Y - Aᴴ Y A = e⁻ᴴ R e⁻¹ for the change R of the left side at constant X; Lancaster and Rodman (1995), chapter 15.
    """
    return _solution("solve_discrete_are", [a, b, q, r, e, s], balanced, _discrete_sides, _discrete_change)


def _solution(
    name: str, arrays: list[Any], balanced: bool, sides: Callable[..., Array], change: Callable[..., Array]
) -> Array:
    function = scipy_function(name)
    if not holds_traced(arrays):
        plain: Array = function(*arrays, balanced=balanced)
        return plain
    keys = ("a", "b", "q", "r", "e", "s")
    arrays = [
        None if x is None else checks.in_double(checks.matrices(np.atleast_2d(x), key))
        for x, key in zip(arrays, keys, strict=True)
    ]
    given = [i for i, x in enumerate(arrays) if x is not None]
    dtype = np.result_type(*[dtype_of(arrays[i]) for i in given])
    arrays = [None if x is None else checks.as_dtype(x, dtype) for x in arrays]
    _check_shapes(arrays)

    def filled(some: Any) -> list[Any]:
        out: list[Any] = [None] * 6
        for i, x in zip(given, some, strict=True):
            out[i] = x
        return out

    def derivative(primals: Any, tangents: Any, values: Any) -> Any:
        (x,) = values
        rate = jvp(lambda *some: sides(x, *filled(some)), tuple(primals), tuple(tangents))[1]
        y = change(x, rate, *filled(primals))
        factor = _one_of_solutions(sides(x, *filled(primals)), x, *filled(primals))
        return [(y + adjoint(y)) * (factor / 2)]

    def of_one(*matrices: Any) -> Array:
        own = [x for x in matrices if x is not None]
        out = Aval(shape_of(matrices[0]), dtype)
        return by_equation(lambda *some: [function(*filled(some), balanced=balanced)], [out], derivative, own)[0]

    found: Array = over_batch(of_one, arrays, [2] * 6, name)
    return found


def _one_of_solutions(rest: Array, x: Array, a: Array, b: Array, q: Array, *more: Any) -> Array:
    """One if X satisfies the equation up to a residual, NaN otherwise."""
    size = np.max(np.abs(q)) + np.max(np.abs(x)) * (1 + np.max(np.abs(a)) ** 2)
    return np.where(np.max(np.abs(rest)) <= 1e-4 * size, 1, np.nan)


def _check_shapes(arrays: list[Any]) -> None:
    a, b, q, r, e, s = [None if x is None else shape_of(x)[-2:] for x in arrays]
    assert a is not None and b is not None and q is not None and r is not None
    for name, shape in (("a", a), ("q", q), ("r", r), ("e", e)):
        if shape is not None and shape[0] != shape[1]:
            raise ValueError(f"Matrix {name} should be square.")
    if b[0] != a[0]:
        raise ValueError("Matrix a and b should have the same number of rows.")
    if q != a:
        raise ValueError("Matrix a and q should have the same shape.")
    if b[1] != r[0]:
        raise ValueError("Matrix b and r should have the same number of cols.")
    if e is not None and e != a:
        raise ValueError("Matrix a and e should have the same shape.")
    if s is not None and s != b:
        raise ValueError("Matrix b and s should have the same shape.")


def _plus(x: Array, s: Array | None) -> Array:
    return x if s is None else x + s


def _through(e: Array | None, x: Array) -> Array:
    """x e; None for e means the identity."""
    return x if e is None else x @ e


def _continuous_sides(x: Array, a: Array, b: Array, q: Array, r: Array, e: Array | None, s: Array | None) -> Array:
    """The left side of the continuous equation."""
    xe = _through(e, x)
    drift = adjoint(xe) @ a
    gain = _plus(adjoint(xe) @ b, s)
    return drift + adjoint(drift) - gain @ np.linalg.solve(r, adjoint(gain)) + q


def _continuous_change(
    x: Array, rate: Array, a: Array, b: Array, q: Array, r: Array, e: Array | None, s: Array | None
) -> Array:
    """The change of X that balances a change of the left side."""
    closed = a - b @ np.linalg.solve(r, adjoint(_plus(adjoint(_through(e, x)) @ b, s)))
    closed, rate = _without(e, closed, rate)
    return _dense.solve_continuous_lyapunov(adjoint(closed), -rate)


def _without(e: Array | None, closed: Array, rate: Array) -> tuple[Array, Array]:
    """closed e⁻¹ and e⁻ᴴ rate e⁻¹."""
    if e is None:
        return closed, rate
    inverse = np.linalg.inv(e)
    return closed @ inverse, adjoint(inverse) @ rate @ inverse


def _discrete_sides(x: Array, a: Array, b: Array, q: Array, r: Array, e: Array | None, s: Array | None) -> Array:
    """The left side of the discrete equation."""
    gain = _plus(adjoint(a) @ x @ b, s)
    weight = r + adjoint(b) @ x @ b
    mass = x if e is None else adjoint(e) @ x @ e
    return adjoint(a) @ x @ a - mass - gain @ np.linalg.solve(weight, adjoint(gain)) + q


def _discrete_change(
    x: Array, rate: Array, a: Array, b: Array, q: Array, r: Array, e: Array | None, s: Array | None
) -> Array:
    """The change of X that balances a change of the left side."""
    gain = _plus(adjoint(a) @ x @ b, s)
    closed = a - b @ np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(gain))
    closed, rate = _without(e, closed, rate)
    return _dense.solve_discrete_lyapunov(adjoint(closed), rate)
