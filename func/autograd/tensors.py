"""Tensors: traced arrays of an imperative interpreter, with the attributes of the imperative interface.

A tensor is a traced array, as in every transform, so NumPy's functions take it. This module adds `grad`, `backward`,
`detach`, the hooks and the other attributes.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from func.autograd import backwards, graph
from func.backends import is_device_array
from func.host.conversions import no_attribute
from func.interpreters.core import (
    EVALUATE,
    Array,
    Tracer,
    concrete,
    dtype_of,
    innermost,
    is_inexact,
    is_plain_array,
    is_readable,
    known_value,
    next_level,
    operand,
    shape_of,
    snapshot,
)
from func.interpreters.core.errors import (
    BackwardError,
    InferenceTensorError,
    LeafError,
    TracerConversionError,
    UnsupportedFunctionError,
)
from func.interpreters.grad import Grad
from func.interpreters.host.display import escaped, html_table
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.imperative import writes
from func.interpreters.imperative.interpreter import (
    Imperative,
    TensorState,
    ambient,
    ambient_of,
    boxed,
    new_leaf,
    state_of,
    unboxed_copy,
)
from func.interpreters.imperative.node_state import is_leaf_node
from func.interpreters.primitives.structural.identity import stop_gradient
from func.numpy import inplace, memory
from func.numpy.argument_checks import to_dtype
from func.numpy.memory import copied, copied_as_it_is

Tensor = Tracer
"""An array that records its operations, made by :py:obj:`func.tensor`; test for it with `isinstance(x, func.Tensor)`.

It has the attributes and methods of a NumPy array, and works in NumPy's functions and in every transform. The
imperative interface adds:

- `backward()`, `grad`, `requires_grad`, `requires_grad_()`, `retain_grad()`, `is_leaf`, `grad_fn`: reverse mode
- `detach()`, `numpy()`, `item()`, `tolist()`: the value alone; `np.from_dlpack(x)` and other libraries share its memory
- `clone()`: a copy that stays in the graph
- `register_hook()`, `register_post_accumulate_grad_hook()`: functions of each new gradient

The traced values inside of a transform are of this class too.

Example:
    >>> import func
    >>> x = func.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    >>> isinstance(x, func.Tensor)
    True
"""

MOST_CELLS = 12
"""Rows, and columns, of a table that notebooks show; of more, the first and the last."""


@without_engine_frames
def tensor(data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor with a copy of the data: an array that can require a gradient.

    Args:
        data: An array, a number, a nested list, or a tensor, without its history.
        dtype: The dtype; None keeps NumPy's.
        requires_grad: Record operations on it, so that `backward` can fill its `grad`; requires a floating point dtype.

    Raises:
        TypeError: `requires_grad` with an integer dtype, or data that is not numeric.

    Example:
        >>> import func
        >>> x = func.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    value = operand(data)
    value = to_dtype(_plain(value), dtype)
    is_array = type(value) is Tracer or (hasattr(value, "dtype") and not isinstance(value, np.generic))
    value = snapshot(value) if is_array else np.asarray(value)
    if is_plain_array(value) and not value.flags.writeable:
        value = value.copy()
    result = _new_tensor(value)
    state_of(result).born = next_level()
    return requires_grad_(result) if requires_grad else result


def _new_tensor(value: Array) -> Any:
    """A tensor of a value, with the history of a traced one but another identity."""
    return unboxed_copy(value) if type(value) is Tracer else boxed(value)


def _plain(value: Array) -> Array:
    """A value without its history in an imperative interpreter."""
    if type(value) is not Tracer:
        return value
    if value._interpreter is EVALUATE or type(value._interpreter) is Imperative:
        return value._value
    return value


def requires_grad(self: Any) -> bool:
    """Whether operations on this tensor are recorded for a gradient."""
    value = self
    while type(value) is Tracer:
        if isinstance(value._interpreter, Grad):
            return True
        value = value._value
    return False


def is_leaf(self: Any) -> bool:
    """Whether the tensor was created by the user, not by a recorded operation."""
    return type(self._interpreter) is not Imperative or is_leaf_node(self._attached)


def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    """Start (or stop) recording operations on this tensor, which must be a leaf. Returns the tensor."""
    if type(self._interpreter) is Imperative:
        if not is_leaf_node(self._attached):
            if requires_grad:
                return self
            raise LeafError(
                "requires_grad can be changed for leaf tensors only; use x.detach() for a tensor without history"
            )
        if not requires_grad:
            _become(self, self._value)
        return self
    if not requires_grad:
        return self
    if not is_inexact(dtype_of(self)):
        raise TypeError(
            f"only tensors of floating point and complex dtype can require gradients, not {dtype_of(self)}; convert "
            "with .astype(float)"
        )
    state = state_of(self)
    if state.inference:
        raise BackwardError("requires_grad cannot be set on a tensor made in inference mode; clone it outside first")
    interpreter = ambient()
    if self._interpreter.level > interpreter.level:  # a dual number of func.autograd.forward_ad
        interpreter = ambient_of(self._interpreter)
    value = self._value if self._interpreter is EVALUATE else unboxed_copy(self)
    if state.frozen_in is not None:
        writes.warn_of_constant(state, "requires a gradient now")
    self._attached = interpreter.leaf(value, state)
    self._interpreter, self._value = interpreter, value
    return self


def set_requires_grad(self: Any, requires_grad: bool) -> None:
    """`x.requires_grad = flag`: the same as `requires_grad_`."""
    requires_grad_(self, bool(requires_grad))


def _is_tensor(value: Any) -> bool:
    """Whether a traced value is a tensor, rather than an array that a running transform traces."""
    interpreter = value._interpreter
    return interpreter is EVALUATE or type(interpreter) is Imperative or getattr(value, "_state", None) is not None


def identity_hash(self: Any) -> int:
    """The hash of a tensor, by identity. Other traced values have none, like NumPy's arrays."""
    if _is_tensor(self):
        return object.__hash__(self)
    raise TypeError(
        f"unhashable type: an array that func.{self._interpreter.transform} traces{at_line()}\n"
        "It represents an array, or an unknown number, so it cannot be a member of a set or the key of a "
        "dict or cache. Use a name or an index as the key; tensors of func.tensor are hashed by identity."
    )


