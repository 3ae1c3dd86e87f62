"""The machines that enumerate small programs: their frame, and a seeded sample of every machine."""

import itertools

import pytest

from tools.enumerate import scope

pytest.importorskip("llvmlite")


def _pairs(choices: scope.Choices) -> tuple[int, int]:
    first = choices.pick([1, 2, 3])
    second = choices.pick([0, first])
    if (first, second) == (2, 0):
        raise scope.OutOfScope
    return first, second


def test_everything_is_each_program_once() -> None:
    found = dict(scope.everything(_pairs))
    assert found == {"0.0": (1, 0), "0.1": (1, 1), "1.1": (2, 2), "2.0": (3, 0), "2.1": (3, 3)}
    part = scope.Part("pairs", _pairs, lambda pair: "larger" if pair[0] > 2 else None)
    assert all(scope.replayed(part, path) == pair for path, pair in found.items())


def test_workers_share_all_programs_and_count_differences() -> None:
    part = scope.Part("pairs", _pairs, lambda pair: f"{1 // pair[1]}" if pair[0] > 2 else None)
    outcomes = [scope.run_part(part, complete=True, worker=(i, 2)) for i in range(2)]
    assert sum(outcome.programs for outcome in outcomes) == 5 and all(outcome.is_complete for outcome in outcomes)
    assert sum(sum(outcome.kinds.values()) for outcome in outcomes) == 2
    raised = next(d for outcome in outcomes for d in outcome.differences if d.program == "(3, 0)")
    assert raised.text.startswith("ZeroDivisionError")


def test_samples_are_the_same_for_the_same_seed() -> None:
    def first(seed: int) -> list[str]:
        return [path for path, _ in itertools.islice(scope.sampled(_pairs, seed), 20)]

    assert first(1) == first(1) != first(2)


@pytest.mark.parametrize(
    ("machine", "part"),
    [pytest.param(m, part, id=f"{m}-{part.name}") for m in scope.machines() for part in scope.parts(m)],
)
def test_a_sample_of_each_machine(machine: str, part: scope.Part) -> None:
    outcome = scope.run_part(part, most=part.quick or scope.quick(machine))
    assert not outcome.differences, "\n\n".join(
        f"{machine} --part {d.part} --program {d.path}\n{d.program}\n{d.text}" for d in outcome.differences
    )
    assert outcome.programs
