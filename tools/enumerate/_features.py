"""Every feature of func on arrays large enough to be seen, and whether arrays outlive its call."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import func
from func import autograd

LARGE = 4000
X = np.linspace(0.1, 0.9, LARGE)
SMALL = np.linspace(0.1, 0.9, 6)
MATRIX = np.linspace(-1.0, 1.0, 900).reshape(30, 30) + 3 * np.eye(30)
Call = Callable[[], Any]


def left_behind(call: Call, times: int = 2) -> str:
    """The arrays that only the garbage collector frees after some calls, as text; empty without any.

    Reachable arrays do not count: caches may keep arrays too.
    """
    gc.freeze()  # so that the collector looks at what the calls make alone
    flags = gc.get_debug()
    is_enabled = gc.isenabled()
    try:
        call()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        for _ in range(times):
            call()
        gc.collect()
        found = [x for x in _reached(list(gc.garbage)) if x.nbytes >= 64]
        return ", ".join(sorted({f"{x.dtype}{list(x.shape)}" for x in found}))
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.unfreeze()
        if is_enabled:
            gc.enable()


def _reached(objects: list[Any]) -> list[Any]:
    """The arrays that garbage holds: the objects, and what they refer to in tuples, lists, dicts and slots."""
    found: dict[int, Any] = {}
    for entry in objects:
        for x in (entry, *gc.get_referents(entry)):
            if type(x) is np.ndarray:
                found[id(x)] = x
    return list(found.values())


def smooth(x: Any) -> Any:
    """An elementwise function with residuals."""
    return np.sin(x) * np.exp(-x * x)


def total(x: Any) -> Any:
    """A loss."""
    return np.sum(smooth(x))


class Square(autograd.Function):
    """A Function of the older style."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return 2 * ct * ctx.saved_tensors[0]


