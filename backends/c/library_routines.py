"""Linear algebra in C: what a `LibraryCall` computes, as functions of C, for every matrix of a batch.

`params["batch"]` of an item holds the lengths of the leading axes of all its references; the strides after them are
those of one operand. Matrices have their rows in memory (a stride of one along the last axis), or with the parameter
`turned` their columns. The last output is scratch memory in bytes for all routines but those in place. The same
routines call LAPACK in `backends/llvm/linalg/library_calls.py`, with other scratch memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.backends.c import c_products, factorizations, ordering_and_transforms, spectral_routines
from func.backends.c.declarations import real, stored_type
from func.backends.c.element_operations import CDefinitions, fma_text
from func.backends.c.loop_nests import NestWriter, index_text
from func.backends.loops.kernels import DType, LibraryCall, StridedRef


class CMatrix(NamedTuple):
    """An operand at one index of the batch: the text of its address, the elements from one row to the next (1 for
    vectors), the dtype."""

    start: str
    stride: int
    dtype: DType


class CRoutineCall(NamedTuple):
    """The operands of a routine, the addresses of its areas of scratch memory, and the functions that the program has
    so far."""

    definitions: CDefinitions
    outs: list[CMatrix]
    args: list[CMatrix]
    areas: list[str]


Write: TypeAlias = Callable[..., str]
Areas: TypeAlias = Callable[..., Sequence[int]]
ROUTINES: dict[str, Write] = {}
AREAS: dict[str, Areas] = {}
"""Of routines with scratch memory, the elements of its areas by the parameters."""


def c_routine(name: str, areas: Areas | None = None) -> Callable[[Write], Write]:
    """Register what writes the call of a routine: an expression that is true where the routine fails, or a statement
    that cannot fail, which ends with a semicolon. `areas` gives the numbers of elements of its areas of scratch memory,
    which have the dtype of the first argument; after them come as many numbers of int32 as the matrix has rows."""

    def register(write: Write) -> Write:
        ROUTINES[name] = write
        if areas is not None:
            AREAS[name] = areas
        return write

    return register


def _unless(failure: str) -> str:
    """A statement that ends the call where a routine fails: its results may have no values then."""
    inside = failure[1:-1] if failure.startswith("(") and failure.endswith("))") else failure
    return f"if ({inside}) {{ return status | 2; }}"


def _starts(item: LibraryCall) -> list[int]:
    """Where the areas of a routine begin in its scratch memory, and where the last ends, in bytes."""
    params = {name: value for name, value in item.params.items() if name != "batch"}
    starts = [0]
    for size in AREAS[item.routine](**params):
        starts.append(starts[-1] + -(-size * item.args[0].buffer.dtype.itemsize // 64) * 64)
    return [*starts, starts[-1] + 4 * params.get("n", 0)]


def scratch_bytes(item: LibraryCall) -> int | None:
    """The bytes of scratch memory that a routine needs; None where it has none.

    >>> from func.backends.loops.kernels import Buffer
    >>> matrix = StridedRef(Buffer(9, np.dtype(float)), 0, (3, 1))
    >>> scratch_bytes(LibraryCall("det", (matrix,), (matrix,), {"batch": (), "n": 3}))
    140
    """
    return _starts(item)[-1] if item.routine in AREAS else None


def write_routine(nests: NestWriter, item: LibraryCall) -> None:
    """The calls of a routine; where a routine fails, the error bit of the program's status is set."""
    params = dict(item.params)
    _batched(nests, item, params, params.pop("batch"), [])


def _batched(
    nests: NestWriter, item: LibraryCall, params: dict[str, Any], batch: tuple[int, ...], at: list[str]
) -> None:
    if len(at) < len(batch):
        with nests.builder.counted(batch[len(at)]) as i:
            _batched(nests, item, params, batch, [*at, i])
        return
    outs, args = ([_matrix(nests, ref, at) for ref in refs] for refs in (item.outs, item.args))
    write = ROUTINES.get(item.routine)
    if write is None:
        raise UnsupportedRoutine(f"{item.routine} is a call of a library")
    areas = []
    if item.routine in AREAS:
        word = stored_type(args[0].dtype) + (" complex" if args[0].dtype.kind == "c" else "")
        starts = _starts(item)[:-1]
        words = [word] * (len(starts) - 1) + ["int32_t"]
        areas = [f"({kind} *)(void *)({outs[-1].start} + {at})" for kind, at in zip(words, starts, strict=True)]
    text = write(CRoutineCall(nests.scalars.definitions, outs, args, areas), **params)
    nests.builder.effect(text if text.endswith(";") else f"{_unless(text)};")


