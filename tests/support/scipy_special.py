"""Rows of scipy.special: its functions of one argument, and of several in the first that is smooth."""

from __future__ import annotations

import numpy as np
import scipy.special

from tests.support.scipy_rows import Row, main
from tests.support.special_arguments import ARGUMENTS, WITHOUT_DERIVATIVE

X = np.array([0.4, 0.7])


def _row(name, arguments, place, **options):
    x = np.array([arguments[place], 0.97 * arguments[place]])
    return Row(lambda m, x: getattr(m, name)(*arguments[:place], x, *arguments[place + 1 :]), x, **options)


_ARGUMENT = (
    "bei beip ber berp cbrt cosdg cosm1 cotdg dawsn digamma ellipe ellipk ellipkm1 entr erf erfc erfcinv erfcx erfi "
    "erfinv exp1 exp10 exp2 expi expit expm1 exprel fresnel gamma gammaln i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log1p "
    "log_expit log_ndtr log_softmax loggamma logit logsumexp ndtr ndtri ndtri_exp psi rgamma shichi sici sinc sindg "
    "softmax softplus spence tandg wofz wrightomega y0 y1 airy lambertw"
)
_FIRST = (
    "agm beta betaln boxcox boxcox1p huber inv_boxcox inv_boxcox1p kl_div owens_t poch powm1 pseudo_huber rel_entr "
    "xlog1py xlogy gammainc gammaincc gammaincinv gammainccinv chdtr chdtrc"
)
_LAST = (
    "ellipeinc ellipkinc expn hankel1 hankel1e hankel2 hankel2e hyp0f1 iv ive jn jv jve kn kv kve modstruve "
    "polygamma spherical_in spherical_jn spherical_kn spherical_yn struve yn yv yve jvp yvp ivp kvp h1vp h2vp "
    "pdtr pdtrc"
)
_OF_FEW_DIGITS = {"ncfdtrinc"}
"""Differences of SciPy's values have few digits."""
_IN_FIRST = {"ellipeinc", "ellipkinc"}

