"""The base of func's errors: the engine's and those of devices."""

PUBLIC = "func.errors"
"""The module by whose name users know the errors, from the start: tracebacks and pickles call them so."""


class FuncError(Exception):
    """Base of every error that func words itself."""

    __module__ = PUBLIC


class DeviceError(FuncError, RuntimeError):
    """A device refuses, or there is none: the message says what to do."""

    __module__ = PUBLIC
