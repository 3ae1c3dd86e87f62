"""Checkpoints for tensors: backward recomputes the intermediate values of a function instead of saving them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.autograd.modes import is_grad_enabled
from func.interpreters.calls.checkpoint import checkpointed
from func.interpreters.core import Tracer, dtype_of, shape_of, snapshot, unboxed
from func.interpreters.core.errors import ArgumentError, CheckpointError, TracerConversionError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.imperative.interpreter import boxed
from func.transforms.boundary import check_callable, name_of
from func.transforms.closures import Closure, is_traced
from func.transforms.custom import FlatFunction, losing_writes


@without_engine_frames
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without saving its intermediate values, which backward recomputes.

    Gradients flow to the arguments and to the tensors in the function's closure, module globals and bound object. It
    must not depend on anything that changes before backward. While gradients are off, this is a plain call. Writes of
    the first run to tensors, attributes, variables, lists and dicts remain; later runs work on copies. Inside the
    function tensors do not require gradients: the graph records the call as a whole.

    Args:
        function: The function, or an object that can be called.
        *args: Its arguments: pytrees of tensors, arrays and other values.
        use_reentrant: Accepted for compatibility with torch; it has no effect.
        determinism_check: "default" compares the shapes and dtypes of recomputed outputs with those of the first run;
            "none" does not.
        preserve_rng_state: Recompute with the state that NumPy's global generator had in the first run.
        **kwargs: Keyword arguments of the function.

    Raises:
        ArgumentError: Another determinism_check (a ValueError).
        TracerConversionError: The function writes to a floating-point array that is not a tensor (a TypeError).
        CheckpointError: Backward raises it if the recomputed outputs differ in number, shape or dtype (a RuntimeError).

    Example:
        >>> import numpy as np, func
        >>> from func.autograd.checkpointing import checkpoint
        >>> w = func.tensor([1.0, 2.0], requires_grad=True)
        >>> checkpoint(lambda x: np.sin(np.exp(w * x)), np.zeros(2)).sum().backward()
        >>> w.grad
        tensor([0., 0.])
    """
    check_callable(function, "autograd.checkpoint")
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f'checkpoint: determinism_check must be "default" (compare shapes and dtypes) or "none", not '
            f"{determinism_check!r}"
        )
    if not is_grad_enabled():
        return function(*args, **kwargs)
    closure = Closure(function, stores=True)
    leaves, spec = tree.flatten((closure.values, args, kwargs))
    if not any([is_traced(leaf) for leaf in leaves]):
        return function(*args, **kwargs)
    is_tensor = [type(leaf) is Tracer for leaf in leaves]
    rerun = Rerun(function, closure, spec, is_tensor, determinism_check == "default", preserve_rng_state)
    try:
        with losing_writes(function, leaves, rerun.flat):
            rerun.call_arguments = args, kwargs
            arrays = checkpointed(rerun, leaves, rerun=rerun)
            rerun.call_arguments = None
    finally:
        closure.write_back()
    for i in sorted(rerun.flat.written, reverse=True):
        if not is_tensor[i] and leaves[i].dtype.kind in "fc":
            raise TracerConversionError(
                f"{name_of(function)}, which is checkpointed, writes to a plain array; numbers that are computed from "
                "tensors would silently lose their derivative there. Pass it a tensor instead of the array, or let it "
                "return the numbers."
            )
        leaves[i][...] = arrays.pop()
    return rerun.assembled(arrays)


