"""Gradient modes: the recording of open grad interpreters, and other switches of a thread or task.

A mode remembers the level at which it began. It governs the interpreters that were open then; a transform that starts
later has a higher level and records. So `func.grad` respects an inner `no_grad`, and ignores an outer one.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterator
from contextvars import ContextVar, Token
from typing import Any


class Setting:
    """A value that is in force in a context from `enter` to `leave`, inside another one (`outer`).

    `leave` may run in another context than `enter`: another thread may close a generator, another task a coroutine.
    Then the setting ends everywhere. It also ends if an interrupt drops the block, and with it the object that `enter`
    returned, before `leave`.
    """

    __slots__ = ("is_left", "outer", "owner", "scoped", "value")

    def __init__(self, value: Any, outer: Any, scoped: bool = True) -> None:
        self.value = value
        self.outer = outer
        self.scoped = scoped
        """Whether it ends with its block, not with the setting around it."""
        self.is_left = False
        self.owner: weakref.ref[Any] | None = None
        """A weak reference to the object of the block."""

    @property
    def ended(self) -> bool:
        """Whether it is out of force in every context."""
        return self.is_left or (self.scoped and self.owner is not None and self.owner() is None)


class Mode(Setting):
    """A switch: interpreters from `floor` to below `level` record if `records`; `outer` governs the others. `inference`
    marks new tensors. With `tensors` it concerns interpreters of tensors alone, half a level above their transform."""

    __slots__ = ("floor", "inference", "level", "records", "tensors")

    def __init__(
        self,
        level: float,
        records: bool,
        inference: bool = False,
        outer: Mode | None = None,
        floor: float = 0.0,
        tensors: bool = False,
    ) -> None:
        self.level = level
        self.records = records
        self.inference = inference
        self.outer = outer
        self.floor = floor
        self.tensors = tensors
        self.is_left = False
        self.owner = None
        self.scoped = True
        if inference:
            WATCHED.inference = True


class TracedBody(Mode):
    """A stage traces the body of a branch or a loop: operations of interpreters below it become equations of the body.

    As a mode it switches nothing off, and marks tensors as the mode around it does.
    """

    __slots__ = ("stage",)

    def __init__(self, stage: Any, outer: Mode | None) -> None:
        super().__init__(0.0, True, outer is not None and outer.inference, outer)
        self.stage = stage


class Entered:
    """The object of a block: while it lives, the setting is in force."""

    __slots__ = ("__weakref__", "token")
    token: Token[Any]


def enter(variable: ContextVar[Any], setting: Setting) -> Entered:
    """Put a setting in force for as long as the result lives; pass the result to `leave`."""
    entered = Entered()
    setting.owner = weakref.ref(entered)
    entered.token = variable.set(setting)
    return entered


def leave(variable: ContextVar[Any], setting: Setting, entered: Entered) -> None:
    """End a setting. Settings of blocks inside it that still run stay in force."""
    inner = variable.get()
    while inner is not None and inner is not setting and (inner.ended or not inner.scoped):
        inner = inner.outer
    if inner is setting:
        try:
            variable.reset(entered.token)
            return
        except (ValueError, RuntimeError):  # entered in another context
            variable.set(setting.outer)
    setting.is_left = True


def in_force(variable: ContextVar[Any]) -> Any:
    """The innermost setting that has not ended, or None."""
    setting = variable.get()
    while setting is not None and setting.ended:
        setting = setting.outer
    return setting


def value_in_force(variable: ContextVar[Any], default: Any = None) -> Any:
    """The value of the innermost setting that has not ended."""
    setting = in_force(variable)
    return default if setting is None else setting.value


STRUCTURAL: ContextVar[Setting | None] = ContextVar("func_structural_zeros", default=None)


def are_zeros_structural() -> bool:
    """Whether derivatives have structural zeros from the start."""
    return STRUCTURAL.get() is not None and in_force(STRUCTURAL) is not None


MODE: ContextVar[Mode | None] = ContextVar("func_mode", default=None)
"""The switch in force; with None everything records."""

SAVING: ContextVar[Setting | None] = ContextVar("func_saving", default=None)
"""A pair (pack, unpack) for saved values, None, or a string: the reason why such pairs are forbidden."""

ANOMALY: ContextVar[Setting | None] = ContextVar("func_anomaly", default=None)
"""Whether to look for NaN, or None; unless None, nodes record the lines of operations."""


def saving() -> Any:
    """The value of SAVING."""
    return None if SAVING.get() is None else value_in_force(SAVING)


def anomaly() -> bool | None:
    """The value of ANOMALY."""
    return None if ANOMALY.get() is None else value_in_force(ANOMALY)


class Watched:
    """Whether settings were ever used in this process; before that no operation looks them up."""

    __slots__ = ("ever", "inference")

    def __init__(self) -> None:
        self.ever = False
        """SAVING or ANOMALY."""
        self.inference = False
        """A mode that marks new tensors."""


WATCHED = Watched()


def is_suspended(level: float) -> bool:
    """Whether an interpreter of that level does not record."""
    mode = MODE.get()
    while mode is not None:
        if (
            mode.floor <= level < mode.level
            and not mode.is_left
            and (mode.owner is None or mode.owner() is not None or not mode.scoped)
            and not (mode.tensors and level % 1 == 0)
        ):
            return not mode.records
        mode = mode.outer
    return False


def body_above(level: float) -> Any:
    """The stage of the innermost traced body if that stage is above this level; None otherwise."""
    mode = MODE.get()
    while mode is not None:
        if type(mode) is TracedBody and not mode.ended:
            return mode.stage if mode.stage.level > level else None
        mode = mode.outer
    return None


def is_bypassed(level: float) -> bool:
    """Whether an interpreter of that level does not interpret: gradients are off, or a stage above it traces a body."""
    return is_suspended(level) or body_above(level) is not None


@contextlib.contextmanager
def tracing_body(stage: Any) -> Iterator[None]:
    """Inside, the stage traces a body; operations on values of outer levels belong to the body."""
    body = TracedBody(stage, MODE.get())
    entered = enter(MODE, body)
    try:
        yield
    finally:
        leave(MODE, body, entered)


@contextlib.contextmanager
def holding(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Inside the block a setting with this value is in force."""
    setting = Setting(value, variable.get())
    entered = enter(variable, setting)
    try:
        yield
    finally:
        leave(variable, setting, entered)


@contextlib.contextmanager
def nothing_recorded() -> Iterator[None]:
    """No interpreter records inside the block."""
    outer = in_force(MODE)
    mode = Mode(math.inf, False, outer is not None and outer.inference, outer)
    entered = enter(MODE, mode)
    try:
        yield
    finally:
        leave(MODE, mode, entered)
