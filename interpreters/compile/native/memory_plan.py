"""The memory of native code over time: the arena item by item, besides arguments, constants and results."""

from __future__ import annotations

import math

from func.backends.llvm.report.listing import Names, title
from func.backends.loops.buffer_assignment import ALIGNMENT
from func.backends.loops.kernels import Buffer
from func.backends.loops.traversal import buffers_of
from func.interpreters.compile.native.translate import Translator
from func.interpreters.core import Aval, aval_of
from func.interpreters.program.liveness import ARGUMENT, CONSTANT, INTERMEDIATE, RESULT, Alive, Liveness, Moment
from func.interpreters.program.program import Equation, Program, Var


def native_liveness(program: Program, checked: bool, donated: frozenset[int] = frozenset()) -> Liveness:
    """The planned memory of an optimized program in native code. Raises NotNative without such code."""
    translator = Translator(program)
    native = translator.native(checked, donated)
    names = Names(native)
    makers = _makers(translator)
    lifetimes: dict[Buffer, tuple[int, int]] = {}
    for number, item in enumerate(native.items):
        for buffer in buffers_of(item):
            if buffer.storage.kind == "arena":
                lifetimes[buffer.storage] = lifetimes.get(buffer.storage, (number, number))[0], number
    arguments = [(f"in{i}", Aval(spec.shape, spec.dtype)) for i, spec in enumerate(native.inputs)]
    constants = [(f"const{i}", aval_of(value)) for i, value in enumerate(native.constants)]
    results = [(f"out{i}", Aval(spec.shape, spec.dtype)) for i, spec in enumerate(native.outputs)]
    beside = [
        Alive(name, kind, aval, _bytes(aval), "", None)
        for kind, entries in ((ARGUMENT, arguments), (CONSTANT, constants), (RESULT, results))
        for name, aval in entries
    ]
    fixed = sum([entry.bytes for entry in beside])
    moments, place, most = [], -1, -1
    for number, item in enumerate(native.items):
        live = sum([_aligned(buffer) for buffer, (first, last) in lifetimes.items() if first <= number <= last])
        if live > most:
            place, most = number, live
        lines = [makers[buffer].line for buffer in map(_storage, buffers_of(item)) if buffer in makers]
        line = next((line for line in lines if line is not None), None)
        moments.append(Moment(title(item, names), line, fixed + live))
    scratch = []
    for buffer, (first, last) in lifetimes.items():
        if first <= place <= last:
            maker = makers.get(buffer)
            row, line = (maker.primitive.name, maker.line) if maker is not None else ("scratch", None)
            aval = Aval((buffer.size,), buffer.dtype)
            scratch.append(Alive(names[buffer], INTERMEDIATE, aval, buffer.bytes, row, line))
    totals = {kind: sum([entry.bytes for entry in beside if entry.kind == kind]) for kind in (ARGUMENT, CONSTANT)}
    return Liveness(
        tuple(moments),
        place,
        tuple(sorted([*beside, *scratch], key=lambda entry: -entry.bytes)),
        fixed + native.arena,
        totals[ARGUMENT],
        fixed - totals[ARGUMENT] - totals[CONSTANT],
        totals[CONSTANT],
    )


def _makers(translator: Translator) -> dict[Buffer, Equation]:
    """The equations whose values are in the buffers of the arena."""
    defining = {out: equation for equation in translator.program.equations for out in equation.outputs}
    makers: dict[Buffer, Equation] = {}
    for var, value in translator.values.items():
        root = value.root
        if type(var) is Var and root is not None and root.ref is not None and var in defining:
            makers.setdefault(root.ref.buffer.storage, defining[var])
    return makers


def _storage(buffer: Buffer) -> Buffer:
    return buffer.storage


def _bytes(aval: Aval) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize


def _aligned(buffer: Buffer) -> int:
    return -(-max(buffer.bytes, 1) // ALIGNMENT) * ALIGNMENT
