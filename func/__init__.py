"""Function transforms for existing NumPy and CuPy code: gradients, Jacobians, batching, compilation.

>>> import numpy as np, func
>>> def loss(w, x, y):
...     return np.mean((np.tanh(x @ w) - y) ** 2)
>>> w, x, y = np.ones(3), np.eye(3), np.zeros(3)
>>> func.grad(loss)(w, x, y).shape
(3,)
"""

import contextlib
import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

# In a checkout without symbolic links, as of git on Windows, the links to the other folders are text files.
__path__ = __path__ if os.path.isdir(f"{__path__[0]}/backends") else [*__path__, os.path.dirname(__path__[0])]

if TYPE_CHECKING:
    # fmt: off
    from func import autograd, collectives, debug, errors, numpy, tree
    from func.autograd import Tensor, backward, enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
    from func.autograd import tensor as tensor
    from func.compilation.c_export import CModule, export, to_c
    from func.compilation.exporting import load, save, to_source
    from func.compilation.jit import clear_caches, disable_jit, jit
    from func.compilation.staging import eval_shape, make_program
    from func.configuration import config
    from func.host.interception import intercept
    from func.transforms.checkpointing import checkpoint, checkpoint_name, checkpoint_policies, remat
    from func.transforms.custom import custom_gradient, custom_jvp, custom_vjp, custom_vmap, stop_gradient
    from func.transforms.forward import ggnvp, hvp, jvp, linear_transpose, linearize, vhp
    from func.transforms.jacobians import hessian, jacfwd, jacobian, jacrev, lagrangian_hessian
    from func.transforms.propagation import propagate
    from func.transforms.reverse import elementwise_grad, grad, grad_and_value, value_and_grad, vjp
    from func.transforms.vmapping import vmap
    # fmt: on
    from func import linalg, random, scipy, special, testing
    from func.compilation.memory_timeline import memory
    from func.control.associative_scan import associative_scan
    from func.control.branches_and_loops import cond, fori_loop, switch, while_loop
    from func.control.fixed_points import fixed_point
    from func.control.scanning import map as map
    from func.control.scanning import scan
    from func.curvature.curvature_operators import linear_operator
    from func.curvature.kronecker import kronecker_factors
    from func.curvature.krylov import lanczos, lanczos_quadrature
    from func.curvature.sample_outputs import ntk
    from func.message_passing.single_program import spmd
    from func.sample_gradients.per_sample import per_sample
    from func.sparse_derivatives.derivatives import sparse_hessian, sparse_jacobian, sparsity
    from func.sparse_derivatives.pictures import spy
    from func.transforms.implicit import custom_linear_solve, custom_root
    from func.transforms.outside import pure_callback
    from func.transforms.power_series import derivatives, jet, taylor, taylor_flow
    from func.transforms.second_order import (
        biharmonic,
        directional_derivatives,
        divergence,
        hessian_diagonal,
        laplacian,
    )
    from func.transforms.stochastic import hutch_plus_plus, hutchinson_diagonal, hutchinson_trace
    from func.workers.data_sums import sum_over

__version__ = "0.1.0"

# All public names but `map`: `from func import *` leaves the builtin of that name what it is.
# fmt: off
__all__ = [
    "CModule", "Tensor", "associative_scan", "autograd", "backward", "biharmonic", "checkpoint", "checkpoint_name",
    "checkpoint_policies", "clear_caches", "collectives", "cond", "config", "custom_gradient", "custom_jvp",
    "custom_linear_solve", "custom_root", "custom_vjp", "custom_vmap", "debug", "derivatives",
    "directional_derivatives", "disable_jit", "divergence", "elementwise_grad", "enable_grad", "errors",
    "eval_shape", "export", "fixed_point", "fori_loop", "ggnvp", "grad", "grad_and_value", "hessian",
    "hessian_diagonal", "hutch_plus_plus", "hutchinson_diagonal", "hutchinson_trace", "hvp", "inference_mode",
    "intercept", "is_grad_enabled", "jacfwd", "jacobian", "jacrev", "jet", "jit", "jvp", "kronecker_factors",
    "lagrangian_hessian", "lanczos", "lanczos_quadrature", "laplacian", "linalg", "linear_operator",
    "linear_transpose", "linearize", "load", "make_program", "memory", "no_grad", "ntk", "numpy", "per_sample",
    "propagate", "pure_callback", "random", "remat", "save", "scan", "scipy", "set_grad_enabled", "sparse_hessian",
    "sparse_jacobian", "sparsity", "special", "spmd", "spy", "stop_gradient", "sum_over", "switch", "taylor",
    "taylor_flow", "tensor", "testing", "to_c", "to_source", "tree", "value_and_grad", "vhp", "vjp", "vmap",
    "while_loop",
]
# fmt: on

