

@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="np.array takes ndmax= since NumPy 2.4")
@pytest.mark.parametrize("ndmax", [0, 1, 2, 3])
def test_most_axes_of_an_array(ndmax: int) -> None:
    x = np.ones(3)
    np.testing.assert_array_equal(func.jit(lambda x: np.array(x, ndmax=ndmax))(x), x)
    if ndmax > 1:
        np.testing.assert_array_equal(func.jit(lambda x: np.array([x, x], ndmax=ndmax))(x), [x, x])
    else:
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            func.jit(lambda x: np.array([x, x], ndmax=ndmax))(x)
