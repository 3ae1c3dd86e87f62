"""Jacobians of functions of tensors by differences, by backward and by forward mode, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.autograd.backwards import grad
from func.autograd.modes import enable_grad
from func.autograd.tensor import requires_grad, tensor, to_numpy
from func.interpreters.core import Tracer, dtype_of
from func.interpreters.core.errors import GradcheckError
from func.transforms.forward import jvp


def plain(value: Any) -> Any:
    """The array behind a tensor or result."""
    return np.array(to_numpy(value, force=True) if type(value) is Tracer else value)


def flat(value: Any) -> Any:
    """An array as a real vector: real parts, then imaginary parts."""
    array: Any = np.asarray(value)
    return np.concatenate([array.real.ravel(), array.imag.ravel()]) if array.dtype.kind == "c" else array.ravel()


def unflat(vector: Any, like: Any) -> Any:
    """The array of a real vector."""
    if like.dtype.kind == "c":
        half = len(vector) // 2
        return (vector[:half] + 1j * vector[half:]).reshape(like.shape).astype(like.dtype)
    return vector.reshape(like.shape).astype(like.dtype)


def floating(outs: Sequence[Any]) -> list[Any]:
    """The outputs that can carry a derivative."""
    for i, out in enumerate(outs):
        if not hasattr(out, "dtype") and not isinstance(out, (int, float, complex)):
            raise TypeError(f"gradcheck: the function must return tensors, but output {i} is {type(out).__name__}")
    return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]


class Checked:
    """A function at some inputs: its floating point outputs as a function of the inputs that require a gradient."""

    def __init__(self, func: Callable[..., Any], inputs: Any) -> None:
        self.func = func
        self.inputs = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        self.places = [i for i, x in enumerate(self.inputs) if type(x) is Tracer and requires_grad(x)]
        if not self.places:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        self.points = [plain(self.inputs[i]) for i in self.places]

    def leaves(self, points: Sequence[Any]) -> list[Any]:
        """Fresh leaves at some points."""
        return [tensor(point, requires_grad=True) for point in points]

    def outputs(self, leaves: Sequence[Any]) -> list[Any]:
        """The floating point outputs."""
        args = [tensor(plain(x)) if type(x) is Tracer else x for x in self.inputs]
        for place, leaf in zip(self.places, leaves, strict=True):
            args[place] = leaf
        with enable_grad():
            out = self.func(*args)
        return floating(list(out) if isinstance(out, (tuple, list)) else [out])

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs, for tangents of the inputs that require a gradient."""

        def function(*points: Any) -> list[Any]:
            args = list(self.inputs)
            for place, point in zip(self.places, points, strict=True):
                args[place] = point
            out = self.func(*args)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            return [o for o in outs if hasattr(o, "dtype") and dtype_of(o).kind in "fc"]

        dots: list[Any] = jvp(function, tuple(self.points), tuple(tangents))[1]
        return dots

    def push_one(self, i: int, tangent: Any) -> list[Any]:
        """The tangents of the outputs where one input moves."""
        tangents: list[Any] = [np.zeros_like(point) for point in self.points]
        tangents[i] = tangent
        return self.push(tangents)

    def differentiable(self) -> list[int]:
        """Which outputs require a gradient."""
        outs = self.outputs(self.leaves(self.points))
        return [o for o, out in enumerate(outs) if type(out) is Tracer and requires_grad(out)]

    def values(self, points: Sequence[Any]) -> list[Any]:
        """The outputs as plain arrays."""
        return [plain(o) for o in self.outputs(self.leaves(points))]


def by_differences(values: Callable[[Sequence[Any]], list[Any]], points: list[Any], eps: float) -> list[list[Any]]:
    """Jacobians by central differences: for each input and output a matrix (inputs, outputs) of real numbers."""
    jacobians = []
    for i, point in enumerate(points):
        base = flat(point)
        rows: list[list[Any]] = []
        for k in range(len(base)):
            sides = []
            for sign in (1, -1):
                moved = base.copy()
                moved[k] += sign * eps
                sides.append(values([*points[:i], unflat(moved, point), *points[i + 1 :]]))
            width = 2 * eps
            rows.append([(flat(a) - flat(b)) / width for a, b in zip(*sides, strict=True)])
        count = len(rows[0]) if rows else 0
        jacobians.append([np.array([row[o] for row in rows]) for o in range(count)])
    return jacobians


def _units(like: Any) -> list[Any]:
    """The real unit directions of an array."""
    size = len(flat(like))
    return [unflat(np.eye(size)[k], like) for k in range(size)]


def by_backward(checked: Checked) -> list[list[Any]]:
    """Jacobians by backward, one row of cotangents after the other."""
    leaves = checked.leaves(checked.points)
    outs = checked.outputs(leaves)
    found: list[list[Any]] = [[] for _ in leaves]
    for out in outs:
        columns: list[list[Any]] = [[] for _ in leaves]
        for unit in _units(plain(out)):
            if type(out) is Tracer and requires_grad(out):
                grads = grad(out, leaves, unit, retain_graph=True, materialize_grads=True)
            else:
                grads = [np.zeros_like(point) for point in checked.points]
            for column, one in zip(columns, grads, strict=True):
                column.append(flat(plain(one)))
        for place, column in enumerate(columns):
            size = len(flat(checked.points[place]))
            found[place].append(np.array(column).reshape(-1, size).T)
    return found


def by_forward(checked: Checked) -> list[list[Any]]:
    """Jacobians by forward mode."""
    found = []
    for i, point in enumerate(checked.points):
        rows = [[flat(plain(dot)) for dot in checked.push_one(i, unit)] for unit in _units(point)]
        count = len(rows[0]) if rows else 0
        found.append([np.array([row[o] for row in rows]) for o in range(count)])
    return found


def compare(numerical: Any, analytical: Any, mode: str, i: int, o: int, atol: float, rtol: float) -> None:
    """Raise where two Jacobians differ, showing both and the first place."""
    close = np.isclose(analytical, numerical, rtol=rtol, atol=atol)
    if close.all():
        return
    index = tuple(np.argwhere(~close)[0].tolist())
    raise GradcheckError(
        f"Jacobian mismatch for output {o} with respect to input {i} ({mode} mode), first at index {index}: "
        f"numerical {numerical[index]:.10g}, analytical {analytical[index]:.10g}\n{_beside(numerical, analytical)}"
    )


def _beside(numerical: Any, analytical: Any) -> str:
    """Two Jacobians side by side."""
    left, right = [np.array2string(m, precision=5, threshold=400).split("\n") for m in (numerical, analytical)]
    width = max([len("numerical:"), *[len(line) for line in left]])
    pairs = [("numerical:", "analytical:"), *zip(left, right, strict=True)]
    return "\n".join([f"{one:<{width}}   {other}" for one, other in pairs])
