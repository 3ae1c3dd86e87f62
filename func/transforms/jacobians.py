"""Jacobians and Hessians: one vjp or jvp, mapped over the basis of the output or input."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters import nan_safe
from func.interpreters.compiled_backward import by_nodes, pull_back
from func.interpreters.core import EVALUATE, ZERO, Array, Tracer, aval_of, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.core.scopes import TransformScope
from func.interpreters.core.wiring import WIRING
from func.interpreters.drivers import all_mapped, map_flat, running
from func.interpreters.grad_fast import grad_interpreter
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.elementwise.builder import conjugate, multiply
from func.interpreters.primitives.elementwise.table import make_complex
from func.interpreters.primitives.structural.filling import zeros_like
from func.interpreters.primitives.structural.identity import as_seed
from func.interpreters.primitives.structural.shapes import convert, full_like, move_axis, reshape
from func.interpreters.stage import DerivedStage
from func.interpreters.structural_zeros import StructuralZeros
from func.numpy.memory import detached_tracer
from func.numpy.sharing import shared_groups
from func.transforms.arguments import Derivative, FlatCall, check_argnums, differentiable, place_arguments
from func.transforms.boundary import Intercepts, defensive_copies, name_of, own, zero_result
from func.transforms.memory_limits import PLANNING, ChunkPlan, Planning, parse_bytes, planning, whole_results
from func.transforms.transformed import keeps_parameters, transform
from func.transforms.vmapping import Chunks, chunks

_Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]


@keeps_parameters
@transform
def jacrev(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    memory_limit: int | str | None = None,
    executor: Any = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pullback per output element, all at once (or chunk_size at a time).

    The result has the tree of the output outside and that of the argument inside. Each block has shape output.shape +
    argument.shape. Cheap where outputs are fewer than inputs.

    Args:
        f: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (jacobian, aux).
        chunk_size: Output elements pulled back at a time, to bound memory.
        memory_limit: The most memory that a call may need, arguments and result included: bytes, or a text as "2 GiB".
            func chooses chunks with a planned peak below it; `func.memory` shows the plan.
        holomorphic: Needed for complex arguments; gives the complex derivative of a holomorphic function. Complex
            outputs of real arguments have their complex derivative without it.
        progress: Show a progress bar over the chunks.
        executor: Where chunks of rows are computed, as in `vmap`.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        MemoryLimitError: Even chunks of one element need more than memory_limit (a MemoryError).

    Example:
        >>> import numpy as np, func
        >>> func.jacrev(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    blocks = _Blocks("jacrev", **locals())
    return _by_rows(f, blocks)


def _by_rows(f: Callable[..., Any], blocks: _Blocks) -> _Call:
    """The Jacobian by reverse mode, for the transform that `blocks` names."""
    blocks.mode = "rev"

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any], blocks_of: _Blocks) -> Any:
        call = blocks_of.call(args, kwargs)
        leaves = call.arguments.values()
        interpreter = grad_interpreter(blocks.transform)
        with TransformScope(interpreter), running(interpreter):
            lifted = [interpreter.lift(leaf) for leaf in leaves]
            place_arguments(interpreter, f, call.arguments, lifted, leaves)
            nodes = [tracer._attached for tracer in lifted]
            outs = [
                (out._value, out._attached) if type(out) is Tracer and out._interpreter is interpreter else (out, None)
                for out in call.outputs(interpreter, lifted)
            ]
            del lifted
        blocks_of.check_outputs([value for value, _ in outs], leaves)
        rows = []
        for value, node in outs:
            shapes = [(*shape_of(value), *shape_of(leaf)) for leaf in leaves]
            is_complex = dtype_of(value).kind == "c"
            dtypes = [dtype_of(value if is_complex else x) for x in leaves]
            if node is None or _size(value) == 0:
                rows.append([zero_result(value, *info) for info in zip(shapes, dtypes, strict=True)])
                continue

            def pullback(ct: Array, node: Any = node, value: Array = value) -> list[Array]:
                cts = pull_back([(node, ct)], nodes, (value,))
                return [zero_result(leaf) if ct is ZERO else ct for ct, leaf in zip(cts, leaves, strict=True)]

            row_of = functools.partial(_complex_row, pullback) if is_complex and not blocks.holomorphic else pullback
            cts = row_of(full_like(value, 1)) if _size(value) == 1 else blocks_of.over_basis(row_of, value)
            rows.append(_reshaped(cts, shapes, blocks.holomorphic))
            del cts  # which `result` copies where something else refers to them
        return blocks_of.result(call, rows)

    return blocks.within_limit(jacobian_of)


@keeps_parameters
@transform
def jacfwd(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    randomness: str = "error",
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    memory_limit: int | str | None = None,
    executor: Any = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one tangent per input element, all at once (or chunk_size at a time).

    Same result as `jacrev`; cheap where inputs are fewer than outputs.

    Example:
        >>> import numpy as np, func
        >>> func.jacfwd(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    blocks = _Blocks("jacfwd", **locals())
    if randomness not in ("error", "same", "different"):
        raise ArgumentError(f"func.jacfwd: randomness must be 'error', 'same' or 'different', not {randomness!r}")
    return _by_columns(f, blocks)


def _by_columns(f: Callable[..., Any], blocks: _Blocks) -> _Call:
    """The Jacobian by forward mode, for the transform that `blocks` names."""
    blocks.mode = "fwd"

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any], blocks_of: _Blocks) -> Any:
        call = blocks_of.call(args, kwargs)
        leaves = call.arguments.values()
        has_shared = bool(shared_groups(leaves))
        columns = []
        if not leaves:  # an empty tree: no columns, one row for each output
            outs = call.outputs(EVALUATE, leaves)
            blocks_of.check_outputs(outs, leaves)
            return blocks_of.result(call, [[] for _ in outs])
        for position, leaf in enumerate(leaves):

            def push(dx: Array, position: int = position, leaf: Array = leaf) -> list[Array]:
                def run(structural: StructuralZeros | None) -> tuple[list[Array], list[Any]]:
                    interpreter = Jvp(blocks.transform, structural)
                    with TransformScope(interpreter), running(interpreter):
                        lifted = [
                            interpreter.lift(x, zeros_like(x)) if has_shared else detached_tracer(x) for x in leaves
                        ]
                        lifted[position] = interpreter.lift(leaf, dx)
                        place_arguments(interpreter, f, call.arguments, lifted, leaves)
                        pairs = [interpreter.unpack(out) for out in call.outputs(interpreter, lifted, is_repeated=True)]
                    return [value for value, _ in pairs], [tangent for _, tangent in pairs]

                values, tangents = nan_safe.push(run, leaves, (dx,))
                blocks_of.check_outputs(values, leaves)
                return [zero_result(x) if t is ZERO else t for x, t in zip(values, tangents, strict=True)]

            linear: Callable[[Array], list[Array]] = push
            if dtype_of(leaf).kind == "c" and not blocks.holomorphic:
                linear = functools.partial(_complex_row, push)
            shape = shape_of(leaf)
            if _size(leaf) == 0:
                outs = call.outputs(EVALUATE, defensive_copies(leaves), is_repeated=True)
                dtypes = [dtype_of(leaf if dtype_of(leaf).kind == "c" else out) for out in outs]
                shapes = [(*shape_of(out), *shape) for out in outs]
                columns.append([zero_result(*info) for info in zip(outs, shapes, dtypes, strict=True)])
            elif _size(leaf) == 1:
                outs = linear(full_like(leaf, 1))
                columns.append([reshape(out, shape=(*shape_of(out), *shape)) for out in outs])
            else:
                outs = [move_axis(out, 0, len(shape_of(out)) - 1) for out in blocks_of.over_basis(linear, leaf)]
                columns.append(_reshaped(outs, [(*shape_of(out)[:-1], *shape) for out in outs]))
            del outs  # which `result` copies where something else refers to them
        rows = [list(row) for row in zip(*columns, strict=True)]
        del columns
        return blocks_of.result(call, rows)

    return blocks.within_limit(jacobian_of)


def _complex_row(linear: Callable[[Array], list[Array]], v: Array) -> list[Array]:
    """The row of a complex output of real inputs: the pullback of v is its real part, that of i v the imaginary.

    Tangents give the column of a complex input of real outputs in the same way. This is the gradient's convention.
    """
    pairs = zip(linear(v), linear(multiply(v, 1j)), strict=True)
    return [convert(make_complex(real, imaginary), dtype=dtype_of(v)) for real, imaginary in pairs]


def _reshaped(blocks: Sequence[Array], shapes: Sequence[tuple[int, ...]], conjugated: bool = False) -> list[Array]:
    """Blocks of a Jacobian in their shapes."""
    shaped = [reshape(block, shape=shape) for block, shape in zip(blocks, shapes, strict=True)]
    return [conjugate(block) for block in shaped] if conjugated else shaped


class _Blocks(Derivative):
    """The common part of `jacrev` and `jacfwd`: the calls, the basis vectors, and the structure of the Jacobian."""

    mode: str
    """Forward, "fwd", or reverse, "rev"."""

    def __init__(self, transform: str, f: Callable[..., Any], **options: Any) -> None:
        super().__init__(transform, f, **options)
        check_chunk(self.chunk_size, transform, self.memory_limit)
        if self.executor is not None:
            WIRING.check_executor(transform, self.executor, memory_limit=self.memory_limit)
        self.plan = None if self.memory_limit is None else ChunkPlan(self.memory_limit, transform, f)

    def in_chunks(self, chunk_size: int) -> _Blocks:
        """The same with a planned chunk size."""
        other = copy.copy(self)
        other.chunk_size, other.plan = chunk_size, None
        return other

    def within_limit(self, jacobian_of: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """A function (args, kwargs, blocks) as one of (args, kwargs), with chunks below the memory limit."""

        def planned(*args: Any, **kwargs: Any) -> Any:
            trial = PLANNING.get()
            assert trial is not None and trial.chunk is not None
            blocks = self.in_chunks(trial.chunk)
            with planning(Planning()):
                return jacobian_of(args, kwargs, blocks)

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.executor is not None:
                return WIRING.jacobian_by_executor(self, args, kwargs, self.mode, self.executor)
            if self.plan is None:
                return jacobian_of(args, kwargs, self)
            directions = functools.partial(self._directions, args, kwargs)
            with by_nodes():
                size = self.plan.chunk(directions, planned, args, kwargs, "directions")
                return jacobian_of(args, kwargs, self.in_chunks(size))

        return call

    def _directions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The largest number of unit vectors for one array: of the inputs in forward mode, else of the outputs."""
        call = self.call(args, kwargs)
        leaves = call.arguments.values()
        if self.mode == "rev":
            stage = DerivedStage(self.transform)
            with TransformScope(stage, staging=True), running(stage):
                outs = call.outputs(stage, [stage.variable(aval_of(leaf)) for leaf in leaves], is_repeated=True)
                return max([_size(out) for out in outs], default=1)
        return max([_size(leaf) for leaf in leaves], default=1)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FlatCall:
        """The call with these arguments, as a function of the leaves to differentiate."""
        places = self.selection.places(args, kwargs)
        arguments = differentiable(args, kwargs, places, self.transform, self.kinds, function=self.function)
        return FlatCall(self.function, self.transform, arguments, self.has_aux)

    def check_outputs(self, values: Sequence[Array], leaves: Sequence[Array]) -> None:
        """Raise TypeError for outputs that are not floating point, and for complex ones of complex arguments."""
        has_complex = not self.holomorphic and any([dtype_of(leaf).kind == "c" for leaf in leaves])
        for value in values:
            dtype = dtype_of(value)
            if not is_inexact(dtype):
                raise TypeError(
                    f"func.{self.transform} needs floating point outputs, but {name_of(self.function)} returned {dtype}"
                )
            if has_complex and dtype.kind == "c":
                raise ArgumentError(
                    f"func.{self.transform}: an argument of {name_of(self.function)} is complex, and so is an output; "
                    "pass holomorphic=True for the derivative of a holomorphic function, or differentiate with respect "
                    "to its real and imaginary parts"
                )

    def over_basis(self, linear: Callable[[Array], list[Array]], like: Array) -> list[Array]:
        """A linear map applied to every unit vector of an array's shape, stacked in front."""
        size = _size(like)
        label = f"{self.transform} {name_of(self.function)}"
        chunk_size = self.chunk_size or size
        if PLANNING.get() is not None and chunk_size < size:
            return self._planned_chunk(linear, like, chunk_size)
        return over_vectors(linear, functools.partial(unit_vectors, like), size, chunk_size, self.progress, label)

    def _planned_chunk(self, linear: Callable[[Array], list[Array]], like: Array, chunk_size: int) -> list[Array]:
        """The memory of the chunks: all results, and the computation of one."""
        vectors = unit_vectors(like, slice(0, chunk_size))
        outs, is_mapped = _mapped(linear, vectors)
        whole = whole_results(all_mapped(outs, is_mapped, chunk_size), _size(like))
        del outs
        _mapped(linear, vectors)
        return whole

    def result(self, call: FlatCall, rows: list[list[Array]]) -> Any:
        """The output's tree of argument trees of blocks, from a row of blocks for each leaf of the output."""
        blocks = [block for row in rows for block in row]
        count = len(call.arguments.active)
        starts = range(0, len(rows) * count, count) if count else [0] * len(rows)
        rows.clear()
        own(blocks)
        trees = [self.selection.arranged(call.arguments.arranged(blocks[i : i + count])) for i in starts]
        return call.result(tree.unflatten(call.out_spec, trees))


