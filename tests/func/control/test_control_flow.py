"""Branches and loops: eager and traced results agree under every composition of transforms; errors show both sides."""

from __future__ import annotations

import functools
import itertools
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func import errors
from tests.support.traced_memory import tracing

Function = Callable[[Any], Any]

X = np.array([0.4, -0.3, 0.7])
WEIGHTS = np.array([0.5, -1.0, 2.0])
DIRECTION = np.array([1.0, 0.5, -0.25])
MATRIX = np.array([[0.3, 0.1, 0.0], [-0.2, 0.4, 0.1], [0.0, 0.2, 0.5]])
PRIMITIVES = np.linspace(-1.0, 1.0, 15).reshape(5, 3)


def branch(x: Any) -> Any:
    return func.cond(np.sum(x) > 0.3, lambda v, s: np.sum(np.sin(v) * s), lambda v, s: np.sum(v * v) + s, x, 2.0)


def branch_plain(x: Any) -> Any:
    return np.sum(np.sin(x) * 2.0) if np.sum(x) > 0.3 else np.sum(x * x) + 2.0


def three_ways(x: Any) -> Any:
    number = np.floor(2 * np.sum(x)).astype(int)
    first, second = func.switch(
        number,
        [
            lambda v: (v[0], {"w": np.exp(v)}),
            lambda v: (v[1] * 3, {"w": v * MATRIX[0]}),
            lambda v: (v[2] * v[1], {"w": np.tanh(x) * v}),
        ],
        x,
    )
    return first + np.sum(second["w"])


def three_ways_plain(x: Any) -> Any:
    number = min(max(int(np.floor(2 * np.sum(x)).astype(int).item()), 0), 2)
    if number == 0:
        return x[0] + np.sum(np.exp(x))
    return x[1] * 3 + np.sum(x * MATRIX[0]) if number == 1 else x[2] * x[1] + np.sum(np.tanh(x) * x)


