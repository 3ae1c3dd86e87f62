"""The laws of scipy.fft's rows."""

from __future__ import annotations

import pytest

from tests.support.scipy_fft import ROWS
from tests.support.scipy_rows import check, parameters


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_fft_rows(name, column):
    check(ROWS[name], "fft", column)
