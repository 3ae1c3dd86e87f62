"""Exact polynomials with integer coefficients: the truth of the machine of compositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Exponents = tuple[int, ...]


class Polynomial(NamedTuple):
    """A polynomial: the coefficient of each product of powers, never zero."""

    terms: dict[Exponents, int]

    def __add__(self, other: Polynomial) -> Polynomial:  # type: ignore[override]
        """The sum."""
        total = dict(self.terms)
        for powers, factor in other.terms.items():
            total[powers] = total.get(powers, 0) + factor
        return Polynomial({powers: factor for powers, factor in total.items() if factor})

    def __mul__(self, other: Polynomial | int) -> Polynomial:  # type: ignore[override]
        """The product with a polynomial or a number."""
        if isinstance(other, int):
            return Polynomial({powers: factor * other for powers, factor in self.terms.items() if other})
        total: dict[Exponents, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                powers = tuple(map(sum, zip(left, right, strict=True)))
                total[powers] = total.get(powers, 0) + a * b
        return Polynomial({powers: factor for powers, factor in total.items() if factor})

    __rmul__ = __mul__  # type: ignore[assignment]

    def __pow__(self, exponent: int) -> Polynomial:
        """The power by a positive integer."""
        result = self
        for _ in range(exponent - 1):
            result = result * self
        return result

    def partial(self, i: int) -> Polynomial:
        """The derivative by variable i."""
        return Polynomial(
            {
                (*powers[:i], powers[i] - 1, *powers[i + 1 :]): factor * powers[i]
                for powers, factor in self.terms.items()
                if powers[i]
            }
        )


Point = tuple[int, ...]
Map = tuple[Polynomial, ...]
"""A map of n numbers to n numbers. Its polynomials have 2 n variables: the numbers, and the same numbers *frozen*, as
what is computed where no derivative is recorded."""
Truth = Callable[[Point], Map]
"""The map that a piecewise polynomial is around a point."""


def constant(value: int, n: int) -> Polynomial:
    """A number as a polynomial of a map of n numbers."""
    return Polynomial({(0,) * (2 * n): value} if value else {})


def variables(n: int) -> Map:
    """The n numbers themselves."""
    return tuple([Polynomial({tuple([int(i == j) for j in range(2 * n)]): 1}) for i in range(n)])


def frozen(polynomial: Polynomial) -> Polynomial:
    """The same numbers without a derivative."""
    terms: dict[Exponents, int] = {}
    for powers, factor in polynomial.terms.items():
        n = len(powers) // 2
        key = (*[0] * n, *map(sum, zip(powers[:n], powers[n:], strict=True)))
        terms[key] = terms.get(key, 0) + factor
    return Polynomial({powers: factor for powers, factor in terms.items() if factor})


def value_at(polynomial: Polynomial, point: Point) -> int:
    """The value of a polynomial of a map at a point."""
    total = 0
    for powers, factor in polynomial.terms.items():
        for x, power in zip((*point, *point), powers, strict=True):
            factor *= x**power
        total += factor
    return total


def total(polynomials: Sequence[Polynomial]) -> Polynomial:
    """The sum of one or more polynomials."""
    first, *rest = polynomials
    for polynomial in rest:
        first = first + polynomial
    return first


def weighted(weights: Sequence[int | Polynomial], polynomials: Sequence[Polynomial]) -> Polynomial:
    """The sum of products."""
    return total([p * w for w, p in zip(weights, polynomials, strict=True)])


def composed(polynomial: Polynomial, inner: Map) -> Polynomial:
    """A polynomial of the values of a map."""
    arguments = (*inner, *map(frozen, inner))
    result = constant(0, len(inner))
    for powers, factor in polynomial.terms.items():
        product = constant(factor, len(inner))
        for argument, power in zip(arguments, powers, strict=True):
            product = product * argument**power if power else product
        result = result + product
    return result


def after(truth: Truth, inner: Map) -> Truth:
    """A map of the values of another one, which is a polynomial everywhere."""

    def of_point(point: Point) -> Map:
        outer = truth(tuple([value_at(p, point) for p in inner]))
        return tuple([composed(p, inner) for p in outer])

    return of_point
