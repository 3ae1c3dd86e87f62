"""Jacobian and Hessian products and matrices of functions of tensors, with the API of torch.autograd.functional.

They call the function with new tensors that require a gradient, so it may itself use `func.autograd.grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.modes import enable_grad
from func.autograd.tensors import clone, requires_grad_, tensor
from func.interpreters.core import (
    EVALUATE,
    Array,
    Interpreter,
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
from func.interpreters.imperative.interpreter import Imperative, ambient, ambient_of, as_tensor, new_leaf
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
        strict: Raise where an output does not depend on an input, instead of returning zeros.

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
    is_tuple, values = _checked_inputs(inputs, "vjp")
    xs = _new_leaves(values, create_graph)
    returns_tuple, outs = _output_tensors(func(*xs), func, "vjp")
    vectors = _vectors_like(v, outs, returns_tuple, "vjp", "output of the function", create_graph)
    if strict:
        _check_dependence(outs, xs, "vjp")
    cts = _cotangents(outs, xs, vectors, create_graph)
    return _results(outs, returns_tuple, create_graph), _results(cts, is_tuple, create_graph)


@enable_grad()
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs of a function, and the product of its Jacobian with a vector: (outputs, jvp), by forward mode.

    Args:
        func: A function of tensors that returns a tensor or a tuple of tensors.
        inputs: A tensor (or array), or a tuple of them.
        v: The vector, of the structure and shapes of the inputs; None for an input of one element.
        create_graph: The outputs and the product can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of returning zeros.

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
    is_tuple, values = _checked_inputs(inputs, "jvp")
    values = _primal_tensors(values, create_graph)
    vectors = _vectors_like(v, values, is_tuple, "jvp", "input of the function", create_graph)
    on_primals = _FunctionOfPrimals(func, "jvp", strict)
    outs, tangents = forward.jvp(on_primals, values, vectors)
    return tuple([_results(arrays, on_primals.returns_tuple, create_graph) for arrays in (outs, tangents)])


@enable_grad()
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of a function, and the product of a vector with its Hessian: (output, vhp), by reverse mode twice.

    Args:
        func: A function of tensors that returns one tensor of one element.
        inputs: A tensor (or array), or a tuple of them.
        v: The vector, of the structure and shapes of the inputs; None for an input of one element.
        create_graph: The output and the product can be differentiated again.
        strict: Raise where the output or its gradient does not depend on an input, instead of returning zeros.

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
    is_tuple, values = _checked_inputs(inputs, "vhp")
    xs = _new_leaves(values, create_graph)
    vectors = _vectors_like(v, xs, is_tuple, "vhp", "input of the function", create_graph)
    out, gradients = _recorded_gradient(func, xs, "vhp", strict)
    products = _cotangents(gradients, xs, vectors, create_graph)
    return _results([out], False, create_graph), _results(products, is_tuple, create_graph)


@enable_grad()
def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of a function, and the product of its Hessian with a vector: (output, hvp), forward over reverse.

    Arguments, errors and the product are those of `vhp`, as a Hessian is symmetric. One forward pass over the gradient
    is usually quicker than a second backward pass.

    Example:
        >>> import func
        >>> from func.autograd import functional
        >>> functional.hvp(lambda x: (x**3).sum(), func.tensor([1.0, 2.0]), func.tensor([1.0, 1.0]))
        (tensor(9.), tensor([ 6., 12.]))
    """
    check_callable(func, "autograd.functional.hvp")
    is_tuple, values = _checked_inputs(inputs, "hvp")
    values = _primal_tensors(values, create_graph)
    vectors = _vectors_like(v, values, is_tuple, "hvp", "input of the function", create_graph)

    def gradient_of(*primals: Any) -> Any:
        xs = _new_leaves(primals, False)
        out, gradients = _recorded_gradient(func, xs, "hvp", strict, create=strict)
        return tuple([_detached(gradient, xs) for gradient in gradients]), _detached(out, xs)

    _, products, out = forward.jvp(gradient_of, values, vectors, has_aux=True)
    return _results([out], False, create_graph), _results(products, is_tuple, create_graph)


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
        strict: Raise where an output does not depend on an input, instead of returning zeros.
        vectorize: Compute all rows (columns) at once, as by `func.vmap`; by default one after the other.
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
        strict: Raise where the output or its gradient does not depend on an input, instead of returning zeros.
        vectorize: Compute all rows (columns) at once, as by `func.vmap`; by default one after the other.
        outer_jacobian_strategy: The mode of the derivative of the gradient, "reverse-mode" or "forward-mode".

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
    is_tuple, values = _checked_inputs(inputs, "hessian")

    def gradient(*values: Any) -> Any:
        xs = _new_leaves(values, True)
        _, gradients = _recorded_gradient(func, xs, "hessian", strict)
        return tuple(gradients) if is_tuple else gradients[0]

    return _jacobian(
        gradient,
        tuple(values) if is_tuple else values[0],
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
            "the cheaper one if there are fewer inputs than outputs."
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
    is_tuple, values = _checked_inputs(inputs, name)
    if strategy == "forward-mode":
        returns_tuple, blocks = _columns(function, values, create, vectorize, name)
    else:
        returns_tuple, blocks = _rows(function, values, create, strict, vectorize, name)
    rows = [_results(row, is_tuple, create) for row in blocks]
    return tuple(rows) if returns_tuple else rows[0]


def _rows(
    function: Callable[..., Any], values: Sequence[Any], create: bool, strict: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """The blocks of the Jacobian by reverse mode, and whether the function returns a tuple."""
    xs = _new_leaves(values, create)
    returns_tuple, outs = _output_tensors(function(*xs), function, name)
    if strict:
        _check_dependence(outs, xs, name)
    return returns_tuple, [_rows_of(out, xs, create, vectorize) for out in outs]


def _rows_of(out: Any, xs: Sequence[Any], create: bool, vectorize: bool) -> list[Any]:
    """The blocks of the Jacobian of an output."""
    shapes = [(*out.shape, *x.shape) for x in xs]
    if out.size == 0 or not _is_recorded(out, xs):
        return [full_like(_without_history(x), 0, shape) for x, shape in zip(xs, shapes, strict=True)]
    like = _without_history(out)
    if vectorize:
        basis = reshape(jacobians.unit_rows(like, 0, out.size, out.size), shape=(out.size, *out.shape))
        options = {"retain_graph": True, "create_graph": create, "is_grads_batched": True, "allow_unused": True}
        stacked = grad(out, xs, basis, **options)
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
    """Rows of equal shape, stacked to a block."""
    return reshape(operand(np.stack([as_tensor(row) for row in rows])), shape=shape)


def _columns(
    function: Callable[..., Any], values: Sequence[Any], create: bool, vectorize: bool, name: str
) -> tuple[bool, list[list[Any]]]:
    """The blocks of the Jacobian by forward mode, and whether the function returns a tuple."""
    primals = _primal_tensors(values, create)
    on_primals = _FunctionOfPrimals(function, name)
    argnums = tuple(range(len(primals)))
    blocks = jacobians.jacfwd(on_primals, argnums, chunk_size=None if vectorize else 1)(*primals)
    return on_primals.returns_tuple, [list(row) for row in blocks]


class _FunctionOfPrimals:
    """The outputs of a function of tensors, in a tuple, as a function of primals; notes whether it returns a tuple."""

    def __init__(self, function: Callable[..., Any], name: str, strict: bool = False) -> None:
        self._function, self._name, self._strict = function, name, strict
        self.returns_tuple = False

    def __call__(self, *primals: Any) -> tuple[Any, ...]:
        xs = _new_leaves(primals, False)
        self.returns_tuple, outs = _output_tensors(self._function(*xs), self._function, self._name)
        if self._strict:
            _check_dependence(outs, xs, self._name)
        return tuple([_detached(out, xs) for out in outs])


def _as_tuple(value: Any) -> tuple[bool, tuple[Any, ...]]:
    """Whether a value is a tuple or list, and the value as a tuple."""
    return (True, tuple(value)) if isinstance(value, (tuple, list)) else (False, (value,))


def _checked_inputs(inputs: Any, name: str) -> tuple[bool, tuple[Any, ...]]:
    """The inputs as a tuple of tensors, arrays or numbers; a list of plain numbers is one array."""
    if isinstance(inputs, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in inputs]):
        inputs = np.asarray(inputs)
    is_tuple, values = _as_tuple(inputs)
    if not values:
        raise BackwardError(f"functional.{name}: at least one input is needed")
    for i, value in enumerate(values):
        dtype = dtype_of(operand(value))
        if not is_inexact(dtype):
            raise TypeError(
                f"functional.{name}: input {i} has dtype {dtype}; derivatives need floating point input, convert it "
                "with .astype(float)"
            )
    return is_tuple, values


def _without_history(value: Any) -> Any:
    """A value without its history in imperative interpreters."""
    while type(value) is Tracer and type(value._interpreter) is Imperative:
        value = value._value
    return value


def _by_level(interpreter: Interpreter) -> float:
    return interpreter.level


def _new_leaves(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """New tensors with these values that require gradients; with `create` they depend on the values."""
    values = [operand(value) if create else _without_history(operand(value)) for value in values]
    interpreter = ambient()
    highest = max([value._interpreter for value in values if type(value) is Tracer], key=_by_level, default=interpreter)
    if highest.level > interpreter.level:  # a dual level, or the run of a checkpoint or rule
        interpreter = highest if isinstance(highest, Imperative) else ambient_of(highest)
    return tuple([_tensor_at(value, interpreter) for value in values])


def _tensor_at(value: Any, interpreter: Imperative) -> Any:
    """A tensor of an interpreter with this value, which keeps its own history."""
    if type(value) is not Tracer or value._interpreter is EVALUATE:
        if interpreter is ambient():
            return requires_grad_(tensor(value))
        value = tensor(value)._value
    if type(value) is Tracer and value._interpreter is interpreter:
        return clone(value)
    return new_leaf(interpreter, snapshot(value))


def _primal_tensors(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """The primals of forward mode: the inputs as tensors, without their history unless `create`."""
    return tuple(
        [as_tensor(_as_array(operand(value) if create else _without_history(operand(value)))) for value in values]
    )


def _detached(out: Any, inputs: Sequence[Any]) -> Any:
    """An output without the graph of the new leaves."""
    return out._value if _is_recorded(out, inputs) else out


def _is_recorded(out: Any, inputs: Sequence[Any]) -> bool:
    """Whether an output belongs to the interpreter of the inputs."""
    return type(out) is Tracer and out._interpreter is inputs[0]._interpreter


def _output_tensors(outputs: Any, function: Callable[..., Any], name: str) -> tuple[bool, tuple[Any, ...]]:
    """The outputs of the function as a tuple of tensors."""
    is_tuple, values = _as_tuple(outputs)
    try:
        return is_tuple, tuple([as_tensor(_as_array(operand(value))) for value in values])
    except TypeError:
        kinds = ", ".join([type(value).__name__ for value in values])
        raise TypeError(
            f"functional.{name}: {name_of(function)} must return a tensor or a tuple of tensors, not {kinds}"
        ) from None


def _as_array(value: Array) -> Array:
    """Python and NumPy scalars as arrays without axes."""
    is_array = type(value) is Tracer or (hasattr(value, "dtype") and not isinstance(value, np.generic))
    return value if is_array else np.asarray(value)


def _single(outputs: tuple[bool, tuple[Any, ...]], function: Callable[..., Any], name: str) -> Any:
    """The output of a function for a Hessian: one tensor of one element."""
    is_tuple, (out, *rest) = outputs
    if is_tuple and rest:
        raise BackwardError(
            f"functional.{name}: {name_of(function)} should return a single tensor, not {len(rest) + 1} of them"
        )
    if out.size != 1:
        raise BackwardError(
            f"functional.{name}: the tensor returned by {name_of(function)} should contain a single element, but has "
            f"shape {out.shape}"
        )
    return out


def _vectors_like(v: Any, like: Sequence[Any], is_tuple: bool, name: str, what: str, create: bool) -> tuple[Any, ...]:
    """The vectors `v`, with the shapes of the tensors; None means the number one for a single element."""
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise BackwardError(
                f"functional.{name}: the vector v can only be None if the {what} is a single tensor with a single "
                "element"
            )
        return (full_like(_without_history(like[0]), 1),)
    if not is_tuple and isinstance(v, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in v]):
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


def _results(values: Sequence[Any], is_tuple: bool, create: bool) -> Any:
    """The results as tensors, without their history unless `create`."""
    tensors = [as_tensor(_as_array(value if create else _without_history(value))) for value in values]
    return tuple(tensors) if is_tuple else tensors[0]


def _depends(out: Any, value: Any) -> bool:
    """Whether an output depends on a new leaf."""
    if type(out) is not Tracer or out._interpreter is not value._interpreter:
        return False
    return bool(value._attached[SERIAL] in reachable([out._attached]))


def _check_dependence(outputs: Sequence[Any], inputs: Sequence[Any], name: str, what: str = "Output") -> None:
    """Raise if an output does not depend on every input (strict mode)."""
    for i, out in enumerate(outputs):
        for j, value in enumerate(inputs):
            if not _depends(out, value):
                raise BackwardError(
                    f"functional.{name}: {what} {i} of the user-provided function is independent of input {j}. This is "
                    "not allowed in strict mode."
                )


def _cotangents(outputs: Sequence[Any], inputs: Sequence[Any], vectors: Sequence[Any], create: bool) -> list[Any]:
    """Cotangents of the inputs; zeros for inputs that no output depends on."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if _is_recorded(o, inputs)]
    if not pairs:
        return [zeros_like(_without_history(value)) for value in inputs]
    outs, seeds = zip(*pairs, strict=True)
    return list(grad(outs, inputs, seeds, retain_graph=True, create_graph=create, materialize_grads=True))


def _recorded_gradient(
    function: Callable[..., Any], xs: Sequence[Any], name: str, strict: bool, create: bool = True
) -> tuple[Any, list[Any]]:
    """The output and its gradient, which can be differentiated again with `create`."""
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
