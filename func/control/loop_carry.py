"""Loop carries, and compiled calls with captures and outputs that fit a control-flow primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from func import tree
from func.interpreters.calls.compiled_call import CompiledCall, trace_function
from func.interpreters.core import PYTHON_SCALARS, Array, Aval, Tracer, aval_of, dtype_of, shape_of, snapshot
from func.interpreters.core.errors import CarryError, SharedMemoryError
from func.interpreters.host.source import at_line
from func.interpreters.imperative.interpreter import copy_of
from func.interpreters.primitives.structural.shapes import convert
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import Stage
from func.numpy.guarding import guard, guard_places, is_write_error, may_share, unguarded
from func.numpy.memory import in_order, is_abstract, to_c_order
from func.numpy.sharing import COPY_HINT, note_traced_arguments
from func.transforms.boundary import array_leaf, describe, name_of, own, traced_leaf, unbox


def write_error_text(transform: str, name: str) -> str:
    """The text of the error for a write that NumPy would show in other arrays, too."""
    return (
        f"func.{transform}: {name} writes to an array that shares memory with another "
        f"one that the loop carries or runs over. In NumPy that would have the new numbers; here each is an array "
        f"by itself{at_line()}\n{COPY_HINT}"
    )


def without_writes(function: Callable[..., Any], places: Sequence[int], transform: str) -> Callable[..., Any]:
    """A function that raises a named error if it writes to its leaves at these places."""

    def guarded(*args: Any) -> Any:
        leaves, spec = tree.flatten(args)
        guard_places(leaves, [places])
        try:
            out = function(*tree.unflatten(spec, leaves))
        except ValueError as error:
            if is_write_error(error, leaves):
                raise SharedMemoryError(write_error_text(transform, name_of(function))) from error
            raise
        return tree.map(unguarded, out)

    return guarded


class Widened(Exception):
    """A number in the initial carry has become an array of another dtype: the loop starts again with it."""


class Carry:
    """The carry of a loop: its initial values, and the tree, shapes and dtypes that they keep."""

    def __init__(self, init: Any, transform: str, word: str) -> None:
        leaves, self.spec = tree.flatten(init)
        self.transform = transform
        self.names = [name.replace("state[2]", "init", 1) for name in tree.path_names(init, word)]
        initial = [unbox(traced_leaf(leaf, name, transform)) for leaf, name in zip(leaves, self.names, strict=True)]
        self.initial = initial
        self.rows: Sequence[Array] = ()
        """The arrays that the loop runs over, which may share memory with the carry."""
        self.returned_shared: set[int] = set()
        """The places of the values that share memory in the result of a step."""
        self.are_numbers = [type(leaf) in PYTHON_SCALARS for leaf in initial]
        self.dtypes = [dtype_of(leaf) for leaf in initial]
        self.shapes = [shape_of(leaf) for leaf in initial]

    def values(self) -> list[Array]:
        """The first values, as the loop's own arrays."""
        values = [
            dtype.type(leaf) if is_number else in_c_order(snapshot(strong(leaf)))
            for leaf, is_number, dtype in zip(self.initial, self.are_numbers, self.dtypes, strict=True)
        ]
        guard(values, [*self.initial, *self.rows])
        return values

    def tree(self, values: Sequence[Array]) -> Any:
        """The carry as the user's functions see it."""
        return tree.unflatten(self.spec, list(values))

    def fit(self, out: Any, body: str) -> tuple[list[Array], list[Array]]:
        """The leaves of the next carry, converted and as returned; an error shows a difference."""
        leaves, spec = tree.flatten(out)
        if spec != self.spec:
            raise CarryError(
                f"func.{self.transform}: {body} returned a carry of another tree{at_line()}\n"
                f"  before {tree.shown(self.spec)}\n  after  {tree.shown(spec)}"
            )
        fitted: list[Array] = []
        returned: list[Array] = []
        for place, (leaf, name) in enumerate(zip(leaves, self.names, strict=True)):
            leaf = unbox(array_leaf(leaf, name, self.transform))
            dtype = dtype_of(leaf)
            if shape_of(leaf) != self.shapes[place]:
                self._raise_changed(place, leaf, body)
            if dtype != self.dtypes[place] or type(leaf) in PYTHON_SCALARS:
                leaf = self._converted(place, leaf, body)
            returned.append(leaf)
            fitted.append(in_c_order(unguarded(leaf)))
        if may_share(returned):
            fitted = [snapshot(leaf) for leaf in fitted]
            self.returned_shared |= guard(fitted, returned)
        return fitted, returned

    def step(self, function: Callable[..., Any], name: str, values: Sequence[Array], *row: Any) -> Any:
        """The results of the user's function for a carry and a row; a write to shared memory raises an error."""
        try:
            return function(self.tree(values), *row)
        except ValueError as error:
            if is_write_error(error, [*values, *tree.leaves(row)]):
                raise SharedMemoryError(write_error_text(self.transform, name)) from error
            raise

    def noting_writes(
        self, function: Callable[..., Any], name: str, tracers: Sequence[Array], arrays: Sequence[Array]
    ) -> Callable[[], None]:
        """Note the arguments of a traced step. The result raises for a write to memory that the next step shares."""
        tracer = next(
            (tracer for tracer in tracers if type(tracer) is Tracer and isinstance(tracer._interpreter, Stage)), None
        )
        if tracer is None or len(tracers) < 2:
            return lambda: None
        stage: Any = tracer._interpreter
        note_traced_arguments(stage, function, tracers, arrays)

        def check() -> None:
            if stage.shared.written & self.returned_shared:
                raise SharedMemoryError(write_error_text(self.transform, name))

        return check

    def _converted(self, place: int, leaf: Array, body: str) -> Array:
        """A number as an array of the carry's dtype; a carry that started as a number may become wider."""
        dtype = self.dtypes[place]
        if type(leaf) in PYTHON_SCALARS and common_dtype([Aval((), dtype), aval_of(leaf)]) == dtype:
            return dtype.type(leaf)
        if self.are_numbers[place]:
            wider = dtype_of(leaf)
            if common_dtype([aval_of(self.initial[place]), Aval((), wider)]) == wider:
                self.dtypes[place] = wider
                self.are_numbers[place] = type(leaf) in PYTHON_SCALARS
                self.initial[place] = (
                    self.initial[place] if self.are_numbers[place] else wider.type(self.initial[place])
                )
                raise Widened(self)
        self._raise_changed(place, leaf, body)

    def _raise_changed(self, place: int, leaf: Array, body: str) -> NoReturn:
        before = Aval(self.shapes[place], self.dtypes[place])
        raise CarryError(
            f"func.{self.transform}: {body} changed {self.names[place]} from {before} to {describe(leaf)}"
            f"{at_line()}\nA carry keeps its shapes and dtypes from step to step: start from an array of the shape and "
            "dtype that the body returns, or convert its result with .astype(...)."
        )


