"""Memory limits: how they are written, what a call needs by its Program, and the chunks that keep it below a limit.

A call is traced on abstract arrays. The trace notes when Python lets go of each value, so it says what eager code has
in memory at each operation. A transform that works in chunks is planned with one chunk beside its whole result.
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
from func.numpy.memory import place_like_arguments
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
    """A stage that notes after how many equations Python lets go of each value."""

    plans_eager_code = True

    def __init__(self, transform: str) -> None:
        super().__init__(transform)
        self.deaths: dict[Var, int] = {}
        self._boxes: dict[Var, Any] = {}

    def wrap(self, var: Var) -> Tracer:
        box = super().wrap(var)
        self._boxes[var] = weakref.ref(box, lambda _: self.deaths.setdefault(var, len(self.equations) - 1))
        return box

    def watched_program(self, inputs: list[Var], outputs: list[Array]) -> Program:
        """All recorded equations, also those that no output needs: eager code computes them, too."""
        atoms = [self.atom(output) for output in outputs]
        for var, box in self._boxes.items():
            if box() is not None:
                self.deaths.setdefault(var, len(self.equations))
        return Program(inputs, self.equations, atoms, self.constants)

    def close(self) -> None:
        self._boxes = {}
        super().close()


class Planning:
    """A trace that plans memory: chunked transforms run one chunk of it, and note what they have chosen."""

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
    """What one call of a function has in memory at each of its operations, from a trace on abstract arrays.

    Arrays and floating-point numbers are traced; whole numbers of Python, texts and other objects are passed on.
    """
    leaves, spec = tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if _is_traced(leaf)]
    stage = WatchedStage(transform)
    with restoring_random_numbers(function), TransformScope(stage, staging=True), running(stage):
        given = [leaves[i] for i in places]
        avals = [x if isinstance(x, Aval) else aval_of(traced_leaf(x, "an argument", transform)) for x in given]
        inputs = [Tracer(stage, None, Var(aval)) for aval in avals]
        variables = [box._attached for box in inputs]
        place_like_arguments(inputs, given)
        note_traced_arguments(stage, function, inputs, given)
        for i, box in zip(places, inputs, strict=True):
            leaves[i] = box
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
    """In a plan, the memory of the results of all chunks, given those of one: arrays with `size` rows."""
    return [
        concatenate(broadcast(_first_row(out), shape=(size, *shape_of(out)[1:])), axis=0) if shape_of(out) else out
        for out in outs
    ]


def _first_row(out: Array) -> Array:
    shape = shape_of(out)
    return getitem(out, index=tuple([(0, 1, 1), *[(0, n, 1) for n in shape[1:]]]))


class ChunkPlan:
    """Chooses sizes of chunks for one transform of one function, and remembers them for each kind of arguments."""

    MOST_KEPT = 64

    def __init__(self, limit: Any, transform: str, function: Callable[..., Any]) -> None:
        self.given = limit
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
        """The most of `size_of()` elements at once for which `call(*args, **kwargs)` stays below the limit."""
        leaves, spec = tree.flatten((args, kwargs))
        key = (spec, *[_key(leaf) for leaf in leaves])
        if key not in self._chosen:
            with self._worded(), planning(None):
                size = size_of()
                found = size, self._choose(size, call, args, kwargs, unit)
            if len(self._chosen) >= self.MOST_KEPT:
                self._chosen.clear()
            self._chosen[key] = found
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
        """Around a trace: says what the trace is for where it fails."""
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
        one = need(1)
        if one.peak > self.limit:
            raise limit_error(self.transform, self.function, self.limit, one, f"a chunk of one of {size} {unit}")
        least, most = 1, size  # the need of `least` is below the limit, that of `most` above
        guess = min(max(2, (self.limit - one.peak) // max(need(2).peak - one.peak, 1)), size - 1) if size > 2 else 1
        for _ in range(6):
            if most - least <= max(1, least // 16):
                break
            if not least < guess < most:
                guess = (least + most) // 2
            if need(guess).peak <= self.limit:
                least, guess = guess, min(guess + max(guess // 8, 1), most - 1)
            else:
                most, guess = guess, (least + guess) // 2
        return least


def limit_error(
    transform: str, function: Callable[..., Any], limit: int, found: Liveness, what: str
) -> MemoryLimitError:
    """A limit that cannot be met: by how much, and what takes the memory."""
    return MemoryLimitError(
        f"func.{transform}: memory_limit={shown_bytes(limit)} cannot be met: {what} of {name_of(function)} needs "
        f"{shown_bytes(found.peak)}, {shown_bytes(found.peak - limit)} more; at the peak there are\n"
        + "\n".join([f"  {described(entry)}" for entry in found.alive[:MOST_NAMED]])
        + "\nfunc.memory shows the timeline of a call without the limit"
    )


def described(entry: Alive) -> str:
    """An array that is alive, in one line."""
    what = f"{entry.kind} {entry.row}".strip()
    where = f", {entry.line}" if entry.line is not None else ""
    return f"{shown_bytes(entry.bytes)}  {entry.name}: {entry.aval or 'bytes'}, {what}{where}"


def _key(leaf: Any) -> Any:
    """What a leaf contributes to the kind of arguments."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), leaf.dtype
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), None if isinstance(leaf, (float, complex)) else leaf
