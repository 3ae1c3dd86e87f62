"""Hooks: SciPy's own functions look for traced values, and hand them to func's versions.

`from scipy.linalg import solve` binds a function object to a name of the user. So the object stays, with code that
first checks one flag: whether traced values exist (a running transform, a tensor). If not, it does the same as before.
If so, and an argument contains a traced value, it imports and calls func's version. Methods are functions too. A class
has its hook in `__init__`, which turns the object into one of func's class. `func.host.scipy_table` lists the targets
of the hooks.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from func import tree
from func.host.dispatchers import function_code, with_prefix
from func.host.interception import intercepted_call, without_intercepted
from func.host.patching import called_inside
from func.host.private_names import with_reason
from func.host.scipy_table import TABLE, unsupported
from func.interpreters.core import CARRIERS, TRACED, Tracer
from func.interpreters.host.public_functions import behind
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.host.swallowed_errors import hide_outside

_HOOK, _TRACED = "<hook>", "<traced>"
"""Constants that represent objects in the text of a hook's code."""
_EXIST = f"{_TRACED!r}.run or {_TRACED!r}.stay"
MAX_DEPTH = 4
"""The depth of the search in lists, tuples and dicts."""

"""The entries with hooks, for each module of SciPy."""
HOLDERS = {
    "scipy.interpolate": (
        "PPoly", "BPoly", "_interpolate._PPolyBase", "NdPPoly", "BSpline", "_bsplines._BSpline", "NdBSpline",
        "RegularGridInterpolator", "interp1d", "KroghInterpolator", "BarycentricInterpolator",
        "UnivariateSpline", "BivariateSpline", "_fitpack2._DerivedBivariateSpline", "RBFInterpolator", "Rbf",
        "NearestNDInterpolator", "LinearNDInterpolator", "CloughTocher2DInterpolator", "FloaterHormannInterpolator",
    ),
    "scipy.signal": ("_ltisys.LinearTimeInvariant",),
    "scipy.stats": (
        "_distribution_infrastructure.UnivariateDistribution",
        "_multivariate.matrix_t_frozen",
        "_multivariate.multi_rv_frozen",
        "Covariance",
        "gaussian_kde",
    ),
}  # fmt: skip
"""Classes of SciPy whose objects store traced arguments as attributes."""
TREES = {"scipy.spatial.transform": ("Rotation",)}
"""Classes whose objects are trees of one leaf: `Class_leaf` and `Class_of_leaf` of func's module convert them."""


def holds_traced(value: Any, depth: int = 0) -> bool:
    """Whether a value is traced, a container with a traced value, or an object that reports one itself."""
    kind: Any = type(value)
    if kind is Tracer:
        return True
    if kind in CARRIERS:  # an array of func.intercept() reports it itself
        holds = getattr(kind, "__func_holds_traced__", None)
        return holds is None or bool(holds(value))
    if kind is list or kind is tuple or (depth == 0 and issubclass(kind, tuple)):
        return depth < MAX_DEPTH and any([holds_traced(item, depth + 1) for item in value])
    if kind is dict:
        return depth < MAX_DEPTH and any([holds_traced(item, depth + 1) for item in value.values()])
    if kind is np.ndarray:
        return value.dtype.hasobject and any([holds_traced(item, MAX_DEPTH) for item in value.ravel().tolist()])
    holds = getattr(kind, "__func_holds_traced__", None)
    return holds is not None and bool(holds(value))


def is_key(value: Any) -> bool:
    """Whether a value has the shape and dtype of a key of func.random."""
    return getattr(value, "dtype", None) == np.uint32 and value.shape == (2,)


def _has_traced_attribute(self: Any) -> bool:
    """`__func_holds_traced__` of the objects of `HOLDERS`."""
    kind: Any = type(self)
    values = [*vars(self).values(), *[getattr(self, name, None) for name in _slots(kind)]]
    return any([holds_traced(value, MAX_DEPTH - 1) for value in values])


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    """The names of attributes that objects keep outside of their dictionary."""
    return tuple([name for base in kind.__mro__ for name in vars(base).get("__slots__", ())])


