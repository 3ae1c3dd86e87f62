"""Compiled backward passes: the gradients of NumPy's operations, for whatever graph there is."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import func
from func.backends.llvm import machine
from func.interpreters.calls import backward_plans
from func.interpreters.calls.backward_plans import PLANS, PassPlan
from func.interpreters.compiled_backward import passes_by_nodes
from func.interpreters.grad_fast import fast_rule, unchecked_rule
from func.interpreters.imperative.backward import BackwardPass
from func.interpreters.primitives.elementwise import table as ops

RNG = np.random.default_rng(20261124)
Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(not machine.available(), reason="no LLVM")


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every pass is long enough, and compiled when it comes for the second time."""
    monkeypatch.setattr(backward_plans, "LEAST", 0.0)
    monkeypatch.setattr(backward_plans, "LARGEST_SHARE", float("inf"))
    monkeypatch.setattr(backward_plans, "COST_OF_NODE", 0.0)
    monkeypatch.setattr(backward_plans, "BASE_COST", 1.0)
    monkeypatch.setattr(backward_plans, "START", 0.0)
    monkeypatch.setattr(backward_plans, "_estimate", estimate_of(0.6))
    func.clear_caches()
    yield
    func.clear_caches()


ESTIMATE = backward_plans._estimate


def estimate_of(seconds: float) -> Any:
    """An estimate that is always the same, where there is one."""

    def estimate(*args: Any) -> float:
        ESTIMATE(*args)
        return seconds

    return estimate


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each pass that was looked up, or recognised by a matcher, whether code ran it."""
    seen: list[bool] = []
    walk, matcher_of = PassPlan.walk, backward_plans.matcher_of

    def watched_reader_of(*args: Any) -> Any:
        read = matcher_of(*args)

        def watched_read(*graph: Any) -> Any:
            assert read is not None
            cotangents = read(*graph)
            if cotangents is not None:
                seen.append(True)
            return cotangents

        return None if read is None else watched_read

    monkeypatch.setattr(backward_plans, "matcher_of", watched_reader_of)

    def watched(plan: PassPlan, *args: Any) -> Any:
        result = walk(plan, *args)
        seen.append(plan._run is not None)
        return result

    monkeypatch.setattr(PassPlan, "walk", watched)
    return seen


def softmax(x: Array) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Array) -> Any:
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * x[0] + x[1]


def written(x: Array) -> Any:
    out = np.zeros_like(x)
    out[1:] = x[:-1] * x[1:]
    out[0] += x[2]
    return out


FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "softmax": softmax,
    "softmax of columns": lambda x: softmax(x.T),
    "layer norm": layer_norm,
    "logsumexp": lambda x: np.log(np.sum(np.exp(x), axis=0)) * x[0],
    "gelu": lambda x: 0.5 * x * (1.0 + np.tanh(0.8 * (x + 0.044715 * x * x * x))),
    "variance": lambda x: np.var(x, axis=1) * np.std(x, axis=(0, 1)),
    "products": lambda x: np.tanh(x @ x.T) @ x,
    "gather": lambda x: x[[0, 2, 2]] * x[np.array([True, False, True, True, False, False])][:1],
    "cumulative": lambda x: np.cumsum(x, axis=1) * np.flip(x, 0),
    "joined": lambda x: np.concatenate([x, x * x], axis=1) * np.pad(x, ((0, 0), (4, 4)))[:, :16],
    "selected": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x**3),
    "sorted": lambda x: np.sort(x, axis=1) * x,
    "clipped": lambda x: np.clip(x, -0.5, 0.5) * np.minimum(x, x[:1]),
    "norm": lambda x: np.linalg.norm(x, axis=1) / np.linalg.norm(x),
    "cholesky": lambda x: np.linalg.cholesky(x @ x.T + 2 * np.eye(6)),
    "upper cholesky": lambda x: np.linalg.cholesky(x @ x.T + 2 * np.eye(6), upper=True),
    "triangular": lambda x: scipy.linalg.solve_triangular(np.tril(x[:, :6]) + 9 * np.eye(6), x, lower=True),
    "solved": lambda x: np.linalg.solve(x[:, :6] + 9 * np.eye(6), x),
    "inverse": lambda x: np.linalg.inv(x[:, :6] + 9 * np.eye(6)),
    "softmax of SciPy": lambda x: scipy.special.softmax(x, axis=0) * scipy.special.log_softmax(x, axis=1),
    "softmax of all": lambda x: scipy.special.softmax(x) + scipy.special.log_softmax(x),
    "spectrum": lambda x: np.abs(np.fft.rfft(x, axis=1)) ** 2,
    "written": written,
    "one number": lambda x: x[0, 0] * np.float64(2.0) / x.size,
    "itself": lambda x: x,
}


NOT_NATIVE = ("spectrum",)
"""A pass without a native form: func detects it once, and walks it from then on."""


def data(dtype: Any = np.float64) -> Array:
    return RNG.normal(size=(6, 8)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_operations(name: str, dtype: Any, runs: list[bool]) -> None:
    weights = RNG.normal(size=np.shape(FUNCTIONS[name](data()))).astype(dtype)
    gradient = func.grad(lambda x: np.sum(FUNCTIONS[name](x) * weights))
    for _ in range(3):
        x = data(dtype)
        with func.config.override(compile_backward=False):
            expected = gradient(x)
        actual = gradient(x)
        assert (actual.dtype, type(actual)) == (expected.dtype, type(expected))
        np.testing.assert_allclose(actual, expected, rtol=1e-12 if dtype is np.float64 else 2e-4, atol=1e-6)
    assert runs == ([False, False] if name in NOT_NATIVE else [False, True, True])


def test_complex_values(runs: list[bool]) -> None:
    gradient = func.grad(lambda z: np.sum(np.abs(np.exp(z) * z) ** 2))
    z = data() + 1j * data()
    np.testing.assert_allclose(gradient(z), gradient(z), rtol=1e-12)
    assert runs == [False, True]


def test_several_arguments_and_those_that_take_no_part() -> None:
    gradient = func.grad(lambda p: np.sum(np.tanh(p["x"] @ p["w"] + p["b"])), allow_int=True)
    tree = {"x": data(), "w": data().T.copy(), "b": np.float64(0.5), "unused": data(), "count": 3}
    first, second = gradient(tree), gradient(tree)
    assert first.keys() == second.keys()
    for name in ("x", "w", "b", "unused"):
        assert type(first[name]) is type(second[name])
        np.testing.assert_allclose(first[name], second[name], rtol=1e-12)


ALIKE: dict[str, Sequence[Callable[[Array, Array], Any]]] = {
    "rules": [lambda x, y: np.sum(np.sin(x) * y), lambda x, y: np.sum(np.cos(x) * y)],
    "numbers": [lambda x, y, c=c: np.sum(x * c + y) for c in (2.0, 3.0, 0.0, -0.0, 2, np.float64(2.0), 1e200)],
    "axes": [lambda x, y, a=a: np.sum(np.sum(x * y, axis=a) ** 2) for a in (0, 1, (0, 1))],
    "axes kept": [lambda x, y, a=a: np.sum(np.sum(x * y, axis=a, keepdims=True) * x) for a in (0, 1)],
    "divisors": [lambda x, y, n=n: np.sum(np.var(x * y, axis=1, ddof=n)) for n in (0, 1, 1.0, True, 0.5)],
    "slices": [lambda x, y, n=n: np.sum(x[n : n + 4] * y[:4]) for n in (0, 1, 2)],
    "steps": [lambda x, y, n=n: np.sum(x[::n] ** 2) + y[0, 0] for n in (1, 2, 3)],
    "orders": [lambda x, y: np.sum(x.T * 2.0) + y[0, 0], lambda x, y: np.sum(x * 2.0) + y[0, 0]],
    "operands": [lambda x, y: np.sum(np.sin(x) / y), lambda x, y: np.sum(np.sin(y) / x)],
    "one operand twice": [
        lambda x, y: np.sum(np.sin(x) * np.sin(y)),
        lambda x, y: (np.sin(y), np.sum(np.sin(x) * np.sin(x)))[1],
        lambda x, y: (lambda z: np.sum(z * z))(np.sin(x)) + 0 * y[0, 0],
    ],
    "one argument twice": [
        lambda x, y: np.sum(x * y) * 1.0,
        lambda x, y: np.sum(x * x) * 1.0,
        lambda x, y: np.sum(y * y) * 1.0,
    ],
    "constants": [lambda x, y, c=c: np.sum(np.where(c, x, y) * x) for c in (np.arange(8) > 2, np.ones((6, 8)) > 2)],
    "shapes inside": [lambda x, y, s=s: np.sum(np.reshape(x * y, s)[0]) for s in ((6, 8), (8, 6), (12, 4))],
    "kinds of numbers": [lambda x, y, c=c: np.sum(x * c) + np.sum(y) for c in (1, 1.0, True, np.float32(1), 1j - 1j)],
    "exponents": [lambda x, y, c=c: np.sum(np.abs(x) ** c * y) for c in (2, 3, 2.5, -1.0, 2.0)],
    "single precision": [
        lambda x, y: np.sum(np.sin(x.astype(np.float32)) * y),
        lambda x, y: np.sum(np.sin(x.astype(np.float64)) * y),
    ],
}
"""Functions whose passes look the same from outside, or nearly."""


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("is_compiled_first", [0, -1])
def test_readers_tell_graphs_apart(name: str, is_compiled_first: int) -> None:
    functions = [func.grad(real_part(f), argnums=(0, 1)) for f in ALIKE[name]]
    x, y = data(), data() + 3.0
    with func.config.override(compile_backward=False):
        expected = [gradients(x, y) for gradients in functions]
    for _ in range(3):
        functions[is_compiled_first](x, y)
    for _ in range(3):
        for gradients, truth in zip(functions, expected, strict=True):
            for each, its_truth in zip(gradients(x, y), truth, strict=True):
                assert each.dtype == its_truth.dtype
                np.testing.assert_allclose(each, its_truth, rtol=1e-6, atol=1e-6)


def real_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of two arguments, with the real part of its output."""
    return lambda x, y: np.real(function(x, y))


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NOT_NATIVE])
def test_readers_recognise_graphs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = func.grad(lambda x: np.sum(FUNCTIONS[name](x)))
    x = data()
    first, _ = [gradient(x) for _ in range(2)]
    monkeypatch.setattr(backward_plans.Structure, "__init__", None)
    np.testing.assert_allclose(gradient(x), first, rtol=1e-12, atol=1e-14)


