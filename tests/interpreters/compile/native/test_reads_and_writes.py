"""Native code reads memory after it was written, and writes over nothing that is still read, as straight code and as
loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.backends.loops import inplace_results, scalar_expansion
from func.interpreters.compile.native import stored_programs

pytest.importorskip("llvmlite")


@pytest.fixture(params=["straight", "loops"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """How small arrays are compiled."""
    if request.param == "loops":
        monkeypatch.setattr(scalar_expansion, "LARGEST_NEST", 0)
        monkeypatch.setattr(scalar_expansion, "LARGEST_PROGRAM", 0)
        monkeypatch.setattr(inplace_results, "LEAST", 1)
    monkeypatch.setattr(stored_programs, "enabled", False)
    yield


A, B, M = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.arange(9.0).reshape(3, 3)


def _written(x: Any, v: Any) -> Any:
    v = -v
    x = x.copy()
    x[:2] = v
    return x * 2.0


def _gathered_after_a_write(x: Any, v: Any) -> Any:
    places = np.array([0, 1]) + np.argmax(v * 0.0)
    x = x.copy()
    x[1:] = v
    return x[places]


def _joined_from_an_old_and_a_new_loop(x: Any, v: Any) -> Any:
    minus_v = np.sin(v)
    y = np.sin(np.concatenate([v, x]) + 1.0)
    minus_x = np.sin(x)
    return np.concatenate([minus_x, minus_v]) + y


def _added_after_a_scatter(x: Any, v: Any) -> Any:
    x = x.copy()
    np.add.at(x, np.array([1, 1]), v)
    return x + np.sin(x[::-1])


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "neighbours": (lambda x: x[1:] - x[:-1], (A,)),
    "rows and columns": (lambda m: m[0] * m[:, 0] + m[1], (M,)),
    "every other element": (lambda x: x[::2] * x[1::-1], (A,)),
    "a view of a column": (lambda m: m[:, 1:2] * m[:, 0:1].reshape(3, 1) + m[:, :1].reshape(3), (M,)),
    "written": (_written, (A, B)),
    "gathered": (_gathered_after_a_write, (A, B)),
    "joined": (_joined_from_an_old_and_a_new_loop, (A, B)),
    "scattered": (_added_after_a_scatter, (A, B)),
    "transposed twice": (lambda m: np.sin(np.sin(np.sin(m).T + m).T + m), (M,)),
    "reversed": (lambda m: np.sin(np.sin(np.sin(m)[::-1])[::-1]) + np.cumsum(np.sin(m), 0), (M,)),
    "transposed over itself": (lambda m: np.cumsum(np.sin(np.cumsum(np.sin(m), 0)).T, 0), (M,)),
    "sums of rows": (lambda m: np.sin(m - np.sum(np.sin(m), 1)[:, None]) @ m, (M,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_is_read_after_it_is_written(name: str) -> None:
    f, args = PROGRAMS[name]
    jitted = func.jit(f, compiler="llvm")
    for _ in range(2):
        np.testing.assert_allclose(jitted(*args), f(*args), rtol=1e-14, atol=1e-14)
