"""Forward Laplacian: values with their Jacobian and their Laplacian with respect to the inputs of a function.

A traced value y carries one array L = Σₖ ∂²y/∂xₖ² over the elements of all inputs. For each input x on which it depends
it also carries the stack of the tangents J eₖ along all elements k of x. The kind of a primitive g determines its
effect; J and L without an operand are those of the operand:

    linear         J ← g(J)          L ← g(L)
    bilinear       J ← B(Jx, y) + B(x, Jy)           L ← B(Lx, y) + B(x, Ly) + 2 Σₖ B(Jx eₖ, Jy eₖ)
    elementwise    J ← Σᵢ pᵢ Jᵢ      L ← Σᵢ pᵢ Lᵢ + Σᵢⱼ (∂pᵢ/∂xⱼ) Sᵢⱼ      for the partials pᵢ, Sᵢⱼ = Σₖ Jᵢeₖ · Jⱼeₖ
    all others     by the jvp, and by the jvp of the jvp, which is summed over all directions

So second derivatives are summed as they arise; none is carried.

Jacobians are compressed. If an axis of the input is an axis of y, an element of y may depend on elements of x with its
own index there alone. The stack then needs no direction for that axis: the axis is *carried*. All axes of an input are
carried at first, and elementwise functions keep them so. An axis is expanded into directions where an operation mixes
its elements.

Source: R. Li et al. (2023), arXiv:2307.08214.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from func.backends.quiet import quietly
from func.interpreters.core import (
    PYTHON_SCALARS,
    ZERO,
    Array,
    Bilinear,
    Interpreter,
    Linear,
    Params,
    Primitive,
    Shape,
    Tracer,
    add_tangents,
    bind,
    dtype_of,
    is_inexact,
    raise_if_captured,
    shape_of,
    snapshot,
    unboxed,
    zeros_like,
)
from func.interpreters.core.modes import MODE, body_above, is_suspended
from func.interpreters.drivers import all_mapped, jvp_flat, map_flat
from func.interpreters.jvp import Jvp
from func.interpreters.nan_safe import form_for
from func.interpreters.primitives.elementwise.builder import Elementwise, multiply
from func.interpreters.primitives.elementwise.partials import in_precision_of
from func.interpreters.primitives.structural.contraction import contract, spec
from func.interpreters.primitives.structural.identity import as_seed
from func.interpreters.primitives.structural.shapes import (
    Where,
    broadcast,
    convert,
    full_like,
    permute,
    reduce_sum,
    reshape,
    where,
)
from func.interpreters.structural_zeros import StructuralZeros, without_mask

Axes = dict[int, int]
"""Carried axes: the axis of the value for an axis of the input."""


@dataclass(slots=True)
class JacobianBlock:
    """The Jacobian of a value by one input: tangents along the axes that are not carried, in C order, stacked.

    `is_input`: the value is the input itself.
    """

    stack: Array
    carried: Axes
    is_input: bool = False


@dataclass(slots=True)
class Second:
    """The attachment of a value: its Jacobian by the number of the input, and its Laplacian or ZERO."""

    blocks: dict[int, JacobianBlock]
    laplacian: Any


class Laplace(Interpreter):
    """Carries Jacobians and Laplacians. With `structural`, Jacobians know their structural zeros."""

    differentiates = True
    takes_further = True

    def __init__(self, transform: str, structural: StructuralZeros | None = None) -> None:
        super().__init__(transform)
        self.structural = structural
        self.shapes: list[Shape] = []
        self.inputs: list[Array] = []

    def lift(self, value: Array) -> Tracer:
        """A traced input."""
        shape = shape_of(value)
        ones = full_like(value, 1, (1, *shape))
        block = JacobianBlock(
            ones if self.structural is None else self.structural.lift(ones),
            {axis: axis for axis in range(len(shape))},
            True,
        )
        self.shapes.append(shape)
        self.inputs.append(value)
        return Tracer(self, value, Second({len(self.inputs) - 1: block}, ZERO))

    def held(self, value: Array) -> Tracer:
        """A traced value that depends on no input."""
        return Tracer(self, value, Second({}, ZERO))

    def owns(self, value: Any) -> bool:
        """Whether a value is traced here."""
        return type(value) is Tracer and value._interpreter is self

    def unpack(self, value: Array) -> tuple[Array, Any]:
        """(value, Laplacian or ZERO) of an output."""
        if self.owns(value):
            laplacian = value._attached.laplacian
            return value._value, laplacian if laplacian is ZERO else without_mask(laplacian)
        return snapshot(value), ZERO

    def apply(self, primitive: Primitive, args: tuple[Array, ...], params: Params) -> Any:
        if MODE.get() is not None and (body := body_above(self.level)) is not None:
            return body.apply(primitive, args, params)
        args = tuple([arg if self.owns(arg) else unboxed(arg) for arg in args])
        values = tuple([arg._value if self.owns(arg) else arg for arg in args])
        if not primitive.differentiable or (MODE.get() is not None and is_suspended(self.level)):
            return bind(primitive, values, params)
        compiled = params.get("compiled")
        if compiled is not None:  # the call of a program, whose equations are interpreted one by one
            form = form_for(compiled, values) if self.structural is None else compiled.nan_safe_variant() or compiled
            return tuple(form.run_on(*args))
        seconds = [arg._attached if self.owns(arg) else None for arg in args]
        if isinstance(primitive, Elementwise):
            out = primitive(*values)
            return self._as_tracers(out, quietly(self._elementwise, primitive, values, seconds, out))
        if isinstance(primitive, Bilinear):
            out = bind(primitive, values, params)
            return self._as_tracers(out, quietly(self._bilinear, primitive, values, seconds, params, out))
        if isinstance(primitive, Linear):
            out = bind(primitive, values, params)
            return self._several(primitive, out, quietly(self._linear, primitive, values, seconds, params, out))
        return self._several(primitive, *self._general(primitive, values, seconds, params))

    def _as_tracers(self, out: Array, second: Second) -> Array:
        if not is_inexact(dtype_of(out)) or (not second.blocks and second.laplacian is ZERO):
            return out
        return Tracer(self, out, second)

    def _several(self, primitive: Primitive, out: Any, seconds: Sequence[Second]) -> Any:
        if not primitive.multiple:
            return self._as_tracers(out, seconds[0])
        raise_if_captured(self, out)
        return tuple([self._as_tracers(value, second) for value, second in zip(out, seconds, strict=True)])

    def _elementwise(
        self, primitive: Elementwise, values: tuple[Array, ...], seconds: Sequence[Second | None], out: Array
    ) -> Second:
        if not is_inexact(dtype_of(out)):
            return Second({}, ZERO)
        shape = shape_of(out)
        saved = in_precision_of(out, (*values, out)) if primitive.mixes else (*values, out)
        active = {
            place: second
            for place, second in enumerate(seconds)
            if second is not None and primitive.partials[place] is not None
        }
        aligned = self._aligned(active, values, shape)
        blocks: dict[int, JacobianBlock] = {}
        for number, by_place in aligned.items():
            stack: Any = ZERO
            for place, block in by_place.items():
                stack = add_tangents(stack, primitive.scaled(place, saved, block.stack, False))
            first = next(iter(by_place.values()))
            blocks[number] = JacobianBlock(_fitted(stack, out, (shape_of(first.stack)[0], *shape)), first.carried)
        laplacian: Any = ZERO
        for place, second in active.items():
            if second.laplacian is not ZERO:
                laplacian = add_tangents(laplacian, primitive.scaled(place, saved, second.laplacian, False))
        laplacian = add_tangents(laplacian, self._bend(primitive, saved, active, aligned, shape))
        return Second(blocks, laplacian if laplacian is ZERO else _fitted(laplacian, out, shape))

    def _bend(
        self,
        primitive: Elementwise,
        saved: Sequence[Array],
        active: Iterable[int],
        aligned: dict[int, dict[int, JacobianBlock]],
        shape: Shape,
    ) -> Any:
        """Σᵢⱼ (∂pᵢ/∂xⱼ) Sᵢⱼ: for each i the derivative of the partial along the tangents Sᵢⱼ of xⱼ.

        A real operand together with a complex one has complex Sᵢⱼ, and takes part in the partial as a complex number.
        """
        total: Any = ZERO
        products: dict[tuple[int, int], Any] = {}

        def product(i: int, j: int) -> Any:
            key = (min(i, j), max(i, j))
            if key not in products:
                inner: Any = ZERO
                for by_place in aligned.values():
                    if i in by_place and j in by_place:
                        inner = add_tangents(inner, _summed(multiply(by_place[i].stack, by_place[j].stack)))
                products[key] = inner
            return products[key]

        for i in active:
            partial = primitive.partials[i]
            assert partial is not None
            places = [j for j in active if primitive.arity in partial.needs or j in partial.needs]
            if not places:
                continue
            inner = {j: x for j, x in [(j, product(i, j)) for j in places] if x is not ZERO}
            if not inner:
                continue
            points = list(saved)
            for j, x in inner.items():
                if dtype_of(x).kind == "c" and dtype_of(points[j]).kind != "c":
                    points[j] = convert(points[j], dtype=dtype_of(saved[-1]))
            inner = {j: _fitted(x, points[j], shape) for j, x in inner.items()}
            points = [_widened(x, shape) for x in points]
            tangents = [inner.get(j, ZERO) for j in range(primitive.arity)]
            moved: Any = ZERO
            if primitive.arity in partial.needs:
                for j, x in inner.items():
                    moved = add_tangents(moved, primitive.scaled(j, saved, x, False))
                moved = _fitted(moved, saved[-1], shape)
            total = add_tangents(total, _tangent(partial.evaluate, points, [*tangents, moved]))
        return total

    def _aligned(
        self, active: dict[int, Second], values: Sequence[Array], shape: Shape
    ) -> dict[int, dict[int, JacobianBlock]]:
        """The blocks of operands by input and operand, with the rank of the broadcast shape and equal carried axes."""
        aligned: dict[int, dict[int, JacobianBlock]] = {}
        for place, second in active.items():
            own = shape_of(values[place])
            extra = len(shape) - len(own)
            for number, block in second.blocks.items():
                kept = [a for a, axis in block.carried.items() if own[axis] == shape[axis + extra]]
                block = self._carrying(number, block, kept)
                stack = block.stack
                if extra:
                    stack = reshape(stack, shape=(shape_of(stack)[0], *[1] * extra, *own))
                carried = {a: axis + extra for a, axis in block.carried.items()}
                aligned.setdefault(number, {})[place] = JacobianBlock(stack, carried)
        return {number: self._alike(number, by_place) for number, by_place in aligned.items()}

    def _alike(self, number: int, blocks: dict[int, JacobianBlock]) -> dict[int, JacobianBlock]:
        """Blocks of one input that carry equal axes at equal places: those that all of them carry."""
        first, *others = blocks.values()
        kept = [a for a, axis in first.carried.items() if all([other.carried.get(a) == axis for other in others])]
        return {place: self._carrying(number, block, kept) for place, block in blocks.items()}

    def _carrying(self, number: int, block: JacobianBlock, kept: Sequence[int]) -> JacobianBlock:
        """A block that carries only these axes of the input; the others become directions."""
        if len(kept) == len(block.carried):
            return block
        stack, carried = block.stack, dict(block.carried)
        for a in [a for a in block.carried if a not in kept]:
            stack = self._expanded(number, stack, carried, a)
            del carried[a]
        return JacobianBlock(as_seed(stack, self.inputs[number]) if block.is_input else stack, carried)

    def _directions(self, number: int, carried: Iterable[int], a: int) -> tuple[int, int]:
        """The number of directions along expanded axes before and after the axis `a`."""
        lengths = self.shapes[number]
        expanded = [b for b in range(len(lengths)) if b not in carried]
        return (
            math.prod([lengths[b] for b in expanded if b < a]),
            math.prod([lengths[b] for b in expanded if b > a]),
        )

    def _expanded(self, number: int, stack: Array, carried: Axes, a: int) -> Array:
        """A stack with directions for one more axis: zero where the indices on it differ."""
        length = self.shapes[number][a]
        before, after = self._directions(number, carried, a)
        _, *own = shape_of(stack)
        spread = reshape(stack, shape=(before, 1, after, *own))
        selected = np.eye(length, dtype=bool).reshape(
            (1, length, 1, *[length if axis == carried[a] else 1 for axis in range(len(own))])
        )
        return reshape(where(selected, spread, 0), shape=(before * length * after, *own))

    def _dense(self, number: int, block: JacobianBlock) -> Array:
        """The tangents along all directions of an input."""
        return self._carrying(number, block, ()).stack

    def _linear(
        self,
        primitive: Linear,
        values: tuple[Array, ...],
        seconds: Sequence[Second | None],
        params: Params,
        out: Any,
    ) -> list[Second]:
        outs = list(out) if primitive.multiple else [out]
        results = [Second({}, ZERO) for _ in outs]
        active = {
            place: second
            for place, second in enumerate(seconds)
            if second is not None and primitive.is_linear_in(place)
        }
        tangents = [active[place].laplacian if place in active else ZERO for place in range(len(values))]
        laplacian = primitive.tangent_of(values, out, tuple(tangents), params)
        if laplacian is not ZERO:
            for result, part in zip(results, laplacian if primitive.multiple else [laplacian], strict=True):
                result.laplacian = part
        if isinstance(primitive, Where):
            results[0].blocks = self._chosen(values, active, outs[0])
        elif len(values) == 1 and not primitive.multiple:
            for number, block in active.get(0, results[0]).blocks.items():
                results[0].blocks[number] = self._moved(primitive, number, block, values[0], params, outs[0])
        else:
            for number in {number: None for second in active.values() for number in second.blocks}:
                stacks = {
                    place: self._dense(number, second.blocks[number])
                    for place, second in active.items()
                    if number in second.blocks
                }
                operands = [
                    stacks[place] if place in stacks else _nothing_at(value) if primitive.is_linear_in(place) else value
                    for place, value in enumerate(values)
                ]
                size = math.prod(self.shapes[number])
                moved = primitive.batch(
                    size, [place in stacks for place in range(len(values))], tuple(operands), params
                )
                for result, part in zip(results, moved if primitive.multiple else [moved], strict=True):
                    result.blocks[number] = JacobianBlock(part, {})
        return results

    def _chosen(self, values: Sequence[Array], active: dict[int, Second], out: Array) -> dict[int, JacobianBlock]:
        """The blocks of `where`."""
        blocks = {}
        for number, by_place in self._aligned(active, values, shape_of(out)).items():
            x, y = [by_place[place].stack if place in by_place else 0 for place in (1, 2)]
            first = next(iter(by_place.values()))
            stack = where(values[0], x, y)
            blocks[number] = JacobianBlock(
                _fitted(stack, out, (shape_of(first.stack)[0], *shape_of(out))), first.carried
            )
        return blocks

    def _moved(
        self, primitive: Linear, number: int, block: JacobianBlock, value: Array, params: Params, out: Array
    ) -> JacobianBlock:
        """The block of a linear primitive of one operand."""
        if primitive is reduce_sum:
            return self._sum(number, block, params)
        places = _axes_after(primitive, shape_of(value), shape_of(out), params)
        kept = [a for a, axis in block.carried.items() if axis in places]
        block = self._carrying(number, block, kept)
        stack = primitive.batch(shape_of(block.stack)[0], (True,), (block.stack,), params)
        return JacobianBlock(stack, {a: places[axis] for a, axis in block.carried.items()})

    def _sum(self, number: int, block: JacobianBlock, params: Params) -> JacobianBlock:
        """A sum over a carried axis has a direction for each of its elements: the axis moves to the directions."""
        axes = set(params["axes"])
        stack, carried = block.stack, dict(block.carried)
        for a in [a for a, axis in block.carried.items() if axis in axes]:
            place = carried[a]
            before, after = self._directions(number, carried, a)
            _, *own = shape_of(stack)
            split = reshape(stack, shape=(before, after, *own))
            order = [0, 2 + place, 1, *[2 + axis for axis in range(len(own)) if axis != place]]
            del own[place]
            moved = permute(split, order=tuple(order))
            stack = reshape(moved, shape=(before * self.shapes[number][a] * after, *own))
            axes = {axis - (axis > place) for axis in axes if axis != place}
            del carried[a]
            carried = {b: axis - (axis > place) for b, axis in carried.items()}
        carried = {a: axis - sum([gone < axis for gone in axes]) for a, axis in carried.items()}
        if axes or params.get("dtype") is not None:
            stack = reduce_sum(stack, axes=tuple([axis + 1 for axis in sorted(axes)]), dtype=params.get("dtype"))
        return JacobianBlock(stack, carried)

    def _bilinear(
        self,
        primitive: Primitive,
        values: tuple[Array, ...],
        seconds: Sequence[Second | None],
        params: Params,
        out: Array,
    ) -> Second:
        if not is_inexact(dtype_of(out)):
            return Second({}, ZERO)
        x, y = values
        first, second = [Second({}, ZERO) if each is None else each for each in seconds]
        laplacian = add_tangents(
            ZERO if first.laplacian is ZERO else bind(primitive, (first.laplacian, y), params),
            ZERO if second.laplacian is ZERO else bind(primitive, (x, second.laplacian), params),
        )
        blocks: dict[int, JacobianBlock] = {}
        for number in {**first.blocks, **second.blocks}:
            both = {i: each.blocks[number] for i, each in enumerate((first, second)) if number in each.blocks}
            both, carried = self._contracted(primitive, number, both, params)
            size = shape_of(next(iter(both.values())).stack)[0]
            stack: Any = ZERO
            if 0 in both:
                stack = primitive.batch(size, (True, False), (both[0].stack, y), params)
            if 1 in both:
                stack = add_tangents(stack, primitive.batch(size, (False, True), (x, both[1].stack), params))
            if len(both) == 2:
                cross = _cross(primitive, both[0].stack, both[1].stack, size, params)
                laplacian = add_tangents(laplacian, multiply(cross, 2))
            blocks[number] = JacobianBlock(stack, carried)
        return Second(blocks, laplacian)

    def _contracted(
        self, primitive: Primitive, number: int, blocks: dict[int, JacobianBlock], params: Params
    ) -> tuple[dict[int, JacobianBlock], Axes]:
        """The blocks of the operands of a product in the form that it needs, and the axes that the product carries.

        A contraction carries an axis that it does not sum over, and that the other operand carries too if it depends
        on the input.
        """
        if primitive is not contract:
            return {i: self._carrying(number, block, ()) for i, block in blocks.items()}, {}
        sides = (params["spec"].x, params["spec"].y)
        out = params["spec"].out
        labels = [{a: sides[i][axis] for a, axis in block.carried.items()} for i, block in blocks.items()]
        carried = {
            a: out.index(label)
            for a, label in labels[0].items()
            if label in out and all([other.get(a) == label for other in labels])
        }
        return {i: self._carrying(number, block, tuple(carried)) for i, block in blocks.items()}, carried

    def _general(
        self, primitive: Primitive, values: tuple[Array, ...], seconds: Sequence[Second | None], params: Params
    ) -> tuple[Any, list[Second]]:
        """Apply the jvp of the primitive and the jvp of that, mapped over the directions of each input."""
        tangents = tuple([ZERO if second is None else second.laplacian for second in seconds])
        laplacian: Any = ZERO
        if all([tangent is ZERO for tangent in tangents]):
            out: Any = bind(primitive, values, params)
        else:
            out, laplacian = primitive.forward(values, tangents, params)
        outs = list(out) if primitive.multiple else [out]
        parts: list[Any] = [laplacian]
        if primitive.multiple:
            parts = [ZERO] * len(outs) if laplacian is ZERO else list(laplacian)
        results = [Second({}, part) for part in parts]
        for number in {number: None for second in seconds if second is not None for number in second.blocks}:
            stacks = {
                place: self._dense(number, second.blocks[number])
                for place, second in enumerate(seconds)
                if second is not None and number in second.blocks
            }
            size = math.prod(self.shapes[number])
            firsts, bends = quietly(_along, primitive, values, stacks, params, size, len(outs))
            for result, first, bend in zip(results, firsts, bends, strict=True):
                if first is not ZERO:
                    result.blocks[number] = JacobianBlock(first, {})
                if bend is not ZERO:
                    result.laplacian = add_tangents(result.laplacian, _summed(bend))
        return out, results


def _along(
    primitive: Primitive, values: tuple[Array, ...], stacks: dict[int, Array], params: Params, size: int, count: int
) -> tuple[list[Any], list[Any]]:
    """The first and second derivatives of all `count` outputs along stacked directions, ZERO where there are none."""
    places = list(stacks)
    primals = [values[place] for place in places]
    found: list[list[bool]] = []

    def derivatives(*directions: Array) -> Sequence[Array]:
        dots: list[Any] = [ZERO] * len(values)
        for place, direction in zip(places, directions, strict=True):
            dots[place] = direction
        active: list[bool] = []

        def tangent(*points: Array) -> Sequence[Array]:
            operands = list(values)
            for place, point in zip(places, points, strict=True):
                operands[place] = point
            _, dot = primitive.forward(tuple(operands), tuple(dots), params)
            given: list[Any] = [dot]
            if primitive.multiple:
                given = [ZERO] * count if dot is ZERO else list(dot)
            active[:] = [each is not ZERO for each in given]
            return [each for each in given if each is not ZERO]

        firsts, bends = jvp_flat(tangent, primals, directions)
        found[:] = [active, [bend is not ZERO for bend in bends]]
        return [*firsts, *[bend for bend in bends if bend is not ZERO]]

    stacked = all_mapped(*map_flat(derivatives, size, [True] * len(places), [stacks[place] for place in places]), size)
    active, bent = found
    nonzero = sum(active)
    firsts_left, bends_left = iter(stacked[:nonzero]), iter(stacked[nonzero:])
    bends = iter([next(bends_left) if each else ZERO for each in bent])
    firsts = [next(firsts_left) if each else ZERO for each in active]
    return firsts, [next(bends) if each else ZERO for each in active]


def _axes_after(primitive: Linear, shape: Shape, out: Shape, params: Params) -> Axes:
    """The places of an operand's axes in the output, as far as a linear primitive keeps their elements apart."""
    if primitive.mask == "elementwise":
        return {axis: axis for axis in range(len(shape))}
    if primitive is permute:
        return {axis: place for place, axis in enumerate(params["order"])}
    if primitive is broadcast:
        extra = len(out) - len(shape)
        return {axis: axis + extra for axis, length in enumerate(shape) if out[axis + extra] == length}
    if primitive is reshape:
        starts = {math.prod(out[:place]): place for place in reversed(range(len(out))) if out[place] != 1}
        places = {axis: starts.get(math.prod(shape[:axis])) for axis, length in enumerate(shape) if length != 1}
        return {axis: place for axis, place in places.items() if place is not None and out[place] == shape[axis]}
    return {}


