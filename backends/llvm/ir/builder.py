"""LLVM IR written as text at once: the part of `llvmlite.ir` that native programs use, under its names.

An instruction is a line from the moment it is emitted, and a value is its type with the text that stands for it: there
are no objects of instructions, no scopes of names and no second walk for printing. That is many times faster than
llvmlite's own builder, which took a quarter of a first call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from func.backends.llvm.ir.types import (
    IntType,
    LiteralStructType,
    PointerType,
    Type,
    VectorType,
)
from func.backends.llvm.ir.values import (
    Block,
    Constant,
    Function,
    GlobalVariable,
    Module,
    Phi,
    Switch,
    Value,
)

POINTER = PointerType()
INT = IntType(32)
LIKELY = {True: (99, 1), False: (1, 99)}
"""How often a branch is taken and not taken, told to LLVM."""

_SIGNED = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_UNSIGNED = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}
_ORDERED = {"==": "oeq", "!=": "one", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "ord": "ord", "uno": "uno"}
_UNORDERED = {"==": "ueq", "!=": "une", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "ord": "ord", "uno": "uno"}


def _binary(op: str) -> Callable[..., Value]:
    """The method of an instruction on two values of one type."""

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
    """The method of a conversion, which is none for a value of the type itself."""

    def emit(self: IRBuilder, value: Value, kind: Type, name: str = "") -> Value:
        if value.type is kind:
            return value
        out = Value(kind, f"%v{self.number()}")
        self.add_line(f"  {out.text} = {op} {value.type.text} {value.text} to {kind.text}")
        return out

    return emit


def _compare(op: str, words: dict[str, str]) -> Callable[..., Value]:
    """The method of a comparison."""

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

    >>> from func.backends.llvm.ir import Function, FunctionType, IntType, Module
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

    # --- places -------------------------------------------------------------------------------------------------

    @property
    def basic_block(self) -> Block:
        """The block that is written to."""
        return self.block

    @property
    def function(self) -> Function:
        """The function that is written to."""
        return self.block.function

    @property
    def module(self) -> Module:
        """The module that is written to."""
        return self.block.function.module

    def position_at_end(self, block: Block) -> None:
        """Go on at the end of a block."""
        self.block = block
        self.add_line = block.lines.append
        self.number = block.function.module.number

    def append_basic_block(self, name: str = "") -> Block:
        """A new block of the function, which is not gone to."""
        return self.block.function.append_basic_block(name)

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """Write at the end of another block inside, before its jump if it has one."""
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
        """Write in the function's first block inside."""
        return self.goto_block(self.block.function.blocks[0])

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[Block]:
        """What is written inside runs where the condition holds."""
        inside, after = self.append_basic_block("then"), self.append_basic_block("after")
        self._fork(condition, inside, after, likely)
        with self._arm(inside, after):
            yield after
        self.position_at_end(after)

    @contextmanager
    def if_else(self, condition: Value, likely: bool | None = None) -> Iterator[tuple[Any, Any]]:
        """A pair of contexts: where the condition holds, and where it does not."""
        inside, other, after = [self.append_basic_block(name) for name in ("then", "else", "after")]
        self._fork(condition, inside, other, likely)
        yield self._arm(inside, after), self._arm(other, after)
        self.position_at_end(after)

    @contextmanager
    def _arm(self, block: Block, after: Block) -> Iterator[Block]:
        self.position_at_end(block)
        yield block
        if not self.block.is_terminated:
            self.branch(after)

    # --- jumps --------------------------------------------------------------------------------------------------

    def _end(self, line: Any) -> None:
        self.add_line(line)
        self.block.is_terminated = True

    def branch(self, block: Block) -> None:
        """Go on in a block."""
        self._end(f"  br label %{block.name}")

    def cbranch(self, condition: Value, yes: Block, no: Block) -> None:
        """Go on in one of two blocks."""
        self._fork(condition, yes, no, None)

    def _fork(self, condition: Value, yes: Block, no: Block, likely: bool | None) -> None:
        weights = ""
        if likely is not None:
            parts = ["branch_weights", *[Constant(INT, one) for one in LIKELY[likely]]]
            weights = f", !prof {self.module.add_metadata(parts).text}"
        self._end(f"  br i1 {condition.text}, label %{yes.name}, label %{no.name}{weights}")

    def switch(self, value: Value, default: Block) -> Switch:
        """Go on in the block that is added for the value."""
        made = Switch(value, default)
        self._end(made)
        return made

    def ret(self, value: Value) -> None:
        """Leave the function with a value."""
        self._end(f"  ret {value.type.text} {value.text}")

    def ret_void(self) -> None:
        """Leave the function."""
        self._end("  ret void")

    def unreachable(self) -> None:
        """Say that this is never reached."""
        self._end("  unreachable")

    # --- arithmetic ---------------------------------------------------------------------------------------------

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
        """All bits turned over."""
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
        """A value that depends on where the block is reached from."""
        made = Phi(kind, f"%v{self.number()}")
        self.add_line(made)
        return made

    def call(self, function: Function, args: Sequence[Value], name: str = "") -> Value:
        """The result of a function."""
        known = function.function_type
        given = [one.type for one in args]
        if given[: len(known.args)] != known.args or (len(given) > len(known.args) and not known.var_arg):
            raise TypeError(f"{function.name} takes {known.text}, not {', '.join(map(str, given))}")
        result = known.text if known.var_arg else known.return_type.text
        text = f"call {result} {function.text}({', '.join([f'{one.type.text} {one.text}' for one in args])})"
        if known.return_type.text != "void":
            return self._value(known.return_type, text)
        self.add_line(f"  {text}")
        return Value(known.return_type, "")

    # --- parts --------------------------------------------------------------------------------------------------

    def extract_element(self, vector: Value, place: Value, name: str = "") -> Value:
        """One lane."""
        kind = vector.type
        return self._value(kind.element, f"extractelement {kind.text} {vector.text}, {place.type.text} {place.text}")

    def insert_element(self, vector: Value, value: Value, place: Value, name: str = "") -> Value:
        """A vector with another lane."""
        kind = vector.type
        if value.type is not kind.element:
            raise TypeError(f"{value.type} is no lane of {kind}")
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
        """A part of an array or struct."""
        kind = whole.type
        part = kind.elements[place] if isinstance(kind, LiteralStructType) else kind.element
        return self._value(part, f"extractvalue {kind.text} {whole.text}, {place}")

    def insert_value(self, whole: Value, value: Value, place: int, name: str = "") -> Value:
        """An array or struct with another part."""
        kind = whole.type
        return self._value(kind, f"insertvalue {kind.text} {whole.text}, {value.type.text} {value.text}, {place}")

    # --- memory -------------------------------------------------------------------------------------------------

    def alloca(self, kind: Type, size: int | None = None, name: str = "") -> Value:
        """Memory of the function's frame."""
        count = "" if size is None else f", i32 {size}"
        return self._value(POINTER, f"alloca {kind.text}{count}")

    def load(self, pointer: Value, name: str = "", align: int | None = None, typ: Type | None = None) -> Value:
        """What is in memory, a value of the type `typ`."""
        if typ is None:
            raise TypeError("an address does not say what is there: load takes the type as typ")
        tail = f", align {align}" if align else ""
        return self._value(typ, f"load {typ.text}, ptr {pointer.text}{tail}")

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Write to memory."""
        tail = f", align {align}" if align else ""
        self.add_line(f"  store {value.type.text} {value.text}, ptr {pointer.text}{tail}")

    def gep(
        self,
        pointer: Value,
        places: Sequence[Value],
        inbounds: bool = False,
        name: str = "",
        source_etype: Type | None = None,
    ) -> Value:
        """The address of an element of memory that is seen as elements of the type `source_etype`."""
        if source_etype is None:
            if not isinstance(pointer, GlobalVariable):
                raise TypeError("an address does not say what is there: gep takes the type as source_etype")
            source_etype = pointer.value_type
        steps = ", ".join([f"{one.type.text} {one.text}" for one in places])
        word = "getelementptr inbounds" if inbounds else "getelementptr"
        return self._value(POINTER, f"{word} {source_etype.text}, ptr {pointer.text}, {steps}")
