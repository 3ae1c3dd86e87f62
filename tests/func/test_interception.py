"""`func.intercept()`: plain creation functions, views of them, and unmodified SciPy."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import newton

import func
from func.errors import TracerConversionError
from tests.support.numpy_properties import extrapolated

X = np.array([0.3, 0.7, 1.1])


def by_elements(x: Any) -> Any:
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] ** 2 * (i + 1)
    return np.sum(out)


def by_views(x: Any) -> Any:
    whole = np.empty((4, 3))
    top, column = whole[:2], whole[:, 1]
    whole[0] = x
    top[1] = np.sin(x)
    whole[2:] = 2.0
    column[3] = x[2] * x[0]
    whole.T[2, 3] = x[1]
    return np.sum(whole * np.arange(12.0).reshape(4, 3)) + np.sum(column**2)


def by_methods(x: Any) -> Any:
    a = np.ones((2, 3))
    a[1] = x
    b = a.copy()
    b.fill(0.5)
    b.reshape(-1)[1:4] = x
    c = np.full(3, 2.0)
    c.put([0, 2], x[:2])
    c.sort()
    return a.sum() + a.T.dot(np.ones(2)).max() + b.mean() * a[1].dot(x) + c.flat[2] + float(np.ones(3)[1])


def by_ufuncs(x: Any) -> Any:
    a, b = np.zeros(3), np.zeros(3)
    np.multiply(x, 3.0, out=a)
    np.add(a, 1.0, out=a)
    b += x
    b *= b
    np.add.at(b, [0, 0, 2], x)
    np.copyto(a[1:], x[1:])
    return np.sum(a * b) + np.add.reduce(a)


def by_conversion(x: Any) -> Any:
    state = np.array([0.0, 1.0, 2.0])
    view = np.asarray(state)
    view[1] = x[0]
    ones = np.ones_like(state)
    ones[0] = x[1]
    table = np.array([state, ones, x])
    flat = np.zeros(9)
    flat.flat = table
    state[[0, 2]] += x[:2]
    return np.sum(table**2) + np.dot(flat, flat) + np.linalg.norm(state) + np.vstack([ones, x])[0, 0]


def by_promotion(x: Any) -> Any:
    first = np.zeros(3) + 1.0
    second = np.eye(3)[1] * 2
    first[0] = x[0]
    second[second > 1] = x[1]
    return first @ second + np.arange(3.0)[1:] @ first[1:]


@pytest.mark.parametrize("f", [by_elements, by_views, by_methods, by_ufuncs, by_conversion, by_promotion])
def test_creation_functions_hold_traced_values(f: Callable[[Any], Any]) -> None:
    expected = np.array([extrapolated(f, X, e) for e in np.eye(3)])
    with func.intercept():
        np.testing.assert_allclose(func.grad(f)(X), expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(func.jacfwd(f)(X), expected, rtol=1e-8, atol=1e-9)
        mapped = func.vmap(func.value_and_grad(f))(np.stack([X, 2 * X]))
        np.testing.assert_allclose(mapped[0], [f(X), f(2 * X)])
        np.testing.assert_allclose(mapped[1][0], expected, rtol=1e-8, atol=1e-9)
        second = np.array([extrapolated(func.grad(f), X, e) for e in np.eye(3)])
        np.testing.assert_allclose(func.hessian(f)(X), second, rtol=1e-6, atol=1e-6)
        assert type(func.grad(f)(X)) is np.ndarray


def test_without_it_the_error_names_a_way() -> None:
    with pytest.raises(func.errors.TracerConversionError, match="zeros_like"):
        func.grad(by_elements)(X)


LAID_OUT: dict[str, Callable[[Any, str], Any]] = {
    "zeros": lambda b, order: np.zeros((2, 3), order=order),
    "ones": lambda b, order: np.ones((2, 3, 2), order=order),
    "empty": lambda b, order: np.empty((2, 3), order=order),
    "full": lambda b, order: np.full((2, 3), 2.0, order=order),
    "zeros_like": lambda b, order: np.zeros_like(b, order=order),
    "full_like": lambda b, order: np.full_like(b, 2.0, order=order),
    "empty_like": lambda b, order: np.empty_like(b.T, order=order),
    "copy": lambda b, order: np.copy(b.transpose(1, 2, 0), order=order),
    "array": lambda b, order: np.array(b.transpose(1, 2, 0), order=order),
    "array of a list": lambda b, order: np.array([[1.0, 2.0], [3.0, 4.0]], order=order),
    "eye": lambda b, order: np.eye(3, 2, order=order),
    "asarray": lambda b, order: np.asarray(b[:, ::2], order=order),
}


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("name", LAID_OUT)
def test_memory_is_laid_out_as_numpy_lays_it_out(name: str, order: str) -> None:
    b = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4))
    if order in "AK" and name in ("zeros", "ones", "empty", "full", "eye", "array of a list"):
        order = "C"
    expected, seen = LAID_OUT[name](b, order), []
    with func.intercept():
        func.grad(lambda x: (seen.append(LAID_OUT[name](b, order)), x)[1])(1.0)
    assert seen[0].strides == expected.strides


SOURCES: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "array": lambda b: b,
    "strided": lambda b: b[:, ::2],
    "memoryview": memoryview,
    "interface": lambda b: SimpleNamespace(__array_interface__=b.__array_interface__, owner=b),
    "__array__": lambda b: WithArray(b),
    "list": lambda b: b.tolist(),
    "number": lambda b: b[0, 0],
}
CONVERSIONS: tuple[dict[str, Any], ...] = (
    {}, {"copy": None}, {"ndmin": 3}, {"ndmin": 3, "copy": None}, {"copy": None, "dtype": float, "order": "F"},
)  # fmt: skip


VIEWED: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda v: np.asarray(v),
    "ascontiguousarray": lambda v: np.ascontiguousarray(v),
    "array": lambda v: np.array(v, copy=None),
    "array of more axes": lambda v: np.array(v, copy=False, ndmin=3),
    "array of any class": lambda v: np.array(v, copy=None, subok=True),
    "require": lambda v: np.require(v),
    "windows": lambda v: np.lib.stride_tricks.sliding_window_view(v, 2, 1),
    "copy": lambda v: np.array(v),
    "column": lambda v: np.asarray(v[:, 2]),
    "another dtype": lambda v: np.asarray(v, dtype=np.float32),
}


def test_polynomials_of_numpy() -> None:
    def f(p: Any) -> Any:
        series = np.polynomial.Chebyshev([1.0, p, p * p])
        return (series.deriv() * series.integ())(0.3)

    difference = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    with func.intercept():
        np.testing.assert_allclose(func.grad(f)(1.5), difference, rtol=1e-8)
    np.testing.assert_allclose(func.grad(f)(1.5), difference, rtol=1e-8)


@pytest.mark.parametrize("name", VIEWED)
def test_what_is_made_of_intercepted_memory_follows_it(name: str) -> None:
    def f(x: Any) -> Any:
        v = np.zeros((2, 3))
        made = VIEWED[name](v)
        v[..., -1] = x * 2
        return np.sum(made * 1.0) + np.sum(v**2)

    expected = np.sum([f(3.0)]), (f(4.0) - f(2.0)) / 2  # the difference of a quadratic function is exact
    with func.intercept():
        np.testing.assert_allclose(func.value_and_grad(f)(3.0), expected)


def test_an_intercepted_array_is_itself() -> None:
    with func.intercept():
        assert func.grad(lambda x: x * (np.asarray(v := np.zeros(3)) is v))(2.0) == 1.0


class WithArray:
    """Somebody's container, which hands out the array that it holds."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.array


