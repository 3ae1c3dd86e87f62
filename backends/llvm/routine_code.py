"""Routines as functions of LLVM IR.

Each variable has a place on the stack, which LLVM turns into a register. A loop over `lanes` becomes instructions on
vectors, and an `unrolled` one straight-line code: the passes for programs would do neither. Functions of the C library
are called by name.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from func.backends import ir
from func.backends.llvm import machine
from func.backends.loops.kernels import DType
from func.backends.routines.language import Floats as Floats
from func.backends.routines.typed import FLOATING, STRIDES, Reading, Routine, called_name, is_array, reading

BIT, INT, INDEX, POINTER, DOUBLE = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.DoubleType()
KINDS: dict[str, Any] = {
    **{"bool": BIT, "int": INDEX, "int32": INT, "long": INDEX, "double": DOUBLE},
    "void": ir.VoidType(),
}
FUSED = ("contract",)
WHOLE: dict[type[ast.operator], str] = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem"},
}
FLOATS: dict[type[ast.operator], str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
SIGNS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
    **{ast.Is: "==", ast.IsNot: "!="},
}
INTRINSICS = {"abs": "fabs", "fabs": "fabs", "modulus": "fabs", "pivot_size": "fabs", "sqrt": "sqrt", "floor": "floor"}


def function_of(
    module: ir.Module,
    routine: Routine,
    dtype: DType | None = None,
    name: str = "",
    fixed: Mapping[str, int] = MappingProxyType({}),
) -> Any:
    """The routine as a function of the module, for a type of numbers and values of `Fixed` parameters, which disappear;
    defined at its first use.
    """
    source = reading(routine)
    kind = [dtype.name] if source.is_generic and dtype is not None else []
    name = name or ".".join(["func", source.name, *kind, *[f"{each}{value}" for each, value in fixed.items()]])
    function: Any = module.globals.get(name)
    if function is None:
        kinds = _kinds(dtype)
        left = [part for part in _parts(source) if part not in fixed]
        types = [_parameter_type(source, part, kinds) for part in left]
        function = ir.Function(module, ir.FunctionType(kinds[source.result], types), name)
        function.attributes.add("nounwind")
        if getattr(routine, "inlined", False):
            function.attributes.add("alwaysinline")
        elif source.fixed:
            function.attributes |= {"noinline", "optsize"}  # without loops worth keeping
        if source.apart:
            for argument in function.args:
                if argument.type is POINTER:
                    argument.add_attribute("noalias")
        RoutineWriter(source, function, dtype, fixed).write()
    return function


def call_routine(builder: ir.IRBuilder, routine: Routine, dtype: DType | None, *args: Any) -> ir.Value:
    """The result of a routine of values and of Python's numbers."""
    source = reading(routine)
    named = dict(zip(_parts(source), args, strict=True))
    fixed = {
        name: value
        for name, value in named.items()
        if isinstance(value, int) and (name in source.fixed or (value == 1 and name not in source.parameters))
    }
    named = {name: value for name, value in named.items() if name not in fixed}
    function = function_of(builder.module, routine, dtype, fixed=fixed)
    function.linkage = "internal"
    kinds, values = function.function_type.args, named.values()
    return builder.call(
        function,
        [x if isinstance(x, ir.Value) else ir.Constant(kind, x) for x, kind in zip(values, kinds, strict=True)],
    )


class NativeRoutine:
    """A routine of int64 numbers and arrays, compiled at its first call; without LLVM it runs in Python."""

    def __init__(self, function: Routine) -> None:
        self.function = function
        self._native: Any = None
        self._code: Any = None

    def __call__(self, *args: Any) -> int:
        if not machine.available():
            return int(self.function(*args))
        kinds = reading(self.function).parameters.values()
        if self._native is None:
            module = ir.Module(self.function.__name__)
            function_of(module, self.function, name=self.function.__name__)
            self._code = machine.compile_ir(str(module))
            prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(kinds))
            self._native = prototype(self._code.address(self.function.__name__))
        checked = [
            arg if kind == "int" else np.require(arg, np.float64 if kind == "double[]" else np.int64, ["C", "W"])
            for arg, kind in zip(args, kinds, strict=True)
        ]
        return int(self._native(*[arg if isinstance(arg, int) else arg.ctypes.data for arg in checked]))


def native_routine(function: Callable[..., int]) -> NativeRoutine:
    """Decorate a routine for calls from Python."""
    return NativeRoutine(function)


