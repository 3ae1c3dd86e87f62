"""Backward passes of eager code on a device: kernels compute them, once they have come often enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda import device_runs
from func.backends.cuda.device import DeviceIndexError, DeviceMemoryError, KernelError
from func.interpreters.calls import backward_plans
from tests.interpreters.test_compiled_backward import FUNCTIONS, NOT_NATIVE
from tests.support.cuda_host import HostDevice, needs_compiler
from tests.support.device_double import DeviceArray, namespace, to_device

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(20261128)
X = RNG.normal(size=(6, 8))

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDevice]:
    """A device whose passes are compiled when they come for the second time."""
    own = HostDevice(DeviceArray)
    monkeypatch.setattr(namespace, "device_of", lambda args: own)
    estimate = backward_plans._estimate

    def one_half(*args: Any) -> float:
        estimate(*args)
        return 0.6

    monkeypatch.setattr(backward_plans, "START", 0.0)
    monkeypatch.setattr(backward_plans, "BASE_COST", 0.1)
    monkeypatch.setattr(backward_plans, "COST_OF_NODE", 0.0)
    monkeypatch.setattr(backward_plans, "LARGEST_SHARE", float("inf"))
    monkeypatch.setattr(backward_plans, "_estimate", one_half)
    func.clear_caches()
    yield own
    func.clear_caches()


@pytest.fixture
def executables(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The executables that a test makes."""
    found: list[Any] = []
    make = device_runs.DeviceExecutable.__init__

    def kept(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        found.append(self)

    monkeypatch.setattr(device_runs.DeviceExecutable, "__init__", kept)
    return found


def weighted(f: Callable[[Any], Any], weights: Any) -> Callable[[Any], Any]:
    """A sum with weights, so that no cotangent is like another."""
    return lambda x: np.sum(f(x) * weights)


def calls_of(device: HostDevice, call: Callable[[], Any]) -> int:
    """How many times something started on the device, without the double's own computations."""
    before = device.calls
    call()
    return device.calls - before


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NOT_NATIVE])
def test_kernels_compute_the_gradients_that_nodes_do(name: str, device: HostDevice) -> None:
    weights = RNG.normal(size=np.shape(FUNCTIONS[name](X)))
    expected = func.grad(weighted(FUNCTIONS[name], weights))(X)
    gradient = func.grad(weighted(FUNCTIONS[name], to_device(weights)))
    for is_compiled in (False, True, True, True):
        x = to_device(X + 0)
        before = device.calls
        np.testing.assert_allclose(gradient(x).get(), expected, rtol=1e-12, atol=1e-13)
        assert (device.calls > before) == is_compiled, name


def test_elementwise_pullbacks_are_one_kernel(device: HostDevice) -> None:
    def chain(x: Any) -> Any:
        for _ in range(12):
            x = np.tanh(np.exp(-x * x) + 0.5) * np.cos(x)
        return x

    x, seed = to_device(RNG.normal(size=1000)), to_device(RNG.normal(size=1000))
    pull = lambda: func.vjp(chain, x)[1](seed)  # noqa: E731
    expected = func.vjp(chain, x.get())[1](seed.get())
    pull()
    pull()
    device.reads = 0
    assert calls_of(device, pull) <= 2  # the kernel, and the status set to zero
    assert device.reads == 1
    np.testing.assert_allclose(pull()[0].get(), expected[0], rtol=1e-12)


def test_tensors_have_compiled_passes_too(device: HostDevice) -> None:
    def step(array: Any) -> Any:
        x = func.tensor(array, requires_grad=True)
        loss = (np.sin(x) * x).sum()
        loss.backward()
        assert x.grad is not None
        return x.grad.numpy() if isinstance(array, np.ndarray) else x.grad

    expected = step(X)
    found = []
    for _ in range(4):
        before = device.calls
        grad = step(to_device(X))
        found.append(device.calls > before)
        np.testing.assert_allclose(func.tree.leaves(grad)[0]._value.get(), expected, rtol=1e-13)
    assert found == [False, False, True, True]