def _matrix(nests: NestWriter, ref: StridedRef, at: list[str]) -> CMatrix:
    dtype = ref.buffer.dtype
    parts = 2 if dtype.kind == "c" else 1
    place = index_text(parts * ref.offset, [(i, parts * stride) for i, stride in zip(at, ref.strides, strict=False)])
    name = nests.memory.name(ref.buffer)
    strides = ref.strides[len(at) :]
    start = name if place == "0" else f"{name} + {place}"
    return CMatrix(start, strides[0] if len(strides) > 1 else 1, dtype)


class UnsupportedRoutine(Exception):
    """A routine has no form in C; the message says which."""


ENDS = {"float64": "", "float32": "f", "complex128": "", "complex64": "f"}
"""What the names of the C library's functions end with."""
LETTERS = {"float64": "d", "float32": "s", "complex128": "z", "complex64": "c"}
"""What the names of LAPACK's and BLAS's functions begin with."""
PLACES = ("LAPACK", "BLAS")
"""What lines begin with that are for code with LAPACK or BLAS; they are compiled with FUNC_LAPACK and FUNC_CBLAS."""


def _places(dtype: DType) -> dict[str, str]:
    """What stands for the places of a text, for a dtype."""
    is_complex, end = dtype.kind == "c", ENDS[dtype.name]
    part, double = stored_type(dtype), dtype.itemsize == (16 if is_complex else 8)
    word = f"{part}_complex" if is_complex else part
    return {
        "_TYPE": f"_{word}",
        "TYPE": f"{part} complex" if is_complex else part,
        "LETTER": LETTERS[dtype.name],
        "BITS": "64" if double else "32",
        "REALABS(": f"fabs{end}(",
        "(REAL)": f"({part})",
        "REAL ": f"{part} ",
        "sizeof(REAL)": f"sizeof({part})",
        "COMPLEX": flag(is_complex),
        "CONJ(": f"conj{end}(" if is_complex else "(",
        "COPYSIGN(": f"copysign{end}(",
        "SIZE(": f"func_size_{word}(" if is_complex else f"fabs{end}(",
        "ABS(": f"{'c' if is_complex else 'f'}abs{end}(",
        "FREXP(": f"frexp{end}(",
        "HYPOT(": f"hypot{end}(",
        "LDEXP(": f"ldexp{end}(",
        "RE(": f"creal{end}(" if is_complex else "(",
        "SQRT(": f"sqrt{end}(",
        "LOG(": f"log{end}(",
        "PLUS(": f"func_fma_{word}(",
        "UNIT": "unit * (value / size)" if is_complex else "value < 0 ? -unit : unit",
        "TINY": "2.3e-308" if double else "1.2e-38f",
        "LEAST": "1e-280" if double else "1e-30f",
        "MOST": "1e280" if double else "1e30f",
        "EPSILON": "1.1102230246251565e-16" if double else "5.9604645e-8f",
    }


SIZE = """\
static REAL func_size_TYPE(TYPE z) {
    return REALABS(creal(z)) + REALABS(cimag(z));
}"""
"""The modulus of complex numbers by which LAPACK chooses pivots."""


