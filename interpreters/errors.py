"""The named errors. Each is also a standard type, so that `except TypeError` keeps working."""

from __future__ import annotations


class FuncError(Exception):
    """Base of every error that func words itself."""


class LeakedTracerError(FuncError, RuntimeError):
    """A traced value was used after the transform that made it had returned."""


class TracerConversionError(FuncError, TypeError):
    """A traced value was about to leave the trace (float(), .item(), a plain array), losing its derivative."""


class StagingError(FuncError, TypeError):
    """Python code asked a staged (abstract) array for its value."""


class ScalarOutputError(FuncError, TypeError):
    """A gradient was asked of a function whose output is not one real number."""


class DifferentiatedInputError(FuncError, TypeError):
    """An argument to differentiate is not an array of real or complex floating point numbers."""


class ArgumentError(FuncError, ValueError):
    """An option of a transform (argnums, chunk_size, mode ...) is out of its range."""


class TangentError(FuncError, ValueError, TypeError):
    """A tangent or cotangent differs from its primal in tree, shape or dtype."""


class MappedAxisError(FuncError, ValueError):
    """The mapped axes given to vmap do not fit the arguments or the outputs."""


class RaggedLanesError(FuncError, ValueError):
    """Lanes of a vmap took different paths and returned arrays of different shapes."""


class UnsupportedArrayError(FuncError, TypeError):
    """An argument is an array that func cannot trace: object, string, masked or matrix."""


class NotDifferentiableError(FuncError, TypeError):
    """No derivative is defined for an operation."""


class UnsupportedFunctionError(FuncError, TypeError):
    """A NumPy function or keyword has no traced version."""


class CheckpointError(FuncError, RuntimeError):
    """A recomputed function did not repeat what it did the first time."""


class CustomRuleError(FuncError, TypeError):
    """A custom derivative or batching rule returned something of the wrong structure."""


class FreedGraphError(FuncError, RuntimeError):
    """A graph whose saved values were released by an earlier backward was to be walked again."""


class BackwardError(FuncError, RuntimeError):
    """backward or autograd.grad was called in a way that has no meaning."""


class LeafError(FuncError, RuntimeError):
    """Something was asked of a tensor that only leaves (or only non-leaves) allow."""


class InferenceTensorError(FuncError, RuntimeError):
    """A tensor made in inference mode was to take part in a recorded computation."""


class AnomalyError(FuncError, RuntimeError):
    """Anomaly detection has found NaN or infinity."""


class GradcheckError(FuncError, RuntimeError):
    """A numerical and an analytical derivative differ."""
