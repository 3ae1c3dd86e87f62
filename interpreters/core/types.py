"""The types that everything else is written in: abstract values, tracers, and the interpreters that own tracers.

`Aval` is what is known of an array without its data; `ZERO` is the zero that is never stored. A `Tracer` stands in for
an array; its `Interpreter` says what applying a primitive means. `operand` turns an argument into what primitives take.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES, is_device_array, namespace_of, namespace_of_type
from func.backends.defensive_copies import LARGE, kept_copy
from func.interpreters.core.containers import as_plain_array, refuse_array
from func.interpreters.core.errors import LeakedTracerError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import Line, user_line

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from func.interpreters.core.primitive import Primitive

Array: TypeAlias = Any
"""Whatever a primitive takes: an array of some backend, a Python or NumPy scalar, or a Tracer."""
Params: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[int, ...]

PYTHON_SCALARS = frozenset({bool, int, float, complex})
REAL_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
"""Those in which most of differentiable code computes."""
_DTYPES = frozenset({type(np.dtype(code)) for code in np.typecodes["All"]})


class Zero:
    """The symbolic zero: a tangent or cotangent that is known to vanish and is never stored."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Shaped:
    """Anything with a shape and a dtype that is not the array itself: an Aval, a graph node, a variable."""

    __slots__ = ("dtype", "shape")
    shape: Shape
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for length in self.shape:
            total *= length
        return total


class Aval(Shaped):
    """Abstract value: shape, dtype, and whether the dtype is weak (it came from a Python scalar)."""

    __slots__ = ("is_real_array", "weak")
    fingerprint_fields = ("shape", "dtype", "weak")

    def __init__(self, shape: Shape, dtype: Any, weak: bool = False) -> None:
        if type(dtype) not in _DTYPES:
            dtype = np.dtype(dtype)
        self.shape = shape
        self.dtype = dtype
        self.weak = weak
        self.is_real_array = shape != () and dtype in REAL_DTYPES

    def __repr__(self) -> str:
        return f"{short_dtype(self.dtype)}[{','.join(map(str, self.shape))}]{'~' if self.weak else ''}"

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aval) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Aval, (self.shape, self.dtype, self.weak)


_AVALS: dict[tuple[Shape, Any], Aval] = {}
_MOST_AVALS = 1 << 14


def array_aval(shape: Shape, dtype: np.dtype[Any]) -> Aval:
    """The aval of an array. Equal ones are one object as a rule, so that `is` compares; it is not certain."""
    aval = _AVALS.get((shape, dtype))
    if aval is None:
        if len(_AVALS) >= _MOST_AVALS:
            _AVALS.clear()
        if dtype.isbuiltin == 1 and dtype.isnative:
            dtype = np.dtype(dtype.type)  # not a copy of it, as unpickled arrays have
        aval = _AVALS[shape, dtype] = Aval(shape, dtype)
    return aval


def short_dtype(dtype: np.dtype[Any]) -> str:
    """A dtype in two to four letters: f64, i32, bool."""
    if dtype.kind in "fiuc":
        return f"{dtype.kind}{dtype.itemsize * 8}"
    return str(dtype)


def shape_of(value: Array) -> Shape:
    """The shape of an array, a tracer or a scalar."""
    try:
        return value.shape  # type: ignore[no-any-return]
    except AttributeError:
        return ()


