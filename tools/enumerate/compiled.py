"""Compiled programs: each pass, the pipeline, NumPy source and native code against plain evaluation.

Programs are single-rooted: each value but the last is used; commutative operands and independent equations come in one
order. They come in families, which have arrays to start from, numbers and constants as operands, and primitives: those
that meet in the rules of one pass. A family is complete up to its number of equations: one for all primitives with all
numbers, two for all pairs of primitives, three for the primitives of one pass. Thresholds of passes (the least outer
product, the fewest slices) are lowered to small arrays, those of code generators in some of the forms.

`passes-…` run each pass alone and the pipeline; `numpy-…` and `native-…` compile programs with a common beginning
together. `recomputation` changes plans of memory, `integers` and `sequences` call jitted functions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from func.interpreters.compile import passes, recomputation
from func.interpreters.compile.execution import compile_source
from func.interpreters.compile.native import native_parts
from func.interpreters.core import Aval
from func.interpreters.program.liveness import liveness
from func.interpreters.program.program import Equation, Program, Var
from tools.enumerate import _compiled_calls as calls
from tools.enumerate import _programs as small
from tools.enumerate.scope import Choices, OutOfScope, Part, everything

QUICK = 200

LOWERED = {
    "func.interpreters.compile.passes": {"LEAST_OUTER_PRODUCT": 2},
    "func.interpreters.compile.passes.low_rank": {"LEAST_OUTER_PRODUCT": 2},
    "func.interpreters.compile.passes.contraction_order": {"MIN_SLICES": 2, "MIN_GAIN": 1.0},
    "func.interpreters.compile.passes.linalg.shared_lu": {"MIN_ROWS": 1},
}
"""Thresholds that keep passes from small arrays, by module."""
LOOPED = {
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
    keeps: bool = False
    """Whether the first value may be an output too."""
    last: str = ""
    """The primitives of the last equation, where not all of them."""


ZEROS, ONES = np.zeros(2), np.ones(2)
INDICES = tuple([np.array(index) for index in ([0, 1], [1, 1], [2, 0], [0], 1)])
NUMBERS: tuple[Any, ...] = (
    *(0, 0.0, -0.0, 1, 1.0, -1, -1.0, 2, 0.5, 2.0, np.nan, np.inf, True, 1j, 1e300, ZEROS, ONES, 2 * ONES, -ZEROS),
    *(np.full(2, np.inf), np.full((1, 2), -1.0), np.zeros((2, 2)), np.array([0.0, -0.0]), np.ones(2, int)),
    *(np.ones(2, bool), np.zeros(2, np.float32), np.ones(2, complex)),
)
"""Numbers, and arrays of equal elements."""
FAMILIES = (
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
        keeps=True,
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
        keeps=True,
        last="gather update scatter_add add concatenate",
    ),
    Family(
        "orders",
        (_avals((2,)), _avals((3,), ((3,), _I)), _avals((2, 2)), _avals(((3,), _I)), _avals((0,)), _avals(((3,), _B))),
        "sort argsort reorder inverse_order partition partition_order argmax argmin",
        keeps=True,
    ),
    Family(
        "annotations",
        (_avals((2,)), _avals((2,), ((2,), _I))),
        "named stop_gradient barrier renumbered seed add multiply",
        (2.0, np.eye(2)),
        keeps=True,
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
"""All primitives that a pass, a fusion rule or a native form names, but for linear algebra and random numbers."""
_SHAPES = (((2,), (2, 2)), ((1, 2), (0, 2)), ((3,), ()))
_ALL_FRAMES = tuple([_avals((x, dtype), (y, dtype)) for dtype in (_F, _S, _I, _B, _C) for x, y in _SHAPES])
FAMILIES += (
    Family("everything", _ALL_FRAMES, EVERYTHING, (0, 2.0, np.array([1, 0]), np.array([False, True])), most=1),
    Family("pairs of everything", _ALL_FRAMES[::4], EVERYTHING, (), most=2),
)


@functools.cache
def _options(text: str) -> tuple[small.Operation, ...]:
    return tuple([small.operation(name) for name in text.split()])


@dataclass
class Start:
    """A program up to its last equation."""

    family: Family
    inputs: list[Var]
    constants: dict[Var, Any]
    fixed: list[Any]
    """Inputs, constants and numbers."""
    number: int
    steps: list[tuple[tuple[int, ...], Equation]] = field(default_factory=list)
    """Equations with the choices that made them."""
    unused: set[Var] = field(default_factory=set)
    made: list[Var] = field(default_factory=list)

    def operations(self) -> tuple[small.Operation, ...]:
        """What the next equation may be."""
        is_last = len(self.steps) == self.number - 1 > 0
        return _options(self.family.last if is_last and self.family.last else self.family.operations)

    def extend(self, choices: Choices, operations: Sequence[small.Operation] = ()) -> None:
        """Add an equation."""
        first = len(choices.taken)
        left = self.number - len(self.steps)
        equation = _equation(choices, operations or self.operations(), self.fixed, self.made, self.unused, left)
        key = tuple([index for index, _ in choices.taken[first:]])
        if self.steps and not set(equation.inputs) & set(self.steps[-1][1].outputs) and key < self.steps[-1][0]:
            raise OutOfScope  # the same two equations in the other order are another program of this family
        self.steps.append((key, equation))
        self.unused = (self.unused - set(equation.inputs)) | set(equation.outputs[:1])
        self.made += equation.outputs


def start(family: Family, choices: Choices) -> Start:
    """A program of a family without its last equation."""
    number = choices.pick(range(family.least, family.most + 1))
    inputs = [Var(aval) for aval in choices.pick(family.frames)]
    held = [small.constant(value) if isinstance(value, np.ndarray) else (None, value) for value in family.constants]
    constants = {var: value for var, value in held if var is not None}
    scalars = [value for var, value in held if var is None]
    begun = Start(family, inputs, constants, [*inputs, *constants, *scalars], number)
    for _ in range(number - 1):
        begun.extend(choices)
    return begun


def finish(begun: Start, operations: Sequence[small.Operation], choices: Choices) -> small.Drawn:
    """The program with its last equation."""
    if not begun.number:
        return small.Drawn(Program(begun.inputs, [], begun.inputs, {}))
    whole = replace(begun, steps=[*begun.steps], made=[*begun.made])
    whole.extend(choices, operations)
    equations = [equation for _, equation in whole.steps]
    outputs = list(equations[-1].outputs)
    if begun.family.keeps and begun.number > 1 and choices.pick((False, True)):
        outputs.append(whole.made[0])
    return small.Drawn(small.program_of(whole.inputs, equations, whole.constants, outputs))


def build(family: Family, choices: Choices) -> small.Drawn:
    """A program of a family."""
    return finish(start(family, choices), (), choices)


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
        places = range(first if operation.primitive.commutative and place == 1 else 0, len(pool))
        if left == 1 and place == operation.arity - 1:  # the last operand of all: what is missing
            missing = unused - set(operands)
            if len(missing) > 1:
                raise OutOfScope
            places = [k for k in places if not missing or pool[k] in missing] if missing else list(places)
        if not operation.takes_numbers:
            places = [k for k in places if type(pool[k]) is Var]
        first = choices.pick(places)
        operands.append(pool[first])
    if not any([type(x) is Var for x in operands]):
        raise OutOfScope
    avals = tuple([x.aval if type(x) is Var else small.aval_of(x) for x in operands])
    params, outs = choices.pick(small.applied(operation, avals))
    if len(unused - set(operands)) + 1 > left * 2:
        raise OutOfScope
    return Equation(operation.primitive, tuple(operands), params, tuple([Var(aval) for aval in outs]))


@contextlib.contextmanager
def lowered_thresholds(thresholds: dict[str, dict[str, int]] = LOWERED) -> Iterator[None]:
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
REORDERED = frozenset(
    {"sum", "mean", "prod", "contract", "variance", "sum_with", "prod_with", "logaddexp_reduce", "cumsum", "cumprod"}
    | {"scatter_add", "solve", "inv", "det", "slogdet", "cholesky", "triangular_solve", "segment_sum", "correlate"}
)
"""Primitives whose terms may be added in another order."""
PADDING = frozenset({"embed", "absent", "scatter", "update", "place", "seed", "nan_safe_multiply"})
"""Primitives that make arrays of zeros, whose signs may change where they are added."""


POWERS = frozenset({"power", "float_power"})
"""Primitives of which NumPy chooses the sign of a zero by the strides of the exponent: (−0.0) ** 0.5."""
POLES = frozenset({"divide", "reciprocal", "power", "float_power"})
"""Primitives that make infinities of zeros."""


ANGLES = frozenset({"arctan2", "copysign", "signbit", "heaviside", "nextafter"})
"""Primitives whose finite results depend on the sign of a zero."""


BRANCHED = frozenset({"sqrt", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "power", "float_power"})
LOGARITHMS = frozenset({"log", "log2", "log10", "log1p"})


def is_complex(drawn: small.Drawn) -> bool:
    """Whether it has complex numbers."""
    return any([var.dtype.kind == "c" for equation in drawn.program.equations for var in equation.outputs])


def kinds_of(drawn: small.Drawn, level: str) -> tuple[str, ...]:
    """The kinds of arguments for which results are compared: where the sign of a zero decides on the side of a branch
    cut, those without zeros."""
    names = ANGLES | BRANCHED | LOGARITHMS if is_complex(drawn) else ANGLES
    return small.KINDS if level == "bits" or not drawn.names & names else small.KINDS[:1]


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
    outputs = [x if type(x) is Var else None for x in drawn.program.outputs]
    for kind in kinds_of(drawn, level):
        text = small.difference(run(drawn.arguments(kind)), drawn.wanted(kind), outputs, level, ulp)
        if text is not None:
            head, _, rest = text.partition("\n")
            return f"{head}\n{kind} arguments {drawn.arguments(kind)}\n{rest}"
    return None


def check_passes(drawn: small.Drawn) -> str | None:
    """Each pass alone, and the pipeline."""
    program = drawn.program
    with lowered_thresholds(), small.quiet():
        for apply_pass in (*passes.PIPELINE, passes.optimize):
            name = apply_pass.__name__
            changed = apply_pass(program)
            if changed is program:
                continue
            text = compare(drawn, functools.partial(small.evaluated, changed), level_of(drawn, name))
            if text is not None:
                head, _, rest = text.partition("\n")
                return f"{name}: {head}\n{rest}\nafter the pass:\n{changed.text()}"
    return None


BATCH = 32
"""Programs that are compiled together."""
FORMS = ("apart", "shared", "looped", "optimized", "donated")
"""How programs are compiled together: with inputs of their own, with a common beginning, as loops instead of straight
code, after all passes, or as loops that may overwrite the inputs."""
_FUNCTIONS = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh deg2rad rad2deg power float_power arctan2 hypot logaddexp logaddexp2 divide reciprocal remainder"
)
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Primitives whose native form may differ from NumPy's in the last bits."""


