"""Matrix functions, and Sylvester and Lyapunov equations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from func import numpy as fnp
from func.backends.array_helpers.arrays import scipy_of
from func.backends.array_helpers.linalg import complex_dtype
from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.primitives.elementwise.table import imag, real
from func.interpreters.primitives.linalg import matrix_functions as functions
from func.interpreters.primitives.linalg import solving
from func.interpreters.primitives.linalg.matrices import identity_like, mH
from func.linalg.checks import as_dtype, in_double, matrices, promoted, real_if_known, squares
from func.numpy.linalg import LinAlgError, matrix_power


def expm(A: Array) -> Array:
    """The matrix exponential of A (…, n, n).

    Raises: LinAlgError if A is not square. Source of the derivative: A. Al-Mohy and N. Higham (2009), SIAM J. Matrix
    Anal. Appl. 30, 1639.

    >>> import numpy as np, func
    >>> rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> value, slope = func.jvp(lambda t: func.linalg.expm(t * rotation), (0.0,), (1.0,))
    >>> bool(np.allclose(slope, rotation))
    True
    """
    if np.ndim(A) < 2 and np.size(A) == 1:
        A = fnp.reshape(A, (1, 1))
    return functions.expm(squares(A, "A", False, LinAlgError))


def expm_frechet(
    A: Array, E: Array, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """(exp(A), L(A, E)) with the derivative L(A, E) of exp at A in direction E; compute_expm=False gives L alone."""
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"method: unknown implementation {method!r}; use 'SPS' or 'blockEnlarge'")
    A, E = squares(A, "A", check_finite), squares(E, "E", check_finite)
    if shape_of(A)[-1] != shape_of(E)[-1]:
        raise ValueError(f"expected A and E to be the same shape, got {shape_of(A)} and {shape_of(E)}")
    A, E = [in_double(a) for a in promoted(A, E)]
    slope = functions.expm_frechet(A, E)
    return (functions.expm(A), slope) if compute_expm else slope


def logm(A: Array) -> Array:
    """The principal logarithm of A (…, n, n), which must not have eigenvalues on the closed negative real axis.

    Real for real A with a real logarithm, but complex under jit.
    """
    A = in_double(squares(A, "A", False))
    return real_if_known(functions.logm(A), A)


def sqrtm(A: Array) -> Array:
    """The principal square root of A (…, n, n), real for real A with a real root, but complex under jit.

    The derivative solves a Sylvester equation; it drops its undetermined part for singular A.

    >>> import numpy as np, func
    >>> def trace_of_root(a):
    ...     return np.trace(func.linalg.sqrtm(a))
    >>> func.grad(trace_of_root)(np.array([[4.0, 0.0], [0.0, 1.0]]))
    array([[0.25, 0.  ],
           [0.  , 0.5 ]])
    """
    A = squares(A, "A", False)
    return real_if_known(functions.sqrtm(A), A)


def fractional_matrix_power(A: Array, t: float) -> Array:
    """The principal power Aᵗ for a real constant t, by products if t is an integer."""
    if type(A) is np.ndarray and A.ndim == 2:
        return scipy_of(np, "linalg").fractional_matrix_power(A, t)
    if isinstance(t, (int, np.integer)) or float(t).is_integer():
        return matrix_power(A, operator.index(int(t)))
    A = squares(A, "A", False)
    return real_if_known(functions.matrix_power(in_double(A), exponent=float(t)), A)


def signm(A: Array) -> Array:
    """The matrix sign function A (A²)^(-1/2) of A (…, n, n), which must not have imaginary eigenvalues."""
    A = squares(A, "A", False)
    root = functions.sqrtm(A @ A)
    return real_if_known(solving.solve(root, as_dtype(A, dtype_of(root))), A)


def _exp_of_i_times(A: Array, sign: int = 1) -> Array:
    """exp(± i A)."""
    complex_type = complex_dtype(dtype_of(A))
    return functions.expm(as_dtype(A, complex_type) * dtype_of(A).type(sign) * complex_type.type(1j))


def cosm(A: Array) -> Array:
    """The matrix cosine (exp(i A) + exp(-i A)) / 2 of A (…, n, n)."""
    A = squares(A, "A", False)
    if dtype_of(A).kind != "c":
        return real(_exp_of_i_times(A))
    return 0.5 * (_exp_of_i_times(A) + _exp_of_i_times(A, -1))


def sinm(A: Array) -> Array:
    """The matrix sine (exp(i A) - exp(-i A)) / 2i of A (…, n, n)."""
    A = squares(A, "A", False)
    if dtype_of(A).kind != "c":
        return imag(_exp_of_i_times(A))
    return -0.5j * (_exp_of_i_times(A) - _exp_of_i_times(A, -1))


def tanm(A: Array) -> Array:
    """The matrix tangent cos(A)⁻¹ sin(A) of A (…, n, n)."""
    return solving.solve(cosm(A), sinm(A))


def coshm(A: Array) -> Array:
    """The matrix hyperbolic cosine (exp(A) + exp(-A)) / 2 of A (…, n, n)."""
    A = squares(A, "A", False)
    return 0.5 * (functions.expm(A) + functions.expm(-A))


def sinhm(A: Array) -> Array:
    """The matrix hyperbolic sine (exp(A) - exp(-A)) / 2 of A (…, n, n)."""
    A = squares(A, "A", False)
    return 0.5 * (functions.expm(A) - functions.expm(-A))


def tanhm(A: Array) -> Array:
    """The matrix hyperbolic tangent cosh(A)⁻¹ sinh(A) of A (…, n, n)."""
    return solving.solve(coshm(A), sinhm(A))


def solve_sylvester(a: Array, b: Array, q: Array) -> Array:
    """X (…, m, n) with a X + X b = q, for a (…, m, m), b (…, n, n), q (…, m, n).

    The derivative solves the same equation. Raises: LinAlgError if a and -b have a common eigenvalue.

    >>> import numpy as np, func
    >>> a, b = np.diag([1.0, 2.0]), np.diag([3.0])
    >>> func.linalg.solve_sylvester(a, b, np.array([[4.0], [10.0]]))
    array([[1.],
           [2.]])
    """
    a, b, q = squares(a, "a"), squares(b, "b"), matrices(q, "q")
    if (shape_of(a)[-1], shape_of(b)[-1]) != shape_of(q)[-2:]:
        raise ValueError(
            f"q: expected a (m, m), b (n, n) and q (m, n), got {shape_of(a)}, {shape_of(b)} and {shape_of(q)}"
        )
    a, b, q = promoted(a, b, q)
    return functions.sylvester(a, b, q, drop=False)


def _lyapunov_pair(a: Array, q: Array) -> list[Array]:
    """The checked arguments of a Lyapunov equation."""
    a, q = squares(a, "a"), squares(q, "q")
    if shape_of(a)[-1] != shape_of(q)[-1]:
        raise ValueError(f"Matrix a and q should have the same shape, got {shape_of(a)} and {shape_of(q)}")
    return promoted(a, q)


def solve_continuous_lyapunov(a: Array, q: Array) -> Array:
    """X (…, n, n) with a X + X aᴴ = q."""
    a, q = _lyapunov_pair(a, q)
    return functions.sylvester(a, mH(a), q, drop=False)


solve_lyapunov = solve_continuous_lyapunov


def solve_discrete_lyapunov(a: Array, q: Array, method: str | None = None) -> Array:
    """X (…, n, n) with a X aᴴ - X + q = 0, by a linear system of n² unknowns ("direct", the choice for n < 10) or as a
    continuous equation ("bilinear")."""
    a, q = [in_double(x) for x in _lyapunov_pair(a, q)]
    kind = ("bilinear" if shape_of(a)[-1] >= 10 else "direct") if method is None else method.lower()
    if kind == "direct":
        return _direct_lyapunov(a, q)
    if kind != "bilinear":
        raise ValueError(f"method: Unknown solver {method}")
    identity = identity_like(a, shape_of(a)[-1])
    inverse = solving.inv(mH(a) + identity)
    transformed = (mH(a) - identity) @ inverse
    right = 2 * (solving.inv(a + identity) @ q @ inverse)
    return functions.sylvester(mH(transformed), transformed, -right, drop=False)


def _direct_lyapunov(a: Array, q: Array) -> Array:
    """The solution X of (1 - a ⊗ conj a) vec X = vec q."""
    *batch, n, _ = shape_of(a)
    product = fnp.reshape(fnp.einsum("...ij,...kl->...ikjl", a, fnp.conj(a)), (*batch, n * n, n * n))
    system = identity_like(a, n * n) - product
    return fnp.reshape(solving.solve(system, fnp.reshape(q, (*batch, n * n, 1))), (*batch, n, n))
