"""The memory that NumPy would give a traced array: its strides, shared memory, copies in another order.

The tracer of a view knows its base. Any other one owns its memory: that of the array behind it, or of one batch element
of this array under vmap. In a trace, the Program's equations determine the layout. `Owner` has the layout of a tracer
whose array has another one, such as a strided argument after a write.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from func.backends import namespace_of
from func.backends.array_helpers.strides import (
    Strides,
    axes_by_stride,
    copied_order,
    copy_with_strides,
    dense_strides,
    iterated_order,
    same_layout,
    stand_in,
)
from func.interpreters.core import EVALUATE, Array, Tracer, dtype_of, new_tracer, shape_of, snapshot
from func.interpreters.core.types import ClosedInterpreter
from func.interpreters.imperative.interpreter import copy_of
from func.interpreters.primitives.structural.shapes import convert, inverse_permutation
from func.interpreters.stage import Stage
from func.interpreters.vmap import Vmap

Put = Callable[[Array, Array], Array]
"""Writes a view's new value back: (base, value) to the new base."""


class View(NamedTuple):
    """A view: its base, how to read and write it (None: read-only), and its layout.

    `make_view` makes the view of a stand-in of the base, or returns None where NumPy copies. The first write to a base
    or its `undecided` view decides this.
    """

    base: Tracer
    read: Callable[..., Array]
    params: dict[str, Any]
    put: Put | None
    make_view: Callable[..., Any]
    undecided: bool = False
    detached: bool = False
    """It shares numbers with its base, and no history."""
    has_own_version: bool = False


class Owner:
    """The strides of a tracer that owns its memory and whose array has others; or a function that computes them."""

    __slots__ = ("_strides", "stage")

    def __init__(self, strides: Strides | Callable[[], Strides], stage: Stage | None = None) -> None:
        self._strides = strides
        self.stage = stage
        """The trace of the strides' variable, if they are those of a variable of a Program."""

    @property
    def strides(self) -> Strides:
        """The strides in bytes."""
        if callable(self._strides):
            self._strides = self._strides()
        return self._strides


def view_of(tracer: Tracer) -> View | None:
    """The View of a traced array, or None. Decides whether an undecided reshape is a view."""
    place = getattr(tracer, "_view_of", None)
    if type(place) is not View:
        return None
    if place.undecided:
        if place.make_view(layout_of(place.base), **place.params) is None:
            tracer._view_of = Owner(dense_strides(place.params["shape"], place.base.dtype.itemsize))
            return None
        tracer._view_of = place = place._replace(undecided=False)
    return place


def views_above(tracer: Tracer) -> list[View]:
    """The views from a traced array to the owner of its memory, which is the base of the last."""
    chain = []
    while (view := view_of(tracer)) is not None:
        chain.append(view)
        tracer = view.base
    return chain


def memory_owner(tracer: Tracer) -> Tracer:
    """The traced array that owns the memory of a view."""
    chain = views_above(tracer)
    return chain[-1].base if chain else tracer


def is_scalar(tracer: Tracer) -> bool:
    """Whether NumPy has a scalar here: not a 0-d array or view, which has memory."""
    return tracer.shape == () and getattr(tracer, "_view_of", None) is None and getattr(tracer, "_state", None) is None


def fresh(tracer: Tracer) -> Tracer:
    """Copy a traced array; the copy has its own identity."""
    return Tracer(tracer._interpreter, tracer._value, tracer._attached)


def with_memory(tracer: Array) -> Array:
    """The traced array; without axes it becomes a 0-d array instead of a scalar."""
    if type(tracer) is Tracer and tracer.shape == () and getattr(tracer, "_view_of", None) is None:
        tracer._view_of = Owner(())
    return tracer


def layout_of_argument(argument: Array, batch_axis: int | None = None) -> Owner | None:
    """The layout of an argument, or of one batch element of it; None for C order and for non-arrays.

    For a value of a Program, the layout is computed at its first use, as long as the value exists.
    """
    is_tracer = type(argument) is Tracer
    if not is_tracer and not isinstance(argument, ndarray):
        return None
    shape = argument.shape
    if not shape:
        return None if is_tracer and is_scalar(argument) else Owner(())
    if batch_axis is not None:
        if len(shape) == 1 or (batch_axis == 0 and is_plain(argument)):
            return None
        return Owner(lambda: tuple(np.delete(layout_of(argument).strides, batch_axis).tolist()))
    if is_plain(argument):
        return None
    if type(argument) is not Tracer:
        return Owner(layout_of(argument).strides)
    if not is_abstract(argument):
        return Owner(functools.partial(strides_of, argument))
    itemsize, reference = argument.dtype.itemsize, weakref.ref(argument)

    def find() -> Strides:
        tracer = reference()
        if tracer is None or type(tracer._interpreter) is ClosedInterpreter:
            return dense_strides(shape, itemsize)
        return strides_of(tracer)

    return Owner(find, _stage_of(argument))


