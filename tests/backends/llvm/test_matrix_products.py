"""Products that are written out: every shape of blocks and every order in memory, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm.codegen.matrix_products import MOST_ROWS, MOST_VECTORS, tile_of

pytest.importorskip("llvmlite")

SPECS = [f"{x},{y}->{out}" for x, y, out in itertools.product(("ab", "ba"), ("bc", "cb"), ("ac", "ca"))]
SIZES = ((1, 5, 9), (3, 1, 2), (10, 10, 33), (19, 7, 10), (40, 3, 5), (6, 40, 21), (17, 0, 4))


@pytest.mark.parametrize("char", "fdil")
def test_products_are_those_of_numpy(char: str) -> None:
    rng = np.random.default_rng(0)
    for a, b, c in SIZES:
        sizes = {"a": a, "b": b, "c": c}
        for batch in ("", "z"):
            specs = [
                "->".join(
                    batch + side if i else ",".join(batch + term for term in side.split(","))
                    for i, side in enumerate(spec.split("->"))
                )
                for spec in SPECS
            ]
            operands = [
                tuple(
                    [
                        rng.integers(-9, 9, [{"z": 3, **sizes}[axis] for axis in term]).astype(char)
                        for term in spec.split("->")[0].split(",")
                    ]
                )
                for spec in specs
            ]

            def products(operands: Any, specs: list[str] = specs) -> list[Any]:
                return [np.einsum(spec, *pair) for spec, pair in zip(specs, operands, strict=True)]

            for got, want in zip(func.jit(products)(operands), products(operands), strict=True):
                np.testing.assert_array_equal(got, want)  # sums of integers are exact in any order


@pytest.mark.parametrize("registers", [16, 32])
def test_blocks_fit_the_registers(registers: int) -> None:
    for rows, vectors in itertools.product((1, 2, 5, 10, 11, 64), (1, 2, 3, 8, 9, 40)):
        r, v = tile_of(rows, vectors, registers)
        assert 1 <= r <= min(rows, MOST_ROWS) and 1 <= v <= min(vectors, MOST_VECTORS)
        assert r * v + v + 1 <= registers
