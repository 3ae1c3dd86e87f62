"""Samples of the primitives behind func.random."""

from __future__ import annotations

import numpy as np

import func.random
from tests.support.sampling import Sample, real, restart

restart(2)

KEY = func.random.key(11)
KEYS = func.random.split(KEY, 3)
DOUBLE, INT = np.dtype(np.float64), np.dtype(np.int64)


def constant(*args: object, **params: object) -> Sample:
    """A sample of a primitive without a derivative."""
    return Sample(args, params, differentiable=())


SAMPLES: dict[str, list[Sample]] = {
    "random_key": [constant(np.array(7)), constant(np.array([1, 2**40]))],
    "random_split": [constant(KEY, num=3), constant(KEYS, num=2)],
    "random_fold_in": [constant(KEY, np.array(3)), constant(KEYS, np.array([0, 1, 2**33]))],
    "random_bits": [
        constant(KEY, shape=(5,), dtype=np.dtype(np.uint32)),
        constant(KEYS, shape=(2, 2), dtype=np.dtype(np.uint64)),
        constant(KEY, shape=(), dtype=np.dtype(np.uint8)),
    ],
    "random_unit": [
        constant(KEY, shape=(4,), dtype=DOUBLE, inside=True),
        constant(KEYS, shape=(), dtype=np.dtype(np.float32), inside=False),
    ],
    "random_normal": [
        constant(KEY, shape=(2, 3), dtype=DOUBLE),
        constant(KEYS, shape=(2,), dtype=np.dtype(np.float16)),
    ],
    "random_integers": [constant(KEY, np.array([0, -5, 3]), np.array([9, 5, 3]), dtype=INT)],
    "random_poisson": [constant(KEY, np.array([0.5, 3.0, 40.0]), dtype=INT)],
    "random_binomial": [
        constant(KEY, np.array([5.0, 100.0, 100.0]), np.array([0.3, 0.5, 0.9]), dtype=INT),
        constant(KEYS, np.array([[5.0, 90.0]] * 3), np.array([[0.3, 0.5]] * 3), dtype=INT),
    ],
    "random_loggamma": [
        Sample((KEY, real(4) * 4), differentiable=(1,)),
        Sample((KEYS, real(3, 2) * 4), differentiable=(1,)),
    ],
    "random_gamma_slope": [
        Sample((np.array([0.4, 2.0, 30.0]), np.array([-2.0, 1.0, 3.3])), {"order": 0}, (0, 1)),
        Sample((np.array([0.4, 2.0]), np.array([[-2.0], [1.5]])), {"order": 1}, (0, 1)),
    ],
    "random_polygamma": [Sample((real(3) * 3,), {"order": order}) for order in (0, 2)],
    "random_wald": [constant(KEY, real(4)), constant(KEYS, real(3, 2))],
    "random_mills": [Sample((real(3) * 4 - 2,))],
    "random_ndtr": [Sample((real(3) * 4 - 2,))],
    "random_ndtri": [Sample((real(3),))],
}
