"""A sample and what samples are made of: numbers within the domain of most functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RNG = np.random.default_rng(0)


def restart(seed: int) -> None:
    """Restart the random numbers, so that one table's samples do not depend on those of another."""
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@dataclass(frozen=True)
class Sample:
    """One call of a primitive. `differentiable`: the positions that have a derivative."""

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    differentiable: tuple[int, ...] = (0,)
    tolerance: float = 1e-7
    batched: bool = True


def real(*shape: int, low: float = 0.2, high: float = 0.9) -> Any:
    """Numbers within the domain of most functions."""
    return RNG.uniform(low, high, shape)


def complex_(*shape: int) -> Any:
    """Complex numbers of modest size."""
    return real(*shape) + 1j * real(*shape)


def integers(*shape: int, high: int = 3) -> Any:
    """Small non-negative integers."""
    return RNG.integers(0, high, shape)


def spd(n: int, *batch: int) -> Any:
    """Symmetric positive-definite matrices with well separated eigenvalues."""
    a = RNG.normal(size=(*batch, n, n))
    q = np.linalg.qr(a)[0]
    out = (q * np.arange(1.0, n + 1)) @ np.swapaxes(q, -1, -2)
    return (out + np.swapaxes(out, -1, -2)) / 2


def hermitian(n: int) -> Any:
    """A Hermitian positive-definite matrix."""
    a = RNG.normal(size=(n, n)) + 1j * RNG.normal(size=(n, n))
    q = np.linalg.qr(a)[0]
    out = (q * np.arange(1.0, n + 1)) @ q.conj().T
    return (out + out.conj().T) / 2
