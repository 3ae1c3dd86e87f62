"""Samples of calls of programs, and of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.calls.compiled_call import trace_function
from func.interpreters.core import Aval
from tests.support.remote_map_runner import runner
from tests.support.sampling import Sample, complex_, real, restart

restart(5)


def waves(x: Any, y: Any) -> list[Any]:
    """Three outputs: a matrix, a number, an input."""
    product = np.sin(x) @ y
    return [product * 2, np.sum(np.exp(-product * product.conj())), x]


def nothing(*arrays: Any) -> None:
    """A callback."""


def outside(x: Any) -> list[Any]:
    """A function that is not traced."""
    return [np.cumsum(x)[1:]]


def rows_and_sums(x: Any, w: Any) -> list[Any]:
    """For each row of x a number, and a sum over the rows."""
    return [np.sin(x) @ w, np.sum(x * x * w, axis=0)]


SAMPLES: dict[str, list[Sample]] = {
    "remote_map": [
        Sample(
            args,
            {"fun": rows_and_sums, "split": (True, False), "joined": (True, False), "runner": runner(2)},
            (0, 1),
        )
        for args in ((real(5, 3), real(3)), (complex_(3, 2), complex_(2)))
    ],
    "program_call": [
        Sample(args, {"compiled": trace_function(waves, [Aval(x.shape, x.dtype) for x in args], "compiled")[0]}, (0, 1))
        for args in ((real(2, 3), real(3)), (complex_(2, 3), complex_(3)))
    ],
    "pure_callback": [
        Sample(
            (real(3),),
            {"function": outside, "outs": (Aval((2,), np.dtype(float)),), "vmap_method": "sequential"},
            differentiable=(),
        )
    ],
    "callback": [Sample((real(3),), {"function": nothing}, differentiable=())],
}
