"""A digest of a block of memory as LLVM IR: 2048 bits that show, in one reading, whether a bit of it has changed.

32 words of 64 bits take in a word of the memory each, in turn: h ← m ^ (m >> SHIFT) with m = (h ^ word) · ODD. This is
a bijection of h and one of the word, so a single change always shows. Of several changes, the first spreads over the
word before the next. The highest bits spread to few: a changed highest bit changes that one and the one `SHIFT` below.
So `SHIFT` must not be a distance between parts of numbers that change together. A shift of 32 is that of the signs of
neighbours in single precision: a third change of sign would undo the first two. It reads at the speed of the memory,
twice as fast as a comparison of two copies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from func.backends.llvm import machine
from func.backends.llvm.threads import background

KEY = "digest of memory"
NAME = "func_digest"
STRIPE = 256
"""Bytes taken in at once; also the length of a digest."""
_VECTORS, _LANES, _WORD = 8, 4, 8
SHIFT = 29
MULTIPLIER, START = 0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15
"""Odd numbers without a pattern; multiples of the second one are the first values of the words."""

Digest = Callable[[int, int, int], None]
"""A function of the address of some stripes, of their number, and of the address for the digest."""


def provided() -> Digest:
    """The function, compiled or taken from the cache on disk."""
    compiled = machine.compile_ir(text, KEY)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(compiled.address(NAME))

    def digest(data: int, stripes: int, out: int, code: object = compiled) -> None:  # the code lives as long as this
        function(data, stripes, out)

    return digest


def is_on_disk() -> bool:
    """Whether `provided` needs no compiler."""
    return machine.existing_code(text, KEY) is not None


def provide_soon(provide: Callable[[], object]) -> None:
    """Run `provide` in the background."""
    background.request(KEY, provide)


def text() -> str:
    """The module that defines `void func_digest(ptr data, i64 stripes, ptr out)`, for one stripe or more.

    >>> print(text().splitlines()[0])
    define void @func_digest(ptr %data, i64 %stripes, ptr %out) {
    """
    kind = f"<{_LANES} x i64>"
    places = range(_VECTORS)
    step = _VECTORS * _LANES * _WORD // _VECTORS
    lines = [f"define void @{NAME}(ptr %data, i64 %stripes, ptr %out) {{", "entry:", "  br label %loop", "loop:"]
    lines.append("  %n = phi i64 [ 0, %entry ], [ %next, %loop ]")
    for i in places:
        first = _constant([START * (_LANES * i + lane + 1) for lane in range(_LANES)])
        lines.append(f"  %h{i} = phi {kind} [ {first}, %entry ], [ %out{i}, %loop ]")
    lines += [f"  %place = mul i64 %n, {STRIPE}", "  %stripe = getelementptr i8, ptr %data, i64 %place"]
    for i in places:
        lines += [
            f"  %at{i} = getelementptr i8, ptr %stripe, i64 {step * i}",
            f"  %word{i} = load {kind}, ptr %at{i}, align 1",
            f"  %x{i} = xor {kind} %h{i}, %word{i}",
            f"  %m{i} = mul {kind} %x{i}, {_constant([MULTIPLIER] * _LANES)}",
            f"  %high{i} = lshr {kind} %m{i}, {_constant([SHIFT] * _LANES)}",
            f"  %out{i} = xor {kind} %m{i}, %high{i}",
        ]
    lines += ["  %next = add i64 %n, 1", "  %more = icmp ult i64 %next, %stripes"]
    lines += ["  br i1 %more, label %loop, label %done", "done:"]
    for i in places:
        lines.append(f"  %to{i} = getelementptr i8, ptr %out, i64 {step * i}")
        lines.append(f"  store {kind} %out{i}, ptr %to{i}, align 1")
    return "\n".join([*lines, "  ret void", "}", ""])


def _constant(words: list[int]) -> str:
    """A vector of words, as signed numbers."""
    signed = [(word + (1 << 63)) % (1 << 64) - (1 << 63) for word in words]
    return "<" + ", ".join([f"i64 {word}" for word in signed]) + ">"
