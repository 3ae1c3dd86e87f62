"""The benchmark on a device: its page, and its message without one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.devices import __main__ as command
from benchmarks.devices import predicting
from benchmarks.devices.contestants import FUNC_JIT
from benchmarks.devices.jobs import JOBS, DeviceJob
from benchmarks.devices.page import MARKER, Outcome, Prediction, outcomes_table, page_text
from benchmarks.libraries.compiling import FuncJit


def test_without_a_device_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "why_no_device", lambda: "CuPy finds no CUDA device")
    assert command.main(["--page", str(tmp_path / "page.md")]) == 3
    assert "no device: CuPy finds no CUDA device" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_every_job_has_a_prediction() -> None:
    assert [each.job for each in predicting.stored()] == [job.name for job in JOBS]
    small = JOBS[-1]
    (kept,) = [each for each in predicting.stored() if each.job == small.name]
    assert predicting.predict(small) == kept


class Clock:
    """Seconds as the report prints them."""

    def __init__(self) -> None:
        self.released = 0

    def seconds(self, call: Any) -> float:
        call()
        return 2e-5

    def release(self) -> None:
        self.released += 1


def test_jobs_are_measured_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import func

    wrong = DeviceJob("wrong", "a peer that differs", JOBS[-1].make_job, JOBS[-1].make_data, lambda x: x)
    monkeypatch.setattr(command, "LIBRARIES", {FUNC_JIT: (lambda: func, FuncJit), "jax.jit": (_missing, FuncJit)})
    clock = Clock()
    outcomes = command.measure([JOBS[-1], wrong], time.monotonic() + 60, clock)
    assert outcomes[0].seconds == {FUNC_JIT: 2e-5, "CuPy by hand": 2e-5} and clock.released == 2
    assert "no device" in outcomes[0].left_out["jax.jit"] and "differs" in outcomes[1].left_out[FUNC_JIT]
    late = command.measure([JOBS[-1]], time.monotonic() - 1, clock)
    assert late[0].left_out[FUNC_JIT] == "no time was left"

    monkeypatch.setattr(command, "PATIENCE", 0.05)
    slow = DeviceJob("slow", "a peer that hangs", JOBS[-1].make_job, JOBS[-1].make_data, lambda x: time.sleep(5))
    (hung,) = command.measure([slow], time.monotonic() + 60, clock)
    assert hung.left_out["CuPy by hand"] == "failed (TimeoutError: more than 0 s)" and FUNC_JIT in hung.seconds

    prediction = Prediction("small gradient", "NVIDIA H200", 1e-5, 1, 160.0, 100.0, "starts: sin")
    text = page_text({"device": "a device"}, outcomes, [prediction], 4e12, {"gpu tests": "passed (3 passed)"})
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nProse.\n")
    for _ in range(2):
        command.write_page(page, text)
    written = page.read_text()
    assert written.startswith("# Title\n\nProse.\n\n" + MARKER) and written.count(MARKER) == 1
    assert "Measured on a device." in written and "| small gradient | 20 µs | 10 µs | 2.00 |" in written
    assert "| small gradient | replay in 10 µs | 20 µs | MISSED |" in written
    assert "wrong, func.jit: left out, differs from" in written


def _missing() -> Any:
    raise ModuleNotFoundError("this JAX finds no device, no device at all")


def test_bandwidth_is_that_of_the_bytes_that_were_predicted() -> None:
    outcome = Outcome("work", "title", {FUNC_JIT: 1e-3})
    table = outcomes_table([outcome], {"work": Prediction("work", "m", 1e-3, 1, 4e9, 0.0, "memory")}, 4e12)
    assert table.rows[0][:5] == ("work", "1 ms", "1 ms", "1.00", "100 %")


def test_data_is_repeated_along_rows() -> None:
    job = DeviceJob("x", "x", JOBS[0].make_job, lambda: (np.ones((2, 3)), np.ones(3), 2.0), times=5)
    shapes = [np.shape(item) for item in job.data()]
    assert shapes == [(10, 3), (3,), ()] == [np.shape(item) for item in job.data(alone=True)]
