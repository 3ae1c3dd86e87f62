"""Native products of matrices in every layout, and arguments in memory of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import func

pytest.importorskip("llvmlite")

from tests.interpreters.compile.native.test_native import A, B, V, check, compiled, numbers, same, whole


def products(x: Any, y: Any, xt: Any, yt: Any) -> Any:
    """A product of matrices that lie in every way."""
    turned = np.einsum("ik,kj->ji", x, y)
    return (
        x @ y,
        xt.T @ y,
        x @ yt.T,
        xt.T @ yt.T,
        yt @ xt,
        turned,
        (x * 2) @ (y + 1),
        x[::-1] @ y[:, ::-1],
        x[:, ::-1] @ y[::-1],
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 3, 1), (2, 1, 2), (3, 4, 5), (4, 8, 16), (5, 9, 17), (8, 1, 33), (1, 17, 9), (17, 5, 1), (9, 16, 50),
        (47, 48, 49), (70, 70, 70), (1, 70, 64), (70, 64, 1), (4, 49, 15),
    ],
)  # fmt: skip
def test_products_of_matrices(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes
    make = whole if dtype == "int64" else numbers
    check(products, *[make(*shape, dtype=dtype) for shape in ((m, k), (k, n), (k, m), (n, k))])


@pytest.mark.parametrize("dtype", ["float64", "int16", "bool"])
@pytest.mark.parametrize(
    "labels",
    [
        "abc,acd->abd",
        "bac,dca->bda",
        "ab,ab->",
        "ab,ab->b",
        "ab,c->cab",
        "abcd,db->ca",
        "a,ea->a",
        "aab,b->a",
        "ab,bcd->dca",
        "ba,bc->b",
    ],
)
def test_products_over_labels(labels: str, dtype: str) -> None:
    sizes = dict(zip("abcde", (3, 5, 1, 4, 2), strict=True))
    x, y = [whole(*[sizes[label] for label in term]).astype(dtype) for term in labels.split("->")[0].split(",")]
    check(lambda x, y: (np.einsum(labels, x, y), np.einsum(labels, x[::-1], y[..., ::-1])), x, y, native=False)


@pytest.mark.parametrize("labels", ["ab,ab->b", "abc,abc->bc", "abc,abc->c", "abc,abc->cb", "abc,abc->ac", "ab,ab->a"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "?"])
def test_sums_of_rows_of_products(labels: str, dtype: str) -> None:
    shape = (7, 12) if len(labels) < 9 else (5, 3, 12)
    x, y = whole(*shape).astype(dtype), whole(*shape[::-1]).T.astype(dtype)
    check(
        lambda x, y: (np.einsum(labels, x, x), np.einsum(labels, x, y), np.einsum(labels, x + x, x[::-1])),
        x,
        y,
        native=False,
    )


def test_products_of_batches_and_vectors() -> None:
    x, y, m, v = numbers(3, 1, 4, 5), numbers(2, 5, 6), numbers(64, 64), numbers(64)
    check(lambda x, y: (x @ y, (x @ y).sum((0, 1)), y.swapaxes(1, 2) @ x.swapaxes(2, 3), x[0, 0, 0] @ y), x, y)
    check(
        lambda m, v: (
            v @ m,
            m @ v,
            v @ v,
            m[::2] @ v,
            v @ m[:, ::-2],
            m.T[1:] @ v,
            m @ m.T,
            (m.T @ m) @ v,
            np.trace(m @ m),
        ),
        m,
        v,
    )


def unaligned(x: Any) -> Any:
    """A copy whose elements begin one byte off."""
    copy = np.zeros(x.nbytes + 8, np.uint8)[1 : 1 + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def frozen(x: Any) -> Any:
    """A copy that cannot be written to."""
    copy = x.copy()
    copy.flags.writeable = False
    return copy


ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran order": np.asfortranarray,
    "unaligned": unaligned,
    "read-only": frozen,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "spread": lambda x: np.broadcast_to(x[0], x.shape),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_in_memory_of_all_kinds(name: str) -> None:
    def f(x: Any, v: Any) -> Any:
        return np.sin(x) * 2 + v, x.sum(0), x @ v, x[::-1], x, x.T

    given = ARGUMENTS[name](A)
    before = given.copy()
    expected = f(given, V)
    warm = compiled(f)
    warm(B, V)
    for jitted in (warm, compiled(f)):
        for _ in range(3):
            outs = jitted(given, V)
            same(outs, expected)
            for out in outs:
                assert not np.shares_memory(out, given)
                out[...] = np.nan
    np.testing.assert_array_equal(given, before)


def test_what_is_no_array_is_refused_as_ever() -> None:
    class Sub(np.ndarray):
        pass

    jitted = compiled(lambda x: x * 2)
    jitted(A)
    for bad in (A.view(Sub), np.ma.array(A), A.astype(str).astype(object), A.astype(str), A.astype("M8[s]")):
        with pytest.raises(TypeError, match=r"func\.jit: x cannot be traced"):
            jitted(bad)
    same([jitted(A.astype(object))], [A * 2])


def test_python_numbers_and_arrays_without_axes() -> None:
    def f(s: Any, t: Any) -> Any:
        return s * 2, np.sin(t), s + t, s - t * 0.5

    jitted = compiled(f)
    values = [
        1.5,
        3,
        True,
        np.float64(2.5),
        np.float32(2.5),
        np.array(1.25),
        np.int8(3),
        np.array(3),
        1 + 2j,
        np.array(2, ">f8"),
    ]
    for _ in range(2):
        for s in values:
            for t in values[::3]:
                same(jitted(s, t), compiled(f, "numpy")(s, t))
                same(func.tree.map(np.asarray, jitted(s, t)), func.tree.map(np.asarray, f(s, t)))
    for big in (2**62, -(2**63)):
        assert compiled(lambda n: n // 3)(big) == big // 3
