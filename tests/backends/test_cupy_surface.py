"""The names, parameters and dtypes that the double of a device has are those of CuPy."""

from __future__ import annotations

import functools
import importlib
import json
from typing import Any

import pytest

from func.backends import namespace_of_type
from func.backends.devices import CompletedUfunc, HostFunction
from tests.support import cupy_surface
from tests.support.device_double import namespace


@pytest.fixture(scope="module")
def cupy() -> Any:
    """CuPy, with the CUDA libraries that its modules load when they are imported."""
    module = pytest.importorskip("cupy", reason="CuPy is not installed (extra 'cuda')")
    try:
        for name in cupy_surface.MODULES.values():
            importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"CuPy finds no CUDA library: {error}")
    return module


@pytest.mark.filterwarnings("ignore::FutureWarning:cupyx")
def test_the_surface_is_that_of_the_installed_cupy(cupy: Any) -> None:
    recorded = json.loads(cupy_surface.FILE.read_text(encoding="utf-8"))["cupy"]
    lost = {
        f"{module}.{name}": (text, installed.get(name))
        for module, installed in cupy_surface.installed().items()
        for name, text in cupy_surface.stored()[module].items()
        if installed.get(name) != text
    }
    assert not lost, f"CuPy {cupy.__version__} differs from {recorded}; see python -m tests.support.cupy_surface"


@pytest.mark.filterwarnings("ignore::FutureWarning:cupyx")
def test_the_namespace_of_cupy_is_that_of_the_double(cupy: Any) -> None:
    xp = namespace_of_type(cupy.ndarray)
    assert xp is namespace_of_type(cupy.ndarray)
    for module, names in cupy_surface.stored().items():
        if module == cupy_surface.ARRAY:
            continue
        own, double = _inner(xp, module), _inner(namespace, module)
        for name in {*names, *["airy", "schur", "spacing"]} & set(dir(importlib.import_module(module))):
            kinds = [type(getattr(space, name)) for space in (own, double)]
            assert own.lacks(name) is double.lacks(name)
            assert (HostFunction in kinds, CompletedUfunc in kinds) == (
                kinds[0] is HostFunction,
                kinds[0] is CompletedUfunc,
            )


def _inner(xp: Any, module: str) -> Any:
    library, *path = module.split(".")
    path = path if library == "numpy" else [f"scipy_{path[0]}"]
    return functools.reduce(getattr, path, xp)


BOUND = {
    "an argument that CuPy lacks": ("numpy.max", (1,), {"initial": 0}, "initial"),
    "too many positions": ("numpy.linalg.pinv", (1, 2, 3), {}, "too many"),
    "too few operands": ("scipy.special.zeta", (1,), {}, "2 to 3 arguments"),
    "a keyword of ufuncs": ("numpy.add", (1, 2), {"where": True}, "where"),
    "a dtype": ("scipy.special.erf", (1j,), {}, "no loop"),
}


@pytest.mark.parametrize("case", BOUND)
def test_calls_are_bound(case: str) -> None:
    path, args, kwargs, match = BOUND[case]
    with pytest.raises(TypeError, match=match):
        cupy_surface.check_call(path, lambda x: type(x), args, kwargs)


def test_methods_are_known() -> None:
    with pytest.raises(NotImplementedError, match="accumulate"):
        cupy_surface.check_method("numpy.maximum", "accumulate", float)
    with pytest.raises(TypeError, match="complex"):
        cupy_surface.check_method("numpy.add", "at", complex)
    cupy_surface.check_method("numpy.add", "at", float)