SINES = """\
/* Sines and cosines of n numbers, by what a number has beside a multiple of pi / 2, in four parts, and polynomials. */
static void func_sines(ptrdiff_t n, const double *restrict x, double *restrict sines, double *restrict cosines) {
#ifdef FUNC_LIBM
    const double most = -1;
#else
    const double most = 524288; /* larger numbers are left to the C library */
#endif
    bool others = false;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double shifted = x[i] * 0.63661977236758134308 + 6755399441055744.0, turns = shifted - 6755399441055744.0;
        const double low = turns * -8.4784276603689e-32, r = turns * -2.0222662487111665e-21
            + (turns * -6.077100506303966e-11 + (turns * -1.5707963267341256 + x[i])) + low;
        const double z = r * r, quarter = z * z;
        const double odd = (-1.66666666666666324348e-01 + z * 8.33333333332248946124e-03)
            + quarter * ((-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06)
            + quarter * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10));
        const double even = (4.16666666666666019037e-02 + z * -1.38888888888741095749e-03)
            + quarter * ((2.48015872894767294178e-05 + z * -2.75573143513906633035e-07)
            + quarter * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
        const double sine = r == 0 ? r : r + r * (z * odd), cosine = 1 - (0.5 * z - quarter * even);
        const uint64_t count = func_bits64(shifted);
        const bool turned = (count & 1u) != 0;
        sines[i] = func_real64(func_bits64(turned ? cosine : sine) ^ (count & 2u) << 62);
        cosines[i] = func_real64(func_bits64(turned ? sine : cosine) ^ ((count + 1) & 2u) << 62);
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        others = fabs(x[i]) > most || others;
    }
    for (ptrdiff_t i = 0; others && i < n; ++i) {
        sines[i] = fabs(x[i]) > most ? sin(x[i]) : sines[i];
        cosines[i] = fabs(x[i]) > most ? cos(x[i]) : cosines[i];
    }
}"""


def defined(call: CRoutineCall, dtype: DType, *texts: str) -> str:
    """Define functions for a dtype, each after those that it calls; the name of the last."""
    places, name = _places(dtype), ""
    for text in texts:
        text = _with_libraries(text, dtype)
        for place, value in places.items():
            text = text.replace(place, value)
        match = re.search(r"static \w+(?: complex)? (func_\w+)\(", text)
        assert match is not None
        name = match[1]
        if dtype.kind == "c" and places["SIZE("] in text and not name.startswith("func_size_"):
            defined(call, dtype, SIZE if ENDS[dtype.name] == "" else SIZE.replace("(z)", "f(z)"))
        call.definitions.texts.setdefault(name, text)
        if places["PLUS("] in text:
            call.definitions.texts.setdefault(places["PLUS("][:-1], fma_text(places["TYPE"]))
        if "func_minus_product_" in text:
            product = c_products.product_text(places["TYPE"], "minus_product")
            call.definitions.texts.setdefault(f"func_minus_product_{places['TYPE']}", product)
    return name


def _with_libraries(text: str, dtype: DType) -> str:
    """A text whose lines for libraries stand under the macros that choose them; BLAS is for real numbers."""
    lines: list[str] = []
    last = ""
    for line in text.split("\n"):
        if line.startswith(("REALS", "COMPLEXES")):
            if line.startswith("REALS") == (dtype.kind == "c"):
                continue
            line = line.removeprefix("REALS").removeprefix("COMPLEXES")
        library = next((place for place in PLACES if line.startswith(place)), "")
        if library != last:
            lines += ["#endif"] if last else []
            lines += [f"#ifdef FUNC_{'CBLAS' if library == 'BLAS' else library}"] if library else []
        last = library
        lines.append(line.removeprefix(library))
    joined = "\n".join(lines)
    if dtype.kind == "c":
        joined = re.sub(r"#ifdef FUNC_CBLAS\n.*?#endif\n", "", joined, flags=re.S)
    return joined


def pointer(operand: CMatrix) -> str:
    """The address of an operand as one of its elements."""
    if operand.dtype.kind != "c":
        return operand.start
    return f"(const {stored_type(operand.dtype)} complex *)({operand.start})"


def target(operand: CMatrix) -> str:
    """The address of an operand that is written."""
    return pointer(operand).replace("const ", "")


def flag(value: bool) -> str:
    """A truth value."""
    return "true" if value else "false"


def _either(matrix: CMatrix, turned: bool) -> str:
    """A matrix that lies by rows, or by columns, with its two strides."""
    down, across = (1, matrix.stride) if turned else (matrix.stride, 1)
    return f"{pointer(matrix)}, {down}, {across}"


LINES = factorizations.TAKE, factorizations.INNER
TRIANGLES = *LINES, factorizations.MINUS, factorizations.TRIANGULAR
CHOLESKY = (
    *(*TRIANGLES, factorizations.CHOLESKY_TILE, factorizations.CHOLESKY_ROWS),
    factorizations.CHOLESKY,
)
FACTOR = *TRIANGLES, factorizations.EXCHANGE, factorizations.PANEL, factorizations.LU
FOURS = factorizations.INNER_OF_FOUR, factorizations.TAKE_FROM_FOUR
REFLECT = *LINES, *FOURS, factorizations.NORM, factorizations.REFLECTOR, factorizations.REFLECT
QR = *REFLECT, factorizations.QR
LU_SOLVES = *FACTOR, factorizations.TRIANGULAR, factorizations.LU_SOLVE, factorizations.COPY
"""Functions and what they call."""


