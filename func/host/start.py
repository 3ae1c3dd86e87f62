"""What has to be there before the first public name: the interface of traced arrays, and what func hooks into NumPy,
into warnings and into the imports of SciPy.

`func` imports this module when a public name is first asked for, or when a module of the package is first imported.
The modules behind the names follow when they are used.
"""

from func import numpy
from func.host.scipy_imports import watch_imports as _watch_imports
from func.host.warned_lines import install as _attribute_warnings

__all__ = ["numpy"]

_watch_imports()
_attribute_warnings()