def test_readers_refuse_traced_values_and_other_arrays() -> None:
    constant: list[Any] = [np.ones(8)]

    def loss(x: Array) -> Any:
        return np.sum(np.sin(x) * constant[0] * x)

    gradient = func.grad(loss)
    x = data()[0]
    first, *_ = [gradient(x) for _ in range(3)]
    np.testing.assert_allclose(func.jvp(gradient, (x,), (x,))[1], (2 * np.cos(x) - x * np.sin(x)) * x, rtol=1e-12)
    rows = func.vmap(gradient)(np.stack([x, x]))
    np.testing.assert_allclose(rows, [first, first], rtol=1e-12)
    for other in (np.ones(16)[::2], np.ones(1), np.ones(8, np.float32), np.float64(1.0), np.ones((3, 8)) / 3, 1.0):
        constant[0] = other
        np.testing.assert_allclose(gradient(x), first, rtol=1e-12)


def test_few_of_many_short_passes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward_plans, "_estimate", estimate_of(1e-5))
    looked_at = []
    monkeypatch.setattr(backward_plans, "Structure", lambda *graph: looked_at.append(graph) or STRUCTURE(*graph))
    gradient = func.grad(lambda x, c: np.sum(x * c))
    for _ in range(70):
        gradient(data(), 2.0)
    assert len(looked_at) == 10
    for step in range(5000):
        gradient(data(), float(step))
    assert len(looked_at) < 10 + 2 * backward_plans.MOST_MISSES