def over_vectors(
    function: Callable[[Array], Sequence[Array]],
    vectors: Callable[[slice], Array],
    size: int,
    chunk_size: int | None,
    progress: bool,
    label: str,
) -> list[Array]:
    """A function applied to each of `size` vectors in chunks, stacked in front; `vectors` returns those of a slice."""
    done = Chunks(size)
    for part in chunks(size, chunk_size or size, progress, label):
        done.add(part, *_mapped(function, vectors(part)), None)
    outs, is_mapped, _ = done.joined()
    return all_mapped(outs, is_mapped, size)


def unit_vectors(like: Array, part: slice) -> Array:
    """Some of the unit vectors of an array's shape, stacked in front."""
    count = part.stop - part.start
    return reshape(unit_rows(like, part.start, count, _size(like)), shape=(count, *shape_of(like)))


def _mapped(linear: Callable[[Array], Sequence[Array]], vectors: Array) -> tuple[list[Array], list[bool]]:
    """A linear map applied to stacked vectors."""
    return map_flat(linear, shape_of(vectors)[0], (True,), (vectors,))


def check_chunk(chunk_size: Any, transform: str, memory_limit: Any = None) -> None:
    if memory_limit is not None:
        parse_bytes(memory_limit, transform)
        if chunk_size is not None:
            raise ArgumentError(f"func.{transform}: memory_limit chooses the chunks; pass either it or chunk_size")
    if chunk_size is not None and (not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1):
        raise ArgumentError(f"func.{transform}: chunk_size must be a positive int or None, not {chunk_size!r}")


