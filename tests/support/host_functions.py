"""Elementary functions of the LLVM backend for one number, as C functions that kernels call on a processor.

With them the text of a kernel computes what native code computes, to the last bit, wherever the operations and their
order are the same.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from func.backends import ir
from func.backends.llvm.machine import compile_ir
from func.backends.llvm.math.elementary import Elementary
from func.backends.llvm.math.own_functions import host_features
from func.backends.scalars.math.registry import FUNCTIONS

NAMES = {
    f"{function.libmvec}{suffix}": (name, suffix)
    for name, function in FUNCTIONS.items()
    if function.libmvec is not None
    for suffix in ("", "f")
}
"""The functions by C's names: NumPy's name and the suffix of the type."""


@functools.cache
def machine_code() -> Any:
    """The compiled functions, `host_` before C's names."""
    return compile_ir(_module())


def _module() -> Any:
    module = ir.Module("host_functions")
    elementary = Elementary(module, host_features())
    for c_name, (name, suffix) in NAMES.items():
        kind = ir.FloatType() if suffix else ir.DoubleType()
        arity = FUNCTIONS[name].arity
        function = ir.Function(module, ir.FunctionType(kind, [kind] * arity), f"host_{c_name}")
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(elementary.call(builder, name, *function.args))
    return module


def declarations() -> str:
    """Pointers to the functions, and macros that call them by C's names."""
    lines = []
    for c_name, (name, suffix) in NAMES.items():
        word = "float" if suffix else "double"
        listed = ", ".join([word] * FUNCTIONS[name].arity)
        lines.append(f'extern "C" {{ {word} (*host_{c_name})({listed}); }}\n#define {c_name} host_{c_name}')
    return "\n".join(lines)


def connect(library: ctypes.CDLL) -> None:
    """Set the pointers of a compiled text."""
    code = machine_code()
    for c_name in NAMES:
        ctypes.c_void_p.in_dll(library, f"host_{c_name}").value = code.address(f"host_{c_name}")
