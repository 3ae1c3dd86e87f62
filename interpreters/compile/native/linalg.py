"""Linear algebra: native code calls LAPACK where NumPy and SciPy do.

NumPy's linear algebra computes in double precision for every dtype, SciPy's in the precision of the matrices; so do the
primitives for each of them. A routine that overwrites an operand gets a copy of it, or memory that nothing else reads.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import Buffer, DType, LibraryCall, Shape, StridedRef, row_major
from func.backends.loops.values import ArrayValue
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.program.program import Var

WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
LARGEST = 1 << 14
"""Lengths from which on workspaces of LAPACK would have sizes beyond its integers."""
_MAKERS: weakref.WeakKeyDictionary[Buffer, weakref.ref[Any]] = weakref.WeakKeyDictionary()
"""The translators of the programs that have routines' results, by the memory of the results."""


def _checked(dtype: DType) -> DType:
    if dtype.char not in "fdFD":
        raise NotNative(f"linear algebra of {dtype}")
    return dtype


def doubled(context: TranslationContext, x: ArrayValue) -> ArrayValue:
    """An operand in the precision in which NumPy computes."""
    dtype = _checked(x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64))
    return context.convert(x, WIDE.get(dtype, dtype))


def _batch_of(*operands: ArrayValue, core: int = 2) -> Shape:
    """The common leading axes."""
    return tuple(np.broadcast_shapes(*[x.shape[: len(x.shape) - core] for x in operands]))


def _spread(context: TranslationContext, x: ArrayValue, batch: Shape, core: int = 2) -> ArrayValue:
    return context.fuser.broadcast(x, (*batch, *x.shape[len(x.shape) - core :]))


