"""Campaign: methods and attributes of arrays, operators, indices and ufunc methods, against NumPy.

A program is one statement on an array `x` of any layout or a scalar, and operands. It is a method with its documented
arguments, an attribute or its setter, or an operator with arrays, scalars, numbers and lists on either side. It is an
in-place operator, an index of any kind, an assignment to one, or a method of a ufunc. A write to the result may follow.
The result and all arrays afterwards must be NumPy's (value, dtype, shape, scalar or array, kind of error). This also
compares views and copies. Derivatives are compared with differences.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tools.fuzz.cases import Tally
from tools.fuzz.functions import (
    ABSENT,
    BOOL,
    Call,
    Domain,
    Draw,
    Env,
    Leaf,
    Outcome,
    Tester,
    axes,
    axis,
    dtype,
    flat,
    indices,
    laid_out_like,
    mask,
    number,
    one_of,
    outcome,
    precision_of,
)

QUICK = 800
Statement = Callable[..., Any]


@dataclass
class Program(Call):
    """A statement; the result is what it gives, then the arrays that it may have written."""

    statement: Statement = operator.pos
    rounds: bool = False

    def run(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        arrays = [laid_out_like(value) if type(value) is np.ndarray else value for value in values]
        result = self.statement(*arrays)
        return (result, *[array for array in arrays if not isinstance(array, (list, tuple))])

    def __str__(self) -> str:
        names = "xyzuvw"
        return "; ".join([*[f"{n} = {shown(leaf)}" for n, leaf in zip(names, self.args, strict=False)], self.name])


def shown(leaf: Leaf) -> str:
    return str(Call("", [leaf], {}))[1:-1]


# Methods


def wide_shape(r: Draw, env: Env) -> Any:
    size = np.size(env["x"].value)
    return r.choose([(size,), (-1,), -1, size, (1, size), (size, 1), (-1, 1), (2, -1), (-1, 3), (2, 2), ()])


def fill_value(r: Draw, env: Env) -> Any:
    return number(kinds="iufc")(r, env)


def values_for(r: Draw, env: Env) -> Any:
    return Leaf(r.array(r.choose([(), (1,), (2,), (3,)])))


def axes_order(r: Draw, env: Env) -> Any:
    rank = np.ndim(env["x"].value)
    order = tuple(r.rng.permutation(rank).tolist())
    return r.choose([order, None, tuple([k - rank for k in order]), list(order)])


def choice_arrays(r: Draw, env: Env) -> Any:
    return [np.asarray(r.array(r.choose([(3,), ()]), "f")) for _ in range(4)]


def sort_key(r: Draw, env: Env) -> Any:
    n = max(np.shape(env["x"].value)[-1:] or (1,))
    return r.integer(-n, max(n - 1, 0)) if n else 0


def output(r: Draw, env: Env) -> Any:
    """Drawn when the result is known."""
    return ABSENT


STATISTICS: dict[str, Domain] = {
    "axis": axes,
    "dtype": dtype(),
    "out": output,
    "keepdims": BOOL,
    "initial": number(low=0, kinds="iuf"),
    "where": mask,
}
EXTREMA = {key: STATISTICS[key] for key in ("axis", "out", "keepdims", "initial", "where")}
TRUTH = {key: STATISTICS[key] for key in ("axis", "out", "keepdims", "where")}
SPREAD = {
    "axis": axes,
    "dtype": dtype("fc"),
    "out": output,
    "ddof": one_of(0, 1, 0.5),
    "keepdims": BOOL,
    "where": mask,
}
MEANS = {key: value for key, value in STATISTICS.items() if key != "initial"} | {"dtype": dtype("fc")}
ORDER = one_of("C", "F", "A", "K")
METHODS: dict[str, tuple[int, dict[str, Domain]]] = {
    **{name: (0, STATISTICS) for name in ("sum", "prod")},
    **{name: (0, EXTREMA) for name in ("max", "min")},
    **{name: (0, TRUTH) for name in ("any", "all")},
    "mean": (0, MEANS),
    **{name: (0, SPREAD) for name in ("std", "var")},
    **{name: (0, {"axis": axis, "out": output, "keepdims": BOOL}) for name in ("argmax", "argmin")},
    **{name: (0, {"axis": axis, "dtype": dtype(), "out": output}) for name in ("cumsum", "cumprod")},
    "reshape": (1, {"shape": wide_shape, "order": one_of("C", "F", "A"), "copy": one_of(None, True, False)}),
    "ravel": (0, {"order": ORDER}),
    "flatten": (0, {"order": ORDER}),
    "copy": (0, {"order": ORDER}),
    "transpose": (0, {"axes": axes_order}),
    "swapaxes": (2, {"axis1": axis, "axis2": axis}),
    "squeeze": (0, {"axis": axes}),
    "diagonal": (0, {"offset": one_of(0, 1, -1), "axis1": one_of(0, 1, -1), "axis2": one_of(1, 0, -1)}),
    "trace": (0, {"offset": one_of(0, 1, -1), "axis1": one_of(0, 1), "axis2": one_of(1, 0), "dtype": dtype("fc")}),
    "clip": (0, {"min": fill_value, "max": fill_value, "out": output}),
    "round": (0, {"decimals": one_of(0, 1, -1, 2), "out": output}),
    **{name: (0, {}) for name in ("conj", "conjugate", "nonzero", "tolist", "item", "__copy__", "__len__")},
    "astype": (
        1,
        {
            "dtype": dtype(),
            "order": ORDER,
            "casting": one_of("unsafe", "same_kind", "safe", "no", "equiv"),
            "subok": BOOL,
            "copy": BOOL,
        },
    ),
    "view": (0, {}),
    "fill": (1, {"value": fill_value}),
    "put": (2, {"indices": indices, "values": values_for, "mode": one_of("raise", "wrap", "clip")}),
    "take": (1, {"indices": indices, "axis": axis, "mode": one_of("raise", "wrap", "clip")}),
    "repeat": (1, {"repeats": one_of(2, 0, 1, [2]), "axis": axis}),
    "compress": (1, {"condition": one_of([True, False], [True], [False, True, True]), "axis": axis}),
    "choose": (1, {"choices": choice_arrays, "mode": one_of("raise", "wrap", "clip")}),
    "sort": (0, {"axis": axis, "kind": one_of(None, "stable", "quicksort"), "stable": one_of(None, True)}),
    "argsort": (0, {"axis": axis, "kind": one_of(None, "stable"), "stable": one_of(None, True)}),
    "partition": (1, {"kth": sort_key, "axis": axis}),
    "argpartition": (1, {"kth": sort_key, "axis": axis}),
    "searchsorted": (1, {"v": values_for, "side": one_of("left", "right")}),
    "dot": (1, {"b": lambda r, env: Leaf(r.array((np.shape(env["x"].value)[-1],) if np.ndim(env["x"].value) else ()))}),
    "__array_namespace__": (0, {}),
}
ONLY_BY_NAME = {"keepdims", "initial", "where", "stable", "copy", "mode"}
"""Arguments that some methods take by name only."""
DIFFERENT_ORDER = {"argpartition", "partition"}
"""Methods whose result leaves an order open."""
ATTRIBUTES = ["T", "mT", "real", "imag", "shape", "ndim", "size", "itemsize", "nbytes", "dtype"]


def option(name: str, value: Any, names: list[str], args: list[Leaf]) -> str:
    """The text of an argument; leaves become operands."""
    if isinstance(value, Leaf):
        args.append(value)
        return "xyzuvw"[len(args) - 1]
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()}, '{value.dtype}')"
    if isinstance(value, list) and any([isinstance(item, np.ndarray) for item in value]):
        return f"[{', '.join([option(name, item, names, args) for item in value])}]"
    if isinstance(value, type):
        return f"np.{value.__name__}"
    return repr(value)


def any_array(r: Draw, shape: tuple[int, ...] | None = None, kinds: str = "biufc") -> Leaf:
    """The array of a program, or a NumPy scalar."""
    x = r.array(shape, kinds)
    return Leaf(x if isinstance(x, np.ndarray) else np.asarray(x)[()], written=True)


def method(r: Draw) -> tuple[str, list[Leaf]]:
    """A method with arguments."""
    name = r.choose(list(METHODS))
    required, domains = METHODS[name]
    if name == "choose":
        x = Leaf(r.rng.integers(0, 4, 3), written=True, static=True)
    elif name == "searchsorted":
        x = Leaf(np.sort(r.values((3,), r.dtype("if"))), written=True)
    else:
        x = any_array(r)
    args, words, by_name = [x], list[str](), False
    env: Env = {"x": x}
    for place, (key, domain) in enumerate(domains.items()):
        if place >= required and not r.chance(0.35):
            by_name = True
            continue
        value = domain(r, env)
        if value is ABSENT:
            by_name = True
            continue
        word = option(key, value, words, args)
        by_name = by_name or key in ONLY_BY_NAME
        words.append(f"{key}={word}" if by_name else word)
    if name == "reshape" and r.chance(0.3) and words[0].startswith("("):
        words[0] = words[0].strip("(),") or "()"
    if name == "transpose" and words and r.chance(0.3):
        words[0] = words[0].split("=")[-1].strip("(),[]")
    words = [word.removeprefix("axes=") if name == "transpose" else word for word in words]
    text = f"x.{name}({', '.join(words)})"
    if np.ndim(x.value) and "out" in domains and r.chance(0.2):
        text = with_output(r, text, args) or text
    return text, args


def with_output(r: Draw, text: str, args: list[Leaf]) -> str | None:
    """The same with an array for the result."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(compiled(text)(*[leaf.value for leaf in args]))
    except Exception:
        return None
    kinds = "fc" if result.dtype.kind in "fc" else "biufc"
    chosen = result.dtype if r.chance(0.6) else r.dtype(kinds)
    out = r.values(result.shape, chosen)
    args.append(Leaf(r.laid_out(out) if result.shape else np.asarray(out)))
    return f"{text[:-1]}{'' if text.endswith('()') else ', '}out={'xyzuvw'[len(args) - 1]})"


