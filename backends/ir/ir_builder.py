"""A builder of LLVM IR under the names of `llvmlite.ir`.

An instruction is a line of text from the start, and a value is its type with its text as an operand. There are no
objects for instructions, no scopes of names, and no second walk for printing. That is many times faster than llvmlite's
own builder, which took a quarter of a first call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from func.backends.ir.ir_types import (
    Constant,
    FunctionType,
    IntType,
    LiteralStructType,
    PointerType,
    Type,
    Value,
    VectorType,
)
from func.backends.ir.modules import Block, Function, GlobalVariable, Module, Phi, Switch

POINTER = PointerType()
INT = IntType(32)
BIT = IntType(1)
LIKELY: dict[bool | None, tuple[int, int]] = {True: (99, 1), False: (1, 99)}
"""Weights of the two ways of a branch that is likely, and of one that is unlikely."""

_SIGNED = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_UNSIGNED = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}
_ORDERED = {"==": "oeq", "!=": "one", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "ord": "ord", "uno": "uno"}
_UNORDERED = {"==": "ueq", "!=": "une", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "ord": "ord", "uno": "uno"}


def _binary(op: str) -> Callable[..., Value]:
    """A method that emits an instruction on two values of one type."""

    def emit(self: IRBuilder, lhs: Value, rhs: Value, name: str = "", flags: Sequence[str] = ()) -> Value:
        kind = lhs.type
        if kind is not rhs.type:
            raise ValueError(f"{op} of {kind} and {rhs.type}")
        word = f"{op} {' '.join(flags)}" if flags else op
        out = Value(kind, f"%v{self.number()}")
        self.add_line(f"  {out.text} = {word} {kind.text} {lhs.text}, {rhs.text}")
        return out

    return emit


def _cast(op: str) -> Callable[..., Value]:
    """A method that emits a conversion; a value of the type itself needs none."""

    def emit(self: IRBuilder, value: Value, kind: Type, name: str = "") -> Value:
        if value.type is kind:
            return value
        out = Value(kind, f"%v{self.number()}")
        self.add_line(f"  {out.text} = {op} {value.type.text} {value.text} to {kind.text}")
        return out

    return emit


def _compare(op: str, words: dict[str, str]) -> Callable[..., Value]:
    """A method that emits a comparison."""

    def emit(self: IRBuilder, how: str, lhs: Value, rhs: Value, name: str = "", flags: Sequence[str] = ()) -> Value:
        kind = lhs.type
        if kind is not rhs.type:
            raise ValueError(f"{op} of {kind} and {rhs.type}")
        word = f"{op} {' '.join(flags)}" if flags else op
        out = Value(kind.truth, f"%v{self.number()}")
        self.add_line(f"  {out.text} = {word} {words[how]} {kind.text} {lhs.text}, {rhs.text}")
        return out

    return emit


class IRBuilder:
    """Writes instructions at the end of a block.

    >>> from func.backends.ir import Function, FunctionType, IntType, Module
    >>> module = Module()
    >>> function = Function(module, FunctionType(IntType(32), [IntType(32)]), "twice")
    >>> builder = IRBuilder(function.append_basic_block("entry"))
    >>> builder.ret(builder.add(function.args[0], function.args[0]))
    >>> print(module)
    define i32 @"twice"(i32 %a0) {
    entry.0:
      %v1 = add i32 %a0, %a0
      ret i32 %v1
    }
    <BLANKLINE>
    """

    __slots__ = ("add_line", "block", "number")

    block: Block
    add_line: Callable[[Any], None]
    number: Callable[[], int]

    def __init__(self, block: Block | None = None) -> None:
        if block is not None:
            self.position_at_end(block)

    @property
    def function(self) -> Function:
        """The function of the current block."""
        return self.block.function

    @property
    def module(self) -> Module:
        """The module of the current block."""
        return self.block.function.module

    def position_at_end(self, block: Block) -> None:
        """Make a block the current one."""
        self.block = block
        self.add_line = block.lines.append
        self.number = block.function.module.number

    def append_basic_block(self, name: str = "") -> Block:
        """A new block of the function; the current block stays."""
        return self.block.function.append_basic_block(name)

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """Inside, write at the end of another block, before its jump if it has one."""
        before = self.block
        self.position_at_end(block)
        if block.is_terminated:
            lines = block.lines
            self.add_line = lambda line: lines.insert(len(lines) - 1, line)
        try:
            yield
        finally:
            self.position_at_end(before)

    def goto_entry_block(self) -> Any:
        """Inside, write in the function's first block."""
        return self.goto_block(self.block.function.blocks[0])

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[Block]:
        """Inside, write the code that runs if the condition holds."""
        inside, after = self.append_basic_block("then"), self.append_basic_block("after")
        self.cbranch(condition, inside, after, LIKELY.get(likely))
        with self._arm(inside, after):
            yield after
        self.position_at_end(after)

    @contextmanager
    def if_else(self, condition: Value, likely: bool | None = None) -> Iterator[tuple[Any, Any]]:
        """A pair of contexts: for a condition that holds, and for one that does not."""
        inside, other, after = [self.append_basic_block(name) for name in ("then", "else", "after")]
        self.cbranch(condition, inside, other, LIKELY.get(likely))
        yield self._arm(inside, after), self._arm(other, after)
        self.position_at_end(after)

    @contextmanager
    def _arm(self, block: Block, after: Block) -> Iterator[Block]:
        self.position_at_end(block)
        yield block
        if not self.block.is_terminated:
            self.branch(after)

    @contextmanager
    def repeat(self) -> Iterator[None]:
        """Inside, write the code that runs again and again until the function returns."""
        head = self.append_basic_block("repeat")
        self.branch(head)
        self.position_at_end(head)
        yield
        self.branch(head)

    @contextmanager
    def loop(self, count: Value) -> Iterator[Value]:
        """Inside, write the code that runs for the index 0, 1 … count - 1, which may be none."""
        with self.while_less(count) as index:
            yield index
            index.add_incoming(self.add(index, index.type(1)), self.block)

    @contextmanager
    def while_less(self, end: Value) -> Iterator[Phi]:
        """Inside, write the code that runs while a counter from 0 on is less than `end`. The code ends with
        `counter.add_incoming(next_value, builder.block)`.
        """
        before = self.block
        head, inside, after = [self.append_basic_block(name) for name in ("head", "inside", "after")]
        self.branch(head)
        self.position_at_end(head)
        counter = self.phi(end.type)
        counter.add_incoming(end.type(0), before)
        self.cbranch(self.icmp_signed("<", counter, end), inside, after)
        self.position_at_end(inside)
        yield counter
        self.branch(head)
        self.position_at_end(after)

    def _end(self, line: Any) -> None:
        self.add_line(line)
        self.block.is_terminated = True

    def branch(self, block: Block) -> None:
        """Jump to a block."""
        self._end(f"  br label %{block.name}")

    def cbranch(self, condition: Value, yes: Block, no: Block, weights: tuple[int, int] | None = None) -> None:
        """Jump to one of two blocks; `weights` are their expected frequencies for LLVM."""
        profile = ""
        if weights is not None:
            parts = ["branch_weights", *[Constant(INT, weight) for weight in weights]]
            profile = f", !prof {self.module.add_metadata(parts).text}"
        self._end(f"  br i1 {condition.text}, label %{yes.name}, label %{no.name}{profile}")

    def switch(self, value: Value, default: Block) -> Switch:
        """Jump to the block that is added for the value."""
        instruction = Switch(value, default)
        self._end(instruction)
        return instruction

    def ret(self, value: Value) -> None:
        """Return a value."""
        self._end(f"  ret {value.type.text} {value.text}")

    def ret_void(self) -> None:
        """Return from a function without a result."""
        self._end("  ret void")

    def unreachable(self) -> None:
        """Promise that control never gets here."""
        self._end("  unreachable")

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    sdiv, udiv, srem, urem = _binary("sdiv"), _binary("udiv"), _binary("srem"), _binary("urem")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    fadd, fsub, fmul, fdiv, frem = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv"), _binary("frem")
    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    fptrunc, fpext = _cast("fptrunc"), _cast("fpext")
    fptosi, fptoui, sitofp, uitofp = _cast("fptosi"), _cast("fptoui"), _cast("sitofp"), _cast("uitofp")
    bitcast, ptrtoint, inttoptr = _cast("bitcast"), _cast("ptrtoint"), _cast("inttoptr")
    icmp_signed, icmp_unsigned = _compare("icmp", _SIGNED), _compare("icmp", _UNSIGNED)
    fcmp_ordered, fcmp_unordered = _compare("fcmp", _ORDERED), _compare("fcmp", _UNORDERED)

    def _value(self, kind: Any, text: str) -> Value:
        """The value of an instruction."""
        out = Value(kind, f"%v{self.number()}")
        self.add_line(f"  {out.text} = {text}")
        return out

    def fneg(self, value: Value, name: str = "", flags: Sequence[str] = ()) -> Value:
        """The number with the other sign."""
        word = f"fneg {' '.join(flags)}" if flags else "fneg"
        return self._value(value.type, f"{word} {value.type.text} {value.text}")

    def neg(self, value: Value) -> Value:
        """The negative integer."""
        return self.sub(Constant(value.type, None), value)

    def not_(self, value: Value) -> Value:
        """All bits inverted."""
        kind = value.type
        ones = [-1] * kind.count if isinstance(kind, VectorType) else -1
        return self.xor(value, Constant(kind, ones))

    def select(self, condition: Value, yes: Value, no: Value, name: str = "", flags: Sequence[str] = ()) -> Value:
        """One of two values."""
        kind = yes.type
        if kind is not no.type:
            raise ValueError(f"select of {kind} and {no.type}")
        word = f"select {' '.join(flags)}" if flags else "select"
        text = f"{word} {condition.type.text} {condition.text}, {kind.text} {yes.text}, {kind.text} {no.text}"
        return self._value(kind, text)

    def phi(self, kind: Type, name: str = "") -> Phi:
        """A value that depends on the block from which control came."""
        value = Phi(kind, f"%v{self.number()}")
        self.add_line(value)
        return value

    def call(self, function: Function, args: Sequence[Value], name: str = "") -> Value:
        """The result of a function of a module."""
        return self.call_pointer(function, function.function_type, args)

    def call_pointer(self, function: Value, kind: FunctionType, args: Sequence[Value], tail: bool = False) -> Value:
        """The result of the function of a type at an address; `tail`: it takes the place of the caller's frame."""
        types = [arg.type for arg in args]
        if types[: len(kind.args)] != kind.args or (len(types) > len(kind.args) and not kind.var_arg):
            name = function.name if isinstance(function, Function) else f"the function at {function.text}"
            raise TypeError(f"{name} takes {kind.text}, not {', '.join(map(str, types))}")
        result = kind.text if kind.var_arg else kind.return_type.text
        word = "tail call" if tail else "call"
        text = f"{word} {result} {function.text}({', '.join([f'{arg.type.text} {arg.text}' for arg in args])})"
        if kind.return_type.text != "void":
            return self._value(kind.return_type, text)
        self.add_line(f"  {text}")
        return Value(kind.return_type, "")

    def extract_element(self, vector: Value, place: Value, name: str = "") -> Value:
        """One lane."""
        kind = vector.type
        return self._value(kind.element, f"extractelement {kind.text} {vector.text}, {place.type.text} {place.text}")

    def insert_element(self, vector: Value, value: Value, place: Value, name: str = "") -> Value:
        """A vector with another lane."""
        kind = vector.type
        if value.type is not kind.element:
            raise TypeError(f"{value.type} is not the type of the lanes of {kind}")
        text = f"{kind.text} {vector.text}, {value.type.text} {value.text}, {place.type.text} {place.text}"
        return self._value(kind, f"insertelement {text}")

    def shuffle_vector(self, x: Value, y: Value, mask: Value, name: str = "") -> Value:
        """Lanes of two vectors."""
        kind = x.type
        if kind is not y.type:
            raise TypeError(f"shuffle of {kind} and {y.type}")
        text = f"shufflevector {kind.text} {x.text}, {kind.text} {y.text}, {mask.type.text} {mask.text}"
        return self._value(VectorType(kind.element, mask.type.count), text)

    def extract_value(self, whole: Value, place: int, name: str = "") -> Value:
        """An element of an array or struct."""
        kind = whole.type
        element = kind.elements[place] if isinstance(kind, LiteralStructType) else kind.element
        return self._value(element, f"extractvalue {kind.text} {whole.text}, {place}")

    def insert_value(self, whole: Value, value: Value, place: int, name: str = "") -> Value:
        """An array or struct with another element."""
        kind = whole.type
        return self._value(kind, f"insertvalue {kind.text} {whole.text}, {value.type.text} {value.text}, {place}")

    def alloca(self, kind: Type, size: int | Value | None = None, name: str = "", align: int | None = None) -> Value:
        """Memory of the function's frame."""
        count = "" if size is None else f", i32 {size}" if isinstance(size, int) else f", {size}"
        tail = f", align {align}" if align else ""
        return self._value(POINTER, f"alloca {kind.text}{count}{tail}")

    def load(self, pointer: Value, name: str = "", align: int | None = None, typ: Type | None = None) -> Value:
        """The value in memory, of the type `typ`."""
        if typ is None:
            raise TypeError("an address does not say what it points to: load takes the type as typ")
        tail = f", align {align}" if align else ""
        return self._value(typ, f"load {typ.text}, ptr {pointer.text}{tail}")

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Write to memory."""
        tail = f", align {align}" if align else ""
        self.add_line(f"  store {value.type.text} {value.text}, ptr {pointer.text}{tail}")

    def load_atomic(self, pointer: Value, ordering: str, align: int, name: str = "", typ: Type | None = None) -> Value:
        """The value in memory that threads share, of the type `typ` or of the global variable."""
        kind = typ or _pointee(pointer, "load_atomic takes the type as typ")
        return self._value(kind, f"load atomic {kind.text}, ptr {pointer.text} {ordering}, align {align}")

    def store_atomic(self, value: Value, pointer: Value, ordering: str, align: int) -> None:
        """Write to memory that threads share."""
        self.add_line(f"  store atomic {value.type.text} {value.text}, ptr {pointer.text} {ordering}, align {align}")

    def atomic_rmw(self, op: str, pointer: Value, value: Value, ordering: str, name: str = "") -> Value:
        """The value that was in memory before the operation `op` changed it."""
        text = f"atomicrmw {op} ptr {pointer.text}, {value.type.text} {value.text} {ordering}"
        return self._value(value.type, text)

    def cmpxchg(
        self,
        pointer: Value,
        expected: Value,
        value: Value,
        ordering: str,
        failordering: str | None = None,
        name: str = "",
    ) -> Value:
        """A struct of the value that was in memory, and whether it was the expected one and `value` has replaced it."""
        kind = value.type
        if kind is not expected.type:
            raise ValueError(f"cmpxchg of {expected.type} and {kind}")
        text = f"cmpxchg ptr {pointer.text}, {kind.text} {expected.text}, {kind.text} {value.text}"
        return self._value(LiteralStructType([kind, BIT]), f"{text} {ordering} {failordering or ordering}")

    def gep(
        self,
        pointer: Value,
        places: Sequence[Value],
        inbounds: bool = False,
        name: str = "",
        source_etype: Type | None = None,
    ) -> Value:
        """The address of an element, where memory is an array of elements of the type `source_etype`."""
        element = _pointee(pointer, "gep takes the type as source_etype") if source_etype is None else source_etype
        indices = ", ".join([f"{place.type.text} {place.text}" for place in places])
        word = "getelementptr inbounds" if inbounds else "getelementptr"
        return self._value(POINTER, f"{word} {element.text}, ptr {pointer.text}, {indices}")


def _pointee(pointer: Value, remedy: str) -> Any:
    """The type of the value of a global variable. Raises: TypeError for another address."""
    if not isinstance(pointer, GlobalVariable):
        raise TypeError(f"an address does not say what it points to: {remedy}")
    return pointer.value_type
