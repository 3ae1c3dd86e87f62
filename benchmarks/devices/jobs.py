"""The jobs for a device: those of the benchmark for processors, with data a hundred times as large."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.trees import convert
from benchmarks.workloads import (
    black_scholes,
    chain,
    logistic_regression,
    mlp,
    normalisations,
    rnn,
    small_gradient,
    transformer,
)


@dataclass(frozen=True)
class DeviceJob:
    """A job, its data on the host, and the derivative by hand in NumPy's functions, which accept CuPy's arrays."""

    name: str
    title: str
    make_job: Callable[[Library], Callable[..., Any]]
    make_data: Callable[[], tuple[Any, ...]]
    by_hand: Callable[..., Any] | None = None
    bound: str = "memory"
    """Its limit: memory, arithmetic, or the start of kernels."""
    times: int = 1
    """How often the rows of matrices are repeated, so that the host draws fewer numbers."""

    def data(self, alone: bool = False) -> tuple[Any, ...]:
        """The data on the host; if `alone`, arrays of the same shapes whose elements share one place."""

        def enlarged(array: Any) -> Any:
            if not isinstance(array, np.ndarray):
                return array
            shape = (array.shape[0] * self.times, *array.shape[1:]) if array.ndim > 1 else array.shape
            if alone:
                return np.broadcast_to(np.zeros((), array.dtype), shape)
            return np.tile(array, (self.times, *[1] * (array.ndim - 1))) if array.ndim > 1 else array

        return tuple([convert(enlarged, item) for item in self.make_data()])


def _normalisation(
    name: str, make_job: Any, by_hand: Any, make_data: Any, shape: tuple[int, int], times: int = 100
) -> DeviceJob:
    title = f"gradient of {name}, {times * shape[0]:,} by {shape[1]}, float32"
    return DeviceJob(name, title, make_job, lambda: make_data(shape), by_hand, times=times)


_SINGLE: Any = "float32"
LARGE, MEDIUM = (4096, 1024), (128, 768)
JOBS = (
    DeviceJob(
        "black-scholes",
        "Black-Scholes prices and all greeks, 10,000,000 options, float64",
        black_scholes.make_job,
        lambda: black_scholes.data(10_000_000),
    ),
    DeviceJob(
        "chain",
        "gradient of a chain of 100 operations, 10,000,000 elements, float64",
        chain.make_job,
        lambda: chain.data(10_000_000),
        chain.by_hand,
        "arithmetic",
    ),
    DeviceJob(
        "logistic",
        "value_and_grad of logistic regression, 1,000,000 rows of 100, float64",
        logistic_regression.make_job,
        lambda: logistic_regression.data(1_000_000),
        logistic_regression.by_hand,
    ),
    DeviceJob(
        "mlp",
        "value_and_grad of an MLP 784-1024-200-10, batch 6400, float32",
        mlp.make_value_and_grad,
        lambda: mlp.data((784, 1024, 200, 10), 6400, _SINGLE),
        None,
        "arithmetic",
    ),
    _normalisation("gelu", normalisations.make_gelu, normalisations.gelu_by_hand, normalisations.data, MEDIUM),
    _normalisation("softmax", normalisations.make_softmax, normalisations.softmax_by_hand, normalisations.data, MEDIUM),
    _normalisation(
        "softmax of a long batch",
        normalisations.make_softmax,
        normalisations.softmax_by_hand,
        normalisations.data,
        LARGE,
    ),
    _normalisation(
        "layer norm",
        normalisations.make_layer_norm,
        normalisations.layer_norm_by_hand,
        normalisations.layer_norm_data,
        MEDIUM,
    ),
    DeviceJob(
        "transformer",
        "value_and_grad of a transformer block, batch 400, 16 positions of 64 features, float32",
        transformer.make_job,
        lambda: transformer.data(400, 16, 64),
    ),
    DeviceJob(
        "rnn",
        "gradient of an RNN by scan, 200 steps, 8 inputs, 32 hidden, float64",
        rnn.make_scan,
        rnn.data,
        None,
        "starts",
    ),
    DeviceJob(
        "small gradient",
        "gradient of sum(sin(x) exp(-x²)), 10 elements, float64: the replay of a small program",
        small_gradient.make_job,
        small_gradient.data,
        small_gradient.by_hand,
        "starts",
    ),
)
