"""Equality of Programs: equal primitives, parameters, wiring, avals and constants, under any names of variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from func.backends import is_device_array
from func.backends.records import ValueRecord
from func.interpreters.core import Tracer
from func.interpreters.program.program import Program, Var


def same_program(left: Program, right: Program) -> bool:
    """Whether two programs differ at most in the names of variables and in source lines."""
    return (
        len(left.equations) == len(right.equations)
        and len(left.constants) == len(right.constants)
        and hash(left) == hash(right)
        and structure(left) == structure(right)
        and all([same_array(x, y) for x, y in zip(left.constants.values(), right.constants.values(), strict=True)])
        and left.nan_safe == right.nan_safe
    )


def program_hash(program: Program) -> int:
    """The hash of a program's structure and of its constants' bytes."""
    return hash((structure(program), *[canonical(value) for value in program.constants.values()]))


def program_token(program: Program) -> Any:
    """The token from which Dask makes a task's name: equal for equal programs, in every process."""
    from dask.base import normalize_token  # Dask calls this

    return normalize_token([structure(program), list(program.constants.values()), program.nan_safe])


def structure(program: Program) -> Hashable:
    """A program without the values of its constants, with variables numbered in order of definition."""
    numbers: dict[Var, int] = {}

    def define(variables: Any) -> Hashable:
        for var in variables:
            numbers[var] = len(numbers)
        return tuple([(var.shape, var.dtype, var.weak) for var in variables])

    def atoms(values: Any) -> Hashable:
        return tuple([("variable", numbers.get(x)) if type(x) is Var else canonical(x) for x in values])

    head = define(program.inputs), define(program.constants)
    equations = [
        (equation.primitive, atoms(equation.inputs), canonical(equation.params), define(equation.outputs))
        for equation in program.equations
    ]
    return head, tuple(equations), atoms(program.outputs)


def same_array(x: Any, y: Any) -> bool:
    """Whether two constants are of one type and equal in every bit."""
    if type(x) is not type(y):
        return False
    if isinstance(x, np.ndarray):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return False
        return x is y or np.array_equal(_bytes(x), _bytes(y))
    return canonical(x) == canonical(y)


def _bytes(x: np.ndarray[Any, Any]) -> Any:
    return np.frombuffer(np.ascontiguousarray(x).reshape(-1).view(np.uint8), np.uint8) if x.size else np.empty(0)


def canonical(value: Any) -> Hashable:
    """A hashable key that is equal for equal parameters: by value if possible, otherwise by identity."""
    kind = type(value)
    if kind in (float, complex):
        return kind, repr(value)
    if kind in (bool, int, str, bytes) or value is None or value is Ellipsis:
        return kind, value
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, value.dtype, value.shape, value.tobytes()
    if is_device_array(value):
        return kind, value.dtype, value.shape, value.get().tobytes() if hasattr(value, "get") else id(value)
    if isinstance(value, (tuple, list)):
        return kind, tuple([canonical(entry) for entry in value])
    if isinstance(value, (set, frozenset)):
        return kind, frozenset([canonical(entry) for entry in value])
    if isinstance(value, dict):
        return kind, frozenset([(canonical(key), canonical(entry)) for key, entry in value.items()])
    if isinstance(value, slice):
        return kind, canonical((value.start, value.stop, value.step))
    if isinstance(value, ValueRecord):
        return kind, tuple([canonical(field) for field in value.field_values()])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind, tuple([canonical(getattr(value, field.name)) for field in dataclasses.fields(value)])
    if isinstance(value, Program):
        return value
    program = getattr(value, "program", None)
    if isinstance(program, Program):
        return kind, program
    try:
        hash(value)
    except TypeError:
        return kind, id(value)
    return (kind, id(value)) if kind is Tracer else (kind, value)
