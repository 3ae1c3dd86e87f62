"""The gradient through solve_ivp against diffrax: Lotka-Volterra, RK45, rtol 1e-8, four parameters, jitted.

python -m benchmarks.scipy_integrate

Both libraries take the same formulas, tolerances and bound on steps. diffrax has its default, recursive checkpointing.
If it is not installed, func's time stands alone.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import func

PARAMETERS = np.array([1.5, 1.0, 3.0, 1.0])
START, END, STEPS = np.ones(2), 10.0, 4096
TOLERANCES = {"rtol": 1e-8, "atol": 1e-10}


def right_side(xp: Any, y: Any, p: Any) -> Any:
    """The equations of Lotka and Volterra."""
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


def with_func() -> Callable[[Any], Any]:
    """Value and gradient of the squared norm of the last state, by func."""

    def loss(p: Any) -> Any:
        solution = func.scipy.integrate.solve_ivp(
            lambda t, y: right_side(np, y, p), (0.0, END), START, t_eval=[END], max_steps=STEPS, **TOLERANCES
        )
        return np.sum(solution.y[:, -1] ** 2)

    return func.jit(func.value_and_grad(loss))


def with_diffrax() -> Callable[[Any], Any]:
    """The same by diffrax."""
    import diffrax  # pyright: ignore[reportMissingImports]
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    term = diffrax.ODETerm(lambda t, y, p: right_side(jnp, y, p))

    def loss(p: Any) -> Any:
        controller = diffrax.PIDController(**TOLERANCES)
        solution = diffrax.diffeqsolve(
            term, diffrax.Dopri5(), 0.0, END, None, jnp.ones(2), p, stepsize_controller=controller, max_steps=STEPS
        )
        return jnp.sum(solution.ys[-1] ** 2)

    compiled = jax.jit(jax.value_and_grad(loss))
    return lambda p: jax.block_until_ready(compiled(p))


def least_time(function: Callable[[Any], Any], repeats: int = 30) -> float:
    """The least of some times, in seconds."""
    function(PARAMETERS)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(PARAMETERS)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the times and their ratio."""
    own = with_func()
    mine = least_time(own)
    print(f"func     {mine * 1e3:8.3f} ms")
    if importlib.util.find_spec("diffrax") is None:
        print("diffrax is not installed")
        return
    other = with_diffrax()
    np.testing.assert_allclose(own(PARAMETERS)[1], np.asarray(other(PARAMETERS)[1]), rtol=1e-5)
    theirs = least_time(other)
    print(f"diffrax  {theirs * 1e3:8.3f} ms\nratio    {mine / theirs:8.3f}")


if __name__ == "__main__":
    main()
