"""Eigenvalues, singular values, QR, least squares, and primitives that are functions of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.loops.values import ArrayValue
from func.interpreters.calls.compiled_call import trace_function
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.native.linalg import doubled, fresh, in_rows, operands, result, run
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
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
from func.interpreters.stage import DerivedStage


def _check_nonempty(a: ArrayValue) -> None:
    if 0 in a.shape:
        raise NotNative("matrices without elements")


def _modulus(dtype: DType) -> DType:
    return np.finfo(dtype).dtype


def _call(context: TranslationContext, name: str, dtypes: Sequence[DType], **params: Any) -> list[ArrayValue]:
    """A routine of one matrix with the outputs of the primitive, in NumPy's precision."""
    a = doubled(context, context.args[0])
    _check_nonempty(a)
    outs = [fresh(aval.shape, dtype) for aval, dtype in zip(context.outs, dtypes, strict=True)]
    number = run(context, name, a.dtype, a.shape[:-2], outs, [in_rows(context, a)], **params)
    return [result(context, out, aval.shape, number, aval.dtype) for out, aval in zip(outs, context.outs, strict=True)]


def _wide(context: TranslationContext) -> DType:
    return doubled(context, context.args[0]).dtype


@native("eigh")
def _eigh(context: TranslationContext) -> list[ArrayValue]:
    dtype = _wide(context)
    n, lower = context.avals[0].shape[-1], context.params["lower"]
    return _call(context, "eigh", [_modulus(dtype), dtype], n=n, lower=lower, vectors=True)


@native("eigvalsh")
def _eigvalsh(context: TranslationContext) -> ArrayValue:
    n, lower = context.avals[0].shape[-1], context.params["lower"]
    return _call(context, "eigh", [_modulus(_wide(context))], n=n, lower=lower, vectors=False)[0]


@native("svd")
def _svd(context: TranslationContext) -> list[ArrayValue]:
    a = doubled(context, context.args[0])
    _check_nonempty(a)
    u, s, vh = context.outs
    outs = [fresh(aval.shape, dtype) for aval, dtype in ((s, _modulus(a.dtype)), (u, a.dtype), (vh, a.dtype))]
    m, n = a.shape[-2:]
    full = context.params["full_matrices"]
    number = run(context, "svd", a.dtype, a.shape[:-2], outs, [in_rows(context, a)], m=m, n=n, vectors=True, full=full)
    s_value, u_value, vh_value = [
        result(context, out, aval.shape, number, aval.dtype) for out, aval in zip(outs, (s, u, vh), strict=True)
    ]
    return [u_value, s_value, vh_value]


@native("svdvals")
def _svdvals(context: TranslationContext) -> ArrayValue:
    m, n = context.avals[0].shape[-2:]
    return _call(context, "svd", [_modulus(_wide(context))], m=m, n=n, vectors=False, full=False)[0]


@native("qr")
def _qr(context: TranslationContext) -> list[ArrayValue]:
    m, n = context.avals[0].shape[-2:]
    return _call(context, "qr", [_wide(context)] * 2, m=m, n=n, complete=context.params["mode"] == "complete")


@native("qr_raw")
def _qr_raw(context: TranslationContext) -> list[ArrayValue]:
    m, n = context.avals[0].shape[-2:]
    return _call(context, "qr_raw", [_wide(context)] * 2, m=m, n=n)


