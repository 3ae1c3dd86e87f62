"""Campaign: random programs of several arguments of unlike dtypes and layouts, in every mode.

A program is a list of statements. They are reductions along axes, sorting, selection, fancy indices, and writes through
views of views. They are cumulative operations, products and linear algebra, loops and branches of Python and func,
containers. Each runs with NumPy while it is drawn, so that it fits its operands; loops and branches of func are plain
Python there. Values are compared with their dtypes and shapes. Forward and reverse mode, compiled and not, give one
derivative, and that of differences where these have a limit.
"""

from __future__ import annotations

import ast
import dataclasses
import pickle
import random
import re
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import func
from func.errors import FuncError
from tools.fuzz.cases import Tally

QUICK = 40
REFUSED = (ValueError, IndexError, TypeError, np.linalg.LinAlgError)
"""NumPy's errors for a program without a result."""
NO_DERIVATIVE = (FuncError, np.linalg.LinAlgError)
"""func's errors without a derivative: a factor of a matrix is singular, of np.linalg.qr for example."""
LARGEST = 200
"""Elements of an array in a program."""


class Two(NamedTuple):
    """A container of two parts."""

    left: Any
    right: Any


@dataclasses.dataclass
class Pair:
    """Another one."""

    first: Any
    second: Any


func.tree.register_node(Pair, lambda pair: ((pair.first, pair.second), None), lambda _, parts: Pair(*parts))


def _scan(step: Callable[..., Any], start: Any, xs: Any) -> Any:
    """func.scan in plain Python, over one array; it wants what func wants."""
    rows = []
    for row in xs:
        new, out = step(_own(start), _own(row))
        _same_type(new, start)
        start = new
        rows.append(out)
    return _own(start), np.stack(rows)


def _own(value: Any) -> Any:
    """Results of loops and branches are separate arrays, in C order, or scalars."""
    return np.array(value, order="C")[()] if isinstance(value, np.ndarray) else value


def _same_type(new: Any, old: Any) -> None:
    if np.shape(new) != np.shape(old) or np.result_type(new) != np.result_type(old):
        raise TypeError("the carry changes its type")


def _while_loop(test: Callable[[Any], Any], step: Callable[[Any], Any], value: Any) -> Any:
    for _ in range(50):
        if not test(value):
            return _own(value)
        new = step(_own(value))
        _same_type(new, value)
        value = new
    raise TypeError("too long")


def _fori_loop(start: int, stop: int, step: Callable[[Any, Any], Any], value: Any) -> Any:
    for i in range(start, stop):
        new = step(np.int64(i), _own(value))
        _same_type(new, value)
        value = new
    return _own(value)


def _cond(test: Any, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any) -> Any:
    _same_type(yes(*operands), no(*operands))
    return _own(yes(*operands) if test else no(*operands))


def _switch(place: Any, branches: Any, *operands: Any) -> Any:
    for branch in branches:
        _same_type(branch(*operands), branches[0](*operands))
    return _own(branches[min(max(int(place), 0), len(branches) - 1)](*operands))


PLAIN = SimpleNamespace(scan=_scan, while_loop=_while_loop, fori_loop=_fori_loop, cond=_cond, switch=_switch)

