"""Collectives over the batch of a vmap: values, both derivatives, nested axes, staging, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func import collectives, errors

Function = Callable[[Any], Any]

X = np.array([1.0, 2.0, 4.0, 4.0])
PRIMITIVES = np.arange(8.0).reshape(4, 2) / 5 + 0.1
WEIGHTS = np.array([0.5, -1.0, 2.0, 3.0])
HIT = X == 4.0

# A function of one batch element, and the same function of the whole batch.
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "psum": (lambda x: collectives.psum(np.sin(x), "i") * x, lambda xs: np.sum(np.sin(xs)) * xs),
    "pmean": (lambda x: x - collectives.pmean(x * x, "i"), lambda xs: xs - np.mean(xs * xs)),
    "pmax": (lambda x: collectives.pmax(x, "i") * x, lambda xs: np.max(xs) * xs),
    "pmin": (lambda x: x / collectives.pmin(x + 1, "i"), lambda xs: xs / np.min(xs + 1)),
    "all_gather": (
        lambda x: np.sum(np.cos(collectives.all_gather(x * x, "i") * x) * WEIGHTS),
        lambda xs: np.cos(xs[:, None] * xs * xs) @ WEIGHTS,
    ),
    "reduce_scatter": (
        lambda x: collectives.reduce_scatter(np.sin(x * np.arange(1.0, 5.0)), "i") * x,
        lambda xs: np.sum(np.sin(xs[:, None] * np.arange(1.0, 5.0)), 0) * xs,
    ),
    "all_to_all": (
        lambda x: collectives.all_to_all(np.cos(x * np.arange(1.0, 5.0)), "i", 0, 0) @ WEIGHTS,
        lambda xs: np.cos(xs[:, None] * np.arange(1.0, 5.0)).T @ WEIGHTS,
    ),
    "ppermute": (
        lambda x: collectives.ppermute(x * x, "i", [(0, 2), (2, 3), (3, 0)]) * x,
        lambda xs: np.stack([xs[3] ** 2, 0.0 * xs[1], xs[0] ** 2, xs[2] ** 2]) * xs,
    ),
    "send_recv": (
        lambda x: collectives.send_recv(x * x, "i", source=1, dest=-1) * x,
        lambda xs: np.stack([0.0 * xs[0], 0.0 * xs[1], 0.0 * xs[2], xs[1] ** 2 * xs[3]]),
    ),
    "broadcast": (lambda x: collectives.broadcast(x * x, "i", root=2) * x, lambda xs: xs[2] ** 2 * xs),
    "axis_size": (lambda x: x**2 / collectives.axis_size("i"), lambda xs: xs**2 / 4),
    "a value that all elements share, moved": (
        lambda x: (
            x * np.sum(collectives.all_to_all(np.arange(4.0), "i", 0, 0))
            + x * collectives.ppermute(2.0, "i", [(0, 1)])
            + x * collectives.broadcast(3.0, "i", root=1)
            + x * collectives.reduce_scatter(np.arange(4.0), "i")
        ),
        lambda xs: xs * (4 * np.arange(4.0) + np.array([0.0, 2.0, 0.0, 0.0]) + 3.0 + 4 * np.arange(4.0)),
    ),
    "axis_index": (lambda x: x ** (1 + collectives.axis_index("i")), lambda xs: xs ** np.arange(1, 5)),
    "a value that all elements share": (lambda x: x * collectives.psum(3.0, "i"), lambda xs: xs * 12.0),
    "twice": (
        lambda x: collectives.psum(x * collectives.psum(x, "i"), "i") + x,
        lambda xs: np.sum(xs) ** 2 + xs,
    ),
}


@pytest.mark.parametrize("staging", ["eager", "outside", "inside"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name: str, staging: str) -> None:
    single, plain = FUNCTIONS[name]
    mapped: Function = func.vmap(func.jit(single) if staging == "inside" else single, axis_name="i")
    whole: Function = func.jit(mapped) if staging == "outside" else mapped
    np.testing.assert_allclose(whole(X), plain(X))

    jacobian = func.jacrev(plain)(X)
    np.testing.assert_allclose(func.jacrev(whole)(X), jacobian, atol=1e-12)
    np.testing.assert_allclose(func.jacfwd(whole)(X), jacobian, atol=1e-12)

    def inner(x: Any) -> Any:
        return func.grad(func.jit(single) if staging == "inside" else single)(x)

    # The pullback inside of vmap is that of the whole batch: cotangents of one element reach the values of all others.
    within: Function = func.vmap(inner, axis_name="i")
    within = func.jit(within) if staging == "outside" else within
    np.testing.assert_allclose(within(X), jacobian.sum(axis=0), atol=1e-12)
    pushed = func.vmap(lambda x: func.jvp(single, (x,), (1.0,))[1], axis_name="i")
    np.testing.assert_allclose(pushed(X), jacobian.sum(axis=1), atol=1e-12)


SECOND = ["psum", "pmean", "all_gather", "twice", "reduce_scatter", "all_to_all", "ppermute", "broadcast"]


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    single, plain = FUNCTIONS[name]

    def loss(f: Function) -> Function:
        return lambda xs: np.sum(f(xs) * WEIGHTS)

    hessian = func.hessian(loss(plain))(X)
    whole = func.vmap(single, axis_name="i")
    np.testing.assert_allclose(func.hessian(loss(whole))(X), hessian, atol=1e-11)
    np.testing.assert_allclose(func.jacrev(func.grad(loss(func.jit(whole))))(X), hessian, atol=1e-11)


def test_ties_share_the_derivative() -> None:
    peak = func.vmap(lambda x: collectives.pmax(x, "i"), axis_name="i")
    np.testing.assert_allclose(func.grad(lambda xs: peak(xs)[0])(X), HIT / 2)


def test_trees_and_dtypes() -> None:
    def f(x: Any) -> Any:
        return collectives.psum({"a": x, "b": (x > 1, 2)}, "i"), collectives.pmean([x.astype(np.float32)], "i")

    sums, (mean,) = func.vmap(f, axis_name="i")(X)
    np.testing.assert_array_equal(sums["a"], [11.0] * 4)
    np.testing.assert_array_equal(sums["b"][0], [3] * 4)
    np.testing.assert_array_equal(sums["b"][1], [8] * 4)
    assert mean.dtype == np.float32 and sums["b"][0].dtype == np.int64


def nested(f: Function) -> Function:
    return func.vmap(func.vmap(f, axis_name="j"), axis_name="i")


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit], ids=["eager", "compiled"])
def test_nested_axes(wrap: Callable[[Function], Function]) -> None:
    def check(f: Function, expected: Any) -> None:
        np.testing.assert_allclose(wrap(nested(f))(PRIMITIVES), expected)
        np.testing.assert_allclose(nested(wrap(f))(PRIMITIVES), expected)

    check(lambda x: x - collectives.psum(x, "i"), PRIMITIVES - PRIMITIVES.sum(axis=0))
    check(lambda x: x - collectives.psum(x, "j"), PRIMITIVES - PRIMITIVES.sum(axis=1, keepdims=True))
    check(lambda x: x - collectives.psum(x, ("i", "j")), PRIMITIVES - PRIMITIVES.sum())
    check(lambda x: x - collectives.pmean(x, ("j", "i")), PRIMITIVES - PRIMITIVES.mean())
    check(lambda x: x - collectives.pmax(x, ("j", "i")), PRIMITIVES - PRIMITIVES.max())
    check(lambda x: x + collectives.axis_index(("i", "j")), PRIMITIVES + np.arange(8).reshape(4, 2))
    check(lambda x: x + collectives.axis_index(("j", "i")), PRIMITIVES + np.arange(8).reshape(2, 4).T)
    check(lambda x: x * np.sum(collectives.all_gather(x, "i") * WEIGHTS), PRIMITIVES * (WEIGHTS @ PRIMITIVES))
    weights = np.arange(8.0)
    check(lambda x: x * (collectives.all_gather(x, ("i", "j")) @ weights), PRIMITIVES * (PRIMITIVES.ravel() @ weights))
    check(
        lambda x: func.grad(lambda y: y * collectives.psum(y * y, "i"))(x),
        (PRIMITIVES**2).sum(axis=0) + 2 * PRIMITIVES * PRIMITIVES.sum(axis=0),
    )


def test_several_axes_deal_out_in_c_order() -> None:
    rows = np.arange(2.0 * 4 * 8).reshape(4, 2, 8) / 7
    flat = rows.reshape(8, 8)
    names = ("i", "j")

    def check(f: Function, expected: Any) -> None:
        np.testing.assert_allclose(nested(f)(rows).reshape(expected.shape), expected)

    twice = np.repeat(flat.sum(0), 2).reshape(8, 2)
    check(lambda x: collectives.reduce_scatter(x, names), flat.sum(0))
    check(
        lambda x: collectives.reduce_scatter(np.repeat(x, 2), names, tiled=True),
        twice,
    )
    check(lambda x: collectives.all_to_all(x, names, 0, 0), flat.T)
    check(lambda x: collectives.all_to_all(x, names, 0, 0, tiled=True), flat.T)
    check(lambda x: collectives.broadcast(x, names, root=5), np.repeat(flat[5:6], 8, 0))
    assert nested(lambda x: x + collectives.axis_size(names))(PRIMITIVES)[0, 0] == PRIMITIVES[0, 0] + 8


def test_parts_of_several_rows() -> None:
    """Tiled exchange along other axes, against transpositions of blocks."""
    x = np.arange(2.0 * 3 * 4).reshape(2, 3, 4)
    out = func.vmap(lambda x: collectives.all_to_all(x, "i", 1, 0, tiled=True), axis_name="i")(x)
    np.testing.assert_array_equal(out[1], np.concatenate([x[0][:, 2:], x[1][:, 2:]]))
    out = func.vmap(lambda x: collectives.reduce_scatter(x, "i", axis=-1, tiled=True), axis_name="i")(x)
    np.testing.assert_array_equal(out[1], x.sum(0)[:, 2:])
    out = func.vmap(lambda x: collectives.all_to_all(x[:, :2], "i", 1, -1), axis_name="i")(x)
    np.testing.assert_array_equal(out[1], np.stack([x[0, :, 1], x[1, :, 1]], -1))


def test_jacobians_inside_of_a_named_axis() -> None:
    f = lambda x: np.sum(collectives.psum(np.sin(x), "i") * x)  # noqa: E731
    inner = func.vmap(func.hessian(f), axis_name="i")(PRIMITIVES)
    whole = func.hessian(lambda xs: np.sum(np.sum(np.sin(xs), 0) * xs))(PRIMITIVES)
    np.testing.assert_allclose(inner, np.einsum("iajb->iab", whole)[:, :, :], atol=1e-12)


BAD_MOVES: dict[str, tuple[Function, str]] = {
    "twice": (lambda x: collectives.ppermute(x, "i", [(0, 1), (2, 1)]), "names a source or a destination twice"),
    "no pairs": (lambda x: collectives.ppermute(x, "i", [0, 1]), r"must hold pairs \(source, destination\)"),
    "far": (lambda x: collectives.send_recv(x, "i", source=4, dest=0), "source=4 is out of range for an axis of 4"),
    "half": (lambda x: collectives.broadcast(x, "i", root=1.5), "root must be an int that all elements share, got 1.5"),
    "root": (lambda x: collectives.broadcast(x, "i", root=-5), "root=-5 is out of range for an axis of 4"),
    "rows": (
        lambda x: collectives.reduce_scatter(np.ones(3), "i"),
        "has 3 rows, which must be 4, the size of the axis",
    ),
    "parts": (lambda x: collectives.all_to_all(np.ones(6), "i", 0, 0, tiled=True), "must be a multiple of 4"),
    "axis": (lambda x: collectives.all_to_all(np.ones(4), "i", 1, 0), "split_axis=1 is out of range"),
    "place": (lambda x: collectives.all_to_all(np.ones(4), "i", 0, 2), "concat_axis=2 is out of range"),
}


@pytest.mark.parametrize("name", BAD_MOVES)
def test_moves_that_cannot_be_made(name: str) -> None:
    function, words = BAD_MOVES[name]
    with pytest.raises((errors.ArgumentError, TypeError), match=words):
        func.vmap(function, axis_name="i")(X)


def test_the_size_of_an_axis_is_not_kept_for_another_one() -> None:
    share = func.jit(lambda x: x / collectives.axis_size("i"))
    for count in (2, 3, 2, 5):
        assert func.vmap(share, axis_name="i")(np.ones(count)).tolist() == [1 / count] * count
    with pytest.raises(errors.AxisNameError):
        share(1.0)


def test_an_axis_that_the_value_does_not_have() -> None:
    """Of the two axes the value has one only: along the other there are copies."""
    inner = func.vmap(lambda x, y: collectives.psum(y, "i") + 0 * x, in_dims=(None, 0), axis_name="j")
    outer = func.vmap(inner, in_dims=(0, None), axis_name="i")
    np.testing.assert_allclose(outer(X, np.array([1.0, 2.0])), np.broadcast_to([4.0, 8.0], (4, 2)))


def test_the_innermost_axis_of_a_name_counts() -> None:
    inner = func.vmap(lambda x: collectives.psum(x, "i"), axis_name="i")
    np.testing.assert_allclose(
        func.vmap(inner, axis_name="i")(PRIMITIVES), np.repeat(PRIMITIVES.sum(1), 2).reshape(4, 2)
    )


def test_gathering_along_an_axis() -> None:
    def f(axis: int, tiled: bool) -> Any:
        return func.vmap(lambda x: collectives.all_gather(x, "i", axis=axis, tiled=tiled), axis_name="i")(PRIMITIVES)[2]

    np.testing.assert_array_equal(f(0, False), PRIMITIVES)
    np.testing.assert_array_equal(f(-1, False), PRIMITIVES.T)
    np.testing.assert_array_equal(f(0, True), PRIMITIVES.ravel())
    with pytest.raises(errors.ArgumentError, match=r"axis=1 is out of range for a value of shape \(2,\)"):
        f(1, True)


def test_loops_and_branches() -> None:
    def single(x: Any) -> Any:
        scanned = func.scan(lambda c, w: (c * 0.5 + collectives.pmean(c, "i") * w, None), x, WEIGHTS)[0]
        return func.cond(scanned + collectives.axis_index("i") > np.inf, lambda v: -v, lambda v: v * v, scanned)

    def plain(xs: Any) -> Any:
        for w in WEIGHTS:
            xs = xs * 0.5 + np.mean(xs) * w
        return xs * xs

    compiled = func.jit(func.vmap(single, axis_name="i"))
    np.testing.assert_allclose(compiled(X), plain(X))
    np.testing.assert_allclose(func.jacrev(compiled)(X), func.jacrev(plain)(X))
    np.testing.assert_allclose(func.vmap(func.jit(single), axis_name="i")(X), plain(X))


def test_a_jitted_function_knows_the_size_of_the_batch() -> None:
    total = func.jit(lambda x: collectives.psum(x, "i"))
    for count in (2, 3):
        np.testing.assert_array_equal(func.vmap(total, axis_name="i")(np.ones(count)), [count] * count)
    with pytest.raises(errors.AxisNameError):
        total(1.0)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no vmap": (lambda: collectives.psum(1.0, "i"), "no running vmap has the axis_name 'i'; names in scope: none"),
    "another name": (
        lambda: nested(lambda x: collectives.pmax(x, "k"))(PRIMITIVES),
        "func.collectives.pmax: no running vmap has the axis_name 'k'; names in scope: 'i', 'j'",
    ),
    "no name": (lambda: func.vmap(lambda x: collectives.axis_index("i"))(X), "names in scope: none"),
    "chunks": (
        lambda: func.vmap(lambda x: collectives.pmean(x, "i"), axis_name="i", chunk_size=3)(X),
        r"func.collectives.pmean: only 3 of the 4 elements of the axis 'i' are together here(?s:.*)chunk_size",
    ),
    "split batch": (
        lambda: func.vmap(lambda x: collectives.psum(x, "i") if x > 1 else x, axis_name="i")(X),
        r"of the 4 elements of the axis 'i' are together here(?s:.*)np\.where",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_axes_that_cannot_be_reached(name: str) -> None:
    call, words = BAD[name]
    with pytest.raises(errors.AxisNameError, match=words) as info:
        call()
    assert isinstance(info.value, NameError)


def test_bad_names() -> None:
    with pytest.raises(TypeError, match="axis_name must be a string or several, got 0"):
        func.vmap(lambda x: collectives.psum(x, 0), axis_name="i")(X)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="names an axis twice"):
        func.vmap(lambda x: collectives.psum(x, ("i", "i")), axis_name="i")(X)


def test_positions_are_known_in_chunks() -> None:
    numbered = func.vmap(lambda x: collectives.axis_index("i"), axis_name="i", chunk_size=3)
    np.testing.assert_array_equal(numbered(X), np.arange(4))
