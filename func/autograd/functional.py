"""Derivatives of functions of tensors in the manner of torch.autograd.functional: products, Jacobians, Hessians.

The function is called with fresh tensors that require a gradient, so that it may itself use `func.autograd.grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.modes import enable_grad
from func.autograd.tensor import clone, requires_grad_, tensor
from func.interpreters.core import (
    EVALUATE,
    Array,
    Tracer,
    dtype_of,
    is_inexact,
    operand,
    shape_of,
    snapshot,
    unboxed,
    zeros_like,
)
from func.interpreters.core.errors import ArgumentError, BackwardError
from func.interpreters.grad import SERIAL
from func.interpreters.imperative.interpreter import Imperative, TensorState, ambient, as_tensor, state_of
from func.interpreters.imperative.node_state import reachable
from func.interpreters.primitives.structural.shapes import convert, full_like, reshape
from func.transforms import forward, jacobians
from func.transforms.boundary import check_callable, name_of

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
    several, values = _checked_inputs(inputs, "vjp")
    xs = _fresh_tensors(values, create_graph)
    several_out, outs = _output_tensors(func(*xs), func, "vjp")
    vectors = _vectors_like(v, outs, several_out, "vjp", "output of the function", create_graph)
    if strict:
        _check_dependence(outs, xs, "vjp")
    cts = _cotangents(outs, xs, vectors, create_graph)
    return _results(outs, several_out, create_graph), _results(cts, several, create_graph)


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
    several, values = _checked_inputs(inputs, "jvp")
    values = _primal_tensors(values, create_graph)
    vectors = _vectors_like(v, values, several, "jvp", "input of the function", create_graph)
    several_out = [False]

    def called(*primals: Any) -> tuple[Any, ...]:
        xs = _fresh_tensors(primals, False)
        several_out[0], outs = _output_tensors(func(*xs), func, "jvp")
        if strict:
            _check_dependence(outs, xs, "jvp")
        return tuple([_detached(out, xs) for out in outs])

    outs, tangents = forward.jvp(called, values, vectors)
    return _results(outs, several_out[0], create_graph), _results(tangents, several_out[0], create_graph)


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
    several, values = _checked_inputs(inputs, "vhp")
    xs = _fresh_tensors(values, create_graph)
    vectors = _vectors_like(v, xs, several, "vhp", "input of the function", create_graph)
    out, gradients = _recorded_gradient(func, xs, "vhp", strict)
    products = _cotangents(gradients, xs, vectors, create_graph)
    return _results([out], False, create_graph), _results(products, several, create_graph)


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
    several, values = _checked_inputs(inputs, "hvp")
    values = _primal_tensors(values, create_graph)
    vectors = _vectors_like(v, values, several, "hvp", "input of the function", create_graph)

    def gradient_of(*primals: Any) -> Any:
        xs = _fresh_tensors(primals, False)
        out, gradients = _recorded_gradient(func, xs, "hvp", strict, create=strict)
        return tuple([_detached(gradient, xs) for gradient in gradients]), _detached(out, xs)

    _, products, out = forward.jvp(gradient_of, values, vectors, has_aux=True)
    return _results([out], False, create_graph), _results(products, several, create_graph)


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
    several, values = _checked_inputs(inputs, "hessian")

    def gradient(*values: Any) -> Any:
        xs = _fresh_tensors(values, True)
        _, gradients = _recorded_gradient(func, xs, "hessian", strict)
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
    several, values = _checked_inputs(inputs, name)
    by_columns = strategy == "forward-mode"
    several_out, blocks = (
        _columns(function, values, create, vectorize, name)
        if by_columns
        else _rows(function, values, create, strict, vectorize, name)
    )
    rows = [_results(row, several, create) for row in blocks]
    return tuple(rows) if several_out else rows[0]


def _rows(
    function: Callable[..., Any], values: Sequence[Any], create: bool, strict: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """Blocks of the Jacobian by reverse mode."""
    xs = _fresh_tensors(values, create)
    several_out, outs = _output_tensors(function(*xs), function, name)
    if strict:
        _check_dependence(outs, xs, name)
    return several_out, [_rows_of(out, xs, create, vectorize) for out in outs]


def _rows_of(out: Any, xs: Sequence[Any], create: bool, vectorize: bool) -> list[Any]:
    """The blocks of one output."""
    shapes = [(*out.shape, *x.shape) for x in xs]
    if out.size == 0 or not _is_recorded(out, xs):
        return [full_like(_without_history(x), 0, shape) for x, shape in zip(xs, shapes, strict=True)]
    like = _without_history(out)
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
            full_like(_without_history(x), 0, shape) if block is None else reshape(block, shape=shape)
            for x, block, shape in zip(xs, stacked, shapes, strict=True)
        ]
    rows = []
    for j in range(out.size):
        seed = reshape(jacobians.unit_rows(like, j, 1, out.size), shape=out.shape)
        rows.append(_cotangents([out], xs, [seed], create))
    return [_stacked(column, shape) for column, shape in zip(zip(*rows, strict=True), shapes, strict=True)]


def _stacked(rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Rows of equal shape as one block."""
    return reshape(operand(np.stack([as_tensor(row) for row in rows])), shape=shape)


