"""The table of samples: for every primitive the arguments and parameters at which the generic tests check it."""

from __future__ import annotations

from typing import Any

import numpy as np

from func.interpreters.calls.custom_rules import KnownOutputs
from func.interpreters.core import Aval
from func.interpreters.core.wiring import PROVIDERS, primitive_named
from func.interpreters.primitives.elementwise.builder import multiply
from func.interpreters.primitives.elementwise.table import sin
from func.interpreters.primitives.structural.contraction import spec
from func.interpreters.primitives.structural.diagonals import Placement
from tests.support import (
    samples_control,
    samples_filters,
    samples_linalg,
    samples_random,
    samples_special,
    samples_staged,
)
from tests.support.sampling import Sample, complex_, hermitian, integers, real, restart, spd

for _name in PROVIDERS:
    primitive_named(_name)

restart(0)

# fmt: off
UNARY = [
    "absolute", "arccos", "arcsin", "arctan", "arctanh", "arcsinh", "cbrt", "cos", "cosh", "exp", "exp2",
    "expm1", "log", "log10", "log1p", "log2", "negative", "positive", "reciprocal", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "deg2rad", "rad2deg",
]
HOLOMORPHIC = [
    "arctan", "cos", "cosh", "exp", "expm1", "log", "log1p", "negative", "positive", "reciprocal", "sin",
    "sinh", "sqrt", "square", "tan", "tanh",
]
BINARY = [
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "fmax", "fmin", "hypot", "arctan2",
    "logaddexp", "logaddexp2",
]
HOLOMORPHIC_PAIRS = ["add", "subtract", "multiply", "divide", "power"]
COMPARISONS = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor",
]
ROUNDING = [
    "floor", "ceil", "trunc", "rint", "sign", "signbit", "isfinite", "isinf", "isnan", "logical_not", "spacing",
    "exponent",
]
# fmt: on

APART = np.array([[1.0, 0.2, 0.1], [0.05, 3.0, 0.3], [0.1, 0.02, 5.0]])
"""A matrix whose eigenvalues are far apart, so that LAPACK keeps their order."""

SAMPLES: dict[str, list[Sample]] = {}

for name in UNARY:
    SAMPLES[name] = [Sample((real(3, 2),)), Sample((real(),))]
    if name in HOLOMORPHIC:
        SAMPLES[name].append(Sample((complex_(3),)))
SAMPLES["arccosh"] = [Sample((real(3) + 1.5,))]
for name in BINARY:
    SAMPLES[name] = [
        Sample((real(3, 2), real(3, 2)), differentiable=(0, 1)),
        Sample((real(3, 2), real(2)), differentiable=(0, 1)),
        Sample((real(3, 1), real(1, 2)), differentiable=(0, 1)),
    ]
    if name in HOLOMORPHIC_PAIRS:
        SAMPLES[name].append(Sample((complex_(3), complex_(3)), differentiable=(0, 1)))
        SAMPLES[name].append(Sample((real(3), complex_(3)), differentiable=(0, 1)))
for name in COMPARISONS:
    SAMPLES[name] = [Sample((real(3, 2), real(2)), differentiable=())]
for name in ROUNDING:
    SAMPLES[name] = [Sample((real(3, 2) * 5,), differentiable=())]
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm"):
    SAMPLES[name] = [Sample((integers(3, 2) + 1, integers(2) + 1), differentiable=())]

