"""Random samples: raw bits, distributions, derivatives, batches of keys, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats as st

import func
import func.random as fr
from func.backends.array_helpers.random import threefry
from func.interpreters.primitives.random.variates import slope

KEY = fr.key(2024)
COUNT = 20000
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])

ONES = 0xFFFFFFFF
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""(key, counter, words): the known answers that the authors distribute with Random123."""

CONTINUOUS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (lambda k, s: fr.uniform(k, s, minval=-1, maxval=2), st.uniform(-1, 3)),
    "normal": (lambda k, s: fr.normal(k, s, loc=1.0, scale=2.0), st.norm(1, 2)),
    "exponential": (lambda k, s: fr.exponential(k, s, scale=2.0), st.expon(scale=2)),
    "laplace": (lambda k, s: fr.laplace(k, s, loc=1.0, scale=2.0), st.laplace(1, 2)),
    "logistic": (lambda k, s: fr.logistic(k, s), st.logistic()),
    "gumbel": (lambda k, s: fr.gumbel(k, s), st.gumbel_r()),
    "cauchy": (lambda k, s: fr.cauchy(k, s), st.cauchy()),
    "lognormal": (lambda k, s: fr.lognormal(k, 0.5, s), st.lognorm(0.5)),
    "rayleigh": (lambda k, s: fr.rayleigh(k, 2.0, s), st.rayleigh(scale=2)),
    "weibull_min": (lambda k, s: fr.weibull_min(k, 2.0, 1.5, s), st.weibull_min(1.5, scale=2)),
    "pareto": (lambda k, s: fr.pareto(k, 3.0, s), st.pareto(3)),
    "triangular": (lambda k, s: fr.triangular(k, 1.0, 1.6, 3.0, s), st.triang(0.3, 1, 2)),
    "truncated_normal": (lambda k, s: fr.truncated_normal(k, -1.0, 0.5, s), st.truncnorm(-1, 0.5)),
    "truncated_normal_tail": (lambda k, s: fr.truncated_normal(k, 6.0, np.inf, s), st.truncnorm(6, np.inf)),
    "gamma_small": (lambda k, s: fr.gamma(k, 0.05, s), st.gamma(0.05)),
    "gamma": (lambda k, s: fr.gamma(k, 2.5, s, scale=3.0), st.gamma(2.5, scale=3)),
    "gamma_large": (lambda k, s: fr.gamma(k, 5000.0, s), st.gamma(5000)),
    "loggamma": (lambda k, s: fr.loggamma(k, 0.7, s), st.loggamma(0.7)),
    "beta": (lambda k, s: fr.beta(k, 0.5, 2.0, s), st.beta(0.5, 2)),
    "chisquare": (lambda k, s: fr.chisquare(k, 3.0, s), st.chi2(3)),
    "f": (lambda k, s: fr.f(k, 3.0, 5.0, s), st.f(3, 5)),
    "t": (lambda k, s: fr.t(k, 4.0, s), st.t(4)),
    "wald": (lambda k, s: fr.wald(k, 0.5, s), st.invgauss(0.5)),
    "maxwell": (lambda k, s: fr.maxwell(k, s), st.maxwell()),
    "double_sided_maxwell": (lambda k, s: (fr.double_sided_maxwell(k, 1.0, 2.0, s) - 1) ** 2 / 4, st.chi2(3)),
    "generalized_normal": (lambda k, s: fr.generalized_normal(k, 1.5, s), st.gennorm(1.5)),
    "dirichlet": (lambda k, s: fr.dirichlet(k, np.array([1.0, 2.0, 3.0]), s)[..., 0], st.beta(1, 5)),
    "ball": (lambda k, s: (fr.ball(k, 3, shape=s) ** 2).sum(-1) ** 1.5, st.uniform()),
    "orthogonal": (lambda k, s: (1 + fr.orthogonal(k, 3, s)[..., 0, 0]) / 2, st.uniform()),
    "multivariate_normal": (
        lambda k, s: fr.multivariate_normal(k, np.ones(2), COVARIANCE, s) @ np.array([1.0, -1.0]),
        st.norm(0, np.sqrt(2)),
    ),
}

