"""Elementwise primitives: NumPy's loop for the dtypes, as one operation of the body."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import func.backends.scalars.operations  # noqa: F401  fills the table of operations
from func.backends.llvm import symbols
from func.backends.llvm.math.elementary import names
from func.backends.loops.kernels import CALLED, DType
from func.backends.loops.values import ArrayValue, uniform
from func.backends.number_types import is_bfloat16, is_narrow, is_number, kind_of
from func.backends.scalars.operation_table import operation
from func.backends.scalars.scipy_exports import IN_SINGLE, symbol
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.core import Aval
from func.interpreters.primitives.elementwise.pointwise import is_numpy_ufunc

BOOL = np.dtype(bool)
SIGNED, UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)
SINGLE, DOUBLE, INDEX = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
LETTERS = {DOUBLE: "d", SINGLE: "f", np.dtype(np.intp): "l"}
"""The letters of dtypes in the names of SciPy's functions."""
LARGEST_SHIFT = 5000
"""A power of two with this exponent takes any number to infinity, and its inverse any number to zero."""
_WEAK: dict[str, Any] = {"i": int, "f": float, "c": complex}


@functools.cache
def has_operation(op: str, dtype: DType) -> bool:
    """Whether the printer supports an operation on elements of a dtype."""
    if is_narrow(dtype) and op == "spacing":
        return False
    return operation(op, dtype) is not None or (kind_of(dtype) == "f" and op in names())


def elementwise(context: TranslationContext) -> ArrayValue:
    """The rule of elementwise primitives without another: NumPy's loop, or the scalar operation of that name."""
    primitive = context.equation.primitive
    if context.params:
        raise NotNative(f"{primitive.name} with parameters")
    if is_numpy_ufunc(primitive.numpy):
        return by_loop(context, primitive.numpy)
    dtype = context.out.dtype
    if kind_of(dtype) not in "fc" or not has_operation(primitive.name, dtype):
        if primitive.scipy is not None and context.translator.calls_scipy:
            return by_scipy(context, primitive.ufunc)
        raise NotNative(f"{primitive.name} of {dtype} has no native form")
    return context.map(primitive.name, *[context.convert(x, dtype) for x in context.args], dtype=dtype)


@native("nan_safe_multiply")
def _nan_safe_multiply(context: TranslationContext) -> ArrayValue:
    return by_loop(context, np.multiply, "nan_safe_multiply")


def by_loop(context: TranslationContext, ufunc: Any, op: str | None = None) -> ArrayValue:
    """A ufunc on operands converted to the dtypes of its loop."""
    loop = loop_of(context, ufunc)
    name: str = op or ufunc.__name__
    if not has_operation(name, loop[0]):
        raise NotNative(f"{name} of {loop[0]}")
    args = [context.fitted(place, loop[place]) for place in range(len(context.args))]
    return context.convert(context.map(name, *args, dtype=loop[-1]), context.out.dtype)


def by_scipy(context: TranslationContext, ufunc: Any) -> ArrayValue:
    """A ufunc of SciPy as the C function that it calls for every element, on operands in the dtypes of that function.

    Functions without a form in single precision use SciPy's double precision.
    """
    if ufunc is None:
        raise NotNative(f"{context.equation.primitive.name}, which is not a ufunc")
    name, loop = ufunc.__name__, loop_of(context, ufunc)
    dtypes = loop
    if not scipy_function(name, dtypes) and name not in IN_SINGLE:
        dtypes = tuple([DOUBLE if dtype == SINGLE else dtype for dtype in loop])
    if not scipy_function(name, dtypes):
        raise NotNative(f"{name} of {', '.join([str(dtype) for dtype in loop])} has no native form")
    args = [context.convert(context.fitted(i, loop[i]), dtype) for i, dtype in enumerate(dtypes[:-1])]
    out = context.map(f"{CALLED}{name}", *args, dtype=dtypes[-1])
    return context.convert(context.convert(out, loop[-1]), context.out.dtype)


def scipy_function(name: str, dtypes: Sequence[DType]) -> bool:
    """Whether SciPy exports a function of arguments and of a result of these dtypes."""
    letters = [LETTERS.get(dtype, "") for dtype in dtypes]
    return all(letters) and symbols.find(symbol(name, letters[:-1], letters[-1])) is not None


def loop_of(context: TranslationContext, ufunc: Any) -> tuple[DType, ...]:
    """The dtypes of NumPy's loop."""
    return _loop(ufunc, tuple([(aval.dtype, aval.weak) for aval in context.avals]))


@functools.lru_cache(4096)
def _loop(ufunc: Any, operands: tuple[tuple[DType, bool], ...]) -> tuple[DType, ...]:
    types: list[Any] = [
        _WEAK.get(dtype.kind, dtype) if weak and dtype.kind != "b" else dtype for dtype, weak in operands
    ]
    if not any([isinstance(kind, np.dtype) for kind in types]):
        types = [dtype for dtype, _ in operands]
    try:
        loop = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))
    except TypeError as error:
        raise NotNative(str(error)) from None
    if not all(map(is_number, loop)):
        raise NotNative(f"{ufunc.__name__} of {', '.join([str(dtype) for dtype in loop])}")
    return tuple(loop)


