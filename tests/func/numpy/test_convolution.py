"""conv_general against a loop over output places; einsum over paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import func
from tests.support import numpy_properties as check

RNG = np.random.default_rng(8)


def by_loop(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """The definition, place by place, in any number of dimensions."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    spans = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilation, strict=True)]
    sizes = [(n - span) // s + 1 for n, span, s in zip(x.shape[2:], spans, stride, strict=True)]
    out = np.zeros((x.shape[0], kernel.shape[0], *sizes))
    channels = kernel.shape[1]
    for place in np.ndindex(kernel.shape[0], *sizes):
        first = place[0] // (kernel.shape[0] // groups) * channels
        window = tuple(
            [slice(i * s, i * s + span, d) for i, s, span, d in zip(place[1:], stride, spans, dilation, strict=True)]
        )
        part = x[(slice(None), slice(first, first + channels), *window)] * kernel[place[0]]
        out[(slice(None), *place)] = part.sum(axis=tuple(range(1, rank + 2)))
    return out


SETTINGS = [
    (rank, s, p, d, g)
    for rank, s, p, d, g in itertools.product((1, 2), (1, 2), (0, 2), (1, 2), (1, 2))
    if not (rank == 1 and g == 2 and s == 2)
]


@pytest.mark.parametrize(("rank", "stride", "padding", "dilation", "groups"), SETTINGS)
def test_conv_general(rank: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    x = RNG.normal(size=(2, 4, 7, 6)[: rank + 2])
    kernel = RNG.normal(size=(4, 4 // groups, 2, 3)[: rank + 2])

    def conv(x: Any, k: Any) -> Any:
        return func.numpy.conv_general(x, k, stride=stride, padding=padding, dilation=dilation, groups=groups)

    expected = by_loop(x, kernel, [stride] * rank, [(padding, padding)] * rank, [dilation] * rank, groups)
    np.testing.assert_allclose(conv(x, kernel), expected, atol=1e-12)
    for case in ((lambda x: conv(x, kernel), x), (lambda k: conv(x, k), kernel)):
        check.check_modes(case)
        check.check_second_order(case)
        check.check_mapped(case)


def test_conv_general_settings_for_each_axis() -> None:
    x, kernel = RNG.normal(size=(1, 2, 5, 6, 7)), RNG.normal(size=(3, 2, 2, 1, 3))
    out = func.numpy.conv_general(x, kernel, stride=(1, 2, 3), padding=((0, 1), (2, 0), (1, 1)), dilation=(2, 1, 1))
    np.testing.assert_allclose(out, by_loop(x, kernel, (1, 2, 3), ((0, 1), (2, 0), (1, 1)), (2, 1, 1), 1), atol=1e-12)
    same = func.numpy.conv_general(x, kernel, stride=2, padding="same")
    assert same.shape == (1, 3, 3, 3, 4)
    assert func.numpy.conv_general(x, kernel, padding="valid").shape == (1, 3, 4, 6, 5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stride": 0}, "stride"),
        ({"dilation": (1, 2, 3)}, "dilation"),
        ({"padding": "half"}, "padding"),
        ({"padding": -1}, "padding"),
        ({"groups": 3}, "groups=3"),
        ({"dilation": 9}, "does not fit"),
    ],
)
def test_conv_general_refusals(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        func.numpy.conv_general(np.ones((1, 4, 5, 5)), np.ones((2, 4, 2, 2)), **options)
    with pytest.raises(ValueError, match="spatial"):
        func.numpy.conv_general(np.ones((1, 4)), np.ones((2, 4, 2)))


CHAIN = "ab,bc,cd,de->ae"
FACTORS = [RNG.normal(size=shape) for shape in ((2, 9), (9, 3), (3, 8), (8, 2))]


@pytest.mark.parametrize(
    "optimize",
    [
        False,
        True,
        "greedy",
        "optimal",
        ["einsum_path", (0, 1, 2), (0, 1)],
        ("greedy", 1e6),
        ["einsum_path", (0, 1, 2, 3)],
    ],
)
def test_einsum_paths(optimize: Any) -> None:
    case = (lambda x: np.einsum(CHAIN, x, *FACTORS[1:], optimize=optimize), FACTORS[0])
    check.check_value(case, exact=False)
    check.check_modes(case)
    check.check_mapped(case)


def test_einsum_takes_the_cheap_order() -> None:
    n = 300
    vector, matrices = np.ones(n), [np.ones((n, n)) for _ in range(3)]
    program = func.make_program(lambda v, a, b, c: np.einsum("ab,bc,cd,d->a", a, b, c, v))(vector, *matrices)
    largest = max([int(np.prod(v.shape)) for e in program.equations for v in e.outputs])
    assert largest == n


@pytest.mark.parametrize("order", ["C", "F", "K"])
def test_einsum_takes_a_layout(order: Any) -> None:
    def elements(x: Any) -> Any:
        return np.einsum("ab,cb->ac", x, x, order=order).ravel(order="K")

    x = FACTORS[0]
    np.testing.assert_allclose(func.jvp(elements, (x,), (x,))[0], elements(x), rtol=1e-14)