@pytest.mark.parametrize("kind", SOURCES)
def test_arrays_made_of_plain_memory_share_it_as_numpy_does(kind: str) -> None:
    def shared(how: dict[str, Any]) -> bool:
        b = np.arange(6.0).reshape(2, 3)
        a = np.array(SOURCES[kind](b), **how)
        a[...] = 7.0
        return bool(np.any(b == 7.0))

    expected = [shared(how) for how in CONVERSIONS]
    seen: list[bool] = []

    def f(x: Any) -> Any:
        seen.extend(shared(how) for how in CONVERSIONS)
        a = np.array([1.0, 2.0], ndmin=2)
        a[0, 1] = x  # what shares no memory can hold traced values
        return a.sum()

    with func.intercept():
        assert func.grad(f)(2.0) == 1.0
    assert seen == expected


def test_it_is_undone() -> None:
    before = {name: getattr(np, name) for name in ("zeros", "array", "arange", "copy")}
    with pytest.raises(RuntimeError), func.intercept(), func.intercept():
        raise RuntimeError
    assert all([getattr(np, name) is function for name, function in before.items()])
    with func.intercept():
        assert type(np.zeros(3)) is np.ndarray  # no transform runs


def test_other_threads_are_left_alone() -> None:
    kinds: list[type] = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: kinds.append(type(np.zeros(3))))
        thread.start()
        thread.join()
        kinds.append(type(np.zeros(3)))
        return x

    with func.intercept():
        func.grad(f)(1.0)
    assert kinds[0] is np.ndarray and kinds[1] is not np.ndarray


