"""Donated arguments of native code: the writes into their memory, and that results are the same."""

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import pytest

import func
from tests.support.traced_memory import tracing

pytest.importorskip("llvmlite")

LONG = 1003


def _vector(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def _assigned(x: Any, index: Any, value: Any) -> Any:
    x = x.copy()
    x[index] = value
    return x


def _added(x: Any, index: Any, value: Any) -> Any:
    x = x.copy()
    np.add.at(x, index, value)
    return x


def _adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.01 * m / (np.sqrt(v) + 1e-8), m, v


def _attention(keys: Any, values: Any, k: Any, v: Any, q: Any, at: Any) -> Any:
    keys, values = _assigned(keys, at, k), _assigned(values, at, v)
    scores = keys @ q
    weights = np.exp(scores - np.max(scores))
    return weights @ values / np.sum(weights), keys, values


def _accumulated(x: Any, rows: Any) -> Any:
    return func.scan(lambda total, row: (total * 0.5 + row, np.sum(total)), x, rows)


def _loss(p: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ p["a"] + p["b"])
    return np.mean((hidden @ p["c"] - y) ** 2)


def _trained(p: Any, m: Any, x: Any, y: Any) -> Any:
    value, slope = func.value_and_grad(_loss)(p, x, y)
    m = {name: 0.9 * m[name] + slope[name] for name in m}
    return {name: p[name] - 0.1 * m[name] for name in p}, m, value


def _parameters(seed: int) -> dict[str, Any]:
    return {"a": _vector(seed, 4, 5), "b": _vector(seed + 1, 5), "c": _vector(seed + 2, 5)}


Case: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], int, int | None]
"""Function, arguments, how many of them are donated, how many results lie in donated memory (None: as it happens)."""

SHARED: dict[str, Case] = {
    "elementwise": (lambda x, g: x - 0.1 * g, (_vector(0, LONG), _vector(1, LONG)), 1, 1),
    "two dimensions": (lambda x, g: x * 2 - g.T, (_vector(0, 37, 41), _vector(1, 41, 37)), 1, 1),
    "adam": (_adam, tuple(_vector(i, LONG) ** 2 for i in range(4)), 3, 3),
    "adam in parts": (_adam, tuple(_vector(i, 3, 170) ** 2 for i in range(4)), 3, 3),
    "long body": (
        lambda x: np.sin(x) + np.cos(x) * np.exp(-x * x) + np.tanh(x) ** 2 / (1 + np.arctan(x) ** 2) + np.log1p(x * x),
        (_vector(0, LONG),),
        1,
        1,
    ),
    "identity": (lambda x, y: (x, y + 1), (_vector(0, LONG), _vector(1, 7)), 2, 2),
    "other shape": (lambda x: np.reshape(x, (17, 59)) + 1, (_vector(0, LONG),), 1, 1),
    "row": (lambda x, r: _assigned(x, 3, r), (_vector(0, 20, 30), _vector(1, 30)), 1, 1),
    "row of itself": (lambda x: _assigned(x, 3, x[3] * 2), (_vector(0, 20, 30),), 1, 1),
    "row from another": (lambda x: _assigned(x, 3, x[5] * 2 + x[2]), (_vector(0, 20, 30),), 1, 1),
    "column": (lambda x, r: _assigned(x, (slice(None), 3), r), (_vector(0, 20, 30), _vector(1, 20)), 1, 1),
    "steps": (lambda x: _assigned(x, slice(None, None, 2), x[1::2]), (_vector(0, 2 * LONG),), 1, 1),
    "two rows": (lambda x, r: _assigned(_assigned(x, 3, r), 4, r * 2), (_vector(0, 20, 30), _vector(1, 30)), 1, 1),
    "dynamic row": (lambda x, r, i: _assigned(x, i, r), (_vector(0, 20, 30), _vector(1, 30), 7), 1, 1),
    "rows at indices": (
        lambda x, r, i: _assigned(x, i, r),
        (_vector(0, 20, 30), _vector(1, 4, 30), np.array([3, 0, 19, -2])),
        1,
        1,
    ),
    "added": (lambda x, r, i: _added(x, i, r), (_vector(0, 20), _vector(1, 4), np.array([3, 3, 0, -1])), 1, 1),
    "clipped by its norm": (lambda x: x / np.sqrt(np.sum(x * x)), (_vector(0, LONG),), 1, 1),
    "softmax": (lambda x: np.exp(x) / np.sum(np.exp(x), 1, keepdims=True), (_vector(0, 23, 29),), 1, 1),
    "centred": (lambda x: x - np.mean(x, 0), (_vector(0, 23, 29),), 1, 1),
    "cache of keys and values": (
        _attention,
        (_vector(0, 16, 8), _vector(1, 16, 8), _vector(2, 8), _vector(3, 8), _vector(4, 8), 5),
        2,
        2,
    ),
    "carry of a scan": (_accumulated, (_vector(0, LONG), _vector(1, 6, LONG)), 1, 1),
    "read by a product": (lambda w, g, x: (w - g, x @ w), tuple(_vector(i, 40, 40) for i in range(3)), 1, 1),
    "float32": (lambda x, g: x - np.float32(0.1) * g, (np.ones(LONG, np.float32), np.ones(LONG, np.float32)), 1, 1),
    "complex": (lambda x: x * 1j + 1, (_vector(0, LONG) + 1j * _vector(1, LONG),), 1, 1),
    "integers": (lambda x: x * 3 - 1, (np.arange(LONG),), 1, 1),
    "training": (_trained, (_parameters(0), _parameters(3), _vector(6, 32, 4), _vector(7, 32)), 2, 6),
    "large": (lambda x, g: x - 0.1 * g, (_vector(0, 1 << 18), _vector(1, 1 << 18)), 1, 1),
    "large, two dimensions": (_adam, tuple(_vector(i, 300, 400) ** 2 for i in range(4)), 3, 3),
}