def _become(self: Any, value: Array) -> None:
    """Replace a tensor by its value, without its history."""
    if type(value) is Tracer:
        self._interpreter, self._value, self._attached = value._interpreter, value._value, value._attached
    else:
        self._interpreter, self._value, self._attached = EVALUATE, value, None


def _gradient_of(self: Any) -> Any:
    state: TensorState | None = getattr(self, "_state", None)
    return None if state is None else state.grad


def get_grad(self: Any) -> Any:
    """The accumulated gradient of a leaf (or of a tensor that retains it), or None.

    Warns where no backward pass will fill it.
    """
    grad = _gradient_of(self)
    if grad is None and not is_leaf(self) and not retains_grad(self):
        warnings.warn(
            "this tensor is the result of an operation, and backward() fills .grad of leaves alone: call "
            "retain_grad() on it before backward(), or x.detach().requires_grad_() to make a leaf of it",
            UserWarning,
            stacklevel=2,
        )
    return grad


def set_grad(self: Any, value: Any) -> None:
    """Replace the gradient by a tensor or array of the same shape and dtype, or by None."""
    if value is self:
        raise BackwardError("a tensor cannot be its own gradient; assign a copy, x.detach().clone()")
    if value is not None:
        value = operand(value)
        if shape_of(value) != self.shape:
            raise BackwardError(f"the gradient of a tensor of shape {self.shape} cannot have shape {shape_of(value)}")
        if dtype_of(value) != self.dtype:
            raise BackwardError(f"the gradient of a tensor of dtype {self.dtype} cannot have dtype {dtype_of(value)}")
        value = value if type(value) is Tracer else Tracer(EVALUATE, np.array(value), None)
    state_of(self).grad = value


def delete_grad(self: Any) -> None:
    """`del x.grad`: the same as `x.grad = None`."""
    set_grad(self, None)


def retain_grad(self: Any) -> None:
    """Make `backward` fill the `grad` of a tensor that is not a leaf."""
    if type(self._interpreter) is not Imperative:
        raise LeafError("retain_grad: the tensor does not require a gradient")
    if not is_leaf_node(self._attached):
        writes.retain(self, state_of(self))


def retains_grad(self: Any) -> bool:
    """Whether `backward` fills the `grad` of a tensor that is not a leaf."""
    state: TensorState | None = getattr(self, "_state", None)
    return state is not None and state.retains


def _detached(value: Any) -> Any:
    """The value of a tensor without its history; no running transform differentiates it either."""
    value = value._value if type(value._interpreter) is Imperative else value
    if type(value) is Tracer and value._interpreter is not EVALUATE:
        value = stop_gradient(value)
    if type(value) is not Tracer and not hasattr(value, "dtype"):
        value = np.asarray(value)[()]
    return _new_tensor(value)


def detach(self: Any) -> Any:
    """A tensor with the same value and memory that requires no gradient."""
    return inplace.link_alias(_detached(self), self, _detached, has_own_version=False)


def get_data(self: Any) -> Any:
    """`x.data`: like `x.detach()`, but writes to it do not count in the version of x.

    Only tensors have it: for an array it is the buffer, which a traced one lacks.
    """
    try:
        if not _is_tensor(self):
            no_attribute("data", self, sys._getframe(1))
        return inplace.link_alias(_detached(self), self, _detached, has_own_version=True)
    except Exception as error:
        hide_outside(error)
        raise


