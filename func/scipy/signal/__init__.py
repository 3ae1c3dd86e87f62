"""scipy.signal on traced and plain arrays: convolution, filters, filter design, spectra, windows, systems, waveforms.

Most of scipy.signal is NumPy code, which runs on traced values unchanged; its compiled kernels have versions here.
Convolutions are sums of products. Filters with feedback solve a linear recurrence, whose derivative in every argument
is a recurrence again. Peaks and other indices have no derivative.
"""

from __future__ import annotations

import scipy.signal as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.signal.adapted import (
    bilinear_zpk,
    cheb1ap,
    cheb2ap,
    chirp,
    cspline1d,
    ellipap,
    gammatone,
    iircomb,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
    spline_filter,
    symiirorder1,
    symiirorder2,
    tf2ss,
)
from func.scipy.signal.correlations import (
    _sigtools__convolve2d,
    _sigtools__medfilt2d,
    choose_conv_method,
    correlate,
    sepfir2d,
)
from func.scipy.signal.designs import firwin, iirfilter, iirnotch, iirpeak, tf2zpk, zpk2sos
from func.scipy.signal.peaks import find_peaks, peak_prominences, peak_widths
from func.scipy.signal.recursive_filters import lfilter, lfilter_zi, sosfilt
from func.scipy.signal.short_time import ShortTimeFFT
from func.scipy.signal.short_time import transformed_windows as _spectral_py__fft_helper
from func.scipy.signal.transfer_functions import bilinear, lfiltic, normalize
from func.scipy.signal.transfer_functions import trim_zeros as _polyutils__trim_zeros
from func.scipy.signal.transfer_functions import validate_fs as _arraytools__validate_fs
from func.scipy.signal.transfer_functions import validate_sos as _filter_design__validate_sos
from func.scipy.signal.transfer_functions import least_squares as _polyutils__lstsq
from func.scipy.signal.upsampling import upfirdn
from func.scipy.signal.waveforms import cspline1d_eval, qspline1d_eval, sawtooth

__all__ = [
    "ShortTimeFFT", "bilinear", "bilinear_zpk", "cheb1ap", "cheb2ap", "chirp", "choose_conv_method", "correlate",
    "cspline1d", "cspline1d_eval", "ellipap", "find_peaks", "firwin",
    "gammatone", "iircomb", "iirfilter", "iirnotch", "iirpeak", "lfilter", "lfilter_zi", "lfiltic", "lp2bp_zpk",
    "lp2bs_zpk", "lp2hp_zpk", "lp2lp_zpk", "normalize", "peak_prominences",
    "peak_widths", "qspline1d_eval", "sawtooth", "sepfir2d", "sosfilt", "spline_filter",
    "symiirorder1", "symiirorder2", "tf2ss", "tf2zpk", "upfirdn", "zpk2sos",
]  # fmt: skip
_DOORS = (
    _arraytools__validate_fs,
    _filter_design__validate_sos,
    _polyutils__lstsq,
    _polyutils__trim_zeros,
    _spectral_py__fft_helper,
    _sigtools__convolve2d,
    _sigtools__medfilt2d,
)
"""Targets of hooks of private and compiled functions that SciPy's public functions call."""

__getattr__, __dir__ = _public_module(globals(), _scipy)
