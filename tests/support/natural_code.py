"""Functions of NumPy code in every transform, against central differences and NumPy's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import func

STEP = 1e-6


COMPILED = ("jit", "jit(grad)")
UNKNOWN = ("vmap", *COMPILED)
ALL_BUT_VMAP = ("value", "grad", "jvp", *COMPILED, "jacobian", "hessian")
ALL = ("vmap", *ALL_BUT_VMAP)
"""Transforms in which a function may be refused."""


class Row:
    """A function, the arguments at which it is differentiated, and what it needs.

    `intercept`: it runs in `func.intercept()`, with a module if this names one. `refused`: the transforms that refuse
    it today, by an error with `word`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        intercept: bool | str = False,
        refused: Sequence[str] = (),
        word: str = "Error",
    ) -> None:
        self.function, self.args, self.intercept = function, args, intercept
        self.refused, self.word = refused, word


def leaves(out: Any) -> list[Any]:
    """The arrays of a result: of tuples, lists and dicts in their order."""
    if isinstance(out, dict):
        out = list(out.values())
    if isinstance(out, (tuple, list)):
        return [leaf for item in out for leaf in leaves(item)]
    return [np.array(out.tolist()) if getattr(getattr(out, "dtype", None), "kind", "") == "O" else out]


def loss_of(f: Callable[..., Any], scales: Sequence[float] = ()) -> Callable[..., Any]:
    """A smooth real number made of all floating-point results, which have these orders of magnitude."""

    def loss(*args: Any) -> Any:
        total = 0.0
        for place, leaf in enumerate(leaves(f(*args))):
            kind = np.result_type(leaf).kind
            scale = scales[place] if scales else 1.0
            if kind in "fc":
                total = total + (1 + 0.37 * place) * np.sum(np.sin(np.real(leaf) / scale))
            if kind == "c":
                total = total + np.sum(np.cos(np.imag(leaf) / scale))
        return total

    return loss


def scales_of(out: Any) -> list[float]:
    """The orders of magnitude of results."""
    return [float(max(1.0, np.max(np.abs(np.asarray(leaf)), initial=0.0))) for leaf in leaves(out)]


def size(arg: Any) -> Any:
    """The magnitude of each element of an argument, one for zeros."""
    magnitude = np.abs(np.asarray(arg, float))
    return np.where(magnitude > 0, magnitude, 1.0)


def differences(f: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The central differences of a real function by each element of each argument, times the element's magnitude."""
    slopes = []
    for place, arg in enumerate(args):
        slope = np.zeros(np.shape(arg))
        steps = STEP * size(arg)
        for index in np.ndindex(slope.shape):
            ends = []
            for sign in (1, -1):
                moved = [copied(a) for a in args]
                one = np.array(arg, float)
                one[index] += sign * steps[index]
                moved[place] = one if one.ndim else float(one)
                ends.append(np.asarray(f(*moved)))
            slope[index] = (ends[0] - ends[1]) / (2 * STEP)
        slopes.append(slope)
    return slopes


def copied(value: Any) -> Any:
    """An argument that the function may write."""
    return value.copy() if isinstance(value, np.ndarray) else value


def difference(got: Any, expected: Any, tolerance: float = 1e-9) -> str:
    """The difference in structure, dtype, shape or value; empty without one."""
    pairs = list(zip(leaves(got), leaves(expected), strict=False))
    if len(leaves(got)) != len(leaves(expected)):
        return f"{len(leaves(got))} arrays, not {len(leaves(expected))}"
    for one, want in pairs:
        a, b = np.asarray(one), np.asarray(want)
        if a.shape != b.shape or (tolerance < 1e-8 and a.dtype != b.dtype):
            return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0) if b.dtype.kind in "fc" else 1.0
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"{a.tolist()}, not {b.tolist()}"
    return ""


def stacked(outs: Sequence[Any]) -> Any:
    """Results of the same structure as arrays with a first axis."""
    columns = zip(*[leaves(out) for out in outs], strict=True)
    return [np.stack([np.asarray(item) for item in column]) for column in columns]


