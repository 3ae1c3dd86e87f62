"""The API boundary: checks of arguments on the way in, and ownership of results on the way out."""

from __future__ import annotations

import enum
import functools
import inspect
import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from func import tree
from func.backends import HOST_TYPES
from func.backends.array_helpers.strides import copy_with_strides
from func.interpreters import core
from func.interpreters.core import CARRIERS, EVALUATE, PYTHON_SCALARS, Array, Interpreter, Shape, Tracer
from func.interpreters.core.errors import ArgumentError, BlockedArrayError, ScalarOutputError, UnsupportedArrayError
from func.interpreters.core.scopes import current_transform
from func.interpreters.imperative.interpreter import copy_of
from func.interpreters.nan_safe import FreshCotangents
from func.interpreters.primitives.structural.shapes import full_like, reshape
from func.numpy.sharing import note_nested_arguments, read_only, shared_groups

F = TypeVar("F", bound=Callable[..., Any])
Intercepts = bool | str | ModuleType | Iterable[str | ModuleType]
"""The option `intercept` of the transforms: a flag, or the modules for it."""


def with_interception(function: F, intercepts: Intercepts) -> F:
    """The function, run inside `func.intercept()` if the option asks for it."""
    if intercepts is False:
        return function
    from func.host.interception import intercept  # start-up time

    return intercept(modules=() if intercepts is True else intercepts)(function)


def is_value(x: Any) -> bool:
    """Whether an option looks like a value: the user may have passed an argument of the function."""
    return isinstance(x, (float, complex)) or (hasattr(x, "dtype") and not isinstance(x, (np.integer, np.dtype)))


def suggestion(option: Any, transform: str, function: Callable[..., Any]) -> str:
    """The suggestion at the end of a message about an option that looks like a value."""
    return f"; did you mean func.{transform}({name_of(function)})(...)?" if is_value(option) else ""


def check_no_value(option: Any, name: str, transform: str, function: Callable[..., Any]) -> None:
    """Raise if an option of ints and None is a value."""
    if is_value(option):
        raise TypeError(
            f"func.{transform}: {name} must hold ints and None, got {type(option).__name__}"
            f"{suggestion(option, transform, function)}"
        )


def takes_function_alone(transform: F) -> F:
    """Decorate a transform with keyword-only options: extra values suggest the call of its result."""

    @functools.wraps(transform)
    def checked(f: Any = None, *values: Any, **options: Any) -> Any:
        if values:
            name = transform.__name__
            raise TypeError(
                f"func.{name} takes the function alone, and options by name; did you mean "
                f"func.{name}({name_of(f)})(...)?"
            )
        return transform(f, **options)

    return checked  # type: ignore[return-value]


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    return getattr(function, "__name__", None) or type(function).__name__


def check_callable(function: Any, transform: str) -> None:
    """Raise unless the argument is a function, or an object that computes when it is called."""
    if not callable(function):
        raise TypeError(f"func.{transform} takes a function first, not {type(function).__name__}")
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _ASYNCHRONOUS:
        raise TypeError(
            f"func.{transform}: {name_of(function)} is a coroutine function, which computes nothing when it is called; "
            f"transform a plain function and call that in the coroutine"
        )


_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def describe(value: Any) -> str:
    """A short description of an output: the aval of an array, the type of anything else."""
    try:
        return (
            repr(core.aval_of(value)).rstrip("~")
            if type(value) in _DESCRIBED or hasattr(value, "dtype")
            else type(value).__name__
        )
    except (KeyError, TypeError, ValueError):
        return type(value).__name__


_DESCRIBED = frozenset({Tracer, bool, int, float, complex})


