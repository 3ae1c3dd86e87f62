"""Checks for tests: derivatives against differences, pullbacks against tangents, mapped calls against single ones.

A failed check raises AssertionError with the derivative and the output. Directions are random but the same in every
run. Differences are in double precision, even for single precision arguments, and of fourth order, so that tolerances
can be tight.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.backends import namespace_of
from func.interpreters.core import Array, dtype_of, innermost, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import without_engine_frames
from func.transforms.boundary import check_callable, name_of
from func.transforms.forward import jvp
from func.transforms.reverse import vjp
from func.transforms.vmapping import BatchedCall, broadcast_prefix, vmap

__all__ = ["check_batch", "check_grads", "check_jvp", "check_vjp"]

TOLERANCES = {2: 5e-2, 4: 1e-3, 8: 1e-6, 16: 1e-6}
"""Default rtol and atol by the number of bytes of a real number of the output."""
STEPS = {2: 1e-1, 4: 3e-2, 8: 1e-4, 16: 1e-4}
"""Default step of the differences: it balances the fourth order's error and that of rounding."""


@without_engine_frames
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check that derivatives of a function up to an order agree with differences, in forward and reverse mode.

    Order two differentiates the checked derivatives again, in every combination of the modes, and so on.

    Args:
        f: The function; arguments and output may be trees. Only floating point leaves vary.
        args: Arguments with a neighbourhood (some `eps`) in which the function is smooth.
        order: The highest derivative to check, at least one.
        modes: "fwd", "rev" or both.
        atol, rtol: Absolute and relative tolerance; by default 1e-6, for single precision outputs 1e-3.
        eps: Step of the differences; by default 1e-4.

    Raises:
        AssertionError: A derivative is wrong, or has the wrong tree, shape or dtype.

    Example:
        >>> import numpy as np
        >>> check_grads(lambda x, y: np.sum(np.sin(x) * y), (np.ones(3), 2.0), order=2)
    """
    check_callable(f, "testing.check_grads")
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= {"fwd", "rev"}:
        raise ArgumentError(f"func.testing.check_grads: modes must be 'fwd', 'rev' or both, not {modes!r}")
    if order < 1:
        raise ArgumentError(f"func.testing.check_grads: order must be a positive int, not {order!r}")
    flat, leaves = _flattened(f, args)
    _check_order(flat, leaves, order, chosen, {"atol": atol, "rtol": rtol, "eps": eps}, name_of(f))


def _check_order(
    flat: Callable[..., Any],
    leaves: list[Any],
    order: int,
    modes: tuple[str, ...],
    options: dict[str, float | None],
    name: str,
) -> None:
    count = len(leaves)
    if "fwd" in modes:
        label = f"the jvp of {name}"
        check_jvp(flat, functools.partial(jvp, flat), leaves, err_msg=label, **options)
        if order > 1:

            def pushed(*both: Array) -> Any:
                return jvp(flat, both[:count], both[count:])[1]

            _check_order(pushed, [*leaves, *directions(leaves, label)], order - 1, modes, options, label)
    if "rev" in modes:
        label = f"the vjp of {name}"
        check_vjp(flat, functools.partial(vjp, flat), leaves, err_msg=label, **options)
        if order > 1:

            def pulled(*both: Array) -> Any:
                outs, pullback = vjp(flat, *both[:count])
                width = min([_width(dtype_of(out)) for out in outs])  # a function may narrow its arguments
                cts = tuple([_at_most(ct, _width(dtype_of(out))) for ct, out in zip(both[count:], outs, strict=True)])
                return tuple([_at_most(ct, width) for ct in pullback(cts)])

            _check_order(pulled, [*leaves, *directions(flat(*leaves), label)], order - 1, modes, options, label)


@without_engine_frames
def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check f_jvp(primals, tangents) -> (out, tangent_out) against differences of f along a random direction.

    Example:
        >>> import numpy as np
        >>> check_jvp(np.sin, lambda primals, tangents: (np.sin(*primals), np.cos(*primals) * tangents[0]), (0.5,))
    """
    label = err_msg or f"the jvp of {name_of(f)}"
    flat, leaves = _flattened(f, args)
    tangents = directions(leaves, label)
    out, tangent = f_jvp(tuple(args), _tangents(args, tangents))
    names = tree.path_names(out, "output")
    outs, dots = tree.leaves(out), tree.leaves(tangent)
    assert len(outs) == len(dots), f"{label}: the tangent's tree is not the output's"
    _assert_same(outs, tree.leaves(f(*args)), names, f"the output of {label}", atol, rtol)
    inexact_outs = [i for i, leaf in enumerate(outs) if is_inexact(dtype_of(leaf))]
    for i in inexact_outs:
        _assert_fits(dots[i], outs[i], f"{label}: the tangent of {names[i]}")
    expected = differences(flat, leaves, tangents, eps)
    _assert_same([dots[i] for i in inexact_outs], expected, [names[i] for i in inexact_outs], label, atol, rtol)