APART: dict[str, Case] = {
    "shifted": (lambda x: np.concatenate([x[1:], x[:1]]), (_vector(0, LONG),), 1, 0),
    "reversed": (lambda x: x[::-1] * 2, (_vector(0, LONG),), 1, 0),
    "transposed": (lambda x: x.T + 1, (_vector(0, 30, 30),), 1, None),
    "running": (lambda x: x[1:] - x[:-1], (_vector(0, LONG),), 1, 0),
    "read at indices": (lambda x, i: x[i] * 2, (_vector(0, LONG), np.arange(LONG)[::-1].copy()), 1, 0),
    "product": (lambda x, w: x @ w, (_vector(0, 30, 30), _vector(1, 30, 30)), 1, 0),
    "read afterwards": (
        lambda x, r: (_assigned(x, 3, r) * 2, np.sum(x, 0)),
        (_vector(0, 20, 30), _vector(1, 20, 30)[3]),
        1,
        None,
    ),
    "swapped rows": (lambda x: _assigned(_assigned(x, 0, x[1]), 1, x[0]), (_vector(0, 2, 700),), 1, None),
    "other dtype": (lambda x: x > 0, (_vector(0, LONG),), 1, 0),
    "other size": (lambda x: np.sum(x, 0), (_vector(0, 20, 30),), 1, 0),
    "number": (lambda x: x + 1, (np.array(2.0),), 1, 0),
    "two results, one array": (lambda x: (x + 1, x * 2), (_vector(0, LONG),), 1, 1),
    "two results of each other": (lambda x, y: (x + y, x[::-1] - y), (_vector(0, LONG), _vector(1, LONG)), 2, None),
}

CASES = {**SHARED, **APART}


def _copied(value: Any) -> Any:
    return func.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, value)


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_without_donation(name: str) -> None:
    f, args, donated, shared = CASES[name]
    expected = func.jit(f, compiler="llvm")(*args)
    step = func.jit(f, compiler="llvm", donate_argnums=tuple(range(donated)))
    for _ in range(2):
        given = _copied(args)
        found = step(*given)
        for one, other in zip(func.tree.leaves(found), func.tree.leaves(expected), strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)
        memory = [leaf for leaf in func.tree.leaves(given[:donated]) if isinstance(leaf, np.ndarray)]
        taken = [leaf for leaf in func.tree.leaves(found) if any(np.shares_memory(leaf, one) for one in memory)]
        assert shared is None or len(taken) == shared
        kept = func.tree.leaves(given[donated:])
        assert all(np.array_equal(one, two) for one, two in zip(kept, func.tree.leaves(args[donated:]), strict=True))


def _nan_safe(x: Any, y: Any) -> Any:
    slope = func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x) / x * x, 0.0)))(x)
    return x - 0.5 * slope * y, slope