def recurrence(x: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        hidden, total, count = state
        hidden = np.tanh(MATRIX @ hidden * x + row)
        return (hidden, total + hidden[0] * np.sum(x), count + 1), {"h": hidden, "c": count * hidden[1]}

    (hidden, total, count), ys = func.scan(step, (x, 0, 0), PRIMITIVES, reverse=True)
    return total * np.sum(hidden) + np.sum(ys["h"] ** 2) + ys["c"][1] + count


def recurrence_plain(x: Any) -> Any:
    hidden, total = x, 0.0
    kept: list[Any] = []
    for row in PRIMITIVES[::-1]:
        hidden = np.tanh(MATRIX @ hidden * x + row)
        kept.append(hidden)
        total = total + hidden[0] * np.sum(x)
    return total * np.sum(hidden) + sum([np.sum(h**2) for h in kept]) + 3 * kept[3][1] + 5


def rows_of_x(x: Any) -> Any:
    total, ys = func.scan(lambda c, r: (c * r[1] + r[0], np.sin(c) * r[0]), 0.5, (x, np.outer(x, x)[:, 1] + 1))
    return total + ys @ WEIGHTS


def rows_of_x_plain(x: Any) -> Any:
    c, out = 0.5, 0.0
    for i in range(3):
        out = out + np.sin(c) * x[i] * WEIGHTS[i]
        c = c * (x[i] * x[1] + 1) + x[i]
    return c + out


def closed_over(x: Any) -> Any:
    return func.scan(lambda c, r: (c + np.sum(np.cos(x * r)), None), 0.0, PRIMITIVES)[0]


def closed_over_plain(x: Any) -> Any:
    return sum([np.sum(np.cos(x * row)) for row in PRIMITIVES])


def counted(x: Any) -> Any:
    return np.sum(func.fori_loop(1, 5, lambda i, c: c * x + 1 / i, x))


def counted_plain(x: Any) -> Any:
    c = x
    for i in range(1, 5):
        c = c * x + 1 / i
    return np.sum(c)


def bounded(x: Any) -> Any:
    state = (np.sum(x * x) + 0.1, x, 0)
    size, v, count = func.while_loop(
        lambda s: s[0] < 20, lambda s: (s[0] * 2.5, s[1] * np.sin(s[1]) + s[0], s[2] + 1), state, max_steps=9
    )
    return size + np.sum(v) * count


def bounded_plain(x: Any) -> Any:
    size, v, count = np.sum(x * x) + 0.1, x, 0
    while size < 20:
        size, v, count = size * 2.5, v * np.sin(v) + size, count + 1
    return size + np.sum(v) * count


def nested(x: Any) -> Any:
    def inner(c: Any, row: Any) -> Any:
        return func.cond(np.sum(row * c) > 0, lambda: (c * np.cos(row), np.sum(c)), lambda: (c + row * x, np.sum(row)))

    def outer(i: Any, c: Any) -> Any:
        c, ys = func.scan(inner, c, PRIMITIVES[1:3])
        return c + np.sum(ys) * i

    return np.sum(func.fori_loop(0, 3, outer, x))


def nested_plain(x: Any) -> Any:
    c = x
    for i in range(3):
        total = 0.0
        for row in PRIMITIVES[1:3]:
            if np.sum(row * c) > 0:
                c, total = c * np.cos(row), total + np.sum(c)
            else:
                c, total = c + row * x, total + np.sum(row)
        c = c + total * i
    return np.sum(c)


def in_blocks(x: Any, **options: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = np.tanh(c * x + row)
        return c, c[0] * row

    c, ys = func.scan(step, x, np.sin(PRIMITIVES * x), **options)
    return np.sum(c) + np.sum(ys * PRIMITIVES)


def in_blocks_plain(x: Any, order: int = 1) -> Any:
    c, out = x, 0.0
    for row in list(range(5))[::order]:
        r = np.sin(PRIMITIVES[row] * x)
        c = np.tanh(c * x + r)
        out = out + np.sum(c[0] * r * PRIMITIVES[row])
    return np.sum(c) + out


def mapped(x: Any) -> Any:
    return np.sum(func.map(lambda r: np.sin(np.sum(r * x)) * r, PRIMITIVES, batch_size=2)[1:])


def mapped_plain(x: Any) -> Any:
    return sum([np.sum(np.sin(np.sum(r * x)) * r) for r in PRIMITIVES[1:]])


def products(x: Any) -> Any:
    matrices = func.associative_scan(lambda a, b: b @ a, MATRIX * x + PRIMITIVES[:, :, None], reverse=False)
    return np.sum(matrices * np.arange(5.0)[:, None, None])


def products_plain(x: Any) -> Any:
    product, out = np.eye(3), 0.0
    for i, row in enumerate(PRIMITIVES):
        product = (MATRIX * x + row[:, None]) @ product
        out = out + np.sum(product) * i
    return out


CASES: dict[str, tuple[Function, Function]] = {
    "cond": (branch, branch_plain),
    "switch": (three_ways, three_ways_plain),
    "scan": (recurrence, recurrence_plain),
    "scan of rows": (rows_of_x, rows_of_x_plain),
    "scan over a closure": (closed_over, closed_over_plain),
    "fori_loop": (counted, counted_plain),
    "while_loop with a bound": (bounded, bounded_plain),
    "nested": (nested, nested_plain),
    "unrolled": (functools.partial(in_blocks, unroll=2), in_blocks_plain),
    "unrolled backwards": (functools.partial(in_blocks, unroll=3, reverse=True), lambda x: in_blocks_plain(x, -1)),
    "checkpointed": (functools.partial(in_blocks, checkpoint=2), in_blocks_plain),
    "checkpointed backwards": (
        functools.partial(in_blocks, checkpoint=True, reverse=True),
        lambda x: in_blocks_plain(x, -1),
    ),
    "map": (mapped, mapped_plain),
    "associative_scan": (products, products_plain),
}


def with_grad(f: Function) -> Function:
    return lambda x: np.sum(func.grad(f)(x) * WEIGHTS)


def with_jvp(f: Function) -> Function:
    return lambda x: func.jvp(f, (x,), (DIRECTION,))[1]


def with_vmap(f: Function) -> Function:
    return lambda x: np.sum(func.vmap(f)(np.outer(np.array([1.0, -0.7, 0.2]), x)) * WEIGHTS)


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "grad": with_grad,
    "jvp": with_jvp,
    "vmap": with_vmap,
    "jit": func.jit,
}
COMPOSITIONS = [names for depth in (0, 1, 2, 3) for names in itertools.product(TRANSFORMS, repeat=depth)]


def composed(f: Function, names: tuple[str, ...]) -> Function:
    """The transforms applied, the last name first."""
    for name in reversed(names):
        f = TRANSFORMS[name](f)
    return f


@functools.cache
def expected(case: str, names: tuple[str, ...]) -> Any:
    """The result of the plain Python version under the transforms."""
    return composed(CASES[case][1], names)(X)


@pytest.mark.parametrize("names", COMPOSITIONS, ids="-".join)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_plain_python(case: str, names: tuple[str, ...]) -> None:
    plain = expected(case, tuple([name for name in names if name != "jit"]))
    np.testing.assert_allclose(composed(CASES[case][0], names)(X), plain, rtol=1e-9, atol=1e-11)


def unbounded(x: Any) -> Any:
    def step(state: Any) -> Any:
        size, v = state
        return size * 2.5, v * np.sin(v) + size * x

    size, v = func.while_loop(lambda s: s[0] < 20, step, (np.sum(x * x) + 0.1, x))
    steps = func.fori_loop(0, np.floor(size).astype(int) % 5, lambda i, c: c * x[0] + i, 1.0)
    return size + np.sum(v) + steps


def unbounded_plain(x: Any) -> Any:
    size, v = np.sum(x * x) + 0.1, x
    while size < 20:
        size, v = size * 2.5, v * np.sin(v) + size * x
    c = 1.0
    for i in range(np.floor(size).astype(int).item() % 5):
        c = c * x[0] + i
    return size + np.sum(v) + c


@pytest.mark.parametrize("names", [n for n in COMPOSITIONS if not {"grad", "jit"} <= set(n)], ids="-".join)
def test_unbounded_loops(names: tuple[str, ...]) -> None:
    plain = composed(unbounded_plain, tuple([name for name in names if name != "jit"]))(X)
    np.testing.assert_allclose(composed(unbounded, names)(X), plain, rtol=1e-9)


def test_reverse_mode_of_a_traced_loop_needs_a_bound() -> None:
    with pytest.raises(errors.NotDifferentiableError, match=r"max_steps=n.*func\.fori_loop.*func\.scan") as info:
        func.grad(func.jit(lambda x: func.while_loop(lambda c: c < 9, lambda c: c * c, x)))(1.5)
    assert isinstance(info.value, TypeError)
    whole = func.jit(lambda n: func.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 2, c[1]), (n, 1.0))[0])
    assert func.grad(lambda x: x * whole(3))(2.0) == 9


