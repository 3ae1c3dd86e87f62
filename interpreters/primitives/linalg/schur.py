"""Schur decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from func.backends.array_helpers import spectra
from func.backends.array_helpers.linalg import complex_dtype, float_dtype
from func.interpreters import core
from func.interpreters.core import Array, Aval, Primitive
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.parameters import one_of
from func.interpreters.host.source import at_line
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import real, subtract
from func.interpreters.primitives.linalg.entangled import entangle
from func.interpreters.primitives.linalg.matrices import (
    are_square,
    cusps,
    differences,
    keep_where,
    mH,
    mm,
    with_cusps,
)
from func.interpreters.primitives.linalg.solving import solve
from func.interpreters.primitives.linalg.spectral import eig
from func.interpreters.primitives.scipy_functions import reporting_missing


def _schur_aval(a: Aval, *, output: str) -> tuple[Aval, Aval]:
    dtype = float_dtype(a.dtype) if output == "real" else complex_dtype(a.dtype)
    return Aval(a.shape, dtype), Aval(a.shape, dtype)


def _schur_jvp(primals: Sequence[Array], tangents: Sequence[Any], *, output: str) -> tuple[Any, Any]:
    """With K = Zᴴ dA Z and eigenvectors R of T: dZ = Z Ω, dT = triu(K - Ω T + T Ω), where Ω is the antihermitian
    matrix with the strict lower triangle of R (F ∘ R⁻¹ K R) R⁻¹, F_ij = 1 / (w_j - w_i).

    The eigenvectors of A are V = Z R, so Z is the unitary factor of a QR decomposition of V, and turns as that does.
    The phases of the columns of Z, which nothing determines, stay; the undetermined part of equal eigenvalues is
    dropped.
    Sources: M. Giles (2008), section 3.1; S. Walter, L. Lehmann, R. Lamour (2012) for QR.
    """
    (a,), (da,) = primals, tangents
    t, z = schur(a, output=output)
    if output == "real" and core.dtype_of(a).kind != "c":
        _refuse_blocks(t)
    w, r = eig(t)
    if core.dtype_of(t).kind != "c":
        w, r = real(w), real(r)
    inner = mm(mm(mH(z), da), z)
    cusp = cusps(w)
    similar = mm(r, with_cusps(multiply(differences(w, cusp), solve(r, mm(inner, r))), cusp))
    below = keep_where(mH(solve(mH(r), mH(similar))), lambda i, j: j < i)
    turn = subtract(below, mH(below))
    dt = add(inner, subtract(mm(t, turn), mm(turn, t)))
    left_out = keep_where(dt, lambda i, j: j < i)
    return (t, z), entangle(subtract(dt, left_out), mm(z, turn), left_out, w, z, "general")


def _refuse_blocks(t: Array) -> None:
    """A real form with blocks for pairs of complex eigenvalues has no derivative here."""
    known = core.known_value(t)
    n = core.shape_of(t)[-1]
    if n > 1 and (known is None or bool((abs(diagonal_below(known)) > 0).any())):
        raise NotDifferentiableError(
            f"schur(output='real') has a derivative only where all eigenvalues are real{at_line()}\n"
            "Use output='complex', which has one wherever the eigenvalues are distinct."
        )


def diagonal_below(t: Any) -> Any:
    """The entries below the diagonal of concrete matrices."""
    n = t.shape[-1]
    return t[..., range(1, n), range(n - 1)] if core.is_plain_array(t) else t.diagonal(-1, -2, -1)


schur: Primitive = core.general(
    "schur",
    reporting_missing(spectra.schur),
    aval=_schur_aval,
    parameters={"output": one_of("real", "complex")},
    fits=are_square,
    batch=core.leading_axes("schur"),
    jvp=_schur_jvp,
    multiple=True,
    cost=costs.cubic(25),
)
"""T and Z with A = Z T Zᴴ; real matrices may have a real form with blocks for pairs of complex eigenvalues."""