def attribute(r: Draw) -> tuple[str, list[Leaf]]:
    """An attribute, or an assignment to one."""
    x = any_array(r)
    if r.chance(0.6):
        return f"x.{r.choose(ATTRIBUTES)}", [x]
    name = r.choose(["real", "imag", "flat", "flat[0]", "flat[-1]", "flat[1:3]", "flat[[0, 0]]"])
    value = Leaf(r.array(r.choose([(), np.shape(x.value), (1,), (2,)])))
    if name.startswith("flat") and (r.chance(0.4) or not np.size(x.value)):
        return f"x.{name}" if name != "flat" else "np.array(list(x.flat))", [x]
    return f"x.{name} = y", [x, value]


# Operators


ARITHMETIC = ["+", "-", "*", "/", "//", "%", "**"]
BITS = ["&", "|", "^", "<<", ">>"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]


def operand_for(r: Draw, x: Any, kinds: str) -> Leaf:
    """An array that broadcasts with x, a scalar, a number or a list."""
    shape = np.shape(x)
    kind = r.integer(0, 7)
    if kind <= 2:
        shape = r.choose([shape, shape[1:], (1, *shape[1:]) if shape else (), (2, *shape)])
        return Leaf(r.array(shape, kinds))
    if kind <= 5:
        return Leaf(r.array((), kinds))
    y = r.array(shape, kinds)
    y = y.tolist() if isinstance(y, (np.ndarray, np.generic)) else y
    return Leaf(y, static=True)