# a: any array, f: of real floating-point numbers, z: of complex ones, i: of integers, p: of booleans, n: a number
# k: an axis, d: a number of repetitions, q: a comparison
EXPRESSIONS = [
    "np.sum({a}, axis={k})",
    "np.sum({a}, axis={k}, keepdims=True)",
    "np.mean({a}, axis={k})",
    "np.prod({f}, axis={k})",
    "np.max({a}, axis={k})",
    "np.min({a}, axis={k}, keepdims=True)",
    "np.var({f}, axis={k})",
    "np.std({f}, axis={k}, ddof=1)",
    "np.median({f}, axis={k})",
    "np.quantile({f}, 0.3, axis={k})",
    "np.argmax({a}, axis={k})",
    "np.argsort({f}, axis={k}, kind='stable')",
    "np.sort({a}, axis={k})",
    "np.any({p}, axis={k})",
    "np.all({p})",
    "np.count_nonzero({a} {q} {n}, axis={k})",
    "np.cumsum({a}, axis={k})",
    "np.cumprod({f}, axis={k})",
    "np.maximum.accumulate({a}, axis={k})",
    "np.diff({a}, axis={k})",
    "np.where({a} {q} {n}, {a}, {a})",
    "np.where({p}, {f}, {n})",
    "np.select([{a} {q} {n}, {a} > 1], [{a}, {n}], {f})",
    "np.clip({a}, {n}, 1.5)",
    "np.maximum({a}, {a})",
    "np.minimum({f}, {n})",
    "np.take({a}, {i} % {a}.shape[0], axis=0)",
    "np.take({a}, [0, -1, 0], axis={k})",
    "np.take_along_axis({f}, np.argsort({f}, axis={k}), axis={k})",
    "{a}[{i} % {a}.shape[0]]",
    "{a}[..., [0, -1]]",
    "{a}[::-1][..., ::2]",
    "{a}[[0, -1], ..., 0]",
    "{a}[np.array([True, False] * 20)[:{a}.shape[0]]]",
    "{a} @ {a}",
    "{a} @ np.swapaxes({a}, -1, -2)",
    "np.dot({a}, {a})",
    "np.inner({a}, {a})",
    "np.outer({a}, {a})",
    "np.tensordot({a}, {a}, axes=1)",
    "np.vecdot({a}, {a})",
    "np.einsum('...i,...i->...', {a}, {a})",
    "np.einsum('ij,kj->ik', {a}, {a})",
    "np.einsum('ij,ij->ij', {a}, {a})",
    "np.einsum('ij->j', {a})",
    "np.kron({a}, {a})",
    "np.trace({a})",
    "np.linalg.norm({a}, axis={k})",
    "np.linalg.inv(np.eye({f}.shape[-1]) * 9 + {f})",
    "np.linalg.solve(np.eye({f}.shape[-1], dtype={f}.dtype) * 9 + {f}, {f})",
    "np.linalg.det({f} + 5 * np.eye({f}.shape[-1]))",
    "np.linalg.eigvalsh({f} + np.swapaxes({f}, -1, -2))",
    "np.linalg.cholesky({f} @ np.swapaxes({f}, -1, -2) + 9 * np.eye({f}.shape[-2], dtype={f}.dtype))",
    "np.linalg.qr({f})[1] ** 2",
    "np.linalg.svd({f}, compute_uv=False)",
    "np.add.reduceat({a}, [0, 1], axis={k})",
    "np.multiply.outer({f}, {a})",
    "np.concatenate([{a}, {a}], axis={k})",
    "np.stack([{a}, {a}], axis={k})",
    "np.vstack([{a}, {a}])",
    "np.column_stack([{a}, {a}])",
    "np.repeat({a}, {d}, axis={k})",
    "np.tile({a}, ({d}, 1))",
    "np.roll({a}, {d}, axis={k})",
    "np.pad({a}, {d}, mode='{pad}')",
    "np.tril({a})",
    "np.triu({a}, 1)",
    "np.diag({a})",
    "np.flip({a}, {k})",
    "np.rot90({a})",
    "np.split({a}, 2, axis={k})[1]",
    "np.interp({f}, [0.0, 1.0, 3.0], [1.0, 0.5, 2.0])",
    "np.searchsorted([0.2, 0.6, 1.1], {f})",
    "np.bincount({i}.ravel() % 4, weights={f}.ravel()[0] * np.ones({i}.size))",
    "np.digitize({f}, [0.4, 0.9])",
    "np.convolve({f}.ravel(), [1.0, 0.5])",
    "np.trapezoid({f}, axis={k})",
    "np.gradient({f}, axis={k})",
    "np.fft.rfft({f}, axis={k})",
    "np.fft.ifft({a}, axis={k})",
    "np.real({a})",
    "np.imag({a})",
    "np.conj({a})",
    "np.abs({a})",
    "np.angle({z})",
    "{f} + 1j * {f}",
    "{a}.astype(np.float32)",
    "{a}.astype(np.float64, copy=False)",
    "{a}.astype(np.complex64)",
    "{f}.astype(np.int32)",
    "{a} {q} {n}",
    "{i} % 3",
    "{i} // 2",
    "-{i} >> 1",
    "{i} & 3",
    "{p} & {p}",
    "~{p}",
    "{p} + {p}",
    "{p} * {f}",
    "{i} / 3",
    "{i} * {f}",
    "{i} ** 2",
    "{f} ** {i}",
    "{f} + w",
    "{i} * w",
    "{z} * w",
    "{i} + n",
    "{f} ** n",
    "{f} ** 2",
    "{f} / ({f} + 4)",
    "{f} % 0.7",
    "np.floor({f} * 3)",
    "np.sqrt(np.abs({f}) + 0.1)",
    "np.exp(-{f})",
    "np.log1p(np.abs({f}))",
    "np.tanh({a})",
    "np.sin({z})",
    "np.arctan2({f}, {f} + 3)",
    "np.hypot({f}, {f})",
    "np.logaddexp({f}, {f})",
    "np.sign({a})",
    "np.copysign({f}, {f} - 0.5)",
    "np.rint({f} * 2)",
    "{a} + {a}",
    "{a} - {a}[..., :1]",
    "{a} * {a}",
    "{a} * np.expand_dims({a}, -1)",
    "{n} - {a}",
    "np.float32({n}) * {a}",
    "np.array([{f}.sum(), {i}.sum(), {n}])",
    "np.array([{a}, {a}])",
    "np.zeros_like({a})",
    "np.full_like({a}, {n})",
    "np.ones({a}.shape[-1:], dtype=np.float32) * {a}",
    "np.arange({a}.shape[-1]) * {a}",
    "np.broadcast_to({a}, (2, *{a}.shape))",
    "np.apply_along_axis(lambda v: v / (1 + np.sum(np.abs(v))), {k}, {f})",
    "np.nan_to_num({f} / np.maximum({f} - 1, 0))",
    "np.cross({f}[..., :3], {f}[..., :3])",
    "np.ptp({f}, axis={k})",
    "np.average({f}, axis={k}, weights=np.abs({f}) + 1)",
    "np.average({f})",
    "np.heaviside({f} - 0.5, 0.5)",
    "{a}.T",
    "{a}.reshape(-1)",
    "{a}.reshape({a}.shape[::-1])",
    "{a}.ravel('F')",
    "{a}.ravel('K')",
    "{a}[None]",
    "{a}[0]",
    "{a}[..., 0]",
    "{a}[1:]",
    "np.swapaxes({a}, 0, -1)",
    "np.moveaxis({a}, 0, -1)[..., ::-1]",
    "{a}.copy()",
    "np.asfortranarray({a})",
    "{a}.sum()",
    "{f}.mean()",
    "{f}.max(initial=0.5)",
    "{a}.sum(dtype=np.float32)",
    "{f}.sum(where={f} {q} {n})",
]
"""The value that a name may be bound to."""
READING = [
    "{a}[{p}]",
    "{f}[{f} {q} {n}]",
    "np.unique({i})",
    "np.nonzero({p})[0]",
    "np.flatnonzero({f} {q} {n})",
    "{f}.item(0) * 1.0",
    "np.array_equal({a}, {a})",
    "{f} if np.sum({a}) {q} {n} else {f} * 3",
]
"""The same, by statements that read values: under jit they are refused."""
WRITES = [
    "{o}[0] = {n}",
    "{o}[..., -1] += {n}",
    "{o}[::2] *= 2",
    "{o}[..., [0, -1]] = {n}",
    "{o}[{o} {q} {n}] = 1",
    "{o}[{i} % {o}.shape[0]] = {n}",
    "{o}[{i} % {o}.shape[0]] += 1",
    "{o}[...] = {a}",
    "{o}[0] = {a}[0]",
    "{o}[::-1][..., ::2][...] = {n}",
    "{o}.T[0][...] -= {n}",
    "{o}.reshape(-1)[1:] = {o}.reshape(-1)[:-1]",
    "{o}[np.arange({o}.shape[0]), ..., 0] = {n}",
    "{o} += {a}",
    "{o} *= {a}",
    "np.add.at({o}, {i} % {o}.shape[0], {n})",
    "np.multiply({o}, {a}, out={o})",
    "np.copyto({o}, {a}, where={o} {q} {n})",
    "np.put_along_axis({o}, np.argmax({o}, axis={k}, keepdims=True), {n}, axis={k})",
    "np.cumsum({o}, axis={k}, out={o})",
    "np.fill_diagonal({o}, {n})",
    "{o}.sort(axis={k})",
    "{o}.ravel()[...] = {n}",
    "{o}[1:][0] = {a}",
    "{o}[..., None][0] = {n}",
    "{o}[np.ix_([0, 1], [1, 0])] += {n}",
    "{o}.flat[1] = {n}",
    "np.place({o}, {o} {q} {n}, [1, 2])",
    "np.putmask({o}, {o} {q} {n}, {o})",
]
BLOCKS = [
    """for i in range({d} + 2):
    {new} = np.sum({a}[..., i % {a}.shape[-1]]) * (i + 1)""",
    """{new} = {f} * 1.0
for i in range({d} + 3):
    {new} = {new} * 0.5 + np.sin({new})""",
    """{new} = {f} * 1.0
for i in range({new}.shape[0]):
    {new}[i] = {new}[i - 1] * 0.5 + i""",
    """{new} = {f} * 1.0
for i in range(1, {new}.shape[0]):
    {new}[i] += np.sum({new}[:i])""",
    """{new} = 0
for row in {a}:
    {new} = {new} + row * 2""",
    """{new} = []
for i, row in enumerate({a}):
    {new}.append(np.sum(row) if i % 2 else np.max(row))
{new} = np.stack({new})""",
    """{new} = 0
for i in range(4):
    if i == n:
        continue
    {new} = {new} + {f} ** i""",
    """{new} = np.zeros_like({f})
for i in range({new}.shape[0] - 1, -1, -1):
    {new}[i:] += {f}[: {new}.shape[0] - i]""",
    """{new}, {new}_rows = m.scan(lambda c, s: (c * 0.5 + np.sum(s), c + s), {f}, {f})""",
    """{new} = m.scan(lambda c, s: (c + s, np.tanh(c)), {f}[0], {f})[1]""",
    """{new} = m.while_loop(lambda v: np.sum(np.abs(v)) > 3, lambda v: v * 0.7, {f})""",
    """{new} = m.fori_loop(0, {d} + 1, lambda i, v: v * 0.9 + i, {f})""",
    """{new} = m.cond(np.sum({a}) {q} {n}, lambda v: np.sin(v), lambda v: v * 2, {f})""",
    """{new} = m.switch({i}.ravel()[0] % 3, [lambda v: v + 1, lambda v: v * v, lambda v: -v], {f})""",
    """{new}_box = {{'a': {a}, 'b': ({a}, [{a}])}}
{new} = {new}_box['b'][1][0] if {a}.ndim > 1 else {new}_box['a']""",
    """{new} = Pair({a}, {a}).first""",
    """{new} = sum([np.sum(v) for v in ({a}, {a}, {a})])""",
    """{new} = {a} if n > 1 else {f}""",
    """def {new}_f(u, scale={n}):
    return u * scale + {f}
{new} = {new}_f({f})""",
    """with np.errstate(all='ignore'):
    {new} = np.where({f} {q} {n}, np.log(np.abs({f})), {f})""",
]
SLOT = re.compile(r"\{([aofzip])\}")
KINDS = {"f": "f", "z": "c", "i": "iu", "p": "b", "a": "fciub", "o": "fciu"}


