"""Campaign: the other namespaces, np.linalg, np.fft, scipy.linalg and scipy.special, as `functions` does the main one.

Matrices fit the functions: square, well conditioned, positive definite in the triangle that is read and unsymmetric
beyond it. Some are singular or have special values; they have batch axes, every layout and dtype. The functions of
scipy.linalg take no traced arrays, so func.linalg is called there. The values, and the differences for derivatives, are
SciPy's.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

import func
from func.interpreters.core import Tracer
from tools.fuzz.cases import Tally
from tools.fuzz.functions import (
    BOOL,
    BY_NAME,
    Call,
    Domain,
    Draw,
    Env,
    Leaf,
    Outcome,
    Tester,
    absent,
    array,
    axes,
    axis,
    draw_call,
    either,
    first_of,
    flat,
    is_inexact,
    laid_out_like,
    leaves_of,
    like_first,
    number,
    one_of,
    precision_of,
    same_shape,
    several,
)

QUICK = 400
BATCHES: list[tuple[int, ...]] = [(), (), (), (2,), (1,), (0,), (2, 1)]
Shape = tuple[int, ...]


# Matrices


def _conditioned(r: Draw, shape: Shape, kinds: str, any_diagonal: bool = True) -> Any:
    """Matrices with a large diagonal; at times a singular one.

    Infinities, NaNs and huge numbers are left out: some iterations of LAPACK do not end with them.
    """
    x = r.values(shape, r.dtype(kinds), -1, 1)
    if r.special and x.size and x.dtype.kind in "fc":
        x[~(np.abs(x) < 10)] = 0.5
    diagonal = np.arange(min(shape[-2:]))
    r.generic = r.generic and x.dtype.kind in "fc"
    if x.size and not (any_diagonal and r.generic and r.chance(0.15)):
        with np.errstate(all="ignore"):
            x[..., diagonal, diagonal] += np.asarray(3.0 + 0.5 * diagonal).astype(x.dtype)
    if x.size and r.chance(0.04):
        x[..., -1, :] = x[..., 0, :]
        r.generic = False
    return x


def square(
    kinds: str = "iufc", sizes: Sequence[int] = (3, 2, 1, 4, 0), batch: bool = True, definite: bool = False
) -> Domain:
    """Square matrices, unsymmetric, at times of a wrong shape."""

    def draw(r: Draw, env: Env) -> Any:
        n = r.choose(sizes)
        shape = (*(r.choose(BATCHES) if batch else ()), n, n)
        if r.chance(0.03):
            shape = r.choose([(n,), (n, n + 1), ()])
        if len(shape) < 2:
            return Leaf(r.array(shape, kinds))
        x = _conditioned(r, shape, kinds, not definite)
        return Leaf(x.tolist(), static=True) if x.size and r.chance(0.05) else Leaf(r.laid_out(x))

    return draw


def rectangular(kinds: str = "iufc", batch: bool = True, tall: bool = False) -> Domain:
    """Matrices (…, m, n) of full rank."""

    def draw(r: Draw, env: Env) -> Any:
        core = r.choose([(3, 2), (3, 3), (4, 2), (1, 1)] + ([] if tall else [(2, 3), (1, 3), (0, 2), (2, 0)]))
        shape = (*(r.choose(BATCHES) if batch else ()), *core)
        if r.chance(0.02):
            return Leaf(r.array((3,), kinds))
        return Leaf(r.laid_out(_conditioned(r, shape, kinds)))

    return draw


def finite(domain: Domain) -> Domain:
    """Without special values from here on."""

    def draw(r: Draw, env: Env) -> Any:
        r.special = False
        return domain(r, env)

    return draw


def right_side(r: Draw, env: Env) -> Any:
    """A vector or columns for the matrices that came first."""
    shape = np.shape(first_of(env))
    n = shape[-2] if len(shape) > 1 else 1
    n += r.chance(0.03)
    return Leaf(r.array(r.choose([(n,), (n, 2), (n, 1), (*shape[:-2], n, 2), (2, n, 1), (n, 0)]), "iufc"))


def beside(r: Draw, env: Env) -> Any:
    """Matrices of the shape of the first."""
    shape = np.shape(first_of(env))
    if len(shape) < 2:
        return Leaf(r.array((2, 2), "iufc"))
    return Leaf(r.laid_out(_conditioned(r, shape, r.choose(["f", "fc", "iufc"]))))


def vector(kinds: str = "iufc", sizes: Sequence[int] = (4, 3, 2, 1, 0), low: float = -3, batch: bool = True) -> Domain:
    """A vector, at times with batch axes."""

    def draw(r: Draw, env: Env) -> Any:
        batch_shape = r.choose([(), (), (), (2,)]) if batch else ()
        return Leaf(r.array((*batch_shape, r.choose(sizes)), kinds, low=low))

    return draw


def off_diagonal(r: Draw, env: Env) -> Any:
    """A vector shorter by one than the first."""
    shape = np.shape(first_of(env))
    return Leaf(r.array((*shape[:-1], max(shape[-1] - 1, 0)), "f"))


def bands(r: Draw, env: Env) -> Any:
    """The diagonals of matrices of 3 or 4 columns, the main one large."""
    lower, upper = env["l_and_u"] if "l_and_u" in env else (0, r.choose([1, 0, 2]))
    shape = (*r.choose([(), (), (2,)]), lower + upper + 1, r.choose([4, 3, 1]))
    x = r.values(shape, r.dtype("fc"), -1, 1)
    for row in (0, upper):  # either form of solveh_banded
        if "l_and_u" not in env or row == upper:
            x[..., row, :] = x[..., row, :].real + 4
    return Leaf(r.laid_out(x))


def band_side(r: Draw, env: Env) -> Any:
    n = np.shape(first_of({key: value for key, value in env.items() if key == "ab"}))[-1]
    return Leaf(r.array(r.choose([(n,), (n, 2)]), "fc"))


def column_and_row(r: Draw, env: Env) -> Any:
    """A first column, or a pair of a first column and a first row."""
    n = r.choose([3, 4, 1])
    column = r.values((n,), r.dtype("fc"), -1, 1)
    column[0] += 5
    if r.chance(0.5):
        return Leaf(r.laid_out(column))
    row = r.values((n,), r.dtype("f"), -1, 1)
    return (Leaf(r.laid_out(column)), Leaf(r.laid_out(row)))


def toeplitz_side(r: Draw, env: Env) -> Any:
    first = next(iter(env.values()))
    n = np.size((first[0] if isinstance(first, tuple) else first).value)
    return Leaf(r.array(r.choose([(n,), (n, 2)]), "fc"))


def factor(name: str) -> Domain:
    """The factors that SciPy makes of a matrix, as leaves."""

    def draw(r: Draw, env: Env) -> Any:
        n = r.choose([3, 2, 1])
        a = _conditioned(r, (*r.choose([(), (2,)]), n, n), "fc")
        if not np.isfinite(a).all() or a.dtype.char not in "fdFD":
            a = np.eye(3) * 2
        if name == "cho":
            lower = bool(r.integer(0, 1))
            try:
                c, _ = scipy.linalg.cho_factor(a, lower=lower)
            except np.linalg.LinAlgError:
                c = np.eye(3)
            return (Leaf(c), lower)
        lu, pivots = scipy.linalg.lu_factor(a)
        return (Leaf(lu), pivots)

    return draw


def factor_side(r: Draw, env: Env) -> Any:
    first = next(iter(env.values()))
    n = np.shape(first[0].value)[-1]
    return Leaf(r.array(r.choose([(n,), (n, 2)]), "fc"))


def lengths(r: Draw, env: Env) -> Any:
    """Lengths of transformed axes."""
    rank = np.ndim(first_of(env))
    count = r.integer(1, max(rank, 1))
    return r.choose([None, tuple([r.choose([2, 3, 1, 5]) for _ in range(count)])])


def transformed_axes(r: Draw, env: Env) -> Any:
    """Axes of a transform, as many as lengths; not one twice, for which NumPy's `out` has the wrong shape at times."""
    rank = np.ndim(first_of(env))
    count = len(env["s"]) if env.get("s") is not None else r.integer(1, max(rank, 1))
    first, step = r.integer(0, max(rank - 1, 0)), r.choose([1, -1])
    return r.choose(
        [tuple([(first + step * k) % rank - r.choose([0, rank]) if rank else 0 for k in range(count)]), None]
    )


