"""Values that may leave a trace, decided by the value alone; errors that name the user's line and the fix."""

from __future__ import annotations

import logging
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from math import exp, fsum, hypot, sin
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.stats

import func
from func.errors import StagingError, TracerConversionError

X = np.array([0.5, 0.7])
Line = tuple[Callable[[Any], Any], type[Exception], str]


def leaf(value: Any = 2.0) -> Any:
    return func.tensor(value, requires_grad=True)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "renamed": (lambda f: lambda x: f(x))(float),
    "math.sin": math.sin,
    "math.sin beside float": lambda x: sin(x) + float(3),
    "round trip": lambda x: float(str(1.0)) + exp(x),
    "complex": complex,
    "np.float64": np.float64,
    "math.hypot": lambda x: hypot(x, 1.0),
    "sum of floats": lambda x: fsum([x, 1.0]),
    "format to float": lambda x: float.__add__(1.0, float(x)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_do_not_leave(name: str) -> None:
    convert = NUMBERS[name]
    for run in (
        lambda: convert(leaf()),
        lambda: func.grad(lambda x: x * convert(x))(2.0),
        lambda: func.jvp(lambda x: x * convert(x), (2.0,), (1.0,)),
        lambda: func.jit(lambda x: x * convert(x))(2.0),
        lambda: func.vmap(func.grad(lambda x: x * convert(x)))(X),
        lambda: func.grad(lambda x: convert(leaf() * x) * x)(2.0),
    ):
        with pytest.raises((TracerConversionError, StagingError)):
            run()


def test_it_does_not_matter_whether_the_source_is_at_hand() -> None:
    program = (
        "import func, math\nw = func.tensor(2.0, requires_grad=True)\n"
        "for f in (lambda: math.sin(w) + float(3), lambda: float(w)):\n"
        "    try:\n        f()\n    except func.errors.TracerConversionError:\n        print('refused')\n"
        "print('%.1f' % w, w.item())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused", "refused", "2.0", "2.0"]
    namespace: dict[str, Any] = {"func": func, "math": math, "w": leaf()}
    with pytest.raises(TracerConversionError):
        exec("math.sin(w) + float(3)", namespace)


def test_explicit_exits() -> None:
    t = leaf()
    assert t.item() == t.tolist() == float(t.detach()) == float(func.stop_gradient(t)) == 2.0
    assert func.grad(lambda x: x * float(func.stop_gradient(x)))(3.0) == 3.0
    assert bool(t) and int(t) == 2 and t > 1
    with func.no_grad():
        assert float(t) == math.sqrt(t * t) == 2.0
    assert float(func.tensor(2.0)) == 2.0
    np.testing.assert_allclose(func.vmap(lambda x: x * float(x))(X), X**2)


TRACE: dict[str, Callable[[Any], Any]] = {
    "grad": func.grad,
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (np.ones_like(x),)),
    "jacfwd": func.jacfwd,
    "vmap": lambda f: func.vmap(lambda row: f(row)),
    "jit": func.jit,
}


@pytest.mark.parametrize("transform", TRACE.values(), ids=TRACE)
def test_the_buffer_of_an_array_does_not_leave(transform: Callable[[Any], Any]) -> None:
    x = np.stack([X, X])
    for f in (lambda x: np.sum(np.asarray(x.data)), lambda x: np.sum(x[0] * x.data[0])):
        with pytest.raises(AttributeError, match=r"(?s)`.data` is about the memory.*test_leaving.*func.stop_gradient"):
            transform(f)(x)

    def replace(x: Any) -> Any:
        y = x * 1
        y.data = X
        return np.sum(y)

    with pytest.raises(func.errors.UnsupportedFunctionError, match=r"(?s)numbers of a tensor.*test_leaving.*detach"):
        transform(replace)(x)

    def asks(x: Any) -> Any:
        assert not hasattr(x, "data") and getattr(x, "data", x) is x
        return np.sum(x)

    transform(asks)(x)


