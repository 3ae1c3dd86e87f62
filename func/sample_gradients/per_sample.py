"""Statistics of the gradients of all samples of a batch, without an array of the gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from func import tree
from func.compilation.jit import disable_jit
from func.control.scanning import scan
from func.errors import ArgumentError, StagingError
from func.interpreters.core import Array, Tracer, aval_of, dtype_of, shape_of
from func.interpreters.core.scopes import TransformScope
from func.interpreters.drivers import running
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import hide_engine_frames
from func.interpreters.nan_safe import any_nan, are_zeros_structural, note_pullback, structural_zeros
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.shapes import broadcast, convert, full_like, permute, reduce_sum, reshape
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.processes import LEDGER, agreed
from func.interpreters.program.content_keys import content_key
from func.interpreters.program.program import Program
from func.interpreters.stage import Stage
from func.interpreters.structural_zeros import is_recorded
from func.sample_gradients.factors import (
    BOTH,
    LEFT,
    RIGHT,
    Factors,
    OneHot,
    SampleGradients,
    sample_gradients,
)
from func.transforms.arguments import differentiable
from func.transforms.boundary import (
    array_leaf,
    as_input_type,
    check_callable,
    check_no_value,
    defensive_copies,
    name_of,
    own,
)
from func.transforms.custom import stop_gradient
from func.transforms.reverse import grad
from func.transforms.transformed import as_written, token_of
from func.transforms.vmapping import BatchedCall, vmap

CHUNK_BYTES = 1 << 26
"""The memory that the gradients without structure take; larger batches are computed in chunks of samples."""

ROUNDING = 8
"""The rounding error of a sum of products, in units of the precision times the sum of the sizes of the products."""

F = TypeVar("F", bound=Callable[..., Any])


def _hiding_frames(method: F) -> F:
    """A method whose errors hide the engine's frames."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            hide_engine_frames(error)
            raise

    return call  # type: ignore[return-value]


@overload
def per_sample(f: Callable[..., Any], in_dims: Any = None) -> PerSample: ...
@overload
def per_sample(f: None = None, in_dims: Any = None) -> Callable[[Callable[..., Any]], PerSample]: ...
@without_engine_frames
def per_sample(f: Callable[..., Any] | None = None, in_dims: Any = None) -> Any:
    """Statistics of the gradients of all samples of a batch, computed without storing these gradients.

    The loss is that of ONE sample, loss(params, *sample). The gradients with respect to `params`, a tree of arrays, are
    those of `vmap(grad(loss), in_dims)`. The result has a method for each statistic, called with (params, *batch);
    `func.jit` compiles them.

    A weight's gradient is a sum of outer products of activations and cotangents. The Program shows the factors, from
    which the norms, sums and inner products follow. Gradients without this structure are computed in chunks of samples.

    Args:
        f: The loss of one sample, a real number.
        in_dims: The axis of the samples in each argument, as for `func.vmap`; the first is None, the parameters. By
            default axis 0 of every other argument.

    Raises:
        ArgumentError: The parameters are mapped, a norm is negative, or a variance has fewer than two samples.

    Source: I. Goodfellow (2015), arXiv:1510.01799; X. Li et al. (2022), arXiv:2110.05679, section 4.

    Example:
        >>> import numpy as np, func
        >>> stats = func.per_sample(lambda w, x, y: (x @ w - y) ** 2 / 2)
        >>> w, x, y = np.zeros(2), np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([2.0, 0.5])
        >>> stats.norms(w, x, y)
        array([10.,  1.])
        >>> stats.clipped_sum(1.0)(w, x, y)
        array([-0.6, -1.8])
    """
    if f is None:
        return functools.partial(per_sample, in_dims=in_dims)
    check_callable(f, "per_sample")
    check_no_value(in_dims, "in_dims", "per_sample", f)
    return PerSample(f, in_dims)


