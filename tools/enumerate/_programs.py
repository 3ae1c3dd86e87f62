"""Small Programs: parameters of primitives on small operands, arguments of programs, and their plain evaluation."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.core import Aval, Primitive, aval_of
from func.interpreters.core.parameters import parameter_error
from func.interpreters.core.wiring import primitive_named
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.primitives.structural.contraction import spec
from func.interpreters.program.program import Equation, Program, Var

Shape: TypeAlias = tuple[int, ...]
Params: TypeAlias = dict[str, Any]

SHAPES: tuple[Shape, ...] = tuple(
    [shape for rank in range(4) for shape in itertools.product((1, 2, 3, 0), repeat=rank)]
)
"""All shapes of the sizes 0 to 3 with up to three axes."""
WIDE: tuple[Shape, ...] = ((4,), (6,), (1, 4), (4, 1), (6, 1))
"""Shapes that reshapes make of them."""
MOST = 6
"""Elements of the largest array that a primitive may make of small ones."""
KINDS = ("plain", "ties", "special", "special 2", "special 3", "special 4")
"""The kinds of arguments: numbers whose sums and products are exact, few different ones, and all special ones."""
FINITE, MOVED = ("plain", "ties"), ("plain", "special", "special 3")
"""Those of finite numbers, and those that show where numbers go."""

_PLAIN = [1.5, -2.0, 0.75, 3.0, -0.5, 1.0, -1.25, 4.0]
_TIES = [1.0, 1.0, 0.0, 1.0, -1.0, 0.0, 0.0, 1.0]
_SPECIAL = [np.nan, 0.0, -np.inf, -0.0, 1.0, np.inf, 0.5, -1.0, 0.0, 2.0, -0.0]
_INTEGERS = [3, -2, 1, 0, 5, -1, 4, 2]
_EXTREME = [0, -1, 2**62, 1, -(2**63), 7, 2**63 - 1, 2]


@functools.lru_cache(1 << 16)
def numbers(aval: Aval, kind: str, place: int) -> Any:
    """The argument of an aval at a place among the inputs, which nobody writes to."""
    shift = 3 * place + 2 * int(kind[-1]) if kind[-1].isdigit() else 3 * place
    code = aval.dtype.kind
    source: Sequence[float]
    if code in "fc":
        source = {"plain": _PLAIN, "ties": _TIES}.get(kind, _SPECIAL)
    else:
        source = _INTEGERS if kind in ("plain", "ties") else _EXTREME
    parts = [source[(shift + i) % len(source)] for i in range(aval.size)]
    if code == "c":
        other = [source[(shift + 5 * i + 1) % len(source)] for i in range(aval.size)]
        values = np.empty(aval.size, aval.dtype)
        values.real, values.imag = [[2.0 if np.isinf(x) else x for x in part] for part in (parts, other)]
    elif code == "b":
        values = np.array([number % 2 != 0 if number == number else True for number in parts], bool)
    elif code == "u":
        values = np.array([abs(int(number)) % 2**8 for number in parts], aval.dtype)
    else:
        values = np.array(parts, aval.dtype)
    values = values.reshape(aval.shape)
    values.flags.writeable = False
    return values


def strided(x: Any) -> Any:
    """An equal array whose elements lie backwards in memory, with gaps between them, in Fortran order."""
    if x.ndim == 0:
        return np.array(x)
    gaps = np.zeros([2 * n for n in x.shape], x.dtype, "F")
    view = gaps[tuple([slice(None, None, -2)] * x.ndim)]
    view[...] = x
    return view


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings of floating point errors and casts."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Operation:
    """A primitive, how many operands it takes, and the parameters that it is tried with."""

    name: str
    arity: int
    params: Callable[..., Iterator[Params]]

    @functools.cached_property
    def primitive(self) -> Primitive:
        """The primitive."""
        return primitive_named(self.name)

    @functools.cached_property
    def takes_numbers(self) -> Sequence[int]:
        """The operands that may be Python numbers: not the first one where only derivatives have the primitive."""
        if isinstance(self.primitive, Pointwise):
            is_composed = self.primitive.ufunc is None and self.name != "nan_safe_multiply"
            return range(int(is_composed), self.arity)
        return range(self.arity) if self.name in ("where", "update", "complex", "broadcast") else ()


@functools.lru_cache(1 << 18)
def applied(operation: Operation, avals: tuple[Aval, ...]) -> tuple[tuple[Params, tuple[Aval, ...]], ...]:
    """The parameters that an operation takes on operands, each with the avals of its outputs."""
    found = []
    primitive = operation.primitive
    try:
        options = list(operation.params(*avals))
    except (TypeError, ValueError, IndexError):
        return ()
    for params in options:
        try:
            if parameter_error(primitive, avals, params) is not None:
                continue
            out = primitive.aval(*avals, **params)
            outs = tuple(out) if primitive.multiple else (out,)
            if all([aval.size <= 2 * MOST and len(aval.shape) <= 3 for aval in outs]):
                operands = [numbers(aval, "plain", place) for place, aval in enumerate(avals)]
                if primitive.checks_indices:  # constants of the family are in range
                    operands = [x * 0 if aval.dtype.kind == "i" else x for x, aval in zip(operands, avals, strict=True)]
                with quiet():
                    got = primitive.impl(np, *operands, **params)
                got = got if primitive.multiple else (got,)
                if all(
                    [np.shape(x) == a.shape and np.asarray(x).dtype == a.dtype for x, a in zip(got, outs, strict=True)]
                ):
                    found.append((params, outs))
        except Exception:  # what NumPy refuses is no program
            continue
    return tuple(found)


def no_params(*avals: Aval) -> Iterator[Params]:
    """No parameters."""
    yield {}


def reshapes(x: Aval) -> Iterator[Params]:
    """All other shapes of as many elements."""
    for shape in (*SHAPES, *WIDE):
        is_small = sum([n != 1 for n in shape]) <= 2 and (x.size > 0 or len(shape) <= 2)
        if is_small and math.prod(shape) == x.size and shape != x.shape:
            yield {"shape": shape}


def permutes(x: Aval) -> Iterator[Params]:
    """All orders of axes."""
    for order in itertools.permutations(range(len(x.shape))):
        if order != tuple(range(len(x.shape))):
            yield {"order": order}


def broadcasts(x: Aval) -> Iterator[Params]:
    """All small shapes to which it broadcasts."""
    for shape in SHAPES:
        if math.prod(shape) <= MOST and shape != x.shape and len(shape) >= len(x.shape):
            tail = shape[len(shape) - len(x.shape) :]
            if all([n == m or n == 1 for n, m in zip(x.shape, tail, strict=True)]):
                yield {"shape": shape}


def axes_of(x: Aval) -> Iterator[Params]:
    """All sets of axes."""
    for number in range(len(x.shape) + 1):
        for axes in itertools.combinations(range(len(x.shape)), number):
            yield {"axes": axes}


def axes_and_dtype(x: Aval) -> Iterator[Params]:
    """All sets of axes, in the dtype of the operand: func.numpy.mean gives one for integers."""
    for params in axes_of(x) if x.dtype.kind in "fc" else ():
        yield {**params, "dtype": None}


def one_axis(x: Aval, *others: Aval) -> Iterator[Params]:
    """Each axis."""
    for axis in range(len(x.shape)):
        yield {"axis": axis}


def sort_axes(x: Aval) -> Iterator[Params]:
    """Each axis, by the usual and by the stable sort."""
    for axis in range(len(x.shape)):
        yield {"axis": axis, "kind": None}
        yield {"axis": axis, "kind": "stable"}


def partition_axes(x: Aval) -> Iterator[Params]:
    """Each axis."""
    for axis in range(len(x.shape)):
        yield {"kth": (x.shape[axis] // 2,), "axis": axis, "kind": "introselect"}


def cumulative(x: Aval) -> Iterator[Params]:
    """Each axis, forwards and backwards."""
    for axis in range(len(x.shape)):
        yield {"axis": axis, "reverse": False}
        yield {"axis": axis, "reverse": True}


def entries(length: int) -> list[Any]:
    """The parts of an index that select from an axis: single places, runs, a reversal, every other one, nothing."""
    found: list[Any] = [(0, length, 1)]
    if length:
        found += [0, length - 1, (length - 1, -1, -1), (0, 0, 1), (0, 1, 1), (length - 1, length, 1)]
    if length > 1:
        found += [(0, length - 1, 1)]
    if length > 2:
        found += [1, (0, length, 2), (length - 1, -1, -2)]
    return list(dict.fromkeys(found))


def indices(shape: Shape) -> Iterator[tuple[Any, ...]]:
    """Indices that select along one axis, the same along all, or everything with a new axis."""
    whole = tuple([(0, n, 1) for n in shape])
    found: list[tuple[Any, ...]] = [whole]
    for axis, length in enumerate(shape):
        found += [(*whole[:axis], entry, *whole[axis + 1 :]) for entry in entries(length)]
    if len(shape) == 2:
        for name in (0, (0, 1, 1), "last", "reversed"):
            both: list[Any] = [{"last": n - 1, "reversed": (n - 1, -1, -1)}.get(str(name), name) for n in shape]
            if all(shape):
                found.append(tuple(both))
    found += [(None, *index) for index in found[:3]]
    found.append((*whole, None))
    yield from dict.fromkeys(found)


def getitems(x: Aval) -> Iterator[Params]:
    """Basic indices."""
    for index in indices(x.shape):
        yield {"index": index}


def embeds(x: Aval) -> Iterator[Params]:
    """Places in shapes that have at most two more rows along one axis, or one more axis."""
    for shape in SHAPES:
        if math.prod(shape) <= MOST and len(x.shape) <= len(shape) <= 2:
            for index in indices(shape):
                yield {"index": index, "shape": shape}


def updates(x: Aval, value: Aval) -> Iterator[Params]:
    """Basic indices."""
    for index in indices(x.shape):
        if None not in index:
            yield {"index": index}


def specs(x: Aval, y: Aval) -> Iterator[Params]:
    """All labellings: each axis of y is new or one of x, shared labels are summed or not, all orders of the output."""
    rank = len(x.shape)
    lx = tuple(range(rank))
    options = [[*[k for k in lx if x.shape[k] == n], rank + place] for place, n in enumerate(y.shape)]
    for ly in itertools.product(*options):
        if len(set(ly)) < len(ly):
            continue
        shared = [label for label in lx if label in ly]
        for number in range(len(shared) + 1):
            for summed in itertools.combinations(shared, number):
                out = [label for label in dict.fromkeys((*lx, *ly)) if label not in summed]
                if len(out) <= 3:
                    for order in itertools.permutations(out) if len(out) < 3 else (tuple(out), tuple(out[::-1])):
                        yield {"spec": spec(lx, ly, tuple(order))}


def conversions(x: Aval) -> Iterator[Params]:
    """All dtypes."""
    for name in ("float64", "float32", "complex128", "int64", "bool"):
        if x.dtype.kind != "c" or name == "complex128":
            yield {"dtype": np.dtype(name)}


def placements(*values: Aval) -> Iterator[Params]:
    """Diagonals of matrices."""
    size = values[0].size
    for shape in ((size, size), (size, size + 1)):
        for offset in (0, 1):
            if offset + size <= shape[1]:
                one = (offset, (size,), (shape[1] + 1,))
                yield {"shape": shape, "dtype": values[0].dtype, "placements": (one,) * len(values)}


def taken(x: Aval) -> Iterator[Params]:
    """The diagonal, and the columns."""
    if len(x.shape) == 2:
        rows, columns = x.shape
        if x.size:
            yield {"placement": (0, (min(rows, columns),), (columns + 1,))}
            yield {"placement": (0, (columns, rows), (1, columns))}


def tags(x: Aval) -> Iterator[Params]:
    """One barrier for passes, and one for native code."""
    yield {"tag": 0}
    yield {"tag": -1}


def labels(x: Aval) -> Iterator[Params]:
    """A label."""
    yield {"label": "a"}


def absences(x: Aval) -> Iterator[Params]:
    """Zeros of two shapes."""
    yield {"shape": x.shape, "dtype": x.dtype}
    yield {"shape": (2, 2), "dtype": x.dtype}


def variances(x: Aval) -> Iterator[Params]:
    """All sets of axes."""
    for params in axes_of(x):
        yield {**params, "ddof": 0}


def with_masks(x: Aval, mask: Aval) -> Iterator[Params]:
    """All sets of axes, with and without a start."""
    for params in axes_of(x):
        yield {**params, "dtype": None, "initial": None}
        yield {**params, "dtype": None, "initial": 2.0}


def segments(x: Aval) -> Iterator[Params]:
    """Each axis in two segments."""
    for axis, length in enumerate(x.shape):
        if length > 1:
            yield {"starts": (0, 1), "axis": axis}


def windows(x: Aval) -> Iterator[Params]:
    """Windows of one and two elements along an axis."""
    for axis, length in enumerate(x.shape):
        for size in (1, 2):
            if length >= size:
                yield {"sizes": (size,), "axes": (axis,)}


def correlations(x: Aval, y: Aval) -> Iterator[Params]:
    """All modes."""
    for mode in ("full", "same", "valid"):
        yield {"mode": mode}


def triangular(a: Aval, b: Aval) -> Iterator[Params]:
    """All triangles."""
    for lower, adjoint, unit in itertools.product((False, True), repeat=3):
        yield {"lower": lower, "adjoint": adjoint, "unit": unit}


def searches(x: Aval, values: Aval) -> Iterator[Params]:
    """Both sides."""
    for side in ("left", "right"):
        yield {"side": side, "batch_rank": 0}


def factor_forms(x: Aval) -> Iterator[Params]:
    """A lower and an upper factor."""
    yield {"upper": False}
    yield {"upper": True}


def halves(a: Aval) -> Iterator[Params]:
    """Both triangles."""
    yield {"lower": True}
    yield {"lower": False}


def thin_and_full(a: Aval) -> Iterator[Params]:
    """Thin and full factors."""
    yield {"full_matrices": False}
    yield {"full_matrices": True}


def qr_modes(a: Aval) -> Iterator[Params]:
    """The modes that have factors."""
    yield {"mode": "reduced"}
    yield {"mode": "complete"}


def cut_off(a: Aval, b: Aval) -> Iterator[Params]:
    """A limit of singular values."""
    yield {"limit": 1e-10, "cut": True}


def cut_inverse(a: Aval, limit: Aval) -> Iterator[Params]:
    """Of any matrix, and of a Hermitian one."""
    yield {"hermitian": False, "cut": True}
    yield {"hermitian": True, "cut": True}


def assumptions(a: Aval, b: Aval) -> Iterator[Params]:
    """The possible knowledge about a matrix."""
    for assume in ("sym", "pos", "her"):
        yield {"assume": assume, "lower": False}


def sinc_orders(x: Aval) -> Iterator[Params]:
    """The function and its first derivative."""
    yield {"order": 0}
    yield {"order": 1}


def overlaps(x: Aval) -> Iterator[Params]:
    """The sum that `windows` of one axis computes."""
    for axis in range(len(x.shape) - 1):
        for steps in ((), (2,)):
            length = (x.shape[axis] - 1) * (steps or (1,))[0] + x.shape[-1]
            shape = (*x.shape[:axis], length, *x.shape[axis + 1 : -1])
            yield {"sizes": (x.shape[-1],), "axes": (axis,), "shape": shape, "steps": steps}


def products_of_triples(data: Aval, rows: Aval, columns: Aval, x: Aval) -> Iterator[Params]:
    """As many rows as are needed, and more."""
    yield {"length": 2}
    yield {"length": 3}


_SPECIAL_PARAMS: dict[str, tuple[int, Callable[..., Iterator[Params]]]] = {
    "reshape": (1, reshapes),
    "permute": (1, permutes),
    "broadcast": (1, broadcasts),
    "convert": (1, conversions),
    "sum": (1, axes_of),
    "mean": (1, axes_and_dtype),
    **{name: (1, axes_of) for name in ("max", "min", "prod", "any", "all", "logaddexp_reduce")},
    "variance": (1, variances),
    "sum_with": (2, with_masks),
    "prod_with": (2, with_masks),
    "cumsum": (1, cumulative),
    **{name: (1, one_axis) for name in ("cumprod", "cummax", "cummin", "argmax", "argmin", "inverse_order")},
    **{name: (1, sort_axes) for name in ("sort", "argsort")},
    **{name: (1, partition_axes) for name in ("partition", "partition_order", "argpartition")},
    "reorder": (2, one_axis),
    "search": (2, searches),
    "getitem": (1, getitems),
    "embed": (1, embeds),
    "update": (2, updates),
    "concatenate": (2, one_axis),
    "where": (3, no_params),
    "gather": (2, one_axis),
    "scatter": (3, one_axis),
    "scatter_add": (3, one_axis),
    "contract": (2, specs),
    "place": (1, placements),
    "take": (1, taken),
    "barrier": (1, tags),
    "named": (1, labels),
    "absent": (1, absences),
    "segment_sum": (1, segments),
    "windows": (1, windows),
    "correlate": (2, correlations),
    "triangular_solve": (2, triangular),
    "renumbered": (2, no_params),
    **{name: (1, axes_of) for name in ("softmax", "log_softmax", "logsumexp")},
    "sinc": (1, sinc_orders),
    "overlap_add": (1, overlaps),
    "lexsort": (2, one_axis),
    "sparse_product": (4, products_of_triples),
    "known_factor": (1, factor_forms),
    **{name: (1, halves) for name in ("eigh", "eigvalsh")},
    "svd": (1, thin_and_full),
    "qr": (1, qr_modes),
    "lstsq": (2, cut_off),
    "pinv": (2, cut_inverse),
    "solve_assumed": (2, assumptions),
    **{name: (2, no_params) for name in ("solve", "search", "complex")},
}


@functools.cache
def operation(name: str) -> Operation:
    """The operation of a primitive, whose name may be followed by a number of operands: `concatenate*3`."""
    plain, _, number = name.partition("*")
    if plain in _SPECIAL_PARAMS:
        arity, params = _SPECIAL_PARAMS[plain]
        return Operation(plain, int(number or arity), params)
    primitive = primitive_named(plain)
    partials = getattr(primitive, "partials", None)
    arity = len(partials) if partials else getattr(primitive.ufunc, "nin", 1)
    return Operation(plain, int(number or arity), no_params)


Values: TypeAlias = dict[Any, Any] | Exception
"""The values of variables, or the error of an equation."""


@dataclass
class Drawn:
    """A program with its arguments of each kind and, once it was needed, its outputs by plain evaluation."""

    program: Program
    places: Sequence[int] = range(99)
    """The places of its inputs among those that it could have."""
    before_last: Callable[[str], Values] | None = None
    """The values of all variables before the last equation, for a kind of arguments."""
    found: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.program.text()

    @functools.cached_property
    def unit(self) -> float:
        """The unit in the last place of its least precise value."""
        kinds = {var.dtype for equation in self.program.equations for var in equation.outputs}
        kinds |= {var.dtype for var in self.program.inputs}
        return max([float(np.finfo(kind).eps) for kind in kinds if kind.kind in "fc"], default=0.0)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of its primitives."""
        return frozenset([equation.primitive.name for equation in self.program.equations])

    def arguments(self, kind: str) -> list[Any]:
        """Arguments of a kind."""
        return [numbers(var.aval, kind, place) for place, var in zip(self.places, self.program.inputs, strict=False)]

    def wanted(self, kind: str) -> Any:
        """The outputs by plain evaluation; an Exception where it raises."""
        if kind not in self.found:
            if self.before_last is None:
                self.found[kind] = evaluated(self.program, self.arguments(kind))
            else:
                values = with_values(self.program.equations[-1:], self.before_last(kind))
                self.found[kind] = outputs(self.program, values)
        return self.found[kind]


