"""NumPy's dispatch protocols on traced arrays, and the tables of traced versions of NumPy's functions.

No namespace is wrapped. `np.sin(x)` reaches `ufunc_protocol`, `np.mean(x)` reaches `function_protocol`; both look up
the NumPy function and call its traced version. A ufunc of one traced array calls apply1 of its interpreter directly,
without the search of `bind` for the highest level.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np
from numpy import ndarray

from func.backends.array_helpers.strides import order_letter
from func.interpreters.core import EVALUATE, Primitive, Tracer, dtype_of, has_rules, operand, shape_of
from func.interpreters.core.errors import ForeignArrayError, UnsupportedFunctionError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import at_line
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.primitives.elementwise.pointwise import call_numpy
from func.interpreters.primitives.structural.shapes import where as select
from func.numpy.argument_checks import weak_kind
from func.numpy.late_names import module_of, modules
from func.numpy.memory import in_order

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
            table.update(dict.fromkeys(map(_numpys, keys), function))
            return function

        return register

    return implements


def _numpys(function: Any) -> Any:
    """NumPy's own function behind the substitute that a transform gives to modules."""
    return vars(np)[function.__name__] if isinstance(function, MethodType) else function


implements = _registrar(FUNCTIONS)
"""`@implements(np.mean)` registers a function as the traced version of NumPy functions."""

implements_creation = _registrar(CREATION)
"""The same for functions that NumPy dispatches by `like=`, which it consumes; the traced array is passed as `like`."""

implements_ufunc = _registrar(UFUNCS)
"""The same for ufuncs."""


def member(original: F, doc: str) -> Callable[[Callable[..., Any]], F]:
    """`@member(np.var, doc)` registers one function of a family with a common body, under NumPy's name.

    Type checkers see NumPy's function, with its parameters.
    """

    def register(function: Any) -> F:
        name = function.__name__ = function.__qualname__ = getattr(_numpys(original), "__name__")  # noqa: B009
        function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
        function.__doc__ = doc
        return cast(F, implements(original)(function))

    return register


LATE: list[Callable[[], None]] = []
"""Functions that register further ufuncs, after the import of the modules that have them."""


