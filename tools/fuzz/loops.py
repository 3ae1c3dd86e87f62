"""Campaign: irregular loops of Python, which compiled code rolls up where their steps are alike.

A loop runs over a range, two ranges inside each other, or a counter. Its steps read and write rows, slices that grow or
shrink, carried views, neighbours and lists. Some differ in the first or last step, are left out, or end the loop. Both
compilers give NumPy's result, and the gradient of the eager function.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import func
from func.errors import FuncError
from tools.fuzz.cases import Tally

QUICK = 25

# i: a counter, n: how many rows a has; a, b: matrices, v: a vector, s: a number, rows: a list
STEPS = [
    "s = s * 0.5 + a[{i}, 0]",
    "s = np.sin(s) + {i} * 0.25",
    "s = s + np.sum(v[:{i} + 1])",
    "s = s - np.sum(a[{i}:, 1]) * 0.1",
    "v = v * 0.9 + a[{i}]",
    "v = np.roll(v, 1) + s",
    "v = np.where(v > 0.5, v, a[{i}] * 0.5)",
    "v = v + b[:, {i} % m]",
    "v = np.cumsum(v) * 0.3",
    "v = np.concatenate([v[1:], v[:1]]) * 0.8",
    "v[{i} % m] = s",
    "v[: {i} % m] += 0.5",
    "v[{i} % m :] *= 0.5",
    "v[1:] = v[:-1] + 0.1 * s",
    "a[{i}] = v * 0.5",
    "a[{i}] += a[{i} - 1]",
    "a[{i}:] *= 0.9",
    "a[: {i} + 1, 0] += 0.25",
    "a[{i}, : {i} % m + 1] = s",
    "a[n - 1 - {i}] = a[{i}] + 1",
    "a[{i}, {i} % m] -= np.max(v)",
    "a = a + 0.1 * b[{i} % m, 0]",
    "b = b @ (np.eye(m) * 0.5)",
    "b[{i} % m] = v",
    "b.T[{i} % m] += 0.1",
    "b = b.T",
    "v, w = w, v",
    "w = v",
    "w = w + v[::-1] * {i}",
    "w = a[{i}]",
    "w[0] = s * 0.5",
    "rows.append(v * s)",
    "rows.append(a[{i}])",
    "rows[-1] = rows[-1] * 0.5",
    "rows[{i} % len(rows)] = v",
    "s = s + np.sum(rows[{i} // 2 % len(rows)])",
    "v = a[:{i} + 1].sum(axis=0) * 0.2",
    "v = v * (2.0 if {i} % 2 else 0.5)",
    "k = k + 1",
    "k = k + {i}",
    "s = s * 0.9 + k",
    "v[k % m] += 0.2",
    "s = float(k) * 0.1 + s",
    "v = np.sort(v)",
    "v = np.tanh(v + b[{i} % m])",
    "v = v / (1 + np.abs(s))",
    "box['x'] = box['x'] * 0.5 + v",
    "s = s + box['x'][{i} % m]",
    "box['x'], v = v, box['x']",
    "s = func_of(s, {i})",
    "s = max(k, 3) * 0.1 + s",
    "v = v.astype(np.float32).astype(float)",
    "s = s + np.sum(v * z)",
    "z = z + ({i} > 2)",
    "z[{i} % m] = k",
    "a[[0, {i}]] = a[[{i}, 0]]",
    "v[np.array([0, {i} % m])] += 0.3",
]
TESTS = [
    "{i} == 0",
    "{i} == n - 1",
    "{i} > 1",
    "{i} % 2",
    "{i} % 3 == 1",
    "k > 4",
    "len(rows) > 4",
    "{i} < n // 2",
]
HEADS = [
    "for i in range(n):",
    "for i in range(1, n):",
    "for i in range(n - 1, -1, -1):",
    "for i in range(0, n, 2):",
    "for i in [0, 2, 1, 3, 0]:",
    "for i, row in enumerate(a * 1.0):",
    "for i in range(n - 1):",
]
INNER = ["for j in range(i + 1):", "for j in range(3):", "for j in range(i, n):", "for j in range(i % 3):"]


class Writer:
    """Draws the lines of one or two loops."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.lines: list[str] = []

    def steps(self, depth: int, counters: list[str], count: int) -> None:
        """Statements of a body."""
        choose = self.choices.choice
        for _ in range(count):
            counter, pad = choose(counters), "    " * depth
            kind = choose(["step"] * 6 + ["if", "else", "leave", "loop"])
            if kind == "step" or (kind == "loop" and len(counters) > 1):
                self.lines.append(pad + choose(STEPS).format(i=counter))
            elif kind == "loop":
                self.lines.append(pad + choose(INNER))
                self.steps(depth + 1, [*counters, "j"], choose([1, 2]))
            elif kind == "leave":
                self.lines.append(f"{pad}if {choose(TESTS)}:".format(i=counter))
                self.lines.append(pad + "    " + choose(["continue", "break"]))
            else:
                self.lines.append(f"{pad}if {choose(TESTS)}:".format(i=counter))
                self.lines.append(pad + "    " + choose(STEPS).format(i=counter))
                if kind == "else":
                    self.lines.append(pad + "else:")
                    self.lines.append(pad + "    " + choose(STEPS).format(i=counter))

    def program(self) -> str:
        """The text of a function of a matrix and a vector."""
        choose = self.choices.choice
        for _ in range(choose([1, 1, 2])):
            if choose([0, 0, 0, 1]):
                self.lines += ["    i = 0", "    while i < n:"]
                self.steps(2, ["i"], choose([1, 2, 3]))
                self.lines = [line.replace("continue", "pass") for line in self.lines]
                self.lines.append(f"        i += {choose([1, 1, 2])}")
            else:
                self.lines.append("    " + choose(HEADS))
                self.steps(2, ["i"], choose([1, 2, 3, 4, 5]))
        start = (
            "    a, b, v, w, s, k, n, m = a * 1.0, np.outer(v, v) * 0.3, v * 1.0, v * 2.0, np.sum(v), 0, len(a), len(v)"
        )
        more = "    rows, box, z = [w * 0.5], {'x': v * 0.25}, np.zeros(len(v))"
        result = "    return a, b, v, w, s, k, np.stack(rows), box, z"
        return "\n".join(["def f(a, v):", start, more, *self.lines, result])


