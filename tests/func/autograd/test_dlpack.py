"""Tensors share their memory with other libraries by DLPack."""

import numpy as np
import pytest

import func
from func.errors import FrozenValueWarning, TracerConversionError


def test_memory_is_shared():
    x = func.tensor([1.0, 2.0])
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x.detach().numpy())
    assert x.__dlpack_device__() == (1, 0)
    with pytest.warns(FrozenValueWarning):
        x += 1
    np.testing.assert_array_equal(array, [1.0, 2.0])
    np.testing.assert_array_equal(np.from_dlpack(x), [2.0, 3.0])


def test_history_is_not_lost():
    x = func.tensor([1.0], requires_grad=True)
    with pytest.raises(TracerConversionError, match=r"pass x\.detach\(\) to the other library"):
        np.from_dlpack(x)
    np.testing.assert_array_equal(np.from_dlpack(x.detach()), [1.0])


@pytest.mark.parametrize("transform", [func.grad, func.jit, func.vmap, func.jacfwd])
def test_traced_values_have_no_memory(transform):
    with pytest.raises(TracerConversionError):
        transform(lambda x: np.sum(np.from_dlpack(x)))(
            np.ones((2, 2))[0] if transform is func.grad else np.ones((2, 2))
        )


def test_torch_takes_tensors():
    torch = pytest.importorskip("torch", reason="of the extra bench")
    x = func.tensor([1.0, 2.0])
    shared = torch.from_dlpack(x)
    shared[0] = 5.0
    assert x[0] == 5.0
    assert func.tensor(shared).tolist() == [5.0, 2.0]
