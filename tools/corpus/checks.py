"""A function in every transform, compared with differences."""

from __future__ import annotations

import contextlib
import inspect
import re
import traceback
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import func
from tools.corpus.sampling import Case, copied, differences, leaves, noise_of

RIGHT, WRONG, REFUSED = "right", "wrong", "refused"
STEPS = (1.0, 1.01, 0.985)
"""Factors of the arguments: elements of a batch, and later calls of a jitted function."""


@dataclass
class Outcome:
    """How a transform of a function ended; `text` is the difference or the error."""

    status: str
    text: str = ""
    place: str = ""


class Differs(Exception):
    """A result that is not the truth."""


class NotANumber(ArithmeticError):
    """A result of NaN, which nobody takes for the truth."""


def block(modules: Sequence[str] | None) -> Any:
    """The context of a transform: nothing, or `func.intercept()`, with these modules where it takes them."""
    if modules is None:
        return contextlib.nullcontext()
    if "modules" in inspect.signature(func.intercept).parameters:
        return func.intercept(modules=modules)
    return func.intercept()


def outcome(check: Callable[[Case, Any], None], case: Case, modules: Sequence[str] | None) -> Outcome:
    """The outcome of one check, inside of `func.intercept` for modules or as it is."""

    def inside() -> Any:
        return block(modules)

    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", func.errors.SolverWarning)
            check(case, inside)
    except Differs as difference:
        doubts = [str(w.message) for w in warned if issubclass(w.category, func.errors.SolverWarning)]
        return Outcome(REFUSED, f"SolverWarning: {doubts[0]}") if doubts else Outcome(WRONG, str(difference))
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return Outcome(REFUSED, f"{type(error).__name__}: {error}", _place(error))
    return Outcome(RIGHT)


def _place(error: BaseException) -> str:
    """The innermost line that belongs neither to func nor to this tool nor to NumPy."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not re.search(r"/(func|interpreters|backends|numpy|tools/corpus)/", frame.filename):
            return f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno}: {frame.line}"
    return ""


def results(case: Case, *values: Any) -> list[Any]:
    """The floating-point leaves of a result."""
    kinds = [np.asarray(leaf).dtype.kind for leaf in leaves(case.call(*case.values))]
    found = leaves(case.call(*values))
    if len(found) != len(kinds):
        raise Differs(f"{len(found)} results in place of {len(kinds)}")
    return [leaf for leaf, kind in zip(found, kinds, strict=True) if kind in "fc"]


def loss_of(case: Case) -> Callable[..., Any]:
    """A weighted sum of a function's results, real and imaginary parts."""

    def loss(*values: Any) -> Any:
        total = 0.0
        for place, leaf in enumerate(results(case, *values)):
            generator = np.random.default_rng(zlib.crc32(f"{case.name}:{place}".encode()))
            parts = (leaf.real, leaf.imag) if np.iscomplexobj(leaf) else (leaf,)
            for part in parts:
                total = total + np.sum(part * generator.uniform(0.5, 1.5, np.shape(part)))
        return total

    return loss


def partial(values: Sequence[Any], function: Callable[..., Any], place: int) -> Callable[[Any], Any]:
    """A function of one of several arguments."""

    def of_one(value: Any) -> Any:
        args = [copied(other) for other in values]
        args[place] = value
        return function(*args)

    return of_one


def compare(what: str, value: Any, truth: Any, error: Any = 0.0, relative: float = 1e-6) -> None:
    """Raise `Differs` unless a value agrees with the truth."""
    value, truth = np.asarray(value), np.asarray(truth)
    if value.shape != truth.shape:
        raise Differs(f"{what}: shape {value.shape} in place of {truth.shape}")
    if np.any(np.isnan(value) & ~np.isnan(truth)):
        raise NotANumber(f"NaN in place of numbers; {what}: {_short(value)} in place of {_short(truth)}")
    size = np.max(np.abs(truth), initial=0.0)
    allowed = relative * np.abs(truth) + 1e-2 * relative * size + 20 * error + 1e-300
    if not np.all((np.abs(value - truth) <= allowed) | (np.isnan(value) & np.isnan(truth)) | (value == truth)):
        raise Differs(f"{what}: {_short(value)} in place of {_short(truth)}")


def _short(value: Any) -> str:
    return np.array2string(value, threshold=8, precision=8).replace("\n", "")


