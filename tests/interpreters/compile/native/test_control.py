"""Native loops, branches, programs that are cut into parts, and transforms of transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from tests.interpreters.compile.native.test_native import A, N, V, check, layer_norm, numbers, softmax

X, C = numbers(5, 3), numbers(3)
SCANS: dict[str, Callable[..., Any]] = {
    "forwards": lambda x, c: func.scan(lambda c, r: (np.tanh(c + r), c * r), c, x),
    "backwards": lambda x, c: func.scan(lambda c, r: (np.tanh(c + r), c * r), c, x, reverse=True),
    "one step": lambda x, c: func.scan(lambda c, r: (np.tanh(c + r), c * r), c, x[2:3]),
    "swapped": lambda x, c: func.scan(lambda s, r: ((s[1], s[0]), (s[0] + r, s[1])), (c, c * 2), x),
    "turned round": lambda x, c: func.scan(lambda s, r: ((s[1], s[2] + r, s[0]), s), (c, c * 2, np.sin(c)), x),
    "the carry": lambda x, c: func.scan(lambda c, r: (c, c), c, x),
    "the row": lambda x, c: func.scan(lambda c, r: (r, r), c, x),
    "whole rows": lambda x, c: func.scan(lambda c, r: (c + np.sum(x * r), x[0] * r), c, x),
    "views": lambda x, c: func.scan(lambda c, r: (c * r, c + 1), c, x[::-1, ::-1])[1].T @ x,
    "no rows": lambda x, c: func.scan(lambda c, _: (np.sin(c), c * 2), c, None, length=4),
    "scan in scan": lambda x, c: func.scan(
        lambda c, r: func.scan(lambda d, e: (d * 0.9 + np.sin(e) * r, d), c, x), c, x
    ),
    "branch in scan": lambda x, c: func.scan(
        lambda c, r: (func.cond(c[0] > r[0], lambda u: u * 2, lambda u: u - r, c), c), c, x
    ),
    "scan in branch": lambda x, c: func.cond(
        np.sum(x) > 99, lambda t: t * 1.0, lambda t: func.scan(lambda c, r: (c * r, c - r), c, t)[1], x
    ),
    "loop in scan": lambda x, c: func.scan(
        lambda c, r: (func.fori_loop(0, 3, lambda i, u: np.cos(u) + r * i, c), c), c, x
    ),
    "used behind": lambda x, c: [
        (last * 2, rows.sum(0) + c, rows[::-1], x * 2)
        for last, rows in [func.scan(lambda c, r: (c * r, c + r), c * 2, np.sin(x))]
    ],
    "products": lambda x, c: func.scan(lambda c, r: (np.tanh(x.T @ x @ c * 0.1) + r, np.outer(c, r)), c, x),
}  # fmt: skip


@pytest.mark.parametrize("name", SCANS)
def test_loops(name: str) -> None:
    f = SCANS[name]

    def loss(x: Any, c: Any) -> Any:
        outs = func.tree.leaves(f(x, c))
        return sum([np.sum(np.sin(out) * np.cos(np.arange(out.size)).reshape(out.shape)) for out in outs])

    check(f, X, C)
    check(func.grad(loss, (0, 1)), X, C, rtol=1e-9)
    check(lambda x, c: func.jvp(f, (x, c), (x * 0.5, c)), X, C, rtol=1e-9)
    check(
        lambda x, c: func.vmap(f)(np.stack([x, x * 2]), np.stack([c, c - 1])),
        X,
        C,
        rtol=1e-9,
        native="branch" not in name,
    )


def test_while_loops() -> None:
    def halved(x: Any, c: Any) -> Any:
        return func.while_loop(
            lambda s: np.sum(s[1] * s[1]) > 0.1, lambda s: (s[0] + 1, s[1] * 0.6 * np.cos(x[0])), (0, c)
        )

    check(halved, X, C)
    check(lambda x, c: func.scan(lambda d, r: (halved(x, d)[1] + r, d), c, x), X, C)
    check(lambda x, c: func.jvp(halved, (x, c), (x, c)), X, C)
    check(lambda x, c: func.scan(lambda s, r: ((s[0] ^ (r[0] > 0), s[1] + 1), s), (True, 0), x), X, C)
    check(lambda x, c: func.scan(lambda i, _: (i + 1, x[i]), 0, None, length=5), X, C)
    check(lambda x, c: func.scan(lambda c, r: (c + r, c), c, x[:0]), X, C, native=False)


PARTS: dict[str, Callable[..., Any]] = {
    "sorted": lambda a, v: (np.sort(np.sin(a), axis=1)[:, ::-1] * v, a.sum(0)),
    "solved": lambda a, v: np.tanh(np.linalg.solve(a + 9 * np.eye(N), v * 2)) + a.sum(1),
    "spectra": lambda a, v: np.abs(np.fft.fft(a * v))[:, 1:].sum(1) * v,
    "in turns": lambda a, v: np.cumsum(np.exp(np.sort(np.cumsum(a * 0.1, 0) + v, 1)).sum(0)) * v,
    "beside": lambda a, v: (np.linalg.norm(a, 2), np.sin(a) @ v, np.median(v * 2), a, v.sum()),
    "in a loop": lambda a, v: func.scan(lambda c, r: (np.sort(c * r) + 1, c), v, a)[1] * 2,
}


@pytest.mark.parametrize("name", PARTS)
def test_programs_cut_into_parts(name: str) -> None:
    f = PARTS[name]
    check(f, A, V, native=False, rtol=1e-10)
    loss = lambda a, v: sum([np.sum(np.sin(out)) for out in func.tree.leaves(f(a, v))])  # noqa: E731
    check(func.grad(loss, (0, 1)), A, V, native=False, rtol=1e-9)


INNER: dict[str, Callable[[Any], Any]] = {
    "chain": lambda x: np.sum(np.sin(x) * np.exp(-x * x)),
    "softmax": lambda x: np.sum(softmax(x, -1) ** 2 * np.arange(x.size)),
    "layer norm": lambda x: np.sum(np.tanh(layer_norm(x, -1)) * x[::-1]),
    "product": lambda x: np.sum(np.tanh(np.outer(x, x) @ x)),
    "slices": lambda x: np.sum(x[1:] * x[:-1] ** 2) + np.sum(np.concatenate([x[::-1], x[::2]]) ** 3),
    "scan": lambda x: func.scan(lambda c, r: (np.sin(c * r), c), x[0], x)[1].sum(),
    "branch": lambda x: func.cond(x[0] > 0, lambda t: np.sum(t**3), lambda t: np.sum(np.cos(t) * t), x),
    "picked": lambda x: np.sum(x[np.array([0, -1, 0])] ** 2 * x[0]),
    "norm": lambda x: np.sqrt(np.sum(x * x)) + np.var(x) * np.mean(x),
    "loop": lambda x: np.sum(func.fori_loop(0, 3, lambda i, c: np.cos(c) * x, x)),
    "where": lambda x: np.sum(np.where(x > 0.1, x**3, np.sin(x)) * np.maximum(x, 0.3)),
    "solve": lambda x: np.sum(np.linalg.solve(np.outer(x, x) + 3 * np.eye(x.size), x)),
}  # fmt: skip
OUTER: dict[str, Callable[..., Any]] = {
    "hessian": lambda f: lambda x: func.hessian(f)(x[0]),
    "hvp": lambda f: lambda x: func.jvp(func.grad(f), (x[0],), (x[1],)),
    "mapped hessian": lambda f: lambda x: func.vmap(func.jacrev(func.grad(f)))(x),
    "third order": lambda f: lambda x: func.grad(
        lambda y: func.jvp(lambda z: func.jvp(f, (z,), (x[1],))[1], (y,), (x[2],))[1]
    )(x[0]),
    "jit inside": lambda f: lambda x: func.grad(lambda y: func.vmap(func.jit(func.grad(f)))(y).sum())(x),
}  # fmt: skip


@pytest.mark.parametrize("name", INNER)
def test_compositions(name: str) -> None:
    x = numbers(3, 4) * 0.5 + 0.2
    for transform in OUTER.values():
        check(transform(INNER[name]), x, native=False, rtol=1e-8)
