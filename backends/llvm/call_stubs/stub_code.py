"""The native code of all call stubs: one C function of CPython's fast calling convention that follows a table.

It finds the table through its `self`, a tuple whose first item is the table as an array of words. It checks the
arguments and finds the data of their leaves. Then it allocates the outputs or reuses arrays of earlier calls, runs the
program, and builds the tree of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from func.backends.ir import (
    Block,
    DoubleType,
    Function,
    FunctionType,
    IntType,
    IRBuilder,
    Module,
    PointerType,
    Type,
    Value,
    VoidType,
)
from func.backends.llvm.call_stubs import capi
from func.backends.llvm.call_stubs.signature import ANOTHER_PATH, OVERLAP
from func.backends.llvm.call_stubs.stub_table import (
    ALIGNMENT,
    ARRAYS_PER_OUTPUT,
    SPARE_ARENAS,
    WORD_SIZE,
    ArgNode,
    Check,
    Container,
    ContainerKind,
    Fetch,
    Head,
    Output,
    OutputKind,
    Separate,
)

POINTER, VOID, DOUBLE = PointerType(), VoidType(), DoubleType()
BIT, BYTE, INT, WORD = IntType(1), IntType(8), IntType(32), IntType(64)
NULL: Final = POINTER(None)
_LIKELY: Final = (2000, 1)


class StubBuilder(IRBuilder):
    """Writes one function of the stubs' module: fields of objects, records of tables, calls of the C interface.

    The function's first argument is the address of the table, unless `table` is set to another value.
    """

    def __init__(self, module: Module, name: str, result: Type, arguments: list[Type], is_inlined: bool = True) -> None:
        function = Function(module, FunctionType(result, arguments), name)
        function.linkage = "internal"
        function.attributes |= {"nounwind", "alwaysinline" if is_inlined else "noinline"}
        super().__init__(function.append_basic_block("start"))
        self.args: list[Value] = [*function.args]
        self.table = self.args[0]

    def at(self, pointer: Value, offset: Value | int) -> Value:
        """The address at an offset in bytes."""
        place = WORD(offset) if isinstance(offset, int) else offset
        return self.gep(pointer, [place], inbounds=True, source_etype=BYTE)

    def read(self, pointer: Value, offset: int = 0, kind: Type = POINTER) -> Value:
        """The value of a field of an object."""
        return self.load(self.at(pointer, offset) if offset else pointer, typ=kind)

    def write(self, value: Value, pointer: Value, offset: int = 0) -> None:
        """Set a field of an object."""
        self.store(value, self.at(pointer, offset) if offset else pointer)

    def field(self, record: Value, place: int, kind: Type = WORD) -> Value:
        """A word of a record."""
        return self.read(record, WORD_SIZE * place, kind)

    def head(self, place: int, kind: Type = WORD) -> Value:
        """A word at the start of the table."""
        return self.field(self.table, place, kind)

    def item(self, words: Value, index: Value) -> Value:
        """The address of a word in an array."""
        return self.gep(words, [index], inbounds=True, source_etype=WORD)

    def equal(self, left: Value, right: Value) -> Value:
        return self.icmp_unsigned("==", left, right)

    def different(self, left: Value, right: Value) -> Value:
        return self.icmp_unsigned("!=", left, right)

    def require(self, condition: Value, otherwise: Block) -> None:
        """Jump to a block unless a condition holds, which is likely."""
        following = self.append_basic_block("holds")
        self.cbranch(condition, following, otherwise, _LIKELY)
        self.position_at_end(following)

    def block_returning(self, value: Value) -> Block:
        """A new block that returns a value."""
        block = self.append_basic_block("return")
        with self.goto_block(block):
            self.ret(value)
        return block

    def call_c(self, name: str, *arguments: Value, result: Type = POINTER) -> Value:
        """The result of a function of the C interface."""
        functions = self.head(Head.FUNCTIONS, POINTER)
        return self.call_at(self.field(functions, capi.FUNCTIONS.index(name), POINTER), *arguments, result=result)

    def call_at(self, address: Value, *arguments: Value, result: Type = POINTER) -> Value:
        """The result of the function at an address."""
        return self.call_pointer(address, FunctionType(result, [argument.type for argument in arguments]), arguments)

    def variable(self, kind: Type) -> Value:
        """The address of memory in the frame of the function."""
        with self.goto_entry_block():
            return self.alloca(kind)

    @contextmanager
    def records(self, first: Value, length: Value) -> Iterator[Value]:
        """Inside, write the code for each record of `length` bytes of records, which start with their own length."""
        with self.while_less(length) as offset:
            record = self.at(first, offset)
            yield record
            offset.add_incoming(self.add(offset, self.field(record, 0)), self.block)

    def choose(self, value: Value, cases: Mapping[int, Callable[[], Any]]) -> Any:
        """The pointer, if any, of the case for a word; there is no other case."""
        after, nowhere = self.append_basic_block("chosen"), self.append_basic_block("nowhere")
        with self.goto_block(nowhere):
            self.unreachable()
        switch = self.switch(value, nowhere)
        results = []
        for case, body in cases.items():
            block = self.append_basic_block("case")
            switch.add_case(case, block)
            self.position_at_end(block)
            results.append((body(), self.block))
            self.branch(after)
        self.position_at_end(after)
        if results[0][0] is None:
            return None
        chosen = self.phi(POINTER)
        for result, block in results:
            chosen.add_incoming(result, block)
        return chosen

    def choose_if(self, condition: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """The pointer of one of two cases."""
        return self.choose(self.zext(condition, WORD), {1: yes, 0: no})  # type: ignore[no-any-return]

    def own(self, frame: Value, value: Value) -> None:
        """Add a reference to those that the call owns."""
        count = self.read(frame, 0, WORD)
        self.store(value, self.item(self.at(frame, self.head(Head.REFERENCES)), count))
        self.write(self.add(count, WORD(1)), frame)

    def increment(self, value: Value) -> None:
        """Take a reference."""
        self.call_c("Py_IncRef", value, result=VOID)

    def decrement(self, value: Value) -> None:
        """Drop a reference, which may be NULL."""
        self.call_c("Py_DecRef", value, result=VOID)


def stub_module() -> Module:
    """The module with the function `call_stub`, the code of all stubs."""
    module = Module("call_stub")
    read_arguments, allocate_outputs = _emit_read_arguments(module), _emit_allocate_outputs(module)
    make_result, release = _emit_make_result(module), _emit_release(module)
    decline, abandon = _emit_decline(module, release), _emit_abandon(module, release)
    compute = _emit_compute(module)
    b = StubBuilder(module, "call_stub", POINTER, [POINTER, POINTER, WORD, POINTER], is_inlined=False)
    b.function.linkage = ""
    owner, arguments, count, keywords = b.args
    b.table = b.read(b.read(owner, capi.TUPLE_ITEMS), capi.ARRAY_DATA)
    frame = b.alloca(BYTE, size=b.head(Head.FRAME), align=ALIGNMENT)
    b.write(WORD(0), frame)
    mismatch, failure = b.append_basic_block("mismatch"), b.append_basic_block("failure")
    status = b.variable(INT)
    b.write(INT(0), status)
    b.require(b.equal(count, b.head(Head.ARGUMENTS)), mismatch)
    b.require(b.equal(keywords, NULL), mismatch)
    b.require(b.call(read_arguments, [b.table, arguments, frame]), mismatch)
    b.require(b.call(allocate_outputs, [b.table, frame]), failure)
    b.require(b.call(compute, [b.table, frame, status]), failure)
    result = b.call(make_result, [b.table, frame])
    b.require(b.different(result, NULL), failure)
    # References to parts of the arguments come first; the call still owns these.
    owned_count = b.head(Head.OWNED)
    b.write(owned_count, frame)
    with b.if_then(b.different(owned_count, WORD(0))):
        b.call(release, [b.table, frame])
    b.ret(result)
    b.position_at_end(mismatch)
    b.ret(b.call(decline, [b.table, arguments, count, keywords, frame]))
    b.position_at_end(failure)
    b.ret(b.call(abandon, [b.table, arguments, frame, b.read(status, 0, INT)]))
    return module


def _emit_read_arguments(module: Module) -> Function:
    """A function of table, arguments and frame: whether the arguments match the table. It finds their data."""
    b = StubBuilder(module, "read_arguments", BIT, [POINTER] * 3)
    _, arguments, frame = b.args
    mismatch = b.block_returning(BIT(0))
    with b.records(b.at(b.table, WORD_SIZE * Head.SIZE), b.head(Head.NODE_BYTES)) as node:
        value = _node_object(b, node, arguments, frame, mismatch)
        data = _node_data(b, node, value, frame, mismatch)
        b.store(data, b.at(frame, b.field(node, ArgNode.TARGET)))
        with b.if_then(b.different(b.field(node, ArgNode.IS_OWNED), WORD(0))):
            b.increment(value)
            b.own(frame, value)
    b.ret(BIT(1))
    return b.function


def _node_object(b: StubBuilder, node: Value, arguments: Value, frame: Value, mismatch: Block) -> Value:
    """The object of a node."""
    key = b.field(node, ArgNode.KEY)

    def parent() -> Value:
        return b.read(b.at(frame, b.field(node, ArgNode.PARENT)))

    def from_list() -> Value:
        # A look-up in a dict before this item may have run Python code that changed the list.
        container = parent()
        b.require(b.icmp_unsigned("<", key, b.read(container, capi.COUNT, WORD)), mismatch)
        return b.read(b.item(b.read(container, capi.LIST_ITEMS), key))

    def from_dict() -> Value:
        value = b.call_c("PyDict_GetItemWithError", parent(), b.field(node, ArgNode.KEY, POINTER))
        b.require(b.different(value, NULL), mismatch)
        return value

    return b.choose(  # type: ignore[no-any-return]
        b.field(node, ArgNode.FETCH),
        {
            Fetch.ARGUMENT: lambda: b.read(b.item(arguments, key)),
            Fetch.TUPLE: lambda: b.read(b.item(b.at(parent(), capi.TUPLE_ITEMS), key)),
            Fetch.LIST: from_list,
            Fetch.DICT: from_dict,
        },
    )


def _node_data(b: StubBuilder, node: Value, value: Value, frame: Value, mismatch: Block) -> Value:
    """The address of a leaf's data, or the container itself, after the checks of the node."""
    expected = b.field(node, ArgNode.TYPE, POINTER)

    def require_type() -> None:
        b.require(b.equal(b.read(value, capi.TYPE), expected), mismatch)

    def array() -> Value:
        is_array = b.equal(b.read(value, capi.TYPE), expected)
        return b.choose_if(is_array, lambda: _array_data(b, node, value, mismatch), scalar)

    def scalar() -> Value:
        b.require(b.equal(b.read(value, capi.TYPE), b.field(node, ArgNode.ALTERNATIVE, POINTER)), mismatch)
        return b.at(value, b.field(node, ArgNode.VALUE))

    def number() -> Value:
        require_type()
        return b.at(value, capi.VALUE)

    def integer() -> Value:
        require_type()
        overflow = b.variable(INT)
        integer = b.call_c("PyLong_AsLongLongAndOverflow", value, overflow, result=WORD)
        b.require(b.equal(b.load(overflow, typ=INT), INT(0)), mismatch)
        return in_frame(integer)

    def boolean() -> Value:
        is_true = b.equal(value, expected)
        b.require(b.or_(is_true, b.equal(value, b.field(node, ArgNode.ALTERNATIVE, POINTER))), mismatch)
        return in_frame(b.zext(is_true, BYTE))

    def in_frame(bits: Value) -> Value:
        place = b.at(frame, b.field(node, ArgNode.VALUE))
        b.write(bits, place)
        return place

    def same() -> Value:
        b.require(b.equal(value, expected), mismatch)
        return value

    def container() -> Value:
        require_type()
        b.require(b.equal(b.read(value, capi.COUNT, WORD), b.field(node, ArgNode.COUNT)), mismatch)
        return value

    cases: dict[int, Any] = {Check.ARRAY: array, Check.NUMBER: number, Check.INT: integer}
    cases |= {Check.BOOL: boolean, Check.SAME: same, Check.CONTAINER: container}
    return b.choose(b.field(node, ArgNode.CHECK), cases)  # type: ignore[no-any-return]