def test_a_nan_is_found_before_anything_is_overwritten() -> None:
    x, y = np.array([4.0, 9.0, 1.0]), np.ones(3)
    step = func.jit(_nan_safe, compiler="llvm", donate_argnums=0)
    found = step(x, y)[0]
    assert np.shares_memory(found, x)
    np.testing.assert_allclose(found, [3.875, 9 - 1 / 12, 0.75])
    x = np.array([0.0, 4.0, 9.0])
    for one, other in zip(step(x, y), func.jit(_nan_safe)(np.array([0.0, 4.0, 9.0]), y), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.array_equal(x, [0.0, 4.0, 9.0])


def test_an_index_out_of_range_is_found_before_anything_is_overwritten() -> None:
    step = func.jit(lambda x, i: (_assigned(x * 2, i, 0.0), x[0]), compiler="llvm", donate_argnums=0)
    x = np.arange(6.0)
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        step(x, 6)
    assert np.array_equal(x, np.arange(6.0))
    found, first = step(x, -1)  # it was not given up by the call that failed
    assert np.array_equal(found, [0, 2, 4, 6, 8, 0])
    assert first == 0


def test_a_singular_matrix_is_found_before_anything_is_overwritten() -> None:
    step = func.jit(lambda x, a: x - np.linalg.solve(a, x), compiler="llvm", donate_argnums=0)
    x = np.ones(3)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        step(x, np.zeros((3, 3)))
    assert np.array_equal(x, np.ones(3))
    np.testing.assert_allclose(step(x, 2 * np.eye(3)), 0.5)


def _views() -> dict[str, tuple[Any, Any]]:
    whole = np.arange(24.0)
    locked = np.arange(6.0)
    locked.flags.writeable = False
    return {
        "part of an array": (whole[6:12], whole),
        "every other": (np.arange(12.0)[::2], whole),
        "read only": (locked, locked),
        "foreign memory": (np.frombuffer(bytearray(48), np.float64), whole),
        "unaligned": (np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64), whole),
        "other byte order": (np.arange(6.0).astype(">f8"), whole),
        "Fortran order": (np.asfortranarray(np.arange(6.0).reshape(2, 3)), whole),
    }


@pytest.mark.parametrize("kind", _views())
def test_memory_that_is_not_the_arrays_own_is_left_alone(kind: str) -> None:
    x, whole = _views()[kind]
    before, others = x.copy(), whole.copy()
    step = func.jit(lambda x: 2 * x + 1, compiler="llvm", donate_argnums=0)
    found = step(x)
    assert not np.shares_memory(found, x)
    assert np.array_equal(x, before)
    assert np.array_equal(whole, others)
    np.testing.assert_array_equal(found, 2 * before + 1)
    again = step(found)
    assert np.shares_memory(again, found)
    np.testing.assert_array_equal(again, 4 * before + 3)


def test_an_array_given_twice_is_read_whole() -> None:
    for numbers in (0, (0, 1)):
        x = np.arange(5.0)
        step = func.jit(lambda x, y: (x + 1, y * x[::-1]), compiler="llvm", donate_argnums=numbers)
        one, two = step(x, x)
        np.testing.assert_array_equal(one, np.arange(5.0) + 1)
        np.testing.assert_array_equal(two, np.arange(5.0) * np.arange(5.0)[::-1])
        assert not np.shares_memory(one, two)


def test_what_was_donated_is_refused_by_every_jitted_function() -> None:
    step = func.jit(lambda p: {"a": p["a"] * 2}, compiler="llvm", donate_argnums=0)
    other = func.jit(lambda x: x + 1, compiler="llvm")
    first = {"a": np.ones(4)}
    other(np.ones(4))
    second = step(first)
    assert np.array_equal(other(second["a"]), [3.0] * 4)
    for again, given in ((other, first["a"]), (step, first), (func.jit(np.sum), first["a"])):
        with pytest.raises(func.errors.DonatedBufferError, match="donated to an earlier call"):
            again(given)


def test_a_result_that_is_an_argument_is_the_donated_memory() -> None:
    x = np.arange(4.0)
    found = func.jit(lambda x: x, compiler="llvm", donate_argnums=0)(x)
    assert found is not x
    assert np.shares_memory(found, x)


def test_numbers_among_donated_arguments() -> None:
    given = {"x": np.ones(3), "rate": 0.5, "count": np.float64(2)}
    found = func.jit(lambda p: {**p, "x": p["x"] * p["rate"]}, compiler="llvm", donate_argnums=0)(given)
    assert np.shares_memory(found["x"], given["x"])
    assert (found["rate"], found["count"]) == (0.5, 2)


def test_programs_in_parts_keep_their_native_parts() -> None:
    def f(x: Any, g: Any) -> Any:
        return x - np.sin(np.fft.irfft(np.fft.rfft(g) * 0.5, 64)) * np.exp(-x * x)

    x, g = _vector(0, 64), _vector(1, 64)
    expected = func.jit(f)(x, g)
    np.testing.assert_allclose(func.jit(f, compiler="llvm", donate_argnums=0)(x, g), expected, rtol=1e-14)


def test_lower_and_profile_do_not_give_anything_up() -> None:
    step = func.jit(lambda x: np.sin(x) * 2, compiler="llvm", donate_argnums=0)
    x = np.ones(1000)
    assert "sin, multiply over 1000 → in0" in str(step.lower(x)) or "sin over 1000 → in0" in str(step.lower(x))
    step.profile(x, repeat=2)
    assert np.array_equal(x, np.ones(1000))
    assert np.shares_memory(step(x), x)


