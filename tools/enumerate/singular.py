"""Singular points: functions that follow a convention at a point, in composites that are smooth there.

A program is `sum(outer(inner(start + t·direction)))` at t = 0, in one mode. The truth are the derivatives of the
polynomials that fit NumPy's own values on either side. Where both sides agree, the composite is smooth, and a
derivative is right or not finite. Where they do not, the choices make no program.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.spatial.distance as distances
import scipy.special

import func
from tools.enumerate.scope import Choices, OutOfScope, Part

QUICK = 30

ZERO, EQUAL = np.zeros(3), np.ones(3)
SOME, OTHER = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.5, -1.0])
WEIGHTS = np.array([2.0, 0.5, 1.0])
ONE = np.array([0.0, 1.5, -0.7])
"""One element is singular."""
SQUARES, ALL = "squares", "all"


class Inner(NamedTuple):
    """A function with a convention, at the points that need it, and the composites (squares or all) that are right."""

    name: str
    function: Callable[[Any], Any]
    start: Any
    right: str = ""
    first_order: int = 1
    """The smallest tested order: two if the derivative itself follows a documented convention."""


def matrix(x: Any) -> Any:
    """A 2 by 3 matrix of three numbers."""
    return np.stack([x, x[::-1] * np.array([1.0, 2.0, -1.0])])


def matrix_norm(x: Any, **options: Any) -> Any:
    """A norm of the matrix, of its rows or of its columns."""
    return np.linalg.norm(matrix(x), **options)


def symmetric(x: Any, diagonal: Any = 0.0) -> Any:
    """A symmetric matrix of three numbers with a constant diagonal."""
    return np.stack([np.stack([x[0], x[1]]), np.stack([x[1], x[2]])]) + np.eye(2) * diagonal


def beside(x: Any) -> Any:
    """A simple eigenvalue near zero next to two equal ones, all of which move."""
    slope = np.array([[1.0, 0.4, 0.3, -0.2], [0.4, 0.5, 0.7, 0.1], [0.3, 0.7, -0.6, 0.9], [-0.2, 0.1, 0.9, 0.2]])
    return np.diag([0.5, 3.0, 5.0, 5.0]) + x[0] * slope + x[1] * np.diag([1.0, 2.0, 0.0, 0.5])


def pairs(x: Any) -> Any:
    """Two points that coincide where x is zero."""
    return np.stack([x, 2 * x * np.array([1.0, -1.0, 0.5])])


def complexes(x: Any) -> Any:
    """Complex numbers of real ones."""
    return x[:2] + 1j * x[1:]


def _norms() -> list[Inner]:
    rows = [
        Inner(
            f"np.linalg.norm(x, {ord})",
            functools.partial(np.linalg.norm, ord=ord),
            start,
            SQUARES if ord in (None, 2) else "",
        )
        for ord in (None, 2, 1, np.inf, -np.inf, 3, 4, 1.5, 2.5)
        for start in (ZERO, ONE)
    ]
    rows += [
        Inner(
            f"np.linalg.norm(matrix(x), {ord!r})", lambda x, ord=ord: np.linalg.norm(matrix(x), ord), ZERO, ord == "fro"
        )
        for ord in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    ]
    rows += [
        Inner(
            f"np.linalg.norm(matrix(x), axis={axis})",
            lambda x, axis=axis: np.linalg.norm(matrix(x), axis=axis),
            start,
            True,
        )
        for axis in (0, 1, (0, 1))
        for start in (ZERO, ONE)
    ]
    rows += [
        Inner("np.linalg.norm(complexes(x))", lambda x: np.linalg.norm(complexes(x)), ZERO, SQUARES),
        Inner("np.linalg.norm(complexes(x), axis=0)", lambda x: np.linalg.norm(complexes(x), axis=0), ZERO, SQUARES),
        Inner("np.linalg.norm(x, keepdims=True)", lambda x: np.linalg.norm(x, keepdims=True), ZERO),
        Inner("np.linalg.vector_norm(x)", lambda x: np.linalg.vector_norm(x), ZERO, SQUARES),
        Inner("np.linalg.matrix_norm(x)", lambda x: np.linalg.matrix_norm(matrix(x)), ZERO, SQUARES),
        Inner("scipy.linalg.norm(x)", lambda x: scipy.linalg.norm(x), ZERO, SQUARES),
        Inner("np.abs(x)", np.abs, ZERO, SQUARES),
        Inner("np.abs(x) beside others", np.abs, ONE, SQUARES),
        Inner("abs(x)", abs, ZERO, SQUARES),
        Inner("np.fabs(x)", np.fabs, ZERO, SQUARES),
        Inner("np.abs(complexes(x))", lambda x: np.abs(complexes(x)), ZERO, SQUARES),
        Inner("np.abs(1j * x)", lambda x: np.abs(1j * x), ONE, SQUARES),
        Inner("np.hypot(x, y)", lambda x: np.hypot(x[0], x[1]), ZERO, SQUARES),
        Inner("np.hypot(x, x)", lambda x: np.hypot(x, x), ONE, SQUARES),
        Inner("np.hypot(x, 0)", lambda x: np.hypot(x, 0.0), ZERO, SQUARES),
        Inner("np.std(x)", np.std, EQUAL, SQUARES),
        Inner("np.std(x, ddof=1)", lambda x: np.std(x, ddof=1), EQUAL, SQUARES),
        Inner("np.std(matrix, axis=1)", lambda x: np.std(np.stack([x, 2 * x]), axis=1), EQUAL, SQUARES),
        Inner("np.nanstd(x)", np.nanstd, EQUAL),
        Inner("np.std(complexes(x))", lambda x: np.std(complexes(x)), EQUAL, SQUARES),
        Inner("np.sqrt(x @ x)", lambda x: np.sqrt(x @ x), ZERO),
        Inner("np.sqrt(x * x)", lambda x: np.sqrt(x * x), ONE),
        Inner("(x @ x) ** 0.5", lambda x: (x @ x) ** 0.5, ZERO),
        Inner("np.power(x * x, 0.25)", lambda x: np.power(x * x, 0.25), ONE),
        Inner("np.cbrt(x)", np.cbrt, ONE),
        Inner("x * np.sign(x)", lambda x: x * np.sign(x), ONE),
        Inner("np.copysign(x, y)", lambda x: np.copysign(x, SOME), ONE),
        Inner("np.angle of a phase", lambda x: np.angle(np.exp(1j * x)), ONE),
        Inner("np.arctan2(x * x, 1)", lambda x: np.arctan2(x * x, 1.0), ONE),
        Inner("arctan2 by a radius", lambda x: np.hypot(x[0], x[1]) * np.cos(np.arctan2(x[1], x[0])), ZERO, "", 2),
        Inner("np.sinc(x)", np.sinc, ONE),
        Inner("x ** 3", lambda x: x**3, ONE),
        Inner("np.float_power(x, 2)", lambda x: np.float_power(x, 2), ONE),
        Inner("np.power(np.abs(x), 3)", lambda x: np.power(np.abs(x), 3), ONE),
        Inner("x * np.sign(x) * np.sign(x)", lambda x: x * x * np.sign(x) * np.sign(x), ONE),
        Inner("np.heaviside(x, 0.5)", lambda x: (2 * np.heaviside(x, 0.5) - 1) * x, ONE),
        Inner("scipy.special.xlogy(x, 1 + x)", lambda x: scipy.special.xlogy(x, 1 + x * x), ONE),
        Inner("scipy.special.logsumexp(x, -inf)", lambda x: scipy.special.logsumexp(np.append(x, -np.inf)), ONE),
        Inner("scipy.special.huber(1, x)", lambda x: scipy.special.huber(1.0, x), ONE),
    ]  # fmt: skip
    return rows


def _choices() -> list[Inner]:
    return [
        Inner("np.max([x, -x])", lambda x: np.max(np.stack([x, -x]), axis=0), ONE),
        Inner("np.min([x, -x])", lambda x: np.min(np.stack([x, -x]), axis=0), ONE),
        Inner("np.max([x, 2x])", lambda x: np.max(np.stack([x, 2 * x])[:, 0]), ZERO),
        Inner("np.max([x, x])", lambda x: np.max(np.stack([x, x]), axis=0), ONE),
        Inner("np.amax(x * x, initial=0)", lambda x: np.amax(x[:, None] ** 2, axis=1, initial=0.0), ONE),
        Inner("np.nanmax([x, -x])", lambda x: np.nanmax(np.stack([x, -x]), axis=0), ONE),
        Inner("np.ptp([x, -x])", lambda x: np.ptp(np.stack([x, -x]), axis=0), ONE),
        Inner("np.maximum(x, -x)", lambda x: np.maximum(x, -x), ONE),
        Inner("np.minimum(x, -x)", lambda x: np.minimum(x, -x), ONE),
        Inner("np.fmax(x, -x)", lambda x: np.fmax(x, -x), ONE),
        Inner("np.fmin(x, -x)", lambda x: np.fmin(x, -x), ONE),
        Inner("np.maximum(x * x, 0)", lambda x: np.maximum(x * x, 0.0), ONE),
        Inner("np.minimum(-x * x, 0)", lambda x: np.minimum(-x * x, 0.0), ONE),
        Inner("np.maximum(x, x)", lambda x: np.maximum(x, x), ONE),
        Inner("np.maximum(x, 0) and np.maximum(-x, 0)", lambda x: np.stack([np.maximum(x, 0), np.maximum(-x, 0)]), ONE),
        Inner("np.clip(x * x, 0, 9)", lambda x: np.clip(x * x, 0.0, 9.0), ONE),
        Inner("np.clip(x, 0, 9) and np.clip(-x, 0, 9)", lambda x: np.stack([np.clip(x, 0, 9), np.clip(-x, 0, 9)]), ONE),
        Inner("np.maximum.accumulate([x, -x])", lambda x: np.maximum.accumulate(np.stack([x, -x]))[1], ONE),
        Inner("np.minimum.reduce([x, -x])", lambda x: np.minimum.reduce(np.stack([x, -x])), ONE),
        Inner("np.sort(x)", np.sort, EQUAL),
        Inner("np.sort([x, -x])", lambda x: np.sort(np.stack([x, -x]), axis=0), ONE),
        Inner("np.sort([x, -x])[0]", lambda x: np.sort(np.stack([x, -x]), axis=0)[0], ONE),
        Inner("np.partition(x, 1)", lambda x: np.partition(x, 1), EQUAL),
        Inner("np.median(x)", lambda x: np.median(np.stack([x, -x]), axis=0), ONE),
        Inner("np.quantile([x, -x], 0.25)", lambda x: np.quantile(np.stack([x, -x]), 0.25, axis=0), ONE),
        Inner("np.where(x > 0, x, -x)", lambda x: np.where(x > 0, x, -x), ONE),
        Inner("np.where(x > 0, x * x, x * x)", lambda x: np.where(x > 0, x * x, x * x), ONE),
        Inner("np.select", lambda x: np.select([x > 0, x <= 0], [x, -x]), ONE),
        Inner("np.piecewise", lambda x: np.piecewise(x, [x > 0], [lambda x: x, lambda x: -x]), ONE),
        Inner("np.mod(x, 4)", lambda x: np.cos(np.pi / 2 * np.mod(x, 4.0)), ONE),
        Inner("np.fmod(x, 4)", lambda x: np.cos(np.pi / 2 * np.fmod(x, 4.0)), ONE),
        Inner("np.modf(x / 4)", lambda x: np.cos(2 * np.pi * np.modf(x / 4)[0]), ONE),
        Inner("np.interp", lambda x: np.interp(x, [-2.0, 0.0, 2.0], [2.0, 0.0, 2.0]), ONE),
        Inner("np.trapezoid of |x|", lambda x: np.trapezoid(np.abs(x)), ONE),
        Inner("np.unwrap", lambda x: np.unwrap(np.stack([x[0], x[0] + np.pi])), ZERO),
        Inner("pmax of x and -x", lambda x: _collected(func.collectives.pmax, x), ONE),
        Inner("pmin of x and -x", lambda x: _collected(func.collectives.pmin, x), ONE),
        Inner("pmax of x * x and 0", lambda x: func.vmap(_largest, axis_name="i")(np.stack([x * x, 0 * x]))[0], ONE),
        Inner("scipy.ndimage.maximum_filter", lambda x: scipy.ndimage.maximum_filter(x * x, 3), ONE),
        Inner("scipy.ndimage.rank_filter", lambda x: scipy.ndimage.rank_filter(x, 1, 3), EQUAL, "", 2),
        Inner("scipy.ndimage.median_filter", lambda x: scipy.ndimage.median_filter(np.stack([x, -x]), (3, 1))[0], ONE),
        Inner("grey dilation", lambda x: scipy.ndimage.grey_dilation(x, structure=np.array([0.0, 1.5, 0.0])), ONE),
        Inner("np.logaddexp(x, -x)", lambda x: np.logaddexp(x, -x), ONE),
        Inner("np.logaddexp(x, -inf)", lambda x: np.logaddexp(x, -np.inf), ONE),
        Inner("np.triu of max", lambda x: np.triu(np.maximum(x[:, None], x[None])), EQUAL),
    ]


def _largest(x: Any) -> Any:
    return func.collectives.pmax(x, "i")


def _collected(collective: Any, x: Any) -> Any:
    """An extremum over the batch elements x and -x, in one of them."""
    return func.vmap(lambda each: collective(each, "i"), axis_name="i")(np.stack([x, -x]))[0]


def _spectra() -> list[Inner]:
    return [
        Inner("eigvalsh of a multiple of 1", lambda x: np.linalg.eigvalsh(symmetric(x)), ZERO),
        Inner("eigh of a multiple of 1", lambda x: np.linalg.eigh(symmetric(x, 2.0))[0], ZERO),
        Inner("eigvals", lambda x: np.real(np.linalg.eigvals(symmetric(x, 2.0))), ZERO),
        Inner("svd of zero", lambda x: np.linalg.svd(matrix(x), compute_uv=False), ZERO),
        Inner("svd of zero with vectors", lambda x: np.linalg.svd(matrix(x))[1], ZERO),
        Inner("svd of rank one", lambda x: np.linalg.svd(np.diag([2.0, 0.0]) + symmetric(x), compute_uv=False), ZERO),
        Inner("svd, equal values", lambda x: np.linalg.svd(np.eye(2) + symmetric(x), compute_uv=False), ZERO),
        Inner("scipy.linalg.svdvals", lambda x: scipy.linalg.svdvals(matrix(x)), ZERO),
        Inner("simple eigenvalue of eigvalsh", lambda x: np.linalg.eigvalsh(beside(x))[0], ZERO, ALL),
        Inner("simple eigenvalue of eigh", lambda x: np.linalg.eigh(beside(x))[0][:2], ZERO, ALL),
        Inner("simple eigenvalue, upper", lambda x: np.linalg.eigvalsh(beside(x), UPLO="U")[1], ZERO, ALL),
        Inner("of a complex matrix", lambda x: np.linalg.eigh(phases(beside(x)))[0][:2], ZERO, ALL),
        Inner("vector of a simple eigenvalue", lambda x: np.linalg.eigh(beside(x))[1][:, 0] ** 2, ZERO, ALL),
        Inner("complex vector", lambda x: np.abs(np.linalg.eigh(phases(beside(x)))[1][0, 0]), ZERO, ALL),
        Inner("projector on equal ones", lambda x: _projector(beside(x))[0], ZERO),
        Inner("simple eigenvalue of eig", lambda x: np.real(np.linalg.eig(beside(x))[0][_first(beside(x))]), ZERO, ALL),
        Inner("simple eigenvalue of eigvals", lambda x: np.min(np.real(np.linalg.eigvals(beside(x)))), ZERO, ALL),
        Inner("simple singular value", lambda x: np.linalg.svd(beside(x), compute_uv=False)[2:], ZERO),
        Inner("simple singular value with vectors", lambda x: np.linalg.svd(beside(x))[1][2:], ZERO),
        Inner("simple singular value beside zero", lambda x: np.linalg.svd(singular(x), compute_uv=False)[:2], ZERO),
        Inner("of eigh_tridiagonal", lambda x: _tridiagonal(x, select="i", select_range=(0, 1))[0], ZERO, ALL),
        Inner("of eigvalsh_tridiagonal", lambda x: scipy.linalg.eigvalsh_tridiagonal(*diagonals(x))[:2], ZERO, ALL),
        Inner("of a pencil", lambda x: scipy.linalg.eigh(beside(x), np.diag([1.0, 2.0, 1.0, 1.0]))[0][:2], ZERO, ALL),
        Inner("of pencils of both kinds", lambda x: _of_pencils(x), ZERO, ALL),
        Inner("of a band", lambda x: scipy.linalg.eig_banded(np.stack(_bands(x)), lower=True)[0][:2], ZERO, ALL),
        Inner("by a driver", lambda x: scipy.linalg.eigh(beside(x), driver="ev")[0][:2], ZERO, ALL),
        Inner("by a driver, of a subset", lambda x: scipy.linalg.eigh(beside(x), subset_by_index=(0, 1))[0], ZERO, ALL),
        *[Inner(f"exp by {name}", lambda x, of=of: _exponential(*of(x)), ZERO) for name, of in DECOMPOSITIONS.items()],
        Inner("a singular matrix by svd", lambda x: _product(*np.linalg.svd(singular(x) + x[1] * SLOPE))[-1], ZERO),
        Inner("zero by svd", lambda x: _product(*np.linalg.svd(np.stack([x, x[::-1], x * SLOPE[0]])))[-1], ZERO),
    ]  # fmt: skip


def _exponential(w: Any, v: Any, inverse: Any = None) -> Any:
    """The exponential function of a matrix, by vectors of equal eigenvalues."""
    return np.real((v * np.exp(w)) @ (np.conj(v).T if inverse is None else inverse))[-1]


SLOPE = np.outer([1.0, 2.0, 3.0], [1.0, 0.5, -1.0])


def _product(u: Any, s: Any, vh: Any) -> Any:
    return (u * s) @ vh


def _by_eig(w: Any, v: Any) -> tuple[Any, Any, Any]:
    return w, v, np.linalg.inv(v)


def _by_svd(u: Any, s: Any, vh: Any) -> tuple[Any, Any, Any]:
    return s, u, vh


def _by_schur(t: Any, z: Any) -> tuple[Any, Any]:
    return np.diag(t), z


DECOMPOSITIONS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "eigh": lambda x: np.linalg.eigh(beside(x)),
    "eigh of phases": lambda x: np.linalg.eigh(phases(beside(x))),
    "scipy.linalg.eigh": lambda x: scipy.linalg.eigh(beside(x)),
    "a subset": lambda x: scipy.linalg.eigh(beside(x), subset_by_index=(2, 3)),
    "a pencil": lambda x: scipy.linalg.eigh(beside(x), np.diag([1.0, 2.0, 1.0, 1.0])),
    "a pencil that moves": lambda x: scipy.linalg.eigh(np.diag([1.0, 2.0, 3.0, 3.0]), np.eye(4) + 0.1 * beside(x)),
    "a pencil of kind 2": lambda x: scipy.linalg.eigh(beside(x), np.diag([1.0, 1.2, 1.0, 1.0]), type=2),
    "eigh_tridiagonal": lambda x: _tridiagonal(x),
    "a band": lambda x: scipy.linalg.eig_banded(np.stack(_bands(x)), lower=True),
    "eig": lambda x: _by_eig(*np.linalg.eig(beside(x))),
    "svd": lambda x: _by_svd(*np.linalg.svd(beside(x))),
    "schur": lambda x: _by_schur(*scipy.linalg.schur(beside(x))),
}
"""Values, vectors and their inverses, or adjoints."""


def phases(a: Any) -> Any:
    """A Hermitian matrix with the spectrum of a symmetric one."""
    turns = np.exp(1j * np.arange(len(a)))
    return turns[:, None] * a * np.conj(turns)


def singular(x: Any) -> Any:
    """A matrix with a singular value of zero, where x is."""
    return np.diag([2.0, 1.0, 0.0]) + np.diag(x)


def diagonals(x: Any) -> tuple[Any, Any]:
    """A tridiagonal matrix with two equal eigenvalues, where x is zero."""
    return np.array([0.5, 3.0, 5.0, 5.0]) + np.append(x, x[0]), np.append(x[1:], 0.0) + np.array([0.5, 0.0, 0.0])


def _tridiagonal(x: Any, **options: Any) -> Any:
    return scipy.linalg.eigh_tridiagonal(*diagonals(x), **options)


def _bands(x: Any) -> tuple[Any, Any]:
    diagonal, side = diagonals(x)
    return diagonal, np.append(side, 0.0)


def _of_pencils(x: Any) -> Any:
    """The two smallest eigenvalues of A B, both of which move."""
    b = np.diag([1.0, 1.2, 1.0, 1.0]) + x[2] * np.diag([0.1, 0.2, 0.0, 0.0])
    return np.concatenate([scipy.linalg.eigh(beside(x), b, type=kind)[0][:2] for kind in (2, 3)])


def _projector(a: Any) -> Any:
    vectors = np.linalg.eigh(a)[1][:, 2:]
    return vectors @ vectors.T


def _first(a: Any) -> Any:
    return np.argmin(np.real(np.linalg.eigvals(func.stop_gradient(a))))


BOTH = np.stack([SOME, OTHER])


def moved_distance(name: str, x: Any) -> Any:
    """The distance of a point from where it was."""
    return getattr(distances, name)(SOME + x, SOME)


def _distances() -> list[Inner]:
    plain = ("sqeuclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "cosine", "correlation")
    rows = [
        Inner(
            f"{name}(y + x, y)",
            lambda x, name=name: getattr(distances, name)(SOME + x, SOME),
            ZERO,
            name == "euclidean",
        )
        for name in plain
    ]
    rows += [
        Inner("cosine of parts", lambda x: distances.cosine(SOME + x, OTHER), ZERO),
        Inner("minkowski, p = 3", lambda x: distances.minkowski(SOME + x, SOME, 3), ZERO),
        Inner("minkowski, p = 1.5", lambda x: distances.minkowski(SOME + x, SOME, 1.5), ZERO),
        Inner("minkowski, p = 4", lambda x: distances.minkowski(SOME + x, SOME, 4), ZERO),
        Inner("minkowski, w", lambda x: distances.minkowski(SOME + x, SOME, 2, WEIGHTS), ZERO, SQUARES),
        Inner("seuclidean", lambda x: distances.seuclidean(SOME + x, SOME, WEIGHTS), ZERO, SQUARES),
        Inner("mahalanobis", lambda x: distances.mahalanobis(SOME + x, SOME, np.diag(WEIGHTS)), ZERO, SQUARES),
        Inner("jensenshannon", lambda x: distances.jensenshannon(EQUAL + x, EQUAL), ZERO),
        Inner("cdist(x, x)", lambda x: distances.cdist(pairs(x), pairs(x)), ZERO, SQUARES),
        Inner("cdist of equal points", lambda x: distances.cdist(BOTH + x, BOTH), ZERO, SQUARES),
        Inner("cdist, cityblock", lambda x: distances.cdist(pairs(x), pairs(x), "cityblock"), ZERO),
        Inner("cdist, chebyshev", lambda x: distances.cdist(pairs(x), pairs(x), "chebyshev"), ZERO),
        Inner("pdist(x)", lambda x: distances.pdist(pairs(x)), ZERO, SQUARES),
        Inner("pdist, minkowski", lambda x: distances.pdist(pairs(x), "minkowski", p=3), ZERO),
    ]  # fmt: skip
    return rows


class Outer(NamedTuple):
    """The wrapper that makes a function smooth."""

    name: str
    function: Callable[[Any], Any]
    is_square: bool = False


OUTER = (
    Outer("n", lambda n: n),
    Outer("n ** 2", lambda n: n**2, True),
    Outer("np.square(n)", np.square, True),
    Outer("n * n", lambda n: n * n, True),
    Outer("np.power(n, 2)", lambda n: np.power(n, 2), True),
    Outer("n ** 4", lambda n: n**4, True),
    Outer("n ** 3", lambda n: n**3),
    Outer("np.cos(n)", np.cos),
    Outer("np.exp(-(n ** 2))", lambda n: np.exp(-(n**2)), True),
    Outer("np.exp(-n * n)", lambda n: np.exp(-n * n)),
    Outer("n * np.sin(n)", lambda n: n * np.sin(n)),
)
DIRECTIONS = (np.array([1.0, 0.0, 0.0]), np.array([0.6, -1.1, 0.8]), np.ones(3))

Along = Callable[[Any], Any]
"""The composite as a function of t."""
MODES: dict[str, tuple[int, Callable[[Along], Any]]] = {
    "grad": (1, lambda g: func.grad(g)(0.0)),
    "jvp": (1, lambda g: func.jvp(g, (0.0,), (1.0,))[1]),
    "grad of grad": (2, lambda g: func.grad(func.grad(g))(0.0)),
    "jvp of jvp": (2, lambda g: pushed(pushed(g))(0.0)),
    "jvp of grad": (2, lambda g: pushed(func.grad(g))(0.0)),
    "grad of jvp": (2, lambda g: func.grad(pushed(g))(0.0)),
    "jacfwd of jacrev": (2, lambda g: func.jacfwd(func.jacrev(g))(0.0)),
    "hessian": (2, lambda g: func.hessian(g)(0.0)),
    "hvp": (2, lambda g: func.hvp(g, (0.0,), (1.0,))),
    "laplacian": (2, lambda g: func.laplacian(g)(0.0)),
    "linearize of grad": (2, lambda g: func.linearize(func.grad(g), 0.0)[1](1.0)),
    "derivatives, 2": (2, lambda g: func.derivatives(g, 2)(0.0)[2]),
    "grad of checkpoint, twice": (2, lambda g: func.grad(func.grad(func.checkpoint(g)))(0.0)),
    "vmap of hessian": (2, lambda g: func.vmap(func.hessian(g))(np.array([0.0, 0.3]))[0]),
    "hessian of vmap": (2, lambda g: func.hessian(lambda t: func.vmap(g)(np.stack([t, t]))[0])(0.0)),
    "grad of grad of grad": (3, lambda g: func.grad(func.grad(func.grad(g)))(0.0)),
    "jvp of jvp of jvp": (3, lambda g: pushed(pushed(pushed(g)))(0.0)),
    "jacfwd of hessian": (3, lambda g: func.jacfwd(func.hessian(g))(0.0)),
    "derivatives, 3": (3, lambda g: func.derivatives(g, 3)(0.0)[3]),
}
COMPILED: dict[str, tuple[int, Callable[[Along], Any]]] = {
    "jit of grad": (1, lambda g: func.jit(func.grad(g))(0.0)),
    "jit of hessian": (2, lambda g: func.jit(func.hessian(g))(0.0)),
    "grad of jit of grad": (2, lambda g: func.grad(func.jit(func.grad(g)))(0.0)),
    "jvp of jvp of jit": (2, lambda g: pushed(pushed(func.jit(g)))(0.0)),
    "jit of vmap of grad of grad": (2, lambda g: func.jit(func.vmap(func.grad(func.grad(g))))(np.array([0.0, 0.3]))[0]),
    "jit of laplacian": (2, lambda g: func.jit(func.laplacian(g))(0.0)),
    "jit of derivatives, 3": (3, lambda g: func.jit(func.derivatives(g, 3))(0.0)[3]),
    "derivatives of jit, 3": (3, lambda g: func.derivatives(func.jit(g), 3)(0.0)[3]),
}


def pushed(g: Along) -> Along:
    """The derivative of g by forward mode."""
    return lambda t: func.jvp(g, (t,), (1.0,))[1]


@dataclass(frozen=True)
class Program:
    """A composite along a direction, and the mode of its derivative."""

    inner: Inner
    outer: Outer
    direction: int
    mode: str
    order: int
    derivative: Callable[[Along], Any]

    def __call__(self, t: Any) -> Any:
        return np.sum(self.outer.function(self.inner.function(self.inner.start + t * DIRECTIONS[self.direction])))

    def __str__(self) -> str:
        inside = f"{self.inner.name} at x = {self.inner.start} + t {DIRECTIONS[self.direction]}"
        return f"{self.mode} of t -> sum({self.outer.name}) for n = {inside}"


def _builder(
    inners: list[Inner],
    modes: dict[str, tuple[int, Callable[[Along], Any]]],
    outers: tuple[Outer, ...] = OUTER,
    directions: tuple[int, ...] = (0, 1, 2),
) -> Callable[[Choices], Program]:
    def build(choices: Choices) -> Program:
        inner, outer = choices.pick(inners), choices.pick(outers)
        direction = choices.pick(directions)
        mode = choices.pick(tuple(modes))
        program = Program(inner, outer, direction, mode, *modes[mode])
        if program.order < inner.first_order or truth(program) is None:
            raise OutOfScope
        return program

    return build


REACHES, DEGREE = (0.2, 0.1), 9
"""How far to each side the values are fitted, and by polynomials of which degree."""
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
"""The effect of reflection on derivatives."""
_KNOWN: dict[Any, Any] = {}
"""The derivatives by sides and reaches of the composites so far."""


def one_side(call: Callable[[float], Any], reach: float) -> Any:
    """The derivatives of orders 0 to 3 at zero of the polynomial through values on its right."""
    nodes = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
    values = [float(call(t)) for t in nodes * reach]
    coefficients = np.polynomial.polynomial.polyfit(nodes, values, DEGREE)
    return np.array([coefficients[k] * math.factorial(k) / reach**k for k in range(4)])


def truth(program: Program) -> float | None:
    """The derivative of NumPy's values; None where there is none up to its order."""
    key = (program.inner.name, str(program.inner.start), program.outer.name, program.direction)
    if key not in _KNOWN:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = [one_side(program, reach) for reach in REACHES]
            left = [SIGNS * one_side(lambda t: program(-t), reach) for reach in REACHES]
        _KNOWN[key] = np.array([*right, *left])
    fits = _KNOWN[key][:, : program.order + 1]
    tolerance = 2e-4 * 10.0 ** np.arange(-2, program.order - 1) * (1 + np.abs(fits[0]))
    if not np.all(np.ptp(fits, axis=0) <= tolerance):
        return None
    return float(np.median(fits[:, -1]))


