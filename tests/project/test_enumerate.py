"""The machines that enumerate small programs: their frame, and a seeded sample of every machine."""

import ast
import importlib
import itertools
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import func.backends.llvm
import func.backends.loops
import func.backends.scalars
import func.interpreters.compile
import func.interpreters.primitives
from func.interpreters.core.primitive import Primitive
from func.interpreters.core.wiring import PRIMITIVES, PROVIDERS
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


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def _named(module: ModuleType) -> Iterator[str]:
    """The primitives that the text of a module names: as variables, as strings, or in strings of several names."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, ast.Name) and isinstance(found := getattr(module, node.id, None), Primitive):
            yield found.name
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            yield from words if all([word in PRIMITIVES or word in PROVIDERS for word in words]) else ()


def test_programs_have_every_primitive_that_translations_name() -> None:
    """But for `printed`, the forms of exported C alone."""
    from tools.enumerate import compiled

    for _ in _modules(func.interpreters.primitives):
        pass  # a module's primitives are known once it is imported
    elsewhere = {name for text in compiled.ELSEWHERE for name in text.split()}
    tried = {*elsewhere}
    for family in compiled.FAMILIES:
        tried |= {name.partition("*")[0] for name in f"{family.operations} {family.last} {family.first}".split()}
    named = {}
    for package in (func.interpreters.compile, func.backends.loops, func.backends.scalars, func.backends.llvm):
        for module in _modules(package):
            if not module.__name__.endswith(".printed"):
                named |= dict.fromkeys(_named(module), module.__name__)
    assert len(named) > 150
    assert {name: module for name, module in named.items() if name not in tried} == {}
    assert elsewhere <= set(named)


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
