"""The host computes a device's missing functions, loudly; functions that differ are made NumPy's."""

from __future__ import annotations

import itertools
import warnings
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import func
from func.backends.devices import DeviceNamespace
from tests.support.cupy_page import DTYPES, completed
from tests.support.device_double import DeviceArray, library

X = np.linspace(0.2, 0.9, 6).reshape(2, 3)


def namespace(checked: Any = None, device: Any = library) -> DeviceNamespace:
    """A namespace that has not warned yet."""
    return DeviceNamespace(device, np, DeviceArray, checked)


def test_a_missing_function_warns_once_and_stays_on_the_device() -> None:
    xp = namespace()
    with pytest.warns(func.errors.HostComputationWarning, match=r"numpy\.spacing is computed on the host") as caught:
        out = xp.spacing(DeviceArray(X))
    assert caught[0].filename == __file__
    assert isinstance(out, DeviceArray)
    np.testing.assert_array_equal(out.get(), np.spacing(X))
    np.testing.assert_array_equal(xp.spacing(DeviceArray(X)).get(), np.spacing(X))
    assert xp.told.keys() == {"numpy.spacing"} and xp.lacks("spacing") and not xp.lacks("sin")


def test_a_refused_host_computation_is_refused_every_time() -> None:
    xp = namespace()
    for _ in range(2):
        with pytest.raises(func.errors.HostComputationWarning, match=r"x\.get\(\)"):
            xp.scipy_special.airy(DeviceArray(X))
    assert not xp.told


@pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")
def test_arguments_and_results_of_the_host() -> None:
    xp = namespace()
    out = DeviceArray(np.zeros_like(X))
    assert xp.spacing(DeviceArray(X), out) is out and xp.spacing(DeviceArray(X), out=out) is out
    np.testing.assert_array_equal(out.get(), np.spacing(X))
    values = xp.scipy_special.airy(DeviceArray(X))
    assert type(values) is tuple and all([isinstance(value, DeviceArray) for value in values])
    np.testing.assert_array_equal(xp.block([DeviceArray(X), DeviceArray(X)]).get(), np.block([X, X]))
    np.testing.assert_array_equal(xp.scipy_special.zeta(DeviceArray(X + 1)).get(), func.special.zeta(X + 1))
    assert xp.clongdouble is np.clongdouble


def test_the_host_is_as_quiet_as_the_device() -> None:
    xp = namespace()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", func.errors.HostComputationWarning)
        assert np.isnan(xp.on_host(np.log, "numpy.log")(DeviceArray(-1.0)).get())


def test_names_that_nobody_has() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sinus'"):
        namespace().sinus  # noqa: B018


@pytest.mark.parametrize("ufunc", [pytest.param(ufunc, id=path) for path, ufunc in completed()])
@pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")
def test_dtypes_are_those_of_the_host(ufunc: Any) -> None:
    """For all dtypes of two operands, and with Python scalars, value and dtype are NumPy's or SciPy's."""
    host = ufunc._on_host.function
    numbers: list[Any] = [*[np.array([1, 1], dtype) for dtype in DTYPES], 1, 1.0]
    for operands in itertools.product(numbers, repeat=min(host.nin, 2)):
        operands = (*operands, *operands[:1] * (host.nin - 2))
        if not any([isinstance(operand, np.ndarray) for operand in operands]):
            continue
        try:
            want = host(*operands)
        except TypeError:
            continue
        got = ufunc(*[DeviceArray(x) if isinstance(x, np.ndarray) else x for x in operands])
        for one, other in zip(np.atleast_2d(*_tuple(got)), np.atleast_2d(*_tuple(want)), strict=True):
            assert one.dtype == other.dtype, [getattr(x, "dtype", x) for x in operands]
            np.testing.assert_allclose(one, other, rtol=1e-6)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple([x.get() if isinstance(x, DeviceArray) else x for x in (value if type(value) is tuple else (value,))])


def test_linear_algebra_asks_for_errors() -> None:
    inside: list[str] = []
    seen: list[bool] = []

    @contextmanager
    def checked() -> Any:
        inside.append("linalg")
        yield
        inside.pop()

    def inv(x: Any) -> Any:
        seen.append(bool(inside))
        return x

    device = SimpleNamespace(
        asarray=inv,
        sum=inv,
        linalg=SimpleNamespace(inv=inv, LinAlgError=ValueError),
        scipy_linalg=SimpleNamespace(lu=inv),
    )
    xp = namespace(checked, device)
    for function in (xp.linalg.inv, xp.scipy_linalg.lu, xp.sum, xp.asarray):
        function(X)
    assert seen == [True, True, False, False]
    assert xp.linalg.LinAlgError is ValueError
