"""Views, `x.flat`, `x.at[...]`, padding, creation with like=, and functions of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from tests.support import numpy_properties as check
from tests.support.numpy_properties import Function

RNG = np.random.default_rng(11)
V = RNG.uniform(0.2, 0.9, 6)
M = RNG.normal(size=(3, 4))
C = M + 1j * RNG.normal(size=(3, 4))


def written(write: Callable[[Any, Any], Any]) -> Function:
    """A function of x that calls write(copy of x, x) and returns the copy."""

    def f(x: Any) -> Any:
        y = np.zeros_like(x) + x
        write(y, x)
        return y * 1.0

    return f


def by_real(y: Any, x: Any) -> None:
    y.real[0] = x.imag[1] * 2
    y.imag += 1.0


def by_real_setter(y: Any, x: Any) -> None:
    y.real = x.real**2
    y.imag[:, 1:] = np.sin(x.real[:, 1:])


def by_chains(y: Any, x: Any) -> None:
    y.T[1:].reshape(-1)[:2] = 7.0  # a copy: y stays
    y.T[1:, ::-1][0] = x[0, :3] * x[1, :3]
    y.ravel()[5:7] *= x[2, 0]
    y[::2].swapaxes(0, 1)[2] = x[:2, 3]


def by_flat(y: Any, x: Any) -> None:
    y.flat[3] = x[0, 0] ** 2
    y.T.flat[1:4] = x[1, :3]
    y.flat[[0, 5]] = x[2, :2]


def by_flat_whole(y: Any, x: Any) -> None:
    y.flat = x[0] * x[1]


def by_base(y: Any, x: Any) -> None:
    row = y[1]
    y[1] = x[0] * 2
    row[0] = row[1] * 3
    np.fill_diagonal(y, row[2])


WRITES: dict[str, tuple[Function, Any]] = {
    "real": (written(by_real), C),
    "real setter": (written(by_real_setter), C),
    "real setter of real": (written(lambda y, x: setattr(y, "real", x**2)), M),
    "chains": (written(by_chains), M),
    "flat": (written(by_flat), M),
    "flat whole": (written(by_flat_whole), M),
    "base": (written(by_base), M),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_through_views(name: str) -> None:
    check.check_value(WRITES[name])
    check.check_modes(WRITES[name])
    check.check_second_order(WRITES[name])
    check.check_mapped(WRITES[name])


def test_flat_reads() -> None:
    def f(x: Any) -> Any:
        assert len(x.flat) == 12 and isinstance(x.flat.copy(), type(x))
        return sum([i * e for i, e in enumerate(x.T.flat)]) + np.sum(x.flat[2:5]) + x.flat[-1]

    np.testing.assert_allclose(func.grad(f)(M), func.jacrev(f)(M))
    assert float(func.vjp(f, M)[0]) == pytest.approx(float(f(M)))
    with pytest.raises(IndexError):
        func.grad(lambda x: x.flat[0, 1])(M)


AT: dict[str, Callable[[Any], Any]] = {
    "set": lambda x: x.at[1].set(x[0] * 2),
    "set slice": lambda x: x.at[:, 1:3].set(5.0),
    "add": lambda x: x.at[[0, 0, 2]].add(x[:3, :4] ** 2),
    "subtract": lambda x: x.at[[0, 0, 2], 1].subtract(x[0, :3]),
    "multiply": lambda x: x.at[[0, 0], 1].multiply(x[0, :2]),
    "mul": lambda x: x.at[0].mul(x[1]),
    "divide": lambda x: x.at[[1, 1]].divide(2.0 + x[:2] ** 2),
    "power": lambda x: x.at[0].power(2),
    "min": lambda x: x.at[[0, 0], [1, 1]].min(x[1, :2]),
    "max": lambda x: x.at[..., 0].max(0.1),
    "apply": lambda x: x.at[1:].apply(np.sin),
    "get": lambda x: x.at[1].get() * 2,
}


def by_ufunc_at(x: Any, name: str) -> Any:
    """The same update by NumPy, through func.numpy.at of a plain array."""

    class Plain:
        """A plain array with `.at`."""

        def __init__(self, x: Any) -> None:
            self.x = x
            self.at = func.numpy.at(x)

        def __getitem__(self, index: Any) -> Any:
            return self.x[index]

    return AT[name](Plain(x))


@pytest.mark.parametrize("name", AT)
def test_at(name: str) -> None:
    expected = by_ufunc_at(M, name)
    out, pullback = func.vjp(AT[name], M)
    # On CPUs with AVX-512 NumPy's power loop over vectors and its `power.at` differ in the last bit.
    np.testing.assert_allclose(out, expected, rtol=4e-16 if name == "power" else 0)
    tangent, ct = RNG.normal(size=M.shape), RNG.normal(size=out.shape)
    _, dot = func.jvp(AT[name], (M,), (tangent,))
    difference = (by_ufunc_at(M + 1e-6 * tangent, name) - by_ufunc_at(M - 1e-6 * tangent, name)) / 2e-6
    np.testing.assert_allclose(dot, difference, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.sum(pullback(ct)[0] * tangent), np.sum(ct * dot))
    stacked = np.stack([M, M + 1])
    np.testing.assert_allclose(func.vmap(AT[name])(stacked), [by_ufunc_at(m, name) for m in stacked])


def test_at_leaves_the_array_alone_and_refuses_modes() -> None:
    def f(x: Any) -> Any:
        x.at[0].set(9.0)
        return np.sum(x)

    np.testing.assert_array_equal(func.grad(f)(V), np.ones(6))
    with pytest.raises(func.errors.UnsupportedFunctionError, match="mode='drop'"):
        func.grad(lambda x: np.sum(x.at[9].set(1.0, mode="drop")))(V)
    with pytest.raises(IndexError):
        func.grad(lambda x: np.sum(x.at[9].set(1.0)))(V)
    with pytest.raises(TypeError, match="unexpected keyword"):
        func.grad(lambda x: np.sum(x.at[0].set(1.0, nonsense=True)))(V)


PADS: dict[str, Function] = {
    "constant": lambda x: np.pad(x, 2),
    "constant values": lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4.5))),
    "traced constant": lambda x: np.pad(x, 1, constant_values=x[0, 0]),
    "dict": lambda x: np.pad(x, {-1: (1, 2)}),
    "empty": lambda x: np.pad(x, 1, mode="empty")[1:-1, 1:-1],
    "edge": lambda x: np.pad(x, (1, 3), mode="edge"),
    "maximum": lambda x: np.pad(x, (2, 1), mode="maximum"),
    "minimum of some": lambda x: np.pad(x, 2, mode="minimum", stat_length=((1, 2), (3, 9))),
    "mean": lambda x: np.pad(x, ((2, 0), (1, 1)), mode="mean", stat_length=2),
    "median": lambda x: np.pad(x, 1, mode="median"),
    "linear ramp": lambda x: np.pad(x, (2, 3), mode="linear_ramp", end_values=(0.5, -1)),
    "reflect": lambda x: np.pad(x, ((0, 5), (7, 2)), mode="reflect"),
    "reflect odd": lambda x: np.pad(x, ((0, 5), (7, 2)), mode="reflect", reflect_type="odd"),
    "symmetric": lambda x: np.pad(x, ((0, 5), (9, 2)), mode="symmetric"),
    "symmetric odd": lambda x: np.pad(x, ((0, 5), (9, 2)), mode="symmetric", reflect_type="odd"),
    "wrap": lambda x: np.pad(x, ((0, 5), (9, 2)), mode="wrap"),
}


@pytest.mark.parametrize("name", PADS)
def test_pad(name: str) -> None:
    case = (PADS[name], M)
    check.check_value(case, exact=name != "mean")
    check.check_modes(case)
    check.check_second_order(case)
    check.check_mapped(case)


@pytest.mark.parametrize("mode", ["linear_ramp", "mean", "median", "maximum", "reflect", "wrap", "constant"])
def test_pad_integers_and_single_elements(mode: str) -> None:
    check.check_constant(lambda x: np.pad(np.round(x * 5).astype(int), (3, 2), mode=mode), M)
    check.check_value((lambda x: np.pad(x, (1, 2), mode=mode), V[:1]), exact=False)


def test_pad_by_a_function() -> None:
    def border(vector: Any, width: Any, axis: int, options: Any) -> None:
        vector[: width[0]] = options["scale"] * vector[width[0]]
        vector[-width[1] :] = vector[-width[1] - 1] ** 2

    case = (lambda x: np.pad(x, (1, 2), border, scale=3.0), M)
    check.check_value(case)
    check.check_modes(case)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.pad(x, 1, mode="nonsense"),
        lambda x: np.pad(x, -1),
        lambda x: np.pad(x, 1.5),
        lambda x: np.pad(x, (1, 2, 3)),
        lambda x: np.pad(x, 1, mode="edge", constant_values=2),
        lambda x: np.pad(x, 1, mode="maximum", stat_length=0),
        lambda x: np.pad(x[:, :0], 1, mode="edge"),
    ],
)
def test_pad_refusals(call: Function) -> None:
    check.check_refusal(call, M)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.zeros((2, 3), like=x),
        lambda x: np.ones(3, np.float32, like=x),
        lambda x: np.full((2, 2), 7.0, like=x),
        lambda x: np.eye(3, 4, 1, like=x),
        lambda x: np.identity(3, like=x),
        lambda x: np.arange(1, 7, 2, like=x),
        lambda x: np.tri(3, 4, like=x),
        lambda x: np.empty_like(x) * 0,
        lambda x: np.array([[1.0, 2.0]], like=x),
        lambda x: np.asarray([1, 2], like=x),
    ],
)
def test_creation_like(make: Function) -> None:
    def f(x: Any) -> Any:
        array = make(x)
        check.assert_same(np.asarray(func.stop_gradient(array)), make(V))
        array[..., 0] = x[0]
        return np.sum(array * 1.0)

    expected = float(np.size(make(V)[..., 0])) if make(V).dtype.kind == "f" else 0.0
    np.testing.assert_allclose(func.grad(f)(V)[0], expected)


RANGES: dict[str, Function] = {
    "linspace": lambda x: np.linspace(x[0], x[1], 7),
    "linspace open": lambda x: np.linspace(0, x, 4, endpoint=False, axis=-1),
    "linspace step": lambda x: np.linspace(x[:2], 5.0, 3, retstep=True)[1],
    "linspace equal": lambda x: np.linspace(x[0], x[0], 3),
    "logspace": lambda x: np.logspace(x[0], x[1], 5, base=2.0),
    "logspace of bases": lambda x: np.logspace(0.5, x[:3], 4, base=x[3:]),
    "geomspace": lambda x: np.geomspace(x[0], x[1] * 9, 6),
    "geomspace negative": lambda x: np.geomspace(-x[:2], -9.0, 4, axis=1),
    "meshgrid": lambda x: np.meshgrid(x[:2], x[2:])[1],
    "vander": lambda x: np.vander(x, 4),
    "tril": lambda x: np.tril(np.outer(x, x), -1),
    "triu of a vector": lambda x: np.triu(x, 1),
    "diag": lambda x: np.diag(x, -2),
    "diagflat": lambda x: np.diagflat(np.outer(x[:2], x[:2]), 1),
    "r_": lambda x: np.r_[x[0], 1:3, x[2:4], [5.0]],
    "r_ as rows": lambda x: np.r_["0,2", x[:2], x[2:4]],
    "r_ directive": lambda x: np.r_["-1,2,0", x[:2], x[2:4]],
    "c_": lambda x: np.c_[x, 2 * x, np.ones(6)],
    "apply_along_axis": lambda x: np.apply_along_axis(np.cumsum, 0, np.outer(x, x[:3])),
    "apply_along_axis more": lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, np.outer(x[:2], x[:3])),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x.reshape(1, 2, 3), [0, 2]),
    "trim_zeros": lambda x: np.trim_zeros(np.pad(x, 2), "b"),
    "unravel": lambda x: x.reshape(2, 3)[np.unravel_index(np.argmax(x), (2, 3))] * x,
    "ravel_multi_index": lambda x: x[np.ravel_multi_index((np.argsort(x)[:2] % 2, [0, 2]), (2, 3))],
    "indices": lambda x: np.outer(x, x)[np.tril_indices_from(np.outer(x, x), -1)],
    "diag_indices": lambda x: np.outer(x, x)[np.diag_indices_from(np.outer(x, x))],
    "ravel K": lambda x: np.ravel(x.reshape(2, 3).T, "K"),
    "ravel A": lambda x: np.ravel(x.reshape(2, 3).T, "A"),
    "ravel F": lambda x: x.reshape(2, 3).ravel("F"),
    "reshape A": lambda x: np.reshape(x.reshape(2, 3).T, (2, 3), order="A"),
    "reshape F": lambda x: x.reshape((2, 3), order="F"),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_and_places(name: str) -> None:
    case = (RANGES[name], V)
    check.check_value(case)
    check.check_modes(case)
    check.check_second_order(case)
    check.check_mapped(case)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.linspace(x[0], x[1], -1),
        lambda x: np.geomspace(0.0 * x[0], x[1]),
        lambda x: np.diag(x.reshape(1, 2, 3)),
        lambda x: np.vander(x.reshape(2, 3)),
        lambda x: np.meshgrid(x, x, indexing="yx"),
        lambda x: np.tril_indices_from(x),
        lambda x: np.trim_zeros(x, "q"),
        lambda x: np.apply_along_axis(np.sum, 3, x),
        lambda x: x.astype(int, casting="safe"),
        lambda x: np.reshape(x, (2, 3), order="Q"),
        lambda x: np.zeros_like(x, order="Q"),
    ],
)
def test_refusals(call: Function) -> None:
    check.check_refusal(call, V)


def test_casting_of_operands() -> None:
    with pytest.raises(TypeError, match="same_kind"):
        func.grad(lambda x: np.sum(np.add(x, 1, dtype=np.int64)))(V)
    assert func.vjp(lambda x: np.add(x, 1, dtype=np.float32), V)[0].dtype == np.float32


def test_questions_about_arrays() -> None:
    def f(x: Any) -> Any:
        assert np.result_type(x, np.float32) == np.float64 and np.can_cast(x.dtype, np.float32, "same_kind")
        assert np.common_type(x) is np.float64 and np.min_scalar_type(x) == np.float64
        assert np.shares_memory(x[1:], x) and not np.shares_memory(x, x + 1) and np.may_share_memory(x.T, x)
        assert x[1:].base is x and (x + 1).base is None
        assert "Traced" in np.array_repr(x) and "Traced" in np.array2string(x)
        assert np.packbits(x > 0.5).dtype == np.uint8
        return np.sum(np.bitwise_count(np.arange(6, like=x)) * x)

    np.testing.assert_array_equal(func.grad(f)(V), np.bitwise_count(np.arange(6)))


def test_vectorize() -> None:
    dot = func.numpy.vectorize(np.dot, signature="(n),(n)->()")
    np.testing.assert_allclose(dot(M, M[0]), M @ M[0])
    np.testing.assert_allclose(func.grad(lambda x: np.sum(dot(x[:, None], M)))(M), np.tile(M.sum(0), (3, 1)))
    positive = func.numpy.vectorize(lambda x: x if x > 0 else 0.0 * x)
    np.testing.assert_allclose(positive(M), np.maximum(M, 0))
    scaled = func.numpy.vectorize(lambda x, k: x * k["by"], excluded={1})
    np.testing.assert_allclose(scaled(V, {"by": 2.0}), 2 * V)
    with pytest.raises(func.errors.ArgumentError, match="gufunc signature"):
        func.numpy.vectorize(np.dot, signature="(n)(n)")
    with pytest.raises(func.errors.ArgumentError, match="core axes"):
        dot(1.0, V)


def test_drop_in_import() -> None:
    import func.numpy as fnp

    missing = [name for name in fnp.__all__ if not hasattr(fnp, name)]
    assert not missing
    assert fnp.pi == np.pi and fnp.float32 is np.float32 and fnp.newaxis is None
    callables = [n for n in fnp.__all__ if callable(getattr(fnp, n)) and not isinstance(getattr(fnp, n), type)]
    assert len(callables) > 340
    assert set(np.linalg.__all__) <= set(fnp.linalg.__all__) and set(np.fft.__all__) <= set(fnp.fft.__all__)


MASKED = np.array([0.0, 3.0, 0.0, 1.0, 3.0, 2.0])


def test_sizes_fix_the_shape() -> None:
    fnp = func.numpy
    np.testing.assert_array_equal(fnp.nonzero(MASKED, size=3)[0], [1, 3, 4])
    np.testing.assert_array_equal(fnp.nonzero(MASKED, size=6, fill_value=9)[0], [1, 3, 4, 5, 9, 9])
    np.testing.assert_array_equal(fnp.flatnonzero(MASKED.reshape(2, 3), size=8), [1, 3, 4, 5, 0, 0, 0, 0])
    np.testing.assert_array_equal(
        fnp.argwhere(MASKED.reshape(2, 3), size=5, fill_value=(7, 8)), [[0, 1], [1, 0], [1, 1], [1, 2], [7, 8]]
    )
    np.testing.assert_array_equal(fnp.where(MASKED > 2, size=2)[0], [1, 4])
    for size in (2, 4, 6):
        values, first, back, counts = fnp.unique(MASKED, True, True, True, size=size)
        expected = np.unique(MASKED, return_index=True, return_inverse=True, return_counts=True)
        np.testing.assert_array_equal(values, np.r_[expected[0], 0, 0][:size])
        np.testing.assert_array_equal(first, np.r_[expected[1], 0, 0][:size])
        np.testing.assert_array_equal(back, expected[2])
        np.testing.assert_array_equal(counts, np.r_[expected[3], 0, 0][:size])
    assert fnp.unique(np.array([np.nan, np.nan]), size=2)[1].shape == ()
    with pytest.raises(func.errors.ArgumentError, match="non-negative int"):
        fnp.nonzero(MASKED, size=-1)


def test_sizes_are_staged_and_mapped() -> None:
    def f(x: Any) -> Any:
        (places,) = func.numpy.nonzero(x, size=3)
        return np.sum(x[places] ** 2) + func.numpy.unique(x, size=4)[-1]

    program = func.make_program(f)(MASKED)
    np.testing.assert_allclose(program(MASKED)[0], f(MASKED))
    np.testing.assert_allclose(func.vmap(f)(np.stack([MASKED, MASKED[::-1]])), [f(MASKED), f(MASKED[::-1])])
    np.testing.assert_allclose(func.grad(f)(MASKED), [0, 7, 0, 2, 6, 0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (np.nonzero, "size=n"),
        (lambda x: x[x > 1], "np.where"),
        (lambda x: np.sum(x[x > 1]), "size=n"),
        (np.unique, "size=n"),
        (np.argwhere, "size=n"),
        (lambda x: np.extract(x > 1, x), "size=n"),
        (lambda x: np.union1d(x, x), "size=n"),
        (np.trim_zeros, "known"),
        (lambda x: np.piecewise(x, [x > 1], [np.sin]), "np.where"),
    ],
)
def test_staging_refuses_shapes_of_values(call: Function, words: str) -> None:
    with pytest.raises(func.errors.StagingError, match=words) as info:
        func.make_program(call)(MASKED)
    assert "test_places.py" in str(info.value)


def test_boolean_masks_split_the_batch() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x[x > 1.0])) + np.unique(x).shape[0]

    batch = np.stack([MASKED, np.arange(6.0), MASKED])
    np.testing.assert_allclose(func.vmap(f)(batch), [f(x) for x in batch])
    np.testing.assert_allclose(func.vmap(func.grad(f))(batch), [func.grad(f)(x) for x in batch])


def test_piecewise_passes_the_elements_of_each_condition() -> None:
    def f(x: Any) -> Any:
        return np.piecewise(x, [x < 0.5], [lambda v: v - np.mean(v), lambda v: np.sqrt(v)])

    check.check_value((f, V), exact=False)
    check.check_modes((f, V))
    check.check_mapped((f, V))


UPDATES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("name", UPDATES)
def test_at_takes_traced_indices(name: str) -> None:
    """Of a plain array too; an index may occur twice."""
    base = np.array([1.0, 2.0, 3.0])
    for indices, values in [(np.array([0, 2]), 2.0), (np.array([[0, 0], [2, 1]]), np.array([2.0, 3.0]))]:

        def update(i: Any, values: Any = values) -> Any:
            return getattr(func.numpy.at(base)[i], name)(values)

        right = np.stack([base, base])
        for row, i in zip(right, indices, strict=True):
            UPDATES[name].at(row, i, values)
        np.testing.assert_array_equal(func.vmap(update)(indices), right)
        np.testing.assert_array_equal(func.vmap(func.jit(update))(indices), right)
        np.testing.assert_array_equal([func.jit(update)(i) for i in indices], right)
