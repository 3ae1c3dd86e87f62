"""Rules of general primitives, traced once for all arguments of equal shapes and dtypes.

The jvp of a general primitive calls other primitives. Its pullback is that jvp with traced tangents, transposed
(`transpose.py`). Tracing it in each call takes ten times as long as a small factorization. For plain arrays the trace
does not depend on their numbers, so the second call with arguments of a kind makes two programs:

    forward:   arguments → outputs, and residuals: the factors of the tangents
    pullback:  residuals, cotangents → cotangents of the arguments; one for each set of outputs that have one

From then on these run, equation by equation. A rule is one object for all nodes of its kind, and its pullback consists
of primitives. So frequent backward passes with it become code (`calls/backward_plans.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from func.backends import messages
from func.backends.quiet import quietly
from func.interpreters import core, drivers
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Params, Primitive, Shaped, Tracer
from func.interpreters.core.errors import ValidationError
from func.interpreters.core.wiring import WIRING
from func.interpreters.grad import Grad
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.elementwise.conventions import CONVENTIONS
from func.interpreters.primitives.elementwise.pointwise import HOST_ARRAYS
from func.interpreters.program.content_keys import typed_key
from func.interpreters.program.program import Equation, Program, Var
from func.interpreters.program.translations import TRANSLATIONS
from func.interpreters.stage import DerivedStage
from func.interpreters.transpose import LINEARIZED, LINEARIZED_AT_FIRST, linearized, transpose_program
from func.interpreters.vmap import Vmap

AT_ONCE = False
"""Whether the first call with arguments of a kind traces the rule, not the second. For tests."""
MOST_RULES = 512
"""The most rules in the cache."""
MOST_BYTES = 1 << 18
"""The most bytes of the constants of one rule: next to large ones, such as masks, tracing takes little time."""
OPERATIONS_OF_STEP = 15_000
"""The overhead of a step in arithmetic operations of a matrix routine."""


def _has_aval_of(value: Any, out: Var) -> bool:
    return type(value) is Var and (value.shape, value.dtype) == (out.shape, out.dtype)


def without_conventions(program: Program) -> Program:
    """The program for plain arrays without further derivatives."""
    names: dict[Any, Any] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        inputs = tuple([names.get(x, x) if type(x) is Var else x for x in equation.inputs])
        if equation.primitive in CONVENTIONS and _has_aval_of(inputs[0], equation.outputs[0]):
            names[equation.outputs[0]] = inputs[0]
        else:
            equations.append(Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.line))
    outputs = [names.get(x, x) if type(x) is Var else x for x in program.outputs]
    return Program(program.inputs, equations, outputs, program.constants).pruned() if names else program


class FlatProgram:
    """A program for arrays or traced values."""

    __slots__ = ("_on_arrays", "_on_traced")

    def __init__(self, program: Program) -> None:
        self._on_traced = FlatSteps(program)
        plain = without_conventions(program)
        self._on_arrays = self._on_traced if plain is program else FlatSteps(plain)

    def __call__(self, *args: Array) -> list[Any]:
        is_plain = all([type(x) in HOST_ARRAYS for x in args])
        return (self._on_arrays if is_plain else self._on_traced)(args, is_plain)


class FlatSteps:
    """A program as a list of steps on numbered values."""

    __slots__ = ("_outputs", "_places", "_steps", "_values")

    def __init__(self, program: Program) -> None:
        places: dict[Any, int] = {var: place for place, var in enumerate(program.inputs)}
        values: list[Any] = [None] * len(places)

        def place_of(x: Any) -> int:
            if type(x) is Var and x in places:
                return places[x]
            values.append(program.constants[x] if type(x) is Var else x)
            if type(x) is Var:
                places[x] = len(values) - 1
            return len(values) - 1

        steps: list[Any] = []
        for equation in program.equations:
            inputs = tuple([place_of(x) for x in equation.inputs])
            for out in equation.outputs:
                places[out] = len(values)
                values.append(None)
            outputs = tuple([places[out] for out in equation.outputs])
            steps.append((equation.primitive, inputs, equation.params, outputs))
        self._places = len(program.inputs)
        self._outputs = [place_of(x) for x in program.outputs]
        self._steps = steps
        self._values = values

    def __call__(self, args: Sequence[Array], is_plain: bool) -> list[Any]:
        values = self._values.copy()
        values[: self._places] = args
        for primitive, inputs, params, outputs in self._steps:
            operands = [values[place] for place in inputs]
            out = primitive.impl(np, *operands, **params) if is_plain else core.bind(primitive, tuple(operands), params)
            if primitive.multiple:
                for place, value in zip(outputs, out, strict=True):
                    values[place] = value
            else:
                values[outputs[0]] = out
        return [values[place] for place in self._outputs]


class StagedRule:
    """The derivative of one general primitive for arguments of one kind."""

    pulls_by_primitives = True
    covers = False
    __slots__ = (
        *("_active", "_avals", "_forward", "_operations", "_outs", "_pullbacks", "_residuals", "_tangents", "name"),
        "primitive",
    )

    def __init__(
        self, primitive: Primitive, values: Sequence[Array], parents: Sequence[Shaped | None], params: Params
    ) -> None:
        """Raises the error of a rule that depends on numbers."""
        self.primitive = primitive
        self.name = primitive.name
        self._residuals: list[Var] = []
        self._outs = 0
        traced = [place for place, value in enumerate(values) if type(value) not in PYTHON_SCALARS]
        found: list[Any] = []

        def forward(*inputs: Tracer) -> list[Array]:
            full = list(values)
            for place, tracer in zip(traced, inputs, strict=True):
                full[place] = tracer
            out, _, saved = linearized(primitive, tuple(full), parents, params)
            if saved is None:
                raise ValueError("no output has a derivative")
            found[:] = saved
            outs = out if primitive.multiple else (out,)
            tangents = saved[0]
            used = {x for equation in tangents.equations for x in equation.inputs}
            constants = {var: value for var, value in tangents.constants.items() if var in used}
            self._residuals = [var for var, value in constants.items() if type(value) is Tracer]
            self._outs = len(outs)
            return [*outs, *[constants[var] for var in self._residuals]]

        avals = [Aval(core.shape_of(values[place]), core.dtype_of(values[place])) for place in traced]
        program = drivers.stage_flat(forward, avals, DerivedStage("grad"))
        self._forward = FlatProgram(program)
        tangents, active, _ = found
        self._active: Sequence[bool] = active
        constants = {var: value for var, value in tangents.constants.items() if type(value) is not Tracer}
        self._tangents = Program(tangents.inputs, tangents.equations, tangents.outputs, constants)
        if program.constant_bytes + self._tangents.constant_bytes > MOST_BYTES:
            raise ValueError("its constants are large")
        self._avals = [(x.shape, x.dtype) for x in tangents.outputs]
        self._pullbacks: dict[tuple[bool, ...], tuple[FlatProgram, Sequence[bool]]] = {}
        self._operations = 0.0
        self._pullback((True,) * len(self._avals))

    def record(self, values: Sequence[Array]) -> tuple[Any, ...]:
        """(the outputs, the residuals) for arrays of the kind."""
        outputs = quietly(self._forward, *[value for value in values if type(value) not in PYTHON_SCALARS])
        return tuple(outputs[: self._outs]), tuple(outputs[self._outs :])

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        cts = [ct.get(i, ZERO) for i in range(len(self._avals))] if self.primitive.multiple else [ct]
        given = [x for x in cts if x is not ZERO]
        avals = [(core.shape_of(x), core.dtype_of(x)) for x in given]
        mask = tuple([x is not ZERO for x in cts])
        if avals == [aval for aval, has_one in zip(self._avals, mask, strict=True) if has_one]:
            steps, reached = self._pullback(mask)
            found = iter(quietly(steps, *saved, *given))
            contributions = iter([next(found) if is_reached else ZERO for is_reached in reached])
        else:
            contributions = iter(transpose_program(self._with(saved), cts))
        return [next(contributions) if is_active else ZERO for is_active in self._active]

    def _with(self, residuals: Sequence[Array]) -> Program:
        """The program of the tangents."""
        tangents = self._tangents
        constants = {**tangents.constants, **dict(zip(self._residuals, residuals, strict=True))}
        return Program(tangents.inputs, tangents.equations, tangents.outputs, constants)

    def _pullback(self, mask: tuple[bool, ...]) -> tuple[FlatProgram, Sequence[bool]]:
        """The pullback of some outputs, and which active arguments it reaches."""
        known = self._pullbacks.get(mask)
        if known is not None:
            return known
        reached: list[bool] = []

        def pulled(*inputs: Tracer) -> list[Array]:
            given = iter(inputs[len(self._residuals) :])
            cts = [next(given) if has_one else ZERO for has_one in mask]
            contributions = transpose_program(self._with(inputs[: len(self._residuals)]), cts)
            reached[:] = [contribution is not ZERO for contribution in contributions]
            return [contribution for contribution in contributions if contribution is not ZERO]

        avals = [Aval(var.shape, var.dtype) for var in self._residuals]
        avals += [Aval(*aval) for aval, has_one in zip(self._avals, mask, strict=True) if has_one]
        program = drivers.stage_flat(pulled, avals, DerivedStage("grad"))
        self._operations = program.cost().operations + OPERATIONS_OF_STEP * len(program.equations)
        made = self._pullbacks[mask] = FlatProgram(program), reached
        return made

    def pull_operations(self, saved: Any, aval: Any, params: Params) -> float:
        """The cost of a pullback in arithmetic operations."""
        return self._operations


def _is_known(value: Any) -> bool:
    """Whether a value is traced, by vmap, jvp or grad alone, and a plain array is inside."""
    if type(value) is not Tracer:
        return False
    while type(value) is Tracer:
        interpreter = value._interpreter
        is_plain_jvp = type(interpreter) is Jvp and interpreter.structural is None
        if not isinstance(interpreter, Grad | Vmap) and not is_plain_jvp:
            return False
        value = value._value
    return type(value) in HOST_ARRAYS


class Rules:
    """The rules of the process, by everything on which they depend."""

    __slots__ = ("_rules",)

    def __init__(self) -> None:
        self._rules: dict[Any, StagedRule | bool] = {}
        """True for arguments seen once, False for arguments without such a rule."""

    def rule(
        self, primitive: Primitive, values: Sequence[Array], parents: Sequence[Shaped | None], params: Params
    ) -> StagedRule | bool:
        """The rule, from the second call on: True at the first one, False if there is none."""
        if primitive.calls_python or primitive.communicates or not primitive.defined_in.startswith(DEFINED_IN):
            return False
        kinds: list[Any] = [primitive, *[parent is not None for parent in parents]]
        for value in values:
            if type(value) in HOST_ARRAYS or _is_known(value):
                kinds += core.shape_of(value), core.dtype_of(value)
            elif type(value) is int or type(value) is bool:
                kinds.append(typed_key(value))
            else:
                return False
        if params:
            kinds += [(name, typed_key(value)) for name, value in params.items()]
        key = tuple(kinds)
        try:
            rule = self._rules.get(key)
        except TypeError:  # a parameter is unhashable
            return False
        if rule is None and not AT_ONCE:
            while len(self._rules) >= MOST_RULES:
                self._rules.pop(next(iter(self._rules), None), None)
            self._rules[key] = True
            return True
        if rule is None or rule is True:
            try:
                rule = StagedRule(primitive, values, parents, params)
                if TRANSLATIONS.are_validated:
                    _check_rule(rule, values, parents, params)
            except ValidationError:
                raise
            except Exception as error:
                messages.debug("the pullback of %s is staged for each call: %s", primitive.name, error)
                rule = False
            self._rules[key] = rule
        return rule

    def clear(self) -> None:
        """Forget all rules."""
        self._rules.clear()


def _check_rule(rule: StagedRule, values: Sequence[Array], parents: Sequence[Shaped | None], params: Params) -> None:
    """Raise ValidationError if a rule computes something other than the rule traced in each call."""
    from func.interpreters.program.plain_runs import refuse_extremes  # for validation alone

    primitive = rule.primitive
    inputs = [
        None if type(value) in PYTHON_SCALARS else Var(Aval(core.shape_of(value), core.dtype_of(value)))
        for value in values
    ]
    atoms = tuple([value if var is None else var for var, value in zip(inputs, values, strict=True)])
    outs = primitive.aval(*[core.aval_of(x) for x in atoms], **params)
    outputs = tuple([Var(aval) for aval in (outs if primitive.multiple else (outs,))])
    given = [var for var in inputs if var is not None]
    program = Program(given, [Equation(primitive, atoms, params, outputs)], outputs, {})

    def of(is_staged: bool) -> Any:
        def run(*args: Array) -> list[Any]:
            remaining = iter(args)
            full = tuple([value if var is None else next(remaining) for var, value in zip(inputs, values, strict=True)])
            cts = dict(enumerate(remaining))
            refuse_extremes(primitive, full)
            if is_staged:
                out, saved = rule.record(full)
                pulled = rule.pull(cts if primitive.multiple else cts[0], parents, saved, params)
            else:
                out, own, saved = linearized(primitive, full, parents, params)
                out = out if primitive.multiple else (out,)
                pulled = own.pull(cts if primitive.multiple else cts[0], parents, saved, params)
            zeros = [np.zeros(core.shape_of(x), core.dtype_of(x)) for x in full]  # a rule may find zeros by its values
            return [*out, *[zero if ct is ZERO else ct for ct, zero in zip(pulled, zeros, strict=True)]]

        return run

    WIRING.check_translation(
        f"the staged rule of {primitive.name}",
        program,
        lambda other: of(True),
        reference=lambda other: of(False),
        avals=lambda other: [var.aval for var in (*given, *outputs)],
        is_fixed=True,
    )


DEFINED_IN = "func.interpreters.primitives."
"""The package of the primitives whose rules are traced so."""
RULES = Rules()


def linearize_primitive(
    primitive: Primitive, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params
) -> Any:
    """(the output, a rule, its saved values) of a general primitive."""
    values = tuple(
        [value if p is not None else core.defensive_copy(value) for value, p in zip(values, parents, strict=True)]
    )
    rule = RULES.rule(primitive, values, parents, params)
    if type(rule) is StagedRule:
        outs, residuals = rule.record(values)
        return outs if primitive.multiple else outs[0], rule, residuals
    out, own, saved = linearized(primitive, values, parents, params)
    return out, LINEARIZED_AT_FIRST if rule and own is LINEARIZED else own, saved
