"""An integral as a function of its limits and of the parameters of its integrand, with derivatives to any order.

d/dp ∫ f(x, p) dx = ∫ ∂f/∂p dx, by the same rule of integration; limits follow Leibniz's rule, f(b) db - f(a) da.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from func.backends.records import Record
from func.interpreters.core import Array, is_inexact, shape_of
from func.numpy import asarray
from func.scipy.integrate.numbers import ArrayIntegrand, Integrand, Numbers
from func.transforms.closures import is_traced
from func.transforms.custom import custom_jvp


class Rule(Protocol):
    """The integration of the components of an integrand on plain numbers."""

    def __call__(self, integrand: Callable[[Any], Array], size: int, a: Any, b: Any, /) -> Array: ...


class Integral(Record):
    """∫ weight(x) f(x, p) dx from a to b, for the components of f."""

    integrand: Integrand
    rule: Rule
    limits: tuple[Any, Any]
    weight: Callable[[Any], Any] | None = None
    has_moving_limits: bool = True
    """Whether the limits contribute to the derivative: those of a sum do not."""
    numbers: Numbers | None = None
    """The computation of the integral itself, if the rule does not compute it."""

    def value(self, p: Array, rest: Sequence[Array]) -> list[Array]:
        """The components of the integral, and other results of the rule."""
        numbers = self.numbers or Numbers(self._by_rule, self.integrand.size)
        count = shape_of(p)[0]
        places = [i for i, limit in enumerate(self.limits) if is_traced(limit)]

        def ends(traced: Sequence[Array]) -> list[Any]:
            found = list(self.limits)
            for place, limit in zip(places, traced, strict=True):
                found[place] = limit
            return found

        @custom_jvp
        def integral(traced: Sequence[Array], p: Array, rest: Sequence[Array]) -> list[Array]:
            return numbers.on(*ends(traced), p, *rest)

        @integral.defjvp
        def integral_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            (traced, p, rest), (traced_dots, dp, _) = primals, tangents
            outs = integral(traced, p, rest)
            dot = np.zeros(self.integrand.size)
            if count:
                inner = self.with_fields(
                    integrand=self.integrand.derivative(count), numbers=None, limits=tuple(ends(traced))
                )
                rates = inner.value(p, rest)[0]
                dot = dot + np.reshape(rates, (self.integrand.size, count)) @ dp
            for place, limit, limit_dot in zip(places, traced, traced_dots, strict=True):
                if not self.has_moving_limits:
                    break
                part = self._at(limit, p, rest) * np.where(np.isfinite(limit), limit_dot, 0.0)  # 0 * scale * inf
                dot = dot + part if place else dot - part
            return outs, [dot, *[np.zeros_like(out) for out in outs[1:]]]

        return list(integral([self.limits[place] for place in places], p, list(rest)))

    def _by_rule(self, a: Any, b: Any, p: Array, *rest: Array) -> tuple[Array, tuple[()]]:
        return self.rule(lambda x: self.integrand.quick(x, p, *rest), self.integrand.size, a, b), ()

    def _at(self, limit: Array, p: Array, rest: Sequence[Array]) -> Array:
        """The integrand at a limit; zero at an infinite one."""
        is_finite = np.isfinite(limit)
        x = np.where(is_finite, limit, 0.0)
        if isinstance(self.integrand, ArrayIntegrand):
            value = self.integrand.call(np.reshape(x, (1,)), p, *rest)[:, 0]
        else:
            value = self.integrand.call(x, p, *rest)
        if self.weight is not None:
            value = value * self.weight(x)
        return np.where(is_finite, value, 0.0)


def real_columns(out: Any, is_complex: bool) -> Array:
    """An integrand's values at many points, the last axis, as real columns."""
    out = asarray(out)
    out = np.reshape(out, (-1, shape_of(out)[-1]))
    return np.concatenate([np.real(out), np.imag(out)]) if is_complex else out.astype(float)


def real_parts(out: Any, is_complex: bool) -> Array:
    """An integrand's value as a real vector."""
    out = np.ravel(asarray(out))
    if is_complex:
        return np.concatenate([np.real(out), np.imag(out)])
    return out.astype(float) if not is_inexact(out.dtype) or out.dtype != float else out
