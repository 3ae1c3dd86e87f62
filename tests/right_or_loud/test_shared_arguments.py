"""Arguments that share memory: a write to one of them is seen by the others, as in NumPy, or is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.errors import SharedMemoryError

A = np.arange(1.0, 5.0)
M = np.arange(1.0, 10.0).reshape(3, 3)


def fresh(array: Any) -> Any:
    return array.copy()


def written_first(x: Any, y: Any) -> Any:
    x[0] = 5.0
    return np.sum(y * y) + np.sum(x)


def written_second(x: Any, y: Any) -> Any:
    y *= 2.0
    return np.sum(x * x)


def written_by_view(x: Any, y: Any) -> Any:
    x.ravel()[:2] += 1.0
    return np.sum(y.T * 3.0)


def view_used(x: Any, y: Any) -> Any:
    view = y[1:]
    x[...] = 0.0
    return np.sum(view)


def both_written(x: Any, y: Any) -> Any:
    x += 1.0
    y += 1.0
    return np.sum(x)


def only_read(x: Any, y: Any) -> Any:
    return np.sum(x * y)


def read_before(x: Any, y: Any) -> Any:
    total = np.sum(y * y)
    x[0] = 5.0
    return total + np.sum(x)


def copied(x: Any, y: Any) -> Any:
    x = x.copy()
    x[0] = 5.0
    return np.sum(x * y)


def on_tree(p: Any) -> Any:
    p["x"][0] = 5.0
    return np.sum(p["y"] * 2.0)


ALIASES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "the same array": lambda a: (a, a),
    "a view": lambda a: (a, a[:]),
    "overlapping parts": lambda a: (a[:3], a[1:]),
    "reversed": lambda a: (a, a[::-1]),
    "memory of a buffer": lambda a: (np.frombuffer(a.data, float), np.frombuffer(a.data, float)),
}
ROADS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "grad": lambda f: func.grad(f, argnums=(0, 1)),
    "grad by one": func.grad,
    "grad by the other": lambda f: func.grad(f, argnums=1),
    "value_and_grad": lambda f: func.value_and_grad(f, argnums=(0, 1)),
    "vjp": lambda f: lambda x, y: func.vjp(f, x, y)[0],
    "jvp": lambda f: lambda x, y: func.jvp(f, (x, y), (np.ones_like(x), np.ones_like(y))),
    "linearize": lambda f: lambda x, y: func.linearize(f, x, y)[0],
    "jacfwd": lambda f: func.jacfwd(f, argnums=(0, 1)),
    "jacrev": lambda f: func.jacrev(f, argnums=(0, 1)),
    "jacobian": lambda f: func.jacobian(f),
    "hessian": lambda f: func.hessian(f, argnums=(0, 1)),
    "hvp": lambda f: lambda x, y: func.hvp(f, (x, y), (x, y)),
    "jit": func.jit,
    "jit with numpy": lambda f: func.jit(f, compiler="numpy"),
    "make_program": func.make_program,
    "eval_shape": lambda f: lambda x, y: func.eval_shape(f, x, y),
    "checkpoint": lambda f: func.grad(func.checkpoint(f), argnums=(0, 1)),
    "custom_vjp": lambda f: func.grad(_with_rule(f), argnums=(0, 1)),
    "grad of jit": lambda f: func.grad(func.jit(f), argnums=(0, 1)),
    "grad of grad": lambda f: func.grad(lambda x, y: np.sum(func.grad(f)(x, y)), argnums=(0, 1)),
    "vmap of grad": lambda f: lambda x, y: func.vmap(func.grad(f, argnums=(0, 1)))(x[None], y[None]),
    "vmap": lambda f: lambda x, y: func.vmap(f)(x[None], y[None]),
    "vmap of one": lambda f: lambda x, y: func.vmap(f, in_dims=(0, None))(x[None], y),
    "vmap of jit": lambda f: lambda x, y: func.vmap(func.jit(f))(x[None], y[None]),
}


def _with_rule(f: Any) -> Any:
    ruled = func.custom_vjp(f)
    ruled.defvjp(lambda x, y: (f(x, y), np.shape(x)), lambda shape, ct: (np.full(shape, ct), np.full(shape, ct)))
    return ruled


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("f", [written_first, written_second, written_by_view, view_used, both_written])
def test_writes_to_arguments_that_share_memory_are_errors(f: Any, road: str, alias: str) -> None:
    x, y = ALIASES[alias](A.copy())
    before = x.copy()
    with pytest.raises((func.errors.SharedMemoryError, ValueError), match=r"share|read-only") as caught:
        ROADS[road](f)(x, y)
    notes = "".join(getattr(caught.value, "__notes__", ()))
    assert "copy" in str(caught.value) + notes
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("f", [only_read, copied])
def test_arguments_that_share_memory_may_be_read(f: Any, road: str, alias: str) -> None:
    x, y = ALIASES[alias](A.copy())
    got = ROADS[road](f)(x, y)
    expected = ROADS[road](f)(x.copy(), y.copy())
    for one, other in zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True):
        if isinstance(other, np.ndarray | np.generic):
            np.testing.assert_array_equal(one, other)


JITTED = [written_first, written_second, written_by_view, view_used, both_written]


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("f", JITTED)
def test_compiled_functions_look_at_the_memory_of_every_call(f: Any, alias: str) -> None:
    compiled = func.jit(f)
    x, y = ALIASES[alias](A.copy())
    for _ in range(12):
        assert compiled(x.copy(), y.copy()) == f(x.copy(), y.copy())
    for _ in range(2):
        with pytest.raises(func.errors.SharedMemoryError, match=r"share"):
            compiled(x, y)
    assert compiled(x.copy(), y.copy()) == f(x.copy(), y.copy())


@pytest.mark.parametrize("inside", [func.grad, func.value_and_grad, func.jit])
def test_compiled_functions_see_what_inner_transforms_write(inside: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 5.0
        return np.sum(x * y)

    compiled = func.jit(inside(f))
    for _ in range(12):
        compiled(A.copy(), A.copy())
    for _ in range(2):
        with pytest.raises(func.errors.SharedMemoryError, match=r"share"):
            compiled(A, A)
    compiled(A.copy(), A.copy())


@pytest.mark.parametrize("compiler", ["numpy", None])
@pytest.mark.parametrize("inside", [lambda f: f, func.grad, func.value_and_grad, func.jit])
def test_compiled_functions_compare_every_argument_with_their_scope(inside: Any, compiler: str | None) -> None:
    whole = np.arange(1.0, 9.0)
    scope = whole[:4]

    def f(x: Any) -> Any:
        x[:] = x * 2.0
        return np.sum(x * scope)

    compiled = func.jit(inside(f), compiler=compiler)
    for _ in range(12):
        compiled(np.ones(4)), compiled(whole[4:])
    for argument in (scope, whole[:4], whole[2:6], scope):
        with pytest.raises(func.errors.SharedMemoryError, match=r"memory with (an array|'scope') of its scope"):
            compiled(argument)
    compiled(whole[4:])
    np.testing.assert_array_equal(whole, np.arange(1.0, 9.0))


@pytest.mark.parametrize("transform", [func.hessian, lambda f: func.jacfwd(func.grad(f))])
def test_nested_transforms_know_the_memory_of_the_outermost_arguments(transform: Any) -> None:
    with pytest.raises(func.errors.SharedMemoryError, match=r"share"):
        transform(written_first)(A, A)
    a = A.copy()

    def reads_scope(x: Any) -> Any:
        x[0] = 5.0 * x[1]
        return np.sum(x * a)

    for run in (transform(reads_scope), func.jit(transform(reads_scope)), func.jit(func.grad(reads_scope))):
        with pytest.raises(func.errors.SharedMemoryError, match=r"'a' of its scope"):
            run(a)
        run(a.copy())


@pytest.mark.parametrize("f", [only_read, copied, read_before])
def test_compiled_functions_that_need_no_separate_memory_take_the_same_array(f: Any) -> None:
    compiled = func.jit(f)
    for _ in range(12):
        assert compiled(A, A) == f(A.copy(), A.copy())


def test_neighbours_in_memory_are_apart() -> None:
    compiled = func.jit(written_first)
    whole = np.arange(8.0)
    for _ in range(12):
        assert compiled(whole[:4], whole[4:]) == written_first(whole[:4].copy(), whole[4:].copy())


def test_trees_with_shared_memory() -> None:
    compiled = func.jit(on_tree)
    for _ in range(12):
        assert compiled({"x": A.copy(), "y": M}) == on_tree({"x": A.copy(), "y": M})
    x = M.copy()
    for call in (func.jit(on_tree), func.grad(on_tree), func.vmap(on_tree)):
        with pytest.raises(func.errors.SharedMemoryError):
            call({"x": x, "y": x.T})


def test_the_scope_of_a_function() -> None:
    a = A.copy()

    def reads_scope(x: Any) -> Any:
        x[0] = 5.0
        return np.sum(x * a)

    for transform in (func.grad, func.jacrev, func.jit, func.make_program):
        with pytest.raises(func.errors.SharedMemoryError, match=r"shares memory with 'a' of its scope"):
            transform(reads_scope)(a)
        transform(reads_scope)(a.copy())

    def of_traced(x: Any) -> Any:
        return func.grad(lambda z: [z.__setitem__(0, 1.0), np.sum(z * x)][1])(x)

    with pytest.raises(func.errors.SharedMemoryError, match=r"'x' of its scope"):
        func.jacfwd(of_traced)(a)


def test_what_an_inner_transform_was_given_may_be_written() -> None:
    def cubes(x: Any) -> Any:
        def inner(z: Any) -> Any:
            total = np.sum(z * z * z)
            x[...] = 0.0
            return total

        return np.sum(func.grad(inner)(x))

    np.testing.assert_allclose(func.grad(cubes)(A), 6 * A)
    np.testing.assert_allclose(func.jvp(cubes, (A,), (A,))[1], np.sum(6 * A * A))
    assert func.jit(cubes)(A) == func.vmap(cubes)(A[None])[0] == np.sum(3 * A * A)

    def uses_it_later(x: Any) -> Any:
        def inner(z: Any) -> Any:
            x[...] = 0.0
            return np.sum(z * z)

        return np.sum(func.grad(inner)(x))

    with pytest.raises(func.errors.SharedMemoryError):
        func.grad(uses_it_later)(A)


def test_functions_that_run_more_than_once_write_to_copies() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = y[0] * 2
        y *= 2.0
        return x * y

    for transform in (func.jacfwd, func.jacrev, func.jacobian):
        a, b = A.copy(), A.copy() + 1
        both = transform(f, argnums=(0, 1))(a, b)
        np.testing.assert_array_equal(both[0], np.diag([0.0, *2 * (A[1:] + 1)]))
        np.testing.assert_array_equal(both[1], np.diag([8 * (A[0] + 1), *2 * A[1:]]))
        np.testing.assert_array_equal(a, A)
        np.testing.assert_array_equal(b, A + 1)
    for transform in (func.jacfwd, func.jacobian):
        a, b = A.copy(), A.copy() + 1
        one = transform(lambda y, n: (n.__imul__(2.0), y * n)[1])(a, b)
        np.testing.assert_array_equal(one, np.diag(2 * (A + 1)))


class Written(func.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return written_first(x, y)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g


@pytest.mark.parametrize(
    "call",
    [
        lambda: func.jit(lambda p, a: func.cond(p, written_first, written_second, a, a))(True, A.copy()),
        lambda: func.jit(lambda i, a: func.switch(i, [written_first, written_second], a, a))(1, A.copy()),
        lambda: (lambda t: Written.apply(t, t))(func.tensor(A, requires_grad=True) * 1),
        lambda: func.grad(lambda x: func.checkpoint(written_first)(x, x))(A.copy()),
        lambda: func.jit(lambda x: func.vmap(written_first)(x[None], x[None])[0])(A.copy()),
        lambda: func.jit(lambda x: func.jit(written_first)(x, x))(A.copy()),
    ],
)
def test_functions_that_are_called_inside(call: Any) -> None:
    with pytest.raises(func.errors.SharedMemoryError):
        call()


def _add_and_double(carry: Any) -> Any:
    x, y = carry
    x += 1.0
    return x, y * 2.0


def _become_one(carry: Any) -> Any:
    x, _ = carry
    x += 1.0
    return x, x[:]


LOOPS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "scan": lambda f, c: func.scan(lambda c, _: (f(c), None), c, None, length=2)[0],
    "scan in blocks": lambda f, c: func.scan(lambda c, _: (f(c), None), c, None, length=4, unroll=2)[0],
    "while_loop": lambda f, c: func.while_loop(lambda s: s[2] < 2, lambda s: (*f(s[:2]), s[2] + 1), (*c, 0))[:2],
    "fori_loop": lambda f, c: func.fori_loop(0, 2, lambda i, c: f(c), c),
}
MODES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "eager": lambda f: f(np.array([1.0, 2.0, 3.0])),
    "grad": lambda f: func.grad(lambda x: np.sum(f(x * 1)))(np.array([1.0, 2.0, 3.0])),
    "jit": lambda f: func.jit(lambda x: f(x * 1))(np.array([1.0, 2.0, 3.0])),
    "vmap": lambda f: func.vmap(f)(np.ones((2, 3))),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_refuse_writes_to_what_shares_memory(loop: str, mode: str) -> None:
    run, transform = LOOPS[loop], MODES[mode]
    for start in (lambda x: (x, x), lambda x: (x[:2], x[1:])):
        with pytest.raises(SharedMemoryError, match="memory"):
            transform(lambda x: run(_add_and_double, start(x))[0])  # noqa: B023
        only_reads = transform(lambda x: run(lambda c: (c[0] + 1.0, c[1] * 2.0), start(x))[0])  # noqa: B023
        apart = transform(lambda x: run(lambda c: (c[0] + 1.0, c[1] * 2.0), tuple(map(np.copy, start(x))))[0])  # noqa: B023
        assert np.array_equal(only_reads, apart)
    with pytest.raises(SharedMemoryError, match="memory"):
        transform(lambda x: run(_become_one, (x, x * 1))[0])
    assert transform(lambda x: run(_add_and_double, (x, x.copy()))[0]) is not None


@pytest.mark.parametrize("batch_size", [None, 1, 2])
@pytest.mark.parametrize("mode", ["eager", "grad", "jit"])
def test_rows_that_share_memory_are_not_written(mode: str, batch_size: int | None) -> None:
    def multiply(rows: Any) -> Any:
        x, y = rows
        x += 1.0
        return x * y

    def run(x: Any) -> Any:
        rows = np.stack([x, x, x])
        return func.map(multiply, (rows, rows), batch_size=batch_size)

    with pytest.raises(SharedMemoryError, match="memory"):
        MODES[mode](run)


def test_jvp_rules_do_not_write_what_shares_memory() -> None:
    @func.custom_jvp
    def product(x: Any, y: Any) -> Any:
        return x * y

    @product.defjvp
    def product_jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        out = x * y
        x *= 2.0
        return out, x * dy / 2.0 + dx * y

    a = np.array([1.0, 2.0])
    with pytest.raises(SharedMemoryError, match=r"(?s)product_jvp writes.*test_shared_arguments"):
        func.grad(lambda x: np.sum(product(x, x)))(a)
    assert func.grad(lambda x: np.sum(product(x, x.copy())))(a).tolist() == [2.0, 4.0]


def _write_first(row: Any) -> Any:
    first, second = row
    first[0] = 10 * first[0]
    return first + second


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("wrap", [lambda f: f, func.jit, lambda f: func.grad(lambda a: np.sum(f(a)))])
def test_map_in_batches_refuses_writes_to_rows_that_overlap(batch_size: int | None, wrap: Any) -> None:
    def ahead(a: Any) -> Any:
        return func.map(_write_first, (a[1:4], a[:3]), batch_size=batch_size)

    with pytest.raises(SharedMemoryError, match="map: _write_first writes to an array that shares memory"):
        wrap(ahead)(np.arange(8.0).reshape(4, 2))


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 4])
def test_map_in_batches_writes_rows_of_other_memory(batch_size: int | None) -> None:
    a, b = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    expected = np.stack([_write_first(row) for row in zip(a.copy(), b, strict=True)])
    np.testing.assert_array_equal(func.map(_write_first, (a, b), batch_size=batch_size), expected)


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit, lambda f: func.grad(lambda a: np.sum(f(a)))])
@pytest.mark.parametrize("is_shared", [True, False])
def test_associative_scan_refuses_writes_to_its_elements(is_shared: bool, wrap: Any) -> None:
    def combine(left: Any, right: Any) -> Any:
        left[0][...] = 2 * left[0]
        return left[0] + right[0], left[1] + right[1]

    with pytest.raises(SharedMemoryError, match="associative_scan: combine writes"):
        wrap(lambda a: func.associative_scan(combine, (a, a if is_shared else a + 1))[1])(np.arange(1.0, 5.0))


def test_associative_scan_may_return_its_elements() -> None:
    assert func.associative_scan(lambda left, right: left, np.arange(1.0, 5.0)).tolist() == [1.0, 1.0, 1.0, 1.0]
    keep_last = func.associative_scan(lambda left, right: right, np.arange(1.0, 5.0))
    keep_last[0] = 7.0
    assert keep_last.tolist() == [7.0, 2.0, 3.0, 4.0]


@func.custom_vmap
def sine_by_vmap(x: Any) -> Any:
    return np.sin(x)


@sine_by_vmap.def_vmap
def sine_vmap(size: int, batched: Any, x: Any) -> Any:
    return np.sin(x), True


@func.custom_vjp
def sine_by_vjp(x: Any) -> Any:
    return np.sin(x)


sine_by_vjp.defvjp(lambda x: (np.sin(x), np.cos(x)), lambda cosine, ct: (ct * cosine,))


@pytest.mark.parametrize("inner", [sine_by_vmap, sine_by_vjp, func.checkpoint(np.sin), func.jit(np.sin)])
@pytest.mark.parametrize("mode", ["grad", "vjp", "jvp", "vmap", "jit"])
def test_functions_with_rules_inside_leave_the_arguments_noted(inner: Any, mode: str) -> None:
    def f(a: Any, b: Any) -> Any:
        total = np.sum(inner(a))
        a[0] = 5.0
        return total + np.sum(a * b)

    modes: dict[str, Callable[[Any, Any], Any]] = {
        "grad": lambda a, b: func.grad(f, argnums=(0, 1))(a, b),
        "vjp": lambda a, b: func.vjp(f, a, b),
        "jvp": lambda a, b: func.jvp(f, (a, b), (a, b)),
        "vmap": lambda a, b: func.vmap(f)(a[None], b[None]),
        "jit": func.jit(f),
    }
    a = np.arange(1.0, 4.0)
    modes[mode](a.copy(), a.copy())
    with pytest.raises(SharedMemoryError):
        modes[mode](a, a)


@pytest.mark.parametrize("rule", [func.checkpoint, lambda f: func.checkpoint(func.checkpoint(f))])
@pytest.mark.parametrize("transform", [lambda f: f, func.grad, func.value_and_grad])
def test_writes_inside_checkpoints_are_known_to_compiled_code(rule: Any, transform: Any) -> None:
    def f(a: Any, b: Any) -> Any:
        a[0] = 5.0
        return np.sum(a * b)

    compiled = func.jit(transform(rule(f)))
    a = np.arange(1.0, 4.0)
    compiled(a.copy(), a.copy())
    with pytest.raises(SharedMemoryError):
        compiled(a, a)
    compiled(a.copy(), a)