def _columns(
    function: Callable[..., Any], values: Sequence[Any], create: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """Blocks of the Jacobian by forward mode."""
    primals = _primal_tensors(values, create)
    several_out = [False]

    def called(*primals: Any) -> tuple[Any, ...]:
        xs = _fresh_tensors(primals, False)
        several_out[0], outs = _output_tensors(function(*xs), function, name)
        return tuple([_detached(out, xs) for out in outs])

    places = tuple(range(len(primals)))
    blocks = jacobians.jacfwd(called, places, chunk_size=None if vectorize else 1)(*primals)
    return several_out[0], [list(row) for row in blocks]


def _as_tuple(value: Any) -> tuple[bool, tuple[Any, ...]]:
    """Whether a tuple (or list) was given, and the values as a tuple."""
    return (True, tuple(value)) if isinstance(value, (tuple, list)) else (False, (value,))


def _checked_inputs(inputs: Any, name: str) -> tuple[bool, tuple[Any, ...]]:
    """The inputs as a tuple of tensors, arrays or numbers; a list of plain numbers is one array."""
    if isinstance(inputs, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in inputs]):
        inputs = np.asarray(inputs)
    several, values = _as_tuple(inputs)
    if not values:
        raise BackwardError(f"functional.{name}: at least one input is needed")
    for i, value in enumerate(values):
        dtype = dtype_of(operand(value))
        if not is_inexact(dtype):
            raise TypeError(
                f"functional.{name}: input {i} has dtype {dtype}; derivatives need floating point input, convert it "
                "with .astype(float)"
            )
    return several, values


def _without_history(value: Any) -> Any:
    """A value outside of every imperative graph that it is directly part of."""
    while type(value) is Tracer and type(value.interpreter) is Imperative:
        value = value.value
    return value


def _level(value: Any) -> float:
    return value.interpreter.level if type(value) is Tracer else 0


