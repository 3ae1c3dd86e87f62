"""Iterative solvers: SciPy iterates on numbers; derivatives solve the same and the adjoint system by the same solver.

The derivative is that of the solution, as accurate as the tolerance: where accuracy matters, pass a small `rtol`. A
solve for a derivative that does not converge warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func import tree
from func.backends.records import Record
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import TRACED, Array, Aval, Tracer, dtype_of, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import convert, reshape
from func.scipy.sparse.entry_arithmetic import as_dense
from func.scipy.sparse.linalg.linear_maps import map_of, matrix_numbers, operator_holds_traced, product_with, unwrapped
from func.transforms.closures import Closure
from func.transforms.custom import stop_gradient
from func.transforms.forward import linear_transpose
from func.transforms.implicit import custom_linear_solve
from func.transforms.outside import pure_callback

SYMMETRIC = frozenset(["cg", "minres"])
"""Solvers of Hermitian systems, whose adjoint is the same system."""


class Iteration(Record):
    """A solver of SciPy with its settings, as a function of the numbers of a matrix and of a right-hand side."""

    name: str
    matrix: Callable[[Any], Any]
    """The object that SciPy gets as A, for its numbers."""
    settings: dict[str, Any]
    dtype: Any
    adjoint: bool = False
    results: Any = None
    """The codes that SciPy returned, by right-hand side."""

    def __call__(self, numbers: Any, b: Any, start: Any, preconditioners: Any) -> Any:
        return self.both(numbers, b, start, preconditioners)[0]

    def both(self, numbers: Any, b: Any, start: Any, preconditioners: Any) -> tuple[Any, Any]:
        """The solution and SciPy's code."""
        matrix = self.matrix(numbers)
        settings = dict(self.settings)
        is_first = not self.results
        for name, value in preconditioners.items():
            settings[name] = value
        if self.adjoint:
            matrix = matrix.conj().T if _scipy.issparse(matrix) or isinstance(matrix, np.ndarray) else matrix
            for name in ("M", "M1", "M2"):
                if settings.get(name) is not None and self.name not in SYMMETRIC:
                    settings[name] = _adjoint_of(settings[name])
        if not is_first or self.adjoint:
            settings.pop("callback", None)
        x, code = original(getattr(_linalg, self.name))(matrix, b, x0=start, **settings)
        if code != 0 and (self.adjoint or not is_first):
            warnings.warn(
                f"{self.name}: a system of the derivative did not converge (code {code}); give a preconditioner or "
                "more iterations",
                RuntimeWarning,
                stacklevel=2,
            )
        self.results[b.tobytes()] = code
        return np.asarray(x, self.dtype).reshape(b.shape), code

    def code(self, numbers: Any, b: Any, start: Any, preconditioners: Any) -> Any:
        """SciPy's code alone."""
        known = self.results.get(b.tobytes())
        return np.int64(self.both(numbers, b, start, preconditioners)[1] if known is None else known)


def _adjoint_of(preconditioner: Any) -> Any:
    if _scipy.issparse(preconditioner) or isinstance(preconditioner, np.ndarray):
        return preconditioner.conj().T
    return preconditioner.H


def solver_dtype(A: Any, b: Array) -> np.dtype[Any]:
    """The dtype in which SciPy iterates."""
    dtype = np.promote_types(_dtype_of_operator(A), dtype_of(b))
    return dtype if dtype.char in "fdFD" else np.dtype(np.float64)


def _dtype_of_operator(A: Any) -> np.dtype[Any]:
    dtype = getattr(A, "dtype", None)
    return np.dtype(np.float64 if dtype is None else dtype)


