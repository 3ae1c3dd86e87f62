"""Common parts of the solvers: SciPy runs them on numbers, and their equation gives the derivative.

A call of a solver becomes a `Problem` of `func.transforms.implicit`: an equation of the solution, and a function that
calls SciPy's own solver. That function gets plain numbers: directly, for each batch element under `vmap`, or each time
that compiled code runs under `jit`.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func import tree
from func.backends.records import Record
from func.control.branches_and_loops import cond
from func.host import scipy_hooks
from func.host.interception import not_intercepted
from func.host.patching import called_inside
from func.interpreters.calls.callback import callback
from func.interpreters.core import Array, Aval, Tracer, dtype_of, known_value, shape_of
from func.interpreters.core.errors import CustomRuleError, SingularSystemError, SolverWarning
from func.interpreters.host.source import user_line
from func.transforms.closures import Closure
from func.transforms.custom import stop_gradient
from func.transforms.forward import jvp
from func.transforms.implicit import Problem, Solved, solution_of, solved_dense
from func.transforms.jacobians import jacobian
from func.transforms.reverse import grad, value_and_grad

FLOAT = np.dtype(np.float64)
INFO = Aval((4,), np.dtype(np.int64))
"""The solver's information: whether it has converged, its status, the numbers of evaluations and iterations."""
ROUNDING = 1e-8
"""The largest ratio of a Newton step from a solution to the solution."""
UNDETERMINED = 0.1
"""The largest change of the equation by a Newton step from a solution, relative to its remainder."""


def original(name: str) -> Callable[..., Any]:
    """SciPy's function of this name, without its hook; it takes plain numbers."""
    return not_intercepted(scipy_hooks.original(getattr(scipy_optimize, name)))


def is_unmodified(depth: int = 1) -> bool:
    """Whether the hook of SciPy's function called the calling function of func."""
    frame: FrameType | None = sys._getframe(depth + 1)
    if frame is not None and frame.f_code is called_inside.__code__:  # by which hooks call
        frame = frame.f_back
    return frame is not None and frame.f_code is scipy_hooks.Hook.call.__code__


def has_traced(*parts: Any) -> bool:
    """Whether functions and arguments contain traced values anywhere."""
    return bool(Closure(parts).values)  # type: ignore[arg-type]


def as_tuple(args: Any) -> tuple[Any, ...]:
    """Extra arguments as SciPy accepts them: a tuple, or one argument."""
    return args if isinstance(args, tuple) else (args,)


def number(value: Any, name: str) -> Any:
    """The result of a user's function for a solver, as plain numbers."""

    def plain(leaf: Any) -> Any:
        if type(leaf) is not Tracer:
            return leaf
        if leaf._interpreter.level > 0:
            raise CustomRuleError(
                f"scipy.optimize.{name}: the function uses a traced value that was not found in it\n"
                "Its derivative would be lost: pass the value in args."
            )
        return known_value(leaf)

    return tree.map(plain, value) if type(value) in (Tracer, tuple, list) else value


def on_numbers(function: Any, name: str) -> Any:
    """A user's function for a solver."""
    if not callable(function):
        return function

    def plain(*args: Any, **kwargs: Any) -> Any:
        return number(function(*args, **kwargs), name)

    return functools.update_wrapper(plain, function)


def scalar(value: Any) -> Array:
    """The value of an objective; SciPy accepts arrays of one number."""
    return np.reshape(value, ()) if shape_of(value) != () else value


def as_array(value: Any) -> Array:
    """A list or number of a user's as an array that may be traced."""
    return value if type(value) is Tracer else np.asarray(value)


def vector_of(value: Any) -> Array:
    """Numbers as one axis."""
    value = as_array(value)
    return value if len(shape_of(value)) == 1 else np.reshape(value, -1)


