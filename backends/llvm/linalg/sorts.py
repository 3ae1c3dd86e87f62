"""Sorting rows of elements in native code, by NumPy's functions for the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm import symbols
from func.backends.llvm.linalg.matrix_copies import INDEX, INT, POINTER, Matrix, loop, number
from func.backends.llvm.routine_code import call_routine
from func.backends.routines import matrix_parts

PREFIX = "func_numpy_"


def symbol(function: str, dtype: Any, kind: str) -> str:
    """The name under which native code finds "sort" or "argsort" of a dtype, of the kind "quicksort" or "stable".

    >>> symbol("sort", np.float64, "stable")
    'func_numpy_sort_float64_stable'
    """
    return f"{PREFIX}{function}_{np.dtype(dtype).name}_{kind}"


def is_available(function: str, dtype: Any, kind: str) -> bool:
    """Whether this NumPy has the function."""
    return symbols.find(symbol(function, dtype, kind)) is not None


def emit_sort(builder: ir.IRBuilder, length: int, x: Matrix, kind: str) -> ir.Value:
    """Sort the elements in place; the status is not 0 if NumPy lacks memory."""
    return _call(builder, symbol("sort", x.dtype, kind), x.at, number(length), POINTER(None))


def emit_argsort(builder: ir.IRBuilder, length: int, x: Matrix, order: Matrix, kind: str) -> ir.Value:
    """Write the order that sorts the elements."""
    with loop(builder, length) as i:
        builder.store(i, builder.gep(order.at, [i], source_etype=INDEX))
    return _call(builder, symbol("argsort", x.dtype, kind), x.at, order.at, number(length), POINTER(None))


def emit_inverse_order(builder: ir.IRBuilder, length: int, order: Matrix, inverse: Matrix) -> ir.Value:
    """Write the inverse of a permutation; the status is not 0 if a number is not one of its places."""
    return call_routine(builder, matrix_parts.inverse_order, None, length, order.at, inverse.at)


def _call(builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    kind = ir.FunctionType(INT, [arg.type for arg in args])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, args)
