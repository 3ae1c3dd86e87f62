"""Jacobians, Hessians and their relatives at a point as SciPy's linear operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from func import special, tree
from func.curvature.linearized_products import (
    CHUNK_BYTES,
    LinearMap,
    MapFactor,
    Product,
    Vectors,
    compiled,
    linear_map,
    padded_width,
    vectors_like,
)
from func.errors import ArgumentError
from func.interpreters.core import Array, Tracer, dtype_of, is_inexact, shape_of
from func.interpreters.host.public_functions import without_engine_frames
from func.interpreters.host.source import hide_engine_frames
from func.transforms.arguments import CallArguments, Selection, differentiable
from func.transforms.boundary import check_callable, name_of, output_leaves, own, scalar_output
from func.transforms.reverse import grad
from func.transforms.vmapping import vmap

KINDS = ("jacobian", "hessian", "ggn", "fisher", "empirical_fisher", "ntk")


def logits(outputs: Array) -> Array:
    """Outputs of a categorical likelihood; raises for a single number."""
    if not shape_of(outputs):
        raise ArgumentError(
            'likelihood="categorical" takes logits along the last axis of the outputs, but the function returned a '
            'number; for the logit of yes and no write likelihood="bernoulli"'
        )
    return outputs


LOG_PARTITIONS: dict[str, Callable[[Array], Array]] = {
    "gaussian": lambda x: np.sum(x * x) / 2,
    "categorical": lambda x: np.sum(special.logsumexp(logits(x), axis=-1)),
    "bernoulli": lambda x: np.sum(np.logaddexp(0, x)),
    "poisson": lambda x: np.sum(np.exp(x)),
}
"""The log-partition functions of exponential families in their natural parameters, summed over samples."""


@without_engine_frames
def linear_operator(
    kind: str,
    f: Callable[..., Any],
    /,
    *primals: Any,
    argnums: int | tuple[int, ...] = 0,
    argnames: str | tuple[str, ...] | None = None,
    loss: Callable[..., Any] | None = None,
    targets: Any = None,
    likelihood: str | Callable[[Any], Any] | None = None,
    in_dims: Any = None,
    chunk_size: int | None = None,
    **kwargs: Any,
) -> CurvatureOperator:
    """A matrix of derivatives of `func(*primals, **kwargs)`, as a linear operator of SciPy that never builds it.

    The function runs once; products with vectors are compiled and compute only the linear part. With J the Jacobian of
    the outputs, rows and columns are the elements of the leaves of outputs and chosen arguments, in order:

    | kind | matrix | products with vectors of |
    |---|---|---|
    | "jacobian" | J | the arguments; the outputs for the transpose |
    | "hessian" | the Hessian of a scalar function | the arguments |
    | "ggn" | Jᵀ H J with H the Hessian of `loss(outputs)` or `loss(outputs, targets)` | the arguments |
    | "fisher" | Jᵀ H J with H the Fisher information of `likelihood` in the outputs | the arguments |
    | "empirical_fisher" | Σ g gᵀ over samples, with g the gradient of the loss `func` of one sample | the arguments |
    | "ntk" | J Jᵀ, the neural tangent kernel | the outputs |

    Args:
        kind: One of the above.
        f: The function; plain NumPy code with real floating point inputs and outputs.
        primals: Its positional arguments: the point. `f` takes other keywords.
        argnums: Position or positions to differentiate.
        argnames: Keyword arguments to differentiate.
        loss: For "ggn": a scalar function of the outputs.
        targets: The second argument of `loss`, if it has one.
        likelihood: For "fisher": "gaussian" (of variance 1), "categorical" (logits along the last axis), "bernoulli"
            (logits), or "poisson" (logarithms of rates). For another exponential family: its log-partition function,
            whose natural parameters are the outputs. It sums the information of all outputs.
        in_dims: For "empirical_fisher": the axis of the samples in each positional argument, None for arguments that
            all samples share. By default it is 0 for all but the differentiated ones.
        chunk_size: The number of columns of a matrix to multiply at once; by default as many as take about 256 MiB.

    Raises:
        ArgumentError: The kind is unknown, or an option is missing or belongs to another kind (a ValueError).
        ScalarOutputError: The function must be scalar, but is not (a TypeError).
        DifferentiatedInputError: A chosen argument is an integer (a TypeError).

    Source: N. Schraudolph (2002), "Fast curvature matrix-vector products for second-order gradient descent"; for the
    Fisher information F. Kunstner, L. Balles and P. Hennig (2019), arXiv:1905.12558.

    Example:
        >>> import numpy as np, func
        >>> hessian = func.linear_operator("hessian", lambda x: np.sum(x ** 3), np.array([1.0, 2.0]))
        >>> hessian @ np.array([1.0, 1.0])
        array([ 6., 12.])
        >>> from scipy.sparse.linalg import eigsh
        >>> eigsh(hessian, k=1, return_eigenvectors=False).round(6)
        array([12.])
    """
    options = {"loss": loss, "targets": targets, "likelihood": likelihood, "in_dims": in_dims}
    try:
        _check_options(kind, f, options, chunk_size)
        selection = Selection(f, f"linear_operator({kind!r})".replace("'", '"'), argnums, argnames)
        return _Point(f, selection, primals, kwargs, options).operator(kind, chunk_size)
    except Exception as error:
        hide_engine_frames(error)
        raise


_NEEDS = {"ggn": "loss", "fisher": "likelihood"}
_TAKES = {"ggn": {"loss", "targets"}, "fisher": {"likelihood"}, "empirical_fisher": {"in_dims"}}
_MISSING = {
    "ggn": "loss=..., a scalar function of the outputs",
    "fisher": 'likelihood="gaussian", "categorical", "bernoulli", "poisson" or a log-partition function; the sum of '
    'g gᵀ over the gradients of samples is "empirical_fisher"',
}


def _check_options(kind: Any, function: Any, options: dict[str, Any], chunk_size: Any) -> None:
    if kind not in KINDS:
        raise ArgumentError(f"func.linear_operator: kind must be one of {', '.join(KINDS)}, not {kind!r}")
    check_callable(function, "linear_operator")
    for name, value in options.items():
        if value is not None and name not in _TAKES.get(kind, ()):
            owner = next(other for other, names in _TAKES.items() if name in names)
            raise ArgumentError(f'func.linear_operator("{kind}") takes no {name}, which belongs to "{owner}"')
    if kind in _NEEDS and options[_NEEDS[kind]] is None:
        raise ArgumentError(f'func.linear_operator("{kind}") needs {_MISSING[kind]}')
    likelihood = options["likelihood"]
    if isinstance(likelihood, str) and likelihood not in LOG_PARTITIONS:
        raise ArgumentError(
            f"func.linear_operator: likelihood must be one of {', '.join(LOG_PARTITIONS)}, or a log-partition "
            f"function, not {likelihood!r}"
        )
    for name in ("loss", "likelihood"):
        if options[name] is not None and not isinstance(options[name], str):
            check_callable(options[name], f"linear_operator({name}=...)")
    is_int = isinstance(chunk_size, (int, np.integer)) and not isinstance(chunk_size, bool)
    if chunk_size is not None and not (is_int and chunk_size > 0):
        raise ArgumentError(f"func.linear_operator: chunk_size must be a positive int or None, not {chunk_size!r}")


class Space:
    """The vectors of some arrays, and the trees of these arrays.

    `arranged` makes the tree with parts at the places of the arrays, and None or `inactive(leaf)` at other places. The
    space does not store it, and so stays picklable.
    """

    def __init__(self, vectors: Vectors, arranged: Callable[..., Any]) -> None:
        self.vectors = vectors
        numbers = range(len(vectors.avals))
        self._places, self._spec = tree.flatten(arranged(numbers))
        """The number of the array at each leaf: dicts are flattened by key, which need not be the vectors' order."""
        self._all_places, self._spec_of_all = tree.flatten(arranged(numbers, lambda leaf: None if leaf is None else -1))

    def ravel(self, value: Any) -> Array:
        """The vector of a tree."""
        leaves, spec = tree.flatten(value)
        is_all = spec == self._spec_of_all
        places = self._all_places if is_all else self._places
        if not is_all and spec != self._spec:
            expected = _list([aval.shape for aval in self.vectors.avals])
            raise ArgumentError(
                f"a tree of arrays of shapes {_list([shape_of(leaf) for leaf in leaves])} and of the structure "
                f"{tree.shown(spec)} does not fit the vectors of this operator, which have {expected} and "
                f"{tree.shown(self._spec_of_all)}"
            )
        by_place = {place: leaf for place, leaf in zip(places, leaves, strict=True) if place >= 0}
        parts = [by_place[place] for place in range(len(by_place))]
        shapes = [shape_of(part) for part in parts]
        if shapes != [aval.shape for aval in self.vectors.avals]:
            raise ArgumentError(
                f"a tree of arrays of shapes {_list(shapes)} does not fit the vectors of this operator, which have "
                f"{_list([aval.shape for aval in self.vectors.avals])}"
            )
        return own([self.vectors.joined(parts)])[0]

    def unravel(self, vector: Any) -> Any:
        """The tree of a vector."""
        vector = vector if type(vector) is Tracer else np.asarray(vector)
        size = self.vectors.size
        if shape_of(vector) not in ((size,), (size, 1)):
            raise ArgumentError(f"the tree has {size} elements, but the vector has shape {shape_of(vector)}")
        flat = vector.reshape(size)
        parts = own([x[()] if shape_of(x) == () else x for x in self.vectors.split(flat)])
        return tree.unflatten(self._spec, [parts[place] for place in self._places])


