"""Compiled programs on disk: the second process computes the same bits without passes, rules, printers and llvmlite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import func
from func.backends.llvm import cache, loader
from func.backends.loops.interface import AliasedOutput, ArraySpec, Interface
from func.interpreters.compile.native import stored_programs
from func.interpreters.program.program import Program, Var

ROOT = Path(__file__).parents[4]

CASES = """
import sys
import ml_dtypes
import numpy as np
import func

rng = np.random.default_rng(0)
table = rng.normal(size=(7, 5))
long = rng.normal(size=(300, 400))

def loop(x):
    for step in range(80):
        x = x + 0.01 * np.sin(x * step)
    return x

def masked(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

def with_rule(x):
    return rule(x) * 2.0

@func.custom_jvp
def rule(x):
    return np.tanh(x)

@rule.defjvp
def rule_jvp(primals, tangents):
    return rule(primals[0]), 7.0 * tangents[0]

narrow = rng.normal(size=7).astype(ml_dtypes.bfloat16)
x, matrix = rng.normal(size=5), rng.normal(size=(5, 5))
CASES = {
    "scalar": (func.grad(lambda x: np.sin(x) * np.exp(x)), 0.5),
    "weak": (lambda x, n: (x * n, n + 1), 0.5, 3),
    "constants": (lambda x: (table @ x, long[:5] @ np.ones(400) + x, np.linspace(0, 1, 5) * x), x),
    "transposed constant": (func.grad(lambda x: np.sum((table.T.copy() @ (table @ x)) ** 2)), x),
    "linear algebra": (lambda a: np.linalg.solve(a @ a.T + np.eye(5), a), matrix),
    "scan": (func.grad(lambda x: np.sum(func.scan(lambda c, t: (np.sin(c) * table[:5, 0] + t, c), x, table)[0])), x),
    "while": (lambda x: func.while_loop(lambda c: np.sum(c) < 100.0, lambda c: c * 2.0 + 1.0, np.abs(x)), x),
    "cond": (lambda x: func.cond(x[0] > 0, np.sin, np.cos, x), x),
    "loop": (func.grad(lambda x: np.sum(loop(x))), x),
    "structural zeros": (func.grad(masked), np.array([0.0, 1.0, -1.0])),
    "complex": (lambda x: np.exp(1j * x), x),
    "half": (lambda x: x * np.float16(3), x.astype(np.float16)),
    "bfloat16": (lambda x: (x * narrow, np.sum(x.astype(np.float32))), narrow[::-1].copy()),
    "integers": (lambda n: (n // 3, n % 3, n > 2), np.arange(-5, 5)),
    "custom rule": (func.value_and_grad(lambda x: np.sum(with_rule(x))), x),
    "checkpoint": (func.grad(lambda x: np.sum(func.checkpoint(np.sin)(x) * func.checkpoint(np.exp)(x))), x),
    "hessian": (func.hessian(lambda x: np.sum(np.sin(x) * x[::-1])), x),
    "nothing": (lambda x: x[:0], x),
    "tree": (lambda tree: {"out": (tree["a"] * 2.0, [tree["b"][0]])}, {"a": x, "b": (matrix, None)}),
    "large": (lambda x: np.sum(np.exp(x)), np.linspace(0.0, 1.0, 300_000)),
    "parts": (lambda x: np.fft.fft(np.sin(x) + 1.0).real * 2.0 + x, x),
}

def bits(out):
    return [(leaf.dtype.str, leaf.shape, leaf.tobytes().hex()[:200]) for leaf in map(np.asarray, func.tree.leaves(out))]
"""


def run(script: str, folder: Path, **variables: str) -> str:
    """The output of a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUNC_CACHE_DIR": str(folder), "FUNC_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "error", "-c", CASES + script]
    done = subprocess.run(command, env=environment | variables, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


ALL = """
for name, (function, *args) in CASES.items():
    jitted = func.jit(function)
    outs = [bits(jitted(*args)) for _ in range(3)]
    assert outs[0] == outs[1] == outs[2], name
    print(name, outs[0])
"""


def test_the_same_bits_from_disk(tmp_path: Path) -> None:
    cold, warm = run(ALL, tmp_path), run(ALL, tmp_path)
    assert cold.split("\n") == warm.split("\n")


MODULES = """
def loaded(*names):
    return [name for name in sys.modules if name.startswith(names)]

only = sys.argv[1:] or [name for name in CASES if name != "parts"]
for name in only:
    function, *args = CASES[name]
    func.jit(function)(*args)
print(loaded("llvmlite", "func.interpreters.compile.passes.", "func.interpreters.compile.native.translate"))
print(loaded("func.backends.llvm.codegen.", "func.backends.ir.", "func.backends.loops.fusion"))
"""


@pytest.mark.skipif(not loader.is_supported(), reason="LLVM links object code here")
def test_nothing_that_compiles_is_imported(tmp_path: Path) -> None:
    first = run(MODULES, tmp_path).split("\n")
    assert all([line != "[]" for line in first])
    assert run(MODULES, tmp_path) == "[]\n[]"


def test_what_is_asked_for_later_is_made_later(tmp_path: Path) -> None:
    """Kernels, IR, NumPy's errors and its results for arguments that native code refuses."""
    script = """
jitted = func.jit(lambda a, n: np.linalg.inv(a)[n])
print(bits(jitted(matrix, 1)))
for a, n in ((np.zeros((5, 5)), 1), (matrix, 2**70), (matrix.tolist(), 1)):
    try:
        print(bits(jitted(a, n)))
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
print(bits(jitted(np.asfortranarray(matrix), -1)))
lowered = jitted.lower(matrix, 1)
print(len(str(lowered)) > 200, "define" in str(lowered.llvm_ir), len(jitted.profile(matrix, 1, repeat=1).rows))
inner = func.jit(lambda x: np.sin(x) * x)
print(bits(func.grad(lambda x: np.sum(inner(x)))(x)), bits(func.vmap(inner)(matrix)), inner.trace(x) is not None)
"""
    assert run(script, tmp_path) == run(script, tmp_path)


def test_donated_arguments(tmp_path: Path) -> None:
    script = """
step = func.jit(lambda w, g: (w - 0.1 * g, np.sum(g)), donate_argnums=0)
for count in range(4):
    w = np.arange(50_000.0)
    before = w.ctypes.data
    out, total = step(w, np.ones(50_000))
    print(out.ctypes.data == before, bits((out, total)))
"""
    assert run(script, tmp_path) == run(script, tmp_path)


def test_other_options_are_other_entries(tmp_path: Path) -> None:
    script = """
x = np.linspace(0.0, 1.0, 1001)
for fast in (False, True):
    jitted = func.jit(lambda x: np.sum(x * 0.1 + x * x), fast_math=fast)
    print(bits(jitted(x)), "fast" in str(jitted.lower(x).llvm_ir) or "contract" in str(jitted.lower(x).llvm_ir))
"""
    cold = run(script, tmp_path)
    assert cold == run(script, tmp_path)
    assert [line.endswith("True") for line in cold.split("\n")] == [False, True]
    assert "_ZGV" not in run("print(func.jit(np.tan)(x).sum())", tmp_path, FUNC_NO_LIBMVEC="1")


ONE = 'print(bits(func.jit(CASES["constants"][0])(*CASES["constants"][1:])), "llvmlite" in sys.modules)'


def entries(folder: Path) -> list[Path]:
    """The files that hold programs, not object code."""
    return [path for path in folder.rglob("*.o") if b"code " in path.read_bytes()[:200]]


def test_without_its_object_code_an_entry_is_not_used(tmp_path: Path) -> None:
    cold = run(ONE, tmp_path)
    (entry,) = entries(tmp_path)
    digest = entry.read_bytes().partition(b"code ")[2][:64].decode()
    (code,) = [path for path in tmp_path.rglob("*.o") if path.stem == digest]
    code.unlink()
    assert run(ONE, tmp_path).split(" ")[:-1] == cold.split(" ")[:-1]
    assert code.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"code", b"code x\narena 0", b"output <f8 0 5\0", b"\xff\xfe", b"arena x\0", b"array 1 <f8 9\0"],
)
def test_entries_that_make_no_sense_are_not_used(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = Var(func.make_program(np.sin)(1.0).inputs[0].aval)
    program = Program([x], [], [x], {})
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))
    key = cache.digest("an entry")
    cache.store(key, cache.ObjectCode(content, ()))
    loaded = stored_programs.load(key, program)
    assert loaded is None or loaded[1] in ("x", "")  # no object code has such a key


