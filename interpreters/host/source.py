"""The user's own source line, and tracebacks without the engine's frames."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple

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


_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@functools.lru_cache(None)
def is_engine_file(path: str) -> bool:
    """True for the files of func itself, and for the code that it compiles."""
    return path.startswith((*_ENGINE, "<func."))


@functools.lru_cache(None)
def is_library_file(path: str) -> bool:
    """True for the files of func, of installed packages and of Python itself: code that the user did not write."""
    beginnings, compiled = (*_ENGINE, _LIBRARY, "<frozen "), path == "<stringsource>" or path.endswith(".pyx")
    return compiled or path.startswith(beginnings) or any([folder in path for folder in _INSTALLED])


def _frames(skip: int) -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        yield frame
        frame = frame.f_back


_OF_USER, _OF_LIBRARY, _OF_ENGINE = range(3)


class _Owners(dict[str, int]):
    """Whose code a file holds."""

    def __missing__(self, path: str) -> int:
        owner = _OF_ENGINE if is_engine_file(path) else _OF_LIBRARY if is_library_file(path) else _OF_USER
        self[path] = owner
        return owner


_OWNERS = _Owners()


def user_frame(skip: int = 1) -> FrameType | None:
    """The innermost frame that runs the user's code; where there is none, the innermost that is not the engine's."""
    frame: FrameType | None = sys._getframe(skip)
    owners, beside = _OWNERS, None
    while frame is not None:
        if (owner := owners[frame.f_code.co_filename]) is not _OF_ENGINE:
            if not owner:
                return frame
            beside = beside or frame
        frame = frame.f_back
    return beside


def innermost_frame() -> FrameType | None:
    """The innermost frame that is not the engine's: the user's or a library's."""
    return next((frame for frame in _frames(1) if not is_engine_file(frame.f_code.co_filename)), None)


def numpy_caller(skip: int = 1) -> FrameType | None:
    """The innermost frame that runs neither the engine's code nor NumPy's: of the user, or of a package."""
    for frame in _frames(skip + 1):
        name = str(frame.f_globals.get("__name__", ""))
        if not is_engine_file(frame.f_code.co_filename) and name.partition(".")[0] != "numpy":
            return frame
    return None


def user_line(skip: int = 1) -> Line | None:
    """The line that the user's code is at."""
    frame = user_frame(skip + 1)
    if frame is None:
        return None
    code, place = frame.f_code, frame.f_lasti
    known = _LINES.get((id(code), place))
    if known is not None and known[0] is code:
        return known[1]
    line = Line(code.co_filename, frame.f_lineno, code.co_qualname)
    if len(_LINES) >= _MOST_LINES:
        _LINES.clear()
    _LINES[id(code), place] = code, line
    return line


_LINES: dict[tuple[int, int], tuple[CodeType, Line]] = {}
"""Lines by the code and the place in its bytecode. Code in loops is at few places, and a search for a line walks
through the lines of its function. The key keeps the code alive, so that its id stays unique.
"""
_MOST_LINES = 4096


def library_calls(skip: int = 1) -> list[tuple[str, str]]:
    """The functions of installed packages that run between the user's code and the engine's, outermost first.

    Each as the name of its module and its own qualified name.
    """
    calls: list[tuple[str, str]] = []
    for frame in _frames(skip + 1):
        code = frame.f_code
        if is_engine_file(code.co_filename):
            function = getattr(frame.f_locals.get("self"), "function", None) if code.co_name == "call" else None
            if isinstance(function, FunctionType):  # a hook, before a function that a decorator may have renamed
                calls.append((function.__module__, function.__qualname__))
            continue
        if not is_library_file(code.co_filename):
            break
        calls.append((str(frame.f_globals.get("__name__", "")), code.co_qualname))
    calls.reverse()
    return calls


def called_object(frame: FrameType | None) -> Any:
    """The callee in the source of a frame's call; None if that is not a name, or not available."""
    if frame is None:
        return None
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or None in positions:
        return None
    first, last, start, end = [int(number or 0) for number in positions]
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        node: Any = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    names: list[str] = []
    node = getattr(node, "func", None)
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return _type_of_dtype(names)
    variables = (frame.f_locals, frame.f_globals, frame.f_builtins)
    value = next((names_in[node.id] for names_in in variables if node.id in names_in), None)
    for name in reversed(names):
        if isinstance(value, ModuleType):
            value = vars(value).get(name)
        elif (
            type(value).__module__.partition(".")[0] == "numpy"
        ):  # a method of an array, which looking it up does not call
            value = getattr(value, name, None)
        else:
            return _type_of_dtype(names)
    return value


def _type_of_dtype(names: list[str]) -> Any:
    """The attribute `type` of dtypes, where an expression is the class of a number: `x.dtype.type(...)`."""
    return vars(sys.modules["numpy"].dtype)["type"] if names[:1] == ["type"] else None


def library_calls_of(error: BaseException) -> list[tuple[str, str]]:
    """`library_calls` of an error that was raised: those that the user's innermost line called."""
    calls: list[tuple[str, str]] = []
    trace = error.__traceback__
    while trace is not None:
        code: CodeType = trace.tb_frame.f_code
        if not is_library_file(code.co_filename):
            calls.clear()
        elif not is_engine_file(code.co_filename):
            calls.append((str(trace.tb_frame.f_globals.get("__name__", "")), code.co_qualname))
        trace = trace.tb_next
    return calls


def line_of_error(error: BaseException) -> Line | None:
    """The line of the user's code at which an error was raised, or was passed on by a library."""
    found: Line | None = None
    trace = error.__traceback__
    while trace is not None:
        code: CodeType = trace.tb_frame.f_code
        if not is_library_file(code.co_filename):
            found = Line(code.co_filename, trace.tb_lineno, code.co_qualname)
        trace = trace.tb_next
    return found


def at_line(prefix: str = "  at ") -> str:
    """A message line naming the user's line, or nothing where there is none."""
    line = user_line(2)
    return f"\n{prefix}{line}" if line is not None else ""


def _line_of_compiled_code(frame: FrameType, number: int) -> Line | None:
    """The line of the user that a line of compiled source computes; None for other code."""
    if not frame.f_code.co_filename.startswith("<func."):
        return None
    lines = frame.f_globals.get("lines_of_user", ())  # `LINES` of func.backends.source, which this does not import
    return lines[number - 1] if number <= len(lines) else None


def note_line(error: BaseException, line: Line | None, where: str) -> None:
    """Add the user's line of the code that raised an error: no frame of the traceback is there."""
    note = f"  {where}, at {line}"
    if line is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def hide_engine_frames(error: BaseException) -> BaseException:
    """Drop the engine's frames from the tracebacks of an error and of its causes, unless FUNC_TRACEBACK=full is set.

    In place of a frame of compiled code the error has a note with the user's line that this code computes.
    """
    errors: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        other = waiting.pop()
        if other is not None and id(other) not in errors:
            errors[id(other)] = other
            waiting += [other.__cause__, other.__context__, *getattr(other, "exceptions", ())]
    for other in errors.values():
        _hide_frames(other)
    return error


def _hide_frames(error: BaseException) -> None:
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not is_engine_file(trace.tb_frame.f_code.co_filename):
            frames.append(trace)
        else:
            note_line(error, _line_of_compiled_code(trace.tb_frame, trace.tb_lineno), "in compiled code")
        trace = trace.tb_next
    if os.environ.get("FUNC_TRACEBACK") == "full":
        return
    user_trace: TracebackType | None = None
    for frame in reversed(frames):
        user_trace = TracebackType(user_trace, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    error.__traceback__ = user_trace
