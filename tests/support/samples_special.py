"""Samples of the primitives behind func.special."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import func.special  # noqa: F401  (its import registers its primitives)
from tests.support.sampling import Sample, complex_, integers, real, restart
from tests.support.special_arguments import ARGUMENTS, WITHOUT_DERIVATIVE

restart(3)

# fmt: off
UNARY = [
    "gamma", "gammaln", "loggamma", "rgamma", "digamma", "erf", "erfc", "erfcx", "erfi", "erfinv", "erfcinv", "dawsn",
    "wofz", "ndtr", "log_ndtr", "ndtri", "j0", "j1", "y0", "y1", "bessel_i0", "i0e", "i1", "i1e", "k0", "k0e", "k1",
    "k1e", "entr", "expit", "logit", "log_expit", "special_cbrt", "special_exp2", "exp10", "special_expm1",
    "special_log1p", "cosm1", "sindg", "cosdg", "tandg", "cotdg", "exp1", "expi", "spence", "wrightomega", "fresnel",
    "airy", "sici", "shichi", "exp_rest", "log_cosh",
]
HOLOMORPHIC = [
    "gamma", "loggamma", "rgamma", "digamma", "erf", "erfc", "erfcx", "erfi", "dawsn", "wofz", "ndtr", "log_ndtr",
    "special_expm1", "special_log1p", "exp1", "expi", "spence", "wrightomega", "fresnel", "airy", "sici", "shichi",
]
ORDERED = ["exprel", "log1prel", "ellipk", "ellipkm1", "ellipe", "stirling"]
BINARY = [
    "beta", "betaln", "poch", "binom", "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "chdtr", "chdtrc",
    "xlogy", "xlog1py", "rel_entr", "kl_div", "pseudo_huber", "boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p",
    "powm1", "owens_t", "agm", "gammaln_gap", "log_gammainc", "log_gammaincc", "pseudo_huber_ddelta",
    "pseudo_huber_dr",
]
HOLOMORPHIC_PAIRS = ["xlogy", "xlog1py"]
BY_ARGUMENT = [
    "jv", "jve", "yv", "yve", "hankel1", "hankel1e", "hankel2", "hankel2e", "iv", "ive", "kv", "kve", "struve",
    "modstruve", "hyp0f1", "hurwitz_zeta",
]
COMPLEX_ARGUMENT = ["jv", "yv", "hankel1", "hankel1e", "hankel2", "hankel2e", "iv", "kv", "kve", "hyp0f1"]
OF_INTEGERS = [
    "yn", "kn", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn", "polygamma", "expn", "pdtr", "pdtrc",
]
TRIPLES = {
    "gdtr": (0, 1, 2), "gdtrc": (0, 1, 2), "hyp1f1": (2,), "hyperu": (2,),
}
# fmt: on
BETA_PARTIALS = ("betainc", "betaincc", "betaincinv", "betainccinv")

SAMPLES: dict[str, list[Sample]] = {}

for name in UNARY:
    SAMPLES[name] = [Sample((real(3, 2),)), Sample((real(),))]
    if name in HOLOMORPHIC:
        SAMPLES[name].append(Sample((complex_(3),)))
for name in ORDERED:
    SAMPLES[name] = [Sample((real(3, 2),), {"order": order}) for order in (0, 1, 2)]
for name in BINARY:
    SAMPLES[name] = [
        Sample((real(3, 2), real(3, 2)), differentiable=(0, 1)),
        Sample((real(3, 1), real(2)), differentiable=(0, 1)),
    ]
    if name in HOLOMORPHIC_PAIRS:
        SAMPLES[name].append(Sample((complex_(3), complex_(3)), differentiable=(0, 1)))
for name in BY_ARGUMENT:
    SAMPLES[name] = [Sample((real(3, 1) + 1.5, real(2)), differentiable=(1,))]
    if name in COMPLEX_ARGUMENT:
        SAMPLES[name].append(Sample((real(3) + 1.5, complex_(3)), differentiable=(1,)))
for name in OF_INTEGERS:
    SAMPLES[name] = [Sample((integers(3, 1), real(2)), differentiable=(1,))]
    if name.startswith("spherical") or name == "polygamma":
        SAMPLES[name].append(Sample((integers(3), complex_(3)), differentiable=(1,)))
for name, places in TRIPLES.items():
    SAMPLES[name] = [Sample((real(3, 1) + 1, real(2) + 1, real(3, 2)), differentiable=places)]
for name in BETA_PARTIALS:
    SAMPLES[name] = [Sample((real(3, 1) + 1, real(2) + 1, real(3, 2)), differentiable=(0, 1, 2))]


def _weighted(x: Any, b: Any, axes: tuple[int, ...], signed: bool) -> Sample:
    return Sample((x, b), {"axes": axes, "signed": signed}, (0, 1))


SAMPLES |= {
    "gammasgn": [Sample((real(3) - 0.5,), differentiable=())],
    "riemann_zeta": [Sample((real(3) + 1.5,), differentiable=())],
    "zetac": [Sample((real(3) + 1.5,), differentiable=())],
    "ndtri_exp": [Sample((-real(3, 2),))],
    "polygamma_gap": [
        Sample((0, real(3, 2), real(3, 2)), differentiable=(1, 2)),
        Sample((integers(3, 1), 20 + real(2), 1e-3 * real(3, 2)), differentiable=(1, 2)),
    ],
    "betainc_da": [Sample((real(3, 1) + 1, real(2) + 1, real(3, 2)), differentiable=(2,))],
    "betainc_db": [Sample((real(3, 1) + 1, real(2) + 1, real(3, 2)), differentiable=(2,))],
    **{
        f"betainc_d{by}": [Sample((real(3, 1) + 1, real(2) + 1, real(3, 2)), differentiable=(2,))]
        for by in ("aa", "ab", "bb")
    },
    "bdtr": [Sample((np.array([1.0, 2.0]), np.array(4), real(3, 2)), differentiable=(2,))],
    "bdtrc": [Sample((np.array([1.0, 2.0]), np.array(4), real(3, 2)), differentiable=(2,))],
    "huber": [Sample((real(3, 1), 3 * real(2)), differentiable=(0, 1))],
    "lambertw": [
        Sample((real(3), 0, 1e-8)),
        Sample((complex_(3), integers(2, 1), 1e-8)),
    ],
    "ellipkinc": [Sample((real(3, 1), real(2)), differentiable=(0, 1))],
    "ellipeinc": [Sample((4 * real(3, 1), real(2)), differentiable=(0, 1))],
    "ellipkinc_dm": [Sample((4 * real(3, 1), real(2)), differentiable=(0,))],
    "ellipeinc_dm": [Sample((real(3, 1), real(2)), differentiable=(0,))],
    "ellipkinc_dmm": [Sample((4 * real(3, 1), real(2)), differentiable=(0,))],
    "ellipeinc_dmm": [Sample((real(3, 1), real(2)), differentiable=(0,))],
    "hyp2f1": [
        Sample((real(3, 1), real(2), real(2) + 1, real(3, 2)), differentiable=(3,)),
        Sample((real(3), real(3), real(3) + 1, complex_(3) * 0.5), differentiable=(3,)),
    ],
    "sph_harm_y": [Sample((np.array([2, 3, 1]), np.array([1, -2, 0]), real(3), real(2, 3)), differentiable=(2, 3))],
    "softmax": [Sample((real(3, 4),), {"axes": (1,)}), Sample((real(2, 3),), {"axes": (0, 1)})],
    "log_softmax": [Sample((real(3, 4),), {"axes": (1,)}), Sample((real(2, 3),), {"axes": (0, 1)})],
    "logsumexp": [Sample((real(3, 4),), {"axes": (1,)}), Sample((complex_(3),), {"axes": (0,)})],
    "weighted_logsumexp": [
        _weighted(real(3, 4), real(3, 4), (1,), False),
        _weighted(real(3, 4), real(3, 4) - 0.2, (0, 1), True),
        _weighted(complex_(3), real(3) - 0.5, (0,), True),
        _weighted(complex_(3), complex_(3), (0,), False),
    ],
}


IMPRECISE = {"ncfdtrinc", "obl_rad2", "pro_rad2"}
"""As those that take a characteristic value, which these are not: differences of SciPy's values have a few digits."""


