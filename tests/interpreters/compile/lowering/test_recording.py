"""Text recorded from implementations: the permitted code of an implementation, and the primitives with a rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from func.backends.array_helpers.arrays import nan_safe_multiply, scipy_of
from func.errors import NoSourceError
from func.interpreters.compile.lowering.code import Code, LoweringContext
from func.interpreters.compile.lowering.recording import record
from func.interpreters.compile.lowering.rules import RULES, lower, lowering
from func.interpreters.core import PRIMITIVES, Primitive, aval_of
from tests.interpreters.compile.lowering.test_lowering import equation_of
from tests.support.samples import SAMPLES

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def recorded(implementation: Any, *args: Any, device: bool = False, **params: Any) -> Code:
    """The code of an implementation applied to values of these kinds."""
    primitive = Primitive("test", implementation, aval=lambda *avals: avals[0], batch=lambda *_: None, register=False)
    avals = tuple([aval_of(arg) for arg in args])
    out = aval_of(np.asarray(implementation(np, *args, **params)))
    return record(LoweringContext(primitive, avals, (out,), params, device))


def value_of(code: Code, *args: Any) -> Any:
    """The value of a code's text for operands."""
    names = {f"operand_{i}": arg for i, arg in enumerate(args)} | {
        function.__name__: function for function in code.helpers
    }
    return eval(code.fresh.format(*names), {"np": np} | names)


IMPLEMENTATIONS = {
    "({0} + 1)": lambda xp, x: x + 1,
    "(1 - {0})": lambda xp, x: 1 - x,
    "((-{0}) * {0})": lambda xp, x: -x * x,
    "({0} @ {0}.T)": lambda xp, x: x @ x.T,
    "({0} <= 2.5)": lambda xp, x: x <= 2.5,
    "{0}[1:, ::2]": lambda xp, x: x[1:, ::2],
    "{0}[0]": lambda xp, x: x[0, :],
    "{0}[..., None]": lambda xp, x: x[..., None],
    "{0}": lambda xp, x: xp.asarray(x)[:, :].transpose((0, 1)).reshape((3, 4)),
    "{0}.reshape(2, 6)": lambda xp, x: xp.reshape(x, (2, 6)),
    "{0}.T.reshape(12)": lambda xp, x: x.transpose(1, 0).reshape(12),
    "{0}.astype(np.float32)": lambda xp, x: x.astype(np.dtype(np.float32)),
    "np.linalg.svd({0}, compute_uv=False)": lambda xp, x: xp.linalg.svd(x, compute_uv=False),
    "np.stack([{0}, {0}])".replace("[", "(").replace("]", ")"): lambda xp, x: xp.stack([x, x]),
    "nan_safe_multiply(np, {0}, 2.0)": lambda xp, x: nan_safe_multiply(xp, x, 2.0),
    "np.frexp({0})[1]": lambda xp, x: xp.frexp(x)[1],
    "np.zeros((3, 4), np.float64)": lambda xp, x: xp.zeros(x.shape, x.dtype),
}


@pytest.mark.parametrize("text", IMPLEMENTATIONS)
def test_what_stands_in_an_implementation(text: str) -> None:
    implementation = IMPLEMENTATIONS[text]
    code = recorded(implementation, X)
    assert code.fresh == text
    np.testing.assert_array_equal(value_of(code, X), implementation(np, X))


