"""NumPy's functions, on traced and plain arrays alike: what `np.*` on a traced array calls, and importable itself."""

from func.numpy import essentials, essentials_products
from func.numpy import ufuncs as ufuncs
from func.numpy.install import install
from func.numpy.methods import method_table
from func.numpy.products import *  # noqa: F403

install(method_table())
