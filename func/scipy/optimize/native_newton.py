"""Newton's method as a compiled loop, for systems that start so near a root that SciPy would find the same one.

Compiled code would call SciPy by Python. The loop here takes a few corrections with the factors of each Jacobian. If
every correction is at most a quarter of the previous one, the start lies in the basin of one root. Newton and
Kantorovich's theorem has this testable form, the natural monotonicity test. MINPACK's first steps are then the same, so
the loop computes the root to full precision. In all other cases SciPy's code runs.

Source: P. Deuflhard (2004), Newton Methods for Nonlinear Problems, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.control.branches_and_loops import cond, while_loop
from func.interpreters.core import Array, dtype_of
from func.interpreters.core.errors import FuncError
from func.interpreters.primitives.linalg.inverses import factored_solve, lu_factors
from func.scipy.optimize.solving import as_array, vector_of
from func.transforms.jacobians import jacfwd

CORRECTIONS = 3
"""Corrections with the factors of one Jacobian; this converges as the fourth power."""
CONTRACTION = 0.25
"""The largest ratio of a correction to the previous one."""
FACTOR = 100.0
"""The largest ratio of the first correction to the start: MINPACK's first trust region."""
NOISE, PRECISION = 1e-13, 1e-15
"""The ratio to the root below which corrections are rounding errors, and the loop ends."""
MOST_STEPS = 12


def newton_or(
    otherwise: Callable[[Any], Any], values: Any, x0: Any, fun: Callable[..., Any], args: Any, jac: Any
) -> Any:
    """(x, info) by Newton's method in traced code, or the result of `otherwise(values)`."""
    try:
        start = vector_of(as_array(x0)) * 1.0

        def f(x: Array) -> Array:
            return vector_of(as_array(fun(x, *args)[0] if jac is True else fun(x, *args))) * 1.0

        slope = jacfwd(f)

        def is_going_on(state: Any) -> Any:
            _, _, _, is_good, is_found, steps = state
            return is_good & ~is_found & (steps < MOST_STEPS)

        def step(state: Any) -> Any:
            x, length, first, is_good, _, steps = state
            matrix = slope(x)
            packed, pivots = lu_factors(matrix)
            before, size = length, first
            for number in range(CORRECTIONS):
                side = np.expand_dims(f(x), 1)
                move = factored_solve(matrix, packed, pivots, side, adjoint=False)[:, 0]
                x = x - move
                before, length = length, np.linalg.norm(move)
                if number == 0:
                    first = np.where(steps == 0, length, first)
                    limit = np.where(steps == 0, FACTOR * reach, CONTRACTION * before)
                else:
                    limit = CONTRACTION * before
                size = np.maximum(np.linalg.norm(x), first)
                is_good = is_good & ((length <= limit) | (length <= NOISE * size))
            is_found = (length * length <= PRECISION * size * before) | (length <= NOISE * size)
            return x, length, first, is_good, is_found, steps + 1

        distance = np.linalg.norm(start)
        reach = np.where(distance > 0, distance, 1.0)
        initial = (start, np.float64(np.inf), np.float64(0.0), np.bool_(True), np.bool_(False), 0)
        x, _, _, is_good, is_found, steps = while_loop(is_going_on, step, initial)
        if dtype_of(x) != np.float64:
            return otherwise(values)
        is_found = is_good & is_found
    except FuncError:  # the function's Python code decides by numbers, which only SciPy's call has
        return otherwise(values)
    info = np.stack([np.asarray(1), np.asarray(1), steps, steps])

    def found(x: Any, info: Any, values: Any) -> Any:
        return x, info

    def not_found(x: Any, info: Any, values: Any) -> Any:
        return otherwise(values)

    return cond(is_found, found, not_found, x, info, values)
