"""Builders of primitives whose values scipy.special computes. It is imported at the first call, since that is slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func.backends.array_helpers.special import of_order, result_of
from func.backends.array_helpers.strides import iterated_order
from func.backends.quiet import quietly
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, add_tangents, dtype_of, general, shape_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.parameters import ORDER
from func.interpreters.host.source import at_line
from func.interpreters.primitives import costs
from func.interpreters.primitives.elementwise.builder import Elementwise, add, elementwise, multiply
from func.interpreters.primitives.elementwise.partials import Rule
from func.interpreters.primitives.elementwise.pointwise import ElementwiseConstant, elementwise_constant
from func.interpreters.primitives.elementwise.table import absolute, equal, less, power
from func.interpreters.primitives.scipy_functions import reporting_missing, special
from func.interpreters.primitives.structural.shapes import align_ranks, broadcast, convert, full_like, where


class PublicFunction(NamedTuple):
    """A primitive as a function of `func.special`: the names of its arguments, and its docstring."""

    primitive: Primitive
    arguments: Sequence[str]
    doc: str


PUBLIC: dict[str, PublicFunction] = {}
"""Those under SciPy's names."""


def publish(primitive: Primitive, arguments: str, doc: str) -> None:
    """Make a primitive a public function of arguments with these names, under the name that SciPy has for it."""
    PUBLIC[primitive.scipy or primitive.name] = PublicFunction(primitive, arguments.split(), doc)


def _ufunc_impl(name: str) -> Callable[..., Array]:
    def impl(xp: Any, *args: Array) -> Array:
        return special(xp, name)(*args)

    return impl


def _bind_at_first_call(primitive: Primitive, name: str) -> None:
    """Look SciPy's function up at the first call and keep it: its module is slow to import, and calls must be fast."""

    def first_call(*args: Array) -> Array:
        primitive.numpy = function = special(np, name)
        return function(*args)

    primitive.numpy = first_call


def special_primitive(
    name: str,
    *partials: Rule,
    ufunc: str | None = None,
    impl: Callable[..., Array] | None = None,
    cost: float = costs.SPECIAL,
    is_complex: bool = False,
) -> Elementwise:
    """An elementwise primitive that scipy.special computes; `is_complex` if it is complex for real arguments."""
    if impl is not None:
        return elementwise(name, *partials, impl=impl, cost=cost)
    scipy = ufunc or name
    primitive = elementwise(name, *partials, impl=_ufunc_impl(scipy), cost=cost, scipy=scipy)
    _bind_at_first_call(primitive, scipy)
    if not is_complex:
        primitive.keeps_dtypes(np.float64, np.float32)
    return primitive


def special_constant(name: str, arity: int) -> ElementwiseConstant:
    """A piecewise constant function of scipy.special."""
    primitive = elementwise_constant(name, arity, impl=_ufunc_impl(name), cost=costs.SPECIAL, scipy=name)
    _bind_at_first_call(primitive, name)
    primitive.keeps_dtypes(np.float64, np.float32)
    return primitive


def missing(function: str, argument: str) -> Callable[[], Array]:
    """A partial that raises when it is evaluated."""

    def raise_missing() -> Array:
        raise NotDifferentiableError(f"no derivative of {function} with respect to {argument} is defined{at_line()}")

    return raise_missing


def check_real(function: str, x: Array) -> None:
    """Raise for complex arguments of a function that is not holomorphic."""
    if dtype_of(x).kind == "c":
        raise NotDifferentiableError(
            f"{function} of complex numbers is not holomorphic, so it has no complex derivative{at_line()}"
        )


def ordered(name: str, impl: Callable[..., Array]) -> Primitive:
    """A primitive with a parameter `order`: the function's derivative of that order, each computed by `impl` alone."""

    checked = reporting_missing(impl, "special")

    def typed_impl(xp: Any, x: Array, *, order: int) -> Array:
        return of_order(xp, checked, x, order)

    def aval(x: Aval, *, order: int) -> Aval:
        return Aval(x.shape, result_of(x.dtype))

    def jvp(primals: Sequence[Array], tangents: Sequence[Any], *, order: int) -> tuple[Array, Array]:
        (x,), (dx,) = primals, tangents
        out = primitive(x, order=order)
        return out, convert(multiply(primitive(x, order=order + 1), dx), dtype=dtype_of(out))

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
        return primitive(args[0], **params)

    primitive = general(
        name,
        typed_impl,
        aval=aval,
        parameters={"order": ORDER},
        batch=batch,
        jvp=jvp,
        cost=costs.SPECIAL,
        layout=iterated_order,
    )
    return primitive


def _for_slopes(operands: Sequence[Array], out: Array) -> list[Array]:
    """Operands for slopes, which compute with them: integers with a sign and all digits, numbers as exact as `out`."""
    precise = np.dtype(np.finfo(dtype_of(out)).dtype) if dtype_of(out).kind in "fc" else np.dtype(np.float64)

    def fitted(x: Array) -> Array:
        dtype = dtype_of(x)
        if dtype.kind in "iub":
            return convert(x, dtype=np.dtype(np.int64))
        return convert(x, dtype=precise) if dtype.kind == "f" and dtype.itemsize < precise.itemsize else x

    return [fitted(x) for x in operands]