class PerSample:
    """The result of `func.per_sample`: the statistics of the gradients of a loss."""

    def __init__(self, function: Callable[..., Any], in_dims: Any = None) -> None:
        self._function = function
        self._in_dims = in_dims

    def __repr__(self) -> str:
        options = {} if self._in_dims is None else {"in_dims": self._in_dims}
        return as_written(per_sample, self._function, options)

    def _content_key(self) -> Any:
        return content_key(self._function), content_key(self._in_dims)

    def __eq__(self, other: object) -> bool:
        return type(other) is PerSample and self._content_key() == other._content_key()

    def __hash__(self) -> int:
        return hash(self._content_key())

    def __dask_tokenize__(self) -> Any:
        return token_of(per_sample, self._function, self._in_dims)

    def __reduce__(self) -> Any:
        return PerSample, (self._function, self._in_dims)

    @_hiding_frames
    def norms(self, params: Any, *batch: Any, **kwargs: Any) -> Any:
        """The Euclidean norm of each sample's gradient, all parameters together: an array (samples,).

        The derivative of a zero norm is zero.

        Example:
            >>> import numpy as np, func
            >>> func.per_sample(lambda w, x: w @ x).norms(np.ones(2), np.array([[3.0, 4.0], [0.0, 0.0]]))
            array([5., 0.])
        """
        batch_of = SampleBatch(self, params, batch, kwargs)

        def norms_of(gradients: Sequence[SampleGradients]) -> Array:
            return _in_dtype(_root(_sum(squared_norms(gradients))), batch_of.dtype)

        if not batch_of.samples:
            return np.zeros(0, batch_of.dtype)
        return own([batch_of.mapped(norms_of, _norms_need_array)])[0]

    def clipped_sum(self, max_norm: Any) -> Callable[..., Any]:
        """A function of (params, *batch): the sum of the samples' gradients, each scaled down to a norm of `max_norm`.

        That is Σ_b min(1, max_norm / ‖g_b‖) g_b, in the tree of the parameters, as for differentially private gradient
        descent. A tree of numbers in place of `max_norm`, one for each array of the parameters, clips these arrays
        separately. A zero gradient stays unchanged. One that is not finite, or whose squares overflow, makes every
        element of the sum NaN. You can differentiate the result, including the scale factors.

        Example:
            >>> import numpy as np, func
            >>> clipped = func.per_sample(lambda w, x: w @ x).clipped_sum(1.0)
            >>> clipped(np.ones(2), np.array([[3.0, 4.0], [0.5, 0.0]]))
            array([1.1, 0.8])
        """
        return ClippedSum(self, max_norm)

    @_hiding_frames
    def gram(self, params: Any, *batch: Any, **kwargs: Any) -> Any:
        """The inner products of all pairs of samples' gradients, an array (samples, samples).

        It is the empirical neural tangent kernel of the loss.

        Example:
            >>> import numpy as np, func
            >>> func.per_sample(lambda w, x: w @ x).gram(np.ones(2), np.array([[3.0, 4.0], [1.0, 0.0]]))
            array([[25.,  3.],
                   [ 3.,  1.]])
        """
        batch_of = SampleBatch(self, params, batch, kwargs)
        if not batch_of.samples:
            return np.zeros((0, 0), batch_of.dtype)
        return own([_in_dtype(batch_of.pairs(_pairs_need_array), batch_of.dtype)])[0]

    @_hiding_frames
    def variance(self, params: Any, *batch: Any, **kwargs: Any) -> Any:
        """The variance over the samples of each element of the gradient, in the tree of the parameters.

        It is unbiased, Σ_b (g_b - mean)² / (samples - 1), and takes at least two samples. Matrices used once for each
        sample take (Σ_b g_b² - samples · mean²) / (samples - 1), never below zero. This loses digits if the mean is
        much larger than the deviation.

        Example:
            >>> import numpy as np, func
            >>> func.per_sample(lambda w, x: w @ x).variance(np.ones(2), np.array([[3.0, 4.0], [1.0, 4.0]]))
            array([2., 0.])
        """
        batch_of = SampleBatch(self, params, batch, kwargs)
        batch_of.check_pairs("a variance")
        moments_of_batch = batch_of.joined(moments, _joined_moments, _moments_need_array)
        return batch_of.params_tree([x / (batch_of.samples - 1) for x in moments_of_batch[1 + len(batch_of.params) :]])

    @_hiding_frames
    def noise_scale(self, params: Any, *batch: Any, **kwargs: Any) -> Any:
        """The simple gradient noise scale tr(Σ) / |G|², in samples: batches much smaller see mostly noise.

        Both parts are unbiased estimates from the n samples of the batch, with m their mean gradient: tr(Σ) is Σ_b |g_b
        - m|² / (n - 1), and |G|² is |m|² - tr(Σ) / n. The quotient is negative if the batch is too small to tell the
        gradient from noise. To average over batches, average the two parts, which follow from `norms` and the mean
        gradient.

        Source: S. McCandlish et al. (2018), arXiv:1812.06162, appendix A.1.

        Example:
            >>> import numpy as np, func
            >>> noise_scale = func.per_sample(lambda w, x: w @ x).noise_scale
            >>> noise_scale(np.ones(2), np.array([[3.0, 4.0], [1.0, 4.0]]))
            np.float64(0.10526315789473684)
        """
        batch_of = SampleBatch(self, params, batch, kwargs)
        batch_of.check_pairs("a noise scale")

        def sums_of(gradients: Sequence[SampleGradients]) -> list[Array]:
            squares = np.sum(_sum(squared_norms(gradients)))
            return [squares, *[x.total() for x in gradients]]

        squares, *sums = batch_of.summed(sums_of, _norms_need_array)
        samples = batch_of.samples
        mean_square = _sum([np.sum(np.square(x / samples)) for x in sums])
        trace = np.maximum(squares - samples * mean_square, 0) / (samples - 1)
        return own([_in_dtype(trace / (mean_square - trace / samples), batch_of.dtype)])[0]


