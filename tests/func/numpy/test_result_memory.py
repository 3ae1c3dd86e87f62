"""Results that NumPy lays out by special rules: a write through `ravel` has NumPy's effect in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "tensordot without sums": lambda x, y: np.tensordot(x, y, 0),
    "round": lambda x, y: np.round(x, 1),
    "round to integers": lambda x, y: np.round(x),
    "nanmedian": lambda x, y: np.nanmedian(x, 0),
    "nanmedian of many": lambda x, y: np.nanmedian(np.tile(x, (201, 1, 1)), 0),
}
if hasattr(np, "matvec"):
    FUNCTIONS |= {
        "matvec": lambda x, y: np.matvec(x, y),
        "vecmat": lambda x, y: np.vecmat(x, y),
        "vecdot": lambda x, y: np.vecdot(x, y),
    }
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.array,
    "Fortran": np.asfortranarray,
    "reversed": lambda a: np.asfortranarray(a)[::-1],
    "permuted": lambda a: np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1),
}
MODES: dict[str, Callable[..., Any]] = {
    "eager": lambda f, *xs: func.jvp(f, xs, xs)[0],
    "vmap": lambda f, *xs: func.vmap(f)(*[x[None] for x in xs])[0],
    "jit": lambda f, *xs: func.jit(f)(*xs),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_write_through_ravel(function: str, layout: str) -> None:
    def written(x: Any, y: Any) -> Any:
        result = FUNCTIONS[function](x, y)
        result.ravel()[-1] = 100.0
        return result

    rng = np.random.default_rng(0)
    x, y = [LAYOUTS[layout](rng.normal(size=(3, 3, 3))) for _ in range(2)]
    for name, run in MODES.items():
        np.testing.assert_allclose(run(written, x, y), written(x, y), err_msg=name)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="np.array takes ndmax= since NumPy 2.4")
@pytest.mark.parametrize("ndmax", [0, 1, 2, 3])
def test_most_axes_of_an_array(ndmax):
    x = np.ones(3)
    np.testing.assert_array_equal(func.jit(lambda x: np.array(x, ndmax=ndmax))(x), x)
    if ndmax > 1:
        np.testing.assert_array_equal(func.jit(lambda x: np.array([x, x], ndmax=ndmax))(x), [x, x])
    else:
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            func.jit(lambda x: np.array([x, x], ndmax=ndmax))(x)


@pytest.mark.parametrize("number", [-1, -1.5, 2**40, 1e30, np.inf, np.nan])
@pytest.mark.parametrize(
    "write",
    [
        lambda x, number: x.fill(number),
        lambda x, number: x.__setitem__(0, number),
        lambda x, number: x.__setitem__(x == 0, number),
        lambda x, number: np.put(x, [0], number),
        lambda x, number: np.insert(x, 0, number),
    ],
)
def test_numbers_of_python_that_an_integer_array_does_not_have(write, number):
    x = np.zeros(2, np.uint32)
    with pytest.raises((OverflowError, ValueError)) as expected:
        write(x.copy(), number)
    for run in (func.jit(lambda x: write(x, number)), func.vmap(lambda x: write(x, number), out_axes=None)):
        with pytest.raises(expected.type, match=r"out of bounds|too large|convert float"):
            run(np.stack([x, x]))
