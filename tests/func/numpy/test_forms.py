"""NumPy's functions in the forms in which code calls them, in every transform."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import polyutils

import func
from tests.support.natural_code import outcomes
from tests.support.numpy_forms import OF_MATRICES, OF_VECTORS

V = np.array([0.91, 0.32, 0.73, 0.54])
M = np.array([[2.1, 0.31, 0.52], [0.33, 1.7, 0.24], [0.45, 0.16, 1.4]])
NAMES: dict[str, Any] = {"np": np, "func": func, "V": V, "M": M, "P": np.polynomial, "pu": polyutils}
NAMES |= {
    short: getattr(np.polynomial, name)
    for short, name in {
        "pp": "polynomial", "ch": "chebyshev", "he": "hermite", "hme": "hermite_e", "la": "laguerre", "le": "legendre",
    }.items()
}  # fmt: skip
PART = 50
FORMS = [(line, V) for line in OF_VECTORS.split("\n") if line] + [(line, M) for line in OF_MATRICES.split("\n") if line]


@pytest.mark.parametrize("first", range(0, len(FORMS), PART))
def test_form(first: int) -> None:
    wrong = []
    for form, x in FORMS[first : first + PART]:
        with np.errstate(), warnings.catch_warnings():  # a form may raise after np.seterr
            warnings.simplefilter("ignore")
            found = outcomes(eval(f"lambda x: {form}", NAMES), [x.copy()], second=False)
        wrong += [f"{form}: {name}: {text}" for name, text in found.items()]
    assert not wrong, "\n".join(wrong)
