"""SciPy's BLAS and LAPACK in native code: declarations and calls.

Routines have the Fortran convention: all arguments by address, integers of 32 bits, matrices by columns.
"""

import functools
import re
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm.linalg.matrix_copies import DOUBLE, FLOAT, INT, POINTER, element
from func.backends.llvm.linalg.scipy_library import PREFIX, address_of, capsule, capsule_name

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

ARGUMENTS = {
    "gemm": 13,
    "trsm": 11,
    "trsv": 8,
    "potrf": 5,
    "trtri": 6,
    "lauum": 5,
    "getrf": 6,
    "getri": 7,
    "getrs": 9,
    "gesv": 8,
}
"""The numbers of arguments of the most frequent routines, all without a result: importing SciPy, which states them,
takes longer than compiling one.
"""

_RETURNS = {"void": ir.VoidType(), "int": INT, "s": FLOAT, "d": DOUBLE}


@functools.cache
def symbol(name: str) -> str:
    """The name under which native code finds the BLAS or LAPACK routine.

    Raises: LookupError for a routine which SciPy does not export.

    >>> symbol("dgemm")
    'func_dgemm'
    """
    if address_of(PREFIX + name) is None:
        raise LookupError(f"SciPy exports no BLAS or LAPACK routine {name!r}")
    return PREFIX + name


def declare(module: ir.Module, name: str) -> ir.Function:
    """The routine as a function of the module, with the signature that SciPy states.

    >>> len(declare(ir.Module(), "ddot").args)
    5
    """
    key = symbol(name)
    known: ir.Function | None = module.globals.get(key)
    if known is not None:
        return known
    function = ir.Function(module, _type(name), key)
    function.attributes.add("nounwind")
    return function


def _type(name: str) -> Any:
    """The type of a routine. Raises: LookupError for one that native code cannot call."""
    if name[1:] in ARGUMENTS:
        return ir.FunctionType(ir.VoidType(), [POINTER] * ARGUMENTS[name[1:]])
    signature = capsule_name(capsule(name)).decode()
    match = re.fullmatch(r"(?:\w+_)?(void|int|s|d) \((.*)\)", signature)
    if match is None:
        raise LookupError(f"native code cannot call {name!r}, whose signature is {signature}")
    result, arguments = match.groups()
    return ir.FunctionType(_RETURNS[result], [POINTER] * (arguments.count(",") + 1))


def fits(*sizes: int) -> bool:
    """Whether sizes and strides fit the 32-bit integers of BLAS."""
    return all(size < 2**31 for size in sizes)


def constant(builder: ir.IRBuilder, value: Any, kind: Any = INT) -> ir.Value:
    """The address of a constant: an integer, a letter, or a number of the dtype `kind`."""
    module = builder.module
    if isinstance(value, str):
        data = ir.Constant(ir.IntType(8), ord(value))
        name = f"func.letter.{value}"
    elif kind is INT:
        data = ir.Constant(INT, value)
        name = f"func.int.{value}"
    else:
        data = _number(value, np.dtype(kind))
        name = f"func.{np.dtype(kind).name}.{np.asarray(value, kind).tobytes().hex()}"
    known = module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(module, data.type, name)
        known.linkage, known.global_constant, known.initializer = "private", True, data
        known.unnamed_addr = True
    return known


def _number(value: Any, dtype: np.dtype[Any]) -> ir.Constant:
    rounded: complex = np.asarray(value, dtype).item()
    parts = [rounded.real, rounded.imag]
    return ir.Constant(element(dtype), parts if dtype.kind == "c" else parts[0])


def call(builder: ir.IRBuilder, name: str, *arguments: Any) -> ir.Value:
    """Call a routine, with Python's ints and letters as constants and addresses unchanged.

    Raises: OverflowError for an integer beyond 32 bits.
    """
    numbers = [value for value in arguments if isinstance(value, int)]
    if not fits(*numbers):
        raise OverflowError(f"{name}: sizes and strides must be below 2**31, got {max(numbers)}")
    pointers = [constant(builder, value) if isinstance(value, int | str) else value for value in arguments]
    return builder.call(declare(builder.module, name), pointers)


def routine(dtype: Any, name: str, complex_name: str | None = None) -> str:
    """The routine's name for a dtype: `routine("float64", "gemm")` is "dgemm"."""
    letter = LETTERS[np.dtype(dtype).name]
    return letter + (complex_name if complex_name is not None and letter in "cz" else name)


def leading(stride: int, needed: int | ir.Value) -> int:
    """The stride between rows as BLAS accepts it, also for a single row or none."""
    return max(stride, needed if isinstance(needed, int) else 1, 1)


def triangle(lower: bool) -> str:
    """BLAS's letter for a triangle, which by columns is the other one."""
    return "U" if lower else "L"
