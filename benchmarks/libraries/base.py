"""The functions that a job may use, with any library."""

from collections.abc import Callable
from math import pi
from typing import Any

from benchmarks.workload import Call, NotOffered

Function = Callable[..., Any]


class Library:
    """The functions that a job may use; the derivatives are by the first argument by default."""

    np: Any

    def __init__(self, module: Any) -> None:
        self.module = module

    def array(self, value: Any) -> Any:
        """NumPy's array as the library's own."""
        return value

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        """The job with its data bound; the library compiles in the first call."""
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

    def laplacian(self, f: Function) -> Function:
        """The Laplacian of a scalar function of one vector: without a better way, the trace of its Hessian."""
        return lambda x: self.np.trace(self.hessian(f)(x))

    def nested(self, f: Function, order: int) -> Function:
        """The derivative of this order of an elementwise function."""
        for _ in range(order):
            f = self.grad(lambda x, f=f: self.np.sum(f(x)))
        return f

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Function:
        """The function mapped over leading axes."""
        raise NotOffered("the library has no vmap")

    def per_sample(self, f: Function, mapped: int) -> Function:
        """f(parameters, *rows) for all rows of this number of arrays."""
        return self.vmap(f, (None, *[0] * mapped))

    def clipped_sum(self, loss: Function, max_norm: float, mapped: int) -> Function:
        """The sum over rows of the gradients of loss(parameters, *rows), each scaled down to at most a norm."""
        gradient = self.grad(loss)

        def clipped(parameters: Any, *rows: Any) -> Any:
            np = self.np
            gradients = self.per_sample(gradient, mapped)(parameters, *rows)
            flat = {name: array.reshape(array.shape[0], -1) for name, array in gradients.items()}
            norms = np.sqrt(sum([np.sum(array**2, 1) for array in flat.values()]))
            scales = np.where(norms > max_norm, max_norm / norms, 1 + 0 * norms)
            return {name: (scales @ array).reshape(parameters[name].shape) for name, array in flat.items()}

        return clipped

    def rows_jacobian(self, f: Function, inputs: int, outputs: int) -> Function:
        """The Jacobians, row by row, of a function of rows by its first `inputs` inputs; its outputs are a vector."""
        arguments = tuple(range(inputs))
        return lambda *rows: self.vmap(self.module.jacrev(f, arguments), (0,) * len(rows))(*rows)

    def update(self, parameters: dict[str, Any], gradients: dict[str, Any], rate: float) -> dict[str, Any]:
        """A step of gradient descent."""
        return {name: value - rate * gradients[name] for name, value in parameters.items()}

    def scan(self, f: Function, carry: Any, rows: Any) -> Any:
        """(carry, ys) after carry, y = f(carry, row) for every row: a Python loop if the library has no other."""
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

    def solve_triangular(self, factor: Any, right: Any) -> Any:
        """The solution of a system with a lower triangular matrix and one right side."""
        raise NotImplementedError

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        """Images (n, channels, height, width) with a kernel (out, channels, height, width), without padding."""
        raise NotImplementedError
