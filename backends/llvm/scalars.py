"""Types of elements, and the operations of NumPy on them as LLVM IR, on scalars and on vectors alike.

Semantics are NumPy's: NaN goes through max and min, remainders have the divisor's sign, integers wrap around, division
of integers by zero gives zero, a shift by too many bits gives what shifting them out would, and floats out of an
integer's range become its smallest value (as x86 has it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir

from func.backends.kernels import DType
from func.backends.llvm.elementary import Elementary

Emit: TypeAlias = Callable[["Scalars", DType, list[ir.Value]], ir.Value]

_FLOATS = {2: ir.HalfType(), 4: ir.FloatType(), 8: ir.DoubleType()}
BIT = ir.IntType(1)
KNOWN = frozenset([np.dtype(name) for name in ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d")])
"""Element types that can be computed on."""


def element(dtype: DType) -> ir.Type:
    """The type of a value of the body."""
    if dtype.kind == "b":
        return BIT
    if dtype.kind == "f":
        return _FLOATS[dtype.itemsize]
    return ir.IntType(8 * dtype.itemsize)


def stored(dtype: DType) -> ir.Type:
    """The type of an element in memory."""
    return ir.IntType(8) if dtype.kind == "b" else element(dtype)


def widened(kind: ir.Type, width: int) -> ir.Type:
    """A vector of a type; the type itself for one lane."""
    return kind if width == 1 else ir.VectorType(kind, width)


def constant(dtype: DType, value: Any, width: int = 1) -> ir.Constant:
    """A number in every lane."""
    kind = element(dtype)
    plain: Any
    if dtype.kind == "f":
        plain = float(np.asarray(value).astype(dtype))
    elif dtype.kind == "b":
        plain = int(bool(value))
    else:
        plain = int(np.asarray(value).astype(dtype))
    return ir.Constant(kind, plain) if width == 1 else ir.Constant(ir.VectorType(kind, width), [plain] * width)


def width_of(value: ir.Value) -> int:
    """The number of lanes."""
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


class Scalars:
    """Emits operations with a builder."""

    def __init__(self, module: ir.Module, elementary: Elementary) -> None:
        self.module = module
        self.elementary = elementary
        self.builder: Any = None
        self._intrinsics: dict[tuple[str, str], ir.Function] = {}

    def apply(self, op: str, dtype: DType, args: list[ir.Value], out: DType) -> ir.Value:
        """op on values that are all of `dtype` (for "select" all but the first, for shifts as NumPy has resolved
        them); `out` is the dtype of the result."""
        if op == "convert":
            return self.convert(args[0], dtype, out)
        emit = TABLE.get((op, dtype.kind)) or TABLE.get((op, "*"))
        if emit is not None:
            return emit(self, dtype, args)
        return self.elementary.call(self.builder, op, *args)

    def intrinsic(self, name: str, *args: ir.Value) -> ir.Value:
        """llvm.name on values of one type."""
        kind = args[0].type
        key = name, str(kind)
        function = self._intrinsics.get(key)
        if function is None:
            width = width_of(args[0])
            scalar = kind.element if width > 1 else kind
            word = {"float": "f32", "double": "f64", "half": "f16"}.get(str(scalar), str(scalar))
            full = f"llvm.{name}.{f'v{width}' if width > 1 else ''}{word}"
            function = self.module.globals.get(full) or ir.Function(
                self.module, ir.FunctionType(kind, [kind] * len(args)), full
            )
            self._intrinsics[key] = function
        return self.builder.call(function, args)

    def convert(self, x: ir.Value, have: DType, want: DType) -> ir.Value:
        """A cast as `astype` has it."""
        if have == want:
            return x
        b, width = self.builder, width_of(x)
        target = widened(element(want), width)
        if want.kind == "b":
            return self.nonzero(x, have)
        if have.kind == "f":
            if want.kind == "f":
                return b.fpext(x, target) if want.itemsize > have.itemsize else b.fptrunc(x, target)
            return self._to_integer(x, have, want)
        if want.kind == "f":
            signed = have.kind == "i"
            return b.sitofp(x, target) if signed else b.uitofp(x, target)
        if want.itemsize < have.itemsize:
            return b.trunc(x, target)
        if have.kind != "b" and want.itemsize == have.itemsize:
            return x
        return b.sext(x, target) if have.kind == "i" else b.zext(x, target)

    def _to_integer(self, x: ir.Value, have: DType, want: DType) -> ir.Value:
        b, width = self.builder, width_of(x)
        target = widened(element(want), width)
        if want.itemsize < 4:
            return b.trunc(self._to_integer(x, have, np.dtype(np.int32)), target)
        if want == np.uint32:
            return b.trunc(self._to_integer(x, have, np.dtype(np.int64)), target)
        bits = 8 * want.itemsize
        top = 2.0 ** (bits - 1)
        if want.kind == "u":  # the upper half of the range by an offset, as compilers do
            signed = np.dtype(np.int64)
            low = self._to_integer(x, have, signed)
            shifted = self._to_integer(b.fsub(x, constant(have, top, width)), have, signed)
            high = b.xor(shifted, constant(signed, -(2**63), width))
            return b.select(b.fcmp_ordered("<", x, constant(have, top, width)), low, high)
        inside = b.and_(
            b.fcmp_ordered("<", x, constant(have, top, width)), b.fcmp_ordered(">", x, constant(have, -top - 1.0, width))
        )
        if have.itemsize * 8 <= bits:  # -top - 1 is -top then, which is inside
            edge = b.fcmp_ordered("==", x, constant(have, -top, width))
            inside = b.or_(inside, edge)
        safe = b.select(inside, x, constant(have, 0.0, width))
        return b.select(inside, b.fptosi(safe, target), constant(want, -(2 ** (bits - 1)), width))

    def nonzero(self, x: ir.Value, dtype: DType) -> ir.Value:
        """Whether elements are not zero (NaN is not)."""
        zero = constant(dtype, 0, width_of(x))
        if dtype.kind == "b":
            return x
        return self.builder.fcmp_unordered("!=", x, zero) if dtype.kind == "f" else self.builder.icmp_signed("!=", x, zero)

    def per_lane(self, function: ir.Function, args: Sequence[ir.Value]) -> ir.Value:
        """A scalar function lane by lane."""
        b, width = self.builder, width_of(args[0])
        if width == 1:
            return b.call(function, args)
        made = ir.Constant(args[0].type, ir.Undefined)
        for lane in range(width):
            place = ir.Constant(ir.IntType(32), lane)
            made = b.insert_element(made, b.call(function, [b.extract_element(x, place) for x in args]), place)
        return made

    def library(self, name: str, dtype: DType, args: Sequence[ir.Value]) -> ir.Value:
        """A function of the C library, by its name for doubles, lane by lane."""
        full = name if dtype.itemsize == 8 else f"{name}f"
        function = self.module.globals.get(full)
        if function is None:
            kind = element(dtype)
            function = ir.Function(self.module, ir.FunctionType(kind, [kind] * len(args)), full)
        return self.per_lane(function, args)


TABLE: dict[tuple[str, str], Emit] = {}
"""By operation and kind of dtype; "*" for all kinds."""


def _emits(name: str, kinds: str) -> Callable[[Emit], Emit]:
    def register(emit: Emit) -> Emit:
        for kind in kinds:
            TABLE[name, kind] = emit
        return emit

    return register


def _binary(name: str, kinds: str, method: str) -> None:
    TABLE.update({(name, kind): lambda s, d, a: getattr(s.builder, method)(a[0], a[1]) for kind in kinds})


for _name, _integer, _float in (("add", "add", "fadd"), ("subtract", "sub", "fsub"), ("multiply", "mul", "fmul")):
    _binary(_name, "iu", _integer)
    _binary(_name, "f", _float)
_binary("add", "b", "or_")
_binary("multiply", "b", "and_")
_binary("divide", "f", "fdiv")
for _name, _method in (("bitwise_and", "and_"), ("bitwise_or", "or_"), ("bitwise_xor", "xor")):
    _binary(_name, "biu", _method)
_binary("maximum", "b", "or_")
_binary("minimum", "b", "and_")
_binary("fmax", "b", "or_")
_binary("fmin", "b", "and_")


# --- comparisons and logic ----------------------------------------------------------------------------------------


def _comparison(name: str, sign: str) -> None:
    def emit(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
        if d.kind == "f":
            return (s.builder.fcmp_unordered if sign == "!=" else s.builder.fcmp_ordered)(sign, a[0], a[1])
        return (s.builder.icmp_signed if d.kind == "i" else s.builder.icmp_unsigned)(sign, a[0], a[1])

    TABLE[name, "*"] = emit


for _name, _sign in (
    ("equal", "=="),
    ("not_equal", "!="),
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
):
    _comparison(_name, _sign)


def _logical(name: str, method: str) -> None:
    def emit(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
        return getattr(s.builder, method)(s.nonzero(a[0], d), s.nonzero(a[1], d))

    TABLE[name, "*"] = emit


for _name, _method in (("logical_and", "and_"), ("logical_or", "or_"), ("logical_xor", "xor")):
    _logical(_name, _method)


@_emits("logical_not", "*")
def _logical_not(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.not_(s.nonzero(a[0], d))


@_emits("invert", "biu")
def _invert(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.not_(a[0])


@_emits("select", "*")
def _select(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.select(a[0], a[1], a[2])


@_emits("isnan", "f")
def _isnan(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.fcmp_unordered("uno", a[0], a[0])


@_emits("isinf", "f")
def _isinf(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    size = s.intrinsic("fabs", a[0])
    return s.builder.fcmp_ordered("==", size, constant(d, np.inf, width_of(a[0])))


@_emits("isfinite", "f")
def _isfinite(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    size = s.intrinsic("fabs", a[0])
    return s.builder.fcmp_ordered("<", size, constant(d, np.inf, width_of(a[0])))


@_emits("signbit", "f")
def _signbit(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    bits = np.dtype(f"i{d.itemsize}")
    width = width_of(a[0])
    return s.builder.icmp_signed(
        "<", s.builder.bitcast(a[0], widened(element(bits), width)), constant(bits, 0, width)
    )


@_emits("isnan", "iub")
@_emits("isinf", "iub")
def _never(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return constant(np.dtype(bool), False, width_of(a[0]))


@_emits("isfinite", "iub")
def _always(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return constant(np.dtype(bool), True, width_of(a[0]))


# --- arithmetic ---------------------------------------------------------------------------------------------------


@_emits("positive", "*")
def _positive(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return a[0]


@_emits("negative", "iuf")
def _negative(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.fneg(a[0]) if d.kind == "f" else s.builder.neg(a[0])


@_emits("absolute", "iubf")
def _absolute(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    (x,) = a
    if d.kind == "f":
        return s.intrinsic("fabs", x)
    if d.kind != "i":
        return x
    below = s.builder.icmp_signed("<", x, constant(d, 0, width_of(x)))
    return s.builder.select(below, s.builder.neg(x), x)


@_emits("square", "iuf")
def _square(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.fmul(a[0], a[0]) if d.kind == "f" else s.builder.mul(a[0], a[0])


@_emits("reciprocal", "f")
def _reciprocal(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.fdiv(constant(d, 1, width_of(a[0])), a[0])


@_emits("sign", "iuf")
def _sign(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    (x,), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    if d.kind == "u":
        return b.select(b.icmp_unsigned(">", x, zero), one, zero)
    minus = constant(d, -1, width)
    if d.kind == "i":
        return b.select(b.icmp_signed(">", x, zero), one, b.select(b.icmp_signed("<", x, zero), minus, zero))
    below = b.select(b.fcmp_ordered("<", x, zero), minus, b.select(b.fcmp_ordered("==", x, zero), zero, x))
    return b.select(b.fcmp_ordered(">", x, zero), one, below)


def _extremum(name: str, sign: str, ignores_nan: bool) -> None:
    def emit(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
        x, y = a
        b = s.builder
        if d.kind != "f":
            compare = b.icmp_signed if d.kind == "i" else b.icmp_unsigned
            return b.select(compare(sign, x, y), x, y)
        odd = b.fcmp_unordered("uno", y, y) if ignores_nan else b.fcmp_unordered("uno", x, x)
        return b.select(b.or_(b.fcmp_ordered(sign, x, y), odd), x, y)

    for kind in "iuf":
        TABLE[name, kind] = emit


for _name, _sign, _ignores in (
    ("maximum", ">=", False),
    ("minimum", "<=", False),
    ("fmax", ">=", True),
    ("fmin", "<=", True),
):
    _extremum(_name, _sign, _ignores)


@_emits("zero_wins", "f")
def _zero_wins(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    """x · y, zero wherever y is."""
    b = s.builder
    zero = constant(d, 0, width_of(a[0]))
    return b.select(b.fcmp_ordered("==", a[1], zero), zero, b.fmul(a[0], a[1]))


@_emits("zero_wins", "iu")
def _zero_wins_integer(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.builder.mul(a[0], a[1])


def _scaled(name: str, factor: float) -> None:
    def emit(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
        return s.builder.fmul(a[0], constant(d, factor, width_of(a[0])))

    TABLE[name, "f"] = emit


_scaled("deg2rad", np.pi / 180)
_scaled("rad2deg", 180 / np.pi)


@_emits("sqrt", "f")
def _sqrt(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.intrinsic("sqrt", a[0])


for _name in ("floor", "ceil", "trunc", "rint", "copysign"):
    TABLE[_name, "f"] = lambda s, d, a, name=_name: s.intrinsic(name, *a)  # type: ignore[misc]
for _name in ("floor", "ceil", "trunc", "rint"):
    for _kind in "iub":
        TABLE[_name, _kind] = _positive


@_emits("heaviside", "f")
def _heaviside(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    below = b.select(b.fcmp_ordered("<", x, zero), zero, x)
    return b.select(b.fcmp_ordered("==", x, zero), y, b.select(b.fcmp_ordered(">", x, zero), one, below))


@_emits("fmod", "f")
def _fmod(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.library("fmod", d, a)


@_emits("nextafter", "f")
def _nextafter(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return s.library("nextafter", d, a)


# --- division with the sign of the divisor ------------------------------------------------------------------------


def _divmod_float(s: Scalars, d: DType, a: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """(floor of the quotient, remainder), by the steps of CPython's float_divmod, as NumPy does."""
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero = constant(d, 0, width)
    rest = s.library("fmod", d, a)
    quotient = b.fdiv(b.fsub(x, rest), y)
    exact = b.fcmp_ordered("==", rest, zero)
    signs_differ = b.xor(b.fcmp_ordered("<", y, zero), b.fcmp_ordered("<", rest, zero))
    moves = b.and_(b.not_(exact), signs_differ)
    rest = b.select(moves, b.fadd(rest, y), b.select(exact, s.intrinsic("copysign", zero, y), rest))
    quotient = b.select(moves, b.fsub(quotient, constant(d, 1, width)), quotient)
    floored = s.intrinsic("floor", quotient)
    far = b.fcmp_ordered(">", b.fsub(quotient, floored), constant(d, 0.5, width))
    floored = b.select(far, b.fadd(floored, constant(d, 1, width)), floored)
    whole = b.select(b.fcmp_unordered("!=", quotient, zero), floored, s.intrinsic("copysign", zero, b.fdiv(x, y)))
    by_zero = b.fcmp_ordered("==", y, zero)
    return b.select(by_zero, b.fdiv(x, y), whole), b.select(by_zero, s.library("fmod", d, a), rest)