class Writer:
    """Draws the statements of a program and runs them with NumPy."""

    def __init__(self, choices: random.Random, arguments: dict[str, Any]) -> None:
        self.choices = choices
        self.env: dict[str, Any] = {"np": np, "m": PLAIN, "Pair": Pair, "Two": Two}
        self.lines: list[str] = []
        self.made = 0
        for name, value in arguments.items():
            self.env[name] = value
        self.arrays = [name for name, value in arguments.items() if isinstance(value, np.ndarray)]
        self.reads_values = choices.random() < 0.1
        self.owned: list[str] = []
        """The names of arrays that may be written."""

    def name_of(self, kinds: str, names: list[str]) -> str | None:
        fitting = [name for name in names if np.asarray(self.env[name]).dtype.kind in kinds]
        return self.choices.choice(fitting[::-1]) if fitting else None

    def filled(self, template: str, new: str) -> str | None:
        """The template with operands, or None where there are none."""

        def operand(match: re.Match[str]) -> str:
            letter = match.group(1)
            name = self.name_of(KINDS[letter], self.owned if letter == "o" else self.arrays)
            if name is None:
                raise LookupError
            return name

        # the written array is one array throughout
        try:
            if "{o}" in template:
                template = template.replace("{o}", operand(re.match(SLOT, "{o}")))  # type: ignore[arg-type]
            text = SLOT.sub(operand, template)
        except LookupError:
            return None
        choose = self.choices.choice
        for word, possible in {
            "{new}": [new],
            "{k}": ["-1", "0", "1"],
            "{d}": ["1", "2", "3"],
            "{n}": ["0.5", "1", "0.25", "2"],
            "{q}": [">", "<=", ">="],
            "{pad}": ["constant", "edge", "reflect", "wrap"],
        }.items():
            while word in text:
                text = text.replace(word, choose(possible), 1 if word != "{new}" else -1)
        return text.replace("{{", "{").replace("}}", "}")

    def statement(self) -> None:
        kind = self.choices.choice(["new", "new", "new", "write", "write", "block"])
        new = f"v{self.made}"
        if kind == "write" and self.owned:
            template = self.choices.choice(WRITES)
        elif kind == "block":
            template = self.choices.choice(BLOCKS)
        else:
            template = "{new} = " + self.choices.choice(
                READING if self.reads_values and self.choices.random() < 0.3 else EXPRESSIONS
            )
        text = self.filled(template, new)
        if text is None:
            return
        trial = {name: _copied(value) for name, value in self.env.items()} if "{o}" in template else dict(self.env)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                exec(text, trial)
        except Exception:
            return  # NumPy refuses it
        if new in trial:
            value = trial[new]
            if not isinstance(value, (np.ndarray, np.generic)) or not 0 < value.size <= LARGEST or value.ndim > 3:
                return
            if not np.all(np.isfinite(value)) or np.max(np.abs(value)) > 1e4:
                return
            self.arrays.append(new)
            if isinstance(value, np.ndarray) and value.flags.writeable and value.dtype.kind in KINDS["o"]:
                self.owned.append(new)
        self.lines += text.split("\n")
        if "{o}" in template:
            names = dict(self.env)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(text, names)
            self.env = names
        else:
            self.env = trial
        self.made += 1


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


