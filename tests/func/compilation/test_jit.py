"""jit: its cache, its refusals, and the agreement of every composition with the plain function."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

X = np.linspace(0.2, 1.4, 5)


def wave(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def layers(params: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ params["w"] + params["b"]) ** 2)


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] ** 2
    view = y[::2]
    view *= 3
    y += x
    return np.sum(y * y)


PARAMS = {"w": np.linspace(-1, 1, 15).reshape(5, 3), "b": np.ones(3)}


@pytest.mark.parametrize("f", [wave, written, np.sort, lambda x: x[::-1].reshape(5, 1).T, lambda x: (x, x, x.T, 3)])
def test_results_are_those_of_the_function(f: Callable[[Any], Any]) -> None:
    for got, wanted in zip(func.tree.leaves(func.jit(f)(X)), func.tree.leaves(f(X)), strict=True):
        assert type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_trees_keywords_and_scalars() -> None:
    @func.jit
    def f(a: Any, *, b: Any, c: float = 2.0) -> Any:
        return {"sum": a[0] + b["x"] * c, "pair": (a[1], None, [c])}

    out = f((X, 1), b={"x": X})
    np.testing.assert_array_equal(out["sum"], 3 * X)
    assert out["pair"] == (1, None, [2.0]) and type(out["pair"][0]) is int
    assert f((X, 1), b={"x": X}, c=3.0)["pair"][2] == [3.0]
    assert f.cache_info().misses == 2


@pytest.mark.parametrize("compiler", [None, "numpy"])
def test_results_are_the_callers_own(compiler: str | None) -> None:
    constant = np.ones(3)
    f = func.jit(lambda x: (x, x, x.T, constant, x[1:]), compiler=compiler)
    x = np.arange(4.0)
    outs = f(x)
    for out in outs:
        out[...] = -1
    assert x.tolist() == [0, 1, 2, 3] and constant.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(f(x)[3], np.ones(3))


def test_constants_of_inner_functions_are_not_handed_out() -> None:
    f = func.jit(lambda x: func.jit(lambda y: np.zeros_like(y) + np.ones(3))(x))
    a = f(np.ones(3))
    a[:] = 7
    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))
    x = np.arange(3.0)
    same = func.jit(lambda y: y)
    for g in (lambda x: x * 1.0, lambda x: x.reshape(1, 3).reshape(3), lambda x: x.T, same):
        out = func.jit(g)(x)
        out += 1
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_results_of_earlier_calls_stay() -> None:
    f = func.jit(lambda x: np.sin(x) * x + 1)
    for size in (3, 70_000, 300_000):
        first = f(np.ones(size))
        kept = first.copy()
        held = first[5:] if size > 5 else first
        second = f(np.zeros(size))
        third = f(np.full(size, 2.0))
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(second, 1.0)
        assert not np.shares_memory(second, third) and not np.shares_memory(held, third)


def test_memory_of_dropped_results_is_used_again() -> None:
    f = func.jit(lambda x: np.sin(x) * x)
    x = np.ones(300_000)
    places = set()
    for _ in range(6):
        places.add(f(x).ctypes.data)
    assert len(places) <= 2


@pytest.mark.parametrize("size", [1, 10, (1 << 17) + 7, 1 << 18])
def test_blocks_give_what_whole_arrays_give(size: int) -> None:
    x = np.linspace(0.1, 3, size)

    def f(x: Any, c: Any) -> Any:
        y = np.exp(-x) * c
        z = np.where(y > 0.5, y, x * y + 1)
        return z, np.sqrt(z) + y, np.sum(z)

    for got, wanted in zip(func.jit(f, compiler="numpy")(x, 2.0), f(x, 2.0), strict=True):
        np.testing.assert_array_equal(got, wanted)
    strided = np.stack([x, x], axis=1)[:, 0]
    for got, wanted in zip(func.jit(f, compiler="numpy")(strided, 2.0), f(strided, 2.0), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_no_input_is_written_to() -> None:
    x = np.arange(200_000.0)
    kept = x.copy()
    func.jit(lambda x: ((x * 2 + 1) * x, np.negative(x)))(x)
    np.testing.assert_array_equal(x, kept)


def counted() -> tuple[Callable[..., Any], list[int]]:
    calls: list[int] = []

    def f(x: Any, *rest: Any) -> Any:
        calls.append(1)
        return x * 2

    return f, calls


def test_one_trace_for_each_kind_of_argument() -> None:
    f, calls = counted()
    jitted = func.jit(f)
    for x in (
        X,
        X + 1,
        X.astype(np.float32),
        X[:3],
        X[:3],
        2.0,
        3.0,
        2,
        np.float64(2),
        np.ones(()),
        True,
        1j,
        [1.0],
        (1.0,),
    ):
        np.testing.assert_array_equal(jitted(np.asarray(x) if isinstance(x, (list, tuple)) else x), np.multiply(x, 2))
    assert len(calls) == len({"f64[5]", "f32[5]", "f64[3]", "float", "int", "f64[]", "bool", "complex", "f64[1]"})
    info = jitted.cache_info()
    assert info.misses == info.currsize == len(calls)
    jitted.clear_cache()
    assert jitted.cache_info() == (0, 0, 256, 0)


def test_the_cache_is_bounded() -> None:
    f, calls = counted()
    jitted = func.jit(f)
    for n in range(300):
        jitted(np.ones(n))
    assert jitted.cache_info().currsize == 256
    for n in (299, 298, 44):
        jitted(np.ones(n))
    assert len(calls) == 300
    jitted(np.ones(43))
    assert len(calls) == 301


def test_numbers_and_arrays_of_one_dtype_have_programs_of_their_own() -> None:
    """A number with single precision gives single precision, an array of doubles does not, also if it is traced."""
    x = np.ones(3, np.float32)
    inner = func.jit(lambda x, s: x * s)
    outer = func.jit(lambda x, s: inner(x, s))
    for f in (inner, outer):
        for s in (2.0, np.float64(2.0), 3.0, np.float64(3.0)):
            assert f(x, s).dtype == (x * s).dtype


@pytest.mark.parametrize("compiler", [None, "numpy"])
def test_trees_of_the_same_leaves_have_programs_of_their_own(compiler: str | None) -> None:
    f = func.jit(lambda p: p["a"] - p["b"] if isinstance(p, dict) else p[0] * p[-1], compiler=compiler)
    for _ in range(2):
        np.testing.assert_array_equal(f({"a": X, "b": 3 * X}), X - 3 * X)
        np.testing.assert_array_equal(f((X, 3 * X)), X * (3 * X))
        np.testing.assert_array_equal(f([3 * X, X]), (3 * X) * X)
        np.testing.assert_array_equal(f({"b": X, "a": 3 * X}), 3 * X - X)
    assert f.cache_info().misses == 3


def test_weak_types_are_kept() -> None:
    x = np.ones(3, np.float32)
    f = func.jit(lambda x, c: (x * (c * 2 + 1), c))
    out, c = f(x, 2.0)
    assert out.dtype == np.float32 and type(c) is float
    assert f(x, np.float64(2.0))[0].dtype == np.float64


def test_static_arguments_by_number_and_name() -> None:
    traced = []

    def power(x: Any, n: int, kind: str = "plain") -> Any:
        traced.append((n, kind))
        return x**n if kind == "plain" else -(x**n)

    for f in (
        func.jit(power, static_argnums=(1, 2)),
        func.jit(power, static_argnames=("n", "kind")),
        func.jit(power, static_argnums=1, static_argnames="kind"),
    ):
        traced.clear()
        assert (
            f(2.0, 3) == 8.0 and f(3.0, 3) == 27.0 and f(2.0, n=2, kind="minus") == -4.0 and f(2.0, 2, "minus") == -4.0
        )
        assert traced[0] == (3, "plain") and len(traced) <= 3


def test_static_values_of_different_types_are_different() -> None:
    f = func.jit(lambda x, n: x * n, static_argnums=1)
    assert type(f(2, 1)) is int and type(f(2, 1.0)) is float and f(2, True) == 2


def test_methods_partials_and_decorators() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @func.jit
        def bound(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match="Model"):
        Model(2.0).bound(X)

    class Static(Model):
        @functools.partial(func.jit, static_argnums=0)
        def scaled(self, x: Any) -> Any:
            return x * self.scale

    np.testing.assert_array_equal(Static(2.0).scaled(X), 2 * X)
    np.testing.assert_array_equal(Static(3.0).scaled(X), 3 * X)
    np.testing.assert_array_equal(func.jit(functools.partial(np.add, 1.0))(X), X + 1)

    @func.jit(static_argnames="n")
    def doubled(x: Any, n: int = 2) -> Any:
        return x * n

    np.testing.assert_array_equal(doubled(X), 2 * X)
    assert doubled.__name__ == "doubled" and repr(doubled) == "func.jit(doubled, static_argnames=('n',))"


def test_closures_over_arrays_become_constants() -> None:
    scale = np.full(5, 2.0)
    f = func.jit(lambda x: x * scale)
    np.testing.assert_array_equal(f(X), 2 * X)
    scale[...] = 7.0
    np.testing.assert_array_equal(f(X), 2 * X)


def test_closures_over_traced_values_carry_derivatives() -> None:
    inner = []

    def f(w: Any) -> Any:
        jitted = func.jit(lambda x: np.sum(np.sin(x * w)))
        inner.append(jitted)
        return jitted(X)

    for w in (0.5, 2.0):
        np.testing.assert_allclose(func.grad(f)(w), np.sum(np.cos(X * w) * X))
    np.testing.assert_allclose(func.vmap(f)(np.array([0.5, 2.0])), [np.sum(np.sin(X * w)) for w in (0.5, 2.0)])

    w = [None]
    jitted = func.jit(lambda x: np.sum(np.sin(x * w[0])))

    def through(value: Any) -> Any:
        w[0] = value
        return jitted(X)

    for value in (0.5, 2.0):
        np.testing.assert_allclose(func.grad(through)(value), np.sum(np.cos(X * value) * X))


def test_disable_jit() -> None:
    f, calls = counted()
    jitted = func.jit(f)
    with func.disable_jit():
        for _ in range(3):
            jitted(X)
    assert len(calls) == 3 and jitted.cache_info().misses == 0
    jitted(X)
    assert jitted.cache_info().misses == 1


def test_jitted_functions_pickle() -> None:
    f = pickle.loads(pickle.dumps(func.jit(np.sin)))
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-15)
    _, pull = func.vjp(func.jit(np.sin), X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pull))(X)[0], pull(X)[0])


def test_threads_do_not_share_scratch_memory() -> None:
    f = func.jit(lambda x: np.sum(np.sin(np.sin(x) * x) * np.cos(x * 2)))
    wrong = []

    def work(value: float) -> None:
        x = np.full(1000, value)
        wanted = f(x)
        wrong.extend([1 for _ in range(200) if f(x) != wanted])

    threads = [threading.Thread(target=work, args=(0.1 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def scalar(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda f: lambda x: np.sum(transform(f)(x))


LAYERS: dict[str, Callable[[Any], Any]] = {
    "grad": scalar(func.grad),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (np.cos(X),))[1],
    "vmap": lambda f: lambda x: np.sum(func.vmap(f)(x * np.ones((2, 1)) + np.arange(2.0)[:, None])),
    "jit": func.jit,
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](X),
    "checkpoint": func.checkpoint,
}
TRIPLES = [
    (a, b, c) for a in LAYERS for b in LAYERS for c in LAYERS if "jit" in (a, b, c) and (a, b, c).count("jit") < 3
]


@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
@pytest.mark.parametrize("f", [wave, written])
def test_every_composition_agrees(f: Callable[[Any], Any], names: tuple[str, ...]) -> None:
    with_jit = without = f
    for name in reversed(names):
        with_jit = LAYERS[name](with_jit)
        without = without if name == "jit" else LAYERS[name](without)
    np.testing.assert_allclose(with_jit(X), without(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, func.hessian, func.jacobian])
def test_jacobians_both_ways(transform: Callable[..., Any]) -> None:
    wanted = transform(layers)(PARAMS, X)
    for got in (func.jit(transform(layers))(PARAMS, X), transform(func.jit(layers))(PARAMS, X)):
        func.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), got, wanted)


def test_one_forward_and_one_backward_program() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return wave(x)

    jitted = func.jit(f)
    for _ in range(5):
        func.grad(jitted)(X)
        func.value_and_grad(jitted)(X)
    assert len(calls) == 1 and jitted.cache_info().currsize == 1


def test_jit_inside_jit() -> None:
    inner = func.jit(lambda x: np.sin(x) * 2)
    outer = func.jit(lambda x: inner(x) + inner(x))
    np.testing.assert_allclose(outer(X), np.sin(X) * 4, rtol=1e-15)
    assert "program_call" not in str(outer.trace(X))


def test_large_programs_inside_stay_calls() -> None:
    def long(x: Any) -> Any:
        for i in range(600):
            x = np.sin(x) + i
        return x

    inner = func.jit(long)
    outer = func.jit(lambda x: inner(x) * 2)
    np.testing.assert_array_equal(outer(X), long(X) * 2)
    assert outer.trace(X).equations[0].primitive.name == "program_call"
    np.testing.assert_allclose(func.grad(lambda x: np.sum(outer(x)))(X), func.grad(lambda x: np.sum(long(x) * 2))(X))


def test_custom_rules_hold() -> None:
    @func.custom_jvp
    def f(x: Any) -> Any:
        return np.sin(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), 10.0 * tangents[0]

    for g in (func.jit(func.grad(f)), func.grad(func.jit(f)), func.jit(func.grad(func.jit(f)))):
        assert g(1.0) == 10.0
    assert func.jit(f)(1.0) == np.sin(1.0)


def test_no_grad_inside() -> None:
    def f(x: Any) -> Any:
        with func.no_grad():
            y = x * 2
        return np.sum(x * y)

    for g in (func.grad(f), func.jit(func.grad(f)), func.grad(func.jit(f))):
        np.testing.assert_array_equal(g(X), 2 * X)


def test_tensors_go_through() -> None:
    x = func.tensor(X, requires_grad=True)
    func.jit(wave)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), func.grad(wave)(X))

    def imperative(x: Any) -> Any:
        t = func.tensor(x, requires_grad=True)
        wave(t).backward()
        return t.grad

    np.testing.assert_allclose(func.jit(imperative)(X), func.grad(wave)(X))


Z = np.array([0.0, 4.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)),
        lambda x: np.sum(np.where(x > 0, x / np.where(x > 0, x, 0) * x, 0.0)),
        lambda x: np.sum(np.where(x > 0, np.exp(1000 / (x + 1e-300)) * 0 + x, 0.0)),
        lambda x: np.linalg.norm(x * 0.0),
        lambda x: np.sum(np.where(x > 0, np.log(x) * x, 0.0)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_nan_safe_pullback_in_compiled_code_too(f: Callable[[Any], Any]) -> None:
    wanted = func.grad(f)(Z)
    both = np.stack([Z, Z])
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(func.jit(func.grad(f))(Z), wanted)
    np.testing.assert_allclose(func.grad(func.jit(f))(Z), wanted)
    np.testing.assert_allclose(func.jit(func.jit(func.grad(f)))(Z), wanted)
    np.testing.assert_allclose(func.vmap(func.jit(func.grad(f)))(both), np.stack([wanted, wanted]))
    np.testing.assert_allclose(func.jit(func.vmap(func.grad(func.jit(f))))(both), np.stack([wanted, wanted]))


def trap(x: Any, w: Any) -> Any:
    return func.grad(lambda z: np.where(z > 0, np.sqrt(z) / z * z, 0.0) * w)(x)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_nan_safe_pullback_where_traced_values_of_an_outer_level_are_used() -> None:
    def by_scan(x: Any, w: Any) -> Any:
        return func.scan(lambda total, a: (total + trap(a, w), trap(a, w)), 0.0, x)

    total, slopes = func.jit(by_scan)(np.array([0.0, 4.0, 1.0]), 2.0)
    assert total == 1.5
    np.testing.assert_allclose(slopes, [0.0, 0.5, 1.0])

    def by_calls(x: Any, w: Any) -> Any:
        def inner(z: Any) -> Any:
            for _ in range(400):
                z = np.sin(z) + z - np.sin(z)
            return trap(z, w)

        return func.jit(inner)(x)

    jitted = func.jit(by_calls)
    np.testing.assert_allclose([jitted(4.0, 2.0), jitted(0.0, 2.0)], [0.5, 0.0])


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_pickled_programs_keep_the_second_look() -> None:
    _, pull = func.vjp(lambda x: func.jit(func.vmap(lambda z: trap(z, 1.0)))(x), np.array([4.0, 9.0]))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(pull))(np.ones(2))[0], pull(np.ones(2))[0])
    compiled = func.make_program(func.jit(lambda x: trap(x, 1.0)))(1.0).equations[0].params["compiled"]
    again = pickle.loads(pickle.dumps(compiled))
    assert again(0.0) == compiled(0.0) == (0.0,)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 1.0 if x[0] > 0 else 2.0,
        lambda x: float(x[0]),
        lambda x: x[0].item(),
        lambda x: np.zeros(int(x[0])),
        lambda x: np.nonzero(x),
        lambda x: x[x > 0],
        lambda x: [1 for _ in range(np.sum(x > 0))],
    ],
)
def test_python_that_depends_on_values_is_refused(f: Callable[[Any], Any]) -> None:
    with pytest.raises(func.errors.StagingError, match=r"test_jit\.py"):
        func.jit(f, guards=False)(X)


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"func\.jit takes a function first, not int"):
        func.jit(3)
    with pytest.raises(
        func.errors.StaticArgumentError, match=r"static argument 1 of .* is a list, which is not hashable"
    ):
        func.jit(lambda x, n: x, static_argnums=1)(X, [1])
    with pytest.raises(
        func.errors.ArgumentError, match=r"static_argnames names \['m'\], but <lambda> takes \['n', 'x'\]"
    ):
        func.jit(lambda x, n: x, static_argnames="m")
    with pytest.raises(func.errors.ArgumentError, match="count positions from 0"):
        func.jit(lambda x: x, static_argnums=-1)
    with pytest.raises(func.errors.ArgumentError, match="both static and donated"):
        func.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(func.errors.ArgumentError, match="compiler='fast' is not one of"):
        func.jit(lambda x: x, compiler="fast")
    with pytest.raises(TypeError, match="arguments"):
        func.jit(lambda x: x)("text")


@pytest.mark.parametrize("stage", [func.jit, func.make_program])
def test_stateful_generators_are_refused(stage: Callable[..., Any]) -> None:
    generator = func.random.Generator(0)
    for f in (lambda x: x + generator.normal(size=5), func.grad(lambda x: np.sum(x * generator.normal()))):
        with pytest.raises(func.random.RandomnessError, match=r"(?s)used inside func\..*pass a key of func\.random"):
            stage(f)(X)
    assert func.eval_shape(lambda x: x + generator.normal(size=5), X).shape == (5,)
    assert np.isfinite(generator.normal())


def test_donated_arrays_are_refused_afterwards() -> None:
    step = func.jit(lambda x, g: x - 0.1 * g, donate_argnums=0)
    x = np.ones(3)
    y = step(x, np.ones(3))
    np.testing.assert_allclose(y, 0.9)
    with pytest.raises(func.errors.DonatedBufferError, match=r"shape \(3,\) was donated to an earlier call"):
        step(x, np.ones(3))
    np.testing.assert_allclose(step(y, np.ones(3)), 0.8)


def test_errors_inside_leave_nothing_behind() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    jitted = func.jit(f)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jitted(X)
    assert jitted.cache_info().currsize == 0
    np.testing.assert_allclose(func.grad(wave)(X), func.jit(func.grad(wave))(X), rtol=1e-15)


def test_trace_and_lower() -> None:
    f = func.jit(lambda x: np.sum(np.sin(x) * 1.0), compiler="numpy")
    assert [equation.primitive.name for equation in f.trace(X).equations] == ["sin", "sum"]
    assert "np_sin(x0" in f.lower(X)
