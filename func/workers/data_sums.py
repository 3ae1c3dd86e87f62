"""`sum_over`: a loss summed over remote data, as a function of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from func import tree
from func.errors import ArgumentError, ScalarOutputError
from func.interpreters.calls.remote_map import remote_map
from func.interpreters.core import Array, dtype_of, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.program.content_keys import content_key
from func.sample_gradients.per_sample import per_sample
from func.transforms.boundary import check_callable, name_of, output_leaves, own
from func.transforms.reverse import grad
from func.transforms.transformed import written_name
from func.transforms.vmapping import vmap
from func.workers.engines import engine_of
from func.workers.mapping import CalledChunk, rows_of_chunk, traced
from func.workers.running import ChunkRunner
from func.workers.sources import source_of


@without_engine_frames
def sum_over(
    loss: Callable[..., Any],
    data: Any,
    *,
    executor: Any = None,
    reduce: str = "mean",
    chunk_size: int | None = None,
    batched: bool = False,
    progress: bool = False,
) -> Any:
    """A loss summed or averaged over remote data, as a function of the parameters.

    The loss is that of ONE sample, loss(params, *sample). Call the result with the parameters alone, and transform it
    like any function: by `grad`, `value_and_grad`, `hvp`, `hessian`, `jvp`, `vmap` over parameters, `jit`. Each
    evaluation passes over the data once, in its place: parameters go out, values and gradients come back. The order of
    the sum depends on the data alone, so results are the same to the bit for any number of workers.

    Args:
        loss: Returns a real number for the parameters, a tree of arrays, and one sample.
        data: The samples along the first axis of a tree of arrays; a tuple gives the loss several arguments. The arrays
            may be NumPy's, Zarr's or Dask's, memory-mapped, or paths of .npy files, which workers open. Also Dask data
            frames, with a dict of columns as a sample; or a list of Dask futures of batches. For data larger than the
            memory: a function that makes an iterator of batches.
        executor: Computes the chunks, as in `vmap`; None for the calling thread, one after the other.
        reduce: "mean" or "sum".
        chunk_size: The number of samples of a chunk; by default as many as take 16 MiB or 50 ms. Dask's blocks, and
            batches, are chunks.
        batched: The loss takes a whole batch at once, loss(params, *batch), and returns the losses of its samples, an
            array (samples,).
        progress: Show a progress bar over the chunks of each pass.

    Raises:
        ScalarOutputError: The loss of a sample is not one real number (a TypeError).
        RaggedChunksError: Blocks or batches do not fit each other (a ValueError).

    Example:
        >>> import numpy as np, func
        >>> x, y = np.arange(6.0).reshape(3, 2), np.ones(3)
        >>> objective = func.sum_over(lambda w, x, y: (x @ w - y) ** 2, (x, y), reduce="sum")
        >>> objective(np.zeros(2)), func.grad(objective)(np.zeros(2))
        (np.float64(3.0), array([-12., -18.]))
    """
    check_callable(loss, "sum_over")
    if reduce not in ("mean", "sum"):
        raise ArgumentError(f"func.sum_over: reduce must be 'mean' or 'sum', not {reduce!r}")
    rows: Any = chunk_size
    if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
        raise ArgumentError(f"func.sum_over: chunk_size must be a positive int or None, not {chunk_size!r}")
    return SumOver(loss, data, executor, reduce, chunk_size, batched, progress)


class SumOver:
    """The result of `func.sum_over`: a function of the parameters, with the statistics of its samples' gradients."""

    def __init__(
        self,
        loss: Callable[..., Any],
        data: Any,
        executor: Any,
        reduce: str,
        chunk_size: int | None,
        batched: bool,
        progress: bool,
    ) -> None:
        self._loss = loss
        self._options = data, executor, reduce, chunk_size, batched, progress
        self._source = source_of(data)
        self._spec = self._source.spec
        self._total = reduce == "mean"
        self._chunk_size = chunk_size
        self._batched = batched
        label = f"func.sum_over({name_of(loss)})"
        engine = engine_of(executor, "sum_over")
        self._runner = ChunkRunner(engine, label, data=self._source, progress=progress, unit="samples")
        self._is_planned = False
        self._functions: dict[Any, Any] = {}
        """The functions of chunks from earlier calls: workers know them."""
        self.__name__ = name_of(loss)
        self.__doc__ = f"The {reduce} of {name_of(loss)} over the data."

    def __repr__(self) -> str:
        data, _, reduce, _, batched, _ = self._options
        shown = ", ".join([f"{type(leaf).__name__}{getattr(leaf, 'shape', '')}" for leaf in tree.leaves(data)][:4])
        option = ", batched=True" if batched else ""
        return f"func.sum_over({written_name(self._loss)}, {shown}, reduce={reduce!r}{option})"

    def __reduce__(self) -> Any:
        return SumOver, (self._loss, *self._options)

    @without_engine_frames
    def __call__(self, params: Any) -> Any:
        (value,) = self._spread(SampleSum, params)
        return value / self._source.total() if self._total else value

    @without_engine_frames
    def norms(self, params: Any) -> Any:
        """The Euclidean norm of each sample's gradient, in the order of the samples; see `func.per_sample`.

        Example:
            >>> import numpy as np, func
            >>> func.sum_over(lambda w, x: w @ x, np.array([[3.0, 4.0], [0.0, 2.0]])).norms(np.ones(2))
            array([5., 2.])
        """
        return own(list(self._spread(SampleNorms, params, joined=True)))[0]

    @without_engine_frames
    def clipped_sum(self, max_norm: Any, params: Any) -> Any:
        """The sum of the samples' gradients, each scaled down to a norm of `max_norm`; see `func.per_sample`.

        Example:
            >>> import numpy as np, func
            >>> samples = np.array([[3.0, 4.0], [0.5, 0.0]])
            >>> func.sum_over(lambda w, x: w @ x, samples).clipped_sum(1.0, np.ones(2))
            array([1.1, 0.8])
        """
        outs = self._spread(ClippedGradients, params, extra=max_norm)
        return tree.unflatten(tree.structure(params), own(list(outs)))

    @without_engine_frames
    def variance(self, params: Any) -> Any:
        """The unbiased variance over the samples of each element of the gradient, in two passes over the data.

        Example:
            >>> import numpy as np, func
            >>> func.sum_over(lambda w, x: w @ x, np.array([[3.0, 4.0], [1.0, 4.0]])).variance(np.ones(2))
            array([2., 0.])
        """
        return self._moments(params)[1]

    @without_engine_frames
    def noise_scale(self, params: Any) -> Any:
        """The simple gradient noise scale tr(Σ) / |G|², in samples; see `func.per_sample`.

        Example:
            >>> import numpy as np, func
            >>> func.sum_over(lambda w, x: w @ x, np.array([[3.0, 4.0], [1.0, 4.0]])).noise_scale(np.ones(2))
            np.float64(0.10526315789473684)
        """
        mean, variance = self._moments(params)
        trace = sum([np.sum(x) for x in tree.leaves(variance)])
        square = sum([np.sum(np.abs(x) ** 2) for x in tree.leaves(mean)])
        return trace / (square - trace / self._source.total())

    def _moments(self, params: Any) -> tuple[Any, Any]:
        """The mean of the gradients, and their variance."""
        total = self._source.total()
        if total < 2:
            raise ArgumentError("func.sum_over: a variance takes at least two samples")
        gradients = grad(self)(params)
        mean = gradients if self._total else tree.map(lambda x: x / total, gradients)
        outs = self._spread(SquaredDeviations, params, extra=mean)
        squares = tree.unflatten(tree.structure(params), own(list(outs)))
        return mean, tree.map(lambda x: x / (total - 1), squares)

    def _spread(self, kind: type[SampleSum], params: Any, extra: Any = None, joined: bool = False) -> Any:
        if self._batched and kind is not SampleSum:
            raise ArgumentError(
                "func.sum_over: gradients of single samples need the loss of one sample\nWrite it for one sample, and "
                "leave batched=True out."
            )
        fun = kind(self._loss, (params, extra), self._spec, self._batched)
        operands = fun.operands
        if not self._is_planned:
            example = fun.with_data(self._source.example())
            by_cost = lambda rows: rows_of_chunk(traced(example, operands, fun.split), rows, False)  # noqa: E731
            self._source.plan(self._chunk_size, by_cost)
            self._is_planned = True
        if not self._source.total():
            raise ArgumentError("func.sum_over: the data has no samples")
        if not fun.captured:
            key = kind, fun.spec, tuple(fun.places), content_key(fun.fixed)
            fun = self._functions.setdefault(key, fun)
            fun.operands = None
        return remote_map(*operands, fun=fun, split=fun.split, joined=joined, runner=self._runner)


