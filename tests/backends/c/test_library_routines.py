"""Linear algebra as C computes what the library's own does: in all dtypes, for batches, in derivatives, and for
singular matrices."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import func
from func.compilation.c_export import CFunction
from tests.support.c_programs import COMPILER, STRICT, loaded, merged, needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(17)
LIMITS = {"float64": 1e-9, "complex128": 1e-9, "float32": 3e-3, "complex64": 3e-3}


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


SQUARE = numbers(9, 9) + 4 * np.eye(9)
RIGHT = numbers(9, 3)
POSITIVE = SQUARE @ np.conj(SQUARE.T) + 9 * np.eye(9)
LOWER = np.tril(SQUARE)
TALL, WIDE = numbers(7, 4), numbers(4, 7)
BATCH = np.stack([SQUARE, SQUARE.T, 2 * SQUARE[::-1]])
LARGE, LARGE_RIGHT = numbers(70, 70) + 20 * np.eye(70), numbers(70, 9)
LARGE_POSITIVE = LARGE @ np.conj(LARGE.T)
FLAT = np.outer(np.arange(1.0, 8.0), np.arange(1.0, 5.0)) + 0j
"""A matrix of rank 1."""

np_linalg, sp = np.linalg, scipy.linalg


def size(x: Any) -> Any:
    """A sum that a derivative can be taken of, for real and complex arrays."""
    return np.sum(np.abs(x) ** 2)


def rebuilt(u: Any, s: Any, vh: Any) -> Any:
    """The matrix by its singular values, and what shows that the factors are unitary."""
    k = np.shape(s)[-1]
    return (u[..., :k] * s) @ vh[..., :k, :], np.conj(u.T) @ u, vh @ np.conj(vh.T)


def rebuilt_hermitian(w: Any, v: Any) -> Any:
    return w, (v * w) @ np.conj(v.T), np.conj(v.T) @ v


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (np_linalg.solve, (SQUARE, RIGHT)),
    "solve a vector": (np_linalg.solve, (SQUARE, RIGHT[:, 0])),
    "solve a batch": (np_linalg.solve, (BATCH, np.stack([RIGHT] * 3))),
    "solve a large one": (np_linalg.solve, (LARGE, LARGE_RIGHT)),
    "inv": (np_linalg.inv, (SQUARE,)),
    "inv of a large one": (np_linalg.inv, (LARGE,)),
    "lu of a large wide one": (lambda a: sp.lu_factor(a)[0], (numbers(70, 101),)),
    "lu of a large tall one": (lambda a: sp.lu_factor(a)[0], (numbers(101, 70),)),
    **{
        f"solve with a large triangle {trans} {lower} {unit} {turned}": (
            lambda a, b, trans=trans, lower=lower, unit=unit, turned=turned: sp.solve_triangular(
                a.T if turned else a, b, trans=trans, lower=lower, unit_diagonal=unit
            ),
            (LARGE / (70 if unit else 1), LARGE_RIGHT),
        )
        for trans, lower, unit, turned in (
            ("N", 1, 0, 0),
            ("N", 0, 1, 0),
            ("T", 1, 0, 0),
            ("C", 0, 0, 0),
            ("N", 1, 0, 1),
        )
    },
    "inv of a batch": (np_linalg.inv, (BATCH,)),
    "inv of a number": (np_linalg.inv, (SQUARE[:1, :1],)),
    "det": (np_linalg.det, (SQUARE,)),
    "slogdet": (lambda a: tuple(np_linalg.slogdet(a)), (BATCH,)),
    "slogdet of a large one": (lambda a: tuple(np_linalg.slogdet(a)), (LARGE,)),
    "slogdet of a singular one": (lambda a: tuple(np_linalg.slogdet(a)), (np.zeros((3, 3)) + 0j,)),
    "cholesky": (np_linalg.cholesky, (POSITIVE,)),
    "cholesky of a large one": (np_linalg.cholesky, (LARGE_POSITIVE,)),
    "upper cholesky": (sp.cholesky, (POSITIVE,)),
    "inverse of positive": (lambda a, b: sp.cho_solve(sp.cho_factor(a), b), (POSITIVE, RIGHT)),
    "qr of a tall one": (lambda a: tuple(np_linalg.qr(a)), (TALL,)),
    "qr of a wide one": (lambda a: tuple(np_linalg.qr(a)), (WIDE,)),
    "qr complete": (lambda a: tuple(np_linalg.qr(a, "complete")), (TALL,)),
    "qr r": (lambda a: np_linalg.qr(a, "r"), (TALL,)),
    "qr raw": (lambda a: tuple(np_linalg.qr(a, "raw")), (TALL,)),
    "qr of zeros": (lambda a: tuple(np_linalg.qr(a)), (np.zeros((3, 2)) + 0j,)),
    "lu_factor": (sp.lu_factor, (SQUARE,)),
    "lu_solve": (lambda a, b: sp.lu_solve(sp.lu_factor(a), b), (SQUARE, RIGHT)),
    **{
        f"solve_triangular {trans} {lower} {unit}": (
            lambda a, b, trans=trans, lower=lower, unit=unit: sp.solve_triangular(
                a if lower else a.T, b, trans=trans, lower=lower, unit_diagonal=unit
            ),
            (LOWER / (9 if unit else 1), RIGHT),
        )
        for trans in "NTC"
        for lower in (False, True)
        for unit in (False, True)
    },
    **{
        f"solve {kind} {lower}": (
            lambda a, b, kind=kind, lower=lower: sp.solve(a, b, assume_a=kind, lower=lower),
            (matrix, RIGHT),
        )
        for kind, matrix in {
            "gen": SQUARE,
            "pos": POSITIVE,
            "sym": SQUARE + SQUARE.T,
            "her": SQUARE + np.conj(SQUARE.T),
            "upper triangular": SQUARE,
            "lower triangular": SQUARE,
        }.items()
        for lower in (False, True)
    },
    "eigvalsh": (np_linalg.eigvalsh, (POSITIVE,)),
    "eigvalsh upper": (lambda a: np_linalg.eigvalsh(a, "U"), (SQUARE,)),
    "eigh": (lambda a: rebuilt_hermitian(*np_linalg.eigh(a)), (SQUARE + np.conj(SQUARE.T),)),
    "eigh of equal eigenvalues": (lambda a: rebuilt_hermitian(*np_linalg.eigh(a)), (np.ones((5, 5)) + 0j,)),
    "singular values": (lambda a: np_linalg.svd(a, compute_uv=False), (TALL,)),
    **{
        f"svd {full} {name}": (lambda a, full=full: rebuilt(*np_linalg.svd(a, full_matrices=full)), (a,))
        for full in (False, True)
        for name, a in {"tall": TALL, "wide": WIDE, "rank 1": FLAT, "zero": 0 * WIDE}.items()
    },
    **{
        f"lstsq {name}": (lambda a, b: tuple(np_linalg.lstsq(a, b, rcond=1e-5)), (a, numbers(len(a), 2)))
        for name, a in {"tall": TALL, "wide": WIDE, "square": SQUARE}.items()
    },
    "lstsq rank 1": (lambda a, b: np_linalg.lstsq(a, b, rcond=1e-5)[::3], (FLAT, numbers(7, 2))),
    "pinv": (np_linalg.pinv, (TALL,)),
    "gradient of solve": (func.grad(lambda a, b: size(np_linalg.solve(a, b)), argnums=(0, 1)), (SQUARE, RIGHT)),
    "gradient of inv": (func.grad(lambda a: size(np_linalg.inv(a))), (BATCH,)),
    "gradient of slogdet": (func.grad(lambda a: np_linalg.slogdet(a)[1]), (SQUARE,)),
    "gradient of cholesky": (func.grad(lambda a: size(np_linalg.cholesky(a)[2])), (POSITIVE,)),
    "gradient of qr": (func.grad(lambda a: size(np_linalg.qr(a)[0][1])), (TALL,)),
    "gradient of pos": (
        func.grad(lambda a, b: size(sp.solve(a, b, assume_a="pos")), argnums=(0, 1)),
        (POSITIVE, RIGHT),
    ),
    "gradient of eigenvalues": (func.grad(lambda a: np.sum(np_linalg.eigvalsh(a)[:3])), (POSITIVE,)),
    "gradient of singular values": (func.grad(lambda a: np_linalg.svd(a, compute_uv=False)[0]), (TALL,)),
}
"""Functions and complex arguments; real dtypes have the real parts."""


def as_dtype(x: Any, name: str) -> Any:
    """An argument in a dtype."""
    return x.astype(name) if name.startswith("complex") else np.ascontiguousarray(x.real).astype(name)


def arguments(name: str, dtype: str) -> tuple[Any, ...]:
    """The arguments of a case."""
    return tuple([as_dtype(x, dtype) for x in CASES[name][1]])


def agree(got: Any, wanted: Any, limit: float, what: str) -> None:
    outs = got if isinstance(got, tuple) else (got,)
    for a, b in zip(outs, func.tree.leaves(wanted), strict=True):
        expected = np.asarray(b)
        assert (a.dtype, np.shape(a)) == (expected.dtype, expected.shape), what
        largest = max(1.0, float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))))
        np.testing.assert_allclose(a, expected, rtol=limit, atol=limit * largest, err_msg=what)


@pytest.mark.parametrize(("dtype", "column_major"), [*[(dtype, False) for dtype in LIMITS], ("complex128", True)])
def test_values_and_derivatives(
    dtype: str, column_major: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chosen = list(CASES)[:: 4 if column_major else 1 if dtype in ("float64", "complex128") else 2]
    tried = [(name, CASES[name][0], arguments(name, dtype)) for name in chosen]
    modules = [
        func.to_c(function, name=f"f{place}", column_major=column_major)(*args)
        for place, (_, function, args) in enumerate(tried)
    ]
    sanitizer = ["-fsanitize=undefined"] if column_major else []
    runs = loaded(modules, tmp_path, (*STRICT, "-O0", *sanitizer))
    for (name, function, args), run in zip(tried, runs, strict=True):
        agree(run(*args), function(*args), LIMITS[dtype], f"{name} of {dtype}")
    assert "runtime error" not in capfd.readouterr().err


SINGULAR: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (np_linalg.solve, (np.ones((3, 3)), np.ones((3, 1)))),
    "inv": (np_linalg.inv, (np.zeros((2, 2)),)),
    "cholesky": (np_linalg.cholesky, (-np.eye(3),)),
    "solve_triangular": (lambda a, b: sp.solve_triangular(a, b), (np.diag([1.0, 0.0]), np.ones(2))),
    "nearly singular": (lambda a, b: sp.solve(a, b, assume_a="sym"), (np.diag([1.0, 1e-18]), np.ones(2))),
    "not positive": (lambda a, b: sp.solve(a, b, assume_a="pos"), (np.diag([1.0, -1.0]), np.ones(2))),
    "eigh of NaN": (lambda a: np_linalg.eigh(a)[0], (np.full((3, 3), np.nan),)),
    "svd of infinity": (lambda a: np_linalg.svd(a, compute_uv=False), (np.diag([np.inf, 1.0]),)),
}


def test_what_has_no_result_is_reported(tmp_path: Path) -> None:
    modules = [func.to_c(function, name=f"f{place}")(*args) for place, (function, args) in enumerate(SINGULAR.values())]
    for name, (_, args), run in zip(SINGULAR, SINGULAR.values(), loaded(modules, tmp_path), strict=True):
        with pytest.raises(ArithmeticError, match="singular"):
            pytest.fail(f"{name} gave {run(*args)}")


EXTREME: dict[str, tuple[Callable[..., Any], Any]] = {
    "qr of large numbers": (lambda a: tuple(np_linalg.qr(a)), 1e200 * TALL.real),
    "qr of small numbers": (lambda a: tuple(np_linalg.qr(a)), 1e-200 * TALL.real),
    "svd of large numbers": (lambda a: np_linalg.svd(a, compute_uv=False), 1e300 * TALL.real),
    "svd of small numbers": (lambda a: np_linalg.svd(a, compute_uv=False), 1e-300 * TALL.real),
    "eigh of large numbers": (np_linalg.eigvalsh, 1e300 * POSITIVE.real),
    "eigh of small numbers": (np_linalg.eigvalsh, 1e-300 * POSITIVE.real),
    "inv of denormal numbers": (lambda a: np_linalg.inv(a), np.diag([1e-307, 1e-307, 2.0])),
    "NaN in one row": (np_linalg.inv, np.array([[1.0, np.nan], [0.0, 1.0]])),
    "slogdet of large numbers": (lambda a: tuple(np_linalg.slogdet(a)), 1e300 * SQUARE.real),
}


def test_extreme_numbers(tmp_path: Path) -> None:
    modules = [func.to_c(function, name=f"f{place}")(a) for place, (function, a) in enumerate(EXTREME.values())]
    for name, (function, a), run in zip(EXTREME, EXTREME.values(), loaded(modules, tmp_path), strict=True):
        got = run(a)
        for x, y in zip(got if isinstance(got, tuple) else (got,), func.tree.leaves(function(a)), strict=True):
            largest = np.max(np.abs(y), initial=0, where=np.isfinite(y))
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10 * largest, err_msg=name)


def bidiagonal(d: Any, e: Any) -> Any:
    """An upper bidiagonal matrix."""
    return np.diag(d) + np.diag(e, 1)


def hilbert(n: int) -> Any:
    """A matrix whose singular values fall to the rounding of the largest and below."""
    return 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)


SPECTRA: dict[str, Any] = {
    **{f"{m} x {n}": numbers(m, n) for m, n in ((1, 1), (1, 6), (6, 1), (2, 2), (5, 3), (40, 40), (53, 20), (20, 53))},
    "graded rows": np.logspace(0, -30, 30)[:, None] * numbers(30, 30),
    "graded columns": np.logspace(-150, 150, 20) * numbers(20, 20),
    "graded up": bidiagonal(np.logspace(-20, 0, 16), 0.5 * np.logspace(-20, -1, 15)) + 0j,
    "graded down": bidiagonal(np.logspace(0, -20, 16), 0.5 * np.logspace(0, -19, 15)) + 0j,
    "hilbert": hilbert(24) + 0j,
    "rank 3": numbers(30, 3) @ numbers(3, 20),
    "equal values": np.linalg.qr(numbers(25, 25))[0],
    "pairs": np.kron(np.eye(8), np.ones((2, 2))) + 0j,
    "zeros on the diagonal": bidiagonal([1.0, 0.0, 2.0, 0.0, 3.0, 0.0], np.ones(5)) + 0j,
    "zeros beside it": bidiagonal(np.arange(1.0, 7.0), [1.0, 0.0, 1.0, 0.0, 0.0]) + 0j,
    "a zero first": bidiagonal([0.0, 1.0, 1.0], np.ones(2)) + 0j,
    "a zero last": bidiagonal([1.0, 1.0, 0.0], np.ones(2)) + 0j,
    "wilkinson": np.diag(np.abs(np.arange(-10.0, 11.0))) + np.diag(np.ones(20), 1) + np.diag(np.ones(20), -1) + 0j,
    "triangle of ones": np.triu(np.ones((40, 40))) + 0j,
    "zero columns": np.stack([np.zeros(5), np.arange(5.0), np.zeros(5), np.ones(5)], axis=1) + 0j,
}
"""Matrices with spectra that are hard for some algorithm."""


@pytest.mark.parametrize("dtype", LIMITS)
def test_singular_values_of_hard_matrices(dtype: str, tmp_path: Path) -> None:
    """Values and vectors are as exact as rounding lets them be, with and without vectors."""
    single = dtype in ("float32", "complex64")
    names = list(SPECTRA)[:: 1 if dtype == "float64" else 3]
    tried = {name: as_dtype(SPECTRA[name], dtype) for name in names if not (single and name == "graded columns")}

    def decompositions(a: Any, full: bool) -> Any:
        return np_linalg.svd(a, compute_uv=False), *np_linalg.svd(a, full_matrices=full)

    modules = [
        func.to_c(decompositions, 1, name=f"f{place}")(a, place % 2 == 0) for place, a in enumerate(tried.values())
    ]
    for (name, a), run in zip(tried.items(), loaded(modules, tmp_path, (*STRICT, "-O0")), strict=True):
        alone, u, s, vh = run(a)
        limit = 30 * float(np.finfo(dtype).eps) * np.max(s) * len(a) ** 0.5
        wide = a.astype(np.result_type(a, np.float64))
        np.testing.assert_allclose(s, np_linalg.svd(wide, compute_uv=False), rtol=0, atol=limit, err_msg=name)
        np.testing.assert_allclose(alone, s, rtol=0, atol=limit, err_msg=name)
        assert (np.diff(s) <= 0).all() and (s >= 0).all(), name
        k = len(s)
        np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], a, rtol=0, atol=limit, err_msg=name)
        for q in (u, np.conj(vh.T)):
            unit = 60 * float(np.finfo(dtype).eps) * len(a) ** 0.5
            np.testing.assert_allclose(np.conj(q.T) @ q, np.eye(q.shape[1]), rtol=0, atol=unit, err_msg=name)


def test_small_singular_values_of_bidiagonal_matrices_are_exact(tmp_path: Path) -> None:
    """Each has few relative errors, however much smaller than the largest it is."""
    d = np.array([1.0, 1e-4, 1e-9, 1e-15, 1e-22, 1e-30])
    tried = [bidiagonal(d, 0.3 * d[:-1]), bidiagonal(d[::-1], 0.3 * d[-2::-1])]
    modules = [func.to_c(lambda a: np_linalg.svd(a, compute_uv=False), name=f"f{i}")(a) for i, a in enumerate(tried)]
    for a, run in zip(tried, loaded(modules, tmp_path), strict=True):
        with mpmath.workdps(80):
            wanted = [float(s) for s in mpmath.svd_r(mpmath.matrix(a.tolist()), compute_uv=False)]
        np.testing.assert_allclose(run(a), wanted, rtol=1e-13)


def test_cholesky_factors_of_all_sizes(tmp_path: Path) -> None:
    """Tiles and blocks that do and do not divide the size."""
    sizes = (1, 2, 5, 6, 7, 8, 9, 13, 16, 31, 97, 193, 230)
    tried = []
    for n in sizes:
        a = numbers(n, n)
        for dtype in ("float64", "complex128") if n < 100 else ("float64",):
            tried.append(as_dtype(a @ np.conj(a.T) + n * np.eye(n), dtype))
    modules = [
        func.to_c(lambda a, b: (np_linalg.cholesky(a), sp.cholesky(b)), name=f"f{place}")(a, a)
        for place, a in enumerate(tried)
    ]
    for a, run in zip(tried, loaded(modules, tmp_path), strict=True):
        wanted = np_linalg.cholesky(a)
        below, above = a.copy(), a.copy()
        below[np.triu_indices(len(a), 1)], above[np.tril_indices(len(a), -1)] = 1e300, 1e300  # these are not read
        lower, upper = run(below, above)
        np.testing.assert_allclose(lower, wanted, rtol=1e-12, atol=1e-12 * len(a))
        np.testing.assert_allclose(upper, np.conj(wanted.T), rtol=1e-12, atol=1e-12 * len(a))
        failing = a.copy()
        failing[-1, -1] = -1
        with pytest.raises(ArithmeticError, match="singular"):
            run(failing, a)


def test_optimizers_find_nothing_to_warn_of(tmp_path: Path) -> None:
    """With the optimizations of -O3, compilers see more of what a program does."""

    def f(a: Any, b: Any, c: Any) -> Any:
        return (
            *np_linalg.svd(a),
            np_linalg.svd(b, compute_uv=False),
            np_linalg.qr(a),
            np_linalg.eigh(c),
            np_linalg.cholesky(c),
            np_linalg.lstsq(b, a[:7], rcond=None),
        )

    args = [as_dtype(x, "float64") for x in (TALL, WIDE.T, POSITIVE)]
    module = func.to_c(f, name="f")(*args)
    (run,) = loaded([module], tmp_path, (*STRICT, "-O3"))
    np.testing.assert_allclose(run(*args)[1], np_linalg.svd(args[0])[1], rtol=1e-12)


MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{headers}

static void *copied(const void *from, size_t bytes) {{
    void *memory = malloc(bytes);
    if (bytes) {{
        memcpy(memory, from, bytes);
    }}
    return memory;
}}

int main(void) {{
{calls}
    return 0;
}}
"""


