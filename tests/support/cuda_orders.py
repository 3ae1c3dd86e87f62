"""Programs whose results on a device are native code's to the last bit, found by what their plans say.

Operations round alike on both sides: kernels have the same arithmetic without fused operations, and call native code's
functions (`host_functions.py`). The order of sums and products may differ, and so may functions of complex numbers and
the results of a library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from func.backends.cuda.device_steps import MatrixProduct, Step, steps_in
from func.backends.cuda.nest_kernels import Launch
from func.backends.cuda.plan import DevicePlan, MissingForm, Planner
from func.backends.llvm.codegen.stage_plans import StagePlan
from func.backends.llvm.math.own_functions import host_features
from func.backends.loops.kernels import Accumulate, Apply, Dot, Instruction, Item, Literal, LoopNest, Reduce, Running
from func.backends.loops.traversal import bodies_of
from func.backends.number_types import kind_of
from func.interpreters.compile.inlining import prepare_call
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.translate import translate

COMPLEX_FUNCTION = "func_complex func_c"
"""How the definition of a complex function begins, which stands in the text of programs that call it."""
ROUNDING = frozenset({"add", "multiply"})


def plan_of(function: Any, *args: Any) -> DevicePlan:
    """The plan of a jitted function for arguments like these. Raises NotNative, MissingForm."""
    return Planner(translate(prepare_call(_compiled(function, args)), libraries=False)).plan()


def _compiled(function: Any, args: Sequence[Any]) -> Any:
    return function.cached_call(args, {})[-1].compiled


def why_orders_differ(function: Any, args: Sequence[Any]) -> str | None:
    """The reason for which a jitted function may differ in last places on a device; None where it may not."""
    if not host_features().fma:
        return "the host has no fused multiply-add"
    try:
        plan = plan_of(function, *args)
    except (NotNative, MissingForm):
        return "a library computes a part"
    native = translate(prepare_call(_compiled(function, args)))
    in_order = all([has_sums_in_order(item) for item in items_of(native.items) if isinstance(item, LoopNest)])
    if any([isinstance(item, Dot) and item.sizes[1] > 1 for item in items_of(native.items)]):
        return "a library computes a product"  # native code leaves it to BLAS, whose sums are fused
    for step in launches_of(plan.steps):
        if isinstance(step, MatrixProduct):
            return "a library computes a product"
        if isinstance(step, Launch) and step.nest is not None and not same_order(step.nest, step.scans):
            if in_order and step.in_order and _starts_with_nothing(step.nest):
                continue
            return "a sum of several orders"
    return "a complex function" if COMPLEX_FUNCTION in plan.source else None


def items_of(items: Sequence[Item]) -> Iterator[Item]:
    """The items of a native program, with those inside loops and branches."""
    for item in items:
        yield item
        for body in bodies_of(item):
            yield from items_of(body)


def launches_of(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps, with those that one block runs."""
    for step in steps_in(steps):
        yield step
        if isinstance(step, Launch) and step.inside is not None:
            yield from launches_of(step.inside)


def same_order(nest: LoopNest, scans: bool = False) -> bool:
    """Whether a nest has no sum or product with rounding whose terms may be combined in several orders.

    Terms of running sums come in the order of the loops unless the kernel `scans`, additions at computed places always.
    """
    return all([_has_one_order(nest, each, scans) for each in nest.code])


def _has_one_order(nest: LoopNest, each: Instruction, scans: bool) -> bool:
    if not isinstance(each, (Reduce, Accumulate, Running)) or each.op not in ROUNDING:
        return True
    dtype = each.ref.buffer.dtype if isinstance(each, Accumulate) else each.out.dtype
    if kind_of(dtype) not in "fc":
        return True
    if isinstance(each, Running):
        return not scans
    if isinstance(each, Reduce):
        return math.prod(nest.domain[nest.outer or 0 :]) <= 2
    strides = nest.padded(each.ref).strides
    return math.prod([length for length, stride in zip(nest.domain, strides, strict=True) if stride == 0]) <= 2


def has_sums_in_order(nest: LoopNest) -> bool:
    """Whether native code adds the terms of every sum of a nest to an element in memory, in the order of the loops."""
    for stage in nest.stages:
        sums = [each for each in stage.code if not _has_one_order(nest, each, False)]
        if sums and not (stage.inner and all([StagePlan(nest, stage, None, 256).moves(each) for each in sums])):
            return False
    return True


def _starts_with_nothing(nest: LoopNest) -> bool:
    """Whether the sums of rows are results by themselves: their addends are zero, and products are with one."""
    totals = {id(each.out): each.op for each in nest.code if isinstance(each, Reduce)}
    for each in nest.code:
        if isinstance(each, Apply) and any([id(x) in totals for x in each.args]):
            start, total = each.args[0], each.args[-1]
            op = totals.get(id(total))
            if each.op != op or not isinstance(start, Literal) or start.value != (0 if op == "add" else 1):
                return False
    return True


def differing_bits(value: np.ndarray, expected: np.ndarray) -> int:
    """The number of elements that are not equal to the last bit; NaNs are equal."""
    parts = [(value, expected)]
    if value.dtype.kind == "c":
        parts = [(value.real, expected.real), (value.imag, expected.imag)]
    count = 0
    for own, want in parts:
        if own.dtype.kind not in "fV":
            count += int(np.count_nonzero(own != want))
            continue
        bits = f"u{own.dtype.itemsize}"
        unlike = np.ascontiguousarray(own).view(bits) != np.ascontiguousarray(want).view(bits)
        count += int(np.count_nonzero(unlike & ~(np.isnan(own) & np.isnan(want))))
    return count