def array_leaf(value: Any, path: str, transform: str) -> Array:
    """A leaf as primitives take it; a TypeError names its path."""
    kind = type(value)
    if kind is Tracer or (kind is ndarray and value.dtype.kind in "fciub"):
        return value
    try:
        if is_dask_array(value):
            raise BlockedArrayError(
                f"func.{transform}: {path or 'an argument'} is a Dask array, and func.{transform} takes the whole of "
                "one\nMap a function of one row, func.vmap(func.grad(f))(x), or of one element, "
                "func.elementwise_grad(f)(x), block by block; take func.grad of a loss over sums of blocks; sum a loss "
                "over the rows by func.sum_over; or pass x.compute()."
            )
        if kind in HOST_TYPES or hasattr(value, "dtype") or hasattr(value, "__array__"):
            return core.operand(value)
        core.raise_unsupported_array(value)
    except BlockedArrayError:
        raise
    except UnsupportedArrayError as error:
        advice = _advice(value, path, transform)
        raise UnsupportedArrayError(f"func.{transform}: {path} cannot be traced: {error}{advice}") from None


def is_dask_array(value: Any) -> bool:
    """Whether a value is an array of Dask."""
    return type(value).__name__ == "Array" and (type(value).__module__ or "").startswith("dask.array")


_ARRAYS_OF = {
    "astropy": "; pass x.value",
    "pint": "; pass x.magnitude, and put the unit on again inside",
    "unyt": "; pass x.d",
    "xarray": "; of a Dataset pass {name: ds[name].to_numpy() for name in ds}",
}
"""Where the arrays of an object are, by its package."""


def _advice(value: Any, path: str, transform: str) -> str:
    """The advice for an argument that is not an array."""
    if hasattr(value, "dtype") or hasattr(value, "__array__"):
        return _ARRAYS_OF.get(type(value).__module__.partition(".")[0], "")
    flags = (str, bytes, type, enum.Enum, np.ufunc, functools.partial)
    is_flag = isinstance(value, flags) or inspect.isroutine(value) or hasattr(value, "__wrapped__")
    is_dataclass = any([hasattr(type(value), fields) for fields in ("__dataclass_fields__", "__attrs_attrs__")])
    register = "register_dataclass" if is_dataclass else "register_node"
    tree_class = f"; if {type(value).__name__} holds arrays, make it a tree by func.tree.{register}"
    _, dot, field = path.rpartition(".")
    if is_flag:
        in_tree = f"; fix it by functools.partial instead of passing it in {path.split('[')[0]}" if "[" in path else ""
        in_tree = "; return arrays and numbers alone" if path.startswith("output") else in_tree
        in_dataclass = f"; of a dataclass, func.tree.register_dataclass(static={field!r}) leaves it as it is"
        tree_class = in_dataclass if dot else in_tree
    if path.startswith("output"):
        return tree_class
    if transform in ("jit", "make_program", "to_source", "to_c"):
        names = "static_argnames (or static_argnums)"
        return f"; name arguments that are no numbers in {names}{tree_class}"
    if transform == "vmap":
        return f"; give what is used as it is None in in_dims{tree_class}"
    return f"; choose other argnums{tree_class}"


def traced_leaf(value: Any, path: str, transform: str) -> Array:
    """`array_leaf`, with 64 bits for a number that becomes a variable of a program."""
    if type(value) is int and value not in INTEGERS:
        raise ArgumentError(
            f"func.{transform}: {path} is an integer of more than 64 bits, which no array of numbers holds: {value}; "
            "pass a float"
        )
    return array_leaf(value, path, transform)


INTEGERS = range(-(2**63), 2**63)


