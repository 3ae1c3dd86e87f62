"""How many arithmetic operations an equation takes: leading terms, counted as textbooks count them.

A multiplication or an addition of real numbers is one operation; a complex one counts as four. Functions weigh
what they take in comparison, in round numbers. Moving data takes none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from func.interpreters.core import Aval, Params, aval_of
from func.interpreters.program.program import Equation, Var

Avals: TypeAlias = Sequence[Aval]
Formula: TypeAlias = Callable[[Avals, Avals, Params], float]

COMPLEX = 4

# fmt: off
MOVES = frozenset([
    "all_gather", "barrier", "broadcast", "concatenate", "convert", "embed", "gather", "getitem", "imag",
    "named", "permute", "place", "pmax", "pmin", "positive", "real", "reshape", "scatter", "stop_gradient",
    "take", "update", "windows",
])
"""Rows without arithmetic."""
# fmt: on

# fmt: off
PYTHON_CALLS = frozenset([
    "callback", "checkpoint_call", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "given",
    "linear_call",
])
"""Rows whose parameters are Python functions: what those do is not known."""
# fmt: on

WEIGHTS: dict[str, int] = {
    **dict.fromkeys(["divide", "reciprocal", "sqrt", "root", "floor_divide", "remainder", "fmod", "hypot"], 4),
    **dict.fromkeys(["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"], 10),
    **dict.fromkeys(["sin", "cos", "sinh", "cosh", "expit", "logaddexp", "logaddexp2"], 15),
    **dict.fromkeys(["tan", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2"], 20),
    **dict.fromkeys(["power", "float_power", "sinc", "softmax", "log_softmax", "erf", "erfc"], 20),
    **dict.fromkeys(["random_bits", "random_unit", "random_key", "random_split", "random_fold_in"], 100),
}
"""Operations per element of the output."""
SPECIAL = 40
"""The weight of special functions and random distributions."""

# fmt: off
CHEAP = frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "square", "conjugate", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "isfinite", "isinf",
    "isnan", "signbit", "sign", "floor", "ceil", "trunc", "rint", "bitwise_count", "gcd", "lcm", "heaviside",
    "nextafter", "spacing", "exponent", "maximum", "minimum", "fmax", "fmin", "copysign", "deg2rad", "rad2deg",
    "ldexp", "nan_safe_multiply", "where", "complex", "sum_with", "prod_with", "match_values", "reorder",
])
"""Rows of one operation per element, of the input or of the output, whichever has more."""
# fmt: on

# fmt: off
REDUCTIONS = frozenset([
    "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "cumsum", "cumprod", "cummax",
    "cummin", "segment_sum", "scatter_add", "overlap_add", "psum", "psum_scatter",
])
"""Rows of one operation per element of the first input."""
# fmt: on


def operations(equation: Equation) -> float:
    """The operations of an equation without the programs nested in it."""
    name = equation.primitive.name
    if name in MOVES or name in PYTHON_CALLS or equation.nested():
        return 0
    ins = [x.aval if type(x) is Var else aval_of(x) for x in equation.inputs]
    outs = [var.aval for var in equation.outputs]
    formula = FORMULAS.get(name)
    if formula is not None:
        count = formula(ins, outs, equation.params)
    elif name in REDUCTIONS:
        count = ins[0].size
    elif name in CHEAP:
        count = max([aval.size for aval in (*ins, *outs)])
    else:
        count = WEIGHTS.get(name, SPECIAL) * sum([aval.size for aval in outs])
    return count * (COMPLEX if any([aval.dtype.kind == "c" for aval in (*ins, *outs)]) else 1)


def _contract(ins: Avals, outs: Avals, params: Params) -> float:
    """2·m·n·k; without sums one multiplication per element."""
    spec = params["spec"]
    extents = dict(zip(spec.x, ins[0].shape, strict=True)) | dict(zip(spec.y, ins[1].shape, strict=True))
    total = math.prod(extents.values())
    return total if len(spec.out) == len(extents) else 2 * total


def _correlate(ins: Avals, outs: Avals, params: Params) -> float:
    return 2 * ins[0].size * ins[1].size


def _fft(ins: Avals, outs: Avals, params: Params) -> float:
    """5 n log₂ n real operations; the factor COMPLEX is divided out again."""
    axis = params["axis"]
    longest = max(ins[0].shape[axis], outs[0].shape[axis])
    lanes = ins[0].size // max(ins[0].shape[axis], 1)
    half = 1 if ins[0].dtype.kind == outs[0].dtype.kind else 2
    return 5 * longest * math.log2(max(longest, 2)) * lanes / half / COMPLEX


def _sort(ins: Avals, outs: Avals, params: Params) -> float:
    axis = params["axis"]
    length = ins[0].shape[axis]
    return sum([aval.size for aval in ins]) * math.log2(max(length, 2))


def _search(ins: Avals, outs: Avals, params: Params) -> float:
    return outs[0].size * math.log2(max(ins[0].shape[-1], 2))


def _variance(ins: Avals, outs: Avals, params: Params) -> float:
    return 4 * ins[0].size


def _log_sum_exp(ins: Avals, outs: Avals, params: Params) -> float:
    return 12 * sum([aval.size for aval in ins])


def _matrix(per_matrix: Callable[[float, float], float]) -> Formula:
    """A formula in m and n for each matrix (…, m, n) of the first input."""

    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        m, n = ins[0].shape[-2:]
        return math.prod(ins[0].shape[:-2]) * per_matrix(m, n)

    return formula


def _with_sides(per_matrix: Callable[[float], float], per_side: Callable[[float], float]) -> Formula:
    """A factorisation of the n×n first input, and what each column on the right takes."""

    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        n = ins[0].shape[-1]
        lanes = math.prod(outs[0].shape[:-2])
        return math.prod(ins[0].shape[:-2]) * per_matrix(n) + lanes * per_side(n) * outs[0].shape[-1]

    return formula


def _least_squares(ins: Avals, outs: Avals, params: Params) -> float:
    m, n = ins[0].shape[-2:]
    return _svd(m, n) + 4 * m * n * (ins[1].size / max(m, 1))


def _svd(m: float, n: float) -> float:
    """Golub and Van Loan (2013), figure 8.6.1, with the smaller extent second."""
    m, n = max(m, n), min(m, n)
    return 6 * m * n * n + 20 * n**3


def _qr(m: float, n: float) -> float:
    """R, and as much again for Q."""
    m, n = max(m, n), min(m, n)
    return 4 * m * n * n - 4 * n**3 / 3


def _values(m: float, n: float) -> float:
    m, n = max(m, n), min(m, n)
    return 4 * m * n * n - 4 * n**3 / 3


def _banded(ins: Avals, outs: Avals, params: Params) -> float:
    """The bands (…, bands, n) times the right-hand sides."""
    return 2 * ins[0].size * (ins[0].shape[-2] + 2 * outs[0].size / max(ins[0].shape[-1], 1))


def _tridiagonal(factor: float, power: int) -> Formula:
    def formula(ins: Avals, outs: Avals, params: Params) -> float:
        return factor * ins[0].size * float(ins[0].shape[-1]) ** (power - 1)

    return formula


def _sylvester(ins: Avals, outs: Avals, params: Params) -> float:
    m, n = outs[0].shape[-2:]
    return 25 * (m**3 + n**3) + 2.5 * (m * n * n + m * m * n)


_lu = _matrix(lambda m, n: max(m, n) * min(m, n) ** 2 - min(m, n) ** 3 / 3)
_cube: dict[str, float] = {
    "cholesky": 1 / 3,
    "det": 2 / 3,
    "slogdet": 2 / 3,
    "inv": 2,
    "adjugate": 10,
    "eigh": 9,
    "eigh_by_driver": 9,
    "eigh_pencil": 14,
    "eigvalsh": 4 / 3,
    "eig": 25,
    "eigvals": 10,
    "schur": 25,
    "expm": 16,
    "expm_frechet": 48,
    "logm": 50,
    "logm_frechet": 150,
    "sqrtm": 28,
    "fractional_matrix_power": 60,
    "fractional_matrix_power_frechet": 180,
}
"""Leading factors of n³ for n×n matrices: Golub and Van Loan (2013), Higham (2008)."""

FORMULAS: dict[str, Formula] = {
    "contract": _contract,
    "correlate": _correlate,
    **dict.fromkeys(["fft", "rfft", "irfft"], _fft),
    **dict.fromkeys(["argsort", "argpartition", "partition_order", "lexsort"], _sort),
    "search": _search,
    "variance": _variance,
    **dict.fromkeys(["logsumexp", "weighted_logsumexp", "logaddexp_reduce"], _log_sum_exp),
    **{name: _matrix(lambda m, n, factor=factor: factor * n**3) for name, factor in _cube.items()},  # type: ignore[misc]
    "lu": _lu,
    **dict.fromkeys(["qr", "qr_raw", "qr_order"], _matrix(_qr)),
    **dict.fromkeys(["svd", "pinv"], _matrix(_svd)),
    "svdvals": _matrix(_values),
    "lstsq": _least_squares,
    "solve": _with_sides(lambda n: 2 * n**3 / 3, lambda n: 2 * n**2),
    "solve_assumed": _with_sides(lambda n: n**3 / 3, lambda n: 2 * n**2),
    "triangular_solve": _with_sides(lambda n: 0, lambda n: n**2),
    "solve_banded": _banded,
    "solveh_banded": _banded,
    "eigh_tridiagonal": _tridiagonal(4, 3),
    "eigvalsh_tridiagonal": _tridiagonal(20, 2),
    "sylvester": _sylvester,
}
