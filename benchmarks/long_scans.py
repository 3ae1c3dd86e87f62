"""The gradient of long scans: its memory against that of a shorter one, its time against the forward run.

`python -m benchmarks.long_scans [--rounds N] [--steps N] [--threads N]` prints two ratios for each model. The first is
the planned peak of the gradient of a scan of `steps` steps over that of 1,000. The second is the least time of the
gradient over that of the forward run, of interleaved rounds. It uses processor time on one thread, wall-clock time on
several. Both are jitted; the gradient is that of the parameters and of the start, its forward run included. The plan
covers the allocations of native code: one arena, and the results.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import func

SIZE, SHORT = 100, 1000
PEAK_BAR, TIME_BAR = 3.0, 2.5


def saturating(params: Any, h: Any) -> Any:
    """One step of an ordinary differential equation for each element."""
    return h + 0.01 * (np.tanh(params[0] * h + params[1]) - h)


def growing(params: Any, h: Any) -> Any:
    """One step of logistic growth with a decaying yield."""
    return h + 0.01 * (params[0] * np.exp(-h) - params[1] * h)


def runge_kutta(params: Any, h: Any) -> Any:
    """One step of the classical Runge-Kutta method for the equation of `saturating`."""

    def slope(h: Any) -> Any:
        return np.tanh(params[0] * h + params[1]) - h

    first = slope(h)
    second = slope(h + 0.005 * first)
    third = slope(h + 0.005 * second)
    return h + 0.01 / 6 * (first + 2 * (second + third) + slope(h + 0.01 * third))


def recurrent(params: Any, h: Any) -> Any:
    """One step of a recurrent network."""
    return np.tanh(params[0] @ h + params[1])


def models() -> dict[str, tuple[Callable[..., Any], Any]]:
    """Steps and their parameters."""
    rng = np.random.default_rng(0)
    vector, other = rng.normal(size=SIZE), np.abs(rng.normal(size=SIZE))
    matrix = rng.normal(size=(SIZE, SIZE)) / SIZE**0.5
    return {
        "saturating": (saturating, (vector, other)),
        "Runge-Kutta": (runge_kutta, (vector, other)),
        "growing": (growing, (other, other + 0.5)),
        "recurrent": (recurrent, (matrix, vector)),
    }


def loss(step: Callable[..., Any], length: int) -> Callable[..., Any]:
    """The sum of squares of the state after all steps."""

    def of_last(params: Any, start: Any) -> Any:
        h, _ = func.scan(lambda h, _: (step(params, h), None), start, None, length=length)
        return np.sum(h * h)

    return of_last


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10**6)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    func.config.num_threads = options.threads
    clock = time.process_time if options.threads == 1 else time.perf_counter
    start = np.random.default_rng(1).normal(size=SIZE)
    for name, (step, params) in models().items():
        run = func.jit(loss(step, options.steps))
        gradient = func.jit(func.grad(loss(step, options.steps), argnums=(0, 1)))
        short = func.jit(func.grad(loss(step, SHORT), argnums=(0, 1)))
        peaks = [func.memory(f)(params, start).peak for f in (gradient, short)]
        calls = {"run": run, "gradient": gradient}
        least = dict.fromkeys(calls, float("inf"))
        for _ in range(options.rounds + 1):  # the first round compiles
            for word, call in calls.items():
                before = clock()
                call(params, start)
                least[word] = min(least[word], clock() - before)
        peak, ratio = peaks[0] / peaks[1], least["gradient"] / least["run"]
        marks = ["reached" if value <= bar else "MISSED" for value, bar in ((peak, PEAK_BAR), (ratio, TIME_BAR))]
        print(
            f"{name:12} peak {peaks[0] / 1e6:7.2f} MB, {peak:5.2f} of {SHORT} steps ({marks[0]}); "
            f"run {least['run']:6.3f} s, gradient {least['gradient']:6.3f} s, {ratio:5.2f} of it ({marks[1]})",
            flush=True,
        )


if __name__ == "__main__":
    main()
