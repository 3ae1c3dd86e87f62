"""Numbers of bfloat16 and programs that compute with them, for every backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import func
from func.interpreters.core import PRIMITIVES
from tests.support.samples import SAMPLES

BFLOAT16: Any = np.dtype(ml_dtypes.bfloat16)
SINGLE = np.dtype(np.float32)
EVERY = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16)
"""Every number of bfloat16, in the order of the bits."""
SOME = np.concatenate([EVERY[::331], np.array([0, -0.0, 1, -1, 2, 3, -3, 0.5, np.inf, -np.inf, np.nan], BFLOAT16)])
"""Numbers of all sizes, for operations on pairs."""
DTYPES = [np.dtype(letter) for letter in "?bBhHiIlLefdFD"]
RNG = np.random.default_rng(0)
LAST_PLACE = 2.0**-7
"""The distance from 1 to the next number of bfloat16."""


def assert_same(got: Any, want: Any, places: int = 0) -> None:
    """Equal bit for bit, except for the payload of a NaN; `places` allows results this number of numbers apart."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.dtype.kind == "c":
        assert_same(got.real, want.real)
        assert_same(got.imag, want.imag)
        return
    if got.dtype.kind not in "fV":
        np.testing.assert_array_equal(got, want)
        return
    bits = np.dtype(f"i{got.dtype.itemsize}")
    p, q = [np.array(x, order="C").view(bits).astype(np.int64) for x in (got, want)]
    low = np.iinfo(bits).min
    p, q = np.where(p < 0, low - p, p), np.where(q < 0, low - q, q)
    both_nan = (got != got) & (want != want)
    if not places:
        both_nan |= np.array(got, order="C").view(bits) == np.array(want, order="C").view(bits)
    far = ~both_nan & ((np.abs(p - q) > places) | (places == 0))
    assert not far.any(), (got[far][:5], want[far][:5])


def numbers_of(dtype: Any) -> Any:
    """Numbers of a dtype, of all sizes, near the ties of bfloat16 too."""
    rng = np.random.default_rng(1)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        far = rng.integers(bounds.min, bounds.max, 4000, dtype, endpoint=True)
        near = far >> dtype.type(4 * dtype.itemsize)
        return np.concatenate([far, near, np.array([0, 1, bounds.min, bounds.max], dtype)])
    doubles = EVERY.astype(np.float64)
    parts = [doubles, doubles * (1 + 2.0**-8), doubles * (1 - 2.0**-9), doubles * (1 + 2.0**-8 + 2.0**-30)]
    with np.errstate(all="ignore"):
        values = np.concatenate(parts).astype(dtype.type(0).real.dtype)
        more = rng.integers(0, 1 << 32, 20000, np.uint32).view(np.float32).astype(values.dtype)
    values = np.concatenate([values, more])
    return values if dtype.kind == "f" else (values * (1 + 0j)).astype(dtype)


def representable(dtype: Any) -> Any:
    """The numbers of bfloat16 that a dtype of integers holds, all numbers for other dtypes. C leaves open what becomes
    of others."""
    if dtype.kind not in "iu":
        return EVERY
    values = EVERY.astype(np.float64)
    bounds = np.iinfo(dtype)
    return EVERY[(values > bounds.min - 1.0) & (values < bounds.max + 1.0 - (bounds.bits == 64))]


def operations(arity: int) -> list[str]:
    """The primitives of one or two numbers of bfloat16 whose result is bfloat16, a truth value or an integer."""
    found = []
    args = (SOME[:3],) * arity
    for name, samples in SAMPLES.items():
        if name not in PRIMITIVES or PRIMITIVES[name].numpy is None:  # a module of calls that nothing has imported
            continue
        if samples[0].params or len(samples[0].args) != arity:
            continue
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                out = np.asarray(PRIMITIVES[name](*args)).dtype
            except (TypeError, ValueError):
                continue
        if out == BFLOAT16 or out.kind in "biu":
            found.append(name)
    return found


UNARY, BINARY = operations(1), operations(2)
OF_NAN = {"power", "hypot"}
"""Functions for which ml_dtypes makes NaN of NaN, where C and NumPy say pow(NaN, 0) = 1 and hypot(inf, NaN) = inf."""


