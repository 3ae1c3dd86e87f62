"""Every example runs to its end, where it asserts what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAIN_JOB = ROOT / "examples" / "per_sample_gradients.py"
SHORT_EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {MAIN_JOB})
WITHOUT_A_PAGE = {"exported_arm", "newton_roots", "tensor_training"}
SHORT_PAGES = [script for script in SHORT_EXAMPLES if script.stem not in WITHOUT_A_PAGE]
PAGES = sorted((ROOT / "examples" / "with_scipy").glob("*.py"))
WITHOUT_MATPLOTLIB = "import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_path(sys.argv[1])"


def run(*arguments: str | Path) -> str:
    """Runs a script as a user would, a RuntimeWarning being an error, and returns what it printed."""
    completed = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "agg"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.mark.parametrize("script", SHORT_EXAMPLES, ids=lambda script: script.stem)
def test_short_example_keeps_its_promise(script: Path) -> None:
    assert run(script).strip(), "an example says what it found"


def test_short_examples_are_short() -> None:
    assert len(SHORT_EXAMPLES) >= 5
    for script in SHORT_EXAMPLES:
        assert len(script.read_text(encoding="utf-8").splitlines()) <= 110, script.name


def test_short_pages_are_short_and_draw() -> None:
    assert len(SHORT_PAGES) >= 16
    for script in SHORT_PAGES:
        text = script.read_text(encoding="utf-8")
        assert text.startswith('"""\n') and "\n=====" in text, "sphinx-gallery makes the title of the page from it"
        assert "\n# %%\n" in text and text.endswith("\nplt.show()\n"), script.name
        assert "\nassert " in text or "assert_allclose(" in text, f"{script.name} promises nothing"
        assert "type: ignore" not in text and "# fmt" not in text and "noqa" not in text, script.name
        introduction = text.index('"""', 3) + 3
        lines = [line for line in text[introduction:].splitlines() if line.strip()]
        assert len(lines) <= 60, f"{script.name} has {len(lines)} lines after its introduction"


@pytest.mark.parametrize("script", PAGES, ids=lambda script: script.stem)
def test_page_keeps_its_promise_without_matplotlib(script: Path) -> None:
    assert run("-c", WITHOUT_MATPLOTLIB, script).strip(), "a page says what it found; the pages' build draws"


def test_pages_have_titles_and_cells() -> None:
    assert len(PAGES) >= 5
    for script in PAGES:
        text = script.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 150, script.name
        assert text.startswith('"""\n') and "\n=====" in text, "sphinx-gallery makes the title of the page from it"
        assert "\n# %%\n" in text and "\nassert " in text and "\nif plt:\n" in text, script.name


def test_main_job_in_its_quick_setting(tmp_path: Path) -> None:
    figure = tmp_path / "figures" / "per_sample_gradients.png"
    printed = run(MAIN_JOB, "--quick", "--output", str(figure))
    assert printed.count("    ok: ") == 10, printed
    assert "all checks hold" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
