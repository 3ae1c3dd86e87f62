"""Functions, methods and operators that are given wrong things outside of transforms show nothing of the engine."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import itertools
import math
import operator
import pickle
import random
import re
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core.source import is_engine_file

MODULES = (
    "func.linalg", "func.numpy", "func.numpy.fft", "func.numpy.linalg", "func.scipy.fft", "func.scipy.integrate",
    "func.scipy.interpolate", "func.scipy.linalg", "func.scipy.ndimage", "func.scipy.optimize", "func.scipy.signal",
    "func.scipy.signal.windows", "func.scipy.sparse", "func.scipy.sparse.linalg", "func.scipy.spatial",
    "func.scipy.spatial.distance", "func.scipy.spatial.transform", "func.scipy.stats", "func.special",
)  # fmt: skip
UNSAFE = re.compile(r"mathieu|squareform|^(lmbda|\w+_seq|pascal|invpascal|hilbert|invhilbert|hadamard|fiedler)$")
"""Functions of SciPy's that crash on NaN or on arrays of objects, or take long for numbers that are no sizes."""
WORDS = re.compile(r"PyTreeSpec|\bTracer\b|\bAval\b|\w+Interpreter\b|FlatFunction|<locals>|arguments\[|__call__")
"""Words of func's own code, and of the libraries behind it."""


_PLACE = re.compile(r"\n  (used |\w+ was called )?at .*")
"""A line of a message that shows a line of the user's."""


def _raises(*args: Any, **kwargs: Any) -> Any:
    raise KeyError("of the user")


def tensor(*shape: int) -> Any:
    return func.tensor(np.ones(shape) + np.eye(*shape[-2:]) if len(shape) > 1 else np.ones(shape), requires_grad=True)


MAKERS: list[Callable[[], Any]] = [
    object, dict, functools.partial(tensor, 2), functools.partial(tensor, 2, 2), functools.partial(tensor),
    lambda: "x", lambda: None, lambda: 3, lambda: -1, lambda: 2.5, lambda: np.ones(2), lambda: np.ones(5),
    lambda: [1, 2], lambda: (1.0,), lambda: np.array(["a"]), lambda: np.ones((2, 3)), lambda: _raises,
]  # fmt: skip
KEYWORDS = ("axis", "dim", "keepdims", "out", "dtype", "order", "shape")


def shown(call: Callable[[], Any]) -> str:
    """What an error of a call shows of the engine: frames, or words of its text."""
    try:
        call()
    except Exception as error:
        frames = [
            f"{frame.filename}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if is_engine_file(frame.filename)
        ]
        text = _PLACE.sub("", " ".join([str(error), *getattr(error, "__notes__", ())]))
        return " ".join(frames) or "".join([f"{type(error).__name__}: {text}" for _ in WORDS.findall(text)[:1]])
    return ""


