"""Paths of a jitted function: the programs of one kind of arguments, by the answers to questions about values.

Python asks for a value while jit traces (`if x > 0`): a *question*. The values of the present call answer it, and the
trace continues with this answer. The program is right only for calls with the same answers. So each question becomes
a separate program, a *guard*, that later calls run to choose among the *paths*:

    call -> guard 1 -> answer -> guard 2 -> answer -> path
                    -> other answer -> path of other operations

The answers come from outer levels: under `grad` from the numbers of this call, under `vmap` from a value that all batch
elements share. If they differ, vmap splits its batch. Under an outer `jit` they are questions of the outer trace.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from func.backends import HOST_TYPES
from func.backends.quiet import quietly
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.core import Array, Tracer, bind, concrete, known_value
from func.interpreters.core.errors import StagingError
from func.interpreters.drivers import stage_flat
from func.interpreters.host.source import Line, user_line
from func.interpreters.primitives.elementwise.builder import add
from func.interpreters.primitives.elementwise.table import equal, logical_and, logical_or
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.primitives.structural.reductions import reduce_all
from func.interpreters.primitives.structural.shapes import broadcast, convert, reshape, where
from func.interpreters.primitives.structural.slicing import getitem
from func.interpreters.program.cost import program_cost
from func.interpreters.program.equality import same_program
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.rank_axis import is_rank_number
from func.interpreters.stage import DerivedStage, Stage

if TYPE_CHECKING:
    from func.compilation.cached_call import CachedCall

CHANGES = 3
"""The number of changes of the path after which cheap paths merge."""
INTERPRETED = 8
"""The calls for which a guard runs equation by equation: a compilation takes as long as hundreds of calls."""
CHEAP = 4000
"""The number of operations of a merged program that take less time than the choice of a path."""


class Question(NamedTuple):
    """A value that Python asked for, as a program of the arguments, and the place of the question."""

    program: Program
    place: Line | None

    @property
    def line(self) -> str:
        """The place as a line of a message."""
        return "" if self.place is None else f"\n  at {self.place}"


class Answered(NamedTuple):
    """A question and the answer that the trace went on with."""

    question: Question
    answer: np.ndarray[Any, Any]

    def text(self) -> str:
        """The guard in a line."""
        return f"guard: {self.value}{self.question.line}"

    @property
    def value(self) -> bool | int:
        """The answer as Python has it."""
        value: bool | int = self.answer.item()
        return value

    def words(self) -> str:
        """The guard as exported code names it, without folders."""
        place = self.question.place
        if place is None:
            return f"a question is answered {self.value}"
        where = f"{os.path.basename(place.file)}:{place.number} in {place.function}"
        return f"{f'`{place.text}`' if place.text else 'a question'} ({where}) is answered {self.value}"


class Questions:
    """The questions of one trace.

    `known` answers the first ones; the arguments `values` answer the others, unless these are None.
    """

    def __init__(self, values: Sequence[Array] | None, known: Sequence[np.ndarray[Any, Any]] = ()) -> None:
        self.answered: list[Answered] = []
        self._known = known
        self._arguments = None if values is None else [without_derivatives(value) for value in values]
        self._values: dict[Var, Any] = {}
        self._answers: dict[Var, np.ndarray[Any, Any]] = {}
        self._tracers: list[Tracer] = []

    def ask(self, stage: Stage, var: Var) -> np.ndarray[Any, Any] | None:
        """The answer, an array like the variable; None if no guard can compare it.

        A guard compares one boolean or integer.
        """
        if var in self._answers:
            return self._answers[var]
        if var.aval.dtype.kind not in "biu" or any([size != 1 for size in var.aval.shape]):
            return None
        program = needed_program(stage, var)
        of_process = [value for value in program.constants.values() if type(value) is Tracer and is_rank_number(value)]
        if program.has_effects or of_process:  # other processes would take other paths
            return None
        place = len(self.answered)
        if place < len(self._known):
            answer = self._known[place]
        elif self._arguments is None:
            return None
        else:
            answer = on_host(concrete(quietly(self._value, program, var)))
        self.answered.append(Answered(Question(program, user_line()), answer))
        self._answers[var] = answer
        self._tracers.append(stage.wrap(var))
        return answer

    def ask_of_all(self, stage: Stage, var: Var, axes: int) -> np.ndarray[Any, Any] | None:
        """The answer that all elements of leading batch axes share; None if they differ."""
        shape = var.aval.shape
        if 0 in shape or var.aval.dtype.kind not in "biu":
            return None
        batch = stage.wrap(var)
        first: Any = getitem(batch, index=(0,) * axes)
        is_shared: Any = reduce_all(equal(batch, broadcast(first, shape=shape)), axes=tuple(range(len(shape))))
        return self.ask(stage, first._attached) if self.ask(stage, is_shared._attached) else None

    def holding(self) -> Any:
        """The number of answers that hold before the first that does not, as a value of the trace."""
        so_far: Any = np.True_
        count: Any = np.int64(0)
        for tracer, (_, answer) in zip(self._tracers, self.answered, strict=True):
            so_far = logical_and(so_far, reshape(equal(tracer, answer), shape=()))
            count = add(count, convert(so_far, dtype=count.dtype))
        return count

    def _value(self, program: Program, var: Var) -> Any:
        """The value of a variable in this call; equations of earlier questions do not run again."""
        values = self._values
        assert self._arguments is not None
        values.update(zip(program.inputs, self._arguments, strict=True))
        values.update(program.constants)
        for equation in program.equations:
            if equation.outputs[0] in values:
                continue
            operands = tuple([values[x] if type(x) is Var else x for x in equation.inputs])
            out = bind(equation.primitive, operands, equation.params)
            values.update(zip(equation.outputs, out if equation.primitive.multiple else (out,), strict=True))
        return values[var]


def needed_program(stage: Stage, var: Var) -> Program:
    """The program of one variable of a running trace."""
    needed = {var}
    equations: list[Equation] = []
    for equation in reversed(stage.equations):
        if not needed.isdisjoint(equation.outputs):
            equations.append(equation)
            needed.update([x for x in equation.inputs if type(x) is Var])
    equations.reverse()
    constants = {x: value for x, value in stage.constants.items() if x in needed}
    return Program(stage.arguments, equations, (var,), constants)


def has_consequences(program: Program) -> bool:
    """Whether a call does more than compute: it has effects, runs Python, sends messages, or may not end."""
    for equation in program.equations:
        primitive = equation.primitive
        if not equation.outputs or primitive.calls_python or primitive.communicates or primitive.name == "while_call":
            return True
        if any([has_consequences(nested) for _, nested in equation.nested()]):
            return True
    return False


def merged_path(paths: Sequence[CachedCall]) -> CachedCall | None:
    """One program that selects the outputs of the path whose answers hold; None if it would be slow.

    Its last output is 1, or 0 where no path holds.
    """
    first = paths[0]
    avals = first.guarded.out_avals
    for path in paths:
        if not path.may_speculate or any(path.separate) or path.captured or path.axes or path.layouts is not None:
            return None
        if path.out_spec != first.out_spec or path.guarded.out_avals != avals:
            return None
    counts = [len(path.answered) for path in paths]
    calls = [path.guarded for path in paths]
    program = merged_program([call.program for call in calls], counts)
    if program_cost(prepare_program(program)).operations > CHEAP:
        return None
    make_variant = None
    if any([call.has_pullbacks for call in calls]):
        variants = [call.nan_safe_variant() or call for call in calls]
        variant = CompiledCall(
            merged_program([call.program for call in variants], counts), None, first.guarded.compiler
        )
        make_variant = lambda: variant  # noqa: E731
    merged = CompiledCall(program, make_variant, first.guarded.compiler)
    return type(first)(merged, first.out_spec, [], first.donated, None, first.separate, answered=first.answered[:1])


def merged_program(programs: Sequence[Program], counts: Sequence[int]) -> Program:
    """The program of `merged_path`; the last output of each program is the count of the answers that hold."""

    def selected(*args: Array) -> Sequence[Array]:
        *outs, holding = programs[0].run(args)
        found = equal(holding, counts[0])
        for program, count in zip(programs[1:], counts[1:], strict=True):
            *others, holding = program.run(args)
            holds = equal(holding, count)
            outs = [where(holds, other, out) for other, out in zip(others, outs, strict=True)]
            found = logical_or(found, holds)
        return [*outs, convert(found, dtype=np.dtype(np.int64))]

    return stage_flat(selected, [var.aval for var in programs[0].inputs], DerivedStage("jit"))


def without_derivatives(value: Array) -> Any:
    """A value as a constant for the levels of differentiation: no answer depends on derivatives."""
    while type(value) is Tracer and value._interpreter.differentiates:
        value = value._value
    inner = value
    while type(inner) is Tracer:
        if inner._interpreter.differentiates:
            return stop_gradient(value)
        inner = inner._value
    return value


def on_host(value: Any) -> np.ndarray[Any, Any]:
    """An answer as a NumPy array."""
    return np.array(value.get() if hasattr(value, "get") else value)


Choice: TypeAlias = "tuple[CachedCall | None, Sequence[np.ndarray[Any, Any]], Sequence[Any] | None]"
"""(path or None, answers, outputs or None): the choice of a call. It has outputs for host arrays that it computed."""


def run_at_once(path: CachedCall, arrays: Sequence[Array]) -> tuple[int, Sequence[Any] | None]:
    """(number of answers that hold or -1 if unknown, the outputs if all hold), for a path."""
    try:
        *outs, holding = path.guarded.execute(np, arrays)
    except Exception:  # from operations beyond a question with another answer
        return -1, None
    return int(holding), outs if holding == len(path.answered) else None


def told_answers(path: CachedCall, holding: int, before: int) -> Sequence[np.ndarray[Any, Any]]:
    """The result of a run of a path: of the answers from number `before` on, the first `holding` hold."""
    answers = [answer for _, answer in path.answered[before:]]
    if holding == before and answers[0].dtype == bool:
        return [~answers[0]]
    return answers[: max(holding - before, 0)]


class Guard:
    """A question that later calls answer again, with the continuation of each answer."""

    __slots__ = ("calls", "compiled", "following", "latest", "question")

    def __init__(self, question: Question, compiler: str | None) -> None:
        self.question = question
        self.compiled = CompiledCall(question.program, None, compiler)
        self.calls = 0
        self.following: dict[bytes, Guard | CachedCall] = {}
        self.latest: CachedCall | None = None
        """The path beyond it that the latest call took."""

    def answer(self, leaves: Sequence[Array]) -> np.ndarray[Any, Any]:
        """The answer of a call with these arguments. An outer trace records the equations as the first trace does."""
        self.calls += 1
        if self.calls <= INTERPRETED or any([known_value(leaf) is None for leaf in leaves]):
            return on_host(concrete(quietly(self.question.program.run, leaves)[0]))
        return on_host(concrete(self.compiled(*leaves)[0]))

    def choose(self, values: Sequence[Array], before: int, is_plain: bool) -> Choice:
        """The continuation of a call after `before` answers: a path, or at least one more answer."""
        latest = self.latest
        if not is_plain or latest is None or not latest.may_speculate:
            return None, [self.answer(values)], None
        holding, outs = run_at_once(latest, values)
        if outs is not None:
            return latest, (), outs
        return None, told_answers(latest, holding, before) or [self.answer(values)], None


class Paths:
    """The paths of a jitted function for one kind of arguments: a tree of guards with cached calls as leaves."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: CachedCall | None = None
        self._changes = 0
        """The number of calls with another path than the call before, since the latest path was added."""
        self._following: dict[bytes, Guard | CachedCall] = {}
        """The first guard, after the answer of no bytes."""
        self.layouts: tuple[Any, ...] | None = None
        self.axes: tuple[tuple[str, Any], ...] = ()

    def __reduce__(self) -> Any:
        return restored_paths, (self._most, [*self.leaves()])

    def choose(self, leaves: Sequence[Array]) -> Choice:
        """The path of a call with these arguments if there is one, or all answers that lead to it."""
        values, last, merged = leaves, self._last, None
        is_plain = all([type(leaf) in HOST_TYPES for leaf in leaves])
        if not is_plain:
            values = [without_derivatives(leaf) for leaf in leaves]
            is_plain = all([type(value) in HOST_TYPES for value in values])
        elif last is not None and not last.donated:
            merged = last.merged  # for its outputs: it does not tell which path holds
        outs = None
        told: Sequence[np.ndarray[Any, Any]] = ()
        if is_plain and last is not None and last.may_speculate:
            holding, outs = run_at_once(merged or last, values)
            if outs is not None:
                return last, (), outs
            told = told_answers(last, holding, 0) if merged is None else ()
        answers: list[np.ndarray[Any, Any]] = []
        passed: list[Guard] = []
        place = self._following.get(b"")
        while type(place) is Guard:
            found = None
            if not told:
                found, told, outs = place.choose(values, len(answers), is_plain)
            for answer in told:
                assert type(place) is Guard
                passed.append(place)
                answers.append(answer)
                place = place.following.get(answer.tobytes())
            place, told = found or place, ()
        path: CachedCall | None = place  # type: ignore[assignment]
        if path is not None:
            for guard in passed:
                guard.latest = path
            if path is not self._last:
                self._last, self._changes = path, self._changes + 1
                if is_plain and self._changes == CHANGES:
                    self._merge()
        return path, answers, outs

    def _merge(self) -> None:
        """Let call stubs run all paths at once, if that is cheap."""
        paths = list(self.leaves())
        merged = merged_path(paths)
        for path in paths:
            path.merged = merged

    def add(self, answered: Sequence[Answered], cached: CachedCall) -> None:
        """Add a path.

        Raises: StagingError where equal answers lead to different questions, or where there are too many paths.
        """
        if self.count >= self._most and not self._has(answered):
            raise StagingError(self._too_many())
        following, key = self._following, b""
        for question, answer in answered:
            guard: Guard | CachedCall | None = following.setdefault(key, Guard(question, cached.compiled.compiler))
            if type(guard) is not Guard or not same_program(guard.question.program, question.program):
                raise StagingError(_changed(question.line))
            guard.latest = cached
            following, key = guard.following, answer.tobytes()
        if type(guard := following.get(key)) is Guard:
            raise StagingError(_changed(guard.question.line))
        following[key] = self._last = cached
        self._changes = 0
        for path in self.leaves():
            path.merged = None
        self.layouts = cached.layouts if self.layouts is None else self.layouts
        self.axes = self.axes or cached.axes

    def _has(self, answered: Sequence[Answered]) -> bool:
        """Whether another thread has added a path meanwhile."""
        place = self._following.get(b"")
        for _, answer in answered:
            place = place.following.get(answer.tobytes()) if type(place) is Guard else None
        return place is not None

    @property
    def count(self) -> int:
        """The number of programs."""
        return len(list(self.leaves()))

    def leaves(self) -> Iterator[CachedCall]:
        """The cached calls of all paths."""
        for place in self._places():
            if type(place) is not Guard:
                yield place

    def _places(self) -> Iterator[Any]:
        rest = [*self._following.values()]
        while rest:
            place = rest.pop()
            yield place
            if type(place) is Guard:
                rest += place.following.values()

    def _too_many(self) -> str:
        changes: Counter[str] = Counter()
        for place in self._places():
            if type(place) is Guard:
                changes[place.question.line] += len(place.following)
        line, count = changes.most_common(1)[0]
        return (
            f"func.jit traced {self._most} paths of one function for arguments of one kind, and another call takes "
            f"none of them. The question{line} had {count} answers.\n"
            "Write func.while_loop for a loop whose number of steps depends on values, np.where or func.cond for a "
            "branch; or raise the limit, func.jit(f, max_paths=...)."
        )


def restored_paths(most: int, calls: Sequence[CachedCall]) -> Paths:
    """Paths from a pickle."""
    paths = Paths(most)
    for cached in calls:
        paths.add(cached.answered, cached)
    return paths


def _changed(line: str) -> str:
    return (
        "func.jit: after equal answers the function asks for another value than before"
        f"{line}, so it depends on more than its arguments (a global, a random number, the time).\n"
        "Pass what changes as an argument, or call func.jit(f, guards=False) and func.clear_caches()."
    )
