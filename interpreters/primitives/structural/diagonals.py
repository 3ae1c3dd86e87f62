"""Two primitives for matrices with structure: `place` writes diagonals and blocks into zeros, `take` reads them.

A placement (offset, sizes, strides) is the place of a value of shape `sizes` in an array in C order. Element l is at
the flat position offset + Σ strides[k] · l[k]. The positions of one placement are distinct; several may overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from func.backends.array_helpers.strided import place_strided, take_strided
from func.interpreters.core import Array, Aval, Linear, Params, Shape, Shaped, linear, shape_of
from func.interpreters.core.parameters import DTYPE, PLACEMENT, PLACEMENTS, SHAPE
from func.interpreters.primitives.structural.shapes import fit_cotangent, reshape

Placement: TypeAlias = tuple[int, Shape, tuple[int, ...]]


def _place_impl(xp: Any, *values: Array, shape: Shape, dtype: Any, placements: Sequence[Placement]) -> Array:
    return place_strided(xp, xp.zeros(shape, dtype), True, placements, *values)


def _place_aval(*values: Aval, shape: Shape, dtype: Any, placements: Sequence[Placement]) -> Aval:
    return Aval(shape, dtype)


def _lie_at_placements(*values: Aval, shape: Shape, dtype: Any, placements: Sequence[Placement]) -> bool:
    """Whether the values broadcast to the sizes of their placements."""
    pairs = zip(values, placements, strict=True)
    return all([np.broadcast_shapes(value.shape, sizes) == tuple(sizes) for value, (_, sizes, _) in pairs])


def _place_transpose(
    ct: Array, *values: Shaped, shape: Shape, dtype: Any, placements: Sequence[Placement]
) -> tuple[Array, ...]:
    return tuple(
        [fit_cotangent(take(ct, placement=placement), x) for x, placement in zip(values, placements, strict=True)]
    )


def _place_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    aligned = []
    placements = []
    for value, is_batched, placement in zip(args, batched, params["placements"], strict=True):
        rank, have = len(placement[1]), len(shape_of(value)) - is_batched
        if is_batched and have < rank:
            value = reshape(value, shape=(size, *[1] * (rank - have), *shape_of(value)[1:]))
        aligned.append(value)
        placements.append(_batched(placement, size, params["shape"]))
    shape = (size, *params["shape"])
    return place(*aligned, shape=shape, dtype=params["dtype"], placements=tuple(placements))


def _batched(placement: Placement, size: int, shape: Shape) -> Placement:
    offset, sizes, strides = placement
    return offset, (size, *sizes), (math.prod(shape), *strides)


place: Linear = linear(
    "place",
    _place_impl,
    aval=_place_aval,
    parameters={"shape": SHAPE, "dtype": DTYPE, "placements": PLACEMENTS},
    fits=_lie_at_placements,
    transpose=_place_transpose,
    batch=_place_batch,
    positions=(),
    cost=0,
    mask="padded",
    covers=True,
)
"""Zeros of a shape and dtype with values, which broadcast to the sizes of their placements, added at those."""

take: Linear = linear(
    "take",
    lambda xp, x, *, placement: take_strided(xp, x, *placement),
    aval=lambda x, *, placement: Aval(placement[1], x.dtype),
    parameters={"placement": PLACEMENT},
    transpose=lambda ct, x, *, placement: (place(ct, shape=x.shape, dtype=x.dtype, placements=(placement,)),),
    batch=lambda x, *, placement: take(x, placement=_batched(placement, x.shape[0], x.shape[1:])),
    cost=0,
    mask="covered",
)
"""The elements of an array at a placement: diagonals, blocks of block diagonals. The transpose of `place`."""


def strides_of(shape: Shape) -> tuple[int, ...]:
    """The distances of the entries along each axis, in elements in C order."""
    strides = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
