"""The laws of scipy.fft's rows, and its options against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import func
from tests.support.scipy_fft import ROWS, WITHOUT
from tests.support.scipy_rows import check, parameters

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(4, 5))


@pytest.mark.parametrize(("name", "column"), parameters(ROWS))
def test_fft_rows(name, column):
    check(ROWS[name], "fft", column)


def test_every_public_name_has_a_row_or_a_reason():
    assert set(scipy.fft.__all__) <= set(ROWS) | set(WITHOUT)
    assert not set(ROWS) & set(WITHOUT)


def traced(function, x):
    """The value of a function of a traced array, or the exception."""
    try:
        return np.asarray(func.jvp(function, (x,), (np.zeros_like(x),))[0])
    except Exception as error:
        return error


def same(function, x):
    """Whether traced and plain calls agree, in dtype, shape, value and kind of exception."""
    try:
        expected = function(x)
    except Exception as error:
        assert type(traced(function, x)) is type(error)
        return
    got = traced(function, x)
    assert not isinstance(got, Exception), got
    assert got.dtype == expected.dtype and got.shape == expected.shape
    tolerance = 1e-5 if expected.dtype.char in "fF" else 1e-11
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("type", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("norm", [None, "ortho", "forward", "other"])
@pytest.mark.parametrize("orthogonalize", [None, True, False])
def test_cosine_and_sine_options(name, type, norm, orthogonalize):
    transform = getattr(scipy.fft, name)
    for x in (REAL, REAL.astype(np.float32), REAL + 1j * REAL**2):
        for n in (None, 3, 9, 1, 0):
            same(lambda x, n=n: transform(x, type, n, 0, norm, orthogonalize=orthogonalize), x)


SHAPES = [(None, None), ((3, 6), None), ((3,), None), ((2, 7), (0, 2)), (None, (1,)), (None, 1), (4, None)]


@pytest.mark.parametrize("name", ["dctn", "idctn", "dstn", "idstn", "hfftn", "ihfftn", "hfft2", "fftn", "irfftn"])
@pytest.mark.parametrize(("s", "axes"), [*SHAPES, (None, (0, 0)), (None, 4), ((3, -1), (0, 1)), (None, ())])
def test_several_axes(name, s, axes):
    transform = getattr(scipy.fft, name)
    for norm in (None, "ortho"):
        same(lambda x, norm=norm: transform(x, s=s, axes=axes, norm=norm), RNG.normal(size=(3, 4, 5)))


def test_singular_hankel_transform_warns():
    with pytest.warns(UserWarning, match="singular transform"):
        func.grad(lambda a: np.sum(scipy.fft.fht(a, 0.1, -2.5, bias=1.5)))(np.ones(5))
    with pytest.warns(UserWarning, match="singular inverse transform"):
        func.grad(lambda a: np.sum(scipy.fft.ifht(a, 0.1, 0.5, bias=1.5)))(np.ones(5))