def detach_(self: Any) -> Any:
    """Drop the history in place: the tensor becomes a leaf that requires no gradient."""
    if type(self._interpreter) is Imperative:
        if memory.view_of(self) is not None:
            raise LeafError("detach_ of a view would separate it from its base; use x.detach()")
        _become(self, self._value)
    return self


def set_data(self: Any, value: Any) -> None:
    """`x.data = value`: replace the value of a tensor without recording it."""
    if not _is_tensor(self):
        raise UnsupportedFunctionError(
            "`x.data = value` replaces the numbers of a tensor; this is an array that "
            f"func.{self._interpreter.transform} traces{at_line()}\n"
            "Write x[...] = value to record it, or x.detach()[...] = value to not record it."
        )
    value = _plain(operand(value))
    if is_plain_array(value) or not hasattr(value, "dtype"):
        value = np.array(value)
    if dtype_of(value) != self.dtype:
        raise BackwardError(f"x.data of dtype {self.dtype} cannot be set to {dtype_of(value)}; convert it")
    if type(self._interpreter) is not Imperative:
        _become(self, value)
        return
    if shape_of(value) != self.shape and not is_leaf_node(self._attached):
        raise BackwardError("x.data of a tensor that is not a leaf cannot change its shape")
    if shape_of(value) != self.shape:
        self._attached = self._interpreter.leaf(value, state_of(self))
    self._value = value


def to_numpy(self: Any, *, force: bool = False) -> Any:
    """The value as a plain array; raises for a tensor that requires a gradient, unless `force`."""
    if requires_grad(self) and not force:
        raise TracerConversionError(
            "numpy() of a tensor that requires a gradient would lose its history; write x.detach().numpy()"
        )
    value: Any = self
    while type(value) is Tracer:
        if is_readable(value) and value._interpreter is not EVALUATE:  # in the code of a rule: a copy
            return np.array(concrete(value))
        if not isinstance(value._interpreter, Imperative) and value._interpreter is not EVALUATE:
            shape_of(value)  # raises for a value of a transform that has returned
            raise TracerConversionError("numpy() of a value traced by a running transform: return it instead")
        value = value._value
    if hasattr(value, "get"):
        return value.get()
    array = np.asarray(value)[...]
    if array.shape:
        state = state_of(inplace.owner_of_version(self))
        if state.exported is None or state.exported() is None:
            state.exported = weakref.ref(array)
    return array


def dlpack(self: Any, **options: Any) -> Any:
    """The memory of the value for another library, as `torch.from_dlpack(x)` asks for it; shared as by `numpy()`."""
    return _dlpack_array(self).__dlpack__(**options)


def dlpack_device(self: Any) -> tuple[int, int]:
    """The device of the value by DLPack's numbers: (1, 0) is host memory."""
    value = innermost(self)
    return value.__dlpack_device__() if is_device_array(value) else (1, 0)


def _dlpack_array(tensor: Any) -> Any:
    if requires_grad(tensor):
        raise TracerConversionError(
            "DLPack of a tensor that requires a gradient would lose its history; pass x.detach() to the other library"
        )
    value = _plain(tensor)
    return value if is_device_array(value) else to_numpy(tensor)


def clone(self: Any) -> Any:
    """A copy through which gradients flow."""
    return copied(self)


def shallow_copy(self: Any) -> Any:
    """`copy.copy(x)`: for a leaf another leaf without a gradient, for any other traced value a recorded copy."""
    if type(self._interpreter) is not Imperative or not is_leaf_node(self._attached):
        return copied_as_it_is(self)
    return new_leaf(self._interpreter, self._value)


def deep_copy(self: Any, memo: Any) -> Any:
    """`copy.deepcopy(x)`: as `copy.copy`, with a copy of the gradient."""
    copied = shallow_copy(self)
    gradient = _gradient_of(self)
    if gradient is not None:
        state_of(copied).grad = deep_copy(gradient, memo)
    return copied


def reduce(self: Any, protocol: Any = None) -> Any:
    """Pickle or copy a leaf or a tensor without history; raise for values of a graph or of a transform."""
    has_no_history = self._interpreter is EVALUATE or (
        type(self._interpreter) is Imperative and is_leaf_node(self._attached)
    )
    if not has_no_history or type(self._value) is Tracer:
        raise TypeError(
            "only tensors without history can be pickled: a leaf, or x.detach(); not values of a graph or of a running "
            "transform"
        )
    gradient = _gradient_of(self)
    if gradient is not None and gradient.requires_grad:  # its history stays here, like that of a value
        gradient = gradient.detach()
    return _restored, (self._value, type(self._interpreter) is Imperative, gradient)


