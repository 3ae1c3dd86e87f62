"""The operation of a frame's instruction: the attribute it reads, the function it calls, the operator it computes.

The attribute distinguishes Python code that writes `np.array` from compiled code that asks for it.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
from types import CodeType, FrameType, ModuleType
from typing import Any

_NAMED = frozenset([dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") if name in dis.opmap])
_SHIFTED = {dis.opmap["LOAD_ATTR"]} if sys.version_info >= (3, 12) else set()
"""Instructions whose argument has a flag in its lowest bit. (LOAD_METHOD is then a name, not an instruction.)"""
_EXTENDED = dis.EXTENDED_ARG


def reads_attribute(frame: FrameType, name: str) -> bool:
    """Whether the current instruction of a frame reads an attribute of that name, or calls `getattr` for it.

    Compiled functions have no frame. While one runs, the frame of its caller is at a call, or at an attribute of
    another name.
    """
    code, place = frame.f_code, frame.f_lasti
    known = _READ.get((id(code), place))
    if known is None or known[0] is not code:
        if len(_READ) >= _READ_LIMIT:
            _READ.clear()
        known = _READ[id(code), place] = code, _attribute_read(code, place)
    if known[1] is None:
        return _calls_builtin(code, place, ("getattr",)) and "getattr" not in frame.f_globals
    return known[1] == name


_READ: dict[tuple[int, int], tuple[CodeType, str | None]] = {}
"""The attributes that instructions read, by (code, place); each entry keeps its code."""
_READ_LIMIT = 1024


def _attribute_read(code: CodeType, place: int) -> str | None:
    """The name of the attribute that the instruction at a place reads; "" before the first, None if it reads none."""
    if place < 0:
        return ""
    text = code.co_code
    op = text[place]
    if op not in _NAMED:
        return None
    number = text[place + 1]
    if place >= 2 and text[place - 2] == _EXTENDED:
        number |= _extension(text, place - 2) << 8
    if op in _SHIFTED:
        number >>= 1
    return code.co_names[number]


def _extension(text: bytes, place: int) -> int:
    """The number in the EXTENDED_ARG instructions up to a place."""
    number, shift = 0, 0
    while place >= 0 and text[place] == _EXTENDED:
        number |= text[place + 1] << shift
        place, shift = place - 2, shift + 8
    return number


def calls_attribute(frame: FrameType) -> bool:
    """Whether the code calls the attribute that the instruction of a frame reads: `x.name(...)`.

    False where the arguments have branches.
    """
    code, place = frame.f_code, frame.f_lasti
    known = _CALLED.get((id(code), place))
    if known is None or known[0] is not code:
        if len(_CALLED) >= _READ_LIMIT:
            _CALLED.clear()
        known = _CALLED[id(code), place] = code, _is_called(code, place)
    return known[1]


_CALLED: dict[tuple[int, int], tuple[CodeType, bool]] = {}
"""Whether code calls the value that an instruction reads, keyed as `_READ`."""


def _is_called(code: CodeType, place: int) -> bool:
    """Whether a call follows whose callee is the value of the instruction at a place."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    following = [i for i in instructions if i.offset >= place]
    if not following or following[0].opname not in ("LOAD_ATTR", "LOAD_METHOD"):
        return False
    if following[0].opname == "LOAD_METHOD" or (_SHIFTED and (following[0].arg or 0) & 1):
        return True
    depth = 1  # values on the stack, from this one on
    for instruction in following[1:]:
        count = instruction.arg or 0
        if instruction.opname in ("PRECALL", "CALL", "CALL_FUNCTION", "CALL_KW"):
            below = depth - count - (instruction.opname == "CALL_KW")
            if below in (1, 2):
                return below == 1 or following[1].opname == "PUSH_NULL"
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs or instruction.is_jump_target:
            return False
        depth += dis.stack_effect(instruction.opcode, instruction.arg)
        if depth < 1:
            return False
    return False


def looks_up_by_name(frame: FrameType) -> bool:
    """Whether the instruction of a frame calls hasattr or getattr."""
    return _calls_builtin(frame.f_code, frame.f_lasti, ("hasattr", "getattr"))


def _calls_builtin(code: CodeType, place: int, names: tuple[str, ...]) -> bool:
    """Whether the call at a place in the code is one of a builtin function of these names."""
    earlier = _callee(code, place)
    return bool(earlier) and earlier[-1].opname in ("LOAD_GLOBAL", "LOAD_NAME") and earlier[-1].argval in names


_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


def operation(frame: FrameType, module: Any, methods: tuple[str, ...]) -> Any:
    """The function that the instruction of a frame calls, or the one of `operator` whose operator it computes.

    An attribute of a module is that function; any other attribute counts as one of `module`, or as the method of the
    owner in `methods`. None if the instruction does not tell.
    """
    code, place = frame.f_code, frame.f_lasti
    symbol = _symbol(code, place)
    if symbol is not None:
        return _OPERATORS.get(symbol)
    earlier = list(_callee(code, place))
    while earlier:
        last = earlier.pop()
        if last.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return _named(frame, last)
        if last.argval not in methods:
            owner = _named(frame, earlier[-1]) if earlier else None
            return getattr(owner if isinstance(owner, ModuleType) else module, last.argval, None)
    return None


def _named(frame: FrameType, instruction: dis.Instruction) -> Any:
    """The value of the variable that an instruction reads."""
    name = instruction.argval
    if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        scopes = [frame.f_globals, frame.f_builtins]
        return next((scope[name] for scope in scopes if name in scope), None)
    is_local = instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and type(name) is str
    return frame.f_locals.get(name) if is_local else None


@functools.lru_cache(4096)
def _symbol(code: CodeType, place: int) -> str | None:
    """The symbol of the binary operator at a place in the code, without the = of an assignment; None at no operator."""
    instruction = [i for i in dis.get_instructions(code) if i.offset <= place][-1]
    if instruction.opname == "COMPARE_OP":
        return str(instruction.argval).removeprefix("bool(").removesuffix(")")
    return instruction.argrepr.removesuffix("=") if instruction.opname == "BINARY_OP" else None


@functools.lru_cache(4096)
def _callee(code: CodeType, place: int) -> tuple[dis.Instruction, ...]:
    """The instruction that reads the callee of the call at a place in the code, and the one before it, first.

    Follows the stack backwards. Empty if the place is not a call, or if the stack leads to a jump.
    """
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    at = sum([i.offset <= place for i in instructions]) - 1  # behind it are places without an instruction
    name, needed = instructions[at].opname, (instructions[at].arg or 0) + 1
    if name == "CALL_FUNCTION_EX":
        needed = 2 + (instructions[at].arg or 0) % 2
    elif name == "CALL_KW":
        needed += 1
    elif name not in ("CALL", "PRECALL", "CALL_FUNCTION"):
        return ()
    if name == "CALL" and instructions[at - 1].opname == "PRECALL":
        at -= 1  # two instructions form one call
    while at > 0:  # `needed`: the number of values that the instructions up to here leave on the stack for the call
        at -= 1
        instruction = instructions[at]
        if needed == 1 and instruction.opname != "PUSH_NULL":
            return tuple(instructions[max(at - 1, 0) : at + 1])
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs or instruction.is_jump_target:
            return ()
        if needed > 1:
            needed -= dis.stack_effect(instruction.opcode, instruction.arg)
    return ()
