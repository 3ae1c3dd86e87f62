"""NumPy's converters for traced values: `np.array([v, -np.sin(t)])` works while a transform runs.

NumPy's protocols do not dispatch np.array, np.asarray and the other converters. While a transform runs, the module
`numpy` has a class of func's. Its attributes of these names depend on the reader: Python code inside a transform gets a
function that takes traced values, other code NumPy's own. So other threads, compiled code and modules during
their import see no substitute, and the contents of the module never change. The class goes when the last running
transform ends, which cannot fail: see `func.interpreters.core.scopes`.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import math
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import CodeType, FrameType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from func.host.bytecode import calls_attribute, reads_attribute
from func.interpreters.core import CARRIERS, TRACED, Tracer
from func.interpreters.core.errors import FuncError
from func.interpreters.core.scopes import Scope, live_entries, live_entry
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import is_engine_file
from func.interpreters.host.swallowed_errors import hide_outside

F = TypeVar("F", bound=Callable[..., Any])
_NAMES = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
CREATORS = (
    "arange", "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones", "ones_like",
    "zeros", "zeros_like",
)  # fmt: skip
"""NumPy's creation functions, for whose arrays `func.intercept` substitutes."""
_module: Any = np
_namespace: Any = vars(np)
_ABSTRACT = (np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating, np.complexfloating)
SCALAR_CLASSES = [
    name
    for name, value in _namespace.items()
    if isinstance(value, type) and issubclass(value, (np.number, np.bool_)) and value not in _ABSTRACT
]
"""The names of number classes that code uses as casts: np.float64(x)."""
_originals: dict[str, Any] = {name: getattr(np, name) for name in _NAMES}


def original(name: str) -> Callable[..., Any]:
    """NumPy's original function of this name."""
    function: Callable[..., Any] = _originals[name]
    return function


def holds_tracer(value: Any) -> bool:
    """True for traced values and for nested lists and tuples that contain one."""
    kind = type(value)
    if kind is Tracer or kind in CARRIERS:
        return True
    if kind is list or kind is tuple:
        return any([holds_tracer(item) for item in value])
    return False


def is_traced(value: Any) -> bool:
    """Whether a value for which `holds_tracer` is true contains more than intercepted arrays of plain numbers."""
    if type(value) in (list, tuple):
        return any([holds_tracer(item) and is_traced(item) for item in value])
    holds = getattr(type(value), "__func_holds_traced__", None)
    return holds is None or bool(holds(value))


class TracedElementSignal(Exception):
    """The signal of a traced value to NumPy's own converter of its list; the substitute takes over."""


class _Substituted:
    """The object that binds substitutes: as bound methods they pickle by name, like NumPy's own functions."""

    def __reduce__(self) -> Any:
        return importlib.import_module, ("numpy",)

    def __deepcopy__(self, memo: Any) -> Any:
        return self


_SUBSTITUTED = _Substituted()


def substitute(function: Callable[..., Any], name: str) -> Any:
    """A function of `_SUBSTITUTED` and NumPy's arguments that looks and pickles like NumPy's of this name."""
    model = _namespace[name]
    function.__name__ = function.__qualname__ = name
    function.__module__ = "numpy"
    function.__doc__ = model.__doc__
    return MethodType(function, _SUBSTITUTED)


def _converter(name: str) -> Any:
    original = _originals[name]

    def converter(bound: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            kind = type(args[0])
            if (kind is list or kind is tuple) and args[0]:
                kind = type(args[0][0])  # the first element alone: NumPy checks the others
            if kind is Tracer or kind in CARRIERS:
                if kind is not Tracer and not is_traced(args[0]):
                    return _adopting_converter(name, args, kwargs)
                return WIRING.convert_traced(name, *args, **kwargs)
        if kwargs and type(kwargs.get("like")) is Tracer:
            return WIRING.convert_traced(name, *args, **kwargs)
        if _adopts is not None and _adopts():
            return _adopting_converter(name, args, kwargs)
        try:
            return original(*args, **kwargs)
        except TracedElementSignal:
            return WIRING.convert_traced(name, *args, **kwargs)

    _CONVERTER_CODES.add(converter.__code__)
    return substitute(converter, name)


_CONVERTER_CODES: set[CodeType] = set()
_adopts: Callable[[], bool] | None = None
"""Whether `func.intercept` is on, after its first use."""


def _adopting_converter(name: str, args: Any, kwargs: Any) -> Any:
    """A converter of a process that uses `func.intercept`: arrays that it makes can hold traced values later."""
    if args and holds_tracer(args[0]) and is_traced(args[0]):
        return WIRING.convert_traced(name, *args, **kwargs)
    try:
        array = _originals[name](*args, **kwargs)
    except TracedElementSignal:
        return WIRING.convert_traced(name, *args, **kwargs)
    return WIRING.adopt_array(array, args[0] if args else None)


_CONVERTER_CODES.add(_adopting_converter.__code__)


def is_converting(caller: FrameType) -> bool:
    """Whether NumPy asks for a traced value as an array for one of the substitutes, which waits for a signal."""
    return caller.f_code in _CONVERTER_CODES


def adopt_results(creator: Callable[[str], Any], applies: Callable[[], bool]) -> None:
    """Let converters, and NumPy's functions where code calls them, consult `func.intercept` from now on."""
    global _adopts
    if _adopts is not None:
        return
    for name, value in list(_namespace.items()):
        is_function = callable(value) and not isinstance(value, type) and name[0] != "_"
        if is_function and name not in _NAMES:
            has_substitute = name in _originals
            only_calls = not has_substitute and name not in CREATORS
            holds = is_inside if has_substitute else applies
            setattr(TracedModule, name, _attribute(name, creator(name), holds, only_calls))
    _adopts = applies


class TracedModule(ModuleType):
    """The class of the module `numpy` while a transform runs."""

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)


