"""A cache of object code on disk, with a hash of everything that the code depends on as its key.

Each entry is a file in a folder of the user. A file is written completely or not at all, has its key and a checksum,
and is read only if it belongs to the user who runs the process, since its code will be executed. If the folder or a
file is unusable for any reason, the code is compiled again, and the logger "func" says why at level DEBUG.
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
"""Most bytes in the folder; beyond it the least recently used entries are removed."""

FORMAT = 1
_MAGIC = b"func object code"
_HEADER = struct.Struct("<16sI32s32sI")  # magic, format, key, checksum, length of the names
_SHARDS = 16
_HOUR = 3600.0

_log = logging.getLogger("func")


class ObjectCode(NamedTuple):
    """The bytes of an object file, and the names that the process must define."""

    image: bytes
    needed: tuple[str, ...]


def digest(*parts: str) -> str:
    """The key of an entry: a hash of everything that the code depends on.

    >>> digest("define ...", "x86_64", "22") == digest("define ...", "x86_64", "23")
    False
    """
    lengths = ",".join(str(len(part)) for part in parts)
    return hashlib.sha256("\0".join((str(FORMAT), lengths, *parts)).encode()).hexdigest()


@functools.cache
def source_fingerprint() -> str:
    """The version of func with every edit: names, sizes and times of the files that generate code."""
    sources = Path(__file__).parent
    return digest(*sorted([_file_stamp(sources.parents[1] / "__init__.py"), *_folder_stamps(sources)]))


def _folder_stamps(folder: str | Path) -> Iterator[str]:
    """The stamps of all source files below a folder; none if the sources are not in files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield _file_stamp(entry)
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _folder_stamps(entry.path)


def _file_stamp(file: os.DirEntry[str] | Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return ""
    return f"{os.fspath(file)} {status.st_size} {status.st_mtime_ns}"


def folder() -> Path | None:
    """The folder: `FUNC_CACHE_DIR`, else the platform's folder for caches; None with `FUNC_CACHE_DIR=""`.

    >>> path = folder()
    >>> path is None or path.is_absolute() or "FUNC_CACHE_DIR" in os.environ
    True
    """
    setting = os.environ.get("FUNC_CACHE_DIR")
    if setting is not None:
        return Path(setting).expanduser() if setting else None
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
    setting = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return setting if setting.is_absolute() else Path.home() / ".cache"


def _path(root: Path, key: str) -> Path:
    return root / f"v{FORMAT}" / key[0] / f"{key}.o"


def load(key: str) -> ObjectCode | None:
    """The entry of the key, or None if there is none that can be trusted."""
    root = folder()
    if root is None:
        return None
    path = _path(root, key)
    try:
        return _unpacked(_read(path), key)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, struct.error) as error:
        _log.debug("object code in %s is not used: %s", path, error)
        return None


def _read(path: Path) -> bytes:
    """The bytes of a file. Raises: PermissionError for a file that another user could have written."""
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
        raise ValueError("the file has another format")
    if owner != bytes.fromhex(key):
        raise ValueError("the file belongs to another entry")
    if checksum != hashlib.sha256(body).digest():
        raise ValueError("the file is damaged")
    return ObjectCode(body[length:], tuple(body[:length].decode().splitlines()))


def store(key: str, code: ObjectCode) -> None:
    """Write an entry, if there is a folder for it."""
    root = folder()
    if root is None:
        return
    path = _path(root, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, _packed(key, code))
        # One of 16 keys causes a search through its shard.
        if key[1] == "0":
            _trim(path.parent, LIMIT // _SHARDS)
    except OSError as error:
        _log.debug("object code is not kept in %s: %s", path, error)


def _write(path: Path, content: bytes) -> None:
    """Write a file so that readers and other writers see the old one or the complete new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _trim(shard: Path, limit: int) -> None:
    """Remove the least recently used entries, down to three quarters of the limit, and old files of failed writers."""
    entries: list[tuple[float, int, str]] = []
    for file in os.scandir(shard):
        try:
            status = file.stat(follow_symlinks=False)
        except FileNotFoundError:  # another process has removed it
            continue
        if file.name.endswith(".part"):
            if time.time() - status.st_mtime > _HOUR:
                _remove(file.path)
        else:
            entries.append((status.st_mtime, status.st_size, file.path))
    total = sum([size for _, size, _ in entries])
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        _remove(path)
        total -= size
        if total <= limit * 3 // 4:
            return


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        _log.debug("%s cannot be removed from the cache of object code: %s", path, error)
