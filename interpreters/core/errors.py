"""The named errors. Each is also a standard type, so that `except TypeError` keeps working."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.backends.devices import PUBLIC
from func.backends.devices import FuncError as FuncError


class LeakedTracerError(FuncError, RuntimeError):
    """A traced value is used after the return of the transform that made it."""


class TracerConversionError(FuncError, TypeError):
    """A conversion (float(), .item(), a plain array) would lose the derivative of a traced value."""


class StagingError(FuncError, TypeError):
    """Python code asked a traced (abstract) array for its value."""

    argument: str = ""
    """The traced function's argument with the needed value, as a user writes it; empty for other values."""


class ScalarOutputError(FuncError, TypeError):
    """The output of a function under a gradient transform is not one real number."""


class DifferentiatedInputError(FuncError, TypeError):
    """An argument to differentiate is not an array of real or complex floating point numbers."""


class ArgumentError(FuncError, ValueError):
    """An option of a transform (argnums, chunk_size, mode ...) is out of its range."""


class TangentError(FuncError, ValueError, TypeError):
    """A tangent or cotangent differs from its primal in tree, shape or dtype."""


class MappedAxisError(FuncError, ValueError):
    """The mapped axes of a vmap do not fit the arguments or the outputs."""


class RaggedLanesError(FuncError, ValueError):
    """Batch elements of a vmap took different paths and returned arrays of different shapes."""


class UnsupportedArrayError(FuncError, TypeError):
    """An argument is an array that func cannot trace: object, string, masked or matrix."""


class BlockedArrayError(UnsupportedArrayError):
    """An argument is an array of Dask, but the transform needs it in one piece."""


class ForeignArrayError(UnsupportedArrayError):
    """An argument is another library's container, whose own rules define the operation."""


class NotDifferentiableError(FuncError, TypeError):
    """No derivative is defined for an operation."""


class SolverWarning(UserWarning):
    """The derivative of a solver's result may be wrong.

    It has not converged, or its solution is not a differentiable function of the parameters. Or its steps are
    differentiated, which is right only after enough of them.
    """


class SingularSystemError(FuncError, np.linalg.LinAlgError):
    """The equation of an implicit function does not determine its derivative: its Jacobian is singular."""


class FrozenValueWarning(UserWarning):
    """A value has changed while something else still uses its old numbers.

    A traced function has read random numbers, a global, an attribute or a tensor that differ between calls. Or a write
    to a tensor left an array of `x.numpy()` with the old numbers.
    """


class UnsupportedFunctionError(FuncError, TypeError):
    """A NumPy function or keyword has no traced version."""


class CheckpointError(FuncError, RuntimeError):
    """A recomputed function did not repeat its first run."""


class CustomRuleError(FuncError, TypeError):
    """A custom derivative or batching rule returned something of the wrong structure."""


class FreedGraphError(FuncError, RuntimeError):
    """A backward pass needs saved values that an earlier one has released."""


class BackwardError(FuncError, RuntimeError):
    """A call of backward or autograd.grad has no meaning."""


class LeafError(FuncError, RuntimeError):
    """Only leaves (or only non-leaves) among tensors allow this operation."""


class InferenceTensorError(FuncError, RuntimeError):
    """A recorded computation uses a tensor made in inference mode."""


class AnomalyError(FuncError, RuntimeError):
    """Anomaly detection has found NaN or infinity."""


class GradcheckError(FuncError, RuntimeError):
    """A numerical and an analytical derivative differ."""


class NoSourceError(FuncError, NotImplementedError):
    """An operation of a program has no source text."""


class StaticArgumentError(FuncError, TypeError):
    """A static argument of a jitted function cannot be hashed."""


class DonatedBufferError(FuncError, RuntimeError):
    """An array is used again after its donation to a jitted function."""


class SharedMemoryError(FuncError, RuntimeError):
    """An argument is used after a write to another one that shares memory with it."""


class CarryError(FuncError, TypeError):
    """The body of a loop changed the tree, a shape or a dtype of its carry or its stacked results."""


class BranchError(FuncError, TypeError):
    """The branches of a choice return outputs of different trees, shapes or dtypes."""


class PredicateError(FuncError, TypeError):
    """The condition of a branch or loop is not one bool, or an index or a bound is not one integer."""


class LengthError(FuncError, ValueError):
    """The arrays that a scan runs over have no common length."""


class AxisNameError(FuncError, NameError):
    """A collective names an axis that no running vmap has, or whose batch elements are not together."""


class CommunicatorError(FuncError, ValueError):
    """A communicator cannot be used: it was freed, is not one of mpi4py, or would go to a device or a file."""


class CollectiveError(FuncError, RuntimeError):
    """Processes that run one program did not issue the same collectives, or one of them was late."""


class RankError(FuncError, RuntimeError):
    """Another process of the program failed; the message has its traceback."""


class ProgramError(FuncError, ValueError):
    """A Program is not well formed."""


class ValidationError(FuncError, RuntimeError):
    """A pass or a lowering of a Program computes something other than the Program; see `func.config.validate`."""

    translation: str = ""
    """The pass or the lowering."""
    program: Any = None
    """A small Program that it changes."""
    arguments: tuple[Any, ...] = ()
    """Inputs that show the change."""


class ProgramFileError(FuncError, ValueError):
    """A Program cannot be saved, or a file does not contain one that can be loaded."""


class MemoryLimitError(MemoryError, FuncError):
    """A memory limit is below the need of a call, even in the smallest chunks and with all recomputation."""


class ProfileError(FuncError, RuntimeError):
    """A compiled function has nothing to profile, or returned other results under the profiler."""


class TravelError(FuncError, TypeError):
    """A function, or something in it, cannot go to another process."""


class ExecutorError(FuncError, RuntimeError):
    """An executor takes no more tasks: it was shut down, or its workers have died."""


class WorkerLostError(FuncError, RuntimeError):
    """Workers died, and their chunks could not be computed again."""


class WorkerLostWarning(UserWarning):
    """A worker has died; others compute its chunks again."""


class RaggedChunksError(FuncError, ValueError):
    """The chunks of a map or a sum returned trees, shapes or numbers of rows that do not fit each other."""


class ChunkError(FuncError, RuntimeError):
    """A chunk failed with an error that cannot be sent unchanged."""


for _class in list(globals().values()):
    if isinstance(_class, type) and _class.__module__ == __name__ and _class is not ForeignArrayError:
        _class.__module__ = PUBLIC
