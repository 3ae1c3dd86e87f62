"""The workloads, in the order they run. A new one is a file here and a row below.

A `make_job(library)` holds the work as plain NumPy source over `library.np`. Every contestant differentiates that same
source: func with `numpy` itself, the peers with their own namespace in its place.
"""

from benchmarks.workload import Workload
from benchmarks.workloads import (
    adbench,
    black_scholes,
    chain,
    derivatives,
    gaussian_process,
    imperative,
    import_time,
    logistic_regression,
    lotka_volterra,
    mlp,
    normalisations,
    per_sample_gradients,
    protocol_route,
    rnn,
    rosenbrock_hessian,
    second_order,
    small_gradient,
    small_operations,
    transformer,
)

WORKLOADS: tuple[Workload, ...] = (
    small_gradient.WORKLOAD,
    *rosenbrock_hessian.WORKLOADS,
    mlp.TRAINING_STEP,
    *chain.WORKLOADS,
    *black_scholes.WORKLOADS,
    *normalisations.WORKLOADS,
    *logistic_regression.WORKLOADS,
    *mlp.WORKLOADS,
    *transformer.WORKLOADS,
    per_sample_gradients.WORKLOAD,
    per_sample_gradients.MLP_NORMS,
    per_sample_gradients.CNN_NORMS,
    per_sample_gradients.CLIPPED_SUM,
    rnn.SCAN,
    rnn.LOOP,
    lotka_volterra.SCAN,
    lotka_volterra.LOOP,
    *gaussian_process.WORKLOADS,
    second_order.HESSIAN,
    second_order.HVP,
    second_order.LAPLACIAN,
    *second_order.JACOBIANS,
    *second_order.NESTED,
    derivatives.WORKLOAD,
    *adbench.WORKLOADS,
    small_operations.SLICING,
    small_operations.WHERE,
    small_operations.REDUCTIONS,
    protocol_route.WORKLOAD,
    imperative.TRAINING_STEP,
    imperative.BACKWARD,
    import_time.WORKLOAD,
)