def func_of(s: Any, i: int) -> Any:
    """A function that a step calls."""
    return s * 0.5 + np.cos(i * 1.0)


def total(outs: Any) -> Any:
    """A number that depends on all results."""
    parts = [part for part in func.tree.leaves(outs) if np.result_type(part).kind == "f"]
    weights = [np.cos(np.arange(1.0, np.size(part) + 1)).reshape(np.shape(part)) for part in parts]
    return sum([np.sum(weight * np.tanh(part)) for weight, part in zip(weights, parts, strict=True)])


def case(choices: random.Random, tally: Tally) -> None:
    """One program, by both compilers."""
    text = Writer(choices).program()
    rows, columns = choices.choice([9, 12, 20, 33]), choices.choice([3, 4, 6])
    a = (np.arange(1.0, rows * columns + 1).reshape(rows, columns) * 31 % 47) / 53
    v = (np.arange(1.0, columns + 1) * 17 % 29) / 31
    tally.show(f"{text}\na: {rows} rows of {columns}")
    namespace: dict[str, Any] = {"np": np, "func_of": func_of}
    exec(text, namespace)
    f = namespace["f"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = f(a.copy(), v.copy())
        except (ValueError, IndexError, TypeError):
            return  # NumPy refuses it
        if not all([np.max(np.abs(leaf), initial=0) < 1e6 for leaf in func.tree.leaves(expected)]):
            return
        slopes = func.grad(lambda a, v: total(f(a, v)), argnums=(0, 1))(a, v)
        for compiler in ("llvm", "numpy"):
            try:
                got = func.jit(f, compiler=compiler)(a.copy(), v.copy())
                compiled = func.jit(func.grad(lambda a, v: total(f(a, v)), argnums=(0, 1)), compiler=compiler)(a, v)
            except FuncError as error:
                tally.refused(error)
                continue
            tally.checked(2)
            same(compiler, got, expected, 1e-9)
            same(f"the gradient by {compiler}", compiled, slopes, 1e-5)


def same(what: str, got: Any, expected: Any, rtol: float) -> None:
    """Equal shapes and numbers."""
    pairs = zip(func.tree.leaves(got), func.tree.leaves(expected), strict=True)
    for place, (one, other) in enumerate(pairs):
        right = np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=rtol, atol=rtol, equal_nan=True)
        assert right, f"{what}: result {place} is {one!r}, right: {other!r}"
