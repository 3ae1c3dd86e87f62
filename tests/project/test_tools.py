"""The scripts in tools/: coefficients that can be derived again, mutants whose text is in the source."""

from pathlib import Path

import pytest

mpmath = pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

from tools import minimax, mutants  # noqa: E402


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