PROBABILITIES = np.array([0.2, 0.5, 0.3])
DISCRETE: dict[str, tuple[Callable[..., Any], Any]] = {
    "randint": (lambda k, s: fr.randint(k, s, -3, 4), st.randint(-3, 4)),
    "bernoulli": (lambda k, s: fr.bernoulli(k, 0.3, s).astype(int), st.bernoulli(0.3)),
    "rademacher": (lambda k, s: (fr.rademacher(k, s) + 1) // 2, st.bernoulli(0.5)),
    "poisson": (lambda k, s: fr.poisson(k, 3.0, s), st.poisson(3)),
    "poisson_large": (lambda k, s: fr.poisson(k, 40.0, s), st.poisson(40)),
    "binomial": (lambda k, s: fr.binomial(k, 10, 0.6, s), st.binom(10, 0.6)),
    "binomial_large": (lambda k, s: fr.binomial(k, 100, 0.7, s), st.binom(100, 0.7)),
    "geometric": (lambda k, s: fr.geometric(k, 0.3, s), st.geom(0.3)),
    "multinomial": (lambda k, s: fr.multinomial(k, 8, PROBABILITIES, (*s, 3))[..., 1], st.binom(8, 0.5)),
    "categorical": (
        lambda k, s: fr.categorical(k, np.log(PROBABILITIES), shape=s),
        st.rv_discrete(values=(range(3), PROBABILITIES)),
    ),
    "choice": (
        lambda k, s: fr.choice(k, 3, s, p=PROBABILITIES),
        st.rv_discrete(values=(range(3), PROBABILITIES)),
    ),
    "choice_one": (
        lambda k, s: func.vmap(lambda key: fr.choice(key, 5, (2,), False)[1])(fr.split(k, s)),
        st.randint(0, 5),
    ),
    "permutation": (lambda k, s: func.vmap(lambda key: fr.permutation(key, 4)[2])(fr.split(k, s)), st.randint(0, 4)),
}

PARAMETERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "uniform": (lambda x: fr.uniform(KEY, (3,), minval=x, maxval=x * x + 2), 0.7),
    "normal": (lambda x: fr.normal(KEY, (3,), loc=x, scale=x * x), 0.7),
    "exponential": (lambda x: fr.exponential(KEY, (3,), scale=x), 0.7),
    "laplace": (lambda x: fr.laplace(KEY, (3,), loc=x, scale=x * x), 0.7),
    "gumbel": (lambda x: fr.gumbel(KEY, (3,), loc=x, scale=x * x), 0.7),
    "lognormal": (lambda x: fr.lognormal(KEY, x, (3,)), 0.7),
    "rayleigh": (lambda x: fr.rayleigh(KEY, x, (3,)), 0.7),
    "weibull_min": (lambda x: fr.weibull_min(KEY, x, x + 1, (3,)), 0.7),
    "pareto": (lambda x: fr.pareto(KEY, x, (3,)), 1.7),
    "triangular": (lambda x: fr.triangular(KEY, 0.0, x, 2.0, (5,)), 0.7),
    "truncated_normal": (lambda x: fr.truncated_normal(KEY, x, x * x + 2, (4,)), 0.7),
    "truncated_normal_tail": (lambda x: fr.truncated_normal(KEY, 8 + x, np.inf, (4,)), 0.7),
    "gamma": (lambda x: fr.gamma(KEY, x, (4,), scale=x), 1.3),
    "loggamma": (lambda x: fr.loggamma(KEY, x, (4,)), 0.02),
    "beta": (lambda x: fr.beta(KEY, x, x + 1, (4,)), 0.7),
    "dirichlet": (lambda x: fr.dirichlet(KEY, x * np.arange(1.0, 4.0), (2,)), 0.7),
    "chisquare": (lambda x: fr.chisquare(KEY, x, (4,)), 3.5),
    "f": (lambda x: fr.f(KEY, x, x + 1, (4,)), 3.5),
    "t": (lambda x: fr.t(KEY, x, (4,)), 3.5),
    "multivariate_normal": (lambda x: fr.multivariate_normal(KEY, x * np.ones(2), x * COVARIANCE, (3,)), 0.7),
    "multivariate_normal_eigh": (
        lambda x: fr.multivariate_normal(KEY, np.zeros(2), x * COVARIANCE, method="eigh"),
        0.7,
    ),
    "permutation": (lambda x: fr.permutation(KEY, x * np.arange(4.0)), 0.7),
    "choice": (lambda x: fr.choice(KEY, x * np.arange(4.0), (3,)), 0.7),
}


@pytest.mark.parametrize(("key", "counter", "words"), VECTORS)
def test_threefry_gives_the_known_answers(key: Any, counter: Any, words: Any) -> None:
    arrays = [np.array([word], np.uint32) for word in (*key, *counter)]
    assert tuple([int(word[0]) for word in threefry(np, *arrays)]) == words


