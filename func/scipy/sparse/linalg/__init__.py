"""scipy.sparse.linalg on traced and plain arrays: solves, eigenvalues and functions of sparse matrices.

SciPy solves on numbers. Derivatives follow from the equation that the result satisfies, by further solves of the same
kind and products on the pattern.
"""

from __future__ import annotations

import scipy.sparse.linalg as _scipy

from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.sparse.linalg.direct import factorized, inv, spilu, splu, spsolve, spsolve_triangular
from func.scipy.sparse.linalg.eigen import eigs, eigsh, lobpcg, svds
from func.scipy.sparse.linalg.functions import (
    expm,
    expm_multiply,
    is_sptriangular,
    lsmr,
    lsqr,
    norm,
    onenormest,
    spbandwidth,
)
from func.scipy.sparse.linalg.iterative import bicg, bicgstab, cg, cgs, gcrotmk, gmres, lgmres, minres, qmr, tfqmr
from func.scipy.sparse.linalg.linear_maps import matrix_product as _interface_MatrixLinearOperator__matmat  # noqa: F401

__all__ = [
    "bicg", "bicgstab", "cg", "cgs", "eigs", "eigsh", "expm", "expm_multiply", "factorized", "gcrotmk", "gmres", "inv",
    "is_sptriangular", "lgmres", "lobpcg", "lsmr", "lsqr", "minres", "norm", "onenormest", "qmr",
    "spbandwidth", "spilu", "splu", "spsolve", "spsolve_triangular", "svds", "tfqmr",
]  # fmt: skip

__getattr__, __dir__ = _public_module(globals(), _scipy)
