"""backward and grad: pulling cotangents back through the graph of tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from func.autograd import graph
from func.interpreters.core import EVALUATE, ZERO, Array, Tracer, dtype_of, operand, shape_of, unboxed, zeros_like
from func.interpreters.core.errors import ArgumentError, BackwardError
from func.interpreters.core.modes import MODE, Mode
from func.interpreters.drivers import map_flat
from func.interpreters.grad import AVAL, SERIAL
from func.interpreters.imperative.backward import BackwardPass
from func.interpreters.imperative.interpreter import Imperative, as_tensor, state_of
from func.interpreters.imperative.node_state import SAVED, STATE, is_leaf_node
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.transforms.boundary import own


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) and not isinstance(value, graph.GradientEdge) else [value]


def _root(out: Any, i: int) -> tuple[Any, Any, Any, Any]:
    """(interpreter, node, shape, dtype) of an output: a tensor or a gradient edge."""
    if isinstance(out, graph.GradientEdge):
        interpreter, node = out.ownership_token
        return interpreter, node, node[AVAL].shape, node[AVAL].dtype
    if type(out) is not Tracer:
        raise TypeError(f"element {i} is not a tensor but {type(out).__name__}; make it with func.tensor")
    if type(out.interpreter) is not Imperative:
        raise BackwardError(
            f"element {i} of tensors does not require grad and does not have a grad_fn: it does not depend on a "
            "tensor with requires_grad=True (made inside the running transform, if there is one), or was computed "
            "under no_grad"
        )
    return out.interpreter, out.attached, out.shape, out.dtype


def _seed(out: Any, given: Any, i: int, shape: Any, dtype: Any, create: bool, lanes: bool = False) -> Array:
    """The cotangent of an output: as given, or one for a single real number."""
    if given is None:
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
        value = out.value if type(out) is Tracer else np.zeros(())
        if shape == () and isinstance(value, (np.generic, np.ndarray)):
            return dtype.type(1)
        return full_like(value, 1, shape, dtype)
    seed = operand(given)
    if shape_of(seed)[1 if lanes else 0 :] != shape:
        raise BackwardError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {shape_of(seed)} and output[{i}] has a shape of "
            f"{shape}."
        )
    if dtype_of(seed).kind == "c" and dtype.kind != "c":
        raise BackwardError(f"grad_output[{i}] is complex, but output[{i}] is {dtype}")
    seed = seed if dtype_of(seed) == dtype and hasattr(seed, "dtype") else convert(seed, dtype=dtype)
    if type(seed) is Tracer and type(seed.interpreter) is Imperative and not create:
        return seed.value
    return unboxed(seed)


def _roots(outputs: Sequence[Any], given: Any, create: bool, lanes: bool = False) -> tuple[Imperative, list[Any]]:
    given = [None] * len(outputs) if given is None else _sequence(given)
    if len(given) != len(outputs):
        raise BackwardError(f"got {len(outputs)} tensors and {len(given)} gradients")
    if not outputs:
        raise BackwardError("no tensor was given to differentiate")
    seeds, homes = [], []
    for i, (out, one) in enumerate(zip(outputs, given, strict=True)):
        home, node, shape, dtype = _root(out, i)
        homes.append(home)
        seed = _seed(out, one, i, shape, dtype, create, lanes)
        seeds.append((node, seed))
    if any([home is not homes[0] for home in homes]):
        raise BackwardError("the tensors belong to different transforms and have no graph in common")
    return homes[0], seeds


def _target(value: Any, i: int, home: Imperative, what: str) -> Any:
    """The node at which a gradient is wanted."""
    if isinstance(value, graph.GradientEdge):
        return value.ownership_token[1]
    if type(value) is not Tracer:
        raise TypeError(f"{what}[{i}] is not a tensor but {type(value).__name__}")
    if type(value.interpreter) is not Imperative:
        raise BackwardError(f"One of the differentiated Tensors does not require grad: {what}[{i}]")
    return value.attached if value.interpreter is home else None


class _recording:
    """While a graph is pulled back its interpreter records or not; all others go on as they were."""

    def __init__(self, home: Imperative, create: bool) -> None:
        self.home, self.create = home, create

    def __enter__(self) -> None:
        level = self.home.level
        self.token = MODE.set(Mode(level + 0.25, self.create, False, MODE.get(), level))

    def __exit__(self, *error: object) -> None:
        MODE.reset(self.token)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute gradients of tensors and add them to the `grad` of the leaves that they depend on.

    All or nothing: if a hook or a rule raises, no `grad` has changed.

    Args:
        tensors: A tensor or a sequence of tensors (or GradientEdges).
        grad_tensors: For each the gradient of something with respect to it, of its shape; None for a single real
            number stands for one.
        retain_graph: Keep the graph for another backward; by default the value of create_graph.
        create_graph: Record the computation of the gradients, so that they can be differentiated again.
        inputs: Only these tensors get a gradient: a sequence, a dict, or GradientEdges.

    Raises:
        BackwardError: No graph, no gradient given for a tensor that is not a single number, shapes that differ (a
            RuntimeError).
        FreedGraphError: The graph was freed by an earlier backward (a RuntimeError).

    Example:
        >>> import func
        >>> w = func.tensor([1.0, 2.0], requires_grad=True)
        >>> func.backward((w**3).sum())
        >>> w.grad
        tensor([ 3., 12.])
    """
    outputs = _sequence(tensors)
    home, seeds = _roots(outputs, grad_tensors, create_graph)
    targets: set[int] | None = None
    wanted: list[Any] = []
    chosen: list[Any] = []
    if inputs is not None:
        chosen = list(inputs.values()) if isinstance(inputs, Mapping) else _sequence(inputs)
        if not chosen:
            raise BackwardError("`inputs` argument to `backward()` cannot be empty.")
        wanted = [_target(value, i, home, "inputs") for i, value in enumerate(chosen)]
        targets = {node[SERIAL] for node in wanted if node is not None}
    retain = create_graph if retain_graph is None else bool(retain_graph)
    backward_pass = BackwardPass(home, seeds, targets, retain=retain, create=create_graph)
    with _recording(home, create_graph):
        backward_pass.run(accumulating=True)
    pairs = [(node[STATE][SAVED](), ct) for node, ct in backward_pass.leaves if node[STATE][SAVED]() is not None]
    pairs += backward_pass.retained
    for value, node in zip(chosen, wanted, strict=True):
        if node is not None and type(value) is Tracer and not is_leaf_node(node):
            pairs.append((state_of(value), backward_pass.captured.get(node[SERIAL], ZERO)))
    with _recording(home, create_graph):  # hooks after accumulation see the mode of the backward pass
        _accumulate_all(pairs, create_graph)