SAMPLES |= {
    "float_power": [Sample((real(3), real(3)), differentiable=(0, 1))],
    "remainder": [
        Sample((real(3) * 5, real(3)), differentiable=(0, 1)),
        Sample((np.array([-7.3, 5.4, -2.2]), np.array([2.1, -1.7, 0.9])), differentiable=(0, 1)),
    ],
    "fmod": [
        Sample((real(3) * 5, real(3)), differentiable=(0, 1)),
        Sample((np.array([-7.3, 5.4, -2.2]), np.array([2.1, -1.7, 0.9])), differentiable=(0, 1)),
    ],
    "floor_divide": [Sample((real(3) * 5, real(3)), differentiable=())],
    "copysign": [Sample((real(3), -real(3)))],
    "ldexp": [Sample((real(3), integers(3)))],
    "heaviside": [Sample((real(3) - 0.5, real(3)), differentiable=())],
    "nextafter": [Sample((real(3), real(3)))],
    "bitwise_count": [Sample((integers(3, high=99),), differentiable=())],
    "invert": [Sample((integers(3),), differentiable=())],
    "at_least": [Sample((integers(3), integers(3)), differentiable=())],
    "at_most": [Sample((integers(3), integers(3)), differentiable=())],
    "nan_safe_multiply": [Sample((real(3), real(3)), differentiable=(0, 1))],
    "barrier": [Sample((real(3),), {"tag": 0})],
    "seed": [Sample((real(3),))],
    "renumbered": [Sample((real(3), real(3)), differentiable=())],
    "stop_gradient": [Sample((real(3),), differentiable=())],
    "root": [Sample((real(3),))],
    "exponential_share": [Sample((real(3, 2), real(1, 2)), {"axes": (0,)}, differentiable=())],
    "one_minus_square": [Sample((real(3),)), Sample((complex_(3),))],
    "arctan_slope": [Sample((real(3),)), Sample((complex_(3),))],
    "sech_squared": [Sample((real(3),)), Sample((complex_(3),))],
    "arctanh_slope": [Sample((real(3),)), Sample((complex_(3),))],
    "arcsinh_slope": [Sample((complex_(3),))],
    "secant_square": [Sample((complex_(3),))],
    "sine_of_arccos": [Sample((complex_(3),))],
    "sinh_of_arccosh": [Sample((complex_(3),))],
    "power_slope": [Sample((real(3), real(3), real(3)), differentiable=())],
    "vanishing_power": [Sample((real(3), real(3)), differentiable=())],
    "cosine": [Sample((real(3), real(3), real(3)), differentiable=())],
    "over_square_sum": [Sample((real(3), real(3)), differentiable=(0, 1))],
    "log_part": [Sample((real(3), real(3)), differentiable=(0, 1))],
    "log2_part": [Sample((real(3), real(3)), differentiable=(0, 1))],
    "root_power": [Sample((real(3), 0.3)), Sample((real(3), real(3)), differentiable=(0, 1))],
    "modulus_power": [Sample((real(3) - 0.5, 3)), Sample((real(3) + 0.5, real(3)), differentiable=(0, 1))],
    "signed_power": [Sample((real(3) - 0.5, 2.5)), Sample((real(3) + 0.5, real(3)), differentiable=(0, 1))],
    "undetermined": [Sample((real(3), np.zeros(3, bool), real(3)))],
    "isolated": [Sample((real(3), np.zeros(3, bool), real(3)))],
    "conventional": [Sample((real(3), np.zeros(3, bool)))],
    "revalued": [Sample((real(3), real(3)), differentiable=())],
    "sinc": [
        Sample((real(3),), {"order": 0}),
        Sample((np.array([0.0, 1e-3, 2.5]),), {"order": 0}, tolerance=1e-6),
        Sample((real(3),), {"order": 2}),
    ],
    "i0": [Sample((real(3),), {"order": 0}), Sample((real(3),), {"order": 1})],
    # moving data
    "convert": [Sample((real(3),), {"dtype": np.dtype(np.float64)}), Sample((real(3),), {"dtype": np.dtype(complex)})],
    "broadcast": [Sample((real(3, 1),), {"shape": (2, 3, 4)}), Sample((real(),), {"shape": (2,)})],
    "reshape": [Sample((real(3, 4),), {"shape": (2, 6)}), Sample((complex_(4),), {"shape": (2, 2)})],
    "permute": [Sample((real(2, 3, 4),), {"order": (2, 0, 1)})],
    "sum": [Sample((real(2, 3, 4),), {"axes": (0, 2)}), Sample((complex_(3),), {"axes": (0,)})],
    "cumsum": [Sample((real(3, 2),), {"axis": 0, "reverse": r}) for r in (False, True)],
    "getitem": [Sample((real(4, 5),), {"index": (1, (4, -1, -2))}), Sample((real(4),), {"index": (None, (1, 3, 1))})],
    "embed": [Sample((real(2),), {"index": ((1, 5, 2), 2), "shape": (6, 3)})],
    "update": [Sample((real(4, 3), real(2, 3)), {"index": ((1, 3, 1), (0, 3, 1))}, (0, 1))],
    "concatenate": [Sample((real(2, 3), real(1, 3), real(2, 3)), {"axis": 0}, (0, 1, 2))],
    "where": [Sample((real(3, 2) > 0.5, real(3, 2), real(2)), {}, (1, 2))],
    "windows": [
        Sample((real(5, 6),), {"sizes": (2, 3), "axes": (0, 1)}),
        Sample((real(7, 6),), {"sizes": (2, 2), "axes": (0, 1), "steps": (2, 1), "gaps": (2, 1)}),
    ],
    "overlap_add": [Sample((real(4, 4, 2, 3),), {"sizes": (2, 3), "axes": (0, 1), "shape": (5, 6)})],
    "correlate": [Sample((real(5), real(3)), {"mode": mode}, (0, 1)) for mode in ("full", "same", "valid")]
    + [Sample((complex_(3), complex_(5)), {"mode": "same"}, (0, 1))],
    "absent": [Sample((real(3),), {"shape": (2, 2), "dtype": np.dtype(np.float64)})],
    "named": [Sample((real(3),), {"label": "hidden"})],
    "conjugate": [Sample((complex_(3),)), Sample((real(3),))],
    "real": [Sample((complex_(3),)), Sample((real(3),))],
    "imag": [Sample((complex_(3),)), Sample((real(3),))],
    "gather": [
        Sample((real(4, 3), integers(2, 2)), {"axis": 0}),
        Sample((real(4, 3, 2), integers(3), integers(3, high=2)), {"axis": 1}),
        Sample((real(4), integers()), {"axis": 0}),
    ],
    "scatter": [
        Sample((real(4, 3), real(2, 3), np.array([2, 0])), {"axis": 0}, (0, 1)),
        Sample((real(4), real(3), np.array([1, 1, 2])), {"axis": 0}, (0, 1)),
    ],
    "scatter_add": [
        Sample((real(4, 3), real(3, 3), np.array([1, 1, 2])), {"axis": 0}, (0, 1)),
        Sample((real(2, 4), real(2, 3), np.array([1, 1, 2])), {"axis": 1}, (0, 1)),
    ],
    # products and reductions
    "contract": [
        Sample((real(3, 4), real(4, 2)), {"spec": spec((0, 1), (1, 2), (0, 2))}, (0, 1)),
        Sample((real(3), real(2)), {"spec": spec((0,), (1,), (1, 0))}, (0, 1)),
        Sample((real(2, 3, 4), real(2, 4, 3)), {"spec": spec((0, 1, 2), (0, 2, 3), (3, 0, 1))}, (0, 1)),
        Sample((real(2, 3), real(3, 2)), {"spec": spec((0, 1), (1, 0), ())}, (0, 1)),
        Sample((complex_(3), complex_(3)), {"spec": spec((0,), (0,), ())}, (0, 1)),
        Sample((real(2, 3), complex_(3)), {"spec": spec((0, 1), (1,), (0,))}, (0, 1)),
    ],
    "max": [Sample((real(3, 4),), {"axes": (1,)}), Sample((real(3),), {"axes": (0,)})],
    "min": [Sample((real(3, 4) / 100 + np.arange(12.0).reshape(4, 3).T / 12,), {"axes": (0, 1)})],
    "prod": [Sample((real(3, 4),), {"axes": (0,)}), Sample((np.array([0.0, 2.0, 3.0]),), {"axes": (0,)})],
    "cumprod": [Sample((real(5, 2),), {"axis": 0}), Sample((np.array([2.0, 0.0, 3.0]),), {"axis": 0})],
    "any": [Sample((real(3, 4) > 0.5,), {"axes": (1,)}, ())],
    "all": [Sample((real(3, 4) > 0.5,), {"axes": (0,)}, ())],
    "argmax": [Sample((real(3, 4),), {"axis": 1}, ())],
    "argmin": [Sample((real(3, 4),), {"axis": 0}, ())],
    "argsort": [Sample((real(3, 4),), {"axis": 1, "kind": None}, ())],
    "cummax": [Sample((real(5, 2),), {"axis": 0})],
    "cummin": [Sample((real(5, 2),), {"axis": 0})],
    "sum_with": [
        Sample((real(3, 4), real(3, 4) > 0.4), {"axes": (1,), "dtype": None, "initial": None}),
        Sample((real(3, 4), np.ones((3, 4), bool)), {"axes": (0,), "dtype": None, "initial": 2.0}),
    ],
    "prod_with": [Sample((real(3, 4), real(3, 4) > 0.4), {"axes": (1,), "dtype": None, "initial": None})],
    "logaddexp_reduce": [Sample((real(3, 4),), {"axes": (1,)})],
    "mean": [
        Sample((real(2, 3, 4),), {"axes": (0, 2), "dtype": None}),
        Sample((complex_(3),), {"axes": (0,), "dtype": None}),
        Sample((real(3, 2).astype(np.float32),), {"axes": (0,), "dtype": np.dtype(np.float64)}, ()),
    ],
    "variance": [
        Sample((real(3, 4),), {"axes": (1,), "ddof": 0}),
        Sample((complex_(3),), {"axes": (0,), "ddof": 1}),
    ],
    "complex": [Sample((real(3), real(3)), {}, (0, 1))],
    "adjugate": [Sample((spd(3),)), Sample((np.diag([1.0, 2.0, 0.0]),), tolerance=1e-6)],
    "eigvalsh": [Sample((spd(3),), {"lower": True})],
    "eigvals": [Sample((APART,), tolerance=1e-6)],
    "eig": [Sample((APART,), tolerance=1e-6)],
    "svdvals": [Sample((real(4, 3),))],
    "pinv": [Sample((real(4, 3), np.asarray(1e-12)), {"hermitian": False, "cut": False}, batched=False)],
    "lstsq": [Sample((real(4, 3), real(4, 2)), {"limit": 1e-12, "cut": False}, (0, 1), tolerance=1e-6)],
    "qr_raw": [Sample((real(4, 3),), {}, ())],
    "match_values": [Sample((np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])), {}, ())],
    "segment_sum": [Sample((real(6, 2),), {"starts": (0, 2, 3), "axis": 0})],
    "fft": [
        Sample((complex_(4),), {"axis": 0, "norm": n, "inverse": i})
        for n in ("backward", "ortho")
        for i in (False, True)
    ],
    "rfft": [Sample((real(n, 2),), {"axis": 0, "norm": "backward"}) for n in (5, 6)],
    "irfft": [Sample((complex_(4),), {"axis": 0, "length": n, "norm": "backward"}) for n in (6, 7)],
    # orders
    "reorder": [Sample((real(3, 4), np.argsort(real(3, 4), axis=1)), {"axis": 1})],
    "inverse_order": [Sample((np.argsort(real(3, 4), axis=0),), {"axis": 0}, ())],
    "sort": [Sample((real(3, 4),), {"axis": 0, "kind": kind}) for kind in (None, "stable")],
    "partition": [
        Sample((real(7) / 100 + np.array([4, 1, 6, 2, 5, 0, 3]) / 7,), {"kth": (2,), "axis": 0, "kind": "introselect"})
    ],
    "partition_order": [Sample((real(7),), {"kth": (2,), "axis": 0, "kind": "introselect"}, ())],
    "argpartition": [Sample((real(7),), {"kth": (2,), "axis": 0, "kind": "introselect"}, ())],
    "lexsort": [Sample((integers(5), real(5)), {"axis": 0}, ())],
    "search": [Sample((np.sort(real(6)), real(3, 2)), {"side": "left", "batch_rank": 0}, ())],
    # linear algebra
    "cholesky": [Sample((spd(3),)), Sample((spd(3, 2),)), Sample((hermitian(3),))],
    "solve": [
        Sample((spd(3), real(3, 2)), {}, (0, 1)),
        Sample((spd(3) + 1j * np.eye(3), complex_(3, 1)), {}, (0, 1)),
    ],
    "triangular_solve": [
        Sample((np.tril(spd(3)) + np.eye(3), real(3, 2)), {"lower": True, "adjoint": adjoint, "unit": unit}, (0, 1))
        for adjoint in (False, True)
        for unit in (False, True)
    ],
    "inv": [Sample((spd(3),)), Sample((hermitian(3),))],
    "det": [Sample((spd(3),)), Sample((np.diag([1.0, 2.0, 0.0]),))],
    "slogdet": [Sample((spd(3),)), Sample((hermitian(3) + 0.5j * np.eye(3),))],
    "eigh": [Sample((spd(3) / 10 + np.diag([1.0, 2.0, 4.0]),), {"lower": True}, tolerance=1e-6)],
    "svd": [
        Sample((real(m, n) + np.eye(m, n) * [1, 2, 3][:n],), {"full_matrices": False}, tolerance=1e-6)
        for m, n in ((3, 3), (4, 3))
    ],
    "qr": [
        Sample((real(m, n) + 2 * np.eye(m, n),), {"mode": "reduced"}, tolerance=1e-6)
        for m, n in ((3, 3), (4, 3), (2, 4))
    ],
}


