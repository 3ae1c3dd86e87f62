"""func.debug: reports of NaN and infinity under any transform, printing and callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func


def loss(x: Any) -> Any:
    """Finite, with a gradient that is not."""
    root = np.sqrt(x)
    return np.sum(root * 2)


def overflow(x: Any) -> Any:
    """Infinite forwards."""
    return np.sum(np.exp(1000 * x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_explain_finds_the_forward_line() -> None:
    report = func.debug.explain(overflow)(np.array([0.1, 2.0]))
    assert report.operation == "exp" and report.phase == "forward" and report.index == (1,)
    assert "np.exp(1000 * x)" in str(report) and "operand 0" in str(report) and report.value == np.inf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "transformed",
    [
        func.grad(loss),
        lambda x: func.vjp(loss, x)[1](1.0)[0],
        lambda x: func.vmap(func.grad(loss))(x[None])[0],
        lambda x: func.jacrev(loss)(x),
    ],
)
def test_explain_names_the_forward_line_of_a_backward_operation(transformed: Any) -> None:
    report = func.debug.explain(transformed)(np.array([4.0, 0.0]))
    assert report.phase == "backward" and "root = np.sqrt(x)" in str(report)
    assert np.isinf(report.value[1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_explain_under_forward_mode() -> None:
    report = func.debug.explain(lambda x: func.jvp(loss, (x,), (np.ones(2),))[1])(np.array([4.0, 0.0]))
    assert "root = np.sqrt(x)" in str(report) and report.operation == "divide"


def test_explain_without_anything_to_explain() -> None:
    report = func.debug.explain(func.grad(loss))(np.array([4.0, 1.0]))
    assert report.operation is None and "every value is finite" in repr(report)
    np.testing.assert_allclose(report.value, [0.5, 1.0])
    with pytest.raises(TypeError, match="takes a function first"):
        func.debug.explain(3)  # type: ignore[arg-type]


def test_print_and_callback(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        func.debug.print("value {} and {y}", x, y=2)
        func.debug.callback(seen.append, x)
        return np.sum(x**2)

    func.vmap(func.grad(f))(np.ones((2, 3)))
    assert capsys.readouterr().out.startswith("value [[1. 1. 1.]")
    assert type(seen[0]) is np.ndarray and seen[0].shape == (2, 3)


def test_callbacks_in_compiled_code_run_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    @func.jit
    def f(x: Any) -> Any:
        func.debug.callback(lambda pair, scale: seen.append((pair["x"].tolist(), scale)), {"x": x}, 2)
        func.debug.print("x is {} or {y}", x, y=x)
        return np.sum(x * x)

    f(np.ones(1))
    f(np.zeros(1))
    func.grad(f)(np.ones(1))
    func.vmap(f)(np.array([[3.0], [4.0]]))
    assert seen == [([1.0], 2), ([0.0], 2), ([1.0], 2), ([[3.0], [4.0]], 2)]
    assert capsys.readouterr().out.splitlines()[0] == "x is [1.] or [1.]"
