"""Patterns hold every nonzero of the Jacobian: for each primitive's samples, control flow and calls; and are tight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, StagingError
from func.interpreters.core import PRIMITIVES, ZERO
from func.sparse_derivatives.dependence import UNKNOWN, dependence
from func.sparse_derivatives.index_sets import IndexSets, union
from tests.support.samples import SAMPLES

LARGEST = 30
"""Samples of more elements are looked at by some directions instead of all."""


def tangents_of(name: str, sample: Any, position: int) -> list[tuple[Any, list[Any]]]:
    """Directions of an argument, and the tangents of all outputs along them."""
    primitive = PRIMITIVES[name]
    x = np.asarray(sample.args[position])
    numbers = range(x.size) if x.size <= LARGEST else range(0, x.size, x.size // 8)
    results = []
    for number in numbers:
        direction = np.zeros(x.size, x.dtype)
        direction[number] = 1
        tangent = direction.reshape(x.shape)
        tangents = tuple([tangent if i == position else ZERO for i in range(len(sample.args))])
        out, found = primitive.forward(tuple(sample.args), tangents, sample.params)
        outs, found = (out, found) if primitive.multiple else ((out,), (found,))
        found = [ZERO] * len(outs) if found is ZERO else found
        shaped = [np.zeros(np.shape(o)) if t is ZERO else t for o, t in zip(outs, found, strict=True)]
        results.append((number, [np.broadcast_to(t, np.shape(o)) for o, t in zip(outs, shaped, strict=True)]))
    return results


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLES)
def test_patterns_hold_every_nonzero(name: str) -> None:
    primitive = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        for position in sample.differentiable:
            x = np.asarray(sample.args[position])
            if not x.size:
                continue

            def call(value: Any, sample: Any = sample, position: int = position) -> Any:
                args = list(sample.args)
                args[position] = value
                out = primitive(*args, **sample.params)
                return tuple(out) if primitive.multiple else (out,)

            program = func.make_program(call)(sample.args[position])
            identity = IndexSets.identity(x.shape, 0, x.size)
            tangents = tangents_of(name, sample, position)
            for values, at_point in (([UNKNOWN], False), ([x], True)):
                for k, sets in enumerate(dependence(program, [identity], values, at_point)):
                    for number, outs in tangents:
                        moves = np.flatnonzero(np.nan_to_num(np.ravel(outs[k])))
                        held = () if sets is None else sets.rows[:, [number]].nonzero()[0]
                        assert np.isin(moves, held).all(), (sample.params, position, at_point, k)


def shifted(x: Any) -> Any:
    return np.roll(x, 1) * x + np.where(np.arange(len(x)) < 2, x[::-1], 0)


MASK = np.array([1.0, 0, 0, 1, 1, 0])
BANDED = np.eye(6) + np.eye(6, k=1)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shifts": shifted,
    "a constant with zeros": lambda x: x * MASK,
    "a constant matrix with zeros": lambda x: BANDED @ np.sin(x),
    "sums of parts": lambda x: np.sum(x.reshape(2, 3), axis=1),
    "running sums": lambda x: np.cumsum(x),
    "a convolution": lambda x: np.convolve(x, [1.0, 0.0, 2.0]),
    "writes": lambda x: func.numpy.concatenate([x[::2], x[:1] * x[1:2], np.zeros(2)]),
    "a scan": lambda x: func.scan(lambda c, t: (c * t, c), x[0], x)[1],
    "a reversed scan": lambda x: func.scan(lambda c, t: (c + t, c), x[0], x, reverse=True)[1],
    "a loop of known length": lambda x: func.fori_loop(0, 2, lambda i, y: y * np.roll(y, 1), x),
    "a jitted call": lambda x: func.jit(shifted)(x),
    "a checkpoint": lambda x: func.checkpoint(shifted)(x),
    "batches of matrices": lambda x: np.linalg.solve(x.reshape(1, 2, 3)[:, :, :2] + 3 * np.eye(2), np.ones((1, 2, 1))),
    "softmax by rows": lambda x: func.special.softmax(x.reshape(2, 3), axis=1),
    "a gradient": func.grad(lambda x: np.sum(x[1:] ** 2 * x[:-1])),
    "a linear gradient": func.grad(lambda x: np.sum(3 * x) + x[0] ** 2),
    "additions at repeated places": lambda x: np.bincount(np.array([0, 0, 1, 3, 3, 3]), weights=x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_patterns_are_exact(name: str) -> None:
    function = FUNCTIONS[name]
    x = np.linspace(0.3, 1.9, 6)
    jacobian = func.jacobian(function)(x).reshape(-1, 6)
    assert np.array_equal(func.sparsity(function)(x).toarray(), jacobian != 0)


def test_only_infinite_divisors_remove_entries() -> None:
    pattern = func.sparsity(lambda x: x / np.array([1.0, np.nan, np.inf]))(np.ones(3))
    assert pattern.toarray().tolist() == [[True, False, False], [False, True, False], [False, False, False]]


LOOSE: dict[str, Callable[..., Any]] = {
    "a loop of unknown length": lambda x: func.while_loop(lambda y: y[0] < 5, lambda y: y + 0.5 * np.roll(y, 1), x),
    "branches": lambda x: func.cond(x[0] > 1, lambda y: y * y[::-1], lambda y: y * 2, x),
    "a sort": lambda x: np.sort(x),
    "an index that depends on values": lambda x: x[np.argmax(x)] * x,
    "a custom gradient": lambda x: custom(x),
}


@func.custom_vjp
def custom(x: Any) -> Any:
    return np.roll(x, 1) ** 2


custom.defvjp(lambda x: (np.roll(x, 1) ** 2, x), lambda x, ct: (2 * x * np.roll(ct, -1),))


@pytest.mark.parametrize("name", LOOSE)
def test_patterns_hold_what_depends_on_values(name: str) -> None:
    x = np.linspace(0.3, 1.9, 6)
    for at_point in (False, True):
        pattern = func.sparsity(LOOSE[name], at_point=at_point)(x).toarray()
        assert not (func.jacrev(LOOSE[name])(x) != 0)[~pattern].any()


def test_a_long_scan_is_followed_to_a_fixed_point() -> None:
    def function(x: Any) -> Any:
        return func.scan(lambda c, t: (c * x[1], c + t), x[0], np.zeros(3000))[1]

    pattern = func.sparsity(function)(np.ones(4)).toarray()
    assert np.array_equal(pattern, np.tile([True, True, False, False], (3000, 1)))


def test_loops_whose_sets_grow_for_long_depend_on_everything() -> None:
    def rolled(x: Any) -> Any:
        return func.while_loop(lambda y: y[0] < 5, lambda y: y + np.roll(y, 1), x)

    assert func.sparsity(lambda x: (rolled(x), x * 2))(np.ones(300)).nnz == 300 * 300 + 300

    def rolled_in_rows(x: Any) -> Any:
        return func.while_loop(lambda y: y[0, 0] < 5, lambda y: y + np.roll(y, 1, axis=1), x.reshape(20, 15))

    assert func.sparsity(rolled_in_rows)(np.ones(300)).nnz == 20 * 15 * 15
    with pytest.raises(ArgumentError, match="not sparse"):
        func.sparsity(rolled)(np.ones(30_000))


def test_the_pattern_at_a_point() -> None:
    x = np.array([1.0, -1.0, 2.0])
    pattern = func.sparsity(lambda x: np.maximum(x, 0) * np.array([1.0, 1.0, 0.0]), at_point=True)(x)
    assert pattern.toarray().tolist() == [[True, False, False], [False, False, False], [False, False, False]]


def test_rosenbrock_is_tridiagonal() -> None:
    pattern = func.sparsity(func.grad(lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)))(
        np.ones(9)
    )
    assert np.array_equal(pattern.toarray(), np.abs(np.subtract.outer(range(9), range(9))) <= 1)


def test_trees_and_several_arguments_are_one_matrix() -> None:
    def function(tree: Any, scale: float, *, weight: float) -> Any:
        return {"a": tree["u"] * scale, "b": weight * np.sum(tree["v"])}

    pattern = func.sparsity(function, argnums=(0, 1), argnames="weight")(
        {"u": np.ones(2), "v": np.ones(2)}, 2.0, weight=3.0
    )
    assert pattern.toarray().astype(int).tolist() == [[1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]]


def test_large_sets_become_rows() -> None:
    x = np.ones((30, 30))
    pattern = func.sparsity(lambda x: x @ x.T)(x)
    assert np.array_equal(pattern.toarray(), func.jacobian(lambda x: x @ x.T)(x).reshape(900, 900) != 0)


def test_unions_keep_each_number_once() -> None:
    sets = IndexSets.identity((4,), 0, 4)
    assert union((4,), [sets, sets, sets]).rows.nnz == 4


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: x[x > 0], StagingError, "depends on values"),
        (lambda x: x if x[0] > 0 else -x, StagingError, "abstract arrays"),
    ],
)
def test_functions_that_depend_on_values_are_refused(function: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        func.sparsity(function)(np.ones(3))


def test_a_dense_pattern_of_a_large_function_is_refused() -> None:
    with pytest.raises(ArgumentError, match="not sparse"):
        func.sparsity(lambda x: x / np.sum(x))(np.ones(100_000))


def test_pictures(tmp_path: Any) -> None:
    text = func.spy(np.eye(200), tmp_path / "a.svg", width=4)
    assert text.splitlines()[0] == "200 × 200, 200 entries, each cell 50 × 50"
    assert (tmp_path / "a.svg").read_text().count("<rect") == 5
    with pytest.raises(ArgumentError, match=r"\.svg"):
        func.spy(np.eye(2), tmp_path / "a.png")
    with pytest.raises(ArgumentError, match="matrix"):
        func.spy(np.ones(3))
