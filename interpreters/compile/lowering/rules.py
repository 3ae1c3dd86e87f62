"""Lowering rules, for primitives whose text is better than the record of their implementation.

They write into given memory where the implementation cannot, work in place, call LAPACK without copies, or tell NumPy
from CuPy. `lower` applies the rule if there is one, and records the text otherwise.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from func.backends.array_helpers import arrays
from func.backends.array_helpers.inverses import cholesky_factor, lapack_letter
from func.backends.array_helpers.strided import place_strided
from func.backends.source.literals import axes_text, dtype_text, literal, tuple_text
from func.interpreters.compile.inlining import inline
from func.interpreters.compile.lowering.code import Code, LoweringContext, is_support, support_code, with_callees
from func.interpreters.compile.lowering.recording import record
from func.interpreters.core import Aval, Primitive, aval_of
from func.interpreters.core.errors import NoSourceError
from func.interpreters.primitives.structural.reductions import counts_exactly
from func.interpreters.primitives.structural.shapes import SMALL
from func.interpreters.primitives.structural.slicing import as_slices
from func.interpreters.program.program import Equation, Program, Var

Rule: TypeAlias = Callable[[LoweringContext], Code]
RULES: dict[str, Rule] = {}
"""The rules by the names of their primitives."""


def lower(equation: Equation, device: bool = False) -> Code:
    """The source text of an equation, for NumPy or (`device`) for `np` bound to CuPy.

    Raises NoSourceError for primitives whose parameters are functions or programs, and where no text can be recorded.
    """
    primitive, params = equation.primitive, equation.params
    avals = tuple([x.aval if type(x) is Var else aval_of(x) for x in equation.inputs])
    outs = tuple([var.aval for var in equation.outputs])
    context = LoweringContext(primitive, avals, outs, params, device)
    implementation = inspect.unwrap(primitive.impl)
    if primitive.name in RULES:
        code = RULES[primitive.name](context)
    elif is_support(implementation):
        code = support_code(implementation, context)
    elif not params and primitive.body is None:
        code = _record_without_parameters(primitive, avals, outs, device)
    elif primitive.communicates or equation.nested() or any([callable(value) for value in params.values()]):
        at = f" at {equation.line}" if equation.line is not None else ""
        why = "it exchanges messages with other processes"
        why = why if primitive.communicates else "its parameters are Python functions"
        raise NoSourceError(f"the primitive {primitive.name}{at} has no source text: {why}")
    elif primitive.body is not None:
        code = _code_of_body(equation, device)
    else:
        code = record(context)
    return code._replace(helpers=with_callees(code.helpers)) if code.helpers else code


def _code_of_body(equation: Equation, device: bool) -> Code:
    """The text of a primitive that represents others: a function that computes one after the other."""
    operands = {x: f"{{{position}}}" for position, x in enumerate(equation.inputs) if type(x) is Var}
    program = inline(Program(list(operands), [equation], equation.outputs, {}))
    names: dict[Var, str] = {var: literal(value) for var, value in program.constants.items()}
    names |= {var: f"x{number}" for number, var in enumerate(program.inputs)}
    words: list[str] = []
    helpers: list[Callable[..., Any]] = []
    for number, step in enumerate(program.equations):
        code = lower(step, device)
        helpers.extend(code.helpers)
        words.append(f"y{number} := {code.fresh.format(*[_word(x, names) for x in step.inputs])}")
        several = step.primitive.multiple
        names |= {var: f"y{number}[{item}]" if several else f"y{number}" for item, var in enumerate(step.outputs)}
    is_view = equation.primitive.view is True
    outs = [_word(x, names) + ".copy()" * (x in program.inputs and not is_view) for x in program.outputs]
    words.append(tuple_text(outs) if equation.primitive.multiple else outs[0])
    parameters = ", ".join([names[var] for var in program.inputs])
    text = f"(lambda {parameters}: [{', '.join(words)}][-1])({', '.join(operands.values())})"
    return Code(text, view=is_view, helpers=tuple(helpers))


def _word(x: Any, names: dict[Var, str]) -> str:
    return names[x] if type(x) is Var else literal(x)


@functools.lru_cache(4096)
def _record_without_parameters(
    primitive: Primitive, avals: tuple[Aval, ...], outs: tuple[Aval, ...], device: bool
) -> Code:
    """The most frequent texts: programs apply few functions without parameters to arrays of few shapes."""
    return record(LoweringContext(primitive, avals, outs, {}, device))


def lowering(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two lowering rules for {name!r}")
            RULES[name] = rule
        return rule

    return register


@lowering("nan_safe_multiply")
def _nan_safe_multiply(context: LoweringContext) -> Code:
    return Code(
        "nan_safe_multiply_into(np, {0}, {1}, {out})",
        out=True,
        plain="nan_safe_multiply(np, {0}, {1})",
        helpers=(arrays.nan_safe_multiply, arrays.nan_safe_multiply_into),
        inplace=context.matching(0),
    )


@lowering("where")
def _where(context: LoweringContext) -> Code:
    plain = "np.where({0}, {1}, {2})"
    if context.avals[0].dtype.kind != "b" or context.avals[0].weak:
        return Code(plain)
    text = "select_into(np, {0}, {1}, {2}, {out})"
    return Code(text, out=True, plain=plain, helpers=(arrays.select_into,), inplace=context.matching(2))


def _part(name: str, context: LoweringContext) -> Code:
    """A part of numbers; that of a Python number must be NumPy's scalar."""
    if context.avals[0].weak and not context.out.weak:
        return Code(f"{dtype_text(context.out.dtype)}(np.{name}({{0}}))")
    return record(context)


