"""Reverse-mode transforms: grad, value_and_grad, grad_and_value, vjp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import ZERO, Tracer, dtype_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.grad import SERIAL, Grad, pull_back
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import full_like
from func.transforms.boundary import (
    check_callable,
    describe,
    differentiable_leaf,
    like_input,
    locate_names,
    name_of,
    normalize_argnums,
    output_leaf,
    own,
    own_tree,
    scalar_output,
    traced,
    unbox,
)
from func.transforms.pullback import Pullback


def grad(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a function with one real scalar output.

    The result has the tree, shapes and dtypes of the differentiated arguments: one gradient for an int `argnums`,
    a tuple for a tuple. For complex arguments it is the direction of steepest ascent, dL/dRe z + i dL/dIm z.

    Args:
        func: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (gradient, aux).
        argnames: Keyword argument or arguments to differentiate, instead of the default argnums=0. A string gives
            one gradient, a tuple a dict by name. With argnums given as a tuple too: (gradients, dict).
        holomorphic: The function is complex-differentiable; gives f'(z) for complex input and output.
        allow_int: Let an integer argument be differentiated: its gradient is zero. Integer leaves inside a tree
            of parameters always pass through, with None as gradient (zeros with allow_int).

    Raises:
        ScalarOutputError: The output is not one real scalar (a TypeError).
        DifferentiatedInputError: The argument is not floating point (a TypeError).
        ArgumentError: argnums or argnames out of range or repeated (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> func.grad(lambda x: np.sum(np.sin(x) ** 2))(np.array([0.0, 1.0]))
        array([0.        , 0.90929743])
    """
    check_callable(func, "grad")

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, grads, aux = _gradients(func, args, kwargs, argnums, argnames, has_aux, holomorphic, allow_int, "grad")
        return (grads, aux) if has_aux else grads

    return gradient


