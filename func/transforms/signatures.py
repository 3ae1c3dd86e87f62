"""Static types of transforms: results have the parameters of the function, so that editors complete them.

The source of a transform is a function of `func=None` and its options. The decorators of this module do nothing at run
time. They tell type checkers the result of `transform(f, **options)`, and that `transform(**options)` is a decorator.
NumPy's ufuncs, whose types have a parameter list for every kind of argument, become functions of anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

P = ParamSpec("P")
"""The parameters of the function."""
Options = ParamSpec("Options")
R = TypeVar("R")
"""The result of the function."""
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

FunctionOf = Callable[Concatenate[Callable[..., Any] | None, Options], Callable[..., T]]
"""The source form of a transform."""


class TransformedFunction(Generic[P, T_co]):
    """The result of a transform, as type checkers see it: a function, or method, of given parameters."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> TransformedFunction[P, T_co]: ...
    @overload
    def __get__(
        self: TransformedFunction[Concatenate[Any, Options], T_co], instance: object, owner: type | None = None
    ) -> TransformedFunction[Options, T_co]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...


class KeepsParameters(Protocol[Options, T_co]):
    """f(...) becomes a function of the same parameters with a result of another type."""

    @overload
    def __call__(
        self, f: np.ufunc, *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[..., T_co]: ...
    @overload
    def __call__(
        self, f: Callable[P, Any], *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[P, T_co]: ...
    @overload
    def __call__(self, f: None = None, *args: Options.args, **kwargs: Options.kwargs) -> KeepsParameters[..., T_co]: ...


class KeepsSignature(Protocol[Options]):
    """f(...) becomes a function of the same parameters with the same result."""

    @overload
    def __call__(self, f: np.ufunc, *args: Options.args, **kwargs: Options.kwargs) -> TransformedFunction[..., Any]: ...
    @overload
    def __call__(
        self, f: Callable[P, R], *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[P, R]: ...
    @overload
    def __call__(self, f: None = None, *args: Options.args, **kwargs: Options.kwargs) -> KeepsSignature[...]: ...


class ValueFirst(Protocol[Options]):
    """f(...) becomes a function of the same parameters that returns (the result of f, a derivative)."""

    @overload
    def __call__(
        self, f: np.ufunc, *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[..., tuple[Any, Any]]: ...
    @overload
    def __call__(
        self, f: Callable[P, R], *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[P, tuple[R, Any]]: ...
    @overload
    def __call__(self, f: None = None, *args: Options.args, **kwargs: Options.kwargs) -> ValueFirst[...]: ...


class ValueLast(Protocol[Options]):
    """f(...) becomes a function of the same parameters that returns (a derivative, the result of f)."""

    @overload
    def __call__(
        self, f: np.ufunc, *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[..., tuple[Any, Any]]: ...
    @overload
    def __call__(
        self, f: Callable[P, R], *args: Options.args, **kwargs: Options.kwargs
    ) -> TransformedFunction[P, tuple[Any, R]]: ...
    @overload
    def __call__(self, f: None = None, *args: Options.args, **kwargs: Options.kwargs) -> ValueLast[...]: ...