VIEWS_BESIDE_INTERCEPTED: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast_arrays": lambda a, b: np.broadcast_arrays(a, b)[0],
    "broadcast_arrays of more axes": lambda a, b: np.broadcast_arrays(b, np.zeros((2, 3)), a)[2],
    "meshgrid": lambda a, b: np.meshgrid(a, b, copy=False, sparse=True)[0],
    "atleast_2d": lambda a, b: np.atleast_2d(a, b)[0],
    "atleast_1d": lambda a, b: np.atleast_1d(b, a)[1],
}


@pytest.mark.parametrize("name", VIEWS_BESIDE_INTERCEPTED)
def test_views_of_plain_arrays_beside_intercepted_ones_stay_views(name: str) -> None:
    def f(x: Any) -> Any:
        outside = np.ndarray(3)  # func.intercept() replaces functions, not this class
        outside[:] = [1.0, 2.0, 3.0]
        view = VIEWS_BESIDE_INTERCEPTED[name](outside, np.ones(3))
        outside[0] = 10.0
        return x * np.sum(view)

    expected = f(1.0)
    with func.intercept():
        assert func.grad(f)(1.0) == expected


def test_it_works_as_a_decorator_and_inside() -> None:
    @func.intercept()
    def f(x: Any) -> Any:
        return by_elements(x)

    np.testing.assert_allclose(func.grad(f)(X), 2 * X * [1, 2, 3])


def test_raw_memory_is_loud() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(3)
        a[0] = x
        with pytest.raises(func.errors.UnsupportedFunctionError, match="frombuffer"):
            np.frombuffer(memoryview(a))
        with pytest.raises(func.errors.UnsupportedFunctionError, match="int64"):
            np.sum(a.view(np.int64) + x)
        return a[0]

    with func.intercept():
        assert func.grad(f)(2.0) == 1.0


def test_a_leaked_array_raises() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        a = np.zeros(2)
        a[0] = x
        kept.append(a)
        return x

    with func.intercept():
        func.grad(f)(1.0)
    with pytest.raises(func.errors.LeakedTracerError):
        kept[0].sum()


CREATED: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda a: np.zeros((3, 2, 2), order="F"),
    "ones": lambda a: np.ones((3, 2, 2), order="F"),
    "full": lambda a: np.full((3, 2, 2), 2.0, order="f"),
    "copy": lambda a: np.copy(np.asfortranarray(a)),
    "array": lambda a: np.array(a, order="F"),
    "zeros_like": lambda a: np.zeros_like(np.asfortranarray(a)),
    "transposed": lambda a: np.zeros((2, 2, 3)).T,
    "an item": lambda a: np.zeros((2, 3, 2, 2), order="F")[1],
    "permuted": lambda a: np.moveaxis(np.zeros((2, 3, 2)), 0, -1),
    "reversed": lambda a: np.zeros((3, 2, 2), order="F")[::-1],
}
PLAIN = np.arange(1.0, 13.0).reshape(3, 2, 2)
FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda c, x: c.__setitem__(slice(None), x),
    "in place": lambda c, x: c.__iadd__(x),
    "out": lambda c, x: np.multiply(x, 2, out=c),
    "a row": lambda c, x: c.__setitem__(1, x[0]),
    "a column": lambda c, x: c[:, 1].__setitem__(Ellipsis, x[:, 0]),
    "reversed": lambda c, x: c[:, ::-1].__setitem__(Ellipsis, x),
    "flipped": lambda c, x: np.flip(c[:, 0]).__setitem__(Ellipsis, x[:, 0]),
    "by strides": lambda c, x: np.swapaxes(c[:, :, 0], 0, 1).__setitem__(0, x[:, 0, 1]),
    "in the order of memory": lambda c, x: np.ravel(c, "K").__setitem__(slice(3), x[:, 0, 0]),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("make", CREATED)
