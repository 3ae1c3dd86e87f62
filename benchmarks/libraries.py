"""One class per contestant: how a job that is written once runs on each library.

A job is `make_job(library) -> function of the data`. It finds the array namespace in `library.np`, the transforms as
methods, and by method also what NumPy has no name for and a library has a tuned one for (layer norm, convolution).
"""

from collections.abc import Callable
from math import pi
from typing import Any

from benchmarks.contestants import (
    FUNC,
    FUNC_JIT,
    HIPS,
    JAX,
    JAX_JIT,
    TORCH,
    TORCH_COMPILE,
    TORCH_FUNC,
)
from benchmarks.trees import convert, leaves, rebuild
from benchmarks.workload import Call, NotOffered

Function = Callable[..., Any]


class Library:
    """What a job may use; the derivatives are by the first argument unless said otherwise."""

    np: Any

    def __init__(self, module: Any) -> None:
        self.module = module

    def array(self, value: Any) -> Any:
        """NumPy's array as the library's own."""
        return value

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        """The job with its data bound; what the library compiles is compiled in the first call."""
        return lambda: job(*data)

    def grad(self, f: Function) -> Function:
        """The gradient, in the tree of the argument."""
        return self.value_and_grad(f, only_gradient=True)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Function:
        """(value, gradient)."""
        raise NotImplementedError

    def vjp(self, f: Function) -> Function:
        """(arguments, ct) -> (value, the cotangents of all arguments)."""
        raise NotImplementedError

    def hessian(self, f: Function) -> Function:
        """The Hessian of a function of one vector."""
        raise NotImplementedError

    def jacrev(self, f: Function) -> Function:
        """The Jacobian of a function of one vector, in reverse mode."""
        raise NotImplementedError

    def jacfwd(self, f: Function) -> Function:
        """The Jacobian of a function of one vector, in forward mode."""
        raise NotImplementedError

    def hvp(self, f: Function) -> Function:
        """(x, v) -> the Hessian of a function of one tree times v."""
        raise NotImplementedError

    def nested(self, f: Function, order: int) -> Function:
        """The derivative of so high an order of an elementwise function."""
        for _ in range(order):
            f = self.grad(lambda x, f=f: self.np.sum(f(x)))
        return f

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Function:
        """The function mapped over leading axes."""
        raise NotOffered("the library has no vmap")

    def per_sample(self, f: Function, mapped: int) -> Function:
        """f(parameters, *rows) for all rows of so many arrays."""
        return self.vmap(f, (None, *[0] * mapped))

    def update(self, parameters: dict[str, Any], gradients: dict[str, Any], rate: float) -> dict[str, Any]:
        """A step of gradient descent."""
        return {name: value - rate * gradients[name] for name, value in parameters.items()}

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        """(carry, ys) after carry, y = f(carry, row) for every row: a Python loop where there is nothing else."""
        ys = []
        for row in rows:
            carry, y = f(carry, row)
            ys.append(y)
        return carry, self.np.stack(ys)

    def erf(self, x: Any) -> Any:
        """The error function."""
        raise NotImplementedError

    def gelu(self, x: Any) -> Any:
        """x Φ(x) by the formula with tanh. Source: Hendrycks and Gimpel (2016), arXiv:1606.08415, section 2."""
        return 0.5 * x * (1.0 + self.np.tanh((2.0 / pi) ** 0.5 * (x + 0.044715 * x * x * x)))

    def softmax(self, x: Any) -> Any:
        """Softmax of the last axis."""
        exponentials = self.np.exp(x - self.np.amax(x, axis=-1, keepdims=True))
        return exponentials / self.np.sum(exponentials, axis=-1, keepdims=True)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Layer norm of the last axis."""
        centred = x - self.np.mean(x, axis=-1, keepdims=True)
        variance = self.np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.np.sqrt(variance + 1e-5) * scale + shift

    def attention(self, queries: Any, keys: Any, values: Any) -> Any:
        """Scaled dot products (…, positions, features)."""
        scores = queries @ self.np.swapaxes(keys, -1, -2) * queries.shape[-1] ** -0.5
        return self.softmax(scores) @ values

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        """Images (n, channels, height, width) with a kernel (out, channels, height, width), without padding."""
        raise NotImplementedError


class Func(Library):
    """func, eagerly."""

    def __init__(self, module: Any) -> None:
        import numpy

        super().__init__(module)
        self.np = numpy

    def grad(self, f: Function) -> Function:
        return self.module.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Function:
        return self.module.value_and_grad(f)

    def vjp(self, f: Function) -> Function:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            value, pullback = self.module.vjp(f, *arguments)[:2]
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Function:
        return self.module.hessian(f)

    def jacrev(self, f: Function) -> Function:
        return self.module.jacrev(f)

    def jacfwd(self, f: Function) -> Function:
        return self.module.jacfwd(f)

    def hvp(self, f: Function) -> Function:
        return lambda x, v: self.module.hvp(f, (x,), (v,))

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Function:
        return self.module.vmap(f, in_axes)

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        return self.module.scan(f, carry, rows)

    def erf(self, x: Any) -> Any:
        return self.module.special.erf(x)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.numpy.conv_general(images, kernel, stride=stride)


class FuncJit(Func):
    """func, compiled."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        jitted = self.module.jit(job)
        return lambda: jitted(*data)


