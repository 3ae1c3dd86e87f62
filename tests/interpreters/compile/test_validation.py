"""`func.config.validate`: planted faults of passes, lowerings and derived programs are named, with a small program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special

import func
from func.errors import ValidationError
from func.interpreters.calls import compiled_call
from func.interpreters.compile import execution, inlining, passes, validation
from func.interpreters.compile.passes import cleanup
from func.interpreters.core import PRIMITIVES
from func.interpreters.primitives.linalg.inverses import factored_solve
from func.interpreters.program.plain_runs import Undefined, evaluated, plain_run
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.translations import TRANSLATIONS, keeps_bits, validated
from func.interpreters.staged_rules import RULES, StagedRule

pytest.importorskip("llvmlite")

X = np.arange(1.0, 4.0)


@pytest.fixture(autouse=True)
def validating() -> Iterator[None]:
    with func.config.override(validate=True):
        yield
    TRANSLATIONS.reports.clear()


def replacing(before: str, after: str, concerns: Callable[[Equation], bool] = lambda equation: True) -> Any:
    """A wrong pass: one primitive in the place of another one."""

    def wrong(program: Program) -> Program:
        equations = [
            Equation(PRIMITIVES[after], e.inputs, e.params, e.outputs)
            if e.primitive.name == before and concerns(e)
            else e
            for e in program.equations
        ]
        if all([new is old for new, old in zip(equations, program.equations, strict=True)]):
            return program
        return Program(program.inputs, equations, program.outputs, program.constants)

    return wrong


def long_function(x: Any, y: Any) -> Any:
    a = np.exp(x) * y + np.sin(y)
    b = np.maximum(a, x) - np.sum(y) / 3
    return b * b, np.cumsum(a) - np.log1p(np.abs(b))


def names_of(program: Program) -> list[str]:
    return [equation.primitive.name for equation in program.equations]


def planted(wrong: Any, f: Any, *args: Any) -> ValidationError:
    """The error of jit with one more pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PIPELINE", (*passes.PIPELINE, wrong))
        with pytest.raises(ValidationError) as raised:
            func.jit(f)(*args)
    assert TRANSLATIONS.reports[-1] is raised.value
    return raised.value


@pytest.mark.parametrize(
    ("before", "after"), [("maximum", "minimum"), ("sin", "cos"), ("subtract", "add"), ("log1p", "expm1")]
)
def test_a_wrong_pass_is_named_with_one_equation(before: str, after: str) -> None:
    error = planted(replacing(before, after), long_function, X, 2 * X)
    assert error.translation == "the pass wrong" and names_of(error.program) == [before]
    assert max([var.size for var in error.program.inputs]) == 1 and len(error.program.outputs) == 1
    text = str(error)
    assert text.startswith("the pass wrong changes what a program computes: output 0 is ")
    assert f"= {before} " in text and "please report it" in text and "a = array([" in text


def test_a_report_can_be_run_again() -> None:
    wrong = replacing("maximum", "minimum")
    error = planted(wrong, long_function, X, 2 * X)
    right = error.program(*error.arguments)
    assert not np.array_equal(right[0], wrong(error.program)(*error.arguments)[0])


@pytest.mark.parametrize(
    ("f", "before", "after"),
    [
        (lambda x: np.maximum(x, 2.0), "maximum", "fmax"),  # NaN alone shows it
        (lambda x: x * np.sign(x), "sign", "tanh"),
        (lambda x: np.greater(x, x[::-1]) * 1.0, "greater", "greater_equal"),  # equal numbers alone
        (lambda x: np.signbit(x) * 1.0, "signbit", "isnan"),
        (lambda x: np.copysign(1.0, x), "copysign", "power"),
    ],
)
def test_special_and_coinciding_values_are_tried(f: Any, before: str, after: str) -> None:
    error = planted(replacing(before, after), f, X)
    assert before in names_of(error.program)


def swapped_sums(program: Program) -> Program:
    """A pass that computes x + (y + z) in the place of (x + y) + z."""
    *before, last = program.equations
    inner = next((e for e in before if e.outputs and e.outputs[0] is last.inputs[0]), None)
    if last.primitive.name != "add" or inner is None or inner.primitive.name != "add":
        return program
    middle = Var(inner.outputs[0].aval)
    add = PRIMITIVES["add"]
    equations = [
        *[e for e in before if e is not inner],
        Equation(add, (inner.inputs[1], last.inputs[1]), {}, (middle,)),
        Equation(add, (inner.inputs[0], middle), {}, last.outputs),
    ]
    return Program(program.inputs, equations, program.outputs, program.constants)


def test_a_pass_that_promises_bits_is_held_to_them() -> None:
    program = func.make_program(lambda x, y, z: (x + y) + z)(X, X, X)
    validated(swapped_sums)(program)
    with pytest.raises(ValidationError, match="swapped_sums"):
        validated(keeps_bits(lambda_named("swapped_sums", swapped_sums)))(program)


