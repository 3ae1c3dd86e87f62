"""Debugging: the origin of NaN and infinity, and the contents of traced values."""

from __future__ import annotations

import bisect
import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from func import tree
from func.backends.records import Record, field
from func.interpreters import grad
from func.interpreters.calls import callback as effects
from func.interpreters.core import Array, Interpreter, Params, Primitive, Tracer, bind, known_value, unboxed
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.modes import holding
from func.interpreters.core.scopes import present_stage
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import Line, user_line
from func.interpreters.imperative.anomalies import describe_anomaly, first_nonfinite
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.transforms.boundary import name_of
from func.transforms.transformed import keeps_parameters, transform

__all__ = ["Report", "callback", "explain", "print"]


@dataclass(frozen=True)
class Report:
    """The result of `explain`: the first operation with finite operands whose result is NaN or infinite."""

    value: Any
    operation: str | None = None
    phase: str = "forward"
    line: Line | None = None
    index: tuple[int, ...] | None = None
    text: str = "every value is finite"

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Notes(Record):
    """The state of a watch: its finding, the lines that ran at which ticks, and the node of the current pullback."""

    report: Report | None = None
    lines: list[Line | None] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    pulling: grad.Pulling = field(default_factory=grad.Pulling)


class Watch(Interpreter):
    """Computes, and notes the first result that is not finite though its operands are."""

    def __init__(self, notes: Notes) -> None:
        super().__init__("debug.explain")
        self.notes = notes
        self.level = 0.25

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        values = tuple([a._value if type(a) is Tracer and a._interpreter is self else unboxed(a) for a in args])
        pulled = self.notes.pulling.serial
        if pulled is None:
            self.notes.ticks.append(-next(grad.SERIALS))
            self.notes.lines.append(user_line(2))
        out = bind(primitive, values, params)
        outs = out if primitive.multiple else (out,)
        if self.notes.report is None:
            for result in outs:
                if first_nonfinite(result) is not None and all([first_nonfinite(value) is None for value in values]):
                    self.notes.report = self._report(primitive, values, result, pulled)
                    break
        traced = tuple([Tracer(self, result, None) if hasattr(result, "dtype") else result for result in outs])
        return traced if primitive.multiple else traced[0]

    def _report(self, primitive: Primitive, values: tuple[Array, ...], out: Any, pulled: int | None) -> Report:
        if pulled is None:
            line, phase, what = user_line(3), "forward", f"the result of {primitive.name}"
        else:
            place = bisect.bisect_right(self.notes.ticks, -pulled) - 1
            line, phase = self.notes.lines[place] if place >= 0 else None, "backward"
            what = f"in the backward pass, the result of {primitive.name} for the operation below"
        return Report(
            None, primitive.name, phase, line, first_nonfinite(out), describe_anomaly(what, line, values, out)
        )


@keeps_parameters
@transform
def explain(f: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Report]:
    """Run a function, transformed or not, and report the origin of its first NaN or infinity.

    The result of `explain(f)(*args)` is a Report. It prints the operation, its line in the forward pass, the operands
    and the first bad index, and has them as attributes. `value` is the output of f.

    Example:
        >>> import numpy as np, func
        >>> with np.errstate(divide="ignore"):
        ...     report = func.debug.explain(func.grad(lambda x: np.sum(np.log(x))))(np.array([1.0, 0.0]))
        >>> report.operation, report.phase, report.index
        ('log', 'forward', (1,))
    """

    def explained(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
        notes = Notes()
        watch = Watch(notes)
        leaves, spec = tree.flatten((args, kwargs))
        lifted = [Tracer(watch, leaf, None) if _is_floating(leaf) else leaf for leaf in leaves]
        traced_args, keywords = tree.unflatten(spec, lifted)
        with holding(grad.PULLING, notes.pulling):
            out = f(*traced_args, **keywords)
        value = tree.map(_plain, out)
        watch.close()
        report = notes.report
        if report is None:
            return Report(value, text=f"{name_of(f)}: every value is finite")
        return Report(value, report.operation, report.phase, report.line, report.index, report.text)

    return explained


def _is_floating(leaf: Any) -> bool:
    return isinstance(leaf, float) or (isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "fc")


def _plain(value: Any) -> Any:
    while type(value) is Tracer and isinstance(value._interpreter, Watch):
        value = value._value
    return value


@without_engine_frames
def callback(f: Callable[..., Any], *args: Any) -> None:
    """Call a function with the plain arrays behind traced values, for its side effects; returns nothing.

    Under `vmap` it gets the whole batch at once, with the batch axis in front. In a jitted function it runs once for
    each run of the function (and once more for a recomputation of NaN gradients).

    Example:
        >>> import func
        >>> seen = []
        >>> @func.jit
        ... def twice(x):
        ...     func.debug.callback(seen.append, x)
        ...     return 2 * x
        >>> twice(1.0), twice(3.0)
        (2.0, 6.0)
        >>> seen
        [1.0, 3.0]
    """
    leaves, spec = tree.flatten(args)
    stage = present_stage()
    if stage is not None and not any([type(leaf) is Tracer for leaf in leaves]):
        stage.apply(effects.callback, (), {"function": lambda: f(*args)})
    elif any([is_abstract_value(leaf) for leaf in leaves]):
        effects.callback(*leaves, function=lambda *arrays: f(*tree.unflatten(spec, arrays)))
    else:
        f(*[tree.map(_shown, arg) for arg in args])


@without_engine_frames
def print(text: str, *args: Any, **kwargs: Any) -> None:
    """Print traced values: `text` is a format string for the plain arrays behind the arguments.

    Example:
        >>> import func
        >>> _ = func.grad(lambda x: (func.debug.print("x is {}", x), x**2)[1])(3.0)
        x is 3.0
    """

    value: Any = text
    if not isinstance(value, str):
        kind = "an array" if type(value) is Tracer else type(value).__name__
        raise TypeError(f"func.debug.print takes a format string first, not {kind}: write func.debug.print('{{}}', x)")

    def show(positional: Any, keywords: Any) -> None:
        try:
            shown = text.format(*positional, **keywords)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"func.debug.print: the format string {text!r} does not fit its arguments ({type(error).__name__}: "
                f"{error}); {{}} is the next positional argument, {{x}} for the keyword argument x"
            ) from None
        builtins.print(shown)

    callback(show, args, kwargs)


def _shown(value: Any) -> Any:
    if type(value) is not Tracer:
        return value
    bottom = known_value(value)
    return value if bottom is None else bottom


def __dir__() -> list[str]:
    return _public_names(globals())
