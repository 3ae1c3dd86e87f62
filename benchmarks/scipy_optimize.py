"""Solvers: the root of a system with its derivative, jitted, against optimistix; BFGS without and with exact gradients.

`python -m benchmarks.scipy_optimize [--rounds N]` prints medians of interleaved rounds and whether the bars hold.
optimistix is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

import func

SIZE = 100


def system() -> tuple[Any, Any]:
    """A well-conditioned matrix, and parameters."""
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(SIZE, SIZE)) / SIZE**0.5 + 3 * np.eye(SIZE)
    return matrix, generator.uniform(0.5, 1.5, SIZE)


def roots() -> dict[str, Callable[[], Any]]:
    """value_and_grad of a sum of squares of the root of A x + tanh(x) p = p², from x = 0."""
    matrix, p = system()

    def loss(p: Any) -> Any:
        x = scipy.optimize.root(lambda x: matrix @ x + np.tanh(x) * p - p**2, np.zeros(SIZE)).x
        return np.sum(x**2)

    compiled = func.jit(func.value_and_grad(loss))
    contestants: dict[str, Callable[[], Any]] = {"func.jit, scipy.optimize.root": lambda: compiled(p)}
    if importlib.util.find_spec("optimistix") is None:
        return contestants
    jax, optimistix = importlib.import_module("jax"), importlib.import_module("optimistix")
    jax.config.update("jax_enable_x64", True)
    on_device = jax.numpy.asarray(matrix)

    def of(solver: Any) -> Callable[[], Any]:
        def loss(p: Any) -> Any:
            start = jax.numpy.zeros(SIZE)
            root = optimistix.root_find(lambda x, p: on_device @ x + jax.numpy.tanh(x) * p - p**2, solver, start, p)
            return jax.numpy.sum(root.value**2)

        compiled = jax.jit(jax.value_and_grad(loss))
        return lambda: jax.block_until_ready(compiled(p))

    for name in ("Dogleg", "Newton", "Chord"):
        contestants[f"optimistix.{name}"] = of(getattr(optimistix, name)(1e-9, 1e-9))
    return contestants


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minima() -> dict[str, Callable[[], Any]]:
    """BFGS on Rosenbrock's function of 100 variables, with no gradient given."""
    start = np.full(SIZE, 0.5)
    return {
        "func.scipy.optimize.minimize": lambda: func.scipy.optimize.minimize(rosenbrock, start, method="BFGS"),
        "scipy.optimize.minimize": lambda: scipy.optimize.minimize(rosenbrock, start, method="BFGS"),
    }


def medians(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds per call, in rounds in which each contestant runs some times in a row.

    The first calls of a row do not count: threads of the previous contestant may still wait for work.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    idle, counted = (2, 6) if rounds >= 10 else (0, 1)
    for call in contestants.values():
        call()
    for _ in range(-(-rounds // counted)):
        for name, call in contestants.items():
            for number in range(idle + counted):
                start = time.perf_counter()
                call()
                if number >= idle:
                    times[name].append(time.perf_counter() - start)
    return {name: statistics.median(own) for name, own in times.items()}


def report(title: str, seconds: dict[str, float], bars: dict[str, float]) -> None:
    """Print times, quotients and verdicts."""
    first, *others = seconds
    print(f"{title}\n  {first}: {seconds[first] * 1e3:.3f} ms")
    for name in others:
        quotient = seconds[first] / seconds[name]
        bar = bars.get(name)
        verdict = "" if bar is None else f", at most {bar}: {'held' if quotient <= bar else 'missed'}"
        print(f"  {name}: {seconds[name] * 1e3:.3f} ms, quotient {quotient:.3f}{verdict}")


def main() -> None:
    """Both workloads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    report(
        f"root of {SIZE} equations and its derivative",
        medians(roots(), rounds),
        {"optimistix.Dogleg": 0.5, "optimistix.Newton": 0.5, "optimistix.Chord": 0.5},
    )
    contestants = minima()
    report(
        f"BFGS, Rosenbrock n = {SIZE}",
        medians(contestants, max(rounds // 60, 1)),
        {"scipy.optimize.minimize": 0.2},
    )
    exact, differences = [call().nfev for call in contestants.values()]
    print(f"  evaluations: {exact} and {differences}, quotient {exact / differences:.4f}, at most 0.05")


if __name__ == "__main__":
    main()