def works(function: Callable[..., Any], *args: Any) -> bool:
    """Whether func can trace a user's function, tried at the start; if not, SciPy uses differences."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args)
    except Exception:  # whatever the user's function or func raises; SciPy's own call shows it
        return False
    return True


def exact_gradient(f: Callable[..., Any], x: Any, args: tuple[Any, ...] = ()) -> Callable[..., Any] | None:
    """The gradient of an objective by func, or None if func cannot trace it."""
    gradient = grad(lambda x, *args: scalar(f(x, *args)))
    return on_numbers(gradient, "solver") if works(gradient, x, *args) else None


class Paired:
    """An objective and its gradient by func, computed at once, for methods that want both at every point."""

    def __init__(self, f: Callable[..., Any]) -> None:
        both = value_and_grad(lambda x, *args: scalar(f(x, *args)))
        self.both = on_numbers(both, "solver")
        self.place: bytes | None = None
        self.known: Any = None

    def at(self, x: Any, args: tuple[Any, ...]) -> Any:
        """(value, gradient), stored for the next request."""
        place = x.tobytes()
        if place != self.place:
            self.place = None
            self.known = self.both(x, *args)
            self.place = place
        return self.known

    def value(self, x: Any, *args: Any) -> Any:
        """The objective; its gradient is asked for next."""
        return self.at(x, args)[0]

    def slope(self, x: Any, *args: Any) -> Any:
        """The gradient, which solvers may keep and write to."""
        return self.at(x, args)[1].copy()


def exact_jacobian(f: Callable[..., Any], x: Any, args: tuple[Any, ...] = ()) -> Callable[..., Any] | None:
    """The Jacobian of a vector function by func, or None if func cannot trace it."""
    jac = jacobian(lambda x, *args: vector_of(f(x, *args)))
    return on_numbers(jac, "solver") if works(jac, x, *args) else None


class Run(Record):
    """Information on the solver's run: its own result, if it ran once while the call was traced."""

    name: str
    calls: int = 0
    result: Any = None

    def note(self, result: Any) -> Any:
        """Store the result of a run."""
        self.calls += 1
        self.result = result
        return result

    @property
    def known(self) -> Any:
        """The result of the only run; None after several runs, or none."""
        return self.result if self.calls == 1 else None


def info_of(result: Any) -> Array:
    """The information in a result about the run, as numbers."""
    values = [bool(result.get("success", True)), *[result.get(key, 0) for key in ("status", "nfev", "nit")]]
    return np.array([0 if value is None else int(value) for value in values], np.int64)


def avals(values: Any) -> Any:
    """Shapes and dtypes of a tree of arrays."""
    return tree.map(lambda leaf: Aval(tuple(shape_of(leaf)), dtype_of(leaf)), values)


def solve(problem: Problem, like: tuple[Any, Any]) -> tuple[Any, Any]:
    """(x, aux) of a problem whose solver takes plain numbers; `like` is a tree of their avals."""
    closure = Closure(problem)  # type: ignore[arg-type]
    if not closure.values:
        return problem.solve(*problem.starts, *problem.params)
    leaves, spec = tree.flatten(like[0])
    aux_leaves, aux_spec = tree.flatten(like[1])
    return solution_of(Solved(problem, closure, (*leaves, *aux_leaves), spec, aux_spec))


class Verdict(Record):
    """Warns if a result to differentiate is not a solution, or not a differentiable function of its parameters."""

    name: str
    line: Any

    def is_wanted(self, succeeded: Array, remaining: Array, scale: Array, degenerate: Array) -> Array:
        """Whether there is something to warn of."""
        return ~succeeded | (remaining > UNDETERMINED * scale) | degenerate

    def asked(self, *flags: Array) -> tuple[()]:
        """Warn when the program runs."""
        callback(*flags, function=self)
        return ()

    def silent(self, *flags: Array) -> tuple[()]:
        """No warning."""
        return ()

    def __call__(self, succeeded: Array, remaining: Array, scale: Array, degenerate: Array) -> None:
        if not np.all(succeeded):
            self.warn("has not converged, so its result is no solution: a derivative of it has no meaning")
        elif np.any(remaining > UNDETERMINED * scale):
            self.warn(
                "has a solution that the equation hardly determines: it is no differentiable function of the "
                "parameters there (a double root, a singular Jacobian or Hessian), or has not converged"
            )
        elif np.any(degenerate):
            self.warn(
                "has a degenerate solution: a bound or constraint is active, and the solution would be there without "
                "it, or others fix it already. Derivatives differ to both sides; this is one of them"
            )

    def warn(self, text: str) -> None:
        """The warning, at the user's line."""
        message = f"scipy.optimize.{self.name} {text}"
        if self.line is None:
            warnings.warn(message, SolverWarning, stacklevel=3)
        else:
            warnings.warn_explicit(message, SolverWarning, self.line.file, self.line.number)


