"""The model of time on a device counts what kernels move and compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.backends.cuda.model import H200, StepCost, occupancy, predicted, total_seconds
from func.backends.cuda.nest_kernels import Launch
from func.backends.cuda.plan import DevicePlan, Planner
from func.interpreters.compile.inlining import prepare_call
from func.interpreters.compile.native.translate import translate


def plan_of(function: Any, *args: Any) -> DevicePlan:
    """The plan of a function for arguments like these."""
    compiled = func.jit(function).cached_call(args, {})[-1].compiled
    return Planner(translate(prepare_call(compiled), libraries=False)).plan()


def of_shape(*shape: int, dtype: Any = np.float64) -> Any:
    """An array of a shape, without memory for its elements."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def the_cost(costs: list[StepCost]) -> StepCost:
    """The only step that counts."""
    (cost,) = [cost for cost in costs if cost.bytes > 1e6 or cost.operations > 1e6]
    return cost


def test_elementwise_code_moves_operands_and_result() -> None:
    cost = the_cost(predicted(plan_of(lambda x, y: x * y + 1, of_shape(10**7), of_shape(10**7))))
    assert cost.bytes == 3 * 8 * 10**7
    assert cost.seconds == pytest.approx(cost.bytes / H200.bandwidth / 0.9)


def test_rows_are_read_once() -> None:
    x = of_shape(40_000, 1000, dtype=np.float32)
    cost = the_cost(predicted(plan_of(lambda x: func.special.softmax(x, axis=-1), x)))
    assert cost.bytes == pytest.approx(2 * x.size * 4, rel=1e-3)


def test_products_are_limited_by_arithmetic() -> None:
    cost = the_cost(predicted(plan_of(lambda x: x @ x, of_shape(4096, 4096))))
    assert cost.operations == 2 * 4096**3 and cost.seconds > cost.bytes / H200.bandwidth


def test_a_loop_costs_the_starts_of_its_steps() -> None:
    plan = plan_of(lambda x: func.scan(lambda c, r: (np.tanh(c + r), c), x[0], x), of_shape(300, 9000))
    costs = predicted(plan)
    assert max([cost.runs for cost in costs]) == 300
    assert total_seconds(costs) > 300 * H200.replay
    assert total_seconds(costs, is_replayed=False) > total_seconds(costs)


def test_a_small_loop_is_one_start() -> None:
    plan = plan_of(lambda x: func.scan(lambda c, r: (np.tanh(c + r), c), x[0], x), of_shape(300, 8))
    (cost,) = predicted(plan)
    assert 300 * 5e-7 < cost.seconds < 1e-3


def test_registers_lower_the_occupancy() -> None:
    launch = Launch("kernel", 10_000, 256, [], False, "")
    assert occupancy(launch, H200, 32) == 1 and occupancy(launch, H200, 128) == 0.25
    assert occupancy(Launch("kernel", 1, 256, [], False, ""), H200, 32) == pytest.approx(256 / 2048 / 132)


def test_no_row_of_the_benchmark_runs_on_one_thread() -> None:
    """Programs of the benchmark have a parallel form: no kernel takes longer than its bytes and its work need."""
    from benchmarks.devices.predicting import stored

    for prediction in [each for each in stored() if not each.bound.startswith("starts")]:
        least = max(prediction.bytes / H200.bandwidth, prediction.operations / 60e12)
        assert prediction.seconds < 4 * least + 3e-6 * prediction.launches + 1e-5, prediction
