"""Plans that run on a device.

A call takes the addresses of its arguments, makes memory for its results, and starts the steps of the plan without
waiting. It captures a repeated sequence of steps with the same addresses, and replays it from then on. If addresses
change from call to call, it copies small arguments and results to and from memory of the program. A status in the
device's memory records errors. If an output has a NaN, a second plan, whose kernels check the status first, recomputes
the outputs by NaN-safe rules, also without waiting. A call waits only if this plan has no such form, or if a loop on
the host needs a number. A later call reports an index out of range.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func.backends.cuda.device import Device, DeviceIndexError
from func.backends.cuda.device_steps import Choose, MatrixProduct, Move, Order, Repeat, Step, While, steps_in
from func.backends.cuda.nest_kernels import Launch
from func.backends.cuda.plan import COMPUTE_AGAIN, HAS_NAN, OUT_OF_RANGE, DevicePlan
from func.backends.loops.kernels import Buffer, StridedRef

MOST_GRAPHS = 8
"""Captured sequences that a program keeps."""
MISSES = 24
"""Calls with new addresses after which arguments are copied to one place."""
COPIED = 1 << 22
"""Bytes of arguments and results up to which they are copied to one place."""
MOST_STEPS = 20_000
"""Launches of the longest sequence that is captured."""
INT32 = np.dtype(np.int32)
JITTED, EAGERLY = "func.jit(f, compiler='numpy')", "func.config.compile_backward = False"
"""Runs each operation as a call of the device's library."""


class PlacedMatrix(NamedTuple):
    """An operand of a product."""

    address: int
    strides: tuple[int, int, int]


class Addresses:
    """The addresses of a plan's buffers, for one run."""

    def __init__(
        self, inputs: Sequence[int], outputs: Sequence[int], constants: Sequence[int], arena: int, status: int
    ) -> None:
        self.by_kind = {"input": inputs, "output": outputs, "constant": constants}
        self.arena = arena
        self.status = status
        self.turns: dict[int, int] = {}
        """The places of slices (by id), as the steps of their loops."""

    def of(self, buffer: Buffer) -> int:
        """The address of a buffer."""
        if buffer.base is not None:
            start = buffer.start + buffer.step * self.turns[id(buffer)]
            return self.of(buffer.base) + start * buffer.dtype.itemsize
        if buffer.kind == "arena":
            return self.arena + buffer.place
        return self.by_kind[buffer.kind][buffer.place]

    def of_ref(self, ref: StridedRef) -> int:
        """The address of the first element of a reference."""
        return self.of(ref.buffer) + ref.offset * ref.buffer.dtype.itemsize


class Runner:
    """Starts the steps of a plan on a device."""

    def __init__(self, device: Device, plan: DevicePlan, fast: bool = False) -> None:
        self.device, self.plan = device, plan
        has_kernels = any([isinstance(step, Launch) for step in steps_in(plan.steps)])
        self.kernel_of = device.compiled(plan.source, fast) if has_kernels else None
        self.kernels: dict[str, Any] = {}
        self.constants = [device.uploaded(value) for value in plan.constants]
        self.length = _length(plan.steps)
        """The launches of a run; infinite where the host reads numbers."""

    def run(self, at: Addresses) -> None:
        """Start all steps."""
        at.by_kind["constant"] = [address for _, address in self.constants]
        self._run(self.plan.steps, at)

    def _run(self, steps: Sequence[Step], at: Addresses) -> None:
        device = self.device
        for step in steps:
            if isinstance(step, Launch):
                kernel = self.kernels.get(step.kernel)
                if kernel is None:
                    assert self.kernel_of is not None
                    kernel = self.kernels[step.kernel] = self.kernel_of(step.kernel)
                addresses = [at.of(buffer) for buffer in step.buffers]
                if step.takes_status:
                    addresses.append(at.status)
                device.launch(kernel, step.blocks, step.threads, addresses)
            elif isinstance(step, MatrixProduct):
                self._product(step, at)
            elif isinstance(step, Order):
                device.argsort(at.of(step.keys), at.of(step.order), step.keys.size)
            elif isinstance(step, Move):
                device.copy(at.of(step.target), at.of(step.source), step.target.bytes)
            elif isinstance(step, Repeat):
                for turn in range(step.length):
                    place = step.length - 1 - turn if step.reverse else turn
                    for view in step.slices:
                        at.turns[id(view)] = place & (view.ring - 1) if view.ring else place
                    self._run(step.body, at)
            elif isinstance(step, While):
                self._run(step.test, at)
                while device.read(at.of_ref(step.flag), step.flag.buffer.dtype):
                    self._run(step.body, at)
                    self._run(step.test, at)
            else:
                index = int(device.read(at.of_ref(step.index), step.index.buffer.dtype))
                self._run(step.branches[min(max(index, 0), len(step.branches) - 1)], at)

    def _product(self, step: MatrixProduct, at: Addresses) -> None:
        dot = step.dot
        operands = []
        for ref in (dot.out, dot.x, dot.y):
            axes = [stride for length, stride in zip(dot.batch, ref.strides, strict=False) if length > 1]
            operands.append(PlacedMatrix(at.of_ref(ref), (axes[-1] if axes else 0, ref.strides[-2], ref.strides[-1])))
        out, x, y = operands
        self.device.product(dot.out.buffer.dtype, out, x, y, math.prod(dot.batch), dot.sizes, step.tf32)


