"""The builder of IR text against llvmlite's builder: LLVM reads the same module from both."""

import ctypes
import functools
import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

import llvmlite.binding as llvm
import llvmlite.ir
import numpy as np

import func
from func.backends import ir
from func.backends.llvm import machine

pytestmark = pytest.mark.skipif(not machine.available(), reason="no native code on this machine")


def normal_form(source):
    """LLVM's reading of a text, with local names in the order of their appearance."""
    lines, names = [], {}
    source = re.sub(r" alignstack\(\d+\)", "", source)  # it is the module's here, llvmlite knows it of functions
    for line in str(llvm.parse_assembly(source, llvm.create_context())).splitlines():
        line = re.sub(r"\s*;.*", "", line)
        if not line or line.startswith(("source_filename", "target")):
            continue
        if line.startswith(("define", "declare")):
            names = {}
        label = re.fullmatch(r'("[^"]*"|[\w.$-]+):', line)
        line = f"%{label[1]}:" if label else line
        lines.append(re.sub(r'%("[^"]*"|[\w.$-]+)', functools.partial(_numbered, names), line))
    return lines


def _numbered(names, match):
    return f"%{names.setdefault(match[1].strip(chr(34)), len(names))}"


def new_function(ir, result, arguments, name="f"):
    module = ir.Module("example")
    module.triple = ""
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    return module, function, ir.IRBuilder(function.append_basic_block("entry"))


def arithmetic(ir):
    kind = ir.IntType(32)
    module, function, b = new_function(ir, kind, [kind, kind])
    x, y = function.args
    total = x
    for name in ("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and_", "or_", "xor"):
        total = getattr(b, name)(total, y)
    total = b.add(b.neg(total), b.not_(x), flags=("nuw", "nsw"))
    b.ret(total)
    return module


def numbers(ir):
    kind = ir.VectorType(ir.DoubleType(), 3)
    module, function, b = new_function(ir, kind, [kind, kind])
    x, y = function.args
    total = x
    for name in ("fadd", "fsub", "fmul", "fdiv", "frem"):
        total = getattr(b, name)(total, y)
    total = b.fmul(total, b.fneg(x), flags=("contract", "nsz"))
    for value in (0.1, -0.0, float("inf"), float("nan"), 5e-324):
        total = b.fadd(total, ir.Constant(kind, [value, 1.0, -value]))
    total = b.fadd(total, ir.Constant(kind, None))
    b.ret(b.select(b.fcmp_ordered("<", total, y), total, ir.Constant(kind, ir.Undefined)))
    return module


def conversions(ir):
    word, half, single, double = ir.IntType(64), ir.HalfType(), ir.FloatType(), ir.DoubleType()
    module, function, b = new_function(ir, word, [double])
    x = b.fptrunc(function.args[0], single)
    x = b.fpext(b.fadd(b.fptrunc(x, half), half(0.1)), single)
    x = b.fmul(x, single(0.1))
    n = b.fptosi(x, ir.IntType(16))
    n = b.add(b.sext(n, word), b.zext(b.fptoui(x, ir.IntType(8)), word))
    n = b.add(n, b.bitcast(b.fadd(b.sitofp(n, double), b.uitofp(n, double)), word))
    n = b.add(n, b.zext(b.trunc(n, ir.IntType(1)), word))
    b.ret(b.add(n, b.bitcast(n, word)))
    return module


def comparisons(ir):
    bit, word, double = ir.IntType(1), ir.IntType(64), ir.DoubleType()
    module, function, b = new_function(ir, bit, [word, word, double, double])
    i, j, x, y = function.args
    parity = ir.Constant(bit, True)
    for how in ("==", "!=", "<", "<=", ">", ">="):
        parity = b.xor(parity, b.icmp_signed(how, i, j))
        parity = b.xor(parity, b.icmp_unsigned(how, i, j))
        parity = b.xor(parity, b.fcmp_ordered(how, x, y))
        parity = b.xor(parity, b.fcmp_unordered(how, x, y))
    parity = b.or_(parity, b.fcmp_ordered("ord", x, y))
    b.ret(b.and_(parity, b.fcmp_unordered("uno", x, y)))
    return module


def parts(ir):
    single, place = ir.FloatType(), ir.IntType(32)
    four = ir.VectorType(single, 4)
    pair = ir.LiteralStructType([single, place])
    module, function, b = new_function(ir, single, [four, pair, ir.ArrayType(single, 2)])
    x, both, array = function.args
    lane = b.extract_element(x, place(3))
    x = b.insert_element(x, lane, place(0))
    mask = ir.Constant(ir.VectorType(place, 6), [0, 1, 2, 3, 0, 5])
    wide = b.shuffle_vector(x, ir.Constant(four, ir.Undefined), mask)
    both = b.insert_value(both, lane, 0)
    total = b.fadd(b.extract_value(both, 0), b.extract_value(array, 1))
    b.ret(b.fadd(total, b.extract_element(wide, place(4))))
    return module


