"""The table of public functions: for each one call, as a function of one array, at which the laws look at it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import func
from tests.support.sampling import spd

RNG = np.random.default_rng(2)
V = RNG.uniform(0.2, 0.9, 6)
W = RNG.uniform(0.2, 0.9, 6)
M = RNG.uniform(-0.9, 0.9, (3, 4))
N = RNG.uniform(0.2, 0.9, (4, 3))
S = spd(3)
K = RNG.integers(0, 9, 6)
fnp = func.numpy


@dataclass(frozen=True)
class Call:
    """One call of a public function, as a function of one array.

    `exact`: the value is NumPy's to the bit. `plain`: how the value is computed without func, where NumPy's function
    cannot be called by this name.
    """

    function: Callable[[Any], Any]
    x: Any
    exact: bool = True
    plain: Callable[[Any], Any] | None = None


FUNCTIONS: dict[str, Call] = {}


def add(prefix: str, x: Any, calls: dict[str, Callable[[Any], Any]], **options: Any) -> None:
    """Calls at one array."""
    for name, function in calls.items():
        FUNCTIONS[f"{prefix}.{name}"] = Call(function, x, **options)


def by_name(module: Any, name: str) -> Callable[[Any], Any]:
    """The function of a module, looked up when it is called."""

    def call(x: Any) -> Any:
        function = getattr(module, name)
        if name not in DEPRECATED:
            return function(x)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"numpy.{name} is deprecated", DeprecationWarning)
            return function(x)

    return call


DEPRECATED = ("fix",)
"""Functions that a newer NumPy warns of by their names: func has them as long as there is a NumPy that does."""


UNARY = """
    abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt ceil conj
    conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs fix floor i0 imag isfinite isinf isnan isneginf isposinf
    iscomplex isreal log log10 log1p log2 logical_not nan_to_num negative positive rad2deg radians real
    real_if_close reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan tanh trunc
"""
BINARY = """
    add arctan2 atan2 copysign divide divmod equal float_power floor_divide fmax fmin fmod greater greater_equal
    heaviside hypot isclose less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum
    mod multiply nextafter not_equal pow power remainder subtract true_divide
"""
INTEGER = """
    bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm left_shift right_shift
"""


def pair(name: str) -> Callable[[Any], Any]:
    """A function of two arrays as a function of one."""
    return lambda x: getattr(np, name)(x[:3], x[3:] + 0.25)


def integers(name: str) -> Callable[[Any], Any]:
    """A function of two arrays of integers."""
    return lambda x: getattr(np, name)((9 * np.real(x)).astype(int)[:3], (5 * np.real(x)).astype(int)[3:])


for _name in UNARY.split():
    FUNCTIONS[f"np.{_name}"] = Call(by_name(np, _name), V + 1.1 if _name in ("acosh", "arccosh") else V)
for _name in BINARY.split():
    FUNCTIONS[f"np.{_name}"] = Call(pair(_name), V)
for _name in INTEGER.split():
    FUNCTIONS[f"np.{_name}"] = Call(integers(_name), V)
for _name in ("bitwise_count", "bitwise_invert", "bitwise_not", "invert"):
    add("np", V, {_name: lambda x, name=_name: getattr(np, name)((9 * np.real(x)).astype(int))})  # type: ignore[misc]
add(
    "np",
    V,
    {
        "around": lambda x: np.around(x, 1) * x,
        "clip": lambda x: np.clip(x, 0.4, 0.8),
        "frexp": np.frexp,
        "iscomplexobj": lambda x: np.asarray(np.iscomplexobj(x)),
        "isrealobj": lambda x: np.asarray(np.isrealobj(x)),
        "ldexp": lambda x: np.ldexp(x, 2),
        "modf": np.modf,
        "round": lambda x: np.round(x * 8) * x,
        "astype": lambda x: np.astype(x, np.result_type(x, np.float32)),
    },
)

REDUCTIONS = """
    all amax amin any argmax argmin count_nonzero max mean median min nanargmax nanargmin nanmax nanmean nanmedian
    nanmin nanprod nanstd nansum nanvar prod ptp std sum var