def ufunc_function(ufunc: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`@ufunc_function(np.sign)` registers the traced version of a ufunc and makes it a public function.

    A call with keywords (`out`, `where`, `dtype`) goes to NumPy's ufunc, which calls the traced version if an operand
    is traced. The methods (`reduce`, `at`) are those of the ufunc. The result is None if this version of NumPy lacks
    the ufunc.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if ufunc is None:
            return function
        UFUNCS[ufunc] = function

        @functools.wraps(function)
        def call(*inputs: Any, **keywords: Any) -> Any:
            if keywords or len(inputs) != ufunc.nin:
                return call_numpy(ufunc, inputs, keywords)
            return function(*inputs)

        for method in ("reduce", "accumulate", "outer", "reduceat", "at"):
            setattr(call, method, getattr(ufunc, method))
        return call

    return register


_ABSENT = object()


def ufunc_protocol(self: Tracer, ufunc: Any, method: str, x: Any, y: Any = _ABSENT, *more: Any, **kwargs: Any) -> Any:
    """Tracer.__array_ufunc__. The inputs are spelled out because collecting them costs as much as the dispatch."""
    try:
        if method == "__call__" and not kwargs and not more:
            primitive = DIRECT.get(ufunc)
            if primitive is not None:
                if y is _ABSENT:
                    return x._interpreter.apply1(primitive, x)
                other = type(y if type(x) is Tracer else x)
                if other is not Tracer and other is not ndarray and has_rules(other):
                    return NotImplemented
                return primitive(x if type(x) is Tracer else operand(x), y if type(y) is Tracer else operand(y))
            function = UFUNCS.get(ufunc)
            if function is not None and y is _ABSENT:
                return function(x)
            if function is not None and not has_rules(type(y if type(x) is Tracer else x)):
                return function(x, y)
        inputs = (x, *more) if y is _ABSENT else (x, y, *more)
        if any([has_rules(type(value)) for value in inputs]):
            return NotImplemented
        if method == "__call__":
            return call_ufunc(ufunc, DIRECT.get(ufunc), inputs, kwargs)
        if not METHODS:
            importlib.import_module("func.numpy.ufunc_methods")
        handler = METHODS.get(method)
        if handler is None:
            raise UnsupportedFunctionError(f"np.{ufunc.__name__}.{method} has no traced version{at_line()}")
        return handler(ufunc, *inputs, **kwargs)
    except Exception as error:
        hide_outside(error)
        raise


def rule_of(ufunc: Any) -> Callable[..., Any] | None:
    """The traced version of a ufunc. The first one of SciPy imports the modules of func that register them."""
    function = DIRECT.get(ufunc) or UFUNCS.get(ufunc)
    place = module_of(ufunc) if function is None else None
    if place is not None:
        importlib.import_module(place)
        function = DIRECT.get(ufunc) or UFUNCS.get(ufunc)
    for package, own in (("scipy.special", "func.special"), ("scipy.stats", "func.scipy.stats")):
        if function is None and package in sys.modules and own not in sys.modules:
            importlib.import_module(own)
        if function is None:
            for register in LATE:
                register()
            function = DIRECT.get(ufunc) or UFUNCS.get(ufunc)
    if function is None and not isinstance(ufunc, np.ufunc):
        function = importlib.import_module("func.numpy.casts").rule_of_compiled(ufunc)
    return function


def _instead_of(ufunc: Any) -> str:
    if ufunc.__name__.endswith(" (vectorized)"):
        return "np.frompyfunc computes with Python objects: write np.vectorize(f), which takes traced arrays."
    return "Write it with NumPy functions that have one, or give it a derivative with func.custom_jvp."


_KEYWORDS = {"out", "where", "casting", "order", "dtype", "subok", "signature", "sig"}


_COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
"""Ufuncs that take Python integers beyond the range of the other operand's dtype."""


def call_ufunc(ufunc: Any, primitive: Primitive | None, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc call with keywords or without a primitive.

    NumPy itself selects the loop by the dtypes, `dtype`, `signature` and `casting`. This converts the operands to the
    dtypes of the loop, and the results to those of `out`.
    """
    function: Callable[..., Any] | None = primitive if primitive is not None else rule_of(ufunc)
    if function is None:
        name = f"{'np.' if isinstance(ufunc, np.ufunc) else ''}{ufunc.__name__}"
        raise UnsupportedFunctionError(f"{name} has no traced version{at_line()}\n{_instead_of(ufunc)}")
    options = {key: kwargs.pop(key) for key in _KEYWORDS & kwargs.keys()}
    order = order_letter(options.get("order"))
    out = options.get("out")
    outs = out if isinstance(out, tuple) else (out,) * ufunc.nout
    if len(outs) != ufunc.nout:
        raise ValueError("The 'out' tuple must have exactly one entry per ufunc output")
    args = [x if type(x) is Tracer else operand(x) for x in inputs]
    loop = None
    if options.keys() & {"out", "casting", "dtype", "signature", "sig"}:
        loop = loop_dtypes(ufunc, args, outs, options)
        args = [
            x if type(x) is int and ufunc in _COMPARISONS else WIRING.cast_operand(x, dtype)
            for x, dtype in zip(args, loop, strict=False)
        ]
    if ufunc is np.power and options.get("where", True) is not True and dtype_of(args[1]).kind in "iu":
        args[1] = select(_as_mask(options["where"]), args[1], 0)  # masked elements may be negative
    result = _over_axes(ufunc, function, args, kwargs) if ufunc.signature is not None else function(*args, **kwargs)
    where = options.get("where", True)
    if order != "K" and out is None:
        result = tuple([in_order(r, order) for r in result]) if isinstance(result, tuple) else in_order(result, order)
    if loop is None and where is True:
        return result
    results = result if isinstance(result, tuple) else (result,)
    if loop is not None:
        results = tuple([WIRING.cast_operand(r, t) for r, t in zip(results, loop[ufunc.nin :], strict=True)])
    shape = np.broadcast_shapes(*[shape_of(x) for x in (*results, where, *outs)])
    fitted = [_fitted(ufunc, r, t, where, shape) for r, t in zip(results, outs, strict=True)]
    for target in outs:
        WIRING.check_write(target)  # if one check fails, write none
    delivered = tuple([r if t is None else WIRING.write_into(t, r) for r, t in zip(fitted, outs, strict=True)])
    return delivered if isinstance(result, tuple) else delivered[0]


def loop_dtypes(ufunc: Any, args: list[Any], outs: Any, options: dict[str, Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the loop that NumPy would run, operands first; raises NumPy's errors where there is none."""
    choice: dict[str, Any] = {}
    if options.get("dtype") is not None:
        choice["signature"] = (None,) * ufunc.nin + (np.dtype(options["dtype"]),) * ufunc.nout
    elif "signature" in options or "sig" in options:
        choice["signature"] = options.get("signature", options.get("sig"))
    casting = options.get("casting", "same_kind")
    kinds = [weak_kind(x) or dtype_of(x) for x in args]
    targets = [None if x is None else dtype_of(x) for x in outs]
    if ufunc.signature is None:
        # Python numbers adapt, and `resolve_dtypes` crashes on those it rejects: the ufunc itself checks first.
        probes = [
            np.empty(0, kind) if isinstance(kind, np.dtype) else kind(1) if type(x) is Tracer else x
            for x, kind in zip(args, kinds, strict=True)
        ]
        places = tuple([None if target is None else np.empty(0, target) for target in targets])
        ufunc(*probes, out=places, casting=casting, **choice)
        casting = "unsafe"
    loop: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes((*kinds, *targets), casting=casting, **choice)
    return loop


def _fitted(ufunc: Any, result: Any, target: Any, where: Any, shape: tuple[int, ...]) -> Any:
    """A result as `out` takes it, if there is one; elements outside `where` keep the value of `out`."""
    if target is None:
        if where is True:
            return result
        raise UnsupportedFunctionError(
            f"np.{ufunc.__name__}(where=...) on a traced array needs out=, as elements are undefined without{at_line()}"
        )
    if shape != shape_of(target):
        raise ValueError(
            f"non-broadcastable output operand with shape {shape_of(target)} doesn't match the broadcast shape {shape}"
        )
    result = WIRING.cast_operand(result, dtype_of(target))
    if where is not True:
        result = select(_as_mask(where), result, target)
    if shape_of(result) != shape:
        result = WIRING.broadcast(result, shape=shape)
    return result


def _as_mask(where: Any) -> Any:
    """The keyword `where` of a ufunc, which must be boolean."""
    where = operand(where)
    if dtype_of(where).kind != "b":
        raise TypeError(f"where: cannot cast from {dtype_of(where)!r} to dtype('bool') according to the rule 'safe'")
    return where


def _over_axes(ufunc: Any, function: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Any:
    """A ufunc of vectors and matrices with `axes`, `axis` or `keepdims`, by its traced version over the last axes."""
    has_scalar_core = ufunc.signature.split("->")[1] == "()"
    if "keepdims" in options and not has_scalar_core:
        raise TypeError(f"{ufunc.__name__} does not support keepdims: its results have core dimensions")
    axes, axis, keepdims = [options.pop(name, None) for name in ("axes", "axis", "keepdims")]
    if axes is None and axis is None and not keepdims:
        return function(*args, **options)
    if axis is not None:
        if axes is not None:
            raise TypeError("cannot specify both 'axis' and 'axes'")
        if not has_scalar_core:
            raise TypeError(f"{ufunc.__name__}: axis can only be used with a single shared core dimension")
        axes = [(axis,)] * ufunc.nin + ([(axis,)] if keepdims else [])
    entries = [] if axes is None else [_axis_tuple(entry) for entry in axes]
    if axes is not None and len(entries) != ufunc.nin + 1 and not (has_scalar_core and len(entries) == ufunc.nin):
        raise ValueError(f"axes should be a list with an entry for all {ufunc.nin + 1} inputs and outputs")
    last = [tuple(range(-len(entry), 0)) for entry in entries]
    if entries:
        args = [np.moveaxis(x, entry, end) for x, entry, end in zip(args, entries, last, strict=False)]
    result = function(*args, **options)
    states_output = len(entries) > ufunc.nin
    if keepdims:
        return np.expand_dims(result, entries[-1] if states_output else -1)
    return np.moveaxis(result, last[-1], entries[-1]) if states_output else result


def _axis_tuple(entry: Any) -> tuple[int, ...]:
    return tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)


def function_protocol(self: Tracer, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Tracer.__array_function__."""
    try:
        traced = FUNCTIONS.get(function) or _imported_version(function)
        return _untraced_function(self, function, args, kwargs) if traced is None else traced(*args, **kwargs)
    except ForeignArrayError:
        if len(types) > 1:  # NumPy asks the others, and raises where none of them knows the function
            return NotImplemented
        raise
    except Exception as error:
        hide_outside(error)
        raise


def _imported_version(function: Any) -> Callable[..., Any] | None:
    """The traced version of a function whose module is not imported yet, or None.

    A function with another name in NumPy than in func.numpy requires the import of all modules.
    """
    if function in CREATION:
        return None
    place = module_of(function)
    if place is not None:
        importlib.import_module(place)
    if function not in FUNCTIONS and function not in CREATION:
        _import_all()
    return FUNCTIONS.get(function)


@functools.cache
def _import_all() -> None:
    for name in modules():
        importlib.import_module(name)


def _untraced_function(tracer: Tracer, function: Any, args: Any, kwargs: Any) -> Any:
    """A function that makes arrays, or one without a traced version, on the arrays of concrete tracers."""
    if function in CREATION:
        return CREATION[function](*args, **kwargs, like=tracer)
    concrete = _concrete_values((args, kwargs))
    if concrete is not None:
        return _as_tracers(function(*concrete[0], **concrete[1]))
    module = getattr(function, "__module__", "numpy")
    if module.startswith("numpy.polynomial"):
        return function._implementation(*args, **kwargs)
    raise UnsupportedFunctionError(
        f"{module.replace('numpy', 'np', 1)}.{function.__name__} has no traced version{at_line()}\n"
        "Write it with NumPy functions that have one, or give it a derivative with func.custom_jvp. Of a tensor's "
        "numbers alone it can be called as they are in x.detach()."
    )


def _concrete_values(value: Any) -> Any:
    """Arguments with the arrays of level 0; None if a value is traced, or `out` is."""
    kind = type(value)
    if kind is Tracer:
        return value._value if value._interpreter is EVALUATE else None
    if kind in (list, tuple):
        items = [_concrete_values(item) for item in value]
        return (
            None
            if any([new is None and old is not None for new, old in zip(items, value, strict=True)])
            else kind(items)
        )
    if kind is dict:
        values = _concrete_values(list(value.values()))
        is_written = type(value.get("out")) is Tracer
        return None if values is None or is_written else dict(zip(value, values, strict=True))
    return value


def _as_tracers(out: Any) -> Any:
    """The arrays in a result of NumPy's as tracers of level 0, like the arguments."""
    if isinstance(out, (list, tuple)):
        return type(out)([_as_tracers(item) for item in out]) if type(out) in (list, tuple) else out
    return WIRING.mark_tensor(out) if type(out) is ndarray else out
