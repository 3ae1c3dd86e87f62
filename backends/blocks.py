"""NumPy's functions on large arrays, block by block, by several threads.

NumPy computes in one thread, and lets other threads of Python run meanwhile. So the calling thread and helpers call a
function of a large array for blocks of it. Each call writes its part of one result. Every element runs through the same
code as in one call. Blocks end where NumPy's own inner loops may end, rows to sum stay whole, and a sum of all elements
splits where NumPy's does. So results are NumPy's bits, for any number of threads. NumPy alone computes other layouts
and types, and everything with one thread (`func.config.num_threads`) or inside `in_one_thread`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, copy_context
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from func.backends.quiet import quietly

if TYPE_CHECKING:
    from queue import SimpleQueue

LARGE = 1 << 16
"""Elements of the smallest array that may be worth it."""
LEAST = 3e-4
"""Estimated seconds of the shortest call that is cut: to wake a thread takes some 20 microseconds."""
LEAST_BLOCK = 6e-5
"""Estimated seconds of a block."""
PER_BYTE, PER_OPERATION = 1.2e-10, 2e-11
"""Seconds that NumPy takes, about: for a byte of the largest operand, and a byte and one of an element's operations."""
EXACT = 4
"""Costs of functions that processors have, such as quotients, whose bits do not depend on NumPy's way to an operand."""
UNIT = 8192
"""The unit of block lengths in elements: that of NumPy's buffers, and so of its vectors."""
BLOCKS_OF_THREAD = 8
"""Blocks for each thread: one that starts late, or is slow, leaves its share to the others."""

_BY_SEVERAL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""The counters below are atomic where Python has its lock."""
_ALONE: ContextVar[bool] = ContextVar("func_in_one_thread", default=False)
_KINDS = frozenset("fcbiu")
_KINDS_OF_ERRORS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
"""NumPy's names for the errors of `np.errstate` in its messages."""


