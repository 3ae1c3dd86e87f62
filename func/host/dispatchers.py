"""Traced values inside lists: `np.linalg.norm([x, y])` reaches the traced version of the function.

NumPy asks the arguments of a function for `__array_function__`, but not the members of lists. The function's
*dispatcher*, a private Python function, returns these arguments. At the first transform or tensor, the dispatchers get
code that also returns a traced value inside a list or tuple. NumPy then hands over the whole call.

The new code first checks one flag: whether traced values exist, in a running transform or after the first tensor. If
not, it does the same as before. The function objects stay, and the new code has the file, the lines and the name of the
old one. Dispatchers of an unknown form stay unchanged.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import gc
import inspect
import linecache
import sys
import textwrap
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.parsing import parsed
from func.interpreters.core import CARRIERS, TRACED, Tracer

SEQUENCES = (list, tuple)
_SET_OF_SEQUENCES = frozenset(SEQUENCES)
NOT_ASKED = frozenset(
    {
        *("atol", "correction", "ddof", "default", "discont", "dx", "fill_value", "indices", "initial", "left", "mean"),
        *("nan", "neginf", "ord", "period", "posinf", "range", "rcond", "repeats", "right", "rtol", "shift", "tol"),
        *("val", "where"),
    }
)
"""Parameters that NumPy does not ask though they may be traced."""
OF_TYPES = frozenset({"can_cast", "may_share_memory", "min_scalar_type", "result_type", "shares_memory"})
"""Functions in C that take types and memory, and no list for an array."""
MAX_DEPTH = 32
"""The depth of the search in lists: that of NumPy's deepest arrays, and some more."""


def traced_inside(value: Any, depth: int = 0) -> Any:
    """A traced value in a nested list or tuple, or None."""
    if depth > MAX_DEPTH:
        return None
    for item in value:
        kind = type(item)
        if kind is Tracer or kind in CARRIERS:
            return item
        if kind is list or kind is tuple:
            traced = traced_inside(item, depth + 1)
            if traced is not None:
                return traced
    return None


class Search:
    """The dispatchers' new code calls this if an argument is a list."""

    @staticmethod
    def extended(arguments: Sequence[Any]) -> Sequence[Any]:
        """NumPy's relevant arguments, and a traced value in one of them that is a list."""
        traced = traced_inside([argument for argument in arguments if type(argument) in SEQUENCES])
        return arguments if traced is None else [*arguments, traced]


def _returned(dispatcher: types.FunctionType, names: tuple[str, ...], positional: int) -> list[int] | None:
    """The numbers of the parameters in the tuple that a dispatcher returns; None if it does anything else."""
    marks = [object() for _ in names]
    try:
        out = dispatcher(*marks[:positional], **dict(zip(names[positional:], marks[positional:], strict=True)))
    except Exception:
        return None
    numbers = {id(mark): i for i, mark in enumerate(marks)}
    if type(out) is not tuple or not out or any([id(value) not in numbers for value in out]):
        return None
    return [numbers[id(value)] for value in out]


_SEARCH, _ORIGINAL, _TRACED, _KINDS, _LISTS = "<search>", "<original>", "<traced>", "<list or tuple>", "<lists>"
"""Constants that represent objects in the text of a dispatcher."""
_EXIST = f"{_TRACED!r}.run or {_TRACED!r}.stay"


