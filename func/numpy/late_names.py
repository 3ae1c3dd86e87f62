"""The modules of func.numpy's functions: each is imported at the first use of one of its functions.

A program uses few of NumPy's functions, so `from func import grad` need not import the others. `__array_function__`
looks here, too, for functions of modules that are not imported yet.
"""

from __future__ import annotations

_MODULES = {
    "concatenators": "c_ r_",
    "convolution": "conv_general convolve correlate sliding_window_view",
    "creation": (
        "arange array asanyarray asarray ascontiguousarray asfortranarray astype copy empty empty_like eye "
        "full full_like identity ones ones_like zeros zeros_like"
    ),
    "cumulative": "cumprod cumsum cumulative_prod cumulative_sum",
    "einsums": "einsum einsum_path",
    "elementary": (
        "allclose angle around array_equal array_equiv clip fix i0 imag isclose iscomplex iscomplexobj "
        "isneginf isposinf isreal isrealobj nan_to_num real real_if_close round sinc"
    ),
    "flat": "at",
    "grids": (
        "bartlett blackman diag diag_indices diag_indices_from diagflat fromfunction geomspace hamming "
        "hanning indices kaiser linspace logspace mask_indices meshgrid tri tril tril_indices "
        "tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "histograms": "histogram histogram2d histogram_bin_edges histogramdd",
    "interpolation": "diff ediff1d gradient interp trapezoid unwrap",
    "joining": (
        "append array_split block column_stack concat concatenate delete dsplit dstack hsplit hstack insert "
        "repeat resize split stack tile unstack vsplit vstack"
    ),
    "nanfunctions": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "padding": "pad",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "products": "cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "reductions": "all amax amin any argmax argmin count_nonzero max min prod ptp sum",
    "selection": (
        "choose compress copyto diagonal extract fill_diagonal ix_ piecewise place put put_along_axis putmask "
        "select take take_along_axis where"
    ),
    "sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "shaping": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to expand_dims flip fliplr flipud "
        "matrix_transpose moveaxis ndim permute_dims ravel reshape roll rollaxis rot90 shape size squeeze "
        "swapaxes transpose"
    ),
    "sizes": "argwhere flatnonzero nonzero",
    "sorting": "argpartition argsort bincount digitize lexsort partition searchsorted sort sort_complex",
    "statistics": "average corrcoef cov mean std var",
    "ufuncs": (
        "absolute bitwise_count conjugate divmod fabs float_power frexp heaviside hypot modf power sign square "
        "abs=absolute conj=conjugate pow=power"
    ),
    "utilities": (
        "apply_along_axis apply_over_axes array2string array_repr array_str can_cast common_type "
        "may_share_memory min_scalar_type packbits ravel_multi_index result_type shares_memory trim_zeros "
        "unpackbits unravel_index"
    ),
    "vectorizing": "vectorize",
}
"""The public functions by module; `public=own` where a function has another name in its module."""

IN_MODULES: dict[str, str] = {
    public: f"func.numpy.{module}:{own or public}"
    for module, names in _MODULES.items()
    for public, _, own in [name.partition("=") for name in names.split()]
}
"""The module and the name of each public function."""
SUBMODULES = frozenset({*_MODULES, "fft", "linalg"})
"""The modules that are imported at their first use as attributes of `func.numpy`."""
PACKAGES = {
    "numpy.linalg": "func.numpy.linalg",
    "numpy.fft": "func.numpy.fft",
    "numpy.lib.scimath": "func.numpy.emath",
}
"""The modules with the traced versions of those of NumPy's packages."""


def module_of(function: object) -> str | None:
    """The module with the traced version of a NumPy function, by its name; None if there is none."""
    package, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    return PACKAGES.get(str(package)) or (IN_MODULES[name].partition(":")[0] if name in IN_MODULES else None)


def modules() -> list[str]:
    """All of them: a function may have another name in NumPy than here."""
    return [*[f"func.numpy.{module}" for module in _MODULES], *PACKAGES.values()]