def memory(ir):
    word, double, pointer = ir.IntType(64), ir.DoubleType(), ir.PointerType()
    module, function, b = new_function(ir, ir.VoidType(), [pointer, word])
    start, i = function.args
    start.add_attribute("noalias")
    table = ir.GlobalVariable(module, ir.ArrayType(word, 3), "table")
    table.initializer = ir.Constant(ir.ArrayType(word, 3), [1, 2, 3])
    table.linkage, table.global_constant, table.unnamed_addr = "private", True, True
    empty = ir.GlobalVariable(module, ir.ArrayType(pointer, 2), "empty")
    empty.initializer = ir.Constant(ir.ArrayType(pointer, 2), None)
    letters = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), 2), "letters")
    letters.initializer = ir.Constant(ir.ArrayType(ir.IntType(8), 2), bytearray(b"a\0"))
    ir.GlobalVariable(module, word, "elsewhere")
    following = b.append_basic_block("next")
    b.branch(following)
    b.position_at_end(following)
    with b.goto_entry_block():
        slots = [b.alloca(double), b.alloca(word, size=2)]
    known = b.load(b.gep(table, [word(0), i]), typ=word)
    value = b.load(b.gep(start, [known], inbounds=True, source_etype=double), align=8, typ=double)
    b.store(value, slots[0])
    b.store(b.ptrtoint(b.inttoptr(i, pointer), word), slots[1], align=4)
    b.store(b.load(slots[0], typ=double), start, align=8)
    b.ret_void()
    return module


def shared_memory(ir):
    word, pointer = ir.IntType(64), ir.PointerType()
    module, function, b = new_function(ir, word, [pointer, word])
    place, x = function.args
    variable = ir.GlobalVariable(module, word, "variable")
    variable.initializer, variable.align = word(0), 128
    before = b.atomic_rmw("xchg", variable, x, "seq_cst")
    before = b.add(before, b.atomic_rmw("sub", place, word(1), "acq_rel"))
    pair = b.cmpxchg(variable, before, x, "seq_cst", "monotonic")
    before = b.add(b.extract_value(pair, 0), b.zext(b.extract_value(pair, 1), word))
    b.store_atomic(before, variable, "release", 8)
    b.ret(b.add(b.load_atomic(variable, "acquire", 8), b.load_atomic(place, "seq_cst", 8, typ=word)))
    return module


def jumps(ir):
    word = ir.IntType(64)
    module, function, b = new_function(ir, word, [word])
    (stop,) = function.args
    entry, head, done = b.block, b.append_basic_block(), b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(word)
    i.add_incoming(word(0), entry)
    with b.if_then(b.icmp_signed("==", i, word(3)), likely=False):
        b.call(ir.Function(module, ir.FunctionType(ir.VoidType(), [word]), "seen"), [i])
    with b.if_then(b.icmp_signed("==", i, word(4)), likely=True):
        b.ret(i)
    with b.if_else(b.icmp_signed("==", i, word(5))) as (yes, no):
        with yes:
            one = b.add(i, word(1))
            first = b.block
        with no:
            two = b.add(i, word(2))
            second = b.block
    joined = b.phi(word)
    joined.add_incoming(one, first)
    joined.add_incoming(two, second)
    i.add_incoming(joined, b.block)
    b.cbranch(b.icmp_unsigned("<", joined, stop), head, done)
    b.position_at_end(done)
    never = b.append_basic_block()
    case = b.append_basic_block()
    chosen = b.switch(stop, never)
    chosen.add_case(word(1), case)
    b.position_at_end(case)
    b.ret(stop)
    b.position_at_end(never)
    b.unreachable()
    return module


def calls(ir):
    double = ir.DoubleType()
    module, function, b = new_function(ir, double, [double])
    helper = ir.Function(module, ir.FunctionType(double, [double, double]), "func.helper")
    helper.linkage = "internal"
    helper.attributes.add("nounwind")
    helper.attributes.add("alwaysinline")
    inner = ir.IRBuilder(helper.append_basic_block())
    inner.ret(inner.fadd(*helper.args))
    module.add_metadata(["a mark"])
    assert module.globals["func.helper"] is helper is module.get_global("func.helper")
    b.ret(b.call(helper, [function.args[0], double(2.0)]))
    return module


BUILT = [arithmetic, numbers, conversions, comparisons, parts, memory, shared_memory, jumps, calls]


@pytest.mark.parametrize("build", BUILT, ids=lambda build: build.__name__)
def test_llvm_reads_what_llvmlite_would_have_written(build):
    assert normal_form(str(build(ir))) == normal_form(str(build(llvmlite.ir)))


@pytest.mark.parametrize(("width", "word"), [(0, ""), (16, ""), (32, " alignstack(32)"), (64, " alignstack(64)")])
def test_stacks_are_aligned_to_vectors(width, word):
    module = calls(ir)
    ir.Function(module, ir.FunctionType(ir.VoidType(), []), "elsewhere")
    module.vector_bytes = width
    lines = str(module).splitlines()
    assert [line for line in lines if line.startswith("declare")] == ['declare void @"elsewhere"()']
    defined = [line for line in lines if line.startswith("define")]
    assert [line.partition(")")[2] for line in defined if "helper" not in line] == [f"{word} {{"]
    assert [line.partition("nounwind")[2] for line in defined if "helper" in line] == [f"{word} {{"]


