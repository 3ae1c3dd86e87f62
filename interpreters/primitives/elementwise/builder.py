"""Partial derivatives of elementwise rows as rules: what they need of the saved values, and how they are evaluated.

The builder of elementwise rows: only partial derivatives are new, everything else is derived here.

A partial names what it needs among the arguments `x`, `y`, `z` and the output `out`; that is what the tape keeps.
A name alone stands for that value itself, a number for a constant partial, None for no derivative.
Elementwise rows broadcast as NumPy does; the pullback undoes that in one place, `fit_cotangent`.
Partials are those of holomorphic functions, so the pullback multiplies by their conjugate (DESIGN: adjoints).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard, Unpack

import numpy as np

from func.backends import HOST_TYPES
from func.backends.shapes import broadcast_shape
from func.backends.support import arrays
from func.interpreters.core import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Aval,
    Facts,
    Linear,
    NonDifferentiable,
    Params,
    Primitive,
    Shaped,
    Tracer,
    add_tangents,
    bind,
    dtype_of,
    evaluate,
    is_inexact,
    linear,
    shape_of,
    snapshot,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.wiring import WIRING
from func.interpreters.primitives.elementwise.fast_pullbacks import PlainBinary, PlainUnary
from func.interpreters.primitives.structural.shapes import align_ranks, broadcast, convert, fit_cotangent

Rule: TypeAlias = Callable[..., Array] | str | int | None
"""A function of what it names, the name of a saved value, a constant, or None for no derivative."""
_NAMES = ("x", "y", "z")


class Partial:
    """One partial derivative: how to compute it from the saved (x, y, z, out), and which of those it needs."""

    __slots__ = ("constant", "evaluate", "fast", "needs", "rule")
    evaluate: Callable[[Any], Array]
    fast: Callable[[Any], Array]

    def __init__(self, rule: Callable[..., Array] | str | int, arity: int) -> None:
        places = {name: i for i, name in enumerate(_NAMES[:arity])} | {"out": arity}
        self.rule: Any = rule
        self.constant = rule if isinstance(rule, int) else None
        names = [rule] if isinstance(rule, str) else list(inspect.signature(rule).parameters) if callable(rule) else []
        self.needs = tuple([places[name] for name in names])
        if isinstance(rule, str):
            self.evaluate = self.fast = operator.itemgetter(self.needs[0])
        elif callable(rule):
            self.evaluate = _from_saved(rule, self.needs)
            self.fast = self._compile_first

    def _compile_first(self, saved: Any) -> Array:
        """On first use on plain arrays the rule is compiled to a NumPy expression."""
        self.fast = WIRING.compile_partial(self)
        return self.fast(saved)


def _from_saved(rule: Callable[..., Array], needs: tuple[int, ...]) -> Callable[[Any], Array]:
    """A rule that takes what it needs from the saved values."""
    if len(needs) == 1:
        (place,) = needs
        return lambda saved: rule(saved[place])
    return lambda saved: rule(*[saved[place] for place in needs])


HOST_ARRAYS = HOST_TYPES - PYTHON_SCALARS
"""What NumPy computes on without giving up Python scalars: arrays and NumPy scalars."""
_ARRAY = np.ndarray
_REAL = (np.dtype(np.float64), np.dtype(np.float32))


class Elementwise(Primitive):
    """A row that computes each output element from the input elements at its place."""

    __slots__ = ("_dtypes", "arity", "keeps", "nan_safe", "partials", "weak")
    partials: tuple[Partial | None, ...]

    def __init__(
        self,
        name: str,
        partials: Sequence[Rule],
        impl: Callable[..., Any],
        numpy: Callable[..., Any],
        nan_safe: bool,
        weak: bool,
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(name, impl, aval=self._elementwise_aval, batch=self._align, **facts)
        self.arity = len(partials)
        self.numpy = numpy
        self.nan_safe = nan_safe
        self.weak = weak
        self.partials = tuple([None if rule is None else Partial(rule, self.arity) for rule in partials])
        self.keeps = tuple([self._kept_for(mask) for mask in range(1 << self.arity)])
        self._dtypes: dict[Any, np.dtype[Any]] = {}
        self.finish()

    def finish(self) -> None:
        """What a kind with a fixed number of arguments works out once."""

    def _kept_for(self, mask: int) -> tuple[bool, ...]:
        """Which of (x, y, ..., out) the pullback needs when the arguments in the bit mask are active."""
        needed: set[int] = set()
        for i, partial in enumerate(self.partials):
            if mask >> i & 1 and partial is not None:
                needed.update(partial.needs)
        return tuple([place in needed for place in range(self.arity + 1)])

    def _elementwise_aval(self, *avals: Aval) -> Aval:
        shape = broadcast_shape([aval.shape for aval in avals])
        weak = self.weak and all([aval.weak for aval in avals])
        return Aval(shape, self._result_dtype(avals), weak)

    def _result_dtype(self, avals: Sequence[Aval]) -> np.dtype[Any]:
        key = tuple([(aval.dtype, aval.weak) for aval in avals])
        dtype = self._dtypes.get(key)
        if dtype is None:
            probes = [one.item() if weak else one for one, weak in ((d.type(1), w) for d, w in key)]
            with np.errstate(all="ignore"):
                dtype = np.asarray(self.impl(np, *probes)).dtype
            self._dtypes[key] = dtype
        return dtype

    def _align(self, size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return self(*align_ranks(size, batched, args))

    def compute(self, args: tuple[Array, ...]) -> Array:
        """Run on concrete arrays; arithmetic on nothing but Python scalars gives a Python scalar, as in Python."""
        out = evaluate(self, args, {})
        if self.weak and all([type(arg) in PYTHON_SCALARS for arg in args]):
            return out.item()
        return out

    def __call__(self, *args: Array, **params: Any) -> Any:
        for arg in args:
            if type(arg) is Tracer:
                return bind(self, args, params)
        return self.compute(args)

    def tangent_factor(self, place: int, saved: Sequence[Array], direction: Array, adjoint: bool) -> Array:
        """partial · direction, by the conjugate partial for an adjoint; zero wins in guarded rows."""
        partial = self.partials[place]
        assert partial is not None
        if partial.constant is not None:
            return direction if partial.constant == 1 else negative(direction)
        return self.scaled(partial.evaluate(saved), direction, adjoint)

    def scaled(self, factor: Array, direction: Array, adjoint: bool) -> Array:
        """factor · direction, by the conjugate factor for an adjoint; zero wins in guarded rows."""
        if adjoint and dtype_of(factor).kind == "c":
            factor = conjugate(factor)
        return nan_safe_multiply(factor, direction) if self.nan_safe else multiply(factor, direction)

    def grow(self, partial: Partial, saved: Sequence[Array], ct: Array, parent: Shaped) -> Array:
        """The cotangent of one argument: real arrays are multiplied at once, everything else by the rows."""
        if partial.constant is None:
            factor = partial.fast(saved) if type(ct) is _ARRAY else partial.evaluate(saved)
            if type(factor) is _ARRAY and type(ct) is _ARRAY and factor.dtype in _REAL and not self.nan_safe:
                contribution = factor * ct
            else:
                contribution = self.scaled(factor, ct, True)
        else:
            contribution = ct if partial.constant == 1 else negative(ct)
        if contribution.dtype is not parent.dtype or contribution.shape != parent.shape:
            return fit_cotangent(contribution, parent)
        return contribution

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = self(*primals)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return ZERO
        saved = (*primals, out)
        total: Any = ZERO
        with np.errstate(all="ignore"):
            for place, tangent in enumerate(tangents):
                if tangent is not ZERO and self.partials[place] is not None:
                    total = add_tangents(total, self.tangent_factor(place, saved, tangent, False))
        if total is ZERO:
            return ZERO
        if dtype_of(total) != dtype:
            total = convert(total, dtype=dtype)
        shape = shape_of(out)
        return total if shape_of(total) == shape else broadcast(total, shape=shape)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = self(*values)
        mask = 0
        for i, parent in enumerate(parents):
            if parent is not None and self.partials[i] is not None:
                mask |= 1 << i
        if mask == 0:
            return out, None, None
        keeps = self.keeps[mask]
        saved = [
            (value if parents[i] is not None else snapshot(value)) if keeps[i] else None
            for i, value in enumerate(values)
        ]
        saved.append(out if keeps[-1] else None)
        return out, self, saved

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        return [
            ZERO if parent is None or partial is None else self.grow(partial, saved, ct, parent)
            for partial, parent in zip(self.partials, parents, strict=True)
        ]

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """What was saved, by traced values: lift(place, value) of an argument, lift(None, value) of the output."""
        return [lift(place if place < self.arity else None, value) for place, value in enumerate(saved)]

    def pull_nan_safe(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        contribution: list[Any] = []
        for partial, parent in zip(self.partials, parents, strict=True):
            if parent is None or partial is None:
                contribution.append(ZERO)
            elif partial.constant is not None:
                contribution.append(fit_cotangent(ct if partial.constant == 1 else negative(ct), parent))
            else:
                factor = partial.evaluate(saved)
                factor = conjugate(factor) if dtype_of(factor).kind == "c" else factor
                contribution.append(fit_cotangent(nan_safe_multiply(factor, ct), parent))
        return contribution

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        for place, (partial, parent) in enumerate(zip(self.partials, parents, strict=True)):
            if parent is None or partial is None:
                continue
            if any([need == self.arity or parents[need] is not None for need in partial.needs]):
                raise NotDifferentiableError(f"{self.name} is not linear in argument {place} and cannot be transposed")
        return self.pull(ct, parents, (*known, None), params)


class Unary(Elementwise):
    """An elementwise row of one argument."""

    __slots__ = ("keeps_out", "keeps_x", "plain")

    def finish(self) -> None:
        self.keeps_x, self.keeps_out = self.keeps[1]
        self.plain: Any = self if self.nan_safe else PlainUnary(self)

    def __call__(self, x: Array, **params: Any) -> Any:
        if type(x) is Tracer:
            return x.interpreter.apply1(self, x)
        if type(x) in HOST_ARRAYS:
            return self.numpy(x)  # type: ignore[misc]
        return self.compute((x,))


class Binary(Elementwise):
    """An elementwise row of two arguments."""

    __slots__ = ("plain",)

    def finish(self) -> None:
        self.plain: Any = self if self.nan_safe or None in self.partials else PlainBinary(self)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        x, y = parents
        to_x, to_y = self.partials
        grown_x = ZERO if x is None or to_x is None else self.grow(to_x, saved, ct, x)
        return grown_x, ZERO if y is None or to_y is None else self.grow(to_y, saved, ct, y)

    def __call__(self, x: Array, y: Array, **params: Any) -> Any:
        if type(x) is Tracer:
            if type(y) is Tracer and y.interpreter.level > x.interpreter.level:
                return y.interpreter.apply2(self, x, y)
            return x.interpreter.apply2(self, x, y)
        if type(y) is Tracer:
            return y.interpreter.apply2(self, x, y)
        if (type(x) in HOST_ARRAYS and type(y) in HOST_TYPES) or (type(y) in HOST_ARRAYS and type(x) in HOST_TYPES):
            return self.numpy(x, y)  # type: ignore[misc]
        return self.compute((x, y))


def elementwise(
    name: str,
    *partials: Rule,
    ufunc: str | None = None,
    impl: Callable[..., Any] | None = None,
    nan_safe: bool = False,
    weak: bool = False,
    **facts: Unpack[Facts],
) -> Elementwise:
    """An elementwise row. `nan_safe`: a partial can be infinite, so zero times it is zero. `weak`: arithmetic."""
    attribute = ufunc or name
    kind = {1: Unary, 2: Binary}.get(len(partials), Elementwise)
    facts.setdefault("cost", 1)
    return kind(name, partials, *implementations(attribute, impl), nan_safe, weak, **facts)


def implementations(attribute: str, impl: Callable[..., Any] | None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(impl taking the namespace, NumPy's own function) of a row that is one function of the namespace."""
    if impl is not None:

        def on_numpy(*args: Array) -> Array:
            return impl(np, *args)

        return impl, on_numpy

    def namespace_impl(xp: Any, *args: Array) -> Array:
        return getattr(xp, attribute)(*args)

    return namespace_impl, getattr(np, attribute)


