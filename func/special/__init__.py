"""SciPy's special functions, differentiable to any order in both modes, under the names of scipy.special.

Values are SciPy's to the bit. float32 arguments give float32 results, and holomorphic functions take complex arguments.
An undefined derivative, such as that of a Bessel function by its order, raises at its use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from func.special import formulas, gammas, published, sequences, spherical, sums
from func.special.formulas import *
from func.special.gammas import *
from func.special.sequences import *
from func.special.spherical import *
from func.special.sums import *
from func.special.protocol import register_primitives as _register_primitives
from func.interpreters.host.display import public_names as _public_names
from func.interpreters.host.public_functions import put_at_boundary as _put_at_boundary

if TYPE_CHECKING:
    from func.interpreters.primitives.special.bessel import *
    from func.interpreters.primitives.special.elliptic import *
    from func.interpreters.primitives.special.error_functions import *
    from func.interpreters.primitives.special.gamma import *
    from func.interpreters.primitives.special.incomplete import *
    from func.interpreters.primitives.special.integrals import *
    from func.interpreters.primitives.special.inverse_distributions import *
    from func.interpreters.primitives.special.logistic import *
    from func.interpreters.primitives.special.orthogonal import *
    from func.interpreters.primitives.special.waves import *
else:
    from func.special.published import *

jn = jv  # noqa: F405
psi = digamma  # noqa: F405

__all__ = ["jn", "psi"]
__all__ += formulas.__all__
__all__ += gammas.__all__
__all__ += published.__all__
__all__ += sequences.__all__
__all__ += spherical.__all__
__all__ += sums.__all__

_register_primitives()


_put_at_boundary(globals())


def __dir__() -> list[str]:
    return _public_names(globals())
