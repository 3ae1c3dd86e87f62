"""The builder of elementwise primitives: only the partial derivatives are new, everything else is derived here.

A partial names what it needs among the arguments `x`, `y`, `z` and the output `out`; that is what a pullback saves.
A name alone is that value itself, a number a constant partial, None no derivative. A tuple is a product whose factors
scale a tangent one after the other, since the product itself may leave the range of numbers; a factor that names the
`direction` first returns the scaled one.
Elementwise primitives broadcast as NumPy does; the pullback undoes that in one place, `fit_cotangent`.
Partials are those of holomorphic functions, so the pullback multiplies by their conjugate.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeAlias, TypeGuard, Unpack

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES, blocks
from func.backends.blocks import LARGE
from func.backends.quiet import quietly
from func.backends.support import arrays
from func.backends.support.arrays import broadcast_shape
from func.backends.support.strides import iterated_order
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
    aval_of,
    bind,
    dtype_of,
    evaluate,
    is_inexact,
    kept,
    linear,
    operand,
    shape_of,
)
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.wiring import WIRING
from func.interpreters.host.refusals import hide_outside
from func.interpreters.primitives.structural.shapes import (
    align_ranks,
    broadcast,
    convert,
    fit_cotangent,
    full_like,
    where,
)

Factor: TypeAlias = Callable[..., Array] | str
"""A function of what it names, or the name of a saved value."""
Rule: TypeAlias = Factor | tuple[Factor, ...] | int | None
"""A factor, several of which the product is meant, a constant, or None for no derivative."""
_NAMES = ("x", "y", "z")
ULPS = 16
"""The error of a partial that is a normal number, in units of its last place, unless a row states another."""

HOST_ARRAYS = HOST_TYPES - PYTHON_SCALARS
"""What NumPy computes on without giving up Python scalars: arrays and NumPy scalars."""


class Partial:
    """One partial derivative: how to compute it from the saved (x, y, z, out), and which of those it needs."""

    __slots__ = ("constant", "evaluate", "factors", "maps", "needs", "rule")
    evaluate: Callable[[Any], Array]

    def __init__(self, rule: Factor | tuple[Factor, ...] | int, arity: int) -> None:
        places = {name: i for i, name in enumerate(_NAMES[:arity])} | {"out": arity}
        self.factors: tuple[Partial, ...] = ()
        """Those of a product."""
        if isinstance(rule, tuple):
            self.factors = tuple([Partial(factor, arity) for factor in rule])
            rule = _FactorProduct(self.factors, arity)
        self.rule: Any = rule
        self.constant = rule if isinstance(rule, int) else None
        names: Sequence[str] = ()
        if isinstance(rule, str):
            names = (rule,)
        elif callable(rule) and not self.factors:
            names = _parameters(rule)
        self.maps: Any = rule if tuple(names[:1]) == ("direction",) else None
        """A rule of the direction and what else it names."""
        if self.maps is not None:
            names, self.rule = names[1:], _at_one(self.maps)
        self.needs: tuple[int, ...] = tuple([places[name] for name in names])
        if isinstance(rule, _FactorProduct):
            self.needs = rule.needs
        if isinstance(rule, str):
            self.evaluate = operator.itemgetter(self.needs[0])
        elif callable(rule):
            self.evaluate = _of_saved(self.rule, self.needs)

    def scaled(self, saved: Sequence[Array], direction: Array, adjoint: bool, selects: int) -> Array:
        """partial · direction, by the conjugate partial for an adjoint."""
        if self.maps is not None:
            return self.adjoint(saved, direction) if adjoint else self.maps(direction, *[saved[i] for i in self.needs])
        for factor in self.factors:
            direction = factor.scaled(saved, direction, adjoint, selects)
        return direction if self.factors else scale(self.evaluate(saved), direction, adjoint, selects)

    def adjoint(self, saved: Sequence[Array], direction: Array) -> Array:
        """A direction scaled by the conjugate of a partial that maps directions."""
        return self.maps(direction, *[_conjugate(saved[need]) for need in self.needs])


def _conjugate(x: Array) -> Array:
    return conjugate(x) if dtype_of(x).kind == "c" else x


def _at_one(rule: Any) -> Callable[..., Array]:
    """The partial of a rule that maps directions."""
    return functools.partial(rule, 1)


class _FactorProduct:
    """The product of factors as one rule."""

    def __init__(self, factors: Sequence[Partial], arity: int) -> None:
        self.factors = factors
        self.needs: tuple[int, ...] = tuple(sorted({need for factor in factors for need in factor.needs}))
        self.arity = arity

    def __call__(self, *values: Array) -> Array:
        saved: list[Any] = [None] * (self.arity + 1)
        for need, value in zip(self.needs, values, strict=True):
            saved[need] = value
        first, *others = self.factors
        product = first.evaluate(saved)
        for factor in others:
            product = factor.scaled(saved, product, False, False)
        return product


def _parameters(rule: Callable[..., Array]) -> Sequence[str]:
    """The names of a rule's parameters. `inspect` takes twenty times as long, for every partial at the import."""
    if type(rule) is FunctionType and not hasattr(rule, "__wrapped__"):
        code = rule.__code__
        return code.co_varnames[: code.co_argcount]
    return list(inspect.signature(rule).parameters)


