"""The per-sample gradients of a Program as sums of outer products: G_b = Σ_t l_bt ⊗ r_bt.

The gradient of a weight matrix for one sample contracts its input with the cotangent of its output. It sums over the
positions t of its uses: one for a dense layer, the pixels for a convolution, the time steps for a sequence.
`sample_gradients` evaluates a Program whose outputs have the samples in front, but leaves the contractions for these
outputs as pairs of factors. They pass through reshapes, transpositions, scalings and sums. Anything else is an array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from func.interpreters.core import Array, Shape, bind, dtype_of, shape_of
from func.interpreters.primitives.elementwise.builder import add, multiply
from func.interpreters.primitives.elementwise.table import divide, equal, less, negative
from func.interpreters.primitives.structural.contraction import Labels, contract, spec
from func.interpreters.primitives.structural.filling import iota
from func.interpreters.primitives.structural.indexing import scatter_add
from func.interpreters.primitives.structural.shapes import (
    broadcast,
    convert,
    full_like,
    inverse_permutation,
    permute,
    reduce_sum,
    reshape,
    where,
)
from func.interpreters.primitives.structural.slicing import concatenate
from func.interpreters.program.program import Equation, Program, Var

BOTH, LEFT, RIGHT = 0, 1, 2


class OneHot(NamedTuple):
    """Rows of zeros with a one at `index` (samples, positions); each row has `size` elements."""

    index: Array
    size: int


class Factors(NamedTuple):
    """G_b[g, p, q] = Σ_t left[b, g, t, p] right[b, g, t, q], an array over the axes of a parameter.

    `left` is (samples, groups, positions, p), or OneHot for the rows of an embedding, and `right` is (samples, groups,
    positions, q). The parameter has axes of sizes `sizes`. `kinds` marks each as an axis of the left factor, of the
    right one or of both (a group). An axis of p, q or g runs over the axes of its kind, in C order; `shape` merges
    consecutive ones.
    """

    left: Array | OneHot
    right: Array
    sizes: tuple[int, ...]
    kinds: tuple[int, ...]
    shape: Shape

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The numbers of groups, positions, p and q."""
        _, groups, positions, q = shape_of(self.right)
        p = self.left.size if isinstance(self.left, OneHot) else shape_of(self.left)[3]
        return groups, positions, p, q

    def left_array(self) -> Array:
        """The left factor as an array, even for an embedding."""
        if not isinstance(self.left, OneHot):
            return self.left
        samples, positions = shape_of(self.left.index)
        rows = iota(self.left.size, self.left.index)
        ones = equal(reshape(self.left.index, shape=(samples, 1, positions, 1)), rows)
        return convert(ones, dtype=dtype_of(self.right))


class _Term:
    """A summand of per-sample gradients that is not an array of them."""

    __slots__ = ()
    dtype: np.dtype[Any]

    def scaled(self, primitive: Any, *others: Any, first: bool = True) -> _Term:
        """The term with a linear primitive applied to one of its factors."""
        raise NotImplementedError

    def converted(self, dtype: np.dtype[Any]) -> _Term:
        """The term in a wider dtype."""
        raise NotImplementedError

    def array(self) -> Array:
        """All per-sample gradients, (samples, *shape)."""
        raise NotImplementedError

    def total(self) -> Array:
        """Σ_b G_b."""
        raise NotImplementedError

    def factors(self) -> Factors:
        """The factors in canonical form."""
        raise NotImplementedError


