"""In-place writes and views on traced arrays: a write rebinds the box, and views of one another follow.

A basic slice, reshape or transpose of a box remembers its base. Writing the view writes the base; writing the base
renews its views. Whether two boxes share memory is asked of NumPy's own arrays behind them, as reshape may copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import Array, Tracer, bind, dtype_of, innermost, shape_of
from func.interpreters.errors import TracerConversionError
from func.interpreters.primitives.structural import inverse_permutation, permute, reshape, update
from func.interpreters.source import at_line, user_line
from func.numpy.indexing import fit_value, read, write


class View:
    """How a box was made from its base: the row to renew it by, and how to write it back."""

    __slots__ = ("base", "params", "put", "row")

    def __init__(self, base: Tracer, row: Any, params: dict[str, Any], put: Callable[[Array, Array], Array]) -> None:
        self.base = base
        self.row = row
        self.params = params
        self.put = put


def link_view(out: Array, base: Any, row: Any, params: dict[str, Any], put: Callable[[Array, Array], Array]) -> Array:
    """Remember that `out` is a view of `base`."""
    if type(out) is not Tracer or type(base) is not Tracer or out is base:
        return out
    out.base = View(base, row, params, put)
    views = getattr(base, "views", None)
    if views is None:
        base.views = [weakref.ref(out)]
    else:
        if len(views) >= 64 and len(views) & (len(views) - 1) == 0:
            views[:] = [ref for ref in views if ref() is not None]
        views.append(weakref.ref(out))
    return out


def rebind(box: Tracer, new: Array) -> None:
    """Give a box a new value, and with it everything that shares its memory."""
    view = getattr(box, "base", None)
    if view is not None and not _shares(box, view.base):
        view = None
        box.base = None
    _assign(box, new)
    if view is not None:
        rebind_base(view.base, view.put(_fresh(view.base), new), box)
    _renew_views(box, None)


def rebind_base(base: Tracer, new: Array, source: Tracer) -> None:
    """A view was written: write its base, the base's own base, and renew the other views."""
    view = getattr(base, "base", None)
    if view is not None and not _shares(base, view.base):
        view = None
        base.base = None
    _assign(base, new)
    if view is not None:
        rebind_base(view.base, view.put(_fresh(view.base), new), base)
    _renew_views(base, source)


def _renew_views(base: Tracer, but: Tracer | None) -> None:
    for ref in list(getattr(base, "views", None) or ()):
        other = ref()
        if other is None or other is but:
            continue
        view = getattr(other, "base", None)
        if view is None or view.base is not base:
            continue
        _assign(other, bind(view.row, (_fresh(base),), view.params))
        _renew_views(other, None)


def _fresh(box: Tracer) -> Tracer:
    """The present value of a box, apart from the box."""
    return Tracer(box.interpreter, box.value, box.attached)


def _assign(box: Tracer, new: Array) -> None:
    if type(new) is not Tracer:
        from func.interpreters.core import EVALUATE

        new = Tracer(EVALUATE, new, None)
    if new.interpreter.level > box.interpreter.level:
        box.written = user_line(2)
    box.interpreter, box.value, box.attached = new.interpreter, new.value, new.attached


def _shares(view: Tracer, base: Tracer) -> bool:
    """Whether NumPy would make the one a view of the other: asked of the arrays at the bottom."""
    x, y = innermost(view), innermost(base)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return bool(np.may_share_memory(x, y)) or x.size == 0
    return True


def getitem(x: Tracer, index: Any) -> Array:
    """x[index]; basic indexing gives a view."""
    out, basic = read(x, index)
    if basic is None:
        return out
    from func.interpreters.primitives.structural import getitem as row

    def put(base: Array, value: Array) -> Array:
        return update(base, value, index=basic)

    return link_view(out, x, row, {"index": basic}, put)


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """x[index] = value."""
    if type(value) is Tracer and value is x:
        value = _fresh(value)
    rebind(x, write(_fresh(x), index, value))


def view_reshape(x: Array, shape: tuple[int, ...]) -> Array:
    """A reshape that is a view where NumPy's is."""
    out = reshape(x, shape=shape)
    return link_view(out, x, reshape, {"shape": shape}, lambda base, value: reshape(value, shape=shape_of(base)))


def view_permute(x: Array, order: tuple[int, ...]) -> Array:
    """A transpose, which is always a view."""
    out = permute(x, order=order)
    inverse = inverse_permutation(order)
    return link_view(out, x, permute, {"order": order}, lambda base, value: permute(value, order=inverse))


def write_into(target: Any, result: Array) -> Array:
    """out=target: the target's box is rebound to the result, cast to its dtype ('same_kind') and shape."""
    if type(target) is not Tracer:
        if type(result) is not Tracer:
            target[...] = result
            return target
        raise TracerConversionError(
            f"out= is a plain array, which cannot hold a traced value{at_line()}\n"
            "Make it with np.zeros_like(x, shape=...) of a traced x, or leave out= away."
        )
    if shape_of(result) != target.shape:
        raise ValueError(f"non-broadcastable output operand with shape {target.shape} doesn't match {shape_of(result)}")
    if not np.can_cast(dtype_of(result), target.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast output from {dtype_of(result)!r} to {target.dtype!r} with casting rule 'same_kind'"
        )
    rebind(target, fit_value(result, target.shape, target))
    return target


def is_scalar(x: Tracer) -> bool:
    """True where NumPy has an immutable scalar instead of an array: `total += v` then makes a new one."""
    return x.shape == () and not isinstance(innermost(x), np.ndarray)


def augmented(row: Callable[[Array, Array], Array]) -> Callable[[Tracer, Any], Any]:
    """x += v and its kin: rebinds the box, unless x stands for a scalar."""

    def operate(self: Tracer, other: Any) -> Any:
        if self.shape == ():
            return row(self, other)
        return write_into(self, row(_fresh(self), other))

    return operate