DTYPES = ["float64", "float64", "float64", "float32", "complex128", "int64", "int32", "bool", "uint8", "complex64"]
SHAPES = [(3,), (2, 3), (3, 3), (1, 3), (2, 1, 3), (3, 1), (2, 3, 3), (4, 3)]


def drawn_array(choices: random.Random, dtype: str) -> Any:
    """An array of distinct values in some layout."""
    shape = choices.choice(SHAPES)
    size = int(np.prod(shape))
    numbers = (np.arange(1, size + 1) * choices.choice([31, 57, 83, 1]) + choices.randrange(96)).reshape(shape) % 97
    if dtype.startswith("complex"):
        values: Any = numbers / 61.0 + 1j * np.flip(numbers) / 53.0
    elif dtype.startswith("float"):
        values = numbers / 61.0 - choices.choice([0.0, 0.5])
    else:
        values = numbers % (2 if dtype == "bool" else 5)
    layout = choices.choice(["C", "C", "F", "strided", "reversed", "read-only", "permuted"])
    if layout == "F":
        out = np.zeros(shape[::-1], dtype).T
    elif layout == "strided":
        out = np.zeros([2 * n for n in shape], dtype)[tuple([slice(None, None, 2)] * len(shape))]
    elif layout == "permuted":
        out = np.swapaxes(np.zeros((*shape[1:], shape[0]), dtype), 0, -1) if len(shape) == 2 else np.zeros(shape, dtype)
    else:
        out = np.zeros(shape, dtype)
        out = out[::-1] if layout == "reversed" else out
    out[...] = values
    if layout == "read-only":
        out.flags.writeable = False
    return out


