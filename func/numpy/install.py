"""Gives traced arrays their array interface: operators, methods, protocols."""

from __future__ import annotations

from typing import Any

from func.interpreters.core import Tracer
from func.interpreters.core.wiring import WIRING
from func.numpy import conversions
from func.numpy.inplace import write_into
from func.numpy.operators import operator_table
from func.numpy.protocol import function_protocol, no_array, ufunc_protocol


def install(methods: dict[str, Any]) -> None:
    """Set the interface on the Tracer class; called once, when func is imported."""
    table: dict[str, Any] = {
        **operator_table(),
        "__array_ufunc__": ufunc_protocol,
        "__array_function__": function_protocol,
        "__array__": no_array,
        "__array_priority__": 1000,
        "__bool__": conversions.to_bool,
        "__int__": conversions.to_int,
        "__index__": conversions.to_index,
        "__float__": conversions.to_float,
        "__complex__": conversions.to_complex,
        "__hash__": None,
        "__getattr__": conversions.no_attribute,
        "item": conversions.item,
        "tolist": conversions.tolist,
        **methods,
    }
    for name, value in table.items():
        setattr(Tracer, name, value)
    WIRING.write_into = write_into


def extend(attributes: dict[str, Any]) -> None:
    """Give traced arrays further attributes: those of the imperative interface."""
    for name, value in attributes.items():
        setattr(Tracer, name, value)
