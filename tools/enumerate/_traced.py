"""Traced programs: small functions under up to two of vmap, Jacobians, gradients, Hessians, tangents; unrolled loops.

Sizes of batches, inputs and outputs coincide. Each trace goes through each pass, re-rolling, all passes, NumPy source
and native code, and is compared with its plain evaluation.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

import func
from func.interpreters.compile import passes
from func.interpreters.compile.execution import compile_program
from func.interpreters.compile.inlining import inline
from func.interpreters.compile.passes.reroll.reroll import reroll
from func.interpreters.core import Aval
from func.interpreters.program.plain_runs import evaluated, plain_run
from func.interpreters.program.program import Program
from tools.enumerate import _programs as small
from tools.enumerate.scope import Choices, OutOfScope

Function: TypeAlias = Callable[[Any], Any]
Shape: TypeAlias = tuple[int, ...]

ULP = 4096.0
"""Units in the last place of the largest number of an output by which rounding may change it."""
MOST = 12
"""The most elements of an input."""


def _matrix(rows: int, columns: int) -> Any:
    """A matrix of other numbers in each place."""
    return (1 + np.arange(rows * columns).reshape(rows, columns) * 3 % 7) / 8


def _updated(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[-1] ** 2
    y[-1] += x[0]
    return y


def _added_at(x: Any) -> Any:
    y = x * x
    np.add.at(y, np.array([0, -1, 0]), x[np.array([-1, 0, 0])])
    return y


def _unrolled(x: Any) -> Any:
    y = x
    for k in range(3):
        y = np.sin(_matrix(len(x), len(x)) @ y) + x[k % len(x)]
    return y


def _running(x: Any) -> Any:
    return func.scan(lambda carry, row: (carry * row + x[0], carry), x[-1], x)[1]


def _positive(x: Any) -> Any:
    return np.outer(x, x) / 8 + np.eye(len(x))


VECTORS: dict[str, Function] = {
    "sin(x) * x": lambda x: np.sin(x) * x,
    "A @ x": lambda x: _matrix(2, len(x)) @ x,
    "x * (A @ x)": lambda x: x * (_matrix(len(x), len(x)) @ x),
    "outer": lambda x: np.outer(x, x),
    "outer of a sum": lambda x: np.outer(x, x).sum(axis=0),
    "normalised": lambda x: x / np.sqrt(np.sum(x * x) + 1),
    "softmax": lambda x: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
    "cumsum": lambda x: np.cumsum(x) * x,
    "sort": lambda x: np.sort(x)[::-1] * x,
    "prod": lambda x: np.prod(x),
    "max": lambda x: np.max(x) * x,
    "argmax": lambda x: x[np.argmax(x)] ** 2,
    "variance": lambda x: np.var(x) * x - np.mean(x),
    "rotated": lambda x: np.concatenate([x[1:], x[:1]]) * x,
    "differences": lambda x: x[:, None] - x[None, :],
    "pieces": lambda x: np.concatenate([x * x, x[::-1], 2 * x[:1]]),
    "where": lambda x: np.where(x > 0, x * x, -x),
    "gather": lambda x: x[np.array([0, 0, -1])] * x[0],
    "updated": _updated,
    "added at": _added_at,
    "diag": lambda x: np.diag(x) @ x,
    "einsum": lambda x: np.einsum("i,ij,j->j", x, _matrix(len(x), len(x)), x),
    "power": lambda x: (x * x + 1) ** x[0],
    "unrolled": _unrolled,
    "scan": _running,
    "branch": lambda x: func.cond(x[0] > 0, lambda: x * x, lambda: x[::-1] * x[0]),
    "jit": lambda x: func.jit(lambda y: y * y[::-1])(x) * x,
    "phase": lambda x: np.real(np.exp(1j * x) * (x + 2j)),
    "solve": lambda x: np.linalg.solve(_positive(x), x),
    "inverse": lambda x: np.linalg.inv(_positive(x)) @ x,
    "slogdet": lambda x: np.linalg.slogdet(_positive(x))[1] * x,
    "cholesky": lambda x: np.linalg.cholesky(_positive(x))[-1],
    "convolution": lambda x: np.convolve(x, x),
}
MATRICES: dict[str, Function] = {
    "rows": lambda x: np.sin(x) * x[0],
    "x.T @ x": lambda x: x.T @ x,
    "x @ A @ x.T": lambda x: x @ _matrix(x.shape[1], x.shape[1]) @ x.T,
    "trace": lambda x: np.trace(x @ x.T),
    "columns": lambda x: np.sum(x * x, axis=0) * x[:, :1],
    "centred": lambda x: x - x.mean(axis=1, keepdims=True),
    "largest of rows": lambda x: np.max(x, axis=1),
    "softmax of rows": lambda x: np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True),
    "ravel": lambda x: np.ravel(x.T) * np.ravel(x),
    "triangle": lambda x: np.tril(x) @ x.T,
    "diagonal": lambda x: np.diagonal(x) ** 2,
    "stack": lambda x: np.stack([x[0], x[-1] * x[0]], axis=1),
    "updated column": lambda x: _updated_column(x),
}
BASES = (
    *[(name, f, ((1,), (2,), (3,))) for name, f in VECTORS.items()],
    *[(name, f, ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3))) for name, f in MATRICES.items()],
)
"""Functions, and the shapes of what they take."""


def _updated_column(x: Any) -> Any:
    y = x * x
    y[:, 0] = x[:, -1] * 3
    return y


def _weighted(f: Function) -> Function:
    """A number made of all outputs."""

    def value(x: Any) -> Any:
        out = f(x)
        return np.sum(out * (1 + np.arange(np.size(out)).reshape(np.shape(out))))

    return value


def _along(f: Function) -> Function:
    return lambda x: func.jvp(f, (x,), (1 + np.arange(np.size(x), dtype=x.dtype).reshape(np.shape(x)),))[1]


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "grad": lambda f: func.grad(_weighted(f)),
    "hessian": lambda f: func.hessian(_weighted(f)),
    "jvp": _along,
}
BATCHES = {"vmap": (0, 0), "vmap over the last": (-1, -1), "vmap over the last, to the first": (-1, 0)}
"""The axes of inputs and outputs."""


@dataclass
class Traced:
    """A function under transforms, as a Program."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    dtype: str
    found: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} of {self.dtype}{self.shapes}\n{self.program.text()}"

    @functools.cached_property
    def program(self) -> Program:
        """Its program, with calls inlined."""
        with small.quiet():
            examples = [np.ones(shape, self.dtype) for shape in self.shapes]
            return inline(func.make_program(self.function)(*examples).pruned())

    def arguments(self, kind: str) -> list[Any]:
        """Arguments of a kind."""
        return [
            small.numbers(Aval(shape, np.dtype(self.dtype)), kind, place) for place, shape in enumerate(self.shapes)
        ]

    def wanted(self, kind: str) -> Sequence[Any]:
        """The outputs by plain evaluation."""
        if kind not in self.found:
            self.found[kind] = evaluated(plain_run(self.program), self.arguments(kind))
        return self.found[kind]  # type: ignore[no-any-return]


