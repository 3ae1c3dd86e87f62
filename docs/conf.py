"""How Sphinx builds the pages."""

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
