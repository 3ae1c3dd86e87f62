"""scipy.spatial.distance on traced and plain arrays: distances of vectors, of all pairs of rows, and their forms.

Every metric is one function of two arrays, over their last axis. As with norms, the derivative of a distance at
coinciding points is zero, and equal largest differences share the derivative. Metrics of booleans are piecewise
constant, and differentiate in their weights. For two vectors of real numbers, all of them but hamming and jaccard are
the quotients of polynomials that SciPy evaluates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.spatial.distance as _scipy

from func import numpy as fnp
from func import special
from func.host import scipy_hooks
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import TRACED, Array, is_plain_array, known_value
from func.interpreters.primitives.elementwise import table as ops
from func.numpy.facts import root
from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.kinds.traces import in_original, numpy_with, traces
from func.scipy.kinds.versions import version_of
from func.transforms.custom import stop_gradient

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "dice", "directed_hausdorff",
    "euclidean", "is_valid_dm", "jaccard", "jensenshannon", "mahalanobis", "minkowski", "pdist", "rogerstanimoto",
    "russellrao", "sokalsneath", "squareform", "yule",
]  # fmt: skip


def _root(x: Array, p: Any = 2) -> Array:
    """x^(1/p) for x ≥ 0, with derivative zero at zero; NaN for negative x."""
    return root(x) if type(p) is int and p == 2 else ops.root_power(x, 1 / p)


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and zero where y is zero."""
    nothing = fnp.equal(y, 0)
    return fnp.where(nothing, 0.0, x / fnp.where(nothing, 1, y))


def _clipped(x: Array, low: float, high: float) -> Array:
    """x clipped to a range that it leaves by rounding; the derivatives are those of x."""
    return x + stop_gradient(fnp.clip(x, low, high) - x)


def _sum(x: Array, w: Any = None) -> Array:
    return fnp.sum(x if w is None else w * x, axis=-1)


def _minkowski(u: Array, v: Array, w: Any = None, p: Any = 2.0) -> Array:
    difference = fnp.abs(u - v) if fnp.result_type(u, v).kind == "c" else u - v
    if holds_traced(p):
        return _root(_sum(ops.modulus_power(difference, p), w), p)
    if p == 1:
        return _sum(fnp.abs(difference), w)
    if p == np.inf:
        return fnp.max(fnp.abs(difference) if w is None else fnp.not_equal(w, 0) * fnp.abs(difference), axis=-1)
    if p == 2:
        return _root(_sum(difference * difference, w))
    if p % 2 == 0:
        return _root(_sum(difference ** int(p), w), p)
    return _root(_sum(ops.modulus_power(difference, p), w), p)


def _euclidean(u: Array, v: Array, w: Any = None) -> Array:
    return _minkowski(u, v, w)


def _sqeuclidean(u: Array, v: Array, w: Any = None) -> Array:
    return _sum((u - v) * (u - v), w)


def _seuclidean(u: Array, v: Array, V: Any = None) -> Array:
    return _root(_sum((u - v) * (u - v) / V))


def _cityblock(u: Array, v: Array, w: Any = None) -> Array:
    return _sum(fnp.abs(u - v), w)


def _chebyshev(u: Array, v: Array, w: Any = None) -> Array:
    size = fnp.abs(u - v)
    return fnp.max(size if w is None else fnp.greater(w, 0) * size, axis=-1)


def _mahalanobis(u: Array, v: Array, VI: Any = None) -> Array:
    difference = u - v
    return _root(_sum(fnp.matmul(difference, VI) * difference))


def _braycurtis(u: Array, v: Array, w: Any = None) -> Array:
    return _sum(fnp.abs(u - v), w) / _sum(fnp.abs(u + v), w)


def _canberra(u: Array, v: Array, w: Any = None) -> Array:
    return _sum(_ratio(fnp.abs(u - v), fnp.abs(u) + fnp.abs(v)), w)


def _cosine(u: Array, v: Array, w: Any = None) -> Array:
    product = _sum(u * v, w)
    return _clipped(1.0 - product / fnp.sqrt(_sum(u * u, w) * _sum(v * v, w)), 0.0, 2.0)


