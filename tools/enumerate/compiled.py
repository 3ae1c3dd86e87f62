"""Compiled programs: each pass, the pipeline, NumPy source and native code against plain evaluation.

Programs are single-rooted: each value but the last is used; commutative operands and independent equations come in one
order. Other passes see folded constants. All values of the programs of three equations, and the last of those of two,
therefore depend on an input or a seed. Programs that use a part of their frame come once, from the first frame that has
it.

They come in families of arrays to start from, numbers and constants as operands, and primitives. The primitives of a
family meet in the rules of one pass. A family is complete up to its number of equations. This is one for all primitives
with all numbers, two for all pairs of primitives, and three for the primitives of one pass. Thresholds of passes (the
least outer product, the fewest slices) are lowered to small arrays, those of code generators in some of the forms.

`passes-…` run each pass alone and the pipeline on all of them. `numpy-…` and `native-…` compile those of up to two
equations in each of the `FORMS`, many with a common beginning together. Longer programs are sampled, those of four and
five equations as `passes-longer`, of three to five as `numpy-longer` and `native-longer`. `…-traced` has programs of
transforms, `passes-loops` unrolled loops; `recomputation` changes plans of memory, `integers` and `sequences` call
jitted functions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile import passes, recomputation
from func.interpreters.compile.execution import compile_source
from func.interpreters.compile.native import native_parts
from func.interpreters.core import PRIMITIVES, Aval, aval_of, is_inexact
from func.interpreters.primitives.elementwise.pointwise import Pointwise
from func.interpreters.program.liveness import liveness
from func.interpreters.program.program import Equation, Program, Var
from tools.enumerate import _compiled_calls as calls
from tools.enumerate import _programs as small
from tools.enumerate import _traced as traced
from tools.enumerate.scope import Choices, OutOfScope, Part, everything

QUICK = 200

LOWERED: dict[str, dict[str, Any]] = {
    "func.interpreters.compile.passes": {"LEAST_OUTER_PRODUCT": 2},
    "func.interpreters.compile.passes.low_rank": {"LEAST_OUTER_PRODUCT": 2},
    "func.interpreters.compile.passes.contraction_order": {"MIN_SLICES": 2, "MIN_GAIN": 1.0},
    "func.interpreters.compile.passes.linalg.shared_lu": {"MIN_ROWS": 1},
}
"""Thresholds that keep passes from small arrays, by module."""
LOOPED: dict[str, dict[str, Any]] = {
    "func.backends.loops.scalar_expansion": {"LARGEST_NEST": 0, "LARGEST_PROGRAM": 0},
    "func.backends.loops.inplace_results": {"LEAST": 1},
    "func.interpreters.compile.planning": {"LARGE": 1, "WORTH_DROPPING": 1, "BLOCKED": 2},
    "func.backends.source.numpy_source": {"BLOCK": 2},
}
"""Thresholds that keep loops, plans of memory and blocks from small arrays, by module."""

_F, _S, _C, _I, _B, _U = (np.dtype(name) for name in ("f8", "f4", "c16", "i8", "?", "u1"))


def _avals(*items: Any) -> tuple[Aval, ...]:
    """Avals of shapes in double precision, and of (shape, dtype) pairs."""
    return tuple(
        [Aval(*item) if len(item) == 2 and isinstance(item[1], np.dtype) else Aval(item, _F) for item in items]
    )


@dataclass(frozen=True)
class Family:
    """Programs over some primitives."""

    name: str
    frames: tuple[tuple[Aval, ...], ...]
    """The inputs that a program chooses from."""
    operations: str
    constants: tuple[Any, ...] = ()
    """Arrays and numbers that may stand for operands."""
    least: int = 1
    """The fewest equations."""
    most: int = 3
    """The most equations."""
    keeps: str = ""
    """The candidates for a further output: the "first" value, or "any" value, input or constant, or the last value
    again.
    """
    last: str = ""
    """The primitives of the last equation, where not all of them."""
    first: str = ""
    """The primitives of the first one of three, where not all of them: those from which the pass starts."""
    axes: int = 3
    """The most axes of what the last one of three takes."""

    @functools.cached_property
    def counts(self) -> list[Counter[Aval]]:
        """How often each aval is in each frame."""
        return [Counter(frame) for frame in self.frames]


ZEROS, ONES = np.zeros(2), np.ones(2)
INDICES = tuple([np.array(index) for index in ([0, 1], [1, 1], [2, 0], [0], 1)])
NUMBERS: tuple[Any, ...] = (
    *(0, 0.0, -0.0, 1, 1.0, -1, -1.0, 2, 0.5, 2.0, np.nan, np.inf, True, 1j, 1e300, ZEROS, ONES, 2 * ONES, -ZEROS),
    *(np.full(2, np.inf), np.full((1, 2), -1.0), np.zeros((2, 2)), np.array([0.0, -0.0]), np.ones(2, int)),
    *(np.ones(2, bool), np.zeros(2, np.float32), np.ones(2, complex)),
)
"""Numbers, and arrays of equal elements."""
FAMILIES: tuple[Family, ...] = (
    Family(
        "arithmetic",
        (
            _avals((2,)),
            _avals((2,), (2,)),
            _avals(((2,), _C)),
            _avals(((2,), _I)),
            _avals((1,), (2, 1)),
            _avals(((2,), _S)),
            _avals(()),
            _avals(((2,), _U)),
        ),
        "add subtract multiply divide negative square power positive absolute nan_safe_multiply",
        (2, -1.0, 0.0, ZEROS, ONES),
        most=2,
    ),
    Family(
        "signs and factors",
        (_avals((2,)), _avals((1,), (2, 1)), _avals(((2,), _U))),
        "add subtract multiply divide negative square absolute",
        (4.0, -1.0, ZEROS),
    ),
    Family(
        "numbers",
        (
            _avals((2,)),
            _avals(((2,), _S), ((2,), _F)),
            _avals(((2,), _C), (2,)),
            _avals(((2,), _I)),
            _avals(((2,), _B)),
            _avals((2, 1), (1, 2)),
            _avals((0,), ()),
            _avals(((), _I), (2,)),
        ),
        "add subtract multiply divide power maximum nan_safe_multiply negative square positive absolute sqrt "
        "equal not_equal less logical_not conjugate real imag complex convert reciprocal sign floor",
        NUMBERS,
        most=1,
    ),
    Family(
        "choices",
        (_avals((2,), ((2,), _B)), _avals((1, 2), ((2, 1), _B)), _avals(((2,), _I), ((), _B))),
        "where equal not_equal logical_not negative convert",
        (0.0, 1, ZEROS, np.ones(2, bool), True),
        most=2,
    ),
    Family(
        "shapes",
        tuple([_avals(shape) for shape in ((2,), (1, 2), (2, 1), (1, 1), (2, 2), (), (0, 2), (2, 3))]),
        "reshape permute broadcast sum mean max negative",
    ),
    Family(
        "shapes of pairs",
        (
            _avals((2,), (2, 2)),
            _avals((1, 2), (2, 1)),
            _avals((2, 3), (3,)),
            _avals((1,), (2,)),
            _avals((0, 2), (1, 2)),
        ),
        "reshape permute broadcast add multiply",
        last="add multiply sum where permute",
    ),
    Family(
        "slices",
        tuple([_avals(shape) for shape in ((2,), (3,), (1,), (2, 2), (1, 2), (0,), (2, 0))]),
        "getitem embed broadcast reshape",
        keeps="first",
    ),
    Family(
        "pieces",
        (_avals((2,), (1,)), _avals((2, 2)), _avals((0,), (2,)), _avals((3,))),
        "getitem concatenate concatenate*3 reshape update",
        (ZEROS,),
        last="getitem concatenate concatenate*3 update",
    ),
    Family(
        "padded sums",
        (
            _avals((1,), (2,)),
            _avals((1,), (1,), (2, 2)),
            _avals((), (2,), (2, 2)),
            _avals((2,), (1, 2)),
            _avals((2, 1)),
            _avals((1,), ((1,), _S)),
            _avals((0,), (2,)),
        ),
        "embed add",
    ),
    Family(
        "sums",
        (_avals((2,), (2, 2)), _avals((2, 1), (2,)), _avals(((2, 2), _I)), _avals(((2,), _B)), _avals((0, 2))),
        "sum mean max min any all broadcast multiply divide negative reshape convert",
        (2.0, 0.0, np.full((2, 2), 3.0)),
        last="sum mean max min any all",
    ),
    Family(
        "contractions",
        (
            _avals((2,), (2, 2)),
            _avals((1, 2), (2,)),
            _avals((2, 1), (1, 2)),
            _avals((2, 2), ()),
            _avals((0, 2), (2,)),
            _avals(((2,), _I), (2, 2)),
            _avals(((2,), _U), (2,)),
        ),
        "contract permute multiply sum broadcast negative",
        (2.0, np.eye(2), np.ones(2)),
        most=2,
        last="contract sum add permute",
    ),
    Family(
        "sums of contractions",
        (_avals((2,)), _avals((2, 1)), _avals((0,)), _avals(((2,), _I))),
        "contract multiply sum broadcast negative",
        (2.0, ONES),
        last="contract sum",
        axes=2,
    ),
    Family(
        "products",
        (_avals((2,)), _avals((2, 1)), _avals((2, 3)), _avals(((2,), _I), (2,))),
        "contract add getitem",
        last="contract add",
    ),
    Family(
        "outer products",
        (_avals((2, 1), (1, 2)), _avals(((2, 1), _S), ((1, 3), _S))),
        "multiply square absolute power convert divide reshape permute concatenate sum mean negative",
        (2.0, 2, np.array([[1.0], [2.0]])),
        last="sum mean contract multiply",
        first="multiply",
    ),
    Family(
        "diagonals",
        (_avals((2,)), _avals((2, 2)), _avals((1, 2), ()), _avals((2, 1))),
        "seed multiply add subtract sum contract reshape permute getitem embed convert broadcast where divide negative "
        "square concatenate",
        (np.eye(2), np.eye(2).reshape(2, 2, 1), np.eye(3)[:2], np.eye(4).reshape(4, 2, 2), 2.0, 0.0),
        most=2,
        last="multiply add subtract sum contract reshape permute getitem embed broadcast divide",
    ),
    Family(
        "seeds",
        (_avals((2,)),),
        "seed multiply add sum reshape getitem contract",
        (np.eye(2),),
        last="add sum contract getitem",
    ),
    Family(
        "scattered",
        (_avals((2,)), _avals((2, 2)), _avals((), (3,)), _avals((2,), (3,))),
        "scatter scatter_add gather add multiply contract absolute sum getitem embed",
        (ZEROS, np.zeros((2, 2)), np.zeros(3), *INDICES, 2.0),
        most=2,
        last="scatter scatter_add gather add multiply contract sum getitem",
    ),
    Family(
        "writes",
        (_avals((3,), (2,)), _avals((2, 2))),
        "update scatter scatter_add gather absolute add concatenate embed",
        (INDICES[0], INDICES[1], ZEROS),
        keeps="first",
        last="gather update scatter_add add concatenate",
    ),
    Family(
        "orders",
        (_avals((2,)), _avals((3,), ((3,), _I)), _avals((2, 2)), _avals(((3,), _I)), _avals((0,)), _avals(((3,), _B))),
        "sort argsort reorder inverse_order partition partition_order argmax argmin",
        keeps="first",
    ),
    Family(
        "annotations",
        (_avals((2,)), _avals((2,), ((2,), _I))),
        "named stop_gradient barrier renumbered conventional seed add multiply",
        (2.0, np.eye(2)),
        keeps="first",
    ),
    Family(
        "factorizations",
        (_avals((2, 2)), _avals((2, 2), (2, 1)), _avals((1, 1)), _avals(((2, 2), _C)), _avals((2, 1)), _avals((1, 2))),
        "lu qr qr_raw svd svdvals eigh eigvalsh pinv lstsq solve_assumed adjugate det cholesky cholesky_inverse "
        "triangular_solve inv permute negative multiply contract",
        (2.0, np.array(1e-10), np.eye(2)),
        most=2,
    ),
    Family(
        "linear algebra",
        (_avals((2, 2)), _avals((2, 2), (2, 1)), _avals((1, 1)), _avals(((2, 2), _C))),
        "solve inv det slogdet cholesky triangular_solve permute negative multiply add contract conjugate",
        (2.0, np.eye(2)),
        most=2,
    ),
)

EVERYTHING = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and "
    "bitwise_or bitwise_xor invert left_shift right_shift isfinite isinf isnan signbit sign floor ceil trunc rint "
    "floor_divide bitwise_count gcd lcm heaviside spacing exponent nextafter subtract divide power float_power "
    "remainder fmod maximum minimum fmax fmin copysign logaddexp logaddexp2 hypot arctan2 ldexp reciprocal positive "
    "absolute square sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh deg2rad rad2deg real imag complex conjugate negative add multiply nan_safe_multiply where "
    "absent convert broadcast reshape permute sum cumsum cumprod cummax cummin max min prod mean variance sum_with "
    "prod_with logaddexp_reduce any all argmax argmin argsort sort partition partition_order argpartition reorder "
    "inverse_order search place take gather scatter scatter_add getitem embed update concatenate contract segment_sum "
    "named stop_gradient renumbered barrier seed windows correlate"
)
"""Primitives that a pass, a fusion rule or a native form names, and those of NumPy's functions."""
COMPOSED = " ".join(
    sorted(
        [
            name
            for name, primitive in PRIMITIVES.items()
            if isinstance(primitive, Pointwise)
            and primitive.defined_in.startswith(Pointwise.__module__.rpartition(".")[0])
            if name not in EVERYTHING.split()
        ]
    )
)
"""Elementwise primitives that only derivatives have, most of them with formulas for a native form."""
SPECIAL = "erf erfc expit gamma gammaln log_expit log_ndtr logit ndtr xlog1py xlogy sinc softmax log_softmax logsumexp"
"""Special functions with a native form."""
ELSEWHERE = {
    "cond_call scan_call while_call program_call": "`passes-traced` has them, `compositions` has more of them",
    "native_call": "the native code of a part of a program",
    "lu_factors factored_solve factored_slogdet factored_inverse": "passes make them of what `linear-algebra` has",
    "known_factor pivot_order": "`passes-traced`: they take what a factorization made",
    "sparse_product": "the tests of sparse matrices",
    "bei beip ber berp ellipe ellipk ellipkm1 exprel it2struve0 kei keip ker kerp obl_cv pro_cv": (
        "`tests/interpreters/compile/native/test_scipy_functions.py` tries SciPy's functions at special numbers"
    ),
}
"""Primitives that translations name and no family has, by where they are tried."""
_SHAPES = (((2,), (2, 2)), ((1, 2), (0, 2)), ((3,), ()))
_ALL_FRAMES = tuple([_avals((x, dtype), (y, dtype)) for dtype in (_F, _S, _I, _B, _C) for x, y in _SHAPES])
FAMILIES += (
    Family(
        "everything",
        _ALL_FRAMES,
        f"{EVERYTHING} {COMPOSED} {SPECIAL} overlap_add lexsort",
        (0, 2.0, np.array([1, 0]), np.array([False, True])),
        most=1,
    ),
    Family("pairs of everything", _ALL_FRAMES[::4], EVERYTHING, (), most=2),
)