_IN_MODULES = {
    name: f"func.{module}"
    for module, names in {
        "autograd": "Tensor backward enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled tensor",
        "compilation.c_export": "CModule export to_c",
        "compilation.exporting": "load save to_source",
        "compilation.jit": "clear_caches disable_jit jit",
        "compilation.memory_timeline": "memory",
        "compilation.staging": "eval_shape make_program",
        "configuration": "config",
        "control.associative_scan": "associative_scan",
        "control.branches_and_loops": "cond fori_loop switch while_loop",
        "control.fixed_points": "fixed_point",
        "control.scanning": "map scan",
        "curvature.curvature_operators": "linear_operator",
        "curvature.kronecker": "kronecker_factors",
        "curvature.krylov": "lanczos lanczos_quadrature",
        "curvature.sample_outputs": "ntk",
        "host.interception": "intercept",
        "message_passing.single_program": "spmd",
        "sample_gradients.per_sample": "per_sample",
        "sparse_derivatives.derivatives": "sparse_hessian sparse_jacobian sparsity",
        "sparse_derivatives.pictures": "spy",
        "transforms.checkpointing": "checkpoint checkpoint_name checkpoint_policies remat",
        "transforms.custom": "custom_gradient custom_jvp custom_vjp custom_vmap stop_gradient",
        "transforms.forward": "ggnvp hvp jvp linear_transpose linearize vhp",
        "transforms.implicit": "custom_linear_solve custom_root",
        "transforms.jacobians": "hessian jacfwd jacobian jacrev lagrangian_hessian",
        "transforms.outside": "pure_callback",
        "transforms.power_series": "derivatives jet taylor taylor_flow",
        "transforms.propagation": "propagate",
        "transforms.reverse": "elementwise_grad grad grad_and_value value_and_grad vjp",
        "transforms.second_order": "biharmonic directional_derivatives divergence hessian_diagonal laplacian",
        "transforms.stochastic": "hutch_plus_plus hutchinson_diagonal hutchinson_trace",
        "transforms.vmapping": "vmap",
        "workers.data_sums": "sum_over",
    }.items()
    for name in names.split()
}
"""The module of each public name, imported when the name is first used."""

_START_FOLDER = ""
"""The working folder of the process; relative settings refer to it."""
with contextlib.suppress(OSError):  # a removed folder
    _START_FOLDER = os.getcwd()

_SUBMODULES = frozenset(
    {"autograd", "collectives", "debug", "errors", "linalg", "numpy", "random", "scipy", "special", "testing", "tree"}
)
_loader: dict[str, int] = {}
"""`thread`: the thread that imports `func.host.start`, or has done so."""
_loading: set[int] = set()
"""The same thread, while the import runs."""


_IMPORTED = frozenset({"func", "numpy", "scipy", "llvmlite", "optree"})
"""The packages that func imports late."""
_LONGEST_WAIT = 10.0
"""The seconds that a fork waits for an import, which may itself wait for the forking thread."""


class _NotLoaded(ModuleType):
    """The class of the module `func` until its first use."""


