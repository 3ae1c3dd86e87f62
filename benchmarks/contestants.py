"""The contestants: one row each, with the loader of its library."""

import logging
import threading
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

FUNC = "func"
FUNC_JIT = "func.jit"
HIPS = "HIPS autograd"
TORCH_FUNC = "torch.func"
TORCH = "torch.autograd"
TORCH_COMPILE = "torch.compile"
JAX = "JAX eager"
JAX_JIT = "jax.jit"
JAX_UNROLLED = "jax.jit unrolled"
JAX_JET = "jax.jit of jet"
BY_HAND = "NumPy by hand"
PLAIN_GRADIENT = "the plain gradient"
DEPENDENCIES = "dependencies"


@dataclass(frozen=True)
class Contestant:
    """A way to do the work. `load` returns the library, which a workload's entry receives."""

    name: str
    load: Callable[[], Any]
    mode: Literal["eager", "compiled", "reference"] = "eager"
    ours: bool = False


# Imports of a library for the first call of a job are here: no first call pays for imports of SciPy.


def _load_func() -> Any:
    import func

    if not hasattr(func, "grad"):
        raise ModuleNotFoundError("No module named 'func' with transforms in it")
    import_module("func.special")
    return func


def _load_func_jit() -> Any:
    """func with its compiler started, as JAX's is, and its code for later calls compiled."""
    func = _load_func()
    others = set(threading.enumerate())
    func.jit(lambda x: x + 1)(import_module("numpy").zeros(1))
    for thread in set(threading.enumerate()) - others:
        thread.join()
    return func


def _load_hips() -> Any:
    for name in ("numpy", "scipy.linalg", "scipy.signal", "scipy.special"):
        import_module(f"autograd.{name}")
    return import_module("autograd")


def _load_torch() -> Any:
    """torch, without the messages of its compiler, above all when the time limit interrupts it."""
    import torch

    for name in (name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"):
        for handler in logging.getLogger(name).handlers:
            handler.setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=r"torch\.")
    return torch


def _load_jax() -> Any:
    """JAX with float64 enabled and its backend started, so that no workload's first call pays for them."""
    jax: Any = import_module("jax")
    import_module("jax.scipy.linalg")
    jax.config.update("jax_enable_x64", True)
    jax.block_until_ready(jax.numpy.zeros(1) + 1)
    return jax


def _load_numpy() -> Any:
    import numpy

    return numpy


CONTESTANTS = (
    Contestant(FUNC, _load_func, ours=True),
    Contestant(FUNC_JIT, _load_func_jit, mode="compiled", ours=True),
    Contestant(HIPS, _load_hips),
    Contestant(TORCH_FUNC, _load_torch),
    Contestant(TORCH, _load_torch),
    Contestant(TORCH_COMPILE, _load_torch, mode="compiled"),
    Contestant(JAX, _load_jax),
    Contestant(JAX_JIT, _load_jax, mode="compiled"),
    Contestant(JAX_UNROLLED, _load_jax, mode="compiled"),
    Contestant(JAX_JET, _load_jax, mode="compiled"),
    Contestant(BY_HAND, _load_numpy, mode="reference"),
    Contestant(PLAIN_GRADIENT, _load_func_jit, mode="reference"),
    Contestant(DEPENDENCIES, _load_numpy, mode="reference"),
)


def load_libraries(names: Collection[str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """The libraries (of these contestants) that can be imported; for each of the others the reason that it cannot."""
    libraries: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for contestant in (row for row in CONTESTANTS if names is None or row.name in names):
        try:
            libraries[contestant.name] = contestant.load()
        except ModuleNotFoundError as error:
            missing[contestant.name] = f"not installed ({error})"
        except Exception as error:
            missing[contestant.name] = f"cannot be imported ({type(error).__name__}: {error})"
    return libraries, missing
