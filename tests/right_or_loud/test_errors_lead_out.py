"""Errors lead out: exact words for the programs that newcomers write, the user's line, and no frame of the engine."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import linecache
import math
import pathlib
import random
import subprocess
import sys
import textwrap
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.host import suggestions
from tests.support.tracebacks import engine_frames

PROGRAMS = tomllib.loads((pathlib.Path(__file__).parent / "wrong_programs.toml").read_text())["program"]


def run(source: str) -> None:
    """Run a program as a file example.py."""
    lines = source.splitlines(keepends=True)
    linecache.cache["example.py"] = (len(source), None, lines, "example.py")
    names: dict[str, Any] = {"func": func, "np": np, "math": math, "dataclasses": dataclasses, "functools": functools}
    exec(compile(source, "example.py", "exec"), {**names, "X": np.array([1.0, 2.0, 3.0]), "A": np.eye(2)})


def words(error: BaseException) -> str:
    """The last lines of a traceback, as Python shows them."""
    return "".join(traceback.format_exception_only(error)).rstrip()


@pytest.fixture(autouse=True)
def no_example_left() -> Iterator[None]:
    yield
    linecache.cache.pop("example.py", None)


@pytest.mark.parametrize("program", PROGRAMS, ids=[program["name"] for program in PROGRAMS])
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_wrong_programs_are_told_what_to_write(program: dict[str, str]) -> None:
    with pytest.raises(Exception) as caught:  # the class is part of the words
        run(program["source"])
    assert words(caught.value) == program["error"].rstrip()
    assert engine_frames(caught.value) == []


def test_every_function_of_math_has_another_name_to_write() -> None:
    functions = [name for name, value in vars(math).items() if name[0] != "_" and callable(value)]
    assert [name for name in functions if not hasattr(np, name) and name not in suggestions._INSTEAD_OF_MATH] == []


def test_there_are_fifty_wrong_programs() -> None:
    assert len(PROGRAMS) >= 50


def test_the_error_index_has_a_program_for_every_class() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    sections = {section.split("\n", 1)[0]: section for section in page.split("\n### ")[1:]}
    assert sorted(sections) == sorted({*func.errors.__all__} - {"FuncError"})
    for name, section in sections.items():
        shown = (
            f"\nfunc.errors.{name}: "
            if issubclass(getattr(func.errors, name), func.errors.FuncError)
            else f"\n{name}\n"
        )
        assert shown in section and section.split("\n## ")[0].rstrip().endswith(".")


def _raises(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("of the user")


def _first(x: Any, *rest: Any) -> Any:
    return x


VALUES: list[Any] = [object(), "x", None, 3, -1, 2.5, np.ones(2), [1, 2], {}, _raises, _first, (1.0,), np.array(["a"])]
MODULES = {
    "func": func,
    "func.autograd": func.autograd,
    "func.collectives": func.collectives,
    "func.debug": func.debug,
    "func.random": func.random,
    "func.testing": func.testing,
    "func.tree": func.tree,
}
HARMLESS = ("clear_caches", "inference_mode", "load", "register_dataclass", "register_node", "save", "set_grad_enabled")
"""Names that are not called with anything: they change what other tests see, or write files."""
FUNCTIONS = {
    f"{module}.{name}": getattr(namespace, name)
    for module, namespace in MODULES.items()
    for name in sorted(namespace.__all__)
    if callable(getattr(namespace, name)) and name not in (*HARMLESS, "Tensor", "spy")
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_no_frame_of_the_engine_is_shown(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """For any argument of a public function or of its result, errors show the user's frames alone."""
    monkeypatch.chdir(tmp_path)  # some calls are right, and export to a file named x
    rng = random.Random(name)
    calls = [(), *[(value,) for value in VALUES], *itertools.product(VALUES, repeat=2)]
    calls += [tuple(rng.choices(VALUES, k=count)) for count in (3, 4) for _ in range(20)]
    shown = {}
    for args in calls:
        try:
            made = FUNCTIONS[name](*args)
        except Exception as error:
            shown[repr(args)] = engine_frames(error)
            continue
        for one in made if isinstance(made, tuple) else (made,):
            if not callable(one) or one is _raises or one is _first or isinstance(one, type):
                continue
            for later in ((), (np.ones(2),), (3,)):
                try:
                    one(*later)
                except Exception as error:
                    shown[f"{args!r}, then {later!r}"] = engine_frames(error)
    assert {call: frames for call, frames in shown.items() if frames} == {}