class ClippedSum:
    """The result of `clipped_sum`: a function of (params, *batch)."""

    def __init__(self, stats: PerSample, max_norm: Any) -> None:
        self._stats = stats
        self._max_norm = max_norm
        limits, self._spec = tree.flatten(max_norm)
        if not limits:
            raise ArgumentError(
                "func.per_sample: max_norm must be a number, or a tree of numbers like the parameters, not "
                f"{max_norm!r}"
            )
        self._limits = [_limit(limit) for limit in limits]
        self.__name__ = self.__qualname__ = "clipped_sum"

    def __repr__(self) -> str:
        return f"{self._stats!r}.clipped_sum({self._max_norm!r})"

    def _content_key(self) -> Any:
        return self._stats._content_key(), content_key(self._max_norm)

    def __eq__(self, other: object) -> bool:
        return type(other) is ClippedSum and self._content_key() == other._content_key()

    def __hash__(self) -> int:
        return hash(self._content_key())

    def __reduce__(self) -> Any:
        return ClippedSum, (self._stats, self._max_norm)

    @_hiding_frames
    def __call__(self, params: Any, *batch: Any, **kwargs: Any) -> Any:
        batch_of = SampleBatch(self._stats, params, batch, kwargs)
        limits, spec_of_limits = self._limits, self._spec
        is_single = spec_of_limits.num_nodes == 1
        batch_of.check_limits(limits, is_single)
        if not is_single and spec_of_limits != batch_of.params_spec:
            raise ArgumentError(
                "func.per_sample: max_norm must be a number, or a tree of numbers like the parameters, "
                f"{tree.shown(batch_of.params_spec)}; it is {tree.shown(spec_of_limits)}"
            )

        def clipped(gradients: Sequence[SampleGradients]) -> list[Array]:
            squares = [_upper_squared_norm(x) for x in gradients]
            if is_single:
                scales = [_scale(_sum(squares), limits[0])] * len(squares)
            else:
                scales = [_scale(square, limits[i]) for square, i in zip(squares, batch_of.active, strict=True)]
            return [x.weighted_sum(_in_dtype(scale, x.dtype)) for x, scale in zip(gradients, scales, strict=True)]

        if not batch_of.samples:
            return batch_of.params_tree([np.zeros(shape_of(x), dtype_of(x)) for x in batch_of.params])
        return batch_of.params_tree(batch_of.summed(clipped, _norms_need_array))


