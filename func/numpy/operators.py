"""Python's operators on traced arrays, each one primitive, and their in-place forms.

`bind` runs a primitive at the highest level among its operands. The operators skip that search if both operands have
one interpreter, or the second is plain: they call the interpreter's apply1 or apply2.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.interpreters.core import (
    PYTHON_SCALARS,
    Array,
    Primitive,
    Tracer,
    dtype_of,
    has_rules,
    is_scipy_sparse,
    known_value,
    operand,
    shape_of,
)
from func.interpreters.host.public_functions import at_boundary
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.primitives.elementwise import table as ops
from func.numpy import ufuncs
from func.numpy.facts import power_of_root
from func.numpy.inplace import augmented, getitem, setitem
from func.numpy.solvers import solver_files, steers_solver

_SCALARS = frozenset({float, int, complex, bool})
_NOT_ARRAYS = (str, bytes, dict, set)


def _binary(primitive: Primitive, reflected: str) -> Callable[[Any, Any], Any]:
    ufunc, is_product = getattr(np, primitive.name), primitive is ops.multiply

    def operate(self: Tracer, other: Any) -> Any:
        try:
            if type(other) is Tracer:
                if other._interpreter is not self._interpreter:
                    return primitive(self, other)
                if other is self and is_product and (known := power_of_root(self, 2)) is not None:
                    return known
            elif type(other) is ndarray:
                if other.dtype.kind not in "fciub":
                    other = operand(other)
            elif type(other) not in _SCALARS:
                if has_rules(type(other)):
                    return _by_rules(ufunc, self, other)
                other = _right_operand(self, other, reflected)
                if other is NotImplemented:
                    return NotImplemented
            return self._interpreter.apply2(primitive, self, other)
        except Exception as error:
            hide_outside(error)
            raise

    operate.primitive = primitive  # type: ignore[attr-defined]
    return operate


_UNEQUAL = (type(None), str, bytes)
"""Values that equal no number: NumPy compares them with each element."""


def _comparison(primitive: Primitive, reflected: str) -> Callable[[Any, Any], Any]:
    compare = _binary(primitive, reflected)

    def operate(self: Tracer, other: Any) -> Any:
        try:
            frame = sys._getframe(1)
            if frame.f_code.co_filename in solver_files():
                steers_solver(frame, self, other)
            if type(other) in _SCALARS:
                return self._interpreter.apply2(primitive, self, other)
            result = compare(self, other)
            if result is NotImplemented and primitive in (ops.equal, ops.not_equal) and isinstance(other, _UNEQUAL):
                return np.full(self.shape, primitive is ops.not_equal)[()]
            return result
        except Exception as error:
            hide_outside(error)
            raise

    operate.primitive = primitive  # type: ignore[attr-defined]
    return operate


def _reflected(primitive: Primitive, name: str) -> Callable[[Any, Any], Any]:
    def operate(self: Tracer, other: Any) -> Any:
        try:
            if type(other) in _SCALARS:
                return self._interpreter.apply2(primitive, other, self)
            other = _left_operand(self, other, name)
            return NotImplemented if other is NotImplemented else primitive(other, self)
        except Exception as error:
            hide_outside(error)
            raise

    return operate


def _right_operand(self: Tracer, other: Any, reflected: str) -> Any:
    """The right operand as an array; NotImplemented if its own reflected operator computes the result."""
    kind = type(other)
    if other is None or isinstance(other, _NOT_ARRAYS) or is_scipy_sparse(kind):
        return NotImplemented
    if reflected == "__rmul__" and _is_repetition(self, other):
        return NotImplemented
    is_array_like = hasattr(kind, "__array__") or isinstance(other, (numbers.Number, Sequence, memoryview))
    if is_array_like or hasattr(kind, "todense") or not hasattr(kind, reflected):
        return operand(other)
    return NotImplemented


def _by_rules(ufunc: Any, self: Tracer, other: Any) -> Any:
    """An operator whose right operand computes by `__array_ufunc__`: NumPy's ufunc asks it, as for an ndarray."""
    return NotImplemented if type(other).__array_ufunc__ is None else ufunc(self, other)


def _left_operand(self: Tracer, other: Any, name: str) -> Any:
    """The left operand as an array, after its own operator returned NotImplemented."""
    if other is None or isinstance(other, _NOT_ARRAYS) or (name == "__mul__" and _is_repetition(self, other)):
        return NotImplemented
    return operand(other)


def _is_repetition(count: Tracer, other: Any) -> bool:
    """Whether a product is that of a list and a whole number, which repeats the list."""
    return type(other) in (list, tuple) and count.shape == () and count.dtype.kind in "iu"


def _unary(primitive: Primitive) -> Callable[[Any], Any]:
    def operate(self: Tracer) -> Any:
        try:
            return self._interpreter.apply1(primitive, self)
        except Exception as error:
            hide_outside(error)
            raise

    return operate


