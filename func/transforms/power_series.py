"""Taylor mode for users: derivatives of any order along a curve, at the cost of the order squared."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters import nan_safe
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, dtype_of, is_inexact, shape_of, zeros_like
from func.interpreters.core.errors import ArgumentError, DifferentiatedInputError, TangentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.elementwise.table import multiply
from func.interpreters.primitives.structural.shapes import full_like, reshape
from func.interpreters.structural_zeros import StructuralZeros
from func.interpreters.taylor import Taylor
from func.transforms.arguments import FlatCall, Selection, differentiable, place_arguments
from func.transforms.boundary import (
    Intercepts,
    array_leaf,
    as_result,
    check_callable,
    own,
    suggestion,
    with_interception,
    zero_result,
)
from func.transforms.forward import fit_tangent
from func.transforms.transformed import keeps_parameters, transform
from func.transforms.vmapping import vmap


@without_engine_frames
def jet(f: Callable[..., Any], primals: Any, series: Any, *, intercept: Intercepts = False) -> tuple[Any, Any]:
    """The derivatives of a function along a curve: (out, series_out).

    The curve x(t) has the point `primals` and the derivatives `series` of order 1 … K at t = 0. `series_out` are the
    derivatives of order 1 … K of f(x(t)) at t = 0. They are derivatives, not Taylor coefficients: series = [v, 0, 0] is
    the line x + t v. Costs O(K²) for elementwise work, where nested `jvp` takes 2ᴷ.

    Args:
        f: The function; plain NumPy code.
        primals: Tuple of arguments.
        series: Tuple with one entry per argument: the argument's tree, with a list of K derivatives in the place of
            each array. Every derivative has its array's shape and dtype; a number means a constant array.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Returns:
        The output, and its tree with a list of K derivatives in the place of each array.

    Raises:
        TangentError: A derivative differs from its primal in shape or dtype, or the lists in their length.

    Source: J. Bettencourt, M. Johnson, D. Duvenaud (2019), "Taylor-mode automatic differentiation for higher-order
    derivatives in JAX".

    Example:
        >>> import numpy as np, func
        >>> func.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0],))
        (np.float64(1.0), [np.float64(1.0), np.float64(1.0), np.float64(1.0)])
        >>> func.jet(lambda x, y: x * y, (2.0, 3.0), ([1.0, 0.0], [1.0, 0.0]))  # (2 + t) (3 + t)
        (np.float64(6.0), [np.float64(5.0), np.float64(2.0)])
    """
    check_callable(f, "jet")
    f = with_interception(f, intercept)
    call = _call_at(f, primals, "jet")
    order, derivatives = _series_argument(call, primals, series)
    check_factorial(order, "jet")
    values, outs = _expanded(call, order, [_scaled(own, inverse=True) for own in derivatives], "jet")
    return _handed_out(call, values, [_scaled(own) for own in outs])


@without_engine_frames
def taylor(f: Callable[..., Any], x: Any, v: Any, order: int, *, intercept: Intercepts = False) -> list[Any]:
    """The Taylor coefficients of t -> f(x + t v) at t = 0: a list [c₀, c₁, …] of order + 1 trees like f(x).

    f(x + t v) ≈ c₀ + c₁ t + c₂ t² + …, so cₖ is the k-th derivative along v, divided by k!.

    Args:
        f: A function of one argument.
        x: The point, a tree of arrays.
        v: The direction, of the same tree, shapes and dtypes; a number means a constant array.
        order: The number of the last coefficient.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Example:
        >>> import numpy as np, func
        >>> func.taylor(lambda x: 1 / (1 - x), 0.0, 1.0, order=3)
        [np.float64(1.0), np.float64(1.0), np.float64(1.0), np.float64(1.0)]
    """
    check_callable(f, "taylor")
    f = with_interception(f, intercept)
    _check_order(order, "taylor")
    call = _call_at(f, (x,), "taylor")
    directions, spec = tree.flatten(v)
    if spec != tree.structure(x):
        raise TangentError(f"func.taylor: v has the tree {tree.shown(spec)}, but x {tree.shown(tree.structure(x))}")
    fitted = [
        _fitted(leaf, direction, path, "taylor")
        for leaf, direction, path in zip(call.arguments.leaves, directions, tree.path_names(x, "x"), strict=True)
    ]
    coefficients = [[fitted[i], *[ZERO] * (order - 1)][:order] for i in call.arguments.active]
    values, outs = _expanded(call, order, coefficients, "taylor")
    columns = [values, *[[own[k] for own in outs] for k in range(order)]]
    owned = own([x for column in columns for x in column])
    return [tree.unflatten(call.out_spec, owned[i * len(values) : (i + 1) * len(values)]) for i in range(order + 1)]


@without_engine_frames
def taylor_flow(f: Callable[..., Any], y0: Any, order: int, *, intercept: Intercepts = False) -> list[Any]:
    """The Taylor coefficients of the solution of y′ = f(y), y(0) = y0: a list [c₀, c₁, …] of order + 1 trees like y0.

    y(t) ≈ c₀ + c₁ t + c₂ t² + …. The function runs once for each order. For y′ = f(t, y), make t a part of y, with the
    derivative 1.0.

    Args:
        f: The right-hand side, a function of one argument; plain NumPy code.
        y0: The initial value, a tree of arrays. f(y0) has its tree, shapes and dtypes.
        order: The number of the last coefficient.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        TangentError: f(y0) differs from y0 in tree, shape or dtype (a ValueError).
        DifferentiatedInputError: y0 has integers (a TypeError).

    Source: the recurrence (k + 1) cₖ₊₁ = [f(c₀ + c₁ t + … + cₖ tᵏ)]ₖ; E. Hairer, S. P. Nørsett, G. Wanner (1993),
    "Solving Ordinary Differential Equations I", section I.8.

    Example:
        >>> import numpy as np, func
        >>> func.taylor_flow(lambda y: y ** 2, 1.0, order=4)  # y(t) = 1 / (1 - t)
        [np.float64(1.0), np.float64(1.0), np.float64(1.0), np.float64(1.0), np.float64(1.0)]
    """
    check_callable(f, "taylor_flow")
    f = with_interception(f, intercept)
    _check_order(order, "taylor_flow")
    arguments = differentiable((y0,), {}, range(1), "taylor_flow", root="y0")
    leaves = [np.asarray(x)[()] if type(x) in PYTHON_SCALARS else x for x in arguments.values()]
    spec, names = tree.structure(y0), tree.path_names(y0, "f(y0)")
    if len(leaves) < len(names):
        raise DifferentiatedInputError("func.taylor_flow: y0 has integers; make all of its arrays floating point")
    series: list[list[Any]] = [[] for _ in leaves]
    for k in range(order):
        call = FlatCall(f, "taylor_flow", arguments)
        known = [_without_gaps(x, own) for x, own in zip(leaves, series, strict=True)]
        values, outs = _expanded(call, k, known, "taylor_flow")
        if call.out_spec != spec:
            raise TangentError(
                f"func.taylor_flow: f(y0) has the tree {tree.shown(call.out_spec)}, but y0 {tree.shown(spec)}"
            )
        for x, terms, name, slope, own_outs in zip(leaves, series, names, values, outs, strict=True):
            fitted = _fitted(x, own_outs[-1] if k else slope, name, "taylor_flow")
            terms.append(fitted if fitted is ZERO else multiply(fitted, 1 / (k + 1)))
    columns = [leaves, *zip(*series, strict=True)]
    owned = own(
        [
            zero_result(x) if term is ZERO else as_result(term)
            for column in columns
            for x, term in zip(leaves, column, strict=True)
        ]
    )
    return [tree.unflatten(spec, owned[k * len(leaves) : (k + 1) * len(leaves)]) for k in range(order + 1)]


@keeps_parameters
@transform
def derivatives(
    f: Callable[..., Any],
    order: int = 1,
    argnums: int = 0,
    *,
    argnames: str | None = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The derivatives of a function of one real number: `derivatives(f, n)(x)` is (f(x), f′(x), …, f⁽ⁿ⁾(x)).

    For an array x, f takes one element at a time, as under `vmap`. Each derivative has the shape of x, followed by that
    of the output. All orders together cost O(n²). Further arguments of f are constants.

    Args:
        f: The function; plain NumPy code.
        order: The order of the last derivative.
        argnums: Position of the number or array.
        argnames: Its keyword, in the place of a position.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        DifferentiatedInputError: x is not a real floating point number or array.

    Example:
        >>> import numpy as np, func
        >>> func.derivatives(np.exp, 3)(0.0)
        (np.float64(1.0), np.float64(1.0), np.float64(1.0), np.float64(1.0))
        >>> func.derivatives(lambda x: x ** 2, 2)(np.array([1.0, 3.0]))
        (array([1., 9.]), array([2., 6.]), array([2., 2.]))
    """
    _check_order(order, "derivatives", f)
    check_factorial(order, "derivatives")
    chosen: Any = argnums if argnames is None else argnames
    if not isinstance(chosen, (int, np.integer) if argnames is None else str):
        raise TypeError(
            "func.derivatives differentiates by one number, so argnums must be an int and argnames a string, not "
            f"{chosen!r}; func.taylor gives the derivatives along a direction"
        )
    selection = Selection(f, "derivatives", argnums, argnames)

    def derivatives_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = selection.places(args, kwargs)[-1]
        x = array_leaf(args[place] if isinstance(place, int) else kwargs[place], "x", "derivatives")
        if not is_inexact(dtype_of(x)) or dtype_of(x).kind == "c":
            raise DifferentiatedInputError(
                f"func.derivatives differentiates by a real number, but x has dtype {dtype_of(x)}; "
                + (
                    "func.taylor gives the derivatives along a direction in the complex plane"
                    if dtype_of(x).kind == "c"
                    else "pass a float, or convert the array with .astype(float)"
                )
            )

        def at(number: Any) -> tuple[Any, ...]:
            call = _call_at(functools.partial(_at_number, f, args, kwargs, place), (number,), "derivatives")
            coefficients = [[full_like(number, 1), *[ZERO] * (order - 1)][:order]]
            values, outs = _expanded(call, order, coefficients, "derivatives")
            columns = [values, *zip(*[_scaled(own) for own in outs], strict=True)] if order and outs else [values]
            owned = own([y for column in columns for y in column])
            count = len(values)
            return tuple([tree.unflatten(call.out_spec, owned[i * count : (i + 1) * count]) for i in range(order + 1)])

        shape = shape_of(x)
        if not shape:
            return at(x)
        results = vmap(at)(x if len(shape) == 1 else reshape(x, shape=(math.prod(shape),)))
        if len(shape) == 1:
            return results
        return tree.map(lambda y: reshape(y, shape=(*shape, *shape_of(y)[1:])), results)

    return derivatives_of


