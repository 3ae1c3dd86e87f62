"""Second derivatives that are sums: Laplacian, divergence, diagonals; and derivatives of any order along directions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters import nan_safe
from func.interpreters.core import EVALUATE, ZERO, Array, add_tangents, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.laplace import Laplace
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.structural.shapes import full_like, move_axis, reduce_sum, reshape
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.structural_zeros import StructuralZeros
from func.transforms.arguments import Derivative, FlatCall, differentiable, place_arguments
from func.transforms.boundary import (
    Intercepts,
    as_result,
    defensive_copies,
    name_of,
    output_leaves,
    own,
    suggestion,
    zero_result,
)
from func.transforms.forward import jvp
from func.transforms.jacobians import check_chunk, over_vectors, unit_vectors
from func.transforms.power_series import check_factorial, taylor
from func.transforms.transformed import keeps_parameters, transform
from func.transforms.vmapping import chunks


@keeps_parameters
@transform
def laplacian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Laplacian: the sum of the second derivatives along all elements of the chosen arguments.

    One forward pass computes value, Jacobian and Laplacian of each intermediate result, without a Hessian. The result
    has the tree, shapes and dtypes of the output: each output element has a Laplacian.

    Args:
        f: The function; plain NumPy code. Its inputs are real; its outputs may be complex.
        argnums: Position or positions to differentiate; the sum is over the elements of all of them.
        has_aux: The function returns (output, aux); the result is then (laplacian, aux).
        argnames: Keyword arguments to differentiate.
        chunk_size: Elements of the arguments to differentiate twice at a time, to bound memory: the Jacobian of an
            intermediate result then has that many columns. The function runs once for each chunk.
        holomorphic: The inputs are complex, and the function is holomorphic: the sum of its complex derivatives f″(z).
        progress: Show a progress bar over the chunks.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        DifferentiatedInputError: A chosen argument is an integer (a TypeError).
        ArgumentError: A chosen argument is complex (a ValueError).

    Source: R. Li et al. (2023), arXiv:2307.08214.

    Example:
        >>> import numpy as np, func
        >>> func.laplacian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
        np.float64(18.0)
        >>> func.laplacian(lambda x: 1 / np.linalg.norm(x))(np.array([1.0, 2.0, 2.0])).round(12) + 0.0  # harmonic
        np.float64(0.0)
    """
    chosen = _ElementOptions("laplacian", **locals())
    return functools.partial(_laplacian, f, chosen)


