"""The source text of one equation, what a lowering rule sees of it, and the table of rules."""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile.lowering.literals import parameter_text
from func.interpreters.core import Aval, Params, aval_of
from func.interpreters.core.errors import NoSourceError
from func.interpreters.primitives.elementwise.builder import is_numpy_ufunc
from func.interpreters.program.program import Equation, Var


@dataclass(frozen=True)
class Code:
    """A Python expression over `np` and `scipy` with {0}, {1}, ... for the operands.

    out: the text writes the whole of {out}, a C-contiguous array of the output's shape and dtype, and returns it;
        `plain` is then the text that makes its own output, which 0-d outputs use: it gives scalars where eager does.
    view: the result is (or may be) a view of operand 0; otherwise it shares memory with no operand.
    inplace: positions of the operands that may live in {out} themselves, if no other operand does.
    support: functions of `func.backends.support.arrays` that the text calls by name, and those that they call.
    """

    text: str
    out: bool = False
    view: bool = False
    support: tuple[Callable[..., Any], ...] = ()
    plain: str | None = None
    inplace: tuple[int, ...] = ()

    @property
    def fresh(self) -> str:
        """The text that makes its own output."""
        return self.text if self.plain is None else self.plain


class LoweringContext:
    """What a rule sees: the avals and parameters of an equation, and whether `np` will be CuPy (`device`)."""

    __slots__ = ("avals", "device", "outs", "params")

    def __init__(self, equation: Equation, device: bool) -> None:
        self.avals: tuple[Aval, ...] = tuple([x.aval if type(x) is Var else aval_of(x) for x in equation.inputs])
        self.outs: tuple[Aval, ...] = tuple([var.aval for var in equation.outputs])
        self.params: Params = equation.params
        self.device = device

    @property
    def out(self) -> Aval:
        """The aval of the only output."""
        (out,) = self.outs
        return out

    def array(self, place: int) -> str:
        """An operand as something with array methods: Python scalars have none."""
        return f"np.asarray({{{place}}})" if self.avals[place].weak else f"{{{place}}}"

    def operands(self) -> str:
        """All operands, as arguments."""
        return ", ".join([f"{{{place}}}" for place in range(len(self.avals))])

    def matching(self) -> tuple[int, ...]:
        """The operands with the shape and dtype of the output."""
        key = (self.out.shape, self.out.dtype)
        return tuple([place for place, aval in enumerate(self.avals) if (aval.shape, aval.dtype) == key])


Rule: TypeAlias = Callable[[LoweringContext], Code]
TABLE: dict[str, Rule] = {}
"""The rule of every row that has one of its own; the others are ufuncs, or have no source."""


def lowering(*row_names: str) -> Callable[[Rule], Rule]:
    """Register a rule for rows."""

    def register(rule: Rule) -> Rule:
        for name in row_names:
            if name in TABLE:
                raise ValueError(f"two lowering rules for {name!r}")
            TABLE[name] = rule
        return rule

    return register


def lower(equation: Equation, device: bool = False) -> Code:
    """The source text of an equation, for NumPy or (`device`) for `np` bound to CuPy.

    Raises NoSourceError for rows whose parameters are functions, and for those that have no source there.
    """
    primitive = equation.primitive
    context = LoweringContext(equation, device)
    rule = TABLE.get(primitive.name)
    if rule is not None:
        code = rule(context)
    elif is_numpy_ufunc(primitive.numpy):
        code = ufunc_code(f"np.{primitive.numpy.__name__}", context)
    elif primitive.scipy is not None:
        code = special_code(primitive.scipy, context)
    elif is_support(inspect.unwrap(primitive.impl)):
        code = support_code(inspect.unwrap(primitive.impl), context)
    else:
        at = f" at {equation.line}" if equation.line is not None else ""
        raise NoSourceError(f"the row {primitive.name}{at} has no source text: its parameters are Python functions")
    return replace(code, support=with_callees(code.support)) if code.support else code


def ufunc_code(function: str, context: LoweringContext) -> Code:
    """The call of a ufunc on all operands; on Python scalars alone arithmetic gives a Python scalar."""
    operands = context.operands()
    plain = f"{function}({operands})"
    if context.out.weak:
        return Code(f"{plain}.item()")
    out = "out={out}" if function in _KEYWORD_OUT else "{out}"
    return Code(f"{function}({operands}, {out})", out=True, plain=plain, inplace=context.matching())


_KEYWORD_OUT = {"np.maximum", "np.minimum"}
"""NumPy deprecates a third positional argument of these."""


def special_code(name: str, context: LoweringContext) -> Code:
    """The call of a function of scipy.special, most of which are ufuncs."""
    function = f"scipy.special.{name}"
    if not context.device and isinstance(getattr(importlib.import_module("scipy.special"), name), np.ufunc):
        return ufunc_code(function, context)
    return Code(f"{function}({context.operands()})")


def support_code(function: Callable[..., Any], context: LoweringContext) -> Code:
    """The call of a support function with the signature of an impl."""
    params = "".join([f", {name}={parameter_text(value)}" for name, value in context.params.items()])
    return Code(f"{function.__name__}(np, {context.operands()}{params})", support=(function,))


def writing_code(
    into: Callable[..., Any],
    fresh: Callable[..., Any],
    index: str,
    *,
    whole: str = "{0}",
    copy: str = "{0}.copy()",
    part: str = "{1}",
    xp: str = "",
) -> Code:
    """The call of a support function that writes `part` at an index of `whole`: into given memory, or into a copy."""
    return Code(
        f"{into.__name__}({xp}{{out}}, {whole}, {index}, {part})",
        out=True,
        plain=f"{fresh.__name__}({xp}{copy}, {index}, {part})",
        support=(fresh, into),
        inplace=(0,) if whole == "{0}" else (),
    )


def is_support(function: Any) -> bool:
    """True for what is defined in the support modules of the backends."""
    return callable(function) and getattr(function, "__module__", "").startswith("func.backends.support")


@functools.cache
def with_callees(functions: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
    """Support functions and classes with all that they call, callees first."""
    seen: set[str] = set()
    found: list[Callable[..., Any]] = []

    def visit(function: Any) -> None:
        seen.add(function.__name__)
        for name in sorted(_globals_read(inspect.unwrap(function)) - seen):
            callee = getattr(sys.modules[function.__module__], name, None)
            if is_support(callee) and name not in seen:
                visit(callee)
        found.append(function)

    for function in functions:
        if function.__name__ not in seen:
            visit(function)
    return tuple(found)


def _globals_read(function: Any) -> set[str]:
    """The names that a function, or the methods of a class, read from their module."""
    if isinstance(function, type):
        return {name for method in vars(function).values() if callable(method) for name in _globals_read(method)}
    codes = [function.__code__]
    names: set[str] = set()
    for code in codes:
        names.update([one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"])
        codes.extend([constant for constant in code.co_consts if isinstance(constant, CodeType)])
    return names
