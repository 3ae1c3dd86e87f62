"""Adaptive integrals of functions: quad, dblquad, tplquad, nquad, quad_vec.

SciPy's codes choose their nodes by the numbers of the integrand. They run on numbers here too, and give SciPy's values.
The derivative with respect to a parameter is the integral of the integrand's derivative, by the same code with the same
options. Limits follow Leibniz's rule: see `integrals`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipy
from scipy import LowLevelCallable

from func.backends.records import Record
from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Aval, Tracer, dtype_of, shape_of
from func.interpreters.core.errors import NotDifferentiableError, UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy import asarray
from func.scipy.integrate.integrals import Integral, real_parts
from func.scipy.integrate.numbers import FLOAT, Integrand, Numbers, Parameters, check_plain, known, numbers_of
from func.scipy.kinds.traces import traces_callbacks

COMPLEX = np.dtype(complex)


@with_converters
def quad(
    func: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
    limit: Any = 50,
    points: Any = None,
    weight: Any = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: Any = 50,
    limlst: Any = 50,
    complex_func: bool = False,
) -> Any:
    """Integral of a function of one number by QUADPACK, with derivatives in limits and parameters.

    Parameters are the traced values that the integrand reaches: `args`, closures, attributes. The derivative is the
    integral of the integrand's derivative, by quad with the same options. This is wrong if the integrand jumps at a
    place that depends on a parameter. Split the integral there, at a limit. The error estimate has no derivative.

    Raises:
        NotDifferentiableError: `points` or `wvar` is traced, or a limit with a weight of kind "alg" (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> f = lambda c: func.scipy.integrate.quad(lambda x: np.exp(-c * x), 0, np.inf)[0]
        >>> round(float(func.grad(f)(2.0)), 12)
        -0.25
    """
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points, "weight": weight, "wvar": wvar,
        "wopts": wopts, "maxp1": maxp1, "limlst": limlst,
    }  # fmt: skip
    if not isinstance(args, tuple):
        args = (args,)
    parameters = None if isinstance(func, LowLevelCallable) else Parameters((func, args))
    if parameters is None or not (parameters.is_traced or holds_traced((a, b, points, wvar))):
        return original(_scipy.quad)(func, a, b, args, full_output, complex_func=complex_func, **options)
    _refuse_places(points, wvar, weight, (a, b))
    p, rest = parameters.vector(), parameters.rest()
    if complex_func and _drops_sign():
        a, b = np.where(b < a, b, a), np.where(b < a, a, b)

    def call(x: Any, p: Array, *rest: Array) -> Array:
        f, args = parameters.rebuilt(p, rest)
        return real_parts(f(x, *args), complex_func)

    def compute(a: Any, b: Any, p: Array, *rest: Array) -> Any:
        value, error = run(a, b, p, rest, 0)[:2]
        return real_parts(value, complex_func), [error]

    def run(a: Any, b: Any, p: Array, rest: Any, full_output: int) -> Any:
        f, args = parameters.rebuilt(p, rest)

        def plain(x: float) -> Any:
            out = f(x, *args)
            return check_plain(out, "quad") if type(out) is Tracer else out

        return original(_scipy.quad)(plain, float(a), float(b), (), full_output, complex_func=complex_func, **options)

    def by_components(integrand: Callable[[Any], Array], size: int, a: Any, b: Any) -> Array:
        seen: dict[float, Array] = {}

        def component(x: float, i: int) -> Any:
            if x not in seen:
                seen[x] = asarray(integrand(x))
            return seen[x][i]

        return np.array([original(_scipy.quad)(component, float(a), float(b), (i,), **options)[0] for i in range(size)])

    size = 2 if complex_func else 1
    error_dtype = COMPLEX if complex_func else FLOAT
    integral = Integral(
        Integrand(call, size),
        by_components,
        (_number(a), _number(b)),
        _weight(weight, wvar),
        numbers=Numbers(compute, size, [Aval((), error_dtype)]),
    )
    value, error = integral.value(p, rest)
    result = value[0] + 1j * value[1] if complex_func else value[0]
    if not full_output:
        return result, error
    numbers = [numbers_of(x) for x in (a, b, p, *rest)]
    if any([x is None for x in numbers]):
        raise UnsupportedFunctionError(
            f"quad with full_output in compiled code, where the numbers are not known{at_line()}\n"
            "Leave full_output out, and look at the integral outside of func.jit."
        )
    return result, error, *run(numbers[0], numbers[1], numbers[2], numbers[3:], full_output)[2:]


@functools.cache
def _drops_sign() -> bool:
    """Whether SciPy integrates a complex function from the lower to the higher limit, regardless of their order."""
    return bool(original(_scipy.quad)(lambda x: 1.0 + 0.0j, 1.0, 0.0, complex_func=True)[0].real > 0)


def _number(limit: Any) -> Any:
    """A limit that is an array of one element, as a number."""
    return np.reshape(limit, ()) if shape_of(limit) != () and np.prod(shape_of(limit)) == 1 else limit


def _refuse_places(points: Any, wvar: Any, weight: Any, limits: tuple[Any, Any]) -> None:
    if holds_traced(points):
        raise NotDifferentiableError(
            f"quad takes break points that are traced{at_line()}\nWhere the integrand jumps at such a point, the "
            "integral has a derivative that no node sees. Split the integral there, with the point as a limit: "
            "quad(f, a, c)[0] + quad(f, c, b)[0]."
        )
    if holds_traced(wvar):
        raise NotDifferentiableError(
            f"quad takes a traced wvar for its weight {weight!r}{at_line()}\n"
            "Write the weight into the integrand, with the value as its parameter."
        )
    if str(weight).startswith("alg") and holds_traced(limits):
        raise NotDifferentiableError(
            f"quad with weight={weight!r} takes limits that are traced, on which the weight depends{at_line()}\n"
            "Substitute x = a + (b - a) * u, and integrate over u from 0 to 1."
        )


def _weight(weight: Any, wvar: Any) -> Callable[[Any], Any] | None:
    """The weight at the limits."""
    if weight == "cos":
        return lambda x: np.cos(wvar * x)
    if weight == "sin":
        return lambda x: np.sin(wvar * x)
    if weight == "cauchy":
        return lambda x: 1 / (x - wvar)
    return None


@with_converters
def nquad(func: Any, ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False) -> Any:
    """Integral over several variables by nested quad, with derivatives in parameters of integrand and limits.

    The innermost variable comes first. If only the integrand has parameters, nquad integrates its derivative as a
    whole. If limits have parameters, too, each of the nested integrals is differentiated, which takes longer.
    """
    args = () if args is None else tuple(args)
    of_function, of_ranges = Parameters((func, args)), Parameters((ranges, opts))
    if not of_function.is_traced and not of_ranges.is_traced:
        return _successive(func, ranges, args, opts, original(_scipy.quad), full_output)
    if Parameters(opts).is_traced:
        _refuse_places((of_ranges.vector(),), None, None, (0, 0))
    if full_output:
        raise UnsupportedFunctionError(
            f"nquad with full_output on traced values{at_line()}\nLeave full_output out, and look at the integral "
            "outside of the transform."
        )
    if of_ranges.is_traced or (Parameters(args).is_traced and any([callable(part) for part in ranges])):
        return _successive(func, ranges, args, opts, quad)
    return _whole(func, ranges, args, opts, of_function)


dblquad = traces_callbacks(_scipy.dblquad, nquad=nquad)
tplquad = traces_callbacks(_scipy.tplquad, nquad=nquad)


def _successive(
    func: Any, ranges: Any, args: tuple[Any, ...], opts: Any, quad: Any, full_output: bool = False
) -> tuple[Any, ...]:
    """One integral in the other, by a function quad: the first variable is the innermost."""
    ranges = list(ranges)
    is_one = opts is None or isinstance(opts, dict)
    options = [opts or {}] * len(ranges) if is_one else list(opts or ())
    notes = _Notes()

    def integrand(outer: tuple[Any, ...]) -> Any:
        return func(*outer, *args)

    integral: Callable[[tuple[Any, ...]], Any] = integrand
    for place, (given, option) in enumerate(zip(ranges, options, strict=True)):
        integral = _over_variable(integral, given, option, args, quad, notes, full_output, place == 0)
    value = integral(())
    error = notes.outermost if type(notes.outermost) is Tracer else notes.error
    if full_output:
        return value, error, {"neval": notes.evaluations}
    return value, error


class _Notes(Record):
    """Further results of nquad."""

    error: float = 0.0
    """The largest estimate of an error."""
    outermost: Any = 0.0
    """The error estimate of the last integral for traced values, as the inner integrals run on numbers."""
    evaluations: int = 0


def _over_variable(
    inner: Callable[[tuple[Any, ...]], Any],
    given: Any,
    option: Any,
    args: tuple[Any, ...],
    quad: Any,
    notes: _Notes,
    full_output: bool,
    is_innermost: bool,
) -> Callable[[tuple[Any, ...]], Any]:
    """The integral over one variable, as a function of the outer ones."""

    def integral(outer: tuple[Any, ...]) -> Any:
        limits: Any = given(*outer, *args) if callable(given) else given
        low, high = limits
        own: Any = option(*outer, *args) if callable(option) else option
        chosen: dict[str, Any] = dict(own)
        if "points" in chosen:
            chosen["points"] = [x for x in chosen["points"] if low <= x <= high]
        result = quad(lambda x: inner((x, *outer)), low, high, full_output=full_output, **chosen)
        notes.outermost = error = result[1]
        notes.error = notes.error if type(error) is Tracer else max(notes.error, error)
        if full_output and is_innermost:
            notes.evaluations += result[2]["neval"]
        return result[0]

    return integral


def _whole(func: Any, ranges: Any, args: tuple[Any, ...], opts: Any, parameters: Parameters) -> Any:
    """An integral over several variables whose limits have no parameters."""
    ranges = list(ranges)
    known_args = () if Parameters(args).is_traced else args  # limits and options do not take traced ones

    def call(x: Any, p: Array, *rest: Array) -> Array:
        f, args = parameters.rebuilt(p, rest)
        return real_parts(f(*[x[i] for i in range(len(ranges))], *args), False)

    def integral(f: Callable[..., Any], args: Any) -> Any:
        return _successive(f, ranges, args, opts, original(_scipy.quad))

    def compute(a: Any, b: Any, p: Array, *rest: Array) -> Any:
        f, args = parameters.rebuilt(p, rest)

        def plain(*x: Any) -> Any:
            out = f(*x)
            return check_plain(out, "nquad") if type(out) is Tracer else out

        value, error = integral(plain, args)
        return np.array([value]), [error]

    def by_components(integrand: Callable[[Any], Array], size: int, a: Any, b: Any) -> Array:
        seen: dict[Any, Array] = {}

        def component(i: int) -> Callable[..., Any]:
            def at(*x: Any) -> Any:
                x = x[: len(ranges)]
                if x not in seen:
                    seen[x] = asarray(integrand(np.array(x)))
                return seen[x][i]

            return at

        return np.array([integral(component(i), known_args)[0] for i in range(size)])

    numbers = Numbers(compute, 1, [Aval((), FLOAT)])
    whole = Integral(Integrand(call, 1), by_components, (0.0, 0.0), numbers=numbers)
    value, error = whole.value(parameters.vector(), parameters.rest())
    return value[0], error


@with_converters
def quad_vec(
    f: Any,
    a: Any,
    b: Any,
    epsabs: Any = 1e-200,
    epsrel: Any = 1e-8,
    norm: Any = "2",
    cache_size: Any = 100e6,
    limit: Any = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """Integral of a function of one number that returns an array, with derivatives in limits and parameters."""
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "norm": norm, "cache_size": cache_size, "limit": limit, "points": points,
        "quadrature": quadrature,
    }  # fmt: skip
    if not isinstance(args, tuple):
        args = (args,)
    parameters = Parameters((f, args))
    if not parameters.is_traced and not holds_traced((a, b, points)):
        return original(_scipy.quad_vec)(f, a, b, workers=workers, full_output=full_output, args=args, **options)
    _refuse_places(points, None, None, (a, b))
    if full_output:
        raise UnsupportedFunctionError(
            f"quad_vec with full_output on traced values{at_line()}\nLeave full_output out, and look at the integral "
            "outside of the transform."
        )
    p, rest = parameters.vector(), parameters.rest()
    like = f(_inside(a, b), *args)
    shape, is_complex = shape_of(like), dtype_of(like).kind == "c"
    size = int(np.prod(shape)) * (2 if is_complex else 1)

    def call(x: Any, p: Array, *rest: Array) -> Array:
        f, args = parameters.rebuilt(p, rest)
        return real_parts(f(x, *args), is_complex)

    def compute(a: Any, b: Any, p: Array, *rest: Array) -> Any:
        f, args = parameters.rebuilt(p, rest)
        value, error = original(_scipy.quad_vec)(
            lambda x: check_plain(f(x, *args), "quad_vec"), float(a), float(b), **options
        )
        return real_parts(value, is_complex), [error]

    def by_vector(integrand: Callable[[Any], Array], size: int, a: Any, b: Any) -> Array:
        value, _ = original(_scipy.quad_vec)(lambda x: asarray(integrand(x)), float(a), float(b), **options)
        return asarray(value)

    integral = Integral(Integrand(call, size), by_vector, (a, b), numbers=Numbers(compute, size, [Aval((), FLOAT)]))
    value, error = integral.value(p, rest)
    if is_complex:
        value = value[: size // 2] + 1j * value[size // 2 :]
    return np.reshape(value, shape)[()] if shape else value[0], error


def _inside(a: Any, b: Any) -> float:
    """A number between two limits, as far as they are known."""
    numbers = [known(limit) if type(limit) is Tracer else limit for limit in (a, b)]
    low, high = [0.5 if x is None or not np.isfinite(x) else float(x) for x in numbers]
    if numbers[0] is not None and numbers[1] is not None and np.isinf(numbers[0]) != np.isinf(numbers[1]):
        return high - 1.0 if np.isinf(numbers[0]) else low + 1.0
    return (low + high) / 2
