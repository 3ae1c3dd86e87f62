"""Conversions of traced values to Python and NumPy values: float(), int(), bool(), .item(), __array__.

A conversion raises if a derivative of some transform or tensor would be lost: this depends on the value alone. The
running code affects only the error text.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from func.host.bytecode import operation
from func.host.patching import TracedElementSignal, is_converting
from func.interpreters.core import EVALUATE, Tracer, concrete, is_readable, known_value
from func.interpreters.core.errors import FuncError, StagingError, TracerConversionError, UnsupportedFunctionError
from func.interpreters.core.modes import is_suspended
from func.interpreters.core.scopes import current_transform
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import Grad
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import (
    at_line,
    called_object,
    innermost_frame,
    library_calls,
    numpy_caller,
    user_frame,
)
from func.interpreters.host.swallowed_errors import (
    asks_inside,
    hide_outside,
    instruction,
    is_formatting,
    is_indexing,
    is_slicing,
    is_writing,
    noted,
)
from func.interpreters.imperative.interpreter import Imperative
from func.numpy.argument_checks import to_host
from func.numpy.inplace import getitem

INDEX_HINT = "To index a plain array a by a traced i write func.numpy.take(a, i, axis=0) or func.tensor(a)[i]."
_ARRAY_HINT = (
    "Use NumPy's functions on it (np.sin, not math.sin). For its numbers alone write func.stop_gradient(x) first."
)
_TENSOR_HINT = (
    "Write x.detach().numpy() for its numbers, to plot them for instance, or x.item() for one; NumPy's functions take "
    "the tensor itself."
)
_MEMORY_HINT = (
    "Use NumPy functions on it, which make new arrays; for windows and strides sliding_window_view, np.broadcast_to, "
    "np.diagonal or slices."
)
_DATA_HINT = (
    "To compute with the numbers and without their derivative write func.stop_gradient(x), or x.detach(); `.data` of a "
    "tensor is such an alias."
)
_RESIZE_HINT = (
    "Make a new array: np.resize(x, shape) repeats the elements, np.pad(x, (0, n)) appends zeros, x[:n] drops some."
)
_NUMBER_HINT = (
    "Keep it an array: NumPy functions and operators take 0-d arrays (np.sin, not math.sin). To read the number "
    "on purpose write x.item() of a tensor, and float(func.stop_gradient(x)) inside a transform."
)
_OBJECTS_TEXT = (
    "NumPy made an array of Python objects of a list with a traced value, and its loops over objects compute "
    "something else than those over numbers, or nothing{line}\n"
    "Write np.array([...]) around the list; in place of np.nditer, loop over indices (np.ndindex(x.shape)); in place "
    "of np.broadcast, np.broadcast_arrays or np.broadcast_shapes(x.shape, y.shape)."
)
_NUMBER_NAMES = ["float", "int", "bool", "complex", *[f"numpy.{t.__name__}" for t in np.sctypeDict.values()]]
_WORDS_OF_OBJECTS = (
    "dtype('O')",
    "not supported for the input types",
    "loop of ufunc does not support argument",
    "doesn't define __",
    "unorderable types for comparison",
    "No loop matching the specified signature and casting",
    "division by zero",
    "float modulo",
    "cannot be raised to a negative power",
    "Numerical result out of range",
    *[f"'{name}' object has no attribute '" for name in dict.fromkeys(_NUMBER_NAMES)],
)
"""NumPy's messages about arrays of objects, which it makes of lists with traced values."""


def carries_derivative(tracer: Tracer, with_tensors: bool = False) -> bool:
    """True if reading the value would lose the derivative of some running transform, or of a tensor.

    With gradients off (`func.no_grad`) there is no record to lose.
    """
    value: Any = tracer
    while type(value) is Tracer:
        interpreter = value._interpreter
        if interpreter.differentiates:
            is_off = isinstance(interpreter, Grad) and is_suspended(interpreter.level)
            if not is_off and (with_tensors or type(interpreter) is not Imperative):
                return True
        value = value._value
    return False


def _hint(otherwise: str, of_index: str = INDEX_HINT) -> str:
    """The suggestion at the end of an error."""
    from func.host.suggestions import suggestion  # start-up time: for errors alone

    return suggestion(otherwise, of_index)


def _raise_at_line(error: FuncError) -> NoReturn:
    raise noted(error, current_transform())