@c_routine("potrf")
def _potrf(call: CRoutineCall, *, n: int, lower: bool) -> str:
    (a,) = call.outs
    name = defined(call, a.dtype, *CHOLESKY)
    return f"{name}({n}, {target(a)}, {a.stride}, {flag(lower)})"


@c_routine("potri")
def _potri(call: CRoutineCall, *, n: int) -> str:
    (a,) = call.outs
    name = defined(call, a.dtype, factorizations.FIRST_ZERO, factorizations.TAKE, factorizations.CHOLESKY_INVERSE)
    return f"{name}({n}, {target(a)}, {a.stride})"


@c_routine("trtrs")
def _trtrs(call: CRoutineCall, *, n: int, k: int, lower: bool, trans: str, unit: bool, left: bool) -> str:
    (x,), (a,) = call.outs, call.args
    name = defined(call, a.dtype, *TRIANGLES)
    turned = (trans != "N") != (not left)
    conjugate = trans == "C" and a.dtype.kind == "c"
    b = f"{x.stride}, 1" if left else f"1, {x.stride}"
    solve = (
        f"{name}({n}, {k}, {_either(a, turned)}, {flag(lower != turned)}, {flag(unit)}, {flag(conjugate)}, "
        f"{target(x)}, {b})"
    )
    if unit:
        return f"{solve};"
    zero = defined(call, a.dtype, factorizations.FIRST_ZERO)
    return f"({solve}, {zero}({n}, {pointer(a)}, {a.stride + 1}))"


@c_routine("solve", lambda n, k: (n * n,))
def _solve(call: CRoutineCall, *, n: int, k: int) -> str:
    (a, b), x = call.args, call.outs[0]
    name = defined(call, a.dtype, *LU_SOLVES, factorizations.SOLVE)
    matrix, pivots = call.areas
    matrices = f"{pointer(a)}, {a.stride}, {pointer(b)}, {b.stride}, {target(x)}, {x.stride}"
    return f"{name}({n}, {k}, {matrices}, {matrix}, {pivots})"


@c_routine("inverse", lambda n, strict: (n * n,))
def _inverse(call: CRoutineCall, *, n: int, strict: bool) -> str:
    (a,), out = call.args, call.outs[0]
    fill = defined(call, a.dtype, factorizations.DIAGONAL)
    name = defined(call, a.dtype, *LU_SOLVES, factorizations.DIAGONAL, factorizations.INVERSE)
    matrix, pivots = call.areas
    invert = f"{name}({n}, {pointer(a)}, {a.stride}, {target(out)}, {out.stride}, {matrix}, {pivots})"
    if strict:
        return invert
    return f"if ({invert}) {{ {fill}({n}, {target(out)}, {out.stride}, 1, NAN, NAN); }};"


@c_routine("factors")
def _factors(call: CRoutineCall, *, n: int, turned: bool) -> str:
    (factors, pivots), (a,) = call.outs, call.args
    if a.dtype.kind == "f" and n <= 16:
        name = defined(call, a.dtype, factorizations.SMALL_LU.replace("WIDE", "8" if n <= 8 else "16"))
        return f"{name}({n}, {_either(a, turned)}, {target(factors)}, 1, {factors.stride}, {pivots.start});"
    copy = defined(call, a.dtype, factorizations.COPY)
    name = defined(call, a.dtype, *FACTOR)
    return (
        f"{copy}({n}, {n}, {_either(a, turned)}, {target(factors)}, 1, {factors.stride}); "
        f"{name}({n}, {n}, {target(factors)}, 1, {factors.stride}, {pivots.start});"
    )