def operators(r: Draw) -> tuple[str, list[Leaf]]:
    """An operator, on either side."""
    kind = r.integer(0, 9)
    if kind == 0:
        text = r.choose(["-x", "+x", "~x", "abs(x)", "round(x, 1)", "round(x)", "bool(x)", "len(x)", "x in [1.0]"])
        if text == "x in [1.0]":
            text = "1.0 in x"
        return text, [any_array(r)]
    if kind == 1:
        r.special = False  # which sums of infinities are NaN depends on the order of BLAS
        shape = r.choose([(3,), (2, 3), (3, 3), (2, 2, 3), ()])
        x = any_array(r, shape)
        n = shape[-1] if shape else 1
        y = Leaf(r.array(r.choose([(n,), (n, 2), (2, n, 3), (n, n)])))
        if r.chance(0.2):
            y = Leaf(np.asarray(y.value).tolist(), static=True)
        return r.choose(["x @ y", "x @ y", "y @ x"]), [x, y]
    symbol = r.choose(r.choose([ARITHMETIC, ARITHMETIC, BITS, COMPARISONS]))
    kinds = "biu" if symbol in BITS else "biufc"
    x = Leaf(any_array(r, None, kinds).value)
    y = operand_for(r, x.value, kinds)
    if kind == 2:
        return r.choose(["divmod(x, y)", "divmod(y, x)", "pow(x, y)"]), [x, y]
    return (f"x {symbol} y" if r.chance(0.6) else f"y {symbol} x"), [x, y]


