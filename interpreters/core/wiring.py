"""Late binding: functions that lower modules call and higher modules define, and primitives that files name.

A module of the engine imports modules below it only. Where it needs a function from above, it calls an attribute of
`WIRING`. The first use imports the module that `PORTS` names.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from func.interpreters.core.primitive import Primitive

PORTS = {
    "func.autograd.tensors": "tensor_repr",
    "func.host.intercepted_arrays": "adopt_array retire_arrays",
    "func.interpreters.calls.backward_plans": "compiled_walk note_backward",
    "func.interpreters.compile.execution": "compile_program expect_programs reroll_loops",
    "func.interpreters.compile.native.device_programs": "compile_for_device",
    "func.interpreters.compile.native.executable": "compile_native",
    "func.interpreters.compile.validation": "check_translation validated_pass",
    "func.interpreters.core.traced_values": "class_behind",
    "func.interpreters.imperative.interpreter": "mark_tensor",
    "func.interpreters.nan_safe": "run_nan_safe",
    "func.interpreters.primitives.elementwise.builder": "add conjugate scale",
    "func.interpreters.primitives.structural.filling": "zeros_like",
    "func.interpreters.primitives.structural.shapes": "broadcast",
    "func.interpreters.program.checking": "check_program",
    "func.interpreters.program.cost": "program_cost",
    "func.interpreters.program.drawing": "draw_program",
    "func.interpreters.program.equality": "program_hash program_token same_program",
    "func.interpreters.program.printing": "program_html program_text",
    "func.interpreters.staged_rules": "linearize_primitive",
    "func.host.suggestions": "library_hint traced_hint",
    "func.numpy.creation": "array_from_sequence array_of_objects cast_operand convert_traced",
    "func.numpy.inplace": "check_write write_into",
    "func.host.patching": "hold_converters",
    "func.numpy.sharing": "link_arguments",
    "func.other_names": "renamed_options",
    "func.host.start": "install_hooks",
    "func.sparse_derivatives.derivatives": "sparse_jacobian_of",
    "func.transforms.vmapping": "vmap",
    "func.workers.dask_arrays": "transform_by_blocks",
    "func.workers.mapping": "check_executor jacobian_by_executor map_by_executor map_rows_by_executor",
}
"""Modules from above, each with the functions that lower modules call."""
_MODULE_OF = {name: module for module, names in PORTS.items() for name in names.split()}


class Wiring:
    """The late-bound functions: attributes that the first use imports."""

    def __getattr__(self, name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"WIRING has no function {name!r}")
        function = getattr(importlib.import_module(_MODULE_OF[name]), name)
        self.__dict__[name] = function
        return function


WIRING = Wiring()


PRIMITIVES: dict[str, Primitive] = {}
"""Every primitive by name."""


PROVIDERS: dict[str, str] = {
    "callback": "func.interpreters.calls.callback",
    "checkpoint_call": "func.interpreters.calls.checkpoint",
    "cond_call": "func.interpreters.control.branches",
    "custom_jvp_call": "func.interpreters.calls.custom_rules",
    "custom_vjp_call": "func.interpreters.calls.custom_rules",
    "custom_vmap_call": "func.interpreters.calls.custom_rules",
    "linear_call": "func.interpreters.calls.call_primitives",
    "program_call": "func.interpreters.calls.compiled_call",
    "pure_callback": "func.interpreters.calls.callback",
    "remote_map": "func.interpreters.calls.remote_map",
    "saved_output": "func.interpreters.calls.checkpoint",
    "scan_call": "func.interpreters.control.scan",
    "scipy_distribution": "func.scipy.stats",
    "while_call": "func.interpreters.control.while_loops",
}
"""The modules outside of `func.interpreters.primitives` that define primitives."""

RENAMED = {"spread": "remote_map"}
"""Names of primitives in files and pickles of earlier versions, each with the present one."""


def primitive_named(name: str) -> Primitive:
    """The primitive of a name in a pickle or saved program; imports the module that defines it if need be."""
    name = RENAMED.get(name, name)
    if name not in PRIMITIVES and name in PROVIDERS:
        importlib.import_module(PROVIDERS[name])
    if name not in PRIMITIVES:
        import pkgutil  # for loading alone

        primitives = importlib.import_module("func.interpreters.primitives")
        modules = [module.name for module in pkgutil.walk_packages(primitives.__path__, f"{primitives.__name__}.")]
        for module in sorted(modules, key=lambda module: ".structural" not in module):  # most programs have these
            importlib.import_module(module)
            if name in PRIMITIVES:
                break
    return PRIMITIVES[name]


def importing_module() -> str:
    """The module whose body runs; an empty string without one."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        outer = frame.f_back
        if outer is None:
            return ""
        frame = outer
    return str(frame.f_globals.get("__name__", ""))
