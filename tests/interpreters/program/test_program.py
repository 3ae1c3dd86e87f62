"""The Program as a thing to read, compare, keep and look at."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError, ProgramError
from func.interpreters.core import PRIMITIVES, Aval
from func.interpreters.primitives.elementwise import table as ew
from func.interpreters.program.checking import check_program
from func.interpreters.program.drawing import BENDS, GAP, DrawnNode, Edge, Graph, program_graph
from func.interpreters.program.equality import canonical
from func.interpreters.program.program import Equation, Program, Var
from tests.support.pages import read_html
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

ALL = [pytest.param(name, sample, id=f"{name}-{i}") for name, own in SAMPLES.items() for i, sample in enumerate(own)]
WEIGHTS = np.linspace(0.0, 1.0, 6).reshape(2, 3)


def sampled(name: str, sample: Sample) -> Program:
    """The program of one call of a primitive."""

    def call(*args: Any) -> Any:
        out = PRIMITIVES[name](*args, **sample.params)
        return tuple(out) if PRIMITIVES[name].multiple else (out,)

    return func.make_program(call)(*sample.args)


def running_sum(x: Any) -> Any:
    """A scan, for nested programs."""
    return func.scan(lambda carry, row: (carry + row, np.sin(carry)), x[0], x)


def layer(x: Any) -> Any:
    """A function with a constant and a scalar."""
    return np.tanh(WEIGHTS @ x) * 2.0


def test_equations_answer_to_the_former_name_of_their_primitive() -> None:
    equation = func.make_program(np.sin)(np.ones(3)).equations[0]
    assert equation.row is equation.primitive


def test_text_names_shapes_and_dtypes() -> None:
    assert str(func.make_program(layer)(np.ones(3))).splitlines() == [
        "program(a:f64[3]) {",
        "  b:f64[2,3] = constant f64[2,3]",
        "  c:f64[2] = contract[spec=ab,b->a] b a",
        "  d:f64[2] = tanh c",
        "  e:f64[2] = multiply d 2.0",
        "  return e",
        "}",
    ]


def test_text_with_source_lines() -> None:
    program = func.make_program(running_sum)(np.ones(3))
    plain, lines = program.text().splitlines(), program.text(lines=True).splitlines()
    assert len(plain) == len(lines)
    for short, long in zip(plain, lines, strict=True):
        if " = " in short and "{" not in short:
            assert long.startswith(f"{short} ") and "test_program.py:" in long and "`" in long
        else:
            assert long == short


def test_nested_programs_are_printed_below_their_equation() -> None:
    program = func.make_program(running_sum)(np.ones(3))
    lines = str(program).splitlines()
    at = next(i for i, line in enumerate(lines) if "scan_call" in line)
    assert "body=program" in lines[at]
    assert lines[at + 1 : at + 6] == [
        "    body = program(a:f64[], b:f64[]) {",
        "      c:f64[] = add a b",
        "      d:f64[] = sin a",
        "      return c, d",
        "    }",
    ]


def test_branches_are_numbered() -> None:
    program = func.make_program(lambda x: func.cond(x > 0, np.sin, np.cos, x))(1.0)
    text = str(program)
    assert "branches=(program, program)" in text
    assert "    branches[0] = program(" in text and "    branches[1] = program(" in text
    equation = program.equations[-1]
    assert [key for key, _ in equation.nested()] == ["branches[0]", "branches[1]"]


def test_notebook_form() -> None:
    program = func.make_program(lambda x: func.checkpoint_name(running_sum(x)[1] < 2.0, "<b>&"))(np.ones(3))
    page = program._repr_html_()
    assert "<b>" not in page
    reader = read_html(page)
    assert {"pre", "details", "summary", "span"} <= reader.seen
    assert str(program) in reader.text
    assert "test_program.py" in reader.text
    assert program.cost().summary in reader.text and str(program.cost()) in reader.text


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_traced_twice_is_equal(name: str, sample: Sample) -> None:
    first, second = sampled(name, sample), sampled(name, sample)
    assert first is not second
    assert first == second and hash(first) == hash(second)
    assert {first: 1}[second] == 1


@dataclass
class Box:
    """A parameter that is a dataclass, and has no hash."""

    value: Any
    name: str


def with_param(value: Any) -> Program:
    """A program whose only equation has a parameter of any kind."""
    x, y = Var(Aval((), np.float64)), Var(Aval((), np.float64))
    return Program([x], [Equation(PRIMITIVES["named"], (x,), {"label": value}, (y,))], [y], {})


UNUSUAL = [
    None,
    ...,
    1.5,
    float("nan"),
    -0.0,
    1 + 2j,
    "word",
    (1, [2, {"a": 3}]),
    slice(1, None, 2),
    np.dtype(np.float32),
    np.float32(2),
    np.arange(3),
    {1, 2},
    Box(np.arange(3), "box"),
    func.make_program(layer)(np.ones(3)),
    np.sin,
]


@pytest.mark.parametrize("value", UNUSUAL, ids=lambda value: type(value).__name__)
def test_pickle_and_equality_with_unusual_parameters(value: Any) -> None:
    program = with_param(value)
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program and hash(copy) == hash(program)
    assert copy.inputs[0] is not program.inputs[0]
    assert all([other is value or with_param(other) != program for other in UNUSUAL])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        ((1,), [1]),
        (np.arange(3), np.arange(3.0)),
        (np.arange(3), np.arange(3).reshape(3, 1)),
        (np.float64(1), 1.0),
        (Box(1, "a"), Box(1, "b")),
        (slice(1), slice(2)),
    ],
)
def test_parameters_that_differ(one: Any, two: Any) -> None:
    assert canonical(one) != canonical(two)
    assert with_param(one) != with_param(two)


def test_programs_that_differ() -> None:
    x = np.ones(3)
    programs = [
        func.make_program(f)(arg)
        for f, arg in [
            (np.sin, x),
            (np.cos, x),
            (np.sin, x.astype(np.float32)),
            (np.sin, np.ones(4)),
            (np.sin, 1.0),
            (np.sin, np.float64(1.0)),
            (lambda x: np.sin(np.sin(x)), x),
            (lambda x: (np.sin(x), x), x),
            (lambda x: x + np.arange(3.0), x),
            (lambda x: x + np.array([0.0, 1.0, 3.0]), x),
            (lambda x: x - x * 2, x),
            (lambda x: x * 2 - x, x),
            (lambda x: x * 3 - x, x),
            (running_sum, x),
            (lambda x: func.scan(lambda carry, row: (carry + row, np.cos(carry)), x[0], x), x),
        ]
    ]
    assert len(set(programs)) == len(programs)
    for i, left in enumerate(programs):
        for j, right in enumerate(programs):
            assert (left == right) is (i == j)
    assert programs[0] != "program" and programs[0] != None  # noqa: E711


def test_constants_are_compared_bit_by_bit() -> None:
    def adding(constant: Any) -> Program:
        x, c, y = [Var(Aval((2,), np.float64)) for _ in range(3)]
        return Program([x], [Equation(PRIMITIVES["add"], (x, c), {}, (y,))], [y], {c: constant})

    nan = np.array([np.nan, 0.0])
    assert adding(nan) == adding(nan.copy())
    assert adding(nan) == adding(np.array([[np.nan, 7], [0.0, 7]])[:, 0])
    assert adding(nan) != adding(np.array([np.nan, -0.0]))
    assert adding(np.arange(2.0)) != adding(np.arange(2))


def test_source_lines_do_not_matter() -> None:
    first = func.make_program(lambda x: np.sin(x))(1.0)
    second = func.make_program(lambda x: np.sin(x))(1.0)
    assert first.equations[0].line != second.equations[0].line
    assert first == second


@pytest.mark.parametrize(("name", "sample"), [case for case in ALL if "_call" not in str(case.values[0])])
def test_pickle(name: str, sample: Sample) -> None:
    program = sampled(name, sample)
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program and str(copy) == str(program)
    for got, expected in zip(copy(*sample.args), program(*sample.args), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_pickle_keeps_nested_programs_and_lines() -> None:
    program = func.make_program(running_sum)(np.ones(3))
    hash(program)
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program
    assert copy.text(lines=True) == program.text(lines=True)
    np.testing.assert_array_equal(copy(np.arange(3.0))[1], program(np.arange(3.0))[1])


def invalid(**changes: Any) -> Program:
    """sin of a vector, with something changed."""
    x, y, other = Var(Aval((3,), np.float64)), Var(Aval((3,), np.float64)), Var(Aval((2,), np.float64))
    line = func.make_program(np.sin)(1.0).equations[0].line
    parts = {
        "inputs": (x,),
        "outputs": (y,),
        "primitive": PRIMITIVES["sin"],
        "returned": [y],
        "constants": {},
    } | changes
    variables = {"x": x, "y": y, "other": other}

    def filled(values: Any) -> Any:
        return tuple([variables.get(v, v) if isinstance(v, str) else v for v in values])

    equation = Equation(parts["primitive"], filled(parts["inputs"]), {}, filled(parts["outputs"]), line)
    constants = {variables[key]: value for key, value in parts["constants"].items()}
    return Program([x], [equation], filled(parts["returned"]), constants)


def test_the_valid_program_of_these_tests() -> None:
    invalid().check()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outputs": ("other",)}, ["equation 0", "f64[2]", "f64[3]", "sin", "test_program.py"]),
        ({"inputs": ("other",)}, ["equation 0", "f64[2]", "used before it is defined", "test_program.py"]),
        ({"outputs": ("x",)}, ["equation 0", "a is defined twice"]),
        ({"inputs": ("x", "x")}, ["equation 0", "does not take (f64[3], f64[3])", "test_program.py"]),
        ({"outputs": ("y", "other")}, ["equation 0", "2 outputs", "gives 1"]),
        ({"returned": ["other"]}, ["output", "f64[2]", "never defined"]),
        ({"constants": {"x": np.ones(3)}}, ["a is defined twice"]),
        ({"constants": {"other": np.ones(3, np.float32)}}, ["constant b", "f64[2]", "f32[3]"]),
        ({"primitive": PRIMITIVES["permute"]}, ["equation 0", "permute does not take (f64[3])", "order"]),
    ],
)
def test_an_invalid_program_says_what_is_wrong(changes: Any, words: list[str]) -> None:
    with pytest.raises(ProgramError) as caught:
        invalid(**changes).check()
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_the_validator_looks_into_nested_programs() -> None:
    program = func.make_program(running_sum)(np.ones(3))
    ((_, body),) = program.equations[-1].nested()
    wrong = body.equations[0]
    wrong.outputs[0].__setstate__(((7,), np.dtype(np.float64), False))
    with pytest.raises(ProgramError, match=r"(?s)scan_call.*in body, equation 0.*f64\[7\].*f64\[\]"):
        check_program(program)


def drawn(program: Program, path: Path) -> list[str]:
    """The texts of the picture."""
    assert program.draw(path) == str(path)
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        if rect.attrib["class"] != "page":
            assert 0 <= float(rect.attrib["x"]) <= width and 0 <= float(rect.attrib["y"]) <= height
    return [str(text.text) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_names_everything(tmp_path: Path) -> None:
    texts = drawn(func.make_program(layer)(np.ones(3)), tmp_path / "layer.svg")
    assert {"a:f64[3]", "b:f64[2,3]", "contract", "tanh", "multiply", "· 2.0", "return e"} <= set(texts)
    assert {"c:f64[2]", "d:f64[2]", "e:f64[2]"} <= set(texts)


def test_a_picture_is_self_contained_and_escaped(tmp_path: Path) -> None:
    program = func.make_program(lambda x: func.checkpoint_name(x * 2, "<&>"))(np.ones(3))
    assert "label='<&>'" in drawn(program, tmp_path / "named.svg")
    text = (tmp_path / "named.svg").read_text()
    assert "href" not in text and "url(" not in text and "<script" not in text


def test_nested_programs_are_drawn_below(tmp_path: Path) -> None:
    texts = drawn(func.make_program(running_sum)(np.ones(3)), tmp_path / "scan.SVG")
    assert any([text.startswith("body of ") and "scan_call" in text for text in texts])
    assert "add" in texts and "sin" in texts


def test_a_long_program_is_drawn(tmp_path: Path) -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(400):
            y = np.sin(y) * x
        return np.sum(y)

    program = func.make_program(func.grad(chain))(np.ones(3))
    assert len(program.equations) > BENDS**0.5
    assert drawn(program, tmp_path / "chain.svg").count("sin") == 400


@pytest.mark.parametrize("f", [lambda x: x, lambda x: (), lambda x: 2.0, lambda x: (x, x + 1, x)])
def test_the_smallest_programs(f: Any, tmp_path: Path) -> None:
    program = func.make_program(f)(np.ones(3))
    drawn(program, tmp_path / "small.svg")
    program.check()
    assert program.cost().bytes_moved in (0, 48)


@pytest.mark.parametrize("name", ["picture.png", "picture", "svg"])
def test_other_kinds_of_picture_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"does not end in \.svg"):
        func.make_program(np.sin)(1.0).draw(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_boxes_do_not_overlap_and_edges_lead_down() -> None:
    graph = program_graph(func.make_program(func.grad(lambda x: np.sum(layer(x) ** 2)))(np.ones(3)))
    graph.arrange()
    for edge in graph.edges:
        heights = [y for _, y in edge.points()]
        assert heights == sorted(heights)
    for i, right in enumerate(graph.nodes):
        for left in graph.nodes[:i]:
            if left.layer == right.layer:
                assert abs(left.x - right.x) >= (left.width + right.width) / 2 + GAP - 1e-6


def test_an_edge_bends_in_every_layer_between() -> None:
    graph = Graph()
    a, b, c = [graph.add(DrawnNode("equation", name, ins=1, outs=1)) for name in "abc"]
    graph.edges = [Edge(a, 0, b, 0), Edge(b, 0, c, 0), Edge(a, 0, c, 0)]
    graph.arrange()
    assert [len(edge.bends) for edge in graph.edges] == [0, 0, 1]
    assert graph.height > 0 and graph.width > 0


def test_parameters_that_are_primitives_are_compared() -> None:
    assert with_param(ew.sin) != with_param(ew.cos)
    assert with_param(ew.sin) == with_param(ew.sin)
