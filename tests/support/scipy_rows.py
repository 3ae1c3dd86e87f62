"""Rows of public SciPy functions: for each one call, as a function of a module and of one array, and its laws.

Each law is checked with func's module; SciPy's own, called unmodified on traced values, has to give the same.
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

DEPRECATED = "ignore:`[a-z_]+` is deprecated .*removed in SciPy 1.20:DeprecationWarning"
"""SciPy's own warnings about functions that it will drop."""
Function = Callable[[Any], Any]
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
    converts: bool = False
    """Whether the call itself makes an array of a traced one by np.asarray, which tensors allow in a transform only."""


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


def _value(f: Function, row: Row) -> Any:
    return func.vjp(f, row.x)[0], func.jvp(f, (row.x,), (np.ones_like(row.x),))[0]


def _jvp(f: Function, row: Row) -> Any:
    return func.jvp(f, (row.x,), (direction(row.x, 1),))[1]


def _vjp(f: Function, row: Row) -> Any:
    out, pullback = func.vjp(f, row.x)
    return pullback(_cotangent(out))[0]


def _backward(f: Function, row: Row) -> Any:
    """The same by a tensor, while no transform runs."""
    x = func.tensor(row.x, requires_grad=True)
    out = f(x)
    out.backward(_cotangent(out.detach().numpy()))
    return np.asarray(x.grad)


def _second(f: Function, row: Row) -> Any:
    return func.hvp(loss_of(f), (row.x,), (direction(row.x, 3),))


def _vmap(f: Function, row: Row) -> Any:
    return func.vmap(f)(_batch(row)), func.vmap(func.grad(loss_of(f)))(_batch(row))


def _jit(f: Function, row: Row) -> Any:
    compiled = func.jit(func.value_and_grad(loss_of(f)))
    return [compiled(x) for x in (row.x, row.x * 1.01)]


def _cotangent(out: Any) -> Any:
    ct = np.asarray(direction(out, 2), np.asarray(out).dtype)
    return ct[()] if ct.ndim == 0 else ct


def _batch(row: Row) -> Any:
    return np.stack([row.x, row.x * 1.01, row.x * 0.98])


def _check_value(found: Any, f: Function, plain: Function, row: Row) -> None:
    expected = plain(row.x)
    for got in (*found, f(row.x)):
        assert np.shape(got) == np.shape(expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(got, expected, rtol=row.exact, atol=row.exact)


def _check_jvp(found: Any, f: Function, plain: Function, row: Row) -> None:
    differences = extrapolated(plain, row.x, direction(row.x, 1))
    np.testing.assert_allclose(found, differences, rtol=row.rtol, atol=row.rtol)


def _check_vjp(found: Any, f: Function, plain: Function, row: Row) -> None:
    tangent = direction(row.x, 1)
    out, dot = func.jvp(f, (row.x,), (tangent,))
    np.testing.assert_allclose(inner(found, tangent), inner(_cotangent(out), dot), rtol=1e-8, atol=1e-9)


def _check_second(found: Any, f: Function, plain: Function, row: Row) -> None:
    tangent, loss = direction(row.x, 3), loss_of(f)
    np.testing.assert_allclose(found, func.vhp(loss, (row.x,), (tangent,)), rtol=1e-6, atol=1e-7)
    differences = extrapolated(func.grad(loss), row.x, tangent)
    np.testing.assert_allclose(found, differences, rtol=10 * row.rtol, atol=10 * row.rtol)


def _check_vmap(found: Any, f: Function, plain: Function, row: Row) -> None:
    expected = np.stack([np.asarray(plain(one)) for one in _batch(row)])
    np.testing.assert_allclose(found[0], expected, rtol=1e-8, atol=1e-10)
    gradient = func.grad(loss_of(f))
    np.testing.assert_allclose(found[1], np.stack([gradient(one) for one in _batch(row)]), rtol=1e-6, atol=1e-8)


def _check_jit(found: Any, f: Function, plain: Function, row: Row) -> None:
    for x, (value, gradient) in zip((row.x, row.x * 1.01), found, strict=True):
        np.testing.assert_allclose(value, loss_of(plain)(x), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(gradient, func.grad(loss_of(f))(x), rtol=1e-7, atol=1e-9)


LAWS: dict[str, tuple[Callable[[Function, Row], Any], Callable[[Any, Function, Function, Row], None]]] = {
    "value": (_value, _check_value),
    "jvp": (_jvp, _check_jvp),
    "vjp": (_vjp, _check_vjp),
    "order 2": (_second, _check_second),
    "vmap": (_vmap, _check_vmap),
    "jit": (_jit, _check_jit),
}
"""The result of a transform, and the law that it obeys."""
_found: dict[tuple[int, str], Any] = {}


def check(row: Row, module: str, column: str) -> None:
    """One law of a row with func's module; `unmodified`: SciPy's own module gives the same in every transform."""
    scipy_module, own = modules(module)
    plain, function = with_library(row, scipy_module), with_library(row, own)
    if column != "unmodified":
        transformed, law = LAWS[column]
        found = _found[id(row), column] = transformed(function, row)
        law(found, function, plain, row)
        if column == "vjp":
            with func.intercept():
                np.testing.assert_allclose(_vjp(function, row), found, rtol=1e-8, atol=1e-10)
            if not row.converts:
                for f in (function, plain) if "unmodified" not in row.without else (function,):
                    np.testing.assert_allclose(_backward(f, row), found, rtol=1e-8, atol=1e-10)
        return
    for name, (transformed, _) in LAWS.items():
        if name in row.without:
            continue
        expected = _found.pop((id(row), name), None)
        expected = func.tree.leaves(transformed(function, row) if expected is None else expected)
        tolerance = row.exact if name == "value" else min(1e-6, row.rtol)
        for got, known in zip(func.tree.leaves(transformed(plain, row)), expected, strict=True):
            assert np.shape(got) == np.shape(known) and np.asarray(got).dtype == np.asarray(known).dtype
            np.testing.assert_allclose(got, known, rtol=tolerance, atol=tolerance)


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
