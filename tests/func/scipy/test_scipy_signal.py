"""scipy.signal: the laws of the rows, and options, dtypes and bad input against SciPy."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.signal

import func
from func.errors import UnsupportedFunctionError
from func.scipy import signal
from tests.support.numpy_properties import extrapolated
from tests.support.scipy_rows import check, parameters
from tests.support.scipy_signal import ROWS, WITHOUT

RNG = np.random.default_rng(6)
X = RNG.normal(size=(2, 3, 8))
B, A = np.array([0.4, 0.3, -0.2]), np.array([1.3, -0.5, 0.2, 0.1])
SOS = scipy.signal.butter(4, 0.3, output="sos")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_signal_rows(name, column):
    check(ROWS[name], "signal", column)


def test_every_function_has_a_row_or_a_reason():
    rows = {name.split()[0] for name in ROWS}
    assert rows | set(WITHOUT) == set(scipy.signal.__all__) | {"whittaker_henderson"}  # since SciPy 1.18
    assert not rows & set(WITHOUT)


def flat(out):
    return [np.asarray(o) for o in out] if isinstance(out, tuple) else [np.asarray(out)]


def same(call, x, tolerance=1e-11):
    """The values of func's function under a transform against SciPy's, or both raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = flat(call(scipy.signal, x))
        except Exception as error:
            with pytest.raises((type(error), ValueError, TypeError)):
                func.vjp(lambda x: call(signal, x), x)
            return
        got = flat(func.vjp(lambda x: call(signal, x), x)[0])
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        limit = 2e-5 if other.dtype.char in "fF" else tolerance
        np.testing.assert_allclose(one, other, rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", ["d", "f", "D", "F"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_recursive_filters(axis, dtype):
    x = X.astype(dtype)
    for b, a in itertools.product((B, B[:1], [0.5, 0.2, 0.1, 0.3, 0.2]), (A, [2.0], [0.7, 0.1])):
        coefficients = [np.asarray(v).astype(dtype) for v in (b, a)]
        length = max(len(b), len(a)) - 1
        same(lambda m, x, c=coefficients: m.lfilter(*c, x, axis=axis), x)
        shape = list(x.shape)
        shape[axis] = length
        zi = RNG.normal(size=shape).astype(dtype)
        same(lambda m, x, c=coefficients, zi=zi: m.lfilter(*c, x, axis, zi), x)
        shape = [1] * 3
        shape[axis] = length
        zi = zi[: shape[0], : shape[1], : shape[2]]
        same(lambda m, x, c=coefficients, zi=zi: m.lfilter(*c, x, axis=axis, zi=zi), x)
    sos = SOS.astype(dtype)
    same(lambda m, x: m.sosfilt(sos, x, axis), x)
    shape = [2, *x.shape]
    shape[(axis % 3) + 1] = 2
    zi = RNG.normal(size=shape).astype(dtype)
    same(lambda m, x: m.sosfilt(sos, x, axis, zi), x)


@pytest.mark.parametrize("padtype", ["odd", "even", "constant", None, "other"])
def test_both_ways(padtype):
    for padlen in (None, 0, 3, 90):
        o = {"padtype": padtype, "padlen": padlen}
        same(lambda m, x, o=o: m.filtfilt(B, A[:2], x, axis=-1, **o), X, 1e-10)
        same(lambda m, x, o=o: m.sosfiltfilt(SOS, x, axis=1, **o), X.swapaxes(1, 2), 1e-10)


BAD = {
    "matrix of coefficients": lambda m, x: m.lfilter([B], A, x),
    "no coefficients": lambda m, x: m.lfilter([], A, x),
    "leading zero": lambda m, x: m.lfilter(B, [0.0, 1.0], x),
    "number": lambda m, x: m.lfilter(B, A, x[0, 0, 0]),
    "state of another rank": lambda m, x: m.lfilter(B, A, x, zi=np.zeros(3)),
    "state of another length": lambda m, x: m.lfilter(B, A, x, zi=np.zeros((2, 3, 2))),
    "axis": lambda m, x: m.lfilter(B, A, x, axis=5),
    "five columns": lambda m, x: m.sosfilt(SOS[:, :5], x),
    "sections without a one": lambda m, x: m.sosfilt(2 * SOS, x),
    "states of sections": lambda m, x: m.sosfilt(SOS, x, zi=np.zeros((1, 2, 3, 2))),
    "mode": lambda m, x: m.convolve(x[0, 0], B, mode="most"),
    "method": lambda m, x: m.convolve(x[0, 0], B, method="slow"),
    "ranks": lambda m, x: m.correlate(x, B),
    "valid of neither": lambda m, x: m.convolve(x[0], np.ones((5, 2)), mode="valid"),
    "boundary": lambda m, x: m.convolve2d(x[0], x[0], boundary="torus"),
    "planes": lambda m, x: m.convolve2d(x, x),
    "trend": lambda m, x: m.detrend(x, type="cubic"),
    "break": lambda m, x: m.detrend(x, bp=[9]),
    "up": lambda m, x: m.upfirdn(B, x, up=0),
    "extension": lambda m, x: m.upfirdn(B, x, mode="torus"),
    "window": lambda m, x: m.savgol_filter(x, 9, 2),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    with pytest.raises((ValueError, TypeError, NotImplementedError, IndexError)):
        BAD[name](scipy.signal, X)
    with pytest.raises((ValueError, TypeError, NotImplementedError, IndexError)) as caught:
        func.vjp(lambda x: BAD[name](signal, x), X)
    assert not isinstance(caught.value, func.errors.FuncError)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    real, other = RNG.normal(size=9), RNG.normal(size=4)
    planes = [(5, 6), (2, 3), (7, 4), (5, 1)]
    for method in ("direct", "fft", "auto"):
        for x, h in ((real, other), (other, real), (real + 1j, other), (real.astype("f"), other.astype("f"))):
            same(lambda m, x, h=h, method=method: m.convolve(x, h, mode, method), x)
            same(lambda m, x, h=h, method=method: m.correlate(x, h, mode, method), x)
        for first, second in itertools.product(planes, planes):
            x, h = RNG.normal(size=first), RNG.normal(size=second) + 1j
            same(lambda m, x, h=h, method=method: m.convolve(x, h, mode, method), x)
            same(lambda m, x, h=h, method=method: m.correlate(x, h, mode, method), x)
    for boundary in ("fill", "wrap", "symm"):
        for first, second in itertools.product(planes, planes):
            x, h = RNG.normal(size=first), RNG.normal(size=second) + 1j
            same(lambda m, x, h=h, b=boundary: m.convolve2d(x, h, mode, b, 0.7), x)
            same(lambda m, x, h=h, b=boundary: m.correlate2d(x, h, mode, b, 0.7), x)


@pytest.mark.parametrize(
    "mode",
    ["constant", "symmetric", "edge", "smooth", "wrap", "reflect", "antisymmetric", "antireflect", "line"],
)
def test_upsampling_at_borders(mode):
    for (up, down), size in itertools.product(((1, 1), (3, 2), (2, 5)), (1, 4, 23)):
        h = RNG.normal(size=size)
        for x in (X, X.astype("f"), X + 1j):
            same(lambda m, x, h=h, u=up, d=down: m.upfirdn(h, x, u, d, axis=-1, mode=mode), x)
    same(lambda m, x: m.resample_poly(x, 3, 2, axis=-1, padtype=mode), X)


def test_integers_and_lists():
    def loss(v):
        return np.sum(scipy.signal.lfilter([v[0], 1], [1, v[1]], [1, 2, v[0], 4]) ** 2)

    v = np.array([0.7, 0.3])
    differences = [(loss(v + h) - loss(v - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(func.grad(loss)(v), differences, rtol=1e-7)
    np.testing.assert_array_equal(func.jit(lambda x: scipy.signal.convolve(x, [1, 2]))(np.arange(4)), [0, 1, 4, 7, 6])


def test_many_samples_and_coefficients_of_each_batch_element():
    x = RNG.normal(size=10_000)
    gradient = func.grad(lambda a: np.sum(scipy.signal.lfilter([1.0], a, x) ** 2))
    batch = np.array([[1.0, -0.5], [1.2, 0.3]])
    np.testing.assert_allclose(func.vmap(gradient)(batch), [gradient(a) for a in batch])
    np.testing.assert_allclose(func.jit(func.vmap(gradient))(batch), [gradient(a) for a in batch])


WINDOWS = {
    "kaiser": lambda m, p: m.kaiser(7, p),
    "gaussian": lambda m, p: m.gaussian(7, p),
    "general_gaussian": lambda m, p: m.general_gaussian(7, p, 2.0),
    "general_hamming": lambda m, p: m.general_hamming(7, p),
    "general_cosine": lambda m, p: m.general_cosine(7, np.stack([p, 1.0 - p])),
    "exponential": lambda m, p: m.exponential(7, tau=p),
    "tukey": lambda m, p: m.tukey(7, p),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    from func.scipy.signal import windows

    p = np.float64(0.61)
    expected = WINDOWS[name](scipy.signal.windows, p)
    value, dot = func.jvp(lambda p: WINDOWS[name](windows, p), (p,), (1.0,))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    ahead, behind = [WINDOWS[name](scipy.signal.windows, p + h) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(dot, (ahead - behind) / 2e-6, atol=1e-8)


def test_what_has_no_derivative_says_so():
    x = RNG.normal(size=24)
    with pytest.raises(UnsupportedFunctionError, match="poles"):
        func.grad(lambda z: np.sum(signal.symiirorder1(x, 0.7, z)))(0.2)
    with pytest.raises(func.errors.FuncError):
        func.grad(lambda x: np.sum(scipy.signal.find_peaks(x)[1]["prominences"]))(x)


def test_second_derivatives_at_the_knots_of_splines():
    c = RNG.normal(size=8)
    for evaluate, x in ((scipy.signal.cspline1d_eval, 3.0), (scipy.signal.cspline1d_eval, 3.4)):
        second = func.grad(func.grad(lambda x, evaluate=evaluate: evaluate(c, x[None])[0]))(np.float64(x))
        h = 1e-4
        ahead, here, behind = [evaluate(c, np.array([x + d]))[0] for d in (h, 0, -h)]
        np.testing.assert_allclose(second, (ahead - 2 * here + behind) / h**2, rtol=1e-3, atol=1e-4)


SPECTRA = {
    "even borders": lambda x: scipy.signal.stft(x, nperseg=8, noverlap=6, boundary="even", detrend="linear")[2],
    "there and back": lambda x: scipy.signal.istft(scipy.signal.stft(x, nperseg=8)[2] * 1.1, nperseg=8)[1],
    "median": lambda x: scipy.signal.welch(x, nperseg=8, average="median")[1],
    "own trend": lambda x: scipy.signal.welch(x, nperseg=8, detrend=lambda d: d - d[..., :1])[1],
    "own window": lambda x: scipy.signal.welch(V, nperseg=8, window=x[:8] + 3)[1],
    "other lengths": lambda x: scipy.signal.csd(x, x[:20] ** 2, nperseg=8)[1],
    "magnitudes": lambda x: scipy.signal.spectrogram(x, nperseg=8, mode="magnitude")[2],
    "scaled window": lambda x: scipy.signal.ShortTimeFFT(x[:8] + 3, 4, 1.0, scale_to="psd").stft(V),
    "dual window": lambda x: scipy.signal.ShortTimeFFT(x[:8] + 3, 4, 1.0).dual_win,
    "envelope": lambda x: scipy.signal.envelope(x, (2, 9), residual="all", n_out=20),
    "frequencies": lambda x: scipy.signal.resample(np.fft.fft(x), 20, domain="freq"),
    "several weights": lambda x: scipy.signal.lombscargle(np.arange(30.0), x, [0.3, 1.1], normalize="amplitude"),
    "Gustafsson": lambda x: scipy.signal.filtfilt([0.2, 0.3], [1.0, -0.4], x, method="gust", irlen=6),
    "state spread": lambda x: scipy.signal.lfilter(B, A, np.stack([x, x**2]), zi=np.ones((1, 3)) * x[0])[1],
    "short signal": lambda x: scipy.signal.lfilter(np.ones(6), [1, 0.2], x[:3], zi=x[:5])[1],
    "decimated": lambda x: scipy.signal.decimate(x, 2, ftype=scipy.signal.dlti(B, A)),
}
V = RNG.normal(size=30)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPECTRA)
def test_options_differentiate(name):
    def loss(x):
        return np.sum(np.abs(SPECTRA[name](x)) ** 2)

    tangent = RNG.normal(size=30)
    gradient = func.grad(loss)(V)
    np.testing.assert_allclose(gradient @ tangent, extrapolated(loss, V, tangent), rtol=1e-6)
    np.testing.assert_allclose(func.vmap(func.grad(loss))(V[None])[0], gradient, rtol=1e-8, atol=1e-10)


def test_scipys_code_takes_tensors_where_no_transform_runs():
    x = func.tensor(V, requires_grad=True)
    np.sum(scipy.signal.welch(x, nperseg=8)[1]).backward()
    np.testing.assert_allclose(x.grad, func.grad(lambda x: np.sum(scipy.signal.welch(x, nperseg=8)[1]))(V))
    with pytest.raises(ValueError, match="N must be positive"):
        scipy.signal.hilbert(x, N=0)
    assert type(np).__name__ == "module"


PEAKS = np.array([0.0, 1.0, 0.0, 2.0, 0.5, 1.5, 0.0])


@pytest.mark.parametrize("mode", [func.grad, func.jit, lambda f: lambda x: func.vmap(f)(x[None])])
@pytest.mark.parametrize(
    ("name", "args"), [("find_peaks", ()), ("peak_prominences", ([1, 3],)), ("peak_widths", ([1, 3],))]
)
def test_places_of_peaks_are_refused_by_name(mode, name, args):
    error, words = func.errors.NotDifferentiableError, "stop_gradient"
    if mode is func.jit:
        error, words = func.errors.StagingError, "outside of compiled code"
    with pytest.raises(error, match=rf"scipy\.signal\.{name}(.|\n)*{words}"):
        mode(lambda x: getattr(scipy.signal, name)(x, *args)[0][0] * x[0])(PEAKS)


def test_values_at_peaks_differentiate():
    def heights(x):
        peaks, _ = scipy.signal.find_peaks(func.stop_gradient(x), height=1.2)
        return np.sum(x[peaks] ** 2)

    np.testing.assert_array_equal(func.grad(heights)(PEAKS), [0, 0, 0, 4, 0, 3, 0])
