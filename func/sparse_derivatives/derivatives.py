"""Sparse Jacobians and Hessians as SciPy's arrays: pattern, colouring, and one compiled evaluation of all entries."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import math
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from func import tree
from func.compilation.jit import jit
from func.compilation.staging import stage_call, stage_with_variant
from func.errors import ArgumentError, DifferentiatedInputError, NotDifferentiableError, StagingError
from func.interpreters import nan_safe
from func.interpreters.core import Array, Tracer, aval_of, is_inexact
from func.interpreters.program.program import Program
from func.sparse_derivatives.coloring import AcyclicColoring, bipartite, check_coloring, color_columns, color_star
from func.sparse_derivatives.dependence import UNKNOWN, dependence
from func.sparse_derivatives.index_sets import MAX_ENTRIES, IndexSets
from func.sparse_derivatives.terms import NotWorthwhile, entries
from func.transforms.arguments import Selection
from func.transforms.boundary import array_leaf, name_of
from func.transforms.forward import jvp
from func.transforms.reverse import grad, vjp
from func.transforms.transformed import keeps_parameters, transform
from func.transforms.vmapping import vmap

FEW_COLORS = 12
"""Up to this number of colours a bidirectional colouring is not tried."""
MAX_PLANS = 32
"""The number of values of integer arrays with stored evaluations."""
MAX_KINDS = 256
"""The number of shapes, dtypes and numbers with stored evaluations."""
CONSTANT_TYPES = (
    *(bool, int, str, bytes, type(None), type(Ellipsis), range, enum.Enum, np.number, np.bool_, np.character),
    *(np.datetime64, np.dtype, np.ufunc, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType),
)
"""The fixed parts of a function, read once, like a closure."""
WORTH = 4
"""The factor of fewer products than for the dense Jacobian at which "auto" becomes sparse."""


@keeps_parameters
@transform
def sparsity(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    argnames: str | tuple[str, ...] | None = None,
    at_point: bool = False,
) -> Callable[..., Any]:
    """The pattern of the Jacobian, from the function's Program, without derivatives.

    Called with the function's arguments, it returns a SciPy CSR array of truth values. Its shape is (elements of all
    outputs, elements of all selected arguments), in C order and in the order of the leaves. It contains every entry
    that can be nonzero for some values of the floating point arguments. Integers, truth values and non-arrays are
    fixed: indices and conditions computed from them tighten the pattern.

    Args:
        f: The function; plain NumPy code without Python decisions on values.
        argnums: Position or positions to differentiate.
        argnames: Keyword or keywords to differentiate.
        at_point: Use the values of all arguments: the pattern of this one Jacobian. It lacks entries that are zero by a
            zero factor, another branch, or another operand's maximum.

    Raises:
        StagingError: The function's Python or its shapes depend on values.

    Example:
        >>> import numpy as np, func
        >>> pattern = func.sparsity(lambda x: x[1:] * x[:-1])(np.ones(4))
        >>> pattern.toarray().astype(int)
        array([[1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 0, 1, 1]])
        >>> print(func.spy(pattern))
        3 × 4, 6 entries
        ■■··
        ·■■·
        ··■■
    """
    selection = Selection(f, "sparsity", argnums, argnames)

    def pattern_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = _Call(f, selection, args, kwargs)
        return call.pattern(call.program(), at_point)

    return pattern_of


@keeps_parameters
@transform
def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    argnames: str | tuple[str, ...] | None = None,
    pattern: Any = None,
    coloring: Any = None,
    check: bool = False,
    intercept: Any = False,
) -> Callable[..., Any]:
    """The Jacobian as a SciPy CSR array, entry by entry or by few products instead of one for each column.

    Its shape is (elements of all outputs, elements of all chosen arguments), as in `sparsity`. The first call with
    arguments of certain shapes finds the pattern, colours it and compiles the evaluation; later calls run native code.
    If each value depends on few elements, as in stencils, the code computes the entries directly. Otherwise columns
    without a common row share a product, or rows share pullbacks if that needs fewer. A few dense rows and columns use
    both. All calls return the same structure, and store zeros in it. Calls share the read-only arrays of the structure;
    `.copy()` does not.

    Args:
        f: The function; plain NumPy code without Python decisions on values.
        argnums: Position or positions to differentiate.
        argnames: Keyword or keywords to differentiate.
        pattern: The pattern to use in place of `sparsity`: a dense matrix, nonzero at the entries, or a sparse one
            that stores them. Entries that it misses are lost and spoil others; `check` finds them.
        coloring: The colour of each column, non-negative integers; columns of one colour have no common row.
        check: Compare each result with a product in a random direction.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        ArgumentError: The pattern or the colouring does not fit, or `check` found an entry outside the pattern.
        StagingError: The function's Python or its shapes depend on values.

    Example:
        >>> import numpy as np, func
        >>> jacobian = func.sparse_jacobian(lambda x: x[1:] * x[:-1])
        >>> jacobian(np.array([1.0, 2.0, 3.0])).toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
    """
    return _evaluations(f, Selection(f, "sparse_jacobian", argnums, argnames), pattern, coloring, check)


@keeps_parameters
@transform
def sparse_hessian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    argnames: str | tuple[str, ...] | None = None,
    pattern: Any = None,
    coloring: Any = None,
    check: bool = False,
    intercept: Any = False,
) -> Callable[..., Any]:
    """The Hessian of a function with one real output as a SciPy CSR array, by few Hessian-vector products.

    Its rows and columns are the elements of all selected arguments. The pattern is that of the gradient's Jacobian.
    Unless it computes the entries directly, a star colouring groups the columns by use of the symmetry. Otherwise as
    `sparse_jacobian`.

    Args:
        f: The function, which returns one number; plain NumPy code without Python decisions on values.
        argnums: Position or positions to differentiate.
        argnames: Keyword or keywords to differentiate.
        pattern: The pattern to use, a symmetric matrix, as in `sparse_jacobian`.
        coloring: The colour of each column; columns of one colour have no common row. Or "acyclic": an acyclic
            colouring, which needs fewer products than the default, "star", and substitution for entries off the
            diagonal. This pays off for expensive products; rounding errors add up along the trees.
        check: Compare each result with a product in a random direction.
        intercept: Run the function inside `func.intercept()`; True, or its modules.

    Raises:
        ArgumentError: The function returns more than one number, the pattern or the colouring does not fit, or `check`
            found an entry outside the pattern.
        StagingError: The function's Python or its shapes depend on values.

    Example:
        >>> import numpy as np, func
        >>> hessian = func.sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))
        >>> hessian(np.array([1.0, 2.0, 3.0])).toarray()
        array([[4., 2., 0.],
               [2., 6., 4.],
               [0., 4., 0.]])
    """
    return _evaluations(f, Selection(f, "sparse_hessian", argnums, argnames), pattern, coloring, check)


def _evaluations(
    f: Callable[..., Any], selection: Selection, pattern: Any, coloring: Any, check: bool
) -> Callable[..., Any]:
    """The calls of a sparse derivative; `sparse_entries` returns the computation of its entries for `func.to_c`."""
    evaluate = _Evaluations(f, selection)
    evaluate.user_options = pattern, coloring, check
    call: Any = functools.partial(evaluate)
    call.sparse_entries = evaluate.entries
    return call  # type: ignore[no-any-return]


class _Call:
    """One call: the floating point leaves, which vary, and everything else as a part of the function."""

    __slots__ = ("active", "function", "leaves", "selection", "spec", "varying")

    def __init__(
        self, function: Callable[..., Any], selection: Selection, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.function = function
        self.selection = selection
        places = selection.places(args, kwargs)
        self.leaves, self.spec = tree.flatten((args, kwargs))
        self.varying = [i for i, leaf in enumerate(self.leaves) if _is_float_leaf(leaf)]
        self.active = self._active(args, kwargs, places)
        """The leaves to differentiate, by their positions among all leaves."""

    def _active(self, args: tuple[Any, ...], kwargs: dict[str, Any], places: Sequence[int | str]) -> list[int]:
        transform = self.selection.transform
        for leaf in self.leaves:
            if isinstance(leaf, Tracer):
                raise _untraceable(transform)
        marked = ([i in places for i in range(len(args))], {key: key in places for key in kwargs})
        chosen: list[int] = []
        start = 0
        for value, is_chosen in (
            *zip(args, marked[0], strict=True),
            *[(kwargs[key], marked[1][key]) for key in sorted(kwargs)],
        ):
            count = len(tree.leaves(value))
            if is_chosen:
                chosen.extend(range(start, start + count))
            start += count
        varying = set(self.varying)
        for i in chosen:
            leaf = self.leaves[i]
            if i in varying and aval_of(leaf).dtype.kind == "c" and transform != "sparsity":
                raise ArgumentError(
                    f"func.{transform}: complex arguments are not supported; differentiate with respect to real and "
                    "imaginary parts, x[0] + 1j * x[1]"
                )
        active = [i for i in chosen if i in varying]
        if not active:
            if chosen:
                array_leaf(self.leaves[chosen[0]], "the argument", transform)
            raise DifferentiatedInputError(
                f"func.{transform}: the chosen arguments of {name_of(self.function)} hold no floating point array"
            )
        return active

    def key(self) -> Any:
        """The facts on which the Program depends besides the static arrays and mutable objects."""
        varying = set(self.varying)
        entries: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if i in varying:
                entries.append((getattr(leaf, "shape", None), getattr(leaf, "dtype", float)))
            elif isinstance(leaf, np.ndarray):
                entries.append((leaf.shape, leaf.dtype))
            else:
                entries.append((type(leaf), leaf if isinstance(leaf, CONSTANT_TYPES) else None))
        return self.spec, tuple(entries)

    def static_arrays(self) -> list[Any]:
        """Arrays of integers and the like, whose values may determine the pattern."""
        varying = set(self.varying)
        return [
            leaf
            for i, leaf in enumerate(self.leaves)
            if i not in varying and isinstance(leaf, np.ndarray) and leaf.dtype.kind != "O"
        ]

    def has_objects(self) -> bool:
        """Whether something may have changed that no comparison of arguments shows."""
        varying = set(self.varying)
        return any(
            [
                leaf.dtype.kind == "O" if isinstance(leaf, np.ndarray) else not isinstance(leaf, CONSTANT_TYPES)
                for i, leaf in enumerate(self.leaves)
                if i not in varying
            ]
        )

    def program(self) -> tuple[Program, Any]:
        """The Program of the varying leaves, everything else fixed, and the structure of its output."""
        fixed = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in self.leaves]
        varying, spec, function = self.varying, self.spec, self.function

        def closed(*values: Any) -> Any:
            full = list(fixed)
            for i, value in zip(varying, values, strict=True):
                full[i] = value
            args, kwargs = tree.unflatten(spec, full)
            return function(*args, **kwargs)

        closed.__name__ = closed.__qualname__ = name_of(function)
        program, out_spec = stage_with_variant(closed, tuple(self.values()), {}, (), self.selection.transform)
        return program.pruned(), out_spec

    def values(self) -> list[Any]:
        """The varying leaves."""
        return [self.leaves[i] for i in self.varying]

    def inputs(self) -> list[int]:
        """The positions of the leaves to differentiate among the varying ones."""
        return [self.varying.index(i) for i in self.active]

    def sizes(self) -> list[int]:
        """The numbers of elements of the leaves to differentiate."""
        return [math.prod(np.shape(self.leaves[i])) for i in self.active]

    def pattern(self, program_and_tree: tuple[Program, Any], at_point: bool = False) -> Any:
        """The pattern of the Jacobian of a Program of the varying leaves by the active ones."""
        program = program_and_tree[0]
        count = sum(self.sizes())
        sets: list[IndexSets | None] = [None] * len(self.varying)
        start = 0
        for position, size in zip(self.inputs(), self.sizes(), strict=True):
            sets[position] = IndexSets.identity(program.inputs[position].shape, start, count)
            start += size
        values = self.values() if at_point else [UNKNOWN] * len(self.varying)
        blocks = []
        for out, result in zip(program.outputs, dependence(program, sets, values, at_point), strict=True):
            size = math.prod(np.shape(out))
            blocks.append(scipy.sparse.csr_array((size, count), dtype=bool) if result is None else result.rows)
        blocks = blocks or [scipy.sparse.csr_array((0, count), dtype=bool)]
        return _ordered(blocks[0] if len(blocks) == 1 else scipy.sparse.vstack(blocks, format="csr"), count)


def _ordered(pattern: Any, count: int) -> Any:
    """A pattern with sorted indices of the smaller integer type."""
    matrix = scipy.sparse.csr_array(pattern)
    matrix.sum_duplicates()
    kind = np.int32 if max(matrix.nnz, count) < 2**31 - 1 else np.int64
    parts = np.ones(matrix.nnz, bool), matrix.indices.astype(kind), matrix.indptr.astype(kind)
    return scipy.sparse.csr_array(parts, shape=matrix.shape)


def _is_float_leaf(leaf: Any) -> bool:
    """Whether a leaf has a floating point dtype."""
    if isinstance(leaf, (float, complex)):
        return True
    dtype = getattr(leaf, "dtype", None)
    return isinstance(dtype, np.dtype) and is_inexact(dtype)


def _untraceable(transform: str) -> TypeError:
    return TypeError(
        f"func.{transform} makes a SciPy array, which no transform can trace: call it outside of grad, vmap and jit, "
        "or use func.jacobian there"
    )


class _Evaluations:
    """The compiled evaluations of a derivative, one for each kind of arguments."""

    def __init__(self, function: Callable[..., Any], selection: Selection) -> None:
        self.function = function
        self.selection = selection
        self.user_options: tuple[Any, Any, bool] = (None, None, False)
        self._plans: dict[Any, list[tuple[list[Any], _Plan]]] = {}
        self._plans_of_arrays: dict[Any, _Plan] = {}
        """The evaluations for calls whose arguments are plain floating point arrays, by shapes and dtypes."""

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values: Sequence[Any]
        if not kwargs and all([type(arg) is np.ndarray and arg.dtype.kind == "f" for arg in args]):
            key = tuple([(arg.shape, arg.dtype) for arg in args])
            values, plan = args, self._plans_of_arrays.get(key)
            if plan is None:
                plan = self._plans_of_arrays[key] = self.plan(_Call(self.function, self.selection, args, kwargs))
        else:
            call = _Call(self.function, self.selection, args, kwargs)
            values, plan = call.values(), self.plan(call)
        matrix = plan.matrix(values)
        if self.user_options[2]:
            plan.check(values, matrix)
        return matrix

    def entries(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, list[Any], list[int]]:
        """(function of floating point leaves that computes the entries, pattern, those leaves, their places)."""
        call = _Call(self.function, self.selection, args, kwargs)
        plan = self.plan(call)
        return plan.compute, plan.pattern, call.values(), call.varying

    def plan(self, call: _Call) -> _Plan:
        """The evaluation for a call like this one."""
        arrays = call.static_arrays()
        plans = self._plans.setdefault(call.key(), [])
        if len(self._plans) > MAX_KINDS:
            self._plans.pop(next(iter(self._plans)), None)
        program = call.program()[0] if plans and call.has_objects() else None
        for known, plan in plans:
            is_same = program is None or program == plan.program
            if is_same and all([np.array_equal(a, b) for a, b in zip(known, arrays, strict=True)]):
                return plan
        make = _HessianPlan if self.selection.transform == "sparse_hessian" else _JacobianPlan
        plan = make(call, self.user_options[0], self.user_options[1])
        del plans[: len(plans) - MAX_PLANS + 1]
        plans.append(([array.copy() for array in arrays], plan))
        return plan


class _Plan:
    """The structure of the matrix and the compiled function that computes its entries."""

    compute: Callable[..., Any]
    pattern: Any
    products: int
    """The number of products with the matrix in an evaluation."""
    program_of_terms: Program | None = None
    """The function whose Jacobian the matrix is, if its pattern is not a user's."""
    multiply: Callable[..., Any] | None = None
    """The function that computes a product for `check`; compiled at its first use."""

    def __init__(self, call: _Call) -> None:
        self.transform = call.selection.transform
        self.name = name_of(call.function)
        self.program, self.out_spec = call.program()
        if self.program.communicates:
            raise TypeError(
                f"func.{self.transform}: the function exchanges messages with other processes, so this one does not "
                "see which inputs an output depends on; take it of a part that does not, or use func.jacobian"
            )
        if any([isinstance(x, Tracer) for x in (*self.program.constants.values(), *self.program.outputs)]):
            raise _untraceable(self.transform)
        self.active = call.inputs()
        self.shapes = [self.program.inputs[i].shape for i in self.active]
        self.dtype = np.result_type(*[self.program.inputs[i].dtype for i in self.active])
        self.sizes = call.sizes()
        self.starts = np.cumsum([0, *self.sizes])
        self._check_outputs()

    def _check_outputs(self) -> None:
        for out in self.program.outputs:
            dtype = out.dtype if hasattr(out, "dtype") else aval_of(out).dtype
            if dtype.kind == "c":
                raise TypeError(
                    f"func.{self.transform}: {self.name} returned complex numbers; return their real and imaginary "
                    "parts"
                )
            if not is_inexact(dtype):
                raise TypeError(f"func.{self.transform} needs floating point outputs, but {self.name} returned {dtype}")

    def user_pattern(self, stored: Any, shape: tuple[int, int]) -> Any:
        """A user's pattern, checked."""
        if scipy.sparse.issparse(stored):  # a stored zero is an entry, too
            stored = scipy.sparse.csr_array(stored)
            stored = scipy.sparse.csr_array(
                (
                    np.ones(stored.nnz, bool),
                    stored.indices,
                    stored.indptr,
                ),
                shape=stored.shape,
            )
        matrix = stored if scipy.sparse.issparse(stored) else np.asarray(stored)
        if matrix.ndim != 2 or matrix.shape != shape:
            raise ArgumentError(
                f"func.{self.transform}: the pattern has shape {matrix.shape}, but the derivative of {self.name} has "
                f"{shape}"
            )
        return _ordered(scipy.sparse.csr_array(matrix != 0), shape[1])

    def matrix(self, values: Sequence[Any]) -> Any:
        """The derivative at these leaves."""
        matrix = copy.copy(self.pattern)  # its structure is checked
        matrix.data = self.compute(*values)
        if isinstance(matrix.data, Tracer):  # the function closes over a traced value
            raise _untraceable(self.transform)
        return matrix

    @property
    def reference(self) -> Any:
        """A weak reference for the functions of the plan: a cycle would wait for the garbage collector."""
        return weakref.proxy(self)

    def evaluate_by(self, products: Callable[..., Any]) -> None:
        """Compute the entries term by term if that takes less work than the products of the colouring."""
        plan = self.reference

        def compute(*values: Any) -> Any:
            if plan.program_of_terms is not None and not nan_safe.are_zeros_structural():
                with contextlib.suppress(NotWorthwhile):
                    data = entries(plan.program_of_terms, values, plan.active, plan.pattern, plan.products)
                    nan_safe.note_pullback([data])
                    return _for_scipy(data)
            return _for_scipy(products(*values))

        self.compute = jit(compute)

    def freeze(self) -> None:
        """Make the structure, which all results share, read-only; a matrix without entries needs no evaluation."""
        self.check_products()
        if not self.pattern.nnz:
            self.products = 0
            self.compute = lambda *values: _for_scipy(np.zeros(0, self.dtype))
        self.pattern.indices.flags.writeable = False
        self.pattern.indptr.flags.writeable = False

    def check_products(self) -> None:
        """Raise ArgumentError for products that would not fit in memory."""
        if self.products * max(self.pattern.shape) > MAX_ENTRIES:
            raise ArgumentError(
                f"func.{self.transform}: the pattern of shape {self.pattern.shape} needs {self.products} products, "
                f"which do not fit in memory; the derivative of {self.name} is not sparse enough: use func.jvp, "
                "func.vjp or func.hvp for its products"
            )

    def function_of(self, values: Sequence[Any]) -> Callable[..., Any]:
        """The tuple of outputs as a function of the active leaves, the others fixed."""

        def run(*active: Any) -> Any:
            full = list(values)
            for position, value in zip(self.active, active, strict=True):
                full[position] = value
            return self.outputs(full)

        return run

    def outputs(self, leaves: Sequence[Any]) -> Any:
        """The function to differentiate for the matrix."""
        return self.function_program().run(leaves)

    def function_program(self) -> Program:
        """The Program of the function, with active structural zeros in its own derivatives."""
        variant = self.program.nan_safe
        return variant if variant is not None and nan_safe.are_zeros_structural() else self.program

    def split(self, vectors: Array, lead: tuple[int, ...]) -> tuple[Array, ...]:
        """Vectors of all elements of the active leaves as trees of the leaves' shapes."""
        parts = [vectors[..., a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        return tuple(
            [
                part.reshape((*lead, *shape)).astype(self.program.inputs[i].dtype)
                for part, shape, i in zip(parts, self.shapes, self.active, strict=True)
            ]
        )

    def products_by_columns(self, values: Sequence[Any], colors: Any, count: int) -> Any:
        """The products with the sums of the columns of each colour, (count, rows)."""
        seeds = self.split(_units(colors, count), (count,))
        primals = tuple([values[i] for i in self.active])
        run = self.function_of(values)
        outs = vmap(lambda *tangents: jvp(run, primals, tangents)[1])(*seeds)
        flat = [np.reshape(out, (count, -1)) for out in outs]
        return flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)

    def products_by_rows(self, values: Sequence[Any], colors: Any, count: int) -> Any:
        """The products of the sums of the rows of each colour, (count, columns)."""
        run = self.function_of(values)
        primals = tuple([values[i] for i in self.active])
        outs, pullback = vjp(run, *primals)
        seeds = []
        start = 0
        for out in outs:
            part = colors[start : start + np.size(out)]
            start += np.size(out)
            seeds.append(_units(part, count).reshape((count, *np.shape(out))).astype(np.result_type(out)))
        rows = vmap(lambda *cts: pullback(cts))(*seeds)
        flat = [np.reshape(x, (count, -1)) for x in (rows if isinstance(rows, tuple) else (rows,))]
        return flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)

    def product(self, values: Sequence[Any], direction: Array) -> Array:
        """The product of the matrix with a vector."""
        primals = tuple([values[i] for i in self.active])
        outs = jvp(self.function_of(values), primals, self.split(direction, ()))[1]
        return np.concatenate([np.reshape(out, -1) for out in outs])

    def check(self, values: Sequence[Any], matrix: Any) -> None:
        """Raise ArgumentError if a product in a random direction differs from the matrix's."""
        rng = np.random.default_rng(0)
        direction = rng.uniform(0.5, 1.5, matrix.shape[1]) * rng.choice([-1.0, 1.0], matrix.shape[1])
        multiply = self.multiply
        if multiply is None:
            plan = self.reference
            multiply = self.multiply = jit(lambda direction, *values: plan.product(values, direction))
        true = multiply(direction, *values)
        product = matrix @ direction
        scale = abs(matrix) @ abs(direction) + abs(true)
        outs = [x.dtype for equation in self.program.equations for x in equation.outputs if is_inexact(x.dtype)]
        precision = max([np.finfo(x) for x in (matrix.dtype, true.dtype, *outs)], key=lambda info: float(info.eps))
        wrong = ~(abs(product - true) <= 1e3 * float(precision.eps) * scale + float(precision.tiny))
        wrong &= np.isfinite(true)
        if not wrong.any():
            return
        row = int(np.argmax(np.where(wrong, abs(product - true), 0)))
        unit = np.ones(matrix.shape[0], np.uint8)
        unit[row] = 0  # the one row of the one colour
        try:
            true_row = jit(lambda *values: self.products_by_rows(values, unit, 1))(*values)[0]
        except NotDifferentiableError:  # products by columns tell the row alone
            true_row = np.zeros(matrix.shape[1])
        inside = np.zeros(matrix.shape[1], bool)
        inside[self.pattern.indices[self.pattern.indptr[row] : self.pattern.indptr[row + 1]]] = True
        missing = np.flatnonzero((true_row != 0) & ~inside)
        what = (
            f"it misses the entry ({row}, {missing[0]}), which is {true_row[missing[0]]:.6g}"
            if len(missing)
            else f"row {row} misses an entry or is spoilt by one that is missing elsewhere"
        )
        raise ArgumentError(
            f"func.{self.transform}: the pattern is too small for {self.name}: {what}; add it, or leave out pattern"
        )


