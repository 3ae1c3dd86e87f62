"""What is said of values that are not finite: where they came from, and of which operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, innermost
from func.interpreters.core.errors import AnomalyError
from func.interpreters.core.modes import ANOMALY
from func.interpreters.core.source import Line, user_line
from func.interpreters.grad import has_nan
from func.interpreters.imperative.node_state import CELL, LINE, node_name


def _summary(value: Any) -> str:
    bottom = innermost(value)
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    if array.size == 0 or array.dtype.kind not in "fc":
        return f"{array.dtype}{list(array.shape)}"
    finite = np.abs(array[np.isfinite(array)])
    span = f"|x| from {finite.min():.3g} to {finite.max():.3g}" if finite.size else "nothing finite"
    return f"{array.dtype}{list(array.shape)}, {span}, {array.size - finite.size} not finite"


def first_bad(value: Any) -> tuple[int, ...] | None:
    """The first index at which a value is NaN or infinite."""
    bottom = innermost(value)
    if bottom is None or not hasattr(bottom, "dtype") or bottom.dtype.kind not in "fc":
        return None
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    if array.ndim == 0:
        return None if np.isfinite(array) else ()
    places = np.argwhere(~np.isfinite(array))
    return tuple(places[0].tolist()) if len(places) else None


def describe_anomaly(what: str, line: Line | None, operands: Sequence[Any], out: Any) -> str:
    """An error's words: what happened, at which line, from which operands, and where."""
    bottom = innermost(out)
    array = np.asarray(bottom.get() if hasattr(bottom, "get") else bottom)
    index = first_bad(out)
    shown = "" if index is None else f" at index {index}" if index else ""
    listed = "".join([f"\n  operand {i}: {_summary(x)}" for i, x in enumerate(operands)])
    value = array[index] if index is not None else array
    return f"{what} is {value}{shown}\n  computed at {line}{listed}"


def watched_line(primitive: Any, args: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
    """What a cell keeps of its call while anomalies are looked for: the line, and a summary of each operand."""
    line = user_line(3)
    if ANOMALY.get():
        for out in outs:
            if first_bad(out) is not None and all([first_bad(arg) is None for arg in args]):
                raise AnomalyError(describe_anomaly(f"the result of {primitive.name}", line, args, out))
    return (line, tuple([_summary(arg) for arg in args]))


def check_pulled(node: Any, ct: Any, contribution: Sequence[Any]) -> None:
    """Raise AnomalyError if a pullback of something finite is not."""
    for place, one in enumerate(contribution):
        if one is ZERO or type(one) is dict:
            continue
        index = first_bad(one)
        if index is not None and (type(ct) is dict or first_bad(ct) is None):
            line, operands = node[CELL][LINE] or (None, ())
            listed = "".join([f"\n  operand {i}: {x}" for i, x in enumerate(operands)])
            raise AnomalyError(
                f"{node_name(node)} returned {'nan' if has_nan(one) else 'a value that is not finite'} in its "
                f"{place}th output{f', at index {index}' if index else ''}\n"
                f"  the forward operation was at {line or 'an unrecorded line: enter detect_anomaly before it'}{listed}"
            )