@native("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
def _comparison(context: TranslationContext) -> ArrayValue:
    """Exact comparison of integers of any dtypes: a Python number may be beyond the array's dtype, and no dtype
    contains all of int64 and uint64.
    """
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
    is_negative = context.map("less", signed, context.number(0, SIGNED), dtype=BOOL)
    if_negative = context.number(bool(ufunc(0, 1) if unsigned[1] else ufunc(1, 0)), BOOL)
    compared = context.map(ufunc.__name__, *[context.convert(x, UNSIGNED) for x in context.args], dtype=BOOL)
    return context.map("select", is_negative, if_negative, compared, dtype=BOOL)


def _fits(x: ArrayValue, dtype: DType) -> bool:
    """Whether an integer dtype contains x, as far as known."""
    if x.root is None:
        bounds = np.iinfo(dtype)
        return bool(bounds.min <= int(x.number) <= bounds.max)
    return np.can_cast(x.dtype, dtype)


@native("sign")
def _sign(context: TranslationContext) -> ArrayValue:
    """Zeros of bfloat16 keep their sign."""
    sign = elementwise(context)
    if not is_bfloat16(sign.dtype):
        return sign
    x = _as_output(context, context.args[0])
    is_zero = context.map("equal", x, context.number(0, x.dtype), dtype=BOOL)
    return context.map("select", is_zero, x, sign)


@native("where")
def _where(context: TranslationContext) -> ArrayValue:
    condition, x, y = context.args
    dtype = context.out.dtype
    if condition.dtype != BOOL:
        condition = context.map("not_equal", condition, context.number(0, condition.dtype), dtype=BOOL)
    return context.map("select", condition, context.convert(x, dtype), context.convert(y, dtype), dtype=dtype)


@native("convert")
def _convert(context: TranslationContext) -> ArrayValue:
    return context.fitted(0, context.out.dtype)


@native("barrier")
def _barrier(context: TranslationContext) -> ArrayValue:
    x = context.args[0]
    return x if context.params["tag"] >= 0 else context.fuser.late(x)


@native("named", "stop_gradient", "seed", "known_factor")
def _identity(context: TranslationContext) -> ArrayValue:
    return context.args[0]


@native("renumbered")
def _numbers(context: TranslationContext) -> ArrayValue:
    return context.convert(context.args[0], context.out.dtype)


@native("conventional", "isolated", "revalued", "undetermined")
def _value(context: TranslationContext) -> ArrayValue:
    return _as_output(context, context.args[0])


@native("absent")
def _absent(context: TranslationContext) -> ArrayValue:
    return uniform(0, context.out.dtype, context.out.shape)


@native("conjugate", "real", "imag")
def _part(context: TranslationContext) -> ArrayValue:
    name, dtype = context.equation.primitive.name, context.avals[0].dtype
    if dtype.kind == "c":
        return context.map(name, context.args[0], dtype=context.out.dtype)
    if name == "imag":
        return uniform(0, context.out.dtype, context.out.shape)
    return context.convert(context.args[0], context.out.dtype)


@native("complex")
def _complex(context: TranslationContext) -> ArrayValue:
    part = np.dtype(f"f{context.out.dtype.itemsize // 2}")
    return context.map("complex", *[context.convert(x, part) for x in context.args], dtype=context.out.dtype)


@native("ldexp")
def _ldexp(context: TranslationContext) -> ArrayValue:
    x, n = context.args
    dtype = loop_of(context, np.ldexp)[0]
    wide = SINGLE if is_narrow(dtype) else dtype
    n = context.convert(n, INDEX)
    n = context.map("maximum", n, context.number(-LARGEST_SHIFT, INDEX))
    n = context.map("minimum", n, context.number(LARGEST_SHIFT, INDEX))
    scaled = context.map("ldexp", n, context.convert(context.convert(x, dtype), wide))
    return context.convert(context.convert(scaled, dtype), context.out.dtype)


@native("exponent")
def _exponent(context: TranslationContext) -> ArrayValue:
    dtype = loop_of(context, np.frexp)[0]
    exponent = context.map("exponent", context.convert(context.args[0], dtype), dtype=np.dtype(np.int32))
    return context.convert(exponent, context.out.dtype)


@native("float_power")
def _float_power(context: TranslationContext) -> ArrayValue:
    return by_loop(context, np.float_power, "power")


@native("power")
def _power(context: TranslationContext) -> ArrayValue:
    """Small integer powers are products: as exact as the function, and far faster."""
    x, y = context.args
    n = y.number if y.root is None else None
    dtype = context.out.dtype
    if dtype.kind in "iub" and isinstance(n, (int, np.integer)) and n >= 0:
        if dtype.kind in "iu":
            x = context.fitted(0, dtype)
            context.fitted(1, dtype)
        return _power_by_squares(context, _as_output(context, x), int(n))
    if dtype.kind == "i":
        raise NotNative("powers of integers, which may be negative")
    if kind_of(dtype) not in "fc" or n not in (0, 1, 2, 3, 4, -1) or not has_operation("multiply", dtype):
        return elementwise(context)
    if n == -1:
        return context.map("reciprocal", _as_output(context, x))
    return _power_by_squares(context, _as_output(context, x), int(n.real))


def _as_output(context: TranslationContext, x: ArrayValue) -> ArrayValue:
    """An operand with the shape and dtype of the output."""
    return context.fuser.broadcast(context.convert(x, context.out.dtype), context.out.shape)


def _power_by_squares(context: TranslationContext, x: ArrayValue, n: int) -> ArrayValue:
    """xⁿ by repeated squaring."""
    if is_narrow(x.dtype):  # rounded once, as NumPy does
        return context.convert(_power_by_squares(context, context.convert(x, SINGLE), n), x.dtype)
    power: ArrayValue | None = None
    while n:
        if n & 1:
            power = x if power is None else context.map("multiply", x, power)
        n >>= 1
        if n:
            x = context.map("multiply", x, x)
    return _as_output(context, context.number(1, x.dtype)) if power is None else power


def is_known(aval: Aval) -> bool:
    """Whether native code can compute on arrays like this."""
    return is_number(aval.dtype) and aval.dtype.isnative