def _correlation(u: Array, v: Array, w: Any = None, centered: bool = True) -> Array:
    if not centered:
        return _cosine(u, v, w)
    if w is None:
        u, v = [x - fnp.mean(x, axis=-1, keepdims=True) for x in (u, v)]
    else:
        w = w / fnp.sum(w)
        u, v = [x - fnp.sum(w * x, axis=-1, keepdims=True) for x in (u, v)]
    return _cosine(u, v, w)


def _jensenshannon(u: Array, v: Array) -> Array:
    u, v = [x / fnp.sum(x, axis=-1, keepdims=True) for x in (u, v)]
    middle = (u + v) / 2.0
    return _root(_sum(special.rel_entr(u, middle) + special.rel_entr(v, middle)) / 2.0)


def _hamming(u: Array, v: Array, w: Any = None) -> Array:
    differ = fnp.not_equal(u, v)
    return fnp.mean(differ, axis=-1) if w is None else _sum(differ, w / fnp.sum(w))


def _jaccard(u: Array, v: Array, w: Any = None) -> Array:
    some = fnp.logical_or(fnp.not_equal(u, 0), fnp.not_equal(v, 0))
    unequal = fnp.logical_xor(fnp.not_equal(u, 0), fnp.not_equal(v, 0))
    return _ratio(_sum(1.0 * unequal, w), _sum(1.0 * some, w))


def _counts(u: Array, v: Array, w: Any) -> tuple[Array, Array, Array, Array]:
    """The numbers of elements that are (false, false), (false, true), (true, false) and (true, true)."""
    u, v = 1.0 * u, 1.0 * v
    return _sum((1 - u) * (1 - v), w), _sum((1 - u) * v, w), _sum(u * (1 - v), w), _sum(u * v, w)


def _yule(u: Array, v: Array, w: Any = None) -> Array:
    nff, nft, ntf, ntt = _counts(u, v, w)
    mixed = ntf * nft
    nothing = fnp.equal(mixed, 0)
    return fnp.where(nothing, 0.0, 2.0 * mixed / fnp.where(nothing, 1.0, ntt * nff + mixed))


def _dice(u: Array, v: Array, w: Any = None) -> Array:
    _, nft, ntf, ntt = _counts(u, v, w)
    return (ntf + nft) / (2.0 * ntt + ntf + nft)


def _weighted_dice(u: Array, v: Array, w: Any = None) -> Array:
    """As in cdist and pdist with weights: elements are equal or not, and both zero or not."""
    if w is None:
        return _dice(u, v)
    unequal = _sum(1.0 * fnp.not_equal(u, v), w)
    both = _sum(1.0 * fnp.logical_and(fnp.not_equal(u, 0), fnp.not_equal(v, 0)), w)
    return unequal / (2.0 * both + unequal)


def _rogerstanimoto(u: Array, v: Array, w: Any = None) -> Array:
    nff, nft, ntf, ntt = _counts(u, v, w)
    return 2.0 * (ntf + nft) / (ntt + nff + 2.0 * (ntf + nft))


def _russellrao(u: Array, v: Array, w: Any = None) -> Array:
    n = float(u.shape[-1]) if w is None else fnp.sum(w)
    return (n - _sum(1.0 * u * v, w)) / n


def _sokalsneath(u: Array, v: Array, w: Any = None) -> Array:
    _, nft, ntf, ntt = _counts(u, v, w)
    return 2.0 * (ntf + nft) / (ntt + 2.0 * (ntf + nft))


METRICS: dict[str, Callable[..., Array]] = {
    "braycurtis": _braycurtis, "canberra": _canberra, "chebyshev": _chebyshev, "cityblock": _cityblock,
    "correlation": _correlation, "cosine": _cosine, "dice": _weighted_dice, "euclidean": _euclidean,
    "hamming": _hamming, "jaccard": _jaccard, "jensenshannon": _jensenshannon, "mahalanobis": _mahalanobis,
    "minkowski": _minkowski, "rogerstanimoto": _rogerstanimoto, "russellrao": _russellrao, "seuclidean": _seuclidean,
    "sokalsneath": _sokalsneath, "sqeuclidean": _sqeuclidean, "yule": _yule,
}  # fmt: skip
"""The metrics by name, as functions of arrays over the last axis."""
OF_BOOLEANS = {"rogerstanimoto", "russellrao", "sokalsneath", "yule"}
"""The metrics for which cdist and pdist convert to booleans."""
_NAME_OF: dict[str, str] = {
    alias: info.canonical_name
    for alias, info in cast(Any, _scipy)._METRIC_ALIAS.items()
    if info.canonical_name in METRICS
}
"""The names of metrics by SciPy's aliases."""