def _names(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _text(dispatcher: types.FunctionType) -> str | None:
    """The text of the new code of a dispatcher that returns a tuple; None if it does anything else.

    The parameters are called p0, p1, ...: many dispatchers share one text.
    """
    code = dispatcher.__code__
    names, positional = _names(code), code.co_argcount
    places = [f"p{i}" for i in range(len(names))]
    signature = places[:positional]
    if code.co_posonlyargcount:
        signature.insert(code.co_posonlyargcount, "/")
    if len(names) > positional:
        signature += ["*", *places[positional:]]
    is_open = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    returned = None if is_open else _returned(dispatcher, names, positional)
    if returned is None:
        return None
    own = [places[i] for i in returned]
    relevant = (
        f"({', '.join([*own, *[f'p{i}' for i, x in enumerate(names) if x in NOT_ASKED and i not in returned]])},)"
    )
    tests = " or ".join([f"type(p{i}) in {_KINDS!r}" for i in returned if names[i] not in ("out", "where")])
    return (
        f"def dispatcher({', '.join(signature)}):\n"
        f"    if {_EXIST}:\n"
        f"        if {tests or 'False'}:\n"
        f"            return {_SEARCH!r}.extended({relevant})\n"
        f"        return {relevant}\n"
        f"    return ({', '.join(own)},)\n"
    )


@functools.cache
def _compiled(text: str) -> types.CodeType:
    return function_code(text, __file__)


_STUB = f"def dispatcher(*args, **kwargs):\n    {{}} {_ORIGINAL!r}.first(*args, **kwargs)\n"
"""The first code of a dispatcher. The code that follows is compiled when the dispatcher is first called.

It is a generator function where the dispatcher is one: Python 3.13 warns of code of another kind.
"""


def _giving(flags: int) -> str:
    """The statement that hands on the result of a dispatcher with these flags."""
    return "yield from" if flags & inspect.CO_GENERATOR else "return"


def _with_prefix(dispatcher: types.FunctionType) -> types.CodeType | None:
    """The code of a dispatcher after a test, compiled from its source; None without the source."""
    code = dispatcher.__code__
    test = _EXIST
    if _gives_its_sequence(dispatcher):  # the engine joins arrays all the time: this searches for lists among them
        first = code.co_varnames[0]
        test = f"({_EXIST}) and type({first}) in {_KINDS!r} and not {_LISTS!r}.isdisjoint(map(type, {first}))"
    place = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    keywords = code.co_varnames[place] if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return with_prefix(code, _prefix(code.co_flags, "{}", test, keywords))


def _without_source(code: types.CodeType) -> types.CodeType:
    """The code of a dispatcher after a test, which calls the original."""
    give = _giving(code.co_flags)
    prefix = textwrap.indent(_prefix(code.co_flags, "*args, **kwargs", _EXIST, "kwargs"), "    ")
    text = f"def dispatcher(*args, **kwargs):\n{prefix}    {give} {_ORIGINAL!r}.call(*args, **kwargs)\n"
    return function_code(text, code.co_filename)


def _gives_its_sequence(dispatcher: types.FunctionType) -> bool:
    """Whether a dispatcher returns the sequence that is its first argument, as that of np.concatenate does."""
    arrays: list[Any] = []
    try:
        return dispatcher(arrays) is arrays
    except Exception:
        return False


def _prefix(flags: int, call: str, test: str, keywords: str) -> str:
    """The test: if traced values exist, return the original's result for this call, and more.

    `keywords`: the parameter for other keywords, of which NumPy asks none (`constant_values` of np.pad).
    """
    more = f", *{keywords}.values()" if keywords else ""
    relevant = f"{_SEARCH!r}.extended([*{_ORIGINAL!r}.call({call}){more}])"
    ending = f"yield from {relevant}\n    return" if flags & inspect.CO_GENERATOR else f"return {relevant}"
    return f"if {test}:\n    {ending}\n"


class _Original:
    """A dispatcher as NumPy defines it."""

    __slots__ = ("call", "dispatcher")

    def __init__(self, dispatcher: types.FunctionType) -> None:
        self.dispatcher = dispatcher
        self.call = types.FunctionType(
            dispatcher.__code__, dispatcher.__globals__, dispatcher.__name__, dispatcher.__defaults__
        )
        self.call.__kwdefaults__ = dispatcher.__kwdefaults__

    def first(self, *args: Any, **kwargs: Any) -> Any:
        """The first call of a dispatcher with a stub, which gets its code."""
        text = _text(self.call)
        if text is None:
            code = _with_prefix(self.call) or _without_source(self.call.__code__)
            self.dispatcher.__code__ = self.bound(code, code.co_varnames)
        else:
            self.dispatcher.__code__ = self.bound(_compiled(text), _names(self.call.__code__))
        return self.dispatcher(*args, **kwargs)

    def bound(self, code: types.CodeType, names: tuple[str, ...]) -> types.CodeType:
        """New code with objects instead of constants, and the name and the location of the original."""
        objects: dict[str, Any] = {_SEARCH: Search, _ORIGINAL: self, _TRACED: TRACED}
        objects |= {_KINDS: SEQUENCES, _LISTS: _SET_OF_SEQUENCES}
        old = self.call.__code__
        return code.replace(
            co_consts=tuple([objects.get(c, c) if type(c) is str else c for c in code.co_consts]),
            co_varnames=names,
            co_name=old.co_name,
            co_qualname=old.co_qualname,
            co_filename=old.co_filename,
            co_firstlineno=old.co_firstlineno,
        )


def numpy_dispatchers() -> list[types.FunctionType]:
    """The dispatchers of NumPy's imported modules, except those of functions written in C."""
    dispatchers = []
    for name, module in list(sys.modules.items()):
        if name.startswith("numpy."):
            for attribute, value in list(vars(module).items()):
                is_own = isinstance(value, types.FunctionType) and value.__module__ == name
                if is_own and _is_dispatcher(attribute, value):
                    dispatchers.append(value)
    return dispatchers


def _is_dispatcher(attribute: str, function: types.FunctionType) -> bool:
    """Whether a function of a NumPy module is a dispatcher.

    The name tells, or that of a public function with the same parameters, as for `_sort_complex`.
    """
    if attribute.endswith("_dispatcher"):
        return not attribute.startswith("array_function")
    public = function.__globals__.get(attribute.removeprefix("_"))
    if attribute[0] != "_" or type(public) is not type(np.where):
        return False
    code = getattr(getattr(public, "_implementation", None), "__code__", None)
    return code is not None and _names(code) == _names(function.__code__)


def hidden_dispatchers() -> list[types.FunctionType]:
    """The dispatchers of functions written in C.

    They have the name of their function, which hides them in the module: only the function itself refers to them.
    """
    hidden = vars(sys.modules["numpy._core.multiarray"])
    functions = [value for name, value in hidden.items() if type(value) is type(np.where) and name not in OF_TYPES]
    dispatchers = [_behind(function) for function in functions]
    if None in dispatchers:
        dispatchers = [f for f in gc.get_referrers(hidden) if f.__class__ is types.FunctionType]
    return [
        f
        for f in dispatchers
        if type(f) is types.FunctionType
        and f.__globals__ is hidden
        and type(hidden.get(f.__name__)) is type(np.where)
        and f.__name__ not in OF_TYPES
    ]


def _behind(function: Any) -> Any:
    """The dispatcher that a public function of NumPy refers to; None if its memory has an unknown layout.

    After an object's head come the addresses of the C function, of the attributes, the dispatcher, the implementation.
    Those of attributes and implementation are known, which verifies the layout. A search among all objects of the
    process, by the garbage collector, takes milliseconds in a small process.
    """
    head, width = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)
    if type(function).__basicsize__ < head + 4 * width:
        return None
    places = (ctypes.c_void_p * 4).from_address(id(function) + head)
    if places[1] != id(vars(function)) or places[3] != id(getattr(function, "_implementation", None)):
        return None
    return ctypes.cast(places[2] or id(None), ctypes.py_object).value