def test_places_that_were_not_selected_are_zero(device: HostDevice) -> None:
    slope = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))
    x = np.array([0.0, 4.0, -1.0, 0.25])
    for _ in range(4):
        with np.errstate(invalid="ignore", divide="ignore"):
            np.testing.assert_array_equal(slope(to_device(x)).get(), [0, 0.25, 0, 1])


def test_a_nan_that_belongs_there_stays(device: HostDevice) -> None:
    slope = func.grad(lambda x: np.sum(x * np.log(x) * np.sin(x)))
    for _ in range(4):
        with np.errstate(invalid="ignore", divide="ignore"):
            assert np.isnan(slope(to_device(np.array([2.0, -1.0]))).get()).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "bfloat16"])
def test_dtypes_of_devices(dtype: str, device: HostDevice) -> None:
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    x = to_device(X.astype(kind))
    tolerance = {"bfloat16": 0.05, "float16": 5e-3}.get(dtype, 1e-5)
    gradient = func.grad(lambda x: np.sum((np.tanh(x) * x * x + x).real))
    expected = gradient(x)
    for _ in range(3):
        found = gradient(x)
        assert found.dtype == expected.dtype == kind
        np.testing.assert_allclose(
            found.get().astype(complex), expected.get().astype(complex), rtol=tolerance, atol=tolerance
        )
    assert device.calls


def test_other_shapes_and_dtypes_are_other_passes(device: HostDevice) -> None:
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x))
    for _ in range(4):
        for array in (X, X[:, :2], X[0], X.astype(np.float32), np.asarray(0.5)):
            found = gradient(to_device(array))
            assert found.dtype == array.dtype and found.shape == array.shape
            np.testing.assert_allclose(found.get(), np.cos(array) * array + np.sin(array), rtol=1e-5)
            np.testing.assert_allclose(gradient(array), np.cos(array) * array + np.sin(array), rtol=1e-5)


def test_views_and_numbers_of_the_host_take_part(device: HostDevice) -> None:
    gradient = func.grad(lambda x, a, b: np.sum(np.exp(x * a) * b), (0,))
    for number in range(5):
        x, a, b = X.T[1:], np.float64(number / 3), number / 7
        np.testing.assert_allclose(gradient(DeviceArray(x), a, b)[0].get(), gradient(x, a, b)[0], rtol=1e-13)


def test_passes_with_a_library_in_their_middle(device: HostDevice) -> None:
    def loss(x: Any) -> Any:
        spectrum = np.fft.rfft(np.tanh(np.sin(x) * x), axis=1)
        return np.sum(np.log(np.abs(spectrum) ** 2 + 1.5) * np.cos(x[:, :5]))

    expected = func.grad(loss)(X)
    for _ in range(4):
        np.testing.assert_allclose(func.grad(loss)(to_device(X)).get(), expected, rtol=1e-9, atol=1e-12)
    assert device.calls


def test_rules_that_are_no_primitives_are_walked(device: HostDevice) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.tanh(np.linalg.eigvalsh(x @ x.T + 9 * np.eye(6))))

    expected = func.grad(loss)(X)
    for _ in range(4):
        np.testing.assert_allclose(func.grad(loss)(to_device(X)).get(), expected, rtol=1e-9, atol=1e-12)
    assert not device.calls


def test_no_memory_is_kept_between_passes(device: HostDevice, executables: list[Any]) -> None:
    sizes: list[int] = []
    memory = device.memory

    def counted(size: int) -> Any:
        sizes.append(size)
        return memory(size)

    device.memory = counted  # type: ignore[method-assign]

    def product(x: Any) -> Any:
        return np.sum(np.tanh(np.sin(x) @ x.T) ** 2 @ np.cos(x))

    for _ in range(4):
        np.testing.assert_allclose(func.grad(product)(to_device(X)).get(), func.grad(product)(X), rtol=1e-11)
    assert executables and all([each.is_eager and each._arena is None for each in executables])
    assert max(each._arena_size for each in executables) in sizes


