"""The memory that NumPy would give a traced array: its strides, whether two arrays share it, copies in another order.

The box of a view knows what it is a view of. Any other box owns its memory: that of the array behind it, where that is
NumPy's own result; the part of one batch element of it under vmap; what the Program's equations give while it is
traced. `Owner` keeps the layout of a box whose array lies differently, such as a strided argument that was written.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from func.backends import namespace_of
from func.backends.support.strides import (
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
    """What a box is a view of: its base, how to read it, how to write (None: read-only), and how it lies in memory.

    `lies` makes the view of a stand-in of the base, or returns None where NumPy copies. Of an `undecided` view this is
    found out when one of the two is written.
    """

    base: Tracer
    read: Callable[..., Array]
    params: dict[str, Any]
    put: Put | None
    lies: Callable[..., Any]
    undecided: bool = False
    detached: bool = False
    """It shares numbers with its base, and no history."""
    has_own_version: bool = False


class Owner:
    """The strides of a box that owns its memory, where its array lies differently; or a function that finds them."""

    __slots__ = ("_strides", "stage")

    def __init__(self, strides: Strides | Callable[[], Strides], stage: Stage | None = None) -> None:
        self._strides = strides
        self.stage = stage
        """Where they are those of a variable of a Program: who traces it."""

    @property
    def strides(self) -> Strides:
        """The strides in bytes."""
        if callable(self._strides):
            self._strides = self._strides()
        return self._strides


def view_of(box: Tracer) -> View | None:
    """The View of a box, or None. Whether a reshape is a view is decided now where it was not before."""
    place = getattr(box, "_view_of", None)
    if type(place) is not View:
        return None
    if place.undecided:
        if place.lies(layout_of(place.base), **place.params) is None:
            box._view_of = Owner(dense_strides(place.params["shape"], place.base.dtype.itemsize))
            return None
        box._view_of = place = place._replace(undecided=False)
    return place


def views_above(box: Tracer) -> list[View]:
    """The views from a box to the one that owns its memory, which is the base of the last."""
    chain = []
    while (view := view_of(box)) is not None:
        chain.append(view)
        box = view.base
    return chain


def memory_owner(box: Tracer) -> Tracer:
    """The box that owns the memory of a view."""
    chain = views_above(box)
    return chain[-1].base if chain else box


def is_scalar(box: Tracer) -> bool:
    """Whether NumPy has a scalar here, which has no memory that a view could share: not so 0-d arrays and views."""
    return box.shape == () and getattr(box, "_view_of", None) is None and getattr(box, "_state", None) is None


def fresh(box: Tracer) -> Tracer:
    """The present value of a box, in another box."""
    return Tracer(box._interpreter, box._value, box._attached)


def with_memory(box: Array) -> Array:
    """The box, which from now on is a 0-d array, not a scalar, where it has no axes."""
    if type(box) is Tracer and box.shape == () and getattr(box, "_view_of", None) is None:
        box._view_of = Owner(())
    return box


def layout_of_argument(argument: Array, batch_axis: int | None = None) -> Owner | None:
    """How an argument lies in memory, or an element of the batch in it: None for C order, and for what is no array.

    Of a value that is traced into a Program this is found when it is asked for, as long as the value exists.
    """
    is_box = type(argument) is Tracer
    if not is_box and not isinstance(argument, ndarray):
        return None
    shape = argument.shape
    if not shape:
        return None if is_box and is_scalar(argument) else Owner(())
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
    itemsize, given = argument.dtype.itemsize, weakref.ref(argument)

    def find() -> Strides:
        box = given()
        if box is None or type(box._interpreter) is ClosedInterpreter:
            return dense_strides(shape, itemsize)
        return strides_of(box)

    return Owner(find, _stage_of(argument))


def set_layout(box: Array, layout: Owner | None) -> None:
    """Let the traced value of an argument lie in memory as a layout says, and what a Program computes from it."""
    if layout is None or type(box) is not Tracer:
        return
    stage = box._interpreter
    if box.shape and isinstance(stage, Stage) and layout.stage is not stage:
        stage.layouts.inputs[box._attached] = layout
    else:
        box._view_of = layout


def set_argument_layouts(boxes: Sequence[Array], arguments: Sequence[Array]) -> None:
    """Let the traced arguments of a call lie in memory as what was given for them."""
    for box, argument in zip(boxes, arguments, strict=True):
        set_layout(box, layout_of_argument(argument))


def layouts_of(arguments: Sequence[Array]) -> list[Owner | None]:
    """How the arguments of a call lie in memory, of which none is kept."""
    layouts = [layout_of_argument(argument) for argument in arguments]
    for i, layout in enumerate(layouts):
        if layout is not None and not is_abstract(arguments[i]):
            layouts[i] = Owner(layout.strides)
    return layouts


def laid_out(copies: list[Array], layouts: Sequence[Owner | None]) -> list[Array]:
    """Copies of arguments that lie in memory as layouts say."""
    for i, layout in enumerate(layouts):
        copy = copies[i]
        set_layout(copy, layout)
        if layout is not None and type(copy) is ndarray and copy.strides != layout.strides:
            copies[i] = copy_with_strides(copy, layout.strides)
    return copies


def detached_tracer(argument: Array) -> Array:
    """An argument that is not differentiated in a box of its own: a write to it does not reach the caller's array."""
    return Tracer(EVALUATE, argument, None) if type(argument) is ndarray else snapshot(argument)


