"""`func.intercept()`: arrays from np.zeros, np.empty and similar functions that can hold traced values later.

NumPy's protocols do not reach creation functions. Inside the context they return `Intercepted`, a subclass of ndarray
that is a plain array until a traced value is written into it. From then on its owner holds a traced box, every view
of the memory reads and writes that box, and the raw memory is NaN, so that code past the protocols is loud.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from func.interpreters.core import CARRIERS, EVALUATE, Array, Tracer
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.source import at_line, is_engine_file
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.structural.indexing import gather
from func.numpy import creation, patching, shaping
from func.numpy.flat import Flat
from func.numpy.inplace import getitem, setitem

__all__ = [
    "intercept",
]

_WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal})
"""Functions that write their first argument."""


class Intercepted(np.ndarray):
    """An array whose memory may turn into a traced value."""

    box: Tracer | None = None

    def __getitem__(self, index: Any) -> Any:
        index = resolved(index)
        if not holds_traced(index):
            part = super().__getitem__(index)
            if _shares(part, self):
                return part
            if owner_of(self).box is None:
                return adopted(plain(part))
        value = present(self)
        return creation.asarray(value)[index] if type(value) is not Tracer else getitem(value, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        plain_index, plain_value = resolved(index), resolved(value)
        if owner_of(self).box is None and not holds_traced(plain_value) and not holds_traced(plain_index):
            super().__setitem__(plain_index, plain_value)
            return
        promote(self)
        change(self, lambda box: setitem(box, resolved(index), resolved(value)))

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at":
            return _written(self, inputs[0], lambda target, *rest: ufunc.at(target, *rest), inputs[1:], {})
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        outs = kwargs.pop("out", (None,))
        if len(outs) == 1 and outs[0] is not None:
            return _written(
                self, outs[0], lambda target, *rest, **options: call(*rest, out=target, **options), inputs, kwargs
            )
        if any([out is not None for out in outs]):
            raise UnsupportedFunctionError(f"np.{ufunc.__name__} into several arrays of func.intercept(){at_line()}")
        return adopted(call(*resolved(inputs), **resolved(kwargs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _WRITERS:
            return _written(
                self, args[0], lambda target, *rest, **options: function(target, *rest, **options), args[1:], kwargs
            )
        if kwargs.get("out") is not None:
            options = dict(kwargs)
            target = options.pop("out")
            return _written(self, target, lambda out, *rest, **more: function(*rest, out=out, **more), args, options)
        return adopted(function(*resolved(args), **resolved(kwargs)))

    @property
    def flat(self) -> Any:
        """The elements in C order, readable and writable."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[...] = value

    def __repr__(self) -> str:
        value = present(self)
        return repr(value) if type(value) is Tracer else super().__repr__()

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return np.array(plain(self)).__reduce__()


def owner_of(array: np.ndarray[Any, Any]) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _shares(part: Any, whole: Intercepted) -> bool:
    return isinstance(part, np.ndarray) and owner_of(part) is owner_of(whole)


def plain(value: Any) -> Any:
    """The raw memory as an ndarray."""
    return value.view(np.ndarray) if isinstance(value, Intercepted) else value


def present(array: Any) -> Array:
    """The current value of an array: its memory, or a part of its owner's traced box."""
    owner = owner_of(array)
    if getattr(owner, "box", None) is None:
        return plain(array)
    if array is owner:
        return owner.box
    places, first = _places(array, owner)
    flat = shaping.reshape(owner.box, (owner.size,))
    if first is not None:
        return shaping.reshape(getitem(flat, slice(first, first + array.size)), array.shape)
    return gather(flat, places, axis=0)


