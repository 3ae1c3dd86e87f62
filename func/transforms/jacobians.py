"""Jacobians and Hessians: one vjp or jvp, mapped over the basis of the output or input."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.interpreters.core import ZERO, Array, Tracer, dtype_of, is_inexact, shape_of
from func.interpreters.core.errors import ArgumentError
from func.interpreters.drivers import all_mapped, map_flat
from func.interpreters.grad import Grad, pull_back
from func.interpreters.jvp import Jvp
from func.interpreters.primitives.elementwise.builder import conjugate
from func.interpreters.primitives.structural.shapes import full_like, move_axis, reshape, zeros_like
from func.interpreters.primitives.structural.slicing import concatenate
from func.transforms import reverse
from func.transforms.boundary import (
    check_callable,
    differentiable_leaf,
    name_of,
    normalize_argnums,
    output_leaf,
    own,
    own_tree,
    traced,
    unbox,
)
from func.transforms.vmapping import chunks


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pullback per output element, all at once (or chunk_size at a time).

    The result has the tree of the output outside, that of the argument inside; each block has shape
    output.shape + argument.shape. Cheap where outputs are fewer than inputs.

    Args:
        func: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (jacobian, aux).
        chunk_size: Output elements pulled back at a time, to bound memory.
        holomorphic: Needed for complex outputs; gives the complex derivative of a holomorphic function.
        progress: Show a progress bar over the chunks.

    Example:
        >>> import numpy as np, func
        >>> func.jacrev(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    check_callable(func, "jacrev")
    _check_chunk(chunk_size, "jacrev")

    @functools.wraps(func)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, args, kwargs, argnums, has_aux, holomorphic, "jacrev")
        interpreter = Grad("jacrev")
        with traced(interpreter):
            lifted = [interpreter.lift(leaf) for leaf in call.leaves]
            nodes = [tracer.attached for tracer in lifted]
            out = call.run(lifted)
            del lifted
            outs = [
                (o.value, o.attached) if type(o) is Tracer and o.interpreter is interpreter else (o, None) for o in out
            ]
            call.strip_aux(interpreter)
            del out
        call.check_output([value for value, _ in outs])
        blocks: list[list[Array]] = []
        for value, node in outs:
            blocks.append(_pulled(call, value, node, nodes, chunk_size, progress, holomorphic))
        return call.result(blocks)

    return jacobian_of


def _pulled(
    call: _Call,
    value: Array,
    node: Any,
    nodes: Sequence[Any],
    chunk_size: int | None,
    progress: bool,
    holomorphic: bool,
) -> list[Array]:
    """Blocks of one output with respect to every leaf."""
    shape = shape_of(value)
    size = int(np.prod(shape, dtype=np.int64))
    if node is None or size == 0:
        return [full_like(value, 0, (*shape, *shape_of(leaf)), dtype_of(leaf)) for leaf in call.leaves]

    def pull(ct: Array) -> list[Array]:
        cts = pull_back([(node, ct)], nodes)
        return [zeros_like(leaf) if c is ZERO else c for c, leaf in zip(cts, call.leaves, strict=True)]

    if size == 1:
        rows = [expand_front(c, shape) for c in pull(full_like(value, 1))]
    else:
        rows = _over_basis(pull, value, chunk_size, progress, f"jacrev {name_of(call.function)}")
        rows = [reshape(r, shape=(*shape, *shape_of(leaf))) for r, leaf in zip(rows, call.leaves, strict=True)]
    return [conjugate(r) if holomorphic else r for r in rows]


def expand_front(x: Array, shape: tuple[int, ...]) -> Array:
    """x with the (all one) axes of a one-element shape in front."""
    return reshape(x, shape=(*shape, *shape_of(x))) if shape else x


def _over_basis(
    linear: Callable[[Array], list[Array]], like: Array, chunk_size: int | None, progress: bool, label: str
) -> list[Array]:
    """A linear map applied to every unit vector of an array's shape, stacked in front."""
    shape = shape_of(like)
    size = int(np.prod(shape, dtype=np.int64))
    parts = []
    for part in chunks(size, chunk_size or size, progress, label):
        count = part.stop - part.start
        basis = reshape(unit_rows(like, part.start, count, size), shape=(count, *shape))
        outs, mapped = map_flat(linear, count, (True,), (basis,))
        parts.append(all_mapped(outs, mapped, count))
    if len(parts) == 1:
        return parts[0]
    return [concatenate(*pieces, axis=0) for pieces in zip(*parts, strict=True)]


