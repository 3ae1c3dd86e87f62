"""Running sums, products and extrema: every row of elements from the one before it."""

from __future__ import annotations

import math

from func.backends.fusion import Val
from func.backends.kernels import Apply, Buffer, Instruction, Load, Nest, Reg, Spot, Stage, Store, row_major
from func.interpreters.native.rules import Site, native

OPS = {"cumsum": "add", "cumprod": "multiply", "cummax": "maximum", "cummin": "minimum"}


@native(*OPS)
def _running(site: Site) -> Val:
    x, axis = site.convert(site.args[0], site.out.dtype), site.params["axis"]
    if site.params.get("reverse", False):
        return _backwards(site, running(site, OPS[site.equation.row.name], _backwards(site, x, axis), axis), axis)
    return running(site, OPS[site.equation.row.name], x, axis)


def _backwards(site: Site, x: Val, axis: int) -> Val:
    entries = [(length - 1, -1, length) if i == axis else (0, 1, length) for i, length in enumerate(x.shape)]
    return site.fuser.slices(x, entries)


def running(site: Site, op: str, x: Val, axis: int) -> Val:
    """op of all elements up to each along an axis, one after the other as NumPy has it."""
    fuser, shape = site.fuser, x.shape
    buffer = Buffer(math.prod(shape), x.dtype)
    whole = fuser.located(buffer, shape)
    first = [(0, 1, 1 if i == axis else length) for i, length in enumerate(shape)]
    done = fuser.write(fuser.slices(whole, first), fuser.slices(x, first))
    if shape[axis] > 1:
        done = fuser.add_item(_steps(op, fuser.spot(x), Spot(buffer, 0, row_major(shape)), shape, axis))
    return fuser.result(buffer, shape, done)


def _steps(op: str, x: Spot, out: Spot, shape: tuple[int, ...], axis: int) -> Nest:
    """All rows but the first. Rows that lie along other axes are vectors; along the last axis one element follows the
    other."""
    others = [i for i, length in enumerate(shape) if i != axis and length != 1]
    along_last = not others or axis > others[-1]
    order = [*others, axis] if along_last else [axis, *others]
    step = out.strides[axis]

    def spot(of: Spot, offset: int) -> Spot:
        return Spot(of.buffer, of.offset + offset, tuple([of.strides[i] for i in order]))

    before, present, made = [Reg(out.buffer.dtype) for _ in range(3)]
    code: list[Instruction] = [
        Load(before, spot(out, 0)),
        Load(present, spot(x, x.strides[axis])),
        Apply(made, op, (before, present)),
        Store(spot(out, step), made),
    ]
    domain = tuple([shape[i] - (i == axis) for i in order])
    return Nest(domain, len(order) if along_last else 1, [Stage(True, code)])
