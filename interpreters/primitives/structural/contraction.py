"""One primitive for every product of arrays: a two-operand contraction written as labels, like an einsum.

dot, matmul, tensordot, inner, outer, vecdot, einsum and convolution (over windows) all bind this primitive.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy import ndarray

from func.backends.array_helpers.strides import memory_order_of
from func.interpreters.core import ZERO, Array, Aval, Bilinear, Params, Shaped, dtype_of, shape_of
from func.interpreters.core.parameters import Kind
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import broadcast, fit_cotangent, result_dtype

Labels: TypeAlias = tuple[int, ...]


class Spec:
    """The form of a contraction: labels of x, of y and of the output. Interned, so that derived specs are cached.

    A label in both operands and the output is a batch axis, one in both operands only is summed. A label in one operand
    only must be in the output. Within one operand labels are distinct.
    """

    __slots__ = ("_batched", "_grads", "out", "run", "x", "y")
    fingerprint_fields = ("x", "y", "out")

    def __init__(self, x: Labels, y: Labels, out: Labels) -> None:
        self.x = x
        self.y = y
        self.out = out
        self.run = _compile(x, y, out)
        self._grads: tuple[Spec, Spec] | None = None
        self._batched: dict[tuple[bool, bool], Spec] = {}

    def __repr__(self) -> str:
        def text(labels: Labels) -> str:
            return "".join([chr(97 + label) if label < 26 else f"<{label}>" for label in labels])

        return f"{text(self.x)},{text(self.y)}->{text(self.out)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return spec, (self.x, self.y, self.out)

    def grads(self) -> tuple[Spec, Spec]:
        """The specs that take (cotangent, y) to x and (cotangent, x) to y."""
        if self._grads is None:
            self._grads = (
                spec(
                    self.out,
                    self.y,
                    tuple([label for label in self.x if label in self.out or label in self.y]),
                ),
                spec(
                    self.out,
                    self.x,
                    tuple([label for label in self.y if label in self.out or label in self.x]),
                ),
            )
        return self._grads

    def batched(self, which: tuple[bool, bool]) -> Spec:
        """The same contraction with a leading batch axis on the operands that have one, and on the output."""
        batched = self._batched.get(which)
        if batched is None:
            new = 1 + max((*self.x, *self.y, *self.out), default=-1)
            x = (new, *self.x) if which[0] else self.x
            y = (new, *self.y) if which[1] else self.y
            batched = self._batched[which] = spec(x, y, (new, *self.out))
        return batched


_specs: dict[tuple[Labels, Labels, Labels], Spec] = {}


def spec(x: Labels, y: Labels, out: Labels) -> Spec:
    """The interned Spec with these labels, renumbered by first appearance."""
    key = (x, y, out)
    known = _specs.get(key)
    if known is None:
        numbers: dict[int, int] = {}
        for label in (*x, *y, *out):
            numbers.setdefault(label, len(numbers))
        canonical = tuple([tuple([numbers[label] for label in labels]) for labels in key])
        known = _specs.get(canonical)  # type: ignore[arg-type]
        if known is None:
            known = _specs[canonical] = Spec(*canonical)  # type: ignore[index]
        _specs[key] = known
    return known


@functools.cache
def _compile(x: Labels, y: Labels, out: Labels) -> Callable[[Any, Array, Array], Array]:
    """The implementation of a contraction: by matmul with transposes and reshapes, or by multiply without sums."""
    batch = [label for label in out if label in x and label in y]
    summed = [label for label in x if label in y and label not in out]
    only_x = [label for label in x if label not in y]
    only_y = [label for label in y if label not in x]
    if not summed:
        return _product(x, y, out)
    nb, nx, ny, ns = len(batch), len(only_x), len(only_y), len(summed)
    x_order = tuple([x.index(label) for label in (*batch, *only_x, *summed)])
    y_order = tuple([y.index(label) for label in (*batch, *summed, *only_y)])
    labels = [*batch, *only_x, *only_y]
    out_order = tuple([labels.index(label) for label in out])
    x_plain, y_plain = x_order == tuple(range(len(x))), y_order == tuple(range(len(y)))
    out_plain = out_order == tuple(range(len(out)))
    simple = ns == 1 and nx <= 1 and ny <= 1 and (nb == 0 or (nx == 1 and ny == 1))

    def run_simple(xp: Any, a: Array, b: Array) -> Array:
        a = a if x_plain else a.transpose(x_order)
        b = b if y_plain else b.transpose(y_order)
        out_array = xp.matmul(a, b)
        return out_array if out_plain else out_array.transpose(out_order)

    def run(xp: Any, a: Array, b: Array) -> Array:
        a = a if x_plain else a.transpose(x_order)
        b = b if y_plain else b.transpose(y_order)
        batch_shape = a.shape[:nb]
        x_shape, inner, y_shape = a.shape[nb : nb + nx], a.shape[nb + nx :], b.shape[nb + ns :]
        depth = math.prod(inner)
        left = a.reshape((*batch_shape, math.prod(x_shape), depth))
        right = b.reshape((*batch_shape, depth, math.prod(y_shape)))
        out_array = xp.matmul(left, right).reshape((*batch_shape, *x_shape, *y_shape))
        return out_array if out_plain else out_array.transpose(out_order)

    def run_swapped(xp: Any, a: Array, b: Array) -> Array:
        """out = (…, y, x): multiply the other way round, so that the result comes out in order."""
        a = a.transpose(x_swapped)
        b = b.transpose(y_swapped)
        return xp.matmul(b, a)

    if simple and not out_plain and nb == 0 and nx == 1 and ny == 1:
        x_swapped = tuple([x.index(label) for label in (*summed, *only_x)])
        y_swapped = tuple([y.index(label) for label in (*only_y, *summed)])
        return run_swapped
    return run_simple if simple else run


def _product(x: Labels, y: Labels, out: Labels) -> Callable[[Any, Array, Array], Array]:
    """Nothing is summed: transpose both to the output's order, broadcast and multiply."""
    x_order = tuple([x.index(label) for label in out if label in x])
    y_order = tuple([y.index(label) for label in out if label in y])
    x_index, y_index = _spread(x, out), _spread(y, out)

    def run(xp: Any, a: Array, b: Array) -> Array:
        a = a if type(a) is ndarray else xp.asarray(a)
        b = b if type(b) is ndarray else xp.asarray(b)
        return xp.multiply(a.transpose(x_order)[x_index], b.transpose(y_order)[y_index])

    return run