def plane(r: Draw, env: Env) -> Any:
    """Axes of a norm."""
    rank = np.ndim(first_of(env))
    return r.choose([None, axis(r, env), (0, -1), (-1, 0), (0, 1), (-2, -1), (0,)][: 7 if rank > 1 else 2])


def chain(r: Draw, env: Env) -> Any:
    """Factors of a product."""
    sizes = [r.integer(1, 3) for _ in range(r.integer(3, 5))]
    parts = [Leaf(r.array((m, n), "iufc")) for m, n in itertools.pairwise(sizes)]
    if r.chance(0.3):
        parts[0] = Leaf(r.array((sizes[1],), "fc"))
    if r.chance(0.3):
        parts[-1] = Leaf(r.array((sizes[-2],), "fc"))
    return parts


ORDER = one_of(None, 2, 1, np.inf, -np.inf, "fro", "nuc", -1, -2, 3, 0, 0.5, 1.5, "wrong")
TRIANGLE: dict[str, Domain] = {"a": square()}
SQUARE: dict[str, Domain] = {"a": square()}
RECTANGULAR: dict[str, Domain] = {"a": rectangular()}
SIGNAL = array(ranks=(1, 2, 3), kinds="biufc")
REAL_SIGNAL = array(ranks=(1, 2, 3), kinds="biuf")
ONE_AXIS: dict[str, Domain] = {"n": one_of(None, 1, 2, 3, 5, 4, 0), "norm": one_of(None, "ortho", "forward", "wrong")}
AXES: dict[str, Domain] = {"s": lengths, "axes": transformed_axes, "norm": ONE_AXIS["norm"]}
FFT = "fft ifft irfft hfft"
REAL_FFT = "rfft ihfft"
LINALG: dict[str, dict[str, Domain]] = {
    "cholesky": {**TRIANGLE, "upper": BOOL},
    "cond": {"x": either(square(), rectangular()), "p": one_of(None, 2, 1, -1, -2, np.inf, -np.inf, "fro", "nuc")},
    "cross": {"x1": array(shape=(2, 3)), "x2": either(array(shape=(2, 3)), array(shape=(3,)))},
    **{name: dict(SQUARE) for name in ("det", "eig", "eigvals", "inv", "slogdet")},
    "diagonal": {"x": array(ranks=(2, 3))},
    **{name: {**TRIANGLE, "UPLO": one_of("L", "U", "l", "u", "X")} for name in ("eigh", "eigvalsh")},
    "lstsq": {"a": rectangular(batch=False), "b": right_side, "rcond": one_of(None, 1e-10, -1)},
    "matmul": {"x1": finite(rectangular()), "x2": lambda r, env: Leaf(r.array((np.shape(first_of(env))[-1], 2)))},
    "matrix_norm": {"x": rectangular(), "ord": ORDER},
    "matrix_power": {**SQUARE, "n": one_of(0, 1, 2, 3, 4, 5, -1, -2, 1.5)},
    "matrix_rank": {
        "A": either(square(), rectangular(), array(ranks=(1, 0))),
        "tol": one_of(None, 0.5, 1e-8),
        "rtol": one_of(None, 1e-8),
        "hermitian": one_of(False, False, True),
    },
    "matrix_transpose": {"x": array(ranks=(1, 2, 3))},
    "multi_dot": {"arrays": finite(chain)},  # what BLAS makes of infinite complex numbers depends on the shapes
    "norm": {"x": finite(array()), "ord": ORDER, "axis": plane},
    "outer": {"x1": vector(batch=False), "x2": vector(batch=False)},
    "pinv": {
        "a": either(square(), rectangular()),
        "rcond": one_of(None, 1e-10, 1e-3),
        "rtol": one_of(None, 1e-8),
        "hermitian": one_of(False, False, True),
    },
    "qr": {**RECTANGULAR, "mode": one_of("reduced", "complete", "r", "raw", "wrong")},
    "solve": {**SQUARE, "b": right_side},
    "svd": {
        "a": either(square(), rectangular()),
        "full_matrices": BOOL,
        "compute_uv": BOOL,
        "hermitian": one_of(False, False, True),
    },
    "svdvals": {"x": rectangular()},
    "tensordot": {"x1": array(), "x2": same_shape(), "axes": one_of(0, 1, ((0,), (0,)), ([0, 1], [0, 1]), (0, 0))},
    "tensorinv": {
        "a": lambda r, env: Leaf((_conditioned(r, (4, 4), "fc")).reshape(r.choose([(2, 2, 2, 2), (4, 2, 2), (4, 4)]))),
        "ind": one_of(1, 2, 0),
    },
    "tensorsolve": {
        "a": lambda r, env: Leaf((_conditioned(r, (4, 4), "fc")).reshape(r.choose([(2, 2, 2, 2), (2, 2, 4), (4, 4)]))),
        "b": lambda r, env: Leaf(r.array(r.choose([(2, 2), (4,), (2,)]), "fc")),
        "axes": one_of(None, None, (0, 2), (1,)),
    },
    "trace": {"x": array(ranks=(2, 3))},
    "vecdot": {"x1": array(ranks=(1, 2, 3)), "x2": like_first(), "axis": one_of(-1, 0)},
    "vector_norm": {"x": array(), "ord": ORDER, "axis": axes},
}
FOURIER: dict[str, dict[str, Domain]] = {
    **{name: {"a": SIGNAL, **ONE_AXIS} for name in FFT.split()},
    **{name: {"a": REAL_SIGNAL, **ONE_AXIS} for name in REAL_FFT.split()},
    **{name: {"a": SIGNAL, **AXES} for name in ("fft2", "ifft2", "fftn", "ifftn", "irfftn")},
    "irfft2": {"a": SIGNAL, **AXES},
    **{name: {"a": REAL_SIGNAL, **AXES} for name in ("rfft2", "rfftn")},
    **{name: {"x": array(), "axes": either(axes, axis, one_of(None))} for name in ("fftshift", "ifftshift")},
    **{name: {"n": one_of(4, 5, 1), "d": number(0.5, 2), "device": absent} for name in ("fftfreq", "rfftfreq")},
}


