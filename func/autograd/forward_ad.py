"""Forward mode without a transform: dual tensors, which carry a tangent while a dual level is open.

Levels can be nested, for mixed second derivatives: primals and tangents may be dual tensors of an outer level. After a
level ends, its dual tensors behave as their primals, and `unpack_dual` returns None for their tangents.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from func.host import patching
from func.interpreters.core import EVALUATE, Array, Params, Primitive, Tracer, bind, dtype_of, is_inexact, snapshot
from func.interpreters.core.errors import FuncError
from func.interpreters.core.scopes import Scope
from func.interpreters.drivers import without_tensors
from func.interpreters.imperative.interpreter import DualLevel, Imperative, boxed
from func.interpreters.structural_zeros import StructuralZeros
from func.transforms.boundary import array_leaf
from func.transforms.forward import fit_tangent

# fmt: off
__all__ = [
    "DualLevelError", "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]
# fmt: on


class DualLevelError(FuncError, RuntimeError):
    """The dual level is not open, or the operation is not allowed at this level."""


class UnpackedDualTensor(NamedTuple):
    """The primal of a dual tensor, and its tangent or None."""

    primal: Any
    tangent: Any


class ClosedDualLevel(DualLevel):
    """The interpreter of a dual level after its end: dual tensors behave as their primals."""

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        out = bind(primitive, tuple([primal_of(arg) for arg in args]), params)
        return tuple([boxed(value) for value in out]) if primitive.multiple else boxed(out)


def primal_of(value: Array) -> Array:
    """A value without the tangents of closed levels."""
    while type(value) is Tracer and type(value._interpreter) is ClosedDualLevel:
        value = value._value
    return value


_LEVELS: ContextVar[tuple[DualLevel, ...]] = ContextVar("func_dual_levels", default=())
"""The interpreters of the open levels, innermost last; a level that was closed in another context remains there."""


_OPENED: weakref.WeakKeyDictionary[DualLevel, patching.OpenedTransform] = weakref.WeakKeyDictionary()
"""Keeps NumPy's converters in place for the open levels."""


def _levels() -> tuple[DualLevel, ...]:
    """The interpreters of the levels that are open here."""
    return tuple([level for level in _LEVELS.get() if type(level) is DualLevel and _OPENED[level].is_open])


def enter_dual_level() -> int:
    """Open a dual level inside the open ones, and return its number (0 for the outermost).

    Example:
        >>> import func
        >>> from func.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.unpack_dual(forward_ad.make_dual(func.tensor(3.0), 1.0) ** 2).tangent
        tensor(6.)
        >>> forward_ad.exit_dual_level(level=level)
    """
    return _enter()


