"""The workloads, in the order they run. A new one is a file here and a row below.

A `make_job(library)` holds the work as plain NumPy source over `library.np`. Every contestant differentiates that same
source: func with `numpy` itself, the peers with their own namespace in its place.
"""

from benchmarks.workload import Workload
from benchmarks.workloads import (
    black_scholes,
    chain,
    gaussian_process,
    imperative,
    import_time,
    logistic_regression,
    mlp,
    normalisations,
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
    *rosenbrock_hessian.WORKLOADS,
    mlp.TRAINING_STEP,
    *chain.WORKLOADS,
    small_operations.SLICING,
    small_operations.WHERE,
    small_operations.REDUCTIONS,
    protocol_route.WORKLOAD,
    imperative.TRAINING_STEP,
    imperative.BACKWARD,
    *black_scholes.WORKLOADS,
    *normalisations.WORKLOADS,
    *logistic_regression.WORKLOADS,
    *mlp.WORKLOADS,
    per_sample_gradients.WORKLOAD,
    gaussian_process.WORKLOAD,
    rnn.WORKLOAD,
    structure.NORMS,
    structure.JACOBIAN,
    import_time.WORKLOAD,
)
