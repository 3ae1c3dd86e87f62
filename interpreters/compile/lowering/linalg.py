"""Rows that are one function of numpy.linalg; the others call support functions."""

from __future__ import annotations

from func.backends.support.inverses import cholesky_factor, lapack_letter
from func.backends.support.linalg import cholesky, inv
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering, support_code
from func.interpreters.compile.lowering.literals import literal

_LARGE = 32
"""Rows from which on LAPACK's own routine, called without copies, is faster than NumPy's."""


@lowering("cholesky")
def _cholesky(context: LoweringContext) -> Code:
    if context.params.get("upper"):
        return support_code(cholesky, context) if context.device else Code("np.linalg.cholesky({0}, upper=True)")
    single = len(context.out.shape) == 2 and context.avals[0].dtype == context.out.dtype
    if single and not context.device and context.out.shape[0] >= _LARGE:
        return Code("cholesky_factor(np, {0})", support=(cholesky_factor, lapack_letter))
    return Code("np.linalg.cholesky({0})")


@lowering("inv")
def _inv(context: LoweringContext) -> Code:
    return Code("np.linalg.inv({0})") if context.params.get("strict", True) else support_code(inv, context)


@lowering("solve")
def _solve(context: LoweringContext) -> Code:
    return Code("np.linalg.solve({0}, {1})")


@lowering("det")
def _det(context: LoweringContext) -> Code:
    return Code("np.linalg.det({0})")


@lowering("slogdet")
def _slogdet(context: LoweringContext) -> Code:
    return Code("np.linalg.slogdet({0})")


@lowering("eigh", "eigvalsh")
def _eigh(context: LoweringContext) -> Code:
    function = "eigh" if len(context.outs) == 2 else "eigvalsh"
    return Code(f'np.linalg.{function}({{0}}, "{"L" if context.params["lower"] else "U"}")')


@lowering("svd")
def _svd(context: LoweringContext) -> Code:
    return Code(f"np.linalg.svd({{0}}, {literal(context.params['full_matrices'])})")


@lowering("svdvals")
def _svdvals(context: LoweringContext) -> Code:
    return Code("np.linalg.svd({0}, compute_uv=False)")


@lowering("pinv")
def _pinv(context: LoweringContext) -> Code:
    return Code(f"np.linalg.pinv({{0}}, {{1}}, {literal(context.params['hermitian'])})")


@lowering("qr")
def _qr(context: LoweringContext) -> Code:
    return Code(f"np.linalg.qr({{0}}, {literal(context.params['mode'])})")


@lowering("qr_raw")
def _qr_raw(context: LoweringContext) -> Code:
    return Code('np.linalg.qr({0}, "raw")')
