"""`backward` and `grad`: cotangents passed back through the graph of tensors."""

from __future__ import annotations

import functools
import math
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, NamedTuple

import numpy as np

from func.autograd import graph
from func.interpreters import core
from func.interpreters.core import EVALUATE, ZERO, Array, Tracer
from func.interpreters.core.errors import ArgumentError, BackwardError
from func.interpreters.core.modes import MODE, Mode
from func.interpreters.core.scopes import Turns, live_entry
from func.interpreters.drivers import map_flat
from func.interpreters.grad import AVAL, SERIAL
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.imperative.backward import BackwardPass, is_accumulated, run_posthooks
from func.interpreters.imperative.interpreter import (
    DualLevel,
    Imperative,
    TensorState,
    ambient,
    as_tensor,
    new_leaf,
    state_of,
)
from func.interpreters.imperative.node_state import SAVED, STATE, has_hooks, is_leaf_node
from func.interpreters.imperative.writes import retain
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.elementwise.builder import add, negative
from func.interpreters.primitives.structural.shapes import broadcast, convert, full_like
from func.transforms.boundary import own


def _as_list(value: Any) -> list[Any]:
    if type(value) is Tracer or isinstance(value, graph.GradientEdge):
        return [value]
    return list(value) if isinstance(value, (tuple, list, ValuesView, Iterator)) else [value]


def _root(out: Any, i: int) -> tuple[Any, Any, Any, Any]:
    """(interpreter, node, shape, dtype) of an output: a tensor or a gradient edge."""
    if type(out) is not Tracer:
        if isinstance(out, graph.GradientEdge):
            interpreter, node = out.ownership_token
            return interpreter, node, node[AVAL].shape, node[AVAL].dtype
        raise TypeError(f"element {i} is not a tensor but {type(out).__name__}; make it with func.tensor")
    if type(out._interpreter) is not Imperative:
        if isinstance(out._interpreter, Jvp):
            raise BackwardError(
                f"element {i} of tensors is a dual number: backward cannot start at it. func.autograd.grad(out, x) "
                "gives the gradient with its tangent; otherwise start at a part that unpack_dual gives"
            )
        raise BackwardError(
            f"element {i} of tensors does not require grad and does not have a grad_fn: it does not depend on a "
            "tensor with requires_grad=True (made inside the running transform, if there is one), or was computed "
            "under no_grad"
        )
    return out._interpreter, out._attached, out.shape, out.dtype


def _seed(out: Any, seed: Any, i: int, shape: Any, dtype: Any, create: bool, is_batched: bool = False) -> Array:
    """The cotangent of an output: the user's, or the number one for a single real number."""
    if is_batched and (seed is None or core.shape_of(core.operand(seed)) == ()):
        raise BackwardError(f"is_grads_batched=True needs grad_outputs of shape {('batch', *shape)}, for output {i}")
    if seed is None:
        if math.prod(shape) != 1:
            raise BackwardError(
                f"grad can be implicitly created only for scalar outputs; output {i} has shape {shape}. Pass "
                f"gradient= (grad_outputs=) of that shape, or reduce it with .sum()"
            )
        if dtype.kind == "c":
            raise BackwardError(
                f"grad can be implicitly created only for real scalar outputs; output {i} is {dtype}. Pass the "
                "gradient, or take .real or np.abs"
            )
        value = out._value if type(out) is Tracer else np.zeros(())
        if shape == () and type(value) is not Tracer and isinstance(value, (np.generic, np.ndarray)):
            return dtype.type(1)
        return full_like(value, 1, shape, dtype)
    seed = core.operand(seed)
    if core.shape_of(seed)[1 if is_batched else 0 :] != shape:
        raise BackwardError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {core.shape_of(seed)} and output[{i}] has a shape of "
            f"{shape}."
        )
    if core.dtype_of(seed).kind == "c" and dtype.kind != "c":
        raise BackwardError(f"grad_output[{i}] is complex, but output[{i}] is {dtype}")
    seed = seed if core.dtype_of(seed) == dtype and hasattr(seed, "dtype") else convert(seed, dtype=dtype)
    if type(seed) is Tracer and type(seed._interpreter) is Imperative and not create:
        return seed._value
    return core.unboxed(seed)


