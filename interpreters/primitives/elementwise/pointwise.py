"""Pointwise primitives: values, avals and batches of NumPy's ufuncs, independent of the derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, Unpack

import numpy as np

from func.backends import HOST_TYPES, blocks
from func.backends.array_helpers.arrays import broadcast_shape
from func.backends.array_helpers.strides import iterated_order
from func.backends.quiet import quietly
from func.interpreters.core import (
    PYTHON_SCALARS,
    Array,
    Aval,
    Facts,
    NonDifferentiable,
    Params,
    Primitive,
    Tracer,
    bind,
    evaluate,
    operand,
)
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.swallowed_errors import hide_outside
from func.interpreters.primitives.structural.shapes import align_ranks

HOST_ARRAYS = HOST_TYPES - PYTHON_SCALARS
"""Types on which NumPy computes without giving up Python scalars: arrays and NumPy scalars."""

_MOST_AVALS = 256
"""Avals of outputs that a primitive remembers: those of a long program are few."""


class Pointwise(Primitive):
    """A primitive that computes each output element from the input elements at its place. `weak`: it is arithmetic,
    whose result for nothing but Python scalars is a Python scalar."""

    __slots__ = ("_avals", "_dtypes", "arity", "weak")

    def __init__(
        self, name: str, arity: int, ufunc: str, impl: Callable[..., Any] | None, weak: bool, **options: Any
    ) -> None:
        impl, numpy = _implementations(ufunc, impl)
        super().__init__(
            name, impl, aval=self._pointwise_aval, batch=self._batch_aligned, layout=iterated_order, **options
        )
        self.arity = arity
        self.numpy = numpy
        self.weak = weak
        self._dtypes: dict[Any, np.dtype[Any]] = {}
        self._avals: dict[Any, Aval] = {}

    def _pointwise_aval(self, *avals: Aval) -> Aval:
        key = tuple([(aval.shape, aval.dtype, aval.weak) for aval in avals])
        known = self._avals.get(key)
        if known is not None:
            return known
        if len(self._avals) >= _MOST_AVALS:
            self._avals.clear()
        known = self._avals[key] = self._new_aval(avals)
        return known

    def _new_aval(self, avals: Sequence[Aval]) -> Aval:
        shape = broadcast_shape([aval.shape for aval in avals])
        weak = self.weak and all([aval.weak for aval in avals])
        return Aval(shape, self._result_dtype(avals), weak)

    def _result_dtype(self, avals: Sequence[Aval]) -> np.dtype[Any]:
        """The dtype that NumPy gives for arguments of these, found by computing on ones."""
        key = tuple([(aval.dtype, aval.weak) for aval in avals])
        dtype = self._dtypes.get(key)
        if dtype is None:
            probes = [dtype.type(1).item() if weak else dtype.type(1) for dtype, weak in key]
            dtype = self._dtypes[key] = np.asarray(quietly(self.impl, np, *probes)).dtype
        return dtype

    def keeps_dtypes(self, *dtypes: Any) -> None:
        """State that arguments of one of these dtypes give a result of it, so that nothing is computed on ones."""
        for dtype in map(np.dtype, dtypes):
            self._dtypes[((dtype, False),) * self.arity] = dtype

    def _batch_aligned(self, size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return self(*align_ranks(size, batched, args))

    def compute(self, args: tuple[Array, ...]) -> Array:
        """Run on values that are not traced; arithmetic on Python scalars alone gives a Python scalar, as in Python.

        Lists become arrays first, traced ones if they contain a traced value.
        """
        for arg in args:
            if isinstance(arg, (list, tuple)):
                return self(*[operand(x) for x in args])
        out = evaluate(self, args, {})
        if self.weak and all([type(arg) in PYTHON_SCALARS for arg in args]):
            return out.item()
        return out

    def __call__(self, *args: Array, **keywords: Any) -> Any:
        try:
            if keywords or len(args) != self.arity:
                return call_numpy(self.ufunc, args, keywords)
            for arg in args:
                if type(arg) is Tracer:
                    return bind(self, tuple([x if type(x) is Tracer else operand(x) for x in args]), {})
            return self.compute(args)
        except Exception as error:
            hide_outside(error)
            raise

    def on_large(self, *args: Array) -> Array:
        """Run on plain arrays of which one is large: by several threads where NumPy has one function for it."""
        function = self.numpy
        if type(function) is not np.ufunc or not isinstance(self.cost, (int, float)):
            return function(*args)  # type: ignore[misc]
        return blocks.elementwise(function, args, self.cost)

    @property
    def reduce(self) -> Callable[..., Any]:
        """The method of NumPy's ufunc, as are those below."""
        return self.ufunc.reduce  # type: ignore[union-attr]

    @property
    def accumulate(self) -> Callable[..., Any]:
        return self.ufunc.accumulate  # type: ignore[union-attr]

    @property
    def reduceat(self) -> Callable[..., Any]:
        return self.ufunc.reduceat  # type: ignore[union-attr]

    @property
    def outer(self) -> Callable[..., Any]:
        return self.ufunc.outer  # type: ignore[union-attr]

    @property
    def at(self) -> Callable[..., Any]:
        return self.ufunc.at  # type: ignore[union-attr]


class ElementwiseConstant(Pointwise, NonDifferentiable):
    """A pointwise primitive without a derivative."""

    __slots__ = ()


def _implementations(ufunc: str, impl: Callable[..., Any] | None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(impl taking the namespace, function of host arrays); without an impl, the namespace's function of that name."""
    if impl is not None:

        def on_numpy(*args: Array) -> Array:
            return impl(np, *args)

        return impl, on_numpy

    def namespace_impl(xp: Any, *args: Array) -> Array:
        return getattr(xp, ufunc)(*args)

    return namespace_impl, getattr(np, ufunc)


def elementwise_constant(
    name: str,
    arity: int,
    *,
    ufunc: str | None = None,
    impl: Callable[..., Any] | None = None,
    weak: bool = False,
    **facts: Unpack[Facts],
) -> ElementwiseConstant:
    """An elementwise primitive without a derivative (comparisons, rounding, bits). `weak`: arithmetic."""
    facts.setdefault("cost", 1)
    return ElementwiseConstant(name, arity, ufunc or name, impl, weak, differentiable=False, **facts)


def call_numpy(ufunc: np.ufunc | None, args: Sequence[Any], keywords: Params) -> Any:
    """NumPy's ufunc, for calls with keywords: it checks them, and dispatches to traced operands."""
    if ufunc is None:
        raise TypeError(f"unexpected keyword arguments {sorted(keywords)}")
    return ufunc(*[WIRING.array_from_sequence(x) if type(x) in (list, tuple) else x for x in args], **keywords)


def is_numpy_ufunc(function: Any) -> TypeGuard[np.ufunc]:
    """True for ufuncs that NumPy has under their own name."""
    return isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function