class Hook:
    """The callee of the code of a function with a hook."""

    condition = _EXIST
    """The moment of the check."""
    keeps_arguments = False
    """Whether its result shares memory with its arguments."""
    __slots__ = ("always", "function", "module", "name", "names", "original", "target", "values")

    def __init__(self, function: types.FunctionType, module: str, name: str, always: bool) -> None:
        self.function = function
        self.original = copied(function)
        self.module = module
        self.name = name
        self.always = always
        """Whether callbacks may bring traced values that the arguments do not show."""
        self.target: Callable[..., Any] | None = None
        self.names, self.values = _defaults(function)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The call while traced values exist."""
        try:
            is_compiled = any([type(x).__name__ == "LowLevelCallable" for x in args])  # it sees no traced values
            if (
                (is_compiled or not self.always)
                and not any([holds_traced(x) for x in args])
                and not holds_traced(kwargs)
            ):
                was_intercepting, out = without_intercepted(self.original, args, kwargs, keep=self.keeps_arguments)
                return out if was_intercepting else self.original(*args, **kwargs)
            if is_compiled and type(args[0]).__name__ == "LowLevelCallable":
                return self.original(*args, **kwargs)
            if self.target is None:
                self.target = self.load_target()
            return called_inside(self.target, self.without_defaults(args, kwargs), kwargs)
        except Exception as error:
            hide_outside(error)
            reason = with_reason(error, f"{self.module.removeprefix('func.')}.{self.name}")
            if reason is not error:
                raise hide_engine_frames(reason) from None
            raise

    def load_target(self) -> Callable[..., Any]:
        """The function of func that is the hook's target."""
        if self.name.startswith("~"):
            return intercepted_call(self.original)
        if self.name.startswith("="):
            return self.original
        if self.name.startswith("-"):
            return unsupported(f"{self.module.removeprefix('func.')}.{self.name[1:]}")
        target: Callable[..., Any] = behind(getattr(importlib.import_module(self.module), self.name))
        return target

    def without_defaults(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The positional arguments; drops or names defaults and all after the first."""
        for name, value in self.values.items():
            if name in kwargs and kwargs[name] is value:
                del kwargs[name]
        positional = list(args)
        for i, name in enumerate(self.names[: len(positional)]):
            if name in self.values and positional[i] is self.values[name]:
                rest = zip(self.names[i:], positional[i:], strict=False)
                kwargs.update({name: x for name, x in rest if x is not self.values.get(name, _ABSENT)})
                return positional[:i]
        return positional

    def first(self, *args: Any, **kwargs: Any) -> Any:
        """The first call without traced values: from now on the test precedes the original code itself."""
        code = with_prefix(self.original.__code__, f"if {_EXIST}:\n    return {_HOOK!r}.call({{}})\n")
        if code is None:  # without its source, or compiled from another one
            code = _stub(self.original, self.condition, "original")
        self.function.__code__ = self.bound(code)
        try:
            return self.original(*args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    def bound(self, code: types.CodeType) -> types.CodeType:
        """Code with objects instead of the constants that represent them, and the original's name and location."""
        objects = {_HOOK: self, _TRACED: TRACED}
        old = self.original.__code__
        return code.replace(
            co_consts=tuple([objects.get(c, c) if type(c) is str else c for c in code.co_consts]),
            co_name=old.co_name,
            co_qualname=old.co_qualname,
            co_filename=old.co_filename,
            co_firstlineno=old.co_firstlineno,
        )


_ABSENT = object()
HOOKS: dict[types.FunctionType, Hook] = {}
"""The functions that have a hook."""


def original(function: Any) -> Callable[..., Any]:
    """A function of SciPy without its hook."""
    hook = HOOKS.get(function)
    return function if hook is None else hook.original


def copied(function: types.FunctionType) -> types.FunctionType:
    """A new function object with the same code."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def _defaults(function: types.FunctionType) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of the positional parameters, and the defaults by name; empty for any number of arguments."""
    code = function.__code__
    values = dict(function.__kwdefaults__ or {})
    if code.co_flags & inspect.CO_VARARGS or code.co_posonlyargcount:
        return (), values
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    return names, values | dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))


