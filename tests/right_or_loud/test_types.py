"""Value, dtype, shape and scalar-or-array are NumPy's for every function and argument, or a named error is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import FuncError, UnsupportedFunctionError

fnp = func.numpy
X = np.array([0.5, 0.7, 1.1])
X32 = X.astype(np.float32)
A = np.arange(1.0, 7.0).reshape(2, 3)
BOOLS = np.array([True, False, True])
Function = Callable[[Any], Any]


def written(write: Callable[[Any, Any], Any], make: Function = lambda x: x * 1) -> Function:
    """A function that writes an array made from x, as one that returns what it has written."""

    def function(x: Any) -> Any:
        y = make(x)
        write(y, x)
        return y

    return function


def assert_same(got: Any, expected: Any, scalars: bool = True) -> None:
    """Equal in structure, dtype, shape, elements and in being an array or a scalar."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for x, y in zip(got, expected, strict=True):
            assert_same(x, y, scalars)
        return
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    assert np.shape(got) == np.shape(expected)
    if scalars:
        assert isinstance(got, np.ndarray) == isinstance(expected, np.ndarray)
    np.testing.assert_allclose(got, expected, rtol=1e-6 if np.asarray(expected).dtype.char in "efF" else 1e-12)


def lane(value: Any) -> Any:
    """The first lane of a mapped result."""
    return tuple([v[0] for v in value]) if isinstance(value, (tuple, list)) else value[0]


def check_modes(f: Function, x: Any, modes: str = "jvp vjp vmap jit") -> None:
    """The value under each transform is NumPy's."""
    expected = f(x)
    ways: dict[str, Callable[[], Any]] = {
        "jvp": lambda: func.jvp(f, (x,), (x,))[0],
        "vjp": lambda: func.vjp(f, x)[0],
        "vmap": lambda: lane(func.vmap(f)(np.stack([x, x]))),
        "jit": lambda: func.jit(f)(x),
    }
    for mode in modes.split():
        assert_same(ways[mode](), expected, scalars=mode in ("jvp", "vjp"))


def check_derivative(f: Function, x: Any) -> None:
    """Both modes agree with differences, and the derivative has the dtype of the argument."""
    tangent = np.random.default_rng(0).normal(size=np.shape(x))
    out, dot = func.jvp(f, (x,), (tangent,))
    step = 1e-6
    expected = (np.asarray(f(x + step * tangent)) - np.asarray(f(x - step * tangent))) / (2 * step)
    np.testing.assert_allclose(dot, expected, rtol=1e-7, atol=1e-8)
    gradient = func.grad(lambda y: np.sum(f(y) * np.arange(1.0, np.size(out) + 1).reshape(np.shape(out))))(x)
    weights = np.arange(1.0, np.size(out) + 1).reshape(np.shape(out))
    np.testing.assert_allclose(np.sum(gradient * tangent), np.sum(weights * dot), rtol=1e-10)
    assert np.asarray(gradient).dtype == np.asarray(x).dtype


