"""Calls of Python as equations: for side effects, and for values that outside code computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import is_device_array, namespace_of
from func.backends.records import ValueRecord
from func.interpreters import core
from func.interpreters.calls.call_primitives import AVALS
from func.interpreters.core import ZERO, Array, Aval, NonDifferentiable, Params, Primitive
from func.interpreters.core.errors import ArgumentError, CustomRuleError, NotDifferentiableError
from func.interpreters.core.parameters import FUNCTION, one_of
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import reshape


def _callback_impl(xp: Any, *args: Array, function: Any) -> tuple[Any, ...]:
    function(*args)
    return ()


def _callback_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    return callback(*args, **params)


callback: NonDifferentiable = core.nondifferentiable(
    "callback",
    _callback_impl,
    aval=lambda *avals, function: (),
    parameters={"function": FUNCTION},
    batch=_callback_batch,
    multiple=True,
    cost=0,
    calls_python=True,
)
"""function(*arrays), at each run of the program. Batched arguments arrive whole, with their batch axis."""

VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


def name_of_function(function: Callable[..., Any]) -> str:
    """The name of an outside function in messages."""
    return getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__


def fitted(result: Any, aval: Aval, name: str) -> Array:
    """One result of an outside function, as a new array with the promised dtype.

    Raises CustomRuleError for another shape, or if the promised dtype cannot represent the result.
    """
    array = result if is_device_array(result) else np.asarray(result)
    if array.shape != aval.shape or not np.can_cast(array.dtype, aval.dtype, "same_kind"):
        raise CustomRuleError(
            f"the outside function {name} returned an array of shape {array.shape} and dtype {array.dtype} where "
            f"{aval} was promised{at_line()}"
        )
    return namespace_of((array,)).array(array, aval.dtype, order="C")[()]


def _pure_callback_impl(
    xp: Any, *args: Array, function: Any, outs: tuple[Aval, ...], vmap_method: str | None
) -> tuple[Any, ...]:
    results = function(*[arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args])
    name = name_of_function(function)
    if len(results) != len(outs):
        raise CustomRuleError(
            f"the outside function {name} returned {len(results)} arrays where {len(outs)} were promised{at_line()}"
        )
    return tuple([fitted(result, aval, name) for result, aval in zip(results, outs, strict=True)])


class ElementByElement(ValueRecord):
    """An outside function on a leading batch axis of some arguments, called for each element."""

    function: Any
    size: int
    which: tuple[bool, ...]
    outs: tuple[Aval, ...]

    @property
    def name(self) -> str:
        """Its name in messages."""
        return name_of_function(self.function)

    def __call__(self, *args: Array) -> list[Array]:
        if not self.size:
            return [np.empty((0, *aval.shape), aval.dtype) for aval in self.outs]
        columns: list[list[Array]] = [[] for _ in self.outs]
        for i in range(self.size):
            row = [arg[i] if mapped else arg for arg, mapped in zip(args, self.which, strict=True)]
            results = self.function(*row)
            for column, result, aval in zip(columns, results, self.outs, strict=True):
                column.append(fitted(result, aval, self.name))
        return [namespace_of(tuple(column)).stack(column) for column in columns]


def _pure_callback_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    function, outs, method = params["function"], params["outs"], params["vmap_method"]
    stacked = tuple([Aval((size, *aval.shape), aval.dtype) for aval in outs])
    if method is None:
        raise ArgumentError(
            f"func.pure_callback: the outside function {name_of_function(function)} runs under vmap, and "
            f"vmap_method does not say how{at_line()}\n"
            'Write vmap_method="sequential" to call it for each batch element, or "broadcast_all" or "expand_dims" '
            "if it takes leading batch axes."
        )
    if method == "sequential":
        function = ElementByElement(function, size, tuple(batched), outs)
    elif method == "broadcast_all":
        args = core.materialize(size, batched, args)
    else:
        args = [
            arg if mapped else reshape(arg, shape=(1, *core.shape_of(arg)))
            for arg, mapped in zip(args, batched, strict=True)
        ]
    return pure_callback(*args, function=function, outs=stacked, vmap_method=method)


def _pure_callback_jvp(primals: Sequence[Array], tangents: Sequence[Any], **params: Any) -> Any:
    outs = pure_callback(*primals, **params)
    if not any([core.is_inexact(core.dtype_of(out)) for out in outs]):
        return outs, tuple([ZERO] * len(outs))
    raise NotDifferentiableError(
        f"func.pure_callback: the outside function {name_of_function(params['function'])} has no derivative that func "
        f"could know{at_line()}\n"
        "Call it in a function with a rule, func.custom_jvp or func.custom_vjp, or on func.stop_gradient(x)."
    )


pure_callback = Primitive(
    "pure_callback",
    _pure_callback_impl,
    aval=lambda *avals, outs, **params: outs,
    parameters={"function": FUNCTION, "outs": AVALS, "vmap_method": one_of(*VMAP_METHODS)},
    batch=_pure_callback_batch,
    jvp=_pure_callback_jvp,
    multiple=True,
    cost=0,
    calls_python=True,
)
"""function(*arrays): arrays of the avals `outs`, by untraced code; it has no derivative."""
