"""Filters of a fixed order from traced frequencies in compiled code, where SciPy's checks see no values.

With known numbers SciPy's own code runs. Under `jit` poles, zeros and gain are the same functions of the frequencies.
Polynomials are real there because poles and zeros come in pairs, and no leading coefficient counts as zero. SciPy pairs
poles and zeros into second-order sections by the numbers, each time that the compiled code runs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.signal as _scipy

from func import numpy as fnp
from func.host import scipy_hooks
from func.host.private_names import private_module
from func.host.scipy_hooks import holds_traced
from func.interpreters.core import Array, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.scipy.kinds.traces import in_original, is_known
from func.scipy.kinds.versions import version_of
from func.scipy.signal import adapted
from func.scipy.signal.adapted import bilinear_zpk, lp2bp_zpk, lp2bs_zpk, lp2hp_zpk, lp2lp_zpk
from func.scipy.signal.transfer_functions import normalize
from func.transforms.custom import stop_gradient
from func.transforms.outside import pure_callback

_filter_design = private_module("scipy.signal._filter_design")


@version_of(_scipy.iirfilter)
def iirfilter(
    N: int, Wn: Any, rp: Any = None, rs: Any = None, btype: str = "band", analog: bool = False, ftype: str = "butter",
    output: str = "ba", fs: Any = None,
) -> Any:  # fmt: skip
    """A recursive filter of a given order, as scipy.signal.iirfilter; differentiable in frequencies and ripples."""
    options = {"btype": btype, "analog": analog, "ftype": ftype, "output": output}
    if is_known(Wn, *[x for x in (rp, rs, fs) if x is not None]):
        if output == "sos" and not analog:
            return sections(*in_original(_scipy.iirfilter, N, Wn, rp, rs, fs=fs, **{**options, "output": "zpk"}))
        return in_original(_scipy.iirfilter, N, Wn, rp, rs, fs=fs, **options)
    Wn = fnp.multiply(fnp.asarray(Wn), 1.0)
    typical = {"rp": None if rp is None else 1.0, "rs": None if rs is None else 40.0}
    typical |= {} if fs is None else {"fs": 1.0 if holds_traced(fs) else fs}
    places = np.linspace(0.1, 0.2, max(Wn.size, 1)) * (typical.get("fs") or 1.0)
    scipy_hooks.original(_scipy.iirfilter)(N, places.reshape(shape_of(Wn)), **typical, **options)  # SciPy's checks
    band = _filter_design.band_dict[btype.lower()]
    prototype, *_ = _filter_design.filter_dict[ftype.lower()]
    ripples = {"cheb1ap": (rp,), "cheb2ap": (rs,), "ellipap": (rp, rs)}.get(prototype.__name__, ())
    norm = {"norm": _filter_design.bessel_norms[ftype.lower()]} if prototype.__name__ == "besselap" else {}
    z, p, k = prototype(N, *ripples, **norm)
    Wn = Wn if fs is None else Wn / (fs / 2)
    warped = Wn if analog else 4.0 * fnp.tan(np.pi * Wn / 2.0)
    if band in ("lowpass", "highpass"):
        z, p, k = (lp2lp_zpk if band == "lowpass" else lp2hp_zpk)(z, p, k, wo=fnp.reshape(warped, ()))
    else:
        width, centre = warped[1] - warped[0], fnp.sqrt(warped[0] * warped[1])
        z, p, k = (lp2bp_zpk if band == "bandpass" else lp2bs_zpk)(z, p, k, wo=centre, bw=width)
    if not analog:
        z, p, k = bilinear_zpk(z, p, k, fs=2.0)
    if output.lower() == "zpk":
        return z, p, k
    if output.lower() == "ba":
        return k * fnp.real(monic(z)), fnp.real(monic(p))
    if analog:
        raise UnsupportedFunctionError(
            f"second-order sections of an analog filter have no version for compiled code{at_line()}\n"
            "Use output='zpk' or 'ba', or design the filter outside func.jit."
        )
    return sections(z, p, k)


def monic(roots: Array) -> Array:
    """The coefficients of a polynomial, the highest power first."""
    out: Array = np.ones(1, complex)
    for i in range(shape_of(roots)[0]):
        nothing = np.zeros(1, complex)
        out = fnp.concatenate([out, nothing]) - roots[i] * fnp.concatenate([nothing, out])
    return out


@version_of(_scipy.zpk2sos)
def zpk2sos(z: Any, p: Any, k: Any, pairing: Any = None, *, analog: bool = False) -> Array:
    """Second-order sections (n, 6), as scipy.signal.zpk2sos; the pairing of poles and zeros has no derivative."""
    z, p, k = [fnp.asarray(x) for x in (z, p, k)]
    if analog or pairing not in (None, "nearest", "keep_odd") or z.size + p.size == 0:
        return in_original(_scipy.zpk2sos, z, p, k, pairing, analog=analog)
    if is_known(k) and not bool(fnp.all(fnp.isreal(k))):
        raise ValueError("k must be real")
    return sections(z, p, fnp.real(k), pairing)


def sections(z: Array, p: Array, k: Array, pairing: str | None = None) -> Array:
    """Second-order sections (n, 6) of a digital filter, in the pairs and the order of scipy.signal.zpk2sos."""
    count = max(shape_of(z)[0], shape_of(p)[0])
    size = count + count % 2
    like = np.zeros((2, size // 2, 2), np.int64)
    pairs = functools.partial(_pairs, pairing, size)
    places = pure_callback(pairs, like, stop_gradient(z), stop_gradient(p), vmap_method="sequential")
    z, p = [fnp.concatenate([x + 0j, np.zeros(size - shape_of(x)[0])]) for x in (z, p)]
    rows = []
    for roots, place in ((z, places[0]), (p, places[1])):
        pair = fnp.take(roots, place)
        ones = np.ones(size // 2)
        rows += [ones, -fnp.real(pair[:, 0] + pair[:, 1]), fnp.real(pair[:, 0] * pair[:, 1])]
    sos = fnp.stack(rows, axis=1)
    first = (np.arange(size // 2) == 0)[:, None] & (np.arange(6) < 3)
    return fnp.where(first, k * sos, sos)


def _pairs(pairing: str | None, size: int, z: Any, p: Any) -> Any:
    """The zeros and poles of each section, by SciPy's function for the plain numbers."""
    sos = scipy_hooks.original(_scipy.zpk2sos)(z, p, 1.0, pairing)
    out = np.zeros((2, len(sos), 2), np.int64)
    for part, roots in enumerate((z, p)):
        free = list(range(size))
        roots = np.concatenate([roots, np.zeros(size - len(roots))])
        for i, row in enumerate(sos[:, 3 * part : 3 * part + 3]):
            one = np.roots(row / row[0])
            for j, root in enumerate([*one, *[0.0] * (2 - len(one))]):
                nearest = min(free, key=lambda n: abs(roots[n] - root))
                free.remove(nearest)
                out[part, i, j] = nearest
    return out


