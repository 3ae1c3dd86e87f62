"""func.memory: the memory of NumPy and of compiled programs, as numbers, text and pictures."""

import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

import func
from func.errors import ArgumentError, MemoryLimitError
from tests.support.traced_memory import tracing

RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal((8, 64, 64)) / 8
INPUTS = RNG.standard_normal((500, 64))
PYTHON = 200_000


def loss(weights: Any, x: Any) -> Any:
    for i in range(8):
        x = np.tanh(np.sin(x @ weights[i]) * np.exp(-x * x))
    return np.sum(x * x)


def held(x: Any) -> Any:
    a = np.sin(x)
    b = np.cos(a)
    c = a * b
    return np.sum(c)


def released(x: Any) -> Any:
    for _ in range(6):
        x = np.sin(x)
    return np.sum(x)


def in_place(x: Any) -> Any:
    y = np.zeros_like(x, shape=(8, 50_000))
    for i in range(8):
        y[i] = np.sin(x) * i
    return y


X = np.linspace(0.0, 1.0, 50_000)
EAGER: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "values that names hold": (held, (X,)),
    "values that are released": (released, (X,)),
    "a gradient": (func.grad(released), (X,)),
    "a gradient of a network": (func.grad(loss), (WEIGHTS, INPUTS)),
    "vmap": (func.vmap(lambda x: np.outer(x, x).sum(0)), (INPUTS,)),
    "jvp": (lambda x: func.jvp(released, (x,), (x,)), (X,)),
    "views": (lambda x: x.reshape(50, -1).T[::2] + 0, (X,)),
}


@pytest.fixture(autouse=True)
def values_of_numpy() -> Iterator[None]:
    """No backward pass is code: the plan and the measurement are of the arrays of the same calls."""
    with func.config.override(compile_backward=False):
        yield


@pytest.mark.parametrize("name", EAGER)
def test_the_peak_is_what_numpy_takes(name: str) -> None:
    function, args = EAGER[name]
    timeline = func.memory(function)(*args)
    function(*args)
    peaks = []
    with tracing():
        for _ in range(3):  # other threads allocate too
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            function(*args)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    measured = min(peaks)
    own = timeline.peak - timeline.arguments
    assert measured - PYTHON <= own
    assert own <= 1.35 * measured + X.nbytes + PYTHON


def test_what_is_alive_at_the_peak() -> None:
    timeline = func.memory(held)(X)
    assert timeline.peak == 4 * X.nbytes + 8 or timeline.peak == 4 * X.nbytes
    assert [(entry.kind, entry.row) for entry in timeline.alive if entry.bytes == X.nbytes] == [
        ("argument", ""),
        ("intermediate", "sin"),
        ("intermediate", "cos"),
        ("intermediate", "multiply"),
    ]
    lines = [entry.line.text for entry in timeline.alive if entry.line is not None]
    assert lines[:3] == ["a = np.sin(x)", "b = np.cos(a)", "c = a * b"]
    assert timeline.intermediates >= 3 * X.nbytes
    assert timeline.moments[timeline.place].bytes == timeline.peak
    assert func.memory(released)(X).peak == 3 * X.nbytes


def test_writes_in_place_are_counted() -> None:
    assert func.memory(in_place)(X).results == 8 * X.nbytes


def test_arguments_may_be_avals_numbers_and_trees() -> None:
    aval = func.eval_shape(lambda: np.zeros((1000, 1000)))
    assert func.memory(lambda x: np.sum(x * x))(aval).peak >= 16_000_000
    assert func.memory(lambda p, n, *, k: p["a"] * n + k)({"a": X}, 2, k=1.5).results == X.nbytes
    assert func.memory(lambda: np.zeros(3))().peak >= 24
    assert func.memory(lambda x: x)(3).peak >= 0


@pytest.mark.parametrize("compiler", ["numpy", None])
def test_compiled_programs(compiler: str | None) -> None:
    gradient = func.jit(func.grad(loss), compiler=compiler)
    timeline = func.memory(gradient)(WEIGHTS, INPUTS)
    if compiler is None:
        (native,) = [line for line in str(gradient.lower(WEIGHTS, INPUTS)).splitlines() if "arena:" in line]
        arena = int(native.split()[1])
        assert timeline.peak == arena + timeline.arguments + timeline.results + timeline.constants
    assert timeline.arguments == WEIGHTS.nbytes + INPUTS.nbytes
    assert timeline.results == WEIGHTS.nbytes
    assert any([entry.line is not None and "np.tanh" in entry.line.text for entry in timeline.alive])


def test_loops_say_what_is_inside() -> None:
    def simulate(x: Any) -> Any:
        return func.scan(lambda h, _: (np.tanh(np.outer(h, h).sum(0)), h), x, None, length=50)[1]

    for compiler in ("numpy", None):
        timeline = func.memory(func.jit(simulate, compiler=compiler))(np.ones(40))
        assert timeline.peak >= 50 * 320
        assert timeline.results == 50 * 320


