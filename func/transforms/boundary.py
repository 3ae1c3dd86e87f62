"""The public door: what transforms check on the way in, and how results become the caller's own on the way out."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from func import tree
from func.backends import HOST_TYPES
from func.interpreters.core import (
    CURRENT,
    EVALUATE,
    PYTHON_SCALARS,
    Array,
    Interpreter,
    Tracer,
    aval_of,
    dtype_of,
    is_inexact,
    operand,
    refuse_array,
    shape_of,
)
from func.interpreters.core.errors import (
    ArgumentError,
    DifferentiatedInputError,
    FuncError,
    ScalarOutputError,
    UnsupportedArrayError,
)
from func.interpreters.core.modes import STAGING
from func.interpreters.core.source import hide_engine_frames
from func.numpy import patching

T = TypeVar("T")


class traced:
    """Context of a running transform: conversions work inside; at the end the interpreter is closed.

    `staging` says that a program is made which is to be run later.

    Errors leave it without the engine's frames.
    """

    __slots__ = ("interpreter", "staging", "token")

    def __init__(self, interpreter: Interpreter, staging: bool = False) -> None:
        self.interpreter = interpreter
        self.staging: Any = staging

    def __enter__(self) -> None:
        self.token = CURRENT.set(self.interpreter)
        if self.staging:
            self.staging = STAGING.set(self.interpreter.transform)
        patching.enter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        patching.leave()
        if self.staging:
            STAGING.reset(self.staging)
        CURRENT.reset(self.token)
        self.interpreter.close()
        if isinstance(error, Exception):
            cause = error.__cause__
            if isinstance(error, ValueError) and isinstance(cause, FuncError):
                # NumPy words every failing conversion as "setting an array element with a sequence"
                raise hide_engine_frames(cause.with_traceback(trace)) from None
            hide_engine_frames(error)


# --- names for messages -----------------------------------------------------------------------------------------


def name_of(function: Callable[..., Any]) -> str:
    """How messages call a function."""
    return getattr(function, "__name__", None) or type(function).__name__


def check_callable(function: Any, transform: str) -> None:
    """Transforms take a function first."""
    if not callable(function):
        raise TypeError(f"func.{transform} takes a function first, not {type(function).__name__}")


def describe(value: Any) -> str:
    """A short description of an output: aval of arrays, type of anything else."""
    try:
        return repr(aval_of(value)) if type(value) in _DESCRIBED or hasattr(value, "dtype") else type(value).__name__
    except (KeyError, TypeError, ValueError):
        return type(value).__name__


_DESCRIBED = frozenset({Tracer, bool, int, float, complex})


# --- argument selection -----------------------------------------------------------------------------------------


def normalize_argnums(argnums: Any, count: int, transform: str, function: Callable[..., Any]) -> tuple[int, ...]:
    """argnums as non-negative positions, checked for range and repetition."""
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    normal = []
    for number in given:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(f"func.{transform}: argnums must be an int or a tuple of ints, got {argnums!r}")
        position = int(number) + count if number < 0 else int(number)
        if not 0 <= position < count:
            raise ArgumentError(
                f"func.{transform}: argnums={argnums!r} is out of range, {name_of(function)} was called with "
                f"{count} positional argument{'s' if count != 1 else ''}"
            )
        if position in normal:
            raise ArgumentError(f"func.{transform}: argnums={argnums!r} names argument {position} twice")
        normal.append(position)
    if not normal:
        raise ArgumentError(f"func.{transform}: argnums={argnums!r} names no argument")
    return tuple(normal)


def locate_names(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnames: Sequence[str],
    transform: str,
) -> list[int | str]:
    """Where each named argument was given: a keyword, or a position found in the signature."""
    places: list[int | str] = []
    positions: dict[str, int] | None = None
    for argname in argnames:
        if not isinstance(argname, str):
            raise TypeError(f"func.{transform}: argnames must be a string or strings, got {argname!r}")
        if argname in kwargs:
            places.append(argname)
            continue
        if positions is None:
            try:
                positions = {name: i for i, name in enumerate(inspect.signature(function).parameters)}
            except (TypeError, ValueError):
                positions = {}
        position = positions.get(argname, len(args))
        if position >= len(args):
            raise ArgumentError(
                f"func.{transform}: argnames names {argname!r}, but {name_of(function)} was not called with it"
            )
        places.append(position)
    if len(set(places)) != len(places):
        raise ArgumentError(f"func.{transform}: argnames={tuple(argnames)!r} names an argument twice")
    return places


# --- leaves -----------------------------------------------------------------------------------------------------


def array_leaf(value: Any, path: str, transform: str) -> Array:
    """A leaf as primitives take it, or a TypeError that names its path."""
    kind = type(value)
    if kind is Tracer or (kind is np.ndarray and value.dtype.kind in "fciub"):
        return value
    try:
        if kind in HOST_TYPES or hasattr(value, "dtype") or hasattr(value, "__array__"):
            return operand(value)
        refuse_array(value)
    except UnsupportedArrayError as error:
        raise UnsupportedArrayError(f"func.{transform}: {path} cannot be traced: {error}") from None


def output_leaf(value: Any, path: str, transform: str) -> Array:
    """An output as the running transform takes it: `array_leaf`, without the graph of the transform's own tensors."""
    return _settled(array_leaf(value, path, transform))


