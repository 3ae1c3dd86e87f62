"""Memory limits: their notation, the need of a call by its Program, and chunks that stay below a limit.

func traces a call on abstract arrays. The trace notes when Python drops each value, and so shows the memory of eager
code at each operation. A chunked transform counts one chunk and its whole result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from func import tree
from func.configuration import bytes_in
from func.interpreters.calls.captured_values import restoring_random_numbers
from func.interpreters.core import Array, Aval, Tracer, aval_of, shape_of
from func.interpreters.core.errors import ArgumentError, MemoryLimitError, StagingError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.primitives.structural.shapes import broadcast
from func.interpreters.primitives.structural.slicing import concatenate, getitem
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import Stage
from func.numpy.memory import set_argument_layouts
from func.numpy.sharing import note_traced_arguments
from func.transforms.boundary import name_of, output_leaves, traced_leaf

if TYPE_CHECKING:
    from func.interpreters.program.liveness import Alive, Liveness

MOST_NAMED = 3
"""Arrays that an error names."""


def parse_bytes(limit: Any, transform: str) -> int:
    """A memory limit in bytes: a whole number of them, or a text as "2 GiB"."""
    count = bytes_in(limit) or 0
    if count < 1:
        raise ArgumentError(
            f"func.{transform}: memory_limit must be a positive number of bytes, as an int or as a text with a unit "
            f"(kB, MB, GB, KiB, MiB, GiB), not {limit!r}"
        )
    return count


def shown_bytes(count: int) -> str:
    """Bytes in the unit that suits them."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"


class WatchedStage(Stage):
    """A trace that notes after how many equations Python drops each value."""

    plans_eager_code = True

    def __init__(self, transform: str) -> None:
        super().__init__(transform)
        self.deaths: dict[Var, int] = {}
        self._tracers: dict[Var, Any] = {}

    def wrap(self, var: Var) -> Tracer:
        tracer = super().wrap(var)
        self._tracers[var] = weakref.ref(tracer, lambda _: self.deaths.setdefault(var, len(self.equations) - 1))
        return tracer

    def watched_program(self, inputs: list[Var], outputs: list[Array]) -> Program:
        """All recorded equations, also those that no output needs: eager code computes them, too."""
        atoms = [self.atom(output) for output in outputs]
        for var, tracer in self._tracers.items():
            if tracer() is not None:
                self.deaths.setdefault(var, len(self.equations))
        return Program(inputs, self.equations, atoms, self.constants)

    def close(self) -> None:
        self._tracers = {}
        super().close()


class Planning:
    """A trace that plans memory: chunked transforms run one chunk of it, and note the size they chose."""

    def __init__(self, chunk: int | None = None) -> None:
        self.chunk = chunk
        self.notes: list[str] = []


PLANNING: ContextVar[Planning | None] = ContextVar("func_memory_planning", default=None)


@contextmanager
def planning(plan: Planning | None) -> Iterator[Planning | None]:
    """Inside, transforms trace for this plan."""
    token = PLANNING.set(plan)
    try:
        yield plan
    finally:
        PLANNING.reset(token)


def call_liveness(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], transform: str
) -> Liveness:
    """The memory of one call at each of its operations, from a trace on abstract arrays.

    Traces arrays and floating-point numbers; passes Python ints, strings and other objects on.
    """
    leaves, spec = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if _is_traced(leaf)]
    stage = WatchedStage(transform)
    with restoring_random_numbers(function), TransformScope(stage, staging=True), running(stage):
        operands = [leaves[i] for i in places]
        avals = [x if isinstance(x, Aval) else aval_of(traced_leaf(x, "an argument", transform)) for x in operands]
        inputs = [Tracer(stage, None, Var(aval)) for aval in avals]
        variables = [tracer._attached for tracer in inputs]
        set_argument_layouts(inputs, operands)
        note_traced_arguments(stage, function, inputs, operands)
        for i, tracer in zip(places, inputs, strict=True):
            leaves[i] = tracer
        full_args, full_kwargs = tree.unflatten(spec, leaves)
        outs = output_leaves(function(*full_args, **full_kwargs), transform)[0]
        from func.interpreters.compile.call_memory import call_in_eager_code  # here, for the start-up time
        from func.interpreters.program.liveness import liveness

        return liveness(stage.watched_program(variables, outs), stage.deaths, call_in_eager_code)


def _is_traced(leaf: Any) -> bool:
    if isinstance(leaf, (bool, int, str, bytes)) or leaf is None or callable(leaf):
        return False
    return isinstance(leaf, (Aval, float, complex, np.ndarray, np.generic)) or hasattr(leaf, "dtype")


