"""Rows of scipy.sparse.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from tests.support.scipy_rows import Row, main
from tests.support.scipy_sparse import row

RNG = np.random.default_rng(5)
N = 5
AT = (np.array([0, 1, 2, 3, 4, 0, 1, 3, 4, 2]), np.array([0, 1, 2, 3, 4, 2, 0, 4, 1, 3]))
DATA = np.concatenate([RNG.uniform(3, 4, N), RNG.uniform(-0.9, 0.9, N)])
B, SIDES = RNG.normal(size=N), RNG.normal(size=(N, 3))
PLAIN = scipy.sparse.csc_array((DATA, AT))
SPD = scipy.sparse.csr_array(PLAIN @ PLAIN.T)


def a(m: Any, x: Any, kind: str = "csc_array") -> Any:
    """A well-conditioned matrix with the entries x."""
    import func.scipy.sparse as own

    library = own if m.__name__.startswith("func.") else scipy.sparse
    return getattr(library, kind)((x, AT), shape=(N, N))


def symmetric(m: Any, x: Any, kind: str = "csr_array") -> Any:
    """A symmetric positive-definite matrix of the entries x."""
    made = a(m, x, kind)
    return made @ made.T


def tight(**options: Any) -> dict[str, Any]:
    """Tolerances with which an iteration is as accurate as the laws ask."""
    return {"rtol": 1e-14, "atol": 1e-14, **options}


DIRECT: dict[str, Row] = {
    "spsolve": row(lambda m, x: m.spsolve(a(m, x), B), DATA),
    "spsolve b": row(lambda m, x: m.spsolve(PLAIN, x), B),
    "spsolve of several": row(lambda m, x: m.spsolve(a(m, x, "csr_array"), SIDES * x[0]), DATA),
    "spsolve of sparse": row(lambda m, x: m.spsolve(a(m, x), scipy.sparse.csc_array(SIDES)), DATA),
    "spsolve complex": row(lambda m, x: m.spsolve(a(m, x * (1 + 0.2j)), B).imag, DATA),
    "spsolve_triangular": row(
        lambda m, x: m.spsolve_triangular(scipy.sparse.tril(a(m, x), format="csr"), B * x[0]), DATA
    ),
    "spsolve_triangular upper": row(
        lambda m, x: m.spsolve_triangular(
            scipy.sparse.triu(a(m, x), format="csr"), SIDES, lower=False, unit_diagonal=True
        ),
        DATA,
    ),
    "splu": row(lambda m, x: m.splu(a(m, x)).solve(SIDES), DATA),
    "splu transposed": row(lambda m, x: m.splu(a(m, x), permc_spec="NATURAL").solve(B, trans="T"), DATA),
    "splu of plain": row(lambda m, x: m.splu(PLAIN).solve(x, "H"), B),
    "factorized": row(lambda m, x: m.factorized(a(m, x))(B), DATA),
    "inv": row(lambda m, x: m.inv(a(m, x)), DATA),
}
ITERATIVE: dict[str, Row] = {
    **{
        name: row(lambda m, x, name=name: getattr(m, name)(a(m, x), B * x[1], **tight())[0], DATA)
        for name in ("bicg", "bicgstab", "cgs", "gcrotmk", "gmres", "lgmres", "qmr", "tfqmr")
    },
    "cg": row(lambda m, x: m.cg(symmetric(m, x), B, **tight())[0], DATA),
    "cg b": row(lambda m, x: m.cg(SPD, x, M=scipy.sparse.diags_array(1 / SPD.diagonal()), **tight())[0], B),
    "minres": row(lambda m, x: m.minres(symmetric(m, x), B, rtol=1e-14)[0], DATA),
    "cg of an operator": row(
        lambda m, x: m.cg(m.LinearOperator((N, N), matvec=lambda v: SPD @ v + x**2 * v), B, **tight())[0], B
    ),
    "gmres of an operator": row(
        lambda m, x: m.gmres(m.LinearOperator((N, N), matvec=lambda v: PLAIN @ v + x**2 * v), B, **tight())[0], B
    ),
}
START = np.random.default_rng(1).standard_normal(N)
MASS = scipy.sparse.diags_array(RNG.uniform(1, 2, N), format="csr")
TALL = scipy.sparse.random_array((7, 4), density=0.9, rng=RNG, format="csr")
LONG = RNG.normal(size=7)
OPTIONS = {"v0": START, "tol": 1e-14}


def tall(m: Any, x: Any) -> Any:
    """A matrix of full rank with more rows than columns."""
    import func.scipy.sparse as own

    library = own if m.__name__.startswith("func.") else scipy.sparse
    return library.csr_array((TALL.data * x[0] + x[1] ** 2, TALL.indices, TALL.indptr), shape=TALL.shape)


def squared(v: Any) -> Any:
    """The part that does not depend on signs and phases."""
    return np.abs(v) ** 2


SPECTRA: dict[str, Row] = {
    "eigsh": row(lambda m, x: m.eigsh(symmetric(m, x), k=2, **OPTIONS)[0], DATA),
    "eigsh vectors": row(lambda m, x: squared(m.eigsh(symmetric(m, x), k=2, which="SM", **OPTIONS)[1]), DATA),
    "eigsh pencil": row(
        lambda m, x: squared(m.eigsh(symmetric(m, x), 2, x[0] * MASS, sigma=1.0, **OPTIONS)[1]), DATA, exact=1e-9
    ),
    "eigs": row(lambda m, x: m.eigs(a(m, x), k=2, return_eigenvectors=False, **OPTIONS).real, DATA),
    "eigs vectors": row(lambda m, x: squared(m.eigs(a(m, x), k=2, **OPTIONS)[1]), DATA),
    "svds": row(lambda m, x: m.svds(a(m, x), k=2, return_singular_vectors=False, **OPTIONS), DATA),
    "svds vectors": row(lambda m, x: squared(m.svds(tall(m, x), k=2, v0=START[:4], tol=1e-14)[0]), B + 2),
    "lobpcg": row(
        lambda m, x: m.lobpcg(symmetric(m, x), np.eye(N)[:, :1] + 0.1, tol=1e-7, maxiter=40)[0],
        DATA,
        exact=1e-9,
    ),
}
FUNCTIONS: dict[str, Row] = {
    "lsqr": row(lambda m, x: m.lsqr(tall(m, x), LONG, atol=1e-15, btol=1e-15)[0], B + 2, exact=1e-9),
    "lsqr damped": row(lambda m, x: m.lsqr(tall(m, x).T, B[:4], 0.5, atol=1e-15, btol=1e-15)[8], B + 2, exact=1e-9),
    "lsmr": row(lambda m, x: m.lsmr(TALL.T, x[:4], atol=1e-15, btol=1e-15)[0], B, exact=1e-9),
    "norm": row(lambda m, x: m.norm(a(m, x)) + m.norm(a(m, x), 1) + m.norm(a(m, x), -np.inf), DATA),
    "norm 2": row(lambda m, x: m.norm(a(m, x), 2), DATA, exact=1e-9),
    "norm along": row(lambda m, x: m.norm(a(m, x), axis=1) + m.norm(a(m, x), 3, axis=0), DATA),
    "onenormest": row(lambda m, x: m.onenormest(a(m, x), t=5), DATA),
    "matrix_power": row(lambda m, x: m.matrix_power(a(m, x), 3), DATA),
    "expm": row(lambda m, x: m.expm(a(m, 0.05 * x)), DATA, exact=1e-10),
    "expm_multiply": row(
        lambda m, x: m.expm_multiply(a(m, 0.5 * x), B),
        DATA,
        exact=1e-10,
        without={"jit": "chooses its steps by the norm of A, which is not known"},
    ),
    "expm_multiply b": row(lambda m, x: m.expm_multiply(PLAIN, x, start=0.01, stop=0.05, num=3), B, exact=1e-10),
    "aslinearoperator": row(lambda m, x: m.aslinearoperator(a(m, x)).matvec(B), DATA),
    "LinearOperator": row(lambda m, x: m.LinearOperator((N, N), matvec=lambda v: x[:N] * v, dtype=float) @ B, DATA),
}
ROWS: dict[str, Row] = {**DIRECT, **ITERATIVE, **SPECTRA, **FUNCTIONS}
REASONS = {
    "a module": "dsolve eigen interface isolve matfuncs",
    "a class of errors or warnings": "ArpackError ArpackNoConvergence MatrixRankWarning",
    "has no floating-point parameters": "LaplacianNd is_sptriangular spbandwidth use_solver",
    "a result of splu": "SuperLU",
    "incomplete: drops entries by their values": "spilu",
    "takes any function of matrices, for which there is no rule": "funm_multiply_krylov",
}
WITHOUT: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""The other public names, each with its reason."""

if __name__ == "__main__":
    main("sparse.linalg", ROWS)