SMOOTH: dict[str, tuple[Function, Any]] = {
    "mask of no axes": (lambda x: x[x[0] > 0] ** 2, X),
    "mask of no axes that fails": (lambda x: np.sum(x[x[0] > 9]) + x[0], X),
    "mask of no axes beside newaxis": (lambda x: x[None, True] ** 2, X),
    "mask of no axes beside an index": (lambda x: x[True, [0, 2]], X),
    "mask of no axes after an axis": (lambda x: x[:, True], A),
    "write by a mask of no axes": (written(lambda y, x: y.__setitem__(x[0] > 0, x * 3)), X),
    "write by a failing mask of no axes": (written(lambda y, x: y.__setitem__(x[0] > 9, x * 3)), X),
    "range as an index": (lambda x: x[range(2)], X),
    "range beside a slice": (lambda x: x[:, range(3)], A),
    "range as a value": (written(lambda y, x: y[0, :2].__setitem__(slice(None), range(2))), A),
    "tuples in an index": (lambda x: x[(0, 1, 0), (2, 2, 1)], A),
    "tuple beside a slice": (lambda x: x[:, (0, 2)], A),
    "divide where, out": (lambda x: fnp.divide(1.0, x, out=np.zeros_like(x), where=BOOLS), X),
    "divide where a traced mask": (lambda x: np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.6), X),
    "out that is larger": (lambda x: np.add(x, 1, out=np.zeros_like(x, shape=(2, 3))), X),
    "scalar into a larger out": (written(lambda y, x: np.sin(x[0], out=y)), X),
    "out of no axes": (lambda x: np.sin(x[0], out=np.zeros_like(x, shape=())), X),
    "sum into out of no axes": (lambda x: np.sum(x, out=np.zeros_like(x, shape=())), X),
    "matmul axes": (lambda x: np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)]), A),
    "vecdot keepdims": (lambda x: np.vecdot(x, x, axis=0, keepdims=True), A),
    "vecdot axes": (lambda x: np.vecdot(x, x.T, axes=[0, 1]), A),
    "matvec axes": (lambda x: np.matvec(x, x[:, 0], axes=[(1, 0), 0, 0]), A),
    "einsum casting": (lambda x: np.einsum("i,i", x, x, casting="same_kind"), X),
    "logical_and.accumulate": (lambda x: np.logical_and.accumulate(3 * x) * x, X),
    "logical_xor.reduce of one": (lambda x: np.logical_xor.reduce(x[:1]) * x, X),
    "logical_or.reduce where": (lambda x: np.logical_or.reduce(x, where=BOOLS) * x, X),
    "add.reduce": (lambda x: fnp.add.reduce(x, axis=1), A),
    "multiply.outer": (lambda x: fnp.multiply.outer(x, x), X),
    "modf at whole numbers": (lambda x: np.modf(x - 0.5)[0] + x, X),
    "insert, not ascending": (lambda x: np.insert(np.zeros(3), [2, 0], x[:2]), X),
    "insert, negative": (lambda x: np.insert(x, [-1, 0], [x[0], 4]), X),
    "insert several at one place": (lambda x: np.insert(x, 1, [x[0], 2, 3, 4]), X),
    "insert rows of a column": (lambda x: np.insert(x, [1, 2], x[0, :2], axis=1), A),
    "insert nothing": (lambda x: np.insert(x, 0, x[:0], axis=0), A),
    "power by booleans": (lambda x: np.power(x, BOOLS), X),
    "operator power by booleans": (lambda x: x**BOOLS, X),
    "float_power by booleans": (lambda x: np.float_power(x, BOOLS), X),
    "copyto a number": (written(lambda y, x: np.copyto(y, 0.5)), X),
    "copyto where": (written(lambda y, x: np.copyto(y, 3, where=BOOLS)), X),
    "put clip": (written(lambda y, x: np.put(y, [5, -7], x[1], mode="clip")), X),
    "put wrap": (written(lambda y, x: np.put(y, [4], x[2], mode="wrap")), X),
    "fill_diagonal wrap": (
        written(lambda y, x: np.fill_diagonal(y, x[0], wrap=True), lambda x: np.zeros_like(x, shape=(7, 2))),
        X,
    ),
    "nansum of a list": (lambda x: np.nansum([x[0], x[1]]), X),
    "flat iterator": (lambda x: np.stack([next(x.flat), np.sum(np.array(x.flat))]), A),
    "ndenumerate": (lambda x: sum([v * i[0] for i, v in np.ndenumerate(x)]), A),
    "roll several along one axis": (lambda x: np.roll(x, [1, 1], axis=0), X),
    "lower case order": (lambda x: np.asarray(x, order="c"), A),
    "take nothing": (lambda x: np.take(x, []), X),
    "take by booleans": (lambda x: np.take(x, [True, False]), X),
    "take clip by bytes": (lambda x: np.take(x, np.array([0, 200], np.uint8), mode="clip"), X),
    "clip where": (lambda x: np.clip(x, 0.6, 1, out=np.zeros_like(x), where=BOOLS), X),
    "column_stack of three axes": (lambda x: np.column_stack([x[None], x[None] ** 2]), A),
    "step at zero": (lambda x: np.heaviside(np.array([0.0, 1.0, -1.0]), x), X),
    "ratio of mixed precision": (lambda x: x / np.array([3.0, 0.1, 7], np.float32), X),
    "ratio by halves": (lambda x: x / np.array([3.0, 0.1, 7], np.float16), X),
    "arctan2 of bytes": (lambda x: np.arctan2(x, np.array([100, 3, 50], np.int8)), X),
    "power of bytes": (lambda x: np.array([100, 3, 50], np.int8) ** x, X),
    "full of a traced number": (lambda x: np.full_like(x, x[0]), X),
    "nanquantile of a weak place": (lambda x: np.nanquantile(x, 0.4), X),
    "elementwise comparison with None": (lambda x: np.where(x == None, 0.0, x), X),  # noqa: E711
}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_derivatives(name: str) -> None:
    f, x = SMOOTH[name]
    check_modes(f, x, "jvp vjp vmap" if name.startswith("mask of no axes") else "jvp vjp vmap jit")
    check_derivative(f, x)