def _result_dtypes(function: Any, impl: Any, key: Any, outs: int) -> list[np.dtype[Any]]:
    """The dtypes of what a function gives for operands of some dtypes, which a ufunc knows without a call."""
    if isinstance(function, np.ufunc):
        kinds = {"b": bool, "i": int, "f": float, "c": complex}
        given = [kinds[dtype.kind] if weak else dtype for dtype, weak in key]
        return list(function.resolve_dtypes((*given, *[None] * outs))[len(given) :])
    probes = [dtype.type(1).item() if weak else dtype.type(1) for dtype, weak in key]
    results = quietly(impl, np, *probes)
    return [np.asarray(out).dtype for out in (results if outs > 1 else [results])]


def by_name(
    name: str, arguments: str, *, outs: int = 1, impl: Any = None, doc: str | None = None, **partials: Any
) -> Primitive:
    """A primitive of named arguments, which broadcast, with one or several outputs, by the rules of its partials.

    A partial is a function of all arguments and all outputs, and gives the slope of the output, or of each output. An
    argument without one has no derivative, and raises where it is needed. A function of SciPy is public, unless its
    docstring is empty.
    """
    names = arguments.split()
    computed = impl or _ufunc_impl(name)
    scipy: Any = None if impl else name
    dtypes: dict[Any, list[np.dtype[Any]]] = {}

    def typed_impl(xp: Any, *args: Array) -> Any:
        out = computed(xp, *args)
        return out if outs == 1 else tuple(out)

    def aval(*avals: Aval) -> Any:
        key = tuple([(a.dtype, a.weak) for a in avals])
        if key not in dtypes:
            dtypes[key] = _result_dtypes(scipy and special(np, scipy), typed_impl, key, outs)
        shape = np.broadcast_shapes(*[a.shape for a in avals])
        found = [Aval(shape, dtype) for dtype in dtypes[key]]
        return tuple(found) if outs > 1 else found[0]

    def jvp(primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Any, Any]:
        results = primitive(*primals)
        values = list(results) if outs > 1 else [results]
        dots: list[Any] = [ZERO] * outs
        for argument, tangent in zip(names, tangents, strict=True):
            if tangent is ZERO:
                continue
            if argument not in partials:
                missing(name, argument)()
            slopes = partials[argument](*_for_slopes(primals, values[0]), *values)
            for i, slope in enumerate(slopes if outs > 1 else [slopes]):
                dots[i] = add_tangents(dots[i], multiply(slope, tangent))
        dots = [dot if dot is ZERO else _fitted(dot, out) for dot, out in zip(dots, values, strict=True)]
        return results, (tuple(dots) if outs > 1 else dots[0])

    def batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
        return primitive(*align_ranks(size, batched, args))

    primitive = general(
        name,
        typed_impl,
        aval=aval,
        batch=batch,
        jvp=jvp,
        multiple=outs > 1,
        cost=costs.SPECIAL,
        scipy=scipy,
        layout=iterated_order,
    )
    if impl is None and doc != "":
        publish(primitive, arguments, doc or f"scipy.special.{name} of traced and plain arrays.")
    return primitive


def _fitted(dot: Array, out: Array) -> Array:
    """A tangent in the dtype and the shape of an output."""
    dot, shape = convert(dot, dtype=dtype_of(out)), shape_of(out)
    return dot if shape_of(dot) == shape else broadcast(dot, shape=shape)


def near_zero(
    x: Array,
    coefficients: Sequence[float],
    elsewhere: Callable[[Array], Array],
    first: int = 0,
    step: int = 1,
) -> Array:
    """Σ cₖ x^(first + k step) for |x| < 1, else elsewhere(x), which has no value or no derivatives at zero.

    The coefficients go on beyond the rounding of the sum, so that high derivatives are right as well.
    """
    near = less(absolute(x), 1)
    inside = where(near, x, full_like(x, 0, ()))
    variable = power(inside, step)
    polynomial = full_like(inside, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        polynomial = add(multiply(polynomial, variable), coefficient)
    if first:
        polynomial = multiply(polynomial, power(inside, first))
    return where(near, polynomial, elsewhere(where(near, full_like(x, 1, ()), x)))


def unless_zero(x: Array, value: Array, safe: Callable[[Array], Array]) -> Array:
    """`value` where x is zero, else safe(x); safe never sees the zeros."""
    nothing = equal(x, 0)
    return where(nothing, value, safe(where(nothing, full_like(x, 1, ()), x)))


def total(*terms: Array) -> Array:
    """The sum of several terms."""
    result = terms[0]
    for term in terms[1:]:
        result = add(result, term)
    return result


def times(*factors: Array) -> Array:
    """The product of several factors."""
    result = factors[0]
    for factor in factors[1:]:
        result = multiply(result, factor)
    return result