@functools.cache
def _options(text: str) -> tuple[small.Operation, ...]:
    return tuple([small.operation(name) for name in text.split()])


UNFOLDED = frozenset({"seed", "barrier"})
"""Primitives of which `fold_constants` makes no constant."""


@dataclass
class Start:
    """A program up to its last equation."""

    family: Family
    frame: int
    """The index of its inputs among those of the family."""
    inputs: list[Var]
    constants: dict[Var, Any]
    fixed: list[Any]
    """Inputs, constants and numbers."""
    number: int
    steps: list[tuple[tuple[int, ...], Equation]] = field(default_factory=list)
    """Equations with the choices that made them."""
    unused: set[Var] = field(default_factory=set)
    made: list[Var] = field(default_factory=list)
    varying: set[Var] = field(default_factory=set)
    """The values that depend on an input, and those that are not constant after folding."""
    values: dict[str, small.Values] = field(default_factory=dict)
    """The values of its variables for each kind of arguments, once needed."""

    def valued(self, kind: str) -> small.Values:
        """The values of its variables for a kind of arguments."""
        if kind not in self.values:
            args = {var: small.numbers(var.aval, kind, place) for place, var in enumerate(self.inputs)}
            self.values[kind] = small.with_values([e for _, e in self.steps], {**self.constants, **args})
        return self.values[kind]

    def operations(self) -> tuple[small.Operation, ...]:
        """The candidates for the next equation."""
        family, place = self.family, len(self.steps)
        if family.first and place == 0 and self.number > 2:
            return _options(family.first)
        return _options(family.last if family.last and place == self.number - 1 > 0 else family.operations)

    def extend(self, choices: Choices, operations: Sequence[small.Operation] = ()) -> None:
        """Add an equation."""
        first = len(choices.taken)
        left = self.number - len(self.steps)
        equation = _equation(choices, operations or self.operations(), self.fixed, self.made, self.unused, left)
        key = tuple([index for index, _ in choices.taken[first:]])
        if self.steps and not set(equation.inputs) & set(self.steps[-1][1].outputs) and key < self.steps[-1][0]:
            raise OutOfScope  # the same two equations in the other order are another program of this family
        if left > 1 and self.number > 2 and len(equation.outputs[0].shape) > self.family.axes:
            raise OutOfScope
        if equation.primitive.name in UNFOLDED or not self.varying.isdisjoint(equation.inputs):
            self.varying.update(equation.outputs)
        elif self.number > 2 or left == 1 < self.number:
            raise OutOfScope
        self.steps.append((key, equation))
        self.unused = (self.unused - set(equation.inputs)) | set(equation.outputs[:1])
        self.made += equation.outputs


