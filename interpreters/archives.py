"""Files of arrays: zip archives of one JSON document and of arrays, each as an .npy member that NumPy reads.

Writing replaces a file in one step. Reading runs no code of the file, and takes memory in proportion to its size.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import reprlib
import secrets
import zipfile
from typing import Any

import numpy as np

from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.parameters import is_shape

MESSAGE_LENGTH = 1000
"""The most letters of an error's text that may quote a file."""


def as_path(path: str | os.PathLike[str], function: str) -> str:
    """A path as text."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str):
            return text
    raise ArgumentError(f"func.{function}: expected a path, got {type(path).__name__}")


def write_archive(path: str, document: tuple[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write the archive of a named document and of named arrays atomically: a reader finds the old file or the new one.

    The new file has a unique name first, and then replaces the target of the path: a link, not the file behind it.
    """
    name, content = document
    target = os.path.abspath(path)
    partial = f"{target}.{secrets.token_hex(8)}.part"
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(partial, flags, 0o666)
    try:
        with open(descriptor, "w+b") as file:
            with zipfile.ZipFile(file, "w") as archive:
                _write(archive, name, json.dumps(content, allow_nan=False, separators=(",", ":")).encode())
                for member_name, array in arrays.items():
                    member = io.BytesIO()
                    np.lib.format.write_array(member, array, allow_pickle=False)
                    _write(archive, f"{member_name}.npy", member.getvalue())
            file.flush()
            os.fsync(descriptor)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
    _keep_name(target)


def _keep_name(target: str) -> None:
    """Write the folder's entry of a file to the disk, if the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.dirname(target), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write one member with a fixed date: equal contents give equal files."""
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def excerpt(said: Exception | str) -> str:
    """A text, or that of an error, which may quote the file: printable, and of limited length."""
    lines = str(said).split("\n")
    text = "\n".join([line if line.isprintable() else repr(line)[1:-1] for line in lines])
    return text if len(text) <= MESSAGE_LENGTH else f"{text[:MESSAGE_LENGTH]} ..."


def check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Members are adjacent in the file, none of them compressed, so they are not larger than it."""
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise ValueError("two members have one name")
    if any([member.compress_type != zipfile.ZIP_STORED for member in members]):
        raise ValueError("a member is compressed")
    if sum([member.file_size for member in members]) > size:
        raise ValueError("the members overlap")


def read_json(archive: zipfile.ZipFile, name: str) -> Any:
    """The JSON document of an archive."""
    return json.loads(read_member(archive, name))


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a member."""
    return archive.read(archive.getinfo(name))


_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufc]\d\d?)', 'fortran_order': False, 'shape': \(((?:\d{1,19}, )*(?:\d{1,19},?)?)\), \} *\n"
)
"""The header of an .npy member as NumPy writes it for numbers in C order."""


def read_array(data: bytes) -> np.ndarray[Any, Any]:
    """A read-only array with the number of elements for which its member has bytes."""
    member = io.BytesIO(data)
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"version {version} of .npy members is not used here")
    length = int.from_bytes(member.read(2), "little")
    header = _HEADER.fullmatch(member.read(length))
    if header is None:
        raise ValueError("the header of an array is not that of numbers in C order")
    dtype = np.dtype(header[1].decode())
    shape = tuple([int(number) for number in header[2].replace(b" ", b"").split(b",") if number])
    if not is_shape(shape):
        raise ValueError(f"an array has the shape {reprlib.repr(shape)}")
    array = np.frombuffer(data, dtype, offset=member.tell())
    return array.reshape(shape).copy() if dtype.isnative is False else array.reshape(shape)