def lambda_named(name: str, function: Any) -> Any:
    def renamed(program: Program) -> Program:
        return function(program)  # type: ignore[no-any-return]

    renamed.__name__ = name
    return renamed


def test_the_sign_of_zero_is_a_bit() -> None:
    program = func.make_program(lambda x: x + 0.0)(X)

    def drop(program: Program) -> Program:
        return Program(program.inputs, (), program.inputs, {})

    validated(drop)(program)
    with pytest.raises(ValidationError):
        validated(keeps_bits(drop))(program)


def test_rounding_in_front_of_a_jump_is_no_fault() -> None:
    program = func.make_program(lambda x, y, z: np.floor((x + y) + z - x) + 0.0)(X, X, X)

    def sums_in_another_order(program: Program) -> Program:
        return func.make_program(lambda x, y, z: np.floor(x + (y + z) - x) + 0.0)(
            *[np.ones(v.shape) for v in program.inputs]
        )

    assert validated(sums_in_another_order)(program) is not program


@pytest.mark.parametrize("n", [9, 17, 33, 64])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_quotient_without_digits_may_be_infinite(n: int) -> None:
    """The divisor is zero or a rounding error, by the order of the sums."""
    func.jit(lambda x: 1 / (np.sum(x * x) * 3.0 - np.sum(x * 3.0 * x)))(np.random.default_rng(n).normal(size=n))


def test_the_marks_of_the_passes() -> None:
    marked = {p.__name__ for p in passes.PIPELINE if getattr(p, "keeps_bits", False)}
    assert marked == {
        "eliminate_dead_code",
        "strip_annotations",
        "fold_constants",
        "eliminate_common_subexpressions",
    }


def test_a_pass_that_raises_is_named() -> None:
    def fails(program: Program) -> Program:
        if "sin" in names_of(program):
            raise IndexError("no such thing")
        return program

    error = planted(fails, long_function, X, X)
    assert names_of(error.program) == ["sin"] and "it raises IndexError: no such thing" in str(error)


def test_cleaning_and_inlining_are_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    program = func.make_program(lambda x: np.sin(x) * np.maximum(x, 2.0))(X)
    monkeypatch.setattr(passes, "CLEANING", (replacing("sin", "cos"),))
    with pytest.raises(ValidationError):
        passes.clean(program)
    monkeypatch.setattr(inlining, "with_plain_numbers", replacing("maximum", "minimum"))
    with pytest.raises(ValidationError, match="inline_calls"):
        inlining.inline(program)