def unit_rows(like: Array, start: int, count: int, size: int) -> Array:
    """Rows start ... start + count - 1 of the identity of a size."""
    rows = full_like(like, 0, (count, size))
    rows.reshape(-1)[start :: size + 1][:count] = 1
    return rows


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one tangent per input element, all at once (or chunk_size at a time).

    Same result as `jacrev`; cheap where inputs are fewer than outputs.

    Example:
        >>> import numpy as np, func
        >>> func.jacfwd(lambda x: x ** 2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    check_callable(func, "jacfwd")
    _check_chunk(chunk_size, "jacfwd")
    if randomness not in ("error", "same", "different"):
        raise ArgumentError(f"func.jacfwd: randomness must be 'error', 'same' or 'different', not {randomness!r}")

    @functools.wraps(func)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, args, kwargs, argnums, has_aux, holomorphic, "jacfwd")
        columns = []
        for position, leaf in enumerate(call.leaves):
            size = int(np.prod(shape_of(leaf), dtype=np.int64))
            if size == 0:
                outs = call.run(call.leaves)
                columns.append([full_like(o, 0, (*shape_of(o), *shape_of(leaf))) for o in outs])
                continue

            def push(tangent: Array, position: int = position, leaf: Array = leaf) -> list[Array]:
                interpreter = Jvp("jacfwd")
                with traced(interpreter):
                    lifted = list(call.leaves)
                    lifted[position] = interpreter.lift(leaf, tangent)
                    pairs = [interpreter.unpack(o) for o in call.run(lifted)]
                    call.strip_aux(interpreter)
                call.check_output([p for p, _ in pairs])
                return [zeros_like(p) if t is ZERO else t for p, t in pairs]

            if size == 1:
                tangents = push(full_like(leaf, 1))
                columns.append([reshape(t, shape=(*shape_of(t), *shape_of(leaf))) for t in tangents])
                continue
            stacked = _over_basis(push, leaf, chunk_size, progress, f"jacfwd {name_of(func)}")
            columns.append(
                [
                    reshape(move_axis(s, 0, len(shape_of(s)) - 1), shape=(*shape_of(s)[1:], *shape_of(leaf)))
                    for s in stacked
                ]
            )
        return call.result([list(blocks) for blocks in zip(*columns, strict=True)])

    return jacobian_of


class _Call:
    """One call of a function to differentiate by blocks: the chosen leaves, and trees to put blocks back into."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Any,
        has_aux: bool,
        holomorphic: bool,
        transform: str,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.argnums = argnums
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.transform = transform
        self.aux: Any = None
        self.out_spec: Any = None
        if not args:
            raise ArgumentError(f"func.{transform}: {name_of(function)} was called without positional arguments")
        self.places = normalize_argnums(argnums, len(args), transform, function)
        self.specs = []
        self.leaves: list[Array] = []
        self._slots: list[list[tuple[bool, Any]]] = []
        for place in self.places:
            leaves, spec = tree.flatten(args[place])
            top = spec.num_nodes == 1
            names = [f"argument {place}"] if top else tree.path_names(args[place], f"argument {place}")
            slots = []
            for leaf, path in zip(leaves, names, strict=True):
                active = differentiable_leaf(leaf, path, transform, top, False)
                if active is None:
                    slots.append((False, leaf))
                    continue
                if holomorphic and dtype_of(active).kind != "c":
                    raise ArgumentError(f"func.{transform}(holomorphic=True) needs complex input, but {path} is not")
                if not holomorphic and dtype_of(active).kind == "c":
                    raise ArgumentError(
                        f"func.{transform}: {path} is complex; pass holomorphic=True for the derivative of a "
                        "holomorphic function, or differentiate with respect to its real and imaginary parts"
                    )
                slots.append((True, len(self.leaves)))
                self.leaves.append(active)
            self._slots.append(slots)
            self.specs.append(spec)

    def run(self, leaves: Sequence[Array]) -> list[Array]:
        """The flat outputs on these leaves."""
        args = list(self.args)
        for place, spec, slots in zip(self.places, self.specs, self._slots, strict=True):
            args[place] = tree.unflatten(spec, [leaves[value] if active else value for active, value in slots])
        out = self.function(*args, **self.kwargs)
        if self.has_aux:
            out, self.aux = reverse.split_aux(out, self.transform, self.function)
        outs, self.out_spec = tree.flatten(out)
        return [unbox(output_leaf(o, "output", self.transform)) for o in outs]

    def strip_aux(self, interpreter: Any) -> None:
        """aux leaves the level as plain values."""
        if self.has_aux:
            self.aux = tree.map(
                lambda leaf: leaf.value if type(leaf) is Tracer and leaf.interpreter is interpreter else leaf,
                self.aux,
            )

    def check_output(self, values: Sequence[Array]) -> None:
        """Outputs must be floating point, and complex exactly for holomorphic=True."""
        for value in values:
            dtype = dtype_of(value)
            if dtype.kind == "c" and not self.holomorphic:
                raise TypeError(
                    f"func.{self.transform} of a complex output needs holomorphic=True; {name_of(self.function)} "
                    f"returned {dtype}"
                )
            if not is_inexact(dtype):
                raise TypeError(
                    f"func.{self.transform} needs floating point outputs, but {name_of(self.function)} returned {dtype}"
                )

    def result(self, blocks: list[list[Array]]) -> Any:
        """The output's tree of argument trees of blocks."""
        flat = own([block for row in blocks for block in row])
        count = len(self.leaves)
        rows = []
        for i in range(len(blocks)):
            row = flat[i * count : (i + 1) * count]
            per_argument = [
                tree.unflatten(spec, [row[value] if active else None for active, value in slots])
                for spec, slots in zip(self.specs, self._slots, strict=True)
            ]
            rows.append(tuple(per_argument) if isinstance(self.argnums, (tuple, list)) else per_argument[0])
        result = tree.unflatten(self.out_spec, rows)
        return (result, own_tree(self.aux)) if self.has_aux else result


