"""Programs in files: every primitive's round trip, what is refused, and files that are not what they seem."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.interpreters.core import PRIMITIVES, Aval
from func.interpreters.primitives.elementwise.table import sin
from func.interpreters.program.program import Equation, Program, Var
from tests.interpreters.primitives.test_samples import ALL, outputs
from tests.support.device_double import to_device
from tests.support.samples import SAMPLES
from tests.support.sampling import Sample

CALLS = (
    "callback",
    "checkpoint_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vmap_call",
    "linear_call",
    "pure_callback",
    "remote_map",
)
OF_FACTORS = tuple([name for name, primitive in PRIMITIVES.items() if primitive.factored_by])
"""Primitives whose operands must come from another one in the same program."""
MESSAGES = [name for name in SAMPLES if PRIMITIVES[name].communicates]
HELD = [case for case in ALL if case.values[0] not in (*CALLS, *OF_FACTORS, *MESSAGES)]
W = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def loss(w: Any) -> Any:
    return np.mean((np.tanh(w @ np.arange(4.0)) - np.float32(0.5)) ** 2) + np.sum(w[1:, ::-1] * 2)


def gradient() -> Program:
    return func.make_program(func.grad(loss))(W)


def again(program: Program, folder: Path) -> Program:
    path = folder / "program.func"
    func.save(program, path)
    return func.load(path)


def identical(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("name", "sample"), HELD)
def test_every_primitive_comes_back(name: str, sample: Sample, tmp_path: Path) -> None:
    program = func.make_program(lambda *args: outputs(name, args, sample.params))(*sample.args)
    loaded = again(program, tmp_path)
    assert loaded == program
    assert [equation.primitive for equation in loaded.equations] == [
        equation.primitive for equation in program.equations
    ]
    for got, expected in zip(loaded(*sample.args), program(*sample.args), strict=True):
        identical(got, expected)


@pytest.mark.parametrize("name", CALLS)
def test_primitives_that_hold_functions_are_refused(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name][0]
    program = func.make_program(lambda *args: outputs(name, args, sample.params))(*sample.args)
    with pytest.raises(
        func.errors.ProgramFileError, match=rf"the primitive {name}.* is a Python function, .*cannot hold"
    ):
        again(program, tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_refused(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name][0]
    program = func.make_program(lambda *args: outputs(name, args, sample.params))(*sample.args)
    with pytest.raises(func.errors.ProgramFileError, match="whose communicator a file cannot hold"):
        again(program, tmp_path)


def test_callbacks_are_refused_with_their_line(tmp_path: Path) -> None:
    def printing(x: Any) -> Any:
        func.debug.callback(print, x)
        return x * 2

    program = func.make_program(printing)(W)
    with pytest.raises(
        func.errors.ProgramFileError, match=r"the primitive callback at .*`func.debug.callback\(print, x\)`"
    ):
        again(program, tmp_path)


def test_a_gradient_comes_back_with_its_lines(tmp_path: Path) -> None:
    program = gradient()
    loaded = again(program, tmp_path)
    assert loaded == program
    for got, expected in zip(loaded.equations, program.equations, strict=True):
        assert got.line is not None
        assert expected.line is not None
        file, number, function = expected.line
        assert got.line == (f"<{os.path.basename(file).strip('<>')}>", number, function)
    assert "in loss" in loaded.text(lines=True)
    identical(loaded(W)[0], func.grad(loss)(W))


def test_loaded_programs_can_be_transformed(tmp_path: Path) -> None:
    program = again(func.make_program(loss)(W), tmp_path)
    identical(func.grad(lambda w: program.run((w,))[0])(W), func.grad(loss)(W))
    assert func.vmap(lambda w: program.run((w,))[0])(np.stack([W, W + 1])).shape == (2,)


def test_nested_programs_stay_shared(tmp_path: Path) -> None:
    inner = func.jit(lambda x: np.sin(x) * x)
    program = func.make_program(lambda x: inner(inner(x)))(W)
    held = [equation.params["compiled"] for equation in program.equations]
    assert len(held) == 2
    assert held[0] is held[1]
    loaded = again(program, tmp_path)
    first, second = [equation.params["compiled"] for equation in loaded.equations]
    assert first is second
    assert first.program == held[0].program
    identical(loaded(W)[0], program(W)[0])


def test_gradients_inside_keep_their_nan_safe_variant(tmp_path: Path) -> None:
    slope = func.jit(func.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), x))))
    program = func.make_program(slope)(W)
    (compiled,) = [equation.params["compiled"] for equation in again(program, tmp_path).equations]
    assert compiled.has_pullbacks
    zeros = np.zeros_like(W)
    identical(again(program, tmp_path)(zeros)[0], slope(zeros))
    assert np.isfinite(slope(zeros)).all()


def test_gradients_inside_that_close_over_traced_values(tmp_path: Path) -> None:
    def closing(x: Any) -> Any:
        return np.sum(func.jit(lambda y: func.grad(lambda z: np.sum(np.sin(z) * x))(y))(x))

    program = func.make_program(closing)(W)
    loaded = again(program, tmp_path)
    assert loaded == program
    identical(loaded(W)[0], program(W)[0])


def test_control_flow_and_its_gradient(tmp_path: Path) -> None:
    def rolled(x: Any) -> Any:
        carry, ys = func.scan(lambda c, a: (np.tanh(c + a), c * a), x[0], x)
        return np.sum(func.cond(np.sum(ys) > 0, lambda v: v * 2, lambda v: -v, carry))

    program = func.make_program(func.grad(rolled))(W)
    loaded = again(program, tmp_path)
    assert loaded == program
    identical(loaded(W)[0], program(W)[0])


CONSTANTS = {
    "fortran": np.asfortranarray(W),
    "big-endian": W.astype(">f4"),
    "empty": np.zeros((0, 3)),
    "0-d": np.array(2.5),
    "scalar": np.float32(2.5),
    "complex": W * 1j,
    "bool": W > 0,
    "payloads": np.array([np.nan, -0.0, np.inf, -np.nan]),
    "half": W.astype(np.float16),
    "bytes": np.arange(5, dtype=np.uint8),
    "long": W.astype(np.longdouble),
}


def with_constant(value: Any) -> Program:
    var = Var(Aval(np.shape(value), value.dtype))
    return Program([], [], [var], {var: value})


PARTS = [None, -5, -1, 0, 1, 5]


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_every_slice_comes_back(length: int, step: int, tmp_path: Path) -> None:
    x = np.arange(2.0 * length).reshape(length, 2)
    parts = [slice(start, stop, step) for start in PARTS for stop in PARTS]
    program = func.make_program(lambda x: [x[part] * 1 for part in parts])(x)
    for got, part in zip(again(program, tmp_path)(x), parts, strict=True):
        identical(got, x[part])


@pytest.mark.parametrize("kth", [0, 1, -5, (0, 3)])
def test_partitions_of_nothing_come_back(kth: Any, tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return [g(x, kth, axis=axis) for axis in (0, 1) for g in (np.partition, np.argpartition)]

    x = np.zeros((0, 3))
    for got, expected in zip(again(func.make_program(f)(x), tmp_path)(x), f(x), strict=True):
        identical(got, expected)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_keep_their_bits(name: str, tmp_path: Path) -> None:
    program = with_constant(CONSTANTS[name])
    loaded = again(program, tmp_path)
    assert loaded == program
    (got,) = loaded.constants.values()
    (expected,) = program.constants.values()
    assert type(got) is type(expected)
    assert (got.dtype, got.shape, got.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = W.astype(ml_dtypes.bfloat16)
    program = func.make_program(lambda a: a * x)(x)
    loaded = again(program, tmp_path)
    assert loaded == program
    (got,) = loaded.constants.values()
    assert got.dtype == x.dtype
    assert got.tobytes() == x.tobytes()
    assert loaded(x)[0].tobytes() == (x * x).tobytes()


def test_device_constants_come_back_on_the_host(tmp_path: Path) -> None:
    loaded = again(with_constant(to_device(W)), tmp_path)
    (got,) = loaded.constants.values()
    identical(got, W)


def test_python_numbers_keep_type_and_value(tmp_path: Path) -> None:
    numbers = (True, 3, -(2**70), 2.0, -0.0, float("nan"), float("-inf"), 1 - 2j, complex(float("nan"), -0.0))
    loaded = again(Program([], [], numbers, {}), tmp_path)
    assert [(type(x), repr(x)) for x in loaded.outputs] == [(type(x), repr(x)) for x in numbers]


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    func.save(gradient(), tmp_path / "a")
    func.save(gradient(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_fresh_interpreter_loads_without_the_modules_of_the_primitives(tmp_path: Path) -> None:
    import func.special

    program = func.make_program(lambda x: func.special.gammaln(x) + func.special.j0(x))(W)
    func.save(program, tmp_path / "p")
    code = "import sys, numpy, func; print(func.load(sys.argv[1])(numpy.full((3, 4), 1.5))[0][0, 0])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p")], capture_output=True, text=True, check=True)
    assert float(done.stdout) == program(np.full((3, 4), 1.5))[0][0, 0]


def test_only_programs_are_saved(tmp_path: Path) -> None:
    with pytest.raises(func.errors.ArgumentError, match=r"expected a Program, got function; func.make_program"):
        func.save(loss, tmp_path / "p")  # type: ignore[arg-type]


def test_traced_constants_are_refused(tmp_path: Path) -> None:
    def outer(x: Any) -> Any:
        func.save(func.make_program(lambda y: y * x)(W), tmp_path / "p")
        return np.sum(x)

    with pytest.raises(func.errors.ProgramFileError, match="a constant of the program is a traced value"):
        func.grad(outer)(W)


def test_unknown_parameters_are_refused(tmp_path: Path) -> None:
    x, y = Var(Aval((2,), float)), Var(Aval((2,), float))
    program = Program([x], [Equation(sin, (x,), {"odd": frozenset([1])}, (y,))], [y], {})
    with pytest.raises(
        func.errors.ProgramFileError,
        match="the parameter 'odd' of the primitive sin is an object of the class frozenset",
    ):
        again(program, tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p"
    func.save(gradient(), path)
    before = path.read_bytes()

    def fail(*args: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="disk is full"):
        func.save(func.make_program(loss)(W), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p"]


def test_paths_are_paths() -> None:
    with pytest.raises(func.errors.ArgumentError, match=r"func.save: expected a path, got int"):
        func.save(gradient(), 3)  # type: ignore[arg-type]
    with pytest.raises(func.errors.ArgumentError, match=r"func.load: expected a path, got bytes"):
        func.load(b"p")  # type: ignore[arg-type]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        func.load(tmp_path / "nothing")


@pytest.mark.parametrize("data", [b"", b"hello", b"\x93NUMPY", b"PK\x03\x04", bytes(1000)])
def test_files_of_another_kind(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(data)
    with pytest.raises(
        func.errors.ProgramFileError, match=r"is not a file written by func.save, or it is truncated or damaged"
    ):
        func.load(tmp_path / "p")


def test_another_zip(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", W)
    with pytest.raises(func.errors.ProgramFileError, match=r"not a file written by func.save: it has no program"):
        func.load(tmp_path / "p.npz")


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    func.save(gradient(), tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    for length in range(0, len(data), 7):
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(func.errors.ProgramFileError):
            func.load(tmp_path / "cut")


def test_a_changed_byte_is_noticed_or_without_effect(tmp_path: Path) -> None:
    program = gradient()
    func.save(program, tmp_path / "p")
    data = (tmp_path / "p").read_bytes()
    noticed = 0
    for place in range(0, len(data), 3):
        (tmp_path / "bad").write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            assert func.load(tmp_path / "bad") == program
        except func.errors.ProgramFileError:
            noticed += 1
    assert noticed > len(data) / 6


def changed(folder: Path, change: Callable[[Any], Any]) -> Path:
    """The file of a gradient with another document."""
    func.save(gradient(), folder / "p")
    with zipfile.ZipFile(folder / "p") as old, zipfile.ZipFile(folder / "changed", "w") as new:
        for member in old.namelist():
            data = old.read(member)
            if member == "program.json":
                document = json.loads(data)
                change(document)
                data = json.dumps(document).encode()
            new.writestr(member, data)
    return folder / "changed"


def tanh(document: Any) -> Any:
    """The equation of that primitive."""
    return next(equation for equation in document["programs"][0]["equations"] if equation["primitive"] == "tanh")


BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "newer": (lambda d: d.update(version=3), "has version 3 of the format, this func reads up to version 2"),
    "older": (lambda d: d.update(version=1), "has version 1 of the format, whose primitives had other names"),
    "no version": (lambda d: d.pop("version"), "version None of the format, which does not exist"),
    "odd version": (lambda d: d.update(version="one"), "version 'one' of the format"),
    "format": (lambda d: d.update(format="other"), "is not a func program"),
    "primitive": (
        lambda d: tanh(d).update(primitive="tanhh"),
        "cannot be loaded here: this version of func has no primitive 'tanhh'",
    ),
    "primitive of another type": (lambda d: tanh(d).update(primitive=["tanh"]), "damaged"),
    "tag": (lambda d: tanh(d).update(params={"a": {"code": "1"}}), "damaged.*tag 'code'"),
    "parameters": (lambda d: tanh(d).update(params={"a": 1}), "damaged.*tanh does not take"),
    "shape": (lambda d: d["programs"][0]["inputs"][0].__setitem__(0, [4, 4]), "damaged.*is not valid"),
    "negative length": (lambda d: d["programs"][0]["inputs"][0].__setitem__(0, [-3]), "damaged"),
    "length of another type": (lambda d: d["programs"][0]["inputs"][0].__setitem__(0, [3.0, 4]), "damaged"),
    "dtype": (lambda d: d["programs"][0]["inputs"][0].__setitem__(1, {"dtype": "O"}), "damaged.*a dtype of numbers"),
    "undefined": (lambda d: d["programs"][0]["inputs"].clear(), "damaged"),
    "index": (lambda d: tanh(d)["inputs"].__setitem__(0, -1), "damaged.*is not an index"),
    "operands": (lambda d: tanh(d)["inputs"].clear(), "damaged"),
    "outputs": (lambda d: tanh(d)["outputs"].clear(), "damaged"),
    "no programs": (lambda d: d.pop("programs"), "damaged"),
    "an empty table": (lambda d: d["programs"].clear(), "damaged"),
    "no table": (lambda d: d.update(programs=7), "damaged"),
    "holds itself": (lambda d: tanh(d).update(params={"a": {"compiled": [0, None]}}), "damaged"),
    "text": (lambda d: d["programs"][0]["outputs"].__setitem__(0, {"value": "os.system"}), "damaged"),
    "array": (lambda d: d["programs"][0]["values"].__setitem__(0, {"array": [99, "<f8"]}), "damaged"),
    "another dtype": (lambda d: d["programs"][0]["values"][0]["array"].__setitem__(1, "<i8"), "damaged"),
    "another constant": (lambda d: d["programs"][0]["values"].__setitem__(0, {"complex": [1.0, 2.0]}), "damaged"),
    "a list": (lambda d: d["programs"].append([]), "damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_changed_documents(name: str, tmp_path: Path) -> None:
    change, words = BAD[name]
    path = changed(tmp_path, change)
    with pytest.raises(func.errors.ProgramFileError, match=f"(?s){words}") as caught:
        func.load(path)
    assert str(path) in str(caught.value)


def test_a_pickle_in_an_array_is_not_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    func.save(gradient(), tmp_path / "p")
    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "p") as old, zipfile.ZipFile(tmp_path / "bad", "w") as new:
        for member in old.namelist():
            new.writestr(member, old.read(member) if member != "arrays/0.npy" else (tmp_path / "trap.npy").read_bytes())
    with pytest.raises(func.errors.ProgramFileError, match="damaged"):
        func.load(tmp_path / "bad")
    assert not (tmp_path / "ran").exists()


def test_compressed_members_are_refused(tmp_path: Path) -> None:
    """A small file must not become a large program: reading allocates no more than the file's size."""
    path = tmp_path / "p"
    func.save(func.make_program(lambda x: x + np.zeros(1000))(np.ones(1000)), path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "small", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(func.errors.ProgramFileError, match="compressed"):
        func.load(tmp_path / "small")