def install(dispatchers: Sequence[types.FunctionType]) -> None:
    """Give dispatchers their first code, at the first transform or tensor."""
    stubs = {give: function_code(_STUB.format(give), __file__) for give in ("return", "yield from")}
    for dispatcher in dispatchers:
        if not dispatcher.__code__.co_freevars and "type" not in dispatcher.__globals__:
            stub = stubs[_giving(dispatcher.__code__.co_flags)]
            dispatcher.__code__ = _Original(dispatcher).bound(stub, stub.co_varnames)


def with_prefix(code: types.CodeType, prefix: str) -> types.CodeType | None:
    """The code of a function after statements, compiled from its source; None without the source.

    `{}` in the prefix becomes a call's argument list that passes all arguments on.
    """
    try:
        lines = inspect.getblock(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :])
        tree = parsed(textwrap.dedent("".join(lines)))
        again = _compiled_function(tree, code)  # instructions may differ: they depend on the module around
    except (OSError, SyntaxError, StopIteration, IndexError):
        return None
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef) or _content(again) != _content(code):
        return None
    place = 1 if ast.get_docstring(function, clean=False) is not None and len(function.body) > 1 else 0
    added = parsed(prefix.format(passed_on(function.args))).body
    for part in [inner for statement in added for inner in ast.walk(statement)]:
        ast.copy_location(part, function.body[place])
    function.body[place:place] = added
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return _compiled_function(ast.fix_missing_locations(tree), code)


def _content(code: types.CodeType) -> tuple[object, ...]:
    constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    return code.co_names, constants, code.co_varnames, code.co_freevars


def _compiled_function(tree: ast.Module, code: types.CodeType) -> types.CodeType:
    """The code of the one function in a tree, with its variables of outer functions."""
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    bare = ast.Module([_undecorated(function)], [])
    if not code.co_freevars:
        return function_code(bare, code.co_filename)
    parameters = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, [])
    outer = ast.FunctionDef("outer", parameters, list(bare.body), [], None, None)
    whole = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, function)], []))
    inside = function_code(whole, code.co_filename)
    return next(constant for constant in inside.co_consts if isinstance(constant, types.CodeType))


def _undecorated(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function without decorators, defaults and annotations, which belong to another scope."""
    arguments = function.args
    none = ast.copy_location(ast.Constant(None), function)
    bare = ast.arguments(
        [ast.arg(a.arg) for a in arguments.posonlyargs],
        [ast.arg(a.arg) for a in arguments.args],
        arguments.vararg and ast.arg(arguments.vararg.arg),
        [ast.arg(a.arg) for a in arguments.kwonlyargs],
        [default and none for default in arguments.kw_defaults],
        arguments.kwarg and ast.arg(arguments.kwarg.arg),
        [none for _ in arguments.defaults],
    )
    out = ast.FunctionDef(function.name, bare, function.body, [], None, None)
    out.type_params = []  # type: ignore[attr-defined]
    return ast.fix_missing_locations(ast.copy_location(out, function))


def passed_on(arguments: ast.arguments) -> str:
    """The argument list of a call that passes all arguments on."""
    words = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    words += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    words += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    return ", ".join(words + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []))


def function_code(text: str | ast.Module, file: str) -> types.CodeType:
    """The code of the one function in a text."""
    whole = compile(text, file, "exec", dont_inherit=True)
    return next(constant for constant in whole.co_consts if isinstance(constant, types.CodeType))
