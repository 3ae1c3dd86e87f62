"""Python's operators on traced arrays, each one primitive, and their in-place forms.

`bind` runs a primitive at the highest level among its operands. The operators skip that search where it is decided
already: both operands have one interpreter, or the second is plain. They then call the interpreter's apply1 or apply2.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import PYTHON_SCALARS, Array, Primitive, Tracer, dtype_of, operand, shape_of
from func.interpreters.primitives.elementwise import table as ops
from func.numpy import products, ufuncs
from func.numpy.inplace import augmented, getitem, setitem
from func.numpy.solvers import SOLVER_FILES, steers_solver

_PLAIN = frozenset({Tracer, np.ndarray, float, int, complex, bool})


def _binary(primitive: Primitive) -> Callable[[Any, Any], Any]:
    def operate(self: Tracer, other: Any) -> Any:
        if type(other) is Tracer:
            if other._interpreter is not self._interpreter:
                return primitive(self, other)
        elif type(other) not in _PLAIN:
            if not _is_operand(other):
                return NotImplemented
            other = operand(other)
        return self._interpreter.apply2(primitive, self, other)

    operate.primitive = primitive  # type: ignore[attr-defined]
    return operate


def _comparison(primitive: Primitive) -> Callable[[Any, Any], Any]:
    compare = _binary(primitive)

    def operate(self: Tracer, other: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code.co_filename in SOLVER_FILES:
            steers_solver(frame, self, other)
        return compare(self, other)

    operate.primitive = primitive  # type: ignore[attr-defined]
    return operate


def _reflected(primitive: Primitive) -> Callable[[Any, Any], Any]:
    def operate(self: Tracer, other: Any) -> Any:
        if type(other) not in _PLAIN:
            if not _is_operand(other):
                return NotImplemented
            other = operand(other)
        return primitive(other, self)

    return operate


def _is_operand(other: Any) -> bool:
    return not isinstance(other, (str, bytes, dict, set)) and other is not None


def _unary(primitive: Primitive) -> Callable[[Any], Any]:
    def operate(self: Tracer) -> Any:
        return self._interpreter.apply1(primitive, self)

    return operate


def power(x: Array, y: Array) -> Array:
    """x ** y; the exponents 2, 1/2, -1 and 1 of inexact arrays become square, sqrt, reciprocal and x, as in NumPy."""
    kind = dtype_of(x).kind
    if kind == "b" and type(y) is int and y == 2 and shape_of(x):
        return ops.square(x)
    if (type(y) in PYTHON_SCALARS and kind == "c") or (type(y) in (int, float) and kind == "f"):
        if y == 2:
            return ops.square(x)
        if y == 0.5:
            return ops.sqrt(x)
        if y == -1:
            return ops.reciprocal(x)
        if y == 1:
            return ops.positive(x)
    return ops.power(operand(x), operand(y))


def _rpow(self: Tracer, other: Any) -> Any:
    return ops.power(operand(other), self)


def _divmod(self: Array, other: Any) -> tuple[Array, Array]:
    other = operand(other)
    return ops.floor_divide(self, other), ops.remainder(self, other)


def _rdivmod(self: Array, other: Any) -> tuple[Array, Array]:
    return _divmod(operand(other), self)


def _pow(self: Tracer, other: Any, modulo: Any = None) -> Any:
    if modulo is not None or not _is_operand(other):
        return NotImplemented
    return power(self, other)


_absolute, _product = inspect.unwrap(ufuncs.absolute), inspect.unwrap(products.matmul)


def _abs(self: Tracer) -> Any:
    return _absolute(self)


def _matmul(self: Tracer, other: Any) -> Any:
    return _product(self, other)


def _rmatmul(self: Tracer, other: Any) -> Any:
    return _product(other, self)


_BINARY = {
    "add": ops.add,
    "sub": ops.subtract,
    "mul": ops.multiply,
    "truediv": ops.divide,
    "floordiv": ops.floor_divide,
    "mod": ops.remainder,
    "and": ops.bitwise_and,
    "or": ops.bitwise_or,
    "xor": ops.bitwise_xor,
    "lshift": ops.left_shift,
    "rshift": ops.right_shift,
}
_COMPARISONS = {
    "eq": ops.equal,
    "ne": ops.not_equal,
    "lt": ops.less,
    "le": ops.less_equal,
    "gt": ops.greater,
    "ge": ops.greater_equal,
}
_UNARY = {"neg": ops.negative, "pos": ops.positive, "invert": ops.invert}


def _round(self: Tracer, digits: int | None = None) -> Any:
    if digits is None:
        return int(ops.rint(self))
    scale = 10.0**digits
    return ops.divide(ops.rint(ops.multiply(self, scale)), scale)


def _whole(primitive: Primitive) -> Callable[[Any], int]:
    """The method behind math.floor, math.ceil or math.trunc: an int, which is piecewise constant."""

    def operate(self: Tracer) -> int:
        return int(primitive(self))

    return operate


def operator_table() -> dict[str, Callable[..., Any]]:
    """Every operator method of a traced array."""
    table: dict[str, Callable[..., Any]] = {}
    for name, primitive in _BINARY.items():
        table[f"__{name}__"] = _binary(primitive)
        table[f"__r{name}__"] = _reflected(primitive)
        table[f"__i{name}__"] = augmented(_binary(primitive))
    for name, primitive in _COMPARISONS.items():
        table[f"__{name}__"] = _comparison(primitive)
    for name, primitive in _UNARY.items():
        table[f"__{name}__"] = _unary(primitive)
    table |= {
        "__pow__": _pow,
        "__rpow__": _rpow,
        "__ipow__": augmented(_pow),
        "__divmod__": _divmod,
        "__rdivmod__": _rdivmod,
        "__abs__": _abs,
        "__round__": _round,
        "__floor__": _whole(ops.floor),
        "__ceil__": _whole(ops.ceil),
        "__trunc__": _whole(ops.trunc),
        "__matmul__": _matmul,
        "__rmatmul__": _rmatmul,
        "__imatmul__": augmented(_matmul),
        "__getitem__": getitem,
        "__setitem__": setitem,
    }
    return table
