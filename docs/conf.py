"""How Sphinx builds the pages."""

from typing import Any

import func

project = "func"
author = "the func developers"
copyright = f"2026, {author}"
version = release = func.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

# Every script of the folders is run, and becomes a page with what it prints and draws. Those left out draw nothing, or
# run for long.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "",
    "ignore_pattern": r"(exported_arm|newton_roots|per_sample_gradients|tensor_training)\.py",
    "abort_on_example_error": True,
    "capture_repr": (),
    "copyfile_regex": r".*\.rst",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "within_subsection_order": "FileNameSortKey",
}

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
