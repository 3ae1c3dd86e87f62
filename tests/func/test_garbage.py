"""No array waits for the garbage collector: every feature runs with it switched off."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import func
from tools.enumerate import _features as features

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("name", features.FEATURES)
def test_no_array_waits_for_the_garbage_collector(name: str) -> None:
    assert not features.left_behind(features.FEATURES[name]())


def test_arrays_in_cycles_are_seen() -> None:
    def cycle() -> None:
        held: list[Any] = [np.ones(100)]
        held.append(held)

    assert features.left_behind(cycle) == "float64[100]"


@pytest.mark.parametrize("transform", [func.jit, lambda f: func.jit(func.grad(f))])
def test_jitted_functions_keep_no_arguments(transform: Any) -> None:
    f = transform(lambda x: np.sum(np.sin(x)))
    x = np.ones(1000)
    reference = weakref.ref(x)
    f(x)
    del x
    assert reference() is None


def test_hooks_on_several_tensors_after_one_of_them_needs_no_gradient() -> None:
    x, z = func.tensor([1.0], requires_grad=True), func.tensor([2.0], requires_grad=True)
    seen: list[Any] = []
    func.autograd.graph.register_multi_grad_hook([x, z], lambda grads: seen.append(grads))
    x.requires_grad_(False)
    (x * z).sum().backward()
    assert seen[0][0] is None and seen[0][1].tolist() == [1.0]