def test_first_word_of_a_zero_key_is_the_known_answer() -> None:
    assert fr.bits(fr.key(0), (1,), np.uint64) == [0x6B20015999BA4EFE]
    np.testing.assert_array_equal(fr.bits(fr.key(0), (2,)), [0x6B200159, 0x99BA4EFE])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_bits_are_fair(dtype: Any) -> None:
    words = fr.bits(KEY, (COUNT,), dtype)
    assert words.dtype == dtype
    for place in range(words.dtype.itemsize * 8):
        assert abs(int((words >> dtype(place) & dtype(1)).sum()) - COUNT / 2) < 5 * np.sqrt(COUNT) / 2


def test_an_element_depends_on_key_and_place_only() -> None:
    long = fr.uniform(KEY, (50000,))
    np.testing.assert_array_equal(fr.uniform(KEY, (100,)), long[:100])
    np.testing.assert_array_equal(fr.uniform(KEY, (10, 20)), long[:200].reshape(10, 20))


def test_keys_made_of_keys_differ() -> None:
    keys = [KEY, *fr.split(KEY, 5), *[fr.fold_in(KEY, i) for i in (0, 1, 2**40, -1)], fr.bits(KEY, (2,))]
    assert len({key.tobytes() for key in keys}) == len(keys)
    np.testing.assert_array_equal(fr.split(KEY, (2, 3)).reshape(6, 2), fr.split(KEY, 6))
    np.testing.assert_array_equal(fr.key(-1), [ONES, ONES])
    np.testing.assert_array_equal(func.vmap(fr.key)(np.arange(3)), np.stack([fr.key(i) for i in range(3)]))
    folded = func.vmap(lambda i: fr.fold_in(KEY, i))(np.arange(3))
    np.testing.assert_array_equal(folded, np.stack([fr.fold_in(KEY, i) for i in range(3)]))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution(name: str) -> None:
    draw, distribution = CONTINUOUS[name]
    assert st.kstest(draw(KEY, (COUNT,)), distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name: str) -> None:
    draw, distribution = DISCRETE[name]
    sample = draw(KEY, (COUNT,))
    values = np.arange(sample.min(), sample.max() + 1)
    expected = distribution.pmf(values) * COUNT
    observed = np.array([(sample == value).sum() for value in values])
    often = expected > 10
    observed = np.append(observed[often], observed[~often].sum())
    expected = np.append(expected[often], COUNT - expected[often].sum())
    if expected[-1] < 1e-6:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert st.chi2.sf(statistic, len(observed) - 1) > 1e-3


