"""Campaign: random NumPy programs with views, writes, containers and control flow, in every mode.

A program is Python text. It has assignments of views and of new arrays, writes through them, lists, dicts and tuples,
loops, and branches on shapes and values. It runs with NumPy, under jvp, grad and vjp, and under vmap for every place of
the batch axis. It also runs under jit with both compilers, as a pickled Program and as exported source. All give one
value. Derivatives are compared with differences.
"""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import func
from func.errors import FuncError
from tools.fuzz.cases import Tally

QUICK = 150
SHAPES = [(2, 3), (3, 2), (3, 3), (4,), (1, 3), (2, 2, 3), (6,), (2, 1, 2)]
VIEWS = [
    "{a}.reshape(-1)",
    "{a}.ravel()",
    "{a}.T",
    "{a}[::-1]",
    "{a}[..., ::2]",
    "{a}[0]",
    "{a}[..., -1:]",
    "{a}[None]",
    "np.squeeze({a})",
    "np.atleast_2d({a})",
    "np.swapaxes({a}, 0, -1)",
    "{a}.reshape({a}.shape[::-1])",
    "{a}.reshape(-1, order='F')",
    "np.ravel({a}, 'K')",
    "np.expand_dims({a}, -1)",
    "np.flip({a})",
    "np.roll({a}, 0)",
    "np.ascontiguousarray({a})",
    "np.asfortranarray({a})",
    "np.array({a}, copy=None)",
    "np.einsum('...i->i...', {a})",
    "np.array_split({a}, 2)[0]",
    "np.real({a})",
    "np.broadcast_to({a}, (2, *{a}.shape))",
    "np.atleast_3d({a})",
    "{a}.astype(float, copy=False)",
    "np.moveaxis({a}, 0, -1)",
    "{a}[-3::-2]",
    "{a}.flatten('A')",
    "np.diagonal(np.atleast_2d({a}))",
]
NEW = [
    "np.zeros({a}.shape)",
    "np.full((2, 3), 0.75)",
    "np.arange(6.0).reshape(2, 3)",
    "{a} * 2.0",
    "{a} + {b}.sum()",
    "np.sin({a})",
    "{a}.copy()",
    "np.copy({a})",
    "np.zeros_like({a})",
    "np.ones_like({a}, shape=(2, 3))",
    "np.sum({a}, axis=0)",
    "np.max({a}, axis=-1)",
    "np.cumsum({a}, axis=-1)",
    "np.take({a}, [0, -1], axis=-1)",
    "np.repeat({a}, 2, axis=-1)",
    "{a}[[0, 0]]",
    "np.concatenate([{a}, {a}], -1)",
    "np.stack([{a}, {a} * 2.0], axis=-1)",
    "np.where({a} > 0.5, {a}, 1.0)",
    "np.sort({a}, axis=0)",
    "np.pad({a}, 1)",
    "np.outer({a}, {b})[:4, :4]",
    "{a} * {a}[..., :1]",
    "np.array([np.sum({a}), np.mean({b})])",
    "np.tile({a}, 2)",
    "np.delete({a}, 0, axis=-1)",
    "np.roll({a}, 1)",
    "np.sum({a})",
    "np.tanh({a} / 10.0)",
]
WRITES = [
    "{a}[...] = {number}",
    "{a}[0] = {number}",
    "{a}[..., -1] = {b}.mean()",
    "{a}[::2] += {number}",
    "{a} *= {number}",
    "{a} += {b}.sum() / 10.0",
    "{a}[..., 0] -= np.sum({a}) / 7.0",
    "{a}[{a} > 1.0] = {number}",
    "{a}.fill({number})",
    "{a}.flat[0] = {number}",
    "np.copyto({a}, {number})",
    "np.put({a}, [0, -1], [{number}, 0.25])",
    "np.add({a}, {number}, out={a})",
    "np.multiply({a}, {a}, out={a})",
    "{a}.sort()",
    "{a}[[0, -1]] = {number}",
    "{a}.reshape(-1)[0] = {number}",
    "{a}.T[..., 0] *= {number}",
    "np.fill_diagonal(np.atleast_2d({a}), {number})",
    "np.nan_to_num({a}, copy=False)",
    "{a}[...] = {a}[::-1]",
]
PLAIN_ERRORS = (StopIteration, ValueError, IndexError, TypeError, np.exceptions.AxisError)