def evaluated(program: Program, args: Sequence[Any]) -> Any:
    """The outputs of a program, equation after equation by the functions of NumPy; an Exception where one raises."""
    values = {**program.constants, **dict(zip(program.inputs, args, strict=True))}
    return outputs(program, with_values(program.equations, values))


def with_values(equations: Sequence[Equation], values: Values) -> Values:
    """Values with those of the outputs of equations."""
    if isinstance(values, Exception):
        return values
    values = dict(values)
    for equation in equations:
        operands = [values[x] if type(x) is Var else x for x in equation.inputs]
        try:
            out = equation.primitive.impl(np, *operands, **equation.params)
        except Exception as error:
            return error
        if equation.primitive.multiple:
            values.update(zip(equation.outputs, out, strict=True))
        else:
            values[equation.outputs[0]] = out
    return values


def largest(program: Program, args: Sequence[Any]) -> float:
    """The largest modulus of a finite value in a program."""
    values = with_values(program.equations, {**program.constants, **dict(zip(program.inputs, args, strict=True))})
    moduli = [] if isinstance(values, Exception) else [np.abs(np.asarray(x, np.complex128)) for x in values.values()]
    return max([float(np.max(x, where=np.isfinite(x), initial=0.0)) for x in moduli], default=0.0)


def outputs(program: Program, values: Values) -> Any:
    """The outputs of a program among the values of its variables."""
    if isinstance(values, Exception):
        return values
    return [values[x] if type(x) is Var else x for x in program.outputs]


