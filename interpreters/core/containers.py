"""Containers of other libraries: some become arrays, some compute by other rules, some raise.

A container that defines `__array_ufunc__` defines itself what an operation with an array means (NumPy's enhancement
proposal 13): a unit, labels, a mask. func leaves the operation to it. pandas holds ndarrays only, so its containers
become arrays, as those of torch, JAX and Dask do.
"""

from __future__ import annotations

import numbers
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from func.backends import namespace_of_type
from func.interpreters.core.errors import ForeignArrayError, UnsupportedArrayError

_CONVERTED = frozenset({"pandas", "dask", "torch", "jax", "jaxlib", "func"})
"""Packages whose containers become arrays although they have rules: they cannot contain a traced value."""
_HAS_RULES: dict[type, bool] = {}
_HAVE_RULES_OF_OTHERS: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
"""The same for classes of Python code, which may be deleted."""
_IS_MADE_BY_PYTHON = 1 << 9
"""The flag of classes outside of C libraries (Py_TPFLAGS_HEAPTYPE)."""


def has_rules(kind: type) -> bool:
    """Whether a class defines by `__array_ufunc__` how it computes with arrays, and may contain traced ones."""
    known = _HAS_RULES.get(kind)
    if known is None:
        known = _HAVE_RULES_OF_OTHERS.get(kind)
    if known is None:
        rules = getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__)
        is_own = rules is None or not issubclass(kind, (np.ndarray, np.generic))
        is_own = is_own and hasattr(kind, "__array_ufunc__") and kind.__module__.split(".")[0] not in _CONVERTED
        known = is_own and not _is_sparse(kind) and namespace_of_type(kind) is None  # not an array of a device
        may_go = kind.__flags__ & _IS_MADE_BY_PYTHON and not kind.__module__.startswith("func.")
        (_HAVE_RULES_OF_OTHERS if may_go else _HAS_RULES)[kind] = known
    return known


def _is_sparse(kind: type) -> bool:
    return hasattr(kind, "todense")


def is_scipy_sparse(kind: type) -> bool:
    """Whether objects of a class are SciPy's sparse matrices, whose operators func.scipy.sparse computes."""
    return hasattr(kind, "todense") and any([base.__module__.startswith("scipy.sparse") for base in kind.__mro__])


def as_plain_array(value: Any) -> Any:
    """The array or list that an object of another library represents; raises if there is none.

    Raises:
        ForeignArrayError: The object's class defines NumPy's functions by other rules.
        UnsupportedArrayError: It is not an array, or more than one (masked, sparse, with a unit).
    """
    kind = type(value)
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray) if kind is np.memmap else raise_unsupported_array(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if _is_sparse(kind):
        raise_unsupported_array(value)
    if has_rules(kind) and hasattr(kind, "__array_function__"):
        raise ForeignArrayError(
            f"{kind.__name__} computes by rules of its own, which func does not know here: pass the array that it holds"
        )
    if kind.__module__.split(".")[0] == "xarray" and hasattr(value, "data"):
        return value.data  # it may be a traced value
    if hasattr(value, "__array__"):
        try:
            plain = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise UnsupportedArrayError(f"{kind.__name__} cannot become an array: {error}") from error
        return plain if type(plain) is np.ndarray else raise_unsupported_array(value)
    if isinstance(value, (Sequence, memoryview)) and not isinstance(value, (str, bytes, bytearray)):
        return list(value) if not isinstance(value, memoryview) else np.asarray(value)
    return raise_unsupported_array(value)


def is_machine_number(value: Any) -> bool:
    """Whether an object is a number of Python or NumPy, which arrays of numbers contain unchanged."""
    return isinstance(value, (int, float, complex, np.number, np.bool_))


def _foreign_number(value: Any) -> str | None:
    """The name of another class of numbers (mpmath's, Fraction, Decimal) in an array of objects."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "O":
        return None
    items = [item for item in value.ravel().tolist() if not is_machine_number(item)]
    return next((type(item).__name__ for item in items if isinstance(item, numbers.Number)), None)


def raise_unsupported_array(value: Any) -> NoReturn:
    """Raise an error for an object that func cannot trace; the error names what to pass instead."""
    kind = type(value).__name__
    if isinstance(value, np.ma.MaskedArray):
        hint = "func does not trace masked arrays; use x.filled(...) and np.where(mask, ..., ...)"
    elif isinstance(value, np.matrix):
        hint = "func does not trace np.matrix; pass np.asarray(x) and write products with @"
    elif hasattr(value, "unit") or hasattr(value, "units"):
        hint = "func computes on numbers without units; pass x.value (astropy), x.d (unyt) or x.magnitude (pint)"
    elif isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        hint = "func traces plain ndarrays only; pass np.asarray(x)"
    elif foreign := _foreign_number(value):
        hint = (
            f"its elements, {foreign} objects, would lose what they have beyond float64; convert with x.astype(float)"
        )
    elif isinstance(value, (np.ndarray, np.generic)):
        hint = f"arrays of dtype {value.dtype} carry no numbers to trace; convert with x.astype(float)"
    elif is_scipy_sparse(type(value)):
        hint = "write the operation with the matrix's own operators and methods (A @ x, A.multiply(x)), or x.toarray()"
    elif _is_sparse(type(value)):
        hint = "func computes on dense arrays; pass x.todense() or x.toarray()"
    else:
        hint = "pass an array, a number, or a nested list of numbers"
    raise UnsupportedArrayError(f"{kind} is not an array that func can compute on: {hint}")
