"""Fourier transforms of one axis; NumPy's write into an array, CuPy's do not."""

from __future__ import annotations

from func.interpreters.compile.lowering.code import Code, Site, lowering
from func.interpreters.compile.lowering.literals import literal


def _transform(site: Site, name: str, length: int | None) -> Code:
    call = f"np.fft.{name}({{0}}, {length}, {site.params['axis']}, {literal(site.params['norm'])}"
    return Code(f"{call})") if site.device else Code(f"{call}, {{out}})", out=True, plain=f"{call})")


@lowering("fft")
def _fft(site: Site) -> Code:
    return _transform(site, "ifft" if site.params["inverse"] else "fft", None)


@lowering("rfft")
def _rfft(site: Site) -> Code:
    return _transform(site, "rfft", None)


@lowering("irfft")
def _irfft(site: Site) -> Code:
    return _transform(site, "irfft", site.params["length"])
