"""The order of messages in compiled programs, in one process whose communicator notes what is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends import namespace_of
from func.collectives import axis_index, pmax, pmean, ppermute, psum
from func.interpreters.processes import OneRank
from func.interpreters.rank_axis import RankAxis, running_on
from tests.support.device_double import DeviceArray

X = np.linspace(0.1, 0.9, 5)
YES = np.ones(5, bool)


class Noted(OneRank):
    """One process that notes its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def psum(self, x: Any, label: str = "") -> Any:
        self.note()
        self.sent.append(f"{label} of {np.shape(x)}")
        return x.copy()

    pmax = pmin = psum

    def ppermute(self, x: Any, pairs: tuple[tuple[int, int], ...], label: str = "") -> Any:
        return self.psum(x, label) if pairs else x * 0


def messages(function: Callable[..., Any]) -> list[str]:
    """The messages of a function of X, at its second call."""
    ranks = Noted()
    with running_on(RankAxis("ranks", ranks, 0)):
        function(X)
        ranks.sent.clear()
        function(X)
    return ranks.sent


def late_and_early(x: Any) -> Any:
    """The first message needs much native work, the second none."""
    total = psum({"late": np.cumsum(np.sin(x) ** 2)}, "ranks")["late"]
    return np.sum(total * np.cos(total)) * np.sum(pmax({"early": x}, "ranks")["early"])


def chosen_by_constants(x: Any) -> Any:
    """Of three messages constants leave one."""
    total = np.where(YES, psum({"used": x}, "ranks")["used"], psum({"lost": x * 2}, "ranks")["lost"])
    return np.sum(total) + np.sum(np.where(True, x, psum({"scalar": x * 3}, "ranks")["scalar"]))


def equal_ones(x: Any) -> Any:
    return np.sum(psum(x, "ranks") + psum(x, "ranks") + psum(1.0, "ranks") + psum(1.0, "ranks"))


def a_long_loop(x: Any) -> Any:
    for i in range(40):
        x = x + psum({f"{i}": np.sin(x) * np.exp(-x)}, "ranks")[f"{i}"] * 0.01
        x = x * np.cos(ppermute(x, "ranks", [(0, 0)]))
    return np.sum(x)


PROGRAMS = [late_and_early, chosen_by_constants, equal_ones, a_long_loop]


@pytest.mark.parametrize("compiler", ["llvm", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_programs_send_what_python_sends(f: Callable[..., Any], compiler: str) -> None:
    if compiler == "llvm":
        pytest.importorskip("llvmlite")
    assert messages(func.jit(f, compiler=compiler)) == messages(f) != []
    both = func.value_and_grad(f)
    assert messages(func.jit(both, compiler=compiler)) == messages(both)


def test_what_no_output_needs_is_dropped_when_it_is_traced() -> None:
    def f(x: Any) -> Any:
        psum({"unused": x}, "ranks")
        return pmean(x, "ranks")

    assert messages(func.jit(f)) == ["pmean(x) of (5,)"]
    assert len(messages(f)) == 2


def test_a_gradient_that_is_nan_is_asked_for_once_more_by_all() -> None:
    """The ranks agree, and the pass with structural zeros sends a mask with each value."""

    def f(x: Any) -> Any:
        inside = x * axis_index("ranks")
        return np.sum(np.where(inside > 0, np.sqrt(inside), 0.0) * psum(x, "ranks"))

    ranks = Noted()
    with running_on(RankAxis("ranks", ranks, 0)):
        np.testing.assert_array_equal(func.grad(f)(X), np.zeros(5))
    assert len(ranks.sent) == 1 + 1 + 2


def test_names_of_processes_and_of_vmaps() -> None:
    """The innermost axis of a name counts, whatever it is."""
    seen = func.vmap(lambda x: psum(x, "ranks"), axis_name="ranks")
    with running_on(RankAxis("ranks", Noted(), 0)):
        assert seen(X).tolist() == [np.sum(X)] * 5
        assert psum(2.0, "ranks") == 2.0

    def inside(x: Any) -> Any:
        with running_on(RankAxis("ranks", Noted(), 1)):
            return psum(x, "ranks")

    np.testing.assert_array_equal(func.vmap(inside, axis_name="ranks")(X), X)


def test_arrays_of_a_device_are_sent_from_the_host_with_one_warning() -> None:
    """Values and derivatives stay arrays of the device."""

    def f(x: Any) -> Any:
        return np.sum(ppermute(psum(x, "ranks") * x, "ranks", [(0, 0)]) ** 2)

    told = namespace_of((DeviceArray(X),)).told
    told.clear()
    with running_on(RankAxis("ranks", Noted(), 0)), pytest.warns(func.errors.HostComputationWarning) as caught:
        found = func.value_and_grad(f)(DeviceArray(X))
        again = func.grad(f)(DeviceArray(X))
        expected = func.value_and_grad(f)(X)
    assert [type(x) for x in (*found, again)] == [DeviceArray] * 3
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x.get(), y)
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        "func.collectives.psum is computed on the host, where MPI sends from",
        "func.collectives.ppermute is computed on the host, where MPI sends from",
    ]
