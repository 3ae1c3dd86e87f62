"""Campaign: NumPy's functions, with every argument that their signatures name, against NumPy.

`DOMAINS` has the range of each function's arguments; `inspect.signature` lists the arguments and the ways to pass them.
A drawn call runs with NumPy, with `func.numpy` on plain arrays, and under jvp, vjp, vmap and jit (both compilers).
Value, dtype, shape and scalar-or-array must be NumPy's. Where NumPy raises an exception, func raises one of its kind;
where func alone raises, it is one of `func.errors`. Derivatives are compared with differences and with each other;
their dtype is that of the output (forward) or of the argument (reverse).
"""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import func
from func.errors import FuncError
from tools.fuzz.cases import Tally

fnp = func.numpy
sliding_window_view = np.lib.stride_tricks.sliding_window_view
QUICK = 800


# Calls


@dataclass
class Leaf:
    """An argument that may be traced. `written`: the function writes it, so each run gets a copy and returns it."""

    value: Any
    written: bool = False
    static: bool = False
    """Its values decide a shape or a choice: not traced by jit and vmap."""


@dataclass
class Call:
    """A call of a NumPy function: its arguments, in which leaves stand for arrays."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    names: set[str] = field(default_factory=set, init=False)
    """The passed arguments, by place or by name."""
    generic: bool = True
    """Without special values and ties, so that differences are derivatives."""

    def leaves(self) -> list[Leaf]:
        found: list[Leaf] = []
        _collect(self.args, found)
        _collect(self.kwargs, found)
        return found

    def dtypes(self) -> list[np.dtype[Any]]:
        """The dtypes among the arguments."""
        given = [*self.args, *self.kwargs.values()]
        names = [entry for entry in given if isinstance(entry, str) and entry in DTYPES]
        return [np.dtype(t) for t in [*names, *[e for e in given if isinstance(e, (type, np.dtype))]]]

    def is_finite(self) -> bool:
        """Whether no argument has a NaN or an infinite number."""
        return all([bool(np.all(np.isfinite(leaf.value))) for leaf in self.leaves()])

    def overflows(self) -> bool:
        """Whether products of numbers overflow next to infinite ones: NaN, or not where they are added unrounded."""
        values = [np.asarray(leaf.value) for leaf in self.leaves()]
        sizes = [np.abs(x[np.isfinite(x)]) for x in values if x.dtype.kind in "fc"]
        return not self.is_finite() and any([bool(np.any(size > np.finfo(size.dtype).max ** 0.5)) for size in sizes])

    def run(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """The result, and what was written, with these values in the place of the leaves."""
        remaining = iter(values)
        written: list[Any] = []
        args = _filled(self.args, remaining, written)
        kwargs = _filled(self.kwargs, remaining, written)
        result = function(*args, **kwargs)
        return (result, tuple(written)) if written else result

    def __str__(self) -> str:
        parts = [_shown(arg) for arg in self.args] + [f"{key}={_shown(value)}" for key, value in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"


def _collect(entry: Any, found: list[Leaf]) -> None:
    if isinstance(entry, Leaf):
        found.append(entry)
    elif isinstance(entry, (list, tuple)):
        for item in entry:
            _collect(item, found)
    elif isinstance(entry, dict):
        for item in entry.values():
            _collect(item, found)


def _filled(entry: Any, values: Iterator[Any], written: list[Any]) -> Any:
    if isinstance(entry, Leaf):
        value = next(values)
        if not entry.written:
            return value
        copied = np.copy(value)
        written.append(copied)
        return copied
    if isinstance(entry, (list, tuple)):
        return type(entry)([_filled(item, values, written) for item in entry])
    if isinstance(entry, dict):
        return {key: _filled(item, values, written) for key, item in entry.items()}
    return entry


def _shown(entry: Any) -> str:
    if isinstance(entry, Leaf):
        return _shown(entry.value)
    if isinstance(entry, (list, tuple)):
        inner = ", ".join([_shown(item) for item in entry])
        return f"[{inner}]" if isinstance(entry, list) else f"({inner},)"
    if isinstance(entry, np.ndarray):
        layout = "" if entry.flags.c_contiguous else f", strides={entry.strides}"
        return f"array({entry.tolist()}, {entry.dtype}, shape={entry.shape}{layout})"
    if isinstance(entry, np.generic):
        return f"{type(entry).__name__}({entry})"
    return getattr(entry, "__name__", None) or repr(entry)


# Drawing


SHAPES = [(), (1,), (3,), (4,), (0,), (2, 3), (3, 3), (3, 1), (1, 1), (0, 3), (2, 0), (2, 3, 2), (1, 3, 2)]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32"]
DTYPES += ["float64", "complex64", "complex128"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 0.5]
EXTREME = [5e-324, 1e300]
"""Numbers whose products overflow and underflow, or not, by the order in which they are multiplied."""


class Draw:
    """Random choices: shapes, dtypes and options one by one, the numbers in an array from one of them."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.rng = np.random.default_rng(choices.getrandbits(16))
        self.special = self.chance(0.2)
        self.generic = not self.special
        self.extreme = True

    def chance(self, probability: float) -> bool:
        return self.choices.random() > 1 - probability

    def choose(self, options: Sequence[Any]) -> Any:
        return options[self.choices.randrange(len(options))]

    def integer(self, low: int, high: int) -> int:
        return self.choices.randint(low, high)

    def shape(self, ranks: Sequence[int] = (0, 1, 2, 3)) -> tuple[int, ...]:
        return self.choose([shape for shape in SHAPES if len(shape) in ranks])  # type: ignore[no-any-return]

    def dtype(self, kinds: str = "biufc") -> np.dtype[Any]:
        if "f" in kinds and self.chance(0.5):
            return np.dtype(np.float64)
        return np.dtype(self.choose([name for name in DTYPES if np.dtype(name).kind in kinds]))

    def values(self, shape: tuple[int, ...], dtype: np.dtype[Any], low: float = -3, high: float = 3) -> Any:
        rng = self.rng
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return rng.integers(max(int(low), 0 if dtype.kind == "u" else -128), int(high) + 1, shape).astype(dtype)
        x = rng.uniform(low, high, shape)
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(low, high, shape)
        if self.special:
            numbers = SPECIAL + EXTREME if self.extreme else SPECIAL
            with np.errstate(all="ignore"):
                x = np.where(rng.random(shape) < 0.4, rng.choice(numbers, shape), x)
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype)

    def array(
        self,
        shape: tuple[int, ...] | None = None,
        kinds: str = "biufc",
        low: float = -3,
        high: float = 3,
        ranks: Sequence[int] = (0, 1, 2, 3),
        dtype: Any = None,
    ) -> Any:
        """An array of any layout, or a NumPy or Python scalar."""
        shape = self.shape(ranks) if shape is None else shape
        dtype = self.dtype(kinds) if dtype is None else np.dtype(dtype)
        x = self.values(shape, dtype, low, high)
        if shape == ():
            kind = self.integer(0, 3)
            if kind == 0 and dtype.char in "?ldD":
                return np.asarray(x).item()
            return np.asarray(x)[()] if kind == 1 else np.asarray(x)
        return self.laid_out(x)

    def laid_out(self, x: Any) -> Any:
        """x in another memory layout."""
        layout = self.integer(0, 5)
        if layout == 1:
            return np.asfortranarray(x)
        if layout == 2:
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        if layout == 3:
            return np.ascontiguousarray(x[::-1])[::-1]
        return np.ascontiguousarray(x)


Env = dict[str, Any]
Domain = Callable[[Draw, Env], Any]
ABSENT = object()
"""A domain's answer: leave this argument away."""


def absent(r: Draw, env: Env) -> Any:
    """Never given: other tests draw it, or it goes with other arguments."""
    return ABSENT


def raw(entry: Any) -> Any:
    """A drawn argument without leaves."""
    return _filled(entry, iter([leaf.value for leaf in leaves_of(entry)]), [])


def leaves_of(entry: Any) -> list[Leaf]:
    """The leaves in a drawn argument."""
    found: list[Leaf] = []
    _collect(entry, found)
    return found


def first_of(env: Env) -> Any:
    """The value of the first argument."""
    return raw(next(iter(env.values())))


def array(lists: bool = True, scalars: bool = True, **options: Any) -> Domain:
    """An array argument, at times as a nested list or a scalar."""

    def draw(r: Draw, env: Env) -> Any:
        x = r.array(**options)
        if not scalars:
            return Leaf(np.asarray(x))
        if lists and isinstance(x, np.ndarray) and x.ndim and x.size and r.chance(0.08):
            return Leaf(x.tolist(), static=True) if r.chance(0.5) else listed(r, x)
        return Leaf(x)

    return draw


def listed(r: Draw, x: Any) -> list[Any]:
    """An array as a list of rows or of numbers, each of which may be traced."""
    rows = r.chance(0.5)
    return [
        listed(r, row) if row.ndim and not rows else Leaf(row if row.ndim else row[()]) for row in map(np.asarray, x)
    ]


def finite(domain: Domain) -> Domain:
    """A domain, and all that is drawn after it, without special values."""

    def draw(r: Draw, env: Env) -> Any:
        r.special = False
        return domain(r, env)

    return draw


