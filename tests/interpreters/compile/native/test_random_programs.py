"""Random functions: native code, NumPy source and eager execution agree, and so do their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import func
from tests.support.random_functions import Maker, RandomFunction, tame

pytest.importorskip("llvmlite")

pytestmark = pytest.mark.filterwarnings("ignore")


@st.composite
def functions(draw: Any) -> RandomFunction:
    """Random functions of up to 22 lines; one of three calls what has no native form."""
    return Maker(draw(st.integers(0, 2**32)), draw(st.integers(0, 2)) == 0).make(draw(st.integers(1, 22)))


def close(got: Any, wanted: Any, precision: float) -> None:
    """Equal trees, dtypes and shapes; numbers up to rounding, by the largest of each array."""
    found, expected = func.tree.leaves(got), func.tree.leaves(wanted)
    assert func.tree.structure(got) == func.tree.structure(wanted)
    for place, (a, b) in enumerate(zip(map(np.asarray, found), map(np.asarray, expected), strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), place
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=0, atol=precision * max(1.0, np.max(np.abs(b), initial=0)))
        else:
            np.testing.assert_array_equal(a, b)


def jitted(function: Any, compiler: str) -> Any:
    """The function compiled."""
    return func.jit(function, compiler=compiler)


@given(made=functions())
@settings(max_examples=80)
def test_random_functions(made: RandomFunction) -> None:
    f, args = made.function(), made.args
    precision = 2e-3 if "float32" in str(made) else 1e-9
    wanted = f(*args)
    close(jitted(f, "numpy")(*args), wanted, precision)
    native = jitted(f, "llvm")
    first = native(*args)
    close(first, wanted, precision)
    kept = func.tree.map(np.array, first)
    native(*[np.flip(x).copy() for x in args])
    close(native(*args), wanted, precision)
    close(first, kept, 0)


@given(made=functions())
@settings(max_examples=40)
def test_gradients_of_random_functions(made: RandomFunction) -> None:
    where = tuple([place for place, x in enumerate(made.args) if x.dtype.kind == "f"])
    assume(where and "while_loop" not in str(made))  # how often a while_loop runs is not known: it has no pullback
    gradient = func.grad(tame(made.function()), where)
    precision = 2e-3 if "float32" in str(made) else 1e-8
    wanted = jitted(gradient, "numpy")(*made.args)
    native = jitted(gradient, "llvm")
    for _ in range(2):
        close(native(*made.args), wanted, precision)
