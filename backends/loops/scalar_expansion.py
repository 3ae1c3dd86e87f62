"""Scalar expansion: nests over a few elements become straight-line code on numbers.

A program of many small arrays (the joints of a robot) spends its time in loops of three steps and in memory between
them. This pass runs its small nests symbolically: memory maps places to terms, and each term is
computed once. The result is one nest without loops for each run of small items, which computes the terms for later
items and outputs. Items that cannot be expanded (library calls, loops, large nests) stay; terms needed on both sides of
one go through scratch memory. `finite` asserts that all numbers are finite and the sign of a zero does not matter. Then
products with a zero of the program are zero, as in CasADi.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from func.backends.loops import kernels
from func.backends.loops.equal_slices import merge_equal_slices
from func.backends.loops.kernels import Buffer, DType, Literal, Register, StridedRef
from func.backends.loops.lanes import find_lanes, in_order_of_use, lane_items
from func.backends.loops.small_factorizations import (
    expand_routine,
    is_small_routine,
    routine_operations,
    share_factors,
)
from func.backends.loops.traversal import bodies_of, buffers_of, own_buffers

LARGEST_NEST, LARGEST_PRODUCT, LARGEST_PROGRAM = 2048, 16384, 600_000
"""Elements of the largest domain, and operations of the largest product and program, that are tried."""
SHORT_NEST, SHORT_PROGRAM = 160, 4096
"""Elements of the largest domain, and operations of the largest program, that gain without structure."""
MOST_RESULTS, MOST_OPERATIONS = 512, 24_000
"""The most elements of the outputs, and operations, of straight-line code. Compilers of C take some ten seconds for it,
and minutes for ten times as much.
"""
FOLDED = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "negative": np.negative}
"""Operations on numbers of the program that are computed at once."""
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
        """The last run in which an element of memory is readable."""

    @property
    def commutes(self) -> bool:
        """Whether the operation is commutative."""
        return self.op in COMMUTES


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


def expand_scalars(program: kernels.NativeProgram, finite: bool = False) -> bool:
    """Expand the small nests of a program; whether it gains. Memory needs a new assignment afterwards.

    Straight-line code gains for short loops, or if most operations of the loops are known beforehand or equal to
    others.
    """
    outside = set() if program.flag is None else {program.flag.buffer.storage}
    expansion = Expansion(program, finite, program.items, outside)
    program.items[:] = expansion.expanded()
    return expansion.gains


def expand_bodies(program: kernels.NativeProgram, finite: bool = False) -> None:
    """Expand the small nests in bodies of loops and in branches, if that gains."""
    _expand_bodies_of(program, program.items, finite)
    merge_equal_slices(program)


def _expand_bodies_of(program: kernels.NativeProgram, items: list[kernels.Item], finite: bool) -> None:
    for item in items:
        for body in bodies_of(item):
            _expand_bodies_of(program, body, finite)
            outside = _touched_outside(program, body)
            expansion = Expansion(program, finite, body, outside)
            expanded = expansion.expanded()
            if expansion.gains:
                body[:] = expanded


def _touched_outside(program: kernels.NativeProgram, body: list[kernels.Item]) -> set[Buffer]:
    """The memory that a program touches outside of a body."""
    touched: set[Buffer] = set()
    if program.flag is not None:
        touched.add(program.flag.buffer.storage)

    def visit(items: list[kernels.Item]) -> None:
        if items is body:
            return
        for item in items:
            touched.update([buffer.storage for buffer in own_buffers(item)])
            for inner in bodies_of(item):
                visit(inner)

    visit(program.items)
    return touched


def _operations(item: kernels.Item) -> int:
    if isinstance(item, kernels.LoopNest):
        return math.prod(item.domain) * len(item.code)
    if isinstance(item, kernels.Dot):
        return math.prod((*item.batch, *item.sizes))
    if isinstance(item, kernels.LibraryCall):
        return routine_operations(item) if is_small_routine(item) else 0
    return item.buffer.size if isinstance(item, kernels.Fill) else 0


def _longest(item: kernels.Item) -> int:
    """The elements of an item's results, for one index of a reduction."""
    if isinstance(item, kernels.Dot):
        m, _, n = item.sizes
        return math.prod((*item.batch, m, n))
    return math.prod(item.domain) if isinstance(item, kernels.LoopNest) else 0