class SampleSum(CalledChunk):
    """The sum of the losses of the samples of a chunk."""

    is_objective = True

    def __init__(self, loss: Callable[..., Any], operands: Any, data_spec: Any, batched: bool) -> None:
        super().__init__(loss, operands)
        self.data_spec = data_spec
        self.batched = batched
        self.split = tuple([False] * len(self.operands))

    def with_data(self, data: Sequence[Any]) -> AtData:
        """The function with the samples of its chunk."""
        return AtData(self, [read_only(x) for x in data])

    def at(self, operands: Sequence[Array], data: Sequence[Any]) -> list[Array]:
        """The outputs."""
        loss, params, _, batch = self.parts(operands, data)
        of_batch = loss if self.batched else vmap(loss, (None, *[0] * len(batch)))
        losses = of_batch(params, *batch)
        count = shape_of(data[0])[0]
        leaves, _ = output_leaves(losses, "sum_over")
        if len(leaves) != 1 or shape_of(leaves[0]) != (count,) or dtype_of(leaves[0]).kind != "f":
            shown_leaves = ", ".join([f"{dtype_of(x)}{list(shape_of(x))}" for x in leaves])
            expected = f"an array of {count} real numbers for a batch of {count}" if self.batched else "one real number"
            got = shown_leaves if self.batched else f"{shown_leaves} for the {count} samples of a chunk"
            raise ScalarOutputError(f"func.sum_over: {name_of(loss)} must return {expected}, but returned {got}")
        return [np.sum(leaves[0])]

    def parts(self, operands: Sequence[Array], data: Sequence[Any]) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        """The loss, the parameters, the other values, and the batch."""
        loss, (params, extra) = self.call_at(operands)
        batch = tree.unflatten(self.data_spec, data)
        return loss, params, extra, batch if type(batch) is tuple else (batch,)


