"""The laws of scipy.interpolate's rows."""

from __future__ import annotations

import pytest

from tests.support.scipy_interpolate import ROWS
from tests.support.scipy_rows import check, parameters


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_interpolate_rows(name, column):
    check(ROWS[name], "interpolate", column)
