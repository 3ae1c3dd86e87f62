"""Arguments for functions of which only the names of the parameters are known, and what makes a function numeric."""

from __future__ import annotations

import inspect
import random
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = dict[str, Any]
SLOW = 0.3
"""Seconds: a function that takes longer for one call takes too long for its differences."""

_ANGLES = "angle theta phi psi lat lon azimuth zenith elevation tilt declination yaw pitch roll"
_COUNTS = "n m k num order degree deg size count npts nobs dim ndim lag lags window axis level nfft num_points"
_MATRICES = "a m mat matrix cov covariance corr sigma rot rotation dcm transform h q2 s y z abcd"
_FRACTIONS = "p q prob probability fraction frac x w weight alpha beta rh efficiency eta emissivity void"


@dataclass
class Case:
    """A function with arguments on which it is smooth in those of `smooth`."""

    name: str
    function: Callable[..., Any]
    arguments: Arguments
    smooth: list[str]
    form: str

    def call(self, *values: Any) -> Any:
        """The result for other values of the smooth arguments."""
        positional, keywords = bound(self.function, self.arguments | dict(zip(self.smooth, values, strict=True)))
        return self.function(*positional, **keywords)

    @property
    def values(self) -> list[Any]:
        """The smooth arguments, as copies."""
        return [copied(self.arguments[name]) for name in self.smooth]


def bound(function: Callable[..., Any], arguments: Arguments) -> tuple[list[Any], Arguments]:
    """Positional and keyword arguments."""
    parameters = inspect.signature(function).parameters
    keyword = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    positional: list[Any] = []
    rest = {name: copied(value) for name, value in arguments.items()}
    for name, parameter in parameters.items():
        if name in keyword or name not in rest:
            break
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(rest.pop(name))
    return positional, rest


def copied(value: Any) -> Any:
    """A value, arrays being copies."""
    return value.copy() if type(value) is np.ndarray else value


