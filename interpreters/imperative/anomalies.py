"""Anomaly detection: the operation, the line and the operands of a value that is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.interpreters.core import ZERO, known_value
from func.interpreters.core.errors import AnomalyError
from func.interpreters.core.modes import anomaly
from func.interpreters.host.source import Line, user_line
from func.interpreters.imperative.node_state import LINE, STATE, node_name
from func.interpreters.nan_safe import has_nan


def _host_array(value: Any) -> np.ndarray[Any, Any]:
    """The numbers of a value in host memory."""
    array = known_value(value)
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _summary(value: Any) -> str:
    array = _host_array(value)
    if array.size == 0 or array.dtype.kind not in "fc":
        return f"{array.dtype}{list(array.shape)}"
    finite = np.abs(array[np.isfinite(array)])
    span = f"|x| from {finite.min():.3g} to {finite.max():.3g}" if finite.size else "nothing finite"
    return f"{array.dtype}{list(array.shape)}, {span}, {array.size - finite.size} not finite"


def first_nonfinite(value: Any) -> tuple[int, ...] | None:
    """The first index at which a value is NaN or infinite; None if it is finite."""
    inner = known_value(value)
    if inner is None or not hasattr(inner, "dtype") or inner.dtype.kind not in "fc":
        return None
    array = _host_array(inner)
    if array.ndim == 0:
        return None if np.isfinite(array) else ()
    indices = np.argwhere(~np.isfinite(array))
    return tuple(indices[0].tolist()) if len(indices) else None


def describe_anomaly(subject: str, line: Line | None, operands: Sequence[Any], out: Any) -> str:
    """The text of an error: the value that is not finite, its place, its line, its operands."""
    array = _host_array(out)
    index = first_nonfinite(out)
    where = f" at index {index}" if index else ""
    summaries = "".join([f"\n  operand {i}: {_summary(operand)}" for i, operand in enumerate(operands)])
    value = array[index] if index is not None else array
    return f"{subject} is {value}{where}\n  computed at {line}{summaries}"


def line_and_operands(primitive: Any, args: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
    """The line of a call and a summary of each operand, which its node keeps while anomalies are detected.

    Raises:
        AnomalyError: An output is not finite although all operands are, if forward operations are checked.
    """
    line = user_line(3)
    if anomaly():
        for out in outs:
            if first_nonfinite(out) is not None and all([first_nonfinite(arg) is None for arg in args]):
                raise AnomalyError(describe_anomaly(f"the result of {primitive.name}", line, args, out))
    return (line, tuple([_summary(arg) for arg in args]))


def check_pullback(node: Any, ct: Any, contributions: Sequence[Any]) -> None:
    """Raise AnomalyError if the pullback of a finite cotangent is not finite."""
    for place, contribution in enumerate(contributions):
        if contribution is ZERO or type(contribution) is dict:
            continue
        index = first_nonfinite(contribution)
        if index is not None and (type(ct) is dict or first_nonfinite(ct) is None):
            line, operands = node[STATE][LINE] or (None, ())
            summaries = "".join([f"\n  operand {i}: {summary}" for i, summary in enumerate(operands)])
            raise AnomalyError(
                f"{node_name(node)} returned {'nan' if has_nan(contribution) else 'a value that is not finite'} in its "
                f"{place}th output{f', at index {index}' if index else ''}\n"
                f"  the forward operation was at {line or 'an unrecorded line: enter detect_anomaly before it'}"
                f"{summaries}"
            )
