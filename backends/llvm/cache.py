"""A cache of object code on disk, with a hash of everything that the code depends on as its key.

Each entry is a file in a folder of the user. A file is written completely or not at all, with its key and a checksum.
The code will run, so func reads it only if no other user owns it or its folders, or may write to them. If a folder or a
file is unusable, func compiles the code again. The logger "func" reports the reason at level DEBUG. It removes only its
own files.
"""

import contextlib
import functools
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from func.backends import START_FOLDER, messages
from func.backends.hashing import new_hash

LIMIT = 512 * 2**20
"""Most bytes in the folder; beyond it the least recently used entries are removed."""

FORMAT = 2
_MAGIC = b"func object code"
_HEADER = struct.Struct("<16sI32s32sI")  # magic, format, key, checksum, length of the names
_SHARDS = 16
_OWN_NAME = re.compile(r"[0-9a-f]{64}\.o(\.[0-9a-f]{16}\.part)?")
"""The names of entries, and of those whose writer has not finished."""
_OPENS_FOLDERS = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_HOUR = 3600.0


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
    return str(new_hash("\0".join((str(FORMAT), lengths, *parts)).encode()).hexdigest())


@functools.cache
def source_fingerprint() -> str:
    """The version of func with every edit: names, sizes and times of the files that generate code."""
    backends = Path(__file__).parents[1]
    stamps = [stamp for name in ("ir", "llvm", "routines", "scalars") for stamp in _folder_stamps(backends / name)]
    return digest(*sorted([file_stamp(backends.parent / "__init__.py"), *stamps]))


@functools.cache
def compiler_fingerprint() -> str:
    """The version of func with every edit of the files that make code of a traced program: the engine, the backends."""
    root = Path(__file__).parents[2]
    stamps = [stamp for name in ("backends", "interpreters") for stamp in _folder_stamps(root / name)]
    return digest(*sorted([file_stamp(root / "__init__.py"), *stamps]))


