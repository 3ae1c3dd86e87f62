"""Program files: a zip archive of one JSON document and of the arrays, each as an .npy member.

The file contains no pickle, and loading runs no code of the file. Names identify primitives, and parameters have a
closed set of types and the kinds that their primitives declare. Memory grows in proportion to the file. In the document
a JSON null, bool, int, finite float or string is the value itself. Any other value is an object of one key, its tag:
{"tuple": [...]}, {"dtype": "<f8"}, {"array": 3}. In the list of programs a program follows those nested in it.
"""

from __future__ import annotations

import importlib
import io
import math
import os
import reprlib
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func.backends import is_device_array
from func.interpreters.archives import check_sizes, excerpt, read_array, read_json, read_member, write_archive
from func.interpreters.calls.compiled_call import BEST, CompiledCall, agree, takes
from func.interpreters.control.scan_derivatives import ScanLoop
from func.interpreters.control.while_loops import WhileLoop
from func.interpreters.core import PRIMITIVES, PYTHON_SCALARS, Aval, Primitive, Tracer, primitive_named
from func.interpreters.core.errors import LeakedTracerError, ProgramFileError
from func.interpreters.core.parameters import could_exist, is_dtype, is_shape
from func.interpreters.host.source import Line
from func.interpreters.primitives.structural.contraction import Spec, spec
from func.interpreters.program.checking import check_program
from func.interpreters.program.program import Equation, Program, Var


def _spec(*labels: Any) -> Spec:
    """A contraction. Its labels are checked before it exists, since its creation compiles it."""
    for own in labels:
        if not is_shape(own) or len(set(own)) != len(own):
            raise ValueError(f"{reprlib.repr(own)} is not a tuple of labels")
    return spec(*labels)


def _aval(shape: Any, dtype: Any, weak: Any) -> Aval:
    aval = Aval(shape, dtype, _of(bool, weak))
    if not is_dtype(dtype) or not could_exist(aval):
        raise ValueError(f"no array has the shape {reprlib.repr(shape)} and the dtype {reprlib.repr(dtype)}")
    return aval


RECORDS: dict[str, tuple[type, Callable[[Any], Sequence[Any]], Callable[..., Any]]] = {
    "aval": (Aval, lambda aval: (aval.shape, aval.dtype, aval.weak), _aval),
    "spec": (Spec, lambda labels: (labels.x, labels.y, labels.out), _spec),
    "scan": (ScanLoop, tuple, ScanLoop),
    "while": (WhileLoop, tuple, WhileLoop),
}
"""Classes of parameters by their tag: the class, the fields of an object, and the constructor from fields."""

KNOWN_COMPILERS = (None, "numpy", *[f"{name}{option}" for name in (BEST, "llvm") for option in ("", "+fast")])
"""The names of compilers that a compiled call may have."""
EXTENSION_DTYPES = ("bfloat16",)
"""Dtypes of the package ml_dtypes, which NumPy does not know by itself."""


class MissingError(Exception):
    """A file is sound, but it needs something that is unknown or not installed."""


