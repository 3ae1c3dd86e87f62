"""scipy.integrate on traced and plain arrays."""

from __future__ import annotations

import scipy.integrate as _scipy

from func.scipy.integrate.boundary_values import solve_bvp
from func.scipy.integrate.initial_values import solve_ivp
from func.scipy.integrate.odes import complex_ode_set_initial_value, ode_integrate, ode_set_initial_value, odeint
from func.scipy.integrate.quadrature import dblquad, nquad, quad, quad_vec, tplquad
from func.scipy.integrate.rules import qmc_quad
from func.scipy.kinds.traces import TRACED_NUMPY as _TRACED_NUMPY
from func.scipy.kinds.traces import traces as _traces
from func.scipy.integrate.vectorized import cubature, nsum, tanhsinh
from func.scipy.kinds.public_modules import public_module as _public_module

__all__: list[str] = [
    "complex_ode_set_initial_value", "cubature", "dblquad", "nquad", "nsum",
    "ode_integrate", "ode_set_initial_value", "odeint", "qmc_quad", "quad", "quad_vec", "simpson", "solve_bvp",
    "solve_ivp", "tanhsinh", "tplquad",
]  # fmt: skip
simpson = _traces(_scipy.simpson, np=_TRACED_NUMPY)

__getattr__, __dir__ = _public_module(globals(), _scipy)