class _Outer(_Term):
    """The contraction of x and y by a spec with the sample first in the output, then split, permuted and reshaped.

    `labels` are (axis of the contraction after the samples, size), in its order, and `order` permutes them.
    """

    __slots__ = ("dtype", "labels", "order", "samples", "shape", "spec", "x", "y")

    def __init__(self, x: Array, y: Array, labels_of: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.x = x
        self.y = y
        self.spec = labels_of
        self.samples = shape[0]
        self.shape = shape[1:]
        self.labels = list(enumerate(shape[1:]))
        self.order = list(range(len(self.labels)))
        self.dtype = dtype

    def _changed(self, **values: Any) -> _Outer:
        copied = object.__new__(_Outer)
        for name in self.__slots__:
            setattr(copied, name, values.get(name, getattr(self, name)))
        return copied

    def scaled(self, primitive: Any, *others: Any, first: bool = True) -> _Outer:
        is_x = math.prod(shape_of(self.x)) <= math.prod(shape_of(self.y))
        name, labels = ("x", self.spec.x) if is_x else ("y", self.spec.y)
        value = self.x if is_x else self.y
        if others and any([shape_of(other) not in ((), (1,)) for other in others]):
            batch = self.spec.out[0]
            if batch not in labels:
                name, labels = ("y", self.spec.y) if is_x else ("x", self.spec.x)
                value = self.y if is_x else self.x
            others = tuple([_along(other, labels.index(batch), len(labels)) for other in others])
        operands = (value, *others) if first else (*others, value)
        return self._changed(**{name: primitive(*operands)})

    def converted(self, dtype: np.dtype[Any]) -> _Outer:
        return self._changed(x=convert(self.x, dtype=dtype), y=convert(self.y, dtype=dtype), dtype=dtype)

    def permuted(self, order: Sequence[int]) -> _Outer | None:
        """The term with its axes, samples first, in another order; None if merged axes prevent it."""
        if order[0] != 0:
            return None
        groups = _groups([self.labels[k][1] for k in self.order], self.shape)
        if groups is None:
            return None
        start = [sum(map(len, groups[:k])) for k in range(len(groups))]
        positions = [start[k - 1] + i for k in order[1:] for i in range(len(groups[k - 1]))]
        shape = tuple([self.shape[k - 1] for k in order[1:]])
        return self._changed(order=[self.order[i] for i in positions], shape=shape)

    def reshaped(self, shape: Shape) -> _Outer | None:
        """The term in another shape of the gradients; None if no split of its axes has that shape."""
        pieces = _split([self.labels[k][1] for k in self.order], shape)
        if pieces is None:
            return None
        split = dict(zip(self.order, pieces, strict=True))
        labels: list[tuple[int, int]] = []
        new: dict[int, list[int]] = {}
        for k, (axis, _) in enumerate(self.labels):
            new[k] = list(range(len(labels), len(labels) + len(split[k])))
            labels += [(axis, size) for size in split[k]]
        return self._changed(labels=labels, order=[i for k in self.order for i in new[k]], shape=shape)

    def _arranged(self, raw: Array, front: Shape) -> Array:
        """The result of the contraction, in the layout of the gradients."""
        count = len(front)
        if self.order != sorted(self.order):
            raw = reshape(raw, shape=(*front, *[size for _, size in self.labels]))
            raw = permute(raw, order=(*range(count), *[count + k for k in self.order]))
        return raw if shape_of(raw) == (*front, *self.shape) else reshape(raw, shape=(*front, *self.shape))

    def array(self) -> Array:
        return self._arranged(contract(self.x, self.y, spec=self.spec), (self.samples,))

    def total(self) -> Array:
        batch = self.spec.out[0]
        x, y, own, other = self.x, self.y, self.spec.x, self.spec.y
        if batch not in other:
            x, own = reduce_sum(x, axes=(own.index(batch),)), _without(own, batch)
        elif batch not in own:
            y, other = reduce_sum(y, axes=(other.index(batch),)), _without(other, batch)
        return self._arranged(contract(x, y, spec=spec(own, other, self.spec.out[1:])), ())

    def factors(self) -> Factors:
        spec = self.spec
        axes = [self.labels[k] for k in self.order]
        kinds = [self._kind(axis) for axis, _ in axes]
        first = next((kind for kind, (_, size) in zip(kinds, axes, strict=True) if kind != BOTH and size > 1), LEFT)
        left = self._factor(self.x, spec.x, spec.y, LEFT)
        right = self._factor(self.y, spec.y, spec.x, RIGHT)
        if first == RIGHT:
            left, right = right, left
            kinds = [kind and LEFT + RIGHT - kind for kind in kinds]
        long = [k for k, (_, size) in enumerate(axes) if size > 1]
        return Factors(left, right, tuple([axes[k][1] for k in long]), tuple([kinds[k] for k in long]), self.shape)

    def _kind(self, axis: int) -> int:
        label = self.spec.out[1 + axis]
        return BOTH if label in self.spec.x and label in self.spec.y else LEFT if label in self.spec.x else RIGHT

    def _factor(self, value: Array, own: Labels, other: Labels, kind: int) -> Array:
        """An operand as (samples, groups, positions, own elements)."""
        batch, *out = self.spec.out
        place = {label: axis for axis, label in enumerate(out)}
        names: list[Any] = []
        sizes: list[int] = []
        for label, size in zip(own, shape_of(value), strict=True):
            if label in place:
                pieces = [k for k, (axis, _) in enumerate(self.labels) if axis == place[label]]
                names += pieces
                sizes += [self.labels[k][1] for k in pieces]
            else:
                names.append("samples" if label == batch else ("sum", label))
                sizes.append(size)
        value = reshape(value, shape=tuple(sizes))
        groups = [k for k in self.order if self._kind(self.labels[k][0]) == BOTH]
        elements = [k for k in self.order if self._kind(self.labels[k][0]) == kind]
        summed = [("sum", label) for label in sorted(set(own) & set(other) - set(self.spec.out))]
        if batch not in own:
            value = broadcast(reshape(value, shape=(1, *sizes)), shape=(self.samples, *sizes))
            names = ["samples", *names]
            sizes = [self.samples, *sizes]
        target_labels = ["samples", *groups, *summed, *elements]
        order = tuple([names.index(name) for name in target_labels])
        value = value if order == tuple(range(len(order))) else permute(value, order=order)
        size_of = dict(zip(names, sizes, strict=True))
        shape = [math.prod([size_of[name] for name in part]) for part in (groups, summed, elements)]
        return reshape(value, shape=(self.samples, *shape))


class _Rows(_Term):
    """Rows added up at indices: value (samples, *positions, *row) at index (samples, *positions), for embeddings."""

    __slots__ = ("dtype", "index", "shape", "value")

    def __init__(self, index: Array, value: Array, shape: Shape, dtype: np.dtype[Any]) -> None:
        self.index = index
        self.value = value
        self.shape = shape
        self.dtype = dtype

    def scaled(self, primitive: Any, *others: Any, first: bool = True) -> _Rows:
        rank = len(shape_of(self.value))
        others = tuple([other if shape_of(other) in ((), (1,)) else _along(other, 0, rank) for other in others])
        operands = (self.value, *others) if first else (*others, self.value)
        return _Rows(self.index, primitive(*operands), self.shape, self.dtype)

    def converted(self, dtype: np.dtype[Any]) -> _Rows:
        return _Rows(self.index, convert(self.value, dtype=dtype), self.shape, dtype)

    def array(self) -> Array:
        shape = shape_of(self.index)
        samples = broadcast(_along(iota(shape[0], self.index), 0, len(shape)), shape=shape)
        zeros = full_like(self.value, 0, (shape[0], *self.shape))
        return scatter_add(zeros, self.value, samples, self.index, axis=0)

    def total(self) -> Array:
        return scatter_add(full_like(self.value, 0, self.shape), self.value, self.index, axis=0)

    def factors(self) -> Factors:
        samples, *positions = shape_of(self.index)
        count = math.prod(positions)
        index = convert(reshape(self.index, shape=(samples, count)), dtype=np.dtype(np.intp))
        index = where(less(index, 0), add(index, self.shape[0]), index)
        value = reshape(self.value, shape=(samples, 1, count, math.prod(self.shape[1:])))
        return Factors(
            OneHot(index, self.shape[0]), value, self.shape, (LEFT, *[RIGHT] * (len(self.shape) - 1)), self.shape
        )


Terms: TypeAlias = "list[_Term]"


class SampleGradients:
    """The gradients of all samples with respect to one parameter: a sum of terms, an array and a shared array.

    `dense` is an array (samples, *shape) and `shared`, of the parameter's shape, is the same for all samples; each is
    None without such a summand.
    """

    __slots__ = ("_factors", "_is_merged", "dense", "dtype", "samples", "shape", "shared", "terms")

    def __init__(
        self,
        samples: int,
        shape: Shape,
        dtype: np.dtype[Any],
        terms: Sequence[_Term] = (),
        dense: Array | None = None,
        shared: Array | None = None,
    ) -> None:
        self.samples = samples
        self.shape = shape
        self.dtype = dtype
        self.terms = list(terms)
        self.dense = dense
        self.shared = shared
        self._factors: list[Factors] | None = None
        self._is_merged = False

    def array(self) -> Array:
        """The gradients as one array, (samples, *shape); from now on stored as one."""
        total = self.dense
        for term in self.terms:
            total = term.array() if total is None else add(total, term.array())
        if self.shared is not None:
            shared = reshape(self.shared, shape=(1, *self.shape))
            full = (self.samples, *self.shape)
            total = broadcast(shared, shape=full) if total is None else add(total, shared)
        if total is None:
            raise ValueError("gradients without a summand")
        self.terms, self.shared, self.dense = [], None, total
        self._factors, self._is_merged = None, False
        return total

    def converted(self, dtype: np.dtype[Any]) -> SampleGradients:
        """The gradients in a wider dtype."""
        terms = [term.converted(dtype) for term in self.terms]
        dense, shared = [None if value is None else convert(value, dtype=dtype) for value in (self.dense, self.shared)]
        return SampleGradients(self.samples, self.shape, dtype, terms, dense, shared)

    def total(self) -> Array:
        """Σ_b G_b, of the parameter's shape."""
        shared = None if self.shared is None else multiply(self.shared, self.samples)
        return self._summed(self.terms, None if self.dense is None else reduce_sum(self.dense, axes=(0,)), shared)

    def weighted_sum(self, weights: Array) -> Array:
        """Σ_b w_b G_b, of the parameter's shape; `weights` has the gradients' dtype."""
        dense, shared = self.dense, self.shared
        if dense is not None:
            flat = reshape(dense, shape=(self.samples, math.prod(self.shape)))
            dense = reshape(contract(weights, flat, spec=spec((0,), (0, 1), (1,))), shape=self.shape)
        if shared is not None:
            shared = multiply(shared, reduce_sum(weights, axes=(0,)))
        return self._summed([term.scaled(multiply, weights) for term in self.terms], dense, shared)

    def _summed(self, terms: Sequence[_Term], dense: Any, shared: Any) -> Array:
        parts = [*[term.total() for term in terms], *[part for part in (dense, shared) if part is not None]]
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        return total

    def sum_of_squares(self) -> Array:
        """Σ_b G_b² of a single term with one position, by the squares of its factors."""
        (factor,) = self.factors() or []
        assert not isinstance(factor.left, OneHot)
        groups, _, p, q = factor.counts
        left = reshape(factor.left, shape=(self.samples, groups, p))
        right = reshape(factor.right, shape=(self.samples, groups, q))
        labels = spec((0, 1, 2), (0, 1, 3), (1, 2, 3))
        total = contract(multiply(left, left), multiply(right, right), spec=labels)
        order = [k for kind in (BOTH, LEFT, RIGHT) for k, own in enumerate(factor.kinds) if own == kind]
        total = reshape(total, shape=tuple([factor.sizes[k] for k in order]))
        total = permute(total, order=inverse_permutation(order))
        return reshape(total, shape=self.shape)

    def factors(self) -> list[Factors] | None:
        """The terms as factors over the same axes, joined along their positions; None if they differ in axes.

        The list has one entry for the terms of matrices and one for embeddings, if any.
        """
        if not self._is_merged:
            self._factors = _merged([term.factors() for term in self.terms])
            self._is_merged = True
        return self._factors


def sample_gradients(program: Program, args: Sequence[Array], samples: int) -> list[SampleGradients]:
    """Evaluate a Program whose outputs are per-sample gradients, (samples, *shape), without multiplying them out.

    An example is the Program of `vmap(grad(loss))`, called with `args`. Its NaN-safe variant is a Program of the same
    kind.
    """
    term_variables = _term_variables(program, samples)

    def override(i: int, operands: tuple[Any, ...]) -> Any:
        equation = program.equations[i]
        if equation.outputs and equation.outputs[0] in term_variables:
            terms = _applied(program, equation, operands, samples)
            if terms is not None:
                return (terms,)
        if any([type(x) is SampleGradients for x in operands]):
            arrays = tuple([x.array() if type(x) is SampleGradients else x for x in operands])
            out = bind(equation.primitive, arrays, equation.params)
            return out if equation.primitive.multiple else (out,)
        return None

    outs = program.run(args, override)
    results = []
    for out, variable in zip(outs, program.outputs, strict=True):
        if type(out) is not SampleGradients:
            shape = shape_of(variable)
            out = SampleGradients(samples, shape[1:], dtype_of(variable), dense=out)
        results.append(out)
    return results


def _term_variables(program: Program, samples: int) -> set[Var]:
    """The variables with the samples in front that reach outputs through operations on terms."""
    variables: set[Var] = {x for x in program.outputs if type(x) is Var}
    for equation in reversed(program.equations):
        if len(equation.outputs) != 1 or equation.outputs[0] not in variables:
            continue
        name = equation.primitive.name
        if name in _ON_FIRST:
            places: Sequence[int] = (0,)
        elif name in ("add", "subtract", "multiply"):
            places = (0, 1)
        else:
            continue
        size = equation.outputs[0].size
        variables.update([x for k in places if type(x := equation.inputs[k]) is Var and x.size == size])
    return {x for x in variables if x.shape and x.shape[0] == samples and x.dtype.kind == "f" and x.size}


_ON_FIRST = ("permute", "reshape", "negative", "convert", "divide")


def _applied(program: Program, equation: Equation, operands: tuple[Any, ...], samples: int) -> SampleGradients | None:
    """The result of an equation as terms; None if it must be an array."""
    name = equation.primitive.name
    out = equation.outputs[0]
    x = operands[0]
    if name == "contract":
        return _started(equation, operands, samples)
    if name == "scatter_add":
        return _rows(program, equation, operands, samples)
    if name == "broadcast":
        is_shared = shape_of(x) in (out.shape[1:], (1, *out.shape[1:])) and samples > 1
        shared = reshape(x, shape=out.shape[1:]) if is_shared else None
        return SampleGradients(samples, out.shape[1:], out.dtype, shared=shared) if is_shared else None
    if not any([type(operand) is SampleGradients for operand in operands]):
        return None
    if name in ("add", "subtract"):
        return _sum(equation, operands, samples)
    if name in ("multiply", "divide"):
        return _scaled(equation, operands)
    if name == "negative":
        return _mapped(x, negative)
    if name == "convert":
        wider = out.dtype.kind == "f" and out.dtype.itemsize >= x.dtype.itemsize
        return x.converted(out.dtype) if wider else None
    return _rearranged(equation, x) if name in ("permute", "reshape") else None


def _started(equation: Equation, operands: tuple[Any, ...], samples: int) -> SampleGradients | None:
    """A contraction of two operands with samples, each with further axes."""
    x, y = [operand.array() if type(operand) is SampleGradients else operand for operand in operands]
    labels = equation.params["spec"]
    out = equation.outputs[0]
    if dtype_of(x) != out.dtype or dtype_of(y) != out.dtype:
        return None
    sizes = {**dict(zip(labels.x, shape_of(x), strict=True)), **dict(zip(labels.y, shape_of(y), strict=True))}
    batch, *rest = labels.out
    own = [[label for label in rest if label not in other and sizes[label] > 1] for other in (labels.x, labels.y)]
    summed = math.prod([sizes[label] for label in set(labels.x) & set(labels.y) - set(labels.out)])
    if not all(own) or sizes[batch] != samples or (summed > 1 and not (batch in labels.x and batch in labels.y)):
        return None
    return SampleGradients(samples, out.shape[1:], out.dtype, [_Outer(x, y, labels, out.shape, out.dtype)])


def _rows(program: Program, equation: Equation, operands: tuple[Any, ...], samples: int) -> SampleGradients | None:
    """Values added to zeros at rows of each sample: the pullback of `table[index]`."""
    _, value, *indices = operands
    out = equation.outputs[0]
    constants = [program.constants.get(x) if type(x) is Var else None for x in equation.inputs]
    if equation.params["axis"] != 0 or len(indices) != 2 or len(out.shape) < 2:
        return None
    if any([type(x) is SampleGradients for x in operands]) or not _is_zero(constants[0]):
        return None
    shape = shape_of(indices[1])
    if not shape or shape[0] != samples or shape_of(value) != (*shape, *out.shape[2:]) or dtype_of(value) != out.dtype:
        return None
    numbers = constants[2]
    counting = np.arange(samples).reshape(-1, *[1] * (len(shape) - 1))
    if not isinstance(numbers, np.ndarray) or not np.array_equal(numbers, np.broadcast_to(counting, shape)):
        return None
    return SampleGradients(samples, out.shape[1:], out.dtype, [_Rows(indices[1], value, out.shape[1:], out.dtype)])


def _is_zero(value: Any) -> bool:
    """Whether a value is a known array of zeros; reads repeated elements once."""
    if not isinstance(value, np.ndarray):
        return False
    once = tuple([slice(None) if stride else slice(1) for stride in value.strides])
    return not value[once].any()


def _sum(equation: Equation, operands: tuple[Any, ...], samples: int) -> SampleGradients | None:
    """The sum or difference of gradients, arrays of them, and shared arrays."""
    out = equation.outputs[0]
    parts = []
    for k, x in enumerate(operands):
        if type(x) is not SampleGradients:
            if shape_of(x) == out.shape:
                x = SampleGradients(samples, out.shape[1:], out.dtype, dense=_as_type(x, out.dtype))
            elif shape_of(x) in (out.shape[1:], (1, *out.shape[1:])) and hasattr(x, "dtype"):
                shared = reshape(_as_type(x, out.dtype), shape=out.shape[1:])
                x = SampleGradients(samples, out.shape[1:], out.dtype, shared=shared)
            else:
                return None
        if x.dtype != out.dtype:
            return None
        parts.append(_mapped(x, negative) if k and equation.primitive.name == "subtract" else x)
    first, second = parts
    return SampleGradients(
        samples,
        out.shape[1:],
        out.dtype,
        [*first.terms, *second.terms],
        _added(first.dense, second.dense),
        _added(first.shared, second.shared),
    )


def _added(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else add(x, y)


def _as_type(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if dtype_of(x) == dtype else convert(x, dtype=dtype)


def _scaled(equation: Equation, operands: tuple[Any, ...]) -> SampleGradients | None:
    """Gradients times or divided by a number, or by a number for each sample."""
    is_first = type(operands[0]) is SampleGradients
    x, factor = operands if is_first else operands[::-1]
    out = equation.outputs[0]
    if type(factor) is SampleGradients or (not is_first and equation.primitive is divide):
        return None
    shape = shape_of(factor)
    is_number = math.prod(shape) == 1 and len(shape) <= len(out.shape)
    is_each = len(shape) == len(out.shape) and shape[0] == out.shape[0] and math.prod(shape[1:]) == 1
    if x.dtype != out.dtype or out.shape != (x.samples, *x.shape) or not (is_number or is_each):
        return None
    if is_number:
        factor = reshape(factor, shape=()) if shape else factor
        return _mapped(x, equation.primitive, factor, first=is_first)
    if x.shared is not None:
        return None
    factor = reshape(factor, shape=(shape[0],))
    dense = x.dense
    if dense is not None:
        dense = equation.primitive(*((dense, operands[1]) if is_first else (operands[0], dense)))
    terms = [term.scaled(equation.primitive, factor, first=is_first) for term in x.terms]
    return SampleGradients(x.samples, x.shape, x.dtype, terms, dense)


def _mapped(x: SampleGradients, primitive: Any, *others: Any, first: bool = True) -> SampleGradients:
    """A linear primitive applied to all summands."""

    def applied(value: Any) -> Any:
        return None if value is None else primitive(*((value, *others) if first else (*others, value)))

    terms = [term.scaled(primitive, *others, first=first) for term in x.terms]
    return SampleGradients(x.samples, x.shape, x.dtype, terms, applied(x.dense), applied(x.shared))


def _rearranged(equation: Equation, x: SampleGradients) -> SampleGradients | None:
    """Gradients in another shape or with their axes in another order."""
    shape = equation.outputs[0].shape
    terms = []
    for term in x.terms:
        if type(term) is not _Outer:
            return None
        is_reshape = equation.primitive is reshape
        rearranged = term.reshaped(shape[1:]) if is_reshape else term.permuted(equation.params["order"])
        if rearranged is None:
            return None
        terms.append(rearranged)
    if not shape or shape[0] != x.samples or (equation.primitive is permute and equation.params["order"][0] != 0):
        return None
    dense = None if x.dense is None else bind(equation.primitive, (x.dense,), equation.params)
    shared = x.shared
    if shared is not None and equation.primitive is permute:
        shared = permute(shared, order=tuple([k - 1 for k in equation.params["order"][1:]]))
    elif shared is not None:
        shared = reshape(shared, shape=shape[1:])
    return SampleGradients(x.samples, shape[1:], x.dtype, terms, dense, shared)


def _along(value: Array, axis: int, rank: int) -> Array:
    """A vector laid along one of `rank` axes."""
    return reshape(value, shape=tuple([shape_of(value)[0] if k == axis else 1 for k in range(rank)]))


def _without(labels: Labels, label: int) -> Labels:
    return tuple([other for other in labels if other != label])


def _bounds(sizes: Sequence[int]) -> list[int]:
    bounds = [1]
    for size in sizes:
        bounds.append(bounds[-1] * size)
    return bounds


def _split(sizes: Sequence[int], shape: Sequence[int]) -> list[list[int]] | None:
    """The sizes into which each size is split so that consecutive ones make the axes of a shape."""
    cuts = sorted({*_bounds(sizes), *_bounds(shape)})
    if math.prod(sizes) != math.prod(shape) or any([b % a for a, b in pairwise(cuts)]):
        return None
    bounds = _bounds(sizes)
    pieces = []
    for start, stop in pairwise(bounds):
        inside = [cut for cut in cuts if start <= cut <= stop]
        pieces.append([b // a for a, b in pairwise(inside)] or [1])
    return pieces


def _groups(sizes: Sequence[int], shape: Sequence[int]) -> list[list[int]] | None:
    """The consecutive sizes that make each axis of a shape."""
    groups: list[list[int]] = []
    position = 0
    for length in shape:
        group: list[int] = []
        total = 1
        while total < length and position < len(sizes):
            group.append(position)
            total *= sizes[position]
            position += 1
        if total != length:
            return None
        groups.append(group)
    for rest in range(position, len(sizes)):
        if sizes[rest] != 1 or not groups:
            return None
        groups[-1].append(rest)
    return groups


def _merged(factors: Sequence[Factors]) -> list[Factors] | None:
    """Factors over the same axes joined along their positions: first those of arrays, then those of rows."""
    if any([(x.sizes, x.kinds) != (factors[0].sizes, factors[0].kinds) for x in factors]):
        return None
    joined = []
    for is_rows in (False, True):
        parts = [x for x in factors if isinstance(x.left, OneHot) == is_rows]
        if len(parts) > 1:
            lefts: list[Any] = [x.left.index if isinstance(x.left, OneHot) else x.left for x in parts]
            left = concatenate(*lefts, axis=1 if is_rows else 2)
            right = concatenate(*[x.right for x in parts], axis=2)
            size = parts[0].counts[2]
            parts = [parts[0]._replace(left=OneHot(left, size) if is_rows else left, right=right)]
        joined += parts
    return joined
