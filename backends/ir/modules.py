"""Modules of LLVM IR as text: functions, their blocks, global variables, metadata."""

from __future__ import annotations

import itertools
from typing import Any

from func.backends.ir.ir_types import Constant, FunctionType, PointerType, Type, Value

STACK_ALIGNMENT = 16
"""Bytes to which the stack of every function is aligned, on x86-64 and on AArch64."""


class Argument(Value):
    """An argument of a function."""

    __slots__ = ("attributes",)

    def __init__(self, kind: Any, text: str) -> None:
        super().__init__(kind, text)
        self.attributes: list[str] = []

    def add_attribute(self, name: str) -> None:
        """Promise something about the argument, such as "noalias"."""
        self.attributes.append(name)


class Phi(Value):
    """A value that depends on the block from which control came."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Any, text: str) -> None:
        super().__init__(kind, text)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Set the value for control that comes from a block."""
        if value.type is not self.type:
            raise ValueError(f"a phi of {self.type} cannot be {value.type}")
        self.incoming.append((value, block))

    def line(self) -> str:
        """The instruction."""
        pairs = ", ".join([f"[{value.text}, %{block.name}]" for value, block in self.incoming])
        return f"  {self.text} = phi {self.type.text} {pairs}"


class Switch:
    """A jump by the value of an integer."""

    __slots__ = ("cases", "default", "value")

    def __init__(self, value: Value, default: Block) -> None:
        self.value = value
        self.default = default
        self.cases: list[tuple[Any, Block]] = []

    def add_case(self, value: Any, block: Block) -> None:
        """Jump to the block for a constant."""
        self.cases.append((value if isinstance(value, Value) else Constant(self.value.type, value), block))

    def line(self) -> str:
        """The instruction."""
        cases = " ".join([f"{value}, label %{block.name}" for value, block in self.cases])
        return f"  switch {self.value}, label %{self.default.name} [{cases}]"


class Block:
    """A basic block: lines, and instructions whose line is complete only when the block is printed."""

    __slots__ = ("function", "is_terminated", "lines", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function = function
        self.name = name
        self.lines: list[Any] = []
        self.is_terminated = False

    def text(self) -> str:
        """The label and the lines."""
        lines = [line if type(line) is str else line.line() for line in self.lines]
        return f"{self.name}:\n" + "\n".join(lines)


class Function(Value):
    """A function of a module; without blocks it is a declaration."""

    __slots__ = ("args", "attributes", "blocks", "function_type", "linkage", "module", "name")

    def __init__(self, module: Module, kind: FunctionType, name: str) -> None:
        super().__init__(PointerType(), f'@"{name}"')
        self.module = module
        self.function_type = kind
        self.name = name
        self.args = [Argument(arg_type, f"%a{place}") for place, arg_type in enumerate(kind.args)]
        self.attributes: set[str] = set()
        self.linkage = ""
        self.blocks: list[Block] = []
        module.add_global(self)

    @property
    def return_value(self) -> Value:
        """A value of the type of the result."""
        return Value(self.function_type.return_type, "")

    def append_basic_block(self, name: str = "") -> Block:
        """A new block after the others."""
        block = Block(self, f"{name or 'b'}.{self.module.number()}")
        self.blocks.append(block)
        return block

    def line(self) -> str:
        """The declaration or definition."""
        args = [" ".join([arg.type.text, *arg.attributes, arg.text]) for arg in self.args]
        if self.function_type.var_arg:
            args.append("...")
        head = f"{self.function_type.return_type.text} {self.text}({', '.join(args)})"
        if self.linkage and self.blocks:
            head = f"{self.linkage} {head}"
        if self.attributes:
            head = f"{head} {' '.join(sorted(self.attributes))}"
        if not self.blocks:
            return f"declare {head}"
        if self.module.vector_bytes > STACK_ALIGNMENT:
            head = f"{head} alignstack({self.module.vector_bytes})"
        return f"define {head} {{\n" + "\n".join([block.text() for block in self.blocks]) + "\n}"


class GlobalVariable(Value):
    """Memory of a module."""

    __slots__ = ("align", "global_constant", "initializer", "linkage", "module", "name", "unnamed_addr", "value_type")

    def __init__(self, module: Module, kind: Type, name: str) -> None:
        super().__init__(PointerType(), f'@"{name}"')
        self.module = module
        self.value_type = kind
        self.name = name
        self.linkage = ""
        self.global_constant = self.unnamed_addr = False
        self.initializer: Any = None
        self.align: int | None = None
        module.add_global(self)

    def line(self) -> str:
        """The definition, or without an initial value the declaration."""
        words = [self.linkage or ("" if self.initializer is not None else "external")]
        words.append("unnamed_addr" if self.unnamed_addr else "")
        words.append("constant" if self.global_constant else "global")
        words.append(self.value_type.text)
        words.append("" if self.initializer is None else self.initializer.text)
        align = f", align {self.align}" if self.align else ""
        return f"{self.text} = {' '.join(filter(None, words))}{align}"


class Metadata:
    """A node of the module's metadata."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Module:
    """Functions and variables that are compiled together; its text is `str(module)`."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.vector_bytes = 0
        """The width of the vector registers that the functions use. They align their stacks to it: LLVM does not, once
        it uses the necessary register otherwise. A vector on an unaligned stack spans two cache lines, which made loops
        around an elementary function take up to twice as long.
        """
        self.triple = ""
        self.data_layout = ""
        self.globals: dict[str, Any] = {}
        self.number = itertools.count().__next__
        self._metadata: dict[str, Metadata] = {}

    def get_global(self, name: str) -> Any:
        """The function or variable of a name. Raises: KeyError."""
        return self.globals[name]

    def add_global(self, value: Any) -> None:
        """Add a new function or variable. Raises: ValueError for a name that the module has."""
        if value.name in self.globals:
            raise ValueError(f"the module has a {value.name!r} already")
        self.globals[value.name] = value

    def add_metadata(self, parts: Any) -> Metadata:
        """A node of strings and constants; the same node for the same parts."""
        words = [f'!"{part}"' if isinstance(part, str) else str(part) for part in parts]
        text = f"!{{{', '.join(words)}}}"
        node = self._metadata.get(text)
        if node is None:
            node = self._metadata[text] = Metadata(f"!{len(self._metadata)}")
        return node

    def __str__(self) -> str:
        lines = [f'source_filename = "{self.name}"'] if self.name else []
        lines += [f'target datalayout = "{self.data_layout}"'] if self.data_layout else []
        lines += [f'target triple = "{self.triple}"'] if self.triple else []
        lines += [definition.line() for definition in self.globals.values()]
        lines += [f"{node.text} = {text}" for text, node in self._metadata.items()]
        return "\n".join(lines) + "\n"