def _spread(labels: Labels, out: Labels) -> tuple[slice | None, ...]:
    """The index that gives axes of length one to the labels that are missing; NumPy adds leading ones by itself."""
    entries = [slice(None) if label in labels else None for label in out]
    first = next((i for i, entry in enumerate(entries) if entry is not None), len(entries))
    return tuple(entries[first:])


def _aval(x: Any, y: Any, *, spec: Spec) -> Aval:
    sizes = dict(zip((*spec.x, *spec.y), (*x.shape, *y.shape), strict=True))
    return Aval(tuple([sizes[label] for label in spec.out]), result_dtype(x, y))


def _transpose(ct: Array, x: Any, y: Any, *, spec: Spec) -> tuple[Any, Any]:
    to_x, to_y = spec.grads()
    if isinstance(x, Shaped):
        return _contribution(ct, y, to_x, spec.x, x), ZERO
    return ZERO, _contribution(ct, x, to_y, spec.y, y)


def _contribution(ct: Array, other: Array, derived: Spec, labels: Labels, target: Shaped) -> Array:
    """The cotangent of one operand; labels that only it had and that were summed do not occur."""
    if type(ct) is ndarray and type(other) is ndarray and other.dtype.kind == "f":
        contribution = derived.run(np, ct, other)
        if contribution.shape == target.shape and contribution.dtype is target.dtype:
            return contribution
    contribution = contract(ct, conjugate(other) if dtype_of(other).kind == "c" else other, spec=derived)
    if shape_of(contribution) == target.shape and dtype_of(contribution) == target.dtype:
        return contribution
    return fit_cotangent(broadcast(contribution, shape=target.shape), target)


def _batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return contract(*args, spec=params["spec"].batched((batched[0], batched[1])))


def _impl(xp: Any, x: Array, y: Array, *, spec: Spec) -> Array:
    out = spec.run(xp, x, y)
    if x.dtype.kind == "V" and x.dtype == y.dtype:
        return out.astype(x.dtype, copy=False)  # products of bfloat16 are summed in single precision
    return out


def _cost(ins: Sequence[Aval], outs: Sequence[Aval], params: Params) -> float:
    """2·m·n·k; without sums one multiplication per element."""
    spec = params["spec"]
    extents = dict(zip(spec.x, ins[0].shape, strict=True)) | dict(zip(spec.y, ins[1].shape, strict=True))
    total = math.prod(extents.values())
    return total if len(spec.out) == len(extents) else 2 * total


def _is_spec(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    """Whether the labels are those of the operands' axes, and equal ones belong to equal lengths."""
    x, y = avals
    if type(value) is not Spec or (len(value.x), len(value.y)) != (len(x.shape), len(y.shape)):
        return False
    if any([len(set(labels)) != len(labels) for labels in (value.x, value.y, value.out)]):
        return False
    in_x, in_y, in_out = set(value.x), set(value.y), set(value.out)
    lengths = dict(zip(value.x, x.shape, strict=True))
    return in_x ^ in_y <= in_out <= in_x | in_y and all(
        [lengths.get(label, length) == length for label, length in zip(value.y, y.shape, strict=True)]
    )


contract = Bilinear(
    "contract",
    _impl,
    aval=_aval,
    parameters={"spec": Kind("a contraction of the operands", _is_spec)},
    batch=_batch,
    transpose=_transpose,
    cost=_cost,
    layout=lambda x, y, *, spec: memory_order_of(lambda a, b: spec.run(np, a, b), x, y),
    numpy_suffices=True,
    covers=True,
)


@functools.cache
def matmul_spec(x_rank: int, y_rank: int, batch_rank_x: int, batch_rank_y: int) -> Spec:
    """np.matmul of operands with these ranks and numbers of batch axes (aligned at the right)."""
    inner = 0
    rows: Labels = (1,) if x_rank > 1 else ()
    columns: Labels = (2,) if y_rank > 1 else ()
    shared = tuple(range(3, 3 + max(batch_rank_x, batch_rank_y)))
    x_batch = shared[len(shared) - batch_rank_x :]
    y_batch = shared[len(shared) - batch_rank_y :]
    y_labels = (*y_batch, inner, *columns) if y_rank > 1 else (*y_batch, inner)
    return spec((*x_batch, *rows, inner), y_labels, (*shared, *rows, *columns))
