"""Inputs, outputs and vectors of the functional interface: fresh tensors in, checked tensors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
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
from func.interpreters.core.errors import BackwardError
from func.interpreters.grad import SERIAL
from func.interpreters.imperative.interpreter import Imperative, TensorState, ambient, as_tensor, state_of
from func.interpreters.imperative.node_state import reachable
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.transforms.boundary import name_of


def tupled(value: Any) -> tuple[bool, tuple[Any, ...]]:
    """Whether a tuple (or list) was given, and the values as a tuple."""
    return (True, tuple(value)) if isinstance(value, (tuple, list)) else (False, (value,))


def checked_inputs(inputs: Any, name: str) -> tuple[bool, tuple[Any, ...]]:
    """The inputs as a tuple of tensors, arrays or numbers; a list of plain numbers is one array."""
    if isinstance(inputs, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in inputs]):
        inputs = np.asarray(inputs)
    several, values = tupled(inputs)
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


def without_history(value: Any) -> Any:
    """A value outside of every imperative graph that it is directly part of."""
    while type(value) is Tracer and type(value.interpreter) is Imperative:
        value = value.value
    return value


def _level(value: Any) -> float:
    return value.interpreter.level if type(value) is Tracer else 0


def fresh_tensors(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """Tensors of the same values that require gradients; with `create` they depend on the given ones."""
    values = [operand(value) if create else without_history(operand(value)) for value in values]
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
    made = Tracer(home, snapshot(value), None)
    state: TensorState = state_of(made)
    made.attached = home.leaf(made.value, state)
    return made


def primal_tensors(values: Sequence[Any], create: bool) -> tuple[Any, ...]:
    """The inputs as forward mode takes them: tensors, without their history unless it is to go on."""
    return tuple(
        [as_tensor(_as_array(operand(value) if create else without_history(operand(value)))) for value in values]
    )


def left(out: Any, inputs: Sequence[Any]) -> Any:
    """An output without the graph that began at the fresh tensors."""
    return out.value if is_recorded(out, inputs) else out


def is_recorded(out: Any, inputs: Sequence[Any]) -> bool:
    return type(out) is Tracer and out.interpreter is inputs[0].interpreter


def output_tensors(outputs: Any, function: Callable[..., Any], name: str) -> tuple[bool, tuple[Any, ...]]:
    """The outputs of the function as a tuple of tensors."""
    several, values = tupled(outputs)
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


def vectors_like(v: Any, like: Sequence[Any], several: bool, name: str, what: str, create: bool) -> tuple[Any, ...]:
    """The given vectors, one of the shape of each tensor; None stands for one for a single element."""
    if v is None:
        if len(like) != 1 or like[0].size != 1:
            raise BackwardError(
                f"functional.{name}: the vector v can only be None if the {what} is a single tensor with a single "
                "element"
            )
        return (full_like(without_history(like[0]), 1),)
    if not several and isinstance(v, list) and not any([type(x) is Tracer or hasattr(x, "dtype") for x in v]):
        v = np.asarray(v)
    _, given = tupled(v)
    if len(given) != len(like):
        raise BackwardError(
            f"functional.{name}: v should be a tuple of {len(like)} tensors, as the {what}, but has {len(given)}"
        )
    vectors = []
    for i, (one, tensor_like) in enumerate(zip(given, like, strict=True)):
        one = operand(one)
        one = unboxed(one if create else without_history(one))
        if shape_of(one) != tensor_like.shape:
            raise BackwardError(
                f"functional.{name}: entry {i} of v has invalid size: should be {tensor_like.shape} but got "
                f"{shape_of(one)}"
            )
        if dtype_of(one).kind == "c" and tensor_like.dtype.kind != "c":
            raise BackwardError(f"functional.{name}: entry {i} of v is complex, but the {what} is {tensor_like.dtype}")
        vectors.append(one if dtype_of(one) == tensor_like.dtype else convert(one, dtype=tensor_like.dtype))
    return tuple(vectors)


def results(values: Sequence[Any], several: bool, create: bool) -> Any:
    """Tensors to hand out: without history unless it was asked for."""
    made = [as_tensor(_as_array(value if create else without_history(value))) for value in values]
    return tuple(made) if several else made[0]


def _depends(out: Any, value: Any) -> bool:
    """Whether an output was computed from a fresh tensor."""
    if type(out) is not Tracer or out.interpreter is not value.interpreter:
        return False
    return bool(value.attached[SERIAL] in reachable([out.attached]))


def check_dependence(outputs: Sequence[Any], inputs: Sequence[Any], name: str, what: str = "Output") -> None:
    """Strict mode: every output must depend on every input."""
    for i, out in enumerate(outputs):
        for j, value in enumerate(inputs):
            if not _depends(out, value):
                raise BackwardError(
                    f"functional.{name}: {what} {i} of the user-provided function is independent of input {j}. This is "
                    "not allowed in strict mode."
                )


def pulled(outputs: Sequence[Any], inputs: Sequence[Any], vectors: Sequence[Any], create: bool) -> list[Any]:
    """Cotangents of the inputs, zeros where no output depends on them."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if is_recorded(o, inputs)]
    if not pairs:
        return [zeros_like(without_history(value)) for value in inputs]
    outs, seeds = zip(*pairs, strict=True)
    return list(grad(outs, inputs, seeds, retain_graph=True, create_graph=create, materialize_grads=True))


def recorded_gradient(
    function: Callable[..., Any], xs: Sequence[Any], name: str, strict: bool, create: bool = True
) -> tuple[Any, list[Any]]:
    """The one output and its gradient, which can be differentiated again with `create`."""
    out = _single(output_tensors(function(*xs), function, name), function, name)
    if strict:
        check_dependence([out], xs, name)
    gradients = pulled([out], xs, [full_like(without_history(out), 1, out.shape, out.dtype)], create)
    if strict:
        for i, (gradient, x) in enumerate(zip(gradients, xs, strict=True)):
            if not any([_depends(gradient, one) for one in xs]):
                raise BackwardError(
                    f"functional.{name}: The jacobian of the user-provided function with respect to input {i} is "
                    f"independent of {'the input' if len(xs) == 1 else 'the inputs'}, of shape {x.shape}. This is not "
                    "allowed in strict mode."
                )
    return out, gradients