def _array_data(b: StubBuilder, node: Value, array: Value, mismatch: Block) -> Value:
    """The address of the data of an array with the right dtype, shape and flags."""
    readable = INT(capi.READABLE)
    b.require(b.equal(b.and_(b.read(array, capi.ARRAY_FLAGS, INT), readable), readable), mismatch)
    ndim = b.field(node, ArgNode.COUNT)
    b.require(b.equal(b.read(array, capi.ARRAY_NDIM, INT), b.trunc(ndim, INT)), mismatch)
    dtype = b.read(array, capi.ARRAY_DTYPE)
    with b.if_then(b.different(dtype, b.field(node, ArgNode.DTYPE, POINTER))):
        # Arrays that were unpickled have copies of the builtin dtypes.
        b.require(b.equal(b.read(dtype, capi.DTYPE_KIND, WORD), b.field(node, ArgNode.DTYPE_KIND)), mismatch)
    shape = b.read(array, capi.ARRAY_SHAPE)
    with b.loop(ndim) as axis:
        expected = b.read(b.item(b.at(node, WORD_SIZE * ArgNode.SIZE), axis), 0, WORD)
        b.require(b.equal(b.read(b.item(shape, axis), 0, WORD), expected), mismatch)
    return b.read(array, capi.ARRAY_DATA)


