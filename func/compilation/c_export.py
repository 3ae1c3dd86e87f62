"""Export to C: functions and their derivatives as plain C that runs without Python (`to_c`, `export`)."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from func import tree
from func.backends.number_types import is_narrow
from func.compilation.c_names import identifier, is_c_name
from func.compilation.exporting import ExportedArguments, parameter_names
from func.compilation.jit import jit, jitted_for
from func.interpreters.archives import as_path
from func.interpreters.core import Aval, shape_of
from func.interpreters.core.errors import ArgumentError, NoSourceError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.structural.shapes import permute
from func.interpreters.program.program import Program
from func.transforms.boundary import check_no_value, name_of
from func.transforms.transformed import Transformed, keeps_parameters, transform

if TYPE_CHECKING:
    from func.compilation.paths import Answered

FLAGS = ("-std=c99", "-O3", "-fno-math-errno", "-fno-trapping-math")
"""The default compiler flags of exported code. None of them changes results."""
KINDS = ("c", "object", "library")
ANOTHER_PATH = 2
"""The status of exported code for arguments that lead along another path than the traced one."""


class CArray(NamedTuple):
    """An input or output of exported code: its name in C, its expression in Python, shape and dtype."""

    name: str
    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def by_value(self) -> bool:
        """Whether C passes it as a number, not by address."""
        return self.shape == () and self.dtype.kind != "c"


class CModule:
    """A function as C: the result of `func.to_c(f)(*args)`.

    `source` and `header` are the texts of a .c and a .h file, and `name` is the function's name in them. `inputs` and
    `outputs` are its parameters in order, and `workspace` the further bytes that a call needs.

    Example:
        >>> import numpy as np, func
        >>> module = func.to_c(func.grad(lambda x: np.sum(x * x)), name="slope")(np.ones(3))
        >>> module
        CModule(slope: x f64[3] -> out f64[3], workspace 0 bytes)
        >>> print(module.header.splitlines()[-6])
        int slope(const double *x, double *out, void *work);
    """

    def __init__(
        self,
        name: str,
        source: str,
        header: str,
        inputs: Sequence[CArray],
        outputs: Sequence[CArray],
        workspace: int,
        column_major: bool,
        guards: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.source = source
        self.header = header
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.workspace = workspace
        self.column_major = column_major
        self.guards = tuple(guards)
        """Python's questions with their answers: the function is for arguments with these answers."""
        self.structure: Any = None
        """The SciPy array type of a sparse derivative (CSR, by columns CSC), whose entries the function computes."""

    def __repr__(self) -> str:
        listed = [
            ", ".join([f"{array.name} {Aval(array.shape, array.dtype)!r}" for array in arrays])
            for arrays in (self.inputs, self.outputs)
        ]
        return f"CModule({self.name}: {' -> '.join(listed)}, workspace {self.workspace} bytes)"

    @without_engine_frames
    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the two files, named after the function, into a folder; their paths."""
        place = Path(as_path(folder, "to_c"))
        place.mkdir(parents=True, exist_ok=True)
        paths = place / f"{self.name}.c", place / f"{self.name}.h"
        for path, text in zip(paths, (self.source, self.header), strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    @without_engine_frames
    def load(self, *, compiler: str | None = None, flags: Sequence[str] = (*FLAGS, "-march=native")) -> CFunction:
        """Compile the source with a C compiler, and load it: a function of NumPy arrays in the order of `inputs`.

        This tries exported code from Python. `compiler` is the environment's CC, or cc, by default.

        Raises:
            NoSourceError: There is no such compiler, or it rejects the source.

        Example:
            >>> import numpy as np, func, shutil
            >>> module = func.to_c(lambda x: np.sin(x) + 1.0)(np.zeros(2))
            >>> if shutil.which("cc"):
            ...     assert module.load()(np.zeros(2)).tolist() == [1.0, 1.0]
        """
        with tempfile.TemporaryDirectory(prefix="func-c-") as folder:
            library = os.path.join(folder, f"{self.name}.so")
            compile_c(self, library, compiler, [*flags, "-shared", "-fPIC"])
            return CFunction(self, ctypes.CDLL(library))


class CFunction:
    """Exported code, compiled and loaded into this process."""

    def __init__(self, module: CModule, library: ctypes.CDLL) -> None:
        self.module = module
        self._function = getattr(library, module.name)
        self._function.restype = ctypes.c_int

    def __repr__(self) -> str:
        return f"CFunction({self.module!r})"

    def __call__(self, *args: Any) -> Any:
        """The output, or a tuple of several, for arguments of the shapes and dtypes of the inputs.

        Raises:
            ArgumentError: The arguments do not have the shapes and dtypes of the inputs.
            ArithmeticError: The code reports an error: a singular matrix, or an index out of range.
            ValueError: The arguments lead Python along another path than those for which the code was made.
        """
        module = self.module
        if len(args) != len(module.inputs):
            raise ArgumentError(f"{module.name}: takes {len(module.inputs)} arrays, got {len(args)}")
        order: Literal["C", "F"] = "F" if module.column_major else "C"
        passed: list[Any] = []
        converted = []
        for array, arg in zip(module.inputs, args, strict=True):
            value = np.asarray(arg)
            if value.shape != array.shape or not np.can_cast(value.dtype, array.dtype, "same_kind"):
                raise ArgumentError(
                    f"{module.name}: {array.name} is {Aval(array.shape, array.dtype)!r}, "
                    f"got {Aval(value.shape, value.dtype)!r}"
                )
            value = np.array(value, array.dtype, order=order, ndmin=0)
            converted.append(value)
            passed.append(_number(value) if array.by_value else value.ctypes.data_as(ctypes.c_void_p))
        outs = [np.empty(array.shape, array.dtype, order) for array in module.outputs]
        memory = np.empty(module.workspace + 64, np.uint8)
        start = memory.ctypes.data
        work = ctypes.c_void_p(start + -start % 64)
        status = self._function(*passed, *[out.ctypes.data_as(ctypes.c_void_p) for out in outs], work)
        if status == ANOTHER_PATH:
            raise ValueError(f"{module.name}: this code is for arguments where {'; '.join(module.guards)}")
        if status:
            raise ArithmeticError(f"{module.name}: a matrix is singular, or an index is out of range")
        results = [out if out.ndim else out[()] for out in outs]
        return results[0] if len(results) == 1 else tuple(results)


def _number(value: Any) -> Any:
    """A number as ctypes passes it."""
    if is_narrow(value.dtype):
        return ctypes.c_uint16(int(value.view(np.uint16)))
    if value.dtype == np.bool_:
        return ctypes.c_uint8(int(value))
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())


@keeps_parameters
@transform
def to_c(
    f: Callable[..., Any],
    static_argnums: int | tuple[int, ...] = (),
    *,
    static_argnames: str | Sequence[str] | None = None,
    name: str | None = None,
    column_major: bool = False,
    finite: bool = False,
) -> Callable[..., CModule]:
    """A function as C99 that runs without Python: `to_c(f)(*args)` for arguments like these.

    `f` is any function that `func.jit` compiles as a whole: a derivative (`func.grad(f)`, `func.jacobian(f)`,
    `func.hessian(f)`), with loops, branches and small linear algebra. The result has a source and a header of one
    function

        int name(inputs..., outputs..., void *work);

    Each leaf of the arguments is an input and each leaf of the result an output, in their order. C passes arrays by
    address, row by row (`column_major=True`: column by column, as Fortran and Julia have them). It passes numbers of
    shape () by value, but complex ones as the address of two parts. Dtypes keep their sizes: float64 is double, float32
    float, int64 int64_t, bool uint8_t (0 or 1), complex128 two doubles, float16 its bits in uint16_t. Outputs must not
    overlap inputs. `work` is memory of NAME_WORKSPACE bytes, aligned for double; it may be NULL if that is 0. The
    function allocates nothing and keeps no state, so threads may call it at the same time, each with its own `work`. It
    returns 0, or 1 with invalid outputs for a singular matrix or an index out of range. Where Python asks for values,
    it takes the path of the arguments of `to_c`: it answers the questions first, and returns 2 where an answer differs.

    The code is plain: loops and calls of the C library. With -DFUNC_CBLAS it calls CBLAS for large matrix products and
    triangular solves. With -DFUNC_LAPACK it calls LAPACKE for LU and Cholesky factors of more than 64 rows. If a zero
    may meet an infinity in a pullback, a second, NaN-safe function runs after a NaN result. Factors have LAPACK's
    signs; eigenvectors and singular vectors may differ from LAPACK's by a sign, complex ones by a factor of modulus 1.

    Args:
        f: The function.
        static_argnums: Positional arguments to build in as constants.
        static_argnames: Arguments by name to build in.
        name: The function's name in C; f's own name by default.
        column_major: Whether arrays have their columns in memory, one after the other.

    Raises:
        StagingError: Python asks for a floating-point number, which no guard compares.
        NoSourceError: An operation has no form in C: it calls back into Python (func.debug.callback), or a library.
        ArgumentError: The name is not a C identifier.

    Example:
        >>> import numpy as np, func
        >>> def loss(w, x):
        ...     return np.sum((x @ w) ** 2)
        >>> module = func.to_c(func.grad(loss), name="loss_slope")(np.zeros(3), np.zeros((5, 3)))
        >>> [array.name for array in module.inputs], module.outputs[0].shape
        (['w', 'x'], (3,))
    """
    check_no_value(static_argnums, "static_argnums", "to_c", f)
    if name is not None and not is_c_name(name):
        raise ArgumentError(f"func.to_c: name={name!r} is not a name that a function in C can have")
    jitted = jitted_for("to_c", f, static_argnums, static_argnames)

    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CModule:
        function_name = name or identifier(name_of(f), set()) or "f"
        if isinstance(f, Transformed) and hasattr(f, "sparse_entries"):
            return _sparse_module(function_name, f, args, kwargs, column_major, finite)
        positional, keywords, statics, entry = jitted.cached_call(args, kwargs, takes_path=True)
        if entry.captured:
            raise NoSourceError(f"func.to_c: {name_of(f)} uses traced values of an enclosing transform")
        arguments = ExportedArguments(positional, keywords, entry.compiled.in_avals)
        parameters = [*parameter_names(f, len(args), {static.name for static in statics}), *keywords]
        labels = arguments.labels(parameters)
        results = [
            "".join([step.text for step in path])
            for path in tree.path_entries(tree.unflatten(entry.out_spec, range(len(entry.compiled.out_avals))))
        ]
        return _module(function_name, f, entry.compiled, labels, results, column_major, finite, entry.answered)

    return write


def _sparse_module(
    name: str, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], column_major: bool, finite: bool
) -> CModule:
    """The entries of a sparse derivative, and its structure as constant arrays: by rows, or by columns."""
    from func.backends.c.element_operations import constant_text  # start-up time

    compute, pattern, values, traced_places = f.sparse_entries(args, kwargs)
    structure = pattern
    if column_major:
        numbers = np.arange(pattern.nnz)
        structure = type(pattern)((numbers, pattern.indices, pattern.indptr), shape=pattern.shape).tocsc()
        compute = _reordered(compute, structure.data)
    names = [*parameter_names(f, len(args), set()), *sorted(kwargs)]
    labels = [
        f"{label}{''.join([step.text for step in path])}"
        for label, value in zip(names, [*args, *[kwargs[key] for key in sorted(kwargs)]], strict=True)
        for path in tree.path_entries(value)
    ]
    jitted: Any = jit(compute)
    entry = jitted.cached_call(tuple(values), {})[3]
    module = _module(name, f, entry.compiled, [labels[i] for i in traced_places], [""], False, finite)
    constants = [(f"{name}_starts", structure.indptr), (f"{name}_indices", structure.indices)]
    line, across = ("column", "rows") if column_major else ("row", "columns")
    shape = (("ROWS", pattern.shape[0]), ("COLUMNS", pattern.shape[1]), ("ENTRIES", pattern.nnz))
    declared = [
        f"/* The entries of {line} i are the numbers {name}_starts[i] to {name}_starts[i + 1] - 1 of out;",
        f"   {name}_indices has their {across}. */",
        *[f"#define {name.upper()}_{what} {count}" for what, count in shape],
        *[f"extern const int32_t {label}[{max(1, array.size)}];" for label, array in constants],
        "",
        "#ifdef __cplusplus\n}",
    ]
    module.header = module.header.replace("#ifdef __cplusplus\n}", "\n".join(declared))
    texts = [constant_text(label, array.astype(np.int32)).removeprefix("static ") for label, array in constants]
    module.source = "\n\n".join([module.source.rstrip("\n"), *texts]) + "\n"
    module.structure = structure.astype(bool)
    return module


def _reordered(compute: Any, order: Any) -> Any:
    """A function with the same results in another order."""

    def reordered(*values: Any) -> Any:
        return compute(*values)[order]

    return reordered


def _module(
    name: str,
    f: Any,
    compiled: Any,
    labels: Sequence[str],
    results: Sequence[str],
    column_major: bool,
    finite: bool,
    answered: Sequence[Answered] = (),
) -> CModule:
    from func.backends.c.declarations import stored_type  # start-up time
    from func.backends.c.element_operations import CDefinitions
    from func.backends.c.library_routines import UnsupportedRoutine
    from func.backends.c.program_text import function_text, parameters, prelude, with_clones
    from func.interpreters.compile.inlining import prepare_call, prepare_program

    program = prepare_call(compiled)
    nan_safe = program.nan_safe
    if finite:
        nan_safe = None
    natives = [_native(program, f, nan_safe is not None, column_major, finite)]
    if nan_safe is not None:
        natives.append(_native(nan_safe, f, False, column_major, finite))
    taken: set[str] = {name}
    inputs, outputs = [], []
    for var, label in zip(program.inputs, labels, strict=True):
        inputs.append(CArray(identifier(label, taken) or "x", label, var.shape, var.dtype))
    for aval, result in zip(compiled.out_avals, results, strict=True):
        outputs.append(CArray(identifier(f"out{result}", taken), f"result{result}", aval.shape, aval.dtype))
    names = [array.name for array in (*inputs, *outputs)]
    questions = [_native(prepare_program(asked.question.program), f, False, column_major, finite) for asked in answered]
    definitions = CDefinitions(name)
    suffixes = ("_plain", "_nan_safe")
    try:
        functions = [
            function_text(native, f"{name}{suffix}", names, definitions)
            for native, suffix in zip(natives, suffixes, strict=False)
        ]
        asking = [*names[: len(inputs)], identifier("answer", taken)]
        functions += [
            function_text(native, f"{name}_question{number}", asking, definitions)
            for number, native in enumerate(questions)
        ]
    except UnsupportedRoutine as error:
        raise _no_source(f, error) from None
    workspace = max([function.workspace for function in functions])
    listed = parameters(natives[0], names)
    call = ", ".join([*names, "memory"])
    body = ["    unsigned char *memory = work;", "    int status;"]
    for number, (asked, native) in enumerate(zip(answered, questions, strict=True)):
        answer = identifier(f"answer{number}", taken)
        body += [
            f"    {stored_type(native.outputs[0].dtype)} {answer};",
            f"    status = {name}_question{number}({', '.join([*asking[:-1], f'&{answer}', 'memory'])});",
            "    if (status != 0) {\n        return status >> 1;\n    }",
            f"    if ({answer} != {int(asked.value)}) {{\n        return {ANOTHER_PATH};\n    }}",
        ]
    body += [
        f"    status = {name}_plain({call});",
        *([f"    if (status == 1) {{\n        status = {name}_nan_safe({call});\n    }}"] if nan_safe else []),
        "    return status >> 1;",
    ]
    public = "\n".join([f"int {name}({', '.join([*listed, 'void *work'])}) {{", *body, "}"])
    texts = [*[function.text for function in functions], public]
    title = f"{name}: {_described(f)}, by func {sys.modules['func'].__version__}."
    texts = with_clones([*definitions.printed_for("\n".join(texts)), *texts])
    source = "\n\n".join([prelude(title, f"{name}.h", "\n".join(texts)), *texts])
    guards = tuple([asked.words() for asked in answered])
    header = _header(name, title, inputs, outputs, listed, workspace, column_major, guards)
    return CModule(name, source + "\n", header, inputs, outputs, workspace, column_major, guards)


def _native(program: Program, f: Any, checked: bool, column_major: bool, finite: bool) -> Any:
    """A program as loop nests. Raises NoSourceError."""
    from func.backends.loops.scalar_expansion import expand_bodies, expand_scalars, is_expandable  # start-up time
    from func.backends.loops.sine_batches import batch_sines
    from func.interpreters.compile.native.executable import rerolled
    from func.interpreters.compile.native.not_native import NotNative, RuleError
    from func.interpreters.compile.native.translate import translate

    if column_major:
        program = _by_columns(program)
    try:
        native = translate(program, checked, is_printed=True)
        if not (is_expandable(native) and expand_scalars(native, finite)):
            native = translate(rerolled(program), checked, is_printed=True)
            expand_bodies(native, finite)
        batch_sines(native.items)
        return native
    except NotNative as error:
        raise _no_source(f, error) from None
    except RuleError as error:
        raise NoSourceError(f"func.to_c: {name_of(f)} has no form in C: {error.__cause__}") from error


def _no_source(f: Any, reason: Exception) -> NoSourceError:
    return NoSourceError(
        f"func.to_c: {name_of(f)} has no form in C: {reason}; func.to_source writes it for NumPy, and "
        "func.save keeps it as a Program"
    )


def _by_columns(program: Program) -> Program:
    """The program on column-major arrays: on the transposes of row-major ones."""
    from func.interpreters import drivers  # start-up time
    from func.interpreters.compile.passes import optimize
    from func.interpreters.stage import DerivedStage

    def turned(*args: Any) -> tuple[Any, ...]:
        outs = program.run(tuple([_turned(x) for x in args]))
        return tuple([_turned(out) for out in outs])

    avals = [Aval(var.shape[::-1], var.dtype, var.weak) for var in program.inputs]
    return optimize(drivers.stage_flat(turned, avals, DerivedStage("to_c")))


def _turned(x: Any) -> Any:
    """The transpose, of all axes."""
    rank = len(shape_of(x))
    return permute(x, order=tuple(reversed(range(rank)))) if rank > 1 else x


def _described(f: Any) -> str:
    """The first line of the function's help."""
    text = (getattr(f, "__doc__", None) or "").strip().splitlines()
    from func.backends.c.declarations import comment  # start-up time

    return comment(text[0].rstrip(".") if text and hasattr(f, "__wrapped__") else name_of(f))


