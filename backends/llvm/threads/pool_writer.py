"""A thin layer over llvmlite's IRBuilder for the code of the thread pool: shared variables, locks, endless loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

VOID, BIT, BYTE = ir.VoidType(), ir.IntType(1), ir.IntType(8)
INT, WORD = ir.IntType(32), ir.IntType(64)
BYTES = BYTE.as_pointer()
TASK = ir.FunctionType(VOID, [BYTES, WORD]).as_pointer()

CACHE_LINES = 128
"""The alignment of shared variables: two cache lines, since processors fetch them in pairs."""

EXTERNALS = {
    "clock_gettime": (INT, INT, BYTES),
    "memset": (BYTES, BYTES, INT, WORD),
    "pthread_cond_broadcast": (INT, BYTES),
    "pthread_cond_init": (INT, BYTES, BYTES),
    "pthread_cond_signal": (INT, BYTES),
    "pthread_cond_wait": (INT, BYTES, BYTES),
    "pthread_create": (INT, BYTES, BYTES, BYTES, BYTES),
    "pthread_detach": (INT, BYTES),
    "pthread_mutex_init": (INT, BYTES, BYTES),
    "pthread_mutex_lock": (INT, BYTES),
    "pthread_mutex_unlock": (INT, BYTES),
    "pthread_sigmask": (INT, INT, BYTES, BYTES),
    "sched_yield": (INT,),
    "sigdelset": (INT, BYTES, INT),
    "sigfillset": (INT, BYTES),
    "llvm.x86.sse2.pause": (VOID,),
    "llvm.x86.sse.ldmxcsr": (VOID, BYTES),
    "llvm.x86.sse.stmxcsr": (VOID, BYTES),
    "llvm.aarch64.isb": (VOID, INT),
    "llvm.aarch64.get.fpcr": (WORD,),
    "llvm.aarch64.set.fpcr": (VOID, WORD),
}


def add_word(module: ir.Module, name: str) -> None:
    """A shared variable of 64 bits, 0 at first."""
    _add(module, name, WORD)


def add_area(module: ir.Module, name: str, size: int) -> None:
    """That many shared bytes, 0 at first."""
    _add(module, name, ir.ArrayType(BYTE, size))


def _add(module: ir.Module, name: str, type_: ir.Type) -> None:
    variable = ir.GlobalVariable(module, type_, name)
    variable.initializer = ir.Constant(type_, None if isinstance(type_, ir.ArrayType) else 0)
    variable.linkage = "internal"
    variable.align = CACHE_LINES


def word(value: Any) -> Any:
    """A value, or the constant of 64 bits for a number."""
    return value if isinstance(value, ir.Value) else WORD(value)


class Body:
    """One function of the module while it is written; what it does to shared variables is sequentially consistent."""

    def __init__(
        self, module: ir.Module, name: str, result: ir.Type, *parameters: ir.Type, public: bool = False
    ) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, parameters), name)
        self.function.linkage = "external" if public else "internal"
        self.args = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block())

    def read(self, name: str) -> Any:
        return self.builder.load_atomic(self.module.get_global(name), "seq_cst", 8)

    def write(self, name: str, value: Any) -> None:
        self.builder.store_atomic(word(value), self.module.get_global(name), "seq_cst", 8)

    def change(self, operation: str, name: str, value: int) -> Any:
        """What the variable held before the operation."""
        return self.builder.atomic_rmw(operation, self.module.get_global(name), word(value), "seq_cst")

    def exchange_if(self, name: str, expected: Any, value: Any) -> Any:
        """Whether the variable held what was expected, and so holds the value now."""
        pair = self.builder.cmpxchg(self.module.get_global(name), expected, value, "seq_cst", "seq_cst")
        return self.builder.extract_value(pair, 1)

    def area(self, name: str) -> Any:
        return self.builder.bitcast(self.module.get_global(name), BYTES)

    def byte(self, name: str, index: Any) -> Any:
        return self.builder.gep(self.area(name), [index], source_etype=BYTE)

    def scratch(self, size: int) -> Any:
        """Bytes on the stack; to be asked for at the start of the function."""
        return self.builder.bitcast(self.builder.alloca(WORD, size // 8), BYTES)

    def variable(self) -> Any:
        """A number of this function that changes, 0 at first; to be asked for at its start."""
        place = self.builder.alloca(WORD)
        self.builder.store(WORD(0), place)
        return place

    def address(self, name: str) -> Any:
        """A function of the module, as bytes."""
        return self.builder.bitcast(self.module.get_global(name), BYTES)

    def call(self, name: str, *args: Any) -> Any:
        if name not in self.module.globals:
            result, *parameters = EXTERNALS[name]
            ir.Function(self.module, ir.FunctionType(result, parameters), name)
        function = self.module.get_global(name)
        types = function.ftype.args
        return self.builder.call(function, [_as(type_, arg) for type_, arg in zip(types, args, strict=True)])

    def is_(self, left: Any, sign: str, right: Any) -> Any:
        return self.builder.icmp_signed(sign, left, _as(left.type, right))

    def masked(self, value: Any, mask: int) -> Any:
        return self.builder.and_(value, word(mask))

    def give(self, value: Any = None) -> None:
        """Return that value, or nothing."""
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(_as(self.function.ftype.return_type, value))

    @contextmanager
    def when(self, condition: Any) -> Iterator[None]:
        with self.builder.if_then(condition):
            yield

    @contextmanager
    def repeat(self) -> Iterator[None]:
        """Again and again, until something inside returns."""
        head = self.builder.append_basic_block()
        self.builder.branch(head)
        self.builder.position_at_end(head)
        yield
        self.builder.branch(head)

    @contextmanager
    def count(self, end: Any) -> Iterator[Any]:
        """For the numbers from 0 to below `end`, which is at least 1."""
        before = self.builder.block
        head = self.builder.append_basic_block()
        self.builder.branch(head)
        self.builder.position_at_end(head)
        number = self.builder.phi(WORD)
        yield number
        following = self.builder.add(number, WORD(1))
        number.add_incoming(WORD(0), before)
        number.add_incoming(following, self.builder.block)
        after = self.builder.append_basic_block()
        self.builder.cbranch(self.is_(following, "<", end), head, after)
        self.builder.position_at_end(after)


def _as(type_: ir.Type, value: Any) -> Any:
    return value if isinstance(value, ir.Value) else ir.Constant(type_, value)
