"""Primitives, their kinds, and how a primitive finds the interpreter that applies it.

The life of one call: `multiply(x, y)` takes the interpreter with the highest level among its arguments and asks it to
apply the primitive. Without a tracer the backend's own function runs at once.

Every primitive has a kind: general (`Primitive`), `Linear`, `Bilinear`, `NonDifferentiable`, or elementwise. The
definition states what is new; the kind implements the methods that interpreters call:

    forward(primals, tangents, params)             (out, tangent of out)               Jvp
    tangent_of(primals, out, tangents, params)     tangent of a known output           Jvp, in the rules of other kinds
    record(values, parents, params)                (out, rule, saved)                  Grad
    pull(ct, parents, saved, params)               one cotangent per argument          the rule, in a backward pass
    pull_linear(ct, parents, known, params)        the same, for a linear equation     transposition
    retraced(saved, lift)                          the saved values, traced            backward(create_graph=True)

`parents[i]` is Shaped where the argument needs a cotangent, None elsewhere; a tangent or cotangent may be ZERO. The
`rule` has the method `pull`: mostly it is the primitive itself; None means no derivative. To differentiate the pullback
of a rule without `retraced`, the engine records the primitive again.

Vmap calls `batch`, Stage `aval`, evaluation `impl`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy import ndarray

from func.backends import namespace_of
from func.backends.array_helpers.arrays import scipy_of
from func.interpreters.core.errors import NotDifferentiableError
from func.interpreters.core.parameters import NO_PARAMETERS, Facts, hold_no_program
from func.interpreters.core.types import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Aval,
    Interpreter,
    Params,
    Shaped,
    Tracer,
    array_aval,
    aval_of,
    defensive_copy,
    dtype_of,
    is_inexact,
    shape_of,
)
from func.interpreters.core.wiring import PRIMITIVES, WIRING, importing_module, primitive_named

Transpose: TypeAlias = Callable[..., tuple[Any, ...]]


class Primitive:
    """An operation and its rules. Arrays are positional, parameters keyword-only and hashable.

    impl(xp, *arrays, **params)                  the value, by the backend's namespace xp
    aval(*avals, **params)                       the aval of the output (a tuple of them if `multiple`)
    jvp(primals, tangents, **params)             (out, tangent of out); tangents may be ZERO; calls only primitives
    transpose(ct, *operands, **params)           cotangents of the operands that are Shaped (the linear unknowns)
    batch(size, batched, args, params)           the outputs of all batch elements; batch axes lead, in and out

    The other keywords are `Facts`.
    """

    pulls_by_primitives = False
    """Whether the `pull` of a rule calls primitives alone, so that a Program can represent it."""

    __slots__ = (
        *("_aval", "batch", "differentiable", "impl", "jvp", "multiple", "name", "numpy", "transpose"),
        *("body", "calls_python", "checks_indices", "commutative", "cost", "layout", "numpy_suffices"),
        *("reads_selected", "recompute", "reduces", "scipy", "view", "parameters", "fits", "factored_by"),
        *("communicates", "covers", "mask", "passes_on", "undefined", "defined_in", "holds_no_program", "tells_passes"),
    )

    def __init__(
        self,
        name: str,
        impl: Callable[..., Any],
        *,
        aval: Callable[..., Any],
        batch: Callable[..., Any],
        jvp: Callable[..., Any] | None = None,
        transpose: Transpose | None = None,
        multiple: bool = False,
        differentiable: bool = True,
        register: bool = True,
        **facts: Unpack[Facts],
    ) -> None:
        self.name = name
        self.impl = impl
        self._aval = aval
        self.batch = batch
        self.jvp = jvp
        self.transpose = transpose
        self.multiple = multiple
        self.differentiable = differentiable
        self.numpy: Callable[..., Any] | None = None
        self.cost = facts.get("cost")
        self.view = facts.get("view", False)
        self.layout = facts.get("layout") or (functools.partial(impl, np) if self.view is True else None)
        self.reduces = facts.get("reduces")
        self.checks_indices = facts.get("checks_indices", False)
        self.reads_selected = facts.get("reads_selected", False)
        self.recompute = facts.get("recompute", False)
        self.commutative = facts.get("commutative", False)
        self.numpy_suffices = facts.get("numpy_suffices", False)
        self.calls_python = facts.get("calls_python", False)
        self.tells_passes = facts.get("tells_passes", False)
        self.communicates = facts.get("communicates", False)
        self.body = facts.get("body")
        self.scipy = facts.get("scipy")
        self.parameters = facts.get("parameters", NO_PARAMETERS)
        self.holds_no_program = hold_no_program(self.parameters)
        self.fits = facts.get("fits")
        self.factored_by = facts.get("factored_by")
        self.mask = facts.get("mask")
        self.passes_on = facts.get("passes_on")
        self.undefined = facts.get("undefined")
        self.covers = facts.get("covers", False)
        self.defined_in = importing_module()
        """The module whose import made it."""
        if register:
            if name in PRIMITIVES:
                raise ValueError(f"two primitives are named {name!r}")
            PRIMITIVES[name] = self

    def __call__(self, *args: Array, **params: Any) -> Any:
        return bind(self, args, params)

    def aval(self, *avals: Aval, **params: Any) -> Any:
        """The abstract value of the output."""
        return self._aval(*avals, **params)

    @property
    def ufunc(self) -> np.ufunc | None:
        """The ufunc that computes it on NumPy arrays, if it is one."""
        function = self.numpy if self.scipy is None else getattr(scipy_of(np, "special"), self.scipy, None)
        return function if isinstance(function, np.ufunc) else None

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        if self.jvp is None:
            raise NotDifferentiableError(f"no derivative is defined for {self.name}")
        return self.jvp(primals, tangents, **params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        """The tangent of a known output."""
        return self.forward(primals, tangents, params)[1]

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        """Stage the tangent part of the jvp; transposing that linear program is the pullback."""
        return WIRING.linearize_primitive(self, values, parents, params)

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        if self.transpose is None:
            raise NotDifferentiableError(f"{self.name} is not linear and cannot be transposed")
        operands = [value if parent is None else parent for parent, value in zip(parents, saved, strict=True)]
        return self.transpose(ct, *operands, **params)

    def pull_linear(self, ct: Any, parents: Sequence[Any], known: Sequence[Any], params: Params) -> Sequence[Any]:
        """`pull` for an equation of a linear program, whose arguments are unknowns or known values."""
        return self.pull(ct, parents, known, params)

    def reached(self, inputs: Sequence[bool], params: Params) -> Sequence[bool] | None:
        """The outputs that depend on these inputs; None: all."""
        return None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return primitive_named, (self.name,)


def evaluate(primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
    """Run a primitive on concrete arrays, on their backend; host arrays among device arrays move to the device."""
    xp = namespace_of(args)
    if xp is not np:
        args = tuple([xp.asarray(arg) if type(arg) is ndarray else arg for arg in args])
    return primitive.impl(xp, *args, **params)


def bind(primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
    """Apply a primitive by the interpreter of the highest level among its arguments."""
    top: Interpreter | None = None
    level: float = -1
    for arg in args:
        if type(arg) is Tracer and arg._interpreter.level > level:
            top = arg._interpreter
            level = top.level
    if top is None:
        return evaluate(primitive, args, params)
    return top.apply(primitive, args, params)


class Linear(Primitive):
    """A primitive that is linear in its arguments at `positions` (None: in all), given the others."""

    pulls_by_primitives = True
    __slots__ = ("positions",)
    positions: frozenset[int] | None

    def __call__(self, *args: Array, **params: Any) -> Any:
        if len(args) == 1:
            (x,) = args
            if type(x) is Tracer:
                return x._interpreter.apply(self, args, params)
            if type(x) is ndarray:
                return self.impl(np, x, **params)
        return bind(self, args, params)

    def is_linear_in(self, position: int) -> bool:
        return self.positions is None or position in self.positions

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = bind(self, primals, params)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        inexact = is_inexact(dtype_of(out[0] if self.multiple else out))
        if not inexact or all(tangent is ZERO for tangent in tangents):
            return ZERO
        operands = [
            primal if not self.is_linear_in(i) else _zero_tangent(primal) if tangent is ZERO else tangent
            for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))
        ]
        return bind(self, tuple(operands), params)

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        out = bind(self, values, params)
        if len(values) == 1:
            return out, self, None
        saved = [
            parent  # its aval, for a pullback of other arguments alone
            if parent is not None
            else array_aval(shape_of(value), dtype_of(value))
            if self.is_linear_in(i)
            else defensive_copy(value)
            for i, (value, parent) in enumerate(zip(values, parents, strict=True))
        ]
        return out, self, saved

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """The saved values, traced: operands in which the primitive is not linear have no derivative."""
        return saved

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        assert self.transpose is not None
        if saved is None:
            return self.transpose(ct, parents[0], **params)
        operands = [
            parent if parent is not None else _as_aval(value) if self.is_linear_in(i) else value
            for i, (parent, value) in enumerate(zip(parents, saved, strict=True))
        ]
        return self.transpose(ct, *operands, **params)


def _zero_tangent(primal: Array) -> Array:
    """The zero tangent of an operand; that of a Python scalar is one too, so that the dtypes adapt alike."""
    return type(primal)(0) if type(primal) in PYTHON_SCALARS else zeros_like(primal)


def _as_aval(value: Any) -> Any:
    """The argument of a transpose rule for a linear operand that needs no cotangent."""
    return value if isinstance(value, Shaped) else aval_of(value)


def linear(
    name: str,
    impl: Callable[..., Any],
    *,
    aval: Callable[..., Any],
    transpose: Callable[..., Any],
    batch: Callable[..., Any],
    positions: Sequence[int] | None = None,
    **facts: Unpack[Facts],
) -> Linear:
    """Make a linear primitive of one array, whose `batch(x, **params)` works on the leading batch axis. With
    `positions` it takes several arrays, and `batch` has the full signature."""
    full = batch if positions is not None else _batch_of_one(batch)
    primitive = Linear(name, impl, aval=aval, transpose=transpose, batch=full, **facts)
    primitive.positions = None if positions is None or tuple(positions) == () else frozenset(positions)
    return primitive


def _batch_of_one(batch: Callable[..., Any]) -> Callable[..., Any]:
    def batch_one(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
        return batch(args[0], **params)

    return batch_one


class Bilinear(Primitive):
    """A primitive of two arrays that is linear in each; `transpose` takes the operand that is not Shaped as a value."""

    pulls_by_primitives = True
    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        out = bind(self, primals, params)
        return out, self.tangent_of(primals, out, tangents, params)

    def tangent_of(self, primals: tuple[Array, ...], out: Any, tangents: tuple[Any, ...], params: Params) -> Any:
        (x, y), (dx, dy) = primals, tangents
        if not is_inexact(dtype_of(out)):
            return ZERO
        return add_tangents(
            dx if dx is ZERO else bind(self, (dx, y), params),
            dy if dy is ZERO else bind(self, (x, dy), params),
        )

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        x, y = values
        out = bind(self, values, params)
        return out, self, (_saved(x, parents[0], parents[1]), _saved(y, parents[1], parents[0]))

    def retraced(self, saved: Any, lift: Callable[[int | None, Any], Any]) -> Any:
        """The saved values, traced."""
        return tuple([lift(place, value) for place, value in enumerate(saved)])

    def pull(self, ct: Any, parents: Sequence[Any], saved: Any, params: Params) -> Sequence[Any]:
        assert self.transpose is not None
        px, py = parents
        x, y = saved
        return (
            self.transpose(ct, px, y, **params)[0] if px is not None else ZERO,
            self.transpose(ct, x, py, **params)[1] if py is not None else ZERO,
        )


def _saved(value: Array, own: Shaped | None, other: Shaped | None) -> Any:
    """An operand of a product if the other operand's cotangent needs it."""
    if other is None:
        return None
    return value if own is not None else defensive_copy(value)