TYPES: dict[str, tuple[Function, Any]] = {
    "polyfit of singles": (lambda x: np.polyfit(x, 2 * x, 1), X32),
    "stack with a number": (lambda x: np.stack([x[0], 1.0]), X32),
    "clip a number by singles": (lambda x: np.clip(1.0, x, x), X32),
    "r_ with a number": (lambda x: np.r_[x, 2.0], X32),
    "choose with a number": (lambda x: np.choose([0, 1, 0], [x, 1.0]), X32),
    "dot with a number": (lambda x: np.dot(x, 2.0), X32),
    "einsum with a number": (lambda x: np.einsum("i,->i", x, 2.0), X32),
    "edges of singles": (lambda x: np.histogram_bin_edges(x, 3, range=(0, 1)), X32),
    "edges of nothing": (lambda x: np.histogram_bin_edges(x[:0], 3), X32),
    "prod of booleans": (lambda x: np.prod(x, dtype=bool), X),
    "complex variance": (lambda x: np.var(x, dtype=complex), X),
    "complex standard deviation": (lambda x: np.std(x, dtype=np.complex64), X),
    "bincount of nothing": (lambda x: np.bincount(np.zeros(0, int), weights=x[:0]), X),
    "bincount of booleans": (lambda x: np.bincount(BOOLS, weights=x), X),
    "sine by a signature": (lambda x: np.sin(x, sig="f->f", casting="same_kind"), X),
    "modulus by a signature": (lambda x: np.abs(x, signature="f->f", casting="unsafe"), X),
    "root in single": (lambda x: fnp.sqrt(x, dtype=np.float32, casting="same_kind"), X),
    "comparison with a string": (lambda x: x != "a", X),
    "reduction into wider out": (lambda x: np.sum(x, out=np.zeros_like(x, np.float64, shape=())), X32),
    "masked xor": (lambda x: np.logical_xor.reduce(x, where=BOOLS), X),
    "linspace of halves": (lambda x: np.linspace(x[0], 1.0, 3), X.astype(np.float16)),
    "covariance in half": (lambda x: np.cov(x, dtype=np.float16), X),
    **{
        f"scalar {name}": (function, X)
        for name, function in {
            "median": np.median,
            "quantile": lambda x: np.quantile(x, 0.3),
            "percentile": lambda x: np.percentile(x, 30),
            "nanmax": np.nanmax,
            "nanmin": np.nanmin,
            "nanmean": np.nanmean,
            "nanvar": np.nanvar,
            "nanstd": np.nanstd,
            "nanmedian": np.nanmedian,
            "nanquantile": lambda x: np.nanquantile(x, 0.3),
            "norm": np.linalg.norm,
            "condition": lambda x: np.linalg.cond(np.stack([x[:2], x[1:]])),
            "interp": lambda x: np.interp(0.6, x, x),
            "nan_to_num": lambda x: np.nan_to_num(x[0]),
            "complex sign": lambda x: np.sign(x[0] + 1j),
            "choice": lambda x: np.choose(0, x),
            "einsum": lambda x: np.einsum("ij,jk,ki->", np.outer(x, x), np.outer(x, x), np.outer(x, x)),
            "einsum of numbers": lambda x: np.einsum(",i,->", x[0], x, 2.0, optimize=True) * 1,
            "maximum of nothing": lambda x: np.max(x[:0], initial=1.0),
        }.items()
    },
    **{
        f"array {name}": (function, X)
        for name, function in {
            "i0": lambda x: np.i0(x[0]),
            "real_if_close": lambda x: np.real_if_close(x[0]),
            "isin": lambda x: np.isin(x[0], x),
            "optimized einsum": lambda x: np.einsum("i,i->", x, x, optimize=True),
            "tensordot": lambda x: np.tensordot(x, x, 1),
            "median with keepdims": lambda x: np.median(x[0, ...], keepdims=True),
        }.items()
    },
}


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str) -> None:
    check_modes(*TYPES[name])


