"""Taylor mode: values with the coefficients of their power series in one variable t.

A traced value represents x(t) = x₀ + x₁ t + x₂ t² + …: its value is x₀, its attachment a `Series` of all coefficients.
A coefficient may be ZERO. The series of a primitive's output follows from the primitive:

    linear                 coefficient by coefficient
    bilinear, multiply     a convolution
    divide, power          separate recurrences
    elementwise            y′ = Σ ∂y/∂xᵢ · xᵢ′, so k yₖ = Σᵢ Σⱼ j xᵢⱼ pᵢ,ₖ₋ⱼ with the series pᵢ of the partial
    calls of programs      the same call of programs of series (`apply_series` of the primitive)
    custom rules           k yₖ is coefficient k-1 of the rule's result at series that are one shorter (the same)
    all others             k yₖ is coefficient k-1 of the tangent, by the primitive's jvp at (x, x′)

The elementwise rule and the last one compute the derivative with series again, and with y itself: its coefficient k-1
needs only the coefficients of y below k. So series inside a rule are lazy: they compute a coefficient at its first use.
Equal operands share one series (the sine in the derivative of the derivative of a sine). Elementwise primitives
therefore take O(K²) operations for K coefficients, where nested forward mode takes 2ᴷ.

Source: A. Griewank and A. Walther, Evaluating Derivatives (2008), chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import HOST_TYPES
from func.backends.quiet import quietly
from func.interpreters.core import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Bilinear,
    Interpreter,
    Linear,
    Params,
    Primitive,
    Series,
    Tracer,
    add_tangents,
    bind,
    dtype_of,
    is_inexact,
    raise_if_captured,
    shape_of,
    snapshot,
    unboxed,
    zeros_like,
)
from func.interpreters.core.modes import MODE, body_above, is_suspended
from func.interpreters.primitives.elementwise import table as ops
from func.interpreters.primitives.elementwise.builder import Elementwise, scale
from func.interpreters.primitives.elementwise.partials import in_precision_of
from func.interpreters.primitives.structural.shapes import broadcast, convert, full_like, where
from func.interpreters.structural_zeros import StructuralZeros, has_mask, without_mask


class Taylor(Interpreter):
    """Carries series up to the coefficient `order`. With `structural`, coefficients know their structural zeros."""

    differentiates = True
    takes_further = True
    carries_series = True

    def __init__(self, transform: str, order: int, structural: StructuralZeros | None = None) -> None:
        super().__init__(transform)
        self.order = order
        self.structural = structural
        self.known: dict[Any, Any] | None = None
        """Results of the present primitive's rule: values and operands, by primitive and operands."""

    def lift(self, value: Array, coefficients: Sequence[Any] | None) -> Any:
        """A traced value with these coefficients beyond its first; the value itself for None."""
        if coefficients is None:
            return value
        if self.structural is not None:
            coefficients = self.structural.seed_series(coefficients)
        return Tracer(self, value, Series([value, *coefficients]))

    def unpack(self, value: Array) -> list[Any]:
        """All coefficients of an output."""
        if self.owns(value):
            series = value._attached
            return [value._value, *[without_mask(series[k]) for k in range(1, self.order + 1)]]
        return [snapshot(value), *[ZERO] * self.order]

    def owns(self, value: Any) -> bool:
        """Whether a value is one of these series."""
        return type(value) is Tracer and value._interpreter is self

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        args = tuple([arg if self.owns(arg) else unboxed(arg) for arg in args])
        if not primitive.differentiable or (MODE.get() is not None and is_suspended(self.level)):
            return bind(primitive, tuple([self.value_of(arg) for arg in args]), params)
        series_body = getattr(primitive, "series_body", None)  # which make up this function
        if series_body is not None:
            outs = tuple(series_body(params)(*args))
            return outs if primitive.multiple else outs[0]
        if self.known is not None:
            return self._within_rule(primitive, args, params)
        self.known = {}
        try:
            out = self._within_rule(primitive, args, params)
            for value in out if primitive.multiple else (out,):
                if self.owns(value):
                    _ = value._attached[self.order]
        finally:
            known, self.known = self.known, None
            for outs, _ in known.values():  # no use needs incomplete ones; their own functions keep them alive
                for value in outs:
                    if self.owns(value):
                        value._attached.extend = None
        return out

    def _within_rule(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        """The lazy outputs. Writes of users rebind tracers, so rules and results have separate tracers."""
        assert self.known is not None
        args = tuple([Tracer(self, arg._value, arg._attached) if self.owns(arg) else arg for arg in args])
        key = (primitive, tuple([self._identity(arg) for arg in args]), tuple(params.items()))
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._applied(primitive, args, params), args
        outs = tuple([Tracer(self, out._value, out._attached) if self.owns(out) else out for out in known[0]])
        return outs if primitive.multiple else outs[0]

    def _identity(self, arg: Array) -> Any:
        """A key that tells operands apart: series by identity, small arrays and numbers by content."""
        if self.owns(arg):
            return id(arg._attached)
        kind = type(arg)
        if kind in PYTHON_SCALARS:
            return kind, arg, str(arg)
        if kind is Tracer:
            return id(arg._interpreter), id(arg._value), id(arg._attached)
        if kind in HOST_TYPES and arg.nbytes <= SMALL:
            return kind, arg.dtype, arg.shape, arg.tobytes()
        return id(arg)

    def _applied(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> tuple[Array, ...]:
        values = tuple([self.value_of(arg) for arg in args])
        own_rule = getattr(primitive, "apply_series", None)  # for calls of programs
        if own_rule is not None and all([not self.owns(arg) or arg._attached.extend is None for arg in args]):
            pairs = own_rule(self.order, values, [self._coefficients(arg, self.order) for arg in args], params)
            return tuple([self.complete(value, coefficients) for value, coefficients in pairs])
        out = bind(primitive, values, params)
        outs = tuple(out) if primitive.multiple else (out,)
        raise_if_captured(self, outs)
        boxes = tuple([Tracer(self, out, Series([out])) if is_inexact(dtype_of(out)) else out for out in outs])
        if own_rule is None:
            extend = self._rule(primitive, args, params, boxes)
        else:
            extend = self._call_rule(own_rule, args, values, params)
        for place, box in enumerate(boxes):
            if self.owns(box):
                box._attached.extend = _part(extend, place) if primitive.multiple else extend
        return boxes

    def complete(self, value: Array, coefficients: Sequence[Any] | None) -> Array:
        """A value with the coefficients of a primitive's own rule."""
        return value if coefficients is None else Tracer(self, value, Series([value, *coefficients]))

    def _coefficients(self, arg: Array, order: int) -> list[Any] | None:
        return [arg._attached[k] for k in range(1, order + 1)] if self.owns(arg) else None

    def _call_rule(
        self, own_rule: Any, args: Sequence[Array], values: tuple[Array, ...], params: Params
    ) -> Callable[[int], Any]:
        """Run a primitive's own rule on lazy operands: once for each coefficient."""

        def extend(k: int) -> list[Any]:
            pairs = own_rule(k, values, [self._coefficients(arg, k) for arg in args], params)
            return [ZERO if coefficients is None else coefficients[-1] for _, coefficients in pairs]

        return extend

    def _rule(self, primitive: Primitive, args: tuple[Array, ...], params: Params, outs: Sequence[Array]) -> Any:
        """The function that returns coefficient k of the output, or of all outputs."""
        series = [self.series_of(arg) for arg in args]
        values = tuple([self.value_of(arg) for arg in args])
        if isinstance(primitive, Linear):
            first = tuple([self.value_of(out) for out in outs])
            return _linear_rule(primitive, values, series, params, first if primitive.multiple else first[0])
        if isinstance(primitive, Bilinear):
            return _product_rule(lambda x, y: _bilinear(primitive, x, y, params), values, series)
        if isinstance(primitive, Elementwise):
            rule = quietly(self._elementwise_rule, primitive, args, values, series, outs[0])
            return lambda k: quietly(rule, k)
        return self._tangent_rule(primitive, args, params, outs)

    def series_of(self, value: Array) -> Series | None:
        """The series of a value, None of a constant."""
        return value._attached if self.owns(value) else None

    def value_of(self, value: Array) -> Array:
        """The coefficient at t = 0."""
        return value._value if self.owns(value) else value

    def _elementwise_rule(
        self,
        primitive: Elementwise,
        args: tuple[Array, ...],
        values: tuple[Array, ...],
        series: list[Series | None],
        out: Array,
    ) -> Callable[[int], Any]:
        if primitive is ops.multiply:
            return _product_rule(_product, values, series)
        if primitive is ops.square:
            return _square_rule(values[0], series[0])
        if primitive is ops.nan_safe_multiply:
            weighed = series[0] is not None and series[1] is None
            return _product_rule(primitive if weighed else _product, values, series)
        if primitive is ops.divide:
            return _quotient_rule(values, series, out._attached)
        if primitive is ops.sech_squared:
            return _slope_of_tanh_rule(ops.tanh(args[0]))
        exponent = _real_number(values[1]) if primitive in POWERS and series[1] is None else None
        if exponent is not None:
            base = args[0] if dtype_of(args[0]) == dtype_of(out) else convert(args[0], dtype=dtype_of(out))
            return self._power_rule(base, exponent, out._attached)
        active = [p for p, own in zip(primitive.partials, series, strict=True) if own is not None]
        if all([p is None or p.constant is not None for p in active]):
            return _sum_rule(primitive, series, out)
        return self._partial_rule(primitive, args, series, out)

    def _partial_rule(
        self, primitive: Elementwise, args: tuple[Array, ...], series: list[Series | None], out: Array
    ) -> Callable[[int], Any]:
        """k yₖ = Σᵢ Σⱼ j xᵢⱼ pᵢ,ₖ₋ⱼ for the partials pᵢ."""
        active = [(i, own) for i, own in enumerate(series) if own is not None and primitive.partials[i] is not None]
        partials: dict[int, Any] = {}
        weighted: dict[tuple[int, int], Any] = {}

        def partial_of(place: int) -> Any:
            if place not in partials:
                saved = in_precision_of(out, (*args, out)) if primitive.mixes else (*args, out)
                partials[place] = primitive.partials[place].evaluate(saved)  # type: ignore[union-attr]
            return partials[place]

        def derivative(place: int, j: int) -> Any:
            """j xⱼ."""
            if (place, j) not in weighted:
                weighted[place, j] = _times(j, series[place][j])  # type: ignore[index]
            return weighted[place, j]

        def product(place: int, j: int, k: int) -> Any:
            """j xⱼ pₖ₋ⱼ."""
            dx, partial = derivative(place, j), primitive.partials[place]
            assert partial is not None
            if dx is ZERO or (partial.constant is not None and j < k):
                return ZERO
            if partial.constant is not None:
                return dx if partial.constant == 1 else ops.negative(dx)
            factor = partial_of(place)
            if not self.owns(factor):
                return scale(factor, dx, False, primitive.selects[place]) if j == k else ZERO
            coefficient = factor._attached[k - j]
            if coefficient is ZERO:
                return ZERO
            if has_mask(coefficient) and has_mask(dx):
                return _product(coefficient, dx)
            return scale(coefficient, dx, False, primitive.selects[place])

        def extend(k: int) -> Any:
            total: Any = ZERO
            for place, _ in active:
                for j in range(1, k + 1):
                    total = add_tangents(total, product(place, j, k))
            return _fitted(_divided(total, k), out)

        return extend

    def _power_rule(self, base: Array, exponent: float, out: Series) -> Callable[[int], Any]:
        """The power with a Python number: products for an integer; for others x yₖ = Σ …, from x y′ = p x′ y."""
        products = max(MAX_PRODUCTS, self.order)
        if math.isfinite(exponent) and exponent == int(exponent) and abs(exponent) <= products:
            chain = self._integer_power(base, int(exponent))
            return lambda k: chain._attached[k] if self.owns(chain) else ZERO
        series, start = base._attached, base._value
        is_zero = ops.equal(start, 0)
        divisor = where(is_zero, full_like(start, 1, ()), start)

        def extend(k: int) -> Any:
            total: Any = ZERO
            for j in range(1, k + 1):
                if series[j] is not ZERO and out[k - j] is not ZERO:
                    weight = (exponent * j - (k - j)) / k
                    total = add_tangents(total, ops.multiply(_product(series[j], out[k - j]), weight))
            if total is ZERO:
                return ZERO
            total = ops.divide(total, divisor)
            if k <= exponent or series[1] is ZERO:
                return total
            # At zero the derivatives beyond the exponent are infinite.
            pole = ops.multiply(ops.power(start, exponent - k), ops.power(series[1], k))
            return where(is_zero, ops.multiply(pole, _binomial(exponent, k)), total)

        return extend

    def _integer_power(self, base: Array, exponent: int) -> Array:
        """A power by squaring; its tracer differs from the primitive's, its coefficients do not."""
        if exponent < 0:
            return ops.divide(1, self._integer_power(base, -exponent))
        result: Any = None
        while exponent:
            if exponent & 1:
                result = base if result is None else ops.multiply(result, base)
            exponent >>= 1
            base = ops.square(base) if exponent else base
        return result

    def _tangent_rule(
        self, primitive: Primitive, args: tuple[Array, ...], params: Params, outs: Sequence[Array]
    ) -> Callable[[int], Any]:
        """k yₖ is coefficient k-1 of the tangent at (x, x′)."""
        tangents: list[Any] = []

        def extend(k: int) -> Any:
            if not tangents:
                tangents.extend(self._tangents(primitive, args, params, outs))
            parts = [_divided(self._coefficient(tangent, k - 1), k) for tangent in tangents]
            return parts if primitive.multiple else parts[0]

        return extend

    def _tangents(
        self, primitive: Primitive, args: tuple[Array, ...], params: Params, outs: Sequence[Array]
    ) -> Sequence[Any]:
        """The tangents of all outputs at (x, x′)."""
        dots = tuple([self._derivative(arg) for arg in args])
        if all([dot is ZERO for dot in dots]):
            return [ZERO] * len(outs)
        tangent = primitive.tangent_of(args, tuple(outs) if primitive.multiple else outs[0], dots, params)
        return tangent if primitive.multiple and tangent is not ZERO else [tangent] * len(outs)

    def _coefficient(self, value: Any, k: int) -> Any:
        if self.owns(value):
            return value._attached[k]
        return value if k == 0 else ZERO

    def _derivative(self, value: Array) -> Any:
        """x′ of x; ZERO of a constant."""
        if not self.owns(value):
            return ZERO
        series = value._attached
        if series.extend is None and all([x is ZERO for x in series.coefficients[1:]]):
            return ZERO
        first = zeros_like(value._value) if series[1] is ZERO else series[1]
        available = [_times(k, x) for k, x in enumerate(series.coefficients[2:], 2)]
        return Tracer(self, first, Series([first, *available], lambda k: _times(k + 1, series[k + 1])))


POWERS = (ops.power, ops.float_power)
MAX_PRODUCTS = 64
"""Up to this integer, and up to the order, a power consists of products. They are right at zero too, where
coefficients below the exponent are zero."""
SMALL = 1024
"""The largest array, in bytes, whose contents are compared."""


def _linear_rule(
    primitive: Linear, values: tuple[Array, ...], series: list[Series | None], params: Params, out: Any
) -> Callable[[int], Any]:
    """The primitive at coefficient k of its linear operands."""
    linear = [own if primitive.is_linear_in(i) else None for i, own in enumerate(series)]

    def extend(k: int) -> Any:
        tangents = tuple([ZERO if own is None else own[k] for own in linear])
        tangent = primitive.tangent_of(values, out, tangents, params)
        return [ZERO] * len(out) if primitive.multiple and tangent is ZERO else tangent

    return extend


def _product_rule(
    product: Callable[[Array, Array], Array], values: tuple[Array, ...], series: list[Series | None]
) -> Callable[[int], Any]:
    """The convolution of the coefficients of two operands."""

    def coefficient(place: int, k: int) -> Any:
        own = series[place]
        return own[k] if own is not None else values[place] if k == 0 else ZERO

    def extend(k: int) -> Any:
        total: Any = ZERO
        for j in range(k + 1):
            x, y = coefficient(0, j), coefficient(1, k - j)
            if x is not ZERO and y is not ZERO:
                total = add_tangents(total, product(x, y))
        return total

    return extend


def _sum_rule(primitive: Elementwise, series: Sequence[Series | None], out: Array) -> Callable[[int], Any]:
    """The sum of operands, or of their negatives."""

    def extend(k: int) -> Any:
        total: Any = ZERO
        for own, partial in zip(series, primitive.partials, strict=True):
            if own is not None and partial is not None and own[k] is not ZERO:
                total = add_tangents(total, own[k] if partial.constant == 1 else ops.negative(own[k]))
        return _fitted(total, out)

    return extend


def _slope_of_tanh_rule(tanh: Tracer) -> Callable[[int], Any]:
    """Coefficients of 1 - tanh² beyond the first: there nothing cancels, and each product is computed once."""
    square = _square_rule(tanh._value, tanh._attached)

    def extend(k: int) -> Any:
        coefficient = square(k)
        return ZERO if coefficient is ZERO else ops.negative(coefficient)

    return extend


def _square_rule(value: Array, own: Series | None) -> Callable[[int], Any]:
    """The convolution of a series with itself: every product of two different coefficients once."""

    def coefficient(k: int) -> Any:
        return value if k == 0 else own[k]  # type: ignore[index]

    def extend(k: int) -> Any:
        total: Any = ZERO
        for j in range((k + 1) // 2):
            x, y = coefficient(j), coefficient(k - j)
            if x is not ZERO and y is not ZERO:
                total = add_tangents(total, _product(x, y))
        total = _times(2, total)
        middle = ZERO if k % 2 else coefficient(k // 2)
        return total if middle is ZERO else add_tangents(total, _product(middle, middle))

    return extend


def _product(x: Array, y: Array) -> Array:
    """The product of two coefficients; a structural zero of either is one of the product."""
    if has_mask(x) and has_mask(y):
        return x._interpreter.product(x, y)
    return ops.multiply(x, y)


def _bilinear(primitive: Bilinear, x: Array, y: Array, params: Params) -> Array:
    """The same for a bilinear primitive; of two operands with structural zeros those of the first count."""
    return bind(primitive, (x, without_mask(y) if has_mask(x) else y), params)


def _real_number(value: Array) -> float | None:
    """A real number of Python or NumPy as a Python number."""
    if type(value) in (int, float):
        return value  # type: ignore[no-any-return]
    if type(value) is not Tracer and isinstance(value, (np.number, np.ndarray)) and value.shape == ():
        return value.item() if value.dtype.kind in "fiu" else None
    return None


def _quotient_rule(values: tuple[Array, ...], series: list[Series | None], out: Series) -> Callable[[int], Any]:
    """y₀ zₖ = xₖ - Σ yⱼ zₖ₋ⱼ."""
    x, y = series

    def extend(k: int) -> Any:
        total: Any = ZERO if x is None else x[k]
        for j in range(1, k + 1 if y is not None else 0):
            if y[j] is not ZERO and out[k - j] is not ZERO:  # type: ignore[index]
                total = add_tangents(total, ops.negative(_product(y[j], out[k - j])))  # type: ignore[index]
        return ZERO if total is ZERO else ops.divide(total, values[1])

    return extend


def _binomial(p: float, k: int) -> float:
    result = 1.0
    for j in range(k):
        result *= (p - j) / (j + 1)
    return result


def _divided(x: Any, k: int) -> Any:
    return x if x is ZERO or k == 1 else ops.multiply(x, 1 / k)


def _times(k: int, x: Any) -> Any:
    return x if x is ZERO or k == 1 else ops.multiply(x, k)


def _part(extend: Any, place: int) -> Callable[[int], Any]:
    """Coefficient k of one of several outputs."""
    return lambda k: extend(k)[place]


def _fitted(total: Any, out: Array) -> Any:
    """A coefficient in the dtype and shape of the output."""
    if total is ZERO:
        return ZERO
    dtype, shape = dtype_of(out), shape_of(out)
    if dtype_of(total) != dtype:
        total = convert(total, dtype=dtype)
    return total if shape_of(total) == shape else broadcast(total, shape=shape)
