"""Programs that are printed as several functions, one after each item here, give what one function gives."""

import numpy as np
import pytest

import func
from func.backends.llvm.codegen import printer
from func.backends.loops.schedule import MOST_CODE

A = np.arange(16.0).reshape(4, 4) / 7 + 4 * np.eye(4)
X = np.array([0.3, -1.2, 2.0, 0.7])
TABLE = np.sin(np.arange(40.0))


def many(x):
    for i, f in enumerate(
        [np.sin, np.cos, np.sin, np.tanh, np.arctan, np.cos, np.exp, np.sin, np.sinh, np.tanh, np.cos, np.exp]
    ):
        x = (f(x) + TABLE[i : i + 4]) / (1 + np.sum(x * x)) @ A / 10
    return x


def with_library(x):
    b = A @ A.T + np.diag(x**2)
    return np.linalg.solve(b, x) + np.linalg.cholesky(b).sum() + np.linalg.eigh(b)[0]


def with_loops(x):
    total, rows = func.scan(lambda c, i: (np.tanh(c @ A / 9), c * i), x, np.arange(5.0))
    end = func.while_loop(lambda v: v[0] < 10.0, lambda v: v * 1.5 + 1.0, np.abs(total), max_steps=9)
    return func.cond(end[1] > 3.0, lambda v: v * rows[2], lambda v: -v, end) + rows.sum(0)


def with_indices(x):
    return x[np.argsort(x)] * np.take(TABLE, np.array([3, 1, 2, 0])) + np.cumsum(x)


PROGRAMS = [many, with_library, with_loops, with_indices]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(printer, "LONGEST", 0)


@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_gradients(short, f):
    np.testing.assert_allclose(func.jit(f, compiler="llvm")(X), f(X), rtol=1e-12)
    loss = lambda x: np.sum(f(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(func.jit(func.grad(loss), compiler="llvm")(X), func.grad(loss)(X), rtol=1e-9)


def test_there_are_several_functions(short):
    ir = func.jit(many, compiler="llvm").lower(X).llvm_ir
    assert ir.count("define internal void") > 10


def test_code_without_a_loop_is_cut_too(monkeypatch):
    def straight(x):
        values = [x]
        for i in range(1500):
            a, b = values[-1], values[-(i * 7 % 11) - 1 if i > 11 else 0]
            values.append(np.sin(a) / 2 + b / 4 if i % 3 else a * 0.5 - b / 4)
        return values[-1]

    whole = func.jit(straight, compiler="llvm")(X)
    np.testing.assert_allclose(whole, straight(X), rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(printer, "LONGEST", 1000)
    cut = func.jit(lambda x: straight(x), compiler="llvm")
    functions = cut.lower(X).llvm_ir.split("\ndefine ")
    assert max(len(function.splitlines()) for function in functions) < 1000 + 4 * MOST_CODE
    np.testing.assert_array_equal(cut(X), whole)


def test_an_error_in_a_part_ends_the_program(short):
    f = func.jit(lambda x, i: np.sort(np.sin(np.linalg.cholesky(A - 9 * np.diag(x)) @ x))[i], compiler="llvm")
    with pytest.raises(np.linalg.LinAlgError):
        f(np.abs(X), 0)
    with pytest.raises(IndexError):
        func.jit(lambda x, i: np.sort(np.sin(x)[i] * np.sort(x)), compiler="llvm")(X, 7)


def test_the_profile_counts_all_parts(short):
    assert "sin" in str(func.jit(many, compiler="llvm").profile(X))
