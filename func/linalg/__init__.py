"""scipy.linalg on traced and plain arrays: its names and signatures, differentiable in both modes to any order.

scipy.linalg converts its arguments to plain arrays, so traced code calls these functions instead. Leading axes are
batch axes.

>>> import numpy as np, func
>>> def energy(a):
...     return np.trace(func.linalg.expm(a))
>>> func.grad(energy)(np.zeros((2, 2)))
array([[1., 0.],
       [0., 1.]])
"""

# fmt: off
from numpy.linalg import LinAlgError

from func.linalg.eigenvalues import (
    eig, eigh, eigh_tridiagonal, eigvals, eigvalsh, eigvalsh_tridiagonal,
)
from func.linalg.factorizations import (
    cho_factor, cholesky, lu, lu_factor, null_space, orth, orthogonal_procrustes, pinv, pinvh, polar, qr, rq, schur,
    subspace_angles, svd, svdvals,
)
from func.linalg.matrix_functions import (
    coshm, cosm, expm, expm_frechet, fractional_matrix_power, logm, signm, sinhm, sinm, solve_continuous_lyapunov,
    solve_discrete_lyapunov, solve_lyapunov, solve_sylvester, sqrtm, tanhm, tanm,
)
from func.linalg.solving import (
    cho_solve, det, inv, lstsq, lu_solve, matmul_toeplitz, solve, solve_banded, solve_circulant, solve_toeplitz,
    solve_triangular, solveh_banded,
)
from func.linalg.special_matrices import (
    block_diag, circulant, companion, convolution_matrix, dft, diagsvd, fiedler, hadamard, hankel, helmert, hilbert,
    invhilbert, invpascal, khatri_rao, leslie, norm, pascal, toeplitz,
)
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__ = [
    "LinAlgError", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix",
    "coshm", "cosm", "det", "dft", "diagsvd", "eig", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh",
    "eigvalsh_tridiagonal", "expm", "expm_frechet", "fiedler", "fractional_matrix_power", "hadamard", "hankel",
    "helmert", "hilbert", "inv", "invhilbert", "invpascal", "khatri_rao", "leslie", "logm", "lstsq", "lu", "lu_factor",
    "lu_solve", "matmul_toeplitz", "norm", "null_space", "orth", "orthogonal_procrustes", "pascal", "pinv", "pinvh",
    "polar", "qr", "rq", "schur", "signm", "sinhm", "sinm", "solve", "solve_banded", "solve_circulant",
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester", "solve_toeplitz",
    "solve_triangular", "solveh_banded", "sqrtm", "subspace_angles", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]
# fmt: on


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals())
