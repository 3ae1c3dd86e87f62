"""func and JAX, eager and compiled: their transforms have the same names."""

from importlib import import_module
from typing import Any

from benchmarks.libraries.base import Function, Library
from benchmarks.workload import Call


class Func(Library):
    """func, eagerly."""

    def __init__(self, module: Any) -> None:
        import numpy

        super().__init__(module)
        self.np = numpy

    def grad(self, f: Function) -> Any:
        return self.module.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Any:
        return self.module.value_and_grad(f)

    def vjp(self, f: Function) -> Any:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            value, pullback = self.module.vjp(f, *arguments)[:2]
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Any:
        return self.module.hessian(f)

    def laplacian(self, f: Function) -> Any:
        return self.module.laplacian(f)

    def jacrev(self, f: Function) -> Any:
        return self.module.jacrev(f)

    def jacfwd(self, f: Function) -> Any:
        return self.module.jacfwd(f)

    def hvp(self, f: Function) -> Any:
        return lambda x, v: self.module.hvp(f, (x,), (v,))

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Any:
        return self.module.vmap(f, in_axes)

    def clipped_sum(self, loss: Function, max_norm: float, mapped: int) -> Any:
        return self.module.per_sample(loss).clipped_sum(max_norm)

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        return self.module.scan(f, carry, rows)

    def erf(self, x: Any) -> Any:
        return self.module.special.erf(x)

    def solve_triangular(self, factor: Any, right: Any) -> Any:
        return self.module.linalg.solve_triangular(factor, right, lower=True)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.numpy.conv_general(images, kernel, stride=stride)


class FuncJit(Func):
    """func, compiled."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        jitted = self.module.jit(job)
        return lambda: jitted(*data)


class Jax(Func):
    """JAX, eagerly: its transforms have the names of func's, except scan."""

    def __init__(self, module: Any) -> None:
        Library.__init__(self, module)
        self.np = module.numpy

    def array(self, value: Any) -> Any:
        return self.np.asarray(value)

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        wait = self.module.block_until_ready
        wait(data)
        return lambda: wait(job(*data))

    def hvp(self, f: Function) -> Any:
        return lambda x, v: self.module.jvp(self.module.grad(f), (x,), (v,))[1]

    def laplacian(self, f: Function) -> Any:
        return Library.laplacian(self, f)

    def clipped_sum(self, loss: Function, max_norm: float, mapped: int) -> Any:
        return Library.clipped_sum(self, loss, max_norm, mapped)

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        return self.module.lax.scan(f, carry, rows)

    def erf(self, x: Any) -> Any:
        return self.module.lax.erf(x)

    def solve_triangular(self, factor: Any, right: Any) -> Any:
        return import_module("jax.scipy.linalg").solve_triangular(factor, right, lower=True)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.lax.conv_general_dilated(images, kernel, (stride, stride), "VALID")


class JaxJit(Jax):
    """JAX, compiled, with its arrays on the device."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        return super().call(self.module.jit(job), data)