@lowering("real")
def _real(context: LoweringContext) -> Code:
    return _part("real", context)


@lowering("imag")
def _imag(context: LoweringContext) -> Code:
    """The imaginary part of real numbers is a writable array, not a view."""
    if context.avals[0].dtype.kind == "c" or not context.out.shape:
        return _part("imag", context)
    return Code(f"np.zeros({literal(context.out.shape)}, {dtype_text(context.out.dtype)})")


@lowering("complex")
def _complex(context: LoweringContext) -> Code:
    plain = f"make_complex({{0}}, {{1}}, np.empty({literal(context.out.shape)}, {dtype_text(context.out.dtype)}))"
    if not context.out.shape:
        return Code(f"{plain}[()]", helpers=(arrays.make_complex,))
    return Code("make_complex({0}, {1}, {out})", out=True, plain=plain, helpers=(arrays.make_complex,))


@lowering("convert")
def _convert(context: LoweringContext) -> Code:
    source, target = context.avals[0].dtype, context.out.dtype
    name = dtype_text(target)
    x = "{0}.real" if source.kind == "c" and target.kind not in "cb" else "{0}"
    if context.avals[0].weak:
        is_cut = source.kind in "fc" and target.kind in "iu"  # NumPy has a result for infinity, Python has none
        return Code(f"np.float64({x}).astype({name})" if is_cut else f"{name}({x})")
    plain = f"{x}.astype({name})"
    if "V" in (source.kind, target.kind) or (source.kind == "f" and target.kind in "iu"):
        return Code(plain)
    if target.kind == "b":
        return Code(f"np.not_equal({x}, 0, {{out}})", out=True, plain=plain)
    if source.kind == "b":
        return Code(f"np.add({{0}}, False, {{out}}, dtype={name})", out=True, plain=plain)
    text = f'np.positive({x}, {{out}}, casting="unsafe")'
    return Code(text, out=True, plain=plain, inplace=context.matching(0))


@lowering("broadcast")
def _broadcast(context: LoweringContext) -> Code:
    shape = context.out.shape
    if context.device or not shape or math.prod(shape) > SMALL:
        return record(context)
    plain = f"np.full({literal(shape)}, {{0}}, {dtype_text(context.out.dtype)})"
    if context.out.dtype.kind in "bV":
        return Code(plain)
    return Code("np.positive({0}, {out})", out=True, plain=plain, inplace=context.matching(0))


@lowering("embed")
def _embed(context: LoweringContext) -> Code:
    zeros = f"np.zeros({literal(context.out.shape)}, {dtype_text(context.out.dtype)})"
    return Code(
        f"place_into({{out}}, 0, {literal(as_slices(context.params['index']))}, {{0}})",
        out=True,
        plain=f"place({zeros}, {literal(as_slices(context.params['index']))}, {{0}})",
        helpers=(arrays.place, arrays.place_into),
    )


@lowering("update")
def _update(context: LoweringContext) -> Code:
    return _written(arrays.place, arrays.place_into, literal(as_slices(context.params["index"])), context)


@lowering("scatter")
def _scatter(context: LoweringContext) -> Code:
    return _written(arrays.place, arrays.place_into, _index(context), context)


@lowering("scatter_add")
def _scatter_add(context: LoweringContext) -> Code:
    return _written(arrays.scatter_add, arrays.scatter_add_into, _index(context), context, "np, ")


def _index(context: LoweringContext) -> str:
    """The index of a scatter, with full slices in front."""
    indices = [f"{{{position}}}" for position in range(2, len(context.avals))]
    return tuple_text([*["slice(None)"] * context.params["axis"], *indices])


def _written(
    fresh: Callable[..., Any], into: Callable[..., Any], index: str, context: LoweringContext, xp: str = ""
) -> Code:
    """Operand 0 with operand 1 written at an index: into a copy, into given memory, or into operand 0 itself."""
    copy = "{0}.copy()" if context.out.shape else "np.array({0})"
    return Code(
        f"{into.__name__}({xp}{{out}}, {{0}}, {index}, {{1}})",
        out=True,
        plain=f"{fresh.__name__}({xp}{copy}, {index}, {{1}})",
        helpers=(fresh, into),
        inplace=(0,),
    )


