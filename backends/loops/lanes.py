"""Lanes: similar terms of straight-line code become one loop.

The columns of a Jacobian are the same operations on other numbers. Written one after the other they are long, and a
processor spends its time on fetching them. This pass packs results at a constant distance, from their ends to their
beginnings. If all lanes have the same operation, it becomes one of a loop over the lanes, which compilers turn into
vectors. If they have the same term, it is computed once, before the loop. If they differ, as at the seeds, their terms
are gathered in scratch memory. The number of lanes is rounded up to one that fills vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from func.backends.loops import kernels
from func.backends.loops.kernels import Buffer, DType, LoopNest, NestStage, Operand, Register, StridedRef
from func.backends.records import Record

if TYPE_CHECKING:
    from func.backends.loops.scalar_expansion import ScalarTerm

    Place = tuple[Buffer, int]
    ResultStore = tuple[Buffer, int, ScalarTerm]
    RootTuple = tuple[tuple[Place, ...], tuple[ScalarTerm, ...]]
    Parts = Callable[[ScalarTerm], tuple[ScalarTerm, ...]]

FEWEST, MOST = 3, 32
"""The numbers of lanes to try."""
VECTOR = 4
"""Numbers of a vector, for the cost estimate of a loop over lanes."""
PACKED = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "negative", "square", "sqrt", "absolute", "maximum", "minimum"),
        *("select", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "nan_safe_multiply"),
        *("logical_and", "logical_or", "logical_not", "reciprocal", "conjugate", "sign"),
    }
)
"""Operations of processors' vectors. A function of the C library would keep a loop from becoming vectors."""
GAIN = 0.7
"""The largest share of the operations that may remain."""


class Pack(Record):
    """The terms of all lanes: `args` are those of their operation, empty for terms that are equal or gathered."""

    terms: tuple[ScalarTerm, ...]
    args: tuple[Pack, ...]

    @property
    def is_shared(self) -> bool:
        """Whether all lanes have the same term."""
        return all([term is self.terms[0] for term in self.terms])


class Packing(Record):
    """Results that one loop computes, and the terms that straight-line code computes before it."""

    lanes: int
    roots: list[tuple[tuple[Place, ...], Pack]]
    packs: list[Pack]
    """Each after its arguments."""
    rest: list[ResultStore]


def find_lanes(stores: Sequence[ResultStore], parts: Parts, is_literal: Callable[[ScalarTerm], bool]) -> Packing | None:
    """The best packing of results, None if packing does not gain. `parts` are the arguments of computed terms."""
    by_buffer: dict[Buffer, dict[int, ScalarTerm]] = {}
    for buffer, index, term in stores:
        by_buffer.setdefault(buffer, {})[index] = term
    order = in_order_of_use([term for _, _, term in stores], parts)
    before = sum([bool(parts(term)) for term in order])
    best: tuple[float, Packing] | None = None
    for lanes in range(FEWEST, MOST + 1):
        tuples: list[RootTuple] = []
        for buffer, elements in by_buffer.items():
            if len(elements) == buffer.size and buffer.size % lanes == 0:
                tuples += _best_way(buffer, elements, lanes, order, parts)
        if not tuples:
            continue
        packing = _packed(stores, lanes, tuples, order, parts)
        after = _cost(packing, parts, is_literal)
        if after <= GAIN * before and (best is None or after < best[0]):
            best = after, packing
    return None if best is None else best[1]


def in_order_of_use(terms: Iterable[ScalarTerm], parts: Parts) -> list[ScalarTerm]:
    """All terms that some depend on, each after its arguments."""
    order: list[ScalarTerm] = []
    seen: set[ScalarTerm] = set()
    stack = [(term, False) for term in terms]
    while stack:
        term, is_done = stack.pop()
        if is_done:
            order.append(term)
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack += [(x, False) for x in parts(term)]
    return order


def _best_way(
    buffer: Buffer, elements: dict[int, ScalarTerm], lanes: int, order: Sequence[ScalarTerm], parts: Parts
) -> list[RootTuple]:
    """The results of all lanes, lane after lane or adjacent in memory: the order with more common operations."""
    count = buffer.size // lanes
    ways = [(1, count)] if count == 1 else [(1, count), (lanes, 1)]
    best: tuple[int, list[RootTuple]] = (0, [])
    for start, step in ways:
        places = [[j * start + lane * step for lane in range(lanes)] for j in range(count)]
        tuples = [
            (tuple([(buffer, index) for index in indices]), tuple([elements[index] for index in indices]))
            for indices in places
        ]
        common = sum([bool(pack.args) for pack in _pack(tuples, (), order, parts).values()])
        if common > best[0]:
            best = common, tuples
    return best[1]


def _packed(
    stores: Sequence[ResultStore], lanes: int, tuples: Sequence[RootTuple], order: Sequence[ScalarTerm], parts: Parts
) -> Packing:
    taken = {place for places, _ in tuples for place in places}
    others = [term for buffer, index, term in stores if (buffer, index) not in taken]
    known = _pack(tuples, others, order, parts)
    roots = [(places, known[terms]) for places, terms in tuples if known[terms].args]
    taken = {place for places, _ in roots for place in places}
    used: set[int] = set()
    stack = [pack for _, pack in roots]
    while stack:
        pack = stack.pop()
        if id(pack) not in used:
            used.add(id(pack))
            stack.extend(pack.args)
    packs = [pack for pack in known.values() if id(pack) in used]
    rest = [(buffer, index, term) for buffer, index, term in stores if (buffer, index) not in taken]
    return Packing(lanes, roots, packs, rest)


