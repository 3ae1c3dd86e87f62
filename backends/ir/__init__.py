"""A builder of LLVM IR that writes text at once.

Types, constants and instructions come in by the names of `llvmlite.ir`; the text of a module comes out. First calls
wait for it, and it is several times faster than a builder that makes objects and prints them.
"""

# fmt: off
from func.backends.ir.ir_builder import IRBuilder
from func.backends.ir.ir_types import (
    ArrayType, Constant, DoubleType, FloatType, FunctionType, HalfType, IntType, LiteralStructType, PointerType, Type,
    Undefined, Value, VectorType, VoidType,
)
from func.backends.ir.modules import Argument, Block, Function, GlobalVariable, Metadata, Module, Phi, Switch
# fmt: on
