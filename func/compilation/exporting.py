"""Export: Programs in files (`save`, `load`), and functions as source that runs without func (`to_source`)."""

from __future__ import annotations

import contextlib
import functools
import inspect
import keyword
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from func import tree
from func.backends import is_device_array, namespace_of
from func.backends.source.plans import PlanStep
from func.compilation.jit import jitted_for
from func.interpreters.archives import as_path
from func.interpreters.calls.compiled_call import CompiledCall
from func.interpreters.core import Aval
from func.interpreters.core.errors import ArgumentError, NoSourceError
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.program.program import Program
from func.transforms.boundary import check_no_value, name_of
from func.transforms.transformed import keeps_parameters, transform

if TYPE_CHECKING:
    from func.backends.source.plans import Plan
    from func.compilation.paths import Answered


@without_engine_frames
def save(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a Program into a file, from which `func.load` makes an equal one.

    The file is a zip archive of a JSON document and of the constants as .npy members. Saving replaces a file or link in
    one step. It stores source lines without their folders, and device arrays as host arrays. A file cannot store
    primitives with Python functions as parameters (custom rules, checkpoints, callbacks); `func.jit(f).trace(*args)`
    replaces custom rules and checkpoints by their operations.

    Raises:
        ProgramFileError: A file cannot store a parameter or constant of this kind.

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> program = func.make_program(lambda x: np.sin(x) * 2)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     func.save(program, os.path.join(folder, "double_sine.func"))
        ...     loaded = func.load(os.path.join(folder, "double_sine.func"))
        >>> loaded == program
        True
    """
    from func.interpreters.serialization import write_program  # start-up time

    if not isinstance(program, Program):
        raise ArgumentError(
            f"func.save: expected a Program, got {type(program).__name__}; func.make_program(f)(*args) makes one; "
            "func.tree.save(x, path) writes arrays"
        )
    write_program(program, as_path(path, "save"))


@without_engine_frames
def load(path: str | os.PathLike[str]) -> Program:
    """The Program in a file that `func.save` wrote.

    Loading runs no code from the file, and checks the program. The file may come from anyone; the page Security of the
    documentation states the guarantees.

    Raises:
        ProgramFileError: The file is of another kind, damaged, of a newer version, or applies unknown primitives.

    Example:
        >>> import os, tempfile, numpy as np, func
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "slope.func")
        ...     func.save(func.make_program(func.grad(np.sin))(0.0), path)
        ...     slope = func.load(path)
        >>> slope(0.0)
        (np.float64(1.0),)
    """
    from func.interpreters.serialization import read_program  # start-up time

    return read_program(as_path(path, "load"))


@keeps_parameters
@transform
def to_source(
    f: Callable[..., Any],
    static_argnums: int | tuple[int, ...] = (),
    *,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., str]:
    """The source of a module that computes a function for arguments like these, without func.

    `to_source(f)(*args)` traces f (any transform of a function: `func.grad(f)`, `func.hessian(f)`), optimises the
    Program and prints it as a module with one function of f's name and parameters. The module needs NumPy (and SciPy if
    the header imports it). The function takes arguments of the shapes and dtypes of `args`, and raises ValueError for
    others. For CuPy arguments the module imports CuPy. Static arguments become constants. Bodies of loops and branches
    (`func.scan`, `func.while_loop`, `func.cond`) become functions. If a zero may meet an infinity in a pullback, a
    second, NaN-safe function follows, which the first one calls after a NaN. Where Python asks for values, the function
    takes the path of `args`, and raises ValueError for arguments that lead along another one.

    Raises:
        StagingError: Python asks for a floating-point number, which no guard compares.
        NoSourceError: The function calls back into Python (func.debug.callback).
        ArgumentError: Python source cannot name a keyword argument, or an entry of an argument.
        TypeError: The result contains something other than tuples, lists, dicts and arrays.

    Example:
        >>> import numpy as np, func
        >>> text = func.to_source(func.grad(lambda x: np.sum(np.sin(x))))(np.zeros(3))
        >>> print(text[text.index("def"):])
        def f(x):
            x0 = np.asarray(x, np.float64)
            if x0.shape != (3,):
                raise ValueError(f"x has shape {x0.shape}, not (3,)")
            with np.errstate(all="ignore"):
                t0 = np.cos(x0)
            return t0
    """
    check_no_value(static_argnums, "static_argnums", "to_source", f)
    jitted = jitted_for("to_source", f, static_argnums, static_argnames)

    def write(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        positional, keywords, statics, entry = jitted.cached_call(args, kwargs, takes_path=True)
        if entry.captured:
            raise NoSourceError(f"func.to_source: {name_of(f)} uses traced values of an enclosing transform")
        arguments = ExportedArguments(positional, keywords, entry.compiled.in_avals)
        device = any([is_device_array(leaf) for leaf in arguments.leaves])
        xp = namespace_of(tuple(arguments.leaves))
        plans = _plans(entry.compiled, xp, device)
        _add_questions(plans[0], entry.answered, xp, device)
        if device:
            _check_device_has(plans, xp, name_of(f))
        parameters = [*parameter_names(f, len(args), {static.name for static in statics}), *_keywords(keywords)]

        def result(outputs: Sequence[str]) -> str:
            return _expression(tree.unflatten(entry.out_spec, list(outputs)))

        return _module(name_of(f), parameters, arguments, result, plans, device)

    return write


class ExportedArguments:
    """The arguments of an exported function, and the expressions of their leaves by the names of the parameters."""

    def __init__(self, positional: Sequence[Any], keywords: Mapping[str, Any], avals: Sequence[Aval]) -> None:
        arguments = tuple(positional), dict(keywords)
        self.positional = len(positional)
        self.leaves = tree.leaves(arguments)
        self.avals = avals
        numbers = {key: number for number, key in enumerate([*range(len(positional)), *keywords])}
        entries = tree.path_entries(arguments)
        self._owners = [numbers[path[1].key] for path in entries]
        self._paths = [path[2:] for path in entries]

    def expressions(self, parameters: Sequence[str]) -> list[str]:
        """For every leaf the Python expression that reads it."""
        pairs = zip(self._owners, self._paths, strict=True)
        return [parameters[owner] + "".join(map(_access, path)) for owner, path in pairs]

    def labels(self, parameters: Sequence[str]) -> list[str]:
        """For every leaf its name in messages."""
        pairs = zip(self._owners, self._paths, strict=True)
        return [parameters[owner] + "".join([entry.text for entry in path]) for owner, path in pairs]


def _module(
    name: str,
    parameters: Sequence[str],
    arguments: ExportedArguments,
    result: Callable[[Sequence[str]], str],
    plans: tuple[Plan, Plan | None],
    device: bool,
) -> str:
    """The text of a module; a public function calls one with other parameter names if the text needs these names."""
    from func.backends.source.numpy_module import Signature, module_text, names_in  # start-up time

    kinds = [(aval.shape, aval.dtype, aval.weak) for aval in arguments.avals]
    plan, nan_safe = plans

    def text(name: str, names: Sequence[str], parameters: list[str], **fields: Any) -> str:
        signature = Signature(name, parameters, arguments.expressions(names), kinds, result, **fields)
        return module_text(plan, signature, device, nan_safe)

    stand_ins = [f"argument{i}" for i in range(len(parameters))]
    taken = names_in(text("_", stand_ins, stand_ins, header=["_"])) | {"np", "cp", "scipy"}
    taken -= {"_", "_nan_safe__", *stand_ins}
    name = _apart(str.__str__(name) if _is_name(name) else "f", taken)
    labels = arguments.labels(parameters)
    inputs = ", ".join([f"{label}: {aval!r}" for label, aval in zip(labels, arguments.avals, strict=True)])
    header = [f"{name}({inputs})", "", f"Generated by func {sys.modules['func'].__version__}."]
    positional, keywords = parameters[: arguments.positional], parameters[arguments.positional :]
    listed = [*positional, *(["*"] if keywords else []), *keywords]
    if taken.isdisjoint([unicodedata.normalize("NFKC", parameter) for parameter in parameters]):
        return text(name, parameters, listed, header=header, labels=labels)
    inner_name = _apart(f"_{name}", {*taken, *parameters})
    return text(inner_name, stand_ins, stand_ins, header=header, labels=labels, caller=(name, listed))


_DOTTED = re.compile(r"\b(?:np|scipy)((?:\.[A-Za-z_]\w*)+)")


def _check_device_has(plans: Iterable[Plan | None], xp: Any, function: str) -> None:
    """Raise if a plan calls a function that the device's library lacks, which func computes on the host."""
    for plan in plans:
        if plan is None:
            continue
        _check_device_has(plan.functions.values(), xp, function)
        for match in _DOTTED.finditer("\n".join([item.text for item in plan.items if isinstance(item, PlanStep)])):
            *modules, name = match[1][1:].split(".")
            if match[0].startswith("scipy."):
                modules[0] = f"scipy_{modules[0]}"
            module = functools.reduce(getattr, modules, xp)
            if getattr(module, "lacks", lambda name: False)(name):
                raise NoSourceError(
                    f"func.to_source: {function} calls {match[0]}, which the device's library does not have: "
                    "func computes it on the host, and a module without func cannot\n"
                    "Pass NumPy arrays, for a module that imports NumPy, or leave this part out of the function."
                )


