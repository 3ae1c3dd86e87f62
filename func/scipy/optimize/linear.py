"""Linear problems with bounds: nonnegative and bounded least squares, linear programs, isotonic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize as scipy_optimize

from func import numpy as func_numpy
from func.interpreters.calls.callback import pure_callback
from func.interpreters.core import Array, Aval, Tracer, shape_of
from func.interpreters.core.errors import ArgumentError, UnsupportedFunctionError
from func.scipy.optimize import solving
from func.scipy.optimize.conditions import Constraint, Model, limits, minimum
from func.scipy.optimize.least_squares_fits import unaliased
from func.scipy.optimize.solving import Run, as_array, original, vector_of

INTEGER = np.dtype(np.int64)


def _half_square(x: Array, A: Array, b: Array) -> Array:
    return 0.5 * np.sum((A @ x - b) ** 2)


def nnls(A: Any, b: Any, **options: Any) -> Any:
    """scipy.optimize.nnls: the x ≥ 0 that minimises |A x - b|, and that norm; both differentiate in A and b.

    Example:
        >>> import numpy as np, func
        >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> func.jacobian(lambda b: func.scipy.optimize.nnls(A, b)[0].sum())(np.array([2.0, -1.0]))
        array([ 1., -0.])
    """
    if not solving.has_traced(A, b):
        return original("nnls")(A, b, **options)
    A, b = _matrix(A), vector_of(_matrix(b))
    if shape_of(A)[:1] == (0,):  # SciPy returns memory that it has not written
        raise ArgumentError("scipy.optimize.nnls: A has no rows, so that x is not determined")
    run = Run("nnls")

    def minimise(model: Model) -> Any:
        return {"x": original("nnls")(*[np.asarray(part) for part in model.args], **options)[0]}

    model = Model(_half_square, (A, b), 0.0, None)
    x, _, _ = minimum(run, model, (), (), minimise, shape_of(A)[1], 1e-10)
    return x, np.linalg.norm(A @ x - b)


def lsq_linear(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), *more: Any, **options: Any) -> Any:
    """scipy.optimize.lsq_linear: the x within bounds that minimises |A x - b|; differentiates in A, b and bounds.

    Example:
        >>> import numpy as np, func
        >>> A = np.array([[2.0, 0.0], [0.0, 1.0]])
        >>> func.jacobian(lambda b: func.scipy.optimize.lsq_linear(A, b, (0, 1)).x.sum())(np.array([1.0, 3.0]))
        array([ 0.5, -0. ])
    """
    box = (bounds.lb, bounds.ub) if isinstance(bounds, scipy_optimize.Bounds) else bounds
    if not solving.has_traced(A, b, box):
        return original("lsq_linear")(A, b, bounds, *more, **options)
    A, b = _matrix(A), vector_of(_matrix(b))
    size = shape_of(A)[1]
    lower, upper = unaliased(bounds, size)
    run = Run("lsq_linear")

    def minimise(model: Model) -> Any:
        box = bounds if lower is None else (np.asarray(model.lower, float), np.asarray(model.upper, float))
        return original("lsq_linear")(*[np.asarray(part) for part in model.args], box, *more, **options)

    model = Model(_half_square, (A, b), lower, upper)
    x, info, _ = minimum(run, model, (), (), minimise, size, 1e-5)
    return solving.result_of(run, info, x=x, cost=model.value(x), fun=A @ x - b)


def _matrix(value: Any) -> Any:
    return func_numpy.asarray(value.toarray() if hasattr(value, "toarray") else value)


def linprog(
    c: Any,
    A_ub: Any = None,
    b_ub: Any = None,
    A_eq: Any = None,
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Any = None,
    options: Any = None,
    x0: Any = None,
    integrality: Any = None,
) -> Any:
    """scipy.optimize.linprog, whose vertex differentiates in the constraints, and its multipliers in the costs.

    `x`, `fun`, `slack`, `con` and the `marginals` and `residual` of `ineqlin`, `eqlin`, `lower` and `upper` are
    functions of the parameters. The solution must be one vertex, with one choice of active constraints. If others are
    active too, it warns; if the solution is not unique, the derivative raises SingularSystemError.

    Example:
        >>> import numpy as np, func
        >>> def cost(b):
        ...     return func.scipy.optimize.linprog([-1.0, -2.0], A_ub=[[1.0, 1.0], [0.0, 1.0]], b_ub=b).fun
        >>> func.grad(cost)(np.array([4.0, 3.0]))
        array([-1., -1.])
    """
    data = (c, A_ub, b_ub, A_eq, b_eq, bounds)
    if not solving.has_traced(data):
        return original("linprog")(*data, method, callback, options, x0, integrality)
    if integrality is not None and np.any(np.asarray(integrality)):
        raise UnsupportedFunctionError(_with_integers("linprog"))
    c = vector_of(_matrix(c))
    size = shape_of(c)[0]
    matrices = [None if part is None else _matrix(part) for part in (A_ub, A_eq)]
    sides = [None if part is None else vector_of(_matrix(part)) for part in (b_ub, b_eq)]
    matrices = [None if m is None else m if len(shape_of(m)) == 2 else np.reshape(m, (-1, size)) for m in matrices]
    constraints = []
    if matrices[0] is not None:
        constraints.append(Constraint(_times, (matrices[0],), None, sides[0]))
    if matrices[1] is not None:
        constraints.append(Constraint(_times, (matrices[1],), sides[1], sides[1]))
    lower, upper = _box(bounds, size)
    run = Run("linprog")

    def minimise(model: Model) -> Any:
        own = iter(model.constraints)
        given: list[Any] = []
        for matrix in matrices:
            constraint = None if matrix is None else next(own)
            given += (None, None) if constraint is None else (constraint.args[0], constraint.upper)
        box = np.stack([np.asarray(model.lower, float), np.asarray(model.upper, float)], axis=1)
        found = original("linprog")(model.args[0], *given, box, method, callback, options, x0, None)
        if found.x is None:
            found = scipy_optimize.OptimizeResult({**found, "x": np.full(size, np.nan), "missing": True})
        return found

    model = Model(_product, (c,), lower, upper, tuple(constraints))
    x, info, multipliers = minimum(run, model, (), (), minimise, size, 1e-7)
    if run.known is not None and run.known.pop("missing", False):
        return scipy_optimize.OptimizeResult({**run.known, "x": None})
    count = 0 if sides[0] is None else shape_of(sides[0])[0]
    slack = np.zeros(0) if matrices[0] is None else sides[0] - matrices[0] @ x
    con = np.zeros(0) if matrices[1] is None else sides[1] - matrices[1] @ x
    result = solving.result_of(run, info, x=x, fun=np.sum(c * x), slack=slack, con=con)
    if run.known is None:
        result.update(slack=slack, con=con)
    if run.known is None or "ineqlin" in run.known:
        _add_marginals(result, x, c, matrices, lower, upper, multipliers, count, slack, con)
    return result


def milp(c: Any, *, integrality: Any = None, bounds: Any = None, constraints: Any = None, options: Any = None) -> Any:
    """scipy.optimize.milp on plain numbers; traced values raise an error.

    Raises:
        UnsupportedFunctionError: Traced values: the best integers do not change smoothly (a TypeError).
    """
    parts = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    inside = [getattr(part, "__dict__", part) for part in (bounds, *parts)]
    if solving.has_traced(c, inside):
        raise UnsupportedFunctionError(_with_integers("milp"))
    return original("milp")(c, integrality=integrality, bounds=bounds, constraints=constraints, options=options)


def _with_integers(name: str) -> str:
    return (
        f"scipy.optimize.{name}: a program with integer variables has no derivative by its conditions; solve it on "
        "plain numbers (func.stop_gradient), fix the integers by bounds of linprog, and solve again"
    )


def _add_marginals(
    result: Any, x: Array, c: Array, matrices: Any, lower: Array, upper: Array, multipliers: Array, count: int,
    slack: Array, con: Array,
) -> None:  # fmt: skip
    """The sensitivities of the optimum to the right-hand sides and bounds, which are the multipliers."""
    reduced = c
    if matrices[0] is not None:
        reduced = reduced - multipliers[:count] @ matrices[0]
    if matrices[1] is not None:
        reduced = reduced - multipliers[count:] @ matrices[1]
    make = scipy_optimize.OptimizeResult
    result.update(
        ineqlin=make(residual=slack, marginals=multipliers[:count]),
        eqlin=make(residual=con, marginals=multipliers[count:]),
        lower=make(residual=x - lower, marginals=np.where(reduced > 0, reduced, 0.0)),
        upper=make(residual=upper - x, marginals=np.where(reduced < 0, reduced, 0.0)),
    )


def _times(x: Array, matrix: Array) -> Array:
    return matrix @ x


def _product(x: Array, c: Array) -> Array:
    return np.sum(c * x)


def _box(bounds: Any, size: int) -> tuple[Array, Array]:
    """The bounds of linprog: one pair for all variables, or one for each."""
    if bounds is None:
        bounds = (0, None)
    if type(bounds) is not Tracer and not isinstance(bounds, np.ndarray):
        bounds = list(bounds)
        if len(bounds) == 2 and not any([_is_pair(bound) for bound in bounds]):
            bounds = [tuple(bounds)] * size
        elif len(bounds) == 1:
            bounds = list(bounds) * size
    elif shape_of(bounds) == (2,):
        bounds = np.broadcast_to(as_array(bounds), (size, 2))
    return limits(bounds, size)


def _is_pair(bound: Any) -> bool:
    return isinstance(bound, (list, tuple)) or (bound is not None and len(shape_of(as_array(bound))) > 0)


def isotonic_regression(y: Any, *, weights: Any = None, increasing: bool = True) -> Any:
    """scipy.optimize.isotonic_regression: in each block the weighted mean of y, which differentiates in y and weights.

    Example:
        >>> import numpy as np, func
        >>> func.jacobian(lambda y: func.scipy.optimize.isotonic_regression(y).x)(np.array([1.0, 3.0, 2.0]))
        array([[1. , 0. , 0. ],
               [0. , 0.5, 0.5],
               [0. , 0.5, 0.5]])
    """
    if not solving.has_traced(y, weights):
        return original("isotonic_regression")(y, weights=weights, increasing=increasing)
    y = _matrix(y)
    if len(shape_of(y)) != 1:
        raise ValueError(f"array has incorrect number of dimensions: {len(shape_of(y))}; expected 1")
    size = shape_of(y)[0]
    w = np.ones(size) if weights is None else vector_of(_matrix(weights))
    seen: list[Any] = []

    def blocks_of(y: Any, w: Any) -> tuple[Array]:
        result = original("isotonic_regression")(y, weights=w, increasing=increasing)
        seen.append(result)
        return (np.searchsorted(result.blocks, np.arange(size), side="right") - 1,)

    (block,) = pure_callback(y, w, function=blocks_of, outs=(Aval((size,), INTEGER),), vmap_method="sequential")
    members = np.expand_dims(block, 1) == np.arange(size)
    sums, totals = [np.sum(np.where(members, np.expand_dims(x, 1), 0.0), axis=0) for x in (w, w * y)]
    x = (totals / np.where(sums == 0, 1.0, sums))[block]
    if len(seen) == 1:
        (result,) = seen
        count = len(result.blocks) - 1
        return scipy_optimize.OptimizeResult(x=x, weights=sums[:count], blocks=result.blocks)
    return scipy_optimize.OptimizeResult(x=x)


def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> Any:
    """scipy.optimize.linear_sum_assignment; the rows and columns are indices and carry no derivative."""
    if not solving.has_traced(cost_matrix):
        return original("linear_sum_assignment")(cost_matrix, maximize)
    matrix = _matrix(cost_matrix)
    aval = Aval((min(shape_of(matrix)),), INTEGER)

    def assign(matrix: Any) -> Any:
        return original("linear_sum_assignment")(matrix, maximize)

    return pure_callback(matrix, function=assign, outs=(aval, aval), vmap_method="sequential")
