"""Questions about values under jit: guards choose among paths, under every transform, and never a stale one."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.stats

import func
from func.errors import ArgumentError, StagingError

COMPILERS = ("numpy", "llvm")
VECTORS = [np.array(v) for v in ([1.0, -1, 2], [1.0, 2, 3], [-1.0, -2, -3], [3.0, -1, 0], [0.0, 0, 0], [np.nan, 1, 1])]


def root(x: Any) -> Any:
    """The square root by a loop of Newton's steps."""
    if x < 0:
        raise ValueError("a negative number")
    y = x * 1.0
    while abs(y * y - x) > 1e-10 * x:
        y = (y + x / y) / 2
    return y


def early(x: Any) -> Any:
    """Two early exits of unlike trees, and a check."""
    if np.isnan(x).any():
        return {"bad": x * 0}
    if not (x > 0).any():
        return np.sum(x)
    if x[0] == 3:
        raise ValueError("three")
    return x, np.sum(x[x > 0] ** 2)


def counted(x: Any) -> Any:
    """A loop and an index by integers that depend on values."""
    n = int(np.count_nonzero(x > 0))
    for _ in range(n):
        x = x * 0.5 + np.roll(x, n)
    return np.sum(x) * n + x[n % 3]


def masked(x: Any) -> Any:
    """Shapes that depend on values."""
    places = np.nonzero(x)[0]
    inside, other = x[x > 0], np.outer(x, x)[np.outer(x, x) > 1]
    return np.sum(inside**2) + np.sum(other) * len(inside) + np.sum(x[places]) + len(np.argwhere(x > 1))


def truths(x: Any) -> Any:
    """Truth values of numbers, chains of comparisons, Python's max, equal arrays."""
    s = max(x[0], x[1], 0.5)
    if x[2]:
        s = s * 2
    if not x[0] or 1 < x[1] < 3:
        s = s + x[1]
    return s * 3 if np.array_equal(x, np.abs(x)) and np.allclose(x, x[::1]) else s


FUNCTIONS = [early, counted, masked, truths]


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """Leaves and tree of the result, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            leaves, spec = func.tree.flatten(f(*args))
        except ValueError as error:
            return type(error).__name__, str(error)
    return [np.asarray(leaf).tolist() for leaf in leaves], str(spec)


def same(got: Any, right: Any) -> None:
    """Equal outcomes; rounding may differ."""
    assert got[1] == right[1]
    for one, other in zip(got[0], right[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12) if not isinstance(one, str) else None


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_all_paths_in_any_order(f: Callable[..., Any], compiler: str) -> None:
    jitted = func.jit(f, compiler=compiler)
    for place in (0, 1, 2, 3, 4, 5, 0, 0, 5, 4, 3, 2, 1, 0, 1, 2, 1, 2, 1):
        same(outcome(jitted, VECTORS[place]), outcome(f, VECTORS[place]))


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all results."""
    return lambda x: sum([np.sum(leaf) for leaf in func.tree.leaves(f(x))])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "compile_",
    [
        lambda g: func.grad(func.jit(g)),
        lambda g: func.jit(func.grad(g)),
        lambda g: func.jit(func.grad(func.jit(g))),
        lambda g: lambda x: func.jvp(func.jit(g), (x,), (np.ones(3),)),
        lambda g: func.jit(lambda x: func.jvp(g, (x,), (np.ones(3),))),
        lambda g: func.hessian(func.jit(g)),
    ],
    ids=["grad jit", "jit grad", "jit grad jit", "jvp jit", "jit jvp", "hessian jit"],
)
def test_derivatives_follow_the_path(f: Callable[..., Any], compile_: Any, request: Any) -> None:
    name = request.node.callspec.id.split("-")[0]
    plain = {"jvp": lambda x: func.jvp(total(f), (x,), (np.ones(3),)), "hessian": func.hessian(total(f))}
    truth = next((g for word, g in plain.items() if word in name), func.grad(total(f)))
    compiled = compile_(total(f))
    for place in (0, 1, 2, 3, 0, 2, 1):
        same(outcome(compiled, VECTORS[place]), outcome(truth, VECTORS[place]))


def test_a_loop_of_unlike_lengths() -> None:
    jitted, slope = func.jit(root), func.grad(func.jit(root))
    for _ in range(3):
        for x in (2.0, 100.0, 1e4, 3.0):
            assert jitted(x) == pytest.approx(x**0.5, rel=1e-9)
            assert slope(x) == pytest.approx(0.5 * x**-0.5, rel=1e-5)
    for _ in range(2):
        with pytest.raises(ValueError, match="a negative number"):
            jitted(-1.0)
    assert jitted(2.0) == pytest.approx(2**0.5)


