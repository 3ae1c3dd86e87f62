"""The native code that makes the outputs of a call, keeps large ones for reuse, and builds the tree of the result."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from func.backends.llvm.entry import capi
from func.backends.llvm.entry.layout import KEPT, Box, Container, Head, Made, Output
from func.backends.llvm.entry.writing import (
    BIT,
    BYTE,
    DOUBLE,
    INT,
    NULL,
    POINTER,
    VOID,
    WORD,
    WORD_SIZE,
    Code,
    number,
    word,
)


def fresh_array(code: Code, dtype: Any, ndim: Any, shape: Any) -> Any:
    """A new array, or NULL with an error set."""
    code.increment(dtype)
    kind = code.head(Head.ARRAY_TYPE, POINTER)
    return code.call("PyArray_NewFromDescr", kind, dtype, ndim, shape, NULL, NULL, number(0), NULL)


def emit_prepare(module: Any) -> Any:
    """A function of table and frame that gives every output memory: whether there was enough."""
    reuse = _emit_reuse(module)
    code = Code(module, "prepare", BIT, [POINTER] * 2)
    _, frame = code.function.args
    short = code.returning(ir.Constant(BIT, 0))

    def visit(record: Any) -> None:
        is_array = code.equal(code.field(record, Output.KIND), word(Made.ARRAY))
        data = code.when_else(is_array, lambda: array(record), lambda: room(record))
        code.store(data, code.at(frame, code.field(record, Output.TARGET)))

    def array(record: Any) -> Any:
        is_kept = code.different(code.field(record, Output.KEPT), word(0))
        made = code.when_else(is_kept, lambda: code.builder.call(reuse, [code.table, record]), lambda: fresh(record))
        code.require(code.different(made, NULL), short)
        code.add_reference(frame, made)
        return code.load(made, capi.ARRAY_DATA)

    def fresh(record: Any) -> Any:
        return _fresh_output(code, record)

    def room(record: Any) -> Any:
        code.add_reference(frame, NULL)
        return code.at(frame, code.field(record, Output.SLOT))

    code.records(code.head(Head.FIRST_OUTPUT, POINTER), code.head(Head.OUTPUT_BYTES), visit)
    code.builder.ret(ir.Constant(BIT, 1))
    return code.function


def _fresh_output(code: Code, record: Any) -> Any:
    ndim = code.builder.trunc(code.field(record, Output.COUNT), INT)
    return fresh_array(code, code.field(record, Output.DTYPE, POINTER), ndim, code.at(record, WORD_SIZE * Output.SIZE))


def _emit_reuse(module: Any) -> Any:
    """A function of table and record: an array that was kept and is in nobody's hands, or else a fresh one."""
    code = Code(module, "reuse", POINTER, [POINTER] * 2, inline=False)
    _, record = code.function.args
    arrays = code.field(record, Output.KEPT, POINTER)

    def try_one(index: Any) -> None:
        array = code.load(code.item(arrays, index))
        busy = code.block("busy")
        code.require(code.different(array, NULL), busy)
        _require_untouched(code, array, record, busy)
        code.increment(array)
        code.builder.ret(array)
        code.goto(busy)

    code.loop(word(KEPT), try_one)
    array = _fresh_output(code, record)
    code.require(code.different(array, NULL), code.returning(NULL))
    oldest = code.load(arrays)
    for place in range(1, KEPT):
        code.store(code.load(arrays, WORD_SIZE * place), arrays, WORD_SIZE * (place - 1))
    code.increment(array)
    code.store(array, arrays, WORD_SIZE * (KEPT - 1))
    # Last, as it may run a destructor that calls the entry.
    code.decrement(oldest)
    code.builder.ret(array)
    return code.function


def _require_untouched(code: Code, array: Any, record: Any, busy: Any) -> None:
    """Goes on where nobody else refers to an array, weakly or strongly, and it is as it was made."""
    # The lower half of the count of references: since Python 3.14 the upper half has flags.
    code.require(code.equal(code.load(array, 0, INT), number(1)), busy)
    code.require(code.equal(code.load(array, capi.ARRAY_WEAKREFS), NULL), busy)
    code.require(code.equal(code.load(array, capi.ARRAY_BASE), NULL), busy)
    code.require(code.equal(code.load(array, capi.ARRAY_DTYPE), code.field(record, Output.DTYPE, POINTER)), busy)
    ndim = code.field(record, Output.COUNT)
    for offset, wanted in ((capi.ARRAY_FLAGS, code.field(record, Output.FLAGS)), (capi.ARRAY_NDIM, ndim)):
        code.require(code.equal(code.load(array, offset, INT), code.builder.trunc(wanted, INT)), busy)
    lengths = code.at(record, WORD_SIZE * Output.SIZE)
    steps = code.item(lengths, ndim)
    shape, strides = code.load(array, capi.ARRAY_SHAPE), code.load(array, capi.ARRAY_STRIDES)

    def compare(axis: Any) -> None:
        for found, wanted in ((shape, lengths), (strides, steps)):
            same = [code.load(code.item(words, axis), 0, WORD) for words in (found, wanted)]
            code.require(code.equal(*same), busy)

    code.loop(ndim, compare)


