"""NumPy's functions for traced and plain arrays. `np.*` of a traced array calls them; they can also be imported."""

# fmt: off
import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from numpy import (
    bool_, broadcast_shapes, complex64, complex128, complexfloating, dtype, e, errstate, euler_gamma, finfo, float16,
    float32, float64, floating, generic, iinfo, index_exp, inexact, inf, int8, int16, int32, int64, integer, intp,
    isdtype, isscalar, issubdtype, iterable, mgrid, nan, ndarray, ndindex, newaxis, number, ogrid, pi, promote_types,
    s_, uint8, uint16, uint32, uint64,
)

# The package before its modules: another thread may import it, and the two would wait for each other.
import func.interpreters.core as _core  # noqa: F401
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.interpreters.primitives.elementwise.table import (
    add, arccos, arccos as acos, arccosh, arccosh as acosh, arcsin, arcsin as asin, arcsinh, arcsinh as asinh,
    arctan, arctan as atan, arctan2, arctan2 as atan2, arctanh, arctanh as atanh, bitwise_and, bitwise_or,
    bitwise_xor, cbrt, ceil, copysign, cos, cosh, deg2rad, deg2rad as radians, divide,
    divide as true_divide, equal, exp, exp2, expm1, floor, floor_divide, fmax, fmin, fmod, gcd,
    greater, greater_equal, invert, invert as bitwise_invert, invert as bitwise_not, isfinite,
    isinf, isnan, lcm, ldexp, left_shift, left_shift as bitwise_left_shift, less, less_equal, log, log10, log1p,
    log2, logaddexp, logaddexp2, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply,
    negative, nextafter, not_equal, positive, rad2deg, rad2deg as degrees, reciprocal,
    remainder, remainder as mod, right_shift, right_shift as bitwise_right_shift, rint, signbit, sin, sinh, spacing,
    sqrt, subtract, tan, tanh, trunc,
)
from func.interpreters.host.public_functions import late_value as _late_value
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary
from func.numpy.late_names import IN_MODULES as _IN_MODULES
from func.numpy.late_names import SUBMODULES as _SUBMODULES
from func.numpy.methods import install as _install