def _plans(compiled: CompiledCall, xp: Any, device: bool) -> tuple[Plan, Plan | None]:
    """The plan of a program, and that of its NaN-safe variant if it differs."""
    from func.interpreters.compile.inlining import prepare_call  # start-up time
    from func.interpreters.compile.planning import plan_program

    program = prepare_call(compiled)
    plan = plan_program(program, xp, device, scratch=False)
    if program.nan_safe is None:
        return plan, None
    return plan, plan_program(program.nan_safe, xp, device, scratch=False, prefix="safe_")


def _add_questions(plan: Plan, answered: Sequence[Answered], xp: Any, device: bool) -> None:
    """Let a plan answer the questions of its path first, each after those before it."""
    from func.backends.source.literals import literal  # start-up time
    from func.interpreters.compile.inlining import prepare_program
    from func.interpreters.compile.planning import plan_program

    steps = []
    for number, asked in enumerate(answered):
        name, program = f"question{number}", prepare_program(asked.question.program)
        plan.functions[name] = plan_program(program, xp, device, scratch=False, prefix=f"{name}_")
        error = literal(f"this code is for arguments where {asked.words()}")
        call = f"{name}({', '.join(plan.inputs)})[0]"
        steps.append(PlanStep(f"if {call} != {asked.value}: raise ValueError({error})"))
    plan.items[:0] = steps