def test_batch_elements_finish_one_by_one() -> None:
    """Lanes that are done keep their values, and the step never runs on them: here it would divide by zero."""

    def halve(x: Any) -> Any:
        return func.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + 1 / c[0]), (x, 0.0))[1]

    starts = np.array([3.0, 0.0, 5.0, 1.0])
    harmonic = [sum([1 / k for k in range(1, int(n) + 1)]) for n in starts]
    for mapped in (func.vmap(halve), func.jit(func.vmap(halve)), func.vmap(func.jit(halve))):
        np.testing.assert_allclose(mapped(starts), harmonic)


def test_masked_branches_run_on_numbers_of_their_own_elements() -> None:
    """The logarithm of a negative number would warn, and a loop for the wrong batch element would not end."""

    def f(x: Any) -> Any:
        return func.cond(
            x > 0,
            lambda v: func.while_loop(lambda c: c[0] != 0, lambda c: (c[0] - 1, c[1] + np.log(v)), (v, v))[1],
            lambda v: v * v,
            x,
        )

    xs = np.array([2.0, -3.0, 1.0, 4.0])
    expected_values = [x + x * np.log(x) if x > 0 else x * x for x in xs]
    for mapped in (func.vmap(f), func.jit(func.vmap(f)), func.vmap(func.jit(f))):
        np.testing.assert_allclose(mapped(xs), expected_values)
        np.testing.assert_allclose(mapped(-np.abs(xs)), xs**2)
    slopes = func.jit(func.vmap(lambda x: func.jvp(f, (x,), (1.0,))[1]))(xs)
    np.testing.assert_allclose(slopes, [2.0, -6.0, 2.0, 2.0])