def power(x: Array, y: Array) -> Array:
    """x ** y; the exponents 2, 1/2, -1 and 1 of inexact arrays become square, sqrt, reciprocal and x, as in NumPy."""
    kind = dtype_of(x).kind
    if kind == "b" and type(y) is int and y == 2 and shape_of(x):
        return ops.square(x)
    if (type(y) in PYTHON_SCALARS and kind == "c") or (type(y) in (int, float) and kind == "f"):
        if y == 2:
            return _square(x)
        if y == 0.5:
            return ops.sqrt(x)
        if y == -1:
            return ops.reciprocal(x)
        if y == 1:
            return ops.positive(x)
        if (known := power_of_root(x, y)) is not None:
            return known
    return ops.power(operand(x), operand(y))


def _rpow(self: Tracer, other: Any) -> Any:
    other = _left_operand(self, other, "__pow__")
    return other if other is NotImplemented else ops.power(other, self)


def _divmod(self: Tracer, other: Any) -> Any:
    if has_rules(type(other)):
        return _by_rules(np.divmod, self, other)
    other = _right_operand(self, other, "__rdivmod__")
    return other if other is NotImplemented else (ops.floor_divide(self, other), ops.remainder(self, other))


def _rdivmod(self: Tracer, other: Any) -> Any:
    other = _left_operand(self, other, "__divmod__")
    return other if other is NotImplemented else (ops.floor_divide(other, self), ops.remainder(other, self))


def _pow(self: Tracer, other: Any, modulo: Any = None) -> Any:
    if modulo is not None:
        return NotImplemented
    try:
        if type(other) is not Tracer and type(other) not in _SCALARS:
            if has_rules(type(other)):
                return _by_rules(np.power, self, other)
            other = _right_operand(self, other, "__rpow__")
            if other is NotImplemented:
                return NotImplemented
        return power(self, other)
    except Exception as error:
        hide_outside(error)
        raise


_absolute = inspect.unwrap(ufuncs.absolute)
_square = inspect.unwrap(ufuncs.square)


@functools.cache
def _product() -> Callable[[Any, Any], Any]:
    """The traced version of np.matmul, imported at its first use."""
    product: Callable[[Any, Any], Any] = inspect.unwrap(importlib.import_module("func.numpy.products").matmul)
    return product


def _abs(self: Tracer) -> Any:
    return _absolute(self)


def _matmul(self: Tracer, other: Any) -> Any:
    try:
        if type(other) is not Tracer and type(other) is not ndarray:
            if has_rules(type(other)):
                return _by_rules(np.matmul, self, other)
            other = _right_operand(self, other, "__rmatmul__")
            if other is NotImplemented:
                return NotImplemented
        return _product()(self, other)
    except Exception as error:
        hide_outside(error)
        raise


def _rmatmul(self: Tracer, other: Any) -> Any:
    other = _left_operand(self, other, "__matmul__")
    return other if other is NotImplemented else _product()(other, self)


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
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_UNARY = {"neg": ops.negative, "pos": ops.positive, "invert": ops.invert}


def _round(self: Tracer, digits: int | None = None) -> Any:
    if digits is None:
        return int(ops.rint(self))
    known = known_value(self)
    if type(known) is float:  # a float of Python rounds its decimal expansion, an array scales and rounds
        return round(known, digits)
    if self.dtype.kind in "iu" and digits >= 0:
        return ops.positive(self)
    scale = 10.0**digits
    return ops.divide(ops.rint(ops.multiply(self, scale)), scale)


def _whole(primitive: Primitive) -> Callable[[Any], int]:
    """The method behind math.floor, math.ceil or math.trunc: an int, which is piecewise constant."""

    def operate(self: Tracer) -> int:
        return int(primitive(self))

    return operate


def operator_table() -> dict[str, Callable[..., Any]]:
    """Every operator of a traced array; the frequent ones of small programs catch errors themselves."""
    table: dict[str, Callable[..., Any]] = {}
    for name, primitive in _BINARY.items():
        binary = _binary(primitive, f"__r{name}__")
        table[f"__{name}__"] = binary
        table[f"__r{name}__"] = _reflected(primitive, f"__{name}__")
        table[f"__i{name}__"] = augmented(binary)
    for name, primitive in _COMPARISONS.items():
        table[f"__{name}__"] = _comparison(primitive, f"__{_MIRRORED[name]}__")
    for name, primitive in _UNARY.items():
        table[f"__{name}__"] = _unary(primitive)
    table |= {
        "__pow__": _pow,
        "__rpow__": at_boundary(_rpow),
        "__ipow__": augmented(_pow),
        "__divmod__": at_boundary(_divmod),
        "__rdivmod__": at_boundary(_rdivmod),
        "__abs__": at_boundary(_abs),
        "__round__": at_boundary(_round),
        "__floor__": at_boundary(_whole(ops.floor)),
        "__ceil__": at_boundary(_whole(ops.ceil)),
        "__trunc__": at_boundary(_whole(ops.trunc)),
        "__matmul__": _matmul,
        "__rmatmul__": at_boundary(_rmatmul),
        "__imatmul__": augmented(_matmul),
        "__getitem__": getitem,
        "__setitem__": setitem,
    }
    for name, method in table.items():
        method.__qualname__ = name  # Python's name of it when arguments are missing
    return table