@without_engine_frames
def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check f_vjp(*args) -> (out, pullback) by <pullback(ct), v> = <ct, J v>, with J v from differences of f.

    The inner product is Re(conj(u) v); v and ct are random.

    Example:
        >>> import numpy as np
        >>> check_vjp(np.sin, lambda x: (np.sin(x), lambda ct: (np.cos(x) * ct,)), (0.5,))
    """
    label = err_msg or f"the vjp of {name_of(f)}"
    flat, leaves = _flattened(f, args)
    out, pullback = f_vjp(*args)
    outs, spec = tree.flatten(out)
    _assert_same(outs, tree.leaves(f(*args)), tree.path_names(out, "output"), f"the output of {label}", atol, rtol)
    inexact_outs = [leaf for leaf in outs if is_inexact(dtype_of(leaf))]
    cts = directions(inexact_outs, f"{label}, cotangent")
    rest = iter(cts)
    arg_cts = pullback(
        tree.unflatten(spec, [next(rest) if is_inexact(dtype_of(leaf)) else _nothing(leaf) for leaf in outs])
    )
    assert isinstance(arg_cts, tuple), f"{label}: the pullback returned a {type(arg_cts).__name__}, not a tuple"
    assert len(arg_cts) == len(args), (
        f"{label}: the pullback returned {len(arg_cts)} cotangents for {len(args)} arguments"
    )
    pulled = [
        ct
        for arg, tree_of_cts in zip(args, arg_cts, strict=True)
        for ct, leaf in zip(_leaves_like(tree_of_cts, arg, label), tree.leaves(arg), strict=True)
        if is_inexact(dtype_of(leaf))
    ]
    names = [f"cotangent {i}" for i in range(len(leaves))]
    for ct, leaf, name in zip(pulled, leaves, names, strict=True):
        _assert_fits(ct, leaf, f"{label}: {name}")
    tangents = directions(leaves, f"{label}, tangent")
    pushed = differences(flat, leaves, tangents, eps)
    got, expected = _inner_products(pulled, tangents), _inner_products(cts, pushed)
    allowed_atol, allowed_rtol = _tolerances(inexact_outs, atol, rtol)
    size = max(sum(map(abs, got)), sum(map(abs, expected)))
    np.testing.assert_allclose(
        sum(got),
        sum(expected),
        rtol=0,
        atol=allowed_atol + allowed_rtol * size,
        equal_nan=False,
        err_msg=f"{label}: <pullback(ct), v> differs from <ct, J v>",
    )


@without_engine_frames
def check_batch(
    f: Callable[..., Any],
    args: Sequence[Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check that the mapped function returns, for each element, the result of the function itself.

    Args:
        f: The function of one element.
        args: The arguments of the mapped function.
        in_dims, out_dims: The mapped axes, as for `func.vmap`.
        atol, rtol: Tolerances; by default a small multiple of the rounding error.

    Example:
        >>> import numpy as np
        >>> check_batch(np.dot, (np.ones((3, 4)), np.ones(4)), in_dims=(0, None))
    """
    check_callable(f, "testing.check_batch")
    call = BatchedCall(f, in_dims, None, tuple(args), {})
    singles = [_single(call, element) for element in range(call.size)]
    mapped = vmap(f, in_dims, out_dims)(*args)
    leaves, spec = tree.flatten(mapped)
    names = tree.path_names(mapped, "output")
    dims = broadcast_prefix(out_dims, spec, "out_dims", "output")
    for place, (got, name, dim) in enumerate(zip(leaves, names, dims, strict=True)):
        pieces = [_host(tree.leaves(single)[place]) for single in singles]
        label = f"{name} of the mapped {name_of(f)}"
        for single in singles:
            assert tree.structure(single) == spec, f"{label}: the tree is not that of a single element"
        expected = pieces[0] if dim is None else np.stack(pieces, axis=dim)
        assert dtype_of(got) == expected.dtype, f"{label}: dtype {dtype_of(got)} is not {expected.dtype}"
        is_integer = not is_inexact(expected.dtype)
        rounding = 0.0 if is_integer else 100 * float(np.finfo(expected.dtype).eps)
        np.testing.assert_allclose(
            _host(got),
            expected,
            rtol=rounding if rtol is None else rtol,
            atol=rounding if atol is None else atol,
            err_msg=label,
        )


