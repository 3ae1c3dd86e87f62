"""The logger "func": func imports `logging` only for a warning, or uses it if it is imported already."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def debug(text: str, *args: object, **options: Any) -> None:
    """Log at level DEBUG, if `logging` is imported: otherwise there is no listener."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("func").debug(text, *args, **options, stacklevel=2)


def warning(text: str, *args: object) -> None:
    """Log at level WARNING."""
    importlib.import_module("logging").getLogger("func").warning(text, *args, stacklevel=2)
