"""Methods, operators, indices and ufunc methods of traced arrays against NumPy: values, arrays afterwards, errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.array([[0.8, -1.3, -2.7], [2.9, 1.1, 0.4]])


def scalar_stays(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A write to what a scalar gives, and the scalar."""

    def program(x: Any) -> Any:
        total = np.sum(x)
        seen = view(total)
        seen *= 2
        return total, seen

    return program


def written_by(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        y = x.copy()
        write(y)
        return y

    return program


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "x[...] of a scalar is an array of its own": scalar_stays(lambda x: x[...]),
    "x[None] of a scalar is an array of its own": scalar_stays(lambda x: x[None]),
    "the transpose of a scalar is the scalar": scalar_stays(lambda x: x.T),
    "parts of complex scalars are scalars": lambda x: scalar_stays(lambda z: (z + 1j * z).real)(x),
    "a view of a scalar is the scalar": scalar_stays(lambda x: x.view()),
    "an ellipsis beside integers gives an array": lambda x: (x[..., 0, 1], x[0, ..., np.int64(1)], x[0, 1]),
    "which stays one after a write": written_by(lambda y: y[..., 0, 1].fill(3.0)),
    "reshape(copy=True) copies": written_by(lambda y: y.reshape(-1, copy=True).fill(3.0)),
    "put of a scalar writes a copy": lambda x: (lambda total: (total.put(0, 7.0), total)[1])(np.sum(x)),
    "an array of one complex number stays one": lambda x: (
        lambda y: (setattr(y, "real", 2.0), setattr(y, "imag", x[0, 0]), y)[2]
    )((x + 1j * x)[..., 0, 0].copy()),
    "x.flat[i] is a scalar": lambda x: x.flat[1] * x.flat[-1],
    "subtract.at of unsigned integers": written_by(lambda y: np.subtract.at(y, [0, 0], np.uint8(2))),
    "subtract.at of booleans": written_by(lambda y: np.subtract.at(y, [0, 1], True)),
    "subtract.at of the smallest integer": written_by(lambda y: np.subtract.at(y, 0, np.int8(-128))),
    **{
        f"{ufunc.__name__}.at of wider numbers, {name}": lambda x, ufunc=ufunc, places=places: written_by(
            lambda y: ufunc.at(y, places, x[0, 0] / 3)
        )(x.astype(np.float16))
        for ufunc in (np.add, np.subtract)
        for name, places in {"once": (0, [0, 2]), "repeatedly": ([1, 1, 0, 1], 1), "a slice": np.s_[:, 1:]}.items()
    },
    **{
        f"{ufunc.__name__}.reduce in {dtype} to {out}": lambda x, ufunc=ufunc, dtype=dtype, out=out: ufunc.reduce(
            x, 0, dtype, (x[0] * 0).astype(out)
        )
        for ufunc in (np.minimum, np.maximum, np.fmin, np.add)
        for dtype, out in (("complex128", "float64"), ("float64", "float32"), ("float64", "int64"))
    },
    **{
        f"{ufunc.__name__}.reduce from a number to whole numbers": lambda x, ufunc=ufunc: ufunc.reduce(
            np.abs(x), 0, initial=2.9, out=(x[0] * 0).astype(int)
        )
        for ufunc in (np.add, np.multiply, np.minimum, np.hypot, np.fmin, np.arctan2)
    },
    "float_power.reduce from a number that rounds to zero": lambda x: np.float_power.reduce(
        np.abs(x) / 100, 0, initial=5e-324, out=(x[0] * 0).astype(np.float32)
    ),
    "sum from a number to whole numbers": lambda x: np.sum(x, 0, initial=2.9, out=(x[0] * 0).astype(int)),
    "nanmin from a number to whole numbers": lambda x: np.nanmin(x**2 + 3, 0, initial=2.9, out=(x[0] * 0).astype(int)),
    "hypot.reduce of one element": lambda x: np.hypot.reduce(x[:1, 1:2], axis=None),
    "hypot.reduceat of one element": lambda x: np.hypot.reduceat(x[0], [1, 2]),
    "logical_xor.reduce of one element": lambda x: np.logical_xor.reduce(x[:1, 1:2], axis=None),
    "power.outer of a number": lambda x: np.power.outer(x.astype(np.float32)[0, 0] * 1j, -1),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_numpy(name: str) -> None:
    program = PROGRAMS[name]
    expected = program(X.copy())
    for got in (func.jvp(program, (X,), (X,))[0], func.vjp(program, X)[0]):
        pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
        for a, b in pairs:
            assert type(a) is type(b) and a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


OUTPUTS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        f"{function.__name__} in {dtype or 'its dtype'}": lambda x, out, function=function, dtype=dtype: function(
            x, axis=0, dtype=dtype, out=out
        )
        for function in (np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd)
        for dtype in (None, "float16", "float32")
    },
    **{f"round to {n}": lambda x, out, n=n: np.round(x[0], n, out=out) for n in (-1, 0, 2)},
}
SPECIAL = np.array([[np.inf, -1.3, 0.37], [2.9, np.nan, 0.4]])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_steps_are_computed_in_the_dtype_of_the_output(name: str, dtype: type) -> None:
    """NumPy divides a sum, takes a root and scales what is rounded in the output array."""

    def program(x: Any) -> Any:
        out = (x[0] * 0).astype(dtype)
        assert OUTPUTS[name](x, out) is out
        return out

    for x in (X, SPECIAL, X.astype(np.float16)):
        expected = program(x.copy())
        for got in (func.jvp(program, (x,), (x,))[0], func.vmap(program)(np.stack([x, x]))[1]):
            assert got.dtype == expected.dtype
            tolerance = 2 * np.finfo(dtype).eps
            np.testing.assert_allclose(got.real, expected.real, rtol=tolerance)
            np.testing.assert_allclose(got.imag, expected.imag, rtol=tolerance)


