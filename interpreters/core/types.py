"""The types on which everything else builds: abstract values, tracers, and the interpreters that own tracers.

An `Aval` describes an array without its data; `ZERO` is the zero that nothing stores. A `Tracer` represents an array;
its `Interpreter` defines the meaning of a primitive.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES, is_device_array
from func.backends.defensive_copies import LARGE, shared_copy
from func.interpreters.core.errors import LeakedTracerError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import Line, user_line

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from func.interpreters.core.primitive import Primitive

Array: TypeAlias = Any
"""Any operand of a primitive: an array of some backend, a Python or NumPy scalar, or a Tracer."""
Params: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[int, ...]

PYTHON_SCALARS = frozenset({bool, int, float, complex})
REAL_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
"""The dtypes of most differentiable code."""
_DTYPES = frozenset({type(np.dtype(code)) for code in np.typecodes["All"]})


class Zero:
    """The symbolic zero: a tangent or cotangent that vanishes, and that nothing stores."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"

    def __reduce__(self) -> str:
        return "ZERO"


ZERO = Zero()


class Shaped:
    """Anything with a shape and a dtype but without the array: an Aval, a graph node, a variable."""

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
    """The aval of an array. Equal avals are mostly one object, so `is` finds most equalities."""
    aval = _AVALS.get((shape, dtype))
    if aval is None:
        if len(_AVALS) >= _MOST_AVALS:
            _AVALS.clear()
        if dtype.isbuiltin == 1 and dtype.isnative:
            dtype = np.dtype(dtype.type)  # unpickled arrays have a copy of it
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
    """An array of one interpreter: a mutable reference to an immutable value.

    `_value` is the array one level down; `_attached` is a graph node, a tangent or a variable of the owner. An in-place
    write rebinds all three. The other slots are unset until needed. `_view_of` refers to the base of a view, `_views`
    lists the views of this tracer, `_written` is the line of a write. `_fact` is a fact about the value
    (`func.numpy.facts`), `_state` belongs to the imperative interface. The slots are private to the engine: libraries
    that look for attributes such as `value` would find the array without its derivative. `func.numpy` installs the
    array interface (operators, methods, NumPy's protocols).

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

    # Python names the function so where arguments are missing: func.Tensor([1.0]) tells the user what to write.
    __init__.__qualname__ = "func.Tensor is the class of tensors; make one with func.tensor(data). Tensor.__init__"

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class of the value that the tracer represents, for isinstance. The engine asks type()."""
            if type(self._value) is ndarray and self._interpreter.differentiates:
                return ndarray
            return WIRING.class_behind(self)  # type: ignore[no-any-return]

    @property
    def shape(self) -> Shape:
        return self._interpreter.shape(self)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._interpreter.dtype(self)


Tracer.__name__ = "TracedArray"  # Python's own errors use it: "'TracedArray' object is not callable"


def is_plain_array(value: Any) -> TypeIs[ndarray[Any, Any]]:
    """Whether a value is an ndarray in memory; isinstance is True for traced arrays too."""
    return type(value) is not Tracer and isinstance(value, ndarray)


def new_tracer(interpreter: Interpreter, value: Any, attached: Any) -> Tracer:
    """Make a tracer without `__init__`, in half the time."""
    tracer: Tracer = make_tracer(Tracer)
    tracer._interpreter = interpreter
    tracer._value = value
    tracer._attached = attached
    return tracer


make_tracer: Any = object.__new__
_next_level: Iterator[int] = itertools.count(1)


def next_level() -> int:
    """The level of a transform or mode that starts now: above all levels in use."""
    return next(_next_level)


class Interpreter:
    """Gives a meaning to applying a primitive. Inner transforms start later and so have the higher level."""

    level: float
    transform: str
    line: Line | None
    ambient: Any = None
    """The imperative interpreter of this transform, once there is one."""
    example: Any = None
    """For abstract values: an empty array of their device."""
    differentiates = False
    """Whether it is a level of forward or reverse mode."""
    takes_further = False
    """Whether further derivatives may follow than there are levels: its own, or those of its record."""
    carries_series = False
    """Whether it is a level of Taylor mode."""
    is_stage = False
    """Whether it records a program."""
    is_linear = False
    """Whether its values are the unknowns of a linear program."""
    is_readable = False
    """Whether code may read its values as arrays: their derivative does not come from that code."""
    checks_nan: bool | None = None
    """Whether its program with derivatives has a NaN-safe variant: None without one, False with structural zeros."""
    shared: Any = None
    """The arguments of its call that share memory, if some do."""
    called: tuple[Callable[..., Any], list[int], Sequence[Any]] | None = None
    """The function that runs under it, the ids of its traced arguments, and the caller's arguments."""
    refusal: Exception | None = None  # the first error of a value without numbers, until Python code catches it
    inner_calls: Sequence[tuple[weakref.ref[Tracer], Callable[..., Any], weakref.ref[Any]]] = ()
    """The same for functions with rules that run inside: the tracers of their arguments, with the caller's."""

    def __init__(self, transform: str) -> None:
        self.level = next(_next_level)
        self.transform = transform
        self.line = user_line(3)  # an interpreter's caller is never the user's

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """Interpret a primitive. Some argument is a tracer of this interpreter, none of a higher one."""
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
        """The plain array behind a tracer; Vmap raises where batch elements differ, Stage always."""
        return concrete(tracer._value)

    def close(self) -> None:
        """End the transform: its tracers raise LeakedTracerError from here on."""
        self.__class__ = ClosedInterpreter  # pyright: ignore[reportAttributeAccessIssue]
        self.called = self.shared = self.refusal = None
        self.inner_calls = ()
        if self.ambient is not None:
            self.ambient.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(level={self.level})"


class ClosedInterpreter(Interpreter):
    """The class of an interpreter whose transform has returned."""

    def _raise(self, tracer: Tracer | None = None) -> NoReturn:
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
                self._raise(arg)
        self._raise()

    def shape(self, tracer: Tracer) -> Shape:
        self._raise(tracer)

    def dtype(self, tracer: Tracer) -> np.dtype[Any]:
        self._raise(tracer)

    def aval(self, tracer: Tracer) -> Aval:
        self._raise(tracer)

    def concrete(self, tracer: Tracer) -> Any:
        self._raise(tracer)

    def close(self) -> None:
        return None


def aval_of(value: Array) -> Aval:
    """The abstract value of an array, tracer or scalar."""
    if type(value) is Tracer:
        return value._interpreter.aval(value)
    return Aval(shape_of(value), dtype_of(value), type(value) in PYTHON_SCALARS)


def concrete(value: Array) -> Any:
    """The plain array behind a value at any depth. Raises where there is none, or where batch elements differ."""
    if type(value) is Tracer:
        return value._interpreter.concrete(value)
    return value


def snapshot(value: Array) -> Array:
    """A value that later in-place writes of the user do not change."""
    kind = type(value)
    if kind is ndarray:
        return value.copy("K") if value.flags.writeable else value
    if kind is Tracer:
        return Tracer(value._interpreter, value._value, value._attached)
    if kind not in HOST_TYPES and is_device_array(value):
        return value.copy()
    return value


def defensive_copy(value: Array) -> Array:
    """A `snapshot` for a graph or a program; a large array that recurs has one.

    See `backends/defensive_copies.py`.
    """
    if type(value) is ndarray:
        if not value.flags.writeable:
            return value
        return value.copy("K") if value.nbytes < LARGE else shared_copy(value)
    return snapshot(value)
