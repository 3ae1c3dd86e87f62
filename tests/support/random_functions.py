"""Random functions of NumPy code, as source text: you can run the text of a failure.

Lines are drawn one by one and run at once on the arguments, so that shapes and magnitudes are known. Large values, and
comparisons that rounding could turn over, are left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import func

SIZES = [1, 2, 3, 5, 8, 17]
LARGEST = 100.0
APART = 1e-4
"""The distance of compared or rounded values from turning over."""
SMOOTH = [
    "np.sin({0})", "np.cos({0})", "np.tanh({0})", "-{0}", "np.square({0})", "np.exp(-np.abs({0}))", "np.abs({0})",
    "np.sqrt({0} * {0} + 0.5)", "np.log1p({0} * {0})", "np.arctan({0})", "1 / (1 + {0} * {0})", "{0} * 0.5", "{0} ** 2",
    "{0} ** 3", "np.expm1(np.tanh({0}))", "np.log(np.abs({0}) + 0.3)", "{0}.real", "np.ascontiguousarray({0})",
]  # fmt: skip
PAIRS = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1 + {1} * {1})", "np.arctan2({0}, 1 + {1} * {1})",
    "np.hypot({0}, {1} + 0.25)", "np.where({0} > 0.1234, {0}, {1})", "np.maximum({0}, {1} + 0.05123)",
    "np.minimum({0}, {1} - 0.0371)", "np.where({2} < 0.2345, {0}, {1})", "np.clip({0}, -0.7123, 0.8123) * {1}",
]  # fmt: skip
WHOLE = [
    "{0} // 3", "{0} % 4", "{0} & 5", "{0} ^ 2", "{0} * {0} % 7", "np.abs({0})", "np.sign({0})", "{0} + 1", "-{0}",
    "np.sum({0})", "np.max({0})", "np.where({0} > 1, {0}, 2)", "{0} > 0", "{0} / 2", "{0} << 1", "~{0}",
    "{0}.astype(np.float32)", "{0}.astype(np.float64)", "np.minimum({0}, 3)",
]  # fmt: skip
COMPLEX = [
    "{0} * {1}", "{0} + {1}", "{0} - {1}[..., None]", "{0}.real", "{0}.imag", "np.abs({0}) + 0.1", "np.conj({0})",
    "np.exp(-{0} * 0.1)", "np.sum({0}, axis=-1)", "np.mean({0}, axis=0)", "{0} @ {1}", "{0} @ np.conj({0}).T", "-{0}",
    "{0} / (2 + {0} * np.conj({0}))", "np.sin({0} * 0.3)", "np.where({0}.real > 0.123, {0}, {1})", "{0} ** 2",
    "{0} * np.sum(np.abs({0}) ** 2)", "np.angle({0} + 9)", "np.sqrt({0} + 9)", "np.log({0} + 9)", "np.linalg.norm({0})",
    "{0} / np.abs({0} + 9)", "np.prod({0} * 0.5)",
]  # fmt: skip
"""The functions for complex numbers."""
PRIMITIVES = [
    "np.sum({x}, axis={a}, keepdims={k})", "np.mean({x}, axis={a}, keepdims={k})",
    "np.max({x}, axis={a}, keepdims={k})", "np.min({x}, axis={a}, keepdims={k})",
    "np.var({x}, axis={a}, keepdims={k})", "np.prod(np.tanh({x}), axis={a}, keepdims={k})",
    "np.sqrt(np.sum(({x}) ** 2, axis={a}, keepdims={k}) + 0.1)",
    "np.log(np.sum(np.exp({x} - np.max({x}, axis={a}, keepdims=True)), axis={a}, keepdims={k}))",
    "np.any({x} > 0.3123, axis={a}, keepdims={k})", "np.all({x} > -0.7123, axis={a}, keepdims={k})",
    "np.count_nonzero({x} > 0.1123, axis={a}, keepdims={k})",
]  # fmt: skip
NORMAL = [
    "{x} - np.mean({x}, axis={a}, keepdims=True)",
    "({x} - np.mean({x}, axis={a}, keepdims=True)) / np.sqrt(np.var({x}, axis={a}, keepdims=True) + 0.1)",
    "np.exp({x} - np.max({x}, axis={a}, keepdims=True))",
    "np.exp({x}) / np.sum(np.exp({x}), axis={a}, keepdims=True)",
    "{x} - np.log(np.sum(np.exp({x}), axis={a}, keepdims=True))",
    "{x} * np.sum({x} * {x}, axis={a}, keepdims=True)",
    "({x} + np.sum({x}, axis={a}, keepdims=True)) * np.max({x}, axis={a}, keepdims=True)",
    "{x} / np.sqrt(np.sum({x} * {x}, axis={a}, keepdims=True) + 1e-2)",
]  # fmt: skip
FOREIGN = ["np.sort({0}, axis=None)", "np.fft.fft({0}.ravel()).real", "np.linalg.norm({0})", "np.cumsum({0})"]
LAYOUTS = [
    "{0}.T", "np.transpose({0}, {order})", "np.reshape({0}, -1)", "np.reshape({0}, {backwards})", "{0}[..., None]",
    "np.reshape({0}, {parted})", "np.broadcast_to({0}, {lead})", "np.flip({0})", "np.squeeze({0})", "np.tile({0}, 2)",
    "np.repeat({0}, 2, axis=-1)", "np.roll({0}, 1)", "np.moveaxis({0}, 0, -1)", "np.pad({0}, 1)", "np.atleast_2d({0})",
    "np.swapaxes({0}, 0, -1)",
]  # fmt: skip
LOOPS = [
    "func.scan(lambda c, r: (np.tanh(c + r), c * r), np.zeros_like({x}[0]), {x})[{i}]",
    "func.scan(lambda c, r: (0.5 * c + np.sin(r), c), np.ones_like({x}[0]), {x}, reverse=True)[{i}]",
    "func.scan(lambda c, r: ((c[1], c[0] + 0.5 * r), c[0] - c[1]),"
    " (np.zeros_like({x}[0]), np.ones_like({x}[0])), {x})[1]",
    "func.scan(lambda c, r: (c, np.sum({x} * r, axis=0)), np.zeros_like({x}[0]), {x})[1]",
    "func.fori_loop(0, 3, lambda i, v: np.cos(v) + 0.1 * {x}, {x})",
    "func.fori_loop(0, 2, lambda i, v: v - np.mean(v) + {x}[::-1] * 0.3, {x})",
    "func.cond(np.sum({x}) > 0.0123, lambda v: np.sin(v), lambda v: v * v + np.max(v), {x})",
    "func.vmap(lambda r: np.tanh(r) - np.sum(r * {x}))({x})",
    "func.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, np.sin(c[1]) + 0.1 * {x}), (0, {x}))[1]",
]  # fmt: skip
"""Loops over the first axis of x. Their carries begin as arrays of the device where x is one."""


@dataclass
class RandomFunction:
    """Source text of a function, and arguments for it."""

    lines: list[str]
    args: list[Any]
    names: list[str]
    returned: list[str] = field(default_factory=list)

    def source(self) -> str:
        """The text of the function `f`."""
        body = [*self.lines, f"return ({''.join([f'{name}, ' for name in self.returned])})"]
        return f"def f({', '.join(self.names)}):\n" + "".join([f"    {line}\n" for line in body])

    def function(self) -> Callable[..., Any]:
        """The function."""
        space: dict[str, Any] = {"np": np, "func": func}
        exec(self.source(), space)
        return space["f"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        kinds = ", ".join([f"{np.shape(one)} {np.asarray(one).dtype}" for one in self.args])
        return f"{self.source()}\n# of {kinds}"


class Maker:
    """Draws one line after the other."""

    def __init__(self, seed: int, foreign: bool = True) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.foreign = foreign
        self.values: dict[str, Any] = {}
        self.lines: list[str] = []
        self.count = 0

    def make(self, length: int) -> RandomFunction:
        """A function of this number of lines."""
        names = [self._input() for _ in range(self.random.randint(1, 3))]
        args = [self.values[name] for name in names]
        kinds = [self.smooth, self.pair, self.pair, self.rows, self.normal, self.normal, self.slice, self.layout]
        kinds += [self.joined, self.indexed, self.written, self.product, self.whole, self.loop, self.back, self.complex]
        if self.foreign:
            kinds.append(self.other)
        for _ in range(length):
            self.random.choice(kinds)()
        made = RandomFunction(self.lines, args, names)
        known = list(self.values)
        made.returned = [*known[-3:], *self.random.sample(known, min(2, len(known)))]
        if self.random.random() < 0.8:
            made.returned = list(dict.fromkeys(made.returned))
        return made

    def _input(self) -> str:
        one = self.random
        shape = tuple([one.choice(SIZES) for _ in range(one.choice([0, 1, 1, 2, 2, 2, 3, 3]))])
        if len(shape) >= 2 and one.random() < 0.3:
            shape = (shape[0], *shape[:1], *shape[2:])
        kind = one.choice(["float64"] * 6 + ["float32"] * 2 + ["int64"] * 2 + ["complex128"])
        numbers = self.rng.integers(-4, 5, shape) if kind == "int64" else self.rng.normal(size=shape)
        if kind == "complex128":
            numbers = numbers + 1j * self.rng.normal(size=shape)
        self.values[name := "xyz"[len(self.values)]] = np.asarray(numbers, kind)
        return name

    def add(self, source: str, more: Sequence[str] = ()) -> None:
        """A line that gives a new value, if it can be had; `more` are lines that change it."""
        name = f"v{self.count}"
        space = {"np": np, "func": func, **self.values}
        lines = [f"{name} = {source}", *[one.format(v=name) for one in more]]
        try:
            with np.errstate(all="ignore"):
                exec("\n".join(lines), space)
        except (ValueError, IndexError, TypeError):
            return
        value = np.asarray(space[name])
        if value.size > 4000 or value.size == 0 or value.ndim > 4:
            return
        if value.dtype.kind not in "fibc" or not np.isfinite(value).all() or np.abs(value).max() > LARGEST:
            return
        self.count += 1
        self.values[name] = value
        self.lines.extend(lines)

    def pick(self, kinds: str = "f", least: int = 0) -> str | None:
        """The name of a value."""
        fit = [name for name, x in self.values.items() if x.dtype.kind in kinds and x.ndim >= least]
        if not fit:
            return None
        return self.random.choice(fit[-4:] if self.random.random() < 0.6 else fit)

    def settled(self, name: str, *numbers: float) -> bool:
        """Whether no element is close to one of the numbers."""
        return all([bool((np.abs(self.values[name] - number) > APART).all()) for number in numbers])

    def unequal(self, name: str) -> bool:
        """Whether no two elements are close to each other."""
        return bool((np.diff(np.sort(self.values[name], axis=None)) > APART).all())

    def axes(self, name: str) -> Any:
        """Some axes of a value."""
        ndim = self.values[name].ndim
        chosen = tuple(self.random.sample(range(ndim), self.random.randint(min(1, ndim), ndim)))
        return self.random.choice([None, -1, 0]) if ndim and self.random.random() < 0.3 else chosen

    def smooth(self) -> None:
        if x := self.pick():
            form = self.random.choice(SMOOTH)
            if "abs" not in form or self.settled(x, 0):
                self.add(form.format(x))

    def pair(self) -> None:
        x, y, z = self.pick(), self.pick(), self.pick()
        if not x or not y or not z:
            return
        if self.random.random() < 0.3 and self.values[y].ndim:
            y = f"{y}[{self.random.choice(['..., None', 'None', '..., :1', ':1', '...', '::-1'])}]"
        form = self.random.choice(PAIRS)
        if "m" in form and not self._apart(x, y, 0.05123, -0.0371):
            return
        settled = self.settled(z, 0.2345) and self.settled(x, 0.1234, -0.7123, 0.8123)
        if settled or ("where" not in form and "clip" not in form):
            self.add(form.format(x, y, z))

    def _apart(self, x: str, y: str, *shifts: float) -> bool:
        try:
            apart = eval(f"{x} - {y}", dict(self.values))
        except (ValueError, IndexError):
            return False
        return all([bool((np.abs(apart - shift) > APART).all()) for shift in shifts])

    def rows(self) -> None:
        if x := self.pick("fi"):
            form = self.random.choice(PRIMITIVES)
            if ("max" in form or "min" in form) and not self.unequal(x):
                return
            if self.settled(x, 0.3123, -0.7123, 0.1123):
                self.add(form.format(x=x, a=self.axes(x), k=self.random.random() < 0.5))

    def normal(self) -> None:
        if x := self.pick():
            form = self.random.choice(NORMAL)
            if "max" not in form or self.unequal(x):
                self.add(form.format(x=x, a=self.axes(x)))

    def entry(self, length: int) -> str:
        one = self.random
        start, stop = sorted([one.randint(0, length), one.randint(0, length)])
        options = [
            ":",
            ":",
            "::-1",
            f"{start}:{stop}",
            f"{one.randint(-length, length - 1)}",
            "::2",
            "::-2",
            ":1",
            "-1:",
        ]
        options += [f"{stop - 1}:{start - 1}:-1" if start > 0 else "::-1"]
        return one.choice(options)

    def index(self, x: str) -> str:
        entries = [self.entry(length) for length in self.values[x].shape]
        if self.random.random() < 0.2:
            entries.insert(self.random.randint(0, len(entries)), "None")
        return ", ".join(entries) or "()"

    def slice(self) -> None:
        if x := self.pick("fibc"):
            self.add(f"{x}[{self.index(x)}]")

    def layout(self) -> None:
        x = self.pick("fibc")
        if not x:
            return
        shape = self.values[x].shape
        order = tuple(self.random.sample(range(len(shape)), len(shape)))
        form = self.random.choice(LAYOUTS)
        lead, parted = (2, *shape), self._parted(shape)
        self.add(form.format(x, order=order, backwards=shape[::-1], lead=lead, parted=parted))

    def _parted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape with two neighbouring axes run together, or one split."""
        if len(shape) >= 2 and self.random.random() < 0.5:
            place = self.random.randrange(len(shape) - 1)
            return (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
        for place, length in enumerate(shape):
            if length == 8:
                return (*shape[:place], *self.random.choice([(2, 4), (4, 2), (1, 8)]), *shape[place + 1 :])
        return (1, *shape, 1)

    def joined(self) -> None:
        x, y = self.pick("fic"), self.pick("fic")
        axis = self.random.choice([0, -1, 1])
        if x and y:
            form = self.random.choice(["np.concatenate(({0}, {1}), {2})", "np.stack(({0}, {1}), {2})"])
            self.add(form.format(x, self.random.choice([x, y, y]), axis))
            self.add(f"np.concatenate((np.ravel({x}), np.ravel({y} * 2)))")

    def _places(self, length: int, count: int) -> str:
        return f"np.array({[self.random.randint(-length, length - 1) for _ in range(count)]})"

    def indexed(self) -> None:
        x = self.pick("fibc", 1)
        if not x:
            return
        shape = self.values[x].shape
        axis = self.random.randrange(len(shape))
        places = self._places(shape[axis], self.random.choice([1, 3, 9]))
        lead = ":, " * axis
        options = [
            f"{x}[{lead}{places}]",
            f"np.take({x}, {places}, axis={axis})",
            f"{x}[{lead}np.reshape({places}, (-1, 1))]",
        ]
        if len(shape) > axis + 1:
            options.append(f"{x}[{lead}{self._places(shape[axis], 4)}, {self._places(shape[axis + 1], 4)}]")
        whole = self.pick("i")
        if whole:
            options.append(f"{x}[{lead}np.abs({whole}) % {shape[axis]}]")
            options.append(f"{x}[{lead}{whole} % {shape[axis]} - {shape[axis]}]")
        self.add(self.random.choice(options))

    def written(self) -> None:
        x, y = self.pick("f", 1), self.pick("f")
        if not x or not y:
            return
        shape = self.values[x].shape
        index = self.index(x)
        if self.random.random() < 0.4:
            index = self._places(shape[0], self.random.choice([1, 3, 9]))
        how = self.random.choice(["=", "+=", "*="])
        value = self.random.choice([y, f"np.sum({y})", f"2 * {x}[{index}]", "1.5", f"np.mean({x})"])
        change = f"{{v}}[{index}] {how} {value}"
        if index.startswith("np") and self.random.random() < 0.4:
            change = f"np.add.at({{v}}, {index}, {value})"
        self.add(self.random.choice([f"{x} * 1.25", f"{x}.copy()", f"np.zeros_like({x})"]), [change])

    def product(self) -> None:
        x, y = self.pick("f", 1), self.pick("f", 1)
        if not x or not y:
            return
        a, b = self.values[x].ndim, self.values[y].ndim
        left = "".join(self.random.sample("ijkl", a))
        right = "".join(self.random.sample("ijkl", b))
        known = "".join(dict.fromkeys(left + right))
        out = "".join(self.random.sample(known, self.random.randint(0, min(3, len(known)))))
        options = [
            f"{x} @ {y}",
            f"{x} @ {y}.T",
            f"np.tensordot({x}, {y}, 1)",
            f"np.outer({x}, {y}) / 3",
            f"{x}.T @ {x}",
        ]
        options += [f"np.einsum('{left},{right}->{out}', {x}, {y})"] * 3
        self.add(self.random.choice(options))

    def whole(self) -> None:
        if x := self.pick("i"):
            self.add(self.random.choice(WHOLE).format(x))
        if (x := self.pick("f")) and self.settled(x, *range(-4, 5)) and np.abs(self.values[x]).max() < 4:
            self.add(self.random.choice([f"np.floor({x}).astype(np.int64)", f"({x} > 0).astype(np.int64)", f"{x} < 1"]))

    def complex(self) -> None:
        x, y = self.pick("c"), self.pick("cf")
        if x and y:
            form = self.random.choice(COMPLEX)
            if self.settled(x, 0) and bool((np.abs(self.values[x].real - 0.123) > APART).all()):
                self.add(form.format(x, y))

    def loop(self) -> None:
        x = self.pick("f", 1)
        if not x or np.abs(self.values[x]).max() > 3:
            return
        form = self.random.choice(LOOPS)
        if "max" in form and not self.unequal(x):
            return
        self.add(form.format(x=x, i=self.random.choice([0, 1])))

    def back(self) -> None:
        """A derivative inside the function."""
        x = self.pick("f", 1)
        if x:
            forms = [
                "func.grad(lambda t: np.sum(np.sin(t) * t))({0})",
                "func.grad(lambda t: np.sum(t[::-1] * t ** 2))({0})",
            ]
            forms.append("func.jvp(lambda t: np.tanh(t) * np.sum(t), ({0},), ({0},))[1]")
            self.add(self.random.choice(forms).format(x))

    def other(self) -> None:
        if (x := self.pick("f", 1)) and self.unequal(x):
            self.add(self.random.choice(FOREIGN).format(x))


def tame(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a loss: a sum of weighted outputs."""

    def loss(*given: Any) -> Any:
        total = 0.0
        for place, out in enumerate(function(*given)):
            if out.dtype.kind == "f":
                like = None if isinstance(out, np.generic) else out
                weights = np.cos(np.arange(out.size, like=like) + place).reshape(out.shape)
                total = total + np.sum(out * weights)
        return total

    return loss
