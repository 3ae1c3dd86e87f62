"""Elementwise rows that are not one ufunc."""

from __future__ import annotations

from func.backends.support.arrays import make_complex, nan_safe_multiply, nan_safe_multiply_into, select_into
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering, ufunc_code
from func.interpreters.compile.lowering.literals import dtype_text, literal


@lowering("conjugate")
def _conjugate(context: LoweringContext) -> Code:
    if context.out.weak:
        return Code("{0}.conjugate()")
    return ufunc_code("np.conjugate", context)


@lowering("exponent")
def _exponent(context: LoweringContext) -> Code:
    return Code("np.frexp({0})[1]")


@lowering("nan_safe_multiply")
def _nan_safe_multiply(context: LoweringContext) -> Code:
    plain = "nan_safe_multiply(np, {0}, {1})"
    return Code(
        "nan_safe_multiply_into(np, {0}, {1}, {out})",
        out=True,
        plain=plain,
        support=(nan_safe_multiply, nan_safe_multiply_into),
        inplace=tuple([place for place in context.matching() if place == 0]),
    )


@lowering("where")
def _where(context: LoweringContext) -> Code:
    plain = "np.where({0}, {1}, {2})"
    if context.avals[0].dtype.kind != "b" or context.avals[0].weak:
        return Code(plain)
    text = "select_into(np, {0}, {1}, {2}, {out})"
    inplace = tuple([place for place in context.matching() if place == 2])
    return Code(text, out=True, plain=plain, support=(select_into,), inplace=inplace)


@lowering("real")
def _real(context: LoweringContext) -> Code:
    if context.avals[0].dtype.kind != "c":
        return Code("np.real({0})", view=True)
    return Code(f"{context.array(0)}.real", view=True)


@lowering("imag")
def _imag(context: LoweringContext) -> Code:
    if context.avals[0].dtype.kind == "c":
        return Code(f"{context.array(0)}.imag", view=True)
    if context.out.shape:
        return Code(f"np.zeros({literal(context.out.shape)}, {dtype_text(context.out.dtype)})")
    return Code("np.imag({0})")


@lowering("complex")
def _complex(context: LoweringContext) -> Code:
    empty = f"np.empty({literal(context.out.shape)}, {dtype_text(context.out.dtype)})"
    plain = f"make_complex({{0}}, {{1}}, {empty})"
    if not context.out.shape:
        return Code(f"{plain}[()]", support=(make_complex,))
    return Code("make_complex({0}, {1}, {out})", out=True, plain=plain, support=(make_complex,))


@lowering("convert")
def _convert(context: LoweringContext) -> Code:
    have, want = context.avals[0].dtype, context.params["dtype"]
    name = dtype_text(want)
    drops = have.kind == "c" and want.kind != "c"
    if context.avals[0].weak:
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
    return Code(f'np.positive({x}, {{out}}, casting="unsafe")', out=True, plain=plain, inplace=context.matching())
