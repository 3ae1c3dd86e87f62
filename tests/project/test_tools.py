"""The scripts in tools/: coefficients that can be derived again, mutants whose text is in the source."""

import pytest

mpmath = pytest.importorskip("mpmath")
pytest.importorskip("llvmlite")

from tools import minimax  # noqa: E402


@pytest.mark.parametrize("name", minimax.tables())
def test_coefficients_of_the_source_are_as_good_as_derived_ones(name: str) -> None:
    target = minimax.tables()[name]
    here = minimax.largest_error(target, target.coefficients)
    assert here <= 2.5 * minimax.largest_error(target, minimax.derived(target))
    spoiled = [target.coefficients[0] * (1 + 1e-5), *target.coefficients[1:]]
    assert minimax.largest_error(target, spoiled) > here
