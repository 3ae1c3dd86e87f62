"""The style of the gallery's pictures: `python -m tools.gallery_style SCRIPT …` draws them and prints their faults.

Sphinx-Gallery calls `apply` before it runs an example. A picture is wrong where words leave it, lie on each other, or
are too small on a telephone. `--tiles` renews the four pictures of README and of the first page instead.
"""

from __future__ import annotations

import itertools
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 12,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
"""Matplotlib's; the scripts draw complete pictures without it."""
FIRST = (
    "tanh_derivatives",
    "logistic_regression",
    "curve_fit_covariance",
    "rosenbrock_optimisers",
    "per_sample",
    "black_scholes",
    "double_pendulum",
    "gaussian_process",
    "image_deblurring",
    "neural_ode_pendulum",
)
"""The examples that the gallery shows first; others follow by name."""
TILES = {
    "per_sample": "per_sample",
    "curve_fit": "curve_fit_covariance",
    "neural_ode": "neural_ode_pendulum",
    "black_scholes": "black_scholes",
    "tanh": "tanh_derivatives",
}
"""The pictures of the first page, and the examples that draw them."""
TILE = 640, 360
"""Width and height of such a picture in pixels."""
TELEPHONE, LEAST_LETTERS = 350, 5.5
"""Width in pixels of a picture on a telephone, and the size of the smallest letters there, in pixels."""
SLACK = 2.0
"""Pixels that boxes of words may share: they are a little larger than the letters."""


def apply(configuration: dict[str, Any], script: str) -> None:
    """Set the style, which Sphinx-Gallery has reset to its own, and let a RuntimeWarning be an error."""
    import matplotlib.pyplot as plt

    warnings.simplefilter("error", RuntimeWarning)

    plt.rcParams.update(STYLE)


def checked_images(block: Any, variables: dict[str, Any], configuration: dict[str, Any], **options: Any) -> str:
    """Sphinx-Gallery's pictures of a block; raises ValueError where one has a fault."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    found = [fault for number in plt.get_fignums() for fault in faults(plt.figure(number))]
    if found:
        raise ValueError(f"{variables.get('src_file')}: {'; '.join(found)}")
    pictures: str = matplotlib_scraper(block, variables, configuration, **options)
    return pictures


class InOrder:
    """The key by which Sphinx-Gallery sorts the scripts of a folder."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, script: str) -> tuple[int, str]:
        name = script.removesuffix(".py")
        return FIRST.index(name) if name in FIRST else len(FIRST), name


def faults(figure: Any) -> list[str]:
    """The faults of the words of a figure, a line each."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    width = figure.bbox.width
    boxes = [(text.get_text(), text.get_window_extent(renderer), text.get_fontsize()) for text in _texts(figure)]
    found = []
    for words, box, size in boxes:
        if box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > width + SLACK or box.y1 > figure.bbox.height + SLACK:
            found.append(f"{words!r} leaves the picture")
        if (pixels := size / 72 * figure.dpi * TELEPHONE / width) < LEAST_LETTERS:
            found.append(f"{words!r} has letters of {pixels:.1f} pixels on a telephone")
    for (words, a, _), (others, b, _) in itertools.combinations(boxes, 2):
        across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > SLACK and up > SLACK:
            found.append(f"{words!r} lies on {others!r}")
    return found


def _texts(figure: Any) -> Iterator[Any]:
    """The words that a figure shows."""
    for part in (figure, *figure.subfigs):
        yield from [text for text in part.texts if _is_shown(text)]
        for name in ("_suptitle", "_supxlabel", "_supylabel"):  # matplotlib has them among the texts from 3.10 on
            text = getattr(part, name, None)
            if text is not None and text not in part.texts and _is_shown(text):
                yield text
        for legend in part.legends:
            yield from legend.get_texts()
    for axes in figure.axes:
        yield from [text for text in (axes.title, *axes.texts) if _is_shown(text)]
        if axes.get_legend():
            yield from axes.get_legend().get_texts()
        if axes.axison:
            for axis in (axes.xaxis, axes.yaxis):
                yield from [text for text in (axis.label, axis.get_offset_text()) if _is_shown(text)]
                low, high = sorted(axis.get_view_interval())
                ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                yield from [text for place, text in ticks if low <= place <= high and _is_shown(text)]


def _is_shown(text: Any) -> bool:
    return bool(text.get_visible() and text.get_text().strip())


def drawn(script: str) -> list[Any]:
    """The figures of a script, which runs as a program."""
    import matplotlib.pyplot as plt

    apply({}, script)
    runpy.run_path(script, run_name="__main__")
    return [plt.figure(number) for number in plt.get_fignums()]


def draw_tiles() -> None:
    """Write the pictures of the first page; all have one size, with white around narrower or lower ones."""
    import matplotlib.pyplot as plt
    import numpy as np
    from PIL import Image, ImageOps

    for tile, name in TILES.items():
        plt.close("all")
        (figure,) = drawn(str(ROOT / "examples" / f"{name}.py"))
        figure.canvas.draw()
        picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        padded = ImageOps.pad(picture, TILE, color="white")
        padded.quantize(128).save(ROOT / "docs" / "_static" / "tiles" / f"{tile}.png", optimize=True)


def main(scripts: list[str]) -> None:
    import matplotlib.pyplot as plt

    if scripts == ["--tiles"]:
        draw_tiles()
        return
    status = 0
    for script in scripts:
        plt.close("all")
        sys.argv = [script]
        figures = drawn(script)
        found = [fault for figure in figures for fault in faults(figure)]
        found += [] if figures else ["it draws nothing"]
        for fault in found:
            print(f"{script}: {fault}", file=sys.stderr)
        status |= bool(found)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