class ElementwiseConstant(NonDifferentiable):
    """An elementwise row without a derivative."""

    __slots__ = ("_probe", "weak")
    _probe: Elementwise
    weak: bool

    def __call__(self, *args: Array, **params: Any) -> Any:
        for arg in args:
            if type(arg) is Tracer:
                return bind(self, args, params)
        return self.compute(args)

    def compute(self, args: tuple[Array, ...]) -> Array:
        """Run on concrete arrays; arithmetic on nothing but Python scalars gives a Python scalar, as in Python."""
        out = evaluate(self, args, {})
        if self.weak and all([type(arg) in PYTHON_SCALARS for arg in args]):
            return out.item()
        return out


def elementwise_constant(
    name: str,
    arity: int,
    *,
    ufunc: str | None = None,
    impl: Callable[..., Any] | None = None,
    weak: bool = False,
    **facts: Unpack[Facts],
) -> ElementwiseConstant:
    """An elementwise row whose output carries no derivative (comparisons, rounding, bits). `weak`: arithmetic."""
    namespace_impl, numpy = implementations(ufunc or name, impl)

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(*align_ranks(size, batched, args))

    dtypes: dict[Any, np.dtype[Any]] = {}

    def aval(*avals: Aval) -> Aval:
        key = tuple([(a.dtype, a.weak) for a in avals])
        if key not in dtypes:
            probes = [one.item() if weak else one for one, weak in ((d.type(1), w) for d, w in key)]
            with np.errstate(all="ignore"):
                dtypes[key] = np.asarray(namespace_impl(np, *probes)).dtype
        is_weak = weak and all([a.weak for a in avals])
        return Aval(broadcast_shape([a.shape for a in avals]), dtypes[key], is_weak)

    facts.setdefault("cost", 1)
    primitive = ElementwiseConstant(name, namespace_impl, aval=aval, batch=batch, differentiable=False, **facts)
    primitive.numpy = numpy
    primitive.weak = weak
    return primitive


