"""The laws of scipy.integrate's rows, and what rows cannot show."""

from __future__ import annotations

import pytest

from tests.support.scipy_integrate import ROWS
from tests.support.scipy_rows import check, parameters


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_integrate_rows(name, column):
    check(ROWS[name], "integrate", column)