def _emit_allocate_outputs(module: Module) -> Function:
    """A function of table and frame that provides memory for every output: whether there was enough."""
    reuse = _emit_reuse_array(module)
    b = StubBuilder(module, "allocate_outputs", BIT, [POINTER] * 2)
    _, frame = b.args
    no_memory = b.block_returning(BIT(0))
    with b.records(b.head(Head.FIRST_OUTPUT, POINTER), b.head(Head.OUTPUT_BYTES)) as record:

        def array() -> Value:
            is_reused = b.different(b.field(record, Output.REUSED), WORD(0))
            array = b.choose_if(is_reused, lambda: b.call(reuse, [b.table, record]), lambda: _new_output(b, record))
            b.require(b.different(array, NULL), no_memory)
            b.own(frame, array)
            return b.read(array, capi.ARRAY_DATA)

        def slot() -> Value:
            b.own(frame, NULL)
            return b.at(frame, b.field(record, Output.SLOT))

        data = b.choose_if(b.equal(b.field(record, Output.KIND), WORD(OutputKind.ARRAY)), array, slot)
        b.write(data, b.at(frame, b.field(record, Output.TARGET)))
    b.ret(BIT(1))
    return b.function


def _new_array(b: StubBuilder, dtype: Value, ndim: Value, shape: Value) -> Value:
    """A new array, or NULL with an error set."""
    b.increment(dtype)
    kind = b.head(Head.ARRAY_TYPE, POINTER)
    return b.call_c("PyArray_NewFromDescr", kind, dtype, ndim, shape, NULL, NULL, INT(0), NULL)


