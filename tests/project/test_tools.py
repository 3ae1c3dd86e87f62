"""The scripts in tools/: coefficients that can be derived again, mutants whose text is in the source."""

from pathlib import Path

import pytest

mpmath = pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

from tools import minimax, mutants, site_check  # noqa: E402


@pytest.mark.parametrize("name", minimax.tables())
def test_coefficients_of_the_source_are_as_good_as_derived_ones(name: str) -> None:
    target = minimax.tables()[name]
    here = minimax.largest_error(target, target.coefficients)
    assert here <= 2.5 * minimax.largest_error(target, minimax.derived(target))
    spoiled = [target.coefficients[0] * (1 + 1e-5), *target.coefficients[1:]]
    assert minimax.largest_error(target, spoiled) > here


def test_mutants_apply() -> None:
    """Every mutant's text occurs once, its tests exist, and its name is its own."""
    planted = mutants.mutants()
    assert len({mutant.name for mutant in planted}) == len(planted)
    for mutant in planted:
        source = (mutants.ROOT / mutant.file).read_text()
        assert mutant.planted(source) != source
        for test in mutant.tests:
            assert test.startswith("-") or (mutants.ROOT / test.partition("::")[0]).exists(), mutant.name


def test_a_mutant_is_noticed_and_taken_back(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text("ANSWER = 42\n")
    (tmp_path / "test_answer.py").write_text("from answer import ANSWER\n\n\ndef test():\n    assert ANSWER == 42\n")
    fault = mutants.Mutant("fault", "answer.py", "42", "43", ("test_answer.py",))
    harmless = mutants.Mutant("harmless", "answer.py", "42", "42 + 0", ("test_answer.py",))
    assert mutants.is_noticed(fault, tmp_path) and not mutants.is_noticed(harmless, tmp_path)
    assert (tmp_path / "answer.py").read_text() == "ANSWER = 42\n"
    with pytest.raises(ValueError, match="occurs 0 times"):
        fault.planted("nothing")


GOOD = """<html lang="en"><head><meta name="viewport" content="width=device-width"><title>{title}</title></head><body>
<h1 id="top">{title}</h1>{body}</body></html>"""
FAULTS = {
    "a link": ('<a href="missing.html">x</a>', "missing.html leads nowhere"),
    "a link out of the folder": ('<a href="../other.html">x</a>', "leads nowhere"),
    "an anchor": ('<a href="two.html#below">x</a>', "two.html#below names a place that is not there"),
    "an anchor of its own": ('<a href="#below">x</a>', "#below names a place that is not there"),
    "an image": ('<img src="gone.png" alt="a picture">', "gone.png leads nowhere"),
    "an image without words": ('<img src="two.html">', "has no text in its place"),
    "a second heading": ("<h1>again</h1>", "2 headings of the first order"),
    "a long word": ("<p>" + "x" * 61 + "</p>", "61 characters and cannot scroll"),
}


def _site(folder: Path, body: str) -> list[str]:
    (folder / "one.html").write_text(GOOD.format(title="One", body=body))
    (folder / "two.html").write_text(GOOD.format(title="Two", body='<a href="one.html#top">x</a>'))
    return list(site_check.problems(folder))


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_pages_are_found(name: str, tmp_path: Path) -> None:
    body, words = FAULTS[name]
    (found,) = _site(tmp_path, body)
    assert found.startswith("one.html: ") and words in found


def test_pages_without_faults_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    word = "x" * 200
    body = f'<pre>{word}</pre><a href="https://example.org">x</a><a href="two.html#top">y</a><p>a<br>b</p>'
    assert not _site(tmp_path, body + '<a href="#top">z</a>')
    monkeypatch.chdir(tmp_path.parent)
    assert not list(site_check.problems(Path(tmp_path.name)))  # as make docs names it
    (tmp_path / "two.html").write_text(GOOD.format(title="One", body=""))
    assert len(list(site_check.problems(tmp_path))) == 2  # one title for two pages


def test_weak_colors_are_found() -> None:
    assert site_check.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert site_check.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    sheet = "a { color: #999999; background: #ffffff; } b { color: #111111; background-color: #ffffff }"
    assert [found.split(":")[0] for found in site_check.weak_colors(sheet)] == ["a"]


def test_kernels_compile_for_two_architectures(tmp_path: Path) -> None:
    from tools import cuda_check

    if cuda_check.nvrtc() is None:
        pytest.skip("NVRTC is not installed (extra 'cuda')")
    outcome = cuda_check.checked(cuda_check.Work("samples", ("tanh", "softmax", "gather", "cumsum"), True, False))
    file = tmp_path / "cache.json"
    kernels = cuda_check.Kernels(file)
    for text in outcome.texts * 2:
        kernels.add(text)
    assert kernels.repeated == len(kernels.digests)
    for task in kernels.tasks():
        rows, fault, _ = cuda_check.registers_of(task)
        assert not fault
        kernels.keep(rows)
    found = kernels.found()
    assert len(found) == 2 * len(kernels.digests) and {each.architecture for each in found} == {"sm_80", "sm_90"}
    assert all(8 <= each.registers <= 255 for each in found)
    kernels.store()
    again = cuda_check.Kernels(file)
    for text in outcome.texts:
        again.add(text)
    assert not list(again.tasks()) and again.found() == found
    with pytest.raises(cuda_check.Refused, match="undefined"):
        cuda_check.compiled('extern "C" __global__ void kernel() { missing(); }', "sm_80")
    assert cuda_check.summary(found).startswith("sm_80: ")
