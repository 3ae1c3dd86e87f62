"""NumPy's functions on traced arrays: one table, each case checked in value, in both modes and under vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

RNG = np.random.default_rng(0)
V = RNG.uniform(0.2, 0.9, 6)
M = RNG.uniform(0.2, 0.9, (3, 4))
W = RNG.uniform(0.2, 0.9, (3, 4))
S = RNG.uniform(0.2, 0.9, (4, 4)) + 2 * np.eye(4)
P = S @ S.T
T = RNG.uniform(0.2, 0.9, (2, 3, 4))
MASK = M > 0.5

Function = Callable[[Any], Any]

# fmt: off
ELEMENTWISE = [
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square", "reciprocal", "negative",
    "positive", "absolute", "fabs", "deg2rad", "rad2deg", "degrees", "radians", "sinc", "floor", "ceil", "rint",
    "trunc", "sign", "nan_to_num", "real", "imag", "angle", "conj",
]
# fmt: on

SMOOTH: dict[str, tuple[Function, Any]] = {
    # elementwise
    **{name: (getattr(np, name), V) for name in ELEMENTWISE},
    "arccosh": (np.arccosh, V + 1.5),
    "add": (lambda x: np.add(x, W), M),
    "subtract broadcast": (lambda x: x - W[0], M),
    "reflected": (lambda x: (2 - x) / (3 * x) + 2**x - x**3 + x**-1 + x**0.5 + x % 0.3 + 1.0 // x, V),
    "divide by row": (lambda x: W / x, M[0]),
    "power": (lambda x: x**W, M),
    "power of row": (lambda x: W**x, M),
    "float_power": (lambda x: np.float_power(x, 2.5), V),
    "maximum": (lambda x: np.maximum(x, W), M),
    "minimum": (lambda x: np.minimum(x, W), M),
    "fmax": (lambda x: np.fmax(x, W), M),
    "fmin": (lambda x: np.fmin(x, W), M),
    "hypot": (lambda x: np.hypot(x, W), M),
    "arctan2": (lambda x: np.arctan2(x, W) + np.arctan2(W, x), M),
    "logaddexp": (lambda x: np.logaddexp(x, W), M),
    "logaddexp2": (lambda x: np.logaddexp2(x, W), M),
    "remainder": (lambda x: np.remainder(3.0, x), V),
    "fmod": (lambda x: np.fmod(3.0, x), V),
    "copysign": (lambda x: np.copysign(x, -1.0), V),
    "modf": (lambda x: np.modf(3 * x)[0], V),
    "divmod": (lambda x: np.divmod(3 * x, 0.7)[1], V),
    "ldexp": (lambda x: np.ldexp(x, 3), V),
    "clip": (lambda x: np.clip(x, 0.3, 0.7), M),
    "where": (lambda x: np.where(MASK, x, x**2), M),
    "select": (lambda x: np.select([MASK, x > 0.3], [x, x**2], 0.0), M),
    "choose": (lambda x: np.choose(MASK.astype(int), [x, x**2]), M),
    "piecewise": (lambda x: np.piecewise(x, [MASK, ~MASK], [np.sin, np.cos]), M),
    # reductions
    "sum": (np.sum, M),
    "sum axis": (lambda x: np.sum(x**2, axis=(0, -1), keepdims=True), T),
    "sum where": (lambda x: np.sum(x, where=MASK, initial=2.0), M),
    "mean": (lambda x: np.mean(x, axis=1), M),
    "mean where": (lambda x: np.mean(x, where=MASK), M),
    "prod": (lambda x: np.prod(x, axis=0), M),
    "max": (lambda x: np.max(x, axis=0), M),
    "min": (lambda x: x.min(axis=(0, 1)), M),
    "ptp": (lambda x: np.ptp(x, axis=1), M),
    "var": (lambda x: np.var(x, axis=0, ddof=1), M),
    "std": (lambda x: np.std(x, axis=1), M),
    "average": (lambda x: np.average(x, axis=0, weights=W), M),
    "average weights": (lambda w: np.average(M, weights=w), W),
    "median": (lambda x: np.median(x, axis=0), M),
    "quantile": (lambda x: np.quantile(x, [0.1, 0.6], axis=1), M),
    "percentile": (lambda x: np.percentile(x, 30), M),
    "cov": (np.cov, M),
    "corrcoef": (np.corrcoef, M),
    "nansum": (np.nansum, M),
    "nanmean": (lambda x: np.nanmean(x, axis=0), M),
    "nanvar": (lambda x: np.nanvar(x, axis=0), M),
    "nanstd": (lambda x: np.nanstd(x, axis=0), M),
    "nanmax": (lambda x: np.nanmax(x, axis=0), M),
    "nanmin": (lambda x: np.nanmin(x, axis=0), M),
    "nanprod": (np.nanprod, V),
    "cumsum": (lambda x: np.cumsum(x, axis=1), M),
    "cumprod": (lambda x: np.cumprod(x, axis=0), M),
    "nancumsum": (np.nancumsum, V),
    "add.reduce": (lambda x: np.add.reduce(x, axis=1), M),
    "multiply.accumulate": (np.multiply.accumulate, V),
    "maximum.accumulate": (np.maximum.accumulate, V),
    "subtract.outer": (lambda x: np.subtract.outer(x, V), V),
    # shapes
    "reshape": (lambda x: np.reshape(x, (2, -1)) * 2, M),
    "reshape F": (lambda x: np.reshape(x, (2, -1), order="F"), M),
    "ravel": (np.ravel, M),
    "transpose": (lambda x: np.transpose(x, (2, 0, 1)), T),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 2), T),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), T),
    "rollaxis": (lambda x: np.rollaxis(x, 2), T),
    "expand_dims": (lambda x: np.expand_dims(x, (0, 2)), M),
    "squeeze": (lambda x: np.squeeze(x[:, :1]), M),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), M),
    "broadcast_arrays": (lambda x: np.broadcast_arrays(x, W)[0], M[0]),
    "flip": (lambda x: np.flip(x, 0), M),
    "fliplr": (np.fliplr, M),
    "flipud": (np.flipud, M),
    "rot90": (lambda x: np.rot90(x, 3), M),
    "roll": (lambda x: np.roll(x, (1, -2), (0, 1)), M),
    "roll flat": (lambda x: np.roll(x, 5), M),
    "atleast_3d": (np.atleast_3d, M),
    "concatenate": (lambda x: np.concatenate([x, W, x], axis=1), M),
    "stack": (lambda x: np.stack([x, W], axis=1), M),
    "vstack": (lambda x: np.vstack([x, x]), V),
    "hstack": (lambda x: np.hstack([x, V]), V),
    "dstack": (lambda x: np.dstack([x, W]), M),
    "column_stack": (lambda x: np.column_stack([x, V]), V),
    "block": (lambda x: np.block([[x, W], [W, x]]), M),
    "split": (lambda x: np.split(x, 2)[1], V),
    "array_split": (lambda x: np.array_split(x, 4)[1], V),
    "tile": (lambda x: np.tile(x, (2, 2)), M),
    "repeat": (lambda x: np.repeat(x, [1, 0, 2], axis=0), M),
    "append": (lambda x: np.append(x, V), V),
    "delete": (lambda x: np.delete(x, [1, 3]), V),
    "insert": (lambda x: np.insert(x, [1, 3], 7.0), V),
    "insert rows": (lambda x: np.insert(x, 1, 5.0, axis=0), M),
    "resize": (lambda x: np.resize(x, (4, 4)), M),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 1))), M),
    "pad value": (lambda x: np.pad(x, 1, constant_values=3.0), M),
    "pad reflect": (lambda x: np.pad(x, 2, mode="reflect"), M),
    "pad wrap": (lambda x: np.pad(x, 2, mode="wrap"), M),
    "pad edge": (lambda x: np.pad(x, 2, mode="edge"), M),
    "array": (lambda x: np.array([x[0], np.sin(x[1]), 3.0]), V),
    "nested array": (lambda x: np.array([[x[0], x[1]], [x[2], 1.0]]), V),
    "diag": (np.diag, V),
    "diag of": (lambda x: np.diag(x, 1), M),
    "diagonal": (lambda x: np.diagonal(x, 0, 1, 2), T),
    "tril": (np.tril, M),
    "triu": (lambda x: np.triu(x, 1), M),
    "vander": (lambda x: np.vander(x, 3), V),
    "meshgrid": (lambda x: np.meshgrid(x, V)[0], V),
    "linspace": (lambda x: np.linspace(x[0], x[1], 5), V),
    # indexing
    "basic index": (lambda x: x[1:, ::-1] * x[0, None], M),
    "ellipsis": (lambda x: x[..., 1], T),
    "integer arrays": (lambda x: x[[0, 2, 0], [1, 1, 3]], M),
    "separated arrays": (lambda x: x[[0, 1], :, [1, 3]], T),
    "mask": (lambda x: x[MASK], M),
    "mixed index": (lambda x: x[1, [0, 2], 1:], T),
    "take": (lambda x: np.take(x, [[0, 2]], axis=1), M),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(M, 1), 1), M),
    "compress": (lambda x: np.compress([True, False, True], x, axis=0), M),
    "extract": (lambda x: np.extract(MASK, x), M),
    "ix": (lambda x: x[np.ix_([0, 2], [1, 3])], M),
    # sorting and neighbours
    "sort": (lambda x: np.sort(x, axis=0), M),
    "partition": (lambda x: np.sort(np.partition(x, 2)), V),
    "diff": (lambda x: np.diff(x, 2), M),
    "ediff1d": (np.ediff1d, V),
    "gradient": (lambda x: np.gradient(x, 0.5, axis=0, edge_order=2), S),
    "trapezoid": (lambda x: np.trapezoid(x, dx=0.3, axis=0), M),
    "interp": (lambda x: np.interp(x, [0.0, 0.5, 1.0], [1.0, 3.0, 2.0]), V),
    "interp values": (lambda f: np.interp([0.1, 0.4, 0.8], np.linspace(0, 1, 6), f), V),
    "unwrap": (lambda x: np.unwrap(7 * x), V),
    "polyval": (lambda x: np.polyval([1.0, 2.0, 3.0], x), V),
    # products
    "dot": (lambda x: np.dot(x, W.T), M),
    "matmul": (lambda x: x @ S, M),
    "matmul batched": (lambda x: x @ S, T),
    "matmul broadcast": (lambda x: T @ x, S),
    "matmul vector": (lambda x: S @ x, V[:4]),
    "inner": (lambda x: np.inner(x, W), M),
    "outer": (lambda x: np.outer(x, x), V),
    "vdot": (lambda x: np.vdot(x, W), M),
    "vecdot": (lambda x: np.linalg.vecdot(x, W), M),
    "tensordot": (lambda x: np.tensordot(x, T, axes=([0, 1], [1, 2])), M),
    "kron": (lambda x: np.kron(x, W), M),
    "cross": (lambda x: np.cross(x, V[:3]), V[3:]),
    "trace": (np.trace, S),
    "einsum": (lambda x: np.einsum("ij,jk,ik->i", x, S, W), M),
    "einsum dots": (lambda x: np.einsum("...j,jk->...k", x, S), T),
    "einsum diagonal": (lambda x: np.einsum("ii->i", x) + np.einsum("ii", x), S),
    "einsum optimal": (lambda x: np.einsum("ij,jk,kl->il", x, S, S, optimize=True), M),
    "convolve": (lambda x: np.convolve(x, [1.0, 2.0, 3.0], mode="same"), V),
    "correlate": (lambda x: np.correlate(x, [1.0, 2.0, 3.0], mode="full"), V),
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)) * 2, M),
    # linear algebra
    "cholesky": (lambda x: np.linalg.cholesky(x @ x.T), S),
    "inv": (np.linalg.inv, S),
    "det": (np.linalg.det, S),
    "slogdet": (lambda x: np.linalg.slogdet(x)[1], S),
    "solve": (lambda x: np.linalg.solve(x, V[:4]), S),
    "solve right": (lambda b: np.linalg.solve(S, b), W.T),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(x + x.T), S),
    "svdvals": (np.linalg.svdvals, M),
    "qr": (lambda x: np.linalg.qr(x)[1], S),
    "pinv": (np.linalg.pinv, M),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 3), S),
    "matrix_power inverse": (lambda x: np.linalg.matrix_power(x, -2), S),
    "multi_dot": (lambda x: np.linalg.multi_dot([x, S, W.T]), M),
    "norm": (np.linalg.norm, M),
    "norm 1": (lambda x: np.linalg.norm(x, 1, axis=0), M),
    "norm 3": (lambda x: np.linalg.norm(x, 3), V),
    "norm inf": (lambda x: np.linalg.norm(x, np.inf), M),
    "norm nuc": (lambda x: np.linalg.norm(x, "nuc"), M),
    "cond": (np.linalg.cond, S),
    "tensorsolve": (lambda x: np.linalg.tensorsolve(x.reshape(2, 2, 4), np.ones((2, 2))), S),
    "tensorinv": (lambda x: np.linalg.tensorinv(x.reshape(4, 2, 2), 1), S),
}

TOLERANT = {
    "einsum",
    "einsum optimal",
    "einsum dots",
    "einsum diagonal",
    "convolve",
    "correlate",
    "interp",
    "interp values",
}
TOLERANT |= {
    "cond",
    "pinv",
    "matrix_power",
    "matrix_power inverse",
    "multi_dot",
    "hypot",
    "sinc",
    "cov",
    "corrcoef",
    "std",
}
TOLERANT |= {
    "norm",
    "norm 3",
    "norm nuc",
    "kron",
    "tensordot",
    "inner",
    "vdot",
    "nanstd",
    "unwrap",
    "gradient",
    "linspace",
}
TOLERANT |= {
    "reflected",
    "quantile",
    "percentile",
    "median",
    "trapezoid",
    "polyval",
    "vecdot",
    "nanvar",
    "var",
    "mean where",
}
TOLERANT |= {"svdvals", "cross", "average", "average weights", "tensorsolve", "vander", "outer", "det"}
"""Functions that are compositions here, so that the last bits may differ."""


def value_of(f: Function, x: Any) -> Any:
    """The value that the traced function computes."""
    return func.vjp(f, x)[0]


@pytest.mark.parametrize("name", SMOOTH)
def test_value_is_numpys(name: str) -> None:
    f, x = SMOOTH[name]
    expected, got = np.asarray(f(x)), np.asarray(value_of(f, x))
    assert got.dtype == expected.dtype and got.shape == expected.shape
    if name in TOLERANT:
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_agree_with_differences_and_each_other(name: str) -> None:
    f, x = SMOOTH[name]
    rng = np.random.default_rng(1)
    tangent = rng.normal(size=x.shape)
    step = 1e-6
    difference = (np.asarray(f(x + step * tangent)) - np.asarray(f(x - step * tangent))) / (2 * step)
    out, dot = func.jvp(f, (x,), (tangent,))
    np.testing.assert_allclose(dot, difference, rtol=2e-5, atol=2e-6)
    ct = rng.normal(size=np.shape(out))
    (pulled,) = func.vjp(f, x)[1](ct if np.ndim(out) else float(ct))
    np.testing.assert_allclose(np.sum(pulled * tangent), np.sum(ct * dot), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", SMOOTH)
def test_second_order_modes_agree(name: str) -> None:
    f, x = SMOOTH[name]
    tangent = np.random.default_rng(2).normal(size=x.shape)

    def loss(y: Any) -> Any:
        return np.sum(np.sin(f(y)))

    forward_over_reverse = func.hvp(loss, (x,), (tangent,))
    reverse_over_reverse = func.vhp(loss, (x,), (tangent,))
    np.testing.assert_allclose(forward_over_reverse, reverse_over_reverse, rtol=1e-7, atol=1e-8)
    step = 1e-5
    gradient = func.grad(loss)
    difference = (gradient(x + step * tangent) - gradient(x - step * tangent)) / (2 * step)
    np.testing.assert_allclose(forward_over_reverse, difference, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMOOTH)
def test_map_is_the_stack_of_singles(name: str) -> None:
    f, x = SMOOTH[name]
    batch = np.stack([x, x * 1.01, x * 0.99])
    mapped = func.vmap(f)(batch)
    np.testing.assert_allclose(mapped, np.stack([np.asarray(f(element)) for element in batch]), rtol=1e-9, atol=1e-11)
    gradients = func.vmap(func.grad(lambda y: np.sum(f(y))))(batch)
    singles = [func.grad(lambda y: np.sum(f(y)))(element) for element in batch]
    np.testing.assert_allclose(gradients, np.stack(singles), rtol=1e-8, atol=1e-9)


CONSTANT: dict[str, Function] = {
    "equal": lambda x: x == W,
    "less": lambda x: np.less(x, W),
    "isfinite": np.isfinite,
    "isnan": np.isnan,
    "isclose": lambda x: np.isclose(x, W),
    "allclose": lambda x: np.asarray(np.allclose(x, x)),
    "array_equal": lambda x: np.asarray(np.array_equal(x, x)),
    "any": lambda x: np.any(x > 0.5, axis=0),
    "all": lambda x: np.all(x > 0.5, axis=1),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: np.argsort(x, axis=0),
    "lexsort": lambda x: np.lexsort((x[0], x[1])),
    "searchsorted": lambda x: np.searchsorted([0.3, 0.5, 0.7], x),
    "digitize": lambda x: np.digitize(x, [0.3, 0.5, 0.7]),
    "nonzero": lambda x: np.nonzero(x > 0.5)[1],
    "flatnonzero": lambda x: np.flatnonzero(x > 0.5),
    "argwhere": lambda x: np.argwhere(x > 0.5),
    "count_nonzero": lambda x: np.count_nonzero(x > 0.5, axis=0),
    "unique": lambda x: np.unique(np.round(x, 1), return_counts=True)[1],
    "bincount": lambda x: np.bincount(np.argmax(x, axis=1), minlength=4),
    "matrix_rank": lambda x: np.asarray(np.linalg.matrix_rank(x)),
    "nanargmax": lambda x: np.nanargmax(x, axis=0),
    "shape": lambda x: np.asarray(np.shape(x)),
    "size": lambda x: np.asarray(np.size(x) + np.ndim(x)),
    "iscomplexobj": lambda x: np.asarray(np.iscomplexobj(x)),
    "signbit": np.signbit,
    "logical_and": lambda x: np.logical_and(x > 0.3, ~(x > 0.6)),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_functions_without_a_derivative(name: str) -> None:
    f = CONSTANT[name]
    seen: list[Any] = []

    def loss(x: Any) -> Any:
        seen.append(f(x))
        return np.sum(x)

    func.grad(loss)(M)
    np.testing.assert_array_equal(seen[0], f(M))


def test_weights_of_bincount_are_differentiable() -> None:
    gradient = func.grad(lambda w: np.sum(np.bincount([0, 2, 0], weights=w) ** 2))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(gradient, [8.0, 4.0, 8.0])


def test_at_least_150_numpy_functions_are_reached() -> None:
    from func.numpy.protocol import DIRECT, FUNCTIONS, UFUNCS

    assert len(FUNCTIONS) + len(DIRECT) + len(UFUNCS) >= 150


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "tanh"])
def test_dtype_in_is_dtype_out(name: str, dtype: Any) -> None:
    x = np.asarray(V, dtype)
    gradient = func.grad(lambda y: np.real(np.sum(getattr(np, name)(y) * 2.5)))(x)
    assert gradient.dtype == dtype


def test_unsupported_functions_say_so(tmp_path: Any) -> None:
    with pytest.raises(func.errors.UnsupportedFunctionError, match=r"np\.save has no traced version"):
        func.grad(lambda x: np.save(tmp_path / "x.npy", x))(M)


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), [0, 1], ..., [1, 0]),
        (slice(None), [0, 1], [1, 0]),
        ([0, 1], slice(None), [1, 0]),
        (slice(None), [0, 1], None, [1, 0]),
        (..., [0, 1], 1),
        (slice(None), 1, [[0, 1, 1]]),
    ],
    ids=str,
)
def test_the_axes_of_index_arrays_stand_where_numpy_puts_them(index: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(func.jit(lambda t: t[index])(x), x[index])
    np.testing.assert_array_equal(func.vmap(lambda t: t[index])(x[None])[0], x[index])


@pytest.mark.parametrize("mode", ["constant", "edge", "linear_ramp", "empty"])
def test_pad_of_a_number_is_an_array_of_its_own(mode):
    def f(x):
        y = x * 2.0
        padded = np.pad(y, 1, mode=mode)
        padded.ravel()[-1] = 3.0
        return padded * x + y

    np.testing.assert_allclose(func.grad(f)(2.0), 5.0)
    np.testing.assert_allclose(func.jit(f)(2.0), f(np.float64(2.0)))


@pytest.mark.parametrize("axis", [None, (), 0])
@pytest.mark.parametrize("initial", [np.array(np.nan), 5.0])
@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_nan_extrema_of_integers_with_floating_out(name, initial, axis):
    a = np.array([[1, 7], [3, 2]], np.uint8)
    out = np.zeros(np.shape(np.max(a, axis=axis)))
    expected = getattr(np, name)(a, axis, initial=initial, out=out.copy())
    np.testing.assert_array_equal(getattr(func.numpy, name)(a, axis, initial=initial, out=out), expected)


def test_round_looks_at_the_shape_of_out_first():
    with pytest.raises(ValueError, match="invalid output shape"):
        func.numpy.round(np.uint8(3), -1, out=np.zeros(2, bool))


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("ufunc", [np.minimum, np.maximum])
def test_reductions_compute_in_dtype_and_not_in_that_of_out(ufunc, rows):
    x, out = np.full((rows, 3), 1.7), np.zeros(3)
    expected = ufunc.reduce(x, axis=0, dtype="f2", initial=1.910885061964363, out=out.copy())

    def f(x):
        return ufunc.reduce(x, axis=0, dtype="f2", initial=1.910885061964363, out=out + np.sum(x) * 0)

    got, _ = func.jvp(f, (x,), (x,))
    np.testing.assert_array_equal(got, expected)
