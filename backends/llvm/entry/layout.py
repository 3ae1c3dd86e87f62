"""The layout of what the native code of entries reads and writes: tables of signatures, and frames of calls.

The code of all entries is the same and follows a table of 64-bit words: a head, then records for the nodes of the
arguments in the order in which they are visited, for the outputs, and for the containers of the result, inner ones
first. Offsets are in bytes; those of a frame are from its start. A frame is the memory of one call on the stack: the
number of references that the call owns, the addresses of inputs and of outputs, the containers among the arguments,
numbers, the references, and scratch memory.
"""

from __future__ import annotations

from typing import Final

WORD: Final = 8
SLOT: Final = 32
"""Bytes for a number of any dtype."""
ALIGNMENT: Final = 64
"""Of frames and scratch memory."""
LARGEST_FRAME: Final = 1 << 17
"""A call needs no more bytes of the stack."""
ON_STACK: Final = 1 << 13
"""Scratch memory of up to so many bytes lies in the frame."""
MOST_KEPT: Final = 1 << 28
"""Scratch memory beyond this many bytes is given back after every call."""
SPARE: Final = 8
"""So many arrays of scratch memory are kept: those of concurrent calls."""
RECYCLED: Final = 1 << 18
"""Outputs of at least so many bytes are kept for reuse."""
KEPT: Final = 2
"""So many arrays are kept for each of them."""


class Head:
    """The words at the start of a table. The addresses of objects are borrowed from the function's `self`."""

    FUNCTIONS = 0
    """Address of the addresses of capi.FUNCTIONS."""
    RUN = 1
    SLOW = 2
    FAILED = 3
    ARGUMENTS = 4
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
    HELD = 14
    RESULT = 15
    ARENA = 16
    """Offset of scratch memory in the frame, or 0 where it is an array."""
    ARENA_LENGTH = 17
    """Length of that array."""
    SPARE_ARENAS = 18
    """Address of the spare ones, or 0 where none are kept."""
    RELEASES_GIL = 19
    ARRAY_TYPE = 20
    BYTE_DTYPE = 21
    SIZE = 22


class Node:
    """A record for a node of the arguments; the shape of an array follows."""

    NEXT = 0
    FETCH = 1
    PARENT = 2
    KEY = 3
    CHECK = 4
    TYPE = 5
    OTHER = 6
    VALUE = 7
    TARGET = 8
    HOLD = 9
    COUNT = 10
    DTYPE = 11
    DTYPE_KIND = 12
    SIZE = 13


class Fetch:
    """Where a node's object comes from."""

    ARGUMENT = 0
    TUPLE = 1
    LIST = 2
    DICT = 3


class Check:
    """What a node's object must be."""

    ARRAY = 0
    """An array, or a scalar of type OTHER whose number lies at VALUE."""
    NUMBER = 1
    """A float or complex, whose number lies at VALUE."""
    INT = 2
    """An int, which is copied to VALUE in the frame."""
    BOOL = 3
    """TYPE or OTHER, which are True and False; the byte is written to VALUE in the frame."""
    SAME = 4
    """This very object."""
    CONTAINER = 5


class Output:
    """A record for an output; the shape and the strides of an array follow."""

    NEXT = 0
    KIND = 1
    TARGET = 2
    SLOT = 3
    REFERENCE = 4
    DTYPE = 5
    KEPT = 6
    FLAGS = 7
    COUNT = 8
    SIZE = 9


class Made:
    """The objects that outputs become."""

    ARRAY = 0
    SCALAR = 1
    BOOL = 2
    INT = 3
    FLOAT = 4
    COMPLEX = 5
    NONE = 6


class Container:
    """A record for a container of the result; for each item its reference's offset and its key follow."""

    NEXT = 0
    KIND = 1
    COUNT = 2
    SIZE = 3


class Box:
    """The kinds of containers."""

    TUPLE = 0
    LIST = 1
    DICT = 2
