"""Rules of general primitives that are traced once: their results are those of a trace in each call."""

from __future__ import annotations

import concurrent.futures as cf
import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import func
from func.backends.llvm import machine
from func.interpreters import staged_rules
from func.interpreters.calls import backward_plans
from func.interpreters.core import PRIMITIVES, Primitive, dtype_of
from func.interpreters.staged_rules import RULES, StagedRule
from tests.interpreters.primitives.test_samples import of_active
from tests.interpreters.test_compiled_backward import compiled_at_once, runs
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

__all__ = ["compiled_at_once", "runs"]

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(20261130)

GENERAL = [
    pytest.param(name, sample, id=f"{name}-{i}")
    for name, samples in SAMPLES.items()
    for i, sample in enumerate(samples)
    if type(PRIMITIVES[name]).record is Primitive.record
    and sample.differentiable
    and PRIMITIVES[name].defined_in.startswith(staged_rules.DEFINED_IN)
    and not PRIMITIVES[name].communicates
]


@pytest.fixture(autouse=True)
def no_rules() -> Iterator[None]:
    func.clear_caches()
    yield
    func.clear_caches()


def each_call(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> Any:
    """The result where every call stages its rules."""
    with monkeypatch.context() as patch:
        patch.setattr(staged_rules.Rules, "rule", lambda *args: False)
        return function()


def staged() -> list[Any]:
    """The rules that there are."""
    return [rule for rule in RULES._rules.values() if type(rule) is StagedRule]


def assert_same(actual: Any, expected: Any) -> None:
    for a, b in zip(func.tree.leaves(actual), func.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        assert dtype_of(a) == dtype_of(b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def cotangents(outs: Any) -> list[Any]:
    rng = np.random.default_rng(1)
    return [np.asarray(rng.normal(size=np.shape(out))).astype(dtype_of(out)) for out in outs]


@pytest.mark.parametrize(("name", "sample"), GENERAL)
def test_pullbacks_of_all_general_primitives(name: str, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    f = of_active(name, sample)
    active = [np.asarray(sample.args[i]) for i in sample.differentiable]

    def pulled() -> Any:
        outs, pull = func.vjp(f, *active)
        cts = cotangents(outs)
        masks = itertools.islice(itertools.product([1, 0], repeat=len(cts)), 4)
        return outs, [pull([ct * keep for ct, keep in zip(cts, mask, strict=True)]) for mask in masks]

    def of_each_output() -> Any:
        """Gradients of one output at a time: the others have no cotangent."""
        number = len(f(*active))
        places = tuple(range(len(active)))
        return [
            func.grad(lambda *x, i=i: np.sum(np.real(f(*x)[i]) ** 2), places)(*active) for i in range(min(number, 3))
        ]

    expected = each_call(monkeypatch, lambda: (pulled(), of_each_output()))
    for _ in range(3):
        assert_same((pulled(), of_each_output()), expected)
    large = any([type(value) is float for value in sample.args])
    assert staged() or large or False in RULES._rules.values()


A = RNG.normal(size=(5, 5))
S = A @ A.T + 5 * np.eye(5)
FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "slogdet": lambda x: np.linalg.slogdet(x)[1],
    "det": lambda x: np.linalg.det(x) * 0.01,
    "eigh": lambda x: np.sum(np.linalg.eigh(x)[0][1:] ** 2) + np.sum(np.linalg.eigh(x)[1] ** 4),
    "eigenvectors alone": lambda x: np.sum(np.linalg.eigh(x)[1][:, 1] ** 4),
    "eigvalsh": lambda x: np.sum(np.sin(np.linalg.eigvalsh(x))),
    "svd": lambda x: np.sum(np.linalg.svd(x)[1] ** 3) + np.sum(np.linalg.svd(x)[0] ** 4),
    "singular values": lambda x: np.sum(np.linalg.svd(x, compute_uv=False) ** 2.5),
    "qr": lambda x: np.sum(np.linalg.qr(x)[1] ** 2) + np.sum(np.linalg.qr(x)[0] ** 4),
    "lstsq": lambda x: np.sum(np.linalg.lstsq(x, x[0] * 2, rcond=None)[0] ** 2),
    "pinv": lambda x: np.sum(np.linalg.pinv(x) ** 2),
    "expm": lambda x: np.sum(scipy.linalg.expm(0.1 * x)),
    "cumprod": lambda x: np.sum(np.cumprod(0.5 * x, 0) * np.cos(x)),
    "maximum.accumulate": lambda x: np.sum(np.maximum.accumulate(x, 1) ** 2),
    "sort": lambda x: np.sum(np.sort(x, 0)[1:] * x[0]),
    "betainc": lambda x: np.sum(scipy.special.betainc(2.0 + x[0] ** 2, 3.0, scipy.special.expit(x))),
    "legendre": lambda x: np.sum(scipy.special.eval_legendre(3, 0.1 * x)),
    "complex eigenvalues": lambda x: np.sum(np.abs(np.linalg.eigvals(x + np.diag(np.arange(5.0)))) ** 2),
}
TRANSFORMS: dict[str, Callable[[Callable[[Array], Any]], Any]] = {
    "grad": lambda f: func.grad(f)(S),
    "value and grad": lambda f: func.value_and_grad(f)(S),
    "jacrev": lambda f: func.jacrev(lambda x: np.stack([f(x), f(x) ** 2]))(S),
    "grad of grad": lambda f: func.grad(lambda x: np.sum(func.grad(f)(x) ** 2))(S),
    "hvp": lambda f: func.jvp(func.grad(f), (S,), (A,)),
    "of samples": lambda f: func.vmap(func.grad(f))(np.stack([S, S + np.diag(np.arange(5.0))])),
    "jit of grad": lambda f: func.jit(func.grad(f))(S),
    "grad of jit": lambda f: func.grad(func.jit(f))(S),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(name: str, transform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    derivative = lambda: TRANSFORMS[transform](FUNCTIONS[name])  # noqa: E731
    expected = each_call(monkeypatch, derivative)
    for _ in range(3):
        assert_same(derivative(), expected)


@pytest.mark.skipif(not machine.available(), reason="no LLVM")
@pytest.mark.usefixtures("compiled_at_once")
@pytest.mark.parametrize("transform", ["grad", "jacrev", "of samples"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_passes_with_them_become_code(
    name: str, transform: str, monkeypatch: pytest.MonkeyPatch, runs: list[bool]
) -> None:
    derivative = lambda: TRANSFORMS[transform](FUNCTIONS[name])  # noqa: E731
    expected = each_call(monkeypatch, derivative)
    func.clear_caches()
    for _ in range(5):
        assert_same(derivative(), expected)
    if name in ("slogdet", "det", "eigvalsh", "cumprod", "maximum.accumulate") and transform == "grad":
        assert runs[-1]


def test_when_rules_are_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = func.grad(FUNCTIONS["slogdet"])
    gradient(S)
    assert not staged()
    gradient(S)
    (rule,) = staged()
    gradient(S[:4, :4])
    gradient(S.astype(np.float32))
    assert staged() == [rule]
    gradient(S[:4, :4])
    gradient(S.astype(np.float32))
    assert len(staged()) == 3
    func.clear_caches()
    assert not staged()
    monkeypatch.setattr(staged_rules, "MOST_RULES", 4)
    for n in (*range(1, 9), *range(1, 9)):
        gradient(S[:1, :1] * np.eye(n))
        assert len(RULES._rules) <= 4


def test_large_constants_are_not_held() -> None:
    x = RNG.normal(size=(600, 600))
    for _ in range(3):
        func.grad(lambda x: np.sum(np.linalg.qr(x)[1] ** 2))(x)
    assert all([np.asarray(1).nbytes <= staged_rules.MOST_BYTES for rule in staged()])
    held = sum([getattr(value, "nbytes", 0) for rule in staged() for value in rule._forward._values])
    assert held <= 2 * staged_rules.MOST_BYTES


def test_rules_hold_no_data() -> None:
    """A rule outlives the arrays of the call that has traced it."""
    x = [S + 1.0]
    watched = weakref.ref(x[0])
    for _ in range(3):
        func.grad(FUNCTIONS["eigh"])(x[0])
    assert staged()
    x.clear()
    gc.collect()
    assert watched() is None


def test_nan_traps() -> None:
    """Structural zeros hold: an unselected value has no influence, whatever its partials are."""

    def products(x: Array) -> Any:
        return np.sum(np.where(x[0] > 0, np.cumprod(np.sqrt(x), 0)[0], 0.0))

    def eigen(x: Array) -> Any:
        values, vectors = np.linalg.eigh(x)
        return np.sum(np.where(np.arange(3) > 5, vectors[0], 0.0)) + np.sum(values)

    x = np.array([[1.0, 0.0, 4.0], [2.0, 0.0, 1.0]])
    for _ in range(4):
        gradient = func.grad(products)(x)
        np.testing.assert_allclose(gradient, [[0.5, 0.0, 0.25], [0.0, 0.0, 0.0]])
        np.testing.assert_allclose(func.grad(eigen)(np.eye(3)), np.eye(3), atol=1e-12)


@pytest.mark.parametrize("wrong", [np.zeros((3, 3)), np.full((3, 3), np.nan)])
@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "lstsq", "slogdet", "det"])
def test_errors_and_odd_values_are_the_same(name: str, wrong: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> Any:
        try:
            with np.errstate(all="ignore"):
                return func.value_and_grad(FUNCTIONS[name])(wrong)
        except Exception as error:
            return type(error), str(error)

    for _ in range(3):
        func.grad(FUNCTIONS[name])(S[:3, :3])
    expected, actual = each_call(monkeypatch, outcome), outcome()
    if isinstance(expected[0], type):
        assert actual == expected
    else:
        assert_same(actual, expected)


def test_tensors() -> None:
    expected = func.grad(FUNCTIONS["eigh"])(S)
    twice = func.grad(lambda x: np.sum(func.grad(FUNCTIONS["eigh"])(x) ** 2))(S)
    for _ in range(4):
        x = func.tensor(S, requires_grad=True)
        FUNCTIONS["eigh"](x).backward()
        np.testing.assert_allclose(x.grad, expected, rtol=1e-10, atol=1e-12)
        y = func.tensor(S, requires_grad=True)
        (first,) = func.autograd.grad(FUNCTIONS["eigh"](y), [y], create_graph=True)
        (second,) = func.autograd.grad((first**2).sum(), [y])
        np.testing.assert_allclose(second, twice, rtol=1e-8, atol=1e-10)


def test_writes_after_the_use() -> None:
    data = S.copy()

    def f(x: Array) -> Any:
        value = np.sum(np.linalg.lstsq(x, data, rcond=None)[0] ** 2)
        data[:] = 0.0
        return value

    expected = func.grad(f)(S + 1)
    for _ in range(3):
        data[:] = S
        np.testing.assert_allclose(func.grad(f)(S + 1), expected, rtol=1e-12)


def test_threads() -> None:
    expected = {n: func.grad(FUNCTIONS["svd"])(S[:n, :n]) for n in range(2, 6)}

    def work(k: int) -> bool:
        n = 2 + k % 4
        return all([np.allclose(func.grad(FUNCTIONS["svd"])(S[:n, :n]), expected[n], rtol=1e-9) for _ in range(20)])

    with cf.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(16)))


def test_the_estimate_knows_them() -> None:
    for _ in range(3):
        func.grad(FUNCTIONS["eigh"])(S)
    assert all([rule.pull_operations((), None, {}) > staged_rules.OPERATIONS_OF_STEP for rule in staged()])
    assert backward_plans.HOST.operation * staged_rules.OPERATIONS_OF_STEP < 5e-6


def test_parameters_and_arguments_tell_rules_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    functions: list[Callable[[Array], Any]] = [
        lambda x: np.sum(np.cumprod(x, 0) * A),
        lambda x: np.sum(np.cumprod(x, 1) * A),
        lambda x: np.sum(np.sort(x, 0) * A),
        lambda x: np.sum(np.sort(x, 1) * A),
        lambda x: np.sum(np.linalg.eigvalsh(x, "L") ** 3),
        lambda x: np.sum(np.linalg.eigvalsh(x, "U") ** 3),
        lambda x: np.sum(np.linalg.lstsq(x, S, rcond=None)[0] * A),
        lambda x: np.sum(np.linalg.lstsq(S, x, rcond=None)[0] * A),
        lambda x: np.sum(np.linalg.lstsq(x, x * x + S, rcond=None)[0] * A),
        lambda x: np.sum(scipy.special.eval_legendre(2, 0.1 * x)),
        lambda x: np.sum(scipy.special.eval_legendre(3, 0.1 * x)),
    ]
    x = A + 3 * np.eye(5)
    expected = each_call(monkeypatch, lambda: [func.grad(f)(x) for f in functions])
    for _ in range(4):
        assert_same([func.grad(f)(x) for f in functions], expected)