def replace(**substitutes: Any) -> None:
    """Register substitutes for NumPy's objects of these names, in code that a transform runs."""
    for name, value in substitutes.items():
        _originals.setdefault(name, _namespace[name])
        setattr(TracedModule, name, _attribute(name, value, is_inside))


def replace_late(place: str, *names: str, only_calls: bool = False) -> None:
    """Register objects of a module as substitutes for NumPy's objects of these names, in code that a transform runs.

    The module is imported when such code first reads a name; with `only_calls`, code that calls it."""
    for name in names:
        _originals.setdefault(name, _namespace[name])
        setattr(TracedModule, name, _attribute(name, _Late(place, name), is_inside, only_calls))


class Substitute(NamedTuple):
    """A substitute for an object of NumPy or `math`, and the code that gets it."""

    original: Any
    value: Any
    applies: Callable[[], bool]
    module: str
    name: str

    def choice(self) -> Any:
        """The object for the code that runs now."""
        if not self.applies():
            return self.original
        return self.value.value() if type(self.value) is _Late else self.value


SUBSTITUTES: dict[int, Substitute] = {}
"""The substitutes, by the identity of the original."""


def is_replaced(value: Any) -> bool:
    """Whether a value is an object of NumPy or `math` that has a substitute, or gets one within `func.intercept`."""
    name = getattr(value, "__name__", None)
    is_creator = type(name) is str and name in CREATORS and _namespace[name] is value
    return is_creator or SUBSTITUTES.get(id(value), (None,))[0] is value is not None


_FORWARDING: set[int] = set()
"""The ids of the code of functions that pass on calls of substitutes, or reads of their names."""


def forwards_calls(function: F) -> F:
    """Decorate a function of a module that passes on a call of a substitute, or a read of its name."""
    _FORWARDING.add(id(getattr(function, "__code__")))  # noqa: B009
    return function


def calling_frame(depth: int) -> FrameType:
    """The frame that called a substitute: `depth` frames from the caller, without one that passes calls on."""
    frame = sys._getframe(depth + 1)
    return frame.f_back if id(frame.f_code) in _FORWARDING and frame.f_back is not None else frame


class _Late:
    """An object of a module, imported at its first use."""

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        self.name = name

    def value(self) -> Any:
        return getattr(importlib.import_module(self.place), self.name)


def _attribute(
    name: str,
    value: Any,
    applies: Callable[[], bool],
    only_calls: bool = False,
    namespace: dict[str, Any] = _namespace,
) -> property:
    """An attribute of NumPy's that is `value` where it applies, for Python code that asks for it by name."""
    original = namespace[name]
    SUBSTITUTES[id(original)] = Substitute(original, value, applies, namespace["__name__"], name)

    def read(module: Any) -> Any:
        present = namespace.get(name, read)
        if present is original:
            if applies():
                frame = sys._getframe(1)
                if only_calls and not calls_attribute(frame):
                    return present
                if type(value) is _Late and not only_calls and _is_of_func(frame):
                    return present
                if reads_attribute(frame, name) and not (_imports_in_progress and _is_importing(frame)):
                    return value.value() if type(value) is _Late else value
        elif present is read:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        return present

    def write(module: Any, new: Any) -> None:
        # a patch may restore the substitute
        is_own = new is (value.value() if type(value) is _Late else value)
        namespace[name] = original if is_own else new

    def delete(module: Any) -> None:
        if namespace.pop(name, read) is read:
            raise AttributeError(name)

    return property(read, write, delete)


