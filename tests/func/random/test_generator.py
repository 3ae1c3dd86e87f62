"""The random generator with state: NumPy's methods, and what it does inside vmap."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import func
import func.random as fr
from tests.func.random.test_random import COVARIANCE, PROBABILITIES

METHODS: dict[str, tuple[Any, ...]] = {
    "random": (), "integers": (5,), "standard_normal": (), "normal": (1.0, 2.0), "uniform": (1.0, 2.0),
    "exponential": (2.0,), "standard_exponential": (), "gamma": (2.0, 3.0), "standard_gamma": (2.0,),
    "beta": (1.0, 2.0),
    "binomial": (9, 0.3), "poisson": (3.0,), "laplace": (), "logistic": (), "lognormal": (), "gumbel": (),
    "geometric": (0.3,), "chisquare": (3.0,), "f": (3.0, 9.0), "pareto": (3.0,), "power": (2.0,), "rayleigh": (2.0,),
    "standard_cauchy": (), "standard_t": (5.0,), "triangular": (0.0, 1.0, 3.0), "wald": (1.0, 2.0), "weibull": (2.0,),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_distributed_as_those_of_numpy(name: str) -> None:
    ours, theirs = [
        getattr(rng, name)(*METHODS[name], size=(100, 30)) for rng in (fr.Generator(7), np.random.default_rng(7))
    ]
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert st.ks_2samp(ours.ravel(), theirs.ravel()).pvalue > 1e-3
    assert np.ndim(getattr(fr.Generator(7), name)(*METHODS[name])) == 0


def test_generator_moves_on_and_repeats() -> None:
    first, second = fr.Generator(3), fr.default_rng(3)
    drawn = first.normal(size=4)
    np.testing.assert_array_equal(drawn, second.normal(size=4))
    assert not (drawn == first.normal(size=4)).any()
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(restored.normal(size=4), first.normal(size=4))
    assert fr.default_rng(first) is first
    children = [*first.spawn(2), *first.spawn(1)]
    assert len({child.random() for child in children} | {first.random()}) == 4
    assert len(first.bytes(5)) == 5 and fr.Generator().random() != fr.Generator().random()


def test_choices_and_orders() -> None:
    rng = fr.Generator(1)
    x = np.arange(20)
    rng.shuffle(x)
    assert sorted(x) == list(range(20)) and list(x) != list(range(20))
    items = list("abcdefgh")
    rng.shuffle(items)
    assert sorted(items) == list("abcdefgh")
    assert sorted(rng.permuted(np.arange(6).reshape(2, 3)).ravel()) == list(range(6))
    np.testing.assert_array_equal(np.sort(rng.permuted(np.arange(6).reshape(2, 3), axis=1)), [[0, 1, 2], [3, 4, 5]])
    assert rng.choice(5, 3, replace=False).shape == (3,) and rng.choice(np.eye(3)).shape == (3,)
    assert rng.dirichlet(np.ones(3), 2).shape == (2, 3) and rng.multinomial(5, PROBABILITIES, 4).shape == (4, 3)
    assert rng.multivariate_normal(np.zeros(2), COVARIANCE, (5,)).shape == (5, 2)
    assert set(rng.integers(1, 3, 100, endpoint=True).tolist()) == {1, 2, 3}


def mapped(function: Callable[..., Any], randomness: str = "different", **options: Any) -> Any:
    """A function of (generator, x) mapped over six batch elements, with a new generator."""
    rng = fr.Generator(5)
    return func.vmap(lambda x: function(rng, x), randomness=randomness, **options)(np.arange(6.0))


def test_randomness_error_says_what_to_do() -> None:
    with pytest.raises(fr.RandomnessError, match=r"randomness='different'.*map keys"):
        mapped(lambda rng, x: x + rng.normal(), "error")


def test_randomness_same_and_different() -> None:
    same = mapped(lambda rng, x: 0 * x + rng.normal(), "same")
    assert len(set(same.tolist())) == 1 and same[0] == fr.Generator(5).normal()
    different = mapped(lambda rng, x: 0 * x + rng.normal(size=()))
    assert len(set(different.tolist())) == 6


def branching(rng: fr.Generator, x: Any) -> Any:
    """Draws before and after the batch is split by branches."""
    before = rng.normal()
    if x > 2:
        x = x + 1
    while x < 1:
        x = x + 0.5
    return 0 * x + before + rng.gamma(2.0)


def test_batch_elements_keep_their_samples_when_the_batch_is_split() -> None:
    plain = mapped(lambda rng, x: 0 * x + rng.normal() + rng.gamma(2.0))
    np.testing.assert_array_equal(mapped(branching), plain)
    for chunk_size in (1, 4, "auto"):
        np.testing.assert_array_equal(mapped(branching, chunk_size=chunk_size), plain)
    same = mapped(branching, "same")
    assert len(set(same.tolist())) == 1


def test_nested_vmaps_decide_for_their_own_batch_axis() -> None:
    def outer(rng: fr.Generator, x: Any, inner: str) -> Any:
        def body(y: Any) -> Any:
            return 0 * (x + y) + rng.normal() + (rng.normal() if x + y > 3 else 0.0)

        return func.vmap(body, randomness=inner)(np.arange(3.0))

    def table(first: str, second: str) -> Any:
        rng = fr.Generator(2)
        body = func.vmap(lambda y: rng.normal() + 0 * y, randomness=second)
        return func.vmap(lambda x: body(np.arange(3.0)) + 0 * x, randomness=first)(np.arange(2.0))

    assert len(np.unique(table("different", "different"))) == 6
    assert len(np.unique(table("same", "same"))) == 1
    rows, columns = table("different", "same"), table("same", "different")
    assert len(np.unique(rows)) == 2 and (rows == rows[:, :1]).all()
    assert len(np.unique(columns)) == 3 and (columns == columns[:1]).all()
    with pytest.raises(fr.RandomnessError):
        table("error", "same")
    nested = mapped(lambda rng, x: outer(rng, x, "different"))
    assert len(np.unique(nested)) == 18


def test_generator_moves_on_after_a_mapped_call() -> None:
    rng = fr.Generator(5)

    def draw(x: Any) -> Any:
        return rng.normal() if x > 2 else rng.normal() + rng.normal()

    first, second = [func.vmap(draw, randomness="different")(np.arange(6.0)) for _ in range(2)]
    assert not set(first.tolist()) & set(second.tolist())


def test_generator_under_derivatives() -> None:
    def loss(scale: Any, rng: fr.Generator) -> Any:
        return np.sum(rng.normal(0.0, scale, size=3))

    expected = np.sum(fr.Generator(9).normal(size=3))
    np.testing.assert_allclose(func.grad(lambda s: loss(s, fr.Generator(9)))(2.0), expected)
    rng = fr.Generator(9)
    gradients = func.vmap(func.grad(lambda s: loss(s, rng)), randomness="different")(np.ones(4))
    assert len(set(gradients.tolist())) == 4


def test_draws_for_each_element_inside_a_custom_rule_are_refused() -> None:
    rng = fr.Generator(9)

    @func.custom_jvp
    def noisy(x: Any) -> Any:
        return x + rng.normal()

    noisy.defjvp(lambda primals, tangents: (noisy(*primals), tangents[0]))
    with pytest.raises(fr.RandomnessError, match="custom rule"):
        func.vmap(noisy, randomness="different")(np.zeros(3))
    assert len(set(func.vmap(noisy, randomness="same")(np.zeros(3)).tolist())) == 1


@pytest.mark.parametrize("transform", [func.jit, func.make_program, lambda f: func.grad(func.jit(f))])
def test_draws_of_a_staged_function_are_refused(transform: Callable[[Any], Any]) -> None:
    """The program would give the same numbers each time that it runs."""
    rng = fr.Generator(0)
    with pytest.raises(fr.RandomnessError, match="the same numbers each time"):
        transform(lambda x: x + rng.normal())(1.0)
