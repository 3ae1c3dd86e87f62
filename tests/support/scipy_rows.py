"""Rows of public SciPy functions: for each one call, as a function of a module and of one array, and its laws.

Each law is checked with SciPy's own module, called unmodified on traced values, and with func's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import func
from tests.support.coverage import direction, inner, loss_of
from tests.support.numpy_properties import extrapolated

COLUMNS = ("value", "jvp", "vjp", "order 2", "vmap", "jit", "unmodified")


@dataclass(frozen=True)
class Row:
    """One call of a SciPy function, as a function of its module (SciPy's, or func's) and of one array.

    `rtol` is for derivatives against differences; `without` names the columns that do not hold, each with its reason.
    """

    call: Callable[[Any, Any], Any]
    x: Any
    rtol: float = 1e-6
    exact: float = 1e-11
    without: Mapping[str, str] = field(default_factory=dict)


def modules(name: str) -> tuple[Any, Any]:
    """SciPy's module and func's, by the name within SciPy: "linalg", "sparse.linalg"."""
    return importlib.import_module(f"scipy.{name}"), importlib.import_module(f"func.scipy.{name}")


def with_library(row: Row, library: Any) -> Callable[[Any], Any]:
    """The call as a function of the array; of several outputs, the first of floating point."""

    def function(x: Any) -> Any:
        out = row.call(library, x)
        if isinstance(out, (tuple, list)):
            return next((o for o in out if np.result_type(o).kind in "fc"), out[0])
        return out

    return function


def _value(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    x = row.x
    expected = plain(x)
    for got in (func.vjp(f, x)[0], func.jvp(f, (x,), (np.ones_like(x),))[0], f(x)):
        assert np.shape(got) == np.shape(expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=row.exact, atol=row.exact)


def _jvp(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    tangent = direction(row.x, 1)
    _, dot = func.jvp(f, (row.x,), (tangent,))
    np.testing.assert_allclose(dot, extrapolated(plain, row.x, tangent), rtol=row.rtol, atol=row.rtol)


def _vjp(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    tangent = direction(row.x, 1)
    out, dot = func.jvp(f, (row.x,), (tangent,))
    ct = np.asarray(direction(out, 2), np.asarray(out).dtype)
    (pulled,) = func.vjp(f, row.x)[1](ct[()] if ct.ndim == 0 else ct)
    np.testing.assert_allclose(inner(pulled, tangent), inner(ct, dot), rtol=1e-8, atol=1e-9)


def _second(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    tangent, loss = direction(row.x, 3), loss_of(f)
    once = func.hvp(loss, (row.x,), (tangent,))
    np.testing.assert_allclose(once, func.vhp(loss, (row.x,), (tangent,)), rtol=1e-6, atol=1e-7)
    differences = extrapolated(func.grad(loss), row.x, tangent)
    np.testing.assert_allclose(once, differences, rtol=10 * row.rtol, atol=10 * row.rtol)


def _vmap(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    batch = np.stack([row.x, row.x * 1.01, row.x * 0.98])
    expected = np.stack([np.asarray(plain(one)) for one in batch])
    np.testing.assert_allclose(func.vmap(f)(batch), expected, rtol=1e-8, atol=1e-10)
    gradient = func.grad(loss_of(f))
    np.testing.assert_allclose(
        func.vmap(gradient)(batch), np.stack([gradient(one) for one in batch]), rtol=1e-6, atol=1e-8
    )


def _jit(f: Callable[[Any], Any], plain: Callable[[Any], Any], row: Row) -> None:
    other = row.x * 1.01
    compiled = func.jit(func.value_and_grad(loss_of(f)))
    for x in (row.x, other):
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, loss_of(plain)(x), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(gradient, func.grad(loss_of(f))(x), rtol=1e-7, atol=1e-9)


LAWS: dict[str, Callable[[Callable[[Any], Any], Callable[[Any], Any], Row], None]] = {
    "value": _value,
    "jvp": _jvp,
    "vjp": _vjp,
    "order 2": _second,
    "vmap": _vmap,
    "jit": _jit,
}


def check(row: Row, module: str, column: str) -> None:
    """One law of a row; `unmodified` is all laws of the row, with SciPy's own module."""
    scipy_module, own = modules(module)
    plain = with_library(row, scipy_module)
    if column != "unmodified":
        LAWS[column](with_library(row, own), plain, row)
        return
    for name, law in LAWS.items():
        if name not in row.without:
            law(plain, plain, row)


def parameters(rows: Mapping[str, Row]) -> list[tuple[str, str]]:
    """The pairs of rows and columns that hold, for pytest."""
    return [(name, column) for name, row in rows.items() for column in COLUMNS if column not in row.without]


def main(module: str, rows: Mapping[str, Row]) -> None:
    """Print which laws hold, for work on a module: `python -m tests.support.scipy_stats`."""
    total = held = 0
    for name, row in rows.items():
        for column in COLUMNS:
            if column in row.without:
                continue
            total += 1
            try:
                check(row, module, column)
                held += 1
            except Exception as error:
                print(f"{name} / {column}: {type(error).__name__}: {str(error).strip().splitlines()[0][:110]}")
    print(f"{module}: {held} of {total} laws hold, {len(rows)} rows")
