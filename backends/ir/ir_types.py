"""The types of LLVM IR, values of these types, and constants, all as text.

There is one object for each type, so types are compared by identity.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeVar

AnyType = TypeVar("AnyType", bound="Type")

Undefined = type("Undefined", (), {"__repr__": lambda self: "Undefined"})()
"""A constant of any value."""

_types: dict[Any, Any] = {}
"""All types of this process, by class and arguments."""


class Value:
    """A value: its type, and its text as an operand."""

    __slots__ = ("text", "type")
    type: Any

    def __init__(self, kind: Any, text: str) -> None:
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"


class Constant(Value):
    """A constant: a number, a list of the lanes or elements, None for zero, or Undefined.

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


class Type:
    """A type: its text, the text of its zero, and the type of the result of a comparison.

    >>> VectorType(IntType(8), 4) is VectorType(IntType(8), 4)
    True
    """

    __slots__ = ("text", "truth", "zero")
    text: str
    truth: Any
    zero: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"

    def __reduce__(self) -> Any:
        raise TypeError("types of IR belong to one process")

    def __call__(self, value: Any) -> Constant:
        """A constant of the type."""
        return Constant(self, value)

    def as_pointer(self) -> PointerType:
        """The type of addresses, which does not depend on what they point to."""
        return PointerType()

    def literal(self, value: Any) -> str:
        """The text of a constant without its type."""
        raise TypeError(f"{self.text} has no constants")


def _new_type(cls: type[AnyType], text: str, zero: str) -> AnyType:
    kind: AnyType = object.__new__(cls)
    kind.text = text
    kind.zero = zero
    kind.truth = None
    return kind


def _interned(key: Any, kind: Any) -> Any:
    """The one type of this key: another thread may have made it first."""
    return _types.setdefault(key, kind)


class VoidType(Type):
    """The result type of functions without a result."""

    __slots__ = ()

    def __new__(cls) -> VoidType:
        kind: VoidType = _types.get(cls) or _interned(cls, _new_type(cls, "void", ""))
        return kind


class PointerType(Type):
    """An address. Instructions that use it state the type of the value there."""

    __slots__ = ()

    def __new__(cls, pointee: Any = None, addrspace: int = 0) -> PointerType:
        kind: Any = _types.get(cls)
        if kind is None:
            kind = _new_type(cls, "ptr", "null")
            kind.truth = IntType(1)
            kind = _interned(cls, kind)
        return kind  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return str(value)


class IntType(Type):
    """Integers of a number of bits."""

    __slots__ = ("width",)
    width: int

    def __new__(cls, bits: int) -> IntType:
        kind: Any = _types.get(bits)
        if kind is None:
            kind = _new_type(cls, f"i{bits}", "0")
            kind.width = bits
            kind.truth = kind if bits == 1 else IntType(1)
            kind = _interned(bits, kind)
        return kind  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return str(int(value))


class _FloatingPointType(Type):
    """Floating-point numbers; the text of a constant is its bits."""

    __slots__ = ()
    name = ""

    def __new__(cls: type[AnyType]) -> AnyType:
        kind: Any = _types.get(cls)
        if kind is None:
            kind = _new_type(cls, cls.name, "0.0")  # type: ignore[attr-defined]
            kind.truth = IntType(1)
            kind = _interned(cls, kind)
        return kind  # type: ignore[no-any-return]


class HalfType(_FloatingPointType):
    """Half precision."""

    __slots__ = ()
    name = "half"
    intrinsic_name = "f16"

    def literal(self, value: Any) -> str:
        return f"0xH{struct.pack('>e', value).hex()}"


class FloatType(_FloatingPointType):
    """Single precision, whose constants have the text of doubles."""

    __slots__ = ()
    name = "float"
    intrinsic_name = "f32"

    def literal(self, value: Any) -> str:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
        return f"0x{struct.pack('>d', rounded).hex()}"


class DoubleType(_FloatingPointType):
    """Double precision."""

    __slots__ = ()
    name = "double"
    intrinsic_name = "f64"

    def literal(self, value: Any) -> str:
        return f"0x{struct.pack('>d', value).hex()}"


class _HomogeneousType(Type):
    """A number of values of one type."""

    __slots__ = ("count", "element")
    element: Any
    count: int

    def _listed(self, values: Sequence[Any]) -> str:
        if len(values) != self.count:
            raise ValueError(f"{self.text} takes {self.count} values, not {len(values)}")
        element, literal = self.element.text, self.element.literal
        return ", ".join([f"{element} {value.text if hasattr(value, 'text') else literal(value)}" for value in values])


class VectorType(_HomogeneousType):
    """Lanes that one instruction computes together."""

    __slots__ = ()

    def __new__(cls, element: Type, count: int) -> VectorType:
        key = cls, element, count
        kind: Any = _types.get(key)
        if kind is None:
            kind = _new_type(cls, f"<{count} x {element.text}>", "zeroinitializer")
            kind.element, kind.count = element, count
            kind.truth = kind if element.truth is element else VectorType(element.truth, count)
            kind = _interned(key, kind)
        return kind  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return f"<{self._listed(value)}>"


class ArrayType(_HomogeneousType):
    """Values next to each other in memory."""

    __slots__ = ()

    def __new__(cls, element: Type, count: int) -> ArrayType:
        key = cls, element, count
        kind: Any = _types.get(key)
        if kind is None:
            kind = _new_type(cls, f"[{count} x {element.text}]", "zeroinitializer")
            kind.element, kind.count = element, count
            kind = _interned(key, kind)
        return kind  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        if isinstance(value, (bytes, bytearray)):
            return 'c"' + "".join([f"\\{byte:02x}" for byte in value]) + '"'
        return f"[{self._listed(value)}]"


class LiteralStructType(Type):
    """Values of several types next to each other."""

    __slots__ = ("elements",)
    elements: tuple[Any, ...]

    def __new__(cls, elements: Sequence[Type]) -> LiteralStructType:
        key = cls, tuple(elements)
        kind: Any = _types.get(key)
        if kind is None:
            kind = _new_type(cls, f"{{{', '.join([element.text for element in elements])}}}", "zeroinitializer")
            kind.elements = tuple(elements)
            kind = _interned(key, kind)
        return kind  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        parts = zip(self.elements, value, strict=True)
        return f"{{{', '.join([f'{kind.text} {kind(part).text}' for kind, part in parts])}}}"


class FunctionType:
    """The types of a function's arguments and of its result."""

    __slots__ = ("args", "return_type", "var_arg")

    def __init__(self, return_type: Type, args: Sequence[Type], var_arg: bool = False) -> None:
        self.return_type = return_type
        self.args = list(args)
        self.var_arg = var_arg

    @property
    def text(self) -> str:
        """The type as LLVM reads it."""
        args = [kind.text for kind in self.args] + (["..."] if self.var_arg else [])
        return f"{self.return_type.text} ({', '.join(args)})"

    def __str__(self) -> str:
        return self.text
