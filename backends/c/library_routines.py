"""Linear algebra in C: the computation of a `LibraryCall` as functions of C, for every matrix of a batch.

`params["batch"]` of an item holds the lengths of the leading axes of all its references; the strides after them are
those of one operand. Matrices have their rows in memory (a stride of one along the last axis), or with the parameter
`turned` their columns. The last output is scratch memory in bytes for all routines but those in place. The same
routines call LAPACK in `backends/llvm/linalg/library_calls.py`, with other scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.backends.c import c_products, ordering_and_transforms
from func.backends.c.declarations import real, stored_type
from func.backends.c.element_operations import CDefinitions
from func.backends.c.loop_nests import NestWriter, index_text
from func.backends.c.routine_text import EXTERNALS, fma_text
from func.backends.loops.kernels import DType, LibraryCall, StridedRef
from func.backends.routines import dense_factors as dense
from func.backends.routines import dense_spectra as spectra
from func.backends.routines import matrix_parts as parts
from func.backends.routines.typed import STRIDES, reading


class CMatrix(NamedTuple):
    """An operand at one index of the batch: its address as text, the step from row to row in elements, its dtype and
    layout. Vectors have one element per row."""

    start: str
    stride: int
    dtype: DType
    by_columns: bool = False

    def turned(self) -> CMatrix:
        """The transpose."""
        return self._replace(by_columns=not self.by_columns)


class CRoutineCall(NamedTuple):
    """The operands of a routine, the areas of scratch memory, and the functions that the program has so far."""

    definitions: CDefinitions
    outs: list[CMatrix]
    args: list[CMatrix]
    areas: list[CMatrix]

    def of(self, routine: Callable[..., Any], *args: CMatrix | int | str | None, fixed: int | None = None) -> str:
        """The call of a routine, which is defined for the dtype of the first operand that is not an integer."""
        source = reading(routine)
        dtype = next((arg.dtype for arg in args if isinstance(arg, CMatrix) and arg.dtype.kind in "fc"), None)
        listed = [item for item in source.parameters.items() if fixed is None or item[0] not in source.fixed]
        texts: list[str] = []
        for (name, kind), arg in zip(listed, args, strict=True):
            strides = [ending for ending in STRIDES.get(kind, ()) if ending]
            if isinstance(arg, CMatrix):
                both = [str(arg.stride), "1"][:: -1 if arg.by_columns else 1]
                texts += [_pointer(arg, name in source.written), *both[: len(strides)]]
            else:
                texts += ["NULL", *["0" for _ in strides]] if arg is None else [_text(arg)]
        return f"{self.definitions.routine(routine, dtype, fixed)}({', '.join(texts)})"

    def first_zero(self, n: int, a: CMatrix) -> str:
        """The call that looks for a zero on a diagonal."""
        return self.of(parts.first_zero, n, a._replace(stride=a.stride + 1))


def _text(arg: int | str) -> str:
    return flag(arg) if isinstance(arg, bool) else str(arg)


Write: TypeAlias = Callable[..., str]
Areas: TypeAlias = Callable[..., Sequence[int]]
ROUTINES: dict[str, Write] = {}
AREAS: dict[str, Areas] = {}
"""The elements of a routine's areas of scratch memory, by the parameters."""


def c_routine(name: str, areas: Areas | None = None) -> Callable[[Write], Write]:
    """Register the printer of a routine's call. It is an expression that is true if the routine fails, or a statement
    that cannot fail and ends with a semicolon. `areas` returns the numbers of elements of its areas of scratch memory,
    in the dtype of the first argument. One int32 for each row of the matrix follows.
    """

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
    """The start of each area of a routine in its scratch memory, and the end of the last, in bytes."""
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
    areas: list[CMatrix] = []
    if item.routine in AREAS:
        word = stored_type(args[0].dtype) + (" complex" if args[0].dtype.kind == "c" else "")
        starts = _starts(item)[:-1]
        words = [word] * (len(starts) - 1) + ["int32_t"]
        dtypes = [args[0].dtype] * (len(starts) - 1) + [np.dtype(np.int32)]
        areas = [
            CMatrix(f"({kind} *)(void *)({outs[-1].start} + {at})", params.get("n", 1), dtype)
            for kind, at, dtype in zip(words, starts, dtypes, strict=True)
        ]
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
"""The suffixes of the C library's function names."""
LETTERS = {"float64": "d", "float32": "s", "complex128": "z", "complex64": "c"}
"""The prefixes of LAPACK's and BLAS's function names."""
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


