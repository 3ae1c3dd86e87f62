"""Donated arrays: the ones that compiled code may write to."""

import numpy as np
import pytest

import func
from func.compilation.donation import overwritable


def _cases() -> dict[str, tuple[list[np.ndarray], set[int]]]:
    """For each case the leaves, and the places of those that are alone with their memory."""
    whole = np.arange(12.0)
    borrowed = np.frombuffer(bytearray(8 * 12), np.float64)
    alone = np.ones(3)
    return {
        "apart": ([np.ones(3), np.ones(3)], {0, 1}),
        "twice": ([alone, alone], set()),
        "a view beside its base": ([whole, whole[2:4], alone], {2}),
        "views": ([whole[:6], whole[3:], alone], {2}),
        "not contiguous": ([whole.reshape(3, 4).T, alone], {1}),
        "foreign memory": ([borrowed, np.ones(2)], {1}),
        "foreign memory seen through views": ([borrowed[:8], borrowed[1:3], borrowed[4:6], alone], {3}),
        "empty": ([np.ones(0), alone], {0, 1}),
        "scalars": ([np.float64(1), 2.0, alone], {2}),  # type: ignore[list-item]
    }


@pytest.mark.parametrize("case", _cases())
def test_arrays_that_share_memory_are_copied(case: str) -> None:
    leaves, alone = _cases()[case]
    arrays = {place for place, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)}
    given = overwritable(leaves, arrays)
    assert {place for place in arrays if given[place] is leaves[place]} == alone
    assert all(np.array_equal(one, leaf) for one, leaf in zip(given, leaves, strict=True))
    assert all(one is leaf for one, leaf in zip(overwritable(leaves, set()), leaves, strict=True))


def test_what_a_donating_call_returns_may_be_donated_to_the_next() -> None:
    step = func.jit(lambda params: [p * 0.5 for p in params], donate_argnums=0)
    first = [np.ones(4), np.full(4, 2.0)]
    second = step(first)
    third = step(second)
    assert np.shares_memory(third[0], first[0])
    assert np.array_equal(third, [[0.25] * 4, [0.5] * 4])


@pytest.mark.parametrize("compiler", [None, "numpy"])
def test_static_arguments_do_not_shift_what_is_donated(compiler: str | None) -> None:
    step = func.jit(lambda n, x, y: x * n + y, static_argnums=0, donate_argnums=1, compiler=compiler)
    for size in (4, 300_000):
        x, y = np.ones(size), np.full(size, 2.0)
        np.testing.assert_array_equal(step(3, x, y), np.full(size, 5.0))
        np.testing.assert_array_equal(y, np.full(size, 2.0))
        with pytest.raises(func.errors.DonatedBufferError):
            step(3, x, y)


@pytest.mark.parametrize("option", ["donate_argnums", "static_argnums"])
def test_positions_that_the_function_has_not_are_refused_at_once(option: str) -> None:
    with pytest.raises(func.errors.ArgumentError) as caught:
        func.jit(lambda x, y: x + y, **{option: (0, 5)})
    assert str(caught.value) == f"func.jit: {option}=(5,) is out of range, <lambda> takes 2 positional arguments"
    func.jit(lambda *args: args[0], **{option: (0, 5)})  # it may be called with so many