STRUCTURE = backward_plans.Structure


def test_structural_zeros_stay(runs: list[bool]) -> None:
    gradient = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))
    for x in (np.arange(1.0, 9.0), np.arange(8.0), np.arange(8.0)):
        with np.errstate(divide="ignore"):
            expected = np.where(x > 0, 0.5 / np.sqrt(x), 0.0)
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-14)
    assert runs == [False, True, True]


def test_computed_nan_stays() -> None:
    gradient = func.grad(lambda x: np.sum(np.log(1 / x)))
    for x in (np.ones(4), np.ones(4), np.array([1.0, np.inf, 2.0, 3.0])):
        with np.errstate(divide="ignore"):
            actual = gradient(x)
        with np.errstate(divide="ignore"), func.config.override(compile_backward=False):
            np.testing.assert_array_equal(np.isnan(actual), np.isnan(gradient(x)))


def test_numbers_and_identities_are_part_of_the_key() -> None:
    """Another Python number, or other operands that are one array, make another program."""
    x, y = data(), data()
    for _ in range(3):
        for factor in (2.0, 3.0, -0.0, 0.0, 2):
            gradient = func.grad(lambda x, factor=factor: np.sum(x * factor))(x)
            np.testing.assert_array_equal(gradient, np.full_like(x, factor))
            assert np.signbit(gradient).all() == np.signbit(float(factor))
        product = func.grad(lambda a, b: np.sum(a * b * b), argnums=(0, 1))
        for other in (y, x):
            np.testing.assert_allclose(product(x, other), (other * other, 2 * x * other), rtol=1e-13)