def _stub(function: types.FunctionType, condition: str, otherwise: str = "first") -> types.CodeType:
    """Code with the parameters of a function that asks its hook, and else calls the hook's attribute of a name."""
    code = function.__code__
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames[: count + keywords])
    signature, words = names[:count], names[:count]
    if code.co_posonlyargcount:
        signature = [*signature[: code.co_posonlyargcount], "/", *signature[code.co_posonlyargcount :]]
    place = count + keywords
    if code.co_flags & inspect.CO_VARARGS:
        signature.append(f"*{code.co_varnames[place]}")
        words = [*words, signature[-1]]
        place += 1
    elif keywords:
        signature.append("*")
    signature += names[count:]
    words += [f"{name}={name}" for name in names[count:]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        signature.append(f"**{code.co_varnames[place]}")
        words.append(signature[-1])
    call = f"({', '.join(words)})"
    text = (
        f"    def function({', '.join(signature)}):\n"
        f"        if {condition}:\n"
        f"            return {_HOOK!r}.call{call}\n"
        f"        return {_HOOK!r}.{otherwise}{call}\n"
    )
    free = code.co_freevars
    if not free:
        return _compiled(text.replace("\n    ", "\n")[4:])
    body = f"def outer({', '.join(free)}):\n{text}        ({', '.join(free)},)\n    return function\n"
    outer = _compiled(body)
    return next(constant for constant in outer.co_consts if isinstance(constant, types.CodeType))


@functools.cache
def _compiled(text: str) -> types.CodeType:
    """The code of a text, which functions with the same parameters share until it is bound to one."""
    return function_code(text, __file__)


TO_REGISTER: set[str] = set()
"""Modules of SciPy whose module of func registers itself when it has been imported."""


def register_late(namespace: dict[str, Any]) -> None:
    """The end of a func module with a function `register` calls this."""
    module = namespace["__name__"].removeprefix("func.")
    if module in TO_REGISTER:
        TO_REGISTER.discard(module)
        namespace["register"]()


def install(module: str) -> None:
    """Give the functions of a module of SciPy their hooks, also those that it has defined since the last call."""
    scipy_module = sys.modules.get(module)
    if scipy_module is None:
        return
    for name, imported in list(sys.modules.items()):
        if name.startswith("scipy.") and imported is not None:
            _look_up_numpy(imported)
    if module in ("scipy.fft", "scipy.sparse"):
        own = importlib.import_module(f"func.{module}")
        if hasattr(own, "register"):
            own.register()
        else:  # func's module has started its import, and has imported SciPy's
            TO_REGISTER.add(module)
    for path in HOLDERS.get(module, ()):
        kind: Any = scipy_module
        for part in path.split("."):
            kind = getattr(kind, part, None)
        if kind is not None:
            kind.__func_holds_traced__ = _has_traced_attribute
    target = "func.scipy.numpy_series" if module.startswith("numpy.") else "func." + module
    for name in TREES.get(module, ()):
        _register_tree(getattr(scipy_module, name, None), target, name)
    for entry in entries(scipy_module, TABLE.get(module, "")):
        always, keyed = entry.endswith("()"), entry.endswith("!")
        path = entry.removesuffix("()").removesuffix("!").lstrip("~=-")
        holder: Any = scipy_module
        value: Any = scipy_module
        for part in path.split("."):
            holder, value = value, _of_class(value, part) if isinstance(value, type) else getattr(value, part, None)
        name = entry if entry.startswith("-") else entry[: entry.startswith(("~", "="))] + path.replace(".", "_")
        is_cython = type(value).__name__ in ("cython_function_or_method", "fused_cython_function")
        if isinstance(value, types.BuiltinFunctionType) or (is_cython and isinstance(holder, types.ModuleType)):
            value = _function_in_python(holder, path.rpartition(".")[2], value)
        elif is_cython and "." in path:
            value = _in_python(getattr(scipy_module, path.split(".")[0]), path.split(".")[1], value)
        if isinstance(value, type):
            _add_class_hook(value, target, name)
        for function in (value.fget, value.fset) if isinstance(value, property) else (value,):
            if isinstance(function, types.FunctionType):
                add_hook(function, target, name, always, keyed)


def entries(module: types.ModuleType, table: str) -> Iterator[str]:
    """The entries of a table; for `-module.*` and `~*` one for each public name, for `Class.{a, b}` for each method."""
    for entry in re.sub(r",\s+", ",", table).split():
        before, _, rest = entry.partition("{")
        inner, _, after = rest.partition("}")
        if rest:
            yield from [f"{before}{name}{after}" for name in inner.split(",")]
        elif entry.endswith("*"):
            public = getattr(module, entry[1:-2], None) if entry[1:-2] else module
            names = getattr(public, "__all__", ())
            listed = set(table.split()) if entry == "~*" else ()
            yield from [
                f"{entry[:-1]}{name}" for name in names if name not in listed and callable(getattr(public, name, None))
            ]
        else:
            yield entry


def target_names(module: types.ModuleType) -> set[str]:
    """The names in func's module to which the hooks of a module of SciPy lead."""
    rows = entries(module, TABLE[module.__name__])
    return {row.removesuffix("()").replace(".", "_") for row in rows if not row.startswith(("~", "=", "-"))}


@functools.cache
def _register_tree(kind: Any, module: str, name: str) -> None:
    """Make a class of SciPy one of `TREES`; its functions are imported at their first call."""

    def flatten(value: Any) -> tuple[tuple[Any, ...], None]:
        return (getattr(importlib.import_module(module), f"{name}_leaf")(value),), None

    def unflatten(_: None, leaves: Sequence[Any]) -> Any:
        return getattr(importlib.import_module(module), f"{name}_of_leaf")(leaves[0])

    if kind is not None:
        tree.register_node(kind, flatten, unflatten)


_CREATORS = {
    name: vars(np)[name]  # in a running transform np itself has others
    for name in (
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "copy", "empty",
        "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones", "ones_like", "zeros", "zeros_like",
    )
}  # fmt: skip
_NAME_OF = {id(function): name for name, function in _CREATORS.items()}


def _look_up_numpy(module: types.ModuleType) -> None:
    """Let the names of NumPy's creation functions in a SciPy module look them up in NumPy from here on.

    While a transform runs, NumPy has other functions under these names: see `func.host.patching`.
    """
    namespace = vars(module)
    file = namespace.get("__file__") or "<scipy>"
    for key, value in list(namespace.items()):
        name = _NAME_OF.get(id(value))
        if name is not None and file.endswith(".py"):
            namespace[key] = _looked_up(name, file)


def _looked_up(name: str, file: str) -> Callable[..., Any]:
    """A function that calls NumPy's of this name."""
    text = (
        f"def {name}(*args, **kwargs):\n"
        "    if traced.run or traced.stay:\n"
        f"        return numpy.{name}(*args, **kwargs)\n"
        "    return original(*args, **kwargs)\n"
    )
    namespace = {"__builtins__": builtins, "numpy": np, "original": _CREATORS[name], "traced": TRACED}
    function = types.FunctionType(function_code(text, file), namespace, name)
    return functools.update_wrapper(function, _CREATORS[name], ("__module__", "__doc__", "__qualname__"))


def _of_class(scipy_class: type, name: str) -> Any:
    """The attribute of a class or one of its bases; for a class method or a static method, its function."""
    value = next((vars(base)[name] for base in scipy_class.__mro__ if name in vars(base)), None)
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def _look_like(call: Any, compiled: Any) -> None:
    """Let a function look like the compiled one that it calls, in tracebacks too."""
    functools.update_wrapper(call, compiled)
    call.__code__ = call.__code__.replace(co_filename=f"<{compiled.__module__}>")


def _function_in_python(module: types.ModuleType, name: str, compiled: Any) -> Any:
    """A compiled function of a module, replaced by one that calls it and can have a hook.

    Earlier names of the user for the compiled one keep it, without a hook.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    _look_like(call, compiled)
    for holder in (module, sys.modules.get(compiled.__module__)):
        if holder is not None and getattr(holder, name, None) is compiled:
            setattr(holder, name, call)
    return call


def _in_python(scipy_class: type, name: str, compiled: Any) -> Any:
    """A compiled method of a Python class, replaced by a function that calls it and can have a hook.

    A compiled class keeps its method, without a hook.
    """

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(self, *args, **kwargs)
        except Exception as error:
            hide_outside(error)
            raise

    _look_like(call, compiled)
    owner: Any = next((base for base in scipy_class.__mro__ if vars(base).get(name) is compiled), None)
    try:
        setattr(owner, name, call)
    except (AttributeError, TypeError):
        return compiled
    return call


def add_hook(function: types.FunctionType, module: str, name: str, always: bool = False, keyed: bool = False) -> None:
    """Give a function its hook."""
    if function in HOOKS:
        return
    hook = (_KeyHook if keyed else Hook)(function, module, name, always)
    if HOOKS.setdefault(function, hook) is hook:
        function.__code__ = hook.bound(_stub(function, hook.condition))


class _KeyHook(Hook):
    """The hook of a function that draws samples, which takes keys of func.random."""

    condition = "True"
    __slots__ = ()

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Any call."""
        if any([is_key(value) or hasattr(type(value), "next_key") for value in (*args, *kwargs.values())]):
            return called_inside(self.load_target(), args, kwargs)
        exists = TRACED.run or TRACED.stay
        return super().call(*args, **kwargs) if exists else self.original(*args, **kwargs)


def _add_class_hook(scipy_class: type, module: str, name: str) -> None:
    """Objects of a class with traced arguments become objects of func's class of this name."""
    init = vars(scipy_class).get("__init__")
    if type(init).__name__ == "cython_function_or_method":
        init = _in_python(scipy_class, "__init__", init)
    if not isinstance(init, types.FunctionType) or init in HOOKS:
        return
    hook = _ClassHook(init, module, name, scipy_class)
    if HOOKS.setdefault(init, hook) is hook:
        init.__code__ = hook.bound(_stub(init, hook.condition))


@functools.cache
def _with_base(kind: type, own: type) -> type:
    """A user's subclass of a class of SciPy's, with func's methods where the user defined none."""
    return type(kind.__name__, (kind, own), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


class _ClassHook(Hook):
    """The hook of a class, in its `__init__`."""

    keeps_arguments = True
    __slots__ = ("scipy_class",)

    def __init__(self, function: types.FunctionType, module: str, name: str, scipy_class: type) -> None:
        super().__init__(function, module, name, always=False)
        self.scipy_class = scipy_class

    def load_target(self) -> Callable[..., Any]:
        """The class change of an object; a user's subclass gets func's class as a base, SciPy's stay unchanged."""
        if self.name.startswith(("~", "-")):
            return super().load_target()
        own: Any = getattr(importlib.import_module(self.module), self.name)

        def become(self_: Any, *args: Any, **kwargs: Any) -> None:
            kind: Any = type(self_)
            if kind is not self.scipy_class and (issubclass(kind, own) or kind.__module__.startswith("scipy.")):
                self.original(self_, *args, **kwargs)
                return
            self_.__class__ = own if kind is self.scipy_class else _with_base(kind, own)
            own.__init__(self_, *args, **kwargs)

        return become
