"""The differential tester: its frame, and a first slice of every campaign."""

import random

import pytest

from tests.support.coverage import public_names
from tools.fuzz import cases, functions

pytest.importorskip("llvmlite")


def test_a_failing_case_is_made_small() -> None:
    def case(choices: random.Random, tally: cases.Tally) -> None:
        numbers = [choices.randrange(100) for _ in range(choices.randrange(20))]
        tally.show(f"numbers = {numbers}")
        assert not any(number >= 50 for number in numbers), "a large number"

    failing = (cases.attempt("numbers", case, f"0:{number}", cases.Tally()) for number in range(20))
    found = next(difference for difference in failing if difference is not None)
    small = cases.shrunk("numbers", case, found)
    numbers = eval(small.text.partition("=")[2])
    assert len(numbers) == 1 and numbers[0] >= 50
    assert "a large number" in small.report()
    again = cases.attempt("numbers", case, found.key, cases.Tally())
    assert again is not None and again.text == found.text


def test_every_function_of_the_coverage_table_is_drawn() -> None:
    names = [name[3:] for name in public_names() if name.startswith("np.") and name.count(".") == 1]
    assert not functions.missing_domains(names), "add them to DOMAINS, or to NO_DOMAIN with the reason"
    assert set(functions.NO_DOMAIN) <= set(names) and not set(functions.NO_DOMAIN) & set(functions.DOMAINS)


@pytest.mark.parametrize("name", cases.campaigns())
def test_first_cases(name: str) -> None:
    """The same cases every time, so that the tests say the same of the same source."""
    if reason := cases.why_unavailable(name):
        pytest.skip(reason)
    quick = cases.campaign(name).QUICK
    found: list[cases.Difference] = []
    tally = cases.run_campaign(name, 0, 120, most=quick, began=lambda number: None, found=found.append)
    assert not found, "\n".join(difference.report() for difference in found)
    assert tally.cases and tally.checks