class Writer:
    """Collects the arrays and the programs of one file."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.programs: list[dict[str, Any]] = []
        self._known: dict[int, tuple[Any, int]] = {}
        self._at = ""

    def program(self, program: Program) -> int:
        """The number of a program in the list."""
        return self._once(program, self._add_program)

    def _once(self, value: Any, add: Callable[[Any], int]) -> int:
        """The number of a value. The value is stored, so no other gets its id."""
        if id(value) not in self._known:
            self._known[id(value)] = value, add(value)
        return self._known[id(value)][1]

    def _add_program(self, program: Program) -> int:
        if program.communicates:
            raise ProgramFileError(
                "func.save: the program exchanges messages with other processes, whose communicator a file cannot "
                "hold; keep the function, and call func.spmd on it in the processes that run it"
            )
        numbers: dict[Var, int] = {}

        def define(variables: Sequence[Var]) -> list[Any]:
            for var in variables:
                numbers[var] = len(numbers)
            return [[list(var.shape), self.value(var.dtype), var.weak] for var in variables]

        def atom(x: Any) -> Any:
            return numbers[x] if type(x) is Var else {"value": self.value(x)}

        self._at = "the program"
        document: dict[str, Any] = {"inputs": define(program.inputs)}
        self._at = "a constant of the program"
        document["constants"] = define(list(program.constants))
        document["values"] = [self.value(value) for value in program.constants.values()]
        document["equations"] = []
        for equation in program.equations:
            at = f" at {equation.line}" if equation.line is not None else ""
            params = {}
            for key, value in equation.params.items():
                self._at = f"the parameter {key!r} of the primitive {equation.primitive.name}{at}"
                params[key] = self.value(value)
            entry = {
                "primitive": equation.primitive.name,
                "inputs": [atom(x) for x in equation.inputs],
                "params": params,
                "outputs": define(equation.outputs),
                "line": _line(equation.line),
            }
            document["equations"].append(entry)
        document["outputs"] = [atom(x) for x in program.outputs]
        if program.nan_safe is not None:
            document["nan_safe"] = self.program(program.nan_safe)
        self.programs.append(document)
        return len(self.programs) - 1

    def value(self, value: Any) -> Any:
        """A parameter, constant or scalar as a JSON value."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.value(value.real), self.value(value.imag)]}
        if kind in (tuple, list):
            return {kind.__name__: [self.value(entry) for entry in value]}
        if kind is dict:
            return {"dict": [[self.value(key), self.value(entry)] for key, entry in value.items()]}
        if kind is slice:
            return {"slice": [self.value(entry) for entry in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"ellipsis": None}
        if isinstance(value, np.dtype):
            return {"dtype": self._dtype(value)}
        if kind is np.ndarray or isinstance(value, np.generic) or is_device_array(value):
            return self._array(value)
        for tag, (record, fields, _) in RECORDS.items():
            if kind is record:
                return {tag: [self.value(entry) for entry in fields(value)]}
        if isinstance(value, Primitive) and PRIMITIVES.get(value.name) is value:
            return {"primitive": value.name}
        if isinstance(value, Program):
            return {"program": self.program(value)}
        if kind is CompiledCall:
            return {"compiled": self._once(value, self._add_compiled_call)}
        return self._raise(value)

    def _add_compiled_call(self, compiled: CompiledCall) -> Any:
        at = self._at
        try:
            nan_safe = compiled.nan_safe_variant()
        except LeakedTracerError:  # it would close over values of a finished trace
            nan_safe = None
        number = self.program(compiled.program)
        nan_safe_number = None if nan_safe is None else self.program(nan_safe.program)
        self._at = at
        return [number, nan_safe_number, compiled.compiler]

    def _dtype(self, dtype: np.dtype[Any]) -> str:
        if dtype.name in EXTENSION_DTYPES:
            return dtype.name
        if dtype.kind not in "biufc":
            raise ProgramFileError(f"func.save: {self._at} has the dtype {dtype}, which a file cannot hold")
        return dtype.str

    def _array(self, value: Any) -> Any:
        host = np.asarray(value.get() if hasattr(value, "get") else value)
        name = self._dtype(host.dtype)
        number = self._once(value, lambda _: self._add_array(host))
        return {"scalar" if isinstance(value, np.generic) else "array": [number, name]}

    def _add_array(self, host: np.ndarray[Any, Any]) -> int:
        bits = host.view(np.uint16) if host.dtype.name in EXTENSION_DTYPES else host
        self.arrays.append(np.array(bits, order="C"))
        return len(self.arrays) - 1

    def _raise(self, value: Any) -> Any:
        if type(value) is Tracer:
            raise ProgramFileError(
                f"func.save: {self._at} is a traced value, not an array; make the program outside the transform"
            )
        word = getattr(value, "__qualname__", type(value).__name__)
        advice = "func.jit(f).trace(*args) gives a program with such calls replaced by what they compute"
        reason = "a Python function" if callable(value) else f"an object of the class {type(value).__name__}"
        raise ProgramFileError(f"func.save: {self._at} is {reason}, {word}, which a file cannot hold; {advice}")


def _line(line: Line | None) -> Any:
    """A source line without the folders of its file."""
    if line is None:
        return None
    return [os.path.basename(line.file.replace("\\", "/")).strip("<>"), line.number, line.function]


class Reader:
    """Programs from a list of JSON values and a list of arrays."""

    def __init__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
        self.arrays = arrays
        self.programs: list[Program] = []
        self._checked: dict[int, Program] = {}
        self._compiled: dict[tuple[int, int | None, str | None], CompiledCall] = {}

    def add(self, written: Any) -> Program:
        """Read one more program, which may contain earlier ones."""
        variables: list[Var] = []

        def define(avals: Any) -> list[Var]:
            new = [Var(_aval(_shape(shape), self.value(dtype), weak)) for shape, dtype, weak in avals]
            variables.extend(new)
            return new

        def atom(x: Any) -> Any:
            if type(x) is int:
                return variables[_index(x)]
            scalar = self.value(x["value"])
            if type(scalar) not in PYTHON_SCALARS:
                raise TypeError(f"{reprlib.repr(scalar)} is not a number")
            return scalar

        inputs = define(written["inputs"])
        constants = dict(zip(define(written["constants"]), map(self._constant, written["values"]), strict=True))
        equations = []
        for entry in written["equations"]:
            operands = tuple([atom(x) for x in entry["inputs"]])
            params = {_of(str, key): self.value(value) for key, value in entry["params"].items()}
            line = entry["line"]
            if line is not None:
                line = Line(f"<{_printable(line[0])}>", _of(int, line[1]), _printable(line[2]))
            equations.append(
                Equation(find_primitive(entry["primitive"]), operands, params, tuple(define(entry["outputs"])), line)
            )
        nan_safe = self.programs[_index(written["nan_safe"])] if "nan_safe" in written else None
        program = Program(inputs, equations, [atom(x) for x in written["outputs"]], constants, nan_safe)
        if nan_safe is not None:
            _check_variant(CompiledCall(program), CompiledCall(nan_safe))
        check_program(program, self._checked)
        _check_factors(program)
        self.programs.append(program)
        return program

    def value(self, written: Any) -> Any:
        """The parameter, constant or scalar that a JSON value represents."""
        if written is None or type(written) in (bool, int, float, str):
            return written
        ((tag, inner),) = _of(dict, written).items()
        if tag in RECORDS:
            return RECORDS[tag][2](*[self.value(entry) for entry in inner])
        if tag not in _TAGS:
            raise ValueError(f"the tag {reprlib.repr(tag)} is not known")
        return _TAGS[tag](self, inner)

    def _constant(self, written: Any) -> Any:
        value = self.value(written)
        if not isinstance(value, (np.ndarray, np.generic)) and type(value) not in PYTHON_SCALARS:
            raise TypeError(f"{reprlib.repr(value)} is not a constant of a program")
        return value

    def _scalar(self, inner: Any) -> Any:
        array = self._array(inner)
        if array.shape != ():
            raise ValueError(f"a scalar has the shape {array.shape}")
        return array[()]

    def _array(self, inner: Any) -> Any:
        number, name = inner
        array = self.arrays[_index(number)]
        dtype = self._dtype(name)
        if name in EXTENSION_DTYPES:
            array = array.view(dtype)
        if array.dtype != dtype:
            raise ValueError(f"array {number} has the dtype {array.dtype}, not {dtype}")
        return array

    def _dtype(self, inner: Any) -> np.dtype[Any]:
        if inner in EXTENSION_DTYPES:
            try:
                extension: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), inner))
            except ImportError:
                raise MissingError(f"the program computes in {inner}; install the package ml_dtypes") from None
            return extension
        dtype: np.dtype[Any] = np.dtype(str(_of(str, inner)))
        if dtype.kind not in "biufc" or dtype.str != inner:
            raise ValueError(f"{reprlib.repr(inner)} is not a dtype of numbers")
        return dtype

    def _compiled_call_of(self, inner: Any) -> CompiledCall:
        number, nan_safe_number = _index(inner[0]), None if inner[1] is None else _index(inner[1])
        compiler = None if inner[2] is None else _of(str, inner[2])
        if compiler not in KNOWN_COMPILERS:
            raise ValueError(f"{reprlib.repr(compiler)} is not a compiler")
        key = number, nan_safe_number, compiler
        if key not in self._compiled:
            nan_safe = None if nan_safe_number is None else CompiledCall(self.programs[nan_safe_number], None, compiler)
            call = CompiledCall(self.programs[number], None if nan_safe is None else lambda: nan_safe, compiler)
            if nan_safe is not None:
                _check_variant(call, nan_safe)
            self._compiled[key] = call
        return self._compiled[key]


