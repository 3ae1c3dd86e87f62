"""The source text of one equation, the context of a lowering rule, and the array helpers that it calls."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from func.backends.source.literals import parameter_text
from func.interpreters.core import Aval, Params, Primitive


class Code(NamedTuple):
    """A Python expression over `np` and `scipy` with {0}, {1}, ... for the operands.

    out: The text writes the whole of {out}, a C-contiguous array of the output's shape and dtype, and returns it.
        `plain` is then the text that makes its own output; 0-d outputs use it, as it gives scalars where eager does.
    view: The result is (or may be) a view of operand 0; otherwise it shares memory with no operand.
    inplace: Positions of the operands that may live in {out} themselves, if no other operand does.
    helpers: Functions of `func.backends.array_helpers` that the text calls by name, and those that they call.
    """

    text: str
    out: bool = False
    view: bool = False
    helpers: tuple[Callable[..., Any], ...] = ()
    plain: str | None = None
    inplace: tuple[int, ...] = ()

    @property
    def fresh(self) -> str:
        """The text that makes its own output."""
        return self.text if self.plain is None else self.plain


class LoweringContext(NamedTuple):
    """The context of a rule: an equation's primitive, avals and parameters, and whether `np` will be CuPy
    (`device`)."""

    primitive: Primitive
    avals: tuple[Aval, ...]
    outs: tuple[Aval, ...]
    params: Params
    device: bool

    @property
    def out(self) -> Aval:
        """The aval of the only output."""
        (out,) = self.outs
        return out

    def operands(self) -> str:
        """All operands, as arguments."""
        return ", ".join([f"{{{position}}}" for position in range(len(self.avals))])

    def matches_out(self, position: int) -> bool:
        """Whether an operand has the shape and dtype of the output."""
        aval = self.avals[position]
        return aval.shape == self.out.shape and aval.dtype == self.out.dtype

    def matching(self, *positions: int) -> tuple[int, ...]:
        """Those of the positions whose operands have the shape and dtype of the output."""
        return tuple([position for position in positions if self.matches_out(position)])


def support_code(function: Callable[..., Any], context: LoweringContext) -> Code:
    """The call of an array helper with the signature of an implementation."""
    params = "".join([f", {name}={parameter_text(value)}" for name, value in context.params.items()])
    is_view = context.primitive.view is True
    return Code(f"{function.__name__}(np, {context.operands()}{params})", view=is_view, helpers=(function,))


def is_support(function: Any) -> bool:
    """Whether a module of array helpers of the backends defines it."""
    module = getattr(function, "__module__", None) or ""  # None: a method of a set
    return callable(function) and module.startswith("func.backends.array_helpers")


@functools.cache
def with_callees(functions: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
    """Support functions and classes with all that they call, callees first."""
    seen: set[str] = set()
    ordered: list[Callable[..., Any]] = []

    def visit(function: Any) -> None:
        seen.add(function.__name__)
        for name in sorted(_globals_read(inspect.unwrap(function)) - seen):
            callee = getattr(sys.modules[function.__module__], name, None)
            if is_support(callee) and name not in seen:
                visit(callee)
        ordered.append(function)

    for function in functions:
        if function.__name__ not in seen:
            visit(function)
    return tuple(ordered)


def _globals_read(function: Any) -> set[str]:
    """The names that a function, or the methods of a class, read from their module."""
    if isinstance(function, type):
        return {name for method in vars(function).values() if callable(method) for name in _globals_read(method)}
    codes = [function.__code__]
    names: set[str] = set()
    for code in codes:
        names.update([step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"])
        codes.extend([constant for constant in code.co_consts if isinstance(constant, CodeType)])
    return names
