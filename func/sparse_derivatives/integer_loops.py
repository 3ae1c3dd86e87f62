"""Loops over integers as native code: Python functions of integers and arrays, translated to LLVM IR.

A greedy colouring looks at its vertices one after the other, which NumPy cannot do at once. Its loops are written as
plain Python (`for` over ranges, `while`, `if`, assignments, elements of arrays), and run as such where there is no
LLVM. Variables are integers; arrays are of integers, or of floats where the argument is annotated so.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from func.backends.llvm import machine

_OPERATIONS = {ast.Add: "add nsw", ast.Sub: "sub nsw", ast.Mult: "mul nsw", ast.FloorDiv: "sdiv"}
_FLOAT_OPERATIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}
_COMPARISONS = {ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge", ast.Eq: "eq", ast.NotEq: "ne"}


Floats = np.ndarray[Any, np.dtype[np.float64]]
"""An array of float64."""


class IntegerLoops:
    """A function of int64 numbers and of arrays, compiled at its first call; it returns an integer."""

    def __init__(self, function: Callable[..., int]) -> None:
        self.function = function
        self._native: Any = None
        annotations = function.__annotations__
        names = inspect.signature(function).parameters
        self._dtypes = [np.float64 if annotations.get(name) == "Floats" else np.int64 for name in names]

    def __call__(self, *args: Any) -> int:
        if not machine.available():
            return self.function(*args)
        if self._native is None:
            self._native = _compiled(self.function)
        checked = [
            arg if isinstance(arg, int) else np.require(arg, dtype, ["C", "W"])
            for arg, dtype in zip(args, self._dtypes, strict=True)
        ]
        numbers = [arg if isinstance(arg, int) else arg.ctypes.data for arg in checked]
        return int(self._native(*numbers))


def integer_loops(function: Callable[..., int]) -> IntegerLoops:
    """Decorate a function of integers, int64 arrays, and arrays annotated as `Floats`."""
    return IntegerLoops(function)


def _compiled(function: Callable[..., int]) -> Any:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    code = machine.compile_ir(_Translation(tree).text())
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(tree.args.args))
    native = prototype(code.address(tree.name))
    return functools.partial(_held_call, code, native)


def _held_call(code: Any, native: Any, *numbers: int) -> int:
    """Call native code while its module is held."""
    result: int = native(*numbers)
    return result


class _Translation:
    """The IR of one function: each variable has a place on the stack, which LLVM turns into registers."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.tree = tree
        arguments = tree.args.args
        self.floats = {a.arg for a in arguments if isinstance(a.annotation, ast.Name) and a.annotation.id == "Floats"}
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        """(where `continue` goes, where `break` goes) of the loops around the statement."""

    def text(self) -> str:
        arguments = [argument.arg for argument in self.tree.args.args]
        assigned = [node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and _is_stored(node)]
        for name in dict.fromkeys([*arguments, *assigned]):
            self.lines.append(f"%v.{name} = alloca i64")
            self.lines.append(f"store i64 {f'%{name}' if name in arguments else '0'}, i64* %v.{name}")
        self.block(self.tree.body)
        self.lines.append("ret i64 0")
        head = ", ".join([f"i64 %{name}" for name in arguments])
        return "\n".join([f"define i64 @{self.tree.name}({head}) {{", "entry:", *self.lines, "}"])

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def emit(self, text: str) -> str:
        name = f"%{self.new()}"
        self.lines.append(f"{name} = {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a block; the one before falls through to it."""
        self.lines.extend([f"br label %{label}", f"{label}:"])

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self.store(node.targets[0], self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            self.store(node.target, self.value(ast.BinOp(node.target, node.op, node.value)))
        elif isinstance(node, ast.If):
            then, otherwise, done = self.new(), self.new(), self.new()
            self.branch(node.test, then, otherwise)
            self.lines.append(f"{then}:")
            self.block(node.body)
            self.lines.extend([f"br label %{done}", f"{otherwise}:"])
            self.block(node.orelse)
            self.start(done)
        elif isinstance(node, ast.While):
            self.loop(node.test, node.body, [])
        elif isinstance(node, ast.For):
            self.for_range(node)
        elif isinstance(node, (ast.Break, ast.Continue)):
            target = self.loops[-1][isinstance(node, ast.Break)]
            self.lines.extend([f"br label %{target}", f"{self.new()}:"])
        elif isinstance(node, ast.Return):
            assert node.value is not None
            self.lines.extend([f"ret i64 {self.value(node.value)}", f"{self.new()}:"])
        else:
            assert isinstance(node, ast.Expr), ast.dump(node)  # a docstring

    def for_range(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.target, ast.Name)
        start, stop = [self.value(bound) for bound in node.iter.args]
        place = f"%{self.new()}"
        self.lines.insert(0, f"{place} = alloca i64")
        self.lines.append(f"store i64 {start}, i64* {place}")
        test, body, step, done = self.new(), self.new(), self.new(), self.new()
        self.start(test)
        position = self.emit(f"load i64, i64* {place}")
        inside = self.emit(f"icmp slt i64 {position}, {stop}")
        self.lines.extend([f"br i1 {inside}, label %{body}, label %{done}", f"{body}:"])
        self.store(node.target, position)
        self.loops.append((step, done))
        self.block(node.body)
        self.loops.pop()
        self.start(step)
        following = self.emit(f"add nsw i64 {position}, 1")
        self.lines.extend([f"store i64 {following}, i64* {place}", f"br label %{test}", f"{done}:"])

    def loop(self, condition: ast.expr, body: list[ast.stmt], after: list[ast.stmt]) -> None:
        test, inside, done = self.new(), self.new(), self.new()
        self.start(test)
        self.branch(condition, inside, done)
        self.lines.append(f"{inside}:")
        self.loops.append((test, done))
        self.block([*body, *after])
        self.loops.pop()
        self.lines.extend([f"br label %{test}", f"{done}:"])

    def branch(self, test: ast.expr, then: str, otherwise: str) -> None:
        """Go to a block by a condition; `and` stops at the first that does not hold."""
        if isinstance(test, ast.BoolOp):
            assert isinstance(test.op, ast.And)
            for value in test.values[:-1]:
                following = self.new()
                self.branch(value, following, otherwise)
                self.lines.append(f"{following}:")
            self.branch(test.values[-1], then, otherwise)
            return
        assert isinstance(test, ast.Compare)
        word = _COMPARISONS[type(test.ops[0])]
        holds = self.emit(f"icmp {word} i64 {self.value(test.left)}, {self.value(test.comparators[0])}")
        self.lines.append(f"br i1 {holds}, label %{then}, label %{otherwise}")

    def kind(self, node: ast.expr) -> str:
        """The type of a value."""
        if isinstance(node, ast.BinOp):
            return self.kind(node.left)
        is_float = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.floats
        return "double" if is_float else "i64"

    def element(self, node: ast.Subscript) -> str:
        kind = self.kind(node)
        base = self.emit(f"inttoptr i64 {self.value(node.value)} to {kind}*")
        return self.emit(f"getelementptr {kind}, {kind}* {base}, i64 {self.value(node.slice)}")

    def store(self, target: ast.expr, value: str) -> None:
        place = self.element(target) if isinstance(target, ast.Subscript) else f"%v.{target.id}"  # type: ignore[attr-defined]
        kind = self.kind(target)
        self.lines.append(f"store {kind} {value}, {kind}* {place}")

    def value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.UnaryOp):
            assert isinstance(node.op, ast.USub)
            return self.emit(f"sub i64 0, {self.value(node.operand)}")
        if isinstance(node, ast.Name):
            return self.emit(f"load i64, i64* %v.{node.id}")
        if isinstance(node, ast.Subscript):
            kind = self.kind(node)
            return self.emit(f"load {kind}, {kind}* {self.element(node)}")
        assert isinstance(node, ast.BinOp), ast.dump(node)
        kind = self.kind(node)
        operation = (_OPERATIONS if kind == "i64" else _FLOAT_OPERATIONS)[type(node.op)]
        return self.emit(f"{operation} {kind} {self.value(node.left)}, {self.value(node.right)}")


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
