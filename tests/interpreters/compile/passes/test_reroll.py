"""Loop re-rolling: unrolled loops become scans that compute the same, to the last bit where sums keep their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import func
import func.numpy as np
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.execution import Prepared, compile_program
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.native import executable
from func.interpreters.compile.passes.reroll import loop_steps
from func.interpreters.compile.passes.reroll.canonical_order import canonical_order
from func.interpreters.compile.passes.reroll.loop_steps import find_stretches
from func.interpreters.compile.passes.reroll.reroll import reroll
from func.interpreters.program.program import Program
from tests.support.random_programs import Drawn, programs

RNG = onp.random.default_rng(0)
INPUTS = RNG.normal(size=(40, 6))
MATRIX = 0.3 * RNG.normal(size=(6, 6))
COLUMNS = onp.ascontiguousarray(INPUTS[:30].T)
"""In C order, as a concatenation of columns is. The stack of a loop is in Fortran order. Its product with an array in
that order would be so too, and NumPy would add the elements in another order."""
VECTOR = RNG.normal(size=6)
POSITIVE = MATRIX @ MATRIX.T + onp.eye(6)


def scans(program: Program) -> list[int]:
    """The lengths of the scans of a program."""
    return [e.params["loop"].length for e in program.equations if e.primitive.name == "scan_call"]


def rerolled(program: Program) -> Program:
    """The optimised program with its loops as scans, short and elementwise ones too."""
    return reroll(prepare_program(program), least=8, many=32, fused=32)


def assert_rerolled(
    function: Callable[..., Any], args: tuple[Any, ...], least: int, left: int | None = None
) -> Program:
    """The rerolled program has a scan of `least` steps, at most `left` equations, and computes the same."""
    before = prepare_program(func.make_program(function)(*args))
    after = rerolled(before)
    after.check()
    assert max(scans(after), default=0) >= least, after.text()
    assert left is None or len(after.equations) <= left, after.text()
    leaves = func.tree.flatten(args)[0]
    assert_equal(before.run(leaves), after.run(leaves))
    return after


def assert_equal(want: Any, got: Any) -> None:
    for x, y in zip(want, got, strict=True):
        assert onp.asarray(x).dtype == onp.asarray(y).dtype
        onp.testing.assert_array_equal(x, y, strict=True)


def rnn(weights: Any, rows: Any, state: Any) -> Any:
    for row in rows:
        state = np.tanh(row @ weights["input"] + state @ weights["state"] + weights["bias"])
    return np.mean((state @ weights["output"] - 1) ** 2)


def lstm(weights: Any, rows: Any, state: Any, cell: Any) -> Any:
    for row in rows:
        gates = row @ weights["input"] + state @ weights["state"] + weights["bias"]
        i, f, o, u = np.split(gates, 4)
        cell = cell / (1 + np.exp(-f)) + np.tanh(u) / (1 + np.exp(-i))
        state = np.tanh(cell) / (1 + np.exp(-o))
    return np.sum(state**2)


def chain(x: Any) -> Any:
    for _ in range(50):
        x = np.sin(x) * x
    return np.sum(x)


def lotka_volterra(rates: Any, state: Any) -> Any:
    def slope(state: Any) -> Any:
        a, b, c, d = rates
        return np.stack([a * state[0] - b * state[0] * state[1], -c * state[1] + d * state[0] * state[1]])

    for _ in range(12):
        k1 = slope(state)
        k2 = slope(state + 0.005 * k1)
        k3 = slope(state + 0.005 * k2)
        k4 = slope(state + 0.01 * k3)
        state = state + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(state**2)


def leapfrog(place: Any, speed: Any) -> Any:
    def force(place: Any) -> Any:
        return -np.sin(place) - 0.1 * place**3

    speed = speed + 0.05 * force(place)
    for _ in range(30):
        place = place + 0.1 * speed
        speed = speed + 0.1 * force(place)
    return np.sum(speed * speed)


def power_iteration(matrix: Any, vector: Any) -> Any:
    for _ in range(20):
        vector = matrix @ vector
        vector = vector / np.linalg.norm(vector)
    return vector @ matrix @ vector


def horner(coefficients: Any, x: Any) -> Any:
    value = coefficients[39] * x
    for i in range(38, -1, -1):
        value = value * x + coefficients[i]
    return np.sum(value)


def numbers(x: Any) -> Any:
    for i in range(40):
        x = x * 0.5 + (0.3 * i - 2.1)
    return np.sum(x)


def total(rows: Any) -> Any:
    return np.sum(sum([np.tanh(row) * row for row in rows]))


def collected(x: Any) -> Any:
    states = []
    for _ in range(30):
        x = np.sin(x) * 1.1
        states.append(x)
    return np.sum(np.stack(states, axis=1) * COLUMNS)


def windows(x: Any) -> Any:
    value = 0.0
    for i in range(34):
        value = value + np.sum(x[i : i + 5] ** 2 * x[i])
    return value


def chunks(x: Any) -> Any:
    state = np.zeros(2)
    for i in range(20):
        state = np.tanh(state + x[2 * i : 2 * i + 2])
    return np.sum(state)


def columns(rows: Any) -> Any:
    state = np.zeros(6)
    for i in range(39, -1, -1):
        state = np.tanh(state + rows.T[:, i])
    return np.sum(state)


def fibonacci(a: Any, b: Any) -> Any:
    for _ in range(30):
        a, b = b, np.sin(a + 0.5 * b)
    return np.sum(a * b)


def layers(rows: Any, first: Any, second: Any) -> Any:
    state = onp.zeros(6)
    states = []
    for row in rows:
        state = np.tanh(row @ first + state @ second)
        states.append(state)
    top = onp.zeros(6)
    for state in states:
        top = np.tanh(state @ second + top @ first)
    return np.sum(top)


def nested(x: Any, matrix: Any) -> Any:
    for _ in range(10):
        for _ in range(9):
            x = np.tanh(x @ matrix) + 0.1 * x
        x = x / np.sum(x * x)
    return np.sum(x)


def alternating(x: Any, first: Any, second: Any) -> Any:
    for _ in range(20):
        x = np.tanh(x @ first)
        x = np.tanh(x @ second)
    return np.sum(x)


def permuted(rows: Any) -> Any:
    state = np.zeros(6)
    for i in onp.random.default_rng(3).permutation(40):
        state = np.tanh(state + rows[int(i)])
    return np.sum(state)


def diagonal(x: Any) -> Any:
    value = 0.0
    for i in range(40):
        value = value * 0.9 + np.sin(x[i, i])
    return value


def written(x: Any) -> Any:
    y = x * 0.5
    for i in range(1, 40):
        y[i] = np.sin(y[i - 1]) * 0.5 + x[i]
    return np.sum(y * y)


def solved(matrix: Any, vector: Any) -> Any:
    for _ in range(20):
        vector = np.sin(np.linalg.solve(matrix, vector) * 2)
    return np.sum(vector)


def adam(weights: Any, rows: Any, target: Any) -> Any:
    first, second = weights * 0, weights * 0
    for t in range(1, 21):
        slope = func.grad(lambda weights: np.mean((rows @ weights - target) ** 2))(weights)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        weights = weights - 0.01 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
    return np.sum(weights**2)


def scanned(x: Any) -> Any:
    for _ in range(12):
        x, _ = func.scan(lambda carry, _: (np.sin(carry) * 1.1, carry), x, None, length=5)
        x = np.cos(x * 0.9 + 1)
    return np.sum(x)


RNN = {"input": MATRIX, "state": MATRIX.T, "bias": VECTOR, "output": MATRIX[:, :3]}
LSTM = {"input": RNG.normal(size=(6, 20)), "state": 0.3 * RNG.normal(size=(5, 20)), "bias": RNG.normal(size=20)}
LOOPS: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "rnn": (rnn, (RNN, INPUTS, onp.zeros(6)), 38),
    "lstm": (lstm, (LSTM, INPUTS, onp.zeros(5), onp.zeros(5)), 37),
    "chain": (chain, (VECTOR,), 48),
    "lotka_volterra": (lotka_volterra, (onp.array([1.5, 1.0, 3.0, 1.0]), onp.ones(2)), 10),
    "leapfrog": (leapfrog, (VECTOR, VECTOR + 1), 28),
    "power_iteration": (power_iteration, (POSITIVE, VECTOR), 18),
    "horner": (horner, (INPUTS[:, 0], 0.5 * VECTOR), 36),
    "numbers": (numbers, (VECTOR,), 37),
    "total": (total, (INPUTS,), 38),
    "windows": (windows, (INPUTS[:, 0],), 31),
    "chunks": (chunks, (INPUTS[:, 0],), 17),
    "columns": (columns, (INPUTS,), 38),
    "fibonacci": (fibonacci, (VECTOR, VECTOR + 1), 28),
    "layers": (layers, (INPUTS, MATRIX, MATRIX.T), 37),
    "nested": (nested, (VECTOR, MATRIX), 9),
    "alternating": (alternating, (VECTOR, MATRIX, MATRIX.T), 18),
    "permuted": (permuted, (INPUTS,), 38),
    "diagonal": (diagonal, (RNG.normal(size=(40, 40)),), 39),
    "written": (written, (INPUTS[:, 0],), 30),
    "solved": (solved, (POSITIVE, VECTOR), 18),
    "adam": (adam, (VECTOR, INPUTS, INPUTS[:, 0]), 18),
    "scanned": (scanned, (VECTOR,), 10),
    "collected": (collected, (VECTOR,), 28),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_rerolled(name: str) -> None:
    function, args, least = LOOPS[name]
    assert_rerolled(function, args, least)


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_loops_are_rerolled(name: str) -> None:
    function, args, least = LOOPS[name]
    assert_rerolled(func.value_and_grad(function, tuple(range(len(args)))), args, least - 2)


@pytest.mark.parametrize("name", LOOPS)
def test_tangents_of_loops_are_rerolled(name: str) -> None:
    function, args, least = LOOPS[name]
    assert_rerolled(lambda *args: func.jvp(function, args, args), args, least - 2)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_sought_before_the_passes_are_those_found_after_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args, _ = LOOPS[name]
    program = func.make_program(func.value_and_grad(function, tuple(range(len(args)))))(*args)
    prepared = Prepared(program, onp)
    monkeypatch.setattr(executable, "LONG", 1 << 30)
    after = executable.with_loops(prepared)
    monkeypatch.setattr(executable, "LONG", 1)
    before = executable.with_loops(prepared)
    before.check()
    assert max(scans(before), default=0) >= max(scans(after), default=0) - 2
    leaves = func.tree.flatten(args)[0]
    for x, y in zip(after.run(leaves), before.run(leaves), strict=True):
        onp.testing.assert_allclose(y, x, rtol=1e-11, atol=1e-12, strict=True)


def test_the_gradient_of_a_recurrent_network_is_two_loops() -> None:
    function, args, _ = LOOPS["rnn"]
    after = assert_rerolled(func.grad(function), args, 39, left=40)
    assert len(scans(after)) == 2
    assert [e.params["loop"].reverse for e in after.equations if e.primitive.name == "scan_call"] == [False, True]


def test_the_slope_of_tanh_is_computed_in_the_loop_that_has_tanh() -> None:
    """The loop keeps the slope for the backward loop, which computes no exponentials."""

    def last(state: Any, inputs: Any) -> Any:
        for row in inputs:
            state = np.tanh(state @ MATRIX + row)
        return np.sum(state)

    program = rerolled(prepare_program(func.make_program(func.grad(last))(VECTOR, INPUTS)))
    bodies = [e.params["body"].program for e in program.equations if e.primitive.name == "scan_call"]
    names = [{e.primitive.name for e in body.equations} for body in bodies]
    assert ["sech_squared" in own for own in names] == [True, False]


def test_sums_at_the_end_become_carries_of_the_loop() -> None:
    function, args, _ = LOOPS["lotka_volterra"]
    after = assert_rerolled(func.grad(function, (0, 1)), args, 11, left=250)
    loop = [e.params["loop"] for e in after.equations if e.primitive.name == "scan_call"][-1]
    assert loop.reverse
    assert loop.carries == 5


def test_rows_of_an_array_are_scanned_without_a_copy() -> None:
    after = assert_rerolled(columns, (INPUTS,), 39, left=8)
    assert not [e for e in after.equations if e.primitive.name == "concatenate"]


def test_residuals_are_read_from_the_stacks_of_the_first_loop() -> None:
    after = assert_rerolled(func.grad(chain), (VECTOR,), 48)
    first, second = [e for e in after.equations if e.primitive.name == "scan_call"]
    slices = {e.outputs[0]: e.inputs[0] for e in after.equations if e.primitive.name == "getitem"}
    stacks = [slices.get(x, x) for x in second.inputs[1:]]
    assert stacks
    assert all([any([x is out for out in first.outputs]) for x in stacks])


def test_loops_in_loops_become_scans_of_scans() -> None:
    after = assert_rerolled(nested, (VECTOR, MATRIX), 10, left=3)
    (outer,) = [e for e in after.equations if e.primitive.name == "scan_call"]
    assert outer.params["loop"].length == 10


def test_long_inner_loops_are_rerolled_in_the_body() -> None:
    def both(x: Any, matrix: Any) -> Any:
        for _ in range(9):
            for _ in range(20):
                x = np.tanh(x @ matrix) + 0.1 * x
            x = x / np.sum(x * x)
        return np.sum(x)

    after = assert_rerolled(both, (VECTOR, MATRIX), 9, left=3)
    (outer,) = [e for e in after.equations if e.primitive.name == "scan_call"]
    assert scans(outer.params["body"].program) == [20]


def test_weights_that_alternate_are_constants_of_a_loop_with_the_longer_period() -> None:
    after = assert_rerolled(alternating, (VECTOR, MATRIX, MATRIX.T), 19)
    (loop,) = [e.params["loop"] for e in after.equations if e.primitive.name == "scan_call"]
    assert loop.consts == 2


def test_two_loops_over_equal_shapes_are_two_scans() -> None:
    def twice(rows: Any, first: Any, second: Any) -> Any:
        state = onp.zeros(6)
        for row in rows:
            state = np.tanh(row + state @ first)
        for row in rows:
            state = np.tanh(row + state @ second)
        return np.sum(state)

    after = assert_rerolled(twice, (INPUTS, MATRIX, MATRIX.T), 39)
    assert len(scans(after)) == 2


def test_numbers_keep_their_dtype() -> None:
    def single(x: Any) -> Any:
        for i in range(40):
            x = np.sin(x) * (0.1 * i + 2.05)
        return x

    assert_rerolled(single, (VECTOR.astype(onp.float32),), 39)
    assert_rerolled(lambda x: numbers(x), (onp.arange(5),), 38)


def test_python_scalars_as_arguments() -> None:
    def weak(x: Any) -> Any:
        for _ in range(40):
            x = np.sin(x) * x
        return x

    assert_rerolled(weak, (0.7,), 39)

    def mixed(x: Any, y: Any) -> Any:
        for _ in range(40):
            x = x * 0.5 + 1
        return x * y

    assert_rerolled(lambda x: mixed(x, VECTOR), (0.7,), 39)

    before = prepare_program(func.make_program(mixed)(0.7, VECTOR.astype(onp.float32)))
    assert rerolled(before) is before


def test_programs_in_which_nothing_repeats_are_returned() -> None:
    for function, args in (
        (lambda x: np.sum(np.sin(x) * x), (VECTOR,)),
        (lambda x: np.stack([x[i] for i in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)]), (INPUTS,)),
        (lambda x: sum([f(x) for f in (np.sin, np.cos, np.tanh, np.exp, np.square, np.abs)] * 3), (VECTOR,)),
    ):
        program = prepare_program(func.make_program(function)(*args))
        assert reroll(program) is program


def test_short_loops_are_returned() -> None:
    def short(x: Any, matrix: Any) -> Any:
        for _ in range(7):
            x = np.tanh(np.cos(np.sin(x @ matrix) + 1) * x - 2)
        return x

    program = prepare_program(func.make_program(short)(VECTOR, MATRIX))
    assert reroll(program, least=8, many=8, fused=8) is program
    assert scans(reroll(program, least=7, many=8, fused=8)) == [7]


def test_elementwise_loops_are_left_to_fusion_unless_they_are_long() -> None:
    program = prepare_program(func.make_program(chain)(VECTOR))
    assert reroll(program) is program
    assert scans(reroll(program, fused=100)) == [50]


def test_large_unrelated_inputs_are_not_stacked() -> None:
    def layered(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = np.tanh(x @ weight)
        return x

    small = [MATRIX * (1 + 0.1 * k) for k in range(32)]
    assert_rerolled(layered, (small, VECTOR), 32)
    large = [onp.eye(64) * (1 + 0.1 * k) for k in range(32)]
    program = prepare_program(func.make_program(layered)(large, onp.ones(64)))
    assert rerolled(program) is program


def test_calls_for_their_effect_stay_in_order() -> None:
    seen: list[float] = []

    def shown(x: Any) -> Any:
        for _ in range(20):
            x = np.cos(np.sin(x) * 2) + x
            func.debug.callback(lambda value: seen.append(float(value)), x[0])
        return x

    program = prepare_program(func.make_program(shown)(VECTOR))
    program.run((VECTOR,))
    expected, seen[:] = list(seen), []
    rerolled(program).run((VECTOR,))
    assert seen == expected


WORDS = ["sin", "tanh", "+", "*", "-", "@", "window", "pick", "turn", "put"]
STEPS = st.lists(
    st.tuples(st.sampled_from(WORDS), st.integers(0, 20), st.integers(0, 20)),
    min_size=2,
    max_size=7,
)
"""The equations of a step: the operation and the positions of its operands among the values so far."""


def unrolled_loop(
    step: list[tuple[str, int, int]], carried: list[int], length: int, stacks: bool
) -> Callable[..., Any]:
    """A loop of such steps, which carries some values, reads a row and a number in each step, and may stack a value."""

    def function(rows: Any, matrix: Any, vector: Any) -> Any:
        table, flat = rows * 0.5, np.reshape(rows, -1)
        state = [vector, vector * 0.5, rows[0]][: len(carried)]
        states = []
        for i in range(length):
            values = [*state, rows[i], vector, rows[length - 1 - i] * (0.1 * i + 0.3)]
            for word, a, b in step:
                x, y = values[a % len(values)], values[b % len(values)]
                match word:
                    case "sin" | "tanh":
                        values.append(getattr(np, word)(x))
                    case "@":
                        values.append(x @ matrix)
                    case "window":
                        values.append(x * flat[b * i : b * i + 6])
                    case "pick":
                        values.append(x * rows[i, (a + i) % 6])
                    case "turn":
                        values.append(np.concatenate([x[2:], y[:2]]))
                    case "put":
                        table[i + 1] = x * 0.3
                        values.append(table[i])
                    case _:
                        values.append(x + y if word == "+" else x * y if word == "*" else x - 0.5 * y)
            state = [np.tanh(values[-1 - i % len(values)]) for i in carried]
            states.append(state[0])
        return np.sum(sum(state)) + (np.sum(np.stack(states)[::-2] * rows[0]) if stacks else 0.0)

    return function


@settings(max_examples=60)
@given(
    step=STEPS,
    carried=st.lists(st.integers(0, 8), min_size=1, max_size=3),
    length=st.integers(6, 12),
    stacks=st.booleans(),
    mode=st.sampled_from(["value", "gradient", "tangent"]),
)
def test_random_loops(
    step: list[tuple[str, int, int]], carried: list[int], length: int, stacks: bool, mode: str
) -> None:
    function = unrolled_loop(step, carried, length, stacks)
    args = (INPUTS, MATRIX, VECTOR)
    if mode == "gradient":
        program = func.make_program(func.grad(function, (0, 1, 2)))(*args)
    elif mode == "tangent":
        program = func.make_program(lambda *args: func.jvp(function, args, args))(*args)
    else:
        program = func.make_program(function)(*args)
    before = prepare_program(program)
    after = reroll(before, least=5, many=10, fused=10)
    after.check()
    assert_equal(before.run(args), after.run(args))


@settings(max_examples=100)
@given(drawn=programs())
def test_random_programs_compute_the_same(drawn: Drawn) -> None:
    after = reroll(drawn.program, least=2, many=2, fused=2)
    after.check()
    with onp.errstate(all="ignore"):
        assert_equal(drawn.program.run(drawn.args), after.run(drawn.args))


def test_a_slice_that_is_returned_follows_the_slice_it_is_of() -> None:
    def slices(x: Any) -> Any:
        row = x[0, 1:3]
        backwards = row[::-1]
        return backwards[0], np.sum(row)

    program = func.make_program(slices)(MATRIX)
    Program(program.inputs, canonical_order(program), program.outputs, program.constants).check()


@settings(max_examples=60)
@given(drawn=programs())
def test_the_order_is_a_permutation_that_respects_dependencies(drawn: Drawn) -> None:
    ordered = canonical_order(drawn.program)
    assert len(ordered) == len(drawn.program.equations)
    Program(drawn.program.inputs, ordered, drawn.program.outputs, drawn.program.constants).check()


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(3, 6))
def test_repetitions_are_found(before: list[int], repeated: list[int], times: int) -> None:
    signatures = onp.array([*before, *repeated * times, 9], onp.int32)
    stretches = find_stretches(signatures, 0, len(signatures), 3, 1)
    assert any(
        [s.start <= len(before) and s.stop >= len(signatures) - 1 for s in stretches if s.period == len(repeated)]
    )
    for s in stretches:
        assert (signatures[s.start : s.stop - s.period] == signatures[s.start + s.period : s.stop]).all()
        assert s.steps >= 3


@pytest.mark.parametrize("name", ["rnn", "lotka_volterra", "written", "layers"])
def test_numpy_source_of_rerolled_programs(name: str) -> None:
    function, args, _ = LOOPS[name]
    program = func.make_program(func.grad(function, tuple(range(len(args)))))(*args)
    leaves = func.tree.flatten(args)[0]
    want = compile_program(program, onp, None)(*leaves)
    got = compile_program(rerolled(prepare_program(program)), onp, None)(*leaves)
    for x, y in zip(want, got, strict=True):
        onp.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-14)


def test_the_parts_of_a_long_derivative_pass_stacks() -> None:
    def f(x: Any) -> Any:
        for i in range(300):
            x = np.sin(x) * 1.01 + 0.1 * (i % 2)
        return np.sum(x)

    x = onp.linspace(-1, 1, 5)
    onp.testing.assert_allclose(func.grad(func.jit(f))(x), func.grad(f)(x), rtol=1e-10)
    program = func.make_program(f)(x)
    assert len(CompiledCall(program, None, "llvm").vjp_partition((True,)).known.program.outputs) < 10
    assert len(CompiledCall(program, None, "numpy").vjp_partition((True,)).known.program.outputs) > 300


@pytest.mark.parametrize("seed", range(20))
def test_the_sample_misses_no_stretch(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = onp.random.default_rng(seed)
    signatures = rng.integers(0, 1 + seed % 5, int(rng.integers(600, 4000))).astype(onp.int32)
    for _ in range(3):
        steps = onp.tile(rng.integers(0, 5, int(rng.integers(1, 300))), int(rng.integers(2, 40)))
        start = int(rng.integers(0, len(signatures)))
        signatures[start : start + len(steps)] = steps[: len(signatures) - start]
    limits = [(0, len(signatures), least, many) for least, many in ((8, 64), (2, 64), (8, 512), (3, 10))]
    sampled = [find_stretches(signatures, *limit) for limit in limits]
    monkeypatch.setattr(loop_steps, "_may_repeat", lambda *args: True)
    assert sampled == [find_stretches(signatures, *limit) for limit in limits]