def set_layout(tracer: Array, layout: Owner | None) -> None:
    """Set the layout of an argument's tracer, and so of the results that a Program computes from it."""
    if layout is None or type(tracer) is not Tracer:
        return
    stage = tracer._interpreter
    if tracer.shape and isinstance(stage, Stage) and layout.stage is not stage:
        stage.layouts.inputs[tracer._attached] = layout
    else:
        tracer._view_of = layout


def set_argument_layouts(tracers: Sequence[Array], arguments: Sequence[Array]) -> None:
    """Give the tracers of a call's arguments the layouts of the arguments."""
    for tracer, argument in zip(tracers, arguments, strict=True):
        set_layout(tracer, layout_of_argument(argument))


def layouts_of(arguments: Sequence[Array]) -> list[Owner | None]:
    """The layouts of the arguments of a call, without references to the arguments."""
    layouts = [layout_of_argument(argument) for argument in arguments]
    for i, layout in enumerate(layouts):
        if layout is not None and not is_abstract(arguments[i]):
            layouts[i] = Owner(layout.strides)
    return layouts


def laid_out(copies: list[Array], layouts: Sequence[Owner | None]) -> list[Array]:
    """Copies of arguments in these layouts."""
    for i, layout in enumerate(layouts):
        copy = copies[i]
        set_layout(copy, layout)
        if layout is not None and type(copy) is ndarray and copy.strides != layout.strides:
            copies[i] = copy_with_strides(copy, layout.strides)
    return copies


def detached_tracer(argument: Array) -> Array:
    """A constant argument in a new tracer: a write to it does not reach the caller's array."""
    return Tracer(EVALUATE, argument, None) if type(argument) is ndarray else snapshot(argument)


def layout_key(argument: Array) -> Any:
    """The key of an argument's layout, for arguments of one shape and dtype: None for C order."""
    layout = layout_of_argument(argument)
    return None if layout is None else layout.strides


def layout_of(x: Array) -> Any:
    """A stand-in array with NumPy's layout of x, for operations that need no elements."""
    if type(x) is not Tracer:
        return x
    chain = views_above(x)
    owner = chain[-1].base if chain else x
    array = stand_in(owner.shape, _owned_strides(owner), owner.dtype)
    for view in reversed(chain):
        array = view.make_view(array, **view.params)
    return array


def strides_of(tracer: Tracer) -> Strides:
    """The strides of the array that NumPy would have."""
    strides: Strides = _owned_strides(tracer) if view_of(tracer) is None else layout_of(tracer).strides
    return strides


def _owned_strides(tracer: Tracer) -> Strides:
    """The strides of a traced array that is not a view."""
    owner: Owner | None = getattr(tracer, "_view_of", None)
    if owner is not None:
        return owner.strides
    interpreter, value = tracer._interpreter, tracer._value
    if value is None and isinstance(interpreter, Stage):
        return interpreter.layouts.of(tracer._attached)
    strides = strides_of(value) if type(value) is Tracer else getattr(value, "strides", ())
    if isinstance(interpreter, Vmap):
        return dense_strides(tracer.shape, tracer.dtype.itemsize, axes_by_stride(strides[1:]))
    return strides if len(strides) == len(tracer.shape) else dense_strides(tracer.shape, tracer.dtype.itemsize)


def is_plain(x: Array) -> bool:
    """Whether a tracer owns its memory and its array, batch axes included, is in C order: the common case."""
    value = x
    while type(value) is Tracer:
        if getattr(value, "_view_of", None) is not None:
            return False
        value = value._value
    return value is not None and (not hasattr(value, "flags") or bool(value.flags.c_contiguous))


def flat_view(array: Any, shape: tuple[int, ...]) -> Any:
    """The elements of a stand-in along one axis, or None if they are not contiguous."""
    return array.reshape(shape) if array.flags.c_contiguous else None


def is_view(x: Tracer, make_view: Callable[..., Any], shape: tuple[int, ...]) -> bool | None:
    """Whether NumPy reshapes to a view; None for an abstract array: the first write to one of the two decides.

    A traced function depends on the layout of its arguments only if it writes through reshapes.
    """
    if is_plain(x):
        return True
    return None if is_abstract(x) else make_view(layout_of(x), shape) is not None


def is_abstract(x: Array) -> bool:
    """Whether only the shape of a value is known, because a Program traces it."""
    return type(x) is Tracer and bottom_of(x)._value is None