"""
for _name in REDUCTIONS.split():
    add("np", M, {_name: lambda x, name=_name: getattr(np, name)(x, axis=1)})  # type: ignore[misc]
add(
    "np",
    M,
    {
        "average": lambda x: np.average(x, axis=0, weights=np.arange(1.0, 4.0)),
        "corrcoef": np.corrcoef,
        "cov": np.cov,
        "cumprod": lambda x: np.cumprod(x, axis=1),
        "cumsum": lambda x: np.cumsum(x, axis=0),
        "cumulative_prod": lambda x: np.cumulative_prod(x, axis=1),
        "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
        "nancumprod": lambda x: np.nancumprod(x, axis=1),
        "nancumsum": lambda x: np.nancumsum(x, axis=0),
        "nanpercentile": lambda x: np.nanpercentile(x, [20, 70], axis=1),
        "nanquantile": lambda x: np.nanquantile(x, 0.3, axis=0),
        "percentile": lambda x: np.percentile(x, 30, axis=1),
        "quantile": lambda x: np.quantile(x, [0.1, 0.5], method="hazen"),
        "histogram": lambda x: np.histogram(x, 3),
        "histogram2d": lambda x: np.histogram2d(x[0], x[1], 2),
        "histogramdd": lambda x: np.histogramdd(x[:, :2], 2)[0],
        "histogram_bin_edges": lambda x: np.histogram_bin_edges(x, 3),
    },
)

add(
    "np",
    M,
    {
        "append": lambda x: np.append(x, 2 * x, axis=1),
        "apply_along_axis": lambda x: np.apply_along_axis(np.cumsum, 1, x),
        "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0]),
        "array_split": lambda x: np.array_split(x, 3, axis=1)[0],
        "asanyarray": lambda x: np.asanyarray([x[0], x[1]]),
        "asarray": lambda x: np.asarray([x[0], x[1] ** 2]),
        "array": lambda x: np.array([[x[0, 0], x[1, 1]], [0.5, x[2, 2]]]),
        "ascontiguousarray": lambda x: np.ascontiguousarray(x),
        "asfortranarray": lambda x: np.asfortranarray(x) * 2,
        "atleast_1d": np.atleast_1d,
        "atleast_2d": lambda x: np.atleast_2d(x[0]),
        "atleast_3d": np.atleast_3d,
        "block": lambda x: np.block([[x, x], [x, 2 * x]]),
        "broadcast_arrays": lambda x: np.broadcast_arrays(x[:1], x)[0],
        "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
        "column_stack": lambda x: np.column_stack([x[0], x[1]]),
        "concat": lambda x: np.concat([x, x], axis=1),
        "concatenate": lambda x: np.concatenate([x, x**2], axis=0),
        "copy": np.copy,
        "delete": lambda x: np.delete(x, [0, 2], axis=1),
        "dsplit": lambda x: np.dsplit(x.reshape(2, 3, 2), 2)[1],
        "dstack": lambda x: np.dstack([x, x]),
        "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
        "flip": lambda x: np.flip(x, 0),
        "fliplr": np.fliplr,
        "flipud": np.flipud,
        "hsplit": lambda x: np.hsplit(x, 2)[1],
        "hstack": lambda x: np.hstack([x, x]),
        "insert": lambda x: np.insert(x, 1, x[:, 0], axis=1),
        "matrix_transpose": np.matrix_transpose,
        "moveaxis": lambda x: np.moveaxis(x, 0, 1),
        "ndim": lambda x: np.asarray(np.ndim(x)),
        "pad": lambda x: np.pad(x, 1, mode="reflect"),
        "permute_dims": lambda x: np.permute_dims(x, (1, 0)),
        "ravel": np.ravel,
        "repeat": lambda x: np.repeat(x, 2, axis=0),
        "reshape": lambda x: np.reshape(x, (2, 6)),
        "resize": lambda x: np.resize(x, (5, 3)),
        "roll": lambda x: np.roll(x, (1, 2), axis=(0, 1)),
        "rollaxis": lambda x: np.rollaxis(x, 1),
        "rot90": np.rot90,
        "shape": lambda x: np.asarray(np.shape(x)),
        "size": lambda x: np.asarray(np.size(x)),
        "split": lambda x: np.split(x, [1], axis=0)[1],
        "squeeze": lambda x: np.squeeze(x[None]),
        "stack": lambda x: np.stack([x, x], axis=1),
        "swapaxes": lambda x: np.swapaxes(x, 0, 1),
        "tile": lambda x: np.tile(x, (2, 1)),
        "transpose": np.transpose,
        "trim_zeros": lambda x: np.trim_zeros(np.pad(x[0], 1)),
        "unstack": lambda x: np.unstack(x, axis=1)[2],
        "vsplit": lambda x: np.vsplit(x, 3)[1],
        "vstack": lambda x: np.vstack([x, x]),
        "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
    },
)


def with_write(write: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function that writes its argument, as one that returns what it has written."""

    def function(x: Any) -> Any:
        y = x * 1.0
        write(y, x)
        return y

    return function


