"""Linear algebra: what NumPy and SciPy call LAPACK for, called by native code.

NumPy's linear algebra computes in double precision whatever it is given, SciPy's in the precision of the matrices; so
do the rows that stand for the one and the other. What a routine overwrites is made in memory of its own.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import Buffer, DType, Library, Shape, StridedRef, row_major
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import NotNative, TranslationContext, native
from func.interpreters.program.program import Var

WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
LARGEST = 1 << 14
"""Lengths from which on workspaces of LAPACK would have sizes beyond its integers."""


_MADE: weakref.WeakKeyDictionary[Buffer, weakref.ref[Any]] = weakref.WeakKeyDictionary()
"""The memory of routines' results, with what translates the program that has them."""


# --- matrices in memory -----------------------------------------------------------------------------------------


def _known(dtype: DType) -> DType:
    if dtype.char not in "fdFD":
        raise NotNative(f"linear algebra of {dtype}")
    return dtype


def doubled(context: TranslationContext, x: Val) -> Val:
    """An operand in the precision that NumPy computes in."""
    dtype = _known(x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64))
    return context.convert(x, WIDE.get(dtype, dtype))


def _batch_of(*operands: Val, own: int = 2) -> Shape:
    """The common leading axes."""
    return tuple(np.broadcast_shapes(*[x.shape[: len(x.shape) - own] for x in operands]))


def _spread(context: TranslationContext, x: Val, batch: Shape, own: int = 2) -> Val:
    return context.fuser.broadcast(x, (*batch, *x.shape[len(x.shape) - own :]))


