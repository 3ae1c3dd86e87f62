"""Programs that `make types` checks with mypy and pyright: transformed functions have the function's parameters.

A line with an ignore comment is an error that both must find: they also report comments that nothing needs.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import func
from func.compilation.memory_timeline import MemoryTimeline
from func.interpreters.program.program import Program

Vector = NDArray[np.float64]
X: Vector = np.array([0.5, 2.0])


def loss(weights: Vector, scale: float = 1.0, *, power: int = 2) -> np.float64:
    return np.float64(np.sum(weights**power) * scale)


def derivatives_keep_parameters() -> None:
    for transform in (func.grad(loss), func.jacobian(loss), func.jacrev(loss), func.jacfwd(loss), func.hessian(loss)):
        assert_type(transform(X, scale=2.0, power=3), Any)
    func.grad(loss)(X, power="two")  # type: ignore[arg-type]
    func.hessian(loss)(weight=X)  # type: ignore[call-arg]
    func.jacobian(loss)()  # type: ignore[call-arg]
    func.grad(loss, argnums=1)(X, 1.0, 2)  # type: ignore[call-arg]
    func.laplacian(loss)(X, scales=2.0)  # type: ignore[call-arg]
    func.elementwise_grad(loss)(X, scales=2.0)  # type: ignore[call-arg]


def values_have_the_type_of_the_function() -> None:
    assert_type(func.value_and_grad(loss)(X, scale=2.0), tuple[np.float64, Any])
    assert_type(func.grad_and_value(loss)(X, scale=2.0), tuple[Any, np.float64])
    assert_type(func.checkpoint(loss)(X), np.float64)
    assert_type(func.jit(loss)(X, power=3), np.float64)
    func.value_and_grad(loss)(X, scales=2.0)  # type: ignore[call-arg]
    func.checkpoint(loss)(X, scales=2.0)  # type: ignore[call-arg]
    func.jit(loss)(X, scales=2.0)  # type: ignore[call-arg]


def options_are_checked() -> None:
    func.grad(loss, argnums=(0, 1), has_aux=False)
    func.vmap(loss, in_dims=(0, None), chunk_size="auto")
    func.grad(loss, argnum=1)  # type: ignore[call-overload]
    func.jit(loss, static=1)  # type: ignore[call-overload]


@func.jit
def decorated(x: Vector, scale: float) -> Vector:
    return x * scale


@func.jit(static_argnames="n")
def decorated_with_options(x: Vector, n: int) -> Vector:
    return x * n


@func.vmap(in_dims=(0, None))
def rows(x: Vector, scale: float) -> Vector:
    return x * scale


@func.checkpoint
def checkpointed(x: Vector) -> Vector:
    return x * 2


def decorators_keep_parameters() -> None:
    assert_type(decorated(X, scale=2.0), Vector)
    assert_type(decorated_with_options(X, n=2), Vector)
    assert_type(checkpointed(X), Vector)
    rows(X, scale=2.0)
    decorated(X, scales=2.0)  # type: ignore[call-arg]
    decorated_with_options(X, m=2)  # type: ignore[call-arg]
    rows(X, scales=2.0)  # type: ignore[call-arg]


@dataclass
class Model:
    weights: Vector

    @func.grad(argnums=1)
    def slope(self, x: float) -> np.float64:
        return np.float64(np.sum(self.weights) * x)

    @func.jit(static_argnums=0)
    def value(self, x: float) -> np.float64:
        return np.float64(np.sum(self.weights) * x)

    __hash__ = object.__hash__


def methods_are_bound() -> None:
    model = Model(X)
    model.slope(x=2.0)
    assert_type(model.value(x=2.0), np.float64)
    model.slope(2.0, 3.0)  # type: ignore[call-arg]
    model.value("two")  # type: ignore[arg-type]


def transforms_nest() -> None:
    func.vmap(func.grad(loss), in_dims=(0, None))(np.ones((3, 2)), scale=2.0)
    assert_type(func.jit(func.value_and_grad(loss))(X, power=2), tuple[np.float64, Any])
    func.jit(func.grad(loss))(X, scales=2.0)  # type: ignore[call-arg]


def functions_of_numpy_and_lambdas() -> None:
    call: Callable[..., Any] = func.checkpoint(lambda x: x * 2)
    call(func.vmap(np.sin)(X))
    func.grad(np.sum)(X)
    compiled: Callable[[Vector], Any] = func.jit(func.grad(lambda x: np.sum(x * x)))
    compiled(X)


def programs_of_functions() -> None:
    assert_type(func.make_program(loss)(X, power=3), Program)
    assert_type(func.to_source(loss, static_argnames="power")(X, power=3), str)
    assert_type(func.memory(loss)(X), MemoryTimeline)
    func.memory(loss)(X, scales=2.0)  # type: ignore[call-arg]


@func.custom_vjp
def ruled(x: Vector, scale: float = 1.0) -> Vector:
    return x * scale


@func.custom_jvp(nondiff_argnames="n")
def ruled_with_options(x: Vector, n: int) -> Vector:
    return x**n


class Layer:
    @func.custom_jvp
    def scaled(self, x: Vector, scale: float = 1.0) -> Vector:
        return x * scale


def rules_keep_parameters() -> None:
    assert_type(ruled(X, scale=2.0), Vector)
    ruled(X, scales=2.0)  # type: ignore[call-arg]
    ruled("x")  # type: ignore[arg-type]
    ruled_with_options(X, 2)
    ruled.defvjp(lambda x, scale: (x * scale, scale), lambda scale, ct: (ct * scale, None))
    assert_type(func.custom_vmap(loss)(X, power=3), np.float64)
    func.custom_gradient(loss)(X, scales=2.0)  # type: ignore[call-arg]
    assert_type(Layer().scaled(X, scale=2.0), Vector)
    Layer().scaled(X, scales=2.0)  # type: ignore[call-arg]


def statistics_and_estimates() -> None:
    key = func.random.key(0)
    func.per_sample(loss).norms(X, X)
    func.per_sample(in_dims=(None, 0))(loss).clipped_sum(1.0)(X, X)
    func.per_sample(loss).norm(X, X)  # type: ignore[attr-defined]
    func.hutchinson_trace(loss, key, 4)(X, scale=2.0)
    func.hutchinson_trace(loss, key, 4)(X, scales=2.0)  # type: ignore[call-arg]
    func.sparse_hessian(loss)(X, scales=2.0)  # type: ignore[call-arg]
    func.hessian_diagonal(loss, chunk_size=2, progress=True)(X, scales=2.0)  # type: ignore[call-arg]
    func.hvp(loss, (X,), 1.0, argnames="scale", scale=2.0)


def tensors_and_their_functions() -> None:
    t = func.tensor([1.0, 2.0], requires_grad=True)
    (t * t).sum().backward()
    np.mean(np.tanh(t)).backward()
    func.tensor([1.0], grad=True)  # type: ignore[call-arg]
    (gradient,) = func.autograd.grad(t.sum(), t, create_graph=True)
    func.autograd.grad(t.sum(), t, create_grap=True)  # type: ignore[call-arg]
    assert_type(func.autograd.gradcheck(loss, (gradient,)), bool)
    with func.no_grad(), func.autograd.detect_anomaly():
        func.backward(t, retain_graphs=True)  # type: ignore[call-arg]


def functions_of_func_numpy_and_trees() -> None:
    func.numpy.mean(X, axes=0)  # type: ignore[call-arg]
    func.tree.axpy(0.5, X, X)
    func.tree.load("model.npz", likes=X)  # type: ignore[call-arg]
    func.propagate(loss)(X, np.eye(2))
    func.taylor_flow(lambda y: -y, X, orders=3)  # type: ignore[call-arg]