_SCALAR_DTYPES = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def dtype_of(value: Array) -> np.dtype[Any]:
    """The dtype of an array, a tracer or a scalar (Python scalars: NumPy's default for them)."""
    try:
        return value.dtype  # type: ignore[no-any-return]
    except AttributeError:
        return _SCALAR_DTYPES[type(value)]


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """True for the dtypes that carry derivatives: real and complex floating point."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


class Tracer:
    """Stands in for an array: a box around an immutable value, owned by one interpreter.

    `_value` is the array one level down; `_attached` is what the owner keeps beside it (a graph node, a tangent,
    a variable). An in-place write rebinds all three. The last slots are unset until they are needed: `_view_of` says
    what this box is a view of, `_views` lists the views of this box, `_written` is the line of a write, `_fact` is what
    is known of the value (`func.numpy.facts`), `_state` belongs to the imperative interface.
    The slots are private to the engine: libraries look for attributes such as `value` on what they are given, and
    would find the array without its derivative. The array interface (operators, methods, NumPy's protocols) is
    installed by `func.numpy`.

    >>> import numpy as np, func
    >>> x = func.tensor([1.0, 2.0], requires_grad=True)
    >>> type(x) is func.Tensor and isinstance(x, np.ndarray)
    True
    """

    __module__ = "func"
    __qualname__ = "Tensor"  # the name that users know
    __slots__ = (
        *("__weakref__", "_attached", "_fact", "_interpreter", "_state", "_value"),
        *("_view_of", "_views", "_written"),
    )
    _value: Any
    _attached: Any
    _fact: Any
    _interpreter: Interpreter
    _state: Any
    _view_of: Any
    _views: Any
    _written: Any

    def __init__(self, interpreter: Interpreter, value: Any, attached: Any) -> None:
        self._interpreter = interpreter
        self._value = value
        self._attached = attached

    # Python names a function by this where arguments are missing, so that func.Tensor([1.0]) says what to write.
    __init__.__qualname__ = "func.Tensor is the class of tensors; make one with func.tensor(data). Tensor.__init__"

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """What isinstance answers by: the class of the value that this one stands for. The engine asks type()."""
            if type(self._value) is ndarray and self._interpreter.differentiates:
                return ndarray
            return class_behind(self)

    @property
    def shape(self) -> Shape:
        return self._interpreter.shape(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._interpreter.dtype(self)


Tracer.__name__ = "TracedArray"  # what Python's own errors call it: "'TracedArray' object is not callable"


def class_behind(tracer: Tracer) -> type:
    """The class that the value would have without the transform: ndarray, that of a device's arrays, or of a scalar.

    Where there is no such value (batch elements, variables) it is what NumPy's functions return: a scalar for shape ().
    A device has no scalars, and takes what is an ndarray to NumPy for an array on the host.
    """
    bottom = innermost(tracer)
    interpreter = tracer._interpreter
    if isinstance(interpreter, ClosedInterpreter):
        return ndarray
    shape = interpreter.shape(tracer)
    if bottom is not None and tracer._value is not None and shape_of(bottom) == shape:
        return type(bottom)
    array_class = type(bottom) if is_device_array(bottom) else np.ndarray
    if shape:
        return array_class
    aval = interpreter.aval(tracer)
    if aval.weak and aval.dtype.kind in _WEAK_CLASSES:
        return _WEAK_CLASSES[aval.dtype.kind]
    return aval.dtype.type if array_class is ndarray else array_class


_WEAK_CLASSES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


def is_plain_array(value: Any) -> TypeIs[ndarray[Any, Any]]:
    """Whether a value is an ndarray in memory; isinstance alone is True for a traced array too."""
    return type(value) is not Tracer and isinstance(value, ndarray)


def new_tracer(interpreter: Interpreter, value: Any, attached: Any) -> Tracer:
    """A tracer, made without `__init__`, which is twice as fast."""
    tracer: Tracer = make_tracer(Tracer)
    tracer._interpreter = interpreter
    tracer._value = value
    tracer._attached = attached
    return tracer


make_tracer: Any = object.__new__
_next_level: Iterator[int] = itertools.count(1)


def next_level() -> int:
    """The level of a transform or mode that starts: above all levels in use."""
    return next(_next_level)


class Interpreter:
    """Says what applying a primitive means. Inner transforms start later and so have the higher level."""

    level: float
    transform: str
    line: Line | None
    ambient: Any = None
    """The imperative interpreter that goes with this transform, once there is one."""
    example: Any = None
    """For abstract values: an array of the backend that they stand for."""
    differentiates = False
    """Whether it is a level of forward or reverse mode."""
    takes_further = False
    """Whether more derivatives may be taken than there are levels: by itself, or of what it records."""
    carries_series = False
    """Whether it is a level of Taylor mode."""
    is_stage = False
    """Whether it records a program."""
    is_linear = False
    """Whether its values are the unknowns of a linear program."""
    is_readable = False
    """Whether numbers of its values may be read as arrays: their derivative does not come from the code that reads."""
    checks_nan: bool | None = None
    """Whether the program that it stages has a NaN-safe variant if derivatives are inside; None where it stages none.
    False too where structural zeros are known from the start."""
    shared: Any = None
    """Which arguments of its call share memory, where some do."""
    called: tuple[Callable[..., Any], list[int], Sequence[Any]] | None = None
    """The function that runs under it, the ids of its traced arguments, and what the caller gave for them."""
    inner_calls: Sequence[tuple[weakref.ref[Tracer], Callable[..., Any], weakref.ref[Any]]] = ()
    """The same for arguments of functions with rules that run inside: their boxes, each with what was given for it."""

    def __init__(self, transform: str) -> None:
        self.level = next(_next_level)
        self.transform = transform
        self.line = user_line(3)  # the function that makes an interpreter is never the user's

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """Interpret a primitive. Some argument is a tracer of this interpreter, none is of a higher one."""
        raise AssertionError(f"{type(self).__name__} has no apply")

    def apply1(self, primitive: Primitive, x: Array) -> Any:
        """`apply` for one argument without parameters."""
        return self.apply(primitive, (x,), {})

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        """`apply` for two arguments without parameters."""
        return self.apply(primitive, (x, y), {})

    def shape(self, tracer: Tracer) -> Shape:
        return shape_of(tracer._value)

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        return dtype_of(tracer._value)

    def aval(self, tracer: Tracer) -> Aval:
        return aval_of(tracer._value)

    def concrete(self, tracer: Tracer) -> Any:
        """The plain array behind a tracer; Vmap and Stage have one only under conditions."""
        return concrete(tracer._value)

    def close(self) -> None:
        """End the transform: its tracers raise LeakedTracerError from here on."""
        self.__class__ = ClosedInterpreter  # pyright: ignore[reportAttributeAccessIssue]
        self.called = self.shared = None
        self.inner_calls = ()
        if self.ambient is not None:
            self.ambient.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(level={self.level})"


class ClosedInterpreter(Interpreter):
    """What an interpreter becomes when its transform returns."""

    def _refuse(self, tracer: Tracer | None = None) -> NoReturn:
        written = getattr(tracer, "_written", None)
        places = f"\n  {self.transform} was called at {self.line}" if self.line is not None else ""
        if written is not None:
            places += f"\n  the value was written into an outer array at {written}"
        raise LeakedTracerError(
            f"a value traced by func.{self.transform} was used after the transform had returned."
            f"{places}\n  used at {user_line(3)}\n"
            "Return the value from the transformed function (has_aux=True hands extra values out) instead of "
            "storing it elsewhere."
        )

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                self._refuse(arg)
        self._refuse()

    def shape(self, tracer: Tracer) -> Shape:
        self._refuse(tracer)

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        self._refuse(tracer)

    def aval(self, tracer: Tracer) -> Aval:
        self._refuse(tracer)

    def concrete(self, tracer: Tracer) -> Any:
        self._refuse(tracer)

    def close(self) -> None:
        return None


def aval_of(value: Array) -> Aval:
    """The abstract value of an array, tracer or scalar."""
    if type(value) is Tracer:
        return value._interpreter.aval(value)
    return Aval(shape_of(value), dtype_of(value), type(value) in PYTHON_SCALARS)


def concrete(value: Array) -> Any:
    """The plain array behind a value at any depth; raises where there is none, or where batch elements differ."""
    if type(value) is Tracer:
        return value._interpreter.concrete(value)
    return value


class TracedValues:
    """Whether traced values may be in what functions of NumPy and SciPy get."""

    __slots__ = ("pending", "run", "stay")

    def __init__(self) -> None:
        self.run = False
        """Whether a transform runs."""
        self.stay = False
        """Whether a tensor has ever been made, which lives as long as the user likes."""
        self.pending: list[str] = []
        """Imported modules of NumPy and SciPy whose functions do not all look for traced values yet."""


TRACED = TracedValues()


def is_readable(value: Any) -> bool:
    """Whether every level of a value lets code read its numbers."""
    while type(value) is Tracer:
        if not value._interpreter.is_readable:
            return False
        value = value._value
    return value is not None


def innermost(value: Array) -> Any:
    """The plain array at the bottom of a stack of tracers, asked for its backend; its numbers are `known_value`'s.

    For an abstract one it is the example that its stage has: an empty array of the device, or None.
    """
    while type(value) is Tracer:
        inner = value._value
        value = value._interpreter.example if inner is None else inner
    return value


def known_value(value: Array) -> Any:
    """The plain array at the bottom of a stack of tracers, batch axes included, or None for an abstract one."""
    while type(value) is Tracer:
        value = value._value
    return value


def example_of(value: Array) -> Any:
    """What a stage may know of the arrays that its values represent: an empty array of their device, None on the host.

    It never knows the numbers: code that read them would take them for those of later calls.
    """
    bottom = innermost(value)
    return namespace_of((bottom,)).empty(0) if is_device_array(bottom) else None


def snapshot(value: Array) -> Array:
    """A value that later in-place writes of the user cannot change."""
    kind = type(value)
    if kind is ndarray:
        return value.copy("K") if value.flags.writeable else value
    if kind is Tracer:
        return Tracer(value._interpreter, value._value, value._attached)
    if kind not in HOST_TYPES and is_device_array(value):
        return value.copy()
    return value


def kept(value: Array) -> Array:
    """What a graph or a program saves of a value: a `snapshot` that nobody writes to, and one for a large array.

    See `copies.py`.
    """
    if type(value) is ndarray:
        if not value.flags.writeable:
            return value
        return value.copy("K") if value.nbytes < LARGE else kept_copy(value)
    return snapshot(value)


def operand(value: Any) -> Array:
    """An argument as primitives take it: lists and containers become arrays, what cannot be traced is refused."""
    kind = type(value)
    if kind is Tracer:
        return value
    if kind is ndarray or kind in HOST_TYPES:
        dtype = getattr(value, "dtype", None)
        if dtype is not None and dtype.kind in "OSUVMmT" and dtype.name != "bfloat16":
            return WIRING.array_of_objects(value) if dtype.kind == "O" else refuse_array(value)
        return value
    if isinstance(value, (list, tuple)):
        return WIRING.array_from_sequence(value)
    if namespace_of_type(kind) is not None:
        return value
    if kind in CARRIERS:
        return CARRIERS[kind](value)
    return operand(as_plain_array(value))


CARRIERS: dict[type, Callable[[Any], Array]] = {}
"""Further classes whose objects represent an array, with the function that gives the array."""


class Series:
    """The coefficients of a power series, ZERO or an array each. Those that are not there yet are computed, in their
    order, by `extend(k)`; without it the series is complete."""

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
    """The derivatives in what a level of differentiation attaches: a tangent, or the coefficients of a series."""
    return attached.coefficients[1:] if type(attached) is Series else [attached]
