"""odeint and ode: LSODA and its relatives, with derivatives by the variational equation (see `flows`)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as _scipy

from func.host.interception import intercepted_call
from func.host.patching import with_converters
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.control.compiled_bodies import is_abstract
from func.interpreters.core import Array, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.numpy import asarray
from func.scipy.integrate.flows import Flow
from func.scipy.integrate.numbers import Parameters, check_plain, numbers_of


@with_converters
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: Any = None,
    mu: Any = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    hmin: Any = 0.0,
    ixpr: Any = 0,
    mxstep: Any = 0,
    mxhnil: Any = 0,
    mxordn: Any = 12,
    mxords: Any = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
) -> Any:
    """Solution of y' = func(y, t) by LSODA, with derivatives in `y0`, the times, `args` and everything `func` reaches.

    The derivative solves the variational equation together with the state, by odeint with the same tolerances. The
    accuracy of LSODA is that of its tolerances, 1.5e-8 by default.

    Example:
        >>> import numpy as np, func
        >>> decay = lambda y, t, rate: -rate * y
        >>> end = lambda rate: func.scipy.integrate.odeint(decay, 1.0, [0, 1.0], (rate,), rtol=1e-10, atol=1e-12)[-1, 0]
        >>> round(float(func.grad(end)(2.0)), 8)
        -0.13533528
    """
    steps = {"tcrit": tcrit, "h0": h0, "hmax": hmax, "hmin": hmin, "mxhnil": mxhnil, "mxordn": mxordn, "mxords": mxords}
    if not isinstance(args, tuple):
        args = (args,)
    parameters = Parameters((func, args))
    if not parameters.is_traced and not holds_traced((y0, t, Dfun)):
        return original(_scipy.odeint)(
            func, y0, t, args, Dfun, col_deriv, full_output, ml, mu, rtol, atol, ixpr=ixpr, mxstep=mxstep,
            printmessg=printmessg, tfirst=tfirst, **steps,
        )  # fmt: skip
    y0, times = np.atleast_1d(asarray(y0)).astype(float), asarray(t).astype(float)
    if y0.ndim != 1:
        raise ValueError("Initial condition y0 must be one-dimensional.")
    size = shape_of(y0)[0]
    if tcrit is not None and holds_traced(t):
        raise UnsupportedFunctionError(
            f"odeint with tcrit, and times that are traced{at_line()}\n"
            "Leave tcrit out, or solve in parts that end at these times."
        )
    p, rest = parameters.vector(), parameters.rest()
    if full_output and any([is_abstract(x) for x in (y0, times, p, *rest)]):
        raise UnsupportedFunctionError(
            f"odeint with full_output in compiled code, where the numbers are not known{at_line()}\n"
            "Leave full_output out, and look at the solution outside of func.jit."
        )

    def right_side(t: Any, y: Array, p: Array, *rest: Array) -> Array:
        f, args = parameters.rebuilt(p, rest)
        f = intercepted_call(f)
        return np.ravel(asarray(f(t, y, *args) if tfirst else f(y, t, *args))).astype(float)

    def plain(y: Any, t: Any, p: Any, rest: Any) -> Any:
        f, args = parameters.rebuilt(p, rest)
        return check_plain(f(t, y, *args) if tfirst else f(y, t, *args), "odeint")

    def solve(fun: Any, jac: Any, asked: Any, t0: float, z0: Any, order: int) -> Any:
        whole = np.append(t0, asked)
        absolute = np.resize(atol, len(z0)) if np.ndim(atol) else atol
        relative = np.resize(rtol, len(z0)) if np.ndim(rtol) else rtol
        # Variational equations take more steps than the state alone, and the caller's bound is for the state.
        bound = mxstep if order == 0 else max(10 * mxstep, 50000)
        result, info = original(_scipy.odeint)(
            lambda t, z: fun(t, z), z0, whole, (), None if order == 0 else jac, 0, 1, rtol=relative, atol=absolute,
            mxstep=bound, tfirst=True, **steps,
        )  # fmt: skip
        if order and info["message"] != "Integration successful.":
            warnings.warn(
                f"odeint: the equation of a derivative: {info['message']}", _scipy.ODEintWarning, stacklevel=2
            )
        return result[1:], ()

    flow = Flow(right_side, solve, size)
    states = flow.states(times[1:], times[0], y0, p, rest)[0]
    out = np.concatenate([y0[None], states])
    if not full_output:
        return out
    numbers = [numbers_of(x) for x in (y0, times, p, *rest)]
    info = original(_scipy.odeint)(
        plain, numbers[0], numbers[1], (numbers[2], numbers[3:]), None, 0, 1, rtol=rtol, atol=atol, mxstep=mxstep,
        **steps,
    )[1]  # fmt: skip
    return out, info


@with_converters
def ode_set_initial_value(self: Any, y: Any, t: Any = 0.0) -> Any:
    """`set_initial_value` of `ode` for a traced state or time."""
    return _started(self, np.atleast_1d(asarray(y)), t)


@with_converters
def complex_ode_set_initial_value(self: Any, y: Any, t: Any = 0.0) -> Any:
    """`set_initial_value` of `complex_ode` for a traced state or time."""
    y = np.ravel(asarray(y))
    parts = np.ravel(np.stack([np.real(y), np.imag(y)], axis=1))
    self.tmp = np.zeros(shape_of(parts))
    self.tmp_derivative = np.zeros(shape_of(parts))
    return _started(self, parts, t)


def _started(self: Any, y: Array, t: Any) -> Any:
    if not shape_of(self._y)[0] if holds_traced(self._y) else not len(self._y):
        self.set_integrator("")
    self._y, self.t = y.astype(self._integrator.scalar), t
    self._integrator.reset(shape_of(y)[0], self.jac is not None)
    return self


@with_converters
def ode_integrate(self: Any, t: Any, step: bool = False, relax: bool = False) -> Array:
    """`integrate` of `ode` and `complex_ode`, with derivatives in state, times and everything the function reaches.

    On traced values each call starts the integrator again, from the state after the last call.
    """
    is_complex_ode = isinstance(self, _scipy.complex_ode)
    function = self.cf if is_complex_ode else self.f
    parameters = Parameters((function, self.f_params))
    if not parameters.is_traced and not holds_traced((self._y, self.t, t)):
        return original(_scipy.ode.integrate)(self, t, step, relax)
    if step or relax or getattr(self._integrator, "solout", None) is not None:
        raise UnsupportedFunctionError(
            f"ode.integrate with step, relax or solout on traced values{at_line()}\n"
            "solve_ivp differentiates its steps and events."
        )
    y = asarray(self._y)
    is_complex = y.dtype.kind == "c"
    size = shape_of(y)[0] * (2 if is_complex else 1)

    def right_side(t: Any, z: Array, p: Array, *rest: Array) -> Array:
        f, args = parameters.rebuilt(p, rest)
        f = intercepted_call(f)
        if is_complex_ode:
            out = asarray(f(t, z[::2] + 1j * z[1::2], *args))
            return np.ravel(np.stack([np.real(out), np.imag(out)], axis=1))
        if is_complex:
            out = asarray(f(t, z[: size // 2] + 1j * z[size // 2 :], *args))
            return np.concatenate([np.real(out), np.imag(out)])
        return np.ravel(asarray(f(t, z, *args))).astype(float)

    known_integrator = self._integrator

    def solve(fun: Any, jac: Any, asked: Any, t0: float, z0: Any, order: int) -> Any:
        integrator = copy.copy(known_integrator)
        takes_jacobian = hasattr(integrator, "with_jacobian") or type(integrator).__name__ == "lsoda"
        if is_complex:  # the real parts of the same equation
            integrator = copy.copy(_scipy.ode(fun).set_integrator("vode")._integrator)
            for name in ("meth", "rtol", "atol", "nsteps", "max_step", "min_step", "first_step", "order"):
                setattr(integrator, name, getattr(known_integrator, name, getattr(integrator, name)))
        for name in ("rtol", "atol"):
            if np.ndim(getattr(integrator, name)):
                setattr(integrator, name, np.resize(getattr(integrator, name), len(z0)))
        if order:
            integrator.nsteps = max(integrator.nsteps, 50000)
        states = []
        z, now = np.array(z0), t0
        for time in asked:
            integrator.reset(len(z), takes_jacobian)
            z, now = integrator.run(fun, jac, z, now, float(time), (), ())
            z = np.array(z)
            states.append(z)
        if order == 0:
            known_integrator.success = integrator.success
        return np.array(states), ()

    p, rest = parameters.vector(), parameters.rest()
    start = np.concatenate([np.real(y), np.imag(y)]) if is_complex else y
    flow = Flow(right_side, solve, size)
    z = flow.states(np.reshape(t, (1,)) * 1.0, self.t * 1.0, start, p, rest)[0][0]
    self._y = z[: size // 2] + 1j * z[size // 2 :] if is_complex else z
    self.t = t
    return self._y
