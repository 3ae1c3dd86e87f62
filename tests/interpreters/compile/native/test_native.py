"""Native code computes what NumPy does: programs that stress fusion, memory and control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

rng = np.random.default_rng(7)


def compiled(function: Callable[..., Any], compiler: str = "llvm") -> Any:
    """The function by one of the compilers."""
    return func.jit(function, compiler=compiler)


def same(got: Any, expected: Any, rtol: float | None = None) -> None:
    """Equal trees, types, dtypes and shapes; numbers up to the rounding of sums in another order."""
    assert func.tree.structure(got) == func.tree.structure(expected)
    for a, b in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        assert type(a) is type(b) or (isinstance(b, np.ndarray) and not b.shape)
        x, y = np.asarray(a), np.asarray(b)
        assert x.dtype == y.dtype and x.shape == y.shape
        if x.dtype.kind in "fc":
            limit = rtol or (2e-5 if x.dtype.itemsize == 4 else 1e-12)
            scale = np.max(np.abs(y[np.isfinite(y)]), initial=1e-300)
            np.testing.assert_allclose(x, y, rtol=limit, atol=limit * scale)
        else:
            np.testing.assert_array_equal(x, y)


def is_native(jitted: Any, *args: Any) -> bool:
    """Whether a jitted function is one piece of native code for such arguments."""
    return jitted.cached_call(args, {})[3].compiled.executable(np).native is not None


def check(function: Callable[..., Any], *args: Any, native: bool = True, rtol: float | None = None) -> None:
    """Eager, NumPy source and native code agree: in the first call, in later ones, and on other numbers between."""
    expected = function(*args)
    same(func.tree.map(np.asarray, compiled(function, "numpy")(*args)), func.tree.map(np.asarray, expected), rtol)
    jitted = compiled(function)
    same(jitted(*args), expected, rtol)
    others = func.tree.map(_other, args)
    between = function(*others)
    for _ in range(2):
        same(jitted(*others), between, rtol)
        same(jitted(*args), expected, rtol)
    if native:
        assert is_native(jitted, *args)


def _other(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f":
        return np.flip(leaf) * 0.75 + 0.125
    return leaf


def numbers(*shape: int, dtype: Any = np.float64) -> Any:
    """An array of numbers around one."""
    return rng.normal(size=shape).astype(dtype)


def whole(*shape: int, dtype: Any = np.int64) -> Any:
    """An array of whole numbers."""
    return rng.integers(-4, 5, shape).astype(dtype)


SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((7,), 0), ((4, 9), -1), ((9, 4), 0), ((5, 5), -1), ((5, 5), 0), ((3, 4, 5), (0, 2)), ((4, 4, 4), 1), ((1, 6), -1),
    ((6, 1), -1), ((1, 1), (0, 1)), ((2, 1, 3, 1), (1, 2)), ((3, 70), 1), ((2, 17, 2), 1), ((4, 4, 4), (0, 1, 2)),
]  # fmt: skip


def softmax(x: Any, axis: Any) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def layer_norm(x: Any, axis: Any) -> Any:
    center = x - np.mean(x, axis=axis, keepdims=True)
    return center / np.sqrt(np.mean(center * center, axis=axis, keepdims=True) + 1e-5)


def log_sum_exp(x: Any, axis: Any) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis=axis)


def with_moments(x: Any, axis: Any) -> Any:
    """Rows used before and after, and handed out."""
    mean, spread = np.mean(x, axis=axis, keepdims=True), np.std(x, axis=axis, keepdims=True)
    y = (x - mean) / (spread + 0.1)
    return y, mean * 2, np.sum(y * x, axis=axis), spread, np.max(y + mean, axis=axis), x * 3


def twice_reduced(x: Any, axis: Any) -> Any:
    first = np.sum(np.sin(x) * x, axis=axis, keepdims=True)
    return np.max(x * first), np.sum(first * first), x * np.mean(first) + first


def chained(x: Any, axis: Any) -> Any:
    for _ in range(3):
        x = softmax(x * 3, axis) + layer_norm(x, axis) * 0.5
    return x


ROW_FUNCTIONS = [softmax, layer_norm, log_sum_exp, with_moments, twice_reduced, chained]


@pytest.mark.parametrize("f", ROW_FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows(f: Any, dtype: str) -> None:
    for shape, axis in SHAPES if dtype == "float64" else SHAPES[1:9:3]:
        check(lambda x, axis=axis: f(x, axis), numbers(*shape, dtype=dtype))


@pytest.mark.parametrize("f", ROW_FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_of_rows(f: Any) -> None:
    for shape, axis in SHAPES[1::4]:

        def loss(x: Any, axis: Any = axis) -> Any:
            return sum([np.sum(np.cos(one)) for one in func.tree.leaves(f(x, axis))])

        check(func.grad(loss), numbers(*shape), rtol=1e-10)


N = 6
A, B, V, W, Z = numbers(N, N), numbers(N, N), numbers(N), numbers(N), numbers(3, N, N)


def consumers(a: Any, v: Any) -> Any:
    """One value used in loops over several domains."""
    y = np.tanh(a) * 2
    return y.sum(0) * v, y[::-1] + y, y @ v, y.T * y, y[1:3], (y * y).sum(), y.reshape(-1)[::2]


def both_ways(a: Any, v: Any) -> Any:
    """Row values used along the rows and along the columns of a square."""
    rows, columns = a.sum(1), a.sum(0)
    return (
        a - rows,
        a - rows[:, None],
        a * columns,
        a * columns[:, None],
        rows * columns,
        np.outer(rows, columns),
        rows + v,
    )


def square(a: Any, v: Any) -> Any:
    t = a.T
    total = (a * t).sum(1)
    return total[:, None] * t + total, t.max(0) - a.max(1), (a - total).T, np.sum(t - total[:, None], axis=0)


def ones_everywhere(a: Any, v: Any) -> Any:
    x = v[None, :, None] * 2
    y = x.sum(1, keepdims=True)
    return x - y, x[:, :1] + x, (x * y)[0, :, 0], x - x[:, :1, :], x.reshape(1, 1, -1, 1) - x[..., None], x.T + y


def single(a: Any, v: Any) -> Any:
    """Rows of one element of what is in a register."""
    y = a * 2
    return y - y[:, :1], y - y[:1], y - y[-1:], y * y[:1, :1], y[:, 2:3] + y, y + y[2:3].T


def permuted(a: Any, v: Any) -> Any:
    y = np.sin(a)
    return (
        y.T[::-1].T[1:] * 2,
        (y[::2].T + 1)[::-1],
        y[::-1, ::-1] - y,
        (y.T @ y)[::-2],
        y[..., None].swapaxes(0, 2) * v,
    )


def reshaped(a: Any, v: Any) -> Any:
    y = (a + 1).reshape(2, 3, 6)
    z = (y * 2).reshape(6, 6)
    return (
        y.sum(1),
        z.T.reshape(4, 9) * 2,
        (z + a).reshape(-1)[::-1],
        y.transpose(2, 0, 1).reshape(12, 3).sum(0),
        (v * 2).reshape(3, 2).T,
    )


def put_together(a: Any, v: Any) -> Any:
    y = np.cos(a)
    whole = np.concatenate([y, y[:2] * 2, v[None]], axis=0)
    stacked = np.stack([y.sum(0), y.sum(1), v], axis=1)
    return (
        whole.sum(1),
        whole,
        stacked @ stacked.T,
        np.pad(y, 2) * 3,
        np.concatenate([v, v * 2])[::3],
        np.hstack([y, y.T]),
    )


def rewritten(a: Any, v: Any) -> Any:
    y = a * 2
    z = y.copy()
    z[1:4, ::2] = y[:3, 1::2]
    w = z.copy()
    w[0] += v
    w[:, -1] = w[:, 0] * w[:, 1]
    z[::-1] *= v
    return y, z, w, (y + z - w).sum(0)


def picked(a: Any, v: Any) -> Any:
    places = np.array([0, 3, -1, 3, -6])
    y = a * 3
    return (
        y[places],
        y[:, places].sum(0),
        y[places, places[::-1]],
        v[places[:, None]] * v,
        y[places[1:]] @ y.T[:, places],
    )


def scattered(a: Any, v: Any) -> Any:
    places = np.array([0, 3, -1, 3, -6])
    y = a + 1
    np.add.at(y, places, v)
    z = y.copy()
    z[:, places] = y[:, [1, 2, 3, 4, 5]]
    w = v * a[0]
    np.add.at(w, places, a[:5, 0] * 3)
    return y, z, w.sum() + y.sum(1)


def reductions_of_reductions(a: Any, v: Any) -> Any:
    x = a[:, None, :] * v[:, None]
    s = x.sum(2).max(1)
    return (
        s,
        s.mean(),
        x.max(1).sum(0) - s,
        (x - s).sum(1).min(1),
        x.sum((0, 2)) + x.sum((1, 2)),
        x.any(0).all(1),
        np.prod(x + 1, 1).sum(),
    )


def aliases(a: Any, v: Any) -> Any:
    """Outputs that are inputs, one another, views of one another, and constants."""
    y = a * 2
    return a, v, y, y, y.T, y[0], y[:, ::-1], np.ones(3), 2.5, y[None], a.T, v[1:], y.reshape(-1), np.arange(4)


def numbers_alone(a: Any, v: Any) -> Any:
    s = v.sum()
    return (
        s,
        s * 2,
        s + a,
        np.full((2, 3), 1.5) * s,
        np.max(v) > s,
        np.zeros((2, 2)),
        s.astype(np.float32),
        s.reshape(1, 1),
    )


def dtypes(a: Any, v: Any) -> Any:
    low = a.astype(np.float32)
    count = (a > 0).sum(1)
    return (
        low * 2,
        low.sum(0),
        low + v,
        count,
        count * low[0],
        a > low,
        np.where(a > 0, count, 0.5),
        (count % 3) // 2,
        low.mean(),
        ~(a > 0),
        -count,
    )


TOGETHER = [
    consumers, both_ways, square, ones_everywhere, single, permuted, reshaped, put_together, rewritten, picked,
    scattered, reductions_of_reductions, aliases, numbers_alone, dtypes,
]  # fmt: skip


@pytest.mark.parametrize("f", TOGETHER, ids=lambda f: f.__name__)
def test_loops_that_share_values(f: Any) -> None:
    check(f, A, V)


@pytest.mark.parametrize("f", TOGETHER, ids=lambda f: f.__name__)
def test_gradients_of_loops_that_share_values(f: Any) -> None:
    def loss(a: Any, v: Any) -> Any:
        outs = [out for out in f(a, v) if np.ndim(out) and out.dtype == np.float64]
        return sum([np.sum(np.sin(out) * np.cos(np.arange(out.size)).reshape(out.shape)) for out in outs])

    check(func.grad(loss, (0, 1)), A, V, rtol=1e-10, native=f is not scattered)
    check(lambda a, v: func.jvp(loss, (a, v), (a, v)), A, V, rtol=1e-10, native=f is not scattered)
    check(lambda a, v: func.vmap(func.grad(loss), in_dims=(0, None))(a, v), Z, V, rtol=1e-10, native=f is not scattered)


def extremes(x: Any, z: Any) -> Any:
    """Sums of zeros, and reductions that meet NaN and infinities."""
    return (
        z.sum(),
        z.sum(0),
        z.sum(1),
        z.mean(),
        x.max(),
        x.min(0),
        x.sum(1),
        np.prod(x, 0),
        np.maximum(x, z.sum()),
        x * z[0],
    )


@pytest.mark.parametrize("length", [2, 3, 8, 9, 40])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_special_numbers_in_reductions(length: int) -> None:
    x = np.resize([1.0, -0.0, np.inf, 2.0, np.nan, 3.0, -np.inf, 0.0, 5.0], (3, length))
    z = np.full((3, length), -0.0)
    for args in ((x, z), (np.abs(x), z), (x.astype(np.float32), z), (x[:2], z), (np.where(x == x, x, 1), z * 0)):
        for got, expected in zip(compiled(extremes)(*args), extremes(*args), strict=True):
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(np.signbit(got)[expected == 0], np.signbit(expected)[expected == 0])
