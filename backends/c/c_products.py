"""Products of matrices in C: small ones as loops, others by a function that computes blocks of rows and columns.

Where the code is compiled with FUNC_CBLAS, large products go to CBLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

from func.backends.c.declarations import stored_type
from func.backends.c.loop_nests import LONG, NestWriter, index_text
from func.backends.loops.kernels import Dot, StridedRef

SMALL = 256
"""Multiplications of the largest product that is written out as loops."""

PRODUCT = """\
/* out = x y, of m rows, k summed elements and n columns; elements of a matrix are strides apart. Some columns of y and
   some rows of x are copied to where they lie next to each other. */
static void func_product_TYPE(ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, TYPE *restrict out, ptrdiff_t out0, ptrdiff_t out1,
                              const TYPE *restrict x, ptrdiff_t x0, ptrdiff_t x1, const TYPE *restrict y, ptrdiff_t y0,
                              ptrdiff_t y1) {
BLAS    enum { ROWS = 4, COLUMNS = 8, DEPTH = 128 };
    TYPE left[DEPTH * ROWS], right[DEPTH * COLUMNS];
    for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
        const ptrdiff_t columns = n - j < COLUMNS ? n - j : COLUMNS;
        for (ptrdiff_t first = 0; first == 0 || first < k; first += DEPTH) {
            const ptrdiff_t depth = k - first < DEPTH ? k - first : DEPTH;
            for (ptrdiff_t l = 0; l < depth; ++l) {
                for (ptrdiff_t c = 0; c < columns; ++c) {
                    right[l * COLUMNS + c] = y[(first + l) * y0 + (j + c) * y1];
                }
                for (ptrdiff_t c = columns; c < COLUMNS; ++c) {
                    right[l * COLUMNS + c] = 0;
                }
            }
            for (ptrdiff_t i = 0; i < m; i += ROWS) {
                const ptrdiff_t rows = m - i < ROWS ? m - i : ROWS;
                TYPE sums0[COLUMNS] = {0}, sums1[COLUMNS] = {0}, sums2[COLUMNS] = {0}, sums3[COLUMNS] = {0};
                const TYPE *const row0 = x + i * x0 + first * x1; /* rows behind the last are the first one again */
                const TYPE *const row1 = row0 + (rows > 1 ? x0 : 0), *const row2 = row0 + (rows > 2 ? 2 * x0 : 0);
                const TYPE *const row3 = row0 + (rows > 3 ? 3 * x0 : 0);
                for (ptrdiff_t l = 0; l < depth; ++l) {
                    left[l * ROWS] = row0[l * x1];
                    left[l * ROWS + 1] = row1[l * x1];
                    left[l * ROWS + 2] = row2[l * x1];
                    left[l * ROWS + 3] = row3[l * x1];
                }
                for (ptrdiff_t l = 0; l < depth; ++l) {
                    const TYPE *const f = left + l * ROWS, *const p = right + l * COLUMNS;
                    for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
                        PLUS0;
                    }
                    for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
                        PLUS1;
                    }
                    for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
                        PLUS2;
                    }
                    for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
                        PLUS3;
                    }
                }
                for (ptrdiff_t r = 0; r < rows; ++r) {
                    const TYPE *const sums = r == 0 ? sums0 : r == 1 ? sums1 : r == 2 ? sums2 : sums3;
                    for (ptrdiff_t c = 0; c < columns; ++c) {
                        TYPE *const place = out + (i + r) * out0 + (j + c) * out1;
                        *place = first == 0 ? sums[c] : TOTAL;
                    }
                }
            }
        }
    }
}"""
BLAS = """\
#ifdef FUNC_CBLAS
    if (m * k * n > 110592 && out1 == 1 && (x0 == 1 || x1 == 1) && (y0 == 1 || y1 == 1)) {
        cblas_LETTERgemm(CblasRowMajor, x1 == 1 ? CblasNoTrans : CblasTrans, y1 == 1 ? CblasNoTrans : CblasTrans,
                    (int)m, (int)n, (int)k, 1, x, (int)(x1 == 1 ? x0 : x1), y, (int)(y1 == 1 ? y0 : y1), 0, out,
                    (int)out0);
        return;
    }
