"""What functions of JAX, PyTorch and autograd are called here: the words of errors about names that func lacks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np

_NUMPY = "np.{name}, which works inside transforms; func.tensor(...) makes a tensor of an array"
_SAME_IN_NUMPY = ("array", "asarray", "arange", "empty", "eye", "full", "linspace", "ones", "zeros", "zeros_like")
_LOOPS = "func.scan, func.while_loop, func.fori_loop, func.cond, func.switch, func.map and func.associative_scan"
_RANDOM = "func.random.{name}(key, ...) with a key of func.random.key(seed), or func.random.default_rng(key)"

_TENSOR = "func.tensor(data), with dtype= for another type of its elements"
INSTEAD = {
    "DoubleTensor": _TENSOR,
    "FloatTensor": _TENSOR,
    "LongTensor": _TENSOR,
    "Parameter": "func.tensor(data, requires_grad=True)",
    "Variable": "func.tensor(data, requires_grad=True)",
    "as_tensor": "func.tensor(data)",
    "block_until_ready": "nothing: results are there when a call returns",
    "compile": "func.jit",
    "custom_grad": "func.custom_gradient, func.custom_vjp or func.custom_jvp",
    "defjvp": "func.custom_jvp",
    "defvjp": "func.custom_vjp",
    "device_get": "nothing: arrays are NumPy's or CuPy's own",
    "device_put": "nothing: arrays are NumPy's or CuPy's own; cupy.asarray moves them",
    "enable_x64": "nothing: results have the dtypes that NumPy gives",
    "from_numpy": "func.tensor(array)",
    "functional_call": "a function of the parameters: func.grad and func.vmap take trees of arrays",
    "gradient": "func.grad",
    "graph": "func.make_program",
    "jacobian_forward": "func.jacfwd",
    "lax": _LOOPS,
    "make_ggnvp": "func.ggnvp",
    "make_graphed_callables": "func.jit",
    "make_hvp": "func.hvp",
    "make_jaxpr": "func.make_program",
    "make_jvp": "func.jvp",
    "make_vjp": "func.vjp",
    "nn": "plain NumPy: func.special has softmax, logsumexp, expit and the like",
    "optim": "plain NumPy, or scipy.optimize with func.grad as jac",
    "pmap": "func.vmap",
    "pytree": "func.tree",
    "rand": "func.random.uniform(key, shape)",
    "randn": "func.random.normal(key, shape)",
    "stack_module_state": "func.tree.map(lambda *leaves: np.stack(leaves), *trees)",
    "tree_flatten": "func.tree.flatten",
    "tree_leaves": "func.tree.leaves",
    "tree_map": "func.tree.map",
    "tree_unflatten": "func.tree.unflatten",
    "tree_util": "func.tree",
    "value_grad": "func.value_and_grad",
    "xmap": "func.vmap",
    **dict.fromkeys(_SAME_IN_NUMPY, _NUMPY),
}
"""What to write instead of a name of the module func."""

IN_NUMPY = {"random": "func.random, or np.random outside of transforms", "fft": "func.numpy.fft"}
"""The same for the module func.numpy."""

IN_TREE = {
    "tree_flatten": "func.tree.flatten",
    "tree_leaves": "func.tree.leaves",
    "tree_map": "func.tree.map",
    "tree_structure": "func.tree.structure",
    "tree_unflatten": "func.tree.unflatten",
    "multimap": "func.tree.map, which takes several trees",
    "register_pytree_node": "func.tree.register_node",
}
"""The same for the module func.tree."""


def no_name(module: str, name: str, known: Iterable[str], instead: dict[str, str]) -> AttributeError:
    """The error for a name that a module lacks."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in instead:
        text += f"; write {instead[name].format(name=name)}"
    elif close := difflib.get_close_matches(name, known, 1, 0.75):
        text += f"; did you mean {module}.{close[0]}?"
    elif module != "func.tree" and callable(getattr(np, name, None)):
        text += f"; write np.{name}, which works inside transforms"
    return AttributeError(text, name=name)
