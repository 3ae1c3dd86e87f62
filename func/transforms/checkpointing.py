"""checkpoint: saves the arguments in place of the intermediate values, and recomputes these in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.backends import HOST_TYPES, namespace_of_type
from func.host import patching
from func.interpreters.calls.checkpoint import checkpointed as checkpointed_outputs
from func.interpreters.core import Array, Primitive, Tracer
from func.interpreters.core.errors import ArgumentError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.structural.identity import named
from func.transforms.boundary import Intercepts, array_leaf
from func.transforms.closures import Closure, is_traced
from func.transforms.custom import FlatFunction, losing_writes
from func.transforms.memory_limits import parse_bytes
from func.transforms.transformed import keeps_signature, transform


@keeps_signature
@transform
def checkpoint(
    f: Callable[..., Any],
    *,
    policy: Callable[..., bool] | None = None,
    memory_limit: int | str | None = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The same function, with less memory and more time in reverse mode.

    It saves only the intermediate values that the policy selects; the backward pass recomputes the others.

    It composes with every transform to any order. func calls the function once and recomputes the operations that it
    applied, so random numbers and counters stay as they were. Derivatives flow to the arguments and to all traced
    values that the function uses or stores.

    Args:
        f: The function; plain NumPy code.
        policy: The values to save, by one of `checkpoint_policies`; None saves nothing.
        memory_limit: The most memory that intermediate values may take for the backward pass: bytes, or a text as "2
            GiB". func traces the function and cuts it into as few segments as the limit allows. It saves the values
            that pass between segments and recomputes one segment at a time, or nothing if everything fits.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        MemoryLimitError: No cut stays below memory_limit (a MemoryError).

    Example:
        >>> import numpy as np, func
        >>> func.grad(func.checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
        np.float64(1.0)
    """
    if policy is not None and not callable(policy):
        raise ArgumentError(f"func.checkpoint: policy must be one of func.checkpoint_policies, not {policy!r}")
    if memory_limit is not None and policy is not None:
        raise ArgumentError("func.checkpoint: memory_limit chooses the values to save; pass either it or policy")
    limit = None if memory_limit is None else parse_bytes(memory_limit, "checkpoint")

    def checkpointed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call_checkpointed(f, args, kwargs, policy, limit=limit)

    return checkpointed


def call_checkpointed(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: Callable[..., bool] | None = None,
    calls_again: bool = False,
    limit: int | None = None,
) -> Any:
    """The value of a function, checkpointed; with `limit` in segments that save at most that number of bytes.

    With `calls_again`, derivatives call it again instead of applying its recorded operations. For many operations on
    small arrays the record needs more memory than the arrays.
    """
    closure = Closure(f, lambda value: type(value) is Tracer, stores=True)
    captured = closure.values
    leaves, spec = tree.flatten((args, kwargs))
    if not patching.is_tracing() and not any([is_traced(value) for value in (*leaves, *captured)]):
        return f(*args, **kwargs)
    is_array = [_is_array(leaf) for leaf in leaves]
    arrays = [array_leaf(leaf, "argument", "checkpoint") for leaf, yes in zip(leaves, is_array, strict=True) if yes]

    def flat_call(array_leaves: list[Array], *captured_values: Array) -> Any:
        remaining = iter(array_leaves)
        full = [next(remaining) if yes else leaf for leaf, yes in zip(leaves, is_array, strict=True)]
        copied_args, copied_kwargs = tree.unflatten(spec, full)
        closure.note_arguments((args, kwargs), (copied_args, copied_kwargs))
        return closure.rebuilt(captured_values)(*copied_args, **copied_kwargs)

    operands = [*arrays, *captured]
    flat = FlatFunction(
        flat_call, tree.structure((list(arrays), *captured)), returns_written=True, transform="checkpoint"
    )
    fun = SameDraws(flat) if calls_again else flat
    try:
        with losing_writes(f, operands, flat):
            if limit is None:
                outs = list(checkpointed_outputs(fun, operands, policy, fun if calls_again else None))
            else:
                from func.transforms.segments import in_segments  # here, for the start-up time

                outs = in_segments(flat, operands, limit, f)
    finally:
        closure.write_back()
    for i in sorted(flat.written, reverse=True):
        operands[i][...] = outs.pop()
    return tree.unflatten(flat.out_spec, outs)