@contextlib.contextmanager
def in_one_thread() -> Iterator[None]:
    """Inside, every call of NumPy runs in one thread: this one is one of many that share the processor."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def elementwise(ufunc: Any, args: Sequence[Any], cost: float = 1) -> Any:
    """`ufunc(*args)` for plain arrays and numbers, one of them large; an element takes `cost` operations."""
    arrays = [x for x in args if type(x) is ndarray]
    largest = arrays[0] if len(arrays) == 1 else max(arrays, key=_size_of)
    shape = largest.shape
    repeats = cost <= EXACT and any([x.shape != shape and _is_repeated(x, largest) for x in arrays])
    helpers = _helpers_for(arrays, largest, cost)
    operands = _operands(args, shape) if helpers else None
    if operands is None:
        return copy_context().run(_unbuffered, ufunc, args) if repeats else ufunc(*args)
    try:
        dtype = quietly(ufunc, *[x[:0] if is_cut else x for x, is_cut in operands]).dtype
    except Exception:  # the call below raises it
        return ufunc(*args)
    if dtype.kind not in _KINDS:
        return ufunc(*args)
    out = np.empty(shape, dtype)
    target = out.reshape(-1) if all([x.ndim == 1 for x, is_cut in operands if is_cut]) else out
    unit = max(1, UNIT * len(target) // out.size)
    cuts = _cuts(len(target), unit, _seconds(out.size, largest.itemsize, cost), helpers)

    def block(number: int) -> None:
        part = slice(cuts[number], cuts[number + 1])
        ufunc(*[x[part] if is_cut else x for x, is_cut in operands], out=target[part])

    return out if _run(block, len(cuts) - 1, helpers, repeats) else ufunc(*args)


def _is_repeated(x: Any, largest: Any) -> bool:
    """Whether an operand has one element for each row of the largest."""
    return bool(x.ndim == largest.ndim and x.shape[-1] == 1 < largest.shape[-1] and x.dtype is largest.dtype)


def _unbuffered(ufunc: Any, args: Sequence[Any]) -> Any:
    """`ufunc(*args)` without the buffers into which NumPy copies an operand with one element for each row.

    Its copies take a fourth of an addition. Call it in a separate context.
    """
    np.setbufsize(16)
    return ufunc(*args)


def reduce(ufunc: Any, x: Any, axes: tuple[int, ...], dtype: Any = None) -> Any:
    """`ufunc.reduce(x, axes, dtype)` for a plain array; `axes` is sorted."""
    helpers = _helpers_for((x,), x, 1)
    if not helpers or not axes or not x.flags.c_contiguous or x.dtype.kind not in "fc" or x.dtype.itemsize < 4:
        return ufunc.reduce(x, axes, dtype)
    rank, number = x.ndim, len(axes)
    if axes == tuple(range(number)):
        if number == rank:
            return _sum_of_all(ufunc, x, dtype, helpers) if ufunc is np.add else ufunc.reduce(x, axes, dtype)
        out_shape, unit = x.shape[number:], 256
        width = int(np.prod(out_shape, dtype=int))
        view = x.reshape(*x.shape[:number], width)
        inner: Any = (Ellipsis,)
        reduced = axes
    elif axes == tuple(range(rank - number, rank)):
        out_shape, unit = x.shape[: rank - number], 1
        width = int(np.prod(out_shape, dtype=int))
        view = x.reshape(width, *x.shape[rank - number :])
        inner = ()
        reduced = tuple(range(1, number + 1))
    else:
        return ufunc.reduce(x, axes, dtype)
    try:
        kind = quietly(ufunc.reduce, view[(*inner, slice(0))], reduced, dtype).dtype
    except Exception:
        return ufunc.reduce(x, axes, dtype)
    cuts = _cuts(width, unit, _seconds(x.size, x.itemsize, 1), helpers)
    out = np.empty(width, kind)

    def block(number: int) -> None:
        part = slice(cuts[number], cuts[number + 1])
        ufunc.reduce(view[(*inner, part)], reduced, dtype, out=out[part])

    return out.reshape(out_shape) if _run(block, len(cuts) - 1, helpers) else ufunc.reduce(x, axes, dtype)


def copy(x: Any) -> Any:
    """`x.copy("K")` of a plain array."""
    helpers = _helpers_for((x,), x, 0)
    if not helpers or not x.flags.forc:
        return x.copy("K")
    out = np.empty_like(x)
    source, target = x.ravel("K"), out.ravel("K")
    cuts = _cuts(source.size, UNIT, _seconds(x.size, x.itemsize, 0), helpers)

    def block(number: int) -> None:
        part = slice(cuts[number], cuts[number + 1])
        target[part] = source[part]

    return out if _run(block, len(cuts) - 1, helpers) else x.copy("K")


def same_bits(x: Any, y: Any) -> bool:
    """Whether two arrays of one contiguous layout agree bit by bit: NaN is NaN, and zeros have signs."""
    if differ_early(x, y):
        return False
    compare = _comparison()
    a, b = x.__array_interface__["data"][0], y.__array_interface__["data"][0]
    helpers = _helpers_for((x,), x, 0)
    if not helpers or not x.nbytes:
        return not compare(a, b, x.nbytes)
    cuts = _cuts(x.nbytes, UNIT, _seconds(x.size, x.itemsize, 0), helpers)
    differs: list[bool] = []

    def block(number: int) -> None:
        start = cuts[number]
        if not differs and compare(a + start, b + start, cuts[number + 1] - start):
            differs.append(True)

    return not differs if _run(block, len(cuts) - 1, helpers) else not compare(a, b, x.nbytes)


def by_several(x: Any, block: Callable[[int], None], count: int) -> bool:
    """Call a function for each of `count` blocks of a large array, by several threads; False if one is as good."""
    helpers = _helpers_for((x,), x, 0)
    return bool(helpers) and _run(block, count, helpers)


def differ_early(x: Any, y: Any) -> bool:
    """Whether the first bytes of two arrays of one contiguous layout differ, as they usually do after a write."""
    a, b = x.__array_interface__["data"][0], y.__array_interface__["data"][0]
    return bool(_comparison()(a, b, min(x.nbytes, _FIRST)))


_FIRST = 1024
"""Bytes that are compared before all others."""


@functools.lru_cache(None)
def _comparison() -> Callable[[int, int, int], int]:
    """C's memcmp, which takes two addresses and a number of bytes, and lets other threads run meanwhile."""
    import ctypes  # start-up time

    compare: Any = ctypes.CDLL("msvcrt" if os.name == "nt" else None).memcmp
    compare.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    compare.restype = ctypes.c_int
    return compare  # type: ignore[no-any-return]


