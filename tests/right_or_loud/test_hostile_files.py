"""Files of others: program files, the names under which files are saved, and the folders of the object cache."""

from __future__ import annotations

import functools
import json
import logging
import os
import stat
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.backends.llvm import cache
from func.interpreters.primitives.linalg.sparse import sparse_product
from func.interpreters.program.program import Program

ProgramFileError = func.errors.ProgramFileError
posix = pytest.mark.skipif(sys.platform == "win32", reason="links, owners and modes are POSIX's")
X = np.arange(1.0, 4.0)
EXECUTED: list[str] = []
CODE = f"0 if __import__('sys').modules[{__name__!r}].EXECUTED.append('!') else 0"
Change = Callable[[Any], None]


def program(f: Callable[..., Any], *args: Any) -> Program:
    return func.make_program(f)(*args)


def rewritten(path: Path, made: Program, change: Change) -> Path:
    """A saved program whose document has been changed."""
    func.save(made, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["program.json"])
    change(document)
    members["program.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def params(key: str, value: Any) -> Change:
    """A change of one parameter, in the last equation that has it."""

    def change(document: Any) -> None:
        owners = [equation for equation in document["programs"][0]["equations"] if key in equation["params"]]
        owners[-1]["params"][key] = value

    return change


def scan(x: Any) -> Any:
    return func.scan(lambda c, a: (c * a, c), x[0], x)[1]


CODED: dict[str, tuple[Callable[..., Any], str]] = {
    "fft": (np.fft.fft, "axis"),
    "rfft": (np.fft.rfft, "norm"),
    "cumsum": (np.cumsum, "axis"),
    "cumprod": (np.cumprod, "axis"),
    "cummax": (np.maximum.accumulate, "axis"),
    "argsort": (np.argsort, "axis"),
    "sort": (np.sort, "axis"),
    "lexsort": (lambda x: np.lexsort((x, x)), "axis"),
    "sum": (lambda x: np.sum(x, 0), "axes"),
    "reshape": (lambda x: x.reshape(3, 1), "shape"),
    "convert": (lambda x: x.astype(np.float32), "dtype"),
    "exprel": (lambda x: func.special.exprel(x), "order"),
    "ellipk": (lambda x: func.special.ellipk(x / 9), "order"),
    "correlate": (lambda x: np.correlate(x, x), "mode"),
    "getitem": (lambda x: x[1:], "index"),
}


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize(
    "value", [CODE, {"tuple": [CODE]}, {"tuple": [{"tuple": [CODE, CODE, CODE]}]}, {"list": [CODE]}]
)
def test_code_in_parameters_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    function, key = CODED[name]
    path = rewritten(tmp_path / "m.func", program(function, X), params(key, value))
    with pytest.raises(ProgramFileError, match=f"its parameter {key} is not"):
        func.load(path)
    assert not EXECUTED


def test_code_in_the_loop_of_a_scan_is_refused(tmp_path: Path) -> None:
    def change(document: Any) -> None:
        for equation in document["programs"][-1]["equations"]:
            if equation["primitive"] == "scan_call":
                equation["params"]["loop"]["scan"][3] = CODE

    path = rewritten(tmp_path / "m.func", program(scan, X), change)
    with pytest.raises(ProgramFileError, match="its parameter loop is not the sizes of a scan"):
        func.load(path)
    assert not EXECUTED


def test_labels_are_strings_that_nothing_runs(tmp_path: Path) -> None:
    made = program(lambda x: func.checkpoint_name(x * 2, "hidden") + 1, X)
    loaded = func.load(rewritten(tmp_path / "m.func", made, params("label", CODE + "{0.__class__}")))
    for compiler in ("llvm", "numpy"):
        np.testing.assert_array_equal(func.jit(lambda x: loaded(x)[0], compiler=compiler)(X), X * 2 + 1)
    func.to_source(lambda x: loaded(x)[0])(X)
    assert not EXECUTED


def equation(primitive: str, operands: list[Any], params: dict[str, Any], shape: list[int]) -> Change:
    """A program of one equation."""

    def change(document: Any) -> None:
        (inner,) = document["programs"]
        number = len(inner["inputs"]) + len(inner["constants"])
        out = [[shape, {"dtype": "<f8"}, False]]
        inner["equations"] = [
            {"primitive": primitive, "inputs": operands, "params": params, "outputs": out, "line": None}
        ]
        inner["outputs"] = [number]

    return change


def numbers(*entries: Any) -> Any:
    return {"tuple": [numbers(*entry) if isinstance(entry, tuple) else entry for entry in entries]}


BEYOND: dict[str, Change] = {
    "reshape": equation("reshape", [0], {"shape": numbers(10**6)}, [10**6]),
    "broadcast": equation("broadcast", [0], {"shape": numbers(10**6)}, [10**6]),
    "getitem": equation("getitem", [0], {"index": numbers((0, 10**6, 1))}, [10**6]),
    "getitem backwards": equation("getitem", [0], {"index": numbers((10**6, 10**6 - 5, -1))}, [5]),
    "getitem without an axis": equation("getitem", [0], {"index": numbers()}, []),
    "embed": equation("embed", [0], {"index": numbers((9, 12, 1)), "shape": numbers(4)}, [4]),
    "embed of another length": equation("embed", [0], {"index": numbers((0, 9, 1)), "shape": numbers(9)}, [9]),
    "update": equation("update", [0, 0], {"index": numbers((7, 10, 1))}, [3]),
    "take": equation("take", [0], {"placement": numbers(10**6, (5,), (1,))}, [5]),
    "take backwards": equation("take", [0], {"placement": numbers(0, (5,), (-(10**6),))}, [5]),
    "place": equation(
        "place",
        [0],
        {"shape": numbers(3), "dtype": {"dtype": "<f8"}, "placements": numbers((10**6, (3,), (1,)))},
        [3],
    ),
    "segments": equation("segment_sum", [0], {"starts": numbers(0, 10**6), "axis": 0}, [2]),
    "windows": equation("windows", [0], {"sizes": numbers(10**6), "axes": numbers(0)}, [0, 10**6]),
    "contraction": equation("contract", [0, 1], {"spec": {"spec": [numbers(0), numbers(0), numbers()]}}, []),
    "labels that repeat": equation(
        "contract", [0, 0], {"spec": {"spec": [numbers(0, 0), numbers(0), numbers(0)]}}, [3]
    ),
    "an index that is no integer": equation("gather", [0, 0], {"axis": 0}, [3]),
    "solve": equation("solve", [0, 0], {}, [3]),
    "reversed axes": equation("permute", [0], {"order": numbers(-1)}, [3]),
    "large": equation("broadcast", [0], {"shape": numbers(2**40, 2**40, 3)}, [2**40, 2**40, 3]),
    "larger": equation("broadcast", [0], {"shape": numbers(10**30, 3)}, [10**30, 3]),
    "many axes": equation("broadcast", [0], {"shape": numbers(*[1] * 70, 3)}, [*[1] * 70, 3]),
    "factors of nobody": equation("factored_solve", [0, 0, 0, 0], {"adjoint": False}, [3]),
    "a function": equation("callback", [0], {"function": {"primitive": "sin"}}, []),
    "a primitive for a program": equation("program_call", [0], {"compiled": {"primitive": "sin"}}, [3]),
    "another number of operands": equation("sin", [0, 0], {}, [3]),
    "no parameters": equation("cumsum", [0], {}, [3]),
    "a parameter more": equation("sin", [0], {"out": 0}, [3]),
}


@pytest.mark.parametrize("name", BEYOND)
def test_equations_that_leave_their_arrays_are_refused(name: str, tmp_path: Path) -> None:
    made = program(lambda x, y: x * 1.0, X, np.ones(5))
    with pytest.raises(ProgramFileError, match=r"does not take|is not valid|no array|not a tuple|are not what"):
        func.load(rewritten(tmp_path / "m.func", made, BEYOND[name]))


@pytest.mark.parametrize("pivots", [[1, 2, 3], [10**6, 0, 0], [-1, 0, 0], [0, 0, -(2**31)]])
@pytest.mark.parametrize("compiler", ["llvm", "numpy", None])
def test_pivots_that_are_no_rows_are_refused(pivots: list[int], compiler: str | None) -> None:
    factors, _ = func.linalg.lu_factor(np.eye(3) + 0.1)

    def solve(pivots: Any) -> Any:
        return func.linalg.lu_solve((factors, pivots), np.ones(3))

    call = solve if compiler is None else func.jit(solve, compiler=compiler)
    with pytest.raises(IndexError, match="is not a row of a matrix with 3 rows"):
        call(np.array(pivots, np.int32))


def set_aval(**values: Any) -> Change:
    def change(document: Any) -> None:
        shape, dtype, weak = document["programs"][0]["inputs"][0]
        aval = {"shape": shape, "dtype": dtype, "weak": weak} | values
        document["programs"][0]["inputs"][0] = list(aval.values())

    return change


def set_field(key: str, value: Any) -> Change:
    def change(document: Any) -> None:
        document[key] = value

    return change


def set_line(value: Any) -> Change:
    def change(document: Any) -> None:
        document["programs"][0]["equations"][0]["line"] = value

    return change


DOCUMENTS: dict[str, Change] = {
    "a weak array": set_aval(weak=True),
    "a shape that cannot exist": set_aval(shape=[0, 2**62, 2**62]),
    "a string for a bool": set_aval(weak="yes"),
    "a dtype of objects": set_aval(dtype={"dtype": "|O"}),
    "a dtype of text": set_aval(dtype="f8"),
    "arrays without end": set_field("arrays", 10**18),
    "arrays before the first": set_field("arrays", -1),
    "programs by name": set_field("programs", {"a": 1}),
    "no programs": set_field("programs", []),
    "a line without numbers": set_line([1, 2, 3]),
    "a shorter line": set_line(["a"]),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_other_forms_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramFileError):
        func.load(rewritten(tmp_path / "m.func", program(lambda x: np.sin(x), X), DOCUMENTS[name]))


ESCAPE = "\x00\x1b[2J"


@pytest.mark.parametrize(
    "change",
    [
        set_aval(dtype=ESCAPE),
        set_aval(shape=[ESCAPE]),
        set_aval(weak=ESCAPE),
        set_field("version", ESCAPE),
        set_field("version", [ESCAPE * 1000]),
        set_field("version", 10**4000),
        set_field("format", ESCAPE),
        lambda document: document["programs"][0]["equations"][0].update(primitive=ESCAPE),
        lambda document: document["programs"][0]["equations"][0].update(params={ESCAPE: ESCAPE}),
        lambda document: document["programs"][0]["equations"][0].update(inputs=[ESCAPE]),
    ],
)
def test_refusals_are_printable(change: Change, tmp_path: Path) -> None:
    with pytest.raises(ProgramFileError) as refusal:
        func.load(rewritten(tmp_path / "m.func", program(lambda x: np.cumsum(x), X), change))
    assert all([line.isprintable() for line in str(refusal.value).split("\n")])
    assert len(str(refusal.value)) < 2000


def test_lines_are_printable(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "m.func", program(np.sin, X), set_line(["\x1b[2J\n" + "a" * 9999, 1, "f\x07"]))
    (equation,) = func.load(path).equations
    text = str(equation.line)
    assert text.isprintable() and len(text) < 500 and text.startswith("<?[2J?aaa")


@pytest.mark.parametrize("depth", [10**3, 10**5])
@pytest.mark.parametrize("tag", ["tuple", "list", None])
def test_deep_documents_are_refused(depth: int, tag: str | None, tmp_path: Path) -> None:
    opened, closed = ("[" * depth, "]" * depth) if tag is None else (f'{{"{tag}":[' * depth, "]}" * depth)
    path = tmp_path / "m.func"
    func.save(program(np.cumsum, X), path)
    with zipfile.ZipFile(path) as archive:
        text = archive.read("program.json").decode().replace('"axis":0', f'"axis":{opened}{closed}')
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("program.json", text)
    with pytest.raises(ProgramFileError):
        func.load(path)


def test_shared_programs_are_checked_once_each(tmp_path: Path) -> None:
    """Each of 60 programs calls the one before it twice, so that the innermost is there 2⁶⁰ times."""
    inner = func.jit(lambda x: x * 2)
    func.save(program(lambda x: inner(inner(x)), X), tmp_path / "m.func")

    def change(document: Any) -> None:
        outer = document["programs"][-1]
        for number in range(1, 60):
            copy = json.loads(json.dumps(outer))
            for own in copy["equations"]:
                own["params"]["compiled"]["compiled"][0] = number
            document["programs"].append(copy)

    loaded = func.load(rewritten(tmp_path / "m.func", program(lambda x: inner(inner(x)), X), change))
    loaded.check()
    assert len(loaded.equations) == 2


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """Every member claims the bytes of one large array, of which a file of 1 MB would give a hundred."""
    path = tmp_path / "m.func"
    made = program(lambda x: x + np.arange(100_000.0), np.arange(100_000.0))
    func.save(made, path)
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    fields = list(struct.unpack_from("<4s4H2LH", data, end))
    directory = bytes(data[fields[6] : end])
    at = directory.rindex(b"PK\x01\x02")
    entry = directory[at:]
    copies = b"".join([entry.replace(b"arrays/0.npy", f"arrays/{i}.npy".encode()) for i in range(1, 10)])
    fields[3], fields[4] = fields[3] + 9, fields[4] + 9
    fields[5] += len(copies)
    path.write_bytes(bytes(data[:end]) + copies + struct.pack("<4s4H2LH", *fields))
    tracemalloc.start()
    with pytest.raises(ProgramFileError, match="the members overlap"):
        func.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("member", ["program.json", "arrays/0.npy"])
def test_compressed_members_are_refused(method: int, member: str, tmp_path: Path) -> None:
    path = tmp_path / "m.func"
    func.save(program(lambda x: x + np.zeros(100_000), np.zeros(100_000)), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data, method if name == member else zipfile.ZIP_STORED)
    with pytest.raises(ProgramFileError, match="a member is compressed"):
        func.load(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.func"
    func.save(program(np.sin, X), path)
    with zipfile.ZipFile(path) as archive:
        data = archive.read("program.json")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("program.json", data)
    with pytest.raises(ProgramFileError, match="two members have one name"):
        func.load(path)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }",
        "{'descr': '|S24', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,), }",
        "__import__('os').abort()",
        "{" * 5000,
    ],
)
def test_headers_of_arrays(header: str, tmp_path: Path) -> None:
    path = tmp_path / "m.func"
    func.save(program(lambda x: x + np.arange(3.0), X), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = header.encode() + b" " * (64 - (len(header) + 11) % 64) + b"\n"
    members["arrays/0.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + X.tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ProgramFileError):
        func.load(path)


# Saving


@posix
def test_saving_follows_no_planted_link(tmp_path: Path) -> None:
    """Neither one with the name of an unfinished file, nor one in the place of the file itself."""
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    target = tmp_path / "m.func"
    (tmp_path / f"m.func.{os.getpid()}.part").symlink_to(precious)
    target.symlink_to(precious)
    func.save(program(np.sin, X), target)
    assert precious.read_text() == "mine"
    assert not target.is_symlink() and func.load(target) == program(np.sin, X)


@posix
@pytest.mark.parametrize("kind", ["file", "link"])
def test_saving_writes_into_nothing_that_exists(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even into a file whose name somebody has guessed."""
    monkeypatch.setattr("secrets.token_hex", lambda count: "guessed")
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    planted = tmp_path / "m.func.guessed.part"
    if kind == "link":
        planted.symlink_to(precious)
    else:
        planted.write_text("mine")
    with pytest.raises(FileExistsError):
        func.save(program(np.sin, X), tmp_path / "m.func")
    assert planted.read_text() == precious.read_text() == "mine"
    assert not (tmp_path / "m.func").exists()


@posix
def test_saving_obeys_the_umask_and_leaves_nothing_else(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        func.save(program(np.sin, X), tmp_path / "m.func")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m.func").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["m.func"]


def test_threads_save_to_one_path(tmp_path: Path) -> None:
    made = [program(lambda x, n=n: x * n, X) for n in range(4)]
    failed: list[BaseException] = []

    def work(own: Program) -> None:
        try:
            for _ in range(15):
                func.save(own, tmp_path / "m.func")
                assert func.load(tmp_path / "m.func") in made
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert [path.name for path in tmp_path.iterdir()] == ["m.func"]


def test_saving_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    func.save(program(np.sin, X), "m.func")
    assert func.load("m.func") == program(np.sin, X)


# The cache of object code

KEY = cache.digest("a program")
ENTRY = cache.ObjectCode(b"code" * 50, ("exp",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FUNC_CACHE_DIR", str(tmp_path / "cache"))
    cache._warn_once.cache_clear()
    cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY
    yield tmp_path / "cache"
    cache._warn_once.cache_clear()


def folders(root: Path) -> list[Path]:
    """The cache's folder, the one of the format, the one of the entry."""
    return [root, root / f"v{cache.FORMAT}", cache._path(root, KEY).parent]


@posix
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folders_that_others_may_write_are_not_used(
    number: int, mode: int, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders(folder)[number].chmod(mode)
    with caplog.at_level(logging.WARNING, "func"):
        assert cache.load(KEY) is None
        cache.store(KEY, cache.ObjectCode(b"new", ()))
        cache.store(cache.digest("another program"), ENTRY)
    assert {record.getMessage() for record in caplog.records} == {
        f"no cache of compiled code: of the folder {name}, others may write to it; it needs the mode 0700"
        for name in [[folder, f"v{cache.FORMAT}", KEY[0]][number]]
    }
    folders(folder)[number].chmod(0o700)
    assert cache.load(KEY) == ENTRY


@posix
@pytest.mark.parametrize("number", [1, 2])
def test_links_to_folders_are_not_followed(number: int, folder: Path, tmp_path: Path) -> None:
    real = folders(folder)[number]
    moved = tmp_path / "photos"
    real.rename(moved)
    real.symlink_to(moved)
    assert cache.load(KEY) is None
    cache.store(KEY, cache.ObjectCode(b"new", ()))
    real.unlink()
    moved.rename(real)
    assert cache.load(KEY) == ENTRY


@posix
def test_the_folder_itself_may_be_a_link_of_the_user(folder: Path, tmp_path: Path) -> None:
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert cache.load(KEY) == ENTRY


@posix
def test_only_files_that_were_written_here_are_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "0" * 64
    cache.store(key, ENTRY)
    shard = cache._path(folder, key).parent
    foreign = [shard / name for name in ("photo.jpg", "old.part", "a.o", f"{'1' * 63}.o", f"{'1' * 64}.o.part")]
    for path in foreign:
        path.write_bytes(b"x" * 10_000)
        os.utime(path, (1, 1))
    link = shard / f"{'2' * 64}.o"
    link.symlink_to(shard / "photo.jpg")
    (shard / f"{'3' * 64}.o").mkdir()
    monkeypatch.setattr(cache, "LIMIT", 1)
    cache.store(key, ENTRY)
    assert all([path.exists() for path in foreign]) and link.is_symlink() and (shard / f"{'3' * 64}.o").is_dir()
    assert not cache._path(folder, key).exists()


@posix
def test_a_pipe_in_the_place_of_an_entry_blocks_nobody(folder: Path) -> None:
    path = cache._path(folder, KEY)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert cache.load(KEY) is None
    cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY


@posix
@pytest.mark.parametrize("number", range(3))
def test_a_file_in_the_place_of_a_folder(number: int, folder: Path, tmp_path: Path) -> None:
    own = folders(folder)[number]
    own.rename(tmp_path / "aside")
    own.write_text("in the way")
    assert cache.load(KEY) is None
    cache.store(KEY, ENTRY)
    assert own.read_text() == "in the way"


def test_a_relative_folder_stays_where_func_was_imported(tmp_path: Path) -> None:
    code = (
        "import os, func\nos.mkdir('inside')\nos.chdir('inside')\n"
        "from func.backends.llvm import cache\nprint(cache.folder())"
    )
    environment = os.environ | {"FUNC_CACHE_DIR": "own/cache", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tmp_path / "own" / "cache")


@pytest.mark.parametrize("where", ["rows", "cols"])
@pytest.mark.parametrize("place", [10**8, -(10**8), 2])
def test_entries_of_a_sparse_matrix_out_of_bounds(where, place):
    places = {"rows": np.array([0, 1]), "cols": np.array([0, 1])}
    places[where][1] = place
    operands = np.ones(2), places["rows"], places["cols"], np.ones((2, 1))
    product = functools.partial(sparse_product, length=2)
    for run in (product, func.jit(product), func.make_program(product)(*operands)):
        with pytest.raises(IndexError, match="out of bounds"):
            run(*operands)