@c_routine("lu", lambda m, n: ())
def _lu(call: CRoutineCall, *, m: int, n: int) -> str:
    (factors, pivots, order, _), (a,) = call.outs, call.args
    copy = defined(call, a.dtype, factorizations.COPY)
    name = defined(call, a.dtype, *FACTOR)
    call.definitions.texts.setdefault("func_order", factorizations.ORDER)
    return (
        f"{copy}({m}, {n}, {_either(a, False)}, {target(factors)}, {factors.stride}, 1); "
        f"{_unless(f'{name}({m}, {n}, {target(factors)}, {factors.stride}, 1, {pivots.start})')} "
        f"func_order({m}, {min(m, n)}, {pivots.start}, {order.start});"
    )


@c_routine("order")
def _order(call: CRoutineCall, *, n: int) -> str:
    call.definitions.texts.setdefault("func_order", factorizations.ORDER)
    return f"func_order({n}, {n}, {call.args[0].start}, {call.outs[0].start})"


@c_routine("getrs")
def _getrs(call: CRoutineCall, *, n: int, k: int, trans: str, turned: bool) -> str:
    (factors, pivots), (b,) = call.args, call.outs
    name = defined(call, b.dtype, *TRIANGLES, factorizations.LU_SOLVE)
    zero = defined(call, b.dtype, factorizations.FIRST_ZERO)
    conjugate = trans == "C" and b.dtype.kind == "c"
    return (
        f"({name}({n}, {k}, {_either(factors, turned)}, {pivots.start}, {flag(trans != 'N')}, {flag(conjugate)}, "
        f"{target(b)}, {b.stride}, 1), {zero}({n}, {pointer(factors)}, {factors.stride + 1}))"
    )


@c_routine("exchanges")
def _exchanges(call: CRoutineCall, *, n: int, k: int, back: bool) -> str:
    """Exchange the rows of a matrix; an error where the factors have a zero on their diagonal."""
    (factors, pivots), (b,) = call.args, call.outs
    name = defined(call, b.dtype, factorizations.EXCHANGES)
    zero = defined(call, b.dtype, factorizations.FIRST_ZERO)
    exchange = f"{name}({n}, {k}, {pivots.start}, {flag(back)}, {target(b)}, {b.stride})"
    return f"({exchange}, {zero}({n}, {pointer(factors)}, {factors.stride + 1}))"


@c_routine("getri", lambda n, turned, safe: ())
def _getri(call: CRoutineCall, *, n: int, turned: bool, safe: bool) -> str:
    (factors, pivots), out = call.args, call.outs[0]
    fill = defined(call, out.dtype, factorizations.DIAGONAL)
    name = defined(call, out.dtype, *TRIANGLES, factorizations.LU_SOLVE)
    zero = defined(call, out.dtype, factorizations.FIRST_ZERO)
    unit = f"{fill}({n}, {target(out)}, 1, {out.stride}, 1, 0)"
    solve = (
        f"{name}({n}, {n}, {_either(factors, turned)}, {pivots.start}, false, false, {target(out)}, 1, {out.stride})"
    )
    is_singular = f"{zero}({n}, {pointer(factors)}, {factors.stride + 1})"
    if safe:
        return f"{unit}; if (!{is_singular}) {{ {solve}; }};"
    return f"({unit}, {solve}, {is_singular})"


@c_routine("det", lambda n: (n * n,))
def _det(call: CRoutineCall, *, n: int) -> str:
    (a,), out = call.args, call.outs[0]
    copy = defined(call, a.dtype, factorizations.COPY)
    factor = defined(call, a.dtype, *FACTOR)
    name = defined(call, a.dtype, factorizations.DETERMINANT)
    matrix, pivots = call.areas
    word = stored_type(a.dtype)
    value = target(out)
    return (
        f"{copy}({n}, {n}, {_either(a, False)}, {matrix}, {n}, 1); {factor}({n}, {n}, {matrix}, {n}, 1, {pivots}); "
        f"{{ {word} logarithm; {name}({n}, {matrix}, {n + 1}, {pivots}, {value}, &logarithm); "
        f"*({value}) *= exp{ENDS[a.dtype.name]}(logarithm); }};"
    )


@c_routine("slogdet", lambda n: (n * n,))
def _slogdet(call: CRoutineCall, *, n: int) -> str:
    (a,), (sign, size, _) = call.args, call.outs
    copy = defined(call, a.dtype, factorizations.COPY)
    factor = defined(call, a.dtype, *FACTOR)
    name = defined(call, a.dtype, factorizations.DETERMINANT)
    matrix, pivots = call.areas
    return (
        f"{copy}({n}, {n}, {_either(a, False)}, {matrix}, {n}, 1); {factor}({n}, {n}, {matrix}, {n}, 1, {pivots}); "
        f"{name}({n}, {matrix}, {n + 1}, {pivots}, {target(sign)}, {size.start});"
    )


