"""Copies that graphs keep: one of a large array for all uses between two writes, and never one that a user gets."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import copies, kept

N = 96
STEPS = 20


def matrix() -> Any:
    """A matrix that is large enough to be looked up."""
    a = np.random.default_rng(0).normal(size=(N, N)) / N
    assert a.nbytes >= copies.LARGE
    return a


def by_scan(a: Any, x: Any) -> Any:
    return np.sum(func.scan(lambda c, _: (np.tanh(a @ c), None), x, length=STEPS)[0])


def by_loop(a: Any, x: Any) -> Any:
    for _ in range(STEPS):
        x = np.tanh(a @ x)
    return np.sum(x)


def by_fori_loop(a: Any, x: Any) -> Any:
    return np.sum(func.fori_loop(0, STEPS, lambda _, c: np.tanh(a @ c), x))


def elementwise(a: Any, x: Any) -> Any:
    y = a[0] * x
    for _ in range(STEPS):
        y = np.sin(a * y) / a
    return np.sum(y)


def by_solves(a: Any, x: Any) -> Any:
    for _ in range(STEPS):
        x = np.linalg.solve(a, x)
    return np.sum(x)


def masked(a: Any, x: Any) -> Any:
    large = np.broadcast_to(a > 0, (8, N, N)).copy()
    for _ in range(STEPS):
        x = np.where(large, x, 2 * x).sum(axis=(0, 1)) / N
    return np.sum(x)


@pytest.mark.parametrize("function", [by_scan, by_loop, by_fori_loop, elementwise, by_solves, masked])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_loop_keeps_one_copy(monkeypatch: Any, function: Callable[..., Any], order: Any) -> None:
    taken: list[Any] = []

    def counted(array: Any) -> Any:
        copy = copies.kept_copy(array)
        taken.append(copy)
        return copy

    monkeypatch.setattr("func.interpreters.core.types.kept_copy", counted)
    a = np.asarray(matrix() + 2 * np.eye(N), order=order)
    func.vjp(lambda x: function(a, x), np.ones(N))
    assert len(taken) >= STEPS
    assert len({id(copy) for copy in taken}) == 1


def test_programs_hold_one_constant() -> None:
    a = matrix()
    program = func.jit(lambda x: by_loop(a, x)).lower(np.ones(N)).program
    assert len([value for value in program.constants.values() if np.shape(value) == (N, N)]) == 1


def test_copies_end_with_their_graphs() -> None:
    before = len(copies._COPIES)
    func.grad(lambda x: by_loop(matrix(), x))(np.ones(N))
    gc.collect()
    assert len(copies._COPIES) <= before


PLACES: dict[str, Any] = {
    "the first": (0, 0),
    "one in the middle": (N // 2, 3),
    "the last": (-1, -1),
    "all": ...,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_writes_between_uses_count(place: Any) -> None:
    def loss(a: Any, x: Any) -> Any:
        for _ in range(3):
            x = np.tanh(a @ x)
            a[place] = a[place] * 3
        return np.sum(x)

    a, x = matrix(), np.ones(N)
    got = func.grad(lambda x: loss(a.copy(), x))(x)
    small = func.jacfwd(lambda x: loss(a.copy(), x))(x)
    np.testing.assert_allclose(got, small, rtol=1e-10)


def test_bits_are_compared_and_not_numbers() -> None:
    a = np.zeros((N, N))
    first = kept(a)
    a[3, 3] = -0.0
    second = kept(a)
    a[3, 3] = np.nan
    third = kept(a)
    assert second is not first and np.signbit(second[3, 3]) and not np.signbit(first[3, 3])
    assert kept(a) is third and kept(a.copy()) is not third


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8", "i2", "u1", "?", "g"])
def test_dtypes_and_layouts(dtype: str) -> None:
    whole = np.ones((2 * N, 4 * N), dtype)
    for a in (whole, whole.T, whole[::2], whole[:, ::-1], whole.reshape(2, N, 4 * N).transpose(1, 0, 2)):
        copy = kept(a)
        again = kept(a)
        assert again.strides == copy.strides and again.dtype == a.dtype
        assert not np.shares_memory(copy, a)
        np.testing.assert_array_equal(copy, a)
    assert kept(whole) is kept(whole)
    assert kept(whole.T) is kept(whole.T)


def test_gradients_are_arrays_of_the_caller() -> None:
    a = matrix()
    _, pull = func.vjp(lambda x, y: np.vdot(a, x) + np.vdot(a, y), a.copy(), a.copy())
    first, second = pull(1.0)
    first += 1.0
    np.testing.assert_array_equal(second, a)
    np.testing.assert_array_equal(pull(1.0)[0], a)
