"""Reverse mode, faster for the primitives of most eager code: elementwise ones, products, linear maps of arrays.

`FastGrad` is `Grad` with shorter ways for single kinds of primitives. Each replaces `Grad.recorded`, the primitive's
`record` and its `pull`, without steps that its kind or its values do not need. On NumPy arrays alone, a primitive is
NumPy's own function, and a partial derivative one NumPy expression.
`grad_interpreter` chooses between the two; the gradients are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from func.backends import HOST_TYPES
from func.backends.blocks import LARGE
from func.backends.quiet import quietly
from func.interpreters.core import (
    PYTHON_SCALARS,
    REAL_DTYPES,
    ZERO,
    Array,
    Aval,
    Bilinear,
    Linear,
    Params,
    Primitive,
    Shaped,
    Tracer,
    array_aval,
    bind,
    defensive_copy,
    dtype_of,
    is_inexact,
    make_tracer,
    new_tracer,
    shape_of,
    unboxed,
)
from func.interpreters.core.modes import MODE, is_bypassed
from func.interpreters.grad import AVAL, SERIALS, Grad
from func.interpreters.primitives.elementwise.builder import Binary, Elementwise, Unary, negative, scale
from func.interpreters.primitives.elementwise.partials import Partial, in_precision_of
from func.interpreters.primitives.elementwise.pointwise import HOST_ARRAYS, Pointwise
from func.interpreters.primitives.structural.reductions import Reduction
from func.interpreters.primitives.structural.shapes import fit_cotangent
from func.interpreters.program.program import Program, Var
from func.interpreters.stage import DerivedStage

ENABLED = True
"""Whether transforms use this file. Tests switch it off, to compare with the general form."""


def grad_interpreter(transform: str) -> Grad:
    """The interpreter of a reverse-mode transform."""
    return FastGrad(transform) if ENABLED else Grad(transform)


class FastGrad(Grad):
    """The grad interpreter, with shorter ways for elementwise primitives, linear maps of one array, and products."""

    def apply1(self, primitive: Primitive, x: Tracer) -> Any:
        if MODE.get() is not None and is_bypassed(self.level):
            return self.unrecorded(primitive, (x,), {})
        if type(primitive) is not Unary:
            return self.apply(primitive, (x,), {})
        rule = primitive.fast
        if rule is None:
            rule = fast_rule(primitive)
        value = x._value
        if type(value) in HOST_ARRAYS:
            out = primitive.numpy(value) if value.size < LARGE else primitive.on_large(value)  # type: ignore[misc]
        else:
            out = primitive(value)
        saved = (value if rule.keeps_x else None, out if rule.keeps_out else None)
        node = x._attached
        aval = needs_cotangent = node[AVAL]
        if type(out) is not ndarray or out.dtype is not aval.dtype:
            aval = _output_aval(out)
        elif aval.is_real_array:
            rule = rule.unchecked
        tracer: Tracer = make_tracer(Tracer)  # `new_tracer`, written out for speed
        tracer._interpreter = self
        tracer._value = out
        tracer._attached = (next(SERIALS), rule, (node,), (needs_cotangent,), saved, None, aval)
        return tracer

    def apply2(self, primitive: Primitive, x: Array, y: Array) -> Any:
        if MODE.get() is not None and is_bypassed(self.level):
            return self.unrecorded(primitive, (x, y), {})
        if type(primitive) is not Binary:
            return self.apply(primitive, (x, y), {})
        rule = primitive.fast
        if rule is None:
            rule = fast_rule(primitive)
        node_x: Any = None
        node_y: Any = None
        aval_x: Any = None
        aval_y: Any = None
        if type(x) is Tracer and type(y) is Tracer and x._interpreter is y._interpreter:
            mask = 3
            node_x, x, node_y, y = x._attached, x._value, y._attached, y._value
            aval_x, aval_y = node_x[AVAL], node_y[AVAL]
        elif type(y) in PYTHON_SCALARS:  # x is traced, then
            mask = 1
            node_x, x = x._attached, x._value
            aval_x = node_x[AVAL]
        elif type(x) in PYTHON_SCALARS:
            mask = 2
            node_y, y = y._attached, y._value
            aval_y = node_y[AVAL]
        else:
            mask = 0
            if type(x) is Tracer:
                if x._interpreter is self:
                    node_x, x, mask = x._attached, x._value, 1
                    aval_x = node_x[AVAL]
                else:
                    x = unboxed(x)
            if type(y) is Tracer:
                if y._interpreter is self:
                    node_y, y, mask = y._attached, y._value, mask | 2
                    aval_y = node_y[AVAL]
                else:
                    y = unboxed(y)
        if (type(x) in HOST_ARRAYS and type(y) in HOST_TYPES) or (type(y) in HOST_ARRAYS and type(x) in HOST_TYPES):
            if (type(x) is ndarray and x.size >= LARGE) or (type(y) is ndarray and y.size >= LARGE):
                out = primitive.on_large(x, y)
            else:
                out = primitive.numpy(x, y)  # type: ignore[misc]
        else:
            out = primitive(x, y)
        keeps_x, keeps_y, keeps_out = primitive.keeps[mask]
        saved = (
            (x if mask & 1 or type(x) in PYTHON_SCALARS else defensive_copy(x)) if keeps_x else None,
            (y if mask & 2 or type(y) in PYTHON_SCALARS else defensive_copy(y)) if keeps_y else None,
            out if keeps_out else None,
        )
        aval = aval_x or aval_y
        if type(out) is not ndarray or out.dtype is not aval.dtype:
            aval = _output_aval(out)
        elif aval_x is not aval_y:
            if out.shape != aval.shape:
                aval = _output_aval(out)
        elif aval.is_real_array:
            rule = rule.unchecked
        tracer: Tracer = make_tracer(Tracer)  # `new_tracer`, written out for speed
        tracer._interpreter = self
        tracer._value = out
        tracer._attached = (next(SERIALS), rule, (node_x, node_y), (aval_x, aval_y), saved, None, aval)
        return tracer

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and is_bypassed(self.level):
            return self.unrecorded(primitive, args, params)
        if type(primitive) is Bilinear:
            return self._product(primitive, args[0], args[1], params)
        if len(args) == 1 and isinstance(primitive, Linear):
            return self._linear_map(primitive, args[0], params)
        if type(primitive) is Linear and not primitive.multiple:
            return self._linear_map_of_several(primitive, args, params)
        if isinstance(primitive, Reduction):
            return self._reduction(primitive, args[0], params)
        return self.recorded(primitive, args, params)

    def _linear_map(self, primitive: Linear, x: Tracer, params: Params) -> Any:
        """A linear primitive of one array saves nothing but its parameters."""
        value = x._value
        out = primitive.impl(np, value, **params) if type(value) in HOST_ARRAYS else bind(primitive, (value,), params)
        above = x._attached
        needs_cotangent = above[AVAL]
        aval = _output_aval(out)
        if aval.dtype is not needs_cotangent.dtype and not is_inexact(aval.dtype):
            return out
        node = (next(SERIALS), primitive, (above,), (needs_cotangent,), None, params, aval)
        return new_tracer(self, out, node)

    def _reduction(self, primitive: Reduction, x: Tracer, params: Params) -> Any:
        """A reduction saves its argument and its output."""
        value = x._value
        out = primitive.impl(np, value, **params) if type(value) in HOST_ARRAYS else bind(primitive, (value,), params)
        aval = _output_aval(out)
        if not is_inexact(aval.dtype):
            return out
        above = x._attached
        node = (next(SERIALS), primitive, (above,), (above[AVAL],), (value, out), params, aval)
        return new_tracer(self, out, node)

    def _linear_map_of_several(self, primitive: Linear, args: Sequence[Array], params: Params) -> Any:
        """A linear primitive of several arrays saves those in which it is not linear, and the avals of the others."""
        values = []
        parents: list[Any] = []
        for arg in args:
            if type(arg) is Tracer and arg._interpreter is self:
                values.append(arg._value)
                parents.append(arg._attached)
            else:
                values.append(unboxed(arg))
                parents.append(None)
        for value in values:
            if type(value) not in HOST_ARRAYS:
                return self.recorded(primitive, tuple(args), params)
        out = primitive.impl(np, *values, **params)
        aval = _output_aval(out)
        if not is_inexact(aval.dtype):
            return out
        needs_cotangent = [None if parent is None else parent[AVAL] for parent in parents]
        positions = primitive.positions
        saved = [
            own
            if own is not None
            else array_aval(value.shape, value.dtype)
            if positions is None or place in positions
            else defensive_copy(value)
            for place, (value, own) in enumerate(zip(values, needs_cotangent, strict=True))
        ]
        return new_tracer(self, out, (next(SERIALS), primitive, parents, needs_cotangent, saved, params, aval))

    def _product(self, primitive: Bilinear, x: Array, y: Array, params: Params) -> Any:
        """A product saves each operand if the other one is traced."""
        node_x: Any = None
        node_y: Any = None
        if type(x) is Tracer:
            if x._interpreter is self:
                node_x, x = x._attached, x._value
            else:
                x = unboxed(x)
        if type(y) is Tracer:
            if y._interpreter is self:
                node_y, y = y._attached, y._value
            else:
                y = unboxed(y)
        on_host = type(x) in HOST_ARRAYS and type(y) in HOST_ARRAYS
        out = primitive.impl(np, x, y, **params) if on_host else bind(primitive, (x, y), params)
        aval = _output_aval(out)
        if not is_inexact(aval.dtype):
            return out
        saved = (
            None if node_y is None else x if node_x is not None else defensive_copy(x),
            None if node_x is None else y if node_y is not None else defensive_copy(y),
        )
        needs_cotangent = (None if node_x is None else node_x[AVAL], None if node_y is None else node_y[AVAL])
        return new_tracer(self, out, (next(SERIALS), primitive, (node_x, node_y), needs_cotangent, saved, params, aval))


def _output_aval(out: Array) -> Aval:
    """The aval of an output."""
    if type(out) in HOST_ARRAYS:
        return array_aval(out.shape, out.dtype)
    return array_aval(shape_of(out), dtype_of(out))


class FastPartial:
    """A partial derivative on plain arrays: its first evaluation compiles it to a NumPy expression."""

    __slots__ = ("constant", "evaluate", "factors", "partial")
    evaluate: Callable[..., Array]

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        self.constant = partial.constant
        self.factors: Sequence[FastPartial] = tuple([type(self)(factor) for factor in partial.factors]) or (self,)
        if partial.maps is not None:
            self.evaluate = self._compile_map_first
        elif self.constant is None:
            self.evaluate = self._compile_first if callable(partial.rule) else partial.evaluate

    def _compile_first(self, saved: Any) -> Array:
        self.evaluate = compile_partial(self.partial)
        return self.evaluate(saved)

    def _compile_map_first(self, saved: Any, direction: Array) -> Array:
        self.evaluate = compile_partial(self.partial)
        return self.evaluate(saved, direction)


class UncheckedPartial(FastPartial):
    """A partial of values of one real dtype, with a result of that dtype.

    Most partials have it by themselves. But SciPy computes in double precision for a Python number with an array, as in
    struve(0.0, x), and so does NumPy's choice between numbers.
    """

    __slots__ = ()

    def _compile_first(self, saved: Any) -> Array:
        evaluate = compile_partial(self.partial)
        self.evaluate = evaluate if _keeps_single(evaluate, len(saved)) else self._rounded(evaluate)
        return self.evaluate(saved)

    def _rounded(self, evaluate: Callable[[Any], Array]) -> Callable[[Any], Array]:
        place = self.partial.needs[0]

        def rounded(saved: Any) -> Array:
            factor: Any = evaluate(saved)  # a pass that is recorded has traced saved values
            dtype = saved[place].dtype
            return np.asarray(factor, dtype) if type(factor) in PYTHON_SCALARS else factor.astype(dtype, copy=False)

        return rounded


def _keeps_single(evaluate: Callable[[Any], Any], count: int) -> bool:
    """Whether a function of saved values returns single precision for it, or a Python number, which adapts."""
    one = np.ones(1, np.float32)
    factor = quietly(evaluate, [one] * count)
    return type(factor) in PYTHON_SCALARS or factor.dtype == one.dtype


class FastRule:
    """The pullback of an elementwise primitive: NumPy multiplies real arrays at once, primitives all else."""

    pulls_by_primitives = True
    __slots__ = ("covers", "keeps_out", "keeps_x", "name", "partials", "primitive", "pull_cost", "selects", "unchecked")

    def __init__(self, primitive: Elementwise) -> None:
        self.primitive = primitive
        self.pull_cost = _pull_cost(primitive)
        self.name = primitive.name
        self.selects = primitive.selects
        self.covers = primitive.covers
        self.partials: list[Any] = [None if partial is None else FastPartial(partial) for partial in primitive.partials]
        self.keeps_x, *_, self.keeps_out = primitive.keeps[1]
        self.unchecked: Any = self

    def cotangent(self, place: int, partial: FastPartial, saved: Sequence[Array], ct: Array, aval: Shaped) -> Array:
        if partial.constant is not None:
            contribution = ct if partial.constant == 1 else negative(ct)
        else:
            is_array = type(ct) is ndarray
            if self.primitive.mixes:
                saved = in_precision_of(ct, saved)
            contribution = ct
            for each in partial.factors:
                if each.partial.maps is not None:
                    is_real = is_array and contribution.dtype in REAL_DTYPES
                    scaled = each.evaluate if is_real else each.partial.adjoint
                    contribution = scaled(saved, contribution)
                    continue
                factor = each.evaluate(saved) if is_array else each.partial.evaluate(saved)
                is_real = factor.dtype in REAL_DTYPES if type(factor) is ndarray else type(factor) is float
                if is_array and is_real:
                    contribution = factor * contribution
                else:
                    contribution = scale(factor, contribution, True, self.selects[place])
        if contribution.dtype is not aval.dtype or contribution.shape != aval.shape:
            return fit_cotangent(contribution, aval)
        return contribution

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        return self.primitive.retraced(saved, lift)

    def __reduce__(self) -> tuple[Any, ...]:
        return fast_rule, (self.primitive,)


def _pull_cost(primitive: Elementwise) -> float:
    """The cost of a pullback for an element, in products: a partial that is computed costs what its function costs."""
    is_computed = any([partial is not None and callable(partial.rule) for partial in primitive.partials])
    return 1 + 0.2 * primitive.cost if is_computed and isinstance(primitive.cost, (int, float)) else 1


class FastUnary(FastRule):
    """The pullback of a unary primitive."""

    __slots__ = ()

    def __init__(self, primitive: Elementwise) -> None:
        super().__init__(primitive)
        self.unchecked = UncheckedUnary(self)

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        return (self.cotangent(0, self.partials[0], saved, ct, needs_cotangent[0]),)


class FastBinary(FastRule):
    """The pullback of a binary primitive."""

    __slots__ = ()

    def __init__(self, primitive: Elementwise) -> None:
        super().__init__(primitive)
        if None not in self.partials:
            self.unchecked = UncheckedBinary(self)

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        x, y = needs_cotangent
        to_x, to_y = self.partials
        contribution = ZERO if x is None or to_x is None else self.cotangent(0, to_x, saved, ct, x)
        return contribution, ZERO if y is None or to_y is None else self.cotangent(1, to_y, saved, ct, y)


class UncheckedRule:
    """The pullback of an elementwise primitive whose operands and output are real arrays of one shape and dtype: factor
    times cotangent. `FastRule` pulls everything else back."""

    pulls_by_primitives = True
    __slots__ = ("checked", "covers", "name", "pull_cost", "retraced")

    def __init__(self, checked: FastUnary | FastBinary) -> None:
        self.checked = checked
        self.pull_cost = checked.pull_cost
        self.name = checked.name
        self.covers = checked.covers
        self.retraced = checked.retraced

    def __reduce__(self) -> tuple[Any, ...]:
        return unchecked_rule, (self.checked.primitive,)


class UncheckedUnary(UncheckedRule):
    """`UncheckedRule` for one argument."""

    __slots__ = ("partial",)

    def __init__(self, checked: FastUnary | FastBinary) -> None:
        super().__init__(checked)
        self.partial = UncheckedPartial(checked.partials[0].partial)

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        if type(ct) is ndarray and self.partial.constant is None:
            for factor in self.partial.factors:
                ct = factor.evaluate(saved) * ct
            return (ct,)
        return self.checked.pull(ct, needs_cotangent, saved, params)


class UncheckedBinary(UncheckedRule):
    """`UncheckedRule` for two active arguments."""

    __slots__ = ("to_x", "to_y")

    def __init__(self, checked: FastUnary | FastBinary) -> None:
        super().__init__(checked)
        self.to_x, self.to_y = [_scaling(UncheckedPartial(partial.partial)) for partial in checked.partials]

    def pull(self, ct: Any, needs_cotangent: Sequence[Any], saved: Any, params: Any) -> Sequence[Any]:
        if type(ct) is ndarray:
            return self.to_x(saved, ct), self.to_y(saved, ct)
        return self.checked.pull(ct, needs_cotangent, saved, params)


def _scaling(partial: FastPartial) -> Callable[[Any, Array], Array]:
    """(saved, ct) -> factor · ct."""
    if partial.constant == 1:
        return lambda saved, ct: ct
    if partial.constant is not None:
        return lambda saved, ct: -ct
    if partial.evaluate is partial.partial.evaluate:  # a saved value itself
        (place,) = partial.partial.needs
        return lambda saved, ct: saved[place] * ct
    if partial.partial.maps is not None:
        return lambda saved, ct: partial.evaluate(saved, ct)
    if len(partial.factors) == 1:
        return lambda saved, ct: partial.evaluate(saved) * ct
    first, second = [_scaling(factor) for factor in partial.factors]
    return lambda saved, ct: second(saved, first(saved, ct))


def fast_rule(primitive: Elementwise) -> FastUnary | FastBinary:
    """The fast pullback of a primitive, made at its first record."""
    if primitive.fast is None:
        primitive.fast = FastUnary(primitive) if primitive.arity == 1 else FastBinary(primitive)
    rule: FastUnary | FastBinary = primitive.fast
    return rule


def unchecked_rule(primitive: Elementwise) -> Any:
    """The fast pullback of a primitive for real arrays of one shape and dtype."""
    return fast_rule(primitive).unchecked


def compile_partial(partial: Partial) -> Callable[..., Any]:
    """A partial as a function of the saved values, by NumPy functions alone if its primitives are ufuncs. One that maps
    directions becomes a function of saved values and a real direction.

    Partials call primitives, so transforms can trace and differentiate them. On plain arrays the dispatch is overhead:
    `1 + out * out` becomes np.add(np.square(out), 1). A partial may be another expression for
    complex values, which keep to a side of a branch cut. One that follows a convention may have its own NumPy code.
    """
    on_arrays = getattr(partial.rule, "on_arrays", None)
    if on_arrays is not None:
        return _on_arrays(partial, on_arrays)
    namespace: dict[str, Any] = {}
    source = _expression(partial, np.float64, namespace)
    if source is None:
        return partial.evaluate if partial.maps is None else partial.adjoint
    exec(compile(source, __file__, "exec"), namespace)  # a frame of the engine
    real: Callable[[Any], Any] = namespace["partial"]
    if partial.maps is not None or source == _expression(partial, np.complex128, {}):
        return real
    needs = partial.needs
    return lambda saved: partial.evaluate(saved) if any([np.iscomplexobj(saved[i]) for i in needs]) else real(saved)


def _on_arrays(partial: Partial, on_arrays: Callable[..., Any]) -> Callable[[Any], Any]:
    """A partial with NumPy code for arrays of the host; the rule takes everything else."""
    needs = partial.needs

    def evaluate(saved: Any) -> Any:
        values = [saved[place] for place in needs]
        if all([type(value) in HOST_TYPES for value in values]):
            factor = on_arrays(*values)
            if factor is not None:
                return factor
        return partial.evaluate(saved)

    return evaluate


def _expression(partial: Partial, dtype: Any, namespace: dict[str, Any]) -> str | None:
    """The source of a partial for values of a dtype; adds its ufuncs to the namespace.

    None if one of its primitives is not a ufunc, or has no loop for the dtype.
    """
    rule, count = partial.rule, len(partial.needs)
    if partial.maps is not None:
        rule, count = partial.maps, count + 1
    try:
        program = _traced(rule, count, dtype)
    except TypeError:
        return None
    if program.constants or not all([_is_ufunc(equation.primitive) for equation in program.equations]):
        return None
    return _source(program, partial.needs, namespace)


def _traced(rule: Callable[..., Array], count: int, dtype: Any) -> Program:
    """The program of a rule for this many numbers of a dtype."""
    stage = DerivedStage("partial")
    try:
        inputs = [stage.variable(Aval((), dtype)) for _ in range(count)]
        return stage.program([tracer._attached for tracer in inputs], [rule(*inputs)])
    finally:
        stage.close()


def _is_ufunc(primitive: Any) -> bool:
    return isinstance(primitive, Pointwise) and primitive.ufunc is not None


def _source(program: Program, needs: tuple[int, ...], namespace: dict[str, Any]) -> str:
    """The program as the source of a function `partial(saved)`, or `partial(saved, direction)` if it has an input more
    than it needs; adds its ufuncs to the namespace."""
    names = [f"saved[{place}]" for place in needs]
    is_map = len(program.inputs) > len(names)
    words: dict[Var, str] = dict(zip(program.inputs, ["direction", *names] if is_map else names, strict=True))
    uses = [x for equation in program.equations for x in equation.inputs]
    lines = ["def partial(saved, direction):" if is_map else "def partial(saved):"]
    for number, equation in enumerate(program.equations):
        namespace[equation.primitive.name] = equation.primitive.ufunc
        operands = [words[x] if type(x) is Var else repr(x) for x in equation.inputs]
        word = f"{equation.primitive.name}({', '.join(operands)})"
        (out,) = equation.outputs
        if uses.count(out) > 1:
            lines.append(f"    t{number} = {word}")
            word = f"t{number}"
        words[out] = word
    (result,) = program.outputs
    return "\n".join([*lines, f"    return {words[result] if type(result) is Var else repr(result)}"])
