"""Rows of scipy.fft."""

from __future__ import annotations

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3, 8))

ROWS: dict[str, Row] = {
    "fft": Row(lambda m, x: m.fft(x, n=6, axis=0), X),
    "ifft": Row(lambda m, x: m.ifft(x, norm="ortho"), X),
    "rfft": Row(lambda m, x: m.rfft(x), X),
    "irfft": Row(lambda m, x: m.irfft(x, n=7), X),
    "hfft": Row(lambda m, x: m.hfft(x + 1j * x**2), X),
    "ihfft": Row(lambda m, x: m.ihfft(x), X),
    "fft2": Row(lambda m, x: m.fft2(x), X),
    "ifft2": Row(lambda m, x: m.ifft2(x), X),
    "rfft2": Row(lambda m, x: m.rfft2(x), X),
    "irfft2": Row(lambda m, x: m.irfft2(x), X),
    "fftn": Row(lambda m, x: m.fftn(x, s=(4, 5)), X),
    "ifftn": Row(lambda m, x: m.ifftn(x), X),
    "rfftn": Row(lambda m, x: m.rfftn(x), X),
    "irfftn": Row(lambda m, x: m.irfftn(x), X),
    "fftshift": Row(lambda m, x: m.fftshift(x), X),
    "ifftshift": Row(lambda m, x: m.ifftshift(x), X),
}

if __name__ == "__main__":
    main("fft", ROWS)
