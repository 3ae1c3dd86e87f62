"""Properties of primitives that tensors record, tested at the samples of the table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import grad, graph
from func.interpreters.core import PRIMITIVES, dtype_of
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

SMOOTH = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, own in SAMPLES.items()
    for i, sample in enumerate(own)
    if sample.differentiable
]
OF_SEVERAL = [case for case in SMOOTH if len(case.values[1].differentiable) > 1]  # type: ignore[union-attr]


def recorded(name: str, sample: Sample) -> tuple[dict[int, Any], list[Any]]:
    """Leaves at the differentiable arguments of a sample, by position, and the outputs that depend on them."""
    args = list(sample.args)
    leaves = {i: func.tensor(sample.args[i], requires_grad=True) for i in sample.differentiable}
    for i, leaf in leaves.items():
        args[i] = leaf
    out = PRIMITIVES[name](*args, **sample.params)
    outs = out if PRIMITIVES[name].multiple else (out,)
    return leaves, [o for o in outs if isinstance(o, func.Tensor) and o.requires_grad]


def cotangents(outs: Sequence[Any]) -> list[Any]:
    """Random cotangents of outputs, the same for every run."""
    rng = np.random.default_rng(0)
    return [np.asarray(rng.normal(size=out.shape)).astype(dtype_of(out)) for out in outs]


def gradients(name: str, sample: Sample, wanted: Sequence[int], create_graph: bool = False) -> list[Any]:
    """The gradients of a sample with respect to the arguments in `wanted`."""
    leaves, outs = recorded(name, sample)
    pulled = grad(
        outs, [leaves[i] for i in wanted], cotangents(outs), create_graph=create_graph, materialize_grads=True
    )
    return [g.numpy(force=True) for g in pulled]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("name", "sample"), OF_SEVERAL)
def test_gradients_of_some_arguments_are_those_of_all(name: str, sample: Sample, create_graph: bool) -> None:
    positions = sample.differentiable
    whole = dict(zip(positions, gradients(name, sample, positions), strict=True))
    for count in range(1, len(positions)):
        for wanted in itertools.combinations(positions, count):
            for i, gradient in zip(wanted, gradients(name, sample, wanted, create_graph), strict=True):
                np.testing.assert_allclose(gradient, whole[i], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("name", "sample"), SMOOTH)
def test_whatever_is_saved_goes_through_the_hooks(name: str, sample: Sample, create_graph: bool) -> None:
    store: list[Any] = []

    def pack(value: Any) -> int:
        store.append((value.numpy().copy(), 0))
        return len(store) - 1

    def unpack(place: int) -> Any:
        value, count = store[place]
        store[place] = value, count + 1
        return func.tensor(value)

    expected = gradients(name, sample, sample.differentiable)
    with graph.saved_tensors_hooks(pack, unpack):
        leaves, outs = recorded(name, sample)
    assert all([graph.saved_bytes(out) == 0 for out in outs])
    pulled = grad(outs, list(leaves.values()), cotangents(outs), create_graph=create_graph, materialize_grads=True)
    for got, want in zip(pulled, expected, strict=True):
        np.testing.assert_allclose(got.numpy(force=True), want, rtol=1e-12, atol=1e-12)
    assert not store or any([count for _, count in store])
