"""Paths of a jitted function: the programs of one kind of arguments, by the answers to questions about values.

Python asks for a value while jit traces (`if x > 0`): a *question*. The values of the present call answer it, and the
trace goes on along this answer. The traced program holds for calls with the same answers alone. So each question
becomes a program of its own, a *guard*, that later calls run to choose among the *paths*:

    call -> guard 1 -> answer -> guard 2 -> answer -> path
                    -> other answer -> path of other operations

The values that answer are those of outer levels: under `grad` the numbers of this call, under `vmap` those that all
batch elements share (else vmap splits its batch), under an outer `jit` a question of the outer trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.core import Array, Tracer, bind, concrete
from func.interpreters.core.errors import StagingError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import stop_gradient
from func.interpreters.program.equality import same_program
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.stage import Stage

if TYPE_CHECKING:
    from func.compilation.jit import CachedCall

MAX_PATHS = 16


class Question(NamedTuple):
    """A value that Python asked for, as a program of the arguments; and where."""

    program: Program
    line: str


class Answered(NamedTuple):
    """A question and the answer that the trace went on with."""

    question: Question
    answer: np.ndarray[Any, Any]


class Questions:
    """The questions of one trace.

    `known` answers the first ones; the arguments `values` answer the others, or nothing does where these are None.
    """

    def __init__(self, values: Sequence[Array] | None, known: Sequence[np.ndarray[Any, Any]] = ()) -> None:
        self.answered: list[Answered] = []
        self._known = known
        self._arguments = values
        self._values: dict[Var, Any] = {}
        self._answers: dict[Var, np.ndarray[Any, Any]] = {}

    def ask(self, stage: Stage, var: Var) -> np.ndarray[Any, Any] | None:
        """The answer, an array like the variable; None where no guard could compare it.

        A guard compares one boolean or integer.
        """
        if var in self._answers:
            return self._answers[var]
        if var.aval.dtype.kind not in "biu" or any([size != 1 for size in var.aval.shape]):
            return None
        program = needed_program(stage, var)
        if program.has_effects:
            return None
        place = len(self.answered)
        if place < len(self._known):
            answer = self._known[place]
        elif self._arguments is None:
            return None
        else:
            answer = on_host(concrete(self._value(program, var)))
        self.answered.append(Answered(Question(program, at_line()), answer))
        self._answers[var] = answer
        return answer

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


def on_host(value: Any) -> np.ndarray[Any, Any]:
    """An answer as a NumPy array."""
    return np.array(value.get() if hasattr(value, "get") else value)


class Guard:
    """A question that later calls answer again, and what follows each answer."""

    __slots__ = ("compiled", "following", "question")

    def __init__(self, question: Question, compiler: str | None) -> None:
        self.question = question
        self.compiled = CompiledCall(question.program, None, compiler)
        self.following: dict[bytes, Guard | CachedCall] = {}

    def answer(self, leaves: Sequence[Array]) -> np.ndarray[Any, Any]:
        """The answer of a call with these arguments."""
        return on_host(concrete(self.compiled(*leaves)[0]))


class Paths:
    """The paths of a jitted function for one kind of arguments: a tree of guards with cached calls as leaves."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._following: dict[bytes, Guard | CachedCall] = {}
        """The first guard, after the answer of no bytes."""
        self.layouts: tuple[Any, ...] | None = None
        self.axes: tuple[tuple[str, Any], ...] = ()

    def choose(self, leaves: Sequence[Array]) -> tuple[CachedCall | None, list[np.ndarray[Any, Any]]]:
        """The path of a call with these arguments, if there is one yet; and the answers that lead there."""
        values = [stop_gradient(leaf) if type(leaf) is Tracer else leaf for leaf in leaves]
        answers: list[np.ndarray[Any, Any]] = []
        place = self._following.get(b"")
        while type(place) is Guard:
            answers.append(place.answer(values))
            place = place.following.get(answers[-1].tobytes())
        return place, answers  # type: ignore[return-value]

    def add(self, answered: Sequence[Answered], cached: CachedCall) -> None:
        """Add a path.

        Raises: StagingError where equal answers led to another question before, or where there are too many paths.
        """
        if len(list(self.leaves())) >= self._most:
            raise StagingError(self._too_many())
        following, key = self._following, b""
        for question, answer in answered:
            guard = following.setdefault(key, Guard(question, cached.compiled.compiler))
            if type(guard) is not Guard or not same_program(guard.question.program, question.program):
                raise StagingError(_changed(question.line))
            following, key = guard.following, answer.tobytes()
        if type(guard := following.get(key)) is Guard:
            raise StagingError(_changed(guard.question.line))
        following[key] = cached
        self.layouts = cached.layouts if self.layouts is None else self.layouts
        self.axes = self.axes or cached.axes

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


def _changed(line: str) -> str:
    return (
        "func.jit: after equal answers the function asks for another value than before"
        f"{line}, so it depends on more than its arguments (a global, a random number, the time).\n"
        "Pass what changes as an argument, or call func.jit(f, guards=False) and func.clear_caches()."
    )
