"""Kernels in CUDA C compute what native code computes: their text runs on the processor, behind a header."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda import plan
from tests.support.cuda_cases import SMALL, Case, random_cases, run_together, sample_cases
from tests.support.cuda_host import HostDevice, needs_compiler
from tests.support.device_double import DeviceArray
from tests.support.samples import SAMPLES

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]


def test_samples() -> None:
    """A part of the table; `python -m tools.cuda_check` runs all of it."""
    faults = run_together(HostDevice(DeviceArray), list(sample_cases(sorted(SAMPLES)[::12])))
    assert not faults, faults


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LIMITS", SMALL)
    faults = run_together(HostDevice(DeviceArray), list(random_cases(range(12))))
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
    "products": (lambda x, y: np.tanh(x @ y).sum(), RNG.normal(size=(64, 80)), RNG.normal(size=(80, 50))),
    "integer products": (lambda x: x @ x.T, RNG.integers(-9, 9, (40, 30))),
    "scattered": (
        _scattered,
        RNG.normal(size=4000),
        RNG.integers(0, 50, 4000),
    ),
}


def test_large_arrays() -> None:
    cases = [
        Case(name, func.jit(function), args, 1e-3 if args[0].dtype.itemsize < 8 else 1e-9)
        for name, (function, *args) in LARGE.items()
    ]
    faults = run_together(HostDevice(DeviceArray), cases)
    assert not faults, faults