def _roots(outputs: Sequence[Any], cts: Any, create: bool, is_batched: bool = False) -> tuple[Imperative, list[Any]]:
    """The interpreter of the outputs, and the pairs (node, cotangent) at which a backward pass starts."""
    cts = [None] * len(outputs) if cts is None else _as_list(cts)
    if len(cts) != len(outputs):
        raise BackwardError(f"got {len(outputs)} tensors and {len(cts)} gradients")
    if not outputs:
        raise BackwardError("got no tensor to differentiate")
    seeds, interpreters = [], []
    for i, (out, ct) in enumerate(zip(outputs, cts, strict=True)):
        interpreter, node, shape, dtype = _root(out, i)
        interpreters.append(interpreter)
        seeds.append((node, _seed(out, ct, i, shape, dtype, create, is_batched)))
    if any([interpreter is not interpreters[0] for interpreter in interpreters]):
        raise BackwardError("the tensors belong to different transforms and have no graph in common")
    return interpreters[0], seeds


def _target(value: Any, i: int, interpreter: Imperative) -> Any:
    """The node of an input; None for a tensor of another interpreter."""
    if isinstance(value, graph.GradientEdge):
        return value.ownership_token[1]
    if type(value) is not Tracer:
        raise TypeError(f"inputs[{i}] is not a tensor but {type(value).__name__}")
    if type(value._interpreter) is not Imperative:
        raise BackwardError(f"One of the differentiated Tensors does not require grad: inputs[{i}]")
    return value._attached if value._interpreter is interpreter else None


class _recording:
    """Switches recording by one interpreter on or off; a class for speed, since backward enters it twice."""

    def __init__(self, interpreter: Imperative, create: bool) -> None:
        self.level, self.create = interpreter.level, create

    def __enter__(self) -> None:
        mode = Mode(self.level + 0.25, self.create, False, MODE.get(), self.level)
        mode.owner = weakref.ref(self)
        self.token = MODE.set(mode)

    def __exit__(self, *error: object) -> None:
        MODE.reset(self.token)