def test_an_index_out_of_range_names_the_pass(executables: list[Any]) -> None:
    """The double refuses such an index in the forward run, so the status is made up."""
    gradient = func.grad(lambda x, i: np.sum(np.sin(x[i]) * np.cos(x[i])))
    for _ in range(3):
        gradient(to_device(np.arange(3.0)), to_device(np.array([0, 2])))
    executable = executables[-1]
    assert executable.is_eager
    with pytest.raises(
        DeviceIndexError, match=r"func.grad: an index was out of range in a backward pass on the device"
    ):
        executable._check(device_runs.OUT_OF_RANGE)


def test_kernels_that_do_not_compile_leave_the_pass_to_the_library(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, fast: bool) -> Any:
        raise KernelError("no")

    monkeypatch.setattr(device, "compiled", refuse)
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x))
    with pytest.warns(RuntimeWarning, match="kernels could not be made"):
        for _ in range(4):
            np.testing.assert_allclose(gradient(to_device(X)).get(), np.cos(X) * X + np.sin(X), rtol=1e-13)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))
        with pytest.warns(RuntimeWarning, match="kernels could not be made"):
            for _ in range(4):
                x = to_device(np.array([0.0, 4.0]))
                np.testing.assert_array_equal(slope(x).get(), [0, 0.25])


@pytest.mark.parametrize("setting", [{"compile_backward": False}, {"compiler": "numpy"}, {"compiler": "llvm"}])
def test_settings_leave_every_step_to_the_library(setting: dict[str, Any], device: HostDevice) -> None:
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(func.config, *next(iter(setting.items())))
        assert calls_of(device, lambda: [gradient(to_device(X)) for _ in range(4)]) == 0
    assert calls_of(device, lambda: [gradient(to_device(X)) for _ in range(4)]) > 0


def test_the_setting_for_devices_leaves_the_host_to_numpy(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(func.config, "compiler", "cuda")
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x))
    for _ in range(4):
        np.testing.assert_array_equal(gradient(X), np.cos(X) * X + np.sin(X))
    assert calls_of(device, lambda: [gradient(to_device(X)) for _ in range(4)]) > 0


def test_a_pass_without_memory_for_its_kernels_goes_node_by_node(
    device: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x))
    for _ in range(3):
        gradient(to_device(X))
    memory = device.memory

    def full(size: int) -> Any:
        raise DeviceMemoryError("no memory")

    monkeypatch.setattr(device, "memory", full)
    np.testing.assert_allclose(gradient(to_device(X)).get(), np.cos(X) * X + np.sin(X), rtol=1e-13)
    monkeypatch.setattr(device, "memory", memory)
    assert calls_of(device, lambda: gradient(to_device(X))) > 0


def test_passes_inside_other_transforms_and_threads(device: HostDevice) -> None:
    gradient = func.grad(lambda x: np.sum(np.sin(x) * x * x[::-1]))
    product = func.jvp(gradient, (X,), (np.cos(X),))[1]
    rows = func.vmap(func.grad(lambda r: np.sum(np.exp(r) * r)), 1, 1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: gradient(to_device(X)).get(), range(24)))
    for one in found:
        np.testing.assert_allclose(one, gradient(X), rtol=1e-12)
    for _ in range(4):
        np.testing.assert_allclose(
            func.jvp(gradient, (to_device(X),), (to_device(np.cos(X)),))[1].get(), product, rtol=1e-12
        )
        np.testing.assert_allclose(
            func.grad(lambda x: np.sum(gradient(x) ** 2))(to_device(X)).get(),
            func.grad(lambda x: np.sum(gradient(x) ** 2))(X),
            rtol=1e-11,
        )
        np.testing.assert_allclose(rows(to_device(X)).get(), rows(X), rtol=1e-12)
        both = func.grad(lambda a, b: np.sum(np.sin(a) * b), (0, 1))
        x = to_device(X)
        for mine, expected in zip(both(x, x), both(X, X), strict=True):
            np.testing.assert_allclose(mine.get(), expected, rtol=1e-12)
        assert gradient(to_device(X[:0])).shape == (0, 8)
