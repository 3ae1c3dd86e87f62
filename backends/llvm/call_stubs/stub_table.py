"""The table of a call stub, and its layout.

The native code is the same for all stubs and follows a table of 64-bit words: a head and the records. Nodes of the
arguments have records in the order of visits, then outputs, then containers of the result, inner ones first. Offsets
are in bytes; those of a frame are from its start. A frame is the memory of one call on the stack. It has the number of
references that the call owns, and the addresses of inputs and outputs. After them come the containers among the
arguments, the numbers, the references, and scratch memory.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

import numpy as np

from func.backends.llvm.call_stubs import capi
from func.backends.llvm.call_stubs.signature import (
    PYTHON_TYPES,
    Leaf,
    StubSignature,
    Tree,
    count_containers,
    items,
    leaves,
)

WORD_SIZE: Final = 8
SLOT: Final = 32
"""Bytes for a number of any dtype."""
ALIGNMENT: Final = 64
"""The alignment of frames and scratch memory."""
MAX_FRAME: Final = 1 << 17
"""Most bytes of the stack for a call."""
MAX_STACK_ARENA: Final = 1 << 13
"""Most bytes of scratch memory in the frame."""
MAX_SPARE_ARENA: Final = 1 << 28
"""Most bytes of scratch memory that a stub keeps for the next call."""
SPARE_ARENAS: Final = 8
"""The number of scratch arrays that a stub keeps: those of concurrent calls."""
MIN_REUSED_OUTPUT: Final = 1 << 18
"""The fewest bytes of an output whose arrays are reused."""
ARRAYS_PER_OUTPUT: Final = 2
"""The number of arrays that the stub keeps for such an output."""


class Head:
    """The words at the start of a table. The addresses of objects are borrowed from the function's `self`."""

    FUNCTIONS = 0
    """Address of the addresses of capi.FUNCTIONS."""
    RUN = 1
    SLOW = 2
    FAILED = 3
    ARGUMENTS = 4
    """Number of arguments."""
    FRAME = 5
    """Bytes of a frame."""
    NODE_BYTES = 6
    OUTPUT_BYTES = 7
    CONTAINER_BYTES = 8
    FIRST_OUTPUT = 9
    FIRST_CONTAINER = 10
    INPUT_ADDRESSES = 11
    OUTPUT_ADDRESSES = 12
    REFERENCES = 13
    """Offset in the frame of the references that the call owns: those to parts of its arguments come first."""
    OWNED = 14
    """Number of references to parts of the arguments."""
    RESULT = 15
    ARENA = 16
    """Offset of scratch memory in the frame, or 0 if an array provides it."""
    ARENA_LENGTH = 17
    """Length of that array."""
    SPARE_ARENAS = 18
    """Address of the spare arrays, or 0 without any."""
    RELEASES_GIL = 19
    ARRAY_TYPE = 20
    BYTE_DTYPE = 21
    PAIR_BYTES = 22
    FIRST_PAIR = 23
    COUNT = 24
    """Offset in the frame of an output that must be EXPECTED, or 0 if there is none."""
    COUNT_ADDRESS = 25
    EXPECTED = 26
    SIZE = 27


class Separate:
    """A record for two inputs that must not overlap, or for one and memory elsewhere."""

    LENGTH = 0
    FIRST = 1
    """Offset in the frame of the address of the data."""
    FIRST_BYTES = 2
    SECOND = 3
    SECOND_BYTES = 4
    ADDRESS = 5
    """Address of memory that the first input must not overlap, in place of the second; 0 for two inputs."""
    SIZE = 6


class ArgNode:
    """A record for a node of the arguments; the shape of an array follows."""

    LENGTH = 0
    """Bytes of the record."""
    FETCH = 1
    PARENT = 2
    """Offset in the frame of the container."""
    KEY = 3
    """Index in the container, or address of the dict's key."""
    CHECK = 4
    TYPE = 5
    ALTERNATIVE = 6
    VALUE = 7
    TARGET = 8
    """Offset in the frame of the address of the data, or of the container."""
    IS_OWNED = 9
    """Whether the call takes a reference to the object."""
    COUNT = 10
    """Number of items, or of dimensions."""
    DTYPE = 11
    DTYPE_KIND = 12
    SIZE = 13


