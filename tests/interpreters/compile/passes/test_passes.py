"""The passes: each rule applies and is right, and random programs compute the same after every pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import func
from func.interpreters.compile.passes import PIPELINE, optimize
from func.interpreters.compile.passes.cleanup import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    strip_annotations,
)
from func.interpreters.compile.passes.contraction_order import order_contractions
from func.interpreters.compile.passes.index_arithmetic import compose
from func.interpreters.compile.passes.rewriting.algebra import simplify_algebra
from func.interpreters.compile.passes.rewriting.sum_trees import join_padded_sums
from func.interpreters.core import aval_of
from func.interpreters.primitives.elementwise import table as ew
from func.interpreters.primitives.structural import identity, shapes, slicing
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.identity import as_seed, barrier
from func.interpreters.primitives.structural.indexing import gather, scatter_add
from func.interpreters.primitives.structural.reductions import reduce_max, reduce_mean
from func.interpreters.primitives.structural.sorting import argsort, reorder
from func.interpreters.program.program import Program, Var
from tests.support.random_programs import Drawn, programs

PASSES = [
    eliminate_dead_code,
    strip_annotations,
    eliminate_common_subexpressions,
    fold_constants,
    simplify_algebra,
    join_padded_sums,
    order_contractions,
    optimize,
]
RNG = np.random.default_rng(0)


def names(program: Program) -> list[str]:
    """The names of the primitives of a program, in order."""
    return [equation.primitive.name for equation in program.equations]


def avals(program: Program) -> list[Any]:
    return [x.aval if type(x) is Var else aval_of(x) for x in program.outputs]


def assert_same(before: Program, after: Program, args: Any, bounds: Any = None) -> None:
    """The programs have outputs of the same avals and, up to rounding, of the same values."""
    after.check()
    assert avals(after) == avals(before)
    variables = [*before.inputs, *[out for equation in before.equations for out in equation.outputs]]
    single = any([var.dtype == np.float32 for var in variables])
    eps = float(np.finfo(np.float32 if single else np.float64).eps)
    with np.errstate(all="ignore"):
        pairs = list(zip(before.run(args), after.run(args), strict=True))
    for i, (want, got) in enumerate(pairs):
        assert np.shape(got) == np.shape(want)
        assert aval_of(got).dtype == aval_of(want).dtype
        dtype = np.asarray(want).dtype
        if dtype.kind in "fc":
            scale = 1 if bounds is None else bounds[i] + 1
            np.testing.assert_allclose(got, want, rtol=100 * eps, atol=100 * eps * scale)
        else:
            np.testing.assert_array_equal(got, want)


ROUNDED: dict[str, Callable[[Any], Any]] = {
    "a quotient is no product with the reciprocal": lambda x: x / 3.0,
    "quotients by powers of two": lambda x: x / 4.0 + x / 0.5,
    "factors in a row": lambda x: x * 3.3 * 1.7,
    "factors below one": lambda x: x * 1e-200 * 0.1,
    "a sum with zero": lambda x: x * 0.0 * -1.0 + 0.0,
    "a difference with zero": lambda x: 0.0 - x * 0.0,
    "narrow and wide again": lambda x: x.astype(np.float32).astype(np.float64),
    "integers and back": lambda x: (x * 100).astype(np.int64).astype(np.float64),
}


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_and_signs_of_zero_stay(name: str, compiler: str) -> None:
    x = np.concatenate([RNG.normal(size=50), [0.0, -0.0, 1e-120, -1e308]])
    with np.errstate(all="ignore"):
        expected = ROUNDED[name](x)
    result = func.jit(ROUNDED[name], compiler=compiler)(x)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_gradients_by_slices_that_overlap(width: int) -> None:
    def f(x: Any) -> Any:
        return sum([np.sum(np.sin((i + 1) * x[3 * i : 3 * i + width])) for i in range(3)])

    x = RNG.normal(size=12)
    np.testing.assert_allclose(func.jit(func.grad(f))(x), func.grad(f)(x), rtol=1e-13)
    rows = np.outer(x, x)
    np.testing.assert_allclose(func.jit(func.grad(f))(rows), func.grad(f)(rows), rtol=1e-13)


def test_equal_bits_of_other_dtypes_are_other_constants() -> None:
    zeros, integers = np.zeros(3), np.zeros(3, np.int64)
    program = func.make_program(lambda n: (n + zeros, n + integers))(np.arange(3))
    after = eliminate_common_subexpressions(program)
    assert_same(program, after, (np.arange(3),))
    assert [aval.dtype for aval in avals(after)] == [np.float64, np.int64]


@pytest.mark.parametrize("apply_pass", PASSES, ids=lambda apply_pass: apply_pass.__name__)
@settings(max_examples=150)
@given(drawn=programs())
def test_random_programs_compute_the_same(apply_pass: Callable[[Program], Program], drawn: Drawn) -> None:
    assert_same(drawn.program, apply_pass(drawn.program), drawn.args, drawn.bounds)


@pytest.mark.parametrize(
    "apply_pass",
    [eliminate_dead_code, eliminate_common_subexpressions, fold_constants, join_padded_sums],
    ids=lambda apply_pass: apply_pass.__name__,
)
@settings(max_examples=60)
@given(drawn=programs())
def test_cleanup_passes_are_idempotent(apply_pass: Callable[[Program], Program], drawn: Drawn) -> None:
    after = apply_pass(drawn.program)
    assert apply_pass(after) is after


@settings(max_examples=60)
@given(drawn=programs())
def test_an_optimised_program_does_not_grow(drawn: Drawn) -> None:
    after = optimize(drawn.program)
    assert len(optimize(after).equations) <= len(after.equations)


X = RNG.normal(size=(3, 4))
V = RNG.normal(size=4)
S = RNG.normal(size=(4, 4))
Z = RNG.normal(size=3) + 1j * RNG.normal(size=3)
AB_BC = spec((0, 1), (1, 2), (0, 2))
A_AB = spec((0,), (0, 1), (1,))
ROW_1 = (1, (0, 4, 1))
MIDDLE = ((1, 3, 1), (0, 4, 1))


def where_twice(x: Any, y: Any) -> Any:
    condition = ew.less(x, 0)
    return shapes.where(condition, shapes.where(condition, x, 1.0), y)


RULES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "x·1": (lambda x: ew.multiply(x, 1.0), (X,), []),
    "1·x": (lambda x: ew.multiply(1, x), (X,), []),
    "x·ones": (lambda x: ew.multiply(x, np.ones(4)), (X,), []),
    "x·ones, broadcast": (lambda x: ew.multiply(x, np.ones((3, 4))), (V,), ["broadcast"]),
    "x·(-1)": (lambda x: ew.multiply(x, -1), (X,), ["negative"]),
    "x/1": (lambda x: ew.divide(x, 1), (X,), []),
    "x/8": (lambda x: ew.divide(x, 8), (X,), ["multiply"]),
    "x-0": (lambda x: ew.subtract(x, 0.0), (X,), []),
    "x+(-0.0)": (lambda x: ew.add(x, -0.0), (X,), []),
    "x+zeros": (lambda x: ew.add(np.zeros((3, 4)), x), (X,), []),
    "integer x+0": (lambda x: ew.add(x, 0), (np.arange(3),), []),
    "zeros-x": (lambda x: ew.subtract(np.zeros(4), x), (V,), ["negative"]),
    "-(-x)": (lambda x: ew.negative(ew.negative(x)), (X,), []),
    "-(x·c)": (lambda x: ew.negative(ew.multiply(x, 3.0)), (X,), ["multiply"]),
    "x+(-y)": (lambda x, y: ew.add(x, ew.negative(y)), (X, X), ["subtract"]),
    "(-x)+y": (lambda x, y: ew.add(ew.negative(x), y), (X, X), ["subtract"]),
    "x-(-y)": (lambda x, y: ew.subtract(x, ew.negative(y)), (X, X), ["add"]),
    "(-x)·(-y)": (lambda x, y: ew.multiply(ew.negative(x), ew.negative(y)), (X, X), ["multiply"]),
    "(-x)·c": (lambda x: ew.multiply(ew.negative(x), 2.5), (X,), ["multiply"]),
    "(x·2)·c": (lambda x: ew.multiply(ew.multiply(x, 2), 100.0), (X,), ["multiply"]),
    "(-x)²": (lambda x: ew.square(ew.negative(x)), (X,), ["square"]),
    "x²": (lambda x: ew.power(x, 2), (X,), ["square"]),
    "x to the -1": (lambda x: ew.power(x, -1), (X,), ["reciprocal"]),
    "scalar to the smaller operand": (
        lambda x, v: ew.multiply(ew.multiply(x, 2.0), ew.sin(v)),
        (RNG.normal(size=(5, 4)), V),
        ["sin", "multiply", "multiply"],
    ),
    "nan_safe_multiply of a finite constant": (lambda x: ew.nan_safe_multiply(V, x), (X,), ["multiply"]),
    "transposed broadcast": (
        lambda v: ew.add(shapes.permute(shapes.broadcast(v, shape=(3, 4)), order=(1, 0)), np.ones((4, 3))),
        (V,),
        ["add", "reshape", "broadcast"],
    ),
    "x¹": (lambda x: ew.power(x, 1), (X,), []),
    "+x": (lambda x: ew.positive(x), (X,), []),
    "nan_safe_multiply by ones": (lambda x: ew.nan_safe_multiply(x, np.ones(4)), (X,), []),
    "nan_safe_multiply by zeros": (lambda x: ew.nan_safe_multiply(x, np.zeros(4)), (X,), []),
    "uniform constant": (lambda x: ew.multiply(x, np.full(4, 3.0)), (X,), ["multiply"]),
    "not (x = y)": (lambda x, y: ew.logical_not(ew.equal(x, y)), (X, X), ["not_equal"]),
    "conjugate of real": (lambda x: ew.conjugate(x), (X,), []),
    "conjugate twice": (lambda z: ew.conjugate(ew.conjugate(z)), (Z,), []),
    "real of real": (lambda x: ew.real(x), (X,), []),
    "real of complex": (lambda x: ew.real(ew.make_complex(x, x)), (X,), []),
    "convert to the same": (lambda x: shapes.convert(x, dtype=np.dtype(float)), (X,), []),
    "convert and back": (
        lambda x: shapes.convert(shapes.convert(x, dtype=np.dtype(complex)), dtype=np.dtype(float)),
        (X,),
        [],
    ),
    "where True": (lambda x, y: shapes.where(np.array(True), x, y), (X, X), []),
    "where the same": (lambda x: shapes.where(ew.less(x, 0), x, x), (X,), []),
    "where not": (lambda x, y: shapes.where(ew.logical_not(ew.less(x, 0)), x, y), (X, X), ["less", "where"]),
    "where twice": (where_twice, (X, X), ["less", "where"]),
    "reshape twice": (lambda x: shapes.reshape(shapes.reshape(x, shape=(12,)), shape=(4, 3)), (X,), ["reshape"]),
    "reshape and back": (lambda x: shapes.reshape(shapes.reshape(x, shape=(12,)), shape=(3, 4)), (X,), []),
    "transpose twice": (lambda x: shapes.permute(shapes.permute(x, order=(1, 0)), order=(1, 0)), (X,), []),
    "broadcast twice": (
        lambda x: shapes.broadcast(shapes.broadcast(x, shape=(3, 4)), shape=(2, 3, 4)),
        (V,),
        ["broadcast"],
    ),
    "broadcast operand": (lambda x, v: ew.add(x, shapes.broadcast(v, shape=(3, 4))), (X, V), ["add"]),
    "broadcast operands": (
        lambda v: ew.sin(ew.add(shapes.broadcast(v, shape=(3, 4)), 1)),
        (V,),
        ["add", "sin", "broadcast"],
    ),
    "below reshape": (
        lambda x, y: shapes.reshape(
            ew.add(shapes.reshape(x, shape=(12,)), shapes.reshape(y, shape=(12,))), shape=(3, 4)
        ),
        (X, X),
        ["add"],
    ),
    "below new axes": (
        lambda x, v: shapes.reshape(ew.add(shapes.reshape(x, shape=(3, 1, 4)), v), shape=(3, 4)),
        (X, V),
        ["add"],
    ),
    "below transposes": (
        lambda x, y: shapes.permute(
            ew.add(shapes.permute(x, order=(1, 0)), shapes.permute(y, order=(1, 0))), order=(1, 0)
        ),
        (X, X),
        ["add"],
    ),
    "sum over length one": (lambda x: shapes.reduce_sum(shapes.reshape(x, shape=(3, 1, 4)), axes=(1,)), (X,), []),
    "max with new axes": (
        lambda x: reduce_max(shapes.reshape(x, shape=(3, 1, 4)), axes=(1, 2)),
        (X,),
        ["max"],
    ),
    "sum of a transpose": (lambda x: shapes.reduce_sum(shapes.permute(x, order=(1, 0)), axes=(0,)), (X,), ["sum"]),
    "sum of broadcast": (
        lambda v: shapes.reduce_sum(shapes.broadcast(v, shape=(3, 4)), axes=(0,)),
        (V,),
        ["multiply"],
    ),
    "mean of broadcast": (
        lambda v: reduce_mean(shapes.broadcast(v, shape=(3, 4)), axes=(0,), dtype=None),
        (V,),
        [],
    ),
    "max of broadcast": (lambda v: reduce_max(shapes.broadcast(v, shape=(3, 4)), axes=(0, 1)), (V,), ["max"]),
    "sum of a sum": (lambda x: shapes.reduce_sum(shapes.reduce_sum(x, axes=(0,)), axes=(0,)), (X,), ["sum"]),
    "sum of all": (lambda x: shapes.reduce_sum(shapes.reshape(x, shape=(12,)), axes=(0,)), (X,), ["sum"]),
    "sum of c·x": (lambda x: shapes.reduce_sum(ew.multiply(x, 3.0), axes=(0, 1)), (X,), ["sum", "multiply"]),
    "slice twice": (
        lambda x: slicing.getitem(slicing.getitem(x, index=((2, -1, -1), (1, 4, 2))), index=(1, (1, -1, -1))),
        (X,),
        ["getitem"],
    ),
    "slice of all": (lambda x: slicing.getitem(x, index=((0, 3, 1), (0, 4, 1))), (X,), []),
    "slice with a new axis": (lambda x: slicing.getitem(x, index=((0, 3, 1), None, (0, 4, 1))), (X,), ["reshape"]),
    "slice of broadcast": (lambda v: slicing.getitem(shapes.broadcast(v, shape=(3, 4)), index=ROW_1), (V,), []),
    "slice of joined": (
        lambda x, y: slicing.getitem(slicing.concatenate(y, x, axis=0), index=(4, (0, 4, 1))),
        (X, X),
        ["getitem"],
    ),
    "slice of padded": (
        lambda x: slicing.getitem(slicing.embed(x, index=ROW_1, shape=(3, 4)), index=ROW_1),
        (V,),
        [],
    ),
    "slice beside padded": (
        lambda x: slicing.getitem(slicing.embed(x, index=ROW_1, shape=(3, 4)), index=(0, (0, 4, 1))),
        (V,),
        [],
    ),
    "slice of written": (lambda x, v: slicing.getitem(slicing.update(x, v, index=ROW_1), index=ROW_1), (X, V), []),
    "slice beside written": (
        lambda x, v: slicing.getitem(slicing.update(x, v, index=ROW_1), index=(2, (0, 4, 1))),
        (X, V),
        ["getitem"],
    ),
    "padding of all": (lambda x: slicing.embed(x, index=((0, 3, 1), (0, 4, 1)), shape=(3, 4)), (X,), []),
    "padding twice": (
        lambda x: slicing.embed(slicing.embed(x, index=(1,), shape=(4,)), index=ROW_1, shape=(3, 4)),
        (np.array(2.0),),
        ["embed"],
    ),
    "padded alike": (
        lambda x, y: ew.add(slicing.embed(x, index=ROW_1, shape=(3, 4)), slicing.embed(y, index=ROW_1, shape=(3, 4))),
        (V, V),
        ["add", "embed"],
    ),
    "written into zeros": (lambda v: slicing.update(np.zeros((3, 4)), v, index=ROW_1), (V,), ["embed"]),
    "written over all": (lambda x, y: slicing.update(x, y, index=((0, 3, 1), (0, 4, 1))), (X, X), []),
    "joined once": (lambda x: slicing.concatenate(x, axis=0), (X,), []),
    "joined twice": (
        lambda x, y: slicing.concatenate(slicing.concatenate(x, y, axis=0), x, axis=0),
        (X, X),
        ["concatenate"],
    ),
    "joined slices": (
        lambda x: slicing.concatenate(
            slicing.getitem(x, index=((0, 1, 1), (0, 4, 1))), slicing.getitem(x, index=((1, 3, 1), (0, 4, 1))), axis=0
        ),
        (X,),
        [],
    ),
    "joined rows backwards": (
        lambda x: slicing.concatenate(
            *[shapes.reshape(slicing.getitem(x, index=(i, (0, 4, 1))), shape=(1, 4)) for i in (2, 1, 0)], axis=0
        ),
        (X,),
        ["getitem"],
    ),
    "stacked": (
        lambda x, y: slicing.concatenate(shapes.reshape(x, shape=(1, 4)), shapes.reshape(y, shape=(1, 4)), axis=0),
        (V, V),
        ["concatenate", "reshape"],
    ),
    "transposed operand": (
        lambda x, y: contract(shapes.permute(x, order=(1, 0)), y, spec=AB_BC),
        (X, X),
        ["contract"],
    ),
    "transposed product": (
        lambda x, s: shapes.permute(contract(x, s, spec=AB_BC), order=(1, 0)),
        (X, S),
        ["contract"],
    ),
    "unit labels": (
        lambda x, y: contract(shapes.reshape(x, shape=(1, 4)), y, spec=AB_BC),
        (V, S),
        ["contract", "reshape"],
    ),
    "no labels": (lambda x, y: contract(x, y, spec=spec((), (0,), (0,))), (np.array(2.0), V), ["contract"]),
    "broadcast summed operand": (
        lambda x, y: contract(shapes.broadcast(x, shape=(4,)), y, spec=A_AB),
        (np.array(2.0), S),
        ["sum", "multiply"],
    ),
    "broadcast free operand": (
        lambda x, y: contract(shapes.broadcast(x, shape=(3, 4)), y, spec=AB_BC),
        (V, S),
        ["contract", "broadcast"],
    ),
    "ones": (lambda y: contract(np.ones(4), y, spec=A_AB), (S,), ["sum"]),
    "identity": (lambda y: contract(as_seed(np.eye(4), y), y, spec=AB_BC), (S,), []),
    "twice the identity, right": (lambda x: contract(x, as_seed(2 * np.eye(4), x), spec=AB_BC), (X,), ["multiply"]),
    "unit vector": (lambda y: contract(as_seed(np.eye(4)[2], y), y, spec=A_AB), (S,), ["getitem"]),
    "rows of the identity": (lambda y: contract(as_seed(np.eye(4)[1:3], y), y, spec=AB_BC), (S,), ["getitem"]),
    "one-hot": (lambda y: contract(as_seed(np.eye(4)[[2, 0, 0]], y), y, spec=AB_BC), (S,), ["gather"]),
    "factor of an operand": (
        lambda s, v: contract(ew.multiply(s, 3.0), v, spec=spec((0, 1), (1,), (0,))),
        (S, V),
        ["contract", "multiply"],
    ),
    "summed product": (
        lambda x, s: shapes.reduce_sum(contract(x, s, spec=AB_BC), axes=(0,)),
        (X, S),
        ["sum", "contract"],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_applies_and_is_right(name: str) -> None:
    function, args, expected = RULES[name]
    program = func.make_program(function)(*args)
    simplified = simplify_algebra(program)
    assert_same(program, simplified, args)
    assert names(simplified) == expected


SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1e308])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ew.add(x, 0.0),
        lambda x: ew.add(x, -0.0),
        lambda x: ew.subtract(x, 0.0),
        lambda x: ew.subtract(0.0, x),
        lambda x: ew.multiply(x, 0.0),
        lambda x: ew.multiply(x, -1.0),
        lambda x: ew.divide(x, 4.0),
        lambda x: ew.divide(x, x),
        lambda x: ew.subtract(x, x),
        lambda x: ew.negative(ew.subtract(x, x)),
        lambda x: ew.multiply(ew.multiply(x, 2.0), 3.0),
        lambda x: ew.multiply(ew.multiply(x, 0.5), 2.0),
        lambda x: ew.multiply(ew.multiply(x, 0.1), 3.0),
        lambda x: ew.add(x, ew.negative(x)),
        lambda x: ew.nan_safe_multiply(x, np.zeros(9)),
        lambda x: ew.negative(ew.multiply(x, 0.0)),
        lambda x: shapes.where(ew.logical_not(ew.less(x, 0)), x, 1.0),
        lambda x: ew.logical_not(ew.equal(x, x)),
        lambda x: ew.logical_not(ew.less(x, 1)),
        lambda x: ew.power(x, 2),
        lambda x: ew.power(x, -1.0),
    ],
)
def test_special_values_keep_their_bits(function: Callable[..., Any]) -> None:
    program = func.make_program(function)(SPECIAL)
    with np.errstate(all="ignore"):
        (want,), (got,) = program.run((SPECIAL,)), optimize(program).run((SPECIAL,))
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])


def test_dtypes_and_weak_types_stay() -> None:
    single = np.ones(3, np.float32)
    for function, args in [
        (lambda x: ew.multiply(x, np.ones(3)), (single,)),
        (lambda x: ew.multiply(x, np.float64(1)), (single,)),
        (lambda x: ew.add(x, np.zeros(3, complex)), (single,)),
        (lambda x: ew.multiply(x, 1), (2.5,)),
        (lambda x: ew.multiply(x, 1.0), (2,)),
        (lambda x: ew.divide(x, 1), (2,)),
        (lambda x: shapes.convert(shapes.convert(x, dtype=np.dtype(np.float32)), dtype=np.dtype(float)), (X / 3,)),
        (
            lambda x: shapes.convert(shapes.convert(x, dtype=np.dtype(float)), dtype=np.dtype(np.int64)),
            (np.array([2**60 + 1]),),
        ),
        (lambda x: shapes.reduce_sum(x, axes=(0,)), (np.ones(1, np.int8),)),
    ]:
        program = func.make_program(function)(*args)
        assert_same(program, optimize(program), args)


def test_products_of_complex_numbers_over_no_axes_multiply_by_one() -> None:
    """A NaN of the real part reaches the imaginary one."""
    program = func.make_program(lambda x: np.imag(np.prod(x, axis=())))(np.ones(2, complex))
    assert names(simplify_algebra(program)) == names(program)
    real = func.make_program(lambda x: np.negative(np.prod(x, axis=())))(np.ones(2))
    assert "prod" not in names(simplify_algebra(real))


def test_dead_equations_and_constants_are_dropped() -> None:
    program = func.make_program(lambda x: ew.multiply(ew.sin(x), V))(X)
    rest = eliminate_dead_code(Program(program.inputs, program.equations, [program.inputs[0]], program.constants))
    assert names(rest) == [] and not rest.constants


def test_all_effects_stay() -> None:
    seen: list[Any] = []

    def noisy(x: Any) -> Any:
        for _ in range(2):
            func.debug.callback(seen.append, ew.multiply(x, 1.0))
        return ew.sin(x)

    program = func.make_program(noisy)(V)
    for apply_pass in (*PASSES, *PIPELINE):
        assert [len(equation.outputs) for equation in apply_pass(program).equations].count(0) == 2
    optimize(program).run((V,))
    assert len(seen) == 2 and seen[0] is not None


def test_common_subexpressions_are_computed_once() -> None:
    program = func.make_program(lambda x: ew.add(ew.sin(ew.multiply(x, V.copy())), ew.sin(ew.multiply(x, V.copy()))))(X)
    merged = eliminate_common_subexpressions(program)
    assert names(merged) == ["multiply", "sin", "add"] and len(merged.constants) == 1
    assert_same(program, merged, (X,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ew.multiply(ew.multiply(x, 0.0), ew.multiply(x, -0.0)),
        lambda x: ew.divide(ew.multiply(x, 1), ew.multiply(x, True)),
        lambda x: ew.divide(ew.multiply(x, 1), ew.multiply(x, 1.0)),
        lambda x: ew.add(ew.add(x, np.zeros(4)), ew.add(x, -np.zeros(4))),
    ],
)
def test_different_equations_are_not_merged(function: Callable[..., Any]) -> None:
    program = func.make_program(function)(V)
    assert names(eliminate_common_subexpressions(program)) == names(program)


@pytest.mark.parametrize(
    "constant", [[0.0, -0.0], [complex(-1, 0.0), complex(-1, -0.0)], [complex(0.0, 2), complex(-0.0, 2)]]
)
def test_constants_keep_zeros_of_both_signs(constant: list[Any]) -> None:
    values = np.array(constant)
    found, expected = func.jit(lambda x: x * values)(np.ones(2)), func.jit(np.multiply)(np.ones(2), values)
    for part in ("real", "imag"):
        assert np.array_equal(np.signbit(getattr(found, part)), np.signbit(getattr(expected, part)))


def test_barriers_keep_recomputation() -> None:
    def twice(x: Any) -> Any:
        return ew.add(ew.sin(barrier(x, tag=1)), ew.sin(barrier(x, tag=2)))

    assert names(optimize(func.make_program(twice)(X))).count("sin") == 2


def closing_over(function: Callable[..., Any], x: Any, *constants: Any) -> Program:
    """The program of function(x, *constants) in which all arguments but the first are constants."""
    program = func.make_program(function)(x, *constants)
    values = dict(zip(program.inputs[1:], constants, strict=True))
    return Program(program.inputs[:1], program.equations, program.outputs, {**program.constants, **values})


def test_constants_are_folded_unless_they_grow() -> None:
    program = closing_over(lambda x, v: ew.multiply(x, ew.sin(v)), X, V)
    assert names(program) == ["sin", "multiply"]
    assert names(fold_constants(program)) == ["multiply"]
    assert_same(program, fold_constants(program), (X,))
    large = closing_over(lambda x, v: ew.add(x, shapes.broadcast(ew.sin(v), shape=(9000, 1, 4))), X, V)
    assert names(fold_constants(large)) == ["broadcast", "add"]


def test_folding_raises_no_warning() -> None:
    program = closing_over(lambda x, v: ew.multiply(x, ew.divide(v, 0.0)), X, V)
    assert names(fold_constants(program)) == ["multiply"]


def rows_of(matrix: Any) -> Any:
    total = 0.0
    for i in range(4):
        total = ew.add(
            total, func.numpy.sum(ew.multiply(ew.sin(slicing.getitem(matrix, index=(i, (0, 4, 1)))), i + 2.0))
        )
    return total


def test_columns_at_an_integer_and_at_a_run_of_one_are_joined() -> None:
    def function(x: Any) -> Any:
        return np.sum(x[:, 0] ** 3) * x[0, 1] + np.sum(x[:, 0:1] * x[:, 1:2] ** 2) + np.sum(np.sin(x[:, 2]))

    x = RNG.normal(size=(5, 3))
    for compiler in ("numpy", "llvm"):
        np.testing.assert_allclose(func.jit(func.grad(function), compiler=compiler)(x), func.grad(function)(x))


def outer_gradient(x: Any) -> Any:
    """Padded slices, and a term of a larger shape with the same lengths."""
    return (np.pad(x[:1], (1, 0)) + np.pad(x[1:], (0, 1))) + np.outer(x, x)


def two_outputs(x: Any) -> Any:
    return np.stack([x[0] ** 2, x[0] + np.sum(x[1:])])


TERMS_THAT_BROADCAST: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "rows beside a matrix": (outer_gradient, (2,)),
    "Jacobians of a batch as long as its rows": (func.vmap(func.jacrev(two_outputs)), (2, 2)),
    "Jacobians of shorter batches": (func.vmap(func.jacobian(two_outputs)), (2, 3)),
    "a padded column beside padded rows": (
        lambda x: np.pad(x[:, None], ((0, 0), (1, 0))) + np.pad(x[:1], (0, 1)) + np.pad(x[1:], (1, 0)),
        (2,),
    ),
    "terms that are broadcast to a padded one": (lambda x: np.pad(x, (1, 0)) + np.pad(x[:1], (0, 0)), (1,)),
    "three neighbours beside a cube": (
        lambda x: sum(np.pad(x[i : i + 1], (i, 2 - i)) for i in range(3)) + x[:, None, None] * x[:, None] * x,
        (3,),
    ),
}


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
@pytest.mark.parametrize("name", TERMS_THAT_BROADCAST)
def test_padded_terms_keep_their_places_where_the_sum_broadcasts(name: str, compiler: str) -> None:
    f, shape = TERMS_THAT_BROADCAST[name]
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(func.jit(f, compiler=compiler)(x), f(x))


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 1)])
def test_slices_of_another_shape_are_no_pieces_of_a_sum(shape: tuple[int, ...]) -> None:
    def function(x: Any, y: Any) -> Any:
        small = slicing.embed(x, index=((0, 1, 1),), shape=(1,))
        return ew.add(ew.add(small, slicing.embed(x, index=((1, 2, 1),), shape=(2,))), y)

    program = func.make_program(function)(np.ones(1), np.ones(shape))
    for apply_pass in (join_padded_sums, optimize):
        assert_same(program, apply_pass(program), (np.array([1.5]), np.zeros(shape)))


@pytest.mark.parametrize("primitive", [ew.subtract, ew.divide, ew.power, ew.less, ew.arctan2, ew.left_shift])
def test_operands_in_another_order_are_another_equation(primitive: Any) -> None:
    x, y = np.arange(1, 4), np.arange(3, 6)
    program = func.make_program(lambda x, y: (primitive(x, y), primitive(y, x)))(x, y)
    assert len(eliminate_common_subexpressions(program).equations) == 2


def test_slices_of_slices_are_composed() -> None:
    x = np.arange(5)
    runs = [(start, stop, step) for start in range(5) for stop in range(-1, 6) for step in (-2, -1, 1, 2, 3)]
    for outer in runs:
        length = len(range(*outer))
        part = x[slicing.as_slices((outer,))]
        for inner in [*range(length), *[one for one in runs if all([0 <= k < length for k in range(*one)])]]:
            both = compose((outer,), (inner,))
            np.testing.assert_array_equal(x[slicing.as_slices(both)], part[slicing.as_slices((inner,))])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_axes_of_equal_lengths_are_not_mixed_up(order: tuple[int, ...]) -> None:
    x = np.arange(8.0).reshape(2, 2, 2) ** 2
    for axes in itertools.chain.from_iterable([itertools.combinations(range(3), n) for n in range(4)]):
        for function in (
            lambda x, axes=axes: reduce_max(shapes.permute(x, order=order), axes=axes),
            lambda x, axes=axes: shapes.reduce_sum(shapes.permute(x, order=order), axes=axes),
            lambda x, axes=axes: shapes.reduce_sum(ew.multiply(shapes.permute(x, order=order), x), axes=axes),
        ):
            program = func.make_program(function)(x)
            assert_same(program, optimize(program), (x,))


@pytest.mark.parametrize(("first", "second"), list(itertools.product((0, 1), repeat=2)))
def test_what_happens_along_one_axis_is_not_done_along_another(first: int, second: int) -> None:
    x = np.array([[3.0, 1.0], [0.0, 2.0]])
    sorted_by = func.make_program(lambda x: reorder(x, argsort(x, axis=first, kind=None), axis=second))(x)
    joined = func.make_program(
        lambda x: slicing.concatenate(
            slicing.concatenate(x, ew.sin(x), axis=first), *([x] * 2 if first == second else []), axis=second
        )
    )(x)
    pieces = func.make_program(
        lambda x: slicing.concatenate(
            slicing.concatenate(x, ew.sin(x), axis=first), slicing.concatenate(x, x, axis=first), axis=second
        )
    )(x)
    for program in (sorted_by, joined, pieces):
        for apply_pass in PIPELINE:
            assert_same(program, apply_pass(program), (x,))


MINUS_UNSIGNED: dict[str, Callable[[Any], Any]] = {
    "difference": lambda x: 1.0 - (-x),
    "sum": lambda x: 1.0 + (-x),
    "product": lambda x: (-x) * 2.5,
    "product of two": lambda x: (-x) * (-x) * 0.5,
    "negative product": lambda x: -((-x) * 2.5),
    "sum of all": lambda x: np.sum(-x, dtype=np.float64),
    "sum of multiples": lambda x: np.sum(x * 100, dtype=np.float64),
    "inner product": lambda x: (-x) @ np.ones(3),
}


@pytest.mark.parametrize("dtype", ["u1", "u8", "i8"])
@pytest.mark.parametrize("name", MINUS_UNSIGNED)
def test_minus_an_integer_may_wrap(name: str, dtype: str) -> None:
    x = np.array([3, 0, np.iinfo(dtype).min if dtype == "i8" else 200], dtype)
    with np.errstate(over="ignore"):
        expected = MINUS_UNSIGNED[name](x)
    for compiler in ("numpy", "llvm"):
        np.testing.assert_allclose(func.jit(MINUS_UNSIGNED[name], compiler=compiler)(x), expected, rtol=1e-15)


def test_products_with_empty_arrays_have_an_order() -> None:
    a, b, c = np.ones((2, 3)), np.ones((3, 0)), np.ones((0, 2))
    for compiler in ("numpy", "llvm"):
        product = func.jit(lambda a, b, c: a @ b @ c, compiler=compiler)
        np.testing.assert_array_equal(product(a, b, c), np.zeros((2, 2)))
        np.testing.assert_array_equal(product(a.T, a, b), np.zeros((3, 0)))


def test_an_empty_sum_of_products_is_zero() -> None:
    program = func.make_program(
        lambda x, y: shapes.reduce_sum(contract(x, y, spec=spec((0,), (1, 0), (0, 1))), axes=(0, 1))
    )(np.ones(2), np.ones((0, 2)))
    args = np.array([np.nan, 1.0]), np.ones((0, 2))
    assert_same(program, optimize(program), args)


def test_constants_that_raise_are_not_folded() -> None:
    def function(x: Any, place: Any, values: Any) -> Any:
        return ew.multiply(x, gather(values, place, axis=0))

    program = func.make_program(function)(1.0, np.array(7), V)
    constants = dict(zip(program.inputs[1:], (np.array(7), V), strict=True))
    program = Program(program.inputs[:1], program.equations, program.outputs, constants)
    assert names(optimize(program)) == ["gather", "multiply"]
    with pytest.raises(IndexError):
        optimize(program).run((1.0,))


def test_padded_rows_are_joined() -> None:
    program = func.make_program(func.grad(rows_of))(S)
    joined = optimize(program)
    assert_same(program, joined, (S,))
    assert "embed" not in names(joined) and names(joined).count("concatenate") == 1


def test_slices_across_pieces_stay() -> None:
    def function(x: Any, y: Any) -> Any:
        whole = slicing.concatenate(x, y, axis=0)
        return [slicing.getitem(whole, index=((start, stop, 1),)) for start in range(6) for stop in range(start, 7)]

    program = func.make_program(function)(np.arange(3.0), np.arange(4.0))
    assert_same(program, simplify_algebra(program), (np.arange(3.0), np.arange(4.0)))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0, 1, 2], ["concatenate"]),
        ([3, 1, 0], ["concatenate"]),
        ([2, 2, 1, 0], ["concatenate"]),
        ([0, 1], ["embed", "embed", "add"]),
    ],
)
def test_pieces_are_joined_where_it_pays(places: list[int], expected: list[str]) -> None:
    def summed(v: Any) -> Any:
        total = None
        for i in places:
            part = slicing.embed(ew.multiply(v, i + 1.0), index=(i, (0, 4, 1)), shape=(4, 4))
            total = part if total is None else ew.add(total, part)
        return total

    program = func.make_program(summed)(V)
    assert_same(program, join_padded_sums(program), (V,))
    assert [name for name in names(join_padded_sums(program)) if name in ("concatenate", "embed")] == [
        name for name in expected if name != "add"
    ]


def test_chains_are_ordered_by_cost() -> None:
    left, right, vector = RNG.normal(size=(30, 30)), RNG.normal(size=(30, 30)), RNG.normal(size=30)

    def chain(a: Any, b: Any, v: Any) -> Any:
        return a @ b @ v

    program = func.make_program(chain)(left, right, vector)
    ordered = order_contractions(program)
    assert_same(program, ordered, (left, right, vector), [1e3])
    assert [equation.outputs[0].shape for equation in ordered.equations] == [(30,), (30,)]


def test_an_inner_product_that_is_needed_stays() -> None:
    def chain(a: Any, b: Any, v: Any) -> Any:
        inner = a @ b
        return inner @ v, inner

    program = func.make_program(chain)(S, S, V)
    assert order_contractions(program) is program


def test_sums_of_large_products_are_contractions() -> None:
    def distances(a: Any, b: Any) -> Any:
        return shapes.reduce_sum(
            ew.multiply(shapes.reshape(a, shape=(3, 1, 4)), shapes.reshape(b, shape=(1, 4, 4))), axes=(2,)
        )

    program = func.make_program(distances)(X, S)
    after = optimize(program)
    assert_same(program, after, (X, S))
    assert "contract" in names(after) and "multiply" not in names(after)
    plain = func.make_program(lambda a: shapes.reduce_sum(ew.multiply(a, ew.sin(a)), axes=(0, 1)))(X)
    assert order_contractions(plain) is plain


def rnn(wx: Any, wh: Any, xs: Any) -> Any:
    h = func.numpy.zeros_like(wh[0])
    for t in range(xs.shape[0]):
        h = func.numpy.tanh(xs[t] @ wx + h @ wh)
    return func.numpy.sum(h * h)


def test_contractions_in_a_sum_become_one() -> None:
    args = RNG.normal(size=(3, 4)), S, RNG.normal(size=(6, 3))
    program = func.make_program(func.grad(rnn, argnums=(0, 1)))(*args)
    after = optimize(program)
    assert_same(program, after, args, [10, 10])
    outer = [
        equation
        for equation in after.equations
        if equation.primitive is contract and len(equation.outputs[0].shape) == 2
    ]
    assert len(outer) == 2


def test_a_common_operand_is_multiplied_once() -> None:
    def branches(x: Any, y: Any, w: Any) -> Any:
        return x @ w + y @ w + x @ func.numpy.sin(w)

    program = func.make_program(branches)(X, X + 1, S)
    after = order_contractions(program)
    assert_same(program, after, (X, X + 1, S))
    assert sorted(names(after)) == ["add", "add", "contract", "contract", "sin"]


def test_rows_of_one_array_are_multiplied_together() -> None:
    def steps(w: Any, xs: Any) -> Any:
        h = func.numpy.zeros(4)
        for t in range(9):
            h = func.numpy.tanh(xs[t] @ w + h)
        return h

    args = RNG.normal(size=(3, 4)), RNG.normal(size=(9, 3))
    program = func.make_program(steps)(*args)
    after = optimize(program)
    assert_same(program, after, args)
    assert names(after).count("contract") == 1


def test_a_scatter_into_zeros_that_is_added_scatters_into_the_other_term() -> None:
    def picked(x: Any) -> Any:
        return func.numpy.sum(ew.sin(x)[[0, 2, 2]] ** 2) + func.numpy.sum(x**2)

    program = func.make_program(func.grad(picked))(V)
    after = optimize(program)
    assert_same(program, after, (V,))
    assert_same(program, simplify_algebra(program), (V,))
    table = func.make_program(lambda x, y: ew.add(x, scatter_add(np.zeros(4), y, np.array([1, 1, 3]), axis=0)))(
        V, np.arange(3.0)
    )
    assert names(simplify_algebra(table)) == ["scatter_add"]
    assert_same(table, simplify_algebra(table), (V, np.arange(3.0)))


def test_annotations_are_stripped() -> None:
    program = func.make_program(lambda x: identity.stop_gradient(ew.sin(identity.named(x, label="x"))))(X)
    assert names(strip_annotations(program)) == ["sin"]
    assert_same(program, strip_annotations(program), (X,))


def deep(count: int, step: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def repeated(x: Any) -> Any:
        first = x
        for _ in range(count):
            x = step(x, first)
        return x

    return repeated


@pytest.mark.parametrize(
    "step",
    [
        lambda x, first: ew.add(x, first),
        lambda x, first: ew.negative(x),
        lambda x, first: contract(x, first, spec=AB_BC),
        lambda x, first: shapes.permute(ew.sin(x), order=(1, 0)),
        lambda x, first: ew.multiply(shapes.broadcast(x, shape=(4, 4)), 1.0),
        lambda x, first: shapes.reshape(ew.sin(shapes.reshape(x, shape=(16,))), shape=(4, 4)),
        lambda x, first: slicing.getitem(slicing.concatenate(x, first, axis=0), index=((1, 5, 1), (0, 4, 1))),
        lambda x, first: shapes.where(ew.less(first, 0), x, first),
    ],
)
def test_long_programs_are_no_deep_recursion(step: Callable[[Any, Any], Any]) -> None:
    matrix = np.linalg.qr(S)[0]
    program = func.make_program(deep(1500, step))(matrix)
    assert_same(program, optimize(program), (matrix,), [1e4])


def rosenbrock(x: Any) -> Any:
    return func.numpy.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def loss(weights: Any, x: Any, y: Any) -> Any:
    for w, b in weights[:-1]:
        x = func.numpy.tanh(x @ w + b)
    w, b = weights[-1]
    logits = x @ w + b
    shifted = logits - func.numpy.max(logits, axis=-1, keepdims=True)
    log_total = func.numpy.log(func.numpy.sum(func.numpy.exp(shifted), axis=-1, keepdims=True))
    return -func.numpy.mean(func.numpy.sum(y * (shifted - log_total), axis=-1))


def one_loss(weights: Any, x: Any, y: Any) -> Any:
    return loss(weights, x[None], y[None])


WEIGHTS = [(RNG.normal(size=(5, 8)), RNG.normal(size=8)), (RNG.normal(size=(8, 3)), RNG.normal(size=3))]
BATCH = RNG.normal(size=(7, 5)), np.eye(3)[RNG.integers(0, 3, 7)]
REAL: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "gradient of Rosenbrock": (func.grad(rosenbrock), (V,), 14),
    "Hessian of Rosenbrock": (func.hessian(rosenbrock), (V,), 20),
    "gradient of an MLP": (func.grad(loss), (WEIGHTS, *BATCH), 41),
    "gradients for every sample": (func.vmap(func.grad(one_loss), in_dims=(None, 0, 0)), (WEIGHTS, *BATCH), 40),
    "Jacobian of a layer": (func.jacrev(lambda x: func.numpy.tanh(S @ x)), (V,), 12),
    "gradient of an RNN": (func.grad(rnn), (X, S, RNG.normal(size=(5, 3))), 60),
}


@pytest.mark.parametrize("name", REAL)
def test_real_programs_compute_the_same(name: str) -> None:
    function, args, most = REAL[name]
    program = func.make_program(function)(*args)
    leaves = func.tree.leaves(args)
    step = program
    for apply_pass in PIPELINE:
        step = apply_pass(step)
        assert_same(program, step, leaves, [100] * len(program.outputs))
    after = optimize(program)
    assert_same(program, after, leaves, [100] * len(program.outputs))
    assert len(after.equations) <= most


def test_new_axes_of_single_samples_are_gone() -> None:
    function, args, _ = REAL["gradients for every sample"]
    after = optimize(func.make_program(function)(*args))
    products = [equation for equation in after.equations if equation.primitive is contract]
    assert all([1 not in x.shape for equation in products for x in equation.inputs])
