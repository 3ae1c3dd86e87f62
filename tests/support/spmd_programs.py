"""Programs for several processes: `mpiexec -n N python -m tests.support.spmd_programs NAME...`.

`equal` runs every function of a table on processes, and under a vmap in one process, and compares;
`equal:value,grad of jit` does so for these derivatives alone. `errors` provokes every error that all ranks get. `abort`
and `stuck` fail on one rank and cannot reach the others.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

import func
from examples.processes import conjugate_gradients, heat_equation, matrix_products
from func import collectives as c
from func import errors
from func.backends.llvm import machine
from func.interpreters.calls import backward_plans
from func.message_passing import communicator

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size
AXIS = "ranks"
RING = [(i, (i + 1) % SIZE) for i in range(SIZE)]
UP = [(i, i + 1) for i in range(SIZE - 1)]
RNG = np.random.default_rng(7)
X = RNG.normal(size=(SIZE, 3))
POSITIVE = RNG.uniform(0.2, 1.0, (SIZE, 3))
ROWS = RNG.normal(size=(SIZE, SIZE, 3))
COMPLEX = RNG.normal(size=(SIZE, 3)) + 1j * RNG.normal(size=(SIZE, 3))
STEPS = np.linspace(0.1, 0.9, 4)

Function = Callable[..., Any]


def weighted(x: Any) -> Any:
    """A loss that differs between ranks."""
    return np.sum(np.sin(x) * (1 + c.axis_index(AXIS)))


def in_a_scan(x: Any) -> Any:
    def step(carry: Any, w: Any) -> Any:
        carry = 0.5 * carry + w * np.tanh(c.ppermute(carry, AXIS, RING))
        return carry, c.pmean(carry, AXIS)

    last, means = func.scan(step, x, STEPS)
    return np.sum(last**2) + np.sum(means)


def in_a_while_loop(x: Any) -> Any:
    return np.sum(func.while_loop(lambda y: c.psum(np.sum(y * y), AXIS) > 0.01, lambda y: y * 0.6, x, max_steps=20))


def in_a_branch(x: Any) -> Any:
    total = c.psum(np.sum(x), AXIS)
    return np.sum(func.cond(total > -100, lambda y: c.pmean(y * y, AXIS) * y, lambda y: -y, x))


def in_a_checkpoint(x: Any) -> Any:
    return np.sum(func.checkpoint(lambda y: c.psum(np.sin(y), AXIS) * c.ppermute(y, AXIS, RING))(x) ** 2)


@func.custom_vjp
def norm_over_ranks(x: Any) -> Any:
    return np.sqrt(c.psum(np.sum(x * x), AXIS))


def _norm_forward(x: Any) -> Any:
    out = np.sqrt(c.psum(np.sum(x * x), AXIS))
    return out, (x, out)


def _norm_backward(saved: Any, ct: Any) -> Any:
    x, out = saved
    return (x / out * c.psum(ct, AXIS),)


norm_over_ranks.defvjp(_norm_forward, _norm_backward)


def unused(x: Any) -> Any:
    """Collectives of which nothing is left, of which the derivative is left alone, and of which the value is."""
    c.psum(np.cos(x), AXIS)
    c.all_gather(x, AXIS)
    masked = np.where(np.arange(3) >= 3, c.ppermute(x, AXIS, UP), x)
    return np.sum(masked * x) + 0 * np.sum(c.pmax(x, AXIS)) + func.stop_gradient(np.sum(c.psum(x * x, AXIS)))


OWN = np.arange(3) >= RANK
"""A constant that differs between ranks: on the first one it selects everything, and compilers see that."""


def with_own_constants(x: Any) -> Any:
    """Messages stay despite the constants that a compiler infers; `np.where` of constants leaves some without use."""
    total = np.where(OWN, c.psum(x * x, AXIS), 0.0) + np.where(OWN | True, 0.0, c.psum(np.sin(x), AXIS))
    return np.sum(np.where(~OWN & OWN, c.ppermute(x, AXIS, RING), total) * x)


def without_selected_nan(x: Any) -> Any:
    """On some ranks the plain pullback is NaN, so that all of them repeat it."""
    index = c.axis_index(AXIS)
    inside = np.where(index == 0, x * 0, x * x + 1)
    return np.sum(np.where(inside > 0, np.sqrt(inside), 0.0) * c.psum(x, AXIS))


def tree(x: Any) -> Any:
    sums, (low, high) = c.psum({"a": x, "b": (x[:1], 2.0)}, AXIS), (c.pmin([x], AXIS), c.pmax((x,), AXIS))
    return np.sum(sums["a"] * x) + np.sum(sums["b"][0]) * sums["b"][1] + np.sum(low[0] * high[0])


def mapped_inside(x: Any) -> Any:
    """A batch of collectives is one message."""
    rows = np.stack([x, 2 * x, x * x])
    out = func.vmap(
        lambda row: (
            c.psum(row, AXIS) * c.all_gather(row[0], AXIS)[0]
            + c.ppermute(row, AXIS, RING)
            + c.reduce_scatter(np.stack([row] * SIZE), AXIS)
            + np.sum(c.all_to_all(np.stack([row] * SIZE), AXIS, 0, 1), 1)
            + c.broadcast(row, AXIS, root=SIZE - 1)
            + c.pmax(row, AXIS)
        )
    )(rows)
    return np.sum(out * out)


def of_complex(z: Any) -> Any:
    return np.sum(np.abs(c.psum(z * z, AXIS) * z) ** 2) + np.sum(z.imag * c.pmean(z.real, AXIS))


def inner_axis(x: Any) -> Any:
    """Two axes, of which one is a vmap's."""
    return np.sum(func.vmap(lambda row: row / c.psum(np.exp(row), ("inner", AXIS)), axis_name="inner")(x) ** 2)


