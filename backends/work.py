"""How long loops take, about: what decides whether they are worth several threads."""

from __future__ import annotations

import math

from func.backends.kernels import (
    Accumulate,
    Apply,
    Instruction,
    Load,
    LoadAt,
    Running,
    Shape,
    Stage,
    Store,
    StoreAt,
)

PER_BYTE, PLAIN_TIME, SLOW_TIME, DEAR_TIME, ALONE_TIME = 0.01, 0.04, 0.3, 1.2, 0.6
"""Nanoseconds an element: reading or writing a byte of it; operations on 8 bytes of the three kinds; what is done one
element at a time. Measured with vectors of 32 bytes at 3.5 GHz."""
_PLAIN = """
absolute add bitwise_and bitwise_count bitwise_or bitwise_xor complex conjugate convert deg2rad equal exponent greater
greater_equal heaviside imag invert isfinite isinf isnan left_shift less less_equal logical_and logical_not logical_or
logical_xor maximum minimum multiply negative not_equal positive rad2deg real right_shift select sign signbit spacing
square subtract zero_wins
"""
_SLOW = """
ceil copysign divide floor floor_divide fmax fmin ldexp nextafter reciprocal remainder rint sqrt trunc
"""
PLAIN, SLOW = frozenset(_PLAIN.split()), frozenset(_SLOW.split())


def work(stage: Stage, domain: Shape) -> float:
    """Nanoseconds, about, that the code of a stage takes over a domain."""
    return sum([_time(one) for one in stage.code]) * math.prod(domain)


def _time(one: Instruction) -> float:
    if isinstance(one, (Load, Store, Accumulate)):
        stride = next((step for step in reversed(one.spot.strides) if step), 0)
        size = one.spot.buffer.dtype.itemsize
        return 0.0 if not stride else PER_BYTE * size if abs(stride) == 1 else max(ALONE_TIME, PER_BYTE * size)
    if isinstance(one, (LoadAt, StoreAt, Running)):
        return ALONE_TIME
    if isinstance(one, Apply):
        dtype = one.args[-1].dtype
        scale = dtype.itemsize / 8 * (4 if dtype.kind == "c" else 1)
        return scale * (PLAIN_TIME if one.op in PLAIN else SLOW_TIME if one.op in SLOW else DEAR_TIME)
    return PLAIN_TIME
