"""Functions of distributions that SciPy computes on the host, with derivatives that follow from the density.

Cumulative functions and quantiles that SciPy finds by quadrature, by root search or in compiled code are one primitive
with SciPy's values. With the density f of x and parameters θ, the distribution function F has the derivatives ∂F/∂x = f
and ∂F/∂θ = ∫ ∂f/∂θ over the tail on the nearer side. A quantile x of q has dx = (dq - ∂F/∂θ dθ) / f. Entropies and
moments are integrals over the support. The integrals are sums over fixed nodes (`double_exponential`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats

from func.backends.array_helpers.random import CUSTOM, distribution_of, distribution_value
from func.backends.array_helpers.strides import iterated_order
from func.interpreters.core import ZERO, Array, Aval, Params, Primitive, general
from func.interpreters.core.parameters import Kind
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.jvp import Jvp
from func.interpreters.primitives import costs
from func.interpreters.primitives.structural.shapes import align_ranks

Function = Callable[..., Any]

RULES: dict[str, Callable[[Any], Function]] = {}
"""The derivative of each method: a function from the distribution to a traced function.

The value of the traced function may differ from SciPy's by the error of the quadrature."""


def name_of(dist: Any) -> str:
    """The name of a distribution in programs; SciPy's name for SciPy's distributions."""
    name = str(dist.name)
    known: Any = getattr(scipy.stats, name, None)
    if type(known) is type(dist) and (known.a, known.b) == (dist.a, dist.b):
        return name
    name = f"{name} at {id(dist):x}"
    CUSTOM[name] = dist
    return name


def _is_known(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    if value in CUSTOM:
        return True
    return isinstance(getattr(scipy.stats, value, None), (scipy.stats.rv_continuous, scipy.stats.rv_discrete))


def _is_method(value: Any, avals: Sequence[Aval], params: Params) -> bool:
    return isinstance(value, str) and value in RULES


def _aval(*avals: Aval, distribution: str, method: str) -> Aval:
    return Aval(np.broadcast_shapes(*[aval.shape for aval in avals]), np.dtype(np.float64))


def _jvp(primals: Sequence[Array], tangents: Sequence[Any], *, distribution: str, method: str) -> tuple[Array, Any]:
    out = value(*primals, distribution=distribution, method=method)
    places = [i for i, tangent in enumerate(tangents) if tangent is not ZERO]
    if not places:
        return out, ZERO
    rule = RULES[method](distribution_of(distribution))
    tangent: Any = rule(primals, [None if t is ZERO else t for t in tangents], out)
    return out, np.broadcast_to(tangent, np.shape(out))


def _batch(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Array:
    return value(*align_ranks(size, batched, args), **params)


value: Primitive = general(
    "scipy_distribution",
    distribution_value,
    aval=_aval,
    batch=_batch,
    jvp=_jvp,
    parameters={"distribution": Kind("a distribution", _is_known), "method": Kind("a method of it", _is_method)},
    cost=1000 * costs.SPECIAL,
    layout=iterated_order,
)
"""A method of a distribution at (x, *shapes), or at (*shapes) for entropies and moments."""


def from_host(dist: Any, name: str) -> Function:
    """SciPy's value of a method, with the derivative by its rule."""
    distribution = name_of(dist)

    def call(*args: Array) -> Array:
        args = tuple([np.asarray(x, float) for x in args])
        return value(*args, distribution=distribution, method=name)

    return call


def along(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The derivative of a function of several arguments along those tangents that are not None."""
    interpreter = Jvp("scipy.stats")
    with TransformScope(interpreter), running(interpreter):
        out = f(*[x if dx is None else interpreter.lift(x, dx) for x, dx in zip(primals, tangents, strict=True)])
        primal, tangent = interpreter.unpack(out)
    return np.zeros(np.shape(primal)) if tangent is ZERO else tangent
