"""No string of a dict's key, of an argument's name or of an object's own repr runs in generated source."""

from __future__ import annotations

import ast
import collections
import enum
import functools
import os
import re
import tokenize
import xml.dom.minidom
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.backends.c.declarations import comment
from func.backends.source.literals import literal, quoted
from func.interpreters.compile.lowering.rules import lower
from func.interpreters.core import PRIMITIVES, Aval, aval_of
from func.interpreters.program.program import Equation, Var
from tests.interpreters.primitives.test_samples import ALL
from tests.support.sampling import Sample

X = np.arange(3.0)
Y = np.array([10.0, 20.0, 30.0])
EXECUTED: list[str] = []
CODE = "__import__('tests.right_or_loud.test_hostile_text')"


class Loud(str):
    """A string whose repr is code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"EXECUTED.append({str(self)!r})"


class Level(enum.IntEnum):
    ONE = 1

    def __repr__(self) -> str:
        return "EXECUTED.append('level')"


class Colour(enum.Enum):
    RED = "red"


KEYS: list[Any] = [
    'a""";EXECUTED.append(1);"""',
    "{EXECUTED.append(1)}",
    "'];EXECUTED.append(1);['",
    '"]);EXECUTED.append(1);(["',
    "a{b}",
    "{0.__class__}",
    "np.exp",
    "scipy.linalg.nothing",
    "math.nothing",
    "\\",
    '\\"',
    'line\n"""\nEXECUTED.append(1)\n',
    "\u2028\ud800\x00",
    Loud("left"),
    Level.ONE,
    b"by{}tes'",
    ("a", ("b{}", 1)),
    3,
    -1,
    2.5,
    None,
    True,
    1j,
    "layer.0.weight",
    "größe",
]


def module(text: str) -> Callable[..., Any]:
    """The function that the text defines."""
    names: dict[str, Any] = {"EXECUTED": EXECUTED}
    exec(compile(text, "exported", "exec"), names)
    assert not EXECUTED
    return [value for value in names.values() if callable(value)][-1]  # type: ignore[no-any-return]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: ascii(str(key)))
def test_keys_of_dicts_are_literals(key: Any) -> None:
    text = func.to_source(lambda p: {key: np.sum(p[key] ** 2)})({key: X})
    exported = module(text)
    assert exported({key: X}) == {key: 5.0}
    with pytest.raises(ValueError) as raised:
        exported({key: np.ones(4)})
    assert str(raised.value) == f"p[{key!r}] has shape (4,), not (3,)"
    assert f"p[{key!r}]: f64[3]" in str(ast.get_docstring(ast.parse(text), clean=False))
    assert not EXECUTED


@pytest.mark.parametrize("key", [Colour.RED, frozenset([1]), float("nan")])
def test_keys_without_a_literal_are_refused(key: Any) -> None:
    with pytest.raises(func.errors.ArgumentError, match="cannot name the entry"):
        func.to_source(lambda p: p[key] * 2)({key: X})
    if key == key:
        with pytest.raises(TypeError, match="cannot name; return tuples, lists, dicts"):
            func.to_source(lambda x: {key: x})(X)


@pytest.mark.parametrize("name", ["a b", "lambda", "None", "__debug__", "a); EXECUTED.append(1)  #", ""])
def test_keywords_that_are_no_names_are_refused(name: str) -> None:
    with pytest.raises(func.errors.ArgumentError, match="is not a name of Python; pass it in a dict"):
        func.to_source(lambda x, **k: x * k[name])(X, **{name: 2.0})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Loud("left"), "'left'"),
        (Level.ONE, "1"),
        (type("Real", (float,), {"__repr__": lambda self: CODE})(0.5), "0.5"),
        ("a{b}'\"\\\n", r"""'a\x7bb\x7d\'"\\\n'"""),
        (b"{}", r"b'\x7b\x7d'"),
        (np.str_("np.exp"), "'np.exp'"),
        ((True, None, ..., -0.0), "(True, None, ..., -0.0)"),
        (np.int8(-3), "np.int8(-3)"),
    ],
)
def test_literals(value: Any, text: str) -> None:
    assert literal(value) == text
    assert eval(text) == value


