"""Partials of special functions and distributions that formulas lose in tails, for large parameters and near zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import func
from tools.enumerate import precision_special

CASES: list[tuple[str, tuple[int, ...], tuple[float, ...]]] = [
    ("spence", (1,), (1e-17,)),
    ("betaln", (1, 0), (1e10, 1.5)),
    ("betaln", (1, 0), (1e15, 2.0)),
    ("betaln", (1, 0), (2.5, 1e-9)),
    ("betaln", (2, 0), (1e10, 1.5)),
    ("beta", (0, 1), (0.5, 1e10)),
    ("poch", (1, 0), (1e8, 2.0)),
    ("binom", (1, 0), (1e12, 2.0)),
    ("airye[0]", (2,), (1e4,)),
    ("airye[3]", (2,), (1e4,)),
    ("i0e", (2,), (1e6,)),
    ("i1e", (2,), (-1e6,)),
    ("ive", (0, 2), (3.0, 1e5)),
    ("k0e", (2,), (1e8,)),
    ("kve", (0, 2), (3.5, 1e5)),
    ("erfcx", (2,), (1e100,)),
    ("dawsn", (2,), (-1e100,)),
    ("pseudo_huber", (1, 0), (0.5, 1e-17)),
    ("pseudo_huber", (2, 0), (0.5, 1e100)),
    ("pseudo_huber", (0, 2), (2.5, 1e15)),
    ("powm1", (0, 1), (1e-6, 10.0)),
    ("rel_entr", (1, 1), (0.5, 1e300)),
    ("agm", (0, 2), (1e-6, 1e10)),
    ("cotdg", (1,), (1e-17,)),
    ("ellipk", (1,), (-1e30,)),
    ("ellipe", (1,), (1 - 2.0**-53,)),
    ("kolmogorov", (1,), (0.1,)),
    ("kolmogorov", (2,), (0.06,)),
    ("shichi[0]", (2,), (1e-40,)),
    ("t.logpdf", (0, 1), (2.0, 1e5)),
    ("t.logpdf", (2, 0), (1e100, 3.0)),
    ("t.logpdf", (0, 2), (1e100, 3.0)),
    ("t.logsf", (0, 1), (1e6, 4.0)),
    ("beta.logpdf", (0, 1, 0), (0.5, 1e10, 1e10)),
    ("beta.logpdf", (0, 1, 0), (0.6, 1e10, 1e10)),
    ("gamma.logpdf", (0, 1), (1e8 + 1e3, 1e8)),
    ("f.logpdf", (0, 0, 1), (0.5, 1.0, 1e5)),
    ("betabinom.logpmf", (0, 0, 1, 0), (5.0, 10.0, 1e10, 2e10)),
    ("binom.logpmf", (0, 1, 0), (1.0, 1e12, 1e-12)),
    ("nbinom.logpmf", (0, 1, 0), (3.0, 1e10, 0.9999)),
    ("exponweib.logpdf", (1, 0, 0), (1e-6, 0.5, 2.0)),
    ("exponnorm.logpdf", (0, 1), (-1e6, 1.5)),
    ("invgauss.logpdf", (1, 1), (1e-10, 50.0)),
    ("jf_skew_t.logpdf", (1, 1, 0), (1e6, 8.0, 4.0)),
    ("foldnorm.logpdf", (1, 0), (1e6, 1.95)),
    ("foldcauchy.logpdf", (1, 0), (1e-100, 4.7)),
    ("halfcauchy.logpdf", (2,), (1e100,)),
    ("skewcauchy.logpdf", (1, 1), (1e6, 0.5)),
    ("rel_breitwigner.logpdf", (2, 0), (1e100, 3.6)),
    ("gumbel_r.logpdf", (1,), (1e-100,)),
    ("invweibull.logpdf", (1, 0), (1e-10, 10.58)),
    ("mielke.logpdf", (0, 0, 1), (1e-10, 0.5, 0.7)),
    ("burr12.logpdf", (0, 1, 0), (1e100, 10.0, 4.0)),
    ("genpareto.logpdf", (0, 1), (1e100, 0.1)),
    ("rice.logpdf", (1, 1), (1e-100, 0.775)),
    ("johnsonsu.logpdf", (1, 0, 0), (1e100, 2.55, 2.25)),
    ("norminvgauss.logpdf", (1, 0, 0), (1e6, 1.25, 0.5)),
    ("rdist.logpdf", (1, 0), (1e-100, 30.0)),
    ("laplace.logcdf", (1,), (-800.0,)),
    ("laplace.logsf", (1,), (800.0,)),
    ("halfnorm.logsf", (1,), (40.0,)),
    ("chi2.logsf", (1, 0), (1600.0, 5.0)),
    ("chi2.logsf", (0, 1), (1600.0, 5.0)),
    ("gamma.logcdf", (1, 0), (1e-3, 200.0)),
    ("gamma.logcdf", (0, 1), (1e-3, 200.0)),
    ("levy.logpdf", (2,), (1e-3,)),
    ("hypsecant.logpdf", (1,), (-800.0,)),
    ("betaprime.pdf", (1, 0, 0), (1e-100, 5.0, 6.0)),
    ("beta.pdf", (0, 1, 0), (0.5, 1e10, 1e10)),
    ("gamma.pdf", (1, 0), (1e8 + 1e4, 1e8)),
    ("betaprime.cdf", (0, 1, 0), (1e-10, 5.0, 6.0)),
    ("betaprime.logsf", (0, 0, 1), (1e6, 5.0, 6.0)),
    ("foldnorm.logsf", (0, 1), (800.0, 1.95)),
    ("skewnorm.logcdf", (1, 0), (-30.0, 2.0)),
    ("alpha.logcdf", (1, 0), (1e-10, 3.57)),
    ("argus.sf", (0, 1), (0.999, 1.0)),
    ("exponnorm.logcdf", (1, 0), (-1e6, 1.5)),
    ("burr.sf", (1, 0, 0), (1e6, 10.5, 4.3)),
    ("mielke.logcdf", (0, 0, 1), (1e-10, 10.4, 4.6)),
    ("exponweib.logsf", (0, 1, 0), (800.0, 2.9, 1.95)),
    ("weibull_min.logcdf", (1, 0), (1e-10, 1.79)),
    ("halflogistic.logsf", (1,), (800.0,)),
    ("hypsecant.logcdf", (1,), (-800.0,)),
    ("laplace_asymmetric.logsf", (0, 1), (800.0, 2.0)),
    ("gennorm.logcdf", (1, 0), (-800.0, 1.3)),
    ("genextreme.logpdf", (1, 0), (1e-10, 1e-9)),
    ("betaprime.ppf", (0, 1, 0), (1e-12, 5.0, 6.0)),
    ("invgauss.isf", (0, 1), (1e-3, 2.0)),
    ("binom.cdf", (0, 1, 0), (8.0, 9.0, 0.4)),
    ("betabinom.cdf", (0, 1, 0, 0), (8.0, 9.0, 2.3, 0.63)),
    ("zipfian.cdf", (0, 0, 1), (3.0, 1.5, 19.0)),
    ("poisson.logcdf", (0, 1), (0.0, 1000.0)),
    ("gamma.logsf", (1, 0), (1e15, 1.99)),
    ("chi.logsf", (0, 1), (1e100, 6.0)),
]


@pytest.mark.parametrize(("name", "orders", "point"), CASES)
def test_partials_are_those_of_mpmath(name: str, orders: tuple[int, ...], point: tuple[float, ...]) -> None:
    for mode in ("forward", "reverse"):
        assert precision_special.compare(name, orders, point, mode) is None


def test_the_slope_of_a_harmonic_follows_scipys_function_of_the_cosine() -> None:
    for theta in (-0.4, 0.4, 3.5, 6.6):
        for n, m in ((2, 1), (2, 0), (3, -2)):
            _, gradient = scipy.special.sph_harm_y(n, m, theta, 0.7, diff_n=1)
            slope = func.jvp(lambda t, n=n, m=m: func.special.sph_harm_y(n, m, t, 0.7), (theta,), (1.0,))[1]
            np.testing.assert_allclose(slope, gradient[0], rtol=1e-12)
