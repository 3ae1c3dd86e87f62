"""Sparse matrices whose entries may be traced: SciPy's classes, with every operation on the entries by func.

The entries are one array, `data`; the pattern is plain. An entry that happens to be zero is an entry: SciPy may drop
zeros that it computes, but func keeps them. Where SciPy returns a `numpy.matrix`, func returns an array of two axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as _scipy

from func import tree
from func.host.scipy_hooks import holds_traced, original
from func.interpreters.core import Array, Tracer, concrete, dtype_of, shape_of
from func.interpreters.core.errors import UnsupportedFunctionError
from func.interpreters.host.source import at_line
from func.interpreters.primitives.structural.shapes import convert, reshape
from func.scipy.sparse.entry_arithmetic import (
    add,
    as_dense,
    axes_of,
    divide,
    extremum,
    is_zero,
    known,
    matmul,
    multiply,
    rmatmul,
    sum_over,
)
from func.scipy.sparse.patterns import (
    FORMATS,
    OWN,
    SCIPY,
    Pattern,
    accumulated,
    by_number,
    canonical,
    entries,
    flat,
    has_duplicates,
    is_scalar,
    joined,
    keys,
    lifted,
    numbered,
    selected,
    summed,
    with_entries,
)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedFunctionError(
            f"{type(self).__name__}.{name} has no version for traced entries{at_line()}\n"
            "Use other operations of the matrix, its entries (x.data), or x.toarray()."
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


class TracedSparse:
    """The methods of func's classes of sparse matrices that replace SciPy's.

    They become methods of each class. Its only base is SciPy's class, so that an object can change between the two.
    """

    data: Any
    shape: Any
    ndim: Any
    format: Any
    dtype: Any
    transpose: Any
    diagonal: Any
    conjugate: Any
    __neg__: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """SciPy's object if nothing is traced."""
        if holds_traced(args) or holds_traced(kwargs):
            return object.__new__(cls)
        return SCIPY[cls](*args, **kwargs)

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any) -> None:
        made = _made(SCIPY[type(self)], arg1, shape, **kwargs)
        if dtype is not None:
            made = made.astype(dtype)
        self.__dict__.update(made.__dict__)

    def __func_holds_traced__(self) -> bool:
        return holds_traced(self.data)

    def __matmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return rmatmul(self, other)

    def dot(self, other: Any) -> Any:
        return self * other if is_scalar(other) else matmul(self, other)

    def _matmul_dispatch(self, other: Any) -> Any:
        return multiply(self, other) if is_scalar(other) else matmul(self, other)

    def _rmatmul_dispatch(self, other: Any) -> Any:
        return multiply(self, other) if is_scalar(other) else rmatmul(self, other)

    def __mul__(self, other: Any) -> Any:
        return self._matmul_dispatch(other) if isinstance(self, _scipy.spmatrix) else multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._rmatmul_dispatch(other) if isinstance(self, _scipy.spmatrix) else multiply(self, other)

    def multiply(self, other: Any) -> Any:
        return multiply(self, other)

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return add(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        if is_scalar(other) and not is_zero(other):
            raise NotImplementedError("subtracting a sparse array from a nonzero scalar is not supported")
        return add(-self, other)

    def __truediv__(self, other: Any) -> Any:
        return divide(self, other)

    def __pos__(self) -> Any:
        return self.copy()

    def __imul__(self, other: Any) -> Any:
        if not is_scalar(other):
            return NotImplemented
        self.data = self.data * other
        return self

    def __itruediv__(self, other: Any) -> Any:
        if not is_scalar(other):
            return NotImplemented
        self.data = self.data * (1.0 / other)
        return self

    def power(self, n: Any, dtype: Any = None) -> Any:
        if not is_scalar(n):
            raise NotImplementedError("input is not scalar")
        if is_zero(n):
            raise NotImplementedError(
                "zero power is not supported as it would densify the matrix.\n"
                "Use `np.ones(A.shape, dtype=A.dtype)` for this case."
            )
        own = canonical(self)
        return with_entries(own, (own.data if dtype is None else own.data.astype(dtype)) ** n)

    def maximum(self, other: Any) -> Any:
        return extremum(self, other, np.maximum, "maximum")

    def minimum(self, other: Any) -> Any:
        return extremum(self, other, np.minimum, "minimum")

    __hash__ = object.__hash__

    @property
    def H(self) -> Any:
        return self.conjugate().transpose()

    def toarray(self, order: Any = None, out: Any = None) -> Array:
        if out is not None:
            raise UnsupportedFunctionError(f"toarray(out=...) has no traced version: use its result{at_line()}")
        coords, data = entries(self)
        size = int(np.prod(self.shape))
        return reshape(accumulated(data, keys(coords, self.shape), (size,)), shape=tuple(self.shape))

    todense = toarray

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
        if out is not None:
            raise UnsupportedFunctionError(f"sum(out=...) has no traced version: use its result{at_line()}")
        data = entries(self)[1]
        if dtype is not None:
            data = data.astype(dtype)
        elif self.dtype.kind in "biu":
            data = data.astype(np.sum(np.zeros(1, self.dtype)).dtype)
        return sum_over(self, axis, data)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Array:
        return self._most("max", axis, out, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Array:
        return self._most("min", axis, out, explicit)

    def _most(self, name: str, axis: Any, out: Any, explicit: bool) -> Array:
        if axes_of(axis, self.ndim) is not None or out is not None:
            raise UnsupportedFunctionError(
                f"{type(self).__name__}.{name} along an axis has no version for traced entries{at_line()}\n"
                f"Write x.toarray().{name}(axis={axis!r})."
            )
        own = canonical(self)
        data = entries(own)[1]
        if not explicit and shape_of(data)[0] < int(np.prod(self.shape)):
            data = joined([data, np.zeros(1, self.dtype)])
        return getattr(np, name)(data)

    def sum_duplicates(self) -> None:
        self.__dict__.update(summed(self).__dict__)

    def eliminate_zeros(self) -> None:
        """Nothing: an entry that is zero has a derivative."""

    def prune(self) -> None:
        """Nothing."""

    def sort_indices(self) -> None:
        self.__dict__.update(self.sorted_indices().__dict__)

    def sorted_indices(self) -> Any:
        template = numbered(self)
        template.sort_indices()
        return by_number(self, template)

    def _with_data(self, data: Any, copy: bool = True) -> Any:
        return with_entries(self, data)

    def _deduped_data(self) -> Any:
        if has_duplicates(self):
            self.sum_duplicates()
        return self.data

    def copy(self) -> Any:
        return with_entries(numbered(self), np.copy(self.data))

    def __getitem__(self, key: Any) -> Any:
        own = canonical(self)
        return by_number(own, numbered(own)[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        own = canonical(self)
        template = numbered(own)
        value = value.toarray() if _scipy.issparse(value) else as_dense(value)
        size = int(np.prod(shape_of(own.data)))
        count = int(np.prod(shape_of(value)))
        template[key] = np.arange(size + 1.0, size + count + 1).reshape(shape_of(value))
        self._rebuilt(template, own, value)

    def setdiag(self, values: Any, k: int = 0) -> None:
        own = canonical(self)
        template = numbered(own)
        values = as_dense(values)
        size = int(np.prod(shape_of(own.data)))
        count = int(np.prod(shape_of(values)))
        numbers = np.arange(size + 1.0, size + count + 1).reshape(shape_of(values))
        template.setdiag(numbers[()] if numbers.ndim == 0 else numbers, k)
        self._rebuilt(template, own, values)

    def _rebuilt(self, template: Any, own: Any, values: Array) -> None:
        data = joined([flat(own.data), values])
        if dtype_of(data) != dtype_of(own.data):
            data = convert(data, dtype=dtype_of(own.data))
        numbers = template.data
        self.__dict__.update(template.__dict__)
        self.data = reshape(selected(data, numbers.reshape(-1)), shape=numbers.shape)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Pattern.filled, (Pattern(self), self.data)


def _of_numbers(name: str) -> Callable[..., Any]:
    """A method without a derivative: SciPy's own, on the numbers of matrices and arrays."""

    def look(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain = [known(x) if OWN.get(type(x)) is type(x) else x for x in args]
        plain = [concrete(x) if type(x) is Tracer else x for x in plain]
        return getattr(known(self), name)(*plain, **kwargs)

    look.__name__ = look.__qualname__ = name
    return look


def _moving(name: str, sums: bool) -> Callable[..., Any]:
    """A method that moves entries: SciPy's own, on numbers."""

    def move(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = canonical(self) if sums else self
        if name == f"to{self.format}" and not (args or kwargs):
            return own
        return by_number(own, getattr(numbered(own), name)(*args, **kwargs))

    move.__name__ = move.__qualname__ = name
    return move


for _name in (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "count_nonzero", "nonzero", "argmax", "argmin",
):  # fmt: skip
    setattr(TracedSparse, _name, _of_numbers(_name))
for _name in ("transpose", "reshape", "_broadcast_to"):
    setattr(TracedSparse, _name, _moving(_name, sums=False))
for _name in ("tocsr", "tocsc", "tocoo", "tobsr", "todia", "diagonal", "_getrow", "_getcol", "getrow", "getcol"):
    setattr(TracedSparse, _name, _moving(_name, sums=_name != "tocoo"))

_ENTRYWISE = [name for base in _scipy.csr_array.__mro__ if base.__name__ == "_data_matrix" for name in vars(base)]
_SCIPYS = frozenset(_ENTRYWISE) | {
    "T", "H", "shape", "ndim", "nnz", "size", "format", "dtype", "data", "indices", "indptr", "offsets", "coords",
    "row", "col", "blocksize", "asformat", "get_shape", "set_shape", "getformat", "getnnz", "getmaxprint",
    "has_canonical_format", "has_sorted_indices", "check_format", "maxprint", "getH", "asfptype", "real", "imag",
    "conj", "mean", "trace",
}  # fmt: skip
"""Attributes for which SciPy's code runs: on the pattern, on the entries, or with the methods that are defined here."""


def _resize(self: Any, *shape: Any) -> None:
    template = numbered(self)
    template.resize(*shape)
    self.__dict__.update(by_number(self, template).__dict__)


def _own_class(scipy_kind: type) -> type:
    """func's subclass of one of SciPy's classes."""
    namespace = {name: value for name, value in vars(TracedSparse).items() if name not in ("__dict__", "__weakref__")}
    namespace |= {
        "__module__": "func.scipy.sparse",
        "__doc__": f"scipy.sparse.{scipy_kind.__name__} whose entries may be traced.",
    }
    if hasattr(scipy_kind, "resize"):
        namespace["resize"] = _resize
    for name in dir(scipy_kind):
        value = getattr(scipy_kind, name, None)
        is_defined = name in vars(TracedSparse) or name in _SCIPYS or name in namespace
        if not name.startswith("_") and not is_defined and callable(value):
            namespace[name] = _refusing(name)
    for name, value in vars(TracedSparse).items():
        if name.startswith("_") or not callable(value) or hasattr(scipy_kind, name):
            continue
        namespace[name] = property(_missing(name))
    for name in ("__getitem__", "__setitem__"):
        if not hasattr(scipy_kind, name):
            namespace[name] = _passed(name, scipy_kind)
    own = type(scipy_kind.__name__, (scipy_kind,), namespace)
    OWN[scipy_kind] = OWN[own] = own
    SCIPY[scipy_kind] = SCIPY[own] = scipy_kind
    return own


def _missing(name: str) -> Callable[[Any], Any]:
    """A method that SciPy's class of this format lacks."""

    def absent(self: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return absent


def _passed(name: str, scipy_kind: type) -> Callable[..., Any]:
    """SciPy's error for an operation that a format lacks."""

    def refuse(self: Any, *args: Any) -> NoReturn:
        verb = "subscriptable" if name == "__getitem__" else "assignable by items"
        raise TypeError(f"{scipy_kind.__name__!r} object is not {verb}")

    return refuse


CLASSES: dict[str, type] = {
    f"{form}_{kind}": _own_class(getattr(_scipy, f"{form}_{kind}")) for form in FORMATS for kind in ("array", "matrix")
}


def _numbers(data: Array, start: int = 1) -> Any:
    size = int(np.prod(shape_of(data)))
    return np.arange(start, start + size, dtype=np.float64).reshape(shape_of(data))


def _made(kind: type, arg1: Any, shape: Any, **kwargs: Any) -> Any:
    """A sparse matrix of a class of SciPy from the arguments of its constructor."""
    if _scipy.issparse(arg1):
        own = canonical(lifted(arg1))
        return by_number(own, kind(numbered(own), shape=shape, **kwargs))
    if isinstance(arg1, tuple) and len(arg1) in (2, 3) and not all([is_scalar(item) for item in arg1]):
        data, *places = arg1
        data = as_dense(data)
        form = kind.__name__[:3]
        if len(arg1) == 2 and form in ("csr", "csc", "bsr"):
            name = f"coo_{kind.__name__[4:]}"
            whole = _made(getattr(_scipy, name), arg1, shape)
            return _made(kind, whole, None, **kwargs)
        template = kind((_numbers(data), *places), shape=shape, **kwargs)
        return with_entries(template, selected_like(data, template.data))
    dense = as_dense(arg1)
    template = kind(_numbers(dense), shape=shape, **kwargs)
    numbers = template.data
    return with_entries(template, reshape(selected(flat(dense), numbers.reshape(-1)), shape=numbers.shape))


def selected_like(data: Array, numbers: Any) -> Array:
    """The entries with these numbers, in their shape."""
    return reshape(selected(flat(data), numbers.reshape(-1)), shape=numbers.shape)


def _register_trees() -> None:
    """Sparse matrices are trees: their data are the leaf, their pattern is static."""
    for kind in dict.fromkeys([*OWN, *SCIPY]):
        tree.register_node(
            kind, lambda matrix: ((matrix.data,), Pattern(matrix)), lambda pattern, data: pattern.filled(data[0])
        )


LIFTED = (
    "__matmul__", "__rmatmul__", "__mul__", "__rmul__", "__add__", "__radd__", "__sub__", "__rsub__", "__truediv__",
    "__imul__", "__itruediv__", "multiply", "dot", "power", "maximum", "minimum", "_matmul_dispatch",
    "_rmatmul_dispatch",
)  # fmt: skip
"""Methods of SciPy's classes whose other operand may be traced."""


def lifted_method(name: str) -> Callable[..., Any]:
    """A method of SciPy's classes as that of func's class."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(lifted(self), name)(*args, **kwargs)

    return call


def become(function: Any) -> Callable[..., Any]:
    """An `__init__` of SciPy's classes whose object becomes one of func's class."""

    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        own = OWN.get(type(self))
        if own is None or own is type(self):
            original(function)(self, *args, **kwargs)
            return
        self.__class__ = own
        own.__init__(self, *args, **kwargs)  # type: ignore[misc]

    return construct


_register_trees()