def start(family: Family, choices: Choices) -> Start:
    """A program of a family without its last equation."""
    number = choices.pick(range(family.least, family.most + 1))
    frame = choices.pick(range(len(family.frames)))
    inputs = [Var(aval) for aval in family.frames[frame]]
    held = [small.constant(value) if isinstance(value, np.ndarray) else (None, value) for value in family.constants]
    constants = {var: value for var, value in held if var is not None}
    scalars = [value for var, value in held if var is None]
    begun = Start(family, frame, inputs, constants, [*inputs, *constants, *scalars], number, varying=set(inputs))
    for _ in range(number - 1):
        begun.extend(choices)
    return begun


def finish(begun: Start, operations: Sequence[small.Operation], choices: Choices) -> small.Drawn:
    """The program with its last equation."""
    if not begun.number:
        return small.Drawn(Program(begun.inputs, [], begun.inputs, {}))
    whole = replace(begun, steps=[*begun.steps], made=[*begun.made], varying={*begun.varying})
    whole.extend(choices, operations)
    equations = [equation for _, equation in whole.steps]
    outputs = list(equations[-1].outputs)
    if begun.family.keeps and begun.number > 1:
        kept = whole.made[:1] if begun.family.keeps == "first" else [*whole.made, *whole.inputs, *whole.constants]
        outputs += choices.pick(((), *[(var,) for var in kept]))
    program = small.program_of(whole.inputs, equations, whole.constants, outputs)
    used = Counter([var.aval for var in program.inputs])
    if any([used <= counts for counts in begun.family.counts[: begun.frame]]):
        raise OutOfScope  # this program came with the earlier frame
    return small.Drawn(program, [whole.inputs.index(var) for var in program.inputs], begun.valued)


