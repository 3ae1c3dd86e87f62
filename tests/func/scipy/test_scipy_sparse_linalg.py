"""The laws of scipy.sparse.linalg's rows, and what rows cannot show."""

from __future__ import annotations

import pytest
import scipy.sparse.linalg

from tests.support.scipy_rows import check, parameters
from tests.support.scipy_sparse_linalg import ROWS, WITHOUT


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_sparse_linalg_rows(name, column):
    check(ROWS[name], "sparse.linalg", column)


def test_every_public_name_has_a_row_or_a_reason():
    assert set(scipy.sparse.linalg.__all__) <= set(ROWS) | set(WITHOUT)