def parameters_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    """The parameters that need values, or those with numbers as defaults if none does; None if it takes none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = {p.name: None for p in plain if p.default is p.empty}
    optional = {p.name: p.default for p in plain if type(p.default) is float}
    return needed or optional or None


def forms(names: list[str]) -> list[tuple[str, Callable[[str, int], Any]]]:
    """Ways to fill parameters, of which each makes a value of a name and its place."""

    def by_place(first: Callable[[str], Any], rest: Callable[[str], Any]) -> Callable[[str, int], Any]:
        return lambda name, place: first(name) if place == 0 else rest(name)

    def by_name(name: str, place: int) -> Any:
        return matrix(name) if name.lower() in _MATRICES.split() else vector(name)

    every: list[tuple[str, Callable[[str, int], Any]]] = [
        ("vectors", by_place(vector, vector)),
        ("scalars", by_place(scalar, scalar)),
        ("matrix and vectors", by_name),
        ("matrices", by_place(matrix, matrix)),
        ("matrix, then scalars", by_place(matrix, scalar)),
        ("matrix, then vectors", by_place(matrix, vector)),
        ("fractions", by_place(fraction, fraction)),
        ("physical", by_place(physical, physical)),
        ("quaternions", by_place(quaternion, quaternion)),
        ("homogeneous matrices", by_place(homogeneous, homogeneous)),
        ("rows", by_place(rows, rows)),
        ("rows, then scalars", by_place(rows, scalar)),
        ("long vector", by_place(series, scalar)),
        ("long vectors", by_place(series, series)),
        ("scalar, then vectors", by_place(scalar, vector)),
    ]
    if len(names) > 1:
        every.insert(2, ("vector, then scalars", by_place(vector, scalar)))
        every.append(("vectors, last a scalar", lambda name, i: scalar(name) if i == len(names) - 1 else vector(name)))
        every.append(
            ("vectors, last two scalars", lambda name, i: scalar(name) if i >= len(names) - 2 else vector(name))
        )
    return every


def _generator(name: str, kind: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{kind}:{name}".encode()))


def scalar(name: str) -> Any:
    """A count, an angle or another positive number."""
    if name.lower() in _COUNTS.split():
        return 3
    low, high = (0.2, 0.9) if name.lower() in _FRACTIONS.split() or is_angle(name) else (0.6, 2.4)
    return round(float(_generator(name, "scalar").uniform(low, high)), 3)


def is_angle(name: str) -> bool:
    """Whether a parameter is named as angles are."""
    return any(word in name.lower() for word in _ANGLES.split())


def fraction(name: str) -> Any:
    """A number between 0 and 1."""
    return 2 if name.lower() in _COUNTS.split() else round(float(_generator(name, "fraction").uniform(0.1, 0.9)), 3)


def physical(name: str) -> Any:
    """A number of the size that the name has in physics: temperatures, pressures, densities."""
    sizes = {
        "T": 320.0,
        "P": 2e5,
        "r": 900.0,
        "m": 2e-3,
        "k": 0.5,
        "h": 1e5,
        "C": 1500.0,
        "D": 0.1,
        "d": 1e-3,
        "V": 2.0,
        "M": 30.0,
    }
    if name.lower() in _COUNTS.split():
        return 5
    size = sizes.get(name[:1], sizes.get(name[:1].upper(), 10.0))
    return float(f"{size * _generator(name, 'physical').uniform(0.8, 1.3):.4g}")


def _array(name: str, kind: str, shape: tuple[int, ...]) -> Any:
    low, high = (0.2, 0.9) if name.lower() in _FRACTIONS.split() or is_angle(name) else (0.5, 2.5)
    return np.round(_generator(name, kind).uniform(low, high, shape), 3)


def vector(name: str) -> Any:
    """Three numbers, or a count."""
    return 3 if name.lower() in _COUNTS.split() else _array(name, "vector", (3,))


def quaternion(name: str) -> Any:
    """Four numbers of norm 1."""
    four = _array(name, "quaternion", (4,))
    return four / np.linalg.norm(four)


def series(name: str) -> Any:
    """Twenty numbers."""
    return 3 if name.lower() in _COUNTS.split() else _array(name, "series", (20,))


def rows(name: str) -> Any:
    """Five rows of three numbers."""
    return 3 if name.lower() in _COUNTS.split() else _array(name, "rows", (5, 3))


def matrix(name: str) -> Any:
    """A positive definite matrix."""
    half = _generator(name, "matrix").uniform(-1.0, 1.0, (3, 3))
    return np.round(half @ half.T + 2.0 * np.eye(3), 3)


def homogeneous(name: str) -> Any:
    """A matrix of a map of points in space, without numbers at which code branches."""
    out = np.eye(4) + _generator(name, "homogeneous").uniform(-0.4, 0.4, (4, 4))
    return np.round(out * np.array([1.0, 1.0, 1.0, 0.1])[:, None], 3)


def find_case(name: str, function: Callable[..., Any]) -> Case | None:
    """The first form of arguments on which a function is smooth."""
    parameters = parameters_of(function)
    if parameters is None or len(parameters) > 14:
        return None
    for form, arguments in _fillings(parameters):
        try:
            case = _smooth_case(Case(name, function, arguments, [], form))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException:
            continue
        if case is not None:
            return case
    return None


def _fillings(parameters: dict[str, Any]) -> Iterator[tuple[str, Arguments]]:
    if all(value is not None for value in parameters.values()):
        yield "defaults", {name: value or 0.1 for name, value in parameters.items()}
        return
    for form, value in forms(list(parameters)):
        yield form, {name: value(name, place) for place, name in enumerate(parameters)}


def _smooth_case(case: Case) -> Case | None:
    random.seed(0)
    begin = time.perf_counter()
    first = leaves(case.call())
    if time.perf_counter() - begin > SLOW or not is_numeric(first):
        return None
    numbers = {name: np.float64(x) if type(x) is float else x for name, x in case.arguments.items()}
    for arguments in (case.arguments, numbers):  # numbers of Python's to a power may be complex, and NumPy's are not
        second = leaves(Case(case.name, case.function, arguments, [], case.form).call())
        if not all(np.array_equal(a, b) for a, b in zip(first, second, strict=True)):
            return None
    floats = [name for name, value in case.arguments.items() if type(value) is float or (type(value) is np.ndarray)]
    smooth = []
    for name in floats:
        alone = Case(case.name, case.function, case.arguments, [name], case.form)
        slopes = differences(lambda value, alone=alone: vector_of(alone.call(value)), alone.values[0])
        if slopes is not None and slopes.is_smooth and np.any(slopes.value):
            smooth.append(name)
    return Case(case.name, case.function, case.arguments, smooth, case.form) if smooth else None


def leaves(result: Any) -> list[Any]:
    """The arrays and numbers of a result."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in leaves(value)]
    if isinstance(result, (list, tuple)):
        return [leaf for value in result for leaf in leaves(value)]
    return [result]


