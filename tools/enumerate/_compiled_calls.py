"""Calls of jitted functions: Python numbers with arrays, and one function called with arguments of several kinds."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import func
from func.errors import ArgumentError
from tools.enumerate.scope import Choices


def _write(x: Any, s: Any) -> Any:
    x = x + 0
    x[0] = s
    return x


def _fill(x: Any, s: Any) -> Any:
    x = x + 0
    x.fill(s)
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "x * s": lambda x, s: x * s,
    "x + s": lambda x, s: x + s,
    "s - x": lambda x, s: s - x,
    "x / s": lambda x, s: x / s,
    "x // s": lambda x, s: x // s,
    "x % s": lambda x, s: x % s,
    "x ** s": lambda x, s: x**s,
    "s ** x": lambda x, s: s**x,
    "x & s": lambda x, s: x & s,
    "x << s": lambda x, s: x << s,
    "x < s": lambda x, s: x < s,
    "s == x": lambda x, s: s == x,
    "x + (s + 1)": lambda x, s: x + (s + 1),
    "x * -s": lambda x, s: x * -s,
    "maximum": lambda x, s: np.maximum(x, s),
    "where": lambda x, s: np.where(x > 1, x, s),
    "full_like": lambda x, s: np.full_like(x, s),
    "zeros_like + s": lambda x, s: np.zeros_like(x) + s,
    "clip below": lambda x, s: np.clip(x, s, None),
    "clip above": lambda x, s: np.clip(x, 0, s),
    "clip method": lambda x, s: x.clip(s, 70000),
    "insert": lambda x, s: np.insert(x, 1, s),
    "select": lambda x, s: np.select([x > 1], [x], s),
    "isclose": lambda x, s: np.isclose(x, s),
    "array of both": lambda x, s: np.array([x[0], s]).astype(float),
    "dtype of both": lambda x, s: np.zeros(1, np.array([x[0], s]).dtype),
    "x[0] = s": _write,
    "fill": _fill,
    "asarray": lambda x, s: np.asarray(s).astype(x.dtype),
    "sum": lambda x, s: np.sum(x * 0 + s),
    **{
        f"np.{name}": lambda x, s, name=name: getattr(np, name)(x, s)
        for name in (
            *("minimum", "fmax", "fmin", "hypot", "arctan2", "copysign", "gcd", "lcm", "logaddexp", "fmod"),
            *("floor_divide", "float_power", "bitwise_or", "right_shift", "greater_equal", "nextafter"),
        )
    },
}
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "?", "f4", "f8")
INTEGERS = (3, 0, 300, -1, 70000, 2**31, -(2**40), 2**62, 2**63, -(2**63) - 1)
WAYS = ("argument", "warm argument", "constant", "constant under vmap", "in a loop", "in a branch")
COMPILERS = ("llvm", "numpy")


def outcome(call: Callable[[], Any]) -> Any:
    """The result as an array, or the class of the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.asarray(call())
        except Exception as error:
            return type(error)


def described(x: Any) -> str:
    """An outcome in words."""
    return x.__name__ if isinstance(x, type) else f"{x.dtype}{x.shape} {x.tolist()}"


def are_equal(x: Any, y: Any) -> bool:
    """Whether two outcomes are one."""
    if isinstance(x, type) or isinstance(y, type):
        return x is y
    is_close = (
        np.allclose(x, y, 1e-6 if x.dtype.itemsize == 4 else 1e-12, 0, equal_nan=True) if x.shape == y.shape else False
    )
    return x.dtype == y.dtype and (is_close if x.dtype.kind in "fc" else bool(np.array_equal(x, y)))


@dataclass
class IntegerCall:
    """A function of an array and a Python integer, and how the integer comes to it."""

    name: str
    dtype: str
    way: str
    compiler: str

    def __str__(self) -> str:
        return f"jit({self.name}, compiler={self.compiler!r}), x of {self.dtype}, s as {self.way}"

    def call(self, x: Any, s: int) -> Any:
        """The result of compiled code."""
        f = FUNCTIONS[self.name]
        if self.way == "constant":
            return func.jit(lambda x: f(x, s), compiler=self.compiler)(x)
        if self.way == "constant under vmap":
            return func.vmap(func.jit(lambda x: f(x, s), compiler=self.compiler))(x[None])[0]
        if self.way == "in a loop":
            rows = lambda x, s: func.scan(lambda carry, row: (carry, f(row, s)), 0, x[None])[1][0]  # noqa: E731
            return func.jit(rows, compiler=self.compiler)(x, s)
        if self.way == "in a branch":
            return func.jit(lambda x, s, i: func.cond(i > 0, lambda: f(x, s), lambda: f(x, s)), compiler=self.compiler)(
                x, s, 1
            )
        jitted = _jitted(self.name, self.compiler)
        if self.way == "warm argument":
            outcome(lambda: jitted(x, 2))
            outcome(lambda: jitted(x, 1))
        return jitted(x, s)


