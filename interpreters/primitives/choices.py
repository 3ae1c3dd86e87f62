"""The row `where`, and how operands of different rank are lined up over lanes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import HOST_TYPES
from func.interpreters.core import ZERO, Array, Aval, Params, Shaped, bind, shape_of, snapshot
from func.interpreters.primitives.kinds import Linear
from func.interpreters.primitives.shapes import fit_cotangent, reshape


def align_ranks(size: int, batched: Sequence[bool], args: Sequence[Array]) -> list[Array]:
    """Batch axes in front, then axes of length one, so that NumPy's broadcasting lines the rest up."""
    rank = max([len(shape_of(arg)) - is_batched for arg, is_batched in zip(args, batched, strict=True)])
    aligned = []
    for arg, is_batched in zip(args, batched, strict=True):
        if is_batched and len(shape_of(arg)) - 1 < rank:
            shape = shape_of(arg)
            arg = reshape(arg, shape=(size, *[1] * (rank + 1 - len(shape)), *shape[1:]))
        aligned.append(arg)
    return aligned


@functools.cache
def zero_of(dtype: np.dtype[Any]) -> Array:
    """A zero that np.where need not convert."""
    return np.zeros((), dtype)


class Where(Linear):
    """`where`, whose pullback keeps the condition alone."""

    __slots__ = ()

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Any) -> Any:
        condition, x, y = values
        plain = type(condition) is np.ndarray and type(x) in HOST_TYPES and type(y) in HOST_TYPES
        out = np.where(condition, x, y) if plain else bind(self, values, params)
        return out, self, snapshot(condition)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        _, px, py = parents
        if type(ct) is np.ndarray and type(saved) is np.ndarray:
            zero, choose = zero_of(ct.dtype), np.where
        else:
            zero, choose = 0, where
        return (
            ZERO,
            ZERO if px is None else fit_cotangent(choose(saved, ct, zero), px),
            ZERO if py is None else fit_cotangent(choose(saved, zero, ct), py),
        )

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Any) -> Sequence[Any]:
        return self.pull(ct, parents, known[0], params)


def _where_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return where(*align_ranks(size, batched, args))


where = Where(
    "where",
    lambda xp, condition, x, y: xp.where(condition, x, y),
    aval=lambda c, x, y: Aval(np.broadcast_shapes(c.shape, x.shape, y.shape), result_dtype(x, y)),
    batch=_where_batch,
)
where.positions = frozenset({1, 2})
"""A choice, element by element; the side that was not chosen gets a cotangent of exact zero."""


def result_dtype(*avals: Any) -> np.dtype[Any]:
    """NumPy's promotion, with weak avals standing for Python scalars."""
    return np.result_type(
        *[{"f": 1.0, "c": 1j, "i": 1, "b": True}[a.dtype.kind] if getattr(a, "weak", False) else a.dtype for a in avals]
    )