def _at_number(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], place: int | str, number: Any
) -> Any:
    """A call with a number in the place of one argument."""
    if isinstance(place, str):
        return function(*args, **{**kwargs, place: number})
    return function(*args[:place], number, *args[place + 1 :], **kwargs)


def _check_order(order: Any, transform: str, function: Callable[..., Any] | None = None) -> None:
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)):
        hint = "" if function is None else suggestion(order, transform, function)
        raise TypeError(f"func.{transform}: order must be an int, not {order!r}{hint}")
    if order < 0:
        raise ArgumentError(f"func.{transform}: order must be 0 or more, not {order}")


def check_factorial(order: int, transform: str) -> None:
    """Raise if k! overflows double precision: a derivative is k! times its Taylor coefficient."""
    if order > MAX_FACTORIAL:
        raise ArgumentError(
            f"func.{transform} gives derivatives up to order {MAX_FACTORIAL}, not {order}, since {order}! overflows; "
            "func.taylor gives Taylor coefficients of any order"
        )


MAX_FACTORIAL = 170


def _call_at(function: Callable[..., Any], primals: Any, transform: str) -> FlatCall:
    if not isinstance(primals, (tuple, list)):
        raise TypeError(
            f"func.{transform}: primals must be a tuple with one entry per argument, not {type(primals).__name__}; "
            "write (x,) for a single argument"
        )
    root = "primals[{}]" if transform == "jet" else "x"
    arguments = differentiable(primals, {}, range(len(primals)), transform, needs_every=False, root=root)
    return FlatCall(function, transform, arguments)