def _of_saved(rule: Callable[..., Array], needs: tuple[int, ...]) -> Callable[[Any], Array]:
    """A rule as a function of all saved values."""
    if len(needs) == 1:
        (place,) = needs
        return lambda saved: rule(saved[place])
    return lambda saved: rule(*[saved[place] for place in needs])


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
        """Run on what is no traced array; arithmetic on nothing but Python scalars gives a Python scalar, as in Python.

        Lists become arrays first, which are traced where something in them is.
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


class Elementwise(Pointwise):
    """A pointwise primitive that is given by its partial derivatives."""

    pulls_by_primitives = True
    __slots__ = ("fast", "keeps", "mixes", "partials", "selects", "ulps")
    partials: tuple[Partial | None, ...]

    def __init__(
        self, name: str, partials: Sequence[Rule], selects: tuple[int, ...], ulps: float, **options: Any
    ) -> None:
        super().__init__(name, len(partials), **options)
        self.ulps = ulps
        """The error of first and second partials that are normal numbers, in units of their last place."""
        self.selects = selects
        self.covers = not any(selects)
        self.partials = tuple([None if rule is None else Partial(rule, self.arity) for rule in partials])
        self.mixes = self.arity > 1 and any([p is not None and callable(p.rule) for p in self.partials])
        """Whether a partial computes with operands that may be of other dtypes than the output."""
        self.keeps = tuple([self._needed_by(mask) for mask in range(1 << self.arity)])
        self.fast: Any = None
        """What grad_fast makes of the primitive when it is first recorded."""

    def _needed_by(self, mask: int) -> tuple[bool, ...]:
        """Which of (x, y, ..., out) the pullback needs when the arguments in the bit mask are active."""
        needed: set[int] = set()
        for i, partial in enumerate(self.partials):
            if mask >> i & 1 and partial is not None:
                needed.update(partial.needs)
        return tuple([place in needed for place in range(self.arity + 1)])

    def scaled(self, place: int, saved: Sequence[Array], direction: Array, adjoint: bool) -> Array:
        """partial · direction, by the conjugate partial for an adjoint."""
        partial = self.partials[place]
        assert partial is not None
        if partial.constant is not None:
            return direction if partial.constant == 1 else negative(direction)
        return partial.scaled(saved, direction, adjoint, self.selects[place])

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = self(*primals)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        dtype = dtype_of(out)
        if not is_inexact(dtype):
            return ZERO
        saved = in_precision_of(out, (*primals, out)) if self.mixes else (*primals, out)
        total = quietly(self._total, saved, tangents)
        if total is ZERO:
            return ZERO
        if dtype_of(total) != dtype:
            total = convert(total, dtype=dtype)
        shape = shape_of(out)
        return total if shape_of(total) == shape else broadcast(total, shape=shape)

    def _total(self, saved: Any, tangents: tuple[Any, ...]) -> Any:
        total: Any = ZERO
        for place, tangent in enumerate(tangents):
            if tangent is not ZERO and self.partials[place] is not None:
                total = add_tangents(total, self.scaled(place, saved, tangent, False))
        return total

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = self(*values)
        mask = sum([1 << i for i, parent in enumerate(parents) if parent is not None and self.partials[i] is not None])
        if mask == 0:
            return out, None, None
        keeps = self.keeps[mask]
        saved = [
            (value if parents[i] is not None else kept(value)) if keeps[i] else None for i, value in enumerate(values)
        ]
        return out, self, [*saved, out if keeps[-1] else None]

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """What was saved, as traced values: lift(place, value) of an argument, lift(None, value) of the output."""
        return [lift(place if place < self.arity else None, value) for place, value in enumerate(saved)]

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        saved = in_precision_of(ct, saved) if self.mixes else saved
        return [
            ZERO
            if parent is None or self.partials[place] is None
            else fit_cotangent(self.scaled(place, saved, ct, True), parent)
            for place, parent in enumerate(parents)
        ]

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        for place, (partial, parent) in enumerate(zip(self.partials, parents, strict=True)):
            if parent is None or partial is None:
                continue
            if any([need == self.arity or parents[need] is not None for need in partial.needs]):
                raise NotDifferentiableError(f"{self.name} is not linear in argument {place} and cannot be transposed")
        return self.pull(ct, parents, (*known, None), params)


def in_precision_of(out: Array, saved: Sequence[Array]) -> Sequence[Array]:
    """What partials compute with, in the precision of the output: in a narrower one they would lose digits or overflow.
    Numbers of Python adapt by themselves."""
    dtype = dtype_of(out)
    for value in saved:
        if value is not None and type(value) not in PYTHON_SCALARS and dtype_of(value) is not dtype:
            return [
                value if value is None or type(value) in PYTHON_SCALARS else _widened(value, dtype) for value in saved
            ]
    return saved


def _widened(value: Array, dtype: np.dtype[Any]) -> Array:
    """A value in the precision of a dtype where its own is narrower."""
    own = dtype_of(value)
    if own.kind not in "fciub" or dtype.kind not in "fc":
        return value
    precision = np.finfo(dtype).dtype
    wide = np.promote_types(own, precision)
    return convert(value, dtype=wide) if wide != own and np.finfo(wide).dtype == precision else value


def scale(factor: Array, direction: Array, adjoint: bool, selects: int) -> Array:
    """factor · direction, by the conjugate factor for an adjoint. `selects`: a factor of zero means "not selected".

    A stage whose program has a NaN-safe variant records the plain product.
    """
    if adjoint and dtype_of(factor).kind == "c":
        factor = conjugate(factor)
    if selects and not is_checked_for_nan(direction):
        if selects == SHARES and is_followed(factor):
            direction = where(not_equal(factor, 0), direction, full_like(direction, 0, ()))
        return nan_safe_multiply(direction, factor)
    return multiply(factor, direction)


SHARES = 2
"""In the place of a true `selects`: the factor is the share of a choice, so a zero is no choice also where its own
derivative, at ties, is not zero."""


def is_followed(value: Array) -> bool:
    """Whether a derivative of the value may be taken: a level differentiates it, or a Program that is traced."""
    while type(value) is Tracer:
        if value._interpreter.differentiates or value._value is None:
            return True
        value = value._value
    return False


def is_checked_for_nan(value: Array) -> bool:
    """Whether a value is staged in a program that runs its NaN-safe variant where an output has a NaN."""
    while type(value) is Tracer:
        owner = value._interpreter
        if owner.checks_nan is not None:
            return owner.checks_nan
        value = value._value
    return False


def call_numpy(ufunc: np.ufunc | None, args: Sequence[Any], keywords: Params) -> Any:
    """NumPy's ufunc, for calls with keywords: it checks them, and dispatches to traced operands."""
    if ufunc is None:
        raise TypeError(f"unexpected keyword arguments {sorted(keywords)}")
    return ufunc(*[WIRING.array_from_sequence(x) if type(x) in (list, tuple) else x for x in args], **keywords)