def _vector(x: Any, dtype: Any = None) -> Array:
    """A vector, in a dtype (None: unchanged)."""
    x = fnp.asarray(x)
    if x.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    return x if dtype is None else fnp.astype(x, dtype, copy=False)


def _weights(w: Any, n: int | None = None) -> Array | None:
    """Weights as a vector of doubles, checked where their values are known."""
    if w is None:
        return None
    if n is not None and np.shape(w) != (n,):
        raise ValueError(f"Weights must have same size as input vector. {np.shape(w)} vs. {n}")
    w = _vector(w, np.float64)
    value = known_value(w)
    if is_plain_array(value) and np.any(value < 0):
        raise ValueError("Input weights should be all non-negative")
    return w


def _checked_power(p: Any) -> Any:
    value = known_value(p)
    if value is not None and np.any(np.asarray(value) <= 0):
        raise ValueError("p must be greater than 0")
    return p


_IN_DOUBLE = ("dice", "euclidean", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
"""The metrics whose distance of two vectors has double precision."""


def _single(name: str, metric: Callable[..., Array]) -> Callable[..., Any]:
    """The distance of two vectors."""

    def distance(u: Array, v: Array, w: Any = None) -> Array:
        u, v = _vector(u), _vector(v, np.float64 if name in ("braycurtis", "canberra") else None)
        result = metric(u, v, _weights(w))
        return fnp.astype(result, np.float64, copy=False) if name in _IN_DOUBLE else result

    return version_of(getattr(_scipy, name))(_named(distance, name))


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"scipy.spatial.distance.{name} of traced and plain vectors, in its arguments and conventions."
    return function


braycurtis = _single("braycurtis", _braycurtis)
canberra = _single("canberra", _canberra)
chebyshev = _single("chebyshev", _chebyshev)
cityblock = _single("cityblock", _cityblock)
cosine = _single("cosine", _cosine)
euclidean = _single("euclidean", _euclidean)
jaccard = _single("jaccard", _jaccard)
yule = _single("yule", _yule)
dice = _single("dice", _dice)
rogerstanimoto = _single("rogerstanimoto", _rogerstanimoto)
russellrao = _single("russellrao", _russellrao)
sokalsneath = _single("sokalsneath", _sokalsneath)


@version_of(_scipy.minkowski)
def minkowski(u: Array, v: Array, p: Any = 2, w: Any = None) -> Array:
    """The distance (Σ w |u - v|^p)^(1/p) of two vectors; p may be traced."""
    u, v = [_vector(x) for x in (u, v)]
    distance = _minkowski(u, v, _weights(w), _checked_power(p))
    probe = scipy_hooks.original(_scipy.minkowski)(
        np.ones(1, u.dtype), np.ones(1, v.dtype), 2 if holds_traced(p) else p, None if w is None else np.ones(1)
    )
    return fnp.astype(distance, np.asarray(probe).dtype, copy=False)


@version_of(_scipy.correlation)
def correlation(u: Array, v: Array, w: Any = None, centered: bool = True) -> Array:
    """One minus the correlation of two vectors, or without `centered` minus the cosine of their angle."""
    u, v = [_vector(x) for x in (u, v)]
    if "c" in (u.dtype.kind, v.dtype.kind):
        raise TypeError("`u` and `v` must be real.")
    return _correlation(u, v, _weights(w), centered)


@version_of(_scipy.mahalanobis)
def mahalanobis(u: Array, v: Array, VI: Array) -> Array:
    """The root of (u - v)ᵀ VI (u - v), of the inverse covariance VI."""
    return _mahalanobis(_vector(u), _vector(v), fnp.atleast_2d(fnp.asarray(VI)))


jensenshannon = traces(_scipy.jensenshannon, np=numpy_with(sqrt=root))


def _rows(x: Any, message: str) -> Array:
    x = fnp.asarray(x)
    if x.ndim != 2:
        raise ValueError(message)
    return x


def _options(name: str, rows: list[Array], keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a metric for cdist and pdist, with the defaults that come from the rows."""
    options = dict(keywords)
    n = rows[0].shape[1]
    allowed = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"VI"}, "jensenshannon": set[str]()}
    unknown = set(options) - (allowed.get(name, {"w"}) | ({"centered"} if name == "correlation" else set()))
    if unknown:
        raise TypeError(f"the metric {name!r} got an unexpected keyword argument {sorted(unknown)[0]!r}")
    if options.get("w") is not None:
        options["w"] = _weights(options["w"], n)
    if name not in ("seuclidean", "mahalanobis"):
        return options
    whole: dict[str, Any] = in_original(
        cast(Any, _scipy)._METRICS[name].validator, tuple(rows), sum([x.shape[0] for x in rows]), n, **options
    )
    return whole


def _converted(name: str, x: Array) -> Array:
    """Rows in the dtype of a metric of cdist and pdist."""
    if x.dtype.kind == "c":
        raise TypeError(f"the metric {name!r} takes rows of real numbers, not {x.dtype}")
    if name in OF_BOOLEANS:
        x = fnp.not_equal(x, 0)
    return fnp.astype(x, np.float64, copy=False)


def _name_of(metric: Any) -> str | None:
    """The name of the metric; None for a callable that is not a metric."""
    if callable(metric):
        return None
    if not isinstance(metric, str):
        raise TypeError("2nd argument metric must be a string identifier or a function.")
    name = metric.lower()
    name = _NAME_OF.get(name) or _NAME_OF.get(name.removeprefix("test_"), "")
    if not name:
        raise ValueError(f"Unknown Distance Metric: {metric.lower()}")
    return name


def _delivered(result: Array, out: Any) -> Array:
    if out is None:
        return result
    if np.shape(out) != result.shape:
        raise ValueError("Output array has incorrect shape.")
    if out.dtype != np.float64:
        raise ValueError("Output array must be double type.")
    out[...] = result
    return out


def _pairs(metric: Any, first: Array, second: Array, rows: list[Array], keywords: dict[str, Any]) -> Array:
    """The distances of rows with rows by a callable; functions of metrics have the same defaults as their names."""
    name = _NAME_OF.get(getattr(metric, "__name__", ""))
    if name in ("mahalanobis", "seuclidean"):
        keywords = _options(name, rows, keywords)
    distances = [fnp.asarray(metric(u, v, **keywords)) for u, v in zip(first, second, strict=True)]
    if not distances:
        return fnp.zeros(0)
    return fnp.astype(fnp.stack(distances), np.float64, copy=False)


def cdist(XA: Array, XB: Array, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Array:
    """The distances (m, n) of the rows of XA (m, k) and of XB (n, k), by the name of a metric or by a function.

    >>> import numpy as np, func
    >>> x = np.array([[3.0, 4.0]])
    >>> func.grad(lambda x: func.scipy.spatial.distance.cdist(x, np.zeros((1, 2)))[0, 0])(x)
    array([[0.6, 0.8]])
    """
    traced = holds_traced((XA, XB)) or holds_traced(kwargs) or holds_traced(out)
    if not traced and not (callable(metric) and (TRACED.run or TRACED.stay)):
        return scipy_hooks.original(_scipy.cdist)(XA, XB, metric, out=out, **kwargs)
    XA, XB = _rows(XA, "XA must be a 2-dimensional array."), _rows(XB, "XB must be a 2-dimensional array.")
    if XA.shape[1] != XB.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    name, (m, n) = _name_of(metric), (XA.shape[0], XB.shape[0])
    if name is None:
        i, j = [x.ravel() for x in np.indices((m, n))]
        return _delivered(fnp.reshape(_pairs(metric, XA[i], XB[j], [XA, XB], kwargs), (m, n)), out)
    XA, XB = [_converted(name, x) for x in (XA, XB)]
    options = _options(name, [XA, XB], kwargs)
    return _delivered(METRICS[name](XA[:, None, :], XB[None, :, :], **options), out)


def pdist(X: Array, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Array:
    """The distances (m (m - 1) / 2,) of the rows of X (m, k), condensed: those of rows i < j, in order."""
    traced = holds_traced((X, out)) or holds_traced(kwargs)
    if not traced and not (callable(metric) and (TRACED.run or TRACED.stay)):
        return scipy_hooks.original(_scipy.pdist)(X, metric, out=out, **kwargs)
    X = fnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"A 2-dimensional array must be passed. (Shape was {X.shape}).")
    name = _name_of(metric)
    i, j = np.triu_indices(X.shape[0], 1)
    if name is None:
        return _delivered(_pairs(metric, X[i], X[j], [X], kwargs), out)
    X = _converted(name, X)
    options = _options(name, [X], kwargs)
    return _delivered(METRICS[name](X[i], X[j], **options), out)


@version_of(_scipy.squareform)
def squareform(X: Array, force: str = "no", checks: bool = True) -> Array:
    """The symmetric matrix (n, n) of condensed distances (n (n - 1) / 2,), and back.

    With `checks`, a matrix whose values are known must be symmetric, with zeros on its diagonal.
    """
    X = fnp.asarray(X)
    if force.lower() == "tomatrix" and X.ndim != 1:
        raise ValueError("Forcing 'tomatrix' but input X is not a distance vector.")
    if force.lower() == "tovector" and X.ndim != 2:
        raise ValueError("Forcing 'tovector' but input X is not a distance matrix.")
    if X.ndim == 1:
        n = math.ceil(math.sqrt(X.shape[0] * 2))
        if X.shape[0] == 0:
            return fnp.zeros((1, 1), dtype=X.dtype)
        if n * (n - 1) != X.shape[0] * 2:
            raise ValueError(
                "Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2."
            )
        place = np.full((n, n), X.shape[0])
        place[np.triu_indices(n, 1)] = np.arange(X.shape[0])
        return fnp.concatenate([X, fnp.zeros_like(X, shape=(1,))])[np.minimum(place, place.T)]
    if X.ndim != 2:
        raise ValueError(f"The first argument must be one or two dimensional array, not {X.ndim}-dimensional")
    if X.shape[0] != X.shape[1]:
        raise ValueError("The matrix argument must be square.")
    value = known_value(X)
    if checks and is_plain_array(value) and value.ndim == 2:
        _scipy.is_valid_dm(value, throw=True, name="X")
    return X[np.triu_indices(X.shape[0], 1)]


@version_of(_scipy.directed_hausdorff)
def directed_hausdorff(u: Array, v: Array, rng: Any = 0) -> tuple[Array, Array, Array]:
    """The largest distance of a row of u from the rows of v, and the indices of both rows; `rng` is ignored."""
    u, v = [fnp.astype(fnp.asarray(x), np.float64, copy=False) for x in (u, v)]
    if u.shape[1] != v.shape[1]:
        raise ValueError("u and v need to have the same number of columns")
    squares = stop_gradient(_sqeuclidean(u[:, None, :], v[None, :, :]))
    i = fnp.argmax(fnp.min(squares, axis=1))
    j = fnp.argmin(fnp.take(squares, i, axis=0))
    return _euclidean(fnp.take(u, i, axis=0), fnp.take(v, j, axis=0)), i, j


@version_of(_scipy.is_valid_dm)
def is_valid_dm(D: Array, *args: Any, **kwargs: Any) -> Any:
    """Whether a matrix is one of distances, which depends on its values."""
    value = known_value(D)
    if not is_plain_array(value) or np.ndim(value) != np.ndim(D):
        raise ValueError("is_valid_dm looks at values, which are not known while they are batched or compiled")
    return scipy_hooks.original(_scipy.is_valid_dm)(value, *args, **kwargs)


__getattr__, __dir__ = _public_module(globals(), _scipy)
