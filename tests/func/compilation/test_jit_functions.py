"""Compiled equals eager, for every function of the coverage table and every primitive of the sample table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.backends.source import numpy_source
from func.interpreters.compile import planning
from tests.support.coverage import ALONE, FUNCTIONS, has_derivative, loss_of, smooth

NAMES = sorted(FUNCTIONS)
COMPLEX = {
    "linalg.fractional_matrix_power", "linalg.logm", "linalg.signm", "linalg.sqrtm",
    "np.linalg.eig", "np.linalg.eigvals", "np.roots",
}  # fmt: skip
"""Functions that return real numbers where all of them are real: staged, they are complex."""


def same(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    """Equal trees, dtypes and shapes; numbers up to rounding."""
    got_leaves, wanted_leaves = func.tree.leaves(got), func.tree.leaves(wanted)
    assert func.tree.structure(got) == func.tree.structure(wanted)
    for a, b in zip(got_leaves, wanted_leaves, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-11)


@pytest.fixture
def treated_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays count as large: they are dropped early, recycled, and worked on in small blocks."""
    monkeypatch.setattr(planning, "WORTH_DROPPING", 0)
    monkeypatch.setattr(planning, "LARGE", 0)
    monkeypatch.setattr(planning, "BLOCKED", 1)
    monkeypatch.setattr(numpy_source, "BLOCK", 5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("treated_as_large")
def test_compiled_functions_of_large_arrays(name: str) -> None:
    with func.config.override(compiler="numpy"):
        check_compiled(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions(name: str) -> None:
    check_compiled(name)


def check_compiled(name: str) -> None:
    """The function, its gradient both ways round, its tangent, its mapped gradient."""
    call = FUNCTIONS[name]
    x = call.x
    try:
        func.make_program(call.function)(x)
    except func.errors.StagingError as error:
        assert "depends on values" in str(error) or "is not known" in str(error)  # and nothing that was traced leaks
        return
    if name in COMPLEX:
        got, wanted = func.tree.leaves(func.jit(call.function)(x)), func.tree.leaves(call.function(x))
        assert all([np.iscomplexobj(one) for one in got])
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
        return
    same(func.jit(call.function)(x), call.function(x))
    f = smooth(call.function)
    if name in ALONE or not np.issubdtype(np.asarray(x).dtype, np.inexact) or not has_derivative(f, x):
        return
    loss = loss_of(f)
    gradient = func.grad(loss)(x)
    same(func.jit(func.grad(loss))(x), gradient)
    same(func.grad(func.jit(loss))(x), gradient)
    tangent = np.cos(np.arange(np.size(x))).reshape(np.shape(x)).astype(x.dtype)
    same(func.jvp(func.jit(loss), (x,), (tangent,)), func.jvp(loss, (x,), (tangent,)))
    both = np.stack([x, x])
    same(func.jit(func.vmap(func.grad(loss)))(both), func.vmap(func.grad(loss))(both))
