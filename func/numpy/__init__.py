"""NumPy's functions, on traced and plain arrays alike: what `np.*` on a traced array calls, and importable itself."""

from func.numpy import fft as fft
from func.numpy import linalg as linalg
from func.numpy import ufunc_methods as _ufunc_methods
from func.numpy import ufuncs as _ufuncs
from func.numpy.convolution import *  # noqa: F403
from func.numpy.creation import *  # noqa: F403
from func.numpy.cumulative import *  # noqa: F403
from func.numpy.einsum import *  # noqa: F403
from func.numpy.elementary import *  # noqa: F403
from func.numpy.histograms import *  # noqa: F403
from func.numpy.install import install as _install
from func.numpy.interpolation import *  # noqa: F403
from func.numpy.joining import *  # noqa: F403
from func.numpy.methods import method_table as _method_table
from func.numpy.nanfunctions import *  # noqa: F403
from func.numpy.padding import *  # noqa: F403
from func.numpy.polynomials import *  # noqa: F403
from func.numpy.products import *  # noqa: F403
from func.numpy.quantiles import *  # noqa: F403
from func.numpy.reductions import *  # noqa: F403
from func.numpy.selection import *  # noqa: F403
from func.numpy.sets import *  # noqa: F403
from func.numpy.shaping import *  # noqa: F403
from func.numpy.sorting import *  # noqa: F403
from func.numpy.statistics import *  # noqa: F403
from func.numpy.windows import *  # noqa: F403

globals().update(_ufuncs.public_ufuncs())
_install(_method_table())
_ = _ufunc_methods
