"""The table of elementary functions: the body of each one, and how it goes with libmvec's."""

from __future__ import annotations

from func.backends.llvm import (
    polynomials_circle,
    polynomials_composed,
    polynomials_exp,
    polynomials_hyperbolic,
    polynomials_mended,
    polynomials_normal,
    polynomials_powers,
)
from func.backends.llvm.polynomials import Body

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

BODIES: dict[str, Body] = {
    **polynomials_exp.FUNCTIONS,
    **polynomials_circle.FUNCTIONS,
    **polynomials_hyperbolic.FUNCTIONS,
    **polynomials_normal.FUNCTIONS,
    **polynomials_powers.FUNCTIONS,
    **polynomials_composed.UNARY,
    **polynomials_composed.BINARY,
}

BINARY = {"copysign", "power", "arctan2", "hypot", *polynomials_composed.BINARY}
ARITY = {name: 2 if name in BINARY else 1 for name in sorted({*INTRINSICS, *BODIES})}

# Around libmvec's functions: lanes for which it would leave the vector, and results past ±1.
MENDED: dict[str, Body] = polynomials_mended.FUNCTIONS

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
