"""Memory: arrays are made, viewed, copied and written; a write through one name is read through another.

A program makes an array and then takes up to three steps, each on the newest array or on the first one. Every array is
read at the end: itself, in the order of its memory, its flags, and the others that share its memory. It is read once
more after a write to the newest one. NumPy is the truth. For derivatives its differences are, which are exact: each
step is linear in x, or puts constants in places that do not depend on x.

Each mode has three parts: two steps for all shapes, three steps from a matrix in Fortran order, four steps for all.
The first two end under `--complete`.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

import func
from tools.enumerate.scope import Choices, OutOfScope, Part

QUICK = 80

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = (
    *[shape for rank in range(4) for shape in itertools.product((1, 2, 3), repeat=rank)],
    (0,),
    (0, 3),
    (2, 0),
)
PLACES: dict[str, Callable[[Shape, Shape, type], Any]] = {
    "C": lambda lead, shape, dtype: np.zeros((*lead, *shape), dtype),
    "F": lambda lead, shape, dtype: np.zeros((*lead, *shape[::-1]), dtype).transpose(
        [*range(len(lead)), *reversed(range(len(lead), len(lead) + len(shape)))]
    ),
    "strided": lambda lead, shape, dtype: np.zeros((*lead, *[2 * n for n in shape]), dtype)[_each(lead, shape, 2)],
    "reversed": lambda lead, shape, dtype: np.zeros((*lead, *shape), dtype)[_each(lead, shape, -1)],
    "permuted": lambda lead, shape, dtype: np.moveaxis(
        np.zeros((*lead, *shape[-1:], *shape[:-1]), dtype), len(lead), -1
    ),
}
"""Memory for an argument, or with leading lengths for a batch of them, by how it lies."""


def _each(lead: Shape, shape: Shape, step: int) -> tuple[slice, ...]:
    return (slice(None),) * len(lead) + (slice(None, None, step),) * len(shape)


OF_ARGUMENT = (
    "x", "x * 1", "np.array(x)", "x.copy('K')", "np.zeros_like(x)", "x.copy('F')", "np.ones_like(x, order='f')",
    "np.full_like(x, 2, order='C')", "np.asarray(x, order='F')", "np.asfortranarray(x)", "np.ascontiguousarray(x)",
    "np.stack([x, x])[1]", "np.array([x, x], order='F')",
)  # fmt: skip
CONSTRUCTED = (
    "np.zeros(s, order='F')", "np.copy(k)", "np.full(s, 2.5, order='C')",
    "np.zeros(s, order='C')", "np.ones(s, order='C')", "np.ones(s, order='F')", "np.empty(s, order='f')",
    "np.zeros_like(k)", "np.ones_like(k, order='F')", "np.empty_like(k, order='K')", "np.full_like(k, 3.0)",
    "np.array(k)", "np.array(k, order='F')", "np.copy(k, order='C')", "np.asarray(k.tolist(), order='F')",
    "np.array(k.T)", "np.array(k[::-1])", "np.zeros(s[::-1]).T", "np.zeros((2, *s), order='F')[1]", "np.eye(3)",
    "np.identity(2)", "np.arange(6.0)", "np.linspace(1.0, 5.0, 5)", "np.arange(6.0).reshape((2, 3), order='F')",
)  # fmt: skip
"""`k` is a plain array of the shape s in Fortran order; np.empty is filled at once."""

VIEWS = (
    "t[0]", "t[1:]", "t[::-1]", "t[..., 0]", "t[:, ::-2]", "t[..., None]", "t[...]", "t[()]", "t[None, :, -1:]",
    "t.T", "t.swapaxes(0, 1)", "np.moveaxis(t, 0, -1)", "t.transpose()", "t.squeeze()", "np.expand_dims(t, 1)",
    "t.reshape(-1)", "t.reshape(t.shape[::-1])", "np.reshape(t, t.shape[::-1], order='f')",
    "t.reshape(-1, order='A')", "np.reshape(t, (-1, 1, *t.shape[-1:]))",
    "t.ravel()", "np.ravel(t, 'F')", "np.ravel(t, order='f')", "t.ravel('A')", "t.ravel(order='k')",
    "t.diagonal()", "np.einsum('ii->i', t)", "t.real", "t.imag", "np.broadcast_to(t, (2, *t.shape))", "np.asarray(t)",
    "np.flip(t)", "np.split(t, [1])[-1]", "np.atleast_2d(t)",
)  # fmt: skip
COPIES = (
    "t.copy()", "t.copy('f')", "np.copy(t)", "np.array(t)", "np.array(t, order='F')", "np.asarray(t, order='f')",
    "np.asfortranarray(t)", "np.ascontiguousarray(t)", "t * 1", "t.flatten()", "t.flatten('f')",
    "t.astype(t.dtype, order='f')", "np.zeros_like(t)", "np.ones_like(t, order='A')", "np.positive(t, order='f')",
    "np.array([t, t])",
)  # fmt: skip
WRITES = (
    "t[...] = v(t)", "t[:] = v(t)", "t[:] = v(t[0])", "t[0] = v(t[0])", "t[..., -1] = v(t[..., -1])",
    "t[1:, ::-1] = v(t[1:])", "t[(0,) * t.ndim] = e", "t[m(t)] = e", "t[m(t)] = v(t[m(t)])",
    "t[[0, -1]] = v(t[[0, -1]])", "t[..., [0]] = e", "t += v(t)", "t *= 2", "t[0] += e", "np.add(t, v(t), out=t)",
    "np.multiply(t, 3, t[...])", "np.negative(v(t), out=t)",
    "np.copyto(t, v(t))", "np.copyto(t, e, where=m(t))", "np.put(t, [0, -1], [e, 2 * e])",
    "t.put([-1], e)", "np.place(t, m(t), [e])", "np.putmask(t, m(t), v(t))", "np.fill_diagonal(t, e)", "t.fill(e)",
    "t.sort()", "t.sort(0)", "t.partition(0)", "t.flat[:] = v(t)", "t.flat[-1] = e", "t.flat = v(t)",
    "t.T[...] = v(t.T)", "t.ravel()[-1] = e", "t.ravel('K')[0] = e", "t.ravel('f')[-1:] = e",
    "t.reshape(-1)[...] = e", "np.put_along_axis(t, np.zeros_like(t[:1], int), e, 0)",
)  # fmt: skip
"""`e` is a number of x; `v(t)` is an array of the shape of t, in C order, of numbers of x; `m(t)` a mask."""


def _code(line: str) -> CodeType:
    return compile(line, "<step>", "exec")


CODES = {line: _code(line) for line in WRITES} | {
    line: _code(f"t = {line}") for line in (*OF_ARGUMENT, *CONSTRUCTED, *VIEWS, *COPIES)
}
NAMES = "abcd"


def _mask(t: Any) -> Any:
    return (np.arange(t.size) % 3 != 1).reshape(t.shape)


def _plain_array(shape: tuple[int, ...]) -> Any:
    numbers = np.empty(shape, order="F")
    numbers[...] = 1.0 + (np.arange(numbers.size) * 3 % 7).reshape(shape)
    return numbers


@dataclass
class Program:
    """A program: how x lies, the steps, each with the place of the array it is for, and the facts that NumPy gives."""

    shape: tuple[int, ...]
    placed: str
    dtype: type
    steps: list[tuple[str, int]] = field(default_factory=list)
    mode: str = ""

    def __str__(self) -> str:
        lines = [f"x of shape {self.shape}, {self.dtype.__name__}, {self.placed} order; {self.mode}"]
        count = 0
        for line, place in self.steps:
            text = re.sub(r"\bt\b", NAMES[place], line)
            if line not in WRITES:
                text, count = f"{NAMES[count]} = {text}", count + 1
            lines.append(text)
        return "\n".join(lines)

    def x(self, factor: float = 1.0) -> Any:
        """The argument: different numbers, which are not constants of a program."""
        numbers = 2.25 + np.arange(float(np.prod(self.shape))) * 5 % 11
        numbers = numbers * (1 + 2j) if self.dtype is complex else numbers
        x = self.filled((), factor * numbers.reshape(self.shape))
        return x if self.shape or self.mode != "vmap" else x[()]  # the elements of a batch of numbers are numbers

    def filled(self, lead: Shape, numbers: Any) -> Any:
        """Numbers that lie in memory as the argument does."""
        memory = PLACES[self.placed](lead, self.shape, self.dtype)
        memory[...] = numbers
        return memory


class Run:
    """A run of a program on an argument: its arrays."""

    def __init__(self, program: Program, x: Any) -> None:
        first = x.reshape(-1)
        self.number = first[0] * 3 if first.size else 5.0
        self.names: dict[str, Any] = {"np": np, "x": x, "s": program.shape, "m": _mask, "e": self.number}
        self.names |= {"k": _plain_array(program.shape), "v": self.values}
        self.arrays: list[Any] = []

    def values(self, t: Any) -> Any:
        """Numbers of x in the shape of an array."""
        number = self.number if t.dtype.kind == "c" else np.real(self.number)
        return number * (1.0 + np.arange(t.size)).reshape(t.shape)

    def step(self, line: str, place: int) -> None:
        """One step."""
        self.names["t"] = self.arrays[place] if self.arrays else None
        exec(CODES[line], self.names)
        if line in WRITES:
            self.arrays[place] = self.names["t"]
        else:
            if "empty" in line:
                self.names["t"][...] = 4.0
            self.arrays.append(self.names["t"])

    def read(self) -> list[Any]:
        """Everything that the arrays hold, as new arrays, and in the order of their memory."""
        return [part for a in self.arrays for part in (a * 1, np.ravel(a, order="K") * 1)]

    def facts(self) -> list[Any]:
        """The facts about memory: shapes, orders, and arrays that share memory."""
        found: list[Any] = [_flags(a) for a in self.arrays]
        for first, second in itertools.combinations(self.arrays, 2):
            if first.ndim and second.ndim:
                found.append(bool(np.shares_memory(first, second)))
        return found

    def probe(self) -> None:
        """A write to the newest array, where it may be written."""
        last = self.arrays[-1]
        if last.ndim and last.flags.writeable:
            last[...] = self.values(last) + last


def _flags(a: Any) -> Any:
    flags = (bool(a.flags.c_contiguous), bool(a.flags.f_contiguous), bool(a.flags.writeable)) if a.ndim else ()
    return tuple(a.shape), str(a.dtype), flags


def _run(program: Program, x: Any, facts: list[Any]) -> list[Any]:
    run = Run(program, x)
    for line, place in program.steps:
        run.step(line, place)
    facts[:] = run.facts()
    before = run.read()
    run.probe()
    return [*before, *run.read()]


def _converts(line: str) -> bool:
    """Whether a step makes an array by a converter, which outside of transforms takes a tensor's numbers."""
    return re.search(r"np\.(array|asarray|asfortranarray|ascontiguousarray)", line) is not None