def _enter(scope: Scope | None = None) -> int:
    levels = _levels()
    interpreter = DualLevel("dual_level", StructuralZeros())
    _OPENED[interpreter] = patching.open_transform(scope)
    _LEVELS.set((*levels, interpreter))
    return len(levels)


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost dual level and drop its tangents.

    Args:
        level: The number of the innermost level, to check it; None skips the check.

    Raises:
        DualLevelError: No level is open, or `level` is not the innermost (a RuntimeError).

    Example:
        >>> from func.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level()
    """
    levels = _levels()
    if not levels:
        raise DualLevelError("exit_dual_level: no dual level is open")
    if level is not None and level != len(levels) - 1:
        raise DualLevelError(
            f"exit_dual_level: level {level} is not the innermost, which is {len(levels) - 1}; close levels in "
            "the reverse order of opening them"
        )
    _LEVELS.set(levels[:-1])
    _close(levels[-1])


def _close(level: DualLevel) -> None:
    level.__class__ = ClosedDualLevel  # pyright: ignore[reportAttributeAccessIssue]
    patching.close_transform(_OPENED[level])


@contextmanager
def dual_level() -> Iterator[int]:
    """A context manager for a dual level, in which tensors can carry tangents.

    Example:
        >>> import numpy as np, func
        >>> from func.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(func.tensor([0.0, 1.0]), func.tensor([1.0, 0.0]))
        ...     forward_ad.unpack_dual(x * np.cos(x))
        UnpackedDualTensor(primal=tensor([0.        , 0.54030231]), tangent=tensor([1., 0.]))
    """
    scope = _LevelScope()  # not in a `with`: only the thread that enters one can leave it
    levels = _levels()
    interpreter = levels[-1]
    try:
        yield len(levels) - 1
    finally:
        if any([open_level is interpreter for open_level in _levels()]):
            exit_dual_level(level=len(levels) - 1)
        elif type(interpreter) is DualLevel:  # left in another context, by a generator that closes there
            _close(interpreter)
        del scope


class _LevelScope(Scope):
    """The scope of a dual level."""

    __slots__ = ()

    def __init__(self) -> None:
        _enter(self)


def _interpreter(level: int | None, name: str) -> DualLevel:
    """The interpreter of an open level."""
    levels = _levels()
    if not levels:
        raise DualLevelError(f"{name}: no dual level is open; write `with forward_ad.dual_level():` around it")
    if level is None:
        return levels[-1]
    if not 0 <= level < len(levels):
        raise DualLevelError(f"{name}: level {level} is not open; the open levels are 0 to {len(levels) - 1}")
    return levels[level]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A dual tensor: results computed from it carry their directional derivative.

    Gradients flow through the primal and the tangent, so `backward` can be called on a tangent.

    Args:
        tensor: A tensor or array of floating point dtype.
        tangent: A tensor or array of its shape and dtype.
        level: The number of an open dual level; None for the innermost.

    Raises:
        DualLevelError: No such level is open, or the tensor or tangent already belongs to it or to an inner one (a
            RuntimeError).
        TangentError: The tangent is not of the tensor's shape or dtype (a ValueError).
        TypeError: The tensor is not of floating point dtype.

    Example:
        >>> import func
        >>> from func.autograd import forward_ad
        >>> w = func.tensor([1.0, 2.0], requires_grad=True)
        >>> with forward_ad.dual_level():
        ...     loss = (forward_ad.make_dual(w, func.tensor([1.0, 0.0])) ** 3).sum()
        ...     forward_ad.unpack_dual(loss).tangent.backward()
        >>> w.grad
        tensor([6., 0.])
    """
    interpreter = _interpreter(level, "make_dual")
    primal = primal_of(array_leaf(tensor, "tensor", "autograd.forward_ad.make_dual"))
    direction = primal_of(tangent)
    for value, what in ((primal, "tensor"), (direction, "tangent")):
        if type(value) is Tracer and value._interpreter is interpreter:
            raise DualLevelError(f"make_dual: the {what} carries a tangent of this level; unpack_dual gives its parts")
        if type(value) is Tracer and value._interpreter.level > interpreter.level:
            raise DualLevelError(
                f"make_dual: the {what} belongs to a level or transform that was entered inside this level; make the "
                "dual there, at a new level"
            )
    if not is_inexact(dtype_of(primal)):
        raise TypeError(
            f"make_dual: only tensors of floating point and complex dtype carry tangents, not {dtype_of(primal)}; "
            "convert with .astype(float)"
        )
    if type(direction) is Tracer and isinstance(direction._interpreter, Imperative):
        interpreter.has_recorded_tangents = True
    direction = fit_tangent(primal, direction, "tensor", "autograd.forward_ad.make_dual")
    return interpreter.lift(_snapshot(primal), _snapshot(direction))


def _snapshot(value: Array) -> Array:
    """The value of a tensor, unaffected by later writes to the tensor."""
    if type(value) is Tracer and value._interpreter is EVALUATE:
        value = value._value
    elif isinstance(value, (np.ndarray, np.generic)) or type(value) is Tracer:
        value = snapshot(value)
    return value if hasattr(value, "dtype") else np.asarray(value)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None if the tensor has none at this level.

    After the level is closed the tangent is None. While no level is open every tensor is its own primal.

    Args:
        tensor: A tensor.
        level: The number of an open dual level; None for the innermost.

    Raises:
        DualLevelError: No such level is open, or the tensor carries a tangent of an inner level (a RuntimeError).

    Example:
        >>> import func
        >>> from func.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     dual = forward_ad.make_dual(func.tensor(2.0), 1.0)
        >>> forward_ad.unpack_dual(dual)
        UnpackedDualTensor(primal=tensor(2.), tangent=None)
    """
    value = primal_of(array_leaf(tensor, "tensor", "autograd.forward_ad.unpack_dual"))
    if value is not tensor:
        value = boxed(value)
    if level is None and not _levels():
        return UnpackedDualTensor(value, None)
    interpreter = _interpreter(level, "unpack_dual")
    if type(value) is not Tracer:
        return UnpackedDualTensor(value, None)
    (dual,) = without_tensors([value], interpreter)
    if type(dual) is Tracer and dual._interpreter is interpreter:
        primal, direction = interpreter.unpack(dual)
        return UnpackedDualTensor(boxed(_snapshot(primal)), boxed(_snapshot(direction)))
    if type(value._interpreter) is DualLevel and value._interpreter.level > interpreter.level and level is not None:
        raise DualLevelError(f"unpack_dual: the tensor carries a tangent inside level {level}; unpack that one first")
    return UnpackedDualTensor(value, None)
