"""Functions that SciPy computes on plain numbers, and their derivatives by other such functions.

An integrand or the right-hand side of an equation is Python code that SciPy calls with numbers, whenever it likes.
`Parameters` collects the traced values that the code reaches through arguments, closures and attributes. It packs them
into one real vector p: real and imaginary parts, one leaf after another. SciPy computes with their numbers, eagerly or
when compiled code runs. An integral or a solution that depends smoothly on p has a derivative of the same kind: the
integral of the derivative, for example. The same code computes it, and orders nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import func as _func
from func import tree
from func.backends.records import Record
from func.interpreters.calls.callback import pure_callback
from func.interpreters.control.compiled_bodies import is_abstract
from func.interpreters.core import Array, Aval, Tracer, concrete, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.stage import Stage
from func.interpreters.vmap import Vmap
from func.transforms.closures import Closure

FLOAT = np.dtype(float)


class Parameters:
    """The traced values that some functions and other objects contain, as one real vector and the rest.

    `vector` holds real and imaginary parts of the inexact ones, `rest` the others (integers, bools).
    """

    def __init__(self, objects: Any) -> None:
        self._closure = Closure(_Holder(objects))
        self._leaves = [(shape_of(value), dtype_of(value)) for value in self._closure.values]

    @property
    def is_traced(self) -> bool:
        """Whether there are any traced values."""
        return bool(self._leaves)

    def vector(self) -> Array:
        """The inexact traced values."""
        return pack(self._closure.values)

    def rest(self) -> list[Array]:
        """The traced values that have no derivative."""
        return [value for value in self._closure.values if not is_inexact(dtype_of(value))]

    def rebuilt(self, vector: Array, rest: Sequence[Array] = ()) -> Any:
        """The objects with these values instead of the traced ones."""
        return self._closure.rebuilt(unpack(vector, self._leaves, rest))()


class _Holder:
    """A function without arguments that returns some objects; `Closure` looks into it."""

    def __new__(cls, objects: Any) -> Any:
        return lambda: objects


def pack(values: Sequence[Array]) -> Array:
    """Real and imaginary parts of inexact values, as one real vector."""
    parts: list[Array] = []
    for value in values:
        kind = dtype_of(value).kind
        if kind == "c":
            parts += [np.ravel(np.real(value)), np.ravel(np.imag(value))]
        elif kind == "f":
            parts.append(np.ravel(value))
    return np.concatenate([np.zeros(0), *parts])


def unpack(vector: Array, leaves: Sequence[tuple[tuple[int, ...], Any]], rest: Sequence[Array] = ()) -> list[Array]:
    """The values of these shapes and dtypes that `pack` took, with others between them."""
    values, start, remaining = [], 0, iter(rest)
    for shape, dtype in leaves:
        if dtype.kind not in "fc":
            values.append(next(remaining))
            continue
        size = int(np.prod(shape))

        def part(start: int, shape: tuple[int, ...] = shape, size: int = size) -> Array:
            return vector[start] if shape == () else np.reshape(vector[start : start + size], shape)

        value = part(start)
        start += size
        if dtype.kind == "c":
            value = value + 1j * part(start)
            start += size
        values.append(value if dtype_of(value) == dtype else value.astype(dtype))
    return values


def is_plain(value: Any) -> bool:
    """Whether no part of a result is traced."""
    return not any([type(leaf) is Tracer for leaf in tree.leaves(value)])


def check_plain(value: Any, name: str) -> Any:
    """The result of a callback on plain numbers; raises an error if it is traced."""
    if not is_plain(value):
        raise UnsupportedFunctionError(
            f"a function that {name} calls uses a traced value that func does not find{at_line()}\n"
            "Pass the value to the function through args, or by a closure."
        )
    return value


class Quickened:
    """A function of numbers to differentiate; compiled if it is called often and the compilation succeeds.

    Code that decides by numbers cannot be compiled; it runs unchanged.
    """

    ENOUGH = 60

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls == self.ENOUGH:
            compiled = _func.jit(self.function)
            try:
                expected, got = self.function(*args), compiled(*args)
            except Exception:
                return self.function(*args)
            if np.allclose(expected, got, rtol=1e-9, atol=1e-12, equal_nan=True):
                self.function = compiled
            return expected
        return self.function(*args)


class Integrand(Record):
    """A real vector function of (x, p, *rest), after `order` derivatives in p."""

    call: Callable[..., Array]
    size: int
    order: int = 0
    quickened: Quickened | None = None

    def quick(self, *args: Any) -> Array:
        """The value on plain numbers; expects many calls."""
        if self.quickened is None:
            self.quickened = Quickened(self.call)
        return self.quickened(*args)

    def derivative(self, count: int) -> Integrand:
        """The Jacobian with respect to the `count` parameters, as a vector."""
        # Reverse mode is for one output of many inputs; the Jacobian of a gradient is cheaper forward.
        jacobian = _func.jacrev if self.size < count and self.order == 0 else _func.jacfwd
        of_parameters = jacobian(self.call, argnums=1)

        def call(x: Any, p: Array, *rest: Array) -> Array:
            return np.reshape(of_parameters(x, p, *rest), (self.size * count,))

        return Integrand(call, self.size * count, self.order + 1)


class ArrayIntegrand(Integrand):
    """An integrand of many points at once, whose values are columns: of shape (size, points)."""

    call: Callable[..., Array]
    size: int
    order: int = 0

    def quick(self, *args: Any) -> Array:
        """The values on plain numbers."""
        return self.call(*args)

    def derivative(self, count: int) -> ArrayIntegrand:
        """The Jacobian with respect to the `count` parameters, in columns."""
        of_parameters = _func.jacfwd(self.call, argnums=1)

        def call(x: Any, p: Array, *rest: Array) -> Array:
            rates = np.moveaxis(of_parameters(x, p, *rest), -1, 1)
            return np.reshape(rates, (self.size * count, shape_of(rates)[-1]))

        return ArrayIntegrand(call, self.size * count, self.order + 1)


class Numbers(Record):
    """SciPy's computation on plain numbers: `size` real results and `others` more without a derivative."""

    compute: Callable[..., tuple[Any, Sequence[Any]]]
    size: int
    others: Sequence[Aval] = ()
    latest: tuple[Any, Any] | None = None

    def __call__(self, *args: Any) -> list[Any]:
        latest = self.latest
        if latest is not None and all([np.array_equal(x, y) for x, y in zip(latest[0], args, strict=True)]):
            return list(latest[1])
        values, others = self.compute(*args)
        outs = [values, *others]
        self.latest = [np.array(arg) for arg in args], outs
        return list(outs)

    def on(self, *args: Array) -> list[Array]:
        """The values, and the others, as arrays or traced values."""
        avals = (Aval((self.size,), FLOAT), *self.others)
        return list(pure_callback(*args, function=self, outs=avals, vmap_method="sequential"))


def known(value: Any) -> Any:
    """The plain array behind a value; None for a batch and in compiled code."""
    inner = value
    while type(inner) is Tracer:
        if isinstance(inner._interpreter, (Stage, Vmap)):
            return None
        inner = inner._value
    return inner


def numbers_of(value: Any) -> Any:
    """The plain array behind a value; None in compiled code. A batch is split where its elements differ."""
    return None if is_abstract(value) else concrete(value)
