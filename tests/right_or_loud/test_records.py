"""Objects that hold arrays, as arguments, results, in closures and made inside: the right derivative, or the cure."""

from __future__ import annotations

import collections
import dataclasses
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import func

X = np.array([1.0, 2.0, 3.0])


@dataclasses.dataclass
class Open:
    values: Any
    factor: float = 2.0
    name: str = "open"


@dataclasses.dataclass(frozen=True)
class Frozen:
    values: Any
    factor: float = 2.0
    name: str = "frozen"


@dataclasses.dataclass(slots=True)
class Slotted:
    values: Any
    factor: float = 2.0
    name: str = "slotted"


class OfAttrs:
    """An attrs class, as far as others see it."""

    __module__ = "attrs"
    __attrs_attrs__ = tuple(
        [types.SimpleNamespace(name=name, metadata={}) for name in ("values", "factor")]
        + [types.SimpleNamespace(name="name", metadata={"static": True})]
    )

    def __init__(self, values: Any, factor: float = 2.0, name: str = "attrs") -> None:
        self.values, self.factor, self.name = values, factor, name


class Written:
    """A class as people write them, with arrays in lists and dicts too."""

    def __init__(self, values: Any, factor: float = 2.0) -> None:
        self.values, self.factor = values, factor
        self.parts = [values, factor]
        self.table = {"values": values}

    def __call__(self, x: Any) -> Any:
        return self.parts[1] * np.sum(self.table["values"] * x)


class Named(NamedTuple):
    values: Any
    factor: float = 2.0


class Labelled(NamedTuple):
    values: Any
    kind: str = "label"


Pair = collections.namedtuple("Pair", "values factor")
RECORDS: dict[str, Callable[[Any], Any]] = {
    "dataclass": Open,
    "frozen": Frozen,
    "slots": Slotted,
    "attrs": OfAttrs,
    "class": Written,
    "namespace": lambda values: types.SimpleNamespace(values=values, factor=2.0),
    "NamedTuple": Named,
    "namedtuple": lambda values: Pair(values, 2.0),
}
ARE_TREES = ("NamedTuple", "namedtuple")


def energy(record: Any) -> Any:
    return record.factor * np.sum(record.values**2)


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_the_scope_and_made_inside(name: str) -> None:
    make, outside = RECORDS[name], RECORDS[name](X.copy())
    calls: list[Callable[[Any], Any]] = [
        lambda x: energy(make(x)),
        lambda x: energy(outside) * np.sum(x),
        lambda x: make(x * 2).values @ make(x).values,
        lambda x: energy({"a": [make(x)]}["a"][0]),
    ]
    for f in calls:
        slopes = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
        for transform in (func.grad(f), func.jit(func.grad(f)), lambda x, f=f: func.vmap(func.grad(f))(x[None])[0]):
            np.testing.assert_allclose(transform(X), slopes, rtol=1e-6)


@pytest.mark.parametrize("name", RECORDS)
def test_records_as_arguments_and_results(name: str) -> None:
    make = RECORDS[name]
    uses: list[Callable[[], Any]] = [
        lambda: func.grad(energy)(make(X)),
        lambda: func.jit(lambda record: make(record.values * 3))(make(X)),
        lambda: func.jvp(lambda x: make(x * 4), (X,), (X,))[1],
    ]
    for use, values in zip(uses, (4 * X, 3 * X, 4 * X), strict=True):
        if name in ARE_TREES:
            np.testing.assert_allclose(use().values, values)
            continue
        register = "register_dataclass" if name in ("dataclass", "frozen", "slots", "attrs") else "register_node"
        with pytest.raises(func.errors.UnsupportedArrayError, match=rf"make it a tree by func\.tree\.{register}"):
            use()


@pytest.mark.parametrize("original", [Open, Frozen, Slotted, OfAttrs])
def test_registered_records_are_trees(original: Any) -> None:
    methods = {key: value for key, value in vars(original).items() if key not in ("__dict__", "__weakref__")}
    fields: Any = [("values", object), ("factor", float, 2.0), ("name", str, "slotted")]
    kind: Any = (
        dataclasses.make_dataclass("Slotted", fields, slots=True)
        if original is Slotted
        else type(original.__name__, (), methods)
    )
    func.tree.register_dataclass(kind, static="name")
    assert np.allclose(func.grad(energy)(kind(X)).values, 4 * X) and func.grad(energy)(kind(X)).factor == 14.0
    assert func.grad(energy)(kind(X)).name == kind(X).name
    assert np.allclose(func.jit(lambda record: kind(record.values * 3))(kind(X)).values, 3 * X)
    assert np.allclose(func.vmap(lambda x: kind(x))(np.stack([X, X])).values, [X, X])
    assert np.allclose(func.jit(func.grad(energy))(kind(X)).values, 4 * X)


def test_a_field_that_is_no_number_is_named() -> None:
    @func.tree.register_dataclass
    @dataclasses.dataclass
    class Model:
        values: Any
        mode: str

    for record, field in ((Model(X, "a"), "mode"), (Labelled(X), "kind")):
        for call in (func.grad(lambda r: np.sum(r.values)), func.jit(lambda r: np.sum(r.values))):
            with pytest.raises(func.errors.UnsupportedArrayError, match=rf"register_dataclass\(static='{field}'\)"):
                call(record)
    with pytest.raises(func.errors.UnsupportedArrayError, match=r"output\.mode .*static='mode'"):
        func.jit(lambda x: Model(x, "a"))(X)


def test_replaced_and_converted_dataclasses() -> None:
    start = Frozen(X)
    for f in (
        lambda x: energy(dataclasses.replace(start, values=x)),
        lambda x: 2 * np.sum(dataclasses.asdict(Open(x))["values"] ** 2),
        lambda x: 2 * np.sum(dataclasses.astuple(Open(x))[0] ** 2),
    ):
        np.testing.assert_allclose(func.grad(f)(X), 4 * X)


class Quantity:
    """A quantity of pint, as far as others see it."""

    __module__ = "pint.registry"

    def __init__(self, magnitude: Any) -> None:
        self.magnitude = magnitude
        self.units = "m"

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Dataset:
    """A Dataset of xarray, as far as others see it."""

    __module__ = "xarray.core.dataset"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("cannot directly convert")


def test_quantities_and_datasets_name_their_arrays() -> None:
    for value, cure in ((Quantity(X), r"x\.magnitude"), (Dataset(), r"\.to_numpy\(\)")):
        calls: list[Callable[[], Any]] = [
            lambda value=value: func.grad(lambda q: np.sum(q))(value),
            lambda value=value: func.jit(lambda q: q)(value),
            lambda value=value: func.vmap(lambda q: q)(value),
            lambda value=value: func.jit(lambda x: value)(X),
        ]
        for call in calls:
            with pytest.raises(func.errors.UnsupportedArrayError, match=cure):
                call()


def test_labels_are_missed_by_name() -> None:
    """pandas and xarray objects are passed as arrays."""
    for f, cure in (
        (lambda s: np.sum(s.values**2), "write x itself"),
        (lambda s: np.sum(s.to_numpy() ** 2), "write x itself"),
        (lambda s: s["a"], "without their labels"),
        (lambda s: s.sum("row"), "without labels"),
    ):
        with pytest.raises((AttributeError, IndexError, TypeError), match=cure):
            func.grad(f)(X)