# ---------------------------------------------------------------------------------------------------------------
# The three rows that the builder itself is made of


multiply: Elementwise = elementwise("multiply", "y", "x", weak=True, commutative=True)
negative: Elementwise = elementwise("negative", -1, weak=True)
conjugate: Linear = linear(
    "conjugate",
    lambda xp, x: xp.conjugate(x),
    aval=lambda x: x,
    transpose=lambda ct, x: (conjugate(ct),),
    batch=lambda x: conjugate(x),
    cost=1,
)
"""Linear over the reals, and its own adjoint."""


class NanSafeMultiply(Binary):
    """x · y where y is a tangent or cotangent: exactly zero wherever y is, also where x is infinite or NaN.

    So are its derivatives: in x it is y times the direction, which is zero wherever y is, whatever the direction.
    """

    __slots__ = ()

    def tangent_factor(self, place: int, saved: Sequence[Array], direction: Array, adjoint: bool) -> Array:
        factor = saved[1 - place]
        if adjoint and dtype_of(factor).kind == "c":
            factor = conjugate(factor)
        return nan_safe_multiply(factor, direction) if place == 1 else nan_safe_multiply(direction, factor)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        return [
            ZERO if parent is None else fit_cotangent(self.tangent_factor(place, saved, ct, True), parent)
            for place, parent in enumerate(parents)
        ]

    pull_nan_safe = pull


def is_numpy_ufunc(function: Any) -> TypeGuard[np.ufunc]:
    """True for ufuncs that NumPy has under their own name."""
    return isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function


nan_safe_multiply = NanSafeMultiply(
    "nan_safe_multiply",
    ("y", "x"),
    *implementations("nan_safe_multiply", arrays.nan_safe_multiply),
    True,
    False,
    cost=1,
)
add: Elementwise = elementwise("add", 1, 1, weak=True, commutative=True)

WIRING.add = add
