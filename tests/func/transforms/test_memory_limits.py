"""Memory limits: their notations, and plans that stay below them and agree with NumPy's memory."""

import functools
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends.defensive_copies import shared_copy
from func.errors import ArgumentError, MemoryLimitError
from func.transforms.memory_limits import Planning, parse_bytes, planning, shown_bytes
from tests.support.traced_memory import tracing

PYTHON = 200_000
"""Bytes that Python's own objects, such as tracers and frames, may take in addition to the arrays."""
RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((300, 200)) / 20
POINT = RNG.standard_normal(200)
BATCH = RNG.standard_normal((800, 60))


def outer_sum(x: Any, matrix: Any) -> Any:
    hidden = np.sin(matrix @ x)
    return np.sum(np.outer(hidden, np.exp(hidden)))


def rows(x: Any) -> Any:
    return {"a": np.tanh(np.outer(x, x)).sum(0), "b": np.sum(x)}


def layer(x: Any) -> Any:
    return np.tanh(MATRIX @ np.sin(x * x))


def of_tree(p: Any) -> Any:
    return {"a": np.tanh(MATRIX @ p["x"]), "b": p["y"] * np.sum(p["x"])}


def scalar(x: Any) -> Any:
    return np.sum(np.exp(np.sin(np.outer(x, x[:30]))))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "vmap": (functools.partial(func.vmap, f=outer_sum, in_dims=(0, None)), (BATCH, MATRIX[:100, :60]), "2 MB"),
    "vmap of a tree": (functools.partial(func.vmap, f=rows, out_dims={"a": 1, "b": 0}), (BATCH,), "3 MB"),
    "vmap of another axis": (functools.partial(func.vmap, f=rows, in_dims=1), (BATCH.T,), "3 MB"),
    "jacfwd": (functools.partial(func.jacfwd, f=layer), (POINT,), "1.5 MB"),
    "jacrev": (functools.partial(func.jacrev, f=layer), (POINT,), "2 MB"),
    "jacobian": (functools.partial(func.jacobian, f=layer), (POINT,), "1.5 MB"),
    "jacobian of trees": (functools.partial(func.jacrev, f=of_tree), ({"x": POINT, "y": np.ones((3, 4))},), "2 MB"),
    "hessian": (functools.partial(func.hessian, f=scalar), (POINT,), "4 MB"),
    "hessian, reverse over reverse": (
        functools.partial(func.hessian, f=scalar, mode="rev-rev"),
        (POINT,),
        "6 MB",
    ),
}


@pytest.fixture(autouse=True)
def values_of_numpy() -> Iterator[None]:
    """No backward pass is code: the plan and the measurement are of the arrays of the same calls."""
    with func.config.override(compile_backward=False):
        yield


