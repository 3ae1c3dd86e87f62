"""SciPy's special functions, differentiable to any order in both modes, under the names of scipy.special.

Values are SciPy's to the bit. float32 arguments give float32 results, and complex arguments are allowed where the
function is holomorphic. An undefined derivative, such as that of a Bessel function by its order, raises when it is
needed.
"""

from __future__ import annotations

from func.special import (
    bessel,
    by_equations,
    error_functions,
    gammas,
    incomplete,
    integrals,
    logistic,
    sequences,
    spherical,
    sums,
)
from func.special.bessel import *
from func.special.by_equations import *
from func.special.error_functions import *
from func.special.gammas import *
from func.special.incomplete import *
from func.special.integrals import *
from func.special.spherical import *
from func.special.logistic import *
from func.special.protocol import register_primitives as _register_primitives
from func.special.sequences import *
from func.special.sums import *
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

__all__: list[str] = []
__all__ += bessel.__all__
__all__ += by_equations.__all__
__all__ += error_functions.__all__
__all__ += gammas.__all__
__all__ += incomplete.__all__
__all__ += integrals.__all__
__all__ += spherical.__all__
__all__ += logistic.__all__
__all__ += sequences.__all__
__all__ += sums.__all__

_register_primitives()


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals())