def iterated(name: str, A: Any, b: Any, x0: Any, settings: dict[str, Any]) -> tuple[Array, Any]:
    """The solution and SciPy's code, for a matrix or an operator."""
    side = as_dense(b)
    n = A.shape[0]
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"expected square matrix, but got shape={A.shape}")
    if shape_of(side) not in ((n,), (n, 1)):
        raise ValueError(f"shapes of A {A.shape} and b {shape_of(side)} are incompatible")
    A = unwrapped(A)
    dtype = solver_dtype(A, side)
    side = reshape(side, shape=(n,))
    side = side if dtype_of(side) == dtype else convert(side, dtype=dtype)
    start = None if x0 is None else reshape(as_dense(x0), shape=(n,))
    arrays = {
        key: settings.pop(key)
        for key in ("M", "M1", "M2")
        if _scipy.issparse(settings.get(key)) or type(settings.get(key)) in (np.ndarray, Tracer)
    }
    is_operator = isinstance(A, _linalg.LinearOperator) or not (
        _scipy.issparse(A) or type(A) is Tracer or isinstance(A, (np.ndarray, list))
    )
    if is_operator:
        matvec = map_of(A)
        make, numbers = _operator_of(matvec, n, dtype)
    else:
        matvec = product_with(A)
        make, numbers = matrix_numbers(A)
    run = Iteration(name, make, settings, dtype, results={})
    out = Aval((n,), dtype)

    def called(run: Iteration, numbers: Any, b: Any) -> Any:
        return pure_callback(run, out, numbers, b, start, arrays, vmap_method="sequential")

    def solve(matvec: Any, b: Any) -> Any:
        if not is_operator:
            return called(run, numbers, b)
        own_make, own_numbers = _operator_of(matvec, n, dtype)
        return called(run.with_fields(matrix=own_make), own_numbers, b)

    def transpose_solve(matvec: Any, b: Any) -> Any:
        if not is_operator:
            return called(run.with_fields(adjoint=name not in SYMMETRIC, results={b"": 0}), numbers, b)
        own_make, own_numbers = _operator_of(matvec, n, dtype)
        return called(run.with_fields(matrix=own_make, results={b"": 0}), own_numbers, b)

    x = custom_linear_solve(matvec, side, solve, transpose_solve, symmetric=name in SYMMETRIC)
    operands = tree.map(stop_gradient, (numbers, side, start, arrays))
    code = pure_callback(run.code, Aval((), np.dtype(np.int64)), *operands, vmap_method="sequential")
    return x, code if type(code) is Tracer else int(code)


def _operator_of(matvec: Callable[[Any], Any], n: int, dtype: Any) -> tuple[Callable[[Any], Any], Any]:
    """A linear map as a function of its traced values, and these values."""
    closure = Closure(matvec)

    def make(values: Any) -> Any:
        own = closure.rebuilt(values)

        def adjoint(y: Any) -> Any:
            return np.asarray(linear_transpose(own, np.zeros(n, dtype))(np.asarray(y, dtype))[0])

        return _linalg.LinearOperator((n, n), matvec=lambda x: own(x.reshape(n)), rmatvec=adjoint, dtype=dtype)

    return make, list(closure.values)


def _is_plain(*values: Any) -> bool:
    return not (TRACED.run or TRACED.stay) or not (
        any([holds_traced(value) for value in values])
        or any([isinstance(value, _linalg.LinearOperator) and operator_holds_traced(value) for value in values])
    )


def _solver(name: str) -> Callable[..., Any]:
    def solver(A: Any, b: Any, x0: Any = None, **settings: Any) -> Any:
        if _is_plain(A, b, x0, settings, *settings.values()):
            return original(getattr(_linalg, name))(A, b, x0, **settings)
        for option in ("M", "M1", "M2"):
            if isinstance(settings.get(option), _linalg.LinearOperator) and operator_holds_traced(settings[option]):
                raise UnsupportedFunctionError(
                    f"{name}({option}=...) of a linear operator takes no traced values{at_line()}\n"
                    "A preconditioner has no derivative: make it of func.stop_gradient(...), or give its matrix."
                )
        for option in ("outer_v", "CU"):
            if settings.get(option):
                raise UnsupportedFunctionError(
                    f"{name}({option}=...) carries vectors from call to call, and has no traced version{at_line()}\n"
                    "Leave it out."
                )
        return iterated(name, A, b, x0, settings)

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = (
        f"scipy.sparse.linalg.{name} of plain and traced matrices, operators and right-hand sides.\n\n"
        "The derivative is that of the solution of A x = b; `x0`, `M` and `callback` have none."
    )
    return solver


bicg, bicgstab, cg, cgs, gcrotmk, gmres, lgmres, minres, qmr, tfqmr = [
    _solver(name) for name in ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
]
