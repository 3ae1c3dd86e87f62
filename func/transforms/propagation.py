"""Propagation of uncertainty: covariances of results, by Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func.interpreters.core import dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError
from func.transforms.arguments import differentiable
from func.transforms.boundary import Intercepts, array_leaf, name_of
from func.transforms.jacobians import jacobian
from func.transforms.transformed import transform


@transform
def propagate(f: Callable[..., Any], *, intercept: Intercepts = False) -> Callable[..., Any]:
    """The covariance of a function's result to first order: `propagate(f)(x, C)` is J C Jᵀ with the Jacobian J.

    This is the delta method, exact for linear functions. Further arguments of the result go to f as constants.
    `func.tree.ravel` makes one vector of several parameters.

    Args:
        f: A function of an array x, with an array as output; plain NumPy code.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Returns:
        A function of x, its covariance of shape x.shape + x.shape, and what else f takes. For an output of shape s it
        returns an array of shape s + s: a variance for a number. For complex outputs it is J C Jᴴ.

    Raises:
        ArgumentError: The covariance does not fit x (a ValueError).

    Source: A. W. van der Vaart (1998), "Asymptotic Statistics", chapter 3.

    Example:
        >>> import numpy as np, func
        >>> x, covariance = np.array([2.0, 3.0]), np.diag([0.01, 0.04])
        >>> func.propagate(lambda x: x[0] * x[1])(x, covariance).round(12)  # 9 × 0.01 + 4 × 0.04
        np.float64(0.25)
    """

    def covariance_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) < 2:
            raise ArgumentError(
                f"func.propagate({name_of(f)}) takes x and its covariance, then other arguments of {name_of(f)}; it "
                f"got {len(args)} positional"
            )
        x, covariance, *others = args
        x = array_leaf(x, "x", "propagate")
        shape = shape_of(x)
        covariance = array_leaf(covariance, "covariance", "propagate")
        if shape_of(covariance) != (*shape, *shape):
            raise ArgumentError(
                f"func.propagate: x has shape {shape}, so its covariance has shape {(*shape, *shape)}, not "
                f"{shape_of(covariance)}"
                + ("; np.diag makes one of variances" if shape_of(covariance) == shape else "")
            )
        differentiable((x,), {}, (0,), "propagate", root="x")
        slopes = jacobian(f)(x, *others, **kwargs)
        if not hasattr(slopes, "shape"):
            raise ArgumentError(
                f"func.propagate: {name_of(f)} must return one array, not {type(slopes).__name__}: write np.array(...)"
            )
        axes = len(shape)
        spread = np.tensordot(slopes, covariance, axes)
        of_out = tuple(range(slopes.ndim - axes))
        adjoint = np.conj(slopes) if dtype_of(slopes).kind == "c" else slopes
        last = tuple(range(len(of_out), slopes.ndim))
        return np.tensordot(spread, adjoint, (last, last))

    return covariance_of