def raise_conversion(tracer: Tracer) -> NoReturn:
    """Raise because a traced array would become a plain NumPy array."""
    is_tensor = type(tracer._interpreter) is Imperative
    _raise_if_writing(_TENSOR_HINT if is_tensor else _ARRAY_HINT)
    what, lost = ("tensor", "derivative") if is_tensor else ("traced value", "derivative or its batch axis")
    _raise_at_line(
        TracerConversionError(
            f"a {what} of shape {tracer.shape} and dtype {tracer.dtype} was converted to a plain NumPy array, "
            f"which would lose its {lost}{at_line()}\n{_hint(_TENSOR_HINT if is_tensor else _ARRAY_HINT)}"
        )
    )


class NoAttributeError(UnsupportedFunctionError, AttributeError):
    """An attribute of ndarray that traced arrays lack; an AttributeError, so that `hasattr` and `getattr` work."""


class MissingAttribute:
    """An attribute that traced arrays lack: its error suggests another.

    The class has one for each known name. A `__getattr__` for all of them would slow down every attribute lookup, even
    of the engine's slots.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tracer: Tracer | None, owner: type | None = None) -> Any:
        if tracer is None:
            raise AttributeError(f"tensors have no attribute {self.name!r}{_instead_of(self.name)}")
        try:
            return no_attribute(self.name, tracer, sys._getframe(1))
        except Exception as error:
            hide_outside(error)
            raise

    def __set__(self, tracer: Tracer, value: Any) -> None:
        try:
            no_attribute(self.name, tracer, sys._getframe(1))
        except Exception as error:
            hide_outside(error)
            raise


def no_attribute(name: str, tracer: Tracer, caller: types.FrameType) -> Any:
    """Raise because a traced array has no such attribute."""
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc) and instruction(caller)[0] not in ("LOAD_ATTR", "LOAD_METHOD"):
        return functools.partial(ufunc, tracer)  # `x.exp()`, from the loop of a ufunc over objects
    if not hasattr(np.ndarray, name) or is_converting(caller):
        raise AttributeError(f"traced arrays and tensors have no attribute {name!r}{_instead_of(name)}")
    hint = _hint({"data": _DATA_HINT, "resize": _RESIZE_HINT}.get(name, _MEMORY_HINT))
    raise NoAttributeError(f"`.{name}` is about the memory of an array, and a traced one has none{at_line()}\n{hint}")


_INSTEAD = {
    "at": "np.add.at and the like for plain arrays",
    "backward": "func.grad",
    "bmm": "x @ y",
    "cat": "np.concatenate([x, y])",
    "chunk": "np.array_split(x, n)",
    "clamp": "np.clip(x, low, high)",
    "contiguous": "np.ascontiguousarray(x)",
    "cpu": "nothing: an array lives where its data are",
    "cuda": "nothing: an array lives where its data are; cupy.asarray moves it",
    "dim": "x.ndim",
    "double": "x.astype(np.float64)",
    "expand": "np.broadcast_to(x, shape)",
    "eq": "x == y",
    "float": "x.astype(np.float32)",
    "ge": "x >= y",
    "gt": "x > y",
    "gather": "np.take_along_axis(x, indices, axis)",
    "half": "x.astype(np.float16)",
    "index_select": "np.take(x, indices, axis)",
    "inverse": "np.linalg.inv(x)",
    "le": "x <= y",
    "log_softmax": "func.special.log_softmax(x)",
    "logsumexp": "func.special.logsumexp(x)",
    "long": "x.astype(np.int64)",
    "lt": "x < y",
    "masked_fill": "np.where(mask, value, x)",
    "masked_select": "x[mask]",
    "matmul": "x @ y",
    "mm": "x @ y",
    "mul": "x * y",
    "mv": "x @ y",
    "narrow": "x[start : start + length]",
    "ne": "x != y",
    "neg": "-x",
    "norm": "np.linalg.norm(x)",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "pow": "x**y",
    "relu": "np.maximum(x, 0)",
    "scatter_add": "func.numpy.at(x)[indices].add(values)",
    "sigmoid": "func.special.expit(x)",
    "sub": "x - y",
    "softmax": "func.special.softmax(x)",
    "t": "x.T",
    "to": "x.astype(dtype); an array lives where its data are",
    "topk": "np.sort(x)[..., -k:]",
    "to_numpy": "x itself: pandas and xarray objects are passed as arrays",
    "type": "x.astype(dtype)",
    "unbind": "list(x)",
    "unfold": "np.lib.stride_tricks.sliding_window_view(x, size)",
    "values": "x itself: pandas and xarray objects are passed as arrays",
    "unsqueeze": "np.expand_dims(x, axis)",
    "zero_": "x.fill(0)",
}
"""Suggestions for methods that tensors of other libraries have."""


_IN_PLACE = "abs add addcdiv addcmul ceil clamp clip copy cos cumsum div exp floor index_add index_copy lerp log "
_IN_PLACE += "masked_fill mul neg negative normal pow reciprocal relu round rsqrt scatter scatter_add sigmoid sign sin "
_IN_PLACE += "sqrt sub subtract tanh true_divide trunc uniform zero"
"""Methods of PyTorch that write in place, without the underscore at the end of their names."""


def missing_attributes() -> dict[str, MissingAttribute]:
    """The attributes that traced arrays lack, of those that a user of NumPy or PyTorch may look for."""
    of_arrays = [name for name in dir(np.ndarray) if not name.startswith("__")]
    functions = [name for name, value in vars(np).items() if name[0] != "_" and callable(value)]
    in_place = [f"{name}_" for name in _IN_PLACE.split()]
    names = ["__array_interface__", *of_arrays, *functions, *_INSTEAD, *in_place]
    return {name: MissingAttribute(name) for name in names if name not in vars(Tracer)}


def _instead_of(name: str) -> str:
    """The end of a message about a missing attribute."""
    if name in _INSTEAD:
        return f"; write {_INSTEAD[name]}"
    function = getattr(np, name, None)
    if callable(function):
        return f"; write np.{name}(x, y)" if getattr(function, "nin", 1) == 2 else f"; write np.{name}(x)"
    is_of_pytorch = name.endswith("_") and not name.endswith("__")
    return "; write x += y or x[...] = y" if is_of_pytorch else "; they have those of NumPy's arrays"


_INSTEAD_OF_VALUES = {
    "bool": "Instead of `if x > 0:` write np.where(x > 0, a, b) or func.cond; instead of a value-dependent loop "
    "func.while_loop; pass numbers that decide shapes as static arguments, func.jit(..., static_argnums=...).",
    "int": "Keep it an array (x.astype(int)); pass numbers that decide shapes or loops as static arguments, "
    "func.jit(..., static_argnums=...).",
    "index": "Pass numbers that decide shapes, axes or loops as static arguments, func.jit(..., static_argnums=...); "
    "to index a plain array a by a traced i write func.numpy.take(a, i, axis=0) or func.tensor(a)[i].",
    "float": "Keep it an array: NumPy functions and operators take 0-d arrays (np.sin, not math.sin). To print values "
    "of every call write func.debug.print.",
}
"""Suggestions for requests of an abstract array's value, by Python's protocol."""
_STATIC = "{what}: pass such numbers as static arguments, func.jit(..., static_argnums=...)."


def _check_single(tracer: Tracer) -> None:
    if tracer.shape != () and int(np.prod(tracer.shape)) != 1:
        raise TypeError(f"only arrays with one element convert to a Python number, not shape {tracer.shape}")


def _scalar(tracer: Tracer, what: str) -> Any:
    _check_single(tracer)
    return to_host(_known(tracer, what)).reshape(())[()]


def _known(tracer: Tracer, what: str) -> Any:
    """The plain array behind a tracer; if there is none, the error suggests what to write."""
    try:
        return concrete(tracer)
    except StagingError as error:
        if what == "bool" and (passing := _passing_answer()) is not None:
            return np.asarray(passing)
        if tracer.dtype.kind in "iufc" and what in _ASKED:
            with contextlib.suppress(StagingError):
                if (asked := _ASKED[what](tracer)) is not None:
                    return asked
        argument = error.argument
        words = f"{str(error).rpartition(chr(10))[0]}\n{WIRING.traced_hint(_instead_of_value(what), argument)}"
    staging_error = StagingError(words)
    staging_error.argument = argument
    _raise_at_line(staging_error)


def _asked_truth(tracer: Tracer) -> Any:
    """Whether a number is not zero: a question that a trace may answer."""
    number: Any = tracer
    return concrete(number != 0)


def _asked_integer(tracer: Tracer) -> Any:
    """int(x) as a question that a trace may answer; None for the number of an integer, and beyond 64 bits."""
    if tracer.dtype.kind != "f":
        return None
    number: Any = tracer
    size = abs(number)
    if not concrete(size < 2.0**63) and not concrete(size < np.inf):
        int(np.nan if concrete(size != size) else np.inf)  # raises
    return concrete(number.astype(np.int64)) if concrete(size < 2.0**63) else None


_ASKED: dict[str, Callable[[Tracer], Any]] = {"bool": _asked_truth, "int": _asked_integer}


def _passing_answer() -> bool | None:
    from func.host.value_checks import passing_answer  # few programs need it

    return passing_answer()


def _instead_of_value(what: str) -> str:
    """Suggestions for requests of an abstract array's value, outside of libraries."""
    frame = user_frame()
    called = called_object(frame)
    name = str(getattr(called, "__name__", ""))
    if name and vars(np).get(name) is called and what == "bool":
        return _STATIC.format(what=f"np.{name} needs known numbers")
    from func.host.suggestions import suggestion_for_call  # start-up time: for errors alone

    if instead := suggestion_for_call(called):
        return instead
    if what == "index" and is_slicing(frame):
        return f"{_STATIC.format(what='x[:n] needs a known n')} {INDEX_HINT}"
    instead = INDEX_HINT if what == "index" and is_indexing(frame) else _INSTEAD_OF_VALUES[what]
    if what == "bool" and asks_inside(frame):
        instead += " Where NumPy compares the elements of a list, write np.array([...]) around the list."
    return instead