def test_tangents_have_the_dtype_of_the_output() -> None:
    w = np.array([1.0, -2.0], np.float32)
    functions: list[Function] = [
        lambda x: np.where(x > 0, x, 0),
        lambda x: np.where(x > 0, 0, x),
        lambda x: np.select([x > 0], [x], 0),
        lambda x: np.float_power(x, 3),
        lambda x: x / np.float64(3),
        lambda x: np.maximum(x, np.array([0.5, 0.5])),
    ]
    for x in (w, w + 0j):
        for f in functions[:2] if x.dtype.kind == "c" else functions:
            out, dot = func.jvp(f, (x,), (x,))
            assert dot.dtype == out.dtype == f(x).dtype


def test_derivatives_have_the_precision_of_the_value() -> None:
    x = np.array([1.0])
    assert func.grad(lambda x: np.sum(x / np.array([3.0], np.float32)))(x)[0] == 1 / 3
    assert func.grad(lambda x: np.sum(x / np.array([3.0], np.float16)))(x)[0] == 1 / 3
    third = np.array([1 / 3], np.float32)
    dot = func.jvp(lambda x: np.float_power(x, 3), (third,), (np.ones(1, np.float32),))[1]
    np.testing.assert_allclose(dot, 3 * third.astype(float) ** 2, rtol=1e-15)


UFUNCS = [name for name in fnp.__all__ if isinstance(getattr(np, name, None), np.ufunc)]


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_know_their_keywords(name: str) -> None:
    ufunc, function = getattr(np, name), getattr(fnp, name)
    matrices = name in ("matmul", "matvec", "vecmat", "vecdot")
    inputs = [A[:, :2]] * 2 if matrices else [np.array([1, 1])] * ufunc.nin
    if name == "matvec":
        inputs = [A[:, :2], np.ones(2)]
    with np.errstate(all="ignore"):
        expected = ufunc(*inputs)
    results = expected if isinstance(expected, tuple) else (expected,)
    outs = tuple([np.zeros_like(r) for r in results])
    with np.errstate(all="ignore"):
        given = function(*inputs, out=outs if len(outs) > 1 else outs[0])
    assert all(x is y for x, y in zip(given if len(outs) > 1 else (given,), outs, strict=True))
    assert_same(outs, results)
    with pytest.raises(TypeError, match="nonsense"):
        function(*inputs, nonsense=3)

    def misspelt(x: Any) -> Any:
        return function(*[x.astype(np.asarray(i).dtype) for i in inputs], nonsense=3)

    with pytest.raises(TypeError, match="nonsense"):
        func.vmap(misspelt)(np.stack(inputs[:1] * 2))


def test_keywords_of_ufuncs_on_plain_arrays() -> None:
    out = np.zeros(3)
    assert fnp.add(X, 1, out=out) is out
    np.testing.assert_array_equal(out, X + 1)
    assert fnp.add(X, 1, out) is out
    assert fnp.sqrt(X, dtype=np.float32).dtype == np.float32
    np.testing.assert_array_equal(fnp.matmul(A, A.T, out=np.zeros((2, 2))), A @ A.T)
    fnp.add.at(out, [0, 0], 1.0)
    np.testing.assert_array_equal(out, [3.5, 1.7, 2.1])
    assert fnp.multiply.reduce(X) == np.prod(X)