class Computed(NamedTuple):
    """A function of arrays, arguments, and how far results may be from eager ones: `places` numbers of bfloat16."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    places: int = 0


def narrow(*shape: int) -> Any:
    """Random numbers of bfloat16."""
    return RNG.normal(size=shape).astype(BFLOAT16)


def single(*shape: int) -> Any:
    """Random numbers of single precision."""
    return RNG.normal(size=shape).astype(SINGLE)


def dense(params: Any, x: Any) -> Any:
    """Layers in bfloat16 whose parameters are of single precision."""
    h = x.astype(BFLOAT16)
    for w, b in params:
        h = np.maximum((h @ w.astype(BFLOAT16)).astype(BFLOAT16) + b.astype(BFLOAT16), 0)
    return h


def loss(params: Any, x: Any, y: Any) -> Any:
    """The mean square of errors, in single precision."""
    return np.mean((dense(params, x).astype(SINGLE) - y) ** 2)


def steps(x: Any, rate: Any) -> Any:
    """A loop whose state is bfloat16."""

    def step(state: Any, row: Any) -> tuple[Any, Any]:
        total, count = state
        total = total * rate + row
        return (total, count + 1), np.maximum(total, row)

    return func.scan(step, (x[0] * rate, np.asarray(0)), x)


def halved(x: Any) -> Any:
    """A loop whose condition reads bfloat16."""
    return func.while_loop(lambda state: np.max(state) > 0.125, lambda state: state * state / (state + state), x)


def branches(x: Any) -> Any:
    """A branch on a number of bfloat16."""
    return func.cond(np.sum(x) > 0, lambda x: x * x, lambda x: -x, x)


def smooth(x: Any) -> Any:
    """A number of a number, by operations that every backend rounds alike."""
    return (x * x + 1) / (np.absolute(x) + 2) - np.sqrt(np.absolute(x)) * np.maximum(x, 0)


PARAMS = [(single(6, 8), single(8)), (single(8, 3), single(3))]
TRAP = np.array([0, 1, 4, -1, 0], BFLOAT16)
PROGRAMS: dict[str, Computed] = {
    "casts": Computed(lambda x: (x.astype(SINGLE) * 1.7).astype(BFLOAT16) + x, (narrow(37),)),
    "views": Computed(lambda x: x[::-2] + x.T[:3], (narrow(6, 6),)),
    "choices": Computed(lambda x, y: np.where(x > y, x, y.astype(SINGLE)).astype(BFLOAT16), (narrow(33), narrow(33))),
    "weak numbers": Computed(lambda x: (x * 2 + 1, x * 0.3), (narrow(9),)),
    "sum": Computed(lambda x: (np.sum(x), np.sum(x, axis=0), np.sum(x, axis=1)), (narrow(70, 90),), 1),
    "sum under a mask": Computed(lambda x: np.sum(x, where=x > 0, initial=3), (narrow(300),), 1),
    "prod": Computed(lambda x: np.prod(x, axis=1), (narrow(5, 9),), 8),
    "mean and variance": Computed(lambda x: (np.mean(x, axis=0), np.var(x, axis=0)), (narrow(64, 5),), 2),
    "extrema": Computed(lambda x: (np.max(x), np.min(x, axis=1), np.argmax(x, axis=0)), (narrow(9, 31),)),
    "running sums": Computed(lambda x: np.cumsum(x, axis=1), (narrow(3, 40),)),
    "powers": Computed(lambda x: (x**2, x**3, x**-1), (np.absolute(narrow(50)),)),
    "product": Computed(lambda x, y: x @ y, (narrow(7, 12), narrow(12, 5)), 1),
    "product as bfloat16": Computed(lambda x, y: np.dot(x, y).astype(BFLOAT16), (narrow(40, 33), narrow(33, 17)), 1),
    "einsum": Computed(lambda x, y: np.einsum("bij,bj->bi", x, y), (narrow(4, 6, 8), narrow(4, 8)), 1),
    "updates": Computed(lambda x: np.asarray(x).at[np.array([1, 1, 3])].add(x[:3]), (narrow(6),)),
    "scan": Computed(steps, (narrow(12, 5), BFLOAT16.type(0.75))),
    "while_loop": Computed(halved, (np.absolute(narrow(6)) + 1,)),
    "cond": Computed(branches, (narrow(8),)),
    "gradient of a scan": Computed(
        func.grad(lambda x: np.sum(steps(x, BFLOAT16.type(0.5))[1].astype(SINGLE))), (narrow(6, 3),), 1
    ),
    "vmap of grad": Computed(func.vmap(func.grad(smooth)), (narrow(60),), 1),
    "mixed precision": Computed(loss, (PARAMS, single(16, 6), single(16, 3)), 1),
    "gradient in mixed precision": Computed(func.grad(loss), (PARAMS, single(16, 6), single(16, 3)), 1),
    "gradients of samples": Computed(
        func.vmap(func.grad(loss), in_dims=(None, 0, 0)), (PARAMS, single(5, 2, 6), single(5, 2, 3)), 1
    ),
    "structural zeros": Computed(
        func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), x * 0).astype(SINGLE))), (TRAP,)
    ),
    "empty": Computed(lambda x: (np.sum(x, axis=0), x + 1), (narrow(0, 3),)),
}
"""Programs whose result may differ in the last places of bfloat16 where sums have another order."""


def assert_program(computed: Computed, outs: Any) -> None:
    """Results of compiled code against eager ones."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = traced(computed)
    got_leaves, want_leaves = func.tree.leaves(outs), func.tree.leaves(want)
    assert len(got_leaves) == len(want_leaves)
    for got, expected in zip(got_leaves, want_leaves, strict=True):
        got, expected = np.asarray(got), np.asarray(expected)
        if not computed.places or expected.dtype == BFLOAT16 or expected.dtype.kind in "biu":
            assert_same(got, expected, computed.places)
        else:
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            limit = computed.places * LAST_PLACE * max(1.0, float(np.max(np.absolute(expected), initial=0)))
            np.testing.assert_allclose(got, expected, rtol=LAST_PLACE, atol=limit)


def traced(computed: Computed) -> Any:
    """The eager results of func's functions: NumPy has no products of bfloat16, and rounds each addition of a sum."""
    return func.vjp(computed.function, *computed.args)[0]