def _series_argument(call: FlatCall, primals: Sequence[Any], series: Any) -> tuple[int, list[list[Any]]]:
    """The order, and the derivatives of each active leaf."""
    if not isinstance(series, (tuple, list)) or len(series) != len(primals):
        raise TangentError(
            f"func.jet: series must be a tuple with one entry per primal ({len(primals)}), each a list of derivatives; "
            "write ([v, 0.0],) for a single argument"
        )
    lists: list[Any] = []
    paths: list[str] = []
    for i, (primal, entry) in enumerate(zip(primals, series, strict=True)):
        spec = tree.structure(primal)
        try:
            lists.extend(spec.flatten_up_to(entry))
        except ValueError:
            raise TangentError(
                f"func.jet: series[{i}] must have the tree of its primal, {tree.shown(spec)}, with a list of "
                "derivatives in the place of each array"
            ) from None
        paths.extend(tree.path_names(primal, f"primals[{i}]"))
    for path, terms in zip(paths, lists, strict=True):
        if not isinstance(terms, (list, tuple)):
            raise TangentError(
                f"func.jet: the series of {path} must be a list of derivatives, not {type(terms).__name__}"
            )
    lengths = {len(terms) for terms in lists}
    if len(lengths) > 1:
        counts = ", ".join([f"{path} has {len(terms)}" for path, terms in zip(paths, lists, strict=True)])
        raise TangentError(f"func.jet: all series must have the same number of derivatives, but {counts}")
    order = lengths.pop() if lengths else 0
    leaves = call.arguments.leaves
    fitted = [
        [_fitted(leaf, term, path, "jet") for term in terms]
        for leaf, terms, path in zip(leaves, lists, paths, strict=True)
    ]
    return order, [_without_gaps(leaves[i], fitted[i]) for i in call.arguments.active]


