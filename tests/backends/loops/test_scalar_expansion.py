"""Straight-line code computes what the loops compute that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import func
from func.backends.loops import kernels
from func.backends.loops.buffer_assignment import assign_buffers
from func.backends.loops.scalar_expansion import expand_bodies, expand_scalars, is_expandable
from func.interpreters.compile.inlining import prepare_call
from func.interpreters.compile.native.translate import translate
from tests.support.random_functions import Maker

pytest.importorskip("llvmlite")

from func.backends.llvm.call_stubs.native_executable import NativeExecutable

pytestmark = pytest.mark.filterwarnings("ignore")


def translated(function: Any, args: tuple[Any, ...]) -> kernels.NativeProgram:
    """The native program of a function."""
    entry = func.jit(function).cached_call(args, {})[3]
    return translate(prepare_call(entry.compiled))


def expanded(function: Any, args: tuple[Any, ...], finite: bool = False) -> kernels.NativeProgram:
    """Its expanded form, with places for memory."""
    program = translated(function, args)
    expand_scalars(program, finite)
    for item in program.items:
        if isinstance(item, kernels.LoopNest):
            item.chunkings = []
    program.arena = assign_buffers(program.items)
    return program


def run(program: kernels.NativeProgram, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs that native code computes."""

    def refused(*args: Any) -> Any:
        raise AssertionError("native code has refused its arguments")

    return NativeExecutable(program, refused).flat_stub()(*args)


def operations(program: kernels.NativeProgram) -> int:
    """The operations of all nests without loops."""
    nests = [item for item in program.items if isinstance(item, kernels.LoopNest) and item.domain == ()]
    return sum([isinstance(instruction, kernels.Apply) for nest in nests for instruction in nest.code])


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed: int) -> None:
    made = Maker(seed, False).make(seed % 14 + 1)
    args = tuple(made.args)
    wanted = func.tree.leaves(func.jit(made.function(), compiler="numpy")(*args))
    limit = 1e-3 if "float32" in str(made) else 1e-9
    for got, value in zip(run(expanded(made.function(), args), args), wanted, strict=True):
        expected = np.asarray(value)
        assert (np.asarray(got).dtype, np.shape(got)) == (expected.dtype, expected.shape)
        if expected.dtype.kind in "fc":
            scale = max(1.0, np.max(np.abs(expected), initial=0))
            np.testing.assert_allclose(got, expected, rtol=0, atol=limit * scale)
        else:
            np.testing.assert_array_equal(got, expected)


def rotated(q: Any) -> Any:
    """A product of rotations about two axes, applied to a vector."""
    c, s = np.cos(q), np.sin(q)
    first = np.array([[c[0], -s[0], 0.0], [s[0], c[0], 0.0], [0.0, 0.0, 1.0]])
    second = np.array([[1.0, 0.0, 0.0], [0.0, c[1], -s[1]], [0.0, s[1], c[1]]])
    return first @ second @ np.array([0.0, 0.0, 1.0])


def test_one_nest_without_loops_is_left() -> None:
    program = expanded(rotated, (np.ones(2),), finite=True)
    assert [type(item).__name__ for item in program.items] == ["LoopNest"]
    # The vector is (s0 s1, -c0 s1, c1): four functions and three more operations.
    assert operations(program) <= 7
    np.testing.assert_allclose(run(program, (np.array([0.3, 0.4]),))[0], rotated(np.array([0.3, 0.4])))


def test_only_finite_numbers_let_zeros_drop_terms() -> None:
    plain, finite = [operations(expanded(rotated, (np.ones(2),), flag)) for flag in (False, True)]
    assert plain > 2 * finite
    program = expanded(rotated, (np.ones(2),))
    with np.errstate(all="ignore"):
        for q in ([np.inf, 0.0], [np.nan, 1.0], [0.5, -np.inf]):
            np.testing.assert_allclose(run(program, (np.array(q),))[0], rotated(np.array(q)), rtol=1e-15)


def test_signs_of_zeros_are_kept() -> None:
    def f(x: Any) -> Any:
        return np.stack([x[0] + 0.0, x[0] - 0.0, x[0] * -1.0, 0.0 - x[0], x[0] * x[1] + -0.0, -x[0] - x[1]])

    program = expanded(f, (np.ones(2),))
    for x in ([0.0, 0.0], [-0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]):
        got, wanted = run(program, (np.array(x),))[0], f(np.array(x))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_common_terms_are_computed_once() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.stack([x * y + 1.0, 2.0 - y * x, np.exp(x * y) * np.exp(y * x)])

    assert operations(expanded(f, (1.0, 2.0))) == 5


