"""Static arguments of jit that compare equal but differ have separate programs."""

import dataclasses
import datetime
import decimal
import fractions
from typing import Any, NamedTuple

import numpy as np
import pytest

import func


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Options:
    scale: Any
    name: str = "options"


@dataclasses.dataclass(frozen=True)
class Labelled:
    scale: Any
    label: Any = dataclasses.field(default="", compare=False)


class Signed(float):
    pass


class Compared:
    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compared) and bool(self.scale == other.scale)

    def __hash__(self) -> int:
        return hash(self.scale)

    def __repr__(self) -> str:
        return f"Compared({self.scale!r})"


def _hour(shift: int) -> datetime.datetime:
    zone = datetime.timezone(datetime.timedelta(hours=shift))
    return datetime.datetime(2020, 1, 1, 1 + shift, tzinfo=zone)


def _same_content(value: Any, other: Any) -> bool:
    return repr(value) == repr(other)


EQUAL_BUT_DIFFERENT = [
    (0.0, -0.0),
    (complex(0.0, 0.0), complex(0.0, -0.0)),
    (1, True),
    (1.0, np.float32(1.0)),
    (np.float64(0.0), np.float64(-0.0)),
    ((1,), (1.0,)),
    ((1,), (True,)),
    ((0, (0.0, 2)), (0, (-0.0, 2))),
    (Pair(1, 2), (1, 2)),
    (Pair(1, 2), Pair(1, 2.0)),
    (frozenset({1}), frozenset({True})),
    (frozenset({(0.0,)}), frozenset({(-0.0,)})),
    (Options(1), Options(1.0)),
    (Options((0.0,)), Options((-0.0,))),
    (range(0, 3, 2), range(0, 4, 2)),
    (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    (Labelled(1, "a"), Labelled(1, "b")),
    (Signed(0.0), Signed(-0.0)),
    (Compared(1), Compared(True)),
    (Compared((0.0,)), Compared((-0.0,))),
    (_hour(0), _hour(1)),
    (datetime.datetime(2020, 1, 1, fold=0), datetime.datetime(2020, 1, 1, fold=1)),
    (fractions.Fraction(1), 1),
    (np.dtype([("a", "f8")]), np.dtype([("a", "f8")], align=True)),
]


@pytest.mark.parametrize("values", EQUAL_BUT_DIFFERENT, ids=repr)
def test_each_has_its_program(values: tuple[Any, Any]) -> None:
    assert values[0] == values[1]
    traced: list[Any] = []
    g = func.jit(lambda x, value: traced.append(value) or x + 1.0, static_argnames="value")
    for _ in range(2):
        for value in values:
            g(1.0, value=value)
    assert len(traced) == 2 and all(map(_same_content, traced, values))


def test_sign_of_zero_and_type_of_a_scale() -> None:
    signed = func.jit(np.copysign, static_argnums=1)
    assert [float(signed(1.0, sign)) for sign in (0.0, -0.0)] == [1.0, -1.0]
    scaled = func.jit(lambda x, scale: x * scale[0], static_argnums=1)
    x = np.array([3], np.int32)
    assert [scaled(x, scale).dtype for scale in ((1,), (1.0,), (True,))] == [np.int32, np.float64, np.int32]


def test_nan_is_itself() -> None:
    traced: list[Any] = []
    f = func.jit(lambda x, value: traced.append(value) or x + 1.0, static_argnums=1)
    for value in (np.nan, float("nan"), (np.nan,), (float("nan"),), np.float64("nan"), np.float64("nan")):
        f(1.0, value)
    assert len(traced) == 3
