"""Whether translations of Programs are validated, and the namespace in which a Program runs equation by equation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from func.interpreters.core.errors import ValidationError
from func.interpreters.core.wiring import WIRING

F = TypeVar("F", bound=Callable[..., Any])


class Translations:
    """`are_validated` is `func.config.validate`, at first the environment variable FUNC_VALIDATE."""

    __slots__ = ("are_validated", "reports")

    def __init__(self) -> None:
        self.are_validated = os.environ.get("FUNC_VALIDATE", "") not in ("", "0")
        self.reports: list[ValidationError] = []
        """The errors of validation, also if other code continues after them. Testers empty the list."""


TRANSLATIONS = Translations()


class PlainNamespace:
    """NumPy, for loops and branches whose programs are not compiled: they run equation by equation."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


PLAIN = PlainNamespace()


def keeps_bits(translate: F) -> F:
    """Mark a pass whose programs keep all bits, signs of zeros and NaN; other passes promise rounding alone."""
    translate.__dict__["keeps_bits"] = True
    return translate


def validated(translate: F) -> F:
    """The pass itself, or its validated form if `are_validated`."""
    return WIRING.validated_pass(translate) if TRANSLATIONS.are_validated else translate