class _JacobianPlan(_Plan):
    def __init__(self, call: _Call, user_matrix: Any, coloring: Any) -> None:
        super().__init__(call)
        rows = sum([math.prod(np.shape(out)) for out in self.program.outputs])
        shape = rows, int(self.starts[-1])
        if user_matrix is None:
            self.pattern = pattern = call.pattern((self.program, None))
            self.program_of_terms = self.program if coloring is None else None
        else:
            self.pattern = pattern = self.user_pattern(user_matrix, shape)
        entries = np.repeat(np.arange(rows), np.diff(pattern.indptr))
        columns = pattern.indices.astype(np.int64)
        if coloring is not None:
            check_coloring(pattern, coloring, self.transform)
            self._by_columns(np.unique(coloring, return_inverse=True)[1], entries, columns)
        else:
            self._colored(entries, columns)
        self.freeze()

    def _colored(self, entries: Any, columns: Any) -> None:
        """Choose the direction that takes fewest products."""
        pattern = self.pattern
        bounds = [int(np.diff(pattern.indptr).max(initial=0)), int(np.bincount(columns, minlength=1).max(initial=0))]
        colorings: list[Any] = [None, None]
        counts: list[float] = [math.inf, math.inf]
        for direction in (0, 1) if bounds[0] <= bounds[1] else (1, 0):
            if min(counts) > FEW_COLORS and min(counts) > bounds[direction]:
                colorings[direction] = color_columns(pattern.T.tocsr() if direction else pattern)
                counts[direction] = int(colorings[direction].max(initial=-1)) + 1
        if min(counts) > FEW_COLORS and self._by_both(entries, columns, min(counts)):
            return
        if counts[0] <= counts[1]:
            self._by_columns(colorings[0], entries, columns)
        else:
            self._by_rows(colorings[1], entries, columns)

    def _by_columns(self, colors: Any, entries: Any, columns: Any) -> None:
        self.evaluate_by(self._column_products(colors, entries, columns))

    def _column_products(self, colors: Any, entries: Any, columns: Any) -> Callable[..., Any]:
        count = int(colors.max(initial=-1)) + 1
        colors = _small(colors)
        places = _places(colors[columns].astype(np.int64) * self.pattern.shape[0] + entries)
        self.products = count
        plan = self.reference
        return lambda *values: _read(plan.products_by_columns(values, colors, count), places)

    def _or_by_columns(self, products: Callable[..., Any], entries: Any, columns: Any) -> Callable[..., Any]:
        """Products by pullbacks; by columns for a function without a pullback, such as a loop of unknown length."""
        plan = self.reference

        def compute(*values: Any) -> Any:
            try:
                return products(*values)
            except NotDifferentiableError:
                by_columns = plan._column_products(color_columns(plan.pattern), entries, columns)
                plan.check_products()
                return by_columns(*values)

        return compute

    def _by_rows(self, colors: Any, entries: Any, columns: Any) -> None:
        count = int(colors.max(initial=-1)) + 1
        colors = _small(colors)
        places = _places(colors[entries].astype(np.int64) * self.pattern.shape[1] + columns)
        self.products = count
        plan = self.reference
        self.evaluate_by(
            self._or_by_columns(
                lambda *values: _read(plan.products_by_rows(values, colors, count), places), entries, columns
            )
        )

    def _by_both(self, entries: Any, columns: Any, least: float) -> bool:
        """Read each entry from a column's or a row's product, if that takes at most half the products."""
        rows, width = self.pattern.shape
        star = color_star(bipartite(self.pattern))
        hubs = star.hubs[: len(entries)]  # the entries of [0, J] come first
        is_row = hubs < rows
        used_rows, by_row = np.unique(star.colors[hubs[is_row]], return_inverse=True)
        used_columns, by_column = np.unique(star.colors[hubs[~is_row]], return_inverse=True)
        if len(used_rows) + len(used_columns) > least / 2:
            return False
        row_colors = _renumbered(star.colors[:rows], used_rows)
        column_colors = _renumbered(star.colors[rows:], used_columns)
        places = np.empty(len(entries), np.int64)
        places[~is_row] = by_column.reshape(-1) * rows + entries[~is_row]
        places[is_row] = len(used_columns) * rows + by_row.reshape(-1) * width + columns[is_row]

        plan = self.reference

        def compute(*values: Any) -> Any:
            down = plan.products_by_columns(values, column_colors, len(used_columns))
            across = plan.products_by_rows(values, row_colors, len(used_rows))
            return _read(np.concatenate([down.reshape(-1), across.reshape(-1)]), places)

        self.products = len(used_columns) + len(used_rows)
        self.evaluate_by(self._or_by_columns(compute, entries, columns))
        return True


