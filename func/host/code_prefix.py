"""New code for functions of other libraries: their own statements behind a test."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import types

from func.backends.source.parsing import parsed


def with_prefix(code: types.CodeType, prefix: str) -> types.CodeType | None:
    """The code of a function behind statements, compiled from its source; None where that is not at hand.

    `{}` in the prefix stands for the words of a call that passes all arguments on.
    """
    try:
        lines = inspect.getblock(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :])
        tree = parsed(textwrap.dedent("".join(lines)))
        again = _compiled(tree, code)  # instructions may differ: they depend on the module around
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
    return _compiled(ast.fix_missing_locations(tree), code)


def _content(code: types.CodeType) -> tuple[object, ...]:
    constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    return code.co_names, constants, code.co_varnames, code.co_freevars


def _compiled(tree: ast.Module, code: types.CodeType) -> types.CodeType:
    """The code of the one function in a tree, with the variables of the functions around it that the code has."""
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
    """The function without decorators, defaults and annotations, which are evaluated elsewhere: they have a scope."""
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
    """The words of a call that passes all arguments on."""
    words = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    words += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    words += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    return ", ".join(words + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []))


def function_code(text: str | ast.Module, file: str) -> types.CodeType:
    """The code of the one function in a text."""
    whole = compile(text, file, "exec", dont_inherit=True)
    return next(constant for constant in whole.co_consts if isinstance(constant, types.CodeType))