def checks(f: Callable[..., Any], args: Sequence[Any], second: bool = True) -> Iterator[tuple[str, Callable[[], str]]]:
    """For each transform what differs from NumPy's values and from differences."""
    places, magnitudes = tuple(range(len(args))), [size(arg) for arg in args]
    near = [arg * 1.01 for arg in args]
    values = [f(*map(copied, point)) for point in (args, near)]
    loss = loss_of(f, scales_of(values[0]))
    has_derivative = any([np.asarray(leaf).dtype.kind in "fc" for leaf in leaves(values[0])])
    slopes_of = func.grad(loss, argnums=places)

    def gradient(*args: Any) -> Any:
        return [slope * magnitude for slope, magnitude in zip(slopes_of(*args), magnitudes, strict=True)]

    slopes = differences(loss, args) if has_derivative else []

    def jitted(g: Callable[..., Any], expected: Sequence[Any], tolerance: float) -> str:
        compiled = func.jit(g)
        points = (args, near, args)[: len(expected)]
        return next(
            filter(None, [difference(compiled(*p), want, tolerance) for p, want in zip(points, expected, strict=True)]),
            "",
        )

    tangent = tuple([m if isinstance(a, np.ndarray) else float(m) for a, m in zip(args, magnitudes, strict=True)])
    batches = [np.stack([np.asarray(a), np.asarray(b)]) for a, b in zip(args, near, strict=True)]
    yield "value", lambda: difference(func.jvp(f, tuple(args), tangent)[0], values[0])
    yield "vmap", lambda: difference(func.vmap(f)(*batches), stacked(values))
    yield "jit", lambda: jitted(f, [*values, values[0]], 1e-9)
    if not has_derivative:
        return
    yield "grad", lambda: difference(gradient(*args), slopes, 2e-6)
    total = sum([np.sum(slope) for slope in slopes])
    yield "jvp", lambda: difference(func.jvp(loss, tuple(args), tangent)[1], total, 2e-6 * max(1, len(args)))
    yield "jit(grad)", lambda: jitted(gradient, [slopes], 2e-6)
    if second:
        yield "jacobian", lambda: difference(jacobian_along(f, args, tangent), slope_along(f, args, tangent), 2e-6)
        yield "hessian", lambda: difference(curvature(loss, args, tangent), slope_along(gradient, args, tangent), 2e-5)


def slope_along(f: Callable[..., Any], args: Sequence[Any], direction: Sequence[Any]) -> list[Any]:
    """The central difference of all results along a direction."""
    ends = [leaves(f(*[a + sign * STEP * d for a, d in zip(args, direction, strict=True)])) for sign in (1, -1)]
    return [
        (np.asarray(a) - np.asarray(b)) / (2 * STEP)
        for a, b in zip(*ends, strict=True)
        if np.asarray(a).dtype.kind in "fc"
    ]


def jacobian_along(f: Callable[..., Any], args: Sequence[Any], direction: Sequence[Any]) -> list[Any]:
    """The Jacobian of all floating-point results times a direction."""

    def vector(*args: Any) -> Any:
        return [leaf for leaf in leaves(f(*args)) if np.result_type(leaf).kind in "fc"]

    rows = func.jacobian(vector, argnums=tuple(range(len(args))))(*args)
    return [contracted(columns, direction) for columns in rows]


def curvature(loss: Callable[..., Any], args: Sequence[Any], direction: Sequence[Any]) -> list[Any]:
    """The Hessian times a direction, times the direction."""
    rows = func.hessian(loss, argnums=tuple(range(len(args))))(*args)
    return [contracted(columns, direction) * d for columns, d in zip(rows, direction, strict=True)]


def contracted(columns: Sequence[Any], direction: Sequence[Any]) -> Any:
    """Derivatives by several arguments times a direction."""
    return sum([np.tensordot(c, d, np.ndim(d)) for c, d in zip(columns, direction, strict=True)])


def outcomes(f: Callable[..., Any], args: Sequence[Any], second: bool = True) -> dict[str, str]:
    """The transforms that differ or refuse, and how."""
    found = {}
    for name, check in checks(f, args, second):
        try:
            result = check()
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        if result:
            found[name] = result
    return found
