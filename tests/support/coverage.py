"""The laws of the coverage table, and its page: `python -m tests.support.coverage` writes docs/coverage.md."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import func
from tests.support.device_double import DeviceArray, to_device
from tests.support.functions import FUNCTIONS as NUMPY_FUNCTIONS
from tests.support.functions import WITHOUT, Call
from tests.support.functions_scipy import BY_EQUATIONS, CONSTANTS, NO_DERIVATIVE, SCIPY_FUNCTIONS, SETTINGS
from tests.support.numpy_properties import assert_same, extrapolated

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
FUNCTIONS = NUMPY_FUNCTIONS | SCIPY_FUNCTIONS
ALONE = {f"np.{name}" for name in WITHOUT}
ALONE |= {f"linalg.{name}" for name in CONSTANTS} | {f"special.{name}" for name in NO_DERIVATIVE}
ALONE |= {f"random.{name}" for name in SETTINGS} | {f"special.{name}" for name in BY_EQUATIONS}
"""Functions that take no array to differentiate, and those with rows elsewhere."""
COLUMNS = ("value", "jvp", "vjp", "order 2", "vmap", "vmap∘grad", "complex", "CuPy-ready")
YES, NONE, REFUSED, VALUE = "✓", "none", "–", "value"


def smooth(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The call with its first floating point output only, where it has several."""

    def function(x: Any) -> Any:
        out = call(x)
        if isinstance(out, (tuple, list)):
            return next((o for o in out if o.dtype.kind in "fc"), out[0])
        return out

    return function


def host(value: Any) -> Any:
    """A result on the host."""
    return value.get() if isinstance(value, DeviceArray) else np.asarray(value)


def direction(x: Any, seed: int) -> Any:
    """A random tangent, complex where x is."""
    rng = np.random.default_rng(seed)
    t = rng.normal(size=np.shape(x))
    return t + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else t


def inner(x: Any, y: Any) -> float:
    """The real inner product that adjoints refer to."""
    return float(np.sum(np.real(np.conj(x) * y)))


def loss_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A smooth real number made of a function's output."""

    def loss(x: Any) -> Any:
        out = f(x)
        return np.sum(np.sin(np.real(out))) + np.sum(np.cos(np.imag(out)))

    return loss


