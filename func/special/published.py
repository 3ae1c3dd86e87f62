"""The functions of scipy.special that are one primitive each, published by the primitives."""

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
    """A maker of functions of this number of arguments, which call another one with their operands."""
    names = [f"x{i}" for i in range(count)]
    text = _TEMPLATE.format(names=", ".join(names), operands=", ".join([f"operand({name})" for name in names]))
    variables: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), variables)
    maker: Callable[..., FunctionType] = variables["function"]
    return maker


def _function(name: str, public: PublicFunction) -> FunctionType:
    """A primitive as a function of this module. Calls only pass the operands to the primitive."""
    primitive, arguments = public.primitive, tuple(public.arguments)
    call: Callable[..., Any] = primitive
    convert: Callable[[Any], Any] = operand
    if primitive.multiple:
        call = functools.partial(_tuple_of, primitive)
    elif "order" in primitive.parameters:
        call, convert = functools.partial(primitive, order=0), in_first_loop
    template = _template(len(arguments))(call, convert)
    code = template.__code__.replace(co_varnames=arguments, co_name=name, co_qualname=name)
    function = FunctionType(code, globals(), name, None, template.__closure__)
    function.__doc__ = inspect.cleandoc(public.doc)
    function.__annotations__ = dict.fromkeys((*arguments, "return"), "Array")
    return function if isinstance(primitive, Pointwise) else implements_scipy(name)(function)


def _tuple_of(primitive: Any, *args: Array) -> tuple[Array, ...]:
    return tuple(primitive(*args))


for _module in MODULES:
    importlib.import_module(f"func.interpreters.primitives.special.{_module}")
globals().update({name: _function(name, public) for name, public in PUBLIC.items()})
__all__: list[str] = list(PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]
