"""A transformer block, as in small language models: norms, attention and an MLP, each with a residual."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.trees import as_type
from benchmarks.workload import Workload

HEADS = 4
SIZES = {"small": (4, 16, 64), "medium": (8, 64, 128), "large": (16, 128, 256)}


def make_job(library: Library) -> Callable[..., Any]:
    """value_and_grad of the mean squared error of a block with its norms in front.

    Source: R. Xiong et al. (2020), arXiv:2002.04745, table 1, right.
    """
    np = library.np

    def split(x: Any) -> Any:
        """(batch, positions, features) as (batch, heads, positions, features of a head)."""
        batch, positions, features = x.shape
        return np.swapaxes(x.reshape(batch, positions, HEADS, features // HEADS), 1, 2)

    def loss(parameters: dict[str, Any], inputs: Any, targets: Any) -> Any:
        p, width = parameters, inputs.shape[-1]
        normal = library.layer_norm(inputs, p["scale1"], p["shift1"])
        projected = normal @ p["project"] + p["project_bias"]
        heads = [split(projected[..., start : start + width]) for start in (0, width, 2 * width)]
        attended = np.swapaxes(library.attention(*heads), 1, 2).reshape(inputs.shape)
        x = inputs + attended @ p["output"] + p["output_bias"]
        normal = library.layer_norm(x, p["scale2"], p["shift2"])
        x = x + library.gelu(normal @ p["expand"] + p["expand_bias"]) @ p["contract"] + p["contract_bias"]
        return np.mean((x - targets) ** 2)

    return library.value_and_grad(loss)


def data(batch: int, positions: int, width: int) -> tuple[Any, ...]:
    """Parameters, inputs and targets, float32."""
    generator = np.random.default_rng(0)
    shapes = {"project": (width, 3 * width), "output": (width, width)}
    shapes |= {"expand": (width, 4 * width), "contract": (4 * width, width)}
    parameters = {}
    for name, (rows, columns) in shapes.items():
        parameters[name] = generator.normal(size=(rows, columns)) / rows**0.5
        parameters[f"{name}_bias"] = 0.1 * generator.normal(size=columns)
    for number in (1, 2):
        parameters[f"scale{number}"] = 1 + 0.1 * generator.normal(size=width)
        parameters[f"shift{number}"] = 0.1 * generator.normal(size=width)
    inputs, targets = generator.normal(size=(2, batch, positions, width))
    return as_type(np.float32, (parameters, inputs, targets))


def of_size(name: str, sizes: tuple[int, int, int]) -> Workload:
    """The workload for a batch of a number of positions of a number of features."""
    batch, positions, width = sizes
    return workload(
        f"transformer {name}",
        f"value_and_grad of a transformer block, batch {batch}, {positions} positions of {width} features, float32",
        make_job,
        lambda: data(*sizes),
        compiled_bars(against_jax=1.0, against_best=1 / 0.97, memory=name != "small"),
    )


WORKLOADS = tuple(of_size(name, sizes) for name, sizes in SIZES.items())
