"""Which attribute a frame is about to read: tells Python code that writes `np.array` from compiled code that asks."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FrameType
from typing import Any

_NAMED = frozenset([dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") if name in dis.opmap])
_SHIFTED = {dis.opmap["LOAD_ATTR"]} if sys.version_info >= (3, 12) else set()
"""Instructions whose argument has a flag in its lowest bit. (LOAD_METHOD is no instruction then, but a name.)"""
_EXTENDED = dis.EXTENDED_ARG


def reads_attribute(frame: FrameType, name: str) -> bool:
    """Whether the instruction that a frame is at reads an attribute of that name, or calls `getattr` for it.

    Compiled functions have no frame. While one runs, the frame of its caller is at a call, or at an attribute of
    another name.
    """
    code = frame.f_code
    text, place = code.co_code, frame.f_lasti
    if place < 0:
        return False
    op = text[place]
    if op not in _NAMED:
        return _calls_getattr(code, place) and "getattr" not in frame.f_globals
    number = text[place + 1]
    if place >= 2 and text[place - 2] == _EXTENDED:
        number |= _extension(text, place - 2) << 8
    if op in _SHIFTED:
        number >>= 1
    return code.co_names[number] == name


def _extension(text: bytes, place: int) -> int:
    """The number that the EXTENDED_ARG instructions up to a place give."""
    number, shift = 0, 0
    while place >= 0 and text[place] == _EXTENDED:
        number |= text[place + 1] << shift
        place, shift = place - 2, shift + 8
    return number


def _calls_getattr(code: CodeType, place: int) -> bool:
    """Whether the call at a place in the code is one of the builtin getattr."""
    found = _callee(code, place)
    if found is None or found.is_jump_target:
        return False
    return found.opname in ("LOAD_GLOBAL", "LOAD_NAME") and found.argval == "getattr"


def called_function(frame: FrameType, module: Any) -> Any:
    """What the call that a frame is at calls, by the instruction that read it: an attribute counts as one of `module`.

    None where the frame is at no call, or where it cannot be known.
    """
    found = _callee(frame.f_code, frame.f_lasti)
    if found is None:
        return None
    if found.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return getattr(module, found.argval, None)
    if found.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return frame.f_globals.get(found.argval)
    return frame.f_locals.get(found.argval) if found.opname in ("LOAD_FAST", "LOAD_DEREF") else None


@functools.lru_cache(4096)
def _callee(code: CodeType, place: int) -> dis.Instruction | None:
    """The instruction that reads what the call at a place in the code calls, found by following the stack backwards."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    at = next((k for k, i in enumerate(instructions) if i.offset == place), None)
    if at is None:
        return None
    name, needed = instructions[at].opname, (instructions[at].arg or 0) + 1
    if name == "CALL_FUNCTION_EX":
        needed = 2 + (instructions[at].arg or 0) % 2
    elif name == "CALL_KW":
        needed += 1
    elif name not in ("CALL", "PRECALL", "CALL_FUNCTION"):
        return None
    if name == "CALL" and instructions[at - 1].opname == "PRECALL":
        at -= 1  # two instructions of one call
    while at > 0:  # `needed`: values that the instructions up to here leave on the stack for the call
        at -= 1
        instruction = instructions[at]
        if needed == 1 and instruction.opname != "PUSH_NULL":
            return instruction
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs or instruction.is_jump_target:
            return None
        if needed > 1:
            needed -= dis.stack_effect(instruction.opcode, instruction.arg)
    return None