def layout_key(argument: Array) -> Any:
    """What tells arguments of one shape and dtype apart by their memory: None for C order."""
    layout = layout_of_argument(argument)
    return None if layout is None else layout.strides


def layout_of(x: Array) -> Any:
    """An array that lies in memory as NumPy's, whose elements must not be read: what is done to x is done to it."""
    if type(x) is not Tracer:
        return x
    chain = views_above(x)
    owner = chain[-1].base if chain else x
    array = stand_in(owner.shape, _owned_strides(owner), owner.dtype)
    for view in reversed(chain):
        array = view.lies(array, **view.params)
    return array


def strides_of(box: Tracer) -> Strides:
    """The strides of the array that NumPy would have."""
    strides: Strides = _owned_strides(box) if view_of(box) is None else layout_of(box).strides
    return strides


def _owned_strides(box: Tracer) -> Strides:
    """The strides of a box that is not a view."""
    owner: Owner | None = getattr(box, "_view_of", None)
    if owner is not None:
        return owner.strides
    interpreter, value = box._interpreter, box._value
    if value is None and isinstance(interpreter, Stage):
        return interpreter.layouts.of(box._attached)
    strides = strides_of(value) if type(value) is Tracer else getattr(value, "strides", ())
    if isinstance(interpreter, Vmap):
        return dense_strides(box.shape, box.dtype.itemsize, axes_by_stride(strides[1:]))
    return strides if len(strides) == len(box.shape) else dense_strides(box.shape, box.dtype.itemsize)


def is_plain(x: Array) -> bool:
    """Whether a box owns its memory and the array behind it, batch axes included, is in C order: the common case."""
    value = x
    while type(value) is Tracer:
        if getattr(value, "_view_of", None) is not None:
            return False
        value = value._value
    return value is not None and (not hasattr(value, "flags") or bool(value.flags.c_contiguous))


def flat_view(array: Any, shape: tuple[int, ...]) -> Any:
    """The elements of a stand-in along one axis, or None where they do not lie in one piece."""
    return array.reshape(shape) if array.flags.c_contiguous else None


def is_view(x: Tracer, lies: Callable[..., Any], shape: tuple[int, ...]) -> bool | None:
    """Whether NumPy reshapes to a view; None: to be decided when one of the two is written, as the box is abstract.

    A function that is traced depends on the layout of its arguments only where it writes through reshapes.
    """
    if is_plain(x):
        return True
    return None if is_abstract(x) else lies(layout_of(x), shape) is not None


def is_abstract(x: Array) -> bool:
    """Whether a value is known by its shape only, as it is traced into a Program."""
    return type(x) is Tracer and bottom_of(x)._value is None


def bottom_of(box: Tracer) -> Tracer:
    """The lowest traced value behind a box."""
    while type(box._value) is Tracer:
        box = box._value
    return box