class Unary(Elementwise):
    """An elementwise primitive of one argument; calls of it are dispatched without a loop over the arguments."""

    __slots__ = ()

    def __call__(self, x: Array, *more: Any, **keywords: Any) -> Any:
        try:
            if more or keywords:
                return call_numpy(self.ufunc, (x, *more), keywords)
            if type(x) is Tracer:
                return x._interpreter.apply1(self, x)
            if type(x) in HOST_ARRAYS:
                return self.numpy(x) if x.size < LARGE else self.on_large(x)  # type: ignore[misc]
            return self.compute((x,))
        except Exception as error:
            hide_outside(error)
            raise

    __call__.__qualname__ = "ufunc"  # what Python calls it where arguments are missing


class Binary(Elementwise):
    """An elementwise primitive of two arguments. Its calls are most of all calls, so they have `bind` written out."""

    __slots__ = ()

    def __call__(self, x: Array, y: Array, *more: Any, **keywords: Any) -> Any:
        try:
            if more or keywords:
                return call_numpy(self.ufunc, (x, y, *more), keywords)
            if type(x) is Tracer:
                if type(y) is not Tracer:
                    return x._interpreter.apply2(self, x, y if type(y) in HOST_TYPES else operand(y))
                if y._interpreter.level > x._interpreter.level:
                    return y._interpreter.apply2(self, x, y)
                return x._interpreter.apply2(self, x, y)
            if type(y) is Tracer:
                return y._interpreter.apply2(self, x if type(x) in HOST_TYPES else operand(x), y)
            if (type(x) in HOST_ARRAYS and type(y) in HOST_TYPES) or (type(y) in HOST_ARRAYS and type(x) in HOST_TYPES):
                if (type(x) is ndarray and x.size >= LARGE) or (type(y) is ndarray and y.size >= LARGE):
                    return self.on_large(x, y)
                return self.numpy(x, y)  # type: ignore[misc]
            return self.compute((x, y))
        except Exception as error:
            hide_outside(error)
            raise

    __call__.__qualname__ = "ufunc"