LINEAR: dict[str, Function] = {
    "scan": lambda x: func.scan(lambda c, r: (MATRIX @ c + r * x, c[0] * r), x, PRIMITIVES)[0:2],
    "scan with a count": lambda x: func.scan(lambda c, r: ((c[0] * c[1] + x, c[1] + 1), c[0]), (x, 1), PRIMITIVES)[1],
    "scan of its rows": lambda x: func.scan(lambda c, r: (c * 0.5 + r, c), 0.0, x, reverse=True),
    "cond": lambda x: func.cond(
        True, lambda v: func.scan(lambda c, r: (c * r, None), v, PRIMITIVES)[0], lambda v: v, x
    ),
    "checkpointed scan": lambda x: func.scan(lambda c, r: (MATRIX @ c + r * x, None), x, PRIMITIVES, checkpoint=2)[0],
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_loops_are_transposed(name: str) -> None:
    f = LINEAR[name]
    out = f(X)
    cts = func.tree.map(lambda o: np.cos(np.arange(o.size, dtype=float)).reshape(o.shape), out)
    (pulled,) = func.vjp(f, X)[1](cts)
    for g in (f, func.jit(f)):
        (transposed,) = func.linear_transpose(g, X)(cts)
        np.testing.assert_allclose(transposed, pulled)
    _, push = func.linearize(func.jit(f), X)
    for one, two in zip(func.tree.leaves(push(DIRECTION)), func.tree.leaves(f(DIRECTION)), strict=True):
        if name == "scan of its rows":
            np.testing.assert_allclose(one, two)


def test_linearized_loops() -> None:
    for f, plain in (CASES["scan"], CASES["cond"], (unbounded, unbounded_plain)):
        out, push = func.linearize(func.jit(f), X)
        np.testing.assert_allclose(out, plain(X))
        np.testing.assert_allclose(push(DIRECTION), func.jvp(plain, (X,), (DIRECTION,))[1])


def roots(x: Any) -> Any:
    """The square root has an infinite derivative at 0, which np.where does not take."""
    return func.scan(lambda c, r: (c + np.where(r > 0, np.sqrt(r), 0.0), np.where(r > 0, np.sqrt(r) * c, c)), 1.0, x)


def root_branch(x: Any) -> Any:
    return func.cond(x[0] < 1, lambda v: np.sum(np.where(v > 0, np.sqrt(v), 0.0)), lambda v: np.sum(v), x)


def gradient_inside(x: Any) -> Any:
    inner = func.grad(lambda v: np.sum(np.where(v > 0, np.sqrt(v), 0.0) * v))
    return func.scan(lambda c, r: (c + inner(x * r), None), x, np.array([1.0, 2.0]))[0]


@pytest.mark.parametrize("f", [lambda x: roots(x)[0], lambda x: np.sum(roots(x)[1]), root_branch, gradient_inside])
def test_pullbacks_inside_bodies_are_nan_safe(f: Function) -> None:
    x = np.array([0.0, 0.25, 0.0, 4.0])

    def loss(v: Any) -> Any:
        return np.sum(f(v))

    with np.errstate(all="ignore"):
        wanted = func.grad(loss)(x)
        assert np.isfinite(wanted).all()
        np.testing.assert_allclose(func.grad(func.jit(loss))(x), wanted)
        np.testing.assert_allclose(func.jit(func.grad(loss))(x), wanted)
        np.testing.assert_allclose(func.jit(func.grad(func.jit(loss)))(x), wanted)
        np.testing.assert_allclose(func.jit(f)(x), f(x))


def test_custom_rules_and_checkpoints_in_bodies() -> None:
    @func.custom_jvp
    def tripled(v: Any) -> Any:
        return v * v

    @tripled.defjvp
    def tripled_jvp(primals: Any, tangents: Any) -> Any:
        return tripled(*primals), 3 * primals[0] * tangents[0]

    def f(x: Any) -> Any:
        body = func.checkpoint(lambda c, r: (tripled(np.sin(c) * r), None))
        return np.sum(func.scan(body, x, PRIMITIVES)[0])

    wanted = func.grad(f)(X)
    np.testing.assert_allclose(func.jit(func.grad(f))(X), wanted)
    np.testing.assert_allclose(func.grad(func.jit(f))(X), wanted)
    np.testing.assert_allclose(func.jit(func.vmap(func.grad(f)))(X[None])[0], wanted)


def test_integer_carries_have_no_derivative() -> None:
    def f(x: Any) -> Any:
        return func.scan(lambda c, r: ((c[0] * x, c[1] * 2), c[1]), (x, 1), None, length=3)

    (value, count), ys = func.jit(f)(2.0)
    assert (value, count, list(ys)) == (16.0, 8, [1, 2, 4])
    assert func.grad(lambda x: func.jit(f)(x)[0][0])(2.0) == 32.0
    _, ((_, count_dot), ys_dot) = func.jvp(func.jit(f), (2.0,), (1.0,))
    assert not np.any(count_dot) and not np.any(ys_dot)


def test_pullbacks_are_picklable() -> None:
    for f, plain in (CASES["scan"], CASES["cond"], CASES["checkpointed"]):
        _, pullback = func.vjp(func.jit(f), X)
        again = pickle.loads(pickle.dumps(pullback))
        np.testing.assert_allclose(again(1.0)[0], func.grad(plain)(X))


def compiled(f: Function, *args: Any) -> Any:
    """The function through its Program."""
    return func.jit(f)(*args)


def both(f: Any, *args: Any) -> list[Any]:
    """Eager and traced results."""
    return [f(*args), compiled(f, *args)]


def assert_same(one: Any, two: Any) -> None:
    leaves, spec = func.tree.flatten(one)
    others, other_spec = func.tree.flatten(two)
    assert spec == other_spec
    for a, b in zip(leaves, others, strict=True):
        assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)


