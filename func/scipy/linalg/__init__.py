"""scipy.linalg on traced and plain arrays.

The functions of `func.linalg` are primitives, or compositions of them. The others get their values from SciPy, on plain
arrays, and their derivatives from the equation that the result satisfies. Leading axes are batch axes, as in SciPy
1.17, with any version of SciPy.

>>> import numpy as np, func, scipy.linalg
>>> a, b = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[0.0], [1.0]])
>>> def cost(mass):
...     return np.trace(scipy.linalg.solve_continuous_are(a / mass, b, np.eye(2), 1.0))
>>> bool(func.grad(cost)(1.0) > 0)
True
"""

from __future__ import annotations

import scipy.linalg as _scipy

from func import linalg as _own
from func.scipy.kinds.public_modules import public_module as _public_module
from func.scipy.linalg.hermitian_bands import cho_solve_banded, cholesky_banded, eig_banded, eigvals_banded
from func.scipy.linalg.reductions import cossin, hessenberg, ldl, matrix_balance, ordqz, qz
from func.scipy.linalg.forms import cdf2rdf, rsf2csf
from func.scipy.linalg.user_functions import expm_cond, funm
from func.scipy.linalg.qr_products import qr_multiply
from func.scipy.linalg.forms import bandwidth, ishermitian, issymmetric
from func.scipy.linalg.riccati import solve_continuous_are, solve_discrete_are

__all__ = [
    *_own.__all__, "bandwidth", "cdf2rdf", "cho_solve_banded", "cholesky_banded", 
    "cossin", "eig_banded", "eigvals_banded", "expm_cond", "funm", "hessenberg", "ishermitian",
    "issymmetric", "ldl", "matrix_balance", "ordqz", "qr_multiply", "qz",
    "rsf2csf", "solve_continuous_are", "solve_discrete_are",
]  # fmt: skip

__getattr__, __dir__ = _public_module(
    globals(), _scipy, lambda name: getattr(_own, name) if name in _own.__all__ else None
)