def overwrite(r: Draw, env: Env) -> Any:
    """Whether to overwrite; not of batches, of which SciPy uses what is overwritten again."""
    return r.choose([True, False]) and all([np.ndim(leaf.value) < 3 for leaf in leaves_of(list(env.values()))])


CHECK = {"check_finite": BOOL, "overwrite_a": overwrite, "overwrite_b": overwrite, "overwrite_ab": overwrite}
CHECK["lwork"] = one_of(None)
STRUCTURE = one_of(
    *(None, "gen", "general", "sym", "symmetric", "her", "hermitian", "pos", "positive definite", "diagonal"),
    *("tridiagonal", "upper triangular", "lower triangular", "wrong"),
)
SUBSETS = {"subset_by_index": one_of(None, (0, 1), (1, 1)), "subset_by_value": one_of(None, (-100.0, 100.0))}
PENCIL = {"b": lambda r, env: beside(r, env) if r.chance(0.7) else None, "type": one_of(1, 2, 3), **SUBSETS}
SCIPY: dict[str, dict[str, Domain]] = {
    "block_diag": {"arrs": several(array(ranks=(0, 1, 2)), 1, 3)},
    "cho_factor": TRIANGLE,
    "cho_solve": {"c_and_lower": factor("cho"), "b": factor_side},
    "cholesky": TRIANGLE,
    **{name: {"c": vector()} for name in ("circulant",)},
    "companion": {"a": vector(low=1)},
    "convolution_matrix": {"a": vector(), "n": one_of(3, 1, 5, 0), "mode": one_of("full", "same", "valid")},
    **{
        name: {"A": square("ifc", sizes=(3, 2, 1, 0), definite=True)}  # SciPy negates unsigned numbers
        for name in ("coshm", "cosm", "expm", "sinhm", "sinm", "tanhm", "tanm", "logm", "sqrtm", "signm")
    },
    "det": SQUARE,
    "diagsvd": {"s": vector(sizes=(2, 3), batch=False), "M": one_of(3, 2), "N": one_of(2, 3)},
    "eig": {**SQUARE, "b": one_of(None), "left": BOOL, "right": BOOL, "homogeneous_eigvals": one_of(False)},
    "eigvals": {**SQUARE, "b": one_of(None), "homogeneous_eigvals": one_of(False)},
    "eigh": {**TRIANGLE, **PENCIL, "eigvals_only": BOOL, "driver": one_of(None, "ev", "evd", "evr", "gv", "gvd")},
    "eigvalsh": {**TRIANGLE, **PENCIL, "driver": one_of(None, "ev", "evd", "evr", "gv", "gvd")},
    "eigh_tridiagonal": {
        "d": vector("f", sizes=(4, 3, 2, 1)),
        "e": off_diagonal,
        "eigvals_only": BOOL,
        "select": one_of("a"),
        "select_range": absent,
        "tol": one_of(0.0),
        "lapack_driver": one_of("auto", "stebz", "stemr"),
    },
    "eigvalsh_tridiagonal": {
        "d": vector("f", sizes=(4, 3, 2, 1)),
        "e": off_diagonal,
        "select": one_of("a"),
        "select_range": absent,
        "tol": one_of(0.0),
        "lapack_driver": one_of("auto", "stebz", "stemr"),
    },
    "expm_frechet": {
        "A": square(batch=False),
        "E": lambda r, env: Leaf(r.array(np.shape(first_of(env)), dtype="float64")),
        "method": one_of(None, "SPS", "blockEnlarge"),
        "compute_expm": BOOL,
    },
    "fiedler": {"a": vector(sizes=(4, 3, 2))},
    "fractional_matrix_power": {"A": square("ifc", batch=False, definite=True), "t": one_of(0.5, 2, -1, 0.3, 1.7, 0)},
    "hankel": {"c": vector(batch=False), "r": lambda r, env: vector(batch=False)(r, env) if r.chance(0.5) else None},
    "inv": {**SQUARE, "assume_a": STRUCTURE},
    "khatri_rao": {"a": array(shape=(2, 3)), "b": array(shape=(3, 3))},
    "leslie": {"f": vector(sizes=(4, 2)), "s": off_diagonal},
    "lstsq": {
        "a": rectangular(),
        "b": right_side,
        "cond": one_of(None, 1e-8),
        "lapack_driver": one_of(None, "gelsd", "gelss"),  # "gelsy" gives objects for batches
    },
    "lu": {"a": rectangular(), "permute_l": BOOL, "p_indices": BOOL},
    "lu_factor": {"a": rectangular()},
    "lu_solve": {"lu_and_piv": factor("lu"), "b": factor_side, "trans": one_of(0, 1, 2)},
    "matmul_toeplitz": {"c_or_cr": finite(column_and_row), "x": toeplitz_side, "workers": one_of(None)},
    "norm": {"a": finite(array(ranks=(1, 2, 3), dtype="float64")), "ord": ORDER, "axis": plane},
    "null_space": {"A": rectangular(batch=False), "rcond": one_of(None, 1e-8), "lapack_driver": one_of("gesdd")},
    "orth": {"A": rectangular(batch=False), "rcond": one_of(None, 1e-8)},
    "orthogonal_procrustes": {"A": rectangular(batch=False, tall=True), "B": beside},
    "pinv": {
        "a": rectangular(),
        "atol": one_of(None, 1e-9, 0.0),
        "rtol": one_of(None, 1e-9),
        "return_rank": BOOL,
    },
    "pinvh": {
        **TRIANGLE,
        "atol": one_of(None, 1e-9, 0.0),
        "rtol": one_of(None, 1e-9),
        "return_rank": BOOL,
    },
    "polar": {"a": rectangular(), "side": one_of("right", "left", "wrong")},
    "qr": {"a": rectangular(), "mode": one_of("full", "r", "economic", "raw", "wrong"), "pivoting": BOOL},
    "rq": {"a": rectangular(), "mode": one_of("full", "r", "economic", "wrong")},
    "schur": {**SQUARE, "output": one_of("real", "complex"), "sort": one_of(None)},
    "solve": {**SQUARE, "b": right_side, "assume_a": STRUCTURE, "transposed": BOOL},
    "solve_banded": {"l_and_u": one_of((1, 1), (0, 1), (2, 0), (0, 0)), "ab": bands, "b": band_side},
    "solve_circulant": {
        "c": vector(low=1, batch=False),
        "b": lambda r, env: Leaf(r.array(np.shape(first_of(env)), "fc")),
        "singular": one_of("raise"),
        "tol": one_of(None),
        "caxis": one_of(-1, 0),
        "baxis": one_of(0, -1),
        "outaxis": one_of(0, -1),
    },
    **{name: {**SQUARE, "q": beside} for name in ("solve_continuous_lyapunov", "solve_lyapunov")},
    "solve_discrete_lyapunov": {
        "a": lambda r, env: Leaf(r.array((3, 3), "f", low=-0.4, high=0.4)),
        "q": finite(beside),  # products of huge numbers overflow in another order
        "method": one_of(None, "direct", "bilinear"),
    },
    "solve_sylvester": {"a": square(batch=False), "b": beside, "q": beside},
    "solve_toeplitz": {"c_or_cr": finite(column_and_row), "b": toeplitz_side},
    "solve_triangular": {
        **SQUARE,
        "b": right_side,
        "trans": one_of(0, 1, 2, "N", "T", "C"),
        "unit_diagonal": BOOL,
    },
    "solveh_banded": {"ab": bands, "b": band_side},
    "subspace_angles": {"A": rectangular(batch=False, tall=True), "B": beside},
    "svd": {"a": rectangular(), "full_matrices": BOOL, "compute_uv": BOOL, "lapack_driver": one_of("gesdd", "gesvd")},
    "svdvals": {"a": rectangular()},
    "toeplitz": {"c": vector(batch=False), "r": lambda r, env: vector(batch=False)(r, env) if r.chance(0.5) else None},
}
COUNT = either(array(low=0, high=8, dtype="float64"), array(low=0, high=8, dtype="int64"))
LIMITED = one_of(*range(4))


