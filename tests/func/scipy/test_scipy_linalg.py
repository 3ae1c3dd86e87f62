"""The laws of scipy.linalg's rows, and what rows cannot show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import func
from tests.support.scipy_linalg import ROWS, WITHOUT
from tests.support.scipy_rows import check


@pytest.mark.parametrize("name", ROWS)
def test_linalg_rows(name):
    check(ROWS[name], "linalg", "value")
    check(ROWS[name], "linalg", "unmodified")  # all other laws, by the same functions


def test_every_public_name_has_a_row_or_a_reason():
    names = {name.split()[0] for name in ROWS}
    assert set(scipy.linalg.__all__) <= names | set(WITHOUT)
    assert not names & set(WITHOUT)


@pytest.mark.parametrize("name", ["qz", "ordqz"])
def test_factors_of_pencils_are_refused(name):
    with pytest.raises(TypeError, match=f"scipy.linalg.{name}: the factors"):
        func.grad(lambda a: np.sum(getattr(scipy.linalg, name)(a, np.eye(2))[0]))(np.eye(2))
