"""Object code on disk: found again by what it was made from.

One file an entry, in a folder of the user's. A file is written whole or not at all, carries its own key and checksum,
and is only read if it belongs to the user who runs the process: it is going to be executed. Whatever is wrong with the
folder or a file, the code is compiled again, and the logger "func" says why at level DEBUG.
"""

import contextlib
import functools
import hashlib
import logging
import os
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMIT = 512 * 2**20
"""Bytes that the folder may hold; of more, the entries that were not used for the longest time are removed."""

FORMAT = 1
_MAGIC = b"func object code"
_HEADER = struct.Struct("<16sI32s32sI")  # magic, format, key, checksum, length of the names
_SHARDS = 16
_HOUR = 3600.0

_log = logging.getLogger("func")


class ObjectCode(NamedTuple):
    """An object file's bytes, and the names which it expects the process to define."""

    image: bytes
    needed: tuple[str, ...]


def digest(*parts: str) -> str:
    """The key of an entry: a hash of all that the code depends on.

    >>> digest("define ...", "x86_64", "22") == digest("define ...", "x86_64", "23")
    False
    """
    lengths = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((str(FORMAT), lengths, *parts)).encode()).hexdigest()


@functools.cache
def source_fingerprint() -> str:
    """Which func this is, with every edit: names, sizes and times of the files that write code for a key."""
    code = Path(__file__).parent
    return digest(*sorted([_mark(code.parents[1] / "__init__.py"), *_marks(code)]))


def _marks(folder: str | Path) -> Iterator[str]:
    """Those of all source files below a folder; none where the sources are no files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield _mark(entry)
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _marks(entry.path)


def _mark(file: os.DirEntry[str] | Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return ""
    return f"{os.fspath(file)} {status.st_size} {status.st_mtime_ns}"


def folder() -> Path | None:
    """Where entries are kept: `FUNC_CACHE_DIR`, else the platform's folder for caches; None with `FUNC_CACHE_DIR=""`.

    >>> path = folder()
    >>> path is None or path.is_absolute() or "FUNC_CACHE_DIR" in os.environ
    True
    """
    chosen = os.environ.get("FUNC_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        return _platform_folder() / "func"
    except RuntimeError:  # a user without a home
        return None


def _platform_folder() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"


def _place(root: Path, key: str) -> Path:
    return root / f"v{FORMAT}" / key[0] / f"{key}.o"


def load(key: str) -> ObjectCode | None:
    """The entry of the key, or None where there is none to be trusted."""
    root = folder()
    if root is None:
        return None
    path = _place(root, key)
    try:
        return _unpacked(_read(path), key)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, struct.error) as error:
        _log.debug("object code in %s is not used: %s", path, error)
        return None


def _read(path: Path) -> bytes:
    """The file's bytes. Raises: PermissionError for a file that somebody else could have written."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a plain file")
        if sys.platform != "win32":
            if status.st_uid != os.geteuid():
                raise PermissionError(f"it belongs to user {status.st_uid}")
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError("others may write to it")
        content = file.read()
    if time.time() - status.st_mtime > _HOUR:  # the time of the last use, to the hour
        os.utime(path)
    return content


def _packed(key: str, code: ObjectCode) -> bytes:
    names = "\n".join(code.needed).encode()
    body = names + code.image
    return _HEADER.pack(_MAGIC, FORMAT, bytes.fromhex(key), hashlib.sha256(body).digest(), len(names)) + body


def _unpacked(content: bytes, key: str) -> ObjectCode:
    magic, version, owner, checksum, length = _HEADER.unpack_from(content)
    body = content[_HEADER.size :]
    if (magic, version) != (_MAGIC, FORMAT):
        raise ValueError("the file is of another kind")
    if owner != bytes.fromhex(key):
        raise ValueError("the file is another entry's")
    if checksum != hashlib.sha256(body).digest():
        raise ValueError("the file is damaged")
    return ObjectCode(body[length:], tuple(body[:length].decode().splitlines()))


def store(key: str, code: ObjectCode) -> None:
    """Keep an entry, if there is a folder to keep it in."""
    root = folder()
    if root is None:
        return
    path = _place(root, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, _packed(key, code))
        # Every 16th entry, told by its key, pays for looking through one shard.
        if key[1] == "0":
            _trim(path.parent, LIMIT // _SHARDS)
    except OSError as error:
        _log.debug("object code is not kept in %s: %s", path, error)


def _write(path: Path, content: bytes) -> None:
    """Readers and other writers see the old file or the whole new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _trim(shard: Path, limit: int) -> None:
    """Remove what was not used for the longest time, down to three quarters of the limit, and writers' remains."""
    found: list[tuple[float, int, str]] = []
    for entry in os.scandir(shard):
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # another process was faster
            continue
        if entry.name.endswith(".part"):
            if time.time() - status.st_mtime > _HOUR:
                _remove(entry.path)
        else:
            found.append((status.st_mtime, status.st_size, entry.path))
    held = sum(size for _, size, _ in found)
    if held <= limit:
        return
    for _, size, path in sorted(found):
        _remove(path)
        held -= size
        if held <= limit * 3 // 4:
            return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        _log.debug("%s cannot be removed from the cache of object code: %s", path, error)
