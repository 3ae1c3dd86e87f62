"""Partial derivatives of elementwise rows as rules: what they need of the saved values, and how they are evaluated."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from func.interpreters.core import Array

Rule: TypeAlias = Callable[..., Array] | str | int | None
"""A function of what it names, the name of a saved value, a constant, or None for no derivative."""
_NAMES = ("x", "y", "z")


class Partial:
    """One partial derivative: how to compute it from the saved (x, y, z, out), and which of those it needs."""

    __slots__ = ("constant", "evaluate", "fast", "needs", "rule")
    evaluate: Callable[[Any], Array]
    fast: Callable[[Any], Array]

    def __init__(self, rule: Callable[..., Array] | str | int, arity: int) -> None:
        places = {name: i for i, name in enumerate(_NAMES[:arity])} | {"out": arity}
        self.rule: Any = rule
        self.constant = rule if isinstance(rule, int) else None
        names = [rule] if isinstance(rule, str) else list(inspect.signature(rule).parameters) if callable(rule) else []
        self.needs = tuple([places[name] for name in names])
        if isinstance(rule, str):
            self.evaluate = self.fast = operator.itemgetter(self.needs[0])
        elif callable(rule):
            self.evaluate = _from_saved(rule, self.needs)
            self.fast = self._compile_first

    def _compile_first(self, saved: Any) -> Array:
        """On first use on plain arrays the rule is compiled to a NumPy expression."""
        self.fast = _compilers[0](self)
        return self.fast(saved)


_compilers: list[Callable[[Partial], Callable[[Any], Array]]] = []


def set_partial_compiler(compiler: Callable[[Partial], Callable[[Any], Array]]) -> None:
    """Registration from above: compiling stages the rule, and staging is an interpreter."""
    _compilers[:] = [compiler]


def _from_saved(rule: Callable[..., Array], needs: tuple[int, ...]) -> Callable[[Any], Array]:
    """A rule that takes what it needs from the saved values."""
    if len(needs) == 1:
        (place,) = needs
        return lambda saved: rule(saved[place])
    return lambda saved: rule(*[saved[place] for place in needs])