class Writer:
    """Draws the lines of a program."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.names = ["x"]
        self.lines: list[str] = []
        self.depth = 1
        self.reads_values = False

    def name(self) -> str:
        return self.choices.choice(self.names[::-1])

    def filled(self, template: str) -> str:
        number = self.choices.choice(["0.0", "0.5", "1.5", "2.0"])
        return template.format(a=self.name(), b=self.name(), number=number)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new_name(self) -> str:
        return f"v{len(self.lines)}"

    def statement(self) -> None:
        kind = self.choices.choice(["view", "write", "new", "view", "write", "list", "dict", "loop", "branch", "swap"])
        if kind in ("view", "new"):
            name = self.new_name()
            self.line(f"{name} = " + self.filled(self.choices.choice(VIEWS if kind == "view" else NEW)))
            if self.depth == 1:
                self.names.append(name)
        elif kind == "write":
            self.line(self.filled(self.choices.choice(WRITES)))
        elif kind == "list":
            name, first, second = self.new_name(), self.name(), self.name()
            self.line(f"{name} = [{first}, {second} * 1.0]")
            self.line(f"{name}[{self.choices.choice([0, 1])}][...] += 0.5")
            self.line(f"{name}_sum = sum([np.sum(part) for part in {name}]) * np.ones_like(x)")
            if self.depth == 1:
                self.names.append(f"{name}_sum")
        elif kind == "dict":
            name = self.new_name()
            self.line(f"{name}_box = {{'first': {self.name()}, 'second': ({self.name()},)}}")
            self.line(f"{name} = {name}_box['first'] if {name}_box['second'][0].ndim > 1 else {name}_box['second'][0]")
            if self.depth == 1:
                self.names.append(name)
        elif kind == "swap" and len(self.names) > 2 and self.depth == 1:
            first, second = self.choices.sample(self.names[1:], 2)
            self.line(f"{first}, {second} = {second}, {first}")
        elif self.depth < 3 and kind == "loop":
            self.line(f"for i in range({self.choices.choice([1, 2, 3])}):")
            self.block([f"{self.name()}[..., i % 2 - 1] += 0.5 * i"])
        elif self.depth < 3 and kind == "branch":
            values = self.choices.random() < 0.3
            self.reads_values |= values
            condition = (
                f"np.sum({self.name()}) > 3.0" if values else f"{self.name()}.ndim > {self.choices.choice([0, 1])}"
            )
            self.line(f"if {condition}:")
            self.block([])
            self.line("else:")
            self.block([])

    def block(self, lines: list[str]) -> None:
        self.depth += 1
        for text in lines:
            self.line(text)
        for _ in range(self.choices.choice([1, 2])):
            self.line(self.filled(self.choices.choice(WRITES)))
        self.depth -= 1

    def program(self) -> str:
        for _ in range(self.choices.randint(1, 9)):
            self.statement()
        result = " + ".join([f"weighed({name}, {place})" for place, name in enumerate(self.names)])
        return "\n".join(
            [
                "def f(x):",
                "    x = x * 1.0" if self.choices.random() < 0.5 else "    pass",
                *self.lines,
                f"    return {result}",
            ]
        )


def weighed(y: Any, place: int) -> Any:
    """A sum in which every element of every array counts differently, and large ones for less."""
    weights = np.cos(np.arange(1.0, np.size(y) + 1.0) + place).reshape(np.shape(y))
    return np.sum(weights * np.tanh(y / 5.0))


def placed(shape: tuple[int, ...], layout: str, values: Any) -> Any:
    """An array of a shape in a layout."""
    if layout == "F":
        out = np.zeros(shape[::-1]).T
    elif layout == "strided":
        out = np.zeros([2 * n for n in shape])[tuple([slice(None, None, 2)] * len(shape))]
    else:
        out = np.zeros(shape)
        out = out[::-1] if layout == "reversed" else out
    out[...] = values
    return out


def batched(x: Any, axis: int) -> Any:
    """A batch of two, whose elements lie in memory as x does."""
    room = np.zeros((2, 6 * x.size + 64))
    out = np.lib.stride_tricks.as_strided(room[:, 3 * x.size :], (2, *x.shape), (room.strides[0], *x.strides))
    out[0], out[1] = x, x + 0.01
    return np.moveaxis(out, 0, axis)


def exported(f: Callable[[Any], Any], x: Any) -> Any:
    """The value by the source that func exports."""
    namespace: dict[str, Any] = {}
    exec(func.to_source(f)(x), namespace)
    return namespace["f"](x)


def pickled(f: Callable[[Any], Any], x: Any) -> Any:
    """The value by a Program that was pickled."""
    out = pickle.loads(pickle.dumps(func.make_program(f)(x)))(x)
    return out[0] if isinstance(out, (list, tuple)) else out


EAGER: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jvp": lambda f, x: func.jvp(f, (x,), (np.ones_like(x),))[0],
    "grad": lambda f, x: func.value_and_grad(f)(x)[0],
    "vjp": lambda f, x: func.vjp(f, x)[0],
    "grad under intercept": lambda f, x: intercepted(f, x),
}
TRACED: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jit": lambda f, x: func.jit(f)(x),
    "jit with NumPy": lambda f, x: func.jit(f, compiler="numpy")(x),
    "a pickled program": pickled,
    "exported source": exported,
}


def intercepted(f: Callable[[Any], Any], x: Any) -> Any:
    """The value where NumPy's creation functions make arrays that can hold traced values."""
    with func.intercept():
        return func.value_and_grad(f)(x)[0]