def program_of(
    inputs: Sequence[Var], equations: Sequence[Equation], constants: dict[Var, Any], outputs: Any
) -> Program:
    """A program of the inputs and constants that its equations use."""
    used = {x for equation in equations for x in equation.inputs if type(x) is Var} | set(outputs)
    return Program(
        [var for var in inputs if var in used],
        equations,
        outputs,
        {var: value for var, value in constants.items() if var in used},
    )


def constant(value: Any) -> tuple[Var, Any]:
    """A constant with its variable."""
    array = np.asarray(value)
    array.flags.writeable = False
    return Var(aval_of(array)), array


def difference(got: Any, wanted: Any, places: Sequence[Any], level: str, tolerance: float) -> str | None:
    """How outputs differ from the wanted ones. Level: "bits", "zeros" (but for signs of zeros), "poles" (and of
    infinities), "rounding" (relative to the largest number) or "seeds" (only finite numbers)."""
    if isinstance(wanted, Exception):
        return None  # an equation that raises may be one that nothing needs
    if isinstance(got, Exception):
        return f"raises\n{got!r} instead of {wanted!r}"
    for place, (x, y, var) in enumerate(zip(got, wanted, places, strict=True)):
        a, b = np.asarray(x), np.asarray(y)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"aval\noutput {place}: {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
        if var is not None and (a.shape, a.dtype) != (var.shape, var.dtype):
            return f"declared aval\noutput {place}: {a.dtype}{a.shape}, declared {var.aval}"
        if not same(a, b, level, tolerance):
            return f"values\noutput {place}:\n{a}\ninstead of\n{b}"
    return None


