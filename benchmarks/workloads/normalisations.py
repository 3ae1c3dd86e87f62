"""Gradients of gelu, softmax and layer norm: few operations a byte, rows that are read once or three times."""

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.suite import MakeJob, compiled_bars, workload
from benchmarks.workload import Workload

SHAPES = {"small": (8, 64), "medium": (128, 768), "large": (4096, 1024)}


def make_gelu(library: Library) -> Callable[..., Any]:
    """The gradient of a weighted sum of gelu(x)."""
    return library.grad(lambda x, ct: library.np.sum(library.gelu(x) * ct))


def make_softmax(library: Library) -> Callable[..., Any]:
    """The gradient of a weighted sum of softmax(x)."""
    return library.grad(lambda x, ct: library.np.sum(library.softmax(x) * ct))


def make_layer_norm(library: Library) -> Callable[..., Any]:
    """The gradient of a weighted sum of layer_norm(x) by x, scale and shift."""

    def loss(arguments: tuple[Any, ...], ct: Any) -> Any:
        return library.np.sum(library.layer_norm(*arguments) * ct)

    gradient = library.grad(loss)
    return lambda x, ct, scale, shift: gradient((x, scale, shift), ct)


def gelu_by_hand(x: Any, ct: Any) -> Any:
    """½ (1 + t) + ½ x (1 - t²) u′ with t = tanh u."""
    slope = (2 / pi) ** 0.5
    square = x * x
    tanh = np.tanh(slope * x * (1 + 0.044715 * square))
    return ct * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * slope * (1 + 3 * 0.044715 * square))


def softmax_by_hand(x: Any, ct: Any) -> Any:
    """s (ct - Σ s ct)."""
    out = np.exp(x - np.max(x, axis=-1, keepdims=True))
    out /= np.sum(out, axis=-1, keepdims=True)
    return out * (ct - np.sum(out * ct, axis=-1, keepdims=True))


def layer_norm_by_hand(x: Any, ct: Any, scale: Any, shift: Any) -> Any:
    """(c - mean c - x̂ mean(c x̂)) / σ with c = ct scale."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    inverse = 1 / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(1e-5))
    unit = centred * inverse
    scaled = ct * scale
    means = np.mean(scaled, axis=-1, keepdims=True), np.mean(scaled * unit, axis=-1, keepdims=True)
    return (scaled - means[0] - unit * means[1]) * inverse, np.sum(ct * unit, axis=0), np.sum(ct, axis=0)


def data(shape: tuple[int, int]) -> tuple[Any, ...]:
    """Rows and cotangents."""
    generator = np.random.default_rng(0)
    return generator.normal(size=shape).astype(np.float32), generator.normal(size=shape).astype(np.float32)


def layer_norm_data(shape: tuple[int, int]) -> tuple[Any, ...]:
    """Rows, cotangents, scale and shift."""
    generator = np.random.default_rng(1)
    vectors = (generator.normal(size=shape[1]).astype(np.float32) for _ in range(2))
    return *data(shape), *vectors


def of_kind(name: str, make_job: MakeJob, by_hand: Callable[..., Any], make_data: Callable[..., Any]) -> list[Workload]:
    """The workloads of one function, by size."""
    return [
        workload(
            f"{name} {size}",
            f"gradient of {name}, {shape[0]} by {shape[1]}, float32",
            make_job,
            partial(make_data, shape),
            compiled_bars(against_jax=1.2, memory=size == "large"),
            by_hand,
        )
        for size, shape in SHAPES.items()
    ]


WORKLOADS = (
    *of_kind("gelu", make_gelu, gelu_by_hand, data),
    *of_kind("softmax", make_softmax, softmax_by_hand, data),
    *of_kind("layer norm", make_layer_norm, layer_norm_by_hand, layer_norm_data),
)
