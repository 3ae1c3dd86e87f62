"""Program files that have been tampered with, and arguments with hostile names: nothing in them may run.

A case changes the document, the arrays or the archive of a saved program, or makes up keys and keywords for
`func.to_source`. Either func raises ProgramFileError, or the file is a program that checks, runs in every compiler and
runs nothing else. Loading takes memory and time in proportion to the file. Native code that leaves its arrays ends the
process, which the tester notices.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import json
import math
import random
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

import numpy as np

import func
from func.errors import ArgumentError, FuncError, ProgramFileError
from func.interpreters.core import PRIMITIVES
from func.interpreters.program.program import Program
from tests.support.samples import SAMPLES
from tools.fuzz.cases import Tally

QUICK = 250
SLOW = 20.0
"""Seconds that loading one of these files may take, also on a busy machine."""
MEMORY = 4 << 20
"""Bytes that loading may take in addition to a multiple of the file."""
EXECUTED: list[Any] = []
CODE = "__import__('sys').modules['tools.fuzz.files'].EXECUTED.append(1)"
STRINGS = (
    *(
        CODE,
        f"0 if {CODE} else 0",
        f'"""\n{CODE}\n"""',
        f"']);{CODE};(['",
        f"{{{CODE}}}",
        "{0.__class__}",
        f"\n{CODE}\n",
    ),
    *(
        "",
        "np.exp",
        "..",
        "/etc/passwd",
        "\x00",
        "\ud800",
        "<f8",
        "|O",
        "O",
        "sin",
        "callback",
        "llvm",
        "numpy",
        "x0",
        "np",
    ),
)
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 4, 5, 7, 64, 255, 2**31, -(2**31), 2**53, 2**62, 2**63, -(2**63), 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e300, -1.5, True, False, None),
)
TAGS = (
    *("tuple", "list", "dict", "dtype", "array", "scalar", "program", "compiled", "primitive", "float", "complex"),
    *("slice", "ellipsis", "spec", "aval", "scan", "while"),
)
ACCEPTED = (
    *(ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, FloatingPointError, MemoryError),
    *(np.linalg.LinAlgError, NotImplementedError, FuncError),
)
"""The errors that computing with a strange program may raise: those of NumPy's functions."""
FOLDER = tempfile.TemporaryDirectory(prefix="func-fuzz-files-")


def _gradient(w: Any) -> Any:
    return np.mean((np.tanh(w @ np.arange(4.0)) - 0.5) ** 2) + np.sum(w[1:, ::-1] * 2)


def _scanned(x: Any) -> Any:
    return func.scan(lambda c, a: (c * a + 1, np.sin(c)), x[0], x)


def _looped(x: Any) -> Any:
    return func.while_loop(lambda c: c[1] < 3, lambda c: (np.sin(c[0]), c[1] + 1), (x, 0))


def _chosen(x: Any) -> Any:
    return func.cond(x[0] > 0, lambda y: np.cumsum(y)[::-1], lambda y: y * 2, x)


def _linear(a: Any) -> Any:
    return np.linalg.inv(a) @ np.linalg.cholesky(a @ a.T + np.eye(3)) + np.linalg.det(a)


WRITTEN: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (func.grad(_gradient), (np.linspace(-1.0, 1.0, 12).reshape(3, 4),)),
    (func.grad(lambda x: np.sum(_scanned(x)[1])), (np.linspace(0.1, 1.0, 4),)),
    (_scanned, (np.linspace(0.1, 1.0, 4),)),
    (_looped, (np.linspace(0.1, 1.0, 4),)),
    (_chosen, (np.linspace(0.1, 1.0, 4),)),
    (func.grad(lambda x: np.sum(_chosen(x))), (np.linspace(0.1, 1.0, 4),)),
    (_linear, (np.eye(3) + 0.1,)),
    (func.jit(func.grad(lambda x: np.sum(np.where(x > 0.5, np.sqrt(x), x[::-1] ** 2)))), (np.linspace(0.1, 1.0, 4),)),
    (lambda x, i: x[i] * np.sort(x)[i] + np.take(x, [2, 0]), (np.linspace(0.1, 1.0, 4), np.array([3, 1]))),
    (lambda x: np.fft.irfft(np.fft.rfft(x)) + np.convolve(x, x, "same"), (np.linspace(0.1, 1.0, 4),)),
]


