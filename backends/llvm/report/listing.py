"""Native programs as text: items with their loops, reads and writes, and the layout of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from func.backends.loops import kernels
from func.backends.loops.interface import ArraySpec
from func.backends.loops.product_blocks import is_cut
from func.backends.loops.rematerialization import CHEAP
from func.backends.loops.traversal import buffers_of

INDENT = "  "
AXES = "ijklmn"
KINDS = {"input": "in", "output": "out", "constant": "const", "arena": "m"}
REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
ORDINARY = CHEAP | {"divide", "square", "reciprocal", "isnan", "isfinite", "real", "imag", "complex", "conjugate"}
"""Operations that say little about a kernel; its title names them only if there are no others."""
MOST_NAMED = 5
"""Operations and buffers that a title names at most."""


class Names:
    """Names for the memory of a program: in0, out0, const0, m0 for scratch; m0[t] moves with the steps of a loop."""

    def __init__(self, program: kernels.NativeProgram) -> None:
        self.scratch: list[kernels.Buffer] = []
        self._words: dict[int, str] = {}
        for item in program.items:
            for buffer in buffers_of(item):
                self._learn(buffer)

    def _learn(self, buffer: kernels.Buffer) -> None:
        if id(buffer) in self._words:
            return
        if buffer.base is not None:
            self._learn(buffer.base)
            self._words[id(buffer)] = f"{self._words[id(buffer.base)]}[t]"
        elif buffer.kind == "arena":
            self._words[id(buffer)] = f"m{len(self.scratch)}"
            self.scratch.append(buffer)
        else:
            self._words[id(buffer)] = f"{KINDS.get(buffer.kind, buffer.kind)}{buffer.place}"

    def __getitem__(self, buffer: kernels.Buffer) -> str:
        self._learn(buffer)
        return self._words[id(buffer)]


def listing(program: kernels.NativeProgram) -> str:
    """The program with the loops and the scalar code of every kernel."""
    names = Names(program)
    return "\n".join([*_memory(program, names), *_items(program.items, names, "", "", _LoopListing(names))])


def summary(program: kernels.NativeProgram) -> str:
    """The program with a summary of every kernel."""
    names = Names(program)
    return "\n".join([*_memory(program, names), *_items(program.items, names, "", "", _LoopSummary(names))])


def _memory(program: kernels.NativeProgram, names: Names) -> Iterator[str]:
    for word, results in (("in", program.inputs), ("out", program.outputs)):
        for place, result in enumerate(results):
            yield f"{word}{place}: {_typed(result)}"
    for place, constant in enumerate(program.constants):
        yield f"const{place}: {_array(np.asarray(constant))}"
    for buffer in names.scratch:
        yield f"{names[buffer]}: {buffer.size} × {buffer.dtype} at byte {buffer.place} of the arena"
    yield f"arena: {program.arena} bytes"


def _typed(result: ArraySpec) -> str:
    return f"{result.dtype}{list(result.shape)}{' as a Python number' if result.weak else ''}"


def _array(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}"


def parts_of(item: kernels.Item) -> list[tuple[str, str, list[kernels.Item]]]:
    """The lists of items inside an item of control flow, each with the prefix of its numbers and its title."""
    if isinstance(item, kernels.CountedLoop):
        if item.ahead:
            return [("a", "ahead, at the same time as the step before", item.ahead), ("b", "body", item.body)]
        return [("", "", item.body)]
    if isinstance(item, kernels.ConditionalLoop):
        return [("t", "test", item.test), ("b", "body", item.body)]
    if isinstance(item, kernels.Branch):
        return [(f"{place}.", f"case {place}", branch) for place, branch in enumerate(item.branches)]
    return []


def _items(
    items: Sequence[kernels.Item], names: Names, prefix: str, indent: str, inside: _LoopListing
) -> Iterator[str]:
    for place, item in enumerate(items):
        number = f"{prefix}{place}"
        yield f"{indent}{number}: {title(item, names)}"
        if isinstance(item, kernels.LoopNest):
            for line in [*_chunk_lines(item), *inside.lines(item)]:
                yield f"{indent}{INDENT}{line}"
        elif isinstance(item, kernels.Dot) and is_cut(item):
            yield f"{indent}{INDENT}{times(item.grid)} chunks of places, rows and columns that threads share"
        elif isinstance(item, kernels.CountedLoop):
            for view in item.slices:
                start = _sum(view.start, [(view.step, f"(t mod {view.ring})" if view.ring else "t")])
                yield f"{indent}{INDENT}{names[view]} starts at {start} of {names[view.base or view]}"
        for mark, word, body in parts_of(item):
            if word:
                yield f"{indent}{INDENT}{word}:"
            deeper = indent + INDENT * (2 if word else 1)
            yield from _items(body, names, f"{number}.{mark}", deeper, inside)


def _chunk_lines(nest: kernels.LoopNest) -> Iterator[str]:
    """The sharing of a nest's loops among threads."""
    for chunking in nest.chunkings:
        where = ", row by row" if chunking.stage is not None and nest.outer else ""
        yield f"{chunking.chunks} chunks of {_axis(chunking.axis)} that threads share{where}"