@c_routine("factored_slogdet")
def _factored_slogdet(call: CRoutineCall, *, n: int) -> str:
    (sign, size), (factors, pivots) = call.outs, call.args
    name = defined(call, factors.dtype, factorizations.DETERMINANT)
    return f"{name}({n}, {pointer(factors)}, {factors.stride + 1}, {pivots.start}, {target(sign)}, {size.start});"


@c_routine("qr", lambda m, n, complete: (m * (max(m, n) if complete else n), min(m, n)))
def _qr(call: CRoutineCall, *, m: int, n: int, complete: bool) -> str:
    (q, r, _), (a,) = call.outs, call.args
    columns = m if complete else min(m, n)
    copy = defined(call, a.dtype, factorizations.COPY)
    factor = defined(call, a.dtype, *QR)
    upper = defined(call, a.dtype, factorizations.UPPER)
    basis = defined(call, a.dtype, factorizations.QR_BASIS)
    matrix, tau, _ = call.areas
    return (
        f"{copy}({m}, {n}, {_either(a, False)}, {matrix}, 1, {m}); {factor}({m}, {n}, {matrix}, {tau}); "
        f"{upper}({columns}, {n}, {matrix}, 1, {m}, {target(r)}, {r.stride}, 1); "
        f"{basis}({m}, {min(m, n)}, {columns}, {matrix}, {m}, {tau}); "
        f"{copy}({m}, {columns}, {matrix}, 1, {m}, {target(q)}, {q.stride}, 1);"
    )


@c_routine("qr_raw", lambda m, n: ())
def _qr_raw(call: CRoutineCall, *, m: int, n: int) -> str:
    (h, tau, _), (a,) = call.outs, call.args
    copy = defined(call, a.dtype, factorizations.COPY)
    factor = defined(call, a.dtype, *QR)
    return (
        f"{copy}({m}, {n}, {_either(a, False)}, {target(h)}, 1, {m}); {factor}({m}, {n}, {target(h)}, {target(tau)});"
    )


ROTATE = *REFLECT, spectral_routines.SCALE, spectral_routines.ROTATE
SINGULAR = (
    *(*ROTATE, factorizations.EXCHANGE, factorizations.QR_BASIS, spectral_routines.RENEW_FOUR),
    *(spectral_routines.RENEW, spectral_routines.BIDIAGONAL, spectral_routines.ROTATION, spectral_routines.SMALLER),
    *(spectral_routines.DIAGONALIZE, spectral_routines.SINGULAR),
)


@c_routine("eigh", lambda n, lower, vectors: (n * n, n, n, 3 * n))
def _eigh(call: CRoutineCall, *, n: int, lower: bool, vectors: bool) -> str:
    (a,), w = call.args, call.outs[0]
    mirror = defined(call, a.dtype, spectral_routines.MIRROR)
    name = defined(call, a.dtype, *ROTATE, spectral_routines.TRIDIAGONAL, spectral_routines.EIGH)
    matrix, e, tau, work, _ = call.areas
    e = e.replace(" complex", "", 1)
    v, stride = (target(call.outs[1]), call.outs[1].stride) if vectors else ("NULL", 0)
    return (
        f"({mirror}({n}, {pointer(a)}, {a.stride}, {flag(lower)}, {flag(a.dtype.kind == 'c')}, {matrix}), "
        f"{name}({n}, {matrix}, {w.start}, {v}, {stride}, {e}, {tau}, {work}))"
    )


def _svd_areas(m: int, n: int, vectors: bool, full: bool) -> tuple[int, ...]:
    short, long = sorted((m, n))
    bases = (long * (long if full else short), short * short) if vectors else (0, 0)
    return m * n, *bases, 3 * long + 7 * short