def test_writes_into_plain_arrays_are_numpys() -> None:
    y = np.zeros(4)
    fnp.copyto(y, 1.0)
    fnp.put(y, [5], 2.0, mode="clip")
    fnp.place(y, y > 1, 3.0)
    fnp.putmask(y, y == 1, 5.0)
    np.testing.assert_array_equal(y, [5, 5, 5, 3])
    m = np.zeros((2, 2))
    fnp.fill_diagonal(m, 1.0)
    fnp.put_along_axis(m, np.array([[1], [0]]), 2.0, 1)
    np.testing.assert_array_equal(m, [[1, 2], [2, 1]])
    with pytest.raises(FuncError, match="plain array"):
        func.grad(lambda x: fnp.copyto(y, x[0]) or np.sum(x))(X)


def test_lists_beside_traced_values() -> None:
    rows = [[-1, 2, -2], [-2, -1, -2]]
    got = func.vmap(lambda x: fnp.right_shift(rows, x))(np.array([1, 2], np.int8))
    np.testing.assert_array_equal(got[1], np.right_shift(rows, np.int8(2)))
    np.testing.assert_array_equal(func.vmap(lambda x: fnp.equal([1.0, 2.0], x))(np.array([2.0]))[0], [False, True])


def test_places_that_depend_on_values_split_the_batch() -> None:
    batch = np.stack([X, X[::-1]])
    np.testing.assert_array_equal(func.vmap(lambda x: np.delete(x, np.argmax(x)))(batch), [[0.5, 0.7], [0.7, 0.5]])
    inserted = func.vmap(lambda x: np.insert(x, np.argmax(x), 0.0))(batch)
    np.testing.assert_array_equal(inserted, [[0.5, 0.7, 0, 1.1], [0, 1.1, 0.7, 0.5]])
    np.testing.assert_array_equal(func.vmap(lambda x: np.sum(x[x[0] > 0.6]))(batch), [0.0, 2.3])


def test_a_complex_initial_value_is_refused() -> None:
    for reduction in (np.sum, np.prod, np.max, np.min):
        with pytest.raises(TypeError):
            func.grad(lambda x, reduction=reduction: reduction(x, initial=2j))(X)  # type: ignore[misc]
        with pytest.raises(TypeError):
            func.grad(lambda x, reduction=reduction: reduction(x, initial=x[0] * 1j))(X)  # type: ignore[misc]


def test_complex_geomspace() -> None:
    check_modes(lambda a: np.geomspace(a, 3 + 2j, 5), np.complex128(1 + 1j), "jvp vjp")


CUTS: dict[str, tuple[complex, ...]] = {
    "arccos": (2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0)),
    "arcsin": (2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0)),
    "arccosh": (-2 + 0j, complex(-2, -0.0), 0.5 + 0j, complex(0.5, -0.0)),
    "arcsinh": (2j, complex(-0.0, 2), -2j, complex(-0.0, -2)),
}


@pytest.mark.parametrize("name", CUTS)
def test_derivatives_on_branch_cuts(name: str) -> None:
    """They are those of the side on which NumPy puts the value: along the cut they agree with differences."""
    function, step = getattr(np, name), 1e-6
    for place in CUTS[name]:
        along = 1j if place.real == 0 else 1.0
        ends = []
        for sign in (1, -1):
            z = np.array([place])
            part = z.imag if along == 1j else z.real
            part += sign * step
            ends.append(function(z))
        expected = (ends[0] - ends[1])[0] / (2 * step)
        (dot,) = func.jvp(function, (np.array([place]),), (np.array([along + 0j]),))[1]
        np.testing.assert_allclose(dot, expected, rtol=1e-6, atol=1e-9)
        (pulled,) = func.vjp(function, np.array([place]))[1](np.array([1.0 + 0j]))
        np.testing.assert_allclose(np.conj(pulled[0]) * along, expected, rtol=1e-6, atol=1e-9)


