"""Scalar expansion: nests over a few elements become straight-line code on numbers.

A program of many small arrays (a robot's joints, a model of a few equations) spends its time in loops of three steps
and in memory between them. Here its small nests run symbolically: memory maps places to terms, and a term that was
computed before is not computed again. What is left is one nest without loops for each run of small items, which
computes the terms that later items and outputs read. Items that cannot be expanded (library calls, loops, large nests)
stay where they are; terms that are needed on both sides of one are kept in scratch memory.

`finite` says that all numbers are finite and that the sign of a zero is of no interest: then products with a zero that
is part of the program are zero, as in CasADi.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from func.backends.loops import kernels
from func.backends.loops.kernels import Buffer, DType, Literal, Register, StridedRef
from func.backends.loops.traversal import buffers_of

LARGEST_NEST, LARGEST_PRODUCT, LARGEST_PROGRAM = 160, 1024, 400_000
"""Elements of the largest domain, and operations of the largest product and program, that are expanded."""
MOST_RESULTS = 512
"""Elements of the outputs of the largest program that is expanded."""
FOLDED = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negative": np.negative}
"""Operations on numbers of the program that are carried out at once."""
COMMUTES = frozenset({"add", "multiply", "maximum", "minimum", "logical_or", "logical_and", "equal", "not_equal"})


class ScalarTerm:
    """A number: an operation on others, a number of the program, or an element of memory at one moment."""

    __slots__ = ("args", "dtype", "expiry", "group", "number", "op", "place")

    def __init__(self, number: int, op: str, dtype: DType, args: tuple[ScalarTerm, ...], place: Any) -> None:
        self.number = number
        self.op = op
        self.dtype = dtype
        self.args = args
        self.place = place
        """The value of a literal; (buffer, index) of an element."""
        self.group = -1
        """The run of items that computes it."""
        self.expiry = math.inf
        """The last run in which an element of memory can be read."""


def is_expandable(program: kernels.NativeProgram) -> bool:
    """Whether all of a program but calls of libraries and checks can be straight-line code, and it has few results."""
    small = [item for item in program.items if _is_small(item)]
    total = sum(map(_operations, small))
    others = [item for item in program.items if not _is_small(item)]
    results = sum([math.prod(spec.shape) for spec in program.outputs])
    return (
        0 < total <= LARGEST_PROGRAM
        and results <= MOST_RESULTS
        and all([isinstance(item, (kernels.LibraryCall, kernels.FlagCheck, kernels.EarlyExit)) for item in others])
    )


def expand_scalars(program: kernels.NativeProgram, finite: bool = False) -> None:
    """Expand the small nests of a program. Memory has to be assigned anew afterwards."""
    expansion = _Expansion(program, finite)
    for item in program.items:
        expansion.take(item)
    program.items[:] = expansion.finished()


def _operations(item: kernels.Item) -> int:
    if isinstance(item, kernels.LoopNest):
        return math.prod(item.domain) * len(item.code)
    if isinstance(item, kernels.Dot):
        return math.prod((*item.batch, *item.sizes))
    return item.buffer.size if isinstance(item, kernels.Fill) else 0


def _is_small(item: kernels.Item) -> bool:
    """Whether an item can be expanded."""
    if any([buffer.base is not None for buffer in buffers_of(item)]):
        return False
    if isinstance(item, kernels.LoopNest):
        dynamic = (kernels.LoadAt, kernels.StoreAt)
        return (
            0 not in item.domain
            and math.prod(item.domain) <= LARGEST_NEST
            and not any([isinstance(instruction, dynamic) for instruction in item.code])
        )
    if isinstance(item, kernels.Dot):
        m, _, n = item.sizes
        return math.prod((*item.batch, m, n)) <= LARGEST_NEST and _operations(item) <= LARGEST_PRODUCT
    if isinstance(item, kernels.Fill):
        return item.buffer.size <= LARGEST_NEST
    return isinstance(item, kernels.Copy) and item.target.size <= LARGEST_NEST


class _Group:
    """A run of expanded items: the elements that it must write."""

    def __init__(self) -> None:
        self.stores: list[tuple[Buffer, int, ScalarTerm]] = []
        self.kept: list[ScalarTerm] = []
        """ScalarTerms that it computes for later runs."""


class _Expansion:
    """The state while a program is expanded."""

    def __init__(self, program: kernels.NativeProgram, finite: bool) -> None:
        self.program, self.finite = program, finite
        self.terms: dict[Any, ScalarTerm] = {}
        self.memory: dict[Buffer, dict[int, ScalarTerm]] = {}
        self.dirty: dict[Buffer, dict[int, None]] = {}
        self.versions: dict[Buffer, int] = {}
        self.loads: dict[Buffer, list[ScalarTerm]] = {}
        self.groups: list[_Group] = [_Group()]
        self.items: list[kernels.Item | _Group] = [self.groups[0]]
        self.counter = itertools.count()

    # -- terms ------------------------------------------------------------------------------------------------------
    def term(self, key: Any, op: str, dtype: DType, args: tuple[ScalarTerm, ...], place: Any = None) -> ScalarTerm:
        known = self.terms.get(key)
        if known is None:
            known = self.terms[key] = ScalarTerm(next(self.counter), op, dtype, args, place)
        return known

    def literal(self, value: Any, dtype: DType) -> ScalarTerm:
        """A number of the program."""
        number = np.asarray(value).astype(dtype)[()]
        return self.term(("literal", dtype, number.tobytes()), "literal", dtype, (), number)

    def element(self, buffer: Buffer, index: int) -> ScalarTerm:
        """What memory has at a place now."""
        known = self.memory.setdefault(buffer, {}).get(index)
        if known is None:
            if buffer.kind == "constant":
                known = self.literal(self.program.constants[buffer.place].reshape(-1)[index], buffer.dtype)
            else:
                version = self.versions.get(buffer, 0)
                known = self.term(("element", buffer, index, version), "element", buffer.dtype, (), (buffer, index))
                if buffer.kind != "input":
                    self.loads.setdefault(buffer, []).append(known)
            self.memory[buffer][index] = known
        return known

    def apply(self, op: str, args: Sequence[ScalarTerm], out: DType) -> ScalarTerm:
        """An operation, or what it comes to."""
        simple = self._simplified(op, args, out)
        if simple is not None:
            return simple
        ordered = tuple(sorted(args, key=lambda x: x.number)) if op in COMMUTES else tuple(args)
        if op in ("maximum", "minimum"):
            ordered = tuple(args)
        return self.term((op, out, *[x.number for x in ordered]), op, out, ordered)

    def _simplified(self, op: str, args: Sequence[ScalarTerm], out: DType) -> ScalarTerm | None:
        if op == "convert" and args[0].dtype == out:
            return args[0]
        if op == "select" and args[0].op == "literal":
            return args[1] if args[0].place else args[2]
        if op == "select" and args[1] is args[2]:
            return args[1]
        if out.kind != "f" or any([x.dtype != out for x in args]):
            return None
        if op in FOLDED and all([x.op == "literal" for x in args]):
            with np.errstate(all="ignore"):
                return self.literal(FOLDED[op](*[x.place for x in args]), out)
        if op == "nan_safe_multiply" and args[1].op == "literal":
            return args[1] if args[1].place == 0 else self.apply("multiply", args, out)
        if op == "square":
            return self.apply("multiply", [args[0], args[0]], out)
        if op == "negative":
            return args[0].args[0] if args[0].op == "negative" else None
        if op == "multiply":
            return self._product(args[0], args[1], out)
        if op == "add":
            return self._sum(args[0], args[1], out)
        if op == "subtract":
            return self._difference(args[0], args[1], out)
        if op == "divide":
            x, y = args
            if _is(y, 1):
                return x
            if x.op == "negative":
                return self.apply("negative", [self.apply("divide", [x.args[0], y], out)], out)
            return self.literal(0, out) if self.finite and _is(x, 0) else None
        return None

    def _product(self, x: ScalarTerm, y: ScalarTerm, out: DType) -> ScalarTerm | None:
        for this, other in ((x, y), (y, x)):
            if _is(this, 1):
                return other
            if _is(this, -1):
                return self.apply("negative", [other], out)
            if self.finite and _is(this, 0):
                return self.literal(0, out)
            if this.op == "negative":
                return self.apply("negative", [self.apply("multiply", [this.args[0], other], out)], out)
            if this.op == "literal" and this.place < 0:
                positive = self.apply("multiply", [self.literal(-this.place, out), other], out)
                return self.apply("negative", [positive], out)
        return None

    def _sum(self, x: ScalarTerm, y: ScalarTerm, out: DType) -> ScalarTerm | None:
        for this, other in ((x, y), (y, x)):
            if _is(this, 0) and (self.finite or np.signbit(this.place)):
                return other
            if this.op == "negative":
                return self.apply("subtract", [other, this.args[0]], out)
        return None

    def _difference(self, x: ScalarTerm, y: ScalarTerm, out: DType) -> ScalarTerm | None:
        if _is(y, 0) and (self.finite or not np.signbit(y.place)):
            return x
        if self.finite and _is(x, 0):
            return self.apply("negative", [y], out)
        if self.finite and x is y:
            return self.literal(0, out)
        if y.op == "negative":
            return self.apply("add", [x, y.args[0]], out)
        if x.op == "negative" and self.finite:
            return self.apply("negative", [self.apply("add", [x.args[0], y], out)], out)
        return None

    # -- items ------------------------------------------------------------------------------------------------------
    def take(self, item: kernels.Item) -> None:
        """Expand an item, or let it stay."""
        if not _is_small(item):
            self._stays(item)
        elif isinstance(item, kernels.LoopNest):
            self._nest(item)
        elif isinstance(item, kernels.Dot):
            self._dot(item)
        elif isinstance(item, kernels.Fill):
            for index in range(item.buffer.size):
                self.store(item.buffer, index, self.literal(item.value, item.buffer.dtype))
        elif isinstance(item, kernels.Copy):
            for index in range(item.target.size):
                self.store(item.target, index, self.element(item.source, index))

    def _stays(self, item: kernels.Item) -> None:
        touched = dict.fromkeys([buffer.storage for buffer in buffers_of(item)])
        for buffer in touched:
            self._flush(buffer)
        last = len(self.groups) - 1
        for buffer in touched:
            if buffer.kind in ("input", "constant"):
                continue
            self.memory.pop(buffer, None)
            self.versions[buffer] = self.versions.get(buffer, 0) + 1
            for load in self.loads.pop(buffer, ()):
                load.expiry = last
        self.groups.append(_Group())
        self.items += [item, self.groups[-1]]

    def _flush(self, buffer: Buffer) -> None:
        """Let the current run write what memory must have."""
        known = self.memory.get(buffer, {})
        for index in self.dirty.pop(buffer, {}):
            self.groups[-1].stores.append((buffer, index, known[index]))

    def store(self, buffer: Buffer, index: int, value: ScalarTerm) -> None:
        """Memory has another value at a place."""
        self.memory.setdefault(buffer, {})[index] = value
        self.dirty.setdefault(buffer, {})[index] = None

    def _dot(self, item: kernels.Dot) -> None:
        m, k, n = item.sizes
        dtype = item.out.buffer.dtype
        for at in itertools.product(*map(range, item.batch)):
            for i, j in itertools.product(range(m), range(n)):
                total: ScalarTerm | None = None
                for place in range(k):
                    left = self.element(item.x.buffer, _index(item.x, (*at, i, place)))
                    right = self.element(item.y.buffer, _index(item.y, (*at, place, j)))
                    product = self.apply("multiply", [left, right], dtype)
                    total = product if total is None else self.apply("add", [total, product], dtype)
                if total is None:
                    total = self.literal(0, dtype)
                self.store(item.out.buffer, _index(item.out, (*at, i, j)), total)

    def _nest(self, nest: kernels.LoopNest) -> None:
        for buffer, value in nest.fills:
            for index in range(buffer.size):
                self.store(buffer, index, self.literal(value, buffer.dtype))
        outer = nest.outer or 0
        inner = nest.domain[outer:]
        for row in itertools.product(*map(range, nest.domain[:outer])):
            registers: dict[Register, ScalarTerm] = {}
            for stage in nest.stages:
                if not stage.inner:
                    self._run(stage.code, row, registers, {})
                    continue
                totals: dict[kernels.Reduce | kernels.Running, ScalarTerm] = {}
                for at in itertools.product(*map(range, inner)):
                    self._run(stage.code, (*row, *at), registers, totals)
                registers.update({instruction.out: total for instruction, total in totals.items()})

    def _run(
        self,
        code: Iterable[kernels.Instruction],
        at: tuple[int, ...],
        registers: dict[Register, ScalarTerm],
        totals: dict[kernels.Reduce | kernels.Running, ScalarTerm],
    ) -> None:
        def value(x: kernels.Operand) -> ScalarTerm:
            return self.literal(x.value, x.dtype) if isinstance(x, Literal) else registers[x]

        for instruction in code:
            if isinstance(instruction, kernels.Load):
                registers[instruction.out] = self.element(instruction.ref.buffer, _index(instruction.ref, at))
            elif isinstance(instruction, kernels.Position):
                registers[instruction.out] = self.literal(at[instruction.axis], instruction.out.dtype)
            elif isinstance(instruction, kernels.Apply):
                args = [value(x) for x in instruction.args]
                registers[instruction.out] = self.apply(instruction.op, args, instruction.out.dtype)
            elif isinstance(instruction, kernels.Store):
                self.store(instruction.ref.buffer, _index(instruction.ref, at), value(instruction.value))
            elif isinstance(instruction, kernels.Accumulate):
                buffer, index = instruction.ref.buffer, _index(instruction.ref, at)
                have = self.element(buffer, index)
                self.store(buffer, index, self.apply(instruction.op, [have, value(instruction.value)], buffer.dtype))
            elif isinstance(instruction, (kernels.Reduce, kernels.Running)):
                so_far, dtype = totals.get(instruction), instruction.out.dtype
                new = value(instruction.value)
                totals[instruction] = new if so_far is None else self.apply(instruction.op, [so_far, new], dtype)
                registers[instruction.out] = totals[instruction]

    # -- code -------------------------------------------------------------------------------------------------------
    def finished(self) -> list[kernels.Item]:
        """The items of the expanded program."""
        flag = self.program.flag
        for buffer in list(self.dirty):
            if buffer.kind == "output" or (flag is not None and buffer is flag.buffer):
                self._flush(buffer)
        for number, group in enumerate(self.groups):
            for _, _, term in group.stores:
                self._mark(term, number)
        self._keep()
        items: list[kernels.Item] = []
        groups = iter(range(len(self.groups)))
        for item in self.items:
            if not isinstance(item, _Group):
                items.append(item)
            elif nest := self._written(next(groups)):
                items.append(nest)
        return items

    def _mark(self, term: ScalarTerm, group: int) -> None:
        """Note the first run that needs a term and all that it is made of."""
        stack = [term]
        while stack:
            this = stack.pop()
            if this.group < 0:
                this.group = int(min(group, this.expiry))
                stack.extend(this.args)

    def _keep(self) -> None:
        """Find the terms that a later run needs: they go through scratch memory."""
        kept: set[ScalarTerm] = set()
        for number, group in enumerate(self.groups):
            stack = [term for _, _, term in group.stores]
            seen: set[ScalarTerm] = set()
            while stack:
                this = stack.pop()
                if this in seen or _is_everywhere(this):
                    continue
                seen.add(this)
                if this.group < number:
                    if this not in kept:
                        kept.add(this)
                        self.groups[this.group].kept.append(this)
                else:
                    stack.extend(this.args)
        self.places: dict[ScalarTerm, tuple[Buffer, int]] = {}
        by_dtype: dict[DType, list[ScalarTerm]] = {}
        for term in sorted(kept, key=lambda term: term.number):
            by_dtype.setdefault(term.dtype, []).append(term)
        for dtype, terms in by_dtype.items():
            buffer = Buffer(len(terms), dtype)
            self.places.update({term: (buffer, index) for index, term in enumerate(terms)})

    def _written(self, number: int) -> kernels.LoopNest | None:
        """The nest of a run, None where it has nothing to do."""
        group = self.groups[number]
        stores = [*[(*self.places[term], term) for term in group.kept], *group.stores]
        if not stores:
            return None
        loads: list[kernels.Instruction] = []
        code: list[kernels.Instruction] = []
        registers: dict[ScalarTerm, kernels.Operand] = {}

        def visit(root: ScalarTerm) -> kernels.Operand:
            stack = [root]
            while stack:
                this = stack[-1]
                if this in registers:
                    stack.pop()
                    continue
                if this.op == "literal":
                    registers[this] = Literal(this.place, this.dtype)
                    continue
                is_kept = not _is_everywhere(this) and this.group < number
                if is_kept or this.op == "element":
                    buffer, index = self.places[this] if is_kept else this.place
                    out = Register(this.dtype)
                    (loads if buffer.kind != "input" else code).append(kernels.Load(out, StridedRef(buffer, index, ())))
                    registers[this] = out
                    continue
                waiting = [x for x in this.args if x not in registers]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
                out = Register(this.dtype)
                code.append(kernels.Apply(out, this.op, tuple([registers[x] for x in this.args])))
                registers[this] = out
            return registers[root]

        for buffer, index, term in stores:
            code.append(kernels.Store(StridedRef(buffer, index, ()), visit(term)))
        return kernels.LoopNest((), 0, [kernels.NestStage(False, [*loads, *code])])


def _is(term: ScalarTerm, number: int) -> bool:
    return term.op == "literal" and bool(term.place == number)


def _is_everywhere(term: ScalarTerm) -> bool:
    """Whether any run has a term at hand."""
    return term.op == "literal" or (term.op == "element" and term.place[0].kind == "input")


def _index(ref: StridedRef, at: Sequence[int]) -> int:
    return ref.offset + sum([stride * i for stride, i in zip(ref.strides, at, strict=False)])
