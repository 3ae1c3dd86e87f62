"""Translation of a Program to a native program: equations by their rules, then outputs and scratch memory."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import is_device_array
from func.backends.loops.buffer_assignment import assign_buffers
from func.backends.loops.chunking import chunk_loops
from func.backends.loops.fusion import Fuser
from func.backends.loops.inplace_results import write_in_place
from func.backends.loops.interface import ArraySpec
from func.backends.loops.kernels import Buffer, NativeProgram, StridedRef, row_major
from func.backends.loops.nest_cleanup import eliminate_dead_code, share_parts
from func.backends.loops.pipelining import pipeline_loops
from func.backends.loops.values import ArrayValue, uniform
from func.interpreters.compile.native import contraction, elementwise, reductions, special, structural
from func.interpreters.compile.native.not_native import NotNative, RuleError
from func.interpreters.compile.native.rules import PRINTED, RULES, Rule, TranslationContext
from func.interpreters.compile.native.small_first import small_first
from func.interpreters.core import Aval, aval_of, is_inexact
from func.interpreters.core.errors import ValidationError
from func.interpreters.primitives.elementwise.builder import Elementwise
from func.interpreters.program.program import Equation, Program, Var

PACKAGE = __name__.rpartition(".")[0]
USUAL = (contraction, elementwise, reductions, special, structural)
"""The modules whose rules most programs need."""
OTHERS = {
    "control": ("scan_call", "while_call", "cond_call", "program_call"),
    "convolution": ("windows", "overlap_add", "correlate"),
    "cumulative": ("cumsum", "cumprod", "cummax", "cummin"),
    "diagonals": ("place", "take"),
    "library_sorts": ("sort", "argsort", "inverse_order"),
    "linalg": (
        *("cholesky", "cholesky_inverse", "triangular_solve", "solve", "inv", "lu", "pivot_order", "lu_factors"),
        *("factored_solve", "factored_slogdet", "factored_inverse", "slogdet", "det"),
    ),
    "sorting": ("argmax", "argmin", "reorder", "search"),
    "spectral": (
        *("eigh", "eigvalsh", "svd", "svdvals", "qr", "qr_raw", "lstsq", "solve_assumed", "pinv", "adjugate"),
    ),
}
"""Other modules with the primitives of their rules; the first such primitive imports the module."""
OWNERS = {name: f"{PACKAGE}.{module}" for module, names in OTHERS.items() for name in names}
SAMPLE = 64
"""Elements of a constant to compare before all of them."""
NONEMPTY = frozenset([f"{PACKAGE}.linalg", f"{PACKAGE}.spectral"])
"""The modules whose rules take no arrays without elements."""
LIBRARIES = NONEMPTY | {f"{PACKAGE}.library_sorts"}
"""The modules whose rules call routines of libraries."""


def translate(
    program: Program,
    checked: bool = False,
    donated: frozenset[int] = frozenset(),
    libraries: bool = True,
    is_printed: bool = False,
) -> NativeProgram:
    """The program's items, with places for all memory; if `checked`, they report a NaN in an output.

    They may write outputs into the memory of `donated` inputs. Raises NotNative for an equation without a native form;
    without `libraries` that includes linear algebra. `is_printed` adds the forms of printed code."""
    if is_printed:
        importlib.import_module("func.interpreters.compile.native.printed")
    return Translator(program, libraries=libraries, is_printed=is_printed).native(checked, donated)


def all_rules() -> dict[str, Rule]:
    """The table of rules with those of all modules."""
    for module in OTHERS:
        importlib.import_module(f"{PACKAGE}.{module}")
    return RULES


class Translator:
    """Translates one body, and knows the values of its variables so far. Bodies of one program share its constants."""

    def __init__(
        self,
        program: Program,
        constants: list[Any] | None = None,
        fuser: Fuser | None = None,
        libraries: bool = True,
        is_printed: bool = False,
    ) -> None:
        self.program = program
        self.constants: list[Any] = [] if constants is None else constants
        self.fuser = Fuser() if fuser is None else fuser
        self.values: dict[Var, ArrayValue] = {}
        self.libraries = libraries
        """Whether items may call routines of libraries."""
        self.is_printed = is_printed
        self.calls_scipy = libraries and not is_printed
        """Whether elements may be computed by functions of SciPy."""

    def native(self, checked: bool, donated: frozenset[int] = frozenset()) -> NativeProgram:
        """The whole program."""
        program, items = self.program, self.fuser.schedule.items
        native = NativeProgram([], self.constants, [], items)
        inputs: list[Buffer] = []
        outputs: list[Buffer] = []
        for place, var in enumerate(program.inputs):
            native.inputs.append(ArraySpec(var.shape, var.dtype, var.weak))
            buffer = Buffer(math.prod(var.shape), var.dtype, "input", place)
            inputs.append(buffer)
            self.values[var] = self.fuser.storage.located(buffer, var.shape)
        self._body()
        if checked:
            native.flag = self.nan_flag()
        taken: set[int] = set()
        for place, x in enumerate(program.outputs):
            aval = x.aval if type(x) is Var else aval_of(x)
            native.outputs.append(ArraySpec(aval.shape, aval.dtype, aval.weak))
            outputs.append(self._output(place, self.value(x), aval, taken))
        eliminate_dead_code(items)
        share_parts(items)
        if donated:  # imported only for programs with donated inputs, since a first call waits for it
            from func.backends.loops.buffer_aliasing import alias_outputs

            alias_outputs(native, inputs, outputs, donated)
        write_in_place(items)
        chunk_loops(items)
        pipeline_loops(items)
        native.arena = assign_buffers(items)
        return native

    def inside(self, program: Program, inputs: Sequence[ArrayValue]) -> Translator:
        """The body of a loop or branch, on values in memory."""
        inner = Translator(program, self.constants, libraries=self.libraries, is_printed=self.is_printed)
        inner.values.update(zip(program.inputs, inputs, strict=True))
        inner._body()
        return inner

    def inlined(self, program: Program, args: Sequence[ArrayValue]) -> Translator:
        """A called program among the items of this one."""
        inner = Translator(program, self.constants, self.fuser, self.libraries, self.is_printed)
        inner.values.update(zip(program.inputs, args, strict=True))
        inner._body()
        return inner

    def _body(self) -> None:
        for var, value in self.program.constants.items():
            self.values[var] = self._constant(var, value)
        self.run(small_first(self.program))

    def nan_flag(self) -> StridedRef | None:
        """A boolean that is true where some output has a NaN."""
        fuser, bit = self.fuser, np.dtype(bool)
        total: ArrayValue | None = None
        for x in dict.fromkeys([x for x in self.program.outputs if type(x) is Var and is_inexact(x.dtype)]):
            is_nan = fuser.map("isnan", [self.value(x)], bit)
            any_nan = fuser.reduce("logical_or", is_nan, range(len(is_nan.shape)), False)
            total = any_nan if total is None else fuser.map("logical_or", [total, any_nan], bit)
        return None if total is None else fuser.storage.ref(fuser.storage.copied(total))

    def run(self, equations: Sequence[Equation]) -> None:
        """Apply the rules of equations in order."""
        for equation in equations:
            self.apply(equation)

    def apply(self, equation: Equation) -> None:
        """Apply the rule of an equation. Raises NotNative without a rule, RuleError if the rule fails."""
        try:
            self._apply(equation)
        except (NotNative, RuleError, ValidationError):
            raise
        except Exception as error:
            raise RuleError(equation) from error

    def _apply(self, equation: Equation) -> None:
        for var in equation.outputs:
            if not elementwise.is_known(var.aval):
                raise NotNative(f"{equation.primitive.name} with an output of {var.aval}")
        rule = PRINTED.get(equation.primitive.name) if self.is_printed else None
        rule = rule_of(equation) if rule is None else rule
        if not self.libraries and rule.__module__ in LIBRARIES:
            raise NotNative(f"{equation.primitive.name} by a library")
        if equation.outputs and all([0 in var.shape for var in equation.outputs]) and structural.is_safe(equation):
            self.values.update({var: uniform(0, var.dtype, var.shape) for var in equation.outputs})
            return
        outs = rule(TranslationContext(self, equation, [self.value(x) for x in equation.inputs]))
        for var, out in zip(equation.outputs, outs if equation.primitive.multiple else [outs], strict=True):
            assert out.shape == var.shape and out.dtype == var.dtype, (equation.primitive.name, out, var.aval)
            self.values[var] = out

    def foreign(self) -> set[int]:
        """The places of the equations that have no native form."""
        foreign = set()
        for var in (*self.program.inputs, *self.program.constants):
            self.values[var] = self._unknown(var)
        for place, equation in enumerate(self.program.equations):
            try:
                self.apply(equation)
            except NotNative:
                foreign.add(place)
                for var in equation.outputs:
                    self.values[var] = self._unknown(var)
        return foreign

    def _unknown(self, var: Var) -> ArrayValue:
        return self.fuser.storage.located(Buffer(math.prod(var.shape), var.dtype), var.shape)

    def value(self, x: Any) -> ArrayValue:
        """The value of a variable or number."""
        if type(x) is Var:
            return self.values[x]
        aval = aval_of(x)
        return uniform(x, aval.dtype)

    def _constant(self, var: Var, value: Any) -> ArrayValue:
        if is_device_array(value):
            buffer = Buffer(math.prod(var.shape), var.dtype, "constant", len(self.constants))
            self.constants.append(value)
            return self.fuser.storage.located(buffer, var.shape)
        array = np.ascontiguousarray(value)
        if _is_uniform(array):
            return uniform(array.flat[0], var.dtype, var.shape)
        self.constants.append(array.reshape(var.shape))
        buffer = Buffer(array.size, var.dtype, "constant", len(self.constants) - 1)
        return self.fuser.storage.located(buffer, var.shape)

    def _output(self, place: int, x: ArrayValue, aval: Aval, taken: set[int]) -> Buffer:
        """The memory of an output: that of its value, or memory to which the value is copied."""
        size, storage = math.prod(aval.shape), self.fuser.storage
        root = x.root
        if root is not None and (root.ref is not None or size == math.prod(root.domain)):
            ref = storage.ref(x)
            if (
                ref.buffer.kind == "arena"
                and id(ref.buffer) not in taken
                and ref.buffer.size == size
                and ref.offset == 0
                and _is_row_major(ref.strides, aval.shape)
            ):
                ref.buffer.kind, ref.buffer.place = "output", place
                taken.add(id(ref.buffer))
                return ref.buffer
        buffer = Buffer(size, aval.dtype, "output", place)
        if x.shape != aval.shape:
            x = self.fuser.broadcast(x, aval.shape)
        storage.copied(x, StridedRef(buffer, 0, row_major(aval.shape)))
        return buffer


def _is_uniform(array: Any) -> bool:
    """Whether all elements are one number, bit by bit."""
    if array.size == 0:
        return False
    words = array.reshape(-1, 1).view(np.uint8 if array.dtype.itemsize % 4 else np.uint32)
    return all(bool((part == words[0]).all()) for part in (words[:SAMPLE], words[-SAMPLE:], words))


def _is_row_major(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all([a == b or n == 1 for a, b, n in zip(strides, row_major(shape), shape, strict=True)])


def rule_of(equation: Equation) -> Any:
    """The rule of an equation. Raises NotNative if there is none."""
    primitive = equation.primitive
    variables = [x for x in (*equation.inputs, *equation.outputs) if type(x) is Var]
    for x in equation.inputs:
        aval = x.aval if type(x) is Var else aval_of(x)
        if not elementwise.is_known(aval):
            raise NotNative(f"{primitive.name} of {aval}")
    if primitive.name in OWNERS:
        importlib.import_module(OWNERS[primitive.name])
    rule = RULES.get(primitive.name)
    if rule is not None:
        if rule.__module__ in NONEMPTY and any([0 in var.shape for var in variables]):
            raise NotNative(f"{primitive.name} of nothing")
        return rule
    is_scipys = primitive.scipy is not None and not primitive.multiple
    if primitive.numpy is not None or is_scipys or isinstance(primitive, Elementwise):
        return elementwise.elementwise
    raise NotNative(f"{primitive.name} has no native form")