NARROW = np.arange(4, dtype=np.float32)
SAME: dict[str, Callable[[Any], Any]] = {
    "a number takes the dtype that the body gives it": lambda xs: func.scan(lambda c, x: (c + x, c), 0, xs),
    "an int number": lambda xs: func.scan(lambda c, x: (c + 1, (c, x)), 0, xs),
    "the body returns a number": lambda xs: func.scan(lambda c, x: (1, c), xs[0], xs),
    "y is a number": lambda xs: func.scan(lambda c, x: (c * x, (2, 0.5, True)), xs[0], xs),
    "no carry": lambda xs: func.scan(lambda c, x: (c, x * 2), None, xs),
    "no ys": lambda xs: func.scan(lambda c, x: ({"a": c["a"] + x}, None), {"a": xs[1]}, xs),
    "no xs": lambda xs: func.scan(lambda c, x: (c * 2, c), xs, None, length=3),
    "no steps": lambda xs: func.scan(lambda c, x: (c * 2, (c, x)), xs, xs[:0]),
    "backwards": lambda xs: func.scan(lambda c, x: (c + x, (c, x)), xs[0], xs, reverse=True),
    "all written out": lambda xs: func.scan(lambda c, x: (c + x, (c, x)), xs[0], xs, unroll=True, reverse=True),
    "single precision": lambda xs: func.scan(lambda c, x: (np.sin(c) * x, c), np.float32(1), xs.astype(np.float32)),
    "fori_loop": lambda xs: func.fori_loop(1, 3, lambda i, c: (c[0] + i, c[1] * 2), (0, xs)),
    "fori_loop without steps": lambda xs: func.fori_loop(3, 1, lambda i, c: c * 2, xs),
    "while_loop": lambda xs: func.while_loop(lambda c: c[1] < 10, lambda c: (c[0] * 2, c[1] + 4), (xs, 0)),
    "a bound that stops": lambda xs: func.while_loop(lambda c: np.any(c < 1e9), lambda c: c + 1, xs, max_steps=4),
    "map": lambda xs: func.map(lambda x: {"a": x, "b": (x, 1)}, xs),
    "map in batches": lambda xs: func.map(lambda x: {"a": x, "b": x + 1}, (xs), batch_size=3),
    "map in one batch": lambda xs: func.map(lambda x: x + 1, xs, batch_size=9),
    "prefixes": lambda xs: func.associative_scan(np.maximum, xs),
    "suffixes": lambda xs: func.associative_scan(lambda a, b: a * 2 + b * 0, xs, reverse=True),
    "prefixes of one": lambda xs: func.associative_scan(np.add, xs[:1]),
    "branches": lambda xs: func.cond(xs[0] > 0, lambda: (xs, 1.0), lambda: (xs * 2, 2.0)),
    "an index out of range": lambda xs: func.switch(
        (xs[3] * 7).astype(int), [lambda v: v, lambda v: v * 2, lambda v: v * 3], xs
    ),
    "a negative index": lambda xs: func.switch(-(xs[3] * 7).astype(int), [lambda v: v, lambda v: v * 2], xs),
    "a number as predicate": lambda xs: func.cond(xs[2], lambda s: xs * s, lambda s: xs, 2),
    "an operand that is no array": lambda xs: func.cond(
        xs[2], lambda v, how: v * {"twice": 2}[how], lambda v, how: v, xs, "twice"
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_traced_code_gives_what_eager_code_gives(name: str) -> None:
    assert_same(*both(SAME[name], NARROW))
    assert_same(*both(SAME[name], NARROW.astype(float)))


def test_numbers_closed_over_stay_numbers() -> None:
    """A Python float with single precision gives single precision, also if both are traced."""

    def f(scale: Any, xs: Any) -> Any:
        total = func.scan(lambda c, x: (np.sin(c * scale) + x, None), xs[0] * 0, xs)[0]
        return func.cond(total > 0, lambda t: t * scale, lambda t: t, total)

    assert_same(*both(f, 0.5, NARROW))
    assert f(0.5, NARROW).dtype == np.float32
    for transform in (func.grad, lambda g: func.grad(g, argnums=1)):
        assert_same(transform(f)(0.5, NARROW), func.jit(transform(f))(0.5, NARROW))
        assert_same(transform(f)(0.5, NARROW), transform(func.jit(f))(0.5, NARROW))
    rows = np.stack([NARROW, NARROW * 2])
    wanted = np.stack([f(0.5, row) for row in rows])
    assert_same(func.jit(func.vmap(f, in_dims=(None, 0)))(0.5, rows), wanted)
    assert_same(func.vmap(func.jit(f), in_dims=(None, 0))(0.5, rows), wanted)


PASSED_ON: dict[str, Callable[[Any], Any]] = {
    "cond": lambda x: func.cond(x > 0, lambda v: v, lambda v: v * 2, x),
    "switch": lambda x: func.switch(np.sign(x).astype(int), [lambda v: v * 2, lambda v: v], x),
    "scan": lambda x: func.scan(lambda c, _: (c, c), x, None, length=3),
    "fori_loop": lambda x: func.fori_loop(0, 3, lambda i, c: c, x),
    "while_loop": lambda x: func.while_loop(lambda c: c > 5, lambda c: c - 1, x),
    "while_loop with a bound": lambda x: func.while_loop(lambda c: c > 5, lambda c: c - 1, x, max_steps=3),
}


@pytest.mark.parametrize("compiler", [None, "numpy"])
@pytest.mark.parametrize("name", PASSED_ON)
def test_numbers_that_are_passed_on_become_arrays(name: str, compiler: str | None) -> None:
    f = PASSED_ON[name]
    for number in (1.5, -2.0, 3):
        expected = f(np.asarray(number)[()])
        assert_same(func.jit(f, compiler=compiler)(number), expected)


@pytest.mark.parametrize("compiler", [None, "numpy"])
def test_indices_beyond_the_branches_are_clamped(compiler: str | None) -> None:
    branches = [lambda v: v, lambda v: v * 2, lambda v: v * 3]

    def f(index: Any, x: Any) -> Any:
        return func.switch(index, branches, x)

    program, compiled = func.make_program(f)(0, X), func.jit(f, compiler=compiler)
    for index, factor in ((-7, 1), (-1, 1), (0, 1), (1, 2), (2, 3), (3, 3), (9, 3)):
        for out in (f(index, X), compiled(index, X), program(index, X)[0]):
            np.testing.assert_array_equal(out, factor * X)
        np.testing.assert_array_equal(func.grad(lambda x, i=index: np.sum(compiled(i, x)))(X), np.full(len(X), factor))


def test_complex_carries() -> None:
    def f(z: Any) -> Any:
        w, ys = func.scan(lambda c, r: (c * z + r, np.abs(c) ** 2), z * z, PRIMITIVES)
        w = func.while_loop(lambda c: np.sum(np.abs(c)) < 50, lambda c: c * (1.1 + 0.2j), w, max_steps=60)
        return np.sum(np.real(w * np.conj(z))) + np.sum(ys)

    z = X + 0.5j * X[::-1]
    wanted = func.grad(f)(z)
    assert wanted.dtype == np.complex128
    np.testing.assert_allclose(func.jit(func.grad(f))(z), wanted)
    np.testing.assert_allclose(func.grad(func.jit(f))(z), wanted)
    np.testing.assert_allclose(func.jvp(func.jit(f), (z,), (1j * z,))[1], func.jvp(f, (z,), (1j * z,))[1])


def test_batched_choices_without_operands() -> None:
    def f(n: Any) -> Any:
        return func.switch(n, [lambda: 1.5, lambda: 2.5, lambda: -1.0])

    numbers = np.array([[2, 0, 1], [9, -4, 1]])
    wanted = np.array([[-1.0, 1.5, 2.5], [-1.0, 1.5, 2.5]])
    for g in (func.vmap(func.vmap(f)), func.jit(func.vmap(func.vmap(f))), func.vmap(func.jit(func.vmap(f)))):
        np.testing.assert_array_equal(g(numbers), wanted)


def test_nested_batches_of_nested_loops() -> None:
    def f(n: Any, x: Any) -> Any:
        def outer(state: Any) -> Any:
            left, total = state
            _, inner = func.while_loop(lambda s: s[0] < left, lambda s: (s[0] + 1, s[1] * x), (0.0, 1.0))
            return left - 1, total + inner

        return func.while_loop(lambda s: s[0] > 0, outer, (n, 0.0))[1]

    ns, xs = np.array([2.0, 0.0, 3.0]), np.array([1.5, -0.5])
    wanted = [[sum([x**k for k in range(1, int(n) + 1)]) for x in xs] for n in ns]
    slopes = [[sum([k * x ** (k - 1) for k in range(1, int(n) + 1)]) for x in xs] for n in ns]
    mapped = func.vmap(func.vmap(f, in_dims=(None, 0)), in_dims=(0, None))
    for g in (mapped, func.jit(mapped), func.vmap(func.jit(func.vmap(f, in_dims=(None, 0))), in_dims=(0, None))):
        np.testing.assert_allclose(g(ns, xs), wanted)
        np.testing.assert_allclose(func.jvp(lambda v, g=g: g(ns, v), (xs,), (np.ones(2),))[1], slopes)


def test_associative_scan_of_every_length_along_an_axis() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 10):
        x = rng.normal(size=(2, n, 3))
        np.testing.assert_allclose(func.associative_scan(np.add, x, axis=1), np.cumsum(x, axis=1))
        expected_sums = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
        np.testing.assert_allclose(func.associative_scan(np.add, x, reverse=True, axis=-2), expected_sums)
        pairs = func.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, 2 * x), axis=1)
        state = np.zeros((2, 3))
        for i in range(n):
            state = state * x[:, i] + 2 * x[:, i]
            np.testing.assert_allclose(pairs[1][:, i], state, rtol=1e-9)


