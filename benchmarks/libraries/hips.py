"""HIPS autograd."""

from importlib import import_module
from typing import Any

from benchmarks.libraries.base import Function, Library
from benchmarks.libraries.loops import looped_per_sample
from benchmarks.workload import NotOffered


class Hips(Library):
    """HIPS autograd."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.np = module.numpy

    def grad(self, f: Function) -> Any:
        return self.module.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Any:
        return self.module.value_and_grad(f)

    def vjp(self, f: Function) -> Any:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            pullback, value = self.module.make_vjp(lambda arguments: f(*arguments))(arguments)
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Any:
        return self.module.hessian(f)

    def jacrev(self, f: Function) -> Any:
        return self.module.jacobian(f)

    def jacfwd(self, f: Function) -> Any:
        raise NotOffered("the library has no Jacobian in forward mode")

    def hvp(self, f: Function) -> Any:
        def directional(x: Any, v: Any) -> Any:
            gradient = self.grad(f)(x)
            return sum(self.np.sum(gradient[name] * v[name]) for name in v)

        return self.grad(directional)

    def softmax(self, x: Any) -> Any:
        """The row's maximum is a constant here, since the library's gradient of it is float64 for every dtype of x."""
        getval = import_module("autograd.tracer").getval
        exponentials = self.np.exp(x - self.np.amax(getval(x), axis=-1, keepdims=True))
        return exponentials / self.np.sum(exponentials, axis=-1, keepdims=True)

    per_sample = looped_per_sample

    def rows_jacobian(self, f: Function, inputs: int, outputs: int) -> Any:
        """One forward pass over all rows, and a pullback for each output."""

        def jacobian(*rows: Any) -> Any:
            pullback, value = self.module.make_vjp(lambda wanted: f(*wanted, *rows[inputs:]))(rows[:inputs])
            basis = self.np.eye(outputs)
            results = [pullback(self.np.ones_like(value) * basis[number]) for number in range(outputs)]
            return tuple(self.np.stack(parts, axis=1) for parts in zip(*results, strict=True))

        return jacobian

    def erf(self, x: Any) -> Any:
        return import_module("autograd.scipy.special").erf(x)

    def solve_triangular(self, factor: Any, right: Any) -> Any:
        return import_module("autograd.scipy.linalg").solve_triangular(factor, right, lower=True)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        """The library's own convolution has no strides, so this method drops the rows and columns between."""
        convolve = import_module("autograd.scipy.signal").convolve
        out = convolve(images, kernel[:, :, ::-1, ::-1], axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid")
        return out[:, :, ::stride, ::stride]
