"""Small factorizations as straight-line code: Cholesky factors, triangular solves, solves with definite matrices.

These need no exchange of rows, so their operations are known beforehand: every element is a term of the elements
before. Equal factors of several solves are computed once. LU factors choose pivots at run time, so they stay calls. But
solves with one matrix share its factors, and solves for one or two right-hand sides are straight-line code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from func.backends.loops import kernels
from func.backends.loops.kernels import Buffer, LibraryCall, StridedRef

if TYPE_CHECKING:
    from func.backends.loops.scalar_expansion import Expansion, ScalarTerm

MOST_ROWS, MOST_OPERATIONS = 10, 1500
"""The largest matrix, and operations of the largest call, that are expanded."""
FEW = 2
"""The most right-hand sides for a solve in straight-line code with known LU factors; more are a call."""
BOOL = np.dtype(bool)


def is_small_routine(item: LibraryCall) -> bool:
    """Whether a call can be expanded."""
    params = item.params
    if item.routine not in EXPANDED or item.outs[0].buffer.dtype.kind != "f" or params["n"] > MOST_ROWS:
        return False
    if item.routine == "solve_known" and params["kind"] != "positive":
        return False
    return routine_operations(item) <= MOST_OPERATIONS


def routine_operations(item: LibraryCall) -> int:
    """Roughly the number of multiplications of a call."""
    n, k = item.params["n"], item.params.get("k", 0)
    return int(math.prod(item.params["batch"]) * (n * n * n // 6 + n * n * k))


def expand_routine(expansion: Expansion, item: LibraryCall) -> None:
    """Compute the results of a call, matrix by matrix."""
    params = dict(item.params)
    for at in itertools.product(*map(range, params.pop("batch"))):
        EXPANDED[item.routine](expansion, item, at, params)


class ScalarMatrix:
    """The elements of an operand at one index of the batch."""

    def __init__(self, expansion: Expansion, ref: StridedRef, at: Sequence[int]) -> None:
        self.expansion, self.buffer = expansion, ref.buffer
        strides = ref.strides[len(at) :]
        self.strides = strides if len(strides) == 2 else (*strides, 1)
        self.offset = ref.offset + sum([i * stride for i, stride in zip(at, ref.strides, strict=False)])

    def _place(self, i: int, j: int) -> int:
        return self.offset + i * self.strides[0] + j * self.strides[1]

    def get(self, i: int, j: int) -> ScalarTerm:
        return self.expansion.element(self.buffer, self._place(i, j))

    def set(self, i: int, j: int, value: ScalarTerm) -> None:
        self.expansion.store(self.buffer, self._place(i, j), value)


def _reduced(expansion: Expansion, start: ScalarTerm, products: Sequence[tuple[ScalarTerm, ScalarTerm]]) -> ScalarTerm:
    """start - Σ x y."""
    for x, y in products:
        product = expansion.apply("multiply", [x, y], start.dtype)
        start = expansion.apply("subtract", [start, product], start.dtype)
    return start


def _divided(expansion: Expansion, x: ScalarTerm, y: ScalarTerm) -> ScalarTerm:
    """x / y; of finite numbers by the reciprocal of y, which several quotients share."""
    if not expansion.finite:
        return expansion.apply("divide", [x, y], x.dtype)
    unit = expansion.literal(1, x.dtype)
    return expansion.apply("multiply", [x, expansion.apply("divide", [unit, y], x.dtype)], x.dtype)


def _cholesky(expansion: Expansion, item: LibraryCall, at: tuple[int, ...], params: dict[str, object]) -> None:
    a = ScalarMatrix(expansion, item.outs[0], at)
    n, lower = int(params["n"]), bool(params["lower"])  # type: ignore[call-overload]
    factor: dict[tuple[int, int], ScalarTerm] = {}
    zero = expansion.literal(0, a.buffer.dtype)
    for j in range(n):
        for i in range(j, n):
            start = a.get(i, j) if lower else a.get(j, i)
            value = _reduced(expansion, start, [(factor[i, k], factor[j, k]) for k in range(j)])
            if i == j:
                expansion.fail_where(expansion.apply("less_equal", [value, zero], BOOL))
                factor[i, j] = expansion.apply("sqrt", [value], value.dtype)
            else:
                factor[i, j] = _divided(expansion, value, factor[j, j])
    for i, j in itertools.product(range(n), range(n)):
        row, column = (i, j) if lower else (j, i)
        a.set(i, j, factor[row, column] if row >= column else zero)


def _triangular(expansion: Expansion, item: LibraryCall, at: tuple[int, ...], params: dict[str, object]) -> None:
    x, a = ScalarMatrix(expansion, item.outs[0], at), ScalarMatrix(expansion, item.args[0], at)
    n, k, left = int(params["n"]), int(params["k"]), bool(params["left"])  # type: ignore[call-overload]
    turned = (params["trans"] != "N") != (not left)
    lower = bool(params["lower"]) != turned
    zero = expansion.literal(0, x.buffer.dtype)
    for step, c in itertools.product(range(n), range(k)):
        i = step if lower else n - 1 - step
        known = range(i) if lower else range(n - 1, i, -1)
        row, column = (i, c) if left else (c, i)
        products = [(a.get(j, i) if turned else a.get(i, j), x.get(j, c) if left else x.get(c, j)) for j in known]
        value = _reduced(expansion, x.get(row, column), products)
        if not params["unit"]:
            on = a.get(i, i)
            expansion.fail_where(expansion.apply("equal", [on, zero], BOOL))
            value = _divided(expansion, value, on)
        x.set(row, column, expansion.without_sign(value))


def _definite_solve(expansion: Expansion, item: LibraryCall, at: tuple[int, ...], params: dict[str, object]) -> None:
    """A X = B by A = L D Lᵀ, without square roots; a pivot that is rounding error alone is a failure."""
    x = ScalarMatrix(expansion, item.outs[0], at)
    a, b = [ScalarMatrix(expansion, ref, at) for ref in item.args]
    n, k, lower = int(params["n"]), int(params["k"]), bool(params["lower"])  # type: ignore[call-overload]
    dtype = x.buffer.dtype
    bound = expansion.literal(2 * np.finfo(dtype).eps / 2, dtype)
    scaled: dict[tuple[int, int], ScalarTerm] = {}
    unit: dict[tuple[int, int], ScalarTerm] = {}
    for j in range(n):
        for i in range(j, n):
            start = a.get(i, j) if lower else a.get(j, i)
            value = _reduced(expansion, start, [(scaled[i, m], unit[j, m]) for m in range(j)])
            scaled[i, j] = value
            if i == j:
                least = expansion.apply("multiply", [start, bound], dtype)
                is_fine = expansion.apply("greater", [value, least], BOOL)
                expansion.fail_where(expansion.apply("logical_not", [is_fine], BOOL))
            else:
                unit[i, j] = _divided(expansion, value, scaled[j, j])
    for c in range(k):
        y: list[ScalarTerm] = []
        for i in range(n):
            y.append(_reduced(expansion, b.get(i, c), [(unit[i, m], y[m]) for m in range(i)]))
        z = [_divided(expansion, y[i], scaled[i, i]) for i in range(n)]
        for i in reversed(range(n)):
            z[i] = _reduced(expansion, z[i], [(unit[m, i], z[m]) for m in range(i + 1, n)])
            x.set(i, c, expansion.without_sign(z[i]))


EXPANDED: dict[str, Callable[[Expansion, LibraryCall, tuple[int, ...], dict[str, object]], None]] = {
    "potrf": _cholesky,
    "trtrs": _triangular,
    "solve_known": _definite_solve,
}
"""The routines that become straight-line code."""


def share_factors(expansion: Expansion, item: LibraryCall) -> bool:
    """Split a solve with one matrix into factors and a solve with them, if another solve may have the factors."""
    params = item.params
    n = params.get("n", 0)
    if item.routine != "solve" or params["batch"] != () or n > MOST_ROWS:
        return False
    (out, _), (matrix, right) = item.outs, item.args
    elements = ScalarMatrix(expansion, matrix, ())
    terms = tuple([elements.get(i, j) for i in range(n) for j in range(n)])
    transposed = tuple([terms[j * n + i] for i in range(n) for j in range(n)])
    dtype = out.buffer.dtype
    trans = "N"
    if transposed in expansion.factors and terms not in expansion.factors:
        terms, trans = transposed, "T"
    if terms not in expansion.factors:
        packed, pivots = Buffer(n * n, dtype), Buffer(n, np.dtype(np.int32))
        lu, exchanges = StridedRef(packed, 0, (n, 1)), StridedRef(pivots, 0, (1,))
        factors = LibraryCall("factors", (lu, exchanges), (matrix,), {"batch": (), "n": n, "turned": False})
        expansion.stays(factors)
        expansion.factors[terms] = lu, exchanges
    lu, exchanges = expansion.factors[terms]
    source, goal = ScalarMatrix(expansion, right, ()), ScalarMatrix(expansion, out, ())
    k = params["k"]
    values = {(i, c): source.get(i, c) for i in range(n) for c in range(k)}
    if k <= FEW and out.buffer.storage not in expansion.overlapping:
        _solve_with_factors(expansion, (out, lu, exchanges), goal, values, n, k, trans == "T")
        return True
    for (i, c), value in values.items():
        goal.set(i, c, value)
    solve = {"batch": (), "n": n, "k": k, "trans": trans, "turned": True}
    expansion.stays(kernels.LibraryCall("getrs", (out,), (lu, exchanges), solve))
    return True


def _solve_with_factors(
    expansion: Expansion,
    refs: tuple[StridedRef, StridedRef, StridedRef],
    goal: ScalarMatrix,
    values: dict[tuple[int, int], ScalarTerm],
    n: int,
    k: int,
    is_turned: bool,
) -> None:
    """A X = B by P A = L U, or Aᵀ X = B, as straight-line code after a call that exchanges rows."""
    out, lu, exchanges = refs

    def exchange() -> None:
        for (i, c), value in values.items():
            goal.set(i, c, value)
        params = {"batch": (), "n": n, "k": k, "back": is_turned}
        expansion.stays(kernels.LibraryCall("exchanges", (out,), (lu, exchanges), params))
        values.update({(i, c): goal.get(i, c) for i in range(n) for c in range(k)})

    def factor(i: int, j: int) -> ScalarTerm:
        i, j = (j, i) if is_turned else (i, j)
        return expansion.element(lu.buffer, lu.offset + i * lu.strides[1] + j * lu.strides[0])

    if not is_turned:
        exchange()
    for c in range(k):
        for i in range(n):
            values[i, c] = _reduced(expansion, values[i, c], [(factor(i, j), values[j, c]) for j in range(i)])
            if is_turned:
                values[i, c] = _divided(expansion, values[i, c], factor(i, i))
        for i in reversed(range(n)):
            above = [(factor(i, j), values[j, c]) for j in range(n - 1, i, -1)]
            values[i, c] = _reduced(expansion, values[i, c], above)
            if not is_turned:
                values[i, c] = _divided(expansion, values[i, c], factor(i, i))
    if is_turned:
        exchange()
    for (i, c), value in values.items():
        goal.set(i, c, expansion.without_sign(value))