def _layout(shape: Shape, by_columns: bool) -> tuple[int, ...]:
    """The strides of matrices in row-major or column-major order."""
    if not by_columns:
        return row_major(shape)
    *batch, across, down = row_major((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, down, across)


def _is_rows(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether matrices lie row by row, as LAPACK's wrappers take them."""
    (down, across), (rows, columns) = strides[-2:], shape[-2:]
    return (across == 1 or columns <= 1) and (down >= columns or rows <= 1)


def _is_columns(strides: Sequence[int], shape: Sequence[int]) -> bool:
    return _is_rows((*strides[:-2], strides[-1], strides[-2]), (*shape[:-2], shape[-1], shape[-2]))


def _strides(x: ArrayValue) -> list[int]:
    """The strides that an array has in memory, or would have if its register was stored."""
    strides = [0] * len(x.shape)
    if x.root is not None:
        root_strides = x.root.ref.strides if x.root.ref is not None else row_major(x.root.domain)
        for (_, step, dim), stride in zip(x.index, root_strides, strict=True):
            if dim is not None:
                strides[dim] += step * stride
    return strides


def _lies_by_columns(x: ArrayValue) -> bool:
    """Whether matrices lie column by column and not row by row."""
    strides = _strides(x)
    return not _is_rows(strides, x.shape) and _is_columns(strides, x.shape)


def in_rows(context: TranslationContext, x: ArrayValue) -> StridedRef:
    """Matrices row by row, copied from other layouts."""
    ref = context.storage.ref(x)
    return ref if _is_rows(ref.strides, x.shape) else context.storage.ref(context.storage.copied(x))


def _either(context: TranslationContext, x: ArrayValue, may_be_columns: bool = True) -> tuple[StridedRef, bool]:
    """Matrices by rows, or transposed where they lie by columns, and whether they are transposed."""
    if may_be_columns and _lies_by_columns(x):
        return _transposed(context.storage.ref(x)), True
    return in_rows(context, x), False


def _vectors(context: TranslationContext, x: ArrayValue) -> StridedRef:
    """Vectors element by element."""
    ref = context.storage.ref(x)
    return ref if ref.strides[-1] == 1 or x.shape[-1] <= 1 else context.storage.ref(context.storage.copied(x))


def fresh(shape: Shape, dtype: DType, by_columns: bool = False) -> StridedRef:
    """Memory for a result."""
    return StridedRef(Buffer(math.prod(shape), dtype), 0, _layout(shape, by_columns))


def _overwritable(context: TranslationContext, x: ArrayValue, by_columns: bool = False) -> StridedRef:
    """An operand in memory that a routine may overwrite: a copy, or a routine's result that nothing else reads."""
    if x.root is not None and x.root.ref is not None and _is_free(context, x.root.ref.buffer):
        ref = context.storage.ref(x)
        layout = _layout(x.shape, by_columns)
        fits = [have == want or n == 1 for have, want, n in zip(ref.strides, layout, x.shape, strict=True)]
        if all(fits) and ref.offset == 0 and ref.buffer.size == math.prod(x.shape):
            return StridedRef(ref.buffer, 0, layout)
    ref = fresh(x.shape, x.dtype, by_columns)
    context.storage.copied(x, ref)
    return ref


def _is_free(context: TranslationContext, buffer: Buffer) -> bool:
    """Whether memory contains a routine's result that only one operand of this equation reads, and no later
    equation."""
    maker = _MAKERS.get(buffer)
    translator = None if maker is None else maker()
    if translator is None or translator is not context.translator:
        return False
    equations = translator.program.equations
    place = next(place for place, equation in enumerate(equations) if equation is context.equation)
    later = [x for equation in equations[place + 1 :] for x in equation.inputs]
    later.extend(translator.program.outputs)
    known = [translator.values.get(x) for x in later if type(x) is Var]
    return sum([_is_within(x, buffer) for x in (*known, *context.args)]) == 1


def _is_within(x: ArrayValue | None, buffer: Buffer) -> bool:
    return x is not None and x.root is not None and x.root.ref is not None and x.root.ref.buffer.storage is buffer


def _transposed(ref: StridedRef) -> StridedRef:
    """The transposed matrices."""
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
    """Add the call of a routine, with scratch memory if it takes some; the number of the item."""
    # imported here, since a first call without linear algebra needs no table of routines
    from func.backends.llvm.linalg.library_calls import scratch_of

    size = scratch_of(name, dtype, **params)
    if size is not None and max([0, *[value for value in params.values() if type(value) is int]]) >= LARGEST:
        raise NotNative(f"{name} of matrices of {LARGEST} or more rows")
    work = [] if size is None else [StridedRef(Buffer(size, np.dtype(np.uint8)), 0, ())]
    item = LibraryCall(name, (*outs, *work), tuple(args), {"batch": batch, **params})
    number = context.schedule.add(item)
    for out in outs:
        context.schedule.note_write(out.buffer, number)
        _MAKERS[out.buffer] = weakref.ref(context.translator)
    return number


def result(
    context: TranslationContext, ref: StridedRef, shape: Shape, number: int, dtype: DType | None = None
) -> ArrayValue:
    """The array that an item wrote, as a dtype."""
    array = context.storage.located(ref.buffer, shape, ref.strides, ref.offset, number)
    return context.convert(array, array.dtype if dtype is None else dtype)


@native("cholesky")
def _cholesky(context: TranslationContext) -> ArrayValue:
    a = doubled(context, context.args[0])
    out = _overwritable(context, a)
    lower = not context.params.get("upper", False)
    number = run(context, "potrf", a.dtype, a.shape[:-2], [out], [], n=a.shape[-1], lower=lower)
    return result(context, out, a.shape, number, context.out.dtype)


@native("cholesky_inverse")
def _cholesky_inverse(context: TranslationContext) -> ArrayValue:
    factor = context.convert(context.args[0], _checked(context.out.dtype))
    out = _overwritable(context, factor)
    number = run(context, "potri", factor.dtype, factor.shape[:-2], [out], [], n=factor.shape[-1])
    return result(context, out, factor.shape, number)


@native("triangular_solve")
def _triangular_solve(context: TranslationContext) -> ArrayValue:
    a, b = operands(context, context.args[0], context.args[1])
    lower, adjoint, unit = context.params["lower"], context.params["adjoint"], context.params["unit"]
    is_complex = a.dtype.kind == "c"
    matrix, is_transposed = _either(context, a, not (adjoint and is_complex))
    trans = "C" if adjoint and not is_transposed else "T" if is_transposed != adjoint else "N"
    n, k = b.shape[-2:]
    right = _lies_by_columns(b) and not (trans == "C" and is_complex)
    out = _overwritable(context, b, right)
    flipped = {"N": "T", "T": "N", "C": "N"}[trans] if right else trans
    number = run(
        context,
        "trtrs",
        a.dtype,
        b.shape[:-2],
        [_transposed(out) if right else out],
        [matrix],
        n=n,
        k=k,
        lower=lower != is_transposed,
        trans=flipped,
        unit=unit,
        left=not right,
    )
    return result(context, out, b.shape, number)


def operands(
    context: TranslationContext, a: ArrayValue, b: ArrayValue, wide: bool = False
) -> tuple[ArrayValue, ArrayValue]:
    """A matrix and right-hand sides in the dtype of the (first) output, with the same leading axes."""
    dtype = _checked(context.outs[0].dtype)
    dtype = WIDE.get(dtype, dtype) if wide else dtype
    batch = _batch_of(a, b)
    return _spread(context, context.convert(a, dtype), batch), _spread(context, context.convert(b, dtype), batch)


@native("solve")
def _solve(context: TranslationContext) -> ArrayValue:
    a, b = operands(context, context.args[0], context.args[1], wide=True)
    out = fresh(b.shape, a.dtype)
    n, k = b.shape[-2:]
    number = run(context, "solve", a.dtype, b.shape[:-2], [out], [in_rows(context, a), in_rows(context, b)], n=n, k=k)
    return result(context, out, b.shape, number, context.out.dtype)


@native("inv")
def _inv(context: TranslationContext) -> ArrayValue:
    a = doubled(context, context.args[0])
    out = fresh(a.shape, a.dtype)
    strict = context.params.get("strict", True)
    number = run(context, "inverse", a.dtype, a.shape[:-2], [out], [in_rows(context, a)], n=a.shape[-1], strict=strict)
    return result(context, out, a.shape, number, context.out.dtype)


@native("lu")
def _lu(context: TranslationContext) -> list[ArrayValue]:
    packed, pivots, order = context.outs
    a = context.convert(context.args[0], _checked(packed.dtype))
    m, n = a.shape[-2:]
    outs = [fresh(aval.shape, aval.dtype) for aval in (packed, pivots, order)]
    number = run(context, "lu", a.dtype, a.shape[:-2], outs, [in_rows(context, a)], m=m, n=n)
    return [result(context, out, aval.shape, number) for out, aval in zip(outs, context.outs, strict=True)]


@native("pivot_order")
def _pivot_order(context: TranslationContext) -> ArrayValue:
    pivots = context.convert(context.args[0], INT32)
    n = pivots.shape[-1]
    out = fresh(pivots.shape, INT64)
    number = run(context, "order", INT64, pivots.shape[:-1], [out], [_vectors(context, pivots)], n=n)
    return result(context, out, pivots.shape, number)


@native("lu_factors")
def _lu_factors(context: TranslationContext) -> list[ArrayValue]:
    a = context.convert(context.args[0], _checked(context.outs[0].dtype))
    n = a.shape[-1]
    matrix, is_transposed = _either(context, a)
    packed, pivots = fresh(a.shape, a.dtype, True), fresh(a.shape[:-1], INT32)
    number = run(
        context, "factors", a.dtype, a.shape[:-2], [_transposed(packed), pivots], [matrix], n=n, turned=is_transposed
    )
    return [result(context, packed, a.shape, number), result(context, pivots, a.shape[:-1], number)]


@native("factored_solve")
def _factored_solve(context: TranslationContext) -> ArrayValue:
    packed, b = operands(context, context.args[1], context.args[3])
    pivots = _spread(context, context.convert(context.args[2], INT32), b.shape[:-2], 1)
    adjoint = context.params["adjoint"]
    lu, is_transposed = _either(context, packed, not (adjoint and packed.dtype.kind == "c"))
    out = _overwritable(context, b)
    n, k = b.shape[-2:]
    number = run(
        context,
        "getrs",
        b.dtype,
        b.shape[:-2],
        [out],
        [lu, _vectors(context, pivots)],
        n=n,
        k=k,
        trans="C" if adjoint else "N",
        turned=is_transposed,
    )
    return result(context, out, b.shape, number)


@native("factored_slogdet")
def _factored_slogdet(context: TranslationContext) -> list[ArrayValue]:
    packed, pivots = context.args[1], context.convert(context.args[2], INT32)
    lu, _ = _either(context, context.convert(packed, _checked(packed.dtype)))
    return _logarithm(context, "factored_slogdet", packed, [lu, _vectors(context, pivots)])


def _logarithm(context: TranslationContext, name: str, a: ArrayValue, args: Sequence[StridedRef]) -> list[ArrayValue]:
    """The sign of a determinant and the logarithm of its modulus."""
    batch = a.shape[:-2]
    part = np.finfo(a.dtype).dtype
    outs = [fresh(batch, a.dtype), fresh(batch, part)]
    number = run(context, name, a.dtype, batch, outs, args, n=a.shape[-1])
    return [result(context, out, batch, number, aval.dtype) for out, aval in zip(outs, context.outs, strict=True)]


@native("factored_inverse")
def _factored_inverse(context: TranslationContext) -> ArrayValue:
    packed = context.convert(context.args[1], _checked(context.out.dtype))
    pivots = context.convert(context.args[2], INT32)
    lu, is_transposed = _either(context, packed)
    out = fresh(packed.shape, packed.dtype, True)
    n, safe = packed.shape[-1], context.params["safe"]
    args = [lu, _vectors(context, pivots)]
    number = run(
        context,
        "getri",
        packed.dtype,
        packed.shape[:-2],
        [_transposed(out)],
        args,
        n=n,
        turned=is_transposed,
        safe=safe,
    )
    return result(context, out, packed.shape, number)


@native("slogdet")
def _slogdet(context: TranslationContext) -> list[ArrayValue]:
    a = doubled(context, context.args[0])
    return _logarithm(context, "slogdet", a, [in_rows(context, a)])


@native("det")
def _det(context: TranslationContext) -> ArrayValue:
    a = doubled(context, context.args[0])
    out = fresh(a.shape[:-2], a.dtype)
    number = run(context, "det", a.dtype, a.shape[:-2], [out], [in_rows(context, a)], n=a.shape[-1])
    return result(context, out, a.shape[:-2], number, context.out.dtype)
