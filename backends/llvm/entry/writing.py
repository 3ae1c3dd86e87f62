"""Writing IR for entries: fields of objects, records of tables, calls into the C interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from llvmlite import ir

from func.backends.llvm.entry import capi
from func.backends.llvm.entry.layout import Head

POINTER: Final = ir.PointerType()
BIT: Final = ir.IntType(1)
BYTE: Final = ir.IntType(8)
INT: Final = ir.IntType(32)
WORD: Final = ir.IntType(64)
DOUBLE: Final = ir.DoubleType()
VOID: Final = ir.VoidType()
NULL: Final = ir.Constant(POINTER, None)
WORD_SIZE: Final = 8
_LIKELY: Final = (2000, 1)


def word(value: int) -> Any:
    """A 64-bit constant."""
    return ir.Constant(WORD, value)


def number(value: int) -> Any:
    """A C int."""
    return ir.Constant(INT, value)


class Code:
    """A new function in a module, and the instructions in it.

    Its first argument is the address of the entry's table, if not said otherwise.
    """

    def __init__(self, module: Any, name: str, returns: Any, arguments: list[Any], inline: bool = True) -> None:
        self.function = ir.Function(module, ir.FunctionType(returns, arguments), name)
        self.function.linkage = "internal"
        self.function.attributes.add("nounwind")
        self.function.attributes.add("alwaysinline" if inline else "noinline")
        self.builder = ir.IRBuilder(self.function.append_basic_block("start"))
        self.table: Any = self.function.args[0]

    def at(self, pointer: Any, offset: Any) -> Any:
        """The address some bytes further on."""
        place = word(offset) if isinstance(offset, int) else offset
        return self.builder.gep(pointer, [place], inbounds=True, source_etype=BYTE)

    def load(self, pointer: Any, offset: int = 0, kind: Any = POINTER) -> Any:
        return self.builder.load(self.at(pointer, offset) if offset else pointer, typ=kind)

    def store(self, value: Any, pointer: Any, offset: int = 0) -> None:
        self.builder.store(value, self.at(pointer, offset) if offset else pointer)

    def field(self, record: Any, place: int, kind: Any = WORD) -> Any:
        """A word of a record."""
        return self.load(record, WORD_SIZE * place, kind)

    def head(self, place: int, kind: Any = WORD) -> Any:
        """A word at the start of the table."""
        return self.field(self.table, place, kind)

    def item(self, words: Any, index: Any) -> Any:
        """The address of a word in an array."""
        return self.builder.gep(words, [index], inbounds=True, source_etype=WORD)

    def equal(self, left: Any, right: Any) -> Any:
        return self.builder.icmp_unsigned("==", left, right)

    def different(self, left: Any, right: Any) -> Any:
        return self.builder.icmp_unsigned("!=", left, right)

    def block(self, name: str) -> Any:
        return self.function.append_basic_block(name)

    def goto(self, block: Any) -> None:
        """Writes on at the end of a block."""
        self.builder.position_at_end(block)

    def require(self, condition: Any, otherwise: Any) -> None:
        """Goes on only where a condition holds."""
        onwards = self.block("onwards")
        self.builder.cbranch(condition, onwards, otherwise).set_weights(_LIKELY)
        self.goto(onwards)

    def returning(self, value: Any) -> Any:
        """A block that returns a value."""
        block = self.block("returning")
        with self.builder.goto_block(block):
            self.builder.ret(value)
        return block

    def call(self, name: str, *arguments: Any, returns: Any = POINTER) -> Any:
        """Calls a function of the C interface."""
        functions = self.head(Head.FUNCTIONS, POINTER)
        return self.call_address(self.field(functions, capi.FUNCTIONS.index(name)), *arguments, returns=returns)

    def call_address(self, address: Any, *arguments: Any, returns: Any = POINTER) -> Any:
        kind = ir.FunctionType(returns, [argument.type for argument in arguments])
        return self.builder.call(self.builder.inttoptr(address, kind.as_pointer()), arguments)

    def room(self, kind: Any) -> Any:
        """The address of memory on the stack."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def loop(self, count: Any, body: Callable[[Any], None]) -> None:
        """Runs `body` for index 0, 1 … count - 1."""

        def step(index: Any) -> Any:
            body(index)
            return self.builder.add(index, word(1))

        self._repeat(word(0), count, step)

    def records(self, first: Any, length: Any, body: Callable[[Any], None]) -> None:
        """Runs `body` for the records in so many bytes, each of which starts with its own length."""

        def step(offset: Any) -> Any:
            record = self.at(first, offset)
            body(record)
            return self.builder.add(offset, self.field(record, 0))

        self._repeat(word(0), length, step)

    def _repeat(self, start: Any, end: Any, step: Callable[[Any], Any]) -> None:
        """Runs `step`, which gives the next state, while the state is below its end."""
        before, head, inside, after = self.builder.block, self.block("head"), self.block("inside"), self.block("after")
        self.builder.branch(head)
        self.goto(head)
        state = self.builder.phi(WORD)
        state.add_incoming(start, before)
        self.builder.cbranch(self.builder.icmp_signed("<", state, end), inside, after)
        self.goto(inside)
        state.add_incoming(step(state), self.builder.block)
        self.builder.branch(head)
        self.goto(after)

    def choose(self, value: Any, cases: Mapping[int, Callable[[], Any]]) -> Any:
        """What the case for a word gives, a pointer or nothing; there is no other case."""
        after, nowhere = self.block("chosen"), self.block("nowhere")
        with self.builder.goto_block(nowhere):
            self.builder.unreachable()
        switch = self.builder.switch(value, nowhere)
        ends = []
        for case, body in cases.items():
            block = self.block("case")
            switch.add_case(word(case), block)
            self.goto(block)
            result = body()
            ends.append((result, self.builder.block))
            self.builder.branch(after)
        self.goto(after)
        if ends[0][0] is None:
            return None
        chosen = self.builder.phi(POINTER)
        for result, block in ends:
            chosen.add_incoming(result, block)
        return chosen

    def when(self, condition: Any, body: Callable[[], None]) -> None:
        """Runs `body` where a condition holds."""
        inside, after = self.block("inside"), self.block("after")
        self.builder.cbranch(condition, inside, after)
        self.goto(inside)
        body()
        self.builder.branch(after)
        self.goto(after)

    def when_else(self, condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """The pointer that one of two bodies gives."""
        return self.choose(self.builder.zext(condition, WORD), {1: yes, 0: no})

    def add_reference(self, frame: Any, value: Any) -> None:
        """Adds a reference to those that the call owns."""
        count = self.load(frame, 0, WORD)
        self.builder.store(value, self.item(self.at(frame, self.head(Head.REFERENCES)), count))
        self.store(self.builder.add(count, word(1)), frame)

    def increment(self, value: Any) -> None:
        self.call("Py_IncRef", value, returns=VOID)

    def decrement(self, value: Any) -> None:
        """Drops a reference, which may be NULL."""
        self.call("Py_DecRef", value, returns=VOID)
