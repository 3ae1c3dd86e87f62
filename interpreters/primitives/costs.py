"""The arithmetic operations of primitives: formulas of leading terms, as in textbooks.

A multiplication or an addition of real numbers is one operation. Functions weigh what they take in comparison, in
round numbers. Moving data takes none.
Sources of the matrix factors: Golub and Van Loan (2013), Matrix Computations; Higham (2008), Functions of Matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from func.interpreters.core import Aval, Formula, Params

Avals: TypeAlias = Sequence[Aval]

SPECIAL = 40
"""Operations for each element of a special function or a random distribution."""


def per_input(count: float) -> Formula:
    """A number of operations for each element of the first input."""
    return lambda ins, outs, params: count * ins[0].size


def per_element(ins: Avals, outs: Avals, params: Params) -> float:
    """One operation for each element of the largest input or output."""
    return max([aval.size for aval in (*ins, *outs)])


def sorting(ins: Avals, outs: Avals, params: Params) -> float:
    """n log₂ n comparisons along an axis."""
    length = ins[0].shape[params["axis"]]
    return sum([aval.size for aval in ins]) * math.log2(max(length, 2))


def log_sum_exp(ins: Avals, outs: Avals, params: Params) -> float:
    """An exponential, a subtraction and an addition for each element of the inputs."""
    return 12 * sum([aval.size for aval in ins])


def per_matrix(count: Callable[[float, float], float]) -> Formula:
    """count(m, n) for each matrix (…, m, n) of the first input."""

    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        m, n = ins[0].shape[-2:]
        return math.prod(ins[0].shape[:-2]) * count(m, n)

    return formula


def cubic(factor: float) -> Formula:
    """factor · n³ for each matrix (…, n, n) of the first input."""
    return per_matrix(lambda m, n: factor * n**3)


def with_sides(factor: float, per_side: float) -> Formula:
    """A factorization of factor · n³ of each first input (…, n, n), then per_side · n² for each column on the right."""

    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        n = ins[0].shape[-1]
        systems = math.prod(outs[0].shape[:-2])
        return math.prod(ins[0].shape[:-2]) * factor * n**3 + systems * per_side * n**2 * outs[0].shape[-1]

    return formula


def lu(m: float, n: float) -> float:
    """Gaussian elimination with partial pivoting."""
    return max(m, n) * min(m, n) ** 2 - min(m, n) ** 3 / 3


def svd(m: float, n: float) -> float:
    """Golub and Van Loan (2013), figure 8.6.1, with the smaller extent second."""
    m, n = max(m, n), min(m, n)
    return 6 * m * n * n + 20 * n**3


def qr(m: float, n: float) -> float:
    """R, and as much again for Q."""
    m, n = max(m, n), min(m, n)
    return 4 * m * n * n - 4 * n**3 / 3


def banded(ins: Avals, outs: Avals, params: Params) -> float:
    """The bands (…, bands, n) times the right-hand sides."""
    return 2 * ins[0].size * (ins[0].shape[-2] + 2 * outs[0].size / max(ins[0].shape[-1], 1))


def tridiagonal(factor: float, power: int) -> Formula:
    """factor · n^power for each diagonal (…, n) of the first input."""

    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        return factor * ins[0].size * float(ins[0].shape[-1]) ** (power - 1)

    return formula