def check_value(call: Call) -> None:
    """Under both modes the value is NumPy's."""
    expected = (call.plain or call.function)(call.x)
    for got in (func.vjp(call.function, call.x)[0], func.jvp(call.function, (call.x,), (call.x,))[0]):
        if call.exact:
            assert_same(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def check_jvp(f: Callable[[Any], Any], plain: Callable[[Any], Any], x: Any) -> None:
    """The tangent agrees with extrapolated differences."""
    tangent = direction(x, 1)
    _, dot = func.jvp(f, (x,), (tangent,))
    np.testing.assert_allclose(dot, extrapolated(plain, x, tangent), rtol=1e-6, atol=1e-7)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """The pullback is the adjoint of the tangent map."""
    tangent = direction(x, 1)
    out, dot = func.jvp(f, (x,), (tangent,))
    ct = np.asarray(direction(out, 2), np.asarray(out).dtype)
    (pulled,) = func.vjp(f, x)[1](ct[()] if ct.ndim == 0 else ct)
    np.testing.assert_allclose(inner(pulled, tangent), inner(ct, dot), rtol=1e-9, atol=1e-10)


def check_second(f: Callable[[Any], Any], x: Any) -> None:
    """Forward over reverse, reverse over reverse and differences of gradients agree."""
    tangent, loss = direction(x, 3), loss_of(f)
    once = func.hvp(loss, (x,), (tangent,))
    np.testing.assert_allclose(once, func.vhp(loss, (x,), (tangent,)), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(once, extrapolated(func.grad(loss), x, tangent), rtol=1e-5, atol=1e-5)


def check_vmap(f: Callable[[Any], Any], x: Any) -> None:
    """vmap is the stack of singles."""
    batch = np.stack([x, x * 1.01, x * 0.98])
    expected = np.stack([np.asarray(f(one)) for one in batch])
    np.testing.assert_allclose(func.vmap(f)(batch), expected, rtol=1e-9, atol=1e-11)


def check_vmap_grad(f: Callable[[Any], Any], x: Any) -> None:
    """Per-sample gradients are the stack of gradients."""
    batch, gradient = np.stack([x, x * 1.01, x * 0.98]), func.grad(loss_of(f))
    np.testing.assert_allclose(
        func.vmap(gradient)(batch), np.stack([gradient(one) for one in batch]), rtol=1e-7, atol=1e-9
    )


def accepts(plain: Callable[[Any], Any], x: Any) -> bool:
    """Whether NumPy takes complex input here (and does not merely drop or ignore the imaginary part)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plain(x)
    except (TypeError, ValueError, np.exceptions.ComplexWarning, NotImplementedError):
        return False
    return True


def has_derivative(f: Callable[[Any], Any], x: Any) -> bool:
    """Whether a derivative is defined; where not, asking for it raises a worded error."""
    try:
        func.jvp(f, (x,), (np.ones_like(x),))
    except func.errors.NotDifferentiableError:
        return False
    return True


def check_complex(f: Callable[[Any], Any], plain: Callable[[Any], Any], x: Any, differentiable: bool) -> None:
    """Value, tangent and pullback at complex input."""
    np.testing.assert_allclose(func.vmap(f)(x[None])[0], plain(x), rtol=1e-10, atol=1e-12)
    if differentiable:
        np.testing.assert_allclose(func.vjp(f, x)[0], plain(x), rtol=1e-10, atol=1e-12)
        check_jvp(f, plain, x)
        check_vjp(f, x)


def check_device(f: Callable[[Any], Any], x: Any, differentiable: bool) -> None:
    """On arrays that refuse to become NumPy arrays: the same value, eager and traced, and the same pullback."""
    got = func.vmap(f)(to_device(x[None]))
    np.testing.assert_allclose(host(got)[0], f(x), rtol=1e-9, atol=1e-11)
    check_device_jit(f, x)
    if differentiable:
        expected, pullback = func.vjp(f, x)
        got, pullback_there = func.vjp(f, to_device(x))
        np.testing.assert_allclose(host(got), expected, rtol=1e-9, atol=1e-11)
        ct = np.asarray(direction(expected, 2), np.asarray(expected).dtype)
        (pulled,) = pullback_there(to_device(ct))
        assert isinstance(pulled, DeviceArray)
        np.testing.assert_allclose(host(pulled), pullback(ct)[0], rtol=1e-7, atol=1e-9)


def check_device_jit(f: Callable[[Any], Any], x: Any) -> None:
    """A Program traced for a device, whose arrays are no more known than those of the host, has the same value."""
    try:
        expected = func.jit(f)(x)
    except func.errors.StagingError:  # its shapes or branches depend on numbers
        return
    np.testing.assert_allclose(host(func.jit(f)(to_device(x))), expected, rtol=1e-9, atol=1e-11)


def carries(out: Any) -> bool:
    """Whether an output can carry a derivative."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    return any([np.asarray(o).dtype.kind in "fc" for o in outs])


def assert_refused(f: Callable[[Any], Any], x: Any) -> None:
    """Asking for a derivative that there is not raises a worded TypeError."""
    try:
        func.grad(f)(x)
    except TypeError as error:
        assert "derivative" in str(error) or "scalar" in str(error)
    else:
        raise AssertionError("differentiated without a derivative")


def row(name: str) -> list[str]:
    """The table's row of a function: the laws that hold; a broken law raises."""
    call = FUNCTIONS[name]
    f, plain, x = smooth(call.function), smooth(call.plain or call.function), call.x
    differentiable = carries((call.plain or call.function)(x)) and has_derivative(f, x)
    if differentiable or not carries(plain(x)):
        check_value(call)
    cells = [YES]
    if differentiable:
        check_jvp(f, plain, x)
        check_vjp(f, x)
        check_second(f, x)
        cells += [YES] * 3
    else:
        assert_refused(f, x)
        cells += [NONE] * 3
    check_vmap(f, x)
    cells.append(YES)
    if differentiable:
        check_vmap_grad(f, x)
    cells.append(YES if differentiable else NONE)
    z = x + 1j * np.real(np.roll(x, 1)) * 0.3
    if accepts(plain, z):
        holomorphic = differentiable and carries(plain(z)) and has_derivative(f, z)
        check_complex(f, plain, z, holomorphic)
        cells.append(YES if holomorphic or not differentiable else VALUE)
    else:
        cells.append(REFUSED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", func.errors.HostComputationWarning)
        check_device(f, x, differentiable)
    cells.append(YES)
    return cells


def public_names() -> list[str]:
    """Every public function of arrays."""
    names = []
    for prefix, module in (
        ("np.", func.numpy),
        ("np.linalg.", func.numpy.linalg),
        ("np.fft.", func.numpy.fft),
        ("special.", func.special),
        ("linalg.", func.linalg),
        ("random.", func.random),
    ):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not inspect.isclass(value) and prefix + name not in ALONE:
                names.append(prefix + name)
    return sorted(names)


def table_line(name: str, cells: list[str]) -> str:
    """A line of the page."""
    return f"| `{name}` | " + " | ".join(cells) + " |"


def page_text(lines: list[str]) -> str:
    """The page around the lines of its table."""
    head = f"| function | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}"
    return (
        f"""# Coverage

On this page you find every public function and the modes that support it. `python -m tests.support.coverage` writes it
from the tables in `tests/support/functions.py` and `tests/support/functions_scipy.py`. The tests compute every row
again. {len(lines)} functions.

- **value**: under both modes the value is NumPy's or SciPy's (to the bit, except where linear algebra, products and
  interpolation may round in another order).
- **jvp**, **vjp**, **order 2**: checked against extrapolated differences, as adjoints, and against each other.
  The mark *none* means that the output is integer or boolean, or that there is no derivative. Asking for one raises a
  TypeError that names the fix.
- **vmap**, **vmap∘grad**: equal to the stack of single calls.
- **complex**: the same at complex input. The mark – means that NumPy or SciPy rejects complex input. The mark *value*
  means that the function is not holomorphic, and that its complex derivative raises an error.
- **CuPy-ready**: the same value and pullback on a strict stand-in for device arrays, which rejects implicit conversion.

{head}
"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page_text([table_line(name, row(name)) for name in public_names()]), encoding="utf-8")
    print(f"wrote {PAGE}")