def moderate(domain: Domain) -> Domain:
    """A domain, and all that is drawn after it, without extreme values."""

    def draw(r: Draw, env: Env) -> Any:
        r.extreme = False
        return domain(r, env)

    return draw


def static(domain: Domain) -> Domain:
    """An array whose values jit and vmap must know."""

    def draw(r: Draw, env: Env) -> Any:
        entry = domain(r, env)
        for leaf in leaves_of(entry):
            leaf.static = True
        return entry

    return draw


def one_of(*options: Any) -> Domain:
    return lambda r, env: r.choose(options)


def either(*domains: Domain) -> Domain:
    return lambda r, env: r.choose(domains)(r, env)


def integers(low: int, high: int) -> Domain:
    return lambda r, env: r.integer(low, high)


def number(low: float = -3, high: float = 3, kinds: str = "if") -> Domain:
    """A number, of Python or NumPy."""

    def draw(r: Draw, env: Env) -> Any:
        return Leaf(r.array(shape=(), kinds=kinds, low=low, high=high))

    return draw


def axis(r: Draw, env: Env) -> Any:
    """One axis of the first argument, or a wrong one."""
    rank = np.ndim(first_of(env))
    if r.chance(0.05):
        return rank
    return r.integer(-rank, rank - 1) if rank else r.choose([0, -1])


def axes(r: Draw, env: Env) -> Any:
    """None, one axis or several."""
    rank = np.ndim(first_of(env))
    if rank and r.chance(0.4):
        return axis(r, env)
    return tuple([k - (rank if r.chance(0.3) else 0) for k in range(rank) if r.chance(0.5)])


def mask(r: Draw, env: Env) -> Any:
    """A mask that broadcasts to the first argument."""
    shape = np.shape(first_of(env))
    if r.chance(0.3):
        shape = shape[1:]
    if r.chance(0.1):
        return r.choose([True, False])
    return Leaf(r.array(shape, "b"), static=True) if shape else bool(r.integer(0, 1))


def result_array(r: Draw, env: Env) -> Any:
    return ABSENT


def dtype(kinds: str = "biufc") -> Domain:
    def draw(r: Draw, env: Env) -> Any:
        chosen = r.dtype(kinds)
        return r.choose([chosen, chosen.type, chosen.name])

    return draw


def number_dtype(r: Draw, env: Env) -> Any:
    """A dtype for numbers that may be infinite or NaN, so not an integer."""
    return dtype("fc" if r.special else "biufc")(r, env)


def like_first(**options: Any) -> Domain:
    """An array that broadcasts with the first argument."""

    def draw(r: Draw, env: Env) -> Any:
        shape = np.shape(first_of(env))
        kind = r.integer(0, 5)
        if kind == 0:
            shape = shape[1:]
        elif kind == 1:
            shape = ()
        elif kind == 2 and shape:
            shape = (1, *shape[1:])
        return Leaf(r.array(shape, **options))

    return draw


def same_shape(**options: Any) -> Domain:
    return lambda r, env: Leaf(r.array(np.shape(first_of(env)), **options))


def several(domain: Domain, low: int = 1, high: int = 3) -> Domain:
    """A list or tuple of arrays."""

    def draw(r: Draw, env: Env) -> Any:
        entries = [domain(r, env) for _ in range(r.integer(low, high))]
        return tuple(entries) if r.chance(0.3) else entries

    return draw


def of_one_shape(low: int = 1, high: int = 3, **options: Any) -> Domain:
    """Arrays of one shape."""

    def draw(r: Draw, env: Env) -> Any:
        shape = r.shape(options.get("ranks", (0, 1, 2, 3)))
        return [Leaf(r.array(shape, options.get("kinds", "biufc"))) for _ in range(r.integer(low, high))]

    return draw


def indices(r: Draw, env: Env) -> Any:
    """Indices of the first axis or of the flattened first argument."""
    x = first_of(env)
    n = max(np.size(x), 1)
    low, high = (-n, n - 1) if r.chance(0.95) else (-n - 1, n)
    if r.chance(0.25):
        return r.integer(low, high)
    if r.chance(0.1):
        return []
    return Leaf(r.rng.integers(low, high + 1, r.choose([(2,), (3,), (1,), (2, 2)])), static=True)


BOOL = one_of(True, False)
BY_NAME: dict[str, Domain] = {
    "axis": axis,
    "dtype": dtype(),
    "out": result_array,
    "keepdims": BOOL,
    "where": mask,
    "initial": number(low=0, kinds="iuf"),
    "order": one_of("C", "K", "A", "F"),
    "subok": BOOL,
    "casting": one_of("same_kind", "unsafe", "safe", "no", "equiv"),
    "signature": absent,
    "device": one_of(None, "cpu"),
    "like": absent,
    "k": integers(-2, 2),
    "offset": integers(-2, 2),
    "ddof": one_of(0, 1, 0.5, 2),
    "overwrite_input": one_of(False),
    "equal_nan": BOOL,
    "assume_unique": one_of(False),
    "return_index": BOOL,
    "return_inverse": BOOL,
    "return_counts": BOOL,
    "mode": one_of("raise", "wrap", "clip"),
}
"""The range of an argument of this name, unless a function has another."""


# Domains


REAL: dict[str, Any] = {"kinds": "biuf"}
VECTOR: dict[str, Any] = {"ranks": (1,)}
A = array()
UNIT = array(kinds="f", low=-0.9, high=0.9)