def test_memory_is_used_within_its_bounds(tmp_path: Path) -> None:
    """Each array has its own piece of the heap, of its size, in a program with the address sanitizer."""
    calls, modules = [], []
    for place, name in enumerate(CASES):
        args = arguments(name, "float64")
        module = func.to_c(CASES[name][0], name=f"f{place}")(*args)
        modules.append(module)
        lines, passed = [], []
        for number, x in enumerate(args):
            values = ", ".join([repr(float(value)) for value in np.ravel(x)])
            lines.append(f"static const double a{number}[] = {{{values}}};")
            passed.append(f"copied(a{number}, sizeof(a{number}))")
        for out in module.outputs:
            passed.append(f"malloc({int(np.prod(out.shape)) * out.dtype.itemsize})")
        names = [f"p{number}" for number in range(len(passed))]
        lines += [f"void *{p} = {text};" for p, text in zip(names, passed, strict=True)]
        lines.append(f"void *work = malloc({module.workspace});")
        lines.append(f'if (f{place}({", ".join([*names, "work"])})) {{ puts("f{place} failed"); }}')
        lines += [f"free({p});" for p in [*names, "work"]]
        calls.append("    {\n" + "\n".join([f"        {line}" for line in lines]) + "\n    }")
    sources = [str(source) for source in merged(modules, tmp_path)]
    headers = "\n".join([f'#include "{module.name}.h"' for module in modules])
    main = tmp_path / "main.c"
    main.write_text(MAIN.format(headers=headers, calls="\n".join(calls)), encoding="utf-8")
    assert COMPILER is not None
    flags = ["-std=c99", "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = tmp_path / "main"
    built = subprocess.run(
        [COMPILER, *flags, "-o", str(program), str(main), *sources, "-lm"], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no address sanitizer")
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[:3000] + done.stdout


LIBRARIES = ("-DFUNC_CBLAS", "-DFUNC_LAPACK")


def test_large_matrices_by_libraries(tmp_path: Path) -> None:
    """With FUNC_CBLAS and FUNC_LAPACK the results are the same, where the libraries are installed."""
    names = [name for name in CASES if "large" in name]
    more: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "triangle": (lambda a, b: sp.solve_triangular(a, b, trans="T"), (LARGE, LARGE_RIGHT)),
        "lower triangle": (lambda a, b: sp.solve_triangular(a, b, lower=True), (LARGE, LARGE_RIGHT)),
        "factors": (sp.lu_factor, (LARGE,)),
        "cho_solve": (lambda a, b: sp.cho_solve(sp.cho_factor(a), b), (LARGE_POSITIVE, LARGE_RIGHT)),
        "gradient": (func.grad(lambda a, b: size(np_linalg.solve(a, b)), argnums=(0, 1)), (LARGE, LARGE_RIGHT)),
        "gradient of cholesky": (func.grad(lambda a: size(np_linalg.cholesky(a)[2])), (LARGE_POSITIVE,)),
    }
    tried: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        (f"{name} of {dtype}", function, tuple([as_dtype(x, dtype) for x in args]))
        for name, (function, args) in [*((name, CASES[name]) for name in names), *more.items()]
        for dtype in LIMITS
    ]
    modules = [func.to_c(function, name=f"f{place}")(*args) for place, (_, function, args) in enumerate(tried)]
    for (name, function, args), run in zip(tried, with_libraries(modules, tmp_path), strict=True):
        agree(run(*args), function(*args), LIMITS[args[0].dtype.name], name)


def with_libraries(modules: Sequence[Any], folder: Path) -> list[CFunction]:
    """The functions of modules, compiled for CBLAS and LAPACKE."""
    probe = folder / "probe.c"
    probe.write_text("#include <cblas.h>\n#include <lapacke.h>\nint main(void) { return 0; }\n", encoding="utf-8")
    links = ["-llapacke", "-lopenblas"]
    assert COMPILER is not None
    found = subprocess.run(
        [COMPILER, str(probe), "-o", str(folder / "probe"), *links], capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip("LAPACKE or OpenBLAS is not installed")
    sources = [str(source) for source in merged(modules, folder)]
    library = folder / "libraries.so"
    command = [COMPILER, *STRICT, "-O1", *LIBRARIES, "-shared", "-fPIC", "-o", str(library), *sources, *links, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    whole = ctypes.CDLL(str(library))
    return [CFunction(module, whole) for module in modules]
