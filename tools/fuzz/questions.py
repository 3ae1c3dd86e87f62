"""Campaign: functions of Python that ask for values (`if np.any(x < 0)`, `while error > tol`, `range(n)`) under jit.

Every function is called with arguments that take it along many paths, over and over, in a random order. Values, classes
of results and errors are those of the plain function, and derivatives those of the eager transform. Traces and
compilations take the time. Each function therefore runs in one mode for its value (jit, nested jit, donated arguments,
`jvp`). It runs in one mode for its gradient, and once as a batch or in threads.
"""

from __future__ import annotations

import functools
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import func
from func.errors import FuncError
from tools.fuzz.cases import Tally

QUICK = 6

# x, y: vectors, s: a number, n: an integer, k: a counter of Python; {c}: a number
STEPS = [
    "s = s * 0.5 + np.sum(x)",
    "s = s + np.sin(s) * {c}",
    "x = x * {c} + y",
    "y = np.maximum(x, y) * 0.5",
    "x[0] = s",
    "x[1:] = x[:-1] * 0.5",
    "y[n % 3] += 0.25",
    "n = n + 1",
    "n = int(np.sum(x > {c}))",
    "n = int(s) % 4",
    "n = np.count_nonzero(y < s)",
    "x = np.where(x > s, x, y)",
    "s = max(s, x[0])",
    "s = min(x[1], {c})",
    "x = np.sort(x)",
    "y = y * n",
    "k = k + 1",
    "s = s + float({c})",
    "x, y = y, x",
    "x = np.roll(x, n)",
    "y = np.exp(-x * x)",
    "s = s + x[n % 3]",
    "x = np.concatenate([x[:1], y[1:]])",
    "x = helper(x, s)",
    "y = compiled(y, s)",
    "s = s + np.sum(x[x > {c}])",
    "y[y < s] = {c}",
    "k = k + len(x[x > y])",
    "s = s + np.sum(np.nonzero(x > {c})[0])",
    "s = s + np.outer(x, y)[np.outer(x, y) > {c}].sum()",
]
TESTS = [
    "np.any(x < {c})",
    "(y > {c}).all()",
    "s > {c}",
    "s < x[0]",
    "not np.isfinite(s)",
    "np.isnan(x).any()",
    "n > 1",
    "n == 2",
    "np.allclose(x, y)",
    "np.array_equal(x, y)",
    "x[0]",
    "not s",
    "x[0] > {c} and x[1] > {c}",
    "x[0] < 0 or s > {c}",
    "abs(s) <= abs(y[1])",
    "x.max() == x[0]",
    "np.sign(s) == 1",
    "k < 2",
    "bool(s == {c})",
]
LOOPS = [
    "while abs(s) > {c} and k < 5:",
    "while np.max(np.abs(x)) > 1 + {c} * {c} and k < 4:",
    "for i in range(n):",
    "for i in range(min(max(n, 0), 3)):",
    "for i in range(3):",
]
ENDS = [
    "raise ValueError('x is negative')",
    "return s",
    "return x, n",
    "return y * 2",
    "return 0.0",
    "return s, {{'x': x}}",
    "assert np.all(y > {c}), 'y is small'",
]
NUMBERS = ["0", "0.5", "-0.5", "1", "2", "-1", "0.25", "3"]
VALUES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 0.25, 3.0, -2.5, 1.5]


