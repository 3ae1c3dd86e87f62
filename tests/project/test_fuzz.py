"""The differential tester: its frame, and a first slice of every campaign."""

import faulthandler
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.coverage import public_names
from tools.fuzz import cases, functions, interrupts

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


@pytest.fixture
def stacks_on_terminal(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """A case that hangs ends with its stacks on the terminal, which is stderr while pytest captures nothing.

    The limit of a test comes before and fails it, unless C code waits and holds the lock of the interpreter.
    """
    with capfd.disabled():
        terminal = os.dup(2)
    faulthandler.dump_traceback_later(3 * cases.CASE_LIMIT, exit=True, file=terminal)
    yield
    faulthandler.cancel_dump_traceback_later()
    os.close(terminal)


@pytest.mark.usefixtures("stacks_on_terminal")
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


HANGING = """
    import threading
    from tests.project.test_fuzz import stacks_on_terminal
    from tools.fuzz import cases

    cases.CASE_LIMIT = 0.2

    def waits_for_ever():
        threading.Event().wait(60)

    def test_hanging(stacks_on_terminal):
        waits_for_ever()
"""


def test_a_case_that_hangs_shows_its_stacks(tmp_path: Path) -> None:
    file = tmp_path / "test_hanging.py"
    file.write_text(textwrap.dedent(HANGING))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "Timeout (0:00:00.6" in done.stderr and "in waits_for_ever" in done.stderr, done.stdout + done.stderr


def test_the_limit_of_a_test_outlives_interrupts_by_a_timer() -> None:
    before = signal.getitimer(signal.ITIMER_REAL)[0]
    interrupts._run_for(lambda: time.sleep(1), 1e-3)
    after = signal.getitimer(signal.ITIMER_REAL)[0]
    assert (after > before - 10) if before else after == 0


def test_interrupts_come_where_python_looks_for_signals() -> None:
    lock = threading.RLock()

    def locking() -> None:
        with lock:
            len("")

    count = interrupts._run_until(locking, -1)
    for place in range(1, count + 1):
        interrupts._run_until(locking, place)
        assert not lock._is_owned()  # type: ignore[attr-defined]
    assert count >= 3