def _is_of_func(frame: FrameType) -> bool:
    """Whether code of func runs for itself."""
    is_own = str(frame.f_globals.get("__name__")).startswith("func.")
    return is_own and id(frame.f_code) not in _FORWARDING


def is_inside() -> bool:
    """Whether the running code belongs to a transform: to its context, or to a thread that started while it ran."""
    return live_entry() is not None or threading.get_ident() not in _reference.threads or is_opened()


_imports_in_progress: Any = getattr(sys.modules.get("importlib._bootstrap"), "_module_locks", True)
"""Empty unless some thread imports a module."""


def _is_importing(frame: FrameType | None) -> bool:
    """Whether the code runs for an import that code inside the transform has started."""
    while frame is not None and not is_engine_file(file := frame.f_code.co_filename):
        if file == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


class TracedMath(ModuleType):
    """The class of the module `math` while a transform runs."""

    __reduce__ = TracedModule.__reduce__


class TracedComplexMath(ModuleType):
    """The class of the module `cmath` while a transform runs."""

    __reduce__ = TracedModule.__reduce__


_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees dist erf erfc exp exp2 expm1 fabs "
    "floor fmod fsum gamma hypot isclose isfinite isinf isnan lgamma log log10 log1p log2 modf pow prod radians sin "
    "sinh sqrt sumprod tan tanh trunc"
)
_math: Any = math
_math_namespace: Any = vars(math)
_math_functions: dict[str, Any] = {name: _math_namespace[name] for name in _MATH.split() if name in _math_namespace}


_COMPLEX_MATH = (
    "acos acosh asin asinh atan atanh cos cosh exp isclose isfinite isinf isnan log log10 phase polar rect sin sinh "
    "sqrt tan tanh"
)
_complex_math: Any = cmath
_complex_functions: dict[str, Any] = {name: vars(cmath)[name] for name in _COMPLEX_MATH.split()}


def original_complex(name: str) -> Callable[..., Any]:
    """The function of `cmath` of this name."""
    function: Callable[..., Any] = _complex_functions[name]
    return function


def original_math(name: str) -> Callable[..., Any]:
    """The function of `math` of this name."""
    function: Callable[..., Any] = _math_functions[name]
    return function


class Hold:
    """As long as one is referred to, `numpy`, `math` and `cmath` have the classes `TracedModule` and so on."""

    __slots__ = ("__weakref__",)


class _HoldReference(weakref.ref[Hold]):
    """The reference to a hold; its callback, necessarily a C function, calls `restore`."""

    restore = _module.__setattr__

    def __init__(self, hold: Hold, callback: Any) -> None:
        super().__init__(hold, callback)  # type: ignore[call-arg]
        self.after: dict[str, _HoldReference] = {}
        """`next`: the reference to the next hold. Creates a `__dict__` here, before another thread looks."""
        self.threads: tuple[int, ...] = ()
        """The threads that ran when the first of the running transforms started: if unknown, none."""


class _MathReference(weakref.ref[Hold]):
    """A further reference to a hold, whose callback gives the module `math` its class back."""

    restore = _math.__setattr__


class _ComplexMathReference(weakref.ref[Hold]):
    """The same for the module `cmath`."""

    restore = _complex_math.__setattr__


class _RunReference(weakref.ref[Hold]):
    """A further reference to a hold; its callback tells NumPy's dispatchers that no transform runs."""

    restore = TRACED.__setattr__


_restore: Any = operator.methodcaller("restore", "__class__", ModuleType)
_end_run: Any = operator.methodcaller("restore", "run", False)
_reference = _HoldReference(Hold(), _restore)  # which ends here


def hold_converters() -> Hold:
    """The present hold, or a new one."""
    hold = _reference()
    if hold is not None and type(_module) is TracedModule:
        return hold
    return _new_hold()


def _new_hold() -> Hold:
    # No lock: an interrupt could leave it locked, and a signal handler may start a transform while this runs.
    global _reference
    try:
        while (hold := _reference()) is None:
            last, hold = _reference, Hold()
            own: Any = _HoldReference(hold, _restore)
            own.run = _RunReference(hold, _end_run)
            own.math = _MathReference(hold, _restore)
            own.complex_math = _ComplexMathReference(hold, _restore)
            own.threads = tuple(_known_threads)
            _reference = last.after.setdefault("next", own)  # threads that start at once agree on one
            if _reference is not own:
                del own  # before its hold, so that its callback does not run
        _module.__class__ = TracedModule
        _math.__class__ = TracedMath
        _complex_math.__class__ = TracedComplexMath
        TRACED.run = True
        if TRACED.pending:
            WIRING.install_hooks()
        return hold
    except BaseException:
        hold = None  # a traceback would keep it
        raise


