"""Exported C of bfloat16 against ml_dtypes, compiled as strict C99 where every conversion between types is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import func
from func.errors import ArgumentError
from func.interpreters.core import PRIMITIVES
from tests.support.bfloat16_programs import (
    BFLOAT16,
    BINARY,
    DTYPES,
    EVERY,
    OF_NAN,
    PROGRAMS,
    SOME,
    UNARY,
    assert_program,
    assert_same,
    numbers_of,
    representable,
)
from tests.support.c_programs import STRICT, loaded, needs_compiler

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]
FLAGS = (*STRICT, "-O1")
FROM_LIBRARIES = {"rad2deg", "deg2rad", "logaddexp", "logaddexp2", "tan", "root"}
"""Operations whose single-precision result in C may be another one than NumPy's, by the libraries that have them."""


def test_conversions_of_every_number(tmp_path: Path) -> None:
    modules, cases = [], []
    for dtype in DTYPES:
        for name, target, x in (("to", dtype, representable(dtype)), ("from", BFLOAT16, numbers_of(dtype))):
            modules.append(func.to_c(lambda x, d=target: x.astype(d), name=f"{name}_{dtype.name}")(x))
            cases.append((target, x))
    for (target, x), run in zip(cases, loaded(modules, tmp_path, FLAGS), strict=True):
        assert_same(run(x), x.astype(target))


def test_operations(tmp_path: Path) -> None:
    cases = [(name, (EVERY,)) for name in UNARY if name != "spacing"]
    for name in BINARY:
        given = SOME[~np.isnan(SOME)] if name in OF_NAN else SOME
        cases.append((name, (given[:, None], given)))
    modules = [func.to_c(PRIMITIVES[name], name=f"f_{name}")(*args) for name, args in cases]
    for (name, args), run in zip(cases, loaded(modules, tmp_path, FLAGS), strict=True):
        with np.errstate(all="ignore"):
            assert_same(run(*args), PRIMITIVES[name](*args), 1 if name in FROM_LIBRARIES else 0)


def test_programs(tmp_path: Path) -> None:
    modules = [
        func.to_c(computed.function, name=f"f_{name.replace(' ', '_')}")(*computed.args)
        for name, computed in PROGRAMS.items()
    ]
    for computed, run in zip(PROGRAMS.values(), loaded(modules, tmp_path, FLAGS), strict=True):
        assert_program(computed, run(*func.tree.leaves(computed.args)))


def test_sorting_and_random_numbers(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=50).astype(BFLOAT16)
    key = func.random.key(3)
    modules = [
        func.to_c(np.sort, name="sorted")(x),
        func.to_c(lambda key: func.random.uniform(key, (40,), BFLOAT16), name="drawn")(key),
    ]
    ordered, drawn = loaded(modules, tmp_path, FLAGS)
    assert_same(ordered(x), np.sort(x))
    assert_same(drawn(key), func.random.uniform(key, (40,), BFLOAT16))


def test_the_interface_names_the_type() -> None:
    module = func.to_c(lambda x, y: x * y, name="scaled")(np.ones(3, BFLOAT16), BFLOAT16.type(2))
    assert "int scaled(const uint16_t *x, uint16_t y, uint16_t *out, void *work);" in module.header
    assert "bfloat16" in module.header
    run = module.load()
    assert run(np.ones(3, BFLOAT16), BFLOAT16.type(2.5)).tolist() == [2.5, 2.5, 2.5]
    with pytest.raises(ArgumentError, match="bfloat16"):
        run(np.ones(4, BFLOAT16), BFLOAT16.type(2))


def test_zeros_of_half_precision_are_false(tmp_path: Path) -> None:
    """Both zeros, whose bits differ."""
    given: list[Any] = [np.array([0.0, -0.0, 1.0, np.nan], dtype) for dtype in (np.dtype(np.float16), BFLOAT16)]
    modules = [func.to_c(lambda x: x.astype(bool), name=f"truth_{x.dtype.name}")(x) for x in given]
    for x, run in zip(given, loaded(modules, tmp_path, FLAGS), strict=True):
        assert run(x).tolist() == [False, False, True, True]
