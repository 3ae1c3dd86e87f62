"""Complex arrays and pairs of real numbers that view each other."""

import numpy as np
import pytest

import func
from func.errors import UnsupportedFunctionError

X = np.sqrt(np.arange(1.0, 7.0)).reshape(1, 6)
EYE = np.eye(6).reshape(6, 1, 6)


def read(x):
    return (np.abs(x.view(complex) ** 2) * np.arange(1, 4)).sum()


def write_through_numbers(x):
    z = x[:, :3] + 1j * x[:, 3:]
    r = z.view(float)
    r[0, 1] = r[0, 0] * 2
    return (np.abs(z) ** 2 * np.arange(1, 4)).sum()


def write_through_pairs(x):
    y = x * 1.0
    z = y.view(np.complex128)
    z *= 1j * z[0, 0]
    y[0, 0] = 7.0
    return (y**2 * np.arange(6)).sum() + z[0, 0].real * x[0, 0]


def transposed(x):
    return (np.abs((x * 1.0).view("c16").T) ** 3).sum()


MODES = {
    "grad": func.grad,
    "jacfwd": func.jacfwd,
    "jit": lambda f: func.jit(func.grad(f)),
    "vmap": lambda f: lambda x: func.vmap(func.grad(f))(np.stack([x, x]))[1],
}


@pytest.mark.parametrize("f", [read, write_through_numbers, write_through_pairs, transposed])
@pytest.mark.parametrize("mode", MODES)
def test_views_of_pairs(mode, f):
    h = 1e-6
    expected = np.reshape([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in EYE], X.shape)
    np.testing.assert_allclose(MODES[mode](f)(X), expected, atol=1e-5)
    np.testing.assert_allclose(func.jit(f)(X), f(X))


def test_single_precision_keeps_it():
    x = X.astype(np.float32)
    slope = func.grad(lambda x: (x.view(np.complex64) ** 2).real.sum())(x)
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, 2 * x * np.array([1, -1] * 3), rtol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T.view(complex),
        lambda x: x[:, :3].view(complex),
        lambda x: x[:, ::2].view(complex),
        lambda x: np.sum(x, keepdims=False).view(complex),
        lambda x: (x[0, 0] * 1j).view(float),
    ],
)
def test_views_that_numpy_refuses(view):
    with pytest.raises(ValueError) as expected:
        view(X)
    with pytest.raises(ValueError) as got:
        func.grad(lambda x: np.abs(view(x)).sum())(X)
    assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.complex64])
def test_bits_are_not_read_as_other_numbers(dtype):
    with pytest.raises(UnsupportedFunctionError, match=r"read its bits as other numbers[\s\S]*x\.astype"):
        func.grad(lambda x: np.abs(x.view(dtype)).sum())(X)
