"""A result without axes is a scalar after jit, with every compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

IDENTITIES: list[Callable[[Any], Any]] = [
    np.sum, np.max, np.prod, np.transpose, lambda w: w, lambda w: w.copy(), lambda w: np.einsum("->", w)
]  # fmt: skip


@pytest.mark.parametrize("compiler", ["numpy", None])
@pytest.mark.parametrize("function", IDENTITIES)
def test_the_value_of_an_argument_without_axes(function: Callable[[Any], Any], compiler: str | None) -> None:
    w = np.array(0.5)
    for run in (func.jit(function, compiler=compiler), func.jit(func.value_and_grad(function), compiler=compiler)):
        for _ in range(2):
            assert all(type(out) is np.float64 for out in func.tree.leaves(run(w)))
