"""Public modules of func.scipy: func's names, then SciPy's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from func.interpreters.host.display import public_names
from func.interpreters.host.public_functions import put_at_boundary, without_engine_frames


def public_module(
    namespace: dict[str, Any],
    scipy_module: ModuleType,
    own: Callable[[str], Any] = lambda name: None,
    modules: Sequence[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module laid out as SciPy's; puts the names of `__all__` at the boundary.

    `own` finds further names of func, or None. `modules` are imported at their first use.
    """

    @without_engine_frames
    def __getattr__(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{namespace['__name__']}.{name}")
        value = own(name)
        return getattr(scipy_module, name) if value is None else value

    def __dir__() -> list[str]:
        return public_names(namespace, vars(scipy_module)["__all__"])

    put_at_boundary(namespace)
    return __getattr__, __dir__