def _new_output(b: StubBuilder, record: Value) -> Value:
    ndim = b.trunc(b.field(record, Output.COUNT), INT)
    return _new_array(b, b.field(record, Output.DTYPE, POINTER), ndim, b.at(record, WORD_SIZE * Output.SIZE))


def _emit_reuse_array(module: Module) -> Function:
    """A function of table and record: an array for reuse without other references, or else a new one."""
    b = StubBuilder(module, "reuse_array", POINTER, [POINTER] * 2, is_inlined=False)
    _, record = b.args
    arrays = b.field(record, Output.REUSED, POINTER)
    with b.loop(WORD(ARRAYS_PER_OUTPUT)) as index:
        array = b.read(b.item(arrays, index))
        in_use = b.append_basic_block("in_use")
        b.require(b.different(array, NULL), in_use)
        _require_unused(b, array, record, in_use)
        b.increment(array)
        b.ret(array)
        b.position_at_end(in_use)
    array = _new_output(b, record)
    b.require(b.different(array, NULL), b.block_returning(NULL))
    oldest = b.read(arrays)
    for place in range(1, ARRAYS_PER_OUTPUT):
        b.write(b.read(arrays, WORD_SIZE * place), arrays, WORD_SIZE * (place - 1))
    b.increment(array)
    b.write(array, arrays, WORD_SIZE * (ARRAYS_PER_OUTPUT - 1))
    # This comes last, as it may run a destructor that calls the stub.
    b.decrement(oldest)
    b.ret(array)
    return b.function


