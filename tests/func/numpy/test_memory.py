"""The law of memory: results of func's functions lie in memory, and share memory, as NumPy's do."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import Tracer
from func.numpy import memory
from tests.support.functions import FUNCTIONS
from tests.support.memory_calls import CALLS

RNG = np.random.default_rng(0)
ARRAYS = [
    RNG.uniform(0.2, 0.9, (3, 3)) + 2 * np.eye(3),
    RNG.uniform(0.2, 0.9, (2, 3, 4)),
    RNG.uniform(0.2, 0.9, (1, 3)),
    RNG.uniform(0.2, 0.9, 4),
    np.array(0.7),
]
MODES = {
    "C": ("jvp", "vjp", "program", "vmap 0", "vmap -1"),
    "F": ("jvp", "vjp", "program", "vmap 0", "vmap -1"),
    "strided": ("vjp", "program", "vmap 0"),
    "reversed": ("jvp", "program"),
}
"""The modes in which the law looks at arrays of each layout."""
EXCEPTIONS = {
    "np.histogram2d": "NumPy's counts are a part of a larger array",
    "np.histogramdd": "NumPy's counts are a part of a larger array",
    "np.broadcast_arrays": "read-only: NumPy warns that it will be",
}
TRACED_EXCEPTIONS = {
    "np.roots": "always complex in a Program",
    "np.nanpercentile": "the order of axes of operands in Fortran order",
}
"""Results that lie differently while a function is traced into a Program."""


def placed(x: Any, layout: str, batch: int | None = None) -> Any:
    """The same numbers in another layout; with `batch`, a batch of arrays of this layout along that axis."""
    lead = () if batch is None else (2,)
    free = tuple([slice(None)] * len(lead))
    if layout == "strided":
        out = np.zeros((*lead, *[2 * n for n in x.shape]))[(*free, *[slice(None, None, 2)] * x.ndim)]
    elif layout == "F":
        out = np.zeros((*lead, *x.shape[::-1])).transpose(
            *range(len(lead)), *range(len(lead) + x.ndim)[: -x.ndim - 1 : -1]
        )
    else:
        out = np.zeros((*lead, *x.shape))
        if layout == "reversed":
            out = out[(*free, *[slice(None, None, -1)] * x.ndim)]
    out[...] = x
    return out if batch is None else np.moveaxis(out, 0, batch)


def described(out: Any, x: Any) -> list[Any]:
    """Of every output: its strides along axes longer than one, whether it shares x's memory, whether it is writable."""
    facts: list[Any] = []
    for part in out if isinstance(out, (tuple, list)) else (out,):
        if not getattr(part, "shape", ()):
            shares = type(part) is Tracer and memory.shares_memory(part, x)
            facts.append(("0-d", bool(shares or (isinstance(part, np.ndarray) and np.shares_memory(part, x)))))
        elif 0 in part.shape:
            facts.append("empty")
        else:
            traced = type(part) is Tracer
            strides = memory.strides_of(part) if traced else part.strides
            shares = memory.shares_memory(part, x) if traced else np.shares_memory(part, x)
            writable = memory.is_writable(part) if traced else part.flags.writeable
            steps = tuple([stride for n, stride in zip(part.shape, strides, strict=True) if n > 1])
            facts.append((steps, bool(shares), not shares or writable))
    return facts


def observed(function: Callable[[Any], Any], x: Any, layout: str, mode: str) -> list[Any] | None:
    """The result of the function in a mode; None if the values decide its shape."""
    seen: list[Any] = []

    def looked(v: Any) -> Any:
        out = function(v)
        seen.append(described(out, v))
        outs = out if isinstance(out, (tuple, list)) else (out,)
        return np.sum(np.real(outs[0])) * 1.0

    if mode == "jvp":
        func.jvp(looked, (x,), (np.ones_like(x),))
    elif mode == "vjp":
        func.vjp(looked, x)
    elif mode == "program":
        try:
            func.make_program(looked)(x)
        except func.errors.StagingError:
            return None
    else:
        axis = int(mode.split()[1])
        try:
            func.vmap(looked, in_dims=axis)(placed(x, layout, axis))
        except func.errors.RaggedLanesError:
            return None
    return seen[0]


def layouts_of(x: Any) -> Iterator[tuple[str, Any]]:
    for layout in MODES if x.ndim > 1 else ("C", "strided") if x.ndim else ("C",):
        yield layout, placed(x, layout)