def _helpers_for(arrays: Sequence[Any], largest: Any, cost: float) -> int:
    """The number of other threads in a call."""
    from func.backends import thread_count  # start-up time: few arrays are large

    helpers = thread_count.num_threads() - 1
    if helpers < 1 or _seconds(largest.size, largest.itemsize, cost) < LEAST or not _BY_SEVERAL or _ALONE.get():
        return 0
    for x in arrays:
        if x.dtype.kind not in _KINDS or not x.dtype.isnative or not x.flags.aligned:
            return 0
    return 0 if _flushes_to_zero() else helpers


def _seconds(size: int, itemsize: int, cost: float) -> float:
    """NumPy's approximate time for a call."""
    return size * itemsize * (PER_BYTE + PER_OPERATION * cost)


def _size_of(x: Any) -> int:
    return int(x.size)


def _flushes_to_zero(smallest_normal: float = sys.float_info.min) -> bool:
    """Whether this thread's processor flushes subnormal numbers to zero: others would not."""
    return smallest_normal * 0.5 == 0.0


def _operands(args: Sequence[Any], shape: tuple[int, ...]) -> list[tuple[Any, bool]] | None:
    """The operands, and which of them are split along their first axis; None if NumPy shall compute. Operands of one
    shape count as vectors.
    """
    arrays = [x for x in args if type(x) is ndarray and x.ndim]
    is_flat = True
    for x in arrays:
        if x.shape != shape:
            is_flat = False
            extra = len(shape) - x.ndim
            if extra < 0 or not all([n in (1, m) for n, m in zip(x.shape, shape[extra:], strict=True)]):
                return None
        elif not x.flags.c_contiguous:
            return None
    if is_flat:
        return [(x.reshape(-1), True) if type(x) is ndarray and x.ndim else (x, False) for x in args]
    if shape[0] == 1:
        return None
    return [(x, type(x) is ndarray and x.ndim == len(shape) and x.shape[0] > 1) for x in args]


def _cuts(length: int, unit: int, seconds: float, helpers: int) -> list[int]:
    """The starts of an axis's blocks, and its end: at multiples of the unit."""
    blocks = max(1, min((helpers + 1) * BLOCKS_OF_THREAD, int(seconds / LEAST_BLOCK)))
    step = ceil(length / blocks / unit) * unit
    return [*range(0, length, step), length]


def _sum_of_all(ufunc: Any, x: Any, dtype: Any, helpers: int) -> Any:
    """The sum of all elements, with the additions of NumPy's pairwise sum.

    NumPy halves a long vector, at a multiple of 8, until 128 elements are left. Blocks are such parts of it.
    """
    if x.dtype.kind != "f" or not (dtype is None or dtype == x.dtype) or not _halves_as_numpy():
        return ufunc.reduce(x, tuple(range(x.ndim)), dtype)
    flat = x.reshape(-1)
    cuts = [0, flat.size]
    while len(cuts) <= (helpers + 1) * 4:
        cuts = [cut for a, b in itertools.pairwise(cuts) for cut in (a, a + _half(b - a))] + [flat.size]
    sums = np.empty(len(cuts) - 1, x.dtype)

    def block(number: int) -> None:
        ufunc.reduce(flat[cuts[number] : cuts[number + 1]], out=sums[number : number + 1].reshape(()))

    if not _run(block, len(cuts) - 1, helpers):
        return ufunc.reduce(x, tuple(range(x.ndim)), dtype)
    while sums.size > 1:
        sums = quietly(ufunc, sums[::2], sums[1::2])
    return sums[0] if np.isfinite(sums[0]) else ufunc.reduce(x, tuple(range(x.ndim)), dtype)