def hooked(x: Any) -> Any:
    """Imperative code inside."""
    w = func.tensor(x, requires_grad=True)
    loss = c.psum(np.sum(np.sin(w)), AXIS) ** 2
    loss.backward()
    return w.grad


# A function of the value on one rank, its value on every rank, and whether it is differentiated.
SCALAR: dict[str, tuple[Function, Any]] = {
    "psum": (lambda x: np.sum(c.psum(np.sin(x), AXIS) * x), X),
    "pmean": (lambda x: np.sum((x - c.pmean(x, AXIS)) ** 3), X),
    "extrema": (lambda x: np.sum(c.pmax(x, AXIS) * x) + np.sum(c.pmin(x * x, AXIS)), X),
    "all_gather": (lambda x: np.sum(c.all_gather(x, AXIS, axis=-1) ** 2 @ np.ones(SIZE) * x), X),
    "all_gather, tiled": (lambda x: np.sum(np.cumsum(c.all_gather(x, AXIS, tiled=True)) ** 2), X),
    "reduce_scatter": (lambda x: np.sum(c.reduce_scatter(np.sin(x), AXIS) ** 2), ROWS),
    "psum_scatter, tiled": (lambda x: np.sum(c.psum_scatter(x.T**2, AXIS, axis=1, tiled=True) ** 2), ROWS),
    "all_to_all": (lambda x: np.sum(c.all_to_all(x * x, AXIS, 0, 1) * x.T), ROWS),
    "all_to_all, tiled": (lambda x: np.sum(c.all_to_all(x.T**2, AXIS, 1, 0, tiled=True) ** 3), ROWS),
    "ppermute": (lambda x: np.sum(c.ppermute(x * x, AXIS, UP) * x), X),
    "send_recv": (lambda x: np.sum(c.send_recv(np.cos(x), AXIS, source=SIZE - 1, dest=0) * x), X),
    "broadcast": (lambda x: np.sum(c.broadcast(np.cos(x), AXIS, root=SIZE - 1) * x), X),
    "axis_index, axis_size": (lambda x: weighted(x) * c.psum(weighted(x), AXIS) / c.axis_size(AXIS), X),
    "scan": (in_a_scan, X),
    "while": (in_a_while_loop, X),
    "cond": (in_a_branch, X),
    "checkpoint": (in_a_checkpoint, X),
    "custom_vjp": (lambda x: norm_over_ranks(x) ** 3, X),
    "unused": (unused, X),
    "constants": (lambda x: c.psum(3.0, AXIS) * np.sum(x) + c.pmean(np.ones(3), AXIS) @ x, X),
    "structural zeros": (without_selected_nan, POSITIVE),
    "trees": (tree, X),
    "vmap inside": (mapped_inside, X),
    "two axes": (inner_axis, X),
    "0-d": (lambda x: c.psum(x[0], AXIS) * c.all_gather(x[1], AXIS)[0] * c.ppermute(x[2], AXIS, RING), X),
    "empty": (lambda x: np.sum(c.psum(x[:0], AXIS)) + np.sum(c.all_gather(x[:0], AXIS)) + np.sum(x * x), X),
    "float32": (lambda x: np.sum(c.psum(x.astype(np.float32) ** 2, AXIS) * x), X),
    "not contiguous": (
        lambda x: np.sum(c.all_gather(x[::-1, ::2].T, AXIS) ** 2) + np.sum(c.psum(x.T, AXIS) * x.T),
        ROWS,
    ),
}
PLAIN: dict[str, Function] = {
    "checkpoint": lambda x: np.sum((c.psum(np.sin(x), AXIS) * c.ppermute(x, AXIS, RING)) ** 2),
    "custom_vjp": lambda x: c.psum(np.sum(x * x), AXIS) ** 1.5,
}
"""The counterparts under a vmap: it does not reach inside of rules and checkpoints, as processes do."""
VALUES: dict[str, tuple[Function, Any]] = {
    "integers": (lambda x: (c.psum(x, AXIS), c.pmax(x, AXIS), c.all_gather(x, AXIS)), (X * 10).astype(np.int32)),
    "bool": (lambda x: (c.psum(x, AXIS), c.pmax(x, AXIS), c.ppermute(x, AXIS, RING)), X > 0),
    "half": (lambda x: (c.pmax(x, AXIS), c.all_gather(x, AXIS), c.broadcast(x, AXIS)), X.astype(np.float16)),
    "half sums": (lambda x: c.psum(x, AXIS), np.round(X * 8).astype(np.float16)),
    "NaN": (lambda x: (c.pmax(x, AXIS), c.pmin(x, AXIS), c.psum(x, AXIS)), np.where(X > 0.5, np.nan, X)),
    "complex": (func.grad(of_complex), COMPLEX),
    "complex extrema": (lambda z: c.pmax(z, AXIS), COMPLEX),
    "imperative": (hooked, X),
    "linearize": (lambda x: func.linearize(in_a_scan, x)[1](np.cos(x)), X),
    "jet": (lambda x: func.taylor(lambda y: c.psum(np.sin(y), AXIS) * y, x, np.ones(3), 3), X),
    "laplacian": (func.laplacian(lambda x: np.sum(c.psum(x * x, AXIS) * x)), X),
    "batch of gradients": (func.vmap(func.grad(lambda x: c.psum(x * x, AXIS) * c.ppermute(x, AXIS, UP))), X),
}


