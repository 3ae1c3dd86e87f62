"""Calls of functions that compute on plain arrays only, as equations: code outside of func, such as SciPy's solvers.

They carry no derivative; functions with a custom rule stand around them. A batch is computed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends.records import Record
from func.interpreters.core import Array, Aval, NonDifferentiable, Params, nondifferentiable
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.core.parameters import FUNCTION


class HostFunction(Record):
    """A function of plain arrays, and what it returns: as many arrays as there are avals."""

    function: Callable[..., Sequence[Any]]
    out_avals: Sequence[Aval]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        arrays = [np.asarray(out, aval.dtype) for out, aval in zip(self.function(*args), self.out_avals, strict=True)]
        for array, aval in zip(arrays, self.out_avals, strict=True):
            if array.shape != aval.shape:
                raise UnsupportedFunctionError(
                    f"a function outside of func returned an array of shape {array.shape}, where {aval.shape} "
                    "was announced"
                )
        return tuple(arrays)


class _Mapped(Record):
    """A host function on arrays with a leading batch axis."""

    host: HostFunction
    size: int
    which: tuple[bool, ...]

    def __call__(self, *args: Any) -> list[Any]:
        def element(i: int) -> tuple[Any, ...]:
            return self.host(*[arg[i] if is_batched else arg for arg, is_batched in zip(args, self.which, strict=True)])

        columns = zip(*[element(i) for i in range(self.size)], strict=True)
        if self.size:
            return [np.stack(column) for column in columns]
        return [np.empty((0, *aval.shape), aval.dtype) for aval in self.host.out_avals]


def _host_call_impl(xp: Any, *args: Array, function: HostFunction) -> tuple[Any, ...]:
    return function(*args)


def _host_call_batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
    host: HostFunction = params["function"]
    avals = [Aval((size, *aval.shape), aval.dtype) for aval in host.out_avals]
    return host_call(*args, function=HostFunction(_Mapped(host, size, tuple(batched)), avals))


host_call: NonDifferentiable = nondifferentiable(
    "host_call",
    _host_call_impl,
    aval=lambda *avals, function: tuple(function.out_avals),
    parameters={"function": FUNCTION},
    batch=_host_call_batch,
    multiple=True,
    cost=0,
    calls_python=True,
)
"""function(*arrays), on plain arrays; `function` is a HostFunction."""