def _pair(value: Any) -> Any:
    return np.array(value) if isinstance(value, int) else np.array([value, 1.04 * value])


for name, (arguments, places) in ARGUMENTS.items():
    if name not in ("radian", "voigt_profile"):
        is_smooth = name not in IMPRECISE and not name.endswith("_cv")
        pairs = tuple([_pair(value) for value in arguments])
        SAMPLES[name] = [Sample(pairs, differentiable=places if is_smooth or len(arguments) < 4 else ())]
for name, values in WITHOUT_DERIVATIVE.items():
    SAMPLES[name] = [Sample(tuple([_pair(value) for value in values]), differentiable=())]
SAMPLES["kolmogorov_slope"] = [Sample((real(3) + 0.3,), differentiable=())]
for name in ("mathieu_a", "mathieu_b", "pro_cv", "obl_cv", "smirnov"):
    values = (5, 0.3) if name == "smirnov" else ARGUMENTS[name][0]
    for order in ("slope", "bend"):
        SAMPLES[f"{name}_{order}"] = [Sample(tuple([_pair(value) for value in values]), differentiable=())]
SAMPLES["kolmogorov_bend"] = [Sample((real(3) + 0.3,), differentiable=())]
for name in ("legendre_p", "assoc_legendre_p", "assoc_legendre_p_normalized", "sph_legendre_p"):
    degrees = (np.array([2, 3]), np.array([1, -2]))[: 1 + (name != "legendre_p")]
    cut = (2,) if name.startswith("assoc") else ()
    for order in (0, 1, 2):
        places = (len(degrees),) if order < 2 else ()
        SAMPLES[f"{name}_{order}"] = [Sample((*degrees, real(2), *cut), differentiable=places)]
importlib.import_module("func.scipy.stats")  # which registers its primitive
_SHAPES = (real(3, 1) + 1, real(2) + 1)
SAMPLES["scipy_distribution"] = [
    Sample((real(3, 2), *_SHAPES), {"distribution": "beta", "method": "cdf"}, (0, 1, 2)),
    Sample((real(3, 2), *_SHAPES), {"distribution": "beta", "method": "ppf"}, (0, 1, 2)),
    Sample((real(2) + 2,), {"distribution": "t", "method": "entropy"}),
    Sample((np.array([2.0, 3.0]), real(2)), {"distribution": "logser", "method": "cdf"}, (1,)),
]