def to_bool(tracer: Tracer) -> bool:
    """`if x:`; the value is piecewise constant, so reading it loses no derivative."""
    if tracer.shape != () and int(np.prod(tracer.shape)) != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use np.any(x) or np.all(x)"
        )
    return bool(_scalar(tracer, "bool"))


@without_engine_frames
def to_int(tracer: Tracer) -> int:
    """int(x); the value is piecewise constant, so reading it loses no derivative."""
    return int(_scalar(tracer, "int"))


@without_engine_frames
def to_index(tracer: Tracer) -> int:
    """operator.index(x) of an integer scalar."""
    if tracer.dtype.kind not in "iu" or tracer.shape != ():
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(_scalar(tracer, "index"))


def _raise_if_writing(otherwise: str) -> None:
    """Raise the specific error where the user's code, or a library's, writes into a plain array."""
    if is_writing(innermost_frame()):
        text = f"this line writes a traced value into a plain array{at_line()}\n{_hint(otherwise)}"
        _raise_at_line(TracerConversionError(text))


def _raise_number(tracer: Tracer, call: str) -> NoReturn:
    if not call.startswith("."):
        _check_single(tracer)
    _raise_if_writing(_NUMBER_HINT)
    _raise_at_line(
        TracerConversionError(
            f"{call} of a traced value would silently lose its derivative{at_line()}\n{_hint(_NUMBER_HINT)}"
        )
    )


