"""Transforms of the windows of a signal."""

from __future__ import annotations

from typing import Any

import scipy.signal as _scipy

from func import numpy as fnp
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, Tracer
from func.scipy import fft
from func.scipy.kinds.traces import in_original

_short_time_fft = private_module("scipy.signal._short_time_fft")


def transformed_windows(
    x: Any, win: Any, detrend_func: Any, nperseg: int, noverlap: int, nfft: int, sides: str
) -> Array:
    """The Fourier transforms of all windows of a signal (…, windows, frequencies), detrended and weighted."""
    x = fnp.asarray(x)
    if nperseg == 1 and noverlap == 0:
        parts = x[..., None]
    else:
        parts = fnp.sliding_window_view(x, nperseg, -1)[..., :: nperseg - noverlap, :]
    weighted = win * detrend_func(parts)
    if sides == "twosided":
        return fft.fft(weighted, n=nfft)
    return fft.rfft(fnp.real(weighted), n=nfft)


class _Window:
    """A traced window during the construction of an object that makes it read-only."""

    def __init__(self, window: Array) -> None:
        self.window = window

    def __getattr__(self, name: str) -> Any:
        return getattr(self.window, name)

    def __len__(self) -> int:
        return len(self.window)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """A traced window skips the check for finite numbers."""
        return [True]

    def __iter__(self) -> Any:
        return iter(self.window)

    def __mul__(self, other: Any) -> Any:
        return self.window * other

    def __truediv__(self, other: Any) -> Any:
        return self.window / other

    def setflags(self, write: bool) -> None:
        """A traced window has no flags; nothing else refers to it."""


class ShortTimeFFT(_scipy.ShortTimeFFT):  # type: ignore[misc]
    """scipy.signal.ShortTimeFFT with a traced window; its methods are SciPy's.

    >>> import numpy as np, func, scipy.signal
    >>> def energy(w):
    ...     return np.sum(np.abs(scipy.signal.ShortTimeFFT(w, 2, fs=1.0).stft(np.ones(8))) ** 2)
    >>> func.grad(energy)(np.ones(2)).round(6)
    array([16., 16.])
    """

    _win: Any
    _dual_win: Any
    _scaling: Any
    _fac_mag: Any
    _fac_psd: Any

    def __init__(self, win: Any, hop: int, fs: Any, *, dual_win: Any = None, **options: Any) -> None:
        windows = [_Window(w) if type(w) is Tracer else w for w in (win, dual_win)]
        in_original(_scipy.ShortTimeFFT.__init__, self, windows[0], hop, fs, dual_win=windows[1], **options)
        self._win, self._dual_win = [w.window if type(w) is _Window else w for w in (self._win, self._dual_win)]

    def scale_to(self, scaling: str) -> None:
        """Scale the window to a magnitude or a power spectral density spectrum."""
        if scaling not in (scalings := ("magnitude", "psd")):
            raise ValueError(f"{scaling=} not in {set(scalings)}!")
        if self._scaling == scaling:
            return
        factor = self.fac_psd if scaling == "psd" else self.fac_magnitude
        self._win = self._win * factor
        if self._dual_win is not None:
            self._dual_win = self._dual_win / factor
        self._fac_mag = self._fac_psd = None
        self._scaling = scaling

    @property
    def dual_win(self) -> Array:
        """The canonical dual window, unless the object was made with another."""
        if self._dual_win is None:
            self._dual_win = in_original(_short_time_fft._calc_dual_canonical_window, self._win, self.hop)
        return self._dual_win

    @staticmethod
    def __func_holds_traced__(value: Any) -> bool:
        return holds_traced(value._win) or holds_traced(value._dual_win)
