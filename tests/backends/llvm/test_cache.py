"""The cache of object code on disk."""

import ctypes
import errno
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from func.backends.llvm import cache, machine

CODE = cache.ObjectCode(b"\x7fELF and so on" * 50, ("exp", "func_dgemm"))
KEY = cache.digest("a program")

posix = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are POSIX's")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def only_file(folder: Path) -> Path:
    (path,) = [path for path in folder.rglob("*") if path.is_file()]
    return path


def test_round_trip(own_folder):
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE
    assert cache.load(cache.digest("another program")) is None
    assert only_file(own_folder).suffix == ".o"


def test_entry_without_names():
    cache.store(KEY, cache.ObjectCode(b"\n\0", ()))
    assert cache.load(KEY) == cache.ObjectCode(b"\n\0", ())


def test_key_depends_on_every_part():
    parts = ["text", "host", "options"]
    keys = {cache.digest(*parts), cache.digest("text\0host", "options"), cache.digest("", *parts), cache.digest("text")}
    keys |= {cache.digest(*parts[:i], "other", *parts[i + 1 :]) for i in range(3)}
    assert len(keys) == 7


def test_source_fingerprint_follows_edits(monkeypatch, tmp_path):
    (tmp_path / "backends" / "llvm").mkdir(parents=True)
    module = tmp_path / "backends" / "llvm" / "printer.py"
    module.write_text("a = 1\n")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "backends" / "llvm" / "cache.py"))
    before = cache.source_fingerprint.__wrapped__()
    assert cache.source_fingerprint.__wrapped__() == before
    module.write_text("a = 10\n")
    assert cache.source_fingerprint.__wrapped__() != before


@pytest.mark.parametrize("field", ["triple", "cpu", "features", "llvm_version"])
def test_code_for_another_machine_is_not_used(monkeypatch, field):
    """A folder of caches may be shared by machines, and outlives updates of LLVM."""
    source, key = "define i32 @seven() { ret i32 7 }", f"seven for another {field}"
    code = machine.compile_ir(source, key)
    assert machine.existing_code(source, key) is code
    other = machine.host()._replace(**{field: "another"})
    monkeypatch.setattr(machine, "host", lambda: other)
    assert machine.existing_code(source, key) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: b"#!/bin/sh\n" + content,
        lambda content: content.replace(b"func object code", b"func object c0de"),
    ],
)
def test_damaged_file_is_not_used(own_folder, damage, caplog):
    cache.store(KEY, CODE)
    path = only_file(own_folder)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.DEBUG, "func"):
        assert cache.load(KEY) is None
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert "is not used" in record.getMessage()
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_entry_under_another_name_is_not_used(own_folder):
    cache.store(KEY, CODE)
    path = only_file(own_folder)
    wrong_key = KEY[0] + "0" * 63
    path.rename(path.with_name(f"{wrong_key}.o"))
    assert cache.load(wrong_key) is None


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_file_others_may_write_is_not_used(own_folder, mode):
    cache.store(KEY, CODE)
    only_file(own_folder).chmod(mode)
    assert cache.load(KEY) is None


@posix
def test_file_of_another_user_is_not_used(monkeypatch):
    cache.store(KEY, CODE)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.load(KEY) is None


@posix
def test_links_and_folders_are_not_used(own_folder, tmp_path):
    cache.store(KEY, CODE)
    path = only_file(own_folder)
    target = tmp_path / "elsewhere.o"
    path.rename(target)
    path.symlink_to(target)
    assert cache.load(KEY) is None
    path.unlink()
    path.mkdir()
    assert cache.load(KEY) is None


@posix
def test_only_the_user_reads_and_writes(own_folder):
    cache.store(KEY, CODE)
    path = only_file(own_folder)
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_no_folder(monkeypatch):
    monkeypatch.setenv("FUNC_CACHE_DIR", "")
    assert cache.folder() is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None


