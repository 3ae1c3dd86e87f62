"""Backward passes of eager code whose large products NumPy computes, in turns with native code."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import machine
from func.interpreters.compile.native import numpy_products
from func.interpreters.compile.native.numpy_products import InTurns, large_products
from tests.interpreters.test_compiled_backward import compiled_at_once, runs

__all__ = ["compiled_at_once", "runs"]

pytestmark = pytest.mark.skipif(not machine.available(), reason="no LLVM")

RNG = np.random.default_rng(20261128)
Array = np.ndarray[Any, Any]
N = 12
W, V, B = RNG.normal(size=(N, 7)), RNG.normal(size=(7, 5)), RNG.normal(size=7)
STACK = RNG.normal(size=(3, N, N))


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """For each pass that runs in turns, the number of its products; every product counts as large."""
    found: list[int] = []
    run = InTurns._run

    def watched(self: InTurns, args: Any) -> Any:
        found.append(sum([step[0].name == "contract" for step in self._steps]))
        return run(self, args)

    monkeypatch.setattr(numpy_products, "LARGE", 0)
    monkeypatch.setattr(numpy_products, "LEAST", 0)
    monkeypatch.setattr(InTurns, "_run", watched)
    with func.config.override(num_threads=2):
        yield found


def network(x: Any) -> Any:
    hidden = np.tanh(x @ W + B)
    return np.sum((hidden @ V) ** 2 * np.cos(x[0, 0]))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "network": network,
    "its own transpose": lambda x: np.sum(np.tanh(x @ x.T) @ x),
    "tensordot": lambda x: np.sum(np.sin(np.tensordot(STACK * x, x, axes=([1, 2], [0, 1])) / 100)),
    "einsum": lambda x: np.sum(np.sin(np.einsum("ab,kbc,cd->kad", x, STACK, x) / 100)),
    "a product that is the result": lambda x: np.sum((x @ W) * (W * 2.0)),
    "the same cotangent twice": lambda x: np.sum(np.sin((x + x.T) @ (x + x.T) / 100)),
    "vectors": lambda x: np.sum(np.exp(x @ x[0] / 10) * (x[1] @ x)) + x[2] @ x[3],
    "written": lambda x: np.sum(_written(x) @ x),
}


def _written(x: Any) -> Any:
    out = np.zeros_like(x)
    out[1:] = x[:-1] @ x
    out[0] = x[3]
    return out


def by_nodes(f: Callable[..., Any], *args: Any) -> Any:
    with func.config.override(compile_backward=False):
        return f(*args)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_operations(name: str, dtype: Any, turns: list[int]) -> None:
    x = RNG.normal(size=(N, N)).astype(dtype)
    x = x + 1j * RNG.normal(size=(N, N)).astype(dtype) if np.iscomplexobj(x) else x
    is_complex = np.iscomplexobj(x)
    gradient = func.grad(lambda x: np.real(FUNCTIONS[name](x)) if is_complex else FUNCTIONS[name](x))
    expected = by_nodes(gradient, x)
    for _ in range(4):
        found = gradient(x)
        assert found.dtype == expected.dtype and type(found) is type(expected)
        tolerance = 1e-4 if np.finfo(found.dtype).eps > 1e-10 else 1e-10
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.max(np.abs(expected)))
    assert turns or dtype not in (np.float32, np.float64)


@pytest.mark.parametrize("transform", [func.vmap, func.jacfwd, func.jacrev])
def test_levels_around(transform: Any, turns: list[int]) -> None:
    x = RNG.normal(size=(2, N, N)) if transform is func.vmap else RNG.normal(size=(N, N))
    f = transform(func.grad(network))
    expected = by_nodes(f, x)
    for _ in range(3):
        np.testing.assert_allclose(f(x), expected, rtol=1e-10, atol=1e-12)
    assert turns


def test_several_results_belong_to_the_caller(turns: list[int]) -> None:
    def loss(parameters: dict[str, Any], x: Any) -> Any:
        return np.sum(np.tanh(x @ parameters["w"] + parameters["b"]) @ parameters["v"] + parameters["c"] + x[0, :5])

    gradient = func.grad(loss)
    parameters = {"w": W, "b": B, "v": V, "c": np.zeros(5)}
    x = RNG.normal(size=(9, N))
    expected = by_nodes(gradient, parameters, x)
    results = [gradient(parameters, x) for _ in range(4)]
    for result in results:
        for name, own in result.items():
            np.testing.assert_allclose(own, expected[name], rtol=1e-12)
            own[...] = np.nan
            own.fill(7.0)
    arrays = [array for result in results for array in (*result.values(), *parameters.values())]
    for place, array in enumerate(arrays[:-4]):
        assert not any([np.shares_memory(array, other) for other in arrays[place + 1 :] if other is not array])
    assert len(turns) >= 2


def test_results_are_arrays_of_their_own() -> None:
    x = RNG.normal(size=(N, N))

    def f(x: Any) -> Any:
        product = x @ x
        return product, product, x, product.T, x[0, 0] * 2.0, 3.0

    results = InTurns(func.make_program(f)(x))(x)
    expected = f(x)
    for found, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(found, value)
        assert type(found) in (np.ndarray, np.float64)
    arrays = [x, *results[:4]]
    for place, array in enumerate(arrays):
        assert not any([np.shares_memory(array, other) for other in arrays[:place]])


def test_results_that_are_views_of_others_are_copies(turns: list[int]) -> None:
    def loss(x: Any, y: Any, z: Any) -> Any:
        return np.sum(np.tanh((x + (y + z @ STACK[0]).T) @ W))

    gradient = func.grad(loss, argnums=(0, 1, 2))
    arguments = RNG.normal(size=(3, N, N))
    expected = by_nodes(gradient, *arguments)
    for _ in range(4):
        to_x, to_y, to_z = gradient(*arguments)
        assert not np.shares_memory(to_x, to_y)
        to_x[...] = np.nan
        np.testing.assert_allclose(to_y, expected[1], rtol=1e-12)
        np.testing.assert_allclose(to_z, expected[2], rtol=1e-12)
    assert turns


def test_nan_and_overflow(turns: list[int]) -> None:
    gradient = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0) @ W))
    x = RNG.normal(size=(N, N))
    x[0, 0] = 0.0
    expected = by_nodes(gradient, x)
    assert np.isfinite(expected).all()
    huge = func.grad(lambda x: np.sum((x @ x) @ x))
    with np.errstate(all="raise"):
        for _ in range(4):
            np.testing.assert_array_equal(gradient(x), expected)
        large = np.full((4, 4), 1e154)
        for _ in range(4):
            with np.errstate(over="ignore", invalid="ignore"):
                found = huge(large)
            assert np.isinf(found).all()


def test_threads_share_the_code(turns: list[int]) -> None:
    gradient = func.grad(network)
    inputs = [RNG.normal(size=(N, N)) for _ in range(16)]
    expected = [by_nodes(gradient, x) for x in inputs]
    for x in inputs[:3]:
        gradient(x)

    def check(place: int) -> bool:
        with func.config.override(num_threads=2):
            return all([np.allclose(gradient(inputs[place]), expected[place], rtol=1e-10) for _ in range(20)])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, range(16)))
    assert len(turns) > 100


def test_one_thread_has_native_products(turns: list[int]) -> None:
    with func.config.override(num_threads=1):
        gradient, x = func.grad(network), RNG.normal(size=(N, N))
        for _ in range(4):
            np.testing.assert_allclose(gradient(x), by_nodes(gradient, x), rtol=1e-10)
    assert not turns


def test_what_has_no_native_form_is_walked(turns: list[int], runs: list[bool]) -> None:
    gradient = func.grad(lambda x: np.sum(np.abs(np.fft.rfft(x @ x)) ** 2))
    x = RNG.normal(size=(N, N))
    expected = by_nodes(gradient, x)
    for _ in range(4):
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-10)
    assert not turns and not any(runs)


@pytest.mark.parametrize(
    ("x", "y", "is_large"),
    [
        ((1024, 512), (512, 512), True),
        ((32, 784), (784, 512), False),
        ((64, 64, 64), (64, 64, 64), False),  # many small ones
        ((8, 256, 512), (512, 512), True),  # one after all
        ((65536, 32), (32, 512), False),  # few terms
    ],
)
def test_which_products_are_large(x: Any, y: Any, is_large: bool) -> None:
    shapes = [func.numpy.zeros(x, np.float32), func.numpy.zeros(y, np.float32)]
    with func.config.override(num_threads=2):
        assert bool(large_products(func.make_program(lambda x, y: x @ y)(*shapes))) == is_large
        half = [shape.astype(np.float16) for shape in shapes]
        assert not large_products(func.make_program(lambda x, y: x @ y)(*half))
    with func.config.override(num_threads=1):
        assert not large_products(func.make_program(lambda x, y: x @ y)(*shapes))


def test_dead_values_are_dropped(turns: list[int]) -> None:
    size = 256
    weights = [RNG.normal(size=(size, size)) / size for _ in range(8)]

    def loss(x: Any) -> Any:
        for weight in weights:
            x = np.sin(x @ weight)
        return np.sum(x)

    gradient, x = func.grad(loss), RNG.normal(size=(size, size))
    with func.config.override(array_cache=0):
        for _ in range(3):
            gradient(x)
        gc.collect()
        peaks = []
        for f in (gradient, lambda x: by_nodes(gradient, x)):
            tracemalloc.start()
            f(x)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert turns
    assert peaks[0] <= peaks[1] + 4 * x.nbytes
