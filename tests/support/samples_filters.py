"""Samples of the primitives that filters consist of."""

from __future__ import annotations

import numpy as np

from func.interpreters.core.wiring import primitive_named
from tests.support.sampling import Sample, complex_, real, restart

restart(9)

_RECURRENT = np.array([0.4, -0.3, 0.1])

SAMPLES: dict[str, list[Sample]] = {
    "correlate_windows": [
        Sample((real(7), real(3)), {"axes": (0,), "stack": 0}, (0, 1)),
        Sample((real(3, 7), real(2)), {"axes": (0,), "stack": 0}, (0, 1)),
        Sample((real(4, 5, 2), real(2, 3)), {"axes": (1, 0), "stack": 0}, (0, 1)),
        Sample((real(2, 4, 5), real(2, 2, 3)), {"axes": (1, 2), "stack": 1}, (0, 1)),
        Sample((complex_(6), complex_(3)), {"axes": (0,), "stack": 0}, (0, 1)),
        Sample((complex_(6), real(2)), {"axes": (0,), "stack": 0}, (0, 1)),
    ],
    "window_products": [
        Sample((real(7), real(5)), {"axes": (0,), "stack": 0}, (0, 1)),
        Sample((real(4, 5), real(3, 5)), {"axes": (0,), "stack": 0}, (0, 1)),
        Sample((real(2, 4, 5), real(2, 3, 3)), {"axes": (2, 1), "stack": 1}, (0, 1)),
        Sample((complex_(6), complex_(3)), {"axes": (0,), "stack": 0}, (0, 1)),
    ],
    "recurrence": [
        Sample((real(6), _RECURRENT), {}, (0, 1)),
        Sample((real(2, 6), _RECURRENT), {}, (0, 1)),
        Sample((real(2, 6), np.stack([_RECURRENT, -_RECURRENT])), {}, (0, 1)),
        Sample((real(2), _RECURRENT), {}, (0, 1)),
        Sample((complex_(5), 0.3 * complex_(2)), {}, (0, 1)),
    ],
    "spline_coefficients": [
        *[
            Sample((real(5, 2),), {"order": order, "axis": 0, "boundary": boundary})
            for order in (2, 5)
            for boundary in ("mirror", "reflect", "grid-wrap")
        ],
        Sample((complex_(2, 4),), {"order": 3, "axis": 1, "boundary": "mirror"}),
        Sample((real(2, 1),), {"order": 3, "axis": 1, "boundary": "mirror"}),
    ],
}

for _name in SAMPLES:  # primitives that only func.scipy uses are defined when they are first asked for
    primitive_named(_name)