def test_folder_that_cannot_be_written(monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path / "file"))
    with caplog.at_level(logging.DEBUG, "func"):
        cache.store(KEY, CODE)
        assert cache.load(KEY) is None
    assert "no cache of object code" in caplog.records[0].getMessage()


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/cache"}, "/x/cache/func"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "~/.cache/func"),
        ("linux", {}, "~/.cache/func"),
        ("darwin", {}, "~/Library/Caches/func"),
        ("win32", {"LOCALAPPDATA": "/x/local"}, "/x/local/func"),
        ("win32", {}, "~/AppData/Local/func"),
    ],
)
def test_folder_of_the_platform(monkeypatch, platform, environment, expected):
    for name in ("FUNC_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.folder() == Path(expected).expanduser()


def test_oldest_entries_are_removed(own_folder, monkeypatch):
    """Entries that were used recently stay, in whatever order they were written."""
    keys = [f"{index:064x}" for index in range(20)]  # in one shard; each of these keys causes a search
    monkeypatch.setattr(cache, "LIMIT", 16 * 12 * len(cache._packed(KEY, CODE)))
    for age, key in enumerate(keys[:12]):
        cache.store(key, CODE)
        past = time.time() - (100 - age) * 3600
        os.utime(cache._path(own_folder, key), (past, past))
    assert cache.load(keys[0]) == CODE
    cache.store(keys[12], CODE)
    present = [key for key in keys if cache._path(own_folder, key).exists()]
    assert present == [keys[0], *keys[5:13]]


def test_an_entry_whose_time_cannot_be_set_is_used(own_folder, monkeypatch):
    cache.store(KEY, CODE)
    os.utime(only_file(own_folder), (1, 1))

    def refuse(*args: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.load(KEY) == CODE


def test_remains_of_writers_are_removed(own_folder):
    shard = cache._path(own_folder, "0" * 64).parent
    cache.store("0" * 64, CODE)
    old, new = [shard / f"{'0' * 64}.o.{letter * 16}.part" for letter in "ab"]
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    cache.store("0" * 64, CODE)
    assert not old.exists()
    assert new.exists()


def test_failed_write_leaves_nothing(own_folder, monkeypatch):
    def full(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", full)
    cache.store(KEY, CODE)
    assert not [path for path in own_folder.rglob("*") if path.is_file()]


def test_writers_and_readers_at_once():
    """A reader gets nothing or a complete entry."""
    wrong = []

    def write(index):
        for _ in range(50):
            cache.store(KEY, cache.ObjectCode(bytes([index]) * 10_000, ()))

    def read():
        for _ in range(200):
            code = cache.load(KEY)
            if code is not None and len(set(code.image)) != 1:
                wrong.append(code)

    threads = [threading.Thread(target=write, args=(index,)) for index in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.load(KEY) is not None


SOURCE = "declare double @cos(double) define double @f() { %x = call double @cos(double 0.0) ret double %x }"


def test_cached_code_runs_without_generating(monkeypatch):
    pytest.importorskip("llvmlite")
    from func.backends.llvm import compiler

    calls = []
    emit = compiler.emit_object
    monkeypatch.setattr(compiler, "emit_object", lambda *args, **options: calls.append(1) or emit(*args, **options))
    for _ in range(3):
        code = machine.compile_ir(SOURCE)
        assert ctypes.CFUNCTYPE(ctypes.c_double)(code.address("f"))() == 1
        assert "cos" in code.assembly()
        del code
        gc.collect()
    assert len(calls) == 1


def test_damaged_object_is_compiled_again(own_folder):
    pytest.importorskip("llvmlite")
    from func.backends.llvm import machine

    machine.compile_ir(SOURCE)
    gc.collect()
    path = only_file(own_folder)
    path.write_bytes(path.read_bytes()[:-100])
    code = machine.compile_ir(SOURCE)
    assert ctypes.CFUNCTYPE(ctypes.c_double)(code.address("f"))() == 1
    assert len(path.read_bytes()) > 100


def test_processes_share_entries(own_folder):
    pytest.importorskip("llvmlite")
    program = f"""
import ctypes
import sys
from func.backends.llvm import cache, loader, machine

def make():
    print("made")
    return {SOURCE!r}

code = machine.compile_ir(make, key="shared")
print(ctypes.CFUNCTYPE(ctypes.c_double)(code.address("f"))())
generators = {{"llvmlite", "func.backends.llvm.llvm_library"}}
print(bool(generators & set(sys.modules)) and loader.is_supported())
"""
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert outputs == [["made", "1.0", "True"], ["1.0", "False"]]
    assert len([path for path in own_folder.rglob("*.o")]) == 2  # the host, and the code
