"""A model of time on a device: bytes, operations, occupancy and launches of a plan, before anything runs.

A kernel takes its launch and the longest of three times. They are those of bytes at the bandwidth that its occupancy
allows, of its operations, and of the chain of steps of one thread. No number is fitted to a run. Those of a machine are
from its data sheet, and the shares below are assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from func.backends.cuda.device_steps import Choose, MatrixProduct, Move, Order, Repeat, Step, While
from func.backends.cuda.nest_forms import accesses_of, operations_of
from func.backends.cuda.nest_kernels import Launch
from func.backends.cuda.plan import DevicePlan
from func.backends.loops.kernels import Apply, Load, LoadAt, LoopNest, StoreAt, StridedRef
from func.backends.records import Record


class Machine(Record):
    """A device by its data sheet: bytes and operations a second, times in seconds."""

    name: str
    bandwidth: float
    doubles: float
    singles: float
    tensor_doubles: float
    multiprocessors: int
    clock: float
    launch: float = 2.5e-6
    """A launch on a stream, when the host does not fall behind."""
    replay: float = 1.3e-6
    """A kernel of a graph."""
    start: float = 6e-6
    """The start of a graph by the host."""
    wait: float = 10e-6
    """A number that the host reads."""
    registers: int = 65536
    threads: int = 2048
    shared: int = 1 << 17
    """Bytes of shared memory of a multiprocessor that blocks share."""


H200 = Machine("NVIDIA H200", 4.8e12, 34e12, 67e12, 67e12, 132, 1.785e9)
"""Source: NVIDIA H200 data sheet (2024): 4.8 TB/s, 34 TFLOPS of FP64, 67 of FP32 and of FP64 tensor cores."""
H100 = Machine("NVIDIA H100 SXM", 3.35e12, 34e12, 67e12, 67e12, 132, 1.755e9)
"""Source: NVIDIA H100 data sheet (2023)."""

STREAM_SHARE = 0.9
"""The share of the bandwidth that a copy with full occupancy reaches."""
NEEDED_OCCUPANCY = 0.25
"""The share of all threads from which on loads in flight fill the bandwidth. By Little's law, about 600 ns of latency,
4.8 TB/s and 16 bytes a thread need 180,000 of 270,000 threads, or half with two loads a thread.
"""
PRODUCT_SHARE = 0.7
"""The share of the peak that large products reach."""
SECTOR = 32
"""Bytes that memory moves at least."""
STEP_CYCLES = 30.0
"""Cycles of a step of a thread's chain where it does not wait for memory."""
MEMORY_CYCLES = 600.0
"""Cycles of a step of a chain that reads memory at a place that the step before has written."""
BLOCK_STEP = 7e-7
"""Seconds of a step of one block with little to do: a barrier, and reads from the second-level cache."""
BLOCK_BANDWIDTH = 1e11
"""Bytes a second between a multiprocessor and that cache: 64 bytes a cycle."""


class StepCost(Record):
    """The cost of a step: its title, its number of runs, bytes, operations and seconds of one run."""

    title: str
    runs: int
    bytes: float
    operations: float
    occupancy: float
    seconds: float


def predicted(plan: DevicePlan, machine: Machine = H200, registers: Mapping[str, int] | None = None) -> list[StepCost]:
    """The cost of every step of a plan. `registers` of kernels, by their names, are those that ptxas reports; without
    them a kernel has 32."""
    return list(_costs(plan.steps, machine, registers or {}, 1))


def total_seconds(costs: Sequence[StepCost], machine: Machine = H200, is_replayed: bool = True) -> float:
    """The seconds of a call, replayed as a graph or launch by launch."""
    each = machine.replay if is_replayed else machine.launch
    return (machine.start if is_replayed else 0.0) + sum([cost.runs * (cost.seconds + each) for cost in costs])


def _costs(steps: Sequence[Step], machine: Machine, registers: Mapping[str, int], runs: int) -> list[StepCost]:
    costs: list[StepCost] = []
    for step in steps:
        if isinstance(step, Launch):
            costs.append(_launch_cost(step, machine, registers.get(step.kernel, 32), runs))
        elif isinstance(step, MatrixProduct):
            costs.append(_product_cost(step, machine, runs))
        elif isinstance(step, Move):
            size = 2.0 * step.target.bytes
            costs.append(StepCost("copy", runs, size, 0.0, 1.0, size / machine.bandwidth / STREAM_SHARE))
        elif isinstance(step, Order):
            size = 2.0 * 8 * 2 * step.keys.bytes  # eight passes over keys and places
            costs.append(StepCost("sort", runs, size, 0.0, 1.0, size / machine.bandwidth / STREAM_SHARE + 30e-6))
        elif isinstance(step, Repeat):
            costs += _costs(step.body, machine, registers, runs * step.length)
        elif isinstance(step, While):
            costs += _costs([*step.test, *step.body], machine, registers, runs)
            costs.append(StepCost("a condition", runs, 0.0, 0.0, 0.0, machine.wait))
        else:
            assert isinstance(step, Choose)
            costs += _costs(step.branches[0], machine, registers, runs)
            costs.append(StepCost("a condition", runs, 0.0, 0.0, 0.0, machine.wait))
    return costs


