"""Modules that are written for arrays of a device run on its library, or are refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import func
from tests.interpreters.primitives.test_devices import ALL, OF_ANY_PHASE, ON_THE_HOST_ALONE, host, moved
from tests.interpreters.primitives.test_samples import outputs
from tests.support.device_double import library, namespace, to_device
from tests.support.sampling import Sample

pytestmark = pytest.mark.filterwarnings("ignore::func.errors.HostComputationWarning")


RAISED: list[str] = []


@contextmanager
def raising(**settings: str) -> Iterator[None]:
    """CuPy's errstate, which takes notes."""
    RAISED.append(settings["linalg"])
    yield


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the names of CuPy's, with what CuPy has."""
    for name in ("cupyx", "cupyx.scipy"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["cupyx"], "scipy", sys.modules["cupyx.scipy"], raising=False)
    monkeypatch.setattr(sys.modules["cupyx"], "errstate", raising, raising=False)
    for name in ("linalg", "ndimage", "signal", "special"):
        monkeypatch.setitem(sys.modules, f"cupyx.scipy.{name}", getattr(library, f"scipy_{name}"))
        monkeypatch.setattr(sys.modules["cupyx.scipy"], name, getattr(library, f"scipy_{name}"), raising=False)
    monkeypatch.setitem(sys.modules, "cupy", library)


@pytest.mark.parametrize(("name", "sample"), [case for case in ALL if case.values[0] not in ON_THE_HOST_ALONE])
def test_modules_need_the_library_alone(name: str, sample: Sample, cupy: None) -> None:
    there = moved(sample, to_device)

    def f(*args: Any) -> Any:
        return outputs(name, args, sample.params)

    namespace.told.clear()
    f(*there.args)
    names: dict[str, Any] = {}
    try:
        exec(func.to_source(f)(*there.args), names)
        results = names["f"](*there.args)
    except (func.errors.NoSourceError, AttributeError, TypeError) as error:
        assert namespace.told or "source text" in str(error), error
        return
    for got, want in zip(results, outputs(name, sample.args, sample.params), strict=True):
        if name not in OF_ANY_PHASE:
            np.testing.assert_allclose(host(got), want, rtol=1e-6, atol=1e-8)


def test_linear_algebra_of_a_module_raises(cupy: None) -> None:
    a = to_device(np.array([[2.0, 1.0], [1.0, 3.0]]))
    for function, asks in ((np.linalg.inv, ["raise"]), (np.linalg.cholesky, ["raise"]), (np.sin, [])):
        names: dict[str, Any] = {}
        text = func.to_source(lambda x, function=function: function(x))(a)
        exec(text, names)
        RAISED.clear()
        assert names["f"](a).get().shape == (2, 2) and asks == RAISED


def test_what_the_device_lacks_is_refused() -> None:
    x = to_device(np.ones(3))
    for function in (
        np.spacing,
        lambda x: func.special.airy(x)[0],
        lambda x: func.cond(x[0] > 0, func.special.j1, abs, x),
    ):
        with pytest.raises(func.errors.NoSourceError, match=r"the device's library does not have: .*\n.*NumPy arrays"):
            func.to_source(func.vmap(lambda x, function=function: func.jvp(function, (x,), (x,))))(x[None])