class _FirstImport:
    """Imports `func.host.start` before the first part of the package, and then the part."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The existing module; None if it is missing, so that the usual finders look for it."""
        if not name.startswith(f"{__name__}.") or threading.get_ident() in _loading:
            return None
        _load(waits=False)
        module = sys.modules.get(name)
        if module is None or module.__spec__ is None:
            return None
        own = module.__spec__
        loader: Any = self
        spec = ModuleSpec(name, loader, origin=own.origin, is_package=own.submodule_search_locations is not None)
        spec.submodule_search_locations = own.submodule_search_locations
        spec.loader_state = module, own
        module.__spec__ = spec  # Python would take it for a module that another import has added
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself: a second one of its name would have separate classes and tables."""
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do."""
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state[1]


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Pauses the garbage collector during an import.

    The objects of an import persist: a collection over them takes a tenth of the import and half of a first call.
    Freezing and thawing makes all of them old without a collection.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if hasattr(gc, "freeze") and not gc.get_freeze_count():  # objects that the user has frozen stay frozen
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def _wait_for_imports() -> None:
    """Before a fork: let other threads finish their imports of func.

    A child has no such threads, and would wait forever for a module that one of them was importing. (CPython has locks
    of modules; where they have another form, there is no wait.)
    """
    time.sleep(0)  # a new time slice: no other thread begins an import between this check and the fork
    until = time.monotonic() + _LONGEST_WAIT
    while (_others_import() or _is_locked()) and time.monotonic() < until:
        time.sleep(0.001)


def _others_import() -> bool:
    """Whether another thread holds the lock of a module that func imports."""
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    mine = threading.get_ident()
    for name, reference in locks.copy().items():  # the copy is atomic
        if name.partition(".")[0] in _IMPORTED and getattr(reference(), "owner", None) not in (None, mine):
            return True
    return False


_is_locked = getattr(sys.modules.get("_imp"), "lock_held", bool)
"""Whether a thread is about to take the lock of a module: a fork would wait for it while others begin."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)


def _load(waits: bool) -> None:
    """Import the base of every use of func, except within that import itself.

    Another thread may be importing it: without `waits` the caller goes on, as that thread may need the caller's locks.
    """
    thread = threading.get_ident()
    if thread in _loading or (_loader.setdefault("thread", thread) != thread and not waits):
        return
    try:
        if _loader["thread"] == thread:
            _loading.add(thread)
        with _no_collections():
            importlib.import_module("func.host.start")
        sys.modules[__name__].__class__ = ModuleType
        if _FIRST_IMPORT in sys.meta_path:
            sys.meta_path.remove(_FIRST_IMPORT)
    except BaseException:
        _loader.pop("thread", None)
        raise
    finally:
        _loading.discard(thread)


sys.modules[__name__].__class__ = _NotLoaded
_FIRST_IMPORT = _FirstImport()
sys.meta_path.insert(0, _FIRST_IMPORT)


def __dir__() -> list[str]:
    """The public names alone: completion shows no internals."""
    names = [name for name in globals() if name.startswith("__")]
    return sorted({*__all__, "map", *names})


def __getattr__(name: str) -> Any:
    """Import at first use."""
    is_public = not name.startswith("_")
    if is_public and type(sys.modules[__name__]) is _NotLoaded:
        _load(waits=name not in _SUBMODULES)
        if name in globals():
            return globals()[name]
    if name in _SUBMODULES:
        with _no_collections():
            return importlib.import_module(f"func.{name}")
    if name in _IN_MODULES:
        with _no_collections():
            module = importlib.import_module(_IN_MODULES[name])
        return globals().setdefault(name, getattr(module, name))
    if not is_public or threading.get_ident() in _loading:
        raise AttributeError(f"module 'func' has no attribute {name!r}")
    other_names = importlib.import_module("func.other_names")
    try:
        raise other_names.no_name("func", name, __all__, other_names.INSTEAD)
    except AttributeError as error:
        importlib.import_module("func.interpreters.host.source").hide_engine_frames(error)
        raise
