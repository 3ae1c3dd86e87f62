"""scipy.sparse: matrices whose entries may be traced, and products of plain ones with traced arrays.

SciPy's constructors, called with traced entries, make objects of func's subclasses of SciPy's classes. Derivatives are
with respect to entries: the gradient of a sparse matrix has its pattern, and dense arrays appear only in dense results.
A sparse matrix is a tree, so that it can be an argument of `func.grad` or `func.jit`.

>>> import numpy as np, func, scipy.sparse
>>> places = (np.array([0, 1, 1]), np.array([0, 0, 1]))
>>> def f(data):
...     return np.sum(scipy.sparse.csr_array((data, places)) @ np.array([1.0, 3.0]))
>>> func.grad(f)(np.ones(3))
array([1., 1., 3.])
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

import scipy.sparse as _scipy

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.host import scipy_hooks
from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.sparse.construction import (
    block_array,
    block_diag,
    bmat,
    diags,
    diags_array,
    expand_dims,
    find,
    hstack,
    kron,
    permute_dims,
    spdiags,
    swapaxes,
    tril,
    triu,
    vstack,
)
from func.scipy.sparse.traced_matrices import CLASSES, LIFTED, become, lifted_method

__all__ = [
    "block_array", "block_diag", "bmat", "bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array",
    "csc_matrix", "csr_array", "csr_matrix", "dia_array", "dia_matrix", "diags", "diags_array", "expand_dims",
    "find", "hstack", "kron", "permute_dims", "spdiags", "swapaxes", "tril", "triu", "vstack",
]  # fmt: skip

bsr_array, bsr_matrix = CLASSES["bsr_array"], CLASSES["bsr_matrix"]
coo_array, coo_matrix = CLASSES["coo_array"], CLASSES["coo_matrix"]
csc_array, csc_matrix = CLASSES["csc_array"], CLASSES["csc_matrix"]
csr_array, csr_matrix = CLASSES["csr_array"], CLASSES["csr_matrix"]
dia_array, dia_matrix = CLASSES["dia_array"], CLASSES["dia_matrix"]


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFunctionError(
            f"{type(self).__name__}{name} takes no traced values{at_line()}\n"
            "Collect rows, columns and entries in lists, and make scipy.sparse.coo_array((entries, (rows, columns)))."
        )

    return refuse


def _add_hook(function: Any, target: Callable[..., Any]) -> None:
    if isinstance(function, FunctionType) and function not in scipy_hooks.HOOKS:
        scipy_hooks.add_hook(function, __name__, function.__name__)
        scipy_hooks.HOOKS[function].target = target


def register() -> None:
    """Give the methods of SciPy's classes hooks, which come from base classes and private modules."""
    kinds = [getattr(_scipy, name) for name in CLASSES]
    lists = [getattr(_scipy, f"{form}_{kind}") for form in ("lil", "dok") for kind in ("array", "matrix")]
    for base in dict.fromkeys([base for kind in (*kinds, *lists) for base in kind.__mro__]):
        if not base.__module__.startswith("scipy.sparse"):
            continue
        is_list = any([form in base.__name__ for form in ("lil", "dok")])
        for name in LIFTED:
            _add_hook(vars(base).get(name), lifted_method(name))
        init = vars(base).get("__init__")
        _add_hook(init, _refusing("") if is_list else become(init))
        for name in ("__setitem__", "setdiag"):
            _add_hook(vars(base).get(name), _refusing(f".{name}"))


__getattr__, __dir__ = _public_module(globals(), _scipy, modules=("linalg",))
scipy_hooks.register_late(globals())
