"""Fourier transforms of one axis; NumPy's write into an array, CuPy's do not."""

from __future__ import annotations

from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import literal


def _transform(context: LoweringContext, name: str, length: int | None) -> Code:
    call = f"np.fft.{name}({{0}}, {length}, {context.params['axis']}, {literal(context.params['norm'])}"
    return Code(f"{call})") if context.device else Code(f"{call}, {{out}})", out=True, plain=f"{call})")


@lowering("fft")
def _fft(context: LoweringContext) -> Code:
    return _transform(context, "ifft" if context.params["inverse"] else "fft", None)


@lowering("rfft")
def _rfft(context: LoweringContext) -> Code:
    return _transform(context, "rfft", None)


@lowering("irfft")
def _irfft(context: LoweringContext) -> Code:
    return _transform(context, "irfft", context.params["length"])
