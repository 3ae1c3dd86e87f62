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
    "hfft2": Row(lambda m, x: m.hfft2(x + 1j * x**2), X),
    "ihfft2": Row(lambda m, x: m.ihfft2(x, norm="ortho"), X),
    "hfftn": Row(lambda m, x: m.hfftn(x + 1j * x**2, (4, 6)), X),
    "ihfftn": Row(lambda m, x: m.ihfftn(x, axes=(1, 0)), X),
    "dct": Row(lambda m, x: m.dct(x**2, 1, axis=0), X),
    "idct": Row(lambda m, x: m.idct(x**2, 3, n=5, norm="ortho"), X),
    "dst": Row(lambda m, x: m.dst(x**2, 4, norm="forward"), X),
    "idst": Row(lambda m, x: m.idst(x**2, 2, orthogonalize=True), X),
    "dctn": Row(lambda m, x: m.dctn(x**2, 3, s=(4, 5)), X),
    "idctn": Row(lambda m, x: m.idctn(x**2, axes=(1,)), X),
    "dstn": Row(lambda m, x: m.dstn(x**2, 1), X),
    "idstn": Row(lambda m, x: m.idstn(x**2, norm="ortho"), X),
    "fht": Row(lambda m, x: m.fht(x[1:], 0.1, x[0, 1] + 1.0, offset=0.1, bias=0.2 * x[0, 0]), X),
    "ifht": Row(lambda m, x: m.ifht(x[1:], 0.1, 0.5, offset=x[0, 1], bias=0.1), X, rtol=1e-5),
    "fhtoffset": Row(lambda m, x: m.fhtoffset(x[0], x[1], initial=0.2, bias=x[2]), np.array([0.2, 0.7, 0.3])),
}

WITHOUT = {
    "fftfreq": "constant frequencies of integers",
    "rfftfreq": "constant frequencies of integers",
    "next_fast_len": "integers",
    "prev_fast_len": "integers",
    "set_backend": "configuration",
    "skip_backend": "configuration",
    "set_global_backend": "configuration",
    "register_backend": "configuration",
    "get_workers": "configuration",
    "set_workers": "configuration",
}
"""Public names that have no row, with the reason."""

if __name__ == "__main__":
    main("fft", ROWS)