if TYPE_CHECKING:
    from func.numpy import fft, linalg
    from func.numpy.concatenators import c_, r_
    from func.numpy.convolution import conv_general, convolve, correlate, sliding_window_view
    from func.numpy.creation import (
        arange, array, asanyarray, asarray, ascontiguousarray, asfortranarray, astype, copy, empty, empty_like, eye,
        full, full_like, identity, ones, ones_like, zeros, zeros_like,
    )
    from func.numpy.cumulative import cumprod, cumsum, cumulative_prod, cumulative_sum
    from func.numpy.einsums import einsum, einsum_path
    from func.numpy.elementary import (
        allclose, angle, around, array_equal, array_equiv, clip, fix, i0, imag, isclose, iscomplex, iscomplexobj,
        isneginf, isposinf, isreal, isrealobj, nan_to_num, real, real_if_close, round, sinc,
    )
    from func.numpy.flat import at
    from func.numpy.grids import (
        bartlett, blackman, diag, diag_indices, diag_indices_from, diagflat, fromfunction, geomspace, hamming,
        hanning, indices, kaiser, linspace, logspace, mask_indices, meshgrid, tri, tril, tril_indices,
        tril_indices_from, triu, triu_indices, triu_indices_from, vander,
    )
    from func.numpy.histograms import histogram, histogram2d, histogram_bin_edges, histogramdd
    from func.numpy.interpolation import diff, ediff1d, gradient, interp, trapezoid, unwrap
    from func.numpy.joining import (
        append, array_split, block, column_stack, concat, concatenate, delete, dsplit, dstack, hsplit, hstack, insert,
        repeat, resize, split, stack, tile, unstack, vsplit, vstack,
    )
    from func.numpy.nanfunctions import (
        nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )
    from func.numpy.padding import pad
    from func.numpy.polynomials import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots,
    )
    from func.numpy.products import (
        cross, dot, inner, kron, matmul, matvec, outer, tensordot, trace, vdot, vecdot, vecmat,
    )
    from func.numpy.quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
    from func.numpy.reductions import all, amax, amin, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum
    from func.numpy.selection import (
        choose, compress, copyto, diagonal, extract, fill_diagonal, ix_, piecewise, place, put, put_along_axis,
        putmask, select, take, take_along_axis, where,
    )
    from func.numpy.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse,
        unique_values,
    )
    from func.numpy.shaping import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_to, expand_dims, flip, fliplr, flipud,
        matrix_transpose, moveaxis, ndim, permute_dims, ravel, reshape, roll, rollaxis, rot90, shape, size, squeeze,
        swapaxes, transpose,
    )
    from func.numpy.sizes import argwhere, flatnonzero, nonzero
    from func.numpy.sorting import (
        argpartition, argsort, bincount, digitize, lexsort, partition, searchsorted, sort, sort_complex,
    )
    from func.numpy.statistics import average, corrcoef, cov, mean, std, var
    from func.numpy.ufuncs import (
        absolute, bitwise_count, conjugate, divmod, fabs, float_power, frexp, heaviside, hypot, modf, power, sign,
        square,
    )
    from func.numpy.ufuncs import absolute as abs
    from func.numpy.ufuncs import conjugate as conj
    from func.numpy.ufuncs import power as pow
    from func.numpy.utilities import (
        apply_along_axis, apply_over_axes, array2string, array_repr, array_str, can_cast, common_type,
        may_share_memory, min_scalar_type, packbits, ravel_multi_index, result_type, shares_memory, trim_zeros,
        unpackbits, unravel_index,
    )
    from func.numpy.vectorizing import vectorize

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array", "array2string",
    "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asanyarray", "asarray",
    "ascontiguousarray", "asfortranarray", "asin", "asinh", "astype", "at", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bartlett", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block",
    "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "c_", "can_cast", "cbrt", "ceil", "choose", "clip",
    "column_stack", "common_type", "complex64", "complex128", "complexfloating", "compress", "concat", "concatenate",
    "conj", "conjugate", "conv_general", "convolve", "copy", "copysign", "copyto", "corrcoef", "correlate", "cos",
    "cosh", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad",
    "degrees", "delete", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digitize",
    "divide", "divmod", "dot", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty",
    "empty_like", "equal", "errstate", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract", "eye", "fabs",
    "fft", "fill_diagonal", "finfo", "fix", "flatnonzero", "flip", "fliplr", "flipud", "float16", "float32", "float64",
    "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "fromfunction", "full",
    "full_like", "gcd", "generic", "geomspace", "gradient", "greater", "greater_equal", "hamming", "hanning",
    "heaviside", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "i0",
    "identity", "iinfo", "imag", "index_exp", "indices", "inexact", "inf", "inner", "insert", "int8", "int16", "int32",
    "int64", "integer", "interp", "intersect1d", "intp", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype",
    "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "linalg",
    "linspace", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logspace", "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum",
    "may_share_memory", "mean", "median", "meshgrid", "mgrid", "min", "min_scalar_type", "minimum", "mod", "modf",
    "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax",
    "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
    "ndarray", "ndim", "ndindex", "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number", "ogrid", "ones",
    "ones_like", "outer", "packbits", "pad", "partition", "percentile", "permute_dims", "pi", "piecewise", "place",
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "positive", "pow",
    "power", "prod", "promote_types", "ptp", "put", "put_along_axis", "putmask", "quantile", "r_", "rad2deg", "radians",
    "ravel", "ravel_multi_index", "real", "real_if_close", "reciprocal", "remainder", "repeat", "reshape", "resize",
    "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "s_", "searchsorted", "select",
    "setdiff1d", "setxor1d", "shape", "shares_memory", "sign", "signbit", "sin", "sinc", "sinh", "size",
    "sliding_window_view", "sort", "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std",
    "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose",
    "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu", "triu_indices",
    "triu_indices_from", "true_divide", "trunc", "uint8", "uint16", "uint32", "uint64", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "unpackbits", "unravel_index", "unstack",
    "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where", "zeros",
    "zeros_like",
]
# fmt: on

_install()


@_without_engine_frames
def __getattr__(name: str) -> _Any:
    """Import a function at its first use; the error for a missing name suggests another."""
    if name in _IN_MODULES:
        return _late_value(globals(), name, _IN_MODULES)
    if name in _SUBMODULES:
        return _importlib.import_module(f"func.numpy.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module 'func.numpy' has no attribute {name!r}")
    other_names = _importlib.import_module("func.other_names")
    raise other_names.no_name("func.numpy", name, __all__, other_names.IN_NUMPY)


_put_at_boundary(globals())


def __dir__() -> list[str]:
    from func.interpreters.host.display import public_names  # start-up time

    return public_names(globals())
