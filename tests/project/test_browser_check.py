"""tools/browser_check.py finds a reader's problems; without Chromium it prints a note and passes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import browser_check

PAGE = """<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>t</title>
<style>body {{ margin: 0; background: #fff; color: #111 }}
@media (prefers-color-scheme: dark) {{ body {{ background: #000; color: #eee }} .dim {{ color: #333 }} }}</style>
<link rel="icon" href="data:,"></head><body><article><h1>A page</h1>
<p>One two three four five six seven.</p>{body}</article></body></html>"""
FAULTS = {
    "too wide": ('<div style="width: 500px">w</div>', "at 390 pixels, the page is 500 wide"),
    "the element that is": ('<div style="width: 500px">w</div>', 'at 390 pixels, article > div "w" ends at 500'),
    "cut off": ('<div style="overflow: hidden"><b style="padding-left: 700px">w</b></div>', "div > b"),
    "wide at a desk": ('<div style="width: 1300px">w</div>', "at 1280 pixels, the page is 1300 wide"),
    "an image": ('<img src="gone.png" alt="x">', "the image gone.png does not load"),
    "an exception": ("<script>missing()</script>", "missing is not defined"),
    "a message": ("<script>console.error('alas')</script>", "error on the console: alas"),
    "a file that is missing": ('<script src="gone.js"></script>', "gone.js"),
    "weak colours": ('<p style="color: #999">w</p>', "#999999 on #ffffff has a contrast of 2.85: article > p"),
    "weak colours in the dark": ('<p class="dim">w</p>', "#333333 on #000000"),
    "half transparent": ('<p style="color: rgba(0, 0, 0, 0.4)">w</p>', "#999999 on #ffffff"),
    "in other notations": ('<p style="color: color-mix(in srgb, #fff 60%, #000)">w</p>', "#999999 on #ffffff"),
}
HARMLESS = {
    "what scrolls": '<div style="overflow-x: auto"><div style="width: 2000px">w</div></div>',
    "what is hidden": '<p style="color: #fff; display: none">w</p><p style="width: 900px; display: none">w</p>',
    "large letters": '<p style="color: #888; font-size: 30px">w</p>',
    "other hosts": '<script src="https://example.org/x.js"></script>',
}


@pytest.fixture(scope="module")
def browser() -> Iterator[browser_check.Browser]:
    """One browser for the tests, which are skipped where there is none."""
    try:
        with browser_check.started() as running:
            yield running
    except browser_check.NoBrowser as reason:
        pytest.skip(str(reason))


def found_in(folder: Path, body: str, browser: browser_check.Browser) -> list[str]:
    """The browser's findings in a page of this body."""
    (folder / "page.html").write_text(PAGE.format(body=body), encoding="utf-8")
    return list(browser_check.problems(folder, ["page.html"], browser))


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str, tmp_path: Path, browser: browser_check.Browser) -> None:
    body, words = FAULTS[name]
    found = found_in(tmp_path, body, browser)
    assert any([one.startswith("page.html: ") and words in one for one in found]), found


@pytest.mark.parametrize("name", HARMLESS)
def test_pages_without_faults_pass(name: str, tmp_path: Path, browser: browser_check.Browser) -> None:
    assert not found_in(tmp_path, HARMLESS[name], browser)


def test_a_page_without_words_is_found(tmp_path: Path, browser: browser_check.Browser) -> None:
    (tmp_path / "page.html").write_text("<article>alias of nothing</article>")
    found = list(browser_check.problems(tmp_path, ["page.html"], browser))
    assert "page.html: it has 3 words and no more" in found


def test_a_search_that_finds_nothing_is_told(
    tmp_path: Path, browser: browser_check.Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_check, "PATIENCE", 1.0)
    results = '<div id="search-results"><ul>{}</ul></div>'
    (tmp_path / "searchindex.js").touch()
    for listed, is_wrong in (("", True), ("<li>func.grad</li>", True), ("<li>func.vmap</li>", False)):
        (tmp_path / "search.html").write_text(PAGE.format(body=results.format(listed)))
        assert bool(list(browser_check.problems(tmp_path, [], browser))) is is_wrong


def test_pages_are_sampled_by_folder(tmp_path: Path) -> None:
    counts = {".": 3, "reference": 100, "reference/names": 101, "_modules": 99, "_modules/func": 99}
    for name, count in counts.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            (tmp_path / name / f"{i:03}.html").touch()
    assert len(browser_check.pages(tmp_path, every=True)) == sum(counts.values())
    some = browser_check.pages(tmp_path, every=False)
    assert len(some) == len(set(some)) == 3 + 100 + 2 * browser_check.SAMPLE
    assert "reference/names/000.html" in some and "_modules/func/098.html" not in some


def test_without_a_browser_the_check_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser_check.main([str(tmp_path)]) == 0
    assert "not opened in a browser: none of chromium," in capsys.readouterr().out
    (tmp_path / "chromium").write_text("#!/bin/sh\nexit 1\n")  # a name and nothing behind it
    (tmp_path / "chromium").chmod(0o755)
    assert browser_check.main([str(tmp_path)]) == 0
    assert "ended at once" in capsys.readouterr().out


def test_faults_fail_the_check(
    tmp_path: Path, browser: browser_check.Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    del browser  # whose absence skips
    (tmp_path / "page.html").write_text(PAGE.format(body="<script>missing()</script>"))
    assert browser_check.main([str(tmp_path)]) == 1
    assert "missing is not defined" in capsys.readouterr().out
    shots = tmp_path / "shots"
    assert browser_check.main([str(tmp_path), "--shots", str(shots), "page.html"]) == 0
    assert len([path for path in shots.glob("page-*.png") if path.read_bytes().startswith(b"\x89PNG")]) == 4