def parameter_names(f: Callable[..., Any], count: int, static: set[Any]) -> list[str]:
    """Names for the traced positional arguments: those of the function's signature, if any. Replaces invalid and
    repeated names.
    """
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names: list[str] = []
    for i in range(count):
        name = _apart(f"argument{i}", set(named))
        names.append(named[i] if i < len(named) and _is_name(named[i]) else name)
    return [str.__str__(name) for i, name in enumerate(names) if i not in static]


def _keywords(keywords: Mapping[str, Any]) -> list[str]:
    """The names of keyword arguments, which are parameters of the generated function."""
    for name in keywords:
        if not _is_name(name):
            raise ArgumentError(
                f"func.to_source: the keyword argument {name!r} cannot be a parameter of the generated function, as it "
                "is not a name of Python; pass it in a dict"
            )
    return [str.__str__(name) for name in keywords]


def _is_name(name: str) -> bool:
    """Whether a string can be the name of a parameter."""
    return name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"


def _apart(name: str, taken: Collection[str]) -> str:
    """The name, with underscores added until it is free."""
    while unicodedata.normalize("NFKC", name) in taken:
        name += "_"
    return name


def _access(entry: tree.PathEntry) -> str:
    """The text that goes down one level of a tree."""
    from func.backends.source.literals import literal  # start-up time

    if entry.kind == "attribute" and _is_name(entry.key):
        return f".{entry.key}"
    if entry.kind == "item" and entry.key == entry.key:  # NaN is not equal to itself
        with contextlib.suppress(TypeError):
            return f"[{literal(entry.key)}]"
    raise ArgumentError(
        f"func.to_source: plain NumPy source cannot name the entry {entry.key!r} of an argument; pass lists, tuples "
        "and dicts whose keys are strings or numbers"
    )


def _expression(value: Any) -> str:
    """A tree of names as a Python expression."""
    if isinstance(value, str):
        return value
    if value is None:
        return "None"
    if type(value) is tuple:
        parts: Sequence[str] = [_expression(entry) for entry in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if type(value) is list:
        return f"[{', '.join([_expression(entry) for entry in value])}]"
    if type(value) is dict:
        from func.backends.source.literals import literal  # start-up time

        entries = {key: _expression(entry) for key, entry in value.items()}
        with contextlib.suppress(TypeError):  # a key without a literal
            return "{" + ", ".join([f"{literal(key)}: {text}" for key, text in entries.items()]) + "}"
    raise TypeError(
        f"func.to_source: the function returns a {type(value).__name__}, which plain NumPy source cannot name; return "
        "tuples, lists, dicts and arrays"
    )
