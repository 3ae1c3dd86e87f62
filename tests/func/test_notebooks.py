"""The display in notebooks: tables, pictures, and names that are text whatever their characters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest

import func
from func.compilation.memory_timeline import MemoryTimeline
from func.compilation.profile import Profile, ProfileRow
from tests.support.pages import read_html

HOSTILE = "<script>alert('$x$ & \"y\"')</script>"
X = np.array([[1.0, 2.5], [-3.0, 4e-9]])


def hostile_function() -> Any:
    """A tensor whose grad_fn has a name that no page may take for a tag."""
    rules = {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(lambda ctx, ct: ct * 2)}
    kind: Any = type(HOSTILE, (func.autograd.Function,), rules)
    return kind.apply(func.tensor(X, requires_grad=True))


def hostile_profile() -> Profile:
    rows = [ProfileRow("0", HOSTILE, 2e-3, 1, 80, 8, 0, False), ProfileRow("0.0", "inside", 1e-3, 7, 0, 0, 5, True)]
    return Profile(rows, 2.5e-3, 1e10, 3, HOSTILE)


def hostile_memory() -> MemoryTimeline:
    def f(x: Any) -> Any:
        return x + 1

    f.__name__ = HOSTILE
    return func.memory(f)(X)


def hostile_program() -> Any:
    return func.make_program(lambda x: func.checkpoint_name(x * 2, HOSTILE))(X)


PAGES: dict[str, Callable[[], Any]] = {
    "grad_fn": hostile_function,
    "profile": hostile_profile,
    "memory": hostile_memory,
    "Program": hostile_program,
}


@pytest.mark.parametrize("name", PAGES)
def test_names_are_text_whatever_is_in_them(name: str) -> None:
    reader = read_html(PAGES[name]()._repr_html_())
    assert "alert" in reader.text and "script" not in reader.seen


def test_pictures_are_svg_in_notebooks_and_text_elsewhere(tmp_path: Path) -> None:
    program, pattern = hostile_program(), np.eye(3)
    pictures: list[tuple[Any, str, Callable[[Path], str]]] = [
        (program.draw(), str(program), program.draw),
        (func.spy(pattern), "3 × 3, 3 entries\n■··\n·■·\n··■", lambda path: func.spy(pattern, path)),
    ]
    for picture, text, write in pictures:
        assert str in type(picture).__mro__ and repr(picture) == str(picture) == text
        root = ElementTree.fromstring(picture._repr_svg_())
        assert root.tag.endswith("svg") and not any([element.tag.endswith("script") for element in root.iter()])
        write(tmp_path / "picture.svg")
        assert (tmp_path / "picture.svg").read_text(encoding="utf-8") == picture.svg


def test_the_style_of_a_picture_is_for_the_picture_alone() -> None:
    root = ElementTree.fromstring(hostile_program().draw().svg)
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert style is not None and style.text is not None
    rules = [rule for rule in style.text.split("}") if rule]
    assert rules and all([rule.startswith(f".{root.attrib['class']} ") for rule in rules])


LARGE = func.tensor(np.arange(600.0).reshape(30, 20), requires_grad=True)
TABLES: dict[str, tuple[Any, list[str], list[str]]] = {
    "matrix": (func.tensor(X), ["1.0e+00", "2.5e+00", "-3.0e+00", "4.0e-09"], ["shape (2, 2)", "float64"]),
    "vector": (func.tensor([1, 2, 3]), ["1", "2", "3"], ["shape (3,)", "int64"]),
    "leaf": (func.tensor([0.5], requires_grad=True), ["0.5"], ["requires_grad=True"]),
    "recorded": (func.tensor([0.5], requires_grad=True) * 2, ["1."], ["grad_fn=<MultiplyBackward>"]),
    "complex": (func.tensor([1 + 2j], dtype=np.complex64), ["1.+2.j"], ["complex64"]),
    "bool": (func.tensor([True, False]), ["True", "False"], ["bool"]),
    "large": (LARGE, ["0.", "5.", "…", "14.", "19.", "580.", "599."], ["shape (30, 20)"]),
    "number": (func.tensor(3.0), ["3."], ["shape ()"]),
    "empty": (func.tensor(np.ones((0, 3))), [], ["shape (0, 3)"]),
    "three axes": (func.tensor(np.ones((2, 1, 2))), ["[[1. 1.]]"], ["shape (2, 1, 2)"]),
}


@pytest.mark.parametrize("case", TABLES)
def test_tensors_are_tables(case: str) -> None:
    tensor, numbers, words = TABLES[case]
    reader = read_html(tensor._repr_html_())
    assert ("td" in reader.seen) == (1 <= tensor.ndim <= 2 and tensor.size > 0)
    for word in [*numbers, *words]:
        assert word in reader.text


def test_a_large_tensor_is_a_small_table() -> None:
    page = LARGE._repr_html_()
    assert page.count("<tr>") == 13 and page.count("<td") == 13 * 13


@pytest.mark.parametrize("transform", [func.grad, func.jit, func.make_program])
def test_what_a_transform_traces_has_no_table(transform: Any) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(x._repr_html_())
        return np.sum(x)

    transform(f)(X)
    assert seen[0] is None


def test_a_profile_is_drawn() -> None:
    matplotlib.use("agg")
    profile = func.jit(lambda x: np.tanh(x @ x)).profile(np.ones((8, 8)), repeat=1)
    axes = profile.plot()
    labels = [f"{row.number}  {row.title}" for row in profile.rows]
    assert [label.get_text() for label in axes.get_yticklabels()] == labels
    assert len(axes.patches) == len(profile.rows) and profile.plot(axes) is axes
    matplotlib.pyplot.close(axes.figure)
    axes = hostile_profile().plot()
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == "ms" and [bar.get_width() for bar in axes.patches] == [2.0, 1.0]
    matplotlib.pyplot.close(axes.figure)


def test_pictures_of_profiles_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(func.errors.ArgumentError, match=r"func\.jit: profile: plot needs matplotlib"):
        hostile_profile().plot()
