"""Elementwise rows that are not one ufunc."""

from __future__ import annotations

from func.backends.support.arrays import make_complex, select_into, zero_wins, zero_wins_into
from func.interpreters.compile.lowering.code import Code, Site, lowering, ufunc_code
from func.interpreters.compile.lowering.literals import dtype_text, literal


@lowering("conjugate")
def _conjugate(site: Site) -> Code:
    if site.out.weak:
        return Code("{0}.conjugate()")
    return ufunc_code("np.conjugate", site)


@lowering("exponent")
def _exponent(site: Site) -> Code:
    return Code("np.frexp({0})[1]")


@lowering("zero_wins")
def _zero_wins(site: Site) -> Code:
    plain = "zero_wins(np, {0}, {1})"
    return Code(
        "zero_wins_into(np, {0}, {1}, {out})",
        out=True,
        plain=plain,
        support=(zero_wins, zero_wins_into),
        inplace=tuple([place for place in site.matching() if place == 0]),
    )


@lowering("where")
def _where(site: Site) -> Code:
    plain = "np.where({0}, {1}, {2})"
    if site.avals[0].dtype.kind != "b" or site.avals[0].weak:
        return Code(plain)
    text = "select_into(np, {0}, {1}, {2}, {out})"
    inplace = tuple([place for place in site.matching() if place == 2])
    return Code(text, out=True, plain=plain, support=(select_into,), inplace=inplace)


@lowering("real")
def _real(site: Site) -> Code:
    if site.avals[0].dtype.kind != "c":
        return Code("np.real({0})", view=True)
    return Code(f"{site.array(0)}.real", view=True)


@lowering("imag")
def _imag(site: Site) -> Code:
    if site.avals[0].dtype.kind == "c":
        return Code(f"{site.array(0)}.imag", view=True)
    if site.out.shape:
        return Code(f"np.zeros({literal(site.out.shape)}, {dtype_text(site.out.dtype)})")
    return Code("np.imag({0})")


@lowering("complex")
def _complex(site: Site) -> Code:
    empty = f"np.empty({literal(site.out.shape)}, {dtype_text(site.out.dtype)})"
    plain = f"make_complex({{0}}, {{1}}, {empty})"
    if not site.out.shape:
        return Code(f"{plain}[()]", support=(make_complex,))
    return Code("make_complex({0}, {1}, {out})", out=True, plain=plain, support=(make_complex,))


@lowering("convert")
def _convert(site: Site) -> Code:
    have, want = site.avals[0].dtype, site.params["dtype"]
    name = dtype_text(want)
    drops = have.kind == "c" and want.kind != "c"
    if site.avals[0].weak:
        return Code(f"{name}({{0}}.real)" if drops else f"{name}({{0}})")
    x = "{0}.real" if drops else "{0}"
    plain = f"{x}.astype({name})"
    if have.kind == "V" or want.kind == "V":
        return Code(plain)
    if want.kind == "b":
        return Code(f"np.not_equal({x}, 0, {{out}})", out=True, plain=plain)
    if have.kind == "b":
        return Code(f"np.add({{0}}, False, {{out}}, dtype={name})", out=True, plain=plain)
    if have.kind == "f" and want.kind in "iu":
        return Code(plain)
    return Code(f'np.positive({x}, {{out}}, casting="unsafe")', out=True, plain=plain, inplace=site.matching())
