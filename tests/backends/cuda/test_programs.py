"""Kernels in CUDA C compute what native code computes: their text runs on the processor, behind a header."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda import plan
from func.backends.cuda.nest_kernels import Launch
from tests.support.cuda_cases import EXACT, SMALL, Case, random_cases, run_together, sample_cases
from tests.support.cuda_host import HostDevice, needs_compiler
from tests.support.cuda_orders import launches_of, plan_of, why_orders_differ
from tests.support.device_double import DeviceArray
from tests.support.samples import SAMPLES

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]


def test_samples() -> None:
    """A part of the table; `python -m tools.cuda_check` runs all of it."""
    faults = run_together(HostDevice(DeviceArray), list(sample_cases(sorted(SAMPLES)[::12])))
    assert not faults, faults


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LIMITS", SMALL)
    orders: Counter[str] = Counter()
    faults = run_together(HostDevice(DeviceArray), list(random_cases(range(12))), orders=orders)
    assert not faults, faults
    assert orders[EXACT] > 4


X = np.linspace(-2, 2, 15).reshape(5, 3)
ORDERS: dict[str, tuple[Any, Any, str]] = {
    "functions": (lambda x: np.exp(np.sin(x)) / (1 + func.special.expit(x)), X, EXACT),
    "powers and arcs": (lambda x: np.arctan2(x, np.abs(x) ** 1.5) + func.special.gammaln(x * x + 1), X, EXACT),
    "single precision": (lambda x: np.tanh(x) * np.log1p(x * x), X.astype(np.float32), EXACT),
    "gathers": (lambda x: x[np.array([3, -1, 3]), ::-1] * 0.1, X, EXACT),
    "running sums": (lambda x: np.cumsum(np.sin(x), axis=1), X, EXACT),
    "running sums of long rows": (lambda x: np.cumsum(x, axis=1), np.tile(X, 9), "a sum of several orders"),
    "updates": (lambda x: _scattered(x, np.array([0, 2, 0, 0, 1])), np.tile(X, (12, 1))[:5], EXACT),
    "sums of two": (lambda x: x[:2].sum(axis=0), X, EXACT),
    "sums of columns": (lambda x: np.sin(x).sum(axis=0), X, EXACT),
    "sums of columns of products": (lambda x: (np.tanh(x) * x[:, :1]).sum(axis=0) * 2, X, EXACT),
    "sums of integers": (lambda x: x.astype(np.int64).sum(axis=1), X, EXACT),
    "extrema": (lambda x: (x.max(axis=0), x.argmin(axis=1)), X, EXACT),
    "sums of three": (lambda x: np.sin(x).sum(axis=1), X, "a sum of several orders"),
    "products of numbers": (lambda x: np.prod(x), X, "a sum of several orders"),
    "sums of complex numbers": (lambda x: np.sum(x * 1j), X, "a sum of several orders"),
    "a product": (lambda x: x @ x.T, np.cos(np.arange(4096.0)).reshape(64, 64), "a library computes a product"),
    "complex functions": (lambda x: np.exp(x * 1j), X, "a complex function"),
    "a decomposition": (lambda x: np.linalg.svd(x)[1], X, "a library computes a part"),
}


def test_the_plan_says_where_orders_are_the_same() -> None:
    """Equality to the last bit is asked for where the plan has one order, and holds there."""
    cases = [Case(name, func.jit(function), (x,)) for name, (function, x, _) in ORDERS.items()]
    reasons = [why_orders_differ(case.function, case.args) or EXACT for case in cases]
    assert reasons == [reason for _, _, reason in ORDERS.values()]
    faults = run_together(HostDevice(DeviceArray), cases)
    assert not faults, faults


def _scattered(x: Any, places: Any) -> Any:
    total = np.zeros_like(x[:50])
    np.add.at(total, places, x)
    return total


RNG = np.random.default_rng(2)
LARGE: dict[str, tuple[Any, ...]] = {
    "elementwise": (lambda x: np.sin(x) * 2 + x, RNG.normal(size=10_001)),
    "single precision in packs": (lambda x: x * 2 + 1, RNG.normal(size=4099).astype(np.float32)),
    "packs of fewer than 16 bytes": (lambda x: x * x + 1, RNG.integers(-9, 9, 5003).astype(np.int8)),
    "packs of two dtypes": (
        lambda x, y: (x * y, np.concatenate([x[:16], y])),
        RNG.normal(size=5003),
        np.arange(5003, dtype="f"),
    ),
    "a constant operand": (lambda x, y: x * y, RNG.normal(size=(40, 50)), RNG.normal(size=())),
    "transposed": (lambda x: x.T + 1, RNG.normal(size=(70, 130))),
    "softmax of short rows": (lambda x: func.special.softmax(x, axis=-1), RNG.normal(size=(500, 10))),
    "softmax of rows": (lambda x: func.special.softmax(x, axis=-1), RNG.normal(size=(150, 300))),
    "softmax of long rows": (lambda x: func.special.softmax(x, axis=-1), RNG.normal(size=(130, 1500))),
    "softmax of few rows": (lambda x: func.special.softmax(x, axis=-1), RNG.normal(size=(2, 40_000))),
    "a sum": (lambda x: np.sum(x * x), RNG.normal(size=100_003)),
    "an extremum and its place": (lambda x: (np.max(x), np.argmax(x)), RNG.normal(size=70_001)),
    "complex sums": (lambda x: np.sum(x, axis=1), RNG.normal(size=(20, 3000)) * (1 + 1j)),
    "sums over the first axis": (lambda x: np.sum(x, axis=0), RNG.normal(size=(3000, 40))),
    "two sums of one array": (lambda x: (np.sum(x, axis=0), np.sum(x, axis=1)), RNG.normal(size=(300, 200))),
    "normalised": (lambda x: (x - np.mean(x)) / np.std(x), RNG.normal(size=50_000)),
    "half precision": (lambda x: np.sum(np.tanh(x), axis=1), RNG.normal(size=(64, 100)).astype(np.float16)),
    "running": (lambda x: np.cumsum(x, axis=1), RNG.normal(size=(300, 70))),
    "running along a long row": (lambda x: np.cumsum(x * 2) * x, RNG.normal(size=40_003)),
    "running along rows of blocks": (lambda x: np.cumsum(x[:, ::-1], axis=1), RNG.normal(size=(130, 1100))),
    "products": (lambda x, y: np.tanh(x @ y).sum(), RNG.normal(size=(64, 80)), RNG.normal(size=(80, 50))),
    "integer products": (lambda x: x @ x.T, RNG.integers(-9, 9, (40, 30))),
    "scattered": (
        _scattered,
        RNG.normal(size=4000),
        RNG.integers(0, 50, 4000),
    ),
}


def _long_chain(x: Any) -> Any:
    """Reductions one after the other, no two steps alike."""
    for step in range(40):
        function = (np.arctan, np.tanh, np.abs, np.negative)[step * step % 7 % 4]
        x = function(x - (step + 1) / 50 * (np.mean, np.max, np.sum)[step * step % 5 % 3](x * (step + 2)) / x.size)
    return x


def test_long_chains_are_cut() -> None:
    """No kernel has more than a few dozen steps, nor more shared memory than a block has."""
    x = RNG.normal(size=1500)
    step = func.jit(_long_chain)
    text = plan_of(step, x).source
    assert 2 <= text.count("__global__") <= 4
    faults = run_together(
        HostDevice(DeviceArray), [Case("a chain", step, (x,)), Case("rows", func.jit(_of_rows), (x,))]
    )
    assert not faults, faults


def _of_rows(x: Any) -> Any:
    """The chain in a block with other steps, whose functions share their memory."""
    return func.scan(lambda c, r: (_long_chain(c * r), r), x, np.cos(np.arange(3.0)))[0]


RUNNING: dict[str, tuple[Any, Any]] = {
    "a row": (np.cumsum, RNG.normal(size=301)),
    "rows": (lambda x: np.cumsum(np.sin(x), axis=1) * x, RNG.normal(size=(5, 70))),
    "columns": (lambda x: np.cumsum(x, axis=0), RNG.normal(size=(70, 3))),
    "a gradient": (func.grad(lambda x: np.sum(np.sin(np.cumsum(x)) * np.cumprod(1 + x / 9))), RNG.normal(size=90)),
    "extrema": (np.maximum.accumulate, RNG.normal(size=200)),
    "complex numbers": (np.cumsum, RNG.normal(size=90) * (1 + 2j)),
    "half precision": (np.cumsum, RNG.normal(size=60).astype(np.float16)),
    "small integers": (lambda x: np.cumsum(x, dtype=np.int8), RNG.integers(-5, 5, 700)),
    "truth values": (np.logical_or.accumulate, RNG.normal(size=99) > 2),
    "two and a sum": (lambda x: (np.cumsum(x), np.cumsum(x * x), np.sum(x)), RNG.normal(size=200)),
    "two in a row": (lambda x: np.cumsum(np.cumsum(x)), RNG.normal(size=80)),
    "before other stages": (lambda x: func.special.softmax(np.cumsum(x, axis=-1), axis=-1), RNG.normal(size=(2, 90))),
    "in a loop": (lambda x: func.scan(lambda c, r: (np.cumsum(c + r) / 9, c[0]), x[0], x)[0], RNG.normal(size=(5, 30))),
}


@pytest.mark.parametrize("limits", [plan.Limits(), SMALL], ids=["usual", "small"])
def test_running_reductions(monkeypatch: pytest.MonkeyPatch, limits: plan.Limits) -> None:
    """Rows of a warp, of a block and in chunks."""
    monkeypatch.setattr(plan, "LIMITS", limits)
    cases = [
        Case(name, func.jit(function), (x,), 2e-2 if x.dtype == np.float16 else 1e-9)
        for name, (function, x) in RUNNING.items()
    ]
    faults = run_together(HostDevice(DeviceArray), cases)
    assert not faults, faults


SHAPES = ((3, 1 << 30), (50_000, 50_000))
WIDE: dict[str, Any] = {
    "elements": lambda x: x * 2 + 1,
    "a transpose": lambda x: x.T + 1,
    "rows": lambda x: np.sum(x, axis=1),
    "columns": lambda x: np.sum(x, axis=0),
    "all": lambda x: np.max(x),
    "softmax": lambda x: func.special.softmax(x, axis=-1),
    "running": lambda x: np.cumsum(x, axis=1),
    "slices": lambda x: x[::-2, 1:],
    "steps of a loop": lambda x: func.scan(lambda c, r: (c + r[0], r[1]), x[0, 0], x)[0],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", WIDE)
def test_indices_of_wide_arrays_have_64_bits(name: str, shape: tuple[int, ...]) -> None:
    x = np.broadcast_to(np.zeros((), np.float32), shape)
    made = plan_of(func.jit(WIDE[name]), x)
    wide = 0
    for step in launches_of(made.steps):
        if isinstance(step, Launch) and max([buffer.storage.size for buffer in step.buffers]) >= 1 << 30:
            text = made.library.texts.get(step.kernel) or made.library.definitions.texts[step.kernel]
            counted = re.findall(r"for \((\w+) (?:row|pack|part|next|[ij]\d+) = ", text)
            assert set(counted) <= {"func_long", "ptrdiff_t"}, text
            wide += len(counted)
    assert wide


def test_large_arrays() -> None:
    cases = [
        Case(name, func.jit(function), args, 1e-3 if args[0].dtype.itemsize < 8 else 1e-9)
        for name, (function, *args) in LARGE.items()
    ]
    faults = run_together(HostDevice(DeviceArray), cases)
    assert not faults, faults