def _list(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes)) or "none"


class _Point:
    """A function and the arguments at which it is linearised."""

    def __init__(
        self,
        function: Callable[..., Any],
        selection: Selection,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        self.function = function
        self.selection = selection
        self.transform = selection.transform
        self.options = options
        places = selection.places(args, kwargs)
        self.arguments: CallArguments = differentiable(args, kwargs, places, self.transform, "fc", function=function)
        self.values = self.arguments.values()
        if any([dtype_of(x).kind == "c" for x in self.values]):
            raise ArgumentError(
                f"func.{self.transform} needs real input, but an argument of {name_of(function)} is complex; "
                "differentiate with respect to its real and imaginary parts"
            )
        self.out_spec: Any = None
        self.inputs = Space(
            vectors_like(self.values), lambda *parts: selection.arranged(self.arguments.arranged(*parts))
        )

    def operator(self, kind: str, chunk_size: int | None) -> CurvatureOperator:
        """The operator of a kind."""
        if kind == "hessian":
            scalar = grad(self._scalar, argnums=tuple(range(len(self.values))))
            _, derivative = linear_map(scalar, self.values)
            return self._operator([derivative], [MapFactor(0)], self.inputs, self.inputs, True, chunk_size)
        outputs = self._losses if kind == "empirical_fisher" else self._outputs
        outs, derivative = linear_map(outputs, self.values)
        codomain = Space(vectors_like(outs), lambda parts, inactive=None: tree.unflatten(self.out_spec, parts))
        if kind == "jacobian":
            return self._operator([derivative], [MapFactor(0)], self.inputs, codomain, False, chunk_size)
        if kind == "empirical_fisher":
            steps = [MapFactor(0), MapFactor(0, is_transposed=True)]
            return self._operator([derivative], steps, self.inputs, self.inputs, True, chunk_size)
        if kind == "ntk":
            steps = [MapFactor(0, is_transposed=True), MapFactor(0)]
            return self._operator([derivative], steps, codomain, codomain, True, chunk_size)
        slope = grad(self._loss if kind == "ggn" else self._log_partition, argnums=tuple(range(len(outs))))
        _, second = linear_map(slope, outs)
        steps = [MapFactor(0), MapFactor(1), MapFactor(0, is_transposed=True)]
        return self._operator([derivative, second], steps, self.inputs, self.inputs, True, chunk_size)

    def _operator(
        self,
        maps: Sequence[LinearMap],
        steps: Sequence[MapFactor],
        domain: Space,
        codomain: Space,
        is_symmetric: bool,
        chunk_size: int | None,
    ) -> CurvatureOperator:
        programs = tuple([a.program for a in maps])
        product = Product(programs, tuple(steps), domain.vectors, codomain.vectors)
        adjoint = product if is_symmetric else product.transposed()
        residuals = tuple([a.residuals for a in maps])
        return CurvatureOperator((product, adjoint), residuals, (domain, codomain), chunk_size)

    def _called(self, values: Sequence[Array]) -> Any:
        args, kwargs = self.arguments.with_copies().bound(values)
        return self.function(*args, **kwargs)

    def _scalar(self, *values: Array) -> Array:
        return scalar_output(self._called(values), self.transform, self.function, False)

    def _outputs(self, *values: Array) -> tuple[Array, ...]:
        leaves, self.out_spec = output_leaves(self._called(values), self.transform)
        for leaf in leaves:
            self._check_output(leaf)
        return tuple(leaves)

    def _check_output(self, out: Array) -> None:
        dtype = dtype_of(out)
        if dtype.kind == "c":
            raise TypeError(
                f"func.{self.transform}: {name_of(self.function)} returned complex numbers; return their real and "
                "imaginary parts"
            )
        if not is_inexact(dtype):
            raise TypeError(
                f"func.{self.transform} needs floating point outputs, but {name_of(self.function)} returned {dtype}"
            )

    def _losses(self, *values: Array) -> tuple[Array, ...]:
        """The losses of all samples."""
        args, kwargs = self.arguments.with_copies().bound(values)
        in_dims = self.options["in_dims"]
        if in_dims is None:
            in_dims = tuple([None if i in self.arguments.places else 0 for i in range(len(args))])
        out = vmap(lambda *sample: self.function(*sample, **kwargs), in_dims=in_dims)(*args)
        leaves, self.out_spec = output_leaves(out, self.transform)
        if len(leaves) != 1 or len(shape_of(leaves[0])) != 1:
            shapes = _list([shape_of(leaf)[1:] for leaf in leaves])
            raise ArgumentError(
                f"func.{self.transform} needs the loss of one sample, a number, but {name_of(self.function)} returned "
                f"arrays of shapes {shapes} for a sample; name the arguments that have a sample axis by in_dims"
            )
        self._check_output(leaves[0])
        return (leaves[0],)

    def _loss(self, *outs: Array) -> Array:
        loss, targets = self.options["loss"], self.options["targets"]
        value = tree.unflatten(self.out_spec, outs)
        return scalar_output(
            loss(value) if targets is None else loss(value, targets), f"{self.transform[:-1]}, loss=...)", loss, False
        )

    def _log_partition(self, *outs: Array) -> Array:
        likelihood = self.options["likelihood"]
        if isinstance(likelihood, str):
            return sum([LOG_PARTITIONS[likelihood](out) for out in outs], start=np.zeros(()))
        value = likelihood(tree.unflatten(self.out_spec, outs))
        return scalar_output(value, f"{self.transform[:-1]}, likelihood=...)", likelihood, False)


class CurvatureOperator(LinearOperator):  # type: ignore[misc]
    """The result of `func.linear_operator`: a `scipy.sparse.linalg.LinearOperator` of real numbers.

    `@`, `matvec`, `rmatvec`, `matmat` and `rmatmat` multiply with vectors and with matrices of columns, `.T` and
    `.adjoint()` are the transpose, and SciPy's solvers take it. Vectors may be traced.
    """

    def __init__(
        self,
        products: tuple[Product, Product],
        residuals: Sequence[Sequence[Array]],
        spaces: tuple[Space, Space],
        chunk_size: int | None,
        shift: Any = 0.0,
    ) -> None:
        product = products[0]
        dtype = np.result_type(product.domain.dtype, product.codomain.dtype)
        super().__init__(dtype, (product.codomain.size, product.domain.size))
        self._products = products
        self._residuals = residuals
        self._spaces = spaces
        self._chunk_size = chunk_size
        self._shift = shift

    def ravel(self, value: Any) -> Array:
        """The vector to multiply with, of a tree of arrays: a direction in the arguments (for "ntk" the outputs)."""
        return self._spaces[0].ravel(value)

    def unravel(self, vector: Any) -> Any:
        """The tree of such a vector."""
        return self._spaces[0].unravel(vector)

    def ravel_output(self, value: Any) -> Array:
        """The vector of a tree like the outputs of a product; differs from `ravel` for Jacobians only."""
        return self._spaces[1].ravel(value)

    def unravel_output(self, vector: Any) -> Any:
        """The tree of a product; differs from `unravel` for Jacobians only."""
        return self._spaces[1].unravel(vector)

    def damped(self, damping: Any) -> CurvatureOperator:
        """This matrix plus `damping` times the identity."""
        if self.shape[0] != self.shape[1]:
            raise ArgumentError(f"damped: the operator of shape {self.shape} is not square")
        check_real_number(damping, "damped: the damping")
        shift = self._shift + damping
        return CurvatureOperator(self._products, self._residuals, self._spaces, self._chunk_size, shift)

    @property
    def is_symmetric(self) -> bool:
        """Whether the matrix is its own transpose: all kinds but "jacobian"."""
        return self._products[0] is self._products[1]

    def toarray(self) -> Array:
        """The matrix itself, by products with all unit vectors."""
        return self.matmat(np.eye(self.shape[1], dtype=self.dtype))

    def matvec(self, x: Any) -> Array:
        """A x for x of shape (n,) or (n, 1)."""
        return self._of_vector(x, is_adjoint=False)

    def rmatvec(self, x: Any) -> Array:
        """Aᵀ x for x of shape (m,) or (m, 1)."""
        return self._of_vector(x, is_adjoint=True)

    def matmat(self, X: Any) -> Array:
        """A X for X of shape (n, k): one product for all columns, or for some at a time."""
        return self._of_columns(X, is_adjoint=False)

    def rmatmat(self, X: Any) -> Array:
        """Aᵀ X for X of shape (m, k)."""
        return self._of_columns(X, is_adjoint=True)

    def dot(self, x: Any) -> Any:
        """A x, A X, or the product with a number or another operator."""
        if type(x) is Tracer and x.shape:
            return self.matvec(x) if len(x.shape) == 1 else self.matmat(x)
        return super().dot(x)

    _matvec = matvec
    _rmatvec = rmatvec
    _matmat = matmat
    _rmatmat = rmatmat

    def _adjoint(self) -> CurvatureOperator:
        if self.is_symmetric:
            return self
        (first, second), (domain, codomain) = self._products, self._spaces
        products, spaces = (second, first), (codomain, domain)
        return CurvatureOperator(products, self._residuals, spaces, self._chunk_size, self._shift)

    _transpose = _adjoint

    def __getstate__(self) -> dict[str, Any]:
        if any([type(value) is Tracer for value in (self._shift, *[x for part in self._residuals for x in part])]):
            raise TypeError("this operator holds values of an outer transform and cannot be pickled")
        return self.__dict__

    def __copy__(self) -> CurvatureOperator:
        copied: CurvatureOperator = object.__new__(CurvatureOperator)
        copied.__dict__.update(self.__dict__)
        return copied

    def _of_vector(self, x: Any, is_adjoint: bool) -> Array:
        x = _array(x)
        size = self.shape[0 if is_adjoint else 1]
        if shape_of(x) not in ((size,), (size, 1)):
            raise ArgumentError(
                f"{'rmatvec' if is_adjoint else 'matvec'}: an operator of shape {self.shape} "
                f"{'from the left ' if is_adjoint else ''}takes a vector of shape ({size},) or ({size}, 1), not "
                f"{shape_of(x)}"
            )
        if dtype_of(x).kind == "c":
            return self._of_columns(x.reshape(size, 1), is_adjoint).reshape((self._length(is_adjoint), *x.shape[1:]))
        if len(shape_of(x)) == 2:
            return self._of_vector(x.reshape(size), is_adjoint).reshape(-1, 1)
        if 0 in self.shape:
            return np.zeros(self._length(is_adjoint), self.dtype)
        product = compiled(self._products[is_adjoint])[0]
        out = product(self._residuals, self._cast(x))
        return out + self._cast(self._shift * x) if self._shift_is_set() else out

    def _of_columns(self, X: Any, is_adjoint: bool) -> Array:
        X = _array(X)
        size = self.shape[0 if is_adjoint else 1]
        shape = shape_of(X)
        if len(shape) != 2 or shape[0] != size:
            raise ArgumentError(
                f"{'rmatmat' if is_adjoint else 'matmat'}: an operator of shape {self.shape} "
                f"{'from the left ' if is_adjoint else ''}takes a matrix of shape ({size}, k), not {shape}"
            )
        if dtype_of(X).kind == "c":
            out = self._of_columns(np.concatenate([np.real(X), np.imag(X)], axis=1), is_adjoint)
            return out[:, : shape[1]] + np.array(1j, np.result_type(out.dtype, np.complex64)) * out[:, shape[1] :]
        if 0 in self.shape or not shape[1]:
            return np.zeros((self._length(is_adjoint), shape[1]), self.dtype)
        if shape[1] == 1:
            return self._of_vector(X, is_adjoint)
        product = self._products[is_adjoint]
        chunk = self._chunk_size or max(CHUNK_BYTES // product.bytes_of_vector(), 1)
        columns = self._cast(X)
        count = -(-shape[1] // chunk)
        width = min(padded_width(-(-shape[1] // count)), chunk)
        parts = []
        for start in range(0, shape[1], width):
            part = columns[:, start : start + width]
            missing = width - shape_of(part)[1]
            if missing:
                part = np.concatenate([part, np.zeros((size, missing), self.dtype)], axis=1)
            out = compiled(product)[1](self._residuals, part)
            parts.append(out[:, : width - missing] if missing else out)
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return whole + self._cast(self._shift * X) if self._shift_is_set() else whole

    def _shift_is_set(self) -> bool:
        return type(self._shift) is Tracer or bool(self._shift)

    def _length(self, is_adjoint: bool) -> int:
        return int(self.shape[1 if is_adjoint else 0])

    def _cast(self, x: Array) -> Array:
        return x if dtype_of(x) == self.dtype else x.astype(self.dtype)


def check_real_number(value: Any, what: str) -> None:
    """Raise for anything but a real number, plain or traced."""
    is_number = isinstance(value, (int, float)) or (hasattr(value, "dtype") and shape_of(value) == ())
    if not is_number or dtype_of(value).kind not in "fiu":
        raise ArgumentError(f"{what} must be a real number, not {value!r}")


def _array(x: Any) -> Array:
    """A vector or matrix of numbers, plain or traced."""
    if type(x) is Tracer:
        return x
    array = np.asarray(x)
    if array.dtype.kind not in "fciub":
        raise ArgumentError(f"a linear operator multiplies arrays of numbers, not of dtype {array.dtype}")
    return array
