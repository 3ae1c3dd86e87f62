"""The declarations of a primitive besides its rules: the kinds of its parameters, and `Facts`.

Programs from files are checked by these declarations, so generated code contains values of known kinds only. A kind
looks at the parameter, at the avals of the operands and at the other parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from func.backends.records import Record
from func.interpreters.core.types import Aval, Params, Shape

if TYPE_CHECKING:
    from func.interpreters.core.primitive import Primitive

Test: TypeAlias = Callable[[Any, Sequence[Aval], Params], bool]

LARGEST = 2**62
"""Integers and sizes in bytes beyond this one belong to no array."""
MOST_AXES = 64
"""The most axes of NumPy's arrays."""


class Kind(Record):
    """A kind of parameters: its name in errors, its test, and whether the parameter may be absent."""

    name: str
    test: Test
    optional: bool = False

    def accepts(self, value: Any, avals: Sequence[Aval], params: Params) -> bool:
        """Whether a value is of the kind. A value on which the test fails is not."""
        try:
            return self.test(value, avals, params)
        except Exception:  # a value of no kind may raise anything
            return False

    def or_absent(self) -> Kind:
        """The kind for a parameter that an equation may leave out."""
        return self.with_fields(optional=True)


Kinds: TypeAlias = Mapping[str, Kind]
NO_PARAMETERS: Kinds = {}


def is_integer(value: Any) -> bool:
    """An integer that fits into 64 bits, but not a bool."""
    return (type(value) is int or isinstance(value, np.integer)) and -LARGEST <= int(value) <= LARGEST


def is_length(value: Any) -> bool:
    """The length of an axis."""
    return is_integer(value) and value >= 0


def is_shape(value: Any) -> bool:
    """The shape of an array that could exist."""
    return (
        type(value) is tuple
        and len(value) <= MOST_AXES
        and all([is_length(length) for length in value])
        and math.prod([max(int(length), 1) for length in value]) <= LARGEST
    )


def could_exist(aval: Aval) -> bool:
    """Whether the shape of an aval is that of an array of its dtype, and only scalars are weak."""
    if not is_shape(aval.shape) or (aval.weak and aval.shape != ()):
        return False
    return math.prod([max(length, 1) for length in aval.shape]) * aval.dtype.itemsize <= LARGEST


def is_dtype(value: Any) -> bool:
    """A dtype of numbers."""
    return isinstance(value, np.dtype) and (value.kind in "biufc" or value.name == "bfloat16")


def are_axes(value: Any, rank: int) -> bool:
    """Different axes of an array of a rank."""
    return (
        type(value) is tuple
        and all([is_integer(axis) and 0 <= axis < rank for axis in value])
        and len(set(value)) == len(value)
    )


def is_index_of(index: Any, shape: Shape) -> bool:
    """Whether a normalised basic index stays within an array of a shape, and has an entry for each of its axes."""
    if type(index) is not tuple:
        return False
    lengths = list(shape)
    for entry in index:
        if entry is None:
            continue
        if not lengths:
            return False
        length = lengths.pop(0)
        if type(entry) is tuple:
            start, stop, step = entry
            if not (is_integer(start) and is_integer(stop) and is_integer(step)) or step == 0:
                return False
            chosen = range(start, stop, step)
            if chosen and not (0 <= chosen[0] < length and 0 <= chosen[-1] < length):
                return False
            if not chosen and not (-1 <= start <= max(length, 1) and -1 <= stop <= length):
                return False
        elif not is_integer(entry) or not 0 <= entry < length:
            return False
    return not lengths


def is_placement(placement: Any, size: int) -> bool:
    """Whether (offset, sizes, strides) names positions of an array of `size` elements."""
    if type(placement) is not tuple or len(placement) != 3:
        return False
    offset, sizes, strides = placement
    if not is_integer(offset) or not is_shape(sizes) or type(strides) is not tuple or len(strides) != len(sizes):
        return False
    if not all([is_integer(stride) for stride in strides]):
        return False
    if 0 in sizes:
        return bool(0 <= offset <= size)
    reaches = [stride * (length - 1) for length, stride in zip(sizes, strides, strict=True)]
    first = offset + sum([reach for reach in reaches if reach < 0])
    last = offset + sum([reach for reach in reaches if reach > 0])
    return bool(first >= 0 and last < size)


