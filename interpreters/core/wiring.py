"""Late binding: the functions that lower modules call and higher modules define.

A module of the engine imports only what lies below it. Where it needs a function from above (`bind` needs `linearize`,
which is made of interpreters), it calls a field of `WIRING`. The module that defines the function sets the field, once,
at its end. `SET_BY` names that module for each field; a field that is read while it is unset imports the module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

SET_BY = {
    "add": "func.interpreters.primitives.elementwise.builder",
    "adopt_array": "func.interception",
    "array_from_sequence": "func.numpy.creation",
    "array_of_objects": "func.numpy.creation",
    "broadcast": "func.interpreters.primitives.structural.shapes",
    "box_arguments": "func.numpy.sharing",
    "cast_operand": "func.numpy.creation",
    "check_program": "func.interpreters.program.checking",
    "check_translation": "func.interpreters.compile.validation",
    "check_write": "func.numpy.inplace",
    "compile_program": "func.interpreters.compile.execution",
    "convert_traced": "func.numpy.creation",
    "draw_program": "func.interpreters.program.drawing",
    "expect_programs": "func.interpreters.compile.execution",
    "fused_walk": "func.interpreters.calls.fused_backward",
    "note_backward": "func.interpreters.calls.fused_backward",
    "hold_converters": "func.numpy.patching",
    "install_doors": "func.scipy.imports",
    "library_hint": "func.numpy.conversions",
    "linearize_primitive": "func.interpreters.staged_rules",
    "mark_tensor": "func.interpreters.imperative.interpreter",
    "program_cost": "func.interpreters.program.cost",
    "program_hash": "func.interpreters.program.equality",
    "program_html": "func.interpreters.program.printing",
    "program_token": "func.interpreters.program.equality",
    "program_text": "func.interpreters.program.printing",
    "renamed_options": "func.other_names",
    "reroll_loops": "func.interpreters.compile.execution",
    "retire_arrays": "func.interception",
    "run_nan_safe": "func.interpreters.nan_safe",
    "same_program": "func.interpreters.program.equality",
    "sparse_jacobian": "func.sparse_derivatives.derivatives",
    "staged_hint": "func.numpy.conversions",
    "tensor_repr": "func.autograd",
    "validated_pass": "func.interpreters.compile.validation",
    "vmap": "func.transforms.vmapping",
    "write_into": "func.numpy.inplace",
    "zeros_like": "func.interpreters.primitives.structural.shapes",
}
"""The module that sets each field."""


class Wiring:
    """The late-bound functions. A field is set once; reading a field costs one attribute look-up."""

    __slots__ = tuple(SET_BY)

    add: Callable[[Any, Any], Any]
    """(x, y): their sum, by the primitive `add`."""
    broadcast: Callable[..., Any]
    """(x, shape=...): NumPy's broadcast_to, by the primitive `broadcast`."""
    zeros_like: Callable[[Any], Any]
    """(x): zeros of its shape, dtype and backend."""
    linearize_primitive: Callable[..., Any]
    """(primitive, values, parents, params): the outputs and the linear tangent program, which is the pullback."""
    compile_program: Callable[..., Any]
    """(program, xp, compiler, donated, nan_safe): the program as an Executable."""
    expect_programs: Callable[[str | None], None]
    """(compiler): a function is about to be traced for it."""
    fused_walk: Callable[[Any, Any, Any], list[Any]]
    note_backward: Callable[[Any, Any], None]
    """(seeds, leaves): the cotangents of the leaves of a graph; whether there may be a program for such graphs."""
    reroll_loops: Callable[[Any, str | None], Any]
    """(program, compiler): a long program with its unrolled loops as scans, where native code runs it."""
    renamed_options: Callable[..., Any]
    """(function, args, kwargs, error): the keywords by their names here, where the call has some of peers; or None."""
    program_text: Callable[[Any, bool], str]
    """(program, lines): the program as text; with `lines` each equation says where it comes from."""
    program_html: Callable[[Any], str]
    """(program): the program for a notebook."""
    program_cost: Callable[[Any], Any]
    """(program): its Cost."""
    draw_program: Callable[[Any, Any], str]
    """(program, path): a picture of the program is in the file; the path."""
    check_program: Callable[[Any], None]
    """(program): raises ProgramError where the program is not valid."""
    check_translation: Callable[..., None]
    """(name, program, translated, run): raises where a translation of the program computes something else."""
    validated_pass: Callable[[Any], Any]
    """(pass): the pass, validated wherever it changes something."""
    run_nan_safe: Callable[[Any, Any], Any]
    """(program, arguments): the outputs of a program that has a NaN-safe variant, or of the variant."""
    same_program: Callable[[Any, Any], bool]
    """(program, other): whether they differ in nothing but the names of variables and the source lines."""
    program_hash: Callable[[Any], int]
    program_token: Callable[[Any], Any]
    """(program): the same for equal programs."""
    hold_converters: Callable[[], Any]
    """(): an object; as long as it is referred to, NumPy's converters work for traced values."""
    install_doors: Callable[[], None]
    """(): functions of the modules of SciPy that have been imported look for traced values from here on."""
    library_hint: Callable[[list[tuple[str, str]], str], str | None]
    """(functions, otherwise): what to write instead of a call of these functions of a library."""
    staged_hint: Callable[..., str]
    """(otherwise, argument=""): what to write where a value is asked for that is not known while code is staged."""
    box_arguments: Callable[[Any, Any, Any, Any], None]
    """(interpreter, function, boxes, given): boxes lie in memory as what was given; notes which arguments share it."""
    array_from_sequence: Callable[[Any], Any]
    """(nested): nested lists that may hold traced values as one array."""
    array_of_objects: Callable[[Any], Any]
    """(array): an array of Python objects, which may be traced numbers, as one array of numbers."""
    convert_traced: Callable[..., Any]
    """(name, *args, **kwargs): np.array and the like for arguments that hold traced values."""
    adopt_array: Callable[[Any, Any], Any]
    """(array, source): the array that a NumPy converter returns for an untraced source."""
    retire_arrays: Callable[[Any], None]
    """(arrays): those that `func.intercept` made for a transform, which has ended."""
    cast_operand: Callable[[Any, Any], Any]
    """(x, dtype): an operand or a result of a ufunc in the dtype of its loop."""
    vmap: Callable[..., Any]
    """(function, in_dims): the function mapped over a batch axis, `func.vmap`."""
    sparse_jacobian: Callable[..., Any]
    """(function, argnums, argnames, sparse): the function that gives the Jacobian as a sparse array, or None."""
    write_into: Callable[[Any, Any], Any]
    """(target, value): the write to a traced array behind out=."""
    mark_tensor: Callable[[Any], Any]
    """(array): the array in a box, marked where inference mode is on."""
    check_write: Callable[[Any], None]
    """(target): raises where the write to a traced array behind out= will be refused."""
    tensor_repr: Callable[[Any, Callable[[Any], str]], str]
    """(tensor, repr of other traced values): the text of a tensor."""

    if not TYPE_CHECKING:  # for type checkers a field that is not declared is an error

        def __getattr__(self, name: str) -> Any:
            """Called where a field is unset: imports the module that sets it."""
            if name not in SET_BY:
                raise AttributeError(f"WIRING has no field {name!r}")
            importlib.import_module(SET_BY[name])
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                raise RuntimeError(f"WIRING.{name} is not set; {SET_BY[name]} sets it when it is imported") from None

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                object.__getattribute__(self, name)
            except AttributeError:
                object.__setattr__(self, name, value)
            else:
                raise RuntimeError(f"WIRING.{name} is set twice; only {SET_BY[name]} sets it")


WIRING = Wiring()
