"""The user's own source line, and tracebacks without the engine's frames."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from types import FrameType, TracebackType
from typing import NamedTuple

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_root = os.path.dirname(_here)
_ENGINE = tuple(
    os.path.join(folder, "")
    for folder in {
        _here,
        os.path.realpath(_here),
        os.path.join(os.path.dirname(os.path.realpath(_here)), "func"),
        os.path.join(os.path.dirname(os.path.realpath(_here)), "backends"),
        os.path.join(_root, "func") if os.path.basename(_root) != "func" else _root,
        os.path.join(_root, "backends"),
    }
)


class Line(NamedTuple):
    """A place in a source file."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """The line itself, stripped; empty when the source is not at hand."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        text = self.text
        place = f"{self.file}:{self.number} in {self.function}"
        return f"{place}: `{text}`" if text else place


@functools.lru_cache(None)
def is_engine_file(path: str) -> bool:
    """True for the files of func itself (and of optree, which calls back into it)."""
    return path.startswith(_ENGINE)


def user_line(skip: int = 1) -> Line | None:
    """The innermost line on the stack that is not the engine's."""
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None and is_engine_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def at_line(prefix: str = "  at ") -> str:
    """A message line naming the user's line, or nothing where there is none."""
    line = user_line(2)
    return f"\n{prefix}{line}" if line is not None else ""


def hide_engine_frames(error: BaseException) -> BaseException:
    """Drop the engine's frames from an error's traceback, unless FUNC_TRACEBACK=full is set."""
    if os.environ.get("FUNC_TRACEBACK") == "full":
        return error
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not is_engine_file(trace.tb_frame.f_code.co_filename):
            frames.append(trace)
        trace = trace.tb_next
    user_trace: TracebackType | None = None
    for frame in reversed(frames):
        user_trace = TracebackType(user_trace, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return error.with_traceback(user_trace)