def _accumulate_all(pairs: Sequence[tuple[Any, Any]], create: bool) -> None:
    """Add gradients to the tensors' own; undone if a hook raises."""
    before = [(state, state.grad, None if state.grad is None else state.grad.value) for state, _ in pairs]
    try:
        for state, ct in pairs:
            if ct is ZERO:
                continue
            _accumulate(state, ct, create)
            tensor = None if state.owner is None else state.owner()
            for hook in list(state.post_hooks.values()):
                hook(tensor)
    except BaseException:
        for state, grad_before, value in before:
            state.grad = grad_before
            if grad_before is not None:
                grad_before.value = value
        raise


def _accumulate(state: Any, ct: Any, create: bool) -> None:
    old = state.grad
    if old is None:
        state.grad = as_tensor(own([ct])[0] if type(ct) is not Tracer else ct)
        if type(ct) is Tracer:
            state.grad = Tracer(ct.interpreter, ct.value, ct.attached)
    elif create or type(ct) is Tracer or old.interpreter is not EVALUATE:
        state.grad = as_tensor(add(old, ct))
    else:
        old.value = add(old.value, ct)  # whoever holds the gradient sees the sum


def tensor_backward(
    self: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """`func.backward` of this tensor."""
    backward(self, gradient, retain_graph, create_graph, inputs)


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
    """Gradients of outputs with respect to inputs, without touching any `grad`: a tuple, or a dict for a dict.

    Args:
        outputs: A tensor or a sequence of tensors (or GradientEdges).
        inputs: The tensors (or GradientEdges) to differentiate by: one, a sequence, or a dict.
        grad_outputs: For each output the gradient of something with respect to it; None for single real numbers.
        retain_graph: Keep the graph; by default the value of create_graph.
        create_graph: Record the computation of the gradients, so that they can be differentiated again.
        allow_unused: None instead of an error for an input that the outputs do not depend on; by default the value of
            materialize_grads.
        is_grads_batched: The grad_outputs have a leading batch axis, and so have the results.
        materialize_grads: Zeros instead of None for unused inputs.

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
    chosen = list(inputs.values()) if isinstance(inputs, Mapping) else _sequence(inputs)
    if not chosen:
        raise BackwardError("grad requires non-empty inputs.")
    home, seeds = _roots(_sequence(outputs), grad_outputs, create_graph, is_grads_batched)
    wanted = [_target(value, i, home, "inputs") for i, value in enumerate(chosen)]
    retain = create_graph if retain_graph is None else bool(retain_graph)
    targets = {node[SERIAL] for node in wanted if node is not None}

    def walked(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        backward_pass = BackwardPass(home, pairs, targets, retain=retain, create=create_graph)
        with _recording(home, create_graph):
            backward_pass.run(accumulating=False)
        return [ZERO if node is None else backward_pass.captured.get(node[SERIAL], ZERO) for node in wanted]

    found = _batched(walked, seeds) if is_grads_batched else walked(seeds)
    results = []
    for i, (value, ct) in enumerate(zip(chosen, found, strict=True)):
        if ct is not ZERO:
            results.append(as_tensor(ct if type(ct) is Tracer else own([ct])[0]))
        elif materialize_grads:
            results.append(as_tensor(zeros_like(value.value if type(value) is Tracer else value)))
        elif allow:
            results.append(None)
        else:
            raise BackwardError(
                f"One of the differentiated Tensors appears to not have been used in the graph: inputs[{i}]. Set "
                "allow_unused=True if this is the desired behavior (None for it), or materialize_grads=True for zeros."
            )
    return tuple(results) if keys is None else dict(zip(keys, results, strict=True))


def _batched(walked: Any, seeds: Sequence[tuple[Any, Any]]) -> list[Any]:
    """The walk for every row of the seeds at once."""
    nodes = [node for node, _ in seeds]
    arrays = [seed for _, seed in seeds]
    size = shape_of(arrays[0])[0]
    places: list[int] = []
    counted: list[int] = []

    def flat(*rows: Array) -> list[Array]:
        cts = walked(list(zip(nodes, rows, strict=True)))
        counted[:] = [len(cts)]
        places[:] = [i for i, ct in enumerate(cts) if ct is not ZERO]
        return [cts[i] for i in places]

    outs, mapped = map_flat(flat, size, (True,) * len(arrays), arrays)
    from func.interpreters.primitives.structural.shapes import broadcast

    found: list[Any] = [ZERO] * counted[0]
    for place, out, is_mapped in zip(places, outs, mapped, strict=True):
        found[place] = out if is_mapped else broadcast(out, shape=(size, *shape_of(out)))
    return found
