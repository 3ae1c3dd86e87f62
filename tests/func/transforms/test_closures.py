"""A function is rebuilt with other values in the place of the traced ones that it reaches by itself."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest

import func
from func.transforms.closures import Closure

IN_GLOBALS: Any = None


class Model:
    """An object with a traced attribute."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight

    def product(self, y: Any) -> Any:
        return self.weight * y

    def __call__(self, y: Any) -> Any:
        return self.product(y)


def in_cell(x: Any) -> Callable[[Any], Any]:
    return lambda y: x * y


def in_inner_cell(x: Any) -> Callable[[Any], Any]:
    inner = in_cell(x)
    return lambda y: inner(y)


def in_default(x: Any) -> Callable[[Any], Any]:
    def product(y: Any, x: Any = x) -> Any:
        return x * y

    return product


def in_keyword_default(x: Any) -> Callable[[Any], Any]:
    def product(y: Any, *, x: Any = x) -> Any:
        return x * y

    return product


def in_globals(x: Any) -> Callable[[Any], Any]:
    def product(y: Any) -> Any:
        return IN_GLOBALS * y

    return types.FunctionType(product.__code__, {"IN_GLOBALS": x, "__name__": __name__})


def in_containers(x: Any) -> Callable[[Any], Any]:
    held = {"parts": [x, 1.0]}
    return lambda y: held["parts"][0] * y


PLACES: list[Callable[[Any], Callable[[Any], Any]]] = [
    in_cell,
    in_inner_cell,
    in_default,
    in_keyword_default,
    in_globals,
    in_containers,
    lambda x: functools.partial(lambda x, y: x * y, x),
    lambda x: Model(x).product,
    Model,
]


@pytest.mark.parametrize("place", PLACES)
def test_rebuilt_functions_compute_with_other_values(place: Callable[[Any], Callable[[Any], Any]]) -> None:
    x = func.tensor(2.0, requires_grad=True)
    function = place(x)
    closure = Closure(function)
    assert [value is x for value in closure.values] == [True]
    assert float(closure.rebuilt([5.0])(3.0)) == 15.0
    assert function(3.0).item() == 6.0
