"""Warnings at the user's line: where NumPy warns inside func's code, it is the line that called func which is shown.

Python shows a warning once for each line, so that all that come from one line of func's would be one. What Python is
about to show for a line of func's is warned again here, for the user's line, by the filters that hold for that.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from func.interpreters.host.source import is_engine_file, user_frame

_python: Any = warnings
_shown: Any = getattr(_python, "_showwarnmsg", None)
"""What Python calls to show or record a warning that the filters have let pass."""


def install() -> None:
    """Set this up, once. In a Python without that function, warnings stay at func's lines."""
    if _shown is not None:
        _python._showwarnmsg = _shown_at_user_line


def _shown_at_user_line(message: Any) -> None:
    frame = user_frame() if is_engine_file(message.filename) else None
    if frame is None:
        _shown(message)
        return
    _forget_lines_of(message.filename)
    names = frame.f_globals
    warnings.warn_explicit(
        message.message,
        message.category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=names.get("__name__", "<string>"),
        registry=names.setdefault("__warningregistry__", {}),
        source=message.source,
    )


def _forget_lines_of(file: str) -> None:
    """Let Python remember no more which lines of a module of func's have warned."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    if frame is not None:
        frame.f_globals["__warningregistry__"] = None  # the C code of warnings takes None for "keep no record"
