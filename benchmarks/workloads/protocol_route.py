"""The cost of NumPy's protocols: np.sin on a traced array against func.numpy.sin on it."""

from typing import Any

import numpy as np

from benchmarks.contestants import BY_HAND, FUNC
from benchmarks.workload import Bar, Call, Workload

CALLS = 1000


def _calls(function: Any) -> Call:
    import func

    x = np.linspace(0.1, 0.9, 10)

    def many(v: Any) -> Any:
        for _ in range(CALLS):
            function(v)
        return np.sum(function(v))

    return lambda: func.jvp(many, (x,), (x,))[0]


def by_protocol(_: Any) -> Call:
    """np.sin(x), as users write it."""
    return _calls(np.sin)


def by_name(_: Any) -> Call:
    """func.numpy.sin(x): no protocol."""
    import func

    return _calls(func.numpy.sin)


WORKLOAD = Workload(
    "protocol",
    f"{CALLS} times np.sin(x) under func.jvp ({FUNC}), against func.numpy.sin(x) ({BY_HAND})",
    {FUNC: by_protocol, BY_HAND: by_name},
    bars=(Bar(BY_HAND, 1.5),),
)
