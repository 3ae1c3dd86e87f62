"""The errors with func's own messages; each is also a standard type."""

# fmt: off
from func.backends.cuda.device import DeviceIndexError, DeviceMemoryError
from func.backends.devices import HostComputationWarning
from func.backends.devices import DeviceError
from func.interpreters.core.errors import (
    AnomalyError, ArgumentError, AxisNameError, BackwardError, BlockedArrayError, BranchError, CarryError,
    CheckpointError, ChunkError, CollectiveError, CommunicatorError, CustomRuleError, DifferentiatedInputError,
    DonatedBufferError, ExecutorError, FreedGraphError, FrozenValueWarning, FuncError, GradcheckError,
    InferenceTensorError, LeafError, LeakedTracerError, LengthError, MappedAxisError, MemoryLimitError,
    NoSourceError, NotDifferentiableError, PredicateError, ProfileError, ProgramError, ProgramFileError,
    RaggedChunksError, RaggedLanesError, RankError, ScalarOutputError, SharedMemoryError, SingularSystemError,
    SolverWarning, StagingError, StaticArgumentError, TangentError, TracerConversionError, TravelError,
    UnsupportedArrayError, UnsupportedFunctionError, ValidationError, WorkerLostError, WorkerLostWarning,
)
from func.interpreters.host.display import public_names as _public_names

__all__ = [
    "AnomalyError", "ArgumentError", "AxisNameError", "BackwardError", "BlockedArrayError", "BranchError",
    "CarryError", "CheckpointError", "ChunkError", "CollectiveError", "CommunicatorError", "CustomRuleError",
    "DeviceError", "DeviceIndexError", "DeviceMemoryError", "DifferentiatedInputError", "DonatedBufferError",
    "ExecutorError", "FreedGraphError", "FrozenValueWarning", "FuncError", "GradcheckError",
    "HostComputationWarning", "InferenceTensorError", "LeafError", "LeakedTracerError", "LengthError",
    "MappedAxisError", "MemoryLimitError", "NoSourceError", "NotDifferentiableError", "PredicateError",
    "ProfileError", "ProgramError", "ProgramFileError", "RaggedChunksError", "RaggedLanesError", "RankError",
    "ScalarOutputError", "SharedMemoryError", "SingularSystemError", "SolverWarning", "StagingError",
    "StaticArgumentError", "TangentError", "TracerConversionError", "TravelError", "UnsupportedArrayError",
    "UnsupportedFunctionError", "ValidationError", "WorkerLostError", "WorkerLostWarning",
]
# fmt: on


def __dir__() -> list[str]:
    return _public_names(globals())