def value_and_grad(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """(value, gradient) from one evaluation; with has_aux ((value, aux), gradient). Arguments as in `grad`.

    Example:
        >>> import func
        >>> func.value_and_grad(lambda x: x ** 3)(2.0)
        (8.0, np.float64(12.0))
    """
    check_callable(func, "value_and_grad")

    @functools.wraps(func)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads, aux = _gradients(
            func, args, kwargs, argnums, argnames, has_aux, holomorphic, allow_int, "value_and_grad"
        )
        return ((value, aux), grads) if has_aux else (value, grads)

    return value_and_gradient


def grad_and_value(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """(gradient, value) from one evaluation; with has_aux (gradient, (value, aux)). Arguments as in `grad`.

    Example:
        >>> import func
        >>> func.grad_and_value(lambda x: x ** 3)(2.0)
        (np.float64(12.0), 8.0)
    """
    check_callable(func, "grad_and_value")

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        value, grads, aux = _gradients(
            func, args, kwargs, argnums, argnames, has_aux, holomorphic, allow_int, "grad_and_value"
        )
        return (grads, (value, aux)) if has_aux else (grads, value)

    return gradient_and_value


class _Lifted:
    """One differentiated argument: its traced tree, and how gradients of its leaves go back into that tree."""

    __slots__ = ("allow_int", "leaves", "nodes", "spec", "traced")

    def __init__(self, interpreter: Grad, value: Any, path: str, transform: str, allow_int: bool) -> None:
        self.allow_int = allow_int
        if type(value) is np.ndarray or type(value) is Tracer or type(value) is float:
            self.spec = None
            leaves, paths = [value], [path]
        else:
            leaves, self.spec = tree.flatten(value)
            paths = tree.path_names(value, path) if leaves and self.spec.num_nodes > 1 else [path]
        self.leaves: list[Any] = []
        self.nodes: list[Any] = []
        lifted = []
        top = self.spec is None or self.spec.num_nodes == 1
        for leaf, name in zip(leaves, paths, strict=True):
            active = differentiable_leaf(leaf, name, transform, top, allow_int)
            if active is None:
                self.leaves.append(leaf)
                self.nodes.append(None)
                lifted.append(leaf)
            else:
                tracer = interpreter.lift(active)
                self.leaves.append(active)
                self.nodes.append(tracer.attached)
                lifted.append(tracer)
        self.traced = lifted[0] if self.spec is None else tree.unflatten(self.spec, lifted)

    def gather(self, grads: dict[int, Any], holomorphic: bool) -> Any:
        """The gradients of this argument, in its tree."""
        out = []
        for leaf, node in zip(self.leaves, self.nodes, strict=True):
            if node is None:
                out.append(full_like(leaf, 0) if self.allow_int else None)
                continue
            grown = grads[node[SERIAL]]
            if grown is ZERO:
                grown = full_like(leaf, 0)
            elif holomorphic:
                grown = conjugate(grown)
            out.append(like_input(grown, leaf))
            del grown
        for node in self.nodes:
            if node is not None:
                grads.pop(node[SERIAL], None)
        own(out)
        return out[0] if self.spec is None else tree.unflatten(self.spec, out)


def _gradients(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Any,
    argnames: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    transform: str,
) -> tuple[Any, Any, Any]:
    """(value, gradients in the structure of argnums and argnames, aux)."""
    interpreter = Grad(transform)
    with traced(interpreter):
        names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
        only_names = argnames is not None and not isinstance(argnums, (tuple, list))
        places: list[int | str] = []
        if not only_names:
            if not args:
                raise ArgumentError(
                    f"func.{transform}: {name_of(function)} was called without positional arguments, so argnums="
                    f"{argnums!r} names none; differentiate keyword arguments with argnames"
                )
            places.extend(normalize_argnums(argnums, len(args), transform, function))
        split = len(places)
        if names or argnames is not None:
            places.extend(locate_names(function, args, kwargs, names, transform))
        call_args, call_kwargs = list(args), dict(kwargs)
        lifted = []
        for place in places:
            holder: Any = call_args if isinstance(place, int) else call_kwargs
            path = f"argument {place}" if isinstance(place, int) else place
            one = _Lifted(interpreter, holder[place], path, transform, allow_int)
            holder[place] = one.traced
            one.traced = None
            del holder
            lifted.append(one)
            if holomorphic and any([dtype_of(leaf).kind != "c" for leaf in one.leaves]):
                raise ArgumentError(f"func.{transform}(holomorphic=True) needs complex input, but {path} is not")
        out = function(*call_args, **call_kwargs)
        del call_args, call_kwargs
        aux = None
        if has_aux:
            out, aux = split_aux(out, transform, function)
            aux = tree.map(_strip(interpreter), aux)
        out = scalar_output(out, transform, function, holomorphic)
        seeds = []
        value = out
        if type(out) is Tracer and out.interpreter is interpreter:
            value = out.value
            seeds.append((out.attached, full_like(value, 1, ())))
        del out
        nodes = [node for one in lifted for node in one.nodes if node is not None]
        cts = pull_back(seeds, nodes)
        grads = dict(zip([node[SERIAL] for node in nodes], cts, strict=True))
        del cts, seeds, nodes
        pieces = [one.gather(grads, holomorphic) for one in lifted]
    if only_names:
        result = pieces[0] if isinstance(argnames, str) else dict(zip(names, pieces, strict=True))
    else:
        result = tuple(pieces[:split]) if isinstance(argnums, (tuple, list)) else pieces[0]
        if argnames is not None:
            result = (result, dict(zip(names, pieces[split:], strict=True)))
    return unbox(own_tree(value)), result, own_tree(aux) if has_aux else None


def split_aux(out: Any, transform: str, function: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(
            f"func.{transform}(has_aux=True) needs {name_of(function)} to return a pair (output, aux), "
            f"but it returned {describe(out)}"
        )
    return out


def _strip(interpreter: Grad) -> Callable[[Any], Any]:
    def strip(leaf: Any) -> Any:
        return leaf.value if type(leaf) is Tracer and leaf.interpreter is interpreter else leaf

    return strip


# --- vjp --------------------------------------------------------------------------------------------------------


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Evaluate a function and get its vector-Jacobian product: (out, vjp_fn), with has_aux (out, vjp_fn, aux).

    `vjp_fn(ct)` takes a cotangent with the tree, shapes and dtypes of the output and returns a tuple with one
    cotangent per primal. It can be called many times, is not affected when the input arrays change later, pickles,
    and prints what it holds. For complex values it is the adjoint for <u, v> = Re(conj(u) v).

    Example:
        >>> import numpy as np, func
        >>> out, vjp_fn = func.vjp(np.sin, np.array([0.0, 1.0]))
        >>> vjp_fn(np.array([1.0, 2.0]))
        (array([1.        , 1.08060461]),)
    """
    check_callable(func, "vjp")
    if not primals:
        raise ArgumentError(f"func.vjp: {name_of(func)} needs at least one primal to differentiate")
    interpreter = Grad("vjp")
    with traced(interpreter):
        lifted = []
        args = []
        for i, primal in enumerate(primals):
            one = _Lifted(interpreter, tree.map(_copy_leaf, primal), f"argument {i}", "vjp", False)
            args.append(one.traced)
            one.traced = None
            lifted.append(one)
        out = func(*args)
        aux = None
        if has_aux:
            out, aux = split_aux(out, "vjp", func)
            aux = tree.map(_strip(interpreter), aux)
        outs, spec = tree.flatten(out)
        outs = [output_leaf(leaf, path, "vjp") for leaf, path in zip(outs, tree.path_names(out, "output"), strict=True)]
        nodes = [o.attached if type(o) is Tracer and o.interpreter is interpreter else None for o in outs]
        values = [unbox(o.value if node is not None else o) for o, node in zip(outs, nodes, strict=True)]
    arguments = [(one.spec, one.nodes, one.leaves) for one in lifted]
    pullback = Pullback(name_of(func), arguments, nodes, values, spec)
    result = tree.unflatten(spec, [_copy_leaf(value) for value in values])
    return (result, pullback, own_tree(aux)) if has_aux else (result, pullback)


def _copy_leaf(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and type(leaf) is np.ndarray:
        return leaf.copy()
    if type(leaf) is Tracer:
        return Tracer(leaf.interpreter, leaf.value, leaf.attached)
    return leaf