def is_numeric(results: list[Any]) -> bool:
    """Whether these are finite numbers, of which some are not integers."""
    if not results or len(results) > 200:
        return False
    for leaf in results:
        if not isinstance(leaf, (int, float, complex, np.ndarray, np.generic)) or np.size(leaf) > 2000:
            return False
        if np.asarray(leaf).dtype.kind not in "bifuc" or not np.all(np.isfinite(leaf)):
            return False
    return any(np.asarray(leaf).dtype.kind in "fc" and np.size(leaf) for leaf in results)


def vector_of(result: Any) -> Any:
    """The numbers of a result that are not integers, in one vector."""
    arrays = [np.asarray(leaf) for leaf in leaves(result)]
    return np.concatenate([array.ravel() for array in arrays if array.dtype.kind in "fc"])


@dataclass
class Slopes:
    """Derivatives by differences, of the shape of the function's value followed by that of its argument."""

    value: Any
    error: Any
    is_smooth: bool


def differences(function: Callable[[Any], Any], at: Any, step: float = 2e-4) -> Slopes | None:
    """Central differences with two steps, extrapolated; None where there is no finite value."""
    base = np.asarray(function(copied(at)))
    noise = noise_of(function, at, step)
    columns, errors = [], []
    is_smooth = True
    for place in np.ndindex(np.shape(at)):
        size = step * max(abs(float(np.asarray(at)[place])), 0.05)
        wide, narrow = [_central(function, at, place, h) for h in (size, size / 2)]
        if wide.shape != base.shape or narrow.shape != base.shape or not np.all(np.isfinite([wide, narrow])):
            return None
        rounding = (1e-15 * np.abs(base) + noise) / size
        gap, largest = np.abs(wide - narrow), np.max(np.abs(narrow), initial=0)
        is_near = gap <= 1e-4 * np.abs(narrow) + 1e-7 * largest + 50 * rounding
        is_clear = noise <= 1e-4 * size * largest + 1e-13 * np.abs(base)
        is_smooth &= bool(np.all(is_near & is_clear))
        columns.append((4 * narrow - wide) / 3)
        errors.append(gap + 20 * rounding)
    shape = (*base.shape, *np.shape(at))
    value, error = [np.stack(parts, axis=-1).reshape(shape) for parts in (columns, errors)]
    return Slopes(value, error, is_smooth)


def noise_of(function: Callable[[Any], Any], at: Any, step: float) -> Any:
    """The size of the rounding errors of a value, from the fourth differences of values close to each other.

    Source: J. Moré, S. Wild (2011), Estimating computational noise, SIAM J. Sci. Comput. 33, section 3.
    """
    sizes = step / 16 * np.maximum(np.abs(at), 0.05)
    values = [np.asarray(function(at + count * sizes)) for count in range(-4, 5)]
    if len({value.shape for value in values}) > 1:
        return np.inf
    return np.max(np.abs(np.diff(values, 4, axis=0)), axis=0) / 8


def _central(function: Callable[[Any], Any], at: Any, place: tuple[int, ...], size: float) -> Any:
    high, low = [_moved(at, place, signed) for signed in (size, -size)]
    return (np.asarray(function(high)) - np.asarray(function(low))) / (2 * size)


def _moved(at: Any, place: tuple[int, ...], by: float) -> Any:
    if not place:
        return at + by
    out = at.copy()
    out[place] += by
    return out
