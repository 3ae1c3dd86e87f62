"""Pictures of patterns: as text, and as SVG files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse

from func.errors import ArgumentError
from func.interpreters.host.display import Picture, write_svg
from func.interpreters.host.public_functions import without_engine_frames
from func.sparse_derivatives.derivatives import sparsity

SHADES = "·░▒▓■"


@without_engine_frames
def spy(matrix: Any, path: str | os.PathLike[str] | None = None, *, width: int = 64) -> Any:
    """A picture of a matrix's entries: as text, in notebooks as SVG, and as a file with a path.

    For a function, `spy(f)(x)` is the picture of its Jacobian.

    Shows a matrix of more than `width` rows or columns by cells: the darker, the more entries a cell has. Returns the
    text, which has the SVG in its attribute `svg`.

    Args:
        matrix: A sparse or dense matrix, or a function.
        path: The file to write, which ends in .svg.
        width: The greatest number of cells along a side.

    Raises:
        ArgumentError: `matrix` is not a matrix, or the path does not end in .svg.

    Example:
        >>> import numpy as np, func
        >>> print(func.spy(np.eye(3)))
        3 × 3, 3 entries
        ■··
        ·■·
        ··■
    """
    if callable(matrix):
        return lambda *args, **kwargs: spy(sparsity(matrix)(*args, **kwargs), path, width=width)
    sparse = scipy.sparse.coo_array(matrix)
    if len(sparse.shape) != 2:
        raise ArgumentError(f"func.spy: expected a matrix, got an array of shape {sparse.shape}")
    if type(width) is not int or width < 1:
        raise ArgumentError(f"func.spy: width must be a positive int, not {width!r}")
    rows, columns = sparse.shape
    step = max(-(-max(rows, columns) // width), 1)
    cells = np.zeros((-(-rows // step), -(-columns // step)))
    np.add.at(cells, (sparse.coords[0] // step, sparse.coords[1] // step), 1)
    svg = _svg(cells / step**2, sparse.shape)
    if path is not None:
        write_svg(path, svg, "func.spy")
    full = len(SHADES) - 1
    levels = np.ceil(np.sqrt(cells / step**2) * full).astype(int).clip(0, full)
    lines = ["".join([SHADES[level] for level in row]) for row in levels]
    scale = f", each cell {step} × {step}" if step > 1 else ""
    return Picture("\n".join([f"{rows} × {columns}, {sparse.nnz} entries{scale}", *lines]), svg)


def _svg(cells: Any, shape: tuple[int, ...]) -> str:
    """The cells as squares of an SVG picture."""
    height, width = cells.shape
    size = 8 if max(height, width) <= 64 else 3
    squares = [
        f'<rect x="{column * size}" y="{row * size}" width="{size}" height="{size}" '
        f'fill-opacity="{0.25 + 0.75 * min(cells[row, column] ** 0.5, 1):.2f}"/>'
        for row, column in np.argwhere(cells > 0)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width * size + 2} {height * size + 2}" '
        f'width="{width * size + 2}" height="{height * size + 2}">\n'
        f"<title>{shape[0]} × {shape[1]}</title>\n"
        f'<rect x="-0.5" y="-0.5" width="{width * size + 1}" height="{height * size + 1}" fill="white" '
        'stroke="#888"/>\n'
        f'<g fill="#1f4e9c">\n' + "\n".join(squares) + "\n</g>\n</svg>\n"
    )