def test_interfaces_survive() -> None:
    traced, small = np.arange(12.0).reshape(3, 4), np.array([1 + 2j, 3], np.complex64)
    constant = Var(func.make_program(np.sin)(1.0).inputs[0].aval)
    program = Program([], [], [], {constant: traced})
    interface = Interface(
        [ArraySpec((2, 3), np.dtype(np.float16), False), ArraySpec((), np.dtype(bool), True)],
        [traced.reshape(12), small, np.array(5, np.int8), np.ones(3, ml_dtypes.bfloat16)],
        [ArraySpec((0,), np.dtype(np.uint64), False), ArraySpec((4,), np.dtype(ml_dtypes.bfloat16), False)],
        128,
        {1: AliasedOutput(0, (3, 2))},
    )
    content = stored_programs._packed(interface, "f" * 64, program)
    assert content is not None and len(content) < 400
    got, code = stored_programs._unpacked(content, program)
    assert code == "f" * 64
    assert repr(got) == repr(interface)
    assert got.constants[0].ctypes.data == traced.ctypes.data


def test_large_constants_of_passes_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_programs, "LARGEST_CONSTANTS", 100)
    program = Program([], [], [], {})
    assert stored_programs._packed(Interface([], [np.arange(12)], []), "f", program) is not None
    assert stored_programs._packed(Interface([], [np.arange(13.0)], []), "f", program) is None


def test_without_a_folder_there_are_no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = func.make_program(np.sin)(1.0)
    arguments: tuple[Any, ...] = (program, False, frozenset(), False)
    monkeypatch.setattr(stored_programs, "enabled", True)
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))
    assert stored_programs.key_of(*arguments) == stored_programs.key_of(*arguments) is not None
    assert stored_programs.key_of(program, True, frozenset(), False) != stored_programs.key_of(*arguments)
    monkeypatch.setenv("FUNC_CACHE_DIR", "")
    assert stored_programs.key_of(*arguments) is None


def test_keys_tell_options_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stored_programs, "enabled", True)
    program = func.make_program(np.sin)(1.0)
    options = [(fast, frozenset(donated), checked) for fast in (0, 1) for donated in ([], [0]) for checked in (0, 1)]
    keys = [stored_programs.key_of(program, bool(fast), donated, bool(checked)) for fast, donated, checked in options]
    assert None not in keys and len(set(keys)) == len(options)
