"""Transforms and their results: functions that pickle and copy by the call that made them."""

from __future__ import annotations

import functools
import inspect
import reprlib
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, cast

from func.interpreters.core.errors import BlockedArrayError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import hide_engine_frames
from func.transforms.boundary import check_callable, name_of, with_interception

if TYPE_CHECKING:
    from func.transforms.signatures import (
        FunctionOf,
        KeepsParameters,
        KeepsSignature,
        Options,
        T,
        ValueFirst,
        ValueLast,
    )

WHAT = {
    "grad": "Gradient of {}",
    "value_and_grad": "Value and gradient of {}",
    "grad_and_value": "Gradient and value of {}",
    "elementwise_grad": "Derivative at each element of {}",
    "jacobian": "Jacobian of {}",
    "jacrev": "Jacobian, by reverse mode, of {}",
    "jacfwd": "Jacobian, by forward mode, of {}",
    "hessian": "Hessian of {}",
    "laplacian": "Laplacian of {}",
    "divergence": "Divergence of {}",
    "vmap": "Vectorised {}",
}
"""The first words of the documentation of a transform's result; {} is the function's name."""
_FUNCTIONS = (types.FunctionType, functools.partial)
"""The attributes that a result may set."""
_ASSIGNED = tuple([name for name in functools.WRAPPER_ASSIGNMENTS if name != "__doc__"])


class Transformed(functools.partial[Any]):
    """A function that a transform made of another one; it calls as fast as a function, and binds as a method."""

    __slots__ = ("_options", "_transform")
    __wrapped__: Callable[..., Any]
    _options: dict[str, Any]
    _transform: Callable[..., Any]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def __doc__(self) -> str:
        """The transform and its function, then the signature and documentation of that function."""
        if "__doc__" in self.__dict__:
            return str(self.__dict__["__doc__"])
        function = self.__wrapped__
        name = getattr(function, "__name__", None) or type(function).__name__
        try:
            signature = str(inspect.signature(function))
        except (TypeError, ValueError):
            signature = "(...)"
        what = WHAT.get(self._transform.__name__, f"func.{self._transform.__name__} of {{}}").format(name)
        documented = inspect.getdoc(function)
        return f"{what}{self._chosen()}.\n\n{name}{signature}" + (f"\n\n{documented}" if documented else "")

    @__doc__.setter
    def __doc__(self, text: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.__dict__["__doc__"] = text

    def _chosen(self) -> str:
        """The selected arguments, if the transform has a choice."""
        if "argnums" not in self._options:
            return ""
        argnums, argnames = self._options["argnums"], self._options.get("argnames")
        names = [] if argnames is None else [argnames] if isinstance(argnames, str) else [*argnames]
        if argnames is None or isinstance(argnums, (tuple, list)):
            numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
            names = [*[self._name_of_argument(number) for number in numbers], *names]
        return f" with respect to {', '.join(names)}"

    def _name_of_argument(self, number: int) -> str:
        try:
            parameters = inspect.signature(self.__wrapped__).parameters.values()
        except (TypeError, ValueError):
            return f"argument {number}"
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return positional[number] if 0 <= number < len(positional) else f"argument {number}"

    def __repr__(self) -> str:
        return as_written(self._transform, self.__wrapped__, self._options)

    def _content_key(self) -> Any:
        from func.interpreters.program.content_keys import content_key  # start-up time: for comparisons alone

        return self._transform, content_key(self.__wrapped__), content_key(self._options)

    def __eq__(self, other: object) -> bool:
        """Equal: the same transform and options of equal functions."""
        return self is other or (type(other) is Transformed and self._content_key() == other._content_key())

    def __hash__(self) -> int:
        return hash(self._content_key())

    def __dask_tokenize__(self) -> Any:
        return token_of(self._transform, self.__wrapped__, self._options)

    def __reduce__(self) -> Any:
        return name_for_pickle(self) or (_remade, (self._transform, self.__wrapped__, self._options))

    def of(self, function: Callable[..., Any]) -> Any:
        """The same transform of another function."""
        return self._transform(function, **self._options)


def _transformed(
    transform: Callable[..., Any],
    function: Callable[..., Any],
    options: dict[str, Any],
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any],
) -> Callable[..., Any]:
    """The result of `transform(function, **options)`: it calls `call` with (args, kwargs).

    It has the name and the signature of `function`. Its errors hide the engine's frames.
    """

    def call_and_hide(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(args, kwargs)
        except Exception as error:
            if type(error) is BlockedArrayError:
                by_blocks = WIRING.transform_by_blocks(transform, args, kwargs)
                if by_blocks is not None:
                    return by_blocks(_remade(transform, function, options), args, kwargs)
            hide_engine_frames(error)
            raise

    if "dask.base" in sys.modules:
        _tell_dask()
    transformed = Transformed(call_and_hide)
    if type(call) in _FUNCTIONS:
        transformed.__dict__.update(call.__dict__)
    transformed._transform = transform
    transformed._options = options
    return functools.update_wrapper(transformed, function, _ASSIGNED)


def transform(
    make: Callable[Concatenate[Callable[..., Any], Options], Callable[[tuple[Any, ...], dict[str, Any]], T]],
) -> FunctionOf[Options, T]:
    """Make a public transform of a function that takes `f` and options, and returns the call of (args, kwargs).

    All have the option `intercept`. The signature yields the decorator form without `f` (if no option is required), the
    options to show and pickle, and the error for extra values. The result has the attributes of the call.
    """
    signature = inspect.signature(make)
    first, *parameters = signature.parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters}
    positional = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    name = _public_name(make)
    short_name = name.removeprefix("func.")
    decorates = first.empty not in defaults.values()

    @without_engine_frames
    @functools.wraps(make)
    def public(f: Any = None, *args: Any, **options: Any) -> Any:
        if args and not positional:
            raise TypeError(
                f"{name} takes the function alone, and options by name; did you mean {name}({name_of(f)})(...)?"
            )
        chosen = {**defaults, **dict(zip(positional, args, strict=False)), **options}
        if f is None and decorates:
            signature.bind(f, *args, **options)
            return functools.partial(public, **chosen)
        check_callable(f, short_name)
        function: Any = f
        call = make(with_interception(function, options.pop("intercept", False)), *args, **options)
        return _transformed(public, function, chosen, call)

    if decorates:
        public.__dict__["__signature__"] = signature.replace(parameters=[first.replace(default=None), *parameters])
    return cast("FunctionOf[Options, T]", public)