def test_associative_scan_takes_logarithmically_many_rounds() -> None:
    program = func.make_program(lambda x: func.associative_scan(np.add, x))(np.ones(1024))
    assert 10 <= sum([equation.primitive.name == "add" for equation in program.equations]) <= 20


def test_a_scan_is_one_equation_whatever_its_length() -> None:
    for count in (10, 1000):
        program = func.make_program(lambda xs: func.scan(lambda c, x: (np.sin(c + x), None), 0.0, xs))(np.ones(count))
        assert [equation.primitive.name for equation in program.equations] == ["scan_call"]


def test_bodies_may_write_in_place() -> None:
    def step(c: Any, x: Any) -> Any:
        c += x
        x[0] = 7.0
        return c, c

    rows, start = np.ones((3, 2)), np.zeros(2)
    for got in both(lambda xs, c: func.scan(step, c, xs), rows, start):
        np.testing.assert_array_equal(got[0], [3.0, 3.0])
        np.testing.assert_array_equal(got[1], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert rows.min() == 1.0 and start.max() == 0.0


def test_results_are_owned_by_the_caller() -> None:
    kept = np.ones(3)
    calls: list[Function] = [
        lambda x: func.cond(x[0] > 0, lambda: kept, lambda: kept * 2),
        lambda x: func.cond(x[0] > 0, lambda: x, lambda: x * 2),
        lambda x: func.cond(x[0] > 0, lambda: x[::-1], lambda: x * 2),
        lambda x: func.fori_loop(0, 2, lambda i, c: kept, x),
        lambda x: func.scan(lambda c, r: (c, kept), x, None, length=1)[1][0],
        lambda x: func.while_loop(lambda c: c[0] > 5, lambda c: kept, x),
        lambda x: func.while_loop(lambda c: c[0] > 0.5, lambda c: kept * 0, x) + 1,
    ]
    for call in calls:
        for f in (call, func.jit(call)):
            given = np.ones(3)
            if f is not call:  # an eager branch returns what its function returns
                f(given)[:] = 7.0
            np.testing.assert_array_equal(f(given), np.ones(3))
            assert given.max() == kept.max() == 1.0


def test_only_one_branch_runs() -> None:
    seen: list[str] = []

    def note(word: str) -> Function:
        def noting(x: Any) -> Any:
            seen.append(word)
            return x

        return noting

    assert func.cond(True, note("true"), note("false"), 1.0) == 1.0
    assert func.switch(1, [note("a"), note("b")], 2.0) == 2.0
    assert seen == ["true", "b"]
    np.testing.assert_array_equal(
        func.vmap(lambda x: func.cond(x > 0, np.sqrt, np.negative, x))(np.array([4.0, -1.0])), [2, 1]
    )


def test_tensors() -> None:
    x = func.tensor([1.0, 2.0], requires_grad=True)
    total, _ = func.scan(lambda c, r: (c * r, None), x, np.array([2.0, 3.0]))
    func.cond(True, lambda v: v.sum(), lambda v: v, total).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 6.0])


