"""Swallowed errors: the error of a traced value, raised again after C code has replaced it.

Python or NumPy may ask a traced value for something that would lose its derivative or its batch: an error. C code on
the way to the user sometimes replaces it by another one ("setting an array element with a sequence"). So func notes
each such error. If another error leaves a transform at the same line, func raises the noted one in its place.
Python code that catches errors of every kind (`except Exception:`) would go on with values that differ from NumPy's.
So func raises the error again when the transform ends.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

from func.backends.records import Record
from func.interpreters.core.errors import FuncError, TracerConversionError
from func.interpreters.core.scopes import current_transform
from func.interpreters.core.types import Tracer
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.source import (
    Line,
    hide_engine_frames,
    is_engine_file,
    is_library_file,
    library_calls_of,
    line_of_error,
    user_line,
)


class NotedError(Record):
    """The last noted error: its class and text, the line, the running interpreter, and the words it explains."""

    kind: type[FuncError]
    text: str
    line: Line | None
    interpreter: Any
    explains: tuple[str, ...]


_LAST: ContextVar[NotedError | None] = ContextVar("func_noted_error", default=None)
_REPLACING = (TypeError, ValueError, IndexError)
"""The errors by which NumPy and Python replace a noted one."""


def noted(error: FuncError, interpreter: Any, explains: tuple[str, ...] = ()) -> FuncError:
    """The error, noted in case that C code swallows it; for `raise noted(...)`.

    With `explains` nothing raises it now: it replaces a later error of NumPy's whose text has one of these words.
    """
    _LAST.set(NotedError(type(error), str(error), user_line(2), interpreter, explains))
    if interpreter is not None and not explains:
        keep_refusal(error, interpreter)
    return error


def keep_refusal(error: Exception, interpreter: Any) -> None:
    """Keep an error for the end of a transform, unless an earlier one is to be raised there."""
    if interpreter.refusal is None or _place_of_catch(interpreter.refusal) is None:
        interpreter.refusal = error


def caught(refusal: Exception) -> Exception | None:
    """The error to raise where a transform ends after Python code has caught a noted error, as it would any error."""
    line = _place_of_catch(refusal)
    if line is None:
        return None
    text = (
        f"{refusal}\n  `except` caught this error at {line}; the function would go on with another value than in NumPy."
    )
    error = type(refusal)(text)
    error.__dict__.update(refusal.__dict__)
    return error


def _place_of_catch(error: Exception) -> Line | None:
    """The line at which `except` for errors of every kind has caught an error; None where it names TypeError."""
    trace = error.__traceback__
    if trace is None or is_engine_file(trace.tb_frame.f_code.co_filename):
        return None
    code = trace.tb_frame.f_code
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for names in _handlers(code, trace.tb_lasti):
        if not names or not names.isdisjoint(("Exception", "BaseException")):
            return Line(code.co_filename, trace.tb_lineno, code.co_qualname)
        if not names.isdisjoint(kinds):
            return None
    return None


@functools.lru_cache(256)
def _handlers(code: CodeType, place: int) -> list[set[str]]:
    """The names of classes in each `except` around a place in the code, inner ones first; none in `except:`.

    The bytecode tells: at the place that the exception table names, each clause loads its classes and compares.
    """
    instructions = list(dis.get_instructions(code))
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    handlers: list[set[str]] = []
    targets: set[int] = set()
    while target := next((entry.target for entry in table if entry.start <= place < entry.end), None):
        if target in targets:
            break
        targets.add(target)
        names: set[str] = set()
        count = len(handlers)
        for instruction in [i for i in instructions if i.offset >= target]:
            name = instruction.opname
            names = set() if instruction.is_jump_target else names
            if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_DEREF"):
                names.add(str(instruction.argval))
            elif name == "CHECK_EXC_MATCH":
                handlers.append(names)
                names = set()
            elif name == "POP_TOP" and len(handlers) == count:  # `except:` drops the error at once
                handlers.append(set())
            if name in ("RERAISE", "WITH_EXCEPT_START") or (handlers[count:] and not handlers[-1]):
                break
        place = target
    return handlers


def worded(error: Exception, interpreter: Any) -> Exception:
    """The error that leaves a transform: the noted one that it replaced, or the error itself."""
    if isinstance(error, FuncError):
        return error
    text = str(error)
    last = _LAST.get()
    if last is not None and last.interpreter is interpreter:
        if last.explains:
            is_of_numbers = isinstance(error, ArithmeticError) and last.line == line_of_error(error)
            is_swallowed = (is_of_numbers or isinstance(error, (TypeError, AttributeError))) and any(
                [words in text for words in last.explains]
            )
        else:
            is_replacing = isinstance(error, _REPLACING) or is_of_compiled_code(error)
            is_swallowed = is_replacing and last.line == line_of_error(error)
        if is_swallowed or isinstance(error, SystemError):
            return last.kind(last.text)
    is_named = any([name in text for name in _NAMES_OF_TRACER]) and "TracedArray' object has no attribute" not in text
    if (isinstance(error, (TypeError, AttributeError, ValueError)) and is_named) or _is_of_traced_arguments(error):
        otherwise = "Use NumPy's functions, which take traced values."
        hint = WIRING.library_hint(library_calls_of(error), otherwise) or otherwise
        line = line_of_error(error)
        place = "" if line is None else f"\n  at {line}"
        return TracerConversionError(f"a traced value reached code that takes plain arrays only: {text}{place}\n{hint}")
    return error


def hide_outside(error: BaseException) -> None:
    """Drop the engine's frames from an error that leaves an operation on a tensor; inside a transform that comes last.

    `try: ... except Exception as error: hide_outside(error); raise` costs nothing without an error, unlike a
    decorator.
    """
    if current_transform() is None:
        hide_engine_frames(error)


def add_hint(error: Exception, arguments: Sequence[Any]) -> None:
    """Add a suggestion to an error of Python; `arguments` are those of the transform."""
    text = str(error)
    for words, hint in _HINTS.items() if isinstance(error, (TypeError, AttributeError)) else ():
        if words in text and hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)
    is_of_list = isinstance(error, TypeError) and "operand type" in text and ("'list'" in text or "'tuple'" in text)
    if is_of_list and any([type(leaf) in (int, float, complex) for leaf in arguments]):
        error.add_note("A list or tuple of numbers is a tree for func, of which each number is traced: pass np.array.")


_AXIS = "NumPy's functions and methods call it axis=, and keepdims= what PyTorch calls keepdim=."
_HINTS = {
    "unexpected keyword argument 'dim'": _AXIS,
    "unexpected keyword argument 'keepdim'": _AXIS,
    "'TracedArray' object has no attribute": "Traced arrays and tensors have the attributes of NumPy's arrays.",
    "is not JSON serializable": "A traced value has no number to write: return it, and write it outside.",
}
"""Suggestions for errors of Python, by words in their text."""
_NAMES_OF_TRACER = ("TracedArray'", "not TracedArray", "got TracedArray", "'NotImplementedType'", "__jax_array__")
"""Foreign code's names of values that it cannot use."""


