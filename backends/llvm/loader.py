"""A loader of object code: copies sections into the memory of the process, and writes addresses into them.

LLVM's own linker needs llvmlite, whose import takes longer than the rest of a first call. LLVM writes code for a
process by the large code model, with 64 bits for every address: a relocation adds addresses. Code is never writable and
executable at once.

Everything in a file is checked before it is used: an offset, a size or a number that does not fit raises Unloadable.

Source: System V ABI, chapters 4 and 5; AMD64 ABI 1.0, sections 4.3 and 4.4.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 1, 2, 4, 8
SHT_NOTE, SHT_X86_64_UNWIND = 7, 0x70000001
SHF_WRITE, SHF_ALLOC = 1, 2
SHN_UNDEF, SHN_ABS, FIRST_SPECIAL = 0, 0xFFF1, 0xFF00
EM_X86_64, ET_REL = 62, 1
GLOBAL_OFFSETS = "_GLOBAL_OFFSET_TABLE_"
"""The name of a table that the small code models use."""
UNWINDING = ".eh_frame"
"""The section that debuggers and exceptions of C++ read, and compiled code does not."""

WORD, INT = 8, 4


class Relocation(NamedTuple):
    """The fields of a kind of relocation: bytes, whether relative to the place, and the range of the number."""

    size: int
    is_relative: bool
    low: int
    high: int


RELOCATIONS = {
    1: Relocation(WORD, False, -(1 << 63), (1 << 64) - 1),  # R_X86_64_64
    2: Relocation(INT, True, -(1 << 31), (1 << 31) - 1),  # R_X86_64_PC32
    4: Relocation(INT, True, -(1 << 31), (1 << 31) - 1),  # R_X86_64_PLT32
    10: Relocation(INT, False, 0, (1 << 32) - 1),  # R_X86_64_32
    11: Relocation(INT, False, -(1 << 31), (1 << 31) - 1),  # R_X86_64_32S
    24: Relocation(WORD, True, -(1 << 63), (1 << 63) - 1),  # R_X86_64_PC64
}

LARGEST = 1 << 30
"""Most bytes of memory that an object may ask for."""


class Unloadable(Exception):
    """This loader cannot load the object: LLVM may be able to, or the object is damaged."""


class Section(NamedTuple):
    """One section header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    width: int


class Symbol(NamedTuple):
    """A symbol: its name; `place` is the offset in memory of its section, None without one; its value there."""

    name: str
    place: int | None
    value: int
    is_needed: bool = False
    """Whether another object defines it."""
    is_absolute: bool = False


_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")


def is_supported() -> bool:
    """Whether this loader works here: on Linux with x86-64.

    >>> is_supported() in (True, False)
    True
    """
    is_x86 = platform.machine() in ("x86_64", "AMD64") and sys.maxsize > 2**32
    return sys.platform == "linux" and is_x86 and sys.byteorder == "little"


