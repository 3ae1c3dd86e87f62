"""Recursive checkpointing of scans: the backward pass repeats blocks of steps, in as many levels as needed.

A scan of T steps with a carry of c bytes and residuals of r bytes a step keeps T r. In blocks of b steps it keeps c T/b
for the carries before the blocks, and r b for the block of the present pullback. Blocks of blocks keep less. With k
equal levels each keeps S = (T c^(k-1) r)^(1/k) bytes, together k S, and the steps run k - 1 times more.

Source: A. Griewank and A. Walther (2000), ACM TOMS 26(1), with levels of equal size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from func.interpreters import drivers
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.control.compiled_bodies import split
from func.interpreters.control.scan_derivatives import ScanLoop, stacked
from func.interpreters.core import PRIMITIVES, Array, Aval, Shaped, shape_of
from func.interpreters.primitives.structural.shapes import reshape
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.storage import bytes_of
from func.interpreters.stage import DerivedStage

MOST_LEVELS = 8
CACHED, LEAST_STEPS = 1 << 19, 16
"""Bytes that stay in the cache from a step to its pullback, and the least steps of a block."""
WORTH = 0.9
"""One more level must keep at most this share of the bytes of fewer levels."""
UNSTACKED = 4
"""Carries and cotangents of a level besides the stacked ones."""


def block_lengths(length: int, carries: Sequence[Shaped], residuals: Sequence[Shaped], most: int) -> tuple[int, ...]:
    """The lengths of the blocks, the outermost first, of a scan that may keep this many bytes.

    Empty if it keeps no more anyway, or if blocks do not help.
    """
    carry = max(sum(map(bytes_of, carries)), 1)
    kept = sum(map(bytes_of, residuals))
    if kept * length <= most:
        return ()
    least, chosen = kept * length, 1
    for levels in range(2, MOST_LEVELS + 1):
        total = levels * (_bytes_of_level(levels, length, carry, kept) + UNSTACKED * carry)
        if total < WORTH * least:
            least, chosen = int(total), levels
        if total <= most:
            break
    each = _bytes_of_level(chosen, length, carry, kept)
    lengths = [max(1, round(each / kept))][: chosen - 1]
    while len(lengths) < chosen - 1:  # multiples: behind a block that does not fit, another carry would stay in memory
        lengths.append(lengths[-1] * max(1, round(each / carry)))
    if chosen == 2:  # shorter blocks, if there is room for more of them
        short = max(LEAST_STEPS, CACHED // kept)
        if short < lengths[0] and carry * length // short + kept * short <= min(most, least * 2):
            lengths[0] = short
    return tuple([block for block in reversed(lengths) if block < length and (block > 1 or carry < kept)])


def intervals(length: int) -> list[int]:
    """The lengths of blocks to consider: of those that make equally many blocks, the shortest."""
    return sorted({-(-length // count) for count in range(1, length + 1)})[:-1]


def _bytes_of_level(levels: int, length: int, carry: int, kept: int) -> float:
    return float(math.exp((math.log(length) + (levels - 1) * math.log(carry) + math.log(kept)) / levels))


def in_blocks(body: CompiledCall, loop: ScanLoop, blocks: Sequence[int]) -> CompiledCall:
    """A scan as a compiled call of a scan of blocks; the backward pass repeats each block."""

    def program_of(compiled: CompiledCall) -> Any:
        def flat(*operands: Array) -> list[Array]:
            return run_in_blocks(compiled, loop, operands, blocks)

        unstacked, rows = split(compiled.in_avals, loop.consts + loop.carries)
        avals = [*unstacked, *[stacked(aval, loop.length) for aval in rows]]
        return drivers.stage_flat(flat, avals, DerivedStage("compiled"))

    return body.transformed(program_of)


def run_in_blocks(body: CompiledCall, loop: ScanLoop, operands: Sequence[Array], blocks: Sequence[int]) -> list[Array]:
    """The outputs of a scan in blocks of these lengths, the outermost first."""
    return _run(body, loop, operands, loop.length, blocks, False)


def _run(
    body: CompiledCall, loop: ScanLoop, operands: Sequence[Array], length: int, blocks: Sequence[int], again: bool
) -> list[Array]:
    """The outputs of `length` steps."""
    blocks = [block for block in blocks if block < length]
    scan_call = PRIMITIVES["scan_call"]
    if not blocks:
        return list(scan_call(*operands, body=body, loop=loop._replace(length=length, recompute=again)))
    block, *inner = blocks
    consts, carry, xs = split(operands, loop.consts, loop.carries)
    count, rest = divmod(length, block)
    first = rest if loop.reverse else 0
    whole = [reshape(_part(x, first, first + count * block), shape=(count, block, *shape_of(x)[1:])) for x in xs]
    steps = body.memoized(("scan block", loop, block, tuple(inner)), lambda: _block(body, loop, block, inner))
    outer = loop._replace(length=count, recompute=again)
    outs = scan_call(*consts, *carry, *whole, body=steps, loop=outer)
    carry, ys = split(outs, loop.carries)
    ys = [reshape(y, shape=(count * block, *shape_of(y)[2:])) for y in ys]
    if rest:
        left = [_part(x, 0, rest) if loop.reverse else _part(x, count * block, length) for x in xs]
        outs = _run(body, loop, [*consts, *carry, *left], rest, inner, True)
        carry, more = split(outs, loop.carries)
        pairs = zip(more, ys, strict=True) if loop.reverse else zip(ys, more, strict=True)
        ys = [concatenate(*pair, axis=0) for pair in pairs]
    return [*carry, *ys]


def _block(body: CompiledCall, loop: ScanLoop, block: int, inner: Sequence[int]) -> CompiledCall:
    """The body of a scan of blocks."""

    def program_of(compiled: CompiledCall) -> Any:
        def flat(*operands: Array) -> list[Array]:
            return _run(compiled, loop, operands, block, inner, True)

        unstacked, rows = split(compiled.in_avals, loop.consts + loop.carries)
        avals: list[Aval] = [*unstacked, *[stacked(aval, block) for aval in rows]]
        return drivers.stage_flat(flat, avals, DerivedStage("compiled"))

    return body.transformed(program_of)


def _part(x: Array, start: int, stop: int) -> Array:
    """Some rows of an array."""
    return getitem(x, index=((start, stop, 1), *[(0, n, 1) for n in shape_of(x)[1:]]))