def _places(view: Any, owner: Any) -> tuple[Any, int | None]:
    """Where the elements of a view lie in its owner's memory, and the first place of a contiguous one."""
    if view.dtype != owner.dtype:
        raise UnsupportedFunctionError(
            f"an array of func.intercept() that holds traced values is viewed as {view.dtype}{at_line()}\n"
            "Use .astype, or np.real and np.imag, instead of a view of other dtype."
        )
    start = (view.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // owner.itemsize
    if view.flags.c_contiguous or view.size == 0:
        return None, start if view.size else 0
    places = np.full(view.shape, start)
    for axis, stride in enumerate(view.strides):
        shape = [-1 if i == axis else 1 for i in range(view.ndim)]
        places += (np.arange(view.shape[axis]) * (stride // owner.itemsize)).reshape(shape)
    return places, None


def promote(array: Intercepted) -> None:
    """From now on the owner of the memory holds a traced box. (Arguments are to be resolved after this.)"""
    owner = owner_of(array)
    if owner.box is None:
        owner.box = Tracer(EVALUATE, patching.original("array")(plain(owner)), None)
        if owner.dtype.kind in "fc":
            plain(owner)[...] = np.nan


def change(array: Intercepted, write: Callable[[Tracer], Any]) -> None:
    """Let `write` write to the traced value of a promoted array."""
    owner = owner_of(array)
    part = present(array)
    write(part)
    places = None if array is owner else _places(array, owner)[0]
    if places is not None:
        setitem(shaping.reshape(owner.box, (owner.size,)), places, part)


def resolved(value: Any) -> Any:
    """Arguments with intercepted arrays replaced by what they stand for, in lists, tuples and dicts too."""
    kind = type(value)
    if kind is Intercepted:
        return present(value)
    if kind is list or kind is tuple:
        return kind([resolved(item) for item in value])
    if kind is dict:
        return {key: resolved(item) for key, item in value.items()}
    return value


def holds_traced(value: Any) -> bool:
    """True for traced values and nested lists with one inside."""
    if type(value) in (list, tuple):
        return any([holds_traced(item) for item in value])
    return type(value) is Tracer


def adopted(value: Any) -> Any:
    """Results made of intercepted arrays can hold traced values in turn; views stay views."""
    if type(value) is np.ndarray and value.dtype.kind in "fciub":
        if type(owner_of(value)) is Intercepted:
            return value.view(Intercepted)
        out = np.ndarray.__new__(Intercepted, value.shape, value.dtype)
        np.copyto(plain(out), value)
        return out
    if type(value) in (list, tuple):
        return type(value)([adopted(item) for item in value])
    return value


def _written(self: Intercepted, target: Any, call: Callable[..., Any], args: Any, options: Any) -> Any:
    """A call that writes into an array, which becomes traced if anything traced takes part."""
    known, named = resolved(args), resolved(options)
    if type(target) is not Intercepted:
        return call(target, *known, **named)
    if owner_of(target).box is None and not holds_traced(list(known)) and not holds_traced(list(named.values())):
        out = call(plain(target), *known, **named)
        return target if out is not None else None
    promote(target)
    seen: list[Any] = []
    change(target, lambda box: seen.append(call(box, *resolved(args), **resolved(options))))
    return target if seen[0] is not None else None


_READING = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum "
    "diagonal dot flatten item max mean min nonzero prod repeat round searchsorted std sum take tolist trace var "
    "__bool__ __complex__ __contains__ __float__ __format__ __index__ __int__"
)
_WRITING = "fill partition put sort"
_VIEWING = "ravel reshape squeeze swapaxes transpose view"


def _reading(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        value, args, kwargs = present(self), resolved(args), resolved(kwargs)
        if type(value) is not Tracer and holds_traced(list(args)):
            return getattr(np, name)(value, *args, **kwargs)
        return adopted(getattr(value, name)(*args, **kwargs))

    return method


def _writing(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = resolved(args), resolved(kwargs)
        if owner_of(self).box is None and not holds_traced(list(args)):
            return getattr(plain(self), name)(*args, **kwargs)
        promote(self)
        return change(self, lambda box: getattr(box, name)(*args, **kwargs))

    return method


def _viewing(name: str) -> Callable[..., Any]:
    def method(self: Intercepted, *args: Any, **kwargs: Any) -> Any:
        out = getattr(np.ndarray, name)(self, *args, **kwargs)
        if _shares(out, self) or owner_of(self).box is None:
            return out
        return getattr(present(self), name)(*args, **kwargs)

    return method


for _names, _kind in ((_READING, _reading), (_WRITING, _writing), (_VIEWING, _viewing)):
    for _name in _names.split():
        setattr(Intercepted, _name, _kind(_name))
CARRIERS[Intercepted] = present


_CREATORS = (
    "arange", "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones", "ones_like",
    "zeros", "zeros_like",
)  # fmt: skip
_originals = {name: getattr(np, name) for name in _CREATORS}
_active: ContextVar[bool] = ContextVar("func_intercept", default=False)
_lock = threading.Lock()
_entered = 0


def _adopting(depth: int) -> bool:
    """Whether an array made `depth` frames up is to hold traced values: not what the engine makes for itself."""
    if not _active.get() or not patching.is_tracing():
        return False
    return not is_engine_file(sys._getframe(depth + 1).f_code.co_filename)


def _creator(name: str) -> Callable[..., Any]:
    original = _originals[name]

    def create(*args: Any, **kwargs: Any) -> Any:
        if name == "full" and holds_traced(list(args)):
            return creation.full(*args, **kwargs)
        array = original(*args, **kwargs)
        return adopted(array) if type(array) is np.ndarray and _adopting(1) else array

    create.__name__ = create.__qualname__ = name
    create.__doc__ = original.__doc__
    return create


_creators = {name: _creator(name) for name in _CREATORS}


def _adopt_result(array: Any, source: Any) -> Any:
    """np.array of something plain; np.asarray of an array is that array."""
    return adopted(array) if array is not source and type(array) is np.ndarray and _adopting(2) else array


WIRING.adopt_array = _adopt_result


@contextlib.contextmanager
def intercept() -> Iterator[None]:
    """Let arrays that NumPy's creation functions make inside a transform hold traced values.

    np.zeros, ones, empty, full, eye, identity, arange, linspace, their `_like` forms, np.copy and np.array of plain
    numbers return an ndarray that becomes a traced array when a traced value is written into it; its views follow.
    With it pure-Python code of other libraries differentiates unmodified, such as scipy.integrate.solve_ivp (RK45,
    RK23, DOP853) and scipy.optimize.newton. Compiled code that reads such an array past NumPy's protocols sees NaN.

    Works as a context manager and as a decorator, around a transform or inside the transformed function, for the
    thread or task that enters it.

    Example:
        >>> import numpy as np, func
        >>> def f(x):
        ...     a = np.zeros(3)
        ...     a[1] = x ** 2
        ...     return np.sum(a * np.arange(3.0))
        >>> with func.intercept():
        ...     print(float(func.grad(f)(3.0)))
        6.0
    """
    global _entered
    namespace: Any = vars(np)
    with _lock:
        _entered += 1
        if _entered == 1:
            namespace.update(_creators)
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)
        with _lock:
            _entered -= 1
            if _entered == 0:
                namespace.update(_originals)
