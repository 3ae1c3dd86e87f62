"""Elementwise rows: the loop that NumPy would choose for these dtypes, as one operation of the body."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from func.backends.llvm.math.elementary import names
from func.backends.llvm.scalars.operations import HALF, KNOWN
from func.backends.llvm.scalars.table import operation
from func.backends.loops.kernels import DType
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import NotNative, TranslationContext, native
from func.interpreters.core import Aval
from func.interpreters.primitives.elementwise.builder import is_numpy_ufunc

BOOL = np.dtype(bool)
SIGNED, UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
_WEAK: dict[str, Any] = {"i": int, "f": float, "c": complex}


@functools.cache
def has_operation(op: str, dtype: DType) -> bool:
    """Whether the printer knows an operation on elements of a dtype."""
    if dtype == HALF and op == "spacing":
        return False
    return operation(op, dtype) is not None or (dtype.kind == "f" and op in names())


def elementwise(context: TranslationContext) -> Val:
    """The rule of elementwise primitives without another: NumPy's loop, or the scalar operation of that name."""
    primitive = context.equation.primitive
    if context.params:
        raise NotNative(f"{primitive.name} with parameters")
    if is_numpy_ufunc(primitive.numpy):
        return by_loop(context, primitive.numpy)
    dtype = context.out.dtype
    if dtype.kind != "f" or not has_operation(primitive.name, dtype):
        raise NotNative(f"{primitive.name} of {dtype} has no native form")
    return context.map(primitive.name, *[context.convert(x, dtype) for x in context.args], dtype=dtype)


@native("nan_safe_multiply")
def _nan_safe_multiply(context: TranslationContext) -> Val:
    return by_loop(context, np.multiply, "nan_safe_multiply")


def by_loop(context: TranslationContext, ufunc: Any, op: str | None = None) -> Val:
    """A ufunc on operands converted to the dtypes of its loop."""
    loop = loop_of(context, ufunc)
    name: str = op or ufunc.__name__
    if not has_operation(name, loop[0]):
        raise NotNative(f"{name} of {loop[0]}")
    for x, dtype in zip(context.args, loop, strict=False):
        if x.root is None and dtype.kind in "iu" and type(x.literal) is int and not _fits(x, dtype):
            raise NotNative(f"{x.literal} as {dtype}, which NumPy refuses")
    args = [context.convert(x, dtype) for x, dtype in zip(context.args, loop, strict=False)]
    return context.convert(context.map(name, *args, dtype=loop[-1]), context.out.dtype)


def loop_of(context: TranslationContext, ufunc: Any) -> tuple[DType, ...]:
    """The dtypes of the loop that NumPy takes."""
    return _loop(ufunc, tuple([(aval.dtype, aval.weak) for aval in context.avals]))


@functools.lru_cache(4096)
def _loop(ufunc: Any, operands: tuple[tuple[DType, bool], ...]) -> tuple[DType, ...]:
    given: list[Any] = [
        _WEAK.get(dtype.kind, dtype) if weak and dtype.kind != "b" else dtype for dtype, weak in operands
    ]
    if not [one for one in given if isinstance(one, np.dtype)]:
        given = [dtype for dtype, _ in operands]
    try:
        found = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    except TypeError as error:
        raise NotNative(str(error)) from None
    if any([dtype not in KNOWN for dtype in found]):
        raise NotNative(f"{ufunc.__name__} of {', '.join([str(dtype) for dtype in found])}")
    return tuple(found)


@native("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def _comparison(context: TranslationContext) -> Val:
    """Whole numbers are compared as such, whatever their dtypes: a Python number may not fit the array's dtype, and
    none holds all of int64 and uint64."""
    ufunc: Any = context.equation.primitive.numpy
    if any([x.dtype.kind not in "iu" for x in context.args]):
        return by_loop(context, ufunc)
    left, right, _ = loop_of(context, ufunc)
    if left == right and all([_fits(x, left) for x in context.args]):
        return by_loop(context, ufunc)
    unsigned = [x.dtype == UNSIGNED for x in context.args]
    if not all([_fits(x, SIGNED) for x in context.args if x.dtype != UNSIGNED]):
        raise NotNative(f"{ufunc.__name__} with a number beyond 64 bits")
    if not any(unsigned):
        return context.map(ufunc.__name__, *[context.convert(x, SIGNED) for x in context.args], dtype=BOOL)
    signed = context.convert(context.args[unsigned.index(False)], SIGNED)
    below = context.map("less", signed, context.number(0, SIGNED), dtype=BOOL)
    of_negative = context.number(bool(ufunc(0, 1) if unsigned[1] else ufunc(1, 0)), BOOL)
    compared = context.map(ufunc.__name__, *[context.convert(x, UNSIGNED) for x in context.args], dtype=BOOL)
    return context.map("select", below, of_negative, compared, dtype=BOOL)


def _fits(x: Val, dtype: DType) -> bool:
    """Whether a dtype of whole numbers holds x, as far as is known."""
    if x.root is None:
        bounds = np.iinfo(dtype)
        return bool(bounds.min <= int(x.literal) <= bounds.max)
    return np.can_cast(x.dtype, dtype)


@native("where")
def _where(context: TranslationContext) -> Val:
    condition, x, y = context.args
    dtype = context.out.dtype
    if condition.dtype != BOOL:
        condition = context.map("not_equal", condition, context.number(0, condition.dtype), dtype=BOOL)
    return context.map("select", condition, context.convert(x, dtype), context.convert(y, dtype), dtype=dtype)


@native("convert")
def _convert(context: TranslationContext) -> Val:
    return context.convert(context.args[0], context.out.dtype)


@native("named", "stop_gradient", "barrier")
def _identity(context: TranslationContext) -> Val:
    return context.args[0]


@native("conjugate", "real", "imag")
def _part(context: TranslationContext) -> Val:
    name, dtype = context.equation.primitive.name, context.avals[0].dtype
    if dtype.kind == "c":
        return context.map(name, context.args[0], dtype=context.out.dtype)
    if name == "imag":
        return Val(context.out.shape, context.out.dtype, None, (), 0)
    return context.convert(context.args[0], context.out.dtype)


@native("complex")
def _complex(context: TranslationContext) -> Val:
    part = np.dtype(f"f{context.out.dtype.itemsize // 2}")
    return context.map("complex", *[context.convert(x, part) for x in context.args], dtype=context.out.dtype)


def is_known(aval: Aval) -> bool:
    """Whether arrays like this can be computed on natively."""
    return aval.dtype in KNOWN and aval.dtype.isnative
