"""Modules of NumPy (or CuPy) source, written from plans: they run where func is not installed."""

from __future__ import annotations

import ast
import base64
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from func.backends.parsing import parsed
from func.backends.records import Record, field
from func.backends.source.literals import dtype_text, literal, quoted
from func.backends.source.plans import Plan, PlanStep

_MODULE = re.compile(r"\bscipy\.([a-z]+)\.")
_STANDARD = ("base64", "functools", "importlib", "math")
_STRINGS = re.compile(r"""'(?:[^'\\\n]|\\.)*'""")
"""Literals of strings in statements. The messages of errors are in double quotes."""
_CUPY = re.compile(rf"{_STRINGS.pattern}|\bnp\b|(?<![\w.])scipy\.")
"""Names of NumPy and SciPy in text; strings are matched, so that nothing in them is."""
_CUPY_NAMES = {"np": "cp", "scipy.": "cupyx.scipy."}
SHOWN = 64
"""The most elements of a constant in list form; larger ones are encoded bytes."""
WIDTH = 116


class Signature(Record):
    """The name, parameters, inputs and result of an exported function."""

    name: str
    parameters: list[str]
    paths: list[str]
    """For every input an expression of the parameters: params['w']."""
    kinds: list[tuple[tuple[int, ...], np.dtype[Any], bool]]
    """For every input its shape and dtype, and whether it is a Python scalar."""
    result: Callable[[Sequence[str]], str]
    """The returned expression of the outputs' expressions."""
    header: list[str] = field(default_factory=list)
    """The lines of the module's docstring."""
    labels: list[str] = field(default_factory=list)
    """For every input its name in errors, where that is not its expression."""
    caller: tuple[str, list[str]] | None = None
    """The name and parameters of the function that people call, where this one is called by it."""

    @property
    def positional(self) -> list[str]:
        """The names of the positional parameters."""
        return self.parameters[: self.parameters.index("*")] if "*" in self.parameters else self.parameters

    @property
    def names(self) -> list[str]:
        """The names of all parameters."""
        return [name for name in self.parameters if name != "*"]


def module_text(plan: Plan, signature: Signature, device: bool, nan_safe: Plan | None = None) -> str:
    """The source of a module with one function, which calls that of the NaN-safe plan where its result has a NaN."""
    main = "\n".join(_function(plan, signature, device, nan_safe is not None))
    bodies = _bodies(plan)
    if nan_safe is not None:
        bodies += _bodies(nan_safe)
        bodies.append("\n".join(_function(nan_safe, signature.with_fields(name=f"_nan_safe_{signature.name}"), device)))
    body = "\n\n\n".join([*bodies, main])
    if device:
        body = _CUPY.sub(lambda match: _CUPY_NAMES.get(match[0], match[0]), body)
    if signature.caller is not None:
        body += "\n\n\n" + "\n".join(_caller(signature, *signature.caller))
    helpers = "\n\n\n".join([_source(function) for function in _helpers_of(plan, nan_safe).values()])
    alias = "cp" if device else "np"
    constants = "\n".join(
        [line for name, value in _constants(plan, nan_safe).items() for line in _constant(name, value, alias)]
    )
    header = [quoted(line) for line in signature.header]
    head = ['"""' + header[0], *header[1:], '"""', ""]
    parts = ["\n".join([*head, *_imports(body, helpers, constants, device)])]
    if constants:
        parts.append(constants)
    if helpers:
        parts.append("\n" + helpers)
    return "\n\n".join([*parts, "\n" + body]) + "\n"


def _imports(body: str, helpers: str, constants: str, device: bool) -> list[str]:
    """The lines that import everything that the parts of a module use."""
    text = "\n".join([_STRINGS.sub("''", body), constants])
    everything = f"{text}\n{helpers}"  # array helpers import parts of SciPy themselves
    lines = [f"import {name}" for name in _STANDARD if re.search(rf"\b{name}\.", everything)]
    if re.search(r"\bAny\b", helpers):
        lines += ["from collections.abc import Callable, Sequence", "from typing import Any"]
    if lines:
        lines.append("")
    if re.search(r"\bml_dtypes\.", everything):
        lines.append("import ml_dtypes")
    if re.search(r"\bnumpy\b", helpers):
        lines.append("import numpy")
    lines.append("import cupy as cp" if device else "import numpy as np")
    if LINALG_ERRORS in text:
        lines.append("import cupyx")
    scipy = "cupyx.scipy" if device else "scipy"
    return [*lines, *[f"import {scipy}.{module}" for module in sorted(set(_MODULE.findall(text)))]]


