"""How Sphinx builds the pages."""

import importlib
import inspect
import os
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

import func

os.environ["TQDM_DISABLE"] = "1"  # pages need no bars of progress
project = "func"
author = "the func developers"
copyright = f"2026, {author}"
version = release = func.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
# Names of NumPy, SciPy and CuPy become links where their lists of names can be fetched: set FUNC_INTERSPHINX=1 for a
# build that is published. Without it a build needs no network, and its checks do not depend on other sites.
if os.environ.get("FUNC_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "cupy": ("https://docs.cupy.dev/en/stable/", None),
    }
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

# Every script of the folders is run, and becomes a page with what it prints and draws, in a style that telephones show
# well and with a second, finer picture for screens of many pixels.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "",
    "abort_on_example_error": True,
    "capture_repr": (),
    "copyfile_regex": r".*\.rst",
    "reset_modules": ("matplotlib", "tools.gallery_style.apply"),
    "image_scrapers": ("tools.gallery_style.checked_images",),
    "image_srcset": ["2x"],
    "subsection_order": [f"../examples/{name}" for name in ("with_scipy", "workers", "processes", "study")],
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "within_subsection_order": "tools.gallery_style.InOrder",
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference: a page for every public name, and one for each group of them with a table.
TOPICS = {
    "Gradients": "grad value_and_grad grad_and_value elementwise_grad vjp jvp linearize linear_transpose stop_gradient",
    "Jacobians and Hessians": "jacobian jacrev jacfwd hessian lagrangian_hessian hvp vhp ggnvp propagate",
    "Batches": "vmap map spmd",
    "Compilation": "jit make_program eval_shape to_source to_c export CModule save load disable_jit clear_caches",
    "Branches and loops": "cond switch while_loop fori_loop scan associative_scan",
    "Rules of your own": "custom_jvp custom_vjp custom_gradient custom_vmap custom_root custom_linear_solve "
    "fixed_point pure_callback",
    "Memory": "checkpoint remat checkpoint_name checkpoint_policies memory",
    "Higher orders": "jet taylor taylor_flow derivatives laplacian biharmonic divergence hessian_diagonal "
    "directional_derivatives hutchinson_trace hutchinson_diagonal hutch_plus_plus",
    "Sparse derivatives": "sparse_jacobian sparse_hessian sparsity spy",
    "Samples and curvature": "per_sample sum_over linear_operator kronecker_factors ntk lanczos lanczos_quadrature",
    "Tensors": "tensor Tensor backward no_grad enable_grad set_grad_enabled is_grad_enabled inference_mode",
    "Arrays that hold traced values, and settings": "intercept config",
}
"""The names of func itself, by topic; `map` is among them although a star import leaves it alone."""
GUIDES = {
    "Gradients": "transforms",
    "Jacobians and Hessians": "transforms",
    "Batches": "transforms",
    "Compilation": "jit",
    "Branches and loops": "control-flow",
    "Rules of your own": "extending",
    "Memory": "memory",
    "Higher orders": "taylor",
    "Sparse derivatives": "sparse",
    "Samples and curvature": "curvature",
    "Tensors": "autograd",
    "Arrays that hold traced values, and settings": "configuration",
    "func.autograd": "autograd",
    "func.autograd.forward_ad": "autograd",
    "func.autograd.functional": "autograd",
    "func.autograd.graph": "autograd",
    "func.collectives": "spmd",
    "func.debug": "debugging",
    "func.errors": "errors",
    "func.linalg": "numpy",
    "func.random": "random",
    "func.special": "scipy",
    "func.testing": "testing-gradients",
    "func.tree": "classes",
}
"""The page that tells about each topic, and about each module."""
MODULES = "autograd collectives debug errors linalg random special testing tree"
INSIDE = "autograd.graph autograd.functional autograd.forward_ad"
ELSEWHERE = {"numpy": "coverage", "scipy": "scipy-coverage"}
"""Modules whose functions are NumPy's and SciPy's, with the pages that list them."""
MOST_SIBLINGS = 12
"""Names of a topic that each of its pages lists; of more, the page of the module is the list."""


def description_of(full: str, name: str, thing: Any) -> str:
    """The directive that describes a public name; a class under another name has the words next to its name."""
    if inspect.isclass(thing) and thing.__name__ != name:
        words = ModuleAnalyzer.for_module("func.autograd.tensors").find_attr_docs()["", name]
        return f".. py:class:: {full}\n\n" + "".join([f"   {line}\n" for line in words])
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    members = "   :members:\n   :show-inheritance:\n" if kind == "class" else ""
    return f".. auto{kind}:: {full}\n{members}"