def argument_paths(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], static: Collection[int] = ()
) -> list[str]:
    """The names of the leaves of arguments in messages: `params['w']`, without the arguments in `static`."""
    named = parameter_names(function, len(args) + len(static))
    roots = [name for i, name in enumerate(named) if i not in static]
    paths = [path for root, value in zip(roots, args, strict=False) for path in tree.path_names(value, root)]
    return [*paths, *[path for name in sorted(kwargs) for path in tree.path_names(kwargs[name], name)]]


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of positional arguments in messages: their parameters, else `argument 3`."""
    named = positional_parameters(function)
    return [*named[:count], *[f"argument {i}" for i in range(len(named), count)]]


def positional_parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that take positional arguments; none if a function has no signature."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _without_tensors(value: Any) -> Any:
    """A value without the tensors of the running transform, which traces their values."""
    home = getattr(current_transform(), "ambient", None)
    while type(value) is Tracer and home is not None and value._interpreter is home:
        value = value._value
    return value


def output_leaves(out: Any, transform: str) -> tuple[list[Array], Any]:
    """The leaves of an output as the running transform takes them, and its structure."""
    leaves, spec = tree.flatten(out)
    for i, leaf in enumerate(leaves):
        kind = type(leaf)
        if not (kind is Tracer or (kind is ndarray and leaf.dtype.kind in "fciub")):
            leaf = array_leaf(leaf, output_paths(spec)[i], transform)
        leaves[i] = unbox(_without_tensors(leaf))
    return leaves, spec


def output_paths(spec: Any) -> list[str]:
    """The names of the leaves of an output in messages."""
    return [accessor.codify("output") for accessor in spec.accessors()]


def split_aux(out: Any, interpreter: Interpreter, transform: str, function: Callable[..., Any]) -> tuple[Any, Any]:
    """(output, aux) of a function with has_aux=True; aux without the tracers of the interpreter, which closes next.

    Raises:
        TypeError: The output is not a pair.
    """
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(
            f"func.{transform}(has_aux=True) needs {name_of(function)} to return a pair (output, aux), "
            f"but it returned {describe(out)}"
        )

    def strip(leaf: Any) -> Any:
        if type(leaf) in CARRIERS:
            leaf = CARRIERS[type(leaf)](leaf)
        if type(leaf) is ndarray and leaf.dtype.kind == "O" and any([type(item) is Tracer for item in leaf.flat]):
            leaf = core.operand(leaf)
        return leaf._value if type(leaf) is Tracer and leaf._interpreter is interpreter else leaf

    return out[0], tree.map(strip, out[1])


def scalar_output(
    out: Any, transform: str, function: Callable[..., Any], holomorphic: bool, keeps_shape: bool = False
) -> Array:
    """The one output of a function to differentiate, a real (holomorphic: complex) number: a scalar.

    An array of one element counts as that element, and keeps its shape if asked to.
    """
    if type(out) is not Tracer and hasattr(out, "dtype") and (type(out) not in HOST_TYPES or out.dtype.kind == "O"):
        out = array_leaf(out, "the output", transform)
    out = _without_tensors(out)
    if type(out) is not Tracer and type(out) not in HOST_TYPES and not hasattr(out, "dtype"):
        leaves = tree.leaves(out)
        shown = ", ".join([describe(leaf) for leaf in leaves]) or "nothing"
        raise ScalarOutputError(
            f"func.{transform} needs one scalar output, but {name_of(function)} returned a {type(out).__name__} "
            f"({shown}). Return one number (has_aux=True hands further values out); for several outputs use "
            "func.vjp or func.jacrev"
        )
    shape, dtype = core.shape_of(out), core.dtype_of(out)
    if math.prod(shape) != 1:
        raise ScalarOutputError(
            f"func.{transform} needs a scalar output, but {name_of(function)} returned an array of shape {shape}. "
            "Reduce it (np.sum, np.mean), or use func.vjp for a weighted gradient or func.jacrev for the Jacobian"
        )
    if holomorphic and dtype.kind != "c":
        raise ScalarOutputError(
            f"func.{transform}(holomorphic=True) needs a complex output, but {name_of(function)} returned {dtype}"
        )
    if dtype.kind == "c" and not holomorphic:
        raise ScalarOutputError(
            f"func.{transform} needs a real output, but {name_of(function)} returned {dtype}. Take np.real, np.imag "
            "or np.abs of it, or pass holomorphic=True for the complex derivative of a holomorphic function"
        )
    if not core.is_inexact(dtype):
        raise ScalarOutputError(
            f"func.{transform} needs a floating point output, but {name_of(function)} returned {dtype}, which carries "
            "no derivative"
        )
    return out if keeps_shape or shape == () else reshape(out, shape=())


def unbox(value: Array) -> Array:
    """The array behind a concrete tracer (np.zeros_like in traced code makes them); any other value unchanged."""
    return value._value if type(value) is Tracer and value._interpreter is EVALUATE else value


def _references_of_a_leaf() -> int:
    """The reference count of an array that only a list and a local variable refer to, as getrefcount reports it."""
    leaves = [np.empty(0)]
    leaf = leaves[0]
    return sys.getrefcount(leaf)


_EXCLUSIVE = _references_of_a_leaf()


def own(leaves: list[Any]) -> list[Any]:
    """Make results owned by the caller, in place: writable arrays that share memory with nothing else.

    Copies every array that something else refers to. Results of compiled code stay: the code reuses their memory after
    the caller drops them.
    """
    is_fresh = type(leaves) is FreshCotangents and (len(leaves) == 1 or len(set(map(id, leaves))) == len(leaves))
    for i in range(len(leaves)):
        leaf = leaves[i]
        if is_fresh and type(leaf) is ndarray and leaf.base is None:
            continue
        if type(leaf) is Tracer:
            leaves[i] = unbox(leaf) if leaf._interpreter is EVALUATE else copy_of(leaf)
            leaf = leaves[i]
            if type(leaf) is ndarray:
                leaves[i] = _copied(leaf)
            continue
        if type(leaf) is not ndarray:
            if type(leaf) not in HOST_TYPES and hasattr(leaf, "copy") and hasattr(leaf, "dtype"):
                leaves[i] = leaf.copy()
            continue
        base = leaf.base
        if leaf.flags.writeable and sys.getrefcount(leaf) <= _EXCLUSIVE:
            if base is None:
                continue
            if (
                type(base) is ndarray
                and base.base is None
                and base.size == leaf.size
                and sys.getrefcount(base) <= _EXCLUSIVE
            ):
                continue
        leaves[i] = _copied(leaf)
    return leaves


def _copied(array: Any) -> Any:
    """A copy with the layout of the array; of a broadcast array in C order."""
    return array.copy("C" if 0 in array.strides else "K")


def own_tree(value: Any) -> Any:
    """`own` for the arrays in a tree."""
    kind = type(value)
    if kind in PYTHON_SCALARS or (kind is not Tracer and isinstance(value, np.generic)):
        return value
    leaves, spec = tree.flatten(value)
    del value
    return tree.unflatten(spec, own(leaves))


def defensive_copies(values: Iterable[Array]) -> list[Array]:
    """Copies of values for code that may write to them; a write changes no other value, graph or argument."""
    return [copy_with_strides(value) if type(value) is ndarray else core.snapshot(value) for value in values]


def own_arguments(function: Callable[..., Any], leaves: Sequence[Array]) -> list[Array]:
    """Defensive copies of the arguments of a function, with a note of those that share memory."""
    copies = defensive_copies(leaves)
    traced = next((copy for copy in copies if type(copy) is Tracer and copy._interpreter is not EVALUATE), None)
    if traced is not None:
        note_nested_arguments(traced._interpreter, function, copies, leaves)
        return copies
    for group in shared_groups(leaves):
        if len({id(leaves[i]) for i in group}) == 1:
            for i in group:
                copies[i] = copies[group[0]]
        else:
            for i in group:
                copies[i] = read_only(copies[i])
    return copies


def handed_out(values: Iterable[Array]) -> list[Array]:
    """Results for the user: defensive copies; copies of tensors have new nodes."""
    return [_copied(value) if type(value) is ndarray else copy_of(value) for value in values]


def as_result(value: Array) -> Array:
    """A value as NumPy's operations return it: a number, not an array, if the shape is ()."""
    return value[()] if type(value) is ndarray and value.shape == () else value


def zero_result(like: Array, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Zeros like a value, as a result."""
    return as_result(full_like(like, 0, shape, dtype))


def as_input_type(grad: Array, leaf: Array) -> Array:
    """A gradient as the same kind of object as its input: an ndarray for an ndarray, also for a 0-d one."""
    if type(grad) is ndarray:
        return grad if type(leaf) is ndarray or grad.shape != () or type(leaf) is Tracer else grad[()]
    if type(leaf) is ndarray and type(grad) is not Tracer and isinstance(grad, np.generic):
        return np.asarray(grad)
    return grad
