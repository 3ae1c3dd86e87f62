"""`Function`, the base class of operations with a user-defined derivative."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from func import tree
from func.autograd.modes import no_grad, no_grad_of_tensors
from func.backends import is_device_array, namespace_of
from func.interpreters.calls import custom_rules
from func.interpreters.calls.primal_run import PrimalRun, is_traced_number, mapping_level, needs_rule
from func.interpreters.core import (
    EVALUATE,
    Array,
    Aval,
    Tracer,
    dtype_of,
    is_inexact,
    operand,
    shape_of,
    snapshot,
    unboxed,
)
from func.interpreters.core.errors import CustomRuleError, NotDifferentiableError
from func.interpreters.drivers import without_tensors
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.imperative.interpreter import Imperative, boxed, state_of
from func.interpreters.primitives.structural.shapes import convert, move_axis, unbroadcast
from func.interpreters.stage import Stage
from func.interpreters.structural_zeros import with_mask_of, without_mask
from func.interpreters.vmap import Vmap
from func.numpy.inplace import rebind
from func.numpy.memory import set_argument_layouts
from func.numpy.sharing import BY_FUNCTION, link_arguments, lose_writes
from func.transforms.custom import is_written, stop_gradient


class FunctionCtx:
    """The context that `forward` passes to `backward`. It takes any attributes, and tensors by `save_for_backward`."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        """For each argument of `apply`, whether a derivative needs it (in `forward`, `setup_context`: may need it)."""
        self._saved: tuple[Any, ...] = ()
        self._forward: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materializes = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (or None) for `backward`, which reads them from `saved_tensors`."""
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors (or None) for `jvp`, which reads them from `saved_tensors`."""
        self._forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors."""
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs that have no gradient."""
        self._constant = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare arguments that `forward` modifies in place and returns."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` and `jvp` receive zeros (the default) or None for gradients that are zero."""
        self._materializes = bool(value)


class VmapInfo(NamedTuple):
    """The arguments of a `vmap` rule that describe the vmap: the size of the batch, and its randomness."""

    batch_size: int
    randomness: str


