"""Associated Legendre functions with their derivatives up to order two, which SciPy computes together.

The next derivative of the last comes from Legendre's equation, differentiated. DLMF 14.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.interpreters.core import Array, Primitive
from func.interpreters.primitives.elementwise.table import cos, sin
from func.interpreters.primitives.scipy_functions import special
from func.interpreters.primitives.special.builders import by_name


def _third(n: Array, m: Any, z: Array, w: Array, slope: Array, bend: Array) -> Array:
    """From (1 - z²) w'' - 2z w' + (n (n + 1) - m²/(1 - z²)) w = 0."""
    rest = 1 - z * z
    terms = 4 * z * bend + (2 - n * (n + 1) + m * m / rest) * slope + 2 * m * m * z / (rest * rest) * w
    return terms / rest


def _third_of_angle(n: Array, m: Array, theta: Array, w: Array, slope: Array, bend: Array) -> Array:
    """From w'' + cot θ w' + (n (n + 1) - m²/sin² θ) w = 0."""
    sine = sin(theta)
    cot = cos(theta) / sine
    factor = n * (n + 1) - (m * m + 1) / (sine * sine)
    return -cot * bend - factor * slope - 2 * m * m * cot / (sine * sine) * w


def _family(name: str, function: str, arguments: str, third: Callable[..., Array], **options: Any) -> list[Primitive]:
    """The primitives of the function with this number of derivatives as outputs: none, one and two."""
    variable = "theta" if "theta" in arguments else "z"
    place = arguments.split().index(variable)

    def one(order: int) -> Primitive:
        def impl(xp: Any, *args: Array) -> Any:
            *given, last = args
            keywords = {**options, "branch_cut": last} if "branch_cut" in arguments else options
            values = given if "branch_cut" in arguments else args
            out = special(xp, function)(*values, diff_n=order, **keywords)
            return out[0] if order == 0 else [out[i] for i in range(order + 1)]

        def slopes(*values: Array) -> Any:
            args, outs = values[: -order - 1], values[-order - 1 :]
            if order == 0:
                return primitives[1](*args)[1]
            if order == 1:
                return outs[1], primitives[2](*args)[2]
            degrees = args[:place]
            return outs[1], outs[2], third(*degrees, args[place], *outs)

        partials: Any = {variable: slopes}
        return by_name(f"{name}_{order}", arguments, outs=order + 1, impl=impl, **partials)

    primitives = [one(order) for order in (0, 1, 2)]
    return primitives


legendre_p = _family("legendre_p", "legendre_p", "n z", lambda n, z, *w: _third(n, 0, z, *w))
assoc_legendre_p = _family("assoc_legendre_p", "assoc_legendre_p", "n m z branch_cut", _third)
assoc_legendre_p_normalized = _family(
    "assoc_legendre_p_normalized", "assoc_legendre_p", "n m z branch_cut", _third, norm=True
)
sph_legendre_p = _family("sph_legendre_p", "sph_legendre_p", "n m theta", _third_of_angle)
