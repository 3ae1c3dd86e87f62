"""The texts of `lower` and `profile` of jitted functions, and the warning if native code is impossible."""

from __future__ import annotations

import importlib
import math
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, ProfileError

pytest.importorskip("llvmlite")
kernels = importlib.import_module("func.backends.loops.kernels")
listing = importlib.import_module("func.backends.llvm.report.listing")
own_functions = importlib.import_module("func.backends.llvm.math.own_functions")
profiling = importlib.import_module("func.backends.llvm.report.profiling")
traffic = importlib.import_module("func.backends.llvm.report.traffic")
execution = importlib.import_module("func.interpreters.compile.native.executable")
rules = importlib.import_module("func.interpreters.compile.native.rules")

F8 = np.dtype(np.float64)
X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)


@pytest.fixture(autouse=True)
def quick_copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The copy bandwidth of small arrays will do."""
    monkeypatch.setattr(profiling, "LARGEST_COPY", 1 << 20)
    profiling.copy_bandwidth.cache_clear()
    yield
    profiling.copy_bandwidth.cache_clear()


def native(f: Callable[..., Any], **options: Any) -> Any:
    """The function, compiled by LLVM where it can be."""
    return func.jit(f, compiler="llvm", **options)


def softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=1, keepdims=True))
    return powers / np.sum(powers, axis=1, keepdims=True)


def rnn(weights: Any, inputs: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        state = np.tanh(weights @ state + x)
        return state, state

    return func.scan(step, np.zeros(3), inputs)[1]


def mixed(x: Any) -> Any:
    """Native, NumPy, native."""
    return np.fft.fft(np.sin(x) * x).real * np.cos(x)


def test_lower_of_a_native_program() -> None:
    lowered = native(softmax).lower(X)
    assert lowered.program.equations[0].primitive.name == "max"
    assert "0: max, exp, sum over 4 × 3 → out0" in lowered
    assert "rows 4, passes over 3 each: 3" in lowered
    assert "for i < 4" in lowered.kernels and "max of r0 over j" in lowered.kernels
    assert lowered.kernels.endswith("out0[3*i + j] = r7")
    assert "define i32 @" in lowered.llvm_ir and "fdiv" in lowered.optimized_ir
    assert ".globl" in lowered.assembly or "run:" in lowered.assembly
    assert lowered.source is None
    assert repr(lowered) == str(lowered)


def test_vectors_that_leave_registers_lie_in_one_cache_line() -> None:
    """Around the call of an elementary function values go to the stack, which LLVM does not align by itself."""
    matrix = np.linspace(-1, 1, 128 * 64).reshape(128, 64)
    lowered = native(func.grad(lambda x: np.sum(x * x * np.tanh(x)))).lower(matrix)
    width = own_functions.host_features().bits // 8
    assert ("alignstack" in lowered.llvm_ir) == (width > 16)
    if width > 16:
        assert re.search(rf"and\w*\s+\$-{width}, %rsp", lowered.assembly)
        assert not re.search(r"movu\w+\s+%[yz]mm\d+, -?\d*\(%rsp\)", lowered.assembly)


def test_lower_of_numpy_source() -> None:
    lowered = func.jit(softmax, compiler="numpy").lower(X)
    assert "np_exp(" in lowered.source
    assert lowered.source.splitlines()[0].strip() in lowered
    assert lowered.kernels is lowered.llvm_ir is lowered.optimized_ir is lowered.assembly is None


def test_lower_of_a_program_in_parts() -> None:
    lowered = native(mixed).lower(np.ones(8))
    text = str(lowered)
    places = [text.index(word) for word in ("native code, part 0", "NumPy, part 1", "  fft", "native code, part 2")]
    assert places == sorted(places)
    assert "np_fft_fft(" in lowered.source
    assert lowered.kernels.count("part ") == lowered.llvm_ir.count("; part ") == lowered.assembly.count("# part ") == 2


def test_lower_takes_keywords_static_and_donated_arguments() -> None:
    power = native(lambda x, *, n: x**n + np.sin(x), static_argnames="n")
    assert "sin" in power.lower(X, n=3)
    given = native(lambda x: np.sin(x) + 1.0, donate_argnums=0)
    assert "sin" in given.lower(X)
    np.testing.assert_allclose(given(X.copy()), np.sin(X) + 1.0)


def test_listing_of_control_flow() -> None:
    text = native(rnn).lower(np.eye(3), X).kernels
    assert "loop, 4 steps" in text and "in1[t] starts at 3*t of in1" in text and "dot, in0 (3 × 3)" in text

    def newton(x: Any) -> Any:
        return func.while_loop(lambda y: y * y > x + 1e-9, lambda y: 0.5 * (y + x / y), x + 1.0)

    text = native(newton).lower(2.0).kernels
    assert "loop while" in text and "test:" in text and "body:" in text and "greater" in text

    def chosen(x: Any) -> Any:
        return func.cond(np.sum(x) > 0.0, np.sin, np.cos, x)

    text = native(chosen).lower(X).kernels
    assert "branch on" in text and "case 0:" in text and "case 1:" in text


def test_listing_of_dynamic_indices_and_accumulation() -> None:
    text = native(lambda x, i: x[i] * 2.0).lower(X, np.array([1, 0])).kernels
    assert "gather over 2 × 3 → out0" in text and "= in0[j + 3*r0]" in text
    text = native(lambda x: np.sum(np.sin(x), axis=0)).lower(X).kernels
    assert re.search(r"out0 = -?0(\.0)? everywhere", text) and "out0[j] = add(out0[j], r1)" in text
    text = native(lambda x: np.diff(x[::-1, 0])).lower(X).kernels
    assert "9 - 3*i" in text and "6 - 3*i" in text


def test_listing_of_running_sums_positions_and_threads() -> None:
    text = native(lambda x: np.cumsum(x, axis=1)).lower(X).kernels
    assert "running sum" in text
    out = kernels.StridedRef(kernels.Buffer(4, F8, "output", 0), 0, (1,))
    code = [kernels.Position(kernels.Register(F8), 0)]
    nest = kernels.LoopNest((4,), 1, [kernels.NestStage(False, [*code, kernels.Store(out, code[0].out)])])
    nest.chunkings.append(kernels.Chunking(0, 2))
    text = listing.listing(kernels.NativeProgram([], [], [], [nest]))
    assert "r0 = i" in text and "2 chunks of i that threads share" in text


def test_listing_of_what_it_has_never_seen() -> None:
    class Odd:
        fields = kernels.Load.fields
        out, ref = kernels.Register(F8), kernels.StridedRef(kernels.Buffer(3, F8, "input", 0), 0, (1,))

    out = kernels.StridedRef(kernels.Buffer(3, F8, "output", 0), 0, (1,))
    nest = kernels.LoopNest((3,), None, [kernels.NestStage(True, [Odd(), kernels.Store(out, Odd.out)])])
    items = [
        nest,
        kernels.Fill(out.buffer, np.float64(2.0)),
        kernels.LibraryCall("cholesky", (out,), (Odd.ref,), {"lower": True}),
    ]
    result = kernels.ArraySpec((3,), F8, True)
    text = listing.listing(kernels.NativeProgram([result], [np.ones(2)], [result], items))
    assert "r0 = odd(ref=in0[i])" in text
    assert "fill with 2.0 → out0" in text and "cholesky(in0, lower=True) → out0" in text
    assert "in0: float64[3] as a Python number" in text and "const0: float64[2]" in text


def moved(f: Callable[..., Any], *args: Any) -> list[tuple[int, int, int]]:
    """(bytes read, bytes written, operations) of the rows of a profile."""
    profile = native(f).profile(*args, repeat=1)
    return [(row.bytes_read, row.bytes_written, row.operations) for row in profile.rows]


def test_every_element_counts_once() -> None:
    assert moved(lambda x, y: x + y, np.ones((5, 4)), np.ones(4)) == [(160 + 32, 160, 0)]
    assert moved(np.diff, np.ones(11)) == [(88, 80, 0)]
    assert moved(lambda x: x[::2] * 2.0, np.ones(10)) == [(40, 40, 0)]
    assert moved(lambda x, i: x[i], np.ones(100), np.array([3, 4, 5])) == [(24 + 24, 24, 0)]
    assert moved(lambda x: np.sum(x, axis=0), X) == [(96, 24, 0)]
    assert moved(lambda x, y: x @ y, np.ones((5, 4)), np.ones((4, 3))) == [(160 + 96, 120, 2 * 5 * 4 * 3)]


def test_rows_in_scratch_memory_are_not_read_from_memory() -> None:
    ((read, written, _),) = moved(softmax, np.ones((64, 10)))
    assert read == 64 * 80 and written == 64 * 80 + 80


def test_zero_sizes_move_nothing() -> None:
    given, made = [kernels.StridedRef(kernels.Buffer(0, F8, kind, 0), 0, (3, 1)) for kind in ("input", "output")]
    register = kernels.Register(F8)
    stage = kernels.NestStage(True, [kernels.Load(register, given), kernels.Store(made, register)])
    assert traffic.traffic(kernels.LoopNest((0, 3), None, [stage])) == traffic.NOTHING


def test_profile_of_kernels() -> None:
    profile = native(lambda x, w: softmax(x @ w)).profile(np.ones((32, 8)), np.ones((8, 4)), repeat=3)
    assert [row.number for row in profile.rows] == ["0", "1"]
    assert profile.rows[0].title.startswith("dot, in0 (32 × 8) by in1 (8 × 4)")
    assert profile.rows[1].title == "max, exp, sum over 32 × 4 → out0"
    assert all([row.runs == 1 and row.seconds > 0 and not row.is_inside for row in profile.rows])
    for row in profile.rows:
        assert row.bandwidth is not None
        assert math.isclose(row.bandwidth, (row.bytes_read + row.bytes_written) / row.seconds)
    assert profile.seconds > 0 and profile.copy_bandwidth > 1e8 and profile.repeat == 3 and profile.note == ""
    lines = str(profile).splitlines()
    assert lines[0].split() == ["item", "time", "share", "runs", "read", "written", "GB/s", "of", "copy", "Gflop/s"]
    assert len(lines) == 5 and "the least of 3 runs" in lines[3] and "GB/s" in lines[4]
    assert repr(profile) == str(profile)


def test_profile_of_loops_and_branches() -> None:
    profile = native(rnn).profile(np.eye(3), X, repeat=2)
    (loop,) = [row for row in profile.rows if row.title == "loop, 4 steps"]
    inside = [row for row in profile.rows if row.number.startswith(f"{loop.number}.")]
    assert inside and all([row.runs == 4 and row.is_inside for row in inside])
    assert loop.runs == 1 and loop.operations == 4 * 2 * 3 * 3
    assert loop.bytes_read == sum([row.bytes_read for row in inside])

    def halved(x: Any) -> Any:
        return func.while_loop(lambda y: y > 1.0, lambda y: y / 2.0, x)

    rows = {row.number: row for row in native(halved).profile(8.0, repeat=1).rows}
    (loop,) = [row for row in rows.values() if row.title.startswith("loop while")]
    assert rows[f"{loop.number}.t0"].runs == 4 and rows[f"{loop.number}.b0"].runs == 3

    def chosen(x: Any) -> Any:
        return func.cond(np.sum(x) > 0.0, np.sin, np.cos, x)

    rows = {row.number: row for row in native(chosen).profile(np.ones(3), repeat=1).rows}
    ran = {row.title.split()[0]: row.runs for row in rows.values() if row.is_inside}
    assert ran == {"sin": 1, "cos": 0}


def test_profile_of_a_program_in_parts() -> None:
    rows = native(mixed).profile(np.ones(8), repeat=1).rows
    assert [row.number for row in rows] == ["0/0", "1", "2/0"]
    assert rows[1].title == "NumPy: fft" and rows[1].seconds > 0 and rows[1].bandwidth is None


def test_profile_gives_the_results_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    f = native(lambda x: np.sin(x) / x)
    f.profile(np.zeros(3), repeat=1)  # NaN is equal to NaN
    measure = profiling.measure

    def wrong(executable: Any, args: Any, repeat: int) -> Any:
        found = measure(executable, args, repeat)
        return found._replace(outputs=tuple([out + 1.0 for out in found.outputs]))

    monkeypatch.setattr(profiling, "measure", wrong)
    with pytest.raises(ProfileError, match=r"profile of <lambda>: the results of two runs differ"):
        f.profile(X, repeat=1)


def test_profile_says_where_native_code_gave_up() -> None:
    f = native(func.grad(lambda x: np.sum(np.where(x > 0, x * np.log(x), 0.0))))
    profile = f.profile(np.array([0.0, 1.0]), repeat=1)
    np.testing.assert_allclose(f(np.array([0.0, 1.0])), [0.0, 1.0])
    assert (profile.note == "") == (profile.note not in str(profile).splitlines())


def test_profile_takes_what_calls_take() -> None:
    strided = np.ones((6, 4))[::-2, 1:]
    assert native(lambda x, *, n: np.sin(x) * n, static_argnames="n").profile(strided, n=3.0, repeat=1).rows
    assert native(lambda tree: tree["a"] + tree["b"][0]).profile({"a": X, "b": [2]}, repeat=1).rows


def test_profile_of_nothing_native() -> None:
    with pytest.raises(ProfileError, match=r"profile of softmax: none of it is native code \(compiler='numpy'"):
        func.jit(softmax, compiler="numpy").profile(X)
    with pytest.raises(ArgumentError, match="repeat must be a positive whole number, not 0"):
        native(softmax).profile(X, repeat=0)
    with pytest.raises(ArgumentError, match=r"not 1\.5"):
        native(softmax).profile(X, repeat=1.5)


def test_profile_of_traced_values() -> None:
    jitted = native(np.sin)
    with pytest.raises(ProfileError, match="it has traced arguments"):
        func.grad(lambda x: jitted.profile(x) and x)(1.0)


def test_copy_that_bandwidth_is_measured_by() -> None:
    executable = execution.NativeExecutable(profiling.copy_program(1000), profiling._none)
    values = np.arange(1000.0)
    (copied,) = executable.flat_stub()(values)
    np.testing.assert_array_equal(copied, values)
    assert profiling._copy_size() <= profiling.LARGEST_COPY
    assert profiling.copy_bandwidth() == profiling.copy_bandwidth() > 1e8


def test_numbers_of_tables() -> None:
    profile = importlib.import_module("func.compilation.profile")
    times = [profile._time(seconds) for seconds in (2e-9, 9.9964e-7, 1.5e-6, 0.25, 1.0, 123.0)]
    assert times == ["2 ns", "1000 ns", "1.5 µs", "250 ms", "1 s", "123 s"]
    assert [profile._bytes(count) for count in (0, 7, 1500, 2 * 10**6, 3 * 10**9)] == [
        "",
        "7 B",
        "1.5 kB",
        "2 MB",
        "3 GB",
    ]


@pytest.fixture
def broken_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native rule of `sum` raises."""

    def rule(context: Any) -> Any:
        raise KeyError("no such thing")

    monkeypatch.setitem(rules.RULES, "sum", rule)