def _large() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]]:
    table, row, picked = np.ones((4000, 50)), np.ones(50), np.arange(4)
    return {
        "adam": (_adam, tuple([np.ones(200_000) for _ in range(4)]), 3),
        "row": (lambda x, r: _assigned(x, 3, r), (table, row), 1),
        "dynamic row": (lambda x, r, i: _assigned(x, i, r), (table, row, 7), 1),
        "added": (_added, (table, picked, table[:4] * 2), 1),
        "cache of keys and values": (_attention, (table, table + 1, row, row, row, 5), 2),
    }


@pytest.mark.parametrize("name", _large())
def test_no_memory_is_made_for_results(name: str) -> None:
    f, args, donated = _large()[name]
    step = func.jit(f, compiler="llvm", donate_argnums=tuple(range(donated)))
    step(*_copied(args))
    given = _copied(args)
    with tracing():
        step(*given)
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < args[0].nbytes / 4


def test_writes_through_at_and_in_place() -> None:
    def f(x: Any, i: Any) -> Any:
        x[i] += 2.0
        return x.at[0].set(7.0)

    x = np.zeros((500, 3))
    found = func.jit(f, compiler="llvm", donate_argnums=0)(x, 4)
    assert np.shares_memory(found, x)
    assert found.sum() == 3 * 7 + 3 * 2


def test_threads_that_donate_their_own_arrays() -> None:
    step = func.jit(lambda p, g: (p - 0.5 * g, np.sum(p)), compiler="llvm", donate_argnums=0)

    def work(number: int) -> Any:
        p = np.full(20_000, float(number))
        for _ in range(50):
            p, _ = step(p, np.ones(20_000))
        return p

    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(work, range(8))):
            assert np.array_equal(found, np.full(20_000, number - 25.0))


STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, i: a + b,
    lambda a, b, i: a - b[::-1],
    lambda a, b, i: _assigned(a, 2, b[1] * 2),
    lambda a, b, i: _assigned(a, i, b[i]),
    lambda a, b, i: a - np.max(b, 0),
    lambda a, b, i: a / (1 + np.sum(b * b, 1, keepdims=True)),
    lambda a, b, i: _assigned(b, (slice(None), 1), a[:, 0]),
    lambda a, b, i: np.concatenate([a[:3], b[3:]]),
    lambda a, b, i: np.tanh(a).T @ b / 7,
    lambda a, b, i: func.fori_loop(0, 3, lambda k, c: c * 0.5 + b * 0.1, a),
    lambda a, b, i: func.grad(lambda c: np.sum(np.tanh(c * b)))(a),
    lambda a, b, i: func.cond(np.sum(b) > 0, lambda c: c + 1, lambda c: c * 2, a),
    lambda a, b, i: func.scan(lambda c, row: (c + row, c * row), a[0], b)[1],
    lambda a, b, i: a,
]


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed: int) -> None:
    choices = np.random.default_rng(seed).integers(0, len(STEPS), size=(6, 3)).tolist()

    def f(x: Any, y: Any, i: Any) -> Any:
        values = [x, y]
        for step, one, other in choices:
            values.append(STEPS[step](values[one % len(values)], values[other % len(values)], i))
        return values[-1], {"a": values[-2], "b": values[3]}, np.sum(values[4])

    x, y = _vector(seed, 6, 6), _vector(seed + 100, 6, 6)
    expected = func.jit(f, compiler="llvm")(x, y, 4)
    found = func.jit(f, compiler="llvm", donate_argnums=(0, 1))(x.copy(), y.copy(), 4)
    for one, other in zip(func.tree.leaves(found), func.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def _deep(layers: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    def loss(p: Any, x: Any) -> Any:
        for w, b in p:
            x = np.tanh(x @ w + b)
        return np.mean(x * x)

    def step(p: Any, m: Any, v: Any, x: Any) -> Any:
        value, slope = func.value_and_grad(loss)(p, x)
        made = func.tree.map(lambda *leaves: list(_adam(*leaves)), p, m, v, slope)
        return tuple([[tuple([leaf[i] for leaf in pair]) for pair in made] for i in range(3)]), value

    states = [[(_vector(i, 6, 6), _vector(i + 1, 6)) for i in range(layers)] for _ in range(2)]
    return step, (*states, func.tree.map(np.square, states[0]), _vector(0, 10, 6))


def test_a_nest_that_is_full_is_checked_by_another() -> None:
    step, args = _deep(26)
    expected = func.jit(step, compiler="llvm")(*args)
    given = _copied(args)
    found, _ = func.jit(step, compiler="llvm", donate_argnums=(0, 1, 2))(*given)
    for one, other in zip(func.tree.leaves(found), func.tree.leaves(expected[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    memory, leaves = func.tree.leaves(given), func.tree.leaves(found)
    assert sum([any(np.shares_memory(leaf, one) for one in memory) for leaf in leaves]) > 0.9 * len(leaves)
