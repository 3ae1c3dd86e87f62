"""solve_ivp with derivatives in the initial state, the span, and the parameters of its functions.

Where the numbers are known, SciPy solves on them, and func takes its steps again on traced values (`runge_kutta`,
`radau`). For BDF and LSODA, and for some values of `adjoint`, the derivative is another solution (`flows`).
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipy
from scipy.integrate._ivp.ivp import METHODS, OdeResult
from scipy.integrate._ivp.rk import RungeKutta

import func as _func
from func.host.interception import intercepted_call
from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Tracer, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError, SolverWarning, UnsupportedFunctionError
from func.interpreters.host.source import at_line, user_line
from func.numpy import asarray
from func.scipy.integrate.flows import Flow, by_adjoint
from func.scipy.integrate.numbers import Parameters, Quickened, check_plain, numbers_of
from func.scipy.integrate.radau import Collocation
from func.scipy.integrate.runge_kutta import Lengths, Method, RightSide, held, taken
from func.scipy.integrate.solutions import CompiledSolution, Solution, segments_of, within_span
from func.transforms.closures import is_traced

ADJOINTS = ("discrete", "forward", "continuous")
IMPLICIT = ("Radau", "BDF", "LSODA")


@with_converters
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    adjoint: str | None = None,
    max_steps: int = 4096,
    **options: Any,
) -> Any:
    """Solution of an initial value problem, with derivatives in `y0`, `t_span`, `args` and everything `fun` reaches.

    The states, the values of `sol`, and the times and states of events differentiate, in both modes and to any order.
    The choice of steps is a constant. Without `jac`, Radau, BDF and LSODA get exact Jacobians. In compiled code RK23,
    RK45, DOP853 and Radau are native loops, and return the states at `t_eval`; BDF and LSODA call SciPy. A solution
    that fails there is NaN from the failure on, and at times of `t_eval` that turn out to be outside of the span.

    Args:
        adjoint: The computation of derivatives. With "discrete", the default of RK23, RK45, DOP853 and Radau, they are
            those of the solver's steps. With "forward", the default of BDF and LSODA, they solve the variational
            equation together with the state. With "continuous" the pullback solves the adjoint equation backwards. This
            is for reverse mode with many parameters and few times, and not for equations that are stiff backwards.
            Forward mode then solves the variational equation.
        max_steps: In compiled code: the most steps of a native loop, which reserves memory for them.

    Raises:
        ArgumentError: `adjoint` is none of these, or does not fit the method (a ValueError).
        UnsupportedFunctionError: In compiled code: no `t_eval`, or `events` (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> def end(rate):
        ...     solve = func.scipy.integrate.solve_ivp
        ...     return solve(lambda t, y: -rate * y, (0, 1), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]
        >>> round(float(func.grad(end)(2.0)), 8)
        -0.13533528
    """
    if adjoint is not None and adjoint not in ADJOINTS:
        raise ArgumentError(f"solve_ivp takes adjoint={', '.join(map(repr, ADJOINTS))} or None, not {adjoint!r}")
    given = (fun, t_span, y0, args, events, t_eval)
    solver = METHODS.get(method, method) if isinstance(method, str) else method
    plain = functools.partial(
        original(_scipy.solve_ivp), dense_output=dense_output, vectorized=vectorized, method=method, **options
    )
    parameters = Parameters(given)
    if not parameters.is_traced:
        return _with_jacobian(plain, fun, t_span, y0, method, options, args, vectorized)(
            fun, t_span, y0, t_eval=t_eval, events=events, args=args
        )
    if method not in METHODS and not (inspect.isclass(method) and issubclass(method, _scipy.OdeSolver)):
        raise ValueError(f"`method` must be one of {METHODS} or OdeSolver class.")
    formulas = _formulas(solver)
    if adjoint == "discrete" and formulas is None:
        raise ArgumentError(
            f"solve_ivp takes adjoint='discrete' with the methods RK23, RK45, DOP853 and Radau, not with {method!r}\n"
            "Leave adjoint out: the variational equation is solved then."
        )
    problem = _Problem(fun, t_span, y0, vectorized, args)
    kind = adjoint or ("forward" if formulas is None else "discrete")
    readable = all([numbers_of(x) is not None for x in (parameters.vector(), *parameters.rest())])
    if not readable:
        _check_compiled(t_eval, t_span, events, dense_output, kind)
    if kind == "discrete" and not readable:
        return _compiled(problem, formulas, t_eval, dense_output, max_steps, options)
    if not readable:
        return _by_flow(problem, None, kind, method, t_eval, False, None, options)
    fun_, span_, y0_, args_, events_, t_eval_ = parameters.rebuilt(
        numbers_of(parameters.vector()), [numbers_of(x) for x in parameters.rest()]
    )
    run_events = (
        None if events is None else [_number_event(e, e_) for e, e_ in zip(*_lists(events, events_), strict=True)]
    )
    run_fun = functools.partial(_checked, fun_)
    if kind != "discrete":
        plain = functools.partial(plain, dense_output=dense_output or events is not None)
        prepared = _with_jacobian(plain, run_fun, span_, y0_, method, options, args_, vectorized)
        numbers = prepared(run_fun, span_, y0_, t_eval=t_eval_, events=run_events, args=args_)
        return _by_flow(problem, numbers, kind, method, t_eval, dense_output, events, options)
    steps: list[Any] = []
    recorder = _recorder(solver, steps)
    plain = functools.partial(plain, method=recorder)
    prepared = _with_jacobian(plain, run_fun, span_, y0_, method, options, args_, vectorized)
    numbers = prepared(run_fun, span_, y0_, t_eval=t_eval_, events=run_events, args=args_)
    return _replayed(problem, formulas, numbers, steps, t_eval, dense_output, events)


def _checked(fun: Callable[..., Any], t: Any, y: Any, *args: Any) -> Any:
    out = fun(t, y, *args)
    return check_plain(out, "solve_ivp") if type(out) in (Tracer, list, tuple) else out


def _lists(events: Any, others: Any) -> tuple[list[Any], list[Any]]:
    return ([events], [others]) if callable(events) else (list(events), list(others))


def _number_event(event: Any, rebuilt: Any) -> Any:
    """An event on plain numbers, with the attributes that SciPy reads."""

    def call(t: Any, y: Any, *args: Any) -> Any:
        out = rebuilt(t, y, *args)
        return check_plain(out, "solve_ivp") if type(out) is Tracer else out

    call.terminal = getattr(event, "terminal", None)  # type: ignore[attr-defined]
    call.direction = getattr(event, "direction", 0)  # type: ignore[attr-defined]
    return call


def _formulas(solver: Any) -> Method | Collocation | None:
    """The formulas of a method, for steps on traced values."""
    if not inspect.isclass(solver):
        return None
    if issubclass(solver, _scipy.Radau):
        return Collocation()
    return Method(solver) if issubclass(solver, RungeKutta) else None


def _recorder(solver: Any, steps: list[Any]) -> Any:
    """A solver that records the starts, lengths and stages of its steps."""

    class Recorder(solver):  # type: ignore[misc]
        def _step_impl(self) -> Any:
            start = self.t
            out = super()._step_impl()
            if out[0]:
                steps.append((start, self.t - start, np.array(self.Z) if hasattr(self, "Z") else None))
            return out

    return Recorder


def _with_jacobian(
    plain: Any, fun: Any, t_span: Any, y0: Any, method: Any, options: Any, args: Any, vectorized: bool
) -> Any:
    """The solver with func's Jacobian, for a method that takes one and a function that func can differentiate."""
    name = method if isinstance(method, str) else getattr(method, "__name__", "")
    if name not in IMPLICIT or options.get("jac") is not None or options.get("jac_sparsity") is not None:
        return plain
    start = asarray(y0)
    if start.ndim != 1 or start.size == 0 or vectorized or {"lband", "uband"} & set(options):
        return plain

    def right_side(t: Any, y: Any, *args: Any) -> Any:
        return asarray(fun(t, y, *args))

    is_complex = start.dtype.kind == "c"
    jacobian = Quickened(_func.jacfwd(right_side, argnums=1, holomorphic=is_complex))
    try:
        found = jacobian(float(t_span[0]), start.astype(complex if is_complex else float), *(args or ()))
    except Exception:
        return plain
    if np.shape(found) != (start.size, start.size):
        return plain
    return functools.partial(plain, jac=lambda t, y, *args: asarray(jacobian(t, y, *args)))


class _Problem:
    """The problem: the right-hand side as a function of a time and a state, the span, and the initial state."""

    def __init__(self, fun: Any, t_span: Any, y0: Any, vectorized: bool, args: Any) -> None:
        self.given = fun
        self.args = () if args is None else tuple(args)
        self.vectorized = vectorized
        self.t0, self.bound = t_span
        y0 = asarray(y0)
        if not is_inexact(y0.dtype) or y0.dtype not in (np.float64, np.complex128):
            y0 = y0.astype(complex if y0.dtype.kind == "c" else float)
        if y0.ndim != 1:
            raise ValueError("`y0` must be 1-dimensional.")
        self.y0 = y0
        self.fun = _right_side(fun, self.args, vectorized, y0.dtype)


def _right_side(fun: Any, args: tuple[Any, ...], vectorized: bool, dtype: Any) -> RightSide:
    """The derivative of the state, in its dtype, as a function that exposes its traced values."""
    run = intercepted_call(fun)

    def right_side(t: Any, y: Array) -> Array:
        out = run(t, y[:, None] if vectorized else y, *args)
        out = np.ravel(asarray(out)) if vectorized else asarray(out)
        return out if out.dtype == dtype else out.astype(dtype)

    return right_side


def _tolerances(options: dict[str, Any], size: int) -> tuple[Any, Any]:
    """rtol and atol as SciPy takes them."""
    rtol, atol = options.get("rtol", 1e-3), asarray(options.get("atol", 1e-6))
    rtol = np.maximum(rtol, 100 * np.finfo(float).eps)
    if atol.ndim > 0 and atol.shape != (size,):
        raise ValueError("`atol` has wrong shape.")
    if np.any(atol < 0):
        raise ValueError("`atol` must be positive.")
    return rtol, atol


def _check_compiled(t_eval: Any, t_span: Any, events: Any, dense_output: bool, kind: str) -> None:
    if t_eval is not None and not holds_traced((t_eval, t_span)):
        original(_scipy.solve_ivp)(lambda t, y: 0.0 * y, t_span, np.zeros(1), t_eval=t_eval)  # checks both
    if events is not None:
        raise UnsupportedFunctionError(
            f"solve_ivp with events in compiled code, where their number is not known{at_line()}\n"
            "Call it outside of func.jit, or find the time of the event with a root of the state at t_eval."
        )
    if t_eval is None and not (dense_output and kind == "discrete"):
        raise UnsupportedFunctionError(
            f"solve_ivp without t_eval in compiled code, where the number of steps is not known{at_line()}\n"
            "Pass the times that you need, t_eval=[t1] for the end alone."
        )
    if dense_output and kind != "discrete":
        raise UnsupportedFunctionError(
            f"solve_ivp with dense_output in compiled code, for a method that calls SciPy{at_line()}\n"
            "Pass the times that you need as t_eval."
        )


def _compiled(
    problem: _Problem, method: Any, t_eval: Any, dense_output: bool, max_steps: int, options: dict[str, Any]
) -> Any:
    """The solution in compiled code, by a method with native steps."""
    unknown = set(options) - {"rtol", "atol", "max_step", "first_step", "jac", "jac_sparsity", "min_step"}
    if unknown:
        raise UnsupportedFunctionError(f"solve_ivp takes no {sorted(unknown)} in compiled code{at_line()}")
    rtol, atol = _tolerances(options, shape_of(problem.y0)[0])
    still = Parameters((problem.given, problem.args, options.get("jac")))
    given, args, jac = still.rebuilt(held(still.vector()), still.rest())
    if callable(jac):
        options = {**options, "jac": lambda t, y: jac(t, y, *args)}
    numbers = _Problem(given, (problem.t0, problem.bound), problem.y0, problem.vectorized, args)
    t0, bound = [asarray(t, float) if not is_traced(t) else t.astype(float) for t in (problem.t0, problem.bound)]
    lengths = method.chosen(numbers.fun, held(t0), held(bound), held(problem.y0), rtol, atol, options, max_steps)
    parts = (lengths.h, lengths.count, lengths.attempts, lengths.failed, lengths.stages, lengths.counts)
    lengths = Lengths(*_func.tree.map(held, parts))
    places = np.arange(max_steps)
    ends = t0 + np.cumsum(lengths.h)
    starts = np.concatenate([np.reshape(t0, (1,)), ends[:-1]])
    # The last step ends at the end of the span.
    is_last = (places == lengths.count - 1) & ~lengths.failed
    h = np.where(is_last, bound - starts, lengths.h) if is_traced(t0) or is_traced(bound) else lengths.h
    is_end = t_eval is not None and not dense_output and _are_ends(t_eval, problem.bound)
    path = taken(method, problem.fun, starts, h, problem.y0, not is_end, False, True, lengths.stages)
    y = np.where(lengths.failed, np.nan, path.last)[:, None]
    sol = None
    if not is_end:
        direction = np.where(bound >= t0, 1.0, -1.0)
        ts = np.concatenate([np.reshape(t0, (1,)), np.where(places < lengths.count, ends, direction * np.inf)])
        solution = CompiledSolution(path, ts, direction, lengths)
        y = within_span(solution(t_eval), t_eval, t0, bound) if t_eval is not None else y
        sol = solution if dense_output else None
    t = asarray(t_eval) if t_eval is not None else np.reshape(bound, (1,))
    nfev, njev, nlu = lengths.counts
    return OdeResult(
        t=t, y=y, sol=sol, t_events=None, y_events=None, nfev=nfev, njev=njev, nlu=nlu,
        status=np.where(lengths.failed, -1, 0), message="The numbers of compiled code are in `status`.",
        success=~lengths.failed,
    )  # fmt: skip


def _are_ends(t_eval: Any, bound: Any) -> bool:
    """Whether the caller asks for the end of the span alone."""
    if is_traced(bound) or holds_traced(t_eval):
        only = t_eval[0] if isinstance(t_eval, (list, tuple)) and len(t_eval) == 1 else None
        return only is bound and only is not None
    times = asarray(t_eval)
    return times.shape == (1,) and bool(times[0] == float(bound))


def _replayed(
    problem: _Problem, method: Any, numbers: Any, steps: list[Any], t_eval: Any, dense_output: bool, events: Any
) -> Any:
    """SciPy's steps on traced values."""
    t0, bound = problem.t0, problem.bound
    count = len(steps)
    if not count:
        return _unmoved(problem, numbers)
    h_numbers = np.array([h for _, h, _ in steps])
    starts_numbers = np.array([start for start, *_ in steps])
    stages = () if steps[0][2] is None else (np.array([found for *_, found in steps]),)
    ts_numbers = np.append(starts_numbers, starts_numbers[-1] + h_numbers[-1])
    reached = ts_numbers[-1] == float(numbers_of(bound) if is_traced(bound) else bound)
    ts = t0 + (ts_numbers - ts_numbers[0]) if is_traced(t0) else ts_numbers
    h: Any = h_numbers
    if reached and (is_traced(t0) or is_traced(bound)):
        ts = np.concatenate([ts[:-1], np.reshape(bound, (1,))])
        h = np.concatenate([h_numbers[:-1], np.reshape(bound - ts[-2], (1,))])
    has_events = events is not None and any([len(te) for te in numbers.t_events])
    with_interpolant = dense_output or t_eval is not None or has_events
    path = taken(method, problem.fun, ts[:-1], h, problem.y0, with_interpolant, True, False, stages)

    def at(t: Any, segments: Any = None) -> Array:
        if segments is None:
            segments = segments_of(ts_numbers, numbers_of(t))
        return path.at(segments, t)

    t_events = y_events = None
    last_event: Any = None
    if events is not None:

        def slope(event: Any, t: Any, segment: Any) -> Any:
            return _func.jvp(lambda t: event(t, at(t, segment)), (t,), (np.ones(()),))

        t_events, y_events, last_event = _event_values(events, numbers, at, slope, ts_numbers, problem.args)
    terminated = numbers.status == 1
    if t_eval is None:
        t = ts
        y = np.concatenate([problem.y0[None], path.states])
        if terminated:
            t = np.concatenate([t[:-1], np.reshape(last_event[1], (1,))])
            y = np.concatenate([y[:-1], last_event[2][None]])
        t = t[-len(numbers.t) :] if len(numbers.t) < shape_of(t)[0] else t
        y = np.transpose(y)[:, -len(numbers.t) :]
    else:
        kept = len(numbers.t)
        t = asarray(t_eval)[:kept].astype(float) if holds_traced(t_eval) else numbers.t
        y = np.moveaxis(at(t), -1, 0) if kept else numbers.y
    sol = None
    if dense_output:
        sol = Solution(lambda t, segments: path.at(segments, t), numbers.sol)
    return _result(numbers, t if holds_traced(t) else numbers.t, y, sol, t_events, y_events)


def _unfinished(y: Array, message: str) -> Array:
    """The states up to a time before the end of the interval: their derivative gives a warning."""
    line = user_line()
    text = f"scipy.integrate.solve_ivp ended before the end of its interval, at a time that is held: {message}"

    @_func.custom_jvp
    def same(y: Array) -> Array:
        return y + 0.0

    @same.defjvp
    def same_jvp(primals: Any, tangents: Any) -> Any:
        if line is None:
            warnings.warn(text, SolverWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, SolverWarning, line.file, line.number)
        return same(*primals), tangents[0]

    same_value: Array = same(y)
    return same_value


def _result(numbers: Any, t: Any, y: Any, sol: Any, t_events: Any, y_events: Any) -> Any:
    fields = dict(numbers)
    if numbers.status < 0:
        y = _unfinished(y, numbers.message)
    fields.update(t=t, y=y, sol=sol, t_events=t_events, y_events=y_events)
    return OdeResult(**fields)


def _unmoved(problem: _Problem, numbers: Any) -> Any:
    """A solution without steps: an empty span, or an empty state."""
    y = np.broadcast_to(problem.y0[:, None], (shape_of(problem.y0)[0], len(numbers.t)))
    if not shape_of(problem.y0)[0]:
        return numbers
    slope = problem.fun(problem.t0, problem.y0)[:, None]
    if is_traced(problem.bound) or is_traced(problem.t0):
        moved = np.concatenate([np.zeros(len(numbers.t) - 1), np.reshape((problem.bound - problem.t0) * 1.0, (1,))])
        y = y + slope * moved
    return _result(numbers, numbers.t, y, numbers.sol, numbers.t_events, numbers.y_events)


def _event_values(
    events: Any, numbers: Any, at: Callable[[Any, Any], Array], slope: Callable[..., Any], ts: Any, args: Any
) -> tuple[list[Any], list[Any], Any]:
    """The times and states of events, by the equation event(t, y(t)) = 0, and the last of them.

    Three Newton steps from the root give the correct derivatives up to the seventh order.
    """
    functions = [events] if callable(events) else list(events)
    times, states, last, sign = [], [], None, 1 if ts[-1] >= ts[0] else -1
    for event, roots, values in zip(functions, numbers.t_events, numbers.y_events, strict=True):
        found: list[tuple[Any, Any]] = []
        for root in roots:
            segment = segments_of(ts, root)
            t: Any = np.float64(root)
            for _ in range(3):
                level, rate = slope(lambda t, y, event=event: np.reshape(event(t, y, *args), ()), t, segment)
                t = t - level / rate
            t = root + (t - held(t))
            found.append((t, at(t, segment)))
            if last is None or root * sign >= last[0] * sign:
                last = (root, *found[-1])
        times.append(np.stack([t for t, _ in found]) if found else roots)
        states.append(np.stack([y for _, y in found]) if found else values)
    return times, states, last


def _by_flow(
    problem: _Problem,
    numbers: Any,
    kind: str,
    method: Any,
    t_eval: Any,
    dense_output: bool,
    events: Any,
    options: dict[str, Any],
) -> Any:
    """The solution whose derivative is another solution."""
    parameters = Parameters((problem.given, problem.args))
    p, rest = parameters.vector(), parameters.rest()
    y0, is_complex = problem.y0, problem.y0.dtype.kind == "c"
    bound = problem.bound if not is_traced(problem.bound) else numbers_of(problem.bound)

    like, vectorized = np.zeros(shape_of(y0), y0.dtype), problem.vectorized

    def fun(t: Any, z: Array, p: Array, *rest: Array) -> Array:
        given, args = parameters.rebuilt(p, rest)
        inner = _Problem(given, (0.0, 0.0), like, vectorized, args)
        return _real(inner.fun(t, _complex(z) if is_complex else z))

    solver = _on_numbers(method, options, None if bound is None else float(bound), is_complex, numbers)
    flow = Flow(fun, solver, shape_of(y0)[0] * (2 if is_complex else 1))
    t0 = problem.t0 * 1.0

    def at(t: Any, segments: Any = None) -> Array:
        times = np.reshape(t, (-1,))
        solve = flow.states if kind == "forward" else functools.partial(by_adjoint, flow)
        z = solve(times, t0, _real(y0), p, rest)[0]
        y = _complex(z) if is_complex else z
        return np.reshape(y, (*shape_of(t), shape_of(y0)[0]))

    if numbers is None:
        times = asarray(t_eval).astype(float)
        y = within_span(np.transpose(at(times)), times, t0, problem.bound)
        return OdeResult(
            t=times, y=y, sol=None, t_events=None, y_events=None, nfev=0, njev=0, nlu=0, status=0,
            message="SciPy has solved the problem in compiled code.", success=True,
        )  # fmt: skip
    t_events = y_events = None
    last: Any = None
    ts = numbers.sol.ts if numbers.sol is not None else numbers.t
    if events is not None:

        def slope(event: Any, t: Any, segment: Any) -> Any:
            y = at(t)
            return _func.jvp(event, (t, y), (np.ones(()), problem.fun(t, y)))

        t_events, y_events, last = _event_values(events, numbers, at, slope, ts, problem.args)
    t: Any = numbers.t
    if holds_traced(t_eval):
        t = asarray(t_eval)[: len(numbers.t)].astype(float)
    elif t_eval is None and len(numbers.t):
        first = np.reshape(t0, (1,)) if is_traced(problem.t0) else t[:1]
        end = t[-1:]
        if numbers.status == 1:
            end = np.reshape(last[1], (1,))
        elif is_traced(problem.bound) and t[-1] == bound:
            end = np.reshape(problem.bound * 1.0, (1,))
        t = np.concatenate([first, t[1:-1], end]) if len(t) > 1 else first
    y = np.transpose(at(t)) if len(numbers.t) else numbers.y
    sol = Solution(at, numbers.sol) if dense_output else None
    return _result(numbers, t if holds_traced(t) else numbers.t, y, sol, t_events, y_events)


def _real(y: Array) -> Array:
    return np.concatenate([np.real(y), np.imag(y)]) if y.dtype.kind == "c" else y


def _complex(z: Array) -> Array:
    half = z.shape[-1] // 2
    return z[..., :half] + 1j * z[..., half:]


def _on_numbers(method: Any, options: dict[str, Any], bound: float | None, is_complex: bool, numbers: Any) -> Any:
    """SciPy's solver, as flows use it."""
    left_out = ("jac", "jac_sparsity", "lband", "uband")
    kept = {name: value for name, value in options.items() if name not in left_out}
    takes_jacobian = (method if isinstance(method, str) else method.__name__) in IMPLICIT

    def solve(fun: Any, jac: Any, times: Any, t0: float, z0: Any, order: int) -> Any:
        if not len(times) or np.all(times == t0):
            return np.broadcast_to(z0, (len(times), len(z0))), ()
        if order == 0 and numbers is not None:
            if np.array_equal(times, numbers.t):
                return _columns(numbers.y) if is_complex else numbers.y.T, ()
            if numbers.sol is not None:
                y = numbers.sol(times)
                return _columns(y) if is_complex else y.T, ()
        sign = 1 if np.max(times) > t0 else -1
        asked = np.unique(times)[::sign]
        end = asked[-1] if bound is None or order or (bound - asked[-1]) * sign < 0 else bound
        chosen = dict(kept)
        if np.ndim(chosen.get("atol", 0.0)):
            chosen["atol"] = np.resize(chosen["atol"], len(z0))
        if order == 0 and is_complex:
            half = len(z0) // 2
            result = original(_scipy.solve_ivp)(
                lambda t, y: _complex(fun(t, _real(y))), (t0, end), z0[:half] + 1j * z0[half:], method, asked, **chosen
            )
            states = _columns(result.y) if result.success else None
        else:
            if takes_jacobian:
                chosen["jac"] = jac
            result = original(_scipy.solve_ivp)(fun, (t0, end), z0, method, asked, **chosen)
            states = result.y.T if result.success else None
        if states is None:
            raise RuntimeError(f"solve_ivp: the equation of a derivative was not solved: {result.message}")
        return states[np.searchsorted(asked * sign, times * sign)], ()

    return solve


def _columns(y: Any) -> Any:
    """Complex states in columns as real ones in rows."""
    return np.concatenate([y.real, y.imag]).T