def fresh(value: Any, shift: Any = 0.0) -> Any:
    """A copy that lies in memory as the value does."""
    if isinstance(value, np.generic) or not isinstance(value, np.ndarray):
        return value
    room = np.zeros(6 * value.size + 64, value.dtype)
    out = np.lib.stride_tricks.as_strided(room[3 * value.size :], value.shape, value.strides)
    out[...] = value + np.asarray(shift, value.dtype) if value.dtype.kind in "fc" else value
    if not value.flags.writeable:
        out.flags.writeable = False
    return out


def stacked(value: Any, shift: float = 0.0) -> Any:
    """A batch of two: a value, and the value moved. Each element lies in memory as the value does.

    Views, and so the reach of a write, are then the same for an element as for the value alone.
    """
    elements = [fresh(value), fresh(value, shift)]
    if not isinstance(value, np.ndarray):
        return np.stack(elements)
    room = np.zeros((2, 6 * value.size + 64), value.dtype)
    strides = (room.strides[0], *value.strides)
    out = np.lib.stride_tricks.as_strided(room[:, 3 * value.size :], (2, *value.shape), strides)
    out[...] = elements
    if not value.flags.writeable:
        out.flags.writeable = False
    return out


def precision(values: list[Any]) -> float:
    """How far results may differ, by the least precise of some values."""
    kinds = {np.result_type(value) for value in values}
    return 2e-3 if kinds & {np.dtype("float32"), np.dtype("complex64")} else 1e-7


def difference_of(got: list[Any], expected: list[Any], rtol: float) -> str | None:
    """How the leaves of two results differ, or None."""
    if len(got) != len(expected):
        return f"{len(got)} results, right: {len(expected)}"
    for place, (one, other) in enumerate(zip(got, expected, strict=True)):
        if np.shape(one) != np.shape(other) or np.result_type(one) != np.result_type(other):
            found, right = [f"{np.result_type(y)}{np.shape(y)}" for y in (one, other)]
            return f"result {place} is {found}, right: {right}"
        if np.ndim(one) and isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
            return f"result {place} is a {type(one)}, right: {type(other)}"
        size = max([1.0, float(np.max(np.abs(np.nan_to_num(np.asarray(other, complex))), initial=0.0))])
        if not np.allclose(one, other, rtol=rtol, atol=rtol * size, equal_nan=True):
            return f"result {place} is {one!r}, right: {other!r}"
    return None


