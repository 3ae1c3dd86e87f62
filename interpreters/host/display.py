"""The displays of interactive tools: pictures and tables in notebooks, and names for completion."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable, Sequence
from typing import Any

from func.interpreters.core.errors import ArgumentError


class Picture(str):
    """A picture: SVG in a notebook, and text wherever strings are shown."""

    __slots__ = ("svg",)
    svg: str
    """The picture as the text of an SVG file."""

    def __new__(cls, text: str, svg: str) -> Picture:
        picture = super().__new__(cls, text)
        picture.svg = svg
        return picture

    def __repr__(self) -> str:
        return str(self)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.svg

    def _repr_svg_(self) -> str:
        return self.svg


def write_svg(path: str | os.PathLike[str], svg: str, who: str) -> str:
    """Write the text of an SVG file and return its path. Raises ArgumentError where it does not end in .svg."""
    target = os.fspath(path)
    if not target.lower().endswith(".svg"):
        raise ArgumentError(
            f"{who}: {target!r} does not end in .svg, which is the only kind of picture that func draws"
        )
    with open(target, "w", encoding="utf-8") as file:
        file.write(svg)
    return target


def escaped(text: str) -> str:
    """A text for HTML and SVG. The module for it, with its table of all names, is imported when something is shown."""
    safe: str = importlib.import_module("html").escape(text)
    return safe


def html_table(rows: Sequence[Sequence[Any]], head: Sequence[Any] = (), left: int = 0) -> str:
    """A table of texts, which are escaped: the first `left` columns begin at the left, numbers end at the right."""

    def row(cells: Sequence[Any], tag: str) -> str:
        sides = ["left" if place < left else "right" for place in range(len(cells))]
        shown = [escaped(str(cell)) for cell in cells]
        return (
            "<tr>"
            + "".join([f'<{tag} style="text-align:{side}">{x}</{tag}>' for side, x in zip(sides, shown, strict=True)])
            + "</tr>"
        )

    heading = f"<thead>{row(head, 'th')}</thead>" if head else ""
    return f"<table>{heading}<tbody>{''.join([row(cells, 'td') for cells in rows])}</tbody></table>"


def axes_for(ax: Any, who: str, size: tuple[float, float]) -> Any:
    """The axes of matplotlib to draw on, new ones for None. Raises ArgumentError without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ArgumentError(f"{who}: plot needs matplotlib, which is not installed; install it, or print the text")
    return importlib.import_module("matplotlib.pyplot").subplots(figsize=size)[1] if ax is None else ax


def public_names(namespace: dict[str, Any], more: Iterable[str] = ()) -> list[str]:
    """The names of `__all__`, some more, and those that Python gives to every module: for `__dir__`."""
    return sorted({*namespace["__all__"], *more, *[name for name in namespace if name.startswith("__")]})