def in_c_order(value: Array) -> Array:
    """The value in C order, like all carries and rows in compiled code."""
    if type(value) is Tracer:
        return value if is_abstract(value) else in_order(value, "C")
    return value.copy("C") if type(value) is np.ndarray and not value.flags.c_contiguous else value


def owned(values: list[Array]) -> list[Array]:
    """The results of a loop or branch, in place, as in compiled code: separate memory, C order, scalars without axes.

    Values without axes are scalars.
    """
    for i in range(len(values)):
        kind = type(values[i])
        if kind is Tracer:
            copied = values[i] = in_c_order(copy_of(values[i]))
            if copied.shape and is_abstract(copied):  # the variable may be an operand, with another layout
                values[i] = to_c_order(copied)
        elif kind is np.ndarray:
            array = own([values.pop(i)])[0]
            values.insert(i, in_c_order(array) if array.shape else array[()])
    return values


def strong(value: Array) -> Array:
    """A value with a fixed dtype: a traced number becomes an array, like the program's inputs."""
    return convert(value, dtype=dtype_of(value)) if aval_of(value).weak else value


def avals_of(values: Sequence[Array]) -> list[Aval]:
    """Shapes and dtypes of values."""
    return [Aval(shape_of(value), dtype_of(value)) for value in values]


