"""Names in exported C: the free names, and one name for each label."""

from __future__ import annotations

import re

_KEYWORDS = """
auto bool break case catch char class complex const continue default delete do double else enum extern false float for
friend goto if inline int long namespace new operator private protected public register restrict return short signed
sizeof static status struct switch template this throw true try typedef union unsigned using virtual void volatile while
work
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Names that a parameter of C or C++ cannot have, or that the text has itself."""
_LIBRARY = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin
fmod frexp hypot ilogb j0 j1 jn ldexp lgamma log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow
remainder remquo rint round scalbn sin sinh sqrt tan tanh tgamma trunc y0 y1 yn cabs carg cimag conj cproj creal
"""
_OTHERS = """
abort abs calloc div errno exit free isfinite isinf isnan labs main malloc memcpy memmove memory memset printf puts rand
realloc signbit signgam stderr stdin stdout system time
"""
LIBRARY = frozenset(
    [f"{prefix}{name}{end}" for name in _LIBRARY.split() for prefix in ("", "c") for end in ("", "f", "l")]
    + _OTHERS.split()
)
"""Names of the C library that the text may use, or that would take its place."""


def is_c_name(name: str) -> bool:
    """Whether a function in C can have a name."""
    return bool(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)) and name not in KEYWORDS | LIBRARY and not _is_macro(name)


def _is_macro(name: str) -> bool:
    """Whether a name looks like a macro of the C library: INFINITY, I, or a fixed-width type."""
    return name == "I" or bool(re.fullmatch(r"[A-Z][A-Z0-9_]+|\w+_t|unix|linux", name))


def identifier(text: str, taken: set[str]) -> str:
    """A unique C identifier for a label: params['w'] becomes params_w."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not name or not name[0].isalpha():
        name = f"x{name}"
    if name in KEYWORDS | LIBRARY or _is_macro(name) or re.fullmatch(r"[impsv]\d+|func_.*|end\d+", name):
        name += "_"
    while name in taken:
        name += "_"
    taken.add(name)
    return name
