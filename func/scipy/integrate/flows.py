"""The solution of an initial value problem as a function of times, start, initial state and parameters.

SciPy's solvers compute it on numbers. Its derivative is the solution of the variational equation. The same solver
computes it together with the state, with the same tolerances (forward sensitivity):

    (dy/dq)' = ∂f/∂y dy/dq + ∂f/∂q,  q = (y0, p),    ∂y/∂t = f

There a traced start t0 is one of the parameters: of f(t0 + τ, y) with the time τ since the start. The derivative of
that solution is a solution of the same kind, so orders nest. States and parameters are real vectors here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import func as _func
from func.backends.records import Record
from func.interpreters.calls.call_primitives import linear_call
from func.interpreters.core import Array, Aval, shape_of
from func.numpy import asarray
from func.scipy.integrate.numbers import Numbers, Quickened
from func.transforms.closures import is_traced
from func.transforms.custom import custom_jvp, custom_vjp


class Solver(Protocol):
    """A solver of an equation on numbers: it returns the states at times, of shape (times, n), and other results."""

    def __call__(self, fun: Callable[..., Any], jacobian: Any, times: Any, t0: Any, y0: Any, order: int, /) -> Any: ...


class Flow(Record):
    """The solution of y' = f(t, y, p), y(t0) = y0, where y has `size` components.

    It is a derivative of order `order` with respect to q, the initial state of order 0 and p, which the state contains.
    """

    fun: Callable[..., Array]
    solver: Solver
    size: int
    others: Sequence[Aval] = ()
    order: int = 0
    base: int = 0
    """The size of the state of order 0."""
    quick: list[Quickened] | None = None

    def states(self, times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array]) -> list[Array]:
        """The states at times, of shape (times, size), and the solver's other results."""
        count, moves = shape_of(times)[0], is_traced(t0)
        numbers = Numbers(self._on_numbers, count * self.size, self.others)

        @custom_jvp
        def states(times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array]) -> list[Array]:
            out, *others = numbers.on(times, t0, y0, p, *rest)
            return [np.reshape(out, (count, self.size)), *others]

        @states.defjvp
        def states_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            (times, t0, y0, p, rest), (times_dot, t0_dot, y0_dot, p_dot, _) = primals, tangents
            outs = states(times, t0, y0, p, rest)
            directions, ahead = [y0_dot, p_dot], times_dot
            if moves:
                directions, ahead = [*directions, np.reshape(t0_dot, (1,))], times_dot - t0_dot
            rates = self.sensitivities(times, t0, y0, p, rest, moves)
            dot = rates @ np.concatenate(directions)
            if count:
                dot = dot + np.stack([self.fun(times[i], outs[0][i], p, *rest) * ahead[i] for i in range(count)])
            return outs, [dot, *[np.zeros_like(other) for other in outs[1:]]]

        return list(states(times, t0, y0, p, list(rest)))

    def sensitivities(
        self, times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array], moves: bool = False
    ) -> Array:
        """The derivatives of the states with respect to q, of shape (times, size, q); with `moves` q ends with t0."""
        base, count = self.base or self.size, shape_of(p)[0]
        flow = self
        if moves:
            flow, p, count = self.since_start(), np.concatenate([p, np.reshape(t0, (1,))]), count + 1
            times, t0 = times - t0, np.zeros(())
        states = flow.derivative(base, count).states(times, t0, y0, p, rest)[0]
        return np.reshape(states[:, self.size :], (shape_of(times)[0], self.size, base + count))

    def since_start(self) -> Flow:
        """The flow in the time since the start, with the start as the last parameter."""

        def fun(t: Any, y: Array, p: Array, *rest: Array) -> Array:
            return self.fun(t + p[-1], y, p[:-1], *rest)

        return Flow(fun, self.solver, self.size, self.others, self.order, self.base)

    def derivative(self, base: int, count: int) -> Flow:
        """The flow of the state and its derivatives with respect to q."""
        width = base + count
        directions = np.eye(count)

        def fun(t: Any, state: Array, p: Array, *rest: Array) -> Array:
            y, rates = state[: self.size], np.reshape(state[self.size :], (self.size, width))

            def along(rate: Array, direction: Array) -> Array:
                return _func.jvp(lambda y, p: self.fun(t, y, p, *rest), (y, p), (rate, direction))[1]

            columns = np.concatenate([np.zeros((base, count)), directions])
            rate = _func.vmap(along)(np.transpose(rates), columns) if width else np.zeros((0, self.size))
            return np.concatenate([self.fun(t, y, p, *rest), np.ravel(np.transpose(rate))])

        return Flow(fun, self.solver, self.size * (1 + width), order=self.order + 1, base=base)

    def _initial(self, y0: Array, p: Array) -> Array:
        """The initial state: that of order 0, whose derivative is the identity."""
        state, base, width = y0, self.base or self.size, shape_of(y0)[0] + shape_of(p)[0]
        for _ in range(self.order):
            rates = np.eye(shape_of(state)[0], width)
            rates[:, base:] = 0.0
            state = np.concatenate([state, np.ravel(rates)])
        return state

    def _on_numbers(self, times: Any, t0: Any, y0: Any, p: Any, *rest: Any) -> Any:
        if self.quick is None:
            self.quick = [Quickened(self.fun), Quickened(_func.jacfwd(self.fun, argnums=1))]
        run, jacobian = self.quick

        def fun(t: Any, y: Any) -> Any:
            return asarray((run if self.order else self.fun)(t, y, p, *rest))

        def jac(t: Any, y: Any) -> Any:
            return asarray(jacobian(t, y, p, *rest))

        states, others = self.solver(fun, jac, times, float(t0), self._initial(y0, p), self.order)
        return np.ravel(states), others


