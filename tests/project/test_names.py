"""One name, one meaning: modules and classes of the source, and words that the glossary replaces."""

import ast
import collections
import importlib
import inspect
import io
import re
import tokenize
from pathlib import Path

import pytest

import func

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in ("func", "interpreters", "backends")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not (folder == "func" and path.relative_to(ROOT / folder).parts[0] in ("interpreters", "backends"))
]

# Modules of one name that have one subject, at different levels: public functions, their primitives, native code.
# fmt: off
SAME_SUBJECT = {
    "checkpointing", "checks", "collectives", "contraction", "convolution", "cumulative",
    "diagonals", "elementary", "errors", "factorizations", "fft", "gamma", "indexing",
    "integrals", "inverses", "linalg", "matrix_functions", "modes", "normal", "products", "protocol",
    "reductions", "rules", "solving", "sorting", "sparse", "special", "spectra", "spectral",
}
# fmt: on

# Public classes, and what they show: func.autograd's Function and Node, LLVM's Function.
SAME_CLASS_NAME = {"Function", "Node"}

REPLACED = re.compile(
    r"(?i)(?:^|_)(zero_?wins|congruences|rehearsal|rehearsed|mended|woven|strands?|dear|patient|prefixes|grown|settled)(?:_|$)"
)


def test_modules_of_one_name_have_one_subject() -> None:
    places = collections.Counter(path.stem for path in FILES if path.name != "__init__.py")
    assert {name for name, count in places.items() if count > 1} == SAME_SUBJECT


def test_classes_of_one_name_are_one_class() -> None:
    names = collections.Counter(
        node.name for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == SAME_CLASS_NAME


def test_no_identifier_has_a_word_that_the_glossary_replaces() -> None:
    replaced = {
        f"{path.relative_to(ROOT)}: {token.string}"
        for path in FILES
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.NAME and REPLACED.search(token.string)
    }
    assert not replaced


WITH_EXAMPLES = ("func", "func.autograd", "func.collectives", "func.debug", "func.testing", "func.tree")


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_every_public_name_has_an_example_that_runs(module: str) -> None:
    """The doctests run with the tests. Modules need none, since they have pages.

    Nor do the error classes, each of which has a program in docs/errors.md. The functions of `func.numpy`,
    `func.linalg`, `func.special` and `func.scipy` do the same as NumPy's and SciPy's of the same names. Their
    documentation has the examples; func's shows the additions.
    """
    namespace = importlib.import_module(module)
    without = [
        name
        for name in namespace.__all__
        if not inspect.ismodule(value := getattr(namespace, name)) and ">>>" not in (inspect.getdoc(value) or "")
    ]
    assert sorted(without) == (["Report"] if module == "func.debug" else [])


def test_one_convention_of_samples_has_examples() -> None:
    """Samples of func.random differ in their parameters alone: those that do not show one, say the parameters."""
    namespace = func.random
    with_examples = [name for name in namespace.__all__ if ">>>" in (inspect.getdoc(getattr(namespace, name)) or "")]
    assert {"key", "split", "normal", "uniform", "gamma", "Generator"} <= {*with_examples}
    assert all(inspect.getdoc(getattr(namespace, name)) for name in namespace.__all__)