Compile: TypeAlias = Callable[[Program, frozenset[int]], Callable[..., Any]]
"""Compiles a program that may overwrite some inputs."""

EITHER_ZERO = frozenset({"nan_safe_multiply", "maximum", "minimum", "fmax", "fmin", "max", "min", "cummax", "cummin"})
"""Primitives of which a zero may have either sign: NumPy's own differ from one machine to the next."""


@dataclass
class Batch:
    """Programs that differ in their last equation, and how they become one."""

    drawn: list[small.Drawn]
    form: str

    def __str__(self) -> str:
        return f"{len(self.drawn)} programs, {self.form}, the first of them:\n{self.drawn[0]}"


def build_batch(family: Family, choices: Choices) -> Batch:
    """`BATCH` programs with a common beginning and the same last primitive."""
    begun = start(family, choices)
    form = choices.pick(FORMS)
    operation = choices.pick(begun.operations())
    programs = [drawn for _, drawn in everything(functools.partial(finish, begun, (operation,)))]
    first = choices.pick(range(0, len(programs), BATCH))
    with small.quiet():
        defined = [drawn for drawn in programs[first : first + BATCH] if _is_defined(drawn)]
    if not defined:
        raise OutOfScope
    return Batch(defined, form)


def _is_defined(drawn: small.Drawn) -> bool:
    """Whether NumPy raises nothing, and integers are not made of numbers that they do not hold."""
    if any([isinstance(drawn.wanted(kind), Exception) for kind in small.KINDS]):
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
    """A program with variables of its own."""
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


