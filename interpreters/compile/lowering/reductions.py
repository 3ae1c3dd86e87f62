"""Reductions over axes, as the reduce methods of ufuncs; CuPy has functions instead."""

from __future__ import annotations

import math

from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import axes_text, dtype_text, literal
from func.interpreters.primitives.structural.reductions import counts_exactly


def _reduced(name: str, ufunc: str, context: LoweringContext, out: str = "") -> str:
    """A sum, product, extremum, any or all, into `out` where it is given."""
    axes, dtype = axes_text(context.params["axes"]), context.params.get("dtype")
    if context.device:
        arguments = [axes, *([literal(dtype)] if name in ("sum", "prod") else []), *([out] if out else [])]
        return f"np.{name}({{0}}, {', '.join(arguments)})"
    arguments = [axes, *([literal(dtype)] if out or dtype is not None else []), *([out] if out else [])]
    return f"np.{ufunc}.reduce({{0}}, {', '.join(arguments)})"


def _register(name: str, ufunc: str) -> None:
    @lowering(name)
    def _reduction(context: LoweringContext) -> Code:
        return Code(_reduced(name, ufunc, context, "{out}"), out=True, plain=_reduced(name, ufunc, context))


for _name, _ufunc in (
    ("sum", "add"),
    ("prod", "multiply"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("any", "logical_or"),
    ("all", "logical_and"),
):
    _register(_name, _ufunc)


@lowering("mean")
def _mean(context: LoweringContext) -> Code:
    number = math.prod([context.avals[0].shape[axis] for axis in context.params["axes"]])
    total = _reduced("sum", "add", context)
    if not counts_exactly(context.out.dtype, number):
        return Code(
            f"np.asarray(np.true_divide({total}, np.intp({number}))).astype({dtype_text(context.out.dtype)})[()]"
        )
    text = f"np.true_divide({_reduced('sum', 'add', context, '{out}')}, {number}, {{out}})"
    return Code(text, out=True, plain=f"np.true_divide({total}, {number})")


@lowering("variance")
def _variance(context: LoweringContext) -> Code:
    axes, ddof = axes_text(context.params["axes"]), literal(context.params["ddof"])
    return Code(f"{{0}}.var({axes}, None, {{out}}, {ddof})", out=True, plain=f"{{0}}.var({axes}, None, None, {ddof})")


@lowering("argmax")
def _argmax(context: LoweringContext) -> Code:
    axis = context.params["axis"]
    return Code(f"{{0}}.argmax({axis}, {{out}})", out=True, plain=f"{{0}}.argmax({axis})")


@lowering("argmin")
def _argmin(context: LoweringContext) -> Code:
    axis = context.params["axis"]
    return Code(f"{{0}}.argmin({axis}, {{out}})", out=True, plain=f"{{0}}.argmin({axis})")


def _register_masked(name: str, ufunc: str, neutral: int) -> None:
    @lowering(f"{name}_with")
    def _masked(context: LoweringContext) -> Code:
        axes, dtype, initial = [literal(context.params[key]) for key in ("axes", "dtype", "initial")]
        if context.device:
            kept = f"np.where({{1}}, {{0}}, np.asarray({neutral}, {dtype_text(context.avals[0].dtype)}))"
            total = f"np.{name}({kept}, {axes}, {dtype})"
            return Code(total if initial == "None" else f"np.{ufunc}({total}, {initial})")
        options = "" if initial == "None" else f", initial={initial}"
        call = f"np.{ufunc}.reduce({{0}}, {axes}, {dtype}"
        return Code(f"{call}, {{out}}, where={{1}}{options})", out=True, plain=f"{call}, where={{1}}{options})")


_register_masked("sum", "add", 0)
_register_masked("prod", "multiply", 1)
