"""Functions of samples: the laws of their rows, their options, and those that have no derivative."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats

import func
from tests.support.scipy_rows import check
from tests.support.scipy_stats_samples import ROWS

RNG = np.random.default_rng(31)
X = RNG.normal(size=(8, 3))
HOLED = np.where(np.arange(24).reshape(8, 3) == 7, np.nan, X)
TABLE = np.array([[8.0, 2.0], [1.0, 5.0]])


@pytest.mark.parametrize("column", ["value", "unmodified"])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_rows(name, column):
    check(ROWS[name], "stats", column)


def _outputs(result):
    """The first output of floating point, as the functions here have it."""
    return result[0] if isinstance(result, tuple) else getattr(result, "statistic", result)


OPTIONS = [{"axis": None}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}, {"axis": 0, "nan_policy": "omit"}]
REDUCING = {
    "skew": lambda x, **k: scipy.stats.skew(x, **k),
    "iqr": lambda x, **k: scipy.stats.iqr(x, **k),
    "circvar": lambda x, **k: scipy.stats.circvar(x, **k),
    "gmean": lambda x, **k: scipy.stats.gmean(np.exp(x), **k),
    "hmean": lambda x, **k: scipy.stats.hmean(np.exp(x), **k),
    "pmean": lambda x, **k: scipy.stats.pmean(np.exp(x), 1.5, **k),
    "bartlett": lambda x, **k: scipy.stats.bartlett(x, x[::-1] ** 2, **k),
    "f_oneway": lambda x, **k: scipy.stats.f_oneway(x, x[::-1] ** 2, **k),
    "levene": lambda x, **k: scipy.stats.levene(x, x[::-1] ** 2, **k),
    "ttest_ind": lambda x, **k: scipy.stats.ttest_ind(x, x[::-1] ** 2, **k),
    "chisquare": lambda x, **k: scipy.stats.chisquare(np.exp(x), **k),
    "siegelslopes": lambda x, **k: scipy.stats.siegelslopes(x, **k),
}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", REDUCING)
def test_axes_policies_and_dimensions_are_scipys(name, options):
    x = HOLED if "nan_policy" in options else X
    expected = _outputs(REDUCING[name](x, **options))
    got, dot = func.jvp(lambda x: _outputs(REDUCING[name](x, **options)), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(got, expected, rtol=1e-11)
    assert np.shape(got) == np.shape(expected) == np.shape(dot)
    if "nan_policy" not in options:
        compiled = func.jit(lambda x: _outputs(REDUCING[name](x, **options)))
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-11)
    else:
        with pytest.raises(func.errors.UnsupportedFunctionError, match="asks for the values"):
            func.jit(lambda x: _outputs(REDUCING[name](x, **options)))(x)


@pytest.mark.parametrize("name", ["skew", "iqr", "bartlett", "levene", "ttest_ind"])
def test_nan_propagates_in_compiled_code(name):
    expected = _outputs(REDUCING[name](HOLED, axis=0))
    np.testing.assert_allclose(func.jit(lambda x: _outputs(REDUCING[name](x, axis=0)))(HOLED), expected, rtol=1e-11)
    assert np.isnan(expected[1])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy.stats.ttest_ind(x[:, 0], x[:, 1]),
        lambda x: scipy.stats.siegelslopes(x[:, 0], x[:, 1]),
        lambda x: scipy.stats.linregress(x[:, 0], x[:, 1]),
        lambda x: (scipy.stats.quantile(x, 0.3), scipy.stats.quantile(x, np.array([[0.3]]))),
        lambda x: scipy.stats.bartlett(x[:1], x[2:4]),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_single_precision_is_scipys(f):
    x = X.astype(np.float32)
    for expected, got in zip(f(x), func.vjp(lambda x: tuple(f(x)), x)[0], strict=True):
        assert (np.shape(got), got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-6)


WITHOUT_DERIVATIVE = {
    "anderson_ksamp": lambda m, x: m.anderson_ksamp([x[:, 0], x[:, 1]]),
    "ansari": lambda m, x: m.ansari(x[:, 0], x[:, 1]),
    "brunnermunzel": lambda m, x: m.brunnermunzel(x, x**2),
    "binomtest": lambda m, x: m.binomtest(2, 7, 0.5 + 0.1 * np.tanh(x[0, 0])),
    "boxcox_normplot": lambda m, x: m.boxcox_normplot(np.exp(x[:, 0]), -1, 2, N=2)[1],
    "cramervonmises": lambda m, x: m.cramervonmises(x[:, 0], "norm"),
    "cumfreq": lambda m, x: m.cumfreq(x[:, 0], 3).cumcount,
    "dunnett": lambda m, x: m.dunnett(x[:, 0], control=x[:, 1], rng=np.random.default_rng(0)).pvalue,
    "friedmanchisquare": lambda m, x: m.friedmanchisquare(x[:, 0], x[:, 1], x[:, 2]),
    "kendalltau": lambda m, x: m.kendalltau(x[:, 0], x[:, 1]),
    "ks_1samp": lambda m, x: m.ks_1samp(x[:, 0], scipy.stats.norm.cdf),
    "kstest": lambda m, x: m.kstest(x[:, 0] - 0.1, "norm"),
    "ks_2samp": lambda m, x: m.ks_2samp(x, x**2, axis=None),
    "mannwhitneyu": lambda m, x: m.mannwhitneyu(x, x**2, axis=1, method="asymptotic"),
    "mode": lambda m, x: m.mode(x, axis=0),
    "page_trend_test": lambda m, x: m.page_trend_test(x),
    "percentileofscore": lambda m, x: m.percentileofscore(x[:, 0], 0.2),
    "ppcc_max": lambda m, x: m.ppcc_max(x[:, 0], (0.05, 0.5)),
    "ppcc_plot": lambda m, x: m.ppcc_plot(x[:, 0], 0.1, 0.5, N=2)[1],
    "shapiro": lambda m, x: m.shapiro(x[:, 0]),
    "tukey_hsd": lambda m, x: m.tukey_hsd(x[:, 0], x[:, 1]),
    "yeojohnson_normplot": lambda m, x: m.yeojohnson_normplot(x[:, 0], -1, 2, N=2)[1],
    "quantile_test": lambda m, x: m.quantile_test(x[:, 0], q=0.1),
    "rankdata": lambda m, x: m.rankdata(x, axis=0, nan_policy="omit"),
    "spearmanr": lambda m, x: m.spearmanr(x[:, 0], x[:, 1]),
    "wilcoxon": lambda m, x: m.wilcoxon(x, axis=0, keepdims=True),
    "fisher_exact": lambda m, x: m.fisher_exact(TABLE + 0.1 * np.abs(x[:2, :2])),
}


@pytest.mark.parametrize("name", WITHOUT_DERIVATIVE)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ranks_counts_and_tests_have_values_and_no_derivative(name):
    def f(x):
        return _outputs(WITHOUT_DERIVATIVE[name](scipy.stats, x))

    expected = f(X)
    np.testing.assert_allclose(func.jit(f)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(func.vmap(f)(np.stack([X, X**2])), np.stack([expected, f(X**2)]), rtol=1e-12)
    with pytest.raises(func.errors.NotDifferentiableError, match=rf"scipy\.stats\.{name} has no derivative"):
        func.grad(lambda x: np.sum(f(x)))(X)


def test_results_are_scipys_objects():
    def f(x):
        results.append(scipy.stats.spearmanr(x[:, 0], x[:, 1]))
        return results[-1].statistic + 0.0

    results = [scipy.stats.spearmanr(X[:, 0], X[:, 1])]
    func.jit(f)(X)
    assert type(results[0]) is type(results[1])


def test_intervals_of_results_differentiate():
    def f(x):
        test = scipy.stats.ttest_ind(x[:, 0], x[:, 1], equal_var=False)
        correlation = scipy.stats.pearsonr(x[:, 0], x[:, 2]).confidence_interval(0.9)
        return np.sum(np.stack([*test.confidence_interval(0.9), test.df, *correlation]) ** 2)

    tangent = RNG.normal(size=X.shape)
    difference = (f(X + 1e-5 * tangent) - f(X - 1e-5 * tangent)) / 2e-5
    np.testing.assert_allclose(func.jvp(f, (X,), (tangent,))[1], difference, rtol=1e-6)


@pytest.mark.parametrize("method", ["inverted_cdf", "closest_observation", "linear", "round_inward", "harrell-davis"])
@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_quantiles_by_every_kind_of_method(method, policy):
    def f(x):
        return scipy.stats.quantile(x, np.array([[0.0], [0.3], [0.62], [1.0]]), method=method, nan_policy=policy)

    expected = f(HOLED)
    for got in (func.vjp(f, HOLED)[0], func.jit(f)(HOLED), func.vmap(f)(HOLED[None])[0]):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_statistics_in_bins_refuse_a_derivative_by_the_place_alone():
    with pytest.raises(func.errors.NotDifferentiableError, match="which bin"):
        func.grad(lambda x: np.nansum(scipy.stats.binned_statistic(x, X[:, 1], bins=2).statistic))(X[:, 0])


CUBE = RNG.uniform(0.1, 0.9, size=(4, 2))
POINTS = {
    **{
        method: lambda x, method=method: scipy.stats.qmc.discrepancy(x, method=method, iterative=method == "WD")
        for method in ("CD", "WD", "MD", "L2-star")
    },
    "update": lambda x: scipy.stats.qmc.update_discrepancy(x[0], x[1:], np.sum(x)),
    "mindist": lambda x: scipy.stats.qmc.geometric_discrepancy(x),
    "mst": lambda x: scipy.stats.qmc.geometric_discrepancy(x, method="mst", metric="cityblock"),
    "scale": lambda x: np.sum(scipy.stats.qmc.scale(x, x[0], x[0] + 2, reverse=False) ** 2),
}


@pytest.mark.parametrize("name", POINTS)
def test_discrepancies_of_points_differentiate(name):
    f, tangent = POINTS[name], RNG.normal(size=CUBE.shape)
    value, dot = func.jvp(func.jit(f), (CUBE,), (tangent,))
    np.testing.assert_allclose(value, f(CUBE), rtol=1e-11)
    np.testing.assert_allclose(dot, (f(CUBE + 1e-6 * tangent) - f(CUBE - 1e-6 * tangent)) / 2e-6, rtol=1e-6)


def test_new_distributions_search_and_integrate_with_derivatives():
    def f(a):
        gamma = scipy.stats.make_distribution(scipy.stats.gamma)(a=a)
        return gamma.icdf(0.3) + gamma.variance()

    np.testing.assert_allclose(func.grad(f)(1.7), (f(1.7 + 1e-5) - f(1.7 - 1e-5)) / 2e-5, rtol=1e-7)


REFUSED = {
    "mstats.winsorize": lambda x: scipy.stats.mstats.winsorize(x, (0.1, 0.1)),
    "mstats.ttest_ind": lambda x: scipy.stats.mstats.ttest_ind(x, x**2).pvalue,
    "qmc.MultinomialQMC": lambda x: scipy.stats.qmc.MultinomialQMC(x, n_trials=3),
    "permutation_test": lambda x: scipy.stats.permutation_test((x, X[:, 1]), _difference, n_resamples=9).pvalue,
    "monte_carlo_test": lambda x: (
        scipy.stats.monte_carlo_test(
            X[:, 0], lambda size: RNG.normal(size=size), lambda v, axis: np.mean(v * x[0], axis=axis), n_resamples=9
        ).pvalue
    ),
    "power": lambda x: (
        scipy.stats.power(
            lambda v, axis: scipy.stats.ttest_1samp(v, x[0], axis=axis),
            lambda size: RNG.normal(size=size),
            5,
            n_resamples=9,
        ).power
    ),
}


def _difference(a, b, axis):
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


@pytest.mark.parametrize("name", REFUSED)
def test_masked_arrays_and_resamples_are_refused_by_name(name):
    errors = (func.errors.NotDifferentiableError, func.errors.UnsupportedFunctionError)
    with pytest.raises(errors, match=name.replace(".", r"\.")) as caught:
        func.grad(lambda x: np.sum(REFUSED[name](x)))(np.abs(X[:, 0]))
    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: scipy.stats.boxcox(x, alpha=0.1), np.abs(X[:, 0]) + 0.3),
        (lambda x: (scipy.stats.boxcox_normmax(x, method="all"),), np.abs(X[:, 0]) + 0.3),
        (lambda x: scipy.stats.yeojohnson(x), X[:, 0]),
    ],
)
def test_best_powers_differentiate(f, x):
    def flat(x):
        return np.concatenate([np.ravel(part) for part in f(x)])

    tangent = RNG.normal(size=x.shape)
    differences = (flat(x + 2e-4 * tangent) - flat(x - 2e-4 * tangent)) / 4e-4
    np.testing.assert_allclose(func.jvp(flat, (x,), (tangent,))[1], differences, rtol=2e-3, atol=1e-4)


def test_bounded_box_cox_power_has_the_derivative_of_the_bound():
    x = np.array([6.0, 7.0, 8.5, 9.0, 9.2, 9.4])

    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return scipy.stats.boxcox_normmax(x, method="mle", ymax=5.0)

    differences = [(f(x + 1e-4 * e) - f(x - 1e-4 * e)) / 2e-4 for e in np.eye(6)]
    np.testing.assert_allclose(func.grad(f)(x), differences, rtol=1e-5, atol=1e-9)