def vectors(f: Function) -> dict[str, Function]:
    """The derivatives that are compared."""
    gradient = func.grad(f)
    return {
        "value": f,
        "grad": gradient,
        "jvp": lambda x: func.jvp(f, (x,), (np.cos(x),))[1],
        "jit of grad": func.jit(gradient),
        "grad of jit": func.grad(func.jit(f)),
        "reverse over forward": func.grad(lambda x: func.jvp(f, (x,), (np.cos(x),))[1]),
        "forward over reverse": lambda x: func.jvp(gradient, (x,), (np.cos(x),))[1],
        "reverse over reverse": func.grad(lambda x: np.sum(np.sin(gradient(x)))),
    }


def check(name: str, on_ranks: Function, in_one_process: Function, values: Any) -> None:
    """Compare what this rank gets with its part of what a vmap gets in one process."""
    program = func.spmd(on_ranks, COMM, AXIS, check=len(name) % 3 > 0)  # both ways, the same one on all ranks
    out = program(values[RANK])
    expected = func.vmap(in_one_process, axis_name=AXIS)(values)
    for got, whole in zip(func.tree.leaves(out), func.tree.leaves(expected), strict=True):
        want = whole[RANK]
        assert np.dtype(got.dtype) == np.dtype(want.dtype) and np.shape(got) == np.shape(want), (name, got, want)
        scale = max(1.0, float(np.nanmax(np.abs(whole), initial=0.0)))
        tolerance = 1e-12 if got.dtype.itemsize >= 8 and "float32" not in name else 1e-5
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=name)