def if_tame(r: Draw, env: Env) -> bool:
    """A flag; not of infinite, huge and vanishing numbers, whose differences are NaN in one order of a formula only."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(np.asarray(leaf.value, np.float64)) for leaf in leaves_of([env["z"]])]
        return bool(BOOL(r, env)) and all([bool(np.all((size > 1e-3) & (size < 1e3))) for size in sizes])


SPECIAL: dict[str, dict[str, Domain]] = {
    "comb": {"N": COUNT, "k": like_first(low=0, high=5, dtype="float64"), "repetition": BOOL},
    "factorial": {"n": array(kinds="if", low=0, high=8, ranks=(1, 2, 3), dtype="float64"), "extend": absent},
    "lambertw": {"z": array(kinds="fc", low=0.1), "k": one_of(0, 1, -1), "tol": one_of(1e-8)},
    "log_softmax": {"x": array(kinds="if"), "axis": axes},
    "logsumexp": {"a": array(kinds="iufc"), "axis": axes, "b": same_shape(kinds="iuf"), "return_sign": BOOL},
    "multigammaln": {"a": array(kinds="f", low=3, high=9, dtype="float64"), "d": one_of(1, 2, 3)},
    "perm": {"N": COUNT, "k": like_first(low=0, high=5, dtype="float64")},
    "polygamma": {"n": LIMITED, "x": array(low=0.2, dtype="float64")},
    "sinc": {"x": array(kinds="f")},
    "softmax": {"x": array(kinds="if"), "axis": axes},
    "sph_harm_y": {
        "n": one_of(0, 1, 2, 3),
        "m": one_of(0, 1, -1, 2),
        "theta": array(kinds="f", low=0.1),
        "phi": like_first(kinds="f", low=0.1),
        "diff_n": absent,
    },
    **{
        f"spherical_{kind}n": {"n": LIMITED, "z": array(kinds="f", low=0.3), "derivative": if_tame}
        for kind in ("j", "y", "i", "k")
    },
    "zeta": {"x": array(kinds="f", low=1.2), "q": like_first(kinds="f", low=0.5), "out": absent},
}
BY_NAME_TOO: dict[str, Domain] = {**BY_NAME, **CHECK, "exact": one_of(False), "lower": BOOL}
ORDERS = {"yn", "kn", "expn"}
"""Special functions whose first argument is an integer in a special loop."""


def _ufunc_domains(ufunc: np.ufunc) -> dict[str, Domain]:
    """Arguments of a special function by the dtypes of its loops, of both signs and mostly positive."""
    names = ["x"] if ufunc.nin == 1 else [f"x{place + 1}" for place in range(ufunc.nin)]
    domains: dict[str, Domain] = {}
    for place, name in enumerate(names):
        kinds = "iuf" + ("c" if any([loop[place] == "D" for loop in ufunc.types]) else "")
        ranges = [(0.1, 2), (0.1, 2), (0.1, 0.9), (-3, 3), (1, 20)]

        def draw(r: Draw, env: Env, kinds: str = kinds, ranges: Any = ranges, first: bool = place == 0) -> Any:
            low, high = r.choose(ranges)
            if first:
                return array(kinds=kinds, low=low, high=high)(r, env)
            return like_first(kinds=kinds, low=low, high=high)(r, env)

        domains[name] = draw
    if ufunc.__name__ in ORDERS:
        domains["x1"] = array(kinds="i", low=0, high=3, lists=False)
    return {**domains, "where": one_of(True), "dtype": one_of(np.float64, np.float32, None), "casting": absent}


UFUNCS = [name for name in func.special.__all__ if isinstance(getattr(scipy.special, name, None), np.ufunc)]
SPECIAL |= {name: _ufunc_domains(getattr(scipy.special, name)) for name in UFUNCS}
for _name in ("hyp1f1", "hyp2f1", "hyperu"):  # SciPy's series do not end for huge arguments
    SPECIAL[_name]["x1"] = finite(SPECIAL[_name]["x1"])
# Of infinite widths of either sign SciPy makes zeros and infinities of either sign.
SPECIAL["voigt_profile"] |= {name: finite(like_first(kinds="iuf", low=0.1, high=3)) for name in ("x2", "x3")}
for _name in UFUNCS:
    # For NaN, huge numbers and orders beyond their arrays these functions end the process; for some numbers in single
    # precision they do not end. Spheroidal functions of negative numbers solve nothing.
    for _place in range(getattr(scipy.special, _name).nin if _name.startswith(("mathieu", "pro_", "obl_")) else 0):
        _kind: Any = {"kinds": "i", "low": 0, "high": 5} if _place < 1 + (_name[0] != "m") else {"low": 0.1, "high": 3}
        _kind = {"kinds": "f", "dtype": "float64", **_kind} if "kinds" not in _kind else _kind
        SPECIAL[_name][f"x{_place + 1}"] = finite((like_first if _place else array)(**_kind))
        SPECIAL[_name]["dtype"] = absent
SPACES: dict[str, tuple[Any, Any, dict[str, dict[str, Domain]]]] = {
    "np.linalg": (np.linalg, func.numpy.linalg, LINALG),
    "np.fft": (np.fft, func.numpy.fft, FOURIER),
    "scipy.linalg": (scipy.linalg, func.linalg, SCIPY),
    "scipy.special": (scipy.special, func.special, SPECIAL),
}
CALLS = [(space, name) for space, (_, _, domains) in SPACES.items() for name in domains]
TYPED_BY_VALUES = {
    *("np.linalg.eig", "np.linalg.eigvals", "scipy.linalg.sqrtm", "scipy.linalg.logm", "scipy.linalg.signm"),
    *("scipy.linalg.fractional_matrix_power", "scipy.linalg.null_space", "scipy.linalg.orth", "np.linalg.lstsq"),
    *("scipy.linalg.eig", "scipy.linalg.eigvals", "scipy.linalg.schur"),
    *("scipy.linalg.lstsq", "scipy.linalg.subspace_angles", "scipy.special.multigammaln"),
}
"""Functions whose dtype, shape or arguments depend on values."""


def missing() -> list[str]:
    """Functions that func has and no domain covers, and arguments that a function documents and no domain covers."""
    gaps = []
    for space, (reference, own, known) in SPACES.items():
        for name in own.__all__:
            if name not in known and callable(getattr(reference, name, None)) and name not in CONSTANTS:
                gaps.append(f"{space}.{name}")
        for name, domains in known.items():
            for parameter in inspect.signature(_signed(space, name)).parameters.values():
                if parameter.name not in domains and parameter.name not in BY_NAME_TOO:
                    gaps.append(f"{space}.{name}({parameter.name})")
    return gaps


CONSTANTS = {
    *("LinAlgError", "dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal", "bernoulli"),
    "softplus",
}
"""Names of func's that make constants, or have no counterpart in every SciPy."""


