"""The programs of the other tests on a device, where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.calls import backward_plans
from tests.backends.cuda.test_programs import LARGE
from tests.interpreters.test_compiled_backward import FUNCTIONS
from tests.support.cuda_cases import LIMITS, bfloat16_cases, random_cases

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]


def there(args: Any) -> Any:
    """Arguments on the device."""
    import cupy

    return [cupy.asarray(arg) if isinstance(arg, (np.ndarray, np.generic)) else arg for arg in args]


def compare(got: Any, want: Any, limit: float = 0.0) -> None:
    """Results on the device and on the host are equal as far as their dtypes allow."""
    import cupy

    for own, expected in zip(func.tree.leaves(got), func.tree.leaves(want), strict=True):
        assert isinstance(own, cupy.ndarray)
        value = own.get()
        bound = limit or LIMITS.get(value.dtype.name, 1e-9)
        np.testing.assert_allclose(value, expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", LARGE)
def test_large_arrays(name: str) -> None:
    function, *args = LARGE[name]
    step = func.jit(function)
    want = step(*args)
    for _ in range(3):  # launches, the capture of a graph, its replay
        compare(step(*there(args)), want, 1e-3 if args[0].dtype.itemsize < 8 else 1e-9)


def test_random_programs() -> None:
    for case in random_cases(range(20)):
        compare(case.function(*there(case.args)), case.function(*case.args), case.limit)


def test_results_repeat() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2000))
    total = func.jit(lambda x: (np.sum(x), np.sum(x, axis=0), np.sum(x, axis=1), np.cumsum(x), np.cumsum(x, axis=1)))
    first = [out.get() for out in total(*there([x]))]
    for _ in range(5):
        for one, other in zip(first, total(*there([x])), strict=True):
            np.testing.assert_array_equal(one, other.get())


def test_loops_and_branches() -> None:
    x = np.linspace(-1, 1, 50)
    scan = func.jit(func.grad(lambda x: np.sum(func.scan(lambda c, r: (np.tanh(c + r), c), x[:3], x)[1])))
    compare(scan(*there([x])), scan(x))
    loop = func.jit(lambda x: func.while_loop(lambda v: np.sum(v) < 100, lambda v: v * 1.5 + 1, x))
    compare(loop(*there([x])), loop(x))


def test_bfloat16() -> None:
    import cupy

    for case in bfloat16_cases():
        args = func.tree.map(lambda x: cupy.asarray(np.asarray(x)), list(case.args))
        compare(case.function(*args), case.function(*case.args), case.limit)


def test_donated_arguments_are_overwritten() -> None:
    import cupy

    step = func.jit(lambda w, g: w - 0.1 * np.sin(g), donate_argnums=(0,))
    start, g = np.arange(5000.0), cupy.linspace(0, 1, 5000)
    w = kept = cupy.asarray(start)
    for _ in range(4):
        w = step(w, g)
    assert w.data.ptr == kept.data.ptr
    compare(w, start - 0.4 * np.sin(g.get()), 1e-12)
    view = cupy.asarray(np.stack([start, start]))
    compare(step(view[1], g), start - 0.1 * np.sin(g.get()), 1e-12)
    compare(view[1], start)


def test_enclosed_arrays_choose_the_device() -> None:
    import cupy

    weights = cupy.arange(3.0)
    compare(func.jit(lambda a: weights * a)(2.0), np.arange(3.0) * 2)


def test_a_graph_is_replayed() -> None:
    import cupy

    x = cupy.linspace(0, 1, 1000)
    step = func.jit(lambda x: np.sin(x) * 2)
    for number in range(40):
        x[0] = number
        compare(step(x), np.sin(x.get()) * 2, 1e-12)


def test_backward_passes_of_eager_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward_plans, "START", 0.0)
    monkeypatch.setattr(backward_plans, "BASE_COST", 1e-9)
    monkeypatch.setattr(backward_plans, "COST_OF_NODE", 0.0)
    func.clear_caches()
    x = np.random.default_rng(0).normal(size=(6, 8))
    for function in FUNCTIONS.values():
        gradient = func.grad(lambda x, function=function: np.sum(function(x) ** 2))
        with func.config.override(compile_backward=False):
            want = gradient(x)
        for _ in range(4):  # launches, the capture of a graph, its replay
            compare(gradient(*there([x])), want)
    slope = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))
    for _ in range(3):
        compare(slope(*there([np.array([0.0, 4.0, -1.0])])), np.array([0, 0.25, 0]))
    func.clear_caches()