def _for_scipy(data: Any) -> Any:
    """Entries of a dtype for SciPy's sparse arrays, which lack half precision."""
    return data.astype(np.float32) if data.dtype == np.float16 else data


def _units(colors: Any, count: int) -> Any:
    """For each colour the vector with ones at its members; constants, so that shifts of them are computed once."""
    return colors[None] == np.arange(count, dtype=colors.dtype)[:, None]


def _renumbered(colors: Any, used: Any) -> Any:
    """Colours as positions among those used; others get the number of none."""
    numbers = np.full(int(colors.max(initial=0)) + 2, len(used))
    numbers[used[used < len(numbers)]] = np.flatnonzero(used < len(numbers))
    return _small(numbers[colors])


def _small(colors: Any) -> Any:
    """Colours as the smallest integers that hold them."""
    return colors.astype(np.min_scalar_type(int(colors.max(initial=0)) + 1))


def _places(places: Any) -> Any:
    return places.astype(np.int32) if places.max(initial=0) < 2**31 - 1 else places


def _read(products: Any, places: Any) -> Any:
    """The entries, at their places among the products."""
    return np.reshape(products, -1)[places]


class _HessianPlan(_Plan):
    def __init__(self, call: _Call, user_matrix: Any, coloring: Any) -> None:
        super().__init__(call)
        if len(self.program.outputs) != 1 or np.shape(self.program.outputs[0]) != ():
            shapes = [np.shape(out) for out in self.program.outputs]
            raise ArgumentError(
                f"func.sparse_hessian needs a function that returns one number, but {self.name} returned "
                f"{'arrays of shapes' if len(shapes) != 1 else 'an array of shape'} "
                f"{', '.join([str(shape) for shape in shapes])}; sum it, or use func.sparse_jacobian of func.grad"
            )
        size = int(self.starts[-1])
        if user_matrix is None:
            leaves = tuple(call.values())
            traced = stage_call(lambda *values: self.outputs(values), leaves, {}, (), self.transform)
            program = traced[0].pruned()
            half = call.pattern((program, None))
            self.pattern = _ordered(half + half.T, size)
            self.program_of_terms = program if coloring is None else None
        else:
            self.pattern = self.user_pattern(user_matrix, (size, size))
            if (self.pattern != self.pattern.T).nnz:
                raise ArgumentError("func.sparse_hessian: the pattern is not symmetric; pass pattern + pattern.T")
        entries = np.repeat(np.arange(size), np.diff(self.pattern.indptr))
        columns = self.pattern.indices.astype(np.int64)
        if isinstance(coloring, str) and coloring == "acyclic":
            self._by_trees(size, entries, columns)
            return
        if coloring is None or (isinstance(coloring, str) and coloring == "star"):
            star = color_star(self.pattern)
            colors, hubs = star.colors, star.hubs
        else:
            check_coloring(self.pattern, coloring, self.transform)
            colors, hubs = np.asarray(coloring), columns
        others = np.where(hubs == entries, columns, entries)
        used, number = np.unique(colors[hubs], return_inverse=True)
        renumbered = _renumbered(colors, used)
        places = _places(number.reshape(-1) * size + others)
        self.products = len(used)
        plan = self.reference
        self.evaluate_by(lambda *values: _read(plan.products_by_columns(values, renumbered, len(used)), places))
        self.freeze()

    def _by_trees(self, size: int, entries: Any, columns: Any) -> None:
        """Entries off the diagonal by substitution along the trees of an acyclic colouring."""
        coloring = AcyclicColoring(self.pattern)
        used, colors = np.unique(coloring.colors, return_inverse=True)
        small, count, diagonal = _small(colors), len(used), coloring.diagonal
        places = colors[columns[diagonal]] * size + columns[diagonal]
        plan = self.reference
        products = jit(lambda *values: plan.products_by_columns(values, small, count))

        def compute(*values: Any) -> Any:
            computed = products(*values)
            if isinstance(computed, Tracer):
                return computed
            data = coloring.read(computed, colors, len(entries))
            data[diagonal] = computed.reshape(-1)[places]
            return _for_scipy(data)

        self.products = count
        self.compute = compute
        self.freeze()

    def outputs(self, leaves: Sequence[Any]) -> Any:
        """The gradient by the active leaves."""
        full = list(leaves)

        def value(active: tuple[Any, ...]) -> Any:
            for position, x in zip(self.active, active, strict=True):
                full[position] = x
            return self.function_program().run(full)[0]

        return grad(value)(tuple([leaves[i] for i in self.active]))


def sparse_jacobian_of(
    function: Callable[..., Any], argnums: Any, argnames: Any, sparse: bool | str
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """The call of `func.jacobian` with `sparse`: the sparse Jacobian, or None if "auto" takes the dense one."""
    evaluate = _Evaluations(function, Selection(function, "sparse_jacobian", argnums, argnames))

    def matrix_or_none(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if sparse is True:
            return evaluate(args, kwargs)
        try:
            plan = evaluate.plan(_Call(function, evaluate.selection, args, kwargs))
        except (StagingError, TypeError, ArgumentError):  # the dense Jacobian's message
            return None
        return evaluate(args, kwargs) if WORTH * plan.products <= min(plan.pattern.shape) else None

    return matrix_or_none