def _cross(primitive: Primitive, dx: Array, dy: Array, size: int, params: Params) -> Array:
    """Σₖ B(Jx eₖ, Jy eₖ); a contraction sums over the directions too."""
    if primitive is contract:
        own = params["spec"]
        new = 1 + max((*own.x, *own.y, *own.out), default=-1)
        return contract(dx, dy, spec=spec((new, *own.x), (new, *own.y), own.out))
    return _summed(primitive.batch(size, (True, True), (dx, dy), params))


def _tangent(function: Callable[[Any], Array], values: Sequence[Array], tangents: Sequence[Any]) -> Any:
    """The derivative of a rule along tangents."""
    level = Jvp("laplacian")
    try:
        lifted = [level.lift(x, dx) for x, dx in zip(values, tangents, strict=True)]
        return level.unpack(function(lifted))[1]
    finally:
        level.close()


def _summed(stack: Array) -> Array:
    """The sum over the directions."""
    size, *shape = shape_of(stack)
    return reshape(stack, shape=tuple(shape)) if size == 1 else reduce_sum(stack, axes=(0,))


def _nothing_at(value: Array) -> Array:
    """The zero tangent of an operand."""
    return type(value)(0) if type(value) in PYTHON_SCALARS else zeros_like(value)


def _widened(value: Array, shape: Shape) -> Array:
    """A value in the shape of the output."""
    if type(value) in PYTHON_SCALARS or shape_of(value) == shape:
        return value
    return broadcast(value, shape=shape)


def _fitted(x: Array, like: Array, shape: Shape) -> Array:
    """A derivative in the dtype of its value, and in this shape."""
    if dtype_of(x) != dtype_of(like):
        x = convert(x, dtype=dtype_of(like))
    return x if shape_of(x) == shape else broadcast(x, shape=shape)
