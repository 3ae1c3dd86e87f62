"""Rows of scipy.stats' functions of samples that estimate, search and test, and the names without a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.stats

from tests.support.scipy_rows import Row, main

RNG = np.random.default_rng(29)
X = RNG.normal(size=(7, 2)) * 1.3 + 0.4
POSITIVE = np.abs(X) + 0.3
PROBABLE = RNG.uniform(0.1, 0.9, size=6)
PLACES = np.array([0.1, 0.7, 0.2, 0.9, 0.8, 0.3, 0.15])
SEARCHED = 1e-3
"""How well differences of what SciPy searches agree with derivatives."""


def _posteriors(m: Any, x: Any) -> Any:
    mean, variance, _ = m.mvsdist(x[:, 0])
    return np.stack([mean.std(), variance.mean()])


def _interval(m: Any, x: Any) -> Any:
    mean, variance, deviation = m.bayes_mvs(x[:, 0], 0.8)
    return np.stack([mean.statistic, variance.minmax[0], deviation.minmax[1]])


def _least(function: Any, bounds: Any, **options: Any) -> Any:
    """A search that always takes the same steps."""
    return scipy.optimize.minimize(
        function, [np.mean(b) for b in bounds], bounds=bounds, method="Nelder-Mead", tol=1e-13
    )


def _sobol(m: Any, x: Any) -> Any:
    found = m.sobol_indices(
        func=lambda z: x[0, 0] * z[0] + x[1, 0] * z[1] ** 2,
        n=4,
        dists=[scipy.stats.uniform(), scipy.stats.uniform()],
        rng=np.random.default_rng(3),
    )
    return found.first_order


def _bootstrap(m: Any, x: Any) -> Any:
    found = m.bootstrap((x[:, 0],), np.mean, n_resamples=9, method="basic", rng=np.random.default_rng(0))
    return np.stack([found.standard_error, *found.confidence_interval])


_STAGED = {"jit": "its code asks for the values"}


def _made(m: Any, p: Any) -> Any:
    gamma = m.make_distribution(m.gamma)(a=p[0])
    return np.stack([gamma.pdf(p[1]), gamma.cdf(1.2)])


def _normal(m: Any, p: Any) -> Any:
    normal = m.Normal(mu=p[0], sigma=p[1])
    return np.stack([normal.logpdf(0.3), normal.ccdf(0.1), normal.icdf(0.3), normal.mean(), normal.entropy()])


def _truncated(m: Any, p: Any) -> Any:
    truncated = m.truncate(m.Normal(), lb=p[0], ub=3.0)
    return np.stack([truncated.pdf(2.0), truncated.icdf(0.3), truncated.mean()])


def _mixture(m: Any, p: Any) -> Any:
    mixture = m.Mixture([m.Normal(mu=p[0]), m.Normal(mu=1.0)], weights=[0.4, 0.6])
    return np.stack([mixture.pdf(p[1]), mixture.logcdf(0.3), mixture.mean()])


ROWS: dict[str, Row] = {
    "Binomial": Row(
        lambda m, p: m.Binomial(n=5, p=p[0]).pmf(2) + m.Binomial(n=5, p=p[0]).mean(), PROBABLE, without=_STAGED
    ),
    "Covariance": Row(lambda m, p: m.Covariance.from_diagonal(p).whiten(p**2), PROBABLE),
    "Logistic": Row(lambda m, p: m.Logistic().logpdf(p), PROBABLE, without=_STAGED),
    "Mixture": Row(_mixture, PROBABLE, without=_STAGED),
    "Normal": Row(_normal, PROBABLE, without=_STAGED),
    "Uniform": Row(lambda m, p: m.Uniform(a=p[0], b=p[1] + 2).cdf(1.2), PROBABLE, without=_STAGED),
    "abs": Row(lambda m, p: m.abs(m.Normal(mu=p[0])).pdf(1.2), PROBABLE, without=_STAGED),
    "exp": Row(lambda m, p: m.exp(m.Normal(mu=p[0])).cdf(1.2), PROBABLE, without=_STAGED),
    "fit": Row(
        lambda m, x: m.fit(m.norm, x[:, 0], [(-3, 3), (0.1, 4)], optimizer=_least).params[1],
        X,
        rtol=SEARCHED,
        exact=1e-5,
        without=_STAGED,
    ),
    "log": Row(lambda m, p: m.log(m.Uniform(a=p[0], b=p[1] + 2)).pdf(0.4), PROBABLE, without=_STAGED),
    "make_distribution": Row(_made, PROBABLE + 1, rtol=1e-5, without=_STAGED),
    "order_statistic": Row(
        lambda m, p: m.order_statistic(m.Normal(mu=p[0]), r=2, n=3).pdf(0.3), PROBABLE, without=_STAGED
    ),
    "rv_histogram": Row(lambda m, x: m.rv_histogram(([1, 3, 2], [0.0, 1, 2, 3])).cdf(x) ** 2, PROBABLE),
    "truncate": Row(_truncated, PROBABLE, without=_STAGED),
    "alexandergovern": Row(lambda m, x: m.alexandergovern(x[:, 0], x[:, 1]).statistic, X),
    "bayes_mvs": Row(_interval, X),
    "binned_statistic": Row(
        lambda m, x: np.stack(
            [m.binned_statistic(PLACES, x[:, 0], kind, bins=2).statistic for kind in ("mean", "std", "median", "min")]
        ),
        X,
    ),
    "binned_statistic edges": Row(lambda m, x: m.binned_statistic(x[:, 0], x[:, 1], "sum", bins=2).bin_edges, X),
    "binned_statistic_2d": Row(
        lambda m, x: m.binned_statistic_2d(PLACES, PLACES[::-1], x[:, 0], "sum", bins=2).statistic, X
    ),
    "binned_statistic_dd": Row(lambda m, x: m.binned_statistic_dd([PLACES], x[:, 0], "max", bins=2).statistic, X),
    "bootstrap": Row(_bootstrap, X),
    "boxcox_normmax": Row(lambda m, x: m.boxcox_normmax(x, method="mle"), POSITIVE[:4, 0], rtol=SEARCHED),
    "chi2_contingency": Row(lambda m, x: np.stack(m.chi2_contingency(x)[:2]), POSITIVE),
    "directional_stats": Row(
        lambda m, x: np.concatenate(
            [(d := m.directional_stats(x)).mean_direction, np.reshape(d.mean_resultant_length, (1,))]
        ),
        X,
    ),
    "ecdf": Row(
        lambda m, x: m.ecdf(x[:, 0]).cdf.quantiles, X, without={"jit": "how many values differ depends on the values"}
    ),
    "epps_singleton_2samp": Row(
        lambda m, x: m.epps_singleton_2samp(x[:, 0], x[:, 1]).statistic,
        X,
        rtol=1e-4,
    ),
    "expectile": Row(
        lambda m, x: np.stack([m.expectile(x[:, 0], 0.3), m.expectile(x[:, 0], weights=POSITIVE[:, 0])]), X
    ),
    "false_discovery_control": Row(lambda m, p: m.false_discovery_control(p, method="by") ** 2, PROBABLE),
    "mvsdist": Row(_posteriors, X, rtol=1e-5),
    "obrientransform": Row(lambda m, x: np.stack(m.obrientransform(x[:, 0], x[:, 1])), X),
    "probplot": Row(lambda m, x: np.stack(m.probplot(x[:, 0])[1]), X),
    "quantile": Row(lambda m, x: m.quantile(x, np.array([[0.2, 0.3], [0.71, 0.8]]), method="hazen"), X),
    "quantile weights": Row(
        lambda m, x: m.quantile(X[:, 0], PROBABLE[:2], weights=3 * x[:, 0], method="weibull"), POSITIVE
    ),
    "quantile Harrell-Davis": Row(lambda m, x: m.quantile(x[:, 0], PROBABLE[:2], method="harrell-davis"), X),
    "scoreatpercentile": Row(lambda m, x: m.scoreatpercentile(x, [20, 70], axis=0), X),
    "siegelslopes": Row(lambda m, x: np.stack(m.siegelslopes(x[:, 0], x[:, 1])), X),
    "sigmaclip": Row(
        lambda m, x: m.sigmaclip(x, 1.5, 1.5).lower, X, without={"jit": "how many it keeps depends on the values"}
    ),
    "sobol_indices": Row(_sobol, X),
    "theilslopes": Row(lambda m, x: np.stack(m.theilslopes(x[:, 0], x[:, 1], 0.5)), X),
    "trim1": Row(lambda m, x: m.trim1(x[:, 0], 0.2), X),
    "trimboth": Row(lambda m, x: m.trimboth(x[:, 0], 0.2), X),
    "wasserstein_distance_nd": Row(
        lambda m, x: m.wasserstein_distance_nd(x[:3], x[3:], x[:3, 0] ** 2 + 1), X, rtol=1e-5
    ),
    "yeojohnson_normmax": Row(lambda m, x: m.yeojohnson_normmax(x), X[:4, 0], rtol=SEARCHED),
}

_DRAWN = "it has no derivative: its p-value counts random resamples"
_RANKS = "it has no derivative: it computes with ranks; values under vmap and jit"
_COUNTS = "it has no derivative: it counts; values under vmap and jit"
_NO_RULE = "func has no rule for its derivative; values under vmap and jit"
WITHOUT: dict[str, str] = {
    "poisson_means_test": "SciPy's sum has or leaves out the observed outcome by rounding: its value jumps",
    **dict.fromkeys(
        [
            "anderson_ksamp",
            "ansari",
            "brunnermunzel",
            "bws_test",
            "chatterjeexi",
            "cramervonmises_2samp",
            "fligner",
            "friedmanchisquare",
            "kendalltau",
            "kruskal",
            "ks_2samp",
            "logrank",
            "mannwhitneyu",
            "mood",
            "multiscale_graphcorr",
            "page_trend_test",
            "rankdata",
            "ranksums",
            "somersd",
            "spearmanr",
            "spearmanrho",
            "tiecorrect",
            "weightedtau",
            "wilcoxon",
        ],
        _RANKS,
    ),
    **dict.fromkeys(
        [
            "barnard_exact",
            "boschloo_exact",
            "cumfreq",
            "fisher_exact",
            "median_test",
            "mode",
            "percentileofscore",
            "quantile_test",
            "relfreq",
        ],
        _COUNTS,
    ),
    **dict.fromkeys(
        [
            "anderson",
            "binomtest",
            "boxcox_normplot",
            "cramervonmises",
            "ks_1samp",
            "kstest",
            "ppcc_max",
            "ppcc_plot",
            "shapiro",
            "tukey_hsd",
            "yeojohnson_normplot",
        ],
        _NO_RULE,
    ),
    **dict.fromkeys(["goodness_of_fit", "monte_carlo_test", "permutation_test", "power"], _DRAWN),
    "dunnett": "it has no derivative: its p-values are integrals over random points; values under vmap and jit",
    **dict.fromkeys(
        ["BootstrapMethod", "MonteCarloMethod", "PermutationMethod", "CensoredData", "rv_continuous", "rv_discrete"],
        "a class of options or a base class",
    ),
    **dict.fromkeys(
        ["ConstantInputWarning", "DegenerateDataWarning", "FitError", "NearConstantInputWarning"],
        "a warning or an exception",
    ),
    **dict.fromkeys(
        [
            "biasedurn",
            "contingency",
            "distributions",
            "kde",
            "morestats",
            "mstats",
            "mstats_basic",
            "mstats_extras",
            "mvn",
            "qmc",
            "stats",
        ],
        "a module",
    ),
}


if __name__ == "__main__":
    main("stats", ROWS)