def test_results_belong_to_the_caller() -> None:
    """Also those for which code uses the memory of earlier results."""
    x, weights = RNG.normal(size=(2, 300, 300))
    gradient = func.grad(lambda a, b: np.sum((a + b) * weights), argnums=(0, 1))
    results = [array for _ in range(4) for array in gradient(x, x)]
    for i, result in enumerate(results):
        assert result.flags.writeable
        assert not any(np.shares_memory(result, other) for other in (*results[:i], x, weights))
        result[...] = np.nan
    np.testing.assert_allclose(gradient(x, x), [weights] * 2, rtol=1e-14)


def test_writes_to_what_was_saved_change_nothing() -> None:
    buffer = data()

    def loss(x: Array) -> Any:
        total = 0.0
        for step in range(3):
            buffer[...] = step
            total = total + np.sum(x * x * buffer)
        return total

    x = data()
    for _ in range(3):
        np.testing.assert_allclose(func.grad(loss)(x), 6 * x, rtol=1e-14)


def test_other_transforms_around_and_inside() -> None:
    def loss(x: Array) -> Any:
        return np.sum(softmax(x) * x)

    x, v = data(), data()
    with func.config.override(compile_backward=False):
        product = func.jvp(func.grad(loss), (x,), (v,))[1]
    second = func.grad(lambda x: np.sum(func.grad(loss)(x) * v))
    for _ in range(3):
        np.testing.assert_allclose(second(x), product, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(func.jvp(func.grad(loss), (x,), (v,))[1], product, rtol=1e-10, atol=1e-12)
        rows = func.vmap(func.grad(lambda row: np.sum(softmax(row) * row)))(x)
        np.testing.assert_allclose(rows, func.grad(loss)(x), rtol=1e-10, atol=1e-12)
        _, pullback = func.vjp(softmax, x)
        np.testing.assert_allclose(pullback(v)[0], pullback(v)[0], rtol=1e-13)


def test_rules_of_users_are_called_each_time(runs: list[bool]) -> None:
    calls = []

    @func.custom_vjp
    def doubled(x: Any) -> Any:
        return 2 * x

    def backward(residuals: Any, ct: Any) -> Any:
        calls.append(None)
        return (2 * ct,)

    doubled.defvjp(lambda x: (2 * x, None), backward)
    gradient = func.grad(lambda x: np.sum(doubled(x) * x))
    x = data()
    for _ in range(3):
        np.testing.assert_allclose(gradient(x), 4 * x, rtol=1e-14)
    assert len(calls) == 3
    assert runs == []


@pytest.mark.parametrize("around", [func.jit, func.vmap, func.jacfwd])
def test_traced_passes_say_nothing_of_later_ones(around: Callable[[Any], Any], runs: list[bool]) -> None:
    gradient = func.grad(lambda x: np.sum(softmax(x) * x[:1]))
    around(gradient)(data())
    runs.clear()
    for _ in range(3):
        gradient(data())
    assert runs == [False, True, True]


LAYOUTS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "one array twice": lambda x: (x, x),
    "steps": lambda x: (x[::2, ::-1], x[1::2]),
    "columns": lambda x: (x.T, x.T.copy()),
    "repeated rows": lambda x: (np.broadcast_to(x[:1], x.shape), x),
    "no elements": lambda x: (x[:, :0] * 1.0, x[:, :0]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_lie_as_they_like(layout: str, runs: list[bool]) -> None:
    arguments = LAYOUTS[layout](data())
    gradients = func.grad(lambda x, y: np.sum(np.sin(x * y) + x[::-1] * y), argnums=(0, 1))
    with func.config.override(compile_backward=False):
        expected = gradients(*arguments)
    for _ in range(3):
        found = gradients(*arguments)
    assert runs == [False, True, True]
    for each, truth in zip(found, expected, strict=True):
        assert each.shape == truth.shape
        np.testing.assert_allclose(each, truth, rtol=1e-12, atol=1e-13)


def test_a_call_that_failed_leaves_nothing_behind(runs: list[bool]) -> None:
    fails = [False]

    def loss(x: Array) -> Any:
        y = np.sum(softmax(x) ** 2)
        if fails[0]:
            raise KeyError("of the user")
        return y

    x, gradient = data(), func.grad(loss)
    expected = gradient(x)
    for fails[0] in (True, False, True, False):
        with pytest.raises(KeyError) if fails[0] else contextlib.nullcontext():
            np.testing.assert_allclose(gradient(x), expected, rtol=1e-12, atol=1e-15)
    assert runs == [False, True, True]


def test_long_graphs_are_walked(monkeypatch: pytest.MonkeyPatch, runs: list[bool]) -> None:
    monkeypatch.setattr(backward_plans, "LONGEST", 10)

    def loss(x: Array) -> Any:
        y = x
        for _ in range(20):
            y = np.sin(y)
        return np.sum(y)

    func.grad(loss)(data())
    assert runs == []


def test_partials_that_are_computed_weigh_more_than_saved_values() -> None:
    assert fast_rule(ops.sin).pull_cost > fast_rule(ops.divide).pull_cost > fast_rule(ops.exp).pull_cost == 1
    assert unchecked_rule(ops.sin).pull_cost == fast_rule(ops.sin).pull_cost


def test_few_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward_plans, "MOST_PLANS", 3)
    monkeypatch.setattr(backward_plans, "BASE_COST", 1e9)
    for size in range(1, 8):
        func.grad(lambda x: np.sum(x * x))(np.ones(size))
    assert len(PLANS._plans) == 3
    func.clear_caches()
    assert not PLANS._plans


@pytest.mark.parametrize("settings", [{"compile_backward": False}, {"compiler": "numpy"}])
def test_switches(settings: Any, runs: list[bool]) -> None:
    with func.config.override(**settings):
        for _ in range(2):
            func.grad(lambda x: np.sum(x * x))(data())
    assert runs == []


def test_threads() -> None:
    gradient = func.grad(lambda x: np.sum(softmax(x) * x))
    xs = [data() for _ in range(4)]
    with func.config.override(compile_backward=False):
        expected = [gradient(x) for x in xs]
    failures: list[BaseException] = []

    def work(x: Array, wanted: Array) -> None:
        try:
            for _ in range(30):
                np.testing.assert_allclose(gradient(x), wanted, rtol=1e-12)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(xs, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("executor", [None, 1, 2, 3, 4])
def test_chunks_of_workers_run_by_nodes(executor: int | None, runs: list[bool]) -> None:
    """So that results do not depend on which worker computed how many chunks before."""
    xs, w = RNG.normal(size=(12, 64)), RNG.normal(size=64)

    def slope(x: Array) -> Any:
        return func.grad(lambda w: np.sum(softmax(w * x) * x))(w)

    with contextlib.ExitStack() as stack:
        pool = Here() if executor is None else stack.enter_context(cf.ThreadPoolExecutor(executor))
        found = [func.map(slope, xs, executor=pool, chunk_size=1) for _ in range(3)]
        sums = func.sum_over(lambda w, x: np.sum(softmax(w * x) * x), xs, executor=pool, chunk_size=3)
        gradient: Any = func.grad(sums)
        gradients = [gradient(w) for _ in range(3)]
    with func.config.override(compile_backward=False):
        expected = np.stack([slope(x) for x in xs])
    assert all(rows.tobytes() == expected.tobytes() for rows in found)
    assert len({gradient.tobytes() for gradient in gradients}) == 1


class Here:
    """An executor that computes at once."""

    def submit(self, function: Callable[..., Any], *args: Any) -> cf.Future[Any]:
        future: cf.Future[Any] = cf.Future()
        future.set_result(function(*args))
        return future


def test_by_nodes_holds_for_this_thread_and_ends(runs: list[bool]) -> None:
    gradient = func.grad(lambda x: np.sum(softmax(x) * x))
    with passes_by_nodes():
        for _ in range(3):
            gradient(data())
        assert runs == []
    for _ in range(2):
        gradient(data())
    assert runs == [False, True]


def test_what_is_compiled_when_depends_on_calls_alone(monkeypatch: pytest.MonkeyPatch, runs: list[bool]) -> None:
    """The same calls give the same bits, however long they take."""
    monkeypatch.setattr(backward_plans, "_estimate", ESTIMATE)
    monkeypatch.setattr(backward_plans, "BASE_COST", 5e-4)
    xs = RNG.normal(size=(6, 100, 400))
    results = []
    for pause in (0.0, 0.01):
        runs.clear()
        func.clear_caches()
        gradient = func.grad(lambda x: np.sum(softmax(x) * x))
        results.append([])
        for x in xs:
            results[-1].append(gradient(x).tobytes())
            time.sleep(pause)
        assert runs[0] is False and runs[-1] is True
        results[-1].append(list(runs))
    assert results[0] == results[1]


def test_short_passes_and_products_are_walked(monkeypatch: pytest.MonkeyPatch, runs: list[bool]) -> None:
    monkeypatch.setattr(backward_plans, "LEAST", 1e-3)
    func.grad(lambda x: np.sum(x * x))(data())
    assert runs == []
    monkeypatch.setattr(backward_plans, "LEAST", 0.0)
    monkeypatch.setattr(backward_plans, "LARGEST_SHARE", 0.5)
    func.grad(lambda x: np.sum(x @ x))(RNG.normal(size=(200, 200)))
    assert runs == []
    func.grad(lambda x: np.sum(x * x))(RNG.normal(size=(200, 200)))
    assert runs == [False]


@pytest.fixture
def tensor_runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each backward pass of tensors that may be compiled, whether code ran it."""
    seen: list[bool] = []
    run_compiled = BackwardPass._run_compiled

    def watched(backward_pass: BackwardPass) -> bool:
        seen.append(run_compiled(backward_pass))
        return seen[-1]

    monkeypatch.setattr(BackwardPass, "_run_compiled", watched)
    return seen


def weights_and_loss() -> tuple[list[Any], Callable[[], Any]]:
    """Two parameters, and a loss of them."""
    parameters = [func.tensor(data(), requires_grad=True), func.tensor(data()[0], requires_grad=True)]
    return parameters, lambda: np.sum(softmax(parameters[0]) * np.tanh(parameters[1]).clone())


def gradients_of(parameters: Sequence[Any]) -> list[Any]:
    """The gradients, which are reset."""
    gradients = [np.array(p.grad.numpy()) for p in parameters]
    for p in parameters:
        p.grad = None
    return gradients


def test_tensors(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    with func.config.override(compile_backward=False):
        loss().backward()
        expected = gradients_of(parameters)
    tensor_runs.clear()
    for _ in range(4):
        total = loss()
        total.backward()
        with pytest.raises(func.errors.FreedGraphError):
            total.backward()
        for each, truth in zip(gradients_of(parameters), expected, strict=True):
            np.testing.assert_allclose(each, truth, rtol=1e-12, atol=1e-14)
    assert tensor_runs == [False, False, False, False, True, False, True, False]


def test_gradients_of_tensors_add_up(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    total = loss()
    for _ in range(3):
        total.backward(retain_graph=True)
    loss().backward()
    assert tensor_runs == [False, False, True, True]
    sums = gradients_of(parameters)
    with func.config.override(compile_backward=False):
        loss().backward()
    for each, truth in zip(sums, gradients_of(parameters), strict=True):
        np.testing.assert_allclose(each, 4 * truth, rtol=1e-12, atol=1e-14)


def test_gradients_of_tensors_belong_to_the_user() -> None:
    parameters, loss = weights_and_loss()
    kept = []
    for step in range(5):
        loss().backward()
        kept.append(parameters[0].grad)
        parameters[0].grad = None
        with func.no_grad():
            kept[-1][...] = float(step)
    assert [float(gradient.numpy().max()) for gradient in kept] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_hooks_on_tensors_are_called(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    for _ in range(3):
        loss().backward()
    assert tensor_runs == [False, False, True]
    gradients_of(parameters)
    seen: list[Any] = []
    handle = parameters[1].register_hook(lambda ct: seen.append(ct))
    loss().backward()
    assert len(seen) == 1
    handle.remove()
    after: list[Any] = []
    parameters[1].register_post_accumulate_grad_hook(after.append)
    inner = np.tanh(parameters[0])
    inner.retain_grad()
    np.sum(inner * inner).backward()
    np.testing.assert_allclose(inner.grad.numpy(), 2 * inner.detach().numpy(), rtol=1e-12)
    loss().backward()
    assert len(after) == 1
    assert tensor_runs[3:] == [False, False, False]


def test_hooks_after_the_accumulation_are_called(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    order: list[int] = []
    for number, parameter in enumerate(parameters):
        parameter.register_post_accumulate_grad_hook(lambda p, number=number: order.append(number))
    for _ in range(3):
        loss().backward()
    assert tensor_runs == [False, False, True]
    assert order == order[:2] * 3


def test_one_leaf_in_the_place_of_two(tensor_runs: list[bool]) -> None:
    a, b = func.tensor(data()[0], requires_grad=True), func.tensor(data()[0], requires_grad=True)
    for _ in range(3):
        np.sum(np.sin(a) * b).backward()
        a.grad = b.grad = None
    np.sum(np.sin(a) * a).backward()
    x = a.detach().numpy()
    np.testing.assert_allclose(a.grad.numpy(), np.sin(x) + x * np.cos(x), rtol=1e-12)
    assert tensor_runs == [False, False, True, False]


def test_what_is_written_and_what_is_nan(tensor_runs: list[bool]) -> None:
    x = func.tensor([0.0, 1.0, 4.0], requires_grad=True)
    for _ in range(4):
        y = x * 1.0
        y[1:] *= 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            np.sum(np.where(y > 0, np.sqrt(y), 0.0)).backward()
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(x.grad.numpy(), [0.0, 2**-0.5, 2**-1.5], rtol=1e-12)
        x.grad = None
    assert tensor_runs == [False] * 4, "the code finds a NaN each time"


def test_code_runs_while_translations_are_validated(tensor_runs: list[bool]) -> None:
    _, loss = weights_and_loss()
    with func.config.override(validate=True):
        for _ in range(3):
            loss().backward()
    assert tensor_runs == [False, False, True]


def test_saved_values_that_are_packed(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    for _ in range(3):
        loss().backward()
    expected = [gradient / 3 for gradient in gradients_of(parameters)]
    count = []
    with func.autograd.graph.saved_tensors_hooks(lambda x: count.append(x) or x, lambda x: x):
        loss().backward()
    assert count
    assert tensor_runs == [False, False, True, False]
    for each, truth in zip(gradients_of(parameters), expected, strict=True):
        np.testing.assert_allclose(each, truth, rtol=1e-12, atol=1e-14)


def test_some_gradients_of_tensors_alone(tensor_runs: list[bool]) -> None:
    parameters, loss = weights_and_loss()
    for _ in range(3):
        loss().backward()
    expected = [gradient / 3 for gradient in gradients_of(parameters)]
    (found,) = func.autograd.grad(loss(), [parameters[1]])
    np.testing.assert_allclose(np.asarray(found), expected[1], rtol=1e-12)
    loss().backward(inputs=[parameters[0]])
    assert parameters[1].grad is None
    loss().backward(create_graph=True)
    assert parameters[1].grad.requires_grad
    assert tensor_runs == [False, False, True]


@pytest.mark.parametrize("function", [np.exp, np.sin, np.sqrt, np.square, lambda x: x * 2.0, lambda x: x / (x + 1.0)])
def test_a_freed_graph_whose_structure_has_code_is_refused_by_its_own_error(function: Any) -> None:
    def loss() -> Any:
        return np.sum(function(func.tensor(np.array([0.5, 1.5]), requires_grad=True)))

    for _ in range(5):
        loss().backward()
    freed = loss()
    freed.backward()
    with pytest.raises(RuntimeError, match="the graph was freed by an earlier backward"):
        freed.backward()


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)])
def test_softmax_of_complex_numbers(axis: Any) -> None:
    z, ct = data() + 1j * data(), data() + 1j * data()

    def both(z: Array) -> Any:
        return scipy.special.softmax(z, axis=axis) * ct + scipy.special.log_softmax(z, axis=axis)

    pulled = func.vjp(both, z)[1](ct)
    direction = data() + 1j * data()
    pushed = func.jvp(both, (z,), (direction,))[1]
    np.testing.assert_allclose(np.vdot(pulled, direction), np.vdot(ct, pushed), rtol=1e-10)