def peak(call: Callable[[], Any]) -> int:
    """The most bytes that a call held."""
    call()
    with tracing():
        call()
        return tracemalloc.get_traced_memory()[1]


@pytest.mark.parametrize("compiled", [False, True])
def test_checkpointed_scan_keeps_the_square_root(compiled: bool) -> None:
    steps, width = 4000, 50

    def loss(x: Any, checkpoint: bool) -> Any:
        def step(c: Any, _: Any) -> Any:
            return np.tanh(np.sin(c) * 1.01), None

        return np.sum(func.scan(step, x, None, length=steps, checkpoint=checkpoint)[0])

    def gradient(checkpoint: bool) -> Any:
        """The gradient by a new function: a compiled one keeps its memory for the next call."""
        of_loss = func.grad(functools.partial(loss, checkpoint=checkpoint))
        return (func.jit(of_loss) if compiled else of_loss)(x)

    x = np.linspace(0.1, 1.0, width)
    plain, saving = [peak(functools.partial(gradient, checkpoint)) for checkpoint in (False, True)]
    np.testing.assert_allclose(gradient(True), gradient(False))
    one_carry, some_carries = x.nbytes, 12 * np.sqrt(steps) * (x.nbytes + 600)
    assert plain > steps * one_carry
    if compiled:  # both take some memory to compile
        assert plain - saving > steps * one_carry - some_carries, (plain, saving)
    else:
        assert saving < some_carries, (plain, saving)


def test_constants_of_a_body_are_not_stacked() -> None:
    """Residuals that are the same in every step: the matrix here, which would be 400 times 80 kB."""
    matrix = np.eye(100) * 0.9

    def loss(x: Any, w: Any) -> Any:
        return np.sum(func.scan(lambda c, _: (np.tanh(np.exp(w) @ c), None), x, None, length=400)[0])

    gradient = func.jit(func.grad(loss))
    assert peak(lambda: gradient(np.ones(100) / 10, matrix)) < 20 * matrix.nbytes