class Jax(Func):
    """JAX, eagerly: the transforms have the names that func has, scan aside."""

    def __init__(self, module: Any) -> None:
        Library.__init__(self, module)
        self.np = module.numpy

    def array(self, value: Any) -> Any:
        return self.np.asarray(value)

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        wait = self.module.block_until_ready
        wait(data)
        return lambda: wait(job(*data))

    def hvp(self, f: Function) -> Function:
        return lambda x, v: self.module.jvp(self.module.grad(f), (x,), (v,))[1]

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        return self.module.lax.scan(f, carry, rows)

    def erf(self, x: Any) -> Any:
        return self.module.lax.erf(x)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.lax.conv_general_dilated(images, kernel, (stride, stride), "VALID")


class JaxJit(Jax):
    """JAX, compiled, with its arrays on the device."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        return super().call(self.module.jit(job), data)


class Hips(Library):
    """HIPS autograd."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.np = module.numpy

    def grad(self, f: Function) -> Function:
        return self.module.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Function:
        return self.module.value_and_grad(f)

    def vjp(self, f: Function) -> Function:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            pullback, value = self.module.make_vjp(lambda arguments: f(*arguments))(arguments)
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Function:
        return self.module.hessian(f)

    def jacrev(self, f: Function) -> Function:
        return self.module.jacobian(f)

    def jacfwd(self, f: Function) -> Function:
        raise NotOffered("the library has no Jacobian in forward mode")

    def hvp(self, f: Function) -> Function:
        def directional(x: Any, v: Any) -> Any:
            gradient = self.grad(f)(x)
            return sum(self.np.sum(gradient[name] * v[name]) for name in v)

        return self.grad(directional)

    def softmax(self, x: Any) -> Any:
        """The row's maximum is taken as a constant, as the library's gradient of it is float64 whatever x is."""
        from importlib import import_module

        getval = import_module("autograd.tracer").getval
        exponentials = self.np.exp(x - self.np.amax(getval(x), axis=-1, keepdims=True))
        return exponentials / self.np.sum(exponentials, axis=-1, keepdims=True)

    def per_sample(self, f: Function, mapped: int) -> Function:
        """A loop over the rows."""

        def rows(parameters: Any, *arrays: Any) -> Any:
            results = [f(parameters, *row) for row in zip(*arrays, strict=True)]
            stacked = map(self.np.stack, zip(*map(leaves, results), strict=True))
            return rebuild(results[0], stacked)

        return rows

    def erf(self, x: Any) -> Any:
        from importlib import import_module

        return import_module("autograd.scipy.special").erf(x)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        """The library's own convolution knows no strides, so the rows and columns between are dropped."""
        from importlib import import_module

        convolve = import_module("autograd.scipy.signal").convolve
        out = convolve(images, kernel[:, :, ::-1, ::-1], axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid")
        return out[:, :, ::stride, ::stride]


class TorchFunc(Library):
    """torch.func."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.np = module

    def array(self, value: Any) -> Any:
        return self.module.from_numpy(value.copy())

    def grad(self, f: Function) -> Function:
        return self.module.func.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Function:
        both = self.module.func.grad_and_value(f)

        def value_first(*arguments: Any) -> Any:
            gradient, value = both(*arguments)
            return value, gradient

        return value_first

    def vjp(self, f: Function) -> Function:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            value, pullback = self.module.func.vjp(f, *arguments)
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Function:
        return self.module.func.hessian(f)

    def jacrev(self, f: Function) -> Function:
        return self.module.func.jacrev(f)

    def jacfwd(self, f: Function) -> Function:
        return self.module.func.jacfwd(f)

    def hvp(self, f: Function) -> Function:
        return lambda x, v: self.module.func.jvp(self.module.func.grad(f), (x,), (v,))[1]

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Function:
        return self.module.func.vmap(f, in_axes)

    def erf(self, x: Any) -> Any:
        return self.module.erf(x)

    def gelu(self, x: Any) -> Any:
        """The library's fused one."""
        return self.module.nn.functional.gelu(x, approximate="tanh")

    def softmax(self, x: Any) -> Any:
        """The library's fused one."""
        return self.module.softmax(x, -1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """The library's fused one."""
        return self.module.nn.functional.layer_norm(x, x.shape[-1:], scale, shift)

    def attention(self, queries: Any, keys: Any, values: Any) -> Any:
        """The library's fused one."""
        return self.module.nn.functional.scaled_dot_product_attention(queries, keys, values)

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.nn.functional.conv2d(images, kernel, stride=stride)


class TorchCompile(TorchFunc):
    """torch.compile over torch.func, in one graph."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        self.module._dynamo.reset()
        compiled = self.module.compile(job, fullgraph=True, dynamic=False)
        return lambda: compiled(*data)


class Torch(TorchFunc):
    """torch.autograd: arrays that record, and backward. Its inputs are marked once, in the first call."""

    def value_and_grad(self, f: Function, only_gradient: bool = False, create_graph: bool = False) -> Function:
        def backward(x: Any, *others: Any) -> Any:
            inputs = self._marked(x)
            value = f(x, *others)
            gradients = self.module.autograd.grad(value, inputs, create_graph=create_graph)
            gradient = rebuild(x, iter(gradients))
            return gradient if only_gradient else (value.detach(), gradient)

        return backward

    def grad(self, f: Function) -> Function:
        return self.value_and_grad(f, only_gradient=True)

    def vjp(self, f: Function) -> Function:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            value = f(*arguments) if self._marked(arguments) else None
            return value.detach(), self.module.autograd.grad(value, arguments, ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Function:
        """The functional one, with all rows in one batched backward."""
        return lambda x: self.module.autograd.functional.hessian(f, x, vectorize=True)

    def jacrev(self, f: Function) -> Function:
        """The functional one, with all rows in one batched backward."""
        return lambda x: self.module.autograd.functional.jacobian(f, x, vectorize=True)

    def jacfwd(self, f: Function) -> Function:
        """The functional one, with all columns in one batched pass."""
        jacobian = self.module.autograd.functional.jacobian
        return lambda x: jacobian(f, x, vectorize=True, strategy="forward-mode")

    def hvp(self, f: Function) -> Function:
        """Two backward passes."""
        gradient = self.value_and_grad(f, only_gradient=True, create_graph=True)

        def product(x: Any, v: Any) -> Any:
            first = leaves(gradient(x))
            return rebuild(x, iter(self.module.autograd.grad(first, leaves(x), leaves(v))))

        return product

    def nested(self, f: Function, order: int) -> Function:
        for number in range(order):
            f = self.value_and_grad(
                lambda x, f=f: self.np.sum(f(x)), only_gradient=True, create_graph=number < order - 1
            )
        return f

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Function:
        raise NotOffered("backward under vmap is torch.func's")

    per_sample = Hips.per_sample

    def update(self, parameters: dict[str, Any], gradients: dict[str, Any], rate: float) -> dict[str, Any]:
        with self.module.no_grad():
            return super().update(parameters, gradients, rate)

    def _marked(self, tree: Any) -> list[Any]:
        """The leaves, as inputs of a graph."""
        inputs = leaves(tree)
        for leaf in inputs:
            if not leaf.requires_grad:
                leaf.requires_grad_(True)
        return inputs


LIBRARIES: dict[str, Callable[[Any], Library]] = {
    FUNC: Func,
    FUNC_JIT: FuncJit,
    HIPS: Hips,
    TORCH_FUNC: TorchFunc,
    TORCH: Torch,
    TORCH_COMPILE: TorchCompile,
    JAX: Jax,
    JAX_JIT: JaxJit,
}


def to_library(library: Library, data: Any) -> Any:
    """The data with every array as the library's own."""
    return convert(library.array, data)
