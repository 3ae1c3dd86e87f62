"""The imperative interface: tensors with `backward`, gradient modes, hooks, `Function`, derivative checks."""

import importlib
from typing import TYPE_CHECKING, Any

# fmt: off
from func.interpreters.host.public_functions import without_engine_frames as _without_engine_frames
from func.autograd import forward_ad, graph
from func.autograd.backwards import backward, grad
from func.autograd.checkpointing import checkpoint, checkpoint_sequential
from func.autograd.function import Function, once_differentiable
from func.autograd.modes import (
    detect_anomaly, enable_grad, inference_mode, is_anomaly_enabled, is_grad_enabled, is_inference_mode_enabled,
    no_grad, set_detect_anomaly, set_grad_enabled,
)
from func.autograd.tensors import Tensor, attributes, tensor
from func.numpy.methods import extend as _extend
from func.interpreters.host.display import public_names as _public_names

if TYPE_CHECKING:
    from func.autograd import functional
    from func.autograd.derivative_checks import gradcheck, gradgradcheck

__all__ = [
    "Function", "Tensor", "backward", "checkpoint", "checkpoint_sequential", "detect_anomaly", "enable_grad",
    "forward_ad", "functional", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled", "tensor",
]
# fmt: on

_extend(attributes())


def __dir__() -> list[str]:
    return _public_names(globals())


@_without_engine_frames
def __getattr__(name: str) -> Any:
    """Import at first use what many programs never use."""
    if name == "functional":
        return importlib.import_module("func.autograd.functional")
    if name in ("gradcheck", "gradgradcheck"):
        return getattr(importlib.import_module("func.autograd.derivative_checks"), name)
    raise AttributeError(f"module 'func.autograd' has no attribute {name!r}")
