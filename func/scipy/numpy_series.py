"""NumPy's series (`numpy.polynomial`) with traced coefficients: a coefficient that is zero has a derivative too.

NumPy drops zeros at the end, and has shorter results for a series that is zero. Here traced coefficients stay, unless a
function divides by the last one.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from func.host.interception import intercepted_call
from func.host.scipy_hooks import holds_traced, original
from func.host.scipy_table import BASES
from func.interpreters.core import Tracer, operand, shape_of
from func.numpy.polynomials import zeros_at_end_of
from func.numpy.shaping import atleast_1d

_ROOTS = "Zeros at the end are dropped: write np.linalg.eigvals of the companion matrix."


def trimseq(seq: Any) -> Any:
    """Coefficients as they are."""
    return seq


def _trimmed(series: Any, name: str) -> Any:
    """Coefficients without the zeros at the end, by value; the first one stays."""
    series = atleast_1d(operand(series))
    if type(series) is not Tracer or len(shape_of(series)) != 1:
        return series
    coefficients: Any = series
    length: int = shape_of(series)[0]
    return coefficients[: length - min(zeros_at_end_of(series, False, name, _ROOTS), length - 1)]


def _division(function: Callable[..., Any], name: str, place: int) -> Callable[..., Any]:
    """The function with the series by whose last coefficient it divides at a place."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        positional = list(args)
        if place < len(positional):
            positional[place] = _trimmed(positional[place], name)
        return intercepted_call(function)(*positional, **kwargs)

    return call


def _is_zero(value: Any) -> bool:
    """Whether a traced number, or series of one coefficient, is zero."""
    return holds_traced(value) and shape_of(value) in ((), (1,)) and bool(np.all(value == 0))


def _affine(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that is affine in an argument, and has a branch where that is zero: it is evaluated around zero."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        run = intercepted_call(function)
        positional = [operand(x) if isinstance(x, list) else x for x in args]
        if place >= len(positional) or not _is_zero(positional[place]):
            return run(*args, **kwargs)
        value = positional[place]
        around = [run(*[*positional[:place], value + sign, *positional[place + 1 :]], **kwargs) for sign in (1.0, -1.0)]
        return (around[0] + around[1]) / 2.0

    return call


for _basis, _short in BASES.items():
    _module = importlib.import_module(f"numpy.polynomial.{_basis}")
    for _what, _kind in (("roots", 0), ("companion", 0), ("div", 1)):
        _name = f"{_short}{_what}"
        globals()[_name] = _division(original(getattr(_module, _name)), _name, _kind)
    for _what, _kind in (("line", 1), ("int", 0), ("mulx", 0)):
        _name = f"{_short}{_what}"
        globals()[_name] = _affine(original(getattr(_module, _name)), _kind)