def fortran_or_c(x: Array) -> str:
    """The order "A" of an array: "F" for Fortran order that is not C order as well, else "C"."""
    if len(shape_of(x)) < 2 or (type(x) is Tracer and is_plain(x)):
        return "C"
    return "F" if layout_of(x).flags.fnc else "C"


def is_writable(box: Tracer) -> bool:
    """Whether NumPy's array may be written: views of read-only memory may not."""
    return all([view.put is not None for view in views_above(box)])


def flags_of(box: Tracer) -> Any:
    """What NumPy says of the order of an array, and whether it may be written."""
    array = stand_in(box.shape, strides_of(box), box.dtype).view()
    if not is_writable(box):
        array.flags.writeable = False
    return array.flags


def shares_memory(a: Array, b: Array) -> bool:
    """Whether a write to one array changes the other: the stand-ins of all views of one owner begin at one place."""
    if type(a) is not Tracer or type(b) is not Tracer:
        return False
    root = memory_owner(a)
    return root is memory_owner(b) and not is_scalar(root) and bool(np.shares_memory(layout_of(a), layout_of(b)))


def fitted(box: Tracer, new: Array) -> Array:
    """A value that is written into a box which owns its memory, in the order of that memory, which the box keeps."""
    if is_plain(box) and is_plain(new):
        return new
    new = new if type(new) is Tracer else Tracer(EVALUATE, new, None)
    old, bottom = bottom_of(box), bottom_of(new)
    if getattr(box, "_view_of", None) is None:
        find = functools.partial(_owned_strides, fresh(box))
        box._view_of = Owner(find) if old._value is None else Owner(find())
    if bottom._value is None:
        return with_order_of(new, copied_order, [box]) if _is_newer(new, old) else new
    order = axes_by_stride(strides_of(box))
    is_in_order = same_layout(
        box.shape, *[dense_strides(box.shape, 1, axes) for axes in (order, axes_by_stride(strides_of(new)))]
    )
    return new if is_in_order else _with_axes_in_memory(new, order)


def _is_newer(new: Tracer, old: Tracer) -> bool:
    """Whether a value that is traced into a Program is no variable that was there before an older value."""
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
    """A copy by a method, which of a scalar is a scalar: `np.copy` makes an array of it."""
    return copy_of(x) if is_scalar(x) else copied(x, order)


def has_memory_order(x: Array, order: str) -> bool:
    """Whether an array meets an order= of NumPy's without a copy: everything meets K and A."""
    if order in ("K", "A") or not (type(x) is Tracer or isinstance(x, ndarray)):
        return True
    flags = layout_of(x).flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def with_axes(x: Array, order: Sequence[int]) -> Array:
    """A new result of func's with its axes in this order in memory, slowest first, and no gaps: it moves if it must."""
    shape, strides = shape_of(x), dense_strides(shape_of(x), dtype_of(x).itemsize, order)
    if type(x) is not Tracer:
        is_kept = not isinstance(x, ndarray) or same_layout(shape, x.strides, strides)
        return x if is_kept else x.transpose(order).copy("C").transpose(inverse_permutation(tuple(order)))
    stage = _stage_of(x)
    if stage is not None:
        var = bottom_of(x)._attached
        stage.layouts.set(var, dense_strides(var.shape, var.dtype.itemsize, _behind_batch(order, _batch_rank(x))))
        return x if view_of(x) is None else fresh(x)
    present = strides_of(x)
    return x if shape and same_layout(shape, present, strides) else _laid_out(fresh(x), present, order)


def _stage_of(x: Array) -> Stage | None:
    """The Program's interpreter for a value that is traced into one."""
    bottom = bottom_of(x) if type(x) is Tracer else None
    is_traced = bottom is not None and bottom._value is None and isinstance(bottom._interpreter, Stage)
    return bottom._interpreter if is_traced else None  # type: ignore[union-attr, return-value]


def _batch_rank(x: Tracer) -> int:
    """The number of batch axes of the variable behind a box."""
    return len(bottom_of(x)._attached.shape) - len(x.shape)


def _behind_batch(order: Sequence[int], batch: int) -> tuple[int, ...]:
    """The axes of a variable in memory: its batch axes come first."""
    return (*range(batch), *[batch + axis for axis in order])