class SameDraws:
    """A function that starts every run from the same state of NumPy's global generator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.state: Any = None

    def __call__(self, *args: Any) -> Any:
        now = np.random.get_state()
        if self.state is None:
            self.state = now
            return self.function(*args)
        np.random.set_state(self.state)
        try:
            return self.function(*args)
        finally:
            np.random.set_state(now)


remat = checkpoint


def _is_array(leaf: Any) -> bool:
    kind = type(leaf)
    if kind is Tracer:
        return True
    return kind not in (bool, int, str) and (kind in HOST_TYPES or namespace_of_type(kind) is not None)


@without_engine_frames
def checkpoint_name(x: Any, name: str) -> Any:
    """The identity, which names a value for checkpoint policies; takes a tree.

    Example:
        >>> import numpy as np, func
        >>> keep = func.checkpoint_policies.save_only_these_names("hidden")
        >>> f = func.checkpoint(lambda x: np.sin(func.checkpoint_name(np.exp(x), "hidden")), policy=keep)
        >>> func.grad(f)(0.0)
        np.float64(0.5403023058681398)
    """
    if not isinstance(name, str):
        raise TypeError(f"func.checkpoint_name: the name must be a string, not {type(name).__name__}")
    return tree.map(lambda leaf: named(leaf, label=name) if type(leaf) is Tracer else leaf, x)


class checkpoint_policies:
    """Policies for the intermediate values that `checkpoint` saves.

    Example:
        >>> import numpy as np, func
        >>> layer = func.checkpoint(lambda x: np.tanh(x @ x), policy=func.checkpoint_policies.dots_saveable)
        >>> func.grad(lambda x: np.sum(layer(x)))(np.zeros((2, 2)))
        array([[0., 0.],
               [0., 0.]])
    """

    @staticmethod
    def everything_saveable(primitive: Primitive, params: dict[str, Any]) -> bool:
        """Keep every value: no recomputation."""
        return True

    @staticmethod
    def nothing_saveable(primitive: Primitive, params: dict[str, Any]) -> bool:
        """Keep nothing: the default."""
        return False

    @staticmethod
    def dots_saveable(primitive: Primitive, params: dict[str, Any]) -> bool:
        """Keep the results of matrix products and other contractions."""
        return primitive.name == "contract"

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive: Primitive, params: dict[str, Any]) -> bool:
        """Keep the results of contractions without a batch axis (weights times activations)."""
        if primitive.name != "contract":
            return False
        spec = params["spec"]
        return not any([label in spec.x and label in spec.y for label in spec.out])

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Callable[..., bool]:
        """Keep the values that `checkpoint_name` gave one of these names."""
        return functools.partial(_saves_names, names)

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Callable[..., bool]:
        """Keep everything but the values with these names."""
        return functools.partial(_saves_all_but, names)

    @staticmethod
    def save_any_names_but_these(*names: str) -> Callable[..., bool]:
        """Keep the named values whose name is not one of these."""
        return functools.partial(_saves_names_but, names)

    @staticmethod
    def save_from_both_policies(first: Callable[..., bool], second: Callable[..., bool]) -> Callable[..., bool]:
        """Keep what either policy keeps."""
        return functools.partial(_saves_either, first, second)


def _saves_names(names: Sequence[str], primitive: Primitive, params: dict[str, Any]) -> bool:
    return primitive.name == "named" and params["label"] in names


def _saves_all_but(names: Sequence[str], primitive: Primitive, params: dict[str, Any]) -> bool:
    return primitive.name != "named" or params["label"] not in names


def _saves_names_but(names: Sequence[str], primitive: Primitive, params: dict[str, Any]) -> bool:
    return primitive.name == "named" and params["label"] not in names


def _saves_either(
    first: Callable[..., bool], second: Callable[..., bool], primitive: Primitive, params: dict[str, Any]
) -> bool:
    return first(primitive, params) or second(primitive, params)