class Fetch:
    """The ways to find the object of a node."""

    ARGUMENT = 0
    TUPLE = 1
    LIST = 2
    DICT = 3


class Check:
    """The required kinds of the object of a node."""

    ARRAY = 0
    """An array, or a scalar of type ALTERNATIVE whose number is at VALUE."""
    NUMBER = 1
    """A float or complex, whose number is at VALUE."""
    INT = 2
    """An int, which is copied to VALUE in the frame."""
    BOOL = 3
    """TYPE or ALTERNATIVE, which are True and False; the byte goes to VALUE in the frame."""
    SAME = 4
    """The object TYPE itself."""
    CONTAINER = 5
    """A tuple, list or dict of COUNT items."""


class Output:
    """A record for an output; the shape and the strides of an array follow."""

    LENGTH = 0
    KIND = 1
    TARGET = 2
    """Offset in the frame of the address of the data."""
    SLOT = 3
    """Offset in the frame of the data of a number."""
    REFERENCE = 4
    """Offset in the frame of the reference to the object."""
    DTYPE = 5
    REUSED = 6
    """Address of the arrays for reuse, or 0."""
    FLAGS = 7
    COUNT = 8
    SIZE = 9


class OutputKind:
    """The kinds of objects of outputs."""

    ARRAY = 0
    SCALAR = 1
    BOOL = 2
    INT = 3
    FLOAT = 4
    COMPLEX = 5
    NONE = 6


class Container:
    """A record for a container of the result; for each item its reference's offset and its key follow."""

    LENGTH = 0
    KIND = 1
    COUNT = 2
    SIZE = 3


class ContainerKind:
    """The kinds of containers."""

    TUPLE = 0
    LIST = 1
    DICT = 2


_CONTAINER_KINDS: Final = {tuple: ContainerKind.TUPLE, list: ContainerKind.LIST, dict: ContainerKind.DICT}
_FETCHES: Final = {tuple: Fetch.TUPLE, list: Fetch.LIST, dict: Fetch.DICT}
_NUMBER_KINDS: Final = {"b": OutputKind.BOOL, "i": OutputKind.INT, "f": OutputKind.FLOAT, "c": OutputKind.COMPLEX}
_NO_DTYPE_KIND: Final = -1
"""The value instead of a dtype's eight bytes if copies of it cannot be recognized."""


