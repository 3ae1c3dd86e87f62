"""Machine 3, the promises of compositions besides values: effects, runs of the user's function, memory, garbage.

`effects`: bodies of branches and loops have their effects where plain Python has them, and not elsewhere. These are
errors, callbacks and work of a body that does not run. `runs`: the number of runs of the user's function. `memory`:
gradients of loops keep the residuals of their checkpoints, a limit that some checkpoint meets holds, and the measured
memory is the planned one. `garbage`: no array waits for the garbage collector.
"""

from __future__ import annotations

import functools
import gc
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import func
from func.backends.llvm.call_stubs import binding
from func.backends.llvm.threads import background
from tools.enumerate import _features
from tools.enumerate.scope import Choices, OutOfScope, Part

Seen = list[str]

# --- effects ---------------------------------------------------------------------------------------------------------

MATRICES = {"singular": np.zeros((2, 2)), "regular": np.array([[2.0, 1.0], [0.0, 4.0]])}
VALUES = np.array([0.5, 1.5, 2.5])


def _index(v: Any, scale: Any, seen: Seen) -> Any:
    return v["values"][v["place"]] * scale


def _inverse(v: Any, scale: Any, seen: Seen) -> Any:
    return np.linalg.inv(v["matrix"])[0, 0] * scale


def _solve(v: Any, scale: Any, seen: Seen) -> Any:
    return np.linalg.solve(v["matrix"] * scale, v["values"][:2]).sum()


def _cholesky(v: Any, scale: Any, seen: Seen) -> Any:
    return np.linalg.cholesky(v["matrix"] @ v["matrix"].T - 0.01)[0, 0] * scale


def _print(v: Any, scale: Any, seen: Seen) -> Any:
    func.debug.callback(lambda x: seen.append("effect"), v["values"])
    return v["values"][0] * scale


def _silent_print(v: Any, scale: Any, seen: Seen) -> Any:
    func.debug.callback(lambda: seen.append("effect"))
    return v["values"][0] * scale


def _pure(v: Any, scale: Any, seen: Seen) -> Any:
    def outside(x: Any) -> Any:
        seen.append("effect")
        return np.sum(x)

    return (
        func.pure_callback(outside, np.float64(0.0), func.stop_gradient(v["values"]), vmap_method="sequential") * scale
    )


PAYLOADS: dict[str, Callable[..., Any]] = {
    "values[place]": _index,
    "inv": _inverse,
    "solve": _solve,
    "cholesky": _cholesky,
    "callback(values)": _print,
    "callback()": _silent_print,
    "pure_callback": _pure,
}
"""The work of a body: with `v`, the values that it closes over or gets, and a number of the loop around it."""

SOURCES = ("closure", "operands", "constants", "list", "object", "default", "global")
"""The source of a body's values."""

BODIES = (
    *("cond: true", "cond: false", "switch: 0", "switch: 1", "switch: 2"),
    *("while", "while: condition", "fori of traced bounds", "fori", "scan", "scan: reverse", "map"),
)
"""The construct whose body has the payload, and which of its bodies."""

AROUND = ("nothing", "cond", "scan", "while", "fori", "map", "jit", "checkpoint", "vmap", "grad", "jvp", "python loop")
"""The code around the construct, inside of the transforms."""

TRANSFORMS = (
    *("jit", "jit grad", "grad jit", "jit jvp", "jvp jit", "jit vmap", "vmap jit", "jit checkpoint"),
    *("jit grad checkpoint", "jit jit", "jit linearize", "jit hessian", "eager", "grad", "vmap", "jvp"),
)
"""The transforms of the whole; `vmap` maps the number x, never the data that decides."""


class Namespace:
    """An object of the user's with traced attributes."""


GLOBALS: dict[str, Any] = {}