class LoadedObject:
    """Object code in the memory of the process until it is closed: code and constants in pages to execute, variables in
    pages after them.

    Raises: Unloadable for an object that is damaged, or needs a name or a relocation that is unknown here.
    """

    def __init__(self, image: bytes, find: Callable[[str], int | None]) -> None:
        self._memory: tuple[int, int] | None = None
        try:
            plan = _ObjectFile(image)
            self._symbols: dict[str, int] = {}
            self._load(plan, find)
        except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
            raise Unloadable(f"the object code is damaged: {error}") from None

    def address(self, name: str) -> int:
        """The address of a function or variable; 0 if the object does not define it."""
        return self._symbols.get(name, 0)

    def _load(self, plan: _ObjectFile, find: Callable[[str], int | None]) -> None:
        start = _new_memory(plan.size)
        self._memory = start, plan.size
        try:
            values = [_address_of(symbol, start, find) for symbol in plan.symbols]
            for symbol, value in zip(plan.symbols, values, strict=True):
                if symbol.name and symbol.place is not None and value is not None:
                    self._symbols[symbol.name] = value
            plan.relocate(start, values)
            ctypes.memmove(start, bytes(plan.content), plan.size)
            if plan.executable:
                _protect(start, plan.executable)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the memory."""
        memory, self._memory = self._memory, None
        if memory is not None:
            _functions().munmap(*memory)


def _address_of(symbol: Symbol, start: int, find: Callable[[str], int | None]) -> int | None:
    """The address of a symbol of an object at `start`; None for one in a section that is not loaded."""
    if symbol.place is not None:
        return start + symbol.place + symbol.value
    if symbol.is_absolute:
        return symbol.value
    if not symbol.is_needed:
        return None
    address = find(symbol.name)
    if not address:
        raise Unloadable(f"no such function in this process: {symbol.name}")
    return address


class _ObjectFile:
    """A parsed object file: the places of its sections, its symbols, and the bytes before relocation."""

    def __init__(self, image: bytes) -> None:
        self._image = image
        if image[:6] != b"\x7fELF\x02\x01":
            raise Unloadable("the object code is not in the format ELF64, little endian")
        kind, machine = struct.unpack_from("<HH", image, 16)
        if (kind, machine) != (ET_REL, EM_X86_64):
            raise Unloadable(f"the object code is for the machine {machine}")
        (offset,) = struct.unpack_from("<Q", image, 40)
        width, count, names = struct.unpack_from("<HHH", image, 58)
        if width != _SECTION.size:
            raise Unloadable(f"headers of sections have {width} bytes")
        self.sections = [Section(*_SECTION.unpack_from(image, offset + width * index)) for index in range(count)]
        self._names = names
        self.places: dict[int, int] = {}
        """Offsets in memory of the sections that are loaded, by their numbers."""
        self.executable = self._place(is_writable=False, start=0)
        """The bytes of the pages of code and constants, which come first."""
        self.size = max(self._place(is_writable=True, start=self.executable), mmap.PAGESIZE)
        self.content = self._contents()
        self.symbols = list(self._read_symbols())

    def _place(self, is_writable: bool, start: int) -> int:
        """Assign places to sections; the end, a multiple of the page size."""
        for number, section in enumerate(self.sections):
            if not section.flags & SHF_ALLOC or bool(section.flags & SHF_WRITE) != is_writable:
                continue
            if section.kind == SHT_X86_64_UNWIND or self._name(section) == UNWINDING or section.kind == SHT_NOTE:
                continue
            if section.kind not in (SHT_PROGBITS, SHT_NOBITS):
                raise Unloadable(f"unknown section kind {section.kind}")
            alignment = max(section.alignment, 1)
            if alignment > mmap.PAGESIZE or alignment & (alignment - 1) or section.size > LARGEST:
                raise Unloadable(f"a section of {section.size} bytes is aligned to {alignment}")
            start = -(-start // alignment) * alignment
            self.places[number] = start
            start += section.size
        end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if end > LARGEST:
            raise Unloadable(f"the object code takes {end} bytes")
        return end

    def _contents(self) -> bytearray:
        content = bytearray(self.size)
        for number, place in self.places.items():
            section = self.sections[number]
            if section.kind == SHT_PROGBITS:
                data = self._image[section.offset : section.offset + section.size]
                if len(data) != section.size:
                    raise Unloadable("a section is longer than the file")
                content[place : place + section.size] = data
        return content

    def _name(self, section: Section) -> str:
        return self._text(self.sections[self._names], section.name)

    def _text(self, strings: Section, offset: int) -> str:
        start = strings.offset + offset
        end = self._image.find(b"\0", start)
        if end < 0:
            raise Unloadable("a name does not end")
        return self._image[start:end].decode()

    def _read_symbols(self) -> Iterator[Symbol]:
        tables = [section for section in self.sections if section.kind == SHT_SYMTAB]
        if len(tables) != 1 or tables[0].width != _SYMBOL.size:
            raise Unloadable(f"there are {len(tables)} tables of symbols")
        (table,) = tables
        strings = self.sections[table.link]
        for index in range(table.size // _SYMBOL.size):
            start, _, _, number, value, _ = _SYMBOL.unpack_from(self._image, table.offset + index * _SYMBOL.size)
            name = self._text(strings, start) if start else ""
            if number == SHN_UNDEF:
                yield Symbol(name, None, 0, is_needed=name not in ("", GLOBAL_OFFSETS), is_absolute=index == 0)
            elif number == SHN_ABS:
                yield Symbol(name, None, value, is_absolute=True)
            elif number >= FIRST_SPECIAL:
                raise Unloadable(f"the symbol {name} is in the section {number:#x}")
            else:
                if value > self.sections[number].size:
                    raise Unloadable(f"the symbol {name} is outside of its section")
                yield Symbol(name, self.places.get(number), value)

    def relocate(self, start: int, values: list[int | None]) -> None:
        """Write addresses into the content, which will be at `start`; `values` are those of the symbols."""
        for section in self.sections:
            place = self.places.get(section.info) if section.kind == SHT_RELA else None
            if place is None:
                continue
            if section.width != _RELOCATION.size:
                raise Unloadable(f"relocations have {section.width} bytes")
            size = self.sections[section.info].size
            for index in range(section.size // _RELOCATION.size):
                entry = _RELOCATION.unpack_from(self._image, section.offset + index * _RELOCATION.size)
                self._relocate_entry(start, place, size, values, *entry)

    def _relocate_entry(
        self,
        start: int,
        place: int,
        size: int,
        values: list[int | None],
        offset: int,
        kind: int,
        symbol: int,
        addend: int,
    ) -> None:
        relocation = RELOCATIONS.get(kind)
        if relocation is None:
            raise Unloadable(f"unknown relocation kind {kind}")
        if offset + relocation.size > size:
            raise Unloadable("a relocation is outside of its section")
        base = values[symbol]
        if base is None:
            raise Unloadable("a relocation refers to a section that is not loaded")
        value = base + addend - (start + place + offset if relocation.is_relative else 0)
        if not relocation.low <= value <= relocation.high:
            raise Unloadable("an address is too far away")
        at = place + offset
        self.content[at : at + relocation.size] = (value % (1 << 8 * relocation.size)).to_bytes(
            relocation.size, "little"
        )


class _Functions(NamedTuple):
    """The functions of libc that manage memory."""

    mmap: Callable[..., int | None]
    mprotect: Callable[..., int]
    munmap: Callable[..., int]


@functools.cache
def _functions() -> _Functions:
    libc = ctypes.CDLL(None, use_errno=True)
    word, number = ctypes.c_size_t, ctypes.c_int
    map_memory, protect, unmap = libc.mmap, libc.mprotect, libc.munmap
    map_memory.restype, map_memory.argtypes = word, (word, word, number, number, number, ctypes.c_long)
    protect.restype, protect.argtypes = number, (word, word, number)
    unmap.restype, unmap.argtypes = number, (word, word)
    return _Functions(map_memory, protect, unmap)


def _new_memory(size: int) -> int:
    """The address of fresh writable memory."""
    address = _functions().mmap(0, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address is None or address == ctypes.c_size_t(-1).value:
        raise Unloadable(f"there is no memory for {size} bytes of code (error {ctypes.get_errno()})")
    return address


def _protect(start: int, size: int) -> None:
    """Make memory executable, and no longer writable."""
    if _functions().mprotect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise Unloadable(f"the system lets no memory be executed (error {ctypes.get_errno()})")


def elf_undefined(image: bytes) -> list[str] | None:
    """The undefined names of an ELF64 object; None for another format.

    LLVM aborts the process if it cannot find a name, so all are looked up beforehand.

    Source: System V ABI, chapter 4 (sections, symbol table).
    """
    if image[:6] != b"\x7fELF\x02\x01":
        return None
    (offset,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, offset + index * size) for index in range(count)]
    names: list[str] = []
    for _, kind, _, _, start, length, strings, _, _, width in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        text = sections[strings][4]
        for symbol in range(start + width, start + length, width):
            name, _, _, section = struct.unpack_from("<IBBH", image, symbol)
            if section == 0 and name:  # SHN_UNDEF
                names.append(image[text + name : image.index(b"\0", text + name)].decode())
    return [name for name in names if name != "_GLOBAL_OFFSET_TABLE_"]
