"""tanhsinh, nsum and cubature: SciPy's integrators of functions of arrays, differentiated in the same way as quad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate as _scipy
from scipy.integrate._cubature import CubatureResult

from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Aval, dtype_of, shape_of
from func.interpreters.core.errors import NotDifferentiableError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy import asarray
from func.scipy.integrate.integrals import Integral, real_columns, real_parts
from func.scipy.integrate.numbers import FLOAT, ArrayIntegrand, Numbers, Parameters, check_plain, known
from func.transforms.closures import is_traced
from func.transforms.custom import stop_gradient

INT = np.dtype(int)


def _positional(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and all its arguments by position."""
    args = tuple(args) if np.iterable(args) else (args,)
    if not kwargs:
        return f, args
    names, count = list(kwargs), len(args)

    def function(x: Any, *values: Any) -> Any:
        return f(x, *values[:count], **dict(zip(names, values[count:], strict=True)))

    return function, (*args, *kwargs.values())


@with_converters
def tanhsinh(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    args: Any = (),
    kwargs: Any = None,
    log: bool = False,
    maxlevel: Any = None,
    minlevel: Any = 2,
    atol: Any = None,
    rtol: Any = None,
    preserve_shape: bool = False,
    callback: Any = None,
) -> Any:
    """Integrals of an elementwise function, one for each element of the limits and `args`, with derivatives in these.

    `kwargs` are further arguments by name, with any version of SciPy. Traced values are integrated element by element,
    without `callback`.
    """
    f, args = _positional(f, args, kwargs)
    options = {"maxlevel": maxlevel, "minlevel": minlevel, "atol": atol, "rtol": rtol}
    if not Parameters((f, args)).is_traced and not holds_traced((a, b)):
        return original(_scipy.tanhsinh)(
            f, a, b, args=args, log=log, preserve_shape=preserve_shape, callback=callback, **options
        )
    if preserve_shape or callback is not None:
        raise UnsupportedFunctionError(
            f"tanhsinh with preserve_shape or callback on traced values{at_line()}\n"
            "Integrate a function of arrays with quad_vec."
        )
    loose = {**options, "atol": None, "rtol": None} if log else options

    def one(a: Any, b: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        parameters = Parameters((f, args))
        p, rest = parameters.vector(), parameters.rest()
        is_complex = dtype_of(f(_between(a, b), *args)).kind == "c"
        size = 2 if is_complex else 1

        def numbers(a: Any, b: Any, p: Array, *rest: Array) -> Any:
            f, args = parameters.rebuilt(p, rest)
            plain = _plain(f, "tanhsinh")
            return original(_scipy.tanhsinh)(plain, a, b, args=args, log=log, **options)

        def compute(a: Any, b: Any, p: Array, *rest: Array) -> Any:
            result = numbers(a, b, p, *rest)
            others = [result.error, result.status, result.nfev, result.maxlevel]
            return real_parts(result.integral, is_complex), others

        avals = [Aval((), FLOAT), *[Aval((), INT)] * 3]
        if not log:

            def call(x: Any, p: Array, *rest: Array) -> Array:
                f, args = parameters.rebuilt(p, rest)
                return real_columns(f(x, *args), is_complex)

            integral = Integral(
                ArrayIntegrand(call, size), _by_tanhsinh(loose), (a, b), numbers=Numbers(compute, size, avals)
            )
            value, *others = integral.value(p, rest)
            return (value[0] + 1j * value[1] if is_complex else value[0]), *others
        if is_complex:
            raise UnsupportedFunctionError(f"tanhsinh with log=True of a complex function on traced values{at_line()}")
        held = Numbers(compute, 1, avals)
        level, *others = held.on(*[stop_gradient(x) for x in (a, b, p)], *rest)

        # log ∫ exp f = c + log ∫ exp(f - c), where c is the number on the left side.
        def relative(x: Any, p: Array, c: Array, *rest: Array) -> Array:
            f, args = parameters.rebuilt(p, rest)
            return real_columns(np.exp(f(x, *args) - c), False)

        integral = Integral(ArrayIntegrand(relative, 1), _by_tanhsinh(loose), (a, b))
        rest_of_log = np.log(np.abs(integral.value(p, [level[0], *rest])[0][0]))
        return level[0] + (rest_of_log - stop_gradient(rest_of_log)), *others

    integral, error, status, nfev, level = _elementwise(one, (a, b), args)
    return _scipy._tanhsinh._RichResult(
        success=status == 0, status=status, integral=integral, error=error, maxlevel=level, nfev=nfev
    )


def _by_tanhsinh(options: dict[str, Any]) -> Any:
    """The rule for the components of an integrand of one number."""

    def rule(integrand: Callable[[Any], Array], size: int, a: Any, b: Any) -> Array:
        def rows(x: Any) -> Any:
            return np.reshape(asarray(integrand(np.reshape(x, (size, -1))[0])), np.shape(x))

        ends = [np.full(size, float(end)) for end in (a, b)]
        return asarray(original(_scipy.tanhsinh)(rows, *ends, preserve_shape=True, **options).integral)

    return rule


def _plain(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *x: check_plain(f(*x), name)


def _between(a: Any, b: Any) -> Any:
    numbers = [known(end) if is_traced(end) else end for end in (a, b)]
    finite = [float(end) for end in numbers if end is not None and np.isfinite(end)]
    return np.float64(sum(finite) / len(finite) + (1.0 if len(finite) == 1 else 0.0)) if finite else np.float64(0.5)


def _elementwise(one: Callable[..., Any], ends: Sequence[Any], args: tuple[Any, ...]) -> list[Any]:
    """Results of `one` for each element of broadcast arrays, stacked in their shape."""
    arrays = [asarray(x) for x in (*ends, *args)]
    arrays = [x if x.dtype.kind in "fc" else x.astype(float) for x in arrays]
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    flat = [np.ravel(np.broadcast_to(x, shape)) for x in arrays]
    results = []
    for i in range(int(np.prod(shape))):
        element = [x[i] for x in flat]
        results.append(one(*element[: len(ends)], tuple(element[len(ends) :])))
    columns = zip(*results, strict=True)
    return [np.reshape(np.stack(column), shape)[()] for column in columns]


@with_converters
def nsum(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    step: Any = 1,
    args: Any = (),
    kwargs: Any = None,
    log: bool = False,
    maxterms: Any = (2**20),
    tolerances: Any = None,
) -> Any:
    """Sums of an elementwise function, with derivatives in `a`, `step`, `args` and everything the function reaches.

    The number of terms, which `b` determines, has no derivative. Traced values are summed element by element.
    """
    f, args = _positional(f, args, kwargs)
    if not Parameters((f, args)).is_traced and not holds_traced((a, b, step)):
        return original(_scipy.nsum)(f, a, b, step=step, args=args, log=log, maxterms=maxterms, tolerances=tolerances)
    if log:
        raise UnsupportedFunctionError(
            f"nsum with log=True on traced values{at_line()}\nSum np.exp of the function, and take np.log of the sum."
        )
    options = {"maxterms": maxterms, "tolerances": tolerances}

    def one(a: Any, b: Any, step: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        start = known(a) if is_traced(a) else a
        moves = is_traced(a) or is_traced(step)
        if moves and start is not None and np.isinf(start):
            raise NotDifferentiableError(
                f"nsum from a traced start that is infinite, or with a traced step from there{at_line()}\n"
                "Sum f(k * step) over integers k, with the step as a parameter."
            )
        parameters = Parameters((f, args, a, step) if moves else (f, args))
        # The sum is over whole numbers j where the terms move, f(a + j * step).
        a, b, step = [stop_gradient(x) if is_traced(x) else x for x in (a, b, step)]
        low, high = (0.0, np.floor((b - a) / step)) if moves else (a, b)

        def compute(low: Any, high: Any, p: Array, a: Any, b: Any, step: Any, *rest: Array) -> Any:
            f, args, *_ = parameters.rebuilt(p, rest)
            result = original(_scipy.nsum)(_plain(f, "nsum"), a, b, step=step, args=args, **options)
            return np.reshape(result.sum, (1,)), [result.error, result.status, result.nfev]

        def term(x: Any, p: Array, a: Any, b: Any, step: Any, *rest: Array) -> Array:
            f, args, *moving = parameters.rebuilt(p, rest)
            return real_columns(f(moving[0] + x * moving[1] if moves else x, *args), False)

        def by_nsum(term: Callable[[Any], Array], size: int, low: Any, high: Any) -> Array:
            def component(i: int) -> Callable[[Any], Any]:
                return lambda x: np.reshape(asarray(term(np.ravel(x)))[i], np.shape(x))

            spacing = 1.0 if moves else float(step)
            return np.array(
                [original(_scipy.nsum)(component(i), low, high, step=spacing, **options).sum for i in range(size)]
            )

        avals = [Aval((), FLOAT), Aval((), INT), Aval((), INT)]
        total = Integral(
            ArrayIntegrand(term, 1), by_nsum, (low, high), has_moving_limits=False, numbers=Numbers(compute, 1, avals)
        )
        value, *others = total.value(parameters.vector(), [a, b, step, *parameters.rest()])
        return value[0], *others

    total, error, status, nfev = _elementwise(one, (a, b, step), args)
    return _scipy._tanhsinh._RichResult(sum=total, error=error, status=status, success=status == 0, nfev=nfev)


@with_converters
def cubature(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    *,
    rule: Any = "gk21",
    rtol: Any = 1e-8,
    atol: Any = 0,
    max_subdivisions: Any = 10000,
    args: Any = (),
    workers: Any = 1,
    points: Any = None,
) -> Any:
    """Integral of a function of points (rows) over a box, with derivatives in the box, `args` and the closure of `f`.

    For the derivative the box is mapped to the unit cube. On traced values the result has no `regions`.
    """
    options = {"rule": rule, "rtol": rtol, "atol": atol, "max_subdivisions": max_subdivisions, "points": points}
    args = tuple(args)
    if not Parameters((f, args)).is_traced and not holds_traced((a, b, points)):
        return original(_scipy.cubature)(f, a, b, args=args, workers=workers, **options)
    if holds_traced(points):
        raise NotDifferentiableError(
            f"cubature takes points that are traced{at_line()}\n"
            "Split the integral at such a point, with the point as a limit."
        )
    moves = holds_traced((a, b))
    low, high = np.broadcast_arrays(asarray(a).astype(float), asarray(b).astype(float))
    parameters = Parameters((f, args, low, high))
    infinite = [known(end) if is_traced(end) else end for end in (low, high)]
    is_infinite = [np.zeros(low.shape, bool) if end is None else np.isinf(end) for end in infinite]
    like = f(np.full((1, *low.shape), 0.5) if moves else _inside_box(low, high), *args)
    shape, is_complex = shape_of(like)[1:], dtype_of(like).kind == "c"
    size = int(np.prod(shape)) * (2 if is_complex else 1)

    def place(u: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """The point of the box for the point u of the unit cube, and the ratio of volumes."""
        if not moves:
            return u, np.ones(())
        from_low, from_high = is_infinite[1] & ~is_infinite[0], is_infinite[0] & ~is_infinite[1]
        low, high = np.where(is_infinite[0], 0.0, low), np.where(is_infinite[1], 0.0, high)
        width = np.where(is_infinite[0] | is_infinite[1], 1.0, high - low)
        start = np.where(from_low, low, np.where(from_high, high, np.where(is_infinite[0], 0.0, low)))
        return start + width * u, np.prod(width)

    def call(u: Any, p: Array, *rest: Array) -> Array:
        f, args, low, high = parameters.rebuilt(p, rest)
        x, volume = place(u, low, high)
        return real_columns(np.moveaxis(f(x, *args), 0, -1), is_complex) * volume

    def compute(_a: Any, _b: Any, p: Array, *rest: Array) -> Any:
        f, args, low, high = parameters.rebuilt(p, rest)
        result = original(_scipy.cubature)(_plain(f, "cubature"), low, high, args=args, **options)
        error = result.error[()] if shape else result.error
        converged = int(result.status == "converged")
        return real_parts(result.estimate, is_complex), [np.real(error), result.subdivisions, converged]

    def by_cubature(integrand: Callable[[Any], Array], size: int, _a: Any, _b: Any) -> Array:
        ends = [np.where(is_infinite[0], -np.inf, 0.0), np.where(is_infinite[1], np.inf, 1.0)] if moves else [low, high]
        chosen = {**options, "points": None} if moves else options
        return asarray(original(_scipy.cubature)(lambda x: asarray(integrand(x)).T, *ends, **chosen).estimate)

    if moves and points is not None:
        raise UnsupportedFunctionError(
            f"cubature with points and limits that are traced{at_line()}\nSplit the integral at the points."
        )
    avals = [Aval(shape, FLOAT), Aval((), INT), Aval((), INT)]
    integral = Integral(
        ArrayIntegrand(call, size),
        by_cubature,
        (0.0, 0.0),
        has_moving_limits=False,
        numbers=Numbers(compute, size, avals),
    )
    value, error, subdivisions, converged = integral.value(parameters.vector(), parameters.rest())
    if is_complex:
        value = value[: size // 2] + 1j * value[size // 2 :]
    is_done = known(converged)
    return CubatureResult(
        estimate=np.reshape(value, shape)[()],
        error=error,
        status="converged" if is_done is None or is_done else "not_converged",
        subdivisions=subdivisions,
        regions=[],
        rtol=rtol,
        atol=atol,
    )


def _inside_box(low: Any, high: Any) -> Any:
    return np.array([[_between(*ends) for ends in zip(low, high, strict=True)]])
