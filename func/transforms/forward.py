"""Forward-mode transforms: jvp, linearize, linear_transpose; and the Hessian products built on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters import core, nan_safe
from func.interpreters.core import PYTHON_SCALARS, ZERO, Array, Aval, Tracer
from func.interpreters.core.errors import ArgumentError, NotDifferentiableError, TangentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.imperative.interpreter import copy_of
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.structural.identity import as_seeds
from func.interpreters.primitives.structural.shapes import convert, full_like
from func.interpreters.program.program import Program
from func.interpreters.stage import LinearStage, Stage
from func.interpreters.structural_zeros import StructuralZeros
from func.interpreters.transpose import transpose_program
from func.numpy.sharing import note_traced_arguments
from func.transforms import boundary, reverse
from func.transforms.arguments import FlatCall, Selection, differentiable, place_arguments
from func.transforms.boundary import Intercepts, with_interception
from func.transforms.pullback import cotangent_argument


@without_engine_frames
def jvp(
    f: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    strict: bool = False,
    has_aux: bool = False,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Evaluate a function together with its derivative along tangents: (out, tangent_out[, aux]).

    Args:
        f: The function; plain NumPy code.
        primals: Tuple of positional arguments. The function takes other keywords.
        tangents: Tuple of the same tree, shapes and dtypes: the direction.
        argnums: Position or positions to move; None for all. `tangents` then has the structure of `grad`'s result: one
            tangent for an int, a tuple for a tuple.
        argnames: Keyword argument or arguments to move, as in `grad`. A string takes one tangent, a tuple a dict; with
            a tuple of argnums: (tangents, dict).
        strict: Raise where an output does not depend on the primals, instead of returning a zero tangent.
        has_aux: The function returns (output, aux).
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        TangentError: A tangent differs from its primal in tree, shape or dtype.

    Example:
        >>> import numpy as np, func
        >>> func.jvp(np.sin, (0.0,), (2.0,))
        (np.float64(0.0), np.float64(2.0))
        >>> func.jvp(lambda x, w: x * w, (3.0,), {"w": 1.0}, argnames=("w",), w=2.0)
        (6.0, np.float64(3.0))
    """
    boundary.check_callable(f, "jvp")
    f = with_interception(f, intercept)
    selection = Selection.at_call(f, "jvp", argnums, argnames)
    return _jvp_of(f, primals, tangents, selection, kwargs, strict, has_aux)


def _jvp_of(
    f: Callable[..., Any],
    primals: Any,
    tangents: Any,
    selection: Selection | None,
    kwargs: dict[str, Any],
    strict: bool,
    has_aux: bool,
    transform: str = "jvp",
) -> Any:
    call, dots = _paired_call(f, primals, tangents, transform, has_aux, selection, kwargs)
    dots = as_seeds(dots, call.arguments.values())

    def run(structural: StructuralZeros | None) -> tuple[list[Array], list[Any]]:
        interpreter = Jvp(transform, structural)
        with TransformScope(interpreter), running(interpreter):
            lifted = [interpreter.lift(x, dx) for x, dx in zip(call.arguments.values(), dots, strict=True)]
            place_arguments(interpreter, f, call.arguments, lifted, call.arguments.values())
            return _unzipped(interpreter, call.outputs(interpreter, lifted))

    values, out_dots = nan_safe.push(run, call.arguments.values(), dots)
    if strict and any(
        [dx is ZERO and core.is_inexact(core.dtype_of(x)) for x, dx in zip(values, out_dots, strict=True)]
    ):
        raise NotDifferentiableError(
            f"func.jvp(strict=True): an output of {boundary.name_of(f)} does not depend on the primals"
        )
    out_dots = _materialized(values, out_dots)
    return call.result(
        tree.unflatten(call.out_spec, boundary.own(values)), tree.unflatten(call.out_spec, boundary.own(out_dots))
    )


def _unzipped(interpreter: Jvp, outs: Sequence[Array]) -> tuple[list[Array], list[Any]]:
    """The primals and the tangents of some outputs."""
    pairs = [interpreter.unpack(out) for out in outs]
    return [x for x, _ in pairs], [dx for _, dx in pairs]