def equal(kinds: Sequence[str]) -> None:
    """Every function of the tables, with its derivatives of some kinds, or all."""
    for name, (f, values) in SCALAR.items():
        whole = vectors(PLAIN.get(name, f))
        for kind, derived in vectors(f).items():
            if not kinds or kind in kinds:
                check(f"{name}: {kind}", derived, whole[kind], values)
    for name, (f, values) in VALUES.items():
        check(name, f, f, values)
        if name != "imperative" and not kinds:
            check(f"{name}: jit", func.jit(f), f, values)
    constants_of_ranks()
    programs_are_kept()
    communicators()


def constants_of_ranks() -> None:
    """The same messages on all ranks, whatever their constants are."""
    masks = np.arange(3) >= np.arange(SIZE)[:, None]
    total = np.sum(X * X, 0) * masks
    for f in (with_own_constants, func.jit(with_own_constants)):
        np.testing.assert_allclose(func.spmd(f, COMM)(X[RANK]), np.sum(total * X, 1)[RANK], atol=1e-12)
    gradient = 2 * X[RANK] * np.sum(masks * X, 0) + total[RANK]
    for g in (func.grad(with_own_constants), func.grad(func.jit(with_own_constants))):
        np.testing.assert_allclose(func.spmd(g, COMM)(X[RANK]), gradient, atol=1e-12)


def programs_are_kept() -> None:
    """A jitted function is traced once for an axis, and not taken for another one."""
    share = func.jit(lambda x: x / c.axis_size(AXIS) + 0 * c.psum(x, AXIS) + c.axis_index(AXIS))
    number = func.jit(lambda x: x * c.axis_size(AXIS))
    outer = func.jit(lambda x: share(x) + number(x))
    own = COMM.Split(RANK)
    for _ in range(3):
        for f, expected in ((share, 1 / SIZE + RANK), (number, SIZE), (outer, 1 / SIZE + RANK + SIZE)):
            assert func.spmd(f, COMM)(1.0) == expected
        for f, expected in ((share, 1.0), (number, 1.0), (outer, 2.0)):
            assert func.spmd(f, own)(1.0) == expected
        assert func.vmap(number, axis_name=AXIS)(np.ones(5)).tolist() == [5.0] * 5
    assert share.cache_info().misses == outer.cache_info().misses == 2, share.cache_info()
    own.Free()
    again = pickle.loads(pickle.dumps(func.jit(weighted)))  # also where programs with a communicator are kept
    kept = func.jit(weighted)
    for f in (again, kept):
        func.spmd(f, COMM)(X[RANK])
    copy = pickle.loads(pickle.dumps(kept))
    assert func.spmd(copy, COMM)(X[RANK]) == func.spmd(kept, COMM)(X[RANK])


