"""Products of matrices by native code itself: with few rows or terms, and small ones in single precision.

BLAS copies both operands into the order of its inner loop, and expects to read the copies hundreds of times. With few
rows in the result, copying the second operand takes as long as multiplying. With few terms, BLAS reads and writes the
results too often. The code of `backends/routines/thin_product.py` copies less. It copies the second operand by panels,
which stay in the first-level cache, and the first operand only if it is not row-major. Compiled programs from the cache
need the address alone, so nothing here imports printers.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.llvm.machine import MachineCode, compile_ir
from func.backends.llvm.math.own_functions import Features
from func.backends.loops.kernels import DType
from func.backends.loops.product_blocks import SECOND_LEVEL

FEW_ROWS = {4: 128, 8: 48}
"""Rows, by the bytes of an element, up to which copies cost BLAS a quarter of its time or more. This is the price of an
element of the second operand over the rows (`CopyPrices` in `product_blocks.py`). Measured on an Intel Xeon with
AVX-512, one thread, 32 × 784 × 512 in single precision: OpenBLAS 0.3.30 has 57 to 92 Gflop/s, this code 119 to 130.
Both have 140 for 512 × 512 × 512."""
FEW_TERMS = 64
"""Terms up to which BLAS takes longer than this code, if the results fit the second-level cache: 784 × 32 × 512 with
94 Gflop/s against 142. Larger results are better written row by row, as BLAS does."""
SINGLE, MANY_TERMS, WIDE, EMPTY = 4, 512, 128, 1.125
"""Bytes of an element, terms and columns from which on this code is as fast or faster, even for many rows and columns.
BLAS copies for a tenth of its time there, and again for every chunk. The second operand must be row-major, and panels
hardly wider than the columns in them.
"""
LEAST_TERMS, LEAST_COLUMNS = 32, 64
"""Fewer terms end before a block of sums has paid off; fewer columns leave lanes of vectors empty."""
SMALL = 1 << 20
"""Multiplications up to which OpenBLAS has code that copies nothing."""
VECTORS = {512: 4, 256: 2}
"""Vectors of columns of a panel, by the bits of a vector."""
DEPTH = {512: 128, 256: 256}
"""The terms of a step: that number of panel rows takes half of a first-level cache or less."""
MOST_TURNED = 8
"""Rows and columns of the squares that are transposed in registers: larger ones are longer code."""
ROW_BYTES = 120 * 1024
"""Memory for copied rows: it stays in the second-level cache."""
LEAST_BITS = 256
"""The vector bits that this code needs: registers of narrower vectors do not hold the sums."""

PREFIX = "func_thin_product_"
NAME = re.compile(PREFIX + r"(?P<bits>256|512)_float(?P<width>32|64)")

_compiled: dict[str, MachineCode] = {}
"""The compiled functions; they live as long as the process."""


def is_thin(features: Features, dtype: DType, sizes: tuple[int, int, int], in_rows: bool) -> bool:
    """Whether BLAS takes too long for a product of `sizes` rows, terms and columns, on a processor for this code."""
    m, k, n = sizes
    size = dtype.itemsize
    if not features.fma or features.bits < LEAST_BITS or size not in FEW_ROWS:
        return False
    if m * k * n <= SMALL or k < LEAST_TERMS or n < LEAST_COLUMNS:
        return False
    if m <= FEW_ROWS[size]:
        return True
    is_long = size == SINGLE and in_rows and k >= MANY_TERMS and n >= WIDE
    fills_panels = padded(features.bits, size, n) <= EMPTY * n
    return m * n * size <= 2 * SECOND_LEVEL and (k <= FEW_TERMS or (is_long and fills_panels))


def padded(bits: int, size: int, n: int) -> int:
    """The computed columns for n: whole panels, then vectors, or a panel instead of many vectors.

    >>> padded(512, 4, 130), padded(512, 4, 97), padded(512, 8, 64)
    (144, 128, 64)
    """
    lanes = bits // (8 * size)
    panel = lanes * VECTORS[bits]
    rest = n % panel
    return n - rest + (panel if rest > panel // 2 else -(-rest // lanes) * lanes)


def name_of(features: Features, dtype: DType) -> str:
    """The function of products of a dtype."""
    return f"{PREFIX}{features.bits}_{dtype.name}"


def address_of(name: str) -> int | None:
    """The address of the function of this name, compiled now if necessary; None for other names.

    >>> address_of("func_thin_product_512_int64"), address_of("cos")
    (None, None)
    """
    module = module_of(name)
    if module is None:
        return None
    code = _compiled.get(name)
    if code is None:
        code = _compiled[name] = compile_ir(module[1], key=name)
    return code.address(name)


def module_of(name: str) -> tuple[str, Callable[[], Any]] | None:
    """The key of the code of this function, and the printer of its module; None for other names."""
    match = NAME.fullmatch(name)
    return None if match is None else (name, lambda: _module(name, int(match["bits"]), int(match["width"])))


def _module(name: str, bits: int, width: int) -> Any:
    """The module of void name(m, n, k, x, rows and columns of x, y, rows and columns of y, out, rows of out)."""
    ir, routine_code, routines = [  # only for code missing on disk
        importlib.import_module(f"func.backends.{name}")
        for name in ("ir", "llvm.routine_code", "routines.thin_product")
    ]
    module, lane = ir.Module(name), bits // width
    module.vector_bytes = bits // 8
    fixed = {
        "lane": lane,
        "side": min(lane, MOST_TURNED),
        "panel": lane * VECTORS[bits],
        "depth": DEPTH[bits],
        "copied_size": 8 * ROW_BYTES // width,
    }
    routine_code.function_of(module, routines.thin_product, np.dtype(f"f{width // 8}"), name, fixed)
    return module
