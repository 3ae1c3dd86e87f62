"""In-place writes and views of traced arrays.

A write rebinds a tracer to a new value. A basic slice, reshape or transpose refers to its base, like a NumPy view. A
write to any of them writes the root and then updates all views of it. `memory.py` decides whether a reshape is a view,
as NumPy does.
"""

from __future__ import annotations

import dis
import functools
import math
import sys
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from func.backends.array_helpers.strides import axes_by_stride, dense_strides, same_layout, without_copy
from func.interpreters.core import CARRIERS, Array, Tracer, dtype_of, has_rules, shape_of, snapshot, unboxed
from func.interpreters.core.errors import TracerConversionError, UnsupportedFunctionError
from func.interpreters.core.modes import MODE, WATCHED, anomaly, nothing_recorded, saving
from func.interpreters.host.source import at_line
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.imperative import interpreter, writes
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.structural.indexing import gather, scatter
from func.interpreters.primitives.structural.shapes import broadcast, inverse_permutation, permute, reshape
from func.interpreters.primitives.structural.slicing import concatenate, keep, reuse, spare_buffers, update
from func.interpreters.primitives.structural.slicing import getitem as getitem_primitive
from func.numpy import memory
from func.numpy.argument_checks import as_array
from func.numpy.indexing import assigned, fit_value, normalize, plan_write, read
from func.numpy.memory import Put, View
from func.numpy.sharing import after_write, before_write

WRITE_HINT = (
    "A plain array cannot store a traced value. Make it with np.zeros_like(x, shape=...) of a traced x, or run the "
    "code inside `with func.intercept():`, which lets np.zeros and similar functions make arrays that can, or "
    "collect the values in a list and np.stack it."
)


def link_view(
    out: Array,
    base: Any,
    read: Callable[..., Array],
    params: dict[str, Any],
    put: Put | None,
    make_view: Callable[..., Any] | None,
    undecided: bool = False,
) -> Array:
    """Record that `out` is a view of `base`; `make_view` makes the same view of an array."""
    return _linked(out, base, View(base, read, params, put, make_view or _whole, undecided))


def link_alias(out: Array, base: Any, detached: Callable[[Array], Array], has_own_version: bool) -> Array:
    """Record that `out` is `base` without its history: a write to either changes the numbers of both."""
    view = View(base, detached, {}, lambda base, value: detached(value), _whole, False, True, has_own_version)
    return _linked(out, base, view)


def _whole(array: Any) -> Any:
    return array


def _linked(out: Array, base: Any, view: View) -> Array:
    if type(out) is not Tracer or type(base) is not Tracer or out is base:
        return out
    out._view_of = view
    views = getattr(base, "_views", None)
    if views is None:
        base._views = [weakref.ref(out)]
    else:
        if len(views) >= 64 and len(views) & (len(views) - 1) == 0:
            views[:] = [ref for ref in views if ref() is not None]
        views.append(weakref.ref(out))
    return out


def base_of(tracer: Tracer) -> Tracer | None:
    """The traced array that owns the memory of a view, or None: NumPy's `x.base`."""
    owner = memory.memory_owner(tracer)
    return None if owner is tracer else owner


def rebind(tracer: Tracer, new: Array) -> None:
    """Rebind a traced array to a new value of its shape and dtype, and update all that shares its memory."""
    new = snapshot(new)
    rewrite(tracer, lambda present: new)


def rewrite(tracer: Tracer, change: Callable[[Array], Array]) -> None:
    """Rebind a traced array to `change(present value)`, and update all that shares its memory.

    This also writes its bases, up to the root; beyond a detached view only numbers. The views are empty during the
    write to the root, so that it can reuse memory that nothing else refers to.
    """
    chain = _writable_views(tracer)
    tracers = [tracer, *[view.base for view in chain]]
    shared = _shared(chain)
    for written in tracers[: shared + 1]:
        writes.check_leaf_write(written)
    top, root = tracers[shared], tracers[-1]
    update = _Update(root, top)
    owner = root._interpreter
    partners = before_write(root) if owner.called is not None or owner.inner_calls else None
    try:
        if chain:
            value = change(memory.fresh(tracer))
            # Read the view of a tensor from its base again: gradients with respect to the base flow through it.
            is_read = tracer is not top and type(value) is Tracer and type(value._interpreter) is interpreter.Imperative
            if not is_read and memory.is_plain(value) and memory.is_plain(tracer._value):
                update.values[id(tracer)] = value
            last = len(chain) - 1
            for view in chain[: min(shared, last)]:
                value = view.put(memory.fresh(view.base), value)  # type: ignore[misc]
            if root is not top:
                update.history = writes.history_of(_recorded(top, value))
            for view in chain[shared:last]:
                with nothing_recorded():
                    value = view.put(memory.fresh(view.base), value)  # type: ignore[misc]
            change = functools.partial(_put, chain[last], value)
        update.empty_views()
        with nullcontext() if root is top else nothing_recorded():
            value = _in_place(root, change, update.spare)
        update.write_root(value)
        _count_write(tracer)
    finally:
        keep(update.spare)  # again: an interrupt may have preceded the first time
        update.renew_views()
    if partners is not None or owner.shared is not None or getattr(root, "_views", None):
        after_write(owner, tracer, root, partners or ())