def caught(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """A result and the warnings on the way to it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        out = call()
    assert all([one.category is RuntimeWarning and one.filename == __file__ for one in found])
    return out, [str(one.message) for one in found]


@pytest.mark.usefixtures("broken_sum")
def test_failing_rule_is_named() -> None:
    f = native(lambda x: np.sum(np.sin(x)) * 2.0)
    out, (message,) = caught(lambda: f(X))
    np.testing.assert_allclose(out, np.sum(np.sin(X)) * 2.0)
    assert "NumPy runs instead (KeyError: 'no such thing')" in message
    assert "at sum, " in message and "np.sum(np.sin(x)) * 2.0" in message and "test_inspection.py:" in message
    assert "np_add_reduce(" in f.lower(X)
    with pytest.raises(ProfileError, match="none of it is native"):
        f.profile(X)
    assert caught(lambda: f(X))[1] == []


@pytest.mark.usefixtures("broken_sum")
def test_failing_rule_in_a_loop_and_in_a_program_in_parts() -> None:
    def looped(x: Any) -> Any:
        return func.fori_loop(0, 3, lambda i, y: np.sin(y) * np.sum(y), x)

    out, (message,) = caught(lambda: native(looped)(X))
    np.testing.assert_allclose(out, looped(X))
    assert "at sum, " in message and "np.sin(y) * np.sum(y)" in message

    out, (message,) = caught(lambda: native(lambda x: np.fft.fft(np.sin(x)).real * np.sum(x))(X))
    np.testing.assert_allclose(out, np.fft.fft(np.sin(X)).real * np.sum(X))
    assert "at sum, " in message


@pytest.mark.parametrize("f", [lambda x: np.sin(x) * x, mixed])
def test_code_that_llvm_refuses(f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution.NativeExecutable, "module", lambda self: "define i32 @run() { ret i64 0 }")
    values = np.linspace(0.0, 1.0, 8)
    jitted = native(f)
    out, (message,) = caught(lambda: jitted(values))
    np.testing.assert_allclose(out, f(values), atol=1e-12)
    assert "LLVM rejects the module" in message and "in a program that begins with sin, " in message
    assert "np.sin(x)" in message
    with pytest.raises(ProfileError):
        jitted.profile(values)
    assert "sin" in jitted.lower(values).source


def test_failing_printer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(self: Any) -> Any:
        raise NotImplementedError("hyperspace")

    monkeypatch.setattr(execution.NativeExecutable, "module", module)
    out, (message,) = caught(lambda: native(lambda x: np.cos(x) * x)(X))
    np.testing.assert_allclose(out, np.cos(X) * X)
    assert "(NotImplementedError: hyperspace)" in message and "begins with cos, " in message