def elementwise(
    name: str,
    *partials: Rule,
    ufunc: str | None = None,
    impl: Callable[..., Any] | None = None,
    selects: int | tuple[int, ...] = False,
    weak: bool = False,
    ulps: float = ULPS,
    **facts: Unpack[Facts],
) -> Elementwise:
    """An elementwise primitive. `selects`: a partial of zero means that the argument was not selected, for all
    arguments or for each. `weak`: arithmetic. `ulps`: the bound on the error of its partials."""
    kind = {1: Unary, 2: Binary}.get(len(partials), Elementwise)
    facts.setdefault("cost", 1)
    selected = selects if isinstance(selects, tuple) else (selects,) * len(partials)
    return kind(name, partials, selected, ulps, ufunc=ufunc or name, impl=impl, weak=weak, **facts)


def formula(
    name: str,
    expression: Callable[..., Array],
    *partials: Rule,
    impl: Callable[..., Any] | None = None,
    **facts: Unpack[Facts],
) -> Elementwise:
    """An elementwise primitive that is an expression of others, but has partials of its own: those of the expression
    would lose digits. Compiled code sees the expression; `impl` computes the same with fewer calls."""

    def whole(*operands: Array) -> Array:
        out = expression(*operands)
        shape = broadcast_shape([shape_of(x) for x in operands])
        if aval_of(out).weak:
            out = convert(out, dtype=dtype_of(out))
        return out if shape_of(out) == shape else broadcast(out, shape=shape)

    facts["body"] = lambda params: lambda *operands: (whole(*operands),)
    return elementwise(name, *partials, impl=impl or (lambda xp, *args: whole(*args)), **facts)


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


not_equal = elementwise_constant("not_equal", 2, commutative=True)
multiply: Elementwise = elementwise("multiply", "y", "x", weak=True, commutative=True)
negative: Elementwise = elementwise("negative", -1, weak=True)
conjugate: Linear = linear(
    "conjugate",
    lambda xp, x: xp.conjugate(x),
    aval=lambda x: x,
    transpose=lambda ct, x: (conjugate(ct),),
    batch=lambda x: conjugate(x),
    cost=1,
    mask="elementwise",
    covers=True,
    layout=iterated_order,
)
"""Linear over the reals, and its own adjoint."""


def is_numpy_ufunc(function: Any) -> TypeGuard[np.ufunc]:
    """True for ufuncs that NumPy has under their own name."""
    return isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function


nan_safe_multiply: Elementwise = elementwise(
    "nan_safe_multiply", "y", "x", impl=arrays.nan_safe_multiply, selects=(True, False)
)
"""x · y where y weighs what was selected: exactly zero wherever y is, also where x is infinite or NaN.

So is its derivative by x.
"""
add: Elementwise = elementwise("add", 1, 1, weak=True, commutative=True)