def _require_unused(b: StubBuilder, array: Value, record: Value, in_use: Block) -> None:
    """Jump to a block unless an array has no other reference, weak or strong, and is unchanged."""
    # The lower half of the reference count: since Python 3.14 the upper half has flags.
    b.require(b.equal(b.read(array, 0, INT), INT(1)), in_use)
    b.require(b.equal(b.read(array, capi.ARRAY_WEAKREFS), NULL), in_use)
    b.require(b.equal(b.read(array, capi.ARRAY_BASE), NULL), in_use)
    b.require(b.equal(b.read(array, capi.ARRAY_DTYPE), b.field(record, Output.DTYPE, POINTER)), in_use)
    ndim = b.field(record, Output.COUNT)
    for offset, expected in ((capi.ARRAY_FLAGS, b.field(record, Output.FLAGS)), (capi.ARRAY_NDIM, ndim)):
        b.require(b.equal(b.read(array, offset, INT), b.trunc(expected, INT)), in_use)
    expected_shape = b.at(record, WORD_SIZE * Output.SIZE)
    expected_strides = b.item(expected_shape, ndim)
    shape, strides = b.read(array, capi.ARRAY_SHAPE), b.read(array, capi.ARRAY_STRIDES)
    with b.loop(ndim) as axis:
        for actual, expected in ((shape, expected_shape), (strides, expected_strides)):
            pair = [b.read(b.item(lengths, axis), 0, WORD) for lengths in (actual, expected)]
            b.require(b.equal(*pair), in_use)


def _emit_make_result(module: Module) -> Function:
    """A function of table and frame that makes the objects of the result: the result, or NULL with an error set."""
    b = StubBuilder(module, "make_result", POINTER, [POINTER] * 2)
    _, frame = b.args
    failure = b.block_returning(NULL)
    with b.records(b.head(Head.FIRST_OUTPUT, POINTER), b.head(Head.OUTPUT_BYTES)) as record:
        is_array = b.equal(b.field(record, Output.KIND), WORD(OutputKind.ARRAY))
        onwards, other = b.append_basic_block("onwards"), b.append_basic_block("number")
        b.cbranch(is_array, onwards, other)
        b.position_at_end(other)
        value = _new_number(b, record, frame)
        b.require(b.different(value, NULL), failure)
        b.write(value, b.at(frame, b.field(record, Output.REFERENCE)))
        b.branch(onwards)
        b.position_at_end(onwards)
    with b.records(b.head(Head.FIRST_CONTAINER, POINTER), b.head(Head.CONTAINER_BYTES)) as record:
        b.choose(
            b.field(record, Container.KIND),
            {
                ContainerKind.TUPLE: lambda: _fill_tuple(b, record, frame, failure),
                ContainerKind.LIST: lambda: _fill_list(b, record, frame, failure),
                ContainerKind.DICT: lambda: _fill_dict(b, record, frame, failure),
            },
        )
    b.ret(_take_reference(b, b.at(frame, b.head(Head.RESULT))))
    return b.function


def _new_number(b: StubBuilder, record: Value, frame: Value) -> Value:
    """The object for an output that is not an array."""
    data = b.at(frame, b.field(record, Output.SLOT))
    dtype_or_none = b.field(record, Output.DTYPE, POINTER)

    def none() -> Value:
        b.increment(dtype_or_none)
        return dtype_or_none

    def pair() -> Value:
        return b.call_c("PyComplex_FromDoubles", b.read(data, 0, DOUBLE), b.read(data, 8, DOUBLE))

    return b.choose(  # type: ignore[no-any-return]
        b.field(record, Output.KIND),
        {
            OutputKind.SCALAR: lambda: b.call_c("PyArray_Scalar", data, dtype_or_none, NULL),
            OutputKind.FLOAT: lambda: b.call_c("PyFloat_FromDouble", b.read(data, 0, DOUBLE)),
            OutputKind.INT: lambda: b.call_c("PyLong_FromLongLong", b.read(data, 0, WORD)),
            OutputKind.BOOL: lambda: b.call_c("PyBool_FromLong", b.zext(b.read(data, 0, BYTE), WORD)),
            OutputKind.COMPLEX: pair,
            OutputKind.NONE: none,
        },
    )


def _take_reference(b: StubBuilder, place: Value) -> Value:
    """A reference that the call owned and that another object owns now."""
    value = b.read(place)
    b.write(NULL, place)
    return value


def _new_container(b: StubBuilder, value: Value, frame: Value, failure: Block) -> Value:
    b.require(b.different(value, NULL), failure)
    b.own(frame, value)
    return value


@contextmanager
def _items(b: StubBuilder, record: Value, frame: Value) -> Iterator[tuple[Value, Value, Value]]:
    """Inside, write the code for the index, the place of the reference, and the key of each item."""
    pairs = b.at(record, WORD_SIZE * Container.SIZE)
    with b.loop(b.field(record, Container.COUNT)) as index:
        pair = b.item(pairs, b.shl(index, WORD(1)))
        yield index, b.at(frame, b.read(pair, 0, WORD)), b.read(pair, WORD_SIZE)


