"""Rows that are one function of numpy.linalg; the others call support functions."""

from __future__ import annotations

from func.backends.support.inverses import cholesky_factor, lapack_letter
from func.backends.support.linalg import cholesky, inv
from func.interpreters.compile.lowering.code import Code, Site, lowering, support_code
from func.interpreters.compile.lowering.literals import literal

_LARGE = 32
"""Rows from which on LAPACK's own routine, called without copies, is faster than NumPy's."""


@lowering("cholesky")
def _cholesky(site: Site) -> Code:
    if site.params.get("upper"):
        return support_code(cholesky, site) if site.device else Code("np.linalg.cholesky({0}, upper=True)")
    single = len(site.out.shape) == 2 and site.avals[0].dtype == site.out.dtype
    if single and not site.device and site.out.shape[0] >= _LARGE:
        return Code("cholesky_factor(np, {0})", support=(cholesky_factor, lapack_letter))
    return Code("np.linalg.cholesky({0})")


@lowering("inv")
def _inv(site: Site) -> Code:
    return Code("np.linalg.inv({0})") if site.params.get("strict", True) else support_code(inv, site)


@lowering("solve")
def _solve(site: Site) -> Code:
    return Code("np.linalg.solve({0}, {1})")


@lowering("det")
def _det(site: Site) -> Code:
    return Code("np.linalg.det({0})")


@lowering("slogdet")
def _slogdet(site: Site) -> Code:
    return Code("np.linalg.slogdet({0})")


@lowering("eigh", "eigvalsh")
def _eigh(site: Site) -> Code:
    function = "eigh" if len(site.outs) == 2 else "eigvalsh"
    return Code(f'np.linalg.{function}({{0}}, "{"L" if site.params["lower"] else "U"}")')


@lowering("svd")
def _svd(site: Site) -> Code:
    return Code(f"np.linalg.svd({{0}}, {literal(site.params['full_matrices'])})")


@lowering("svdvals")
def _svdvals(site: Site) -> Code:
    return Code("np.linalg.svd({0}, compute_uv=False)")


@lowering("pinv")
def _pinv(site: Site) -> Code:
    return Code(f"np.linalg.pinv({{0}}, {{1}}, {literal(site.params['hermitian'])})")


@lowering("qr")
def _qr(site: Site) -> Code:
    return Code(f"np.linalg.qr({{0}}, {literal(site.params['mode'])})")


@lowering("qr_raw")
def _qr_raw(site: Site) -> Code:
    return Code('np.linalg.qr({0}, "raw")')