def test_text_html_and_picture() -> None:
    matplotlib.use("agg")
    timeline = func.memory(func.grad(loss))(WEIGHTS, INPUTS)
    text = str(timeline)
    assert text.startswith("memory of loss: ") and "alive at the peak:" in text and "█" in text
    assert len(text.splitlines()) < 50
    assert "np.tanh" in text and repr(timeline) == text
    page = timeline._repr_html_()
    assert page.startswith("<div>") and page.count("<tr>") <= 24 and "&lt;" not in page.split("<ul>")[0][:20]
    axes = timeline.plot()
    assert axes.get_title() == "memory of loss" and axes.get_ylabel() == "MiB"
    assert timeline.plot(axes) is axes
    matplotlib.pyplot.close(axes.figure)
    empty = func.memory(lambda: 3)()
    assert "0 bytes" in str(empty)
    matplotlib.pyplot.close(empty.plot().figure)


def test_a_picture_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match="plot needs matplotlib"):
        func.memory(held)(X).plot()


def test_what_cannot_be_traced_is_refused() -> None:
    with pytest.raises(TypeError, match=r"func\.memory traces this code with abstract arrays"):
        func.memory(lambda x: x if x[0] > 0 else -x)(X)
    with pytest.raises(TypeError, match="memory"):
        func.memory(3)  # type: ignore[arg-type]


LIMITS = ["20 MB", "7 MB", "5 MB"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("compiler", ["numpy", None])
def test_jit_computes_again_to_stay_below_a_limit(limit: str, compiler: str | None) -> None:
    plain = func.jit(func.grad(loss), compiler=compiler)
    limited = func.jit(func.grad(loss), compiler=compiler, memory_limit=limit)
    np.testing.assert_allclose(limited(WEIGHTS, INPUTS), plain(WEIGHTS, INPUTS), rtol=1e-12, atol=1e-13)
    timeline = func.memory(limited)(WEIGHTS, INPUTS)
    assert timeline.peak <= float(limit.split()[0]) * 1e6
    if limit == LIMITS[-1]:
        assert "computed again instead of kept: " in timeline.plans[0]
    np.testing.assert_allclose(limited(WEIGHTS, INPUTS), plain(WEIGHTS, INPUTS), rtol=1e-12, atol=1e-13)


def test_what_jit_computes_again_stays_behind_the_peak() -> None:
    """The derivative of tanh reads its argument, which is there early and is what the second half starts from."""

    def layers(weights: Any, x: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return np.sum(x**2)

    weights, x = np.ones((6, 50, 50)) / 50, np.ones((4000, 50))
    limited = func.jit(func.grad(layers), memory_limit="10 MB")
    np.testing.assert_allclose(limited(weights, x), func.grad(layers)(weights, x), rtol=1e-12)
    assert func.memory(limited)(weights, x).peak <= 10e6


def test_a_limit_that_no_plan_meets() -> None:
    limited = func.jit(func.grad(loss), memory_limit="1 MB")
    with pytest.raises(MemoryLimitError, match=r"func\.jit: memory_limit=.* a call of loss needs .* more; at the peak"):
        limited(WEIGHTS, INPUTS)


def simulated(weights: Any, x: Any) -> Any:
    x, _ = func.scan(lambda h, _: (np.tanh(weights @ h), None), x, None, length=5000)
    return np.sum(x * x)


@pytest.mark.parametrize("compiler", ["numpy", None])
def test_jit_runs_scans_in_blocks_to_stay_below_a_limit(compiler: str | None) -> None:
    args = WEIGHTS[0, :20, :20], INPUTS[0, :20]
    plain = func.jit(func.grad(simulated), compiler=compiler)
    limited = func.jit(func.grad(simulated), compiler=compiler, memory_limit="250 kB")
    np.testing.assert_allclose(limited(*args), plain(*args), rtol=1e-12)
    timeline = func.memory(limited)(*args)
    assert timeline.peak <= 250_000 < 0.2 * func.memory(plain)(*args).peak
    assert "scans keep at most" in timeline.plans[0]


def test_limits_survive_pickling_and_transforms() -> None:
    limited = func.jit(func.grad(loss), memory_limit="5 MB")
    assert repr(pickle.loads(pickle.dumps(limited))) == repr(limited) and "memory_limit=5" in repr(limited)
    directions = func.vmap(lambda w: func.jvp(limited, (w, INPUTS), (w, INPUTS))[1])
    np.testing.assert_allclose(directions(WEIGHTS[None])[0].shape, WEIGHTS.shape)


def test_nan_safe_variants_stay() -> None:
    def root(x: Any) -> Any:
        for _ in range(12):
            x = np.where(x > 0, np.sqrt(np.abs(x) + (x <= 0) * 0.0), 0.0) * np.exp(-x)
        return np.sum(x)

    x = np.array([0.0, 1.0, 4.0] * 500)
    plain = func.jit(func.grad(root))
    timeline = func.memory(plain)(x)
    limited = func.jit(func.grad(root), memory_limit=timeline.peak - 1000 if timeline.peak > 40_000 else timeline.peak)
    np.testing.assert_array_equal(limited(x), plain(x))
    assert not np.isnan(limited(x)).any()