def to_float(tracer: Tracer) -> float:
    """float(x); raises if a derivative would be lost; a text (`"%.3f" % x`) carries none anyway."""
    try:
        if tracer.dtype.kind in "fc" and carries_derivative(tracer, True):
            if not is_formatting(sys._getframe(1)):
                _raise_number(tracer, "float()")
            return float(to_host(printed(tracer, "float")).reshape(())[()])
        return float(_scalar(tracer, "float"))
    except Exception as error:
        hide_outside(error)
        raise


def printed(tracer: Tracer, what: str) -> Any:
    """The plain array behind a value to print."""
    return _known(tracer, what)


@without_engine_frames
def to_complex(tracer: Tracer) -> complex:
    """complex(x); raises if a derivative would be lost."""
    if tracer.dtype.kind in "fc" and carries_derivative(tracer, True):
        _raise_number(tracer, "complex()")
    return complex(_scalar(tracer, "float"))


def item(tracer: Tracer, *args: int) -> Any:
    """x.item(); raises if a transform would lose a derivative. For a tensor it is the way to read the number."""
    element: Any = tracer
    if args:
        element = getitem(tracer.reshape(-1), args[0]) if len(args) == 1 else getitem(tracer, args)  # type: ignore[attr-defined]
        if type(element) is not Tracer:
            return element.item()
    if math.prod(element.shape) != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    if element.dtype.kind in "fc" and carries_derivative(element):
        _raise_number(element, ".item()")
    return _scalar(element, "float").item()


def tolist(tracer: Tracer) -> Any:
    """x.tolist(); raises if a transform would lose a derivative."""
    if tracer.dtype.kind in "fc" and carries_derivative(tracer):
        _raise_number(tracer, ".tolist()")
    return to_host(_known(tracer, "float")).tolist()


