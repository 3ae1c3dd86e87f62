"""The frames of func's in the tracebacks that a user sees."""

from __future__ import annotations

import traceback

from func.interpreters.host.source import is_engine_file


def engine_frames(error: BaseException) -> list[str]:
    """The frames of func's in the tracebacks of an error and of its causes."""
    found: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        other = waiting.pop()
        if other is None or id(other) in seen:
            continue
        seen.add(id(other))
        frames = traceback.extract_tb(other.__traceback__)
        found += [f"{frame.filename}:{frame.lineno}" for frame in frames if is_engine_file(frame.filename)]
        waiting += [other.__cause__, None if other.__suppress_context__ else other.__context__]
    return found