class Case:
    """One program with its arguments."""

    def __init__(self, choices: random.Random) -> None:
        choose = choices.choice
        x = drawn_array(choices, "float64")
        y = drawn_array(choices, choose(DTYPES))
        parts = [drawn_array(choices, choose(DTYPES)), drawn_array(choices, choose(DTYPES))]
        container: Any = choose([tuple, list, lambda t: {"q": t[1], "p": t[0]}, lambda t: Two(*t), lambda t: Pair(*t)])
        self.w: Any = choose([0.75, np.float64(0.5), np.float32(1.5), np.array(0.25), 2])
        self.n = choose([0, 1, 2, 3])
        self.arguments = (x, y, container(parts), self.w)
        self.precision = 0.0
        arguments = {"x": x, "y": y, "t0": parts[0], "t1": parts[1]}
        writer = Writer(choices, {**arguments, "w": self.w, "n": self.n})
        for _ in range(choices.randint(2, 12)):
            writer.statement()
        self.reads_values = writer.reads_values
        names = writer.arrays[4:] or ["x"]
        shown = sorted({choices.choice(names[::-1]) for _ in range(4)})
        result = choose(["[{}]", "({},)", "{{'a': [{}]}}", "Two([{}], None)", "Pair({}, 1)"])
        result = result.format(", ".join(shown) if "Pair(" not in result else shown[0])
        leaves = func.tree.leaves(container(["t0", "t1"]))
        unpack = f"{', '.join(leaves)} = m.leaves(t)"
        lines = ["def f(x, y, t, w, n):", *[f"    {line}" for line in [unpack, *writer.lines, f"return {result}"]]]
        self.text = "\n".join(lines)

    def shown(self) -> str:
        """The program and its arguments."""
        words = []
        for leaf in func.tree.leaves(self.arguments):
            if isinstance(leaf, np.ndarray):
                words.append(f"{leaf.dtype} strides {leaf.strides} {leaf.tolist()}")
            else:
                words.append(f"{type(leaf).__name__} {leaf}")
        return "\n".join([self.text, *words, f"n = {self.n}"])

    def defined(self, words: Any, numpy: Any = np) -> Callable[..., Any]:
        """The function, with plain loops or func's."""
        namespace: dict[str, Any] = {"np": numpy, "m": words, "Two": Two, "Pair": Pair}
        tree = (
            ast.parse(self.text) if numpy is np else ast.fix_missing_locations(Products().visit(ast.parse(self.text)))
        )
        exec(compile(tree, "<program>", "exec"), namespace)
        return namespace["f"]  # type: ignore[no-any-return]

    def is_decided_by_rounding(self, rtol: float) -> bool:
        """Whether the results are others where each function that rounds gives other last digits.

        So are orders, places, signs and steps of values that would be equal but for rounding. Values that are equal
        without rounding stay so here, so that their ties are compared.
        """
        plain, rounding = self.defined(PLAIN), self.defined(PLAIN, Rounding(np, np.random.default_rng(0)))
        for shift in (0.0, 0.01):

            def run(f: Callable[..., Any], shift: float = shift) -> list[Any]:
                return func.tree.leaves(f(*func.tree.map(lambda y: fresh(y, shift), self.arguments), self.n))  # type: ignore[no-any-return]

            try:
                first = run(plain)
                if any([difference_of(run(rounding), first, rtol) is not None for _ in range(8)]):
                    return True
            except REFUSED:
                continue
        return False


_REDUCTIONS = "sum prod mean std var cumsum cumprod average trace quantile median trapezoid convolve"
_PRODUCTS = "dot inner outer tensordot einsum matmul vecdot kron cross interp gradient"
_ELEMENTARY = "exp log log1p logaddexp sin cos tanh hypot arctan2 angle abs"
_SOLVERS = "qr svd solve norm inv eigvalsh det cholesky rfft ifft"
ROUNDED = frozenset(" ".join([_REDUCTIONS, _PRODUCTS, _ELEMENTARY, _SOLVERS]).split())
"""Functions that another mode computes in another order, or by another implementation."""


class Rounding:
    """NumPy, or a module of it, whose functions that round give results with other last digits."""

    def __init__(self, module: Any, r: np.random.Generator) -> None:
        self._module, self._r = module, r

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            return Rounding(value, self._r)
        if name not in ROUNDED:
            return value
        return lambda *args, **kwargs: self._rounded(value(*args, **kwargs))

    def _rounded(self, result: Any) -> Any:
        if isinstance(result, tuple):
            entries = [self._rounded(entry) for entry in result]
            return type(result)(*entries) if hasattr(result, "_fields") else tuple(entries)
        if not isinstance(result, (np.ndarray, np.generic)) or result.dtype.kind not in "fc":
            return result
        noise = 4 * np.finfo(result.dtype).eps * self._r.standard_normal(result.shape)
        return (result * (1 + noise)).astype(result.dtype)[()]


