"""Rows of scipy.signal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(15)
V = RNG.normal(size=12)
X = RNG.normal(size=(2, 12))
H = RNG.normal(size=3)
M, K = RNG.normal(size=(4, 5)), RNG.normal(size=(2, 3))
B, A = np.array([0.4, 0.3, -0.2]), np.array([1.3, -0.5, 0.2])
ZI = np.array([0.3, -0.1])
SOS = np.array([[0.5, 0.2, 0.1, 1.0, -0.3, 0.1], [0.7, -0.2, 0.3, 1.0, 0.2, 0.05]])
T = np.linspace(0.1, 1.0, 6)
ONE = np.array([0.7])
SPECTRUM = {"nperseg": 6, "noverlap": 3}
ZEROS, POLES = np.array([0.3, -0.5]), np.array([0.6, -0.2, 0.1])


def system(x):
    """A state space of two states, one input and one output."""
    return np.stack([np.stack([-x[0], x[1]]), np.stack([-x[1], -x[2]])]), np.array([[1.0], [0.5]]), x[None, :2], ZERO


LONG = RNG.normal(size=24)
LARGE = RNG.normal(size=(12, 13))
ZERO = np.array([[0.2]])
S3 = np.array([0.7, 0.4, 1.1])


def sections(b):
    """Second-order sections with a numerator and half of it in the denominator."""
    return np.concatenate([b, np.ones((2, 1)), 0.5 * b[:, 1:]], 1)


def tf(x):
    """Numerator and denominator of a stable system."""
    return np.stack([x[0], x[1]]), np.stack([1.0, x[1] + 1.0, x[2]])


ROWS: dict[str, Row] = {
    "convolve": Row(lambda m, x: m.convolve(x, H + x[:3], mode="same"), V),
    "convolve direct": Row(lambda m, x: m.convolve(x, K, mode="valid", method="direct"), M),
    "convolve fft": Row(lambda m, x: m.convolve(x, K, method="fft"), M),
    "correlate": Row(lambda m, x: m.correlate(x, H, mode="full"), V),
    "correlate direct": Row(lambda m, x: m.correlate(K, x, mode="same", method="direct"), M),
    "fftconvolve": Row(lambda m, x: m.fftconvolve(x, X[:, :3], axes=1), X),
    "oaconvolve": Row(lambda m, x: m.oaconvolve(x, H, mode="same"), np.tile(V, 6)),
    "convolve2d": Row(lambda m, x: m.convolve2d(x, K, mode="same", boundary="symm"), M),
    "convolve2d kernel": Row(lambda m, k: m.convolve2d(M, k, boundary="wrap"), K),
    "correlate2d": Row(lambda m, x: m.correlate2d(x, K, fillvalue=0.4), M),
    "sepfir2d": Row(lambda m, x: m.sepfir2d(x, H, x[0, :3]), M, without={"unmodified": "a function of C"}),
    "lfilter": Row(lambda m, x: m.lfilter(B, A, x, axis=0), X.T),
    "lfilter b": Row(lambda m, b: m.lfilter(b, A, V), B),
    "lfilter a": Row(lambda m, a: m.lfilter(B, a, X), A),
    "lfilter state": Row(lambda m, z: m.lfilter(B, A, V, zi=z)[1], ZI),
    "lfilter zf": Row(lambda m, a: m.lfilter(B, a, V[:1], zi=a[1:])[1], A),
    "lfilter_zi": Row(lambda m, a: m.lfilter_zi(B, a), A),
    "lfiltic": Row(lambda m, x: m.lfiltic(B, A, x[:2], x[2:5]), V),
    "sosfilt": Row(lambda m, x: m.sosfilt(SOS, x), X),
    "sosfilt sections": Row(lambda m, s: m.sosfilt(sections(s), V), SOS[:, :3]),
    "sosfilt_zi": Row(lambda m, s: m.sosfilt_zi(s), SOS),
    "filtfilt": Row(lambda m, x: m.filtfilt(B, A, x, padlen=4), X),
    "filtfilt coefficients": Row(lambda m, a: m.filtfilt(B, a, V, padtype="even"), A),
    "filtfilt gust": Row(lambda m, x: m.filtfilt(B, A, x, method="gust"), V),
    "sosfiltfilt": Row(lambda m, x: m.sosfiltfilt(SOS, x, padlen=5), X),
    "deconvolve": Row(lambda m, x: m.deconvolve(x, H), V),
    "upfirdn": Row(lambda m, x: m.upfirdn(H, x, 3, 2), X),
    "upfirdn filter": Row(lambda m, h: m.upfirdn(h, V, 2, 3, mode="reflect"), H),
    "savgol_filter": Row(lambda m, x: m.savgol_filter(x, 5, 2, deriv=1, delta=0.5), X),
    "savgol_filter mirror": Row(lambda m, x: m.savgol_filter(x, 5, 2, mode="mirror"), X),
    "savgol_coeffs": Row(lambda m, d: m.savgol_coeffs(5, 3, deriv=1, delta=d[0]), ONE),
    "detrend": Row(lambda m, x: m.detrend(x, bp=5), X),
    "detrend constant": Row(lambda m, x: m.detrend(x, type="constant", axis=0), X),
    "hilbert": Row(lambda m, x: m.hilbert(x), X),
    "hilbert2": Row(lambda m, x: m.hilbert2(x), M),
    "envelope": Row(lambda m, x: m.envelope(x, (2, 5)), V),
    "stft": Row(lambda m, x: m.stft(x, nperseg=6)[2], X),
    "istft": Row(lambda m, x: m.istft(x + 1j * x**2, nperseg=4)[1], RNG.normal(size=(3, 6))),
    "ShortTimeFFT": Row(lambda m, x: m.ShortTimeFFT(np.hanning(5), 2, 1.0).stft(x), V),
    "ShortTimeFFT window": Row(lambda m, w: m.ShortTimeFFT(w, 2, 1.0).stft(V), V[:5]),
    "ShortTimeFFT inverse": Row(
        lambda m, x: m.ShortTimeFFT(np.hamming(4), 2, 1.0).istft(m.ShortTimeFFT(np.hamming(4), 2, 1.0).stft(x) ** 2), V
    ),
    "welch": Row(lambda m, x: m.welch(x, fs=2.0, **SPECTRUM)[1], X),
    "periodogram": Row(lambda m, x: m.periodogram(x, window="hamming", detrend="linear")[1], X),
    "csd": Row(lambda m, x: m.csd(x[0], x[1], **SPECTRUM)[1], X),
    "coherence": Row(lambda m, x: m.coherence(x[0], x[1], **SPECTRUM)[1], X),
    "spectrogram": Row(lambda m, x: m.spectrogram(x, **SPECTRUM)[2], X),
    "lombscargle": Row(lambda m, x: m.lombscargle(np.arange(12.0), x, [0.3, 1.1, 2.0]), V),
    "lombscargle frequencies": Row(lambda m, f: m.lombscargle(np.arange(12.0), V, f), T),
    "vectorstrength": Row(lambda m, x: m.vectorstrength(x, 0.8), V),
    "resample": Row(lambda m, x: m.resample(x, 7, axis=1), X),
    "resample_poly": Row(lambda m, x: m.resample_poly(x, 3, 2, axis=1, padtype="mean"), X),
    "decimate": Row(lambda m, x: m.decimate(x, 2, n=2), V),
    "decimate fir": Row(lambda m, x: m.decimate(x, 2, n=4, ftype="fir", zero_phase=False), X),
    "medfilt": Row(lambda m, x: m.medfilt(x, (3, 1)), M),
    "medfilt2d": Row(lambda m, x: m.medfilt2d(x, 3), M),
    "order_filter": Row(lambda m, x: m.order_filter(x, np.ones((3, 3)), 2), M),
    "wiener": Row(lambda m, x: m.wiener(x, (3, 3)), M),
    "freqz": Row(lambda m, b: m.freqz(b, b + 2.0, worN=T)[1], B),
    "freqz_zpk": Row(lambda m, p: m.freqz_zpk(ZEROS, p, 0.7, worN=5)[1], POLES),
    "freqz_sos": Row(lambda m, s: m.freqz_sos(sections(s), worN=5)[1], SOS[:, :3]),
    "sosfreqz": Row(lambda m, s: m.sosfreqz(sections(s), worN=5)[1], SOS[:, :3]),
    "freqs": Row(lambda m, b: m.freqs(b, b + 2.0, worN=T)[1], B),
    "freqs_zpk": Row(lambda m, p: m.freqs_zpk(ZEROS, p, 0.7, worN=T)[1], POLES),
    "group_delay": Row(lambda m, b: m.group_delay((b, A), w=T)[1], B),
    "chirp": Row(lambda m, f: m.chirp(T, f[0], 1.0, f[0] + 3.0), ONE),
    "chirp times": Row(lambda m, t: m.chirp(t, 1.0, 1.0, 6.0, method="hyperbolic"), T),
    "gausspulse": Row(lambda m, t: m.gausspulse(t, fc=3.0), T),
    "sawtooth": Row(lambda m, t: m.sawtooth(3 * t, 0.3), T),
    "square": Row(lambda m, t: m.square(9 * t, 0.3) * t, T),
    "sweep_poly": Row(lambda m, t: m.sweep_poly(t, np.poly1d([0.3, 1.0, 2.0])), T),
    "gauss_spline": Row(lambda m, t: m.gauss_spline(t, 3), T),
    "cspline1d": Row(lambda m, x: m.cspline1d(x, 0.5), V),
    "qspline1d": Row(lambda m, x: m.qspline1d(x), V),
    "cspline1d_eval": Row(lambda m, t: m.cspline1d_eval(V, t), 5 * T),
    "cspline1d_eval coefficients": Row(lambda m, c: m.cspline1d_eval(c, 9 * T - 1), V),
    "qspline1d_eval": Row(lambda m, t: m.qspline1d_eval(V, t), 4.7 * T),
    "cspline2d": Row(lambda m, x: m.cspline2d(x), LARGE),
    "qspline2d": Row(lambda m, x: m.qspline2d(x), LARGE),
    "spline_filter": Row(lambda m, x: m.spline_filter(x, 0.001), LARGE),
    "symiirorder1": Row(lambda m, x: m.symiirorder1(x, 0.7, 0.2), LONG),
    "symiirorder2": Row(lambda m, x: m.symiirorder2(x, 0.2, 0.9), LONG),
    "czt": Row(lambda m, x: m.czt(x, 5, a=1.1), X),
    "czt_points": Row(lambda m, w: m.czt_points(5, w[0]), ONE),
    "zoom_fft": Row(lambda m, x: m.zoom_fft(x, [0.2, 0.7], 5), X),
    "CZT": Row(lambda m, x: m.CZT(12, 5)(x), X),
    "ZoomFFT": Row(lambda m, x: m.ZoomFFT(12, 0.6, 5)(x), X),
    "get_window": Row(lambda m, b: m.get_window(("kaiser", b[0]), 6), 4 * ONE),
    "bilinear": Row(lambda m, b: m.bilinear(b, b + 2.0, 3.0), B),
    "bilinear_zpk": Row(lambda m, p: m.bilinear_zpk(ZEROS, p, 0.7, 3.0)[1], POLES),
    "zpk2tf": Row(lambda m, p: m.zpk2tf(ZEROS, p, 0.7)[1], POLES),
    "tf2zpk": Row(lambda m, b: m.tf2zpk(b, [1.0, -0.9, 0.1])[2] * 1.0, B),
    "tf2zpk poles": Row(lambda m, a: m.tf2zpk(B, a)[1], np.array([1.3, -0.9, 0.1])),
    "zpk2sos": Row(lambda m, z: m.zpk2sos(z, POLES[:2], 0.4), ZEROS),
    "tf2sos": Row(lambda m, b: m.tf2sos(b, [1.0, -0.9, 0.1]), np.array([0.4, 0.3, -0.2])),
    "sos2zpk": Row(lambda m, s: m.sos2zpk(s)[2] * 1.0, SOS),
    "sos2tf": Row(lambda m, s: m.sos2tf(s)[1], SOS),
    "tf2ss": Row(lambda m, b: m.tf2ss(b, b + 2.0)[0], B),
    "ss2tf": Row(lambda m, x: m.ss2tf(*system(x))[0], S3),
    "zpk2ss": Row(lambda m, p: m.zpk2ss(ZEROS, p, 0.7)[0], POLES),
    "ss2zpk": Row(lambda m, x: m.ss2zpk(*system(x))[2] * 1.0, S3),
    "abcd_normalize": Row(lambda m, x: m.abcd_normalize(*system(x))[0], S3),
    "normalize": Row(lambda m, b: m.normalize(b, b + 2.0)[1], B),
    "lp2lp": Row(lambda m, b: m.lp2lp(b, b + 2.0, 0.7)[0], B),
    "lp2hp": Row(lambda m, b: m.lp2hp(b, b + 2.0, 0.7)[0], B),
    "lp2bp": Row(lambda m, b: m.lp2bp(b, b + 2.0, 0.7, 0.2)[0], B),
    "lp2bs": Row(lambda m, b: m.lp2bs(b, b + 2.0, 0.7, 0.2)[0], B),
    "lp2lp_zpk": Row(lambda m, w: m.lp2lp_zpk(ZEROS, POLES, 0.7, w[0])[1], ONE),
    "lp2hp_zpk": Row(lambda m, w: m.lp2hp_zpk(ZEROS, POLES, 0.7, w[0])[1], ONE),
    "lp2bp_zpk": Row(lambda m, w: m.lp2bp_zpk(ZEROS, POLES, 0.7, w[0], 0.3)[1], ONE),
    "lp2bs_zpk": Row(lambda m, w: m.lp2bs_zpk(ZEROS, POLES, 0.7, w[0], 0.3)[1], ONE),
    "butter": Row(lambda m, w: m.butter(3, w[0])[1], 0.4 * ONE),
    "ellipap": Row(
        lambda m, w: m.ellipap(3, w[0], 40.0)[1],
        ONE,
        without={
            "jit": "its code branches on the values",
            "order 2": "elliptic functions have one derivative in the parameter m",
        },
    ),
    "butter band": Row(lambda m, w: m.butter(2, w, btype="band", output="sos"), np.array([0.2, 0.5])),
    "cheby1": Row(lambda m, w: m.cheby1(3, w[0], w[0] / 2)[0], ONE),
    "cheby2": Row(lambda m, w: m.cheby2(3, 20.0 + w[0], w[0] / 2)[0], ONE),
    "ellip": Row(lambda m, w: m.ellip(3, 1.0, 40.0, w[0] / 2, output="ba")[0], ONE),
    "bessel": Row(lambda m, w: m.bessel(3, w[0] / 2)[0], ONE),
    "cheb1ap": Row(lambda m, w: m.cheb1ap(3, w[0])[1], ONE),
    "cheb2ap": Row(lambda m, w: m.cheb2ap(3, 20 * w[0])[1], ONE),
    "iirfilter": Row(lambda m, w: m.iirfilter(3, [w[0] / 3, 0.6])[1], ONE),
    "iirdesign": Row(lambda m, w: m.iirdesign(w[0] / 3, 0.4, 1.0, 30.0)[0], ONE),
    "iirnotch": Row(lambda m, w: m.iirnotch(w[0] / 2, 20.0)[0], ONE),
    "iirpeak": Row(lambda m, w: m.iirpeak(w[0] / 2, 20.0 * w[0])[0], ONE),
    "iircomb": Row(lambda m, q: m.iircomb(0.25, 20.0 * q[0])[0], ONE),
    "gammatone": Row(lambda m, f: m.gammatone(f[0], "iir", fs=4.0)[0], ONE),
    "firwin": Row(lambda m, w: m.firwin(5, w[0] / 2), ONE),
    "firwin2": Row(lambda m, g: m.firwin2(9, [0.0, 0.5, 1.0], [1.0, g[0], 0.0]), ONE),
    "firwin_2d": Row(lambda m, w: m.firwin_2d((5, 3), ("hamming", "hamming"), fc=w[0] / 2), ONE),
    "firls": Row(lambda m, g: m.firls(5, [0.0, 0.4, 0.6, 1.0], [1.0, g[0], 0.3, 0.0]), ONE),
    "minimum_phase": Row(lambda m, h: m.minimum_phase(h, n_fft=64), np.array([0.1, 0.4, 0.7, 0.4, 0.1])),
    "kaiser_atten": Row(lambda m, w: m.kaiser_atten(9, w[0]), ONE),
    "kaiser_beta": Row(lambda m, a: m.kaiser_beta(40 * a[0]), ONE),
    "kaiserord": Row(lambda m, r: m.kaiserord(40 * r[0], 0.3)[1], ONE),
    "residue": Row(lambda m, b: m.residue(b, [1.0, 0.9, 0.1])[0], B[:2]),
    "residuez": Row(lambda m, b: m.residuez(b, [1.0, 0.9, 0.1])[0], B[:2]),
    "invres": Row(lambda m, r: m.invres(r, [-0.4, -0.9], [0.3])[0], B[:2]),
    "invresz": Row(lambda m, r: m.invresz(r, [-0.4, -0.9], [0.3])[0], B[:2]),
    "cont2discrete": Row(lambda m, x: m.cont2discrete(system(x), 0.3)[0], S3),
    "cont2discrete bilinear": Row(lambda m, x: m.cont2discrete(tf(x), 0.3, method="bilinear")[1], S3),
    "lsim": Row(lambda m, x: m.lsim(system(x), np.sin(T), T)[1], S3),
    "lsim input": Row(lambda m, u: m.lsim(([1.0], [1.0, 0.5, 0.3]), u, T)[1], T),
    "dlsim": Row(lambda m, x: m.dlsim((*system(x), 0.1), np.sin(T))[1], S3),
    "step": Row(lambda m, x: m.step(tf(x), T=T)[1], S3),
    "impulse": Row(lambda m, x: m.impulse(tf(x), T=T)[1], S3),
    "dstep": Row(lambda m, x: m.dstep((*system(x), 0.1), n=5)[1][0], S3),
    "dimpulse": Row(lambda m, x: m.dimpulse((*system(x), 0.1), n=5)[1][0], S3),
    "bode": Row(lambda m, x: m.bode(tf(x), w=T)[1], S3),
    "dbode": Row(lambda m, x: m.dbode((*tf(x), 0.1), w=T)[1], S3),
    "freqresp": Row(lambda m, x: m.freqresp(tf(x), w=T)[1], S3),
    "dfreqresp": Row(lambda m, x: m.dfreqresp((*tf(x), 0.1), w=T)[1], S3),
    "TransferFunction": Row(lambda m, x: m.TransferFunction(*tf(x)).to_ss().A, S3),
    "TransferFunction methods": Row(lambda m, x: m.TransferFunction(*tf(x)).step(T=T)[1], S3),
    "StateSpace methods": Row(lambda m, x: m.StateSpace(*system(x)).bode(T)[2], S3),
    "ZerosPolesGain methods": Row(lambda m, x: m.ZerosPolesGain([], -x, 2.0, dt=0.1).impulse(n=4)[1][0], S3),
    "StateSpace": Row(lambda m, x: (m.StateSpace(*system(x)) * m.StateSpace(*system(x))).A, S3),
    "ZerosPolesGain": Row(lambda m, x: m.ZerosPolesGain([], -x, 2.0).to_tf().den, S3),
    "place_poles": Row(
        lambda m, x: m.place_poles(system(x)[0], np.eye(2), [-1.0, -2.0]).gain_matrix, S3, rtol=1e-4, exact=1e-8
    ),
}

BY_VALUE = {"jit": "its code branches on the values"}
for _name in (
    "bilinear", "filtfilt gust", "firls", "firwin_2d", "gammatone", "iirdesign", "kaiser_beta", "kaiserord",
    "lsim input", "minimum_phase", "place_poles", "residue", "residuez", "ShortTimeFFT window",
):  # fmt: skip
    ROWS[_name] = replace(ROWS[_name], without=BY_VALUE)

WITHOUT: dict[str, str] = {
    "BadCoefficients": "a class of warnings",
    **dict.fromkeys(
        ["argrelextrema", "argrelmax", "argrelmin", "find_peaks", "find_peaks_cwt", "peak_prominences", "peak_widths"],
        "returns indices, or what belongs to them",
    ),
    **dict.fromkeys(["buttord", "cheb1ord", "cheb2ord", "ellipord"], "searches for an order, which is an integer"),
    **dict.fromkeys(["besselap", "buttap"], "a function of an order alone"),
    **dict.fromkeys(["check_COLA", "check_NOLA", "choose_conv_method"], "returns a decision"),
    **dict.fromkeys(["correlation_lags", "max_len_seq", "unit_impulse"], "a function of integers"),
    "band_stop_obj": "the objective of buttord and its like",
    "closest_STFT_dual_window": "its code asks for the rank of the windows",
    "dlti": "makes one of its three subclasses, which have rows",
    "findfreqs": "chooses decades for a plot",
    "lti": "makes one of its three subclasses, which have rows",
    "remez": "an exchange algorithm, whose compiled code takes plain numbers",
    "unique_roots": "a search for groups",
    "windows": "a module; see test_windows",
    "whittaker_henderson": "new in SciPy 1.18; it takes no traced values yet",
}

if __name__ == "__main__":
    main("signal", ROWS)