def compiled_level(drawn: small.Drawn, form: str) -> tuple[str, float]:
    """How exactly compiled code keeps the numbers of a program, and up to how many units in the last place."""
    level = level_of(drawn, "optimize" if form == "optimized" else "eliminate_dead_code")
    if level == "seeds" or drawn.names & (REORDERED | FUNCTIONS):
        return ("seeds" if level == "seeds" else "rounding"), 256.0
    return ("zeros" if level == "bits" and drawn.names & EITHER_ZERO else level), 0.0


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
    for kind in small.KINDS:
        args: list[Any] = []
        for drawn in batch.drawn:
            if batch.form != "shared":
                args += drawn.arguments(kind)
        if batch.form == "shared":
            args = [small.numbers(var.aval, kind, place) for place, var in enumerate(program.inputs)]
        outs = run(*[np.array(x) for x in args])
        for drawn, stop in zip(batch.drawn, ends, strict=True):
            level = compiled_level(drawn, batch.form)
            if kind not in kinds_of(drawn, level[0]):
                continue
            mine = outs[stop - len(drawn.program.outputs) : stop]
            places = {var: place for place, var in enumerate(program.inputs)}
            if batch.form == "shared":
                own = [args[places[var]] for var in drawn.program.inputs]
                wanted = small.evaluated(drawn.program, own)
            else:
                own, wanted = drawn.arguments(kind), drawn.wanted(kind)
            variables = [x if type(x) is Var else None for x in drawn.program.outputs]
            text = small.difference(mine, wanted, variables, *level)
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
    keeps=True,
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


def _parts() -> Iterator[Part]:
    families = {family.name.replace(" ", "-"): family for family in FAMILIES}
    slow = {"linear-algebra": 20}
    for name, family in families.items():
        yield Part(f"passes-{name}", functools.partial(build, family), check_passes, slow.get(name))
    for name, compiler, quick in (("numpy", by_numpy, 8), ("native", natively, 4)):
        for part, family in families.items():
            check = functools.partial(check_compiled, compiler)
            yield Part(f"{name}-{part}", functools.partial(build_batch, family), check, 1 if part in slow else quick)
    yield Part("recomputation", functools.partial(build, RECOMPUTED), check_recomputation)
    yield Part("integers", calls.build_integers, calls.check_integers, 16)
    yield Part("sequences", calls.build_sequences, calls.check_sequences, 12)


PARTS = tuple(_parts())
