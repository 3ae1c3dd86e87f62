"""Rows of scipy.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(11)
N = 4
A = np.diag([1.0, 2.5, 4.0, 5.5]) + 0.3 * RNG.normal(size=(N, N))
S = A @ A.T + np.eye(N)
SMALL = A[:3, :3]
B, SIDES = RNG.normal(size=N), RNG.normal(size=(N, 2))
TALL = np.vstack([A, RNG.normal(size=(2, N))])
C = RNG.normal(size=(N, N))
BAND = np.vstack([np.r_[0.5, 0.4, -0.3, 0.2, 0.1], np.array([3.0, 4.0, 5.0, 3.5, 4.5])])
WIDE_BAND = np.array([[3.0, 4.0, 5.0, 3.5, 4.5], [0.4, 0.2, -0.3, 0.1, 0], [0.2, -0.1, 0.3, 0, 0]])
PEAK = np.array([1.0, 2.0, 0.5, -0.7, 0.4])
ORDER = 1e-5
COMPLEX = {"jit": "is complex while staging, whatever the numbers are"}
RANK = {"jit": "the rank decides on the shape of a result"}


def turned(x: Any) -> Any:
    """A complex matrix of a real one."""
    return x + 0.4j * (x @ C)


def modulus(x: Any) -> Any:
    """The part that does not depend on phases."""
    return np.abs(x) ** 2


def rotation(m: Any, x: Any) -> Any:
    """An orthogonal matrix."""
    return m.expm(x - x.T)


def hermitian(x: Any) -> Any:
    """A Hermitian matrix of which both triangles hold what they hold."""
    made = turned(x)
    return made + np.conjugate(made.T)


SOLVES: dict[str, Row] = {
    "solve": Row(lambda m, x: m.solve(x, SIDES), A),
    "solve b": Row(lambda m, x: m.solve(A, x, assume_a="gen", transposed=True), B),
    "solve pos": Row(lambda m, x: m.solve(x, B, assume_a="pos", lower=True), S),
    "solve sym": Row(lambda m, x: m.solve(x + x.T, B * x[0], assume_a="sym"), A),
    "solve_triangular": Row(lambda m, x: m.solve_triangular(x, SIDES, trans="T", lower=True), A),
    "solve_triangular complex": Row(lambda m, x: m.solve_triangular(turned(x), B, 2, unit_diagonal=True).imag, A),
    "solve_banded": Row(lambda m, x: m.solve_banded((1, 1), x, np.arange(5.0)), WIDE_BAND[[1, 0, 2]]),
    "solveh_banded": Row(lambda m, x: m.solveh_banded(x, np.arange(5.0), lower=True), WIDE_BAND),
    "solve_toeplitz": Row(lambda m, x: m.solve_toeplitz((x, x[::-1]), B), np.array([4.0, 1.0, 0.5, 0.2])),
    "matmul_toeplitz": Row(lambda m, x: m.matmul_toeplitz(x, SIDES * x[0]), B),
    "solve_circulant": Row(lambda m, x: m.solve_circulant(x, B), np.array([4.0, 1.0, 0.5, 0.2])),
    "cho_factor": Row(lambda m, x: np.triu(m.cho_factor(x)[0]), S),
    "cho_solve": Row(lambda m, x: m.cho_solve(m.cho_factor(x, lower=True), SIDES), S),
    "cho_solve_banded": Row(lambda m, x: m.cho_solve_banded((m.cholesky_banded(x), False), np.arange(5.0)), BAND),
    "cho_solve_banded factor": Row(lambda m, x: m.cho_solve_banded((x, True), np.ones((5, 2)) * x[0, 0]), WIDE_BAND),
    "lu_solve": Row(lambda m, x: m.lu_solve(m.lu_factor(x), SIDES, trans=1), A),
    "lstsq": Row(lambda m, x: m.lstsq(x, np.arange(6.0))[0], TALL, without=RANK),
    "inv": Row(lambda m, x: m.inv(x), A),
    "det": Row(lambda m, x: m.det(x), A),
    "pinv": Row(lambda m, x: m.pinv(x), TALL),
    "pinvh": Row(lambda m, x: m.pinvh(x, lower=False), S),
}
FACTORS: dict[str, Row] = {
    "cholesky": Row(lambda m, x: m.cholesky(x), S),
    "cholesky lower": Row(lambda m, x: m.cholesky(hermitian(x) + 20 * np.eye(N), lower=True).imag, A),
    "cholesky_banded": Row(lambda m, x: m.cholesky_banded(x, lower=True), WIDE_BAND),
    "cholesky_banded upper": Row(lambda m, x: np.abs(m.cholesky_banded(x + 0.3j * x * x[1])) ** 2, BAND),
    "lu": Row(lambda m, x: m.lu(x)[1], A),
    "lu upper": Row(lambda m, x: m.lu(x, permute_l=True)[1], A),
    "lu_factor": Row(lambda m, x: m.lu_factor(x)[0], A),
    "ldl": Row(lambda m, x: m.ldl(x)[0], A + A.T),
    "ldl blocks": Row(lambda m, x: m.ldl(x, lower=False)[1], C + C.T - np.diag(np.diag(C)) * 1.9),
    "ldl complex": Row(lambda m, x: m.ldl(turned(x), hermitian=False)[0].imag, C),
    "ldl hermitian": Row(lambda m, x: m.ldl(hermitian(x), lower=False)[0].imag, C),
    "qr": Row(lambda m, x: m.qr(x, mode="economic")[0], TALL),
    "qr r": Row(lambda m, x: m.qr(x)[1], A),
    "qr_multiply": Row(lambda m, x: m.qr_multiply(x, B, mode="left")[0], TALL),
    "qr_multiply right": Row(lambda m, x: m.qr_multiply(A, x, pivoting=True)[0], SIDES.T),
    "rq": Row(lambda m, x: m.rq(x)[0], A),
    "svd": Row(lambda m, x: modulus(m.svd(x, full_matrices=False)[0]), TALL),
    "svdvals": Row(lambda m, x: m.svdvals(x), TALL),
    "diagsvd": Row(lambda m, x: m.diagsvd(x, 5, 4), B),
    "orth": Row(lambda m, x: modulus(m.orth(x)), TALL, without=RANK),
    "null_space": Row(lambda m, x: modulus(m.null_space(x)), TALL.T[:, :5], without=RANK),
    "polar": Row(lambda m, x: m.polar(x, side="left")[1], TALL),
    "subspace_angles": Row(lambda m, x: m.subspace_angles(x, C[:, :2]), SIDES, without=RANK),
    "orthogonal_procrustes": Row(lambda m, x: m.orthogonal_procrustes(x, C)[0], A),
    "cossin": Row(
        lambda m, x: m.cossin(rotation(m, x), 2, 1, separate=True, compute_u=False, compute_vh=False)[1],
        A,
        rtol=ORDER,
    ),
    "cossin cs": Row(
        lambda m, x: m.cossin(rotation(m, x), 2, 2, swap_sign=True, compute_u=False, compute_vh=False)[1], A, rtol=ORDER
    ),
}
SPECTRA: dict[str, Row] = {
    "eig": Row(lambda m, x: modulus(m.eig(x)[1]), A),
    "eigvals": Row(lambda m, x: m.eigvals(x).real, A),
    "eigh": Row(lambda m, x: modulus(m.eigh(x)[1]), S),
    "eigh pencil": Row(lambda m, x: m.eigh(x, S, type=2, lower=False)[0], S + A + A.T),
    "eigvalsh": Row(lambda m, x: m.eigvalsh(x, subset_by_index=[1, 2]), S),
    "eigh_tridiagonal": Row(lambda m, x: modulus(m.eigh_tridiagonal(x[1], x[0, 1:])[1]), BAND),
    "eigvalsh_tridiagonal": Row(lambda m, x: m.eigvalsh_tridiagonal(x[1], x[0, 1:]), BAND),
    "eig_banded": Row(lambda m, x: m.eig_banded(x, lower=True)[1], WIDE_BAND),
    "eig_banded some": Row(
        lambda m, x: m.eig_banded(x + 0.3j * x * x[1], select="i", select_range=(1, 3))[1].imag, BAND
    ),
    "eigvals_banded": Row(lambda m, x: m.eigvals_banded(x, lower=True), WIDE_BAND),
    "schur": Row(lambda m, x: m.schur(x, output="complex")[0], np.triu(A) + 0.1 * np.tril(A)),
    "hessenberg": Row(lambda m, x: m.hessenberg(x), A),
    "hessenberg q": Row(lambda m, x: m.hessenberg(turned(x), calc_q=True)[1].imag, A),
    "rsf2csf": Row(lambda m, x: modulus(m.rsf2csf(np.triu(x) - 3 * np.diag([0, 1, 0], -1), x)[1]), A),
    "cdf2rdf": Row(
        lambda m, x: sum(m.cdf2rdf(np.array([1, 1j, -1j, 1]) * x[0] + 0.5 * np.abs(x[1, 1]), turned(x))), A + 1
    ),
    "matrix_balance": Row(lambda m, x: m.matrix_balance(x)[0], A * np.array([1, 30.0, 1e3, 1])),
}
FUNCTIONS: dict[str, Row] = {
    "expm": Row(lambda m, x: m.expm(x), 0.3 * A),
    "expm_frechet": Row(lambda m, x: m.expm_frechet(x, C, compute_expm=False), 0.3 * A),
    "expm_cond": Row(lambda m, x: m.expm_cond(x), 0.3 * SMALL, exact=1e-10),
    "logm": Row(lambda m, x: m.logm(x), A, without=COMPLEX),
    "sqrtm": Row(lambda m, x: m.sqrtm(x), A, without=COMPLEX),
    "signm": Row(lambda m, x: m.signm(x - 3 * np.eye(N)), A, without=COMPLEX),
    "fractional_matrix_power": Row(lambda m, x: m.fractional_matrix_power(x, 0.3), A, without=COMPLEX),
    "funm": Row(lambda m, x: m.funm(x, np.sin).real, A, exact=1e-10),
    "funm complex": Row(lambda m, x: m.funm(turned(x), lambda w: np.exp(x[0, 0] * w)).imag, 0.3 * A, exact=1e-10),
    "cosm": Row(lambda m, x: m.cosm(x), SMALL),
    "sinm": Row(lambda m, x: m.sinm(x), SMALL),
    "tanm": Row(lambda m, x: m.tanm(x), 0.2 * SMALL),
    "coshm": Row(lambda m, x: m.coshm(x), SMALL),
    "sinhm": Row(lambda m, x: m.sinhm(x), SMALL),
    "tanhm": Row(lambda m, x: m.tanhm(x), 0.2 * SMALL),
    "norm": Row(lambda m, x: m.norm(x) + m.norm(x, 1) + m.norm(x, 2), A),
}
EQUATIONS: dict[str, Row] = {
    "solve_sylvester": Row(lambda m, x: m.solve_sylvester(x, S, C), A),
    "solve_continuous_lyapunov": Row(lambda m, x: m.solve_continuous_lyapunov(x, S), A),
    "solve_discrete_lyapunov": Row(lambda m, x: m.solve_discrete_lyapunov(0.1 * x, S), A),
    "solve_lyapunov": Row(lambda m, x: m.solve_lyapunov(x, C), A),
    "solve_continuous_are": Row(
        lambda m, x: m.solve_continuous_are(x, SIDES + x[:, :2], x @ x.T + S, np.eye(2) + x[0, 0] ** 2), A, rtol=ORDER
    ),
    "solve_continuous_are e s": Row(
        lambda m, x: m.solve_continuous_are(
            A - 3 * np.eye(N), SIDES, S, np.eye(2), np.eye(N) + x, 0.1 * C[:, :2] + x[:, 1:3], balanced=False
        ),
        0.1 * C,
        exact=1e-10,
        rtol=ORDER,
    ),
    "solve_discrete_are": Row(
        lambda m, x: m.solve_discrete_are(turned(x), SIDES, x @ x.T + S, np.eye(2)), C, exact=1e-9, rtol=ORDER
    ),
    "solve_discrete_are e s": Row(
        lambda m, x: m.solve_discrete_are(C, SIDES, S, np.eye(2), A + x, 0.1 * x[:, :2], balanced=False),
        0.3 * C,
        exact=1e-9,
        rtol=ORDER,
    ),
}
BUILT: dict[str, Row] = {
    "block_diag": Row(lambda m, x: m.block_diag(x, x[0], C), A),
    "circulant": Row(lambda m, x: m.circulant(x), B),
    "companion": Row(lambda m, x: m.companion(x), PEAK),
    "fiedler_companion": Row(lambda m, x: m.fiedler_companion(x), PEAK),
    "convolution_matrix": Row(lambda m, x: m.convolution_matrix(x, 3, mode="same"), B),
    "fiedler": Row(lambda m, x: m.fiedler(x), B),
    "hankel": Row(lambda m, x: m.hankel(x, x[::-1] ** 2), B),
    "khatri_rao": Row(lambda m, x: m.khatri_rao(x, C), A),
    "leslie": Row(lambda m, x: m.leslie(x, x[1:]), B),
    "toeplitz": Row(lambda m, x: m.toeplitz(x, x[::-1] ** 2), B),
    "clarkson_woodruff_transform": Row(lambda m, x: m.clarkson_woodruff_transform(x, 3, 5), A),
}
ROWS: dict[str, Row] = {**SOLVES, **FACTORS, **SPECTRA, **FUNCTIONS, **EQUATIONS, **BUILT}
REASONS = {
    "a class of errors or warnings": "LinAlgError LinAlgWarning",
    "a module": "basic blas cython_blas cython_lapack decomp decomp_cholesky decomp_lu decomp_qr decomp_schur "
    "decomp_svd lapack matfuncs misc special_matrices",
    "looks compiled routines up, which take plain arrays": "find_best_blas_type get_blas_funcs get_lapack_funcs",
    "a constant matrix": "dft hadamard helmert hilbert invhilbert invpascal pascal",
    "returns integers": "bandwidth",
    "returns whether it is so": "ishermitian issymmetric",
    "traced values are refused: factor the changed matrix by np.linalg.qr": "qr_delete qr_insert qr_update",
    "its factors are determined up to phases and order; refused with what to write": "ordqz qz",
}
WITHOUT: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""The other public names, each with its reason."""

if __name__ == "__main__":
    main("linalg", ROWS)