def _layout(shape: Shape, turned: bool) -> tuple[int, ...]:
    """The strides of matrices with their rows in memory, or with their columns."""
    if not turned:
        return row_major(shape)
    *batch, across, down = row_major((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, down, across)


def _is_rows(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether LAPACK takes matrices as they lie, row by row."""
    (down, across), (rows, columns) = strides[-2:], shape[-2:]
    return (across == 1 or columns <= 1) and (down >= columns or rows <= 1)


def _is_columns(strides: Sequence[int], shape: Sequence[int]) -> bool:
    return _is_rows((*strides[:-2], strides[-1], strides[-2]), (*shape[:-2], shape[-1], shape[-2]))


def _strides(x: Val) -> list[int]:
    """The strides that an array has in memory, or would have if its register was stored."""
    strides = [0] * len(x.shape)
    if x.root is not None:
        lie = x.root.ref.strides if x.root.ref is not None else row_major(x.root.domain)
        for (_, step, dim), stride in zip(x.index, lie, strict=True):
            if dim is not None:
                strides[dim] += step * stride
    return strides


def _turned(x: Val) -> bool:
    """Whether matrices lie column by column and not row by row."""
    strides = _strides(x)
    return not _is_rows(strides, x.shape) and _is_columns(strides, x.shape)


def in_rows(context: TranslationContext, x: Val) -> StridedRef:
    """Matrices row by row, copied where they lie otherwise."""
    ref = context.fuser.ref(x)
    return ref if _is_rows(ref.strides, x.shape) else context.fuser.ref(context.fuser.copied(x))


def _either(context: TranslationContext, x: Val, may_turn: bool = True) -> tuple[StridedRef, bool]:
    """Matrices row by row, or column by column, and which of both."""
    if may_turn and _turned(x):
        ref = context.fuser.ref(x)
        *batch, down, across = ref.strides
        return StridedRef(ref.buffer, ref.offset, (*batch, across, down)), True
    return in_rows(context, x), False


def _vectors(context: TranslationContext, x: Val) -> StridedRef:
    """Vectors element by element."""
    ref = context.fuser.ref(x)
    return ref if ref.strides[-1] == 1 or x.shape[-1] <= 1 else context.fuser.ref(context.fuser.copied(x))


def fresh(shape: Shape, dtype: DType, turned: bool = False) -> StridedRef:
    """Memory for a result."""
    return StridedRef(Buffer(math.prod(shape), dtype), 0, _layout(shape, turned))


def _own(context: TranslationContext, x: Val, turned: bool = False) -> StridedRef:
    """Memory that a routine may overwrite: a copy, or that of a routine's result which nobody reads any more."""
    if x.root is not None and x.root.ref is not None and _is_free(context, x.root.ref.buffer):
        ref = context.fuser.ref(x)
        needs_cotangent = _layout(x.shape, turned)
        fits = [one == other or n == 1 for one, other, n in zip(ref.strides, needs_cotangent, x.shape, strict=True)]
        if all(fits) and ref.offset == 0 and ref.buffer.size == math.prod(x.shape):
            return StridedRef(ref.buffer, 0, needs_cotangent)
    ref = fresh(x.shape, x.dtype, turned)
    context.fuser.copied(x, ref)
    return ref


def _is_free(context: TranslationContext, buffer: Buffer) -> bool:
    """Whether memory holds a routine's result that only one operand of this equation reads, and nothing after it."""
    maker = _MADE.get(buffer)
    translator = None if maker is None else maker()
    if translator is None or translator is not context.translator:
        return False
    equations = translator.program.equations
    place = next(place for place, equation in enumerate(equations) if equation is context.equation)
    later = [x for equation in equations[place + 1 :] for x in equation.inputs]
    later.extend(translator.program.outputs)
    known = [translator.values.get(x) for x in later if type(x) is Var]
    return sum([_lies_in(x, buffer) for x in (*known, *context.args)]) == 1


def _lies_in(x: Val | None, buffer: Buffer) -> bool:
    return x is not None and x.root is not None and x.root.ref is not None and x.root.ref.buffer.storage is buffer


def _seen(ref: StridedRef) -> StridedRef:
    """Matrices with their columns in memory as the routine's rows."""
    *batch, down, across = ref.strides
    return StridedRef(ref.buffer, ref.offset, (*batch, across, down))


def run(
    context: TranslationContext,
    name: str,
    dtype: DType,
    batch: Shape,
    outs: Sequence[StridedRef],
    args: Sequence[StridedRef],
    **params: Any,
) -> int:
    """Add the item of a routine, with scratch memory if it takes some; the place of the item."""
    from func.backends.llvm.linalg.library_calls import scratch_of

    size = scratch_of(name, dtype, **params)
    if size is not None and max([0, *[value for value in params.values() if type(value) is int]]) >= LARGEST:
        raise NotNative(f"{name} of matrices of {LARGEST} or more rows")
    work = [] if size is None else [StridedRef(Buffer(size, np.dtype(np.uint8)), 0, ())]
    item = Library(name, (*outs, *work), tuple(args), {"batch": batch, **params})
    place = context.fuser.add_item(item)
    for out in outs:
        context.fuser.written(out.buffer, place)
        _MADE[out.buffer] = weakref.ref(context.translator)
    return place


def made(context: TranslationContext, ref: StridedRef, shape: Shape, place: int, dtype: DType | None = None) -> Val:
    """What an item has written, as a dtype."""
    found = context.fuser.located(ref.buffer, shape, ref.strides, ref.offset)
    assert found.root is not None
    found.root.ready = place
    return context.convert(found, found.dtype if dtype is None else dtype)


# --- triangular and positive definite matrices ------------------------------------------------------------------


@native("cholesky")
def _cholesky(context: TranslationContext) -> Val:
    a = doubled(context, context.args[0])
    out = _own(context, a)
    lower = not context.params.get("upper", False)
    place = run(context, "potrf", a.dtype, a.shape[:-2], [out], [], n=a.shape[-1], lower=lower)
    return made(context, out, a.shape, place, context.out.dtype)


@native("cholesky_inverse")
def _cholesky_inverse(context: TranslationContext) -> Val:
    factor = context.convert(context.args[0], _known(context.out.dtype))
    out = _own(context, factor)
    place = run(context, "potri", factor.dtype, factor.shape[:-2], [out], [], n=factor.shape[-1])
    return made(context, out, factor.shape, place)


@native("triangular_solve")
def _triangular_solve(context: TranslationContext) -> Val:
    a, b = operands(context, context.args[0], context.args[1])
    lower, adjoint, unit = context.params["lower"], context.params["adjoint"], context.params["unit"]
    is_complex = a.dtype.kind == "c"
    matrix, turned = _either(context, a, not (adjoint and is_complex))
    trans = "C" if adjoint and not turned else "T" if turned != adjoint else "N"
    n, k = b.shape[-2:]
    right = _turned(b) and not (trans == "C" and is_complex)
    out = _own(context, b, right)
    flipped = {"N": "T", "T": "N", "C": "N"}[trans] if right else trans
    place = run(
        context,
        "trtrs",
        a.dtype,
        b.shape[:-2],
        [_seen(out) if right else out],
        [matrix],
        n=n,
        k=k,
        lower=lower != turned,
        trans=flipped,
        unit=unit,
        left=not right,
    )
    return made(context, out, b.shape, place)


def operands(context: TranslationContext, a: Val, b: Val, wide: bool = False) -> tuple[Val, Val]:
    """A matrix and right-hand sides in the dtype of the (first) output, with the same leading axes."""
    dtype = _known(context.outs[0].dtype)
    dtype = WIDE.get(dtype, dtype) if wide else dtype
    batch = _batch_of(a, b)
    return _spread(context, context.convert(a, dtype), batch), _spread(context, context.convert(b, dtype), batch)


# --- LU ---------------------------------------------------------------------------------------------------------


@native("solve")
def _solve(context: TranslationContext) -> Val:
    a, b = operands(context, context.args[0], context.args[1], wide=True)
    out = fresh(b.shape, a.dtype)
    n, k = b.shape[-2:]
    place = run(context, "solve", a.dtype, b.shape[:-2], [out], [in_rows(context, a), in_rows(context, b)], n=n, k=k)
    return made(context, out, b.shape, place, context.out.dtype)


@native("inv")
def _inv(context: TranslationContext) -> Val:
    a = doubled(context, context.args[0])
    out = fresh(a.shape, a.dtype)
    strict = context.params.get("strict", True)
    place = run(context, "inverse", a.dtype, a.shape[:-2], [out], [in_rows(context, a)], n=a.shape[-1], strict=strict)
    return made(context, out, a.shape, place, context.out.dtype)


@native("lu")
def _lu(context: TranslationContext) -> list[Val]:
    packed, pivots, order = context.outs
    a = context.convert(context.args[0], _known(packed.dtype))
    m, n = a.shape[-2:]
    outs = [fresh(aval.shape, aval.dtype) for aval in (packed, pivots, order)]
    place = run(context, "lu", a.dtype, a.shape[:-2], outs, [in_rows(context, a)], m=m, n=n)
    return [made(context, out, aval.shape, place) for out, aval in zip(outs, context.outs, strict=True)]


@native("pivot_order")
def _pivot_order(context: TranslationContext) -> Val:
    pivots = context.convert(context.args[0], INT32)
    n = pivots.shape[-1]
    out = fresh(pivots.shape, INT64)
    place = run(context, "order", INT64, pivots.shape[:-1], [out], [_vectors(context, pivots)], n=n)
    return made(context, out, pivots.shape, place)


@native("lu_factors")
def _lu_factors(context: TranslationContext) -> list[Val]:
    a = context.convert(context.args[0], _known(context.outs[0].dtype))
    n = a.shape[-1]
    matrix, turned = _either(context, a)
    packed, pivots = fresh(a.shape, a.dtype, True), fresh(a.shape[:-1], INT32)
    place = run(context, "factors", a.dtype, a.shape[:-2], [_seen(packed), pivots], [matrix], n=n, turned=turned)
    return [made(context, packed, a.shape, place), made(context, pivots, a.shape[:-1], place)]


@native("factored_solve")
def _factored_solve(context: TranslationContext) -> Val:
    packed, b = operands(context, context.args[1], context.args[3])
    pivots = _spread(context, context.convert(context.args[2], INT32), b.shape[:-2], 1)
    adjoint = context.params["adjoint"]
    lu, turned = _either(context, packed, not (adjoint and packed.dtype.kind == "c"))
    out = _own(context, b)
    n, k = b.shape[-2:]
    place = run(
        context,
        "getrs",
        b.dtype,
        b.shape[:-2],
        [out],
        [lu, _vectors(context, pivots)],
        n=n,
        k=k,
        trans="C" if adjoint else "N",
        turned=turned,
    )
    return made(context, out, b.shape, place)


@native("factored_slogdet")
def _factored_slogdet(context: TranslationContext) -> list[Val]:
    packed, pivots = context.args[1], context.convert(context.args[2], INT32)
    lu, _ = _either(context, context.convert(packed, _known(packed.dtype)))
    return _logarithm(context, "factored_slogdet", packed, [lu, _vectors(context, pivots)])


def _logarithm(context: TranslationContext, name: str, a: Val, args: Sequence[StridedRef]) -> list[Val]:
    """The sign of a determinant and the logarithm of its modulus."""
    batch = a.shape[:-2]
    part = np.finfo(a.dtype).dtype
    outs = [fresh(batch, a.dtype), fresh(batch, part)]
    place = run(context, name, a.dtype, batch, outs, args, n=a.shape[-1])
    return [made(context, out, batch, place, aval.dtype) for out, aval in zip(outs, context.outs, strict=True)]


@native("factored_inverse")
def _factored_inverse(context: TranslationContext) -> Val:
    packed, pivots = (
        context.convert(context.args[1], _known(context.out.dtype)),
        context.convert(context.args[2], INT32),
    )
    lu, turned = _either(context, packed)
    out = fresh(packed.shape, packed.dtype, True)
    n, safe = packed.shape[-1], context.params["safe"]
    args = [lu, _vectors(context, pivots)]
    place = run(context, "getri", packed.dtype, packed.shape[:-2], [_seen(out)], args, n=n, turned=turned, safe=safe)
    return made(context, out, packed.shape, place)


# --- determinants -----------------------------------------------------------------------------------------------


@native("slogdet")
def _slogdet(context: TranslationContext) -> list[Val]:
    a = doubled(context, context.args[0])
    return _logarithm(context, "slogdet", a, [in_rows(context, a)])


@native("det")
def _det(context: TranslationContext) -> Val:
    a = doubled(context, context.args[0])
    out = fresh(a.shape[:-2], a.dtype)
    place = run(context, "det", a.dtype, a.shape[:-2], [out], [in_rows(context, a)], n=a.shape[-1])
    return made(context, out, a.shape[:-2], place, context.out.dtype)
