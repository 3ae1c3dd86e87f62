"""Newton's method on the Rosenbrock function, with gradient and Hessian from `func`."""

from typing import Any

import numpy as np
from scipy.optimize import minimize, rosen_hess

import func

Array = np.ndarray[Any, Any]


def rosenbrock(x: Array) -> Array:
    """Has its minimum 0 where every x is 1, at the end of a long curved valley."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def main() -> None:
    """Minimises in 20 dimensions by a trust-region Newton method."""
    gradient, hessian = func.grad(rosenbrock), func.hessian(rosenbrock)
    start = np.tile([-1.2, 1.0], 10)
    np.testing.assert_allclose(hessian(start), rosen_hess(start), rtol=1e-12, atol=1e-9)

    result = minimize(rosenbrock, start, jac=gradient, hess=hessian, method="trust-ncg", tol=1e-9)
    error = np.max(np.abs(result.x - 1))
    print(f"{result.nit} Newton steps, {result.nhev} Hessians; largest distance from the minimum {error:.1e}")
    assert result.success, result.message
    assert error < 1e-8


if __name__ == "__main__":
    main()
