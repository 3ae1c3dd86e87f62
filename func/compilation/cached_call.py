"""A traced call as jit caches it: the compiled call with its guards, and the questions that its trace asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from func import tree
from func.compilation.donation import overwritable
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.program.program import Program
from func.interpreters.stage import Stage
from func.numpy.sharing import SeparateMemory

if TYPE_CHECKING:
    from func.compilation.paths import Answered, Questions


class CachedCall:
    """One traced call of a jitted function: the compiled call, its captured traced values, the output's tree."""

    __slots__ = (
        "_donating",
        "_may_speculate",
        "_stub",
        "answered",
        "axes",
        "captured",
        "compiled",
        "donated",
        "guarded",
        "is_cached",
        "is_single",
        "layouts",
        "may_return_argument",
        "memory_plan",
        "merged",
        "numbers",
        "out_spec",
        "separate",
    )

    def __init__(
        self,
        traced: CompiledCall,
        out_spec: Any,
        captured: list[Any],
        donated: frozenset[int],
        layouts: tuple[Any, ...] | None,
        separate: SeparateMemory,
        is_cached: bool = True,
        axes: tuple[tuple[str, Any], ...] = (),
        numbers: tuple[str, ...] = (),
        answered: Sequence[Answered] = (),
    ) -> None:
        self.answered = answered
        """The questions about values on this path, each with its answer."""
        self.merged: CachedCall | None = None
        """All paths in one."""
        self.donated = donated
        self.axes = axes
        """The axes of its collectives, each with its kind: processes, or the size of a batch."""
        self.numbers = numbers
        """The axes of processes in which the number of this one is a leading input."""
        self.layouts = layouts
        """The memory layouts of the arguments, if they decide whether the function writes to views."""
        self.separate = separate
        """The memory that must not overlap: a written argument, and another one or an array of the scope."""
        self.memory_plan: tuple[str, ...] = ()
        """The measures for a memory limit."""
        self._donating: Any = None
        self._stub: Any = None
        self.guarded = traced
        """The program; where there were questions, its last output counts the answers that hold."""
        self.compiled = compiled = traced.transformed(_without_guards) if answered else traced
        self._may_speculate: bool | None = None if answered else False
        self.out_spec = out_spec
        self.captured = captured
        self.is_cached = is_cached
        """Whether later calls may use it: not if it captures values of a running transform."""
        self.may_return_argument = _may_return_argument(compiled)
        """Whether an output may be an argument itself, which needs a defensive copy."""
        self.is_single = len(compiled.program.outputs) == 1 and out_spec.num_nodes == 1

    count = 1
    """The number of programs in it."""

    def __reduce__(self) -> Any:
        carried = self.out_spec, self.captured, self.donated, self.layouts, self.separate
        return restored_call, (self.guarded, carried, self.memory_plan, self.answered)

    def leaves(self) -> Iterator[CachedCall]:
        """The cached calls in it."""
        yield self

    def leading(self) -> list[Any]:
        """The program's leading inputs. Traces in the scope of its axes learn that they depend on it."""
        if not self.axes and not self.numbers:
            return [*self.captured]
        from func.collectives import note_axes, number_on  # start-up time

        note_axes([name for name, _ in self.axes])
        return [*self.captured, *[number_on(name) for name in self.numbers]]

    @property
    def may_speculate(self) -> bool:
        """Whether the program may run before the answers are checked, and returns them as outputs."""
        if self._may_speculate is None:
            from func.compilation.paths import has_consequences  # start-up time

            program = self.guarded.program
            self._may_speculate = not has_consequences(program) and self.guarded.executable(np).native is not None
        return self._may_speculate

    def execute(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """The outputs for host arrays for which the answers hold."""
        if self.may_speculate:
            return self.guarded.execute(np, leaves)[:-1]
        return self.compiled.execute(np, leaves)

    def call_stub(self, args: tuple[Any, ...], fallback: Callable[..., Any], failed: Callable[..., Any]) -> Any:
        """Native code that takes arguments like these and returns the whole result; None if there is none (yet)."""
        if self.merged is not None:
            return self.merged.call_stub(args, fallback, failed)
        if self.answered and not self.may_speculate:
            return None
        if self._stub is None:
            executable, expected = self.guarded.executable(np).native, len(self.answered) or None
            if executable is not None and not executable.can_bind_natively:
                return None
            self._stub = (
                executable
                and executable.tree_stub(
                    args, self.unflattened, fallback, failed, self.separate.pairs, self._fixed(), expected
                )
            ) or False
            if executable is not None and self._stub:
                executable.release_memory()
        return self._stub or None

    def _fixed(self) -> tuple[tuple[int, int, int], ...]:
        """Arguments that must not overlap memory of the scope, with its address and its bytes."""
        bounds = [(place, *np.lib.array_utils.byte_bounds(array)) for place, array in self.separate.in_scope]
        return tuple([(place, int(low), int(high - low)) for place, low, high in bounds])

    def unflattened(self, leaves: Sequence[Any]) -> Any:
        """The output tree with these leaves."""
        return tree.unflatten(self.out_spec, leaves)

    def run_donating(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Run on host arrays; overwrites those in `donated` if that is safe."""
        if self._donating is None:
            self._donating = self.compiled.executable(np, self.donated)
        outs: Sequence[Any] = self._donating.call(*overwritable(leaves, self._donating.overwrites))
        return outs


class Asked:
    """The questions of the traces that make one cached call; a NaN-safe variant is traced later, without values."""

    def __init__(self, is_enabled: bool, values: Sequence[Any], answers: Sequence[Any]) -> None:
        self._is_enabled = is_enabled
        self._values: Sequence[Any] | None = values
        self._answers = answers
        self._questions: Questions | None = None

    def begin(self) -> Callable[[Stage, Any, int], Any] | None:
        """The answers to the questions of one trace, from the start."""
        if not self._is_enabled:
            return None
        self._questions = None
        return self._ask

    def _ask(self, stage: Stage, var: Any, axes: int) -> Any:
        from func.compilation.paths import Questions  # start-up time

        if self._questions is None:
            self._questions = Questions(self._values, self._answers)
        return self._questions.ask_of_all(stage, var, axes) if axes else self._questions.ask(stage, var)

    def guards(self) -> Sequence[Any]:
        """The number of answers that hold, as a value of the trace; nothing where Python asked nothing."""
        questions = self._questions
        return (questions.holding(),) if questions is not None and questions.answered else ()

    def end(self) -> Sequence[Answered]:
        """Forget the values of the call, and return its questions. Traces that come later take the same path."""
        answered = () if self._questions is None else self._questions.answered
        self._values, self._answers = None, [answer for _, answer in answered]
        return answered


def _without_guards(compiled: CompiledCall) -> Program:
    program = compiled.program
    return Program(program.inputs, program.equations, program.outputs[:-1], program.constants).pruned()


def restored_call(
    guarded: CompiledCall,
    carried: tuple[Any, list[Any], frozenset[int], tuple[Any, ...] | None, SeparateMemory],
    memory_plan: tuple[str, ...],
    answered: Sequence[Answered],
) -> CachedCall:
    """A cached call from a pickle."""
    cached = CachedCall(guarded, *carried, answered=answered)
    cached.memory_plan = memory_plan
    return cached


def _may_return_argument(compiled: CompiledCall) -> bool:
    """Whether an output has the shape and dtype of an argument, as it must to be the same array."""
    avals = {(var.aval.shape, var.aval.dtype) for var in compiled.program.inputs}
    return any([(aval.shape, aval.dtype) in avals for aval in compiled.out_avals])
