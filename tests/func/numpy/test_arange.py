"""np.arange of traced numbers: NumPy's values and dtype, by questions where a trace does not know the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.errors import TracerConversionError

FORMS: dict[str, Any] = {
    "stop": lambda n: np.arange(n),
    "start": lambda n: np.arange(1, n),
    "step": lambda n: np.arange(0, n, 2),
    "by name": lambda n: np.arange(0, stop=n, dtype=float),
    "float32": lambda n: np.arange(n, dtype=np.float32),
    "all": lambda n: np.arange(n, 2 * n, n),
    "an offset": lambda n: np.arange(n) + np.arange(n + 1)[:-1],
}
NUMBERS = [3, 1, 3.0, np.int64(3), np.int32(3), np.uint8(3), np.float32(3), np.float64(2)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__} {number}")
@pytest.mark.parametrize("form", FORMS)
def test_values_and_dtype_are_numpys(form: str, number: Any) -> None:
    f = FORMS[form]
    right = f(number)
    jitted = func.jit(f, compiler="numpy")
    for found in (
        jitted(number),
        jitted(number),
        func.vmap(f)(np.array([number, number]))[1],
        func.jit(lambda n: f(n) * 1, compiler="numpy")(number),
        func.grad(lambda x: (x * np.sum(f(number)), f(number)), has_aux=True)(1.0)[1],
    ):
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)
    assert jitted(number + type(number)(1)).shape == f(number + type(number)(1)).shape


def test_traced_arrays_as_models() -> None:
    for like in (np.float64(2.0), np.ones(2)):
        found = func.grad(lambda x: np.sum(np.arange(3, like=x) * x[..., None]))(like)
        np.testing.assert_array_equal(found, 3.0 * np.ones_like(like))


def test_numbers_with_derivatives_and_fractions_are_refused() -> None:
    with pytest.raises(TracerConversionError, match=r"start \+ step \* np\.arange\(n\)"):
        func.grad(lambda x: np.sum(np.arange(0.0, x)))(3.0)
    with pytest.raises(TypeError, match="not known"):
        func.jit(lambda x: np.arange(0.0, x))(2.5)