def _header(
    name: str,
    title: str,
    inputs: Sequence[CArray],
    outputs: Sequence[CArray],
    listed: Sequence[str],
    workspace: int,
    column_major: bool,
    guards: Sequence[str],
) -> str:
    """The text of the header."""
    order = "column by column" if column_major else "row by row"
    guard = f"{name.upper()}_H"
    from func.backends.c.declarations import comment  # start-up time

    lines = [f"/* {title}", "", f"   Arrays are stored {order}. Outputs must not overlap inputs."]
    for kind, arrays in (("in", inputs), ("out", outputs)):
        for array in arrays:
            shape = " x ".join(map(str, array.shape)) if array.shape else "one number"
            lines.append(f"   {kind:4}{array.name}: {comment(array.label)}, {shape} of {array.dtype}")
    lines += [
        f"   work: {name.upper()}_WORKSPACE bytes of memory, aligned for double, which nothing else uses during a call"
        + ("; may be NULL." if workspace == 0 else "."),
        "   Returns 0, or 1 where a matrix was singular or an index out of range"
        + (f",\n   or {ANOTHER_PATH}, without outputs, unless" if guards else ". */"),
    ]
    lines += [f"   {comment(text)}{';' if text != guards[-1] else '. */'}" for text in guards]
    prototype = f"int {name}({', '.join([text.replace('*restrict ', '*') for text in [*listed, 'void *work']])});"
    return "\n".join(
        [
            *lines,
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdint.h>",
            "",
            f"#define {name.upper()}_WORKSPACE {workspace}",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            prototype,
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "#endif",
            "",
        ]
    ).replace("\n   \n", "\n\n")


