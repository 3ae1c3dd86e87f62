"""Reductions, and primitives that are patterns of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.loops.values import ArrayValue, uniform
from func.backends.number_types import is_narrow, kind_of
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, native
from func.interpreters.primitives.structural.segment_sums import segment_bounds

BOOL, SINGLE = np.dtype(bool), np.dtype(np.float32)
EMPTY = {"multiply": 1, "logical_and": True}
"""The results of operations on no elements, if they are not zero."""


def start_of(op: str, dtype: DType) -> object:
    """The first value of a reduction, its neutral element."""
    if op == "add":
        return 0
    if op == "multiply":
        return 1
    if op in ("logical_or", "logical_and"):
        return op == "logical_and"
    if kind_of(dtype) in "fc":
        end = -math.inf if op == "maximum" else math.inf
        return complex(end, end) if dtype.kind == "c" else end
    if dtype.kind == "b":
        return op == "minimum"
    info = np.iinfo(dtype)
    return info.min if op == "maximum" else info.max


def reduced(context: TranslationContext, op: str, x: ArrayValue, axes: Sequence[int]) -> ArrayValue:
    """op over axes; sums and products of half precision and bfloat16 are rounded once."""
    if 0 in [x.shape[axis] for axis in axes]:
        left = tuple([length for axis, length in enumerate(x.shape) if axis not in axes])
        return uniform(EMPTY.get(op, 0), x.dtype, left)
    if is_narrow(x.dtype) and op in ("add", "multiply"):
        return context.convert(reduced(context, op, context.convert(x, SINGLE), axes), x.dtype)
    return context.fuser.reduce(op, x, axes, start_of(op, x.dtype))


@native("sum", "prod", "max", "min", "any", "all")
def _reduction(context: TranslationContext) -> ArrayValue:
    x = context.args[0]
    op = context.reduction
    if op.startswith("logical"):
        if x.dtype != BOOL:
            x = context.map("not_equal", x, context.number(0, x.dtype), dtype=BOOL)
        return reduced(context, op, x, context.params["axes"])
    return reduced(context, op, context.convert(x, context.out.dtype), context.params["axes"])


@native("mean")
def _mean(context: TranslationContext) -> ArrayValue:
    x, axes = context.args[0], context.params["axes"]
    if kind_of(context.out.dtype) not in "fc":
        raise NotNative(f"mean of {context.out.dtype}")
    return mean_of(context, context.convert(x, context.out.dtype), axes)


def mean_of(context: TranslationContext, x: ArrayValue, axes: Sequence[int], less: float = 0) -> ArrayValue:
    """The sum, divided by the number of elements minus `less`."""
    if is_narrow(x.dtype):
        return context.convert(mean_of(context, context.convert(x, SINGLE), axes, less), x.dtype)
    total = reduced(context, "add", x, axes)
    number = math.prod([x.shape[axis] for axis in axes]) - less
    return context.map("divide", total, context.number(number, x.dtype))


@native("variance")
def _variance(context: TranslationContext) -> ArrayValue:
    x, axes = context.args[0], context.params["axes"]
    if kind_of(context.out.dtype) != "f":
        raise NotNative(f"variance of {context.out.dtype}")
    x = x if x.dtype.kind == "c" else context.convert(x, context.out.dtype)
    number = math.prod([x.shape[axis] for axis in axes]) - context.params["ddof"]
    if number <= 0:
        raise NotNative("a variance without degrees of freedom")
    center = context.keep(mean_of(context, x, axes), x.shape, axes)
    deviation = context.map("subtract", x, center)
    return mean_of(context, squares(context, deviation), axes, context.params["ddof"])


def squares(context: TranslationContext, x: ArrayValue) -> ArrayValue:
    """|x|²."""
    if x.dtype.kind != "c":
        return context.map("multiply", x, x)
    part = np.dtype(f"f{x.dtype.itemsize // 2}")
    re, im = [context.map(name, x, dtype=part) for name in ("real", "imag")]
    return context.map("add", context.map("multiply", re, re), context.map("multiply", im, im))


def _real(context: TranslationContext) -> ArrayValue:
    if context.out.dtype.kind != "f" or context.out.dtype.itemsize < 4:
        raise NotNative(f"{context.equation.primitive.name} of {context.out.dtype}")
    return context.convert(context.args[0], context.out.dtype)


def _shift(context: TranslationContext, x: ArrayValue, axes: Sequence[int]) -> ArrayValue:
    """The largest element, or 0 in place of an infinite one; its axes stay."""
    top = reduced(context, "maximum", x, axes)
    finite = context.map("isfinite", top, dtype=BOOL)
    return context.keep(context.map("select", finite, top, context.number(0, x.dtype)), x.shape, axes)


@native("softmax")
def _softmax(context: TranslationContext) -> ArrayValue:
    x, axes = _real(context), context.params["axes"]
    top = context.keep(reduced(context, "maximum", x, axes), x.shape, axes)
    powers = context.map("exp", context.map("subtract", x, top))
    total = context.keep(reduced(context, "add", powers, axes), x.shape, axes)
    return context.map("divide", powers, total)


@native("log_softmax")
def _log_softmax(context: TranslationContext) -> ArrayValue:
    x, axes = _real(context), context.params["axes"]
    shifted = context.map("subtract", x, _shift(context, x, axes))
    total = reduced(context, "add", context.map("exp", shifted), axes)
    return context.map("subtract", shifted, context.keep(context.map("log", total), x.shape, axes))


@native("logsumexp", "logaddexp_reduce")
def _logsumexp(context: TranslationContext) -> ArrayValue:
    x, axes = _real(context), context.params["axes"]
    shift = _shift(context, x, axes)
    total = reduced(context, "add", context.map("exp", context.map("subtract", x, shift)), axes)
    flat = context.fuser.reshape(shift, total.shape)
    return context.map("add", context.map("log", total), flat)


@native("sum_with", "prod_with")
def _masked(context: TranslationContext) -> ArrayValue:
    x, mask = context.args
    op = context.reduction
    dtype, initial = context.out.dtype, context.params["initial"]
    x = context.convert(x, dtype)
    masked = context.map("select", context.convert(mask, BOOL), x, context.number(start_of(op, dtype), dtype))
    total = reduced(context, op, masked, context.params["axes"])
    first = EMPTY.get(op, 0) if initial is None else initial
    return context.map(op, context.number(first, dtype), total)


@native("segment_sum")
def _segment_sum(context: TranslationContext) -> ArrayValue:
    """The elements of all segments, each added to the sum of its segment."""
    x, axis = context.convert(context.args[0], context.out.dtype), context.params["axis"]
    fuser, storage = context.fuser, context.storage
    bounds = segment_bounds(context.params["starts"], x.shape[axis])
    places = np.concatenate([np.arange(start, stop) for start, stop in bounds])
    segments = np.repeat(np.arange(len(bounds)), [stop - start for start, stop in bounds])
    total = storage.copied(fuser.broadcast(context.number(0, x.dtype), context.out.shape))
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])

    def index(values: Any) -> ArrayValue:
        column = context.constant(values.reshape(-1, *[1] * (len(shape) - axis - 1)))
        return fuser.broadcast(column, shape)

    def rest(of: ArrayValue) -> tuple[int, ...]:
        return tuple([0 if i == axis else stride for i, stride in enumerate(storage.ref(of).strides)])

    spread = fuser.take(x, [(index(places), x.shape[axis], storage.ref(x).strides[axis])], shape, rest(x))
    step = storage.ref(total).strides[axis]
    return fuser.put(total, [(index(segments), len(bounds), step)], rest(total), spread, True)