def _places(made: str, shape: Shape, mode: str) -> list[str]:
    """How the argument may lie in memory, where it matters for the first step."""
    if made not in OF_ARGUMENT[:5] or not shape or mode == "tensors":
        return ["C"]
    return ["C", "F"][: len(shape)] if made != "x" else [*PLACES] if len(shape) > 1 else ["C", "strided", "reversed"]


def _built(choices: Choices, mode: str, shapes: Sequence[Shape], makes: Sequence[str], most: int) -> Program:
    count = choices.pick(range(most))
    shape = choices.pick(shapes)
    made = choices.pick(makes)
    placed = choices.pick(_places(made, shape, mode))
    may_be_complex = shape == (2, 2) and mode not in ("tensors", "jit")
    dtype = choices.pick([float, complex] if may_be_complex else [float])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _grown(choices, Program(shape, placed, dtype, [(made, 0)], mode), count)


def _grown(choices: Choices, program: Program, count: int) -> Program:
    """The program with some steps after the first one, each of which NumPy can do."""
    (made, _), mode = program.steps[0], program.mode
    run = Run(program, program.x())
    try:
        run.step(made, 0)
        for _ in range(count):
            line, newest = choices.pick((*VIEWS, *WRITES, *COPIES)), len(run.arrays) - 1
            if line.startswith("np.einsum") and 0 in program.shape:  # NumPy reads past an empty array here
                raise OutOfScope
            if mode == "tensors" and _converts(line):
                raise OutOfScope
            place = choices.pick([newest, 0] if newest else [0])
            if mode == "intercept" and isinstance(run.arrays[place], np.generic):
                raise OutOfScope  # what NumPy makes of its scalars is not intercepted
            if line == "t.imag" and run.arrays[place].dtype.kind != "c":
                raise OutOfScope  # new zeros, which nobody can write
            run.step(line, place)
            program.steps.append((line, place))
            if not all([isinstance(a, (np.ndarray, np.generic)) for a in run.arrays]):
                raise OutOfScope
    except (ValueError, IndexError, TypeError, AttributeError, Warning):  # no step for arrays of this kind
        raise OutOfScope from None
    return program