@functools.cache
def _bases() -> list[Program]:
    """The programs that are tampered with: some written here, and one for each sample of each primitive."""
    programs = [func.make_program(f)(*args) for f, args in WRITTEN]
    for name, samples in sorted(SAMPLES.items()):
        primitive = PRIMITIVES[name]
        if not primitive.calls_python and primitive.factored_by is None:
            for sample in samples[:3]:
                if any(map(inspect.isfunction, sample.params.values())):
                    continue  # as a file cannot hold it
                programs.append(func.make_program(_applied(primitive, sample.params))(*sample.args))
    return programs


def _applied(primitive: Any, params: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args: primitive(*args, **params)


@functools.lru_cache(64)
def _members(number: int) -> dict[str, bytes]:
    """The members of a saved program."""
    path = Path(FOLDER.name) / "base.func"
    func.save(_bases()[number], path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield (*path, key)
        yield from _places(entry, (*path, key))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _strange(choices: random.Random, document: Any) -> Any:
    """A value for some place of a document."""
    kind = choices.randrange(8)
    if kind == 0:
        return choices.choice(STRINGS)
    if kind == 1:
        return choices.choice(NUMBERS)
    if kind == 2:
        return copy.deepcopy(_at(document, choices.choice(list(_places(document)))))
    if kind == 3:
        tag = choices.choice(
            [
                "tuple",
                "list",
                "dtype",
                "array",
                "scalar",
                "program",
                "compiled",
                "primitive",
                "spec",
                "float",
                "slice",
                "aval",
            ]
        )
        inner = [_strange_atom(choices) for _ in range(choices.randrange(4))]
        return {tag: inner if choices.random() < 0.7 else _strange_atom(choices)}
    if kind == 4:
        return {"tuple": [_strange_atom(choices) for _ in range(choices.randrange(5))]}
    if kind == 5:
        triples = [{"tuple": [choices.choice(NUMBERS[:9]) for _ in range(3)]} for _ in range(choices.randrange(3))]
        return {"tuple": triples}
    if kind == 6:
        return choices.choice([[], {}, [[]], {"": 0}, {"tuple": []}, {"list": [CODE]}, {"dict": [[CODE, CODE]]}])
    nested: Any = _strange_atom(choices)
    for _ in range(choices.choice([1, 10, 90])):
        nested = {"tuple": [nested]}
    return nested


def _strange_atom(choices: random.Random) -> Any:
    return choices.choice(STRINGS) if choices.random() < 0.3 else choices.choice(NUMBERS)


def _changed(choices: random.Random, document: Any) -> str:
    """Change one place of a document; returns the change."""
    places = list(_places(document))
    params = [path for path in places if "params" in path and path[-1] != "params"]
    path = choices.choice(params if params and choices.random() < 0.6 else places)
    parent, key = _at(document, path[:-1]), path[-1]
    kind = choices.randrange(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent[key], int) and not isinstance(parent[key], bool):
        parent[key] += choices.choice([-2, -1, 1, 2, 10, 10**6])
    elif kind == 2 and isinstance(parent, list):
        other = choices.randrange(len(parent))
        parent[key], parent[other] = parent[other], parent[key]
    elif kind == 3 and isinstance(parent, list):
        parent.insert(choices.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
    elif kind == 4 and "primitive" in path:
        parent[key] = choices.choice(sorted(PRIMITIVES))
    else:
        parent[key] = _strange(choices, document)
    return f"{path} of kind {kind}"


def _tampered_array(choices: random.Random, data: bytes) -> bytes:
    """An .npy member with another header or other bytes."""
    kind = choices.randrange(4)
    if kind == 0:
        place = choices.randrange(len(data))
        return data[:place] + bytes([choices.randrange(256)]) + data[place + 1 :]
    if kind == 1:
        return data[: choices.randrange(len(data))]
    if kind == 2:
        shapes = ["(-1,)", "(10**9,)", "(99999999999,)", "()", "(2, 2)", f"({CODE},)", "(True,)", "(3.0,)"]
        header = f"{{'descr': '{choices.choice(['<f8', '|O', '<c16', '<i1', '|S8', '>f8'])}', 'fortran_order': False, "
        header += f"'shape': {choices.choice(shapes)}, }}"
        text = header.encode() + b" " * (53 - len(header) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data[128:]
    return data + bytes(choices.randrange(50))


def _archive(choices: random.Random, members: dict[str, bytes]) -> bytes:
    """The bytes of a file with these members, which now and then are not a proper archive."""
    kind = choices.randrange(12)
    data = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(data, "w") as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            method = zipfile.ZIP_DEFLATED if kind == 1 and choices.random() < 0.5 else zipfile.ZIP_STORED
            archive.writestr(f"../{name}" if kind == 2 and choices.random() < 0.3 else name, content, method)
            if kind == 3:
                archive.writestr(name, content)
    content = data.getvalue()
    if kind == 4:
        place = choices.randrange(len(content))
        content = content[:place] + bytes([choices.randrange(256)]) + content[place + 1 :]
    elif kind == 5:
        content = content[: choices.randrange(len(content))]
    elif kind == 6:
        entry = content.rindex(b"PK\x01\x02")  # the sizes of the last member are in its entry of the directory
        place = entry + choices.choice([20, 24, 42])
        content = (
            content[:place] + choices.choice([0, 1, 2**31, 2**32 - 1]).to_bytes(4, "little") + content[place + 4 :]
        )
    elif kind == 7:
        content = bytes(choices.randrange(256) for _ in range(choices.randrange(200))) + content
    return content


def _loaded(choices: random.Random, path: Path, size: int) -> Program:
    """The program of a file, loaded within bounds."""
    measures = choices.random() < 0.15
    if measures:
        tracemalloc.start()
    began = time.process_time()
    try:
        return func.load(path)
    finally:
        seconds = time.process_time() - began
        peak = tracemalloc.get_traced_memory()[1] if measures else 0
        if measures:
            tracemalloc.stop()
        assert seconds < SLOW, f"loading took {seconds:.1f} s"
        assert peak < 60 * size + MEMORY, f"loading {size} bytes took {peak} bytes"


SPHEROIDAL = ("obl_", "pro_")
"""The beginning of names of functions for which SciPy writes past its tables where their parameters are large."""


def _values(choices: random.Random, program: Program) -> list[Any]:
    """Arguments for a program; integers may be far beyond every axis, but those of series would be sums that long."""
    sums = any("special" in getattr(equation.primitive.impl, "__module__", "") for equation in program.equations)
    is_spheroidal = any([equation.primitive.name.startswith(SPHEROIDAL) for equation in program.equations])
    values: list[Any] = []
    for var in program.inputs:
        seed = choices.randrange(1 << 16)
        rng = np.random.default_rng(seed)
        if var.dtype.kind in "fcV":
            array = rng.normal(size=var.shape).astype(var.dtype)
        elif var.dtype.kind == "b":
            array = rng.integers(0, 2, var.shape).astype(bool)
        else:
            largest = choices.choice([2, 4, 100, 100 if sums else np.iinfo(var.dtype).max])
            largest = min(largest, 4) if is_spheroidal else largest
            array = rng.integers(0, min(largest, np.iinfo(var.dtype).max), var.shape).astype(var.dtype)
        values.append(array[()].item() if var.weak else array)
    return values


def _runs(choices: random.Random, program: Program, tally: Tally) -> None:
    """Compute with a program in every compiler."""
    cost = program.cost()
    if cost.peak_bytes > 1 << 24 or cost.operations > 1 << 22 or _steps(program) > 1 << 10:
        return
    values = _values(choices, program)
    ways: list[Callable[[], Any]] = [
        lambda: program(*values),
        lambda: func.jit(lambda *args: program(*args), compiler="numpy")(*values),
        lambda: func.jit(lambda *args: program(*args), compiler="llvm")(*values),
        lambda: _exported(program, values),
        lambda: func.vmap(lambda *args: program(*args), in_dims=None, axis_size=2)(*values),
    ]
    shapes: list[Any] = []
    for way in ways:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                outs = way()
            except ACCEPTED as error:
                tally.refused(error)
                continue
        if way is not ways[-1]:
            shapes.append([(np.shape(out), np.asarray(out).dtype) for out in outs])
        tally.checked()
    assert all(shape == shapes[0] for shape in shapes), shapes


def _steps(program: Program) -> int:
    """How often the innermost loop of a program runs."""
    steps = 1
    for equation in program.equations:
        length = equation.params["loop"].length if equation.primitive.name == "scan_call" else 1
        inner = [_steps(nested) for _, nested in equation.nested()]
        if equation.primitive.name == "while_call":
            length = 1 << 30  # its end is in the program's hands
        steps = max(steps, length * max(inner, default=1))
    return steps


def _exported(program: Program, values: list[Any]) -> Any:
    names: dict[str, Any] = {}
    exec(func.to_source(lambda *args: program(*args))(*values), names)
    return [value for value in names.values() if callable(value)][-1](*values)


def _file_case(choices: random.Random, tally: Tally) -> None:
    number = choices.randrange(len(_bases()))
    members = dict(_members(number))
    document = json.loads(members["program.json"])
    done = [_changed(choices, document) for _ in range(choices.choice([1, 1, 1, 2, 3, 0]))]
    text = json.dumps(document)
    if choices.random() < 0.05:
        place = choices.randrange(len(text))
        text = (
            text[:place]
            + choices.choice(["[" * 5000, '{"a":' * 5000, "NaN", "1e999", "9" * 6000, '"\\ud800"'])
            + text[place:]
        )
        done.append(f"text at {place}")
    members["program.json"] = text.encode(errors="surrogatepass")
    arrays = [name for name in members if name.endswith(".npy")]
    if arrays and choices.random() < 0.1:
        name = choices.choice(arrays)
        members[name] = _tampered_array(choices, members[name])
        done.append(name)
    content = _archive(choices, members)
    tally.show(f"program {number}:\n{_bases()[number]}\nchanged: {'; '.join(done)}\n{text[:3000]}")
    path = Path(FOLDER.name) / "case.func"
    path.write_bytes(content)
    try:
        program = _loaded(choices, path, len(content))
    except ProgramFileError as error:
        assert (len(str(error)) < 4000 and str(error).isprintable()) or "\n" in str(error)
        tally.refused(error)
    else:
        program.check()
        repr(program)
        _runs(choices, program, tally)


def _hostile_text(choices: random.Random) -> Any:
    kind = choices.randrange(4)
    if kind == 0:
        return choices.choice(STRINGS)
    if kind == 1:
        pieces = ["'", '"', "\\", "{", "}", "\n", "#", CODE, "a", "np.", "]", "(", "\u2028", "%s", "\r", "\t"]
        return "".join(choices.choice(pieces) for _ in range(choices.randrange(8)))
    if kind == 2:
        return choices.choice([0, 3, -1, 2.5, math.inf, True, None, b"'{}\\", 1j])
    return (choices.choice(STRINGS), choices.choice([1, "{}", None]))


def _text_case(choices: random.Random, tally: Tally) -> None:
    """A dict with a hostile key as argument and result, and a keyword with a hostile name."""
    key = _hostile_text(choices)
    keyword = choices.choice(
        ["x0", "t0", "c0", "np", "argument0", "any", "place", "_f", "body0", str(_hostile_text(choices))]
    )
    x = np.arange(1.0, 4.0)

    def f(p: Any, **own: Any) -> Any:
        return {key: np.sin(p[key]) * own[keyword] + np.arange(3.0)}

    tally.show(f"key {key!r}, keyword {keyword!r}")
    try:
        text = func.to_source(f)({key: x}, **{keyword: 2.0})
    except ArgumentError as error:
        assert not keyword.isidentifier() or iskeyword(keyword) or keyword == "__debug__", error
        tally.refused(error)
        return
    names: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), names)
    exported: Any = [value for value in names.values() if callable(value)][-1]
    np.testing.assert_allclose(exported({key: x}, **{keyword: 2.0})[key], np.sin(x) * 2 + np.arange(3.0))
    try:
        exported({key: np.ones(4)}, **{keyword: 2.0})
    except ValueError as error:
        assert "has shape (4,), not (3,)" in str(error)
    else:
        raise AssertionError("another shape is accepted")
    tally.checked(2)


def case(choices: random.Random, tally: Tally) -> None:
    """One file or one name."""
    sys.modules.setdefault("tools.fuzz.files", sys.modules[__name__])
    (_text_case if choices.random() < 0.1 else _file_case)(choices, tally)
    assert not EXECUTED, "code of a file or of a name was executed"