def test_batches_split_outside_and_agree_inside() -> None:
    x = np.array([2.0, 100.0, 3.0])
    np.testing.assert_allclose(func.vmap(func.jit(root))(x), np.sqrt(x), rtol=1e-9)
    np.testing.assert_allclose(func.vmap(func.grad(func.jit(root)))(x), 0.5 / np.sqrt(x), rtol=1e-5)
    inside = func.jit(func.vmap(root))
    np.testing.assert_allclose(inside(np.full(3, 2.0)), np.sqrt(np.full(3, 2.0)), rtol=1e-9)
    with pytest.raises(StagingError, match="is not known"):
        inside(x)
    nested = func.jit(func.vmap(func.vmap(lambda v: v * 2 if v > 0 else -v)))
    np.testing.assert_array_equal(nested(np.ones((2, 3))), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(nested(-np.ones((2, 3))), np.ones((2, 3)))


def test_too_many_paths() -> None:
    def halved(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * 0.5
        return x

    jitted = func.jit(halved, max_paths=3)
    for n in (0, 1, 2, 1, 0):
        assert jitted(1.0, n) == 0.5**n
    with pytest.raises(StagingError, match=r"3 paths(.|\n)*range\(n\)(.|\n)*had 3 answers(.|\n)*max_paths="):
        jitted(1.0, 3)
    assert jitted(1.0, 2) == 0.25
    assert jitted.cache_info().currsize == 3
    for wrong in (0, 1.5, True):
        with pytest.raises(ArgumentError, match="is not a positive integer"):
            func.jit(halved, max_paths=wrong)
    assert repr(func.jit(np.sin, guards=False, max_paths=2)) == "func.jit(sin, guards=False, max_paths=2)"


def test_without_guards() -> None:
    with pytest.raises(StagingError, match="the value of bool"):
        func.jit(early, guards=False)(VECTORS[0])
    with pytest.raises(StagingError, match="the value of x"):
        func.jit(lambda x: float(x))(1.0)


def test_bodies_of_loops_do_not_ask() -> None:
    def body(c: Any, x: Any) -> Any:
        return (c + x if x > 0 else c), None

    with pytest.raises(StagingError, match=r"func\.scan traces"):
        func.jit(lambda x: func.scan(body, x[0], x)[0])(np.ones(3))


def test_a_function_that_depends_on_more_than_its_arguments() -> None:
    calls: list[int] = []

    def fickle(x: Any) -> Any:
        calls.append(1)
        bound = 1.0 if len(calls) % 2 else 2.0
        return x if x > bound else -x

    jitted = func.jit(fickle)
    jitted(5.0)
    with pytest.raises(StagingError, match="depends on more than its arguments"):
        jitted(0.5)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_effects_happen_once_and_loops_end(compiler: str) -> None:
    seen: list[float] = []

    def told(x: Any) -> Any:
        func.debug.callback(lambda v: seen.append(float(v)), x)
        if x < 0:
            return -x
        func.debug.callback(lambda v: seen.append(10 + float(v)), x)
        return x

    jitted = func.jit(told, compiler=compiler)
    for x in (1.0, -1.0, 2.0, -2.0, 1.0):
        seen.clear()
        jitted(x)
        assert seen == ([x, 10 + x] if x > 0 else [x])

    def endless(x: Any, step: Any) -> Any:
        if step <= 0:
            return x
        return func.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + step,), (x,))[0]

    counting = func.jit(endless, compiler=compiler)
    assert [counting(1.0, step) for step in (2.0, 0.0, -1.0, 4.0)] == [11.0, 1.0, 1.0, 13.0]


def test_written_and_donated_arguments_stay_until_the_path_is_known() -> None:
    def filled(x: Any) -> Any:
        x[0] = 7.0
        return x * 2 if x[1] > 0 else x

    for jitted in (func.jit(filled), func.jit(filled, donate_argnums=0)):
        for second in (1.0, -1.0, 1.0, -1.0):
            x = np.array([1.0, second])
            np.testing.assert_array_equal(jitted(x.copy()), filled(x.copy()))


def test_threads_walk_all_paths() -> None:
    jitted = func.jit(root)
    faults: list[str] = []

    def work(first: int) -> None:
        for place in range(40):
            x = [2.0, 100.0, 1e4, 3.0, 7.0][(place + first) % 5]
            if abs(jitted(x) - x**0.5) > 1e-6 * x:
                faults.append(f"{x}: {jitted(x)}")

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_guards_are_shown_and_programs_refuse_them() -> None:
    jitted = func.jit(early)
    lowered = jitted.lower(VECTORS[1])
    assert [text.split("\n")[0] for text in lowered.guards] == [
        "guard: False",
        "guard: True",
        "guard: False",
        "guard: 3",
    ]
    assert "np.isnan(x).any()" in str(lowered)
    for refuses in (jitted.trace, func.make_program(early)):
        with pytest.raises(StagingError, match=r"np\.isnan"):
            refuses(VECTORS[1])
    with pytest.raises(StagingError, match="is not known"):
        func.make_program(jitted)(VECTORS[1])