def read_only(x: Any) -> Any:
    """A read-only view, which graphs need not copy."""
    view = x.view() if isinstance(x, np.ndarray) else x
    if view is not x:
        view.flags.writeable = False
    return view


class AtData:
    """A chunk function with its samples."""

    def __init__(self, chunk: Any, data: Sequence[Any]) -> None:
        self.chunk = chunk
        self.data = data

    def __call__(self, *operands: Array) -> list[Array]:
        outs: list[Array] = self.chunk.at(operands, self.data)
        return outs


class SampleNorms(SampleSum):
    """The norms of the samples' gradients."""

    is_objective = False

    def at(self, operands: Sequence[Array], data: Sequence[Any]) -> list[Array]:
        loss, params, _, batch = self.parts(operands, data)
        return [per_sample(loss).norms(params, *batch)]


class ClippedGradients(SampleSum):
    """The sum of the clipped gradients."""

    is_objective = False

    def at(self, operands: Sequence[Array], data: Sequence[Any]) -> list[Array]:
        loss, params, max_norm, batch = self.parts(operands, data)
        return list(tree.leaves(per_sample(loss).clipped_sum(max_norm)(params, *batch)))


class SquaredDeviations(SampleSum):
    """The sum of the squared differences between the samples' gradients and their mean over all chunks."""

    is_objective = False

    def at(self, operands: Sequence[Array], data: Sequence[Any]) -> list[Array]:
        loss, params, mean, batch = self.parts(operands, data)
        count = shape_of(data[0])[0]

        def total(params: Any) -> Any:
            losses: Any = vmap(loss, (None, *[0] * len(batch)))(params, *batch)
            return np.sum(losses)

        means = [x / count for x in tree.leaves(grad(total)(params))]
        away = [count * (own_mean - x) ** 2 for own_mean, x in zip(means, tree.leaves(mean), strict=True)]
        if count == 1:
            return away
        within = tree.leaves(per_sample(loss).variance(params, *batch))
        return [(count - 1) * x + y for x, y in zip(within, away, strict=True)]
