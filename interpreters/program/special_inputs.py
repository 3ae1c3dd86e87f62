"""Inputs that tell wrong programs from right ones: zeros, equal elements, infinities, NaN, large and small numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from func.interpreters.core import Array, Aval

NAN, INF = float("nan"), float("inf")

FLOATS: dict[str, tuple[float, ...] | None] = {
    "positive": None,
    "of both signs": None,
    "coinciding": (1.0, 2.0, 2.0, 0.0, -1.0, 0.5, -0.0, 2.0),
    "zeros": (0.0,),
    "ones": (1.0,),
    "large and small": (1e9, 1e-9, -1e9, 3.0, -1e-3),
    "special": (NAN, INF, 0.0, -0.0, 1.0, -INF, -1.0, 2.0, 0.5),
}
"""The numbers of which inputs consist, kind by kind; for None they are random."""
INTEGERS: dict[str, tuple[int, ...]] = {
    "positive": (0, 1, 2, 3),
    "of both signs": (-1, 0, 1, -2, 2),
    "coinciding": (0, 1, 1, 0),
    "zeros": (0,),
    "ones": (1,),
    "large and small": (100, 1, -100, 7),
    "special": (0, 1, -1, 127, -128),
}
MOST_ROUNDS = 9
"""Special values; this many rounds show all of them to a program of single numbers."""
WEAK_INTEGERS = {"large and small": 300, "special": 1 << 40}
"""Python's numbers beyond the range of narrow dtypes."""


def special_inputs(avals: Sequence[Aval], is_short: bool, is_finite: bool) -> Iterator[Sequence[Array]]:
    """The arguments of each kind, or of two alone; with `is_finite` without infinities and NaN.

    Run it `quietly`: in narrow dtypes large numbers become infinities.
    """
    kinds = ["of both signs", "special"] if is_short else list(FLOATS)
    smallest_size = min([aval.size for aval in avals if aval.size], default=MOST_ROUNDS)
    rounds = {"special": -(-MOST_ROUNDS // smallest_size), "coinciding": 2}
    numbers = np.random.default_rng(0)
    for kind in kinds:
        if kind == "special" and is_finite:
            continue
        orders = [numbers.permutation(MOST_ROUNDS) for _ in avals]
        for number in range(rounds.get(kind, 1)):
            yield [_argument(aval, kind, numbers, order, number) for aval, order in zip(avals, orders, strict=True)]


def _argument(aval: Aval, kind: str, numbers: np.random.Generator, order: Any, number: int) -> Any:
    """Values of a kind: an array, in Fortran order where values coincide, or a number of Python.

    They are random, or all special ones in this order, of which a further round has the next ones.
    """

    def drawn_from(pool: Sequence[Any] | None) -> Any:
        if pool is None:
            return 0.3 + 1.4 * numbers.random(aval.shape) if kind == "positive" else numbers.standard_normal(aval.shape)
        if kind != "special":
            return numbers.choice(pool, aval.shape)
        places = order[(np.arange(aval.size) + number * aval.size) % len(order)] % len(pool)
        return np.asarray(pool)[places].reshape(aval.shape)

    if aval.dtype.kind in "iub":
        drawn = drawn_from([abs(x) for x in INTEGERS[kind]] if aval.dtype.kind == "u" else INTEGERS[kind])
        if aval.weak and aval.dtype.kind == "i":
            return WEAK_INTEGERS.get(kind, int(drawn))
    else:
        drawn = drawn_from(FLOATS[kind])
        if aval.dtype.kind == "c":
            drawn = drawn + 1j * drawn_from(FLOATS[kind])
    array = np.asarray(drawn).astype(aval.dtype, order="F" if kind == "coinciding" else "C")
    return array.item() if aval.weak else array if aval.shape else array[()]