UNTOUCHED = 1 << 16
"""Zeros of more elements come from the system, where unwritten pages are cheap."""


@lowering("place")
def _place(context: LoweringContext) -> Code:
    placements = literal(context.params["placements"])
    zeros = f"np.zeros({literal(context.out.shape)}, {dtype_text(context.out.dtype)})"
    plain = f"place_strided(np, {zeros}, True, {placements}, {context.operands()})"
    written = sum([math.prod(sizes) for _, sizes, _ in context.params["placements"]])
    if context.out.size > UNTOUCHED and 4 * written < context.out.size:
        return Code(plain, helpers=(place_strided,))
    text = f"place_strided(np, {{out}}, False, {placements}, {context.operands()})"
    return Code(text, out=True, plain=plain, helpers=(place_strided,))


@lowering("argpartition")
def _argpartition(context: LoweringContext) -> Code:
    kth, axis, kind = [literal(context.params[name]) for name in ("kth", "axis", "kind")]
    return record(context) if context.device else Code(f"{{0}}.argpartition({kth}, {axis}, {kind})")


@lowering("argsort")
def _argsort(context: LoweringContext) -> Code:
    axis, kind = [literal(context.params[name]) for name in ("axis", "kind")]
    return record(context) if context.device else Code(f"{{0}}.argsort({axis}, kind={kind})")


@lowering("partition")
def _partition(context: LoweringContext) -> Code:
    kth, axis, kind = [literal(context.params[name]) for name in ("kth", "axis", "kind")]
    return record(context) if context.device else Code(f"np.partition({{0}}, {kth}, {axis}, {kind})")


@lowering("sort")
def _sort(context: LoweringContext) -> Code:
    axis, kind = [literal(context.params[name]) for name in ("axis", "kind")]
    return record(context) if context.device else Code(f"np.sort({{0}}, {axis}, kind={kind})")


@lowering("lexsort")
def _lexsort(context: LoweringContext) -> Code:
    keys = tuple_text([f"{{{position}}}" for position in range(len(context.avals))])
    if context.device:
        return support_code(arrays.lexsort, context)
    return Code(f"np.lexsort({keys}, {literal(context.params['axis'])})")


@lowering("cummax", "cummin")
def _running_extremum(context: LoweringContext) -> Code:
    if context.device:
        return record(context)
    call = f"np.{context.primitive.reduces}.accumulate({{0}}, {literal(context.params['axis'])}"
    return Code(f"{call}, out={{out}})", out=True, plain=f"{call})")


@lowering("mean")
def _mean(context: LoweringContext) -> Code:
    """The division of a sum overwrites it."""
    number = math.prod([context.avals[0].shape[axis] for axis in context.params["axes"]])
    total = f"{'np.sum' if context.device else 'np.add.reduce'}({{0}}, {axes_text(context.params['axes'])}"
    total += f", {literal(context.params['dtype'])}" if context.params["dtype"] is not None else ""
    if not counts_exactly(context.out.dtype, number):
        quotient = f"np.asarray(np.true_divide({total}), np.intp({literal(number)})))"
        return Code(f"{quotient}.astype({dtype_text(context.out.dtype)})[()]")
    text = f"np.true_divide({total}, out={{out}}), {literal(number)}, {{out}})"
    return Code(text, out=True, plain=f"np.true_divide({total}), {literal(number)})")


@lowering("sum_with", "prod_with")
def _masked(context: LoweringContext) -> Code:
    """NumPy reduces under a mask; CuPy reduces after the mask has inserted the neutral element. The implementation
    reduces bfloat16 in single precision."""
    if context.device or context.avals[0].dtype.kind == "V":
        return record(context)
    axes, dtype, initial = [literal(context.params[name]) for name in ("axes", "dtype", "initial")]
    ufunc = context.primitive.reduces
    call = f"np.{ufunc}.reduce({{0}}, {axes}, {dtype}"
    options = "where={1}" if initial == "None" else f"where={{1}}, initial={initial}"
    return Code(f"{call}, {{out}}, {options})", out=True, plain=f"{call}, {options})")


UNCOPIED = 32
"""From these orders on, LAPACK's own routine, called without copies, is faster than NumPy's."""


@lowering("cholesky")
def _cholesky(context: LoweringContext) -> Code:
    if context.params.get("upper"):
        if context.device:
            return support_code(inspect.unwrap(context.primitive.impl), context)
        return Code("np.linalg.cholesky({0}, upper=True)")
    single = len(context.out.shape) == 2 and context.avals[0].dtype == context.out.dtype
    if single and not context.device and context.out.shape[0] >= UNCOPIED:
        return Code("cholesky_factor(np, {0})", helpers=(cholesky_factor, lapack_letter))
    return Code("np.linalg.cholesky({0})")


@lowering("inv")
def _inv(context: LoweringContext) -> Code:
    if context.params.get("strict", True):
        return Code("np.linalg.inv({0})")
    return support_code(inspect.unwrap(context.primitive.impl), context)