_TAGS: dict[str, Callable[[Reader, Any], Any]] = {
    "float": lambda reader, inner: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[inner],
    "complex": lambda reader, inner: complex(*[_of(float, reader.value(part)) for part in inner]),
    "tuple": lambda reader, inner: tuple([reader.value(entry) for entry in inner]),
    "list": lambda reader, inner: [reader.value(entry) for entry in inner],
    "dict": lambda reader, inner: {reader.value(key): reader.value(entry) for key, entry in inner},
    "slice": lambda reader, inner: slice(*[reader.value(entry) for entry in inner]),
    "ellipsis": lambda reader, inner: ...,
    "dtype": lambda reader, inner: reader._dtype(inner),
    "array": lambda reader, inner: reader._array(inner),
    "scalar": lambda reader, inner: reader._scalar(inner),
    "primitive": lambda reader, inner: find_primitive(inner),
    "program": lambda reader, inner: reader.programs[_index(inner)],
    "compiled": lambda reader, inner: reader._compiled_call_of(inner),
}


def _check_variant(call: CompiledCall, nan_safe: CompiledCall) -> None:
    """Raise ValueError unless a program and its NaN-safe variant have equal arguments and outputs."""
    if not (takes(nan_safe, call.in_avals) and agree(nan_safe.out_avals, call.out_avals)):
        raise ValueError("a program and its NaN-safe variant have other arguments or outputs")


