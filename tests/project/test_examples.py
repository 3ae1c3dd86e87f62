"""Every example runs to its end, where it asserts what it promises, and draws a picture that a telephone can show."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.gallery_style import FIRST, TILES, apply, faults

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"
STUDY = FOLDER / "study" / "per_sample_gradients.py"
SHORT = sorted(FOLDER.glob("*.py"))
LONG = sorted((FOLDER / "with_scipy").glob("*.py"))
SPREAD = [*sorted((FOLDER / "processes").glob("*.py")), FOLDER / "workers" / "hyper_parameters.py"]
"""Of processes and workers; another one needs a cluster and is run, on less data, by the tests of workers."""
MOST_LINES = {"examples": 60, "with_scipy": 150, "study": 300}
"""In a folder: of a short program the lines after its introduction that are not empty, of others all lines."""
WITHOUT_JIT = {
    "exported_arm": "its functions leave for C and NumPy",
    "newton_roots": "each batch element takes its own number of steps, in a loop of Python",
    "tensor_training": "tensors and backward are eager",
    "bilevel_penalties": "the inner solver is SciPy's",
    "bundle_adjustment": "sparse Jacobians compile on their own",
    "poisson_shape": "the solver is SciPy's",
    "swing_up": "sparse Jacobians compile on their own",
}
GALLERY = {
    "six derivatives of tanh": "tanh_derivatives",
    "logistic regression": "logistic_regression",
    "curve fitting with exact covariance": "curve_fit_covariance",
    "Rosenbrock with every SciPy optimiser": "rosenbrock_optimisers",
    "Gaussian process with posterior band": "gaussian_process",
    "HMC": "hamiltonian_monte_carlo",
    "Kalman filter": "kalman_filter",
    "neural ODE": "neural_ode_pendulum",
    "PINN": "physics_informed",
    "double pendulum by its Lagrangian": "double_pendulum",
    "orbit transfer": "orbit_transfer",
    "MAML": "maml",
    "DP-SGD": "dp_sgd",
    "image deblurring": "image_deblurring",
    "robot arm, exported": "exported_arm",
    "Black-Scholes greeks with profile()": "black_scholes",
    "Lotka-Volterra fit": "lotka_volterra",
    "influence functions": "influence_functions",
    "per-sample gradients": "per_sample",
    "roots and their derivatives": "newton_roots",
    "tensors and backward": "tensor_training",
}
BOILERPLATE = re.compile(r"# fmt|# type: ignore|# noqa|np\.ndarray\[|^from typing|__future__|__main__", re.MULTILINE)
DRAWING = re.compile(r"plt\.(?:subplots|subplot_mosaic|figure)\(")


def run(*arguments: str | Path) -> str:
    """Runs Python on a program as a user would, a RuntimeWarning being an error, and returns what it printed."""
    completed = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "agg"},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def code_lines(text: str) -> int:
    """The lines after the introduction that are not empty."""
    end = ast.parse(text).body[0].end_lineno
    return len([line for line in text.splitlines()[end:] if line.strip()])


@pytest.mark.parametrize("script", SHORT + LONG, ids=lambda script: script.stem)
def test_example_keeps_its_promise_and_draws(script: Path) -> None:
    assert run("-m", "tools.gallery_style", script).strip(), "an example says what it found"


@pytest.mark.parametrize("script", SPREAD, ids=lambda script: script.stem)
def test_example_of_processes_draws(script: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py cannot be installed here")
    assert run("-m", "tools.gallery_style", script).strip(), "an example says what it found"


@pytest.mark.parametrize("folder", ["processes", "workers"])
def test_examples_of_processes_are_pages(folder: str) -> None:
    assert (FOLDER / folder / "GALLERY_HEADER.rst").exists()
    for script in (FOLDER / folder).glob("*.py"):
        text = script.read_text(encoding="utf-8")
        assert re.match(r'"""\n.+\n=+\n\n', text), "sphinx-gallery makes the page's title of it"
        assert "\n# %%\n" in text and text.count("    plt.show()\n") == 1 and len(DRAWING.findall(text)) == 1
        assert "assert " in text or "assert_allclose(" in text


@pytest.mark.parametrize("script", [*SHORT, *LONG, STUDY], ids=lambda script: script.stem)
def test_example_is_short_and_plain(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    lines = code_lines(text) if script in SHORT else len(text.splitlines())
    assert lines <= MOST_LINES[script.parent.name]
    assert text.startswith('"""\n') and re.match(r'"""\n.+\n=+\n\n', text), (
        "sphinx-gallery makes the page's title of it"
    )
    assert "\n# %%\n" in text and text.endswith("plt.show()\n")
    assert not BOILERPLATE.search(text)
    assert script == STUDY or "\nassert " in text or "assert_allclose(" in text or "    assert " in text
    assert len(DRAWING.findall(text)) == (2 if script.stem == "fit_reaction" else 1), "one picture"
    assert ("func.jit" in text) != (script.stem in WITHOUT_JIT)


def test_gallery_has_the_subjects_it_shall_have() -> None:
    assert sorted(GALLERY.values()) == [script.stem for script in SHORT]
    assert {*FIRST} < {*GALLERY.values()}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_tiles_lead_to_examples(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"_static/tiles/(\w+)\.png", text)) == set(TILES)
    for tile, name in TILES.items():
        assert (ROOT / "docs" / "_static" / "tiles" / f"{tile}.png").read_bytes().startswith(b"\x89PNG")
        assert re.search(rf"tiles/{tile}\.png\)\]\((?:examples|gallery)/{name}(?:\.py)?\)", text), tile


def test_links_to_examples_lead_to_scripts() -> None:
    links = 0
    for page in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"gallery/([\w/]+?)(?:\.rst)?\)", page.read_text(encoding="utf-8")):
            links += 1
            assert name == "index" or (FOLDER / f"{name}.py").exists(), (page.name, name)
    assert links > 20


def test_words_that_lie_on_others_are_faults() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    with plt.rc_context():
        apply({}, "")
        figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
        axes.plot([0, 1], label="line")
        axes.legend()
        axes.set(title="words", xlabel="x")
        assert faults(figure) == []
        axes.text(0.5, 0.5, "one")
        axes.text(0.5, 0.5, "two", fontsize=5)
        figure.text(0.9, 0.5, "much too long to stay inside")
        found = faults(figure)
        plt.close(figure)
    assert any(fault == "'one' lies on 'two'" for fault in found)
    assert any(fault.startswith("'two' has letters of") for fault in found)
    assert any(fault == "'much too long to stay inside' leaves the picture" for fault in found)


def test_study_in_its_quick_setting(tmp_path: Path) -> None:
    figure = tmp_path / "figures" / "per_sample_gradients.png"
    printed = run(STUDY, "--quick", "--output", figure)
    assert printed.count("    ok: ") == 10, printed
    assert "all checks hold" in printed
    assert figure.read_bytes().startswith(b"\x89PNG")