def _settled(value: Any) -> Any:
    """A tensor that was made inside the transform leaves it as its value, which the transform traces."""
    home = getattr(CURRENT.get(), "ambient", None)
    while type(value) is Tracer and home is not None and value.interpreter is home:
        value = value.value
    return value


def differentiable_leaf(value: Any, path: str, transform: str, top: bool, allow_int: bool) -> Array | None:
    """A leaf to differentiate, or None for an integer leaf that passes through."""
    if type(value) is np.ndarray and value.dtype.kind in "fc":
        return value
    value = array_leaf(value, path, transform)
    dtype = dtype_of(value)
    if is_inexact(dtype):
        return value
    if top and not allow_int:
        word = (
            "a Python int"
            if type(value) is int
            else f"an array of dtype {dtype}"
            if shape_of(value)
            else f"a number of dtype {dtype}"
        )
        raise DifferentiatedInputError(
            f"func.{transform} differentiates with respect to {path}, which is {word}; derivatives need floating "
            "point input: pass a float, convert the array with .astype(float), or choose other argnums"
        )
    return None


def scalar_output(out: Any, transform: str, function: Callable[..., Any], holomorphic: bool) -> Array:
    """The one output of a function to take a gradient of: a real (holomorphic: complex) scalar."""
    out = _settled(out)
    if type(out) is not Tracer and type(out) not in HOST_TYPES and not hasattr(out, "dtype"):
        leaves = tree.leaves(out)
        shown = ", ".join([describe(leaf) for leaf in leaves]) or "nothing"
        raise ScalarOutputError(
            f"func.{transform} needs one scalar output, but {name_of(function)} returned a {type(out).__name__} "
            f"({shown}). Return one number (has_aux=True hands further values out); for several outputs use "
            "func.vjp or func.jacrev"
        )
    shape, dtype = shape_of(out), dtype_of(out)
    if shape != ():
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
    if not is_inexact(dtype):
        raise ScalarOutputError(
            f"func.{transform} needs a floating point output, but {name_of(function)} returned {dtype}, which carries "
            "no derivative"
        )
    return out


# --- results ----------------------------------------------------------------------------------------------------


def unbox(value: Array) -> Array:
    """A box around a concrete array (made by np.zeros_like in traced code) is handed out as the array."""
    return value.value if type(value) is Tracer and value.interpreter is EVALUATE else value


_EXCLUSIVE = sys.getrefcount(np.empty(0)) + 2
"""What getrefcount says of an array that only a list and a local variable hold."""


def own(leaves: list[Any]) -> list[Any]:
    """Make results the caller's own, in place: writable arrays that share memory with nothing else.

    An array that only this list refers to is handed out as it is; any other is copied.
    """
    for i in range(len(leaves)):
        leaf = leaves[i]
        if type(leaf) is Tracer:
            leaves[i] = (
                unbox(leaf) if leaf.interpreter is EVALUATE else Tracer(leaf.interpreter, leaf.value, leaf.attached)
            )
            leaf = leaves[i]
            if type(leaf) is np.ndarray:
                leaves[i] = leaf.copy()
            continue
        if type(leaf) is not np.ndarray:
            if type(leaf) not in HOST_TYPES and hasattr(leaf, "copy") and hasattr(leaf, "dtype"):
                leaves[i] = leaf.copy()
            continue
        base = leaf.base
        if leaf.flags.writeable and sys.getrefcount(leaf) <= _EXCLUSIVE:
            if base is None:
                continue
            if (
                type(base) is np.ndarray
                and base.base is None
                and base.size == leaf.size
                and sys.getrefcount(base) <= _EXCLUSIVE
            ):
                continue
        leaves[i] = leaf.copy()
    return leaves


def own_tree(value: Any) -> Any:
    """`own` for the arrays in a tree."""
    kind = type(value)
    if kind in PYTHON_SCALARS or isinstance(value, np.generic):
        return value
    leaves, spec = tree.flatten(value)
    del value
    return tree.unflatten(spec, own(leaves))


def copied(leaves: list[Any]) -> list[Any]:
    """Copies of arrays that a saved map must not share with the caller."""
    return [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]


def like_input(grad: Array, leaf: Array) -> Array:
    """A gradient as the same kind of object as its input: an ndarray for an ndarray, also when it is 0-d."""
    if type(grad) is np.ndarray:
        return grad if type(leaf) is np.ndarray or grad.shape != () or type(leaf) is Tracer else grad[()]
    if type(leaf) is np.ndarray and isinstance(grad, np.generic):
        return np.asarray(grad)
    return grad
