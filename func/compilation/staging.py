"""Staging: the Program of a function, and the shapes of its outputs, without a computation."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.compilation.static_arguments import StaticArguments
from func.interpreters.calls.captured_values import noticing_random_numbers
from func.interpreters.core import Aval, aval_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.nan_safe import structural_zeros
from func.interpreters.program.program import Program
from func.interpreters.stage import Stage
from func.numpy.memory import set_argument_layouts
from func.numpy.sharing import note_traced_arguments
from func.transforms.boundary import argument_paths, check_callable, check_no_value, name_of, output_leaves, traced_leaf
from func.transforms.transformed import keeps_parameters, transform


@keeps_parameters
@transform
def make_program(
    f: Callable[..., Any],
    static_argnums: int | tuple[int, ...] = (),
    *,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., Program]:
    """The Program of a function: called with arguments (or avals), it returns the traced equations.

    The function gets arguments at `static_argnums`, or with a name in `static_argnames`, unchanged. Python that depends
    on traced values raises StagingError. A function that contains a derivative runs twice. If the results differ,
    `program.nan_safe` is the variant with structural zeros, whose outputs replace NaN.

    Example:
        >>> import numpy as np, func
        >>> print(func.make_program(lambda x: np.sum(np.sin(x) * 2))(np.ones(3)))
        program(a:f64[3]) {
          b:f64[3] = sin a
          c:f64[3] = multiply b 2
          d:f64[] = sum[axes=(0,)] c
          return d
        }
    """
    check_no_value(static_argnums, "static_argnums", "make_program", f)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    for number in static:
        if not isinstance(number, (int, np.integer)):
            raise TypeError(
                f"func.make_program: static_argnums must be an int or a tuple of ints, got {static_argnums!r}"
            )
    named = StaticArguments(f, [number for number in static if number >= 0], static_argnames)

    def build(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        numbers = (*static, *[number for number in named.numbers if number < len(args) and number not in static])
        fixed = {name: kwargs[name] for name in named.names if name in kwargs}
        if not fixed:
            return stage_with_variant(f, args, kwargs, numbers, "make_program")[0]

        @functools.wraps(f)
        def with_static(*args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs, **fixed)

        traced = {name: value for name, value in kwargs.items() if name not in fixed}
        return stage_with_variant(with_static, args, traced, numbers, "make_program")[0]

    return build


def stage_with_variant(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: tuple[int, ...],
    transform: str,
) -> tuple[Program, Any]:
    """(Program with its NaN-safe variant, structure of the output) of one call with abstract arguments."""
    program, out_spec, has_pullbacks = _traced_program(function, args, kwargs, static, transform)
    if has_pullbacks:
        with structural_zeros():
            variant = _traced_program(function, args, kwargs, static, transform)[0]
        program.nan_safe = None if variant == program else variant
    return program, out_spec


def stage_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: tuple[int, ...],
    transform: str,
) -> tuple[Program, Any]:
    """(Program, structure of the output) of one call with abstract arguments."""
    return _traced_program(function, args, kwargs, static, transform)[:2]


def _traced_program(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: tuple[int, ...],
    transform: str,
) -> tuple[Program, Any, bool]:
    """(Program, structure of the output, whether a pullback is inside) of one call with abstract arguments."""
    for number in static:
        if not -len(args) <= number < len(args):
            raise ArgumentError(
                f"func.{transform}: static_argnums={static} is out of range, {name_of(function)} was called with "
                f"{len(args)} positional arguments"
            )
    fixed = {number % len(args) for number in static}
    traced_args = [arg for i, arg in enumerate(args) if i not in fixed]
    leaves, spec = tree.flatten((traced_args, kwargs))
    paths = argument_paths(function, traced_args, kwargs, fixed)
    stage = Stage(transform)
    watched = contextlib.nullcontext() if transform == "eval_shape" else noticing_random_numbers(function, transform)
    with watched, TransformScope(stage, staging=transform != "eval_shape"), running(stage):
        avals = [
            leaf if isinstance(leaf, Aval) else aval_of(traced_leaf(leaf, path, transform))
            for leaf, path in zip(leaves, paths, strict=True)
        ]
        inputs = [stage.variable(aval) for aval in avals]
        variables = [tracer._attached for tracer in inputs]
        stage.arguments, stage.names_of_arguments = variables, lambda: paths
        set_argument_layouts(inputs, leaves)
        note_traced_arguments(stage, function, inputs, leaves)
        traced_values, keywords = tree.unflatten(spec, inputs)
        remaining = iter(traced_values)
        full = [arg if i in fixed else next(remaining) for i, arg in enumerate(args)]
        outs, out_spec = output_leaves(function(*full, **keywords), transform)
        program = stage.program(variables, outs)
    return program, out_spec, stage.has_pullbacks


@without_engine_frames
def eval_shape(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The tree of Avals (shape and dtype) that a function would return, without computing it.

    Arguments may be arrays or Avals.

    Example:
        >>> import numpy as np, func
        >>> func.eval_shape(np.outer, np.ones(2), np.ones(3))
        f64[2,3]
    """
    check_callable(f, "eval_shape")
    program, spec = stage_call(f, args, kwargs, (), "eval_shape")
    return tree.unflatten(spec, [out.aval if hasattr(out, "aval") else aval_of(out) for out in program.outputs])
