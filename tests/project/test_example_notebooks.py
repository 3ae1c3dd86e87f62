"""The notebooks of examples have the text and the code of the scripts, in the order of the scripts."""

import ast

import pytest

from tools.notebooks import EXAMPLES, ROOT, notebook_of

pytest.importorskip("sphinx_gallery", reason="the extra 'docs' is not installed")


@pytest.mark.parametrize("name", EXAMPLES)
def test_cells_are_the_code_of_the_script(name: str) -> None:
    script = ROOT / "examples" / f"{name}.py"
    cells = notebook_of(script)["cells"]
    assert cells[0]["cell_type"] == "markdown" and {cell["cell_type"] for cell in cells} == {"markdown", "code"}
    code = "\n".join(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"])
    statements = ast.parse(script.read_text(encoding="utf-8")).body[1:]  # without the documentation
    assert [ast.dump(statement) for statement in ast.parse(code).body] == [ast.dump(s) for s in statements]
    assert all([cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"])