def instruction(frame: FrameType | None) -> tuple[str, int]:
    """The instruction that a frame is at: its name and its argument."""
    if frame is None:
        return "", 0
    code = frame.f_code.co_code
    place = frame.f_lasti
    return dis.opname[code[place]], code[place + 1]


_SYMBOLS = dict(enumerate([symbol for _, symbol in getattr(dis, "_nb_ops", ())]))


def is_of_compiled_code(error: BaseException) -> bool:
    """Whether compiled code of a package raised an error: of its own class, or below a line of its Python code."""
    frame, raised_by = _place_of_error(error)
    if frame is None or raised_by in ("RAISE_VARARGS", "RERAISE"):
        return False
    return type(error).__module__ != "builtins" or _is_of_package(frame)


def _is_of_traced_arguments(error: BaseException) -> bool:
    """Whether compiled code of a package raised an error where the package's Python code has traced values."""
    frame, raised_by = _place_of_error(error)
    if frame is None or not _is_of_package(frame) or not raised_by.startswith("CALL"):
        return False
    if type(error).__module__ == "builtins" and type(error) not in (TypeError, ValueError, RuntimeError):
        return False
    return any([type(value) is Tracer for value in frame.f_locals.values()])


def _place_of_error(error: BaseException) -> tuple[FrameType | None, str]:
    """The innermost frame of an error, and the instruction that it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None, ""
    return trace.tb_frame, dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]


def _is_of_package(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return is_library_file(file) and not is_engine_file(file)


def is_formatting(frame: FrameType | None) -> bool:
    """Whether a frame is at `text % value`, where conversions only go into a text."""
    name, argument = instruction(frame)
    return name == "BINARY_OP" and _SYMBOLS.get(argument) in ("%", "%=")


def is_writing(frame: FrameType | None) -> bool:
    """Whether a frame is at `a[i] = x`, or at `a += x` and the like."""
    name, argument = instruction(frame)
    return name in ("STORE_SUBSCR", "STORE_SLICE") or (name == "BINARY_OP" and _SYMBOLS.get(argument, "").endswith("="))


def is_indexing(frame: FrameType | None) -> bool:
    """Whether a frame is at `a[x]`."""
    name, argument = instruction(frame)
    return name in ("BINARY_SUBSCR", "BINARY_SLICE") or (name == "BINARY_OP" and _SYMBOLS.get(argument) == "[]")


def is_slicing(frame: FrameType | None) -> bool:
    """Whether a frame is at `a[:x]`, or at `a[x, y]`, which may contain slices."""
    if frame is None or not is_indexing(frame):
        return False
    code = frame.f_code.co_code
    before = [dis.opname[code[place]] for place in range(0, frame.f_lasti, 2) if code[place]]
    return instruction(frame)[0] == "BINARY_SLICE" or before[-1:] in (["BUILD_SLICE"], ["BUILD_TUPLE"])


def asks_inside(frame: FrameType | None) -> bool:
    """Whether C code of a call or an operator asks for a truth value, instead of `if` or `while`.

    From Python 3.13 on a comparison whose truth value the next instruction needs makes it itself.
    """
    name, argument = instruction(frame)
    is_test = name == "COMPARE_OP" and sys.version_info >= (3, 13) and bool(argument & 16)
    return name.startswith(("CALL", "PRECALL", "BINARY_OP", "COMPARE_OP")) and not is_test


def is_operator(frame: FrameType | None) -> bool:
    """Whether a frame is at an operator between two values, such as `a @ b`."""
    name, _ = instruction(frame)
    return name in ("BINARY_OP", "COMPARE_OP") and not is_writing(frame) and not is_indexing(frame)
