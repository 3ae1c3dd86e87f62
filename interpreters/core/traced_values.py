"""Values at any number of levels: the array behind one, operands from arguments, tracers of level 0, power series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from func.backends import HOST_TYPES, is_device_array, namespace_of, namespace_of_type
from func.interpreters.core.containers import as_plain_array, raise_unsupported_array
from func.interpreters.core.errors import CustomRuleError
from func.interpreters.core.modes import MODE, WATCHED
from func.interpreters.core.primitive import Primitive, evaluate
from func.interpreters.core.types import Array, ClosedInterpreter, Interpreter, Params, Tracer, new_tracer, shape_of
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import at_line


def is_readable(value: Any) -> bool:
    """Whether every level of a value lets code read its numbers."""
    while type(value) is Tracer:
        if not value._interpreter.is_readable:
            return False
        value = value._value
    return value is not None


def innermost(value: Array) -> Any:
    """The array at the bottom of a stack of tracers, whose type tells the backend; `known_value` tells its numbers.

    For an abstract value it is the example of its stage: an empty array of the device, or None.
    """
    while type(value) is Tracer:
        inner = value._value
        value = value._interpreter.example if inner is None else inner
    return value


def known_value(value: Array) -> Any:
    """The plain array at the bottom of a stack of tracers, batch axes included; None for an abstract value."""
    while type(value) is Tracer:
        value = value._value
    return value


def example_of(value: Array) -> Any:
    """An empty array of the device of a value, for stages; None on the host.

    A stage never knows numbers: code that reads them would use them in later calls.
    """
    bottom = innermost(value)
    return namespace_of((bottom,)).empty(0) if is_device_array(bottom) else None


def operand(value: Any) -> Array:
    """Turn an argument into an operand of primitives: lists and containers become arrays. Raises for other objects."""
    kind = type(value)
    if kind is Tracer:
        return value
    if kind is ndarray or kind in HOST_TYPES:
        dtype = getattr(value, "dtype", None)
        if dtype is not None and dtype.kind in "OSUVMmT" and dtype.name != "bfloat16":
            return WIRING.array_of_objects(value) if dtype.kind == "O" else raise_unsupported_array(value)
        return value
    if isinstance(value, (list, tuple)):
        return WIRING.array_from_sequence(value)
    if namespace_of_type(kind) is not None:
        return value
    if kind in CARRIERS:
        return CARRIERS[kind](value)
    return operand(as_plain_array(value))


CARRIERS: dict[type, Callable[[Any], Array]] = {}
"""Further classes whose objects represent an array, with the function that returns the array."""


def class_behind(tracer: Tracer) -> type:
    """The class that the value would have without the transform: ndarray, a device's array class, or a scalar's class.

    Batch elements and variables have the class that NumPy's functions return: for shape () that is a scalar's.
    A device has no scalars, and its library takes an ndarray for an array on the host.
    """
    bottom = innermost(tracer)
    interpreter = tracer._interpreter
    if isinstance(interpreter, ClosedInterpreter):
        return ndarray
    shape = interpreter.shape(tracer)
    if bottom is not None and tracer._value is not None and shape_of(bottom) == shape:
        return type(bottom)
    array_class = type(bottom) if is_device_array(bottom) else ndarray
    if shape:
        return array_class
    aval = interpreter.aval(tracer)
    if aval.weak and aval.dtype.kind in _WEAK_CLASSES:
        return _WEAK_CLASSES[aval.dtype.kind]
    return aval.dtype.type if array_class is ndarray else array_class


_WEAK_CLASSES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


class Series:
    """The coefficients of a power series, ZERO or an array each: all of them, unless `extend(k)` computes others."""

    __slots__ = ("coefficients", "extend")

    def __init__(self, coefficients: list[Any], extend: Callable[[int], Any] | None = None) -> None:
        self.coefficients = coefficients
        self.extend = extend

    def __getitem__(self, k: int) -> Any:
        coefficients = self.coefficients
        while len(coefficients) <= k:
            assert self.extend is not None
            coefficients.append(self.extend(len(coefficients)))
        return coefficients[k]


def derivatives_in(attached: Any) -> list[Any]:
    """The derivatives that a level of differentiation attaches: a tangent, or the coefficients of a series."""
    return attached.coefficients[1:] if type(attached) is Series else [attached]


class Evaluate(Interpreter):
    """Level 0: tracers of concrete arrays. `np.zeros_like(x)` in traced code makes one, so that later code can write
    traced values into it.
    """

    is_readable = True

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        out = primitive(x._value if type(x) is Tracer else x, y._value if type(y) is Tracer else y)
        return self._as_tracers(primitive, out)

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        values = tuple([arg._value if type(arg) is Tracer else arg for arg in args])
        return self._as_tracers(primitive, evaluate(primitive, values, params))

    def _as_tracers(self, primitive: Primitive, out: Any) -> Any:
        """Put the outputs into tracers, which inference mode marks."""
        if WATCHED.inference and MODE.get() is not None:
            return (
                tuple([WIRING.mark_tensor(value) for value in out]) if primitive.multiple else WIRING.mark_tensor(out)
            )
        if primitive.multiple:
            return tuple([new_tracer(self, value, None) for value in out])
        return new_tracer(self, out, None)


EVALUATE = Evaluate("evaluate")
EVALUATE.level = 0


def unboxed(value: Array) -> Array:
    """The array behind a tracer of level 0, for interpreters above; any other value itself."""
    return value._value if type(value) is Tracer and value._interpreter is EVALUATE else value


def raise_if_captured(interpreter: Interpreter, outs: Sequence[Array]) -> None:
    """Raise where an output of a called function is traced by the level that called it: a captured traced value."""
    for out in outs:
        if type(out) is Tracer and out._interpreter.level >= interpreter.level:
            raise CustomRuleError(
                f"a function with a custom rule or checkpoint uses a traced value that it was not given{at_line()}\n"
                "Its derivative would be lost: pass the value as an argument."
            )