def _signed(space: str, name: str) -> Callable[..., Any]:
    """The function whose signature says which arguments are drawn."""
    reference, own, _ = SPACES[space]
    if space == "scipy.special" and isinstance(getattr(reference, name), np.ufunc):
        return getattr(reference, name)  # type: ignore[no-any-return]
    return getattr(own if space.startswith("scipy") else reference, name)  # type: ignore[no-any-return]


class SpaceTester(Tester):
    """One call of a function of a namespace, in all modes."""

    def __init__(self, space: str, call: Call, r: Draw, tally: Tally) -> None:
        super().__init__(call, r, tally)
        self.space = space
        reference, own, _ = SPACES[space]
        self._reference, self._own = getattr(reference, call.name), getattr(own, call.name)
        if space == "scipy.linalg":
            self._reference = on_copies(self._reference)
        if call.name == "svd" and space == "scipy.linalg":
            self._reference = by_one_driver(self._reference)
        if call.name == "cho_factor":
            self._reference, self._own = one_triangle(self._reference), one_triangle(self._own)

    def reference(self) -> Callable[..., Any]:
        return self._reference  # type: ignore[no-any-return]

    def _check_differences(self, of_one: Any, x: Any, tangent: Any, outs: list[Any], dots: list[Any]) -> None:
        options = [*self.call.args[1:], *self.call.kwargs.values()]
        square = [np.shape(x)[-1:] == np.shape(x)[-2:-1] for x in [leaf.value for leaf in self.call.leaves()[:1]]]
        is_open = self.call.name in ("null_space", "schur") or "complete" in [o for o in options if isinstance(o, str)]
        if is_open or (self.call.name in COMPLETED and not all(square)):
            return  # columns that complete a basis and phases of Schur vectors are open: their derivative is dropped
        if self.call.name == "inv" and "diagonal" in [option for option in options if isinstance(option, str)]:
            return  # beside the diagonal SciPy leaves what was there
        if self.call.name in INACCURATE or any(
            [np.any(np.abs(np.asarray(out, complex)) > 1e290) for out in outs if is_inexact(out)]
        ):
            return  # SciPy's own values are not smooth, or they stand for an overflow
        if self.call.name.startswith(INVERSE_IN_PARAMETERS) and not all([np.all(np.isfinite(dot)) for dot in dots]):
            return  # SciPy's value in a tail is not that of the inverse, and degenerate distributions have no slope
        if self.call.name == "hyp2f1" and any([np.any(np.abs(np.asarray(out)) > 1e12) for out in outs]):
            return  # the pole at 1 is too near for differences
        if self.call.name == "lpmv" and np.any(np.abs(np.asarray(x)) > 1):
            return  # SciPy's values are those of polynomials, or of no function
        if self.call.name.startswith("modfresnel") and np.any(np.real(np.asarray(x)) < 0):
            return  # SciPy's values for negative numbers are wrong, those of its derivative right
        if self.call.name in SIGNS_JUMP:

            def settled(value: Any) -> list[Any]:
                return [in_signs_of(out, result) for out, result in zip(outs, flat(of_one(value)), strict=True)]

            return super()._check_differences(settled, x, tangent, outs, dots)
        super()._check_differences(of_one, x, tangent, outs, dots)

    def traced(self, mode: str) -> Callable[..., Any]:
        if self.takes_options():
            return self.reference()
        if self.space.startswith("scipy") or mode == "plain" or self.r.chance(0.25):
            return self._own  # type: ignore[no-any-return]
        return self.reference()

    def takes_options(self) -> bool:
        """Whether a special function is called with the options of a ufunc, which func.special does not have."""
        return isinstance(self._reference, np.ufunc) and bool(self.call.kwargs)

    def differentiated(self) -> Callable[..., Any]:
        """SciPy's function on plain arrays, that of func on traced ones."""
        if self.takes_options() or not self.space.startswith("scipy"):
            return self.reference()

        def function(*args: Any, **kwargs: Any) -> Any:
            return (self._own if is_traced([args, kwargs]) else self._reference)(*args, **kwargs)

        return function

    def is_typed_by_values(self) -> bool:
        return f"{self.space}.{self.call.name}" in TYPED_BY_VALUES

    def is_rounded(self) -> bool:
        return True

    def _compare(self, mode: str, expected: Outcome, got: Outcome) -> None:
        if expected.error is not None and self.space == "scipy.linalg" and self.is_unlike_scipy(expected.error, got):
            return
        if any([text in str(expected.error) for text in ACCIDENTS]):
            return  # accidents of integers and of arrays without axes
        if self.space.startswith("scipy") and any([np.size(leaf.value) == 0 for leaf in self.call.leaves()]):
            return  # shapes and dtypes of nothing are accidents there
        is_refusal = got.error is not None and any([text in str(got.error) for text in OTHER_FAULTS])
        if is_refusal and (expected.error is not None or self.has_special_values()):
            return
        is_singular = isinstance(got.error, np.linalg.LinAlgError) and "singular" in str(got.error).lower()
        if self.call.name == "solve" and expected.error is None and "does not have the 1 rows" in str(got.error):
            return  # SciPy divides by a matrix of one number, whatever rows there are
        is_all_nan = got.error is None and all([np.isnan(x).all() for x in flat(got.value) if is_inexact(x)])
        if self.call.name == "solve_circulant" and is_all_nan and "near singular" in str(expected.error):
            return  # compiled code does not raise for the values that it meets
        if is_singular and self.call.name == "signm":
            return  # zero has no sign, and SciPy ends its iteration somewhere
        if is_singular and expected.error is None:
            is_finite = all([np.isfinite(x).all() for x in flat(expected.value)])
            if mode == "jvp" or not is_finite:
                return  # a factor with a zero on its diagonal has no derivative; or SciPy divides by it
        if "lyapunov" in self.call.name and self.is_open_equation():
            return
        if self.call.name == "signm" and expected.error is None and self.is_nearly_singular():
            return  # rounding decides the sign of an eigenvalue that is zero
        if self.call.name == "fractional_matrix_power" and expected.error is None and self.is_nearly_singular():
            return  # SciPy takes another way, with another dtype, where its smallest singular value rounds to zero
        if self.call.name == "orthogonal_procrustes" and expected.error is None and self.has_open_rotation():
            return
        if self.call.kwargs.get("check_finite") is False and self.has_special_values():
            return  # SciPy promises nothing
        if "at least two-dimensional" in str(got.error) and np.ndim(self.call.leaves()[0].value) < 2:
            return  # some functions of SciPy make something of it: sqrtm of a number is its exponential
        if type(expected.value) is list and self.space == "scipy.linalg":
            expected = Outcome(tuple(expected.value), expected.error)  # of batches SciPy makes lists of what are tuples
            got = Outcome(tuple(got.value), got.error) if type(got.value) is list else got
        super()._compare(mode, expected, got)

    def precision(self) -> float:
        """Conditions of matrices, which are small here, in addition to that of the operands."""
        own = max([precision_of(leaf.value) for leaf in self.call.leaves()], default=0.0)
        if self.call.name == "subspace_angles":  # angles near zero are known to the root of the precision
            own = max(own, 2.3e-16) ** 0.5
        return max(own, super().precision(), 2.3e-16) * (1.0 if self.space == "np.fft" else 30.0)

    def adjoint_precision(self, eps: float) -> float:
        """That of matrices and their equations, which may be nearly singular, so that rounding is multiplied."""
        own = super().adjoint_precision(eps)
        return max(own, min(1e6 * eps, 1e-3)) if self.space.endswith("linalg") else own

    def has_special_values(self) -> bool:
        """Whether there are infinities or NaNs in an argument, which func may refuse by name."""
        return not all([np.isfinite(x).all() for x in [np.asarray(leaf.value) for leaf in self.call.leaves()]])

    def has_open_rotation(self) -> bool:
        """Whether several orthogonal matrices fit best, as the product that they come from is singular."""
        first, second = [np.asarray(leaf.value, complex) for leaf in self.call.leaves()[:2]]
        scales = np.linalg.svd(np.nan_to_num(first.T @ np.conj(second)))[1]
        return bool(scales[-1] <= 1e-4 * scales[0])

    def is_open_equation(self) -> bool:
        """Whether a Lyapunov equation has no or several solutions but for rounding, or numbers that overflow in one."""
        a = np.asarray(self.call.leaves()[0].value, complex)
        if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not np.all(np.abs(a) < 1e100):
            return True
        values = np.linalg.eigvals(a)
        one, other = values[..., :, None], np.conj(values)[..., None, :]
        scales = np.abs(1 - one * other if "discrete" in self.call.name else one + other)
        return bool(np.any(scales <= 1e-5 * (1 + np.abs(one))))

    def is_nearly_singular(self) -> bool:
        """Whether the first matrix has a singular value that rounding cannot tell from zero."""
        scales = np.linalg.svd(np.nan_to_num(np.asarray(self.call.leaves()[0].value, complex)))[1]
        return bool(np.any(scales[..., -1:] <= 1e-5 * scales[..., :1]))

    def is_unlike_scipy(self, error: BaseException, got: Outcome) -> bool:
        """Whether func may compute where SciPy raises: batches of nothing, empty matrices, overflow inside."""
        if any([np.size(leaf.value) == 0 for leaf in self.call.leaves()]) or "zero-size batches" in str(error):
            return True
        results = [x for x in flat(got.value) if isinstance(x, (np.ndarray, np.generic))] if got.error is None else []
        if isinstance(error, (NotImplementedError, KeyError)):
            return True
        is_not_finite = "infs or NaNs" in str(error) or ("did not converge" in str(error) and self.has_special_values())
        return is_not_finite and any([np.isnan(x).any() for x in results])