@without_engine_frames
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute gradients of tensors and add them to the `grad` of the leaves that they depend on.

    If a hook or a rule raises, no `grad` changes.

    Args:
        tensors: A tensor or a sequence of tensors (or GradientEdges).
        grad_tensors: For each tensor the gradient of a scalar with respect to it, with its shape. None stands for the
            number one, for a single real number only.
        retain_graph: Keep the graph for another backward pass; by default the value of create_graph.
        create_graph: Record the computation of the gradients, so that they can be differentiated again.
        inputs: The tensors to fill: a sequence, a dict, or GradientEdges; by default all leaves.

    Raises:
        BackwardError: There is no graph, a tensor that is not a single number has no gradient, or shapes differ (a
            RuntimeError).
        FreedGraphError: An earlier backward freed the graph (a RuntimeError).

    Example:
        >>> import func
        >>> w = func.tensor([1.0, 2.0], requires_grad=True)
        >>> func.backward((w**3).sum())
        >>> w.grad
        tensor([ 3., 12.])
    """
    interpreter, seeds = _roots(_as_list(tensors), grad_tensors, create_graph)
    _check_outer(interpreter, "backward")
    targets: set[int] | None = None
    values: list[Any] = []
    nodes: list[Any] = []
    if inputs is not None:
        values = list(inputs.values()) if isinstance(inputs, Mapping) else _as_list(inputs)
        if not values:
            raise BackwardError("`inputs` argument to `backward()` cannot be empty.")
        nodes = [_target(value, i, interpreter) for i, value in enumerate(values)]
        targets = {node[SERIAL] for node in nodes if node is not None}
        for value, node in zip(values, nodes, strict=True):
            if node is not None and type(value) is Tracer and not is_leaf_node(node):
                retain(value, state_of(value))
    keeps = create_graph if retain_graph is None else bool(retain_graph)
    backward_pass = BackwardPass(interpreter, seeds, targets, retain=keeps, create=create_graph)
    with _recording(interpreter, create_graph):
        backward_pass.run(accumulating=True)
        leaves = backward_pass.leaves
        gradients = [_Gradient(node[STATE][SAVED](), ct, node) for node, ct in leaves if is_accumulated(node)]
        gradients += [_Gradient(state, ct) for state, ct in backward_pass.retained]
        _accumulate_all(gradients, create_graph)  # with its hooks in the mode of the backward pass


def _check_outer(interpreter: Imperative, function: str) -> None:
    """Raise if `backward` would fill the `grad` of tensors from outside of the running transform."""
    if interpreter.level < ambient().level:
        transform = live_entry().interpreter.transform
        raise BackwardError(
            f"{function} inside func.{transform} would fill the grad of tensors made outside of it{at_line()}\n"
            f"func.{transform} runs the function on traced values, perhaps once for many calls, and cannot undo "
            "what it leaves. Return the value and call backward on the result, or use func.autograd.grad, which fills "
            "no grad."
        )


class _Gradient(NamedTuple):
    """A cotangent for the `grad` of a tensor's state, and the node of the tensor if it is a leaf."""

    state: TensorState
    ct: Any
    leaf: Any = None


_TURNS = Turns()
"""Serializes reads and writes of each `grad`: several threads may run backward on graphs of the same leaves."""


def _renew_turns() -> None:
    """Resets the lock in a forked child, where its thread does not exist."""
    global _TURNS
    _TURNS = Turns()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_turns)


def _accumulate_all(gradients: Sequence[_Gradient], create: bool) -> None:
    """Add gradients to the `grad` of tensors; undo it if a hook raises."""
    done: list[tuple[TensorState, Any, Any, Any, Any]] = []
    try:
        for state, ct, leaf in gradients:
            if ct is ZERO:
                continue
            with _TURNS.take():
                previous = state.grad
                previous_value = None if previous is None else previous._value
                _accumulate(state, ct, create or leaf is None)
                done.append((state, ct, previous, previous_value, state.grad._value))
            if state.post_hooks:
                tensor = None if state.owner is None else state.owner()
                for hook in list(state.post_hooks.values()):
                    if hook(tensor) is not None:
                        raise BackwardError("a post-accumulate hook returned a value; it must write to tensor.grad")
            if leaf is not None:
                run_posthooks(leaf, ct)
    except BaseException:
        with _TURNS.take():
            for state, ct, previous, previous_value, value in reversed(done):
                if state.grad is None or state.grad._value is value:
                    state.grad = previous
                    if previous is not None:
                        previous._value = previous_value
                else:  # another thread has added to it
                    state.grad = as_tensor(add(state.grad, negative(ct)))
        raise


def _accumulate(state: TensorState, ct: Any, create: bool) -> None:
    """Add a cotangent to the `grad` of a tensor's state."""
    old = state.grad
    if old is None:
        state.grad = as_tensor(own([ct])[0] if type(ct) is not Tracer else ct)
        if type(ct) is Tracer:
            state.grad = Tracer(ct._interpreter, ct._value, ct._attached)
    elif create or type(ct) is Tracer or old._interpreter is not EVALUATE:
        with _recording(old._interpreter, True):  # the sum keeps the history of an earlier gradient
            state.grad = as_tensor(add(old, ct))
    else:
        old._value = add(old._value, ct)  # in place: other references to the gradient see the sum


