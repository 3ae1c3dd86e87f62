"""The functions of scipy.special that are one primitive each: what primitives publish, as functions."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from func.interpreters.core import Array, operand
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.special.builders import PUBLIC, PublicFunction
from func.special.protocol import implements_scipy, in_first_loop

MODULES = (
    *("bessel", "elliptic", "error_functions", "gamma", "incomplete", "integrals", "inverse_distributions", "logistic"),
    *("orthogonal", "waves"),
)
"""The modules of primitives that publish."""
_TEMPLATE = "function = lambda call, operand: lambda {names}: call({operands})"


@functools.cache
def _template(count: int) -> Callable[..., FunctionType]:
    """What makes a function of so many arguments, which calls another one with its operands."""
    names = [f"x{i}" for i in range(count)]
    text = _TEMPLATE.format(names=", ".join(names), operands=", ".join([f"operand({name})" for name in names]))
    variables: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), variables)
    made: Callable[..., FunctionType] = variables["function"]
    return made


def _function(name: str, public: PublicFunction) -> FunctionType:
    """A primitive as a function of this module. Calls of it pass the operands to the primitive, and no more."""
    primitive, arguments = public.primitive, tuple(public.arguments)
    call: Callable[..., Any] = primitive
    convert: Callable[[Any], Any] = operand
    if primitive.multiple:
        call = functools.partial(_tuple_of, primitive)
    elif "order" in primitive.parameters:
        call, convert = functools.partial(primitive, order=0), in_first_loop
    made = _template(len(arguments))(call, convert)
    code = made.__code__.replace(co_varnames=arguments, co_name=name, co_qualname=name)
    function = FunctionType(code, globals(), name, None, made.__closure__)
    function.__doc__ = inspect.cleandoc(public.doc)
    function.__annotations__ = dict.fromkeys((*arguments, "return"), "Array")
    return function if isinstance(primitive, Pointwise) else implements_scipy(name)(function)


def _tuple_of(primitive: Any, *args: Array) -> tuple[Array, ...]:
    return tuple(primitive(*args))


for _module in MODULES:
    importlib.import_module(f"func.interpreters.primitives.special.{_module}")
globals().update({name: _function(name, public) for name, public in PUBLIC.items()})
__all__: list[str] = list(PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]