def _half(length: int) -> int:
    half = length // 2
    return half - half % 8


_checked: list[bool] = []


def _halves_as_numpy() -> bool:
    """Whether this version of NumPy sums in this way, by a sum of numbers of all sizes."""
    if not _checked:
        x = np.exp(np.arange(1003) % 37 - 18.0) * np.cos(np.arange(1003))
        middle = _half(x.size)
        parts = [np.add.reduce(part) for part in (x[:middle], x[middle:])]
        _checked.append(bool(np.add.reduce(x) == parts[0] + parts[1]))
    return _checked[0]


class _Job:
    """One function of the number of a block, for all blocks: threads take the next one in turn."""

    __slots__ = ("_done", "_taken", "all_done", "block", "count", "error", "new_errors")

    def __init__(self, block: Callable[[int], None], count: int) -> None:
        self.block: Any = block
        self.count = count
        self.all_done = allocate_lock()
        self.all_done.acquire()
        self.error: BaseException | None = None
        self.new_errors: dict[int, frozenset[str]] = {}
        """By block, which floating point errors there were."""
        self._taken = itertools.count()
        self._done = itertools.count(1)

    def work(self, watch: bool, unbuffered: bool) -> None:
        """Blocks, until all are taken."""
        kinds: set[str] = set()
        if unbuffered:
            np.setbufsize(16)
        if watch:
            np.errstate(all="call", call=lambda kind, flags: kinds.add(kind)).__enter__()
        block = self.block
        for number in self._taken:
            if number >= self.count:
                break
            try:
                block(number)
            except BaseException as error:
                self.error = error
            if kinds:
                self.new_errors[number] = frozenset(kinds)
                kinds.clear()
            if next(self._done) == self.count:
                self.all_done.release()


class _Helpers:
    """Threads that wait for jobs."""

    def __init__(self) -> None:
        from queue import SimpleQueue  # start-up time: few programs have large arrays

        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._size = 0

    def call(self, functions: Sequence[Callable[[], object]]) -> None:
        """Let a thread call each of the functions, if there is one that is free in time."""
        with contextlib.suppress(RuntimeError):  # no thread can start
            while self._size < len(functions):
                threading.Thread(target=_serve, args=(self._calls,), name=__name__, daemon=True).start()
                self._size += 1
        for function in functions[: self._size]:
            self._calls.put(function)


def _serve(calls: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        calls.get()()


_helpers: _Helpers | None = None


def _call_helpers(functions: Sequence[Callable[[], object]]) -> None:
    global _helpers
    if _helpers is None:
        _helpers = _Helpers()
    _helpers.call(functions)


def _forget_helpers() -> None:
    global _helpers
    _helpers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


def _run(block: Callable[[int], None], count: int, helpers: int, unbuffered: bool = False) -> bool:
    """Call a function for all blocks. False where one raises an error, which the call for all will raise.

    NumPy reports a floating point error once, as in one call: a block that has all kinds of errors reports all of them.
    """
    if count < 2:
        return False
    states = np.geterr()
    told = frozenset([_KINDS_OF_ERRORS[name] for name, state in states.items() if state != "ignore"])
    job = _Job(block, count)
    contexts = [copy_context() for _ in range(min(helpers, count - 1) + 1)]
    try:
        calls: list[Any] = [functools.partial(each.run, job.work, bool(told), unbuffered) for each in contexts[1:]]
        _call_helpers(calls)
        contexts[0].run(job.work, bool(told), unbuffered)
        job.all_done.acquire()
    finally:
        job.block = None  # a late thread keeps no array
    if job.error is not None:
        if isinstance(job.error, Exception):
            return False
        raise job.error
    errors = told & set().union(*job.new_errors.values())
    if not errors:
        return True
    for number, kinds in job.new_errors.items():
        if kinds >= errors:
            block(number)
            return True
    return False
