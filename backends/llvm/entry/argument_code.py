"""The native code that checks the arguments of a call and finds the data of their leaves."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from func.backends.llvm.entry import capi
from func.backends.llvm.entry.layout import Check, Fetch, Head, Node
from func.backends.llvm.entry.writing import BIT, BYTE, INT, POINTER, WORD, WORD_SIZE, Code, number, word

_READABLE: Final = capi.C_CONTIGUOUS | capi.ALIGNED


def emit_unpack(module: Any) -> Any:
    """A function of table, arguments and frame: whether the arguments are as the table says."""
    code = Code(module, "unpack", BIT, [POINTER] * 3)
    _, arguments, frame = code.function.args
    differs = code.returning(ir.Constant(BIT, 0))

    def visit(node: Any) -> None:
        value = _fetched(code, node, arguments, frame, differs)
        data = _checked(code, node, value, frame, differs)
        code.builder.store(data, code.at(frame, code.field(node, Node.TARGET)))
        code.when(code.different(code.field(node, Node.HOLD), word(0)), lambda: hold(value))

    def hold(value: Any) -> None:
        code.increment(value)
        code.add_reference(frame, value)

    code.records(code.at(code.table, WORD_SIZE * Head.SIZE), code.head(Head.NODE_BYTES), visit)
    code.builder.ret(ir.Constant(BIT, 1))
    return code.function


def _fetched(code: Code, node: Any, arguments: Any, frame: Any, differs: Any) -> Any:
    """The object of a node."""
    key = code.field(node, Node.KEY)

    def parent() -> Any:
        return code.load(code.at(frame, code.field(node, Node.PARENT)))

    def from_list() -> Any:
        # A look-up in a dict before this item may have run Python code that changed the list.
        items = parent()
        code.require(code.builder.icmp_unsigned("<", key, code.load(items, capi.COUNT, WORD)), differs)
        return code.load(code.item(code.load(items, capi.LIST_ITEMS), key))

    def from_dict() -> Any:
        found = code.call("PyDict_GetItemWithError", parent(), code.field(node, Node.KEY, POINTER))
        code.require(code.different(found, ir.Constant(POINTER, None)), differs)
        return found

    return code.choose(
        code.field(node, Node.FETCH),
        {
            Fetch.ARGUMENT: lambda: code.load(code.item(arguments, key)),
            Fetch.TUPLE: lambda: code.load(code.item(code.at(parent(), capi.TUPLE_ITEMS), key)),
            Fetch.LIST: from_list,
            Fetch.DICT: from_dict,
        },
    )


def _checked(code: Code, node: Any, value: Any, frame: Any, differs: Any) -> Any:
    """The address of a leaf's data, or the container itself."""
    wanted = code.field(node, Node.TYPE, POINTER)

    def require_type() -> None:
        code.require(code.equal(code.load(value, capi.TYPE), wanted), differs)

    def array() -> Any:
        is_array = code.equal(code.load(value, capi.TYPE), wanted)
        return code.when_else(is_array, lambda: _array_data(code, node, value, differs), scalar)

    def scalar() -> Any:
        code.require(code.equal(code.load(value, capi.TYPE), code.field(node, Node.OTHER, POINTER)), differs)
        return code.at(value, code.field(node, Node.VALUE))

    def plain_number() -> Any:
        require_type()
        return code.at(value, capi.VALUE)

    def integer() -> Any:
        require_type()
        overflow = code.room(INT)
        found = code.call("PyLong_AsLongLongAndOverflow", value, overflow, returns=WORD)
        code.require(code.equal(code.builder.load(overflow), number(0)), differs)
        return in_frame(found)

    def boolean() -> Any:
        yes = code.equal(value, wanted)
        code.require(code.builder.or_(yes, code.equal(value, code.field(node, Node.OTHER, POINTER))), differs)
        return in_frame(code.builder.zext(yes, BYTE))

    def in_frame(found: Any) -> Any:
        place = code.at(frame, code.field(node, Node.VALUE))
        code.store(found, place)
        return place

    def same() -> Any:
        code.require(code.equal(value, wanted), differs)
        return value

    def container() -> Any:
        require_type()
        code.require(code.equal(code.load(value, capi.COUNT, WORD), code.field(node, Node.COUNT)), differs)
        return value

    cases: dict[int, Any] = {Check.ARRAY: array, Check.NUMBER: plain_number, Check.INT: integer}
    cases |= {Check.BOOL: boolean, Check.SAME: same, Check.CONTAINER: container}
    return code.choose(code.field(node, Node.CHECK), cases)


def _array_data(code: Code, node: Any, array: Any, differs: Any) -> Any:
    """The address of the data of an array with the right dtype, shape and flags."""
    flags = code.builder.and_(code.load(array, capi.ARRAY_FLAGS, INT), number(_READABLE))
    code.require(code.equal(flags, number(_READABLE)), differs)
    ndim = code.field(node, Node.COUNT)
    code.require(code.equal(code.load(array, capi.ARRAY_NDIM, INT), code.builder.trunc(ndim, INT)), differs)
    dtype = code.load(array, capi.ARRAY_DTYPE)

    def require_copy() -> None:
        # Arrays that were unpickled have copies of the builtin dtypes.
        same = code.equal(code.load(dtype, capi.DTYPE_KIND, WORD), code.field(node, Node.DTYPE_KIND))
        code.require(same, differs)

    code.when(code.different(dtype, code.field(node, Node.DTYPE, POINTER)), require_copy)
    shape = code.load(array, capi.ARRAY_SHAPE)

    def compare(axis: Any) -> None:
        wanted = code.load(code.item(code.at(node, WORD_SIZE * Node.SIZE), axis), 0, WORD)
        code.require(code.equal(code.load(code.item(shape, axis), 0, WORD), wanted), differs)

    code.loop(ndim, compare)
    return code.load(array, capi.ARRAY_DATA)
