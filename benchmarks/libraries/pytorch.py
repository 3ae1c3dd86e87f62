"""torch: torch.func, torch.compile over it, and backward."""

from typing import Any

from benchmarks.libraries.base import Function, Library
from benchmarks.libraries.loops import looped_per_sample
from benchmarks.trees import leaves, rebuild
from benchmarks.workload import Call, NotOffered


class TorchFunc(Library):
    """torch.func."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.np = module

    def array(self, value: Any) -> Any:
        return self.module.from_numpy(value.copy())

    def grad(self, f: Function) -> Any:
        return self.module.func.grad(f)

    def value_and_grad(self, f: Function, only_gradient: bool = False) -> Any:
        both = self.module.func.grad_and_value(f)

        def value_first(*arguments: Any) -> Any:
            gradient, value = both(*arguments)
            return value, gradient

        return value_first

    def vjp(self, f: Function) -> Any:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            value, pullback = self.module.func.vjp(f, *arguments)
            return value, pullback(ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Any:
        return self.module.func.hessian(f)

    def jacrev(self, f: Function) -> Any:
        return self.module.func.jacrev(f)

    def jacfwd(self, f: Function) -> Any:
        return self.module.func.jacfwd(f)

    def hvp(self, f: Function) -> Any:
        return lambda x, v: self.module.func.jvp(self.module.func.grad(f), (x,), (v,))[1]

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Any:
        return self.module.func.vmap(f, in_axes)

    def rows_jacobian(self, f: Function, inputs: int, outputs: int) -> Any:
        jacobian = self.module.func.jacrev(f, tuple(range(inputs)))
        return lambda *rows: self.vmap(jacobian, (0,) * len(rows))(*rows)

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

    def solve_triangular(self, factor: Any, right: Any) -> Any:
        return self.module.linalg.solve_triangular(factor, right[:, None], upper=False)[:, 0]

    def convolve(self, images: Any, kernel: Any, stride: int) -> Any:
        return self.module.nn.functional.conv2d(images, kernel, stride=stride)


class TorchCompile(TorchFunc):
    """torch.compile over torch.func, in one graph."""

    def call(self, job: Function, data: tuple[Any, ...]) -> Call:
        self.module._dynamo.reset()
        compiled = self.module.compile(job, fullgraph=True, dynamic=False)
        return lambda: compiled(*data)


class Torch(TorchFunc):
    """torch.autograd: arrays that record, and backward. The first call marks its inputs."""

    def value_and_grad(self, f: Function, only_gradient: bool = False, create_graph: bool = False) -> Any:
        def backward(x: Any, *others: Any) -> Any:
            inputs = self._marked(x)
            value = f(x, *others)
            gradients = self.module.autograd.grad(value, inputs, create_graph=create_graph)
            gradient = rebuild(x, iter(gradients))
            return gradient if only_gradient else (value.detach(), gradient)

        return backward

    def grad(self, f: Function) -> Any:
        return self.value_and_grad(f, only_gradient=True)

    def vjp(self, f: Function) -> Any:
        def value_and_cotangents(arguments: Any, ct: Any) -> Any:
            self._marked(arguments)
            value = f(*arguments)
            return value.detach(), self.module.autograd.grad(value, arguments, ct)

        return value_and_cotangents

    def hessian(self, f: Function) -> Any:
        """The functional one, with all rows in one batched backward."""
        return lambda x: self.module.autograd.functional.hessian(f, x, vectorize=True)

    def jacrev(self, f: Function) -> Any:
        """The functional one, with all rows in one batched backward."""
        return lambda x: self.module.autograd.functional.jacobian(f, x, vectorize=True)

    def jacfwd(self, f: Function) -> Any:
        """The functional one, with all columns in one batched pass."""
        jacobian = self.module.autograd.functional.jacobian
        return lambda x: jacobian(f, x, vectorize=True, strategy="forward-mode")

    def hvp(self, f: Function) -> Any:
        """Two backward passes."""
        gradient = self.value_and_grad(f, only_gradient=True, create_graph=True)

        def product(x: Any, v: Any) -> Any:
            first = leaves(gradient(x))
            return rebuild(x, iter(self.module.autograd.grad(first, leaves(x), leaves(v))))

        return product

    def nested(self, f: Function, order: int) -> Any:
        for number in range(order):
            f = self.value_and_grad(
                lambda x, f=f: self.np.sum(f(x)), only_gradient=True, create_graph=number < order - 1
            )
        return f

    def vmap(self, f: Function, in_axes: tuple[int | None, ...]) -> Any:
        raise NotOffered("backward under vmap is torch.func's")

    per_sample = looped_per_sample

    def rows_jacobian(self, f: Function, inputs: int, outputs: int) -> Any:
        """One forward pass over all rows, and a backward for each output."""
        grad = self.module.autograd.grad

        def jacobian(*rows: Any) -> Any:
            wanted = rows[:inputs]
            self._marked(wanted)
            sums = f(*rows).sum(0)
            results = [grad(sums[number], wanted, retain_graph=number < outputs - 1) for number in range(outputs)]
            return tuple(self.np.stack(parts, axis=1) for parts in zip(*results, strict=True))

        return jacobian

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
