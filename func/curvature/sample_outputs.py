"""The outputs of a model for each sample as losses of more samples, so that their gradients have one structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func import tree
from func.compilation.staging import eval_shape
from func.curvature.curvature_operators import LOG_PARTITIONS, logits
from func.curvature.linearized_products import Vectors
from func.errors import ArgumentError
from func.interpreters.core import Array, Aval, Tracer, is_inexact
from func.sample_gradients.per_sample import batch_dims, per_sample
from func.transforms.boundary import check_callable, check_no_value, name_of, scalar_output
from func.transforms.custom import stop_gradient
from func.transforms.jacobians import hessian
from func.transforms.transformed import keeps_parameters, transform
from func.transforms.vmapping import BatchedCall

Root: TypeAlias = Callable[[Any, Any], Any]
"""From outputs o and a unit vector e to S e with S Sᵀ the Fisher information in the outputs; both are trees."""


def _categorical(o: Any, e: Any) -> Any:
    """S = diag √p - p √pᵀ, so that S Sᵀ = diag p - p pᵀ."""
    o = logits(o)
    weights = np.exp(o - np.max(o, axis=-1, keepdims=True))
    p = weights / np.sum(weights, axis=-1, keepdims=True)
    part = np.sqrt(p) * e
    return part - p * np.sum(part, axis=-1, keepdims=True)


def _bernoulli(o: Any, e: Any) -> Any:
    return e / (2 * np.cosh(o / 2))


_ROOTS: dict[str, Callable[[Any, Any], Any]] = {
    "gaussian": lambda o, e: e,
    "categorical": _categorical,
    "bernoulli": _bernoulli,
    "poisson": lambda o, e: np.exp(o / 2) * e,
}


def roots_of(likelihood: Any, transform: str) -> Root | None:
    """The root of the Fisher information of a likelihood; None without one."""
    if likelihood is None:
        return None
    if isinstance(likelihood, str):
        if likelihood not in LOG_PARTITIONS:
            raise ArgumentError(
                f"func.{transform}: likelihood must be one of {', '.join(LOG_PARTITIONS)}, or a log-partition "
                f"function, not {likelihood!r}"
            )
        return functools.partial(tree.map, _ROOTS[likelihood])
    check_callable(likelihood, f"{transform}(likelihood=...)")

    def root(outputs: Any, unit: Any) -> Any:
        vector, back = tree.ravel(outputs)

        def log_partition(flat: Array) -> Array:
            return scalar_output(likelihood(back(flat)), f"{transform}(likelihood=...)", likelihood, False)

        values, vectors = np.linalg.eigh(hessian(log_partition)(vector))
        return back((vectors * np.sqrt(np.maximum(values, 0))) @ tree.ravel(unit)[0])

    return root


class OutputSamples(NamedTuple):
    """A loss of one sample, for pairs of a sample and an output of a model."""

    loss: Callable[..., Any]
    in_dims: Any
    batch: tuple[Any, ...]
    outputs: int
    """The number of outputs of each sample."""
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of the leaves of the outputs."""


def outputs_as_samples(
    model: Callable[..., Any],
    in_dims: Any,
    params: Any,
    batch: tuple[Any, ...],
    kwargs: dict[str, Any],
    root: Root,
    transform: str,
) -> OutputSamples:
    """The loss (S e) · model(params, *sample), with the root S at fixed outputs, for each sample and unit vector e."""
    in_dims = batch_dims(model, in_dims, len(batch), transform)
    call = BatchedCall(model, in_dims, None, (None, *batch), kwargs)
    leaves, mapped = list(call.arguments.leaves), list(call.arguments.active)
    rest = [i for i in range(len(leaves)) if i not in mapped and isinstance(leaves[i], (np.ndarray, Tracer))]

    def outputs(params: Any, row: Sequence[Any], shared: Sequence[Any]) -> Any:
        values = list(leaves)
        for i, value in zip((*mapped, *rest), (*row, *shared), strict=True):
            values[i] = value
        args, keywords = tree.unflatten(call.in_spec, values)
        return model(params, *args[1:], **keywords)

    rows, shared = [leaves[i] for i in mapped], [leaves[i] for i in rest]
    first = [Aval(np.shape(row)[1:], row.dtype) for row in rows]
    outputs.__name__ = outputs.__qualname__ = name_of(model)
    output_avals = eval_shape(outputs, params, first, shared)
    avals, spec = tree.flatten(output_avals)
    for aval in avals:
        if not is_inexact(aval.dtype) or aval.dtype.kind == "c":
            raise TypeError(f"func.{transform} needs real floating point outputs, but {name_of(model)} returned {aval}")
    space = Vectors(tuple([Aval(aval.shape, aval.dtype) for aval in avals]))
    count = space.size
    if not count:
        raise ArgumentError(f"func.{transform}: {name_of(model)} returned no numbers")

    def loss(params: Any, unit: Any, row: Sequence[Any], shared: Sequence[Any]) -> Any:
        out = outputs(params, row, shared)
        cotangents = root(tree.map(stop_gradient, out), tree.unflatten(spec, space.split(unit)))
        products = [np.sum(x * y) for x, y in zip(tree.leaves(cotangents), tree.leaves(out), strict=True)]
        return functools.reduce(np.add, products)

    loss.__name__ = loss.__qualname__ = name_of(model)
    units = np.tile(np.eye(count, dtype=space.dtype), (call.size, 1))
    repeated = [np.repeat(row, count, axis=0) for row in rows]
    return OutputSamples(loss, (None, 0, 0, None), (units, repeated, shared), count, tuple([x.shape for x in avals]))


@keeps_parameters
@transform
def ntk(f: Callable[..., Any], in_dims: Any = None) -> Callable[..., Any]:
    """The neural tangent kernel J Jᵀ of a model between all samples of a batch, without the Jacobian J.

    Called with (params, *batch). For a model with one number for a sample the kernel is (samples, samples); for outputs
    of shape s it is (samples, *s, samples, *s). A weight in a matrix product contributes products of inner products of
    its inputs and of output gradients, without its own gradients. `func.jit` compiles it.

    Args:
        f: The model: its outputs, an array, for ONE sample, func(params, *sample).
        in_dims: The axis of the samples in each argument, as for `func.vmap`; the first is None, the parameters. By
            default axis 0 of every other argument.

    Source: A. Jacot, F. Gabriel and C. Hongler (2018), arXiv:1806.07572; R. Novak, J. Sohl-Dickstein and S. S.
    Schoenholz (2022), arXiv:2206.08720, section 3.

    Example:
        >>> import numpy as np, func
        >>> func.ntk(lambda w, x: np.sum(w ** 2 * x))(np.ones(2), np.array([[1.0, 0.0], [1.0, 2.0]]))
        array([[ 4.,  4.],
               [ 4., 20.]])
    """
    check_no_value(in_dims, "in_dims", "ntk", f)

    def kernel_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not args:
            raise ArgumentError(f"func.ntk: call it with parameters and a batch, {name_of(f)} got none")
        params, *batch = args
        pairs = outputs_as_samples(f, in_dims, params, tuple(batch), kwargs, lambda o, e: e, "ntk")
        if len(pairs.shapes) != 1:
            raise ArgumentError(
                f"func.ntk: {name_of(f)} must return one array, not {len(pairs.shapes)}; join them by "
                'np.concatenate, or take func.linear_operator("ntk", ...)'
            )
        gram = per_sample(pairs.loss, pairs.in_dims).gram(params, *pairs.batch)
        samples = gram.shape[0] // pairs.outputs
        return gram.reshape(samples, *pairs.shapes[0], samples, *pairs.shapes[0])

    return kernel_of
