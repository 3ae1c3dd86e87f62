"""Conversions of traced values to Python and NumPy values: float(), int(), bool(), .item(), __array__."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from func.interpreters.core import Tracer, concrete
from func.interpreters.core.errors import TracerConversionError, UnsupportedFunctionError
from func.interpreters.core.source import at_line, user_line
from func.interpreters.grad import Grad
from func.interpreters.imperative.interpreter import Imperative
from func.interpreters.jvp import Jvp
from func.interpreters.stage import Recorder
from func.numpy.argument_checks import to_host
from func.numpy.inplace import getitem


def carries_derivative(tracer: Tracer) -> bool:
    """True where reading the value would lose the derivative of some running transform.

    The number in a tensor may be read, as in `loss.item()`: `backward` does not differentiate through it.
    """
    value: Any = tracer
    while type(value) is Tracer:
        if isinstance(value._interpreter, (Grad, Jvp, Recorder)) and type(value._interpreter) is not Imperative:
            return True
        value = value._value
    return False


def _hint(otherwise: str) -> str:
    """What to write instead, judged from the user's line."""
    line = user_line(3)
    text = line.text if line is not None else ""
    file = "" if line is None else line.file.replace("\\", "/")
    for module in ("special", "linalg"):
        if f"/scipy/{module}/" in file:
            return f"This function of SciPy's takes plain arrays only: func.{module} has it for traced ones."
    if "/scipy/" in file:
        return "SciPy's functions take plain arrays only: func.linalg and func.special have many for traced ones."
    left, is_assignment, _ = text.partition("=")
    if is_assignment and left.rstrip().endswith("]"):
        return (
            "A plain array cannot hold a traced value: make the array with np.zeros_like(x, shape=...) of a traced x, "
            "or collect the values in a list and np.stack or np.array it."
        )
    return otherwise


def refuse_conversion(tracer: Tracer) -> NoReturn:
    """Raise because a traced array would become a plain NumPy array."""
    hint = _hint(
        "Use NumPy functions on it (np.sin, not math.sin; np.array and np.asarray work inside a transform). To index a "
        "plain array a by it write func.numpy.take(a, i, axis=0) or func.tensor(a)[i]."
    )
    raise TracerConversionError(
        f"a traced value of shape {tracer.shape} and dtype {tracer.dtype} was converted to a plain NumPy array, "
        f"which would lose its derivative or its batch axis{at_line()}\n{hint}"
    )


class NoAttributeError(UnsupportedFunctionError, AttributeError):
    """An attribute of ndarray that traced arrays lack; an AttributeError, so that `hasattr` and `getattr` work."""


def no_attribute(tracer: Tracer, name: str) -> NoReturn:
    """Raise because a traced array has no such attribute."""
    if name.startswith("__") or not hasattr(np.ndarray, name):
        raise AttributeError(f"'Tracer' object has no attribute {name!r}")
    hint = _hint("Use NumPy functions on it, which make new arrays.")
    raise NoAttributeError(f"`.{name}` is about the memory of an array, and a traced one has none{at_line()}\n{hint}")


def _scalar(tracer: Tracer, what: str) -> Any:
    if tracer.shape != () and int(np.prod(tracer.shape)) != 1:
        raise TypeError(f"only arrays with one element convert to a Python number, not shape {tracer.shape}")
    return to_host(concrete(tracer)).reshape(())[()]


def to_bool(tracer: Tracer) -> bool:
    """`if x:`; the value is piecewise constant, so that reading it loses no derivative."""
    if tracer.shape != () and int(np.prod(tracer.shape)) != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use np.any(x) or np.all(x)"
        )
    return bool(_scalar(tracer, "bool"))


def to_int(tracer: Tracer) -> int:
    """int(x); the value is piecewise constant, so that reading it loses no derivative."""
    return int(_scalar(tracer, "int"))


def to_index(tracer: Tracer) -> int:
    """operator.index(x) of an integer scalar."""
    if tracer.dtype.kind not in "iu" or tracer.shape != ():
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    return int(_scalar(tracer, "index"))


def _refuse_number(tracer: Tracer, call: str) -> NoReturn:
    hint = _hint(
        "Keep it an array: NumPy functions and operators take 0-d arrays (np.sin, not math.sin). To read the number "
        "on purpose write float(func.stop_gradient(x)), or x.item() of a tensor."
    )
    raise TracerConversionError(f"{call} of a traced value would silently lose its derivative{at_line()}\n{hint}")


def _is_read_unseen(tracer: Tracer) -> bool:
    """Whether a tensor becomes a number without float() in the user's line.

    math.sin, or an assignment into a plain array, would drop the gradient in silence.
    """
    if type(tracer._interpreter) is not Imperative:
        return False
    line = user_line(3)
    return line is not None and line.text != "" and "float" not in line.text


def to_float(tracer: Tracer) -> float:
    """float(x); raises where a derivative would be lost."""
    if tracer.dtype.kind in "fc" and (carries_derivative(tracer) or _is_read_unseen(tracer)):
        _refuse_number(tracer, "float()")
    return float(_scalar(tracer, "float"))


def to_complex(tracer: Tracer) -> complex:
    """complex(x); raises where a derivative would be lost."""
    if tracer.dtype.kind in "fc" and carries_derivative(tracer):
        _refuse_number(tracer, "complex()")
    return complex(_scalar(tracer, "complex"))


def item(tracer: Tracer, *args: int) -> Any:
    """x.item(); raises where a derivative would be lost."""
    element: Any = tracer
    if args:
        element = getitem(tracer.reshape(-1), args[0]) if len(args) == 1 else getitem(tracer, args)  # type: ignore[attr-defined]
        if type(element) is not Tracer:
            return element.item()
    if element.dtype.kind in "fc" and carries_derivative(element):
        _refuse_number(element, ".item()")
    return _scalar(element, "item").item()


def tolist(tracer: Tracer) -> Any:
    """x.tolist(); raises where a derivative would be lost."""
    if tracer.dtype.kind in "fc" and carries_derivative(tracer):
        _refuse_number(tracer, ".tolist()")
    return to_host(concrete(tracer)).tolist()