def _writable_views(tracer: Tracer) -> list[View]:
    chain = memory.views_above(tracer)
    if any([view.put is None for view in chain]):
        raise ValueError("assignment destination is read-only")
    return chain


def _shared(chain: list[View]) -> int:
    """The number of views of a chain, from its start, that share the history of the written array."""
    return next((i for i, view in enumerate(chain) if view.detached), len(chain))


def _in_place(root: Tracer, change: Callable[[Array], Array], spare: list[int]) -> Array:
    """A new value of a root, written into the arrays that only it refers to; notes them in `spare`."""
    if not (WATCHED.ever and (saving() or anomaly() is not None)):  # a write that raises writes nothing
        spare.extend(spare_buffers(root))
    try:
        reuse(spare)
        return change(memory.fresh(root))
    finally:
        keep(spare)


def _living_views(base: Tracer) -> list[tuple[Tracer, View]]:
    """The live views of a traced array."""
    tracers = [ref() for ref in getattr(base, "_views", None) or ()]
    return [
        (tracer, view)
        for tracer in tracers
        if tracer is not None and (view := memory.view_of(tracer)) and view.base is base
    ]


def _recorded(tracer: Tracer, value: Array) -> Array:
    """A new value of a traced array with its old history at the levels that do not record the write."""
    return value if MODE.get() is None else writes.with_history(writes.history_of(tracer), value, False)


def _put(view: View, value: Array, base: Array) -> Array:
    return view.put(base, value)  # type: ignore[misc]


class _Update:
    """The update of all traced arrays that share memory: a write to the root, then to its views.

    Those between `top` and the written one get the history of the write. If `top` is not the root, a detached view lies
    between, and all others get numbers only.
    """

    def __init__(self, root: Tracer, top: Tracer) -> None:
        self.root, self.top = root, top
        self.is_written = False
        self.values: dict[int, Array] = {}
        """New values to use instead of a read from the base, by the id of their tracer."""
        self.history: writes.History | None = None
        """The new history of `top`, where it is not the root."""
        self.views: list[tuple[Tracer, View, writes.History | None]] = []
        self.levels = {id(root): root._interpreter.level}
        """The levels of the traced arrays before the write."""
        self.unrecorded = {id(root)}
        """The traced arrays that get numbers only."""
        self.spare: list[int] = []
        """The arrays (by id) that only the root refers to; the new value reuses them."""

    def empty_views(self) -> None:
        """Empty all views, and save the histories that the write may leave unchanged."""
        bases = [self.root]
        remembers = MODE.get() is not None or self.root is not self.top
        for base in bases:
            for tracer, view in _living_views(base):
                remembers = remembers or view.detached
                has_history = remembers or type(tracer._interpreter) is interpreter.Imperative
                self.views.append((tracer, view, writes.history_of(tracer) if has_history else None))
                self.levels[id(tracer)] = tracer._interpreter.level
                bases.append(tracer)
        for tracer, _, _ in self.views:
            tracer._value = tracer._attached = None

    def write_root(self, value: Array) -> None:
        """Set the new value of the root."""
        value = memory.fitted(self.root, value)
        if self.root is self.top:
            self.unrecorded.clear()
        if self.unrecorded or MODE.get() is not None:
            value = writes.with_history(writes.history_of(self.root), value, bool(self.unrecorded))
        writes.assign(self.root, value)
        self.is_written = True

    def renew_views(self) -> None:
        """Set the new values of the views; after an error, the old ones."""
        for tracer, view, history in self.views:
            if history is not None:
                tracer._interpreter, tracer._attached = history.owner, history.attached
            writes.assign(tracer, self._renewed(tracer, view, history))

    def _renewed(self, tracer: Tracer, view: View, history: writes.History | None) -> Array:
        if self.is_written and id(tracer) in self.values:
            value, numbers_only = self.values[id(tracer)], False
        elif self.is_written and tracer is self.top:
            value, history, numbers_only = _numbers(view), self.history, True
        elif view.detached or (not self.is_written and history is not None) or id(view.base) in self.unrecorded:
            self.unrecorded.add(id(tracer))
            value, numbers_only = _numbers(view), True
        else:
            value = view.read(memory.fresh(view.base), **view.params)
            numbers_only = writes.outlives(history, self.levels[id(view.base)], value)
        return writes.with_history(history, value, numbers_only) if numbers_only or MODE.get() is not None else value


