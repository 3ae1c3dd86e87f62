"""Tests by random resamples: their p-values count, which has no derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats as _scipy

from func.host.scipy_hooks import holds_traced, original
from func.scipy.kinds.plain_values import on_the_host, without_derivative

__all__ = ["goodness_of_fit", "monte_carlo_test", "permutation_test", "power"]


def _test(name: str, takes: int) -> Callable[..., Any]:
    """SciPy's function; `takes` is the place of the callback, or of the first of them, among its arguments."""

    words = (
        f"scipy.stats.{name} has no derivative: it counts resamples\n"
        "Differentiate the statistic itself, and call it on func.stop_gradient(x)."
    )
    constant = without_derivative(words)

    def counted(call: Any) -> Any:
        """A callback whose traced results cannot be differentiated."""
        if not callable(call):
            return call

        @functools.wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            value = getattr(result, "pvalue", result)
            return constant(np.asarray(value)) if holds_traced(value) else result

        return wrapper

    def function(*args: Any, **kwargs: Any) -> Any:
        plain = original(getattr(_scipy, name))
        if holds_traced((args, kwargs)):
            return on_the_host(plain, args, kwargs, words=words)
        args = tuple([counted(arg) if i >= takes else arg for i, arg in enumerate(args)])
        callbacks = {key: counted(value) for key, value in kwargs.items() if key in ("test", "statistic", "rvs")}
        return plain(*args, **(kwargs | callbacks))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.stats.{name}, which has no derivative: it counts resamples."
    return function


goodness_of_fit = _test("goodness_of_fit", 2)
power = _test("power", 0)
permutation_test = _test("permutation_test", 1)
monte_carlo_test = _test("monte_carlo_test", 1)