def same(a: Any, b: Any, level: str, tolerance: float) -> bool:
    """Whether two arrays of one aval are equal at a level."""
    if a.size == 0 or a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind in "biu":
        return False
    if level == "seeds":  # zeros of seeds are structural, and nothing is multiplied by them
        a, b, level = np.where(np.isfinite(b), a, 0), np.where(np.isfinite(b), b, 0), "rounding"
    if a.dtype.kind == "c":
        if level != "bits":  # products of infinite numbers, such as x · (1 + 0j), have NaN parts that a rule leaves out
            a, b = [np.where(np.isfinite(b), x, 0) for x in (a, b)]
        return same(a.real, b.real, level, tolerance) and same(a.imag, b.imag, level, tolerance)
    if level == "rounding":
        finite = np.isfinite(b)
        if not (finite == np.isfinite(a)).all():
            return False
        scale = np.max(np.abs(b[finite]), initial=1.0)
        return bool((np.abs(a[finite] - b[finite]) <= tolerance * scale).all())
    if level == "poles":  # the sign of a zero decides that of an infinity
        a, b = [np.where(np.isinf(x), np.inf, x) for x in (a, b)]
    if not np.array_equal(a, b, equal_nan=True):
        return False
    is_number = ~np.isnan(b)
    return level in ("zeros", "poles") or bool((np.signbit(a) == np.signbit(b))[is_number].all())