def test_numbers_of_python() -> None:
    assert func.jvp(lambda x: round(x, 2), (2.675,), (1.0,))[0] == round(2.675, 2)
    assert func.jit(func.grad(np.std), compiler="numpy")(1.5) == 0.0
    assert func.grad(lambda x: np.modf(x)[0])(0.0) == 1.0
    assert func.grad(lambda x: np.modf(x)[0])(2.0) == 1.0


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_nothing_has_no_quantile_that_is_a_number() -> None:
    assert np.isnan(fnp.nanquantile([], 0.4))
    assert np.isnan(func.jvp(lambda x: np.nanquantile(x[:0], 0.4), (X,), (X,))[0])


def test_what_stays_refused_has_a_name() -> None:
    refused: list[Function] = [
        lambda x: np.add(x, 1, where=BOOLS),
        lambda x: np.copyto(np.zeros(3), x),
        written(lambda y, x: y.__setitem__(slice(0, 1), x[:1] * 1j)),
    ]
    for f in refused:
        with pytest.raises(FuncError):
            func.jvp(f, (X,), (X,))
    with pytest.raises(UnsupportedFunctionError, match="real part"):
        func.jvp(refused[2], (X,), (X,))


Z = np.array([complex(np.inf, 0.0), complex(0.0, -np.inf), complex(np.inf, np.inf), 3 + 4j, 0j, complex(np.nan, 1.0)])
I8 = np.array([3, -2, 1], np.int8)
PLAIN: dict[str, Callable[[Any], Any]] = {
    "vander of infinite numbers": lambda xp: xp.vander(Z[:2], 3),
    "sign of infinite numbers": lambda xp: xp.sign(Z),
    "frexp of an int": lambda xp: xp.frexp(-2),
    "real of a truth value": lambda xp: np.asarray(xp.real(False)),
    "nanmax beside NaN": lambda xp: xp.nanmax(np.array([np.nan, 1.0]), initial=np.nan),
    "nanmin of NaN beside NaN": lambda xp: xp.nanmin(np.array([np.nan]), initial=np.nan),
    "nanmax with an initial int8": lambda xp: xp.nanmax(
        np.array(2, np.int8), initial=np.array(3, np.int8), where=False
    ),
    "einsum of three dtypes": lambda xp: xp.einsum("ij,jk,kl->il", I8[None], X32[:, None], A[:1, :2]),
    "correlate of booleans": lambda xp: xp.correlate(np.array([1, 3, 2], np.uint64), BOOLS),
    "concatenate numbers": lambda xp: xp.concatenate((1.5, X32), axis=None),
    "union1d with a number": lambda xp: xp.union1d(1.5, np.float32(2.0)),
    "kaiser of a half": lambda xp: xp.kaiser(5, np.float16(0.3)),
    "histogramdd of two dtypes": lambda xp: xp.histogramdd([X32, X], 3)[1],
    "dot of numbers into out": lambda xp: xp.dot(2.0, 3.0, out=np.zeros(())),
    "dot of vectors into out": lambda xp: xp.dot(X, X, out=np.zeros(())),
    "dot of integers into a larger out": lambda xp: xp.dot(np.array(2), I8, out=np.zeros((2, 3))),
    "conjugate of truth values": lambda xp: xp.conjugate(BOOLS),
    "conjugate of a truth value": lambda xp: xp.conjugate(np.array(True)),
    "full_like of a complex number": lambda xp: xp.full_like(X, 1 + 2j),
    "full from a row": lambda xp: xp.full((), np.array([2.0], np.float32)),
    "copy of a number": lambda xp: xp.copy(1.5),
    "tile of a number": lambda xp: xp.tile(1.5, ()),
    "block of a number": lambda xp: xp.block(1.5),
    "broadcast_arrays of numbers": lambda xp: xp.broadcast_arrays(True, 1.5),
    "insert nothing": lambda xp: xp.insert(A, [], np.zeros((2, 0)), axis=1),
    "interp of infinite samples": lambda xp: xp.interp(0.0, [-1.0, -0.5, 0.5], np.array([1.0, np.inf, 2.0])),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PLAIN)
def test_plain_arguments(name: str) -> None:
    assert_same(PLAIN[name](fnp), PLAIN[name](np))


