"""Implicit functions: roots and linear solutions, differentiated by their equation instead of their solver.

Where f(x, p) = 0, the root x is a function of p with dx = -(df/dx)⁻¹ (df/dp) dp. The solver runs below all transforms,
which differentiate only its equation. The rule consists of traced operations, so derivatives of every order and both
modes follow, under `vmap` and `jit`.

Parameters are arguments, or values in the closure, defaults, globals and bound objects of the function (`closures.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from func import tree
from func.backends.records import Record
from func.interpreters.calls.call_primitives import avals_of, linear_call
from func.interpreters.calls.callback import pure_callback as pure_callback_primitive
from func.interpreters.calls.custom_rules import custom_jvp_call
from func.interpreters.core import ZERO, Array, Aval, Tracer, dtype_of, is_inexact, shape_of, unboxed
from func.interpreters.core.errors import CustomRuleError, NotDifferentiableError, SingularSystemError
from func.interpreters.drivers import output_avals, taylor_flat
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.interpreters.primitives.structural.shapes import convert
from func.interpreters.structural_zeros import absent_like
from func.transforms.boundary import array_leaf, check_callable, name_of
from func.transforms.closures import Closure
from func.transforms.forward import jvp, linear_transpose
from func.transforms.jacobians import jacfwd
from func.transforms.transformed import transform


class Problem(NamedTuple):
    """An equation and its solver; both may use traced values that are not arguments."""

    residual: Callable[..., Any]
    """(x, aux, *params): a tree with as many numbers as x, zero at the solution."""
    solve: Callable[..., tuple[Any, Any]]
    """(*starts, *params): (x, aux), where aux are arrays that the residual may need, and that have no derivative."""
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any] | None
    """(g, y): the x with g(x) = y for a linear g; None for a dense Jacobian and its factorization."""
    starts: tuple[Any, ...]
    """Further inputs of the solver; the solution does not depend on them."""
    params: tuple[Any, ...]
    check: Callable[..., None] | None = None
    """(x, aux, residual function of x, Jacobian): checks a solution before its derivative."""
    jacobian: Callable[..., Any] | None = None
    """(x, aux, *params): the structured derivative of the residual in x; None for forward mode along each number."""
    native: Callable[..., tuple[Any, Any]] | None = None
    """(otherwise, values, *starts, *params): (x, aux) by traced code, in the place of an outside solver in compiled
    code, which otherwise(values) calls."""


class Solved(Record):
    """A problem as a function of its traced values: flat leaves of the solution, then of aux."""

    problem: Problem
    closure: Closure
    outside: tuple[Aval, ...] | None = None
    """The outputs of a solver that runs on plain numbers only."""
    spec: Any = None
    aux_spec: Any = None

    def __call__(self, *values: Array) -> Sequence[Array]:
        inputs = [unboxed(value) for value in values]
        if self.outside is None or not any([type(value) is Tracer for value in inputs]):
            return self.on_numbers(*inputs)
        if self.problem.native is not None and any([is_abstract_value(value) for value in inputs]):
            return self.by_native_code(inputs)
        return self.by_callback(*inputs)

    def by_callback(self, *values: Array) -> Sequence[Array]:
        """The solution by a call of Python."""
        outs: Sequence[Array] = pure_callback_primitive(
            *values, function=self.on_numbers, outs=self.outside, vmap_method="sequential"
        )
        return outs

    def by_native_code(self, values: Sequence[Array]) -> Sequence[Array]:
        """The solution by traced code if possible, otherwise by a call of Python."""
        problem: Problem = self.closure.rebuilt(values)  # type: ignore[assignment]
        assert problem.native is not None

        def otherwise(values: Sequence[Array]) -> tuple[Any, Any]:
            outs = self.by_callback(*values)
            count = self.spec.num_leaves
            return tree.unflatten(self.spec, outs[:count]), tree.unflatten(self.aux_spec, outs[count:])

        x, aux = problem.native(otherwise, list(values), *problem.starts, *problem.params)
        return [*tree.leaves(x), *tree.leaves(aux)]

    def on_numbers(self, *values: Array) -> list[Array]:
        """The solution for these values; of a traced solver, traced."""
        problem: Problem = self.closure.rebuilt(values)  # type: ignore[assignment]
        x, aux = problem.solve(*problem.starts, *problem.params)
        leaves, self.spec = tree.flatten(x)
        aux_leaves, self.aux_spec = tree.flatten(aux)
        outs = [unboxed(array_leaf(leaf, "the solution", "custom_root")) for leaf in (*leaves, *aux_leaves)]
        check_captured(values, outs, problem.residual)
        return outs


def check_captured(captured: Sequence[Array], outs: Sequence[Array], function: Any) -> None:
    """Raise if a result depends on traced values that the search missed."""
    top = max([value._interpreter.level for value in captured if type(value) is Tracer], default=0)
    if any([type(out) is Tracer and out._interpreter.level > top for out in outs]):
        raise CustomRuleError(
            f"{name_of(function)} uses a traced value that func has missed in it{at_line()}\n"
            "Its derivative would be lost: pass the value as an argument."
        )


class ImplicitRule(Record):
    """The derivative of a solution: dx = -(df/dx)⁻¹ (df/dp) dp."""

    solved: Solved

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Sequence[Array], list[Any]]:
        solved = self.solved
        outs = custom_jvp_call(*primals, fun=solved, rule=self)
        count = solved.spec.num_leaves
        x, aux = tree.unflatten(solved.spec, outs[:count]), tree.unflatten(solved.aux_spec, outs[count:])
        problem: Problem = solved.closure.rebuilt(primals)  # type: ignore[assignment]

        def of_x(x: Any) -> Any:
            return problem.residual(x, aux, *problem.params)

        active = [i for i, tangent in enumerate(tangents) if tangent is not ZERO]

        def of_params(*parameters: Array) -> Any:
            values = list(primals)
            for i, value in zip(active, parameters, strict=True):
                values[i] = value
            there: Problem = solved.closure.rebuilt(values)  # type: ignore[assignment]
            return there.residual(x, aux, *there.params)

        starts = tuple([primals[i] for i in active])
        _, rate = jvp(of_params, starts, tuple([tangents[i] for i in active]))
        if problem.tangent_solve is None:
            dx = self._dense(problem, x, aux, of_x, rate)
        else:

            def along(dx: Any) -> Any:
                return jvp(of_x, (x,), (dx,))[1]

            negative_rate = tree.map(lambda leaf: -leaf, rate)
            solver = problem.tangent_solve
            dx = custom_linear_solve(along, negative_rate, solver, transpose_solve=solver)
        moves = tree.leaves(dx)
        return outs, [*moves, *[ZERO] * (len(outs) - count)]

    def _dense(self, problem: Problem, x: Any, aux: Any, of_x: Callable[[Any], Any], rate: Any) -> Any:
        """The tangent by the Jacobian matrix, with real and imaginary parts as separate numbers."""
        vector, back = real_vector(x)

        def of_vector(v: Array) -> Array:
            return real_vector(of_x(back(v)))[0]

        known = problem.jacobian
        jacobian = jacfwd(of_vector)(vector) if known is None else known(x, aux, *problem.params)
        sides = real_vector(rate)[0]
        if np.shape(jacobian) != (vector.size, vector.size):
            raise CustomRuleError(
                f"{name_of(problem.residual)} returns {np.shape(jacobian)[0]} equations for {vector.size} unknowns"
                f"{at_line()}"
            )
        if problem.check is not None:
            problem.check(vector, aux, of_vector, jacobian)
        return back(-solved_dense(jacobian, sides))


def solved_dense(matrix: Array, side: Array) -> Array:
    """The solution of a square system.

    Raises:
        SingularSystemError: The matrix is singular (a LinAlgError).
    """
    try:
        return np.linalg.solve(matrix, side)
    except np.linalg.LinAlgError as error:
        raise SingularSystemError(
            f"the equation of an implicit function has a singular Jacobian at the solution{at_line()}\n"
            "There the solution is not a differentiable function of its parameters."
        ) from error


def real_vector(x: Any) -> tuple[Array, Callable[[Array], Any]]:
    """The numbers of a tree as one real vector (two for each complex one), and the inverse function."""
    leaves, spec = tree.flatten(x)
    leaves = [array_leaf(leaf, "the solution", "custom_root") for leaf in leaves]
    shapes, kinds = [shape_of(leaf) for leaf in leaves], [dtype_of(leaf) for leaf in leaves]
    pieces: list[Array] = []
    for leaf, kind in zip(leaves, kinds, strict=True):
        flat = np.reshape(leaf, -1)
        pieces += [np.real(flat), np.imag(flat)] if kind.kind == "c" else [flat]
    pieces = [piece if is_inexact(dtype_of(piece)) else piece.astype(np.float64) for piece in pieces]
    vector = np.concatenate(pieces) if len(pieces) != 1 else pieces[0]

    def back(vector: Array) -> Any:
        start, out = 0, []
        for shape, kind in zip(shapes, kinds, strict=True):
            size = int(np.prod(shape))
            piece = vector[start : start + size]
            start += size
            if kind.kind == "c":
                piece = piece + 1j * vector[start : start + size]
                start += size
            out.append(np.reshape(piece, shape).astype(kind if is_inexact(kind) else np.float64))
        return tree.unflatten(spec, out)

    return vector, back


def solution(problem: Problem, outside: tuple[Aval, ...] | None = None) -> tuple[Any, Any]:
    """(x, aux) of a problem; the equation differentiates x.

    With `outside`, the avals of all leaves of (x, aux), the solver gets plain numbers, even under `jit` and `vmap`.
    """
    closure = Closure(problem)  # type: ignore[arg-type]
    solved = Solved(problem, closure, outside)
    if not closure.values:
        return problem.solve(*problem.starts, *problem.params)
    return solution_of(solved)


def solution_of(solved: Solved) -> tuple[Any, Any]:
    """(x, aux) of a problem with known traced values; the caller may set `solved.spec` before."""
    outs = custom_jvp_call(*solved.closure.values, fun=solved, rule=ImplicitRule(solved))
    count = solved.spec.num_leaves
    return tree.unflatten(solved.spec, outs[:count]), tree.unflatten(solved.aux_spec, outs[count:])


@transform
def custom_root(
    f: Callable[..., Any],
    solve: Callable[..., Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    has_aux: bool = False,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """A root finder with the derivative of the root by the implicit function theorem, not of its steps.

    Call the result with a start and parameters: `root(x0, *params)` returns an x with f(x, *params) = 0. Its derivative
    depends neither on the start nor on the steps. It covers `params` and the closure of f, in both modes, to every
    order, under `vmap` and `jit`.

    Args:
        f: f(x, *params), a tree with as many numbers as x. x may be a tree.
        solve: solve(g, x0) returns a root of g(x) = f(x, *params). It gets plain numbers, or traced ones under `vmap`
            and `jit`, and needs no derivative. Under `jit` it needs func.while_loop, or outside code by
            func.pure_callback.
        tangent_solve: tangent_solve(g, y) returns the x with g(x) = y for a linear function g, as for `solve` of
            `custom_linear_solve`. The default solves with the dense Jacobian of f.
        has_aux: Whether solve returns (x, aux), with arrays in aux that have no derivative.

    Raises:
        SingularSystemError: The Jacobian of f at the root is singular (a LinAlgError).
        CustomRuleError: f returns more or fewer numbers than x has (a TypeError).

    Example:
        >>> import numpy as np, func, scipy.optimize
        >>> def solve(g, x0):
        ...     return scipy.optimize.brentq(g, 0.0, 10.0)
        >>> cube_root = func.custom_root(lambda x, p: x**3 - p, solve)
        >>> x, slope = func.value_and_grad(lambda p: cube_root(1.0, p))(8.0)
        >>> round(float(slope), 9)
        0.083333333
    """
    check_callable(solve, "custom_root")

    def residual(x: Any, aux: Any, *params: Any) -> Any:
        return f(x, *params)

    def solved(x0: Any, *params: Any) -> tuple[Any, Any]:
        solution = solve(lambda x: f(x, *params), x0)
        return solution if has_aux else (solution, ())

    def root(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs or not args:
            raise TypeError("a root is called with a start and parameters by position: root(x0, *params)")
        x0, *params = args
        x, aux = solution(Problem(residual, solved, tangent_solve, (x0,), tuple(params)))
        return (x, aux) if has_aux else x

    return root


class LinearSystem(NamedTuple):
    """A linear map and its solver."""

    matvec: Callable[[Any], Any]
    solve: Callable[..., Any]
    transpose_solve: Callable[..., Any] | None


class LinearSolve(Record):
    """(*params, *right-hand side): the flat solution of a linear system, or of the transposed one."""

    closure: Closure
    spec: Any
    outs: tuple[Aval, ...]
    symmetric: bool
    transposed: bool = False

    @property
    def params(self) -> int:
        """The number of traced values in the system."""
        return len(self.closure.values)

    def system(self, values: Sequence[Array]) -> tuple[Callable[[Any], Any], Callable[..., Any]]:
        """The map and its solver for these values of the parameters."""
        system: LinearSystem = self.closure.rebuilt(values)  # type: ignore[assignment]
        if not self.transposed:
            return system.matvec, system.solve
        if system.transpose_solve is None:
            raise NotDifferentiableError(
                "func.custom_linear_solve: a reverse-mode derivative solves the transposed system, and needs "
                f"transpose_solve{at_line()}\n"
                "Give transpose_solve, or symmetric=True where the map is its own transpose; or use forward mode."
            )

        def matvec(y: Any) -> Any:
            return linear_transpose(system.matvec, y)(y)[0]  # square: x has the tree of y

        return matvec, system.transpose_solve

    def __call__(self, *operands: Array) -> list[Array]:
        matvec, solve = self.system(operands[: self.params])
        side = tree.unflatten(self.spec, operands[self.params :])
        leaves, spec = tree.flatten(solve(matvec, side))
        if spec != self.spec or [shape_of(x) for x in leaves] != [shape_of(b) for b in operands[self.params :]]:
            raise CustomRuleError(
                f"func.custom_linear_solve: {name_of(solve)} returned a tree {tree.shown(spec)} of shapes "
                f"{[shape_of(x) for x in leaves]} for a right-hand side of tree {tree.shown(self.spec)} and shapes "
                f"{[shape_of(b) for b in operands[self.params :]]}"
            )
        outs = [
            convert(unboxed(array_leaf(leaf, "the solution", "custom_linear_solve")), dtype=aval.dtype)
            for leaf, aval in zip(leaves, self.outs, strict=True)
        ]
        check_captured(operands, outs, matvec)
        return outs

    def bound(self, operands: Sequence[Array]) -> Sequence[Array]:
        """The solution, linear in the right-hand side."""
        return linear_call(  # type: ignore[no-any-return]
            *operands, forward=self.forward, backward=self.backward, residuals=self.params, outs=self.outs
        )

    def forward(self, *operands: Array) -> Sequence[Array]:
        """The solution with its derivative in the parameters."""
        return custom_jvp_call(*operands, fun=self, rule=LinearSolveRule(self))  # type: ignore[no-any-return]

    def backward(self, residuals: Sequence[Array], ct: dict[int, Any]) -> Sequence[Array]:
        """The cotangent of the right-hand side."""
        like = next(iter(ct.values()))
        cts = [ct[i] if i in ct else absent_like(like, aval.shape, aval.dtype) for i, aval in enumerate(self.outs)]
        other = self if self.symmetric else self.with_fields(transposed=not self.transposed)
        return other.bound([*residuals, *cts])


class LinearSolveRule(Record):
    """dx = A⁻¹ (db - dA x)."""

    call: LinearSolve

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[Sequence[Array], Sequence[Array]]:
        call = self.call
        outs = call.forward(*primals)
        values, side_rates = primals[: call.params], list(tangents[call.params :])
        active = [i for i in range(call.params) if tangents[i] is not ZERO]
        if active:
            x = tree.unflatten(call.spec, outs)

            def of_params(*parameters: Array) -> Any:
                full = list(values)
                for i, value in zip(active, parameters, strict=True):
                    full[i] = value
                return call.system(full)[0](x)

            starts = tuple([values[i] for i in active])
            _, rate = jvp(of_params, starts, tuple([tangents[i] for i in active]))
            side_rates = [
                -own if db is ZERO else db - own for db, own in zip(side_rates, tree.leaves(rate), strict=True)
            ]
        like = next(rate for rate in side_rates if rate is not ZERO)
        dense = [
            absent_like(like, shape_of(out), dtype_of(out)) if rate is ZERO else rate
            for rate, out in zip(side_rates, outs, strict=True)
        ]
        return outs, call.bound([*values, *dense])

    def series(
        self, order: int, values: Sequence[Array], coefficients: Sequence[Any]
    ) -> list[tuple[Array, list[Array]]]:
        """The coefficients of A x = b: A₀ xₖ = bₖ - (A₁ xₖ₋₁ + … + Aₖ x₀), one solve for each k."""
        call = self.call
        count = call.params
        params, sides = list(values[:count]), coefficients[count:]
        outs = list(call.forward(*values))
        series: list[list[Any]] = [[] for _ in outs]

        def images(*operands: Array) -> list[Array]:
            matvec = call.system(operands[:count])[0]
            return tree.leaves(matvec(tree.unflatten(call.spec, operands[count:])))

        for k in range(1, order + 1):
            rates = [ZERO if own is None else own[k - 1] for own in sides]
            shorter = [own and own[:k] for own in coefficients[:count]]
            if any([own is not None for own in shorter]):
                image_series = taylor_flat(images, k, [*params, *outs], [*shorter, *[[*own, ZERO] for own in series]])
                rates = [
                    rate if image[k] is ZERO else -image[k] if rate is ZERO else rate - image[k]
                    for rate, image in zip(rates, image_series, strict=True)
                ]
            like = next((rate for rate in rates if rate is not ZERO), None)
            if like is None:
                terms: Sequence[Any] = [ZERO] * len(outs)
            else:
                dense = [
                    absent_like(like, shape_of(out), dtype_of(out)) if rate is ZERO else rate
                    for rate, out in zip(rates, outs, strict=True)
                ]
                terms = call.bound([*params, *dense])
            for own, term in zip(series, terms, strict=True):
                own.append(term)
        return list(zip(outs, series, strict=True))


@without_engine_frames
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
) -> Any:
    """The x with matvec(x) = b from `solve`, differentiated as the solution of a linear system.

    The derivative solves the same system again, in reverse mode the transposed one, without forming the matrix. It
    covers `b` and the closure of matvec, in both modes, to every order, under `vmap` and `jit`. For complex values the
    transposed map is the adjoint, as everywhere in func.

    Args:
        matvec: A linear function of trees like b.
        b: The right-hand side, a tree.
        solve: solve(matvec, b) returns x, a tree like b. It needs no derivative.
        transpose_solve: The same for the transposed map, which reverse mode needs.
        symmetric: Whether the map is its own transpose (adjoint), so that `solve` serves both.

    Raises:
        NotDifferentiableError: Reverse mode without transpose_solve (a TypeError).

    Example:
        >>> import numpy as np, func, scipy.sparse.linalg
        >>> def solve(matvec, b):
        ...     def cg(b):
        ...         A = scipy.sparse.linalg.LinearOperator((b.size, b.size), matvec=matvec)
        ...         return scipy.sparse.linalg.cg(A, b, rtol=1e-12)[0]
        ...     return cg(b)
        >>> def energy(d, b):
        ...     x = func.custom_linear_solve(lambda x: d * x, b, solve, symmetric=True)
        ...     return np.sum(x)
        >>> func.grad(energy)(np.array([2.0, 4.0]), np.ones(2))
        array([-0.25  , -0.0625])
    """
    for function in (matvec, solve):
        check_callable(function, "custom_linear_solve")
    closure = Closure(LinearSystem(matvec, solve, solve if symmetric else transpose_solve))  # type: ignore[arg-type]
    leaves, spec = tree.flatten(b)
    names = tree.path_names(b, "b")
    sides = [array_leaf(leaf, name, "custom_linear_solve") for leaf, name in zip(leaves, names, strict=True)]
    if not closure.values and not any([type(side) is Tracer for side in sides]):
        return solve(matvec, b)
    images = output_avals(lambda *leaves: tree.leaves(matvec(tree.unflatten(spec, leaves))), avals_of(sides))
    if [image.shape for image in images] != [shape_of(side) for side in sides]:
        raise CustomRuleError(
            f"func.custom_linear_solve: {name_of(matvec)} returns arrays of shapes {[image.shape for image in images]} "
            f"for a vector of shapes {[shape_of(side) for side in sides]}; the system must be square"
        )
    dtypes = [np.result_type(image.dtype, dtype_of(side)) for image, side in zip(images, sides, strict=True)]
    dtypes = [dtype if is_inexact(dtype) else np.dtype(np.float64) for dtype in dtypes]
    sides = [convert(side, dtype=dtype) for side, dtype in zip(sides, dtypes, strict=True)]
    call = LinearSolve(closure, spec, avals_of(sides), symmetric)
    return tree.unflatten(spec, call.bound([*closure.values, *sides]))
