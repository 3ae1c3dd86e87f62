"""Types and numbers in C.

Integers of the code are unsigned, as in LLVM IR: the operation determines the sign, and overflow wraps around. In
memory they have the types of their dtypes. Truth values are bytes in memory; half precision and bfloat16 are their
bits.
"""

from __future__ import annotations

import math
import re
import struct

import numpy as np

from func.backends import ir
from func.backends.loops.kernels import DType
from func.backends.number_types import is_narrow
from func.backends.scalars.ir_values import part_of

DOUBLE, FLOAT, HALF, BIT = ir.DoubleType(), ir.FloatType(), ir.HalfType(), ir.IntType(1)
_NAMES = {DOUBLE: "double", FLOAT: "float", HALF: "uint16_t", BIT: "bool"}
COMPLEX = ir.LiteralStructType([DOUBLE, DOUBLE])
"""The types of arguments and results of the C library's complex functions."""


def c_type(kind: ir.Type) -> str:
    """The name of the type of a value.

    >>> c_type(ir.IntType(64)), c_type(ir.DoubleType())
    ('uint64_t', 'double')
    """
    if kind is COMPLEX:
        return "double complex"
    return _NAMES.get(kind) or f"uint{kind.width}_t"  # type: ignore[attr-defined]


def stored_type(dtype: DType) -> str:
    """The name of the type of elements in memory; of their parts for complex numbers.

    >>> stored_type(np.dtype(np.complex64)), stored_type(np.dtype(bool)), stored_type(np.dtype(np.int8))
    ('float', 'uint8_t', 'int8_t')
    """
    if dtype.kind in "fcV":
        return {2: "uint16_t", 4: "float", 8: "double"}[part_of(dtype).itemsize]
    return "uint8_t" if dtype.kind == "b" else f"{'u' if dtype.kind == 'u' else ''}int{8 * dtype.itemsize}_t"


def comment(text: str) -> str:
    r"""Any text as it may stand in a comment of C: one line of ASCII, which neither ends the comment nor begins one.

    >>> print(comment("*/ int x; /* größe"))
    *\x2f int x; /\x2a gr\xf6\xdfe
    """
    plain = "".join([x if x.isprintable() and x.isascii() and x != "\\" else _escape(x) for x in str.__str__(text)])
    return _COMMENT_MARKS.sub(lambda match: _escape(match[0]), plain)


def _escape(letter: str) -> str:
    return r"\x5c" if letter == "\\" else f"\\x{ord(letter):02x}"


_COMMENT_MARKS = re.compile(r"(?<=\*)/|(?<=/)\*|(?<=\?)\?")
"""The second letters of the ends and beginnings of comments, and of trigraphs."""


def literal(constant: ir.Value) -> str:
    """A constant of LLVM IR as one of C.

    >>> literal(ir.Constant(ir.DoubleType(), 0.1)), literal(ir.Constant(ir.IntType(8), -1))
    ('0.1', '(uint8_t)255u')
    """
    kind, text = constant.type, constant.text
    if kind is HALF:
        return f"(uint16_t)0x{text[3:]}u" if text.startswith("0xH") else "(uint16_t)0u"
    if kind is DOUBLE or kind is FLOAT:
        bits = int(text, 16) if text.startswith("0x") else 0
        return real(struct.unpack("<d", bits.to_bytes(8, "little"))[0], kind is FLOAT)
    value = int(text)
    if kind is BIT:
        return "true" if value else "false"
    return whole(value, kind.width)


def real(value: float, single: bool) -> str:
    """A floating-point number: the shortest decimal that reads as the same number.

    >>> real(0.1, True), real(-0.0, False), real(float("-inf"), False), real(3.0, False)
    ('0.1f', '-0.0', '-INFINITY', '3.0')
    """
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f" if single else repr(float(value))


def whole(value: int, width: int) -> str:
    """An unsigned integer."""
    value %= 1 << width
    text = str(value) if value < 1 << 16 else hex(value)
    if width == 64:
        return f"UINT64_C({text})"
    return f"{text}u" if width == 32 else f"(uint{width}_t){text}u"


def stored_literal(value: object, dtype: DType) -> str:
    """An element of a constant array; of complex numbers one part."""
    number = np.asarray(value)
    if dtype.kind == "b":
        return str(int(number))
    if is_narrow(dtype):
        return str(int(number.view(np.uint16)))
    if dtype.kind == "f":
        return real(float(number), dtype.itemsize == 4)
    plain = int(number)
    if dtype.kind == "u":
        return f"UINT64_C({plain})" if dtype.itemsize == 8 else f"{plain}u"
    if dtype.itemsize < 8:
        return str(plain) if plain > -(2**31) else "(-2147483647 - 1)"
    return f"INT64_C({plain})" if plain > -(2**63) else "(-INT64_C(9223372036854775807) - 1)"