def shape_for(r: Draw, env: Env) -> Any:
    """A shape with as many elements as the first argument."""
    size = np.size(first_of(env))
    options: list[Any] = [(size,), (-1,), -1, size, (1, size), (size, 1), (-1, 1)]
    options += [(2, -1), (2, size // 2), (-1, 3)] if size else [(0, 2)]
    return r.choose(options)


def permutation(r: Draw, env: Env) -> Any:
    rank = np.ndim(first_of(env))
    order = tuple(r.rng.permutation(rank).tolist())
    return r.choose([None, order, list(order)])


def bigger_shape(r: Draw, env: Env) -> Any:
    shape = np.shape(first_of(env))
    return r.choose([shape, (2, *shape), (3, 1, *shape), tuple([3 if n == 1 else n for n in shape])])


def tiles(r: Draw, env: Env) -> Any:
    return r.choose([2, (2,), (1, 2), (2, 1, 2), 0, ()])


def counts_along(r: Draw, env: Env) -> Any:
    x = first_of(env)
    n = np.shape(x)[0] if np.ndim(x) else 1
    return r.choose([2, 0, 1, [2], r.rng.integers(0, 3, n)])


def pads(r: Draw, env: Env) -> Any:
    rank = np.ndim(first_of(env))
    return r.choose([1, 2, 0, (1, 2), ((1, 2),), [(1, 0)] * rank, ((0, 2),) * rank])


def permuted_index(r: Draw, env: Env) -> Any:
    x = first_of(env)
    shape = np.shape(x)
    return Leaf(r.rng.integers(0, max(shape[-1], 1), shape) if shape else np.array(0), static=True)


def _first(x: Any) -> Any:
    return x[0]


def bits_count(r: Draw, env: Env) -> Any:
    return r.choose([None, 3, -1] if np.size(first_of(env)) else [None, 0])  # NumPy sets no bits of no bytes


def sections(r: Draw, env: Env) -> Any:
    return r.choose([1, 2, 3, [1], [1, 2], [0, 5], (1,), np.array([2])])


def insert_values(r: Draw, env: Env) -> Any:
    values = r.array(r.choose([(), (1,), (2,), (3,), np.shape(first_of(env))]))
    return Leaf(values, static=isinstance(values, np.generic))  # some functions take scalars and 0-d arrays otherwise


def places(r: Draw, env: Env) -> Any:
    """Arguments of np.insert and np.delete: integers, lists, slices and masks."""
    n = max(np.shape(first_of(env))[:1] or (1,))
    n = max(int(n), 1)
    return r.choose(
        [
            r.integer(-n, n - 1),
            r.rng.integers(-n, n, 2).tolist(),
            r.rng.integers(-n, n, 2),
            slice(None, None, 2),
            slice(1, None),
            r.rng.random(n) < 0.5,
            [],
            [0],
            np.array([n - 1, 0]),
        ]
    )


def spd_like(shape: tuple[int, ...]) -> Domain:
    return lambda r, env: Leaf(r.array(shape, "fc"))


def matrices(left: Sequence[tuple[int, ...]]) -> Domain:
    return lambda r, env: Leaf(r.array(r.choose(left)))


def matching(core: str) -> Domain:
    """The second operand of a product, with fitting inner lengths."""

    def draw(r: Draw, env: Env) -> Any:
        shape = np.shape(first_of(env))
        n = shape[-1] if shape else 1
        options = {
            "matmul": [(n,), (n, 2), (2, n, 3), (1, n, 1)],
            "dot": [(n,), (n, 2), (), (2, n, 3)],
            "last": [(n,), (2, n), (), (1, n)],
            "same": [shape, (n,), (1, n)],
            "matvec": [(n,), (2, n)],
            "vecmat": [(n, 2), (2, n, 3)],
        }[core]
        return Leaf(r.array(r.choose(options)))

    return draw


def quantiles(top: int) -> Domain:
    def draw(r: Draw, env: Env) -> Any:
        q = r.choose([0.25, 0.5, 0, 1, np.float32(0.3), np.array(0.7), [0.1, 0.9], np.array([0.0, 0.33, 1.0])])
        if top == 1:
            return q if not isinstance(q, (float, np.generic, np.ndarray)) else Leaf(q, static=True)
        return Leaf(np.multiply(q, top).astype(np.asarray(q).dtype), static=True)

    return draw


def einsum_operands(r: Draw, env: Env) -> Any:
    text = r.choose(
        [
            "ij,jk->ik",
            "ij,jk",
            "ii->i",
            "ii",
            "ij->ji",
            "i,i",
            "i,j->ij",
            "ij->",
            "...j,j",
            "ij,j->i",
            "ij,ij->ij",
            "ijk->kij",
            "ij,jk,kl->il",
            "i->",
            "ij,kj->ik",
            "i,->i",
            "ii,i->",
            "...i->...",
            "ij->j",
        ]
    )
    r.special = r.special and text.count(",") < 2  # several products: NumPy's order of them is not func's
    sizes = dict(zip("ijkl", r.choose([(2, 3, 2, 3), (3, 3, 3, 3), (1, 2, 1, 2), (0, 2, 3, 1)]), strict=True))
    entries: list[Any] = [text]
    for term in text.split("->")[0].split(","):
        shape = tuple([sizes[c] for c in term.replace("...", "")])
        entries.append(Leaf(r.array(((2,) if "..." in term else ()) + shape)))
    return entries


def sorted_vector(r: Draw, env: Env) -> Any:
    r.special = False
    n = r.choose([1, 3, 5, 0])
    return Leaf(np.sort(r.values((n,), r.dtype("iuf"))))


def increasing(n: int | None = None) -> Domain:
    def draw(r: Draw, env: Env) -> Any:
        count = np.shape(first_of(env))[0] if n is None else n
        return Leaf(np.cumsum(r.rng.uniform(0.3, 1, count)).astype(r.choose([np.float64, np.float32])) - 2)

    return draw


def nonnegative_vector(r: Draw, env: Env) -> Any:
    n = r.choose([0, 1, 4, 6])
    return Leaf(r.rng.integers(0, 5, n).astype(r.choose(["int64", "int32", "uint8", "bool", "int8"])), static=True)


def choices_of(r: Draw, env: Env) -> Any:
    return [Leaf(r.array(r.choose([(3,), (), (2, 3)]))) for _ in range(3)]


def conditions(r: Draw, env: Env) -> Any:
    return [Leaf(r.rng.random(3) < 0.5) for _ in range(2)]


def casewise(r: Draw, env: Env) -> Any:
    return [Leaf(r.array(r.choose([(3,), ()]))) for _ in range(2)]


def ufunc_mask(r: Draw, env: Env) -> Any:
    """A mask for a ufunc; without out= elements are undefined, so `draw_call` adds one."""
    shape = np.broadcast_shapes(*[np.shape(raw(x)) for name, x in env.items() if name in ("x", "x1", "x2")])
    return Leaf(r.array(shape, "b")) if r.chance(0.8) else True


def loop(r: Draw, env: Env) -> Any:
    """A signature of a ufunc of one or two operands; at times of the wrong number."""
    if "dtype" in env:
        return ABSENT
    inputs = len([name for name in env if name in ("x", "x1", "x2")]) if r.chance(0.95) else r.integer(1, 2)
    return r.choose(["d", "f", "D", "e", "l"]) * inputs + "->" + r.choose(["d", "f", "D", "e", "?"])


UFUNC: dict[str, Domain] = {"where": ufunc_mask, "dtype": dtype(), "signature": loop}
UNARY_ANY = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh conjugate cos cosh exp exp2 expm1 isfinite isinf isnan log
    log10 log1p log2 logical_not negative positive reciprocal rint sign sin sinh sqrt square tan tanh
"""
UNARY_REAL = "cbrt ceil deg2rad degrees fabs floor rad2deg radians signbit spacing trunc modf frexp"
BINARY_ANY = """
    add divide equal float_power greater greater_equal less less_equal logical_and logical_or logical_xor maximum
    minimum multiply not_equal power subtract fmax fmin
"""
BINARY_REAL = """
    arctan2 copysign floor_divide fmod heaviside hypot logaddexp logaddexp2 nextafter remainder divmod
"""
BINARY_INTEGER = "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift"
UNARY_INTEGER = "invert bitwise_count"

DOMAINS: dict[str, dict[str, Domain]] = {
    **{name: {"x": A, **UFUNC} for name in UNARY_ANY.split()},
    **{name: {"x": array(**REAL), **UFUNC} for name in UNARY_REAL.split()},
    **{name: {"x1": A, "x2": like_first(), **UFUNC} for name in BINARY_ANY.split()},
    **{name: {"x1": array(**REAL), "x2": like_first(**REAL), **UFUNC} for name in BINARY_REAL.split()},
    **{name: {"x1": array(kinds="biu"), "x2": like_first(kinds="biu"), **UFUNC} for name in BINARY_INTEGER.split()},
    **{name: {"x": array(kinds="biu"), **UFUNC} for name in UNARY_INTEGER.split()},
    "ldexp": {"x1": array(**REAL), "x2": like_first(kinds="iu"), **UFUNC},
    # complex parts, rounding
    **{name: {"val": A} for name in ("real", "imag")},
    "angle": {"z": A, "deg": BOOL},
    **{name: {"x": A} for name in ("iscomplexobj", "isrealobj", "isreal", "iscomplex", "sinc", "fix", "i0")},
    **{name: {"x": array(**REAL)} for name in ("isposinf", "isneginf")},
    "real_if_close": {"a": A, "tol": one_of(100, 1)},
    "clip": {"a": A, "a_min": like_first(), "a_max": like_first(), "min": number(), "max": number(), "kwargs": absent},
    **{name: {"a": A, "decimals": integers(-1, 2)} for name in ("round", "around")},
    "nan_to_num": {"x": A, "copy": BOOL, "nan": number(), "posinf": number(), "neginf": number()},
    **{
        name: {"a": A, "b": like_first(), "rtol": one_of(1e-5, 0.5), "atol": one_of(1e-8, 0, 1)}
        for name in ("isclose", "allclose")
    },
    **{name: {"a1": A, "a2": like_first()} for name in ("array_equal", "array_equiv")},
    "astype": {"x": array(lists=False), "copy": BOOL},
    # reductions
    **{name: {"a": A, "axis": axes} for name in ("sum", "max", "min", "amax", "amin", "any", "all", "ptp", "nansum")},
    **{name: {"a": moderate(A), "axis": axes} for name in ("prod", "nanprod")},
    **{name: {"a": A, "axis": axes, "dtype": dtype("fc")} for name in ("mean", "nanmean")},  # NaN is no integer
    **{name: {"a": array(scalars=False), "axis": axes} for name in ("nanmax", "nanmin")},  # `initial` is another there
    **{
        name: {"a": A, "axis": axes, "dtype": dtype("fc"), "mean": absent, "correction": one_of(0, 1)}
        for name in ("std", "var", "nanstd", "nanvar")
    },
    **{name: {"a": A} for name in ("argmax", "argmin", "nanargmax", "nanargmin")},
    "count_nonzero": {"a": A, "axis": axes},
    "average": {"a": A, "axis": axes, "weights": same_shape(kinds="iuf", low=0.2, high=3), "returned": BOOL},
    **{name: {"a": array(**REAL), "axis": axes} for name in ("median", "nanmedian")},
    **{
        name: {
            "a": array(**REAL),
            "q": quantiles(top),
            "axis": axes,
            "method": one_of("linear", "lower", "higher", "midpoint", "nearest", "hazen", "inverted_cdf", "weibull"),
            "weights": same_shape(kinds="iuf", low=0.2, high=3),
        }
        for name, top in (("quantile", 1), ("percentile", 100), ("nanquantile", 1), ("nanpercentile", 100))
    },
    **{name: {"a": moderate(A)} for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")},
    **{name: {"x": moderate(A), "include_initial": BOOL} for name in ("cumulative_sum", "cumulative_prod")},
    "cov": {
        "m": array(ranks=(1, 2)),
        "y": same_shape(),
        "rowvar": BOOL,
        "bias": BOOL,
        "ddof": one_of(0, 1, 2),
        "fweights": absent,
        "aweights": absent,
        "dtype": dtype("fc"),
    },
    "corrcoef": {"x": array(ranks=(1, 2)), "y": same_shape(), "rowvar": BOOL, "dtype": dtype("fc")},
    # shapes
    "reshape": {"a": A, "shape": shape_for, "copy": one_of(None, True)},
    "ravel": {"a": A},
    "transpose": {"a": A, "axes": permutation},
    "permute_dims": {"a": A, "axes": permutation},
    "swapaxes": {"a": A, "axis1": axis, "axis2": axis},
    "moveaxis": {"a": A, "source": axis, "destination": axis},
    "rollaxis": {"a": A, "axis": axis, "start": integers(-1, 2)},
    "expand_dims": {"a": A, "axis": one_of(0, -1, 1, (0, 1), (0, -1), 5)},
    "squeeze": {"a": A, "axis": axes},
    "broadcast_to": {"array": A, "shape": bigger_shape},
    "broadcast_arrays": {"args": several(A)},
    **{name: {"arys": several(A, 1, 2)} for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    "flip": {"m": A, "axis": axes},
    "fliplr": {"m": A},
    "flipud": {"m": A},
    "rot90": {"m": array(ranks=(2, 3)), "k": integers(-2, 5), "axes": one_of((0, 1), (1, 0), (-1, 0))},
    "roll": {"a": A, "shift": one_of(1, -2, 0, (1, 2), [1]), "axis": either(axis, one_of(None, (0, 0), (0, -1)))},
    "matrix_transpose": {"x": array(ranks=(2, 3, 1))},
    "ndim": {"a": A},
    "shape": {"a": A},
    "size": {"a": A},
    # joining
    **{name: {"arrays": of_one_shape(ranks=(1, 2, 3))} for name in ("concatenate", "concat")},
    "stack": {"arrays": of_one_shape(), "axis": one_of(0, -1, 1)},
    **{name: {"tup": of_one_shape()} for name in ("vstack", "hstack", "dstack", "column_stack")},
    "block": {"arrays": either(of_one_shape(), lambda r, env: [of_one_shape(2, 2)(r, env)], A)},
    "array_split": {"ary": array(lists=False, ranks=(1, 2, 3)), "indices_or_sections": sections},
    "split": {"ary": array(lists=False, ranks=(1, 2, 3)), "indices_or_sections": sections},
    **{name: {"ary": array(lists=False), "indices_or_sections": sections} for name in ("hsplit", "vsplit", "dsplit")},
    "unstack": {"x": A},
    "tile": {"A": A, "reps": tiles},
    "repeat": {"a": A, "repeats": counts_along},
    "append": {"arr": A, "values": either(same_shape(), A)},
    "delete": {"arr": A, "obj": places},
    "insert": {"arr": A, "obj": places, "values": insert_values},
    "resize": {"a": A, "new_shape": one_of((5,), 4, (2, 3), (0,), ())},
    "pad": {
        "array": A,
        "pad_width": pads,
        "mode": one_of(
            "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"
        ),
        "kwargs": absent,
    },
    "trim_zeros": {"filt": static(array(lists=False, ranks=(1, 2))), "trim": one_of("fb", "f", "b"), "axis": axes},
    # selection
    "where": {"condition": array(), "x": like_first(), "y": like_first()},
    "take": {"a": A, "indices": indices},
    "take_along_axis": {"arr": A, "indices": permuted_index},
    "choose": {
        "a": lambda r, env: Leaf(r.rng.integers(-1 if r.chance(0.1) else 0, 3, 3), static=True),
        "choices": choices_of,
    },
    "select": {"condlist": conditions, "choicelist": casewise, "default": number()},
    "piecewise": {
        "x": array(shape=(3,)),
        "condlist": conditions,
        "funclist": one_of([1, 2], [1, 2, 3], [np.square, 2]),
        "args": absent,
        "kw": absent,
    },
    "extract": {"condition": static(array(shape=(3,))), "arr": array(shape=(3,))},
    "compress": {"condition": static(array(shape=(2,), kinds="bi")), "a": A},
    "diagonal": {"a": A, "axis1": one_of(0, 1, -1), "axis2": one_of(1, 0, -1)},
    "ix_": {"args": lambda r, env: [static(array(ranks=(1,), kinds="bi"))(r, env)]},
    "nonzero": {"a": static(A)},
    "flatnonzero": {"a": static(A)},
    "argwhere": {"a": static(A)},
    # writes
    "put": {"a": A, "ind": indices, "v": insert_values},
    "place": {"arr": A, "mask": static(same_shape(kinds="b")), "vals": insert_values},
    "putmask": {"a": A, "mask": same_shape(kinds="b"), "values": insert_values},
    "copyto": {"dst": A, "src": like_first(), "where": like_first(kinds="b")},
    "fill_diagonal": {"a": array(ranks=(2, 3)), "val": insert_values, "wrap": BOOL},
    "put_along_axis": {"arr": A, "indices": permuted_index, "values": like_first()},
    # sorting
    **{
        name: {
            "a": A,
            "kind": one_of("quicksort", "stable", "mergesort"),
            "stable": one_of(None, True),
            "order": one_of(None),
        }
        for name in ("sort", "argsort")
    },
    "sort_complex": {"a": A},
    **{
        name: {"a": A, "kth": one_of(0, 1, -1, (0, 1)), "kind": one_of("introselect"), "order": one_of(None)}
        for name in ("partition", "argpartition")
    },
    "lexsort": {"keys": lambda r, env: of_one_shape(2, 2, kinds="iuf", ranks=(1, 2))(r, env)},
    "searchsorted": {
        "a": sorted_vector,
        "v": array(**REAL),
        "side": one_of("left", "right"),
        "sorter": lambda r, env: np.arange(np.size(first_of(env))),
    },
    "digitize": {"x": array(**REAL), "bins": sorted_vector, "right": BOOL},
    "bincount": {
        "x": nonnegative_vector,
        "weights": same_shape(kinds="iuf"),
        "minlength": one_of(0, 3, 7),
    },
    # sets
    "unique": {"ar": static(A), "sorted": one_of(True)},  # else in the order of a hash table
    **{name: {"x": static(A)} for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
    **{name: {"ar1": static(A), "ar2": static(A)} for name in ("union1d", "setdiff1d", "setxor1d")},
    "intersect1d": {"ar1": static(A), "ar2": static(A), "return_indices": BOOL},
    "isin": {"element": A, "test_elements": A, "invert": BOOL, "kind": one_of(None, "sort")},
    # creation
    **{name: {"a": A, "shape": one_of(None, (2,), ())} for name in ("zeros_like", "ones_like")},
    "full_like": {"a": A, "fill_value": number(low=0, kinds="iufc"), "shape": one_of(None, (2,), ())},
    "copy": {"a": A},
    "linspace": {
        "start": array(ranks=(0, 1)),
        "stop": like_first(),
        "num": one_of(5, 1, 0, 3),
        "endpoint": BOOL,
        "retstep": BOOL,
        "axis": one_of(0, -1),
    },
    **{
        name: {
            "start": moderate(array(ranks=(0, 1), low=0.5, high=2)),
            "stop": like_first(low=0.5, high=2),
            "num": one_of(5, 1, 0),
            "endpoint": BOOL,
            "axis": one_of(0, -1),
            **({"base": one_of(10.0, 2)} if name == "logspace" else {}),
            "dtype": number_dtype,
        }
        for name in ("logspace", "geomspace")
    },
    "meshgrid": {
        "xi": several(array(ranks=(0, 1)), 1, 3),
        "copy": one_of(True),
        "sparse": BOOL,
        "indexing": one_of("xy", "ij"),
    },
    "diag": {"v": array(ranks=(1, 2))},
    "diagflat": {"v": A},
    **{name: {"m": A} for name in ("tril", "triu")},
    "vander": {"x": moderate(array(ranks=(1,))), "N": one_of(None, 3, 0, 1), "increasing": BOOL},
    # products; those with numbers are BLAS's, which leaves out the products with zero
    "dot": {"a": finite(A), "b": matching("dot")},
    "inner": {"a": finite(A), "b": matching("last")},
    "vdot": {"a": finite(A), "b": same_shape()},
    "outer": {"a": A, "b": A},
    "kron": {"a": A, "b": A},
    "cross": {
        "a": array(shape=(2, 3)),
        "b": array(shape=(2, 3)),
        "axisa": one_of(-1),
        "axisb": one_of(-1),
        "axisc": one_of(-1, 0),
        "axis": one_of(None, -1),
    },
    "trace": {"a": A, "axis1": one_of(0, 1, -1), "axis2": one_of(1, 0, -1)},
    "tensordot": {"a": A, "b": same_shape(), "axes": one_of(0, 1, ((0,), (0,)), ([0, 1], [0, 1]), (0, 0))},
    "einsum": {"operands": moderate(einsum_operands), "optimize": one_of(False, True, "greedy"), "kwargs": absent},
    **{
        name: {
            "x1": array(ranks=ranks),
            "x2": matching(name if name != "vecdot" else "same"),
            "dtype": dtype("fc"),
            "axes": absent,
            "axis": absent,
            "signature": absent,
            # NumPy leaves elements of complex results of vecmat in Fortran order unwritten.
            **({"order": one_of("C", "K", "A")} if name == "vecmat" else {}),
        }
        for name, ranks in (("matmul", (1, 2, 3)), ("matvec", (2, 3)), ("vecmat", (1, 2)), ("vecdot", (1, 2)))
    },
    # samples
    "diff": {"a": A, "n": one_of(1, 2, 0), "prepend": number(), "append": number()},
    "ediff1d": {"ary": A, "to_end": number(), "to_begin": number()},
    "gradient": {
        "f": array(shape=(4,)),
        "varargs": lambda r, env: r.choose([[], [0.5], [Leaf(np.array([0.0, 0.4, 1.0, 2.0]))], [2]]),
        "edge_order": one_of(1, 2),
        "axis": one_of(None, 0),
    },
    "trapezoid": {"y": A, "x": same_shape(kinds="f"), "dx": number(0.5, 2)},
    "interp": {
        "x": array(**REAL),
        "xp": increasing(4),
        "fp": array(shape=(4,)),
        "left": number(),
        "right": number(),
        "period": one_of(None, 3.0),
    },
    "unwrap": {"p": array(**REAL), "discont": one_of(None, 4.0), "period": one_of(6.283185307179586, 4, 2.0)},
    **{name: {"a1": array(ranks=(0, 1)), "a2": array(ranks=(0, 1))} for name in ("polyadd", "polysub")},
    "polymul": {"a1": moderate(array(shape=(3,), low=1)), "a2": array(ranks=(0, 1), kinds="iufc", low=1)},
    "polydiv": {"u": moderate(array(shape=(4,), low=1)), "v": array(shape=(2,), low=1)},
    "polyder": {"p": array(ranks=(1,)), "m": one_of(1, 2, 0)},
    "polyint": {"p": array(ranks=(1,)), "m": one_of(1, 2, 0), "k": one_of(None, 1.0, [1.0, 2.0])},
    "polyval": {"p": moderate(array(ranks=(0, 1))), "x": A},
    "polyfit": {
        "x": finite(array(shape=(4,), kinds="f")),
        "y": same_shape(kinds="fi"),
        "deg": one_of(1, 2, 0),
        "rcond": one_of(None, 1e-10),
        "full": BOOL,
        "w": same_shape(kinds="f", low=0.5, high=2),
        "cov": one_of(False, True, "unscaled"),
    },
    "poly": {"seq_of_zeros": finite(array(shape=(3,)))},
    "roots": {"p": finite(array(shape=(3,), low=1))},
    "convolve": {"a": moderate(array(ranks=(1,))), "v": array(ranks=(0, 1)), "mode": one_of("full", "same", "valid")},
    "correlate": {"a": moderate(array(ranks=(1,))), "v": array(ranks=(1,)), "mode": one_of("full", "same", "valid")},
    "histogram": {
        "a": array(**REAL),
        "bins": one_of(3, [-2.0, 0.0, 1.0], "auto"),
        "range": one_of(None, (-1, 2.0)),
        "density": one_of(None, True, False),
        "weights": same_shape(kinds="iuf"),
    },
    "histogram_bin_edges": {
        "a": array(**REAL),
        "bins": one_of(3, [-2.0, 0.0, 1.0]),
        "range": one_of(None, (-1, 2.0)),
        "weights": absent,
    },
    "sliding_window_view": {
        "x": array(ranks=(1, 2)),
        "window_shape": one_of(1, 2),
        "axis": one_of(0, -1, None),
        "writeable": one_of(False),
    },
    "histogram2d": {
        "x": finite(array(shape=(4,), **REAL)),
        "y": array(shape=(4,), **REAL),
        "bins": one_of(3, [2, 3], [-2.0, 0.0, 1.0], [[-1.0, 0.5, 2.0], 2]),
        "range": one_of(None, [(-1, 2.0), (-2, 2)], [(-1, 2), None]),
        "density": one_of(None, True, False),
        "weights": lambda r, env: Leaf(r.array((4,), "iuf")),
    },
    "histogramdd": {
        "sample": finite(either(array(shape=(3, 2), **REAL), lambda r, env: [Leaf(r.array((3,), "f")) for _ in "xy"])),
        "bins": one_of(3, [2, 3], ([-2.0, 0.0, 1.0], 2)),
        "range": one_of(None, [(-1, 2.0), (-2, 2)]),
        "density": one_of(None, True, False),
        "weights": lambda r, env: Leaf(r.array((3,), "iuf")),
    },
    # functions of functions
    "apply_along_axis": {
        "func1d": one_of(np.sum, np.cumsum, np.sort, np.diff, _first),
        "axis": one_of(0, -1, 1),
        "arr": array(ranks=(1, 2, 3)),
        "args": absent,
        "kwargs": absent,
    },
    "apply_over_axes": {
        "func": one_of(np.sum, np.max, np.mean),
        "a": array(ranks=(1, 2, 3)),
        "axes": one_of(0, (0,), [0, -1]),
    },
    # conversion, creation
    "array": {
        "object": A,
        "copy": one_of(True, None),
        "ndmin": one_of(0, 1, 3),
        "dtype": number_dtype,
        "ndmax": absent,
    },
    **{name: {"a": A, "copy": one_of(True, None), "dtype": number_dtype} for name in ("asarray", "asanyarray")},
    **{name: {"a": A, "dtype": number_dtype} for name in ("ascontiguousarray", "asfortranarray")},
    **{name: {"shape": one_of(3, (2, 2), (), (0,))} for name in ("zeros", "ones")},
    # NumPy's full of a traced number has elements that are objects: an empty one does not know its dtype.
    "full": {"shape": one_of(3, (2, 2), (), 2), "fill_value": array(ranks=(0, 1))},
    "eye": {"N": integers(0, 3), "M": one_of(None, 2, 4)},
    "identity": {"n": integers(0, 3)},
    "tri": {"N": integers(0, 3), "M": one_of(None, 2, 4)},
    "arange": {"start": one_of(0, 3, 1.5), "stop": one_of(None, 5, -2.0), "step": one_of(1, 2, 0.5, -1)},
    "kaiser": {"M": integers(0, 5), "beta": number(0, 5)},
    # indices, bits, dtypes
    "ravel_multi_index": {
        "multi_index": lambda r, env: tuple([Leaf(r.rng.integers(0, 2, 2)), Leaf(r.rng.integers(0, 3, 2))]),
        "dims": one_of((2, 3), (3, 3)),
    },
    **{name: {"arr": array(ranks=(2,))} for name in ("tril_indices_from", "triu_indices_from")},
    "diag_indices_from": {"arr": array(shape=(3, 3))},
    "unravel_index": {"indices": lambda r, env: Leaf(r.rng.integers(0, 6, 2)), "shape": one_of((2, 3), (6,), 6)},
    "packbits": {"a": static(array(kinds="biu")), "bitorder": one_of("big", "little")},
    "unpackbits": {"a": static(array(kinds="u")), "count": bits_count, "bitorder": one_of("big", "little")},
}
CONVERTERS: dict[str, Callable[..., Any]] = {
    "array": lambda *args, **kwargs: np.array(*args, **kwargs),
    "asarray": lambda *args, **kwargs: np.asarray(*args, **kwargs),
    "asanyarray": lambda *args, **kwargs: np.asanyarray(*args, **kwargs),
    "ascontiguousarray": lambda *args, **kwargs: np.ascontiguousarray(*args, **kwargs),
    "asfortranarray": lambda *args, **kwargs: np.asfortranarray(*args, **kwargs),
}
"""NumPy's functions that take traced values where they are read as attributes while a transform runs."""
CREATES = {"zeros", "ones", "full", "eye", "identity", "tri", "arange", "ravel_multi_index"}
"""Functions that take no arrays, but `like=`, which makes what they make traced."""
NO_DOMAIN = {
    "empty": "its numbers are undefined",
    "empty_like": "its numbers are undefined",
    "vectorize": "a class, whose objects call the user's function",
    "at": "not NumPy's: the method of ufuncs",
    "conv_general": "not NumPy's",
}
"""Functions of the coverage table that no domain covers, and why."""
WRITES = {"put", "place", "putmask", "copyto", "fill_diagonal", "put_along_axis", "insert"}
"""Functions that write numbers into their first argument, or into a copy of it."""
ROUNDS = {
    *("sum", "mean", "std", "var", "nansum", "nanmean", "nanstd", "nanvar", "cumsum", "nanmin", "nanmax", "nanmedian"),
    *("matmul", "matvec", "vecmat", "vecdot", "dot", "inner", "vdot", "outer", "kron", "cross", "trace", "tensordot"),
    *("einsum", "convolve", "correlate", "polyfit", "roots", "poly", "polymul", "polyval", "polydiv", "interp", "cov"),
    *("union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    *("corrcoef", "unwrap", "gradient", "trapezoid", "average", "kaiser"),
}
"""Functions that may round otherwise than NumPy."""
PRODUCTS = {"prod", "nanprod"}
"""Functions that multiply in a special order, on which the parts of infinite complex numbers depend."""
TYPED_BY_VALUES = {"roots", "poly", "polydiv", "polymul", "real_if_close"}
"""Functions whose shape or dtype depends on values, which compiled code does not know."""
QUANTILES = {"quantile", "percentile", "nanquantile", "nanpercentile"}
ILL_CONDITIONED = {"polyfit", "roots", "poly"}
"""Functions that multiply the errors of rounding."""
EXACT_OUT = {"einsum", "median", "nanmedian", *QUANTILES}
EXACT_OUT |= {"cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod"}
"""Functions that take an `out` of a larger shape by accident."""
ACCUMULATES = {"sum", "prod", "max", "min", "amax", "amin", "any", "all", "ptp", "nansum", "nanprod", "nanmax"}
ACCUMULATES |= {
    "nanmin",
    "mean",
    "nanmean",
    "cumsum",
    "cumprod",
    "cumulative_sum",
    "cumulative_prod",
    "nancumsum",
    "nancumprod",
}
"""Functions that use `out` on the way: NumPy's buffers decide the effect of a narrow one on the numbers."""
CHOOSES = {"sort", "partition", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "union1d"}
CHOOSES |= {"intersect1d", "setdiff1d", "setxor1d", "median", "nanmedian", *QUANTILES}
"""Functions that may return any of several equal elements, such as 0.0 and -0.0."""
POLYNOMIALS = {"polymul", "polyadd", "polysub"}
"""Functions whose traced results may begin with zeros that NumPy drops."""
LARGER_OR_SMALLER = {"maximum", "minimum", "fmax", "fmin", "max", "min", "amax", "amin"}
"""Functions of which NumPy's loops, by length and layout, give any of 0.0 and -0.0."""


def numpy_function(name: str) -> Callable[..., Any]:
    """The function of NumPy's with this name."""
    if name in CONVERTERS:
        return CONVERTERS[name]
    return sliding_window_view if name == "sliding_window_view" else getattr(np, name)  # type: ignore[no-any-return]


def signature_of(name: str) -> inspect.Signature:
    """The arguments of a function: those of func's, where NumPy's is in C and does not name them in all versions."""
    return inspect.signature(func_function(name) if name in CREATES or name in CONVERTERS else numpy_function(name))


def func_function(name: str) -> Callable[..., Any]:
    """The function of func.numpy with this name."""
    return getattr(fnp, name)  # type: ignore[no-any-return]


def missing_domains(names: Iterable[str]) -> list[str]:
    """The functions among these names of NumPy's that no domain covers, and the arguments that no domain of a function
    does.
    """
    covered = {id(numpy_function(name)) for name in DOMAINS} | {id(getattr(np, name)) for name in CONVERTERS}
    gaps = [
        name
        for name in names
        if name not in NO_DOMAIN and name not in DOMAINS and id(getattr(np, name, name)) not in covered
    ]
    for name, domains in DOMAINS.items():
        for parameter in signature_of(name).parameters.values():
            if parameter.name not in domains and parameter.name not in BY_NAME:
                gaps.append(f"{name}({parameter.name})")
    return gaps


def written_leaf(entry: Any) -> Any:
    """An array that a function writes, from what was drawn for it."""
    return Leaf(np.asarray(raw(entry)), written=True)


def draw_call(
    name: str, r: Draw, domains: dict[str, Domain] | None = None, function: Callable[..., Any] | None = None
) -> Call:
    """A random call of a function of NumPy's main namespace, or of another one with these domains."""
    is_other = function is not None
    domains = DOMAINS[name] if domains is None else domains
    function = numpy_function(name) if function is None else function
    env: Env = {}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_keyword = False
    options = r.choose([0.0, 0.2, 0.5])
    wants_out = False
    signature = inspect.signature(function) if is_other else signature_of(name)
    for parameter in signature.parameters.values():
        needed = parameter.default is inspect.Parameter.empty
        if parameter.name == "out" and r.chance(0.15):
            wants_out = True
        if not needed and not r.chance(options if parameter.name not in ("axis",) else 0.6):
            by_keyword = True
            continue
        domain = domains.get(parameter.name) or BY_NAME[parameter.name]
        value = domain(r, env)
        if value is ABSENT:
            by_keyword = True
            continue
        if name in WRITES and not env:
            value = written_leaf(value)
        env[parameter.name] = value
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(value)
            by_keyword = True
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY or (
            by_keyword and parameter.kind.name != "POSITIONAL_ONLY"
        ):
            kwargs[parameter.name] = value
        elif parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and args and r.chance(0.3):
            by_keyword = True
            kwargs[parameter.name] = value
        else:
            args.append(value)
    if r.chance(0.01):
        kwargs["nonsense"] = 1
    call = Call(name, args, kwargs, r.generic)
    call.names = set(env)
    if wants_out or (isinstance(kwargs.get("where"), Leaf) and isinstance(function, np.ufunc)):
        add_out(call, r, function)
        if "out" not in call.kwargs and isinstance(function, np.ufunc):
            call.kwargs.pop("where", None)
    return call


def add_out(call: Call, r: Draw, function: Callable[..., Any]) -> None:
    """Give a call an output array of the result's shape, at times of another dtype or a larger shape."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call.run(function, [leaf.value for leaf in call.leaves()])
    except Exception:
        return
    results = result if isinstance(result, tuple) else (result,)
    if not all([isinstance(x, (np.ndarray, np.generic)) for x in results]):
        return
    outs = []
    for x in results:
        shape = (2, *np.shape(x)) if r.chance(0.1) and call.name not in EXACT_OUT else np.shape(x)
        own = np.asarray(x).dtype  # what a float becomes in an integer is NumPy's undefined behaviour in part
        dtype = own if r.chance(0.6) else r.dtype("fc" if own.kind in "fc" else "biufc")
        is_narrow = not np.can_cast(own, dtype, "safe") and (own.kind not in "fc" or dtype.kind in "fc")
        if call.name in ACCUMULATES and is_narrow:
            dtype = own
        if call.name == "einsum" and call.kwargs.get("optimize"):
            dtype = own  # it is converted on the way, or not at all
        if call.name == "choose":  # NumPy writes it as if it were in C order
            outs.append(Leaf(r.values(shape, dtype), written=True))
            continue
        outs.append(Leaf(r.laid_out(r.values(shape, dtype)) if shape else r.values(shape, dtype), written=True))
    call.kwargs["out"] = tuple(outs) if isinstance(result, tuple) else outs[0]


# Running


@dataclass
class Outcome:
    """The value of a call, or its exception."""

    value: Any = None
    error: BaseException | None = None


def outcome(thunk: Callable[[], Any]) -> Outcome:
    """The result of a call."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Outcome(thunk())
    except Exception as error:
        return Outcome(error=error)


KINDS = (TypeError, IndexError, ValueError, ZeroDivisionError, OverflowError, AttributeError)


def same_kind_of_error(expected: BaseException, got: BaseException) -> bool:
    """Whether an exception may stand for NumPy's."""
    if isinstance(got, (FuncError, type(expected))) or "no attribute" in str(expected):
        return True
    return any([isinstance(expected, kind) and isinstance(got, kind) for kind in KINDS])


def difference(
    expected: Any,
    got: Any,
    exact: bool,
    scalars: bool = True,
    precision: float = 0.0,
    loose: bool = False,
    is_open: bool = False,
) -> str | None:
    """The difference between two results; None without one.

    `precision`: that of the narrowest operand. `loose`: one infinite or NaN number is as good as another;
    `is_open`: and as a complex one that is finite.
    """
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(expected) != len(got):
            return f"structure: {type(got).__name__} for {type(expected).__name__}"
        if type(expected) is not type(got) and scalars:
            return f"structure: {type(got).__name__} for {type(expected).__name__}"
        for x, y in zip(expected, got, strict=True):
            found = difference(x, y, exact, scalars, precision, loose, is_open)
            if found:
                return found
        return None
    if expected is None or isinstance(expected, (np.dtype, type, str)):
        return None if expected == got else f"{got!r} for {expected!r}"
    x, y = np.asarray(expected), np.asarray(got)
    if x.dtype != y.dtype:
        return f"dtype: {y.dtype} for {x.dtype}"
    if x.shape != y.shape:
        return f"shape: {y.shape} for {x.shape}"
    if scalars and isinstance(expected, np.ndarray) != isinstance(got, np.ndarray):
        return f"scalar or array: {type(got).__name__} for {type(expected).__name__}"
    if x.dtype.kind not in "fc":
        return None if np.array_equal(x, y) else f"value: {y} for {x}"
    if precision:
        exact = False
    if loose:
        finite = np.isfinite(x) & np.isfinite(y)
        if not (is_open and x.dtype.kind == "c") and not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return f"value: {y} for {x}"
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
    with np.errstate(all="ignore"):
        if exact and x.dtype.kind == "f" and not np.array_equal(np.signbit(x[x == 0]), np.signbit(y[x == 0])):
            return f"sign of zero: {y} for {x}"
        eps = max(float(np.finfo(x.dtype).eps), precision)
        scale = 0.0 if exact else float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) + 1
        tolerance = eps * (8 if exact else 64)  # loops for other layouts may round otherwise
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            return f"value: {y} for {x}"
    return None


def unsigned_zeros(value: Any) -> Any:
    """The value with 0.0 for -0.0."""
    if isinstance(value, (tuple, list)):
        return type(value)([unsigned_zeros(entry) for entry in value])
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind != "f":
        return value
    changed = np.where(value == 0, np.zeros((), value.dtype), value)
    return changed if isinstance(value, np.ndarray) else changed[()]


def is_inexact(value: Any) -> bool:
    """Whether a value can be differentiated."""
    return np.asarray(value).dtype.kind in "fc" and not isinstance(value, list)


MODES = ("plain", "jvp", "vjp", "vmap", "jit numpy", "jit llvm")


class Tester:
    """One call in all modes."""

    def __init__(self, call: Call, r: Draw, tally: Tally, modes: Sequence[str] = MODES) -> None:
        self.call, self.r, self.tally, self.modes = call, r, tally, modes
        self.found: list[tuple[str, str]] = []
        """(mode, what differs)"""

    def reference(self) -> Callable[..., Any]:
        """The function that says what is right."""
        return numpy_function(self.call.name)

    def traced(self, mode: str) -> Callable[..., Any]:
        """The function that is called in a mode: that of func.numpy, or mostly NumPy's where values are traced."""
        return func_function(self.call.name) if mode == "plain" or self.r.chance(0.25) else self.reference()

    def differentiated(self) -> Callable[..., Any]:
        """The function that is differentiated, and whose values give the differences."""
        return self.reference()

    def is_typed_by_values(self) -> bool:
        """Whether the shape or dtype depends on values, so that nothing can be compiled."""
        return self.call.name in TYPED_BY_VALUES

    def is_rounded(self) -> bool:
        """Whether the function may round otherwise than NumPy."""
        return self.call.name in ROUNDS | CHOOSES

    def precision(self) -> float:
        """That of the narrowest operand, where it is coarser than that of the result may be."""
        call = self.call
        if not {"out", "dtype"} & (call.names | call.kwargs.keys()):
            return 0.0
        given = [*[leaf.value for leaf in call.leaves()], *[np.empty(0, t) for t in call.dtypes()]]
        return max([precision_of(value) for value in given], default=0.0)

    def check(self) -> None:
        call, r = self.call, self.r
        leaves = call.leaves()
        values = [leaf.value for leaf in leaves]
        reference = self.reference()
        expected = outcome(lambda: call.run(reference, values))
        for mode in self.modes:
            if mode.startswith("jit") and (self.is_typed_by_values() or not r.chance(0.1)):
                continue
            got = self._in_mode(mode, self.traced(mode), leaves, values)
            if got is not None:
                self.tally.checked()
                self._compare(mode, expected, got)
        if expected.error is None and call.generic:
            self._differentiate(self.differentiated(), leaves, values)

    def _add(self, mode: str, what: str) -> None:
        self.found.append((mode, what))

    def _compare(self, mode: str, expected: Outcome, got: Outcome) -> None:
        call = self.call
        if expected.error is not None:
            if got.error is None:
                if mode != "plain" and isinstance(expected.error, TypeError) and self._is_of_objects():
                    return  # the loop for objects takes what the loop for numbers refuses
                if isinstance(expected.error, AttributeError) and "no attribute" in str(expected.error):
                    return  # lists, where NumPy's function needs an array
                if isinstance(expected.error, OverflowError) or "NaN to integer" in str(expected.error):
                    return  # of a NumPy scalar, which may be an array here
                if mode.startswith("jit") and isinstance(expected.error, (ValueError, ZeroDivisionError, IndexError)):
                    return  # a check of values
                self._add(mode, f"accepted: {got.value!r} for {expected.error!r}")
            elif mode.startswith("jit") and isinstance(expected.error, OverflowError):
                return  # a check of values, beside which there is another fault
            elif not same_kind_of_error(expected.error, got.error):
                self._add(mode, f"error: {got.error!r} for {expected.error!r}")
        elif got.error is not None:
            is_undefined = isinstance(got.error, OverflowError) and any(
                [self._has_no_number_of(np.asarray(x).dtype) for x in flat(expected.value)]
            )
            if isinstance(got.error, FuncError) or is_undefined:
                self.tally.refused(got.error)
            elif not (mode == "vmap" or mode.startswith("jit")) or not self._is_refused_of_scalars(got.error):
                self._add(mode, f"raises: {got.error!r} for {expected.value!r}")
        else:
            scalars = mode in ("plain", "jvp", "vjp") and not (call.args and isinstance(raw(call.args[0]), np.generic))
            exact = not self.is_rounded() and not mode.startswith("jit")
            scalars = scalars and not (call.name == "einsum" and call.kwargs.get("optimize"))
            infinite = any([np.iscomplexobj(leaf.value) for leaf in call.leaves()]) and not call.is_finite()
            is_open = infinite and mode.startswith("jit")  # products, quotients and powers: see sharp-bits.md
            loose = is_open or (infinite and (call.name in ROUNDS or call.name in PRODUCTS or self.is_rounded()))
            loose = loose or (call.name in ROUNDS and call.overflows())
            if call.name in QUANTILES and isinstance(expected.value, np.inexact) and np.isnan(expected.value):
                got.value = np.asarray(got.value).astype(expected.value.dtype)[()]  # that of the sample, in NumPy
            if call.name in LARGER_OR_SMALLER or (call.name in ROOTS and mode == "vmap"):
                expected.value, got.value = unsigned_zeros(expected.value), unsigned_zeros(got.value)
            found = difference(expected.value, got.value, exact, scalars, self.precision(), loose, is_open)
            if found and found.startswith("shape: ") and call.name == "polydiv":
                return  # rounding decides whether a coefficient of the remainder is zero, and is left out
            if found and found.startswith("shape: ") and mode != "plain" and call.name in POLYNOMIALS:
                whole = np.asarray(got.value)  # traced coefficients of zero stay
                extra = len(whole) - len(np.atleast_1d(expected.value))
                if extra > 0 and not whole[:extra].any():
                    found = difference(expected.value, whole[extra:], False, False, self.precision(), loose, is_open)
            if found and found.startswith("dtype: ") and mode == "plain" and self._is_of_booleans():
                return  # a Python number, where NumPy's shift or power is an int8
            if found and found.startswith("dtype: ") and mode != "plain" and self._is_of_objects():
                numbers = np.asarray(got.value).astype(expected.value.dtype)[()]
                found = difference(expected.value, numbers, False, False, 1e-6, loose)
            undefined = call.name in WRITES and self._writes_undefined_numbers()
            undefined = undefined or (call.name == "astype" and self._has_no_number_of(expected.value.dtype))
            if found and not undefined:
                self._add(mode, found)

    def _is_of_booleans(self) -> bool:
        """Whether all arguments are Python's True and False."""
        return all([type(leaf.value) is bool for leaf in self.call.leaves()])

    def is_wrong_in_numpy(self) -> bool:
        """Whether this is a vecmat of complex numbers with an `out` or an `order` other than C: NumPy writes to wrong
        places.
        """
        if self.call.name != "vecmat":
            return False
        dtype = raw(self.call.kwargs.get("dtype"))
        if raw(self.call.kwargs.get("order", "C")) in ("A", "F", "K") and dtype is not None:
            return np.dtype(dtype).kind == "c"
        out = raw(self.call.kwargs.get("out"))
        outs = [raw(x) for x in out] if isinstance(out, tuple) else [out]
        return any([np.iscomplexobj(x) and not x.flags.c_contiguous for x in outs if isinstance(x, np.ndarray)])

    def _writes_undefined_numbers(self) -> bool:
        """Whether a number is written into integers that they do not have: a NaN, or one out of range."""
        written, *others = [np.asarray(leaf.value) for leaf in self.call.leaves()]
        return any([self._are_undefined(x, written.dtype) for x in others])

    def _has_no_number_of(self, dtype: Any) -> bool:
        """Whether the first argument has numbers that a dtype of integers does not have."""
        return self._are_undefined(np.asarray(self.call.leaves()[0].value), dtype)

    @staticmethod
    def _are_undefined(x: Any, dtype: Any) -> bool:
        if dtype.kind not in "iu" or x.dtype.kind not in "fc":
            return False
        info = np.iinfo(dtype)
        with np.errstate(invalid="ignore"):
            return not np.all((x.real > info.min - 1.0) & (x.real < info.max + 1.0))

    def _is_refused_of_scalars(self, error: Exception) -> bool:
        """Whether NumPy says the same of scalars, which the elements of a batch are where they have no axes."""
        values = [v[()] if isinstance(v, np.ndarray) else v for v in [leaf.value for leaf in self.call.leaves()]]
        scalar = outcome(lambda: self.call.run(self.reference(), values)).error
        return scalar is not None and same_kind_of_error(scalar, error)

    def _is_of_objects(self) -> bool:
        """Whether a ufunc of NumPy's sees a list with traced numbers: objects, whose results do not know its dtype."""
        return isinstance(self.reference(), np.ufunc) and any([isinstance(arg, list) for arg in self.call.args])

    def _in_mode(self, mode: str, function: Any, leaves: list[Leaf], values: list[Any]) -> Outcome | None:
        call, r = self.call, self.r
        if mode == "plain":
            return outcome(lambda: call.run(function, values))
        # Constants with zeros are sparse matrices for compiled code: see jit.md about their products with infinities.
        all_of_them = mode.startswith("jit") and not call.is_finite()
        share = 1.0 if all_of_them else 0.8
        traced = [
            i for i, leaf in enumerate(leaves) if self._can_trace(mode, leaf) and (leaf.written or r.chance(share))
        ]
        constants = [value for i, value in enumerate(values) if i not in traced]
        if not traced or (all_of_them and any([not np.all(np.asarray(value)) for value in constants])):
            return None

        def of_traced(*given: Any) -> Any:
            filled = list(values)
            for place, value in zip(traced, given, strict=True):
                filled[place] = value
            return call.run(function, filled)

        given = [apart(values[i]) for i in traced]
        if mode == "jvp":
            tangents = [np.ones_like(x) if isinstance(x, (np.ndarray, np.generic)) else type(x)(1) for x in given]
            return outcome(lambda: _without_tangent(func.jvp(of_traced, tuple(given), tuple(tangents))))
        if mode == "vjp":
            return outcome(lambda: func.vjp(of_traced, *given)[0])
        if mode == "vmap":
            stacked = [batch_of(x) for x in given]
            return outcome(lambda: _first_of_batch(func.vmap(of_traced)(*stacked)))
        compiler = mode.removeprefix("jit ")
        return outcome(lambda: func.jit(of_traced, compiler=compiler)(*given))

    def _can_trace(self, mode: str, leaf: Leaf) -> bool:
        if isinstance(leaf.value, (list, bool)) or leaf.value is None:
            return False
        if mode in ("jvp", "vjp"):
            return is_inexact(leaf.value)
        if mode == "vmap":
            return not leaf.static and isinstance(leaf.value, (np.ndarray, np.generic))
        return not leaf.static

    def _differentiate(self, function: Any, leaves: list[Leaf], values: list[Any]) -> None:
        """Tangents and cotangents: dtypes and shapes, the adjoint identity, and differences."""
        call, r = self.call, self.r
        places = [i for i, leaf in enumerate(leaves) if is_inexact(leaf.value) and not leaf.static]
        if not places:
            return
        place = r.choose(places)
        x = apart(values[place])

        def of_one(value: Any) -> Any:
            filled = list(values)
            filled[place] = value
            return call.run(function, filled)

        tangent = r.values(np.shape(x), np.asarray(x).dtype, -1, 1)
        tangent = tangent if isinstance(x, np.ndarray) else tangent[()]
        forward = outcome(lambda: func.jvp(of_one, (x,), (tangent,)))
        if forward.error is not None:
            return
        self.tally.checked()
        outs, dots = flat(forward.value[0]), flat(forward.value[1])
        for out, dot in zip(outs, dots, strict=False):
            if not is_inexact(out):
                continue
            if np.asarray(dot).dtype != np.asarray(out).dtype and not np.isscalar(out):
                self._add("tangent", f"tangent dtype: {np.asarray(dot).dtype} for {np.asarray(out).dtype}")
                return
            if np.shape(dot) != np.shape(out):
                self._add("tangent", f"tangent shape: {np.shape(dot)} for {np.shape(out)}")
                return
        seeds = [r.values(np.shape(out), np.asarray(out).dtype, -1, 1) for out in outs]
        self._check_adjoint(of_one, x, tangent, outs, dots, seeds)
        self._check_differences(of_one, x, tangent, outs, dots)

    def _check_adjoint(
        self, of_one: Any, x: Any, tangent: Any, outs: list[Any], dots: list[Any], seeds: list[Any]
    ) -> None:
        active = [i for i, out in enumerate(outs) if is_inexact(out)]
        if not active:
            return

        def loss(value: Any) -> Any:
            results = flat(of_one(value))
            total: Any = 0.0
            for i in active:
                total = total + np.sum(np.real(results[i] * np.conj(seeds[i])))
            return total

        pulled = outcome(lambda: func.grad(loss)(x))
        if pulled.error is not None:
            if not isinstance(pulled.error, FuncError):
                self._add("grad", f"raises: {pulled.error!r}")
            return
        gradient = pulled.value
        self.tally.checked()
        if np.asarray(gradient).dtype != np.asarray(x).dtype or np.shape(gradient) != np.shape(x):
            self._add("grad", f"gradient dtype: {np.asarray(gradient).dtype} {np.shape(gradient)}")
            return
        inexact = [v for v in (*[leaf.value for leaf in self.call.leaves()], *outs) if is_inexact(v)]
        single = max([float(np.finfo(np.asarray(v).dtype).eps) for v in inexact])
        with np.errstate(all="ignore"):
            left = sum([np.sum(np.real(dots[i] * np.conj(seeds[i]))) for i in active])
            right = np.sum(np.real(np.conj(gradient) * tangent))
            size = sum([np.sum(np.abs(np.asarray(dots[i], complex) * seeds[i])) for i in active]) + np.sum(
                np.abs(np.asarray(gradient, complex) * tangent)
            )
        if np.isfinite(size) and abs(left - right) > self.adjoint_precision(single) * (1 + size):
            self._add("adjoint", f"adjoint: {left} forward, {right} reverse")

    def adjoint_precision(self, eps: float) -> float:
        """How far the two modes may differ where neighbouring numbers have the distance eps."""
        return eps * (1e6 if self.call.name in ILL_CONDITIONED else 50)

    def _check_differences(self, of_one: Any, x: Any, tangent: Any, outs: list[Any], dots: list[Any]) -> None:
        wide = [np.asarray(v).dtype in (np.float64, np.complex128) for v in [x, *outs] if is_inexact(v)]
        if not all(wide):
            return

        def central(step: float) -> Any:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                up, down = flat(of_one(moved(x, step * tangent))), flat(of_one(moved(x, -step * tangent)))
            return [
                (np.asarray(a) - np.asarray(b)) / (2 * step) if is_inexact(a) else 0
                for a, b in zip(up, down, strict=True)
            ]

        # A staircase has the slope of its hill in large steps, none in a small one.
        quotients = [outcome(lambda step=step: central(step)) for step in (1e-5, 3e-6, 1e-8)]  # type: ignore[misc]
        if any([quotient.error is not None for quotient in quotients]):
            return
        self.tally.checked()
        for out, dot, one, two, small in zip(outs, dots, *[quotient.value for quotient in quotients], strict=False):
            if not is_inexact(out) or any([np.shape(part) != np.shape(dot) for part in (one, two, small)]):
                continue
            if np.iscomplexobj(dot) != np.iscomplexobj(one):
                continue
            with np.errstate(all="ignore"):
                scale = 1 + np.abs(two) + np.abs(dot)
                settled = (np.abs(one - two) < 1e-5 * scale) & (np.abs(small - two) < 1e-2 * scale)
                wrong = settled & ~(np.abs(two - dot) < 1e-3 * scale) & np.isfinite(two)
            if np.any(wrong):
                self._add("differences", f"derivative: {dot} for {two}")
                return


def moved(x: Any, change: Any) -> Any:
    """x + change, an array where x is one and in the same memory layout."""
    if not isinstance(x, np.ndarray):
        return x + change
    out = laid_out_like(x)
    out[...] = x + change
    return out


def apart(x: Any) -> Any:
    """An argument that shares no memory with another value of the same call."""
    return laid_out_like(x) if type(x) is np.ndarray else x


def laid_out_like(x: Any) -> Any:
    """A copy in the same memory layout."""
    return x.copy("K") if is_dense(x) else in_strides(x, x.strides)


def batch_of(x: Any) -> Any:
    """Two copies along a new axis, each in the memory layout of x."""
    batch = np.stack([x, x])
    if isinstance(x, np.generic) or x.flags.c_contiguous or not x.size:
        return batch
    span = sum([abs(step) * n for step, n in zip(x.strides, x.shape, strict=True)])
    return in_strides(batch, (span, *x.strides))


def is_dense(x: Any) -> bool:
    """Whether a copy has the memory layout of x anyway."""
    return isinstance(x, np.generic) or x.flags.c_contiguous or x.flags.f_contiguous or not x.size


def in_strides(x: Any, strides: tuple[int, ...]) -> Any:
    """A copy with these strides."""
    steps = [stride // x.itemsize for stride in strides]
    last = [step * (n - 1) for step, n in zip(steps, x.shape, strict=True)]
    memory = np.zeros(sum([abs(offset) for offset in last]) + max([abs(step) for step in steps]), x.dtype)
    start = sum([-offset for offset in last if offset < 0])
    copied = np.lib.stride_tricks.as_strided(memory[start:], x.shape, strides)
    copied[...] = x
    return copied


def precision_of(value: Any) -> float:
    """The distance of neighbouring numbers in a value's dtype; of NumPy's loops for small integers."""
    dtype = np.asarray(value).dtype
    if dtype.kind in "fc":
        return float(np.finfo(dtype).eps)
    return {1: 1e-3, 2: 1.2e-7}.get(dtype.itemsize, 0.0)


def flat(value: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(value, (tuple, list)):
        return [leaf for entry in value for leaf in flat(entry)]
    return [value]


def _without_tangent(result: Any) -> Any:
    return result[0]


def _first_of_batch(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        entries = [_first_of_batch(entry) for entry in value]
        return entries if isinstance(value, list) else tuple(entries)
    return value[0] if isinstance(value, np.ndarray) else value


ROOTS = ("power", "float_power")
"""For one exponent 0.5 NumPy takes the root, which keeps the sign of -0.0; for an array of them it takes the power."""
NAMES = list(DOMAINS)


def case(choices: random.Random, tally: Tally) -> None:
    """One call of one function, in all modes."""
    name = choices.choice(NAMES)
    r = Draw(choices)
    call = draw_call(name, r)
    tally.show(str(call))
    tester = Tester(call, r, tally)
    if tester.is_wrong_in_numpy():
        return
    tester.check()
    if tester.found:
        mode, what = tester.found[0]
        raise AssertionError(f"np.{name}: {what}\nunder {mode}")
