"""A product of matrices by panels of columns, and blocks of rows in registers. Its loops:

    for terms in steps of `depth`
        for rows in steps that fit the memory for rows
            copy the rows, where the terms of a row do not lie in memory
            for columns in panels of some vectors, or of one vector at the end
                copy the panel
                for rows in blocks of six
                    the sums of the block, in registers, over all terms of the step

Each result is the sum of the steps in their order, and each step a sum in the order of its terms. So the results do not
depend on how rows and columns are cut into chunks.

Source: K. Goto, R. van de Geijn (2008), Anatomy of high-performance matrix multiplication, ACM TOMS 34, article 12,
sections 4 and 5: the parts of operands in each cache.
"""

from __future__ import annotations

# fmt: off
from func.backends.routines.language import (
    Fixed, Longs, Numbers, empty, fma, inlined, lanes, turned_square, unrolled, zeros,
)
# fmt: on

ROWS = 6
"""Rows of a block: 24 sums, four vectors and a factor fit 32 registers, 12 sums, two vectors and a factor 16."""
FEW_ROWS = 2
"""Rows of a block at the end."""
MOST_ROWS = 85 * ROWS
"""Rows to read in place before the next panel: with all terms of a step they stay in the second-level cache."""
FOUR = 4


def thin_product(
    lane: Fixed, side: Fixed, panel: Fixed, depth: Fixed, copied_size: Fixed, m: int, n: int, k: int, x: Numbers,
    x_row: int, x_column: int, y: Numbers, y_row: int, y_column: int, out: Numbers, out_row: int,
) -> None:  # fmt: skip
    """out = x y for m × k and k × n matrices with strides in elements, of which out has its rows in memory. No length
    is zero."""
    columns: Numbers = empty(depth * panel)
    copied: Numbers = empty(copied_size)
    corner: Numbers = empty(ROWS * panel)
    is_copied = x_column != 1
    for term in range(0, k, depth):
        terms = depth if depth < k - term else k - term
        most = copied_size // ROWS // terms * ROWS if is_copied else MOST_ROWS
        for top in range(0, m, most):
            rows = most if most < m - top else m - top
            source = x[top * x_row + term * x_column :]
            if is_copied:
                _copy_rows(rows, terms, source, x_row, x_column, copied)
            column = 0
            while column < n:
                width = panel if n - column > panel // 2 else lane
                count = width if width < n - column else n - column
                start = y[term * y_row + column * y_column :]
                _copy_panel(lane, side, terms, count, width, start, y_row, y_column, columns)
                for i in range(0, rows, ROWS):
                    left = ROWS if rows - i > ROWS else rows - i
                    target = out[(top + i) * out_row + column :]
                    own = copied[i * terms :] if is_copied else source[i * x_row :]
                    own_row, own_column = (1 if is_copied else x_row), (left if is_copied else 1)
                    is_whole = count == width
                    if not is_whole and term != 0:
                        _copy_corner(left, count, target, out_row, corner, width)
                    sums, row = (target if is_whole else corner), (out_row if is_whole else width)
                    _sums(lane, panel, width, terms, left, own, own_row, own_column, columns, sums, row, term == 0)
                    if not is_whole:
                        _copy_corner(left, count, corner, width, target, out_row)
                column += width


@inlined
def _sums(
    lane: Fixed, panel: Fixed, width: int, terms: int, count: int, x: Numbers, x_row: int, x_column: int,
    columns: Numbers, out: Numbers, out_row: int, is_first: bool,
) -> None:  # fmt: skip
    """Choose the function of a block."""
    if width == panel:
        if count > FEW_ROWS:
            _block(ROWS, panel, terms, count, x, x_row, x_column, columns, out, out_row, is_first)
        else:
            _block(FEW_ROWS, panel, terms, count, x, x_row, x_column, columns, out, out_row, is_first)
    elif count > FEW_ROWS:
        _block(ROWS, lane, terms, count, x, x_row, x_column, columns, out, out_row, is_first)
    else:
        _block(FEW_ROWS, lane, terms, count, x, x_row, x_column, columns, out, out_row, is_first)


def _block(
    rows: Fixed, width: Fixed, terms: int, count: int, x: Numbers, x_row: int, x_column: int,
    columns: Numbers, out: Numbers, out_row: int, is_first: bool,
) -> None:  # fmt: skip
    """The sums of up to `ROWS` rows and of a panel of columns, added to out unless `is_first`. For a smaller `count`,
    the last row repeats.
    """
    sums: Numbers = zeros(rows * width)
    starts: Longs = empty(rows)
    places: Longs = empty(rows)
    for row in unrolled(rows):
        own = row if row < count - 1 else count - 1
        starts[row], places[row] = own * x_row, own * out_row
    step = 0
    for term in range(terms):
        for row in unrolled(rows):
            factor = x[starts[row] + step]
            for c in lanes(width):
                sums[row * width + c] = fma(factor, columns[term * width + c], sums[row * width + c])
        step += x_column
    if is_first:
        for row in unrolled(rows):
            for c in lanes(width):
                out[places[row] + c] = sums[row * width + c]
        return
    for row in unrolled(rows):  # read all before the first write, since the last row may appear twice
        for c in lanes(width):
            sums[row * width + c] += out[places[row] + c]
    for row in unrolled(rows):
        for c in lanes(width):
            out[places[row] + c] = sums[row * width + c]


def _copy_rows(rows: int, terms: int, x: Numbers, x_row: int, x_column: int, target: Numbers) -> None:
    """Copy rows by blocks, term by term."""
    for i in range(0, rows, ROWS):
        count = ROWS if rows - i > ROWS else rows - i
        source, place = x[i * x_row :], target[i * terms :]
        if x_row == 1 and count == ROWS:
            for q in range(terms):
                here, there = source[q * x_column :], place[q * ROWS :]
                for c in lanes(FOUR):  # two overlapping vectors
                    first, last = here[c], here[ROWS - FOUR + c]
                    there[c] = first
                    there[ROWS - FOUR + c] = last
        else:
            for q in range(terms):
                for row in range(count):
                    place[q * count + row] = source[q * x_column + row * x_row]


def _copy_panel(
    lane: Fixed, side: Fixed, terms: int, columns: int, width: int, y: Numbers, y_row: int, y_column: int,
    target: Numbers,
) -> None:  # fmt: skip
    """Copy a panel, and fill it up with zeros to its width."""
    whole = 0
    if columns == width and y_column == 1:
        for q in range(terms):
            for j in range(0, width, lane):
                for c in lanes(lane):
                    target[q * width + j + c] = y[q * y_row + j + c]
        return
    if columns == width and y_row == 1:
        whole = terms - terms % side
        for j in range(0, width, side):
            for q in range(0, whole, side):
                turned_square(side, y[j * y_column + q :], y_column, target[q * width + j :], width)
    for q in range(whole, terms):
        for j in range(columns):
            target[q * width + j] = y[q * y_row + j * y_column]
        for j in range(columns, width):
            target[q * width + j] = 0


def _copy_corner(rows: int, columns: int, source: Numbers, source_row: int, target: Numbers, target_row: int) -> None:
    """Copy the first columns of rows."""
    for i in range(rows):
        here, there = source[i * source_row :], target[i * target_row :]
        for j in range(0, columns - columns % FOUR, FOUR):
            for c in lanes(FOUR):
                there[j + c] = here[j + c]
        for j in range(columns - columns % FOUR, columns):
            there[j] = here[j]