def _folder_stamps(folder: str | Path) -> Iterator[str]:
    """The stamps of all source files below a folder; none if the sources are not in files."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield file_stamp(entry)
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _folder_stamps(entry.path)


def file_stamp(file: os.DirEntry[str] | Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return ""
    return f"{os.fspath(file)} {status.st_size} {status.st_mtime_ns}"


def folder() -> Path | None:
    """The folder: `FUNC_CACHE_DIR`, else the platform's folder for caches; None with `FUNC_CACHE_DIR=""`.

    A relative one starts in the working directory at func's import.

    >>> path = folder()
    >>> path is None or path.is_absolute()
    True
    """
    setting = os.environ.get("FUNC_CACHE_DIR")
    if setting is not None:
        return Path(START_FOLDER, Path(setting).expanduser()).absolute() if setting else None
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


class SharedFolderError(PermissionError):
    """Raised if another user could put files into a folder of the cache."""


@functools.cache
def _warn_once(message: str) -> None:
    messages.warning(message)


class _Shard:
    """The folder of the entries whose keys begin alike, open so that no one can replace it. On Windows, which opens no
    folders and has no file modes, it is a path.
    """

    def __init__(self, root: Path, key: str, make: bool) -> None:
        self.path = _path(root, key).parent
        self.descriptor: int | None = None
        if not _OPENS_FOLDERS:
            if make:
                self.path.mkdir(parents=True, exist_ok=True)
            return
        if make:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _opened_folder(root)
        try:
            for name in self.path.relative_to(root).parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=descriptor)
                opened = _opened_folder(name, descriptor)
                os.close(descriptor)
                descriptor = opened
        except BaseException:
            os.close(descriptor)
            raise
        self.descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else os.path.join(self.path, name)

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file; opening it neither follows a link nor waits."""
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._at(name), flags | getattr(os, "O_CLOEXEC", 0), 0o600, dir_fd=self.descriptor)

    def rename(self, name: str, new: str) -> None:
        """Rename a file over another one."""
        os.replace(self._at(name), self._at(new), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there and may be removed."""
        try:
            os.unlink(self._at(name), dir_fd=self.descriptor)
        except OSError as error:
            messages.debug("%s in %s cannot be removed: %s", name, self.path, error)

    def entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """The names and states of this user's plain files with the names of entries or unfinished ones."""
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as files:
            for file in files:
                if _OWN_NAME.fullmatch(file.name):
                    with contextlib.suppress(FileNotFoundError):  # another process has removed it
                        status = file.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and _is_own(status):
                            yield file.name, status


def _is_own(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _opened_folder(path: str | Path, within: int | None = None) -> int:
    """A descriptor of a folder. Raises: SharedFolderError if another user could write into it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if within is not None else 0)
    descriptor = os.open(path, flags, dir_fd=within)
    try:
        _check_private(os.fstat(descriptor))
    except PermissionError as error:
        os.close(descriptor)
        raise SharedFolderError(
            f"no cache of compiled code: of the folder {path}, {error}; it needs the mode 0700"
        ) from None
    return descriptor


def _check_private(status: os.stat_result) -> None:
    """Raise PermissionError for a file or folder that another user could have written."""
    if sys.platform == "win32":
        return
    if not _is_own(status):
        raise PermissionError(f"the owner is user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("others may write to it")


def _path(root: Path, key: str) -> Path:
    return root / f"v{FORMAT}" / key[0] / f"{key}.o"


def load(key: str) -> ObjectCode | None:
    """The entry of the key, or None without a trusted one."""
    root = folder()
    if root is None:
        return None
    path = _path(root, key)
    try:
        with _Shard(root, key, make=False) as shard:
            return _unpacked(_read(shard, path.name), key)
    except FileNotFoundError:
        return None
    except SharedFolderError as error:
        _warn_once(str(error))
        return None
    except (OSError, ValueError, struct.error) as error:
        messages.debug("object code in %s is not used: %s", path, error)
        return None


def _read(shard: _Shard, name: str) -> bytes:
    """The bytes of a file. Raises: PermissionError for a file that another user could have written."""
    descriptor = shard.open(name, os.O_RDONLY)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a plain file")
        _check_private(status)
        content = file.read()
        if time.time() - status.st_mtime > _HOUR:  # the time of the last use, to the hour
            with contextlib.suppress(OSError):  # a read-only disk
                os.utime(descriptor if os.utime in os.supports_fd else shard.path / name)
    return content


def _packed(key: str, code: ObjectCode) -> bytes:
    names = "\n".join(code.needed).encode()
    body = names + code.image
    return _HEADER.pack(_MAGIC, FORMAT, bytes.fromhex(key), new_hash(body).digest(), len(names)) + body


def _unpacked(content: bytes, key: str) -> ObjectCode:
    magic, version, owner, checksum, length = _HEADER.unpack_from(content)
    body = content[_HEADER.size :]
    if (magic, version) != (_MAGIC, FORMAT):
        raise ValueError("the file has another format")
    if owner != bytes.fromhex(key):
        raise ValueError("the file belongs to another entry")
    if checksum != new_hash(body).digest():
        raise ValueError("the file is damaged")
    return ObjectCode(body[length:], tuple(body[:length].decode().splitlines()))


def store(key: str, code: ObjectCode) -> None:
    """Write an entry, if there is a folder for it."""
    root = folder()
    if root is None:
        return
    try:
        with _Shard(root, key, make=True) as shard:
            _write(shard, f"{key}.o", _packed(key, code))
            # One of 16 keys causes a search through its shard.
            if key[1] == "0":
                _trim(shard, LIMIT // _SHARDS)
    except SharedFolderError as error:
        _warn_once(str(error))
    except OSError as error:
        messages.debug("no cache of object code in %s: %s", _path(root, key), error)


def _write(shard: _Shard, name: str, content: bytes) -> None:
    """Write a file so that readers and other writers see the old one or the complete new one."""
    temporary = f"{name}.{os.urandom(8).hex()}.part"
    descriptor = shard.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        shard.rename(temporary, name)
    except BaseException:
        shard.remove(temporary)
        raise


def _trim(shard: _Shard, limit: int) -> None:
    """Remove the least recently used entries, down to three quarters of the limit, and old files of failed writers.

    Files with other names, links and files of other users stay.
    """
    entries: list[tuple[float, int, str]] = []
    for name, status in shard.entries():
        if not name.endswith(".part"):
            entries.append((status.st_mtime, status.st_size, name))
        elif time.time() - status.st_mtime > _HOUR:
            shard.remove(name)
    total = sum([size for _, size, _ in entries])
    if total <= limit:
        return
    for _, size, name in sorted(entries):
        shard.remove(name)
        total -= size
        if total <= limit * 3 // 4:
            return
