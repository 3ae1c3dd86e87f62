"""Custom rules: custom_jvp, custom_vjp, custom_gradient, custom_vmap, and stop_gradient."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Concatenate, Generic, Self, overload

import numpy as np

from func import tree
from func.backends.records import Record
from func.host import patching
from func.interpreters.calls import custom_rules
from func.interpreters.calls.primal_run import PrimalRun, mapping_level, needs_rule
from func.interpreters.core import (
    ZERO,
    Array,
    Tracer,
    dtype_of,
    is_inexact,
    known_value,
    shape_of,
    snapshot,
    zeros_like,
)
from func.interpreters.core.errors import ArgumentError, CustomRuleError, SharedMemoryError
from func.interpreters.core.modes import Setting, holding, value_in_force
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.identity import is_abstract_value
from func.interpreters.primitives.structural.identity import stop_gradient as stop_gradient_primitive
from func.interpreters.primitives.structural.shapes import convert
from func.numpy.guarding import guard_places, is_write_error, shared_places
from func.numpy.memory import laid_out, layouts_of
from func.numpy.sharing import BY_ERROR, BY_RULE, COPY_HINT, lose_writes
from func.transforms.boundary import (
    array_leaf,
    check_callable,
    check_no_value,
    defensive_copies,
    name_of,
    own_arguments,
    positional_parameters,
)
from func.transforms.closures import Closure
from func.transforms.signatures import Options, P, R, TransformedFunction
from func.transforms.transformed import as_written, keeps_parameters, name_for_pickle, transform


class FlatFunction(Record):
    """A user's function on flat leaves; it notes the structure of its latest output."""

    function: Callable[..., Any]
    in_spec: Any
    out_spec: Any = None
    layouts: Sequence[Any] = ()
    """The layouts of the arguments, for runs of the function on other tracers."""
    shared: Sequence[Sequence[int]] = ()
    """The places of arguments that share memory, for runs of the function on other tracers."""
    written: frozenset[int] = frozenset()
    """The places of the arguments that the function has written."""
    returns_written: bool = False
    """Whether these arguments are further outputs."""
    transform: str = "custom rule"
    """The name in messages."""

    def __call__(self, *leaves: Array) -> list[Array]:
        copies = self.copies(self.function, leaves)
        args = tree.unflatten(self.in_spec, copies)
        with self.watched(self.function, copies, leaves):
            outs, self.out_spec = tree.flatten(self.function(*args))
        outs = [array_leaf(out, "output", self.transform) for out in outs]
        return [*outs, *[snapshot(copies[i]) for i in sorted(self.written)]] if self.returns_written else outs

    def copies(self, function: Callable[..., Any], leaves: Sequence[Array]) -> list[Array]:
        """Copies of the arguments for the user's function."""
        copies = laid_out(own_arguments(function, leaves), self.layouts)
        if self.shared and not shared_places(leaves):
            guard_places(copies, self.shared)
        return copies

    @contextlib.contextmanager
    def watched(self, function: Callable[..., Any], copies: Sequence[Array], leaves: Sequence[Array]) -> Iterator[None]:
        """Notes the leaves that the function writes while it runs on copies of them."""
        before = [(x._value, x._attached) if type(x) is Tracer else None for x in copies]
        try:
            yield
        except ValueError as error:
            if not self.shared or not is_write_error(error, copies):
                raise
            raise SharedMemoryError(
                f"{name_of(function)} writes to an argument that shares memory with another one. In NumPy that would "
                f"have the new numbers; here each argument is an array by itself{at_line()}\n{COPY_HINT}"
            ) from error
        finally:
            written = [i for i, x in enumerate(copies) if is_written(x, before[i], leaves[i])]
            self.written = self.written.union(written)