@version_of(_scipy.tf2zpk)
def tf2zpk(b: Any, a: Any) -> tuple[Array, Array, Array]:
    """Zeros, poles and gain of a transfer function, as scipy.signal.tf2zpk."""
    if is_known(b, a):
        return in_original(_scipy.tf2zpk, b, a)  # type: ignore[no-any-return]
    b, a = normalize(b, a)
    b, a = [fnp.atleast_1d(x) for x in (b, a)]
    return roots_of(b / b[0]), roots_of(a), b[0]


def roots_of(monic_polynomial: Array) -> Array:
    """The eigenvalues of the companion matrix."""
    n = shape_of(monic_polynomial)[0] - 1
    if n == 0:
        return np.zeros(0, complex)
    rest = np.eye(n, k=-1)[1:]
    return fnp.linalg.eigvals(fnp.concatenate([-monic_polynomial[None, 1:], rest]))


def _resonator(name: str, by_value: Any) -> Any:
    """iirnotch or iirpeak, whose check of the frequency needs its value."""

    def design(w0: Any, Q: Any, fs: Any = 2.0, **options: Any) -> tuple[Array, Array]:
        if is_known(w0, Q, fs):
            return by_value(w0, Q, fs, **options)  # type: ignore[no-any-return]
        w0 = 2 * np.pi * w0 / fs
        gain = 1.0 / (1.0 + fnp.tan(w0 / Q / 2.0))
        one, cosine = 0.0 * gain + 1.0, gain * fnp.cos(w0)
        b = [gain, -2.0 * cosine, gain] if name == "iirnotch" else [1.0 - gain, 0.0 * gain, gain - 1.0]
        return fnp.stack(b), fnp.stack([one, -2.0 * cosine, 2.0 * gain - 1.0])

    design.__name__ = design.__qualname__ = name
    design.__doc__ = f"scipy.signal.{name} on traced and plain arrays; differentiable in frequency and quality."
    return version_of(getattr(_scipy, name))(design)


iirnotch, iirpeak = _resonator("iirnotch", adapted.iirnotch), _resonator("iirpeak", adapted.iirpeak)


@version_of(_scipy.firwin)
def firwin(
    numtaps: int, cutoff: Any, *, width: Any = None, window: Any = "hamming", pass_zero: Any = True, scale: Any = True,
    fs: Any = None,
) -> Array:  # fmt: skip
    """A filter by windows of the ideal one, as scipy.signal.firwin; differentiable in the cutoff frequencies."""
    options = {"window": window, "pass_zero": pass_zero, "scale": scale}
    if is_known(cutoff) or holds_traced((width, window, fs)):
        return in_original(_scipy.firwin, numtaps, cutoff, width=width, fs=fs, **options)
    edges = fnp.multiply(fnp.atleast_1d(fnp.asarray(cutoff)), 2.0 / (fs or 2.0))
    count = edges.size
    typical = np.linspace(0.1, 0.9, count + 2)[1:-1].reshape(shape_of(edges))
    scipy_hooks.original(_scipy.firwin)(numtaps, typical, width=width, **options)  # SciPy's checks
    if width is not None:
        window = ("kaiser", _scipy.kaiser_beta(_scipy.kaiser_atten(numtaps, 2.0 * width / (fs or 2.0))))
    passes_zero = pass_zero in (True, "bandstop", "lowpass")
    passes_end = (count % 2 == 0) == passes_zero
    ends = [np.zeros(int(passes_zero)), edges, np.ones(int(passes_end))]
    bands = fnp.reshape(fnp.concatenate(ends), (-1, 2))
    m = np.arange(numtaps) - 0.5 * (numtaps - 1)
    h = fnp.sum(bands[:, 1:] * fnp.sinc(bands[:, 1:] * m) - bands[:, :1] * fnp.sinc(bands[:, :1] * m), axis=0)
    h = h * _scipy.get_window(window, numtaps, fftbins=False)
    if not scale:
        return h
    first_ends_at_one = passes_end and len(bands) == 1
    place = 0.0 if passes_zero else 1.0 if first_ends_at_one else 0.5 * (bands[0, 0] + bands[0, 1])
    return h / fnp.sum(h * fnp.cos(np.pi * m * place))
