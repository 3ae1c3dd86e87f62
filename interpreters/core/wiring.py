"""Late binding: the functions that lower modules call and higher modules define.

A module of the engine imports only what lies below it. Where it needs a function from above (`bind` needs `linearize`,
which is made of interpreters), it calls an attribute of `WIRING`. The first use imports the module that `PORTS` names.
"""

from __future__ import annotations

import importlib
from typing import Any

PORTS = {
    "func.autograd.tensor": "tensor_repr",
    "func.host.interception": "adopt_array retire_arrays",
    "func.interpreters.calls.fused_backward": "fused_walk note_backward",
    "func.interpreters.compile.execution": "compile_program expect_programs reroll_loops",
    "func.interpreters.compile.native.device_programs": "compile_for_device",
    "func.interpreters.compile.native.executable": "compile_native",
    "func.interpreters.compile.validation": "check_translation validated_pass",
    "func.interpreters.imperative.interpreter": "mark_tensor",
    "func.interpreters.nan_safe": "run_nan_safe",
    "func.interpreters.primitives.elementwise.builder": "add",
    "func.interpreters.primitives.structural.shapes": "broadcast zeros_like",
    "func.interpreters.program.checking": "check_program",
    "func.interpreters.program.cost": "program_cost",
    "func.interpreters.program.drawing": "draw_program",
    "func.interpreters.program.equality": "program_hash program_token same_program",
    "func.interpreters.program.printing": "program_html program_text",
    "func.interpreters.staged_rules": "linearize_primitive",
    "func.host.conversions": "library_hint staged_hint",
    "func.numpy.creation": "array_from_sequence array_of_objects cast_operand convert_traced",
    "func.numpy.inplace": "check_write write_into",
    "func.host.patching": "hold_converters",
    "func.numpy.sharing": "box_arguments",
    "func.other_names": "renamed_options",
    "func.host.start": "install_hooks",
    "func.sparse_derivatives.derivatives": "sparse_jacobian_of",
    "func.transforms.vmapping": "vmap",
    "func.workers.dask_arrays": "transform_by_blocks",
    "func.workers.mapping": "check_executor jacobian_by_executor map_by_executor map_rows_by_executor",
}
"""The modules from above, each with the functions that modules below it call."""
_MODULE_OF = {name: module for module, names in PORTS.items() for name in names.split()}


class Wiring:
    """The late-bound functions: attributes that are found at their first use."""

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"WIRING has no function {name!r}")
        function = getattr(importlib.import_module(_MODULE_OF[name]), name)
        self.__dict__[name] = function
        return function


WIRING = Wiring()
