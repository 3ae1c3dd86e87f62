"""Compiled equals eager, for every function of the coverage table and every primitive of the sample table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.backends.source import numpy_source
from func.interpreters.compile import planning
from tests.support.coverage import ALONE, FUNCTIONS, loss_of, smooth

NOT_STAGEABLE = {
    "linalg.null_space", "linalg.orth", "linalg.subspace_angles", "np.allclose", "np.argwhere",
    "np.array_equal", "np.array_equiv", "np.extract", "np.flatnonzero", "np.intersect1d", "np.nonzero", "np.packbits",
    "np.piecewise", "np.roots", "np.setdiff1d", "np.setxor1d", "np.trim_zeros",
    "np.union1d", "np.unique",
    "np.unique_all", "np.unique_counts", "np.unique_inverse", "np.unique_values", "np.unpackbits", "np.vectorize",
}  # fmt: skip
"""Functions whose result is a Python number or has a shape that depends on values."""
NOT_DIFFERENTIABLE = {"special.zetac"}
NAMES = sorted(FUNCTIONS.keys() - NOT_STAGEABLE)
COMPLEX = {
    "linalg.fractional_matrix_power", "linalg.logm", "linalg.signm", "linalg.sqrtm",
    "np.linalg.eig", "np.linalg.eigvals",
}  # fmt: skip
"""Functions that return real numbers if all of them are real: traced, the results are complex."""


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
        check_value(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions(name: str) -> None:
    check_value(name)
    func.make_program(FUNCTIONS[name].function)(FUNCTIONS[name].x).check()


DIFFERENTIABLE = sorted(set(NAMES) - NOT_DIFFERENTIABLE - COMPLEX - set(ALONE))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("treated_as_large")
def test_compiled_derivatives_of_large_arrays(name: str) -> None:
    with func.config.override(compiler="numpy"):
        check_derivatives(name)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.filterwarnings("ignore")
def test_compiled_derivatives(name: str) -> None:
    check_derivatives(name)


@pytest.mark.parametrize("name", sorted(NOT_STAGEABLE))
def test_functions_that_depend_on_values_are_refused(name: str) -> None:
    call = FUNCTIONS[name]
    with pytest.raises(func.errors.StagingError, match=r"depends on values|is not known"):
        func.make_program(call.function)(call.x)


@pytest.mark.parametrize("name", sorted(NOT_DIFFERENTIABLE))
def test_functions_without_a_derivative_say_so_under_jit(name: str) -> None:
    call = FUNCTIONS[name]
    with pytest.raises(func.errors.NotDifferentiableError):
        func.grad(func.jit(loss_of(smooth(call.function))))(call.x)


def check_value(name: str) -> None:
    """The compiled function gives what the function gives."""
    call = FUNCTIONS[name]
    got, expected = func.jit(call.function)(call.x), call.function(call.x)
    if name not in COMPLEX:
        return same(got, expected)
    for ours, theirs in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        assert np.iscomplexobj(ours)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def check_derivatives(name: str) -> None:
    """The gradient both ways round, the tangent, the mapped gradient."""
    call = FUNCTIONS[name]
    x = call.x
    loss = loss_of(smooth(call.function))
    gradient = func.grad(loss)(x)
    same(func.jit(func.grad(loss))(x), gradient)
    same(func.grad(func.jit(loss))(x), gradient)
    tangent = np.cos(np.arange(np.size(x))).reshape(np.shape(x)).astype(x.dtype)
    same(func.jvp(func.jit(loss), (x,), (tangent,)), func.jvp(loss, (x,), (tangent,)))
    both = np.stack([x, x])
    same(func.jit(func.vmap(func.grad(loss)))(both), func.vmap(func.grad(loss))(both))