_known_threads: dict[int, Any] = getattr(threading, "_active", {})


def is_opened() -> bool:
    """Whether a transform that a call has opened is open in this context."""
    return any([opened.is_open for opened in _OPENED.get()])


def is_tracing() -> bool:
    """True while a transform runs in any thread."""
    return _reference() is not None


class OpenedTransform:
    """A transform that calls open and close, or one with a scope, such as a level of `func.autograd.forward_ad`."""

    __slots__ = ("_scope", "hold")

    def __init__(self, scope: Scope | None) -> None:
        self._scope = None if scope is None else weakref.ref(scope)
        self.hold: Hold | None = None
        self.renew()

    def renew(self) -> None:
        """Keep NumPy's converters substituted."""
        holder = self if self._scope is None else self._scope()
        if holder is not None:
            holder.hold = hold_converters()

    @property
    def is_open(self) -> bool:
        """Whether it has neither been closed nor has its scope ended."""
        return self.hold is not None if self._scope is None else self._scope() is not None

    def close(self) -> None:
        """End it; its scope ends by itself."""
        self.hold = None


_OPENED: ContextVar[tuple[OpenedTransform, ...]] = ContextVar("func_opened", default=())


def open_transform(scope: Scope | None = None) -> OpenedTransform:
    """Start a transform that lasts until `close_transform`, or as long as a scope."""
    opened = OpenedTransform(scope)
    _OPENED.set((*_OPENED.get(), opened))
    return opened


def close_transform(opened: OpenedTransform) -> None:
    """End a transform, perhaps in another context than that of its start."""
    opened.close()
    _OPENED.set(tuple([other for other in _OPENED.get() if other.is_open and other is not opened]))


def called_inside(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a call during which NumPy's converters take traced values.

    In a transform they do so anyway, but not for tensors alone.
    """
    hold = hold_converters()
    opened = None if is_inside() else open_transform()
    try:
        return function(*args, **kwargs)
    finally:
        if opened is not None:
            close_transform(opened)
        del hold


def with_converters(function: F) -> F:
    """The function, called as by `called_inside` once traced values exist."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if TRACED.run or TRACED.stay:
                return called_inside(function, args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    return call  # type: ignore[return-value]


def _after_fork() -> None:
    """In a child only the forking thread continues: ends the transforms of the other threads."""
    global _reference
    if _reference() is None:
        return
    threads, _reference = _reference.threads, _HoldReference(Hold(), _restore)
    _reference.threads = threads
    _module.__class__ = _math.__class__ = _complex_math.__class__ = ModuleType
    TRACED.run = False
    for entry in live_entries():
        entry.scope().hold = hold_converters()
    for opened in _OPENED.get():
        if opened.is_open:
            opened.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

for _name in _NAMES:
    replace(**{_name: _converter(_name)})
replace_late("func.numpy.concatenators", "r_", "c_")
replace_late("func.numpy.casts", *SCALAR_CLASSES, only_calls=True)
replace_late(
    "func.numpy.casts", "apply_along_axis", "arange", "asarray_chkfinite", "fromiter", "full", "piecewise", "require"
)


_VECTORIZED_CALL = _Late("func.numpy.casts", "vectorized_call")


def _with_elements(vectorize_call: Callable[..., Any]) -> Callable[..., Any]:
    """The method by which objects of np.vectorize call their function, also on traced arrays."""

    @functools.wraps(vectorize_call)
    def call(self: Any, func: Any, args: Any) -> Any:
        try:
            if not (TRACED.run or TRACED.stay):
                return vectorize_call(self, func, args)
            if not any([holds_tracer(x) and is_traced(x) for x in args]):
                try:
                    return vectorize_call(self, func, args)
                except Exception as error:
                    if not isinstance(error.__cause__ or error, FuncError):
                        raise  # else: results of a function that refers to traced values
            return _VECTORIZED_CALL.value()(self, func, args)
        except Exception as error:
            hide_outside(error)
            raise

    return call


def hook_vectorize() -> None:
    """Let objects of np.vectorize take traced arrays, including objects that exist already."""
    method: Any = np.vectorize._vectorize_call  # type: ignore[attr-defined]
    if not hasattr(method, "__wrapped__"):
        np.vectorize._vectorize_call = _with_elements(method)  # type: ignore[attr-defined]


for _kind, _functions, _place in (
    (TracedMath, _math_functions, "func.numpy.scalar_math"),
    (TracedComplexMath, _complex_functions, "func.numpy.complex_math"),
):
    _names_of_module: dict[str, Any] = vars(_math if _kind is TracedMath else _complex_math)
    for _name in _functions:
        setattr(_kind, _name, _attribute(_name, _Late(_place, _name), is_inside, namespace=_names_of_module))