def by_adjoint(flow: Flow, times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array]) -> list[Array]:
    """The states at times, whose pullback solves the adjoint equation backwards, from one time to the one before.

        a' = -aᵀ ∂f/∂y,    g' = -aᵀ ∂f/∂p

    It solves for the state backwards together with a and g, from the states at the times.

    Source: R. T. Q. Chen et al. (2018), arXiv:1806.07366, appendix B.
    """
    size, count = flow.size, shape_of(p)[0]

    def backwards(t: Any, state: Array, p: Array, *rest: Array) -> Array:
        y, a = state[:size], state[size : 2 * size]
        slope, pullback = _func.vjp(lambda y, p: flow.fun(t, y, p, *rest), y, p)
        a_rate, p_rate = pullback(-a)
        return np.concatenate([slope, a_rate, p_rate])

    adjoint = Flow(backwards, flow.solver, 2 * size + count)

    @custom_vjp
    def states(times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array]) -> list[Array]:
        return flow.states(times, t0, y0, p, rest)

    def forward(times: Array, t0: Any, y0: Array, p: Array, rest: Sequence[Array]) -> Any:
        # Not by this function again: forward mode over reverse mode differentiates this code.
        outs = flow.states(times, t0, y0, p, rest)
        return outs, (times, t0, y0, p, list(rest), outs[0])

    def pulled(*operands: Array) -> list[Array]:
        times, t0, y0, p, values, *rest, ct = operands
        a, g = np.zeros(size), np.zeros(count)
        times_ct: list[Any] = [None] * shape_of(times)[0]
        for i in range(shape_of(times)[0] - 1, -1, -1):
            times_ct[i] = ct[i] @ flow.fun(times[i], values[i], p, *rest)
            start = np.concatenate([values[i], a + ct[i], g])
            end = times[i - 1] if i else t0
            state = adjoint.states(np.reshape(end, (1,)), times[i], start, p, rest)[0][0]
            a, g = state[size : 2 * size], state[2 * size :]
        t0_ct = -(a @ flow.fun(t0, y0, p, *rest))
        return [np.stack(times_ct) if times_ct else np.zeros(0), t0_ct, a, g]

    def pushed(known: Sequence[Array], moves: dict[int, Any]) -> list[Array]:
        """The transpose of the pullback, for forward mode: by the variational equation."""
        primals, rest = tuple(known[:4]), known[5:]
        tangents = tuple([moves.get(i, np.zeros(shape_of(primal))) for i, primal in enumerate(primals)])

        def states(times: Array, t0: Any, y0: Array, p: Array) -> Array:
            return flow.states(times, t0, y0, p, rest)[0]

        return [_func.jvp(states, primals, tangents)[1]]

    def backward(residuals: Any, cts: Any) -> Any:
        times, t0, y0, p, rest, values = residuals
        operands = (times, t0, y0, p, values, *rest)
        outs = tuple([Aval(shape_of(x), np.dtype(float)) for x in (times, t0, y0, p)])
        call = {"forward": pulled, "backward": pushed, "residuals": len(operands), "outs": outs}
        return (*linear_call(*operands, cts[0], **call), None)

    states.defvjp(forward, backward)
    return list(states(times, t0, y0, p, list(rest)))