@c_routine("svd", _svd_areas)
def _svd(call: CRoutineCall, *, m: int, n: int, vectors: bool, full: bool) -> str:
    """Singular values of A, or of its adjoint where that has fewer columns."""
    (a,), s = call.args, call.outs[0]
    short, long = sorted((m, n))
    columns = (long if full else short) if vectors else 0
    matrix, left, right, work, _ = call.areas
    bases = f"{columns}, {left}, {right}" if vectors else "0, NULL, NULL"
    rotate = defined(call, a.dtype, *SINGULAR)
    find = f"{rotate}({long}, {short}, {matrix}, {bases}, {s.start}, {work})"
    opening = _tall(call, a, m, n, matrix)
    if not vectors:
        return f"{opening} {_unless(find)};"
    u, vh = call.outs[1:3]
    copy = defined(call, a.dtype, factorizations.COPY)
    (left, left_columns), (right, right_columns) = ((left, columns), (right, short))[:: 1 if m >= n else -1]
    return (
        f"{opening} {_unless(find)} "
        f"{copy}({m}, {left_columns}, {left}, 1, {m}, {target(u)}, {u.stride}, 1); "
        f"{_adjoint(call, a.dtype, n, right_columns, f'{right}, 1, {n}', f'{target(vh)}, {vh.stride}, 1')}"
    )


def _adjoint(call: CRoutineCall, dtype: DType, m: int, n: int, start: str, place: str) -> str:
    """A statement that copies the adjoint of a matrix of m rows and n columns; texts have its address and strides."""
    if dtype.kind == "c":
        return f"{defined(call, dtype, spectral_routines.ADJOINT)}({m}, {n}, {start}, {place});"
    address, down, across = place.rsplit(", ", 2)
    return f"{defined(call, dtype, factorizations.COPY)}({m}, {n}, {start}, {address}, {across}, {down});"


def _tall(call: CRoutineCall, a: CMatrix, m: int, n: int, place: str) -> str:
    """A statement that copies A, or its adjoint where that has fewer columns, row by row."""
    if m < n:
        return _adjoint(call, a.dtype, m, n, f"{pointer(a)}, {a.stride}, 1", f"{place}, {m}, 1")
    copy = defined(call, a.dtype, factorizations.COPY)
    return f"{copy}({m}, {n}, {pointer(a)}, {a.stride}, 1, {place}, {n}, 1);"


@c_routine("lstsq", lambda m, n, k, limit: _svd_areas(m, n, True, False))
def _lstsq(call: CRoutineCall, *, m: int, n: int, k: int, limit: float) -> str:
    (x, residuals, s, _), (a, b) = call.outs, call.args
    short, long = sorted((m, n))
    matrix, left, right, work, _ = call.areas
    rotate = defined(call, a.dtype, *SINGULAR)
    name = defined(call, a.dtype, *LINES, spectral_routines.LEAST_SQUARES)
    single = ENDS[a.dtype.name] == "f"
    bound = real(limit if limit >= 0 else float(np.finfo(a.dtype).eps), single)
    return (
        f"{_tall(call, a, m, n, matrix)} "
        f"{_unless(f'{rotate}({long}, {short}, {matrix}, {short}, {left}, {right}, {s.start}, {work})')} "
        f"{name}({m}, {n}, {k}, {pointer(a)}, {a.stride}, {pointer(b)}, {b.stride}, {left}, {right}, {s.start}, "
        f"{bound}, {target(x)}, {x.stride}, {residuals.start});"
    )


@c_routine("solve_known", lambda n, k, kind, lower: (n * n, 2 * n))
def _solve_known(call: CRoutineCall, *, n: int, k: int, kind: str, lower: bool) -> str:
    (a, b), x = call.args, call.outs[0]
    dtype = a.dtype
    texts = (
        *LU_SOLVES,
        *CHOLESKY,
        factorizations.FIRST_ZERO,
        spectral_routines.FACTORED_SOLVE,
        spectral_routines.INVERSE_NORM,
        spectral_routines.COLUMN_NORM,
        spectral_routines.SOLVE_KNOWN,
    )
    name = defined(call, dtype, *texts)
    matrix, space, pivots = call.areas
    number = {"positive": 1, "triangular": 3 if lower else 2}.get(kind, 0)
    if kind == "general":
        opening = f"{defined(call, dtype, factorizations.COPY)}({n}, {n}, {_either(a, False)}, {matrix}, {n}, 1)"
    elif kind == "triangular":
        upper = defined(call, dtype, factorizations.UPPER)
        down, across = ("1", str(n)) if lower else (str(n), "1")
        opening = f"{upper}({n}, {n}, {_either(a, lower)}, {matrix}, {down}, {across})"
    else:
        hermitian = flag(kind != "symmetric" and dtype.kind == "c")
        mirror = defined(call, dtype, spectral_routines.MIRROR)
        opening = f"{mirror}({n}, {pointer(a)}, {a.stride}, {flag(lower)}, {hermitian}, {matrix})"
    return (
        f"({opening}, {name}({n}, {k}, {number}, {matrix}, {pointer(b)}, {b.stride}, {target(x)}, {x.stride}, "
        f"{pivots}, {space}))"
    )


