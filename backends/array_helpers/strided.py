"""Strided placements: values written to and read from an array at an offset and one stride per axis."""

from __future__ import annotations

from typing import Any

import numpy


def strided_window(x: Any, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of the elements offset + Σ strides · l of a contiguous NumPy array; strides count elements."""
    if 0 in sizes:
        return numpy.empty(sizes, x.dtype)
    if len(sizes) == 1 and strides[0] > 0:
        return x.reshape(-1)[offset : offset + strides[0] * sizes[0] : strides[0]]
    steps = tuple([stride * x.itemsize for stride in strides])
    return numpy.ndarray(sizes, x.dtype, x, offset * x.itemsize, steps)


def strided_places(xp: Any, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The flat positions offset + Σ strides · l, as an array of integers."""
    places = numpy.full(sizes, offset)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        places += (stride * numpy.arange(size)).reshape(-1, *[1] * (len(sizes) - axis - 1))
    return xp.asarray(places)


def place_strided(xp: Any, out: Any, cleared: bool, placements: Any, *values: Any) -> Any:
    """Zeros with values added at their placements (offset, sizes, strides), written into a contiguous array."""
    whole = bool(placements) and placements[0][1] == out.shape and getattr(values[0], "shape", ()) == out.shape
    for axis in range(1, out.ndim if whole else 0):
        whole = whole and placements[0][2][axis - 1] == placements[0][2][axis] * out.shape[axis]
    whole = whole and placements[0][2][-1:] in ((), (1,))
    if whole:
        out[...] = values[0]
    elif not cleared:
        out[...] = 0
    for placement, value in zip(placements[whole:], values[whole:], strict=True):
        if xp is numpy:
            window = strided_window(out, *placement)
            window += value
        else:
            out.reshape(-1)[strided_places(xp, *placement)] += value
    return out


def take_strided(xp: Any, x: Any, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A copy of the elements of an array at a placement."""
    if xp is numpy:
        if not x.flags.c_contiguous:
            return x[numpy.unravel_index(strided_places(numpy, offset, sizes, strides), x.shape)]
        return strided_window(x, offset, sizes, strides).copy()
    return x.reshape(-1)[strided_places(xp, offset, sizes, strides)]