def arguments(name: str, count: int) -> Iterator[list[Any]]:
    """Wrong arguments, the same for each run; new objects, since functions may write them."""
    rng = random.Random(name)
    for number in (0, 1, 1, *[rng.randint(1, 4) for _ in range(count)]):
        yield [make() for make in rng.choices(MAKERS, k=number)]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_functions(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    namespace = importlib.import_module(module)
    found = {}
    for name in sorted(namespace.__all__):
        function = getattr(namespace, name)
        if not callable(function) or UNSAFE.search(name):
            continue
        for given in arguments(name, 8):
            found[f"{name}{given}"] = shown(functools.partial(function, *given))
        for keyword in KEYWORDS[:3]:
            given = [make() for make in random.Random(name + keyword).choices(MAKERS, k=2)]
            found[f"{name}({given[0]}, {keyword}={given[1]})"] = shown(
                functools.partial(function, given[0], **{keyword: given[1]})
            )
    assert {call: what for call, what in found.items() if what} == {}


def leaked(transform: Callable[[Callable[[Any], Any]], Callable[[Any], Any]], x: Any) -> Any:
    """A value that a transform has traced, after it has returned."""
    kept = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return np.sum(x)

    transform(keep)(x)
    return kept[0]


VALUES: dict[str, Callable[[], Any]] = {
    "a vector": lambda: tensor(2),
    "a matrix": lambda: tensor(2, 2),
    "a number": lambda: tensor(),
    "a result": lambda: tensor(2) * 2,
    "without gradient": lambda: func.tensor(np.ones(2)),
    "integers": lambda: func.tensor(np.array([1, 2])),
    "leaked from grad": lambda: leaked(func.grad, np.ones(2)),
    "leaked from vmap": lambda: leaked(func.vmap, np.ones((2, 2))),
    "leaked from jit": lambda: leaked(func.jit, np.ones(2)),
    "leaked from jvp": lambda: leaked(lambda f: lambda x: func.jvp(f, (x,), (x,)), np.ones(2)),
}
OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq ne iadd isub imul itruediv
    imatmul ipow getitem delitem contains
"""
BINARY: list[Callable[[Any, Any], Any]] = [
    *[getattr(operator, name) for name in OPERATORS.split()], divmod, round, lambda x, y: x.__setitem__(y, 1.0),
    lambda x, y: x.__setitem__(0, y), lambda x, y: x.at[y].set(1.0),
]  # fmt: skip
UNARY: list[Callable[[Any], Any]] = [
    bool, int, float, complex, len, iter, list, repr, str, hash, abs, operator.neg, operator.pos, operator.invert,
    operator.index, copy.copy, copy.deepcopy, pickle.dumps, np.asarray, np.array, dir, memoryview, bytes, reversed,
    next, sorted, sum, math.sin, math.floor, range, lambda x: x(), lambda x: f"{x:.3f}", lambda x: f"{x:zz}",
    lambda x: np.ones(2)[x], lambda x: [1, 2][x], lambda x: np.ones(2).__setitem__(0, x), lambda x: x.flat[9],
    lambda x: x.flat.nothing, lambda x: [*x.flat], lambda x: x.at[0].add(1.0, mode="drop"),
    lambda x: x.flags["nothing"], lambda x: np.vectorize(math.sin)(x), lambda x: np.linalg.solve(x, x),
]  # fmt: skip


def attributes_of_arrays() -> dict[str, Any]:
    """What the class of traced arrays defines, by name."""
    table = {name: value for kind in reversed(type(tensor(2)).__mro__) for name, value in vars(kind).items()}
    of_classes = {*vars(object), "__weakref__", "__slots__", "__module__"}
    return {name: x for name, x in table.items() if name not in of_classes and (name[0] != "_" or name[:2] == "__")}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_methods_and_operators(kind: str) -> None:
    make = VALUES[kind]
    found = {}
    for name, value in attributes_of_arrays().items():
        found[f"x.{name}"] = shown(lambda name=name: getattr(make(), name))  # type: ignore[misc]
        if not name.startswith("__"):
            found[f"x.{name} = ..."] = shown(lambda name=name: setattr(make(), name, object()))  # type: ignore[misc]
        if not isinstance(value, types.FunctionType):
            continue
        for given in arguments(name, 4):
            found[f"x.{name}{given}"] = shown(functools.partial(value, make(), *given))
        for keyword in KEYWORDS:
            found[f"x.{name}({keyword}=...)"] = shown(functools.partial(value, make(), **{keyword: object()}))
    for function, other in itertools.product(BINARY, MAKERS):
        found[f"{function}(x, {other()})"] = shown(lambda f=function, other=other: f(make(), other()))  # type: ignore[misc]
        found[f"{function}({other()}, x)"] = shown(lambda f=function, other=other: f(other(), make()))  # type: ignore[misc]
    for unary in UNARY:
        found[f"{unary}(x)"] = shown(lambda f=unary: f(make()))  # type: ignore[misc]
    assert {call: what for call, what in found.items() if what} == {}


def test_errors_of_the_user_leave_scipy_without_frames_of_doors() -> None:
    """Also at the first call of a function, when its door stands in for it, and where nothing was ever traced."""
    program = """
import traceback
import func, numpy as np, scipy.optimize, scipy.integrate
from func.interpreters.core.source import is_engine_file

def fails(*args):
    raise KeyError("of the user")

func.grad(lambda x: x**2)(1.0)
for call in (lambda: scipy.optimize.fsolve(fails, [1.0]), lambda: scipy.integrate.quad(fails, 0.0, 1.0)):
    try:
        call()
    except KeyError as error:
        print([f.lineno for f in traceback.extract_tb(error.__traceback__) if is_engine_file(f.filename)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


@pytest.mark.parametrize("module", MODULES[:4])
def test_wrappers_say_what_the_functions_say(module: str) -> None:
    """Public functions have the parameters and defaults of the functions that they wrap, and are pickled by name."""
    namespace = importlib.import_module(module)
    wrappers = [f for name in namespace.__all__ if isinstance(f := getattr(namespace, name), types.FunctionType)]
    wrappers = [f for f in wrappers if f.__module__ == module]
    for wrapper in wrappers:
        own, inner = [inspect.signature(f, follow_wrapped=False) for f in (wrapper, wrapper.__wrapped__)]  # type: ignore[attr-defined]
        assert own == inner
        assert wrapper.__doc__ == wrapper.__wrapped__.__doc__  # type: ignore[attr-defined]
        assert pickle.loads(pickle.dumps(wrapper)) is wrapper
    assert len(wrappers) > 10


@pytest.mark.parametrize("order", [("fft", "sparse"), ("sparse.linalg", "signal")])
def test_modules_are_imported_after_the_first_tensor(order: tuple[str, ...]) -> None:
    """A module of func.scipy imports SciPy's, whose doors are then installed at once, and lead to the module itself."""
    program = f"""
import importlib
import numpy as np, func
x = func.tensor(np.ones(2), requires_grad=True)
for name in {order!r}:
    importlib.import_module("func.scipy." + name)
import scipy.fft, scipy.sparse
np.sum(np.abs(scipy.fft.fft(x)) ** 2).backward()
np.sum(scipy.sparse.csr_array(np.eye(2)) @ x).backward()
print(x.grad.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[5.0, 5.0]\n"
