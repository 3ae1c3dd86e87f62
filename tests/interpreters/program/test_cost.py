"""The cost report of a Program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core import PRIMITIVES, Aval
from func.interpreters.core.errors import NoSourceError
from func.interpreters.program.cost import operations
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.storage import is_view
from tests.interpreters.program.test_program import ALL, sampled
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample


def cost(f: Any, *args: Any) -> Any:
    """The cost of the traced function."""
    return func.make_program(f)(*args).cost()


@pytest.mark.parametrize(
    ("f", "args", "count"),
    [
        (lambda x, y: x @ y, (np.ones((3, 4)), np.ones((4, 5))), 2 * 3 * 4 * 5),
        (lambda x, y: x @ y, (np.ones((7, 3, 4)), np.ones((7, 4, 5))), 2 * 7 * 3 * 4 * 5),
        (np.outer, (np.ones(3), np.ones(4)), 12),
        (np.add, (np.ones((3, 1)), np.ones(4)), 12),
        (np.add, (np.ones(3), 1j * np.ones(3)), 4 * 3),
        (np.sin, (np.ones(3),), 15 * 3),
        (np.divide, (np.ones(3), 2.0), 4 * 3),
        (np.sum, (np.ones((3, 4)),), 12),
        (np.max, (np.ones((3, 4)),), 12),
        (np.transpose, (np.ones((3, 4)),), 0),
        (lambda x: x[1:], (np.ones(3),), 0),
        (lambda x: np.concatenate([x, x]), (np.ones(3),), 0),
        (np.linalg.cholesky, (np.eye(6),), 6**3 / 3),
        (np.linalg.cholesky, (np.stack([np.eye(6)] * 5),), 5 * 6**3 / 3),
        (np.linalg.inv, (np.eye(6),), 2 * 6**3),
        (np.linalg.solve, (np.eye(3), np.ones((3, 2))), 2 * 3**3 / 3 + 2 * 3**2 * 2),
        (np.linalg.det, (np.eye(3),), 2 * 3**3 / 3),
        (np.linalg.qr, (np.ones((6, 3)),), 4 * 6 * 9 - 4 * 27 / 3),
        (np.fft.fft, (np.ones(8, complex),), 5 * 8 * 3),
        (np.fft.rfft, (np.ones(8),), 5 * 8 * 3 / 2),
    ],
)
def test_operations(f: Any, args: Any, count: float) -> None:
    assert cost(f, *args).operations == pytest.approx(count, abs=1)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_every_primitive_has_a_cost(name: str, sample: Sample) -> None:
    program = sampled(name, sample)
    report = program.cost()
    assert report.operations >= 0 and report.bytes_moved >= 0 and report.peak_bytes > 0
    assert len(report.equations) == len(program.equations)
    for line, equation in zip(report.equations, program.equations, strict=True):
        assert line.row == equation.primitive.name
        if equation.primitive.cost == 0:
            assert line.operations == 0
        elif any([out.size for out in equation.outputs]):
            assert line.operations > 0
        assert line.live_bytes <= report.peak_bytes


@pytest.mark.parametrize("name", SAMPLES)
def test_the_cost_stands_on_the_primitive(name: str) -> None:
    primitive = PRIMITIVES[name]
    assert primitive.cost is not None or all([sampled(name, own).equations[-1].nested() for own in SAMPLES[name]])
    assert not primitive.calls_python or primitive.cost == 0
    assert primitive.view is False or primitive.cost == 0


@pytest.mark.parametrize(("name", "sample"), [case for case in ALL if PRIMITIVES[case.values[0]].view is True])
def test_views_are_those_of_the_executable(name: str, sample: Sample) -> None:
    for equation in sampled(name, sample).equations:
        if equation.primitive.name == "broadcast" and equation.outputs[0].size < 1 << 10:
            continue  # small ones are written out, which is quicker
        assert lower(equation).view


def test_what_the_executable_views_is_free() -> None:
    for name, own in SAMPLES.items():
        for sample in own:
            for equation in sampled(name, sample).equations:
                try:
                    code = lower(equation)
                except NoSourceError:
                    continue
                assert not code.view or operations(equation) == 0
                assert not code.view or is_view(equation)


def test_bytes_moved_are_inputs_and_outputs() -> None:
    x, y = np.ones((3, 4)), np.ones((4, 5), np.float32)
    assert cost(lambda x: x + x, x).bytes_moved == 2 * 96
    assert cost(lambda x, y: x @ y.astype(float), x, y).bytes_moved == (80 + 160) + (96 + 160 + 120)
    assert cost(lambda x: x.T.reshape(12)[2:], x).bytes_moved == 0


def test_a_broadcast_input_is_read_once() -> None:
    wide = cost(lambda x: np.broadcast_to(x, (1000, 1000)) * 2.0, np.ones(1000))
    assert wide.bytes_moved == 8000 + 8_000_000
    assert wide.peak_bytes == 8000 + 8_000_000


def test_a_broadcast_scalar_takes_no_memory() -> None:
    x, wide, y = [Var(Aval((100, 100), np.float64)) for _ in range(3)]
    equations = [
        Equation(PRIMITIVES["broadcast"], (2.0,), {"shape": (100, 100)}, (wide,)),
        Equation(PRIMITIVES["add"], (x, wide), {}, (y,)),
    ]
    report = Program([x], equations, [y], {}).cost()
    assert report.peak_bytes == report.bytes_moved == 160_008


def test_a_call_does_not_count_its_outputs_twice() -> None:
    x = np.ones(100)
    plain = cost(lambda x: np.sin(np.cos(x)), x)
    called = cost(lambda x: func.jit(lambda x: np.sin(np.cos(x)))(x), x)
    assert [line.row for line in called.equations] == ["program_call"]
    assert (called.operations, called.bytes_moved, called.peak_bytes) == (
        plain.operations,
        plain.bytes_moved,
        plain.peak_bytes,
    )


def test_gathering_reads_what_it_takes() -> None:
    report = cost(lambda x: x[np.array([1, 2])], np.ones((1000, 4)))
    assert report.equations[-1].bytes_moved == 64 + 16 + 64


def test_peak_of_a_chain_does_not_grow_with_its_length() -> None:
    def chain(x: Any, length: int) -> Any:
        for _ in range(length):
            x = np.sin(x)
        return x

    x = np.ones(100)
    peaks = [cost(lambda x, n=n: chain(x, n), x).peak_bytes for n in (3, 30)]
    assert peaks == [2400, 2400]


def test_a_value_lives_until_its_last_use() -> None:
    def late(x: Any) -> Any:
        early = np.sin(x)
        for _ in range(5):
            x = np.cos(x)
        return x + early

    assert cost(late, np.ones(100)).peak_bytes == 4 * 800
    assert cost(lambda x: [np.sin(x) for _ in range(5)], np.ones(100)).peak_bytes == 6 * 800


def test_a_view_keeps_the_memory_it_lies_in() -> None:
    def kept(x: Any) -> Any:
        corner = np.sin(x)[:1]
        return np.cos(x) + corner

    assert cost(kept, np.ones(100)).peak_bytes == 4 * 800


def test_a_scan_counts_its_steps() -> None:
    def scanned(x: Any) -> Any:
        return func.scan(lambda carry, row: (carry + row @ row, None), 0.0, x)[0]

    for length in (3, 30):
        report = cost(scanned, np.ones((length, 5)))
        (scan,) = [line for line in report.equations if line.row == "scan_call"]
        ((body,),) = [scan.nested]
        assert (body.label, body.times) == ("body", length)
        assert scan.operations == length * body.cost.operations == length * 11
        assert scan.bytes_moved == length * body.cost.bytes_moved
        assert report.operations >= scan.operations


def test_a_branch_counts_as_its_dearest() -> None:
    x = np.ones(10)
    report = cost(lambda p, x: func.cond(p, lambda x: x + 1, lambda x: np.sin(x) * 2, x), True, x)
    (branch,) = [line for line in report.equations if line.row == "cond_call"]
    assert branch.operations == 160


def test_memory_inside_a_loop_is_in_the_peak() -> None:
    def scanned(x: Any) -> Any:
        return func.scan(lambda carry, row: (carry + np.sum(np.outer(row, row)), None), 0.0, x)[0]

    assert cost(scanned, np.ones((2, 100))).peak_bytes > 80_000


def test_what_is_not_counted_is_marked() -> None:
    @func.custom_jvp
    def known(x: Any) -> Any:
        return np.sin(x)

    known.defjvp(lambda primals, tangents: (known(*primals), tangents[0]))
    report = cost(known, np.ones(3))
    assert "not counted" in report.equations[-1].note and "not counted" in str(report)
    report = cost(lambda x: func.checkpoint(np.sin)(x), np.ones(3))
    assert report.operations == cost(np.sin, np.ones(3)).operations
    assert not any([one.note for one in report.equations])  # only its derivative calls the function again
    loop = cost(lambda x: func.while_loop(lambda x: x < 9, lambda x: x * 2, x), 1.0)
    assert any([one.note == "one step" for one in loop.equations])


def test_the_table_is_aligned() -> None:
    program = func.make_program(lambda x: func.scan(lambda c, row: (c + row, np.sin(c)), x[0], x))(np.ones(1000))
    report = program.cost()
    lines = str(report).splitlines()
    assert lines[0].split() == ["equation", "operations", "bytes", "moved", "live", "bytes"]
    end = lines[0].index("operations") + len("operations")
    for line in lines[1:]:
        number = line[:end].rstrip().rsplit(maxsplit=1)[-1]
        assert int(number.replace(",", "")) >= 0 and len(line) >= end
    assert lines[-1].split()[:4] == [
        "total",
        f"{report.operations:,}",
        f"{report.bytes_moved:,}",
        f"{report.peak_bytes:,}",
    ]
    assert any(["body × 1,000" in line for line in lines])
    assert report.operations == sum([one.operations for one in report.equations])
    assert set(PRIMITIVES) >= {line.row for line in report.equations}