def _restored(value: Any, requires: bool, gradient: Any) -> Any:
    restored = tensor(value, requires_grad=requires)
    restored.grad = gradient
    return restored


def tensor_repr(self: Any, fallback: Callable[[Any], str]) -> str:
    """The repr tensor([...], requires_grad=True) or tensor([...], grad_fn=<...>); `fallback` for other tracers."""
    if self._interpreter is not EVALUATE and type(self._interpreter) is not Imperative:
        return fallback(self)
    array = _shown_array(self)
    if array is None:
        return fallback(self)
    text = np.array2string(array, separator=", ", prefix="tensor(", threshold=200)
    if array.dtype not in (np.float64, np.int64, np.bool_, np.complex128):
        text += f", dtype={array.dtype}"
    history = _history(self)
    return f"tensor({text}, {history})" if history else f"tensor({text})"


def _shown_array(self: Any) -> Any:
    """The numbers of a tensor on the host; None if it is traced or its numbers are unknown."""
    bottom = known_value(self)
    if bottom is None or type(self._value) is Tracer:
        return None
    return np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)


def _history(self: Any) -> str:
    """The part of a tensor's repr about its gradient, if any."""
    if type(self._interpreter) is not Imperative:
        return ""
    node = graph.grad_fn(self)
    return "requires_grad=True" if node is None else f"grad_fn=<{node.name()}>"


def show_html(self: Any) -> str | None:
    """A tensor in a notebook: a table of at most two axes, shape, dtype and history; None for traced values."""
    if self._interpreter is not EVALUATE and type(self._interpreter) is not Imperative:
        return None
    array = _shown_array(self)
    if array is None:
        return None
    words = ["tensor", f"shape {array.shape}", str(array.dtype), _history(self)]
    title = escaped(" · ".join([word for word in words if word]))
    if 1 <= array.ndim <= 2 and array.size:
        return f"<div>{html_table(_cells(array.reshape(-1, array.shape[-1])))}<p>{title}</p></div>"
    return f"<div><pre>{escaped(np.array2string(array, threshold=200))}</pre><p>{title}</p></div>"


def _cells(array: Any) -> list[list[str]]:
    """The numbers of a matrix as NumPy prints them, without the middle of many rows or columns."""
    rows, columns = [
        [*range(length)] if length <= MOST_CELLS else [*range(MOST_CELLS // 2), *range(-(MOST_CELLS // 2), 0)]
        for length in array.shape
    ]
    shown = array[np.ix_(rows, columns)]
    text = np.array2string(shown.ravel(), separator="\n", threshold=sys.maxsize, max_line_width=sys.maxsize)
    numbers = [number.strip() for number in text[1:-1].split("\n")]
    cells = [numbers[i : i + len(columns)] for i in range(0, len(numbers), len(columns))]
    if len(columns) < array.shape[1]:
        for row in cells:
            row.insert(MOST_CELLS // 2, "…")
    if len(rows) < array.shape[0]:
        cells.insert(MOST_CELLS // 2, ["…"] * len(cells[0]))
    return cells


def version(self: Any) -> int:
    """The number of writes to the tensor in place."""
    state: TensorState | None = getattr(self, "_state", None)
    if state is not None and state.inference:
        raise InferenceTensorError("Inference tensors do not track version counter.")
    return inplace.version_of(self)


def is_inference(self: Any) -> bool:
    """Whether the tensor was created in inference mode."""
    state: TensorState | None = getattr(self, "_state", None)
    return state is not None and state.inference


def attributes() -> dict[str, Any]:
    """The attributes that the imperative interface adds to traced arrays."""
    return {
        "__copy__": shallow_copy,
        "__deepcopy__": deep_copy,
        "__hash__": identity_hash,
        "requires_grad": property(requires_grad, set_requires_grad),
        "requires_grad_": requires_grad_,
        "is_leaf": property(is_leaf),
        "grad": property(get_grad, set_grad, delete_grad),
        "grad_fn": property(graph.grad_fn),
        "output_nr": property(graph.output_number),
        "data": property(get_data, set_data),
        "backward": backwards.tensor_backward,
        "detach": detach,
        "detach_": detach_,
        "clone": clone,
        "numpy": to_numpy,
        "__dlpack__": dlpack,
        "__dlpack_device__": dlpack_device,
        "retain_grad": retain_grad,
        "retains_grad": property(retains_grad),
        "register_hook": graph.register_hook,
        "register_post_accumulate_grad_hook": graph.register_post_accumulate_grad_hook,
        "__reduce_ex__": reduce,
        "_version": property(version),
        "is_inference": is_inference,
        "_repr_html_": show_html,
    }
