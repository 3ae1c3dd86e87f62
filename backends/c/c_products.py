"""Products of matrices in C: small ones as loops, others by a function that computes blocks of rows and columns.

The sums of a block stay in registers, and elements of x are broadcast over vectors.
Where the code is compiled with FUNC_CBLAS, large products go to CBLAS.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from func.backends.c.declarations import stored_type
from func.backends.c.loop_nests import LONG, NestWriter, index_text
from func.backends.loops.kernels import Dot, StridedRef

SMALL = 256
"""Multiplications of the largest product written as loops."""

ROWS = 6
"""Rows of a block: with the columns below, its sums fit the registers of processors with 16 or 32 vectors."""

PRODUCT = """\
/* out = x y, of m rows, k summed elements and n columns; elements of a matrix are strides apart. Some columns of y are
   copied to where they lie next to each other. */
static void func_product_TYPE(ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, TYPE *restrict out, ptrdiff_t out0, ptrdiff_t out1,
                              const TYPE *restrict x, ptrdiff_t x0, ptrdiff_t x1, const TYPE *restrict y, ptrdiff_t y0,
                              ptrdiff_t y1) {
BLAS#if defined(__AVX__) || defined(__aarch64__) || defined(FUNC_TARGETS)
    enum { COLUMNS = 64 / sizeof(TYPE), ROWS = 6, DEPTH = 256 };
#else
    enum { COLUMNS = 32 / sizeof(TYPE), ROWS = 6, DEPTH = 256 };
#endif
    TYPE right[DEPTH * COLUMNS];
    for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
        const ptrdiff_t columns = n - j < COLUMNS ? n - j : COLUMNS;
        for (ptrdiff_t first = 0; first == 0 || first < k; first += DEPTH) {
            const ptrdiff_t depth = k - first < DEPTH ? k - first : DEPTH;
            for (ptrdiff_t l = 0; l < depth; ++l) {
                const TYPE *const place = y + (first + l) * y0 + j * y1;
                const int whole = columns == COLUMNS && y1 == 1; /* a copy of vectors */
                for (ptrdiff_t c = 0; whole && c < COLUMNS; ++c) {
                    right[l * COLUMNS + c] = place[c];
                }
                for (ptrdiff_t c = 0; !whole && c < columns; ++c) {
                    right[l * COLUMNS + c] = place[c * y1];
                }
                for (ptrdiff_t c = columns; c < COLUMNS; ++c) {
                    right[l * COLUMNS + c] = 0;
                }
            }
            for (ptrdiff_t i = 0; i < m; i += ROWS) {
                const ptrdiff_t rows = m - i < ROWS ? m - i : ROWS;
                TYPE sums[ROWS][COLUMNS];
                const TYPE *const row0 = x + i * x0 + first * x1; /* rows behind the last are the first one again */
ROW
                TYPE SUMS;
                for (ptrdiff_t l = 0; l < depth; ++l) {
                    const TYPE *const p = right + l * COLUMNS;
                    for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
LOOP
                    }
                }
                for (ptrdiff_t c = 0; c < COLUMNS; ++c) {
KEEP
                }
                for (ptrdiff_t r = 0; r < rows; ++r) {
                    TYPE *const place = out + (i + r) * out0 + j * out1;
                    for (ptrdiff_t c = 0; columns == COLUMNS && out1 == 1 && c < COLUMNS; ++c) {
                        place[c] = FIRSTsums[r][c] : TOTAL(place[c], sums[r][c]);
                    }
                    for (ptrdiff_t c = 0; !(columns == COLUMNS && out1 == 1) && c < columns; ++c) {
                        place[c * out1] = FIRSTsums[r][c] : TOTAL(place[c * out1], sums[r][c]);
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


ROW = """\
/* out = x y for one row x of k elements, where columns of y are next to each other, 8 or more. */
static void func_row_TYPE(ptrdiff_t k, ptrdiff_t n, TYPE *restrict out, const TYPE *restrict x, ptrdiff_t x1,
                          const TYPE *restrict y, ptrdiff_t y0) {
    enum { WIDTH = 8 };
    const ptrdiff_t fours = k - k % 4;
    for (ptrdiff_t j = 0; j < n; j += WIDTH) {
        const ptrdiff_t first = j + WIDTH <= n ? j : n - WIDTH; /* the last ones begin before their first column */
        TYPE s0[WIDTH] = {0}, s1[WIDTH] = {0}, s2[WIDTH] = {0}, s3[WIDTH] = {0};
        for (ptrdiff_t l = 0; l < fours; l += 4) {
            const TYPE *const row = y + l * y0 + first;
            for (ptrdiff_t c = 0; c < WIDTH; ++c) {
                s0[c] = func_fma_TYPE(x[l * x1], row[c], s0[c]);
                s1[c] = func_fma_TYPE(x[(l + 1) * x1], row[y0 + c], s1[c]);
                s2[c] = func_fma_TYPE(x[(l + 2) * x1], row[2 * y0 + c], s2[c]);
                s3[c] = func_fma_TYPE(x[(l + 3) * x1], row[3 * y0 + c], s3[c]);
            }
        }
        for (ptrdiff_t l = fours; l < k; ++l) {
            for (ptrdiff_t c = 0; c < WIDTH; ++c) {
                s0[c] = func_fma_TYPE(x[l * x1], y[l * y0 + first + c], s0[c]);
            }
        }
        for (ptrdiff_t c = 0; c < WIDTH; ++c) {
            out[first + c] = (s0[c] + s1[c]) + (s2[c] + s3[c]);
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
    if min(m, n) > 1 and _padded(n, m) < 0.8 * _padded(m, n):
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
    if word in ("double", "float"):
        nests.scalars.definitions.fma(word)
        if m == 1 and n >= 8 and y.second == 1 and out.second == 1:
            texts.setdefault(f"func_row_{word}", ROW.replace("TYPE", word))
            builder.effect(f"func_row_{word}({k}, {n}, {out.start}, {x.start}, {x.second}, {y.start}, {y.first});")
            return
    texts.setdefault(f"func_product_{word}", product_text(word))
    builder.effect(
        f"func_product_{word}({m}, {k}, {n}, {out.start}, {out.first}, {out.second}, "
        f"{x.start}, {x.first}, {x.second}, {y.start}, {y.first}, {y.second});"
    )


def _padded(m: int, n: int) -> int:
    """The elements of the blocks that cover a result."""
    return -(-m // ROWS) * ROWS * -(-n // 8) * 8


def product_text(word: str, name: str = "product") -> str:
    """The function of products of a type; "gemm_minus_rows" subtracts them from the result."""
    letter = {"double": "d", "float": "s"}.get(word)
    blas = BLAS if name == "product" else BLAS.replace(" 0, out", " 1, out").replace("(int)k, 1, x", "(int)k, -1, x")
    text = PRODUCT.replace("BLAS", "" if letter is None else blas.replace("LETTER", letter))
    wraps = word.startswith("int")  # so does overflow
    rows, loops, copies, sums = [], [], [], []
    for r in range(ROWS):
        x, total = f"row{r}[l * x1]", f"sums{r}[c]"
        plus = f"{total} + {x} * p[c]"
        if letter is not None:
            plus = f"func_fma_{word}({x}, p[c], {total})"
        elif wraps:
            plus = f"({word})((u{word}){total} + (u{word}){x} * (u{word})p[c])"
        loops.append(f"{total} = {plus};")
        copies.append(f"sums[{r}][c] = {total};")
        sums.append(f"sums{r}[COLUMNS] = {{0}}")
        if r:
            rows.append(f"const TYPE *const row{r} = row0 + (rows > {r} ? {r} * x0 : 0);")
    text = text.replace("ROW\n", _indented(rows, 16) + "\n").replace("TYPE SUMS", f"TYPE {', '.join(sums)}")
    text = text.replace("LOOP", _indented(loops, 24)).replace("KEEP", _indented(copies, 20))
    for place in ("place[c]", "place[c * out1]"):
        total = f"{place} + sums[r][c]"
        if wraps:
            total = f"({word})((u{word}){place} + (u{word})sums[r][c])"
        if name != "product":
            total = f"{place} - sums[r][c]"
        usual = f"FIRSTsums[r][c] : TOTAL({place}, sums[r][c])"
        text = text.replace(usual, total if name != "product" else f"first == 0 ? sums[r][c] : {total}")
    if name != "product":
        text = text.replace("func_product_", f"func_{name}_").replace(
            "/* out = x y, of", "/* out - x y in place of out, of"
        )
    return text.replace("TYPE", word)


def _indented(parts: Sequence[str], columns: int) -> str:
    return textwrap.indent("\n".join(parts), " " * columns)


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
