"""scipy.special's ufuncs on traced arrays: which row or function of func.special stands for which of them."""

from __future__ import annotations

from typing import Any

import scipy.special

from func.interpreters.primitives.special import bessel as special_bessel
from func.interpreters.primitives.special import error_functions, gamma, incomplete
from func.interpreters.primitives.special import integrals as special_other
from func.interpreters.primitives.special import logistic as special_entropy
from func.numpy.protocol import DIRECT, UFUNCS
from func.special import bessel, errors, gammas, integrals, logistic

# fmt: off
_ROWS: dict[Any, list[str]] = {
    gamma: [
        "gamma", "gammaln", "loggamma", "gammasgn", "rgamma", "digamma", "poch", "beta", "betaln", "binom", "zetac",
    ],
    incomplete: [
        "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "betainc", "betaincc", "betaincinv", "betainccinv",
        "stdtr", "chdtr", "chdtrc", "gdtr", "gdtrc", "fdtr", "fdtrc", "bdtr", "bdtrc", "pdtr", "pdtrc",
    ],
    error_functions: [
        "erf", "erfc", "erfcx", "erfi", "erfinv", "erfcinv", "dawsn", "wofz", "ndtr", "log_ndtr", "ndtri", "ndtri_exp",
        "owens_t",
    ],
    special_bessel: [
        "j0", "j1", "jv", "jve", "y0", "y1", "yn", "yv", "yve", "hankel1", "hankel1e", "hankel2", "hankel2e", "i0",
        "i0e", "i1", "i1e", "iv", "ive", "k0", "k0e", "k1", "k1e", "kn", "kv", "kve", "struve", "modstruve",
    ],
    special_entropy: [
        "expit", "logit", "log_expit", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "huber", "pseudo_huber",
        "boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p", "powm1",
    ],
    special_other: [
        "cbrt", "exp2", "exp10", "expm1", "log1p", "cosm1", "sindg", "cosdg", "tandg", "cotdg", "exp1", "expi", "expn",
        "spence", "wrightomega", "ellipkinc", "ellipeinc", "agm", "hyp0f1", "hyp1f1", "hyperu",
    ],
}
"""Ufuncs that are exactly one row."""
_FUNCTIONS: dict[Any, list[str]] = {
    bessel: ["airy"],
    errors: ["fresnel"],
    gammas: ["psi"],
    integrals: ["sici", "shichi", "ellipk", "ellipkm1", "ellipe", "hyp2f1"],
    logistic: ["exprel"],
}
"""Ufuncs that are a row with a parameter or of several outputs."""
_PRIVATE: dict[str, Any] = {
    "_zeta": gammas.zeta,
    "_riemann_zeta": gammas.zeta,
    "_lambertw": integrals.lambertw,
    "_spherical_jn": bessel.spherical_jn,
    "_spherical_yn": bessel.spherical_yn,
    "_spherical_in": bessel.spherical_in,
    "_spherical_kn": bessel.spherical_kn,
}
"""Ufuncs behind SciPy's Python functions, so that those work on traced arrays where this SciPy has such a ufunc."""
# fmt: on

for _module, _names in _ROWS.items():
    for _name in _names:
        _row, _ufunc = getattr(_module, _name), getattr(scipy.special, _name)
        DIRECT[_ufunc] = _row
        _row.numpy = _ufunc  # plain arrays skip the lookup, and partials compile to expressions of ufuncs
for _module, _names in _FUNCTIONS.items():
    for _name in _names:
        UFUNCS[getattr(scipy.special, _name)] = getattr(_module, _name)
for _name, _function in _PRIVATE.items():
    _ufunc = getattr(scipy.special._ufuncs, _name, None)
    if _ufunc is not None:
        UFUNCS[_ufunc] = _function