def check_of(
    name: str,
    succeeded: Callable[[Any], Any],
    degenerate: Callable[[Any], Any] | None = None,
    undetermined: Callable[[Any], Any] | None = None,
) -> Any:
    """A check of solutions whose derivative is needed: the functions return flags in aux.

    A Newton step may lead nowhere, or far enough to change the Jacobian. Then the result is not a solution, or the
    equation has a singular Jacobian nearby.
    """
    verdict = Verdict(name, user_line(3))

    def check(vector: Array, aux: Any, of_vector: Callable[[Array], Array], matrix: Array) -> None:
        x = stop_gradient(vector)
        value = stop_gradient(of_vector(x))
        if value.size == 0:
            return
        matrix = stop_gradient(matrix)
        step = stop_gradient(refusing_singular(name, matrix, value))
        slope = jvp(of_vector, (x - step,), (step,))[1]
        # Rounding may keep a solver from its tolerance, so that it reports no convergence.
        is_there = np.max(np.abs(step)) <= ROUNDING * np.maximum(1.0, np.max(np.abs(x)))
        remaining, scale = np.max(np.abs(slope - value)), np.max(np.abs(value))
        is_open = np.bool_(False) if undetermined is None else undetermined(aux)
        remaining = np.where(_is_singular(name, matrix) | is_open, np.inf, remaining)
        is_degenerate = np.bool_(False) if degenerate is None else degenerate(aux)
        flags = (succeeded(aux) | is_there, remaining, scale, is_degenerate)
        # Compiled code calls Python only if there is something to report.
        cond(verdict.is_wanted(*flags), verdict.asked, verdict.silent, *flags)

    return check


def _is_singular(name: str, matrix: Array) -> Array:
    """Whether rounding errors determine the inverse of a matrix, whatever the units of its rows and columns."""
    for axis in (1, 0):
        size = np.max(np.abs(matrix), axis=axis, keepdims=True)
        matrix = matrix / np.where(size > 0, size, 1.0)
    count = shape_of(matrix)[0]
    direction = np.cos(np.arange(1.0, count + 1)).astype(dtype_of(matrix))  # an arbitrary direction
    growth = np.max(np.abs(refusing_singular(name, matrix, direction)))
    return growth * (count * np.finfo(dtype_of(matrix)).eps) > UNDETERMINED


def refusing_singular(name: str, matrix: Array, side: Array) -> Array:
    """The Newton step at the solution."""
    try:
        return solved_dense(matrix, side)
    except SingularSystemError as error:
        raise SingularSystemError(
            f"scipy.optimize.{name}: the equation of the solution has a singular Jacobian there, so that the solution "
            f"is not a differentiable function of its parameters\n{str(error).splitlines()[-1]}"
        ) from None


def result_of(run: Run, info: Array, **fields: Any) -> Any:
    """SciPy's result with the fields that are functions of the parameters."""
    known = run.known
    if known is not None:
        result = type(known)(known)
    else:
        result = scipy_optimize.OptimizeResult(
            success=info[0] != 0,
            status=info[1],
            nfev=info[2],
            nit=info[3],
            message="what the solver says is not known in a batch or in compiled code; see success and status",
        )
    result.update({name: value for name, value in fields.items() if known is None or name in known or name == "x"})
    return result


def float_dtype(value: Any) -> np.dtype[Any]:
    """The dtype of a solution that starts at a value: of double precision, complex where the start is."""
    return np.dtype(np.complex128) if dtype_of(as_array(value)).kind == "c" else FLOAT


def size_of(value: Any) -> int:
    """The number of numbers in a value."""
    return int(np.prod(shape_of(as_array(value)), dtype=np.int64))


def plain_leaves(values: Sequence[Any]) -> list[Any]:
    """Arrays without tracers of level 0."""
    return [known_value(value) for value in values]
