"""Functions, methods and operators with wrong arguments outside of transforms show nothing of the engine."""

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
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from tests.support.tracebacks import engine_frames

MODULES = (
    "func.linalg", "func.numpy", "func.numpy.fft", "func.numpy.linalg", "func.scipy.fft", "func.scipy.integrate",
    "func.scipy.interpolate", "func.scipy.linalg", "func.scipy.ndimage", "func.scipy.optimize", "func.scipy.signal",
    "func.scipy.signal.windows", "func.scipy.sparse", "func.scipy.sparse.linalg", "func.scipy.spatial",
    "func.scipy.spatial.distance", "func.scipy.spatial.transform", "func.scipy.stats", "func.special",
)  # fmt: skip
UNSAFE = re.compile(r"mathieu|squareform|^(lmbda|\w+_seq|pascal|invpascal|hilbert|invhilbert|hadamard|fiedler)$")
"""Functions of SciPy's that crash on NaN or on arrays of objects, or take long for numbers that are not sizes."""
WORDS = re.compile(r"PyTreeSpec|\bTracer\b|\bAval\b|\w+Interpreter\b|FlatFunction|<locals>|arguments\[|__call__")
"""Words of func's own code, and of the libraries behind it."""


_PLACE = re.compile(r"(\n|^| )  (used |\w+ was called |in compiled code, )?at .*")
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
    """The traces of the engine in an error of a call: frames, or words of its text."""
    try:
        call()
    except Exception as error:
        frames = engine_frames(error)
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


def linear(x: Any) -> Any:
    return {"a": x * 2, "b": x[0]}


def of_dict(p: Any) -> Any:
    return np.sum(p["w"] * p["b"])


def squares(x: Any) -> Any:
    return np.sum(x**2)


def rule(kind: Any, *rules: Callable[..., Any]) -> Any:
    """A function of x, or of {'a': x}, with a rule."""
    function = kind(lambda x: {"a": x["a"] * 2})
    (function.defvjp if len(rules) == 2 else function.defjvp)(*rules)
    return function


def given_rule(ct: Any) -> Any:
    function = rule(func.custom_vjp, lambda x: ({"a": x["a"] * 2}, None), lambda _, __: (ct,))
    return func.grad(lambda x: np.sum(function({"a": x})["a"]))(X)