class NonDifferentiable(Primitive):
    """A primitive whose output carries no derivative: comparisons, indices, rounding (zero almost everywhere)."""

    __slots__ = ()

    def forward(self, primals: tuple[Array, ...], tangents: tuple[Any, ...], params: Params) -> Any:
        return bind(self, primals, params), ZERO

    def record(self, values: tuple[Array, ...], parents: Sequence[Shaped | None], params: Params) -> Any:
        return bind(self, values, params), None, None


def general(
    name: str,
    impl: Callable[..., Any],
    *,
    aval: Callable[..., Any],
    batch: Callable[..., Any],
    jvp: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
    multiple: bool = False,
    **facts: Unpack[Facts],
) -> Primitive:
    """Make a primitive whose jvp calls other primitives."""
    return Primitive(name, impl, aval=aval, batch=batch, jvp=jvp, transpose=transpose, multiple=multiple, **facts)


def nondifferentiable(
    name: str,
    impl: Callable[..., Any],
    *,
    aval: Callable[..., Any],
    batch: Callable[..., Any],
    multiple: bool = False,
    **facts: Unpack[Facts],
) -> NonDifferentiable:
    """Make a primitive without a derivative."""
    return NonDifferentiable(name, impl, aval=aval, batch=batch, multiple=multiple, differentiable=False, **facts)


def zeros_like(value: Array) -> Array:
    """Zeros of the shape, dtype and backend of a value."""
    return WIRING.zeros_like(value)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents, either of which may be ZERO."""
    if x is ZERO:
        return y
    if y is ZERO:
        return x
    return WIRING.add(x, y)


def materialize(size: int, batched: Sequence[bool], args: Sequence[Array]) -> list[Array]:
    """Give every argument the leading batch axis."""
    return [
        arg if is_batched else WIRING.broadcast(arg, shape=(size, *shape_of(arg)))
        for arg, is_batched in zip(args, batched, strict=True)
    ]


def leading_axes(primitive_name: str) -> Callable[..., Any]:
    """The batch rule of primitives that treat leading axes as a batch already, such as those of linear algebra."""

    def batch_leading(size: int, batched: Sequence[bool], args: Sequence[Array], params: Params) -> Any:
        return PRIMITIVES[primitive_name](*materialize(size, batched, args), **params)

    return batch_leading
