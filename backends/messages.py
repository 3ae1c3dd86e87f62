"""The logger "func": `logging` is imported when somebody else has imported it, or when there is a warning."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def debug(text: str, *args: object, **options: Any) -> None:
    """Log at level DEBUG. Nobody listens where `logging` has not been imported."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("func").debug(text, *args, **options, stacklevel=2)


def warning(text: str, *args: object) -> None:
    """Log at level WARNING."""
    importlib.import_module("logging").getLogger("func").warning(text, *args, stacklevel=2)
