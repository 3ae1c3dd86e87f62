"""Dask arrays as arguments: transforms of functions of one row, or one element, run block by block, lazily."""

from __future__ import annotations

import importlib
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from func import tree
from func.errors import MappedAxisError
from func.transforms.boundary import argument_paths, is_dask_array, name_of
from func.transforms.vmapping import _split_dims, _synonym, broadcast_prefix, vmap
from func.workers.dask_gradients import gradient_by_blocks


def vmap_by_blocks(transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`vmap(f)(*args, **kwargs)` with Dask arrays among the arguments: Dask arrays with the same chunks of rows."""
    dask: Any = importlib.import_module("dask")  # the arrays belong to it
    da: Any = importlib.import_module("dask.array")
    function, options = transformed.__wrapped__, transformed._options
    in_dims = _synonym("in_dims", options["in_dims"], "in_axes", options["in_axes"])
    out_dims = _synonym("out_dims", options["out_dims"], "out_axes", options["out_axes"])
    arg_dims, kwarg_dims = _split_dims(function, in_dims, args, kwargs)
    leaves, spec = tree.flatten((args, kwargs))
    dims = [
        *broadcast_prefix(arg_dims, tree.structure(args), "in_dims", "arguments"),
        *broadcast_prefix(kwarg_dims, tree.structure(kwargs), "in_dims", "keyword arguments"),
    ]
    paths = argument_paths(function, args, kwargs)
    axes = [
        None if dim is None else _axis(dim, leaf, path) for dim, leaf, path in zip(dims, leaves, paths, strict=True)
    ]
    rows = _rows(leaves, axes, paths)
    columns = [_blocks(leaf, axis, rows, path) for leaf, axis, path in zip(leaves, axes, paths, strict=True)]
    same = {"randomness": options["randomness"], "axis_name": options["axis_name"]}
    run = _MappedBlock(function, spec, axes, same, out_dims)
    outs, out_spec = run.example(leaves)
    places = [int(dim or 0) for dim in broadcast_prefix(out_dims, out_spec, "out_dims", "output")]
    label = f"func.vmap({name_of(function)})-{os.urandom(8).hex()}"
    results: list[list[Any]] = [[] for _ in outs]
    for number, count in enumerate(rows):
        block = dask.delayed(run, pure=False)(
            *[column[number] for column in columns], dask_key_name=f"{label}-{number}"
        )
        for k, out in enumerate(outs):
            axis = places[k] % out.ndim
            shape = (*out.shape[:axis], count, *out.shape[axis + 1 :])
            results[k].append(da.from_delayed(block[k], shape, out.dtype))
    joined = [da.concatenate(parts, axis=places[k]) for k, parts in enumerate(results)]
    return tree.unflatten(out_spec, joined)


class _MappedBlock:
    """The mapped function on one block of each argument; it returns the leaves of the output."""

    def __init__(
        self, function: Callable[..., Any], spec: Any, axes: Sequence[Any], options: dict[str, Any], out_dims: Any
    ) -> None:
        self.function = function
        self.spec = spec
        self.axes = axes
        self.options = options
        self.out_dims = out_dims

    def __call__(self, *leaves: Any) -> list[Any]:
        return self.outputs(leaves)[0]

    def outputs(self, leaves: Sequence[Any]) -> tuple[list[Any], Any]:
        """The leaves of the output and their tree."""
        args, kwargs = tree.unflatten(self.spec, leaves)
        arg_dims, kwarg_dims = tree.unflatten(self.spec, self.axes)
        mapped = vmap(self.function, (*arg_dims, kwarg_dims), self.out_dims, **self.options)
        outs, spec = tree.flatten(mapped(*args, **kwargs))
        return [np.asarray(out) for out in outs], spec

    def example(self, leaves: Sequence[Any]) -> tuple[list[Any], Any]:
        """The outputs for one row of ones, which show Dask the result type; Python may decide otherwise on others."""
        rows = []
        for leaf, axis in zip(leaves, self.axes, strict=True):
            if axis is None:
                rows.append(np.ones(leaf.shape, leaf.dtype) if is_dask_array(leaf) else leaf)
            else:
                rows.append(np.ones((*leaf.shape[:axis], 1, *leaf.shape[axis + 1 :]), leaf.dtype))
        return self.outputs(rows)


def _axis(dim: Any, leaf: Any, path: str) -> int:
    ndim = np.ndim(leaf) if not hasattr(leaf, "ndim") else leaf.ndim
    if not -ndim <= int(dim) < ndim:
        raise MappedAxisError(f"func.vmap: in_dims={dim} is out of range for {path} of shape {tuple(leaf.shape)}")
    return int(dim) % ndim


def _rows(leaves: Sequence[Any], axes: Sequence[Any], paths: Sequence[str]) -> tuple[int, ...]:
    """The chunks of rows: those of the first mapped Dask array."""
    chunks: tuple[int, ...] = ()
    sizes = {}
    for leaf, axis, path in zip(leaves, axes, paths, strict=True):
        if axis is None:
            continue
        if is_dask_array(leaf):
            if any([size != size for size in leaf.chunks[axis]]):
                leaf.compute_chunk_sizes()
            chunks = chunks or leaf.chunks[axis]
        sizes[path] = np.shape(leaf)[axis]
    if len(set(sizes.values())) > 1:
        listed = ", ".join([f"{path} has {size}" for path, size in sizes.items()])
        raise MappedAxisError(f"func.vmap: mapped axes differ in size: {listed}")
    return chunks or (next(iter(sizes.values())),)


def _blocks(leaf: Any, axis: int | None, rows: Sequence[int], path: str) -> list[Any]:
    """One part for each chunk of rows."""
    if not is_dask_array(leaf):
        if axis is None:
            return [leaf] * len(rows)
        return list(np.split(np.asarray(leaf), np.cumsum(rows)[:-1], axis=axis))
    if axis is None:
        whole = leaf.rechunk(-1).to_delayed().ravel()[0]
        return [whole] * len(rows)
    target_chunks = {place: tuple(rows) if place == axis else -1 for place in range(leaf.ndim)}
    return list(leaf.rechunk(target_chunks).to_delayed().ravel())


def elementwise_by_blocks(transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`elementwise_grad(f)(*args, **kwargs)` on Dask arrays: derivatives with the chunks of the arguments."""
    da: Any = importlib.import_module("dask.array")
    options = transformed._options
    argnums: Any = options["argnums"]
    argnames = options["argnames"]
    several = isinstance(argnums, (tuple, list)) or argnames is not None
    if several or kwargs:
        raise TypeError(
            "func.elementwise_grad: of Dask arrays it takes one position in argnums and positional arguments; call it "
            "once for each argument"
        )
    label = f"func.elementwise_grad({name_of(transformed.__wrapped__)})-{os.urandom(8).hex()}"
    dtype = args[operator.index(cast(Any, argnums))].dtype
    return da.map_blocks(transformed, *args, dtype=dtype, name=label, meta=np.empty(0, dtype))


_BY_BLOCKS = {
    "vmap": vmap_by_blocks,
    "elementwise_grad": elementwise_by_blocks,
    "grad": gradient_by_blocks,
    "value_and_grad": gradient_by_blocks,
    "grad_and_value": gradient_by_blocks,
}
"""The transforms that work on blocks, by name."""


def transform_by_blocks(
    transform: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """The block-wise form of a transform on arrays of Dask; None if it takes whole arrays, or no Dask arrays."""
    has_blocks = any([is_dask_array(leaf) for leaf in tree.leaves((args, kwargs))])
    return _BY_BLOCKS.get(transform.__name__) if has_blocks else None
