"""Samples of branches, loops and collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall, trace_function
from func.interpreters.control.scan_derivatives import ScanLoop
from func.interpreters.control.while_loops import WhileLoop
from func.interpreters.core import Aval
from func.interpreters.processes import ONE_RANK
from tests.support.sampling import Sample, real, restart

restart(4)


def compiled(fun: Callable[..., Any], *avals: Aval) -> CompiledCall:
    """A function of arrays as a compiled call."""
    return trace_function(fun, avals, "compiled", None)[0]


VECTOR, NUMBER = Aval((3,), np.float64), Aval((), np.float64)
BRANCHES = (
    compiled(lambda x, y: [np.sin(x) * y, np.sum(x)], VECTOR, VECTOR),
    compiled(lambda x, y: [x * x, np.sum(y * x)], VECTOR, VECTOR),
)
STEP = compiled(
    lambda w, c, n, x: [np.tanh(w * c + x), n + 1, np.sum(c * w), x * x],
    VECTOR,
    VECTOR,
    Aval((), np.int64),
    NUMBER,
)
GOING = compiled(lambda c, x: [c < 3.5], NUMBER, VECTOR)
DOUBLED = compiled(lambda w, c, x: [c + 1.0, np.sin(x) * w + c], VECTOR, NUMBER, VECTOR)

SAMPLES: dict[str, list[Sample]] = {
    "cond_call": [Sample((np.int64(index), real(3), real(3)), {"branches": BRANCHES}, (1, 2)) for index in (0, 1, 7)],
    "scan_call": [
        Sample(
            (real(3), real(3), np.int64(2), real(4)),
            {"body": STEP, "loop": ScanLoop(1, 2, 4, reverse, again)},
            (0, 1, 3),
        )
        for reverse, again in ((False, False), (True, False), (False, True))
    ],
    "while_call": [
        Sample((real(3), np.float64(1.0), real(3)), {"cond": GOING, "body": DOUBLED, "loop": WhileLoop(0, 1)}, ())
    ],
    "psum": [Sample((real(3), np.int64(1)), {"size": 2}, batched=False)],
    "all_gather": [Sample((real(3), np.int64(1)), {"size": 2}, (), batched=False)],
    "psum_scatter": [Sample((real(2, 3), np.int64(1)), {"size": 2}, (), batched=False)],
    "all_to_all": [Sample((real(2, 3), np.int64(1)), {"size": 2}, (), batched=False)],
    "ppermute": [
        Sample((real(3), np.int64(1)), {"size": 2, "pairs": pairs}, (), batched=False)
        for pairs in (((0, 1),), ((1, 0),))
    ],
    "broadcast_from": [Sample((real(3), np.int64(1)), {"size": 2, "root": 0}, (), batched=False)],
    "reduce_to": [Sample((real(3), np.int64(1)), {"size": 2, "root": root}, (), batched=False) for root in (0, 1)],
    "pmax": [Sample((real(3), np.int64(0)), {"size": 1}, batched=False)],
    "pmin": [Sample((real(3), np.int64(0)), {"size": 1}, batched=False)],
    **{
        f"rank_{name}": [Sample((x, np.int64(0)), {"ranks": ONE_RANK, "label": "x", **params}, batched=False)]
        for name, x, params in (
            ("psum", real(3), {}),
            ("pmax", real(3), {}),
            ("pmin", real(3), {}),
            ("all_gather", real(3), {}),
            ("psum_scatter", real(1, 3), {}),
            ("all_to_all", real(1, 3), {}),
            ("ppermute", real(3), {"pairs": ((0, 0),)}),
            ("ppermute", real(3), {"pairs": ()}),
            ("broadcast", real(3), {"root": 0}),
            ("reduce", real(3), {"root": 0}),
        )
    },
}