@functools.lru_cache(64)
def _jitted(name: str, compiler: str) -> Any:
    return func.jit(FUNCTIONS[name], compiler=compiler)


def build_integers(choices: Choices) -> IntegerCall:
    """A function, a dtype, and a way."""
    name = choices.pick(list(FUNCTIONS))
    return IntegerCall(name, choices.pick(DTYPES), choices.pick(WAYS), choices.pick(COMPILERS))


def check_integers(program: IntegerCall) -> str | None:
    """Compiled code gives NumPy's result or error; it may reject values beyond 64 bits."""
    x = np.arange(3).astype(program.dtype)
    for s in INTEGERS:
        got = outcome(lambda s=s: program.call(x, s))  # type: ignore[misc]
        wanted = outcome(lambda s=s: FUNCTIONS[program.name](x, s))  # type: ignore[misc]
        is_refused = got is ArgumentError and not -(2**63) <= s < 2**63
        is_refused |= not isinstance(wanted, type) and wanted.dtype.kind == "O"
        if not is_refused and not are_equal(got, wanted):
            return f"a Python integer\nfor s = {s}: {described(got)} instead of {described(wanted)}"
    return None


ARGUMENTS = (
    *(3, True, 2.0, 1j, 300, np.int64(3), np.int8(3), np.bool_(True), np.float32(2), np.float64(2), np.complex64(2j)),
    *(
        np.array(3),
        np.array(True),
        np.array(2.0, "f4"),
        np.array([5]),
        np.array([1, 2]),
        np.array([1, 2], "i1"),
        np.array([3.0, 4.0]),
    ),
)
ARRAYS = (np.array([1, 2], "i1"), np.array([1, 2]), np.array([1, 2], "f4"), np.array([True, False]), np.array(2.0))
KEYED = {
    "x * s": lambda x, s: x * s,
    "s + s": lambda x, s: np.add(s, s),
    "by dtype and size": lambda x, s: np.size(s) * (x * s if (x * s).dtype == x.dtype else x + s),
    "where": lambda x, s: np.where(x > 1, x, s),
    "full_like": lambda x, s: np.full_like(x, s),
}
PLACES = ("called", "inside jit", "inside vmap", "inside jvp of jit")


@dataclass
class CallSequence:
    """One jitted function called with arguments of all kinds in turn, and where."""

    name: str
    array: Any
    arguments: Sequence[Any]
    place: str
    compiler: str

    def __str__(self) -> str:
        made = f"jit({self.name}, compiler={self.compiler!r})"
        return f"{made} {self.place} at {self.array!r} with {self.arguments!r} in turn"

    def results(self) -> Any:
        """The results of all calls."""
        inner = func.jit(KEYED[self.name], compiler=self.compiler)

        def in_turn(x: Any, *arguments: Any) -> Any:
            return [inner(x, s) for s in arguments]

        x, arguments = self.array, self.arguments
        if self.place == "inside jit":
            return func.jit(in_turn, compiler=self.compiler)(x, *arguments)
        if self.place == "inside vmap":
            outs = func.vmap(in_turn, in_dims=(0, *[None] * len(arguments)))(x[None], *arguments)
            return [np.asarray(out)[0] for out in outs]
        if self.place == "inside jvp of jit":
            return func.jvp(lambda t: func.jit(in_turn, compiler=self.compiler)(x, *arguments), (1.0,), (1.0,))[0]
        return in_turn(x, *arguments)


def build_sequences(choices: Choices) -> CallSequence:
    """A function, an array, the order of arguments and a place."""
    name = choices.pick(list(KEYED))
    array = choices.pick(ARRAYS)
    place, compiler = choices.pick(PLACES), choices.pick(COMPILERS)
    arguments = ARGUMENTS[:: choices.pick((1, -1))]
    valid = [s for s in arguments if not isinstance(outcome(lambda s=s: KEYED[name](array, s)), type)]  # type: ignore
    return CallSequence(name, array, valid, place, compiler)


def check_sequences(program: CallSequence) -> str | None:
    """Each call gives NumPy's result, whatever the calls before it."""
    wanted = [outcome(lambda s=s: KEYED[program.name](program.array, s)) for s in program.arguments]  # type: ignore
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        got = [np.asarray(x) for x in program.results()]
    for s, x, y in zip(program.arguments, got, wanted, strict=True):
        if not are_equal(x, y):
            return f"a sequence\nfor {s!r}: {described(x)} instead of {described(y)}"
    return None
