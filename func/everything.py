"""All that `import func` leaves for the first use: the modules behind the public names, and what they hook into NumPy.

`func` imports this module when a public name is first asked for, or when a module of the package is first imported.
"""

# fmt: off
from func import autograd, collectives, debug, errors, numpy, tree
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
from func.compilation.jit import clear_caches, disable_jit, jit
from func.compilation.staging import eval_shape, make_program
from func.configuration import config
from func.interception import intercept
from func.numpy.warned_lines import install as _attribute_warnings
from func.scipy.imports import watch_imports as _watch_imports
from func.transforms.checkpointing import checkpoint, checkpoint_name, checkpoint_policies, remat
from func.transforms.custom import custom_gradient, custom_jvp, custom_vjp, custom_vmap, stop_gradient
from func.transforms.forward import ggnvp, hvp, jvp, linear_transpose, linearize, vhp
from func.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from func.transforms.reverse import elementwise_grad, grad, grad_and_value, value_and_grad, vjp
from func.transforms.vmapping import vmap

__all__ = [
    "Tensor", "autograd", "backward", "checkpoint", "checkpoint_name", "checkpoint_policies", "clear_caches",
    "collectives", "config", "custom_gradient", "custom_jvp", "custom_vjp", "custom_vmap", "debug", "disable_jit",
    "elementwise_grad", "enable_grad", "errors", "eval_shape", "ggnvp", "grad", "grad_and_value", "hessian", "hvp",
    "inference_mode", "intercept", "is_grad_enabled", "jacfwd", "jacobian", "jacrev", "jit", "jvp",
    "linear_transpose", "linearize", "make_program", "no_grad", "numpy", "remat", "set_grad_enabled", "stop_gradient",
    "tensor", "tree", "value_and_grad", "vhp", "vjp", "vmap",
]
# fmt: on

_watch_imports()
_attribute_warnings()
