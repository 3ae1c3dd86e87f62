"""Types of LLVM IR as text. There is one object of each, so that types are compared by identity."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from func.backends.llvm.ir.values import Constant

Made = TypeVar("Made", bound="Type")

_known: dict[Any, Any] = {}
"""All types that were made, by class and arguments."""


class Type:
    """A type: how it is written, how its zero is, and the type of a comparison's result.

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
        from func.backends.llvm.ir.values import Constant

        return Constant(self, value)

    def as_pointer(self) -> PointerType:
        """The type of addresses, which does not say what is there."""
        return PointerType()

    def literal(self, value: Any) -> str:
        """A constant as it is written without its type."""
        raise TypeError(f"{self.text} has no constants")


def _made(cls: type[Made], text: str, zero: str) -> Made:
    """A new type."""
    kind: Made = object.__new__(cls)
    kind.text = text
    kind.zero = zero
    kind.truth = None
    return kind


def _kept(key: Any, kind: Any) -> Any:
    return _known.setdefault(key, kind)


class VoidType(Type):
    """The result of functions without one."""

    __slots__ = ()

    def __new__(cls) -> VoidType:
        found: VoidType = _known.get(cls) or _kept(cls, _made(cls, "void", ""))
        return found


class PointerType(Type):
    """An address; what it points to is said where it is used."""

    __slots__ = ()

    def __new__(cls, pointee: Any = None, addrspace: int = 0) -> PointerType:
        found: Any = _known.get(cls)
        if found is None:
            found = _made(cls, "ptr", "null")
            found.truth = IntType(1)
            found = _kept(cls, found)
        return found  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return str(value)


class IntType(Type):
    """Integers of a number of bits."""

    __slots__ = ("width",)
    width: int

    def __new__(cls, bits: int) -> IntType:
        found: Any = _known.get(bits)
        if found is None:
            found = _made(cls, f"i{bits}", "0")
            found.width = bits
            found.truth = found if bits == 1 else IntType(1)
            found = _kept(bits, found)
        return found  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return str(int(value))


class _Real(Type):
    """Floating-point numbers; constants are written by their bits."""

    __slots__ = ()
    name = ""

    def __new__(cls: type[Made]) -> Made:
        found: Any = _known.get(cls)
        if found is None:
            found = _made(cls, cls.name, "0.0")  # type: ignore[attr-defined]
            found.truth = IntType(1)
            found = _kept(cls, found)
        return found  # type: ignore[no-any-return]


class HalfType(_Real):
    """Half precision."""

    __slots__ = ()
    name = "half"
    intrinsic_name = "f16"

    def literal(self, value: Any) -> str:
        return f"0xH{struct.pack('>e', value).hex()}"


class FloatType(_Real):
    """Single precision, whose constants are written as doubles."""

    __slots__ = ()
    name = "float"
    intrinsic_name = "f32"

    def literal(self, value: Any) -> str:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
        return f"0x{struct.pack('>d', rounded).hex()}"


class DoubleType(_Real):
    """Double precision."""

    __slots__ = ()
    name = "double"
    intrinsic_name = "f64"

    def literal(self, value: Any) -> str:
        return f"0x{struct.pack('>d', value).hex()}"


class _Several(Type):
    """So many values of one type."""

    __slots__ = ("count", "element")
    element: Any
    count: int

    def _listed(self, values: Sequence[Any]) -> str:
        if len(values) != self.count:
            raise ValueError(f"{self.text} takes {self.count} values, not {len(values)}")
        element, literal = self.element.text, self.element.literal
        return ", ".join([f"{element} {value.text if hasattr(value, 'text') else literal(value)}" for value in values])


class VectorType(_Several):
    """Lanes that are computed together."""

    __slots__ = ()

    def __new__(cls, element: Type, count: int) -> VectorType:
        key = cls, element, count
        found: Any = _known.get(key)
        if found is None:
            found = _made(cls, f"<{count} x {element.text}>", "zeroinitializer")
            found.element, found.count = element, count
            found.truth = found if element.truth is element else VectorType(element.truth, count)
            found = _kept(key, found)
        return found  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        return f"<{self._listed(value)}>"


class ArrayType(_Several):
    """Values next to each other in memory."""

    __slots__ = ()

    def __new__(cls, element: Type, count: int) -> ArrayType:
        key = cls, element, count
        found: Any = _known.get(key)
        if found is None:
            found = _made(cls, f"[{count} x {element.text}]", "zeroinitializer")
            found.element, found.count = element, count
            found = _kept(key, found)
        return found  # type: ignore[no-any-return]

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
        found: Any = _known.get(key)
        if found is None:
            found = _made(cls, f"{{{', '.join([one.text for one in elements])}}}", "zeroinitializer")
            found.elements = tuple(elements)
            found = _kept(key, found)
        return found  # type: ignore[no-any-return]

    def literal(self, value: Any) -> str:
        parts = zip(self.elements, value, strict=True)
        return f"{{{', '.join([f'{kind.text} {kind(part).text}' for kind, part in parts])}}}"


class FunctionType:
    """What a function takes and gives."""

    __slots__ = ("args", "return_type", "var_arg")

    def __init__(self, return_type: Type, args: Sequence[Type], var_arg: bool = False) -> None:
        self.return_type = return_type
        self.args = list(args)
        self.var_arg = var_arg

    @property
    def text(self) -> str:
        """The type as it is written."""
        args = [one.text for one in self.args] + (["..."] if self.var_arg else [])
        return f"{self.return_type.text} ({', '.join(args)})"

    def __str__(self) -> str:
        return self.text
