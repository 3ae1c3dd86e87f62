"""Newton's method as a compiled loop, where a system starts so near a root that SciPy would find the same one.

Compiled code would call SciPy by Python. Where every Newton step from the start is at most a quarter of the one before,
the start lies in the basin of one root, by the theorem of Newton and Kantorovich in practice, and MINPACK's first steps
are the same. Then the loop's root is taken, to full precision; in all other cases SciPy's code runs.
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

CONTRACTION = 0.25
"""A step is at most this part of the step before."""
FACTOR = 100.0
"""The first step is at most so many times as long as the start: MINPACK's first trust region."""
LAST = 1e-9
"""A step of this part of the root, or of the first step, leads to it: the next would be below rounding."""
MOST_STEPS = 20


def newton_or(otherwise: Callable[[], Any], x0: Any, fun: Callable[..., Any], args: Any, jac: Any) -> Any:
    """(x, info) by Newton's method in traced code, or what `otherwise()` gives."""
    try:
        start = vector_of(as_array(x0)) * 1.0

        def f(x: Array) -> Array:
            return vector_of(as_array(fun(x, *args)[0] if jac is True else fun(x, *args))) * 1.0

        slope = jacfwd(f)

        def is_moving(state: Any) -> Any:
            x, length, first, is_good, steps = state
            small = LAST * np.maximum(np.linalg.norm(x), first)
            return is_good & (length > small) & (steps < MOST_STEPS)

        def step(state: Any) -> Any:
            x, length, first, _, steps = state
            matrix = slope(x)
            packed, pivots = lu_factors(matrix)
            move = factored_solve(matrix, packed, pivots, np.expand_dims(f(x), 1), adjoint=False)[:, 0]
            now = np.linalg.norm(move)
            limit = np.where(steps == 0, FACTOR * np.where(first > 0, first, 1.0), CONTRACTION * length)
            return x - move, now, np.where(steps == 0, now, first), now <= limit, steps + 1

        scale = np.linalg.norm(start)
        x, length, first, is_good, steps = while_loop(is_moving, step, (start, np.inf, scale, True, 0))
        if dtype_of(x) != np.float64:
            return otherwise()
        is_found = is_good & (length <= LAST * np.maximum(np.linalg.norm(x), first))
    except FuncError:  # the function's Python code decides by numbers, which only SciPy's call has
        return otherwise()
    info = np.stack([np.asarray(1), np.asarray(1), steps, steps])
    return cond(is_found, lambda x, info: (x, info), lambda x, info: otherwise(), x, info)
