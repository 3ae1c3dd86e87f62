"""Solves for matrices of known structure, which check the condition number as in SciPy.

The conventions are those of `lapack`.
"""

from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg.lapack import FINE, WIDTH, areas, run, scratch_size
from func.backends.llvm.linalg.matrix_copies import INT, Matrix, emit_transpose, real_element, slot
from func.backends.llvm.linalg.routines import call, routine
from func.backends.loops.kernels import DType

_FACTOR = {"general": "getrf", "positive": "potrf", "symmetric": "sytrf", "hermitian": "hetrf"}
_CONDITION = {
    "general": "gecon",
    "positive": "pocon",
    "symmetric": "sycon",
    "hermitian": "hecon",
    "triangular": "trcon",
}
_SOLVE = {"general": "getrs", "positive": "potrs", "symmetric": "sytrs", "hermitian": "hetrs", "triangular": "trtrs"}
_NORM = {"general": "lange", "positive": "lansy", "symmetric": "lansy", "hermitian": "lansy"}


def _areas(dtype: Any, n: int, k: int) -> list[int]:
    size = np.dtype(dtype).itemsize
    return [n * n * size, n * k * size, n * 4, max(WIDTH, 4) * n * size, 2 * n * size]


def solve_known_scratch(dtype: Any, n: int, k: int) -> int:
    """The bytes that `emit_solve_known` needs."""
    return scratch_size(_areas(dtype, n, k))


def emit_solve_known(
    builder: ir.IRBuilder,
    n: int,
    k: int,
    a: Matrix,
    b: Matrix,
    x: Matrix,
    scratch: ir.Value,
    *,
    kind: str,
    lower: bool,
) -> ir.Value:
    """Write the solution X of A X = B, both of shape (n, k), for a matrix of known structure.

    A is "general", "positive" definite, "symmetric", "hermitian" or "triangular"; for all but general ones it reads
    only the `lower` or upper triangle. The status is not 0 even for A that is singular to working precision.
    """
    if n == 0 or k == 0:
        return FINE
    solver = _Solver(builder, a.dtype, n, areas(builder, scratch, _areas(a.dtype, n, k)), kind, lower)
    right = Matrix(solver.right, n, a.dtype)
    emit_transpose(builder, n, n, a, Matrix(solver.matrix, n, a.dtype))
    emit_transpose(builder, n, k, b, right)
    first = slot(builder)
    norm = solver.norm()
    builder.store(solver.factor(), first)
    with builder.if_then(builder.icmp_signed("==", builder.load(first, typ=INT), FINE), likely=True):
        is_regular = solver.is_regular(norm)
        builder.store(builder.select(is_regular, FINE, ir.Constant(INT, 1)), first)
        solver.solve(k)
        emit_transpose(builder, k, n, right, x)
    return builder.load(first, typ=INT)


class _Solver:
    """The LAPACK calls for one kind of matrices."""

    def __init__(
        self, builder: ir.IRBuilder, dtype: DType, n: int, places: list[ir.Value], kind: str, lower: bool
    ) -> None:
        self.builder, self.dtype, self.n = builder, dtype, n
        self.is_complex = dtype.kind == "c"
        self.kind = "symmetric" if kind == "hermitian" and not self.is_complex else kind
        self.matrix, self.right, self.pivots, self.work, self.integers = places
        self.triangle = "L" if lower else "U"
        self.real = real_element(dtype)

    def norm(self) -> ir.Value:
        """The place of the largest sum of moduli along a column; triangular matrices need none."""
        place = slot(self.builder, self.real)
        if self.kind != "triangular":
            name = "lanhe" if self.kind in ("hermitian", "positive") and self.is_complex else _NORM[self.kind]
            shape: tuple[Any, ...] = (self.n, self.n) if self.kind == "general" else (self.triangle, self.n)
            value = call(self.builder, routine(self.dtype, name), "1", *shape, self.matrix, self.n, self.work)
            self.builder.store(value, place)
        return place

    def factor(self) -> ir.Value:
        if self.kind == "triangular":
            return FINE
        arguments: tuple[Any, ...] = (self.triangle, self.n, self.matrix, self.n)
        if self.kind == "general":
            arguments = (self.n, *arguments[1:], self.pivots)
        elif self.kind != "positive":
            arguments = (*arguments, self.pivots, self.work, WIDTH * self.n)
        return run(self.builder, routine(self.dtype, _FACTOR[self.kind]), *arguments)

    def is_regular(self, norm: ir.Value) -> ir.Value:
        """Whether the reciprocal of the condition number is at least the unit roundoff."""
        builder, n = self.builder, self.n
        place = slot(builder, self.real)
        spaces: tuple[Any, ...] = (self.work, self.integers)
        if self.kind in ("general", "positive"):
            flag = "1" if self.kind == "general" else self.triangle
            arguments: tuple[Any, ...] = (flag, n, self.matrix, n, norm, place, *spaces)
        elif self.kind == "triangular":
            arguments = ("1", self.triangle, "N", n, self.matrix, n, place, *spaces)
        else:
            spaces = (self.work,) if self.is_complex else spaces
            arguments = (self.triangle, n, self.matrix, n, self.pivots, norm, place, *spaces)
        run(builder, routine(self.dtype, _CONDITION[self.kind]), *arguments)
        least = float(np.finfo(self.dtype).eps)
        return builder.fcmp_ordered(">=", builder.load(place, typ=self.real), ir.Constant(self.real, least))

    def solve(self, k: int) -> None:
        """Overwrite the right-hand sides."""
        pivots = () if self.kind in ("positive", "triangular") else (self.pivots,)
        flags: tuple[str, ...] = {"general": ("N",), "triangular": (self.triangle, "N", "N")}.get(
            self.kind, (self.triangle,)
        )
        name = routine(self.dtype, _SOLVE[self.kind])
        run(self.builder, name, *flags, self.n, k, self.matrix, self.n, *pivots, self.right, self.n)
