"""The names of functions and options of JAX, PyTorch and autograd in func: suggestions for missing ones."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_NUMPY = "np.{name}, which works inside transforms; func.tensor(...) makes a tensor of an array"
_MADE = "np.{name}; to write traced values into the array, run the code with func.intercept()"
_SAME_IN_NUMPY = ("array", "asarray", "zeros_like")
_MAKING = ("arange", "empty", "eye", "full", "linspace", "ones", "zeros")
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
    "PRNGKey": "func.random.key",
    "block_until_ready": "nothing: results are there when a call returns",
    "cat": "np.concatenate",
    "compile": "func.jit",
    "curl": "func.jacobian, whose entries it combines",
    "custom_grad": "func.custom_gradient, func.custom_vjp or func.custom_jvp",
    "default_device": "nothing: an array lives where its data are",
    "defjvp": "func.custom_jvp",
    "defvjp": "func.custom_vjp",
    "deriv": "func.grad, or func.elementwise_grad for an array of points",
    "device": "nothing: an array lives where its data are",
    "device_get": "nothing: arrays are NumPy's or CuPy's own",
    "device_put": "nothing: arrays are NumPy's or CuPy's own; cupy.asarray moves them",
    "enable_x64": "nothing: results have the dtypes that NumPy gives",
    "from_numpy": "func.tensor(array)",
    "functional_call": "a function of the parameters: func.grad and func.vmap take trees of arrays",
    "gradient": "func.grad",
    "graph": "func.make_program",
    "hess": "func.hessian",
    "jac": "func.jacobian",
    "jacobian_forward": "func.jacfwd",
    "lax": _LOOPS,
    "make_ggnvp": "func.ggnvp",
    "make_graphed_callables": "func.jit",
    "make_hvp": "func.hvp",
    "make_jaxpr": "func.make_program",
    "make_jvp": "func.jvp",
    "make_vjp": "func.vjp",
    "manual_seed": "func.random.key(seed): every function of func.random takes a key",
    "nn": "plain NumPy: func.special has softmax, logsumexp, expit and the like",
    "optim": "plain NumPy, or scipy.optimize with func.grad as jac",
    "pmap": "func.vmap on one device, func.spmd for processes",
    "pytree": "func.tree",
    "rand": "func.random.uniform(key, shape)",
    "randn": "func.random.normal(key, shape)",
    "ravel_pytree": "func.tree.ravel",
    "relu": "np.maximum(x, 0)",
    "set_default_dtype": "nothing: results have the dtypes that NumPy gives",
    "sigmoid": "func.special.expit",
    "softmax": "func.special.softmax",
    "stack_module_state": "func.tree.map(lambda *leaves: np.stack(leaves), *trees)",
    "tree_flatten": "func.tree.flatten",
    "tree_leaves": "func.tree.leaves",
    "tree_map": "func.tree.map",
    "tree_unflatten": "func.tree.unflatten",
    "tree_util": "func.tree",
    "value_grad": "func.value_and_grad",
    "xmap": "func.vmap",
    **dict.fromkeys(_SAME_IN_NUMPY, _NUMPY),
    **dict.fromkeys(_MAKING, _MADE),
}
"""Suggestions for missing names of the module func."""

IN_NUMPY = {"random": "func.random, or np.random outside of transforms", "fft": "func.numpy.fft"}
"""The same for the module func.numpy."""

IN_RANDOM = {
    "PRNGKey": "func.random.key(seed)",
    "RandomState": "func.random.default_rng(key)",
    "manual_seed": "func.random.key(seed): every function takes a key",
    "rand": "func.random.uniform(key, shape)",
    "randn": "func.random.normal(key, shape)",
    "random": "func.random.uniform(key, shape)",
    "seed": "func.random.key(seed): every function takes a key",
}
"""The same for the module func.random."""

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

OPTIONS = {
    "argnum": "argnums",
    "batch_size": "chunk_size",
    "callback": "f",
    "fn": "f",
    "fun": "f",
    "func": "f",
    "function": "f",
    "in_axes": "in_dims",
    "init_val": "init",
    "out_axes": "out_dims",
    "primal": "primals",
    "result_shape_dtypes": "result_shape",
    "static_argname": "static_argnames",
    "static_argnum": "static_argnums",
    "tangent": "tangents",
}
"""Options by other names, which public functions understand."""

_NOTHING = "leave it out: {}"
NO_OPTIONS = {
    "allow_unused": _NOTHING.format("what the output does not depend on has a gradient of zeros"),
    "axis_env": "func.vmap(axis_name=...) around it",
    "backend": "compiler='llvm' or 'numpy'; arrays of CuPy are computed on their device",
    "create_graph": _NOTHING.format("derivatives can always be differentiated again"),
    "device": _NOTHING.format("arrays of CuPy are computed on their device, those of NumPy on the CPU"),
    "dynamic": _NOTHING.format("each shape has a program"),
    "fullgraph": _NOTHING.format("jit compiles a function as a whole, or raises an error with the line"),
    "inline": _NOTHING.format("compiled calls inside others are always inlined"),
    "is_leaf": "func.tree.register_node or register_dataclass for classes; tuples, lists and dicts are always trees",
    "keep_unused": _NOTHING.format("arguments that are not used cost nothing"),
    "out_shardings": _NOTHING.format("arrays are not distributed"),
    "in_shardings": _NOTHING.format("arrays are not distributed"),
    "prevent_cse": _NOTHING.format("no pass joins what a checkpoint computes again with what was computed before"),
    "reduce_axes": "func.collectives.psum of the gradient",
    "retain_graph": _NOTHING.format("what func.vjp returns can be called many times"),
    "return_shape": "func.eval_shape(f, *args)",
    "spmd_axis_name": _NOTHING.format("arrays are not distributed"),
    "strategy": "mode='fwd' or 'rev'",
    "vectorize": _NOTHING.format("all rows are computed at once, or chunk_size of them"),
}
"""Suggestions for options that func lacks."""


def renamed_options(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError
) -> dict[str, Any] | None:
    """The keywords of a failed call, by their names here, if the call has some of other libraries. None if the call
    failed for another reason. Adds a suggestion to an error about an unknown keyword.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
        is_bound = True
    except TypeError:
        is_bound = False
    parameters = signature.parameters
    name = function.__qualname__.removesuffix(".__init__")
    public = name if "." in name else f"{_module_of(function)}.{name}"
    if is_bound:  # the function has run; the error may belong to its own call
        for key in {*kwargs} - {*parameters}:
            if key in NO_OPTIONS and f"unexpected keyword argument '{key}'" in str(error):
                error.args = (f"{error}; {public} has no option {key!r}, {_instead(key, ())[2:]}",)
        return None
    takes = {p.name for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    renamed: dict[str, Any] = {}
    for key, value in kwargs.items():
        known = key if key in takes or OPTIONS.get(key) not in takes else OPTIONS[key]
        if known in renamed or (known != key and known in kwargs):
            error.args = (f"{public}: {known} appears twice, also as {key}",)
            return None
        renamed[known] = value
    if renamed.keys() != kwargs.keys():
        return renamed
    takes_any = any([p.kind is p.VAR_KEYWORD for p in parameters.values()])
    for key in kwargs:
        if key not in takes and not takes_any:
            error.args = (f"{public} has no option {key!r}{_instead(key, takes)}",)
            break
    return None


def _module_of(function: Callable[..., Any]) -> str:
    """The public module of a function."""
    return function.__module__ if function.__module__ in ("func.debug", "func.testing", "func.tree") else "func"


def _instead(option: str, takes: Iterable[str]) -> str:
    """The suggestion for an option that a function lacks."""
    if option in NO_OPTIONS:
        return f"; write {NO_OPTIONS[option]}".replace("write leave", "leave")
    if close := difflib.get_close_matches(option, takes, 1, 0.6):
        return f"; did you mean {close[0]}?"
    return f"; it takes {', '.join(sorted(takes))}" if takes else ""


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