def test_what_is_written_through_an_index_is_read_through_it_in_every_order(make: str, fill: str) -> None:
    def f(x: Any) -> Any:
        c = CREATED[make](PLAIN)
        FILLS[fill](c, x)
        return c * 1, c[:, 1, 1] * 1, c.T[0] * 1, np.ravel(c, "K") * 1, c.copy("F") * 1

    x = PLAIN[::-1] * 10
    expected = f(x)
    with func.intercept():
        out, tangents = func.jvp(f, (x,), (x,))
        lanes = func.vmap(f)(np.stack([x, x]))
        staged = func.make_program(f)(x)(x)
    for i, wanted in enumerate(expected):
        np.testing.assert_array_equal(out[i], wanted)
        np.testing.assert_array_equal(lanes[i][1], wanted)
        np.testing.assert_array_equal(staged[i], wanted)
        np.testing.assert_array_equal(tangents[i], f(2 * x)[i] - wanted)


def test_an_array_without_axes_shares_its_memory_with_views() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(())
        a[...] = x
        np.ravel(a)[0] += 1.0
        return a * 1

    with func.intercept():
        assert func.jvp(f, (2.0,), (1.0,)) == (3.0, 1.0)


def test_which_arrays_share_memory() -> None:
    def f(x: Any) -> Any:
        a = np.zeros((2, 2), order="F")
        b, c, d = a.T, a.copy(), np.asarray(a, order="C")
        a[0] = x
        shares = [np.shares_memory(a, other) for other in (b, c, d, a[:, 1], np.flip(a), a.real, np.asarray(a))]
        assert shares == [True, False, False, True, True, True, True]
        assert not np.shares_memory(a[0], b[:, 1]) and np.shares_memory(a.real, a[...])
        assert np.asarray(a, order="C").flags.c_contiguous and not np.shares_memory(a, np.asarray(a, order="C"))
        return a.sum()

    with func.intercept():
        func.grad(f)(1.0)


def test_memory_in_a_program_keeps_its_order() -> None:
    def f(x: Any) -> Any:
        a = np.zeros((2, 3), order="F")
        a += x
        b = a * 1
        return np.ravel(b, "K")

    x = np.arange(6.0).reshape(2, 3)
    with func.intercept():
        np.testing.assert_array_equal(func.make_program(f)(x)(x)[0], f(x))


def test_read_only_views_stay_so() -> None:
    def f(x: Any) -> Any:
        a = np.zeros((2, 2))
        view = np.broadcast_to(a, (3, 2, 2))
        a[0] = x
        with pytest.raises(ValueError, match="read-only"):
            view[0] = x
        return a.sum()

    with func.intercept():
        assert func.grad(f)(1.0) == 2.0


def test_a_list_of_arrays_can_hold_traced_values() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        b = np.array([a, a])
        b[1] = x
        return b.sum() + a.sum()

    with func.intercept():
        assert func.grad(f)(3.0) == 2.0