def in_place(r: Draw) -> tuple[str, list[Leaf]]:
    """An in-place operator, seen through another name."""
    symbol = r.choose([*ARITHMETIC, *ARITHMETIC, *BITS, "@"])
    kinds = "biu" if symbol in BITS else "biufc"
    x = any_array(r, (3, 3) if symbol == "@" else None, kinds)
    y = Leaf(r.array((3, 3), kinds)) if symbol == "@" else operand_for(r, x.value, kinds)
    target = r.choose(["x", "x", "x[...]", "x[0]", "x[::-1]", "x.T"])
    if target in ("x[...]", "x[0]", "x[::-1]"):
        return f"{target} {symbol}= y", [x, y]
    return f"k = {target}; k {symbol}= y", [x, y]


# Indices


def index_entry(r: Draw, n: int, allow_arrays: bool) -> str:
    """The text of an index of one axis of this length."""
    kind = r.integer(0, 9 if allow_arrays else 4)
    low, high = (-n, max(n - 1, 0)) if r.chance(0.97) else (-n - 1, n)
    if kind <= 1:
        return str(r.integer(low, high))
    if kind <= 4:
        parts = [r.choose(["", str(r.integer(-n - 1, n + 1))]) for _ in range(2)]
        step = r.choose(["", "", ":-1", ":2", ":-2"])
        return f"{parts[0]}:{parts[1]}{step}"
    if kind == 5:
        return f"np.int64({r.integer(low, high)})"
    if kind == 6:
        return str([bool(r.integer(0, 1)) for _ in range(n)])
    if kind == 7:
        return f"np.array({[r.integer(low, high) for _ in range(r.choose([1, 2, 3]))]})"
    if kind == 8:
        return f"np.array([[{r.integer(low, high)}], [{r.integer(low, high)}]], 'int32')"
    return str([r.integer(low, high) for _ in range(2)]) if n else "[]"


def index_text(r: Draw, shape: tuple[int, ...]) -> str:
    """The text of an index of an array."""
    if r.chance(0.08):
        return r.choose(["...", "None", "()", "True", "False", "x > 0.5", "x == x", "np.True_", "slice(None)"])
    allow = r.chance(0.5)
    entries: list[str] = []
    place = 0
    count = r.integer(1, max(len(shape), 1)) + r.chance(0.03)
    is_open = True
    while place < min(count, len(shape)):
        kind = r.integer(0, 11)
        if kind == 11 and is_open:
            entries.append("...")
            is_open = False
            place += r.integer(0, len(shape) - place)
        elif kind == 10:
            entries.append("None")
        else:
            entries.append(index_entry(r, shape[place], allow))
            place += 1
    if count > len(shape) or not entries:
        entries.append(r.choose(["...", "None", "0"]))
    return ", ".join(entries) + ("," if r.chance(0.05) else "")


def reading(r: Draw) -> tuple[str, list[Leaf]]:
    x = any_array(r)
    return f"x[{index_text(r, np.shape(x.value))}]", [x]


def writing(r: Draw) -> tuple[str, list[Leaf]]:
    """An assignment to an index, also with an operator."""
    x = any_array(r)
    index = index_text(r, np.shape(x.value))
    try:
        region = np.shape(np.asarray(compiled(f"x[{index}]")(x.value)))
    except Exception:
        region = ()
    shape = r.choose([(), region, region[1:], (1, *region), region[:1]])
    y = Leaf(r.array(shape))
    is_truth = region == () and np.asarray(x.value).dtype == bool  # NumPy stores whether the list has entries there
    if r.chance(0.1) and not (is_truth and np.ndim(y.value)):
        y = Leaf(np.asarray(y.value).tolist(), static=True)
    symbol = r.choose(["=", "=", "=", "+=", "*=", "-="])
    return f"x[{index}] {symbol} y", [x, y]


# Methods of ufuncs


BINARY = "add multiply subtract divide maximum minimum fmax fmin power arctan2 hypot logaddexp logaddexp2 copysign"
BINARY += " logical_and logical_or logical_xor less equal greater remainder floor_divide float_power heaviside"
INTEGER = "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift"
UNARY = "negative square exp sin sqrt absolute conjugate reciprocal"


