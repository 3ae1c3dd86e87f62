"""Plain data whose classes cost nothing to import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Made:
    """A default that is made anew for every record."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def made(*, default_factory: Callable[[], T]) -> T:
    """The default of a field that is made anew for every record."""
    return cast(T, _Made(default_factory))


@dataclass_transform(eq_default=False, field_specifiers=(made,))
class Record:
    """Data with the annotated names of a class as fields, in their order; equal to itself only.

    The decorator of `dataclasses` compiles source text for every class, a third of a millisecond each, which a first
    call would wait for.

    >>> class Point(Record):
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0, y=2.0).y
    (Point(x=1.0, y=0.0), 2.0)
    """

    fields: ClassVar[tuple[str, ...]] = ()
    _made: ClassVar[dict[str, Callable[[], Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)
        cls._made = {name: one.make for name, one in vars(cls).items() if isinstance(one, _Made)}

    def __init__(self, *args: Any, **named: Any) -> None:
        held = self.__dict__
        held.update(zip(self.fields, args))  # noqa: B905  (fields left out keep the defaults of the class)
        held.update(named)
        for name, make in self._made.items():
            if name not in held:
                held[name] = make()

    def __repr__(self) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.fields])
        return f"{type(self).__name__}({values})"
