"""Programs for arrays of a device: as kernels as a whole, or in parts between calls of the device's library.

The implementations of primitives without a native form, such as linear algebra and sorting, call the library (cuSOLVER,
cuFFT, CUB by CuPy). The library also runs parts whose kernels do not compile, after a warning.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from func.backends.cuda.device import KernelError
from func.backends.cuda.device_runs import DeviceExecutable
from func.backends.cuda.plan import DevicePlan, MissingForm, device_plan
from func.backends.devices import DeviceError
from func.interpreters.compile.execution import compile_source
from func.interpreters.compile.inlining import prepare_program
from func.interpreters.compile.native.executable import rerolled
from func.interpreters.compile.native.native_parts import Run, foreign_equations, with_native_parts
from func.interpreters.compile.native.not_native import NotNative, warn_of_failure
from func.interpreters.compile.native.translate import translate
from func.interpreters.core.errors import ValidationError
from func.interpreters.nan_safe import checked
from func.interpreters.program.program import Program

FAILED = "kernels could not be made, so the device's library runs instead"


def compile_for_device(
    program: Program,
    xp: Any,
    options: frozenset[str],
    nan_safe: Any = None,
    donated: frozenset[int] = frozenset(),
) -> tuple[Run, None, Program | None]:
    """An optimized program as a function of arrays of a device, and the program of its parts, if it was cut. `nan_safe`
    computes the outputs if one has a NaN. Options are "fast", "tf32", and "eager" for parts of eager code, which keep
    no memory between calls. Programs that are kernels as a whole overwrite the inputs in `donated` with outputs, unless
    something may have to be computed again."""
    _check_long_numbers(program)
    program = rerolled(program)
    try:
        whole = DeviceProgram(program, xp, options, nan_safe, donated)
        whole.plan()
        return whole, None, None
    except NotNative:
        pass
    except ValidationError:
        raise
    except Exception as error:
        warn_of_failure(program, error, FAILED)
        return checked(compile_source(program, xp), nan_safe), None, None
    try:
        foreign = foreign_equations(program, libraries=False)
        parts = with_native_parts(program, foreign, lambda part: _part(part, xp, options))
    except ValidationError:
        raise
    except Exception as error:
        warn_of_failure(program, error, FAILED)
        return checked(compile_source(program, xp), nan_safe), None, None
    return checked(compile_source(parts, xp), nan_safe), None, parts


def _check_long_numbers(program: Program) -> None:
    """Raise DeviceError if a value has a dtype that no device computes in."""
    variables = [*program.inputs, *program.constants, *[out for each in program.equations for out in each.outputs]]
    for var in variables:
        if var.dtype.char in "gG" and var.dtype.itemsize > 8 * (1 + (var.dtype.kind == "c")):
            raise DeviceError(
                f"func.jit: a value has dtype {var.dtype}, which devices do not compute in\nConvert it to double "
                "precision on the host, with x.astype(np.float64) or x.astype(np.complex128)."
            )


def _part(program: Program, xp: Any, options: frozenset[str]) -> tuple[Run, None]:
    part = DeviceProgram(program, xp, options)
    try:
        part.plan()
        return part, None
    except NotNative:
        return compile_source(program, xp), None


class DeviceProgram:
    """A program with one plan, compiled for each device on which it is called."""

    def __init__(
        self,
        program: Program,
        xp: Any,
        options: frozenset[str],
        nan_safe: Any = None,
        donated: frozenset[int] = frozenset(),
    ) -> None:
        self.program, self.xp, self.options, self.nan_safe = program, xp, options, nan_safe
        self.donated = donated
        self._executables: dict[Any, Callable[..., tuple[Any, ...]]] = {}
        self._lock = threading.Lock()
        self._plan: DevicePlan | None = None
        self._fallback: Run | None = None

    @property
    def text(self) -> str:
        """The kernels in CUDA C."""
        return self.plan().source

    def plan(self) -> DevicePlan:
        """The plan. Raises NotNative if the program is not native as a whole."""
        if self._plan is None:
            self._plan = self._overwriting() or self._planned(self.program, self.nan_safe is not None, False)
        return self._plan

    def _overwriting(self) -> DevicePlan | None:
        """The plan that overwrites donated inputs; None if a later look at the status may need them."""
        if not self.donated or self.nan_safe is not None:
            return None
        native = translate(self.program, False, self.donated, libraries=False)
        try:
            plan = device_plan(native, False, "tf32" in self.options)
        except MissingForm:  # outputs come after a check for errors
            return None
        return None if plan.reports else plan

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        device = self.xp.device_of(args)
        executable = self._executables.get(device)
        if executable is None:
            with self._lock:
                executable = self._executables.get(device) or self._compiled(device)
                self._executables[device] = executable
        return executable(*args)

    def _compiled(self, device: Any) -> Callable[..., tuple[Any, ...]]:
        try:
            fast, is_eager = "fast" in self.options, "eager" in self.options
            return DeviceExecutable(device, self.plan(), self._again, self._variant(), fast, is_eager)
        except KernelError as error:
            warn_of_failure(self.program, error, FAILED)
            return self._again

    def _variant(self) -> Any:
        """The plan of the NaN-safe variant, or the function that runs it.

        It is a plan if the variant is native as a whole and the host decides nothing in it."""
        variant = getattr(self.nan_safe, "variant", None)
        if variant is None:
            return self.nan_safe
        try:
            return self._planned(rerolled(prepare_program(variant.program, is_for_device=True)), False, True)
        except (NotNative, MissingForm):
            return self.nan_safe

    def _again(self, *args: Any) -> tuple[Any, ...]:
        """The outputs by the device's library."""
        if self._fallback is None:
            self._fallback = checked(compile_source(self.program, self.xp), self.nan_safe)
        return self._fallback(*args)

    def _planned(self, program: Program, is_checked: bool, guarded: bool) -> DevicePlan:
        return device_plan(translate(program, is_checked, libraries=False), guarded, "tf32" in self.options)