@pytest.mark.parametrize("name", CONTINUOUS | DISCRETE)
def test_mapping_over_keys_is_a_loop(name: str) -> None:
    draw, _ = (CONTINUOUS | DISCRETE)[name]
    keys = fr.split(KEY, 5)
    mapped = func.vmap(lambda key: draw(key, (7,)))(keys)
    singles = np.stack([draw(key, (7,)) for key in keys])
    assert mapped.dtype == singles.dtype
    if name in ("orthogonal", "multivariate_normal"):  # their matrix products may round differently
        np.testing.assert_allclose(mapped, singles, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(mapped, singles)


def test_mapping_over_parameters_is_a_loop() -> None:
    rates = np.array([0.5, 3.0, 20.0, 70.0])
    for draw in (fr.poisson, fr.gamma, fr.wald, fr.t, lambda k, r: fr.binomial(k, 100, r / 100)):
        np.testing.assert_array_equal(
            func.vmap(lambda rate, draw=draw: draw(KEY, rate))(rates), np.stack([draw(KEY, rate) for rate in rates])
        )


def test_integers_cover_wide_ranges() -> None:
    whole = fr.randint(KEY, (COUNT,), -(2**63), 2**63)
    assert whole.dtype == np.int64 and abs((whole > 0).mean() - 0.5) < 0.02
    assert fr.randint(KEY, (3,), 0, 2**64, np.uint64).dtype == np.uint64
    assert set(fr.randint(KEY, (5000,), 0, 256, np.uint8).tolist()) == set(range(256))
    # Two thirds of 2^64: without rejection the lower half of the outcomes would be twice as likely.
    high = 2**64 // 3 * 2
    assert abs((fr.randint(KEY, (COUNT,), 0, high, np.uint64) < np.uint64(high // 2)).mean() - 0.5) < 0.02


def test_choice_without_replacement_takes_no_element_twice() -> None:
    for p in (None, np.array([0.1, 0.2, 0.0, 0.3, 0.4])):
        chosen = func.vmap(lambda key, p=p: fr.choice(key, 5, (4,), False, p))(fr.split(KEY, 200))
        assert all([len(set(row)) == 4 for row in chosen.tolist()])
        assert p is None or not (chosen == 2).any()
    rows = fr.permutation(KEY, np.tile(np.arange(9), (4, 1)), 1, independent=True)
    np.testing.assert_array_equal(np.sort(rows), np.tile(np.arange(9), (4, 1)))
    assert len({row.tobytes() for row in rows}) == 4


def test_multinomial_counts_add_up() -> None:
    counts = fr.multinomial(KEY, np.array([[5], [60]]), np.array([0.2, 0.0, 0.5, 0.3]), (2, 100, 4))
    np.testing.assert_array_equal(counts.sum(-1), np.repeat([[5], [60]], 100, 1))
    assert not counts[..., 1].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_dtypes(dtype: Any) -> None:
    draws = (fr.uniform, fr.normal, fr.exponential, fr.laplace, fr.logistic, fr.gumbel, fr.maxwell)
    for draw in draws:
        sample = draw(KEY, (1000,), dtype)
        assert sample.dtype == dtype and np.isfinite(sample).all()
    for draw in (fr.gamma, fr.t, fr.chisquare, fr.wald, fr.pareto, fr.lognormal):
        assert draw(KEY, np.float32(2.0), (5,), dtype).dtype == dtype
    assert fr.truncated_normal(KEY, -1, 1, (5,), dtype).dtype == dtype
    assert fr.uniform(KEY, (COUNT,), dtype).max() < 1
    assert func.grad(lambda a: fr.gamma(KEY, a, dtype=np.float32))(np.float32(2.0)).dtype == np.float32


@pytest.mark.parametrize("name", PARAMETERS)
def test_sample_differentiates_in_its_parameter(name: str) -> None:
    draw, at = PARAMETERS[name]
    step = 1e-4 * min(at, 1.0)
    near = [draw(at + i * step) for i in (-2, -1, 1, 2)]
    expected = (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * step)
    value, forward = func.jvp(draw, (at,), (1.0,))
    np.testing.assert_array_equal(value, draw(at))
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(func.jacrev(draw)(at), forward, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("a", [1e-6, 1e-3, 0.3, 1.0, 4.0, 60.0, 1e4])
def test_derivative_of_gamma_against_high_precision(a: float) -> None:
    with mpmath.workdps(40):
        for x in (1e-9, 0.2 * a, a, a + 1.0, a + 1.01, a + 2 * a**0.5, 2 * a + 3):
            if a > 100 and abs(x - a) > 5 * a**0.5:
                continue
            y = float(mpmath.log(mpmath.mpf(x)))
            point = mpmath.exp(mpmath.mpf(y))
            upper = x > a
            ends = (point, mpmath.inf) if upper else (0, point)
            h = mpmath.mpf(10) ** -12 * a
            change = mpmath.diff(lambda b, ends=ends: mpmath.gammainc(b, *ends, regularized=True), a, h=h)
            density = mpmath.exp(a * y - point - mpmath.loggamma(a))
            expected = float((change if upper else -change) / density)
            np.testing.assert_allclose(slope(np.float64(a), np.float64(y), order=0), expected, rtol=1e-11)


def test_derivatives_follow_the_quantile() -> None:
    sample, dot = func.jvp(lambda a: fr.gamma(KEY, a, (50,)), (2.5,), (1.0,))
    unit, step = st.gamma(2.5).cdf(sample), 1e-5
    expected = (st.gamma(2.5 + step).ppf(unit) - st.gamma(2.5 - step).ppf(unit)) / (2 * step)
    np.testing.assert_allclose(dot, expected, rtol=1e-6)
    sample, dot = func.jvp(lambda m: fr.wald(KEY, m, (50,)), (0.7,), (1.0,))
    unit = st.invgauss(0.7).cdf(sample)
    expected = (st.invgauss(0.7 + step).ppf(unit) - st.invgauss(0.7 - step).ppf(unit)) / (2 * step)
    np.testing.assert_allclose(dot, expected, rtol=1e-6)


def test_derivative_of_a_mean_is_the_mean_of_derivatives() -> None:
    slope_of_mean = func.grad(lambda a: np.mean(fr.gamma(KEY, a, (COUNT,)) ** 2))(1.5)
    np.testing.assert_allclose(slope_of_mean, 2 * 1.5 + 1, rtol=0.05)  # E x² = a² + a
    np.testing.assert_allclose(func.grad(lambda m: np.mean(fr.wald(KEY, m, (COUNT,))))(0.7), 1.0, rtol=0.05)


def test_second_derivative_of_gamma() -> None:
    def first(a: Any) -> Any:
        return func.grad(lambda b: fr.gamma(KEY, b))(a)

    step = 1e-5
    expected = (first(1.7 + step) - first(1.7 - step)) / (2 * step)
    np.testing.assert_allclose(func.grad(first)(1.7), expected, rtol=1e-6)


def test_gradient_maps_over_keys() -> None:
    keys = fr.split(KEY, 4)
    gradient = func.grad(lambda a, key: np.sum(fr.beta(key, a, 2.0, (3,))))
    mapped = func.vmap(gradient, in_dims=(None, 0))(0.8, keys)
    np.testing.assert_allclose(mapped, [gradient(0.8, key) for key in keys], rtol=1e-12)


def test_counts_leave_the_derivative() -> None:
    def loss(rate: Any) -> Any:
        count = fr.poisson(KEY, rate) + fr.binomial(KEY, 10, rate / 10) + fr.categorical(KEY, rate * np.arange(3.0))
        assert not isinstance(count, type(rate)) and int(count) >= 0
        return rate * count

    assert func.grad(loss)(2.0) == loss_count(2.0)


def loss_count(rate: float) -> Any:
    """The count in the loss above."""
    return fr.poisson(KEY, rate) + fr.binomial(KEY, 10, rate / 10) + fr.categorical(KEY, rate * np.arange(3.0))


REFUSED: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, r"func\.random\.key\(seed\)", lambda: fr.normal(3)),
    (TypeError, r"func\.random\.key\(seed\)", lambda: fr.normal(np.zeros(2))),
    (TypeError, r"func\.random\.key\(seed\)", lambda: fr.gamma(np.zeros(3, np.uint32), 1.0)),
    (TypeError, r"func\.vmap", lambda: fr.normal(fr.split(KEY))),
    (TypeError, "one integer", lambda: fr.key(1.5)),
    (TypeError, "one integer", lambda: fr.fold_in(KEY, 0.5)),
    (TypeError, "dtype must be uint8", lambda: fr.bits(KEY, (), np.int32)),
    (TypeError, "dtype must be float64", lambda: fr.normal(KEY, (), np.int64)),
    (TypeError, "integer type", lambda: fr.randint(KEY, (), 0, 3, float)),
    (TypeError, "must be real", lambda: fr.normal(KEY, scale=1j)),
    (ValueError, "must not be negative", lambda: fr.normal(KEY, (-1,))),
    (ValueError, "full shape", lambda: fr.normal(KEY, (3,), scale=np.ones(2))),
    (ValueError, "minval must be below maxval", lambda: fr.uniform(KEY, minval=2, maxval=1)),
    (ValueError, "scale must not be negative", lambda: fr.normal(KEY, scale=-1.0)),
    (ValueError, "scale must not be negative", lambda: func.grad(lambda s: fr.normal(KEY, scale=s))(-1.0)),
    (ValueError, "scale must not be negative", lambda: func.vmap(lambda s: fr.normal(KEY, scale=s))(-np.ones(2))),
    (ValueError, "minval must be below maxval", lambda: fr.randint(KEY, (), 3, 3)),
    (ValueError, "out of bounds for uint8", lambda: fr.randint(KEY, (), 0, 300, np.uint8)),
    (ValueError, "between 0 and 1", lambda: fr.bernoulli(KEY, 1.5)),
    (ValueError, "between 0 and 1", lambda: fr.binomial(KEY, 3, -0.1)),
    (ValueError, "lam must not be negative", lambda: fr.poisson(KEY, -1.0)),
    (ValueError, "a must be positive", lambda: fr.gamma(KEY, 0.0)),
    (ValueError, "lower must be below upper", lambda: fr.truncated_normal(KEY, 1.0, 1.0)),
    (ValueError, "left must not exceed mode", lambda: fr.triangular(KEY, 2.0, 1.0, 3.0)),
    (ValueError, "without replacement", lambda: fr.choice(KEY, 3, (4,), False)),
    (ValueError, "add up to one", lambda: fr.choice(KEY, 3, p=[0.1, 0.1, 0.1])),
    (ValueError, "do not fit together", lambda: fr.multivariate_normal(KEY, [1.0], COVARIANCE)),
    (ValueError, "'cholesky', 'eigh' or 'svd'", lambda: fr.multivariate_normal(KEY, [1.0, 2], COVARIANCE, method="lu")),
]


@pytest.mark.parametrize(("kind", "words", "call"), REFUSED)
def test_bad_input_is_refused_in_words(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=words):
        call()