def compare_derivatives(what: str, value: Any, function: Callable[[Any], Any], at: Any) -> None:
    """Compare derivatives with differences, where these exist: a function need not be smooth near every argument."""
    truth = differences(function, at)
    if truth is not None and truth.is_smooth:
        compare(what, value, truth.value, truth.error)


def moved(case: Case, factor: float) -> list[Any]:
    """The smooth arguments, each a little larger or smaller."""
    return [value * factor for value in case.values]


def check_grad(case: Case, inside: Callable[[], Any]) -> None:
    """Gradients of a weighted sum for all smooth arguments."""
    _check_gradients(case, inside, lambda loss, argnums: func.grad(loss, argnums=argnums), [1.0])


def check_jit_grad(case: Case, inside: Callable[[], Any]) -> None:
    """The same compiled, and called again with other values."""
    _check_gradients(case, inside, lambda loss, argnums: func.jit(func.grad(loss, argnums=argnums)), STEPS)


def _check_gradients(case: Case, inside: Callable[[], Any], make: Any, factors: Any) -> None:
    loss = loss_of(case)
    transformed = make(loss, tuple(range(len(case.smooth))))
    for factor in factors:
        values = moved(case, factor)
        if factor != 1.0 and not _is_defined(loss, values):
            continue
        with inside():
            gradients = transformed(*[copied(value) for value in values])
        for place, (name, gradient) in enumerate(zip(case.smooth, gradients, strict=True)):
            of_one = partial(values, loss, place)
            compare_derivatives(f"d/d{name} at {factor}", gradient, of_one, values[place])


def _is_defined(loss: Callable[..., Any], values: list[Any]) -> bool:
    try:
        return bool(np.isfinite(loss(*[copied(value) for value in values])))
    except Exception:
        return False


def check_jacobian(case: Case, inside: Callable[[], Any]) -> None:
    """The Jacobian of all results for the first smooth argument."""
    values = case.values
    with inside():
        parts = func.jacobian(partial(values, lambda *args: results(case, *args), 0))(copied(values[0]))
    for place, part in enumerate(parts):
        of_one = partial(values, lambda *args, place=place: results(case, *args)[place], 0)
        compare_derivatives(f"result {place}", part, of_one, values[0])


def check_hessian(case: Case, inside: Callable[[], Any]) -> None:
    """The Hessian of a weighted sum for the first smooth argument."""
    values = case.values
    loss = partial(values, loss_of(case), 0)
    with inside():
        hessian = func.hessian(loss)(copied(values[0]))
        compare_derivatives("gradient", func.grad(loss)(copied(values[0])), loss, values[0])
        truth = differences(func.grad(loss), values[0])
    if truth is not None:
        compare("hessian", hessian, truth.value, truth.error, relative=1e-5)


def noises(case: Case) -> list[float]:
    """The size of the rounding errors of each result."""
    values = case.values
    found = []
    for place in range(len(results(case, *values))):
        moves = [
            noise_of(partial(values, lambda *args, place=place: results(case, *args)[place], i), values[i], 2e-4)
            for i in range(len(values))
        ]
        found.append(10 * max(float(np.max(move, initial=1e-300)) for move in moves))
    return found


def check_vmap(case: Case, inside: Callable[[], Any]) -> None:
    """A batch of three for all smooth arguments."""
    batch = [moved(case, factor) for factor in STEPS]
    try:
        truths = [results(case, *values) for values in batch]
    except Exception:
        batch = [case.values] * len(STEPS)
        truths = [results(case, *values) for values in batch]
    with inside():
        mapped = func.vmap(lambda *values: results(case, *values))(
            *[np.stack(column) for column in zip(*batch, strict=True)]
        )
    noise = noises(case)
    for place, part in enumerate(mapped):
        compare(f"result {place}", part, np.stack([truth[place] for truth in truths]), noise[place], relative=1e-8)


def check_jit(case: Case, inside: Callable[[], Any]) -> None:
    """Compiled, and called again with other values."""
    compiled = func.jit(lambda *values: results(case, *values))
    noise = noises(case)
    for factor in STEPS:
        values = moved(case, factor)
        try:
            truths = results(case, *values)
        except Exception:
            continue
        with inside():
            parts = compiled(*values)
        for place, (part, truth) in enumerate(zip(parts, truths, strict=True)):
            compare(f"result {place} at {factor}", part, truth, noise[place], relative=1e-8)


CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "grad": check_grad,
    "jacobian": check_jacobian,
    "hessian": check_hessian,
    "vmap": check_vmap,
    "jit": check_jit,
    "jit(grad)": check_jit_grad,
}