def with_order_of(x: Array, find: Callable[..., Sequence[int]], arrays: Sequence[Array]) -> Array:
    """A new result of func's with its axes in memory, slowest first, as a function finds from how arrays lie.

    While a Program is traced, it is found when somebody asks.
    """
    stage = _stage_of(x)
    if stage is None:
        return with_axes(x, tuple(find(*[layout_of(a) for a in arrays])))
    ranks, batch = [len(shape_of(a)) for a in arrays], _batch_rank(x)  # x may end before somebody asks

    def find_batched(*known: Any) -> tuple[int, ...]:
        return _behind_batch(find(*[_last_axes(a, rank) for a, rank in zip(known, ranks, strict=True)]), batch)

    known = [bottom_of(a)._attached if _stage_of(a) is stage else layout_of(a) for a in arrays]
    stage.layouts.rules[bottom_of(x)._attached] = find_batched, known
    return x if view_of(x) is None else fresh(x)


def _last_axes(array: Any, rank: int) -> Any:
    """A stand-in without its leading batch axes."""
    return stand_in(array.shape[array.ndim - rank :], array.strides[array.ndim - rank :], array.dtype)


def in_order_of(x: Array, of: Array) -> Array:
    """A new result of func's with its axes in memory in the order of those of another array, as in a copy of it."""
    if type(x) is not Tracer or not x.shape or (type(of) is Tracer and is_plain(of) and is_plain(x)):
        return x
    return with_order_of(x, copied_order, [of])


def in_order(x: Array, order: str) -> Array:
    """A new result of func's in the memory order of NumPy's; the memory changes only where they differ."""
    if type(x) is not Tracer or (x.shape and is_plain(x) and order == "C"):
        return x
    if len(x.shape) == 1:
        x = fresh(x)
        x._view_of = Owner((x.dtype.itemsize,))
    if len(x.shape) < 2:
        return x
    return with_axes(x, copied_order(layout_of(x) if order in ("A", "K") else x, order))


def _laid_out(box: Tracer, strides: Strides, axes: Sequence[int]) -> Tracer:
    """A new box with its axes in this order in memory. Its array is copied only where they are in another one.

    A variable of a Program tells later functions how it lies, to operations and to copies, which place the axes of
    broadcasts differently. The repeated elements of a broadcast become elements of their own.
    """
    wanted = dense_strides(box.shape, box.dtype.itemsize, axes)
    orders = [iterated_order(stand_in(box.shape, strides, box.dtype))]
    repeats = any([stride == 0 and length > 1 for stride, length in zip(strides, box.shape, strict=True)])
    if is_abstract(box):
        orders.append(axes_by_stride(strides))
        repeats = False
    if repeats or not all(
        [same_layout(box.shape, wanted, dense_strides(box.shape, box.dtype.itemsize, o)) for o in orders]
    ):
        box = _with_axes_in_memory(box, axes_by_stride(wanted))
    box._view_of = Owner(wanted)
    return box


def to_c_order(box: Tracer) -> Tracer:
    """A new value of a Program in C order, whatever the order of the one in the box is."""
    if len(box.shape) > 1:
        box = _with_axes_in_memory(box, tuple(range(len(box.shape))))
    box._view_of = Owner(dense_strides(box.shape, box.dtype.itemsize))
    return box


def _with_axes_in_memory(box: Tracer, order: tuple[int, ...]) -> Tracer:
    """The box with the array behind it in another order of memory, which results of operations on it take over."""
    value = box._value
    if value is None:
        assert isinstance(box._interpreter, Stage)
        out: Tracer = convert(box, dtype=box.dtype)
        if isinstance(out._interpreter, Stage):
            out._interpreter.layouts.set(out._attached, dense_strides(box.shape, box.dtype.itemsize, order))
        return out
    if isinstance(box._interpreter, Vmap):
        order = (0, *[axis + 1 for axis in order])
    if type(value) is Tracer:
        new: Any = _with_axes_in_memory(value, order)
    elif hasattr(value, "transpose") and value.ndim:
        new = value.transpose(order).copy("C").transpose(inverse_permutation(order))
    else:
        return box
    return new_tracer(box._interpreter, new, box._attached)