def _is_small(item: kernels.Item) -> bool:
    """Whether an item can be expanded."""
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
    if isinstance(item, kernels.LibraryCall):
        return is_small_routine(item)
    return isinstance(item, kernels.Copy) and item.target.size <= LARGEST_NEST


class _Group:
    """A run of expanded items: the elements that it must write."""

    def __init__(self) -> None:
        self.stores: list[tuple[Buffer, int, ScalarTerm]] = []
        self.scratch_terms: list[ScalarTerm] = []
        """ScalarTerms that it computes for later runs."""


class Expansion:
    """The state while the items of a program, or of a body in it, are expanded."""

    def __init__(
        self, program: kernels.NativeProgram, finite: bool, source: list[kernels.Item], outside: set[Buffer]
    ) -> None:
        self.program, self.finite, self.source = program, finite, source
        self.outside = outside
        """Memory that others read when the items have run."""
        self.overlapping = _overlapping(source)
        self.known_before: set[Buffer] = set()
        """Memory with reads before writes; in a body, the reads see the step before."""
        self.used_by_items: set[Buffer] = set()
        """Memory of the items that stay."""
        self.gains = False
        self.terms: dict[Any, ScalarTerm] = {}
        self.memory: dict[Buffer, dict[int, ScalarTerm]] = {}
        self.dirty: dict[Buffer, dict[int, None]] = {}
        self.versions: dict[Buffer, int] = {}
        self.loads: dict[Buffer, list[ScalarTerm]] = {}
        self.groups: list[_Group] = [_Group()]
        self.items: list[kernels.Item | _Group] = [self.groups[0]]
        self.factors: dict[tuple[ScalarTerm, ...], tuple[StridedRef, StridedRef]] = {}
        """LU factors and exchanges by the elements of their matrices."""
        self.counter = itertools.count()
        self.failures: dict[ScalarTerm, None] = {}
        """Conditions under which a factorization has failed."""

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
        """The present value of memory at a place."""
        known = self.memory.setdefault(buffer, {}).get(index)
        if known is None:
            if buffer.kind == "constant":
                known = self.literal(self.program.constants[buffer.place].reshape(-1)[index], buffer.dtype)
            else:
                version = self.versions.get(buffer, 0)
                known = self.term(("element", buffer, index, version), "element", buffer.dtype, (), (buffer, index))
                self.known_before.add(buffer)
                if buffer.kind != "input":
                    self.loads.setdefault(buffer, []).append(known)
            self.memory[buffer][index] = known
        return known

    def apply(self, op: str, args: Sequence[ScalarTerm], out: DType) -> ScalarTerm:
        """An operation, or its simplified result."""
        simple = self._simplified(op, args, out)
        if simple is not None:
            return simple
        ordered = tuple(sorted(args, key=lambda x: x.number)) if op in COMMUTES else tuple(args)
        if op in ("maximum", "minimum"):
            ordered = tuple(args)
        return self.term((op, out, *[x.number for x in ordered]), op, out, ordered)

    def without_sign(self, x: ScalarTerm) -> ScalarTerm:
        """A term that is not a negation."""
        if x.op != "negative" or not self.finite:
            return x
        zero = self.literal(0, x.dtype)
        return self.term(("subtract", x.dtype, zero.number, x.args[0].number), "subtract", x.dtype, (zero, x.args[0]))

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
        if isinstance(item, kernels.LibraryCall) and share_factors(self, item):
            return
        if not self._is_expanded(item):
            if isinstance(item, kernels.EarlyExit):
                self._report()
            self.stays(item)
        elif isinstance(item, kernels.LibraryCall):
            expand_routine(self, item)
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

    def _is_expanded(self, item: kernels.Item) -> bool:
        return _is_small(item) and not any([buffer.storage in self.overlapping for buffer in own_buffers(item)])

    def fail_where(self, condition: ScalarTerm) -> None:
        """Note an error under a condition."""
        if condition.op != "literal" or condition.place:
            self.failures[condition] = None

    def _report(self) -> None:
        """Report the failures so far."""
        if not self.failures:
            return
        first, *others = self.failures
        for condition in others:
            first = self.apply("logical_or", [first, condition], first.dtype)
        self.failures.clear()
        flag = Buffer(1, first.dtype)
        self.store(flag, 0, first)
        self.stays(kernels.FlagCheck(StridedRef(flag, 0, ())))

    def stays(self, item: kernels.Item) -> None:
        storages = {buffer.storage for buffer in buffers_of(item)}
        self.used_by_items |= storages
        touched = [buffer for buffer in {**self.memory, **self.dirty, **self.loads} if buffer.storage in storages]
        for buffer in touched:
            self._flush(buffer)
        last = len(self.groups) - 1
        is_checked = isinstance(item, (kernels.LibraryCall, kernels.FlagCheck, kernels.EarlyExit))
        written = {ref.buffer.storage for ref in getattr(item, "outs", ())}
        for buffer in touched:
            if buffer.kind in ("input", "constant") or (is_checked and buffer.storage not in written):
                continue
            self.memory.pop(buffer, None)
            self.versions[buffer] = self.versions.get(buffer, 0) + 1
            for load in self.loads.pop(buffer, ()):
                load.expiry = last
        self.groups.append(_Group())
        self.items += [item, self.groups[-1]]

    def _flush(self, buffer: Buffer) -> None:
        """Let the current run write the necessary memory."""
        known = self.memory.get(buffer, {})
        for index in self.dirty.pop(buffer, {}):
            term = known[index]
            if term.op == "element" and term.place == (buffer, index) and term.expiry == math.inf:
                continue  # memory has it
            self.groups[-1].stores.append((buffer, index, term))

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
    def expanded(self) -> list[kernels.Item]:
        """The items, expanded."""
        stayed = {id(item) for item in self.source if not self._is_expanded(item)}
        replaced = [item for item in self.source if id(item) not in stayed]
        before = sum(map(_operations, replaced))
        is_short = before <= SHORT_PROGRAM and not any([_longest(item) > SHORT_NEST for item in replaced])
        if not 0 < before <= LARGEST_PROGRAM:
            return self.source
        for item in self.source:
            self.take(item)
        computed = self._marked()
        if not is_short and computed > before:  # nothing was known beforehand or equal to others
            return self.source
        items = self._finished()
        nests = [item for item in items if isinstance(item, kernels.LoopNest) and id(item) not in stayed]
        after = sum([isinstance(instruction, kernels.Apply) for nest in nests for instruction in nest.code])
        self.gains = after <= MOST_OPERATIONS and (is_short or 3 * after <= before)
        return items

    def _is_needed(self, buffer: Buffer) -> bool:
        """Whether anything reads memory after the items have run."""
        storage = buffer.storage
        return (
            buffer in self.known_before
            or storage.kind == "output"
            or storage in self.outside
            or storage in self.used_by_items
        )

    def _marked(self) -> int:
        """The number of operations of the results; notes the first run that needs each."""
        for buffer in list(self.dirty):
            if self._is_needed(buffer):
                self._flush(buffer)
        self._report()
        return sum(
            [self._mark(term, number) for number, group in enumerate(self.groups) for _, _, term in group.stores]
        )

    def _finished(self) -> list[kernels.Item]:
        """The items of the expanded program."""
        self._keep()
        items: list[kernels.Item] = []
        groups = iter(range(len(self.groups)))
        for item in self.items:
            if not isinstance(item, _Group):
                items.append(item)
            else:
                items += self._written(next(groups))
        return items

    def _mark(self, term: ScalarTerm, group: int) -> int:
        """Note the first run that needs a term and its parts: counts the operations."""
        stack = [term]
        count = 0
        while stack:
            this = stack.pop()
            if this.group < 0:
                this.group = int(min(group, this.expiry))
                stack.extend(this.args)
                count += bool(this.args)
        return count

    def _keep(self) -> None:
        """Find the terms that a later run needs: they go through scratch memory."""
        scratch_terms: set[ScalarTerm] = set()
        for number, group in enumerate(self.groups):
            stack = [term for _, _, term in group.stores]
            seen: set[ScalarTerm] = set()
            while stack:
                this = stack.pop()
                if this in seen or _is_everywhere(this):
                    continue
                seen.add(this)
                if this.group < number:
                    if this not in scratch_terms:
                        scratch_terms.add(this)
                        self.groups[this.group].scratch_terms.append(this)
                else:
                    stack.extend(this.args)
        self.places: dict[ScalarTerm, tuple[Buffer, int]] = {}
        by_dtype: dict[DType, list[ScalarTerm]] = {}
        for term in sorted(scratch_terms, key=lambda term: term.number):
            by_dtype.setdefault(term.dtype, []).append(term)
        for dtype, terms in by_dtype.items():
            buffer = Buffer(len(terms), dtype)
            self.places.update({term: (buffer, index) for index, term in enumerate(terms)})

    def _parts(self, term: ScalarTerm, number: int) -> tuple[ScalarTerm, ...]:
        """The terms that a run computes for one of its terms."""
        is_here = not _is_everywhere(term) and term.group >= number
        return term.args if is_here else ()

    def _in_order(
        self, stores: list[tuple[Buffer, int, ScalarTerm]], number: int
    ) -> list[tuple[Buffer, int, ScalarTerm]]:
        """The results of a run, in each step the one with the fewest new terms. It reuses terms shared with earlier
        results soon, from registers of the processor.
        """
        needed: dict[ScalarTerm, int] = {}
        for place, (_, _, term) in enumerate(stores):
            needed[term] = needed.get(term, 0) | 1 << place
        order = in_order_of_use([term for _, _, term in stores], lambda term: self._parts(term, number))
        counts: dict[int, int] = {}
        for term in reversed(order):
            users = needed.get(term, 0)
            parts = self._parts(term, number)
            if parts:
                counts[users] = counts.get(users, 0) + 1
            for x in parts:
                needed[x] = needed.get(x, 0) | users
        costs = [0] * len(stores)
        waiting: dict[int, list[int]] = {}
        for users, count in counts.items():
            for place in _bits(users):
                costs[place] += count
                waiting.setdefault(place, []).append(users)
        ready = [(cost, place) for place, cost in enumerate(costs)]
        heapq.heapify(ready)
        done = 0
        result = []
        while ready:
            cost, place = heapq.heappop(ready)
            if done >> place & 1 or cost != costs[place]:
                continue
            done |= 1 << place
            result.append(stores[place])
            for users in waiting.get(place, ()):
                count = counts.pop(users, 0)
                if count:
                    for other in _bits(users & ~done):
                        costs[other] -= count
                        heapq.heappush(ready, (costs[other], other))
        return result

    def _written(self, number: int) -> list[kernels.LoopNest]:
        """The nests of a run: straight-line code, and a loop over similar parts of it."""
        group = self.groups[number]
        stores = [*[(*self.places[term], term) for term in group.scratch_terms], *group.stores]
        if not stores:
            return []

        def parts(term: ScalarTerm) -> tuple[ScalarTerm, ...]:
            return self._parts(term, number)

        packing = find_lanes(stores, parts, _is_literal)
        if packing is None:
            return [self._straight(stores, number)]
        return lane_items(packing, _is_literal, lambda stores: self._straight(stores, number))

    def _straight(self, stores: list[tuple[Buffer, int, ScalarTerm]], number: int) -> kernels.LoopNest:
        """The nest without loops that computes results."""
        stores = self._in_order(stores, number)
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
                is_in_scratch = not _is_everywhere(this) and this.group < number
                if is_in_scratch or this.op == "element":
                    buffer, index = self.places[this] if is_in_scratch else this.place
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


def _bits(number: int) -> list[int]:
    """The places of the ones of a number.

    >>> _bits(0b10110)
    [1, 2, 4]
    """
    places = []
    while number:
        low = number & -number
        places.append(low.bit_length() - 1)
        number ^= low
    return places


def _overlapping(items: list[kernels.Item]) -> set[Buffer]:
    """Memory that items know under several names and write: a write under one is read under another."""
    names: dict[Buffer, set[Buffer]] = {}
    for item in items:
        for buffer in buffers_of(item):
            names.setdefault(buffer.storage, set()).add(buffer)
    return {
        storage for storage, buffers in names.items() if len(buffers) > 1 and storage.kind not in ("input", "constant")
    }


def _is_literal(term: ScalarTerm) -> bool:
    return term.op == "literal"


def _is(term: ScalarTerm, number: int) -> bool:
    return term.op == "literal" and bool(term.place == number)


def _is_everywhere(term: ScalarTerm) -> bool:
    """Whether any run has already computed a term."""
    return term.op == "literal" or (term.op == "element" and term.place[0].kind == "input")


def _index(ref: StridedRef, at: Sequence[int]) -> int:
    return ref.offset + sum([stride * i for stride, i in zip(ref.strides, at, strict=False)])
