"""Derivatives of functions of tensors in the manner of torch.autograd.functional: products, Jacobians, Hessians.

The function is called with fresh tensors that require a gradient, so that it may itself use `func.autograd.grad`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.autograd.functional_matrices import hessian as hessian
from func.autograd.functional_matrices import jacobian as jacobian
from func.autograd.functional_values import (
    check_dependence,
    checked_inputs,
    fresh_tensors,
    left,
    output_tensors,
    primal_tensors,
    pulled,
    recorded_gradient,
    results,
    vectors_like,
)
from func.autograd.modes import enable_grad
from func.transforms import forward
from func.transforms.boundary import check_callable

# fmt: off
__all__ = [
    "hessian", "hvp", "jacobian", "jvp", "vhp", "vjp",
]
# fmt: on


@enable_grad()
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs of a function, and the product of a vector with its Jacobian: (outputs, vjp).

    Args:
        func: A function of tensors that returns a tensor or a tuple of tensors.
        inputs: A tensor (or array), or a tuple of them.
        v: The vector, of the structure and shapes of the outputs; None for an output of one element.
        create_graph: The outputs and the product can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving zeros.

    Raises:
        BackwardError: `v` does not fit the outputs, or strict mode found an independent output (a RuntimeError).
        TypeError: An input is not of floating point dtype, or an output is not a tensor.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.vjp(lambda x: x**2, func.tensor([1.0, 2.0]), func.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    check_callable(func, "autograd.functional.vjp")
    several, values = checked_inputs(inputs, "vjp")
    xs = fresh_tensors(values, create_graph)
    several_out, outs = output_tensors(func(*xs), func, "vjp")
    vectors = vectors_like(v, outs, several_out, "vjp", "output of the function", create_graph)
    if strict:
        check_dependence(outs, xs, "vjp")
    cts = pulled(outs, xs, vectors, create_graph)
    return results(outs, several_out, create_graph), results(cts, several, create_graph)


@enable_grad()
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs of a function, and the product of its Jacobian with a vector: (outputs, jvp), by forward mode.

    Args:
        func: A function of tensors that returns a tensor or a tuple of tensors.
        inputs: A tensor (or array), or a tuple of them.
        v: The vector, of the structure and shapes of the inputs; None for an input of one element.
        create_graph: The outputs and the product can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving zeros.

    Raises:
        BackwardError: `v` does not fit the inputs, or strict mode found an independent output (a RuntimeError).
        TypeError: An input is not of floating point dtype, or an output is not a tensor.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.jvp(lambda x: x**2, func.tensor([1.0, 2.0]), func.tensor([1.0, 10.0]))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    check_callable(func, "autograd.functional.jvp")
    several, values = checked_inputs(inputs, "jvp")
    values = primal_tensors(values, create_graph)
    vectors = vectors_like(v, values, several, "jvp", "input of the function", create_graph)
    several_out = [False]

    def called(*primals: Any) -> tuple[Any, ...]:
        xs = fresh_tensors(primals, False)
        several_out[0], outs = output_tensors(func(*xs), func, "jvp")
        if strict:
            check_dependence(outs, xs, "jvp")
        return tuple([left(out, xs) for out in outs])

    outs, tangents = forward.jvp(called, values, vectors)
    return results(outs, several_out[0], create_graph), results(tangents, several_out[0], create_graph)


@enable_grad()
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of a function, and the product of a vector with its Hessian: (output, vhp), by reverse mode twice.

    Args:
        func: A function of tensors that returns one tensor of one element.
        inputs: A tensor (or array), or a tuple of them.
        v: The vector, of the structure and shapes of the inputs; None for an input of one element.
        create_graph: The output and the product can be differentiated again.
        strict: Raise where the output or its gradient does not depend on an input, instead of giving zeros.

    Raises:
        BackwardError: `v` does not fit the inputs, the output is not one element, or strict mode found an independence
            (a RuntimeError).
        TypeError: An input is not of floating point dtype, or an output is not a tensor.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.vhp(lambda x: (x**3).sum(), func.tensor([1.0, 2.0]), func.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    check_callable(func, "autograd.functional.vhp")
    several, values = checked_inputs(inputs, "vhp")
    xs = fresh_tensors(values, create_graph)
    vectors = vectors_like(v, xs, several, "vhp", "input of the function", create_graph)
    out, gradients = recorded_gradient(func, xs, "vhp", strict)
    products = pulled(gradients, xs, vectors, create_graph)
    return results([out], False, create_graph), results(products, several, create_graph)


@enable_grad()
def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of a function, and the product of its Hessian with a vector: (output, hvp), forward over reverse.

    Arguments and errors are those of `vhp`, and so is the product, as a Hessian is symmetric. One forward pass over
    the gradient is usually quicker than a second backward pass.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.hvp(lambda x: (x**3).sum(), func.tensor([1.0, 2.0]), func.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    check_callable(func, "autograd.functional.hvp")
    several, values = checked_inputs(inputs, "hvp")
    values = primal_tensors(values, create_graph)
    vectors = vectors_like(v, values, several, "hvp", "input of the function", create_graph)

    def gradient_of(*primals: Any) -> Any:
        xs = fresh_tensors(primals, False)
        out, gradients = recorded_gradient(func, xs, "hvp", strict, create=strict)
        return tuple([left(gradient, xs) for gradient in gradients]), left(out, xs)

    _, products, out = forward.jvp(gradient_of, values, vectors, has_aux=True)
    return results([out], False, create_graph), results(products, several, create_graph)
