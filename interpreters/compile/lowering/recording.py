"""NumPy text recorded from a primitive's implementation, which runs on a namespace and on operands that return text.

Shapes, dtypes and parameters are known, so that an implementation may branch on them. It may neither branch on elements
nor assign to elements. Text follows the implementation call by call, with three shorter forms. It calls a method where
NumPy's function only calls that, `ufunc.reduce` where NumPy's reduction does, and indices and shapes as in user code.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from func.backends.array_helpers.arrays import call_reshaped, scipy_of
from func.backends.source.literals import axes_text, literal, parameter_text, slice_text, tuple_text
from func.interpreters.compile.lowering.code import Code, LoweringContext, is_support
from func.interpreters.core import Shape
from func.interpreters.core.errors import NoSourceError

METHODS = frozenset(["argmax", "argmin", "argpartition", "argsort", "cumprod", "cumsum", "reshape", "transpose", "var"])
"""Functions of NumPy that call the method of their name, with the same arguments."""
ATTRIBUTES = frozenset(["T", "imag", "mT", "real"])
"""Views that arrays have as attributes."""
REDUCTIONS = {
    "all": "logical_and",
    "any": "logical_or",
    "max": "maximum",
    "min": "minimum",
    "prod": "multiply",
    "sum": "add",
}
"""Reductions of NumPy that call the reduce method of a ufunc, with the same arguments. CuPy's do not."""
VIEWS = frozenset(["broadcast_to", "ravel", "reshape", "squeeze", "swapaxes", "transpose"])
"""Functions and methods whose result shares, or may share, the memory of their first argument."""
KEYWORD_OUT = frozenset(["np.maximum", "np.minimum"])
"""Ufuncs with a third positional argument of another meaning: NumPy deprecates it."""

Words: TypeAlias = Sequence[str]


def record(context: LoweringContext) -> Code:
    """The text of the implementation's result; it writes into {out} if its last call takes `out`."""
    recorder = TextRecorder(context.device)
    operands = [
        Recorded(recorder, f"{{{position}}}", aval.shape, aval.dtype, operand=position, weak=aval.weak)
        for position, aval in enumerate(context.avals)
    ]
    implementation = _with_recorded_support(context.primitive.impl)
    value = implementation(RecordedFunction(recorder, "np", np), *operands, **context.params)
    helpers = tuple(recorder.helpers)
    if isinstance(value, tuple):
        if len(value) == 1 and isinstance(value[0], Unpacked):
            return Code(value[0].text, helpers=helpers)
        return Code(tuple_text([recorder.word(entry) for entry in value]), helpers=helpers)
    if context.out.weak and value.is_ufunc:
        return Code(f"{value.text}.item()", helpers=helpers)
    if value.into is None or recorder.strengthens:
        return Code(value.text, view=value.operand is not None, helpers=helpers)
    inplace = context.matching(*value.elementwise_operands)
    return Code(value.into, out=True, plain=value.text, inplace=inplace, helpers=(*helpers, *value.into_helpers))


class TextRecorder:
    """Shared by the values of one recording."""

    def __init__(self, device: bool) -> None:
        self.device = device
        self.helpers: list[Callable[..., Any]] = []
        self.strengthens = False
        """Whether a Python scalar becomes an array, so that the dtype may differ from that of the output's aval."""

    def word(self, value: Any, literal: Callable[[Any], str] = literal) -> str:
        """An argument as text."""
        if isinstance(value, SupportCall):
            self.helpers.append(value.function)
        if isinstance(value, (Recorded, RecordedFunction, SupportCall)):
            return value.text
        if isinstance(value, (tuple, list)):
            return tuple_text([self.word(entry, literal) for entry in value])
        return literal(value)

    def words(self, args: Sequence[Any], kwargs: dict[str, Any], literal: Callable[[Any], str] = literal) -> Words:
        """Arguments as texts."""
        positional = [self.word(arg, literal) for arg in args]
        return [*positional, *[f"{name}={self.word(value, literal)}" for name, value in kwargs.items()]]


