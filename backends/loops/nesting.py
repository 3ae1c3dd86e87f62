"""Nests in the order they run: which of them takes an operation, and in which of its stages."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from func.backends.loops.kernels import DType, Instruction, Item, Nest, Reg, Shape, Stage
from func.backends.loops.values import Val, domain_of, whole

MOST_CODE = 600
"""Instructions beyond which a nest takes no more: compilers are not linear."""


class Nesting:
    """The items of one body while it grows."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._by_domain: dict[Shape, list[int]] = {}
        self._made: dict[int, tuple[int, int, Instruction]] = {}
        """For registers (by id): nest, stage, instruction."""
        self._regs: list[Reg] = []

    def _stage(self, place: int, shape: Shape, args: Sequence[Val]) -> int:
        """The stage of a nest for code at every index of a shape."""
        is_row = domain_of(shape)[0] != self._nest(place).domain
        bound = self._bound(place, args, is_row)
        return self._row_stage(place, bound) if is_row else self._inner_stage(place, bound)

    def _nest(self, place: int) -> Nest:
        nest = self.items[place]
        assert isinstance(nest, Nest)
        return nest

    def _place(
        self,
        shape: Shape,
        args: Sequence[Val],
        outer: int | None = None,
        after: int = -1,
        alone: bool = False,
        rows: bool = True,
    ) -> int:
        """The first nest with this domain in which all arguments are at hand; a new one at the end if there is none.
        `outer`: preferably one whose rows are made of so many dimensions."""
        domain, _ = domain_of(shape)
        start = after + 1
        for x in args:
            if x.root is not None:
                root = x.root
                start = max(start, root.ready + 1 if root.reg is None else root.nest)
        found = -1
        if not alone:
            for place in self._by_domain.get(domain, ()):
                if place >= start and self._takes(place, domain, shape, args, rows):
                    agrees = outer is None or self._nest(place).outer in (None, outer)
                    if agrees:
                        return place
                    if found < 0:
                        found = place
            if found >= 0:
                return found
        self.items.append(Nest(domain))
        place = len(self.items) - 1
        if not alone:
            self._by_domain.setdefault(domain, []).append(place)
        return place

    def _takes(self, place: int, domain: Shape, shape: Shape, args: Sequence[Val], rows: bool) -> bool:
        nest = self._nest(place)
        if sum([len(stage.code) for stage in nest.stages]) > MOST_CODE:
            return False
        if nest.domain != domain and (not rows or nest.outer is None or nest.domain[: nest.outer] != domain):
            return False
        return all([x.root is None or x.root.nest != place or self._fits(x, shape) for x in args])

    def _fits(self, x: Val, shape: Shape) -> bool:
        """Whether a register can be used as it is at an index of `shape`: each of its axes is one of the domain's
        leading ones, in order and whole."""
        assert x.root is not None
        if x.root.reg is None:
            return False
        domain, kept = domain_of(shape)
        if x.shape == shape and x.root.domain == domain and x.index == whole(shape):
            return True
        lead = len(shape) - len(x.shape)
        if len(x.root.domain) > len(kept):
            return False
        for axis, (start, step, dim) in zip(kept, x.index, strict=False):
            if start != 0 or step != 1 or dim is None or dim + lead != axis or x.shape[dim] == 1:
                return False
        return all([shape[kept[i]] == length for i, length in enumerate(x.root.domain)])

    def _bound(self, place: int, args: Sequence[Val], is_row: bool = False) -> int:
        """The first stage that an operation on these arguments may go to."""
        bound = 0
        nest = self._nest(place)
        for x in args:
            root = x.root
            if root is None or root.nest != place or root.reg is None:
                continue
            same = nest.stages[root.stage].inner != is_row and not (root.is_row and nest.stages[root.stage].inner)
            bound = max(bound, root.stage if same else root.stage + 1)
        return bound

    def _inner_stage(self, place: int, bound: int) -> int:
        return self._stage_from(place, bound, True)

    def _row_stage(self, place: int, bound: int) -> int:
        return self._stage_from(place, bound, False)

    def _stage_from(self, place: int, bound: int, inner: bool) -> int:
        nest = self._nest(place)
        for number in range(bound, len(nest.stages)):
            if nest.stages[number].inner == inner:
                return number
        nest.stages.append(Stage(inner))
        return len(nest.stages) - 1

    def _known_at(self, domain: Shape, place: int) -> None:
        """A nest takes operations at its rows from now on."""
        known = self._by_domain.setdefault(domain, [])
        if place not in known:
            bisect.insort(known, place)

    def _reg(self, dtype: DType) -> Reg:
        reg = Reg(dtype)
        self._regs.append(reg)
        return reg

    def _emit(self, place: int, stage: int, instruction: Instruction, out: Reg | None = None) -> None:
        self._nest(place).stages[stage].code.append(instruction)
        if out is not None:
            self._made[id(out)] = place, stage, instruction