class Cube(autograd.Function):
    """A Function with setup_context that saves an output, and a jvp."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x * x, x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, ct: Any, ct_square: Any) -> Any:
        x, square = ctx.saved_tensors
        return 3 * square * ct + 2 * x * ct_square

    @staticmethod
    def jvp(ctx: Any, dx: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * dx, 2 * x * dx


@func.custom_vjp
def by_vjp(x: Any) -> Any:
    """A function with a rule of reverse mode."""
    return np.sin(x) * x


by_vjp.defvjp(lambda x: (np.sin(x) * x, x), lambda x, ct: (ct * (np.cos(x) * x + np.sin(x)),))


@func.custom_jvp
def by_jvp(x: Any) -> Any:
    """A function with a rule of forward mode."""
    return np.sin(x) * x


@by_jvp.defjvp
def _by_jvp_rule(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return by_jvp(x), dx * (np.cos(x) * x + np.sin(x))


@func.custom_gradient
def by_gradient(x: Any) -> Any:
    """A function that returns its pullback."""
    return np.sin(x), lambda ct: ct * np.cos(x)


def scanned(x: Any) -> Any:
    """A scan."""
    return func.scan(lambda c, _: (smooth(c), None), x, None, length=4)[0]


COMPOSABLE: dict[str, Callable[[Any], Any]] = {
    "smooth": smooth,
    "checkpoint": func.checkpoint(smooth),
    "checkpoint with a policy": func.checkpoint(smooth, policy=func.checkpoint_policies.everything_saveable),
    "checkpoint with a limit": func.checkpoint(smooth, memory_limit=5 * 8 * LARGE),
    "Function": Square.apply,
    "Function with two outputs": lambda x: Cube.apply(x)[0],
    "custom_vjp": by_vjp,
    "custom_jvp": by_jvp,
    "custom_gradient": by_gradient,
    "scan": scanned,
    "scan in blocks": lambda x: func.scan(lambda c, _: (smooth(c), None), x, None, length=4, checkpoint=2)[0],
    "scan of rows in blocks with a rest": lambda x: func.scan(
        lambda c, row: (smooth(c) * row, np.sum(c)), x, np.ones(5), checkpoint=2
    )[0],
    "scan in blocks with a closure": lambda x: func.scan(lambda c, _: (c * x, None), x, None, length=4, checkpoint=2)[
        0
    ],
    "fori_loop of a checkpoint": lambda x: func.fori_loop(0, 3, lambda i, c: func.checkpoint(smooth)(c), x),
    "while_loop": lambda x: func.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, smooth(c[1])), (0, x), max_steps=3
    )[1],
    "cond": lambda x: func.cond(x[0] < 2, smooth, np.cos, x),
    "cond with a closure": lambda x: func.cond(x[0] < 2, lambda: smooth(x), lambda: x * 2),
    "switch": lambda x: func.switch(1, [np.cos, smooth], x),
    "map": lambda x: func.map(smooth, x.reshape(4, -1)).reshape(-1),
    "map in chunks": lambda x: func.map(smooth, x.reshape(4, -1), chunk_size=3).reshape(-1),
    "inner grad": lambda x: func.grad(total)(x),
    "inner vjp": lambda x: func.vjp(smooth, x)[1](x)[0],
    "inner jvp": lambda x: func.jvp(smooth, (x,), (x,))[1],
    "inner linearize": lambda x: func.linearize(smooth, x)[1](x),
    "inner jit": func.jit(smooth),
    "functional.vjp": lambda x: autograd.functional.vjp(smooth, x, x, create_graph=True)[1],
    "functional.jvp": lambda x: autograd.functional.jvp(smooth, x, x, create_graph=True)[1],
    "autograd.checkpoint": lambda x: autograd.checkpoint(smooth, x),
    "NaN-safe": lambda x: np.where(x > 2, np.sqrt(x * 0), x * x),
    "writes": lambda x: _written(x),
}
"""Functions of one array that every transform takes."""


def _written(x: Any) -> Any:
    y = x * 1.0
    y[1:] = y[:-1] * x[1:]
    y += np.sin(x)
    return y


def _leaf() -> Any:
    return func.tensor(X, requires_grad=True)


def backward(f: Callable[[Any], Any], **options: Any) -> Call:
    """A backward pass over f."""

    def call() -> Any:
        x = _leaf()
        f(x).sum().backward(**options)
        return x.grad

    return call


def _hooked(register: Callable[[Any, Any], Any], f: Callable[[Any], Any] = smooth) -> Call:
    def call() -> Any:
        x = _leaf()
        y = f(x)
        register(x, y)
        y.sum().backward()
        return x.grad

    return call


def _create_graph() -> Any:
    x = _leaf()
    (g,) = autograd.grad(smooth(x).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    return h


def _twice_backward() -> Any:
    x = _leaf()
    (g,) = autograd.grad(smooth(x).sum(), x, create_graph=True)
    g.sum().backward()
    gradient = x.grad
    x.grad = None
    return gradient


def _retained() -> Any:
    x = _leaf()
    y = smooth(x)
    y.retain_grad()
    y.sum().backward()
    return y.grad


def _multi() -> Any:
    x, z = _leaf(), _leaf()
    handle = autograd.graph.register_multi_grad_hook([x, z], lambda grads: None)
    (smooth(x) * z).sum().backward()
    handle.remove()
    return x.grad


def _multi_kept() -> Any:
    x, z = _leaf(), _leaf()
    autograd.graph.register_multi_grad_hook([x, z], lambda grads: None)
    (smooth(x) * z).sum().backward()
    return x.grad


def _saved_hooks() -> Any:
    x = _leaf()
    with autograd.graph.saved_tensors_hooks(lambda t: t * 1.0, lambda t: t):
        y = smooth(x)
    y.sum().backward()
    return x.grad


def _dual() -> Any:
    with autograd.forward_ad.dual_level():
        dual = autograd.forward_ad.make_dual(func.tensor(X), func.tensor(X))
        return autograd.forward_ad.unpack_dual(smooth(dual)).tangent


def _anomaly() -> Any:
    x = _leaf()
    with autograd.detect_anomaly():
        smooth(x).sum().backward()
    return x.grad


def _failing() -> Any:
    def f(x: Any) -> Any:
        y = smooth(x)
        raise RuntimeError("on purpose") if y is not None else None

    try:
        func.grad(f)(X)
    except RuntimeError:
        return None


def _failing_rule() -> Any:
    x = _leaf()
    y = smooth(x)
    y.register_hook(_raising)
    try:
        y.sum().backward()
    except RuntimeError:
        return None


def _raising(ct: Any) -> Any:
    raise RuntimeError("on purpose")


def _workers(f: Callable[[Any], Any]) -> Call:
    def call() -> Any:
        with ThreadPoolExecutor(2) as executor:
            return func.vmap(f, executor=executor)(np.stack([X, X, X, X]))

    return call


def _jitted(f: Callable[[Any], Any]) -> Call:
    jitted = func.jit(f)
    return lambda: jitted(X)


FEATURES: dict[str, Callable[[], Call]] = {
    **{f"value of {name}": (lambda f=f: lambda: f(X)) for name, f in COMPOSABLE.items()},
    **{f"grad of {name}": (lambda f=f: lambda: func.grad(lambda x: np.sum(f(x)))(X)) for name, f in COMPOSABLE.items()},
    **{f"vjp of {name}": (lambda f=f: lambda: func.vjp(f, X)[1](X)) for name, f in COMPOSABLE.items()},
    **{f"jvp of {name}": (lambda f=f: lambda: func.jvp(f, (X,), (X,))) for name, f in COMPOSABLE.items()},
    **{f"jit of {name}": (lambda f=f: _jitted(f)) for name, f in COMPOSABLE.items()},
    **{f"backward of {name}": (lambda f=f: backward(f)) for name, f in COMPOSABLE.items()},
    **{f"backward twice of {name}": (lambda f=f: backward(f, retain_graph=True)) for name, f in COMPOSABLE.items()},
    "value_and_grad": lambda: lambda: func.value_and_grad(total)(X),
    "grad of grad": lambda: lambda: func.grad(lambda x: np.sum(func.grad(total)(x)))(X),
    "jacobian": lambda: lambda: func.jacobian(smooth)(X[:200]),
    "jacrev": lambda: lambda: func.jacrev(smooth)(X[:200]),
    "jacfwd": lambda: lambda: func.jacfwd(smooth)(X[:200]),
    "jacrev in chunks": lambda: lambda: func.jacrev(smooth, chunk_size=50)(X[:200]),
    "hessian": lambda: lambda: func.hessian(total)(X[:200]),
    "sparse jacobian": lambda: lambda: func.sparse_jacobian(smooth)(X),
    "hvp": lambda: lambda: func.hvp(total, (X,), (X,)),
    "laplacian": lambda: lambda: func.laplacian(total)(X[:200]),
    "jet": lambda: lambda: func.taylor(smooth, X, X, 3),
    "vmap": lambda: lambda: func.vmap(smooth)(X.reshape(10, -1)),
    "vmap of a checkpoint of a scan in blocks": lambda: (
        lambda: func.vmap(func.checkpoint(COMPOSABLE["scan in blocks"]))(X.reshape(10, -1))
    ),
    "vmap in chunks": lambda: lambda: func.vmap(smooth, chunk_size=3)(X.reshape(10, -1)),
    "vmap with a limit": lambda: _limited(),
    "vmap of grad": lambda: lambda: func.vmap(func.grad(total))(X.reshape(10, -1)),
    "vmap of branches": lambda: (
        lambda: func.vmap(lambda r: func.cond(r[0] > 0.5, smooth, np.cos, r))(X.reshape(10, -1))
    ),
    "split vmap": lambda: lambda: func.vmap(lambda r: smooth(r) if r[0] > 0.5 else np.cos(r))(X.reshape(10, -1)),
    "workers": lambda: _workers(smooth),
    "workers of grad": lambda: _workers(func.grad(total)),
    "jit of a new function": lambda: lambda: func.jit(lambda x: smooth(x) * 2)(X),
    "jit of a new gradient": lambda: lambda: func.jit(func.grad(lambda x: total(x) * 2))(X),
    "grad of a new jit": lambda: lambda: func.grad(func.jit(lambda x: np.sum(smooth(x))))(X),
    "make_program": lambda: lambda: func.make_program(smooth)(X)(X),
    "memory": lambda: lambda: func.memory(func.grad(total))(X),
    "linear_transpose": lambda: lambda: func.linear_transpose(lambda x: 2 * x, X)(X),
    "create_graph": lambda: _create_graph,
    "backward of create_graph": lambda: _twice_backward,
    "retain_grad": lambda: _retained,
    "tensor hook": lambda: _hooked(lambda x, y: y.register_hook(lambda ct: ct * 2)),
    "tensor hook that closes over its tensor": lambda: _hooked(lambda x, y: x.register_hook(lambda ct: ct * 2)),
    "post accumulate hook": lambda: _hooked(lambda x, y: x.register_post_accumulate_grad_hook(lambda t: None)),
    "node hook": lambda: _hooked(lambda x, y: y.grad_fn.register_hook(lambda ins, outs: None)),
    "node prehook": lambda: _hooked(lambda x, y: y.grad_fn.register_prehook(lambda outs: None)),
    "hook behind a Function": lambda: _hooked(lambda x, y: y.register_hook(lambda ct: ct * 2), Square.apply),
    "hook behind a checkpoint": lambda: _hooked(lambda x, y: y.register_hook(lambda ct: ct), func.checkpoint(smooth)),
    "multi-gradient hook": lambda: _multi,
    "multi-gradient hook that stays": lambda: _multi_kept,
    "saved tensor hooks": lambda: _saved_hooks,
    "forward_ad": lambda: _dual,
    "anomaly": lambda: _anomaly,
    "an error in a function": lambda: _failing,
    "an error in a hook": lambda: _failing_rule,
    "functional.jacobian": lambda: lambda: autograd.functional.jacobian(smooth, X[:200]),
    "functional.hessian": lambda: lambda: autograd.functional.hessian(total, X[:200]),
    "functional.hvp": lambda: lambda: autograd.functional.hvp(total, X, X),
    "functional.vhp": lambda: lambda: autograd.functional.vhp(total, X, X),
    "functional.vjp": lambda: lambda: autograd.functional.vjp(smooth, X, X),
    "functional.jvp": lambda: lambda: autograd.functional.jvp(smooth, X, X),
    "checkpoint_sequential": lambda: backward(lambda x: autograd.checkpoint_sequential([smooth, np.sin], 2, x)),
    "debug.explain": lambda: lambda: func.debug.explain(func.grad(total))(X),
    "explicit inverse": lambda: lambda: func.grad(lambda a: np.sum(np.linalg.inv(a)))(MATRIX),
    "eigh": lambda: lambda: func.grad(lambda a: np.sum(np.linalg.eigh(a + a.T)[1][0]))(MATRIX),
    "root": lambda: lambda: func.grad(lambda a: _root(a))(2.0),
    "per-sample gradients": lambda: (
        lambda: func.vmap(func.grad(lambda w, r: np.sum(smooth(w * r))), in_dims=(None, 0))(X[:400], X.reshape(10, -1))
    ),
    "intercept": lambda: _intercepted,
    "einsum": lambda: lambda: func.grad(lambda a: np.sum(np.einsum("ij,jk,kl->il", a, a, a)))(MATRIX),
}
"""Calls by their names; each value makes a call, so that its cached parts are made once."""


def _limited() -> Call:
    mapped = func.vmap(func.grad(total), memory_limit=200_000)
    return lambda: mapped(X.reshape(10, -1))


def _root(a: Any) -> Any:
    from scipy import optimize

    return optimize.brentq(lambda x: x * x - a, 0.0, 5.0)


def _intercepted() -> Any:
    with func.intercept():
        return func.grad(lambda x: np.sum(_filled(x)))(X)


def _filled(x: Any) -> Any:
    y = np.zeros(x.shape)
    y[:] = x * x
    return y