@dataclass(frozen=True)
class Effects:
    """A function with a body in a branch or a loop, which runs or does not."""

    payload: str
    source: str
    body: str
    around: str
    transforms: str
    runs: bool

    def steps(self) -> int:
        """How often the body runs in plain Python."""
        outer = 2 if self.around in ("scan", "while", "fori", "map", "vmap", "python loop") else 1
        inner = 2 if self.body in ("fori", "scan", "scan: reverse", "map") else 1
        return outer * inner if self.runs else 0

    def function(self, seen: Seen) -> Callable[..., Any]:
        """f(x, data): a number; `data` says by its numbers whether the body runs."""

        def f(x: Any, data: dict[str, Any]) -> Any:
            v = {name: data[name] for name in ("values", "matrix", "place")}
            if self.source == "constants":
                v = {name: value for name, value in self.data().items() if name in v}
            return self._around(x, data, v, seen)

        return f

    def data(self) -> dict[str, Any]:
        """The arguments other than x."""
        fails = not self.runs
        return {
            "values": VALUES,
            "matrix": MATRICES["singular" if fails else "regular"],
            "place": np.int64(7 if fails else 1),
            "which": np.int64(self._which()),
            "count": np.int64(1 if self.runs else 0),
        }

    def _which(self) -> int:
        own = {"cond: true": 1, "cond: false": 0, "switch: 0": 0, "switch: 1": 1, "switch: 2": 2}.get(self.body, 0)
        if self.runs:
            return own
        return {"cond: true": 0, "cond: false": 1}.get(self.body, (own + 1) % 3)

    def _around(self, x: Any, data: Any, v: Any, seen: Seen) -> Any:
        def inner(scale: Any) -> Any:
            return self._construct(scale, data, v, seen)

        match self.around:
            case "nothing":
                return inner(x)
            case "cond":
                return func.cond(data["count"] < 5, lambda: inner(x), lambda: x * 0.0)
            case "scan":
                return func.scan(lambda c, _: (c + inner(x), None), x * 0.0, None, length=2)[0]
            case "while":
                step = lambda c: (c[0] + 1, c[1] + inner(x))  # noqa: E731
                bound = data["count"] * 0 + 2
                return func.while_loop(lambda c: c[0] < bound, step, (0, x * 0.0), max_steps=2)[1]
            case "fori":
                return func.fori_loop(0, 2, lambda i, c: c + inner(c * 0.0 + x), x * 0.0)
            case "map":
                return np.sum(func.map(lambda s: inner(x) * s, np.ones(2)))
            case "python loop":
                total = x * 0.0
                for _ in range(2):
                    total = total + inner(x)
                return total
            case "jit":
                return func.jit(lambda s: inner(s))(x)
            case "checkpoint":
                return func.checkpoint(lambda s: inner(s))(x)
            case "vmap":
                return np.sum(func.vmap(lambda s: inner(x * s))(np.ones(2)))
            case "grad":
                return func.grad(lambda s: inner(s) * s)(x)
            case _:
                return func.jvp(lambda s: inner(s) * s, (x,), (x * 0.0 + 1.0,))[1]

    def _construct(self, x: Any, data: Any, v: Any, seen: Seen) -> Any:
        payload, names = PAYLOADS[self.payload], list(v)
        operands: tuple[Any, ...] = ()
        if self.source == "operands":
            operands = (v,)
            run = lambda s, w: payload(w, s, seen)  # noqa: E731
        elif self.source == "list":
            held = [v[name] for name in names]
            run = lambda s: payload(dict(zip(names, held, strict=True)), s, seen)  # noqa: E731
        elif self.source == "object":
            space = Namespace()
            space.__dict__.update(v)
            run = lambda s: payload(vars(space), s, seen)  # noqa: E731
        elif self.source == "default":
            run = lambda s, w=v: payload(w, s, seen)  # noqa: E731
        elif self.source == "global":
            GLOBALS["v"] = v
            run = lambda s: payload(GLOBALS["v"], s, seen)  # noqa: E731
        else:
            run = lambda s: payload(v, s, seen)  # noqa: E731
        other = lambda *_: x * 0.0  # noqa: E731
        kind, _, place = self.body.partition(": ")
        # the payload's number is closed over, too, unless there are operands
        body = (lambda w: run(x, w)) if operands else (lambda: run(x))
        match kind:
            case "cond":
                chosen = (body, other) if place == "true" else (other, body)
                return func.cond(data["which"] == 1, *chosen, *operands)
            case "switch":
                branches = [body if i == int(place) else other for i in range(3)]
                return func.switch(data["which"], branches, *operands)
            case "while":
                if place:
                    return self._while_with_condition(x, data, body, operands)
                step = lambda c: (c[0] + 1, c[1] + body(*c[2:]), *c[2:])  # noqa: E731
                return func.while_loop(
                    lambda c: c[0] < data["count"], step, (np.int64(0), x * 0.0, *operands), max_steps=self._most()
                )[1]
            case "fori of traced bounds":
                step = lambda i, c: (c[0] + body(*c[1:]), *c[1:])  # noqa: E731
                return func.fori_loop(0, data["count"], step, (x * 0.0, *operands))[0]
            case "fori":
                step = lambda i, c: (c[0] + body(*c[1:]), *c[1:])  # noqa: E731
                return func.fori_loop(0, 2 if self.runs else 0, step, (x * 0.0, *operands))[0]
            case "scan":
                length = 2 if self.runs else 0
                step = lambda c, _: ((c[0] + body(*c[1:]), *c[1:]), c[0])  # noqa: E731
                return func.scan(step, (x * 0.0, *operands), None, length=length, reverse=bool(place))[0][0]
            case _:
                return np.sum(func.map(lambda s: body(*operands) * s, np.ones(2 if self.runs else 0)))

    def _most(self) -> int | None:
        return 1 if self.is_reverse() else None

    def is_reverse(self) -> bool:
        """Whether the body is pulled back."""
        return bool({"grad", "linearize", "hessian"}.intersection((*self.transforms.split(), self.around)))

    def has_traced_constants(self) -> bool:
        """Whether an inner jit traces the body of a loop that uses arrays from outside of it."""
        is_inside = self.around == "jit" and "jit" not in self.transforms
        return is_inside and self.body.startswith("while") and self.source != "operands"

    def _while_with_condition(self, x: Any, data: Any, body: Callable[..., Any], operands: Any) -> Any:
        """A loop in whose condition a branch has the payload."""
        test = lambda c: func.cond(  # noqa: E731
            c[0] < data["count"], lambda: body(*operands) > -1e9, lambda: c[0] < -1
        )
        step = lambda c: (c[0] + 1, c[1] + x)  # noqa: E731
        return func.while_loop(test, step, (np.int64(0), x * 0.0), max_steps=self._most())[1]

    def transformed(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The call of the whole function."""

        def linearized(x: Any, data: Any) -> Any:
            return func.linearize(lambda s: f(s, data), x)[1](1.0)

        makers: dict[str, Callable[[], Callable[..., Any]]] = {
            "eager": lambda: f,
            "jit": lambda: func.jit(f),
            "grad": lambda: func.grad(f),
            "vmap": lambda: lambda x, d: func.vmap(lambda s: f(s, d))(np.stack([x, x])),
            "jvp": lambda: lambda x, d: func.jvp(lambda s: f(s, d), (x,), (1.0,))[1],
            "jit grad": lambda: func.jit(func.grad(f)),
            "grad jit": lambda: func.grad(func.jit(f)),
            "jit jvp": lambda: func.jit(lambda x, d: func.jvp(lambda s: f(s, d), (x,), (1.0,))[1]),
            "jvp jit": lambda: lambda x, d: func.jvp(lambda s: func.jit(f)(s, d), (x,), (1.0,))[1],
            "jit vmap": lambda: func.jit(lambda x, d: func.vmap(lambda s: f(s, d))(np.stack([x, x]))),
            "vmap jit": lambda: lambda x, d: func.vmap(lambda s: func.jit(f)(s, d))(np.stack([x, x])),
            "jit checkpoint": lambda: func.jit(func.checkpoint(f)),
            "jit grad checkpoint": lambda: func.jit(func.grad(func.checkpoint(f))),
            "jit jit": lambda: func.jit(lambda x, d: func.jit(f)(x, d)),
            "jit linearize": lambda: func.jit(linearized),
            "jit hessian": lambda: func.jit(func.hessian(f)),
        }
        return makers[self.transforms]()


LOOPS_OF_KNOWN_LENGTH = ("fori", "fori of traced bounds", "scan", "scan: reverse", "map")
EFFECTFUL = ("callback(values)", "callback()", "pure_callback")


def effects(choices: Choices) -> Effects:
    """One program of `effects`."""
    runs = choices.pick((False, True))
    payload = choices.pick(tuple(PAYLOADS))
    body = choices.pick(BODIES)
    source = choices.pick(SOURCES)
    transforms = choices.pick(TRANSFORMS)
    around = choices.pick(AROUND)
    program = Effects(payload, source, body, around, transforms, runs)
    if (source == "constants" or program.has_traced_constants()) and (payload not in EFFECTFUL) and not runs:
        raise OutOfScope  # NumPy raises for its own arrays at once, wherever the code stands
    if body in LOOPS_OF_KNOWN_LENGTH and not runs and "jit" not in transforms:
        raise OutOfScope  # the body of a loop without steps is called once for its shapes
    if body == "fori of traced bounds" and program.is_reverse() and "jit" in transforms + around:
        raise OutOfScope  # a loop of unknown length has no reverse mode
    if source == "operands" and payload == "callback()":
        raise OutOfScope
    return program


def check_effects(program: Effects) -> str | None:
    """Effects are those of plain Python, and so is the value."""
    seen: Seen = []
    data, x = program.data(), np.float64(1.25)
    try:
        call = program.transformed(program.function(seen))
        first = call(x, data)
        seen.clear()
        second = call(x, data)
    except (IndexError, np.linalg.LinAlgError) as error:
        return f"an error of a body that does not run: {type(error).__name__} ({program.body.partition(':')[0]})"
    if not np.array_equal(first, second, equal_nan=True):
        return f"the second call gives {second}, the first {first}"
    expected = program.steps()
    if program.payload in EFFECTFUL:
        count = len(seen)
        if count and not expected:
            return f"an effect of a body that does not run ({program.body.partition(':')[0]})"
        is_needed = program.payload != "pure_callback" or not (program.is_reverse() or "jvp" in program.transforms)
        if expected and not count and is_needed:
            return f"no effect of a body that runs ({program.body.partition(':')[0]})"
        is_exact = program.transforms in ("eager", "jit", "jit jit", "jit checkpoint", "jvp", "jit jvp")
        is_plain = program.around not in ("vmap", "grad", "jvp", "checkpoint")
        if is_exact and is_plain and program.payload != "pure_callback" and count != expected:
            return f"an effect happens {count} times, the body runs {expected} times"
    value = np.ravel(call_value(first))[0]
    truth = np.ravel(call_value(reference(program, x, data)))[0] if program.runs else 0.0
    if not np.allclose(value, truth, rtol=1e-9, atol=1e-12, equal_nan=True):
        return f"the value is {value}, in plain Python {truth}"
    return None


def call_value(value: Any) -> Any:
    """A result as an array."""
    return np.asarray(func.tree.leaves(value)[0], dtype=float)


def reference(program: Effects, x: Any, data: Any) -> Any:
    """The value, or its derivative by x, of plain Python: all values are known, and numbers are linear in x."""
    f = program.function([])

    def scalar(s: Any) -> Any:
        return f(s, data)

    derivative = {"grad", "jvp", "linearize"}.intersection(program.transforms.split())
    if "hessian" in program.transforms:  # what stands around makes at most squares of x
        return func.grad(func.grad(scalar))(x)
    return func.jvp(scalar, (x,), (1.0,))[1] if derivative else scalar(x)


# --- runs ------------------------------------------------------------------------------------------------------------

LOOPS = ("scan", "fori", "while", "map", "python loop", "cond", "switch", "nothing")
WRAPPED = ("plain", "checkpoint", "jit", "checkpoint of jit", "jit of checkpoint", "vmap", "remat with policy")
CALLS = ("jit", "jit grad", "grad jit", "jit vmap", "jit jvp", "eager", "grad", "jit hessian", "make_program")
STEPS = 3


@dataclass(frozen=True)
class Runs:
    """A function as the body of a loop, and the transforms of the whole."""

    loop: str
    wrapped: str
    call: str
    checkpoint: int

    def build(self, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """f(x) for a body."""
        step: Callable[[Any], Any] = {
            "plain": lambda: body,
            "checkpoint": lambda: func.checkpoint(body),
            "jit": lambda: func.jit(body),
            "checkpoint of jit": lambda: func.checkpoint(func.jit(body)),
            "jit of checkpoint": lambda: func.jit(func.checkpoint(body)),
            "vmap": lambda: func.vmap(body),
            "remat with policy": lambda: func.remat(body, policy=func.checkpoint_policies.dots_saveable),
        }[self.wrapped]()
        options = {"checkpoint": self.checkpoint} if self.checkpoint else {}

        def whole(x: Any) -> Any:
            match self.loop:
                case "scan":
                    return func.scan(lambda c, _: (step(c), None), x, None, length=STEPS, **options)[0]
                case "fori":
                    return func.fori_loop(0, STEPS, lambda i, c: step(c), x)
                case "while":
                    keep = lambda c: c[0] < STEPS  # noqa: E731
                    return func.while_loop(keep, lambda c: (c[0] + 1, step(c[1])), (0, x), max_steps=STEPS)[1]
                case "map":
                    return func.map(lambda row: step(row), _rows(x))
                case "python loop":
                    for _ in range(STEPS):
                        x = step(x)
                    return x
                case "cond":
                    return func.cond(np.sum(x) < 1e9, step, lambda c: c * 1.0, x)
                case "switch":
                    return func.switch(np.int64(1) + 0 * np.sum(x).astype(int), [np.negative, step], x)
                case _:
                    return step(x)

        return lambda x: np.sum(whole(x))

    def expected(self) -> tuple[int, int]:
        """How often the function runs in the first call, and in the second: at most, in the latter exactly."""
        eager = self.call in ("eager", "grad")
        inside_jit = self.wrapped in ("jit", "checkpoint of jit", "jit of checkpoint")
        times = STEPS if self.loop in ("scan", "fori", "while", "map", "python loop") else 1
        if eager:
            return (1, 0) if inside_jit else (times, times)
        first = 1 if self.loop != "python loop" or inside_jit else STEPS
        if self.loop == "python loop" and not inside_jit:
            first = STEPS
        return first, first if self.call == "make_program" and not inside_jit else 0


def _rows(x: Any) -> Any:
    return np.stack([x, x * 2, x * 3])


def runs(choices: Choices) -> Runs:
    """One program of `runs`."""
    loop = choices.pick(LOOPS)
    wrapped = choices.pick(WRAPPED)
    call = choices.pick(CALLS)
    checkpoint = choices.pick((0, 1, 2, 3, True)) if loop == "scan" else 0
    return Runs(loop, wrapped, call, checkpoint)


def check_runs(program: Runs) -> str | None:
    """The function runs as often as in plain Python, and once if it is traced."""
    count = 0

    def body(x: Any) -> Any:
        nonlocal count
        count += 1
        return np.sin(x) * 1.1 + x * x

    f = program.build(body)
    x = np.array([0.1, 0.2])
    call: Callable[..., Any] = {
        "eager": lambda: f,
        "grad": lambda: func.grad(f),
        "jit": lambda: func.jit(f),
        "jit grad": lambda: func.jit(func.grad(f)),
        "grad jit": lambda: func.grad(func.jit(f)),
        "jit vmap": lambda: func.jit(func.vmap(f)),
        "jit jvp": lambda: func.jit(lambda s: func.jvp(f, (s,), (s,))[1]),
        "jit hessian": lambda: func.jit(func.hessian(f)),
        "make_program": lambda: lambda s: func.make_program(f)(s)(s)[0],
    }[program.call]()
    given = np.stack([x, x + 1]) if program.call == "jit vmap" else x
    first = call(given)
    counted, count = count, 0
    call(given)
    at_most, again = program.expected()
    is_again = (
        program.call in ("grad", "jit grad", "grad jit", "jit hessian")
        and program.checkpoint
        and not (program.call.startswith("jit") or program.call == "grad jit")
    )
    if is_again:  # blocks of an eager scan run again in its backward pass
        at_most, again = 2 * at_most, 2 * again
    if counted > at_most:
        return f"the function runs {counted} times in the first call, not {at_most} ({program.loop}, {program.wrapped})"
    if count > again:
        return f"the function runs {count} times in the second call, not {again} ({program.loop}, {program.wrapped})"
    np.testing.assert_allclose(first, _by_hand(program, x, given), rtol=1e-9)
    return None


def _by_hand(program: Runs, x: Any, given: Any) -> Any:
    """The same without loops of func's, checkpoints and jit."""

    def plain(x: Any) -> Any:
        step = lambda c: np.sin(c) * 1.1 + c * c  # noqa: E731
        if program.loop == "map":
            return np.sum(step(_rows(x)))
        times = 1 if program.loop in ("cond", "switch", "nothing") else STEPS
        for _ in range(times):
            x = step(x)
        return np.sum(x)

    match program.call:
        case "grad" | "jit grad" | "grad jit":
            return func.grad(plain)(x)
        case "jit vmap":
            return np.stack([plain(row) for row in given])
        case "jit jvp":
            return func.jvp(plain, (x,), (x,))[1]
        case "jit hessian":
            return func.hessian(plain)(x)
        case _:
            return plain(x)


# --- memory ----------------------------------------------------------------------------------------------------------

SIZE = 30_000
ARRAY = 8 * SIZE
PYTHON = 300_000
"""Bytes that Python's own objects, tracers and frames among them, may take in addition to the arrays."""
SLACK = 10
"""Arrays other than carries and residuals: the argument, the result, cotangents, those of one operation."""
FORMS = (
    *("scan: checkpoint(step)", "fori: checkpoint(step)", "while: checkpoint(step)", "python loop: checkpoint(step)"),
    *("scan: checkpoint(checkpoint(step))", "scan: jit(checkpoint(step))", "scan: checkpoint(jit(step))"),
    *("scan of rows: checkpoint(step)", "scan: checkpoint(step with a closure)", "map: checkpoint(step)"),
    *("scan: checkpoint(cond of step)", "cond: scan of checkpoint(step)", "scan: k", "scan: True"),
)
WHOLES = ("jit grad", "grad jit", "jit vjp", "grad", "jit grad vmap")


@dataclass(frozen=True)
class Memory:
    """The gradient of a loop with checkpoints."""

    form: str
    whole: str
    inner: int
    length: int
    block: int

    def loss(self) -> Callable[[Any], Any]:
        """The function whose gradient is taken."""
        factor = np.linspace(0.9, 1.1, SIZE)

        def step(c: Any) -> Any:
            for _ in range(self.inner):
                c = np.sin(c) * 1.1
            return c

        def closed(factor: Any) -> Callable[[Any], Any]:
            return lambda c: step(c) * factor[: len(c)]

        loop, _, body = self.form.partition(": ")
        body = body.removeprefix("scan of ")
        made: Callable[[Any], Any] = {
            "checkpoint(step)": lambda: func.checkpoint(step),
            "checkpoint(checkpoint(step))": lambda: func.checkpoint(func.checkpoint(step)),
            "jit(checkpoint(step))": lambda: func.jit(func.checkpoint(step)),
            "checkpoint(jit(step))": lambda: func.checkpoint(func.jit(step)),
            "checkpoint(cond of step)": lambda: func.checkpoint(
                lambda c: func.cond(c[0] < 1e9, step, lambda c: c * 2.0, c)
            ),
            "checkpoint(step with a closure)": lambda: func.checkpoint(closed(factor)),
        }.get(body, lambda: step)()
        options: dict[str, Any] = {}
        if loop == "scan" and body in ("k", "True"):
            options = {"checkpoint": True if body == "True" else self.block}

        def run(x: Any) -> Any:
            match loop:
                case "scan" | "cond":
                    scan = lambda x: func.scan(  # noqa: E731
                        lambda c, _: (made(c), None), x, None, length=self.length, **options
                    )[0]
                    return scan(x) if loop == "scan" else func.cond(x[0] < 1e9, scan, lambda x: x * 2.0, x)
                case "scan of rows":
                    rows = np.linspace(0.1, 0.2, self.length)
                    return func.scan(lambda c, row: (made(c) + row, None), x, rows)[0]
                case "fori":
                    return func.fori_loop(0, self.length, lambda i, c: made(c), x)
                case "while":
                    keep = lambda c: c[0] < self.length  # noqa: E731
                    return func.while_loop(keep, lambda c: (c[0] + 1, made(c[1])), (0, x), max_steps=self.length)[1]
                case "map":
                    return func.map(lambda row: made(row), x.reshape(self.length, -1))
                case _:
                    for _ in range(self.length):
                        x = made(x)
                    return x

        return lambda x: np.sum(run(x))

    def call(self) -> Callable[[Any], Any]:
        """The gradient."""
        loss = self.loss()
        makers: dict[str, Callable[[], Callable[[Any], Any]]] = {
            "jit grad": lambda: func.jit(func.grad(loss)),
            "grad jit": lambda: func.grad(func.jit(loss)),
            "jit vjp": lambda: func.jit(lambda x: func.vjp(loss, x)[1](np.float64(1.0))),
            "grad": lambda: func.grad(loss),
            "jit grad vmap": lambda: func.jit(func.grad(lambda x: np.sum(func.vmap(loss)(x.reshape(2, -1))))),
        }
        return makers[self.whole]()

    def bound(self) -> int:
        """The bytes that the checkpoints promise, those of the caller included."""
        residuals = 2 * self.inner + (2 if "closure" in self.form else 1)
        if self.form.startswith("map"):
            return int(ARRAY * (SLACK + 2 + residuals / self.length))
        block = 1
        if self.form.endswith(": k"):
            block = min(self.block, self.length)
        elif self.form.endswith(": True"):
            block = math.isqrt(self.length - 1) + 1
        carries = -(-self.length // block)
        within = block * residuals
        extra = 2 * carries if self.form.startswith("while") else carries if self.form.startswith("cond:") else 0
        return ARRAY * (carries + within + extra + SLACK)


def memory(choices: Choices) -> Memory:
    """One program of `memory`."""
    form = choices.pick(FORMS)
    whole = choices.pick(WHOLES)
    inner, length = choices.pick(((4, 12), (1, 20), (8, 6), (3, 30)))
    block = choices.pick((1, 2, 3, 4, 5, 7, 10, 19, 40)) if form.endswith(": k") else 0
    if form.startswith("while") and "grad jit" in whole:
        raise OutOfScope
    return Memory(form, whole, inner, length, block)


def check_memory(program: Memory) -> str | None:
    """The planned peak is what the checkpoints promise, the measured one is no more than planned."""
    call, x = program.call(), np.linspace(0.1, 0.9, SIZE)
    timeline = func.memory(call)(x)
    bound = program.bound()
    is_eager = program.whole == "grad"
    if timeline.peak > bound:
        kind = "eager" if is_eager else "compiled"
        return (
            f"planned above the promise ({program.form}, {kind})\n{timeline.peak / ARRAY:.1f} arrays, promised are "
            f"{bound / ARRAY:.1f}"
        )
    peak = measured(lambda: call(x))
    own = timeline.peak - timeline.arguments
    if peak > 1.05 * own + PYTHON:
        return (
            f"measured above the plan ({program.form}, {program.whole})\n"
            f"{peak / ARRAY:.1f} arrays, planned are {own / ARRAY:.1f}"
        )
    return None


def measured(work: Callable[[], Any]) -> int:
    """The bytes that a call needs at its peak: the least of three, as other threads allocate too."""
    work()
    background.finish()
    peaks = []
    with func.config.override(array_cache=0, compile_backward=False):
        tracemalloc.start()
        try:
            for _ in range(3):
                _release_kept_memory()
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                work()
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    return min(peaks)


def _release_kept_memory() -> None:
    """Free the memory that native code keeps for its next call: it belongs to this one."""
    for stub in gc.get_objects():
        if type(stub) is binding.StubState:
            binding.empty(stub.places)


# --- limits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """The gradient of a scan, and a limit: the least peak of all intervals of checkpoints, times a share."""

    whole: str
    inner: int
    length: int
    share: float


def limits(choices: Choices) -> Limits:
    """One program of `limits`."""
    whole = choices.pick(("jit grad", "grad jit", "two scans", "checkpointed body", "matrix"))
    inner, length = choices.pick(((1, 6), (1, 20), (1, 40), (5, 20), (20, 30), (1, 100)))
    share = choices.pick((1.0, 1.1, 1.3, 2.0, 4.0))
    return Limits(whole, inner, length, share)


def _point(whole: str) -> Any:
    x = np.linspace(0.1, 0.9, 2500 if whole == "matrix" else 3000)
    return x.reshape(50, 50) if whole == "matrix" else x


@functools.cache
def _least(whole: str, inner: int, length: int) -> int:
    """The least plan of all intervals."""
    program = Limits(whole, inner, length, 1.0)
    return min([_planned(program, block, None, _point(whole)) for block in _intervals(length)])


def check_limits(program: Limits) -> str | None:
    """A limit that some interval meets holds."""
    x = _point(program.whole)
    least = _least(program.whole, program.inner, program.length)
    limit = int(least * program.share)
    try:
        found = _planned(program, 0, limit, x)
    except func.errors.MemoryLimitError as error:
        return f"a limit is refused that an interval meets ({program.whole})\n{error}\nleast {least}, limit {limit}"
    return None if found <= limit else f"a plan is above its limit\n{found}, limit {limit}"


def _intervals(length: int) -> list[int]:
    return [block for block in range(1, length + 1) if block < 12 or length % block == 0]


def _planned(program: Limits, block: int, limit: int | None, x: Any) -> int:
    def step(c: Any, _: Any) -> Any:
        for _ in range(program.inner):
            c = np.sin(c @ x * 0.01) if program.whole == "matrix" else np.sin(c) * 1.1
        return c, None

    body = func.checkpoint(step) if program.whole == "checkpointed body" else step

    def loss(x: Any) -> Any:
        c = func.scan(body, x, None, length=program.length, checkpoint=block)[0]
        if program.whole == "two scans":
            c = func.scan(body, c, None, length=program.length // 2, checkpoint=block)[0]
        return np.sum(c)

    if program.whole == "grad jit":
        return int(func.memory(func.jit(lambda x: func.grad(func.jit(loss))(x), memory_limit=limit))(x).peak)
    return int(func.memory(func.jit(func.grad(loss), memory_limit=limit))(x).peak)


# --- levels -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """The gradient of a scan, under the limit that this number of levels promises to meet."""

    levels: int
    inner: int
    length: int

    def limit(self) -> int:
        """k (T cᵏ⁻¹ r)^(1/k) bytes in k levels of blocks, and the other memory."""
        stacked = self.levels * (self.length * self.inner) ** (1 / self.levels)
        return int(ARRAY * (stacked + SLACK_OF_LEVEL * self.levels))

    def loss(self, x: Any) -> Any:
        """A number, by a loop of func's where its argument is traced."""

        def step(c: Any, _: Any) -> Any:
            for _ in range(self.inner):
                c = np.sin(c) * 1.1
            return c, None

        return np.sum(func.scan(step, x, None, length=self.length)[0])


SLACK_OF_LEVEL = 7
"""Arrays in memory for each level, without those that it stacks: carries, cotangents, rests of blocks."""


def levels(choices: Choices) -> Levels:
    """One program of `levels`."""
    inner = choices.pick((1, 2, 4, 10))
    length = choices.pick((7, 12, 13, 24, 30, 49, 50, 64, 97, 100, 144, 200, 365, 1000))
    count = choices.pick((2, 3, 4))
    if (length * inner) ** (1 / count) < max(2, inner / 2):
        raise OutOfScope  # a level of less than two blocks, or of a part of a step
    return Levels(count, inner, length)


def check_levels(program: Levels) -> str | None:
    """The limit holds, and the gradient is that of the loop of Python."""
    x, limit = np.linspace(0.1, 0.9, SIZE), program.limit()
    limited = func.jit(func.grad(program.loss), memory_limit=limit)
    try:
        peak = func.memory(limited)(x).peak
    except func.errors.MemoryLimitError as error:
        return f"the limit of levels of blocks is refused\n{error}\n{limit / ARRAY:.1f} arrays"
    if peak > limit:
        return f"a plan is above its limit\n{peak / ARRAY:.1f} arrays, limit {limit / ARRAY:.1f}"
    np.testing.assert_allclose(limited(x), func.grad(program.loss)(x), rtol=1e-9)
    return None


# --- garbage ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Garbage:
    """A feature, alone or inside of others."""

    feature: str
    around: tuple[str, ...]


AROUND_FEATURES: dict[str, Callable[..., Any]] = {
    "grad": lambda f: func.grad(lambda x: np.sum(f(x))),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: func.vmap(f)(x.reshape(2, -1)),
    "checkpoint": func.checkpoint,
    "jit": func.jit,
}


def garbage(choices: Choices) -> Garbage:
    """One program of `garbage`."""
    around = choices.pick(
        ((), *[(one,) for one in AROUND_FEATURES], *[(a, b) for a in AROUND_FEATURES for b in AROUND_FEATURES])
    )
    names = tuple(_features.FEATURES) if not around else tuple(_features.COMPOSABLE)
    return Garbage(choices.pick(names), around)


def check_garbage(program: Garbage) -> str | None:
    """No array is left after a few calls without the garbage collector."""
    if not program.around:
        call = _features.FEATURES[program.feature]()
    else:
        f = _features.COMPOSABLE[program.feature]
        for name in reversed(program.around):
            f = AROUND_FEATURES[name](f)
        x = np.linspace(0.1, 0.9, _features.LARGE)
        call = lambda: f(x)  # noqa: E731
    try:
        call()
    except (func.errors.FuncError, TypeError, ValueError) as error:
        if not program.around:
            raise
        return None if isinstance(error, (func.errors.FuncError, TypeError, ValueError)) else str(error)
    left = _features.left_behind(call)
    if left:
        return f"arrays wait for the garbage collector ({program.feature})\n{left}"
    return None


PARTS = (
    Part("effects", effects, check_effects),
    Part("runs", runs, check_runs),
    Part("memory", memory, check_memory),
    Part("limits", limits, check_limits),
    Part("levels", levels, check_levels),
    Part("garbage", garbage, check_garbage),
)
QUICK = 8
