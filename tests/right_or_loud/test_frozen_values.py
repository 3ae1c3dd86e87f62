"""Frozen values of a trace: func notices random numbers at the trace, other values with `check_frozen`."""

import functools
import os
import random
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.errors import FrozenValueWarning

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
OLD_RNG = np.random.RandomState(0)
SCALE = 2.0
SETTINGS = types.ModuleType("settings")
SETTINGS.scale = 2.0  # type: ignore[attr-defined]


class Noise:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.scale = 2.0
        self.weights = np.ones(3)
        self.options = {"power": [1, 2]}

    def add(self, x: Any) -> Any:
        return x + self.rng.normal()

    def apply(self, x: Any) -> Any:
        return np.sum(x * self.scale * self.weights) ** self.options["power"][0]


def _helper(x: Any) -> Any:
    return x * RNG.random()


DRAWING: dict[str, Callable[[Any], Any]] = {
    "numpy.random": lambda x: x + np.random.normal(),
    "a generator": lambda x: x + RNG.normal(),
    "a random state": lambda x: x + OLD_RNG.rand(),
    "Python's random": lambda x: x + random.random(),
    "a generator of self": Noise().add,
    "a generator of a closure": (lambda rng: lambda x: x + rng.normal())(np.random.default_rng(2)),
    "a generator of a helper": lambda x: _helper(x),
    "a generator of a partial": functools.partial(lambda rng, x: x + rng.normal(), np.random.default_rng(3)),
    "a gradient": func.grad(lambda x: x * RNG.normal()),
    "a checkpoint": func.checkpoint(lambda x: x * np.random.random()),
    "a loop": lambda x: func.scan(lambda c, _: (c + RNG.normal(), None), x, None, length=3)[0],
}


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("stage", [func.jit, func.make_program])
def test_random_numbers_of_a_trace_are_noticed(stage: Callable[..., Any], name: str) -> None:
    with pytest.warns(FrozenValueWarning, match="draws random numbers from") as caught:
        stage(DRAWING[name])(1.0)
    assert all(warning.filename == __file__ for warning in caught)


def test_numbers_that_no_trace_draws_are_not_noticed() -> None:
    def loss(x: Any) -> Any:
        return x * np.random.default_rng(0).normal()

    f = func.jit(loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            f(RNG.normal())
        func.grad(lambda x: x * RNG.normal())(1.0)
        func.eval_shape(lambda x: x * RNG.normal(), 1.0)


FIRST_USE = """
import sys, warnings
import numpy as np, func
assert "numpy.random" not in sys.modules
warnings.simplefilter("error")

def f(x):
    {statement}
    return x + noise

try:
    func.jit(f)(1.0)
    print("quiet")
except func.errors.FrozenValueWarning as warning:
    print("numpy.random" in str(warning))
"""


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("noise = 1.0", "quiet"),
        ("noise = np.random.default_rng(0).normal()", "quiet"),
        ("noise = getattr(np, 'ran' + 'dom').default_rng(0).normal()", "quiet"),
        ("noise = np.random.normal()", "True"),
        ("noise = getattr(np, 'ran' + 'dom').normal()", "True"),
        ("noise = getattr(np, 'ran' + 'dom').rand(624).sum()", "True"),
        ("noise = getattr(np, 'ran' + 'dom').seed(3) or 1.0", "True"),
        ("import numpy.random as other; noise = other.random()", "True"),
    ],
)
def test_the_first_use_of_numpys_random_numbers_in_a_trace(statement: str, says: str) -> None:
    command = [sys.executable, "-c", FIRST_USE.format(statement=statement)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (done.stdout.strip(), done.stderr) == (says, "")


def test_a_default_of_none_is_not_the_module_of_random_numbers() -> None:
    program = "import numpy as np, func; print(func.jit(np.sum)(np.ones(3)), func.jit(lambda x, y=None: x * x)(2.0))"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (done.stdout.split(), done.stderr) == (["3.0", "4.0"], "")


def _changes(function: Callable[..., Any], change: Callable[[], None]) -> list[str]:
    with func.config.override(check_frozen=True):
        jitted = func.jit(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jitted(np.ones(3))
        jitted(np.ones(3))
        assert not caught
        change()
        jitted(np.ones(3))
        jitted(np.ones(3))
    return [str(warning.message) for warning in caught]


def test_changed_attributes_are_named() -> None:
    model = Noise()

    def change() -> None:
        model.scale = 5.0
        model.weights[0] = 7.0
        model.options["power"].insert(0, 3)

    messages = _changes(func.grad(model.apply), change)
    assert len(messages) == 3
    assert all(any(f"self.{name} was" in message for message in messages) for name in ("scale", "weights", "options"))


class Shared:
    """Has its numbers in the class."""

    rate = 2.0

    def apply(self, x: Any) -> Any:
        return np.sum(x) * self.rate


class Inherited(Shared):
    """Has them in its base."""


@pytest.mark.parametrize("kind", [Shared, Inherited])
def test_changed_attributes_of_classes_are_named(kind: type[Shared], monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = _changes(kind().apply, lambda: monkeypatch.setattr(Shared, "rate", 5.0))
    assert message.startswith("func.jit: self.rate was 2.0 when the function was traced and is 5.0 now")
    monkeypatch.undo()
    model = kind()
    (message,) = _changes(model.apply, lambda: setattr(model, "rate", 4.0))  # hides that of the class
    assert message.startswith("func.jit: self.rate was 2.0 when the function was traced and is 4.0 now")
    (message,) = _changes(lambda x: x * kind.rate, lambda: monkeypatch.setattr(Shared, "rate", 5.0))
    assert message.startswith("func.jit: kind.rate was 2.0")


def test_changed_globals_and_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 2.0

    def loss(x: Any) -> Any:
        return np.sum(x) * scale * SCALE * SETTINGS.scale

    def change() -> None:
        nonlocal scale
        scale = -0.0
        monkeypatch.setitem(globals(), "SCALE", 3.0)
        monkeypatch.setattr(SETTINGS, "scale", 2)

    messages = _changes(loss, change)
    assert len(messages) == 3
    for start in ("scale was 2.0", "SCALE was 2.0", "SETTINGS.scale was 2.0"):
        assert any(f"func.jit: {start}" in message for message in messages)


def test_frozen_tensor_is_named_and_a_differentiated_one_followed() -> None:
    frozen, trained = func.tensor([1.0, 2.0, 3.0]), func.tensor([1.0, 1.0, 1.0], requires_grad=True)

    def change() -> None:
        with func.no_grad():
            frozen[0] = 9.0
            trained[0] = 9.0

    messages = _changes(lambda x: np.sum(x * frozen * trained), change)
    assert any("frozen was" in message for message in messages)
    assert not any("trained" in message for message in messages)


class Guarded:
    """An object whose attributes are not to be read behind the user's back."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"{name} was read")


@pytest.mark.parametrize("check", [False, True])
def test_a_trace_reads_no_attributes_of_its_own_accord(check: bool) -> None:
    guarded = Guarded()
    with func.config.override(check_frozen=check):
        by_name = func.jit(lambda x: x if guarded is None else 2 * x)
        by_partial = func.jit(functools.partial(lambda _, x: 3 * x, guarded))
    for _ in range(2):
        assert by_name(1.0) == 2.0 and by_partial(1.0) == 3.0


def test_setting_is_read_when_a_function_is_wrapped() -> None:
    model = Noise()
    jitted = func.jit(model.apply)
    with func.config.override(check_frozen=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        jitted(np.ones(3))
        model.scale = 3.0
        jitted(np.ones(3))
    assert not func.config.check_frozen
