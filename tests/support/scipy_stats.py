"""Rows of scipy.stats: those of distributions are made from a table of shapes and points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from tests.support import scipy_stats_samples
from tests.support.scipy_rows import Row, main

CONTINUOUS: dict[str, tuple[float, ...]] = {
    "alpha": (3.57,),
    "anglit": (),
    "arcsine": (),
    "argus": (1.0,),
    "beta": (2.31, 0.63),
    "betaprime": (5.0, 6.0),
    "bradford": (0.3,),
    "burr": (10.5, 4.3),
    "burr12": (10.0, 4.0),
    "cauchy": (),
    "chi": (6.0,),
    "chi2": (5.5,),
    "cosine": (),
    "crystalball": (2.0, 3.0),
    "dgamma": (1.1,),
    "dpareto_lognorm": (0.3, 0.6, 2.5, 2.0),
    "dweibull": (2.07,),
    "erlang": (10.0,),
    "expon": (),
    "exponnorm": (1.5,),
    "exponpow": (2.7,),
    "exponweib": (2.9, 1.95),
    "f": (9.0, 8.0),
    "fatiguelife": (0.9,),
    "fisk": (3.09,),
    "foldcauchy": (4.7,),
    "foldnorm": (1.95,),
    "gamma": (1.99,),
    "gausshyper": (3.76, 3.12, 2.51, 2.11),
    "genexpon": (9.1, 16.2, 3.28),
    "genextreme": (-0.1,),
    "gengamma": (4.42, 3.12),
    "genhalflogistic": (0.77,),
    "genhyperbolic": (0.5, 1.5, -0.5),
    "geninvgauss": (2.3, 1.5),
    "genlogistic": (0.41,),
    "gennorm": (1.3,),
    "genpareto": (0.1,),
    "gibrat": (),
    "gompertz": (0.95,),
    "gumbel_l": (),
    "gumbel_r": (),
    "halfcauchy": (),
    "halfgennorm": (0.67,),
    "halflogistic": (),
    "halfnorm": (),
    "hypsecant": (),
    "invgamma": (4.07,),
    "invgauss": (0.15,),
    "invweibull": (10.58,),
    "jf_skew_t": (8.0, 4.0),
    "johnsonsb": (4.32, 3.18),
    "johnsonsu": (2.55, 2.25),
    "kappa3": (1.5,),
    "kappa4": (0.1, 0.2),
    "kstwobign": (),
    "landau": (),
    "laplace": (),
    "laplace_asymmetric": (2.0,),
    "levy": (),
    "levy_l": (),
    "loggamma": (0.41,),
    "logistic": (),
    "loglaplace": (3.25,),
    "lognorm": (0.95,),
    "loguniform": (0.1, 1.25),
    "lomax": (1.88,),
    "maxwell": (),
    "mielke": (10.4, 4.6),
    "moyal": (),
    "nakagami": (4.97,),
    "ncf": (27.0, 27.0, 0.42),
    "nct": (14.0, 0.24),
    "ncx2": (21.0, 1.06),
    "norm": (),
    "norminvgauss": (1.25, 0.5),
    "pareto": (4.62,),
    "pearson3": (0.6,),
    "powerlaw": (1.66,),
    "powerlognorm": (2.14, 0.45),
    "powernorm": (4.45,),
    "rayleigh": (),
    "rdist": (1.6,),
    "recipinvgauss": (0.63,),
    "reciprocal": (0.1, 1.25),
    "rel_breitwigner": (3.6,),
    "rice": (0.775,),
    "semicircular": (),
    "skewcauchy": (0.5,),
    "skewnorm": (2.0,),
    "studentized_range": (3.0, 10.0),
    "t": (2.74,),
    "trapezoid": (0.2, 0.8),
    "triang": (0.158,),
    "truncexpon": (4.69,),
    "truncnorm": (-1.1, 2.74),
    "truncpareto": (2.0, 5.3),
    "truncweibull_min": (2.5, 0.25, 1.75),
    "tukeylambda": (3.13,),
    "uniform": (),
    "vonmises": (3.99,),
    "vonmises_line": (3.99,),
    "wald": (),
    "weibull_max": (2.87,),
    "weibull_min": (1.79,),
    "wrapcauchy": (0.03,),
}
"""The continuous distributions with derivatives, and their shapes."""

DISCRETE: dict[str, tuple[tuple[float, ...], tuple[int, ...]]] = {
    "bernoulli": ((0.3,), (0,)),
    "betabinom": ((9, 2.3, 0.63), (1, 2)),
    "betanbinom": ((5, 9.3, 1), (1, 2)),
    "binom": ((9, 0.4), (1,)),
    "boltzmann": ((1.4, 19), (0,)),
    "dlaplace": ((0.8,), (0,)),
    "geom": ((0.4,), (0,)),
    "logser": ((0.6,), (0,)),
    "nbinom": ((5.3, 0.5), (0, 1)),
    "nchypergeom_fisher": ((20, 8, 6, 0.5), (3,)),
    "nchypergeom_wallenius": ((20, 8, 6, 0.5), (3,)),
    "planck": ((0.51,), (0,)),
    "poisson": ((3.6,), (0,)),
    "skellam": ((5.0, 3.2), (0, 1)),
    "yulesimon": ((11.0,), (0,)),
    "zipf": ((6.6,), (0,)),
    "zipfian": ((1.75, 90), (0,)),
}
"""Discrete distributions: their shapes, and the places of those by which they are differentiated."""

GROUPS = {"density": ("pdf", "logpdf"), "cumulative": ("cdf", "logsf"), "quantile": ("ppf",)}
MOMENTS = ("beta", "expon", "gamma", "logistic", "lognorm", "norm", "t", "weibull_min")


def _methods(name: str, methods: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """Methods at a point, as a function of the point, the shapes, location and scale in one array."""
    return lambda m, p: np.stack([getattr(getattr(m, name), method)(*p) for method in methods])


def _moments(name: str) -> Callable[[Any, Any], Any]:
    """Entropy and moments, as a function of the shapes, location and scale in one array."""

    def call(m: Any, p: Any) -> Any:
        dist = getattr(m, name)(*p)
        return np.stack([dist.entropy(), dist.mean(), dist.std(), dist.moment(2), *dist.stats("mv"), dist.median()])

    return call


def _counts(name: str, shapes: tuple[float, ...], places: tuple[int, ...], k: float) -> Callable[[Any, Any], Any]:
    """Probabilities at an outcome, as a function of some of the shapes."""

    def call(m: Any, p: Any) -> Any:
        args = list(shapes)
        for place, x in zip(places, p, strict=True):
            args[place] = x
        dist = getattr(m, name)
        return np.stack([dist.pmf(k, *args), dist.logpmf(k, *args), dist.cdf(k, *args), dist.logsf(k, *args)])

    return call


def _distribution_rows() -> dict[str, Row]:
    rows = {}
    for name, shapes in CONTINUOUS.items():
        dist = getattr(scipy.stats, name)
        x = float(dist.ppf(0.37, *shapes, loc=0.3, scale=1.4))
        for group, methods in GROUPS.items():
            point = 0.37 if group == "quantile" else x
            rows[f"{name} {group}"] = Row(_methods(name, methods), np.array([point, *shapes, 0.3, 1.4]), rtol=1e-5)
    for name in MOMENTS:
        rows[f"{name} moments"] = Row(_moments(name), np.array([*CONTINUOUS[name], 0.3, 1.4]), rtol=1e-5)
    for name, (shapes, places) in DISCRETE.items():
        k = float(getattr(scipy.stats, name).ppf(0.37, *shapes))
        x = np.array([float(shapes[i]) for i in places])
        exact = 1e-9 if name == "nchypergeom_wallenius" else 1e-11
        rows[name] = Row(_counts(name, shapes, places, k), x, rtol=1e-5, exact=exact)
    return rows


RNG = np.random.default_rng(17)
V = RNG.normal(size=3)
Y = RNG.normal(size=(4, 3))
SIMPLEX = np.array([0.2, 0.3, 0.5])


def _matrix(v: Any) -> Any:
    """A positive definite matrix of a vector."""
    return np.eye(3) * 2.0 + v[:, None] * v


def _unit(v: Any) -> Any:
    return v / np.sqrt(np.sum(v * v))


MULTIVARIATE: dict[str, Row] = {
    "poisson_binom": Row(
        lambda m, p: np.stack(
            [
                (d := m.poisson_binom(p * p)).pmf(2),
                d.logpmf(1),
                d.cdf(1),
                d.sf(0),
                d.mean(),
                d.var(),
                d.expect(lambda k: k**2),
            ]
        ),
        np.array([0.4, 0.7, 0.5]),
    ),
    "multivariate_normal": Row(lambda m, v: m.multivariate_normal.logpdf(Y, v, _matrix(v)), V),
    "multivariate_normal frozen": Row(
        lambda m, v: np.stack([(d := m.multivariate_normal(v, _matrix(v))).logpdf(Y[0]), d.pdf(v), d.entropy()]), V
    ),
    "multivariate_t": Row(
        lambda m, v: np.stack(
            [(d := m.multivariate_t(v, _matrix(v), df=3.0 + v[0])).logpdf(Y[0]), d.pdf(v), d.entropy()]
        ),
        V,
    ),
    "dirichlet": Row(lambda m, a: m.dirichlet.logpdf(SIMPLEX, a), np.abs(V) + 0.5),
    "dirichlet moments": Row(
        lambda m, a: np.concatenate(
            [m.dirichlet.mean(a), m.dirichlet.var(a), m.dirichlet.cov(a)[0], np.reshape(m.dirichlet.entropy(a), (1,))]
        ),
        np.abs(V) + 0.5,
    ),
    "wishart": Row(
        lambda m, v: np.stack(
            [m.wishart.logpdf(_matrix(2 * v), 5.0 + v[0], _matrix(v)), m.wishart.entropy(4, _matrix(v))]
        ),
        V,
    ),
    "invwishart": Row(
        lambda m, v: np.stack(
            [m.invwishart.logpdf(_matrix(2 * v), 5.0 + v[0], _matrix(v)), m.invwishart.entropy(4, _matrix(v))]
        ),
        V,
    ),
    "matrix_normal": Row(
        lambda m, v: np.stack(
            [
                m.matrix_normal.logpdf(np.outer(v, v[:2]), rowcov=_matrix(v), colcov=_matrix(2 * v)[:2, :2]),
                m.matrix_normal(rowcov=_matrix(v), colcov=2.0).entropy(),
            ]
        ),
        V,
    ),
    "matrix_t": Row(
        lambda m, v: m.matrix_t.logpdf(
            np.outer(v, v[:2]), np.zeros((3, 2)), _matrix(v), _matrix(2 * v)[:2, :2], 4.0 + v[0]
        ),
        V,
    ),
    "normal_inverse_gamma": Row(
        lambda m, v: m.normal_inverse_gamma.logpdf(v[0], 1.0 + v[1] ** 2, 0.3, 1.2, 2.0 + v[2] ** 2, 1.1), V
    ),
    "multinomial": Row(lambda m, p: m.multinomial.logpmf([[2, 1, 0], [1, 1, 1]], 3, p / np.sum(p)), np.abs(V) + 0.1),
    "dirichlet_multinomial": Row(lambda m, a: m.dirichlet_multinomial.logpmf([2, 1, 0], a, 3), np.abs(V) + 0.5),
    "vonmises_fisher": Row(
        lambda m, v: np.stack(
            [
                m.vonmises_fisher.logpdf(_unit(v), _unit(Y[0]), 2.0 + v[0]),
                m.vonmises_fisher(_unit(v), 3.0 + v[1]).entropy(),
            ]
        ),
        V,
    ),
}

X = RNG.normal(size=(7, 2)) * 1.3 + 0.4
POSITIVE = np.abs(X) + 0.3
LONG = RNG.normal(size=22)

SAMPLES: dict[str, Row] = {
    "bartlett": Row(lambda m, x: m.bartlett(x[:, 0], x[:, 1]), X),
    "boxcox": Row(lambda m, x: m.boxcox(x[:, 0], 0.4), POSITIVE),
    "boxcox_llf": Row(lambda m, x: m.boxcox_llf(x[0, 0], x), POSITIVE),
    "chisquare": Row(lambda m, x: np.stack(m.chisquare(x, ddof=1, axis=0)), POSITIVE),
    "circmean": Row(lambda m, x: m.circmean(x, axis=0), X),
    "circstd": Row(lambda m, x: m.circstd(x, axis=0), X),
    "circvar": Row(lambda m, x: m.circvar(x, high=3.0), X),
    "combine_pvalues": Row(lambda m, p: m.combine_pvalues(p).pvalue, np.array([0.1, 0.3, 0.4])),
    "describe": Row(lambda m, x: m.describe(x).variance, X),
    "differential_entropy": Row(lambda m, x: m.differential_entropy(x), X),
    "energy_distance": Row(lambda m, x: m.energy_distance(x[:, 0], x[:, 1]), X),
    "entropy": Row(lambda m, x: np.stack([m.entropy(x[:, 0]), m.entropy(x[:, 0], x[:, 1])]), POSITIVE),
    "f_oneway": Row(lambda m, x: np.stack(m.f_oneway(x[:, 0], x[:, 1])), X),
    "gaussian_kde": Row(lambda m, x: m.gaussian_kde(x[:, 0])(x[:3, 1]), X),
    "gaussian_kde weights": Row(lambda m, x: m.gaussian_kde(X.T, "silverman", x[:, 1]).logpdf(x[:3].T), POSITIVE),
    "gmean": Row(lambda m, x: m.gmean(x), POSITIVE),
    "gstd": Row(lambda m, x: m.gstd(x), POSITIVE),
    "gzscore": Row(lambda m, x: m.gzscore(x), POSITIVE),
    "hmean": Row(lambda m, x: m.hmean(x, weights=np.arange(1.0, 8.0)[:, None]), POSITIVE),
    "iqr": Row(lambda m, x: m.iqr(x, axis=0, rng=(20, 70)), X),
    "jarque_bera": Row(lambda m, x: np.stack(m.jarque_bera(x[:, 0])), X),
    "kstat": Row(lambda m, x: m.kstat(x[:, 0], 3), X),
    "kstatvar": Row(lambda m, x: m.kstatvar(x[:, 0], 2), X),
    "kurtosis": Row(lambda m, x: m.kurtosis(x, axis=0, bias=False), X),
    "kurtosistest": Row(lambda m, x: np.stack(m.kurtosistest(x)), LONG),
    "levene": Row(lambda m, x: np.stack(m.levene(x[:, 0], x[:, 1])), X),
    "linregress": Row(lambda m, x: np.stack(m.linregress(x[:, 0], x[:, 1])), X),
    "lmoment": Row(lambda m, x: m.lmoment(x), X),
    "median_abs_deviation": Row(lambda m, x: m.median_abs_deviation(x), X),
    "moment": Row(lambda m, x: m.moment(x, 3), X),
    "normaltest": Row(lambda m, x: np.stack(m.normaltest(x)), LONG),
    "pearsonr": Row(lambda m, x: np.stack([(r := m.pearsonr(x[:, 0], x[:, 1])).statistic, r.pvalue]), X),
    "pmean": Row(lambda m, x: m.pmean(x, 1.7), POSITIVE),
    "pointbiserialr": Row(lambda m, x: m.pointbiserialr(np.array([0, 1, 0, 1, 1, 0, 1]), x[:, 1]).statistic, X),
    "power_divergence": Row(lambda m, x: m.power_divergence(x, axis=None, lambda_="cressie-read").statistic, POSITIVE),
    "sem": Row(lambda m, x: m.sem(x), X),
    "skew": Row(lambda m, x: m.skew(x, axis=0), X),
    "skewtest": Row(lambda m, x: np.stack(m.skewtest(x)), LONG),
    "tmax": Row(lambda m, x: m.tmax(x), X),
    "tmean": Row(lambda m, x: m.tmean(x, (-5, 5)), X),
    "tmin": Row(lambda m, x: m.tmin(x), X),
    "trim_mean": Row(lambda m, x: m.trim_mean(x, 0.2), X),
    "tsem": Row(lambda m, x: m.tsem(x, (-5, 5)), X),
    "tstd": Row(lambda m, x: m.tstd(x, (-5, 5)), X),
    "ttest_1samp": Row(lambda m, x: m.ttest_1samp(x, 0.1).pvalue, X),
    "ttest_ind": Row(lambda m, x: m.ttest_ind(x[:, 0], x[:, 1]).pvalue, X),
    "ttest_ind Welch": Row(lambda m, x: m.ttest_ind(x[:, 0], x[:, 1], equal_var=False).pvalue, X),
    "ttest_ind_from_stats": Row(lambda m, x: m.ttest_ind_from_stats(x[0], 1.2, 9, x[1], 1.3, 8).pvalue, X[0]),
    "ttest_rel": Row(lambda m, x: m.ttest_rel(x[:, 0], x[:, 1]).pvalue, X),
    "tvar": Row(lambda m, x: m.tvar(x, (-5, 5)), X),
    "variation": Row(lambda m, x: m.variation(x), POSITIVE),
    "wasserstein_distance": Row(lambda m, x: m.wasserstein_distance(x[:, 0], x[:, 1]), X),
    "yeojohnson": Row(lambda m, x: m.yeojohnson(x[:, 0], 0.4 + x[0, 1]), X),
    "yeojohnson_llf": Row(lambda m, x: m.yeojohnson_llf(x[0, 0], x), X),
    "zmap": Row(lambda m, x: m.zmap(x, x**2), X),
    "zscore": Row(lambda m, x: m.zscore(x), X),
}

ROWS: dict[str, Row] = {
    **_distribution_rows(),
    **MULTIVARIATE,
    **SAMPLES,
    **scipy_stats_samples.ROWS,
}
_INTEGERS = "its parameters and outcomes are integers"
_ONCE = "its density has no derivative; its cumulative functions and quantiles have their first"
_DRAWS = "it draws random matrices"
_REASONS: dict[str, str] = {
    **scipy_stats_samples.WITHOUT,
    **dict.fromkeys(["hypergeom", "multivariate_hypergeom", "nhypergeom", "randint"], _INTEGERS),
    **dict.fromkeys(["irwinhall", "ksone", "kstwo", "levy_stable"], _ONCE),
    **dict.fromkeys(
        ["ortho_group", "random_correlation", "random_table", "special_ortho_group", "unitary_group"], _DRAWS
    ),
    "uniform_direction": "it draws random vectors",
}
WITHOUT: dict[str, str] = {
    name: reason for name, reason in _REASONS.items() if name not in {n.split()[0] for n in ROWS}
}

if __name__ == "__main__":
    main("stats", ROWS)