@pytest.mark.parametrize("value", [object(), Colour.RED, [1], np.dtype("S3"), np.dtype([("a", "f8")]), {1: 2}])
def test_other_values_have_no_literal(value: Any) -> None:
    with pytest.raises(TypeError, match="has no literal"):
        literal(value)


@pytest.mark.parametrize("text", [str(key) for key in KEYS])
def test_text_between_quotes(text: str) -> None:
    assert eval(f'f"{quoted(text)}"') == text
    assert ast.get_docstring(ast.parse(f'"""{quoted(text)}"""'), clean=False) == text


def names(text: str) -> set[str]:
    """The names in a source text, strings left out."""
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


@pytest.mark.parametrize(("name", "sample"), [case for case in ALL if case.values[1].params])  # type: ignore[union-attr]
def test_parameters_become_literals_of_source(name: str, sample: Sample) -> None:
    """Also without the check of parameters, none of their text is code."""
    primitive = PRIMITIVES[name]
    inputs = tuple([Var(aval_of(arg)) for arg in sample.args])
    outs = primitive.aval(*[var.aval for var in inputs], **sample.params)
    outputs = tuple([Var(Aval(aval.shape, aval.dtype)) for aval in (outs if primitive.multiple else (outs,))])
    for key in sample.params:
        for other in (CODE, (CODE,), Loud(CODE), "{0.__class__}", ((CODE, CODE, CODE),)):
            try:
                code = lower(Equation(primitive, inputs, {**sample.params, key: other}, outputs))
                operands = [f"operand{i}" for i in range(len(inputs))]
                texts = [text.format(*operands, out="out") for text in (code.text, code.fresh)]
            except Exception:
                continue
            for text in texts:
                assert not {"__import__", "__class__", "EXECUTED"} & names(text), text


def swapped(x1: Any, x0: Any) -> Any:
    return x1 - 2 * x0


def sines(t0: Any, x0: Any) -> Any:
    return np.sin(t0) * x0


def with_constant(c0: Any) -> Any:
    return c0 * Y


def keywords(x: Any, *, x0: Any, t0: Any = 1.0) -> Any:
    return x * x0 - np.exp(t0)


def unsorted(x: Any, *, b: Any, a: Any) -> Any:
    return x * b - a


def place(place: Any, place_into: Any) -> Any:
    return np.pad(place, 1) + func.numpy.pad(place_into, 1)


def body0(x: Any, body0: Any = 2.0) -> Any:
    return func.scan(lambda c, a: (c * a + 1, c * body0), x[0], x)[1]


def argument0(argument1: Any, argument0: Any, _argument0: Any) -> Any:
    return argument1 - argument0 * _argument0


numpy = np