@native("lstsq")
def _lstsq(context: TranslationContext) -> list[ArrayValue]:
    x, residuals, s = context.outs
    a, b = operands(context, context.args[0], context.args[1], wide=True)
    _check_nonempty(a)
    _check_nonempty(b)
    (m, n), k = a.shape[-2:], b.shape[-1]
    real = _modulus(a.dtype)
    outs = [fresh(x.shape, a.dtype), fresh(residuals.shape, real), fresh(s.shape, real)]
    args = [in_rows(context, a), in_rows(context, b)]
    limit = float(context.params["limit"])
    number = run(context, "lstsq", a.dtype, b.shape[:-2], outs, args, m=m, n=n, k=k, limit=limit)
    return [result(context, out, aval.shape, number, aval.dtype) for out, aval in zip(outs, context.outs, strict=True)]


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
def _solve_assumed(context: TranslationContext) -> ArrayValue:
    assume, lower = context.params["assume"], context.params["lower"]
    kind = KINDS.get(assume)
    if kind is None:
        raise NotNative(f"solves of {assume} matrices")
    if kind == "triangular":
        lower = assume == "lower triangular"
    a, b = operands(context, context.args[0], context.args[1])
    _check_nonempty(b)
    out = fresh(b.shape, a.dtype)
    n, k = b.shape[-2:]
    args = [in_rows(context, a), in_rows(context, b)]
    number = run(context, "solve_known", a.dtype, b.shape[:-2], [out], args, n=n, k=k, kind=kind, lower=lower)
    return result(context, out, b.shape, number)


def _inlined(
    context: TranslationContext,
    function: Callable[..., Sequence[Array]],
    avals: Sequence[Aval],
    args: Sequence[ArrayValue],
) -> list[ArrayValue]:
    """The outputs of a function of primitives."""
    program = prepare_program(stage_flat(function, avals, DerivedStage("jit")))
    inner = context.translator.inlined(program, args)
    return [inner.value(x) for x in program.outputs]


@native("pinv")
def _pinv(context: TranslationContext) -> ArrayValue:
    _check_nonempty(context.args[0])
    factors = _by_eigenvalues if context.params["hermitian"] else _by_singular_values

    def inverse(a: Array, limit: Array) -> list[Array]:
        left, values, right = factors(a)
        moduli = absolute(values)
        bound = multiply(expand(limit, (len(shape_of(limit)),)), _last(reduce_max, moduli))
        is_large = greater(moduli, bound)
        weights = where(is_large, reciprocal(values), full_like(values, 0, ()))
        return [mm(multiply(left, along_columns(weights)), right)]

    a = context.convert(context.args[0], context.out.dtype)
    limit = context.convert(context.args[1], _modulus(a.dtype))
    return _inlined(context, inverse, [Aval(operand.shape, operand.dtype) for operand in (a, limit)], [a, limit])[0]


def _last(reduction: Callable[..., Array], x: Array) -> Array:
    """A reduction over the last axis, which stays."""
    axis = len(shape_of(x)) - 1
    return expand(reduction(x, axes=(axis,)), (axis,))


def _by_singular_values(a: Array) -> tuple[Array, Array, Array]:
    u, s, vh = svd(a, full_matrices=False)
    return mH(vh), s, mH(u)


def _by_eigenvalues(a: Array) -> tuple[Array, Array, Array]:
    w, v = eigh(a, lower=True)
    return v, w, mH(v)


@native("adjugate")
def _adjugate(context: TranslationContext) -> ArrayValue:
    """det(A) A⁻¹, or by singular values if a matrix of the stack is too near a singular one."""

    def either(a: Array) -> list[Array]:
        inverse = inv(a, strict=False)
        is_regular = less(multiply(_norm(a), _norm(inverse)), 1e7)
        axes = tuple(range(len(shape_of(is_regular))))
        all_regular = reduce_all(is_regular, axes=axes) if axes else is_regular
        index = convert(logical_not(all_regular), dtype=np.dtype(np.int32))
        pair = [Aval(a.shape, a.dtype)] * 2
        branches = [trace_function(branch, pair, "jit")[0] for branch in (_scaled_inverse, _adjugate_by_svd)]
        return list(cond_call(index, a, inverse, branches=tuple(branches)))

    a = context.convert(context.args[0], context.out.dtype)
    return _inlined(context, either, [Aval(a.shape, a.dtype)], [a])[0]


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
