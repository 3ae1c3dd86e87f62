"""Which attribute a frame is about to read: tells Python code that writes `np.array` from compiled code that asks."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, FrameType

_NAMED = frozenset([dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") if name in dis.opmap])
_SHIFTED = {dis.opmap["LOAD_ATTR"]} if sys.version_info >= (3, 12) else set()
"""Instructions whose argument has a flag in its lowest bit. (LOAD_METHOD is no instruction then, but a name.)"""
_BELOW_ARGUMENTS = 2 if sys.version_info >= (3, 13) else 1
"""How many values lie on the stack below the arguments of a call, down to the called one."""
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


@functools.lru_cache(4096)
def _calls_getattr(code: CodeType, place: int) -> bool:
    """Whether the call at a place in the code is one of the builtin getattr, found by following the stack backwards."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    at = next((k for k, i in enumerate(instructions) if i.offset == place), None)
    if at is None or instructions[at].opname not in ("CALL", "PRECALL", "CALL_FUNCTION"):
        return False
    needed = (instructions[at].arg or 0) + _BELOW_ARGUMENTS
    if instructions[at].opname == "CALL" and instructions[at - 1].opname == "PRECALL":
        at -= 1  # two instructions of one call
    while at > 0 and needed > 0:
        at -= 1
        instruction = instructions[at]
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs or instruction.is_jump_target:
            return False
        needed -= dis.stack_effect(instruction.opcode, instruction.arg)
    found = instructions[at]
    return found.opname in ("LOAD_GLOBAL", "LOAD_NAME") and found.argval == "getattr"