def _differs(what: str, got: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    if len(got) != len(wanted):
        return f"{what}: {len(got)} arrays, {len(wanted)} in NumPy"
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        g = np.asarray(g.detach() if isinstance(g, func.Tensor) else g)
        if g.shape != np.shape(w) or not np.array_equal(g, w):
            return f"{what}: result {i}\ngot {np.array(g).tolist()}\nNumPy {np.array(w).tolist()}"
    return None


def _differ_in_facts(what: str, got: list[Any], wanted: list[Any]) -> str | None:
    return None if got == wanted else f"{what}: facts\ngot   {got}\nNumPy {wanted}"


STEP = 1 / 64
"""So small that numbers of x pass no constants; their differences are exact."""


class Truth:
    """NumPy's results, facts, and the differences along x."""

    def __init__(self, program: Program) -> None:
        self.facts: list[Any] = []
        self.results = _run(program, program.x(), self.facts)
        moved = _run(program, program.x(1 + STEP), [])
        self.slopes = [(after - before) / STEP for before, after in zip(self.results, moved, strict=True)]


def _jvp(program: Program, truth: Truth) -> str | None:
    facts: list[Any] = []
    x = program.x()
    outs, tangents = func.jvp(lambda x: _run(program, x, facts), (x,), (x.copy(),))
    return (
        _differs("jvp", outs, truth.results)
        or _differs("tangents", tangents, truth.slopes)
        or _differ_in_facts("jvp", facts, truth.facts)
    )


def _weighed(outs: Sequence[Any]) -> Any:
    total: Any = 0.0
    for i, out in enumerate(outs):
        total = total + np.sum(out * (1.0 + i + np.arange(out.size)).reshape(out.shape))
    return total


def _grad(program: Program, truth: Truth) -> str | None:
    facts: list[Any] = []
    x = program.x()
    gradient = func.grad(lambda x: _weighed(_run(program, x, facts)))(x)
    slope, wanted = np.sum(gradient * x), _weighed(truth.slopes)
    if abs(slope - wanted) > 1e-9 * (1 + abs(wanted)):
        return f"grad\ngot {slope}\nNumPy {wanted}"
    return _differ_in_facts("grad", facts, truth.facts)


def _vmap(program: Program, truth: Truth, axes: Sequence[int] | None = None) -> str | None:
    lanes = [program.x(), program.x(2.0)]
    second = _run(program, program.x(2.0), [])
    wanted = [np.stack(pair) for pair in zip(truth.results, second, strict=True)]
    for axis in range(len(program.shape) + 1) if axes is None else axes:
        facts: list[Any] = []
        batch = np.moveaxis(program.filled((2,), np.stack(lanes)), 0, axis)
        try:
            outs = func.vmap(lambda x, facts=facts: _run(program, x, facts), in_dims=axis)(batch)
        except func.errors.RaggedLanesError:
            continue
        difference = _differs(f"vmap {axis}", outs, wanted)
        if difference is not None:
            return difference
    return None


def _staged(program: Program, truth: Truth) -> str | None:
    facts: list[Any] = []
    x = program.x()
    staged = func.make_program(lambda x: _run(program, x, facts))(x)
    outs = staged(x)
    return _differs("staged", outs if isinstance(outs, (list, tuple)) else [outs], truth.results) or _differ_in_facts(
        "staged", facts, truth.facts
    )


def _jit(program: Program, truth: Truth) -> str | None:
    outs = func.jit(lambda x: _run(program, x, []))(program.x())
    return _differs("jit", outs, truth.results)


def _inner(program: Program, truth: Truth) -> str | None:
    """In functions that are traced by themselves while another one is traced; they raise an error instead of
    guessing.
    """

    def run(x: Any) -> list[Any]:
        return _run(program, x, [])

    with_rule = func.custom_jvp(run)
    with_rule.defjvp(lambda primals, tangents: (run(*primals), run(*tangents)))
    calls = {
        "checkpoint": func.checkpoint(run),
        "custom_jvp": with_rule,
        "cond": lambda x: func.cond(np.sum(np.real(x)) > -1, run, run, x),
    }
    for name, call in calls.items():
        try:
            outs = func.make_program(call)(program.x())(program.x())
        except func.errors.SharedMemoryError:
            continue
        difference = _differs(name, outs if isinstance(outs, (list, tuple)) else [outs], truth.results)
        if difference is not None:
            return difference
    return None


def _plain(program: Program, truth: Truth) -> str | None:
    facts: list[Any] = []
    return _differs("plain", _run(program, program.x(), facts), truth.results) or _differ_in_facts(
        "plain", facts, truth.facts
    )


def _intercepted(program: Program, truth: Truth) -> str | None:
    axes = (0,) if program.shape else ()
    with func.intercept():
        return _plain(program, truth) or _jvp(program, truth) or _vmap(program, truth, axes) or _staged(program, truth)


def _tensors(program: Program, truth: Truth) -> str | None:
    for requires_grad in (False, True):
        facts: list[Any] = []
        x = func.tensor(program.x(), requires_grad=requires_grad)
        outs = _run(program, x.copy("K") if requires_grad else x, facts)
        difference = _differs(f"tensors, requires_grad={requires_grad}", outs, truth.results)
        if difference is None:
            difference = _differ_in_facts(f"tensors, requires_grad={requires_grad}", facts, truth.facts)
        if difference is not None:
            return difference
    total = _weighed(outs)
    if total.requires_grad:
        total.backward()
    slope, wanted = np.sum(x.grad.numpy() * program.x()) if x.grad is not None else 0.0, _weighed(truth.slopes)
    return None if abs(slope - wanted) < 1e-9 * (1 + abs(wanted)) else f"backward\ngot {slope}\nNumPy {wanted}"


def _eager(program: Program, truth: Truth) -> str | None:
    return _jvp(program, truth) or (_grad(program, truth) if program.dtype is float else None)


def _parts(mode: str, compare: Callable[[Program, Truth], str | None], makes: Sequence[str]) -> list[Part]:
    first = [make for make in ("np.zeros(s, order='F')", "x.copy('F')") if make in makes][:1]
    scopes = {"": (SHAPES, makes, 2), "_three": ([(2, 3)], first, 3), "_four": (SHAPES, makes, 4)}
    return [
        Part(
            mode + name,
            lambda choices, scope=scope: _built(choices, mode, *scope),
            lambda program: compare(program, Truth(program)),
        )
        for name, scope in scopes.items()
    ]


PARTS = (
    *_parts("eager", _eager, OF_ARGUMENT),
    *_parts("vmap", _vmap, OF_ARGUMENT),
    *_parts("staged", _staged, OF_ARGUMENT),
    *_parts("intercept", _intercepted, (*CONSTRUCTED, *OF_ARGUMENT)),
    *_parts("tensors", _tensors, [make for make in OF_ARGUMENT if not _converts(make)]),
    *_parts("jit", _jit, OF_ARGUMENT)[2:],
    *_parts("inner", _inner, OF_ARGUMENT)[:2],
)