def peak_of(call: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """The result of a call, and the bytes that it adds at its peak, the least of three."""
    out = call(*args)
    peaks = []
    with tracing():
        for _ in range(3):
            out = None
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            out = call(*args)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    return out, min(peaks)


@pytest.mark.parametrize("name", CASES)
def test_chunks_keep_the_peak_below_the_limit(name: str) -> None:
    transform, args, limit = CASES[name]
    expected, whole = peak_of(transform(), *args)
    limited = transform(memory_limit=limit)
    out, peak = peak_of(limited, *args)
    for x, y in zip(func.tree.leaves(out), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
        assert x.shape == y.shape and x.dtype == y.dtype
    given = sum([x.nbytes for x in func.tree.leaves(args)])
    timeline = func.memory(limited)(*args)
    assert timeline.peak <= parse_bytes(limit, "")
    assert "at a time" in timeline.plans[0]
    assert peak + given <= timeline.peak + PYTHON
    assert peak < whole


@pytest.mark.parametrize("name", CASES)
def test_plans_do_not_depend_on_where_arrays_lie(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are shared by address: an array that takes the place of a freed one must not decide about a plan."""
    transform, args, limit = CASES[name]
    expected = func.memory(transform(memory_limit=limit))(*args)
    kept: list[Any] = []

    def copy_of_kept(array: Any) -> Any:
        kept.append(array)
        return shared_copy(array)

    monkeypatch.setattr("func.interpreters.core.types.shared_copy", copy_of_kept)
    timeline = func.memory(transform(memory_limit=limit))(*args)
    assert timeline.plans == expected.plans and timeline.peak == expected.peak


@pytest.mark.parametrize("name", CASES)
def test_what_fits_is_not_cut(name: str) -> None:
    transform, args, _ = CASES[name]
    (plan,) = func.memory(transform(memory_limit="2 GiB"))(*args).plans
    count, _, size = plan.split(": ")[1].split(" ")[:3]
    assert count == size


@pytest.mark.parametrize("name", CASES)
def test_limits_below_one_element_say_by_how_much(name: str) -> None:
    transform, args, _ = CASES[name]
    with pytest.raises(MemoryLimitError, match=r"cannot be met: a chunk of one .*needs .* more; at the peak"):
        transform(memory_limit=1000)(*args)


SIZES = {
    "1.1 TB": 1_100_000_000_000,
    "0.1 kB": 100,
    f"{10**400} kB": 10**403,
    1000: 1000,
    np.int64(7): 7,
    "1000": 1000,
    "12 B": 12,
    "2 GiB": 2 << 30,
    " 1.5MiB ": 3 << 19,
    "3 kB": 3000,
    "3 KB": 3000,
    "1 KiB": 1024,
    "2mb": 2_000_000,
    ".5 GB": 500_000_000,
    "1TB": 10**12,
}


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text: Any) -> None:
    assert parse_bytes(text, "jit") == SIZES[text]


@pytest.mark.parametrize("wrong", ["", "2 apples", "-1 GB", "GiB", "0", 0, -5, True, 1.5, None, [1], "1e9", "nan"])
@pytest.mark.parametrize("transform", ["vmap", "jacrev", "jacfwd", "jacobian", "hessian", "checkpoint", "jit"])
def test_what_is_no_size(wrong: Any, transform: str) -> None:
    if wrong is None:
        wrong = {}
    with pytest.raises(ArgumentError, match=f"func.{transform}: memory_limit must be a positive number of bytes"):
        getattr(func, transform)(np.sin, memory_limit=wrong)


def test_sizes_are_shown_in_their_unit() -> None:
    shown = [shown_bytes(count) for count in (0, 5, 2048, 3 << 20, 5 << 30)]
    assert shown == ["0 bytes", "5 bytes", "2 KiB", "3 MiB", "5 GiB"]


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        (func.vmap, {"chunk_size": 2}),
        (func.jacrev, {"chunk_size": 2}),
        (func.jacobian, {"chunk_size": 2}),
        (func.hessian, {"chunk_size": 2}),
        (func.checkpoint, {"policy": func.checkpoint_policies.everything_saveable}),
    ],
)
def test_one_of_two_options(transform: Callable[..., Any], options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="pass either it or"):
        transform(np.sin, memory_limit="1 GB", **options)


def test_limits_are_for_dense_jacobians() -> None:
    with pytest.raises(ArgumentError, match="leave out one of sparse and memory_limit"):
        func.jacobian(np.sin, sparse=True, memory_limit="1 GB")


def test_plans_put_random_generators_back() -> None:
    def drawn(limit: str | None) -> Any:
        generator = np.random.default_rng(1)
        np.random.seed(0)
        mapped = func.vmap(lambda x: x * generator.normal() + np.random.normal(), memory_limit=limit)
        return mapped(BATCH[:4])

    np.testing.assert_array_equal(drawn("1 MB"), drawn(None))


UNTRACEABLE: dict[str, Callable[[], Any]] = {
    "vmap": lambda: func.vmap(lambda x: x if x[0] > 0 else -x, memory_limit="1 GB")(BATCH),
    "jacfwd": lambda: func.jacfwd(lambda x: x[x > 0], memory_limit="1 GB")(POINT),
    "hessian": lambda: func.hessian(lambda x: np.sum(x[x > 0] ** 2), memory_limit="1 GB")(POINT),
    "checkpoint": lambda: func.grad(func.checkpoint(lambda x: np.sum(x[x > 0]), memory_limit="1 GB"))(POINT),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_functions_that_depend_on_data_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"func.\w+: memory_limit needs the Program of .*cannot be traced"):
        UNTRACEABLE[name]()


def test_under_other_transforms() -> None:
    def energy(x: Any) -> Any:
        return np.sum(func.vmap(rows, memory_limit="2 MB")(x)["a"] ** 2)

    def plain(x: Any) -> Any:
        return np.sum(func.vmap(rows)(x)["a"] ** 2)

    x = BATCH[:100]
    for transform in (func.grad, lambda f: func.jit(func.grad(f)), lambda f: lambda x: func.jvp(f, (x,), (x,))[1]):
        np.testing.assert_allclose(transform(energy)(x), transform(plain)(x), rtol=1e-10)


def test_plans_are_kept_for_each_kind_of_arguments() -> None:
    calls = []

    def noted(x: Any) -> Any:
        calls.append(type(x))
        return np.sum(np.outer(x, x))

    limited = func.vmap(noted, memory_limit="2 MB")
    limited(BATCH)
    first = len(calls)
    limited(BATCH)
    assert len(calls) - first < first


def network(weights: Any, x: Any) -> Any:
    for i in range(len(weights)):
        x = np.tanh(x @ weights[i]) * np.exp(-x * x)
    return x


WEIGHTS = RNG.standard_normal((10, 40, 40)) / 6
INPUTS = RNG.standard_normal((400, 40))


@pytest.mark.parametrize(("limit", "words"), [("40 MB", "nothing is computed again"), ("3 MB", "segments")])
def test_checkpoints_in_segments(limit: str, words: str) -> None:
    def gradient(f: Any) -> Any:
        return func.grad(lambda w: np.sum(f(w, INPUTS) ** 2))

    expected, whole = peak_of(gradient(network), WEIGHTS)
    limited = gradient(func.checkpoint(network, memory_limit=limit))
    out, peak = peak_of(limited, WEIGHTS)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(func.jit(limited)(WEIGHTS), expected, rtol=1e-12, atol=1e-12)
    (plan,) = func.memory(limited)(WEIGHTS).plans
    assert words in plan
    if words == "segments":
        assert peak < 0.7 * whole


def writes(a: Any, b: Any) -> Any:
    a *= 2
    a[0] = b
    return np.sum(np.sin(a) * a)


def in_checkpoint(f: Any, x: Any) -> Any:
    y = x * 1.0
    return f(y, x[1]) + np.sum(y**3)


NESTED: dict[str, Callable[[Any], Any]] = {
    "writes to an argument": lambda c: func.grad(functools.partial(in_checkpoint, c(writes)))(np.arange(4.0)),
    "vmap of grad": lambda c: func.vmap(func.grad(c(lambda y: np.sum(np.sin(y) * np.cos(y * y[0])))))(BATCH[:3, :4]),
    "grad of vmap": lambda c: func.grad(lambda x: np.sum(func.vmap(c(lambda y: np.sin(y) * np.cos(y * y[0])))(x)))(
        BATCH[:3, :4]
    ),
    "hessian": lambda c: func.hessian(c(lambda y: np.sum(np.sin(y) * np.cos(y))))(POINT[:4]),
    "a closure over a traced value": lambda c: func.grad(lambda x: c(lambda y: np.sum(np.sin(y) * x))(x * 2))(
        POINT[:4]
    ),
    "a derivative inside": lambda c: func.grad(c(lambda y: np.sum(func.grad(lambda z: np.sum(np.sin(z) * z))(y) ** 2)))(
        POINT[:4]
    ),
    "an output that is an argument": lambda c: func.grad(lambda x: np.sum(c(lambda y: (y, np.sin(y)))(x)[0] * x))(
        POINT[:4]
    ),
    "float32": lambda c: func.grad(c(lambda y: np.sum(np.sin(y) * y)))(POINT[:4].astype(np.float32)),
    "complex": lambda c: func.grad(c(lambda y: np.sum(np.abs(np.sin(y) * y))))(POINT[:4] + 1j),
    "keywords and trees": lambda c: func.grad(lambda p: c(lambda q, *, k: np.sum(q["a"] * k))(p, k=2.0))(
        {"a": POINT[:4]}
    ),
    "no array": lambda c: func.grad(lambda x: c(lambda y, n: y**n)(x, 3))(2.0),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_checkpoints(name: str) -> None:
    out = NESTED[name](functools.partial(func.checkpoint, memory_limit=700))
    expected = NESTED[name](lambda f: f)
    for x, y in zip(func.tree.leaves(out), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6 if y.dtype == np.float32 else 1e-12)
        assert x.dtype == y.dtype


def test_a_checkpoint_that_cannot_be_cut() -> None:
    with pytest.raises(MemoryLimitError, match=r"cannot be met: network keeps .* segments, .* more"):
        func.grad(lambda w: np.sum(func.checkpoint(network, memory_limit="10 kB")(w, INPUTS)))(WEIGHTS)


def test_a_plan_is_for_the_objects_among_the_arguments_too() -> None:
    """Passed functions and options decide on the needed memory: each has its own plan."""

    def small(x: Any) -> Any:
        return np.sum(x)

    def large(x: Any) -> Any:
        return np.sum(np.outer(x, x))

    limited = func.vmap(lambda x, f: f(x), in_dims=(0, None), memory_limit="100 kB")
    x = np.ones((16, 50))
    chosen = []
    for f in (small, large):
        np.testing.assert_array_equal(limited(x, f), func.vmap(f)(x))
        with planning(Planning()) as plan:
            assert plan is not None
            func.eval_shape(lambda x, f=f: limited(x, f), x)
        chosen.append(plan.notes[0].split(": ")[1].split(" of ")[0])
    assert chosen == ["16", "4"]


def nothing_beside_much(x: Any) -> Any:
    """An empty array is alive while much else is computed."""
    nothing, a = np.sin(x[:0]), np.sin(x)
    return np.sum(np.exp(a * np.cos(a)) + a), nothing * 2.0


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "function",
    [
        nothing_beside_much,
        lambda x: x,
        lambda x: 2.0,
        lambda x: (x, x[:0]),
        lambda x: np.sum(np.sin(x[:0])) + np.sum(np.sin(x) * np.cos(x)),
        lambda x: np.sin(x) + np.sum(x[:0] * 2.0),
    ],
    ids=[
        "nothing beside much",
        "identity",
        "constant",
        "view of nothing",
        "nothing alive at the peak",
        "sum of nothing",
    ],
)
def test_limits_of_programs_without_equations_and_with_empty_arrays(
    function: Callable[..., Any], compiler: str
) -> None:
    if compiler == "llvm":
        pytest.importorskip("llvmlite")
    x = np.linspace(0.0, 1.0, 1000)
    for limit in (1, 10_000):
        jitted = func.jit(function, memory_limit=limit, compiler=compiler)
        try:
            found = jitted(x)
        except MemoryLimitError as error:
            assert "cannot be met" in str(error)
        else:
            for one, other in zip(func.tree.leaves(found), func.tree.leaves(function(x)), strict=True):
                np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(
        func.tree.leaves(func.jit(function, memory_limit="1 MB", compiler=compiler)(x))[0],
        func.tree.leaves(function(x))[0],
    )