ACCIDENTS = (
    "not inexact",
    "float division by zero",
    "not enough values to unpack",
    "can only convert an array of size 1",
    "remapped shapes",
)
"""Texts of NumPy and SciPy about integers, numbers of Python, arrays without axes, matrices of one element, and `out`
for several axes.
"""
OTHER_FAULTS = ("is unsupported in linalg", "infs or NaNs", "did not converge", "Invalid norm value")
"""If two things are wrong, the error may name either; infinities and NaNs may raise one."""


COMPLETED = {"svd", "qr", "rq"}
"""Factorizations that may complete a basis."""
INVERSE_IN_PARAMETERS = (
    "bdtr",
    "nbdtr",
    "btdtr",
    "chdtr",
    "chndtr",
    "fdtr",
    "gdtr",
    "ncfdtr",
    "nctdtr",
    "nrdtr",
    "stdtr",
)
"""Beginnings of names of functions for which SciPy searches."""
INACCURATE = {
    "itairy",
    "ncfdtrinc",
    "obl_rad2",
    "pro_rad2",
    *[name for name in UFUNCS if name.endswith(("1_cv", "2_cv"))],
}
"""Functions whose SciPy values and SciPy derivatives agree to a few digits only, or not at all. Those with a
characteristic value as an argument solve their equation for the right one alone.
"""
FORGET_OUT = {"irfft2", "hfft", "ifft2"}
"""Functions that do not pass on their output array in NumPy."""