def _without_gaps(primal: Array, terms: list[Any]) -> list[Any]:
    """Zeros before a nonzero derivative are numbers: x(t) = t² is not constant, though it begins with zeros."""
    last = max([i for i, term in enumerate(terms) if term is not ZERO], default=-1)
    return [zeros_like(primal) if term is ZERO and i < last else term for i, term in enumerate(terms)]


def _fitted(primal: Array, derivative: Any, path: str, transform: str) -> Any:
    """A derivative that fits its primal; ZERO for one of zeros."""
    if type(derivative) in (int, float):
        if derivative == 0:
            return ZERO
        if is_inexact(dtype_of(primal)):
            return full_like(primal, derivative)
    fitted = fit_tangent(primal, derivative, path, transform)
    return (
        ZERO if isinstance(fitted, (np.ndarray, np.generic)) and type(fitted) in _HOST and not fitted.any() else fitted
    )


_HOST = (np.ndarray, np.float64, np.float32, np.float16, np.complex128, np.complex64)


def _expanded(
    call: FlatCall, order: int, coefficients: list[list[Any]], transform: str
) -> tuple[list[Array], list[list[Any]]]:
    """The values of the outputs, and their coefficients, zeros included."""
    primals = call.arguments.values()

    def run(structural: StructuralZeros | None) -> tuple[list[Array], list[Any]]:
        interpreter = Taylor(transform, order, structural)
        with TransformScope(interpreter), running(interpreter):
            lifted = [interpreter.lift(x, own) for x, own in zip(primals, coefficients, strict=True)]
            place_arguments(interpreter, call.function, call.arguments, lifted, primals)
            outs = [interpreter.unpack(out) for out in call.outputs(interpreter, lifted)]
        return [out[0] for out in outs], [x for out in outs for x in out[1:]]

    seeds = [x for own in coefficients for x in own if x is not ZERO]
    values, flat = nan_safe.push(run, primals, seeds)
    outs = [flat[i * order : (i + 1) * order] for i in range(len(values))]
    return values, [
        [zero_result(value) if x is ZERO else x for x in own] for value, own in zip(values, outs, strict=True)
    ]


def _scaled(coefficients: Sequence[Any], inverse: bool = False) -> list[Any]:
    """Coefficients as derivatives, k! times as large; or derivatives as coefficients."""
    return [
        x
        if x is ZERO or k < 2 or not is_inexact(dtype_of(x))
        else multiply(x, 1 / math.factorial(k) if inverse else float(math.factorial(k)))
        for k, x in enumerate(coefficients, 1)
    ]


def _handed_out(call: FlatCall, values: list[Array], derivatives: list[list[Array]]) -> tuple[Any, Any]:
    order = len(derivatives[0]) if derivatives else 0
    owned = own([*values, *[x for own_terms in derivatives for x in own_terms]])
    terms = owned[len(values) :]
    lists = [terms[i * order : (i + 1) * order] for i in range(len(values))]
    return tree.unflatten(call.out_spec, owned[: len(values)]), tree.unflatten(call.out_spec, lists)