GETRF = """\
static bool func_getrf_TYPE(ptrdiff_t m, ptrdiff_t n, TYPE *a, ptrdiff_t a_down, ptrdiff_t a_across, int32_t *pivots) {
    const int layout = a_down == 1 ? LAPACK_COL_MAJOR : LAPACK_ROW_MAJOR;
    const lapack_int stride = (lapack_int)(a_down == 1 ? a_across : a_down);
    const lapack_int info = LAPACKE_LETTERgetrf(layout, (lapack_int)m, (lapack_int)n, a, stride, (lapack_int *)pivots);
    for (ptrdiff_t i = 0; i < (m < n ? m : n); ++i) {
        --pivots[i];
    }
    return info != 0;
}"""
POTRF = """\
static bool func_potrf_TYPE(ptrdiff_t n, TYPE *a, ptrdiff_t a_down, bool lower) {
    const char part = lower ? 'L' : 'U';
    const bool none = LAPACKE_LETTERpotrf(LAPACK_ROW_MAJOR, part, (lapack_int)n, a, (lapack_int)a_down) != 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = i + 1; j < n; ++j) {
            a[lower ? i * a_down + j : j * a_down + i] = 0;
        }
    }
    return none;
}"""
TRSM = """\
static void func_trsm_TYPE(ptrdiff_t n, ptrdiff_t k, const TYPE *a, ptrdiff_t a_down, ptrdiff_t a_across, bool lower,
                           bool unit, TYPE *b, ptrdiff_t b_down, ptrdiff_t b_across) {
    const bool turned = a_across != 1, left = b_across == 1;
    cblas_LETTERtrsm(CblasRowMajor, left ? CblasLeft : CblasRight, lower != turned ? CblasLower : CblasUpper,
                turned == left ? CblasTrans : CblasNoTrans, unit ? CblasUnit : CblasNonUnit, (int)(left ? n : k),
                (int)(left ? k : n), 1, a, (int)(turned ? a_across : a_down), b, (int)(left ? b_down : b_across));
}"""


def _of_library(name: str, macro: str, text: str) -> None:
    """Make a function of a library known, which is compiled with a macro only."""

    def texts(dtype: DType) -> dict[str, str]:
        word = stored_type(dtype)
        full = f"{word}_complex" if dtype.kind == "c" else word
        whole = text.replace("_TYPE", f"_{full}").replace("TYPE", full.replace("_", " "))
        whole = whole.replace("LETTER", LETTERS[dtype.name])
        return {f"func_{name}_{full}": f"#ifdef {macro}\n{whole}\n#endif"}

    EXTERNALS[name] = texts


def _gemm_minus_rows(dtype: DType) -> dict[str, str]:
    """A product to subtract, with the functions that it calls."""
    word = stored_type(dtype)
    product = c_products.product_text(word, "gemm_minus_rows")
    return {f"func_fma_{word}": fma_text(word), f"func_gemm_minus_rows_{word}": product}


EXTERNALS["gemm_minus_rows"] = _gemm_minus_rows
_of_library("getrf", "FUNC_LAPACK", GETRF)
_of_library("potrf", "FUNC_LAPACK", POTRF)
_of_library("trsm", "FUNC_CBLAS", TRSM)


def _pointer(operand: CMatrix, is_written: bool) -> str:
    """The address of an operand as one of its elements; that of an area of scratch memory is one already."""
    if operand.dtype.kind != "c" or operand.start.startswith("("):
        return operand.start
    return f"({'' if is_written else 'const '}{stored_type(operand.dtype)} complex *)({operand.start})"


def flag(value: bool) -> str:
    """A truth value."""
    return "true" if value else "false"


@c_routine("potrf")
def _potrf(call: CRoutineCall, *, n: int, lower: bool) -> str:
    return call.of(dense.cholesky, n, call.outs[0], lower)


@c_routine("potri")
def _potri(call: CRoutineCall, *, n: int) -> str:
    return call.of(dense.cholesky_inverse, n, call.outs[0])


@c_routine("trtrs")
def _trtrs(call: CRoutineCall, *, n: int, k: int, lower: bool, trans: str, unit: bool, left: bool) -> str:
    (x,), (a,) = call.outs, call.args
    turned = (trans != "N") != (not left)
    conjugate = trans == "C" and a.dtype.kind == "c"
    factor, right = a.turned() if turned else a, x if left else x.turned()
    solve = call.of(dense.triangular, n, k, factor, lower != turned, unit, conjugate, right)
    return f"{solve};" if unit else f"({solve}, {call.first_zero(n, a)})"


@c_routine("solve", lambda n, k: (n * n,))
def _solve(call: CRoutineCall, *, n: int, k: int) -> str:
    return call.of(dense.solve, n, k, *call.args, call.outs[0], *call.areas)


