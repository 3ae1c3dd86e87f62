"""A builder of LLVM IR that writes text at once.

Types, constants and instructions come in by the names of `llvmlite.ir`; the text of a module comes out. It is several
times faster than building objects and printing them, which first calls wait for.
"""

from func.backends.llvm.ir.builder import IRBuilder
from func.backends.llvm.ir.types import (
    ArrayType,
    DoubleType,
    FloatType,
    FunctionType,
    HalfType,
    IntType,
    LiteralStructType,
    PointerType,
    Type,
    VectorType,
    VoidType,
)
from func.backends.llvm.ir.values import (
    Argument,
    Block,
    Constant,
    Function,
    GlobalVariable,
    Metadata,
    Module,
    Phi,
    Switch,
    Undefined,
    Value,
)
