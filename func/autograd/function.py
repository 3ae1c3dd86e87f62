"""`Function`, the base class of operations with a user-defined derivative."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from func.autograd.modes import enable_grad, no_grad
from func.autograd.tensor import requires_grad
from func.backends import is_device_array, namespace_of
from func.interpreters.calls import custom_rules
from func.interpreters.core import EVALUATE, Array, Tracer, concrete, operand, shape_of, snapshot, unboxed
from func.interpreters.core.errors import CustomRuleError, NotDifferentiableError
from func.interpreters.grad import Grad
from func.interpreters.imperative.interpreter import boxed, state_of
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.shapes import move_axis
from func.numpy.inplace import rebind
from func.transforms.custom import stop_gradient

_tokens = itertools.count(1)


class FunctionCtx:
    """The context that `forward` passes to `backward`. It takes any attributes, and tensors by `save_for_backward`."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        """For each argument of `apply`, whether its gradient is needed."""
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
    def apply(cls, *args: Any) -> Any:
        """Call the operation. Arrays and tensors among the arguments are differentiated by `backward`."""
        call = _FunctionCall(cls, args)
        arrays = [args[place] for place in call.places]
        if not any([type(array) is Tracer for array in arrays]):
            return call.untraced_output()
        mapping = {"fun": call.call_with_derivative, "rule": call.map_batch}
        outs = (
            custom_rules.custom_vmap_call(*arrays, **mapping)
            if call.has_vmap_rule
            else call.call_with_derivative(*arrays)
        )
        return call.result(list(outs))


class _FunctionCall:
    """One call of a Function, whose methods take and return flat lists of arrays."""

    def __init__(self, cls: type[Function], args: tuple[Any, ...]) -> None:
        self.cls = cls
        self.args = args
        self.places = [i for i, arg in enumerate(args) if _is_array(arg)]
        self.needs_input_grad = tuple(
            [_is_array(arg) and requires_grad(arg) if type(arg) is Tracer else False for arg in args]
        )
        self.has_context = cls.setup_context is not Function.setup_context
        self.has_vmap_rule = cls.vmap is not Function.vmap
        if self.has_vmap_rule and cls.generate_vmap_rule:
            raise CustomRuleError(
                f"{cls.__name__} has both a vmap rule and generate_vmap_rule=True: only one of them can hold"
            )
        self.has_single_output = True
        self.constant: list[int] = []
        self.dirty: dict[int, int] = {}
        self.takes_missing = False
        self.runs: dict[int, tuple[dict[str, Any], list[bool], list[bool]]] = {}

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of `apply`, with these arrays for the arrays among them."""
        arguments = list(self.args)
        for place, leaf in zip(self.places, leaves, strict=True):
            is_plain = type(self.args[place]) is not Tracer and leaf._interpreter is EVALUATE
            arguments[place] = namespace_of((leaf._value,)).array(leaf._value) if is_plain else leaf
        return arguments

    def run(self, inputs: list[Any]) -> tuple[FunctionCtx, Any]:
        """Run `forward` in either style: its context and output."""
        ctx = FunctionCtx(self.needs_input_grad)
        with no_grad():
            if self.has_context:
                out = self.cls.forward(*inputs)
                self.cls.setup_context(ctx, tuple(inputs), out)
            else:
                out = self.cls.forward(ctx, *inputs)
        return ctx, out

    def untraced_output(self) -> Any:
        """The output if no argument is traced."""
        return self.run(list(self.args))[1]

    def _outputs(self, ctx: FunctionCtx, inputs: list[Any], out: Any) -> list[Any]:
        """The arrays that a run returned; notes which of them are constant or modified inputs."""
        self.has_single_output = not isinstance(out, tuple)
        outs = [out] if self.has_single_output else list(out)
        self.constant = [i for i, output in enumerate(outs) if any([output is marked for marked in ctx._constant])]
        self.dirty = {
            i: j
            for i, output in enumerate(outs)
            if any([output is marked for marked in ctx._dirty])
            for j, value in enumerate(inputs)
            if output is value
        }
        for i, output in enumerate(outs):
            if not _is_array(output) and not isinstance(output, (int, float, complex, np.generic)):
                raise CustomRuleError(
                    f"{self.cls.__name__}.forward must return tensors, but output {i} is {type(output).__name__}"
                )
        return [unboxed(operand(output)) for output in outs]

    def __call__(self, *leaves: Array) -> list[Array]:
        return self._run_on_arrays(leaves)[1]

    def _run_on_arrays(self, leaves: Sequence[Array]) -> tuple[FunctionCtx, list[Array]]:
        inputs = self.arguments(as_user_tensors(leaves))
        ctx, out = self.run(inputs)
        return ctx, self._outputs(ctx, inputs, out)

    def forward(self, *leaves: Array) -> tuple[list[Array], list[Array]]:
        """Outputs and residuals: a token that identifies the run, and the saved tensors."""
        ctx, outs = self._run_on_arrays(leaves)
        saved, forward = ctx._saved, ctx._forward
        attributes = {key: value for key, value in vars(ctx).items() if key not in ("_saved", "_forward")}
        attributes["_constant"] = attributes["_dirty"] = ()
        token = next(_tokens)
        self.takes_missing = not ctx._materializes
        self.runs[token] = (attributes, [x is not None for x in saved], [x is not None for x in forward])
        tensors = [unboxed(operand(x)) for x in (*saved, *forward) if x is not None]
        return outs, [np.asarray(token), *tensors]

    def context(self, residuals: Sequence[Array], forward: bool) -> FunctionCtx:
        """The context of a run, with its saved tensors."""
        token = int(np.asarray(concrete(residuals[0])).reshape(-1)[0])
        attributes, is_saved, is_saved_forward = self.runs[token]
        ctx = FunctionCtx(self.needs_input_grad)
        vars(ctx).update(attributes)
        tensors = iter(as_user_tensors(residuals[1:]))
        ctx._saved = tuple([next(tensors) if present else None for present in is_saved])
        ctx._forward = tuple([next(tensors) if present else None for present in is_saved_forward])
        if forward and is_saved_forward:
            ctx._saved = ctx._forward
        return ctx

    def backward(self, residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the arrays among the arguments, by the `backward` of the class."""
        ctx = self.context(residuals, False)
        grad_outputs = [
            None if ct is None or (i in self.constant and not ctx._materializes) else as_user_tensors([ct])[0]
            for i, ct in enumerate(cts)
        ]
        rule = self.cls.backward if self.cls.backward is not Function.backward else self.cls.vjp
        with enable_grad():
            returned = rule(ctx, *grad_outputs)
        grads = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        while len(grads) > len(self.args) and grads[-1] is None:
            grads.pop()
        if len(grads) != len(self.args):
            raise CustomRuleError(
                f"function {self.cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(self.args)}, got {len(grads)})"
            )
        for i, gradient in enumerate(grads):
            if gradient is not None and i not in self.places:
                raise CustomRuleError(
                    f"function {self.cls.__name__}Backward returned a gradient different than None at position {i}, "
                    "but the corresponding forward input was not a tensor"
                )
        return [None if grads[i] is None else unboxed(operand(grads[i])) for i in self.places]

    def push(self, residuals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of all outputs, by the `jvp` of the class."""
        ctx = self.context(residuals, True)
        arguments: list[Any] = [None] * len(self.args)
        for place, tangent in zip(self.places, tangents, strict=True):
            arguments[place] = None if tangent is None else as_user_tensors([tangent])[0]
        out = self.cls.jvp(ctx, *arguments)
        outs = list(out) if isinstance(out, tuple) else [out]
        return [None if tangent is None else unboxed(operand(tangent)) for tangent in outs]

    def call_with_derivative(self, *leaves: Array) -> Any:
        """The operation as a custom rule, with its derivative."""
        options = {"push": self.push} if self.cls.jvp is not Function.jvp else {}
        return custom_rules.custom_vjp_call(*leaves, fun=self, fwd=self.forward, bwd=_FunctionPullback(self), **options)

    def map_batch(self, size: int, mapped: Sequence[bool], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        """The vmap rule of the class, with batch axes leading."""
        in_dims: list[Any] = [None] * len(self.args)
        for place, is_mapped in zip(self.places, mapped, strict=True):
            in_dims[place] = 0 if is_mapped else None
        out, dims = self.cls.vmap(VmapInfo(size, "error"), tuple(in_dims), *self.arguments(as_user_tensors(args)))
        self.has_single_output = not isinstance(out, tuple)
        outs = [out] if self.has_single_output else list(out)
        axes = [dims] * len(outs) if self.has_single_output or not isinstance(dims, (tuple, list)) else list(dims)
        arrays = [unboxed(operand(output)) for output in outs]
        batched = [
            array if axis is None else move_axis(array, axis % len(shape_of(array)), 0)
            for array, axis in zip(arrays, axes, strict=True)
        ]
        return batched, [axis is not None for axis in axes]

    def result(self, outs: list[Array]) -> Any:
        """The value that `apply` returns."""
        outs = [boxed(stop_gradient(out)) if i in self.constant else out for i, out in enumerate(outs)]
        for i, place in self.dirty.items():
            rebind(self.args[place], outs[i])
            outs[i] = self.args[place]
        return outs[0] if self.has_single_output else tuple(outs)


class _FunctionPullback:
    """The pullback of a call; its context may ask for None instead of zeros."""

    def __init__(self, call: _FunctionCall) -> None:
        self.call = call

    @property
    def takes_missing(self) -> bool:
        """Whether the pullback takes None for cotangents that are zero."""
        return self.call.takes_missing

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        return self.call.backward(residuals, cts)


def _is_array(value: Any) -> bool:
    return type(value) is Tracer or isinstance(value, np.ndarray) or is_device_array(value)


def as_user_tensors(values: Sequence[Array]) -> list[Any]:
    """Values of the engine as tensors that user code may modify in place."""
    tensors: list[Any] = []
    for value in values:
        tensor = snapshot(value) if type(value) is Tracer else Tracer(EVALUATE, value, None)
        state_of(tensor)  # makes tensors without axes writable in place, too
        tensors.append(tensor)
    return tensors


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose result cannot be differentiated again, which raises NotDifferentiableError.

    Nothing in its code is traced, so it may use other libraries than NumPy.
    """

    @functools.wraps(function)
    def once(ctx: Any, *grad_outputs: Any) -> Any:
        inputs = [*grad_outputs, *ctx.saved_tensors]
        with no_grad():
            saved = ctx._saved
            ctx._saved = tuple([stop_gradient(x) for x in saved])
            returned = function(ctx, *[None if ct is None else stop_gradient(ct) for ct in grad_outputs])
            ctx._saved = saved
        if not any([_is_differentiated(x) for x in inputs]):
            return returned
        grads = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        arrays = [operand(x) for x in inputs if x is not None]
        known = [unboxed(operand(gradient)) for gradient in grads if gradient is not None]
        outs = iter(
            custom_rules.custom_vjp_call(
                *arrays, fun=lambda *args: known, fwd=lambda *args: (known, []), bwd=_refuse, push=_refuse
            )
        )
        grads = [None if gradient is None else next(outs) for gradient in grads]
        return tuple(grads) if isinstance(returned, (tuple, list)) else grads[0]

    return once


def _is_differentiated(value: Any) -> bool:
    """Whether a value is traced for a derivative in reverse or forward mode."""
    while type(value) is Tracer:
        if isinstance(value._interpreter, (Grad, Jvp)):
            return True
        value = value._value
    return False


def _refuse(residuals: Any, cts: Any) -> Any:
    raise NotDifferentiableError("trying to differentiate twice a function that was marked with @once_differentiable")