IS_BEFORE = {"f": "*x < *y || (*y != *y && *x == *x)", "c": ordering_and_transforms.COMPLEX_ORDER}
"""The orders of numbers with NaN."""


@c_routine("argsort")
def _argsort(call: CRoutineCall, *, n: int, goes_on: bool = False) -> str:
    """The stable order of numbers; `goes_on` keeps the order that is there among equal ones."""
    x, (order, space) = call.args[0], call.outs
    kind, word = x.dtype.kind, stored_type(x.dtype)
    name = f"{word}_complex" if kind == "c" else word
    text = ordering_and_transforms.ARGSORT.replace("ORDER", IS_BEFORE.get(kind, "*x < *y"))
    text = text.replace("PARTS", "2" if kind == "c" else "1").replace("_TYPE", f"_{name}").replace("TYPE", word)
    first, second = text.split("\n\n")
    call.definitions.texts.setdefault(f"func_is_before_{name}", first)
    call.definitions.texts.setdefault(f"func_argsort_{name}", second)
    return f"func_argsort_{name}({n}, {x.start}, {order.start}, {space.start}, {flag(goes_on)});"


@c_routine("sines")
def _sines(call: CRoutineCall, *, n: int) -> str:
    """The sines and cosines of n numbers."""
    call.definitions.texts.setdefault("func_sines", SINES)
    return f"func_sines({n}, {call.args[0].start}, {call.outs[0].start}, {call.outs[1].start});"


def _drawn(call: CRoutineCall, name: str, *arguments: Any) -> str:
    """The call of a function of random numbers: for a key, then the arguments."""
    from func.backends.c import random_routines, special_functions  # start-up time: few programs need them

    for texts in (random_routines.TEXTS, special_functions.TEXTS):
        for known, text in texts.items():
            call.definitions.texts.setdefault(known, text)
    return f"{name}({', '.join(map(str, arguments))});"


@c_routine("random_words")
def _random_words(call: CRoutineCall, *, n: int, use: int) -> str:
    key, out = call.args[0].start, call.outs[0]
    if out.dtype.itemsize == 8:
        return _drawn(call, "func_words64", key, n, out.start)
    return _drawn(call, "func_words32", key, n, f"UINT32_C({use})", out.start)


@c_routine("random_fold")
def _random_fold(call: CRoutineCall) -> str:
    key, number = call.args
    return _drawn(call, "func_fold", key.start, f"*({number.start})", call.outs[0].start)


@c_routine("random_variates")
def _random_variates(call: CRoutineCall, *, n: int, law: str) -> str:
    key, *parameters = call.args
    return _drawn(call, f"func_{law}", key.start, n, *[x.start for x in parameters], call.outs[0].start)


@c_routine("roots_of_unity")
def _roots_of_unity(call: CRoutineCall, *, n: int, inverse: bool) -> str:
    (roots,) = call.outs
    word = stored_type(roots.dtype)
    call.definitions.texts.setdefault(f"func_roots_{word}", ordering_and_transforms.ROOTS.replace("TYPE", word))
    return f"func_roots_{word}({n}, {1 if inverse else -1}, {roots.start});"


@c_routine("fourier")
def _fourier(call: CRoutineCall, *, n: int, kind: int, scale: float) -> str:
    (x, roots), (out, space) = call.args, call.outs
    word = stored_type(space.dtype)
    first, second = ordering_and_transforms.FOURIER.replace("TYPE", word).split("\n\n")
    call.definitions.texts.setdefault(f"func_fft_{word}", first)
    call.definitions.texts.setdefault(f"func_transform_{word}", second)
    number = real(scale, word == "float")
    return f"func_transform_{word}({n}, {kind}, {number}, {x.start}, {roots.start}, {out.start}, {space.start});"
