"""Declarations of data: `Record` for things, `NamedTuple` or `ValueRecord` for values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Factory:
    """The maker of a field's default, called for every record."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """A field with a new default for every record."""
    return cast(T, _Factory(default_factory))


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Record:
    """A class whose annotated names are its fields, in their order; a record is equal to itself only.

    `import func` and the first call of a jitted function wait for the classes of their modules. On a machine of 2024,
    `dataclass` compiles source text for every class (0.25 to 0.55 ms each), `NamedTuple` takes 0.08 ms, and a `Record`
    0.01 ms. So these modules declare data as records. A `NamedTuple` is for data that must compare by fields or be
    unpacked, a `ValueRecord` for data that compares by fields without being a tuple. There are no dataclasses.

    >>> class Point(Record):
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0, y=2.0).y
    (Point(x=1.0, y=0.0), 2.0)
    """

    fields: ClassVar[tuple[str, ...]] = ()
    _factories: ClassVar[dict[str, Callable[[], Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)
        cls._factories = {name: value.make for name, value in vars(cls).items() if isinstance(value, _Factory)}

    def __init__(self, *args: Any, **named: Any) -> None:
        for name, value in zip(self.fields, args):  # noqa: B905  (fields left out keep the defaults of the class)
            setattr(self, name, value)
        if named:
            self.__dict__.update(named)
        if self._factories:
            for name, make in self._factories.items():
                if name not in self.__dict__:
                    setattr(self, name, make())

    def with_fields(self, **changes: Any) -> Self:
        """A copy with other values of some fields."""
        return type(self)(**{**self.__dict__, **changes})

    def __repr__(self) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.fields])
        return f"{type(self).__name__}({values})"


class ValueRecord(Record):
    """A record that is equal to one of its class with equal fields.

    >>> class Size(ValueRecord):
    ...     width: int
    >>> Size(2) == Size(2), hash(Size(2)) == hash(Size(2)), Size(2) == Size(3)
    (True, True, False)
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.field_values() == other.field_values()

    def __hash__(self) -> int:
        return hash((type(self), self.field_values()))

    def field_values(self) -> tuple[Any, ...]:
        """The values of the fields."""
        return tuple([getattr(self, name) for name in self.fields])
