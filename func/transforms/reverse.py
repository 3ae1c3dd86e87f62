"""Reverse-mode transforms: grad, value_and_grad, grad_and_value, vjp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from func import tree
from func.interpreters.compiled_backward import pull_back
from func.interpreters.core import ZERO, Tracer, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import full_like, reduce_sum
from func.numpy.sharing import are_separate
from func.transforms.arguments import CallArguments, Derivative, FlatCall, Selection, differentiable, place_arguments
from func.transforms.boundary import (
    Intercepts,
    as_input_type,
    check_callable,
    defensive_copies,
    handed_out,
    name_of,
    own,
    own_tree,
    scalar_output,
    split_aux,
    unbox,
    with_interception,
)
from func.transforms.transformed import keeps_parameters, transform, value_first, value_last


@keeps_parameters
@transform
def grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The gradient of a function with one real scalar output, or an array of one element.

    The result has the tree, shapes and dtypes of the differentiated arguments: one gradient for an int `argnums`,
    a tuple for a tuple. For complex arguments it is the direction of steepest ascent, dL/dRe z + i dL/dIm z.

    Args:
        f: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (gradient, aux).
        argnames: Keyword argument or arguments to differentiate, instead of the default argnums=0. A string gives
            one gradient, a tuple a dict by name. With argnums given as a tuple too: (gradients, dict).
        holomorphic: The function is complex-differentiable; gives f'(z) for complex input and output.
        allow_int: Let an integer argument be differentiated: its gradient is zero. Integer leaves inside a tree of
            parameters always pass through, with gradient None (zeros with allow_int).
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        ScalarOutputError: The output is not one real scalar (a TypeError).
        DifferentiatedInputError: The argument is not floating point (a TypeError).
        ArgumentError: argnums or argnames out of range or repeated (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.grad(lambda x: np.sum(np.sin(x) ** 2))(np.array([0.0, 1.0]))
        array([0.        , 0.90929743])
    """
    return _Gradients("grad", **locals())


@value_first
@transform
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """(value, gradient) from one evaluation; with has_aux ((value, aux), gradient). Arguments as in `grad`.

    Example:
        >>> import func
        >>> func.value_and_grad(lambda x: x ** 3)(2.0)
        (8.0, np.float64(12.0))
    """
    return _Gradients("value_and_grad", **locals())


