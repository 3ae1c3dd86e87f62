"""Eigenvalues, singular values, QR, least squares, and rows that are made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.loops.values import Val
from func.interpreters.calls.compiled_call import stage_closed
from func.interpreters.compile.execution import prepared
from func.interpreters.compile.native.linalg import doubled, fresh, in_rows, made, operands, run
from func.interpreters.compile.native.rules import NotNative, Site, native
from func.interpreters.control.branches import cond_call
from func.interpreters.core import Array, Aval, shape_of
from func.interpreters.drivers import stage_flat
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import absolute, greater, less, logical_not, reciprocal
from func.interpreters.primitives.linalg.determinants import det
from func.interpreters.primitives.linalg.matrices import along_columns, constant_mask, mH, mm, over_matrices
from func.interpreters.primitives.linalg.singular import svd
from func.interpreters.primitives.linalg.solving import inv
from func.interpreters.primitives.linalg.spectral import eigh
from func.interpreters.primitives.structural.reductions import reduce_all, reduce_max, reduce_prod
from func.interpreters.primitives.structural.shapes import broadcast, convert, expand, full_like, reduce_sum, where
from func.interpreters.stage import TangentStage


def _whole(a: Val) -> None:
    if 0 in a.shape:
        raise NotNative("matrices without elements")


def _modulus(dtype: DType) -> DType:
    return np.finfo(dtype).dtype


def _call(site: Site, name: str, dtypes: Sequence[DType], **params: Any) -> list[Val]:
    """A routine of one matrix that makes all outputs of the row, in the precision that NumPy computes in."""
    a = doubled(site, site.args[0])
    _whole(a)
    outs = [fresh(aval.shape, dtype) for aval, dtype in zip(site.outs, dtypes, strict=True)]
    place = run(site, name, a.dtype, a.shape[:-2], outs, [in_rows(site, a)], **params)
    return [made(site, out, aval.shape, place, aval.dtype) for out, aval in zip(outs, site.outs, strict=True)]


def _wide(site: Site) -> DType:
    return doubled(site, site.args[0]).dtype


# --- decompositions ---------------------------------------------------------------------------------------------


@native("eigh")
def _eigh(site: Site) -> list[Val]:
    dtype = _wide(site)
    n, lower = site.avals[0].shape[-1], site.params["lower"]
    return _call(site, "eigh", [_modulus(dtype), dtype], n=n, lower=lower, vectors=True)


@native("eigvalsh")
def _eigvalsh(site: Site) -> Val:
    n, lower = site.avals[0].shape[-1], site.params["lower"]
    return _call(site, "eigh", [_modulus(_wide(site))], n=n, lower=lower, vectors=False)[0]


@native("svd")
def _svd(site: Site) -> list[Val]:
    a = doubled(site, site.args[0])
    _whole(a)
    u, s, vh = site.outs
    outs = [fresh(aval.shape, dtype) for aval, dtype in ((s, _modulus(a.dtype)), (u, a.dtype), (vh, a.dtype))]
    m, n = a.shape[-2:]
    full = site.params["full_matrices"]
    place = run(site, "svd", a.dtype, a.shape[:-2], outs, [in_rows(site, a)], m=m, n=n, vectors=True, full=full)
    s_made, u_made, vh_made = [
        made(site, out, aval.shape, place, aval.dtype) for out, aval in zip(outs, (s, u, vh), strict=True)
    ]
    return [u_made, s_made, vh_made]


@native("svdvals")
def _svdvals(site: Site) -> Val:
    m, n = site.avals[0].shape[-2:]
    return _call(site, "svd", [_modulus(_wide(site))], m=m, n=n, vectors=False, full=False)[0]


@native("qr")
def _qr(site: Site) -> list[Val]:
    m, n = site.avals[0].shape[-2:]
    return _call(site, "qr", [_wide(site)] * 2, m=m, n=n, complete=site.params["mode"] == "complete")


@native("qr_raw")
def _qr_raw(site: Site) -> list[Val]:
    m, n = site.avals[0].shape[-2:]
    return _call(site, "qr_raw", [_wide(site)] * 2, m=m, n=n)


# --- solves -----------------------------------------------------------------------------------------------------


@native("lstsq")
def _lstsq(site: Site) -> list[Val]:
    x, residuals, s = site.outs
    a, b = operands(site, site.args[0], site.args[1], wide=True)
    _whole(a)
    _whole(b)
    (m, n), k = a.shape[-2:], b.shape[-1]
    real = _modulus(a.dtype)
    outs = [fresh(x.shape, a.dtype), fresh(residuals.shape, real), fresh(s.shape, real)]
    args = [in_rows(site, a), in_rows(site, b)]
    limit = float(site.params["limit"])
    place = run(site, "lstsq", a.dtype, b.shape[:-2], outs, args, m=m, n=n, k=k, limit=limit)
    return [made(site, out, aval.shape, place, aval.dtype) for out, aval in zip(outs, site.outs, strict=True)]


KINDS = {
    None: "general",
    "gen": "general",
    "general": "general",
    "pos": "positive",
    "positive definite": "positive",
    "sym": "symmetric",
    "symmetric": "symmetric",
    "her": "hermitian",
    "hermitian": "hermitian",
    "upper triangular": "triangular",
    "lower triangular": "triangular",
}


@native("solve_assumed")
def _solve_assumed(site: Site) -> Val:
    assume, lower = site.params["assume"], site.params["lower"]
    kind = KINDS.get(assume)
    if kind is None:
        raise NotNative(f"solves of {assume} matrices")
    if kind == "triangular":
        lower = assume == "lower triangular"
    a, b = operands(site, site.args[0], site.args[1])
    _whole(b)
    out = fresh(b.shape, a.dtype)
    n, k = b.shape[-2:]
    args = [in_rows(site, a), in_rows(site, b)]
    place = run(site, "solve_known", a.dtype, b.shape[:-2], [out], args, n=n, k=k, kind=kind, lower=lower)
    return made(site, out, b.shape, place)


# --- rows in terms of others ------------------------------------------------------------------------------------


def _inlined(
    site: Site, function: Callable[..., Sequence[Array]], avals: Sequence[Aval], args: Sequence[Val]
) -> list[Val]:
    """The outputs of a function of rows."""
    program = prepared(stage_flat(function, avals, TangentStage("jit")))
    inner = site.translator.inlined(program, args)
    return [inner.value(x) for x in program.outputs]


@native("pinv")
def _pinv(site: Site) -> Val:
    _whole(site.args[0])
    factors = _by_eigenvalues if site.params["hermitian"] else _by_singular_values

    def inverse(a: Array, limit: Array) -> list[Array]:
        left, values, right = factors(a)
        moduli = absolute(values)
        bound = multiply(expand(limit, (len(shape_of(limit)),)), _last(reduce_max, moduli))
        kept = greater(moduli, bound)
        weights = where(kept, reciprocal(values), full_like(values, 0, ()))
        return [mm(multiply(left, along_columns(weights)), right)]

    a = site.convert(site.args[0], site.out.dtype)
    limit = site.convert(site.args[1], _modulus(a.dtype))
    return _inlined(site, inverse, [Aval(one.shape, one.dtype) for one in (a, limit)], [a, limit])[0]


def _last(reduction: Callable[..., Array], x: Array) -> Array:
    """A reduction over the last axis, which is kept."""
    axis = len(shape_of(x)) - 1
    return expand(reduction(x, axes=(axis,)), (axis,))


def _by_singular_values(a: Array) -> tuple[Array, Array, Array]:
    u, s, vh = svd(a, full_matrices=False)
    return mH(vh), s, mH(u)


def _by_eigenvalues(a: Array) -> tuple[Array, Array, Array]:
    w, v = eigh(a, lower=True)
    return v, w, mH(v)


@native("adjugate")
def _adjugate(site: Site) -> Val:
    """det(A) A⁻¹, or by singular values where a matrix of the stack is not far enough from a singular one."""

    def either(a: Array) -> list[Array]:
        inverse = inv(a, strict=False)
        far = less(multiply(_norm(a), _norm(inverse)), 1e7)
        axes = tuple(range(len(shape_of(far))))
        index = convert(logical_not(reduce_all(far, axes=axes) if axes else far), dtype=np.int32)
        pair = [Aval(a.shape, a.dtype)] * 2
        branches = [stage_closed(one, pair, "jit")[0] for one in (_scaled_inverse, _adjugate_by_svd)]
        return list(cond_call(index, a, inverse, branches=tuple(branches)))

    a = site.convert(site.args[0], site.out.dtype)
    return _inlined(site, either, [Aval(a.shape, a.dtype)], [a])[0]


def _scaled_inverse(a: Array, inverse: Array) -> list[Array]:
    return [multiply(over_matrices(det(a)), inverse)]


def _adjugate_by_svd(a: Array, inverse: Array) -> list[Array]:
    """det(U) det(Vᴴ) V adj(S) Uᴴ, where the cofactors of S are products of the other values."""
    u, s, vh = svd(a, full_matrices=True)
    n = shape_of(a)[-1]
    beside = broadcast(along_columns(s), shape=(*shape_of(s), n))
    others = where(constant_mask(beside, lambda i, j: i == j), full_like(beside, 1, ()), beside)
    cofactors = reduce_prod(others, axes=(len(shape_of(others)) - 1,))
    columns = multiply(mH(vh), along_columns(cofactors))
    return [multiply(over_matrices(multiply(det(u), det(vh))), mm(columns, mH(u)))]


def _norm(a: Array) -> Array:
    """The largest sum of moduli along a row."""
    sums = reduce_sum(absolute(a), axes=(len(shape_of(a)) - 1,))
    return reduce_max(sums, axes=(len(shape_of(sums)) - 1,))