def _length(steps: Sequence[Step]) -> float:
    total = 0.0
    for step in steps:
        if isinstance(step, (While, Choose, Order)):  # sorts allocate memory
            return math.inf
        total += step.length * _length(step.body) if isinstance(step, Repeat) else 1
    return total


class Replays:
    """Captured runs of one program, by their addresses."""

    def __init__(self) -> None:
        self.by_addresses: OrderedDict[Any, Callable[[], None]] = OrderedDict()
        self.seen: OrderedDict[Any, None] = OrderedDict()
        self.misses = 0
        self.is_possible = True

    def find(self, key: Any) -> Callable[[], None] | None:
        """The captured run for these addresses."""
        replay = self.by_addresses.get(key)
        if replay is not None:
            self.by_addresses.move_to_end(key)
        return replay

    def is_due(self, key: Any) -> bool:
        """Whether to capture a run with these addresses: they have occurred before."""
        if not self.is_possible:
            return False
        if key in self.seen:
            return True
        self.misses += 1
        self.seen[key] = None
        if len(self.seen) > 2 * MOST_GRAPHS:
            self.seen.popitem(last=False)
        return False

    def keep(self, key: Any, replay: Callable[[], None]) -> None:
        """Keep a captured run."""
        self.by_addresses[key] = replay
        if len(self.by_addresses) > MOST_GRAPHS:
            self.by_addresses.popitem(last=False)


