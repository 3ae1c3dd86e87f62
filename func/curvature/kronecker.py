"""Kronecker-factored curvature: two small matrices for each weight of a matrix product, one for each side."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from func import random, tree
from func.compilation.jit import jit
from func.curvature.curvature_operators import Space, check_real_number
from func.curvature.krylov import dtype_of_draws
from func.curvature.linearized_products import vectors_like
from func.curvature.sample_outputs import outputs_as_samples, roots_of
from func.errors import ArgumentError, StagingError, UnsupportedFunctionError
from func.interpreters.core import Tracer
from func.sample_gradients.factors import BOTH, LEFT, RIGHT, SampleGradients
from func.sample_gradients.per_sample import SampleBatch, batch_dims, per_sample
from func.transforms.arguments import differentiable
from func.transforms.boundary import check_no_value, name_of
from func.transforms.transformed import keeps_parameters, transform

LARGEST_BLOCK = 1000
"""Up to this number of elements a parameter without factors gets its exact block."""
MOST_CACHED = 64
"""The most compiled computations of one function, one for each structure, shape, dtype and plain number."""


@keeps_parameters
@transform
def kronecker_factors(
    f: Callable[..., Any],
    in_dims: Any = None,
    *,
    likelihood: str | Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """The Fisher matrix of a model in Kronecker factors, a block for each parameter (K-FAC).

    Called with (params, *batch). A weight in a matrix product has the gradient Σ x δᵀ for one sample, over its
    positions: x is the other factor, δ the gradient of the product. func reads such products from the Program,
    for any model. The approximate block of the weight is count · E[x xᵀ] ⊗ E[δ δᵀ], with means over all samples and
    positions ("expand"). It is exact for one sample with one position. A product with groups has a pair of factors for
    each of them. Biases, and other parameters of at most 1,000 elements without this form, have their exact block.
    Larger ones have none: `unstructured` names them. As with `func.jit`, a closure is read once.

    Args:
        f: The loss of ONE sample, loss(params, *sample); with a likelihood the model, its outputs for one sample.
        in_dims: The axis of the samples in each argument, as for `func.vmap`; the first is None, the parameters. By
            default axis 0 of every other argument.
        likelihood: Without one the matrix is the empirical Fisher matrix, the sum of g gᵀ over gradients of samples.
            With one it is the Fisher matrix, as in `func.linear_operator`. That costs a gradient for each output.

    Source: J. Martens and R. Grosse (2015), arXiv:1503.05671; for several positions R. Eschenhagen et al. (2023),
    arXiv:2311.00636.

    Example:
        >>> import numpy as np, func
        >>> model = lambda w, x: np.tanh(x @ w["in"]) @ w["out"]
        >>> w = {"in": np.ones((3, 4)), "out": np.ones((4, 2))}
        >>> factors = func.kronecker_factors(model, likelihood="gaussian")(w, np.eye(3))
        >>> factors
        <20x20 KroneckerFactors, a sum over 3 samples>
          params['in']   (3, 4)  A 3x3, G 4x4
          params['out']  (4, 2)  A 4x4, G 2x2
        >>> factors.log_determinant(damping=1.0).round(3)
        np.float64(6.789)
    """
    check_no_value(in_dims, "in_dims", "kronecker_factors", f)
    root = roots_of(likelihood, "kronecker_factors")
    plans: dict[Any, _MomentPlan] = {}

    def factors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> KroneckerFactors:
        if not args:
            raise ArgumentError(f"func.kronecker_factors: call it with parameters and a batch, {name_of(f)} got none")
        leaves, spec = tree.flatten((args, kwargs))
        _check_untraced(leaves)
        arrays = {i: leaf for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype")}
        static = {i: leaf for i, leaf in enumerate(leaves) if i not in arrays}
        shapes = tuple([(i, leaf.shape, leaf.dtype) for i, leaf in arrays.items()])
        if not tree.leaves(args[0]):
            raise ArgumentError(f"func.kronecker_factors: the parameters of {name_of(f)} hold no arrays")
        signs = [str(leaf) for leaf in static.values() if isinstance(leaf, (float, complex))]  # 0.0 equals -0.0
        key = spec, shapes, tuple([(i, type(leaf), leaf) for i, leaf in static.items()]), tuple(signs)
        try:
            hash(key)
        except TypeError:  # a leaf that has no hash
            plan = _MomentPlan(f, in_dims, root, spec, static)
        else:
            cached: _MomentPlan | None = plans.pop(key, None)
            plan = _MomentPlan(f, in_dims, root, spec, static) if cached is None else cached
            plans[key] = plan  # the last one used comes last
            for old in tuple(plans)[:-MOST_CACHED]:
                plans.pop(old, None)
        samples, blocks = plan.blocks(arrays)
        _check_untraced([x for block in blocks if block is not None for x in (block.left, block.right)])
        return KroneckerFactors(name_of(f), args[0], samples, blocks)

    return factors_of


def _check_untraced(values: Sequence[Any]) -> None:
    """Raise for traced values: derivatives by eigenvectors are undetermined for repeated eigenvalues."""
    if any([type(value) is Tracer for value in values]):
        raise UnsupportedFunctionError(
            "func.kronecker_factors takes no traced values, also not from outside of the function: its result has "
            "no derivative\nCall it outside of func.grad, func.vmap and func.jit, or at func.stop_gradient(...)."
        )


class KroneckerBlock(NamedTuple):
    """The block of one parameter: weight · A ⊗ G, for each group if its product has groups."""

    left: Any
    """A, the mean of x xᵀ, of shape (groups, p, p)."""
    right: Any
    """G, the mean of δ δᵀ, of shape (groups, q, q)."""
    weight: float
    """The number of samples and positions in the means."""
    form: _Form

    @property
    def is_exact(self) -> bool:
        """Whether the parameter has no factors, but the exact block as G."""
        return self.form.is_exact


class _Form(NamedTuple):
    """The arrangement of the elements of a parameter as matrices (groups, p, q)."""

    sizes: tuple[int, ...]
    kinds: tuple[int, ...]
    is_exact: bool

    def matrices(self, flat: Any) -> Any:
        """Parameters (..., size) as (..., groups, p, q)."""
        front = flat.shape[:-1]
        count = len(front)
        order = [count + k for kind in (BOTH, LEFT, RIGHT) for k in range(len(self.kinds)) if self.kinds[k] == kind]
        parts = flat.reshape(*front, *self.sizes).transpose(*range(count), *order)
        return parts.reshape(*front, *self.counts())

    def flat(self, matrices: Any) -> Any:
        """The inverse of `matrices`."""
        front = matrices.shape[:-3]
        count = len(front)
        order = [k for kind in (BOTH, LEFT, RIGHT) for k in range(len(self.kinds)) if self.kinds[k] == kind]
        parts = matrices.reshape(*front, *[self.sizes[k] for k in order])
        parts = parts.transpose(*range(count), *[count + order.index(k) for k in range(len(order))])
        return parts.reshape(*front, math.prod(self.sizes))

    def counts(self) -> tuple[int, int, int]:
        """Groups, p and q."""
        sizes = [[size for size, own in zip(self.sizes, self.kinds, strict=True) if own == kind] for kind in range(3)]
        return math.prod(sizes[BOTH]), math.prod(sizes[LEFT]), math.prod(sizes[RIGHT])


class _Moments(NamedTuple):
    """The moments of one parameter. All are arrays, since compiled code returns them."""

    left: Any
    right: Any
    layout: Any
    """The form: whether the block is exact, the number of positions, sizes, kinds; empty without a block."""


class _MomentPlan:
    """The compiled computation of all blocks for one kind of arguments."""

    def __init__(
        self, function: Callable[..., Any], in_dims: Any, root: Any, spec: Any, static: dict[int, Any]
    ) -> None:
        self.function = function
        self.in_dims = in_dims
        self.root = root
        self.spec = spec
        self.static = static
        """Leaves that are not arrays, by place."""
        self.compute = jit(self._moments)

    def _moments(self, arrays: dict[int, Any]) -> tuple[Any, list[_Moments]]:
        """The number of samples, that of outputs of each, and the moments for each parameter."""
        leaves = [arrays[i] if i in arrays else self.static[i] for i in range(self.spec.num_leaves)]
        (params, *batch), kwargs = tree.unflatten(self.spec, leaves)
        dims = batch_dims(self.function, self.in_dims, len(batch), "kronecker_factors")
        loss, rows, outputs = self.function, tuple(batch), 1
        if self.root is not None:
            pairs = outputs_as_samples(loss, dims, params, rows, kwargs, self.root, "kronecker_factors")
            loss, dims, rows, kwargs, outputs = pairs.loss, pairs.in_dims, pairs.batch, {}, pairs.outputs
        samples = SampleBatch(per_sample(loss, dims), params, rows, kwargs)
        if not samples.samples:
            raise ArgumentError(f"func.kronecker_factors: the batch of {name_of(self.function)} has no samples")

        def moments() -> list[Any]:
            return [x for gradients in samples.of_rows(samples.rows) for x in _second_moments(gradients)]

        values = samples.safely(moments)
        return np.array([samples.samples // outputs, outputs]), [
            _Moments(*values[i : i + 3]) for i in range(0, len(values), 3)
        ]

    def blocks(self, arrays: dict[int, Any]) -> tuple[int, list[KroneckerBlock | None]]:
        """The number of samples, and the block of each parameter."""
        try:
            counts, moments = self.compute(arrays)
        except StagingError:  # the function's Python depends on values
            counts, moments = self._moments(arrays)
        samples, outputs = [int(count) for count in counts]
        blocks: list[KroneckerBlock | None] = []
        for left, right, layout in moments:
            if not len(layout):
                blocks.append(None)
                continue
            is_exact, positions, *axes = [int(number) for number in layout]
            sizes, kinds = axes[: len(axes) // 2], axes[len(axes) // 2 :]
            form = _Form(tuple(sizes), tuple(kinds), bool(is_exact))
            blocks.append(KroneckerBlock(left, right * outputs, samples * positions, form))
        return samples, blocks


def _second_moments(gradients: SampleGradients) -> _Moments:
    """E[x xᵀ] and E[δ δᵀ] of the gradients by one parameter."""
    size = math.prod(gradients.shape)
    factors = gradients.factors() if gradients.dense is None and gradients.shared is None else None
    if factors:
        positions = sum([factor.counts[1] for factor in factors])
        count = gradients.samples * positions
        lefts, rights = [factor.left_array() for factor in factors], [factor.right for factor in factors]
        left = sum([np.einsum("bgtp,bgtr->gpr", x, x) for x in lefts], start=np.zeros((), gradients.dtype)) / count
        right = sum([np.einsum("bgtq,bgtr->gqr", x, x) for x in rights], start=np.zeros((), gradients.dtype)) / count
        return _Moments(left, right, np.array([0, positions, *factors[0].sizes, *factors[0].kinds]))
    if size > LARGEST_BLOCK:
        return _Moments(np.zeros(0), np.zeros(0), np.zeros(0, int))
    flat = gradients.array().reshape(gradients.samples, size)
    right = (flat.T @ flat / gradients.samples)[None]
    return _Moments(np.ones((1, 1, 1), flat.dtype), right, np.array([1, 1, size, RIGHT]))


def _space_of(params: Any) -> tuple[Space, list[str]]:
    """The vectors of the floating point leaves of parameters, and the users' expressions of these leaves."""
    arguments = differentiable((params,), {}, [0], "kronecker_factors", "f", root="params")
    vectors = vectors_like(arguments.values())
    paths = tree.path_names(params, "params")
    space = Space(vectors, lambda *parts: arguments.arranged(*parts)[0])
    return space, [paths[i] for i in arguments.active]