def test_items_that_stay_read_and_write_memory() -> None:
    def f(a: Any, b: Any) -> Any:
        u = np.sin(a[0]) + b
        x = np.linalg.solve(a + np.outer(u, u), u)
        y = np.linalg.solve(a, x * u)
        return x + y + u, np.cos(a[0]) * y

    a, b = np.diag([2.0, 3.0, 4.0]) + 0.1, np.arange(3.0)
    program = expanded(f, (a, b))
    routines = [item.routine for item in program.items if isinstance(item, kernels.LibraryCall)]
    assert routines == ["factors", "exchanges", "factors", "exchanges"]
    for got, wanted in zip(run(program, (a, b)), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_memory_that_an_item_overwrites_is_read_before() -> None:
    def f(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return carry * 0.5 + 1.0, carry[0]

        first = x * 2.0
        last, seen = func.scan(body, first, np.arange(40.0))
        return first + last, seen[:2] * first[1], first - x

    x = np.array([1.0, -2.0, 3.0])
    for got, wanted in zip(run(expanded(f, (x,)), (x,)), f(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_large_programs_stay_loops() -> None:
    assert not is_expandable(translated(lambda x: np.exp(x) * 2.0, (np.ones(5000),)))
    assert is_expandable(translated(rotated, (np.ones(2),)))


def seven_joints(q: Any) -> Any:
    """A function whose Jacobian has as many lanes as angles."""
    c, s, place = np.cos(q), np.sin(q), np.array([0.1, 0.2, 0.3])
    for i in range(4):
        turn = np.array([[c[i], -s[i], 0.0], [s[i], c[i], 0.0], [0.0, 0.0, 1.0]])
        place = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]) @ turn @ place + place * q[i]
    return np.concatenate([place, place[:2] * place[1:]])


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_columns_of_a_jacobian_are_lanes_of_a_loop(transform: Any, finite: bool) -> None:
    q = np.array([0.3, -0.4, 1.1, 0.7])
    program = expanded(transform(seven_joints), (q,), finite)
    wanted = func.jacobian(seven_joints)(q)
    np.testing.assert_allclose(run(program, (q,))[0], wanted, rtol=1e-12, atol=1e-13)


def test_equal_operations_of_all_lanes_become_one() -> None:
    def rows(x: Any, w: Any) -> Any:
        out = [np.exp(w[0]) * x[:, i] * w[1] + x[:, (i + 1) % 5] * w[i] for i in range(5)]
        return np.stack([a * b + a * a for a, b in zip(out, out[1:] + out[:1], strict=True)], axis=1)

    x, w = np.random.default_rng(0).normal(size=(7, 5)), np.arange(1.0, 6.0)
    program = expanded(rows, (x, w))
    lanes = [item for item in program.items if isinstance(item, kernels.LoopNest) and item.domain == (8,)]
    assert len(lanes) == 1
    assert sum([isinstance(each, kernels.Apply) for each in lanes[0].code]) < 60
    np.testing.assert_allclose(run(program, (x, w))[0], rows(x, w), rtol=1e-12)


DEFINITE = {
    "Cholesky factor": lambda a, b: np.linalg.cholesky(a),
    "cho_solve": lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower=True), b),
    "cho_solve, upper": lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b),
    "solve": lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"),
    "solve, lower": lambda a, b: scipy.linalg.solve(a, b, assume_a="pos", lower=True),
    "triangular": lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
    "triangular, transposed": lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True, trans=1),
    "triangular, upper, unit": lambda a, b: scipy.linalg.solve_triangular(a, b, unit_diagonal=True),
    "right": lambda a, b: scipy.linalg.solve_triangular(a, (b.T + 1.0).T, lower=False),
}


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("name", DEFINITE)
def test_small_factorizations_become_straight_line_code(name: str, finite: bool) -> None:
    rng = np.random.default_rng(3)
    for dtype, batch, n, k in ((np.float64, (), 4, 3), (np.float32, (), 3, 1), (np.float64, (2,), 3, 2)):
        root = rng.normal(size=(*batch, n, n))
        a = (root @ np.swapaxes(root, -1, -2) + n * np.eye(n)).astype(dtype)
        b = rng.normal(size=(*batch, n, k)).astype(dtype)
        for function in (DEFINITE[name], func.grad(lambda a, b: np.sum(DEFINITE[name](a, b) ** 2), (0, 1))):
            mapped = func.vmap(function) if batch else function
            program = expanded(mapped, (a, b), finite)
            assert not [item for item in program.items if isinstance(item, kernels.LibraryCall)]
            for got, wanted in zip(run(program, (a, b)), func.tree.leaves(mapped(a, b)), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-9 if dtype is np.float64 else 1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (np.linalg.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
        (DEFINITE["solve"], [[1.0, 1.0], [1.0, 1.0]]),
        (DEFINITE["solve"], [[np.nan, 1.0], [1.0, 1.0]]),
        (DEFINITE["triangular"], [[1.0, 1.0], [1.0, 0.0]]),
    ],
)
def test_straight_line_factorizations_report_failures(function: Any, matrix: Any) -> None:
    args = (np.array(matrix), np.ones((2, 1)))[: 1 if function is np.linalg.cholesky else 2]
    program = expanded(function, args)
    with pytest.raises(AssertionError, match="refused"):
        run(program, args)