def test_functions_that_are_first_used_inside_are_found_outside() -> None:
    code = (
        "import numpy as np, func\n"
        "f = lambda x: np.sum(np.linspace(x, 2 * x, 3))\n"
        "with func.intercept():\n    func.grad(f)(1.0)\n"
        "print(func.grad(f)(1.0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == 4.5


def trajectory(method: str) -> Callable[[Any], Any]:
    def loss(p: Any) -> Any:
        def predators(t: float, y: Any) -> Any:
            return np.array([y[0] * (p[0] - p[1] * y[1]), -y[1] * (p[2] - p[3] * y[0])])

        start = np.array([1.0, 1.5]) * p[0]
        found = solve_ivp(
            predators, (0, 1.5), start, method=method, rtol=1e-7, atol=1e-8, t_eval=np.linspace(0, 1.5, 4)
        )
        return np.sum(found.y[:, -1] ** 2) + np.sum(found.y[0])

    return loss


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
def test_solve_ivp_differentiates_unmodified(method: str) -> None:
    p, loss = np.array([1.5, 1.0, 3.0, 1.0]), trajectory(method)
    with func.intercept():
        gradient = func.grad(loss)(p)
        forward = func.jacfwd(loss)(p)
    expected = [(loss(p + 1e-5 * e) - loss(p - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)
    np.testing.assert_allclose(forward, gradient, rtol=1e-9)


@pytest.mark.parametrize("start", [1.0, np.array([1.0, 1.2])])
def test_newton_differentiates_unmodified(start: Any) -> None:
    def root(a: Any) -> Any:
        return np.sum(newton(lambda x: x**3 - a, start, fprime=lambda x: 3 * x**2))

    def secant(a: Any) -> Any:
        return np.sum(newton(lambda x: x**3 - a, start))

    a = 2.0 * np.ones(np.shape(start)) if np.shape(start) else 2.0
    for f in (root, secant):
        with func.intercept():
            np.testing.assert_allclose(func.grad(f)(a), np.asarray(a) ** (-2 / 3) / 3, rtol=1e-6)
            np.testing.assert_allclose(func.jvp(f, (a,), (a,))[1], np.sum(a ** (1 / 3) / 3), rtol=1e-6)


FIXED = np.arange(3.0)
MADE: dict[str, Callable[[], Any]] = {
    "append": lambda: np.append(FIXED, 1.0),
    "bincount": lambda: np.bincount([0, 1, 2]).astype(float),
    "block": lambda: np.block([FIXED, FIXED]),
    "clip": lambda: np.clip(FIXED, 0, 1),
    "concatenate": lambda: np.concatenate([FIXED, FIXED]),
    "copy": lambda: np.copy(FIXED),
    "cumsum": lambda: np.cumsum(FIXED),
    "delete": lambda: np.delete(FIXED, 0),
    "diag": lambda: np.diagflat(FIXED)[0],
    "fromfunction": lambda: np.fromfunction(lambda i: i * 1.0, (3,)),
    "fromiter": lambda: np.fromiter((float(i) for i in range(3)), float),
    "geomspace": lambda: np.geomspace(1, 2, 3),
    "indices": lambda: np.indices((3,))[0].astype(float),
    "insert": lambda: np.insert(FIXED, 0, 1.0),
    "loadtxt": lambda: np.loadtxt(["1 2 3"]),
    "logspace": lambda: np.logspace(0, 1, 3),
    "meshgrid": lambda: np.meshgrid(FIXED, FIXED)[0][0],
    "outer": lambda: np.outer(FIXED, FIXED)[0],
    "pad": lambda: np.pad(FIXED, 1),
    "poly": lambda: np.poly(FIXED),
    "polyfit": lambda: np.polyfit(FIXED, FIXED, 1),
    "repeat": lambda: np.repeat(1.0, 3),
    "roll": lambda: np.roll(FIXED, 1),
    "sort": lambda: np.sort(FIXED),
    "sqrt": lambda: np.sqrt(FIXED),
    "stack": lambda: np.stack([FIXED, FIXED])[0],
    "tile": lambda: np.tile(FIXED, 2),
    "tri": lambda: np.tri(3)[0],
    "unique": lambda: np.unique(FIXED),
    "vander": lambda: np.vander(FIXED)[0],
    "where": lambda: np.where(FIXED > 1, FIXED, 0),
    "then an operator": lambda: 2 * np.sqrt(FIXED) + 1,
    "then a method": lambda: np.sqrt(FIXED).copy(),
}
"""Arrays that NumPy's functions make of plain arrays."""


@pytest.mark.parametrize("name", MADE)
def test_what_numpy_makes_inside_can_hold_traced_values(name: str) -> None:
    def f(x: Any) -> Any:
        array = MADE[name]()
        array[1] = x**2
        return np.sum(array * np.sin(array))

    expected = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    with func.intercept():
        for slope in (func.grad(f)(1.5), func.jit(func.grad(f))(1.5), func.jvp(f, (1.5,), (1.0,))[1]):
            np.testing.assert_allclose(slope, expected, rtol=1e-6)
        np.testing.assert_allclose(func.vmap(f)(np.array([1.5, 2.0])), [f(1.5), f(2.0)])
    np.testing.assert_array_equal(FIXED, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("make", [lambda: FIXED, lambda: FIXED.copy(), lambda: FIXED * 2, lambda: np.reshape(FIXED, 3)])
def test_arrays_from_outside_name_the_way_out(make: Callable[[], Any]) -> None:
    def f(x: Any) -> Any:
        array = make()
        array[1] = x
        return array.sum()

    with pytest.raises(TracerConversionError, match=r"made before `func\.intercept\(\)`.*Write into np\.array\(a\)"):
        func.grad(f, intercept=True)(1.5)
    np.testing.assert_array_equal(FIXED, [0.0, 1.0, 2.0])
