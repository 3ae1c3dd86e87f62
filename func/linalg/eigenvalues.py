"""Eigenvalues and eigenvectors of Hermitian matrices, pencils, tridiagonal and general matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func import numpy as fnp
from func.interpreters.core import Array, concrete, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.primitives.elementwise.table import real
from func.interpreters.primitives.linalg import pencils, spectral
from func.linalg.checks import promoted, real_if_known, squares, untraced_call, vectors

_DRIVERS = (None, "ev", "evd", "evr", "evx", "gv", "gvd", "gvx")


def eigh(
    a: Array,
    b: Array | None = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """(w, v): ascending eigenvalues and vectors of a Hermitian a (…, n, n), or of a with a positive-definite b.

    With b the problem is a v = b v w (type 1), a b v = v w (2) or b a v = v w (3), and vᴴ b v = 1 (1 and 2) or vᴴ b⁻¹ v
    = 1 (3). It reads one triangle of each matrix, and the derivative is with respect to it: the gradient is triangular.
    Complex vectors have LAPACK's phase, and the derivative drops its undetermined part for equal eigenvalues. Subsets
    select indices in [first, last] or values in (low, high].

    Raises: ValueError for shapes and options, LinAlgError if b is not positive definite.

    >>> import numpy as np, func
    >>> def lowest(b):
    ...     return func.linalg.eigh(np.diag([1.0, 8.0]), b, eigvals_only=True)[0]
    >>> g = func.grad(lowest)(np.diag([2.0, 2.0]))
    >>> bool(np.allclose(g, np.diag([-0.25, 0.0])))
    True
    """
    if driver not in _DRIVERS:
        raise ValueError(f"driver: {driver!r} is unknown. Possible values are {_DRIVERS}")
    if type not in (1, 2, 3):
        raise ValueError(f'"type" keyword only accepts 1, 2, and 3, got {type!r}')
    if subset_by_index is not None and subset_by_value is not None:
        raise ValueError("Either index or value subsets can be requested.")
    if b is None and driver is not None and driver.startswith("g"):
        raise ValueError(f"driver: {driver} requires input b array to be supplied for generalized eigenvalue problems.")
    if b is not None and driver is not None and not driver.startswith("g"):
        raise ValueError(f'driver: "{driver}" does not accept input b array for standard eigenvalue problems.')
    if driver in ("ev", "evd", "gv", "gvd") and (subset_by_index is not None or subset_by_value is not None):
        raise ValueError(f'"{driver}" cannot compute subsets of eigenvalues')
    a = squares(a, "a", check_finite)
    if b is not None:
        b = squares(b, "b", check_finite)
        if shape_of(a)[-1] != shape_of(b)[-1]:
            raise ValueError(f"b: wrong dimensions of input matrices, a {shape_of(a)} and b {shape_of(b)}")
        a, b = promoted(a, b)
    options: dict[str, Any] = {"lower": bool(lower), "driver": driver}

    def whole() -> tuple[Array, Any]:
        if b is None:
            return spectral.eigvalsh(a, lower=bool(lower)), None
        out: tuple[Array, Array] = pencils.eigh_pencil(
            a, b, kind=int(type), **options | {"driver": _of_all(driver)}, subset=None
        )
        return out

    subset = _subset(shape_of(a)[-1], whole, subset_by_index, subset_by_value)
    if eigvals_only:
        return _values(whole()[0], subset)
    if b is None:
        return pencils.eigh_by_driver(a, **options, subset=subset)
    return pencils.eigh_pencil(a, b, kind=int(type), **options, subset=subset)


def _of_all(driver: str | None) -> str | None:
    """The driver for all eigenvalues: that for some of them is SciPy's choice for some only."""
    return None if driver == "gvx" else driver


def _values(w: Array, subset: pencils.Subset) -> Array:
    """The eigenvalues of a subset."""
    return w if subset is None else w[..., subset[0] : subset[1]]


