"""Writes through views, and to what is not a view, are seen in every mode exactly where NumPy shows them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func
from func.backends.array_helpers.strides import copy_with_strides

V = np.array([0.5, 0.7, 1.1])
A = np.arange(1.0, 7.0).reshape(2, 3)
F = np.asfortranarray(A)
SQUARE = np.arange(1.0, 10.0).reshape(3, 3)
windows = np.lib.stride_tricks.sliding_window_view


def weighed(y: Any) -> Any:
    """A sum in which every element counts differently."""
    return np.sum(y * np.arange(1.0, y.size + 1).reshape(y.shape))


def reshaped(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes a result through its reshape."""

    def f(x: Any) -> Any:
        y = make(x)
        y.reshape(-1)[0] = 0
        return weighed(y)

    return f


def raveled(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes a result through its ravel."""

    def f(x: Any) -> Any:
        y = make(x)
        y.ravel()[...] *= 3.0
        return weighed(y)

    return f


def watching(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes an array and looks at a view, or at what is none."""

    def f(x: Any) -> Any:
        y = x * 2
        seen = view(y)
        y[..., 0] = x[..., 1] ** 2
        return weighed(seen)

    return f


def writing(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes a view, or what is none, and looks at the array."""

    def f(x: Any) -> Any:
        y = x * 2
        view(y)[...] *= 2.0
        return weighed(y)

    return f


def total_of_zeros(x: Any) -> Any:
    total = np.zeros_like(x, shape=())
    alias = total
    total += x[0]
    return alias * 1


def array_of_a_number(x: Any) -> Any:
    s = np.array(x[0])
    alias = s
    s += 1
    return alias * 1


def number(x: Any) -> Any:
    s = np.sum(x)
    before = s
    s += x[0]
    return before * s


def item_reshaped(x: Any) -> Any:
    y = x * 1
    y[0, ...].reshape(1)[0] = 7
    return np.sum(y)


def norm_through_atleast_2d(x: Any) -> Any:
    s = np.linalg.norm(x)
    w = np.atleast_2d(s)
    np.put(w, [0, -1], [1.0, 2.0])
    return s * 1


def deviation_through_reshape(x: Any) -> Any:
    s = np.std(x)
    s.reshape(-1)[:] = 1.5
    return s * 1


def diagonal_before_a_write(x: Any) -> Any:
    y = x * 1
    v = np.diagonal(y, offset=1)
    y[:, None, 1] += 2.0
    return weighed(v)


def columns_before_a_write(x: Any) -> Any:
    y = x * 1
    v = y[None].reshape(-1, 2, order="F")
    y[::-1][0] = 5.0
    return weighed(v)


def diagonal_by_einsum(x: Any) -> Any:
    y = np.outer(x, x)
    np.einsum("ii->i", y)[:] = 0
    return weighed(y)


def mask_of_no_axes(x: Any) -> Any:
    y = x * 1
    y[x[0] > 0] = 2.0
    return np.sum(y * x[x[1] > 0])


def argument_through_ravel(x: Any) -> Any:
    y = x.ravel()
    y[0] = 2.0
    return weighed(x)


def argument_through_reshape(x: Any) -> Any:
    y = x.reshape(-1)
    y[0] = 2.0
    return weighed(x)


def number_passed_as_array(x: Any) -> Any:
    y = x
    x += 1
    return y * x


NEW = {
    "take": lambda x: np.take(x, [1, 0], axis=1),
    "compress": lambda x: np.compress([True, False, True], x, axis=1),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "insert": lambda x: np.insert(x, 1, 2.0, axis=1),
    "delete": lambda x: np.delete(x, 0, axis=1),
    "T.copy": lambda x: x.T.copy(),
    "array C": lambda x: np.array(x.T, order="C"),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x.T),
    "pad": lambda x: np.pad(x, 1, mode="edge"),
    "zeros_like": lambda x: np.zeros_like(x.T) + x[0, 0] * 0 + 1,
    "einsum": lambda x: np.einsum("ij,kj,kl->il", x, x, x, optimize=True),
    "windows": lambda x: windows(x, 2, axis=0).copy(),
    "T * 2": lambda x: x.T * 2,
    "mask": lambda x: x[np.array([True, True])],
    "rows": lambda x: x[[1, 0]],
    "quantile": lambda x: np.quantile(x, [0.2, 0.6], axis=0),
    "product": lambda x: x * 2,
}
VIEWS = {
    "ravel": lambda y: y.ravel(),
    "ravel of a column": lambda y: y[:, 0].ravel(),
    "ravel of a slice": lambda y: y[:, ::2].ravel(),
    "ravel of a thin slice": lambda y: y[:, :1].ravel(),
    "ravel backwards": lambda y: y[::-1].ravel(),
    "reshape backwards": lambda y: y[::-1].reshape(-1),
    "reshape of T": lambda y: y.T.reshape(-1),
    "reshape of T and back": lambda y: y.T.reshape(3, 2).T,
    "roll by nothing": lambda y: np.roll(y, 0),
    "roll by a whole turn": lambda y: np.roll(y, 3, axis=1),
    "fftshift": lambda y: np.fft.fftshift(y, axes=()),
    "pad by nothing": lambda y: np.pad(y, 0, mode="edge"),
    "block": lambda y: np.block(y),
    "asfortranarray": lambda y: np.asfortranarray(y),
    "asfortranarray of T": lambda y: np.asfortranarray(y.T),
    "ascontiguousarray": lambda y: np.ascontiguousarray(y),
    "einsum": lambda y: np.einsum("ij->ji", y),
    "reshape F": lambda y: y[None].reshape(-1, 2, order="F"),
    "tile": lambda y: np.tile(y, 1),
    "ravel of a diagonal": lambda y: y.diagonal().ravel(),
    "flattened diagonal": lambda y: y.diagonal().flatten("A"),
    "ravel of a broadcast": lambda y: np.broadcast_to(y, (2, *y.shape)).ravel(),
    "ravel of windows": lambda y: windows(y, 2, axis=1).ravel(),
    "nan_to_num": lambda y: np.nan_to_num(y, copy=False),
    "astype": lambda y: y.astype(float, copy=False),
    "real": lambda y: np.real(y),
    "atleast_3d": lambda y: np.atleast_3d(y),
}
READ_ONLY = {
    "broadcast_to": lambda y: np.broadcast_to(y, (2, *y.shape)),
    "diagonal": lambda y: y.diagonal(),
    "diagonal 1": lambda y: np.diagonal(y, 1),
    "diag": lambda y: np.diag(y),
    "windows": lambda y: windows(y, 2, axis=1),
    "slice of a diagonal": lambda y: y.diagonal()[1:],
    "diagonal as a column": lambda y: y.diagonal().reshape(-1, 1),
}
ONE_LONG: dict[str, Callable[[Any], Any]] = {
    "fft of atleast_3d": lambda x: np.fft.fft(np.atleast_3d(x), 3, 0).real,
    "fft of a new axis": lambda x: np.fft.fft(x[None, :, None], 3, 0).real,
    "hfft of a new axis": lambda x: np.fft.hfft(x[None, :, None], 3, 0),
    "zeros like a new axis": lambda x: np.zeros_like(x[None, :, None], shape=(3, 3, 1)) + x[:, None],
    "fft of atleast_2d": lambda x: np.fft.rfft(np.atleast_2d(x), 3, 0).real,
}
"""Functions whose results lie as axes of length one of their arguments do."""
KNOWN_BRANCHES: dict[str, Callable[[Any], Any]] = {
    "switch": lambda x: func.switch(1, [lambda v: v + 1, lambda v: v * v], x),
    "switch of nothing": lambda x: func.switch(0, [lambda v: v, lambda v: v * v], x),
    "cond": lambda x: func.cond(True, lambda v: v * v, lambda v: v + 1, x),
    "scan": lambda x: func.scan(lambda c, _: (c * c, c), x, None, length=2)[1],
}
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{
        f"{name}, {way}": (way_of(lambda x, make=make: make(x) * 1.0), V[::step])
        for name, make in ONE_LONG.items()
        for way, way_of in {"reshaped": reshaped, "raveled": raveled}.items()
        for step in (1, -1)
    },
    **{
        f"{name} of {function}, in memory order": (
            lambda x, branch=branch, f=f: weighed(f(branch(x)).ravel("K")),
            F,
        )
        for name, branch in KNOWN_BRANCHES.items()
        for function, f in {
            "itself": lambda y: y,
            "hypot": lambda y: np.hypot(y, V),
            "a sum": lambda y: np.sum(y + y, axis=0, keepdims=True) + y,
        }.items()
    },
    **{
        f"sum of nothing along axis {axis}": (
            lambda x, axis=axis: weighed((np.sum(x[5:1:-2], axis, keepdims=True) + x[0, 0, 0]).ravel("K")),
            np.ones((2, 2, 3)).transpose(order),
        )
        for axis in (0, (0, 1))
        for order in [(2, 1, 0)]
    },
    **{f"{name}, reshaped": (reshaped(make), A) for name, make in NEW.items()},
    **{f"{name}, raveled": (raveled(make), A) for name, make in NEW.items()},
    **{f"{name}, watched": (watching(view), A) for name, view in (VIEWS | READ_ONLY).items()},
    **{f"{name}, written": (writing(view), A) for name, view in VIEWS.items()},
    "even elements": (writing(lambda y: y[::2].ravel()), V),
    "elements backwards": (writing(lambda y: y[::-1].ravel()), V),
    "roll of a vector": (writing(lambda y: np.roll(y, 3)), V),
    "einsum diagonal": (diagonal_by_einsum, V),
    "zeros without axes": (total_of_zeros, V),
    "array of a number": (array_of_a_number, V),
    "number": (number, V),
    "item": (item_reshaped, V),
    "array without axes": (number_passed_as_array, np.array(0.7)),
    "norm": (norm_through_atleast_2d, A),
    "deviation": (deviation_through_reshape, A),
    "diagonal with an offset": (diagonal_before_a_write, SQUARE),
    "columns": (columns_before_a_write, np.arange(8.0).reshape(4, 2)),
    "negative steps": (lambda x: np.sum(x[-3::-2, 1]), np.arange(12.0).reshape(4, 3)),
    "negative steps from the first": (lambda x: np.sum(x[-3::-2, 1]), SQUARE),
    **{
        f"{method} {order} of {name}": (lambda x, m=method, o=order: weighed(getattr(x, m)(o)), x)
        for method in ("ravel", "flatten")
        for order in "CFAK"
        for name, x in {"F": F, "C": A, "slices": np.zeros((4, 6))[::2, ::2] + A[:, :3]}.items()
    },
    "reshape A": (lambda x: weighed(x.reshape(-1, order="A")), F),
    "argument, ravel": (argument_through_ravel, A),
    "argument, reshape": (argument_through_reshape, A),
    "Fortran argument, ravel": (argument_through_ravel, F),
    "Fortran argument, reshape": (argument_through_reshape, F),
    "sliced argument, reshape": (argument_through_reshape, np.arange(12.0).reshape(2, 6)[:, ::2]),
    "reversed argument, reshape": (argument_through_reshape, A[::-1]),
}


def copied(x: Any) -> Any:
    """A copy in the same layout, as NumPy itself writes its argument."""
    spare = np.empty(2 * x.size + 64, x.dtype)
    out = np.lib.stride_tricks.as_strided(spare[x.size :], x.shape, x.strides)
    out[...] = x
    return out


def saved(f: Callable[[Any], Any], x: Any) -> Any:
    """The value by a Program that was pickled."""
    out = pickle.loads(pickle.dumps(func.make_program(f)(x)))(x)
    return out[0] if isinstance(out, (list, tuple)) else out


def mapped(f: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """The value for an element of a batch along an axis, whose elements lie in memory as x does."""
    room = np.empty((2, 3 * x.size + 64), x.dtype)
    strides = (room.strides[0], *x.strides)
    batch = np.lib.stride_tricks.as_strided(room[:, x.size :], (2, *x.shape), strides)
    batch[...] = x
    return func.vmap(f, in_dims=axis)(np.moveaxis(batch, 0, axis))[1]


MODES: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jvp": lambda f, x: func.jvp(f, (x,), (np.ones_like(x),))[0],
    "grad": lambda f, x: func.value_and_grad(f)(x)[0],
    "vjp": lambda f, x: func.vjp(f, x)[0],
    "jit": lambda f, x: func.jit(f)(x),
    "numpy": lambda f, x: func.jit(f, compiler="numpy")(x),
    "saved": saved,
    "vmap": lambda f, x: mapped(f, x, 0),
    "vmap of the last axis": lambda f, x: mapped(f, x, -1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_writes_are_seen_where_numpy_shows_them(name: str) -> None:
    f, x = PROGRAMS[name]
    expected = f(copied(x))
    for mode, run in MODES.items():
        if x.ndim or not mode.startswith("vmap"):
            np.testing.assert_allclose(run(f, x), expected, rtol=1e-12, err_msg=mode)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_follow_writes(name: str) -> None:
    f, x = PROGRAMS[name]
    direction = np.cos(np.arange(1.0, x.size + 1)).reshape(x.shape)
    step = 1e-5

    def at(t: float) -> Any:
        moved = copied(x)
        moved += t * direction
        return f(moved)

    slope = (at(step) - at(-step)) / (2 * step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(func.jvp(f, (x,), (direction,))[1], slope, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(np.sum(func.grad(f)(x) * direction), slope, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(np.sum(func.jit(func.grad(f))(x) * direction), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "saved"])
@pytest.mark.parametrize("name", READ_ONLY)
def test_what_numpy_makes_read_only_is_not_written(name: str, mode: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        MODES[mode](writing(READ_ONLY[name]), A)


@pytest.mark.parametrize("mode", ["jvp", "grad", "vjp", "vmap"])
def test_masks_of_no_axes_select_all_or_nothing(mode: str) -> None:
    assert MODES[mode](mask_of_no_axes, V) == mask_of_no_axes(V)
    np.testing.assert_allclose(func.grad(lambda x: np.sum(x[x[0] > 0] ** 2))(V), 2 * V)
    assert func.jvp(lambda x: x[None, True, :][x[0] < 0], (V,), (V,))[0].shape == (0, 1, 1, 3)


def test_one_jitted_function_takes_arrays_of_several_layouts() -> None:
    f = func.jit(argument_through_reshape)
    for x in (A, F, A, A[::-1], F, np.arange(12.0).reshape(2, 6)[:, ::2], A):
        assert f(x) == argument_through_reshape(copied(x))


def test_layouts_matter_to_the_cache_only_where_they_matter_to_the_function() -> None:
    f = func.jit(lambda x: np.sum(x.reshape(-1)[::2]))
    assert f(A) == f(F)
    assert f.cache_info().misses == 1


def test_copies_under_intercept_are_copies() -> None:
    copies = (
        lambda y: np.array(y),
        lambda y: np.array(y, dtype=float),
        lambda y: np.array(y, ndmin=2),
        lambda y: np.array(y.T),
    )

    def f(t: Any) -> Any:
        y = np.zeros((2, 3))
        y[1, 1] = t**2
        seen = [*[copy(y) for copy in copies], np.ascontiguousarray(y.T)]
        y[0] = t
        return sum([np.sum(part) for part in seen])

    with func.intercept():
        value, slope = func.value_and_grad(f)(2.0)
    assert (value, slope) == (20.0, 20.0)


def test_windows_under_intercept_follow_writes() -> None:
    def f(t: Any) -> Any:
        y = np.zeros(4)
        y[1] = t
        seen = windows(y, 2)
        y[2] = t**2
        return np.sum(seen)

    with func.intercept():
        value, slope = func.value_and_grad(f)(3.0)
    assert (value, slope) == (24.0, 14.0)


@pytest.mark.parametrize("mode", ["jvp", "grad", "jit", "vmap"])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_shuffles_that_would_duplicate_rows_are_refused(make: Any, mode: str) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        make(0).shuffle(y)
        return weighed(y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(func.errors.UnsupportedFunctionError, match="permutation"):
            MODES[mode](f, np.arange(15.0).reshape(5, 3))
        if mode != "jit":
            np.testing.assert_allclose(MODES[mode](f, V), f(V.copy()))


def test_rows_are_exchanged_as_in_numpy() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[0], y[1] = y[1], y[0]  # of arrays, views: one row comes out twice
        return weighed(y)

    assert func.value_and_grad(f)(A)[0] == f(A)


SCALARS_WRITTEN: dict[str, Any] = {
    "put": lambda s: np.put(s, [0], [5.0]),
    "method put": lambda s: s.put([0], [5.0]),
    "fill": lambda s: s.fill(5.0),
    "a new axis": lambda s: s[None].__setitem__(0, 5.0),
    "an ellipsis": lambda s: s[...].__setitem__((), 5.0),
    "reshape": lambda s: s.reshape(1).__setitem__(0, 5.0),
}


@pytest.mark.parametrize("name", SCALARS_WRITTEN)
@pytest.mark.parametrize("take", [lambda x: x[1], np.sum, lambda x: x[1] * 2], ids=["item", "sum", "product"])
def test_scalars_are_no_memory_that_can_be_written(name: str, take: Any) -> None:
    def f(x: Any) -> Any:
        scalar = take(x)
        SCALARS_WRITTEN[name](scalar)
        return np.sum(x) * 10 + scalar

    x = np.array([1.0, 2.0, 3.0])
    expected = f(x.copy())
    assert func.jvp(f, (x,), (x,))[0] == func.vjp(f, x)[0] == func.jit(f)(x) == expected
    assert np.all(func.vmap(f)(np.stack([x, x])) == expected)


@pytest.mark.parametrize("name", ["scan", "fori_loop", "cond"])
def test_operands_of_loops_lie_as_they_did(name: str) -> None:
    loops = {
        "scan": lambda x: func.scan(lambda c, row: (c * 0.5, row), x, x)[0],
        "fori_loop": lambda x: func.fori_loop(0, 2, lambda i, c: c * 0.5, x),
        "cond": lambda x: func.cond(True, lambda c: c, lambda c: c * 2, x),
    }

    def f(x: Any) -> Any:
        y = loops[name](x)
        z = x * 2
        z.ravel()[...] = 9.0
        return y, z

    x = np.arange(6.0).reshape(2, 3).copy("F")
    for mode in (func.jit(f), lambda x: func.vjp(f, x)[0]):
        for got, expected in zip(mode(x), f(x), strict=True):
            assert np.array_equal(got, expected)


def _ruled(kind: str, f: Any) -> Any:
    if kind == "custom_jvp":
        rule = func.custom_jvp(f)
        rule.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
        return rule
    rule = func.custom_vjp(f)
    rule.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    return rule


RESULTS: dict[str, Any] = {
    "scan": lambda x: func.scan(lambda c, _: (c * 0.5, None), x, None, length=2)[0],
    "scan's rows": lambda x: func.scan(lambda c, row: (c, row * 2), 0.0, x)[1],
    "scan of the same": lambda x: func.scan(lambda c, _: (c, None), x, None, length=2)[0],
    "fori_loop of no steps": lambda x: func.fori_loop(0, 0, lambda i, c: c * 0.5, x),
    "a write in fori_loop": lambda x: func.fori_loop(0, 2, lambda i, c: (c.ravel().__setitem__(0, 9.0), c * 1.0)[1], x),
    "while_loop": lambda x: func.while_loop(lambda c: np.sum(c) > 3, lambda c: c * 0.5, x),
    "cond": lambda x: func.cond(np.sum(x) > 0, lambda c: c * 0.5, lambda c: c, x),
    "cond of the same": lambda x: func.cond(np.sum(x) > 0, lambda c: c, lambda c: c * 2, x),
    "cond of a transpose": lambda x: func.cond(np.sum(x) > 0, lambda c: c.T, lambda c: c.T * 2, x),
    "switch": lambda x: func.switch(np.argmax(x) % 2, [lambda c: c, lambda c: c * 2], x),
    "associative_scan": lambda x: func.associative_scan(np.add, x),
    "map": lambda x: func.map(lambda row: row, x),
    "checkpoint": lambda x: func.checkpoint(lambda c: c * 2)(x),
    "custom_jvp": lambda x: _ruled("custom_jvp", lambda c: c * 2)(x),
    "custom_vjp": lambda x: _ruled("custom_vjp", lambda c: c * 2)(x),
    "vjp": lambda x: func.vjp(lambda c: c * 2, x)[0],
    "jvp of the same": lambda x: func.jvp(lambda c: c, (x,), (x,))[0],
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("order", "CF")
def test_writes_to_results_of_loops_and_rules_are_seen_alike_in_all_modes(name: str, order: str) -> None:
    def f(x: Any) -> Any:
        y = RESULTS[name](x)
        y.ravel()[0] = 9.0
        y[-1] += 1.0
        return np.stack([np.sum(y), np.sum(y[0]), np.sum(x)])

    x = np.arange(1.0, 7.0).reshape(2, 3).copy(order)
    again = lambda: x.copy(order)  # noqa: E731
    expected = f(again())
    for mode, value in {
        "jvp": func.jvp(f, (again(),), (again(),))[0],
        "vjp": func.vjp(f, again())[0],
        "llvm": func.jit(f)(again()),
        "numpy": func.jit(f, compiler="numpy")(again()),
    }.items():
        assert np.allclose(value, expected), mode


COPIES_OF_BROADCASTS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda x: np.broadcast_to(x * 2, (2, 6)).copy(),
    "copy A": lambda x: np.broadcast_to(x * 2, (2, 6)).copy("A"),
    "copy K": lambda x: np.broadcast_to(x * 2, (2, 6)).copy("K"),
    "copy F": lambda x: np.broadcast_to(x * 2, (2, 6)).copy("F"),
    "array": lambda x: np.array(np.broadcast_to(x * 2, (2, 6)), order="C"),
    "meshgrid": lambda x: np.meshgrid(x * 2, np.ones(2))[0],
}
USES_OF_COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda m: m,
    "add": lambda m: m + 1,
    "add after a write": lambda m: (m.__setitem__(0, 1.0), m + 1)[1],
    "roll": lambda m: np.roll(m, 1, 0),
    "sort": lambda m: np.sort(m, 0),
    "concatenate": lambda m: np.concatenate([m, m]),
    "sum of a stack": lambda m: np.stack([m, m]).sum(0),
}


@pytest.mark.parametrize("use", USES_OF_COPIES)
@pytest.mark.parametrize("copy", COPIES_OF_BROADCASTS)
def test_copies_of_broadcasts_lie_as_in_numpy_for_what_follows(copy: str, use: str) -> None:
    def f(x: Any) -> Any:
        y = USES_OF_COPIES[use](COPIES_OF_BROADCASTS[copy](x))
        y.reshape(-1)[1] = 9.0
        return y

    x = np.arange(1.0, 7.0)
    assert np.array_equal(func.jit(f)(x), f(x))
    assert np.array_equal(func.jvp(f, (x,), (x,))[0], f(x))
    assert np.array_equal(func.jit(func.vmap(f))(x[None])[0], f(x))


def rewritten(x: Any) -> Any:
    """Writes through a reshape, which reaches x or not, as x lies in memory."""
    y = x[::-1].reshape(-1)
    y[1:] = y[:-1] * 2
    return np.sum(x * x) + np.sum(y**3)


def by_custom_vjp(x: Any) -> Any:
    call = func.custom_vjp(rewritten)
    call.defvjp(lambda v: (rewritten(v), None), lambda residual, ct: (ct,))
    return call(x)


def by_custom_jvp(x: Any) -> Any:
    call = func.custom_jvp(rewritten)
    call.defjvp(lambda primals, tangents: (rewritten(*primals), np.sum(tangents[0])))
    return call(x)


class Rewritten(func.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return rewritten(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        raise AssertionError("no derivative is asked for")


INNER_CALLS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda x: func.vjp(rewritten, x)[0],
    "jvp": lambda x: func.jvp(rewritten, (x,), (x,))[0],
    "linearize": lambda x: func.linearize(rewritten, x)[0],
    "value_and_grad": lambda x: func.value_and_grad(rewritten)(x)[0],
    "vmap": lambda x: func.vmap(rewritten)(x[None])[0],
    "jit": func.jit(rewritten),
    "checkpoint": func.checkpoint(rewritten),
    "custom_vjp": by_custom_vjp,
    "custom_jvp": by_custom_jvp,
    "custom_gradient": func.custom_gradient(lambda x: (rewritten(x), lambda ct: ct * np.ones(x.shape))),
    "Function": Rewritten.apply,
    "cond": lambda x: func.cond(np.sum(x) > -1e9, rewritten, lambda x: np.sum(x), x),
    "after a write": lambda x: (x.__setitem__(0, x[0] * 3.0), func.vjp(rewritten, x)[0])[1],
}
OUTER_CALLS: dict[str, Callable[..., Any]] = {
    "eager": lambda f, make: [f(x) for x in make()],
    "vjp": lambda f, make: [func.vjp(f, x)[0] for x in make()],
    "jit": lambda f, make: [func.jit(f)(x) for x in make()],
    "vmap": lambda f, make: func.vmap(f)(make()),
    "vmap of vjp": lambda f, make: func.vmap(lambda x: func.vjp(f, x)[0])(make()),
}
BATCHES: dict[str, Callable[[Any], Any]] = {
    "C order": lambda x: x,
    "reversed rows": lambda x: x[:, ::-1],
    "reversed": lambda x: x[:, ::-1, ::-1],
    "gaps": lambda x: x[..., ::2],
    "transposed": lambda x: np.swapaxes(x, -1, -2),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("layout", BATCHES)
@pytest.mark.parametrize("outer", OUTER_CALLS)
@pytest.mark.parametrize("inner", INNER_CALLS)
def test_arguments_of_inner_calls_lie_as_what_was_given(inner: str, outer: str, layout: str) -> None:
    def make() -> Any:
        return BATCHES[layout](np.arange(24.0).reshape(2, 3, 4) / 10)

    expected = [rewritten((x.__setitem__(0, x[0] * 3.0), x)[1] if inner == "after a write" else x) for x in make()]
    np.testing.assert_allclose(OUTER_CALLS[outer](INNER_CALLS[inner], make), expected)


@pytest.mark.parametrize("layout", BATCHES)
def test_copies_for_user_code_lie_as_the_original(layout: str) -> None:
    for x in BATCHES[layout](np.arange(48.0).reshape(2, 3, 8)[:, :, 1:7]):
        copy = copy_with_strides(x)
        assert np.array_equal(copy, x)
        assert not np.shares_memory(copy, x)
        for shape in ((-1,), x.shape[::-1], (3, -1)):
            for view in (lambda a: a, lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::-1]):
                shares = [np.shares_memory(a, view(a).reshape(shape)) for a in (copy, x)]
                assert shares[0] == shares[1]


ORDERED: dict[str, Callable[..., Any]] = {
    "ravel": lambda x, order: np.ravel(x, order=order),
    ".ravel": lambda x, order: x.ravel(order),
    ".flatten": lambda x, order: x.flatten(order),
    "reshape": lambda x, order: np.reshape(x, (3, 2), order=order),
    ".reshape": lambda x, order: x.reshape(3, 2, order=order),
    "copy": lambda x, order: np.copy(x, order),
    ".copy": lambda x, order: x.copy(order),
    "array": lambda x, order: np.array(x, order=order),
    "asarray": lambda x, order: np.asarray(x, order=order),
    "array of a list": lambda x, order: np.array([x, x], order=order),
    ".astype": lambda x, order: x.astype(np.float32, order=order),
    "zeros_like": lambda x, order: np.zeros_like(x, order=order) + x,
    "full_like": lambda x, order: np.full_like(x, x[0, 0], order=order),
    "full": lambda x, order: np.full((2, 3), x[0, 0], order=order),
    "add": lambda x, order: np.add(x, 1.0, order=order),
    "einsum": lambda x, order: np.einsum("ij,j->ij", x, np.ones(3), order=order),
    "unravel_index": lambda x, order: np.unravel_index(3, (2, 3), order=order),
}


def ordered(name: str, x: Any, order: Any) -> list[Any]:
    """The numbers of a result in the order of its memory, and the order itself."""
    out = ORDERED[name](x, order)
    out = np.stack(out) if isinstance(out, tuple) else out
    return [np.ravel(out, "K") * 1, out.flags.c_contiguous, out.flags.f_contiguous]


@pytest.mark.parametrize("name", ORDERED)
def test_orders_in_both_cases(name: str) -> None:
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    transforms: list[Callable[..., Any]] = [
        lambda f: func.jvp(f, (x,), (x,)),
        lambda f: func.make_program(f)(x)(x),
        lambda f: func.vmap(f)(x[None]),
    ]
    for order in ["c", "f", "a", "k", "C", "F", "A", "K", None, "G", "", "CF", 1]:
        expected: Any
        try:
            expected = ordered(name, x, order)
        except (ValueError, TypeError) as error:
            expected = type(error)

        def looked(x: Any, order: Any = order, expected: Any = expected) -> Any:
            if isinstance(expected, type):
                with pytest.raises(expected, match="order"):
                    ordered(name, x, order)
                return x
            numbers, *flags = ordered(name, x, order)
            assert flags == expected[1:]
            return numbers

        outs = [transform(looked) for transform in transforms]
        if not isinstance(expected, type):
            for out in outs:
                np.testing.assert_array_equal(out[0], expected[0])


def test_flags_say_what_may_be_written() -> None:
    def f(x: Any) -> Any:
        views = [np.broadcast_to(x, (2, 3, 3)), x.diagonal(), np.broadcast_to(x, (2, 3, 3))[0], x.T, x[1:], x[...]]
        assert [view.flags.writeable for view in views] == [False, False, False, True, True, True]
        return x.sum()

    for transform in (func.grad, func.make_program, lambda f: lambda x: func.vmap(f)(x[None])):
        transform(f)(np.ones((3, 3)))


@pytest.mark.parametrize(
    "target", [lambda x: x.copy("F"), lambda x: (x.reshape(3, 2) * 1).T, lambda x: np.zeros_like(x, order="f")]
)
def test_results_of_what_was_written_lie_as_its_memory(target: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        a = target(x)
        np.multiply(x, 2.0, out=a)
        return np.ravel(a * 1, "K"), np.ravel(a.copy("K"), "K")

    x = np.arange(6.0).reshape(2, 3)
    for outs in (func.jvp(f, (x,), (x,))[0], func.make_program(f)(x)(x), [out[0] for out in func.vmap(f)(x[None])]):
        np.testing.assert_array_equal(outs, f(x))


def with_a_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = func.custom_jvp(f)
    function.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return function


@pytest.mark.parametrize(
    "inner",
    [with_a_rule, func.checkpoint, lambda f: lambda x: func.cond(np.sum(x) > 0, f, lambda x: x, x)],
    ids=["custom_jvp", "checkpoint", "cond"],
)
def test_arguments_of_inner_functions_lie_in_a_program_as_what_was_given(inner: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y.ravel()[0] = 5.0  # a copy where x is in Fortran order
        y.T.ravel()[-1] = 7.0
        return y + 0

    for order in "CF":
        x = np.array(np.arange(6.0).reshape(2, 3), order=order)  # type: ignore[call-overload]
        expected = f(x)
        np.testing.assert_array_equal(func.jit(inner(f))(x), expected)
        np.testing.assert_array_equal(func.make_program(inner(f))(x)(x)[0], expected)
        np.testing.assert_array_equal(func.jvp(func.jit(inner(f)), (x,), (x,))[0], expected)
