"""The time of `import func` in a fresh interpreter, against its dependencies alone and against the peers.

Bytecode stays on disk, as for installed packages, whatever the environment of the benchmark sets.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.contestants import DEPENDENCIES, FUNC, HIPS, JAX, TORCH
from benchmarks.workload import Bar, Call, Workload

_TIMED = "import time\nstart = time.perf_counter()\n{}\nprint(time.perf_counter() - start)"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def importing(statement: str) -> Callable[[Any], Call]:
    """An entry that runs the statement in a new process and returns its seconds without the start-up."""

    def fresh_interpreter() -> float:
        command = [sys.executable, "-c", _TIMED.format(statement)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment())
        return float(done.stdout)

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
