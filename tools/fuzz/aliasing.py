"""Campaign: functions that may return views, for arrays of every layout, and writes to either side, in every mode."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.memory_calls import CALLS
from tools.fuzz.cases import Tally
from tools.fuzz.programs import PLAIN_ERRORS, SHAPES, check_program, placed, weighed

QUICK = 150
NAMES = sorted([name for name in CALLS if "single" not in name])
WRITES: dict[str, Callable[[Any], Any]] = {
    "y[...] *= 2": lambda y: np.multiply(y, 2.0, out=y),
    "y[...] = 0.5": lambda y: y.__setitem__(Ellipsis, 0.5),
    "y[..., 0] = 1.5": lambda y: y.__setitem__((Ellipsis, 0), 1.5),
    "y[0] = 0.25": lambda y: y.__setitem__(0, 0.25),
    "y.reshape(-1)[0] = 3": lambda y: y.reshape(-1).__setitem__(0, 3.0),
    "y.ravel()[-1] = 3": lambda y: y.ravel().__setitem__(-1, 3.0),
    "y.flat[0] = 2": lambda y: y.flat.__setitem__(0, 2.0),
    "y.fill(0.75)": lambda y: y.fill(0.75),
    "y[y > 1] = 1": lambda y: y.__setitem__(y > 1, 1.0),
    "y.sort()": lambda y: y.sort(),
}


NEED_FULL_RANK = {"inv", "solve"}
"""Functions that raise at a singular matrix: in which mode they see it is a matter of rounding."""
COMPLETED = {"svd"}
"""Functions that complete a basis where matrices are not square: the derivative of what completes it is open."""


def real_part(out: Any, place: int) -> Any:
    """One of the outputs, real and floating-point."""
    part = out[place % max(1, len(out))] if isinstance(out, (tuple, list)) else out
    return part if part.dtype.kind == "f" else np.real(part) * 1.0


def case(choices: random.Random, tally: Tally) -> None:
    """One or two functions in a row, then writes to any of the arrays."""
    names = [choices.choice(NAMES) for _ in range(choices.choice([1, 1, 2]))]
    writes = [(choices.choice(list(WRITES)), choices.randint(0, len(names) + 1)) for _ in range(choices.choice([1, 2]))]
    place, owns = choices.randint(0, 2), choices.random() < 0.6
    shape, layout = choices.choice(SHAPES), choices.choice(["C", "F", "strided", "reversed"])
    values = np.array([0.3 + choices.randint(0, 40) / 31.0 for _ in range(int(np.prod(shape)))]).reshape(shape)
    tally.show(f"{names}, output {place}; {writes}; {'x * 2' if owns else 'x'}; {layout} {values.tolist()}")

    completed: list[str] = []
    singular: list[str] = []

    def f(x: Any) -> Any:
        arrays = [x, x * 2 if owns else x]
        for name in names:
            x = arrays[-1]
            if name in NEED_FULL_RANK and type(x) is np.ndarray and np.linalg.cond(x) > 1e8:
                singular.append(name)
            if name in ("einsum diagonal", "einsum first diagonal") and x.shape[0] != x.shape[1] and 0 in x.shape:
                raise ValueError("NumPy reads past an array of the lengths 0 and another one")
            completed.extend([name] if name in COMPLETED and x.shape[-2:-1] != x.shape[-1:] else [])
            arrays.append(real_part(CALLS[name](arrays[-1]), place))
        for write, target in writes:
            WRITES[write](arrays[target])
        return sum([weighed(array, number) for number, array in enumerate(arrays)])

    with contextlib.suppress(*PLAIN_ERRORS, AttributeError):
        f(placed(shape, layout, values))
    if not singular:
        check_program(f, placed(shape, layout, values), tally, has_slope=lambda: not completed)
