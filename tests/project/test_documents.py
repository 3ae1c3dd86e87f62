"""The Python code in the Markdown documents runs, and its sessions print what they show."""

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

import func
from func.interpreters.program.translations import TRANSLATIONS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)


def run_block(code: str, names: dict[str, Any], path: Path, line: int) -> None:
    """Run one block, which starts at this line of the document; it may add to `names`."""
    if not code.lstrip().startswith(">>>"):
        exec(compile("\n" * (line - 1) + code, str(path), "exec"), names)
        return
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    session = doctest.DocTestParser().get_doctest(code, names, path.name, str(path), line - 1)
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=flags, verbose=False).run(
        session, out=report.append, clear_globs=False
    )
    names.update(session.globs)
    assert not failed, "".join(report)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_in_document_runs(path: Path) -> None:
    if path.name in ("profiling.md", "performance-howto.md"):  # they show native code
        pytest.importorskip("llvmlite")
    text = path.read_text(encoding="utf-8").replace("validate=False", f"validate={func.config.validate}")
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        run_block(block["code"], names, path, text.count("\n", 0, block.start("code")) + 1)
    TRANSLATIONS.reports.clear()  # a page shows a wrong pass


def test_readme_has_code_that_runs() -> None:
    assert BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_pages_show_what_their_first_program_prints(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    program = BLOCK.search(text)
    assert program is not None
    shown = re.match(r"\s*```text\n(.*?)```", text[program.end() :], re.DOTALL)
    assert shown is not None
    run_block(program["code"], {"__name__": "__main__"}, ROOT / page, 1)
    assert capsys.readouterr().out == shown[1]


def test_rows_of_readmes_features_are_read_at_a_glance() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    features = text[text.index("## Features") : text.index("## How fast it is")]
    rows = [re.sub(r"\]\([^)]*\)", "]", line) for line in features.splitlines() if re.match(r"\| [^|]", line)]
    assert len(rows) >= 8
    assert [row for row in rows if len(re.findall(r"[^\W_][\w()'-]*", row)) > 12] == []


TARGETS = re.compile(r"(?i)\b(bars? (?:is|are|was|on|of)|wanted|missed|verdict|reached|targets?|was to take)\b")
"""Words of the project's own aims, which do not answer a reader."""


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/performance.md", "docs/comparison.md"])
def test_pages_for_readers_tell_of_no_internal_targets(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [match[0] for match in TARGETS.finditer(text)] == []


def test_wrong_session_is_reported(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    run_block(">>> x = 2\n>>> x\n2\n", names, tmp_path / "page.md", 1)
    with pytest.raises(AssertionError, match=r"(?s)line 12.*Expected:\s+3\s+Got:\s+4"):
        run_block(">>> x + x\n3\n", names, tmp_path / "page.md", 12)
