"""Lists and tuples that hold traced values, in every function of NumPy's that takes array-likes."""

from __future__ import annotations

import math
import operator
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.host import dispatchers
from tests.support.coverage import smooth
from tests.support.functions import FUNCTIONS

A = np.array([[1.0, 2.0], [3.0, 4.0]])
V = np.array([0.3, 0.4])
X = np.array([0.5, 0.7])

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: np.sum([a, b]),
    "mean": lambda a, b: np.mean([a, b]),
    "max": lambda a, b: np.max([a, b]),
    "prod": lambda a, b: np.prod([a, b]),
    "std": lambda a, b: np.std([a, b]),
    "var": lambda a, b: np.var([a, b]),
    "cumsum": lambda a, b: np.cumsum([a, b])[1],
    "dot": lambda a, b: np.dot([a, b], [b, a]),
    "vdot": lambda a, b: np.vdot([a, b], [b, 2.0]),
    "norm": lambda a, b: np.linalg.norm([a, b]),
    "exp": lambda a, b: np.sum(np.exp([a, b])),
    "sqrt": lambda a, b: np.sum(np.sqrt((a, b))),
    "hypot": lambda a, b: np.sum(np.hypot([a, b], 1.0)),
    "add": lambda a, b: np.sum(np.add([a, b], V)),
    "power": lambda a, b: np.sum(np.power([a, b], [2, b])),
    "cross": lambda a, b: np.sum(np.cross([a, b, 1.0], [b, a, 2.0])),
    "outer": lambda a, b: np.sum(np.outer([a, b], [a, b])),
    "diag": lambda a, b: np.sum(np.diag([a, b]) @ V),
    "where": lambda a, b: np.sum(np.where([True, False], [a, b], 0.0)),
    "interp": lambda a, b: np.interp(0.3, [0.0, 1.0], [a, b]),
    "solve": lambda a, b: np.sum(np.linalg.solve([[a, b], [b, 3.0]], V)),
    "det": lambda a, b: np.linalg.det(((a, b), (b, 1.0))),
    "einsum": lambda a, b: np.einsum("i,i", [a, b], [b, a]),
    "atleast_1d": lambda a, b: np.sum(np.atleast_1d([a, b])),
    "append": lambda a, b: np.sum(np.append(V, [a, b]) ** 2),
    "concatenate": lambda a, b: np.sum(np.concatenate([[a], [b], [1.0]]) ** 2),
    "vstack": lambda a, b: np.sum(np.vstack([[a, b], [b, a]])[0] * V),
    "stack": lambda a, b: np.sum(np.stack([[a, b], [1.0, 2.0]]) ** 2),
    "polyval": lambda a, b: np.polyval([a, b, 1.0], 0.3),
    "trapezoid": lambda a, b: np.trapezoid([a, b, 1.0]),
    "trapezoid dx": lambda a, b: np.trapezoid(V, dx=a) * b,
    "median": lambda a, b: np.median([a, b, 1.0]),
    "clip": lambda a, b: np.sum(np.clip([a, b], 0.0, 1.0)),
    "fft": lambda a, b: np.abs(np.fft.fft([a, b, 1.0])[1]),
    "abs": lambda a, b: np.sum(np.abs([a, -b])),
    "full": lambda a, b: np.sum(np.full(3, a) * b),
    "full_like": lambda a, b: np.sum(np.full_like(V, a) * b),
    "interp left": lambda a, b: np.interp(-1.0, [0.0, 1.0], V, left=a) * b,
    "nested": lambda a, b: np.sum([[a, [b][0]], [1.0, 2.0]] * A),
    "array + list": lambda a, b: np.sum(operator.add(A, [a, b]) ** 2),
    "array - list": lambda a, b: np.sum((A - [a, b]) ** 2),
    "array * list": lambda a, b: np.sum((A * [a, b]) ** 2),
    "array / list": lambda a, b: np.sum(A / [a, b]),
    "array @ list": lambda a, b: np.sum((A @ [a, b]) ** 2),
    "list @ array": lambda a, b: np.sum(([a, b] @ A) ** 2),
    "traced @ list": lambda a, b: np.sum((a * A) @ [a, b]),
    "list * traced": lambda a, b: np.sum([a, 1.0] * (b * V)),
    "method dot": lambda a, b: np.sum(A.dot([a, b])),
    "array of list": lambda a, b: np.sum(np.array([a, b]) ** 2),
    "result of objects": lambda a, b: np.linalg.norm(np.exp([a, b]) * (a * V)),
}


