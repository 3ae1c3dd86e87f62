"""LLVM without llvmlite's Python code: its messages and its code are llvmlite's."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

llvm = pytest.importorskip("llvmlite.binding")

from func.backends.llvm import compiler, llvm_library, machine  # noqa: E402
from func.backends.llvm.call_stubs.stub_code import stub_module  # noqa: E402

ROOT = Path(__file__).parents[3]
MODULES = {
    "constant": "define i32 @seven() { ret i32 7 }",
    "call": "declare double @cos(double)\ndefine double @f(double %x) {\n %y = call double @cos(double %x)\n"
    " ret double %y\n}",
    "vector": "define <8 x double> @g(<8 x double> %x, <8 x double> %y) {\n %z = fmul <8 x double> %x, %y\n"
    " %s = fadd <8 x double> %z, %x\n ret <8 x double> %s\n}",
    "stubs": str(stub_module()),
}

if llvm_library._library() is None:
    pytest.skip("the library of this llvmlite is not called directly", allow_module_level=True)


def test_the_installed_version_is_known() -> None:
    """Should this fail after an update of llvmlite: `VERSIONS` may be extended where all tests of this file pass."""
    assert llvm_library._version() == __import__("llvmlite").__version__


@pytest.mark.parametrize("name", sorted(llvm_library.FUNCTIONS))
def test_signatures_are_llvmlites(name: str) -> None:
    theirs = getattr(llvm.ffi.lib, llvm_library.PREFIX + name)
    result, arguments = llvm_library.FUNCTIONS[name]
    if theirs.argtypes is not None:  # llvmlite leaves it out where there are none, and for passes of functions
        assert [_kind(kind) for kind in theirs.argtypes] == [_kind(kind) for kind in arguments]
    if result is not None:
        assert _kind(theirs.restype) == _kind(result)


def _kind(kind: Any) -> tuple[bool, int]:
    """Whether a type is a pointer, and its size: the call convention depends on them."""
    is_pointer = kind in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(kind, "contents")
    return is_pointer, ctypes.sizeof(kind)


def test_the_host_is_described_alike() -> None:
    assert llvm_library.ask_host() == compiler.ask_host()


@pytest.mark.parametrize("pipeline", [machine.QUICK, machine.THOROUGH], ids=["quick", "thorough"])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_object_code_is_the_same_to_the_byte(name: str, pipeline: machine.Pipeline) -> None:
    assert llvm_library.emit_object(MODULES[name], pipeline) == compiler.emit_object(MODULES[name], pipeline)


def test_every_pass_of_the_pipelines_is_known() -> None:
    assert {*machine.QUICK.passes, *machine.THOROUGH.passes} <= set(llvm_library.PASSES)


@pytest.mark.parametrize(
    "text", ["nonsense", "define i32 @f() { ret i64 7 }", "define i32 @f() {\n br label %a\na:\n br label %b\n}"]
)
def test_refusals_are_worded_alike(text: str) -> None:
    for generator in (llvm_library, compiler):
        with pytest.raises(machine.CompileError, match="LLVM rejects the module"):
            generator.emit_object(text)
    assert llvm_library.emit_object(MODULES["constant"]) == compiler.emit_object(MODULES["constant"])


def test_verification_refuses_what_can_be_parsed() -> None:
    text = """
define i32 @f(i1 %c) {
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
}
"""
    with pytest.raises(machine.CompileError, match="dominate"):
        llvm_library.emit_object(text)


SCRIPT = """
import sys
import numpy as np, func
from func.backends.llvm import machine
x = np.linspace(0.1, 1.0, 50)
f = func.jit(func.grad(lambda x: np.sum(np.exp(-x) * np.tanh(x @ np.outer(x, x)))))
print(f(x).tobytes().hex())
print("llvmlite" in sys.modules, machine.generator().__name__.rpartition(".")[2])
"""


def test_compilation_imports_no_llvmlite_and_gives_the_same_bits(tmp_path: Path) -> None:
    outputs = []
    for first in ("", "import llvmlite.binding\n"):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "FUNC_CACHE_DIR": str(tmp_path / (first[:1] or "none"))}
        command = [sys.executable, "-W", "error", "-c", first + SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done.stderr
        outputs.append(done.stdout.split("\n"))
    assert outputs[0][0] == outputs[1][0]
    assert [lines[1] for lines in outputs] == ["False llvm_library", "True compiler"]
