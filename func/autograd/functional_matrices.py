"""Jacobians and Hessians of functions of tensors, as whole matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.functional_values import (
    check_dependence,
    checked_inputs,
    fresh_tensors,
    is_recorded,
    left,
    output_tensors,
    primal_tensors,
    pulled,
    recorded_gradient,
    results,
    without_history,
)
from func.autograd.modes import enable_grad
from func.interpreters.core import operand
from func.interpreters.core.errors import ArgumentError, BackwardError
from func.interpreters.imperative.interpreter import as_tensor
from func.interpreters.primitives.structural.shapes import full_like, reshape
from func.transforms import jacobians
from func.transforms.boundary import check_callable


def _check_strategy(strategy: str, name: str, word: str, strict: bool, vectorize: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentError(
            f'functional.{name}: {word} must be "reverse-mode" or "forward-mode", not {strategy!r}. Forward mode is '
            "the cheaper one where there are fewer inputs than outputs."
        )
    if strict and vectorize:
        raise BackwardError(f"functional.{name}: strict=True and vectorize=True are not supported together")
    if strict and strategy == "forward-mode":
        raise BackwardError(f'functional.{name}: strict=True is not supported with {word}="forward-mode"')


@enable_grad()
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function: blocks of shape output + input, in a tuple per tuple of outputs, then of inputs.

    Args:
        func: A function of tensors that returns a tensor or a tuple of tensors.
        inputs: A tensor (or array), or a tuple of them.
        create_graph: The Jacobian can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving zeros.
        vectorize: All rows (columns) at once, as by `func.vmap`; by default one after the other.
        strategy: "reverse-mode" computes rows, "forward-mode" columns.

    Raises:
        BackwardError: strict with vectorize or with forward mode, or strict mode found an independent output (a
            RuntimeError).
        ArgumentError: Another strategy (a ValueError).
        TypeError: An input is not of floating point dtype, or an output is not a tensor.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.jacobian(lambda x: x**2, func.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    check_callable(func, "autograd.functional.jacobian")
    return _jacobian(func, inputs, create_graph, strict, vectorize, strategy, "jacobian", "strategy")


def _jacobian(
    function: Callable[..., Any],
    inputs: Any,
    create: bool,
    strict: bool,
    vectorize: bool,
    strategy: str,
    name: str,
    word: str,
) -> Any:
    _check_strategy(strategy, name, word, strict, vectorize)
    several, values = checked_inputs(inputs, name)
    by_columns = strategy == "forward-mode"
    several_out, blocks = (
        _columns(function, values, create, vectorize, name)
        if by_columns
        else _rows(function, values, create, strict, vectorize, name)
    )
    rows = [results(row, several, create) for row in blocks]
    return tuple(rows) if several_out else rows[0]


def _rows(
    function: Callable[..., Any], values: Sequence[Any], create: bool, strict: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """Blocks of the Jacobian by reverse mode."""
    xs = fresh_tensors(values, create)
    several_out, outs = output_tensors(function(*xs), function, name)
    if strict:
        check_dependence(outs, xs, name)
    return several_out, [_rows_of(out, xs, create, vectorize) for out in outs]


def _rows_of(out: Any, xs: Sequence[Any], create: bool, vectorize: bool) -> list[Any]:
    """The blocks of one output."""
    shapes = [(*out.shape, *x.shape) for x in xs]
    if out.size == 0 or not is_recorded(out, xs):
        return [full_like(without_history(x), 0, shape) for x, shape in zip(xs, shapes, strict=True)]
    like = without_history(out)
    if vectorize:
        basis = reshape(jacobians.unit_rows(like, 0, out.size, out.size), shape=(out.size, *out.shape))
        stacked = grad(
            out,
            xs,
            basis,
            retain_graph=True,
            create_graph=create,
            is_grads_batched=True,
            allow_unused=True,
        )
        return [
            full_like(without_history(x), 0, shape) if block is None else reshape(block, shape=shape)
            for x, block, shape in zip(xs, stacked, shapes, strict=True)
        ]
    rows = []
    for j in range(out.size):
        seed = reshape(jacobians.unit_rows(like, j, 1, out.size), shape=out.shape)
        rows.append(pulled([out], xs, [seed], create))
    return [_stacked(column, shape) for column, shape in zip(zip(*rows, strict=True), shapes, strict=True)]


def _stacked(rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Rows of equal shape as one block."""
    return reshape(operand(np.stack([as_tensor(row) for row in rows])), shape=shape)


def _columns(
    function: Callable[..., Any], values: Sequence[Any], create: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """Blocks of the Jacobian by forward mode."""
    primals = primal_tensors(values, create)
    several_out = [False]

    def called(*given: Any) -> tuple[Any, ...]:
        xs = fresh_tensors(given, False)
        several_out[0], outs = output_tensors(function(*xs), function, name)
        return tuple([left(out, xs) for out in outs])

    places = tuple(range(len(primals)))
    made = jacobians.jacfwd(called, places, chunk_size=None if vectorize else 1)(*primals)
    return several_out[0], [list(row) for row in made]


@enable_grad()
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of one output element: blocks of shape input + input, for a tuple nested tuples.

    Args:
        func: A function of tensors that returns one tensor of one element.
        inputs: A tensor (or array), or a tuple of them.
        create_graph: The Hessian can be differentiated again.
        strict: Raise where the output or its gradient does not depend on an input, instead of giving zeros.
        vectorize: All rows (columns) at once, as by `func.vmap`; by default one after the other.
        outer_jacobian_strategy: The mode in which the gradient is differentiated, "reverse-mode" or "forward-mode".

    Raises:
        BackwardError: strict with vectorize or with forward mode, the output is not one element, or strict mode found
            an independence (a RuntimeError).
        ArgumentError: Another strategy (a ValueError).
        TypeError: An input is not of floating point dtype, or an output is not a tensor.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.hessian(lambda x: (x**3).sum(), func.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    check_callable(func, "autograd.functional.hessian")
    several, values = checked_inputs(inputs, "hessian")

    def gradient(*given: Any) -> Any:
        xs = fresh_tensors(given, True)
        _, gradients = recorded_gradient(func, xs, "hessian", strict)
        return tuple(gradients) if several else gradients[0]

    return _jacobian(
        gradient,
        tuple(values) if several else values[0],
        create_graph,
        strict,
        vectorize,
        outer_jacobian_strategy,
        "hessian",
        "outer_jacobian_strategy",
    )