@without_engine_frames
def tensor_backward(
    self: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """`func.backward` of this tensor."""
    backward(self, gradient, retain_graph, create_graph, inputs)


@without_engine_frames
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Gradients of outputs with respect to inputs, as a tuple, or a dict for a dict; no `grad` changes.

    Args:
        outputs: A tensor or a sequence of tensors (or GradientEdges).
        inputs: The tensors (or GradientEdges) to differentiate with respect to: one, a sequence or iterator, or a dict.
        grad_outputs: For each output the gradient of a scalar with respect to it; None is allowed for a single real
            number.
        retain_graph: Keep the graph; by default the value of create_graph.
        create_graph: Record the computation of the gradients, so that they can be differentiated again.
        allow_unused: Return None instead of raising for an input that the outputs do not depend on; by default the
            value of materialize_grads.
        is_grads_batched: The grad_outputs and the results have a leading batch axis.
        materialize_grads: Return zeros instead of None for unused inputs.

    Raises:
        BackwardError, FreedGraphError: As `backward`.
        ArgumentError: `materialize_grads=True` with `allow_unused=False` (a ValueError).

    Example:
        >>> import func
        >>> x = func.tensor(2.0, requires_grad=True)
        >>> (slope,) = func.autograd.grad(x**3, x, create_graph=True)
        >>> func.autograd.grad(slope, x)
        (tensor(12.),)
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError("Expected allow_unused to be True or not passed when materialize_grads=True")
    allow = materialize_grads if allow_unused is None else allow_unused
    keys = list(inputs) if isinstance(inputs, Mapping) else None
    values = list(inputs.values()) if isinstance(inputs, Mapping) else _as_list(inputs)
    if not values:
        raise BackwardError("grad requires non-empty inputs.")
    level = _dual_level(_as_list(outputs))
    if level is not None:
        options = (grad_outputs, retain_graph, create_graph, allow_unused, is_grads_batched, materialize_grads)
        duals = _gradients_of_duals(level, _as_list(outputs), values, *options)
        return duals if keys is None else dict(zip(keys, duals, strict=True))
    interpreter, seeds = _roots(_as_list(outputs), grad_outputs, create_graph, is_grads_batched)
    nodes = [_target(value, i, interpreter) for i, value in enumerate(values)]
    retain = create_graph if retain_graph is None else bool(retain_graph)
    targets = {node[SERIAL] for node in nodes if node is not None}

    def pullback(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        backward_pass = BackwardPass(interpreter, pairs, targets, retain=retain, create=create_graph)
        with _recording(interpreter, create_graph):
            backward_pass.run(accumulating=False)
        if backward_pass.retained and not is_grads_batched:
            _check_outer(interpreter, "autograd.grad with tensors that retain their gradient")
            _accumulate_all([_Gradient(state, ct) for state, ct in backward_pass.retained], create_graph)
        return [ZERO if node is None else backward_pass.captured.get(node[SERIAL], ZERO) for node in nodes]

    cts = _batched_cotangents(pullback, seeds) if is_grads_batched else pullback(seeds)
    results = []
    for i, (value, ct) in enumerate(zip(values, cts, strict=True)):
        if ct is not ZERO:
            results.append(as_tensor(ct if type(ct) is Tracer else own([ct])[0]))
        elif materialize_grads:
            zeros = core.zeros_like(value._value if type(value) is Tracer else value)
            results.append(new_leaf(interpreter, zeros) if create_graph else as_tensor(zeros))
        elif allow:
            results.append(None)
        else:
            raise BackwardError(
                f"One of the differentiated Tensors appears to not have been used in the graph: inputs[{i}]. Set "
                "allow_unused=True if this is the desired behavior (None for it), or materialize_grads=True for zeros."
            )
    return tuple(results) if keys is None else dict(zip(keys, results, strict=True))


def _dual_level(outputs: Sequence[Any]) -> DualLevel | None:
    """The dual level that some of the outputs belong to, in which gradients have tangents."""
    levels = [out._interpreter for out in outputs if type(out) is Tracer and type(out._interpreter) is DualLevel]
    return max(levels, key=lambda level: level.level) if levels else None


def _gradients_of_duals(
    level: DualLevel,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cts: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    is_batched: bool,
    materialize: bool,
) -> tuple[Any, ...]:
    """Gradients of dual numbers, which are dual.

    Outputs have primals p and tangents t, cotangents c have tangents ċ. The gradient is that of ⟨c, p⟩; its tangent is
    that of ⟨c, t⟩ + ⟨ċ, p⟩, as t = J v and second derivatives are symmetric.
    """
    if level.has_recorded_tangents:
        raise BackwardError(
            "the gradient of a dual number whose level has tangents that require a gradient would mix both: make the "
            "dual with tangent.detach(), or start at a part that unpack_dual gives"
        )
    seeds = [None] * len(outputs) if cts is None else _as_list(cts)
    if len(seeds) != len(outputs):
        raise BackwardError(f"got {len(outputs)} tensors and {len(seeds)} gradients")
    primals: list[tuple[Any, Any]] = []
    tangents: list[tuple[Any, Any]] = []
    for out, seed in zip(outputs, seeds, strict=True):
        primal, tangent = level.parts(out)
        ct, dct = (seed, ZERO) if seed is None else level.parts(seed)
        primals.append((primal, ct))
        if tangent is not ZERO:
            tangents.append((tangent, ct))
        if dct is not ZERO:
            tangents.append((primal, dct))
    roots = [part._attached for part, _ in (*primals, *tangents) if type(part) is Tracer and _is_recorded(part)]
    if has_hooks(roots):
        raise BackwardError(
            "the graph of a dual number has hooks, which would run for the gradient and for its tangent apart: remove "
            "them, or start at a part that unpack_dual gives"
        )
    targets = [level.parts(value)[0] if type(value) is Tracer else value for value in inputs]
    recorded = [(part, ct) for part, ct in tangents if type(part) is Tracer and _is_recorded(part)]
    gradient = functools.partial(grad, inputs=targets, create_graph=create_graph, is_grads_batched=is_batched)
    outs, out_cts = zip(*primals, strict=True)
    keeps = True if recorded else retain_graph
    gradients = gradient(
        outs, grad_outputs=out_cts, retain_graph=keeps, allow_unused=allow_unused, materialize_grads=materialize
    )
    if not recorded:
        return tuple(gradients)
    outs, out_cts = zip(*recorded, strict=True)
    dots = gradient(outs, grad_outputs=out_cts, retain_graph=retain_graph, allow_unused=True)
    return tuple([g if g is None or dot is None else level.of(g, dot) for g, dot in zip(gradients, dots, strict=True)])


def _is_recorded(value: Tracer) -> bool:
    return type(value._interpreter) is Imperative


def _batched_cotangents(
    pullback: Callable[[Sequence[tuple[Any, Any]]], list[Any]], seeds: Sequence[tuple[Any, Any]]
) -> list[Any]:
    """The cotangents by `pullback` for seeds with a leading batch axis."""
    nodes, arrays = zip(*seeds, strict=True)
    size = core.shape_of(arrays[0])[0]
    is_zero: list[bool] = []

    def element_cotangents(*elements: Array) -> list[Array]:
        cts = pullback(list(zip(nodes, elements, strict=True)))
        nonlocal is_zero
        is_zero = [ct is ZERO for ct in cts]
        return [ct for ct in cts if ct is not ZERO]

    outs, mapped = map_flat(element_cotangents, size, (True,) * len(arrays), arrays)
    cts = iter(
        [
            out if is_mapped else broadcast(out, shape=(size, *core.shape_of(out)))
            for out, is_mapped in zip(outs, mapped, strict=True)
        ]
    )
    return [ZERO if zero else next(cts) for zero in is_zero]
