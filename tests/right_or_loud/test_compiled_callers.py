"""Compiled code that meets traced values: the error says what to write, whatever the C code raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.ndimage
import scipy.optimize
import scipy.signal

import func
from func.errors import FuncError

V = np.arange(1.0, 7.0)
EYE = np.eye(3)
CALLS: dict[str, Callable[[Any], Any]] = {
    "fsolve": lambda a: scipy.optimize.fsolve(lambda x: x * x - a, 1.0)[0],
    "root": lambda a: scipy.optimize.root(lambda x: x * x - a, 1.0, method="lm").x[0],
    "leastsq": lambda a: scipy.optimize.leastsq(lambda x: x - a, np.ones(1))[0][0],
    "brentq": lambda a: scipy.optimize.brentq(lambda x: x * x - a, 0.0, 3.0),
    "end of brentq": lambda a: scipy.optimize.brentq(lambda x: x * x - 2.0, 0.0, a),
    "place in a spline": lambda a: scipy.interpolate.BSpline(np.arange(8.0), V[:4], 3)(a),
    "resample_poly": lambda a: scipy.signal.resample_poly(V * a, 2, 1)[0],
    "generic_filter": lambda a: scipy.ndimage.generic_filter(EYE, lambda w: np.sum(w) * a, 3)[0, 0],
    "label": lambda a: scipy.ndimage.label(EYE * a)[0].sum() * a,
    "kmeans": lambda a: scipy.cluster.vq.kmeans(V * a, 2, seed=0)[1],
}
MODES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f)(2.2),
    "jvp": lambda f: func.jvp(f, (2.2,), (1.0,))[1],
    "jit": lambda f: func.jit(f)(2.2),
    "vmap": lambda f: func.vmap(f)(np.array([2.2, 2.3])),
}


def _slope(f: Callable[[Any], Any]) -> Any:
    return (np.asarray(f(2.2 + 1e-5)) - np.asarray(f(2.2 - 1e-5))) / 2e-5


RIGHT: dict[str, Callable[[Any], Any]] = {
    "grad": _slope,
    "jvp": _slope,
    "jit": lambda f: f(2.2),
    "vmap": lambda f: [f(2.2), f(2.3)],
}
"""The result of a function that func has a version of."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_gets_numbers_or_its_error_is_worded(name: str, mode: str) -> None:
    function = CALLS[name]
    try:
        result = MODES[mode](function)
    except FuncError as error:
        words = ("takes plain arrays only", "Write", "write", "decides by values")
        assert any(word in str(error) for word in words)
        assert __file__ in str(error)
    else:
        np.testing.assert_allclose(result, RIGHT[mode](function), rtol=1e-6)


def test_a_batch_is_split_where_compiled_code_hides_the_signal() -> None:
    ends = np.array([2.0, 3.0, 2.0])
    roots = func.vmap(lambda end: scipy.optimize.brentq(lambda x: x * x - 2.0, 0.0, end))(ends)
    np.testing.assert_allclose(roots, np.sqrt([2.0, 2.0, 2.0]))


def test_an_error_of_compiled_code_without_traced_values_stays_itself() -> None:
    def parse(x: Any) -> Any:
        np.frombuffer(b"abc", dtype=np.float64)
        return x

    with pytest.raises(ValueError, match="buffer size must be a multiple of element size"):
        func.grad(parse)(1.0)


READS: dict[str, Callable[[Any], Any]] = {
    "frombuffer": np.frombuffer,
    "memoryview": lambda a: np.frombuffer(memoryview(a)),
    "bytes": lambda a: np.frombuffer(bytes(a)),
}


@pytest.mark.parametrize("name", READS)
def test_the_memory_of_an_intercepted_array_is_not_read_past_its_values(name: str) -> None:
    def total(x: Any, is_traced: bool) -> Any:
        with func.intercept():
            a = np.ones(3)
            a[0] = x if is_traced else 5.0
        read = (lambda a: np.frombuffer(a)) if name == "frombuffer" else READS[name]
        return np.sum(read(a)) * x

    with pytest.raises(FuncError, match="is about the memory of an array"):
        func.grad(total)(2.0, True)
    assert func.grad(total)(2.0, False) == 7.0
