"""Forward-mode transforms: jvp, linearize, linear_transpose; and the Hessian products built on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Tracer, dtype_of, innermost, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError, NotDifferentiableError, TangentError
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.shapes import convert, full_like, zeros_like
from func.interpreters.program.program import Program
from func.interpreters.stage import DerivedStage, Stage
from func.interpreters.transpose import transpose_program
from func.transforms import reverse
from func.transforms.boundary import (
    array_leaf,
    check_callable,
    differentiable_leaf,
    name_of,
    output_leaf,
    own,
    own_tree,
    traced,
    unbox,
)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Evaluate a function together with its derivative along tangents: (out, tangent_out[, aux]).

    Args:
        func: The function; plain NumPy code.
        primals: Tuple of arguments.
        tangents: Tuple of the same tree, shapes and dtypes: the direction.
        strict: Raise where an output does not depend on the primals, instead of giving a zero tangent.
        has_aux: The function returns (output, aux).

    Raises:
        TangentError: A tangent differs from its primal in tree, shape or dtype.

    Example:
        >>> import numpy as np, func
        >>> func.jvp(np.sin, (0.0,), (2.0,))
        (np.float64(0.0), np.float64(2.0))
    """
    check_callable(func, "jvp")
    primal_leaves, tangent_leaves, spec = _paired(primals, tangents, "jvp")
    interpreter = Jvp("jvp")
    with traced(interpreter):
        lifted = [interpreter.lift(p, t) for p, t in zip(primal_leaves, tangent_leaves, strict=True)]
        out, aux = _call(func, tree.unflatten(spec, lifted), has_aux, "jvp")
        outs, out_spec, pairs = _unpack(interpreter, out, "jvp")
        aux = tree.map(lambda leaf: interpreter.unpack(leaf)[0] if type(leaf) is Tracer else leaf, aux)
        del lifted, out
    values = [p for p, _ in pairs]
    if strict and any([t is ZERO and is_inexact(dtype_of(p)) for p, t in pairs]):
        raise NotDifferentiableError(
            f"func.jvp(strict=True): an output of {name_of(func)} does not depend on the primals"
        )
    dots = [zeros_like(p) if t is ZERO else t for p, t in pairs]
    del pairs, outs
    result = (tree.unflatten(out_spec, own(values)), tree.unflatten(out_spec, own(dots)))
    return (*result, own_tree(aux)) if has_aux else result


def _call(function: Callable[..., Any], args: Any, has_aux: bool, transform: str) -> tuple[Any, Any]:
    out = function(*args)
    return reverse.split_aux(out, transform, function) if has_aux else (out, None)


def _unpack(interpreter: Jvp, out: Any, transform: str) -> tuple[list[Any], Any, list[tuple[Array, Any]]]:
    outs, spec = tree.flatten(out)
    names = tree.path_names(out, "output")
    pairs = [
        interpreter.unpack(unbox(output_leaf(leaf, path, transform))) for leaf, path in zip(outs, names, strict=True)
    ]
    return outs, spec, pairs


def _paired(primals: Any, tangents: Any, transform: str) -> tuple[list[Any], list[Any], Any]:
    """Leaves of primals and of tangents that fit them; integer primals take no tangent."""
    for value, word in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"func.{transform}: {word} must be a tuple with one entry per argument, not {type(value).__name__}"
            )
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, spec = tree.flatten(primals)
    dots, dot_spec = tree.flatten(tangents)
    if spec != dot_spec:
        raise TangentError(f"func.{transform}: tangents have the tree {dot_spec}, but the primals {spec}")
    checked: list[Any] = []
    names = tree.path_names(primals, "primals")
    given: list[Any] = []
    for leaf, dot, path in zip(leaves, dots, names, strict=True):
        leaf = array_leaf(leaf, path, transform)
        given.append(leaf)
        checked.append(fit_tangent(leaf, dot, path, transform))
    if given and all([not is_inexact(dtype_of(leaf)) for leaf in given]):
        differentiable_leaf(given[0], names[0], transform, True, False)
    return given, checked, spec


def fit_tangent(primal: Array, tangent: Any, path: str, transform: str) -> Any:
    """A tangent of its primal's shape and dtype (Python and integer numbers convert), or a TangentError."""
    tangent = array_leaf(tangent, f"tangent of {path}", transform)
    if type(tangent) in PYTHON_SCALARS:
        tangent = np.asarray(tangent)[()]
    shape, dtype = shape_of(primal), dtype_of(primal)
    if shape_of(tangent) != shape:
        raise TangentError(f"func.{transform}: {path} has shape {shape}, but its tangent has shape {shape_of(tangent)}")
    have = dtype_of(tangent)
    if not is_inexact(dtype):
        if is_inexact(have) and type(tangent) is np.ndarray and np.any(tangent != 0):
            raise TangentError(
                f"func.{transform}: {path} has dtype {dtype}, which carries no tangent; convert it with "
                ".astype(float), or give it a zero tangent"
            )
        return ZERO
    if have == dtype:
        return tangent
    if have.kind == "c" and dtype.kind != "c":
        raise TangentError(f"func.{transform}: {path} has dtype {dtype}, but its tangent is {have}")
    if type(tangent) is np.ndarray and is_inexact(have) and shape != ():
        raise TangentError(
            f"func.{transform}: {path} has dtype {dtype}, but its tangent has dtype {have}; "
            f"convert it with .astype(np.{dtype})"
        )
    return convert(tangent, dtype=dtype)


