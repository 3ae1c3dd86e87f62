"""The programs of examples/workers run to their end, where they assert what they promise; one on less data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CALLS = {
    "hyper_parameters": "main()",
    "regression_over_blocks": "main(rows=400_000, block=50_000)",
}


def test_every_program_is_run() -> None:
    assert sorted(CALLS) == [path.stem for path in sorted((ROOT / "examples" / "workers").glob("*.py"))]


@pytest.mark.parametrize("name", CALLS)
def test_program_keeps_its_promise(name: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("matplotlib")
    folder = ROOT / "examples" / "workers"
    script = tmp_path / "run.py"
    script.write_text(
        f"import {name}\nimport matplotlib.pyplot as plt\nfrom tools.gallery_style import apply, faults\n"
        f"if __name__ == '__main__':\n    apply({{}}, '')\n    {name}.{CALLS[name]}\n"
        "    assert plt.get_fignums() and not faults(plt.gcf()), faults(plt.gcf())\n"
    )
    path = os.pathsep.join([str(ROOT), str(folder)])
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