def one_of(*choices: Any) -> Kind:
    """One of some values, and of the type of that."""
    name = f"one of {', '.join([repr(choice) for choice in choices])}"
    return Kind(name, lambda value, avals, params: any([type(value) is type(own) and value == own for own in choices]))


def either(kind: Kind, other: Kind) -> Kind:
    """Either of two kinds."""
    return Kind(
        f"{kind.name} or {other.name}",
        lambda value, avals, params: kind.accepts(value, avals, params) or other.accepts(value, avals, params),
    )


def integer(least: int = -LARGEST, most: int = LARGEST) -> Kind:
    """An integer within bounds."""
    low, high = (f" from {least}" if least > -LARGEST else ""), (f" up to {most}" if most < LARGEST else "")
    return Kind(f"an integer{low}{high}", lambda value, avals, params: is_integer(value) and least <= value <= most)


def dtype_of_kind(kinds: str) -> Kind:
    """A dtype of one of NumPy's kinds; that of V is bfloat16."""
    return Kind(f"a dtype of kind {kinds}", lambda value, avals, params: is_dtype(value) and value.kind in kinds)


NOTHING = one_of(None)
FLAG = Kind("a bool", lambda value, avals, params: type(value) is bool or isinstance(value, np.bool_))
TEXT = Kind("a string", lambda value, avals, params: type(value) is str)
NUMBER = Kind(
    "a real number",
    lambda value, avals, params: is_integer(value) or type(value) is float or isinstance(value, np.floating),
)
FINITE = Kind(
    "a finite real number",
    lambda value, avals, params: NUMBER.test(value, avals, params) and bool(np.isfinite(value)),
)
DTYPE = Kind("a dtype of numbers", lambda value, avals, params: is_dtype(value))
SHAPE = Kind("a shape", lambda value, avals, params: is_shape(value))
AXIS = Kind(
    "an axis of the first operand", lambda value, avals, params: is_integer(value) and 0 <= value < len(avals[0].shape)
)
AXES = Kind("axes of the first operand", lambda value, avals, params: are_axes(value, len(avals[0].shape)))
INDEX = Kind("a basic index of the first operand", lambda value, avals, params: is_index_of(value, avals[0].shape))
FUNCTION = Kind(
    "a Python function",
    lambda value, avals, params: (
        callable(value) and not any([hasattr(value, name) for name in ("impl", "in_avals", "equations")])
    ),
)
COMPILED = Kind(
    "a compiled call", lambda value, avals, params: hasattr(value, "in_avals") and hasattr(value, "out_avals")
)


def have_equal_shapes(*avals: Aval) -> bool:
    """Whether all operands are of one shape."""
    return all([aval.shape == avals[0].shape for aval in avals])


def are_integers(*avals: Aval) -> bool:
    """Whether operands are integers, as indices are."""
    return all([aval.dtype.kind in "iu" for aval in avals])


