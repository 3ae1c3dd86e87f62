"""The base of func's errors: the engine's and those of devices."""


class FuncError(Exception):
    """Base of every error that func words itself."""