def asking(x: Any, n: Any) -> Any:
    """Questions for truth values, an integer and a count; a table that is read at an index that depends on values."""
    if np.any(x < 0):
        raise ValueError("negative")
    for _ in range(n):
        x = np.sqrt(x) + 1
    if x[int(n) - 1] > 2:
        return x[x > 2].sum()
    return func.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2,), (x[0],))[0] if x[0] > 0 else x[1]


def exported(kind: str, f: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """The code that an export makes for arguments."""
    if kind == "c":
        if shutil.which("cc") is None:
            pytest.skip("no C compiler")
        return func.to_c(f)(*args).load(flags=["-std=c99", "-O1"])
    space: dict[str, Any] = {}
    exec(func.to_source(f)(*args), space)
    function: Callable[..., Any] = space[f.__name__]
    return function


@pytest.mark.parametrize("kind", ["source", "c"])
@pytest.mark.parametrize("f", [asking, func.jit(asking)], ids=["plain", "jitted"])
def test_exports_write_a_path_and_check_its_guards_first(kind: str, f: Callable[..., Any]) -> None:
    kinds = [([1.0, 9.0], 1), ([1.0, 9.0], 2), ([1.0, 0.5], 1), ([0.0, 0.0], 0), ([9.0, 0.5], 1), ([-1.0, 1.0], 1)]
    calls = [(np.array(x), n) for x, n in kinds]
    for traced in calls[:4]:
        code, followed = exported(kind, f, *traced), 0
        for x, n in calls:
            try:
                got = code(x, n)
            except ValueError as error:
                assert "this code is for arguments where `" in str(error) and "(test_paths.py:" in str(error)
                continue
            followed += 1
            np.testing.assert_allclose(got, asking(x, n), rtol=1e-12)
        assert 0 < followed < len(calls)
        np.testing.assert_allclose(code(*traced), asking(*traced), rtol=1e-12)


def test_the_header_of_exported_c_has_the_guards() -> None:
    header = func.to_c(asking)(np.ones(2), 1).header
    assert (
        "or 2, without outputs, unless" in header
        and "(test_paths.py:" in header
        and os.path.dirname(__file__) not in header
    )
    assert "without outputs" not in func.to_c(np.sin)(1.0).header


def test_masks_of_nothing_ask_nothing() -> None:
    for shape in ((0,), (0, 2), (2, 0)):
        x = np.zeros(shape)
        np.testing.assert_array_equal(func.jit(lambda x: x[x > 0])(x), x[x > 0])
        assert [part.tolist() for part in func.jit(lambda x: np.nonzero(x))(x)] == [[]] * len(shape)


def test_scipys_code_that_decides_by_values_compiles() -> None:
    x = np.array([1.0, 2, 3, 4, 100, 2, 3, 1, 2, 3, 2, 1, 2])
    clipped = func.jit(lambda x: scipy.stats.sigmaclip(x, 2.0, 2.0)[0])
    for values in (x, x[::-1].copy(), x * 0 + 1, x):
        np.testing.assert_array_equal(clipped(values), scipy.stats.sigmaclip(values, 2.0, 2.0)[0])
    blurred = func.jit(lambda width: scipy.ndimage.gaussian_laplace(x, width))
    for width in (1.0, 2.0, 1.0):
        np.testing.assert_allclose(blurred(width), scipy.ndimage.gaussian_laplace(x, width), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("x", [2.7, -2.7, 0.0, np.nan, np.inf, -np.inf])
def test_integers_of_numbers_are_those_of_python(x: float) -> None:
    jitted = func.jit(lambda x: x * int(x))
    try:
        right = x * int(x)
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error), match=str(error)):
            jitted(x)
    else:
        assert jitted(x) == right and func.jit(lambda x: x * int(x))(x) == right


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_paths_travel_in_a_pickle(f: Callable[..., Any], compiler: str) -> None:
    jitted, slope = func.jit(f, compiler=compiler), func.jit(func.grad(f), compiler=compiler)
    for x in VECTORS:
        outcome(jitted, x)
    kept = jitted.cache_info().currsize
    again = pickle.loads(pickle.dumps(jitted))
    assert again.cache_info().currsize == kept
    for place in (5, 4, 3, 2, 1, 0, 1, 2, 1, 2, 4):
        same(outcome(again, VECTORS[place]), outcome(f, VECTORS[place]))
    raised = f is early  # a path that raises is traced by each call
    assert again.cache_info().currsize == kept and (raised or again.cache_info().misses == 0)
    if f is truths:
        rights = [outcome(slope, x) for x in VECTORS[:3]]
        travelled = pickle.loads(pickle.dumps(slope))
        for x, right in zip(VECTORS, rights, strict=False):
            same(outcome(travelled, x), right)
        assert travelled.cache_info().misses == 0