class Function:
    """An operation with a user-defined gradient: subclass it, and call it by `apply`.

    There are two styles: `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`.
    `backward(ctx, *grad_outputs)` returns one gradient (or None) for each argument of `apply`. Two methods are
    optional: `jvp(ctx, *grad_inputs)` (without it forward mode transposes `backward`), and `vmap(info, in_dims, *args)
    -> (out, out_dims)` (without it, or with `generate_vmap_rule = True`, vmap maps the code of `forward` and
    `backward`). Both styles work under every transform, to any order.

    Example:
        >>> import numpy as np, func
        >>> class Exp(func.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         out = np.exp(x)
        ...         ctx.save_for_backward(out)
        ...         return out
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (out,) = ctx.saved_tensors
        ...         return grad_output * out
        >>> x = func.tensor(0.0, requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor(1.)
    """

    generate_vmap_rule: ClassVar[bool] = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses override it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs, if `forward` does not take a ctx; subclasses override it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the arguments; subclasses override it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp: Any = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs; subclasses may override it."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use forward AD.")

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """The operation on a batch; subclasses may override it."""
        raise NotImplementedError("vmap is not implemented.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the operation; `backward` differentiates the arrays and tensors among the arguments.

        Keyword arguments take their places in the signature of `forward`.
        """
        args = _at_their_places(cls, args, kwargs)
        call = _FunctionCall(cls, args)
        arrays = [args[place] for place in call.places]
        if not any([type(array) is Tracer for array in arrays]):
            return call.untraced_output()
        try:
            outs: Sequence[Array]
            if call.has_vmap_rule and mapping_level(arrays) is not None and not _is_differentiated_first(arrays):
                outs = custom_rules.call_with_batch_rule(arrays, call.again, call.map_batch)
            else:
                outs = call(*arrays)
        finally:
            kept = call.dirty.values()
            lost = [i for i, place in enumerate(call.places) if place in call.written and place not in kept]
            lose_writes(cls.forward, arrays, lost, BY_FUNCTION)
        return call.result(list(outs))


def _at_their_places(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments of `apply`, with keywords at their places, and with the defaults that a context contains."""
    has_context = cls.setup_context is not Function.setup_context
    has_defaults = has_context and getattr(cls.forward, "__defaults__", None) is not None
    if not kwargs and not has_defaults:
        return args
    leading = () if has_context else (None,)
    bound = inspect.signature(cls.forward).bind(*leading, *args, **kwargs)
    if has_defaults or bound.kwargs:
        bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{cls.__name__}.forward takes keyword-only arguments; a Function takes positional ones")
    return bound.args[len(leading) :]


class _FunctionCall:
    """One call of a Function, with methods on flat lists of arrays."""

    def __init__(self, cls: type[Function], args: tuple[Any, ...]) -> None:
        self.cls = cls
        self.args = args
        self.places = [i for i, arg in enumerate(args) if _is_array(arg)]
        self.has_context = cls.setup_context is not Function.setup_context
        self.has_vmap_rule = cls.vmap is not Function.vmap
        if self.has_vmap_rule and cls.generate_vmap_rule:
            raise CustomRuleError(
                f"{cls.__name__} has both a vmap rule and generate_vmap_rule=True: only one of them can hold"
            )
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise CustomRuleError(f"{cls.__name__} has both backward and vjp, which are names of one rule: keep one")
        self.ctx = FunctionCtx(tuple([is_traced_number(arg) and needs_rule((arg,)) for arg in args]))
        self.has_single_output = True
        self.others: dict[int, Any] = {}
        """The outputs that are not arrays, by place."""
        self.constant: list[int] = []
        self.dirty: dict[int, int] = {}
        """The inputs that the outputs are, modified in place: places in `args`, by places of the outputs."""
        self.written: set[int] = set()
        """The places in `args` of the arrays that the code of `forward` has written."""
        self.saved_attributes: list[_ContextAttribute] = []
        self.shapes: list[tuple[int, ...]] = []
        self.avals: list[Aval] = []
        """The shapes and dtypes of the outputs that are arrays."""

    def again(self, *leaves: Array) -> list[Array]:
        """The operation on other values of the arrays, as a call with a new context."""
        call = _FunctionCall(self.cls, self.args)
        outs = call(*leaves)
        self.has_single_output, self.others = call.has_single_output, call.others
        self.constant, self.dirty, self.written = call.constant, call.dirty, call.written
        return list(outs)

    def __call__(self, *leaves: Array) -> Sequence[Array]:
        """The outputs that are arrays, differentiated by the rule of the class."""
        self.shapes = [shape_of(leaf) for leaf in leaves]
        if not needs_rule(leaves):
            tensors = as_user_tensors(leaves)
            set_argument_layouts(tensors, leaves)
            inputs = self._arguments(tensors, leaves)
            outs = self._outputs(inputs, self._run(inputs))
            is_tensor = all([level is EVALUATE for level in _levels(leaves)])
            return [boxed(out) for out in outs] if is_tensor else outs
        options = {"push": _FunctionPush(self)} if self.cls.jvp is not Function.jvp else {}
        return custom_rules.call_with_rule(leaves, self._forward, _FunctionPullback(self), **options)

    def _arguments(self, tensors: Sequence[Any], leaves: Sequence[Array]) -> list[Any]:
        """The arguments of `apply`, with tensors for the traced arrays among them and copies of the others."""
        arguments = list(self.args)
        for place, tensor, leaf in zip(self.places, tensors, leaves, strict=True):
            is_traced_array = type(self.args[place]) is not Tracer and type(leaf) is not Tracer
            if not is_traced_array:
                arguments[place] = tensor
            elif not isinstance(leaf, np.generic):
                arguments[place] = namespace_of((leaf,)).array(leaf)
        return arguments

    def _run(self, inputs: list[Any]) -> Any:
        """The output of `forward`, in either style."""
        with self._noting_writes(inputs), no_grad_of_tensors():
            if self.has_context:
                out = self._forward_by_rule(inputs) if self.has_vmap_rule else self.cls.forward(*inputs)
                self.cls.setup_context(self.ctx, tuple(inputs), out)
            else:
                out = self.cls.forward(self.ctx, *inputs)
        return out

    @contextlib.contextmanager
    def _noting_writes(self, inputs: Sequence[Any]) -> Iterator[None]:
        """Notes the arrays that the user's code writes."""
        before = [(x._value, x._attached) if type(x) is Tracer else None for x in inputs]
        try:
            yield
        finally:
            self.written |= {i for i in self.places if is_written(inputs[i], before[i], self.args[i])}

    def _forward_by_rule(self, inputs: list[Any]) -> Any:
        """The output of `forward`; for a batch by the vmap rule, without a context."""
        arrays = [inputs[place] for place in self.places]
        if mapping_level(arrays) is None:
            return self.cls.forward(*inputs)

        def flat(*leaves: Array) -> list[Array]:
            own_inputs = self._arguments(as_user_tensors(leaves), leaves)
            with self._noting_writes(own_inputs):
                return self._outputs(inputs, self.cls.forward(*own_inputs))

        outs = custom_rules.call_with_batch_rule([unboxed(operand(x)) for x in arrays], flat, self.map_batch)
        values = self._with_others(outs, self.others)
        return values[0] if self.has_single_output else tuple(values)

    def untraced_output(self) -> Any:
        """The output if no argument is traced."""
        return self._run(list(self.args))

    def _outputs(self, inputs: list[Any], out: Any) -> list[Any]:
        """The arrays of a run's result; notes which of them are constant or modified inputs."""
        ctx = self.ctx
        self.has_single_output = not isinstance(out, tuple)
        values = [out] if self.has_single_output else list(out)
        self.others = {i: output for i, output in enumerate(values) if not _is_output(output)}
        outs = [output for i, output in enumerate(values) if i not in self.others]
        self.constant = [i for i, output in enumerate(outs) if any([output is marked for marked in ctx._constant])]
        self.dirty = {
            i: j
            for i, output in enumerate(outs)
            if any([output is marked for marked in ctx._dirty])
            for j, value in enumerate(inputs)
            if output is value
        }
        arrays = [unboxed(operand(output)) for output in outs]
        self.avals = [Aval(shape_of(array), dtype_of(array)) for array in arrays]
        return arrays

    def _forward(self, run: PrimalRun, *leaves: Array) -> tuple[list[Array], list[Array]]:
        """Outputs and residuals: the values of the run in the context."""
        tensors = as_user_tensors(leaves)
        link_arguments(run, self.cls.forward, tensors, leaves)
        inputs = self._arguments(tensors, leaves)
        outs = self._outputs(inputs, self._run(inputs))
        self.ctx._constant = self.ctx._dirty = ()
        attributes = [_ContextAttribute(name, value, run) for name, value in vars(self.ctx).items()]
        self.saved_attributes = [attribute for attribute in attributes if attribute.residuals]
        for attribute in self.saved_attributes:
            vars(self.ctx)[attribute.name] = attribute.placeholder
        return outs, [residual for attribute in self.saved_attributes for residual in attribute.residuals]

    @contextlib.contextmanager
    def _context(
        self, residuals: Sequence[Array], needed: Sequence[bool], forward: bool = False
    ) -> Iterator[FunctionCtx]:
        """The context of the call with these residuals, for one call of a rule.

        It is a copy, since rules may run in several threads at once, and inside each other. The call of the rule
        determines the arrays with a derivative: a program or a checkpoint differentiates after `forward`.
        """
        ctx = copy.copy(self.ctx)
        flags = needed
        if len(needed) < len(self.args):
            is_needed = dict(zip(self.places, needed, strict=True))
            flags = [is_needed.get(place, False) for place in range(len(self.args))]
        ctx.needs_input_grad = tuple(flags)
        tensors = iter(as_user_tensors(residuals))
        for attribute in self.saved_attributes:
            value = attribute.rebuilt(tensors)
            if vars(ctx).get(attribute.name) is attribute.placeholder:  # otherwise a rule has set another value
                vars(ctx)[attribute.name] = value
        if forward and ctx._forward:
            ctx._saved = ctx._forward
        before = dict(vars(ctx))
        try:
            yield ctx
        finally:
            after = vars(ctx)
            for name in before.keys() - after.keys():
                vars(self.ctx).pop(name, None)
            for name, value in after.items():
                if name not in before or before[name] is not value:
                    vars(self.ctx)[name] = value

    def backward(self, needed: Sequence[bool], residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the arrays among the arguments, by the `backward` of the class."""
        with self._context(residuals, needed) as ctx:
            grad_outputs = [
                None if ct is None or (i in self.constant and not ctx._materializes) else as_user_tensors([ct])[0]
                for i, ct in enumerate(cts)
            ]
            rule = self.cls.backward if self.cls.backward is not Function.backward else self.cls.vjp
            returned = rule(ctx, *self._with_others(grad_outputs, dict.fromkeys(self.others)))
        grads = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        while len(grads) > len(self.args) and grads[-1] is None:
            grads.pop()
        name = f"function {self.cls.__name__}Backward"
        if len(grads) != len(self.args):
            raise CustomRuleError(
                f"{name} returned an incorrect number of gradients (expected {len(self.args)}, got {len(grads)})"
            )
        for i, gradient in enumerate(grads):
            if gradient is not None and i not in self.places:
                raise CustomRuleError(
                    f"{name} returned a gradient different than None at position {i}, "
                    "but the corresponding forward input was not a tensor"
                )
        return [None if grads[i] is None else self._fitted(unboxed(operand(grads[i])), i, name) for i in self.places]

    def _fitted(self, gradient: Array, i: int, name: str) -> Array:
        """A gradient in the shape of its argument: summed where the argument broadcasts to its shape."""
        shape = self.shapes[self.places.index(i)]
        old_shape = shape_of(gradient)
        if old_shape == shape:
            return gradient
        padded = (1,) * (len(old_shape) - len(shape)) + tuple(shape)
        if len(shape) > len(old_shape) or any([n not in (1, m) for n, m in zip(padded, old_shape, strict=True)]):
            raise CustomRuleError(
                f"{name} returned an invalid gradient at index {i} - got {list(old_shape)} but expected shape "
                f"compatible with {list(shape)}"
            )
        return unbroadcast(gradient, shape)

    def push(self, needed: Sequence[bool], residuals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of all outputs, by the `jvp` of the class."""
        arguments: list[Any] = [None] * len(self.args)
        for place, tangent in zip(self.places, tangents, strict=True):
            arguments[place] = None if tangent is None else as_user_tensors([tangent])[0]
        with self._context(residuals, needed, forward=True) as ctx:
            out = self.cls.jvp(ctx, *arguments)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        expected = len(self.avals) + len(self.others)
        if len(outs) != expected:
            raise CustomRuleError(f"{self.cls.__name__}.jvp returned {len(outs)} tangents for {expected} outputs")
        dots = [x for i, x in enumerate(outs) if i not in self.others]
        return [self._fitted_tangent(x, aval) for x, aval in zip(dots, self.avals, strict=True)]

    def _fitted_tangent(self, tangent: Any, aval: Aval) -> Any:
        """A tangent of the shape and dtype of its output."""
        if tangent is None or not is_inexact(aval.dtype):
            return None
        tangent = unboxed(operand(tangent))
        dtype = dtype_of(tangent)
        if shape_of(tangent) != aval.shape or (dtype.kind == "c" and aval.dtype.kind != "c"):
            raise CustomRuleError(
                f"{self.cls.__name__}.jvp returned a tangent of shape {shape_of(tangent)} and dtype {dtype} for an "
                f"output of shape {aval.shape} and dtype {aval.dtype}"
            )
        return tangent if dtype == aval.dtype and hasattr(tangent, "dtype") else convert(tangent, dtype=aval.dtype)

    def map_batch(self, size: int, mapped: Sequence[bool], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        """The vmap rule of the class, with batch axes leading."""
        in_dims: list[Any] = [None] * len(self.args)
        for place, is_mapped in zip(self.places, mapped, strict=True):
            in_dims[place] = 0 if is_mapped else None
        info = VmapInfo(size, _randomness([self.args[place] for place in self.places]))
        inputs = self._arguments(as_user_tensors(args), args)
        with self._noting_writes(inputs):
            result: Any = self.cls.vmap(info, tuple(in_dims), *inputs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CustomRuleError(f"{self.cls.__name__}.vmap must return a pair (outputs, out_dims)")
        out, dims = result
        self.has_single_output = not isinstance(out, tuple)
        outs = [out] if self.has_single_output else list(out)
        axes = [dims] * len(outs) if self.has_single_output or not isinstance(dims, (tuple, list)) else list(dims)
        if len(axes) != len(outs):
            raise CustomRuleError(f"{self.cls.__name__}.vmap returned {len(outs)} outputs and {len(axes)} out_dims")
        self.others = {i: output for i, output in enumerate(outs) if not _is_output(output)}
        axes = [axis for i, axis in enumerate(axes) if i not in self.others]
        arrays = [unboxed(operand(output)) for i, output in enumerate(outs) if i not in self.others]
        for array, axis in zip(arrays, axes, strict=True):
            shape = shape_of(array)
            is_axis = isinstance(axis, (int, np.integer)) and -len(shape) <= axis < len(shape)
            if axis is not None and not (is_axis and shape[axis] == size):
                raise CustomRuleError(
                    f"{self.cls.__name__}.vmap returned out_dims {axis!r} for an output of shape {shape}, but that is "
                    f"not the batch of {size}"
                )
        batched = [
            array if axis is None else move_axis(array, axis % len(shape_of(array)), 0)
            for array, axis in zip(arrays, axes, strict=True)
        ]
        return batched, [axis is not None for axis in axes]

    def result(self, outs: list[Array]) -> Any:
        """The result of `apply`."""
        outs = [boxed(stop_gradient(out)) if i in self.constant else out for i, out in enumerate(outs)]
        for i, place in self.dirty.items():
            rebind(self.args[place], outs[i])
            outs[i] = self.args[place]
        outs = self._with_others(outs, self.others)
        return outs[0] if self.has_single_output else tuple(outs)

    @staticmethod
    def _with_others(arrays: Sequence[Any], others: dict[int, Any]) -> list[Any]:
        """One value for each output, arrays and others at their places."""
        remaining = iter(arrays)
        return [others[i] if i in others else next(remaining) for i in range(len(arrays) + len(others))]


class _ContextAttribute:
    """An attribute of a context with values of the run: its residuals, and None for them in `parts`."""

    def __init__(self, name: str, value: Any, run: PrimalRun) -> None:
        self.name = name
        leaves, self.spec = tree.flatten(value)
        is_saved = name in ("_saved", "_forward")
        is_residual = [is_saved or (type(leaf) is Tracer and _is_used_up(leaf, run)) for leaf in leaves]
        self.residuals = [leaf for leaf, residual in zip(leaves, is_residual, strict=True) if residual]
        self.parts = [None if residual else (leaf,) for leaf, residual in zip(leaves, is_residual, strict=True)]
        values = iter([boxed(run.value(leaf)) for leaf in without_tensors(self.residuals, run)])
        self.placeholder = () if is_saved else self.rebuilt(values)

    def rebuilt(self, tensors: Iterator[Any]) -> Any:
        """The value of the attribute with the next of these tensors."""
        return tree.unflatten(self.spec, [next(tensors) if part is None else part[0] for part in self.parts])


def _is_used_up(value: Tracer, run: PrimalRun) -> bool:
    """Whether a traced value is useless in backward: it belongs to the run, or to a level below it."""
    (value,) = without_tensors([value], run)
    return run.owns(value) or (type(unboxed(value)) is Tracer and type(value._interpreter) is not Imperative)


class _FunctionPullback:
    """The pullback of a call; its context may ask for None instead of zeros."""

    def __init__(self, call: _FunctionCall) -> None:
        self.call = call
        self.cls = call.cls

    @property
    def takes_missing(self) -> bool:
        """Whether the pullback takes None for zero cotangents."""
        return not self.call.ctx._materializes

    def needing(self, needed: Sequence[bool]) -> Any:
        """The pullback for these arguments."""
        return functools.partial(self.call.backward, needed)


class _FunctionPush:
    """The tangent rule of a call."""

    def __init__(self, call: _FunctionCall) -> None:
        self.call = call

    def needing(self, needed: Sequence[bool]) -> Any:
        """The tangent rule for tangents of these arguments."""
        return functools.partial(self.call.push, needed)


def _levels(values: Sequence[Any]) -> Iterator[Any]:
    """The interpreters of some traced values and of the values inside them."""
    for value in values:
        while type(value) is Tracer:
            yield value._interpreter
            value = value._value


def _is_differentiated_first(values: Sequence[Any]) -> bool:
    """Whether the topmost level of the values differentiates, above any vmap."""
    levels = [value._interpreter for value in values if type(value) is Tracer]
    return not isinstance(max(levels, key=lambda level: level.level), (Vmap, Stage))


def _randomness(values: Sequence[Any]) -> str:
    """The randomness of the innermost vmap of some values."""
    maps = [level for level in _levels(values) if isinstance(level, Vmap) and level.randomness is not None]
    return max(maps, key=lambda level: level.level).randomness or "error" if maps else "error"


def _is_output(value: Any) -> bool:
    return _is_array(value) or isinstance(value, (int, float, complex))


def _is_array(value: Any) -> bool:
    return type(value) is Tracer or isinstance(value, (np.ndarray, np.generic)) or is_device_array(value)


def as_user_tensors(values: Sequence[Array]) -> list[Any]:
    """Values of the engine as tensors that user code may modify in place."""
    tensors: list[Any] = []
    for value in values:
        tensor = snapshot(value) if type(value) is Tracer else Tracer(EVALUATE, value, None)
        state_of(tensor)  # makes tensors without axes writable in place, too
        tensors.append(tensor)
    return tensors


@without_engine_frames
def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` without a second derivative: its result raises NotDifferentiableError.

    Its code runs untraced, so it may use other libraries than NumPy.

    Example:
        >>> import func
        >>> class Square(func.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     @func.autograd.once_differentiable
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> func.grad(Square.apply)(3.0)
        np.float64(6.0)
    """

    @without_engine_frames
    @functools.wraps(function)
    def once(ctx: Any, *grad_outputs: Any) -> Any:
        inputs = [*grad_outputs, *ctx.saved_tensors]
        with no_grad():
            saved = ctx._saved
            ctx._saved = tuple([stop_gradient(x) for x in saved])
            returned = function(ctx, *[None if ct is None else stop_gradient(ct) for ct in grad_outputs])
            ctx._saved = saved
        if not needs_rule(inputs):
            return returned
        grads = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        arrays = [operand(without_mask(x)) for x in inputs if x is not None]
        known = [unboxed(operand(without_mask(gradient))) for gradient in grads if gradient is not None]
        outs = iter(custom_rules.known_outputs(known, arrays, _raise_twice))
        grads = [None if gradient is None else with_mask_of(gradient, next(outs)) for gradient in grads]
        return tuple(grads) if isinstance(returned, (tuple, list)) else grads[0]

    return once


def _raise_twice(residuals: Any, cts: Any) -> Any:
    raise NotDifferentiableError(_TWICE)


_TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"
_raise_twice.reason = _TWICE  # type: ignore[attr-defined]