class StubTable:
    """The table of a stub that calls `run` at an address, `slow` and `failed`.

    `words` is the table. `objects` are those at its addresses; they must live as long as it does. `places` has the
    memory for reuse by the next call.
    """

    def __init__(
        self, signature: StubSignature, run: int, slow: Callable[..., Any], failed: Callable[..., Any]
    ) -> None:
        self.head: list[int] = [0] * Head.SIZE
        self.objects: list[Any] = [capi.function_table()]
        self._records: list[int] = []
        self._frame = WORD_SIZE
        results = list(leaves(signature.result))
        self._keeps_outputs = signature.keeps_outputs
        reused = sum([self._is_reused(leaf) for leaf in results])
        self.places = _empty_places(SPARE_ARENAS + ARRAYS_PER_OUTPUT * reused)
        self._next_place = SPARE_ARENAS
        self._inputs = self._allocate(WORD_SIZE * len(list(leaves(signature.args))))
        self._outputs = self._allocate(WORD_SIZE * len(results))
        self.head[Head.INPUT_ADDRESSES], self.head[Head.OUTPUT_ADDRESSES] = self._inputs, self._outputs
        if signature.expected is not None:
            self.head[Head.EXPECTED], self.head[Head.COUNT_ADDRESS] = signature.expected, self._allocate()
            self.head[Head.COUNT] = self._allocate()
        for place, tree in enumerate(signature.args):
            self._add_node(tree, Fetch.ARGUMENT, 0, place, is_shared=False)
        self.head[Head.NODE_BYTES] = WORD_SIZE * len(self._records)
        self._add_result(signature.result)
        self._add_pairs(signature)
        self._add_arena(signature.arena)
        self._fill_head(signature, run, slow, failed)
        self.words = self._concatenated()
        self.objects += [self.places, slow, failed]

    def _is_reused(self, leaf: Leaf) -> bool:
        """Whether the stub keeps an output's arrays, and reuses one without other references."""
        return self._keeps_outputs and bool(leaf.shape) and leaf.nbytes >= MIN_REUSED_OUTPUT

    def _allocate(self, size: int = WORD_SIZE, alignment: int = WORD_SIZE) -> int:
        """The offset of new memory in the frame."""
        start = -(-self._frame // alignment) * alignment
        self._frame = start + size
        return start

    def _address(self, value: Any) -> int:
        """The address of an object, which lives as long as the table."""
        self.objects.append(value)
        return id(value)

    def _add_record(self, size: int, words: Mapping[int, int], tail: tuple[int, ...] = ()) -> None:
        """Add a record, which starts with its length in bytes."""
        self._records += [WORD_SIZE * (size + len(tail)), *[words.get(place, 0) for place in range(1, size)], *tail]

    def _fill_head(
        self, signature: StubSignature, run: int, slow: Callable[..., Any], failed: Callable[..., Any]
    ) -> None:
        head = self.head
        head[Head.FUNCTIONS] = self.objects[0].ctypes.data
        head[Head.RUN], head[Head.SLOW], head[Head.FAILED] = run, id(slow), id(failed)
        head[Head.ARGUMENTS] = len(signature.args)
        head[Head.RELEASES_GIL] = signature.releases_gil
        head[Head.ARRAY_TYPE] = id(np.ndarray)
        head[Head.BYTE_DTYPE] = self._address(np.dtype(np.uint8))
        head[Head.FRAME] = -(-self._frame // ALIGNMENT) * ALIGNMENT

    def _concatenated(self) -> Any:
        words = np.array([*self.head, *self._records], np.int64)
        for place in (Head.FIRST_OUTPUT, Head.FIRST_CONTAINER, Head.FIRST_PAIR):
            words[place] = words.ctypes.data + WORD_SIZE * (Head.SIZE + words[place])
        return words

    def _add_node(self, tree: Tree, fetch: int, parent: int, key: int, is_shared: bool) -> None:
        """Add the record of a node of the arguments and those below it.

        The items of a list or dict are shared, and other code may drop them during the call. So the call takes
        references to those that it uses later.
        """
        words: dict[int, int] = {ArgNode.FETCH: fetch, ArgNode.PARENT: parent, ArgNode.KEY: key}
        if isinstance(tree, Leaf):
            words |= {ArgNode.TARGET: self._inputs, **self._leaf_words(tree)}
            self._inputs += WORD_SIZE
        else:
            words |= {ArgNode.TARGET: self._allocate(), ArgNode.CHECK: Check.SAME, ArgNode.TYPE: id(None)}
            if tree is not None:
                words |= {
                    ArgNode.CHECK: Check.CONTAINER,
                    ArgNode.TYPE: id(type(tree)),
                    ArgNode.COUNT: len(tree),
                }
        if is_shared and words[ArgNode.CHECK] in (Check.ARRAY, Check.NUMBER, Check.CONTAINER):
            words[ArgNode.IS_OWNED] = 1
            self.head[Head.OWNED] += 1
        self._add_record(ArgNode.SIZE, words, tree.shape if isinstance(tree, Leaf) else ())
        if tree is None or isinstance(tree, Leaf):
            return
        target = words[ArgNode.TARGET]
        for index, child in items(tree) if isinstance(tree, dict) else enumerate(tree):
            key = self._address(index) if isinstance(tree, dict) else index
            self._add_node(child, _FETCHES[type(tree)], target, key, is_shared=not isinstance(tree, tuple))

    def _leaf_words(self, leaf: Leaf) -> dict[int, int]:
        if leaf.kind == "array":
            words: dict[int, int] = {
                ArgNode.CHECK: Check.ARRAY,
                ArgNode.TYPE: id(np.ndarray),
                ArgNode.COUNT: len(leaf.shape),
            }
            words |= {ArgNode.DTYPE: self._address(leaf.dtype), ArgNode.DTYPE_KIND: _NO_DTYPE_KIND}
            if leaf.dtype.isbuiltin == 1:
                words[ArgNode.DTYPE_KIND] = ctypes.c_int64.from_address(id(leaf.dtype) + capi.DTYPE_KIND).value
            offset = capi.scalar_offset(leaf.dtype)
            if not leaf.shape and offset is not None:
                words |= {ArgNode.ALTERNATIVE: self._address(leaf.dtype.type), ArgNode.VALUE: offset}
            return words
        kind = PYTHON_TYPES[leaf.dtype]
        if kind is bool:
            words = {ArgNode.CHECK: Check.BOOL, ArgNode.TYPE: id(True), ArgNode.ALTERNATIVE: id(False)}
            return {**words, ArgNode.VALUE: self._allocate()}
        if kind is int:
            return {ArgNode.CHECK: Check.INT, ArgNode.TYPE: id(int), ArgNode.VALUE: self._allocate()}
        return {ArgNode.CHECK: Check.NUMBER, ArgNode.TYPE: id(kind), ArgNode.VALUE: capi.VALUE}

    def _add_result(self, tree: Tree) -> None:
        """Add the records of outputs and containers. None is an output, too, without memory for its data."""
        head = self.head
        outputs = list(_with_none(tree))
        references = head[Head.OWNED] + len(outputs) + count_containers(tree)
        head[Head.REFERENCES] = self._allocate(WORD_SIZE * references)
        first = head[Head.REFERENCES] + WORD_SIZE * head[Head.OWNED]
        head[Head.FIRST_OUTPUT] = len(self._records)
        for number, leaf in enumerate(outputs):
            self._add_output(leaf, first + WORD_SIZE * number)
        head[Head.FIRST_CONTAINER] = len(self._records)
        head[Head.RESULT] = self._add_container(
            tree, count(first, WORD_SIZE), count(first + WORD_SIZE * len(outputs), WORD_SIZE)
        )
        head[Head.OUTPUT_BYTES] = WORD_SIZE * (head[Head.FIRST_CONTAINER] - head[Head.FIRST_OUTPUT])
        head[Head.CONTAINER_BYTES] = WORD_SIZE * (len(self._records) - head[Head.FIRST_CONTAINER])

    def _add_pairs(self, signature: StubSignature) -> None:
        """Add the records of the inputs that must not overlap."""
        inputs, start = list(leaves(signature.args)), self.head[Head.INPUT_ADDRESSES]
        self.head[Head.FIRST_PAIR] = len(self._records)
        for first, second in signature.separate:
            words = {Separate.FIRST: start + WORD_SIZE * first, Separate.FIRST_BYTES: inputs[first].nbytes}
            words |= {Separate.SECOND: start + WORD_SIZE * second, Separate.SECOND_BYTES: inputs[second].nbytes}
            self._add_record(Separate.SIZE, words)
        for place, address, size in signature.fixed:
            words = {Separate.FIRST: start + WORD_SIZE * place, Separate.FIRST_BYTES: inputs[place].nbytes}
            words |= {Separate.SECOND: start + WORD_SIZE * place, Separate.SECOND_BYTES: size}
            self._add_record(Separate.SIZE, words | {Separate.ADDRESS: address})
        self.head[Head.PAIR_BYTES] = WORD_SIZE * (len(self._records) - self.head[Head.FIRST_PAIR])

    def _add_output(self, leaf: Leaf | None, reference: int) -> None:
        words: dict[int, int] = {Output.REFERENCE: reference}
        if leaf is None:
            words |= {
                Output.KIND: OutputKind.NONE,
                Output.TARGET: self._allocate(),
                Output.DTYPE: id(None),
            }
            self._add_record(Output.SIZE, words)
            return
        words |= {Output.TARGET: self._outputs, Output.DTYPE: self._address(leaf.dtype)}
        self._outputs += WORD_SIZE
        if leaf.shape:
            words |= {
                Output.KIND: OutputKind.ARRAY,
                Output.COUNT: len(leaf.shape),
                Output.FLAGS: _flags(leaf),
            }
            if self._is_reused(leaf):
                words[Output.REUSED] = self.places.ctypes.data + WORD_SIZE * self._next_place
                self._next_place += ARRAYS_PER_OUTPUT
            self._add_record(Output.SIZE, words, (*leaf.shape, *_strides(leaf)))
            return
        kind = OutputKind.SCALAR if leaf.kind == "array" else _NUMBER_KINDS[leaf.dtype.kind]
        self._add_record(Output.SIZE, {**words, Output.KIND: kind, Output.SLOT: self._allocate(SLOT, SLOT)})

    def _add_container(self, tree: Tree, outputs: Iterator[int], containers: Iterator[int]) -> int:
        """Add the records for a tree, inner containers first, and return the offset of its reference."""
        if tree is None or isinstance(tree, Leaf):
            return next(outputs)
        if isinstance(tree, dict):
            offsets = {key: self._add_container(child, outputs, containers) for key, child in items(tree)}
            pairs = [(offsets[key], self._address(key)) for key in tree]
        else:
            pairs = [(self._add_container(child, outputs, containers), 0) for child in tree]
        words: dict[int, int] = {Container.KIND: _CONTAINER_KINDS[type(tree)], Container.COUNT: len(tree)}
        self._add_record(Container.SIZE, words, tuple([part for pair in pairs for part in pair]))
        return next(containers)

    def _add_arena(self, size: int) -> None:
        if size <= MAX_STACK_ARENA:
            self.head[Head.ARENA] = self._allocate(size, ALIGNMENT)
            return
        self.head[Head.ARENA_LENGTH] = size + ALIGNMENT
        if size <= MAX_SPARE_ARENA:
            self.head[Head.SPARE_ARENAS] = self.places.ctypes.data


def _with_none(tree: Tree) -> Any:
    """The leaves of a tree and its Nones, in their order."""
    if tree is None or isinstance(tree, Leaf):
        yield tree
    else:
        for child in [child for _, child in items(tree)] if isinstance(tree, dict) else tree:
            yield from _with_none(child)


def _flags(leaf: Leaf) -> int:
    """The flags of a fresh array."""
    flags = capi.C_CONTIGUOUS | capi.OWNDATA | capi.ALIGNED | capi.WRITEABLE
    return flags | capi.F_CONTIGUOUS if sum([length != 1 for length in leaf.shape]) <= 1 else flags


def _strides(leaf: Leaf) -> list[int]:
    return [leaf.dtype.itemsize * math.prod(leaf.shape[axis + 1 :]) for axis in range(len(leaf.shape))]


def empty(places: Any) -> None:
    """Drop the arrays in places, which become NULL again.

    A concurrent call of the stub takes an array out of its place or gets none: one call of C code reads and clears all
    places.
    """
    words = np.ctypeslib.as_array((ctypes.c_int64 * len(places)).from_address(places.ctypes.data))
    taken = np.empty_like(words)
    np.divmod(words, 1, out=(taken, words))
    for address in taken.tolist():
        if address:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))


def _empty_places(number: int) -> Any:
    """An array of objects whose items are NULL, which NumPy reads as None. It owns the references stored there."""
    places = np.empty(number, object)
    ctypes.memset(places.ctypes.data, 0, places.nbytes)
    for _ in range(number):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
    return places
