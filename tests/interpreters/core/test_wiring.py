"""The late-bound functions: all are set, by the module that the table names, and only once."""

from __future__ import annotations

import importlib

import pytest

from func.interpreters.core.wiring import SET_BY, WIRING, Wiring


@pytest.mark.parametrize("field", sorted(SET_BY))
def test_every_field_is_declared_and_set_by_its_module(field: str) -> None:
    assert field in Wiring.__annotations__
    importlib.import_module(SET_BY[field])
    assert callable(getattr(WIRING, field))


def test_a_field_is_set_once() -> None:
    with pytest.raises(RuntimeError, match=r"WIRING\.add is set twice"):
        WIRING.add = WIRING.add


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(AttributeError, match="no field 'subtract'"):
        WIRING.subtract  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        WIRING.subtract = WIRING.add  # type: ignore[attr-defined]


def test_reading_an_unset_field_names_the_module_that_should_set_it() -> None:
    with pytest.raises(RuntimeError, match=r"WIRING\.tensor_repr is not set; func\.autograd sets it"):
        Wiring().tensor_repr  # noqa: B018