class Rerun:
    """The arrays among the outputs, followed by the written leaves, as a function of the leaves of (captured tensors,
    args, kwargs).

    The first call stores the signature that later ones must repeat, and the outputs that are not arrays.
    """

    __slots__ = (
        "_check",
        "_closure",
        "_first_signature",
        "_is_tensor",
        "_out_spec",
        "_preserve",
        "_random_state",
        "_rest",
        "call_arguments",
        "flat",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        closure: Closure,
        spec: Any,
        is_tensor: list[bool],
        check: bool,
        preserve: bool,
    ) -> None:
        self._closure = closure
        self.flat = FlatFunction(function, spec, returns_written=True)
        self.call_arguments: Any = None
        self._is_tensor = is_tensor
        self._check = check
        self._preserve = preserve
        self._random_state: Any = None
        self._first_signature: Any = None
        self._rest: Any = None
        self._out_spec: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self._first_signature is None:
            self._random_state = np.random.get_state() if self._preserve else None
            result, written = self._run(leaves)
            outs, self._out_spec = tree.flatten(result)
            self._rest = [None if _is_array(out) else (out,) for out in outs]
            arrays = [unboxed(out) for out in (*outs, *written) if _is_array(out)]
            self._first_signature = _signature(arrays)
            return arrays
        before = np.random.get_state() if self._preserve else None
        try:
            if self._preserve:
                np.random.set_state(self._random_state)
            result, written = self._run(leaves)
        finally:
            if before is not None:
                np.random.set_state(before)
        arrays = [unboxed(out) for out in (*tree.leaves(result), *written) if _is_array(out)]
        if self._check:
            self._compare(_signature(arrays))
        return arrays

    def _run(self, leaves: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The results of the function, and copies of the caller's leaves that it has written."""
        flat, function = self.flat, self.flat.function
        values = [boxed(leaf) if is_tensor else leaf for leaf, is_tensor in zip(leaves, self._is_tensor, strict=True)]
        places = [i for i, value in enumerate(values) if type(value) in (Tracer, np.ndarray)]
        copies = list(values)
        for i, copy in zip(places, flat.copies(_without_scope, [values[i] for i in places]), strict=True):
            copies[i] = copy
        captured, args, kwargs = tree.unflatten(flat.in_spec, copies)
        if self.call_arguments is not None:
            self._closure.note_arguments(self.call_arguments, (args, kwargs))
        with flat.watched(function, copies, values):
            result = self._closure.rebuilt(captured)(*args, **kwargs)
        return result, [snapshot(copies[i]) for i in sorted(flat.written)]

    def assembled(self, arrays: Sequence[Any]) -> Any:
        """The output of the function with these arrays in it."""
        remaining = iter(arrays)
        return tree.unflatten(self._out_spec, [next(remaining) if rest is None else rest[0] for rest in self._rest])

    def _compare(self, signature: Sequence[Any]) -> None:
        """Raise CheckpointError for outputs with another number, shape or dtype than in the first run."""
        name = name_of(self.flat.function)
        if len(signature) != len(self._first_signature):
            raise CheckpointError(
                f"checkpoint: {name} returned {len(self._first_signature)} arrays the first time, but "
                f"{len(signature)} when backward computed it again; it must not depend on anything that changes "
                "meanwhile"
            )
        for i, (first, second) in enumerate(zip(self._first_signature, signature, strict=True)):
            if first != second:
                raise CheckpointError(
                    f"checkpoint: output {i} of {name} had shape {first[0]} and dtype {first[1]} the first time, "
                    f"but shape {second[0]} and dtype {second[1]} when backward recomputed it; the function must "
                    'not depend on anything that changes meanwhile (determinism_check="none" switches this check off)'
                )


def _without_scope() -> None:
    """A function that takes the arrays of its scope as arguments."""


def _is_array(leaf: Any) -> bool:
    return type(leaf) is Tracer or (hasattr(leaf, "dtype") and hasattr(leaf, "shape"))


def _signature(arrays: Sequence[Any]) -> list[Any]:
    """Shape and dtype of every array."""
    return [(shape_of(array), dtype_of(array)) for array in arrays]


@without_engine_frames
def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
) -> Any:
    """Call a chain of functions of one value in segments, all but the last of them checkpointed.

    Args:
        functions: The functions; the first takes the input, each other one the result of the previous one.
        segments: The number of parts of about equal length; about the square root of the number of functions saves
            the fewest values.
        input: The input of the first function.
        use_reentrant: As `checkpoint`.
        determinism_check: As `checkpoint`.
        preserve_rng_state: As `checkpoint`.

    Raises:
        ArgumentError: More segments than functions, or fewer than one (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> from func.autograd.checkpointing import checkpoint_sequential
        >>> x = func.tensor([0.0], requires_grad=True)
        >>> checkpoint_sequential([np.sin, np.exp, np.tanh, np.sin], 2, x).sum().backward()
        >>> x.grad
        tensor([0.3039509])
    """
    chain = list(functions)
    if not 1 <= segments <= len(chain):
        raise ArgumentError(f"checkpoint_sequential: segments must be from 1 to {len(chain)}, not {segments}")
    length = len(chain) // segments
    start = 0
    value = input
    for _ in range(segments - 1):
        value = checkpoint(
            functools.partial(_run_chain, chain[start : start + length]),
            value,
            use_reentrant=use_reentrant,
            determinism_check=determinism_check,
            preserve_rng_state=preserve_rng_state,
        )
        start += length
    return _run_chain(chain[start:], value)


def _run_chain(functions: Sequence[Callable[[Any], Any]], value: Any) -> Any:
    """Apply functions to a value one after the other."""
    for function in functions:
        value = function(value)
    return value
