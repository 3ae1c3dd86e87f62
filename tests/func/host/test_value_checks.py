"""Checks by value in SciPy's code: they pass while func traces code, and other questions stay errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import func

CHECKS = """
import warnings
import numpy as np

def positive(x):
    if not np.all(x > 0):
        raise ValueError("x must be positive")
    return 2 * x

def either(x):
    if np.any(x > 9) or not np.all(x < 9) or np.isnan(x).any():
        message = "x is too large"
        raise ValueError(message)
    return 2 * x

def both(x):
    if x.ndim == 1 and not (np.max(x) < 9 and np.min(x) > 0):
        raise ValueError("x")
    return 2 * x

def called(x):
    if any(x < 0):
        raise ValueError("x")
    elif not all(x > 0):
        raise ValueError("y")
    return 2 * x

def chained(x):
    if not 0 < x[0] < 9:
        raise ValueError("x")
    return 2 * x

def near(x):
    if not np.allclose(x, 1.5, atol=9.0):
        raise ValueError("x")
    return 2 * x

def warned(x):
    if np.any(x > 9):
        text = "large"
        warnings.warn(text, stacklevel=2)
    return 2 * x

def asserted(x):
    assert np.all(x > 0) and not np.any(x > 9)
    return 2 * x

def decides(x):
    if np.all(x > 0):
        return 2 * x
    return x

def repairs(x):
    if np.any(x < 0):
        x = np.abs(x)
        warnings.warn("repaired")
    return 2 * x

def chooses(x):
    return 2 * x if np.all(x > 0) else x
"""
NAMES = ("positive", "either", "both", "called", "chained", "near", "warned", "asserted")


@pytest.fixture
def checks(tmp_path: Path):
    file = tmp_path / "made_of_checks.py"
    file.write_text(CHECKS)
    spec = importlib.util.spec_from_file_location("scipy.made_of_checks", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["scipy.made_of_checks"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["scipy.made_of_checks"]


@pytest.mark.parametrize("name", NAMES)
def test_checks_pass_where_values_are_not_known(checks, name):
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(func.jit(getattr(checks, name))(x), 2 * x)
    np.testing.assert_array_equal(func.vmap(func.jit(getattr(checks, name)))(x[None]), 2 * x[None])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "warned"])
def test_checks_look_at_values_that_are_known(checks, name):
    with pytest.raises((ValueError, AssertionError)):
        func.grad(lambda x: np.sum(getattr(checks, name)(x)))(np.array([-1.0, 20.0]))


@pytest.mark.parametrize("name", ["decides", "repairs", "chooses"])
def test_what_decides_about_the_result_stays_an_error(checks, name):
    with pytest.raises(func.errors.StagingError):
        func.jit(getattr(checks, name), guards=False)(np.array([1.0, 2.0]))


def test_checks_of_other_code_stay_errors():
    def positive(x):
        if not np.all(x > 0):
            raise ValueError("x must be positive")
        return x

    with pytest.raises(func.errors.StagingError):
        func.jit(positive, guards=False)(np.ones(2))


def test_scipys_code_compiles():
    alpha = np.array([1.0, 2.0, 3.0])

    def f(alpha):
        return scipy.stats.dirichlet.logpdf([0.2, 0.3, 0.5], alpha)

    np.testing.assert_allclose(func.jit(func.grad(f))(alpha), func.grad(f)(alpha))
    with pytest.raises(ValueError, match="greater than 0"):
        func.grad(f)(-alpha)