class Builder:
    """Builds the programs of a family; one after another, they share what they have in common."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._last: tuple[list[tuple[int, int]], Start] | None = None

    def __call__(self, choices: Choices) -> small.Drawn:
        if self._last is None or not choices.resume(self._last[0]):
            begun = start(self.family, choices)
            self._last = [*choices.taken], begun
        return finish(self._last[1], (), choices)


def _equation(
    choices: Choices,
    operations: Sequence[small.Operation],
    fixed: Sequence[Any],
    made: Sequence[Var],
    unused: set[Var],
    left: int,
) -> Equation:
    """One more equation, of `left` that are to come, after which the values that are still unused can all be used."""
    operation = choices.pick(operations)
    operands: list[Any] = []
    pool = [*reversed(made), *fixed]
    first = 0
    for place in range(operation.arity):
        places: Sequence[int] = range(first if operation.primitive.commutative and place == 1 else 0, len(pool))
        if left == 1 and place == operation.arity - 1:  # the last operand of all: what is missing
            missing = unused - set(operands)
            if len(missing) > 1:
                raise OutOfScope
            places = [k for k in places if not missing or pool[k] in missing] if missing else list(places)
        if place not in operation.takes_numbers:
            places = [k for k in places if type(pool[k]) is Var]
        first = choices.pick(places)
        operands.append(pool[first])
    if not any([type(x) is Var for x in operands]):
        raise OutOfScope
    avals = tuple([x.aval if type(x) is Var else aval_of(x) for x in operands])
    params, outs = choices.pick(small.applied(operation, avals))
    if len(unused - set(operands)) + 1 > left * 2:
        raise OutOfScope
    if operation.primitive.name.startswith("scatter") and outs[0].dtype.kind in "iu" and is_inexact(avals[1].dtype):
        raise OutOfScope  # C leaves undefined which integer a NaN becomes
    return Equation(operation.primitive, tuple(operands), params, tuple([Var(aval) for aval in outs]))


@contextlib.contextmanager
def lowered_thresholds(thresholds: dict[str, dict[str, Any]] = LOWERED) -> Iterator[None]:
    """Code that treats small arrays as large ones."""
    held = []
    for name, changes in thresholds.items():
        module = importlib.import_module(name)
        for key, value in changes.items():
            held.append((module, key, getattr(module, key)))
            setattr(module, key, value)
    try:
        yield
    finally:
        for module, key, value in reversed(held):
            setattr(module, key, value)


EXACT = frozenset(
    {"eliminate_dead_code", "strip_annotations", "fold_constants", "eliminate_common_subexpressions"}
    | {"drop_unneeded_orders"}
)
"""Passes that keep every bit."""
_FACTORED = (
    "solve inv det slogdet cholesky triangular_solve lu qr qr_raw svd svdvals eigh eigvalsh pinv lstsq solve_assumed "
    "adjugate cholesky_inverse"
)
FACTORED = frozenset(_FACTORED.split())
"""Primitives of LAPACK, of which no standard says how they spread what is not finite."""
AMBIGUOUS = frozenset({"qr", "qr_raw", "svd", "eigh", "lstsq", "pinv"})
"""Those whose results jump where a matrix is singular or values are equal."""
REORDERED = frozenset(
    {"sum", "mean", "prod", "contract", "variance", "sum_with", "prod_with", "logaddexp_reduce", "cumsum", "cumprod"}
    | {"scatter_add", "segment_sum", "correlate", "softmax", "log_softmax", "logsumexp", "overlap_add", *FACTORED}
)
"""Primitives whose terms may be added in another order."""
PADDING = frozenset({"embed", "absent", "scatter", "update", "place", "seed", "nan_safe_multiply"})
"""Primitives that make arrays of zeros, whose signs may change where they are added."""


POWERS = frozenset({"power", "float_power"})
"""Primitives of which NumPy chooses the sign of a zero by the strides of the exponent: (−0.0) ** 0.5."""
POLES = frozenset({"divide", "reciprocal", "power", "float_power"})
"""Primitives that make infinities of zeros."""


EITHER_ZERO = frozenset({"nan_safe_multiply", "maximum", "minimum", "fmax", "fmin", "max", "min", "cummax", "cummin"})
"""Primitives of which a zero may have either sign: NumPy's own differ from one machine to the next."""