def test_solves_with_one_matrix_share_its_factors() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        x = np.linalg.solve(a, b)
        return x, np.linalg.solve(a, c[:, None] * x), np.linalg.solve(a.T, x @ c[:2])

    a, b, c = np.random.default_rng(0).normal(size=(3, 3)), np.arange(6.0).reshape(3, 2), np.ones(3)
    program = expanded(f, (a, b, c))
    routines = [item.routine for item in program.items if isinstance(item, kernels.LibraryCall)]
    assert routines.count("factors") == 1 and routines.count("exchanges") == 3
    for got, wanted in zip(run(program, (a, b, c)), f(a, b, c), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_solves_for_many_columns_stay_calls() -> None:
    def f(a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b), np.linalg.solve(a.T, b[:, 0]), np.linalg.solve(a, b[:, :2])

    a, b = np.random.default_rng(0).normal(size=(4, 4)), np.arange(12.0).reshape(4, 3)
    program = expanded(f, (a, b))
    routines = [item.routine for item in program.items if isinstance(item, kernels.LibraryCall)]
    assert sorted(routines) == ["exchanges", "exchanges", "factors", "getrs"]
    for got, wanted in zip(run(program, (a, b)), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11)


def bodies_expanded(function: Any, args: tuple[Any, ...], finite: bool = False) -> kernels.NativeProgram:
    """The native program with straight-line bodies of loops."""
    program = translated(function, args)
    expand_bodies(program, finite)
    program.arena = assign_buffers(program.items)
    return program


def driven(u: Any, start: Any) -> Any:
    """A loop whose gradient keeps several numbers of its steps, some of them twice."""

    def step(carry: Any, inputs: Any) -> tuple[Any, Any]:
        x, y, heading, speed = (carry[k] for k in range(4))
        after = np.stack([x + speed * np.cos(heading), y + speed * np.sin(heading), heading + speed * inputs[1], speed])
        return after + 0.1 * inputs[0], after[:2] * inputs

    last, seen = func.scan(step, start, u)
    return np.sum(last**2) + np.sum(np.sin(seen))


def counted(x: Any) -> Any:
    """Loops in loops, a branch and a loop that ends by a condition."""

    def outer(i: Any, carry: Any) -> Any:
        inner = func.fori_loop(0, 3, lambda j, y: y * 0.5 + np.roll(y, 1) * (i - j), carry)
        return func.cond(inner[0] > 0, lambda y: y * 2.0, lambda y: y[::-1] + x, inner)

    out = func.fori_loop(0, 4, outer, x)
    return func.while_loop(lambda y: np.sum(y * y) > 1.0, lambda y: y * 0.25, out)


BODIES = {
    "scan": (driven, (np.linspace(-1, 1, 24).reshape(12, 2), np.array([0.1, 0.2, 0.3, 0.4]))),
    "gradient of a scan": (func.grad(driven, (0, 1)), (np.ones((12, 2)), np.array([0.1, 0.2, 0.3, 0.4]))),
    "Hessian of a scan": (func.hessian(driven), (np.ones((4, 2)), np.array([0.1, 0.2, 0.3, 0.4]))),
    "loops in loops": (counted, (np.array([1.0, -2.0, 0.5]),)),
    "tangents of loops": (func.jacfwd(counted), (np.array([1.0, -2.0, 0.5]),)),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_loops(name: str) -> None:
    function, args = BODIES[name]
    for finite in (False, True):
        outs = run(bodies_expanded(function, args, finite), args)
        for got, wanted in zip(outs, func.tree.leaves(function(*args)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_equal_numbers_of_steps_are_kept_once() -> None:
    function, args = BODIES["gradient of a scan"]
    stacks = []
    for program in (translated(function, args), bodies_expanded(function, args)):
        loops = [item for item in program.items if isinstance(item, kernels.CountedLoop)]
        stacks.append(len({view.storage for view in loops[-1].slices if view.storage.kind == "arena"}))
    assert stacks[1] < stacks[0]


@pytest.mark.parametrize("seed", range(60, 90))
def test_bodies_of_random_functions(seed: int) -> None:
    made = Maker(seed, False).make(seed % 20 + 1)
    args = tuple(made.args)
    wanted = func.tree.leaves(func.jit(made.function(), compiler="numpy")(*args))
    limit = 1e-3 if "float32" in str(made) else 1e-9
    for got, value in zip(run(bodies_expanded(made.function(), args), args), wanted, strict=True):
        expected = np.asarray(value)
        assert (np.asarray(got).dtype, np.shape(got)) == (expected.dtype, expected.shape)
        scale = max(1.0, np.max(np.abs(expected), initial=0)) if expected.dtype.kind in "fc" else 1.0
        np.testing.assert_allclose(got, expected, rtol=0, atol=limit * scale)
