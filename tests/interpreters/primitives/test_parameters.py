"""Every primitive declares what its parameters may be, and programs with other ones are refused."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

from func.errors import FuncError
from func.interpreters.core import PRIMITIVES, aval_of, bind
from func.interpreters.core.parameters import AXES, parameter_error
from tests.interpreters.primitives.test_samples import ALL
from tests.support.sampling import Sample

WITH_PARAMETERS = [case for case in ALL if case.values[1].params]  # type: ignore[union-attr]
CODE = "0 if __import__('os').system('false') else 0"
OTHERS: list[Any] = [
    CODE,
    "",
    [CODE],
    {CODE: CODE},
    2**70,
    -(2**70),
    -7,
    1e300,
    math.nan,
    1j,
    (CODE,),
    (-7,),
    (2**70,),
    ((0, 1, CODE),),
    True,
    np.zeros(3),
    object(),
    type("Text", (str,), {"__repr__": lambda self: CODE})("left"),
]
MAY_BE = {
    "barrier": [-7],
    "remote_map": [True],
    "named": [CODE, ""],
    "variance": [-7, 1e300],
    "lstsq": [-7, 1e300, math.nan],
    "fractional_matrix_power": [-7, 1e300],
    "fractional_matrix_power_frechet": [-7, 1e300],
    "sum_with": [True, -7, 1e300, math.nan, 1j, 2**70, -(2**70)],
    "prod_with": [True, -7, 1e300, math.nan, 1j, 2**70, -(2**70)],
    **{name: [CODE, ""] for name in PRIMITIVES if "label" in PRIMITIVES[name].parameters},
}
"""Primitives with parameters that are any numbers or texts."""


def is_among(value: Any, values: list[Any]) -> bool:
    """Whether a value is in a list, compared by what it looks like."""
    return any([type(value) is type(other) and repr(value) == repr(other) for other in values])


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_samples_have_the_declared_parameters(name: str, sample: Sample) -> None:
    avals = [aval_of(arg) for arg in sample.args]
    assert parameter_error(PRIMITIVES[name], avals, sample.params) is None


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_parameter_of_the_rules_is_declared(name: str) -> None:
    primitive = PRIMITIVES[name]
    for rule in (primitive.impl, primitive._aval):
        if callable(rule) and not isinstance(rule, np.ufunc):
            parameters = inspect.signature(rule).parameters.values()
            named = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
            assert named <= set(primitive.parameters)


@pytest.mark.parametrize(("name", "sample"), WITH_PARAMETERS)
def test_parameters_of_other_kinds_are_refused(name: str, sample: Sample) -> None:
    primitive = PRIMITIVES[name]
    avals = [aval_of(arg) for arg in sample.args]
    for key in sample.params:
        for other in OTHERS:
            is_flag = other is True and isinstance(sample.params[key], bool)
            if not is_flag and not is_among(other, MAY_BE.get(name, [])):
                reason = parameter_error(primitive, avals, {**sample.params, key: other})
                assert reason is not None, (key, other)


@pytest.mark.parametrize(("name", "sample"), WITH_PARAMETERS)
def test_axes_differ_and_are_in_range(name: str, sample: Sample) -> None:
    primitive = PRIMITIVES[name]
    avals = [aval_of(arg) for arg in sample.args]
    for key, kind in primitive.parameters.items():
        if kind is AXES:
            for axes in ((0, 0), (len(avals[0].shape),), (-1,), [0], 0):
                assert parameter_error(primitive, avals, {**sample.params, key: axes}) is not None


@pytest.mark.parametrize(("name", "sample"), WITH_PARAMETERS)
def test_unknown_and_missing_parameters_are_refused(name: str, sample: Sample) -> None:
    primitive = PRIMITIVES[name]
    avals = [aval_of(arg) for arg in sample.args]
    assert parameter_error(primitive, avals, {**sample.params, "other": 0}) == "it has no parameter 'other'"
    for key in sample.params:
        rest = {name: value for name, value in sample.params.items() if name != key}
        if not primitive.parameters[key].optional:
            assert parameter_error(primitive, avals, rest) is not None


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_slices_stay_within_their_axis(step: int) -> None:
    length = 5
    for start in range(-2, length + 3):
        for stop in range(-3, length + 3):
            chosen = range(start, stop, step)
            if chosen:
                refused = parameter_error(
                    PRIMITIVES["getitem"], [aval_of(np.zeros(length))], {"index": ((start, stop, step),)}
                )
                assert (refused is None) == (min(chosen) >= 0 and max(chosen) < length), (start, stop)


INTEGERS = [
    (name, sample) for name, sample in [case.values for case in ALL] if int in map(type, sample.params.values())
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "sample"), INTEGERS)
def test_integers_that_are_not_refused_are_computed(name: str, sample: Sample) -> None:
    primitive, avals = PRIMITIVES[name], [aval_of(arg) for arg in sample.args]
    for key in [key for key, value in sample.params.items() if type(value) is int]:
        for value in (0, 1, 6, 64):
            params = {**sample.params, key: value}
            if parameter_error(primitive, avals, params) is not None:
                continue
            try:
                outs = bind(primitive, tuple(sample.args), params)
            except (np.linalg.LinAlgError, NotImplementedError, IndexError, FuncError):
                continue
            expected = primitive.aval(*avals, **params)
            for out, aval in zip(*[x if primitive.multiple else [x] for x in (outs, expected)], strict=True):
                assert aval_of(out).shape == aval.shape
