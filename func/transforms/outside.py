"""`pure_callback`: untraced code as a function of traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func import tree
from func.backends.records import ValueRecord
from func.interpreters.calls.callback import VMAP_METHODS, name_of_function
from func.interpreters.calls.callback import pure_callback as primitive
from func.interpreters.core import Aval, Tracer, dtype_of, shape_of
from func.interpreters.core.errors import ArgumentError, CustomRuleError
from func.interpreters.core.modes import body_above
from func.interpreters.host.public_functions import without_engine_frames
from func.transforms.boundary import array_leaf, check_callable


class FlatOutside(ValueRecord):
    """An outside function of trees as one of flat arrays."""

    function: Callable[..., Any]
    in_spec: Any
    out_spec: Any

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return name_of_function(self.function)

    def __call__(self, *leaves: Any) -> list[Any]:
        leaves_out, spec = tree.flatten(self.function(*tree.unflatten(self.in_spec, leaves)))
        if spec != self.out_spec:
            raise CustomRuleError(
                f"the outside function {self.name} returned the tree {tree.shown(spec)} where "
                f"{tree.shown(self.out_spec)} was promised"
            )
        return leaves_out


def promised(leaf: Any) -> Aval:
    """The aval of an array, or of any object with a shape and a dtype."""
    if type(leaf) is Aval:
        return leaf
    return Aval(tuple(shape_of(leaf)), dtype_of(leaf))


@without_engine_frames
def pure_callback(f: Callable[..., Any], result_shape: Any, *args: Any, vmap_method: str | None = None) -> Any:
    """function(*args), computed by untraced code: compiled libraries, files, other processes.

    The function gets copies of the arrays behind traced values, and returns arrays. It runs at the call, under `jit`
    each time that the compiled code runs. It must have no side effects: func drops calls with unused results. It has no
    derivative; to give it one, call it in a function with a rule (`func.custom_jvp`, `func.custom_vjp`).

    Args:
        f: Takes and returns trees of arrays.
        result_shape: A tree like the result, of objects with `shape` and `dtype`, such as the result of
            `func.eval_shape`.
        args: Trees of arrays.
        vmap_method: The behaviour under `vmap`. "sequential" calls the function for each batch element. With
            "broadcast_all" and "expand_dims" it takes and returns leading batch axes; for the latter, of length one
            where an argument has none. None raises an error.

    Raises:
        CustomRuleError: The result has another tree, shape or dtype than `result_shape` (a TypeError).
        NotDifferentiableError: A transform differentiates it (a TypeError).

    Example:
        >>> import numpy as np, func
        >>> def outside(x):
        ...     return np.sort(x)
        >>> func.jit(lambda x: 2 * func.pure_callback(outside, x, x))(np.array([3.0, 1.0]))
        array([2., 6.])
    """
    check_callable(f, "pure_callback")
    if vmap_method not in VMAP_METHODS:
        known = ", ".join([repr(method) for method in VMAP_METHODS])
        raise ArgumentError(f"func.pure_callback: vmap_method={vmap_method!r} is none of {known}")
    leaves, in_spec = tree.flatten(args)
    names = tree.path_names(args, "args")
    leaves = [array_leaf(leaf, name, "pure_callback") for leaf, name in zip(leaves, names, strict=True)]
    shapes, out_spec = tree.flatten(result_shape)
    params = {
        "function": FlatOutside(f, in_spec, out_spec),
        "outs": tuple([promised(leaf) for leaf in shapes]),
        "vmap_method": vmap_method,
    }
    body = None if any([type(leaf) is Tracer for leaf in leaves]) else body_above(0)
    outs = primitive(*leaves, **params) if body is None else body.apply(primitive, tuple(leaves), params)
    return tree.unflatten(out_spec, outs)
