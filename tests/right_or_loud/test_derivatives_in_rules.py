"""Custom rules that take derivatives themselves: their traces are linear in all tangents, whatever is outside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

RULES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jvp of a sign": lambda x, p, dp: -func.jvp(lambda p: -p, (p,), (dp,))[1] / (3 * x * x),
    "jvp of a product": lambda x, p, dp: func.jvp(lambda p: p * 1.0 + x, (p,), (dp,))[1] / (3 * x * x),
    "jvp of a minimum": lambda x, p, dp: func.jvp(lambda p: np.minimum(p, 99.0), (p,), (dp,))[1] / (3 * x * x),
    "linearize": lambda x, p, dp: func.linearize(lambda p: 1.0 * p, p)[1](dp) / (3 * x * x),
    "jvp of a jvp": lambda x, p, dp: (
        func.jvp(lambda p: func.jvp(lambda q: q * q / 2, (p,), (1.0,))[1], (p,), (dp,))[1] / (3 * x * x)
    ),
}
TWICE: dict[str, Callable[[Any], Any]] = {
    "grad of grad": lambda f: func.grad(func.grad(f)),
    "jacfwd of grad": lambda f: func.jacfwd(func.grad(f)),
    "grad of jvp": lambda f: func.grad(lambda p: func.jvp(f, (p,), (1.0,))[1]),
    "grad of grad, jitted": lambda f: func.jit(func.grad(func.grad(f))),
    "grad of grad of jit": lambda f: func.grad(func.grad(func.jit(f))),
}


@pytest.mark.parametrize("twice", TWICE)
@pytest.mark.parametrize("name", RULES)
def test_second_derivatives_of_a_cube_root(name: str, twice: str) -> None:
    @func.custom_jvp
    def root(p: Any) -> Any:
        return 0 * p + 2.0

    @root.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        x = root(*primals)
        return x, RULES[name](x, primals[0], tangents[0])

    np.testing.assert_allclose(TWICE[twice](root)(8.0), -2 / 9 * 8 ** (-5 / 3), rtol=1e-12)


@pytest.mark.parametrize("outer", [func.grad, lambda f: lambda x: func.jvp(f, (x,), (1.0,))[1]])
def test_primal_of_a_mapped_rule_inside_forward_mode(outer):
    """The outputs come with their tangents from one call; they alone have the derivative."""
    square = func.custom_vmap(lambda x: x * x)
    square.def_vmap(lambda size, batched, x: (x * x, batched[0]))
    x = np.array([0.5, 0.7])
    np.testing.assert_allclose(func.vmap(outer(lambda u: func.jvp(square, (u,), (1.0,))[0]))(x), 2 * x)
    np.testing.assert_allclose(func.vmap(outer(lambda u: func.jvp(square, (u,), (u,))[1]))(x), 4 * x)
