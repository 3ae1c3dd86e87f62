"""Elementary functions on vectors of any length: glibc's libmvec if available, polynomials otherwise.

A vector splits into pieces as wide as the registers. Each piece is one call of libmvec or of a polynomial function,
compiled once for all programs. A scalar fills a whole register. So the same code computes every lane, and a result does
not depend on the position of its argument in an array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from func.backends import ir
from func.backends.llvm import symbols
from func.backends.llvm.math.own_functions import OWN_PREFIX, Features
from func.backends.scalars.math.registry import FUNCTIONS, PARTS, body_of, fixup_of

if TYPE_CHECKING:
    from func.backends.scalars.math.vector_arithmetic import Emitter, Real


# The letter of an instruction set in the names of the vector ABI.
LETTERS = {128: "b", 256: "d", 512: "e"}


def names() -> dict[str, int]:
    """The functions that `Elementary.call` knows, with the number of their arguments.

    >>> names()["arctan2"]
    2
    """
    return {name: function.arity for name, function in FUNCTIONS.items() if not function.is_internal}


class Elementary:
    """Emits calls of elementary functions into one module.

    >>> from func.backends import ir
    >>> module = ir.Module()
    >>> vector = ir.VectorType(ir.DoubleType(), 6)
    >>> function = ir.Function(module, ir.FunctionType(vector, [vector]), "f")
    >>> builder = ir.IRBuilder(function.append_basic_block())
    >>> sines = Elementary(module, Features(libmvec=False, bits=256, fma=True)).call(builder, "sin", function.args[0])
    >>> str(sines.type)
    '<6 x double>'
    """

    def __init__(self, module: ir.Module, features: Features) -> None:
        self.module = module
        self.features = features
        self._parts: dict[tuple[str, int, int], tuple[Any, Any, Any]] = {}
        """Calls of parts by name, block and argument, behind these two."""

    def call(self, builder: ir.IRBuilder, name: str, *args: Any) -> Any:
        """The function of the arguments, all of one type: a vector or a scalar of float64 or float32.

        Raises
        ------
        ValueError
            For an unknown name, a wrong number of arguments or a type that is not real.
        """
        function = FUNCTIONS.get(name)
        if function is None or len(args) != function.arity:
            raise ValueError(f"no elementary function {name!r} of {len(args)} arguments; see elementary.names()")
        kind = args[0].type
        scalar = kind.element if isinstance(kind, ir.VectorType) else kind
        if not isinstance(scalar, (ir.DoubleType, ir.FloatType)):
            raise ValueError(f"{name} takes float64 and float32, not {kind}; convert the argument first")
        if function.intrinsic is not None:
            return self.intrinsic(builder, function.intrinsic, args)
        if name in PARTS:
            key = name, id(builder.block), id(args[0])
            if key not in self._parts:
                self._parts[key] = builder.block, args[0], self.on_registers(builder, name, args)
            return self._parts[key][2]
        if function.part is not None and kind is not scalar:
            return self.written_out(builder, name, args)
        return self.on_registers(builder, name, args)

    def on_registers(self, builder: ir.IRBuilder, name: str, args: tuple[Any, ...]) -> Any:
        """A function of vectors of any length, or of scalars, on whole registers."""
        kind = args[0].type
        scalar = kind.element if isinstance(kind, ir.VectorType) else kind
        lanes = self.features.bits // (64 if isinstance(scalar, ir.DoubleType) else 32)
        if kind is scalar:
            filled = [splat(builder, arg, lanes) for arg in args]
            return builder.extract_element(self.native(builder, name, filled), index(0))
        pieces = [pieces_of(builder, arg, lanes) for arg in args]
        return concatenated(
            builder, [self.native(builder, name, list(piece)) for piece in zip(*pieces, strict=True)], kind.count
        )

    def written_out(self, builder: ir.IRBuilder, name: str, args: Sequence[Any]) -> Any:
        """The body of a function of vectors, as code of the caller."""
        emit = self.emitter(builder, args[0].type)
        return body_of(name)(emit, *emit.reals(args)).value

    def intrinsic(self, builder: ir.IRBuilder, name: str, args: tuple[Any, ...]) -> Any:
        """An instruction that LLVM knows for every type."""
        kind = args[0].type
        function_type = ir.FunctionType(kind, [kind] * len(args))
        return builder.call(self.function(f"llvm.{name}.{suffix(kind)}", function_type), args)

    def native(self, builder: ir.IRBuilder, name: str, args: list[Any]) -> Any:
        """The function of vectors as wide as the registers."""
        kind = args[0].type
        if FUNCTIONS[name].part is not None:
            return self.written_out(builder, name, args)
        function_type = ir.FunctionType(kind, [kind] * len(args))
        symbol = self.vector_symbol(name, kind)
        if symbol is None:
            return builder.call(self.own(name, function_type), args)
        if FUNCTIONS[name].fixup is None:
            return builder.call(self.function(symbol, function_type), args)
        return builder.call(self.fixed_up(name, symbol, function_type), args)

    def vector_symbol(self, name: str, kind: ir.VectorType) -> str | None:
        """The symbol of libmvec's function if it exists and is the better choice."""
        double, record = isinstance(kind.element, ir.DoubleType), FUNCTIONS[name]
        if not self.features.libmvec or record.libmvec is None or (64 if double else 32) in record.preferred:
            return None
        letter = LETTERS[self.features.bits]
        symbol = f"_ZGV{letter}N{kind.count}{'v' * record.arity}_{record.libmvec}{'' if double else 'f'}"
        return symbol if symbols.find(symbol) else None

    def function(self, name: str, kind: ir.FunctionType) -> Any:
        """A function of the module, declared at its first use."""
        known = self.module.globals
        return known[name] if name in known else ir.Function(self.module, kind, name)

    def own(self, name: str, kind: ir.FunctionType) -> Any:
        """The function that is not libmvec's, compiled at its first link."""
        features = f"{self.features.bits}{'m' * self.features.libmvec}{'f' * self.features.fma}"
        function = self.function(f"{OWN_PREFIX}{features}_{suffix(kind.return_type)}_{name}", kind)
        function.attributes.add("nounwind")
        return function

    def define(self, function: Any, name: str) -> None:
        """Write the body of a function that is not libmvec's."""
        emit = self.emitter_of(function)
        emit.builder.ret(body_of(name)(emit, *emit.reals(function.args)).value)

    def fixed_up(self, name: str, symbol: str, kind: ir.FunctionType) -> Any:
        """libmvec's function in its fast and accurate range, and the known values outside."""
        function, fresh = self.internal(f"func_{name}_{suffix(kind.return_type)}", kind)
        if fresh:
            function.attributes.add("alwaysinline")
            emit = self.emitter_of(function)
            library = self.function(symbol, kind)

            def library_function(*xs: Real) -> Real:
                return emit.reals([emit.builder.call(library, emit.values(xs))])[0]

            emit.builder.ret(fixup_of(name)(emit, library_function, *emit.reals(function.args)).value)
        return function

    def internal(self, name: str, kind: ir.FunctionType) -> tuple[Any, bool]:
        """A function of this module alone, and whether it is new."""
        fresh = name not in self.module.globals
        function = self.function(name, kind)
        function.linkage = "internal"
        if fresh:
            function.attributes.add("nounwind")
        return function, fresh

    def emitter_of(self, function: Any) -> Emitter:
        """An emitter at the start of a function."""
        return self.emitter(ir.IRBuilder(function.append_basic_block()), function.return_value.type)

    def emitter(self, builder: ir.IRBuilder, kind: ir.VectorType) -> Emitter:
        """An emitter of code on vectors of a type."""
        from func.backends.scalars.math.vector_arithmetic import Emitter  # start-up time: for own polynomials only

        width = 64 if isinstance(kind.element, ir.DoubleType) else 32
        return Emitter(builder, kind.count, width, self.features.fma, self.call, self.lane_calls, self.features.bits)

    def lane_calls(self, builder: ir.IRBuilder, name: str, *args: Any) -> Any:
        """libm's function of each lane."""
        kind = args[0].type
        scalar = kind.element
        symbol = name if isinstance(scalar, ir.DoubleType) else name + "f"
        function = self.function(symbol, ir.FunctionType(scalar, [scalar] * len(args)))
        out: ir.Value = ir.Constant(kind, ir.Undefined)
        for lane in range(kind.count):
            value = builder.call(function, [builder.extract_element(arg, index(lane)) for arg in args])
            out = builder.insert_element(out, value, index(lane))
        return out


