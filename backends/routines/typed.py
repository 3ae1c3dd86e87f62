"""The types of variables, expressions and constants in routines, and the written arrays."""

from __future__ import annotations

import ast
import functools
import linecache
import math
import operator
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

from func.backends.routines.language import TYPES

Routine: TypeAlias = Callable[..., Any]

LANGUAGE = "func.backends.routines.language"
RANKS = ("bool", "int32", "int", "long", "bits", "double", "real", "number")
"""Scalar types: two operands are converted to the later one."""
STRIDES: dict[str, tuple[str, ...]] = {"matrix": ("_down", "_across"), "rows": ("_down", ""), "vector": ("_step",)}
"""The suffixes of variables for the strides of a view; an empty one means a stride of one."""
FLOATING = ("double", "real", "number")
SAME = frozenset({"fma", "conj", "min", "max"})
REAL_PART = frozenset({"real_part", "modulus", "pivot_size", "abs"})
RESULTS = {
    **{"int": "int", "float": "double", "Real": "real", "Number": "number"},
    **{"Int32": "int32", "expansion": "double", "horner": "double", "turned_square": "void"},
    **{"is_rows": "bool", "is_columns": "bool", "is_dense": "bool", "bits": "bits", "ilogb": "int32"},
    **{"rows_of": "rows", "reals_of": "real[]"},
}
"""Types of functions outside of routines and the C library; functions of the latter have that of their argument."""


class ArrayPart(NamedTuple):
    """A part of an array: its start, a sum of indices times strides, and the remaining strides.

    A stride is the name of a variable, digits, or nothing for one.
    """

    base: str
    terms: tuple[tuple[ast.expr, str], ...]
    strides: tuple[str, ...]