@c_routine("inverse", lambda n, strict: (n * n,))
def _inverse(call: CRoutineCall, *, n: int, strict: bool) -> str:
    invert = call.of(dense.inverse, n, call.args[0], call.outs[0], *call.areas)
    return invert if strict else f"if ({invert}) {{ {call.of(parts.diagonal, n, call.outs[0], 'NAN', 'NAN')}; }};"


@c_routine("factors")
def _factors(call: CRoutineCall, *, n: int, turned: bool) -> str:
    (factors, pivots), (a,) = call.outs, call.args
    a, factors = a.turned() if turned else a, factors.turned()
    if a.dtype.kind == "f" and n <= 16:
        return f"{call.of(dense.lu_of, n, a, factors, pivots, fixed=8 if n <= 8 else 16)};"
    return f"{call.of(parts.copy, n, n, a, factors)}; {call.of(dense.lu, n, n, factors, pivots)};"


@c_routine("lu", lambda m, n: ())
def _lu(call: CRoutineCall, *, m: int, n: int) -> str:
    (factors, pivots, order, _), (a,) = call.outs, call.args
    copy, factor = call.of(parts.copy, m, n, a, factors), _unless(call.of(dense.lu, m, n, factors, pivots))
    return f"{copy}; {factor} {call.of(parts.order_of, m, min(m, n), pivots, order)};"


@c_routine("order")
def _order(call: CRoutineCall, *, n: int) -> str:
    return call.of(parts.order_of, n, n, call.args[0], call.outs[0])


@c_routine("getrs")
def _getrs(call: CRoutineCall, *, n: int, k: int, trans: str, turned: bool) -> str:
    (factors, pivots), (b,) = call.args, call.outs
    conjugate = trans == "C" and b.dtype.kind == "c"
    left = factors.turned() if turned else factors
    return f"({call.of(dense.lu_solve, n, k, left, pivots, trans != 'N', conjugate, b)}, {call.first_zero(n, factors)})"


@c_routine("exchanges")
def _exchanges(call: CRoutineCall, *, n: int, k: int, back: bool) -> str:
    """Exchange the rows of a matrix; an error where the factors have a zero on their diagonal."""
    (factors, pivots), (b,) = call.args, call.outs
    return f"({call.of(dense.exchanges, n, k, pivots, back, b)}, {call.first_zero(n, factors)})"


@c_routine("getri", lambda n, turned, safe: ())
def _getri(call: CRoutineCall, *, n: int, turned: bool, safe: bool) -> str:
    (factors, pivots), out = call.args, call.outs[0].turned()
    unit = call.of(parts.diagonal, n, out, "1", "0")
    solve = call.of(dense.lu_solve, n, n, factors.turned() if turned else factors, pivots, False, False, out)
    is_singular = call.first_zero(n, factors)
    return f"{unit}; if (!{is_singular}) {{ {solve}; }};" if safe else f"({unit}, {solve}, {is_singular})"


def _determinant(call: CRoutineCall, n: int, sign: CMatrix, logarithm: CMatrix | str) -> str:
    """Statements that factor a copy of a matrix, and write the sign and the logarithm of its determinant."""
    matrix, pivots = call.areas
    opening = f"{call.of(parts.copy, n, n, call.args[0], matrix)}; {call.of(dense.lu, n, n, matrix, pivots)}"
    diagonal = matrix._replace(stride=n + 1)
    return f"{opening}; {call.of(parts.determinant, n, diagonal, 0, pivots, sign, logarithm)};"


@c_routine("det", lambda n: (n * n,))
def _det(call: CRoutineCall, *, n: int) -> str:
    out = call.outs[0]
    opening = f"{{ {stored_type(out.dtype)} logarithm; {_determinant(call, n, out, '&logarithm')}"
    return f"{opening} *({_pointer(out, True)}) *= exp{ENDS[out.dtype.name]}(logarithm); }};"


@c_routine("slogdet", lambda n: (n * n,))
def _slogdet(call: CRoutineCall, *, n: int) -> str:
    return _determinant(call, n, *call.outs[:2])


@c_routine("factored_slogdet")
def _factored_slogdet(call: CRoutineCall, *, n: int) -> str:
    factors, pivots = call.args
    return f"{call.of(parts.determinant, n, factors._replace(stride=factors.stride + 1), 0, pivots, *call.outs)};"


