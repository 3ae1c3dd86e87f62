"""Logistic functions, entropies, robust losses and power transforms."""

from __future__ import annotations

from func.interpreters.core import Array, operand
from func.interpreters.primitives.special import logistic as ops
from func.special.protocol import implements_scipy, in_first_loop

# fmt: off
__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "exprel", "huber", "inv_boxcox", "inv_boxcox1p", "kl_div", "log_expit",
    "logit", "powm1", "pseudo_huber", "rel_entr", "xlog1py", "xlogy",
]
# fmt: on


def expit(x: Array) -> Array:
    """The logistic function 1 / (1 + exp(-x)); its derivative is accurate in both tails.

    >>> import func
    >>> float(func.grad(func.special.expit)(0.0))
    0.25
    """
    return ops.expit(operand(x))


def logit(p: Array) -> Array:
    """log(p / (1 - p)), 0 < p < 1."""
    return ops.logit(operand(p))


def log_expit(x: Array) -> Array:
    """log expit(x)."""
    return ops.log_expit(operand(x))


def xlogy(x: Array, y: Array) -> Array:
    """x log(y), which is zero where x is."""
    return ops.xlogy(operand(x), operand(y))


def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), which is zero where x is."""
    return ops.xlog1py(operand(x), operand(y))


def entr(x: Array) -> Array:
    """The entropy -x log(x), zero at 0 and -∞ for negative x."""
    return ops.entr(operand(x))


def rel_entr(x: Array, y: Array) -> Array:
    """x log(x / y), zero where x is; its derivatives at (0, 0) are zero."""
    return ops.rel_entr(operand(x), operand(y))


def kl_div(x: Array, y: Array) -> Array:
    """x log(x / y) - x + y; its derivatives at (0, 0) are -1 and 1."""
    return ops.kl_div(operand(x), operand(y))


def huber(delta: Array, r: Array) -> Array:
    """Huber's loss: r² / 2 where |r| <= delta, else delta (|r| - delta / 2)."""
    return ops.huber(operand(delta), operand(r))


def pseudo_huber(delta: Array, r: Array) -> Array:
    """The smooth loss delta² (√(1 + (r / delta)²) - 1)."""
    return ops.pseudo_huber(operand(delta), operand(r))


def boxcox(x: Array, lmbda: Array) -> Array:
    """(x^λ - 1) / λ, log(x) for λ = 0; its derivative by λ holds there too."""
    return ops.boxcox(operand(x), operand(lmbda))


def boxcox1p(x: Array, lmbda: Array) -> Array:
    """boxcox(1 + x, lmbda)."""
    return ops.boxcox1p(operand(x), operand(lmbda))


def inv_boxcox(y: Array, lmbda: Array) -> Array:
    """The x with boxcox(x, lmbda) = y."""
    return ops.inv_boxcox(operand(y), operand(lmbda))


def inv_boxcox1p(y: Array, lmbda: Array) -> Array:
    """The x with boxcox1p(x, lmbda) = y."""
    return ops.inv_boxcox1p(operand(y), operand(lmbda))


def powm1(x: Array, y: Array) -> Array:
    """x^y - 1 without cancellation."""
    return ops.powm1(operand(x), operand(y))


@implements_scipy("exprel")
def exprel(x: Array) -> Array:
    """(exp(x) - 1) / x, which is 1 at 0; its derivatives hold there too. DLMF 13.4.1."""
    return ops.exprel(in_first_loop(x), order=0)