def title(item: kernels.Item, names: Names) -> str:
    """The computation of an item, in a few words."""
    if isinstance(item, kernels.LoopNest):
        where = _few(_targets(item, names))
        return f"{_work(item) if where else 'look at indices'}{_over(item.domain)}{where and f' → {where}'}"
    if isinstance(item, kernels.Dot):
        rows, summed, columns = item.sizes
        batch = f"{times(item.batch)} of " if item.batch else ""
        where = names[item.out.buffer]
        return (
            f"dot, {batch}{names[item.x.buffer]} ({rows} × {summed}) by {names[item.y.buffer]} "
            f"({summed} × {columns}) → {where}"
        )
    if isinstance(item, kernels.Fill):
        return f"fill with {_number(item.value)} → {names[item.buffer]}"
    if isinstance(item, kernels.Copy):
        return f"copy {names[item.source]} → {names[item.target]}"
    if isinstance(item, kernels.FlagCheck):
        return f"check {names[item.flag.buffer]}"
    if isinstance(item, kernels.EarlyExit):
        return "stop after an error; from here on the code writes donated memory"
    if isinstance(item, kernels.LibraryCall):
        arguments = [
            *[names[ref.buffer] for ref in item.args],
            *[f"{key}={value}" for key, value in item.params.items()],
        ]
        return f"{item.routine}({', '.join(arguments)}) → {_few([names[ref.buffer] for ref in item.outs])}"
    if isinstance(item, kernels.CountedLoop):
        return f"loop, {item.length} steps{', backwards' if item.reverse else ''}"
    if isinstance(item, kernels.ConditionalLoop):
        return f"loop while {names[item.flag.buffer]} holds"
    return f"branch on {names[item.index.buffer]}, {len(item.branches)} cases"


def times(shape: kernels.Shape) -> str:
    """A shape as 64 × 10."""
    return " × ".join(map(str, shape))


def _over(domain: kernels.Shape) -> str:
    return f" over {times(domain)}" if domain else ""


def _few(words: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(words))
    return ", ".join([*distinct[:MOST_NAMED], *(["…"] if len(distinct) > MOST_NAMED else [])])


def _work(nest: kernels.LoopNest) -> str:
    """The operations that characterize a nest."""
    telling: list[str] = []
    ordinary: list[str] = []
    for instruction in _code(nest):
        if isinstance(instruction, kernels.Running):
            telling.append(f"running {REDUCTIONS.get(instruction.op, instruction.op)}")
        elif isinstance(instruction, (kernels.Reduce, kernels.Accumulate)):
            telling.append(REDUCTIONS.get(instruction.op, instruction.op))
        elif isinstance(instruction, (kernels.LoadAt, kernels.StoreAt)):
            telling.append("gather" if isinstance(instruction, kernels.LoadAt) else "scatter")
        elif isinstance(instruction, kernels.Apply):
            (ordinary if instruction.op in ORDINARY else telling).append(instruction.op)
    return _few(telling or ordinary) or (
        "copy" if any([isinstance(instruction, kernels.Load) for instruction in _code(nest)]) else "fill"
    )


def _targets(nest: kernels.LoopNest, names: Names) -> list[str]:
    """The memory that a nest writes, outputs first, without the memory that only its own rows use."""
    written = [
        instruction.ref
        for instruction in _code(nest)
        if isinstance(instruction, (kernels.Store, kernels.StoreAt, kernels.Accumulate))
    ]
    outer = nest.outer or 0
    lasting = [ref for ref in written if not outer or any(ref.strides[:outer]) or ref.buffer.kind != "arena"]
    lasting.sort(key=lambda ref: ref.buffer.kind != "output")
    return [names[ref.buffer] for ref in lasting or written]


def _code(nest: kernels.LoopNest) -> list[kernels.Instruction]:
    return [instruction for stage in nest.stages for instruction in stage.code]


