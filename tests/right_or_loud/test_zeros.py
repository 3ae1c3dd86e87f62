"""Zeros in derivatives: one that was not selected or not seeded stays zero, a computed one obeys IEEE arithmetic.

Every program has one answer on every road: gradients, tangents, Jacobians, jit, tensors, checkpoints, loops, batches.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func

NAN, INF = np.nan, np.inf
Function = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _by_scan(f: Function, x: Any) -> Any:
    return func.scan(lambda carry, _: (carry + f(x), None), np.zeros((), x.dtype)[()], None, length=1)[0]


def _directions(x: Any) -> Any:
    return np.eye(np.size(x), dtype=x.dtype).reshape((np.size(x), *np.shape(x)))


def _by_directions(push: Callable[[Any], Any], x: Any) -> Any:
    return np.stack([push(direction) for direction in _directions(x)]).reshape(np.shape(x))


def _backward(f: Function, x: Any) -> Any:
    leaf = func.tensor(x, requires_grad=True)
    f(leaf).backward()
    return leaf.grad.numpy()


def _autograd_grad(f: Function, x: Any) -> Any:
    leaf = func.tensor(x, requires_grad=True)
    leaf.register_hook(lambda gradient: None)
    return func.autograd.grad(f(leaf), leaf)[0].numpy()


def _create_graph(f: Function, x: Any) -> Any:
    leaf = func.tensor(x, requires_grad=True)
    return func.autograd.grad(f(leaf), leaf, create_graph=True)[0].detach().numpy()


def _dual(f: Function, x: Any) -> Any:
    def push(direction: Any) -> Any:
        with func.autograd.forward_ad.dual_level():
            out = f(func.autograd.forward_ad.make_dual(func.tensor(x), func.tensor(direction)))
            tangent = func.autograd.forward_ad.unpack_dual(out).tangent
            return np.zeros(()) if tangent is None else tangent.numpy()

    return _by_directions(push, x)


ROADS: dict[str, Callable[[Function, Any], Any]] = {
    "grad": lambda f, x: func.grad(f)(x),
    "value_and_grad": lambda f, x: func.value_and_grad(f)(x)[1],
    "jit(grad)": lambda f, x: func.jit(func.grad(f))(x),
    "jit(grad), numpy": lambda f, x: func.jit(func.grad(f), compiler="numpy")(x),
    "grad(jit)": lambda f, x: func.grad(func.jit(f))(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](np.ones((), x.dtype)[()])[0],
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "jit(jacfwd)": lambda f, x: func.jit(func.jacfwd(f))(x),
    "jvp": lambda f, x: _by_directions(lambda dx: func.jvp(f, (x,), (dx,))[1], x),
    "jit(jvp)": lambda f, x: _by_directions(func.jit(lambda dx: func.jvp(f, (x,), (dx,))[1]), x),
    "jvp(jit)": lambda f, x: _by_directions(lambda dx: func.jvp(func.jit(f), (x,), (dx,))[1], x),
    "linearize": lambda f, x: _by_directions(func.linearize(f, x)[1], x),
    "vmap(grad)": lambda f, x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
    "vmap(jvp)": lambda f, x: func.vmap(lambda dx: func.jvp(f, (x,), (dx,))[1])(_directions(x)).reshape(np.shape(x)),
    "checkpoint": lambda f, x: func.grad(func.checkpoint(f))(x),
    "jvp(checkpoint)": lambda f, x: _by_directions(lambda dx: func.jvp(func.checkpoint(f), (x,), (dx,))[1], x),
    "cond": lambda f, x: func.jit(func.grad(lambda v: func.cond(np.size(v) > 0, f, lambda w: np.sum(w), v)))(x),
    "scan": lambda f, x: func.jit(func.grad(lambda v: _by_scan(f, v)))(x),
    "backward": _backward,
    "autograd.grad": _autograd_grad,
    "create_graph": _create_graph,
    "dual numbers": _dual,
}


def _logsumexp(x: Any) -> Any:
    return np.log(np.sum(np.exp(x)))


def _overwritten(x: Any) -> Any:
    out = np.sqrt(x)
    out[0] = 1.0
    return np.sum(out)


def _masked_write(x: Any) -> Any:
    out = np.log(x)
    out[x <= 0] = 0.0
    return np.sum(out)


COMPUTED: dict[str, tuple[Function, Any, Any]] = {
    "log(1 + exp)": (lambda x: np.log(1 + np.exp(x)), 1000.0, NAN),
    "log1p(exp)": (lambda x: np.log1p(np.exp(x)), 1000.0, NAN),
    "log(1 + exp), float32": (lambda x: np.log(1 + np.exp(x)), np.float32(89), NAN),
    "log(cosh)": (lambda x: np.log(np.cosh(x)), 800.0, NAN),
    "log(cosh), float32": (lambda x: np.log(np.cosh(x)), np.float32(100), NAN),
    "residuals": (lambda w: np.sum(np.log(np.cosh(np.array([1e4, 1.0]) - w * np.array([3.0, 1.0])))), 1.0, NAN),
    "sqrt ** 2": (lambda x: np.sqrt(x) ** 2, 0.0, NAN),
    "(x ** 0.5) ** 2": (lambda x: (x**0.5) ** 2, 0.0, NAN),
    "exp(log)": (lambda x: np.exp(np.log(x)), 0.0, NAN),
    "log of an underflow": (lambda x: np.log(np.exp(-x * x / 2)), 100.0, NAN),
    "sqrt of a square": (lambda x: np.sqrt(x * x), 0.0, NAN),
    "norm by hand": (lambda x: np.sqrt(np.sum(x * x)), [0.0, 0.0], [NAN, NAN]),
    "sqrt(abs)": (lambda x: np.sqrt(np.abs(x)), 0.0, NAN),
    "logsumexp by hand": (_logsumexp, [1000.0, 0.0], [NAN, 0.0]),
    "sigmoid by hand": (lambda x: 1 / (1 + np.exp(-x)), -800.0, NAN),
    "divide": (lambda x: np.sum(x / np.array([0.0, 1.0])), [0.0, 2.0], [INF, 1.0]),
    "zero times infinity": (lambda x: np.sum(x * x * np.array([INF, 1.0])), [0.0, 1.0], [NAN, 2.0]),
    "infinite slope": (lambda x: np.sqrt(x), 0.0, INF),
    "infinite slope of a logarithm": (lambda x: np.log(x), 0.0, INF),
    "softplus": (lambda x: np.logaddexp(x, 0.0), 1000.0, 1.0),
    "logsumexp": (lambda x: np.logaddexp.reduce(x), [1000.0, 0.0], [1.0, 0.0]),
}
SELECTED: dict[str, tuple[Function, Any, Any]] = {
    "where, sqrt": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), 0.0, 0.0),
    "sqrt, where": (lambda x: np.sum(np.sqrt(np.where(x > 0, x, 0.0))), [-1.0, 0.0, 4.0], [0.0, 0.0, 0.25]),
    "where, p log p": (lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0)), [0.0, 1.0], [0.0, 1.0]),
    "where, log(1 + exp)": (lambda x: np.sum(np.where(x > 30, x, np.log(1 + np.exp(x)))), [1e3, 0.0], [1.0, 0.5]),
    "where on where": (
        lambda x: np.sum(np.log(np.where(x > 0, x, 1.0)) * np.where(x > 0, 1.0, INF)),
        [0.0, 2.0],
        [0.0, 0.5],
    ),
    "overwritten by a number": (lambda x: (y := np.sqrt(x), y.fill(0.5), np.sum(y * y + x))[2], [0.0, 4.0], [1.0, 1.0]),
    "overwritten by others": (
        lambda x: (y := np.sqrt(x), y.__setitem__(slice(None, None, -1), x * x), np.sum(y))[2],
        [0.0, 4.0],
        [0.0, 8.0],
    ),
    "select": (lambda x: np.sum(np.select([x > 1, x > 0], [x, np.sqrt(x)], 0.0)), [0.0, 4.0], [0.0, 1.0]),
    "maximum, sqrt": (lambda x: np.sum(np.sqrt(np.maximum(x, 0.0))), [-1.0, 4.0], [0.0, 0.25]),
    "sqrt, maximum": (lambda x: np.sum(np.maximum(np.sqrt(x), 1.0)), [0.0, 4.0], [0.0, 0.25]),
    "minimum, log": (lambda x: np.sum(np.minimum(np.log(x), -1.0)), [INF, 0.25], [0.0, 4.0]),
    "fmax": (lambda x: np.sum(np.fmax(np.sqrt(x), 1.0)), [-1.0, 0.0, 4.0], [0.0, 0.0, 0.25]),
    "clip": (lambda x: np.sum(np.sqrt(np.clip(x, 0.0, 9.0))), [-1.0, 4.0, 10.0], [0.0, 0.25, 0.0]),
    "max": (lambda x: np.max(np.sqrt(x)), [0.0, 4.0], [0.0, 0.25]),
    "max of nan": (lambda x: np.max(np.where(x > 0, x, 0.0) * np.array([1.0, 2.0])), [-1.0, 4.0], [0.0, 2.0]),
    "min": (lambda x: np.min(1 / x), [0.0, -4.0], [0.0, -0.0625]),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(np.sqrt(x))[1], [0.0, 4.0], [0.0, 0.25]),
    "index": (lambda x: np.sqrt(x)[1], [0.0, 4.0], [0.0, 0.25]),
    "slice": (lambda x: np.sum(np.log(x)[1:]), [0.0, 4.0, 2.0], [0.0, 0.25, 0.5]),
    "gather": (lambda x: np.sum(np.sqrt(x)[np.array([1, 1])]), [0.0, 4.0], [0.0, 0.5]),
    "boolean index": (lambda x: np.sum(np.take(np.sqrt(x), [1])), [0.0, 4.0], [0.0, 0.25]),
    "sort": (lambda x: np.sort(np.sqrt(x))[-1], [0.0, 4.0], [0.0, 0.25]),
    "diagonal": (lambda x: np.trace(np.sqrt(np.outer(x, np.ones(2)))[1:, 1:]), [0.0, 4.0], [0.0, 0.25]),
    "diag": (lambda x: np.sum(np.sqrt(np.diag(x))), [1.0, 4.0], [0.5, 0.25]),
    "tril": (lambda x: np.sum(np.sqrt(np.tril(np.stack([x, x])))), [1.0, 4.0], [1.0, 0.25]),
    "pad": (lambda x: np.sum(np.sqrt(np.pad(x, 1))), [1.0, 4.0], [0.5, 0.25]),
    "concatenate": (lambda x: np.sum(np.sqrt(np.concatenate([x, np.zeros(2)]))), [1.0, 4.0], [0.5, 0.25]),
    "stack": (lambda x: np.sum(np.sqrt(np.stack([x, np.zeros(2)]))), [1.0, 4.0], [0.5, 0.25]),
    "overwritten": (_overwritten, [0.0, 4.0], [0.0, 0.25]),
    "a contraction": (
        lambda x: (np.where(x > 0, x, 0.0) @ np.array([[INF, 1.0], [2.0, 3.0]]))[1],
        [0.0, 4.0],
        [0.0, 3.0],
    ),
    "norm": (lambda x: np.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    "hypot": (lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0.0, 0.0]),
    "tie": (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
    "abs": (lambda x: np.abs(x), 0.0, 0.0),
    "cumprod": (lambda x: np.sum(np.cumprod(x)[:2]), [0.0, 2.0, INF], [3.0, 0.0, 0.0]),
    "cumprod with zeros": (lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    "prod": (lambda x: np.prod(x), [3.0, 2.0, INF], [INF, INF, 6.0]),
    "prod with zeros": (lambda x: np.prod(x), [3.0, 0.0, 2.0], [0.0, 6.0, 0.0]),
    "prod of some": (lambda x: np.prod(x[:2]), [3.0, 2.0, INF], [2.0, 3.0, 0.0]),
    "nanmax": (lambda x: np.nanmax(x), [NAN, 4.0], [0.0, 1.0]),
    "nansum": (lambda x: np.nansum(np.sqrt(x)), [-1.0, 4.0], [0.0, 0.25]),
    "cond": (lambda x: func.cond(x > 0, np.sqrt, lambda v: 0 * v, x), 0.0, 0.0),
    "logsumexp without a term": (
        lambda x: func.special.logsumexp(x, b=np.array([0.0, 1.0])),
        [1000.0, 0.0],
        [0.0, 1.0],
    ),
    "custom derivative": (lambda x: np.where(x > 0, _custom_sqrt(x), 0.0), 0.0, 0.0),
    "custom tangent": (lambda x: np.where(x > 0, _custom_sqrt_forward(x), 0.0), 0.0, 0.0),
    "cast": (lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0).astype(np.float32)), [0.0, 4.0], [0.0, 0.25]),
    "complex": (lambda x: np.real(np.sum(np.where(x > 0, np.sqrt(x + 0j), 0.0))), [0.0, 4.0], [0.0, 0.25]),
}


@func.custom_vjp
def _custom_sqrt(x: Any) -> Any:
    return np.sqrt(x)


_custom_sqrt.defvjp(lambda x: (np.sqrt(x), x), lambda x, ct: (ct * 0.5 / np.sqrt(x),))


@func.custom_jvp
def _custom_sqrt_forward(x: Any) -> Any:
    return np.sqrt(x)


_custom_sqrt_forward.defjvp(lambda primals, tangents: (np.sqrt(primals[0]), tangents[0] * 0.5 / np.sqrt(primals[0])))

PROGRAMS = COMPUTED | SELECTED


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_answer_on_every_road(name: str) -> None:
    f, point, expected = PROGRAMS[name]
    x = np.asarray(point)[()]

    def loss(v: Any) -> Any:
        return np.sum(f(v))

    wrong = {}
    for road, derivative in ROADS.items():
        got = np.asarray(derivative(loss, x))
        if not np.allclose(got, expected, rtol=1e-6, equal_nan=True):
            wrong[road] = got
    assert not wrong, f"expected {expected}"


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum((x * np.array([0.0, 1.0])) ** 0.5),
        lambda x: np.sum(np.sqrt(np.array([[0.0, 0.0], [0.0, 1.0]]) @ x)),
    ],
)
def test_a_zero_of_a_constant_gives_nan_or_the_derivative(f: Function) -> None:
    """Compiled code leaves out what a constant zero multiplies, eager code multiplies."""
    x = np.array([1.0, 4.0])
    for road, derivative in ROADS.items():
        got = np.asarray(derivative(f, x))
        assert np.all(np.isnan(got) | (got == [0.0, 0.25])), road


def _vhp_of_graph(f: Function, x: Any) -> Any:
    rows = []
    for direction in _directions(x):
        leaf = func.tensor(x, requires_grad=True)
        (gradient,) = func.autograd.grad(f(leaf), leaf, create_graph=True)
        (gradient * direction).sum().backward()
        rows.append(leaf.grad.numpy())
    return np.stack(rows)


SECOND: dict[str, Callable[[Function, Any], Any]] = {
    **{f"hessian {mode}": lambda f, x, mode=mode: func.hessian(f, mode=mode)(x) for mode in ("fwd-rev", "rev-rev")},
    **{f"hessian {mode}": lambda f, x, mode=mode: func.hessian(f, mode=mode)(x) for mode in ("fwd-fwd", "rev-fwd")},
    "jit(rev-rev)": lambda f, x: func.jit(func.hessian(f, mode="rev-rev"))(x),
    "jit(rev-fwd)": lambda f, x: func.jit(func.hessian(f, mode="rev-fwd"))(x),
    "hessian(jit)": lambda f, x: func.hessian(func.jit(f))(x),
    "jacrev(jit(grad))": lambda f, x: func.jacrev(func.jit(func.grad(f)))(x),
    "jacfwd(jit(grad))": lambda f, x: func.jacfwd(func.jit(func.grad(f)))(x),
    "linearize(grad)": lambda f, x: np.stack([func.linearize(func.grad(f), x)[1](v) for v in _directions(x)]),
    "vhp": lambda f, x: np.stack([func.vhp(f, (x,), (v,)) for v in _directions(x)]),
    "hvp": lambda f, x: np.stack([func.hvp(f, (x,), (v,)) for v in _directions(x)]),
    "create_graph": _vhp_of_graph,
}
CURVES: dict[str, tuple[Function, Any, Any]] = {
    "where": (lambda x: np.sum(np.where(x > 0, x**1.5, 0.0)), [0.0, 4.0], [0.0, 0.375]),
    "p log p": (lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0)), [0.0, 2.0], [0.0, 0.5]),
    "index": (lambda x: np.sqrt(x)[1] * x[1], [0.0, 4.0], [0.0, 0.375]),
    "relu": (lambda x: np.sum(np.sqrt(np.maximum(x, 0.0)) * x), [-1.0, 4.0], [0.0, 0.375]),
    "pad": (lambda x: np.sum(np.pad(x, 1) ** 1.5), [1.0, 4.0], [0.75, 0.375]),
    "clip": (lambda x: np.sum(np.clip(np.log(x), -2, 2) * x), [0.0, 4.0], [0.0, 0.25]),
    "checkpoint": (
        lambda x: func.checkpoint(lambda v: np.sum(np.where(v > 0, v**1.5, 0.0)))(x),
        [0.0, 4.0],
        [0.0, 0.375],
    ),
    "scan": (
        lambda x: func.scan(lambda c, r: (c + np.where(r > 0, np.sqrt(r) * r, 0.0), None), 0.0, x)[0],
        [0.0, 4.0],
        [0.0, 0.375],
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_second_derivatives_know_what_the_first_one_did_not_select(name: str) -> None:
    f, point, expected = CURVES[name]
    x = np.array(point)
    for road, derivative in SECOND.items():
        np.testing.assert_allclose(derivative(f, x), np.diag(expected), atol=1e-12, err_msg=road)


def test_a_seed_that_is_differentiated_is_live_where_it_is_zero() -> None:
    """The transpose of a pullback is taken at a cotangent of zero."""

    def pulled(ct: Any) -> Any:
        return func.vjp(np.sqrt, np.array([0.0, 4.0]))[1](ct)[0]

    zero = np.zeros(2)
    np.testing.assert_array_equal(func.jvp(pulled, (zero,), (np.array([0.0, 1.0]),))[1][1], 0.25)
    assert func.jacfwd(pulled)(zero)[1, 1] == 0.25
    assert func.jacrev(lambda ct: pulled(ct)[1])(zero)[1] == 0.25


def test_a_step_of_an_optimizer_does_not_read_an_overflow_as_convergence() -> None:
    def loss(w: Any) -> Any:
        return np.sum(np.log(np.cosh(np.array([1e4, 1.0]) - w * np.array([3.0, 1.0]))))

    assert np.isinf(loss(1.0)) and np.isnan(func.grad(loss)(1.0)) and np.isnan(func.jit(func.grad(loss))(1.0))
    rates = func.vmap(func.grad(lambda x: np.log(1 + np.exp(x))))(np.array([0.0, 1000.0]))
    assert rates[0] == 0.5 and np.isnan(rates[1])


@pytest.mark.parametrize("number", [INF, -INF])
@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2])
def test_equal_infinities_share_evenly(f: Any, number: float) -> None:
    for derivative in (func.grad(f, (0, 1)), func.jit(func.grad(f, (0, 1)))):
        assert derivative(number, number) == (0.5, 0.5)
    assert func.jvp(f, (number, number), (1.0, 0.0))[1] == 0.5


def test_nan_elements_share_a_maximum_that_is_nan() -> None:
    x = np.array([1.0, NAN, NAN])
    for derivative in (func.grad, func.jacfwd, func.jacrev, lambda f: func.jit(func.grad(f))):
        for f in (np.max, np.min):
            np.testing.assert_array_equal(derivative(f)(x), [0.0, 0.5, 0.5])


@pytest.mark.parametrize("point", [0.0, 1.0, -1.5])
def test_the_fractional_part_has_slope_one(point: float) -> None:
    assert func.grad(lambda x: np.modf(x)[0])(point) == func.jvp(lambda x: np.modf(x)[0], (point,), (1.0,))[1] == 1.0


def test_hooks_leave_what_was_not_selected_at_zero() -> None:
    leaf = func.tensor(np.array([0.0, 4.0]), requires_grad=True)
    roots = np.sqrt(leaf)
    seen = []
    roots.register_hook(lambda gradient: seen.append(gradient.numpy().copy()))
    roots.register_hook(lambda gradient: 2 * gradient)
    np.sum(np.where(leaf > 0, roots, 0.0)).backward()
    assert len(seen) == 1, "a hook runs once"
    np.testing.assert_array_equal(seen[0], [0.0, 1.0])
    np.testing.assert_array_equal(leaf.grad.numpy(), [0.0, 0.5])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", [np.mean, np.var, np.std, np.median, np.sum, np.prod, np.nanmean])
def test_reductions_of_nothing_have_no_derivative(f: Any) -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(func.grad(lambda v: f(v[v > 9]))(x), [0.0, 0.0])
    assert func.jvp(lambda v: f(v[v > 9]), (x,), (x,))[1] == 0.0


def _as_file(program: Any, path: Any) -> Any:
    func.save(program, path)
    return func.load(path)


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "called": lambda program, path: program,
    "pickled": lambda program, path: pickle.loads(pickle.dumps(program)),
    "saved": _as_file,
    "copied": lambda program, path: copy.deepcopy(program),
    "traced again": lambda program, path: func.make_program(lambda x: program(x))(ROOTS),
    "jit": lambda program, path: func.jit(lambda x: program(x)),
    "vmap": lambda program, path: lambda x: [out[0] for out in func.vmap(program)(x[None])],
}
ROOTS = np.array([4.0, 0.0, -1.0])


@pytest.mark.parametrize("name", FORMS)
def test_a_program_of_a_gradient_keeps_structural_zeros(name: str, tmp_path: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0))

    for program in (func.make_program(func.grad(f))(ROOTS), func.jit(func.grad(f)).trace(ROOTS)):
        again = FORMS[name](program, tmp_path / "f.func")
        assert again(ROOTS)[0].tolist() == [0.25, 0.0, 0.0]
        assert getattr(again, "nan_safe", None) is None or again == program
        hessian = [[-1 / 32, 0, 0], [0, 0, 0], [0, 0, 0]]
        assert func.jacrev(lambda x: again(x)[0])(ROOTS).tolist() == hessian  # noqa: B023
        assert func.jacfwd(lambda x: again(x)[0])(ROOTS).tolist() == hessian  # noqa: B023


def test_programs_that_need_no_structural_zeros_have_no_variant() -> None:
    assert func.make_program(func.grad(lambda x: np.sum(np.sin(x) * x)))(ROOTS).nan_safe is None
    assert func.make_program(lambda x: np.where(x > 0, np.sqrt(x), 0))(ROOTS).nan_safe is None


def test_a_linearized_function_warns_of_nothing_at_a_singular_point() -> None:
    x = np.array([1.0, 0.0])
    push = func.linearize(np.sqrt, x)[1]
    pull = func.linear_transpose(push, x)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(push(np.array([1.0, 0.0])), [0.5, 0.0])
        np.testing.assert_array_equal(pull(np.array([1.0, 0.0]))[0], [0.5, 0.0])
        assert np.isinf(push(np.ones(2))[1])
