"""Four examples as notebooks: `python -m tools.notebooks FOLDER` makes them from the scripts and executes every cell.

The cells are those of the gallery's downloads. A cell that raises ends the run with its error.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ("tanh_derivatives", "logistic_regression", "gaussian_process", "double_pendulum")
SECONDS = 60
"""The limit of one cell."""


def notebook_of(script: Path) -> dict[str, Any]:
    """The notebook of an example, without outputs: its texts and its code, cell by cell."""
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    blocks = split_code_and_text_blocks(str(script))[1]
    made: dict[str, Any] = jupyter_notebook(blocks, copy.deepcopy(DEFAULT_GALLERY_CONF), str(script.parent))
    return made


def executed(notebook: dict[str, Any]) -> Any:
    """The notebook with the outputs of its cells, run in a separate kernel. Raises CellExecutionError."""
    import nbclient
    import nbformat

    node = nbformat.reads(json.dumps(notebook), as_version=4)  # which joins the lines of cells
    client = nbclient.NotebookClient(node, timeout=SECONDS, resources={"metadata": {"path": str(ROOT)}})
    return client.execute()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the executed notebooks are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        start = time.perf_counter()
        made = executed(notebook_of(ROOT / "examples" / f"{name}.py"))
        (folder / f"{name}.ipynb").write_text(json.dumps(made, indent=1), encoding="utf-8")
        print(f"executed {name}.ipynb in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