def _are_starts(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    length = avals[0].shape[params["axis"]]
    return type(value) is tuple and all([is_integer(start) and 0 <= start < length for start in value])


def _are_placements(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    size = math.prod(params["shape"])
    return type(value) is tuple and len(value) == len(avals) and all([is_placement(entry, size) for entry in value])


OPTIONAL_DTYPE = either(NOTHING, DTYPE)
AXIS_OR_END = Kind(
    "an axis of the first operand, or its rank",
    lambda value, avals, params: is_integer(value) and 0 <= value <= len(avals[0].shape),
)
INDEX_OF_SHAPE = Kind("a basic index of the shape", lambda value, avals, params: is_index_of(value, params["shape"]))
STARTS = Kind("places along the axis", _are_starts)
PLACEMENT = Kind(
    "a placement within the first operand",
    lambda value, avals, params: is_placement(value, math.prod(avals[0].shape)),
)
PLACEMENTS = Kind("a placement within the shape for each operand", _are_placements)
ELEMENT = Kind(
    "a number or an array scalar",
    lambda value, avals, params: type(value) in (bool, int, float, complex) or isinstance(value, np.number | np.bool_),
)
TAG = Kind("an integer that differs from others", lambda value, avals, params: is_integer(value))
"""Only the sign matters, and the equality of tags within a program."""
PLACES = INDEX, INDEX_OF_SHAPE, SHAPE, AXIS, AXES
"""Places in arrays: equal values mean the same, for all types of integers."""
_PLAIN = frozenset([kind.name for kind in (*PLACES, DTYPE, FLAG, TAG, NUMBER, TEXT)])
ORDER = Kind("the order of a derivative", lambda value, avals, params: is_integer(value) and 0 <= value <= 10_000)


def hold_no_program(kinds: Kinds) -> bool:
    """Whether parameters of these kinds are numbers, dtypes and places alone."""
    return bool(kinds) and all([kind.name in _PLAIN for kind in kinds.values()])


def parameter_error(primitive: Primitive, avals: Sequence[Aval], params: Params) -> str | None:
    """The reason why a primitive rejects parameters or operands; None if it accepts them."""
    for name in params:
        if name not in primitive.parameters:
            return f"it has no parameter {name!r}"
    for name, kind in primitive.parameters.items():
        if name not in params:
            if not kind.optional:
                return f"its parameter {name} is missing"
        elif not kind.accepts(params[name], avals, params):
            return f"its parameter {name} is not {kind.name}"
    fits = primitive.fits
    if fits is not None and not Kind("", lambda *_: fits(*avals, **params)).accepts(None, avals, params):
        return "its operands do not fit each other or its parameters"
    return None


Formula: TypeAlias = Callable[[Sequence[Aval], Sequence[Aval], Params], float]
COMPLEX = 4
"""Real operations in an operation on complex numbers."""


if TYPE_CHECKING:

    class Facts(TypedDict, total=False):
        """Facts about a primitive besides its rules. Every entry is an attribute of the primitive."""

        cost: float | Formula
        """Operations on real numbers for each element of the outputs, or a formula (inputs, outputs, params) of their
        number. Operations on complex numbers count `COMPLEX` times."""
        layout: Callable[..., Any]
        """layout(*operands, **params): the memory layout of NumPy's output, for stand-ins of the operands. It is a view
        of one of them, or the axes of a new array, slowest first; a list for several outputs. By default the output of
        `impl` on stand-ins shows the layout if it is always a `view`; else that is C order."""
        view: bool | Callable[[Sequence[Aval]], bool]
        """The output shares the memory of the first input, always or for inputs of these avals."""
        reduces: str
        """The ufunc by which it reduces or accumulates."""
        checks_indices: bool
        """It raises an error for indices outside an axis, also where the output has no elements."""
        reads_selected: bool
        """It reads only as many elements of the first input as the output has."""
        recompute: bool
        """A backward program computes it again rather than keep its output as a residual."""
        commutative: bool
        """Both orders of two operands give the same output."""
        numpy_suffices: bool
        """Compiled code of one such equation alone is no faster than NumPy."""
        calls_python: bool
        """It calls a Python function, which may do anything; its derivative alone may call others."""
        tells_passes: bool
        """Passes read more from its equation than its value, so it stays an equation also for known values."""
        communicates: bool
        """It exchanges messages with other processes, which do the same in the same order: passes neither merge, fold,
        reorder nor drop its equations."""
        body: Callable[[Params], Callable[..., Sequence[Any]]]
        """body(params) computes the outputs from the operands in other primitives; inlining puts it in place."""
        undefined: Callable[..., bool]
        """undefined(*operands, **params): whether NumPy leaves the outputs undefined for these arrays."""
        passes_on: Callable[..., Sequence[Any]]
        """passes_on(*operands, **params): the operands that are the outputs; it computes nothing."""
        scipy: str
        """The function of scipy.special that computes it."""
        parameters: Kinds
        """The kind of each parameter, by which `Program.check` and `func.load` check programs."""
        fits: Callable[..., bool] | None
        """fits(*avals, **params): whether the operands fit each other and the parameters, if `aval` does not check."""
        factored_by: str
        """The primitive that makes its second and third operand of its first; LAPACK trusts them."""
        mask: str | None
        """How structural zeros pass through a linear primitive. An "elementwise" one moves each to its place. Each
        output element of a "covered" one is a sum of input elements, of a "padded" one also zero. The value "body"
        means: as through the primitives of its body. By default one reached input element reaches all outputs."""
        covers: bool
        """Every input element contributes to the output: the pullback makes no structural zeros."""

else:
    Facts = dict  # only type checkers need the class, whose creation takes half a millisecond