def _numbers(view: View) -> Array:
    """The numbers that a view reads from its base."""
    with nothing_recorded():
        return view.read(memory.fresh(view.base), **view.params)


def _count_write(tracer: Tracer) -> None:
    """Count a write for all that share a version: a tensor, its views and its bases."""
    owner = owner_of_version(tracer)
    if owner._interpreter.level < 1 or type(owner._interpreter) is interpreter.Imperative:
        writes.count_write(interpreter.state_of(owner))


def owner_of_version(tracer: Tracer) -> Tracer:
    """The traced array whose state counts the writes to an array and to those that share its memory."""
    while (view := memory.view_of(tracer)) is not None and not view.has_own_version:
        tracer = view.base
    return tracer


def version_of(tracer: Tracer) -> int:
    """The number of writes to a traced array and those that share its version."""
    state = getattr(owner_of_version(tracer), "_state", None)
    return 0 if state is None else state.version


def getitem(x: Tracer, index: Any) -> Array:
    """x[index]; basic indexing gives a view."""
    try:
        out, basic = read(x, index)
        if basic is None:
            return out

        def put(base: Array, value: Array) -> Array:
            return update(base, value, index=basic)

        fields = (x, _read_item, {"index": basic}, put, getitem_primitive.layout, False, False, False)
        return _linked(out, x, tuple.__new__(View, fields))  # a named tuple takes three times as long
    except Exception as error:
        hide_outside(error)
        raise


def _read_item(x: Array, *, index: Any) -> Array:
    return as_array(getitem_primitive(x, index=index))


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """x[index] = value."""
    try:
        if type(value) is Tracer and (view := memory.view_of(value)) is not None and view.base is x:
            if _is_item_of(value, x, index):
                check_write(x)
                return  # the last step of x[index] += v: writing the view has written x
            _check_shuffle(sys._getframe(1))
        rewrite(x, plan_write(x, _apart(index), _apart(assigned(x, index, value))))
    except Exception as error:
        hide_outside(error)
        raise


def _check_shuffle(caller: FrameType) -> None:
    """Raise if NumPy's `shuffle` exchanges rows: they are views here, and one would appear twice."""
    code = caller.f_code
    is_statement = dis.opname[code.co_code[caller.f_lasti]] == "STORE_SUBSCR"
    if not is_statement and "shuffle" in code.co_names:
        raise UnsupportedFunctionError(
            f"NumPy's shuffle of a traced array would duplicate rows{at_line()}\n"
            "Write x[...] = x[rng.permutation(len(x))], or use func.random.default_rng(key), whose shuffle is traced."
        )


def _apart(operand: Any) -> Any:
    """A value or index in a separate tracer: the views of the written one are empty during the write."""
    if type(operand) is Tracer:
        return memory.fresh(operand)
    if type(operand) is tuple:
        return tuple([_apart(entry) for entry in operand])
    return operand


def _is_item_of(value: Tracer, x: Tracer, index: Any) -> bool:
    view = memory.view_of(value)
    if view is None or view.base is not x or view.read is not _read_item:
        return False
    plan = normalize(index, x.shape)
    return not plan.axes and plan.basic == view.params["index"]


def view_reshape(x: Array, shape: tuple[int, ...], make_view: Callable[..., Any] = without_copy) -> Array:
    """A reshape, which is a view where NumPy's is."""
    out = reshape(x, shape=shape)
    if type(x) is not Tracer or type(out) is not Tracer or memory.is_scalar(x):
        return out
    shares = memory.is_view(x, make_view, shape)
    if shares is False:
        return memory.in_order(memory.with_memory(out), "C")
    return link_view(out, x, reshape, {"shape": shape}, _put_reshaped, make_view, undecided=shares is None)


def _put_reshaped(base: Array, value: Array) -> Array:
    return reshape(value, shape=shape_of(base))