@keeps_parameters
@transform
def export(
    f: Callable[..., Any],
    path: str | os.PathLike[str],
    static_argnums: int | tuple[int, ...] = (),
    *,
    kind: Literal["c", "object", "library"] = "c",
    static_argnames: str | Sequence[str] | None = None,
    name: str | None = None,
    column_major: bool = False,
    compiler: str | None = None,
    flags: Sequence[str] = FLAGS,
) -> Callable[[tuple[Any, ...], dict[str, Any]], CModule]:
    """Write a function as C, source or compiled, into files: `export(f, path)(*args)`.

    `func.to_c` describes the function in C. Its name in C is `name`, or that of the file. `kind` is

    - "c": `path` is the source, with the header next to it; a path without an ending gets `.c`;
    - "object": `path` is an object file, with the header next to it;
    - "library": `path` is a shared library, with the header next to it.

    Args:
        f: The function.
        path: The file; the header has the same name with the ending .h.
        static_argnums: Positional arguments to build in as constants.
        kind: The kind of file.
        static_argnames: Arguments by name to build in.
        name: The function's name in C; by default that of the file, of a library without `lib` (`libarm.so`: `arm`).
        column_major: Whether arrays have their columns in memory, one after the other.
        compiler: The C compiler: the environment's CC, or cc, by default.
        flags: The compiler's flags. -march=native, or the target's name, makes vector code for it.

    Raises:
        NoSourceError: As `func.to_c`; or there is no such compiler.
        ArgumentError: The kind is unknown, the file's name is not a C identifier, or no header can have or include that
            name.

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "slope.c")
        ...     module = func.export(func.grad(lambda x: np.sum(x**3)), path)(np.zeros(4))
        ...     sorted(os.listdir(folder))
        ['slope.c', 'slope.h']
    """
    if kind not in KINDS:
        raise ArgumentError(f"func.export: kind={kind!r} is unknown; write one of {', '.join(map(repr, KINDS))}")
    place = Path(as_path(path, "export"))
    stem = place.stem.removeprefix("lib") if kind == "library" else place.stem
    chosen = name if name is not None else stem or place.stem
    if not is_c_name(chosen):
        raise ArgumentError(f"func.export: {chosen!r} is not a name of a function in C; pass name='...'")
    if kind == "c" and not place.suffix:
        place = place.with_suffix(".c")
    if place.suffix == ".h" or not _INCLUDABLE.fullmatch(place.stem):
        raise ArgumentError(
            f"func.export: {place.name!r} has the name of its header, or one that #include cannot have; choose another "
            "name for the file"
        )
    translated = to_c(f, static_argnums, static_argnames=static_argnames, name=chosen, column_major=column_major)

    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CModule:
        module = translated(*args, **kwargs)
        if kind == "c":
            place.write_text(module.source.replace(f'"{module.name}.h"', f'"{place.stem}.h"'), encoding="utf-8")
        else:
            shape = ["-c"] if kind == "object" else ["-shared"]
            compile_c(module, str(place), compiler, [*flags, "-fPIC", *shape])
        place.with_suffix(".h").write_text(module.header, encoding="utf-8")
        return module

    return write


_INCLUDABLE = re.compile(r"(?:(?!\?\?)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\"\\])*")
"""The characters of a header's name: inside its quotes nothing can be escaped."""


def compile_c(module: CModule, target: str, compiler: str | None, flags: Sequence[str]) -> None:
    """Compile the source of a module into a file. Raises NoSourceError."""
    command = compiler or os.environ.get("CC") or "cc"
    words = command.split()
    if shutil.which(words[0]) is None:
        raise NoSourceError(
            f"func.to_c: there is no C compiler {words[0]!r} here; name one by compiler='...' or the environment's CC, "
            "or write the source alone by func.export(f, path, kind='c')"
        )
    with tempfile.TemporaryDirectory(prefix="func-c-") as folder:
        source, _ = module.save(folder)
        done = subprocess.run(
            [*words, *flags, "-o", target, str(source), "-lm"], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise NoSourceError(f"func.to_c: {command} rejects the source of {module.name}:\n{done.stderr.strip()[:2000]}")