def _bodies(plan: Plan) -> list[str]:
    """The functions that a plan calls, callees first."""
    texts = []
    for name, nested in plan.functions.items():
        texts += _bodies(nested)
        lines = [f"def {name}({', '.join(nested.inputs)}):", *[f"    {line}" for line in _statements(nested)]]
        outputs = "".join([f"{output}, " for output in nested.outputs]).strip()
        texts.append("\n".join([*lines, f"    return {outputs or '()'}"]))
    return texts


def _all_plans(*plans: Plan | None) -> Iterator[Plan]:
    for plan in plans:
        if plan is not None:
            yield plan
            yield from _all_plans(*plan.functions.values())


def _helpers_of(*plans: Plan | None) -> dict[str, Callable[..., Any]]:
    return {name: function for plan in _all_plans(*plans) for name, function in plan.helpers.items()}


def _constants(*plans: Plan | None) -> dict[str, Any]:
    return {name: value for plan in _all_plans(*plans) for name, value in plan.constants.items()}


def _statements(plan: Plan) -> Iterator[str]:
    for item in plan.items:
        assert isinstance(item, PlanStep)
        yield item.text if item.target is None else f"{item.target} = {item.text}"


def _source(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function)).rstrip()


def _constant(name: str, value: Any, np_name: str) -> Iterator[str]:
    """A constant at the top of the module."""
    array = np.asarray(value.get() if hasattr(value, "get") else value)
    dtype = re.sub(r"^np\b", np_name, dtype_text(array.dtype))
    if array.size == 0:  # [] has no shape
        yield f"{name} = {np_name}.zeros({literal(array.shape)}, {dtype})"
        return
    # Python's text of a complex number has no sign of a zero.
    is_text_exact = array.dtype.kind != "c" or bool(np.all(np.real(array) * np.imag(array)))
    if array.size <= SHOWN and np.isfinite(array).all() and is_text_exact:
        text = f"{name} = {np_name}.array({array.tolist()!r}, {dtype})"
        if len(text) <= WIDTH:
            yield text
            return
        yield f"{name} = {np_name}.array("
        yield from textwrap.wrap(f"{array.tolist()!r},", WIDTH, initial_indent="    ", subsequent_indent="    ")
        yield f"    {dtype},"
        yield ")"
        return
    data = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode()
    yield f"{name} = {np_name}.frombuffer("
    yield "    base64.b85decode("
    for start in range(0, len(data), WIDTH - 12):
        yield f"        {data[start : start + WIDTH - 12]!r}"
    yield "    ),"
    yield f"    {dtype},"
    yield f").reshape({literal(array.shape)})"


def _function(plan: Plan, signature: Signature, device: bool, checks_nan: bool = False) -> Iterator[str]:
    yield f"def {signature.name}({', '.join(signature.parameters)}):"
    labels = signature.labels or signature.paths
    for name, path, label, (shape, dtype, weak) in zip(
        plan.inputs, signature.paths, labels, signature.kinds, strict=True
    ):
        if weak:
            yield f"    {name} = {path}"
            continue
        yield f"    {name} = np.asarray({path}, {dtype_text(dtype)})"
        yield f"    if {name}.shape != {literal(shape)}:"
        yield f'        raise ValueError(f"{quoted(label)} has shape {{{name}.shape}}, not {literal(shape)}")'
        if shape == ():
            yield f"    {name} = {name}[()]"
    depth = "    "
    guard = 'np.errstate(all="ignore")'
    if device:  # CuPy never warns of floating point errors, and raises those of linear algebra only on request
        guard = LINALG_ERRORS if _uses_linalg(plan) else ""
    if guard:
        yield f"    with {guard}:"
        depth = "        "
    yield from [depth + line for line in _statements(plan)] or [f"{depth}pass"]
    if checks_nan:
        arguments = [name if name in signature.positional else f"{name}={name}" for name in signature.names]
        outs = ", ".join(dict.fromkeys(plan.outputs))
        yield f"    if any(np.isnan(out).any() for out in ({outs},)):  # a zero may have met an infinity"
        yield f"        return _nan_safe_{signature.name}({', '.join(arguments)})"
    yield f"    return {signature.result(plan.outputs)}"


LINALG_ERRORS = 'cupyx.errstate(linalg="raise")'


def _uses_linalg(plan: Plan) -> bool:
    """Whether a plan or its callees may call linear algebra of the device."""
    texts = [text for each in _all_plans(plan) for text in _statements(each)]
    return any(["linalg" in text for text in [*texts, *map(_source, _helpers_of(plan).values())]])


def _caller(signature: Signature, name: str, parameters: list[str]) -> Iterator[str]:
    """A function that calls another one with the same arguments by position."""
    names = ", ".join([parameter for parameter in parameters if parameter != "*"])
    yield f"def {name}({', '.join(parameters)}):"
    yield f"    return {signature.name}({names})"


def names_in(text: str) -> set[str]:
    """All names that a module reads, defines or imports."""
    names: set[str] = set()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names