class Recorded:
    """An array that an implementation computes, as text.

    operand: The position of the operand whose memory the value uses, or may use.
    call: The function that gave the value and the words of its arguments, where the function takes `out`.
    into: The text that writes the value into {out}, and the array helpers that it calls.
    elementwise_operands: The positions of the operands that a ufunc reads unchanged, element by element.
    """

    __array_ufunc__ = None  # NumPy's own functions raise for the value: an implementation calls those of `xp`

    def __init__(
        self,
        recorder: TextRecorder,
        text: str,
        shape: Shape | None = None,
        dtype: np.dtype[Any] | None = None,
        *,
        operand: int | None = None,
        weak: bool = False,
    ) -> None:
        self.recorder = recorder
        self.text = text
        self._shape = shape
        self._dtype = dtype
        self.operand = operand
        self.weak = weak
        self.is_ufunc = False
        self.call: tuple[str, Words] | None = None
        self.into: str | None = None
        self.into_helpers: tuple[Callable[..., Any], ...] = ()
        self.elementwise_operands: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        if self._shape is None:
            self.raise_unsupported("asks for the shape of a value")
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        if self._dtype is None:
            self.raise_unsupported("asks for the dtype of a value")
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def array(self) -> str:
        """The text as an expression with an array's methods, which Python scalars lack."""
        if not self.weak:
            return self.text
        self.recorder.strengthens = True
        return f"np.asarray({self.text})"

    def raise_unsupported(self, what: str) -> NoReturn:
        raise NoSourceError(
            f"an implementation {what}, {self.text}, which its text does not tell; make it a function of "
            "func.backends.array_helpers, or write a lowering rule"
        )

    def __bool__(self) -> bool:
        self.raise_unsupported("branches on a value")

    def __setitem__(self, index: Any, value: Any) -> None:
        self.raise_unsupported("assigns to a value")

    def __iter__(self) -> Any:
        return iter((Unpacked(self.text),))

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            shape = self._shape[::-1] if name == "T" and self._shape else None
            return Recorded(self.recorder, f"{self.array}.{name}", shape, operand=self.operand)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if not callable(getattr(np.ndarray, name)):
            self.raise_unsupported(f"asks for the {name} of a value")
        return functools.partial(self._method, name)

    def _method(self, name: str, *args: Any, **kwargs: Any) -> Recorded:
        words = self.recorder.words(args, kwargs)
        operand = self.operand if name in VIEWS else None
        return _call(self.recorder, f"{self.array}.{name}", words, getattr(np, name, None), operand=operand)

    def astype(self, dtype: np.dtype[Any], copy: bool = True) -> Recorded:
        words = [literal(dtype), *([] if copy else ["copy=False"])]
        return Recorded(
            self.recorder,
            f"{self.array}.astype({', '.join(words)})",
            self._shape,
            dtype,
            operand=None if copy else self.operand,
        )

    def reshape(self, *lengths: Any) -> Recorded:
        shape: Shape = lengths[0] if isinstance(lengths[0], tuple) else lengths
        if shape == self._shape and not self.weak:
            return self
        text = f"{self.array}.reshape({', '.join(map(literal, shape)) or '()'})"
        out = Recorded(self.recorder, text, shape, self._dtype, operand=self.operand)
        if self.call is not None and self._shape is not None:
            path, words = self.call
            out.into = f"call_reshaped({path}, {tuple_text(words)}, {literal(self._shape)}, {{out}})"
            out.into_helpers = (call_reshaped,)
        return out

    def transpose(self, *axes: Any) -> Recorded:
        order: tuple[int, ...] = axes[0] if isinstance(axes[0], tuple) else axes
        if order == tuple(range(len(order))) and not self.weak:
            return self
        text = ".T" if order == tuple(range(len(order)))[::-1] else f".transpose({literal(order)})"
        shape = None if self._shape is None else tuple([self._shape[axis] for axis in order])
        return Recorded(self.recorder, f"{self.array}{text}", shape, self._dtype, operand=self.operand)

    def __getitem__(self, index: Any) -> Recorded:
        entries = list(index) if isinstance(index, tuple) else [index]
        while entries and isinstance(entries[-1], slice) and entries[-1] == slice(None):
            entries.pop()
        if not entries and index != ():
            return self
        words = [slice_text(entry) if isinstance(entry, slice) else self.recorder.word(entry) for entry in entries]
        is_view = all([not isinstance(entry, Recorded) or entry.shape == () for entry in entries])
        text = f"{self.array}[{', '.join(words) or '()'}]"
        return Recorded(self.recorder, text, dtype=self._dtype, operand=self.operand if is_view else None)


def _operator(form: str) -> Callable[..., Recorded]:
    def apply(self: Recorded, *others: Any) -> Recorded:
        return Recorded(self.recorder, f"({form.format(self.text, *map(self.recorder.word, others))})")

    return apply


for _names, _symbols in (
    ("add sub mul truediv floordiv mod pow matmul and or xor", "+ - * / // % ** @ & | ^"),
    ("lt le gt ge eq ne", "< <= > >= == !="),
):
    for _name, _symbol in zip(_names.split(), _symbols.split(), strict=True):
        setattr(Recorded, f"__{_name}__", _operator(f"{{}} {_symbol} {{}}"))
        setattr(Recorded, f"__r{_name}__", _operator(f"{{1}} {_symbol} {{0}}"))
for _name, _symbol in (("neg", "-"), ("pos", "+"), ("invert", "~")):
    setattr(Recorded, f"__{_name}__", _operator(f"{_symbol}{{}}"))