add(
    "np",
    V,
    {
        "argpartition": lambda x: x[np.argpartition(x, 2)[2]],
        "argsort": np.argsort,
        "argwhere": lambda x: np.argwhere(np.real(x) > 0.5),
        "choose": lambda x: np.choose(np.array([0, 1, 0]), [x[:3], x[3:]]),
        "compress": lambda x: np.compress(np.array([True, False, True]), x),
        "copyto": with_write(lambda y, x: np.copyto(y[1:], x[:-1])),
        "digitize": lambda x: np.digitize(x, np.array([0.3, 0.6])),
        "extract": lambda x: np.extract(np.real(x) > 0.5, x),
        "fill_diagonal": lambda x: with_write(lambda y, z: np.fill_diagonal(y, z[0, 1]))(np.outer(x, x)),
        "flatnonzero": lambda x: np.flatnonzero(np.real(x) > 0.5),
        "intersect1d": lambda x: np.intersect1d(x, x[::-1]),
        "isin": lambda x: np.isin(x, x[:2]),
        "ix_": lambda x: np.outer(x, x)[np.ix_([0, 2], [1, 3])],
        "lexsort": lambda x: x[np.lexsort((np.real(x), np.real(x)))],
        "nonzero": lambda x: np.nonzero(np.real(x) > 0.5),
        "partition": lambda x: np.partition(x, 2)[2],
        "piecewise": lambda x: np.piecewise(x, [np.real(x) < 0.5], [lambda v: v**2, 1.0]),
        "place": with_write(lambda y, x: np.place(y, np.real(x) > 0.5, x[:2])),
        "put": with_write(lambda y, x: np.put(y, [0, 3], x[1:3])),
        "put_along_axis": with_write(lambda y, x: np.put_along_axis(y, np.array([1, 2]), x[:2], 0)),
        "putmask": with_write(lambda y, x: np.putmask(y, np.real(x) > 0.5, x**2)),
        "searchsorted": lambda x: np.searchsorted(np.array([0.3, 0.6]), x),
        "select": lambda x: np.select([np.real(x) < 0.4, np.real(x) < 0.7], [x, x**2], 0.5),
        "setdiff1d": lambda x: np.setdiff1d(x, x[:2]),
        "setxor1d": lambda x: np.setxor1d(x[:4], x[2:]),
        "sort": np.sort,
        "sort_complex": np.sort_complex,
        "take": lambda x: np.take(x, [[0, 2], [5, 5]]),
        "take_along_axis": lambda x: np.take_along_axis(x, np.array([3, 1]), 0),
        "union1d": lambda x: np.union1d(x[:4], x[2:]),
        "unique": np.unique,
        "unique_all": lambda x: np.unique_all(x)[0],
        "unique_counts": lambda x: np.unique_counts(x)[0],
        "unique_inverse": lambda x: np.unique_inverse(x)[0],
        "unique_values": lambda x: np.sort(np.unique_values(x)),
        "where": lambda x: np.where(np.real(x) > 0.5, x, x**2),
        "bincount": lambda x: np.bincount(np.array([0, 2, 2, 1, 0, 1]), weights=x),
        "at": lambda x: fnp.at(x)[[0, 0, 2]].add(x[:3]),
        "diag_indices_from": lambda x: np.outer(x, x)[np.diag_indices_from(np.outer(x, x))],
        "tril_indices_from": lambda x: np.outer(x, x)[np.tril_indices_from(np.outer(x, x))],
        "triu_indices_from": lambda x: np.outer(x, x)[np.triu_indices_from(np.outer(x, x), 1)],
        "unravel_index": lambda x: x.reshape(2, 3)[np.unravel_index(4, (2, 3))],
        "ravel_multi_index": lambda x: x[np.ravel_multi_index((1, 2), (2, 3))],
        "array_equal": lambda x: np.asarray(np.array_equal(x, x)),
        "array_equiv": lambda x: np.asarray(np.array_equiv(x, x)),
        "allclose": lambda x: np.asarray(np.allclose(x, x)),
        "packbits": lambda x: np.packbits(np.real(x) > 0.5),
        "unpackbits": lambda x: np.unpackbits((9 * np.real(x)).astype(np.uint8)),
    },
)