def test_types_are_one_object_each():
    kind = ir.VectorType(ir.DoubleType(), 4)
    assert kind is ir.VectorType(ir.DoubleType(), 4)
    assert kind is not ir.VectorType(ir.FloatType(), 4)
    assert kind.truth is ir.VectorType(ir.IntType(1), 4)
    assert ir.LiteralStructType([kind]) is ir.LiteralStructType([kind])


def test_operands_of_different_types_are_refused():
    _, function, b = new_function(ir, ir.VoidType(), [ir.IntType(32), ir.IntType(64)])
    with pytest.raises(ValueError, match="add of i32 and i64"):
        b.add(*function.args)
    with pytest.raises(ValueError, match="icmp of i32 and i64"):
        b.icmp_signed("<", *function.args)
    with pytest.raises(TypeError, match=r"f takes void \(i32, i64\), not i64"):
        b.call(function, function.args[1:])
    with pytest.raises(TypeError, match=r"the function at %a0 takes i32 \(i32\), not i64"):
        b.call_pointer(function.args[0], ir.FunctionType(ir.IntType(32), [ir.IntType(32)]), function.args[1:])
    with pytest.raises(ValueError, match="cmpxchg of i32 and i64"):
        b.cmpxchg(function.args[0], *function.args, "seq_cst")
    with pytest.raises(TypeError, match="load takes the type"):
        b.load(function.args[0])
    with pytest.raises(ValueError, match="has a 'f' already"):
        ir.Function(function.module, function.function_type, "f")


def test_loops_run_for_every_index_and_by_a_function_at_an_address():
    word, pointer = ir.IntType(64), ir.PointerType()
    kind = ir.FunctionType(word, [word])
    module, function, b = new_function(ir, word, [pointer, word], "total")
    address, count = function.args
    total = b.alloca(word, size=ir.Constant(ir.IntType(32), 8), align=64)
    b.store(word(0), total)
    with b.loop(count) as index:
        b.store(b.add(b.load(total, typ=word), b.call_pointer(address, kind, [index])), total)
    with b.repeat(), b.if_then(b.icmp_signed(">", b.atomic_rmw("add", total, word(10), "seq_cst"), word(100))):
        b.ret(b.add(b.load(total, typ=word), b.urem(b.ptrtoint(total, word), word(64))))
    square = ir.Function(module, kind, "square")
    inner = ir.IRBuilder(square.append_basic_block())
    inner.ret(inner.mul(square.args[0], square.args[0]))
    code = machine.compile_ir(module)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(code.address("total"))
    assert [call(code.address("square"), number) for number in (0, 1, 5, 10)] == [120, 120, 120, 295]


def programs():
    """The IR of some programs, in order."""
    from func.backends.llvm.codegen import printer

    texts = []
    emit = printer.print_program

    def recorded(*args, **options):
        module = emit(*args, **options)
        texts.append(str(module))
        return module

    printer.print_program = recorded
    try:
        for function, *args in CASES:
            func.jit(function, compiler="llvm")(*args)
    finally:
        printer.print_program = emit
    return texts


X = np.linspace(0.1, 2, 37)
A = np.add.outer(X, X[:6]) + 1
CASES = [
    (func.grad(lambda x: np.sum(np.sin(x) * np.exp(-x * x))), X),
    (lambda a: np.exp(a) / np.sum(np.exp(a), axis=-1, keepdims=True), A),
    (lambda a: a.T @ np.tanh(a), A.astype(np.float32)),
    (lambda a: np.linalg.inv(a.T @ a + np.eye(6)), A),
    (lambda a: np.sort(a)[::2, 3:] + np.max(a, axis=0)[3:] * (1 + 2j), A),
    (lambda x: func.fori_loop(0, 5, lambda i, y: np.where(y > i, y / 2, y + i), x), X),
    (lambda x, i: x[i] % 3 // 2, np.arange(20, dtype=np.int32), np.array([3, -1, 4])),
]

SCRIPT = """
import sys, json
import llvmlite.ir
import func.backends.llvm
sys.modules["func.backends.ir"] = func.backends.ir = llvmlite.ir
from func.backends.llvm.codegen.printer import Printer
from tests.backends.llvm.test_ir import programs
Printer._length = lambda self: 0  # it counts the instructions of blocks, which llvmlite's have under another name
sys.stdout.write(json.dumps(programs()))
"""


def test_programs_are_those_that_llvmlite_would_have_written():
    environment = {**os.environ, "FUNC_CACHE_DIR": ""}  # programs on disk are not printed
    output = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment)
    theirs = json.loads(output.stdout)
    ours = programs()
    assert len(ours) == len(theirs) >= len(CASES)
    for text, expected in zip(ours, theirs, strict=True):
        assert normal_form(text) == normal_form(expected)