def bottom_of(tracer: Tracer) -> Tracer:
    """The lowest traced value behind a tracer."""
    while type(tracer._value) is Tracer:
        tracer = tracer._value
    return tracer


def fortran_or_c(x: Array) -> str:
    """The order "A" of an array: "C" unless it is in Fortran order alone."""
    if len(shape_of(x)) < 2 or (type(x) is Tracer and is_plain(x)):
        return "C"
    return "F" if layout_of(x).flags.fnc else "C"


def is_writable(tracer: Tracer) -> bool:
    """Whether NumPy's array is writable: views of read-only memory are not."""
    return all([view.put is not None for view in views_above(tracer)])


def flags_of(tracer: Tracer) -> Any:
    """NumPy's flags of the array: its order, and whether it is writable."""
    array = stand_in(tracer.shape, strides_of(tracer), tracer.dtype).view()
    if not is_writable(tracer):
        array.flags.writeable = False
    return array.flags


def shares_memory(a: Array, b: Array) -> bool:
    """Whether a write to one array changes the other: stand-ins of views of one owner have one base address."""
    if type(a) is not Tracer or type(b) is not Tracer:
        return False
    root = memory_owner(a)
    return root is memory_owner(b) and not is_scalar(root) and bool(np.shares_memory(layout_of(a), layout_of(b)))


def fitted(tracer: Tracer, new: Array) -> Array:
    """A value to write into a tracer that owns its memory, in the order of that memory."""
    if is_plain(tracer) and is_plain(new):
        return new
    new = new if type(new) is Tracer else Tracer(EVALUATE, new, None)
    old, bottom = bottom_of(tracer), bottom_of(new)
    if getattr(tracer, "_view_of", None) is None:
        find = functools.partial(_owned_strides, fresh(tracer))
        tracer._view_of = Owner(find) if old._value is None else Owner(find())
    if bottom._value is None:
        return with_order_of(new, copied_order, [tracer]) if _is_newer(new, old) else new
    order = axes_by_stride(strides_of(tracer))
    is_in_order = same_layout(
        tracer.shape, *[dense_strides(tracer.shape, 1, axes) for axes in (order, axes_by_stride(strides_of(new)))]
    )
    return new if is_in_order else _with_axes_in_memory(new, order)


def _is_newer(new: Tracer, old: Tracer) -> bool:
    """Whether a value of a Program is newer than another value."""
    stage, var = _stage_of(new), bottom_of(new)._attached
    if stage is None or old._interpreter is not stage:
        return stage is not None
    last = next((e for e in reversed(stage.equations) if var in e.outputs or old._attached in e.outputs), None)
    return last is not None and var in last.outputs


def copied(x: Array, order: str = "K") -> Array:
    """A copy in one of NumPy's memory orders; writing it does not change the original."""
    if type(x) is not Tracer:
        return namespace_of((x,)).array(x, order=order)
    if is_plain(x) and (order != "F" or len(x.shape) < 2):
        return with_memory(copy_of(x))
    layout = layout_of(x)
    return _laid_out(copy_of(x), layout.strides, copied_order(layout, order))


def copied_as_it_is(x: Tracer, order: str = "K") -> Array:
    """A copy by a method, which copies a scalar to a scalar; `np.copy` makes an array of it."""
    return copy_of(x) if is_scalar(x) else copied(x, order)


def has_memory_order(x: Array, order: str) -> bool:
    """Whether an array has NumPy's order= without a copy: every array has K and A."""
    if order in ("K", "A") or not (type(x) is Tracer or isinstance(x, ndarray)):
        return True
    flags = layout_of(x).flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def with_axes(x: Array, order: Sequence[int]) -> Array:
    """A new result with its axes in this order in memory, slowest first, without gaps; copies if necessary."""
    shape, strides = shape_of(x), dense_strides(shape_of(x), dtype_of(x).itemsize, order)
    if type(x) is not Tracer:
        has_order = not isinstance(x, ndarray) or same_layout(shape, x.strides, strides)
        return x if has_order else x.transpose(order).copy("C").transpose(inverse_permutation(tuple(order)))
    stage = _stage_of(x)
    if stage is not None:
        var = bottom_of(x)._attached
        stage.layouts.set(var, dense_strides(var.shape, var.dtype.itemsize, _behind_batch(order, _batch_rank(x))))
        return x if view_of(x) is None else fresh(x)
    present = strides_of(x)
    return x if shape and same_layout(shape, present, strides) else _laid_out(fresh(x), present, order)


def _stage_of(x: Array) -> Stage | None:
    """The trace of a value of a Program; None for other values."""
    bottom = bottom_of(x) if type(x) is Tracer else None
    is_traced = bottom is not None and bottom._value is None and isinstance(bottom._interpreter, Stage)
    return bottom._interpreter if is_traced else None  # type: ignore[union-attr, return-value]