@contextlib.contextmanager
def losing_writes(function: Callable[..., Any], leaves: Sequence[Array], flat: FlatFunction) -> Iterator[None]:
    """A call with copies of the leaves: later uses of the written ones are errors, even if the call raises."""
    try:
        yield
    except SharedMemoryError:
        raise
    except Exception:
        lose_writes(function, leaves, flat.written, BY_ERROR if flat.returns_written else BY_RULE)
        raise
    if not flat.returns_written:
        lose_writes(function, leaves, flat.written)


def is_written(copy: Array, before: tuple[Any, Any] | None, leaf: Array) -> bool:
    """Whether the function wrote a copy of an argument: a traced one, with other values before, or an array."""
    if before is not None:
        return copy._value is not before[0] or copy._attached is not before[1]
    return type(copy) is type(leaf) is np.ndarray and copy.tobytes() != leaf.tobytes()


def nothing_traced(args: Any) -> bool:
    """Whether a function with a rule is just called: no transform runs, and no argument is a tensor."""
    return not patching.is_tracing() and not any([type(leaf) is Tracer for leaf in tree.leaves(args)])


def bound_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments, with keywords and defaults at their places."""
    if not kwargs:
        return args
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:
        raise TypeError(f"{name_of(function)} has a custom rule and takes positional arguments only") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{name_of(function)} has a custom rule and cannot take keyword-only arguments")
    return bound.args


def fixed_places(nondiff: Sequence[int], args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """The positions of the arguments that a rule treats as constants, counted from 0.

    Raises:
        ArgumentError: A position is out of range (a ValueError).
    """
    for number in nondiff:
        if not -len(args) <= number < len(args):
            raise ArgumentError(
                f"nondiff_argnums={tuple(nondiff)} is out of range for {name}, called with {len(args)} arguments"
            )
    return tuple(sorted({number % len(args) for number in nondiff}))


class CustomRule(Generic[P, R]):
    """Base class of the decorators: splits arguments, and copies attributes of the wrapped function.

    With options alone a class is a decorator: `@custom_jvp(nondiff_argnums=(1,))`.
    """

    def __new__(cls, f: Callable[..., Any] | None = None, *args: Any, **options: Any) -> Self:
        if f is None and "fun" not in options and "func" not in options:
            return functools.partial(cls, **options)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(
        self,
        function: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        kind = type(self).__name__
        check_callable(function, kind)
        check_no_value(nondiff_argnums, "nondiff_argnums", kind, function)
        self.function = function
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        self.nondiff = (*numbers, *_positions_of(names, function, kind))
        functools.update_wrapper(self, function)

    def __reduce__(self) -> Any:
        return name_for_pickle(self) or (_rule_of, (type(self), self.function), self.__dict__)

    def __repr__(self) -> str:
        return as_written(type(self), self.function, {"nondiff_argnums": self.nondiff} if self.nondiff else {})

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: CustomRule[Concatenate[Any, Options], R], instance: object, owner: type | None = None
    ) -> TransformedFunction[Options, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self.__call__, instance)

    @without_engine_frames
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._call(args, kwargs)  # type: ignore[no-any-return]

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*args, **kwargs)

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], Any, Callable[..., Any]]:
        """(arguments at nondiff_argnums, leaves of the others, their structure, the function of the others)."""
        fixed = fixed_places(self.nondiff, args, name_of(self.function))
        nondiff = [args[i] for i in fixed]
        differentiated = tuple([arg for i, arg in enumerate(args) if i not in fixed])

        def of_differentiated(*values: Any) -> Any:
            remaining = iter(values)
            return self.function(*[args[i] if i in fixed else next(remaining) for i in range(len(args))])

        of_differentiated.__name__ = name_of(self.function)
        leaves, spec = tree.flatten(differentiated)
        names = tree.path_names(differentiated, "args")
        leaves = [array_leaf(x, path, type(self).__name__) for x, path in zip(leaves, names, strict=True)]
        return nondiff, leaves, spec, of_differentiated


def _positions_of(names: Sequence[Any], function: Callable[..., Any], kind: str) -> list[int]:
    """The positions of the parameters with these names.

    Raises:
        ArgumentError: No positional parameter has the name (a ValueError).
    """
    if not names:
        return []
    known = positional_parameters(function)
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"func.{kind}: nondiff_argnames names {name!r}, but the positional parameters of {name_of(function)} "
                f"are {', '.join(known) or 'not known'}"
            )
    return [known.index(name) for name in names]


def _rule_of(kind: type[CustomRule[..., Any]], function: Callable[..., Any]) -> CustomRule[..., Any]:
    return kind(function)


def stop_gradient(x: Any) -> Any:
    """The identity without a derivative; takes a tree.

    Example:
        >>> import func
        >>> func.grad(lambda x: x * func.stop_gradient(x))(3.0)
        np.float64(3.0)
    """

    def stop(leaf: Any) -> Any:
        return stop_gradient_primitive(leaf) if type(leaf) is Tracer else leaf

    return tree.map(stop, x)


class custom_jvp(CustomRule[P, R]):
    """Give a function a custom derivative by its jvp; reverse mode transposes the tangent part.

    The rule takes (primals, tangents), each a tuple, and returns (out, tangent_out); arguments at `nondiff_argnums`, or
    with a name in `nondiff_argnames`, come first. Its tangent part must be linear in the tangents.

    Example:
        >>> import numpy as np, func
        >>> @func.custom_jvp
        ... def log1pexp(x):
        ...     return np.log1p(np.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (dx,) = primals, tangents
        ...     return log1pexp(x), dx * (1 - 1 / (1 + np.exp(x)))
        >>> func.grad(log1pexp)(0.0)
        np.float64(0.5)
    """

    @overload
    def __init__(
        self,
        f: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None: ...
    @overload
    def __init__(
        self: custom_jvp[..., Any],
        f: None = None,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None: ...
    @without_engine_frames
    def __init__(
        self,
        f: Any = None,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        super().__init__(f, nondiff_argnums, nondiff_argnames)
        self.rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule: `rule(*nondiff, primals, tangents) -> (out, tangent_out)`."""
        check_callable(rule, "custom_jvp.defjvp")
        self.rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """One rule per argument, `rule(tangent, out, *args)`, which returns its part of the tangent; None for no
        derivative.
        """

        def combined(*call: Any) -> tuple[Any, Any]:
            primals, tangents = call[-2:]
            out = self._call((*call[:-2], *primals), {})
            parts = [rule(t, out, *primals) for rule, t in zip(rules, tangents, strict=True) if rule is not None]
            total: Any = None
            for part in parts:
                total = part if total is None else tree.map(lambda a, b: a + b, total, part)
            return out, tree.map(zeros_like, out) if total is None else total

        self.rule = combined

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.rule is None:
            raise CustomRuleError(f"custom_jvp {name_of(self.function)} has no rule yet; give it one with defjvp")
        args = bound_arguments(self.function, args, kwargs)
        if nothing_traced(args):
            return self.function(*args)
        nondiff, leaves, spec, function = self._split(args)
        flat = FlatFunction(function, spec, layouts=layouts_of(leaves), shared=shared_places(leaves))
        with losing_writes(self.function, leaves, flat):
            outs = custom_rules.custom_jvp_call(*leaves, fun=flat, rule=_JvpRule(self.rule, nondiff, spec, flat))
        by_rule = value_in_force(_BY_RULE)
        if by_rule is not None and by_rule[0] is self.rule:
            by_rule[1].extend(outs)
        return tree.unflatten(flat.out_spec, outs)


_BY_RULE: ContextVar[Setting | None] = ContextVar("func_outputs_by_rule", default=None)
"""A pair: the jvp rule that is running, and the outputs of its function that it has asked for."""


class _JvpRule(Record):
    """A user's jvp rule on flat leaves."""

    rule: Callable[..., Any]
    nondiff: list[Any]
    spec: Any
    flat: FlatFunction

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any]]:
        outs, fitted, is_own = self.applied(primals, tangents)
        if is_own or not needs_rule(primals) or Closure(self.rule).values:
            return outs, fitted
        # The levels below would differentiate the code of the rule, which may compute another function.
        return list(custom_rules.with_tangents(outs, primals, _Tangents(self))), fitted

    def applied(self, primals: Sequence[Array], tangents: Sequence[Any]) -> tuple[list[Array], list[Any], bool]:
        """The results of the rule: the outputs, their tangents, and whether it returned the function's own outputs."""
        filled = [zeros_like(p) if t is ZERO else t for p, t in zip(primals, tangents, strict=True)]
        copies = laid_out(defensive_copies(primals), self.flat.layouts)
        if self.flat.shared:
            guard_places(copies, self.flat.shared)
        primal_trees = tree.unflatten(self.spec, copies)
        tangent_trees = tree.unflatten(self.spec, defensive_copies(filled))
        by_rule: list[Any] = []
        with self.flat.watched(self.rule, copies, primals), holding(_BY_RULE, (self.rule, by_rule)):
            result = self.rule(*self.nondiff, primal_trees, tangent_trees)
        name = name_of(self.rule)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CustomRuleError(f"the jvp rule {name} must return a pair (out, tangent_out)")
        outs, out_spec = tree.flatten(result[0])
        out_dots, dot_spec = tree.flatten(result[1])
        if out_spec != dot_spec:
            raise CustomRuleError(
                f"the jvp rule {name} returned outputs of tree {tree.shown(out_spec)} and tangents of tree "
                f"{tree.shown(dot_spec)}"
            )
        if self.flat.out_spec is None:
            self.flat.out_spec = out_spec
        fitted = []
        for out, dot in zip(outs, out_dots, strict=True):
            if shape_of(out) != shape_of(dot):
                raise CustomRuleError(
                    f"the jvp rule {name} returned a tangent of shape {shape_of(dot)} for an output of shape "
                    f"{shape_of(out)}"
                )
            fitted.append(_with_dtype(dot, out))
        return outs, fitted, all([any([out is leaf for leaf in by_rule]) for out in outs])


