"""The base of func's errors: the engine's and those of devices."""


class FuncError(Exception):
    """Base of every error that func words itself."""


class DeviceError(FuncError, RuntimeError):
    """A device refuses, or there is none: the message says what to do."""
