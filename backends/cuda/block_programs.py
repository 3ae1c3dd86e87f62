"""Kernels of one block that run several steps: small loops, branches and whole small programs.

The functions of the steps are those of kernels, with barriers between them. A loop with small states costs one launch
in all instead of one for each step, and the device reads the condition.
"""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.c.declarations import stored_type
from func.backends.c.expressions import CBuilder
from func.backends.c.loop_nests import index_text
from func.backends.cuda.device_steps import Choose, Repeat, Step, While, buffers_of_step
from func.backends.cuda.nest_kernels import THREADS, KernelLibrary, Launch
from func.backends.loops.kernels import Buffer, StridedRef


def block_kernel(library: KernelLibrary, steps: Sequence[Step]) -> Launch:
    """The kernel for steps whose launches are functions of the library's definitions."""
    return _BlockWriter(library, steps).written()


class _BlockWriter:
    def __init__(self, library: KernelLibrary, steps: Sequence[Step]) -> None:
        self.library, self.steps = library, steps
        self.builder = CBuilder()
        self.names: dict[int, str] = {}
        self.buffers: list[Buffer] = []
        self.takes_status = False
        self.shared = 0

    def written(self) -> Launch:
        """The launch."""
        for step in self.steps:
            for buffer in buffers_of_step(step):
                storage = buffer.storage
                if id(storage) not in self.names:
                    self.names[id(storage)] = f"p{len(self.buffers)}"
                    self.buffers.append(storage)
        self._run(self.steps)
        parameters = [f"{stored_type(buffer.dtype)} *{self.names[id(buffer)]}" for buffer in self.buffers]
        parameters += ["int *func_status"] if self.takes_status and not self.library.guarded else []
        text = self.builder.text(1)
        if self.shared:
            text = f"    __shared__ __align__(16) char func_shared[{self.shared}];\n{text}"
        name, takes_status = self.library.add(text, parameters, THREADS, False)
        takes_status = takes_status or self.takes_status
        return Launch(name, 1, THREADS, self.buffers, takes_status, "one block", None, list(self.steps))

    def _run(self, steps: Sequence[Step]) -> None:
        b = self.builder
        for step in steps:
            if isinstance(step, Launch):
                passed = [self.names[id(buffer)] for buffer in step.buffers]
                if step.shared:
                    self.shared = max(self.shared, step.shared)
                    passed.append("func_shared")
                if step.takes_status:
                    self.takes_status = True
                    passed.append("func_status")
                b.effect(f"{step.kernel}({', '.join(passed)});")
                b.effect("__syncthreads();")
            elif isinstance(step, Repeat):
                self._repeat(step)
            elif isinstance(step, While):
                with b.braces("for (;;) {"):
                    self._run(step.test)
                    b.line(f"const bool goes_on = {self._element(step.flag)} != 0;")
                    b.effect("__syncthreads();")
                    with b.braces("if (!goes_on) {"):
                        b.effect("break;")
                    self._run(step.body)
            else:
                assert isinstance(step, Choose)
                self._choose(step)

    def _element(self, ref: StridedRef) -> str:
        return f"{self.names[id(ref.buffer)]}[{ref.offset}]"

    def _repeat(self, step: Repeat) -> None:
        b = self.builder
        index = b.fresh("i")
        with b.braces(f"for (func_long {index} = 0; {index} < {step.length}; ++{index}) {{"):
            at = f"({step.length - 1} - {index})" if step.reverse else index
            for view in step.slices:
                assert view.base is not None
                turn = f"({at} & {view.ring - 1})" if view.ring else at
                parts = 2 if view.dtype.kind == "c" else 1
                place = index_text(parts * view.start, [(turn, parts * view.step)])
                name = b.fresh("w")
                b.declare(name, f"{stored_type(view.dtype)} *const {name} = {self.names[id(view.base)]} + {place};")
                self.names[id(view)] = name
            self._run(step.body)

    def _choose(self, step: Choose) -> None:
        b = self.builder
        number = b.fresh("n")
        b.line(f"const int64_t {number} = (int64_t){self._element(step.index)};")
        b.effect("__syncthreads();")
        for place, steps in enumerate(step.branches):
            if place == len(step.branches) - 1:
                opening = "else {" if place else "{"
            else:
                below = f"{number} <= 0" if place == 0 else f"{number} == {place}"
                opening = f"{'else ' if place else ''}if ({below}) {{"
            with b.braces(opening):
                b.line("/* the branch with the number ", str(place), " */")
                self._run(steps)