def emit_finish(module: Any) -> Any:
    """A function of table and frame that makes the objects of the result: the result, or NULL with an error set."""
    code = Code(module, "finish", POINTER, [POINTER] * 2)
    _, frame = code.function.args
    short = code.returning(NULL)

    def visit_output(record: Any) -> None:
        is_array = code.equal(code.field(record, Output.KIND), word(Made.ARRAY))
        onwards, other = code.block("onwards"), code.block("number")
        code.builder.cbranch(is_array, onwards, other)
        code.goto(other)
        made = _made(code, record, frame)
        code.require(code.different(made, NULL), short)
        code.store(made, code.at(frame, code.field(record, Output.REFERENCE)))
        code.builder.branch(onwards)
        code.goto(onwards)

    def visit_container(record: Any) -> None:
        code.choose(
            code.field(record, Container.KIND),
            {
                Box.TUPLE: lambda: _fill_tuple(code, record, frame, short),
                Box.LIST: lambda: _fill_list(code, record, frame, short),
                Box.DICT: lambda: _fill_dict(code, record, frame, short),
            },
        )

    code.records(code.head(Head.FIRST_OUTPUT, POINTER), code.head(Head.OUTPUT_BYTES), visit_output)
    code.records(code.head(Head.FIRST_CONTAINER, POINTER), code.head(Head.CONTAINER_BYTES), visit_container)
    code.builder.ret(_handed_on(code, code.at(frame, code.head(Head.RESULT))))
    return code.function


def _made(code: Code, record: Any, frame: Any) -> Any:
    """The object for an output that is no array."""
    data = code.at(frame, code.field(record, Output.SLOT))
    kind = code.field(record, Output.DTYPE, POINTER)

    def none() -> Any:
        code.increment(kind)
        return kind

    def pair() -> Any:
        return code.call("PyComplex_FromDoubles", code.load(data, 0, DOUBLE), code.load(data, 8, DOUBLE))

    return code.choose(
        code.field(record, Output.KIND),
        {
            Made.SCALAR: lambda: code.call("PyArray_Scalar", data, kind, NULL),
            Made.FLOAT: lambda: code.call("PyFloat_FromDouble", code.load(data, 0, DOUBLE)),
            Made.INT: lambda: code.call("PyLong_FromLongLong", code.load(data, 0, WORD)),
            Made.BOOL: lambda: code.call("PyBool_FromLong", code.builder.zext(code.load(data, 0, BYTE), WORD)),
            Made.COMPLEX: pair,
            Made.NONE: none,
        },
    )


def _handed_on(code: Code, place: Any) -> Any:
    """A reference that the call owned and that now belongs to somebody else."""
    value = code.load(place)
    code.store(NULL, place)
    return value


def _kept(code: Code, value: Any, frame: Any, short: Any) -> Any:
    code.require(code.different(value, NULL), short)
    code.add_reference(frame, value)
    return value


def _each_item(code: Code, record: Any, frame: Any, body: Any) -> None:
    """Runs body(index, place of the item's reference, key)."""
    pairs = code.at(record, WORD_SIZE * Container.SIZE)

    def visit(index: Any) -> None:
        pair = code.item(pairs, code.builder.shl(index, word(1)))
        body(index, code.at(frame, code.load(pair, 0, WORD)), code.load(pair, WORD_SIZE))

    code.loop(code.field(record, Container.COUNT), visit)


def _fill_tuple(code: Code, record: Any, frame: Any, short: Any) -> None:
    new = _kept(code, code.call("PyTuple_New", code.field(record, Container.COUNT)), frame, short)
    items = code.at(new, capi.TUPLE_ITEMS)
    _each_item(
        code, record, frame, lambda index, place, _: code.store(_handed_on(code, place), code.item(items, index))
    )


def _fill_list(code: Code, record: Any, frame: Any, short: Any) -> None:
    new = _kept(code, code.call("PyList_New", code.field(record, Container.COUNT)), frame, short)
    items = code.load(new, capi.LIST_ITEMS)
    _each_item(
        code, record, frame, lambda index, place, _: code.store(_handed_on(code, place), code.item(items, index))
    )


def _fill_dict(code: Code, record: Any, frame: Any, short: Any) -> None:
    new = _kept(code, code.call("PyDict_New"), frame, short)

    def put(_: Any, place: Any, key: Any) -> None:
        status = code.call("PyDict_SetItem", new, key, code.load(place), returns=INT)
        code.require(code.equal(status, number(0)), short)
        code.decrement(_handed_on(code, place))

    _each_item(code, record, frame, put)


def emit_release(module: Any) -> Any:
    """A function of table and frame that drops the references that the call owns."""
    code = Code(module, "release", VOID, [POINTER] * 2, inline=False)
    _, frame = code.function.args
    references = code.at(frame, code.head(Head.REFERENCES))
    code.loop(code.load(frame, 0, WORD), lambda index: code.decrement(code.load(code.item(references, index))))
    code.builder.ret_void()
    return code.function
