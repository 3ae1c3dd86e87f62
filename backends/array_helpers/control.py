"""Loops and branches of generated source: plain functions that call the functions of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def run_scan(
    xp: Any, body: Callable[..., Any], args: Sequence[Any], sizes: Sequence[int], reverse: bool, kinds: Sequence[Any]
) -> list[Any]:
    """body(*consts, *carry, *row of xs) → (*carry, *row of ys) for every row; the last carry and the stacked ys.

    sizes: the numbers of consts and carries, and the length; kinds: the shape and dtype of every stacked y.
    """
    consts, count, length = sizes
    fixed, carry, xs = args[:consts], args[consts : consts + count], args[consts + count :]
    ys = [xp.empty(shape, dtype) for shape, dtype in kinds]
    for i in range(length - 1, -1, -1) if reverse else range(length):
        outs = body(*fixed, *carry, *[x[i] for x in xs])
        carry = outs[:count]
        for y, row in zip(ys, outs[count:], strict=True):
            y[i] = row
    return [*carry, *ys]


def run_while(
    test: Callable[..., Any], body: Callable[..., Any], args: Sequence[Any], sizes: Sequence[int]
) -> Sequence[Any]:
    """The carry when test(*its consts, *carry) no longer holds; body(*its consts, *carry) is the next one.

    sizes: the numbers of consts of the test and of the body, which lead the arguments in this order.
    """
    first, second = sizes
    tested, fixed, carry = args[:first], args[first : first + second], args[first + second :]
    while test(*tested, *carry)[0]:
        carry = body(*fixed, *carry)
    return carry


def run_branch(branches: Sequence[Callable[..., Any]], index: Any, args: Sequence[Any]) -> Any:
    """branches[index](*args), with the index clipped to the range of branches."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*args)