ANGLES = frozenset({"arctan2", "copysign", "signbit", "heaviside", "nextafter"})
"""Primitives whose finite results depend on the sign of a zero."""


MOVEMENT = frozenset(
    {
        "reshape",
        "permute",
        "broadcast",
        "getitem",
        "embed",
        "concatenate",
        "update",
        "named",
        "stop_gradient",
        "barrier",
    }
)
"""Primitives that move numbers, whatever they are."""
BRANCHED = frozenset({"sqrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "power", "float_power"})
LOGARITHMS = frozenset({"log", "log2", "log10", "log1p"})


def is_complex(drawn: small.Drawn) -> bool:
    """Whether it has complex numbers."""
    return any([var.dtype.kind == "c" for equation in drawn.program.equations for var in equation.outputs])


def kinds_of(drawn: small.Drawn, level: str) -> tuple[str, ...]:
    """The kinds of arguments for which results are compared. The sign of a zero may decide on the side of a branch cut,
    or on the infinity of a maximum. Such programs get arguments without zeros. Sums in another order may be NaN instead
    of infinite, so a maximum of them has finite ones.
    """
    names = drawn.names
    if names <= MOVEMENT:
        return small.MOVED
    if names & AMBIGUOUS:
        return small.FINITE[:1]
    if names & FACTORED:
        return small.FINITE
    if level == "rounding" and names & EITHER_ZERO:
        return small.FINITE
    if level != "bits" and names & POLES and names & EITHER_ZERO:
        return small.FINITE[:1]
    signed = ANGLES | BRANCHED | LOGARITHMS if is_complex(drawn) else ANGLES
    return small.KINDS if level == "bits" or not names & signed else small.KINDS[:1]


def level_of(drawn: small.Drawn, pass_name: str) -> str:
    """How exactly a pass keeps the numbers of a program."""
    if pass_name in EXACT:
        return "bits"
    if "seed" in drawn.names:
        return "seeds"
    if drawn.names & REORDERED:
        return "rounding"
    is_folded = pass_name == "optimize" and bool(drawn.program.constants)  # constants make constants of zeros
    has_zeros = is_folded or any([not np.all(value) for value in drawn.program.constants.values()])
    if has_zeros or is_complex(drawn) or drawn.names & (PADDING | POWERS):
        return "poles" if drawn.names & POLES else "zeros"
    return "bits"


def compare(drawn: small.Drawn, run: Callable[[Sequence[Any]], Any], level: str, ulp: float = 64.0) -> str | None:
    """How results differ from those of plain evaluation for some kind of arguments."""
    for kind in kinds_of(drawn, level):
        args = drawn.arguments(kind)
        text = difference(drawn, run(args), drawn.wanted(kind), args, level, ulp)
        if text is not None:
            head, _, rest = text.partition("\n")
            return f"{head}\n{kind} arguments {args}\n{rest}"
    return None


def difference(drawn: small.Drawn, got: Any, wanted: Any, args: Sequence[Any], level: str, ulp: float) -> str | None:
    """Differences of outputs from the right ones beyond this many units in the last place of the least precise dtype.

    The unit is that of the largest value of the program if the largest output is too small: cancelling values are
    larger.
    """
    variables = [x if type(x) is Var else None for x in drawn.program.outputs]
    text = small.difference(got, wanted, variables, level, ulp * drawn.unit)
    if text is None or level != "rounding":
        return text
    return small.difference(got, wanted, variables, level, ulp * drawn.unit * small.largest(drawn.program, args))


def check_passes(drawn: small.Drawn) -> str | None:
    """Each pass alone, and the pipeline from the first one that changes something: on each Program once, for programs
    that differ become equal ones."""
    program = drawn.program
    with lowered_thresholds(), small.quiet():
        first = None
        for apply_pass in passes.PIPELINE:
            changed = apply_pass(program)
            if changed is program:
                continue
            first = changed if first is None else first
            text = _wrong_after(apply_pass.__name__, drawn, changed)
            if text is not None:
                return text
        if first is None or hash(first) in _OPTIMIZED:
            return None
        text = _wrong_after("optimize", drawn, passes.optimize(first))
        if text is None:
            _OPTIMIZED.add(hash(first))
        return text


_OPTIMIZED: set[int] = set()
"""The hashes of programs for which the pipeline is right."""


def _wrong_after(name: str, drawn: small.Drawn, changed: Program) -> str | None:
    text = compare(drawn, functools.partial(small.evaluated, changed), level_of(drawn, name))
    if text is None:
        return None
    head, _, rest = text.partition("\n")
    return f"{name}: {head}\n{rest}\nafter the pass:\n{changed.text()}"


BATCH, TOGETHER = 32, 8
"""The most programs that are compiled together, and how many last primitives they may have."""
FORMS = ("apart", "shared", "looped", "optimized", "donated", "strided")
"""Six ways to compile programs together: with separate inputs, with a common beginning, or as loops instead of straight
code. Or after all passes, as loops that may overwrite the inputs, or for arrays with other layouts.
"""
_FUNCTIONS = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh deg2rad rad2deg power float_power arctan2 hypot logaddexp logaddexp2 divide reciprocal remainder"
)
FUNCTIONS = frozenset(f"{_FUNCTIONS} {COMPOSED} {SPECIAL}".split())
"""Primitives whose native form may differ from NumPy's in the last bits, as do moduli of complex numbers."""


Compile: TypeAlias = Callable[[Program, frozenset[int]], Callable[..., Any]]
"""Compiles a program that may overwrite some inputs."""


@dataclass
class Batch:
    """Programs that differ in their last equation, and how they become one."""

    drawn: list[small.Drawn]
    form: str

    def __str__(self) -> str:
        return f"{len(self.drawn)} programs, {self.form}, the first of them:\n{self.drawn[0]}"


class BatchBuilder:
    """Builds batches of programs of a family that have all but the last equation in common."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._last: tuple[list[tuple[int, int]], list[list[small.Drawn]]] | None = None

    def __call__(self, choices: Choices) -> Batch:
        if self._last is None or not choices.resume(self._last[0]):
            begun = start(self.family, choices)
            operations = begun.operations()
            first = choices.pick(range(0, len(operations), TOGETHER))
            programs = everything(functools.partial(finish, begun, operations[first : first + TOGETHER]))
            with small.quiet():
                defined = [drawn for _, drawn in programs if _is_defined(drawn)]
            by_kinds: dict[Any, list[small.Drawn]] = {}
            for drawn in defined:
                by_kinds.setdefault(kinds_of(drawn, "bits"), []).append(drawn)
            batches = [some[k : k + BATCH] for some in by_kinds.values() for k in range(0, len(some), BATCH)]
            self._last = [*choices.taken], batches
        return Batch(choices.pick(self._last[1]), choices.pick(FORMS))


def _is_defined(drawn: small.Drawn) -> bool:
    """Whether NumPy raises nothing, and integers are not made of numbers that they do not hold."""
    if any([isinstance(drawn.wanted(kind), Exception) for kind in kinds_of(drawn, "bits")]):
        return False
    return not any([e.primitive.name == "convert" and _loses(e) for e in drawn.program.equations])


def _loses(equation: Equation) -> bool:
    (x,) = equation.inputs
    return type(x) is Var and x.dtype.kind in "fc" and equation.outputs[0].dtype.kind == "i"


def joined(batch: Batch) -> tuple[Program, list[int]]:
    """One program of all those of a batch, and which outputs belong to which."""
    inputs: list[Var] = []
    equations: dict[Equation, None] = {}
    outputs: list[Any] = []
    constants: dict[Var, Any] = {}
    ends = []
    for drawn in batch.drawn:
        program = drawn.program
        if batch.form == "optimized":
            with lowered_thresholds():
                program = passes.optimize(program)
        if batch.form != "shared":
            program = renamed(program)
        inputs += [var for var in program.inputs if var not in inputs]
        equations.update(dict.fromkeys(program.equations))
        constants.update(program.constants)
        outputs += program.outputs
        ends.append(len(outputs))
    return Program(inputs, list(equations), outputs, constants), ends


def renamed(program: Program) -> Program:
    """A program with its own variables."""
    new: dict[Any, Any] = {var: Var(var.aval) for var in (*program.inputs, *program.constants)}
    equations = []
    for equation in program.equations:
        inputs = tuple([new[x] if type(x) is Var else x for x in equation.inputs])
        outputs = tuple([Var(var.aval) for var in equation.outputs])
        new.update(zip(equation.outputs, outputs, strict=True))
        equations.append(Equation(equation.primitive, inputs, equation.params, outputs))
    atoms = [new[x] if type(x) is Var else x for x in program.outputs]
    constants = {new[var]: value for var, value in program.constants.items()}
    return Program([new[var] for var in program.inputs], equations, atoms, constants)


def _unary(drawn: small.Drawn) -> Iterator[Equation]:
    """The equations of one variable."""
    return (e for e in drawn.program.equations if len(e.inputs) == 1 and type(e.inputs[0]) is Var)


def compiled_level(drawn: small.Drawn, form: str) -> tuple[str, float]:
    """How exactly compiled code keeps the numbers of a program, and up to how many units in the last place."""
    level = level_of(drawn, "optimize" if form == "optimized" else "eliminate_dead_code")
    moduli = any([e.primitive.name in ("absolute", "sign") and e.inputs[0].dtype.kind == "c" for e in _unary(drawn)])
    if level == "seeds" or moduli or drawn.names & (REORDERED | FUNCTIONS):
        return ("seeds" if level == "seeds" else "rounding"), 256.0
    return ("zeros" if level == "bits" and drawn.names & (EITHER_ZERO | PADDING) else level), 0.0


def check_compiled(compile_batch: Compile, batch: Batch) -> str | None:
    """The programs of a batch compiled as one; where one differs, it is compiled alone."""
    text = _first_difference(compile_batch, batch)
    if text is None or len(batch.drawn) == 1:
        return text
    for drawn in batch.drawn:
        alone = _first_difference(compile_batch, Batch([drawn], batch.form))
        if alone is not None:
            return alone
    return f"only together: {text}"


def _first_difference(compile_batch: Compile, batch: Batch) -> str | None:
    with small.quiet():
        return _difference(batch, *joined(batch), compile_batch)


def _difference(batch: Batch, program: Program, ends: list[int], compile_batch: Compile) -> str | None:
    donated = frozenset(range(len(program.inputs)) if batch.form == "donated" else ())
    with lowered_thresholds(LOOPED if batch.form in ("looped", "donated") else {}):
        run = compile_batch(program, donated)
    levels = [compiled_level(drawn, batch.form) for drawn in batch.drawn]
    kinds = [kinds_of(drawn, level) for drawn, (level, _) in zip(batch.drawn, levels, strict=True)]
    for kind in small.KINDS:
        if not any([kind in some for some in kinds]):
            continue
        args: list[Any] = []
        for drawn in batch.drawn:
            if batch.form != "shared":
                args += drawn.arguments(kind)
        if batch.form == "shared":
            args = [small.numbers(var.aval, kind, place) for place, var in enumerate(program.inputs)]
        lie = small.strided if batch.form == "strided" else np.array
        outs = run(*[lie(x) for x in args])
        for drawn, stop, (level, ulp), some in zip(batch.drawn, ends, levels, kinds, strict=True):
            if kind not in some:
                continue
            mine = outs[stop - len(drawn.program.outputs) : stop]
            places = {var: place for place, var in enumerate(program.inputs)}
            if batch.form == "shared":
                own = [args[places[var]] for var in drawn.program.inputs]
                wanted = small.evaluated(drawn.program, own)
            else:
                own, wanted = drawn.arguments(kind), drawn.wanted(kind)
            text = difference(drawn, mine, wanted, own, level, ulp)
            if text is not None:
                head, _, rest = text.partition("\n")
                return f"{head}\n{drawn}\n{kind} arguments {own}\n{rest}"
    return None


def by_numpy(program: Program, donated: frozenset[int]) -> Callable[..., Any]:
    """NumPy source of a program."""
    return compile_source(program, np, donated)


def natively(program: Program, donated: frozenset[int]) -> Callable[..., Any]:
    """Native code of a program, in parts where it has others."""
    from func.interpreters.compile.native import executable  # LLVM, which not every machine has

    compiler = executable._Compiler(False)
    foreign = native_parts.foreign_equations(program)
    if foreign:
        return compile_source(native_parts.with_native_parts(program, foreign, compiler.part), np)
    return compiler.whole(program, donated)[0]


RECOMPUTED = Family(
    "recomputation",
    (_avals((2,)), _avals((2, 3), (0,)), _avals((), (3,)), _avals((0, 2))),
    "negative multiply broadcast sum getitem concatenate",
    (2.0,),
    least=0,
    most=4,
    keeps="first",
)
"""Programs whose plans of memory are changed: with views, copies and arrays without elements."""


def check_recomputation(drawn: small.Drawn) -> str | None:
    """All programs that need less memory, and the one that fits a limit."""
    program = drawn.program
    with small.quiet():
        return _recomputed_difference(drawn, program)


def _recomputed_difference(drawn: small.Drawn, program: Program) -> str | None:
    peak = liveness(program).peak
    fitting = [recomputation.fitting(program, limit, lambda p: liveness(p).peak)[0] for limit in (0, peak // 2)]
    for changed in (*recomputation.with_less_memory(program), *fitting):
        text = compare(drawn, functools.partial(small.evaluated, changed), "bits")
        if text is not None:
            return f"recomputation: {text}\nthe program with less memory:\n{changed.text()}"
    return None


LONGER = tuple([replace(family, least=4, most=5, keeps="any") for family in FAMILIES])
"""The families beyond the scope that is complete: they are sampled."""
CODE = tuple([replace(family, most=min(family.most, 2)) for family in FAMILIES])
"""The families of which all programs are compiled."""
LONGER_CODE = tuple([BatchBuilder(replace(family, least=3, most=5, keeps="any")) for family in FAMILIES])
"""Those of which a sample is compiled."""


def build_longer(choices: Choices) -> small.Drawn:
    """A program of four or five equations."""
    return finish(start(choices.pick(LONGER), choices), (), choices)


def build_longer_batch(choices: Choices) -> Batch:
    """Programs of three to five equations with a common beginning."""
    return choices.pick(LONGER_CODE)(choices)


def _parts() -> Iterator[Part]:
    families = {family.name.replace(" ", "-"): family for family in FAMILIES}
    slow = {"linear-algebra": 20}
    for name, family in families.items():
        yield Part(f"passes-{name}", Builder(family), check_passes, slow.get(name))
    for name, compiler, quick in (("numpy", by_numpy, 8), ("native", natively, 4)):
        check = functools.partial(check_compiled, compiler)
        for part, family in zip(families, CODE, strict=True):
            yield Part(f"{name}-{part}", BatchBuilder(family), check, 1 if part in slow else quick)
        yield Part(f"{name}-longer", build_longer_batch, check, quick)
    yield Part("passes-longer", build_longer, check_passes)
    yield Part("passes-traced", traced.build, functools.partial(traced.check_passes, lowered_thresholds), 60)
    yield Part("passes-loops", traced.build_loop, functools.partial(traced.check_passes, lowered_thresholds), 60)
    looped = functools.partial(lowered_thresholds, LOWERED | LOOPED)
    yield Part("code-traced", traced.build, functools.partial(traced.check_code, (contextlib.nullcontext, looped)), 6)
    yield Part("recomputation", Builder(RECOMPUTED), check_recomputation)
    yield Part("integers", calls.build_integers, calls.check_integers, 16)
    yield Part("sequences", calls.build_sequences, calls.check_sequences, 12)


PARTS = tuple(_parts())
