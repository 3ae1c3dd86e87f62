"""scipy.integrate on traced and plain arrays."""

from __future__ import annotations

from typing import Any

import scipy.integrate as _scipy

from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.scipy.integrate.boundary_values import solve_bvp
from func.scipy.integrate.initial_values import solve_ivp
from func.scipy.integrate.odes import complex_ode_set_initial_value, ode_integrate, ode_set_initial_value, odeint
from func.scipy.integrate.quadrature import dblquad, nquad, quad, quad_vec, tplquad
from func.scipy.integrate.rules import qmc_quad
from func.scipy.kinds.traces import TRACED_NUMPY as _TRACED_NUMPY
from func.scipy.kinds.traces import traces as _traces
from func.scipy.integrate.vectorized import cubature, nsum, tanhsinh
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__: list[str] = [
    "complex_ode_set_initial_value", "cubature", "dblquad", "nquad", "nsum",
    "ode_integrate", "ode_set_initial_value", "odeint", "qmc_quad", "quad", "quad_vec", "simpson", "solve_bvp",
    "solve_ivp", "tanhsinh", "tplquad",
]  # fmt: skip
simpson = _traces(_scipy.simpson, np=_TRACED_NUMPY)


@_without_engine_frames
def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals(), _scipy.__all__)
