"""Random programs over a pool of rows, for tests that a rewritten program computes the same.

Inputs are small integers, in floating point too, and every variable carries a bound. Sums and products alone are exact,
so their comparisons do not depend on the order of additions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from func.interpreters.core import Aval
from func.interpreters.primitives.elementwise import table as ew
from func.interpreters.primitives.structural import shapes, slicing
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.reductions import reduce_max, reduce_mean
from func.interpreters.program.program import Program
from func.interpreters.stage import Stage

DTYPES = [np.dtype(name) for name in ("float64", "float32", "complex128", "int64", "bool")]
SCALARS = [0, 1, -1, 2, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0]
LARGEST = 2.0**18
"""Bounds stay below this, so that single precision holds sums and products exactly."""


@dataclass
class Value:
    """A traced value, how large it can be, and whether it is exact."""

    array: Any
    bound: float
    exact: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def kind(self) -> str:
        return str(self.array.dtype.kind)


@dataclass
class Maker:
    """Draws one equation after the other."""

    random: random.Random
    values: list[Value] = field(default_factory=list)

    def one_of(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def coin(self) -> bool:
        return self.random.random() < 0.5

    def shuffled(self, options: Any) -> list[Any]:
        return self.random.sample(list(options), len(list(options)))

    def any_value(self, kinds: str = "fcib") -> Value | None:
        fit = [value for value in self.values if value.kind in kinds]
        return self.one_of(fit[-4:] if self.coin() else fit) if fit else None

    def keep(self, array: Any, bound: float, exact: bool = True) -> None:
        if bound <= LARGEST:
            self.values.append(Value(array, bound, exact))

    def unary(self) -> None:
        x = self.any_value("fci")
        if x is not None:
            row = self.one_of([ew.negative, ew.square, ew.positive, ew.absolute, ew.conjugate, ew.real])
            if x.kind == "c" and row is ew.absolute:
                return
            self.keep(row(x.array), x.bound**2 * 2 if row is ew.square else x.bound, x.exact)

    def smooth(self) -> None:
        x = self.any_value("f")
        if x is not None:
            self.keep(self.one_of([ew.sin, ew.tanh])(x.array), 1, False)

    def partner(self, x: Value) -> tuple[Any, float, bool]:
        """Something that broadcasts with x: a scalar, a constant or another value."""
        choice = self.one_of(["scalar", "full", "eye", "value", "value", "value"])
        if choice == "full":
            fill = self.one_of([0, 1, 2, -1])
            return np.full(x.shape[self.one_of(range(len(x.shape) + 1)) :], fill, np.float64), 2, True
        if choice == "eye" and len(x.shape) == 2:
            return np.eye(*x.shape), 1, True
        fit = [y for y in self.values if y.kind in "fci" and _broadcasts(x.shape, y.shape)]
        if choice == "value" and fit:
            y = self.one_of(fit)
            return y.array, y.bound, y.exact
        return self.one_of(SCALARS), 3, True

    def binary(self) -> None:
        x = self.any_value("fci")
        if x is None:
            return
        y, bound, exact = self.partner(x)
        row = self.one_of([ew.add, ew.subtract, ew.multiply, ew.multiply, ew.nan_safe_multiply])
        pair = self.one_of([(x.array, y), (y, x.array)])
        self.keep(
            row(*pair),
            x.bound * bound * 2 if row in (ew.multiply, ew.nan_safe_multiply) else x.bound + bound,
            x.exact and exact,
        )

    def compare(self) -> None:
        x = self.any_value("fi")
        if x is not None and x.exact:
            self.keep(self.one_of([ew.equal, ew.less])(x.array, self.one_of([0, 1, 2.0])), 1)

    def logic(self) -> None:
        x = self.any_value("b")
        if x is not None:
            self.keep(ew.logical_not(x.array), 1)

    def choose(self) -> None:
        condition, x = self.any_value("b"), self.any_value("fci")
        if condition is None or x is None or not _broadcasts(condition.shape, x.shape):
            return
        y, bound, exact = self.partner(x)
        if _broadcasts(condition.shape, np.shape(y)) and _broadcasts(np.shape(y), x.shape):
            self.keep(shapes.where(condition.array, x.array, y), max(x.bound, bound), x.exact and exact)

    def convert(self) -> None:
        x = self.any_value("fib")
        dtype = self.one_of(DTYPES[:3])
        if x is not None:
            self.keep(shapes.convert(x.array, dtype=dtype), x.bound, x.exact)

    def reshape(self) -> None:
        x = self.any_value()
        assert x is not None
        shape = [length for length in x.shape if length != 1]
        if self.coin():
            shape = [math.prod(shape)]
        for _ in range(self.random.randint(0, 2)):
            shape.insert(self.random.randint(0, len(shape)), 1)
        self.keep(shapes.reshape(x.array, shape=tuple(shape)), x.bound, x.exact)

    def permute(self) -> None:
        x = self.any_value()
        assert x is not None
        order = tuple(self.shuffled(range(len(x.shape))))
        self.keep(shapes.permute(x.array, order=order), x.bound, x.exact)

    def broadcast(self) -> None:
        x = self.any_value()
        assert x is not None
        if len(x.shape) < 4:
            shape = [self.one_of([1, 2, 3]) if n == 1 else n for n in x.shape]
            lead = [self.one_of([1, 2])] if self.coin() else []
            self.keep(shapes.broadcast(x.array, shape=(*lead, *shape)), x.bound, x.exact)

    def entry(self, length: int) -> Any:
        if length and self.coin():
            return self.one_of(range(length))
        start, stop = sorted([self.random.randint(0, length), self.random.randint(0, length)])
        return self.one_of([(0, length, 1), (start, stop, 1), (length - 1, -1, -1)] if length else [(0, 0, 1)])

    def index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        found = [self.entry(length) for length in shape]
        if self.random.randint(0, 3) == 0:
            found.insert(self.random.randint(0, len(found)), None)
        return tuple(found)

    def slice(self) -> None:
        x = self.any_value()
        assert x is not None
        self.keep(slicing.getitem(x.array, index=self.index(x.shape)), x.bound, x.exact)

    def pad(self) -> None:
        x = self.any_value("fci")
        if x is not None:
            index, shape = [], []
            for n in x.shape:
                before, after = self.one_of([0, 1]), self.one_of([0, 1])
                index.append((before, before + n, 1))
                shape.append(before + n + after)
            if self.coin():
                index.insert(0, self.one_of([0, 1]))
                shape.insert(0, 2)
            self.keep(slicing.embed(x.array, index=tuple(index), shape=tuple(shape)), x.bound, x.exact)

    def gradient_of_slices(self) -> None:
        """A sum of padded rows, as the pullback of a loop over rows makes it."""
        x = self.any_value("fc")
        if x is not None and x.shape:
            count = self.one_of([2, 3])
            parts = [
                slicing.embed(
                    ew.multiply(x.array, i + 1.0), index=(i, *[(0, n, 1) for n in x.shape]), shape=(count, *x.shape)
                )
                for i in self.shuffled(range(count))
            ]
            total = parts[0]
            for part in parts[1:]:
                total = ew.add(total, part)
            self.keep(total, 3 * x.bound, x.exact)

    def padded_alike(self) -> None:
        """A sum of two arrays that are padded in the same way, or joined rows of one array."""
        x = self.any_value("f")
        if x is None or not x.shape or not x.shape[0]:
            return
        rest = [(0, n, 1) for n in x.shape[1:]]
        if self.coin():
            index, shape = (2, *[(0, n, 1) for n in x.shape]), (3, *x.shape)
            parts = [slicing.embed(ew.multiply(x.array, factor), index=index, shape=shape) for factor in (2.0, 3.0)]
            self.keep(ew.add(*parts), 5 * x.bound, x.exact)
        else:
            places = [range(x.shape[0]), reversed(range(x.shape[0])), [0, 0]][self.random.randint(0, 2)]
            rows = [slicing.getitem(x.array, index=(place, *rest)) for place in places]
            rows = [shapes.reshape(row, shape=(1, *x.shape[1:])) for row in rows]
            self.keep(slicing.concatenate(*rows, axis=0), x.bound, x.exact)

    def write(self) -> None:
        x = self.any_value("f")
        if x is not None:
            index = tuple([self.entry(length) for length in x.shape])
            value = slicing.getitem(x.array, index=index)
            self.keep(slicing.update(x.array, ew.multiply(value, 2), index=index), 2 * x.bound, x.exact)

    def join(self) -> None:
        x = self.any_value()
        assert x is not None
        if x.shape:
            axis = self.one_of(range(len(x.shape)))
            fit = [y for y in self.values if y.kind == x.kind and _without(y.shape, axis) == _without(x.shape, axis)]
            pieces = [x, *[self.one_of(fit) for _ in range(self.random.randint(0, 2))]]
            joined = slicing.concatenate(*[piece.array for piece in pieces], axis=axis)
            self.keep(joined, max([p.bound for p in pieces]), all([p.exact for p in pieces]))

    def reduce(self) -> None:
        x = self.any_value("fci")
        if x is None:
            return
        axes = tuple([axis for axis in range(len(x.shape)) if self.coin()])
        number = math.prod([x.shape[axis] for axis in axes])
        row = self.one_of([shapes.reduce_sum, reduce_max, reduce_mean])
        if row is shapes.reduce_sum:
            self.keep(row(x.array, axes=axes), x.bound * max(number, 1), x.exact)
        elif number and x.kind == "f":
            self.keep(row(x.array, axes=axes, **({} if row is reduce_max else {"dtype": None})), x.bound, False)

    def contract(self) -> None:
        x, y = self.any_value("fc"), self.any_value("fc")
        if x is None or y is None or x.array.dtype != y.array.dtype:
            return
        lx = list(range(len(x.shape)))
        ly = []
        for axis, length in enumerate(y.shape):
            shared = [label for label in lx if x.shape[label] == length and label not in ly]
            ly.append(self.one_of([*shared, 10 + axis]))
        summed = {label for label in lx if label in ly and self.coin()}
        out = [label for label in dict.fromkeys([*lx, *ly]) if label not in summed]
        order = self.shuffled(out)
        made = contract(x.array, y.array, spec=spec(tuple(lx), tuple(ly), tuple(order)))
        number = math.prod([x.shape[label] for label in summed])
        if len(order) < 5:
            self.keep(made, 2 * x.bound * y.bound * max(number, 1), x.exact and y.exact)

    def total(self) -> None:
        """A sum of multiples, of sums, or of a product larger than its operands."""
        x = self.any_value("f")
        if x is None or not x.shape:
            return
        axes = tuple(range(len(x.shape)))
        number = max(math.prod(x.shape), 1)
        kind = self.one_of(["multiple", "negative", "sums", "product"])
        if kind == "multiple":
            self.keep(shapes.reduce_sum(ew.multiply(x.array, 0.5), axes=axes), x.bound * number, x.exact)
        elif kind == "negative":
            self.keep(shapes.reduce_sum(ew.negative(x.array), axes=axes[:1]), x.bound * number, x.exact)
        elif kind == "sums":
            self.keep(
                shapes.reduce_sum(shapes.reduce_sum(x.array, axes=(0,)), axes=axes[:-1]), x.bound * number, x.exact
            )
        else:
            tall = shapes.reshape(x.array, shape=(*x.shape, 1))
            wide = shapes.reshape(x.array, shape=(*[1] * len(x.shape), math.prod(x.shape)))
            axes = tuple([axis for axis in range(len(x.shape) + 1) if self.coin()])
            bound = 2 * x.bound**2 * number**2
            self.keep(shapes.reduce_sum(ew.multiply(tall, wide), axes=axes), bound, x.exact)

    def gradient_of_steps(self) -> None:
        """A sum of outer products of rows with one array, as the pullback of a loop over rows makes it."""
        x = self.any_value("f")
        if x is None or len(x.shape) != 2 or not x.shape[0]:
            return
        rows = [slicing.getitem(x.array, index=(i, (0, x.shape[1], 1))) for i in range(x.shape[0])]
        total = contract(rows[0], x.array, spec=spec((0,), (1, 0), (1,)))
        outer = contract(rows[0], rows[-1], spec=spec((0,), (1,), (0, 1)))
        for row in [*rows, *[ew.multiply(row, 2.0) for row in rows]]:
            total = ew.add(total, contract(row, x.array, spec=spec((0,), (1, 0), (1,))))
            outer = ew.add(outer, contract(row, row, spec=spec((0,), (1,), (0, 1))))
        self.keep(total, 10 * x.shape[1] * x.bound**2, x.exact)
        self.keep(outer, 16 * x.bound**2, x.exact)


POOL = [name for name in vars(Maker) if name in {
    "unary", "smooth", "binary", "compare", "logic", "choose", "convert", "reshape", "permute", "broadcast", "slice",
    "pad", "gradient_of_slices", "write", "join", "reduce", "contract", "padded_alike", "total", "gradient_of_steps",
}]  # fmt: skip


def _broadcasts(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(x, y)
    except ValueError:
        return False
    return True


def _without(shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    return len(shape), *shape[:axis], *shape[axis + 1 :]


@dataclass
class Drawn:
    """A program, arguments for it, and how large its outputs can be."""

    program: Program
    args: list[Any]
    bounds: list[float]


@st.composite
def programs(draw: Callable[..., Any]) -> Drawn:
    """Random programs of one to thirty equations, with arguments."""
    choose = random.Random(draw(st.integers(0, 2**32)))
    stage = Stage("test")
    maker = Maker(choose)
    inputs, args = [], []
    for _ in range(choose.randint(1, 3)):
        shape = tuple(choose.choices([0, 1, 2, 3], [1, 3, 4, 4], k=choose.randint(0, 3)))
        dtype = choose.choice([DTYPES[0], *DTYPES])
        args.append(_array(np.random.default_rng(choose.randint(0, 99)), shape, dtype))
        inputs.append(stage.variable(Aval(shape, dtype)))
        maker.values.append(Value(inputs[-1], 5))
    variables = [tracer._attached for tracer in inputs]
    for _ in range(choose.randint(2, 24)):
        getattr(maker, choose.choice(POOL))()
    outs = [*maker.values[-2:], *choose.sample(maker.values, min(2, len(maker.values)))]
    return Drawn(stage.program(variables, [out.array for out in outs]), args, [out.bound for out in outs])


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    numbers = rng.integers(-3, 4, shape)
    if dtype.kind == "b":
        return np.asarray(numbers > 0)
    return np.asarray(numbers + 1j * rng.integers(-3, 4, shape) if dtype.kind == "c" else numbers, dtype)
