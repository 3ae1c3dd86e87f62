"""SciPy's special functions, differentiable to any order in both modes, under the names of scipy.special.

Values are SciPy's to the bit. float32 arguments give float32 results, and complex arguments are allowed where the
function is holomorphic. An undefined derivative, such as that of a Bessel function by its order, raises when it is
needed.
"""

# fmt: off
from func.special.bessel import (
    airy, hankel1, hankel1e, hankel2, hankel2e, i0, i0e, i1, i1e, iv, ive, j0, j1, jn, jv, jve, k0, k0e, k1, k1e, kn,
    kv, kve, modstruve, spherical_in, spherical_jn, spherical_kn, spherical_yn, struve, y0, y1, yn, yv, yve,
)
from func.special.error_functions import (
    dawsn, erf, erfc, erfcinv, erfcx, erfi, erfinv, fresnel, log_ndtr, ndtr, ndtri, ndtri_exp, owens_t, wofz,
)
from func.special.gammas import (
    bernoulli, beta, betaln, binom, comb, digamma, factorial, gamma, gammaln, gammasgn, loggamma, multigammaln, perm,
    poch, polygamma, psi, rgamma, zeta, zetac,
)
from func.special.incomplete import (
    bdtr, bdtrc, betainc, betaincc, betainccinv, betaincinv, chdtr, chdtrc, fdtr, fdtrc, gammainc, gammaincc,
    gammainccinv, gammaincinv, gdtr, gdtrc, pdtr, pdtrc, stdtr,
)
from func.special.integrals import (
    agm, cbrt, cosdg, cosm1, cotdg, ellipe, ellipeinc, ellipk, ellipkinc, ellipkm1, exp1, exp2, exp10, expi, expm1,
    expn, hyp0f1, hyp1f1, hyp2f1, hyperu, lambertw, log1p, shichi, sici, sinc, sindg, spence, sph_harm_y, tandg,
    wrightomega,
)
from func.special.logistic import (
    boxcox, boxcox1p, entr, expit, exprel, huber, inv_boxcox, inv_boxcox1p, kl_div, log_expit, logit, powm1,
    pseudo_huber, rel_entr, xlog1py, xlogy,
)
from func.special.protocol import register_primitives as _register_primitives
from func.special.sums import log_softmax, logsumexp, softmax, softplus

__all__ = [
    "agm", "airy", "bdtr", "bdtrc", "bernoulli", "beta", "betainc", "betaincc", "betainccinv", "betaincinv", "betaln",
    "binom", "boxcox", "boxcox1p", "cbrt", "chdtr", "chdtrc", "comb", "cosdg", "cosm1", "cotdg", "dawsn", "digamma",
    "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi",
    "erfinv", "exp1", "exp2", "exp10", "expi", "expit", "expm1", "expn", "exprel", "factorial", "fdtr", "fdtrc",
    "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc",
    "hankel1", "hankel1e", "hankel2", "hankel2e", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1",
    "i1e", "inv_boxcox", "inv_boxcox1p", "iv", "ive", "j0", "j1", "jn", "jv", "jve", "k0", "k0e", "k1", "k1e", "kl_div",
    "kn", "kv", "kve", "lambertw", "log1p", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp",
    "modstruve", "multigammaln", "ndtr", "ndtri", "ndtri_exp", "owens_t", "pdtr", "pdtrc", "perm", "poch", "polygamma",
    "powm1", "pseudo_huber", "psi", "rel_entr", "rgamma", "shichi", "sici", "sinc", "sindg", "softmax", "softplus",
    "spence", "sph_harm_y", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "struve", "tandg",
    "wofz", "wrightomega", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "yve", "zeta", "zetac",
]
# fmt: on

_register_primitives()
