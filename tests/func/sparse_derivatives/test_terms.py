"""Entries computed term by term are those of the dense Jacobian: for each primitive's samples, and for stencils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import func
from func.errors import NotDifferentiableError
from func.interpreters.core import PRIMITIVES
from func.sparse_derivatives.boxes import windowed
from func.sparse_derivatives.dependence import UNKNOWN, dependence
from func.sparse_derivatives.index_sets import IndexSets
from func.sparse_derivatives.terms import DerivativeTerm, NotWorthwhile, entries, merged
from tests.func.sparse_derivatives.test_patterns import LARGEST, tangents_of
from tests.support.samples import SAMPLES

ANY_WORK = 10**9


def pattern_of(program: Any, shape: Sequence[int]) -> Any:
    """The pattern by the one input of a Program."""
    size = int(np.prod(shape))
    sets = dependence(program, [IndexSets.identity(tuple(shape), 0, size)], [UNKNOWN])
    empty = [scipy.sparse.csr_array((int(np.prod(np.shape(out))), size), dtype=bool) for out in program.outputs]
    blocks = [none if x is None else x.rows for none, x in zip(empty, sets, strict=True)]
    pattern = scipy.sparse.csr_array(scipy.sparse.vstack(blocks, format="csr"))
    pattern.sum_duplicates()
    return pattern


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLES)
def test_terms_are_the_tangents(name: str) -> None:
    primitive = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        for position in sample.differentiable:
            x = np.asarray(sample.args[position])
            if not x.size or x.size > LARGEST or x.dtype.kind != "f":
                continue

            def call(value: Any, sample: Any = sample, position: int = position) -> Any:
                args = list(sample.args)
                args[position] = value
                out = primitive(*args, **sample.params)
                return tuple(out) if primitive.multiple else (out,)

            program = func.make_program(call)(sample.args[position])
            pattern = pattern_of(program, x.shape)
            try:
                data = entries(program, [x], [0], pattern, ANY_WORK)
            except (NotWorthwhile, NotDifferentiableError):  # of a traced factor, as in jit
                continue
            matrix = scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape).toarray()
            for number, outs in tangents_of(name, sample, position):
                exact = np.concatenate([np.ravel(out) for out in outs])
                np.testing.assert_allclose(matrix[:, number], exact, rtol=1e-5, atol=1e-6)


def periodic(u: Any) -> Any:
    grid = u.reshape(6, 5)
    around = np.roll(grid, 1, 0) + np.roll(grid, -1, 0) + np.roll(grid, 1, 1) + np.roll(grid, -1, 1)
    return (around - 4 * grid + grid**3).ravel()


def bounded(u: Any) -> Any:
    grid = np.pad(u.reshape(6, 5), 1)
    around = grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2]
    return (around * grid[1:-1, 1:-1]).ravel()


def two_fields(u: Any) -> Any:
    a, b = u.reshape(2, -1)
    reaction = a * b * b
    return np.concatenate([np.roll(a, 1) - 2 * a + np.roll(a, -1) - reaction, np.diff(b, n=2) + reaction[1:-1]])


def fluxes(u: Any) -> Any:
    flux = np.where(u > 0, u**2, np.roll(u, -1) * u)
    return u[1:-1] - (flux[1:-1] - flux[:-2])


def rotated(u: Any) -> Any:
    points, axes = u[:15].reshape(5, 3), u[15:].reshape(5, 3)
    return np.cross(points, axes) / np.sqrt(np.sum(axes**2, axis=1))[:, None]


STENCILS: dict[str, Callable[[Any], Any]] = {
    "a periodic grid": periodic,
    "a bounded grid": bounded,
    "two fields": two_fields,
    "fluxes": fluxes,
    "rotations": rotated,
    "a convolution": lambda u: np.convolve(u, [1.0, -2.0, 1.0]) ** 2,
    "gathered elements": lambda u: u[np.arange(30) * 7 % 30] * u[::-1],
    "repeated elements": lambda u: np.repeat(u[:4], 3) * np.tile(u[:3], 4),
    "writes": lambda u: func.numpy.concatenate([u[::2] * u[1::2], np.mean(u.reshape(10, 3), axis=1)]),
    "small matrices": lambda u: u[:24].reshape(6, 2, 2) @ u[6:].reshape(6, 2, 2),
    "a jitted call": func.jit(periodic),
    "several outputs": lambda u: (u[1:] * u[:-1], {"a": np.float32(2) * u[3:].astype(np.float32)}, np.ones(2)),
    "a zero entry": lambda u: u * np.roll(u, 1) - np.roll(u, 1) * u + u,
    "a constant": lambda u: 3 * u - np.roll(u, 2),
    "zeros of both signs": lambda u: np.copysign(u, np.array([0.0, -0.0] * 15)) * np.roll(u, 1),
    "complex zeros of both signs": lambda u: np.sqrt(np.abs(u) * np.array([-1 + 0j, complex(-1, -0.0)] * 15)).imag,
    "few elements of many": lambda u: np.cumprod(
        np.zeros((30, 30)) + np.pad(u[:3].reshape(1, 3), ((0, 29), (0, 27))), 1
    ),
}


@pytest.mark.parametrize("name", STENCILS)
def test_stencils_take_no_products(name: str) -> None:
    function = STENCILS[name]
    x = np.random.default_rng(0).normal(size=30)
    program = func.make_program(lambda u: tuple(func.tree.leaves(function(u))))(x)
    pattern = pattern_of(program, x.shape)
    data = entries(program, [x], [0], pattern, ANY_WORK)
    matrix = scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    dense = np.concatenate([np.reshape(block, (-1, 30)) for block in func.tree.leaves(func.jacrev(function)(x))])
    np.testing.assert_allclose(matrix.toarray(), dense, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(func.sparse_jacobian(function)(x).toarray(), dense, rtol=1e-6, atol=1e-9)

    def squares(u: Any) -> Any:
        return sum([np.sum(np.sin(out) * out) for out in func.tree.leaves(function(u))])

    hessian = func.sparse_hessian(squares, check=True)(x).toarray()
    np.testing.assert_allclose(hessian, func.hessian(squares)(x), rtol=1e-5, atol=1e-5)


def test_terms_are_added_where_no_element_gets_two_numbers() -> None:
    one, other = (
        DerivativeTerm(np.array([1, 2, 0]), np.array([1.0, 2.0, 0.0])),
        DerivativeTerm(np.array([1, 0, 3]), np.array([5.0, 0.0, 7])),
    )
    (both,) = merged([one, other], np.dtype(float))
    assert both.numbers.tolist() == [1, 2, 3]
    assert both.tangent.tolist() == [6, 2, 7]
    clash = DerivativeTerm(np.array([2, 2, 2]), None)
    assert len(merged([one, clash], np.dtype(float))) == 2


def test_a_term_is_spread_over_those_that_have_its_numbers() -> None:
    columns = [DerivativeTerm(np.full((2, 2), number), np.full((2, 2), float(number))) for number in (1, 2)]
    own = DerivativeTerm(np.array([[1, 2], [1, 2]]), np.array([[10.0, 20], [30, 40]]))
    first, second = merged([*columns, own], np.dtype(float))
    assert first.tangent.tolist() == [[11, 1], [31, 1]]
    assert second.tangent.tolist() == [[2, 22], [2, 42]]


@pytest.mark.parametrize("name", STENCILS)
def test_windows_are_parts_of_the_outputs(name: str) -> None:
    function = STENCILS[name]
    x = np.random.default_rng(0).normal(size=30)
    program = func.make_program(lambda u: tuple(func.tree.leaves(function(u))))(x)
    whole = program.run([x])
    for start, stop in ((0, 1), (1, 2), (2, 7), (0, 8)):
        boxes = [((start, min(stop, len(out))), *[(0, n) for n in out.shape[1:]]) for out in whole]
        if any([b <= a for box in boxes for a, b in box]):
            continue
        for part, out, box in zip(windowed(program, [x], boxes), whole, boxes, strict=True):
            np.testing.assert_allclose(part, out[tuple([slice(*entry) for entry in box])])


PADDED: dict[str, Callable[[Any], Any]] = {
    "before": lambda x: np.pad(x, 3) * 2,
    "rows": lambda x: np.pad(x.reshape(3, 4), ((1, 2), (0, 1)))[:, None, 1:] + x[2],
    "joined": lambda x: np.concatenate([x[:3], x[4:] * 2, np.ones(2)])[1:],
    "an integer": lambda x: np.stack([x.reshape(3, 4)[1], x[::3]]) - x[0],
    "branches": lambda x: np.where(x > 0, np.roll(x, 5), x[3]),
}


@pytest.mark.parametrize("name", PADDED)
def test_windows_of_every_place(name: str) -> None:
    x = np.random.default_rng(1).normal(size=12)
    program = func.make_program(PADDED[name])(x)
    (whole,) = program.run([x])
    for start in range(whole.shape[0]):
        for stop in range(start + 1, whole.shape[0] + 1):
            box = ((start, stop), *[(n // 2, n) for n in whole.shape[1:]])
            (part,) = windowed(program, [x], [box])
            np.testing.assert_array_equal(part, whole[tuple([slice(*entry) for entry in box])])


def test_patterns_may_be_wider_than_the_terms() -> None:
    x = np.linspace(1, 2, 40)
    program = func.make_program(lambda u: np.stack([u[0] * u[39], u[1] ** 2, u[2] * u[3]]))(x)
    pattern = scipy.sparse.csr_array(np.ones((3, 40), bool))
    data = entries(program, [x], [0], pattern, ANY_WORK)
    np.testing.assert_allclose(data.reshape(3, 40), func.jacobian(lambda u: program.run([u])[0])(x))
    assert entries(program, [x], [0], scipy.sparse.csr_array(np.eye(3, 40, dtype=bool)), ANY_WORK).shape == (3,)
