"""The time of `import func` in a fresh interpreter, against its dependencies alone and against the peers."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.contestants import DEPENDENCIES, FUNC, HIPS, JAX, TORCH
from benchmarks.workload import Bar, Call, Workload

_TIMED = "import time\nstart = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def importing(statement: str) -> Callable[[Any], Call]:
    """An entry that runs the statement in a new process and returns its seconds without the start-up."""

    def fresh_interpreter() -> float:
        command = [sys.executable, "-c", _TIMED.format(statement)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return lambda _: fresh_interpreter


WORKLOAD = Workload(
    "import",
    f"import in a fresh interpreter; {DEPENDENCIES}: numpy, scipy.linalg and optree alone",
    {
        FUNC: importing("import func"),
        HIPS: importing("import autograd.numpy"),
        TORCH: importing("import torch"),
        JAX: importing("import jax.numpy"),
        DEPENDENCIES: importing("import numpy, scipy.linalg, optree"),
    },
    bars=(Bar(DEPENDENCIES, 1.3),),
    slow=frozenset({TORCH, JAX}),
    times_itself=True,
)