def _single(call: BatchedCall, element: int) -> Any:
    """The output of the function for one element of the batch."""
    ((args, kwargs),) = call.arguments.replaced([leaf[element] for leaf in call.arguments.values()])
    return call.function(*args, **kwargs)


def directions(likes: Sequence[Array], label: str) -> tuple[Array, ...]:
    """Normally distributed numbers of the shapes, dtypes and backends of arrays; the same for the same label."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    arrays = []
    for like in likes:
        shape, dtype = shape_of(like), dtype_of(like)
        numbers = rng.normal(size=shape)
        if dtype.kind == "c":
            numbers = numbers + 1j * rng.normal(size=shape)
        arrays.append(namespace_of((innermost(like),)).asarray(np.asarray(numbers, dtype))[()])
    return tuple(arrays)


def differences(
    flat: Callable[..., Sequence[Array]], leaves: Sequence[Array], tangents: Sequence[Array], eps: float | None = None
) -> list[Array]:
    """The derivative of flat(*leaves) along a direction, in double precision if the function keeps it."""
    points, ways = [_double(x) for x in leaves], [_double(x) for x in tangents]
    widths = [_width(dtype_of(out)) for out in flat(*points)]
    step = STEPS[min(widths, default=8)] if eps is None else eps

    def at(distance: float) -> list[Array]:
        outs = flat(*[x + distance * way for x, way in zip(points, ways, strict=True)])
        return [_double(out) for out in outs]

    near, far = (at(step), at(-step)), (at(2 * step), at(-2 * step))
    columns = zip(*near, *far, strict=True)
    return [(8 * (after - before) - (later - earlier)) / (12 * step) for after, before, later, earlier in columns]


def _flattened(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the floating point leaves alone that returns those of the output; and these leaves."""
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"func.testing: args must be a tuple with one entry per argument, not {type(args).__name__}")
    leaves, spec = tree.flatten(tuple(args))
    inexact_places = [i for i, leaf in enumerate(leaves) if is_inexact(dtype_of(leaf))]
    if not inexact_places:
        raise ArgumentError(f"func.testing: no argument of {name_of(f)} is floating point, so nothing can be varied")

    def flat(*values: Array) -> tuple[Array, ...]:
        full = list(leaves)
        for i, value in zip(inexact_places, values, strict=True):
            full[i] = value
        outs = tuple([out for out in tree.leaves(f(*tree.unflatten(spec, full))) if is_inexact(dtype_of(out))])
        assert outs, f"{name_of(f)} returned no floating point output, so it has no derivative to check"
        return outs

    return flat, [leaves[i] for i in inexact_places]