def on_pair(call: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: call(x[0], x[1])


def differences(f: Callable[[Any], Any]) -> Any:
    step = 1e-6
    return np.array([(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(2)])


def tensor_gradient(f: Callable[[Any], Any]) -> Any:
    t = func.tensor(X, requires_grad=True)
    f(t).backward()
    return t.grad.detach().numpy()


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_lists(name: str) -> None:
    f = on_pair(CALLS[name])
    slope = differences(f)
    np.testing.assert_allclose(func.grad(f)(X), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(func.jvp(f, (X,), (np.ones(2),)), (f(X), slope.sum()), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(func.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    np.testing.assert_allclose(func.vmap(func.grad(f))(X[None])[0], slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(func.jit(f, compiler="numpy")(X), f(X))
    np.testing.assert_allclose(tensor_gradient(f), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("ufunc", [np.isfinite, np.isnan, np.signbit, np.logaddexp.reduce, np.spacing])
def test_ufuncs_without_a_loop_over_objects(ufunc: Any) -> None:
    for run in (func.grad, func.jit, func.vmap):
        with pytest.raises(func.errors.TracerConversionError, match=r"Write np\.array\(\[\.\.\.\]\) around the list"):
            run(lambda x: np.sum(ufunc([x[0], x[1]])))(np.stack([X, X]) if run is func.vmap else X)


OTHER_LOOPS = [np.logical_and, np.logical_xor, np.logical_not, np.floor, np.trunc, np.sign, np.maximum, np.fmin]
"""Ufuncs whose loops over objects give integers and truth values of Python's, or know no NaN and no ties."""


@pytest.mark.parametrize("ufunc", OTHER_LOOPS)
def test_ufuncs_whose_objects_are_no_numbers_of_numpy(ufunc: Any) -> None:
    others = [[1.0, 0.0]] * (ufunc.nin - 1)
    calls = {
        "by name": lambda x: ufunc([x[0], 2.0], *others),
        "starred": lambda x: ufunc(*[[x[0], x[1]], *others]),
        "attribute": lambda x: np.floor([x[0], x[1]]),
        "keyword": lambda x: np.logical_not([x[0], x[1]], casting="unsafe"),
    }
    for call in calls.values():
        for run in (func.jit, lambda f: lambda x: func.jvp(f, (x,), (x,)), lambda f: lambda x: func.vmap(f)(x[None])):
            with pytest.raises(
                func.errors.TracerConversionError, match=r"Write np\.array\(\[\.\.\.\]\) around the list"
            ):
                run(call)(X)


ROWS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: np.exp([x, 2 * x]),
    "rows and lists": lambda x: np.sin([x, [x[0], x[1]]]),
    "add": lambda x: np.add([x, x], [[1.0, 2.0]]),
    "matrices": lambda x: np.negative([np.outer(x, x)]),
    "local name": lambda x, f=np.square: f([x, x]),
}


@pytest.mark.parametrize("name", ROWS)
def test_ufuncs_of_lists_of_rows(name: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(ROWS[name](x) * x)

    np.testing.assert_allclose(func.grad(f)(X), differences(f), rtol=1e-6)
    np.testing.assert_allclose(func.vmap(ROWS[name])(X[None])[0], ROWS[name](X))
    np.testing.assert_allclose(func.jit(ROWS[name])(X), ROWS[name](X))


@pytest.mark.parametrize("ufunc", [np.sin, np.arctan2, np.log10])
def test_numbers_beside_traced_ones_in_a_ufunc_are_refused_by_name(ufunc: Any) -> None:
    others = [1.0] * (ufunc.nin - 1)
    for number in (2.0, np.float64(2.0), np.int8(2), 2):
        with pytest.raises(func.errors.TracerConversionError, match=r"Write np\.array\(\[\.\.\.\]\) around the list"):
            func.grad(lambda x, n=number: np.sum(ufunc([x[0], n], *others)))(X)


FLAGS, PLACES = np.array([True, False]), np.array([1, 0])
ROW_CALLS: dict[str, Callable[[Any], Any]] = {
    "array * rows": lambda x: A * [x, 2 * x],
    "rows - array": lambda x: [x, x] - A,
    "array @ rows": lambda x: A @ (x, [1.0, x[0]]),
    "operator": lambda x: operator.truediv(A, [x, x]),
    "method dot": lambda x: A.dot([x, x]),
    "reduce": lambda x: np.add.reduce([x, x * x]),
    "accumulate": lambda x: np.multiply.accumulate([x, x]),
    "outer": lambda x: np.subtract.outer([x[0], 1.0], A),
    "where": lambda x: np.where(FLAGS, [x, x * x], 0.0),
    "dot": lambda x: np.dot([x, x], A),
    "inner": lambda x: np.inner([x, [1.0, x[0]]], A),
    "vdot": lambda x: np.vdot([x, x], A),
    "concatenate": lambda x: np.concatenate([[x, x], A]),
    "bincount": lambda x: np.bincount(PLACES, weights=[x[0], x[1]]),
    "copyto": lambda x: written(x, lambda a: np.copyto(a, [x, 2 * x])),
    "putmask": lambda x: written(x, lambda a: np.putmask(a, A > 1, [x[0], x[1]])),
    "put": lambda x: written(x, lambda a: np.put(a, PLACES, [x[0], x[1]])),
    "at": lambda x: written(x, lambda a: np.add.at(a, PLACES, [x, x])),
    "+=": lambda x: written(x, lambda a: operator.iadd(a, [x, x])),
    "[:] =": lambda x: written(x, lambda a: operator.setitem(a, slice(None), [x, x])),
}


def written(x: Any, write: Callable[[Any], Any]) -> Any:
    """A traced array after a write."""
    a = A * x[0]
    write(a)
    return a


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ROW_CALLS)
def test_lists_of_rows_beside_plain_arrays(name: str, dtype: Any) -> None:
    """The right value in NumPy's dtype, or the refusal; for float64 always the value."""
    call, x = ROW_CALLS[name], X.astype(dtype)
    expected = np.asarray(call(x))
    try:
        value, tangent = func.jvp(call, (x,), (np.ones(2, dtype),))
    except func.errors.TracerConversionError as error:
        assert dtype == np.float32 and "around the list" in str(error)
        return
    step = (call(X + 1e-6) - call(X - 1e-6)) / 2e-6
    np.testing.assert_allclose(tangent, step, rtol=1e-6 if dtype == np.float64 else 1e-3, atol=1e-6)
    for got in (value, func.jit(call)(x), func.vmap(call)(x[None])[0]):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    weights = np.arange(1.0, 1 + expected.size).reshape(expected.shape)
    gradient = func.grad(lambda x: np.sum(weights * call(x)))(x)
    np.testing.assert_allclose(np.sum(gradient), np.sum(weights * step), rtol=1e-4)


ALONE: dict[str, Callable[[Any], Any]] = {
    "a number of another precision": lambda x: np.sum(x[1] * (A * [x[0], np.float32(0.1)])),
    "a number that becomes complex": lambda x: np.sum(x[0] * (-A) ** [1.0 + 0 * x[0], 0.5]),
    "a division by zero": lambda x: np.sum(A / [x[0], 0.0]),
    "a remainder of zero": lambda x: np.sum(A % [x[0], 0.0]),
    "a function that is not known": lambda x: np.sum([np.add][0]([x[0], x[1]], 1.0)),
    "a method that compares": lambda x: np.sum(A.clip([x[0], x[1]], 3.0)),
    "a reduction that compares": lambda x: np.maximum.reduce([x[0], x[1]]),
}


@pytest.mark.parametrize("name", ALONE)
def test_objects_that_compute_otherwise(name: str) -> None:
    with pytest.raises(func.errors.TracerConversionError, match=r"Write np\.array\(\[\.\.\.\]\) around the list"):
        func.grad(ALONE[name])(X)


def test_errors_of_other_operations_on_a_line_with_a_list_stay() -> None:
    def f(x: Any) -> Any:
        y = np.sum(A * [x[0], x[1]])
        return y * (1 / 0)

    with pytest.raises(ZeroDivisionError):
        func.grad(f)(X)


OPERATORS = {
    symbol: eval(f"lambda a, b: a {symbol} b") for symbol in re.findall(r"\S+", "+ - * / // % ** @ < == >= & |")
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_between_lists_and_arrays_of_any_dtype(symbol: str) -> None:
    """Each gives NumPy's value in NumPy's dtype, or is refused."""
    call, right = OPERATORS[symbol], 0
    lists = [lambda x: [x[0], x[1]], lambda x: (x, x), lambda x: [x[0], 2], lambda x: [x[0], np.float64(0.1)]]
    for dtype in (np.float64, np.float32, np.int64, np.int8, np.bool_):
        x = np.array([3, 2]).astype(dtype)
        for other in (np.float64, np.float32, np.int64, np.int8, np.bool_):
            a = np.array([[0.1, 2.5], [3.7, 4.0]]).astype(other)
            for build in lists:
                for f in (lambda x: call(a, build(x)), lambda x: call(build(x), a)):  # noqa: B023
                    try:
                        expected = f(x)
                        got = func.vmap(f)(x[None])[0]
                    except (func.errors.TracerConversionError, TypeError, ValueError):
                        continue
                    assert got.dtype == expected.dtype
                    np.testing.assert_allclose(got, expected, rtol=1e-12 if expected.dtype == np.float64 else 1e-6)
                    right += 1
    assert right >= 4


def test_integers_in_ufuncs_that_choose() -> None:
    x = np.array([[1, 2], [3, 4]])
    out = func.vmap(lambda x: np.multiply([x[0], x[1]], 3))(x)
    assert out.dtype == np.int64 and out.tolist() == [[3, 6], [9, 12]]
    for ufunc in (np.gcd, np.maximum, np.fmin):
        with pytest.raises(func.errors.TracerConversionError, match="around the list"):
            func.vmap(lambda x, ufunc=ufunc: ufunc([x[0], x[1]], 3))(x)


def test_narrow_numbers_do_not_draw_others_down() -> None:
    """As objects the numbers of another operand would be Python's, which adapt."""
    x = X.astype(np.float32)
    assert func.jit(lambda x: np.exp([x[0], x[1]]))(x).dtype == np.float32
    for narrow in (x, np.array([1, 2], np.int8)):
        with pytest.raises(func.errors.TracerConversionError, match="around the list"):
            func.vmap(lambda x: np.subtract([x[0], x[1]], np.float64(0.1)))(narrow[None])


def nested(x: Any) -> Any:
    """The elements as nested lists."""
    return [nested(x[i]) for i in range(len(x))] if np.ndim(x) else x


def takes_lists(name: str) -> bool:
    """Whether NumPy's function gives for a nested list what it gives for the array."""
    call = FUNCTIONS[name]
    try:
        expected, got = call.function(call.x), call.function(nested(call.x))
        return bool(np.array_equal(np.asarray(expected), np.asarray(got)))
    except (TypeError, ValueError, AttributeError, IndexError):
        return False


OBJECTS = {"isfinite", "isinf", "isnan", "signbit", "spacing", "frexp", "ldexp", "modf"}
"""Ufuncs without a loop over objects."""
OTHERWISE = {"ceil", "floor", "logical_not", "sign", "trunc"}
"""Functions whose loop over objects is another operation."""


NUMPYS = [name for name in sorted(FUNCTIONS) if name.startswith("np.") and np.ndim(FUNCTIONS[name].x)]
TABLE = [name for name in NUMPYS if takes_lists(name)]
"""The functions of the coverage table that are called with one array, for which a nested list will do."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_every_function_of_the_coverage_table(name: str) -> None:
    call = FUNCTIONS[name]
    f, x = call.function, call.x
    listed = smooth(lambda v: f(nested(v)))
    if name[3:] in OBJECTS | OTHERWISE:
        with pytest.raises((func.errors.TracerConversionError, TypeError)):
            func.jvp(listed, (x,), (np.ones_like(x),))
        return
    for got, expected in zip(
        func.jvp(listed, (x,), (np.ones_like(x),)), func.jvp(smooth(f), (x,), (np.ones_like(x),)), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got, np.asarray(expected).dtype), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(func.vmap(listed)(x[None]), func.vmap(smooth(f))(x[None]), rtol=1e-9, atol=1e-12)


def test_numpy_is_what_it_was() -> None:
    found = dispatchers.numpy_dispatchers()
    assert len(found) > 150
    assert pickle.loads(pickle.dumps(np.sum)) is np.sum and np.sum([1, 2]) == 3
    assert np.linalg.norm([3.0, 4.0]) == 5.0 and list(np.cumsum((1, 2))) == [1, 3]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        np.sum([1.0], nonsense=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="missing"):
        np.sum()  # type: ignore[call-overload]


def test_dispatchers_of_functions_in_c_are_found_by_the_collector_too() -> None:
    """As where NumPy's memory has another layout than func knows; the collector does not see what a process froze."""
    script = """
from func.host import dispatchers
found = {id(function) for function in dispatchers.hidden_dispatchers()}
dispatchers._behind = lambda function: None
print(len(found) > 10, found == {id(function) for function in dispatchers.hidden_dispatchers()})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "True"], done.stderr


DESCRIPTION = """
import inspect, pickle, sys, traceback, types
import numpy as np

DISPATCHERS = [
    value
    for name, module in sorted(sys.modules.items())
    if name.startswith("numpy.")
    for attribute, value in sorted(vars(module).items())
    if attribute.endswith("_dispatcher") and isinstance(value, types.FunctionType)
]

def described():
    calls = ["np.sum()", "np.sum(1, foo=2)", "np.stack(3)", "np.vstack(i for i in [1])", "np.clip()", "np.einsum()"]
    calls += ["np.where(1, 2, 3, 4)", "np.linalg.norm()", "np.select(1, 2)", "np.pad([1])", "np.choose(0)"]
    for call in calls:
        try:
            yield eval(call)
        except Exception as error:
            yield type(error).__name__, str(error)
            yield [(f.filename, f.lineno, f.name, f.line) for f in traceback.extract_tb(error.__traceback__)[2:]]
    yield str(inspect.signature(np.sum)), pickle.dumps(np.sum)
    for dispatcher in DISPATCHERS:
        code = dispatcher.__code__
        yield code.co_name, code.co_qualname, code.co_filename, code.co_firstlineno, code.co_varnames[:code.co_argcount]
        yield dispatcher.__defaults__, dispatcher.__kwdefaults__, inspect.getsource(dispatcher)

before = repr(list(described()))
asked = []
class Duck:
    def __array_function__(self, function, types, args, kwargs):
        asked.append((function.__name__, len(types)))
        return 7
class Sub(np.ndarray):
    pass
assert np.sum(Duck()) == np.stack([Duck()]) == np.where(True, Duck(), 1) == 7
import func
assert np.sum(Duck()) == np.stack([Duck()]) == np.where(True, Duck(), 1) == 7
assert asked[:3] == asked[3:], asked
assert type(np.sort(np.ones(2).view(Sub))) is Sub
for dispatcher in DISPATCHERS:  # some get their code when they are first called
    try:
        dispatcher()
    except Exception:
        pass
assert repr(list(described())) == before
"""


def test_nothing_shows_that_dispatchers_have_new_code() -> None:
    done = subprocess.run([sys.executable, "-c", DESCRIPTION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_dispatchers_look_into_lists_only_where_traced_values_exist() -> None:
    program = """
import numpy as np, func
from func.interpreters.core import TRACED
searches = []
from func.host.dispatchers import Search
search = Search.extended
Search.extended = staticmethod(lambda arguments: searches.append(1) or search(arguments))
np.sum([1.0, 2.0]), np.stack([[1.0], [2.0]]), np.linalg.norm([1.0])
assert not searches and not TRACED.run
assert func.grad(lambda x: np.sum([x, x]))(1.0) == 2.0
assert len(searches) == 1 and not TRACED.run
try:
    func.grad(lambda x: np.sum([x, 1 / 0]))(1.0)
except ZeroDivisionError:
    pass
assert not TRACED.run and not TRACED.stay
np.sum([1.0, 2.0])
assert len(searches) == 1
w = func.tensor(3.0, requires_grad=True)
np.linalg.norm([w, 4.0]).backward()
assert abs(w.grad.item() - 0.6) < 1e-15
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_first_transforms_of_several_threads_look_into_lists() -> None:
    program = """
import threading
import numpy as np, func
found, start = [], threading.Barrier(4)
def first(loss):
    start.wait()
    found.append(func.grad(loss)(2.0))
losses = [lambda x: np.sum([x, x * x]), lambda x: 5.0 * np.stack([x, x])[0]]
threads = [threading.Thread(target=first, args=(loss,)) for loss in losses * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [5.0] * 4
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lists_that_never_end_are_numpys_affair() -> None:
    endless: list[Any] = [1.0]
    endless.append(endless)
    with pytest.raises(ValueError, match=r"inhomogeneous|sequence"):
        np.sum(endless)


def test_lists_as_arguments_of_the_function() -> None:
    assert func.grad(lambda xs: np.linalg.norm(xs))([3.0, 4.0]) == pytest.approx([0.6, 0.8])
    assert func.grad(lambda xs: np.sum(np.sin(xs)))([0.0, 0.0]) == [1.0, 1.0]


def test_arrays_of_objects_end_with_the_function() -> None:
    def f(x: Any) -> Any:
        return A @ [x[0], x[1]]

    np.testing.assert_allclose(func.jacfwd(f)(X), A)
    np.testing.assert_allclose(func.jacrev(f)(X), A)
    np.testing.assert_allclose(func.jit(f, compiler="numpy")(X), A @ X)
    np.testing.assert_allclose(func.vmap(lambda x: {"exp": np.exp([x[0], x[1]])})(X[None])["exp"][0], np.exp(X))
    aux = func.grad(lambda x: (x[0], f(x)), has_aux=True)(X)[1]
    assert aux.dtype == np.float64 and np.allclose(aux, A @ X)
    with pytest.raises(func.errors.TracerConversionError, match="complex128"):
        func.grad(lambda x: np.abs(np.sum(np.exp([x[0] + 1j * x[1], 1.0]))))(X)


def test_lists_of_arrays_that_intercept_made() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        a[0] = x[0]
        return np.linalg.norm([a, a])

    with func.intercept():
        np.testing.assert_allclose(func.grad(f)(X), [math.sqrt(2), 0.0])


SECOND = [func.hessian, lambda f: func.jit(func.hessian(f)), lambda f: func.jacfwd(func.grad(f))]


@pytest.mark.parametrize("transform", SECOND)
def test_second_derivatives_through_lists(transform: Any) -> None:
    def listed(x: Any) -> Any:
        return np.linalg.norm([x[0], x[1] * x[0]]) + np.sum(np.exp([x[0], x[1] * x[0]]))

    def joined(x: Any) -> Any:
        parts = np.stack([x[0], x[1] * x[0]])
        return np.linalg.norm(parts) + np.sum(np.exp(parts))

    np.testing.assert_allclose(transform(listed)(X), func.hessian(joined)(X), rtol=1e-9)


@pytest.mark.parametrize("f", [lambda x: np.full((), x[0]), lambda x: np.full((1,), x[0]).reshape(())])
def test_an_output_may_be_an_array_of_one_object(f: Any) -> None:
    x = np.array([2.0, 3.0])
    value, gradient = func.value_and_grad(f)(x)
    assert value == 2.0
    for got in (gradient, func.jacfwd(f)(x), func.jit(func.grad(f))(x)):
        np.testing.assert_array_equal(got, [1.0, 0.0])


@pytest.mark.parametrize("name", ["ceil", "sin", "isfinite", "signbit", "modf", "exp2", "logaddexp", "ldexp", "less"])
def test_elementwise_functions_of_func_take_lists(name: str) -> None:
    more = {"logaddexp": ([1.0, 2.0],), "ldexp": (2,), "less": ((0.6, 0.6),)}.get(name, ())

    def call(x: Any) -> Any:
        return getattr(func.numpy, name)([[x[0], 1], [x[1], 2.5]], *more)

    expected = np.asarray(getattr(np, name)([[X[0], 1], [X[1], 2.5]], *more))
    for run in (lambda x: func.jvp(call, (x,), (x,))[0], func.jit(call), lambda x: func.vmap(call)(x[None])):
        got = np.asarray(run(X))
        np.testing.assert_allclose(got.reshape(expected.shape), expected)
        assert got.dtype == expected.dtype


SHORT_NAMES: dict[str, Callable[[Any], Any]] = {
    "sort_complex": lambda x: np.sort_complex([x[1], x[0]]),
    "sort_complex of rows": lambda x: np.sort_complex([x, x[::-1]]),
    "trim_zeros": lambda x: np.asarray(np.trim_zeros([x[0] * 0, x[1], x[2]])),
}
"""Functions of NumPy whose dispatchers are called otherwise than most."""


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", SHORT_NAMES)
def test_functions_with_dispatchers_of_other_names(name: str, dtype: str) -> None:
    f, x = SHORT_NAMES[name], np.array([3, 1, 2]).astype(dtype)
    for got in (func.vmap(f)(x[None])[0], func.vjp(f, x)[0] if x.dtype.kind in "fc" else f(x)):
        assert got.dtype == f(x).dtype
        assert np.array_equal(got, f(x))


def test_a_list_without_its_zeros_is_a_list() -> None:
    seen = []
    func.vmap(lambda x: (seen.append(np.trim_zeros([x, 0])), x)[1])(np.ones(2))
    assert [type(x) for x in seen] == [list]
    assert len(seen[0]) == 1


PACKAGE = """
import numpy as np


def largest(r):
    place = np.argmax(np.abs([r[0], r[1], r[0] * r[1]]))
    return r[0] * (place + 1.0)


def weighted(r):
    return np.ones(2).dot([r[0], r[1]]) + np.sum(np.array([1.0, 2.0]) * [r[0], r[1]])


def refused(r):
    return np.logical_and([r[0]], [r[1]])
"""


@pytest.mark.parametrize("transform", [func.grad, lambda f: func.jit(func.grad(f)), lambda f: func.grad(func.jit(f))])
def test_lists_in_ufuncs_of_installed_packages(transform: Any, tmp_path: Any) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_package.py").write_text(PACKAGE)
    namespace: dict[str, Any] = {"__name__": "some_package"}
    exec(compile(PACKAGE, str(folder / "some_package.py"), "exec"), namespace)
    np.testing.assert_allclose(transform(namespace["weighted"])(X), [2.0, 3.0])
    if transform is func.grad:
        np.testing.assert_allclose(transform(namespace["largest"])(X), [2.0, 0.0])
        with pytest.raises(func.errors.TracerConversionError, match=r"np\.array|plain arrays only"):
            transform(namespace["refused"])(X)


FLAT: dict[str, Callable[[Any], Any]] = {
    "ufunc": lambda x: np.sum(np.exp(x.flat)),
    "function": lambda x: np.concatenate([x.flat, x.flat])[5] * np.sum(x.flat),
    "dot": lambda x: np.dot(x.flat, x.flat),
    "asarray": lambda x: np.sum(np.asarray(x.flat) ** 2),
    "comparison": lambda x: np.sum(np.where(x.flat > 2.5, x.flat, 0.0)) + np.sum(x.flat != 2.5) * x[0, 0],
    "mask": lambda x: np.sum(1.0 / x.flat[~np.isnan(x.flat)]),
    "reduce": lambda x: np.add.reduce(x.flat) * np.ones(4) @ np.ones(4),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_in_numpys_functions(name: str) -> None:
    f = FLAT[name]
    slope = np.array([(f(A + e) - f(A - e)) / 2e-6 for e in 1e-6 * np.eye(4).reshape(4, 2, 2)]).reshape(2, 2)
    np.testing.assert_allclose(func.grad(f)(A), slope, rtol=1e-7)
    np.testing.assert_allclose(func.jit(func.grad(f))(A), slope, rtol=1e-7)