def check(program: Program) -> str | None:
    """Right or not finite; squares of norms and moduli right."""
    expected = truth(program)
    assert expected is not None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = float(program.derivative(program))
    if np.isclose(got, expected, rtol=1e-3, atol=1e-3):
        return None
    if np.isfinite(got):
        return f"finite and wrong, order {program.order}\n{got}, right is {expected}"
    if program.inner.right == ALL or (program.inner.right == SQUARES and program.outer.is_square):
        return f"not finite where the right value is cheap\n{got}, right is {expected}"
    return None


def _check_source(program: Program) -> str | None:
    """`check` with NumPy source in the place of native code, which takes longer to make than all else."""
    with func.config.override(compiler="numpy"):
        return check(program)


EVERY = [*_norms(), *_choices(), *_spectra(), *_distances()]
STAGED = [inner for inner in EVERY if inner.name != "np.piecewise"]
"""All but those whose shapes depend on values, which compiled code refuses."""
KINDS = tuple([outer for outer in OUTER if outer.name in ("n", "n ** 2", "n * n", "np.cos(n)", "n * np.sin(n)")])
"""One outer function of each kind: the conventions themselves, squares, products, and what is even by its series."""
SMOOTH = (*KINDS, OUTER[-3])
"""Rows next to conventions without a known power: the other ways to write a square are the same to them."""

PARTS = (
    *[
        Part(name, _builder(inners, MODES, outers), check)
        for name, inners, outers in (
            ("norms", _norms(), OUTER),
            ("choices", _choices(), SMOOTH),
            ("spectra", _spectra(), SMOOTH),
            ("distances", _distances(), OUTER),
        )
    ],
    Part("compiled", _builder(STAGED, COMPILED, KINDS, (1,)), _check_source),
    Part("native", _builder(STAGED, COMPILED, KINDS[-1:], (1,)), check),
)
