"""The graph of tensors: nodes, edges, hooks on tensors and nodes, and hooks on saved values."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from func.backends import is_device_array, namespace_of_type
from func.interpreters.core import EVALUATE, Tracer, is_plain_array
from func.interpreters.core.errors import BackwardError, LeafError
from func.interpreters.core.modes import SAVING, WATCHED, Setting, enter, leave, saving
from func.interpreters.grad import OUTPUT, PARAMS, PARENTS, RULE, SERIAL
from func.interpreters.imperative import node_state
from func.interpreters.imperative.backward import current_pass
from func.interpreters.imperative.interpreter import Imperative, state_of
from func.interpreters.imperative.node_state import CALL, LINE, SAVED, STATE, PackedValues
from func.interpreters.program.program import Program

# fmt: off
__all__ = [
    "GradientEdge", "Node", "RemovableHandle", "disable_saved_tensors_hooks", "get_gradient_edge",
    "register_multi_grad_hook", "save_on_cpu", "saved_bytes", "saved_tensors_hooks",
]
# fmt: on

_hook_ids = itertools.count()


class RemovableHandle:
    """Removes a hook, by `remove()` or at the end of a `with` block."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self.id = next(_hook_ids)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def node_of(tensor: Any, what: str) -> Any:
    """The node of a tensor that requires a gradient."""
    if type(tensor) is not Tracer or type(tensor._interpreter) is not Imperative:
        raise BackwardError(
            f"{what}: the tensor does not require a gradient; it depends on no tensor with requires_grad=True, or "
            "was computed under no_grad, in a checkpoint or in the forward of a Function"
        )
    return tensor._attached