def _remade(transform: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]) -> Any:
    return transform(function, **options)


def as_written(transform: Callable[..., Any], function: Callable[..., Any], options: dict[str, Any]) -> str:
    """The call that made a function: `func.grad(loss, argnums=0)`, with argnums and options other than the defaults."""
    from func.interpreters.program.content_keys import content_key  # start-up time

    defaults = {name: parameter.default for name, parameter in inspect.signature(transform).parameters.items()}
    if options.get("argnames") is None:
        defaults.pop("argnums", None)
    chosen = [
        f"{name}={reprlib.repr(value)}"
        for name, value in options.items()
        if name not in defaults or content_key(value) != content_key(defaults[name])
    ]
    return f"{_public_name(transform)}({', '.join([written_name(function), *chosen])})"


def _public_name(transform: Callable[..., Any]) -> str:
    """The name of a transform in users' code: `func.grad`, `func.debug.explain`."""
    module = sys.modules[transform.__module__]
    is_public = transform.__name__ in getattr(module, "__all__", ())
    return f"{module.__name__ if is_public else 'func'}.{transform.__name__}"


def written_name(function: Any) -> str:
    """The text of a function as an argument."""
    if type(function) is functools.partial:
        named = [f"{name}={reprlib.repr(value)}" for name, value in function.keywords.items()]
        parts = [written_name(function.func), *map(reprlib.repr, function.args), *named]
        return f"functools.partial({', '.join(parts)})"
    name = getattr(function, "__qualname__", None)
    is_func = (type(function).__module__ or "").partition(".")[0] == "func"
    if is_func or not isinstance(name, str):
        return repr(function)
    return name.rpartition("<locals>.")[2]


def token_of(*parts: Any) -> Any:
    """The source of Dask's task names: equal for equal parts, in every process."""
    from dask.base import normalize_token  # only Dask calls this

    return "func", normalize_token(list(parts))


@functools.cache
def _tell_dask() -> None:
    """Dask knows partials, and would make a token of the driver's scope."""
    normalize_token: Any = sys.modules["dask.base"].normalize_token
    normalize_token.register(Transformed, Transformed.__dask_tokenize__)


def name_for_pickle(wrapper: Any) -> str | None:
    """The global name by which an object pickles; None if it pickles by the call that made it.

    Pickles refer to the objects of a module. cloudpickle includes the definitions of a script or a notebook.
    """
    name = global_name(wrapper)
    return None if name is None or _sends_along(wrapper.__module__) else name


def _sends_along(module: str) -> bool:
    """Whether cloudpickle is pickling, and pickles the definitions of this module by value."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _PICKLING:
        frame = frame.f_back
    values = frame.f_globals
    if not str(values.get("__name__")).endswith("cloudpickle.cloudpickle"):
        return False
    registered = values.get("_PICKLE_BY_VALUE_MODULES", ())
    return module == "__main__" or any([module == known or module.startswith(f"{known}.") for known in registered])


_PICKLING = (__name__, "func.compilation.jit", "func.transforms.custom", "pickle", "copyreg")
"""Modules of the functions between a pickler and `_sends_along`."""


def global_name(wrapper: Any) -> str | None:
    """The global name of an object that wraps a function, such as a decorated one; None if none refers to it.

    Pickles and copies of such an object are its name, as for a plain function.
    """
    owner: Any = sys.modules.get(wrapper.__module__) if isinstance(getattr(wrapper, "__module__", None), str) else None
    name = getattr(wrapper, "__qualname__", None)
    if owner is None or not isinstance(name, str):
        return None
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return name if owner is wrapper else None


def keeps_parameters(transform: FunctionOf[Options, T]) -> KeepsParameters[Options, T]:
    """Decorate a transform that changes the result of a function."""
    return transform  # type: ignore[return-value]


def keeps_signature(transform: FunctionOf[Options, Any]) -> KeepsSignature[Options]:
    """Decorate a transform that keeps parameters and results."""
    return transform  # type: ignore[return-value]


def value_first(transform: FunctionOf[Options, Any]) -> ValueFirst[Options]:
    """Decorate a transform that returns the value, then a derivative."""
    return transform  # type: ignore[return-value]


def value_last(transform: FunctionOf[Options, Any]) -> ValueLast[Options]:
    """Decorate a transform that returns a derivative, then the value."""
    return transform  # type: ignore[return-value]
