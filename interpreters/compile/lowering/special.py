"""Rows of scipy.special that are not one of its functions of the operands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from func.backends.support.special import ellipe, ellipk, ellipkm1, exprel, log1prel, of_order
from func.interpreters.compile.lowering.code import Code, LoweringContext, lowering
from func.interpreters.compile.lowering.literals import literal


def _register_order(function: Callable[..., Any]) -> None:
    @lowering(function.__name__)
    def _of_order(context: LoweringContext) -> Code:
        text = f"of_order(np, {function.__name__}, {{0}}, {context.params['order']})"
        return Code(text, support=(of_order, function))


for _function in (exprel, log1prel, ellipk, ellipkm1, ellipe):
    _register_order(_function)


def _register_call(name: str) -> None:
    @lowering(name)
    def _call(context: LoweringContext) -> Code:
        return Code(f"scipy.special.{name}({context.operands()})")


for _name in (
    *("airy", "sici", "shichi", "fresnel"),
    *("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"),
):
    _register_call(_name)


@lowering("softmax")
def _softmax(context: LoweringContext) -> Code:
    return Code(f"scipy.special.softmax({{0}}, {literal(context.params['axes'])})")


@lowering("log_softmax")
def _log_softmax(context: LoweringContext) -> Code:
    return Code(f"scipy.special.log_softmax({{0}}, {literal(context.params['axes'])})")


@lowering("logsumexp")
def _logsumexp(context: LoweringContext) -> Code:
    return Code(f"scipy.special.logsumexp({{0}}, {literal(context.params['axes'])})")


@lowering("weighted_logsumexp")
def _weighted_logsumexp(context: LoweringContext) -> Code:
    call = f"scipy.special.logsumexp({{0}}, {literal(context.params['axes'])}, {{1}}"
    return Code(f"{call}, return_sign=True)") if context.params["signed"] else Code(f"({call}),)")
