"""Black-Scholes prices with all their greeks by reverse mode: a long elementwise program over large arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import Library
from benchmarks.suite import compiled_bars, workload
from benchmarks.workload import Workload

SIZES = {"1k": 1_000, "100k": 100_000, "10M": 10_000_000}


def make_job(library: Library) -> Callable[..., Any]:
    """Call prices and their derivatives by spot, strike, volatility, time and rate.

    Source: F. Black and M. Scholes (1973), Journal of Political Economy 81, equation 13.
    """
    np = library.np

    def normal(x: Any) -> Any:
        return 0.5 * (1.0 + library.erf(x * 0.5**0.5))

    def price(ref: Any, strike: Any, volatility: Any, time: Any, rate: Any) -> Any:
        deviation = volatility * np.sqrt(time)
        above = (np.log(ref / strike) + (rate + 0.5 * volatility * volatility) * time) / deviation
        return ref * normal(above) - strike * np.exp(-rate * time) * normal(above - deviation)

    pullback = library.vjp(price)
    return lambda ct, *market: pullback(market, ct)


def data(size: int) -> tuple[Any, ...]:
    """The prices' cotangents, then spot, strike, volatility, time in years and rate."""
    generator = np.random.default_rng(0)
    ranges = ((80.0, 120.0), (80.0, 120.0), (0.1, 0.5), (0.1, 2.0), (0.01, 0.05))
    return np.ones(size), *(generator.uniform(low, high, size) for low, high in ranges)


def by_hand(ct: Any, ref: Any, strike: Any, volatility: Any, time: Any, rate: Any) -> Any:
    """The formulas of the greeks: both densities cancel, so each is a product of what the price needs anyway."""
    from scipy.special import ndtr

    root = np.sqrt(time)
    deviation = volatility * root
    above = (np.log(ref / strike) + (rate + 0.5 * volatility * volatility) * time) / deviation
    delta = ndtr(above)
    discounted = np.exp(-rate * time) * ndtr(above - deviation)
    vega = ref * root * np.exp(-0.5 * above * above) * (2 * np.pi) ** -0.5
    paid = strike * discounted
    by_rate = paid * time
    by_time = 0.5 * vega * volatility / time + rate * paid
    greeks = (delta, -discounted, vega, by_time, by_rate)
    return ref * delta - paid, tuple(ct * greek for greek in greeks)


def of_size(name: str, size: int) -> Workload:
    """The workload for this number of options."""
    return workload(
        f"black-scholes {name}",
        f"Black-Scholes prices and all greeks by reverse mode, {size:,} options, float64",
        make_job,
        lambda: data(size),
        compiled_bars(against_jax=2.5, memory=size >= 100_000),
        by_hand,
        huge=size > 1_000_000,
    )


WORKLOADS = tuple(of_size(name, size) for name, size in SIZES.items())