def _fill_tuple(b: StubBuilder, record: Value, frame: Value, failure: Block) -> None:
    new = _new_container(b, b.call_c("PyTuple_New", b.field(record, Container.COUNT)), frame, failure)
    slots = b.at(new, capi.TUPLE_ITEMS)
    with _items(b, record, frame) as (index, place, _):
        b.write(_take_reference(b, place), b.item(slots, index))


def _fill_list(b: StubBuilder, record: Value, frame: Value, failure: Block) -> None:
    new = _new_container(b, b.call_c("PyList_New", b.field(record, Container.COUNT)), frame, failure)
    slots = b.read(new, capi.LIST_ITEMS)
    with _items(b, record, frame) as (index, place, _):
        b.write(_take_reference(b, place), b.item(slots, index))


def _fill_dict(b: StubBuilder, record: Value, frame: Value, failure: Block) -> None:
    new = _new_container(b, b.call_c("PyDict_New"), frame, failure)
    with _items(b, record, frame) as (_, place, key):
        status = b.call_c("PyDict_SetItem", new, key, b.read(place), result=INT)
        b.require(b.equal(status, INT(0)), failure)
        b.decrement(_take_reference(b, place))


def _emit_release(module: Module) -> Function:
    """A function of table and frame that drops the references that the call owns."""
    b = StubBuilder(module, "release", VOID, [POINTER] * 2, is_inlined=False)
    _, frame = b.args
    references = b.at(frame, b.head(Head.REFERENCES))
    with b.loop(b.read(frame, 0, WORD)) as index:
        b.decrement(b.read(b.item(references, index)))
    b.ret_void()
    return b.function


def _emit_decline(module: Module, release: Function) -> Function:
    """A function of table, arguments, their number, keywords and frame that calls the slow function."""
    b = StubBuilder(module, "decline", POINTER, [POINTER, POINTER, WORD, POINTER, POINTER], is_inlined=False)
    table, arguments, count, keywords, frame = b.args
    b.call(release, [table, frame])
    b.call_c("PyErr_Clear", result=VOID)
    b.ret(b.call_c("PyObject_Vectorcall", b.head(Head.SLOW, POINTER), arguments, count, keywords))
    return b.function


def _emit_abandon(module: Module, release: Function) -> Function:
    """A function of table, arguments, frame and status that ends a call without a result.

    It raises a pending error unchanged; otherwise the status goes to the function for failures.
    """
    b = StubBuilder(module, "abandon", POINTER, [POINTER, POINTER, POINTER, INT], is_inlined=False)
    table, arguments, frame, status = b.args
    count = b.head(Head.ARGUMENTS)
    vector = b.alloca(WORD, size=b.add(count, WORD(1)))
    b.call(release, [table, frame])
    raised = b.block_returning(NULL)
    b.require(b.equal(b.call_c("PyErr_Occurred"), NULL), raised)
    first = b.call_c("PyLong_FromLongLong", b.sext(status, WORD))
    b.require(b.different(first, NULL), raised)
    b.write(first, vector)
    rest = b.at(vector, WORD_SIZE)
    with b.loop(count) as index:
        b.write(b.read(b.item(arguments, index)), b.item(rest, index))
    length = b.add(count, WORD(1))
    result = b.call_c("PyObject_Vectorcall", b.head(Head.FAILED, POINTER), vector, length, NULL)
    b.decrement(first)
    b.ret(result)
    return b.function