X = np.array([1.0, 2.0])
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "a sum of other shapes": lambda t: t + np.ones(5),
    "a product with a text": lambda t: t * "a",
    "a matrix product": lambda t: t @ np.ones(5),
    "a comparison": lambda t: t < np.ones(5),
    "a power": lambda t: t ** np.ones(5),
    "an index": lambda t: t[7],
    "a write": lambda t: t.__setitem__(7, 1.0),
    "a ufunc": lambda t: np.add(t, np.ones(5)),
    "a ufunc with out": lambda t: np.add(t, t, out=np.ones(2)),
    "a function": lambda t: np.sum(t, axis=4),
    "a conversion": lambda t: np.asarray(t),
    "a method of PyTorch's": lambda t: t.relu(),
    "backward": lambda t: (t * t).backward(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_tensors_show_no_frame_of_the_engine(name: str) -> None:
    with pytest.raises(Exception) as caught:  # whatever it is
        OPERATIONS[name](func.tensor(X, requires_grad=True))
    assert engine_frames(caught.value) == []


def test_the_full_traceback_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNC_TRACEBACK", "full")
    with pytest.raises(func.errors.ScalarOutputError) as caught:
        func.grad(lambda x: x)(X)
    assert engine_frames(caught.value)


def _picked(x: Any, i: Any) -> Any:
    y = np.sin(x)
    return y[i]


def _inverted(x: Any, i: Any) -> Any:
    y = np.outer(x, x) * i
    return np.linalg.inv(y)


PLACES = {"_picked": "return y[i]", "_inverted": "return np.linalg.inv(y)"}
WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": lambda f: func.jit(f),
    "jit of grad": lambda f: func.jit(func.grad(lambda x, i: np.sum(f(x, i) ** 2))),
    "jit of vmap": lambda f: func.jit(func.vmap(lambda x, i: f(x, i), in_dims=(None, None), axis_size=2)),
    "jit of scan": lambda f: func.jit(lambda x, i: func.scan(lambda c, _: (c, f(x, i)), 0.0, np.arange(2.0))[1]),
    "jit of cond": lambda f: func.jit(lambda x, i: func.cond(x[0] > 0, lambda: np.sum(f(x, i)), lambda: 0.0)),
    "jit of while_loop": lambda f: func.jit(
        lambda x, i: func.while_loop(lambda c: c < 3.0, lambda c: c + np.sum(f(x, i)) + 9.0, 0.0)
    ),
    "jit of checkpoint": lambda f: func.jit(func.checkpoint(f)),
    "jit for arrays in blocks": lambda f: func.jit(lambda x, i: f(x, i) + np.sum(np.tanh(np.ones(400_000) * x[0]))),
    "a program": lambda f: lambda x, i: func.make_program(f)(np.ones(2), 1)(x, i),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [_picked, _inverted])
def test_errors_of_compiled_code_name_the_line(function: Callable[..., Any], way: str) -> None:
    """A failure with the numbers of a later call has no frame of the user's: a note has the line that computes it."""
    call = WAYS[way](function)
    with pytest.raises((IndexError, np.linalg.LinAlgError)) as caught:
        call(X, 9)
    assert engine_frames(caught.value) == []
    notes = "\n".join(caught.value.__notes__)
    assert f"{__file__}:" in notes
    assert f"in {function.__name__}: `{PLACES[function.__name__]}`" in notes


def logarithm(x: Any) -> Any:
    y = np.log(x)
    return np.sum(y)


def quotient(x: Any) -> Any:
    return np.sum(1.0 / x)


def line_of(function: Callable[..., Any], text: str) -> int:
    first = function.__code__.co_firstlineno
    return next(i for i in range(first, first + 9) if text in linecache.getline(__file__, i))


ZEROS = np.zeros(2)
WARNED: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: func.grad(f)(ZEROS),
    "jvp": lambda f: func.jvp(f, (ZEROS,), (np.ones(2),)),
    "vmap": lambda f: func.vmap(f)(np.zeros((2, 2))),
    "hessian": lambda f: func.hessian(f)(ZEROS),
    "tensor": lambda f: f(func.tensor(ZEROS, requires_grad=True)),
    "make_program": lambda f: f(func.numpy.zeros(2)),
}


@pytest.mark.parametrize("way", WARNED)
def test_warnings_are_of_the_line_of_the_user(way: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARNED[way](logarithm)
        WARNED[way](quotient)
    places = {(w.filename, w.lineno) for w in caught if "divide by zero" in str(w.message)}
    assert (__file__, line_of(logarithm, "np.log(x)")) in places
    assert (__file__, line_of(quotient, "1.0 / x")) in places
    assert {file for file, _ in places} == {__file__}


def test_each_line_warns_once_and_filters_are_those_of_the_users_module() -> None:
    program = textwrap.dedent("""
        import warnings
        import numpy as np, func
        x = np.zeros(2)
        def first(x):
            return np.sum(np.log(x))
        def second(x):
            return np.sum(np.log(x))
        def third(x):
            return np.sum(np.log(x))
        for _ in range(3):
            func.vmap(first)(np.zeros((2, 2)))
            func.vmap(second)(np.zeros((2, 2)))
        warnings.filterwarnings("ignore", module="__main__")
        func.vmap(third)(np.zeros((2, 2)))
        warnings.filterwarnings("error", module="__main__")
        try:
            func.vmap(third)(np.zeros((2, 2)))
        except RuntimeWarning as error:
            print("raised:", error)
    """)
    done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=True)
    shown = [line for line in done.stderr.splitlines() if "RuntimeWarning" in line]
    assert shown == [f"<string>:{n}: RuntimeWarning: divide by zero encountered in log" for n in (6, 8)]
    assert done.stdout == "raised: divide by zero encountered in log\n"


@pytest.mark.parametrize("names", [{}, {"__name__": "page"}])
def test_code_without_a_module_is_warned_too(names: dict[str, Any]) -> None:
    program = "def f(x):\n    return 1.0 / x\nfunc.vmap(f)(x)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "page.py", "exec"), {**names, "func": func, "x": ZEROS})
    assert [(w.filename, w.lineno) for w in caught] == [("page.py", 2)]


def test_warnings_of_func_itself_are_of_the_line_of_the_user() -> None:
    with pytest.warns(func.errors.SolverWarning, match="has not converged") as caught:
        func.fixed_point(lambda x: 2 * x, 1.0, max_steps=5)
    text = "func.fixed_point(lambda x: 2 * x, 1.0"
    here = line_of(test_warnings_of_func_itself_are_of_the_line_of_the_user, text)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, here)]


def test_warnings_of_others_are_as_they_were() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.log(ZEROS)
        warnings.warn("of the user", UserWarning, stacklevel=1)
    assert [(w.filename, str(w.message)) for w in caught] == [
        (__file__, "divide by zero encountered in log"),
        (__file__, "of the user"),
    ]
    with pytest.warns(RuntimeWarning, match="divide by zero"), contextlib.suppress(ZeroDivisionError):
        func.grad(logarithm)(ZEROS)