NUMBERS: dict[str, Function] = {
    "copy": np.copy,
    "tile": lambda x: np.tile(x, ()),
    "block": np.block,
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, True),
    "full": lambda x: np.full((), x),
    "array": lambda x: np.array(x),
    "asarray": lambda x: np.asarray(x),
    "concatenate": lambda x: np.concatenate((x, X32), axis=None),
}


@pytest.mark.parametrize("number", [1.5, np.float64(1.5), np.float32(1.5)])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_become_arrays(name: str, number: Any) -> None:
    f = NUMBERS[name]
    assert_same(func.jvp(f, (number,), (type(number)(1),))[0], f(number))
    assert_same(func.vjp(f, number)[0], f(number))


WRITTEN: dict[str, Callable[[Any, Any], None]] = {
    "place": lambda y, v: np.place(y, [True, False, True], v),
    "putmask": lambda y, v: np.putmask(y, [True, False, True], v),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", [np.complex128(2 + 1j), np.float32(0.1), np.int8(3), np.bool_(True), 2.5, True])
@pytest.mark.parametrize("name", WRITTEN)
def test_scalars_that_are_written(name: str, value: Any) -> None:
    expected = X.copy()
    WRITTEN[name](expected, value)

    def f(x: Any, value: Any) -> Any:
        y = x * 1
        WRITTEN[name](y, value)
        return y

    np.testing.assert_array_equal(func.vjp(lambda x: f(x, value), X)[0], expected)
    if not isinstance(value, (bool, np.bool_, np.int8)):
        np.testing.assert_array_equal(func.vjp(f, X, value)[0], expected)


REFUSED_AS_NUMPY: dict[str, Callable[[Any], Any]] = {
    "stack beside the axes": lambda xp: xp.stack([2, True, True], 1, dtype=bool),
    "round integers into out": lambda xp: xp.round(np.array([15, 25]), -1, out=np.zeros(2, int)),
    "dot into another dtype": lambda xp: xp.dot(X, X, out=np.zeros((), complex)),
    "dot into other memory": lambda xp: xp.dot(A, A.T, out=np.zeros((2, 2)).T),
    "dot of numbers into another dtype": lambda xp: xp.dot(X[0], X, out=np.zeros(3, complex)),
    "quantile into integers": lambda xp: xp.quantile(X, 0.5, out=np.zeros((), int)),
    "quantile of integers into integers": lambda xp: xp.quantile(I8, 0.5, method="weibull", out=np.zeros((), int)),
    "concatenate into another shape": lambda xp: xp.concatenate([X + 1j], out=np.zeros((2, 3))),
    "concatenate by casting": lambda xp: xp.concatenate([X, X32], casting="equiv"),
    "insert beside no places": lambda xp: xp.insert(A, [], np.zeros((2, 3)), axis=1),
    "insert a complex number nowhere": lambda xp: xp.insert(X, [], 1j),
    "initial that is NaN": lambda xp: xp.max(I8, initial=np.nan),
    "nonzero of a truth value": lambda xp: xp.nonzero(False),
    "nan_to_num of a scalar in place": lambda xp: xp.nan_to_num(np.int16(1), copy=False),
    "two limits of a pseudo-inverse": lambda xp: xp.linalg.pinv(np.zeros((0, 2)), 0.001, rtol=None),
    "number out of range": lambda xp: xp.gcd(np.zeros(0, np.int8), -3, dtype=np.uint8),
}


if np.lib.NumpyVersion(np.__version__) < "2.5.0":  # which casts what it takes
    REFUSED_AS_NUMPY |= {
        "take into another dtype": lambda xp: xp.take(X, 0, out=np.zeros((), complex)),
        "quantile into another dtype": lambda xp: xp.quantile(X, 0.5, method="lower", out=np.zeros((), complex)),
    }


@pytest.mark.parametrize("name", REFUSED_AS_NUMPY)
def test_what_numpy_refuses_is_refused_alike(name: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as expected:
        REFUSED_AS_NUMPY[name](np)
    kinds = [kind for kind in (OverflowError, TypeError, IndexError, ValueError) if isinstance(expected.value, kind)]
    with pytest.raises(tuple(kinds)):
        REFUSED_AS_NUMPY[name](fnp)


def test_an_initial_value_that_is_traced_and_no_integer() -> None:
    with pytest.raises(ValueError, match="infinite or NaN"):
        func.jvp(lambda x: np.max(I8, initial=x), (np.nan,), (1.0,))


TRACED_NUMBERS: dict[str, tuple[Function, Any]] = {
    "conjugate": (np.conjugate, BOOLS),
    "times a negative number": (lambda x: x * -1.0, BOOLS),
    "zeros minus truth values": (lambda x: np.zeros(3) - x, BOOLS),
    "polysub": (lambda x: np.polysub(np.zeros(0), x), BOOLS),
    "imag of a number": (lambda x: np.imag(x), 1.5),
    "copyto a number": (
        lambda x: written(lambda y, _: np.copyto(y, 2), lambda x: x * 1)(x),
        np.array([1, 2], np.uint64),
    ),
}


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
@pytest.mark.parametrize("name", TRACED_NUMBERS)
def test_compiled_types(name: str, compiler: str) -> None:
    f, x = TRACED_NUMBERS[name]
    assert_same(func.jit(f, compiler=compiler)(x), f(x), scalars=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
def test_compiled_convolutions_with_infinite_kernels(function: Any, mode: str) -> None:
    """Memory outside of a vector does not count, even where it would be zero times infinity."""
    for x, y in ((X, np.array([np.inf, 1.0])), (X[:1], np.array([np.nan, 1.0, -np.inf])), (X32, X32 / 0)):
        for compiler in ("numpy", "llvm"):
            got = func.jit(lambda x, y: function(x, y, mode), compiler=compiler)(x, y)
            np.testing.assert_array_equal(got, function(x, y, mode))


@pytest.mark.filterwarnings("ignore")
def test_compiled_interpolation_of_infinite_samples() -> None:
    x, places, samples = np.array([0.0, 0.25, -0.75]), np.array([-1.0, -0.5, 0.5]), np.array([1.0, np.inf, 2.0])
    np.testing.assert_array_equal(func.jit(np.interp)(x, places, samples), np.interp(x, places, samples))


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_complex_numbers_of_python_become_no_real_ones(dtype: Any) -> None:
    programs: list[Callable[[Any], Any]] = [
        lambda x: np.array([x, 1 + 2j], dtype),
        lambda x: np.asanyarray((x, (2j)), dtype),
        lambda x: func.numpy.asarray([[0.5, 1 + 2j]], dtype),
    ]
    for program in programs:
        with pytest.raises(TypeError, match="complex"):
            program(1.0)
        with pytest.raises(TypeError, match="complex"):
            func.jvp(program, (1.0,), (1.0,))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_signs_of_tiny_complex_numbers(dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    z = np.array([tiny, tiny * 1j, complex(-1000 * tiny, 1000 * tiny), 0, 3 + 4j], dtype)
    for sign in (func.numpy.sign, func.vmap(np.sign), func.jit(np.sign), func.jit(np.sign, compiler="numpy")):
        np.testing.assert_allclose(sign(z), np.sign(z), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("number", [300.7, -5.5, np.inf, -np.inf, np.nan, 1e300])
def test_numbers_of_python_are_cast_to_the_loops_dtype(number: float) -> None:
    def f(x: Any) -> Any:
        return np.maximum(x, number, dtype=np.int32, casting="unsafe")

    x = np.array([1, 2], np.uint8)
    assert np.array_equal(func.vmap(f)(x), f(x))


def test_numbers_of_python_are_weak_in_logsumexp() -> None:
    for a, b in ((0.5, np.float16(2.0)), (1, np.ones(2, np.float32)), (np.float32(0.5), 2.0), (np.float32(0.5), 2)):
        value = func.special.logsumexp(a, b=b)
        assert value.dtype == np.result_type(a, b)
        np.testing.assert_allclose(value, np.log(np.sum(b * np.exp(a))), rtol=1e-3)


def test_the_permutation_of_one_element_has_the_dtype_of_the_matrix() -> None:
    assert [x.dtype for x in func.linalg.lu(np.ones((1, 1), np.complex64))] == [np.complex64] * 3
    assert func.linalg.lu(np.eye(2, dtype=np.complex64))[0].dtype == np.float32
