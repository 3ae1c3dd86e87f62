"""A fuser turns array operations into loop nests: the nest and the stage of each, and the writes to memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.loops.fusion import Fuser
from func.backends.loops.kernels import Apply, Buffer, Load, LoopNest, Reduce, Store
from func.backends.loops.values import ArrayValue, uniform

FLOAT = np.dtype(float)


def argument(fuser: Fuser, *shape: int) -> ArrayValue:
    return fuser.storage.located(Buffer(int(np.prod(shape)), FLOAT, "input", 0), shape)


def kinds(nest: Any) -> list[list[type]]:
    """The types of the instructions of each stage."""
    assert isinstance(nest, LoopNest)
    return [[type(instruction) for instruction in stage.code] for stage in nest.stages]


def test_elementwise_operations_share_a_nest() -> None:
    fuser = Fuser()
    x = argument(fuser, 64, 10)
    y = fuser.map("exp", [fuser.map("multiply", [x, uniform(2.0, FLOAT)], FLOAT)], FLOAT)
    (nest,) = fuser.schedule.items
    assert kinds(nest) == [[Load, Apply, Apply]]
    assert y.root is not None and y.root.ref is None
    fuser.storage.ref(y)
    assert kinds(nest) == [[Load, Apply, Apply, Store]]
    assert y.root.ref is not None


def test_softmax_is_one_nest_of_two_stages() -> None:
    """The example in the docstring of `kernels`."""
    fuser = Fuser()
    powers = fuser.map("exp", [argument(fuser, 64, 10)], FLOAT)
    total = fuser.reshape(fuser.reduce("add", powers, (1,), 0), (64, 1))
    fuser.storage.copied(fuser.map("divide", [powers, total], FLOAT))
    (nest,) = fuser.schedule.items
    assert isinstance(nest, LoopNest)
    assert (nest.domain, nest.outer) == ((64, 10), 1)
    assert kinds(nest) == [[Load, Apply, Reduce, Store], [Load, Apply, Store]]


def test_a_cheap_value_is_rematerialized_in_a_later_stage() -> None:
    fuser = Fuser()
    doubled = fuser.map("add", [argument(fuser, 64, 10)] * 2, FLOAT)
    total = fuser.reshape(fuser.reduce("add", doubled, (1,), 0), (64, 1))
    fuser.storage.copied(fuser.map("subtract", [doubled, total], FLOAT))
    (nest,) = fuser.schedule.items
    assert kinds(nest) == [[Load, Apply, Reduce], [Load, Apply, Apply, Store]]


def test_views_are_read_in_place() -> None:
    fuser = Fuser()
    x = argument(fuser, 6, 4)
    y = fuser.permute(fuser.slices(x, [(5, -2, 3), (1, 1, 2)]), (1, 0))
    fuser.storage.copied(y)
    (nest,) = fuser.schedule.items
    assert isinstance(nest, LoopNest)
    load = nest.code[0]
    assert isinstance(load, Load)
    assert (load.ref.offset, load.ref.strides) == (5 * 4 + 1, (1, -8))


def test_a_reshape_of_scattered_elements_is_a_copy() -> None:
    fuser = Fuser()
    x = argument(fuser, 6, 4)
    assert fuser.storage.ref(fuser.reshape(x, (3, 8))).buffer.kind == "input"
    assert fuser.storage.ref(fuser.reshape(fuser.permute(x, (1, 0)), (3, 8))).buffer.kind == "arena"


def test_an_operation_on_written_memory_runs_after_the_write() -> None:
    fuser = Fuser()
    target = fuser.storage.copied(argument(fuser, 8))
    changed = fuser.overwritten(target, [(2, 1, 3)], uniform(1.0, FLOAT, (3,)))
    total = fuser.map("add", [changed, changed], FLOAT)
    assert target.root is not None and changed.root is not None and total.root is not None
    assert target.root.ready < changed.root.ready < total.root.nest
