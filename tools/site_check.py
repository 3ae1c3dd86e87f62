"""Look at every page of the built documentation: `python -m tools.site_check [FOLDER]`, as `make docs` does.

The check needs no browser. It finds links and anchors that lead nowhere, and images that are missing or have no text in
their place. It finds pages without a separate title, and code that is wider than a telephone and does not scroll. It
finds colours of func's style sheet with too little contrast, by the formula of WCAG 2.2 (success criterion 1.4.3: 4.5
to 1).
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "docs" / "_build" / "html"
MADE_BY_SPHINX = ("genindex.html", "search.html", "py-modindex.html", "sg_execution_times.html")
"""Pages with Sphinx's words: the check looks at their links, and not at their titles."""
LEAST_CONTRAST = 4.5
LONGEST_WORD = 60
"""Characters of one word that fit into 390 pixels at the size of the text in a table; longer ones need a scroll bar."""
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SCROLLING = {"pre", "svg", "table", "div.highlight", "div.table-wrapper", "script", "style", "code"}


class Page(HTMLParser):
    """The parts of a page: its anchors, links, images, titles, and words outside of scrolling elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.images: list[dict[str, str]] = []
        self.headings = 0
        self.title = ""
        self.language = ""
        self.has_viewport = False
        self.words: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the content of a tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag in ("a", "link") and "href" in given:
            self.links.append(given["href"])
        if tag in ("img", "script") and "src" in given:
            self.links.append(given["src"])
        if tag == "img":
            self.images.append(given)
        self.headings += tag == "h1"
        self.language = given.get("lang", self.language) if tag == "html" else self.language
        self.has_viewport |= tag == "meta" and given.get("name") == "viewport"
        if tag not in VOID:
            names = {tag, *[f"{tag}.{name}" for name in given.get("class", "").split()]}
            self._open.append((tag, not names.isdisjoint(SCROLLING)))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost tag of this name, and what was left open in it."""
        for place in reversed(range(len(self._open))):
            if self._open[place][0] == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        """Note the title, and words that cannot scroll."""
        if self._open and self._open[-1][0] == "title" and "svg" not in [tag for tag, _ in self._open]:
            self.title += data
        if not any([scrolls for _, scrolls in self._open]):
            self.words.extend(data.split())


def problems(folder: Path) -> Iterator[str]:
    """The faults of the pages of a folder, a line each."""
    folder = folder.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    own = [page for path, page in pages.items() if not path.relative_to(folder).as_posix().startswith("_modules")]
    titles = Counter([page.title.strip() for page in own])
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        if not name.startswith("_"):
            yield from [f"{name}: {text}" for text in _of_page(path, page, pages, folder)]
            if path.name not in MADE_BY_SPHINX and not name.startswith("_modules"):
                yield from [f"{name}: {text}" for text in _of_title(page, titles)]


def _of_page(path: Path, page: Page, pages: dict[Path, Page], folder: Path) -> Iterator[str]:
    for link in dict.fromkeys(page.links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link in ("", "#"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists() or not target.is_relative_to(folder):
            yield f"{link} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{link} names a place that is not there"
    for image in page.images:
        is_decoration = "alt" in image and image.get("src", "").endswith("_thumb.png")  # beside the name of its page
        if not image.get("alt", "").strip() and not is_decoration:
            yield f"the image {image.get('src', '')} has no text in its place"
    for word in page.words:
        if len(word) > LONGEST_WORD and not word.startswith(("http://", "https://")):
            yield f"the word {word[:40]}… has {len(word)} characters and cannot scroll"


def _of_title(page: Page, titles: Counter[str]) -> Iterator[str]:
    if page.headings != 1:
        yield f"it has {page.headings} headings of the first order"
    if not page.title.strip() or titles[page.title.strip()] > 1:
        yield f"its title {page.title.strip()!r} is empty or that of another page too"
    if not page.language or not page.has_viewport:
        yield "it names no language, or no width of the window"


def luminance(color: str) -> float:
    """The relative luminance of #rrggbb."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours: 1 to 21."""
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def weak_colors(sheet: str) -> Iterator[str]:
    """Rules of a style sheet that set a colour and a background with too little contrast."""
    for rule in re.finditer(r"([^{}]+)\{([^{}]*)\}", sheet):
        found: Any = dict(re.findall(r"(?:^|[;\s])(color|background(?:-color)?):\s*(#[0-9a-fA-F]{6})", rule[2]))
        back = found.get("background-color", found.get("background"))
        ratio = contrast(found["color"], back) if back and "color" in found else LEAST_CONTRAST
        if ratio < LEAST_CONTRAST:
            yield f"{rule[1].strip()}: {found['color']} on {back} has a contrast of {ratio:.1f}"


def main() -> None:
    """Print the faults; the exit status is 1 if there are any."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT
    found = list(problems(folder))
    for sheet in sorted((ROOT / "docs" / "_static").glob("*.css")):
        found += [f"{sheet.name}: {text}" for text in weak_colors(sheet.read_text(encoding="utf-8"))]
    print("\n".join(found) or f"{len(list(folder.rglob('*.html')))} pages, nothing to mend")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