ONES = np.ones(3)
BAD: dict[str, tuple[Function, type[Exception], str]] = {
    "carry of another tree": (
        lambda x: func.scan(lambda c, r: ((c, c), None), x, ONES),
        errors.CarryError,
        r"(?s)returned a carry of another tree.*before one array.*after  \(\*, \*\)",
    ),
    "carry of another shape": (
        lambda x: func.scan(lambda c, r: ({"h": np.outer(c["h"], c["h"])}, None), {"h": x}, ONES),
        errors.CarryError,
        r"changed init\['h'\] from f64\[3\] to f64\[3,3\]",
    ),
    "carry of another dtype": (
        lambda x: func.scan(lambda c, r: (c.astype(np.float32), None), x, ONES),
        errors.CarryError,
        r"changed init from f64\[3\] to f32\[3\].*\n.*astype",
    ),
    "a body that returns one thing": (
        lambda x: func.scan(lambda c, r: c, x, ONES),
        errors.CarryError,
        r"must return \(carry, y\), got",
    ),
    "while_loop carry": (
        lambda x: func.while_loop(lambda c: np.sum(c) < 5, lambda c: c[:2], x),
        errors.CarryError,
        r"func.while_loop: .* changed init from f64\[3\] to f64\[2\]",
    ),
    "bounded while_loop carry": (
        lambda x: func.while_loop(lambda c: np.sum(c) < 5, lambda c: c[:2], x, max_steps=3),
        errors.CarryError,
        r"func.while_loop: .* changed init from f64\[3\] to f64\[2\]",
    ),
    "fori_loop carry": (
        lambda x: func.fori_loop(0, 3, lambda i, c: (c, i), x),
        errors.CarryError,
        r"carry of another tree",
    ),
    "condition of a shape": (
        lambda x: func.while_loop(lambda c: c < 5, lambda c: c + 1, x),
        errors.PredicateError,
        r"must be one bool, got bool\[3\]; reduce it with np.any or np.all",
    ),
    "condition of a dtype": (
        lambda x: func.while_loop(lambda c: np.sum(c), lambda c: c + 1, x),
        errors.PredicateError,
        r"must be one bool, got f64\[\]",
    ),
    "condition of a tree": (
        lambda x: func.while_loop(lambda c: (True, c), lambda c: c + 1, x),
        errors.PredicateError,
        r"must be one bool, got a tuple",
    ),
    "predicate of a shape": (
        lambda x: func.cond(x > 0, np.sin, np.cos, x),
        errors.PredicateError,
        r"the predicate must be one bool or number, got bool\[3\]",
    ),
    "index of a dtype": (
        lambda x: func.switch(x[0], [np.sin, np.cos], x),
        errors.PredicateError,
        r"func.switch: the index must be one integer, got f64\[\]",
    ),
    "bound of a dtype": (
        lambda x: func.fori_loop(0, x[0], lambda i, c: c, x),
        errors.PredicateError,
        r"func.fori_loop: upper must be one integer, got f64\[\]",
    ),
    "lengths": (
        lambda x: func.scan(lambda c, r: (c, r), x, {"a": x, "b": ONES[:2]}),
        errors.LengthError,
        r"lengths differ: xs\['a'\] is 3, xs\['b'\] is 2",
    ),
    "length": (
        lambda x: func.scan(lambda c, r: (c, r), x, x, length=4),
        errors.LengthError,
        r"lengths differ: xs is 3, length is 4",
    ),
    "no length": (
        lambda x: func.scan(lambda c, r: (c, r), x),
        errors.LengthError,
        r"xs has no array, so length= is needed",
    ),
    "no rows": (lambda x: func.map(np.sin, ()), errors.LengthError, "xs has no array, and so no axis to run over"),
    "scalar xs": (
        lambda x: func.map(np.sin, {"a": x[0]}),
        errors.LengthError,
        r"xs\['a'\] is a scalar",
    ),
    "lengths of elements": (
        lambda x: func.associative_scan(lambda a, b: a, (x, x[:2])),
        errors.LengthError,
        r"elems\[0\] has 3, elems\[1\] has 2",
    ),
    "elements of another shape": (
        lambda x: func.associative_scan(lambda a, b: np.sum(a), x),
        errors.CarryError,
        r"got f64\[1\] for elems and returned f64\[\]",
    ),
    "no branches": (lambda x: func.switch(0, [], x), errors.ArgumentError, "at least one branch"),
    "unroll": (lambda x: func.scan(lambda c, r: (c, r), x, x, unroll=-1), errors.ArgumentError, "unroll must be"),
    "max_steps": (
        lambda x: func.while_loop(lambda c: True, lambda c: c, x, max_steps=0.5),  # type: ignore[arg-type]
        errors.ArgumentError,
        "max_steps must be",
    ),
    "batch_size": (lambda x: func.map(np.sin, x, batch_size=0), errors.ArgumentError, "batch_size must be"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("compiled", [False, True])
def test_bad_input(name: str, compiled: bool) -> None:
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        (func.jit(call) if compiled else call)(ONES)


BAD_BRANCHES: dict[str, tuple[Function, Function, str]] = {
    "trees": (
        lambda v: (v, v),
        lambda v: [v, v],
        r"(?s)false_fun and true_fun return different trees.*\[\*, \*\].*\(\*, \*\)",
    ),
    "shapes": (lambda v: {"a": v}, lambda v: {"a": v[:2]}, r"return f64\[2\] and f64\[3\] for output\['a'\]"),
    "dtypes": (lambda v: v, lambda v: v.astype(np.float32), r"return f32\[3\] and f64\[3\] for output"),
    "a number that does not fit": (
        lambda v: 0.5,
        lambda v: v[0].astype(int),
        r"i64\[\] and f64\[\]~ for output",
    ),
}


@pytest.mark.parametrize("name", BAD_BRANCHES)
def test_branches_must_agree_in_traced_code(name: str) -> None:
    first, second, words = BAD_BRANCHES[name]
    with pytest.raises(errors.BranchError, match=words):
        func.jit(lambda x: func.cond(x[0] > 0, first, second, x))(ONES)
    func.cond(True, first, second, ONES)


def test_ys_must_agree_from_step_to_step() -> None:
    seen: list[int] = []

    def step(c: Any, x: Any) -> Any:
        seen.append(1)
        return c, np.ones(len(seen))

    with pytest.raises(errors.CarryError, match=r"output 0 of y is f64\[1\] in one step and f64\[2\] in step 1"):
        func.scan(step, 0.0, ONES)


def test_python_choices_in_a_traced_body_say_what_to_write() -> None:
    with pytest.raises(errors.StagingError, match=r"func\.cond"):
        func.jit(lambda x: func.scan(lambda c, r: (c if c > 0 else r, None), x[0], x))(ONES)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_reverse_associative_scans_begin_with_the_last_element(n: int) -> None:
    """The order of operands is that of JAX: f(e2, e1), then f(f(e2, e1), e0)."""

    def f(first: Any, second: Any) -> Any:
        return first[0] * second[0], first[1] * second[0] + second[1]

    slopes, offsets = np.array([0.5, 2.0, 3.0, 4.0, 0.25])[:n], np.array([1.0, 10.0, 100.0, 3.0, 5.0])[:n]
    state = slopes[-1], offsets[-1]
    right = [state[1]]
    for element in list(zip(slopes, offsets, strict=True))[-2::-1]:
        state = f(state, element)
        right.insert(0, state[1])
    for scan in (func.associative_scan, func.jit(func.associative_scan, static_argnums=(0, 2))):
        np.testing.assert_array_equal(scan(f, (slopes, offsets), True)[1], right)
