"""func: function transforms for the NumPy and CuPy code that people already have.

>>> import numpy as np, func
>>> def loss(w, x, y):
...     return np.mean((np.tanh(x @ w) - y) ** 2)
>>> w, x, y = np.ones(3), np.eye(3), np.zeros(3)
>>> func.grad(loss)(w, x, y).shape
(3,)
"""

import importlib
from typing import TYPE_CHECKING, Any

from func import autograd, debug, errors, linalg, numpy, testing, tree
from func.autograd import (
    Tensor,
    backward,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
    tensor,
)
from func.checkpointing import checkpoint, checkpoint_name, checkpoint_policies, remat
from func.custom import custom_gradient, custom_jvp, custom_vjp, custom_vmap, stop_gradient
from func.forward import ggnvp, hvp, jvp, linear_transpose, linearize, vhp
from func.interception import intercept
from func.jacobians import hessian, jacfwd, jacobian, jacrev
from func.mapping import vmap
from func.reverse import grad, grad_and_value, value_and_grad, vjp
from func.staging import eval_shape, make_program

if TYPE_CHECKING:
    from func import random, special

__version__ = "0.1.0"

__all__ = [
    "Tensor",
    "autograd",
    "backward",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "enable_grad",
    "errors",
    "eval_shape",
    "ggnvp",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "inference_mode",
    "intercept",
    "is_grad_enabled",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linalg",
    "linear_transpose",
    "linearize",
    "make_program",
    "no_grad",
    "numpy",
    "random",
    "remat",
    "set_grad_enabled",
    "special",
    "stop_gradient",
    "tensor",
    "testing",
    "tree",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    """func.random and func.special are imported when they are first used: SciPy's special functions take a while."""
    if name in ("random", "special"):
        return importlib.import_module(f"func.{name}")
    raise AttributeError(f"module 'func' has no attribute {name!r}")
