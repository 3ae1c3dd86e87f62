"""scipy.stats on traced and plain arrays.

The methods of distributions, also of frozen ones, differentiate by their argument and their parameters. Code of SciPy
that is NumPy code runs on the traced values. Methods that SciPy computes by quadrature, root search or in compiled code
have SciPy's values, and derivatives that follow from the density (`host_values`). Outside the support, and for invalid
parameters, the values are SciPy's and the derivatives zero or NaN. Discrete distributions differentiate by their
parameters.

>>> import numpy as np, func, scipy.stats
>>> data = np.array([0.5, 1.5, 2.5])
>>> func.grad(lambda p: np.sum(scipy.stats.norm(p[0], p[1]).logpdf(data)))(np.array([1.0, 2.0]))
array([ 0.375  , -1.15625])
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any

import scipy.stats as _scipy

from func.host.private_names import private_module as _private_module
from func.host import scipy_hooks as _scipy_hooks
from func.scipy.stats import distribution_methods as _methods
from func.scipy.stats import multivariate_sampling as _multivariate_samples
from func.scipy.stats.fitting import OWN as _FITS
from func.scipy.stats.normal_boxes import OWN as _MULTIVARIATE
from func.scipy.stats import best_powers as _best_powers
from func.scipy.stats import binned as _binned
from func.scipy.stats import estimates as _estimates
from func.scipy.stats import masking as _masking
from func.scipy.stats import policies as _policies
from func.scipy.stats import quasi_random as _quasi_random
from func.scipy.stats import sample_functions as _sample_functions
from func.scipy.stats import sample_quantiles as _sample_quantiles
from func.scipy.stats import sample_ranks as _sample_ranks
from func.scipy.stats import sampling as _sampling
from func.scipy.stats.closed_tails import log1mexp as _log1mexp
from func.host.patching import with_converters as _with_converters
from func.scipy.kinds.public_modules import public_module as _public_module
from func.special.protocol import implements_scipy as _implements_scipy

_util = _private_module("scipy._lib._util")

_MODULES = (
    _methods, _multivariate_samples, _sampling, _best_powers, _binned, _estimates, _masking, _policies,
    _quasi_random, _sample_functions, _sample_quantiles, _sample_ranks,
)  # fmt: skip
_FUNCTIONS: dict[str, Any] = {name: getattr(module, name) for module in _MODULES for name in module.__all__} | {
    **_MULTIVARIATE,
    **_FITS,
}
_OWN = {name: own if isinstance(own, type) else _with_converters(own) for name, own in _FUNCTIONS.items()}

_TRACED = ("boxcox", "chi2_contingency", "gaussian_kde", "yeojohnson")  # code of SciPy in which func replaces parts
__all__ = [name for name in (*_OWN, *_TRACED) if hasattr(_scipy, name)]


def _external(name: str) -> Any:
    """A module that is a part of SciPy; SciPy 1.18 has moved such modules."""
    try:
        return _importlib.import_module(f"scipy._external.{name}")
    except ImportError:
        return _importlib.import_module(f"scipy._lib.{name}")


def _install_helpers() -> None:
    """Hooks of SciPy's helpers that its distributions call."""
    for module, name, own in (
        (_external("array_api_extra"), "apply_where", "apply_where"),
        (_util, "_lazyselect", "lazyselect"),
        (_external("array_api_compat.common._aliases"), "clip", "clip"),
    ):
        function = getattr(module, name, None)  # private: other versions of SciPy have others
        if function is not None:
            _scipy_hooks.add_hook(function, "func.scipy.stats.masking", own)
    _implements_scipy("_log1mexp")(_log1mexp)
    _scipy_hooks.install("scipy.stats")  # for keys, which samplers take even if nothing is traced


_install_helpers()
_policies.install()

__getattr__, __dir__ = _public_module(globals(), _scipy, _OWN.get)