def build(choices: Choices) -> Traced:
    """A function, a shape, and up to two transforms, the inner one first."""
    name, function, shapes = choices.pick(BASES)
    shape = choices.pick(shapes)
    for _ in range(choices.pick((0, 1, 2))):
        transform = choices.pick([*TRANSFORMS, *BATCHES])
        if transform in TRANSFORMS:
            function = TRANSFORMS[transform](function)
        else:
            in_axis, out_axis = BATCHES[transform]
            size = choices.pick(sorted({1, 2, *shape}))
            function = func.vmap(function, in_dims=in_axis, out_dims=out_axis)
            shape = (size, *shape) if in_axis == 0 else (*shape, size)
        name = f"{transform}({name})"
    if np.prod(shape) > MOST:
        raise OutOfScope
    return Traced(name, function, (shape,), choices.pick(("float64", "float32")))


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
}
OPERANDS = ("carry", "carry before", "x[i]", "w[-1-i]", "y", "i", "2")
OUTPUTS = ("the last", "all", "all from the last", "the last and all")


@dataclass(frozen=True)
class Loop:
    """A loop in Python: the steps, their order, the equations of a step and what they take, what is returned."""

    count: int
    backwards: bool
    equations: tuple[tuple[str, str, str], ...]
    outputs: str

    def __str__(self) -> str:
        order = "backwards" if self.backwards else "forwards"
        return f"{self.count} steps {order} of {self.equations}, {self.outputs}"

    def __call__(self, x: Any, w: Any, y: Any) -> Any:
        """The last carry, all of them, or both."""
        carry, before = y, y * 2
        carries = []
        for i in range(self.count)[:: -1 if self.backwards else 1]:
            value = {"carry": carry, "carry before": before, "x[i]": x[i], "w[-1-i]": w[-1 - i], "y": y, "i": i, "2": 2}
            for name, first, second in self.equations:
                value["it"] = STEPS[name](value[first], value[second])
            carry, before = value["it"], carry
            carries.append(carry)
        if self.outputs == "the last":
            return carry
        stack = np.stack(carries[::-1] if self.outputs == "all from the last" else carries)
        return (carry, stack) if "and" in self.outputs else stack

    def total(self, x: Any, w: Any, y: Any) -> Any:
        """The sum of all outputs, weighted by squares."""
        outs = self(x, w, y)
        return sum([np.sum(out * out * 1.0) for out in (outs if isinstance(outs, tuple) else (outs,))])


