"""The planned memory of compiled calls: by native code, or equation by equation."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.compile import execution
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.program.liveness import Liveness, liveness

MOST_KEPT = 1 << 28
"""The largest arena, in bytes, that native code keeps for its next call."""
NATIVE = "the arena of the compiled program, item by item"
PLANNED = "the compiled program, equation by equation"


def planned_liveness(
    compiled: CompiledCall, xp: Any = np, donated: frozenset[int] = frozenset()
) -> tuple[Liveness, str]:
    """The memory of one call of a compiled program, and the source of the number. Nothing is compiled for it."""
    program = prepare_program(compiled.program)
    name = (compiled.compiler or "").partition("+")[0]
    if xp is np and name in execution.NATIVE and importlib.util.find_spec("llvmlite") is not None:
        native = importlib.import_module("func.interpreters.compile.native.executable")
        if native.is_available():
            plan = importlib.import_module("func.interpreters.compile.native.memory_plan")
            try:
                found: Liveness = plan.native_liveness(native.rerolled(program), compiled.has_pullbacks, donated)
            except native.NotNative:
                pass
            else:
                return found, NATIVE
    return liveness(program), PLANNED


def call_in_eager_code(compiled: CompiledCall) -> tuple[Liveness, int]:
    """The memory of one call of a compiled program, and the part that the code keeps for its next call."""

    def plan() -> tuple[Liveness, int]:
        found, source = planned_liveness(compiled)
        arena = found.peak - found.arguments - found.constants - found.results
        return found, arena if source == NATIVE and arena <= MOST_KEPT else 0

    return compiled.memoized("memory in eager code", plan)
