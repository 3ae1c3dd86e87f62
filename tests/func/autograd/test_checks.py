"""gradcheck and gradgradcheck: they pass what is right and catch what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.autograd import gradcheck, gradgradcheck
from func.errors import GradcheckError

RNG = np.random.default_rng(4)
X = RNG.uniform(0.3, 1.2, 4)
M = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
Z = RNG.normal(size=3) + 1j * RNG.normal(size=3)


def leaf(value: Any) -> Any:
    """A tensor that requires a gradient."""
    return func.tensor(value, requires_grad=True)


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: np.sin(x) * x, (X,)),
    "several inputs": (lambda x, y: x @ y + np.sum(x), (M, M[0])),
    "several outputs": (lambda x: (np.exp(x), np.sum(x**2), np.argmax(x)), (X,)),
    "solve": (np.linalg.solve, (M, M[0])),
    "where": (lambda x: np.where(x > 0.7, np.sqrt(x), 0.0), (X,)),
    "complex in": (lambda z: np.abs(z) ** 2, (Z,)),
    "complex out": (lambda x: np.exp(1j * x), (X,)),
    "complex": (lambda z: np.exp(z) * np.conj(z), (Z,)),
    "independent": (lambda x, y: x * 2, (X, X)),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str, fast_mode: bool) -> None:
    f, points = RIGHT[name]
    inputs = tuple([leaf(p) for p in points])
    assert gradcheck(
        f,
        inputs,
        fast_mode=fast_mode,
        check_forward_ad=True,
        check_grad_dtypes=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert gradgradcheck(f, inputs, fast_mode=fast_mode, check_batched_grad=True)
    assert func.is_grad_enabled()


class Wrong(func.autograd.Function):
    """A gradient that is off in one place."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        out = 2 * x * ct
        out[2] = out[2] * 1.5
        return out


def test_wrong_derivatives_are_shown() -> None:
    with pytest.raises(GradcheckError, match=r"output 0 with respect to input 0 \(backward mode\)") as info:
        gradcheck(Wrong.apply, leaf(X))
    words = str(info.value)
    assert "first at index (2, 2)" in words and "numerical:" in words and "analytical:" in words
    assert not gradcheck(Wrong.apply, leaf(X), raise_exception=False)
    with pytest.raises(GradcheckError):
        gradcheck(Wrong.apply, leaf(X), fast_mode=True)
    with pytest.raises(GradcheckError, match="forward mode"):
        gradcheck(Wrong.apply, leaf(X), check_backward_ad=False, check_forward_ad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_outputs_without_a_gradient(fast_mode: bool) -> None:
    assert gradcheck(lambda x: (x**2, x.detach() * 3), leaf(X), fast_mode=fast_mode)
    assert gradcheck(np.sign, leaf(X), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="numerical"):
        gradcheck(lambda x: x.detach() * 3, leaf(X), fast_mode=fast_mode)


def test_wrong_second_derivatives() -> None:
    @func.custom_vjp
    def square(x: Any) -> Any:
        return x**2

    square.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * func.stop_gradient(x) * ct,))
    assert gradcheck(square, leaf(X))
    with pytest.raises(GradcheckError):
        gradgradcheck(square, leaf(X))


def test_single_precision() -> None:
    with pytest.warns(UserWarning, match="double precision"):
        assert gradcheck(lambda x: np.sin(x) * x, leaf(X.astype(np.float32)))
    with pytest.warns(UserWarning, match="double precision"), pytest.raises(GradcheckError):
        gradcheck(Wrong.apply, leaf(X.astype(np.float32)))


def test_backward_that_is_not_deterministic() -> None:
    class Noisy(func.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * (1 + 1e-9 * RNG.normal())

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Noisy.apply, leaf(X))
    assert gradcheck(Noisy.apply, leaf(X), nondet_tol=1e-6)


def test_refusals() -> None:
    x = leaf(X)
    for options, words in (
        ({"eps": 0.0}, "eps must be positive"),
        ({"check_backward_ad": False}, "nothing would be checked"),
        ({"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "check_backward_ad"),
        ({"check_batched_forward_grad": True}, "check_forward_ad=True"),
    ):
        with pytest.raises(ValueError, match=words):
            gradcheck(np.sin, x, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="output 0 is str"):
        gradcheck(lambda x: "s", x)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(np.sin, func.tensor(X))
    assert gradgradcheck(lambda x: np.sum(x**3), leaf(X), func.tensor(2.0), gen_non_contig_grad_outputs=True)
