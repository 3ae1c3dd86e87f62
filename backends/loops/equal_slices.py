"""Equal stacks: numbers that a loop stores step by step are stored once.

A differentiated loop stores numbers of its steps for the backward loop. Several of them may be one number, or an
element of an input of the loop. This pass reads only one of equal memories.
"""

from __future__ import annotations

from func.backends.loops import kernels
from func.backends.loops.kernels import Buffer, CountedLoop, Item, LoopNest, NativeProgram
from func.backends.loops.traversal import bodies_of, own_buffers


def merge_equal_slices(program: NativeProgram) -> None:
    """Let loops read the first of several equal stacks of numbers."""
    users: dict[Buffer, list[tuple[Item, Buffer]]] = {}
    loops: list[CountedLoop] = []

    def visit(items: list[Item]) -> None:
        for item in items:
            if isinstance(item, CountedLoop):
                loops.append(item)
                for view in item.slices:
                    users.setdefault(view.storage, []).append((item, view))
            else:
                for buffer in own_buffers(item):
                    if buffer.base is None:
                        users.setdefault(buffer.storage, []).append((item, buffer))
            for body in bodies_of(item):
                visit(body)

    visit(program.items)
    flag = None if program.flag is None else program.flag.buffer.storage
    for loop in loops:
        nests = [item for item in loop.body if isinstance(item, LoopNest) and item.domain == () and not item.fills]
        for nest in nests:
            _merge(nest, loop, users, flag)


def _merge(
    nest: LoopNest, loop: CountedLoop, users: dict[Buffer, list[tuple[Item, Buffer]]], flag: Buffer | None
) -> None:
    slices = {view for view in loop.slices if view.base is not None and view.base.base is None and not view.ring}
    loaded: dict[kernels.Operand, tuple[Buffer, int]] = {}
    written: dict[Buffer, dict[int, kernels.Operand]] = {}
    for instruction in nest.code:
        if isinstance(instruction, kernels.Load) and instruction.ref.buffer in slices:
            loaded[instruction.out] = instruction.ref.buffer, instruction.ref.offset
        elif isinstance(instruction, kernels.Store) and instruction.ref.buffer in slices:
            written.setdefault(instruction.ref.buffer, {})[instruction.ref.offset] = instruction.value
    known: dict[tuple[object, ...], Buffer] = {}
    for view, elements in written.items():
        storage = view.storage
        is_stack = (
            storage.kind == "arena"
            and storage is not flag
            and abs(view.step) == len(elements) == max(elements) + 1
            and all([isinstance(value, kernels.Register) for value in elements.values()])
            and all([buffer.base is storage and not buffer.ring for _, buffer in users[storage]])
            and [buffer for _, buffer in users[storage] if _is_written(buffer, users, storage)] == [view]
        )
        if not is_stack:
            continue
        values = tuple([elements[place] for place in range(len(elements))])
        source = loaded.get(values[0])
        if len(values) == 1 and source is not None and source[0].storage.kind in ("input", "constant"):
            _redirect(storage, view, source[0], source[1], users)
            continue
        key = (values, view.start, view.step, storage.size, storage.dtype)
        first = known.setdefault(key, view)
        if first is not view:
            for _, buffer in users[storage]:
                if buffer is not view:
                    buffer.base = first.base


def _is_written(view: Buffer, users: dict[Buffer, list[tuple[Item, Buffer]]], storage: Buffer) -> bool:
    """Whether a body writes through a slice; counts items other than nests as writes."""
    uses = _uses(view, users, storage)
    return any([use is None or isinstance(use, kernels.WRITES) for use in uses])


def _uses(view: Buffer, users: dict[Buffer, list[tuple[Item, Buffer]]], storage: Buffer) -> list[kernels.Access | None]:
    """The instructions that go through a slice; None for items other than instructions."""
    uses: list[kernels.Access | None] = []

    def visit(items: list[Item]) -> None:
        for item in items:
            if isinstance(item, LoopNest):
                uses.extend([None for buffer, _ in item.fills if buffer is view])
                uses.extend(
                    [each for each in item.code if isinstance(each, kernels.ACCESSES) and each.ref.buffer is view]
                )
            elif isinstance(item, CountedLoop):
                uses.extend([None for inner in item.slices if inner.base is view])
            else:
                uses.extend([None for buffer in own_buffers(item) if buffer is view])
            for body in bodies_of(item):
                visit(body)

    for item, buffer in users[storage]:
        if buffer is view:
            for body in bodies_of(item):
                visit(body)
    return uses


def _redirect(
    storage: Buffer, view: Buffer, source: Buffer, place: int, users: dict[Buffer, list[tuple[Item, Buffer]]]
) -> None:
    """Let reads of a stack of numbers go to the source of these numbers."""
    reading = [buffer for _, buffer in users[storage] if buffer is not view]
    for buffer in reading:
        uses = _uses(buffer, users, storage)
        if not all(
            [isinstance(use, kernels.Load) and use.ref.offset == 0 and not any(use.ref.strides) for use in uses]
        ):
            return
    for buffer in reading:
        ahead = (buffer.start - view.start) * view.step  # steps are 1 or -1
        buffer.start = source.start + place + ahead * source.step
        buffer.step = buffer.step * view.step * source.step
        buffer.base = source.base