def test_texts_show_numbers(caplog: pytest.LogCaptureFixture) -> None:
    def shown(x: Any) -> str:
        logging.getLogger("shown").warning("%.3f", x)
        return "|".join([f"{x:.3f}", "%.3f" % x, "%s %.1e" % ("at", x), "%(x)5.2f" % {"x": x}, format(x, ".1f")])  # noqa: UP031

    expected = "2.000|2.000|at 2.0e+00| 2.00|2.0"
    texts: list[str] = []

    def f(x: Any) -> Any:
        texts.append(shown(x))
        return x * x

    assert shown(leaf() * 1.0) == expected
    func.grad(f)(2.0), func.jvp(f, (2.0,), (1.0,)), func.grad(func.grad(f))(2.0)
    assert texts == [expected] * 3
    assert caplog.text.count("2.000") == 4
    np.testing.assert_allclose(func.vmap(f)(np.array([2.0, 2.0])), [4.0, 4.0])
    assert "2.000" in texts[-1]
    batch: list[str] = []
    func.vmap(lambda x: (batch.append(f"{x:.1f}"), x)[1])(np.array([1.0, 2.0]))
    assert batch == ["[1.0 2.0]"]
    with pytest.raises(StagingError, match=r"func\.debug\.print"):
        func.jit(lambda x: ("%.3f" % x, x)[1])(2.0)  # noqa: UP031


def write_element(x: Any) -> Any:
    a = np.zeros(2)
    a[0] = x[0]
    return np.sum(a)


def add_to_element(x: Any) -> Any:
    a = np.zeros(2)
    a[0] += x[0]
    return np.sum(a)


def write_all(x: Any) -> Any:
    a = np.zeros(2)
    a[:] = x
    return np.sum(a)


def add_to_all(x: Any) -> Any:
    a = np.zeros(2)
    a += x
    return np.sum(a)


def write_flat(x: Any) -> Any:
    a = np.zeros(2)
    a.flat[0] = x[0]
    return np.sum(a)


def write_by_out(x: Any) -> Any:
    a = np.zeros(2)
    np.add(x, 1.0, out=a)
    return np.sum(a)


@pytest.mark.parametrize("f", [write_element, add_to_element, write_all, add_to_all, write_flat, write_by_out])
def test_writes_into_plain_arrays_name_the_ways_out(f: Callable[[Any], Any]) -> None:
    for run in (lambda: func.grad(f)(X), lambda: func.jit(f)(X), lambda: f(leaf(X))):
        with pytest.raises((TracerConversionError, StagingError, ValueError)) as caught:
            run()
        if isinstance(caught.value, func.errors.FuncError):
            text, place = str(caught.value), f" in {f.__name__}"
            assert all(words in text for words in ("np.zeros_like(x", "func.intercept()", "np.stack", place))
    with func.intercept():
        assert func.grad(f)(X).shape == (2,)


def set_shape(x: Any) -> Any:
    y = x * 1
    y.shape = (2, 1)
    return np.sum(y)


WORDS: dict[str, Line] = {
    "quad": (
        lambda x: scipy.integrate.quad(lambda z: z * x[0], 0, 1, points=[x[1]])[0],
        func.errors.NotDifferentiableError,
        r"quad takes break points that are traced",
    ),
    "np.matrix": (lambda x: np.sum(np.matrix(x)), func.errors.FuncError, "matrix"),
    "np.ma": (lambda x: np.sum(np.ma.sqrt(x)), func.errors.FuncError, r"np\.where for masks|plain arrays only"),
    "np.ma.array": (lambda x: np.sum(np.ma.array(x)), func.errors.FuncError, r"plain arrays only|masks"),
    "nditer": (lambda x: next(iter(np.nditer(x))), TracerConversionError, "Use NumPy's functions"),
    "as_strided": (
        lambda x: np.sum(np.lib.stride_tricks.as_strided(x, (1,), (8,))),
        func.errors.UnsupportedFunctionError,
        "sliding_window_view",
    ),
    "statistics.mean": (lambda x: statistics.mean(x), TracerConversionError, "Use NumPy's functions"),
    "memoryview": (lambda x: memoryview(x)[0], TracerConversionError, "bytes-like"),
    "set shape": (set_shape, AttributeError, r"y = y\.reshape\(\.\.\.\)"),
    "key": (lambda x: {x[0]: 1}[x[0]], TypeError, "Use a name or an index as the key"),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", WORDS)
def test_refusals_name_the_line_and_the_replacement(name: str) -> None:
    f, kind, words = WORDS[name]
    with pytest.raises(kind, match=words) as caught:
        func.grad(f)(X)
    assert "test_leaving_the_trace.py" in str(caught.value)
    assert "site-packages" not in str(caught.value).split("`")[0]


HANDED_OVER: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "solve": (lambda x: scipy.linalg.solve(np.eye(2) * 2, x), lambda x: func.linalg.solve(np.eye(2) * 2, x)),
    "cholesky": (
        lambda x: scipy.linalg.cholesky(np.outer(x, x) + np.eye(2)),
        lambda x: func.linalg.cholesky(np.outer(x, x) + np.eye(2)),
    ),
    "expm": (lambda x: scipy.linalg.expm(np.outer(x, x)), lambda x: func.linalg.expm(np.outer(x, x))),
}