@value_last
@transform
def grad_and_value(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """(gradient, value) from one evaluation; with has_aux (gradient, (value, aux)). Arguments as in `grad`.

    Example:
        >>> import func
        >>> func.grad_and_value(lambda x: x ** 3)(2.0)
        (np.float64(12.0), 8.0)
    """
    return _Gradients("grad_and_value", **locals())


@keeps_parameters
@transform
def elementwise_grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The derivative of an elementwise function at each element, by one backward pass.

    It is the gradient of the sum of the outputs, which requires that no output depends on another element. For other
    functions use `jacobian`.

    Args:
        f: A function with an output of the shape (...) of each differentiated argument.
        argnums: Position or positions to differentiate, as in `grad`.
        argnames: Keyword argument or arguments to differentiate, as in `grad`.
        holomorphic: The function is holomorphic: the complex derivative of a complex function, as in `grad`.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        ArgumentError: The output has another shape than a differentiated argument (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.elementwise_grad(np.square)(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[2., 4.],
               [6., 8.]])
    """
    selection = Selection(f, "elementwise_grad", argnums, argnames)

    @functools.wraps(f)
    def total(*args: Any, **kwargs: Any) -> Any:
        try:
            out = f(*args, **kwargs)
        except ValueError as error:
            if "truth value of an array" in str(error):
                error.add_note("For a function of one number write func.vmap(func.grad(f))(x).")
            raise
        for place in selection.places(args, kwargs):
            argument = args[place] if isinstance(place, int) else kwargs[place]
            if tree.structure(argument).num_nodes > 1 or tree.structure(out).num_nodes > 1:
                raise ArgumentError("func.elementwise_grad takes functions of arrays with one array as output")
            if shape_of(out) != shape_of(argument):
                raise ArgumentError(
                    f"func.elementwise_grad: the output of {name_of(f)} has shape {shape_of(out)}, the argument "
                    f"{shape_of(argument)}; broadcast the argument first, or take func.jacobian"
                )
        return reduce_sum(out, axes=tuple(range(len(shape_of(out)))))

    return _Gradients("elementwise_grad", total, argnums=argnums, argnames=argnames, holomorphic=holomorphic)


def gradient_for(
    transform: str, f: Callable[..., Any], argnums: Any, argnames: Any, holomorphic: bool = False
) -> Callable[..., Any]:
    """`grad(f)` as a part of another transform, which its errors name."""
    gradients_of = _Gradients(transform, f, argnums=argnums, argnames=argnames, holomorphic=holomorphic)

    @functools.wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return gradients_of(args, kwargs)

    return gradient


WITH_VALUE = ("value_and_grad", "grad_and_value")


class _Gradients(Derivative):
    """The gradients of a function with respect to selected arguments, for the three public transforms."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of one call of the public transform, from the arranged gradients, value and aux."""
        transform = self.transform
        aux = None
        interpreter = grad_interpreter(transform)
        with TransformScope(interpreter), running(interpreter):
            position = self.selection.position
            arguments: CallArguments | None = None
            if position is not None and not kwargs and self._is_single_array(args, position):
                values = [args[position]]
                tracer = interpreter.lift(values[0])
                interpreter.called = self.function, [id(tracer)], values
                nodes = [tracer._attached]
                out = self.function(*args[:position], tracer, *args[position + 1 :])
                del tracer
            else:
                arguments = self._arguments(args, kwargs)
                values = arguments.values()
                tracers = [interpreter.lift(leaf) for leaf in values]
                place_arguments(interpreter, self.function, arguments, tracers, values)
                nodes = [tracer._attached for tracer in tracers]
                traced_args, traced_kwargs = arguments.bound(tracers)
                out = self.function(*traced_args, **traced_kwargs)
                del traced_args, traced_kwargs, tracers
            if self.has_aux:
                out, aux = split_aux(out, interpreter, transform, self.function)
            is_traced = type(out) is Tracer and out._interpreter is interpreter
            if not is_traced or self.holomorphic or type(out._value) not in _REAL_SCALARS:
                out = scalar_output(out, transform, self.function, self.holomorphic, keeps_shape=True)
                is_traced = type(out) is Tracer and out._interpreter is interpreter
            value, seeds = out, []
            if is_traced:
                value = out._value
                seeds.append((out._attached, full_like(value, 1, shape_of(value))))
            del out
            gradients = self._arranged(pull_back(seeds, nodes, (value,)), values, arguments)
        if transform not in WITH_VALUE:
            return (gradients, own_tree(aux)) if self.has_aux else gradients
        value = unbox(own_tree(value))
        outputs = (value, own_tree(aux)) if self.has_aux else value
        return (outputs, gradients) if transform == "value_and_grad" else (gradients, outputs)

    def _is_single_array(self, args: tuple[Any, ...], position: int) -> bool:
        """Whether the argument at a position is an array without anything to note beyond its tracer."""
        leaf = args[position] if position < len(args) else None
        return (
            type(leaf) is ndarray
            and leaf.dtype.kind in self.kinds
            and leaf.shape != ()
            and leaf.flags.c_contiguous
            and (len(args) == 1 or are_separate(args))
        )

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallArguments:
        """The arguments of a call in general."""
        places = self.selection.places(args, kwargs)
        options = self.transform, self.kinds, self.allow_int
        return differentiable(args, kwargs, places, *options, function=self.function)

    def _arranged(self, cts: list[Any], values: list[Any], arguments: CallArguments | None) -> Any:
        """Cotangents as gradients that the caller owns, in the structure of argnums and argnames."""
        for i, leaf in enumerate(values):
            if cts[i] is ZERO:
                cts[i] = full_like(leaf, 0)
            elif self.holomorphic:
                cts[i] = conjugate(cts[i])
            cts[i] = as_input_type(cts[i], leaf)
        if arguments is None:
            return own(cts)[0]
        zeros = functools.partial(full_like, fill=0) if self.allow_int else None
        return self.selection.arranged(arguments.arranged(own(cts), zeros))


_REAL_SCALARS = frozenset({np.float64, np.float32})


@without_engine_frames
def vjp(
    f: Callable[..., Any],
    /,
    *primals: Any,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    has_aux: bool = False,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Evaluate a function and get its vector-Jacobian product: (out, vjp_fn), with has_aux (out, vjp_fn, aux).

    `vjp_fn(ct)` takes a cotangent with the tree, shapes and dtypes of the output and returns a tuple with one cotangent
    per primal. You can call it many times and pickle it. Later changes of the input arrays do not affect it. It prints
    its graph. For complex values it is the adjoint for <u, v> = Re(conj(u) v).

    Args:
        f: The function; plain NumPy code.
        primals: Its positional arguments. `f` takes other keywords.
        argnums: Position or positions to differentiate; None for all. `vjp_fn` then returns one cotangent for an int, a
            tuple for a tuple.
        argnames: Keyword argument or arguments to differentiate, as in `grad`. A string gives one cotangent, a tuple a
            dict; with a tuple of argnums: (cotangents, dict).
        has_aux: The function returns (output, aux).
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Example:
        >>> import numpy as np, func
        >>> out, vjp_fn = func.vjp(np.sin, np.array([0.0, 1.0]))
        >>> vjp_fn(np.array([1.0, 2.0]))
        (array([1.        , 1.08060461]),)
        >>> out, vjp_fn = func.vjp(lambda x, w: x * w, 3.0, w=2.0, argnames="w")
        >>> vjp_fn(1.0)
        np.float64(3.0)
    """
    from func.transforms.pullback import Pullback  # start-up time

    check_callable(f, "vjp")
    f = with_interception(f, intercept)
    if not primals and argnames is None:
        raise ArgumentError(f"func.vjp: {name_of(f)} needs at least one primal to differentiate")
    selection = Selection.at_call(f, "vjp", argnums, argnames)
    places = range(len(primals)) if selection is None else selection.places(primals, kwargs)
    form = None if selection is None else selection.form()
    interpreter = grad_interpreter("vjp")
    with TransformScope(interpreter), running(interpreter):
        arguments = differentiable(primals, kwargs, places, "vjp", function=f)
        inputs = arguments.values()
        arguments.leaves = defensive_copies(arguments.leaves)
        call = FlatCall(f, "vjp", arguments, has_aux)
        leaves = [interpreter.lift(leaf) for leaf in arguments.values()]
        place_arguments(interpreter, f, arguments, leaves, inputs)
        outs = call.outputs(interpreter, leaves)
        nodes = [out._attached if type(out) is Tracer and out._interpreter is interpreter else None for out in outs]
        values = [unbox(out._value if node is not None else out) for out, node in zip(outs, nodes, strict=True)]
    pullback = Pullback(name_of(f), arguments, [leaf._attached for leaf in leaves], nodes, values, call.out_spec, form)
    return call.result(tree.unflatten(call.out_spec, handed_out(values)), pullback)