class Reading:
    """A routine with the types of its variables."""

    def __init__(self, routine: Routine) -> None:
        assert isinstance(routine, FunctionType)
        self.routine = routine
        tree = self.tree = _functions(routine.__code__.co_filename, routine.__module__)[routine.__name__]
        self.name = routine.__name__.lstrip("_")
        self.apart = getattr(routine, "apart", False)
        """Whether no two arrays overlap."""
        self.names: dict[str, Any] = routine.__globals__
        arguments = self.tree.args.args
        indexed = {base_name(node) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
        annotations = [
            _annotation(a.annotation) if a.annotation is not None else "long[]" if a.arg in indexed else "int"
            for a in arguments
        ]
        self.result = "int" if tree.returns is None else _annotation(tree.returns)
        self.is_generic = any([word in STRIDES or word[:4] in ("numb", "real") for word in (*annotations, self.result)])
        self.variables = {argument.arg: kind for argument, kind in zip(arguments, annotations, strict=True)}
        self.parameters = dict(self.variables)
        self.fixed = {a.arg for a in arguments if isinstance(a.annotation, ast.Name) and a.annotation.id == "Fixed"}
        """Parameters that may be constants."""
        self.shapes: dict[str, list[ast.expr]] = {}
        """The lengths of local arrays."""
        self.stores: dict[str, int] = {}
        """The number of assignments of a variable."""
        for statement in self.tree.body:
            self._read(statement)

    @property
    def floating(self) -> str:
        """The type of a number with a point."""
        return "real" if self.is_generic else "double"

    def _read(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(statement.target, ast.Name)
            self._store(statement.target.id, _annotation(statement.annotation))
            value = statement.value
            if isinstance(value, ast.Call) and called_name(value) in ("zeros", "empty"):
                self.shapes[statement.target.id] = value.args
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    self._store(target.id, self.type_of(statement.value))
                elif isinstance(target, ast.Tuple):
                    assert isinstance(statement.value, ast.Tuple)
                    for name, value in zip(target.elts, statement.value.elts, strict=True):
                        if isinstance(name, ast.Name):
                            self._store(name.id, self.type_of(value))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            self._store(statement.target.id, "int")
        elif isinstance(statement, ast.For):
            assert isinstance(statement.target, ast.Name)
            self._store(statement.target.id, "int")
        for part in bodies(statement):
            for inner in part:
                self._read(inner)

    def _store(self, name: str, kind: str) -> None:
        self.variables.setdefault(name, kind)
        self.stores[name] = self.stores.get(name, 0) + 1

    def constant(self, node: ast.expr, places: dict[str, Any]) -> Any:
        """The value of an expression of constants; None for another one. `places` are those of the type of numbers."""
        if isinstance(node, ast.Subscript | ast.Call):
            return None
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self.variables and node.id not in places:
                return None
            value = places.get(node.id, self.names.get(node.id))
            return value if isinstance(value, bool | int | float) else None
        if isinstance(node, ast.Attribute):
            return getattr(math, node.attr, None)
        if isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            values = [self.constant(value, places) for value in node.values]
            return decides if decides in values else None if None in values else not decides
        if isinstance(node, ast.IfExp):
            test = self.constant(node.test, places)
            return None if test is None else self.constant(node.body if test else node.orelse, places)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = self.constant(node.left, places), self.constant(node.comparators[0], places)
            compare = _COMPARISONS.get(type(node.ops[0]))
            return None if None in sides or compare is None else compare(*sides)
        if isinstance(node, ast.UnaryOp):
            value = self.constant(node.operand, places)
            return None if value is None else -value if isinstance(node.op, ast.USub) else not value
        if isinstance(node, ast.BinOp):
            values = [self.constant(part, places) for part in (node.left, node.right)]
            return None if None in values else _OPERATIONS[type(node.op)](*values)
        return None

    def type_of(self, node: ast.expr) -> str:
        """The type of an expression, which is noted at its node."""
        known: str | None = vars(node).get("found_type")
        if known is None:
            known = vars(node)["found_type"] = self._type_of(node)
        return known

    def _type_of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return {bool: "bool", int: "int"}.get(type(node.value), self.floating)
        if isinstance(node, ast.Attribute):
            return "matrix" if node.attr == "T" else self.floating
        if isinstance(node, ast.Name):
            if node.id in self.variables:
                return self.variables[node.id]
            value = self.names[node.id]
            if isinstance(value, tuple):
                return "int[]" if isinstance(value[0], int) else "double[]"
            return {bool: "bool", int: "int"}.get(type(value), self.floating)
        if isinstance(node, ast.Subscript):
            kind = self.type_of(node.value)
            are_slices = [isinstance(index, ast.Slice) for index in _indices(node)]
            if kind in ("matrix", "rows") and len(are_slices) == 1:
                are_slices.append(True)
            if not any(are_slices):
                return "number" if kind in STRIDES else kind.removesuffix("[]")
            if all(are_slices):
                return kind
            return "number[]" if kind == "rows" and are_slices[1] else "vector"
        if isinstance(node, ast.Compare | ast.BoolOp):
            return "bool"
        if isinstance(node, ast.UnaryOp):
            return "bool" if isinstance(node.op, ast.Not) else self.type_of(node.operand)
        if isinstance(node, ast.IfExp):
            return self.joined(node.body, node.orelse)
        if isinstance(node, ast.BinOp):
            kind = self.joined(node.left, node.right)
            if isinstance(node.op, ast.Div) and kind not in FLOATING:
                return self.floating
            return "int" if kind == "bool" and isinstance(node.op, ast.Add) else kind
        assert isinstance(node, ast.Call), ast.dump(node)
        return self._called(node)

    def view(self, node: ast.expr, places: dict[str, Any]) -> ArrayPart:
        """The part of an array that an expression is, which is noted at its node unless `places` decide on it."""
        known: ArrayPart | None = vars(node).get("found_view")
        if known is None:
            known = self._view(node, places)
            if known.base not in self.shapes:
                vars(node)["found_view"] = known
        return known

    def _view(self, node: ast.expr, places: dict[str, Any]) -> ArrayPart:
        if isinstance(node, ast.Name):
            kind = self.type_of(node)
            strides = tuple([ending and f"{node.id}{ending}" for ending in STRIDES.get(kind, ("",))])
            if node.id in self.shapes and kind == "rows":
                strides = (str(self.constant(self.shapes[node.id][1], places)), "")
            return ArrayPart(node.id, (), strides)
        if isinstance(node, ast.Attribute):
            inner = self.view(node.value, places)
            return inner._replace(strides=inner.strides[::-1])
        if isinstance(node, ast.Call):  # rows_of
            stride = ast.unparse(node.args[1])
            return self.view(node.args[0], places)._replace(strides=(stride if stride != "1" else "", ""))
        assert isinstance(node, ast.Subscript), ast.dump(node)
        base, terms, strides = self.view(node.value, places)
        left = []
        indices = _indices(node)
        for index, stride in zip(indices, strides, strict=False):
            start = index.lower if isinstance(index, ast.Slice) else index
            if start is not None and not (isinstance(start, ast.Constant) and start.value == 0):
                terms += ((start, stride),)
            if isinstance(index, ast.Slice):
                left.append(stride)
        return ArrayPart(base, terms, (*left, *strides[len(indices) :]))

    def _called(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        callee = self.callee(node)
        if callee is not None:
            return reading(callee).result if callee is not self.routine else self.result
        if name in RESULTS:
            return RESULTS[name]
        kind = functools.reduce(_later, [self.type_of(arg) for arg in node.args])
        if name in REAL_PART:
            return "real" if kind == "number" else kind
        return kind if kind in FLOATING or name in SAME else self.floating

    def joined(self, x: ast.expr, y: ast.expr) -> str:
        """The type of two expressions together."""
        kinds = self.type_of(x), self.type_of(y)
        for node, kind, other in ((x, *kinds), (y, *kinds[::-1])):
            if isinstance(node, ast.Constant) and type(node.value) is int and other != "bool":
                return other
            if is_array(kind):
                return kind
        return _later(*kinds)

    def callee(self, node: ast.Call) -> Routine | None:
        """The routine that is called; None for a function of the language."""
        assert isinstance(node.func, ast.Name)
        function = self.names.get(node.func.id)
        is_routine = (
            isinstance(function, FunctionType) and function.__module__ != LANGUAGE and node.func.id not in RESULTS
        )
        return function if is_routine else None

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """The arrays of which elements are assigned, here or in what is called."""
        names: set[str] = set()
        aliases: list[tuple[str, str]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                names.add(base_name(node))
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    aliases += self._aliases(target, node.value)
            elif isinstance(node, ast.Call) and (callee := self.callee(node)) is not None:
                inner = reading(callee)
                if callee is self.routine:
                    continue
                for arg, name in zip(node.args, inner.parameters, strict=True):
                    if name in inner.written:
                        names |= bases(arg)
        while True:
            more = {base for name, base in aliases if name in names} - names
            if not more:
                return frozenset(names)
            names |= more

    def _aliases(self, target: ast.expr, value: ast.expr) -> list[tuple[str, str]]:
        """Pairs of an assigned array and the one that it is a part of."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=True)
            return [pair for name, part in pairs for pair in self._aliases(name, part)]
        if not isinstance(target, ast.Name) or not is_array(self.variables[target.id]):
            return []
        return [(target.id, base) for base in bases(value)]


@functools.cache
def _functions(file: str, module: str) -> dict[str, ast.FunctionDef]:
    """The functions of a module; reads the file once. Raises: OSError without sources."""
    lines = linecache.getlines(file, vars(sys.modules[module]))
    if not lines:
        raise OSError(
            f"routines are translated from their source, and {file} is not readable: install func with its sources"
        )
    return {node.name: node for node in ast.parse("".join(lines)).body if isinstance(node, ast.FunctionDef)}


@functools.cache
def reading(routine: Routine) -> Reading:
    """A routine, read once. Without annotations it is one of integers and arrays of int64."""
    return Reading(routine)


def bodies(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement."""
    return [getattr(statement, name) for name in ("body", "orelse") if getattr(statement, name, None)]


def called_name(node: ast.Call) -> str:
    """The name of the callee."""
    assert isinstance(node.func, ast.Name)
    return node.func.id


def bases(node: ast.expr) -> set[str]:
    """The arrays that an expression may be a part of."""
    if isinstance(node, ast.IfExp):
        return bases(node.body) | bases(node.orelse)
    if isinstance(node, ast.Call) and called_name(node) in ("rows_of", "reals_of"):
        return bases(node.args[0])
    if isinstance(node, ast.Subscript | ast.Name | ast.Attribute):
        return {base_name(node)}
    return set()


def base_name(node: ast.expr) -> str:
    """The array that a subscript belongs to."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node.id


def is_array(kind: str) -> bool:
    """Whether a type is one of arrays or views."""
    return kind in STRIDES or kind.endswith("[]")


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _later(x: str, y: str) -> str:
    return max(x, y, key=RANKS.index) if x in RANKS and y in RANKS else x


def _annotation(node: ast.expr | None) -> str:
    """The type that an annotation names; an array that may be missing is `Numbers | None`."""
    if isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.Attribute):
        return TYPES[node.attr]
    return TYPES["None" if not isinstance(node, ast.Name) else node.id]


_COMPARISONS: dict[type[ast.cmpop], Any] = {
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
_OPERATIONS: dict[type[ast.operator], Any] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
}
