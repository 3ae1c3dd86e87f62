"""Call stubs check arguments and make results; mismatches go to the slow function; nothing leaks."""

import ctypes
import gc
import itertools
import pickle
import re
import sys
import threading
import tracemalloc
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from func.backends.llvm import compiler, machine
from func.backends.llvm.call_stubs import binding, capi, stub_table
from func.backends.llvm.call_stubs import signature as signatures
from func.backends.llvm.call_stubs.binding import bind, native_stub, normalised, python_stub
from func.backends.llvm.call_stubs.signature import Leaf, Mismatch, StubSignature, Tree, tree_of
from func.backends.llvm.call_stubs.stub_code import stub_module

native = pytest.mark.skipif(not capi.available() or not machine.available(), reason="no native stubs here")
MAKERS = [pytest.param(native_stub, marks=native, id="native"), pytest.param(python_stub, id="python")]
RUN = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
X = np.arange(10.0)
BIG = stub_table.MIN_REUSED_OUTPUT // 8


def addresses(pointer: int, count: int) -> list[int]:
    return [value or 0 for value in (ctypes.c_void_p * count).from_address(pointer)] if count else []


def slow(*args: Any, **keywords: Any) -> Any:
    return "slow", args, keywords


def failed(status: int, *args: Any) -> Any:
    return "failed", status, args


def bound(make: Any, signature: StubSignature, body: Callable[[list[int], list[int], int], int], **options: Any) -> Any:
    """A stub whose program is a Python function of input addresses, output addresses and scratch address."""
    counts = [len(list(signatures.leaves(tree))) for tree in (signature.args, signature.result)]
    counts[1] += signature.expected is not None

    def run(inputs: int, outputs: int, arena: int) -> int:
        return body(addresses(inputs, counts[0]), addresses(outputs, counts[1]), arena or 0)

    callback = RUN(run)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    return make(address, signature, options.get("slow", slow), options.get("failed", failed), callback)


def copier(make: Any, *example: Any, **options: Any) -> Any:
    """A stub that returns copies of its arguments."""
    tree = tuple([tree_of(part) for part in example])
    sizes = [leaf.nbytes for leaf in signatures.leaves(tree)]

    def body(inputs: list[int], outputs: list[int], arena: int) -> int:
        for source, target, size in zip(inputs, outputs, sizes, strict=True):
            ctypes.memmove(target, source, size)
        return 0

    options.setdefault("signature", StubSignature(tree, tree))
    return bound(make, options.pop("signature"), body, **options)


