"""Every workload in a separate process: a crash or a hang only affects itself.

The child is `python -m benchmarks.apart FOLDER`. It reads its settings from a file in the folder. There it writes the
contestant that it has begun, and at last the measurements.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.contestants import CONTESTANTS, load_libraries
from benchmarks.environment import limit_threads
from benchmarks.timing import Effort
from benchmarks.workload import Measurement, Result, Workload

SETTINGS, STAGE, RESULTS = "settings.json", "stage", "results.json"
TIMING = "timing"
PATIENCE = 3.0


@dataclass(frozen=True)
class Settings:
    """The instructions of the child; `only` names its contestants."""

    workload: str
    effort: Effort
    only: tuple[str, ...]
    slow: bool
    threads: int


def run_apart(workload: Workload, settings: Settings) -> Result:
    """The measurements of a child. If it ends under a contestant, that one is left out, and the others start again."""
    lost: dict[str, str] = {}
    while True:
        rest = tuple(name for name in settings.only if name not in lost)
        with tempfile.TemporaryDirectory() as folder:
            stage, words = _child(Path(folder), replace(settings, only=rest))
            results = Path(folder, RESULTS)
            rows = json.loads(results.read_text()) if results.exists() else None
        if rows is not None:
            measured = {row["contestant"]: Measurement(**row) for row in rows}
            break
        if stage not in rest:
            measured, lost = {}, lost | dict.fromkeys(rest, words)
            break
        lost[stage] = words
    measured |= {name: Measurement(name, left_out=words, broken=True) for name, words in lost.items()}
    return Result(workload, tuple(measured[row.name] for row in CONTESTANTS if row.name in measured))


def _child(folder: Path, settings: Settings) -> tuple[str, str]:
    """Run the child to its end, or until a contestant does not return; the last stage, and words on the end."""
    (folder / SETTINGS).write_text(json.dumps(asdict(settings)))
    stage_file = folder / STAGE
    stage_file.write_text("")
    limit = PATIENCE * settings.effort.first_limit
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.apart", str(folder)], stdout=subprocess.DEVNULL)
    words = ""
    while process.poll() is None:
        time.sleep(0.05)
        waited = time.time() - stage_file.stat().st_mtime
        if stage_file.read_text() != TIMING and waited > limit and not (folder / RESULTS).exists():
            process.kill()
            words = f"a call does not come back within {limit:g} s"
    return stage_file.read_text(), words or f"the process ended with status {process.returncode}"


def main() -> int:
    """The child."""
    folder = Path(sys.argv[1])
    fields = json.loads((folder / SETTINGS).read_text())
    settings = Settings(**fields | {"effort": Effort(**fields["effort"]), "only": tuple(fields["only"])})
    limit_threads(settings.threads)
    from benchmarks.runner import run, taking_part
    from benchmarks.workloads import WORKLOADS

    workload = next(workload for workload in WORKLOADS if workload.name == settings.workload)
    libraries, missing = load_libraries(taking_part(workload, settings.slow, settings.only))
    result = run(
        workload, libraries, missing, settings.effort, settings.slow, settings.only, (folder / STAGE).write_text
    )
    (folder / "part").write_text(json.dumps([asdict(measurement) for measurement in result.measurements]))
    (folder / "part").rename(folder / RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
