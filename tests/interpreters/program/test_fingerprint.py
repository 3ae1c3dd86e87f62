"""Fingerprints of programs: equal in every process for equal programs, different for different ones, none for what runs
code of a user."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import PRIMITIVES, PYTHON_SCALARS, Aval, Primitive, aval_of
from func.interpreters.primitives.structural.identity import barrier, late_tag
from func.interpreters.program.fingerprint import fingerprint
from func.interpreters.program.program import Equation, Program, Var
from tests.support.samples import SAMPLES

ROOT = Path(__file__).parents[3]


def program_of(name: str, args: Any, params: dict[str, Any]) -> Program:
    """A primitive on arguments like these, alone."""
    primitive = PRIMITIVES[name]
    variables = [None if type(x) in PYTHON_SCALARS else Var(aval_of(x)) for x in args]
    out = primitive.aval(*[aval_of(x) for x in args], **params)
    outs = tuple([Var(aval) for aval in (out if primitive.multiple else (out,))])
    inputs = tuple([x if var is None else var for x, var in zip(args, variables, strict=True)])
    return Program(
        [var for var in variables if var is not None], [Equation(primitive, inputs, params, outs)], list(outs), {}
    )


def has_functions(params: dict[str, Any]) -> bool:
    return any([callable(value) or "Rule" in type(value).__name__ for value in params.values()])


def test_samples_of_all_primitives() -> None:
    """Programs are equal if and only if their fingerprints are; those with functions of Python, or with ranks of this
    process, have none."""
    programs: dict[str, Program] = {}
    without = set()
    for name, samples in SAMPLES.items():
        for sample in samples:
            program = program_of(name, sample.args, sample.params)
            mark = fingerprint(program)
            if mark is None:
                without.add(name)
            else:
                assert fingerprint(program_of(name, sample.args, sample.params)) == mark
                assert programs.setdefault(mark, program) == program
    assert all(
        [
            any([has_functions(sample.params) or "ranks" in sample.params for sample in SAMPLES[name]])
            or name.endswith("_call")
            for name in without
        ]
    ), without
    assert len(programs) > 500


def traced(function: Callable[..., Any], *args: Any) -> Program:
    program: Program = func.make_program(function)(*args)
    return program


WEIGHTS = np.arange(6.0).reshape(2, 3)
DIFFERENT: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: x * 2.0, np.ones(3)),
    (lambda x: x * 2, np.ones(3)),
    (lambda x: x * 2.5, np.ones(3)),
    (lambda x: x * -0.0, np.ones(3)),
    (lambda x: x * 0.0, np.ones(3)),
    (lambda x: x * np.nan, np.ones(3)),
    (lambda x: x * 2.0, np.ones(4)),
    (lambda x: x * 2.0, np.ones(3, np.float32)),
    (lambda x: x * 2.0, 1.0),
    (lambda x: x * 2.0, np.float64(1.0)),
    (lambda x: x + x * 2.0, np.ones(3)),
    (lambda x: x * 2.0 + x, np.ones(3)),
    (lambda x: (x * 2.0, x), np.ones(3)),
    (lambda x: (x, x * 2.0), np.ones(3)),
    (lambda x: WEIGHTS @ x, np.ones(3)),
    (lambda x: (WEIGHTS + 0.0 * WEIGHTS) @ x + 0.0, np.ones(3)),
    (lambda x: (WEIGHTS + 1.0) @ x, np.ones(3)),
    (lambda x: np.asfortranarray(WEIGHTS) @ x, np.ones(3)),
    (lambda x: WEIGHTS.astype(np.float32) @ x, np.ones(3)),
    (lambda x: x[::2], np.ones(4)),
    (lambda x: x[:2], np.ones(4)),
    (lambda x: np.sum(x, axis=0), np.ones((3, 3))),
    (lambda x: np.sum(x, axis=1), np.ones((3, 3))),
    (lambda x: func.scan(lambda c, t: (c + t, c), x, np.arange(3.0)), 1.0),
    (lambda x: func.scan(lambda c, t: (c + t, c), x, np.arange(4.0)), 1.0),
    (lambda x: func.scan(lambda c, t: (c * t, c), x, np.arange(3.0)), 1.0),
    (lambda x: func.cond(x > 0, np.sin, np.cos, x), 1.0),
    (lambda x: func.cond(x > 0, np.cos, np.sin, x), 1.0),
]


def test_different_programs() -> None:
    marks = [fingerprint(traced(function, arg)) for function, arg in DIFFERENT]
    assert None not in marks
    assert len(set(marks)) == len(marks)
    assert marks == [fingerprint(traced(function, arg)) for function, arg in DIFFERENT]


def test_options_count() -> None:
    program = traced(np.sin, 1.0)
    marks = {
        fingerprint(program),
        fingerprint(program, "a"),
        fingerprint(program, "a", ""),
        fingerprint(program, "", "a"),
    }
    assert len(marks) == 4


def test_source_lines_and_names_of_variables_do_not_count() -> None:
    def one(x: Any) -> Any:
        return np.sin(x) * 2.0

    def two(y: Any) -> Any:
        half = np.sin(y)

        return half * 2.0

    assert fingerprint(traced(one, 1.0)) == fingerprint(traced(two, 1.0))


def test_tags_count_by_their_pattern() -> None:
    def tagged(*tags: int) -> str | None:
        x = Var(Aval((2,), float))
        values, equations = [x], []
        for tag in tags:
            values.append(Var(x.aval))
            equations.append(Equation(barrier, (values[-2],), {"tag": tag}, (values[-1],)))
        return fingerprint(Program([x], equations, values, {}))

    assert tagged(1, 2, 1) == tagged(70, 80, 70) != tagged(1, 1, 2)
    assert tagged(1, 2) != tagged(late_tag(), 2)


def test_functions_and_primitives_of_users_have_none() -> None:
    twice = Primitive(
        "twice_of_a_test", lambda xp, x: x + x, aval=lambda x: x, batch=lambda *args: None, register=False
    )
    x = Var(Aval((2,), float))
    for params in ({}, {"flag": object()}, {"flag": len}, {"flag": np.random.default_rng(0)}):
        assert fingerprint(Program([x], [Equation(twice, (x,), params, (Var(x.aval),))], [x], {})) is None
    for odd in (object(), {1, 2}, np.array(["text"]), np.array([None]), np.ma.masked_array([1.0])):
        sine = Equation(PRIMITIVES["sin"], (x,), {"odd": odd}, (Var(x.aval),))
        assert fingerprint(Program([x], [sine], [x], {})) is None
    assert fingerprint(traced(lambda x: func.pure_callback(np.sin, x, x, vmap_method="sequential"), np.ones(2))) is None


def test_primitives_know_the_module_that_defines_them() -> None:
    assert {primitive.defined_in.partition(".")[0] for primitive in PRIMITIVES.values()} <= {"func", "tests", ""}
    assert PRIMITIVES["sin"].defined_in.startswith("func.interpreters.primitives")


def test_values_are_delimited() -> None:
    """No two different lists of values give the same bytes."""
    values: list[Any] = [
        1,
        "1",
        1.0,
        True,
        None,
        "",
        (),
        (1,),
        [1],
        {},
        {"a": 1},
        b"1",
        1j,
        slice(1),
        ...,
        np.float64(1),
    ]
    values += [np.ones(1), np.ones((1, 1)), np.ones(1, np.int64), np.dtype(float), "1;int 1", (1, "1"), ((1,), "1")]
    x = Var(Aval((2,), float))
    sine = PRIMITIVES["sin"]
    marks = {}
    for pair in itertools.product(values, repeat=2):
        marks[fingerprint(Program([x], [Equation(sine, (x,), {"p": pair}, (Var(x.aval),))], [x], {}))] = pair
    assert len(marks) == len(values) ** 2


@pytest.mark.parametrize("seed", ["0", "123"])
def test_every_process_has_the_same(seed: str) -> None:
    script = (
        "from tests.interpreters.program.test_fingerprint import *\n"
        "print(*[fingerprint(traced(function, arg)) for function, arg in DIFFERENT])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [fingerprint(traced(function, arg)) for function, arg in DIFFERENT]