def own_module(symbol: str, match: re.Match[str]) -> ir.Module:
    """The module of a function with a name that `own_functions.OWN_NAME` matches."""
    module, name = ir.Module(symbol), match["name"]
    kind = ir.VectorType(ir.DoubleType() if match["width"] == "64" else ir.FloatType(), int(match["count"]))
    function = ir.Function(module, ir.FunctionType(kind, [kind] * FUNCTIONS[name].arity), symbol)
    function.attributes.add("nounwind")
    features = Features(libmvec=bool(match["libmvec"]), bits=int(match["bits"]), fma=bool(match["fma"]))
    Elementary(module, features).define(function, name)
    if any([calls_vectors(callee) for callee in module.globals.values() if callee is not function]):
        module.vector_bytes = features.bits // 8  # else all values stay in registers
    return module


def calls_vectors(function: Any) -> bool:
    """Whether a declared function takes vectors, for which values of the caller must leave registers."""
    return isinstance(function.return_value.type, ir.VectorType) and not function.name.startswith("llvm.")


def suffix(kind: Any) -> str:
    """The type as LLVM writes it in the names of intrinsics."""
    scalar = kind.element if isinstance(kind, ir.VectorType) else kind
    width = "f64" if isinstance(scalar, ir.DoubleType) else "f32"
    return f"v{kind.count}{width}" if isinstance(kind, ir.VectorType) else width


def index(i: int) -> Any:
    """A lane's number."""
    return ir.Constant(ir.IntType(32), i)


def shuffle_mask(numbers: list[int]) -> Any:
    """The mask of a shuffle."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)


def splat(builder: ir.IRBuilder, value: Any, count: int) -> Any:
    """A vector of one number."""
    empty = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(empty, value, index(0))
    return builder.shuffle_vector(first, empty, shuffle_mask([0] * count))


def pieces_of(builder: ir.IRBuilder, value: Any, lanes: int) -> list[Any]:
    """The vector in pieces of `lanes` lanes; its last lane fills up the last piece."""
    count = value.type.count
    if count == lanes:
        return [value]
    empty = ir.Constant(value.type, ir.Undefined)
    starts = range(0, count, lanes)
    masks = [[min(start + lane, count - 1) for lane in range(lanes)] for start in starts]
    return [builder.shuffle_vector(value, empty, shuffle_mask(mask)) for mask in masks]


def concatenated(builder: ir.IRBuilder, pieces: list[Any], count: int) -> Any:
    """The first `count` lanes of some vectors of equal length, one after another."""
    while len(pieces) > 1:
        if len(pieces) % 2:
            pieces.append(ir.Constant(pieces[0].type, ir.Undefined))
        size = 2 * pieces[0].type.count
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        pieces = [builder.shuffle_vector(a, b, shuffle_mask(list(range(size)))) for a, b in pairs]
    whole = pieces[0]
    if whole.type.count == count:
        return whole
    return builder.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), shuffle_mask(list(range(count))))
