"""Functions of SciPy without derivative rules: a traced argument raises an error that names what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line

INSTEAD: dict[str, str] = {
    "scipy.interpolate.": "Map the sphere to the plane, or use RBFInterpolator.",
    "scipy.linalg.qr_": "Factor the changed matrix by np.linalg.qr.",
    "scipy.spatial.transform.RigidTransform": "Keep a Rotation r and a translation t, and write r.apply(x) + t.",
    "scipy.stats.mstats.": "Use the function of scipy.stats, with NaN for masked elements and nan_policy='omit'.",
}
"""What to write instead of a function, by the beginning of its name."""


def refusal(name: str) -> Callable[..., Any]:
    """A function that raises UnsupportedFunctionError, as the target of a hook."""
    instead = next(text for start, text in INSTEAD.items() if name.startswith(start))

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFunctionError(f"{name} takes no traced values{at_line()}\n{instead}")

    return function
