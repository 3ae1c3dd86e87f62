"""Eigenvalues and singular values of sparse matrices: SciPy finds them; derivatives solve bordered sparse systems.

For A v = λ M v the tangent of λ is vᴴ(dA - λ dM)v. That of v solves (A - λM) dv = -(dA - λ dM) v + dλ M v. The known
eigenvectors border this system and make it regular. Signs and phases of vectors are SciPy's. Where SciPy starts from
random vectors, func takes a fixed one.

Sources: R. Fox and M. Kapoor (1968), AIAA Journal 6(12); R. Nelson (1976), AIAA Journal 14(9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as _scipy
import scipy.sparse.linalg as _linalg

from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.linalg.sparse import sparse_product, sparse_solve
from func.scipy.sparse.entry_arithmetic import as_dense
from func.scipy.sparse.linalg.linear_maps import matrix_numbers, refuse_operators, unwrapped
from func.scipy.sparse.patterns import canonical, entries, lifted, with_entries
from func.transforms.custom import custom_jvp
from func.transforms.outside import pure_callback


class Entries:
    """The entries of a matrix as a function of its numbers."""

    def __init__(self, A: Any) -> None:
        self.shape = tuple(A.shape)
        if _scipy.issparse(A):
            own = canonical(lifted(A))
            self.pattern = with_entries(own, np.zeros(shape_of(own.data), dtype_of(own.data)))
            (self.rows, self.cols), _ = entries(self.pattern)
        else:
            self.pattern = None
            rows, cols = np.indices(self.shape)
            self.rows, self.cols = rows.ravel(), cols.ravel()

    def of(self, numbers: Array) -> Array:
        """The entries, in one row."""
        if self.pattern is None:
            return np.reshape(numbers, -1)
        return entries(with_entries(self.pattern, numbers))[1]


def product_at(place: Entries, data: Array, x: Array) -> Array:
    """A x for entries at these places."""
    out: Array = sparse_product(data, place.rows, place.cols, x, length=place.shape[0])
    return out


def _bordered(
    place: Entries, data: Array, mass: Entries, mass_data: Array, w: Array, borders: Array, duals: Array, sides: Array
) -> Array:
    """Solutions (n + p, k) of [[A - λM, borders], [dualsᴴ, 0]] x = (sides, 0) for each of k eigenvalues.

    `borders` and `duals` are (k, n, p).
    """
    n, k = shape_of(sides)
    p = shape_of(borders)[2]
    dtype = np.result_type(*[dtype_of(part) for part in (data, mass_data, w, borders, sides)])
    i, j = np.indices((n, p))
    rows = np.concatenate([place.rows, mass.rows, i.ravel(), n + j.ravel()]).astype(np.int64)
    cols = np.concatenate([place.cols, mass.cols, n + j.ravel(), i.ravel()]).astype(np.int64)
    everywhere = np.ones((k, 1), dtype)
    values = np.concatenate(
        [
            everywhere * data,
            -np.reshape(w, (k, 1)) * mass_data,
            np.reshape(borders, (k, n * p)),
            np.reshape(np.conjugate(duals), (k, n * p)),
        ],
        axis=1,
    )
    right = np.concatenate([np.transpose(sides), np.zeros((k, p), dtype)], axis=1)
    x = sparse_solve(values, rows, cols, np.reshape(right, (k, n + p, 1)), adjoint=False, strict=False, options=())
    return np.transpose(x[:, :, 0])


def _hermitian_tangent(
    place: Entries, data: Array, mass: Entries, mass_data: Array, w: Array, v: Array, rates: Sequence[Array]
) -> tuple[Array, Array]:
    """(dλ, dV) for Hermitian A and M, without the part that equal eigenvalues leave undetermined."""
    d_data, d_mass = rates
    k = shape_of(w)[0]
    mass_rate = product_at(mass, d_mass, v)
    change = product_at(place, d_data, v) - mass_rate * w
    inner = np.conjugate(np.transpose(v)) @ change
    dw = np.real(np.diagonal(inner))
    gaps = w[None, :] - w[:, None]
    scale = np.max(np.abs(w))
    is_apart = np.abs(gaps) > 1e-10 * scale
    factors = np.where(is_apart, 1 / np.where(is_apart, gaps, 1), 0)
    lengths = -np.real(np.diagonal(np.conjugate(np.transpose(v)) @ mass_rate)) / 2
    mv = product_at(mass, mass_data, v)
    borders = np.broadcast_to(mv, (k, *shape_of(mv)))
    outside = _bordered(place, data, mass, mass_data, w, borders, borders, -change)
    dv = v @ (factors * inner + np.diag(lengths)) + outside[: shape_of(v)[0]]
    return dw, dv


def _general_tangent(
    place: Entries, data: Array, mass: Entries, mass_data: Array, w: Array, v: Array, rates: Sequence[Array]
) -> tuple[Array, Array]:
    """(dλ, dV) for any A with distinct eigenvalues; vectors keep their length and phase."""
    d_data, d_mass = rates
    n = shape_of(v)[0]
    change = product_at(place, d_data, v) - product_at(mass, d_mass, v) * w
    mv = np.transpose(product_at(mass, mass_data, v))[:, :, None]
    x = _bordered(place, data, mass, mass_data, w, mv, np.transpose(v)[:, :, None], -change)
    return -x[n], x[:n]


def _pencil(A: Any, M: Any) -> tuple[Any, ...]:
    """Places, makers and numbers of A and M; without M, of the identity."""
    if M is None:
        identity = _scipy.eye_array(A.shape[0], format="csr")
        return Entries(A), *matrix_numbers(A), Entries(identity), lambda numbers: None, identity.data
    return Entries(A), *matrix_numbers(A), Entries(M), *matrix_numbers(M)


def _start(n: int, dtype: Any) -> Any:
    """A fixed vector with components along all eigenvectors."""
    return np.random.default_rng(0).standard_normal(n).astype(dtype)


def _eigenpairs(name: str, A: Any, M: Any, k: int, run: Callable[..., Any], is_hermitian: bool) -> tuple[Array, Array]:
    """(w, V) by `run(A, M)` of numbers."""
    refuse_operators(name, A, M, even_plain=True)
    A, M = [x if x is None or _scipy.issparse(x) else as_dense(x) for x in (A, M)]
    place, make, numbers, mass, make_mass, mass_numbers = _pencil(A, M)
    dtype = np.result_type(dtype_of(numbers), *([] if M is None else [dtype_of(mass_numbers)]), np.float32)
    real = np.real(np.empty(0, dtype)).dtype
    n = A.shape[0]
    if not is_hermitian:
        real = dtype = np.result_type(dtype, np.complex64)
    outs = (Aval((k,), real), Aval((n, k), dtype))

    def on_numbers(a: Any, m: Any) -> Any:
        w, v = run(make(a), make_mass(m))
        return w.astype(outs[0].dtype), v.astype(outs[1].dtype)

    @custom_jvp
    def pairs(a: Array, m: Array) -> Any:
        return pure_callback(on_numbers, outs, a, m, vmap_method="sequential")

    @pairs.defjvp
    def pairs_jvp(primals: Any, tangents: Any) -> Any:
        w, v = pairs(*primals)
        data, mass_data = place.of(primals[0]), mass.of(primals[1])
        rates = place.of(tangents[0]), mass.of(tangents[1])
        rule = _hermitian_tangent if is_hermitian else _general_tangent
        return (w, v), rule(place, data, mass, mass_data, w, v, rates)

    w, v = pairs(numbers, mass_numbers)
    return w, v


def _eigen(name: str, is_hermitian: bool) -> Callable[..., Any]:
    def solver(
        A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, **options: Any
    ) -> Any:
        function = original(getattr(_linalg, name))
        A, M = unwrapped(A), unwrapped(M)
        refuse_operators(name, A, M)
        if not (holds_traced(A) or holds_traced(M)):
            return function(A, k, M, sigma, which, v0, **options)
        with_vectors = options.pop("return_eigenvectors", True)

        def run(a: Any, m: Any) -> Any:
            start = _start(a.shape[0], a.dtype if a.dtype.kind in "fc" else float) if v0 is None else v0
            return function(a, k, m, sigma, which, start, **options)

        w, v = _eigenpairs(name, A, M, k, run, is_hermitian)
        return (w, v) if with_vectors else w

    solver.__name__ = solver.__qualname__ = name
    note = (
        "Each entry of A has a derivative by itself, where SciPy trusts that A is Hermitian."
        if is_hermitian
        else "Eigenvalues must be distinct for derivatives."
    )
    solver.__doc__ = f"scipy.sparse.linalg.{name} of plain and traced matrices.\n\n{note}"
    return solver


eigsh, eigs = _eigen("eigsh", True), _eigen("eigs", False)


def lobpcg(
    A: Any, X: Any, B: Any = None, M: Any = None, Y: Any = None, tol: Any = None, maxiter: Any = None, **options: Any
) -> Any:
    """scipy.sparse.linalg.lobpcg of plain and traced A and B; the start X has no derivative."""
    function = original(_linalg.lobpcg)
    A, B = unwrapped(A), unwrapped(B)
    refuse_operators("lobpcg", A, B)
    if not (holds_traced(A) or holds_traced(B) or holds_traced(X)):
        return function(A, X, B, M, Y, tol, maxiter, **options)
    if holds_traced(X) or options.get("retLambdaHistory") or options.get("retResidualNormsHistory"):
        raise UnsupportedFunctionError(
            f"lobpcg takes no traced start X, and traces no histories{at_line()}\n"
            "Start at plain numbers, such as func.stop_gradient(X)."
        )

    def run(a: Any, b: Any) -> Any:
        return function(a, np.array(X), b, M, Y, tol, maxiter, **options)

    return _eigenpairs("lobpcg", A, B, np.shape(X)[1], run, True)


def svds(
    A: Any,
    k: int = 6,
    ncv: Any = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: Any = None,
    return_singular_vectors: Any = True,
    solver: str = "arpack",
    rng: Any = None,
    options: Any = None,
    **more: Any,
) -> Any:
    """scipy.sparse.linalg.svds of plain and traced matrices; derivatives are those of the matrix [[0, A], [Aᴴ, 0]]."""
    function = original(_linalg.svds)
    A = unwrapped(A)
    refuse_operators("svds", A)
    if not holds_traced(A):
        return function(
            A, k, ncv, tol, which, v0, maxiter, return_singular_vectors, solver, rng=rng, options=options, **more
        )
    A = A if _scipy.issparse(A) else as_dense(A)
    make, numbers = matrix_numbers(A)
    part = Entries(A)
    m, n = part.shape
    dtype = np.result_type(dtype_of(numbers), np.float32)
    outs = (Aval((m, k), dtype), Aval((k,), np.real(np.empty(0, dtype)).dtype), Aval((k, n), dtype))

    def on_numbers(a: Any) -> Any:
        start = _start(min(m, n), a.dtype) if v0 is None else v0
        return function(make(a), k, ncv, tol, which, start, maxiter, True, solver, rng=0, options=options, **more)

    whole = Entries(np.zeros((0, 0)))
    whole.shape = (m + n, m + n)
    whole.rows = np.concatenate([part.rows, m + part.cols])
    whole.cols = np.concatenate([m + part.cols, part.rows])
    unit = Entries(_scipy.eye_array(m + n, format="csr"))

    def doubled(values: Array) -> Array:
        own = part.of(values)
        return np.concatenate([own, np.conjugate(own)])

    @custom_jvp
    def triples(a: Array) -> Any:
        return pure_callback(on_numbers, outs, a, vmap_method="sequential")

    @triples.defjvp
    def triples_jvp(primals: Any, tangents: Any) -> Any:
        u, s, vh = triples(*primals)
        both = np.concatenate([u, np.conjugate(np.transpose(vh))]) / np.sqrt(2.0)
        ones = np.ones(m + n)
        rates = doubled(tangents[0]), np.zeros(m + n)
        ds, change = _hermitian_tangent(whole, doubled(primals[0]), unit, ones, s, both, rates)
        change = change * np.sqrt(2.0)
        du, dv = [part.astype(dtype) for part in (change[:m], change[m:])]
        return (u, s, vh), (du, ds.astype(outs[1].dtype), np.conjugate(np.transpose(dv)))

    u, s, vh = triples(numbers)
    if return_singular_vectors is False:
        return s
    if return_singular_vectors == "u":
        return u, s, None
    return (None, s, vh) if return_singular_vectors == "vh" else (u, s, vh)
