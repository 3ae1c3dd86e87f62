"""Derivatives at a point as linear Programs of residuals and tangents, and compiled products of several of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func.compilation.jit import jit
from func.interpreters import nan_safe
from func.interpreters.core import ZERO, Array, Aval, dtype_of, shape_of
from func.interpreters.primitives.structural.identity import as_seeds
from func.interpreters.primitives.structural.shapes import convert, full_like, reshape
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.program.program import Program
from func.interpreters.transpose import transpose_program
from func.transforms.forward import linearize
from func.transforms.vmapping import vmap

CHUNK_BYTES = 2**28
"""Roughly the memory for the intermediate values of a product with several vectors."""
MOST_PRODUCTS = 64
"""The most compiled products to cache for later operators of the same form."""


class LinearMap(NamedTuple):
    """The derivative of a function at a point."""

    program: Program
    """Its first inputs are the residuals, the others the tangents; so it is equal for all points."""
    residuals: tuple[Array, ...]


class MapFactor(NamedTuple):
    """One factor of a product of linear maps."""

    number: int
    """The number of the map."""
    is_transposed: bool = False


class Vectors(NamedTuple):
    """A space of vectors: the elements of several arrays one after the other."""

    avals: tuple[Aval, ...]

    @property
    def sizes(self) -> list[int]:
        return [math.prod(aval.shape) for aval in self.avals]

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*[aval.dtype for aval in self.avals]) if self.avals else np.dtype(np.float64)

    def split(self, vector: Array) -> list[Array]:
        """The arrays of a vector."""
        parts = []
        start = 0
        for aval, size in zip(self.avals, self.sizes, strict=True):
            part = vector if len(self.avals) == 1 else vector[start : start + size]
            parts.append(_fitted(part, aval.shape, aval.dtype))
            start += size
        return parts

    def joined(self, parts: Sequence[Array]) -> Array:
        """The vector of some arrays."""
        if not parts:
            return np.zeros(0)
        flat = [_fitted(part, (size,), self.dtype) for part, size in zip(parts, self.sizes, strict=True)]
        return flat[0] if len(flat) == 1 else concatenate(*flat, axis=0)


def _fitted(x: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    x = x if shape_of(x) == shape else reshape(x, shape=shape)
    return x if dtype_of(x) == dtype else convert(x, dtype=dtype)


def vectors_like(values: Sequence[Array]) -> Vectors:
    """The space of vectors of these arrays."""
    return Vectors(tuple([Aval(shape_of(x), dtype_of(x)) for x in values]))


def linear_map(function: Callable[..., Any], values: Sequence[Array]) -> tuple[list[Array], LinearMap]:
    """The outputs of a function of arrays that returns a tuple of arrays, and its derivative there."""
    outs, linearized = linearize(function, *values)
    program = linearized.program.pruned()
    variables = list(program.constants)
    lifted = Program([*variables, *program.inputs], program.equations, program.outputs, {})
    return list(outs), LinearMap(lifted, tuple(program.constants.values()))


def _at(program: Program, residuals: Sequence[Array]) -> Program:
    """The linear program of the tangents alone."""
    count = len(residuals)
    constants = dict(zip(program.inputs[:count], residuals, strict=True))
    return Program(program.inputs[count:], program.equations, program.outputs, constants)


def _pushed(program: Program, residuals: Sequence[Array], tangents: Sequence[Array]) -> list[Array]:
    return nan_safe.push_linear(_at(program, residuals).run, as_seeds(tangents, residuals))


def _pulled(program: Program, residuals: Sequence[Array], cts: Sequence[Array]) -> list[Array]:
    linear = _at(program, residuals)
    pulled = nan_safe.push_linear(lambda cts: transpose_program(linear, cts), as_seeds(cts, residuals))
    like = next((x for x in cts), 0.0)
    return [
        full_like(like, 0, var.shape, var.dtype) if ct is ZERO else ct
        for ct, var in zip(pulled, linear.inputs, strict=True)
    ]


class Product(NamedTuple):
    """A product of linear maps as a function of a vector; equal for all points."""

    programs: tuple[Program, ...]
    steps: tuple[MapFactor, ...]
    domain: Vectors
    codomain: Vectors

    def transposed(self, symmetric: Sequence[int] = ()) -> Product:
        """The transpose, where the maps with some numbers are symmetric."""
        steps = [MapFactor(step.number, not step.is_transposed and step.number not in symmetric) for step in self.steps]
        return Product(self.programs, tuple(reversed(steps)), self.codomain, self.domain)

    def applied(self, residuals: Sequence[Sequence[Array]], vector: Array) -> Array:
        parts = self.domain.split(vector)
        for number, is_transposed in self.steps:
            apply = _pulled if is_transposed else _pushed
            parts = apply(self.programs[number], residuals[number], parts)
        return self.codomain.joined(parts)

    def bytes_of_vector(self) -> int:
        """The size of the intermediate values for one vector."""
        total = 0
        for number, _ in self.steps:
            for equation in self.programs[number].equations:
                total += sum([math.prod(out.shape) * out.dtype.itemsize for out in equation.outputs])
        return max(total, (self.domain.size + self.codomain.size) * self.domain.dtype.itemsize, 1)


@functools.lru_cache(maxsize=MOST_PRODUCTS)
def compiled(product: Product) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """A product as compiled functions of (residuals, vector) and of (residuals, vectors as columns).

    They are cached: operators of one function at several points run the same code.
    """

    def with_columns(residuals: Sequence[Sequence[Array]], columns: Array) -> Array:
        return vmap(functools.partial(product.applied, residuals), in_dims=1, out_dims=1)(columns)

    return jit(lambda residuals, vector: product.applied(residuals, vector)), jit(with_columns)


def padded_width(width: int) -> int:
    """The next number with at most three significant bits: few widths need compiled code."""
    unit = 1 << max(width.bit_length() - 3, 0)
    return -(-width // unit) * unit