def _fresh_tensors(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """Tensors of the same values that require gradients; with `create` they depend on the given ones."""
    values = [operand(value) if create else _without_history(operand(value)) for value in values]
    home = ambient()
    if all([_level(value) <= home.level for value in values]):
        return tuple([_tensor_at(value, home) for value in values])
    above = Imperative("autograd.functional")  # some value belongs to a dual level that was entered meanwhile
    return tuple([_tensor_at(value, above) for value in values])


def _tensor_at(value: Any, home: Imperative) -> Any:
    """A tensor of an interpreter with this value; its own history goes on."""
    if type(value) is not Tracer or value.interpreter is EVALUATE:
        if home is ambient():
            return requires_grad_(tensor(value))
        value = tensor(value).value
    if type(value) is Tracer and value.interpreter is home:
        return clone(value)
    fresh = Tracer(home, snapshot(value), None)
    state: TensorState = state_of(fresh)
    fresh.attached = home.leaf(fresh.value, state)
    return fresh


def _primal_tensors(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """The inputs as forward mode takes them: tensors, without their history unless it is to go on."""
    return tuple(
        [as_tensor(_as_array(operand(value) if create else _without_history(operand(value)))) for value in values]
    )


def _detached(out: Any, inputs: Sequence[Any]) -> Any:
    """An output without the graph that began at the fresh tensors."""
    return out.value if _is_recorded(out, inputs) else out


def _is_recorded(out: Any, inputs: Sequence[Any]) -> bool:
    return type(out) is Tracer and out.interpreter is inputs[0].interpreter


def _output_tensors(outputs: Any, function: Callable[..., Any], name: str) -> tuple[bool, tuple[Any, ...]]:
    """The outputs of the function as a tuple of tensors."""
    several, values = _as_tuple(outputs)
    try:
        return several, tuple([as_tensor(_as_array(operand(value))) for value in values])
    except TypeError:
        kinds = ", ".join([type(value).__name__ for value in values])
        raise TypeError(
            f"functional.{name}: {name_of(function)} must return a tensor or a tuple of tensors, not {kinds}"
        ) from None


def _as_array(value: Array) -> Array:
    """Python and NumPy scalars as arrays without axes."""
    return value if hasattr(value, "dtype") and not isinstance(value, np.generic) else np.asarray(value)


def _single(outputs: tuple[bool, tuple[Any, ...]], function: Callable[..., Any], name: str) -> Any:
    """The one output of one element that a Hessian is taken of."""
    several, (out, *rest) = outputs
    if several and rest:
        raise BackwardError(
            f"functional.{name}: {name_of(function)} should return a single tensor, not {len(rest) + 1} of them"
        )
    if out.size != 1:
        raise BackwardError(
            f"functional.{name}: the tensor returned by {name_of(function)} should contain a single element, but has "
            f"shape {out.shape}"
        )
    return out


def _vectors_like(v: Any, like: Sequence[Any], several: bool, name: str, what: str, create: bool) -> tuple[Any, ...]:
    """The given vectors, one of the shape of each tensor; None stands for one for a single element."""
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise BackwardError(
                f"functional.{name}: the vector v can only be None if the {what} is a single tensor with a single "
                "element"
            )
        return (full_like(_without_history(like[0]), 1),)
    if not several and isinstance(v, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in v]):
        v = np.asarray(v)
    _, values = _as_tuple(v)
    if len(values) != len(like):
        raise BackwardError(
            f"functional.{name}: v should be a tuple of {len(like)} tensors, as the {what}, but has {len(values)}"
        )
    vectors = []
    for i, (vector, tensor_like) in enumerate(zip(values, like, strict=True)):
        vector = operand(vector)
        vector = unboxed(vector if create else _without_history(vector))
        if shape_of(vector) != tensor_like.shape:
            raise BackwardError(
                f"functional.{name}: entry {i} of v has invalid size: should be {tensor_like.shape} but got "
                f"{shape_of(vector)}"
            )
        if dtype_of(vector).kind == "c" and tensor_like.dtype.kind != "c":
            raise BackwardError(f"functional.{name}: entry {i} of v is complex, but the {what} is {tensor_like.dtype}")
        vectors.append(vector if dtype_of(vector) == tensor_like.dtype else convert(vector, dtype=tensor_like.dtype))
    return tuple(vectors)


def _results(values: Sequence[Any], several: bool, create: bool) -> Any:
    """Tensors to hand out: without history unless it was asked for."""
    tensors = [as_tensor(_as_array(value if create else _without_history(value))) for value in values]
    return tuple(tensors) if several else tensors[0]


def _depends(out: Any, value: Any) -> bool:
    """Whether an output was computed from a fresh tensor."""
    if type(out) is not Tracer or out.interpreter is not value.interpreter:
        return False
    return bool(value.attached[SERIAL] in reachable([out.attached]))


def _check_dependence(outputs: Sequence[Any], inputs: Sequence[Any], name: str, what: str = "Output") -> None:
    """Strict mode: every output must depend on every input."""
    for i, out in enumerate(outputs):
        for j, value in enumerate(inputs):
            if not _depends(out, value):
                raise BackwardError(
                    f"functional.{name}: {what} {i} of the user-provided function is independent of input {j}. This is "
                    "not allowed in strict mode."
                )


def _cotangents(outputs: Sequence[Any], inputs: Sequence[Any], vectors: Sequence[Any], create: bool) -> list[Any]:
    """Cotangents of the inputs, zeros where no output depends on them."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if _is_recorded(o, inputs)]
    if not pairs:
        return [zeros_like(_without_history(value)) for value in inputs]
    outs, seeds = zip(*pairs, strict=True)
    return list(grad(outs, inputs, seeds, retain_graph=True, create_graph=create, materialize_grads=True))


def _recorded_gradient(
    function: Callable[..., Any], xs: Sequence[Any], name: str, strict: bool, create: bool = True
) -> tuple[Any, list[Any]]:
    """The one output and its gradient, which can be differentiated again with `create`."""
    out = _single(_output_tensors(function(*xs), function, name), function, name)
    if strict:
        _check_dependence([out], xs, name)
    gradients = _cotangents([out], xs, [full_like(_without_history(out), 1, out.shape, out.dtype)], create)
    if strict:
        for i, (gradient, x) in enumerate(zip(gradients, xs, strict=True)):
            if not any([_depends(gradient, value) for value in xs]):
                raise BackwardError(
                    f"functional.{name}: The jacobian of the user-provided function with respect to input {i} is "
                    f"independent of {'the input' if len(xs) == 1 else 'the inputs'}, of shape {x.shape}. This is not "
                    "allowed in strict mode."
                )
    return out, gradients
