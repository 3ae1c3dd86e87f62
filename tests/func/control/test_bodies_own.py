"""Bodies of branches and loops own what they close over: their errors, effects and work happen where they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

VALUES = np.arange(3.0)
SINGULAR = np.zeros((2, 2))


def counted(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """The result of the second call, and how often it has appended to the list that is its first argument."""
    seen: list[int] = []
    function(seen, *args)
    seen.clear()
    return function(seen, *args), len(seen)


def picked(x: Any, values: Any, place: Any) -> Any:
    return func.cond(place < 3, lambda: values[place] * x, lambda: -x)


def inverted(x: Any, matrix: Any, place: Any) -> Any:
    branches = [lambda: -x, lambda: np.linalg.inv(matrix)[0, 0] * x, lambda: x * 2]
    return func.switch((place < 3).astype(int), branches)


def in_a_scan(x: Any, values: Any, place: Any) -> Any:
    return func.scan(lambda c, _: (c + picked(x, values, place), None), x * 0.0, None, length=2)[0]


def never_begun(x: Any, matrix: Any, place: Any) -> Any:
    step = lambda c: (c[0] + 1, c[1] * np.linalg.inv(matrix)[0, 0])  # noqa: E731
    return func.while_loop(lambda c: c[0] < place - 7, step, (np.int64(0), -x), max_steps=3)[1]


def no_steps(x: Any, matrix: Any, place: Any) -> Any:
    return func.scan(lambda c, _: (c * np.linalg.inv(matrix)[0, 0], np.linalg.inv(matrix)), -x, None, length=0)[0]


def in_an_object(x: Any, values: Any, place: Any) -> Any:
    held = {"values": [values]}
    return func.cond(place < 3, lambda v=held: v["values"][0][place] * x, lambda: -x)


FAILING: dict[str, tuple[Callable[..., Any], Any]] = {
    "an index in cond": (picked, VALUES),
    "an inverse in switch": (inverted, SINGULAR),
    "cond in a scan": (in_a_scan, VALUES),
    "the step of a while_loop": (never_begun, SINGULAR),
    "a scan without steps": (no_steps, SINGULAR),
    "a default that is a dict": (in_an_object, VALUES),
}

TRANSFORMS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": func.jit,
    "jit of grad": lambda f: func.jit(func.grad(f)),
    "grad of jit": lambda f: func.grad(func.jit(f)),
    "jit of jvp": lambda f: func.jit(lambda x, *rest: func.jvp(lambda x: f(x, *rest), (x,), (1.0,))[1]),
    "jit of vmap": lambda f: func.jit(lambda x, *rest: func.vmap(lambda x: f(x, *rest))(np.stack([x, x]))),
    "vmap of jit": lambda f: lambda x, *rest: func.vmap(lambda x: func.jit(f)(x, *rest))(np.stack([x, x])),
    "jit of checkpoint": lambda f: func.jit(func.checkpoint(f)),
    "jit of taylor": lambda f: func.jit(lambda x, *rest: func.taylor(lambda x: f(x, *rest), x, 1.0, 2)[1]),
    "jit of laplacian": lambda f: func.jit(
        lambda x, *rest: x * 0.0 - 1.0 + func.laplacian(lambda x: f(x[0], *rest))(np.stack([x]))
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FAILING)
def test_errors_of_bodies_that_do_not_run_do_not_happen(name: str, transform: str) -> None:
    function, operand = FAILING[name]
    times = 2 if name == "cond in a scan" else 1
    out = TRANSFORMS[transform](function)(2.0, operand, np.int64(7))
    is_value = transform in ("jit", "jit of vmap", "vmap of jit", "jit of checkpoint")
    expected = -2.0 * times if is_value else -1.0 if transform == "jit of laplacian" else -1.0 * times
    np.testing.assert_array_equal(out, np.broadcast_to(expected, np.shape(out)))


def effect_of_values(seen: list[int], v: Any) -> None:
    func.debug.callback(lambda x: seen.append(1), v)


def effect_alone(seen: list[int], v: Any) -> None:
    func.debug.callback(lambda: seen.append(1))


def outside(seen: list[int], v: Any) -> Any:
    def count(x: Any) -> Any:
        seen.append(1)
        return np.sum(x)

    return func.pure_callback(count, np.float64(0), func.stop_gradient(v), vmap_method="sequential")


@pytest.mark.parametrize("values", ["traced", "constant"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("effect", [effect_of_values, effect_alone, outside])
def test_effects_happen_where_the_body_runs(effect: Any, transform: str, values: str) -> None:
    def f(x: Any, seen: list[int], v: Any, place: Any) -> Any:
        v = VALUES if values == "constant" else v

        def body() -> Any:
            extra = effect(seen, v)
            return x * (1.0 if extra is None else extra)

        return func.cond(place < 3, body, lambda: -x)

    for place, least, most in ((7, 0, 0), (1, 1, 4)):
        seen: list[int] = []
        call = TRANSFORMS[transform](lambda x, v, place, seen=seen: f(x, seen, v, place))
        call(2.0, VALUES, np.int64(place))
        seen.clear()
        call(2.0, VALUES, np.int64(place))
        if effect is outside and "vmap" not in transform and transform not in ("jit", "jit of checkpoint"):
            least = 0  # the value of a pure callback may not be needed
        assert least <= len(seen) <= most


def test_effects_in_loops_happen_in_each_step() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            func.debug.callback(lambda v: seen.append(1), x)
            return c + np.sin(x), None

        return func.scan(step, 0.0, None, length=3)[0]

    for call, count in ((func.jit(f), 3), (func.jit(func.grad(f)), 3), (func.jit(func.grad(func.jit(f))), 3)):
        call(1.0)
        seen.clear()
        call(1.0)
        assert len(seen) == count


def test_tangents_of_a_while_loop_have_no_effects_of_their_own() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def step(c: Any) -> Any:
            func.debug.callback(lambda v: seen.append(1), c)
            return func.cond(c > 0, lambda: c * x + effect(c), lambda: c)

        def effect(c: Any) -> Any:
            func.debug.callback(lambda v: seen.append(2), c)
            return 0.0

        return func.while_loop(lambda c: c < 10.0, step, x)

    call = func.jit(lambda x: func.jvp(f, (x,), (1.0,)))
    call(2.0)
    seen.clear()
    assert call(2.0) == (16.0, 32.0)
    assert sorted(seen) == [1, 1, 1, 2, 2, 2]


def test_what_is_the_same_in_all_steps_is_computed_once() -> None:
    def f(x: Any, w: Any) -> Any:
        return func.scan(lambda c, _: (np.tanh(w.T @ np.sin(w)) @ c, None), x, None, length=4)[0]

    program = func.make_program(f)(np.ones(3), np.ones((3, 3)))
    (scan,) = [equation for equation in program.equations if equation.primitive.name == "scan_call"]
    assert [equation.primitive.name for equation in scan.nested()[0][1].equations] == ["contract"]


def test_work_of_a_branch_that_is_not_taken_is_not_done() -> None:
    program = func.make_program(lambda a, i: func.cond(i < 3, lambda: np.linalg.svd(a)[1][0], lambda: 0.0))(
        np.eye(3), np.int64(7)
    )
    assert "svd" not in [equation.primitive.name for equation in program.equations]


def test_a_body_that_reads_no_argument_is_traced_once() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        def row(s: Any) -> Any:
            func.debug.callback(lambda: seen.append(1))
            return s * x

        return func.map(row, np.ones(2))

    call = func.jit(f)
    call(1.0)
    seen.clear()
    call(1.0)
    assert len(seen) == 2


def test_modes_inside_bodies() -> None:
    def f(x: Any, place: Any) -> Any:
        def body() -> Any:
            with func.no_grad():
                fixed = np.sin(x)
            return fixed * x

        return func.cond(place < 3, body, lambda: -x)

    assert func.jit(func.grad(f))(1.0, np.int64(1)) == np.sin(1.0)
    assert func.grad(func.jit(f))(1.0, np.int64(7)) == -1.0


def test_tensors_that_a_body_closes_over() -> None:
    w = func.tensor([1.0, 2.0], requires_grad=True)
    f = func.jit(lambda x, place: func.cond(place < 3, lambda: np.sum(np.sin(w) * w), lambda: x))
    f(1.0, np.int64(1)).backward()
    np.testing.assert_allclose(w.grad.numpy(), np.cos([1.0, 2.0]) * [1.0, 2.0] + np.sin([1.0, 2.0]))


@pytest.mark.parametrize("place", [1, 7])
def test_writes_to_outer_arrays_do_not_happen_outside(place: int) -> None:
    def f(x: Any, place: Any) -> Any:
        a = x * 1.0

        def body() -> Any:
            a[0] = 5.0
            return np.sum(a)

        return func.cond(place < 3, body, lambda: np.sum(x)), a

    with pytest.raises(func.errors.LeakedTracerError):
        func.jit(f)(VALUES, np.int64(place))
