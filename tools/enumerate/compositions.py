"""Compositions: nests of transforms over polynomials with integer coefficients, against their exact values.

A program is a nest of up to three *wrappers* around a base function. Every base function maps n numbers to n numbers
and is a polynomial with integer coefficients. So is every wrapped function, because each wrapper contracts the result
of its transform with fixed integers. A gradient is that of the weighted sum of the outputs. A Jacobian J is J @
WEIGHTS, and a Hessian H is H @ WEIGHTS. A mapped function is applied to x plus fixed integers and contracted over the
batch. Wrappers therefore nest in any order. The batch, the inputs and the outputs all have size n, for faults with
equal sizes. Tangents and cotangents depend on x, so that an outer derivative goes through them too.

The truth is a `Truth`: it maps a point with integer coordinates to the polynomials that the function is around it.
A wrapper has its own `truth`, arithmetic on exact polynomials (`polynomials.py`) that shares nothing with func. A
branch is chosen at the point, so nests of `cond` in `vmap` whose elements take different branches have their truth.
All numbers stay far below 2**53: results are exact in floating point, and a tolerance of 1e-9 serves the
order of operations only.

A rule of `custom_jvp`, `custom_vjp` or `Function` stands over a forward function that hides its derivatives: a rule
that is passed over gives zero. Refusals are in `REFUSALS`: the words of func's own errors. Any other exception is a
difference.

`nests` has all nests of one wrapper for n = 2, 1, 3 and every base. It has those of two wrappers for n = 2 and every
base, and for n = 1 and 3 and one base. It has those of three wrappers of different mechanisms for n = 2 and two bases.
`deep` has nests of three for n = 2 and the base that writes. One of their wrappers does not represent a mechanism, at
each place among two of the most used ones. `whole` compares the arrays of derivatives under up to three of jit, vmap,
map and checkpoint (three for n = 2 and one base). `functions` has every way to write a `Function` under one wrapper,
and the ways to use its arguments under two. `complex` has functions with complex results, `updates` indexed updates at
traced indices, and `transposes` sums of linear terms.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import func
from func.autograd import forward_ad, functional
from func.interpreters.imperative.interpreter import Imperative
from tools.enumerate.polynomials import (
    Map,
    Point,
    Polynomial,
    Truth,
    after,
    constant,
    frozen,
    total,
    value_at,
    variables,
    weighted,
)
from tools.enumerate.scope import Choices, OutOfScope, Part

Function = Callable[[Any], Any]

QUICK = 60
WEIGHTS = (1, -2, 3)
DIRECTION = (2, 1, -1)
POINT = (2, -1, 1)
SHIFTS = ((0, 1, -1), (1, -2, 0), (-1, 0, 2))
"""The offset of x for each element of a batch."""


def _weights(n: int) -> Any:
    return np.array(WEIGHTS[:n], float)


def _direction(n: int) -> Any:
    return np.array(DIRECTION[:n], float)


def _shifts(n: int) -> Any:
    return np.array([row[:n] for row in SHIFTS[:n]], float)


def _sum(f: Function, n: int) -> Function:
    """The weighted sum of the outputs."""
    return lambda x: np.sum(_weights(n) * f(x))


class Base(NamedTuple):
    """A function of n numbers with n results, and the same function of polynomials."""

    name: str
    code: Function
    truth: Callable[[Map], Map]


def _mixed(x: Any) -> Any:
    return x**3 + 2 * x * x[::-1] ** 2


def _mixed_truth(x: Map) -> Map:
    return tuple([a**3 + 2 * (a * b**2) for a, b in zip(x, x[::-1], strict=True)])


def _stacked(x: Any) -> Any:
    return np.stack([x[i] ** 2 * np.sum(x) ** 2 for i in range(x.shape[0])]) + np.outer(x, x) @ x


def _stacked_truth(x: Map) -> Map:
    square = total([a * a for a in x])
    return tuple([a * a * total(x) ** 2 + a * square for a in x])


def _partial_sums(x: Any) -> Any:
    """x[0]², x[0] + x[1], …, one element at a time: the pullback adds padded slices."""
    rows = [x[0] ** 2]
    for i in range(1, x.shape[0]):
        rows.append(functools.reduce(operator.add, [x[j] for j in range(i + 1)]))
    return np.stack(rows)


def _partial_sums_truth(x: Map) -> Map:
    return (x[0] ** 2, *[total(x[: i + 1]) for i in range(1, len(x))])


def _written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[-1] ** 4
    y[1:] += x[:-1] * x[1:] ** 2
    y *= x
    return y


def _written_truth(x: Map) -> Map:
    rest = [x[i - 1] * x[i] ** 2 * x[i] for i in range(1, len(x))]
    return (x[-1] ** 4 * x[0], *rest)


def _matrix(x: Any) -> Any:
    return (_shifts(x.shape[0]) @ x + 1) ** 2 * x**2


def _matrix_truth(x: Map) -> Map:
    n = len(x)
    rows = [weighted(SHIFTS[i][:n], x) + constant(1, n) for i in range(n)]
    return tuple([row**2 * a**2 for row, a in zip(rows, x, strict=True)])


def _partly_frozen(x: Any) -> Any:
    with func.no_grad():
        factor = x**2
    return factor * x + x[::-1] ** 3


def _partly_frozen_truth(x: Map) -> Map:
    return tuple([frozen(a * a) * a + b**3 for a, b in zip(x, x[::-1], strict=True)])


def _affine(reverse: bool) -> Function:
    """The running compositions of affine maps t -> x t + x**2, which do not commute."""

    def combine(first: Any, second: Any) -> Any:
        return first[0] * second[0], first[1] * second[0] + second[1]

    return lambda x: func.associative_scan(combine, (1 * x, x**2), reverse)[1]


def _affine_truth(reverse: bool) -> Callable[[Map], Map]:
    def truth(x: Map) -> Map:
        values = [x[-1] ** 2 if reverse else x[0] ** 2]
        for a in x[-2::-1] if reverse else x[1:]:
            values.append(values[-1] * a + a**2)
        return tuple(reversed(values)) if reverse else tuple(values)

    return truth


BASES = (
    Base("mixed", _mixed, _mixed_truth),
    Base("stacked", _stacked, _stacked_truth),
    Base("partial_sums", _partial_sums, _partial_sums_truth),
    Base("written", _written, _written_truth),
    Base("matrix", _matrix, _matrix_truth),
    Base("affine", _affine(False), _affine_truth(False)),
    Base("affine_reverse", _affine(True), _affine_truth(True)),
    Base("no_grad", _partly_frozen, _partly_frozen_truth),
)


class Wrapper(NamedTuple):
    """A transform of a function of n numbers with n results, in code and in truth."""

    name: str
    code: Callable[[Function, int], Function]
    truth: Callable[[Truth, int], Truth]


# Truths. Each is a function of the inner truth, used by all wrappers that give the same numbers.


def _same(inner: Truth, n: int) -> Truth:
    return inner


def _moved(n: int) -> Map:
    """DIRECTION * x, the tangent and the cotangent of every product."""
    return tuple([x * d for x, d in zip(variables(n), DIRECTION, strict=False)])


def _pointwise(of_map: Callable[[Map, int], Map]) -> Callable[[Truth, int], Truth]:
    """A truth that needs the polynomials around the point alone."""
    return lambda inner, n: lambda point: of_map(inner(point), n)


def _gradient(p: Map, n: int) -> Map:
    s = weighted(WEIGHTS[:n], p)
    return tuple([s.partial(i) for i in range(n)])


def _forward_product(p: Map, n: int) -> Map:
    return tuple([weighted(_moved(n), [q.partial(i) for i in range(n)]) for q in p])


def _reverse_product(p: Map, n: int) -> Map:
    return tuple([weighted(_moved(n), [q.partial(i) for q in p]) for i in range(n)])


def _jacobian_weights(p: Map, n: int) -> Map:
    return tuple([weighted(WEIGHTS[:n], [q.partial(i) for i in range(n)]) for q in p])


def _hessian_weights(p: Map, n: int) -> Map:
    gradient = _gradient(p, n)
    return tuple([weighted(WEIGHTS[:n], [g.partial(i) for i in range(n)]) for g in gradient])


def _hessian_product(p: Map, n: int) -> Map:
    gradient = _gradient(p, n)
    return tuple([weighted(_moved(n), [g.partial(i) for i in range(n)]) for g in gradient])


def _second_along_curve(p: Map, n: int) -> Map:
    """The second derivative along the curve x + t DIRECTION + t² x / 2."""
    x = variables(n)
    outs = []
    for q in p:
        first = [q.partial(i) for i in range(n)]
        second = total([first[i].partial(j) * (DIRECTION[i] * DIRECTION[j]) for i in range(n) for j in range(n)])
        outs.append(second + weighted(x, first))
    return tuple(outs)


def _laplacian_added(p: Map, n: int) -> Map:
    s = weighted(WEIGHTS[:n], p)
    value = total([s.partial(i).partial(i) for i in range(n)])
    return tuple([x + value for x in variables(n)])


def _batch(inner: Truth, n: int) -> Truth:
    """Of the function at x plus each row of SHIFTS: the sum over the batch, weighted."""
    x = variables(n)
    rows = [after(inner, tuple([a + constant(c, n) for a, c in zip(x, row, strict=False)])) for row in SHIFTS[:n]]
    return lambda point: _sums([row(point) for row in rows], WEIGHTS[:n])


def _batch_of_scalars(inner: Truth, n: int) -> Truth:
    """Of the function at x plus each of DIRECTION: the sum over the batch, weighted."""
    x = variables(n)
    rows = [after(inner, tuple([a + constant(d, n) for a in x])) for d in DIRECTION[:n]]
    return lambda point: _sums([row(point) for row in rows], WEIGHTS[:n])


def _sums(maps: list[Map], weights: tuple[int, ...]) -> Map:
    return tuple([weighted(weights, column) for column in zip(*maps, strict=True)])


def _loop(inner: Truth, n: int) -> Truth:
    """Steps that reverse the carry and add the weighted values of the function at it: both, added."""
    x = variables(n)
    carries = [x if k % 2 == 0 else x[::-1] for k in range(n + 1)]
    values = [after(inner, carry) for carry in carries[:n]]

    def truth(point: Point) -> Map:
        sums = _sums([value(point) for value in values], WEIGHTS[:n])
        return tuple([a + b for a, b in zip(carries[n], sums, strict=True)])

    return truth


def _branches(inner: Truth, n: int) -> Truth:
    """The function where the first number is positive; elsewhere the square of x reversed."""
    squares: Map = tuple([x * x for x in variables(n)[::-1]])
    return lambda point: inner(point) if point[0] > 0 else squares


# Code.


def _grad(f: Function, n: int) -> Function:
    return func.grad(_sum(f, n))


def _vjp(f: Function, n: int) -> Function:
    return lambda x: func.vjp(f, x)[1](_direction(n) * x)[0]


def _jvp(f: Function, n: int) -> Function:
    return lambda x: func.jvp(f, (x,), (_direction(n) * x,))[1]


def _jacobian_by(transform: Callable[..., Any]) -> Callable[[Function, int], Function]:
    return lambda f, n: lambda x: transform(f)(x) @ _weights(n)


def _hessian_by(mode: str) -> Callable[[Function, int], Function]:
    return lambda f, n: lambda x: func.hessian(_sum(f, n), mode=mode)(x) @ _weights(n)


def _linearize(f: Function, n: int) -> Function:
    return lambda x: func.linearize(f, x)[1](_direction(n) * x)


def _linear_transpose(f: Function, n: int) -> Function:
    def wrapped(x: Any) -> Any:
        return func.linear_transpose(func.linearize(f, x)[1], x)(_direction(n) * x)[0]

    return wrapped


def _jet(f: Function, n: int) -> Function:
    return lambda x: func.jet(f, (x,), ([_direction(n) + 0 * x, 1 * x],))[1][1]


def _hvp(f: Function, n: int) -> Function:
    return lambda x: func.hvp(_sum(f, n), (x,), (_direction(n) * x,))


def _vhp(f: Function, n: int) -> Function:
    return lambda x: func.vhp(_sum(f, n), (x,), (_direction(n) * x,))


def _laplacian(f: Function, n: int) -> Function:
    return lambda x: x + func.laplacian(_sum(f, n))(x)


def _sparse_jacobian(f: Function, n: int) -> Function:
    return lambda x: func.sparse_jacobian(f)(x).toarray() @ _weights(n)


def _vmap(in_dims: int, out_dims: int) -> Callable[[Function, int], Function]:
    def code(f: Function, n: int) -> Function:
        mapped = func.vmap(f, in_dims=in_dims, out_dims=out_dims)

        def wrapped(x: Any) -> Any:
            rows = x + _shifts(n)
            outs = mapped(rows if in_dims == 0 else rows.T)
            return _weights(n) @ outs if out_dims == 0 else outs @ _weights(n)

        return wrapped

    return code


def _vmap_of_one(f: Function, n: int) -> Function:
    return lambda x: _weights(n) @ func.vmap(lambda a, b: f(b + a), in_dims=(0, None))(_direction(n), x)


def _map(f: Function, n: int) -> Function:
    return lambda x: _weights(n) @ func.map(f, x + _shifts(n))


def _jit(f: Function, n: int) -> Function:
    return func.jit(f)


def _checkpoint(f: Function, n: int) -> Function:
    return func.checkpoint(f)


def _tensor_checkpoint(f: Function, n: int) -> Function:
    return lambda x: func.autograd.checkpoint(f, x)


def _scan(checkpointed: bool, reverse: bool) -> Callable[[Function, int], Function]:
    def code(f: Function, n: int) -> Function:
        def body(carry: Any, weight: Any) -> Any:
            return carry[::-1], f(carry) * weight

        step = func.checkpoint(body) if checkpointed else body

        def wrapped(x: Any) -> Any:
            weights = _weights(n)
            carry, outs = func.scan(step, x, weights[::-1] if reverse else weights, reverse=reverse)
            return carry + np.sum(outs, axis=0)

        return wrapped

    return code


def _while(f: Function, n: int) -> Function:
    def body(state: Any) -> Any:
        i, carry, sums = state
        return i + 1, carry[::-1], sums + f(carry) * func.numpy.take(_weights(n), i)

    def wrapped(x: Any) -> Any:
        _, carry, sums = func.while_loop(lambda state: state[0] < n, body, (0, x, np.zeros_like(x)), max_steps=n + 1)
        return carry + sums

    return wrapped


def _fori(f: Function, n: int) -> Function:
    def body(i: Any, state: Any) -> Any:
        carry, sums = state
        return carry[::-1], sums + f(carry) * func.numpy.take(_weights(n), i)

    def wrapped(x: Any) -> Any:
        carry, sums = func.fori_loop(0, n, body, (x, np.zeros_like(x)))
        return carry + sums

    return wrapped


def _cond(f: Function, n: int) -> Function:
    return lambda x: func.cond(x[0] > 0, f, lambda y: y[::-1] ** 2, x)


def _cond_of_closure(f: Function, n: int) -> Function:
    return lambda x: func.cond(x[0] > 0, lambda: f(x), lambda: x[::-1] ** 2)


def _switch(f: Function, n: int) -> Function:
    branches = [lambda y: y[::-1] ** 2, f, lambda y: 0 * y]
    return lambda x: func.switch(np.where(x[0] > 0, 1, 0), branches, x)


def _custom_jvp(f: Function, n: int) -> Function:
    hidden = func.custom_jvp(lambda x: func.stop_gradient(f(x)))
    hidden.defjvp(lambda primals, tangents: func.jvp(f, primals, tangents))
    return hidden


def _custom_vjp(f: Function, n: int) -> Function:
    hidden = func.custom_vjp(lambda x: func.stop_gradient(f(x)))
    hidden.defvjp(lambda x: (func.stop_gradient(f(x)), x), lambda x, ct: func.vjp(f, x)[1](ct))
    return hidden


def _function(f: Function, n: int) -> Function:
    """A Function of the style `forward(ctx, …)` with a factor that needs no gradient, and two outputs."""

    class Hidden(func.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any) -> Any:
            out = f(x)
            ctx.save_for_backward(x, factor, out)
            return out * factor, out * 2

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            x, factor, out = ctx.saved_tensors
            ct = first * factor + 2 * second
            return (
                func.vjp(f, x)[1](ct)[0] if ctx.needs_input_grad[0] else None,
                first * out if ctx.needs_input_grad[1] else None,
            )

    def wrapped(x: Any) -> Any:
        first, second = Hidden.apply(x, 3 * np.ones(n))
        return first - second

    return wrapped


def _function_of_context(f: Function, n: int) -> Function:
    """A Function of the style with `setup_context`, which keeps a number and an array as attributes."""

    class Hidden(func.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: Any) -> Any:
            return f(x) * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.x, ctx.factor = inputs

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return func.vjp(f, ctx.x)[1](ct * ctx.factor)[0] if ctx.needs_input_grad[0] else None, None

    return lambda x: Hidden.apply(x, 1)


def _function_with_jvp(f: Function, n: int) -> Function:
    """A Function with `jvp` and a `vmap` rule made of its code."""

    class Hidden(func.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return f(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return func.vjp(f, ctx.saved_tensors[0])[1](ct)[0]

        @staticmethod
        def jvp(ctx: Any, dx: Any) -> Any:
            return func.jvp(f, ctx.saved_tensors, (dx,))[1]

    return Hidden.apply


def _leaf(x: Any) -> Any:
    """A tensor that requires a gradient and depends on x: a new leaf, which transforms go through, or a copy."""
    if isinstance(x, func.Tensor) and type(x._interpreter) is Imperative:
        return x.clone()
    return func.tensor(x, requires_grad=True)


def _backward(f: Function, n: int) -> Function:
    def wrapped(x: Any) -> Any:
        with func.enable_grad():
            t = _leaf(x)
            np.sum(_weights(n) * f(t) + 0 * t).backward(create_graph=True, inputs=[t])
            return t.grad

    return wrapped


def _autograd_grad(f: Function, n: int) -> Function:
    def wrapped(x: Any) -> Any:
        with func.enable_grad():
            t = _leaf(x)
            out = np.sum(_weights(n) * f(t) + 0 * t)
            return func.autograd.grad(out, t, create_graph=True, materialize_grads=True)[0]

    return wrapped


def _dual(f: Function, n: int) -> Function:
    def wrapped(x: Any) -> Any:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(func.numpy.asarray(x) * 1, _direction(n) * x)
            tangent = forward_ad.unpack_dual(f(dual)).tangent
            return 0 * x if tangent is None else tangent

    return wrapped


def _no_grad(f: Function, n: int) -> Function:
    def wrapped(x: Any) -> Any:
        with func.no_grad():
            y = f(x)
        return y + x

    return wrapped


def _frozen(p: Map, n: int) -> Map:
    return tuple([frozen(q) + x for q, x in zip(p, variables(n), strict=True)])


def _functional_jacobian(**options: Any) -> Callable[[Function, int], Function]:
    return lambda f, n: lambda x: functional.jacobian(f, x, create_graph=True, **options) @ _weights(n)


def _functional_hessian(**options: Any) -> Callable[[Function, int], Function]:
    return lambda f, n: lambda x: functional.hessian(_sum(f, n), x, create_graph=True, **options) @ _weights(n)


def _functional_product(product: Any, of_sum: bool) -> Callable[[Function, int], Function]:
    def code(f: Function, n: int) -> Function:
        g = _sum(f, n) if of_sum else f
        return lambda x: product(g, x, _direction(n) * x, create_graph=True)[1]

    return code


_GRADIENT = _pointwise(_gradient)
_FORWARD = _pointwise(_forward_product)
_REVERSE = _pointwise(_reverse_product)
_JACOBIAN = _pointwise(_jacobian_weights)
_HESSIAN = _pointwise(_hessian_weights)
_HESSIAN_PRODUCT = _pointwise(_hessian_product)

WRAPPERS = (
    Wrapper("grad", _grad, _GRADIENT),
    Wrapper("vmap", _vmap(0, 0), _batch),
    Wrapper("jacrev", _jacobian_by(func.jacrev), _JACOBIAN),
    Wrapper("jit", _jit, _same),
    Wrapper("jvp", _jvp, _FORWARD),
    Wrapper("vjp", _vjp, _REVERSE),
    Wrapper("jacfwd", _jacobian_by(func.jacfwd), _JACOBIAN),
    Wrapper("jacobian", _jacobian_by(func.jacobian), _JACOBIAN),
    Wrapper("hessian", _hessian_by("auto"), _HESSIAN),
    Wrapper("hessian_rev_fwd", _hessian_by("rev-fwd"), _HESSIAN),
    Wrapper("linearize", _linearize, _FORWARD),
    Wrapper("linear_transpose", _linear_transpose, _REVERSE),
    Wrapper("jet", _jet, _pointwise(_second_along_curve)),
    Wrapper("hvp", _hvp, _HESSIAN_PRODUCT),
    Wrapper("vhp", _vhp, _HESSIAN_PRODUCT),
    Wrapper("laplacian", _laplacian, _pointwise(_laplacian_added)),
    Wrapper("sparse_jacobian", _sparse_jacobian, _JACOBIAN),
    Wrapper("vmap_1_0", _vmap(1, 0), _batch),
    Wrapper("vmap_0_1", _vmap(0, 1), _batch),
    Wrapper("vmap_1_1", _vmap(1, 1), _batch),
    Wrapper("vmap_of_one", _vmap_of_one, _batch_of_scalars),
    Wrapper("map", _map, _batch),
    Wrapper("checkpoint", _checkpoint, _same),
    Wrapper("autograd.checkpoint", _tensor_checkpoint, _same),
    Wrapper("scan", _scan(False, False), _loop),
    Wrapper("scan_of_checkpoint", _scan(True, False), _loop),
    Wrapper("scan_reverse", _scan(False, True), _loop),
    Wrapper("while_loop", _while, _loop),
    Wrapper("fori_loop", _fori, _loop),
    Wrapper("cond", _cond, _branches),
    Wrapper("cond_of_closure", _cond_of_closure, _branches),
    Wrapper("switch", _switch, _branches),
    Wrapper("custom_jvp", _custom_jvp, _same),
    Wrapper("custom_vjp", _custom_vjp, _same),
    Wrapper("Function", _function, _same),
    Wrapper("Function_of_context", _function_of_context, _same),
    Wrapper("Function_with_jvp", _function_with_jvp, _same),
    Wrapper("backward", _backward, _GRADIENT),
    Wrapper("autograd.grad", _autograd_grad, _GRADIENT),
    Wrapper("dual", _dual, _FORWARD),
    Wrapper("no_grad", _no_grad, _pointwise(_frozen)),
    Wrapper("functional.jacobian", _functional_jacobian(), _JACOBIAN),
    Wrapper("functional.jacobian_fwd", _functional_jacobian(strategy="forward-mode"), _JACOBIAN),
    Wrapper("functional.jacobian_vec", _functional_jacobian(vectorize=True), _JACOBIAN),
    Wrapper("functional.hessian", _functional_hessian(), _HESSIAN),
    Wrapper("functional.vjp", _functional_product(functional.vjp, False), _REVERSE),
    Wrapper("functional.jvp", _functional_product(functional.jvp, False), _FORWARD),
    Wrapper("functional.vhp", _functional_product(functional.vhp, True), _HESSIAN_PRODUCT),
    Wrapper("functional.hvp", _functional_product(functional.hvp, True), _HESSIAN_PRODUCT),
)

REFUSALS: tuple[str, ...] = ("func.sparse_jacobian makes a SciPy array, which no transform can trace",)
"""Words of errors that func raises on purpose for some nest."""


@dataclass(frozen=True)
class Nest:
    """Wrappers, outermost first, around a base function of n numbers."""

    wrappers: tuple[Wrapper, ...]
    base: Base
    n: int

    def __str__(self) -> str:
        inner = self.base.name
        for wrapper in reversed(self.wrappers):
            inner = f"{wrapper.name}({inner})"
        return f"{inner} at {list(POINT[: self.n])}"

    def value(self) -> Any:
        """The value by func."""
        function = self.base.code
        for wrapper in reversed(self.wrappers):
            function = wrapper.code(function, self.n)
        result = function(np.array(POINT[: self.n], float))
        return result.detach().numpy() if isinstance(result, func.Tensor) else result

    def truth(self) -> Any:
        """The exact value."""
        base, n = self.base, self.n
        truth: Truth = lambda point: base.truth(variables(n))  # noqa: E731
        for wrapper in reversed(self.wrappers):
            truth = wrapper.truth(truth, n)
        point = POINT[:n]
        return np.array([value_at(polynomial, point) for polynomial in truth(point)], float)


REPRESENTATIVES = """
    grad vjp jvp jacfwd jacrev hessian linearize jet vmap vmap_1_1 jit checkpoint autograd.checkpoint scan_of_checkpoint
    cond_of_closure while_loop map custom_jvp custom_vjp Function backward dual no_grad functional.jacobian
    functional.hvp laplacian
