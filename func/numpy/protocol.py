"""NumPy's dispatch protocols on traced arrays, and the tables of traced versions of NumPy's functions.

No namespace is wrapped. `np.sin(x)` reaches `ufunc_protocol`, `np.mean(x)` reaches `function_protocol`; both look up
the NumPy function and call its traced version. A ufunc of one traced array calls apply1 of its interpreter directly:
`bind` would search the operands for the highest level, and with one operand it is known.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from func.interpreters.core import EVALUATE, Primitive, Tracer, operand
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.source import at_line
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.structural.shapes import where as select
from func.numpy.conversions import refuse_conversion

F = TypeVar("F", bound=Callable[..., Any])

DIRECT: dict[Any, Primitive] = {}
"""Ufuncs that are exactly one primitive for every dtype."""

UFUNCS: dict[Any, Callable[..., Any]] = {}
"""Ufuncs that need more than one primitive (complex absolute value, matmul, divmod ...)."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Ufunc methods (reduce, accumulate, outer, at, reduceat), called with the ufunc first."""

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""Functions that NumPy dispatches by __array_function__."""

CREATION: dict[Any, Callable[..., Any]] = {}
"""Functions that NumPy dispatches by the keyword like=."""


def _registrar(table: dict[Any, Callable[..., Any]]) -> Callable[..., Callable[[F], F]]:
    def implements(*keys: Any) -> Callable[[F], F]:
        def register(function: F) -> F:
            table.update(dict.fromkeys(keys, function))
            return function

        return register

    return implements


implements = _registrar(FUNCTIONS)
"""`@implements(np.mean)` registers a function as the traced version of NumPy functions."""

implements_creation = _registrar(CREATION)
"""The same for functions that NumPy dispatches by `like=`, which it consumes; the traced array is passed as `like`."""

implements_ufunc = _registrar(UFUNCS)
"""The same for ufuncs."""


_ABSENT = object()


def ufunc_protocol(self: Tracer, ufunc: Any, method: str, x: Any, y: Any = _ABSENT, *more: Any, **kwargs: Any) -> Any:
    """Tracer.__array_ufunc__. The inputs are spelled out because collecting them costs as much as the dispatch."""
    if method == "__call__" and not kwargs and not more:
        primitive = DIRECT.get(ufunc)
        if primitive is not None:
            if y is _ABSENT:
                return x._interpreter.apply1(primitive, x)
            return primitive(x if type(x) is Tracer else operand(x), y if type(y) is Tracer else operand(y))
        function = UFUNCS.get(ufunc)
        if function is not None:
            return function(x) if y is _ABSENT else function(x, y)
    inputs = (x, *more) if y is _ABSENT else (x, y, *more)
    if method == "__call__":
        return call_ufunc(ufunc, DIRECT.get(ufunc), inputs, kwargs)
    handler = METHODS.get(method)
    if handler is None:
        raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} has no traced version{at_line()}")
    return handler(ufunc, *inputs, **kwargs)


def rule_of(ufunc: Any) -> Callable[..., Any] | None:
    """The traced version of a ufunc. The first one of scipy.special imports func.special, which registers them."""
    function = DIRECT.get(ufunc) or UFUNCS.get(ufunc)
    if function is None and "scipy.special" in sys.modules and "func.special" not in sys.modules:
        importlib.import_module("func.special")
        return DIRECT.get(ufunc) or UFUNCS.get(ufunc)
    return function


def call_ufunc(ufunc: Any, primitive: Primitive | None, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc call with keywords (`out`, `where`, `dtype`) or without a primitive."""
    function: Callable[..., Any] | None = primitive if primitive is not None else rule_of(ufunc)
    if function is None:
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__} has no traced version{at_line()}\n"
            "Write it with NumPy functions that have one, or give it a derivative with func.custom_jvp."
        )
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "same_kind")
    if "order" in kwargs:
        WIRING.check_order(kwargs.pop("order"), f"np.{ufunc.__name__}")
    extra = {key: value for key, value in kwargs.items() if key != "subok"}
    args = [x if type(x) is Tracer else operand(x) for x in inputs]
    if dtype is not None:
        args = [WIRING.cast_operand(x, dtype, casting) for x in args]
    result = function(*args, **extra)
    if out is None and where is True:
        return result
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    if where is not True:
        if out is None:
            raise UnsupportedFunctionError(
                f"np.{ufunc.__name__}(where=...) on a traced array needs out=, as elements are undefined without"
                f"{at_line()}"
            )
        results = tuple([select(operand(where), r, t) for r, t in zip(results, targets, strict=True)])
    written = tuple([r if t is None else WIRING.write_into(t, r) for r, t in zip(results, targets, strict=True)])
    return written if isinstance(result, tuple) else written[0]


def function_protocol(self: Tracer, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Tracer.__array_function__."""
    traced = FUNCTIONS.get(function)
    if traced is None:
        if function in CREATION:
            return CREATION[function](*args, **kwargs, like=self)
        plain = _without_boxes((args, kwargs))
        if plain is not None:
            return _boxed(function(*plain[0], **plain[1]))
        module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
        raise UnsupportedFunctionError(
            f"{module}.{function.__name__} has no traced version{at_line()}\n"
            "Write it with NumPy functions that have one, or give it a derivative with func.custom_jvp. Of a tensor's "
            "numbers alone it can be called as they are in x.detach()."
        )
    return traced(*args, **kwargs)


def _without_boxes(value: Any) -> Any:
    """Arguments with the arrays in boxes of level 0; None where a value is traced, or is to be written."""
    kind = type(value)
    if kind is Tracer:
        return value._value if value._interpreter is EVALUATE else None
    if kind in (list, tuple):
        items = [_without_boxes(item) for item in value]
        return (
            None
            if any([new is None and old is not None for new, old in zip(items, value, strict=True)])
            else kind(items)
        )
    if kind is dict:
        values = _without_boxes(list(value.values()))
        is_written = type(value.get("out")) is Tracer
        return None if values is None or is_written else dict(zip(value, values, strict=True))
    return value


def _boxed(out: Any) -> Any:
    """The arrays in a result of NumPy's as boxes of level 0, as the arguments were."""
    if isinstance(out, (list, tuple)):
        return type(out)([_boxed(item) for item in out]) if type(out) in (list, tuple) else out
    return WIRING.mark_tensor(out) if type(out) is np.ndarray else out


def no_array(self: Tracer, *args: Any, **kwargs: Any) -> Any:
    """Tracer.__array__: raises, as the derivative would be lost, unless the value is a constant."""
    if self._interpreter is EVALUATE and isinstance(self._value, (np.ndarray, np.generic)):
        return np.array(self._value, *args)
    return refuse_conversion(self)
