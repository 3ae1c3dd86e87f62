"""The table of elementary functions: one record for each, with where its body is and how it goes with libmvec's.

Bodies are imported when a function is first compiled.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from func.backends.llvm.math.vector_arithmetic import Body


class Function(NamedTuple):
    """What is true of one elementary function, which has NumPy's or SciPy's name."""

    module: str = ""
    """The module beside this one with the function of that name which emits the body; none for an intrinsic."""
    arity: int = 1
    intrinsic: str | None = None
    """LLVM's name of the instruction that computes it."""
    libmvec: str | None = None
    """C's name of it in libmvec."""
    preferred: tuple[int, ...] = ()
    """Widths of numbers in bits for which the body is preferred to libmvec's: it is as fast or faster on usual
    arguments, and several times faster where libmvec computes lane by lane (exp of -inf, powers of 0 and of negative
    numbers)."""
    fixup: str | None = None
    """The function of libmvec_fixups around libmvec's: lanes for which it would leave the vector, results past ±1."""


FUNCTIONS = {
    "sqrt": Function(intrinsic="sqrt"),
    "absolute": Function(intrinsic="fabs"),
    "floor": Function(intrinsic="floor"),
    "ceil": Function(intrinsic="ceil"),
    "trunc": Function(intrinsic="trunc"),
    "rint": Function(intrinsic="rint"),
    "copysign": Function(arity=2, intrinsic="copysign"),
    "exp": Function("exponential", libmvec="exp", preferred=(64, 32)),
    "exp2": Function("exponential", libmvec="exp2", preferred=(64, 32)),
    "expm1": Function("exponential", libmvec="expm1", preferred=(32,)),
    "log": Function("exponential", libmvec="log", fixup="logarithm"),
    "log2": Function("exponential", libmvec="log2", fixup="logarithm"),
    "log10": Function("exponential", libmvec="log10", fixup="logarithm"),
    "log1p": Function("exponential", libmvec="log1p", fixup="log1p"),
    "sin": Function("trigonometric", libmvec="sin", preferred=(32,), fixup="bounded"),
    "cos": Function("trigonometric", libmvec="cos", preferred=(32,), fixup="bounded"),
    "tan": Function("trigonometric", libmvec="tan"),
    "arcsin": Function("trigonometric", libmvec="asin", preferred=(64, 32)),
    "arccos": Function("trigonometric", libmvec="acos", preferred=(64, 32)),
    "arctan": Function("trigonometric", libmvec="atan"),
    "arctan2": Function("trigonometric", arity=2, libmvec="atan2"),
    "sinh": Function("hyperbolic", libmvec="sinh"),
    "cosh": Function("hyperbolic", libmvec="cosh", preferred=(64, 32)),
    "tanh": Function("hyperbolic", libmvec="tanh", preferred=(64, 32)),
    "arcsinh": Function("hyperbolic", libmvec="asinh", preferred=(64, 32)),
    "arccosh": Function("hyperbolic", libmvec="acosh", preferred=(64,)),
    "arctanh": Function("hyperbolic", libmvec="atanh", preferred=(64, 32)),
    "erf": Function("normal", libmvec="erf"),
    "erfc": Function("normal", libmvec="erfc", fixup="erfc"),
    "ndtr": Function("normal"),
    "log_ndtr": Function("normal"),
    "power": Function("powers", arity=2, libmvec="pow", preferred=(64, 32)),
    "cbrt": Function("powers", libmvec="cbrt", preferred=(64, 32)),
    "hypot": Function("powers", arity=2, libmvec="hypot", preferred=(64, 32)),
    "expit": Function("composed"),
    "log_expit": Function("composed"),
    "logit": Function("composed"),
    "gammaln": Function("composed"),
    "gamma": Function("composed"),
    "logaddexp": Function("composed", arity=2),
    "logaddexp2": Function("composed", arity=2),
    "xlogy": Function("composed", arity=2),
    "xlog1py": Function("composed", arity=2),
}


def body_of(name: str) -> Body:
    """The body of a function made of instructions."""
    return _imported(FUNCTIONS[name].module, name)


def fixup_of(name: str) -> Body:
    """What surrounds a function of libmvec, which is its second argument."""
    fixup = FUNCTIONS[name].fixup
    assert fixup is not None
    return _imported("libmvec_fixups", fixup)


def _imported(module: str, name: str) -> Body:
    body: Body = getattr(importlib.import_module(f"func.backends.llvm.math.{module}"), name)
    return body
