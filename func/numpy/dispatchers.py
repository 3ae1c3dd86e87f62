"""Traced values inside lists: `np.linalg.norm([x, y])` reaches the traced version of the function.

NumPy asks the arguments of a function for `__array_function__`; it does not look into lists. Which arguments it asks,
the function's *dispatcher* says, a private Python function that returns them. When func is imported, the dispatchers
get code that also returns a traced value inside a list or tuple. NumPy then hands the call over, list and all.

Nothing else changes: functions are the objects they were, and a call whose arguments are no lists takes the same steps
and one comparison of types for each argument. A dispatcher of an unknown form is left alone.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from func.interpreters.core import CARRIERS, Tracer

SEQUENCES = (list, tuple)
NUMBERS = frozenset(
    {"atol", "default", "dx", "fill_value", "initial", "left", "nan", "neginf", "posinf", "right", "rtol"}
)
"""Parameters for a number, which NumPy does not ask though it may be traced."""
MAX_DEPTH = 32
"""How deep lists are searched: as deep as an array of NumPy may have axes, and some more."""


def traced_inside(value: Any, depth: int = 0) -> Any:
    """A traced value in a nested list or tuple, or None."""
    if depth > MAX_DEPTH:
        return None
    for item in value:
        kind = type(item)
        if kind is Tracer or kind in CARRIERS:
            return item
        if kind is list or kind is tuple:
            inner = traced_inside(item, depth + 1)
            if inner is not None:
                return inner
    return None


class Search:
    """What the dispatchers' new code calls where an argument is a list."""

    @staticmethod
    def extended(arguments: Sequence[Any]) -> Sequence[Any]:
        """The arguments that NumPy asks, and a traced value in one of them that is a list."""
        inner = traced_inside([argument for argument in arguments if type(argument) in SEQUENCES])
        return arguments if inner is None else [*arguments, inner]


def _parameters(code: types.CodeType) -> tuple[list[str], str, str]:
    """The names of a function's parameters, its signature without defaults, and a call that passes them on."""
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: count + keywords])
    signature = names[:count]
    if code.co_posonlyargcount:
        signature.insert(code.co_posonlyargcount, "/")
    if keywords:
        signature += ["*", *names[count:]]
    return names, ", ".join(signature), ", ".join([*names[:count], *[f"{name}={name}" for name in names[count:]]])


def _returned(dispatcher: Callable[..., Any], names: list[str], positional: int) -> list[str] | None:
    """The parameters of which a dispatcher returns a tuple; None where it does anything else."""
    marks = {name: object() for name in names}
    values = list(marks.values())
    try:
        out = dispatcher(*values[:positional], **dict(list(marks.items())[positional:]))
    except Exception:
        return None
    by_id = {id(mark): name for name, mark in marks.items()}
    if type(out) is not tuple or not out or any([id(value) not in by_id for value in out]):
        return None
    return [by_id[id(value)] for value in out]


_SEARCH, _ORIGINAL, _KINDS = "<search>", "<original>", ("<list>", "<tuple>")
"""Constants that stand for objects in the text of a dispatcher."""


def _source(dispatcher: types.FunctionType) -> str | None:
    code = dispatcher.__code__
    if code.co_freevars or "type" in dispatcher.__globals__:
        return None
    names, signature, call = _parameters(code)
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        signature = call = "*args, **kwargs"
    returned = None if "*" in call else _returned(dispatcher, names, code.co_argcount)
    if returned is None:
        keywords = "*kwargs.values()" if "*" in call else ""
        relevant = f"[*{_ORIGINAL!r}.call({call}), {keywords}]"
        # Python 3.13 deprecates plain code in the place of a generator's.
        give = "yield from" if code.co_flags & inspect.CO_GENERATOR else "return"
        return f"def dispatcher({signature}):\n    {give} {_SEARCH!r}.extended({relevant})\n"
    relevant = f"({', '.join([*returned, *[name for name in names if name in NUMBERS]])},)"
    tests = " or ".join([f"type({name}) in {_KINDS!r}" for name in returned if name not in ("out", "where")])
    return (
        f"def dispatcher({signature}):\n"
        f"    if {tests or 'False'}:\n"
        f"        return {_SEARCH!r}.extended({relevant})\n"
        f"    return {relevant}\n"
    )


class _Original:
    """A dispatcher as NumPy defines it."""

    def __init__(self, dispatcher: types.FunctionType) -> None:
        self.call = types.FunctionType(
            dispatcher.__code__, dispatcher.__globals__, dispatcher.__name__, dispatcher.__defaults__
        )
        self.call.__kwdefaults__ = dispatcher.__kwdefaults__


def numpy_dispatchers() -> list[types.FunctionType]:
    """The dispatchers of the modules of NumPy that have been imported."""
    found = []
    for name, module in list(sys.modules.items()):
        if name.startswith("numpy."):
            for attribute, value in list(vars(module).items()):
                is_dispatcher = attribute.endswith("_dispatcher") and isinstance(value, types.FunctionType)
                if is_dispatcher and value.__module__ == name and not attribute.startswith("array_function"):
                    found.append(value)
    return found


def install() -> None:
    """Give the dispatchers their new code; called once, when func is imported."""
    sources = [(dispatcher, _source(dispatcher)) for dispatcher in numpy_dispatchers()]
    known = [(dispatcher, source) for dispatcher, source in sources if source is not None]
    text = "\n".join([source for _, source in known])
    whole = compile(text, __file__, "exec", dont_inherit=True)
    codes = [constant for constant in whole.co_consts if isinstance(constant, types.CodeType)]
    for (dispatcher, _), code in zip(known, codes, strict=True):
        objects = {_SEARCH: Search, _ORIGINAL: _Original(dispatcher), _KINDS: SEQUENCES}
        constants = tuple([objects.get(c, c) if type(c) in (str, tuple) else c for c in code.co_consts])
        dispatcher.__code__ = code.replace(co_consts=constants, co_name=dispatcher.__name__)