@c_routine("qr", lambda m, n, complete: (m * (max(m, n) if complete else n), min(m, n)))
def _qr(call: CRoutineCall, *, m: int, n: int, complete: bool) -> str:
    (q, r, _), (matrix, tau, _) = call.outs, call.areas
    columns, rows = m if complete else min(m, n), matrix._replace(stride=m)
    steps = (
        call.of(parts.copy, m, n, call.args[0], rows.turned()),
        call.of(dense.qr, m, n, rows, tau),
        call.of(parts.upper, columns, n, rows.turned(), r),
        call.of(dense.qr_basis, m, min(m, n), columns, rows, tau),
        call.of(parts.copy, m, columns, rows.turned(), q),
    )
    return f"{'; '.join(steps)};"


@c_routine("qr_raw", lambda m, n: ())
def _qr_raw(call: CRoutineCall, *, m: int, n: int) -> str:
    h, tau = call.outs[0]._replace(stride=m), call.outs[1]
    return f"{call.of(parts.copy, m, n, call.args[0], h.turned())}; {call.of(dense.qr, m, n, h, tau)};"


@c_routine("eigh", lambda n, lower, vectors: (n * n, n, n, 3 * n))
def _eigh(call: CRoutineCall, *, n: int, lower: bool, vectors: bool) -> str:
    (a,), w = call.args, call.outs[0]
    matrix, e, tau, work, _ = call.areas
    e = e._replace(start=e.start.replace(" complex", "", 1))
    find = call.of(spectra.eigh, n, matrix, w, call.outs[1] if vectors else None, e, tau, work)
    return f"({call.of(spectra.mirror, n, a, lower, a.dtype.kind == 'c', matrix)}, {find})"


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
    left, right = left._replace(stride=long), right._replace(stride=short)
    bases = (left, right) if vectors else (None, None)
    opening = f"{_tall(call, a, m, n, matrix)} "
    opening += _unless(call.of(spectra.singular, long, short, matrix, columns, *bases, s, work))
    if not vectors:
        return f"{opening};"
    u, vh = call.outs[1:3]
    (left, left_columns), (right, right_columns) = ((left, columns), (right, short))[:: 1 if m >= n else -1]
    copy = call.of(parts.copy, m, left_columns, left.turned(), u)
    return f"{opening} {copy}; {call.of(parts.adjoint, n, right_columns, right.turned(), vh)};"


def _tall(call: CRoutineCall, a: CMatrix, m: int, n: int, place: CMatrix) -> str:
    """A statement that copies A, or its adjoint where that has fewer columns, row by row."""
    routine = parts.adjoint if m < n else parts.copy
    return f"{call.of(routine, m, n, a, place._replace(stride=min(m, n)))};"


@c_routine("lstsq", lambda m, n, k, limit: _svd_areas(m, n, True, False))
def _lstsq(call: CRoutineCall, *, m: int, n: int, k: int, limit: float) -> str:
    (x, residuals, s, _), (a, b) = call.outs, call.args
    short, long = sorted((m, n))
    matrix, left, right, work, _ = call.areas
    left, right = left._replace(stride=long), right._replace(stride=short)
    find = _unless(call.of(spectra.singular, long, short, matrix, short, left, right, s, work))
    bound = real(limit if limit >= 0 else float(np.finfo(a.dtype).eps), ENDS[a.dtype.name] == "f")
    solve = call.of(spectra.least_squares, m, n, k, a, b, left, right, s, bound, x, residuals)
    return f"{_tall(call, a, m, n, matrix)} {find} {solve};"


@c_routine("solve_known", lambda n, k, kind, lower: (n * n, 2 * n))
def _solve_known(call: CRoutineCall, *, n: int, k: int, kind: str, lower: bool) -> str:
    (a, b), (matrix, space, pivots) = call.args, call.areas
    number = {"positive": 1, "triangular": 3 if lower else 2}.get(kind, 0)
    if kind == "general":
        opening = call.of(parts.copy, n, n, a, matrix)
    elif kind == "triangular":
        opening = call.of(parts.upper, n, n, *((a.turned(), matrix.turned()) if lower else (a, matrix)))
    else:
        opening = call.of(spectra.mirror, n, a, lower, kind != "symmetric" and a.dtype.kind == "c", matrix)
    return f"({opening}, {call.of(spectra.solve_known, n, k, number, matrix, b, call.outs[0], pivots, space)})"


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
    from func.backends.c import random_routines  # start-up time: few programs need them
    from func.backends.routines import special_families

    for known, text in random_routines.TEXTS.items():
        call.definitions.texts.setdefault(known, text)
    for quantile in ("gammaincinv", "gammainccinv", "ndtri"):
        call.definitions.routine(special_families.ROUTINES[quantile])
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