X = np.ones(3)
P = {"w": np.ones(2), "b": np.ones(2)}
A_B, W_B = "{'a': *, 'b': *}", "{'w': *, 'b': *}"
WRONG_CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "pullback of another tree": (
        lambda: func.vjp(linear, X)[1](X),
        f"of linear must have the tree of its output, {A_B}, but has one array",
    ),
    "pullback of other keys": (lambda: func.vjp(linear, X)[1]({"a": X, "c": 1.0}), "but has {'a': *, 'c': *}"),
    "pullback of a jitted function": (lambda: func.vjp(func.jit(linear), X)[1](X), A_B),
    "pullback of None": (lambda: func.vjp(squares, X)[1](None), "its output, one array, but has None"),
    "pullback of two": (
        lambda: func.vjp(linear, X)[1](X, X),
        "linear takes one argument, a cotangent with the tree of its output, {'a': *, 'b': *}, but was called with 2",
    ),
    "pullback of nothing": (lambda: func.vjp(squares, X)[1](), "was called with 0"),
    "pullback in grad": (lambda: func.grad(lambda x: func.vjp(linear, x)[1](x)[0])(X), A_B),
    "tangents of other keys": (
        lambda: func.jvp(of_dict, (P,), ({"w": X},)),
        "tangents have the tree ({'w': *},), but the primals ({'w': *, 'b': *},)",
    ),
    "tangents in a tuple": (
        lambda: func.jvp(squares, ([X],), ((X,),)),
        "tangents have the tree ((*,),), but the primals ([*],)",
    ),
    "two tangents": (lambda: func.jvp(squares, (X,), (X, X)), "(*, *), but the primals (*,)"),
    "linearized, other keys": (
        lambda: func.linearize(of_dict, P)[1]({"w": X}),
        "the tangents of of_dict have the tree ({'w': *},)",
    ),
    "linearized, two": (lambda: func.linearize(squares, X)[1](X, X), "the tangents of squares have the tree (*, *)"),
    "linearized, shape": (
        lambda: func.linearize(squares, X)[1](X[:2]),
        "primals[0] has shape (3,), but its tangent has shape (2,)",
    ),
    "transpose of another tree": (
        lambda: func.linear_transpose(linear, X)(X),
        f"the cotangent has the tree one array, but linear returns {A_B}",
    ),
    "transpose of two": (lambda: func.linear_transpose(linear, X)(X, X), "takes one argument"),
    "hvp": (lambda: func.hvp(of_dict, (P,), (X,)), "func.hvp: tangents have the tree (*,)"),
    "vhp": (
        lambda: func.vhp(of_dict, (P,), ({"w": X},)),
        f"func.vhp: tangents have the tree ({{'w': *}},), but the primals ({W_B},)",
    ),
    "ggnvp": (
        lambda: func.ggnvp(of_dict, squares, (P,), ({"a": 1.0},)),
        "func.ggnvp: tangents have the tree ({'a': *},)",
    ),
    "jet": (lambda: func.jet(of_dict, (P,), (({"w": X},),)), f"the tree of its primal, {W_B}"),
    "taylor": (lambda: func.taylor(of_dict, P, X, 2), f"v has the tree one array, but x {W_B}"),
    "in_dims": (
        lambda: func.vmap(of_dict, in_dims=({"w": 0},))(P),
        f"in_dims=({{'w': 0}},) does not fit the arguments, {W_B}: give",
    ),
    "in_dims, jitted": (lambda: func.vmap(func.jit(of_dict), in_dims=({"w": 0},))(P), "does not fit"),
    "out_dims": (
        lambda: func.vmap(linear, out_dims={"a": 0})(np.ones((2, 3))),
        f"out_dims={{'a': 0}} does not fit the output, {A_B}",
    ),
    "paths of a batch": (
        lambda: func.vmap(lambda x: {"a": x} if x > 0 else {"b": x})(np.array([1.0, -1.0])),
        "different trees, {'a': *} and {'b': *}",
    ),
    "bwd": (lambda: given_rule({"b": X}), "returned a cotangent of tree {'b': *} for an argument of tree {'a': *}"),
    "jvp rule": (
        lambda: func.jvp(
            rule(func.custom_jvp, lambda x, dx: ({"a": x[0]["a"]}, {"b": dx[0]["a"]})), ({"a": X},), ({"a": X},)
        ),
        "outputs of tree {'a': *} and tangents of tree {'b': *}",
    ),
    "checkpoint": (
        lambda: func.grad(func.checkpoint(lambda x: object()))(X),
        "func.checkpoint: output cannot be traced",
    ),
    "carry of scan": (lambda: func.scan(lambda c, y: ({"a": c}, y), 1.0, X), "before one array\n  after  {'a': *}"),
    "y of scan": (
        lambda: func.scan(lambda c, y: (c + 1, {"a": y} if c < 2 else y), 1, X),
        "before {'a': *}\n  after  one array",
    ),
    "y of map": (lambda: func.map(lambda x: object(), X), "func.map: y cannot be traced"),
    "branches": (
        lambda: func.jit(lambda x: func.cond(x[0] > 0, lambda x: {"a": x}, lambda x: {"b": x}, x))(X),
        "{'b': *}\n  {'a': *}",
    ),
    "switch": (
        lambda: func.jit(lambda i: func.switch(i, [lambda x: {"a": x}, lambda x: (x,)], X))(1),
        "{'a': *}\n  (*,)",
    ),
    "carry of while": (
        lambda: func.jit(lambda x: func.while_loop(lambda c: c["a"] < 3, lambda c: {"b": c["a"]}, {"a": x[0]}))(X),
        "after  {'b': *}",
    ),
    "carry of fori": (lambda: func.jit(lambda x: func.fori_loop(0, 3, lambda i, c: {"a": c}, x))(X), "after  {'a': *}"),
    "associative scan": (
        lambda: func.associative_scan(lambda a, b: {"a": a}, X),
        "argument one array\n  returned {'a': *}",
    ),
    "outside function": (
        lambda: func.jit(lambda x: func.pure_callback(lambda x: {"a": x}, x, x))(X),
        "the tree {'a': *} where one array was promised",
    ),
    "linear solve": (
        lambda: func.grad(
            lambda b: np.sum(func.custom_linear_solve(lambda v: 2 * v, b, lambda f, b: {"a": b}, symmetric=True))
        )(X),
        "{'a': *}",
    ),
    "divergence": (
        lambda: func.divergence(lambda p: [p["w"], p["b"]])(P),
        f"must return the tree of its argument, {W_B}, but it returned [*, *]",
    ),
    "sum over trees": (
        lambda: func.tree.map(lambda a, b: a + b, P, {"w": 1}),
        f"trees of one structure, but got {W_B} and {{'w': *}}",
    ),
    "ravel": (lambda: func.tree.ravel({"a": object()}), "func.tree.ravel: tree['a'] is not an array of numbers"),
    "unflatten": (lambda: func.tree.unflatten(func.tree.structure(P), [1]), f"{W_B} has 2 leaves, but got 1"),
    "program": (
        lambda: func.make_program(of_dict)(P)(X),
        "this program takes 2 arrays (f64[2], f64[2]), but was called with 1",
    ),
    "jitted result": (lambda: func.jit(lambda x: {"a": (object(),)})(X), "output['a'][0] cannot be traced"),
    "no such function": (lambda: func.curl, "no attribute 'curl'"),
    "no such function of trees": (lambda: func.tree.nothing, "no attribute 'nothing'"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_transforms_given_wrong_trees(name: str) -> None:
    call, words = WRONG_CALLS[name]
    assert shown(call) == ""
    with pytest.raises(Exception) as info:
        call()
    assert words in str(info.value)


def test_trees_of_the_users_classes_are_shown_as_they_print() -> None:
    class Loud:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __repr__(self) -> str:
            raise ValueError("not now")

    func.tree.register_node(Loud, lambda loud: ((loud.x,), None), lambda _, xs: Loud(*xs))
    point = namedtuple("point", "x y")
    assert func.tree.shown(func.tree.structure(point(1, [2, None]))) == "point(x=*, y=[*, None])"
    text = func.tree.shown(func.tree.structure({"a": Loud(1)}))
    assert "PyTreeSpec" not in text
    assert "Loud" in text


def attributes_of_arrays() -> dict[str, Any]:
    """The definitions of the class of traced arrays, by name."""
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


def test_errors_of_the_user_leave_scipy_without_frames_of_hooks() -> None:
    """Also at the first call of a function, when its hook stands in for it, and where nothing was ever traced."""
    program = """
import traceback
import func, numpy as np, scipy.optimize, scipy.integrate
from func.interpreters.host.source import is_engine_file

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
    """A module of func.scipy imports SciPy's, whose hooks are then installed at once, and lead to the module itself."""
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


def logarithm_of_determinant(x: Any) -> Any:
    factor = np.linalg.cholesky(x)
    return 2 * np.sum(np.log(np.diagonal(factor)))


OF_COMPILED: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jit": lambda f: f,
    "grad": func.grad,
    "vjp": lambda f: lambda x: func.vjp(f, x),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,)),
    "hessian": func.hessian,
    "vmap": lambda f: lambda x: func.vmap(f)(x[None]),
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(f))(x[None]),
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of vmap": lambda f: func.grad(lambda x: np.sum(func.vmap(f)(x[None]))),
}


@pytest.mark.parametrize("name", OF_COMPILED)
def test_transforms_of_jitted_functions_name_the_line(name: str) -> None:
    transformed = OF_COMPILED[name](func.jit(logarithm_of_determinant))
    with pytest.raises(np.linalg.LinAlgError) as info:
        transformed(-np.eye(2))
    notes = " ".join(info.value.__notes__)
    assert "in logarithm_of_determinant: `factor = np.linalg.cholesky(x)`" in notes