def of_ufunc(r: Draw) -> tuple[str, list[Leaf]]:
    """reduce, accumulate, reduceat, outer or at of a ufunc."""
    is_integer = r.chance(0.15)
    name = r.choose((INTEGER if is_integer else BINARY).split())
    kinds = "biu" if is_integer else "biufc"
    x = any_array(r, None, kinds)
    args = [x]
    env: Env = {"x": x}
    way = r.choose(["reduce", "reduce", "accumulate", "reduceat", "outer", "at"])
    words = ["x"]

    def add(key: str, domain: Domain, likely: float = 0.3) -> None:
        if r.chance(likely):
            words.append(f"{key}={option(key, domain(r, env), words, args)}")

    if name in ("power", "arctan2") and way.startswith("reduce"):  # NumPy's vector loops give the last pair there
        name = "float_power"
    if way == "reduce":
        add("axis", axes, 0.6)
        add("dtype", dtype("iu" if is_integer else "fc"), 0.2)
        add("keepdims", BOOL)
        add("initial", number(low=0, kinds="iu" if is_integer else "iuf"))
        add("where", mask)
    elif way == "accumulate":
        add("axis", axis, 0.6)
        add("dtype", dtype("iu" if is_integer else "fc"), 0.2)
    elif way == "reduceat":
        n = max(np.shape(x.value)[:1] or (1,))
        words.append(str([r.integer(0, max(n - 1, 0)) for _ in range(r.integer(1, 3))]))
        add("axis", axis, 0.3)
    elif way == "outer":
        args.append(Leaf(r.array(r.choose([(2,), (), (2, 2)]), kinds)))
        words.append("y")
        if r.chance(0.2):
            add("dtype", dtype("iu" if is_integer else "fc"), 1.0)
    else:
        n = max(np.shape(x.value)[:1] or (1,))
        low = max(n - 1, 0)
        words.append(r.choose([str([r.integer(-n, low), 0, 0]) if n else "[]", "slice(None)", str(r.integer(-n, low))]))
        if r.chance(0.3) and not is_integer:
            name = r.choose(UNARY.split())
        else:
            args.append(Leaf(r.array(r.choose([(), np.shape(x.value)[1:]]), kinds)))
            words.append("xyzuvw"[len(args) - 1])
    text = f"np.{name}.{way}({', '.join(words)})"
    if np.ndim(x.value) and way in ("reduce", "accumulate", "outer", "reduceat") and r.chance(0.15):
        text = with_output(r, text, args) or text
    return text, args


FAMILIES = [method, method, attribute, operators, operators, in_place, reading, writing, of_ufunc, of_ufunc]
TOUCHES = ["r[...] = 2", "r *= 2", "r.fill(1)", "r[0] = r[-1]", "r.T[...] = 1"]
ROUNDING = ("sum", "mean", "std", "var", "cumsum", "dot", "trace", "prod", "@", ".reduce", ".accumulate", "cumprod")
ROUNDING += ("min", "max", "round")  # of zeros with different signs


def compiled(text: str) -> Statement:
    """The statement as a function of its operands; the last expression is the result."""
    parts = text.split("; ")
    lines = [f"    {part}" for part in parts]
    is_expression = not any([f" {symbol}= " in f" {parts[0]} " for symbol in ("", *ARITHMETIC, *BITS, "@")])
    if is_expression:
        lines[0] = f"    r = {parts[0]}"
        lines.append("    return r")
    else:
        lines.append("    return k" if parts[0].startswith("k = ") else "    return None")
    namespace: dict[str, Any] = {"np": np}
    source = "def statement(x=None, y=None, z=None, u=None, v=None, w=None):\n" + "\n".join(lines)
    exec(compile(source, "<statement>", "exec"), namespace)
    return namespace["statement"]  # type: ignore[no-any-return]