def _check_factors(program: Program) -> None:
    """Raise ValueError if LAPACK would trust factors that the same program has not made."""
    makers = {var: equation for equation in program.equations for var in equation.outputs}
    for equation in program.equations:
        if equation.primitive.factored_by is not None:
            matrix, *factors = equation.inputs[:3]
            maker = makers.get(factors[0])
            is_made = maker is not None and maker.primitive.name == equation.primitive.factored_by
            if maker is None or not is_made or maker.inputs != (matrix,) or maker.outputs != tuple(factors):
                raise ValueError(
                    f"the second and third operand of {equation.primitive} are not what "
                    f"{equation.primitive.factored_by} makes of the first"
                )


def find_primitive(name: Any) -> Primitive:
    """The primitive of a name; imports the modules of func that define primitives if need be."""
    try:
        return primitive_named(_of(str, name))
    except KeyError:
        raise MissingError(
            f"this version of func has no primitive {reprlib.repr(name)}, which the program applies"
        ) from None


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{reprlib.repr(value)} is not of the type {kind.__name__}")
    return value


def _printable(value: Any) -> str:
    """A name for printing: without escape sequences and line breaks, and not long."""
    text = _of(str, value)[:NAME_LENGTH]
    return text if text.isprintable() else "".join([letter if letter.isprintable() else "?" for letter in text])


def _index(value: Any) -> int:
    """An index of a list; Python would accept negative ones."""
    if type(value) is not int or value < 0:
        raise TypeError(f"{reprlib.repr(value)} is not an index")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    return tuple([_index(length) for length in _of(list, value)])


NAME_LENGTH = 200
"""The most letters of a name from a file."""
FORMAT = "func program"
VERSION = 2
DOCUMENT = "program.json"


def write_program(program: Program, path: str) -> None:
    """Write a program file atomically."""
    writer = Writer()
    writer.program(program)
    document = {"format": FORMAT, "version": VERSION, "arrays": len(writer.arrays), "programs": writer.programs}
    write_archive(path, (DOCUMENT, document), {f"arrays/{number}": x for number, x in enumerate(writer.arrays)})


def read_program(path: str) -> Program:
    """The program of a file. Raises ProgramFileError if the file contains none."""
    with open(path, "rb") as file:
        data = io.BytesIO(file.read())
    try:
        with zipfile.ZipFile(data) as archive:
            check_sizes(archive, len(data.getbuffer()))
            program = _from_archive(archive, path)
    except MissingError as error:
        raise ProgramFileError(f"func.load: {path!r} cannot be loaded here: {error}") from error
    except ProgramFileError:
        raise
    except zipfile.BadZipFile as error:
        raise ProgramFileError(
            f"func.load: {path!r} is not a file written by func.save, or it is truncated or damaged ({excerpt(error)})"
        ) from error
    except (OSError, EOFError, NotImplementedError) as error:
        raise ProgramFileError(f"func.load: {path!r} is truncated or damaged ({excerpt(error)})") from error
    except Exception as error:  # a file that fails in an unforeseen way contains no program
        raise ProgramFileError(
            f"func.load: {path!r} is damaged: its program cannot be read ({type(error).__name__}: {excerpt(error)})"
        ) from error
    return program


def _from_archive(archive: zipfile.ZipFile, path: str) -> Program:
    names = archive.namelist()
    if DOCUMENT not in names:
        raise ProgramFileError(f"func.load: {path!r} is not a file written by func.save: it has no {DOCUMENT}")
    document = read_json(archive, DOCUMENT)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ProgramFileError(f"func.load: {path!r} is not a file written by func.save: it is not a {FORMAT}")
    version = document.get("version")
    told = excerpt(repr(version))
    if type(version) is int and version > VERSION:
        raise ProgramFileError(
            f"func.load: {path!r} has version {told} of the format, this func reads up to version {VERSION}; "
            "load it with a newer func"
        )
    if version == 1:
        raise ProgramFileError(
            f"func.load: {path!r} has version 1 of the format, whose primitives had other names; "
            "trace the function again and save its program"
        )
    if version != VERSION:
        raise ProgramFileError(f"func.load: {path!r} has version {told} of the format, which does not exist")
    count = _index(document["arrays"])
    if count != len(names) - 1:
        raise ValueError(f"the document names {count} arrays, but the file has {len(names) - 1}")
    reader = Reader([read_array(read_member(archive, f"arrays/{number}.npy")) for number in range(count)])
    for written in _of(list, document["programs"]):
        reader.add(written)
    return reader.programs[-1]