def filled(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An array made like x, then written with x's first element."""

    def function(x: Any) -> Any:
        made = make(x)
        made[..., 0] = x[0]
        return made

    return function


add(
    "np",
    V,
    {
        "arange": filled(lambda x: np.arange(0.0, 3.0, like=x)),
        "diag": lambda x: np.diag(x, 1),
        "diagflat": lambda x: np.diagflat(x.reshape(2, 3)),
        "empty": filled(lambda x: np.empty((1,), x.dtype, like=x)),
        "empty_like": filled(lambda x: np.empty_like(x[:1])),
        "eye": filled(lambda x: np.eye(3, dtype=x.dtype, like=x)),
        "full": filled(lambda x: np.full((2, 2), 3.0, x.dtype, like=x)),
        "full_like": filled(lambda x: np.full_like(x, 0.5)),
        "geomspace": lambda x: np.geomspace(x[0], x[1], 4),
        "identity": filled(lambda x: np.identity(3, x.dtype, like=x)),
        "linspace": lambda x: np.linspace(x[0], x[1], 4),
        "logspace": lambda x: np.logspace(x[0], x[1], 4),
        "meshgrid": lambda x: np.meshgrid(x[:2], x[2:])[0],
        "ones": filled(lambda x: np.ones((2, 2), x.dtype, like=x)),
        "ones_like": filled(np.ones_like),
        "tri": filled(lambda x: np.tri(3, dtype=x.dtype, like=x)),
        "tril": lambda x: np.tril(np.outer(x, x)),
        "triu": lambda x: np.triu(np.outer(x, x)),
        "vander": lambda x: np.vander(x, 3),
        "zeros": filled(lambda x: np.zeros((2, 2), x.dtype, like=x)),
        "zeros_like": filled(np.zeros_like),
        "kaiser": lambda x: fnp.kaiser(5, x[0]),
    },
)

add(
    "np",
    M,
    {
        "convolve": lambda x: np.convolve(x[0], x[1]),
        "correlate": lambda x: np.correlate(x[0], x[1, :2]),
        "cross": lambda x: np.cross(x[:, :3], x[:, 1:]),
        "diagonal": lambda x: np.diagonal(x, 1),
        "dot": lambda x: np.dot(x, x.T),
        "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
        "inner": lambda x: np.inner(x, x),
        "kron": lambda x: np.kron(x, x[:2]),
        "matmul": lambda x: np.matmul(x.T, x),
        "matvec": lambda x: np.matvec(x, x[0]),
        "outer": lambda x: np.outer(x[0], x[1]),
        "tensordot": lambda x: np.tensordot(x, x, axes=(0, 0)),
        "trace": np.trace,
        "vdot": lambda x: np.vdot(x, x[::-1]),
        "vecdot": lambda x: np.vecdot(x, x[::-1]),
        "vecmat": lambda x: np.vecmat(x[:, 0], x),
        "conv_general": lambda x: fnp.conv_general(x.reshape(1, 2, 6), x.reshape(1, 2, 6)[:, :, :2], padding=1),
    },
    exact=False,
)

add(
    "np",
    V,
    {
        "diff": np.diff,
        "ediff1d": np.ediff1d,
        "gradient": np.gradient,
        "interp": lambda x: np.interp(np.array([0.5, 1.7]), np.arange(6.0), x),
        "poly": lambda x: np.poly(x[:3]),
        "polyadd": lambda x: np.polyadd(x[:2], x[2:]),
        "polyder": np.polyder,
        "polydiv": lambda x: np.polydiv(x, x[:2])[0],
        "polyfit": lambda x: np.polyfit(np.arange(6.0), x, 2),
        "polyint": np.polyint,
        "polymul": lambda x: np.polymul(x[:3], x[3:]),
        "polysub": lambda x: np.polysub(x[:2], x[2:]),
        "polyval": lambda x: np.polyval(x[:3], x[3:]),
        "roots": lambda x: np.roots(np.concatenate([x[:1], 5 * x[1:2], 3 * x[2:3]])),
        "trapezoid": np.trapezoid,
        "unwrap": lambda x: np.unwrap(9 * x),
    },
    exact=False,
)
add("np", V, {"vectorize": fnp.vectorize(lambda x: x * x if x > 0.5 else 2 * x)})
FUNCTIONS["np.vectorize"] = Call(FUNCTIONS["np.vectorize"].function, V, plain=lambda x: np.where(x > 0.5, x * x, 2 * x))

add(
    "np.linalg",
    S,
    {
        "cholesky": lambda x: np.linalg.cholesky(x @ np.conj(x.T)),
        "cond": np.linalg.cond,
        "cross": lambda x: np.linalg.cross(x[0], x[1]),
        "det": np.linalg.det,
        "diagonal": np.linalg.diagonal,
        "eig": lambda x: np.linalg.eig(x)[0],
        "eigh": lambda x: np.linalg.eigh(x + np.conj(x.T))[0],
        "eigvals": np.linalg.eigvals,
        "eigvalsh": lambda x: np.linalg.eigvalsh(x + np.conj(x.T)),
        "inv": np.linalg.inv,
        "lstsq": lambda x: np.linalg.lstsq(x[:, :2], x[:, 2])[0],
        "matmul": lambda x: np.linalg.matmul(x, x),
        "matrix_norm": np.linalg.matrix_norm,
        "matrix_power": lambda x: np.linalg.matrix_power(x, 3),
        "matrix_rank": np.linalg.matrix_rank,
        "matrix_transpose": np.linalg.matrix_transpose,
        "multi_dot": lambda x: np.linalg.multi_dot([x, x[:, :2], x[:2]]),
        "norm": np.linalg.norm,
        "outer": lambda x: np.linalg.outer(x[0], x[1]),
        "pinv": lambda x: np.linalg.pinv(x[:, :2]),
        "qr": lambda x: np.abs(np.linalg.qr(x)[1][np.triu_indices(len(x))]),  # below are constant zeros
        "slogdet": lambda x: np.linalg.slogdet(x)[1],
        "solve": lambda x: np.linalg.solve(x, x[0]),
        "svd": lambda x: np.linalg.svd(x)[1],
        "svdvals": np.linalg.svdvals,
        "tensordot": lambda x: np.linalg.tensordot(x, x, axes=1),
        "tensorinv": lambda x: np.linalg.tensorinv(x, ind=1),
        "tensorsolve": lambda x: np.linalg.tensorsolve(x, x[0]),
        "trace": np.linalg.trace,
        "vecdot": lambda x: np.linalg.vecdot(x, x[::-1]),
        "vector_norm": np.linalg.vector_norm,
    },
    exact=False,
)

for _name in ("fft", "ifft", "fftshift", "ifftshift", "rfft", "ihfft"):
    FUNCTIONS[f"np.fft.{_name}"] = Call(by_name(np.fft, _name), V)
for _name in ("irfft", "hfft"):
    FUNCTIONS[f"np.fft.{_name}"] = Call(by_name(np.fft, _name), V, exact=False)
for _name in ("fft2", "fftn", "ifft2", "ifftn", "rfft2", "rfftn"):
    FUNCTIONS[f"np.fft.{_name}"] = Call(by_name(np.fft, _name), M)
for _name in ("irfft2", "irfftn"):
    FUNCTIONS[f"np.fft.{_name}"] = Call(by_name(np.fft, _name), M, exact=False)

_SHAPES_ALONE = """
    array2string array_repr array_str bartlett blackman broadcast_shapes can_cast common_type diag_indices
    einsum_path fromfunction hamming hanning indices isdtype isscalar issubdtype iterable mask_indices
    may_share_memory min_scalar_type promote_types result_type shares_memory tril_indices triu_indices
"""
WITHOUT = {*_SHAPES_ALONE.split(), "fft.fftfreq", "fft.rfftfreq"}
"""Names of func.numpy that make or describe arrays from shapes and dtypes alone."""
