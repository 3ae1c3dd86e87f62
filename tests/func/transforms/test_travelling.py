"""Transformed functions compare, print, and go to other processes with what was compiled."""

from __future__ import annotations

import copy
import functools
import gc
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import func

X = np.arange(1.0, 4.0)


def loss(w: Any, x: Any = X) -> Any:
    return np.sum(np.sin(w) * x)


def field(x: Any) -> Any:
    return x[1:] * x[:-1]


def sample_loss(w: Any, x: Any) -> Any:
    return np.tanh(w @ x) ** 2


KEY = func.random.key(1)
MAKERS: dict[str, Callable[[Any], Any]] = {
    "func.grad(loss, argnums=0)": lambda f: func.grad(f),
    "func.grad(loss, argnums=(0, 1))": lambda f: func.grad(f, argnums=(0, 1)),
    "func.value_and_grad(loss, argnums=0, has_aux=True)": lambda f: func.value_and_grad(f, has_aux=True),
    "func.grad_and_value(loss, argnums=0)": lambda f: func.grad_and_value(f),
    "func.elementwise_grad(loss, argnums=0)": lambda f: func.elementwise_grad(f),
    "func.grad(loss, argnames='x')": lambda f: func.grad(f, argnames="x"),
    "func.jacobian(loss, argnums=0)": lambda f: func.jacobian(f),
    "func.jacrev(loss, argnums=1, chunk_size=4)": lambda f: func.jacrev(f, argnums=1, chunk_size=4),
    "func.jacfwd(loss, argnums=0)": lambda f: func.jacfwd(f),
    "func.hessian(loss, argnums=0, mode='rev-rev')": lambda f: func.hessian(f, mode="rev-rev"),
    "func.vmap(loss)": lambda f: func.vmap(f),
    "func.vmap(loss, in_dims=(0, None), chunk_size=8)": lambda f: func.vmap(f, in_dims=(0, None), chunk_size=8),
    "func.jit(loss)": lambda f: func.jit(f),
    "func.jit(loss, static_argnames=('x',))": lambda f: func.jit(f, static_argnames="x"),
    "func.jit(func.vmap(func.grad(loss, argnums=0)))": lambda f: func.jit(func.vmap(func.grad(f))),
    "func.laplacian(loss, argnums=0)": lambda f: func.laplacian(f),
    "func.biharmonic(loss, argnums=0)": lambda f: func.biharmonic(f),
    "func.hessian_diagonal(loss, argnums=0)": lambda f: func.hessian_diagonal(f),
    "func.divergence(loss, argnums=0)": lambda f: func.divergence(f),
    "func.derivatives(loss, order=3, argnums=0)": lambda f: func.derivatives(f, order=3),
    "func.sparsity(loss, argnums=0)": lambda f: func.sparsity(f),
    "func.sparse_jacobian(loss, argnums=0)": lambda f: func.sparse_jacobian(f),
    "func.sparse_hessian(loss, argnums=0, check=True)": lambda f: func.sparse_hessian(f, check=True),
    "func.checkpoint(loss)": lambda f: func.checkpoint(f),
    "func.make_program(loss)": lambda f: func.make_program(f),
    "func.debug.explain(loss)": lambda f: func.debug.explain(f),
    "func.per_sample(loss)": lambda f: func.per_sample(f),
    "func.per_sample(loss).clipped_sum(1.0)": lambda f: func.per_sample(f).clipped_sum(1.0),
    "func.grad(functools.partial(loss, x=2.0), argnums=0)": lambda f: func.grad(functools.partial(f, x=2.0)),
}


@pytest.mark.parametrize("written", MAKERS)
def test_a_transformed_function_prints_as_it_is_written_and_equals_its_copies(written: str) -> None:
    made = MAKERS[written](loss)
    assert repr(made) == written
    again = MAKERS[written](loss)
    assert again == made and hash(again) == hash(made) and {made: 1}[again] == 1
    for same in (pickle.loads(pickle.dumps(made)), cloudpickle.loads(cloudpickle.dumps(made)), copy.copy(made)):
        assert same == made and hash(same) == hash(made)
    assert made != MAKERS[written](field) and made != loss and made != written
    assert copy.deepcopy(made) == made


def test_transformed_functions_with_other_options_are_not_equal() -> None:
    made = [make(loss) for make in MAKERS.values()]
    assert len(set(made)) == len(made)
    estimates = [func.hutchinson_trace(loss, key=func.random.key(i), samples=2) for i in (0, 1, 0)]
    assert estimates[0] != estimates[1] and estimates[0] == estimates[2]
    assert func.grad(loss, 0) != func.grad(loss, argnums=(0,))
    assert func.vmap(loss, {"a": 0}) == func.vmap(loss, {"a": 0}) != func.vmap(loss, {"a": 1})


def test_a_transformed_function_is_in_no_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        for make in (func.grad, func.vmap, func.jacobian, func.hessian, func.per_sample, func.checkpoint):
            made = make(lambda x: x)
            made_again = weakref.ref(made)
            del made
            assert made_again() is None, make
    finally:
        gc.enable()


def test_equal_jitted_functions_share_nothing_that_is_compiled() -> None:
    first, second = func.jit(loss), func.jit(loss)
    assert first == second
    first(X), second(X)
    func.clear_caches()
    assert first.cache_info().currsize == second.cache_info().currsize == 0