class _Tangents(Record):
    """The tangents of outputs that a jvp rule has computed, for the levels below."""

    rule: _JvpRule

    def __call__(self, primals: Sequence[Array], outs: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        again, douts, _ = self.rule.applied(primals, [ZERO if tangent is None else tangent for tangent in tangents])
        if not all([_is_same(out, known) for out, known in zip(again, outs, strict=True)]):
            raise CustomRuleError(
                f"the jvp rule {name_of(self.rule.rule)} is called for each derivative of a derivative, and gave other "
                "outputs the second time; its derivative would be that of another function. Draw random numbers "
                "outside and pass them as arguments, or write a custom_vjp, whose forward function runs once."
            )
        return douts


def _is_same(x: Array, y: Array) -> bool:
    """Whether two outputs have the same numbers, as far as known."""
    if is_abstract_value(x) or is_abstract_value(y):
        return True
    return custom_rules.are_same(known_value(x), known_value(y))


def _with_dtype(dot: Array, out: Array) -> Any:
    if not is_inexact(dtype_of(out)):
        return ZERO
    if dtype_of(dot).kind == "c" and dtype_of(out).kind != "c":
        raise CustomRuleError(
            f"a jvp rule returned a complex tangent for an output of dtype {dtype_of(out)}; take .real"
        )
    return dot if dtype_of(dot) == dtype_of(out) else convert(dot, dtype=dtype_of(out))


class custom_vjp(CustomRule[P, R]):
    """Give a function a custom derivative by its pullback; forward mode transposes it.

    `fwd(*args)` returns (out, residuals), and may call the function itself. `bwd(residuals, ct)` returns a tuple with
    one cotangent per argument (None for zero). At `nondiff_argnums`, or with a name in `nondiff_argnames`, fwd takes
    arguments in place; bwd takes them first.

    Example:
        >>> import numpy as np, func
        >>> @func.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
        >>> func.grad(lambda x: 10.0 * clip_gradient(x))(3.0)
        np.float64(1.0)
    """

    @overload
    def __init__(
        self,
        f: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None: ...
    @overload
    def __init__(
        self: custom_vjp[..., Any],
        f: None = None,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None: ...
    @without_engine_frames
    def __init__(
        self,
        f: Any = None,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        super().__init__(f, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rule."""
        check_callable(fwd, "custom_vjp.defvjp")
        check_callable(bwd, "custom_vjp.defvjp")
        self.fwd, self.bwd = fwd, bwd

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.fwd is None or self.bwd is None:
            raise CustomRuleError(f"custom_vjp {name_of(self.function)} has no rule yet; give it one with defvjp")
        args = bound_arguments(self.function, args, kwargs)
        if nothing_traced(args):
            return self.function(*args)
        nondiff, leaves, spec, function = self._split(args)
        flat = FlatFunction(function, spec)
        fixed = fixed_places(self.nondiff, args, name_of(self.function))
        if not needs_rule(leaves):
            with losing_writes(self.function, leaves, flat):
                outs = flat(*leaves)
            return tree.unflatten(flat.out_spec, outs)
        forward = _VjpForward(self.fwd, args, fixed, spec, flat)
        with losing_writes(self.function, leaves, flat):
            if custom_rules.is_own_call(self):
                results = custom_rules.call_within_rule(leaves, flat, _OwnCall(self, forward))
            else:
                backward = _VjpBackward(self.bwd, nondiff, spec, forward, flat)
                results = custom_rules.call_with_rule(leaves, forward, backward, rule=self)
        return tree.unflatten(flat.out_spec, results)


class _VjpForward(Record):
    """A user's fwd on flat leaves; returns flat residuals, and stores those that are not arrays here."""

    fwd: Callable[..., Any]
    args: tuple[Any, ...]
    fixed: tuple[int, ...]
    spec: Any
    flat: FlatFunction
    residual_spec: Any = None
    static: Any = None

    def __call__(self, run: PrimalRun, *leaves: Array) -> tuple[list[Array], list[Array]]:
        copies = self.flat.copies(self.fwd, leaves)
        with self.flat.watched(self.fwd, copies, leaves):
            result = self.fwd(*self.arguments(copies))
        if not isinstance(result, tuple) or len(result) != 2:
            raise CustomRuleError(f"fwd {name_of(self.fwd)} must return a pair (out, residuals)")
        outs, out_spec = tree.flatten(result[0])
        self.flat.out_spec = out_spec
        residuals, self.residual_spec = tree.flatten(result[1])
        is_array = [type(r) is Tracer or hasattr(r, "dtype") or isinstance(r, (float, complex)) for r in residuals]
        self.static = [None if array else (r,) for r, array in zip(residuals, is_array, strict=True)]
        return [array_leaf(o, "output", "custom_vjp") for o in outs], [
            r for r, array in zip(residuals, is_array, strict=True) if array
        ]

    def arguments(self, leaves: Sequence[Array]) -> list[Any]:
        """The arguments of the call, with other leaves."""
        remaining = iter(tree.unflatten(self.spec, leaves))
        return [self.args[i] if i in self.fixed else next(remaining) for i in range(len(self.args))]

    def residuals(self, arrays: Sequence[Array]) -> Any:
        """The tree of the user's residuals."""
        remaining = iter(arrays)
        return tree.unflatten(self.residual_spec, [next(remaining) if s is None else s[0] for s in self.static])


class _OwnCall(Record):
    """A custom_vjp on flat leaves, as its forward function calls it."""

    rule: custom_vjp[..., Any]
    forward: _VjpForward

    def __call__(self, *leaves: Array) -> list[Array]:
        return tree.leaves(self.rule(*self.forward.arguments(leaves)))


class _VjpBackward(Record):
    """A user's bwd on flat residuals and cotangents."""

    bwd: Callable[..., Any]
    nondiff: list[Any]
    spec: Any
    forward: _VjpForward
    flat: FlatFunction

    def __call__(self, residuals: Sequence[Array], out_cts: Sequence[Array]) -> list[Any]:
        out_ct = tree.unflatten(self.flat.out_spec, defensive_copies(out_cts))
        cts = self.bwd(*self.nondiff, self.forward.residuals(defensive_copies(residuals)), out_ct)
        return flat_cotangents(
            cts, self.spec.children(), f"bwd {_with_place(self.bwd)} of {name_of(self.flat.function)}"
        )


@keeps_parameters
@transform
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that returns (out, pullback) this pullback as its derivative.

    The pullback maps the cotangent of out to those of the arguments: a tuple, unless there is only one argument.

    Example:
        >>> import func
        >>> @func.custom_gradient
        ... def square(x):
        ...     return x * x, lambda ct: ct * 2 * x
        >>> func.grad(square)(3.0)
        np.float64(6.0)
    """

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = bound_arguments(f, args, kwargs)
        leaves, spec = tree.flatten(args)
        if nothing_traced(args) or not needs_rule(leaves):
            return _pair(f(*args), f)[0]
        names = tree.path_names(args, "args")
        leaves = [array_leaf(x, path, "custom_gradient") for x, path in zip(leaves, names, strict=True)]
        rule = _GradientRule(f, spec)
        with losing_writes(f, leaves, rule.flat):
            outs = custom_rules.call_with_rule(leaves, rule.forward, rule.backward)
        return tree.unflatten(rule.out_spec, outs)

    return call


def _pair(result: Any, function: Callable[..., Any]) -> Any:
    """The checked result of a function with a custom gradient."""
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        raise CustomRuleError(
            f"{name_of(function)} has a custom gradient and must return a pair (out, pullback), where pullback is a "
            f"function of the output's cotangent; it returned {_described(result)}"
        )
    return result


def _described(result: Any) -> str:
    if isinstance(result, tuple):
        return f"a tuple of {', '.join([type(part).__name__ for part in result]) or 'nothing'}"
    return f"a value of type {type(result).__name__}"


class _GradientRule:
    """One run of a function with a custom gradient; the traced values of its pullback are the residuals."""

    def __init__(self, function: Callable[..., Any], spec: Any) -> None:
        self.function = function
        self.flat = FlatFunction(function, spec)
        self.spec = spec
        self.out_spec: Any = None
        self.pullback: Any = None

    def forward(self, run: PrimalRun, *leaves: Array) -> tuple[list[Array], list[Array]]:
        """The outputs, and the traced values that the pullback keeps."""
        copies = self.flat.copies(self.function, leaves)
        with self.flat.watched(self.function, copies, leaves):
            result = self.function(*tree.unflatten(self.spec, copies))
        out, pullback = _pair(result, self.function)
        self.pullback = Closure(pullback, run.owns)
        outs, self.out_spec = tree.flatten(out)
        return [array_leaf(out, "output", "custom_gradient") for out in outs], self.pullback.values

    def backward(self, residuals: Sequence[Array], out_cts: Sequence[Array]) -> list[Any]:
        """The cotangents of the leaves of the arguments."""
        pullback = self.pullback.rebuilt(defensive_copies(residuals))
        cts = pullback(tree.unflatten(self.out_spec, defensive_copies(out_cts)))
        children = self.spec.children()
        if len(children) == 1 and not (isinstance(cts, (tuple, list)) and len(cts) == 1):
            cts = (cts,)
        return flat_cotangents(cts, children, f"the pullback of {name_of(self.function)}")


def _with_place(rule: Callable[..., Any]) -> str:
    """The name of a rule, and its line if it has a file."""
    code = getattr(rule, "__code__", None)
    if code is None or code.co_filename.startswith("<"):
        return name_of(rule)
    return f"{name_of(rule)} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def flat_cotangents(cts: Any, children: Sequence[Any], rule: str) -> list[Any]:
    """The cotangents of the leaves of some arguments, from a rule's result: one tree each, None for zero."""
    if not isinstance(cts, (tuple, list)) or len(cts) != len(children):
        shown = f"{len(cts)} values" if isinstance(cts, (tuple, list)) else type(cts).__name__
        raise CustomRuleError(
            f"{rule} must return a tuple of {len(children)} cotangents, one per argument, not {shown}"
        )
    flat: list[Any] = []
    for ct_tree, child in zip(cts, children, strict=True):
        if ct_tree is None:
            flat.extend([None] * child.num_leaves)
            continue
        leaves, spec = tree.flatten(ct_tree)
        if spec != child:
            raise CustomRuleError(
                f"{rule} returned a cotangent of tree {tree.shown(spec)} for an argument of tree {tree.shown(child)}"
            )
        flat.extend(leaves)
    return flat


class custom_vmap(CustomRule[P, R]):
    """Give a function a custom batching rule.

    The rule takes `(axis_size, in_batched, *args)`, with in_batched in the trees of the arguments, a bool for every
    leaf; batch axes lead. It returns (out, out_batched). Derivatives differentiate function and rule alike.

    Example:
        >>> import numpy as np, func
        >>> @func.custom_vmap
        ... def double(x):
        ...     return 2 * x
        >>> @double.def_vmap
        ... def double_rule(axis_size, in_batched, x):
        ...     return x + x, in_batched[0]
        >>> func.vmap(double)(np.arange(3.0))
        array([0., 2., 4.])
    """

    @without_engine_frames
    def __init__(self, f: Callable[P, R]) -> None:
        super().__init__(f)
        self.rule: Callable[..., Any] | None = None

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule."""
        check_callable(rule, "custom_vmap.def_vmap")
        self.rule = rule
        return rule

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.rule is None:
            raise CustomRuleError(f"custom_vmap {name_of(self.function)} has no rule yet; give it one with def_vmap")
        args = bound_arguments(self.function, args, kwargs)
        if nothing_traced(args):
            return self.function(*args)
        _, leaves, spec, function = self._split(args)
        flat = FlatFunction(function, spec, layouts=layouts_of(leaves), shared=shared_places(leaves))
        with losing_writes(self.function, leaves, flat):
            if mapping_level(leaves) is None:
                outs: Sequence[Array] = flat(*leaves)
            else:
                outs = custom_rules.call_with_batch_rule(leaves, flat, _VmapRule(self.rule, spec, flat))
        return tree.unflatten(flat.out_spec, outs)


class _VmapRule(Record):
    """A user's batching rule on flat leaves."""

    rule: Callable[..., Any]
    spec: Any
    flat: FlatFunction

    def __call__(self, size: int, batched: tuple[bool, ...], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        copies = defensive_copies(args)
        with self.flat.watched(self.rule, copies, args):
            result = self.rule(size, tree.unflatten(self.spec, batched), *tree.unflatten(self.spec, copies))
        name = name_of(self.rule)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CustomRuleError(f"the vmap rule {name} must return a pair (out, out_batched)")
        outs, self.flat.out_spec = tree.flatten(result[0])
        flags = tree.leaves(result[1])
        if len(flags) == 1:
            flags = flags * len(outs)
        if len(flags) != len(outs):
            raise CustomRuleError(
                f"the vmap rule {name} returned {len(outs)} outputs and {len(flags)} out_batched flags"
            )
        for out, flag in zip(outs, flags, strict=True):
            if flag and (not shape_of(out) or shape_of(out)[0] != size):
                raise CustomRuleError(
                    f"the vmap rule {name} says an output of shape {shape_of(out)} is batched, but its first axis is "
                    f"not the batch of {size}"
                )
        return outs, [bool(flag) for flag in flags]