def no_array(tracer: Tracer, dtype: Any = None, copy: bool | None = None) -> Any:
    """Tracer.__array__: raises unless the value is a constant, as the derivative would be lost.

    For a ufunc, or an operator of a plain array, NumPy converts the elements of a list one by one. A number then stays
    an element of an array of Python objects, whose loops compute with it. `operand` makes a traced array of such an
    array.
    """
    if is_converting(sys._getframe(1)):
        raise TracedElementSignal
    try:
        if tracer._interpreter is EVALUATE and isinstance(tracer._value, (np.ndarray, np.generic)):
            return np.array(tracer._value, dtype, copy=copy)
        if (dtype is None or np.dtype(dtype).kind == "O") and may_be_element(tracer):
            conversion_error = TracerConversionError(_OBJECTS_TEXT.format(line=at_line()))
            called = _operation()
            if called is None and library_calls(2):
                return raise_conversion(tracer)
            if called is None or not _computes_as_numpy(called, tracer.dtype):
                _raise_at_line(conversion_error)
            if tracer.shape == () or isinstance(called, np.ufunc):
                noted(conversion_error, current_transform(), _WORDS_OF_OBJECTS)
                elements: Any = np.empty(tracer.shape, object)
                for place in np.ndindex(tracer.shape):
                    elements[place] = getitem(tracer, place) if place else tracer
                return elements
        if is_readable(tracer) and isinstance(known_value(tracer), (np.ndarray, np.generic)):
            return np.array(concrete(tracer), dtype)
        return raise_conversion(tracer)
    except Exception as error:
        hide_outside(error)
        raise


_OTHER_OBJECTS: set[Callable[..., Any]] = {
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.logical_not,
    np.floor,
    np.ceil,
    np.trunc,
    np.sign,
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.clip,
}
"""Functions whose loops over objects give Python's truth values and integers, or know no NaN and no ties."""
_ARITHMETIC: set[np.ufunc] = {np.add, np.subtract, np.multiply, np.divide}
_ARITHMETIC |= {np.matmul, np.bitwise_and, np.bitwise_or, np.bitwise_xor}
_ARITHMETIC |= {np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal}
_OF_PYTHON: set[np.ufunc] = {np.negative, np.positive, np.square, np.absolute, np.conjugate, np.reciprocal}
"""Ufuncs of two arguments, and of one, whose loops over objects keep integers as they are."""
_UFUNCS_OF_PYTHON: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.pow: np.power,
    operator.matmul: np.matmul,
    operator.and_: np.bitwise_and,
    operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor,
    operator.lshift: np.left_shift,
    operator.rshift: np.right_shift,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
    divmod: np.divmod,
    pow: np.power,
    abs: np.absolute,
    np.dot: np.matmul,
}
"""The ufuncs by which plain arrays compute Python's operators; their method `dot` sums products as `@` does."""
_METHODS = ("reduce", "accumulate", "reduceat", "outer")


def _computes_as_numpy(called: Callable[..., Any], dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy function's loop over objects returns the same as its loop over numbers of a dtype.

    In a computation with a narrow number, Python numbers in another operand, or in the list, would adapt to its dtype.
    """
    if not isinstance(called, np.ufunc):
        return called not in _OTHER_OBJECTS
    if dtype.kind != "f":
        return called in _ARITHMETIC | _OF_PYTHON - {np.reciprocal} and dtype == np.int64
    return called not in _OTHER_OBJECTS and (dtype == np.float64 or (called.nin == 1 and called not in _OF_PYTHON))


def _operation() -> Any:
    """The NumPy function, a ufunc or another, that Python code calls, as far as its instructions tell."""
    frame = numpy_caller(3)
    called = None if frame is None else operation(frame, np, _METHODS)
    called = _UFUNCS_OF_PYTHON.get(called, called) if called.__hash__ is not None else None
    if isinstance(called, np.ufunc):
        return called
    is_function = isinstance(called, (types.FunctionType, types.BuiltinFunctionType, type(np.where)))
    return called if is_function and hasattr(np, getattr(called, "__name__", "")) else None


def pandas_priority(tracer: Tracer) -> int:
    """Tracer.__pandas_priority__: pandas leaves operations to the traced value; writing ones raise."""
    caller = sys._getframe(1).f_back
    if caller is not None and caller.f_code.co_name == "_inplace_method":
        _raise_at_line(
            TracerConversionError(
                "a pandas object cannot store traced values, and an operator such as += would write them into it"
                f"{at_line()}\nWrite x + series, whose result is traced, or series += x.numpy() for a tensor without "
                "a gradient."
            )
        )
    return 5000


def jax_array(tracer: Tracer) -> Any:
    """Tracer.__jax_array__: JAX's operators leave the operation to the traced array, its functions raise."""
    if sys._getframe(1).f_code.co_filename.endswith("array_methods.py"):
        return NotImplemented
    try:
        return raise_conversion(tracer)
    except Exception as error:
        hide_outside(error)
        raise


def may_be_element(tracer: Tracer) -> bool:
    """Whether a conversion may be that of a list's element, by NumPy.

    Objects have no real and imaginary part in NumPy, so complex numbers raise.
    """
    frame = numpy_caller(3)
    return tracer.dtype.kind in "fiub" and not is_writing(frame) and not is_indexing(frame)
