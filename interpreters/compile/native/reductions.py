"""Reductions, and the patterns of rows that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends.loops.kernels import DType
from func.backends.loops.values import Val
from func.interpreters.compile.native.rules import NotNative, Site, native
from func.interpreters.primitives.structural.segment_sums import segment_bounds

BOOL, HALF, SINGLE = np.dtype(bool), np.dtype(np.float16), np.dtype(np.float32)
EMPTY = {"multiply": 1, "logical_and": True}
"""What operations give on nothing, where that is not zero."""
OPS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"}


def start_of(op: str, dtype: DType) -> object:
    """What a reduction starts with."""
    if op == "add":
        return 0
    if op == "multiply":
        return 1
    if op in ("logical_or", "logical_and"):
        return op == "logical_and"
    if dtype.kind in "fc":
        end = -math.inf if op == "maximum" else math.inf
        return end if dtype.kind == "f" else complex(end, end)
    if dtype.kind == "b":
        return op == "minimum"
    info = np.iinfo(dtype)
    return info.min if op == "maximum" else info.max


def reduced(site: Site, op: str, x: Val, axes: Sequence[int]) -> Val:
    """op over axes; sums and products of half precision are rounded once."""
    if 0 in [x.shape[axis] for axis in axes]:
        left = tuple([length for axis, length in enumerate(x.shape) if axis not in axes])
        return Val(left, x.dtype, None, (), EMPTY.get(op, 0))
    if x.dtype == HALF and op in ("add", "multiply"):
        return site.convert(reduced(site, op, site.convert(x, SINGLE), axes), HALF)
    return site.fuser.reduce(op, x, axes, start_of(op, x.dtype))


@native("sum", "prod", "max", "min", "any", "all")
def _reduction(site: Site) -> Val:
    x = site.args[0]
    op = OPS[site.equation.row.name]
    if op.startswith("logical"):
        if x.dtype != BOOL:
            x = site.map("not_equal", x, site.number(0, x.dtype), dtype=BOOL)
        return reduced(site, op, x, site.params["axes"])
    return reduced(site, op, site.convert(x, site.out.dtype), site.params["axes"])


@native("mean")
def _mean(site: Site) -> Val:
    x, axes = site.args[0], site.params["axes"]
    if site.out.dtype.kind not in "fc":
        raise NotNative(f"mean of {site.out.dtype}")
    return mean_of(site, site.convert(x, site.out.dtype), axes)


def mean_of(site: Site, x: Val, axes: Sequence[int], less: float = 0) -> Val:
    """The sum over the number of elements less something."""
    if x.dtype == HALF:
        return site.convert(mean_of(site, site.convert(x, SINGLE), axes, less), HALF)
    total = reduced(site, "add", x, axes)
    number = math.prod([x.shape[axis] for axis in axes]) - less
    return site.map("divide", total, site.number(number, x.dtype))


@native("variance")
def _variance(site: Site) -> Val:
    x, axes = site.args[0], site.params["axes"]
    if site.out.dtype.kind != "f":
        raise NotNative(f"variance of {site.out.dtype}")
    x = x if x.dtype.kind == "c" else site.convert(x, site.out.dtype)
    number = math.prod([x.shape[axis] for axis in axes]) - site.params["ddof"]
    if number <= 0:
        raise NotNative("a variance without degrees of freedom")
    center = site.keep(mean_of(site, x, axes), x.shape, axes)
    apart = site.map("subtract", x, center)
    return mean_of(site, squares(site, apart), axes, site.params["ddof"])


def squares(site: Site, x: Val) -> Val:
    """|x|²."""
    if x.dtype.kind != "c":
        return site.map("multiply", x, x)
    part = np.dtype(f"f{x.dtype.itemsize // 2}")
    re, im = [site.map(name, x, dtype=part) for name in ("real", "imag")]
    return site.map("add", site.map("multiply", re, re), site.map("multiply", im, im))


# --- sums of exponentials -----------------------------------------------------------------------------------------


def _real(site: Site) -> Val:
    if site.out.dtype.kind != "f" or site.out.dtype.itemsize < 4:
        raise NotNative(f"{site.equation.row.name} of {site.out.dtype}")
    return site.convert(site.args[0], site.out.dtype)


def _shift(site: Site, x: Val, axes: Sequence[int]) -> Val:
    """The largest element, or 0 where that is infinite; its axes are kept."""
    top = reduced(site, "maximum", x, axes)
    finite = site.map("isfinite", top, dtype=BOOL)
    return site.keep(site.map("select", finite, top, site.number(0, x.dtype)), x.shape, axes)


@native("softmax")
def _softmax(site: Site) -> Val:
    x, axes = _real(site), site.params["axes"]
    top = site.keep(reduced(site, "maximum", x, axes), x.shape, axes)
    powers = site.map("exp", site.map("subtract", x, top))
    total = site.keep(reduced(site, "add", powers, axes), x.shape, axes)
    return site.map("divide", powers, total)


@native("log_softmax")
def _log_softmax(site: Site) -> Val:
    x, axes = _real(site), site.params["axes"]
    apart = site.map("subtract", x, _shift(site, x, axes))
    total = reduced(site, "add", site.map("exp", apart), axes)
    return site.map("subtract", apart, site.keep(site.map("log", total), x.shape, axes))


@native("logsumexp", "logaddexp_reduce")
def _logsumexp(site: Site) -> Val:
    x, axes = _real(site), site.params["axes"]
    shift = _shift(site, x, axes)
    total = reduced(site, "add", site.map("exp", site.map("subtract", x, shift)), axes)
    flat = site.fuser.reshape(shift, total.shape)
    return site.map("add", site.map("log", total), flat)


# --- sums and products of chosen elements -------------------------------------------------------------------------


@native("sum_with", "prod_with")
def _masked(site: Site) -> Val:
    x, mask = site.args
    op = OPS[site.equation.row.name.removesuffix("_with")]
    dtype, initial = site.out.dtype, site.params["initial"]
    x = site.convert(x, dtype)
    kept = site.map("select", site.convert(mask, BOOL), x, site.number(start_of(op, dtype), dtype))
    total = reduced(site, op, kept, site.params["axes"])
    first = EMPTY.get(op, 0) if initial is None else initial
    return site.map(op, site.number(first, dtype), total)


@native("segment_sum")
def _segment_sum(site: Site) -> Val:
    """The elements of all segments, added at the places of their segments."""
    x, axis, fuser = site.convert(site.args[0], site.out.dtype), site.params["axis"], site.fuser
    bounds = segment_bounds(site.params["starts"], x.shape[axis])
    places = np.concatenate([np.arange(start, stop) for start, stop in bounds])
    segments = np.repeat(np.arange(len(bounds)), [stop - start for start, stop in bounds])
    total = fuser.copied(fuser.broadcast(site.number(0, x.dtype), site.out.shape))
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])

    def index(values: Any) -> Val:
        column = site.constant(values.reshape(-1, *[1] * (len(shape) - axis - 1)))
        return fuser.broadcast(column, shape)

    def rest(of: Val) -> tuple[int, ...]:
        return tuple([0 if i == axis else stride for i, stride in enumerate(fuser.spot(of).strides)])

    spread = fuser.take(x, [(index(places), x.shape[axis], fuser.spot(x).strides[axis])], shape, rest(x))
    step = fuser.spot(total).strides[axis]
    return fuser.put(total, [(index(segments), len(bounds), step)], rest(total), spread, True)