@pytest.mark.parametrize("compiler", ["numpy", "llvm"])
def test_a_wrong_lowering_is_named(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = execution._compiled
    wrong = replacing("sin", "cos")
    monkeypatch.setattr(execution, "_compiled", lambda program, *options: compiled(wrong(program), *options))
    with pytest.raises(ValidationError) as raised:
        func.jit(lambda x: np.exp(np.sin(x)) + np.sum(x), compiler=compiler)(X)
    assert raised.value.translation == {"numpy": "NumPy source", "llvm": "native code"}[compiler]
    assert names_of(raised.value.program) == ["sin"]


def test_the_body_of_a_loop_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    error = planted(
        replacing("maximum", "minimum"),
        lambda x: func.scan(lambda c, e: (np.maximum(c, e), c + e), 0.0, x)[0],
        X,
    )
    assert names_of(error.program) == ["maximum"]


def test_a_wrong_batch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    batched = compiled_call.batched_program
    wrong = replacing("sin", "cos")
    monkeypatch.setattr(compiled_call, "batched_program", lambda program, *how: batched(wrong(program), *how))
    with pytest.raises(ValidationError) as raised:
        func.vmap(func.jit(lambda x: np.sin(x) * 2 + np.exp(x)))(np.ones((2, 3)))
    assert raised.value.translation == "a batch of 2" and names_of(raised.value.program) == ["sin"]


@pytest.mark.parametrize("transform", [func.grad, lambda f: lambda x: func.jvp(f, (x,), (x,))], ids=["grad", "jvp"])
@pytest.mark.parametrize("part", ["known", "linear"])
def test_a_wrong_partition_is_named(transform: Any, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replacing("multiply", "divide")
    for name in ("partition_jvp", "partition_vjp"):
        own = getattr(compiled_call, name)

        def partition(*args: Any, own: Any = own) -> Any:
            made = own(*args)
            return made._replace(**{part: wrong(getattr(made, part))})

        monkeypatch.setattr(compiled_call, name, partition)
    with pytest.raises(ValidationError, match=r"the partition for (reverse|forward) mode"):
        transform(func.jit(lambda x: np.sum(x * x * np.sin(x))))(X)


def test_a_wrong_staged_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    record = StagedRule.record
    monkeypatch.setattr(
        StagedRule, "record", lambda self, values: (record(self, values)[0], record(self, values)[1][::-1])
    )
    RULES.clear()
    with pytest.raises(ValidationError, match="the staged rule of eigvalsh"):
        for _ in range(3):
            func.grad(lambda m: np.sum(np.linalg.eigvalsh(m) ** 3))(np.array([[3.0, 1.0], [1.0, 2.0]]))
    RULES.clear()


def test_a_number_that_does_not_fit_is_refused_by_code_too(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = execution._compiled

    def wraps(program: Program, *options: Any) -> Any:
        executable = compiled(program, *options)
        call = executable.call
        return executable._replace(call=lambda *args: call(*[x % 256 if type(x) is int else x for x in args]))

    monkeypatch.setattr(execution, "_compiled", wraps)
    with pytest.raises(ValidationError, match="right: OverflowError"):
        func.jit(lambda x, n: x * n)(np.arange(3, dtype="u1"), 2)


def test_effects_happen_once_and_are_not_validated(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    with caplog.at_level(logging.DEBUG, "func"):
        assert func.jit(lambda x: (func.debug.callback(seen.append, x), x * 1.0 + 0.0)[1])(2.0) == 2.0
    assert len(seen) == 1
    assert "is not validated: callback has effects" in caplog.text


def test_loops_without_end_say_nothing() -> None:
    f = func.jit(lambda x: func.while_loop(lambda c: c[0] < 10.0, lambda c: (c[0] + c[1], c[1]), (x, x)))
    assert f(4.0)[0] == 12.0  # from zero on it never ends
    program = func.make_program(lambda x: func.while_loop(lambda c: c < 10.0, lambda c: c * 2, x))(1.0)
    with pytest.raises(Undefined):
        evaluated(plain_run(program), [0.0])


def test_inputs_that_raise_or_are_undefined_say_nothing() -> None:
    assert func.jit(lambda x, i: x[i])(X, np.int64(2)) == 3.0
    assert func.jit(lambda x: np.asarray(x).astype(np.int32))(X).tolist() == [1, 2, 3]
    func.jit(np.linalg.inv)(np.eye(2))
    assert func.jit(lambda x, y: x.searchsorted(y))(X, np.array([True, False, True])).tolist() == [0, 0, 0]


def test_functions_that_crash_for_nan_are_validated_without_it() -> None:
    """SciPy's Mathieu functions of NaN end the process, and `hyperu` of 1e9 takes for ever."""

    def f(x: Any) -> Any:
        return scipy.special.mathieu_cem(2.0, x, 30.0)[0] + scipy.special.hyperu(0.5, 1.5, x)

    np.testing.assert_allclose(func.jit(f)(0.5), f(0.5), rtol=1e-12)
    evaluate = plain_run(func.make_program(f)(0.5))
    for refused in (np.nan, np.inf, 1e9):
        with pytest.raises(Undefined):
            evaluated(evaluate, [np.float64(refused)])


def test_nothing_is_evaluated_when_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("validated")

    monkeypatch.setattr(validation, "_difference", refuse)
    with func.config.override(validate=False):
        assert validated(cleanup.fold_constants) is cleanup.fold_constants
        func.grad(func.jit(lambda x: np.sum(np.sin(x) * 2 * 3.0)))(X)
    with pytest.raises(AssertionError, match="validated"):
        func.jit(lambda x: np.sin(x) * 2 * 3.0)(X)


def test_donated_arguments_are_validated_in_the_order_that_code_takes() -> None:
    f = func.jit(lambda a, b: np.where(b, 1, a), donate_argnums=0)
    a = np.arange(4).reshape(2, 2, order="F")
    assert f(a, a > 1).tolist() == [[0, 1], [1, 1]]


def test_products_of_structural_zeros_with_infinities_inside_say_nothing() -> None:
    f = func.jit(func.jacrev(func.jacrev(lambda x: np.sum(np.array([0.0, 1.0, 1.0]) * np.sqrt(x)))))
    np.testing.assert_array_equal(f(X)[0], np.zeros(3))
    error = planted(replacing("log", "exp"), func.jacrev(lambda x: x * np.log(x)), X)
    assert names_of(error.program) == ["log"]


def test_a_nan_that_makes_a_nan_safe_variant_run_says_nothing() -> None:
    def inside(x: Any) -> Any:
        inner = func.grad(lambda v: np.sum(np.where(v > 0, np.sqrt(v), 0.0) * v))
        return func.scan(lambda c, r: (c + inner(x * r), None), x, np.array([1.0, 2.0]))[0]

    x = np.array([0.0, 0.25, 0.0, 4.0])
    expected = func.grad(lambda x: np.sum(inside(x)))(x)
    np.testing.assert_allclose(func.grad(func.jit(lambda x: np.sum(inside(x))))(x), expected)


def test_row_exchanges_that_do_not_exist_are_refused() -> None:
    a, pivots = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([0, 7], np.int32)
    with pytest.raises(IndexError, match="out of range"):
        factored_solve(a, a, pivots, np.ones((2, 1)), adjoint=False)


def test_elements_that_exchange_values_are_not_compared_one_by_one() -> None:
    f = func.jit(lambda x: x - func.collectives.pmean(x, "i"))
    np.testing.assert_allclose(func.vmap(f, axis_name="i")(X), X - np.mean(X))
