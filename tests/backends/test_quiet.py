"""Calls without NumPy's warnings, for which nothing else of NumPy's error state changes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from func.backends.quiet import errors_ignored, quietly


def test_errors_are_ignored_inside_and_as_before_outside() -> None:
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quietly(np.log, 0.0) == -np.inf
        with errors_ignored():
            assert set(np.geterr().values()) == {"ignore"}
            assert np.log(0.0) == -np.inf
    assert np.geterr() == before


def test_what_the_user_has_set_holds_again_afterwards() -> None:
    def callback(*args: Any) -> None:
        raise AssertionError

    with np.errstate(divide="raise", call=callback):
        for _ in range(2):
            with errors_ignored(), errors_ignored():
                assert np.log(0.0) == -np.inf and np.geterrcall() is callback
            assert np.geterr()["divide"] == "raise"
        with pytest.raises(ZeroDivisionError), errors_ignored():
            raise ZeroDivisionError
        with pytest.raises(FloatingPointError):
            np.log(0.0)
