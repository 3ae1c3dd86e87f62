"""Routines as functions of C99, which is CUDA C too.

A variable has its declaration at the first assignment, in the block around all its uses. An array is a pointer, `const`
if no code writes an element.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from func.backends.c.declarations import real, stored_type
from func.backends.loops.kernels import DType
from func.backends.routines.chebyshev import chebyshev
from func.backends.routines.special_tables import EXPANSIONS
from func.backends.routines.typed import FLOATING, STRIDES, Reading, Routine, bases, bodies, is_array, reading

WIDTH = 120
TERNARY, OR, AND, COMPARED, SUM, PRODUCT, UNARY, ATOM = range(8)
"""The precedence of parts of expressions."""
OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    **{ast.Add: ("+", SUM), ast.Sub: ("-", SUM), ast.Mult: ("*", PRODUCT), ast.Div: ("/", PRODUCT)},
    **{ast.FloorDiv: ("/", PRODUCT), ast.Mod: ("%", PRODUCT)},
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "=="},
    ast.IsNot: "!=",
}
WHOLE = ("int", "int32", "long")
WIDENED = (("int32", "int"), ("int32", "long"))
LIBRARIES = {"HAS_LAPACK": "FUNC_LAPACK", "HAS_CBLAS": "FUNC_CBLAS"}
WORDS = {
    **{"bool": "bool", "int": "ptrdiff_t", "int32": "int32_t", "long": "int64_t"},
    **{"double": "double", "void": "void"},
}


def name_of(routine: Routine, dtype: DType | None, fixed: int | None = None) -> str:
    """The name of a routine in C, with the type of numbers if it is for several, and the value of its `Fixed`
    parameter."""
    source = reading(routine)
    name = f"func_{source.name}{'' if fixed is None else f'_{fixed}'}"
    if not source.is_generic:
        return name
    assert dtype is not None
    return f"{name}_{stored_type(dtype)}{'_complex' if dtype.kind == 'c' else ''}"


EXTERNALS: dict[str, Callable[[DType], dict[str, str]]] = {}
"""The texts of external functions by their names in C."""


@functools.cache
def texts_of(routine: Routine, dtype: DType | None = None, fixed: int | None = None) -> dict[str, str]:
    """The text of a routine by its name, after those of its callees."""
    printer = RoutinePrinter(reading(routine), dtype, fixed)
    own = printer.text()
    texts: dict[str, str] = {}
    for callee in printer.callees:
        if callee is not routine:
            texts |= texts_of(callee, dtype)
    if printer.expansions:
        texts |= texts_of(chebyshev) | {f"func_{name}": _expansion(name) for name in printer.expansions}
    return texts | printer.definitions | {name_of(routine, dtype, fixed): own}


FMA = """\
/* x y + z; rounded once where the processor does so. */
static inline TYPE func_fma_TYPE(TYPE x, TYPE y, TYPE z) {
USUAL
}"""


def fma_text(word: str) -> str:
    """The function x y + z of a type."""
    name = word.replace(" ", "_")
    end = {"double": "", "float": "F"}.get(word)
    usual = "    return x * y + z;"
    if end is not None:
        usual = f"#ifdef FP_FAST_FMA{end}\n    return fma{end.lower()}(x, y, z);\n#else\n{usual}\n#endif"
    return FMA.replace("USUAL", usual).replace("_TYPE", f"_{name}").replace("TYPE", word)


def _expansion(name: str) -> str:
    """The function of a Chebyshev expansion."""
    low, high, coefficients = EXPANSIONS[name]
    listed = ", ".join([repr(c) for c in coefficients])
    lines = textwrap.wrap(listed, 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
    values = "\n".join(lines)
    return (
        f"static double func_{name}(double u) {{\n"
        f"    static const double c[{len(coefficients)}] = {{\n{values}\n    }};\n"
        f"    return func_chebyshev({len(coefficients)}, c, (u - {(low + high) / 2!r}) * {2 / (high - low)!r});\n}}"
    )


class RoutinePrinter:
    """Writes one routine for one type of numbers."""

    def __init__(self, source: Reading, dtype: DType | None, fixed: int | None = None) -> None:
        self.source, self.dtype, self.fixed = copy.copy(source), dtype, fixed
        self.source.variables = dict(source.variables)  # more are added here
        self.is_complex = dtype is not None and dtype.kind == "c"
        self.single = dtype is not None and dtype.itemsize == (8 if self.is_complex else 4)
        part = "double" if dtype is None else stored_type(dtype)
        self.words = WORDS | {"real": part, "number": f"{part} complex" if self.is_complex else part}
        self.places = _places(self.is_complex, self.single)
        if fixed is not None:
            self.places |= dict.fromkeys(source.fixed, fixed)
        self.words["bits"] = "uint32_t" if self.single else "uint64_t"
        self.callees: dict[Routine, None] = {}
        self.definitions: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.expansions: dict[str, None] = {}
        """The Chebyshev expansions that the routine evaluates."""
        self.lines: list[str] = []
        self.declared = set(source.parameters)
        self.written = set(source.written)
        self.count = 0

    def text(self) -> str:
        """The function, with its docstring as a comment."""
        tree = self.source.tree
        self.block(tree.body, 1)
        listed = [item for item in self.source.parameters.items() if item[0] not in self.places]
        parameters = [part for name, kind in listed for part in self.parameter(name, kind)]
        name = name_of(self.source.routine, self.dtype, self.fixed)
        head = f"static {self.words[self.source.result]} {name}({', '.join(parameters)}) {{"
        note = ast.get_docstring(tree)
        notes = [] if note is None else textwrap.wrap(f"/* {' '.join(note.split())} */", WIDTH, subsequent_indent="   ")
        return "\n".join([*notes, *_wrapped(head, 0), *self.tables.values(), *self.lines, "}"])

    def parameter(self, name: str, kind: str) -> list[str]:
        """The declarations of a parameter and its strides."""
        strides = [f"ptrdiff_t {name}{ending}" for ending in STRIDES.get(kind, ()) if ending]
        return [self.pointer(kind, name, "restrict " if self.source.apart else ""), *strides]

    def pointer(self, kind: str, name: str, qualifier: str = "") -> str:
        """The declaration of a variable, without a value."""
        if not is_array(kind):
            return f"{self.words[kind]} {name}"
        const = "" if name in self.written else "const "
        return f"{const}{self.element_word(kind)} *{qualifier}{name}"

    def element_word(self, kind: str) -> str:
        """The type of the elements of an array."""
        return self.words["number" if kind in STRIDES else kind[:-2]]

    # -- statements -------------------------------------------------------------------------------------------------
    def line(self, depth: int, text: str) -> None:
        """A line, broken where it is too long."""
        self.lines += _wrapped(text, depth)

    def block(self, statements: Sequence[ast.stmt], depth: int) -> None:
        """The statements of a block."""
        before = set(self.declared)
        self.inline(statements, depth)
        self.declared = before

    def inline(self, statements: Sequence[ast.stmt], depth: int) -> None:
        """Statements, with the declarations of what several of them share."""
        for place, statement in enumerate(statements):
            if not isinstance(statement, ast.Assign | ast.AnnAssign):
                for name in dict.fromkeys(_mentioned(statement)):
                    is_new = name in self.source.variables and name not in self.declared
                    if is_new and _is_shared(statements, place, name):
                        self.declare(name, depth)
            self.statement(statement, depth)

    def declare(self, name: str, depth: int) -> None:
        """Declare a variable that blocks assign."""
        kind = self.source.variables[name]
        self.declared.add(name)
        self.line(depth, f"{self.pointer(kind, name)} = {'NULL' if is_array(kind) else '0'};")

    def statement(self, node: ast.stmt, depth: int) -> None:
        """One statement."""
        if isinstance(node, ast.Assign):
            self.assign(node, depth)
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name) and node.value is not None
            self.store(node.target, node.value, depth)
        elif isinstance(node, ast.AugAssign):
            sign, _ = OPERATORS[type(node.op)]
            value = self.converted(node.value, self.source.type_of(node.target))
            self.line(depth, f"{self.value(node.target)} {sign}= {value};")
        elif isinstance(node, ast.If):
            self.condition(node, depth)
        elif isinstance(node, ast.While):
            self.braced(f"while ({self.value(node.test)}) {{", node.body, depth)
        elif isinstance(node, ast.For):
            self.counted(node, depth)
        elif isinstance(node, ast.Break | ast.Continue):
            self.line(depth, "break;" if isinstance(node, ast.Break) else "continue;")
        elif isinstance(node, ast.Return):
            result = "" if node.value is None else f" {self.converted(node.value, self.source.result)}"
            self.line(depth, f"return{result};")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.line(depth, f"{self.value(node.value)};")
        else:
            assert isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant), ast.dump(node)

    def braced(self, head: str, statements: Sequence[ast.stmt], depth: int) -> None:
        """A block behind its head."""
        self.line(depth, head)
        self.block(statements, depth + 1)
        self.line(depth, "}")

    def condition(self, node: ast.If, depth: int) -> None:
        """A choice: made here where it is one of constants, by the preprocessor where it is one of libraries."""
        known = self.source.constant(node.test, self.places)
        first = node.test.values[0] if isinstance(node.test, ast.BoolOp) else node.test
        if isinstance(first, ast.Name) and first.id in LIBRARIES:
            assert isinstance(node.test, ast.BoolOp)
            rest = ast.BoolOp(ast.And(), node.test.values[1:])
            self.lines.append(f"#ifdef {LIBRARIES[first.id]}")
            self.condition(ast.If(rest if len(rest.values) > 1 else rest.values[0], node.body, []), depth)
            self.lines.append("#endif")
        elif known is not None:
            self.inline(node.body if known else node.orelse, depth)
        else:
            self.braced(f"if ({self.value(node.test)}) {{", node.body, depth)
            if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                self.lines.pop()
                count = len(self.lines)
                self.condition(node.orelse[0], depth)
                self.lines[count] = "    " * depth + "} else " + self.lines[count].lstrip()
            elif node.orelse:
                self.lines.pop()
                self.braced("} else {", node.orelse, depth)

    def counted(self, node: ast.For, depth: int) -> None:
        """A loop over a range."""
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        bounds = node.iter.args
        start = "0" if len(bounds) == 1 else self.value(bounds[0])
        stop, name = bounds[min(1, len(bounds) - 1)], node.target.id
        step = self.source.constant(bounds[2], self.places) if len(bounds) == 3 else 1
        if step is None:
            test, advance = f"{name} < {self.bound(stop, COMPARED)}", f"{name} += {self.value(bounds[2])}"
        elif step > 0:
            test = f"{name} < {self.bound(stop, COMPARED)}"
            advance = f"++{name}" if step == 1 else f"{name} += {step}"
        else:
            is_all = self.source.constant(stop, self.places) == -1
            test = f"{name} >= 0" if is_all else f"{name} > {self.bound(stop, COMPARED)}"
            advance = f"--{name}" if step == -1 else f"{name} -= {-step}"
        self.declared.add(name)
        self.braced(f"for (ptrdiff_t {name} = {start}; {test}; {advance}) {{", node.body, depth)
        self.declared.discard(name)

    def assign(self, node: ast.Assign, depth: int) -> None:
        """Assignments; several at once where they need the values from before."""
        if not isinstance(node.targets[0], ast.Tuple):
            for target in node.targets:
                self.store(target, node.value, depth)
            return
        assert isinstance(node.value, ast.Tuple)
        targets, values = node.targets[0].elts, list(node.value.elts)
        stored = {name for target in targets for name in _mentioned(target)}
        for place, value in enumerate(values[1:], 1):
            if stored.intersection(_mentioned(value)) and not isinstance(value, ast.Constant):
                kind, self.count = self.source.type_of(value), self.count + 1
                name = f"kept{self.count}"
                self.source.variables[name] = kind
                if bases(value) & self.written:
                    self.written.add(name)
                self.line(depth, f"{self.pointer(kind, name)} = {self.value(value)};")
                values[place] = ast.Name(name)
        for target, value in zip(targets, values, strict=True):
            self.store(target, value, depth)

    def store(self, target: ast.expr, value: ast.expr, depth: int) -> None:
        """One assignment, which declares a variable that is not."""
        if not isinstance(target, ast.Name) or target.id in self.declared:
            self.line(depth, f"{self.value(target)} = {self.converted(value, self.source.type_of(target))};")
            return
        name, kind = target.id, self.source.variables[target.id]
        self.declared.add(name)
        if name in self.source.shapes:
            length = math.prod([self.source.constant(each, self.places) for each in self.source.shapes[name]])
            self.line(depth, f"{self.element_word(kind)} {name}[{length}] = {{0}};")
            return
        if kind in STRIDES:
            for ending, stride in zip(STRIDES[kind], self.source.view(value, self.places).strides, strict=True):
                if ending:
                    self.line(depth, f"const ptrdiff_t {name}{ending} = {stride or 1};")
        once = self.source.stores[name] == 1
        head = self.pointer(kind, name, "const " if once else "")
        const = "const " if once and not is_array(kind) else ""
        self.line(depth, f"{const}{head} = {self.converted(value, kind)};")

    # -- expressions ------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr) -> str:
        """An expression."""
        return self.leveled(node)[0]

    def bound(self, node: ast.expr, least: int) -> str:
        """An operand: in parentheses unless its parts are bound at least so tightly."""
        text, level = self.leveled(node)
        return text if level >= least else f"({text})"

    def converted(self, node: ast.expr, kind: str, least: int = TERNARY) -> str:
        """An operand as a number of a type."""
        have = self.source.type_of(node)
        if isinstance(node, ast.IfExp) and have != kind and kind in FLOATING and have in FLOATING:
            have = kind
        if kind in FLOATING and have in WHOLE:
            known = self.source.constant(node, self.places)
            if known is not None:
                return f"{known}" if known >= 0 or least < UNARY else f"({known})"
            return f"({self.words['real' if kind == 'number' else kind]}){self.bound(node, UNARY)}"
        is_narrowed = (have, kind) == ("double", "real") or (have in WHOLE and kind in WHOLE and have != kind)
        if is_narrowed and not isinstance(node, ast.Constant) and (have, kind) not in WIDENED:
            return f"({self.words[kind]}){self.bound(node, UNARY)}"
        return self.bound(node, least)

    def literal(self, value: Any, kind: str) -> tuple[str, int]:
        """A constant."""
        if isinstance(value, bool):
            return ("true" if value else "false"), ATOM
        if isinstance(value, int):
            text = str(value) if abs(value) < 1 << 31 else f"{value:#x}u"
        else:
            text = real(value, self.single and kind == "real")
        return text, UNARY if text.startswith("-") else ATOM

    def leveled(self, node: ast.expr) -> tuple[str, int]:
        """The text of an expression, and how tightly its parts are bound."""
        known = self.source.constant(node, self.places)
        if known is not None:
            return self.literal(known, self.source.type_of(node))
        if isinstance(node, ast.Constant):
            return "NULL", ATOM
        if isinstance(node, ast.Name) and node.id == "SHORT_INTEGERS":
            return "sizeof(lapack_int) == sizeof(int32_t)", COMPARED
        if isinstance(node, ast.Name):
            return (node.id if node.id in self.source.variables else self.table(node.id)), ATOM
        if isinstance(node, ast.Subscript | ast.Attribute):
            return self.element(node)
        if isinstance(node, ast.UnaryOp):
            sign = {ast.USub: "-", ast.Not: "!"}[type(node.op)]
            return f"{sign}{self.bound(node.operand, ATOM if sign == '-' else UNARY)}", UNARY
        if isinstance(node, ast.IfExp):
            known = self.source.constant(node.test, self.places)
            if known is not None:
                return self.leveled(node.body if known else node.orelse)
            kind = self.source.type_of(node)
            arms = [self.converted(node.body, kind, OR), self.converted(node.orelse, kind)]
            return f"{self.bound(node.test, OR)} ? {arms[0]} : {arms[1]}", TERNARY
        if isinstance(node, ast.BoolOp):
            sign, level = ("||", OR) if isinstance(node.op, ast.Or) else ("&&", AND)
            return f" {sign} ".join([self.bound(value, COMPARED) for value in node.values]), level
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        assert isinstance(node, ast.Call), ast.dump(node)
        return self.call(node)

    def comparison(self, node: ast.Compare) -> tuple[str, int]:
        """Comparisons, which may follow each other."""
        parts = []
        left = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            kind = "bool[]" if isinstance(sign, ast.Is | ast.IsNot) else self.source.joined(left, right)
            if is_array(kind):
                texts = [self.bound(part, SUM) for part in (left, right)]
            else:
                least = UNARY if kind == "bool" else SUM
                texts = [self.converted(part, kind, least) for part in (left, right)]
            parts.append(f"{texts[0]} {COMPARISONS[type(sign)]} {texts[1]}")
            left = right
        return " && ".join(parts), COMPARED if len(parts) == 1 else AND

    def operation(self, node: ast.BinOp) -> tuple[str, int]:
        """An operation on two numbers of one type."""
        sign, level = OPERATORS[type(node.op)]
        kind = self.source.type_of(node)
        if isinstance(node.op, ast.Div):
            least = PRODUCT
            return f"{self.converted(node.left, kind, least)} / {self.converted(node.right, kind, UNARY)}", PRODUCT
        left = self.converted(node.left, kind, level)
        return f"{left} {sign} {self.converted(node.right, kind, level + 1)}", level

    def element(self, node: ast.expr) -> tuple[str, int]:
        """An element, or the address of a part of an array."""
        base, terms, left = self.source.view(node, self.places)
        name = base if base in self.source.variables else self.table(base)
        parts = [
            f"{self.bound(index, PRODUCT)} * {stride}" if stride else self.bound(index, SUM) for index, stride in terms
        ]
        place = " + ".join(parts)
        if not left:
            return f"{name}[{place or 0}]", ATOM
        return (f"{name} + {place}", SUM) if parts else (name, ATOM)

    def argument(self, node: ast.expr, kind: str) -> list[str]:
        """The argument for a parameter of a type: an address and its strides, or a value."""
        if not is_array(kind) or isinstance(node, ast.IfExp):
            return [self.converted(node, kind)]
        if isinstance(node, ast.Constant):
            return ["NULL", *["0" for ending in STRIDES.get(kind, ()) if ending]]
        strides, endings = self.source.view(node, self.places).strides, STRIDES.get(kind, ("",))
        return [self.value(node), *[stride or "1" for stride, ending in zip(strides, endings, strict=True) if ending]]

    def table(self, name: str) -> str:
        """A constant array, defined where the function begins."""
        numbers = self.source.names[name]
        word = "int" if isinstance(numbers[0], int) else "double"
        listed = ", ".join([self.literal(number, "double")[0] for number in numbers])
        lines = textwrap.wrap(listed, WIDTH - 8, initial_indent=" " * 8, subsequent_indent=" " * 8)
        lower = name.lower()
        self.tables[name] = "\n".join([f"    static const {word} {lower}[{len(numbers)}] = {{", *lines, "    };"])
        return lower

    def call(self, node: ast.Call) -> tuple[str, int]:
        """A call of a routine, of the C library, or of what the language has."""
        assert isinstance(node.func, ast.Name)
        name, args = node.func.id, node.args
        callee = self.source.callee(node)
        if callee is not None:
            if getattr(callee, "external", False):
                assert self.dtype is not None
                self.definitions |= EXTERNALS[name](self.dtype)
            else:
                self.callees[callee] = None
            kinds = reading(callee).parameters.values()
            texts = [text for arg, kind in zip(args, kinds, strict=True) for text in self.argument(arg, kind)]
            return f"{name_of(callee, self.dtype)}({', '.join(texts)})", ATOM
        if name in ("int", "float", "Real", "Number", "Int32"):
            kind = {"float": "double", "Real": "real", "Number": "number", "Int32": "int32"}.get(name, name)
            return f"({self.words[kind]}){self.bound(args[0], UNARY)}", UNARY
        if name in ("is_rows", "is_columns", "is_dense"):
            stride = self.source.view(args[0], self.places).strides[0 if name == "is_columns" else -1]
            return (f"{stride} == 1", COMPARED) if stride else ("true", ATOM)
        if name == "bits":
            return f"func_bits{32 if self.single else 64}({self.value(args[0])})", ATOM
        if name == "rows_of":
            return self.leveled(args[0])
        if name == "reals_of":
            return f"({self.words['real']} *)(void *){self.bound(args[0], UNARY)}", UNARY
        if name == "ldexp":
            return f"ldexp{'f' * self.single}({self.value(args[0])}, (int){self.bound(args[1], UNARY)})", ATOM
        if name == "expansion":
            assert isinstance(args[0], ast.Constant) and isinstance(args[0].value, str)
            self.expansions[args[0].value] = None
            return f"func_{args[0].value}({self.value(args[1])})", ATOM
        if name == "horner":
            assert isinstance(args[0], ast.Name)
            first, *rest = self.source.names[args[0].id][::-1]
            x, text = self.bound(args[1], PRODUCT), repr(first)
            for c in rest:
                text = f"({text} * {x} + {c!r})"
            return text, ATOM
        kind = self.source.type_of(args[0])
        if name in ("conj", "real_part") and not (self.is_complex and kind == "number"):
            return self.leveled(args[0])
        return self.library(name, args, kind)

    def library(self, name: str, args: Sequence[ast.expr], kind: str) -> tuple[str, int]:
        """A function of the C library, by the type of its arguments."""
        end = "f" if self.single and kind != "double" else ""
        is_complex = self.is_complex and kind == "number"
        joined = functools.reduce(lambda x, y: x if x in FLOATING else y, [self.source.type_of(arg) for arg in args])
        if joined not in FLOATING:
            joined = "double"
        if name == "fma":
            joined = "number" if "number" in [self.source.type_of(arg) for arg in args] else joined
            word = self.words[joined]
            full = f"func_fma_{word.replace(' ', '_')}"
            self.definitions[full] = fma_text(word)
        elif name == "pivot_size" and is_complex:
            word = self.words["number"].replace(" ", "_")
            full = f"func_size_{word}"
            self.definitions[full] = (
                f"static {self.words['real']} {full}({self.words['number']} z) {{\n"
                f"    return fabs{end}(creal{end}(z)) + fabs{end}(cimag{end}(z));\n}}"
            )
        else:
            full = {"conj": "conj", "real_part": "creal"}.get(name, name) if is_complex else name
            full = {"modulus": "cabs" if is_complex else "fabs", "pivot_size": "fabs", "abs": "fabs"}.get(
                full, full
            ) + end
        return f"{full}({', '.join([self.converted(arg, joined) for arg in args])})", ATOM


def _places(is_complex: bool, single: bool) -> dict[str, Any]:
    """The constants of a type of numbers."""
    tiny, least, most, epsilon = (
        (1.2e-38, 1e-30, 1e30, 5.9604645e-8) if single else (2.3e-308, 1e-280, 1e280, 1.1102230246251565e-16)
    )
    size = (4 if single else 8) * (2 if is_complex else 1)
    names = ("IS_COMPLEX", "TINY", "LEAST", "MOST", "EPSILON", "SIZE")
    return dict(zip(names, (is_complex, tiny, least, most, epsilon, size), strict=True)) | {"SHORT_INTEGERS": None}


def _mentioned(node: ast.AST) -> list[str]:
    """The variables that a part of a routine names, in the order of the text."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _is_shared(statements: Sequence[ast.stmt], place: int, name: str) -> bool:
    """Whether a variable needs a declaration before a statement: some block reads another one's assignment."""
    for statement in statements[place:]:
        if name not in _mentioned(statement):
            continue
        if _assigns(statement, name):
            return False
        if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name) and statement.target.id == name:
            continue
        heads = [getattr(statement, part, None) for part in ("test", "iter", "value")]
        if not bodies(statement) or any([head is not None and name in _mentioned(head) for head in heads]):
            return True
        for block in bodies(statement):
            first = next((k for k, inner in enumerate(block) if name in _mentioned(inner)), None)
            if first is not None and not _assigns(block[first], name) and _is_shared(block, first, name):
                return True
    return False


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Whether a statement assigns a variable a value that does not depend on the variable."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    stored = any([isinstance(part, ast.Name) and part.id == name for part in names])
    return stored and name not in _mentioned(statement.value)


def _wrapped(text: str, depth: int) -> list[str]:
    """A line with its indentation, broken behind a comma or before an operator where it is too long."""
    indent = "    " * depth
    wrapper = textwrap.TextWrapper(WIDTH, initial_indent=indent, subsequent_indent=indent + 8 * " ")
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)