class _LoopListing:
    """Prints the loops of a nest and its code."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def lines(self, nest: kernels.LoopNest) -> Iterator[str]:
        """A nest without its title."""
        self.registers: dict[int, str] = {}
        for buffer, value in nest.fills:
            yield f"{self.names[buffer]} = {_number(value)} everywhere"
        outer = nest.outer or 0
        depth = INDENT if outer else ""
        if outer:
            yield _header(nest.domain, range(outer))
        for stage in nest.stages:
            inner_loops = range(outer, len(nest.domain)) if stage.inner else range(0)
            deep = f"{depth}{INDENT if inner_loops else ''}"
            if inner_loops:
                yield f"{depth}{_header(nest.domain, inner_loops)}"
            for instruction in stage.code:
                yield f"{deep}{self._instruction(instruction, inner_loops)}"

    def _instruction(self, instruction: Any, inner_loops: Sequence[int]) -> str:
        if isinstance(instruction, kernels.Load):
            return f"{self._new(instruction.out)} = {self._ref(instruction.ref)}"
        if isinstance(instruction, kernels.LoadAt):
            return f"{self._new(instruction.out)} = {self._ref(instruction.ref, instruction.indices)}"
        if isinstance(instruction, kernels.Apply):
            args = ", ".join(map(self._operand, instruction.args))
            operation = instruction.out.dtype if instruction.op == "convert" else instruction.op
            return f"{self._new(instruction.out)} = {operation}({args})"
        if isinstance(instruction, kernels.Store):
            return f"{self._ref(instruction.ref)} = {self._operand(instruction.value)}"
        if isinstance(instruction, kernels.StoreAt):
            place, assigns = self._ref(instruction.ref, instruction.indices), "+=" if instruction.adds else "="
            return f"{place} {assigns} {self._operand(instruction.value)}"
        if isinstance(instruction, (kernels.Reduce, kernels.Running)):
            kind = "running " if isinstance(instruction, kernels.Running) else ""
            reduction = f"{kind}{REDUCTIONS.get(instruction.op, instruction.op)} of {self._operand(instruction.value)}"
            return f"{self._new(instruction.out)} = {reduction} over {', '.join(map(_axis, inner_loops))}"
        if isinstance(instruction, kernels.Position):
            return f"{self._new(instruction.out)} = {_axis(instruction.axis)}"
        if isinstance(instruction, kernels.Accumulate):
            place = self._ref(instruction.ref)
            return f"{place} = {instruction.op}({place}, {self._operand(instruction.value)})"
        return self._other(instruction)

    def _other(self, instruction: Any) -> str:
        """An instruction by the names of its fields."""
        fields = {name: getattr(instruction, name) for name in instruction.fields}
        out = fields.pop("out", None)
        arguments = ", ".join([f"{key}={self._field(value)}" for key, value in fields.items()])
        return f"{'' if out is None else f'{self._new(out)} = '}{type(instruction).__name__.lower()}({arguments})"

    def _field(self, value: Any) -> str:
        if isinstance(value, (kernels.Register, kernels.Literal)):
            return self._operand(value)
        return self._ref(value) if isinstance(value, kernels.StridedRef) else str(value)

    def _new(self, register: kernels.Register) -> str:
        return self.registers.setdefault(id(register), f"r{len(self.registers)}")

    def _operand(self, x: kernels.Operand) -> str:
        return _number(x.value) if isinstance(x, kernels.Literal) else self._new(x)

    def _ref(self, ref: kernels.StridedRef, indices: Sequence[kernels.DynamicIndex] = ()) -> str:
        terms = [(stride, _axis(axis)) for axis, stride in enumerate(ref.strides) if stride]
        terms += [(index.stride, self._operand(index.value)) for index in indices]
        return f"{self.names[ref.buffer]}[{_sum(ref.offset, terms)}]"


class _LoopSummary(_LoopListing):
    """Prints the reads, writes and number of operations of a nest."""

    def lines(self, nest: kernels.LoopNest) -> Iterator[str]:
        """A summary of a nest."""
        code = _code(nest)
        outer = nest.outer or 0
        passes = sum([stage.inner for stage in nest.stages])
        if outer:
            rows = times(nest.domain[:outer])
            yield f"rows {rows}, passes over {times(nest.domain[outer:])} each: {passes}"
        reads = dict.fromkeys(
            [
                self.names[instruction.ref.buffer]
                for instruction in code
                if isinstance(instruction, (kernels.Load, kernels.LoadAt))
            ]
        )
        writes = [
            instruction.ref
            for instruction in code
            if isinstance(instruction, (kernels.Store, kernels.StoreAt, kernels.Accumulate))
        ]
        operations = sum([not isinstance(instruction, (kernels.Load, kernels.Store)) for instruction in code])
        written = dict.fromkeys([self.names[ref.buffer] for ref in writes])
        read, stored = [", ".join(names) or "nothing" for names in (reads, written)]
        yield f"reads {read}; {_count(operations, 'operation')}; writes {stored}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _header(domain: kernels.Shape, axes: Iterable[int]) -> str:
    return "for " + ", ".join([f"{_axis(axis)} < {domain[axis]}" for axis in axes])


def _axis(axis: int) -> str:
    return AXES[axis] if axis < len(AXES) else f"i{axis}"


def _number(value: Any) -> str:
    return repr(value.item() if isinstance(value, (np.generic, np.ndarray)) else value)


def _sum(start: int, terms: Sequence[tuple[int, str]]) -> str:
    """start + Σ factor * word."""
    text = "" if start == 0 and terms else str(start)
    for factor, word in terms:
        size = word if abs(factor) == 1 else f"{abs(factor)}*{word}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {size}" if text else (f"-{size}" if factor < 0 else size)
    return text