def view_permute(x: Array, order: tuple[int, ...]) -> Array:
    """A transpose, which is always a view; a scalar is its own transpose."""
    if not order and type(x) is Tracer and memory.is_scalar(x):
        return x
    inverse = inverse_permutation(order)
    out = permute(x, order=order)
    return link_view(
        out, x, permute, {"order": order}, lambda base, value: permute(value, order=inverse), permute.layout
    )


def view_broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """A broadcast array, which is a read-only view."""
    return link_view(_read_broadcast(x, shape), x, _read_broadcast, {"shape": shape}, None, broadcast.layout)


def _read_broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """A broadcast array; the array behind it repeats its elements, like NumPy's, so results have NumPy's layout."""
    out = broadcast(x, shape=shape)
    tracer = memory.bottom_of(out) if type(out) is Tracer else None
    if tracer is not None and type(tracer._value) is np.ndarray and tracer._value.flags.owndata:
        lengths = (*[1] * (len(shape) - len(shape_of(x))), *shape_of(x))
        repeated = [slice(None) if a == b else slice(1) for a, b in zip(lengths, shape, strict=True)]
        tracer._value = np.broadcast_to(tracer._value[(..., *repeated)], tracer._value.shape)
    return out


def view_windows(x: Array, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """All windows along axes, as trailing axes, which are a read-only view."""
    from func.interpreters.primitives.structural.convolution import windows  # start-up time

    params = {"sizes": sizes, "axes": axes}
    return link_view(windows(x, **params), x, windows, params, None, windows.layout)


def view_memory(x: Tracer, start: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    """The view of an array in C order that has these steps between its elements, as NumPy's `as_strided`."""
    order = axes_by_stride(steps)
    lengths, steps = tuple([shape[axis] for axis in order]), tuple([steps[axis] for axis in order])
    size = math.prod(shape)
    if not same_layout(lengths, steps, dense_strides(lengths, 1)):
        out = _strided_view(view_reshape(x, (math.prod(x.shape),)), start, lengths, steps)
    elif lengths == x.shape:
        out = x
    else:
        out = view_reshape(getitem(view_reshape(x, (math.prod(x.shape),)), slice(start, start + size)), lengths)
    return out if order == tuple(range(len(order))) else view_permute(out, inverse_permutation(order))


def _strided_view(flat: Array, start: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    def make_view(array: Any) -> Any:
        return as_strided(array[start:], shape, [step * array.itemsize for step in steps])

    places = make_view(np.arange(flat.size))

    def read(flat: Array) -> Array:
        return gather(flat, places, axis=0)

    return link_view(read(flat), flat, read, {}, lambda flat, value: scatter(flat, value, places, axis=0), make_view)


def view_diagonal(x: Array, offset: int, first: int, second: int, writable: bool = False) -> Array:
    """The diagonals of the planes of two axes, as the last axis: a view."""
    params = {"offset": offset, "axis1": first, "axis2": second}

    def put(base: Array, value: Array) -> Array:
        order, places = _planes(shape_of(base), **params)
        planes = scatter(permute(base, order=order), value, *places, axis=len(order) - 2)
        return permute(planes, order=inverse_permutation(order))

    return link_view(_read_diagonal(x, **params), x, _read_diagonal, params, put if writable else None, np.diagonal)


def _planes(shape: tuple[int, ...], offset: int, axis1: int, axis2: int) -> tuple[tuple[int, ...], tuple[Any, Any]]:
    """The order that puts two axes last, and the places of a diagonal on them."""
    order = (*[axis for axis in range(len(shape)) if axis not in (axis1, axis2)], axis1, axis2)
    n, m = shape[axis1], shape[axis2]
    i = np.arange(max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m)))
    return order, (i + max(-offset, 0), i + max(offset, 0))


def _read_diagonal(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    from func.interpreters.primitives.structural.diagonals import strides_of, take  # start-up time

    order, (rows, _) = _planes(shape_of(x), offset, axis1, axis2)
    planes = permute(x, order=order)
    *steps, down, across = strides_of(shape_of(planes))
    first = max(-offset, 0) * down + max(offset, 0) * across if len(rows) else 0
    return take(planes, placement=(first, (*shape_of(planes)[:-2], len(rows)), (*steps, down + across)))


def view_real(x: Array) -> Array:
    """The real part, as a view; a real array itself."""
    if dtype_of(x).kind != "c":
        return x
    if type(x) is not Tracer or memory.is_scalar(x):
        return ops.real(x)

    def put(base: Array, part: Array) -> Array:
        return as_array(ops.make_complex(part, ops.imag(base)))

    return link_view(ops.real(x), x, ops.real, {}, put, lambda array: array.real)


def view_imag(x: Array) -> Array:
    """The imaginary part, as a view; read-only zeros for a real array. A scalar's has no memory, either."""
    if type(x) is not Tracer or memory.is_scalar(x):
        return ops.imag(x)
    if dtype_of(x).kind != "c":
        return link_view(ops.imag(x), x, ops.imag, {}, None, lambda array: array.imag)

    def put(base: Array, part: Array) -> Array:
        return as_array(ops.make_complex(ops.real(base), part))

    return link_view(ops.imag(x), x, ops.imag, {}, put, lambda array: array.imag)


def view_pairs(x: Tracer, dtype: np.dtype[Any]) -> Array:
    """Complex numbers as pairs of real ones along the last axis, or the other way round, as a view.

    Raises NumPy's ValueError if the last axis is missing, of odd length or not contiguous in memory.
    """
    memory.layout_of(x).view(dtype)
    read = _read_complex if dtype.kind == "c" else _read_pairs
    put = _read_pairs if dtype.kind == "c" else _read_complex
    return link_view(read(x), x, read, {}, lambda base, value: put(value), lambda array: array.view(dtype))


def _read_complex(x: Array) -> Array:
    *lengths, last = shape_of(x)
    axes = [(0, length, 1) for length in lengths]
    real, imag = [getitem_primitive(x, index=(*axes, (first, last, 2))) for first in (0, 1)]
    return ops.make_complex(real, imag)


def _read_pairs(x: Array) -> Array:
    shape = shape_of(x)
    parts = [reshape(part(x), shape=(*shape, 1)) for part in (ops.real, ops.imag)]
    return reshape(concatenate(*parts, axis=len(shape)), shape=(*shape[:-1], 2 * math.prod(shape[-1:])))


def write_into(target: Any, result: Array) -> Array:
    """Write a result to out=target, broadcast to its shape and cast to its dtype by the rule 'same_kind'."""
    if not hasattr(target, "dtype"):
        raise TypeError(f"output must be an array, got {type(target).__name__}")
    if not np.can_cast(dtype_of(result), dtype_of(target), "same_kind"):
        raise TypeError(
            f"Cannot cast output from {dtype_of(result)!r} to {dtype_of(target)!r} with casting rule 'same_kind'"
        )
    if np.broadcast_shapes(shape_of(result), shape_of(target)) != shape_of(target):
        raise ValueError(
            f"non-broadcastable output operand with shape {shape_of(target)} doesn't match {shape_of(result)}"
        )
    if type(target) is not Tracer:
        if type(target) is np.ndarray and type(unboxed(result)) is not Tracer:
            np.copyto(target, unboxed(result))
            return target
        if type(result) is not Tracer or type(target) in CARRIERS:
            target[...] = result
            return target
        raise TracerConversionError(
            f"a plain array cannot take a traced value, by out= or an operator such as +={at_line()}\n{WRITE_HINT}"
        )
    value = fit_value(result, target.shape, target)
    if target.shape:
        rebind(target, value)
    else:
        rewrite(target, lambda present: update(present, value, index=()))  # an array stays an array
    return target


def check_write(target: Any) -> None:
    """Raise if a write to out=target will fail."""
    if type(target) is Tracer:
        chain = _writable_views(target)
        for tracer in [target, *[view.base for view in chain[: _shared(chain)]]]:
            writes.check_leaf_write(tracer)


def with_out(result: Array, out: Any) -> Array:
    """A function's result, written to `out` unless it is None."""
    return result if out is None else write_into(out, result)


def augmented(primitive: Callable[[Array, Array], Array]) -> Callable[[Tracer, Any], Any]:
    """The in-place form of an operator, which rebinds the tracer; as in NumPy, scalars change by name only."""

    plain_primitive = getattr(primitive, "primitive", None)

    def operate(self: Tracer, other: Any) -> Any:
        try:
            if type(self._interpreter) is interpreter.Imperative and writes.update(plain_primitive, self, other):
                return self
            if memory.is_scalar(self):
                return primitive(self, other)
            result = primitive(memory.fresh(self), other)
            if type(result) is not Tracer and (result is NotImplemented or has_rules(type(result))):
                return result
            return write_into(self, result)
        except Exception as error:
            hide_outside(error)
            raise

    return operate