class MethodTester(Tester):
    """One statement in all modes."""

    call: Program

    def reference(self) -> Callable[..., Any]:
        return self.call.statement

    def traced(self, mode: str) -> Callable[..., Any]:
        return self.call.statement

    def is_typed_by_values(self) -> bool:
        return False

    def _can_trace(self, mode: str, leaf: Leaf) -> bool:
        if mode not in ("jvp", "vjp") and isinstance(leaf.value, np.ndarray) and not leaf.value.shape:
            return False  # a value without axes is a scalar there, as the documentation says
        return super()._can_trace(mode, leaf)

    def _in_mode(self, mode: str, function: Any, leaves: list[Leaf], values: list[Any]) -> Outcome | None:
        if leaves[0].written and not self._can_trace(mode, leaves[0]):
            return None  # the method is NumPy's own
        return super()._in_mode(mode, function, leaves, values)

    def _compare(self, mode: str, expected: Outcome, got: Outcome) -> None:
        error = str(expected.error)
        if expected.error is not None:
            if any([text in error for text in TAKEN]):
                return
            if got.error is not None and any([text in str(got.error) for text in OTHER_FAULTS]):
                return
        elif "cannot convert float" in str(got.error):
            return  # what NumPy makes of it is undefined
        count = len(self.found)
        super()._compare(mode, expected, got)
        if len(self.found) == count:
            return
        what = self.found[-1][1]
        if what.startswith("value: ") and (self.casts_other_numbers(expected.value) or self.is_open_power()):
            self.found.pop()
        elif what.startswith("sign of zero") and any([word in self.call.name for word in ("pow", "partition", "clip")]):
            self.found.pop()  # NumPy chooses a root by the type of the exponent; any order of equal elements is right

    def is_open_power(self) -> bool:
        """Whether it is a power of infinite complex numbers, which differ between NumPy's loops."""
        is_power = "**" in self.call.name or "pow" in self.call.name
        return is_power and not self.call.is_finite() and any([np.iscomplexobj(x.value) for x in self.call.leaves()])

    def casts_other_numbers(self, expected: Any) -> bool:
        """Whether NaN or a number out of range becomes an integer: undefined in C, and another one in another loop.

        The integers of the program are computed as floats, among which these numbers can be seen.
        """
        values = [leaf.value for leaf in self.call.leaves()]
        wide = [x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind in "iu" else x for x in values]
        statement = compiled(re.sub(r"'u?int\d+'", "'float64'", self.call.name))
        seen = outcome(lambda: replace(self.call, statement=statement).run(statement, wide))
        if seen.error is not None:
            return False
        for x, y in zip(flat(expected), flat(seen.value), strict=False):
            if np.asarray(x).dtype.kind in "iu" and np.asarray(y).dtype.kind == "f":
                limits = np.iinfo(np.asarray(x).dtype)
                if not np.all((y >= float(limits.min)) & (y <= float(limits.max))):
                    return True
        return False

    def is_rounded(self) -> bool:
        return self.call.rounds

    def precision(self) -> float:
        if not self.call.rounds:
            return 0.0
        return max([precision_of(leaf.value) for leaf in self.call.leaves()], default=0.0)


TAKEN = (
    "object does not support item assignment",  # values without axes may be written
    "doesn't define __round__",
    "objects is not writable",  # parts of scalars
    "is not reorderable",
    "is not iterable",
    "not supported between instances",  # complex numbers of Python
    "can't multiply sequence",
    "cannot convert float",  # what an array makes of it is undefined
    "int() argument must be",
    "only 0-dimensional arrays can be converted",
)
"""Errors of NumPy that func need not raise."""
OTHER_FAULTS = (
    *("broadcast", "not supported for the input types", "No loop matching", "did not contain a loop"),
    *("have no matrix product", "is out of bounds for axis", "Integers to negative integer powers"),
    *("with casting rule",),
)
"""If two things are wrong, the error may name either."""
MODES = ("jvp", "vjp", "vmap", "jit numpy", "jit llvm")


def case(choices: random.Random, tally: Tally) -> None:
    """One statement, in all modes."""
    r = Draw(choices)
    text, args = r.choose(FAMILIES)(r)
    if r.chance(0.25) and "= " not in text.replace("==", ""):
        text = f"{text}; {r.choose(TOUCHES)}"
    call = Program(text, args, {}, r.generic, compiled(text), any([word in text for word in ROUNDING]))
    tally.show(str(call))
    tester = MethodTester(call, r, tally, MODES)
    tester.check()
    if tester.found:
        mode, what = tester.found[0]
        raise AssertionError(f"{text}: {what}\nunder {mode}")
