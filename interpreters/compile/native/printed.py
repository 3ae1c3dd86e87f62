"""Primitives with forms in printed code alone: sorting, Fourier transforms, special functions and random numbers, which
`jit` leaves to libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from func.backends.loops.kernels import Buffer, DType, StridedRef
from func.backends.loops.values import ArrayValue
from func.backends.number_types import is_narrow, kind_of
from func.backends.routines.special_families import ARITY, MOST_ORDERS
from func.backends.scalars.floats import FRACTION
from func.interpreters.compile.native.linalg import INT64, fresh, result, run
from func.interpreters.compile.native.not_native import NotNative
from func.interpreters.compile.native.rules import TranslationContext, printed
from func.interpreters.compile.native.sorting import reordered

DOUBLE = np.dtype(np.float64)
OF_WHOLE_ORDER = frozenset({"jv", "jve", "yv", "yve", "yn", "iv", "ive", "kv", "kve", "kn", "expn"})
"""Functions whose forms in C take whole orders."""
WITH_SLOPES = frozenset({"ellipk", "ellipkm1", "ellipe"})
"""Functions whose first derivative, a parameter, has a form in C."""
TABLE = 512
"""Roots of unity of the longest transform that has them as constants; longer ones compute them."""


def _along_last(context: TranslationContext, x: ArrayValue, axis: int) -> tuple[StridedRef, list[int]]:
    """An array in memory with an axis moved to its end, and the order that moves the axis back."""
    order = [*[i for i in range(len(x.shape)) if i != axis], axis]
    ref = context.storage.ref(context.storage.copied(context.fuser.permute(x, order)))
    return ref, [order.index(i) for i in range(len(order))]


def _space(count: int, dtype: np.dtype[np.generic], batch: tuple[int, ...]) -> StridedRef:
    """Scratch memory that all rows share."""
    return StridedRef(Buffer(max(1, count), dtype), 0, (*[0] * len(batch), 1))


@printed("argsort", "argpartition", "partition_order", "inverse_order")
def _argsort(context: TranslationContext) -> ArrayValue:
    """The stable order, which is a partition, too; that of an order is its inverse."""
    return _order(context, context.args[:1])


@printed("lexsort")
def _lexsort(context: TranslationContext) -> ArrayValue:
    """The order by the last keys; equal ones in the order of the keys before."""
    return _order(context, context.args)


def _order(context: TranslationContext, keys: Sequence[ArrayValue]) -> ArrayValue:
    """The stable order by each of some arrays, after the others."""
    axis, shape = context.params["axis"], keys[0].shape
    batch, n = tuple([shape[i] for i in range(len(shape)) if i != axis]), shape[axis]
    out, space = fresh((*batch, n), INT64), _space(n, INT64, batch)
    number, back = 0, list(range(len(shape)))
    for place, x in enumerate(keys):
        if kind_of(x.dtype) not in "biufc" or x.dtype.itemsize > (16 if x.dtype.kind == "c" else 8):
            raise NotNative(f"sorting of {x.dtype}")
        if x.dtype.kind == "b" or is_narrow(x.dtype):
            x = context.convert(x, np.dtype(np.int8 if x.dtype.kind == "b" else np.float32))
        ref, back = _along_last(context, x, axis)
        refs = [ref, out] if place else [ref]
        number = run(context, "argsort", x.dtype, batch, [out, space], refs, n=n, goes_on=place > 0)
    return context.fuser.permute(result(context, out, (*batch, n), number), back)


@printed("sort", "partition")
def _sort(context: TranslationContext) -> ArrayValue:
    """The elements in their order."""
    return reordered(context, context.args[0], _argsort(context), context.params["axis"])


@printed(*ARITY)
def _special(context: TranslationContext) -> ArrayValue:
    """A special function, in double precision."""
    name, dtype = context.equation.primitive.name, context.out.dtype
    if kind_of(dtype) != "f" or dtype.itemsize > 8:
        raise NotNative(f"{name} of {dtype}")
    if name in OF_WHOLE_ORDER and not _is_whole(context, context.args[0]):
        raise NotNative(f"{name} of an order that may not be a whole number")
    order = context.params.get("order", 0)
    if order > (name in WITH_SLOPES):
        raise NotNative(f"the derivative of order {order} of {name}")
    assert len(context.args) == ARITY[name]
    value = context.map(f"{name}_slope" if order else name, *[context.convert(x, DOUBLE) for x in context.args])
    return context.convert(value, dtype)


def _is_whole(context: TranslationContext, x: ArrayValue) -> bool:
    """Whether all elements are certainly whole numbers: by their dtype, or as numbers of the program."""
    if x.dtype.kind in "biu":
        return True
    if x.root is None:
        return float(x.number).is_integer()
    ref = x.root.ref
    if ref is None or ref.buffer.kind != "constant":
        return False
    values = context.translator.constants[ref.buffer.place]
    return bool(np.all(values == np.trunc(values)))


@printed("random_gamma_slope", "random_polygamma")
def _slope_of_gamma(context: TranslationContext) -> ArrayValue:
    """Derivatives of gamma variates by their parameter, and of the digamma function."""
    name, order, dtype = context.equation.primitive.name, context.params["order"], context.out.dtype
    if kind_of(dtype) != "f" or dtype.itemsize > 8 or order > MOST_ORDERS:
        raise NotNative(f"{name} of {dtype} and of order {order}")
    function = "gamma_slope" if name == "random_gamma_slope" else "polygamma"
    args = [context.convert(x, DOUBLE) for x in context.args]
    return context.convert(context.map(function, context.number(float(order), DOUBLE), *args), dtype)


# -- random numbers
UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
USES = {"draw": 0, "split": 2 << 30}
"""The highest bits of a counter, for each use of a key."""


def _in_memory(context: TranslationContext, x: ArrayValue, dtype: DType, shape: Sequence[int]) -> StridedRef:
    value = context.fuser.reshape(context.convert(x, dtype), tuple(shape))
    return context.storage.ref(context.storage.copied(value))


def _words(context: TranslationContext, width: int, count: int, use: str) -> ArrayValue:
    """Random words of 32 or 64 bits by keys, (…, count)."""
    key = context.args[0]
    batch, dtype = key.shape[:-1], np.dtype(f"uint{width}")
    out = fresh((*batch, count), dtype)
    refs = [_in_memory(context, key, UINT32, key.shape)]
    number = run(context, "random_words", dtype, batch, [out], refs, n=count, use=USES[use])
    return result(context, out, (*batch, count), number)


@printed("random_bits")
def _random_bits(context: TranslationContext) -> ArrayValue:
    dtype = context.out.dtype
    words = _words(context, 64 if dtype.itemsize == 8 else 32, math.prod(context.params["shape"]), "draw")
    return context.fuser.reshape(context.convert(words, dtype), context.out.shape)


def _units(context: TranslationContext, inside: bool) -> ArrayValue:
    """Numbers in [0, 1), or in (0, 1), as float64 or float32."""
    dtype = context.out.dtype
    if kind_of(dtype) != "f" or dtype.itemsize > 8:
        raise NotNative(f"random numbers of {dtype}")
    wide = DOUBLE if dtype == DOUBLE else np.dtype(np.float32)
    width = 8 * wide.itemsize
    bits = FRACTION[dtype.name] + 1 - inside
    words = _words(context, width, math.prod(context.params["shape"]), "draw")
    numbers = context.map("right_shift", words, context.number(width - bits, words.dtype))
    value = context.convert(numbers, wide)
    if inside:
        value = context.map("add", value, context.number(0.5, wide))
    value = context.map("multiply", value, context.number(2.0**-bits, wide))
    return context.fuser.reshape(value, context.out.shape)


@printed("random_unit")
def _random_unit(context: TranslationContext) -> ArrayValue:
    return context.convert(_units(context, context.params["inside"]), context.out.dtype)


@printed("random_normal")
def _random_normal(context: TranslationContext) -> ArrayValue:
    units = context.convert(_units(context, True), DOUBLE)
    return context.convert(context.map("ndtri", units), context.out.dtype)


@printed("i0")
def _i0(context: TranslationContext) -> ArrayValue:
    if context.out.dtype != DOUBLE or any(context.params.values()):
        raise NotNative(f"derivatives of i0, or i0 of {context.out.dtype}")
    return context.map("bessel_i0", context.convert(context.args[0], DOUBLE))


@printed("random_ndtr")
def _random_ndtr(context: TranslationContext) -> ArrayValue:
    return context.map("ndtr", context.args[0])


@printed("random_split")
def _random_split(context: TranslationContext) -> ArrayValue:
    return context.fuser.reshape(_words(context, 32, 2 * context.params["num"], "split"), context.out.shape)


@printed("random_key")
def _random_key(context: TranslationContext) -> ArrayValue:
    seed, shape = context.convert(context.args[0], UINT64), context.out.shape
    both = context.fuser.broadcast(context.fuser.reshape(seed, (*seed.shape, 1)), shape)
    shifts = context.fuser.broadcast(context.constant(np.array([32, 0], np.uint64)), shape)
    return context.convert(context.map("right_shift", both, shifts), UINT32)


@printed("random_fold_in")
def _random_fold_in(context: TranslationContext) -> ArrayValue:
    key, data = context.args
    batch = key.shape[:-1]
    out = fresh(key.shape, UINT32)
    refs = [_in_memory(context, key, UINT32, key.shape), _in_memory(context, data, UINT64, batch)]
    return result(context, out, key.shape, run(context, "random_fold", UINT32, batch, [out], refs))


def _variates(context: TranslationContext, name: str, dtype: DType, parameters: Sequence[ArrayValue]) -> ArrayValue:
    """The draws of a function of C for keys and parameters (…, *shape)."""
    key, shape = context.args[0], context.out.shape
    batch = key.shape[: len(key.shape) - 1]
    n = math.prod(shape[len(batch) :])
    out = fresh((*batch, n), dtype)
    refs = [_in_memory(context, x, dtype, (*batch, n)) for x in parameters]
    refs.insert(0, _in_memory(context, key, UINT32, key.shape))
    number = run(context, "random_variates", dtype, batch, [out], refs, n=n, law=name)
    drawn = context.fuser.reshape(result(context, out, (*batch, n), number), shape)
    return context.convert(drawn, context.out.dtype)


@printed("random_integers")
def _random_integers(context: TranslationContext) -> ArrayValue:
    low, last = [context.convert(x, UINT64) for x in context.args[1:]]
    return _variates(context, "integers", UINT64, [low, context.map("subtract", last, low)])


@printed("random_poisson", "random_binomial", "random_wald", "random_loggamma")
def _random_variates(context: TranslationContext) -> ArrayValue:
    name = context.equation.primitive.name.removeprefix("random_")
    return _variates(context, {"loggamma": "loggamma_variates"}.get(name, name), DOUBLE, context.args[1:])


@printed("fft", "rfft", "irfft")
def _fourier(context: TranslationContext) -> ArrayValue:
    x, axis, norm = context.args[0], context.params["axis"], context.params["norm"]
    name, out = context.equation.primitive.name, context.out
    part = np.dtype(np.float32 if out.dtype.itemsize <= (4 if name == "irfft" else 8) else np.float64)
    if part.itemsize < out.dtype.itemsize // (1 if name == "irfft" else 2) or out.dtype.itemsize < part.itemsize:
        raise NotNative(f"Fourier transforms of {x.dtype}")
    dtype = part if name == "rfft" else np.result_type(part, np.complex64)
    n = out.shape[axis] if name == "irfft" else x.shape[axis]
    inverse = name == "irfft" or bool(context.params.get("inverse", False))
    scale = {"ortho": 1 / math.sqrt(n), "forward": 1.0 if inverse else 1 / n}.get(norm, 1 / n if inverse else 1.0)
    ref, back = _along_last(context, context.convert(x, dtype), axis)
    batch = tuple([x.shape[i] for i in range(len(x.shape)) if i != axis])
    shape = (*batch, out.shape[axis])
    target = fresh(shape, out.dtype)
    if n <= TABLE:
        angles = (2 if inverse else -2) * np.pi / n * np.arange(n)
        table = context.constant(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(part))
        roots = context.storage.ref(table)
    else:
        roots = StridedRef(Buffer(2 * n, part), 0, (1,))
        run(context, "roots_of_unity", part, (), [roots], [], n=n, inverse=inverse)
    fixed = StridedRef(roots.buffer, roots.offset, (*[0] * len(batch), 1))
    number = run(
        context,
        "fourier",
        part,
        batch,
        [target, _space(6 * n, part, batch)],
        [ref, fixed],
        n=n,
        kind=("fft", "rfft", "irfft").index(name),
        scale=scale,
    )
    return context.fuser.permute(result(context, target, shape, number), back)
