"""Samples of the primitives behind func.linalg."""

from __future__ import annotations

import numpy as np

from func.backends.array_helpers.inverses import lu_factors
from func.interpreters.core import primitive_named
from tests.support.sampling import Sample, complex_, hermitian, real, restart, spd

restart(1)

__all__ = ["SAMPLES"]


APART = np.diag([1.0, 2.5, 4.0]) + 0.3 * real(3, 3)
APART_COMPLEX = APART + 0.3j * real(3, 3)
VALUES = np.array([1.0, 2.0, 2.0])
GAPS = np.array([[0.0, 1.0, 1.0], [-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
BATCH = np.stack([APART, APART.T + 0.1])
BAND = real(4, 5) + np.array([[0.0], [4.0], [0.0], [0.0]])
HERMITIAN_BAND = real(3, 5) * 0.3 + np.array([[3.0], [0.0], [0.0]])


ROWS, COLS = np.array([0, 1, 2, 3, 3, 0, 1]), np.array([0, 1, 2, 3, 0, 2, 3])
"""Where a sparse matrix has entries; its diagonal comes first."""
ENTRIES = real(7) + np.array([2.0] * 4 + [0.0] * 3)
COMPLEX_ENTRIES = ENTRIES + 0.3j * real(7)
SOLVES = {"adjoint": False, "strict": True, "options": ()}

SAMPLES: dict[str, list[Sample]] = {
    "sparse_product": [
        Sample((real(7), ROWS, COLS, real(4, 2)), {"length": 5}, (0, 3)),
        Sample((complex_(7), ROWS, COLS, complex_(4, 1)), {"length": 4}, (0, 3)),
    ],
    "sparse_solve": [
        Sample((ENTRIES, ROWS, COLS, real(4, 2)), SOLVES, (0, 3)),
        Sample((COMPLEX_ENTRIES, ROWS, COLS, complex_(4, 1)), {**SOLVES, "adjoint": True}, (0, 3)),
        Sample((np.stack([ENTRIES, 2 * ENTRIES]), ROWS, COLS, real(2, 4, 1)), SOLVES, (0, 3)),
    ],
    "lu": [
        *[Sample((real(m, n) + 2 * np.eye(m, n)[::-1],)) for m, n in ((3, 3), (4, 2), (2, 4))],
        Sample((APART_COMPLEX,)),
        Sample((BATCH,)),
    ],
    "cholesky_inverse": [
        Sample((np.linalg.cholesky(spd(3)),)),
        Sample((np.linalg.cholesky(spd(3, 2)),)),
        Sample((np.linalg.cholesky(hermitian(3)),), {}, ()),
    ],
    "known_factor": [
        Sample((np.linalg.cholesky(spd(3)),)),
        Sample((np.linalg.cholesky(spd(3, 2)).swapaxes(-1, -2),), {"upper": True}),
    ],
    "lu_factors": [Sample((APART,), {}, ()), Sample((BATCH,), {}, ())],
    "factored_solve": [
        Sample((APART, *lu_factors(np, APART), real(3, 2)), {"adjoint": False}, (3,)),
        Sample((APART_COMPLEX, *lu_factors(np, APART_COMPLEX), complex_(3, 2)), {"adjoint": True}, (3,)),
    ],
    "factored_slogdet": [
        Sample((a, *lu_factors(np, a)), {}, ()) for a in (APART, APART_COMPLEX, BATCH, np.ones((2, 2)))
    ],
    "factored_inverse": [
        *[
            Sample((a, *lu_factors(np, a)), {"safe": safe}, ())
            for a in (APART, APART_COMPLEX, BATCH)
            for safe in (False, True)
        ],
        Sample((np.ones((2, 2)), *lu_factors(np, np.ones((2, 2)))), {"safe": True}, ()),
    ],
    "pivot_order": [Sample((np.array([2, 2, 2]),), {}, ()), Sample((np.array([[1, 2, 2], [0, 1, 2]]),), {}, ())],
    "qr_order": [Sample((real(4, 3),), {}, ()), Sample((BATCH,), {}, ())],
    "solve_assumed": [
        *[
            Sample((a, b), {"assume": assume, "lower": lower}, (0, 1))
            for a, b in ((spd(3), real(3, 2)), (hermitian(3), complex_(3, 2)))
            for assume, lower in (("pos", True), ("her", False), ("gen", False))
        ],
        Sample((spd(3), real(3, 2)), {"assume": "sym", "lower": True}, (0, 1)),
        Sample((np.stack([spd(3), spd(3)]), real(2, 3, 2)), {"assume": "sym", "lower": True}, (0, 1)),
        Sample((APART_COMPLEX + APART_COMPLEX.T, complex_(3, 1)), {"assume": "sym", "lower": True}, (1,)),
        Sample((APART, real(3, 2)), {"assume": None, "lower": False}, (0, 1)),
        Sample((np.tril(APART_COMPLEX), complex_(3, 2)), {"assume": "lower triangular", "lower": False}, (0, 1)),
        Sample((np.triu(APART), real(3, 2)), {"assume": "upper triangular", "lower": False}, (0, 1)),
        Sample((np.diag([1.0, 2.0, 3.0]), real(3, 2)), {"assume": "diagonal", "lower": False}, (1,)),
        Sample((APART * (np.eye(3) + np.eye(3, k=1)), real(3, 2)), {"assume": "tridiagonal", "lower": False}, (0, 1)),
    ],
    "expm": [Sample((real(3, 3),)), Sample((APART_COMPLEX * 0.5,)), Sample((BATCH,)), Sample((np.zeros((2, 2)),))],
    "expm_frechet": [
        Sample((real(3, 3), real(3, 3)), {}, (0, 1)),
        Sample((complex_(3, 3), complex_(3, 3)), {}, (0, 1)),
        Sample((BATCH, real(2, 3, 3)), {}, (0, 1)),
    ],
    "logm": [Sample((APART,)), Sample((APART_COMPLEX,)), Sample((BATCH,)), Sample((np.eye(3),))],
    "logm_frechet": [Sample((APART, real(3, 3)), {}, (0, 1)), Sample((APART_COMPLEX, complex_(3, 3)), {}, (0, 1))],
    "fractional_matrix_power": [
        Sample((APART,), {"exponent": 0.3}),
        Sample((APART_COMPLEX,), {"exponent": -1.4}),
        Sample((BATCH,), {"exponent": 0.5}),
    ],
    "fractional_matrix_power_frechet": [
        Sample((APART, real(3, 3)), {"exponent": 0.3}, (0, 1)),
        Sample((APART_COMPLEX, complex_(3, 3)), {"exponent": 1.5}, (0, 1)),
    ],
    "sylvester": [
        Sample((APART, spd(2), real(3, 2)), {"drop": False}, (0, 1, 2)),
        Sample((APART_COMPLEX, hermitian(2), complex_(3, 2)), {"drop": True}, (0, 1, 2)),
        Sample((BATCH, BATCH, BATCH), {"drop": False}, (0, 1, 2)),
        Sample((np.diag([0.0, 1.0]), np.diag([0.0, 1.0]), real(2, 2)), {"drop": True}, (2,)),
    ],
    "sqrtm": [Sample((APART,)), Sample((APART_COMPLEX,)), Sample((BATCH,)), Sample((np.eye(3),))],
    "invariant_basis": [
        Sample((np.diag([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 4.0]), np.eye(3)), {"hermitian": True}, ())
    ],
    "singular_basis": [Sample((np.diag([4.0, 2.0, 1.0]), np.eye(3), np.array([4.0, 2.0, 1.0]), np.eye(3)), {}, ())],
    "rotation": [
        Sample(
            (VALUES, GAPS[:, first:], np.diag(VALUES), np.eye(3), real(3, 3 - first)),
            {"first": first, "hermitian": first == 0, "adjoint": False},
            (4,),
        )
        for first in (0, 1)
    ],
    "cusped": [
        Sample((real(3), VALUES, VALUES, VALUES), differentiable=(0,)),
        Sample((real(2, 3), VALUES, np.array([1.0, 2.0, 2.0, 5.0]), VALUES), differentiable=(0,)),
    ],
    "entangled": [
        Sample((VALUES, np.outer(VALUES, 1 + VALUES), np.eye(3), np.eye(3), np.zeros((3, 3))), {"kind": kind}, (0, 1))
        for kind in ("hermitian", "general", "singular")
    ],
    "eigh_by_driver": [
        Sample((spd(3),), {"lower": True, "driver": "ev", "subset": None}, tolerance=1e-6),
        Sample((spd(3, 2),), {"lower": False, "driver": "evd", "subset": None}, tolerance=1e-6),
        Sample((spd(3),), {"lower": True, "driver": "evr", "subset": (1, 3, None, None)}, tolerance=1e-6),
    ],
    "eigh_pencil": [
        *[
            Sample(
                (spd(3) + 2 * np.diag([0, 1, 3]), spd(3)),
                {"kind": k, "lower": True, "driver": None, "subset": subset},
                (0, 1),
                1e-6,
            )
            for k in (1, 2, 3)
            for subset in (None, (1, 2, None, None))
        ],
        Sample((spd(3, 2), spd(3, 2)), {"kind": 1, "lower": False, "driver": None, "subset": None}, (0, 1), 1e-6),
    ],
    "eigh_tridiagonal": [
        Sample((np.array([1.0, 2.5, 4.5]), real(2)), {"driver": "auto", "subset": None}, (0, 1), 1e-6),
        Sample((np.array([1.0, 2.5, 4.5]), real(2)), {"driver": "auto", "subset": (0, 3, -9.0, 4.0)}, (0, 1), 1e-6),
        Sample((np.array([[1.0, 2.5, 4.5], [2, 6, 4]]), real(2, 2)), {"driver": "auto", "subset": None}, (0, 1), 1e-6),
    ],
    "eigvalsh_tridiagonal": [
        Sample((np.array([1.0, 2.5, 4.5]), real(2)), {"driver": "auto"}, (0, 1)),
        Sample((np.array([[1.0, 2.5, 4.5], [2, 6, 4]]), real(2, 2)), {"driver": "auto"}, (0, 1)),
    ],
    "solve_banded": [
        Sample((BAND, real(5, 2)), {"lower": 2, "upper": 1}, (0, 1)),
        Sample((BAND + 0.2j, complex_(5, 2)), {"lower": 2, "upper": 1}, (0, 1)),
        Sample((np.stack([BAND, BAND * 2]), real(2, 5, 1)), {"lower": 2, "upper": 1}, (0, 1)),
    ],
    "solveh_banded": [
        Sample((HERMITIAN_BAND, real(5, 2)), {"lower": True}, (0, 1)),
        Sample((HERMITIAN_BAND[::-1] + 0.1j, complex_(5, 2)), {"lower": False}, (0, 1)),
        Sample((np.stack([HERMITIAN_BAND, HERMITIAN_BAND * 2]), real(2, 5, 1)), {"lower": True}, (0, 1)),
    ],
    "schur": [
        Sample((np.triu(APART) + 0.1 * real(3, 3),), {"output": "real"}, tolerance=1e-6),
        Sample((APART_COMPLEX,), {"output": "complex"}, ()),
        Sample((BATCH,), {"output": "complex"}, ()),
    ],
}

for _name in SAMPLES:  # primitives that only passes use are defined when they are first asked for
    primitive_named(_name)