class Products(ast.NodeTransformer):
    """Matrix products by the function, which `Rounding` sees."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        function = ast.Attribute(ast.Name("np", ast.Load()), "matmul", ast.Load())
        return ast.Call(function, [node.left, node.right], [])


FUNC = SimpleNamespace(
    leaves=func.tree.leaves,
    scan=func.scan,
    while_loop=func.while_loop,
    fori_loop=func.fori_loop,
    cond=func.cond,
    switch=func.switch,
)
PLAIN.leaves = func.tree.leaves


def exported(f: Callable[..., Any], leaves: list[Any]) -> Any:
    """The results by exported source."""
    namespace: dict[str, Any] = {}
    exec(func.to_source(f)(*leaves), namespace)
    return namespace["f"](*leaves)


def value_modes(f: Callable[..., Any], n: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All ways to compute the leaves of a result."""
    leaves = func.tree.leaves
    yield "func", lambda *a: leaves(f(*a, n))
    yield "vjp", lambda x, *a: leaves(func.vjp(lambda b: f(b, *a, n), x)[0])
    for compiler in ("llvm", "numpy"):
        jitted = func.jit(f, static_argnames="n", compiler=compiler)
        yield f"jit, {compiler}", lambda *a, g=jitted: leaves(g(*a, n))
        yield f"the second call, {compiler}", lambda *a, g=jitted: leaves(g(*a, n))
    donated = func.jit(f, static_argnums=4, donate_argnums=(0, 2))
    yield "donated", lambda *a: leaves(donated(*a, n))

    def flat(structure: Any) -> Callable[..., Any]:
        return lambda *a: leaves(f(*func.tree.unflatten(structure, a), n))

    def saved(*a: Any) -> Any:
        program = func.make_program(flat(func.tree.structure(a)))(*leaves(a))
        return leaves(pickle.loads(pickle.dumps(program))(*leaves(a)))

    def written(*a: Any) -> Any:
        def f(*b: Any) -> Any:
            return flat(func.tree.structure(a))(*b)

        return leaves(exported(f, leaves(a)))

    yield "a pickled program", saved
    yield "exported source", written


def check(case: Case, tally: Tally) -> None:
    """All modes of a program."""
    plain, f = case.defined(PLAIN), case.defined(FUNC)
    leaves = func.tree.leaves
    again = lambda shift=0.0: func.tree.map(lambda y: fresh(y, shift), case.arguments)  # noqa: E731
    expected = leaves(plain(*again(), case.n))
    if any([np.size(y) and not np.max(np.abs(np.nan_to_num(y))) < 1e9 for y in expected]):
        return
    rtol = case.precision = precision(
        [*expected, *leaves(case.arguments)] + [np.float32(0)] * ("32" in case.text or "64)" in case.text)
    )
    for mode, run in value_modes(f, case.n):
        compared(mode, lambda run=run: run(*again()), expected, rtol, tally)  # type: ignore[misc]
    try:
        moved = leaves(plain(*again(0.01), case.n))
    except REFUSED:
        moved = []  # there is no batch of both
    if [np.shape(y) for y in moved] == [np.shape(y) for y in expected] and isinstance(case.w, np.generic):
        batch = func.tree.map(lambda y: stacked(y, 0.01), case.arguments)
        both = [np.stack([one, other]) for one, other in zip(expected, moved, strict=True)]
        compared("vmap", lambda: leaves(func.vmap(lambda *a: f(*a, case.n))(*batch)), both, rtol, tally)
        compared(
            "vmap of jit", lambda: leaves(func.vmap(func.jit(lambda *a: f(*a, case.n)))(*batch)), both, rtol, tally
        )
    check_derivatives(case, plain, f, rtol, tally)


def compared(
    mode: str,
    run: Callable[[], Any],
    expected: list[Any],
    rtol: float,
    tally: Tally,
    refusals: tuple[type[Exception], ...] = (FuncError,),
) -> bool:
    """One mode against the truth; refusals by name are counted."""
    try:
        got = run()
    except refusals as error:
        tally.refused(error)
        return False
    tally.checked()
    wrong = difference_of(got, expected, rtol)
    assert wrong is None, f"under {mode}: {wrong}"
    return True


def weighed(values: list[Any]) -> Any:
    """A real number that depends on every element of every array."""
    total: Any = 0.0
    for place, y in enumerate(values):
        if np.result_type(y).kind not in "fc":
            continue
        weights = np.cos(np.arange(1.0, np.size(y) + 1.0) + place).reshape(np.shape(y))
        total = total + np.sum(weights * np.tanh(np.real(y) / 5.0)) + np.sum(weights * np.tanh(np.imag(y) / 7.0))
    return total


def check_derivatives(case: Case, plain: Any, f: Any, rtol: float, tally: Tally) -> None:
    """Both modes, compiled and not, with respect to all floating-point arrays."""
    leaves = func.tree.leaves(case.arguments)
    structure = func.tree.structure(case.arguments)
    places = [k for k, leaf in enumerate(leaves) if np.result_type(leaf).kind in "fc" and np.ndim(leaf)]
    directions = [np.cos(np.arange(1.0, leaves[k].size + 1)).reshape(leaves[k].shape) for k in places]
    directions = [d.astype(leaves[k].dtype) for d, k in zip(directions, places, strict=True)]

    def loss(function: Any) -> Callable[..., Any]:
        def of_active(*active: Any) -> Any:
            now = [fresh(leaf) for leaf in leaves]
            for k, value in zip(places, active, strict=True):
                now[k] = value
            return weighed(func.tree.leaves(function(*func.tree.unflatten(structure, now), case.n)))

        return of_active

    g, start = loss(f), lambda: [fresh(leaves[k]) for k in places]
    try:
        check_modes(g, loss(plain), start, directions, rtol, tally)
    except AssertionError:
        if not directions or not is_at_kink(g, start(), directions, 100 * rtol):
            raise