def twice_sin(*args: Any) -> list[Any]:
    """The results of the called functions."""
    return [multiply(sin(args[0]), 2.0)]


def twice_sin_jvp(primals: Any, tangents: Any) -> Any:
    """Its tangent rule."""
    from func.interpreters.primitives.elementwise.table import cos

    return twice_sin(*primals), [multiply(multiply(cos(primals[0]), 2.0), tangents[0])]


def twice_sin_bwd(residuals: Any, cts: Any) -> Any:
    """Its backward rule."""
    return [multiply(residuals[0], cts[0])]


def twice_sin_rule(size: int, batched: Any, args: Any) -> Any:
    """Its batch rule."""
    return twice_sin(*args), [bool(batched[0])]


def scaled(*args: Any) -> list[Any]:
    """A linear map: the first argument times the second."""
    return [multiply(args[0], args[1])]


def scaled_backward(known: Any, ct: Any) -> list[Any]:
    """Its transpose."""
    return [multiply(known[0], ct[0])]


SAMPLES |= {
    "custom_jvp_call": [Sample((real(3),), {"fun": twice_sin, "rule": twice_sin_jvp})],
    "custom_vjp_call": [],
    "custom_vmap_call": [Sample((real(3),), {"fun": twice_sin, "rule": twice_sin_rule})],
    "linear_call": [
        Sample(
            (real(3), real(3)),
            {"forward": scaled, "backward": scaled_backward, "residuals": 1, "outs": (Aval((3,), np.float64),)},
            (1,),
        )
    ],
    "checkpoint_call": [],
    "saved_output": [],
}
_point = real(3)
SAMPLES["custom_vjp_call"] = [
    Sample(
        (_point, 2 * np.sin(_point), 2 * np.cos(_point)),
        {"bwd": twice_sin_bwd, "layout": KnownOutputs(1, 1, (2,), (), (), None)},
        (),
        batched=False,
    )
]
SAMPLES["checkpoint_call"] = [Sample((_point, 2 * np.sin(_point)), {"fun": twice_sin, "outs": 1}, (), batched=False)]
SAMPLES["saved_output"] = [Sample((np.sin(_point), _point), {"primitive": sin, "options": ()}, (), batched=False)]

_DIAGONALS: tuple[Placement, ...] = ((0, (3,), (5,)), (1, (3,), (5,)))
_BLOCKS: tuple[Placement, ...] = ((2, (2, 3), (-1, 6)), (0, (3, 5), (6, 1)))
SAMPLES |= {
    "place": [
        Sample((real(3), real(1)), {"shape": (3, 4), "dtype": np.dtype(float), "placements": _DIAGONALS}, (0, 1)),
        Sample((real(1, 3), real(3, 1)), {"shape": (3, 6), "dtype": np.dtype(float), "placements": _BLOCKS}, (0, 1)),
        Sample((complex_(3),), {"shape": (3, 4), "dtype": np.dtype(complex), "placements": _DIAGONALS[1:]}),
    ],
    "take": [
        Sample((real(3, 4),), {"placement": _DIAGONALS[1]}),
        Sample((complex_(3, 6),), {"placement": _BLOCKS[0]}),
    ],
}

for _module in (samples_control, samples_filters, samples_linalg, samples_random, samples_special, samples_staged):
    SAMPLES |= _module.SAMPLES