class SampleBatch:
    """A call: the parameters' leaves, the leaves of the batch with the samples in front, and the loss as a function."""

    def __init__(self, statistics: PerSample, params: Any, batch: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = statistics._function
        arguments = differentiable((params,), {}, [0], "per_sample", "fc")
        self.param_leaves = arguments.values()
        leaves, self.params_spec = tree.flatten(params)
        self.active = list(arguments.active)
        self.inactive = leaves
        dims = batch_dims(self.function, statistics._in_dims, len(batch), "per_sample")
        call = BatchedCall(self.function, dims, None, (None, *batch), kwargs)
        self.samples = call.size
        self.rows_spec = call.in_spec
        self.leaves = list(call.arguments.leaves)
        self.places = list(call.arguments.active)
        self.params = [array_leaf(x, "params", "per_sample") for x in self.param_leaves]
        self.rows = [self.leaves[i] for i in self.places]
        others = [i for i in range(len(self.leaves)) if i not in self.places]
        self.fixed = [i for i in others if isinstance(self.leaves[i], (np.ndarray, Tracer))]
        self.shared = [self.leaves[i] for i in self.fixed]
        if not self.param_leaves:
            raise ArgumentError(
                f"func.per_sample: the first argument of {name_of(self.function)} holds no floating point array; the "
                "parameters come first, then the batch"
            )
        for x in self.param_leaves:
            if dtype_of(x).kind == "c":
                raise ArgumentError(
                    f"func.per_sample: parameters of {name_of(self.function)} are complex; take their real and "
                    "imaginary parts as parameters"
                )
        self.dtype = np.result_type(*[dtype_of(x) for x in self.params])
        self._arguments = arguments

    def params_tree(self, values: Sequence[Array]) -> Any:
        """One array for each parameter in their tree."""
        values = [_in_dtype(value, dtype_of(x)) for value, x in zip(values, self.params, strict=True)]
        values = own([as_input_type(value, leaf) for value, leaf in zip(values, self.param_leaves, strict=True)])
        return self._arguments.arranged(values)[0]

    def check_limits(self, limits: Sequence[Any], is_single: bool) -> None:
        """Raise for limits at which the squares of gradients would vanish, unclipped."""
        for x, place in zip(self.params, self.active, strict=True):
            limit = limits[0 if is_single else place]
            size = sum([math.prod(shape_of(y)) for y in self.params]) if is_single else math.prod(shape_of(x))
            least = math.sqrt(size * float(np.finfo(np.result_type(dtype_of(x), np.float32)).tiny))
            if type(limit) is not Tracer and 0 < limit < least:
                raise ArgumentError(
                    f"func.per_sample: max_norm={limit!r} is too small for gradients of {dtype_of(x)}, whose squares "
                    f"vanish below norms of {least:.2g}; multiply the loss and max_norm by a large number"
                )

    def check_pairs(self, what: str) -> None:
        """Raise for a batch of fewer than two samples."""
        if self.samples < 2:
            raise ArgumentError(
                f"func.per_sample: {what} takes at least two samples, but the batch of {name_of(self.function)} has "
                f"{self.samples}"
            )

    def _gradients(self, params: Sequence[Any], shared: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
        """The gradients of all samples by transforms."""

        def loss(values: Sequence[Any], *row: Any) -> Any:
            tree_leaves = list(self.inactive)
            for i, value in zip(self.active, values, strict=True):
                tree_leaves[i] = value
            leaves = list(self.leaves)
            for i, value in zip(self.places, row, strict=True):
                leaves[i] = value
            for i, value in zip(self.fixed, shared, strict=True):
                leaves[i] = value
            args, kwargs = tree.unflatten(self.rows_spec, leaves)
            return self.function(tree.unflatten(self.params_spec, tree_leaves), *args[1:], **kwargs)

        loss.__name__ = loss.__qualname__ = name_of(self.function)
        gradient = grad(loss)
        return vmap(gradient, (None, *[0] * len(rows)))(list(params), *rows)  # type: ignore[no-any-return]

    def _traced_program(self, rows: Sequence[Array]) -> Program:
        """The Program of all gradients of these rows."""
        values = [*self.params, *self.shared, *rows]
        counts = len(self.params), len(self.params) + len(self.shared)
        stage = Stage("per_sample")
        with TransformScope(stage, staging=True), running(stage), disable_jit():  # calls would hide the structure
            inputs = [stage.variable(aval_of(value)) for value in values]
            variables = [tracer._attached for tracer in inputs]
            outs = self._gradients(inputs[: counts[0]], inputs[counts[0] : counts[1]], inputs[counts[1] :])
            return stage.program(variables, outs)

    def of_rows(self, rows: Sequence[Array]) -> list[SampleGradients]:
        """The gradients of the samples in some rows: by structure, or as arrays if the loss cannot be traced.

        Half precision becomes single precision, as squares would vanish or overflow.
        """
        gradients = self._of_rows(rows)
        return [x.converted(np.dtype(np.float32)) if x.dtype == np.float16 else x for x in gradients]

    def _of_rows(self, rows: Sequence[Array]) -> list[SampleGradients]:
        samples = shape_of(rows[0])[0]
        try:
            program = self._traced_program(rows)
        except StagingError:
            outs = self._gradients(self.params, self.shared, defensive_copies(rows))
            return [SampleGradients(samples, shape_of(out)[1:], dtype_of(out), dense=out) for out in outs]
        values = [*self.params, *self.shared, *rows]
        note_pullback([*values, *program.constants.values()])
        return sample_gradients(program, values, samples)

    def safely(self, compute: Callable[[], list[Array]]) -> list[Array]:
        """A function of the gradients, with structural zeros in them if it is NaN without."""
        if are_zeros_structural():
            return compute()
        if not any([type(x) is Tracer and is_recorded(x) for x in (*self.params, *self.shared, *self.rows)]):
            moment = LEDGER.moment
            outs = compute()
            if not agreed(any_nan(outs), moment):
                return outs
        with structural_zeros():
            return compute()

    def _chunk(self, needs_array: Callable[[SampleGradients], bool]) -> int:
        """The number of samples to compute at once, so that gradient arrays stay in CHUNK_BYTES."""
        each = sum([math.prod(shape_of(x)) * dtype_of(x).itemsize for x in self.params])
        if self.samples * each <= CHUNK_BYTES:
            return max(1, self.samples)
        stage = Stage("per_sample")
        try:
            program = self._traced_program(self.rows)
            with TransformScope(stage, staging=True), running(stage):
                inputs = [stage.variable(x.aval) for x in program.inputs]
                gradients = sample_gradients(program, inputs, self.samples)
                needed = [x for x in gradients if needs_array(x)]
        except StagingError:
            pass
        else:
            each = sum([math.prod(x.shape) * x.dtype.itemsize for x in needed])
        return self.samples if self.samples * each <= CHUNK_BYTES else max(1, CHUNK_BYTES // each)

    def _parts(self, chunk: int) -> tuple[list[Array], list[Array]]:
        """The rows of the samples in chunks, (chunks, chunk, ...), and the remaining rows."""
        count = self.samples // chunk
        stop = count * chunk
        stacked = [reshape(x[:stop], shape=(count, chunk, *shape_of(x)[1:])) for x in self.rows]
        return stacked, [x[stop:] for x in self.rows]

    def mapped(self, compute: Gradients, needs_array: Choice) -> Array:
        """An array over the samples, computed in chunks."""
        chunk = self._chunk(needs_array)

        def whole() -> list[Array]:
            if chunk >= self.samples:
                return [compute(self.of_rows(self.rows))]
            stacked, rest = self._parts(chunk)
            values = scan(lambda _, rows: (None, compute(self.of_rows(rows))), None, stacked)[1]
            values = reshape(values, shape=(math.prod(shape_of(values)[:2]), *shape_of(values)[2:]))
            return [concatenate(values, compute(self.of_rows(rest)), axis=0) if shape_of(rest[0])[0] else values]

        return self.safely(whole)[0]

    def joined(
        self,
        compute: Callable[[Sequence[SampleGradients]], list[Array]],
        join: Callable[[list[Array], list[Array]], list[Array]],
        needs_array: Choice,
    ) -> list[Array]:
        """The results for chunks of the gradients, joined one after the other."""
        chunk = self._chunk(needs_array)

        def whole() -> list[Array]:
            if chunk >= self.samples:
                return compute(self.of_rows(self.rows))
            stacked, rest = self._parts(chunk)
            total = compute(self.of_rows([x[0] for x in stacked]))
            later = [x[1:] for x in stacked]
            if shape_of(later[0])[0]:
                total = scan(lambda carry, rows: (join(carry, compute(self.of_rows(rows))), None), total, later)[0]
            return join(total, compute(self.of_rows(rest))) if shape_of(rest[0])[0] else total

        return self.safely(whole)

    def summed(self, compute: Callable[[Sequence[SampleGradients]], list[Array]], needs_array: Choice) -> list[Array]:
        """Sums over the samples, added up over chunks."""
        return self.joined(compute, lambda a, b: [x + y for x, y in zip(a, b, strict=True)], needs_array)

    def pairs(self, needs_array: Choice) -> Array:
        """The inner products of all pairs of gradients, in blocks of chunks."""
        chunk = self._chunk(needs_array)

        def whole() -> list[Array]:
            if chunk >= self.samples:
                gradients = self.of_rows(self.rows)
                return [inner_products(gradients, gradients)]
            count = -(-self.samples // chunk)
            repeated = np.minimum(np.arange(count * chunk), self.samples - 1)
            stacked = [reshape(x[repeated], shape=(count, chunk, *shape_of(x)[1:])) for x in self.rows]

            def row_of_blocks(_: None, rows: Sequence[Array]) -> Any:
                gradients = self.of_rows(rows)
                return scan(lambda _, others: (None, inner_products(gradients, self.of_rows(others))), None, stacked)

            blocks = scan(row_of_blocks, None, stacked)[1]
            size = count * chunk
            products = reshape(permute(blocks, order=(0, 2, 1, 3)), shape=(size, size))
            return [products[: self.samples, : self.samples]]

        return self.safely(whole)[0]


Gradients: TypeAlias = Callable[[Sequence[SampleGradients]], Array]
Choice: TypeAlias = Callable[[SampleGradients], bool]


def _limit(value: Any) -> Any:
    """A checked max_norm."""
    value = array_leaf(value, "max_norm", "per_sample")
    if shape_of(value) != () or dtype_of(value).kind not in "iuf":
        raise ArgumentError(
            "func.per_sample: max_norm must be a non-negative number, not an array of shape "
            f"{shape_of(value)} and dtype {dtype_of(value)}"
        )
    if type(value) is not Tracer and not value >= 0:
        raise ArgumentError(f"func.per_sample: max_norm must be a non-negative number, not {value!r}")
    return value


def batch_dims(function: Callable[..., Any], in_dims: Any, count: int, transform: str) -> Any:
    """in_dims of a call with this number of arguments after the parameters."""
    if not count and in_dims is None:
        raise ArgumentError(
            f"func.{transform}: {name_of(function)} was called with the parameters alone; pass the batch too, "
            "(params, *batch)"
        )
    if in_dims is None:
        return (None, *[0] * count)
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, tuple) or not in_dims or in_dims[0] is not None:
        raise ArgumentError(
            f"func.{transform}: in_dims must be a tuple that begins with None, as all samples have the same "
            f"parameters: (None, 0) for one more argument; it is {in_dims!r}"
        )
    return in_dims


def _sum(values: Sequence[Array]) -> Array:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _in_dtype(x: Array, dtype: np.dtype[Any]) -> Array:
    return x if dtype_of(x) == dtype else convert(x, dtype=dtype)


def _root(squares: Array) -> Array:
    """The square root, with derivative zero at zero."""
    is_zero = squares == 0
    return np.where(is_zero, 0, np.sqrt(np.where(is_zero, 1, squares)))


def _scale(squares: Array, limit: Any) -> Array:
    """min(1, limit / norm), 1 for a norm of zero and NaN for one that is not finite."""
    norms = _root(squares)
    is_small = norms <= limit
    scales = np.where(is_small, 1, limit / np.where(is_small, 1, norms))
    return np.where(np.isfinite(norms) | is_small, scales, np.nan)


def _rows_product(x: Array, y: Array) -> Array:
    """Inner products of the rows of two matrices."""
    return contract(x, y, spec=spec((0, 1), (0, 1), (0,)))


def _flat(x: Array) -> Array:
    shape = shape_of(x)
    return reshape(x, shape=(shape[0], math.prod(shape[1:])))


def _kernel(x: Array | OneHot, y: Array | OneHot, dtype: np.dtype[Any], pairs: bool) -> Array:
    """Inner products at all pairs of positions: (b, g, t, u) for each sample, or (b, c, g, t, u) for pairs of them."""
    if isinstance(x, OneHot) and isinstance(y, OneHot):
        left, right = shape_of(x.index), shape_of(y.index)
        first = reshape(x.index, shape=(left[0], *([1] if pairs else []), 1, left[1], 1))
        second = reshape(y.index, shape=(*([1] if pairs else []), right[0], 1, 1, right[1]))
        return convert(first == second, dtype=dtype)
    labels = ((0, 1, 2, 3), (4, 1, 5, 3), (0, 4, 1, 2, 5)) if pairs else ((0, 1, 2, 3), (0, 1, 5, 3), (0, 1, 2, 5))
    return contract(x, y, spec=spec(*labels))


def _both(x: Factors, y: Factors) -> tuple[Factors, Factors]:
    """Factors whose left factors are both rows, or both none."""
    if isinstance(x.left, OneHot) != isinstance(y.left, OneHot):
        return x._replace(left=x.left_array()), y._replace(left=y.left_array())
    return x, y


def _is_single(x: Factors) -> bool:
    return x.counts[:2] == (1, 1) and not isinstance(x.left, OneHot)


def _products(x: Factors, y: Factors) -> Array:
    """The inner products of the gradients of each sample in two terms, (samples,)."""
    x, y = _both(x, y)
    if _is_single(x) and _is_single(y):
        return _rows_product(_flat(x.left), _flat(y.left)) * _rows_product(_flat(x.right), _flat(y.right))
    left = _kernel(x.left, y.left, dtype_of(x.right), False)
    right = _kernel(x.right, y.right, dtype_of(x.right), False)
    return _rows_product(_flat(left), _flat(right))


def _pair_products(x: Factors, y: Factors) -> Array:
    """The inner products of all pairs of the gradients in two terms."""
    x, y = _both(x, y)
    if _is_single(x) and _is_single(y):
        labels = spec((0, 1), (2, 1), (0, 2))
        left = contract(_flat(x.left), _flat(y.left), spec=labels)
        return left * contract(_flat(x.right), _flat(y.right), spec=labels)
    left = _kernel(x.left, y.left, dtype_of(x.right), True)
    return reduce_sum(left * _kernel(x.right, y.right, dtype_of(x.right), True), axes=(2, 3, 4))


def _with_shared(x: Factors, shared: Array) -> Array:
    """The inner products of the gradients with an array of the parameter's shape, (samples,)."""
    groups, _, p, q = x.counts
    order = tuple([k for kind in (BOTH, LEFT, RIGHT) for k, own in enumerate(x.kinds) if own == kind])
    matrix = permute(reshape(shared, shape=x.sizes), order=order) if x.sizes else shared
    matrix = reshape(matrix, shape=(groups, p, q))
    if isinstance(x.left, OneHot):
        rows = reshape(matrix, shape=(p, q))[x.left.index]
    else:
        rows = contract(x.left, matrix, spec=spec((0, 1, 2, 3), (1, 3, 4), (0, 1, 2, 4)))
    return _rows_product(_flat(rows), _flat(x.right))


def _costs(x: SampleGradients, factors: Sequence[Factors]) -> tuple[int, int]:
    """The multiplications for a squared norm by factors and by an array."""
    counts = [factor.counts for factor in factors]
    by_factors = 0
    for groups, t, p, q in counts:
        for _, u, _, _ in counts:
            by_factors += groups * t * u * (p + q) if (t, u) != (1, 1) else p + q
        by_factors += groups * t * p * q if x.shared is not None else 0
    by_array = sum([groups * t * p * q for groups, t, p, q in counts]) + 2 * math.prod(x.shape)
    return by_factors, by_array


def _norms_need_array(x: SampleGradients) -> bool:
    """Whether the gradient array is the cheaper source of squared norms."""
    if x.dense is not None:
        return True
    if not x.terms:
        return False
    factors = x.factors()
    if factors is None:
        return True
    by_factors, by_array = _costs(x, factors)
    return by_factors > by_array


def squared_norms(gradients: Sequence[SampleGradients]) -> list[Array]:
    """The squared norms of the gradients by each parameter, (samples,)."""
    return [_squared_norm(x) for x in gradients]


def _squared_norm(x: SampleGradients) -> Array:
    if _norms_need_array(x):
        flat = _flat(x.array())
        return _rows_product(flat, flat)
    factors = x.factors() or []
    parts = [_products(factor, factor) for factor in factors]
    parts += [2 * _products(first, second) for i, first in enumerate(factors) for second in factors[:i]]
    if x.shared is not None:
        parts += [2 * _with_shared(factor, x.shared) for factor in factors]
        parts.append(np.sum(np.square(x.shared)))
    if not factors:
        return broadcast(parts[0], shape=(x.samples,))
    is_sum_of_squares = len(parts) == 1 and _is_single(factors[0])
    return parts[0] if is_sum_of_squares else np.maximum(_sum(parts), 0)


def _upper_squared_norm(x: SampleGradients) -> Array:
    """Squared norms of at least the exact value: clipping by them leaves no gradient too long.

    Positions whose terms cancel leave an error of the size of the terms, whose sum is at most (Σ_t |l_t| |r_t|)².
    """
    squares = _squared_norm(x)
    factors = x.factors() or []
    if not factors or (x.shared is None and len(factors) == 1 and _is_single(factors[0])):
        return squares
    lengths = []
    for factor in factors:
        of_right = _root(_rows_squares(factor.right))
        of_each = of_right if isinstance(factor.left, OneHot) else of_right * _root(_rows_squares(factor.left))
        lengths.append(reduce_sum(of_each, axes=(1, 2)))
    if x.shared is not None:
        lengths.append(_root(np.sum(np.square(x.shared))))
    total = _sum(lengths)
    return squares + stop_gradient(ROUNDING * float(np.finfo(x.dtype).eps) * total * total)


def _rows_squares(x: Array) -> Array:
    """The squared norms of the rows of factors, (samples, groups, positions)."""
    return contract(x, x, spec=spec((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2)))


def _pairs_need_array(x: SampleGradients, others: int | None = None) -> bool:
    """Whether the gradient array is the cheaper source of the inner products of all pairs."""
    if x.dense is not None:
        return True
    if not x.terms:
        return False
    factors = x.factors()
    if factors is None:
        return True
    samples, others = x.samples, x.samples if others is None else others
    counts = [factor.counts for factor in factors]
    if [(groups, t) for groups, t, _, _ in counts] == [(1, 1)]:
        return False
    positions = sum([t for _, t, _, _ in counts])
    groups, _, p, q = counts[0]
    size = math.prod(x.shape)
    by_factors = samples * others * groups * positions**2 * (p + q)
    by_array = (samples + others) * positions * size + samples * others * size
    gram_bytes = samples * others * groups * positions**2 * x.dtype.itemsize
    return by_factors > by_array or gram_bytes > max(CHUNK_BYTES, (samples + others) * size * x.dtype.itemsize)


def inner_products(gradients: Sequence[SampleGradients], others: Sequence[SampleGradients]) -> Array:
    """The inner products of all pairs of gradients of two batches, summed over the parameters: (samples, others)."""
    return _sum([_inner_product(x, y) for x, y in zip(gradients, others, strict=True)])


def _inner_product(x: SampleGradients, y: SampleGradients) -> Array:
    if _pairs_need_array(x, y.samples) or _pairs_need_array(y, x.samples):
        return contract(_flat(x.array()), _flat(y.array()), spec=spec((0, 1), (2, 1), (0, 2)))
    rows, columns = x.factors() or [], y.factors() or []
    parts = [_pair_products(first, second) for first in rows for second in columns]
    if x.shared is not None and y.shared is not None:
        parts += [reshape(_with_shared(factor, y.shared), shape=(x.samples, 1)) for factor in rows]
        parts += [_with_shared(factor, x.shared) for factor in columns]
        parts.append(np.sum(x.shared * y.shared))
    total = _sum(parts)
    return total if len(shape_of(total)) == 2 else broadcast(total, shape=(x.samples, y.samples))


def _moments_need_array(x: SampleGradients) -> bool:
    """Whether the gradient array is the cheaper source of variances."""
    if x.dense is not None or len(x.terms) > 1:
        return True
    factors = x.factors() or []
    return not all([factor.counts[1] == 1 and not isinstance(factor.left, OneHot) for factor in factors])


def moments(gradients: Sequence[SampleGradients]) -> list[Array]:
    """The number of samples, the means by all parameters, and the sums of squared deviations from them."""
    samples = gradients[0].samples
    means, deviations = [], []
    for x in gradients:
        varying = SampleGradients(x.samples, x.shape, x.dtype, x.terms, x.dense)
        if not x.terms and x.dense is None:
            means.append(x.total() / samples)
            deviations.append(full_like(means[-1], 0))
            continue
        if _moments_need_array(x):
            array = varying.array()
            mean = reduce_sum(array, axes=(0,)) / samples
            part = array - mean
            deviation = reduce_sum(part * part, axes=(0,))
        else:
            mean = varying.total() / samples
            deviation = np.maximum(varying.sum_of_squares() - samples * mean * mean, 0)
        means.append(mean if x.shared is None else mean + x.shared)
        deviations.append(deviation)
    return [full_like(means[0], samples, ()), *means, *deviations]


def _joined_moments(first: list[Array], second: list[Array]) -> list[Array]:
    """The moments of two batches together.

    Source: T. F. Chan, G. H. Golub and R. J. LeVeque (1983), The American Statistician 37, 242-247, equation 2.1.
    """
    n, m = first[0], second[0]
    size = (len(first) - 1) // 2
    means, deviations = [], []
    for a, b in zip(first[1 : 1 + size], second[1 : 1 + size], strict=True):
        share = _in_dtype(m / (n + m), dtype_of(a))
        means.append(a + (b - a) * share)
    pairs = zip(first[1 : 1 + size], second[1 : 1 + size], first[1 + size :], second[1 + size :], strict=True)
    for a, b, c, d in pairs:
        weight = _in_dtype(n * m / (n + m), dtype_of(a))
        deviations.append(c + d + (b - a) * (b - a) * weight)
    return [n + m, *means, *deviations]