def common_dtype(avals: Sequence[Aval]) -> np.dtype[Any] | None:
    """The common dtype, which numbers (weak avals) take from arrays; None if arrays or kinds differ."""
    strong = {aval.dtype for aval in avals if not aval.weak}
    weak = [{"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}[aval.dtype.kind] for aval in avals if aval.weak]
    if not strong:
        return np.result_type(*[np.asarray(number) for number in weak])
    if len(strong) > 1:
        return None
    (dtype,) = strong
    return dtype if all([np.result_type(dtype, number) == dtype for number in weak]) else None


def compiled(
    fun: Callable[..., Sequence[Array]], avals: Sequence[Aval], transform: str, example: Array
) -> tuple[CompiledCall, list[Array]]:
    """A function of arrays as a compiled call, and the distinct traced values that it captures."""
    return trace_function(fun, avals, transform, example)


def edited(compiled: CompiledCall, edit: Callable[[Program], Program]) -> CompiledCall:
    """A compiled call with another program."""

    return compiled.transformed(lambda original: edit(original.program))


def with_outputs(compiled: CompiledCall, dtypes: Sequence[np.dtype[Any]]) -> CompiledCall:
    """A compiled call with these dtypes for its outputs that are numbers."""
    if all([type(x) is Var and not x.weak for x in compiled.program.outputs]):
        return compiled

    def edit(program: Program) -> Program:
        constants = dict(program.constants)
        outputs = []
        for x, dtype in zip(program.outputs, dtypes, strict=True):
            if type(x) is not Var:
                value = np.asarray(x, dtype)
                x = Var(Aval((), dtype))
                constants[x] = value
            outputs.append(x)
        return Program(program.inputs, program.equations, outputs, constants)

    return edited(compiled, edit)


def with_strong_outputs(compiled: CompiledCall) -> CompiledCall:
    """A compiled call whose outputs are arrays."""
    return with_outputs(compiled, [aval.dtype for aval in compiled.out_avals])


def with_common_dtypes(branches: Sequence[CompiledCall]) -> list[CompiledCall]:
    """Branches of equal shapes whose outputs are arrays of the same dtypes."""
    dtypes = []
    for avals in zip(*[branch.out_avals for branch in branches], strict=True):
        dtype = common_dtype(avals)
        assert dtype is not None
        dtypes.append(dtype)
    return [with_outputs(branch, dtypes) for branch in branches]


def with_shared_captures(
    branches: Sequence[CompiledCall], captured: Sequence[Sequence[Any]]
) -> tuple[list[Any], list[CompiledCall]]:
    """(values, branches): all branches take all captured values as their leading inputs."""
    places: dict[Any, int] = {}
    shared: list[Any] = []
    for values in captured:
        for value in values:
            key = _identity(value)
            if key not in places:
                places[key] = len(shared)
                shared.append(value)
    avals = avals_of(shared)
    result = []
    for branch, values in zip(branches, captured, strict=True):
        order = [places[_identity(value)] for value in values]

        def edit(program: Program, order: Sequence[int] = tuple(order)) -> Program:
            leading = [Var(aval) for aval in avals]
            for var, place in zip(program.inputs, order, strict=False):
                leading[place] = var
            inputs = (*leading, *program.inputs[len(order) :])
            return Program(inputs, program.equations, program.outputs, program.constants)

        result.append(edited(branch, edit))
    return shared, result


def _identity(value: Tracer) -> Any:
    """Snapshots of one traced value are the same value."""
    return id(value._interpreter), id(value._value), id(value._attached)