def linearize(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Evaluate a function and get its derivative at that point as a linear function: (out, jvp_fn[, aux]).

    `jvp_fn(*tangents)` gives the tangent of the output; it can be called many times and computes only the linear
    part, which `jvp_fn.program` shows.

    Example:
        >>> import numpy as np, func
        >>> out, jvp_fn = func.linearize(lambda x: x ** 3, 2.0)
        >>> jvp_fn(1.0), jvp_fn(0.5)
        (np.float64(12.0), np.float64(6.0))
    """
    check_callable(func, "linearize")
    if not primals:
        raise ArgumentError(f"func.linearize: {name_of(func)} needs at least one primal")
    stage = DerivedStage("linearize")
    interpreter = Jvp("linearize", copies_operands=True)
    leaves, spec = tree.flatten(tuple(primals))
    names = tree.path_names(tuple(primals), "primals")
    try:
        with traced(interpreter):
            lifted, inputs, places = [], [], []
            for i, (leaf, path) in enumerate(zip(leaves, names, strict=True)):
                leaf = array_leaf(leaf, path, "linearize")
                leaf = leaf.copy() if type(leaf) is np.ndarray else leaf
                if is_inexact(dtype_of(leaf)):
                    stage.example = innermost(leaf)
                    tangent = stage.variable(Aval(shape_of(leaf), dtype_of(leaf)))
                    inputs.append(tangent)
                    places.append(i)
                    lifted.append(interpreter.lift(leaf, tangent))
                else:
                    lifted.append(leaf)
            if not inputs:
                differentiable_leaf(leaves[0], names[0], "linearize", True, False)
            out, aux = _call(func, tree.unflatten(spec, lifted), has_aux, "linearize")
            _, out_spec, pairs = _unpack(interpreter, out, "linearize")
            aux = tree.map(lambda leaf: interpreter.unpack(leaf)[0] if type(leaf) is Tracer else leaf, aux)
            dots = [zeros_like(p) if t is ZERO else t for p, t in pairs]
            program = stage.program([tangent.attached for tangent in inputs], dots)
    finally:
        stage.close()
    values = [p.copy() if isinstance(p, np.ndarray) else p for p, _ in pairs]
    infos = [(shape_of(leaf), dtype_of(leaf)) for leaf in leaves]
    result = (
        tree.unflatten(out_spec, values),
        Linearized(name_of(func), program, spec, places, infos, out_spec),
    )
    return (*result, own_tree(aux)) if has_aux else result


class Linearized:
    """What `func.linearize` returns: the derivative of a function at a point."""

    def __init__(
        self, name: str, program: Program, spec: Any, places: list[int], infos: list[Any], out_spec: Any
    ) -> None:
        self.program = program
        self._name = name
        self._spec = spec
        self._places = places
        self._infos = infos
        self._out_spec = out_spec

    def __call__(self, *tangents: Any) -> Any:
        dots, spec = tree.flatten(tuple(tangents))
        if spec != self._spec:
            raise TangentError(f"the tangents of {self._name} have the tree {spec}, but the primals {self._spec}")
        names = tree.path_names(tuple(tangents), "tangents")
        given = [fit_tangent(aval_like(*self._infos[i]), dots[i], names[i], "linearize") for i in self._places]
        outs = [scalar_or_copy(o) for o in self.program.run(given)]
        return tree.unflatten(self._out_spec, outs)

    def __repr__(self) -> str:
        return f"<linearized {self._name}>\n{self.program}"


def scalar_or_copy(x: Array) -> Array:
    """A result of a saved map: a copy, and a NumPy scalar where NumPy has scalars."""
    if not isinstance(x, np.ndarray):
        return x
    return x.copy() if x.shape else x[()]


def aval_like(shape: tuple[int, ...], dtype: Any) -> Any:
    """Something with a shape and dtype for messages and checks."""
    return Aval(shape, dtype)


def linear_transpose(func: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a function that is linear in its arguments, of which only shapes and dtypes matter.

    The result takes a cotangent of the output and gives a tuple of cotangents of the arguments. For complex values
    it is the adjoint for <u, v> = Re(conj(u) v), like every pullback of func.

    Raises:
        NotDifferentiableError: The function is not linear (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> func.linear_transpose(lambda x: 3 * x[:2], np.ones(3))(np.array([1.0, 2.0]))
        (array([3., 6., 0.]),)
    """
    check_callable(func, "linear_transpose")
    leaves, spec = tree.flatten(tuple(primals))
    names = tree.path_names(tuple(primals), "primals")
    stage = Stage("linear_transpose")
    with traced(stage):
        avals = []
        for leaf, path in zip(leaves, names, strict=True):
            if not isinstance(leaf, Aval):
                leaf = differentiable_leaf(leaf, path, "linear_transpose", True, False)
            avals.append(Aval(shape_of(leaf), dtype_of(leaf)))
        inputs = [stage.variable(aval) for aval in avals]
        variables = [tracer.attached for tracer in inputs]
        out = func(*tree.unflatten(spec, inputs))
        outs, out_spec = tree.flatten(out)
        program = stage.program(variables, [output_leaf(o, "output", "linear_transpose") for o in outs])
    infos = [Aval(o.shape, o.dtype) for o in program.outputs if hasattr(o, "shape")]
    _check_linear(program, name_of(func))

    def transposed(ct: Any) -> Any:
        cts, ct_spec = tree.flatten(ct)
        if ct_spec != out_spec:
            raise TangentError(f"the cotangent has the tree {ct_spec}, but {name_of(func)} returns {out_spec}")
        fitted = [fit_tangent(i, c, "output", "linear_transpose") for i, c in zip(infos, cts, strict=True)]
        grown = transpose_program(program, fitted)
        like = fitted[0] if fitted else 0.0
        full = [full_like(like, 0, a.shape, a.dtype) if g is ZERO else g for g, a in zip(grown, avals, strict=True)]
        fresh = [g.copy() if isinstance(g, np.ndarray) else g for g in full]
        return tuple(tree.unflatten(spec, fresh))

    return transposed


def _check_linear(program: Program, name: str) -> None:
    """A constant output, or a sum with a constant, is affine rather than linear."""
    linear = set(program.inputs)
    for equation in program.equations:
        flags = [x in linear for x in equation.inputs if hasattr(x, "serial")]
        depends = any(flags)
        if (
            depends
            and equation.primitive.name in ("add", "subtract")
            and not all([hasattr(x, "serial") and x in linear for x in equation.inputs])
        ):
            raise NotDifferentiableError(f"{name} is not linear: it adds a constant to its argument")
        if depends:
            linear.update(equation.outputs)


# --- products with second derivatives ---------------------------------------------------------------------------


def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Hessian-vector product of a scalar function: the Hessian at `primals` applied to `tangents`.

    Costs a few evaluations and never builds the Hessian: forward over reverse mode.

    Args:
        func: A function with one real scalar output.
        primals: Tuple of arguments.
        tangents: Tuple of the same tree, shapes and dtypes.

    Returns:
        H v in the tree of `primals`; for a single argument that argument's tree itself.

    Example:
        >>> import numpy as np, func
        >>> func.hvp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
        array([ 6., 12.])
    """
    check_callable(func, "hvp")
    primals = tuple(primals) if isinstance(primals, (tuple, list)) else (primals,)
    tangents = tuple(tangents) if isinstance(tangents, (tuple, list)) else (tangents,)
    gradient = reverse.grad(func, argnums=tuple(range(len(primals))))
    _, product = jvp(gradient, primals, tangents)
    return product[0] if len(primals) == 1 else product


def vhp(func: Callable[..., Any], primals: Any, cotangents: Any) -> Any:
    """Vector-Hessian product: `cotangents` applied to the Hessian from the left. Equal to `hvp` for smooth functions,
    computed in reverse over reverse mode.

    Example:
        >>> import numpy as np, func
        >>> func.vhp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
        array([ 6., 12.])
    """
    check_callable(func, "vhp")
    primals = tuple(primals) if isinstance(primals, (tuple, list)) else (primals,)
    cotangents = tuple(cotangents) if isinstance(cotangents, (tuple, list)) else (cotangents,)
    _paired(primals, cotangents, "vhp")
    _, pullback = reverse.vjp(reverse.grad(func, argnums=tuple(range(len(primals)))), *primals)
    product = pullback(cotangents)
    return product[0] if len(primals) == 1 else product


def ggnvp(model: Callable[..., Any], loss: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Generalised Gauss-Newton vector product of `loss(model(*primals))`: Jᵀ H J v, with J the Jacobian of the model
    and H the Hessian of the loss with respect to the model's output.

    Source: N. Schraudolph (2002), "Fast curvature matrix-vector products for second-order gradient descent".

    Example:
        >>> import numpy as np, func
        >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
        >>> func.ggnvp(lambda x: x ** 2, lambda y: 0.5 * np.sum(y ** 2), (x,), (v,))
        array([4., 0.])
    """
    check_callable(model, "ggnvp")
    check_callable(loss, "ggnvp")
    primals = tuple(primals) if isinstance(primals, (tuple, list)) else (primals,)
    tangents = tuple(tangents) if isinstance(tangents, (tuple, list)) else (tangents,)
    out, out_dot = jvp(model, primals, tangents)
    _, curved = jvp(reverse.grad(loss), (out,), (out_dot,))
    _, pullback = reverse.vjp(model, *primals)
    product = pullback(curved)
    return product[0] if len(primals) == 1 else product