def eigvalsh(
    a: Array,
    b: Array | None = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Array:
    """The eigenvalues of eigh in ascending order."""
    return eigh(
        a,
        b,
        lower=lower,
        eigvals_only=True,
        type=type,
        check_finite=check_finite,
        subset_by_index=subset_by_index,
        subset_by_value=subset_by_value,
        driver=driver,
    )


def _subset(n: int, whole: Callable[[], tuple[Array, Any]], indices: Any, values: Any) -> pencils.Subset:
    """The requested eigenvalues; whole() computes all of them first."""
    if indices is not None:
        first, last = int(indices[0]), int(indices[1])
        if not 0 <= first <= last < n:
            raise ValueError(
                f"subset_by_index: requested eigenvalue indices are not valid. Valid range is [0, {n - 1}] and "
                f"start <= end, but start={first}, end={last} is given"
            )
        return first, last + 1, None, None
    if values is None:
        return None
    low, high = [float(bound) for bound in values]
    if not low < high:
        raise ValueError(f"subset_by_value: requested eigenvalue bounds are not valid: low={low}, high={high}")
    w = whole()[0]
    if len(shape_of(w)) != 1:
        raise ArgumentError("subset_by_value of a stack of matrices: the counts may differ; call it for each matrix")
    first, last = concrete(fnp.stack([fnp.count_nonzero(w <= low), fnp.count_nonzero(w <= high)]))
    return int(first), int(last), low, high


def eigh_tridiagonal(
    d: Array,
    e: Array,
    eigvals_only: bool = False,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """(w, v) of the real symmetric tridiagonal matrix with diagonal d (…, n) and off-diagonal e (…, n - 1).

    `select` "a" returns all eigenvalues, "i" those with indices in select_range, "v" those with values in it.
    """
    if lapack_driver not in ("auto", "stemr", "stev", "stevd", "sterf", "stebz"):
        raise ValueError(f"lapack_driver: {lapack_driver!r} is not found")
    d, e = vectors(d, "d", check_finite), vectors(e, "e", check_finite)
    for name, x in (("d", d), ("e", e)):
        if dtype_of(x).kind == "c":
            raise TypeError(f"{name}: only real arrays currently supported")
    if shape_of(d)[-1] != shape_of(e)[-1] + 1:
        raise ValueError(f"d ({shape_of(d)[-1]}) must have one more element than e ({shape_of(e)[-1]})")
    d, e = promoted(d, e, cores=(1, 1))
    kind = {"a": "a", "all": "a", "i": "i", "index": "i", "v": "v", "value": "v", 0: "a", 1: "v", 2: "i"}.get(select)
    if kind is None:
        raise ValueError(f"select: invalid argument {select!r}")

    def whole() -> tuple[Array, Any]:
        return pencils.eigvalsh_tridiagonal(d, e, driver=lapack_driver), None

    indices, values = [select_range if kind == own else None for own in ("i", "v")]
    subset = _subset(shape_of(d)[-1], whole, indices, values)
    if eigvals_only:
        return _values(whole()[0], subset)
    return pencils.eigh_tridiagonal(d, e, driver="auto" if lapack_driver == "sterf" else lapack_driver, subset=subset)


def eigvalsh_tridiagonal(
    d: Array,
    e: Array,
    select: Any = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Array:
    """The eigenvalues of eigh_tridiagonal in ascending order."""
    return eigh_tridiagonal(d, e, True, select, select_range, check_finite, tol, lapack_driver)


_INSTEAD = (
    "Write eig(solve(b, a)) for a pencil with a regular b, eigh(a, b) for a Hermitian one; the left vectors are those "
    "of eig(a.conj().T), whose eigenvalues are the conjugate ones."
)


def eig(
    a: Array,
    b: Array | None = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """(w, v): complex eigenvalues and right eigenvectors of a (…, n, n), or w alone with right=False.

    The vectors of a real matrix with real eigenvalues are real, but complex under jit. Left vectors, pencils and
    homogeneous eigenvalues are supported for plain arrays only.
    """
    if b is not None or left or homogeneous_eigvals:
        arrays = (a,) if b is None else (a, b)
        options: dict[str, Any] = {"left": left, "right": right, "homogeneous_eigvals": homogeneous_eigvals}
        why = "b=, left= or homogeneous_eigvals="
        return untraced_call("eig", why, arrays, _INSTEAD, **options, check_finite=check_finite)
    a = squares(a, "a", check_finite)
    if not right:
        return spectral.eigvals(a)
    w, v = spectral.eig(a)
    real_values = real_if_known(w, a)
    return w, v if dtype_of(real_values).kind == "c" else real(v)


def eigvals(
    a: Array,
    b: Array | None = None,
    overwrite_a: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Array:
    """The eigenvalues of a (…, n, n), always complex."""
    return eig(a, b, left=False, right=False, check_finite=check_finite, homogeneous_eigvals=homogeneous_eigvals)