def _parts(source: Reading) -> list[str]:
    """The parameters of a routine, each before its strides."""
    kinds = source.parameters.items()
    return [f"{name}{end}" for name, kind in kinds for end in ("", *filter(None, STRIDES.get(kind, ())))]


def _parameter_type(source: Reading, part: str, kinds: dict[str, Any]) -> Any:
    """The type of a parameter, or of one of its strides."""
    kind = source.parameters.get(part, "int")
    return POINTER if is_array(kind) else kinds[kind]


def _kinds(dtype: DType | None) -> dict[str, Any]:
    """LLVM's types of scalars."""
    if dtype is not None and dtype.kind == "i":  # copies of integers
        return KINDS | {"number": ir.IntType(8 * dtype.itemsize)}
    part = DOUBLE if dtype is None or dtype.itemsize == (16 if dtype.kind == "c" else 8) else ir.FloatType()
    number = ir.VectorType(part, 2) if dtype is not None and dtype.kind == "c" else part
    return KINDS | {"real": part, "number": number}


class RoutineWriter:
    """Writes the body of one function."""

    def __init__(self, source: Reading, function: Any, dtype: DType | None, fixed: Mapping[str, int]) -> None:
        self.source, self.function, self.dtype = source, function, dtype
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.kinds = _kinds(dtype)
        self.is_complex = dtype is not None and dtype.kind == "c"
        info = np.finfo(np.float64 if dtype is None or dtype.kind == "i" else dtype)
        self.places: dict[str, Any] = {"IS_COMPLEX": self.is_complex, "TINY": float(info.tiny), **fixed}
        """Constants by name: those of the type of numbers, and the indices of unrolled loops."""
        self.slots: dict[str, Any] = {}
        self.strides: dict[str, Any] = {name: INDEX(x) for name, x in fixed.items() if name not in source.parameters}
        self.parameters = [name for name in _parts(source) if name not in fixed]
        self.loops: list[tuple[Any, Any]] = []
        """The targets of `continue` and `break`."""
        self.vectors: dict[str, Any] = {}
        """Variables of a loop over lanes."""
        self.lanes: tuple[str, int] | None = None
        """The index of a vectorized loop, and its length."""

    def write(self) -> None:
        """The whole function."""
        b, source = self.builder, self.source
        for name, argument in zip(self.parameters, self.function.args, strict=True):
            if name not in source.parameters:
                self.strides[name] = argument
                continue
            if source.stores.get(name, 0) or argument.type is not POINTER:
                self.slots[name] = b.alloca(argument.type)
                b.store(argument, self.slots[name])
            else:
                self.slots[name] = argument
        for name, kind in source.variables.items():
            if name in source.shapes:
                array = ir.ArrayType(self.kinds[kind[:-2]], self.length(source.shapes[name]))
                self.slots[name] = b.alloca(array, align=64)
            elif name not in self.slots:
                self.slots[name] = b.alloca(POINTER if is_array(kind) else self.kinds[kind])
        self.block(source.tree.body)
        if not b.block.is_terminated:
            if self.source.result == "void":
                b.ret_void()
            else:
                b.unreachable()

    def length(self, shape: Sequence[ast.expr]) -> int:
        """The elements of a local array."""
        return math.prod([self.source.constant(each, self.places) for each in shape])

    def library(self, name: str, kind: ir.FunctionType) -> Any:
        """A function of the C library or of LLVM."""
        return self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)

    # -- statements -------------------------------------------------------------------------------------------------
    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Statements up to one that leaves the block."""
        for statement in statements:
            if not self.builder.block.is_terminated:
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """One statement."""
        if isinstance(node, ast.Assign | ast.AnnAssign):
            assert node.value is not None
            self.assign(node.targets if isinstance(node, ast.Assign) else [node.target], node.value)
        elif isinstance(node, ast.AugAssign):
            self.store(node.target, self.value(ast.BinOp(node.target, node.op, node.value)))
        elif isinstance(node, ast.If):
            self.condition(node)
        elif isinstance(node, ast.While):
            self.repeated(lambda: node.test, node.body, None)
        elif isinstance(node, ast.For):
            self.counted(node)
        elif isinstance(node, ast.Break | ast.Continue):
            self.builder.branch(self.loops[-1][isinstance(node, ast.Break)])
        elif isinstance(node, ast.Return):
            if node.value is None:
                self.builder.ret_void()
            else:
                self.builder.ret(self.converted(node.value, self.source.result))
        else:
            assert isinstance(node, ast.Expr), ast.dump(node)
            if isinstance(node.value, ast.Call):
                self.value(node.value)

    def assign(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Assignments; those of a tuple take the values from before."""
        if isinstance(value, ast.Call) and called_name(value) in ("zeros", "empty"):
            if called_name(value) == "zeros":
                size = self.length(value.args) * _bytes(self.kinds[self.source.type_of(targets[0])[:-2]])
                name, kinds = "llvm.memset.p0.i64", [POINTER, ir.IntType(8), INDEX, BIT]
                clear = self.library(name, ir.FunctionType(KINDS["void"], kinds))
                self.builder.call(clear, [self.address(targets[0]), kinds[1](0), INDEX(size), BIT(0)])
            return
        target = targets[0]
        if isinstance(target, ast.Name) and self.source.type_of(target) in STRIDES:
            endings = STRIDES[self.source.type_of(target)]
            for ending, stride in zip(endings, self.source.view(value, self.places).strides, strict=True):
                self.strides[f"{target.id}{ending}"] = self.stride(stride)
        if isinstance(target, ast.Tuple):
            assert isinstance(value, ast.Tuple)
            pairs = list(zip(target.elts, value.elts, strict=True))
        else:
            pairs = [(target, value) for target in targets]
        values = [self.converted(part, self.source.type_of(target)) for target, part in pairs]
        for (target, _), each in zip(pairs, values, strict=True):
            self.store(target, each)

    def store(self, target: ast.expr, value: Any) -> None:
        """Write a variable or an element, or elements in a loop over lanes."""
        if isinstance(target, ast.Name) and self.lanes is not None:
            self.vectors[target.id] = value
            return
        if isinstance(target, ast.Name):
            self.builder.store(value, self.slots[target.id])
            return
        assert isinstance(target, ast.Subscript)
        kind = self.kinds[self.source.type_of(target)]
        if self.lanes is not None:
            value = self.spread(value)
        self.builder.store(value, self.address(target), align=_alignment(kind))

    def condition(self, node: ast.If) -> None:
        """A choice, made here if it is between constants."""
        known = self.source.constant(node.test, self.places)
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        b = self.builder
        then, other, after = [b.append_basic_block(name) for name in ("then", "else", "after")]
        self.branch(node.test, then, other)
        for start, statements in ((then, node.body), (other, node.orelse)):
            b.position_at_end(start)
            self.block(statements)
            if not b.block.is_terminated:
                b.branch(after)
        b.position_at_end(after)

    def branch(self, test: ast.expr, then: Any, other: Any) -> None:
        """Go to a block by a condition; `and` and `or` compute no more than necessary."""
        if isinstance(test, ast.BoolOp):
            for value in test.values[:-1]:
                following = self.builder.append_basic_block("test")
                self.branch(value, *((following, other) if isinstance(test.op, ast.And) else (then, following)))
                self.builder.position_at_end(following)
            self.branch(test.values[-1], then, other)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, other, then)
        else:
            self.builder.cbranch(self.value(test), then, other)

    def repeated(self, test: Callable[[], Any], body: Sequence[ast.stmt], advance: Callable[[], None] | None) -> None:
        """A loop: `test` returns a condition, or a value of one."""
        b = self.builder
        head, inside, step, after = [b.append_basic_block(name) for name in ("head", "inside", "step", "after")]
        b.branch(head)
        b.position_at_end(head)
        condition = test()
        if isinstance(condition, ast.expr):
            self.branch(condition, inside, after)
        else:
            b.cbranch(condition, inside, after)
        b.position_at_end(inside)
        self.loops.append((step, after))
        self.block(body)
        self.loops.pop()
        if not b.block.is_terminated:
            b.branch(step)
        b.position_at_end(step)
        if advance is not None:
            advance()
        b.branch(head)
        b.position_at_end(after)

    def counted(self, node: ast.For) -> None:
        """A loop over a range, over lanes, or an unrolled one."""
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        name, how, bounds = node.target.id, called_name(node.iter), node.iter.args
        if how == "lanes":
            self.lanes = name, self.source.constant(bounds[0], self.places)
            self.block(node.body)
            self.lanes, self.vectors = None, {}
            return
        if how == "unrolled":
            for index in range(*[self.source.constant(bound, self.places) for bound in bounds]):
                self.places[name] = index
                self.block(node.body)
            self.places.pop(name, None)
            return
        b, slot = self.builder, self.slots[name]
        start: Any = INDEX(0) if len(bounds) == 1 else self.converted(bounds[0], "int")
        stop = self.converted(bounds[min(1, len(bounds) - 1)], "int")
        step = self.converted(bounds[2], "int") if len(bounds) == 3 else INDEX(1)
        place = b.function.blocks[0]
        with b.goto_block(place):
            counter = b.alloca(INDEX)
        b.store(start, counter)
        known = self.source.constant(bounds[2], self.places) if len(bounds) == 3 else 1
        sign = ">" if known is not None and known < 0 else "<"

        def test() -> Any:
            index = b.load(counter, typ=INDEX)
            b.store(index, slot)
            return b.icmp_signed(sign, index, stop)

        def advance() -> None:
            b.store(b.add(b.load(counter, typ=INDEX), step, flags=("nsw",)), counter)

        self.repeated(test, node.body, advance)

    # -- expressions ------------------------------------------------------------------------------------------------
    def converted(self, node: ast.expr, kind: str) -> Any:
        """An expression as a number of a type."""
        if is_array(kind):
            return self.address(node)
        known = self.source.constant(node, self.places)
        if known is not None:
            return self.constant(known, kind)
        have, value, b = self.source.type_of(node), self.computed(node), self.builder
        if have == kind or self.kinds[have] is self.kinds[kind]:
            return value
        target = self.kinds[kind]
        if kind in FLOATING:
            if have not in FLOATING:
                real = self.kinds["real" if kind == "number" else kind]
                value = (b.uitofp if have == "bool" else b.sitofp)(value, real)
            if kind == "number" and self.is_complex:
                return b.insert_element(ir.Constant(target, None), value, INT(0))
            return value
        if have in FLOATING:
            return b.fptosi(value, target)
        if target.width < self.kinds[have].width:
            return b.trunc(value, target)
        return (b.zext if have == "bool" else b.sext)(value, target)

    def constant(self, value: Any, kind: str) -> Any:
        """A constant of a type."""
        if kind == "number" and self.is_complex:
            return ir.Constant(self.kinds[kind], [float(value), 0.0])
        return ir.Constant(self.kinds[kind], float(value) if kind in FLOATING else int(value))

    def spread(self, value: Any) -> Any:
        """A number in every lane."""
        assert self.lanes is not None
        if isinstance(value.type, ir.VectorType):
            return value
        kind = ir.VectorType(value.type, self.lanes[1])
        if isinstance(value, ir.Constant):
            return ir.Constant(kind, [value] * kind.count)
        empty, b = ir.Constant(kind, ir.Undefined), self.builder
        first = b.insert_element(empty, value, INT(0))
        return b.shuffle_vector(first, empty, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))

    def together(self, *values: Any) -> Sequence[Any]:
        """Values, each spread over the lanes if one is."""
        if self.lanes is None or not any([isinstance(value.type, ir.VectorType) for value in values]):
            return values
        return [self.spread(value) for value in values]

    def value(self, node: ast.expr) -> Any:
        """An expression."""
        known = self.source.constant(node, self.places)
        return self.computed(node) if known is None else self.constant(known, self.source.type_of(node))

    def computed(self, node: ast.expr) -> Any:
        """An expression that is not a constant."""
        b = self.builder
        kind = self.source.type_of(node)
        if is_array(kind):
            return self.address(node)
        if isinstance(node, ast.Name) and node.id in self.vectors:
            return self.vectors[node.id]
        if isinstance(node, ast.Name):
            return b.load(self.slots[node.id], typ=self.kinds[kind])
        if isinstance(node, ast.Subscript):
            element = self.kinds[kind]
            typ = element if self.lanes is None or not self.is_lane(node) else ir.VectorType(element, self.lanes[1])
            return b.load(self.address(node), typ=typ, align=_alignment(element))
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            if isinstance(node.op, ast.USub):
                return b.fneg(value) if kind in FLOATING else b.neg(value)
            return b.not_(value)
        if isinstance(node, ast.IfExp):
            return self.chosen(node, kind)
        if isinstance(node, ast.BoolOp):
            yes, no = ast.Constant(True), ast.Constant(False)
            return self.chosen(ast.IfExp(node, yes, no), "bool")
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BinOp):
            return self.operation(node, kind)
        assert isinstance(node, ast.Call), ast.dump(node)
        return self.call(node, kind)

    def chosen(self, node: ast.IfExp, kind: str) -> Any:
        """One of two values; computes only that one if the other may read memory."""
        b, arms = self.builder, (node.body, node.orelse)
        is_plain = not any([isinstance(part, ast.Subscript | ast.Call | ast.BoolOp) for part in ast.walk(node)])
        if is_plain or self.lanes is not None:
            condition, x, y = self.together(self.value(node.test), *[self.converted(arm, kind) for arm in arms])
            return b.select(condition, x, y)
        with b.goto_block(b.function.blocks[0]):
            slot = b.alloca(self.kinds[kind])
        then, other, after = [b.append_basic_block(name) for name in ("then", "else", "after")]
        self.branch(node.test, then, other)
        for start, arm in ((then, node.body), (other, node.orelse)):
            b.position_at_end(start)
            b.store(self.converted(arm, kind), slot)
            b.branch(after)
        b.position_at_end(after)
        return b.load(slot, typ=self.kinds[kind])

    def comparison(self, node: ast.Compare) -> Any:
        """Comparisons, which may follow each other."""
        b, left, total = self.builder, node.left, None
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot):
                result = b.icmp_unsigned(SIGNS[type(op)], self.address(left), POINTER(None))
            else:
                kind = self.source.joined(left, right)
                x, y = self.together(self.converted(left, kind), self.converted(right, kind))
                compare = b.fcmp_unordered if isinstance(op, ast.NotEq) else b.fcmp_ordered
                compare = compare if kind in FLOATING else b.icmp_signed
                result = compare(SIGNS[type(op)], x, y)
                if kind == "number" and self.is_complex:
                    join = b.or_ if isinstance(op, ast.NotEq) else b.and_
                    result = join(*[b.extract_element(result, INT(part)) for part in (0, 1)])
            total = result if total is None else b.and_(total, result)
            left = right
        return total

    def operation(self, node: ast.BinOp, kind: str) -> Any:
        """An operation on two numbers of one type."""
        x, y = self.together(self.converted(node.left, kind), self.converted(node.right, kind))
        if kind not in FLOATING:
            word = WHOLE[type(node.op)]
            flags = {"flags": ("nsw",)} if word in ("add", "sub", "mul") else {}
            return getattr(self.builder, word)(x, y, **flags)
        if self.is_complex and kind == "number" and isinstance(node.op, ast.Mult | ast.Div):
            return self.complex_operation(node, x, y)
        return getattr(self.builder, FLOATS[type(node.op)])(x, y)

    def complex_operation(self, node: ast.BinOp, x: Any, y: Any) -> Any:
        """A product, or a quotient by a real number."""
        b = self.builder
        a, re, c, d = [b.extract_element(value, INT(part)) for value in (x, y) for part in (0, 1)]
        if isinstance(node.op, ast.Div):
            assert self.source.type_of(node.right) == "real", ast.dump(node)
            parts = b.fdiv(a, c), b.fdiv(re, c)
        else:
            parts = b.fsub(b.fmul(a, c), b.fmul(re, d)), b.fadd(b.fmul(a, d), b.fmul(re, c))
        first = b.insert_element(ir.Constant(x.type, ir.Undefined), parts[0], INT(0))
        return b.insert_element(first, parts[1], INT(1))

    def is_lane(self, node: ast.Subscript) -> bool:
        """Whether an element is another one in each lane."""
        assert self.lanes is not None
        return any([isinstance(part, ast.Name) and part.id == self.lanes[0] for part in ast.walk(node.slice)])

    def address(self, node: ast.expr) -> Any:
        """The address of an array, or of an element: that of the first lane."""
        b = self.builder
        if isinstance(node, ast.Constant):
            return POINTER(None)
        if isinstance(node, ast.Name):
            is_place = node.id in self.source.shapes or self.slots[node.id] in self.function.args
            return self.slots[node.id] if is_place else b.load(self.slots[node.id], typ=POINTER)
        if isinstance(node, ast.IfExp):
            condition = self.value(node.test)
            return b.select(condition, self.address(node.body), self.address(node.orelse))
        base, terms, _ = self.source.view(node, self.places)
        array = self.source.type_of(ast.Name(base))
        kind = self.kinds["number" if array in STRIDES else array[:-2]]
        place: Any = None
        outside = self.places
        if self.lanes is not None:
            self.places = outside | {self.lanes[0]: 0}
        for index, stride in terms:
            step = self.converted(index, "int")
            if stride and str(self.stride(stride)) != str(INDEX(1)):
                step = b.mul(step, self.stride(stride), flags=("nsw",))
            place = step if place is None else b.add(place, step, flags=("nsw",))
        self.places = outside
        start = self.address(ast.Name(base))
        return start if place is None else b.gep(start, [place], source_etype=kind, inbounds=True)

    def stride(self, stride: str) -> Any:
        """The value of a stride."""
        return self.strides[stride] if stride in self.strides else INDEX(int(stride or 1))

    def argument(self, node: ast.expr, kind: str) -> list[Any]:
        """The argument for a parameter of a type: an address and its strides, a constant, or a value."""
        known = None if is_array(kind) else self.source.constant(node, self.places)
        if known is not None or kind not in STRIDES:
            return [self.converted(node, kind) if known is None else known]
        strides = zip(self.source.view(node, self.places).strides, STRIDES[kind], strict=True)
        return [self.address(node), *[self.stride(stride) for stride, ending in strides if ending]]

    def call(self, node: ast.Call, kind: str) -> Any:
        """A call of a routine, of an instruction, or of the C library."""
        b, name, args = self.builder, called_name(node), node.args
        callee = self.source.callee(node)
        if callee is not None:
            kinds = reading(callee).parameters.values()
            passed = [value for arg, each in zip(args, kinds, strict=True) for value in self.argument(arg, each)]
            return call_routine(b, callee, self.dtype, *passed)
        if name in ("int", "float", "Real", "Number", "Int32"):
            return self.converted(args[0], kind)
        if name in ("is_rows", "is_columns"):
            strides = self.source.view(args[0], self.places).strides
            return b.icmp_signed("==", self.stride(strides[-1 if name == "is_rows" else 0]), INDEX(1))
        if name == "turned_square":
            side, source, source_step, target, target_step = args
            return self.turned_square(
                self.source.constant(side, self.places),
                *[self.address(source), self.converted(source_step, "int")],
                *[self.address(target), self.converted(target_step, "int")],
            )
        is_complex = self.is_complex and self.source.type_of(args[0]) == "number"
        values: Sequence[Any] = self.together(
            *[self.converted(arg, kind if name == "fma" else self.source.type_of(arg)) for arg in args]
        )
        if name in ("conj", "real_part") and not is_complex:
            return values[0]
        if name == "conj":
            return b.insert_element(values[0], b.fneg(b.extract_element(values[0], INT(1))), INT(1))
        if name == "real_part":
            return b.extract_element(values[0], INT(0))
        if name == "fma":
            return b.fadd(b.fmul(*values[:2], flags=FUSED), values[2], flags=FUSED)
        if name == "modulus" and is_complex:
            name, values = "hypot", [b.extract_element(values[0], INT(part)) for part in (0, 1)]
        typ = values[0].type
        scalar = typ.element if isinstance(typ, ir.VectorType) else typ
        if name in INTRINSICS:
            count = f"v{typ.count}" if isinstance(typ, ir.VectorType) else ""
            name = f"llvm.{INTRINSICS[name]}.{count}f{64 if scalar is DOUBLE else 32}"
        elif scalar is not DOUBLE:
            name = f"{name}f"
        return b.call(self.library(name, ir.FunctionType(typ, [typ] * len(values))), values)

    def turned_square(self, side: int, source: Any, source_step: Any, target: Any, target_step: Any) -> Any:
        """Lines of a square in registers: exchanges blocks off the diagonal, the largest first."""
        b, element = self.builder, self.kinds["number"]
        kind = ir.VectorType(element, side)
        places = [
            [b.gep(start, [b.mul(INDEX(i), step)], source_etype=element) for i in range(side)]
            for start, step in ((source, source_step), (target, target_step))
        ]
        lines, step = [b.load(place, typ=kind, align=_alignment(element)) for place in places[0]], side // 2
        while step:
            low = [lane if not lane & step else side + lane - step for lane in range(side)]
            high = [lane + step if not lane & step else side + lane for lane in range(side)]
            masks = [ir.Constant(ir.VectorType(INT, side), mask) for mask in (low, high)]
            for i in [i for i in range(side) if not i & step]:
                pair = lines[i], lines[i + step]
                lines[i], lines[i + step] = [b.shuffle_vector(*pair, mask) for mask in masks]
            step //= 2
        for line, place in zip(lines, places[1], strict=True):
            b.store(line, place, align=_alignment(element))


def _bytes(kind: Any) -> int:
    """The bytes of an element."""
    return kind.count * _alignment(kind) if isinstance(kind, ir.VectorType) else _alignment(kind)


@functools.cache
def _alignment(kind: Any) -> int:
    """The alignment of an element in bytes."""
    scalar = kind.element if isinstance(kind, ir.VectorType) else kind
    return 8 if scalar is DOUBLE or scalar is INDEX or scalar is POINTER else 1 if scalar is BIT else 4
