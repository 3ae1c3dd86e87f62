"""SciPy's special functions, differentiable to any order in both modes: the names of scipy.special.

Values are SciPy's to the bit, float32 stays float32, complex arguments are taken where the function is holomorphic.
An undefined derivative (a Bessel function's by its order) is refused when it is wanted, never taken as zero.
"""

from __future__ import annotations

from func.special import bessel, errors, gammas, incomplete, integrals, logistic, sums
from func.special.bessel import *
from func.special.errors import *
from func.special.gammas import *
from func.special.incomplete import *
from func.special.integrals import *
from func.special.logistic import *
from func.special.protocol import register_primitives
from func.special.sums import *

__all__: list[str] = []
__all__ += bessel.__all__
__all__ += errors.__all__
__all__ += gammas.__all__
__all__ += incomplete.__all__
__all__ += integrals.__all__
__all__ += logistic.__all__
__all__ += sums.__all__

register_primitives()