def check_modes(
    g: Any, plain: Any, start: Callable[[], list[Any]], directions: list[Any], rtol: float, tally: Tally
) -> None:
    """The derivatives of a function of some arrays in all modes, against each other and those of plain NumPy."""
    numbers = tuple(range(len(directions)))
    if type(plain(*start())) is float:
        return  # no result is a floating-point number
    try:
        gradients = list(func.grad(g, argnums=numbers)(*start()))
    except NO_DERIVATIVE as error:
        tally.refused(error)
        return
    for value, gradient in zip(start(), gradients, strict=True):
        same = gradient.shape == value.shape and gradient.dtype == value.dtype
        assert same, f"a gradient is {gradient.dtype}{gradient.shape}"
    rough = 100 * rtol
    if all([np.all(np.isfinite(gradient)) for gradient in gradients]):
        slope = sum([np.sum(np.real(np.conj(d) * gr)) for d, gr in zip(directions, gradients, strict=True)])
        tangent = lambda h: [func.jvp(h, tuple(start()), tuple(directions))[1]]  # noqa: E731
        expected = [np.float64(slope)]
        compared("jvp against grad", lambda: [np.float64(tangent(g)[0])], expected, rough, tally, NO_DERIVATIVE)
        compared("jvp of jit", lambda: [np.float64(tangent(func.jit(g))[0])], expected, rough, tally, NO_DERIVATIVE)
        linear = lambda: [np.float64(func.linearize(g, *start())[1](*directions))]  # noqa: E731
        compared("linearize", linear, expected, rough, tally, NO_DERIVATIVE)
        if rtol < 1e-6:  # differences of numbers in single precision say nothing
            check_slope(plain, start(), directions, slope, tally)
    for compiler in ("llvm", "numpy"):
        jitted = func.jit(func.grad(g, argnums=numbers), compiler=compiler)
        compared(
            f"jit of grad, {compiler}",
            lambda jitted=jitted: list(jitted(*start())),
            gradients,
            rough,
            tally,
            NO_DERIVATIVE,
        )  # type: ignore[misc]
    compared(
        "grad of jit",
        lambda: list(func.grad(func.jit(g), argnums=numbers)(*start())),
        gradients,
        rough,
        tally,
        NO_DERIVATIVE,
    )
    batch = [stacked(value) for value in start()]
    twice = [np.stack([gradient, gradient]) for gradient in gradients]
    compared(
        "vmap of grad",
        lambda: list(func.vmap(func.grad(g, argnums=numbers))(*batch)),
        twice,
        rough,
        tally,
        NO_DERIVATIVE,
    )


def is_at_kink(g: Any, start: list[Any], directions: list[Any], rtol: float) -> bool:
    """Whether a point that differs by rounding has another derivative. Each mode may order elements differently that
    are equal but for their last digit.
    """
    r = np.random.default_rng(0)

    def slope(scale: float) -> Any:
        near = [x * (1 + scale * r.standard_normal(x.shape)).astype(x.dtype) for x in start]
        return func.jvp(g, tuple(near), tuple(directions))[1]

    first, rounding = slope(0.0), 8 * max([float(np.finfo(x.dtype).eps) for x in start])
    return not all([np.allclose(slope(rounding), first, rtol=rtol, atol=rtol) for _ in range(8)])


def check_slope(g: Any, start: list[Any], directions: list[Any], slope: Any, tally: Tally) -> None:
    """A derivative against differences to both sides, where these agree."""

    def moved(step: float) -> Any:
        return g(*[fresh(value, step * direction) for value, direction in zip(start, directions, strict=True)])

    try:
        middle = moved(0.0)
        slopes = [(moved(step) - middle) / step for step in (1e-6, -1e-6, 1e-5, -1e-5)]
    except REFUSED:
        return  # the function ends here
    if all([np.allclose(one, slopes[0], rtol=1e-4, atol=1e-4) for one in slopes]):
        tally.checked()
        right = (slopes[0] + slopes[1]) / 2
        assert np.allclose(slope, right, rtol=1e-3, atol=1e-4), f"slope {slope}, by differences {right}"


def case(choices: random.Random, tally: Tally) -> None:
    """One program, in all modes."""
    program = Case(choices)
    tally.show(program.shown())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            program.defined(PLAIN)(*func.tree.map(fresh, program.arguments), program.n)
        except REFUSED:
            return  # a name that a shrunk program lacks
        try:
            check(program, tally)
        except AssertionError:
            if not program.is_decided_by_rounding(program.precision):
                raise
