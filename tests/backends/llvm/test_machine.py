"""Compiling and linking LLVM IR."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

llvm = pytest.importorskip("llvmlite.binding")

from func.backends import ir  # noqa: E402
from func.backends.llvm import compiler, machine  # noqa: E402
from func.backends.llvm.host import host, known  # noqa: E402


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path))


AXPY = """
define void @axpy({t}* %a, {t}* %b, {t}* %c, {t}* %out, i64 %n) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr {t}, {t}* %a, i64 %i
  %pb = getelementptr {t}, {t}* %b, i64 %i
  %pc = getelementptr {t}, {t}* %c, i64 %i
  %po = getelementptr {t}, {t}* %out, i64 %i
  %x = load {t}, {t}* %pa, align {align}
  %y = load {t}, {t}* %pb, align {align}
  %z = load {t}, {t}* %pc, align {align}
  %product = fmul {t} %x, %y
  %sum = fadd {t} %product, %z
  store {t} %sum, {t}* %po, align {align}
  %next = add i64 %i, {step}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def axpy_source(dtype: np.dtype, width: int) -> str:
    scalar = {"float32": "float", "float64": "double"}[dtype.name]
    text = AXPY.replace("align {align}", f"align {dtype.itemsize}")
    if width == 1:
        return text.format(t=scalar, step=1)
    # Pointers step by elements whatever is loaded through them.
    text = text.replace("getelementptr {t}", "getelementptr " + scalar)
    return text.format(t=f"<{width} x {scalar}>", step=width).replace(f"<{width} x {scalar}>*", "ptr")


def call(code, name, *arguments):
    kinds = [ctypes.c_int64 if isinstance(value, int) else ctypes.c_void_p for value in arguments]
    values = [value if isinstance(value, int) else value.ctypes.data for value in arguments]
    return ctypes.CFUNCTYPE(None, *kinds)(code.address(name))(*values)


def test_available():
    assert machine.available()


def test_unavailable_without_llvmlite(monkeypatch):
    monkeypatch.setattr(compiler, "llvm", None)
    host.cache_clear()
    known.cache_clear()
    compiler._start.cache_clear()
    try:
        assert not machine.available.__wrapped__()
        with pytest.raises(machine.CompileError, match="llvmlite"):
            host()
    finally:
        monkeypatch.undo()
        host.cache_clear()
        known.cache_clear()
        compiler._start.cache_clear()


@pytest.mark.parametrize("key", [None, "axpy"], ids=["quick", "thorough"])
@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_sums_are_not_contracted(dtype, width, key):
    """Bit for bit NumPy's result on operands where a fused multiply-add differs."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 4096)).astype(dtype)
    c = -(a * b)
    out = np.empty_like(a)
    code = machine.compile_ir(axpy_source(dtype, width), key and f"{key} {dtype} {width}")
    call(code, "axpy", a, b, c, out, len(a))
    assert not out.any()
    assert "vfmadd" not in code.assembly()


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_denormals_stay(dtype, width):
    dtype = np.dtype(dtype)
    tiny = np.finfo(dtype).smallest_subnormal
    a = np.full(16, tiny, dtype)
    b = np.full(16, 2, dtype)
    out = np.empty_like(a)
    call(machine.compile_ir(axpy_source(dtype, width)), "axpy", a, b, a, out, len(a))
    assert (out == 3 * tiny).all() and (out > 0).all()
    assert np.finfo(dtype).tiny / dtype.type(2) > 0, "the code changed the processor's mode for the whole process"


def test_ir_module_and_libm():
    module = ir.Module("trigonometry")
    kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
    sine = ir.Function(module, kind, "sin")
    function = ir.Function(module, kind, "twice")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.fmul(builder.call(sine, [function.args[0]]), ir.Constant(ir.DoubleType(), 2)))
    code = machine.compile_ir(module)
    twice = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("twice"))
    assert twice(0.5) == pytest.approx(2 * np.sin(0.5), rel=1e-15)


def test_registered_symbols_resolve():
    callback = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 41)
    llvm.add_symbol("func_test_answer", ctypes.cast(callback, ctypes.c_void_p).value)
    code = machine.compile_ir("""
        declare i32 @func_test_answer()
        define i32 @next() {
          %answer = call i32 @func_test_answer()
          %sum = add i32 %answer, 1
          ret i32 %sum
        }""")
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("next"))() == 42


def test_lowered_forms():
    code = machine.compile_ir(axpy_source(np.dtype("float64"), 4))
    assert "fmul <4 x double>" in code.ir()
    assert "axpy" in code.assembly()


def test_small_internal_functions_are_inlined():
    source = """
        define internal i32 @seven() alwaysinline { ret i32 7 }
        define i32 @eight() {
          %seven = call i32 @seven()
          %sum = add i32 %seven, 1
          ret i32 %sum
        }"""
    assert "@seven" not in machine.compile_ir(source).ir()
    assert "ret i32 8" in machine.compile_ir(source, key="eight").ir()  # a module with a key gets more passes


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("define i32 @f() { ret i64 0 }", "LLVM rejects"),
        ("garbage", "LLVM rejects"),
        (
            "declare void @func_nobody_has_this() define void @f() { call void @func_nobody_has_this() ret void }",
            "func_nobody_has_this",
        ),
    ],
)
def test_bad_modules(source, message):
    with pytest.raises(machine.CompileError, match=message):
        machine.compile_ir(source)


def test_unknown_function():
    code = machine.compile_ir("define void @f() { ret void }")
    with pytest.raises(machine.CompileError, match="'g'"):
        code.address("g")


def test_same_module_same_code():
    source = "define i32 @f() { ret i32 5 }"
    assert machine.compile_ir(source) is machine.compile_ir(source)
    assert machine.compile_ir(source) is not machine.compile_ir(source, key="five")


def test_a_key_identifies_the_module():
    texts = []

    def make():
        texts.append("define i32 @f() { ret i32 6 }")
        return texts[-1]

    first = machine.compile_ir(make, key="six")
    assert machine.compile_ir(make, key="six") is first
    assert len(texts) == 1
    assert "ret i32 6" in first.ir()


def test_code_is_collected():
    code = machine.compile_ir("define i32 @f() { ret i32 55 }")
    watch = weakref.ref(code)
    linked = weakref.ref(code._owner.linked)
    del code
    gc.collect()
    assert watch() is None
    assert linked() is None


def test_threads_compile_at_once():
    results = {}

    def work(index):
        for number in range(10):
            source = f"define i32 @f() {{ ret i32 {number} }}"
            code = machine.compile_ir(source)
            results[index, number] = ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {(index, number): number for index in range(4) for number in range(10)}


def test_code_that_is_being_freed_is_not_found(monkeypatch):
    found = []

    def free(linked):
        found.append(machine._loaded.get(digest))
        linked.close()

    monkeypatch.setattr(machine, "_free", free)
    source = "define i32 @f() { ret i32 56 }"
    code = machine.compile_ir(source)
    (digest,) = [key for key, value in machine._loaded.items() if value is code]
    del code
    gc.collect()
    assert found == [None]
