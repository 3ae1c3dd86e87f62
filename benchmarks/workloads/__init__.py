"""The workloads, in the order they run. A new one is a file here and a row below.

A `make_loss(np)` holds the job as plain NumPy source. Every contestant differentiates that same source: func
with `numpy` itself, the peers with their own namespace in its place.
"""

from benchmarks.workload import Workload
from benchmarks.workloads import (
    chain,
    gaussian_process,
    imperative,
    import_time,
    per_sample_gradients,
    protocol_route,
    rnn,
    rosenbrock_hessian,
    small_gradient,
    small_operations,
    structure,
)

WORKLOADS: tuple[Workload, ...] = (
    small_gradient.WORKLOAD,
    chain.WORKLOAD,
    small_operations.SLICING,
    small_operations.WHERE,
    small_operations.REDUCTIONS,
    protocol_route.WORKLOAD,
    imperative.TRAINING_STEP,
    imperative.BACKWARD,
    per_sample_gradients.WORKLOAD,
    rosenbrock_hessian.WORKLOAD,
    gaussian_process.WORKLOAD,
    rnn.WORKLOAD,
    structure.NORMS,
    structure.JACOBIAN,
    import_time.WORKLOAD,
)