@pytest.mark.parametrize("function", [np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd])
def test_slopes_through_an_output_of_another_dtype(function: Callable[..., Any]) -> None:
    def program(x: Any) -> Any:
        return np.real(function(x, axis=0, out=(x[0] * 0).astype(complex)))

    expected = func.jvp(lambda x: function(x, axis=0), (X,), (X**2,))[1]
    np.testing.assert_allclose(func.jvp(program, (X,), (X**2,))[1], expected, rtol=1e-12)
    pulled = [func.grad(lambda x, f=f: np.sum(f(x)))(X) for f in (program, lambda x: function(x, axis=0))]
    np.testing.assert_allclose(*pulled, rtol=1e-12)


@pytest.mark.parametrize("ufunc", [np.bitwise_and, np.gcd], ids=lambda ufunc: ufunc.__name__)
def test_identities_of_integers(ufunc: Any) -> None:
    """-1 stands for the largest unsigned integer, and gcd(0, -3) is 3."""
    mask = np.array([True, False, False])
    for x in (np.array([[6, 5, 3], [1, 2, 4]], np.uint8), np.array([[-3, 5, 3], [1, 2, 4]])):
        for program in (lambda x: ufunc.reduce(x, where=mask), lambda x: ufunc.reduce(x[:1])):
            got = func.vmap(program)(x)
            expected = np.stack([program(row) for row in x])
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "reduceat of a scalar": (lambda x: np.add.reduceat(np.sum(x), [0]), TypeError),
    "at of a scalar": (lambda x: np.add.at(np.sum(x), 0, 1.0), TypeError),
    "item of several": (lambda x: x.item(), ValueError),
    "several values for one element": (lambda x: x.flat.__setitem__(0, [1.0, 2.0]), ValueError),
    "indices that do not broadcast": (lambda x: x[[0, 1], [0, 1, 2]], IndexError),
    "an output that is no array": (lambda x: x.take([0], 0, "clip"), TypeError),
    "at without a loop": (lambda x: np.logaddexp.at(x + 0j, slice(0, 0), 1.0), TypeError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_numpy(name: str) -> None:
    program, error = ERRORS[name]
    for run in (lambda: program(X.copy()), lambda: func.jvp(program, (X,), (X,))):
        with pytest.raises(error):
            run()


@pytest.mark.parametrize("indices", [[0, 0], [5], [-1]], ids=repr)
def test_places_of_segments_are_checked_before_the_loop(indices: list[int]) -> None:
    program = lambda x: np.subtract.reduceat(x, indices)  # noqa: E731
    for run in (lambda: program(np.zeros(0, bool)), lambda: func.vmap(program)(np.zeros((2, 0), bool))):
        with pytest.raises(IndexError, match="out-of-bounds in subtract"):
            run()


@pytest.mark.parametrize("dtype", [int, np.float32, np.float64])
@pytest.mark.parametrize("ufunc", [np.float_power, np.subtract, np.add, np.hypot], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_folds_begin_with_the_first_element_in_the_output(ufunc: Any, dtype: type) -> None:
    x = np.array([[1.5, 2.5], [1.5, 2.7], [1.7, 2.3]])
    for a in (x, x + 1j * x[::-1]) if ufunc is not np.hypot else (x,):

        def program(a: Any) -> Any:
            out = (a[0] * 0).real.astype(dtype)
            ufunc.reduce(a, axis=0, out=out)
            return out

        got = func.vmap(program)(np.stack([a, a]))[0]
        np.testing.assert_allclose(got, program(a), rtol=1e-6)
        assert got.dtype == dtype


@pytest.mark.parametrize("name", ["at", "real"])
def test_complex_numbers_are_refused_by_name_where_real_ones_are_held(name: str) -> None:
    """NumPy makes an array of the number there, whose imaginary part it discards with a warning."""

    def program(x: Any) -> Any:
        y = x.copy()
        if name == "at":
            np.add.at(y, [0], 1 + 2j)
        else:
            y.real = 1 + 2j
        return y

    with pytest.raises(func.errors.UnsupportedFunctionError, match="take its real part"):
        func.jvp(program, (X,), (X,))


def test_numbers_that_no_integer_can_be() -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        y[0] = np.nan
        return y

    with pytest.raises(ValueError, match="NaN"):
        func.vmap(program)(np.arange(4).reshape(2, 2))


def test_rounded_integers_are_integers() -> None:
    assert func.vmap(lambda x: round(x, 1))(np.arange(3)).dtype == np.arange(3).dtype


@pytest.mark.parametrize("copied", [lambda x: x.copy(), lambda x: x.__copy__(), copy.copy, copy.deepcopy])
def test_copies_of_scalars_are_scalars(copied: Callable[[Any], Any]) -> None:
    seen = []

    def program(x: Any) -> Any:
        y = first = copied(x)
        y *= 2
        seen.append((isinstance(y, np.float64), isinstance(y, np.ndarray)))
        return y + first

    np.testing.assert_allclose(func.jvp(program, (np.float64(1.5),), (1.0,)), (4.5, 3.0))
    assert seen == [(True, False)]


EMPTY = np.zeros(0, int)


@pytest.mark.parametrize("index", [(EMPTY, np.array([7])), (EMPTY, [-9]), ([], [[9]])], ids=repr)
def test_arrays_that_select_nothing_have_no_bounds(index: Any) -> None:
    def program(x: Any) -> Any:
        y = x.copy()
        y[index] = 5.0
        return x[index], y

    for got in (func.jvp(program, (X,), (X,))[0], func.jit(program)(X), func.vmap(program)(X[None])):
        assert np.shape(got[0])[-2:] == X[index].shape or np.shape(got[0])[1:] == X[index].shape
        np.testing.assert_array_equal(np.reshape(got[1], X.shape), X)
    with pytest.raises(IndexError, match="out of bounds"):
        func.jvp(lambda x: x[EMPTY, 7], (X,), (X,))


@pytest.mark.parametrize("ufunc", [np.add, np.subtract], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("form", ["list", "array"])
def test_wider_numbers_at_places_that_are_not_known(form: str, ufunc: Any) -> None:
    """They are added up before one rounding, as how often a place occurs is not known; lists of traced places work."""

    def program(x: Any, i: Any) -> Any:
        y = x.copy()
        ufunc.at(y, [i, 0] if form == "list" else np.stack([i, i - i]), X[0, :2] / 3)
        return y

    x = np.array([1.0, 2.0, 3.3], np.float16)
    for place in (np.int64(2), np.int64(1)):
        expected = program(x, place)
        np.testing.assert_array_equal(func.jit(program)(x, place), expected)
        batched = func.vmap(program)(np.stack([x, x]), np.stack([place, place]))
        np.testing.assert_array_equal(batched, np.stack([expected] * 2))
