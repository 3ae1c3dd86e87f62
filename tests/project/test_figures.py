"""Every figure in the documentation comes from one run: the tables, the charts and the numbers in prose."""

from __future__ import annotations

import copy
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bars, claims, figures, pages, plot
from benchmarks.claims import PAGES, Claim, renewed, unclaimed
from benchmarks.contestants import BY_HAND, FUNC, FUNC_JIT, HIPS, JAX_JIT, TORCH
from benchmarks.figures import BEST, BEST_EAGER, BEST_TORCH, Figures
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
FIGURES = figures.load()
CLAIMS = claims.load()


def text_of(page: str) -> str:
    """The source of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_run_has_every_workload() -> None:
    titles = {work.name: work.title for work in WORKLOADS}
    assert {name: FIGURES.title(name) for name in FIGURES.works}.items() <= titles.items()
    missing = {*titles} - {*FIGURES.works}
    assert not {name for name in missing if next(w for w in WORKLOADS if w.name == name).slow == frozenset()}


@pytest.mark.parametrize("page", PAGES)
def test_claims_have_the_figures_of_the_run(page: str) -> None:
    own = [claim for claim in CLAIMS if claim.page == page]
    assert not [claim for claim in own if not claim.values and not claim.holds]
    for claim in own:
        claim.filled(FIGURES)
    assert renewed(text_of(page), own, FIGURES) == text_of(page), "run python -m benchmarks.figures"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_has_a_claim(page: str) -> None:
    assert unclaimed(text_of(page), [claim for claim in CLAIMS if claim.page == page]) == []


def test_claims_are_about_these_pages() -> None:
    assert {claim.page for claim in CLAIMS} <= {*PAGES}
    assert max(Counter((claim.page, claim.words) for claim in CLAIMS).values()) == 1


def test_tables_have_the_figures_of_the_run() -> None:
    for page, tables in pages.sections(FIGURES).items():
        assert pages.with_tables(text_of(page), tables) == text_of(page), "run python -m benchmarks.figures"
    assert text_of(pages.TABLES) == pages.tables_page(FIGURES), "run python -m benchmarks.figures"


def test_charts_show_the_figures_of_the_run() -> None:
    description = "; ".join(map(bars.described, bars.ratios_of(FIGURES).items()))
    assert description in text_of("docs/_static/peers.svg"), "run python -m benchmarks.figures"
    assert plot.digest(FIGURES) in text_of("docs/_static/performance.svg"), "run python -m benchmarks.figures"


def test_make_bench_measures_torch_compile_on_the_workloads_of_the_chart() -> None:
    (names,) = re.findall(r"^CHART := '(.+)'$", text_of("Makefile"), re.MULTILINE)
    assert names.split("' '") == [*bars.SHOWN] and {*bars.SHOWN} <= {*FIGURES.works}


def test_every_compiled_workload_is_of_one_kind() -> None:
    kinds = [work for patterns in pages.KINDS.values() for work in FIGURES.chosen(patterns)]
    assert max(Counter(kinds).values()) == 1
    assert {work for work in FIGURES.works if FIGURES.row(work, FUNC_JIT)} <= {*kinds}


@pytest.mark.parametrize(("page", "lines"), [("README.md", 110), ("docs/performance.md", 250)])
def test_pages_stay_short(page: str, lines: int) -> None:
    assert len(text_of(page).splitlines()) <= lines


# What the tests above would notice: a small run, and figures that are planted.

TIMES = {FUNC: 8.0, FUNC_JIT: 2.0, HIPS: 10.0, TORCH: 5.0, JAX_JIT: 4.0, BY_HAND: 1.0}


def run_of(times: dict[str, float]) -> dict[str, Any]:
    """Measurements as `python -m benchmarks --json` writes them."""
    rows = [
        {"contestant": name, "rounds": [time, time, 3 * time], "first_call": 10 * time, "peak": int(time)}
        for name, time in times.items()
    ]
    return {
        "environment": {"rounds": "3", "processor": "one"},
        "workloads": [
            {"name": "work", "title": "some work", "measurements": rows},
            {"name": "left out", "title": "no work", "measurements": [dict(rows[0], rounds=[])]},
        ],
    }


def small_run() -> Figures:
    """Figures of one workload."""
    first = {"first calls": {"work": {"warm": 0.01, "cold": 0.04, JAX_JIT: 0.08}}, "imports": {"numpy": 0.1}}
    runs = {"two threads": [run_of({FUNC: 1.0, FUNC_JIT: 9.0}), run_of(TIMES)], "one thread": [run_of(TIMES)]}
    compiled = [run_of({FUNC_JIT: 3.0, "torch.compile": 4.0})]
    commands = {"make test": {"minutes": 22}}
    return Figures(figures.collect(runs | {"torch.compile": compiled}, first, commands, "2026-11-30"))


def test_statistics_of_a_run() -> None:
    run = small_run()
    assert run.works == ("work",) and run.data["measured again"] == ["work", "left out"]
    assert run.ratio("work", FUNC_JIT, JAX_JIT) == 0.5 and run.ratios(FUNC, JAX_JIT) == [2.0]
    assert run.ratio("work", FUNC_JIT, "torch.compile") == 0.75, "beside the func.jit of the same part"
    assert run.seconds("work", FUNC_JIT) == 2.0
    peers = [run.peer("work", *pair) for pair in ((FUNC_JIT, BEST), (FUNC, BEST_EAGER), (FUNC_JIT, BEST_TORCH))]
    assert [(peer.name, peer.ratio) for peer in peers if peer] == [("torch.compile", 0.75), (TORCH, 1.6), (TORCH, 0.4)]
    assert run.first_calls() == [0.5] and run.first_call("work", JAX_JIT) == 40.0 and run.memory() == [0.5]
    assert figures.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert (figures.below(2, [1, 2, 3]), figures.above(2, [1, 2, 3])) == (1, 1)
    with pytest.raises(ValueError, match="beside JAX eager was not measured"):
        run.ratio("work", FUNC, "JAX eager")
    with pytest.raises(ValueError, match="no workload matches 'wrok'"):
        run.ratios(FUNC, HIPS, "work, wrok")


def test_disturbed_measurements_are_left_out() -> None:
    run = run_of(TIMES)
    rows = run["workloads"][0]["measurements"]
    rows[list(TIMES).index(JAX_JIT)]["rounds"] = [4.0, 7.0, 7.0]
    first = {"first calls": {}, "imports": {}}
    found = Figures(figures.collect({"two threads": [run]}, first, {}, "2026-11-30"))
    assert "1 thread: jax.jit" not in pages.compiled_table(found).header and not pages.times_table(found, 1).rows
    assert found.data["disturbed"] == {"two threads": {"work": [JAX_JIT]}}
    assert found.row("work", JAX_JIT) is None and found.ratios(FUNC_JIT, JAX_JIT) == []
    assert found.peer("work", FUNC_JIT, BEST) is None, "the disturbed one may be the best"
    assert found.peer("work", FUNC_JIT, BEST_TORCH) is not None
    words = "left out of work (two threads), disturbed by other work: jax.jit"
    assert words in pages.machine_text(found)


def test_the_file_is_the_same_data(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(figures.text_of(small_run().data), encoding="utf-8")
    assert figures.load(tmp_path / "run.json") == small_run()
    assert figures.FILE.read_text(encoding="utf-8") == figures.text_of(FIGURES.data)


def test_tables_of_a_run() -> None:
    run = small_run()
    assert pages.compiled_table(run).rows == (
        ("work", "2.00 s", "0.50", "0.40", "0.75", "2.00", "0.50", "0.50", "0.40"),
    )
    assert pages.eager_table(run).rows == (("work", "8.00 s", "0.80", "1.60", "8.00", "1.60"),), "no column is empty"
    assert pages.slower_table(run).rows == (("work", "-", "2.00", "1.60 (torch.autograd)"),)
    assert pages.first_calls_table(run, ["work"]).rows == (("work", "20.0 s", "40.0 s", "40.0 s", "0.50"),)
    assert pages.processes_table(run).rows == (("work", "10.0 ms", "40.0 ms", "80.0 ms", "0.50"),)
    assert pages.imports_table(run).rows == (("`numpy`", "100 ms"),)
    with pytest.raises(ValueError, match="no section between <!-- begin kinds -->"):
        pages.with_section("text", "kinds", "table")


def test_charts_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(bars, "SHOWN", {"work": "some work"})
    bars.draw(bars.ratios_of(small_run()), tmp_path / "bars.svg")
    plot.draw(small_run(), tmp_path / "marks.svg")
    assert "work: 2, 1.33, 2.5, 0.5" in (tmp_path / "bars.svg").read_text()
    assert plot.digest(small_run()) in (tmp_path / "marks.svg").read_text()


CLAIM = Claim("page", "takes {:.2f} of its time, {:.0f} ms", ("ratio('work', jit, jax)", "1e3 * seconds('work', jit)"))
PAGE = "func.jit takes 0.50\nof its time, 2000 ms.\n"


def test_claims_are_compared_and_renewed() -> None:
    run = small_run()
    assert renewed(PAGE, [CLAIM], run) == PAGE and unclaimed(PAGE, [CLAIM]) == []
    for wrong in (PAGE.replace("0.50", "0.49"), PAGE.replace("2000", "2001")):
        assert renewed(wrong, [CLAIM], run) == PAGE != wrong
    with pytest.raises(ValueError, match="0 times"):
        renewed(PAGE.replace("takes", "needs"), [CLAIM], run)
    with pytest.raises(ValueError, match="2 times"):
        renewed(PAGE + PAGE, [CLAIM], run)


def test_words_that_are_no_longer_true_are_noticed() -> None:
    claim = Claim("page", "func.jit is twice as fast", holds=("0.45 < ratio('work', jit, jax) < 0.55",))
    assert claim.filled(small_run()) == "func.jit is twice as fast"
    data = copy.deepcopy(dict(small_run().data))
    data["workloads"]["work"]["2"][JAX_JIT]["ratios"][FUNC_JIT] = 0.6
    with pytest.raises(ValueError, match="no longer true"):
        claim.filled(Figures(data))


@pytest.mark.parametrize(
    "figure",
    [
        "It takes 12 ms.",
        "It takes 1,200 µs.",
        "up to 6 times as long",
        "3x faster",
        "0.35 of its time",
        "1.15 times",
        "57 workloads",
        "368 functions",
        "80 % of it",
        "312× slower",
        "about 22 minutes",
        "twice as fast",
        "ten times as fast",
        "a third of its time",
        "half of NumPy's time",
        "in tens of milliseconds",
        "a fifth of a second",
        "forty programs",
        "within a second",
        "half a minute",
        "| table | 0.5 |",
    ],
)
def test_figures_without_a_claim_are_noticed(figure: str) -> None:
    assert len(unclaimed(f"Words before. {figure} And after.", [])) == 1
    assert unclaimed(f"```text\n{figure}\n```\n`{figure}`, <!-- {figure} --> [a]({figure})", []) == []


@pytest.mark.parametrize(
    "words",
    [
        "Python 3.11 or newer",
        "JAX 0.10",
        "order 2",
        "200 Runge-Kutta steps",
        "an MLP 784-1024-10",
        "a second Program",
        "traced twice",
    ],
)
def test_other_numbers_need_no_claim(words: str) -> None:
    assert unclaimed(words, []) == []
