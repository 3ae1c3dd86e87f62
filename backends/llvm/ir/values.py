"""What stands in LLVM IR as text: constants, values, blocks, functions, global variables, modules."""

from __future__ import annotations

import itertools
from typing import Any

from func.backends.llvm.ir.types import FunctionType, PointerType, Type

Undefined = type("Undefined", (), {"__repr__": lambda self: "Undefined"})()
"""A constant of any value."""


class Value:
    """A value: its type, and how it is written as an operand."""

    __slots__ = ("text", "type")
    type: Any

    def __init__(self, kind: Any, text: str) -> None:
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


class Constant(Value):
    """A constant: a number, a list of the lanes or elements, None for zero, or Undefined.

    >>> from func.backends.llvm.ir.types import IntType, VectorType
    >>> print(Constant(VectorType(IntType(8), 2), [1, 2]))
    <2 x i8> <i8 1, i8 2>
    """

    __slots__ = ()

    def __init__(self, kind: Any, value: Any) -> None:
        self.type = kind
        if value is None:
            self.text = kind.zero
        elif value is Undefined:
            self.text = "undef"
        else:
            self.text = kind.literal(value)


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
    """A value that depends on the block from which its own was reached."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Any, text: str) -> None:
        super().__init__(kind, text)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """The value when coming from a block."""
        if value.type is not self.type:
            raise ValueError(f"a phi of {self.type} cannot be {value.type}")
        self.incoming.append((value, block))

    def line(self) -> str:
        """The instruction."""
        ways = ", ".join([f"[{value.text}, %{block.name}]" for value, block in self.incoming])
        return f"  {self.text} = phi {self.type.text} {ways}"


class Switch:
    """A jump by the value of an integer."""

    __slots__ = ("cases", "default", "value")

    def __init__(self, value: Value, default: Block) -> None:
        self.value = value
        self.default = default
        self.cases: list[tuple[Any, Block]] = []

    def add_case(self, value: Any, block: Block) -> None:
        """Go to the block for a constant."""
        self.cases.append((value if isinstance(value, Value) else Constant(self.value.type, value), block))

    def line(self) -> str:
        """The instruction."""
        cases = " ".join([f"{value}, label %{block.name}" for value, block in self.cases])
        return f"  switch {self.value}, label %{self.default.name} [{cases}]"


class Block:
    """Instructions that run one after the other: lines, and what becomes a line when the block is printed."""

    __slots__ = ("function", "is_terminated", "lines", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function = function
        self.name = name
        self.lines: list[Any] = []
        self.is_terminated = False

    @property
    def parent(self) -> Function:
        """The function."""
        return self.function

    def text(self) -> str:
        """The label and the lines."""
        lines = [one if type(one) is str else one.line() for one in self.lines]
        return f"{self.name}:\n" + "\n".join(lines)


class Function(Value):
    """A function of a module, declared only as long as it has no block."""

    __slots__ = ("args", "attributes", "blocks", "function_type", "linkage", "module", "name")

    def __init__(self, module: Module, kind: FunctionType, name: str) -> None:
        super().__init__(PointerType(), f'@"{name}"')
        self.module = module
        self.function_type = kind
        self.name = name
        self.args = [Argument(one, f"%a{place}") for place, one in enumerate(kind.args)]
        self.attributes: set[str] = set()
        self.linkage = ""
        self.blocks: list[Block] = []
        module.add_global(self)

    @property
    def return_value(self) -> Value:
        """Something of the type of the result."""
        return Value(self.function_type.return_type, "")

    @property
    def entry_basic_block(self) -> Block:
        """The block where the function begins."""
        return self.blocks[0]

    @property
    def is_declaration(self) -> bool:
        """Whether there is no body."""
        return not self.blocks

    def append_basic_block(self, name: str = "") -> Block:
        """A new block, behind the others."""
        block = Block(self, f"{name or 'b'}.{self.module.number()}")
        self.blocks.append(block)
        return block

    def line(self) -> str:
        """The declaration or definition."""
        args = [" ".join([one.type.text, *one.attributes, one.text]) for one in self.args]
        if self.function_type.var_arg:
            args.append("...")
        head = f"{self.function_type.return_type.text} {self.text}({', '.join(args)})"
        if self.linkage and self.blocks:
            head = f"{self.linkage} {head}"
        if self.attributes:
            head = f"{head} {' '.join(sorted(self.attributes))}"
        if not self.blocks:
            return f"declare {head}"
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
    """An entry of the module's metadata."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Module:
    """Functions and variables that are compiled together; its text is `str(module)`."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.triple = ""
        self.data_layout = ""
        self.globals: dict[str, Any] = {}
        self.number = itertools.count().__next__
        self._metadata: dict[str, Metadata] = {}

    def get_global(self, name: str) -> Any:
        """The function or variable of a name. Raises: KeyError."""
        return self.globals[name]

    def add_global(self, value: Any) -> None:
        """Take in a new function or variable. Raises: ValueError for a name that is there."""
        if value.name in self.globals:
            raise ValueError(f"the module has a {value.name!r} already")
        self.globals[value.name] = value

    def add_metadata(self, parts: Any) -> Metadata:
        """An entry of strings and constants; the same one for the same parts."""
        words = [f'!"{part}"' if isinstance(part, str) else str(part) for part in parts]
        text = f"!{{{', '.join(words)}}}"
        found = self._metadata.get(text)
        if found is None:
            found = self._metadata[text] = Metadata(f"!{len(self._metadata)}")
        return found

    def __str__(self) -> str:
        lines = [f'source_filename = "{self.name}"'] if self.name else []
        lines += [f'target datalayout = "{self.data_layout}"'] if self.data_layout else []
        lines += [f'target triple = "{self.triple}"'] if self.triple else []
        lines += [one.line() for one in self.globals.values()]
        lines += [f"{entry.text} = {text}" for text, entry in self._metadata.items()]
        return "\n".join(lines) + "\n"
