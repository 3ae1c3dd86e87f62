"""A builder that writes expressions and statements of C under the names of `ir.IRBuilder`.

The tables of operations on elements call the methods of a builder. This one supports single numbers only. A value with
one use, in its block and before memory changes, becomes part of the expression that uses it. Every other value gets a
name. Arms of a choice are names, so that a choice computes nothing and loops over it become vector code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from func.backends import ir
from func.backends.c.declarations import BIT, DOUBLE, FLOAT, HALF, c_type, literal

Piece: TypeAlias = "str | ir.Value"
LOOSE, SUM, PRODUCT, ATOM = range(4)
SIGNS = {"*": (PRODUCT, ATOM), "/": (PRODUCT, ATOM), " + ": (SUM, PRODUCT), " - ": (SUM, PRODUCT)}
"""The levels that operands left and right of a sign have without parentheses; additions keep their order."""
_WORD = re.compile(r"[A-Za-z_]\w*")
LONGEST = 120
"""Letters of the longest expression that becomes part of another."""


class Expression(ir.Value):
    """The value of an expression: pieces of text and values between them."""

    __slots__ = ("block", "epoch", "is_fixed", "level", "pieces", "uses")

    def __init__(self, kind: Any, pieces: Sequence[Piece], block: int, epoch: int, level: int) -> None:
        self.type = kind
        self.text = ""
        """Its name or its text, once decided."""
        self.pieces = pieces
        self.block = block
        self.epoch = epoch
        """The number of earlier statements that may have changed memory."""
        self.level = level
        """The precedence of its operator: ATOM, PRODUCT, SUM or LOOSE."""
        self.is_fixed = False
        """Whether it must have a name."""
        self.uses = 0


class Statement:
    """A line of pieces."""

    __slots__ = ("block", "epoch", "pieces")

    def __init__(self, pieces: Sequence[Piece], block: int, epoch: int) -> None:
        self.pieces = pieces
        self.block = block
        self.epoch = epoch


Line: TypeAlias = "Expression | Statement | str"
"""A string opens or closes a block."""


def _binary(sign: str, wide: bool = False) -> Callable[..., ir.Value]:
    """An operation of floats, or of unsigned integers; `wide` where narrow operands could overflow as signed ones."""

    def emit(self: CBuilder, x: ir.Value, y: ir.Value, name: str = "", flags: Sequence[str] = ()) -> ir.Value:
        kind = x.type
        if sign in ("<<", ">>"):
            y = self.within(y)
        if kind is DOUBLE or kind is FLOAT:
            if sign in "*/":
                return self.expression(kind, [x, sign, y], PRODUCT)
            return self.expression(kind, [x, f" {sign} ", y], SUM)
        bits = kind.width
        if bits == 1:
            return self.expression(kind, [x, f" {sign} ", y])
        if bits < 32:
            start = f"({c_type(kind)})((uint32_t)" if wide else f"({c_type(kind)})("
            return self.expression(kind, [start, x, f" {sign} ", y, ")"], level=ATOM)
        return self.expression(kind, [x, f" {sign} ", y])

    return emit


def signed(x: ir.Value) -> list[Piece]:
    """An integer as a signed one. It is not a separate value: a name would have the unsigned type."""
    return [f"(int{x.type.width}_t)", x]


def _signed(sign: str) -> Callable[..., ir.Value]:
    def emit(self: CBuilder, x: ir.Value, y: ir.Value, name: str = "") -> ir.Value:
        kind = x.type
        right = [self.within(y)] if sign == ">>" else signed(y)
        return self.expression(kind, [f"({c_type(kind)})(", *signed(x), f" {sign} ", *right, ")"], level=ATOM)

    return emit


def _cast(via: str = "") -> Callable[..., ir.Value]:
    def emit(self: CBuilder, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        inner = signed(x) if via == "signed" else [x]
        return self.expression(kind, [f"({c_type(kind)})", *inner], level=ATOM)

    return emit


class CBuilder:
    """Collects the lines of one function.

    >>> b = CBuilder()
    >>> x = b.named(ir.DoubleType(), "x")
    >>> b.line("return ", b.fadd(b.fmul(x, x), ir.Constant(ir.DoubleType(), 1.0)), ";")
    >>> print(b.text())
    return x*x + 1.0;
    """

    def __init__(self, prefix: str = "v") -> None:
        self.lines: list[Line] = []
        self.blocks = [0]
        self.epoch = 0
        self._block_count = 0
        self._names: dict[str, int] = {}
        self._prefix = prefix
        self._declared: dict[str, str] = {}
        """Names by the text of their declarations."""
        self.keeps_loops = False
        """Whether the text tells the compiler (CUDA) to unroll only the loops that the writer marks."""

    # -- lines and blocks -------------------------------------------------------------------------------------------
    def named(self, kind: Any, name: str) -> Expression:
        """A value that has a name or a text without operations."""
        value = Expression(kind, (), -1, 0, ATOM)
        value.text = name
        return value

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        count = self._names.get(prefix, 0)
        self._names[prefix] = count + 1
        return f"{prefix}{count}"

    def expression(self, kind: Any, pieces: Sequence[Piece], level: int = LOOSE) -> Expression:
        """A new value."""
        value = Expression(kind, pieces, self.blocks[-1], self.epoch, level)
        self.lines.append(value)
        return value

    def line(self, *pieces: Piece) -> None:
        """A statement that changes no memory."""
        self.lines.append(Statement(pieces, self.blocks[-1], self.epoch))

    def declare(self, name: str, text: str) -> None:
        """A declaration, dropped if nothing mentions its name."""
        self._declared[text] = name
        self.line(text)

    def effect(self, *pieces: Piece) -> None:
        """A statement that may change memory or a variable."""
        self.line(*pieces)
        self.epoch += 1

    def fix(self, value: ir.Value) -> ir.Value:
        """The value, which gets a name."""
        if isinstance(value, Expression):
            value.is_fixed = True
        return value

    @contextmanager
    def braces(self, opening: str = "{") -> Iterator[None]:
        """Inside, lines of a block."""
        self.lines.append(opening)
        self._block_count += 1
        self.blocks.append(self._block_count)
        self.epoch += 1
        yield
        self.blocks.pop()
        self.epoch += 1
        self.lines.append("}")

    @contextmanager
    def counted(self, length: int | str, step: int = 1, start: int | str = 0) -> Iterator[str]:
        """Inside, lines that run for every index below `length`; no loop for one pass."""
        if isinstance(length, int) and isinstance(start, int) and length - start <= step:
            with self.braces() if length > start else self._nowhere():
                yield str(start)
            return
        index = self.fresh("i")
        advance = f"++{index}" if step == 1 else f"{index} += {step}"
        with self.braces(f"for (ptrdiff_t {index} = {start}; {index} < {length}; {advance}) {{"):
            yield index

    @contextmanager
    def _nowhere(self) -> Iterator[None]:
        """Lines that are dropped."""
        count = len(self.lines)
        yield
        del self.lines[count:]

    def text(self, indent: int = 0) -> str:
        """All lines but those of values that nothing uses."""
        for line in reversed(self.lines):
            if isinstance(line, Statement) or (isinstance(line, Expression) and line.uses):
                _count_uses(line)
        out: list[str] = []
        depth = indent
        for line in self.lines:
            if isinstance(line, str):
                depth -= line.startswith("}")
                out.append("    " * depth + line)
                depth += line.endswith("{")
            elif isinstance(line, Statement):
                out.append("    " * depth + self._joined(line.pieces, False))
            elif line.uses:
                self._resolve(line, out, depth)
        out = _without_empty_blocks(self._without_unused(out))
        return "\n".join(_with_loops_kept(out) if self.keeps_loops else out)

    def _without_unused(self, lines: list[str]) -> list[str]:
        """The lines without declarations that no other line mentions."""
        mentions = Counter([word for line in lines for word in _WORD.findall(line)])
        while True:
            unused = {line for line in lines if mentions[self._declared.get(line.strip(), "")] == 1}
            if not unused:
                return lines
            for line in unused:
                mentions.subtract(_WORD.findall(line))
            lines = [line for line in lines if line not in unused]

    def _resolve(self, value: Expression, out: list[str], depth: int) -> None:
        text = self._joined(value.pieces, True)
        if value.uses == 1 and not value.is_fixed and len(text) <= LONGEST:
            value.text = text
            return
        value.text = self.fresh(self._prefix)
        value.level = ATOM
        out.append("    " * depth + f"{c_type(value.type)} {value.text} = {text};")

    def _joined(self, pieces: Sequence[Piece], is_operand: bool) -> str:
        parts = []
        for place, piece in enumerate(pieces):
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(piece, Expression):
                parts.append(piece.text if piece.level >= _needed(pieces, place) else f"({piece.text})")
            else:
                text = literal(piece)
                parts.append(f"({text})" if text.startswith("-") and is_operand else text)
        return "".join(parts)

    # -- the instructions of ir.IRBuilder --------------------------------------------------------------------------
    add, sub, mul = _binary("+", True), _binary("-", True), _binary("*", True)
    udiv, urem = _binary("/"), _binary("%")
    and_, or_, xor = _binary("&"), _binary("|"), _binary("^")
    shl, lshr = _binary("<<", True), _binary(">>")
    fadd, fsub, fmul, fdiv = _binary("+"), _binary("-"), _binary("*"), _binary("/")
    sdiv, srem, ashr = _signed("/"), _signed("%"), _signed(">>")
    zext, sitofp, uitofp = _cast(), _cast("signed"), _cast()

    def within(self, bits: ir.Value) -> ir.Value:
        """A number of bits to shift by. In the arm that a choice drops it may be too large, which C does not allow."""
        if isinstance(bits, ir.Constant):
            return bits
        return self.and_(bits, ir.Constant(bits.type, bits.type.width - 1))

    def sext(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """A wider integer of the same signed value."""
        return self.expression(kind, [f"({c_type(kind)})(int{kind.width}_t)", *signed(x)], level=ATOM)

    def trunc(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """The last bits."""
        if kind is BIT:
            return self.expression(kind, ["((", x, " & 1u) != 0)"], level=ATOM)
        return self.expression(kind, [f"({c_type(kind)})", x], level=ATOM)

    def fptosi(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """The integer towards zero of a number in its range."""
        return self.expression(kind, [f"({c_type(kind)})(int{kind.width}_t)", x], level=ATOM)

    def fpext(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """The number in a wider type."""
        if x.type is HALF:
            return self.call_text("func_float_of_half", FLOAT, x)
        return self.expression(kind, [f"({c_type(kind)})", x], level=ATOM)

    def fptrunc(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """The number rounded to a narrower type."""
        if kind is HALF:
            return self.call_text("func_half_of_float", HALF, x)
        return self.expression(kind, [f"({c_type(kind)})", x], level=ATOM)

    def bitcast(self, x: ir.Value, kind: Any, name: str = "") -> ir.Value:
        """The same bits as another type."""
        if x.type is kind or HALF in (x.type, kind):
            return self.expression(kind, [f"({c_type(kind)})", x], level=ATOM)
        bits = 64 if DOUBLE in (x.type, kind) else 32
        helper = f"func_bits{bits}" if x.type in (DOUBLE, FLOAT) else f"func_real{bits}"
        return self.call_text(helper, kind, x)

    def fneg(self, x: ir.Value, name: str = "", flags: Sequence[str] = ()) -> ir.Value:
        """The number with the other sign."""
        return self.expression(x.type, ["-", x])

    def neg(self, x: ir.Value) -> ir.Value:
        """The negative integer."""
        return self.sub(ir.Constant(x.type, 0), x)

    def not_(self, x: ir.Value) -> ir.Value:
        """All bits inverted."""
        if x.type is BIT:
            return self.expression(x.type, ["(!", x, ")"], level=ATOM)
        return self.expression(x.type, [f"({c_type(x.type)})~", x], level=ATOM)

    def select(self, condition: ir.Value, yes: ir.Value, no: ir.Value, name: str = "", flags: Any = ()) -> ir.Value:
        """One of two values."""
        if yes.type is BIT:
            return self.expression(BIT, ["(", condition, " ? ", self.fix(yes), " : ", self.fix(no), ")"], level=ATOM)
        cast = f"({c_type(yes.type)})" if getattr(yes.type, "width", 64) < 32 else ""
        pieces: list[Piece] = [f"{cast}(", condition, " ? ", self.fix(yes), " : ", self.fix(no), ")"]
        return self.expression(yes.type, pieces, level=ATOM)

    def icmp_signed(self, sign: str, x: ir.Value, y: ir.Value, name: str = "") -> ir.Value:
        """A comparison of signed integers."""
        if sign in ("==", "!=") or x.type is BIT or x is y:
            return self.icmp_unsigned(sign, x, y)
        return self.expression(BIT, ["(", *signed(x), f" {sign} ", *signed(y), ")"], level=ATOM)

    def icmp_unsigned(self, sign: str, x: ir.Value, y: ir.Value, name: str = "") -> ir.Value:
        """A comparison of unsigned integers."""
        if x is y:  # compilers warn of it
            return self.expression(BIT, ["true" if sign in ("==", "<=", ">=") else "false"], level=ATOM)
        return self.expression(BIT, ["(", x, f" {sign} ", y, ")"], level=ATOM)

    def fcmp_ordered(self, sign: str, x: ir.Value, y: ir.Value, name: str = "", flags: Any = ()) -> ir.Value:
        """A comparison that is false where a number is NaN."""
        if sign == "!=":
            return self.expression(BIT, ["((", x, " < ", y, ") | (", x, " > ", y, "))"], level=ATOM)
        if sign == "ord":
            return self.expression(BIT, ["((", x, " == ", x, ") & (", y, " == ", y, "))"], level=ATOM)
        return self.expression(BIT, ["(", x, f" {sign} ", y, ")"], level=ATOM)

    def fcmp_unordered(self, sign: str, x: ir.Value, y: ir.Value, name: str = "", flags: Any = ()) -> ir.Value:
        """A comparison that is true where a number is NaN."""
        if sign == "!=":
            return self.expression(BIT, ["(", x, " != ", y, ")"], level=ATOM)
        if sign == "uno":
            if x is y:
                return self.expression(BIT, ["(", self.fix(x), " != ", x, ")"], level=ATOM)
            return self.expression(BIT, ["((", x, " != ", x, ") | (", y, " != ", y, "))"], level=ATOM)
        opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign]
        return self.expression(BIT, ["(!(", x, f" {opposite} ", y, "))"], level=ATOM)

    def call_text(self, name: str, kind: Any, *args: ir.Value) -> ir.Value:
        """The value of a function of C."""
        pieces: list[Piece] = [f"{name}("]
        for place, arg in enumerate(args):
            pieces += [", ", arg] if place else [arg]
        return self.expression(kind, [*pieces, ")"], level=ATOM)


def _count_uses(line: Expression | Statement) -> None:
    """Count a line among the uses of the values in it. A value needs a name if the line is in another block, or its
    memory may change before the line.
    """
    for piece in line.pieces:
        if isinstance(piece, Expression):
            piece.uses += 1
            if piece.block != line.block or piece.epoch != line.epoch:
                piece.is_fixed = True


def _needed(pieces: Sequence[Piece], place: int) -> int:
    """The level that an operand must have to stand without parentheses."""
    before = pieces[place - 1] if place else ""
    after = pieces[place + 1] if place + 1 < len(pieces) else ""
    if not isinstance(before, str) or not isinstance(after, str):
        return ATOM
    if len(pieces) == 3 and before == "" and after in SIGNS:
        return SIGNS[after][0]
    if len(pieces) == 3 and after == "" and before in SIGNS:
        return SIGNS[before][1]
    is_whole = before.endswith(("= ", "return ", "(", ", ")) and after.startswith((";", ")", ","))
    return LOOSE if is_whole else ATOM


def _without_empty_blocks(lines: list[str]) -> list[str]:
    """The lines without blocks that have nothing inside."""
    out: list[str] = []
    for line in lines:
        if line.strip() == "}" and out and out[-1].strip().endswith("{") and not out[-1].strip().startswith("}"):
            out.pop()
            continue
        out.append(line)
    return out


def _with_loops_kept(lines: list[str]) -> list[str]:
    """The lines with a request before each loop not to unroll it, unless there is another request."""
    out: list[str] = []
    for line in lines:
        if line.lstrip().startswith("for (") and not (out and out[-1].lstrip().startswith("#pragma")):
            out.append("#pragma unroll 1")
        out.append(line)
    return out
