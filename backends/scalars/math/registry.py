"""The table of elementary functions: for each its body and its counterpart in libmvec.

Bodies are imported when a function is first compiled.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from func.backends.scalars.math.vector_arithmetic import FunctionBody


class ElementaryFunction(NamedTuple):
    """One elementary function, by NumPy's or SciPy's name."""

    module: str = ""
    """The module in this folder with the function of that name which emits the body; none for an intrinsic."""
    arity: int = 1
    intrinsic: str | None = None
    """LLVM's name of the instruction that computes it."""
    libmvec: str | None = None
    """C's name of it in libmvec."""
    preferred: tuple[int, ...] = ()
    """Widths of numbers in bits for which the body replaces libmvec's. It is as fast on usual arguments, and several
    times faster where libmvec computes by lane (exp of -inf, powers of 0 and of negative numbers)."""
    part: str | None = None
    """The function of the same argument that its body, a few instructions written where it is called, shares with
    others."""
    is_internal: bool = False
    """Whether it is not a function of NumPy's or SciPy's."""
    fixup: str | None = None
    """The fix-up around libmvec's function, in `composed`: for lanes that would leave the vector, and results
    past ±1.
    """


FUNCTIONS = {
    "sqrt": ElementaryFunction(intrinsic="sqrt"),
    "absolute": ElementaryFunction(intrinsic="fabs"),
    "floor": ElementaryFunction(intrinsic="floor"),
    "ceil": ElementaryFunction(intrinsic="ceil"),
    "trunc": ElementaryFunction(intrinsic="trunc"),
    "rint": ElementaryFunction(intrinsic="rint"),
    "copysign": ElementaryFunction(arity=2, intrinsic="copysign"),
    "exp": ElementaryFunction("exponential", libmvec="exp", preferred=(64, 32)),
    "exp2": ElementaryFunction("exponential", libmvec="exp2", preferred=(64, 32)),
    "expm1": ElementaryFunction("exponential", libmvec="expm1", preferred=(32,)),
    "log": ElementaryFunction("exponential", libmvec="log", fixup="logarithm"),
    "log2": ElementaryFunction("exponential", libmvec="log2", fixup="logarithm"),
    "log10": ElementaryFunction("exponential", libmvec="log10", fixup="logarithm"),
    "log1p": ElementaryFunction("exponential", libmvec="log1p", fixup="log1p"),
    "sin": ElementaryFunction("trigonometric", libmvec="sin", preferred=(32,), fixup="bounded"),
    "cos": ElementaryFunction("trigonometric", libmvec="cos", preferred=(32,), fixup="bounded"),
    "tan": ElementaryFunction("trigonometric", libmvec="tan"),
    "arcsin": ElementaryFunction("trigonometric", libmvec="asin", preferred=(64, 32)),
    "arccos": ElementaryFunction("trigonometric", libmvec="acos", preferred=(64, 32)),
    "arctan": ElementaryFunction("trigonometric", libmvec="atan"),
    "arctan2": ElementaryFunction("trigonometric", arity=2, libmvec="atan2"),
    "sinh": ElementaryFunction("hyperbolic", libmvec="sinh"),
    "cosh": ElementaryFunction("hyperbolic", libmvec="cosh", preferred=(64, 32)),
    "tanh": ElementaryFunction("hyperbolic", libmvec="tanh", preferred=(64, 32)),
    "sech_squared": ElementaryFunction("hyperbolic", part="expm1_double_quarter"),
    "tanh_with_sech_squared": ElementaryFunction("hyperbolic", part="expm1_double_quarter", is_internal=True),
    "expm1_double_quarter": ElementaryFunction("hyperbolic", is_internal=True),
    "arcsinh": ElementaryFunction("hyperbolic", libmvec="asinh", preferred=(64, 32)),
    "arccosh": ElementaryFunction("hyperbolic", libmvec="acosh", preferred=(64,)),
    "arctanh": ElementaryFunction("hyperbolic", libmvec="atanh", preferred=(64, 32)),
    "erf": ElementaryFunction("normal", libmvec="erf"),
    "erfc": ElementaryFunction("normal", libmvec="erfc", fixup="erfc"),
    "ndtr": ElementaryFunction("normal"),
    "log_ndtr": ElementaryFunction("normal"),
    "power": ElementaryFunction("powers", arity=2, libmvec="pow", preferred=(64, 32)),
    "cbrt": ElementaryFunction("powers", libmvec="cbrt", preferred=(64, 32)),
    "hypot": ElementaryFunction("powers", arity=2, libmvec="hypot", preferred=(64, 32)),
    "expit": ElementaryFunction("composed"),
    "log_expit": ElementaryFunction("composed"),
    "logit": ElementaryFunction("composed"),
    "gammaln": ElementaryFunction("composed"),
    "gamma": ElementaryFunction("composed"),
    "logaddexp": ElementaryFunction("composed", arity=2),
    "logaddexp2": ElementaryFunction("composed", arity=2),
    "xlogy": ElementaryFunction("composed", arity=2),
    "xlog1py": ElementaryFunction("composed", arity=2),
}
PARTS = {function.part for function in FUNCTIONS.values()}


def body_of(name: str) -> FunctionBody:
    """The body of a function that is not an intrinsic."""
    return _imported(FUNCTIONS[name].module, name)


def fixup_of(name: str) -> FunctionBody:
    """The fix-up of a function of libmvec, which is its second argument."""
    fixup = FUNCTIONS[name].fixup
    assert fixup is not None
    return _imported("composed", fixup)


def _imported(module: str, name: str) -> FunctionBody:
    body: FunctionBody = getattr(importlib.import_module(f"func.backends.scalars.math.{module}"), name)
    return body
