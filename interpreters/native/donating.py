"""Native programs that write some of their outputs into the memory of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.backends.kernels import NativeProgram

Run = Callable[..., tuple[Any, ...]]


class Whole(tuple[Any, ...]):
    """All outputs, in memory of their own."""

    __slots__ = ()


def with_all(run: Run) -> Run:
    """A function whose outputs are all of those of a program, as those of native code are not."""
    return lambda *args: Whole(run(*args))


def completed(run: Run, program: NativeProgram) -> Run:
    """All outputs of a program whose code, `run`, makes only those that are not written into arguments."""
    total = len(program.outputs) + len(program.written)
    written = [program.written.get(place) for place in range(total)]

    def call(*args: Any) -> tuple[Any, ...]:
        outs = run(*args)
        if type(outs) is Whole:
            return outs
        fresh = iter(outs)
        return tuple([next(fresh) if one is None else args[one.input].reshape(one.shape) for one in written])

    return call