def on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may overwrite its arguments, on copies of them."""

    def copied(entry: Any) -> Any:
        if isinstance(entry, tuple):
            return tuple([copied(item) for item in entry])
        return laid_out_like(entry) if type(entry) is np.ndarray else entry

    return lambda *args, **kwargs: function(*copied(args), **{key: copied(x) for key, x in kwargs.items()})


SIGNED = {"eig", "eigh", "svd", "schur", "null_space", "orth"}
"""Functions whose signs are LAPACK's choice: in single precision another build of it than NumPy's may choose others."""


IN_DOUBLE = {*SIGNED, "logm"}
"""Those, and a function whose result of a real matrix is complex in single precision where rounding made it so."""
SIGNS_JUMP = {"eigh", "eigh_tridiagonal"}
"""Functions by whose drivers (evr, stemr) signs of vectors jump: another point nearby has others."""


def in_signs_of(near: Any, result: Any) -> Any:
    """A result whose columns have the signs of another one nearby."""
    near, columns = np.asarray(near), np.asarray(result)
    if columns.ndim < 2 or columns.shape != near.shape:
        return result
    apart, opposite = [np.sum(np.abs(columns + sign * near) ** 2, -2, keepdims=True) for sign in (-1, 1)]
    return columns * np.where(apart > opposite, -1, 1)


def as_scipy_computes(x: Any, name: str) -> Any:
    """An argument without the dtypes for which functions of scipy.linalg differ among each other.

    Some take single precision for small integers, or compute in half precision by accident.
    """
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    if x.dtype.char in "?bBhH":
        return x.astype(np.int64)
    x = x.astype(np.float32) if x.dtype.char == "e" else x
    return x.astype(np.result_type(x, np.float64)) if name in IN_DOUBLE and x.dtype.kind in "fc" else x


def as_scipy_requires(call: Call) -> None:
    """Make the operands what SciPy takes for granted, where it computes something else for others."""
    values = [*call.args, *call.kwargs.values()]
    leaves = call.leaves()
    if call.name == "inv" and "diagonal" in [x for x in values if isinstance(x, str)]:
        matrix = np.asarray(leaves[0].value)
        if matrix.ndim > 1 and matrix.shape[-1] == matrix.shape[-2]:  # it leaves what is beside the diagonal there
            leaves[0].value = np.where(np.eye(matrix.shape[-1], dtype=bool), matrix, matrix.dtype.type(0))
    if call.name.endswith("_tridiagonal") and not all([np.isfinite(leaf.value).all() for leaf in leaves]):
        call.kwargs.pop("check_finite", None)  # LAPACK's stemr does not return where NaN meets an infinity
    if call.name == "solve_banded" and np.shape(leaves[0].value)[-1:] == (1,):
        common = np.result_type(*[leaf.value for leaf in leaves])
        for leaf in leaves:  # one column is divided in place
            leaf.value = np.asarray(leaf.value).astype(common)


def one_triangle(cho_factor: Callable[..., Any]) -> Callable[..., Any]:
    """cho_factor without the other triangle, which holds anything."""

    def function(*args: Any, **kwargs: Any) -> Any:
        c, lower = cho_factor(*args, **kwargs)
        is_lower = bool(np.all(lower)) and np.size(lower) > 0
        return (np.tril if is_lower else np.triu)(c), is_lower

    return function


def by_one_driver(svd: Callable[..., Any]) -> Callable[..., Any]:
    """svd by the driver that func has for both: signs of singular vectors are those of the driver."""

    def function(*args: Any, **kwargs: Any) -> Any:
        first, *rest = ["gesdd" if type(entry) is str and entry == "gesvd" else entry for entry in args]
        drivers = {"lapack_driver": "gesdd"} if kwargs.get("lapack_driver") == "gesvd" else {}
        return svd(first, *rest, **{**kwargs, **drivers})

    return function


def is_traced(entry: Any) -> bool:
    """Whether there is a traced array among arguments."""
    if isinstance(entry, (list, tuple)):
        return any([is_traced(item) for item in entry])
    if isinstance(entry, dict):
        return any([is_traced(item) for item in entry.values()])
    return type(entry) is Tracer


def case(choices: random.Random, tally: Tally) -> None:
    """One call of one function, in all modes."""
    space, name = choices.choice(CALLS)
    r = Draw(choices)
    domains = {**BY_NAME_TOO, **SPACES[space][2][name]}
    if space.startswith("scipy") and not isinstance(getattr(scipy.special, name, None), np.ufunc):
        domains["out"] = absent
    call = draw_call(name, r, domains, _signed(space, name))
    if name == "sph_harm_y":
        call = Call(name, [*call.args, *call.kwargs.values()], {}, call.generic)
    if name in FORGET_OUT:
        call.kwargs.pop("out", None)
    if space == "scipy.linalg":
        for leaf in call.leaves():
            leaf.value = as_scipy_computes(leaf.value, name)
    if name in ("solve_sylvester", "solve_lyapunov", "solve_continuous_lyapunov", "solve_discrete_lyapunov"):
        common = np.result_type(*[np.asarray(leaf.value).dtype for leaf in call.leaves()])
        for leaf in call.leaves():  # SciPy solves other equations where dtypes differ
            leaf.value = np.asarray(leaf.value).astype(common)
    if space == "scipy.linalg":
        as_scipy_requires(call)
    tally.show(f"{space}.{call}")
    tester = SpaceTester(space, call, r, tally)
    tester.check()
    if tester.found:
        mode, what = tester.found[0]
        raise AssertionError(f"{space}.{name}: {what}\nunder {mode}")