def whole_results(outs: list[Array], size: int) -> list[Array]:
    """In a plan, the memory of the results of all chunks, from those of one: arrays with `size` rows."""
    return [
        concatenate(broadcast(_first_row(out), shape=(size, *shape_of(out)[1:])), axis=0) if shape_of(out) else out
        for out in outs
    ]


def _first_row(out: Array) -> Array:
    shape = shape_of(out)
    return getitem(out, index=tuple([(0, 1, 1), *[(0, n, 1) for n in shape[1:]]]))


class ChunkPlan:
    """Chooses the chunk sizes of one transform of one function, memoized by the kind of arguments."""

    MOST_CHOSEN = 64

    def __init__(self, limit: Any, transform: str, function: Callable[..., Any]) -> None:
        self.limit = parse_bytes(limit, transform)
        self.transform = transform
        self.function = function
        self._chosen: dict[Any, tuple[int, int]] = {}

    def chunk(
        self,
        size_of: Callable[[], int],
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        unit: str,
    ) -> int:
        """The most `size_of()` elements for which `call(*args, **kwargs)` stays below the limit."""
        leaves, spec = tree.flatten((args, kwargs))
        key = (spec, *[_key(leaf) for leaf in leaves])
        if key not in self._chosen:
            with self._worded(), planning(None):
                size = size_of()
                choice = size, self._choose(size, call, args, kwargs, unit)
            if len(self._chosen) >= self.MOST_CHOSEN:
                self._chosen.clear()
            self._chosen[key] = choice
        size, chosen = self._chosen[key]
        plan = PLANNING.get()
        if plan is not None:
            plan.notes.append(
                f"func.{self.transform} of {name_of(self.function)}: {chosen} of {size} {unit} at a time "
                f"(memory_limit {shown_bytes(self.limit)})"
            )
        return chosen

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """A scope around a trace: its errors name the purpose of the trace."""
        try:
            yield
        except StagingError as error:
            raise StagingError(
                f"func.{self.transform}: memory_limit needs the Program of {name_of(self.function)}, which cannot be "
                f"traced; give chunk_size instead\n{error}"
            ) from error

    def _choose(
        self, size: int, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], unit: str
    ) -> int:
        def need(count: int) -> Liveness:
            with planning(Planning(count)):
                return call_liveness(call, args, kwargs, self.transform)

        if size <= 1 or need(size).peak <= self.limit:
            smallest = need(size) if size <= 1 else None
            if smallest is None or smallest.peak <= self.limit:
                return max(size, 1)
            raise limit_error(self.transform, self.function, self.limit, smallest, "one call")
        single = need(1)
        if single.peak > self.limit:
            raise limit_error(self.transform, self.function, self.limit, single, f"a chunk of one of {size} {unit}")
        fits, exceeds = 1, size  # the need of `fits` is below the limit, that of `exceeds` above
        guess = (
            min(max(2, (self.limit - single.peak) // max(need(2).peak - single.peak, 1)), size - 1) if size > 2 else 1
        )
        for _ in range(6):
            if exceeds - fits <= max(1, fits // 16):
                break
            if not fits < guess < exceeds:
                guess = (fits + exceeds) // 2
            if need(guess).peak <= self.limit:
                fits, guess = guess, min(guess + max(guess // 8, 1), exceeds - 1)
            else:
                exceeds, guess = guess, (fits + guess) // 2
        return fits


def limit_error(
    transform: str, function: Callable[..., Any], limit: int, liveness: Liveness, what: str
) -> MemoryLimitError:
    """The error for an unreachable limit: the excess, and the values that need the memory."""
    return MemoryLimitError(
        f"func.{transform}: memory_limit={shown_bytes(limit)} cannot be met: {what} of {name_of(function)} needs "
        f"{shown_bytes(liveness.peak)}, {shown_bytes(liveness.peak - limit)} more; at the peak there are\n"
        + "\n".join([f"  {described(entry)}" for entry in liveness.alive[:MOST_NAMED]])
        + "\nfunc.memory shows the timeline of a call without the limit"
    )


def described(entry: Alive) -> str:
    """A live array, in one line."""
    what = f"{entry.kind} {entry.row}".strip()
    where = f", {entry.line}" if entry.line is not None else ""
    return f"{shown_bytes(entry.bytes)}  {entry.name}: {entry.aval or 'bytes'}, {what}{where}"


def _key(leaf: Any) -> Any:
    """The part of a leaf in the key of an argument kind."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), leaf.dtype
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), None if isinstance(leaf, (float, complex)) else leaf