def build_loop(choices: Choices) -> Traced:
    """An unrolled loop of two to four steps, of one or two equations each, or its gradient."""
    count, backwards = choices.pick((3, 2, 4)), choices.pick((False, True))
    equations = [(choices.pick(tuple(STEPS)), choices.pick(OPERANDS), choices.pick(OPERANDS))]
    if choices.pick((False, True)):
        equations.append((choices.pick(tuple(STEPS)), "it", choices.pick(OPERANDS)))
    row = choices.pick(((), (2,)))
    loop = Loop(count, backwards, tuple(equations), choices.pick(OUTPUTS))
    shapes = (count, *row), (count, *row), row
    if choices.pick((False, True)):
        return Traced(f"grad of {loop}", func.grad(loop.total, argnums=(0, 1, 2)), shapes, "float64")
    return Traced(str(loop), loop, shapes, "float64")


def rerolled(program: Program) -> Program:
    """The program with all repeated steps as loops."""
    return reroll(program, 2, 2, 2)


def _compare(traced: Traced, run: Callable[..., Any]) -> str | None:
    variables = [None] * len(traced.program.outputs)
    level = "seeds" if any([e.primitive.name == "seed" for e in traced.program.equations]) else "rounding"
    for kind in small.FINITE:
        got = run(*[np.array(x) for x in traced.arguments(kind)])
        text = small.difference(got, traced.wanted(kind), variables, level, ULP * float(np.finfo(traced.dtype).eps))
        if text is not None:
            head, _, rest = text.partition("\n")
            return f"{head}\n{kind} arguments {traced.arguments(kind)}\n{rest}"
    return None


def check_passes(thresholds: Callable[[], contextlib.AbstractContextManager[None]], traced: Traced) -> str | None:
    """Each pass alone, re-rolling, and the pipeline."""
    with thresholds(), small.quiet():
        for apply_pass in (*passes.PIPELINE, rerolled, passes.optimize):
            changed = apply_pass(traced.program)
            if changed is traced.program:
                continue
            text = _compare(traced, functools.partial(evaluated_again, changed))
            if text is not None:
                head, _, rest = text.partition("\n")
                return f"{apply_pass.__name__}: {head}\n{rest}\nafter the pass:\n{changed.text()}"
    return None


def evaluated_again(program: Program, *args: Any) -> Any:
    """The outputs of a program by plain evaluation."""
    return evaluated(plain_run(program), args)


COMPILERS = ("numpy", "llvm")


def check_code(forms: Sequence[Callable[[], contextlib.AbstractContextManager[None]]], traced: Traced) -> str | None:
    """NumPy source and native code, in each form."""
    for thresholds in forms:
        for compiler in COMPILERS:
            with small.quiet():
                with thresholds():
                    run = compile_program(traced.program, np, compiler).call
                text = _compare(traced, run)
            if text is not None:
                return f"{compiler}: {text}"
    return None