def occupancy(launch: Launch, machine: Machine, registers: int) -> float:
    """The share of a device's threads that a launch keeps, by threads, registers and blocks."""
    by_registers = machine.registers // max(1, -(-registers // 8) * 8 * launch.threads)
    by_threads = machine.threads // launch.threads
    resident = max(1, min(by_registers, by_threads, 32)) * machine.multiprocessors
    return min(launch.blocks, resident) * launch.threads / (machine.threads * machine.multiprocessors)


def _launch_cost(launch: Launch, machine: Machine, registers: int, runs: int) -> StepCost:
    share = occupancy(launch, machine, registers)
    if launch.inside is not None:
        inside = _costs(launch.inside, machine, {}, 1)
        size, operations = [
            sum([cost.runs * one for cost, one in zip(inside, ones, strict=True)])
            for ones in ([cost.bytes for cost in inside], [cost.operations for cost in inside])
        ]
        seconds = sum([cost.runs * (BLOCK_STEP + _on_one_block(cost, machine)) for cost in inside])
        return StepCost(launch.title, runs, size, operations, share, seconds)
    if launch.nest is None:
        return StepCost(launch.title, runs, 0.0, 0.0, share, 0.0)
    size, operations = bytes_of(launch.nest), _operations(launch.nest)
    is_double = any([each.out.dtype.itemsize >= 8 for each in launch.nest.code if isinstance(each, Apply)])
    peak = (machine.doubles if is_double else machine.singles) / 2  # additions and multiplications separately
    bandwidth = machine.bandwidth * STREAM_SHARE * min(1.0, share / NEEDED_OCCUPANCY)
    work = math.prod(launch.nest.domain) * max(1, len(launch.nest.code))
    threads = min(launch.blocks * launch.threads, max(1, math.prod(launch.nest.domain)))
    chain = work / threads * STEP_CYCLES / 8 / machine.clock
    if any([isinstance(each, StoreAt) for each in launch.nest.code]):
        chain = math.prod(launch.nest.domain) / threads * MEMORY_CYCLES / machine.clock
    seconds = max(size / bandwidth, operations / peak / min(1.0, 2 * share), min(chain, 1.0))
    return StepCost(launch.title, runs, size, operations, share, seconds)


def _on_one_block(cost: StepCost, machine: Machine) -> float:
    """The seconds of a step that one multiprocessor runs."""
    return max(cost.bytes / BLOCK_BANDWIDTH, cost.operations * machine.multiprocessors / (machine.doubles / 2))


def bytes_of(nest: LoopNest) -> float:
    """The bytes that a nest moves, if caches serve repeated reads; distant elements cost a sector each."""
    total = 0.0
    seen: set[tuple[int, int, tuple[int, ...], bool]] = set()
    for each in accesses_of(nest.code):
        ref = nest.padded(each.ref)
        key = id(ref.buffer), ref.offset, ref.strides, isinstance(each, Load)
        if key in seen:
            continue
        seen.add(key)
        total += _touched(nest, ref, isinstance(each, (LoadAt, StoreAt)))
    return total


def _touched(nest: LoopNest, ref: StridedRef, is_dynamic: bool) -> float:
    item = ref.buffer.dtype.itemsize
    if is_dynamic:
        return math.prod(nest.domain) * float(max(item, SECTOR if 1 not in map(abs, ref.strides) else item))
    lengths = [(length, abs(stride)) for length, stride in zip(nest.domain, ref.strides, strict=True) if stride]
    count = math.prod([length for length, _ in lengths])
    nearest = min([stride for _, stride in lengths], default=1)
    return float(min(count * item * min(nearest, max(1, SECTOR // item)), max(ref.buffer.storage.bytes, item)))


def _operations(nest: LoopNest) -> float:
    """The operations of a nest."""
    total = 0.0
    rows = math.prod(nest.domain[: nest.outer or 0])
    for stage in nest.stages:
        count = math.prod(nest.domain) if stage.inner else rows
        total += count * operations_of(stage.code)
    return total


def _product_cost(step: MatrixProduct, machine: Machine, runs: int) -> StepCost:
    dot = step.dot
    m, k, n = dot.sizes
    batch, item = math.prod(dot.batch), dot.out.buffer.dtype.itemsize
    size, operations = float(batch * (m * k + k * n + m * n) * item), 2.0 * batch * m * k * n
    peak = (machine.tensor_doubles if item == 8 else machine.singles) * PRODUCT_SHARE
    tiles = batch * -(-m // 128) * -(-n // 128)
    share = min(1.0, tiles / machine.multiprocessors)
    splits = max(1.0, min(1 / share, k / 512))  # cuBLAS cuts long sums where there are few tiles
    seconds = max(size / machine.bandwidth / STREAM_SHARE, operations / peak / min(1.0, share * splits))
    return StepCost(f"product {m}x{k}x{n}", runs, size, operations, share, seconds)
