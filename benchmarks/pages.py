"""The measured part of a page of the documentation."""

from pathlib import Path

MARKER = "<!-- Below this line: written by python -m benchmarks --markdown. -->"


def write_page(file: Path, text: str) -> None:
    """Write the text below the marker of a page; a page without one, or a new one, becomes marker and text."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    prose, marker, _ = before.partition(MARKER)
    head = f"{prose}{MARKER}" if marker else MARKER
    file.write_text(f"{head}\n\n{text}\n", encoding="utf-8")


def replace_section(file: Path, name: str, text: str) -> None:
    """Replace what is between the marks of a section of a page. Raises ValueError without them."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    page = file.read_text(encoding="utf-8")
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"{file} has no section between {begin} and {end}")
    file.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
