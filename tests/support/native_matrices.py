"""Running emitted code on NumPy arrays."""

import ctypes

import numpy as np

from func.backends import ir
from func.backends.llvm import machine
from func.backends.llvm.linalg.matrix_copies import Matrix

POINTER = ir.PointerType()
STATUS = ir.IntType(32)
DTYPES = ("float32", "float64", "complex64", "complex128")


class Calls:
    """Code emitted piece by piece by emit(builder, *matrices), then run at once on the arrays' memory."""

    def __init__(self):
        self.module = ir.Module("test")
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER])
        self.function = ir.Function(self.module, kind, "run")
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.arrays = []
        self.count = 0

    def add(self, emit, *arrays):
        table, statuses = self.function.args
        matrices = []
        for place, array in enumerate(arrays, len(self.arrays)):
            address = self.builder.load(self._item(table, place, POINTER), typ=POINTER)
            matrices.append(Matrix(address, array.strides[0] // array.itemsize, array.dtype))
        self.arrays.extend(arrays)
        status = emit(self.builder, *matrices)
        if status is not None:
            self.builder.store(status, self._item(statuses, self.count, STATUS))
        self.count += 1

    def _item(self, start, place, kind):
        return self.builder.gep(start, [ir.Constant(STATUS, place)], source_etype=kind)

    def run(self):
        """The status of each piece, 0 for a piece without."""
        self.builder.ret_void()
        code = machine.compile_ir(self.module)
        statuses = np.zeros(self.count, np.int32)
        table = np.array([array.ctypes.data for array in self.arrays], np.uintp)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        kind(code.address("run"))(table.ctypes.data, statuses.ctypes.data)
        return statuses.tolist()


def run(emit, *arrays):
    """The status of one piece of code."""
    calls = Calls()
    calls.add(emit, *arrays)
    return calls.run()[0]


def random(rng, dtype, *shape):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def triangular(rng, dtype, n, lower, unit):
    """A triangular matrix of moderate condition, NaN where a solver must not look: the rest, and a diagonal of ones."""
    a = random(rng, dtype, n, n) / (4 * max(1, n) ** 0.5) + 2 * np.eye(n, dtype=dtype)
    rest = np.triu(np.ones((n, n), bool), not unit) if lower else np.tril(np.ones((n, n), bool), -(not unit))
    a[rest] = np.nan
    return a


def padded(array, extra):
    """The array as a view of one with `extra` more columns."""
    whole = np.full((array.shape[0], array.shape[1] + extra), 99, array.dtype)
    whole[:, : array.shape[1]] = array
    return whole[:, : array.shape[1]]


def tolerance(dtype):
    return 2e-3 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-10


def assert_close(actual, expected):
    scale = max(1.0, float(np.abs(expected).max())) if np.size(expected) else 1.0
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(actual.dtype) * scale)