class Writer:
    """Draws the lines of a function."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.lines: list[str] = []

    def drawn(self, texts: list[str]) -> str:
        """One of the texts, with a number in it."""
        return self.choices.choice(texts).format(c=self.choices.choice(NUMBERS))

    def steps(self, depth: int, count: int) -> None:
        """Statements of a body."""
        pad = "    " * depth
        for _ in range(count):
            kind = self.choices.choice(["step", "step", "step", "if", "if", "else", "loop", "end"])
            if kind == "step" or depth > 3:
                self.lines.append(pad + self.drawn(STEPS))
            elif kind == "loop":
                self.lines.append(pad + self.drawn(LOOPS))
                self.lines.append(f"{pad}    k = k + 1")
                self.steps(depth + 1, self.choices.choice([1, 2]))
            else:
                self.lines.append(f"{pad}if {self.drawn(TESTS)}:")
                if kind == "end":
                    self.lines.append(f"{pad}    {self.drawn(ENDS)}")
                    continue
                self.steps(depth + 1, self.choices.choice([1, 1, 2]))
                if kind == "else":
                    self.lines.append(f"{pad}else:")
                    self.steps(depth + 1, 1)

    def program(self) -> str:
        """The text of a function of two vectors, a number and an integer."""
        self.steps(1, self.choices.choice([2, 3, 4, 5, 6]))
        start = "    x, y, k = x * 1.0, y * 0.5, 0"
        end = self.choice_of_result()
        return "\n".join(["def f(x, y, s, n):", start, *self.lines, f"    return {end}"])

    def choice_of_result(self) -> str:
        """The result of the last line."""
        return self.choices.choice(["x, y, s, n", "s", "np.sum(x) + s", "[x, k]", "{'s': s, 'y': y}"])


def helper(x: Any, s: Any) -> Any:
    """A function that asks."""
    return x * 0.5 if np.sum(x) > s else x - s


def number(value: Any) -> Any:
    """A number that depends on all results."""
    parts = [part for part in func.tree.leaves(value) if np.result_type(part).kind == "f"]
    return sum([np.sum(np.tanh(part)) for part in parts], 0.0 * 1.0)


def outcome(f: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    """The result, or the error that the function raises itself."""
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    try:
        return "result", f(*copies)
    except FuncError:
        raise
    except Exception as error:
        return "error", (type(error).__name__, str(error).split("\n")[0])


def case(choices: random.Random, tally: Tally) -> None:
    """One function, in every mode."""
    text = Writer(choices).program()
    calls = [
        (
            np.array([choices.choice(VALUES) for _ in range(3)]),
            np.array([choices.choice(VALUES) for _ in range(3)]),
            choices.choice(VALUES),
            choices.choice([0, 1, 2, 3]),
        )
        for _ in range(choices.choice([3, 4, 5]))
    ]
    if choices.random() < 0.2:
        calls.append((np.array([np.nan, 1.0, np.inf]), np.ones(3), 1.0, 1))
    compiler = choices.choice(["numpy"] * 5 + ["llvm"])
    order = [choices.choice(calls) for _ in range(8)]
    tally.show(f"{text}\n{compiler}, calls: " + "\n       ".join(map(repr, order)))
    namespace: dict[str, Any] = {"np": np, "helper": helper, "compiled": helper}
    exec(text, namespace)
    f = namespace["f"]
    inside = dict(namespace) | {"compiled": func.jit(helper)}
    exec(text, inside)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = [outcome(f, *args) for args in order]
        slope = func.grad(lambda x, y, s, n: number(f(x, y, s, n)), argnums=(0, 1, 2))
        slopes = [outcome(slope, *args) for args in order]
        ways = modes(f, inside["f"], compiler)
        chosen = [choices.choice([way for way in ways if way[2] == is_slope]) for is_slope in (False, True)]
        for name, g, h in chosen:
            truth = slopes if h else expected
            for args, right in zip(order, truth, strict=True):
                try:
                    got = outcome(g, *args)
                except FuncError as error:
                    if "paths of one function" not in str(error):
                        raise
                    tally.refused(error)
                    break
                tally.checked()
                same(name, got, right)
        if choices.random() < 0.5:
            batched(f, calls, compiler, tally)
        else:
            in_threads(f, order, expected, compiler)


def modes(
    f: Callable[..., Any], inside: Callable[..., Any], compiler: str
) -> list[tuple[str, Callable[..., Any], bool]]:
    """(name, function, whether it is the gradient) of each way to compile."""

    def slope_of(g: Callable[..., Any]) -> Callable[..., Any]:
        return func.grad(lambda x, y, s, n: number(g(x, y, s, n)), argnums=(0, 1, 2))

    def by_jvp(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, s, n: func.jvp(lambda x, y, s: g(x, y, s, n), (x, y, s), (x * 0, y * 0, 0.0 * s))[0]

    jit = functools.partial(func.jit, compiler=compiler, max_paths=64)
    return [
        ("jit", jit(f), False),
        ("jit of a function that calls jit", jit(inside), False),
        ("jit of donated arguments", jit(f, donate_argnums=(0, 1)), False),
        ("grad of jit", slope_of(jit(f)), True),
        ("jit of grad", jit(slope_of(f)), True),
        ("jvp of jit", by_jvp(jit(f)), False),
        ("jit of jvp", jit(by_jvp(f)), False),
    ]


def batched(f: Callable[..., Any], calls: list[Any], compiler: str, tally: Tally) -> None:
    """vmap of jit: the value of every batch element."""
    rows = [args for args in calls if outcome(f, *args)[0] == "result"]
    if not rows:
        return

    def one(x: Any, y: Any, s: Any) -> Any:
        return number(f(x, y, s, rows[0][3]))

    rights = [outcome(one, *args[:3]) for args in rows]
    if any(kind == "error" for kind, _ in rights):
        return
    args = [np.stack([np.asarray(row[place]) for row in rows]) for place in range(3)]
    got = func.vmap(func.jit(one, max_paths=64, compiler=compiler))(*args)
    tally.checked()
    same("vmap of jit", ("result", got), ("result", np.array([float(value) for _, value in rights])))


def in_threads(f: Callable[..., Any], order: list[Any], expected: list[Any], compiler: str) -> None:
    """Several threads call one jitted function."""
    g = func.jit(f, max_paths=64, compiler=compiler)
    faults: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for place in range(len(order)):
                here = (place + first) % len(order)
                with np.errstate(all="ignore"):
                    same("a thread", outcome(g, *order[here]), expected[here])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults and "paths of one function" not in str(faults[0]):
        raise faults[0]


def same(what: str, got: tuple[str, Any], right: tuple[str, Any]) -> None:
    """Equal errors, or trees of equal numbers."""
    assert got[0] == right[0], f"{what}: {got!r}, right: {right!r}"
    if got[0] == "error":
        assert got[1] == right[1], f"{what}: {got[1]!r}, right: {right[1]!r}"
        return
    ones, others = func.tree.flatten(got[1]), func.tree.flatten(right[1])
    assert str(ones[1]) == str(others[1]), f"{what}: {got[1]!r}, right: {right[1]!r}"
    for one, other in zip(ones[0], others[0], strict=True):
        is_equal = np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-9, 1e-9, equal_nan=True)
        assert is_equal, f"{what}: {got[1]!r}, right: {right[1]!r}"