def _size(x: Array) -> int:
    return math.prod(shape_of(x))


def unit_rows(like: Array, start: int, count: int, size: int) -> Array:
    """Rows start ... start + count - 1 of the identity matrix of a size."""
    rows = full_like(like, 0, (count, size))
    rows.reshape(-1)[start :: size + 1][:count] = 1
    return as_seed(rows, like)


@keeps_parameters
@transform
def jacobian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    mode: str = "auto",
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    sparse: bool | str = False,
    memory_limit: int | str | None = None,
    executor: Any = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Jacobian by the cheaper mode: forward where the inputs have no more elements than the outputs.

    Args as in `jacrev`; mode is "auto", "fwd" or "rev". To compare sizes, "auto" evaluates the output shape once
    abstractly, or concretely if the function's Python depends on values.

    With sparse=True the result is a SciPy array of shape (elements of the outputs, elements of the arguments), as from
    `func.sparse_jacobian`. With sparse="auto" it is sparse if the pattern needs at most a quarter of the products,
    otherwise dense.

    Example:
        >>> import numpy as np, func
        >>> func.jacobian(lambda x: np.array([x[0] * x[1]]))(np.array([2.0, 3.0]))
        array([[3., 2.]])
    """
    options = locals()
    check_argnums(argnums, f, "jacobian")
    check_chunk(chunk_size, "jacobian", memory_limit)
    if mode not in ("auto", "fwd", "rev"):
        raise ArgumentError(f"func.jacobian: mode must be 'auto', 'fwd' or 'rev', not {mode!r}")
    if sparse not in (False, True, "auto"):
        raise ArgumentError(f"func.jacobian: sparse must be True, False or 'auto', not {sparse!r}")
    if sparse and memory_limit is not None:
        raise ArgumentError(
            "func.jacobian: memory_limit is for dense Jacobians, by chunks; leave out one of sparse and memory_limit"
        )
    if sparse and executor is not None:
        raise ArgumentError("func.jacobian: executor is for dense Jacobians; leave out one of sparse and executor")
    if sparse and (has_aux or holomorphic):
        raise ArgumentError(
            "func.jacobian: a sparse Jacobian has real outputs alone; leave out has_aux and holomorphic"
        )
    sparse_of = WIRING.sparse_jacobian_of(f, argnums, argnames, sparse) if sparse else None

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if sparse_of is not None:
            matrix = sparse_of(args, kwargs)
            if matrix is not None:
                return matrix
        blocks, chosen = _Blocks("jacobian", **options), mode
        if mode == "auto":
            call = blocks.call(args, kwargs)
            interpreter = Jvp("jacobian")
            with TransformScope(interpreter), running(interpreter):
                outs = call.outputs(interpreter, defensive_copies(call.arguments.values()), is_repeated=True)
            inputs = sum([_size(leaf) for leaf in call.arguments.values()])
            chosen = "fwd" if inputs <= sum([_size(out) for out in outs]) else "rev"
        return _BY_MODE[chosen](f, blocks)(args, kwargs)

    return jacobian_of


_BY_MODE = {"fwd": _by_columns, "rev": _by_rows}
_PUBLIC: dict[str, Callable[..., Any]] = {"fwd": jacfwd, "rev": jacrev}


@keeps_parameters
@transform
def hessian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    argnames: str | tuple[str, ...] | None = None,
    mode: str = "auto",
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
    memory_limit: int | str | None = None,
    executor: Any = None,
    intercept: Intercepts = False,
) -> Callable[..., Any]:
    """The Hessian: forward over reverse, so each column costs a few evaluations and all run at once.

    For a function of trees the result has nested trees: output, argument, argument. A scalar function of a vector of
    length n gives shape (n, n).

    Args:
        f: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (hessian, aux).
        mode: "auto" or "fwd-rev" (forward over reverse), "rev-rev", "fwd-fwd", "rev-fwd": outer, then inner mode.
        chunk_size: Columns (rows) at a time, to bound memory.
        holomorphic: Needed for complex arguments; gives the complex second derivatives of a holomorphic function.
        memory_limit: The most memory that a call may need, which determines the chunks; see `jacrev`.
        progress: Show a progress bar over the chunks.
        executor: Where chunks of columns (rows) are computed, as in `vmap`.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Example:
        >>> import numpy as np, func
        >>> func.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    options = locals()
    check_argnums(argnums, f, "hessian")
    check_chunk(chunk_size, "hessian", memory_limit)
    modes = {"auto": ("fwd", "rev")} | {f"{a}-{b}": (a, b) for a in ("fwd", "rev") for b in ("fwd", "rev")}
    if mode not in modes:
        raise ArgumentError(f"func.hessian: mode must be one of {', '.join(modes)}, not {mode!r}")
    outer_mode, inner_mode = modes[mode]
    first_options = {name: options[name] for name in ("argnums", "argnames", "has_aux", "holomorphic")}
    if executor is not None:
        first_of = _PUBLIC[inner_mode](f, **first_options)
        return _BY_MODE[outer_mode](first_of, _Blocks("hessian", **{**options, "f": first_of}))
    first = _BY_MODE[inner_mode](f, _Blocks("hessian", f, **first_options))

    @functools.wraps(f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        return first(args, kwargs)

    return _BY_MODE[outer_mode](derivative, _Blocks("hessian", **{**options, "f": derivative}))


@transform
def lagrangian_hessian(f: Callable[..., Any], *, intercept: Intercepts = False) -> Callable[..., Any]:
    """The Hessian of v · f(x): `lagrangian_hessian(f)(x, v)`, for `hess=` of SciPy's `NonlinearConstraint`.

    Costs as much as the Hessian of a scalar function; the Hessians of the single outputs are never formed.

    Args:
        f: The function; plain NumPy code.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Returns:
        A function of x, of the multipliers v with as many elements as f(x), and of what else f takes. It returns an
        array of shape x.shape + x.shape.

    Raises:
        ArgumentError: v has another number of elements than f(x) (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> f = lambda x: np.array([x[0] ** 2, x[0] * x[1]])
        >>> func.lagrangian_hessian(f)(np.array([1.0, 2.0]), np.array([3.0, 5.0]))
        array([[6., 5.],
               [5., 0.]])
    """

    def hessian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) < 2:
            raise ArgumentError(f"func.lagrangian_hessian({name_of(f)}) takes x and the multipliers v")
        x, multipliers, *others = args

        @functools.wraps(f)
        def weighted(x: Any) -> Any:
            out, weights = tree.ravel(f(x, *others, **kwargs))[0], tree.ravel(multipliers)[0]
            if shape_of(out) != shape_of(weights):
                raise ArgumentError(
                    f"func.lagrangian_hessian: {name_of(f)} returns {_size(out)} numbers, but there are "
                    f"{_size(weights)} multipliers"
                )
            return np.dot(weights, out)

        return hessian(weighted)(x)

    return hessian_of