def test_a_static_argument_may_be_a_transformed_function() -> None:
    @func.jit(static_argnums=0)
    def applied(f: Any, x: Any) -> Any:
        return f(x)

    for _ in range(2):
        np.testing.assert_allclose(applied(func.grad(loss), X), X * np.cos(X))
    assert applied.cache_info().misses == 1
    applied(func.grad(loss, argnums=(0,)), X)
    assert applied.cache_info().misses == 2


def named_rule() -> Any:
    @func.custom_jvp
    def rule(x: Any) -> Any:
        return x * x

    return rule


def test_custom_rules_print_as_they_are_written() -> None:
    assert repr(named_rule()) == "func.custom_jvp(rule)"
    assert repr(func.grad(named_rule())) == "func.grad(func.custom_jvp(rule), argnums=0)"


def test_linear_maps_travel() -> None:
    w = np.ones(3)
    _, pullback = func.vjp(field, X)
    _, push = func.linearize(field, X)
    transposed = func.linear_transpose(lambda x: 3 * x[:2], w)
    for made, args in [(pullback, (np.ones(2),)), (push, (w,)), (transposed, (np.ones(2),))]:
        again = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(again(*args), made(*args))
        assert repr(again) == repr(made)
    clipped = func.per_sample(sample_loss).clipped_sum(0.1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clipped))(X, np.eye(3)), clipped(X, np.eye(3)))


@func.jit
def counted(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2)


GRADIENT = func.jit(func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0))))

IN_ANOTHER_PROCESS = """
import pickle, sys
import numpy as np
functions, x, out = pickle.load(sys.stdin.buffer)
for function, expected in zip(functions, out):
    found = function(x)
    assert np.array_equal(found, expected), (found, expected)
    info = function.cache_info()
    assert (info.misses, info.currsize) == (0, 1), info
"""


def in_another_process(code: str, given: bytes, cache: Path) -> None:
    environment = {**os.environ, "FUNC_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], input=given, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


def test_another_process_neither_traces_nor_compiles_again(tmp_path: Path) -> None:
    local = func.jit(func.value_and_grad(lambda x: np.sum(x**3)))
    functions = [GRADIENT, func.jit(loss), local]
    x = np.array([0.0, 1.0, 4.0])
    out = [function(x) for function in functions]
    given = cloudpickle.dumps((functions[:2], x, out[:2]))
    in_another_process(IN_ANOTHER_PROCESS, given, tmp_path)
    objects = sorted(tmp_path.rglob("*.o"))
    in_another_process(IN_ANOTHER_PROCESS, given, tmp_path)
    assert sorted(tmp_path.rglob("*.o")) == objects
    again = cloudpickle.loads(cloudpickle.dumps(local))
    assert again.cache_info().currsize == 1 and again(x)[0] == out[2][0] and again.cache_info().misses == 0


def test_a_named_function_brings_its_programs_along() -> None:
    counted.clear_cache()
    expected = counted(X)
    pickled = pickle.dumps(counted)
    counted.clear_cache()
    assert pickle.loads(pickled) is counted and counted.cache_info().currsize == 1
    assert counted(X) == expected and counted.cache_info().misses == 0


SCALE = 2.0


@func.jit
def scaled(x: Any) -> Any:
    return x * SCALE


def test_a_program_is_not_taken_over_where_the_function_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled.clear_cache()
    assert scaled(3.0) == 6.0
    pickled = pickle.dumps(scaled)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    scaled.clear_cache()
    assert pickle.loads(pickled)(3.0) == 15.0


def test_a_program_with_a_rule_that_cannot_be_pickled_stays_at_home() -> None:
    import threading

    lock = threading.Lock()

    def outside(x: Any) -> Any:
        with lock:
            return x

    @func.jit
    def calls(x: Any) -> Any:
        return func.pure_callback(outside, x, x)

    calls(X)
    assert pickle.loads(pickle.dumps(GRADIENT_OF_NAMED))(X) is not None
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(calls)


GRADIENT_OF_NAMED = func.grad(counted)

SCRIPT = """
import cloudpickle, sys
import numpy as np, func

@func.grad
def slope(x):
    return np.sum(x ** 3)

@func.jit
def doubled(x):
    return 2 * x

@func.custom_jvp
def odd(x):
    return x * 2

@odd.defjvp
def odd_rule(primals, tangents):
    return odd(primals[0]), tangents[0] * 3

class Model:
    weight = 2.0

    @func.grad
    def loss(w, self):
        return w * w * self.weight

    @func.vmap(in_dims=(None, 0))
    def each(self, x):
        return x * self.weight

doubled(np.ones(3))
sys.stdout.buffer.write(cloudpickle.dumps([slope, doubled, func.grad(odd), Model, lambda x: slope(x) + odd(x)]))
"""
LOADING = """
import pickle, sys
import numpy as np
slope, doubled, odd, model, both = pickle.load(sys.stdin.buffer)
x = np.ones(3)
assert slope(x).tolist() == [3.0] * 3 and doubled(x).tolist() == [2.0] * 3 and odd(1.0) == 3.0
assert doubled.cache_info().misses == 0
assert model().each(x).tolist() == [2.0] * 3
assert both(1.0) == 5.0
"""


def test_what_a_script_defines_travels_by_value(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr.decode()
    in_another_process(LOADING, made.stdout, tmp_path)
