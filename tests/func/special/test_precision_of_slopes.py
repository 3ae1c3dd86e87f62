"""Derivatives of special functions by one argument, with others of few digits, are as precise as the value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special

import func

ENDS_THE_PROCESS = ("mathieu", "obl_", "pro_")
"""Beginnings of names of functions that take integers of a certain kind alone."""
NAMES = [
    name
    for name in func.special.__all__
    if getattr(getattr(scipy.special, name, None), "nin", 1) > 1 and not name.startswith(ENDS_THE_PROCESS)
]
X = np.array([0.7123, 0.5512])


def slope(name: str, place: int, dtype: Any) -> Any:
    """(value, derivative) by one argument, the others being of a dtype; None where there is no derivative."""
    function = getattr(scipy.special, name)
    operands = [np.array([1.375, 0.625]).astype(dtype) for _ in range(function.nin)]

    def of_one(x: Any) -> Any:
        out = function(*operands[:place], x, *operands[place + 1 :])
        return out[0] if isinstance(out, tuple) else out

    try:
        return func.jvp(of_one, (X,), (np.ones(2),))
    except (func.errors.NotDifferentiableError, TypeError):
        return None


@pytest.mark.parametrize("name", NAMES)
def test_slopes_beside_numbers_of_few_digits(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in range(getattr(scipy.special, name).nin):
            expected = slope(name, place, np.float64)
            for dtype in (np.float16, np.float32) if expected is not None else ():
                got = slope(name, place, dtype)
                if got is not None and got[0].dtype == np.float64:
                    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