def _tangents(args: Sequence[Any], tangents: Sequence[Array]) -> tuple[Any, ...]:
    """Directions in the trees of the arguments, with zeros for the leaves that are not floating point."""
    rest = iter(tangents)
    leaves, spec = tree.flatten(tuple(args))
    dots = [next(rest) if is_inexact(dtype_of(leaf)) else _nothing(leaf) for leaf in leaves]
    return tuple(tree.unflatten(spec, dots))


def _nothing(leaf: Array) -> Array:
    return np.zeros(shape_of(leaf))


def _leaves_like(cts: Any, arg: Any, label: str) -> list[Any]:
    """Cotangents of one argument, leaf by leaf; None means all leaves of an integer argument."""
    leaves = tree.leaves(arg)
    inexact = [is_inexact(dtype_of(leaf)) for leaf in leaves]
    rest = iter(tree.leaves(cts))
    arg_cts = [next(rest, None) if is_inexact else None for is_inexact in inexact]
    missing = any([is_inexact and ct is None for is_inexact, ct in zip(inexact, arg_cts, strict=True)])
    assert not missing and next(rest, None) is None, f"{label}: the cotangents' tree is not the argument's"
    return arg_cts


def _inner_products(xs: Sequence[Array], ys: Sequence[Array]) -> list[float]:
    """Re(conj(x) y), array by array."""
    pairs = zip([_host(_double(x)) for x in xs], [_host(_double(y)) for y in ys], strict=True)
    return [float(np.real(np.vdot(x, y))) for x, y in pairs]


def _width(dtype: Any) -> int:
    """The number of bytes of a real number of a dtype."""
    return int(dtype.itemsize // (2 if dtype.kind == "c" else 1))


def _double(x: Array) -> Array:
    """At least double precision, so that differences keep their digits."""
    dtype = dtype_of(x)
    if _width(dtype) >= 8:
        return x
    return x.astype(np.complex128 if dtype.kind == "c" else np.float64)


def _at_most(x: Array, width: int) -> Array:
    """x with at most the precision of real numbers of a width."""
    dtype = dtype_of(x)
    return x if _width(dtype) <= width else x.astype(f"{dtype.kind}{width * (2 if dtype.kind == 'c' else 1)}")


def _host(x: Array) -> Any:
    return np.asarray(x.get() if hasattr(x, "get") else x)


def _tolerances(likes: Sequence[Array], atol: float | None, rtol: float | None) -> tuple[float, float]:
    default = TOLERANCES[min([_width(dtype_of(like)) for like in likes], default=8)]
    return default if atol is None else atol, default if rtol is None else rtol


def _assert_fits(got: Array, like: Array, label: str) -> None:
    actual, expected = (shape_of(got), dtype_of(got)), (shape_of(like), dtype_of(like))
    assert actual == expected, (
        f"{label} has shape {actual[0]} and dtype {actual[1]}, expected {expected[0]} and {expected[1]}"
    )


def _assert_same(
    got: Sequence[Array],
    expected: Sequence[Array],
    names: Sequence[str],
    label: str,
    atol: float | None,
    rtol: float | None,
) -> None:
    for x, y, name in zip(got, expected, names, strict=True):
        if not is_inexact(dtype_of(x)):
            np.testing.assert_array_equal(_host(x), _host(y), err_msg=f"{label}, {name}")
            continue
        allowed_atol, allowed_rtol = _tolerances([x], atol, rtol)
        np.testing.assert_allclose(
            _host(x), _host(y), rtol=allowed_rtol, atol=allowed_atol, equal_nan=False, err_msg=f"{label}, {name}"
        )


def __dir__() -> list[str]:
    return _public_names(globals())