def _materialized(primals: Sequence[Array], tangents: Sequence[Any]) -> list[Array]:
    return [boundary.zero_result(x) if dx is ZERO else dx for x, dx in zip(primals, tangents, strict=True)]


def _paired_call(
    function: Callable[..., Any],
    primals: Any,
    tangents: Any,
    transform: str,
    has_aux: bool = False,
    selection: Selection | None = None,
    kwargs: dict[str, Any] | None = None,
) -> tuple[FlatCall, list[Any]]:
    """The call at the primals, with tangents for its active leaves; integer primals take none."""
    _check_tuple(primals, "primals", transform)
    primals = tuple(primals)
    selected = primals
    paths: Any = None
    if selection is None:
        _check_tuple(tangents, "tangents", transform)
        call = None
    else:
        call = _call_at(function, primals, transform, has_aux, selection, kwargs)
        places = call.arguments.places
        tangents = selection.parts(tangents, len(places), "tangents")
        selected = tuple([_at(call, place) for place in places])
        roots = [f"primals[{place}]" if isinstance(place, int) else place for place in places]
        paths = [path for root, value in zip(roots, selected, strict=True) for path in tree.path_names(value, root)]
    dots, dot_spec = tree.flatten(tuple(tangents))
    spec = tree.structure(selected)
    if spec != dot_spec:
        raise TangentError(
            f"func.{transform}: tangents have the tree {tree.shown(dot_spec)}, but the primals {tree.shown(spec)}"
        )
    if call is None:
        call = _call_at(function, primals, transform, has_aux, None, kwargs)
        paths = tree.path_names(primals, "primals")
    fitted = [
        fit_tangent(leaf, dot, path, transform)
        for leaf, dot, path in zip(call.arguments.leaves, dots, paths, strict=True)
    ]
    return call, [fitted[i] for i in call.arguments.active]


def _check_tuple(value: Any, word: str, transform: str) -> None:
    if not isinstance(value, (tuple, list)):
        raise TypeError(
            f"func.{transform}: {word} must be a tuple with one entry per argument, not {type(value).__name__}; "
            "write (x,) for a single argument"
        )


def _at(call: FlatCall, place: int | str) -> Any:
    """The argument at a place of a call."""
    return call.arguments.args[place] if isinstance(place, int) else call.arguments.kwargs[place]


def _call_at(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    transform: str,
    has_aux: bool,
    selection: Selection | None = None,
    kwargs: dict[str, Any] | None = None,
) -> FlatCall:
    """The call at primals with at least one floating point leaf."""
    kwargs = {} if kwargs is None else kwargs
    places = range(len(primals)) if selection is None else selection.places(primals, kwargs)
    arguments = differentiable(primals, kwargs, places, transform, needs_every=False, root="primals[{}]")
    return FlatCall(function, transform, arguments, has_aux)


def fit_tangent(primal: Array, tangent: Any, path: str, transform: str) -> Any:
    """A tangent of its primal's shape and dtype (converts Python numbers and integers), or a TangentError."""
    tangent = boundary.array_leaf(tangent, f"tangent of {path}", transform)
    if type(tangent) in PYTHON_SCALARS:
        tangent = np.asarray(tangent)[()]
    shape, dtype = core.shape_of(primal), core.dtype_of(primal)
    if core.shape_of(tangent) != shape:
        raise TangentError(
            f"func.{transform}: {path} has shape {shape}, but its tangent has shape {core.shape_of(tangent)}"
        )
    have = core.dtype_of(tangent)
    if not core.is_inexact(dtype):
        if core.is_inexact(have) and type(tangent) is np.ndarray and np.any(tangent != 0):
            raise TangentError(
                f"func.{transform}: {path} has dtype {dtype}, which carries no tangent; convert it with "
                ".astype(float), or give it a zero tangent"
            )
        return ZERO
    if have == dtype:
        return tangent
    if have.kind == "c" and dtype.kind != "c":
        raise TangentError(f"func.{transform}: {path} has dtype {dtype}, but its tangent is {have}")
    if type(tangent) is np.ndarray and core.is_inexact(have) and shape != ():
        raise TangentError(
            f"func.{transform}: {path} has dtype {dtype}, but its tangent has dtype {have}; "
            f"convert it with .astype(np.{dtype})"
        )
    return convert(tangent, dtype=dtype)