class _ElementOptions(Derivative):
    """Base class of the operators: the calls, and sums or stacks over the basis of an argument."""

    def __init__(self, transform: str, f: Callable[..., Any], **options: Any) -> None:
        super().__init__(transform, f, **options)
        check_chunk(self.chunk_size, transform)
        self.label = f"{transform} {name_of(f)}"

    def call(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> FlatCall:
        """The call at arguments with real leaves to differentiate, or complex ones if holomorphic."""
        places = self.selection.places(args, kwargs)
        arguments = differentiable(args, kwargs, places, self.transform, self.kinds, function=f)
        if not self.holomorphic and any([dtype_of(x).kind == "c" for x in arguments.values()]):
            raise ArgumentError(
                f"func.{self.transform} needs real input, but an argument of {name_of(f)} is complex; pass "
                "holomorphic=True for the derivative of a holomorphic function, or differentiate with respect to its "
                "real and imaginary parts"
            )
        return FlatCall(f, self.transform, arguments, self.has_aux)

    def over_basis(
        self, function: Callable[[Array], Sequence[Array]], like: Array, outs: Sequence[Array]
    ) -> list[Array]:
        """A function of one unit vector, for all of an array's shape, stacked in front; `outs` are like its outputs."""
        size = math.prod(shape_of(like))
        if size == 0:
            return [full_like(out, 0, (0, *shape_of(out))) for out in outs]
        vectors = functools.partial(unit_vectors, like)
        return over_vectors(function, vectors, size, self.chunk_size, self.progress, self.label)


def _laplacian(f: Callable[..., Any], options: _ElementOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Laplacian of a call."""
    call = options.call(f, args, kwargs)
    values = call.arguments.values()

    def run(chosen: tuple[int, slice] | None, structural: StructuralZeros | None) -> tuple[list[Array], list[Any]]:
        """The outputs and their Laplacians with respect to all elements, or to a part of one array."""
        interpreter = Laplace(options.transform, structural)
        with TransformScope(interpreter), running(interpreter):
            if chosen is None:
                lifted = [interpreter.lift(x) if math.prod(shape_of(x)) else x for x in values]
            else:
                lifted = [interpreter.held(x) for x in values]
                lifted[chosen[0]] = _lifted_part(interpreter, values[chosen[0]], chosen[1])
            place_arguments(interpreter, f, call.arguments, lifted, values)
            pairs = [interpreter.unpack(out) for out in call.outputs(interpreter, lifted, is_repeated=True)]
        return [x for x, _ in pairs], [second for _, second in pairs]

    def pushed(chosen: tuple[int, slice] | None) -> tuple[list[Array], list[Any]]:
        return nan_safe.push(functools.partial(run, chosen), values, ())

    size = sum([math.prod(shape_of(x)) for x in values])
    if options.chunk_size is None or options.chunk_size >= size:
        ((outs, seconds),) = [pushed(None) for _ in chunks(1, 1, options.progress, options.label)]
    else:
        outs, seconds = _summed_over_parts(pushed, values, options)
    _check_outputs(f, options.transform, outs)
    full = [zero_result(x) if second is ZERO else second for x, second in zip(outs, seconds, strict=True)]
    return call.result(tree.unflatten(call.out_spec, own(full)))


def _lifted_part(interpreter: Laplace, x: Array, part: slice) -> Array:
    """An array with some elements, in C order, as inputs of the interpreter, and the others as constants."""
    flat = reshape(x, shape=(math.prod(shape_of(x)),))
    pieces = [flat[: part.start], interpreter.lift(flat[part]), flat[part.stop :]]
    return reshape(concatenate(*[piece for piece in pieces if shape_of(piece) != (0,)], axis=0), shape=shape_of(x))


def _summed_over_parts(
    pushed: Callable[[tuple[int, slice]], tuple[list[Array], list[Any]]],
    values: Sequence[Array],
    options: _ElementOptions,
) -> tuple[list[Array], list[Any]]:
    """The outputs, and the sum of their Laplacians with respect to parts of the arguments."""
    assert options.chunk_size is not None
    parts = []
    for position, x in enumerate(values):
        starts = range(0, math.prod(shape_of(x)), options.chunk_size)
        parts.extend([(position, slice(i, min(i + options.chunk_size, math.prod(shape_of(x))))) for i in starts])
    outs: list[Array] = []
    totals: list[Any] = []
    for number in chunks(len(parts), 1, options.progress, options.label):
        outs, seconds = pushed(parts[number.start])
        totals = [add_tangents(a, b) for a, b in zip(totals or [ZERO] * len(outs), seconds, strict=True)]
    return outs, totals


@keeps_parameters
@transform
def biharmonic(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Laplacian of the Laplacian, of fourth order.

    Example:
        >>> import numpy as np, func
        >>> func.biharmonic(lambda x: np.sum(x ** 2) ** 2)(np.array([1.0, 2.0]))
        np.float64(64.0)
    """
    options = locals()
    inner = _ElementOptions("biharmonic", f, argnums=argnums, argnames=argnames, holomorphic=holomorphic)

    @functools.wraps(f)
    def laplacian_of(*args: Any, **kwargs: Any) -> Any:
        return _laplacian(f, inner, args, kwargs)

    outer = _ElementOptions("biharmonic", **{**options, "f": laplacian_of})
    return functools.partial(_laplacian, laplacian_of, outer)


@keeps_parameters
@transform
def hessian_diagonal(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The second derivative along each element of the chosen arguments, without mixed ones: the Hessian's diagonal.

    For a scalar function the result has the tree and shapes of the argument. Each output of shape s gives blocks of
    shape s + argument.shape, in the output's tree outside and the argument's tree inside. Arguments as of `laplacian`;
    chunks have chunk_size elements of an argument, after one run for the outputs.

    Example:
        >>> import numpy as np, func
        >>> func.hessian_diagonal(lambda x: np.sum(x ** 3) + x[0] * x[1])(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    chosen = _ElementOptions("hessian_diagonal", **locals())

    def diagonal_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = chosen.call(f, args, kwargs)
        values = call.arguments.values()
        outs = call.outputs(EVALUATE, defensive_copies(values), is_repeated=True)
        _check_outputs(f, "hessian_diagonal", outs)
        columns = []
        for number, leaf in enumerate(values):

            def along_unit(v: Array, number: int = number, leaf: Array = leaf) -> Sequence[Array]:
                slope = functools.partial(_slope, _of_input(call, number), v)
                return jvp(slope, (leaf,), (v,))[1]  # type: ignore[no-any-return]

            shape = shape_of(leaf)
            stacks = chosen.over_basis(along_unit, leaf, outs)
            columns.append(
                [
                    as_result(reshape(move_axis(x, 0, len(shape_of(x)) - 1), shape=(*shape_of(out), *shape)))
                    for x, out in zip(stacks, outs, strict=True)
                ]
            )
        rows = [list(row) for row in zip(*columns, strict=True)]
        blocks = [chosen.selection.arranged(call.arguments.arranged(own(row))) for row in rows]
        return call.result(tree.unflatten(call.out_spec, blocks))

    return diagonal_of


@keeps_parameters
@transform
def divergence(
    f: Callable[..., Any],
    argnums: int = 0,
    has_aux: bool = False,
    *,
    argnames: str | None = None,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The divergence of a vector field: the trace of its Jacobian, a scalar.

    The output has the tree and the shapes of the argument. Options as of `hessian_diagonal`.

    Raises:
        ArgumentError: The output has another tree or shape than the argument (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.divergence(lambda x: np.sin(x) * x[0])(np.array([0.0, 1.0]))
        np.float64(0.0)
    """
    chosen = _ElementOptions("divergence", **locals())

    def divergence_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = chosen.call(f, args, kwargs)
        values = call.arguments.values()
        outs = call.outputs(EVALUATE, defensive_copies(values), is_repeated=True)
        _check_outputs(f, "divergence", outs)
        if [*map(shape_of, outs)] != [*map(shape_of, values)]:
            raise ArgumentError(
                f"func.divergence: {name_of(f)} must return the shapes of its argument, "
                f"{_shapes(values)}, but it returned {_shapes(outs)}; for the Laplacian of a scalar use func.laplacian"
            )
        (place,) = chosen.selection.places(args, kwargs)
        spec = tree.structure(args[place] if isinstance(place, int) else kwargs[place])
        check_same_tree(f, "divergence", spec, call.out_spec)
        total: Any = ZERO
        for number, leaf in enumerate(values):

            def along_unit(v: Array, number: int = number, leaf: Array = leaf) -> Sequence[Array]:
                tangent = jvp(_of_input(call, number), (leaf,), (v,))[1][number]
                return [reduce_sum(multiply(tangent, v), axes=tuple(range(len(shape_of(v)))))]

            (traces,) = chosen.over_basis(along_unit, leaf, [full_like(leaf, 0, ())])
            total = add_tangents(total, reduce_sum(traces, axes=(0,)))
        return call.result(np.float64(0.0) if total is ZERO else own([total])[0])

    return divergence_of


@keeps_parameters
@transform
def directional_derivatives(
    f: Callable[..., Any], order: int = 1, *, intercept: Intercepts = False
) -> Callable[..., Any]:
    """The derivatives of orders 0 to `order` of t ↦ f(x + t v) at t = 0, a tuple.

    Call the result as `(x, v)`, with the tree, shapes and dtypes of x in v. With several directions, `(x, v, w, ...)`,
    the result is a list with a tuple for each direction. Each direction is one pass of `func.taylor`.

    Raises:
        ArgumentError: The order is negative or not an integer (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.directional_derivatives(lambda x: np.sum(x ** 3), 3)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
        (np.float64(9.0), np.float64(3.0), np.float64(6.0), np.float64(6.0))
    """
    if not _is_order(order):
        hint = suggestion(order, "directional_derivatives", f)
        raise ArgumentError(f"func.directional_derivatives: order must be a non-negative int, not {order!r}{hint}")
    check_factorial(order, "directional_derivatives")

    def derivatives_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) < 2 or kwargs:
            raise ArgumentError(
                f"func.directional_derivatives: call it with a point and one or more directions, (x, v), not with "
                f"{len(args)} positional and {len(kwargs)} keyword arguments"
            )
        x, *directions = args
        derivatives = [_along(f, order, x, v) for v in directions]
        return derivatives if len(derivatives) > 1 else derivatives[0]

    return derivatives_of


def _is_order(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def _along(function: Callable[..., Any], order: int, x: Any, v: Any) -> tuple[Any, ...]:
    """f(x) and its derivatives along v."""
    coefficients = taylor(function, x, v, order)
    return tuple([_times_factorial(c, k) for k, c in enumerate(coefficients)])


def _times_factorial(coefficients: Any, k: int) -> Any:
    """The derivatives of order k from the Taylor coefficients of that order."""
    return tree.map(lambda c: c * float(math.factorial(k)), coefficients) if k > 1 else coefficients


def _check_outputs(function: Callable[..., Any], transform: str, outs: Sequence[Array]) -> None:
    for out in outs:
        if not is_inexact(dtype_of(out)):
            raise TypeError(
                f"func.{transform} needs floating point outputs, but {name_of(function)} returned {dtype_of(out)}"
            )


def check_same_tree(function: Callable[..., Any], transform: str, spec: Any, out_spec: Any) -> None:
    """Raise if a field has another tree than its argument: derivatives of other leaves would enter the sum."""
    if out_spec.num_leaves == spec.num_leaves and out_spec != spec:
        raise ArgumentError(
            f"func.{transform}: {name_of(function)} must return the tree of its argument, {tree.shown(spec)}, but it "
            f"returned {tree.shown(out_spec)}"
        )


def _shapes(values: Sequence[Array]) -> str:
    return ", ".join([str(shape_of(x)) for x in values]) or "nothing"


def _of_input(call: FlatCall, number: int) -> Callable[[Array], tuple[Array, ...]]:
    """The leaves of the output as a function of one input."""

    def outputs(x: Array) -> tuple[Array, ...]:
        values = call.arguments.values()
        values[number] = x
        args, kwargs = call.arguments.with_copies().bound(values)
        out = call.function(*args, **kwargs)
        return tuple(output_leaves(out[0] if call.has_aux else out, call.transform)[0])

    return outputs


def _slope(function: Callable[[Array], Any], v: Array, x: Array) -> Any:
    """The derivative of a function at x along v."""
    return jvp(function, (x,), (v,))[1]
