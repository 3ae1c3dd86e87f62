"""How Sphinx builds the pages."""

from typing import Any

import func

project = "func"
author = "the func developers"
copyright = f"2026, {author}"
version = release = func.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_custom_sections = ["Source"]
default_role = "code"

html_theme = "furo"
html_title = "func"
html_static_path = ["_static"]
html_css_files = ["func.css"]
html_show_sourcelink = False


def escape_signs(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """|x| and (*shape, n) mean what they mean in mathematics and Python, not substitutions and emphasis."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = line.replace("|", r"\|").replace("*", r"\*")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", escape_signs, priority=400)
