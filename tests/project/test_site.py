"""The site answers the first questions of its readers, near its first page, and its links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
QUESTIONS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "site_questions.toml").read_text("utf-8"))

FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
TOCTREE = re.compile(r"^```+\{toctree\}\n(?P<body>.*?)^```+$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?P<page>[\w./-]+\.md)?(?:#(?P<anchor>[^)\s]+))?\)")
MADE_BY_THE_BUILD = "gallery/"


def text_of(page: str) -> str:
    """The source of a page."""
    return (DOCS / page).read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub and MyST name them."""
    headings = re.findall(r"^#{1,3} (.+)$", FENCE.sub("", text), re.MULTILINE)
    words = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", word.strip().lower()).replace(" ", "-") for word in words}


def toctree_pages(text: str) -> set[str]:
    """The pages that the tables of contents of a page list, patterns included."""
    found: set[str] = set()
    for table in TOCTREE.finditer(text):
        for line in table["body"].splitlines():
            entry = re.sub(r"^.*<(.+)>$", r"\1", line.strip())
            if entry and not entry.startswith(":"):
                found |= {str(path.relative_to(DOCS)) for path in DOCS.glob(f"{entry.removesuffix('.md')}.md")}
    return found


def links(text: str) -> list[tuple[str, str]]:
    """The links of a page to pages and headings; an empty page is the page itself."""
    found = [(link["page"] or "", link["anchor"] or "") for link in LINK.finditer(FENCE.sub("", text))]
    return [(page, anchor) for page, anchor in found if page or anchor]


def pages_within(clicks: int) -> set[str]:
    """The pages that a reader reaches from the first one, by links and tables of contents."""
    reached = edge = {"index.md"}
    for _ in range(clicks):
        texts = [text_of(page) for page in edge]
        edge = {page for text in texts for page in toctree_pages(text) | {page for page, _ in links(text) if page}}
        edge = {page for page in edge if (DOCS / page).exists()} - reached
        reached = reached | edge
    return reached


@pytest.mark.parametrize("reader", QUESTIONS)
def test_first_questions_have_an_answer_within_two_clicks(reader: str) -> None:
    near = pages_within(2)
    assert len(QUESTIONS[reader]) == 20
    for question, place in QUESTIONS[reader].items():
        page, _, anchor = place.partition("#")
        assert page in near, question
        assert not anchor or anchor in anchors(text_of(page)), (question, place)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_to_headings(page: str) -> None:
    for target, anchor in links(text_of(page)):
        if target.startswith((MADE_BY_THE_BUILD, "../")):
            continue
        assert not target or (DOCS / target).exists(), target
        assert not anchor or anchor in anchors(text_of(target or page)), (target, anchor)


def test_distance_counts_clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "index.md": "```{toctree}\n:glob:\n\nfirst*\n```\n",
        "first.md": "# First\n[on](second.md#a-b)\n",
        "second.md": "## A `b`!\n[on](third.md)\n",
        "third.md": "# Third\n[on](fourth.md)\n",
        "fourth.md": "# Fourth\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setitem(globals(), "DOCS", tmp_path)
    assert pages_within(2) == {"index.md", "first.md", "second.md"}
    assert anchors(sources["second.md"]) == {"a-b"}
