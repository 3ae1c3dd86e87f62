"""numpy.linalg for traced arrays, with all of its names, signatures and results."""

# fmt: off
from numpy.linalg import LinAlgError

from func.numpy.linalg.decompositions import (
    cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals,
)
from func.numpy.linalg.norms import cond, matrix_norm, norm, vector_norm
from func.numpy.linalg.products import (
    cross, diagonal, matmul, matrix_power, matrix_transpose, multi_dot, outer, tensordot, trace, vecdot,
)
from func.numpy.linalg.solving import (
    det, inv, lstsq, matrix_rank, pinv, slogdet, solve, tensorinv, tensorsolve,
)
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__ = [
    "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
    "vector_norm",
]
# fmt: on


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals())