def same(left: Any, right: Any) -> bool:
    """Whether two trees have the same types, values and key order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all([same(left[key], right[key]) for key in left])
    if isinstance(left, (np.ndarray, np.generic)):
        return left.dtype == right.dtype and left.shape == right.shape and np.array_equal(left, right)
    return bool(left == right)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.builds(
        lambda shape, dtype: np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype),
        st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple),
        st.sampled_from("?bhilqefdFD"),
    ),
    st.builds(lambda number, dtype: np.dtype(dtype).type(number), st.integers(0, 9), st.sampled_from("?bBhHilqefdgFD")),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(-3, 3)), inner, max_size=4),
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=80)
@given(args=st.lists(TREES, max_size=4).map(tuple))
def test_every_tree_goes_in_and_comes_out(make: Any, args: tuple[Any, ...]) -> None:
    call = copier(make, *args)
    for _ in range(2):
        assert same(call(*args), args)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("result", [None, (), [], {}, (None, [None]), {"a": None, 3: ()}], ids=repr)
def test_results_without_leaves(make: Any, result: Any) -> None:
    assert same(bound(make, StubSignature((), tree_of(result)), lambda *_: 0)(), result)


@pytest.mark.parametrize("make", MAKERS)
def test_order_of_leaves_is_sorted_and_order_of_keys_kept(make: Any) -> None:
    scalar = Leaf("python", (), np.dtype(float))
    tree: Tree = {"b": scalar, 2: scalar, "a": scalar, 1: scalar}

    def body(inputs: list[int], outputs: list[int], arena: int) -> int:
        for number, (source, target) in enumerate(zip(inputs, outputs, strict=True)):
            seen.append(ctypes.c_double.from_address(source).value)
            ctypes.c_double.from_address(target).value = number
        return 0

    seen: list[float] = []
    result = bound(make, StubSignature((tree,), tree), body)({"a": 0.5, "b": 1.5, 1: 2.5, 2: 3.5})
    assert seen == [2.5, 3.5, 0.5, 1.5]
    assert list(result.items()) == [("b", 3.0), (2, 1.0), ("a", 2.0), (1, 0.0)]


class Array(np.ndarray):
    pass


class Number(float):
    pass


MISMATCHES = {
    "too few arguments": ((X,), ()),
    "too many arguments": ((X,), (X, X)),
    "another shape": ((X,), (X[:9].copy(),)),
    "another number of dimensions": ((X,), (X.reshape(2, 5),)),
    "another dtype": ((X,), (X.astype("f4"),)),
    "another integer dtype": ((np.arange(3),), (np.arange(3, dtype="u8"),)),
    "byte order": ((X,), (X.astype(">f8"),)),
    "strided": ((X,), (np.arange(20.0)[::2],)),
    "reversed": ((X,), (X[::-1],)),
    "fortran order": ((np.ones((2, 3)),), (np.ones((3, 2)).T,)),
    "unaligned": ((X,), (np.frombuffer(bytearray(81), np.uint8)[1:].view("f8"),)),
    "subclass": ((X,), (X.view(Array),)),
    "list for an array": ((X,), (X.tolist(),)),
    "None for an array": ((X,), (None,)),
    "array for None": ((None,), (X,)),
    "Python float for an array": ((np.float64(1),), (1.0,)),
    "array for a Python float": ((1.0,), (np.array(1.0),)),
    "NumPy scalar for a Python float": ((1.0,), (np.float64(1),)),
    "another NumPy scalar": ((np.float64(1),), (np.float32(1),)),
    "one-element array for a scalar": ((np.float64(1),), (np.ones(1),)),
    "subclass of float": ((1.0,), (Number(1),)),
    "int for float": ((1.0,), (1,)),
    "bool for int": ((1,), (True,)),
    "int for bool": ((True,), (1,)),
    "NumPy bool for bool": ((True,), (np.True_,)),
    "int too large": ((1,), (2**63,)),
    "int too small": ((1,), (-(2**63) - 1,)),
    "float for complex": ((1j,), (1.0,)),
    "list for tuple": (((X, X),), ([X, X],)),
    "tuple for list": (([X, X],), ((X, X),)),
    "longer list": (([X],), ([X, X],)),
    "shorter list": (([X, X],), ([X],)),
    "longer tuple": (((X,),), ((X, X),)),
    "another key": (({"a": X},), ({"b": X},)),
    "more keys": (({"a": X},), ({"a": X, "b": X},)),
    "kind of dict": (({"a": X},), (OrderedDict(a=X),)),
    "late in a tree": (([X, {"a": [X, (X, X)]}],), ([X, {"a": [X, (X, 1.0)]}],)),
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatches_go_to_the_slow_function(make: Any, name: str) -> None:
    example, args = MISMATCHES[name]
    before = [sys.getrefcount(part) for part in (X, *args) if type(part) is np.ndarray]
    word, passed, keywords = copier(make, *example)(*args)
    assert word == "slow" and not keywords
    assert all([actual is expected for actual, expected in zip(passed, args, strict=True)])
    del passed
    assert [sys.getrefcount(part) for part in (X, *args) if type(part) is np.ndarray] == before


@pytest.mark.parametrize("make", MAKERS)
def test_arguments_by_name_go_to_the_slow_function(make: Any) -> None:
    assert copier(make, X)(X, out=3) == ("slow", (X,), {"out": 3})


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("code", "?bBhHiIlLqQefdgFDG")
def test_scalars_of_every_dtype(make: Any, code: str) -> None:
    value = np.dtype(code).type(1)
    call = copier(make, value)
    (result,) = call(np.array(value))
    assert type(result) is type(value) and result == value
    if capi.scalar_offset(np.dtype(code)) is not None:
        assert same(call(value), (value,))


@pytest.mark.parametrize("make", MAKERS)
def test_bfloat16(make: Any) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    args = (np.arange(5).astype(bfloat16), bfloat16(2.5), {"a": bfloat16(3)})
    assert same(copier(make, *args)(*args), args)


@pytest.mark.parametrize("make", MAKERS)
def test_arrays_that_need_no_copy(make: Any) -> None:
    call = copier(make, X)
    read_only = X.copy()
    read_only.flags.writeable = False
    for array in (read_only, pickle.loads(pickle.dumps(X)), np.arange(20.0)[10:], np.frombuffer(X.tobytes())):
        assert same(call(array)[0], array.copy())


def test_a_leaf_is_a_number() -> None:
    for dtype in (np.dtype(object), np.dtype("U3"), np.dtype(">f8"), np.dtype("M8[s]"), np.dtype([("a", "f8")])):
        with pytest.raises(ValueError, match="native byte order"):
            Leaf("array", (), dtype)
    with pytest.raises(ValueError, match="Python scalar"):
        Leaf("python", (2,), np.dtype(float))
    with pytest.raises(Mismatch, match="type str"):
        tree_of(("a",))
    with pytest.raises(Mismatch, match="native byte order"):
        tree_of(np.array("a"))


@pytest.mark.parametrize("make", MAKERS)
def test_a_status_goes_to_the_failure_function(make: Any) -> None:
    tree = tree_of((X, {"a": X}, 1.0, None))
    call = bound(make, StubSignature((tree_of([X]),), tree), lambda *_: -7)
    argument = [X]
    before = sys.getrefcount(X), sys.getrefcount(argument), sys.getrefcount(np.dtype(float))
    for _ in range(50):
        word, status, (passed,) = call(argument)
        assert (word, status) == ("failed", -7) and passed is argument
        del passed
    assert before == (sys.getrefcount(X), sys.getrefcount(argument), sys.getrefcount(np.dtype(float)))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("result", [X, 1.0, (X, {"a": None}), None, ()], ids=repr)
def test_a_last_output_that_is_not_the_expected_number_goes_to_the_failure_function(make: Any, result: Any) -> None:
    found, status = 0, 0

    def body(inputs: list[int], outputs: list[int], arena: int) -> int:
        ctypes.c_int64.from_address(outputs[-1]).value = found
        return status

    call = bound(make, StubSignature((tree_of([X]),), tree_of(result), expected=3), body)
    cases = [((3, 0), None), ((2, 0), 8), ((4, 0), 8), ((-3, 0), 8), ((3 + 2**32, 0), 8), ((3, 1), 1), ((2, 2), 2)]
    for (found, status), right in cases:  # noqa: B007
        before = sys.getrefcount(X)
        outcome = call([X])
        assert outcome[:2] == ("failed", right) if right else type(outcome) is type(result)
        del outcome
        assert before == sys.getrefcount(X)


class Stop(Exception):
    pass


def stop(*args: Any) -> Any:
    raise Stop


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
def test_errors_of_the_python_functions_are_raised(make: Any, error: type[BaseException]) -> None:
    def refuse(*args: Any) -> Any:
        raise error

    with pytest.raises(error):
        copier(make, X, slow=refuse)([X])
    with pytest.raises(error):
        bound(make, StubSignature((), None), lambda *_: 1, failed=refuse)()


@pytest.mark.parametrize("make", MAKERS)
def test_an_error_set_by_the_program_is_raised(make: Any) -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    address = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    llvm.add_symbol("func_test_no_memory", address)
    text = "define i32 @run(ptr %0, ptr %1, ptr %2) { call ptr @func_test_no_memory() ret i32 3 }"
    code = machine.compile_ir(f"declare ptr @func_test_no_memory()\n{text}")
    call = make(code.address("run"), StubSignature((tree_of([X]),), tree_of(X)), slow, failed, code)
    for _ in range(3):
        with pytest.raises(MemoryError):
            call([X])


@pytest.mark.parametrize("make", MAKERS)
def test_too_large_an_output_or_arena(make: Any) -> None:
    huge = Leaf("array", (1 << 50,), np.dtype(np.float64))
    before = sys.getrefcount(X)
    for signature in (
        StubSignature((tree_of([X]),), (tree_of(X), huge)),
        StubSignature((tree_of([X]),), None, arena=1 << 60),
    ):
        call = bound(make, signature, lambda *_: 0)
        for _ in range(20):
            with pytest.raises(MemoryError):
                call([X])
        del call
    assert before == sys.getrefcount(X)


def traced_growth(work: Callable[[], object]) -> int:
    """Bytes that Python's and NumPy's allocators hold more after `work` than before."""
    work()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@native
@pytest.mark.parametrize("status", [0, 1])
def test_nothing_leaks_in_many_calls(status: int) -> None:
    code = machine.compile_ir(f"define i32 @run(ptr %0, ptr %1, ptr %2) {{ ret i32 {status} }}")
    key = "a key of the dict"
    args = (X, [X, 1.5, {key: X, 2: (X, None)}], np.float64(2), True, 2**40)
    tree = tuple([tree_of(part) for part in args])
    call = native_stub(code.address("run"), StubSignature(tree, (tree, None)), slow, lambda status, *args: None, code)
    watched = (X, key, args[1], np.dtype(float), np.float64, slow, np.ndarray, None, *args[1:4])

    def work() -> None:
        for _ in range(50_000):
            call(*args)
            call(*args[:-1], None)

    counts = [sys.getrefcount(part) for part in watched]
    assert traced_growth(work) < 5_000
    assert [after - before < 20 for before, after in zip(counts, [sys.getrefcount(p) for p in watched], strict=True)]


@native
def test_a_stub_dies_with_what_it_holds() -> None:
    class Owner:
        def slow(self, *args: Any) -> Any:
            return args

    def make_and_drop() -> list[weakref.ref[Any]]:
        owner = Owner()
        call = bound(
            native_stub, StubSignature((), tree_of(np.ones(BIG)), arena=1 << 20), lambda *_: 0, slow=owner.slow
        )
        owner.call = call  # type: ignore[attr-defined]
        call()
        return [weakref.ref(owner), weakref.ref(call)]

    assert traced_growth(lambda: [gc.collect() for ref in make_and_drop()]) < 5_000
    references = make_and_drop()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@native
def test_large_results_that_nobody_holds_are_used_again() -> None:
    call = bound(native_stub, StubSignature((), tree_of(np.ones((2, 1, BIG)))), lambda *_: 0)
    first = call().ctypes.data
    assert all([call().ctypes.data == first for _ in range(5)])
    held = [call(), call()]
    later = [call().ctypes.data for _ in range(3)]
    assert len(set(later)) == 1 and later[0] not in [array.ctypes.data for array in held]
    small = bound(native_stub, StubSignature((), tree_of(X)), lambda *_: 0)
    assert small() is not small()


@native
def test_large_results_are_let_go_where_the_signature_says_so() -> None:
    call = bound(native_stub, StubSignature((), tree_of(np.ones(BIG)), keeps_outputs=False), lambda *_: 0)
    array = call()
    reference = weakref.ref(array)
    del array
    assert reference() is None


def changed_flags(array: Any) -> None:
    array.flags.writeable = False


def changed_shape(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # since NumPy 2.5
        array.shape = array.shape[::-1]


TOUCHES = [lambda array: array[1:], memoryview, weakref.ref, lambda array: [array], lambda array: iter(array)]


@native
@pytest.mark.parametrize("touch", TOUCHES)
def test_large_results_that_somebody_refers_to_are_left_alone(touch: Callable[[Any], Any]) -> None:
    call = bound(native_stub, StubSignature((), tree_of(np.ones((2, BIG)))), lambda *_: 0)
    array = call()
    address = array.ctypes.data
    held = touch(array)
    del array
    assert call().ctypes.data != address
    del held


@native
@pytest.mark.parametrize("change", [changed_flags, changed_shape])
def test_large_results_that_were_changed_are_left_alone(change: Callable[[Any], None]) -> None:
    call = bound(native_stub, StubSignature((), tree_of(np.ones((2, BIG)))), lambda *_: 0)
    array = call()
    change(array)
    address = array.ctypes.data
    del array
    for _ in range(4):
        array = call()
        assert array.shape == (2, BIG) and array.flags.writeable and array.flags.c_contiguous
        assert array.ctypes.data != address or array.base is None
    assert call() is not None


@pytest.mark.parametrize("count", [10, 1000, 20_000])
def test_many_leaves(count: int) -> None:
    args = ([float(number) for number in range(count)], {str(number): np.full(2, number) for number in range(count)})
    assert same(copier(bind, *args)(*args), args)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("size", [0, 1, 100, stub_table.MAX_STACK_ARENA, stub_table.MAX_STACK_ARENA + 1, 1 << 20])
def test_scratch_memory_is_aligned_and_a_call_s_own(make: Any, size: int) -> None:
    seen: list[tuple[int, int]] = []

    def body(inputs: list[int], outputs: list[int], arena: int) -> int:
        depth = ctypes.c_int64.from_address(inputs[0]).value
        assert arena % 64 == 0
        ctypes.memset(arena, depth, size)
        seen.append((arena, arena + size))
        if depth < 20:
            call(depth + 1)
        ok.append(ctypes.string_at(arena, size) == bytes([depth]) * size)
        return 0

    ok: list[bool] = []
    call = bound(make, StubSignature((tree_of(1),), None, arena=size), body)
    for _ in range(2):
        call(1)
    assert len(ok) == 40 and all(ok)
    ends = sorted(seen[:20])
    assert all([stop <= start for (_, stop), (start, _) in itertools.pairwise(ends)])


@native
def test_what_a_list_holds_stays_alive_during_the_call() -> None:
    def body(inputs: list[int], outputs: list[int], arena: int) -> int:
        argument[0].clear()
        argument[1].clear()
        gc.collect()
        alive.append(reference() is not None)
        ctypes.memmove(outputs[0], inputs[0], 8 * BIG)
        return 0

    def arguments() -> tuple[list[Any], dict[str, Any]]:
        return [np.full(BIG, 3.0)], {"a": [np.full(BIG, 4.0)]}

    alive: list[bool] = []
    argument = arguments()
    reference = weakref.ref(argument[0][0])
    call = bound(native_stub, StubSignature(tree_of(argument), tree_of(np.ones(BIG))), body)  # type: ignore[arg-type]
    assert (call(*argument) == 3).all() and alive == [True]
    gc.collect()
    assert reference() is None


@native
def test_a_look_up_may_run_python_code() -> None:
    class Key:
        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            inner.clear()
            outer.clear()
            gc.collect()
            return False

    example = [{"a": X, "b": X}, X, [X]]
    call = copier(native_stub, example)
    inner: dict[Any, Any] = {Key(): X, "b": X}
    outer: list[Any] = [inner, X.copy(), [X.copy()]]
    assert call(outer)[0] == "slow"

    class Broken(Key):
        def __eq__(self, other: object) -> bool:
            raise Stop

        __hash__ = Key.__hash__

    assert call([{Broken(): X, "b": X}, X, [X]])[0] == "slow"


@native
@pytest.mark.parametrize("releases_gil", [False, True])
def test_threads_share_a_stub(releases_gil: bool) -> None:
    """Every thread finds its own numbers in its result after a copy through the scratch memory."""
    size = 1 << 15
    text = f"""
    define i32 @run(ptr %in, ptr %out, ptr %arena) {{
    start:
      %source = load ptr, ptr %in
      %target = load ptr, ptr %out
      br label %first
    first:
      %i = phi i64 [0, %start], [%i2, %first]
      %from = getelementptr double, ptr %source, i64 %i
      %to = getelementptr double, ptr %arena, i64 %i
      %a = load double, ptr %from
      store volatile double %a, ptr %to
      %i2 = add i64 %i, 1
      %more = icmp slt i64 %i2, {size}
      br i1 %more, label %first, label %second
    second:
      %j = phi i64 [0, %first], [%j2, %second]
      %from2 = getelementptr double, ptr %arena, i64 %j
      %to2 = getelementptr double, ptr %target, i64 %j
      %b = load volatile double, ptr %from2
      store double %b, ptr %to2
      %j2 = add i64 %j, 1
      %again = icmp slt i64 %j2, {size}
      br i1 %again, label %second, label %done
    done:
      ret i32 0
    }}"""
    code = machine.compile_ir(text)
    leaf = tree_of([np.ones(size)])
    signature = StubSignature((leaf,), leaf, arena=8 * size, releases_gil=releases_gil)
    call = native_stub(code.address("run"), signature, slow, failed, code)
    wrong: list[float] = []

    def work(number: float) -> None:
        for step in range(200):
            (result,) = call([np.full(size, number + step)])
            if result.min() != number + step or result.max() != number + step:
                wrong.append(number + step)

    threads = [threading.Thread(target=work, args=(1000.0 * number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@native
def test_python_runs_while_the_gil_is_released() -> None:
    """The program waits for a thread that can only run when the GIL is released."""
    text = """
    define i32 @run(ptr %in, ptr %out, ptr %arena) {
    start:
      %flag = load ptr, ptr %in
      br label %wait
    wait:
      %seen = load volatile i64, ptr %flag
      %set = icmp ne i64 %seen, 0
      br i1 %set, label %done, label %wait
    done:
      ret i32 0
    }"""
    code = machine.compile_ir(text)
    flag = np.zeros(1, np.int64)
    call = native_stub(
        code.address("run"), StubSignature((tree_of(flag),), None, releases_gil=True), slow, failed, code
    )
    timer = threading.Timer(0.05, lambda: flag.fill(1))
    timer.start()
    assert call(flag) is None
    timer.join()


@native
def test_object_code_needs_no_symbols() -> None:
    assert compiler.emit_object(str(stub_module())).needed == ()


def numpy_header() -> Iterator[tuple[str, int]]:
    text = (Path(np.get_include()) / "numpy" / "__multiarray_api.h").read_text()
    for name, index in re.findall(r"#define (PyArray_\w+)\s*\\\s*\(\*\([^#]*?PyArray_API\[(\d+)\]\)", text):
        yield name, int(index)


def test_indices_are_those_of_numpy_s_header() -> None:
    header = dict(numpy_header())
    assert len(header) > 150
    assert {name: header[name] for name in capi.NUMPY_FUNCTIONS} == capi.NUMPY_FUNCTIONS


def test_wrong_offsets_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    if not capi.available():
        pytest.skip(str(capi.why_unavailable()))
    for name in ("TUPLE_ITEMS", "ARRAY_DATA", "ARRAY_FLAGS", "ARRAY_DTYPE", "ARRAY_WEAKREFS", "DTYPE_KIND"):
        with monkeypatch.context() as patch:
            patch.setattr(capi, name, getattr(capi, name) + 4)
            assert capi._wrong_fields()
    assert not capi._wrong_fields()


def test_interpreters_without_native_stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason() -> str:
        capi.why_unavailable.cache_clear()
        return str(capi.why_unavailable())

    try:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
            assert "without the global interpreter lock" in reason()
            call = copier(bind, X)
            assert same(call(X), (X,)) and type(call).__name__ == "function"
        with monkeypatch.context() as patch:
            patch.setattr("platform.python_implementation", lambda: "PyPy")
            assert "PyPy" in reason()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "byteorder", "big")
            assert "little-endian" in reason()
    finally:
        reason()


def test_normalised_leaves() -> None:
    signature = StubSignature(({"b": tree_of(X), "a": tree_of(1)}, tree_of(np.float64(1))), None)
    big_endian = X.astype(">f8")[::-1]
    integer, array, scalar = normalised(signature, [3, big_endian, np.float64(2)])
    assert integer.dtype == np.int64 and integer == 3 and scalar.shape == () and scalar == 2
    assert array.dtype is np.dtype(float) and array.flags.c_contiguous and (array == X[::-1]).all()
    assert normalised(signature, [3, X, np.float64(2)])[1] is X
    for values, error in (
        ([3, X[:2], 2.0], ValueError),
        ([3, X.astype("f4"), 2.0], TypeError),
        ([3.0, X, 2.0], TypeError),
        ([2**63, X, 2.0], OverflowError),
        ([3, X], ValueError),
    ):
        with pytest.raises(error):
            normalised(signature, values)


def test_threads_that_ask_at_once_get_one_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that a second one replaced would be freed, while functions refer to its memory."""
    monkeypatch.setattr(binding, "_definitions", {})
    gate = threading.Barrier(4)
    make = capi.MethodDefinition

    def slowly(*args: Any) -> Any:
        gate.wait(10)  # all are past the look for one that is there
        return make(*args)

    monkeypatch.setattr(capi, "MethodDefinition", slowly)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(binding._definition, [4096] * 4))
    assert all([definition is found[0] for definition in found])
    assert list(binding._definitions.values()) == found[:1]