class KroneckerFactors(LinearOperator):  # type: ignore[misc]
    """The result of `func.kronecker_factors`: a block-diagonal matrix, a `scipy.sparse.linalg.LinearOperator`.

    It is a sum over samples. Its eigenvalues are products of eigenvalues of the factors, so systems, determinants and
    samples need only the eigenvectors of the small matrices.
    """

    def __init__(self, name: str, params: Any, samples: int, blocks: Sequence[KroneckerBlock | None]) -> None:
        self.blocks = tuple(blocks)
        """For each parameter, in the order of the leaves; None for those without."""
        self.samples = samples
        self._name = name
        self._space, self._paths = _space_of(params)
        vectors = self._space.vectors
        super().__init__(vectors.dtype, (vectors.size, vectors.size))

    @property
    def unstructured(self) -> list[str]:
        """The parameters without a block, as users' expressions."""
        return [path for path, block in zip(self._paths, self.blocks, strict=True) if block is None]

    def ravel(self, value: Any) -> Any:
        """The vector of a tree like the parameters."""
        return self._space.ravel(value)

    def unravel(self, vector: Any) -> Any:
        """The tree of a vector."""
        return self._space.unravel(vector)

    def eigenvalues(self) -> Any:
        """All eigenvalues, parameter by parameter."""
        self._check_blocks()
        parts = [np.ravel(values) for values, _, _ in self._decomposed]
        return np.concatenate(parts) if parts else np.zeros(0)

    def apply(self, function: Callable[[Any], Any], vectors: Any) -> Any:
        """g(F) applied to a vector (n,) or to columns (n, k), for g a function of arrays of eigenvalues.

        `lambda x: 1 / (x + damping)` solves a system; `lambda x: (x + damping) ** -0.5` maps independent normal numbers
        to samples with this precision.
        """
        self._check_blocks()
        array: Any = vectors if type(vectors) is Tracer else np.asarray(vectors)
        if array.ndim not in (1, 2) or array.shape[0] != self.shape[1] or array.dtype.kind not in "fiub":
            raise ArgumentError(
                f"KroneckerFactors of shape {self.shape} take real vectors ({self.shape[1]},) or columns "
                f"({self.shape[1]}, k), not an array of shape {array.shape} and dtype {array.dtype}"
            )
        rows = np.atleast_2d(array.T).astype(self.dtype, copy=False)
        outs = []
        start = 0
        for block, size, (values, left, right) in zip(
            self.blocks, self._space.vectors.sizes, self._decomposed, strict=True
        ):
            assert block is not None
            projected = block.form.matrices(rows[:, start : start + size])
            projected = left.swapaxes(-1, -2) @ projected @ right
            product = left @ (function(values) * projected) @ right.swapaxes(-1, -2)
            outs.append(block.form.flat(product).astype(self.dtype, copy=False))
            start += size
        out = np.concatenate(outs, axis=1) if outs else rows
        return out.T if array.ndim == 2 else out[0]

    def solve(self, vectors: Any, damping: float) -> Any:
        """(F + damping I)⁻¹ applied to a vector (n,) or to columns (n, k)."""
        self._check_damping(damping)
        return self.apply(lambda x: 1 / (x + damping), vectors)

    def log_determinant(self, damping: float) -> Any:
        """log det(F + damping I)."""
        self._check_damping(damping)
        return np.sum(np.log(self.eigenvalues() + damping))

    def sample(self, key: Any, damping: float, samples: int) -> Any:
        """Columns drawn from the normal distribution with mean zero and precision F + damping I."""
        self._check_damping(damping)
        noise = random.normal(key, (self.shape[0], samples), dtype_of_draws(self.dtype))
        return self.apply(lambda x: (x + damping) ** -0.5, noise)

    def scaled(self, factor: float) -> KroneckerFactors:
        """The matrix times a number, as N / n for a batch of n out of N samples."""
        check_real_number(factor, "scaled: the factor")
        if not factor >= 0:
            raise ArgumentError(f"scaled: the factor must not be negative, not {factor!r}")
        scaled: KroneckerFactors = object.__new__(KroneckerFactors)
        scaled.__dict__.update(self.__dict__)
        scaled.blocks = tuple([b if b is None else b._replace(weight=b.weight * factor) for b in self.blocks])
        scaled.__dict__.pop("_decomposed", None)
        return scaled

    def toarray(self) -> Any:
        """The matrix itself."""
        return self.apply(lambda x: x, np.eye(self.shape[0], dtype=self.dtype))

    def _matmat(self, X: Any) -> Any:
        return self.apply(lambda x: x, X)

    def _matvec(self, x: Any) -> Any:
        return self._matmat(np.reshape(x, -1))

    def _adjoint(self) -> KroneckerFactors:
        return self

    _transpose = _adjoint

    def _check_damping(self, damping: Any) -> None:
        check_real_number(damping, "damping")
        if not damping > 0:
            raise ArgumentError(
                f"damping must be positive, not {damping!r}: factors of few samples are singular; in a Laplace "
                "approximation it is the precision of the prior"
            )

    def _check_blocks(self) -> None:
        if self.unstructured:
            raise ArgumentError(
                f"func.kronecker_factors: {', '.join(self.unstructured)} of {self._name} do not enter by matrix "
                f"products alone, and are too large for an exact block; leave them out of the parameters, or use "
                'func.linear_operator("empirical_fisher", ...)'
            )

    @functools.cached_property
    def _decomposed(self) -> list[Any]:
        """The eigenvalues (groups, p, q) of each block, and the eigenvectors of both sides."""
        for path, block in zip(self._paths, self.blocks, strict=True):
            if block is not None and not (np.isfinite(block.left).all() and np.isfinite(block.right).all()):
                raise ArgumentError(
                    f"func.kronecker_factors: the factors of {path} of {self._name} are NaN or infinite, as the "
                    "gradient of a sample is; look for the sample with func.per_sample(loss).norms"
                )
        return [None if block is None else _decompose(block) for block in self.blocks]

    def __repr__(self) -> str:
        n = self.shape[0]
        lines = [f"<{n}x{n} KroneckerFactors, a sum over {self.samples} samples>"]
        width = max([len(path) for path in self._paths], default=0)
        shapes = [str(aval.shape) for aval in self._space.vectors.avals]
        wide = max(map(len, shapes), default=0)
        for path, shape, block in zip(self._paths, shapes, self.blocks, strict=True):
            lines.append(f"  {path:{width}}  {shape:{wide}}  {_text(block)}")
        return "\n".join(lines)


def _decompose(block: KroneckerBlock) -> tuple[Any, Any, Any]:
    dtype = np.float64 if block.left.dtype.itemsize > 4 else np.float32  # LAPACK has no other precision
    values, vectors = np.linalg.eigh(block.left.astype(dtype, copy=False))
    others, other_vectors = np.linalg.eigh(block.right.astype(dtype, copy=False))
    products = np.maximum(values, 0)[..., :, None] * np.maximum(others, 0)[..., None, :] * block.weight
    return products, vectors, other_vectors


def _text(block: KroneckerBlock | None) -> str:
    if block is None:
        return "no factors"
    groups, p, q = block.form.counts()
    if block.is_exact:
        return f"exact {q}x{q}"
    return f"{f'{groups} groups of ' if groups > 1 else ''}A {p}x{p}, G {q}x{q}"