def _pack(
    tuples: Sequence[RootTuple], others: Sequence[ScalarTerm], order: Sequence[ScalarTerm], parts: Parts
) -> dict[tuple[ScalarTerm, ...], Pack]:
    """The packs of tuples and of all their terms, each after its arguments."""
    users: dict[ScalarTerm, int] = {}
    for _, terms in tuples:
        for lane, term in enumerate(terms):
            users[term] = users.get(term, 0) | 1 << lane
    for term in others:
        users[term] = -1
    for term in reversed(order):
        mask = users.get(term, 0)
        for x in parts(term) if mask else ():
            users[x] = users.get(x, 0) | mask
    known: dict[tuple[ScalarTerm, ...], Pack] = {}
    operands: dict[tuple[ScalarTerm, ...], list[tuple[ScalarTerm, ...]]] = {}
    stack = [terms for _, terms in tuples]
    while stack:
        terms = stack[-1]
        if terms in known:
            stack.pop()
            continue
        if terms not in operands:
            is_apart = all([users[term] == 1 << lane for lane, term in enumerate(terms)])
            operands[terms] = _operands(terms, parts) if is_apart else []
        waiting = [each for each in operands[terms] if each not in known]
        if waiting:
            stack.extend(waiting)
            continue
        known[terms] = Pack(terms, tuple([known[each] for each in operands[terms]]))
        stack.pop()
    return known


def _operands(terms: tuple[ScalarTerm, ...], parts: Parts) -> list[tuple[ScalarTerm, ...]]:
    """The operands of all lanes, if these have the same operation."""
    first = terms[0]
    args = parts(first)
    if not args or first.op not in PACKED:
        return []
    if any([term.op != first.op or term.dtype != first.dtype or not parts(term) for term in terms]):
        return []
    listed = [args]
    for term in terms[1:]:
        others = term.args
        if len(others) == 2 and term.commutes and _match(args, others[::-1]) > _match(args, others):
            others = others[::-1]
        listed.append(others)
    return list(zip(*listed, strict=True))


def _match(args: Sequence[ScalarTerm], others: Sequence[ScalarTerm]) -> int:
    """The fit of operands to those of the first lane."""
    return sum([4 if x is y else x.op == y.op for x, y in zip(args, others, strict=True)])


def _cost(packing: Packing, parts: Parts, is_literal: Callable[[ScalarTerm], bool]) -> float:
    """The remaining operations; a vector of them counts as one."""
    scalars = [term for _, _, term in packing.rest]
    moves = vectors = 0
    for pack in packing.packs:
        if pack.args:
            vectors += 1
        elif pack.is_shared:
            scalars.append(pack.terms[0])
            moves += not is_literal(pack.terms[0])
        else:
            scalars.extend(pack.terms)
            moves += packing.lanes
    copies = len(packing.roots) * packing.lanes
    operations = sum([bool(parts(term)) for term in in_order_of_use(scalars, parts)])
    return operations + moves + copies + vectors * -(-packing.lanes // VECTOR)


def rounded(lanes: int) -> int:
    """The next number of lanes that fills vectors.

    >>> [rounded(lanes) for lanes in (3, 7, 8, 9, 20)]
    [4, 8, 8, 16, 24]
    """
    return 4 if lanes <= 4 else -(-lanes // 8) * 8


def lane_items(
    packing: Packing, is_literal: Callable[[ScalarTerm], bool], written: Callable[[list[ResultStore]], LoopNest]
) -> list[LoopNest]:
    """Straight-line code, the loop, and the move of its results to their places."""
    wide = rounded(packing.lanes)
    buffers: dict[tuple[str, DType], Buffer] = {}

    def place(kind: str, dtype: DType, count: int) -> tuple[Buffer, int]:
        buffer = buffers.setdefault((kind, dtype), Buffer(0, dtype))
        buffer.size += count
        return buffer, buffer.size - count

    stores = list(packing.rest)
    code: list[Any] = []
    registers: dict[int, Operand] = {}
    for pack in packing.packs:
        first = pack.terms[0]
        if pack.args:
            out = Register(first.dtype)
            code.append(kernels.Apply(out, first.op, tuple([registers[id(arg)] for arg in pack.args])))
            registers[id(pack)] = out
        elif is_literal(first) and pack.is_shared:
            registers[id(pack)] = kernels.Literal(first.place, first.dtype)
        else:
            count = 1 if pack.is_shared else wide
            buffer, start = place("shared" if count == 1 else "gathered", first.dtype, count)
            padded = [*pack.terms, *[first] * (wide - packing.lanes)][:count]
            stores += [(buffer, start + lane, term) for lane, term in enumerate(padded)]
            out = Register(first.dtype)
            code.append(kernels.Load(out, StridedRef(buffer, start, (0 if count == 1 else 1,))))
            registers[id(pack)] = out
    moves: list[Any] = []
    for places, pack in packing.roots:
        buffer, start = place("results", pack.terms[0].dtype, wide)
        code.append(kernels.Store(StridedRef(buffer, start, (1,)), registers[id(pack)]))
        for lane, (target, index) in enumerate(places):
            out = Register(buffer.dtype)
            moves += [
                kernels.Load(out, StridedRef(buffer, start + lane, ())),
                kernels.Store(StridedRef(target, index, ()), out),
            ]
    loop = LoopNest((wide,), 0, [NestStage(True, code)])
    return [written(stores), loop, LoopNest((), 0, [NestStage(False, moves)])]