def _check_chunk(chunk_size: Any, transform: str) -> None:
    if chunk_size is not None and (not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1):
        raise ArgumentError(f"func.{transform}: chunk_size must be a positive int or None, not {chunk_size!r}")


def jacobian(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    mode: str = "auto",
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by the cheaper mode: forward where the inputs have no more elements than the outputs.

    Args as in `jacrev`; mode is "auto", "fwd" or "rev". "auto" evaluates the function's output shape once abstractly,
    or, where its Python depends on values, concretely.

    Example:
        >>> import numpy as np, func
        >>> func.jacobian(lambda x: np.array([x[0] * x[1]]))(np.array([2.0, 3.0]))
        array([[3., 2.]])
    """
    check_callable(func, "jacobian")
    _check_chunk(chunk_size, "jacobian")
    if mode not in ("auto", "fwd", "rev"):
        raise ArgumentError(f"func.jacobian: mode must be 'auto', 'fwd' or 'rev', not {mode!r}")

    @functools.wraps(func)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        chosen = mode
        if mode == "auto":
            call = _Call(func, args, kwargs, argnums, has_aux, holomorphic, "jacobian")
            inputs = sum([int(np.prod(shape_of(leaf))) for leaf in call.leaves])
            outputs = _output_size(call)
            chosen = "fwd" if inputs <= outputs else "rev"
        transform = jacfwd if chosen == "fwd" else jacrev
        return transform(func, argnums, has_aux, chunk_size=chunk_size, holomorphic=holomorphic, progress=progress)(
            *args, **kwargs
        )

    return jacobian_of


def _output_size(call: _Call) -> int:
    interpreter = Jvp("jacobian")
    with traced(interpreter):
        outs = call.run(call.leaves)
    return sum([int(np.prod(shape_of(out))) for out in outs])


def hessian(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    mode: str = "auto",
    chunk_size: int | None = None,
    progress: bool = False,
) -> Callable[..., Any]:
    """The Hessian: forward over reverse, so each column costs a few evaluations and all run at once.

    For a function of trees the result nests the trees: output, argument, argument. A scalar function of a vector of
    length n gives shape (n, n).

    Args:
        func: The function; plain NumPy code.
        argnums: Position or positions to differentiate.
        has_aux: The function returns (output, aux); the result is then (hessian, aux).
        mode: "auto" or "fwd-rev" (forward over reverse), "rev-rev", "fwd-fwd", "rev-fwd": outer, then inner mode.
        chunk_size: Columns (rows) at a time, to bound memory.
        progress: Show a progress bar over the chunks.

    Example:
        >>> import numpy as np, func
        >>> func.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    check_callable(func, "hessian")
    _check_chunk(chunk_size, "hessian")
    modes = {"auto": ("fwd", "rev")} | {f"{a}-{b}": (a, b) for a in ("fwd", "rev") for b in ("fwd", "rev")}
    if mode not in modes:
        raise ArgumentError(f"func.hessian: mode must be one of {', '.join(modes)}, not {mode!r}")
    outer, inner = modes[mode]
    by_mode: dict[str, Callable[..., Any]] = {"fwd": jacfwd, "rev": jacrev}
    first = by_mode[inner](func, argnums, has_aux)
    return functools.wraps(func)(by_mode[outer](first, argnums, has_aux, chunk_size=chunk_size, progress=progress))
