"""Traces and diagonals of Hessians and Jacobians, estimated from products with random vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import random, tree
from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.primitives.structural.shapes import reshape
from func.interpreters.primitives.structural.slicing import concatenate
from func.transforms.arguments import CallArguments, Derivative, differentiable
from func.transforms.boundary import Intercepts, as_input_type, name_of, own, scalar_output
from func.transforms.forward import jvp
from func.transforms.jacobians import check_chunk, over_vectors
from func.transforms.reverse import grad
from func.transforms.second_order import check_same_tree
from func.transforms.transformed import keeps_parameters, transform

KINDS = ("hessian", "jacobian")


@keeps_parameters
@transform
def hutchinson_trace(
    f: Callable[..., Any],
    key: Any,
    samples: int,
    *,
    of: str = "hessian",
    probes: str = "rademacher",
    with_error: bool = False,
    argnums: int | tuple[int, ...] = 0,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """An unbiased estimate of the trace of the Hessian of a scalar function (its Laplacian), or of a Jacobian.

    The mean of vᵀ A v over random vectors v. For a symmetric A its variance is 2 Σ aᵢⱼ² / `samples`: over i ≠ j for
    random signs, over all i and j for normal probes. For other A the variance is that of the symmetric part (A + Aᵀ)/2.

    Args:
        f: A scalar function, or a vector field for `of="jacobian"`.
        key: A key of `func.random`; the same key gives the same estimate.
        samples: The number of random vectors, each of which costs one product with A.
        of: "hessian" or "jacobian"; for the latter the estimate is that of the divergence.
        probes: "rademacher" (random signs) or "normal".
        with_error: Return (estimate, standard error); that takes at least two samples.
        argnums: Position or positions to differentiate; the matrix is that of all their elements.
        argnames: Keyword arguments to differentiate, as in `grad`.
        chunk_size: Random vectors to multiply at a time, to bound memory; by default all of them.
        progress: Show a progress bar over the chunks.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Source: M. F. Hutchinson (1990), Communications in Statistics 19, 433-450.

    Example:
        >>> import numpy as np, func
        >>> func.hutchinson_trace(lambda x: np.sum(x ** 3), func.random.key(0), 2)(np.array([1.0, 2.0]))
        np.float64(18.0)
    """
    chosen = _Estimate("hutchinson_trace", 2 if with_error else 1, **locals())
    if probes not in ("rademacher", "normal"):
        raise ArgumentError(f"func.hutchinson_trace: probes must be 'rademacher' or 'normal', not {probes!r}")

    def estimate_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operator = _Operator(chosen, args, kwargs)
        vectors = operator.probes(key, samples, probes)
        traces = np.sum(vectors * operator.applied(vectors), axis=1)
        return _with_error(np.mean(traces), traces, samples, with_error)

    return estimate_of


@keeps_parameters
@transform
def hutchinson_diagonal(
    f: Callable[..., Any],
    key: Any,
    samples: int,
    *,
    of: str = "hessian",
    with_error: bool = False,
    argnums: int | tuple[int, ...] = 0,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """An unbiased estimate of the diagonal of a Hessian or Jacobian, in the tree of the argument.

    The mean of v ∘ A v over vectors v of random signs. The variance of element i is Σ aᵢⱼ² over j ≠ i, divided by
    `samples`. Arguments as of `hutchinson_trace`.

    Source: C. Bekas, E. Kokiopoulou and Y. Saad (2007), Applied Numerical Mathematics 57, 1214-1229.

    Example:
        >>> import numpy as np, func
        >>> func.hutchinson_diagonal(lambda x: np.sum(x ** 3), func.random.key(0), 1)(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    chosen = _Estimate("hutchinson_diagonal", 2 if with_error else 1, **locals())

    def estimate_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operator = _Operator(chosen, args, kwargs)
        vectors = operator.probes(key, samples, "rademacher")
        diagonals = vectors * operator.applied(vectors)
        estimate = _with_error(np.mean(diagonals, axis=0), diagonals, samples, with_error)
        return tuple([operator.tree(x) for x in estimate]) if with_error else operator.tree(estimate)

    return estimate_of


@keeps_parameters
@transform
def hutch_plus_plus(
    f: Callable[..., Any],
    key: Any,
    samples: int,
    *,
    of: str = "hessian",
    with_error: bool = False,
    argnums: int | tuple[int, ...] = 0,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """An unbiased estimate of a trace, with an error of 1/samples if few eigenvalues dominate (Hutch++).

    A third of the products finds a basis Q of the dominant subspace. A third gives the trace there exactly, and
    `hutchinson_trace` estimates the rest by the last third. The variance is that of Hutchinson's estimate
    for the projected matrix (I - QQᵀ) A (I - QQᵀ), at samples // 3 probes. The trace is exact if samples // 3 is at
    least the size of the argument. Other arguments as of `hutchinson_trace`.

    Args:
        samples: The number of products with the matrix, at least 3 (6 with an error).
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Source: R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff (2021), arXiv:2010.09649, algorithm 1.

    Example:
        >>> import numpy as np, func
        >>> func.hutch_plus_plus(lambda x: np.sum(x ** 3), func.random.key(0), 6)(np.array([1.0, 2.0])).round(12)
        np.float64(18.0)
    """
    chosen = _Estimate("hutch_plus_plus", 6 if with_error else 3, **locals())

    def estimate_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operator = _Operator(chosen, args, kwargs)
        count = samples // 3
        if count >= operator.size:
            basis = np.eye(operator.size, dtype=operator.dtype)
            exact = np.sum(basis * operator.applied(basis))
            return (exact, exact * 0) if with_error else exact
        image_key, probe_key = random.split(key, 2)
        images = operator.applied(operator.probes(image_key, count, "rademacher"))
        basis = np.linalg.qr(images.T)[0].T
        exact = np.sum(basis * operator.applied(basis))
        vectors = operator.probes(probe_key, count, "rademacher")
        vectors = vectors - (vectors @ basis.T) @ basis
        traces = np.sum(vectors * operator.applied(vectors), axis=1)
        return _with_error(exact + np.mean(traces), traces, count, with_error)

    return estimate_of


class _Estimate(Derivative):
    """The common part of the estimates: their matrix, and its products."""

    of: str

    def __init__(self, transform: str, least: int, f: Callable[..., Any], samples: Any, **options: Any) -> None:
        super().__init__(transform, f, **options)
        check_chunk(self.chunk_size, transform)
        if not isinstance(samples, (int, np.integer)) or isinstance(samples, bool) or samples < least:
            raise ArgumentError(f"func.{transform}: samples must be an int of at least {least} here, not {samples!r}")
        if self.of not in KINDS:
            raise ArgumentError(f"func.{transform}: of must be one of {', '.join(KINDS)}, not {self.of!r}")


class _Operator:
    """The Hessian or Jacobian at a point, as products with flat vectors."""

    def __init__(self, options: _Estimate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.options = options
        function = self.function = options.function
        self.transform = options.transform
        self.of = options.of
        places = options.selection.places(args, kwargs)
        self.arguments: CallArguments = differentiable(args, kwargs, places, self.transform, "fc", function=function)
        chosen = [args[place] if isinstance(place, int) else kwargs[place] for place in places]
        self.spec = tree.structure(options.selection.arranged(chosen))
        self.point = self.arguments.values()
        for x in self.point:
            if dtype_of(x).kind == "c":
                raise ArgumentError(
                    f"func.{self.transform} needs real input, but the argument of {name_of(function)} is complex; "
                    "differentiate with respect to its real and imaginary parts"
                )
        self.sizes = [math.prod(shape_of(x)) for x in self.point]
        self.size = sum(self.sizes)
        self.dtype = np.result_type(*[dtype_of(x) for x in self.point]) if self.point else np.dtype(float)

    def probes(self, key: Any, count: int, kind: str) -> Array:
        """Random vectors with independent elements of mean 0 and variance 1."""
        draw = random.rademacher if kind == "rademacher" else random.normal
        return draw(key, (count, self.size), self.dtype)

    def applied(self, vectors: Array) -> Array:
        """The matrix applied to each row of an array."""
        count = shape_of(vectors)[0]
        if not self.size:
            return vectors

        def product(vector: Array) -> Sequence[Array]:
            return [self._product(vector)]

        options = self.options
        label = f"{self.transform} {name_of(self.function)}"
        return over_vectors(product, vectors.__getitem__, count, options.chunk_size, options.progress, label)[0]

    def _product(self, vector: Array) -> Array:
        directions = []
        start = 0
        for x, size in zip(self.point, self.sizes, strict=True):
            part = reshape(vector[start : start + size], shape=shape_of(x))
            directions.append(part.astype(dtype_of(x)))
            start += size
        function = self._field if self.of == "jacobian" else grad(self._scalar)
        _, outs = jvp(function, (self.point,), (directions,))
        if self.of == "jacobian" and [*map(shape_of, outs)] != [*map(shape_of, self.point)]:
            raise ArgumentError(
                f'func.{self.transform}(of="jacobian"): {name_of(self.function)} must return the shapes of its '
                f"argument, {[*map(shape_of, self.point)]}, but it returned {[*map(shape_of, outs)]}"
            )
        flat = [reshape(x, shape=(size,)) for x, size in zip(outs, self.sizes, strict=True)]
        return flat[0] if len(flat) == 1 else concatenate(*flat, axis=0)

    def _called(self, values: Sequence[Array]) -> Any:
        args, kwargs = self.arguments.with_copies().bound(values)
        return self.function(*args, **kwargs)

    def _scalar(self, values: Sequence[Array]) -> Any:
        return scalar_output(self._called(values), self.transform, self.function, False)

    def _field(self, values: Sequence[Array]) -> list[Any]:
        leaves, spec = tree.flatten(self._called(values))
        check_same_tree(self.function, self.transform, self.spec, spec)
        return leaves

    def tree(self, vector: Array) -> Any:
        """A flat vector in the tree of the argument."""
        parts = []
        start = 0
        for x, size in zip(self.point, self.sizes, strict=True):
            part = reshape(vector[start : start + size], shape=shape_of(x))
            parts.append(as_input_type(part.astype(dtype_of(x)), x))
            start += size
        return self.options.selection.arranged(self.arguments.arranged(own(parts)))


def _with_error(estimate: Any, values: Array, count: int, with_error: bool) -> Any:
    """An estimate, with the standard error of the mean of independent values on request."""
    if not with_error:
        return estimate
    return estimate, np.std(values, axis=0, ddof=1) / math.sqrt(count)