@pytest.mark.parametrize("name", HANDED_OVER)
def test_functions_of_scipy_that_func_has_take_traced_values(name: str) -> None:
    of_scipy, of_func = HANDED_OVER[name]
    np.testing.assert_array_equal(func.jacrev(of_scipy)(X[:2]), func.jacrev(of_func)(X[:2]))


def test_indices_of_plain_arrays() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    with pytest.raises(TracerConversionError, match=r"func\.numpy\.take\(a, i, axis=0\)"):
        func.jit(func.vmap(lambda n: rows[n]))(np.array([1, 2]))
    np.testing.assert_array_equal(func.vmap(lambda n: rows[n])(np.array([1, 2])), rows[1:])  # a batch is split
    np.testing.assert_array_equal(func.jit(lambda n: np.arange(3.0)[n])(np.array([1, 2])), [1.0, 2.0])
    np.testing.assert_array_equal(func.vmap(lambda n: np.arange(3.0)[n])(np.array([1, 2])), [1.0, 2.0])


STAGED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "shape": (lambda n: np.zeros(n), 3, r"static_argnums"),
    "range": (lambda n: sum(range(n)), 3, r"static_argnums"),
    "float": (lambda x: float(x), 3.0, r"np\.sin, not math\.sin"),
    "math": (lambda x: sin(x), 3.0, r"math\.sin takes numbers of Python: write np\.sin\(x\)"),
    "int": (lambda x: int(x), 3.0, r"x\.astype\(int\)"),
    "if": (lambda x: 1.0 if x > 0 else 2.0, 3.0, r"Instead of `if x > 0:` write np\.where"),
    "polynomial": (lambda x: np.polynomial.Polynomial(x).roots(), X, "companion matrix"),
}


@pytest.mark.parametrize("name", STAGED)
def test_staged_values_say_what_to_write_instead(name: str) -> None:
    f, x, words = STAGED[name]
    with pytest.raises(StagingError, match=words):
        func.jit(f, guards=False)(x)


def test_errors_of_the_user_stay_what_they_are() -> None:
    def mine(x: Any) -> Any:
        try:
            float(x)
        except TypeError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"):
        func.grad(mine)(2.0)

    def handled(x: Any) -> Any:
        try:
            factor = float(x)
        except TypeError:
            factor = 3.0
        return x * factor

    assert func.grad(handled)(2.0) == 3.0
    with pytest.raises(KeyError):
        func.grad(lambda x: {}["missing"])(2.0)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        func.grad(lambda x: x.nonsense)(2.0)


def test_iterators_over_elements() -> None:
    def f(x: Any) -> Any:
        return sum([(i[0] + 1.0) * v for i, v in np.ndenumerate(x)])

    np.testing.assert_allclose(func.grad(f)(X), [1.0, 2.0])
    np.testing.assert_allclose(func.vmap(f)(np.stack([X, X])), [f(X)] * 2)
    matrix = np.arange(6.0).reshape(2, 3)
    seen: list[Any] = []

    def walk(x: Any) -> Any:
        flat = x.flat
        seen.append((flat.coords, flat.index, next(flat) * 1.0, flat.coords, flat.index, len(list(flat)), len(flat)))
        return np.sum(x)

    walk(matrix), func.grad(walk)(matrix)
    assert [entry[:2] + entry[3:] for entry in seen] == [((0, 0), 0, (0, 1), 1, 5, 6)] * 2


def test_print_takes_a_format_first() -> None:
    with pytest.raises(TypeError, match=r"func\.debug\.print takes a format string first"):
        func.debug.print(leaf())


def test_the_memory_order_of_a_result_outlives_the_transform_that_made_it() -> None:
    x = np.array([[1.0, 2.0], [4.0, 8.0]])

    def pulled(x: Any) -> Any:
        out, pull = func.vjp(lambda x: np.nanvar(x, axis=0), x)
        return pull(np.ones_like(out))[0]

    np.testing.assert_allclose(func.jit(pulled)(x), [[-1.5, -3.0], [1.5, 3.0]])
    np.testing.assert_allclose(func.jit(lambda x: np.zeros_like(func.jvp(np.nanmedian, (x,), (x,))[1]))(x), 0.0)