def communicators() -> None:
    """One duplicate for a communicator, two axes of processes, and what becomes of what was freed."""
    grid = COMM.Split(RANK % 2, RANK), COMM.Split(RANK // 2, RANK)
    rows = [[rank for rank in range(SIZE) if rank % 2 == RANK % 2], [r for r in range(SIZE) if r // 2 == RANK // 2]]

    def inner(x: Any) -> Any:
        return c.psum(x, "rows"), c.psum(x, "columns"), c.psum(func.jit(lambda y: c.psum(y, "rows"))(x), "columns")

    outer = func.spmd(lambda x: func.spmd(inner, grid[1], "columns")(x), grid[0], "rows")
    first, second, _ = outer(float(RANK))
    assert [first, second] == [sum(rows[0]), sum(rows[1])]
    if SIZE == 4:
        everywhere = func.spmd(
            lambda x: func.spmd(lambda x: c.psum(x, ("rows", "columns")), grid[1], "columns")(x), *grid[:1], "rows"
        )
        assert everywhere(float(RANK)) == 6.0
    for comm in grid:
        comm.Free()
    for round in range(3000 if SIZE <= 2 else 10):  # MPI runs out of communicators after some two thousand
        func.spmd(lambda x: x, COMM, check=False)(round)


def raised(f: Function, kind: type[Exception], *words: str, arg: Any = None, comm: Any = COMM, **options: Any) -> str:
    """Run a function that fails on this rank; its error has these words."""
    try:
        func.spmd(f, comm, **options)(X[RANK] if arg is None else arg)
    except Exception as error:
        text = str(error)
        assert type(error) is kind, repr(error)
        for word in words:
            assert word in text, (word, text)
        return text
    raise AssertionError(f"no error on rank {RANK}")


def error_programs(_: Sequence[str]) -> None:
    """Failures, and the errors by which every rank learns of them."""

    def fails(x: Any) -> Any:
        total = c.psum(x, AXIS)
        if RANK == 1:
            raise ZeroDivisionError("on this rank alone")
        return np.sum(c.psum(total, AXIS))

    def fails_at_the_end(x: Any) -> Any:
        total = c.psum(x, AXIS)
        return 1 // 0 if RANK == 1 else total

    def fails_backward(x: Any) -> Any:
        @func.custom_vjp
        def rule(y: Any) -> Any:
            return y

        def backward(saved: Any, ct: Any) -> Any:
            return (ct / saved if RANK != 1 else 1 // 0,)

        rule.defvjp(lambda y: (y, y), backward)
        return func.grad(lambda x: np.sum(c.psum(rule(x), AXIS) ** 2))(c.psum(x, AXIS))

    for f in (fails, func.grad(fails), fails_at_the_end, fails_backward):
        if RANK == 1:
            raised(f, ZeroDivisionError)
        else:
            text = raised(f, errors.RankError, f"rank 1 of {SIZE} failed while rank {RANK} was in ", "Traceback (most")
            assert "spmd_programs.py" in text and "message_passing" not in text, text

    def others(kind: type[Exception], f: Function, *words: str) -> None:
        raised(f, kind, *words, "Where a branch or the length of a loop depends on the rank")

    mismatch = errors.CollectiveError
    others(
        mismatch,
        lambda x: (c.psum if RANK else c.pmax)(x, AXIS),
        "rank 0: pmax of float64[3] for pmax(x)",
        "in error_programs",
    )
    others(mismatch, lambda x: c.psum(x, AXIS) if RANK else x, "rank 0: the end of the function", "psum of float64[3]")
    others(mismatch, lambda x: c.psum(x[: RANK + 1], AXIS), "rank 0: psum of float64[1]", "rank 1: psum of float64[2]")
    others(
        mismatch, lambda x: c.psum(x.astype("f4" if RANK else "f8"), AXIS), "psum of float32[3]", "psum of float64[3]"
    )
    others(mismatch, lambda x: c.psum({"ab"[RANK > 0]: x}, AXIS), "psum(x['a'])", "psum(x['b'])")
    others(mismatch, lambda x: c.psum((x,) * (1 + RANK), AXIS), "psum(x[1])", "the end of the function")
    others(mismatch, lambda x: c.broadcast(x, AXIS, root=RANK), "broadcast 0 of", "broadcast 1 of")
    others(mismatch, lambda x: c.ppermute(x, AXIS, RING if RANK else UP), "ppermute ((0, 1)")

    def branch(x: Any) -> Any:
        return func.cond(c.axis_index(AXIS) == 1, lambda y: c.psum(y, AXIS), lambda y: y, x)

    def loop(x: Any) -> Any:
        return func.while_loop(lambda y: y < 3, lambda y: y + c.pmax(1.0, AXIS), x)

    others(mismatch, func.jit(branch), "rank 1: psum", "the end of the function")
    raised(func.jit(loop), mismatch, "pmax of float64[] for pmax(x)", arg=float(RANK))
    raised(func.jit(lambda x: x if c.axis_index(AXIS) else -x), errors.StagingError, "func.cond")
    raised(lambda x: c.psum(x, "other"), errors.AxisNameError, "names in scope: 'ranks'")
    np.testing.assert_allclose(func.spmd(lambda x: c.psum(x, AXIS), COMM)(X[RANK]), X.sum(0), atol=1e-12)

    comm = COMM.Dup()
    total = func.spmd(lambda x: c.psum(x, AXIS), comm)
    total(1.0)
    kept = func.spmd(func.make_program(lambda x: c.psum(x, AXIS)), comm)(1.0)
    raised_by(lambda: pickle.dumps(kept), errors.CommunicatorError, "cannot be pickled or saved")
    raised_by(lambda: func.save(kept, os.devnull), errors.ProgramFileError, "exchanges messages with other processes")
    for transform in (func.to_source, func.to_c):
        raised(transform(lambda x: c.psum(x, AXIS)), errors.NoSourceError, "rank_psum")
    raised(func.sparse_jacobian(lambda x: c.psum(x, AXIS)), TypeError, "exchanges messages with other processes")
    comm.Free()
    raised_by(
        lambda: kept(1.0), errors.CommunicatorError, "the communicator of psum of float64[] for psum(x) was freed"
    )
    raised_by(lambda: total(1.0), errors.CommunicatorError, "comm is MPI.COMM_NULL: the communicator was freed")
    raised_by(lambda: func.spmd(np.sin, comm), errors.CommunicatorError, "COMM_NULL")
    for transform in (func.grad, func.jit, func.vmap):
        name = transform.__name__
        raised_by(
            lambda transform=transform: transform(func.spmd(np.sum, COMM))(np.ones(2)),
            errors.ArgumentError,
            f"is called inside of func.{name}",
            f"func.spmd(func.{name}(f), comm)",
        )


def raised_by(call: Callable[[], Any], kind: type[Exception], *words: str) -> None:
    """Make a call that fails; its error has these words."""
    try:
        call()
    except Exception as error:
        assert type(error) is kind, repr(error)
        assert all([word in str(error) for word in words]), str(error)
    else:
        raise AssertionError("no error")


def examples(_: Sequence[str]) -> None:
    """The examples equal one process, and send what the formulas say."""
    plate = heat_equation.plate()
    own = np.split(plate, SIZE)[RANK]
    whole = func.vmap(heat_equation.misfit_and_gradient, axis_name=AXIS)(plate[None], plate[None] * 0.5)
    adjoint = func.spmd(heat_equation.misfit_and_gradient, COMM, AXIS)
    for _ in range(2):
        adjoint.traffic.reset()
        value, gradient = adjoint(own, own * 0.5)
        np.testing.assert_allclose(gradient, np.split(whole[1][0], SIZE)[RANK], rtol=0, atol=1e-12)
        total = func.spmd(lambda x: c.psum(x, AXIS), COMM)(value)
        np.testing.assert_allclose(total, whole[0][0], rtol=1e-12)
        assert adjoint.traffic.sent == heat_equation.bytes_of_gradient(RANK, SIZE, plate.shape[1])
        assert adjoint.traffic.sent == adjoint.traffic.received
    slope = 1e-6 * (func.spmd(heat_equation.misfit, COMM)(own, own * 0.5) * 0 + 1)
    up, down = [func.spmd(heat_equation.misfit, COMM)(own * (1 + sign * slope), own * 0.5) for sign in (1, -1)]
    sums = func.spmd(lambda *x: c.psum(x, AXIS), COMM)((up - down) / (2 * slope), np.sum(gradient * own))
    np.testing.assert_allclose(*sums, rtol=1e-7)

    stiffness, b = conjugate_gradients.problem()
    truth = func.grad(conjugate_gradients.dense, argnums=(0, 1))(stiffness, b)
    parts = [np.split(values, SIZE)[RANK] for values in (stiffness, b, *truth)]
    energy = func.grad(conjugate_gradients.energy, argnums=(0, 1))
    for f in (energy, func.jit(energy)):
        for got, want in zip(func.spmd(f, COMM)(*parts[:2]), parts[2:], strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.max(np.abs(truth[0])))

    a, b = matrix_products.matrices()
    rows = [np.split(matrix, SIZE)[RANK] for matrix in (a, b)]
    ring = func.spmd(func.jit(matrix_products.ring_product), COMM, AXIS)
    np.testing.assert_allclose(ring(*rows), np.split(a @ b, SIZE)[RANK], atol=1e-12)
    assert ring.traffic.sent == (SIZE - 1) * a.size // SIZE * 8
    pulled = func.spmd(func.grad(lambda a, b: np.sum(matrix_products.ring_product(a, b) ** 3), argnums=(0, 1)), COMM)
    expected = func.grad(lambda a, b: np.sum((a @ b) ** 3), argnums=(0, 1))(a, b)
    for got, want in zip(pulled(*rows), expected, strict=True):
        np.testing.assert_allclose(got, np.split(want, SIZE)[RANK], rtol=0, atol=1e-12 * np.max(np.abs(want)))
    if SIZE == 4:
        place = divmod(RANK, 2)
        blocks = [np.split(np.split(x, 2)[place[0]], 2, axis=1)[place[1]] for x in (a, b, a @ b)]
        grid = COMM.Split(place[1], RANK), COMM.Split(place[0], RANK)
        inner = func.spmd(matrix_products.grid_product, grid[1], "columns")
        np.testing.assert_allclose(func.spmd(inner, grid[0], "rows")(*blocks[:2]), blocks[2], atol=1e-12)


def abort(_: Sequence[str]) -> None:
    """An error on one rank where ranks do not compare: it ends all of them."""
    func.spmd(lambda x: c.psum(x if RANK else x / (1 // 0), AXIS), COMM, check=False)(1.0)


def stuck(_: Sequence[str]) -> None:
    """An error on one rank while another one waits elsewhere: it ends all of them after a while."""
    communicator.PATIENCE = 0.3

    def f(x: Any) -> Any:
        if RANK == 1:
            raise ZeroDivisionError("on this rank alone")
        COMM.Recv(np.ones(1), 1)

    func.spmd(f, COMM)(1.0)


def timeout(_: Sequence[str]) -> None:
    """A rank that does not come in time."""
    func.spmd(lambda x: c.psum(x, AXIS) if RANK else time.sleep(60), COMM, timeout=0.3)(1.0)


def same_bits(_: Sequence[str]) -> None:
    """A replicated gradient is the same on all ranks, of which one has compiled its backward pass before."""
    x = np.random.default_rng(3).normal(size=(100, 400))

    def gradient(x: Any) -> Any:
        def loss(x: Any) -> Any:
            e = np.exp(x - np.max(x, axis=-1, keepdims=True))
            return np.sum(e / np.sum(e, axis=-1, keepdims=True) * x)

        return func.grad(loss)(x)

    backward_plans.START = backward_plans.BASE_COST = backward_plans.COST_OF_NODE = 0.0
    if RANK == 0:
        for _ in range(200):
            compiled = gradient(x)
    alone = func.spmd(gradient, COMM)(x)
    assert len(set(COMM.allgather(alone.tobytes()))) == 1
    if RANK == 0 and machine.available():
        assert compiled.tobytes() != alone.tobytes()  # else nothing is tested


PROGRAMS: dict[str, Callable[[Sequence[str]], None]] = {
    "equal": equal,
    "errors": error_programs,
    "examples": examples,
    "abort": abort,
    "stuck": stuck,
    "timeout": timeout,
    "same bits": same_bits,
}

if __name__ == "__main__":
    try:
        for name, _, kinds in [argument.partition(":") for argument in sys.argv[1:]]:
            PROGRAMS[name](kinds.split(",") if kinds else [])
    except BaseException:  # outside of func.spmd nobody tells the other ranks
        traceback.print_exc()
        sys.stderr.flush()
        COMM.Abort(1)
