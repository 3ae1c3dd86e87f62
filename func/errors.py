"""The errors that func words itself; each is also a standard type."""

from func.interpreters.errors import (
    ArgumentError,
    CheckpointError,
    CustomRuleError,
    DifferentiatedInputError,
    FuncError,
    LeakedTracerError,
    MappedAxisError,
    NotDifferentiableError,
    RaggedLanesError,
    ScalarOutputError,
    StagingError,
    TangentError,
    TracerConversionError,
    UnsupportedArrayError,
    UnsupportedFunctionError,
)

__all__ = [
    "ArgumentError",
    "CheckpointError",
    "CustomRuleError",
    "DifferentiatedInputError",
    "FuncError",
    "LeakedTracerError",
    "MappedAxisError",
    "NotDifferentiableError",
    "RaggedLanesError",
    "ScalarOutputError",
    "StagingError",
    "TangentError",
    "TracerConversionError",
    "UnsupportedArrayError",
    "UnsupportedFunctionError",
]