class DeviceExecutable:
    """A plan that can be called with arrays of a device; `again` computes the outputs where the plan cannot."""

    def __init__(
        self,
        device: Device,
        plan: DevicePlan,
        again: Callable[..., tuple[Any, ...]],
        nan_safe: DevicePlan | Callable[..., tuple[Any, ...]] | None = None,
        fast: bool = False,
        is_eager: bool = False,
    ) -> None:
        """A plan `is_eager` is a part of eager code: it borrows its memory from the device's pool for each call."""
        self.device, self.plan, self.again, self.is_eager = device, plan, again, is_eager
        self.runner = Runner(device, plan, fast)
        self.variant = Runner(device, nan_safe, fast) if isinstance(nan_safe, DevicePlan) else None
        self.nan_safe = None if isinstance(nan_safe, DevicePlan) else nan_safe
        self._arena_size = max(plan.arena, self.variant.plan.arena if self.variant is not None else 0, 1)
        self._arena: Any = None
        self._arena_address = 0
        if not is_eager:
            self._arena, self._arena_address = device.memory(self._arena_size)
        self._status, self._status_address = device.memory(64)
        self.reports = plan.reports | (self.variant.plan.reports & OUT_OF_RANGE if self.variant is not None else 0)
        length = self.runner.length + (self.variant.length if self.variant is not None else 0)
        self.replays: Replays | None = Replays() if length <= MOST_STEPS else None
        self._late: list[Callable[[], int | None]] = []
        self._copies: tuple[list[Any], list[Any]] | None = None
        self._lock = threading.Lock()
        """Held during a call: the arena and the status belong to one call at a time, and calls run in order."""

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        with self._lock, self.device.current():
            self._raise_late_errors()
            device, plan = self.device, self.plan
            device.in_order()
            inputs = [device.taken(arg, spec.shape, spec.dtype) for arg, spec in zip(args, plan.inputs, strict=True)]
            for place in {each.input for each in plan.aliased.values()}:
                inputs[place] = self._donated(args, inputs, place)
            outputs = [device.empty(spec.shape, spec.dtype) for spec in plan.outputs]
            if self.is_eager:
                self._arena, self._arena_address = device.memory(self._arena_size)
            try:
                self._start(inputs, outputs)
            finally:
                if self.is_eager:
                    self._arena = None  # the pool gives it to what is started later
            status = self._status_now()
        if status & COMPUTE_AGAIN:
            return self.again(*args)
        if status & HAS_NAN and self.nan_safe is not None:
            return self.nan_safe(*args)
        return self._results(inputs, outputs)

    def _donated(self, args: Sequence[Any], inputs: Sequence[Any], place: int) -> Any:
        """A donated argument whose memory neither another argument nor an array behind it uses."""
        device, specs = self.device, self.plan.inputs
        spans = [
            (device.address(array), device.address(array) + math.prod(spec.shape) * spec.dtype.itemsize)
            for array, spec in zip(inputs, specs, strict=True)
        ]
        start, stop = spans[place]
        spec, value = specs[place], args[place]
        if any([low < stop and start < high for other, (low, high) in enumerate(spans) if other != place]):
            copy = device.empty(spec.shape, spec.dtype)
            device.copy(device.address(copy), start, stop - start)
            return copy
        return device.owned(value, spec.shape, spec.dtype)

    def _results(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """All outputs in their order."""
        aliased = self.plan.aliased
        if not aliased:
            return tuple(outputs)
        fresh = iter(outputs)
        results = []
        for place in range(len(aliased) + len(outputs)):
            alias = aliased.get(place)
            if alias is None:
                results.append(next(fresh))
            else:  # without a view where the shape is the same, so that it may be donated again
                array = inputs[alias.input]
                is_same = self.plan.inputs[alias.input].shape == alias.shape
                results.append(array if is_same else array.reshape(alias.shape))
        return tuple(results)

    def _start(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Start a run, captured or not."""
        device, replays = self.device, self.replays
        places = [*map(device.address, inputs)], [*map(device.address, outputs)]
        if replays is None or not replays.is_possible:
            self._run(*places)
            return
        key = *map(tuple, places), self._arena_address
        replay = replays.find(key)
        if replay is not None:
            replay()
            return
        if replays.is_due(key):
            self._capture(key, places)
            return
        if replays.misses > MISSES and self._is_small() and not self.plan.aliased and not self.is_eager:
            self._start_by_copies(inputs, outputs)
            return
        self._run(*places)

    def _capture(self, key: Any, places: tuple[list[int], list[int]]) -> None:
        assert self.replays is not None
        replay = self.device.captured(lambda: self._run(*places))
        if replay is None:
            self.replays.is_possible = False
            self._run(*places)
            return
        self.replays.keep(key, replay)
        replay()

    def _start_by_copies(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run on memory of the program, with copies of the arguments and of the results."""
        device, plan = self.device, self.plan
        if self._copies is None:
            self._copies = (
                [device.empty(spec.shape, spec.dtype) for spec in plan.inputs],
                [device.empty(spec.shape, spec.dtype) for spec in plan.outputs],
            )
        own_inputs, own_outputs = self._copies
        for mine, argument, spec in zip(own_inputs, inputs, plan.inputs, strict=True):
            device.copy(device.address(mine), device.address(argument), math.prod(spec.shape) * spec.dtype.itemsize)
        assert self.replays is not None
        places = [*map(device.address, own_inputs)], [*map(device.address, own_outputs)]
        replay = self.replays.find("staged")
        if replay is None:
            self._capture("staged", places)
        else:
            replay()
        for mine, result, spec in zip(own_outputs, outputs, plan.outputs, strict=True):
            device.copy(device.address(result), device.address(mine), math.prod(spec.shape) * spec.dtype.itemsize)

    def _is_small(self) -> bool:
        specs = (*self.plan.inputs, *self.plan.outputs)
        return sum([math.prod(spec.shape) * spec.dtype.itemsize for spec in specs]) <= COPIED

    def _run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        if self.reports:
            self.device.clear(self._status_address, 4)
        self.runner.run(Addresses(inputs, outputs, (), self._arena_address, self._status_address))
        if self.variant is not None:
            self.variant.run(Addresses(inputs, outputs, (), self._arena_address, self._status_address))

    def _status_now(self) -> int:
        """The bits that the call must wait for; later calls read the others."""
        waits = COMPUTE_AGAIN if self.variant is not None else COMPUTE_AGAIN | HAS_NAN
        if self.reports & waits:
            status = int(self.device.read(self._status_address, INT32))
            self._check(status)
            return status & waits
        if self.reports & OUT_OF_RANGE:
            self._late.append(self.device.read_later(self._status_address))
        return 0

    def _raise_late_errors(self) -> None:
        """Raise the error of an earlier call, if its status is available."""
        while self._late:
            status = self._late[0]()
            if status is None:
                return
            self._late.pop(0)
            self._check(status)

    def _check(self, status: int) -> None:
        if status & OUT_OF_RANGE:
            self._late.clear()
            subject, way = ("func.grad", EAGERLY) if self.is_eager else ("func.jit", JITTED)
            what = "backward pass" if self.is_eager else "call of a jitted function"
            raise DeviceIndexError(
                f"{subject}: an index was out of range in a {what} on the device, which read or wrote element 0 there "
                f"instead\nDevices report this after the call; {way} runs each operation as a call of CuPy, and x.get()"
                " brings the indices to the host to look at them."
            )