#endif
"""
SUMS = """\
/* out = x y, where the summed elements of both matrices are next to each other. */
static void func_sums_TYPE(ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, TYPE *restrict out, ptrdiff_t out0, ptrdiff_t out1,
                           const TYPE *restrict x, ptrdiff_t x0, const TYPE *restrict y, ptrdiff_t y1) {
    enum { LANES = 8 };
    for (ptrdiff_t i = 0; i < m; ++i) {
        for (ptrdiff_t j = 0; j < n; ++j) {
            const TYPE *left = x + i * x0, *right = y + j * y1;
            TYPE sums[LANES] = {0};
            ptrdiff_t l = 0;
            for (; l + LANES <= k; l += LANES) {
                for (ptrdiff_t lane = 0; lane < LANES; ++lane) {
                    sums[lane] += left[l + lane] * right[l + lane];
                }
            }
            for (ptrdiff_t lane = 0; l < k; ++l, ++lane) {
                sums[lane] += left[l] * right[l];
            }
            for (ptrdiff_t half = LANES / 2; half > 0; half /= 2) {
                for (ptrdiff_t lane = 0; lane < half; ++lane) {
                    sums[lane] += sums[lane + half];
                }
            }
            out[i * out0 + j * out1] = sums[0];
        }
    }
}"""


def write_product(nests: NestWriter, dot: Dot) -> None:
    """A product for every index of the batch axes."""
    _batched(nests, dot, [])


def _batched(nests: NestWriter, dot: Dot, at: list[str]) -> None:
    if len(at) < len(dot.batch):
        with nests.builder.counted(dot.batch[len(at)]) as i:
            _batched(nests, dot, [*at, i])
        return
    m, k, n = dot.sizes
    out, x, y = [_Matrix(nests, ref, at) for ref in (dot.out, dot.x, dot.y)]
    if m != 1 and (n == 1 or (x.first == 1 and out.first == 1 and not (y.second == 1 and out.second == 1))):
        out, x, y, m, n = out.turned(), y.turned(), x.turned(), n, m
    if m * k * n <= SMALL:
        _written_out(nests, (m, k, n), out, x, y)
        return
    texts, builder = nests.scalars.definitions.texts, nests.builder
    word = stored_type(dot.out.buffer.dtype)
    if k >= LONG and x.second == 1 and y.first == 1 and not (n > 1 and y.second == 1):
        texts.setdefault(f"func_sums_{word}", SUMS.replace("TYPE", word))
        builder.effect(
            f"func_sums_{word}({m}, {k}, {n}, {out.start}, {out.first}, {out.second}, "
            f"{x.start}, {x.first}, {y.start}, {y.second});"
        )
        return
    texts.setdefault(f"func_product_{word}", product_text(word))
    builder.effect(
        f"func_product_{word}({m}, {k}, {n}, {out.start}, {out.first}, {out.second}, "
        f"{x.start}, {x.first}, {x.second}, {y.start}, {y.first}, {y.second});"
    )


def product_text(word: str) -> str:
    """The function of products of a type."""
    letter = {"double": "d", "float": "s"}.get(word)
    text = PRODUCT.replace("BLAS", "" if letter is None else BLAS.replace("LETTER", letter))
    wraps = word.startswith("int")  # so does overflow
    for r in range(4):
        plus = f"sums{r}[c] += f[{r}] * p[c]"
        if wraps:
            plus = f"sums{r}[c] = ({word})((u{word})sums{r}[c] + (u{word})f[{r}] * (u{word})p[c])"
        text = text.replace(f"PLUS{r}", plus)
    total = f"({word})((u{word})*place + (u{word})sums[c])" if wraps else "*place + sums[c]"
    return text.replace("TOTAL", total).replace("TYPE", word)


def _written_out(nests: NestWriter, sizes: tuple[int, int, int], out: _Matrix, x: _Matrix, y: _Matrix) -> None:
    m, k, n = sizes
    b, word = nests.builder, stored_type(out.ref.buffer.dtype)
    with b.counted(m) as i, b.counted(n) as j:
        total = b.fresh("s")
        b.line(f"{word} {total} = 0;")
        with b.counted(k) as place:
            left, right = x.element(i, place), y.element(place, j)
            if word.startswith("int"):
                b.line(f"{total} = ({word})((u{word}){total} + (u{word}){left} * (u{word}){right});")
            else:
                b.line(f"{total} += {left} * {right};")
        b.effect(f"{out.element(i, j)} = {total};")


class _Matrix:
    """A matrix in memory at one index of the batch."""

    def __init__(self, nests: NestWriter, ref: StridedRef, at: Sequence[str]) -> None:
        self.nests, self.ref = nests, ref
        self.first, self.second = ref.strides[-2:]
        self.at = list(zip(at, ref.strides, strict=False))

    def turned(self) -> _Matrix:
        """The transpose."""
        other = _Matrix(self.nests, self.ref, [])
        other.at, other.first, other.second = self.at, self.second, self.first
        return other

    @property
    def start(self) -> str:
        """The address of the first element."""
        name, place = self.nests.memory.name(self.ref.buffer), index_text(self.ref.offset, self.at)
        if id(self.ref.buffer) in self.nests.memory.by_value:
            return f"&{name}"
        return name if place == "0" else f"{name} + {place}"

    def element(self, i: str, j: str) -> str:
        """One element."""
        name = self.nests.memory.name(self.ref.buffer)
        if id(self.ref.buffer) in self.nests.memory.by_value:
            return name
        return f"{name}[{index_text(self.ref.offset, [*self.at, (i, self.first), (j, self.second)])}]"