class Node:
    """A recorded operation, such as the `grad_fn` of a tensor. Nodes are equal if they are the same operation."""

    __slots__ = ("_node",)

    def __init__(self, node: Any) -> None:
        self._node = node

    def name(self) -> str:
        """The operation's name, for example SinBackward; AccumulateGrad for leaves."""
        return node_state.node_name(self._node)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The parameters of the operation (read-only), and its source line if anomaly detection recorded it."""
        line = self._node[STATE][LINE]
        return MappingProxyType({"line": None if line is None else line[0], "params": dict(self._node[PARAMS] or {})})

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each argument, its node (None without a gradient) and its index among the node's outputs."""
        return tuple([(None, 0) if parent is None else _edge(parent) for parent in self._node[PARENTS]])

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call fn(grad_inputs, grad_outputs) after the node's pullback; it may return other grad_inputs."""
        return RemovableHandle(node_state.hooks_of(self._node).post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call fn(grad_outputs) before the node's pullback; it may return other grad_outputs."""
        return RemovableHandle(node_state.hooks_of(self._node).pre, fn)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._node[SERIAL] == self._node[SERIAL]

    def __hash__(self) -> int:
        return hash(self._node[SERIAL])

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def _edge(node: Any) -> tuple[Node, int]:
    """The operation of a node, and the index of its output."""
    if node[RULE] is OUTPUT:
        return Node(node[PARENTS][0]), node[STATE][SAVED]
    return Node(node), 0


def grad_fn(tensor: Any) -> Node | None:
    """The operation that computed a tensor, or None for leaves and tensors without a gradient."""
    if type(tensor._interpreter) is not Imperative or node_state.is_leaf_node(tensor._attached):
        return None
    return _edge(tensor._attached)[0]


def output_number(tensor: Any) -> int:
    """The index of a tensor among the outputs of its operation."""
    return 0 if type(tensor._interpreter) is not Imperative else _edge(tensor._attached)[1]


class GradientEdge(NamedTuple):
    """An edge of a graph for gradients: a node and the index of its output."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge of a tensor's gradient. It keeps the graph alive, but not the tensor's value.

    Example:
        >>> import func
        >>> x = func.tensor(3.0, requires_grad=True)
        >>> y = x * x
        >>> edge = func.autograd.graph.get_gradient_edge(x)
        >>> func.autograd.grad(y, edge)
        (tensor(6.),)
    """
    node = node_of(tensor, "get_gradient_edge")
    return GradientEdge(*_edge(node), ownership_token=(tensor._interpreter, node))


def saved_bytes(tensor: Any) -> int:
    """The number of bytes that a tensor's graph saves for backward; counts every array once, parameters included.

    Example:
        >>> import numpy as np, func
        >>> x = func.tensor(np.ones(1000), requires_grad=True)
        >>> func.autograd.graph.saved_bytes(np.tanh(np.tanh(x)).sum())
        16000
    """
    visited: set[int] = set()
    arrays: dict[int, int] = {}

    def count(value: Any) -> None:
        if type(value) is Tracer:
            count(value._value)
        elif isinstance(value, (tuple, list)):
            for part in value:
                count(part)
        elif isinstance(value, dict):
            for part in value.values():
                count(part)
        elif isinstance(value, PackedValues):
            count(value.structure)
        elif isinstance(value, Program):
            count(value.constants)
        elif isinstance(value, np.ndarray) or is_device_array(value):
            base = getattr(value, "base", None)
            owner: Any = value if base is None else base
            arrays[id(owner)] = owner.nbytes

    stack = [node_of(tensor, "saved_bytes")]
    while stack:
        node = stack.pop()
        if node[SERIAL] not in visited:
            visited.add(node[SERIAL])
            if node[RULE] is not OUTPUT and not node_state.is_leaf_node(node):
                count(node[STATE][SAVED])
                count(node[STATE][CALL])
            stack.extend([parent for parent in node[PARENTS] if parent is not None])
    return sum(arrays.values())


def register_hook(self: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call hook(grad) for each new gradient of this tensor.

    The hook may return another gradient, or write to the one that it receives. Hooks run in the order of registration,
    before accumulation.

    Example:
        >>> import func
        >>> x = func.tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        >>> handle.remove()
    """
    if not callable(hook):
        raise TypeError("register_hook takes a function of the gradient")
    return RemovableHandle(node_state.hooks_of(node_of(self, "register_hook")).tensor, hook)


def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call hook(tensor) after each accumulation into the `grad` of this leaf."""
    if not node_state.is_leaf_node(node_of(self, "register_post_accumulate_grad_hook")):
        raise LeafError("post-accumulate hooks can be registered on leaf tensors only")
    return RemovableHandle(state_of(self).post_hooks, hook)


class _MultiHandle:
    """Removes the hooks of several tensors together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> _MultiHandle:
    """Call `fn` once in each backward pass.

    Mode "all" calls fn(gradients) after the last gradient, with None for tensors without one; mode "any" calls
    fn(gradient) with the first gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"mode must be 'all' or 'any', not {mode!r}")
    tensors = list(tensors)
    key = object()

    def hook(index: int) -> Callable[[Any], None]:
        def receive(grad: Any) -> None:
            backward_pass = current_pass()
            grads = backward_pass.notes.setdefault(key, {})
            grads[index] = grad
            if mode == "any" and len(grads) == 1:
                fn(grad)
            elif mode == "all" and len(grads) == len([serial for serial in serials if serial in backward_pass.needed]):
                fn([grads.get(i) for i in range(len(serials))])

        return receive

    handle = _MultiHandle([register_hook(tensor, hook(i)) for i, tensor in enumerate(tensors)])
    # The tensors themselves would refer to each other through the hook.
    serials = [node_of(tensor, "register_multi_grad_hook")[SERIAL] for tensor in tensors]
    return handle


class saved_tensors_hooks:
    """Packs what operations save for backward by `pack_hook(tensor)`, and restores it by `unpack_hook(packed)`.

    The hooks can keep saved values on disk, in another precision, or not at all.

    Example:
        >>> import func
        >>> x = func.tensor([2.0], requires_grad=True)
        >>> with func.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().tolist(), func.tensor):
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        reason = saving()
        if isinstance(reason, str):
            raise RuntimeError(reason)
        WATCHED.ever = True
        setting = Setting((self.pack_hook, self.unpack_hook), SAVING.get())
        self._entered.append((setting, enter(SAVING, setting)))

    def __exit__(self, *error: object) -> None:
        leave(SAVING, *self._entered.pop())


class save_on_cpu(saved_tensors_hooks):
    """Moves what operations on device arrays save for backward to host memory until backward needs it.

    NumPy arrays stay where they are, with a warning. `pin_memory` allocates page-locked memory, which makes the
    transfers faster.
    """

    def __init__(self, pin_memory: bool = False) -> None:
        has_warned = False

        def pack(saved: Any) -> Any:
            nonlocal has_warned
            value = saved._value
            if is_plain_array(value):
                if not has_warned:
                    has_warned = True
                    warnings.warn("save_on_cpu: NumPy arrays are in host memory already", UserWarning, stacklevel=4)
                return (None, value)
            return (type(value), _to_host(value, pin_memory))

        def unpack(packed: Any) -> Any:
            kind, value = packed
            if kind is not None:
                value = namespace_of_type(kind).asarray(value)  # type: ignore[union-attr]
            return Tracer(EVALUATE, value, None)

        super().__init__(pack, unpack)


def _to_host(value: Any, pin_memory: bool) -> Any:
    if pin_memory:
        import cupyx  # CuPy is optional

        pinned = cupyx.empty_pinned(value.shape, value.dtype)
        value.get(out=pinned)
        return pinned
    return value.get()


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Make `saved_tensors_hooks` raise a RuntimeError with this message inside the block."""
    setting = Setting(error_message, SAVING.get())
    token = enter(SAVING, setting)
    try:
        yield
    finally:
        leave(SAVING, setting, token)
