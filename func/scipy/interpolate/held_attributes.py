"""Attributes of func's interpolators that hold traced values, whatever the version of SciPy.

SciPy keeps the arrays of an interpolator in the object itself, behind properties that convert them, or in a second
object, as its version has it. An object of plain numbers is as SciPy makes it, so that SciPy's methods work on it.
An object of traced values keeps them in one dictionary, and only func's methods work on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.scipy.interpolate.data_arguments import is_traced


class HeldAttribute:
    """An attribute whose value func holds, if a value of the object is traced, or else SciPy."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        if instance is None:
            return getattr(super(self.owner, kind), self.name)
        attributes = vars(instance)
        held = attributes.get("_held")
        if held is not None:
            return held[self.name]
        if self.name in attributes:
            return attributes[self.name]
        return getattr(super(self.owner, instance), self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        if "_held" in vars(instance) or is_traced(value):
            instance._hold(**{name: getattr(instance, name) for name in instance._held_names} | {self.name: value})
            return
        inherited: Any = getattr(super(self.owner, type(instance)), self.name, None)
        if hasattr(inherited, "__set__"):
            inherited.__set__(instance, value)
        else:
            vars(instance)[self.name] = value


class HoldsTraced:
    """An interpolator that holds traced values; its attributes of `_held_names` are each a HeldAttribute.

    A class of func's has it before SciPy's class among its bases. Without `__slots__` it has the layout of a class of
    SciPy's without them, so that an object of SciPy's class can become one of func's.
    """

    _held_names: tuple[str, ...]
    _held: dict[str, Any]
    _store: Callable[..., None]
    """Keeps plain values, which it takes by name, as SciPy does."""

    def _hold(self, **values: Any) -> None:
        """Keep all values, here if one is traced."""
        if is_traced(*values.values()):
            self._held = values
        else:
            vars(self).pop("_held", None)
            self._store(**values)

    def __func_holds_traced__(self) -> bool:
        return "_held" in vars(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For copies: SciPy's own states have no place for traced values."""
        if "_held" in vars(self):
            return _with_attributes, (type(self), vars(self).copy())
        return super().__reduce_ex__(protocol)


def _with_attributes(kind: type, attributes: dict[str, Any]) -> Any:
    """An object of a class with these attributes."""
    self: Any = object.__new__(kind)
    vars(self).update(attributes)
    return self
