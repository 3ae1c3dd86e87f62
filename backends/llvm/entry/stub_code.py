"""The native code of all entries: one C function of CPython's fast calling convention that follows a table.

It finds the table through its `self`, a tuple whose first item is the table as an array of words.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from func.backends.llvm.entry import capi
from func.backends.llvm.entry.argument_code import emit_unpack
from func.backends.llvm.entry.layout import ALIGNMENT, SPARE, Head
from func.backends.llvm.entry.result_code import emit_finish, emit_prepare, emit_release, fresh_array
from func.backends.llvm.entry.writing import BIT, BYTE, INT, NULL, POINTER, VOID, WORD, WORD_SIZE, Code, number, word


def entry_module() -> Any:
    """The module with the function `entry`, which every Python-callable entry is made of."""
    module = ir.Module("entry")
    unpack, prepare, finish = emit_unpack(module), emit_prepare(module), emit_finish(module)
    release = emit_release(module)
    decline, abandon = _emit_decline(module, release), _emit_abandon(module, release)
    compute = _emit_compute(module)
    code = Code(module, "entry", POINTER, [POINTER, POINTER, WORD, POINTER], inline=False)
    code.function.linkage = "external"
    owner, arguments, count, keywords = code.function.args
    code.table = code.load(code.load(owner, capi.TUPLE_ITEMS), capi.ARRAY_DATA)
    frame = code.builder.alloca(BYTE, size=code.head(Head.FRAME))
    frame.align = ALIGNMENT
    frame.type = POINTER  # llvmlite would give it a pointer type with a pointee, which stores of words do not fit
    code.store(word(0), frame)
    mismatch, failure = code.block("mismatch"), code.block("failure")
    status = code.room(INT)
    code.store(number(0), status)
    code.require(code.equal(count, code.head(Head.ARGUMENTS)), mismatch)
    code.require(code.equal(keywords, NULL), mismatch)
    code.require(code.builder.call(unpack, [code.table, arguments, frame]), mismatch)
    code.require(code.builder.call(prepare, [code.table, frame]), failure)
    code.require(code.builder.call(compute, [code.table, frame, status]), failure)
    result = code.builder.call(finish, [code.table, frame])
    code.require(code.different(result, NULL), failure)
    _release_arguments(code, frame, release)
    code.builder.ret(result)
    code.goto(mismatch)
    code.builder.ret(code.builder.call(decline, [code.table, arguments, count, keywords, frame]))
    code.goto(failure)
    code.builder.ret(code.builder.call(abandon, [code.table, arguments, frame, code.load(status, 0, INT)]))
    return module


def _release_arguments(code: Code, frame: Any, release: Any) -> None:
    """Drops what a successful call still owns: references to parts of its arguments, which come first."""
    held = code.head(Head.HELD)
    code.store(held, frame)
    code.when(code.different(held, word(0)), lambda: code.builder.call(release, [code.table, frame]))


def _emit_decline(module: Any, release: Any) -> Any:
    """A function of table, arguments, their number, keywords and frame that calls the slow function."""
    code = Code(module, "decline", POINTER, [POINTER, POINTER, WORD, POINTER, POINTER], inline=False)
    table, arguments, count, keywords, frame = code.function.args
    code.builder.call(release, [table, frame])
    code.call("PyErr_Clear", returns=VOID)
    slow = code.head(Head.SLOW, POINTER)
    code.builder.ret(code.call("PyObject_Vectorcall", slow, arguments, count, keywords))
    return code.function


def _emit_abandon(module: Any, release: Any) -> Any:
    """A function of table, arguments, frame and status that ends a call without a result.

    An error that is set is raised as it is; otherwise the status goes to the function for failures.
    """
    code = Code(module, "abandon", POINTER, [POINTER, POINTER, POINTER, INT], inline=False)
    table, arguments, frame, status = code.function.args
    count = code.head(Head.ARGUMENTS)
    vector = code.builder.alloca(WORD, size=code.builder.add(count, word(1)))
    vector.type = POINTER
    code.builder.call(release, [table, frame])
    raised = code.returning(NULL)
    code.require(code.equal(code.call("PyErr_Occurred"), NULL), raised)
    first = code.call("PyLong_FromLongLong", code.builder.sext(status, WORD))
    code.require(code.different(first, NULL), raised)
    code.store(first, vector)
    rest = code.at(vector, WORD_SIZE)
    code.loop(count, lambda index: code.store(code.load(code.item(arguments, index)), code.item(rest, index)))
    length = code.builder.add(count, word(1))
    result = code.call("PyObject_Vectorcall", code.head(Head.FAILED, POINTER), vector, length, NULL)
    code.decrement(first)
    code.builder.ret(result)
    return code.function


def _emit_compute(module: Any) -> Any:
    """A function of table, frame and memory for the status that runs the program: whether all went well."""
    take, give = _emit_take(module), _emit_give(module)
    code = Code(module, "compute", BIT, [POINTER] * 3)
    table, frame, status = code.function.args
    short = code.returning(ir.Constant(BIT, 0))
    is_array = code.different(code.head(Head.ARENA_LENGTH), word(0))
    array = code.when_else(is_array, lambda: code.builder.call(take, [table]), lambda: NULL)
    has_array = code.different(array, NULL)
    code.require(code.builder.or_(has_array, code.builder.not_(is_array)), short)
    in_frame = code.at(frame, code.head(Head.ARENA))
    arena = code.when_else(has_array, lambda: _aligned(code, code.load(array, capi.ARRAY_DATA)), lambda: in_frame)
    places = [code.at(frame, code.head(place)) for place in (Head.INPUT_ADDRESSES, Head.OUTPUT_ADDRESSES)]
    releases = code.different(code.head(Head.RELEASES_GIL), word(0))
    thread = code.when_else(releases, lambda: code.call("PyEval_SaveThread"), lambda: NULL)
    found = code.call_address(code.head(Head.RUN), *places, arena, returns=INT)
    code.when(releases, lambda: code.call("PyEval_RestoreThread", thread, returns=VOID))
    code.when(has_array, lambda: code.builder.call(give, [table, array]))
    code.store(found, status)
    code.builder.ret(code.equal(found, number(0)))
    return code.function


def _aligned(code: Code, address: Any) -> Any:
    found = code.builder.add(code.builder.ptrtoint(address, WORD), word(ALIGNMENT - 1))
    return code.builder.inttoptr(code.builder.and_(found, word(-ALIGNMENT)), POINTER)


def _emit_take(module: Any) -> Any:
    """A function of the table that gives an array for scratch memory, a spare one if there is one."""
    code = Code(module, "take", POINTER, [POINTER], inline=False)
    places = code.head(Head.SPARE_ARENAS, POINTER)

    def try_one(index: Any) -> None:
        empty = code.block("empty")
        array = code.load(code.item(places, index))
        code.require(code.different(array, NULL), empty)
        code.store(NULL, code.item(places, index))
        code.builder.ret(array)
        code.goto(empty)

    code.when(code.different(places, NULL), lambda: code.loop(word(SPARE), try_one))
    shape = code.at(code.table, WORD_SIZE * Head.ARENA_LENGTH)
    code.builder.ret(fresh_array(code, code.head(Head.BYTE_DTYPE, POINTER), number(1), shape))
    return code.function


def _emit_give(module: Any) -> Any:
    """A function of table and array of scratch memory that keeps the array where there is room."""
    code = Code(module, "give", VOID, [POINTER] * 2, inline=False)
    _, array = code.function.args
    places = code.head(Head.SPARE_ARENAS, POINTER)

    def try_one(index: Any) -> None:
        full = code.block("full")
        code.require(code.equal(code.load(code.item(places, index)), NULL), full)
        code.store(array, code.item(places, index))
        code.builder.ret_void()
        code.goto(full)

    code.when(code.different(places, NULL), lambda: code.loop(word(SPARE), try_one))
    code.decrement(array)
    code.builder.ret_void()
    return code.function