@without_engine_frames
def linearize(
    f: Callable[..., Any],
    /,
    *primals: Any,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    has_aux: bool = False,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Evaluate a function and get its derivative at that point as a linear function: (out, jvp_fn[, aux]).

    `jvp_fn(*tangents)` gives the tangent of the output; it can be called many times and computes only the linear
    part, which `jvp_fn.program` shows.

    Args:
        f: The function; plain NumPy code.
        primals: Its positional arguments. `f` takes other keywords.
        argnums: Position or positions to move; None for all. `jvp_fn` takes one tangent for each, in this order.
        argnames: Keyword argument or arguments to move, and instead of all positional ones. `jvp_fn` takes their
            tangents by name, or after those of argnums.
        has_aux: The function returns (output, aux).
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Example:
        >>> import numpy as np, func
        >>> out, jvp_fn = func.linearize(lambda x: x ** 3, 2.0)
        >>> jvp_fn(1.0), jvp_fn(0.5)
        (np.float64(12.0), np.float64(6.0))
        >>> out, jvp_fn = func.linearize(lambda x, w: x * w, 3.0, w=2.0, argnames="w")
        >>> jvp_fn(w=1.0)
        np.float64(3.0)
    """
    boundary.check_callable(f, "linearize")
    f = with_interception(f, intercept)
    selection = Selection.at_call(f, "linearize", argnums, argnames)
    if not primals and argnames is None:
        raise ArgumentError(f"func.linearize: {boundary.name_of(f)} needs at least one primal")
    stage = LinearStage("linearize")
    interpreter = Jvp("linearize", copies_operands=True)
    try:
        with TransformScope(interpreter), running(interpreter):
            call = _call_at(f, primals, "linearize", has_aux, selection, kwargs)
            leaves = call.arguments.values()
            call.arguments.leaves = boundary.defensive_copies(call.arguments.leaves)
            avals = [Aval(core.shape_of(leaf), core.dtype_of(leaf)) for leaf in call.arguments.leaves]
            lifted, inputs = [], []
            for i, leaf in zip(call.arguments.active, call.arguments.values(), strict=True):
                stage.example = core.innermost(leaf)
                dx = stage.variable(avals[i])
                inputs.append(dx._attached)
                lifted.append(interpreter.lift(leaf, dx))
            place_arguments(interpreter, f, call.arguments, lifted, leaves)
            values, dots = _unzipped(interpreter, call.outputs(interpreter, lifted))
            program = stage.program(inputs, _materialized(values, dots))
    finally:
        stage.close()
    names = () if selection is None else selection.names
    spec = tree.structure(primals)
    if selection is not None:
        spec = tree.structure(tuple([_at(call, place) for place in call.arguments.places]))
    linearized = Linearized(boundary.name_of(f), program, spec, call.arguments.active, avals, call.out_spec, names)
    return call.result(tree.unflatten(call.out_spec, boundary.handed_out(values)), linearized)


class Linearized:
    """The result of `func.linearize`: the derivative of a function at a point."""

    def __init__(
        self,
        name: str,
        program: Program,
        spec: Any,
        active: Sequence[int],
        avals: Sequence[Aval],
        out_spec: Any,
        names: tuple[str, ...] = (),
    ) -> None:
        self.program = program
        self._name = name
        self._spec = spec
        self._active = active
        """The positions of the leaves that take a tangent."""
        self._avals = avals
        self._out_spec = out_spec
        self._names = names
        """The names of the last tangents, which keywords may set."""

    @without_engine_frames
    def __call__(self, *tangents: Any, **named: Any) -> Any:
        if named:
            tangents = self._in_order(tangents, named)
        dots, spec = tree.flatten(tangents)
        if spec != self._spec:
            raise TangentError(
                f"the tangents of {self._name} have the tree {tree.shown(spec)}, but the primals "
                f"{tree.shown(self._spec)}"
            )
        paths = tree.path_names(tangents, "primals")
        fitted = [fit_tangent(self._avals[i], dots[i], paths[i], "linearize") for i in self._active]
        outs = nan_safe.push_linear(self.program.run, as_seeds(fitted, [*self.program.constants.values()]))
        return tree.unflatten(self._out_spec, [_scalar_or_copy(out) for out in outs])

    def _in_order(self, tangents: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The tangents as positional arguments."""
        count = self._spec.num_children
        names = self._names[max(0, len(tangents) - count + len(self._names)) :]
        if {*named} != {*names}:
            expected = ", ".join([f"{name}=" for name in names]) or "no keywords"
            raise TangentError(
                f"the tangents of {self._name} are given by {expected} after {len(tangents)} positional ones, not by "
                f"{', '.join([f'{name}=' for name in named])}"
            )
        return (*tangents, *[named[name] for name in names])

    def __repr__(self) -> str:
        return f"<linearized {self._name}>\n{self.program}"


def _scalar_or_copy(x: Array) -> Array:
    """A result of a saved map: a copy, and a NumPy scalar where NumPy has scalars."""
    if not core.is_plain_array(x):
        return copy_of(x)
    return x.copy() if x.shape else x[()]


@without_engine_frames
def linear_transpose(
    f: Callable[..., Any],
    /,
    *primals: Any,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """The transpose of a function that is linear in its arguments; only their shapes and dtypes matter.

    The result takes a cotangent of the output and gives a tuple of cotangents of the arguments. For complex values
    it is the adjoint for <u, v> = Re(conj(u) v), like every pullback of func.

    Args:
        f: The function; plain NumPy code.
        primals: Its positional arguments: arrays, or avals as of `func.eval_shape`. `f` takes other keywords.
        argnums: Position or positions of the arguments in which it is linear; None for all. The others keep their
            values. The result has the structure of `grad`'s.
        argnames: Keyword argument or arguments in which it is linear, as in `grad`.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        NotDifferentiableError: The function is not linear (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> func.linear_transpose(lambda x: 3 * x[:2], np.ones(3))(np.array([1.0, 2.0]))
        (array([3., 6., 0.]),)
        >>> func.linear_transpose(lambda a, x: a @ x, np.ones((2, 3)), np.ones(3), argnums=1)(np.array([1.0, 2.0]))
        array([3., 3., 3.])
    """
    boundary.check_callable(f, "linear_transpose")
    f = with_interception(f, intercept)
    selection = Selection.at_call(f, "linear_transpose", argnums, argnames)
    places = range(len(primals)) if selection is None else selection.places(primals, kwargs)
    selected = primals
    if selection is not None:
        selected = tuple([primals[place] if isinstance(place, int) else kwargs[place] for place in places])
    leaves, spec = tree.flatten(selected)
    stage = Stage("linear_transpose")
    stage.is_linear = True
    with TransformScope(stage), running(stage):
        avals = []
        for leaf, path in zip(leaves, tree.path_names(selected, "primals"), strict=True):
            if not isinstance(leaf, Aval):
                (leaf,) = differentiable((), {path: leaf}, [path], "linear_transpose").leaves
            avals.append(Aval(core.shape_of(leaf), core.dtype_of(leaf)))
        inputs = [stage.variable(aval) for aval in avals]
        note_traced_arguments(stage, f, inputs, leaves)
        args, keywords = [*primals], {**kwargs}
        for place, value in zip(places, tree.unflatten(spec, inputs), strict=True):
            if isinstance(place, int):
                args[place] = value
            else:
                keywords[place] = value
        outs, out_spec = boundary.output_leaves(f(*args, **keywords), "linear_transpose")
        program = stage.program([tracer._attached for tracer in inputs], outs)
    _check_linear(program, boundary.name_of(f))
    form = None if selection is None else selection.form()
    return LinearTranspose(boundary.name_of(f), program, spec, avals, out_spec, form)


class LinearTranspose:
    """The result of `func.linear_transpose`: the adjoint of a linear function."""

    def __init__(
        self,
        name: str,
        program: Program,
        spec: Any,
        avals: Sequence[Aval],
        out_spec: Any,
        form: Selection | None = None,
    ) -> None:
        self.program = program
        self._name = name
        self._spec = spec
        self._avals = avals
        self._out_spec = out_spec
        self._form = form
        """The structure of the cotangents; None for a tuple with one per argument."""

    @without_engine_frames
    def __call__(self, *cts: Any) -> Any:
        ct = cotangent_argument(cts, self._name, self._out_spec)
        leaves, ct_spec = tree.flatten(ct)
        if ct_spec != self._out_spec:
            raise TangentError(
                f"the cotangent has the tree {tree.shown(ct_spec)}, but {self._name} returns "
                f"{tree.shown(self._out_spec)}"
            )
        out_avals = [Aval(out.shape, out.dtype) for out in self.program.outputs if hasattr(out, "shape")]
        out_cts = [
            fit_tangent(aval, leaf, "output", "linear_transpose") for aval, leaf in zip(out_avals, leaves, strict=True)
        ]
        like = out_cts[0] if out_cts else 0.0
        pulled = [
            full_like(like, 0, aval.shape, aval.dtype) if ct is ZERO else ct
            for ct, aval in zip(nan_safe.push_linear(self._pullback, out_cts), self._avals, strict=True)
        ]
        results = tuple(tree.unflatten(self._spec, boundary.handed_out(pulled)))
        return results if self._form is None else self._form.arranged(results)

    def _pullback(self, cts: Sequence[Any]) -> list[Any]:
        return transpose_program(self.program, cts)

    def __repr__(self) -> str:
        return f"<linear transpose of {self._name}>\n{self.program}"


def _check_linear(program: Program, name: str) -> None:
    """A sum with a constant other than zero is affine rather than linear."""
    linear = set(program.inputs)
    known: dict[Any, Any] = dict(program.constants)
    """The parts of the outputs that do not depend on the inputs."""

    def is_linear(x: Any) -> bool:
        return hasattr(x, "serial") and x in linear

    for equation in program.equations:
        primitive, operands = equation.primitive, equation.inputs
        if not any(map(is_linear, operands)):
            values = tuple([known.get(x) if hasattr(x, "serial") else x for x in operands])
            if not any([x is None or type(x) is Tracer for x in values]):
                out = core.bind(primitive, values, equation.params)
                known.update(zip(equation.outputs, out if primitive.multiple else (out,), strict=True))
            continue
        linear.update(equation.outputs)
        if primitive.name in ("add", "subtract"):
            constants = [known.get(x) if hasattr(x, "serial") else x for x in operands if not is_linear(x)]
            if any([x is None or type(x) is Tracer or bool(np.any(x)) for x in constants]):
                raise NotDifferentiableError(f"{name} is not linear: it adds a constant to its argument")


@without_engine_frames
def hvp(
    f: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    holomorphic: bool = False,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Hessian-vector product of a scalar function: the Hessian at `primals` applied to `tangents`.

    Costs a few evaluations and never builds the Hessian: forward over reverse mode. `func.vmap` of it takes many
    vectors, with its `chunk_size` and `progress`.

    Args:
        f: A function with one real scalar output.
        primals: Tuple of positional arguments. The function takes other keywords.
        tangents: Tuple of the same tree, shapes and dtypes.
        argnums: Position or positions to differentiate; None for all. `tangents` and the result then have the structure
            of `grad`'s result.
        argnames: Keyword argument or arguments to differentiate, as in `grad`.
        holomorphic: The function is holomorphic, of complex arguments: the Hessian of complex second derivatives.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Returns:
        H v in the tree of `primals`; for a single argument that argument's tree itself.

    Example:
        >>> import numpy as np, func
        >>> func.hvp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
        array([ 6., 12.])
        >>> func.hvp(lambda x, w: np.sum(x * w ** 2), (np.array([1.0, 2.0]),), 1.0, argnames="w", w=3.0)
        np.float64(6.0)
    """
    boundary.check_callable(f, "hvp")
    f = with_interception(f, intercept)
    primals = _as_tuple(primals)
    gradient, options, is_single = _gradient("hvp", f, primals, argnums, argnames, holomorphic)
    tangents = tangents if options else _as_tuple(tangents)
    selection = Selection.at_call(gradient, "hvp", argnums, argnames)
    _, product = _jvp_of(gradient, primals, tangents, selection, kwargs, False, False, "hvp")
    return product[0] if is_single else product


def _as_tuple(arguments: Any) -> tuple[Any, ...]:
    return tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,)


def _gradient(
    transform: str,
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    argnums: Any,
    argnames: Any,
    holomorphic: bool = False,
) -> tuple[Callable[..., Any], dict[str, Any], bool]:
    """The gradient for some options, the options for its derivative, and whether the result is a tuple of one."""
    if argnums is None and argnames is None:
        everything = tuple(range(len(primals)))
        return reverse.gradient_for(transform, f, everything, None, holomorphic), {}, len(primals) == 1
    options = {"argnums": argnums, "argnames": argnames}
    numbers = 0 if argnums is None else argnums
    return reverse.gradient_for(transform, f, numbers, argnames, holomorphic), options, False


@without_engine_frames
def vhp(
    f: Callable[..., Any],
    primals: Any,
    cotangents: Any,
    *,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Vector-Hessian product: `cotangents` applied to the Hessian from the left.

    Example:
        >>> import numpy as np, func
        >>> func.vhp(lambda x: np.sum(x ** 3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
        array([ 6., 12.])
    """
    boundary.check_callable(f, "vhp")
    f = with_interception(f, intercept)
    primals = _as_tuple(primals)
    selection = Selection.at_call(f, "vhp", argnums, argnames)
    gradient, options, is_single = _gradient("vhp", f, primals, argnums, argnames)
    cotangents = cotangents if options else _as_tuple(cotangents)
    _paired_call(f, primals, cotangents, "vhp", False, selection, kwargs)
    _, pullback = reverse.vjp(gradient, *primals, **options, **kwargs)
    product = pullback(cotangents)
    return product[0] if is_single else product


@without_engine_frames
def ggnvp(
    model: Callable[..., Any],
    loss: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    argnums: int | tuple[int, ...] | None = None,
    argnames: str | tuple[str, ...] | None = None,
    intercept: Intercepts = False,
    **kwargs: Any,
) -> Any:
    """Generalised Gauss-Newton vector product of `loss(model(*primals))`: Jᵀ H J v.

    J is the Jacobian of the model, and H the Hessian of the loss with respect to the model's output.

    The model takes other keywords; argnums and argnames select from its arguments as in `hvp`.

    Source: N. Schraudolph (2002), "Fast curvature matrix-vector products for second-order gradient descent".

    Example:
        >>> import numpy as np, func
        >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
        >>> func.ggnvp(lambda x: x ** 2, lambda y: 0.5 * np.sum(y ** 2), (x,), (v,))
        array([4., 0.])
    """
    boundary.check_callable(model, "ggnvp")
    boundary.check_callable(loss, "ggnvp")
    model, loss = with_interception(model, intercept), with_interception(loss, intercept)
    primals = _as_tuple(primals)
    selection = Selection.at_call(model, "ggnvp", argnums, argnames)
    is_selected = selection is not None
    options: dict[str, Any] = {"argnums": argnums, "argnames": argnames, **kwargs}
    tangents = tangents if is_selected else _as_tuple(tangents)
    out, out_dot = _jvp_of(model, primals, tangents, selection, kwargs, False, False, "ggnvp")
    _, ct = jvp(reverse.grad(loss), (out,), (out_dot,))
    _, pullback = reverse.vjp(model, *primals, **options)
    product = pullback(ct)
    return product[0] if len(primals) == 1 and not is_selected else product
