"""Signatures as tables of words, which the native code of entries follows; see entry_layout."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

import numpy as np

from func.backends.llvm.entry import capi
from func.backends.llvm.entry.layout import (
    ALIGNMENT,
    KEPT,
    MOST_KEPT,
    ON_STACK,
    RECYCLED,
    SLOT,
    SPARE,
    WORD,
    Box,
    Check,
    Container,
    Fetch,
    Head,
    Made,
    Node,
    Output,
)
from func.backends.llvm.entry.trees import PYTHON_TYPES, Leaf, Signature, Tree, count_containers, items, leaves

_BOXES: Final = {tuple: Box.TUPLE, list: Box.LIST, dict: Box.DICT}
_FETCHES: Final = {tuple: Fetch.TUPLE, list: Fetch.LIST, dict: Fetch.DICT}
_MADE: Final = {"b": Made.BOOL, "i": Made.INT, "f": Made.FLOAT, "c": Made.COMPLEX}
_NO_KIND: Final = -1
"""In place of eight bytes of a dtype: copies of this one are not told."""


class Table:
    """The table of an entry that calls `run` at an address, `slow` and `failed`.

    `words` is the table. `objects` are those whose addresses it holds, and must live as long as it. `places` has the
    memory that is kept for the next call.
    """

    def __init__(self, signature: Signature, run: int, slow: Callable[..., Any], failed: Callable[..., Any]) -> None:
        self.head: list[int] = [0] * Head.SIZE
        self.objects: list[Any] = [capi.function_table()]
        self._tail: list[int] = []
        self._frame = WORD
        results = list(leaves(signature.result))
        recycled = sum([_is_recycled(leaf) for leaf in results])
        self.places = _empty_places(SPARE + KEPT * recycled)
        self._next_place = SPARE
        self._inputs = self._room(WORD * len(list(leaves(signature.args))))
        self._outputs = self._room(WORD * len(results))
        self.head[Head.INPUT_ADDRESSES], self.head[Head.OUTPUT_ADDRESSES] = self._inputs, self._outputs
        for place, tree in enumerate(signature.args):
            self._add_node(tree, Fetch.ARGUMENT, 0, place, shared=False)
        self.head[Head.NODE_BYTES] = WORD * len(self._tail)
        self._add_result(signature.result)
        self._add_arena(signature.arena)
        self._fill_head(signature, run, slow, failed)
        self.words = self._joined()
        self.objects += [self.places, slow, failed]

    def _room(self, size: int = WORD, alignment: int = WORD) -> int:
        """The offset of new room in the frame."""
        start = -(-self._frame // alignment) * alignment
        self._frame = start + size
        return start

    def _address(self, value: Any) -> int:
        """The address of an object, which is kept alive with the table."""
        self.objects.append(value)
        return id(value)

    def _record(self, size: int, words: Mapping[int, int], tail: tuple[int, ...] = ()) -> None:
        """Adds a record, which starts with its length in bytes."""
        self._tail += [WORD * (size + len(tail)), *[words.get(place, 0) for place in range(1, size)], *tail]

    def _fill_head(self, signature: Signature, run: int, slow: Callable[..., Any], failed: Callable[..., Any]) -> None:
        head = self.head
        head[Head.FUNCTIONS] = capi.function_table().ctypes.data
        head[Head.RUN], head[Head.SLOW], head[Head.FAILED] = run, id(slow), id(failed)
        head[Head.ARGUMENTS] = len(signature.args)
        head[Head.RELEASES_GIL] = signature.releases_gil
        head[Head.ARRAY_TYPE] = id(np.ndarray)
        head[Head.BYTE_DTYPE] = self._address(np.dtype(np.uint8))
        head[Head.FRAME] = -(-self._frame // ALIGNMENT) * ALIGNMENT

    def _joined(self) -> Any:
        words = np.array([*self.head, *self._tail], np.int64)
        for place in (Head.FIRST_OUTPUT, Head.FIRST_CONTAINER):
            words[place] = words.ctypes.data + WORD * (Head.SIZE + words[place])
        return words

    def _add_node(self, tree: Tree, fetch: int, parent: int, key: int, shared: bool) -> None:
        """Adds the record of a node of the arguments and those below it.

        What a list or dict holds is `shared`: others may drop it during the call, so a reference is taken where the
        call goes on to use it.
        """
        words: dict[int, int] = {Node.FETCH: fetch, Node.PARENT: parent, Node.KEY: key}
        if isinstance(tree, Leaf):
            words |= {Node.TARGET: self._inputs, **self._leaf_words(tree)}
            self._inputs += WORD
        else:
            words |= {Node.TARGET: self._room(), Node.CHECK: Check.SAME, Node.TYPE: id(None)}
            if tree is not None:
                words |= {Node.CHECK: Check.CONTAINER, Node.TYPE: id(type(tree)), Node.COUNT: len(tree)}
        if shared and words[Node.CHECK] in (Check.ARRAY, Check.NUMBER, Check.CONTAINER):
            words[Node.HOLD] = 1
            self.head[Head.HELD] += 1
        self._record(Node.SIZE, words, tree.shape if isinstance(tree, Leaf) else ())
        if tree is None or isinstance(tree, Leaf):
            return
        target = words[Node.TARGET]
        for place, (name, child) in enumerate(items(tree) if isinstance(tree, dict) else enumerate(tree)):
            where = self._address(name) if isinstance(tree, dict) else place
            self._add_node(child, _FETCHES[type(tree)], target, where, shared=not isinstance(tree, tuple))

    def _leaf_words(self, leaf: Leaf) -> dict[int, int]:
        if leaf.kind == "array":
            words: dict[int, int] = {Node.CHECK: Check.ARRAY, Node.TYPE: id(np.ndarray), Node.COUNT: len(leaf.shape)}
            words |= {Node.DTYPE: self._address(leaf.dtype), Node.DTYPE_KIND: _NO_KIND}
            if leaf.dtype.isbuiltin == 1:
                words[Node.DTYPE_KIND] = ctypes.c_int64.from_address(id(leaf.dtype) + capi.DTYPE_KIND).value
            offset = capi.scalar_offset(leaf.dtype)
            if not leaf.shape and offset is not None:
                words |= {Node.OTHER: self._address(leaf.dtype.type), Node.VALUE: offset}
            return words
        kind = PYTHON_TYPES[leaf.dtype]
        if kind is bool:
            return {Node.CHECK: Check.BOOL, Node.TYPE: id(True), Node.OTHER: id(False), Node.VALUE: self._room()}
        if kind is int:
            return {Node.CHECK: Check.INT, Node.TYPE: id(int), Node.VALUE: self._room()}
        return {Node.CHECK: Check.NUMBER, Node.TYPE: id(kind), Node.VALUE: capi.VALUE}

    def _add_result(self, tree: Tree) -> None:
        """Adds the records of outputs and containers. None, too, becomes an output, to which no memory belongs."""
        head = self.head
        made = list(_with_none(tree))
        references = head[Head.HELD] + len(made) + count_containers(tree)
        head[Head.REFERENCES] = self._room(WORD * references)
        first = head[Head.REFERENCES] + WORD * head[Head.HELD]
        head[Head.FIRST_OUTPUT] = len(self._tail)
        for number, leaf in enumerate(made):
            self._add_output(leaf, first + WORD * number)
        head[Head.FIRST_CONTAINER] = len(self._tail)
        head[Head.RESULT] = self._add_container(tree, count(first, WORD), count(first + WORD * len(made), WORD))
        head[Head.OUTPUT_BYTES] = WORD * (head[Head.FIRST_CONTAINER] - head[Head.FIRST_OUTPUT])
        head[Head.CONTAINER_BYTES] = WORD * (len(self._tail) - head[Head.FIRST_CONTAINER])

    def _add_output(self, leaf: Leaf | None, reference: int) -> None:
        if leaf is None:
            words: dict[int, int] = {Output.KIND: Made.NONE, Output.REFERENCE: reference, Output.TARGET: self._room()}
            self._record(Output.SIZE, {**words, Output.DTYPE: id(None)})
            return
        words = {Output.REFERENCE: reference, Output.TARGET: self._outputs, Output.DTYPE: self._address(leaf.dtype)}
        self._outputs += WORD
        if leaf.shape:
            words |= {Output.KIND: Made.ARRAY, Output.COUNT: len(leaf.shape), Output.FLAGS: _flags(leaf)}
            if _is_recycled(leaf):
                words[Output.KEPT] = self.places.ctypes.data + WORD * self._next_place
                self._next_place += KEPT
            self._record(Output.SIZE, words, (*leaf.shape, *_strides(leaf)))
            return
        kind = Made.SCALAR if leaf.kind == "array" else _MADE[leaf.dtype.kind]
        self._record(Output.SIZE, {**words, Output.KIND: kind, Output.SLOT: self._room(SLOT, SLOT)})

    def _add_container(self, tree: Tree, made: Iterator[int], boxes: Iterator[int]) -> int:
        """Adds the records for a tree, inner containers first, and gives the offset of its reference."""
        if tree is None or isinstance(tree, Leaf):
            return next(made)
        if isinstance(tree, dict):
            offsets = {key: self._add_container(child, made, boxes) for key, child in items(tree)}
            pairs = [(offsets[key], self._address(key)) for key in tree]
        else:
            pairs = [(self._add_container(child, made, boxes), 0) for child in tree]
        words: dict[int, int] = {Container.KIND: _BOXES[type(tree)], Container.COUNT: len(tree)}
        self._record(Container.SIZE, words, tuple([part for pair in pairs for part in pair]))
        return next(boxes)

    def _add_arena(self, size: int) -> None:
        if size <= ON_STACK:
            self.head[Head.ARENA] = self._room(size, ALIGNMENT)
            return
        self.head[Head.ARENA_LENGTH] = size + ALIGNMENT
        if size <= MOST_KEPT:
            self.head[Head.SPARE_ARENAS] = self.places.ctypes.data


def _with_none(tree: Tree) -> Any:
    """The leaves of a tree and its Nones, in their order."""
    if tree is None or isinstance(tree, Leaf):
        yield tree
    else:
        for child in [child for _, child in items(tree)] if isinstance(tree, dict) else tree:
            yield from _with_none(child)


def _is_recycled(leaf: Leaf) -> bool:
    """Whether an output's arrays are used again when nobody holds them any more."""
    return bool(leaf.shape) and leaf.nbytes >= RECYCLED


def _flags(leaf: Leaf) -> int:
    """The flags of a fresh array."""
    flags = capi.C_CONTIGUOUS | capi.OWNDATA | capi.ALIGNED | capi.WRITEABLE
    return flags | capi.F_CONTIGUOUS if sum([length != 1 for length in leaf.shape]) <= 1 else flags


def _strides(leaf: Leaf) -> list[int]:
    return [leaf.dtype.itemsize * math.prod(leaf.shape[axis + 1 :]) for axis in range(len(leaf.shape))]


def empty(places: Any) -> None:
    """Let go of what is kept in places; they are NULL again."""
    addresses = (ctypes.c_void_p * len(places)).from_address(places.ctypes.data)
    for place, address in enumerate(addresses):
        if address is not None:
            addresses[place] = None
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))


def _empty_places(number: int) -> Any:
    """An array of objects whose items are NULL, which NumPy reads as None. It owns what is put there."""
    places = np.empty(number, object)
    ctypes.memset(places.ctypes.data, 0, places.nbytes)
    for _ in range(number):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
    return places