"""
"""One wrapper of each mechanism."""
CHOSEN_WRAPPERS = tuple([wrapper for wrapper in WRAPPERS if wrapper.name in REPRESENTATIVES.split()])


def _nest(choices: Choices) -> Nest:
    """All nests of one and two wrappers, and those of three of the representatives."""
    depth = choices.pick((1, 2, 3))
    n = choices.pick((2, 1, 3))
    base = choices.pick(BASES)
    is_chosen = n == 2 and base.name in ("stacked", "partial_sums")
    if (depth == 3 and not is_chosen) or (depth == 2 and n != 2 and base.name != "stacked"):
        raise OutOfScope
    return _nest_of(choices, CHOSEN_WRAPPERS if depth == 3 else WRAPPERS, depth, base, n)


MOST_USED = "grad jvp jacrev hessian vmap jit checkpoint scan_of_checkpoint cond_of_closure Function"
USED_WRAPPERS = tuple([wrapper for wrapper in WRAPPERS if wrapper.name in MOST_USED.split()])
OTHER_WRAPPERS = tuple([wrapper for wrapper in WRAPPERS if wrapper not in CHOSEN_WRAPPERS])


def _deep_nest(choices: Choices) -> Nest:
    """Nests of three with one wrapper that does not represent a mechanism, around two of the most used wrappers."""
    place, other = choices.pick((0, 1, 2)), choices.pick(OTHER_WRAPPERS)
    wrappers = [choices.pick(USED_WRAPPERS) for _ in range(2)]
    wrappers.insert(place, other)
    base = next(base for base in BASES if base.name == "written")
    _check_modes([wrapper.name for wrapper in wrappers])
    return Nest(tuple(wrappers), base, 2)


def _nest_of(choices: Choices, options: tuple[Wrapper, ...], depth: int, base: Base, n: int) -> Nest:
    wrappers = tuple([choices.pick(options) for _ in range(depth)])
    _check_modes([wrapper.name for wrapper in wrappers] + [base.name])
    return Nest(wrappers, base, n)


def _check_modes(names: list[str]) -> None:
    """Leave out nests in which a mode has another meaning, as in torch."""
    if "no_grad" in names:
        outside, inside = names[: names.index("no_grad")], names[names.index("no_grad") :]
        if "dual" in outside + inside:
            raise OutOfScope  # dual numbers have their tangents under no_grad
        if any([name in ("backward", "autograd.grad") or name.startswith("functional.") for name in inside]):
            raise OutOfScope  # these switch recording on again, for what is around them too


def _is_refusal(error: Exception) -> bool:
    return any([words in str(error) for words in REFUSALS])


def difference_of(value: Callable[[], Any], right: Any) -> str | None:
    """The difference between a value and the right one, in words."""
    try:
        got = value()
    except Exception as error:
        if _is_refusal(error):
            return None
        raise
    if type(got) is not np.ndarray or got.shape != right.shape or got.dtype != right.dtype:
        kind = f"{type(got).__name__} of {getattr(got, 'dtype', None)} {getattr(got, 'shape', None)}"
        return f"kind differs\n{kind}, right: {right.dtype} {right.shape}"
    if not np.allclose(got, right, rtol=1e-9, atol=1e-9):
        return f"values differ\n{got.tolist()}, right: {right.tolist()}"
    return None


def _check_nest(nest: Nest) -> str | None:
    with np.errstate(all="raise"):
        return difference_of(nest.value, nest.truth())


# Whole derivatives, which nothing contracts: an element that is wrong is not lost in a sum.


WHOLE: dict[str, tuple[int, Callable[[Function], Function]]] = {
    "f": (0, lambda f: f),
    "jacrev": (1, func.jacrev),
    "jacfwd": (1, func.jacfwd),
    "jacobian": (1, func.jacobian),
    "functional.jacobian": (1, lambda f: lambda x: functional.jacobian(f, x, create_graph=True)),
    "jacrev of jit": (1, lambda f: func.jacrev(func.jit(f))),
    "jacrev of checkpoint": (1, lambda f: func.jacrev(func.checkpoint(f))),
    "hessian": (2, func.hessian),
    "jacrev of jacrev": (2, lambda f: func.jacrev(func.jacrev(f))),
    "jacrev of jacfwd": (2, lambda f: func.jacrev(func.jacfwd(f))),
    "jacfwd of jacfwd": (2, lambda f: func.jacfwd(func.jacfwd(f))),
    "jacfwd of hessian": (3, lambda f: func.jacfwd(func.hessian(f))),
}
"""Derivatives of a function with their order, the number of axes that they add."""

BATCHES = {"vmap": (0, 0), "vmap_1_0": (1, 0), "vmap_0_1": (0, 1), "vmap_1_1": (1, 1), "map": (0, 0)}
"""The axis of the input and that of the output of what maps."""


@dataclass(frozen=True)
class Whole:
    """Transforms, outermost first, around a derivative whose array is compared element by element."""

    outside: tuple[str, ...]
    derivative: str
    base: Base
    n: int

    def __str__(self) -> str:
        inner = f"{self.derivative}({self.base.name})"
        for name in reversed(self.outside):
            inner = f"{name}({inner})"
        return f"{inner}, n = {self.n}"

    def value(self) -> Any:
        """The array by func."""
        function = WHOLE[self.derivative][1](self.base.code)
        for name in reversed(self.outside):
            function = _outside(name, function)
        result = function(self._mapped(self.outside, POINT[: self.n], 0, lambda point: np.array(point, float)))
        return result.detach().numpy() if isinstance(result, func.Tensor) else result

    def truth(self) -> Any:
        """The exact array."""
        array = np.empty(self.n, object)
        array[:] = [*map(_Cell, self.base.truth(variables(self.n)))]
        for _ in range(WHOLE[self.derivative][0]):
            array = np.stack([_each(lambda p: p.partial(i), array) for i in range(self.n)], axis=-1)  # noqa: B023
        return self._mapped(
            self.outside, POINT[: self.n], 1, lambda point: _each(lambda p: value_at(p, point), array).astype(float)
        )

    def _mapped(self, outside: tuple[str, ...], point: Point, side: int, at: Callable[[Point], Any]) -> Any:
        """The arrays `at` the points of all batches, stacked along their axes of the input (side 0) or output."""
        if not outside:
            return at(point)
        if outside[0] not in BATCHES:
            return self._mapped(outside[1:], point, side, at)
        points = [tuple([x + c for x, c in zip(point, row, strict=False)]) for row in SHIFTS[: self.n]]
        return np.stack([self._mapped(outside[1:], p, side, at) for p in points], axis=BATCHES[outside[0]][side])


def _outside(name: str, function: Function) -> Function:
    if name == "map":
        return lambda x: func.map(function, x)
    if name in BATCHES:
        return func.vmap(function, in_dims=BATCHES[name][0], out_dims=BATCHES[name][1])
    return func.jit(function) if name == "jit" else func.checkpoint(function)


@dataclass(frozen=True)
class _Cell:
    """A polynomial in an array, which takes tuples apart."""

    polynomial: Polynomial


def _each(function: Callable[[Polynomial], Any], cells: Any) -> Any:
    """A function of all polynomials in an array."""
    out = np.empty(cells.shape, object)
    for index in np.ndindex(cells.shape):
        result = function(cells[index].polynomial)
        out[index] = _Cell(result) if isinstance(result, Polynomial) else result
    return out


def _whole(choices: Choices) -> Whole:
    count = choices.pick((0, 1, 2, 3))
    n = choices.pick((2, 1, 3))
    base, derivative = choices.pick(BASES), choices.pick(tuple(WHOLE))
    outside = tuple([choices.pick(("jit", *BATCHES, "checkpoint")) for _ in range(count)])
    if count == 3 and (n != 2 or base.name != "partial_sums"):
        raise OutOfScope
    return Whole(outside, derivative, base, n)


def _check_whole(program: Whole) -> str | None:
    with np.errstate(all="raise"):
        return difference_of(program.value, program.truth())


# Functions: what they save, ask, return, and of which arguments, under one or two wrappers.


@dataclass(frozen=True)
class Variant:
    """A Function of two arguments, f(x) * y: how it is written, and which of its arguments depend on the variables."""

    has_context: bool
    """The style with `setup_context`, else `forward(ctx, …)`."""
    saves: str
    """The place of the arguments: in save_for_backward, in an attribute, in one attribute with an output."""
    asks: str
    """The deciding flags of needs_input_grad: none, those in backward, those in forward too."""
    outputs: int
    """One output; two, both used; or two of which the second, not materialized, is left unused."""
    moving: str
    """The variables among x and y: x, y, or both."""

    def __str__(self) -> str:
        style = "setup_context" if self.has_context else "ctx"
        return f"Function[{style}, saves {self.saves}, asks {self.asks}, outputs {self.outputs}, of {self.moving}]"

    def flags(self) -> tuple[bool, bool]:
        """The arguments that need a gradient."""
        return "x" in self.moving, "y" in self.moving

    def code(self, f: Function, n: int, wrong: list[str]) -> Function:
        """The function of n numbers. `wrong` takes what its backward sees of needs_input_grad, if it is wrong."""
        variant = self

        def compute(x: Any, y: Any) -> Any:
            out = f(x) * y
            return out if variant.outputs == 1 else (out, 2 * out)

        def save(ctx: Any, x: Any, y: Any, output: Any) -> None:
            first = output if variant.outputs == 1 else output[0]
            if variant.outputs == 3:
                ctx.set_materialize_grads(False)
            if variant.asks == "forward":  # df/dx needs x and y, df/dy needs x
                y = y if ctx.needs_input_grad[0] else None
            if variant.saves == "tensors":
                ctx.save_for_backward(x, y)
            elif variant.saves == "attributes":
                ctx.x, ctx.y = x, y
            else:
                ctx.pair = {"all": [x, y, first]}

        class Product(func.autograd.Function):
            @staticmethod
            def backward(ctx: Any, *cts: Any) -> Any:
                if variant.saves == "tensors":
                    x, y = ctx.saved_tensors
                else:
                    x, y = (ctx.x, ctx.y) if variant.saves == "attributes" else ctx.pair["all"][:2]
                if tuple(ctx.needs_input_grad) != variant.flags():
                    wrong.append(f"needs_input_grad in backward is {tuple(ctx.needs_input_grad)}")
                needs = (True, True) if variant.asks == "none" else ctx.needs_input_grad
                ct = cts[0] if len(cts) == 1 or cts[1] is None else cts[0] + 2 * cts[1]
                by_x = func.vjp(f, x)[1](ct * y)[0] if needs[0] else None
                return by_x, ct * f(x) if needs[1] else None

        if self.has_context:
            Product.forward = staticmethod(compute)
            Product.setup_context = staticmethod(lambda ctx, inputs, output: save(ctx, *inputs, output))
        else:

            def forward(ctx: Any, x: Any, y: Any) -> Any:
                output = compute(x, y)
                save(ctx, x, y, output)
                return output

            Product.forward = staticmethod(forward)

        def wrapped(z: Any) -> Any:
            x = z if "x" in variant.moving else _direction(n)
            y = z + 1 if "y" in variant.moving else _direction(n)
            out = Product.apply(x, y)
            return out if variant.outputs == 1 else out[0] if variant.outputs == 3 else out[0] - out[1]

        return wrapped

    def truth(self, inner: Truth, n: int) -> Truth:
        """The exact values of `code`."""
        z = variables(n)
        direction = tuple([constant(d, n) for d in DIRECTION[:n]])
        f = after(inner, z if "x" in self.moving else direction)
        y = tuple([a + constant(1, n) for a in z]) if "y" in self.moving else direction
        sign = -1 if self.outputs == 2 else 1
        return lambda point: tuple([a * b * sign for a, b in zip(f(point), y, strict=True)])


@dataclass(frozen=True)
class FunctionNest:
    """A Function in one or two wrappers."""

    wrappers: tuple[Wrapper, ...]
    variant: Variant
    wrong: list[str]
    nest: Nest

    def __str__(self) -> str:
        return str(self.nest).replace(f"{self.variant.moving}(", f"{self.variant}(")


def _function_nest(choices: Choices) -> FunctionNest:
    depth = choices.pick((1, 2))
    moving = choices.pick(("x", "y", "xy"))
    asks = choices.pick(("backward", "none", "forward"))
    outputs = choices.pick((1, 2, 3))
    saves = choices.pick(("tensors", "attributes", "tree"))
    variant = Variant(choices.pick((False, True)), saves, asks, outputs, moving)
    wrong: list[str] = []
    if depth == 2 and (outputs != 1 or saves != "tensors"):
        raise OutOfScope
    wrappers = tuple([choices.pick(WRAPPERS if depth == 1 else CHOSEN_WRAPPERS) for _ in range(depth)])
    _check_modes([wrapper.name for wrapper in wrappers])
    wrapper = Wrapper(moving, lambda f, n: variant.code(f, n, wrong), variant.truth)
    return FunctionNest(wrappers, variant, wrong, Nest((*wrappers, wrapper), BASES[0], 2))


def _check_function(program: FunctionNest) -> str | None:
    program.wrong.clear()
    difference = _check_nest(program.nest)
    return difference or next(iter(program.wrong), None)


# Functions with real arguments and complex results: their derivative is complex, by every transform.


def _complex_nest(choices: Choices) -> ComplexNest:
    depth = choices.pick((1, 2, 3))
    bases = choices.pick(BASES[:4]), choices.pick(BASES[:4])
    n = choices.pick((2, 1, 3))
    if depth == 3 and (n != 2 or bases != (BASES[0], BASES[1])):
        raise OutOfScope
    return ComplexNest(tuple([choices.pick(LINEAR_WRAPPERS) for _ in range(depth)]), bases, n)


LINEAR = (
    "jacfwd jacrev jacobian jvp linearize vmap vmap_1_0 vmap_0_1 vmap_1_1 vmap_of_one map jit checkpoint custom_jvp jet"
)
LINEAR_WRAPPERS = tuple([wrapper for wrapper in WRAPPERS if wrapper.name in LINEAR.split()])
"""The wrappers that are linear in the function and take complex outputs."""


@dataclass(frozen=True)
class ComplexNest:
    """Wrappers around p + i q for two base functions p and q."""

    wrappers: tuple[Wrapper, ...]
    bases: tuple[Base, Base]
    n: int

    def __str__(self) -> str:
        return str(
            Nest(self.wrappers, Base(f"{self.bases[0].name} + 1j * {self.bases[1].name}", *BASES[0][1:]), self.n)
        )

    def nest(self) -> Nest:
        """The nest around the complex function."""
        p, q = [base.code for base in self.bases]
        return Nest(self.wrappers, Base("complex", lambda x: p(x) + 1j * q(x), self.bases[0].truth), self.n)

    def truth(self) -> Any:
        """The exact value."""
        p, q = [Nest(self.wrappers, base, self.n).truth() for base in self.bases]
        return p + 1j * q


def _check_complex(program: ComplexNest) -> str | None:
    with np.errstate(all="raise"):
        return difference_of(program.nest().value, program.truth())


# Indexed updates by traced indices, against NumPy's in-place ufuncs.


@dataclass(frozen=True)
class Update:
    """`func.numpy.at(base)[index].name(values)` for several indices, of which some may occur twice in one."""

    name: str
    indices: tuple[Any, ...]
    values: Any
    traced: str
    """The parts that depend on the argument in addition to the index: nothing, the base, or the values."""
    mode: str

    def __str__(self) -> str:
        return f"{self.mode}: at([1, 2, 3])[i].{self.name}({self.values}) for i in {self.indices}, {self.traced} traced"


def _update(choices: Choices) -> Update:
    indices = choices.pick(((0, 1), (2, 2), (-1, 0), ([0, 1], [2, 2]), ([0, 0], [1, 0]), ([1], [2])))
    values = choices.pick((2.0, -1.0) if np.ndim(indices[0]) == 0 else (2.0, [2.0, 3.0][: len(indices[0])]))
    name = choices.pick(tuple(UFUNCS))
    mode = choices.pick(("vmap", "jit", "vmap of jit", "jit of vmap", "call"))
    return Update(name, indices, values, choices.pick(("index", "base", "values")), mode)


UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "set": None,
}


def _check_update(update: Update) -> str | None:
    base, values, indices = np.array([1.0, 2.0, 3.0]), np.array(update.values), np.array(update.indices)

    def updated(i: Any) -> Any:
        zero = 0.0 * np.sum(i)
        place = func.numpy.at(base + zero if update.traced == "base" else base)[i]
        return getattr(place, update.name)(values + zero if update.traced == "values" else values)

    def each(f: Function) -> Function:
        return lambda indices: np.stack([f(i) for i in indices])

    modes = {
        "vmap": func.vmap(updated),
        "jit": each(func.jit(updated)),
        "vmap of jit": func.vmap(func.jit(updated)),
        "jit of vmap": func.jit(func.vmap(updated)),
        "call": each(updated),
    }
    right = np.stack([base] * len(indices))
    for row, i in zip(right, indices, strict=True):
        if update.name == "set":
            row[i] = values
        else:
            UFUNCS[update.name].at(row, i, values)
    return difference_of(lambda: modes[update.mode](indices), right)


# Linear functions as people write sums: accumulators that begin with zero.


@dataclass(frozen=True)
class Linear:
    """A linear map M x, written as a loop with an accumulator, whose transpose is asked for."""

    start: str
    step: str
    mode: str
    n: int

    def __str__(self) -> str:
        return f"{self.mode} of M x: {self.start}; {self.step}, n = {self.n}"


_STARTS = {
    "0": lambda x: 0,
    "0.0": lambda x: 0.0,
    "np.zeros_like(x)": lambda x: np.zeros_like(x),
    "np.zeros(n)": lambda x: np.zeros(x.shape[0]),
    "0 * x": lambda x: 0 * x,
    "-0.0": lambda x: -0.0,
}
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "out = out + y": lambda out, y: out + y,
    "out = y + out": lambda out, y: y + out,
    "out += y": operator.iadd,
    "out = np.add(y, out)": lambda out, y: np.add(y, out),
    "out = out - (-y)": lambda out, y: out - (-y),
}


def _linear(choices: Choices) -> Linear:
    n = choices.pick((2, 1, 3))
    start, step = choices.pick(tuple(_STARTS)), choices.pick(tuple(_STEPS))
    if (start, step) == ("np.zeros(n)", "out += y"):
        raise OutOfScope  # a plain array refuses traced values
    return Linear(start, step, choices.pick(("linear_transpose", "jit", "vmap", "vjp", "jacobian")), n)


def _check_linear(program: Linear) -> str | None:
    n = program.n
    start, step = _STARTS[program.start], _STEPS[program.step]

    def function(x: Any) -> Any:
        out = start(x)
        for column, element in zip(_shifts(n).T, x, strict=True):
            out = step(out, column * element)
        return out

    x, ct = np.ones(n), _direction(n)
    modes: dict[str, Callable[[], Any]] = {
        "linear_transpose": lambda: func.linear_transpose(function, x)(ct)[0],
        "jit": lambda: func.jit(lambda ct: func.linear_transpose(function, x)(ct)[0])(ct),
        "vmap": lambda: func.vmap(lambda ct: func.linear_transpose(function, x)(ct)[0])(np.eye(n)).T @ ct,
        "vjp": lambda: func.vjp(function, x)[1](ct)[0],
        "jacobian": lambda: func.jacobian(function)(x).T @ ct,
    }
    return difference_of(modes[program.mode], _shifts(n).T @ ct)


PARTS = (
    Part("nests", _nest, _check_nest),
    Part("deep", _deep_nest, _check_nest),
    Part("whole", _whole, _check_whole),
    Part("functions", _function_nest, _check_function),
    Part("complex", _complex_nest, _check_complex),
    Part("updates", _update, _check_update),
    Part("transposes", _linear, _check_linear),
)
