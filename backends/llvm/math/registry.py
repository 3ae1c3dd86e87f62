"""The table of elementary functions: where the body of each one is, and how it goes with libmvec's.

Bodies are imported when a function is first compiled.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from func.backends.llvm.math.vector_arithmetic import Body

# LLVM's name of what one instruction computes.
INTRINSICS = {
    "sqrt": "sqrt",
    "absolute": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "copysign": "copysign",
}

# The functions that each of the modules beside this one has in its `FUNCTIONS`.
MODULES = {
    "exponential": "exp exp2 expm1 log log2 log10 log1p",
    "trigonometric": "sin cos tan arcsin arccos arctan arctan2",
    "hyperbolic": "sinh cosh tanh arcsinh arccosh arctanh",
    "normal": "erf erfc ndtr log_ndtr",
    "powers": "power cbrt hypot",
    "composed": "expit log_expit logit sinc gammaln gamma logaddexp logaddexp2 xlogy xlog1py",
}
PLACES = {name: module for module, listed in MODULES.items() for name in listed.split()}

BINARY = frozenset(["copysign", "power", "arctan2", "hypot", "logaddexp", "logaddexp2", "xlogy", "xlog1py"])
ARITY = {name: 2 if name in BINARY else 1 for name in sorted({*INTRINSICS, *PLACES})}

# Around libmvec's functions: lanes for which it would leave the vector, and results past ±1.
MENDED = frozenset(["log", "log2", "log10", "log1p", "sin", "cos", "erfc"])

# The functions of which the own one is preferred to libmvec's, by the bits of a number: as fast or faster on usual
# arguments, several times faster where libmvec computes lane by lane (exp of -inf, powers of 0 and negative numbers).
OWN = {
    (name, bits)
    for bits, listed in (
        (64, "exp exp2 arcsin arccos cosh tanh arcsinh arccosh arctanh power hypot cbrt"),
        (32, "exp exp2 expm1 sin cos arcsin arccos cosh tanh arcsinh arctanh power hypot cbrt"),
    )
    for name in listed.split()
}


def body_of(name: str) -> Body:
    """The body of a function made of own instructions."""
    return _found(PLACES[name], name)


def mended_body_of(name: str) -> Body:
    """What a function of libmvec is mended by; its second argument is that function."""
    return _found("libmvec_fixups", name)


def _found(module: str, name: str) -> Body:
    table: dict[str, Body] = importlib.import_module(f"func.backends.llvm.math.{module}").FUNCTIONS
    return table[name]