def hidden(np: Any, ValueError: Any, *, any: Any) -> Any:
    return numpy.sum(np) * ValueError - any


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (swapped, (X, Y), {}),
        (sines, (X, Y), {}),
        (with_constant, (X,), {}),
        (keywords, (X,), {"t0": 3.0, "x0": Y}),
        (unsorted, (X,), {"b": 2.0, "a": Y}),
        (unsorted, (X,), {"a": Y, "b": 2.0}),
        (place, (X, Y), {}),
        (body0, (X,), {}),
        (body0, (X, 3.0), {}),
        (argument0, (X, Y, 2.0), {}),
        (hidden, (X, Y), {"any": 2.0}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_parameters_with_names_of_generated_code(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    exported = module(func.to_source(function)(*args, **kwargs))
    np.testing.assert_allclose(exported(*args, **kwargs), function(*args, **kwargs))


HOSTILE = [
    "*/ int evil(void); /*",
    "*/\nint evil(void);\n/*",
    "*\\\n/ int evil(void); /*",
    "*??/\n/ int evil(void); /*",
    "??/\nint evil(void);",
    '""" \nevil()\n"""',
    "\\",
    '"; int evil(void); "',
    "\u2028evil\x00\r\n\x85",
    "{evil} %s %n {0.__class__}",
    "größe \ud800",
    "/* /* **/",
    type("Evil", (str,), {"__str__": lambda s: "*/", "__repr__": lambda s: "*/", "__format__": lambda s, how: "*/"})(
        "x"
    ),
]


def without_comments(text: str) -> str:
    """C as a compiler sees it: trigraphs, lines that go on, comments."""
    text = text.replace("??/", "\\").replace("\\\n", "")
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def named(name: str, doc: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return {name: np.sin(x["a"][name])}

    function.__name__, function.__doc__ = name, doc
    return function


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_leaves_the_comments_of_c(text: str) -> None:
    plain = func.to_c(named("sine", "Sines."), name="sine")({"a": {"sine": X}})
    for transform in (lambda f: f, lambda f: functools.wraps(f)(lambda x: f(x))):
        module = func.to_c(transform(named(text, text)), name="sine")({"a": {text: X}})
        names = [plain.inputs[0].name, plain.outputs[0].name], [module.inputs[0].name, module.outputs[0].name]
        for own, other in ((module.source, plain.source), (module.header, plain.header)):
            own.encode("ascii")
            code = without_comments(own)
            for name, right in zip(names[1], names[0], strict=True):
                assert re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
                code = re.sub(rf"\b{name}\b", right, code)
            assert code.split() == without_comments(other).split()


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_text_leaves_the_strings_of_python(text: str) -> None:
    source = func.to_source(named(text, text))({"a": {text: X}})
    exported = module(source)
    assert set(exported({"a": {text: X}})) == {str.__str__(text)}
    assert "evil" not in names(source) and not EXECUTED
    source.encode("ascii")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_paths_of_exported_files(text: str, tmp_path: Path) -> None:
    """The name of a file reaches C in #include alone, where nothing can be escaped."""
    path = os.path.join(tmp_path, str.__str__(text).replace("/", "-") + ".c")
    try:
        func.export(np.sin, path, name="sine")(X)
    except (func.errors.ArgumentError, ValueError, UnicodeEncodeError):
        assert not os.listdir(tmp_path)
        return
    source = Path(path).read_text(encoding="utf-8")
    line = next(line for line in source.splitlines() if line.startswith('#include "'))
    assert line == f'#include "{Path(path).stem}.h"' and "??" not in line and "\\" not in line
    assert "evil" not in without_comments(source).replace(line, "")


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\x00" not in text], ids=ascii)
def test_text_in_pictures_and_tables_is_escaped(text: str, tmp_path: Path) -> None:
    program = func.make_program(named(text, text))({"a": {text: X}})
    path = program.draw(tmp_path / "picture.svg")
    xml.dom.minidom.parse(str(path))
    assert "<script" not in program._repr_html_()


@pytest.mark.parametrize("text", [*HOSTILE, "*/", "/*", "??", "a/b*c?d"], ids=ascii)
def test_comments_of_c(text: str) -> None:
    shown = comment(text)
    assert shown.isascii() and shown.isprintable()
    assert not re.search(r"\*/|/\*|\?\?|\n", shown)
    assert comment("f(x): the sine / cosine * 2?") == "f(x): the sine / cosine * 2?"


def test_a_path_without_an_ending_becomes_that_of_a_c_file(tmp_path: Path) -> None:
    func.export(np.sin, tmp_path / "g", kind="c")(X)
    assert sorted(os.listdir(tmp_path)) == ["g.c", "g.h"]
    assert '#include "g.h"' in (tmp_path / "g.c").read_text()
    with pytest.raises(func.errors.ArgumentError, match="has the name of its header"):
        func.export(np.sin, tmp_path / "g.h")(X)


def test_what_cannot_be_returned_is_named_inside_a_dict() -> None:
    point = collections.namedtuple("point", "x y")
    with pytest.raises(TypeError, match="returns a point, which plain NumPy source cannot name"):
        func.to_source(lambda x: {"a": [point(x, x)]})(X)
    with pytest.raises(TypeError, match="returns a dict, which"):
        func.to_source(lambda x: {frozenset([1]): x})(X)


def test_a_key_imports_nothing() -> None:
    text = func.to_source(lambda p: p["scipy.fft.evil"] * 2)({"scipy.fft.evil": X, "math.evil": X})
    assert [line for line in text.splitlines() if line.startswith("import")] == ["import numpy as np"]
