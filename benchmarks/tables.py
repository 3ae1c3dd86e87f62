"""A table of strings, printed aligned or as Markdown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of as many cells, and remarks below. The first column is set left."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """The table aligned for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [_aligned(cells, widths) for cells in (self.header, *self.rows)]
        rule = "-" * max(map(len, lines))
        remarks = [f"  {remark}" for remark in self.remarks]
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:], *remarks])

    def markdown(self, with_title: bool = True) -> str:
        """The table in Markdown."""
        rule = ["---", *("---:" for _ in self.header[1:])]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.header, rule, *self.rows)]
        remarks = [f"- {remark}" for remark in self.remarks]
        title = [f"### {self.title}", ""] if with_title else []
        return "\n".join([*title, *lines, *([""] if remarks else []), *remarks])


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    """One line: the first cell to the left, the others to the right."""
    first, *others = (
        cell.rjust(width) if number else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