class Unpacked:
    """All items of a value with several: the contents of tuple(value)."""

    def __init__(self, text: str) -> None:
        self.text = text


class RecordedFunction:
    """A function or module of the array namespace, by its dotted name; `actual` is NumPy's or SciPy's."""

    __slots__ = ("actual", "recorder", "text")

    def __init__(self, recorder: TextRecorder, text: str, actual: Any) -> None:
        self.recorder = recorder
        self.text = text
        self.actual = actual

    def __getattr__(self, name: str) -> RecordedFunction:
        if self.text == "np" and name.startswith("scipy_"):
            module = name.replace("_", ".", 1)
            on_host = None if self.recorder.device else importlib.import_module(module)
            return RecordedFunction(self.recorder, module, on_host)
        actual = getattr(self.actual, name, None) if self.recorder.device else getattr(self.actual, name)
        return RecordedFunction(self.recorder, f"{self.text}.{name}", actual)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, _, name = self.text.rpartition(".")
        array = args[0] if args else None
        if module == "np" and isinstance(array, Recorded) and not array.weak:
            if name == "asarray" and len(args) == 1:
                return array
            if name in METHODS:
                return getattr(array, name)(*args[1:], **kwargs)
            if name in ATTRIBUTES:
                return getattr(array, name)
        if module == "np" and name in REDUCTIONS:
            return self._reduce(name, *args, **kwargs)
        if name == "asarray":
            self.recorder.strengthens = True
        operand = array.operand if name in VIEWS and isinstance(array, Recorded) else None
        words = self.recorder.words(args, kwargs)
        return _call(self.recorder, self.text, words, self.actual, args, bool(kwargs), operand)

    def _reduce(self, name: str, array: Recorded, axes: tuple[int, ...], dtype: Any = None, **kwargs: Any) -> Recorded:
        words = [array.text, axes_text(axes), *([] if dtype is None else [literal(dtype)])]
        words += self.recorder.words((), kwargs)
        path = self.text if self.recorder.device else f"np.{REDUCTIONS[name]}.reduce"
        return _call(self.recorder, path, words, getattr(np, name))


def _call(
    recorder: TextRecorder,
    path: str,
    words: Words,
    actual: Any,
    args: Sequence[Any] = (),
    has_keywords: bool = False,
    operand: int | None = None,
) -> Recorded:
    """The value of a call."""
    out = Recorded(recorder, f"{path}({', '.join(words)})", operand=operand)
    if isinstance(actual, np.ufunc) and actual.nout == 1 and len(args) == actual.nin and not has_keywords:
        out.is_ufunc = True
        out.into = f"{path}({', '.join([*words, 'out={out}' if path in KEYWORD_OUT else '{out}'])})"
        if actual.signature is None:
            whole = [arg for arg in args if isinstance(arg, Recorded) and arg.text == f"{{{arg.operand}}}"]
            out.elementwise_operands = tuple([arg.operand for arg in whole if arg.operand is not None])
        elif actual is np.matmul:
            out._shape = _product_shape(*args)
    elif takes_out(actual) and not (recorder.device and path.startswith("np.fft.")):  # CuPy's transforms do not
        out.into = f"{path}({', '.join([*words, 'out={out}'])})"
    if out.into is not None:
        out.call = path, words
    return out


def _product_shape(x: Recorded, y: Recorded) -> Shape | None:
    """The shape of a product of stacked matrices."""
    if x._shape is None or y._shape is None or min(x.ndim, y.ndim) < 2:
        return None
    return (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])


@functools.cache
def takes_out(function: Any) -> bool:
    """Whether a function writes into an array passed as `out`."""
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class SupportCall:
    """An array helper inside an implementation: its call becomes a call by name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = inspect.unwrap(function)
        self.text = str(self.function.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = next((arg.recorder for arg in args if isinstance(arg, (Recorded, RecordedFunction))), None)
        if recorder is None:
            return self.function(*args, **kwargs)
        recorder.helpers.append(self.function)
        return Recorded(
            recorder, f"{self.function.__name__}({', '.join(recorder.words(args, kwargs, parameter_text))})"
        )


@functools.cache
def _with_recorded_support(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation, with its array helpers, global or enclosed, replaced by recorders."""
    if not isinstance(implementation, FunctionType):
        return implementation

    def recorded(value: Any) -> Any:
        return SupportCall(value) if is_support(value) and value is not scipy_of else value

    function = FunctionType(
        implementation.__code__,
        {name: recorded(value) for name, value in implementation.__globals__.items()},
        implementation.__name__,
        implementation.__defaults__,
        tuple([CellType(recorded(cell.cell_contents)) for cell in implementation.__closure__ or ()]),
    )
    function.__kwdefaults__ = implementation.__kwdefaults__
    return function