def pages_of(module: str, topic: str, names: list[str], folder: Path) -> str:
    """Write a page for each public name of a module, which the sidebar does not list; returns the table of them."""
    for name in names:
        full, thing = f"{module}.{name}", getattr(importlib.import_module(module), name)
        siblings = [f":py:obj:`{module}.{other}`" for other in names if other != name and len(names) <= MOST_SIBLINGS]
        seen_also = ", ".join([*siblings, f":doc:`/{GUIDES[topic]}`"])
        above = f".. rst-class:: above\n\n:doc:`Reference </api>` › :doc:`{module} </reference/{module}>`"
        parts = [":orphan:", f"{full}\n{'=' * len(full)}", above + ("" if topic == module else f" › {topic}")]
        parts += [description_of(full, name, thing), f".. seealso:: {seen_also}\n"]
        (folder / f"{full}.rst").write_text("\n\n".join(parts))
    entries = "\n".join([f"   {name}" for name in names])
    return f".. autosummary::\n   :nosignatures:\n\n{entries}\n"


def write_reference(folder: Path) -> None:
    """Write the pages; a public name of func that has no topic is an error."""
    named = [name for names in TOPICS.values() for name in names.split()]
    modules = [*MODULES.split(), *ELSEWHERE]
    if missing := {*func.__all__, "map"} ^ {*named, *modules}:
        raise ValueError(f"docs/conf.py: the reference has no topic for these, or they are gone: {sorted(missing)}")
    (folder / "names").mkdir(parents=True, exist_ok=True)
    parts = ["func\n====\n", ".. currentmodule:: func\n"]
    for topic, names in TOPICS.items():
        parts += [f"{topic}\n{'-' * len(topic)}\n", pages_of("func", topic, names.split(), folder / "names")]
    (folder / "func.rst").write_text("\n".join(parts))
    for name in [*MODULES.split(), *INSIDE.split()]:
        title = f"func.{name}"
        module = importlib.import_module(title)
        listed = [one for one in module.__all__ if name != "autograd" or one not in func.__all__]
        listed = [one for one in listed if not inspect.ismodule(getattr(module, one))]
        table = pages_of(title, title, listed, folder / "names")
        (folder / f"{title}.rst").write_text(f"{title}\n{'=' * len(title)}\n\n.. automodule:: {title}\n\n{table}")


write_reference(Path(__file__).parent / "reference")
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88  # a longer one has a line for each parameter
napoleon_custom_sections = ["Source"]
default_role = "code"

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"  # the pair of Furo's light one
html_title = f"func {release}"
html_short_title = "func"
html_static_path = ["_static"]
html_css_files = ["func.css"]
html_show_sourcelink = False

# The button of a block copies statements without prompts, and leaves out what they print.
copybutton_prompt_text = r">>> ?|\.\.\. ?"
copybutton_prompt_is_regexp = True

# Links to the repository and the source of each page, if pyproject.toml or the environment has the address.
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = os.environ.get("FUNC_REPOSITORY") or PROJECT.get("urls", {}).get("Repository", "")
if REPOSITORY:
    html_theme_options = {
        "source_repository": REPOSITORY,
        "source_branch": "main",
        "source_directory": "docs/",
        "announcement": f'func {release} · <a href="{REPOSITORY}">Source</a>',
    }


def escape_signs(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """|x| and (*shape, n) mean what they mean in mathematics and Python, not substitutions and emphasis."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = line.replace("|", r"\|").replace("*", r"\*")


def trim_blocks(app: Any, document: nodes.document) -> None:
    """Leave out the empty line that the highlighter of sessions keeps at the end of a block."""
    for block in document.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # what Sphinx highlights
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def write_ellipsis(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Callable[..., Any] as Python writes it; Sphinx prints a list around the ellipsis."""
    with_list, without = "Callable[[...], ", "Callable[..., "
    return signature and signature.replace(with_list, without), returned and returned.replace(with_list, without)


def hide_edit_links(app: Any, page: str, template: str, context: dict[str, Any], document: nodes.document) -> None:
    """Pages that the build makes have no source to edit."""
    if page.startswith(("gallery/", "reference/")):
        context["page_source_suffix"] = ""


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", hide_edit_links)
    app.connect("autodoc-process-signature", write_ellipsis)
    app.connect("doctree-read", trim_blocks)
    app.connect("autodoc-process-docstring", escape_signs, priority=400)
