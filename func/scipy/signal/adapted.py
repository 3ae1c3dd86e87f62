"""Functions that run SciPy's own code, except for parts that are compiled or ask for plain numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal as _scipy
from scipy.signal import _filter_design, _spline, _spline_filters, _waveforms

from func import numpy as fnp
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.scipy.kinds.traces import NUMBERS, part, traces
from func.scipy.signal import correlations


def _adapted(name: str, /, **names: Any) -> Callable[..., Any]:
    """A function of scipy.signal with substitutes behind some names."""
    return traces(getattr(_scipy, name), **names)


lp2lp_zpk, lp2hp_zpk, lp2bp_zpk, lp2bs_zpk = [
    _adapted(name, **NUMBERS) for name in ("lp2lp_zpk", "lp2hp_zpk", "lp2bp_zpk", "lp2bs_zpk")
]
cheb1ap, cheb2ap, iircomb, gammatone, bilinear_zpk = [
    _adapted(name, **NUMBERS) for name in ("cheb1ap", "cheb2ap", "iircomb", "gammatone", "bilinear_zpk")
]
_NOTCH = {"_design_notch_peak_filter": part(_filter_design._design_notch_peak_filter, **NUMBERS)}
iirnotch, iirpeak = _adapted("iirnotch", **_NOTCH), _adapted("iirpeak", **_NOTCH)
chirp = _adapted("chirp", _chirp_phase=part(_waveforms._chirp_phase, **NUMBERS))
tf2ss = _adapted("tf2ss", r_=fnp.r_)
cspline1d = _adapted(
    "cspline1d", _cubic_smooth_coeff=part(_spline_filters._cubic_smooth_coeff, r_=fnp.r_),
    _cubic_coeff=part(_spline_filters._cubic_coeff, r_=fnp.r_),
)  # fmt: skip


def _initial(name: str) -> Callable[..., Array]:
    """SciPy's sums for the first outputs of a filter whose signal continues as its mirror image: linear in the signal.

    Their weights are SciPy's results for unit vectors. They decay, and func computes only as many as matter.
    """
    compiled = getattr(_spline, name)

    def initial(signal: Array, *parameters: Any) -> Array:
        if holds_traced(parameters):
            raise UnsupportedFunctionError(
                f"the poles of a symmetric recursive filter of scipy.signal are traced{at_line()}\n"
                "There is no derivative in them: pass numbers, or write the filter with lfilter."
            )
        n = signal.shape[-1]
        size = min(n, 32)
        while True:
            unit = np.eye(size, dtype=signal.dtype)
            if name.endswith("bwd"):
                unit = unit[:, ::-1]
            try:
                weights = np.reshape(compiled(np.ascontiguousarray(unit), *parameters), (size, -1))
                break
            except ValueError:
                if size == n:
                    raise
                size = min(n, 4 * size)
        part = signal[..., :size] if not name.endswith("bwd") else signal[..., n - size :][..., ::-1]
        return fnp.matmul(part, weights)

    return initial


symiirorder1 = _adapted("symiirorder1", symiirorder1_ic=_initial("symiirorder1_ic"))
symiirorder2 = _adapted(
    "symiirorder2",
    symiirorder2_ic_fwd=_initial("symiirorder2_ic_fwd"),
    symiirorder2_ic_bwd=_initial("symiirorder2_ic_bwd"),
)
spline_filter = _adapted("spline_filter", sepfir2d=correlations.sepfir2d)
_POWER = part(_filter_design._pow10m1, **NUMBERS)
ellipap = _adapted("ellipap", **NUMBERS, _pow10m1=_POWER)
