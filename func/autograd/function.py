"""Function: operations with a derivative of the user's own, as classes."""

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
    """What `forward` hands on to `backward`. Attributes may be set freely; tensors go through `save_for_backward`."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        """For each argument of `apply` whether its gradient is wanted."""
        self._saved: tuple[Any, ...] = ()
        self._forward: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materializes = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for `backward`, where they are `saved_tensors`."""
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for `jvp`, where they are `saved_tensors`."""
        self._forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were kept."""
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare outputs that carry no gradient."""
        self._constant = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare arguments that `forward` has written in place and returns."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` and `jvp` are given zeros (the default) or None for gradients that are zero."""
        self._materializes = bool(value)


class VmapInfo(NamedTuple):
    """What the `vmap` rule is told: how many lanes, and the randomness of the vmap."""

    batch_size: int
    randomness: str


class Function:
    """An operation with a gradient of its own: subclass it, and call it by `apply`.

    Two styles: `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`. `backward(ctx,
    *grad_outputs)` gives one gradient (or None) for each argument of `apply`. Optional: `jvp(ctx, *grad_inputs)`
    (without it forward mode is derived by transposing `backward`), and `vmap(info, in_dims, *args) -> (out, out_dims)`
    (without it `forward` and `backward` are mapped like any code, which `generate_vmap_rule = True` asks for too). Both
    styles are legal under every transform, to any order.

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
        """Compute the output; to be overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what `backward` needs, where `forward` does not take a ctx; to be overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the arguments; to be overridden."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp: Any = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs; may be overridden."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use forward AD.")

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """The operation on a batch; may be overridden."""
        raise NotImplementedError("vmap is not implemented.")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the operation. Arrays and tensors among the arguments are differentiated by `backward`."""
        call = _Call(cls, args)
        arrays = [args[place] for place in call.places]
        if not any([type(array) is Tracer for array in arrays]):
            return call.plain_output()
        mapping = {"fun": call.bound, "rule": call.mapped}
        outs = custom_rules.custom_vmap_call(*arrays, **mapping) if call.maps else call.bound(*arrays)
        return call.finished(list(outs))


class _Call:
    """One call of a Function: how its parts work on flat lists of arrays."""

    def __init__(self, cls: type[Function], args: tuple[Any, ...]) -> None:
        self.cls = cls
        self.args = args
        self.places = [i for i, arg in enumerate(args) if _is_array(arg)]
        self.needs = tuple([_is_array(arg) and requires_grad(arg) if type(arg) is Tracer else False for arg in args])
        self.has_context = cls.setup_context is not Function.setup_context
        self.maps = cls.vmap is not Function.vmap
        if self.maps and cls.generate_vmap_rule:
            raise CustomRuleError(
                f"{cls.__name__} has both a vmap rule and generate_vmap_rule=True: only one of them can hold"
            )
        self.single = True
        self.constant: list[int] = []
        self.dirty: dict[int, int] = {}
        self.takes_missing = False
        self.runs: dict[int, tuple[dict[str, Any], list[bool], list[bool]]] = {}

    def full(self, leaves: Sequence[Any]) -> list[Any]:
        """The arguments of `apply` with these arrays in their places."""
        full = list(self.args)
        for place, leaf in zip(self.places, leaves, strict=True):
            plain = type(self.args[place]) is not Tracer and leaf.interpreter is EVALUATE
            full[place] = namespace_of((leaf.value,)).array(leaf.value) if plain else leaf
        return full

    def run(self, inputs: list[Any]) -> tuple[FunctionCtx, Any]:
        """forward in either style."""
        ctx = FunctionCtx(self.needs)
        with no_grad():
            if self.has_context:
                out = self.cls.forward(*inputs)
                self.cls.setup_context(ctx, tuple(inputs), out)
            else:
                out = self.cls.forward(ctx, *inputs)
        return ctx, out

    def plain_output(self) -> Any:
        """The output where no argument is traced."""
        return self.run(list(self.args))[1]

    def _outputs(self, ctx: FunctionCtx, inputs: list[Any], out: Any) -> list[Any]:
        self.single = not isinstance(out, tuple)
        outs = [out] if self.single else list(out)
        self.constant = [i for i, one in enumerate(outs) if any([one is marked for marked in ctx._constant])]
        self.dirty = {}
        for i, one in enumerate(outs):
            for j, given in enumerate(inputs):
                if one is given and any([one is marked for marked in ctx._dirty]):
                    self.dirty[i] = j
        for i, one in enumerate(outs):
            if not _is_array(one) and not isinstance(one, (int, float, complex, np.generic)):
                raise CustomRuleError(
                    f"{self.cls.__name__}.forward must return tensors, but output {i} is {type(one).__name__}"
                )
        return [unboxed(operand(one)) for one in outs]

    def __call__(self, *leaves: Array) -> list[Array]:
        inputs = self.full(lent_tensors(leaves))
        ctx, out = self.run(inputs)
        return self._outputs(ctx, inputs, out)

    def forward(self, *leaves: Array) -> tuple[list[Array], list[Array]]:
        """Outputs, and the tensors kept with a number that finds the rest of the ctx again."""
        inputs = self.full(lent_tensors(leaves))
        ctx, out = self.run(inputs)
        outs = self._outputs(ctx, inputs, out)
        saved, forward = [list(kept) for kept in (ctx._saved, ctx._forward)]
        attributes = {key: value for key, value in vars(ctx).items() if key not in ("_saved", "_forward")}
        attributes["_constant"] = attributes["_dirty"] = ()
        token = next(_tokens)
        self.takes_missing = not ctx._materializes
        self.runs[token] = (attributes, [x is not None for x in saved], [x is not None for x in forward])
        kept = [unboxed(operand(x)) for x in (*saved, *forward) if x is not None]
        return outs, [np.asarray(token), *kept]

    def context(self, residuals: Sequence[Array], forward: bool) -> FunctionCtx:
        """The ctx of a run, with the tensors kept."""
        token = int(np.asarray(concrete(residuals[0])).reshape(-1)[0])
        attributes, saved, pushed = self.runs[token]
        ctx = FunctionCtx(self.needs)
        vars(ctx).update(attributes)
        rest = iter(lent_tensors(residuals[1:]))
        ctx._saved = tuple([next(rest) if there else None for there in saved])
        ctx._forward = tuple([next(rest) if there else None for there in pushed])
        if forward and pushed:
            ctx._saved = ctx._forward
        return ctx

    def backward(self, residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        """backward, for the arrays among the arguments."""
        ctx = self.context(residuals, False)
        given = [None if ct is None else lent_tensors([ct])[0] for ct in cts]
        given = [None if i in self.constant and not ctx._materializes else ct for i, ct in enumerate(given)]
        rule = self.cls.backward if self.cls.backward is not Function.backward else self.cls.vjp
        with enable_grad():
            grown = rule(ctx, *given)
        grads = list(grown) if isinstance(grown, (tuple, list)) else [grown]
        while len(grads) > len(self.args) and grads[-1] is None:
            grads.pop()
        if len(grads) != len(self.args):
            raise CustomRuleError(
                f"function {self.cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(self.args)}, got {len(grads)})"
            )
        for i, one in enumerate(grads):
            if one is not None and i not in self.places:
                raise CustomRuleError(
                    f"function {self.cls.__name__}Backward returned a gradient different than None at position {i}, "
                    "but the corresponding forward input was not a tensor"
                )
        return [None if grads[i] is None else unboxed(operand(grads[i])) for i in self.places]

    def push(self, residuals: Sequence[Array], tangents: Sequence[Any]) -> list[Any]:
        """jvp, for all outputs."""
        ctx = self.context(residuals, True)
        full: list[Any] = [None] * len(self.args)
        for place, tangent in zip(self.places, tangents, strict=True):
            full[place] = None if tangent is None else lent_tensors([tangent])[0]
        out = self.cls.jvp(ctx, *full)
        outs = list(out) if isinstance(out, tuple) else [out]
        return [None if one is None else unboxed(operand(one)) for one in outs]

    def bound(self, *leaves: Array) -> Any:
        """The call with its derivative."""
        options = {"push": self.push} if self.cls.jvp is not Function.jvp else {}
        return custom_rules.custom_vjp_call(*leaves, fun=self, fwd=self.forward, bwd=_Backward(self), **options)

    def mapped(self, size: int, which: Sequence[bool], args: Sequence[Array]) -> tuple[list[Array], list[bool]]:
        """The vmap rule of the class, with batch axes leading."""
        in_dims: list[Any] = [None] * len(self.args)
        for place, is_mapped in zip(self.places, which, strict=True):
            in_dims[place] = 0 if is_mapped else None
        out, dims = self.cls.vmap(VmapInfo(size, "error"), tuple(in_dims), *self.full(lent_tensors(args)))
        self.single = not isinstance(out, tuple)
        outs = [out] if self.single else list(out)
        axes = [dims] * len(outs) if self.single or not isinstance(dims, (tuple, list)) else list(dims)
        flags = [axis is not None for axis in axes]
        moved = [
            unboxed(operand(one)) if axis is None else move_axis(unboxed(operand(one)), axis % len(shape_of(one)), 0)
            for one, axis in zip(outs, axes, strict=True)
        ]
        return moved, flags

    def finished(self, outs: list[Array]) -> Any:
        """The outputs as `apply` returns them."""
        outs = [boxed(stop_gradient(out)) if i in self.constant else out for i, out in enumerate(outs)]
        for i, place in self.dirty.items():
            rebind(self.args[place], outs[i])
            outs[i] = self.args[place]
        return outs[0] if self.single else tuple(outs)


class _Backward:
    """The backward of a call; its ctx may ask for None in the place of zeros."""

    def __init__(self, call: _Call) -> None:
        self.call = call

    @property
    def takes_missing(self) -> bool:
        """Whether gradients that are zero are handed on as None."""
        return self.call.takes_missing

    def __call__(self, residuals: Sequence[Array], cts: Sequence[Any]) -> list[Any]:
        return self.call.backward(residuals, cts)


def _is_array(value: Any) -> bool:
    return type(value) is Tracer or isinstance(value, np.ndarray) or is_device_array(value)


def lent_tensors(values: Sequence[Array]) -> list[Any]:
    """The engine's values as tensors that a user's code may write without harm."""
    lent: list[Any] = []
    for value in values:
        box = snapshot(value) if type(value) is Tracer else Tracer(EVALUATE, value, None)
        state_of(box)  # a tensor without axes is written in place, too
        lent.append(box)
    return lent


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` whose result cannot be differentiated again: trying to raises NotDifferentiableError.

    Its code may then leave NumPy, as nothing in it is traced.
    """

    @functools.wraps(function)
    def once(ctx: Any, *grad_outputs: Any) -> Any:
        given = [*grad_outputs, *ctx.saved_tensors]
        with no_grad():
            kept = ctx._saved
            ctx._saved = tuple([stop_gradient(x) for x in kept])
            grown = function(ctx, *[None if ct is None else stop_gradient(ct) for ct in grad_outputs])
            ctx._saved = kept
        if not any([_is_differentiated(x) for x in given]):
            return grown
        grads = list(grown) if isinstance(grown, (tuple, list)) else [grown]
        arrays = [operand(x) for x in given if x is not None]
        results = [None if one is None else unboxed(operand(one)) for one in grads]
        known = [one for one in results if one is not None]
        outs = iter(
            custom_rules.custom_vjp_call(
                *arrays, fun=lambda *args: known, fwd=lambda *args: (known, []), bwd=_twice, push=_twice
            )
        )
        full = [None if one is None else next(outs) for one in results]
        return tuple(full) if isinstance(grown, (tuple, list)) else full[0]

    return once


def _is_differentiated(value: Any) -> bool:
    """Whether some level, forward mode's included, differentiates a value."""
    while type(value) is Tracer:
        if isinstance(value.interpreter, (Grad, Jvp)):
            return True
        value = value.value
    return False


def _twice(residuals: Any, cts: Any) -> Any:
    raise NotDifferentiableError("trying to differentiate twice a function that was marked with @once_differentiable")
