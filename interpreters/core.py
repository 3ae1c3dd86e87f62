"""The core types: Aval, Primitive, Tracer, Interpreter, and how a primitive finds its interpreter.

The life of one call: `multiply(x, y)` looks at its arguments, takes the interpreter with the highest level
among them and asks it to apply the row; without a tracer the backend's own function runs at once.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from func.backends import namespace_of
from func.interpreters.avals import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Aval,
    Params,
    Shape,
    Shaped,
    Zero,
    dtype_of,
    is_inexact,
    shape_of,
    short_dtype,
)
from func.interpreters.operands import (
    CARRIERS,
    operand,
    refuse_array,
    set_sequence_converter,
)
from func.interpreters.tracers import (
    CURRENT,
    ClosedInterpreter,
    Interpreter,
    Tracer,
    aval_of,
    concrete,
    example_of,
    innermost,
    new_tracer,
    next_level,
    snapshot,
)

__all__ = [
    "CARRIERS",
    "CURRENT",
    "EVALUATE",
    "PYTHON_SCALARS",
    "ROWS",
    "ZERO",
    "Array",
    "Aval",
    "ClosedInterpreter",
    "Evaluate",
    "Interpreter",
    "Params",
    "Primitive",
    "Shape",
    "Shaped",
    "Tracer",
    "Transpose",
    "Zero",
    "aval_of",
    "bind",
    "concrete",
    "dtype_of",
    "evaluate",
    "example_of",
    "innermost",
    "is_inexact",
    "new_tracer",
    "next_level",
    "operand",
    "refuse_array",
    "row_named",
    "set_sequence_converter",
    "shape_of",
    "short_dtype",
    "snapshot",
    "unboxed",
]

Transpose: TypeAlias = Callable[..., tuple[Any, ...]]


class Primitive:
    """A row of rules. Arrays are positional, parameters keyword-only and hashable.

    impl(xp, *arrays, **params)                  the value, by the backend's namespace xp
    aval(*avals, **params)                       what the output will be (a tuple of them if `multiple`)
    jvp(primals, tangents, **params)             (out, tangent of out); tangents may be ZERO; calls only primitives
    transpose(ct, *operands, **params)           cotangents of the operands that are Shaped (the linear unknowns)
    batch(size, batched, args, params)           (out, out_batched); batch axes lead; None means: by the driver's rule
    """

    __slots__ = ("_aval", "batch", "differentiable", "impl", "jvp", "multiple", "name", "numpy", "transpose")

    def __init__(
        self,
        name: str,
        impl: Callable[..., Any],
        *,
        aval: Callable[..., Any],
        batch: Callable[..., Any],
        jvp: Callable[..., Any] | None = None,
        transpose: Transpose | None = None,
        multiple: bool = False,
        differentiable: bool = True,
        register: bool = True,
    ) -> None:
        self.name = name
        self.impl = impl
        self._aval = aval
        self.batch = batch
        self.jvp = jvp
        self.transpose = transpose
        self.multiple = multiple
        self.differentiable = differentiable
        self.numpy: Callable[..., Any] | None = None
        if register:
            if name in ROWS:
                raise ValueError(f"two primitive rows are named {name!r}")
            ROWS[name] = self

    def __call__(self, *args: Array, **params: Any) -> Any:
        return bind(self, args, params)

    def aval(self, *avals: Aval, **params: Any) -> Any:
        """The abstract value of the output."""
        return self._aval(*avals, **params)

    def linearized(self, args: tuple[Array, ...], active: list[bool], params: Params) -> Any:
        """Set by the jvp interpreter module's builders where a row has a direct pullback."""
        return None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return row_named, (self.name,)


ROWS: dict[str, Primitive] = {}
"""Every primitive row by name."""


def row_named(name: str) -> Primitive:
    """The row of that name (what pickles and saved programs store). Modules that define rows are imported for it."""
    if name not in ROWS:
        primitives = importlib.import_module("func.interpreters.primitives")
        for module in pkgutil.iter_modules(primitives.__path__):
            importlib.import_module(f"{primitives.__name__}.{module.name}")
    return ROWS[name]


def evaluate(row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
    """Run a row on concrete arrays, on the backend they live on; host arrays beside device arrays go there."""
    xp = namespace_of(args)
    if xp is not np:
        args = tuple([xp.asarray(arg) if type(arg) is np.ndarray else arg for arg in args])
    return row.impl(xp, *args, **params)


def bind(row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
    """Apply a row with the interpreter of the highest level among its arguments."""
    top: Interpreter | None = None
    level: float = -1
    for arg in args:
        if type(arg) is Tracer and arg.interpreter.level > level:
            top = arg.interpreter
            level = top.level
    if top is None:
        return evaluate(row, args, params)
    return top.apply(row, args, params)


class Evaluate(Interpreter):
    """Level 0: boxes around concrete arrays. `np.zeros_like(x)` in traced code makes one, so that it can be
    written with traced values later."""

    __slots__ = ()

    def apply2(self, row: Primitive, x: Array, y: Array) -> Any:
        out = row(x.value if type(x) is Tracer else x, y.value if type(y) is Tracer else y)
        return tuple([Tracer(self, value, None) for value in out]) if row.multiple else new_tracer(self, out, None)

    def apply(self, row: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        values = tuple([arg.value if type(arg) is Tracer else arg for arg in args])
        out = evaluate(row, values, params)
        if row.multiple:
            return tuple([Tracer(self, value, None) for value in out])
        return Tracer(self, out, None)


EVALUATE = Evaluate("evaluate")
EVALUATE.level = 0


def unboxed(value: Array) -> Array:
    """A box of level 0 as the array inside: what interpreters above compute with."""
    return value.value if type(value) is Tracer and value.interpreter is EVALUATE else value