ROWS: dict[str, Row] = {
    **{
        name: _row(name, arguments, places[0], rtol=1e-4 if name in _OF_FEW_DIGITS else 1e-6)
        for name, (arguments, places) in ARGUMENTS.items()
    },
    **{
        name: Row(lambda m, x, name=name: getattr(m, name)(x), X)
        for name in _ARGUMENT.split()
        if hasattr(scipy.special, name)
    },
    **{name: Row(lambda m, x, name=name: getattr(m, name)(x, 1.3), X) for name in _FIRST.split()},
    **{
        name: Row(
            lambda m, x, name=name: getattr(m, name)(x, 0.3) if name in _IN_FIRST else getattr(m, name)(2, x), X
        )
        for name in _LAST.split()
    },
    "legendre_p": Row(lambda m, x: m.legendre_p(3, x, diff_n=1), X),
    "legendre_p_all": Row(lambda m, x: m.legendre_p_all(3, x), X),
    "assoc_legendre_p": Row(lambda m, x: m.assoc_legendre_p(3, 1, x, norm=True), X),
    "assoc_legendre_p_all": Row(lambda m, x: m.assoc_legendre_p_all(3, 2, x, diff_n=1), X),
    "sph_legendre_p": Row(lambda m, x: m.sph_legendre_p(3, -2, x), X),
    "sph_legendre_p_all": Row(lambda m, x: m.sph_legendre_p_all(3, 2, x, diff_n=1), X),
    "sph_harm_y": Row(lambda m, x: m.sph_harm_y(3, 1, x, 2 * x, diff_n=1)[1], X),
    "sph_harm_y_all": Row(lambda m, x: m.sph_harm_y_all(3, 2, x, 0.4), X),
    "ndtri_exp": Row(lambda m, x: m.ndtri_exp(-x), X),
    "assoc_laguerre": Row(lambda m, x: m.assoc_laguerre(x, 3, 1.2), X),
    "diric": Row(lambda m, x: m.diric(x, 5), np.array([0.4, 2 * np.pi, 1.3]), rtol=1e-5),
    "bdtr": Row(lambda m, x: m.bdtr(2, 5, x), X),
    "bdtrc": Row(lambda m, x: m.bdtrc(2, 5, x), X),
    "betainc": Row(lambda m, x: m.betainc(1.3, 2.1, x), X),
    "betaincc": Row(lambda m, x: m.betaincc(1.3, 2.1, x), X),
    "betaincinv": Row(lambda m, x: m.betaincinv(1.3, 2.1, x), X),
    "betainccinv": Row(lambda m, x: m.betainccinv(1.3, 2.1, x), X),
    "gdtr": Row(lambda m, x: m.gdtr(1.3, 2.1, x), X),
    "gdtrc": Row(lambda m, x: m.gdtrc(1.3, 2.1, x), X),
    "hyp1f1": Row(lambda m, x: m.hyp1f1(1.3, 2.1, x), X),
    "hyp2f1": Row(lambda m, x: m.hyp2f1(1.3, 2.1, 0.8, x), X),
    "hyperu": Row(lambda m, x: m.hyperu(1.3, 2.1, x), X),
    "binom": Row(lambda m, x: m.binom(3.5, x), X),
    "comb": Row(lambda m, x: m.comb(3.5, x), X),
    "perm": Row(lambda m, x: m.perm(3.5, x), X),
    "factorial": Row(lambda m, x: m.factorial(x), X),
    "multigammaln": Row(lambda m, x: m.multigammaln(x + 2.0, 2), X),
    "lmbda": Row(lambda m, x: np.concatenate(m.lmbda(2.3, x[0])), X),
    "obl_cv_seq": Row(lambda m, x: m.obl_cv_seq(1, 4, x[0]), X, exact=1e-9),
    "pbdv_seq": Row(lambda m, x: np.concatenate(m.pbdv_seq(2.3, x[0])), X),
    "pbvv_seq": Row(lambda m, x: np.concatenate(m.pbvv_seq(2.3, x[0])), X),
    "pro_cv_seq": Row(lambda m, x: m.pro_cv_seq(1, 4, x[0]), X, exact=1e-9),
    "riccati_jn": Row(lambda m, x: np.concatenate(m.riccati_jn(3, x[0])), X),
    "riccati_yn": Row(lambda m, x: np.concatenate(m.riccati_yn(3, x[0])), X),
    "zeta": Row(lambda m, x: m.zeta(3.0, x), X),
    **{
        name: Row(lambda m, x, name=name, rest=rest: getattr(m, name)(3, *rest)(x), X)
        for name, rest in {
            "legendre": (), "chebyt": (), "chebyu": (), "chebyc": (), "chebys": (), "jacobi": (0.5, 0.4),
            "laguerre": (), "genlaguerre": (0.4,), "hermite": (), "hermitenorm": (), "gegenbauer": (0.4,),
            "sh_legendre": (), "sh_chebyt": (), "sh_chebyu": (), "sh_jacobi": (1.5, 0.8),
        }.items()
    },
}  # fmt: skip

_COMPILED = "a compiled recurrence of one number; compute with the functions of single orders"
_INTEGERS = "of integers"
_NODES = "nodes of integers; parameters have no derivative"
WITHOUT = {
    **dict.fromkeys(WITHOUT_DERIVATIVE, "no derivative with respect to any argument is known here; it raises"),
    **{name: "nodes or zeros of integers" for name in scipy.special.__all__ if name.endswith("_zeros")},
    **{name: _NODES for name in scipy.special.__all__ if name.startswith("roots_") or name.endswith("_roots")},
    **dict.fromkeys(
        [
            "lqmn",
            "lqn",
            "pbdn_seq",
            "mathieu_even_coef",
            "mathieu_odd_coef",
            "ellip_harm",
            "ellip_harm_2",
            "ellip_normal",
        ],
        _COMPILED,
    ),
    **dict.fromkeys(["bernoulli", "euler", "factorial2", "factorialk", "stirling2"], _INTEGERS),
    **dict.fromkeys(["errstate", "geterr", "seterr", "SpecialFunctionError", "SpecialFunctionWarning"], "no function"),
    "gammasgn": "piecewise constant",
    "itstruve0": "the example of CONTRIBUTING.md, which adds it",
    "round": "piecewise constant",
    "zetac": "no derivative of the zeta function of one argument is defined",
}
"""Public names that have no row, with the reason."""

if __name__ == "__main__":
    main("special", ROWS)
