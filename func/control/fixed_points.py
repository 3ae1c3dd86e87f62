"""`fixed_point`: an iteration to its limit, differentiated as the limit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from func import tree
from func.control.branches_and_loops import while_loop
from func.interpreters.calls.callback import callback
from func.interpreters.core import dtype_of, is_inexact
from func.interpreters.core.errors import SolverWarning
from func.interpreters.host.public_functions import without_engine_frames
from func.transforms.boundary import array_leaf, check_callable, name_of
from func.transforms.implicit import Problem, solution


@without_engine_frames
def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float = 1e-10,
    max_steps: int = 1000,
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
) -> Any:
    """The x with f(x, *params) = x that the iteration x ← f(x, *params) from x0 tends to.

    The derivative is that of the fixed point, by the implicit function theorem. It depends neither on x0 nor on the
    steps, and needs no memory for them. It covers `params` and the closure of f, in both modes, to every order, under
    `vmap` and `jit`.

    Args:
        f: f(x, *params) returns a tree like x.
        x0: The start, a tree.
        params: Trees.
        tol: The iteration ends once no number of x changes by more than tol * (1 + |x|).
        max_steps: It ends after this many steps in any case, with a SolverWarning.
        tangent_solve: As for `custom_root`; the default solves with the dense Jacobian of f(x) - x.

    Example:
        >>> import numpy as np, func
        >>> float(func.fixed_point(np.cos, 1.0).round(9))
        0.739085133
        >>> babylonian = lambda x, a: (x + a / x) / 2
        >>> func.value_and_grad(lambda a: func.fixed_point(babylonian, 1.0, a))(4.0)
        (np.float64(2.0), np.float64(0.25))
    """
    check_callable(f, "fixed_point")
    start = tree.map(lambda leaf: array_leaf(leaf, "x0", "fixed_point"), x0)

    def residual(x: Any, aux: Any, *params: Any) -> Any:
        return tree.map(lambda before, after: before - after, x, f(x, *params))

    def solve(start: Any, *params: Any) -> tuple[Any, Any]:
        start = tree.map(_floating, start)

        def has_not_converged(state: Any) -> Any:
            _, change, steps = state
            return (change > tol) & (steps < max_steps)

        def step(state: Any) -> Any:
            x, _, steps = state
            after = f(x, *params)
            return after, _change(x, after), steps + 1

        x, change, _ = while_loop(has_not_converged, step, (f(start, *params), np.float64(np.inf), 1))
        callback(change, function=Converged(name_of(f), tol, max_steps))
        return x, ()

    return solution(Problem(residual, solve, tangent_solve, (start,), params))[0]


def _floating(leaf: Any) -> Any:
    return leaf if is_inexact(dtype_of(leaf)) else np.asarray(leaf) * 1.0


def _change(before: Any, after: Any) -> Any:
    """The largest change of a number, relative to 1 + |x|; NaN ends the iteration."""
    total: Any = np.float64(0.0)
    for x, y in zip(tree.leaves(before), tree.leaves(after), strict=True):
        total = np.maximum(total, np.max(np.abs(y - x) / (1 + np.abs(y)), initial=0.0))
    return total


class Converged:
    """Warns if the last change was too large."""

    def __init__(self, name: str, tol: float, max_steps: int) -> None:
        self.name = name
        self.tol = tol
        self.max_steps = max_steps

    def __call__(self, change: Any) -> None:
        if not np.all(change <= self.tol):
            warnings.warn(
                f"func.fixed_point: the iteration of {self.name} has not converged after {self.max_steps} steps (its "
                f"last change is {np.max(change):.1e}); the derivative of its result is that of a fixed point, which "
                "this is not",
                SolverWarning,
                stacklevel=2,
            )