@_emits("floor_divide", "f")
def _floor_divide(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return _divmod_float(s, d, a)[0]


@_emits("remainder", "f")
def _remainder(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return _divmod_float(s, d, a)[1]


def _divmod_integer(s: Scalars, d: DType, a: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
    (x, y), b, width = a, s.builder, width_of(a[0])
    zero, one = constant(d, 0, width), constant(d, 1, width)
    by_zero = b.icmp_signed("==", y, zero)
    safe = b.select(by_zero, one, y)
    if d.kind == "u":
        return b.select(by_zero, zero, b.udiv(x, safe)), b.select(by_zero, zero, b.urem(x, safe))
    minus = b.icmp_signed("==", y, constant(d, -1, width))  # the smallest number over -1 is itself
    safe = b.select(minus, one, safe)
    quotient, rest = b.sdiv(x, safe), b.srem(x, safe)
    moves = b.and_(b.icmp_signed("!=", rest, zero), b.icmp_signed("<", b.xor(x, y), zero))
    quotient = b.select(moves, b.sub(quotient, one), quotient)
    rest = b.select(moves, b.add(rest, y), rest)
    quotient = b.select(minus, b.neg(x), quotient)
    rest = b.select(minus, zero, rest)
    return b.select(by_zero, zero, quotient), b.select(by_zero, zero, rest)


@_emits("floor_divide", "iu")
def _floor_divide_integer(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return _divmod_integer(s, d, a)[0]


@_emits("remainder", "iu")
def _remainder_integer(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    return _divmod_integer(s, d, a)[1]


# --- shifts -------------------------------------------------------------------------------------------------------


@_emits("left_shift", "iu")
def _left_shift(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    inside = b.icmp_unsigned("<", y, constant(d, 8 * d.itemsize, width))
    zero = constant(d, 0, width)
    return b.select(inside, b.shl(x, b.select(inside, y, zero)), zero)


@_emits("right_shift", "iu")
def _right_shift(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    (x, y), b, width = a, s.builder, width_of(a[0])
    top = 8 * d.itemsize
    inside = b.icmp_unsigned("<", y, constant(d, top, width))
    last = constant(d, top - 1, width)
    shift = b.select(inside, y, last)
    if d.kind == "i":
        return b.ashr(x, shift)
    return b.select(inside, b.lshr(x, shift), constant(d, 0, width))


@_emits("bitwise_count", "iu")
def _bitwise_count(s: Scalars, d: DType, a: list[ir.Value]) -> ir.Value:
    x = _absolute(s, d, a)
    count = s.intrinsic("ctpop", x)
    return s.convert(count, d, np.dtype(np.uint8))
