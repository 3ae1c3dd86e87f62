"""HTML that is read as a browser reads it."""

from html.parser import HTMLParser
from typing import Any


class PageReader(HTMLParser):
    """Checks that tags are closed, and collects tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_html(page: str) -> PageReader:
    """The page, in which every tag must be closed."""
    reader = PageReader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader
