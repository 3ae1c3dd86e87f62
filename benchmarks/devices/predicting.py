"""Predictions of the workloads by the model of the CUDA backend. No device is needed, and nothing runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.devices.jobs import JOBS, DeviceJob
from benchmarks.devices.page import Prediction, as_data
from benchmarks.libraries.compiling import FuncJit

FILE = Path(__file__).parent / "predictions.json"


def predict(job: DeviceJob, machine: Any = None) -> Prediction:
    """The time of a call on a machine, replayed as a graph."""
    import func
    from func.backends.cuda.model import H200, predicted, total_seconds
    from func.backends.cuda.plan import device_plan
    from func.interpreters.compile.inlining import prepare_call
    from func.interpreters.compile.native.executable import rerolled
    from func.interpreters.compile.native.translate import translate

    machine = machine or H200
    library = FuncJit(func)
    data = job.data(alone=True)
    program = rerolled(prepare_call(func.jit(job.make_job(library)).cached_call(data, {})[-1].compiled))
    plan = device_plan(translate(program, program.nan_safe is not None, libraries=False))
    costs = predicted(plan, machine)
    slowest = sorted(costs, key=lambda cost: -cost.runs * cost.seconds)[:2]
    launches, seconds = sum([cost.runs for cost in costs]), total_seconds(costs, machine)
    if program.nan_safe is not None:  # its kernels read the status, and return
        variant = device_plan(translate(rerolled(program.nan_safe), libraries=False), guarded=True)
        idle = sum([cost.runs for cost in predicted(variant, machine)])
        launches, seconds = launches + idle, seconds + idle * machine.replay
    return Prediction(
        job.name,
        machine.name,
        seconds,
        launches,
        sum([cost.runs * cost.bytes for cost in costs]),
        sum([cost.runs * cost.operations for cost in costs]),
        f"{job.bound}: {'; '.join(dict.fromkeys([cost.title for cost in slowest]))}",
    )


def predict_all(jobs: Sequence[DeviceJob] = JOBS) -> list[Prediction]:
    """The predictions of all jobs."""
    return [predict(job) for job in jobs]


def write(file: Path = FILE) -> list[Prediction]:
    """Predict, and write the result to a file."""
    predictions = predict_all()
    file.write_text(json.dumps(as_data(predictions), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return predictions


def stored(file: Path = FILE) -> list[Prediction]:
    """The predictions in the file."""
    return [Prediction(**each) for each in json.loads(file.read_text(encoding="utf-8"))]