def agree(got: Any, expected: Any, rtol: float = 1e-9) -> bool:
    return bool(np.allclose(got, expected, rtol=rtol, atol=rtol, equal_nan=True))


def check_program(
    f: Callable[[Any], Any],
    x: Any,
    tally: Tally,
    traced: bool = True,
    has_slope: Callable[[], bool] = lambda: True,
) -> None:
    """All modes against NumPy, and derivatives against differences, unless the program that has run has none."""
    fresh = lambda y: placed_like(x, y)  # noqa: E731 (a copy in the same layout)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = f(fresh(x))
        except PLAIN_ERRORS:
            return  # NumPy refuses it
        except AttributeError:
            return  # a method of arrays on a scalar
        for mode, run in (EAGER | (TRACED if traced else {})).items():
            compared(mode, lambda run=run: run(f, fresh(x)), expected, tally)  # type: ignore[misc]
        try:
            second = f(fresh(x + 0.01))
        except PLAIN_ERRORS:
            second = None  # it takes another branch, which NumPy refuses
        for axis in {0, x.ndim // 2, -1} if second is not None else ():
            lanes = lambda axis=axis: func.vmap(f, in_dims=axis)(batched(x, axis))  # type: ignore[misc]  # noqa: E731
            compared(f"vmap over axis {axis}", lanes, np.array([expected, second]), tally)
        if has_slope():
            check_derivatives(f, x, fresh, tally)


def placed_like(x: Any, values: Any) -> Any:
    """A copy of values that lies in memory as x does."""
    room = np.zeros(6 * x.size + 64)
    out = np.lib.stride_tricks.as_strided(room[3 * x.size :], x.shape, x.strides)
    out[...] = values
    return out


def compared(mode: str, run: Callable[[], Any], expected: Any, tally: Tally, rtol: float = 1e-9) -> None:
    """One mode against the truth; refusals by name are counted."""
    try:
        got = run()
    except FuncError as error:
        tally.refused(error)
        return
    tally.checked()
    assert agree(got, expected, rtol), f"under {mode}: {got}, right: {expected}"


def check_derivatives(f: Callable[[Any], Any], x: Any, fresh: Callable[[Any], Any], tally: Tally) -> None:
    """Both modes against differences to both sides, where these agree."""
    direction = np.cos(np.arange(1.0, x.size + 1)).reshape(x.shape)
    middle = f(fresh(x))
    if not np.isfinite(middle):
        return  # differences of what is no number say nothing of the parts that are numbers
    slopes = [(f(fresh(x + step * direction)) - middle) / step for step in (1e-6, -1e-6, 1e-5, -1e-5)]
    if not all([agree(slope, slopes[0], 1e-4) for slope in slopes]):
        return  # a kink, a tie or a branch nearby
    slope = (slopes[0] + slopes[1]) / 2
    compared("jvp's tangent", lambda: func.jvp(f, (fresh(x),), (direction,))[1], slope, tally, 1e-3)
    compared("grad's slope", lambda: np.sum(func.grad(f)(fresh(x)) * direction), slope, tally, 1e-3)


def defined(text: str) -> Callable[[Any], Any]:
    """The function that a text defines."""
    namespace: dict[str, Any] = {"np": np, "weighed": weighed}
    exec(text, namespace)
    return namespace["f"]  # type: ignore[no-any-return]


def case(choices: random.Random, tally: Tally) -> None:
    """One program at one array, in all modes."""
    writer = Writer(choices)
    shape = choices.choice(SHAPES)
    layout = choices.choice(["C", "F", "strided", "reversed"])
    values = np.array([0.3 + choices.randint(0, 40) / 31.0 for _ in range(int(np.prod(shape)))]).reshape(shape)
    text = writer.program()
    tally.show(f"{text}\nx = {layout} {values.tolist()}")
    check_program(defined(text), placed(shape, layout, values), tally, traced=not writer.reads_values)