def check(name: str, function: Callable[[Any], Any], plain: Callable[[Any], Any], arrays: list[Any]) -> None:
    checks = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for array in arrays:
            for layout, x in layouts_of(array):
                try:
                    expected = described(plain(x), x)
                except (ValueError, IndexError, np.exceptions.AxisError, np.linalg.LinAlgError, TypeError):
                    continue  # not for arrays of this rank
                for mode in MODES[layout]:
                    if (mode == "program" and name in TRACED_EXCEPTIONS) or (mode.startswith("vmap") and not x.ndim):
                        continue
                    got = observed(function, x, layout, mode)
                    assert got is None or got == expected, (x.shape, layout, mode)
                    checks += 1
    assert checks


@pytest.mark.parametrize("name", CALLS)
def test_results_lie_in_memory_as_in_numpy(name: str) -> None:
    check(name, CALLS[name], CALLS[name], ARRAYS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - EXCEPTIONS))
def test_functions_of_the_table_lie_in_memory_as_in_numpy(name: str) -> None:
    call = FUNCTIONS[name]
    check(name, call.function, call.plain or call.function, [np.asarray(call.x)])


BROADCASTS: dict[str, Callable[[Any], Any]] = {
    "along a new first axis": lambda x: np.broadcast_to(x, (3, *x.shape)),
    "along a new axis inside": lambda x: np.broadcast_to(x[:, None], (2, 3, 4)),
    "along a new last axis": lambda x: np.broadcast_to(x[..., None], (2, 4, 3)),
    "of a transpose": lambda x: np.broadcast_to(x.T, (3, 4, 2)),
    "with its axes permuted": lambda x: np.broadcast_to(x[:, None], (2, 3, 4)).transpose(2, 0, 1),
    "of a reversed array": lambda x: np.broadcast_to(x[::-1, None], (2, 3, 4)),
}


def strides_along_axes(out: Any) -> list[Any]:
    """The strides of each result, but along axes of one element."""
    found = []
    for part in out if isinstance(out, (tuple, list)) else [out]:
        if getattr(part, "size", 0):
            strides = memory.strides_of(part) if type(part) is Tracer else part.strides
            found.append([stride for stride, length in zip(strides, part.shape, strict=True) if length > 1])
    return found


@pytest.mark.parametrize("name", CALLS)
def test_results_of_broadcasts_lie_in_memory_as_in_numpy(name: str) -> None:
    x = np.arange(8.0).reshape(2, 4) / 3 + 0.1
    for broadcast in BROADCASTS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = strides_along_axes(CALLS[name](broadcast(x)))
            except (ValueError, IndexError, np.exceptions.AxisError, np.linalg.LinAlgError, TypeError):
                continue  # not for arrays of this rank
            seen = []

            def looked(x: Any, broadcast: Any = broadcast, seen: Any = seen) -> Any:
                seen.append(strides_along_axes(CALLS[name](broadcast(x))))
                return x.sum()

            func.jvp(looked, (x,), (x,))
            func.vmap(looked)(np.stack([x, x]))
            with contextlib.suppress(func.errors.StagingError):
                func.make_program(looked)(x)
        assert all([strides == expected for strides in seen]), (seen, expected)


PREPARED: dict[str, Callable[[Any], Any]] = {
    "copied": lambda x: x * 1.0,
    "of a mask of rows": lambda x: (x * 1.0)[np.ones(x.shape[0], bool)],
    "transposed": lambda x: (x * 1.0).T,
    "of a list of columns": lambda x: (x * 1.0)[:, [0, 0]],
}


@pytest.mark.parametrize("name", CALLS)
def test_results_in_each_lane_lie_in_memory_as_in_numpy(name: str) -> None:
    """Batch axes between the others in memory, and axes of length one, whose strides say nothing."""
    for shape in [(2, 3), (3, 1), (2, 1, 3)]:
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 7
        for axis, prepared in itertools.product((0, 1, x.ndim), PREPARED.values()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected = strides_along_axes(CALLS[name](prepared(x)))
                except (ValueError, IndexError, np.exceptions.AxisError, np.linalg.LinAlgError, TypeError):
                    continue  # not for arrays of this rank
                seen = []

                def looked(x: Any, prepared: Any = prepared, seen: Any = seen) -> Any:
                    seen.append(strides_along_axes(CALLS[name](prepared(x))))
                    return x.sum()

                with contextlib.suppress(func.errors.RaggedLanesError):
                    func.vmap(looked, in_dims=axis)(np.stack([x, x], axis=axis))
            assert all([strides == expected for strides in seen]), (shape, axis, seen, expected)