def test_a_call_that_takes_out_writes_into_given_memory() -> None:
    assert recorded(lambda xp, x, y: xp.add(x, y), X, X) == Code(
        "np.add({0}, {1}, {out})", out=True, plain="np.add({0}, {1})", inplace=(0, 1)
    )
    assert recorded(lambda xp, x: xp.maximum(x.T, 0), X).text == "np.maximum({0}.T, 0, out={out})"
    assert recorded(lambda xp, x: xp.maximum(x.T, 0), X).inplace == ()
    assert recorded(lambda xp, x: xp.cumsum(x, 1), X).text == "{0}.cumsum(1, out={out})"
    assert recorded(lambda xp, x: xp.max(x, (1,)), X).text == "np.maximum.reduce({0}, 1, out={out})"
    assert recorded(lambda xp, x: xp.max(x, (1,)), X, device=True).text == "np.max({0}, 1, out={out})"
    assert not recorded(lambda xp, x: xp.fft.fft(x), X, device=True).out
    flat = recorded(lambda xp, x: xp.matmul(x, x.T).reshape(9), X)
    out = np.empty(9)
    names = {"np": np, "x": X, "out": out, "call_reshaped": flat.helpers[0]}
    assert eval(flat.text.format("x", out="out"), names) is out
    np.testing.assert_array_equal(out, (X @ X.T).reshape(9))


def test_views_lie_in_the_operand() -> None:
    for view in (lambda xp, x: x[1:], lambda xp, x: xp.reshape(x.T, -1), lambda xp, x: x, lambda xp, x: x[0].real):
        assert recorded(view, X).view
    for fresh in (lambda xp, x: x.copy()[1:], lambda xp, x: xp.sin(x), lambda xp, x: xp.concatenate((x, x), 0)):
        assert not recorded(fresh, X).view
    assert not recorded(lambda xp, x, i: x[i], X, np.array([0, 1])).view
    assert recorded(lambda xp, x, i: x[i], X, np.intp(1)).view


def test_python_scalars_have_no_methods() -> None:
    assert recorded(lambda xp, x: xp.reshape(x, (1,)), 2.0).fresh == "np.reshape({0}, (1,))"
    assert not recorded(lambda xp, x, y: xp.multiply(xp.asarray(x), y), 2.0, np.float32(3)).out


def test_the_part_of_scipy_of_the_backend() -> None:
    def implementation(xp: Any, x: Any) -> Any:
        return scipy_of(xp, "special").erf(x)

    assert recorded(implementation, X).text == "scipy.special.erf({0}, {out})"
    assert recorded(implementation, X, device=True) == Code("scipy.special.erf({0})")


@pytest.mark.parametrize(
    "implementation",
    [
        lambda xp, x: x if x[0, 0] > 5 else -x,
        lambda xp, x: xp.sin(x).reshape(xp.sin(x).shape),
        lambda xp, x: xp.zeros((1,), xp.sin(x).dtype),
    ],
)
def test_what_a_text_cannot_know_is_refused(implementation: Any) -> None:
    with pytest.raises(NoSourceError, match="write a lowering rule"):
        recorded(implementation, X)


def test_assignment_is_refused() -> None:
    def implementation(xp: Any, x: Any) -> Any:
        out = xp.copy(x)
        out[0] = 1
        return out

    with pytest.raises(NoSourceError, match="assigns to a value"):
        recorded(implementation, X)


BEYOND_SAMPLES: dict[str, Any] = {
    "cholesky": [((np.eye(40),), {})],
    "inv": [((np.eye(2),), {"strict": False})],
    "real": [((1 + 2j,), {})],
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_needed(name: str) -> None:
    """A rule says more than the implementation records, for some operands or some backend."""

    def differs(args: Any, params: Any, device: bool) -> bool:
        equation = equation_of(name, args, params)
        avals = tuple([aval_of(arg) for arg in args])
        outs = tuple([var.aval for var in equation.outputs])
        try:
            return record(LoweringContext(PRIMITIVES[name], avals, outs, params, device)) != lower(equation, device)
        except NoSourceError:
            return True

    cases = [(sample.args, sample.params) for sample in SAMPLES[name]] + BEYOND_SAMPLES.get(name, [])
    assert any([differs(*case, device) for case in cases for device in (False, True)])


def test_two_rules_for_one_primitive_are_refused() -> None:
    with pytest.raises(ValueError, match="two lowering rules for 'where'"):
        lowering("where")(lambda context: Code(""))