def _batch_rank(x: Tracer) -> int:
    """The number of batch axes of the variable behind a tracer."""
    return len(bottom_of(x)._attached.shape) - len(x.shape)


def _behind_batch(order: Sequence[int], batch: int) -> tuple[int, ...]:
    """The axes of a variable in memory: its batch axes come first."""
    return (*range(batch), *[batch + axis for axis in order])


def with_order_of(x: Array, find: Callable[..., Sequence[int]], arrays: Sequence[Array]) -> Array:
    """A new result with its axes in memory, slowest first, in the order that a function derives from layouts.

    While a Program is traced, the function runs at the first use of the layout.
    """
    stage = _stage_of(x)
    if stage is None:
        return with_axes(x, tuple(find(*[layout_of(a) for a in arrays])))
    ranks, batch = [len(shape_of(a)) for a in arrays], _batch_rank(x)  # x may end before the first use

    def find_batched(*known: Any) -> tuple[int, ...]:
        return _behind_batch(find(*[_last_axes(a, rank) for a, rank in zip(known, ranks, strict=True)]), batch)

    known = [bottom_of(a)._attached if _stage_of(a) is stage else layout_of(a) for a in arrays]
    stage.layouts.rules[bottom_of(x)._attached] = find_batched, known
    return x if view_of(x) is None else fresh(x)


def _last_axes(array: Any, rank: int) -> Any:
    """A stand-in without its leading batch axes."""
    return stand_in(array.shape[array.ndim - rank :], array.strides[array.ndim - rank :], array.dtype)


def in_order_of(x: Array, of: Array) -> Array:
    """A new result with its axes in memory in the order of another array's, as in a copy of it."""
    if type(x) is not Tracer or not x.shape or (type(of) is Tracer and is_plain(of) and is_plain(x)):
        return x
    return with_order_of(x, copied_order, [of])


def in_order(x: Array, order: str) -> Array:
    """A new result in a NumPy memory order; copies only if the order differs."""
    if type(x) is not Tracer or (x.shape and is_plain(x) and order == "C"):
        return x
    if len(x.shape) == 1:
        x = fresh(x)
        x._view_of = Owner((x.dtype.itemsize,))
    if len(x.shape) < 2:
        return x
    return with_axes(x, copied_order(layout_of(x) if order in ("A", "K") else x, order))


def _laid_out(tracer: Tracer, strides: Strides, axes: Sequence[int]) -> Tracer:
    """A new tracer with its axes in this order in memory. Copies its array only if it has another order.

    A variable of a Program passes its layout on to later operations and copies, which order the axes of broadcasts
    differently. The repeated elements of a broadcast become separate elements.
    """
    target = dense_strides(tracer.shape, tracer.dtype.itemsize, axes)
    orders = [iterated_order(stand_in(tracer.shape, strides, tracer.dtype))]
    repeats = any([stride == 0 and length > 1 for stride, length in zip(strides, tracer.shape, strict=True)])
    if is_abstract(tracer):
        orders.append(axes_by_stride(strides))
        repeats = False
    if repeats or not all(
        [same_layout(tracer.shape, target, dense_strides(tracer.shape, tracer.dtype.itemsize, o)) for o in orders]
    ):
        tracer = _with_axes_in_memory(tracer, axes_by_stride(target))
    tracer._view_of = Owner(target)
    return tracer


def to_c_order(tracer: Tracer) -> Tracer:
    """A new value of a Program in C order."""
    if len(tracer.shape) > 1:
        tracer = _with_axes_in_memory(tracer, tuple(range(len(tracer.shape))))
    tracer._view_of = Owner(dense_strides(tracer.shape, tracer.dtype.itemsize))
    return tracer


def _with_axes_in_memory(tracer: Tracer, order: tuple[int, ...]) -> Tracer:
    """The tracer with its array in another memory order, which results of operations on it inherit."""
    value = tracer._value
    if value is None:
        assert isinstance(tracer._interpreter, Stage)
        out: Tracer = convert(tracer, dtype=tracer.dtype)
        if isinstance(out._interpreter, Stage):
            out._interpreter.layouts.set(out._attached, dense_strides(tracer.shape, tracer.dtype.itemsize, order))
        return out
    if isinstance(tracer._interpreter, Vmap):
        order = (0, *[axis + 1 for axis in order])
    if type(value) is Tracer:
        new: Any = _with_axes_in_memory(value, order)
    elif hasattr(value, "transpose") and value.ndim:
        new = value.transpose(order).copy("C").transpose(inverse_permutation(order))
    else:
        return tracer
    return new_tracer(tracer._interpreter, new, tracer._attached)
