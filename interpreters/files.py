"""Program files: a zip archive of one JSON document and of the arrays, each as an .npy member.

Nothing is pickled, and loading runs no code of the file: rows are found by name, parameters are of a closed set.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from typing import Any

import numpy as np

from func.interpreters.encoding import MissingError, Reader, Writer
from func.interpreters.errors import FuncError, ProgramFileError
from func.interpreters.program import Program

FORMAT = "func program"
VERSION = 1
DOCUMENT = "program.json"


def write_program(program: Program, path: str) -> None:
    """Write a program file in one step: the file is there as a whole or not at all."""
    writer = Writer()
    writer.program(program)
    document = {"format": FORMAT, "version": VERSION, "arrays": len(writer.arrays), "programs": writer.programs}
    target = os.path.realpath(path)
    spare = f"{target}.{os.getpid()}.part"
    try:
        with zipfile.ZipFile(spare, "w") as archive:
            _write(archive, DOCUMENT, json.dumps(document, allow_nan=False, separators=(",", ":")).encode())
            for number, array in enumerate(writer.arrays):
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                _write(archive, f"arrays/{number}.npy", member.getvalue())
        os.replace(spare, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spare)


def _write(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """One member, with a fixed date: equal programs give equal files."""
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def read_program(path: str) -> Program:
    """The program of a file. Raises ProgramFileError where it holds none."""
    with open(path, "rb") as file:
        data = io.BytesIO(file.read())
    try:
        with zipfile.ZipFile(data) as archive:
            program = _from_archive(archive, path)
        program.check()
    except MissingError as error:
        raise ProgramFileError(f"func.load: {path!r} cannot be loaded here: {error}") from error
    except ProgramFileError:
        raise
    except zipfile.BadZipFile as error:
        raise ProgramFileError(
            f"func.load: {path!r} is no file written by func.save, or it is truncated or damaged ({error})"
        ) from error
    except (FuncError, ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise ProgramFileError(
            f"func.load: {path!r} is damaged: its program cannot be read ({type(error).__name__}: {error})"
        ) from error
    except (OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ProgramFileError(f"func.load: {path!r} is truncated or damaged ({error})") from error
    return program


def _from_archive(archive: zipfile.ZipFile, path: str) -> Program:
    names = archive.namelist()
    if DOCUMENT not in names:
        raise ProgramFileError(f"func.load: {path!r} is no file written by func.save: it has no {DOCUMENT}")
    document = json.loads(_read(archive, DOCUMENT))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ProgramFileError(f"func.load: {path!r} is no file written by func.save: it is not a {FORMAT}")
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise ProgramFileError(
            f"func.load: {path!r} has version {version} of the format, this func reads up to version {VERSION}; "
            "load it with a newer func"
        )
    if version != VERSION:
        raise ProgramFileError(f"func.load: {path!r} has version {version!r} of the format, which does not exist")
    reader = Reader([_array(_read(archive, f"arrays/{number}.npy")) for number in range(document["arrays"])])
    programs: list[Any] = document["programs"]
    for written in programs:
        reader.add(written)
    return reader.programs[-1]


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member. Members are never compressed, so that none is larger than the file."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"the member {name} is compressed")
    return archive.read(info)


def _array(data: bytes) -> np.ndarray[Any, Any]:
    """An array, read only, whose header agrees with the number of its bytes."""
    member = io.BytesIO(data)
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"version {version} of .npy members is not used here")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
    if dtype.kind not in "biufc" or fortran:
        raise ValueError(f"an array has the dtype {dtype} or is not in C order")
    array = np.frombuffer(data, dtype, offset=member.tell())
    return array.reshape(shape).copy() if dtype.isnative is False else array.reshape(shape)
