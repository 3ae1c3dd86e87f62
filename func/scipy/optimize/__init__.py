"""scipy.optimize on traced and plain arrays: SciPy solves, and the solution differentiates by its equation.

Roots, minima, fits and linear programs are functions of their parameters: the traced values in `args` or in the
closures of the solver's functions. Derivatives do not come from the steps of the solver, but from the equation of the
solution: f(x, p) = 0 at a root; a zero gradient in the free variables at a minimum; the conditions of Karush, Kuhn and
Tucker with active bounds and constraints. They exist in both modes, to every order, under `vmap` and `jit`.
Solvers get func's Jacobian, gradient or Hessian if you pass none.

The derivative of a result that is not a solution, or not a differentiable function of its parameters, raises
SingularSystemError or warns by SolverWarning.
"""

from __future__ import annotations

import scipy.optimize as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.optimize.least_squares_fits import curve_fit, least_squares, leastsq
from func.scipy.optimize.linear import isotonic_regression, linear_sum_assignment, linprog, lsq_linear, milp, nnls
from func.scipy.optimize.minima import (
    basinhopping, brent, brute, differential_evolution, direct, dual_annealing, fmin, fmin_bfgs, fmin_cg,
    fmin_cobyla, fmin_l_bfgs_b, fmin_ncg, fmin_powell, fmin_slsqp, fmin_tnc, fminbound, golden,
    minimize, minimize_scalar, shgo,
)  # fmt: skip
from func.scipy.optimize.roots import (
    anderson, bisect, brenth, brentq, broyden1, broyden2, diagbroyden, excitingmixing, fixed_point, fsolve,
    linearmixing, newton, newton_krylov, ridder, root, root_scalar, toms748,
)  # fmt: skip

__all__ = [
    "anderson", "basinhopping", "bisect", "brent", "brenth", "brentq", "broyden1", "broyden2", "brute", "curve_fit",
    "diagbroyden", "differential_evolution", "direct", "dual_annealing", "excitingmixing", "fixed_point", "fmin",
    "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc",
    "fminbound", "fsolve", "golden", "isotonic_regression", "least_squares", "leastsq", "linear_sum_assignment",
    "linearmixing", "linprog", "lsq_linear", "milp", "minimize", "minimize_scalar", "newton", "newton_krylov", "nnls",
    "ridder", "root", "root_scalar", "shgo", "toms748",
]  # fmt: skip

__getattr__, __dir__ = _public_module(globals(), _scipy)