def _emit_compute(module: Module) -> Function:
    """A function of table, frame and memory for the status that runs the program: whether all went well."""
    take, keep = _emit_take_arena(module), _emit_keep_arena(module)
    b = StubBuilder(module, "compute", BIT, [POINTER] * 3)
    table, frame, status = b.args
    _require_separate(b, frame, status)
    no_memory = b.block_returning(BIT(0))
    needs_array = b.different(b.head(Head.ARENA_LENGTH), WORD(0))
    array = b.choose_if(needs_array, lambda: b.call(take, [table]), lambda: NULL)
    has_array = b.different(array, NULL)
    b.require(b.or_(has_array, b.not_(needs_array)), no_memory)
    in_frame = b.at(frame, b.head(Head.ARENA))
    arena = b.choose_if(has_array, lambda: _aligned(b, b.read(array, capi.ARRAY_DATA)), lambda: in_frame)
    places = [b.at(frame, b.head(place)) for place in (Head.INPUT_ADDRESSES, Head.OUTPUT_ADDRESSES)]
    count = b.head(Head.COUNT)
    is_counted = b.different(count, WORD(0))
    with b.if_then(is_counted):
        b.write(b.at(frame, count), b.at(frame, b.head(Head.COUNT_ADDRESS)))
    releases = b.different(b.head(Head.RELEASES_GIL), WORD(0))
    thread = b.choose_if(releases, lambda: b.call_c("PyEval_SaveThread"), lambda: NULL)
    outcome = b.call_at(b.head(Head.RUN, POINTER), *places, arena, result=INT)
    with b.if_then(releases):
        b.call_c("PyEval_RestoreThread", thread, result=VOID)
    with b.if_then(has_array):
        b.call(keep, [table, array])
    b.write(outcome, status)
    b.require(b.equal(outcome, INT(0)), b.block_returning(BIT(0)))
    another = b.append_basic_block("another_path")
    with b.goto_block(another):
        b.write(INT(ANOTHER_PATH), status)
        b.ret(BIT(0))
    with b.if_then(is_counted):
        b.require(b.equal(b.read(b.at(frame, count), 0, WORD), b.head(Head.EXPECTED)), another)
    b.ret(BIT(1))
    return b.function


def _require_separate(b: StubBuilder, frame: Value, status: Value) -> None:
    """Return with a status if two inputs overlap that must not, or an input and memory at a fixed address."""
    overlapping = b.append_basic_block("overlapping")
    with b.goto_block(overlapping):
        b.write(INT(OVERLAP), status)
        b.ret(BIT(0))
    with b.records(b.head(Head.FIRST_PAIR, POINTER), b.head(Head.PAIR_BYTES)) as record:
        first, second = [
            b.read(b.at(frame, b.field(record, place)), 0, WORD) for place in (Separate.FIRST, Separate.SECOND)
        ]
        fixed = b.field(record, Separate.ADDRESS)
        second = b.select(b.different(fixed, WORD(0)), fixed, second)
        ends_before = b.icmp_unsigned("<=", b.add(first, b.field(record, Separate.FIRST_BYTES)), second)
        starts_after = b.icmp_unsigned("<=", b.add(second, b.field(record, Separate.SECOND_BYTES)), first)
        b.require(b.or_(ends_before, starts_after), overlapping)


def _aligned(b: StubBuilder, address: Value) -> Value:
    rounded = b.add(b.ptrtoint(address, WORD), WORD(ALIGNMENT - 1))
    return b.inttoptr(b.and_(rounded, WORD(-ALIGNMENT)), POINTER)


def _emit_take_arena(module: Module) -> Function:
    """A function of the table: an array for scratch memory, a spare one if there is one."""
    b = StubBuilder(module, "take_arena", POINTER, [POINTER], is_inlined=False)
    places = b.head(Head.SPARE_ARENAS, POINTER)
    with b.if_then(b.different(places, NULL)), b.loop(WORD(SPARE_ARENAS)) as index:
        empty = b.append_basic_block("empty")
        array = b.read(b.item(places, index))
        b.require(b.different(array, NULL), empty)
        b.write(NULL, b.item(places, index))
        b.ret(array)
        b.position_at_end(empty)
    shape = b.at(b.table, WORD_SIZE * Head.ARENA_LENGTH)
    b.ret(_new_array(b, b.head(Head.BYTE_DTYPE, POINTER), INT(1), shape))
    return b.function


def _emit_keep_arena(module: Module) -> Function:
    """A function of table and array of scratch memory that keeps the array if a place is empty."""
    b = StubBuilder(module, "keep_arena", VOID, [POINTER] * 2, is_inlined=False)
    _, array = b.args
    places = b.head(Head.SPARE_ARENAS, POINTER)
    with b.if_then(b.different(places, NULL)), b.loop(WORD(SPARE_ARENAS)) as index:
        full = b.append_basic_block("full")
        b.require(b.equal(b.read(b.item(places, index)), NULL), full)
        b.write(array, b.item(places, index))
        b.ret_void()
        b.position_at_end(full)
    b.decrement(array)
    b.ret_void()
    return b.function
