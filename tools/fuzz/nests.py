"""Random nests of transforms, functions with rules and checkpoints, against symbolic differentiation.

A program is a tree of polynomials, functions with derivative rules of every kind, and wrappers that change no value
(jit, checkpoints, scan, cond, vmap). It also contains derivatives of functions, which may reach the variables of those
around them. A rule computes the derivative of its function from its argument, its output or an intermediate value. It
may differ from the derivative of the code. The truth is the value and the derivative of the same tree, derived by the
rules. Where nothing repeats a function by its nature, every forward function must run once.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import func
from func.autograd import Function
from func.errors import FuncError
from tools.fuzz.cases import Tally

QUICK = 60
CODES: dict[str, Callable[[Any], Any]] = {
    "square": lambda u: u * u,
    "cube": lambda u: u * u * u,
    "triple": lambda u: 3 * u,
    "same": lambda u: u * 1.0,
    "sin": np.sin,
}
HONEST = {
    ("square", "input"): (0.0, 2.0),
    ("square", "middle"): (0.0, 0.0),
    ("cube", "middle"): (0.0, 3.0),
    ("triple", "input"): (3.0, 0.0),
    ("same", "input"): (1.0, 0.0),
}
"""(code, what the rule reads) -> (a, b) of the slope a + b · what it reads."""


class Node(NamedTuple):
    """An expression: its kind, its operands, and what else it is."""

    kind: str
    parts: tuple[Any, ...] = ()
    name: str = ""
    options: tuple[Any, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.parts))
        more = f"[{', '.join(map(str, self.options))}]" if self.options else ""
        return f"{self.name or self.kind}{more}({inner})" if self.parts else self.name


ONE, ZERO = Node("number", name="1.0"), Node("number", name="0.0")


def number(value: float) -> Node:
    return Node("number", name=repr(value))


def total(x: Node, y: Node) -> Node:
    return y if x == ZERO else x if y == ZERO else Node("add", (x, y))


def product(x: Node, y: Node) -> Node:
    return ZERO if ZERO in (x, y) else y if x == ONE else x if y == ONE else Node("multiply", (x, y))


def middle(u: Node) -> Node:
    """The intermediate value that a forward function computes: the square of its argument."""
    return product(u, u)


def derived(node: Node, variable: str) -> Node:
    """The derivative of an expression, by the rules of its functions."""
    if node.kind == "number":
        return ZERO
    if node.kind == "variable":
        return ONE if node.name == variable else ZERO
    if node.kind == "add":
        return total(derived(node.parts[0], variable), derived(node.parts[1], variable))
    if node.kind == "multiply":
        x, y = node.parts
        return total(product(derived(x, variable), y), product(x, derived(y, variable)))
    if node.kind == "cos":
        slope = product(number(-1.0), Node("sin", node.parts))
    elif node.kind == "sin":
        slope = Node("cos", node.parts)
    elif node.kind == "rule":
        _, _, reads, a, b = node.options
        read = {"input": node.parts[0], "output": node, "middle": middle(node.parts[0])}[reads]
        slope = total(number(a), product(number(b), read))
    else:
        return derived(plain(node), variable)
    return product(slope, derived(node.parts[0], variable))


def substituted(node: Node, variable: str, value: Node) -> Node:
    """The expression with another one in the place of a variable; names of variables are unique."""
    if node.kind == "variable":
        return value if node.name == variable else node
    return node._replace(parts=tuple([substituted(part, variable, value) for part in node.parts]))


def plain(node: Node) -> Node:
    """An expression without wrappers and derivatives at its root."""
    body, argument = node.parts
    body = derived(flat(body), node.name) if node.kind == "derivative" else body
    return substituted(body, node.name, argument)


def flat(node: Node) -> Node:
    """An expression without wrappers and derivatives."""
    if node.kind in ("derivative", "wrapper"):
        return flat(plain(node))
    return node._replace(parts=tuple([flat(part) for part in node.parts]))


def value_of(node: Node, values: dict[str, float]) -> float:
    """The number that a flat expression is."""
    memo: dict[int, float] = {}

    def value(node: Node) -> float:
        if id(node) not in memo:
            parts = [value(part) for part in node.parts]
            if node.kind == "variable":
                memo[id(node)] = values[node.name]
            elif node.kind == "number":
                memo[id(node)] = float(node.name)
            elif node.kind == "rule":
                memo[id(node)] = float(CODES[node.options[1]](parts[0]))
            else:
                memo[id(node)] = {"add": sum, "multiply": math.prod, "sin": _sin, "cos": _cos}[node.kind](parts)
        return memo[id(node)]

    return value(node)


def _sin(parts: list[float]) -> float:
    return math.sin(parts[0])


def _cos(parts: list[float]) -> float:
    return math.cos(parts[0])


class Counter:
    """Counts the runs of forward functions."""

    def __init__(self) -> None:
        self.runs = 0


def ruled(kind: str, code: str, reads: str, a: float, b: float, counter: Counter) -> Callable[[Any], Any]:
    """A function with the derivative a + b · (its argument, its output or an intermediate value)."""
    compute = CODES[code]

    def run(x: Any) -> tuple[Any, Any]:
        counter.runs += 1
        square = x * x
        y = compute(x)
        return y, {"input": x, "output": y, "middle": square}[reads]

    def apply_of(methods: dict[str, Any]) -> Any:
        return type("Ruled", (Function,), {key: staticmethod(method) for key, method in methods.items()}).apply

    def forward(ctx: Any, x: Any) -> Any:
        y, read = run(x)
        ctx.save_for_backward(read)
        ctx.save_for_forward(read)
        return y

    def forward_with_attribute(ctx: Any, x: Any) -> Any:
        y, ctx.read = run(x)
        return y

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward({"input": inputs[0], "output": output[0], "middle": output[1]}[reads])

    def slope(ctx: Any, g: Any, *rest: Any) -> Any:
        return (a + b * ctx.saved_tensors[0]) * g

    def two_outputs(x: Any) -> Any:
        return run(x)[0], x * x

    if kind == "Function":
        return apply_of({"forward": forward, "backward": slope})  # type: ignore[no-any-return]
    if kind == "Function with jvp":
        return apply_of({"forward": forward, "backward": slope, "jvp": slope})  # type: ignore[no-any-return]
    if kind == "Function with attribute":
        return apply_of(  # type: ignore[no-any-return]
            {"forward": forward_with_attribute, "backward": lambda ctx, g: (a + b * ctx.read) * g}
        )
    if kind == "Function with setup_context" and reads != "middle":
        call = apply_of({"forward": two_outputs, "setup_context": setup, "backward": slope})
        return lambda x: call(x)[0]
    if kind in ("Function with vmap", "Function with setup_context and vmap"):
        of_batch = apply_of({"forward": forward, "backward": slope})
        methods: dict[str, Any] = {"backward": slope, "vmap": lambda info, in_dims, x: (of_batch(x), in_dims[0])}
        if kind == "Function with vmap" or reads == "middle":
            return apply_of(methods | {"forward": forward})  # type: ignore[no-any-return]

        def setup_one(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward({"input": inputs[0], "output": output}[reads])

        return apply_of(methods | {"forward": lambda x: run(x)[0], "setup_context": setup_one})  # type: ignore[no-any-return]
    if kind == "custom_vmap":
        inner = apply_of({"forward": forward, "backward": slope})
        mapped = func.custom_vmap(inner)
        mapped.def_vmap(lambda size, in_batched, x: (inner(x), in_batched[0]))
        return mapped
    if kind == "custom_gradient":

        @func.custom_gradient
        def with_pullback(x: Any) -> Any:
            y, read = run(x)
            return y, lambda ct: (a + b * read) * ct

        return with_pullback
    if kind == "custom_jvp":
        tangent_rule = func.custom_jvp(compute)

        @tangent_rule.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            (x,), (dx,) = primals, tangents
            y = tangent_rule(x)
            return y, (a + b * {"input": x, "output": y, "middle": x * x}[reads]) * dx

        return tangent_rule
    if kind == "custom_jvp of its own":
        own_rule = func.custom_jvp(compute)
        own_rule.defjvp(lambda primals, tangents: _pushed(run(*primals), a, b, *tangents))
        return own_rule
    pulled = func.custom_vjp(lambda x: run(x)[0])
    pulled.defvjp(run, lambda read, ct: ((a + b * read) * ct,))
    return pulled


def _pushed(values: tuple[Any, Any], a: float, b: float, dx: Any) -> tuple[Any, Any]:
    y, read = values
    return y, (a + b * read) * dx


RULES = (
    "Function",
    "custom_vjp",
    "custom_gradient",
    "Function with jvp",
    "Function with attribute",
    "Function with setup_context",
    "custom_jvp",
    "custom_jvp of its own",
    "Function with vmap",
    "Function with setup_context and vmap",
    "custom_vmap",
)
REPEATING = ("custom_jvp", "custom_jvp of its own")


def _by_tensor(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def slope(u: Any) -> Any:
        shift = func.tensor(0.0, requires_grad=True)
        (gradient,) = func.autograd.grad(f(u + shift), shift, create_graph=True, materialize_grads=True)
        return gradient

    return slope


def _by_backward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def slope(u: Any) -> Any:
        shift = func.tensor(0.0, requires_grad=True)
        (f(u + shift) + 0 * shift).backward(create_graph=True, inputs=[shift])  # of no leaf around it
        return shift.grad

    return slope


DERIVATIVES: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "grad": func.grad,
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "jvp": lambda f: lambda u: func.jvp(f, (u,), (np.ones_like(u),))[1],
    "vjp": lambda f: lambda u: func.vjp(f, u)[1](np.ones_like(u))[0],
    "linearize": lambda f: lambda u: func.linearize(f, u)[1](np.ones_like(u)),
    "value_and_grad": lambda f: lambda u: func.value_and_grad(f)(u)[1],
    "create_graph": _by_tensor,
    "backward": _by_backward,
    "taylor": lambda f: lambda u: func.taylor(lambda t: t * t * f(u + t), 0 * u, np.ones_like(u), 3)[3],
    "laplacian": lambda f: lambda u: func.laplacian(lambda t: t * f(u + t) / 2)(0 * u),
    "jit jet": lambda f: func.jit(lambda u: func.jet(f, (u,), ([1.0, 0.0],))[1][0]),
    "vmap grad": lambda f: lambda u: func.vmap(func.grad(f))(np.stack([u, 2 * u]))[0],
    "jit grad": lambda f: func.jit(func.grad(f)),
    "jit jacfwd": lambda f: func.jit(func.jacfwd(f)),
}
WRAPPERS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "checkpoint": func.checkpoint,
    "jit": func.jit,
    "vmap": lambda f: lambda u: func.vmap(f)(np.stack([u, 2 * u]))[0],
    "saving checkpoint": lambda f: func.checkpoint(f, policy=func.checkpoint_policies.everything_saveable),
    "autograd checkpoint": lambda f: lambda u: func.autograd.checkpoint(f, u),
    "scan": lambda f: lambda u: func.scan(lambda c, _: (f(c), None), u, None, length=1)[0],
    "scan checkpoint": lambda f: lambda u: func.scan(lambda c, _: (c, f(c)), u, None, length=3, checkpoint=2)[1][1],
    "cond": lambda f: lambda u: func.cond(True, f, lambda z: z * 1.0, u),
    "value": lambda f: lambda u: func.vjp(f, u)[0],
    "primal": lambda f: lambda u: func.jvp(f, (u,), (np.ones_like(u),))[0],
}
ONCE = ("grad", "jacfwd", "jacrev", "jvp", "vjp", "linearize", "value_and_grad", "create_graph", "backward")


class Program:
    """One program: its tree, and how func runs it."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.names = 0
        self.left = 14
        """How many nodes with a function may still be made."""
        self.rules: list[tuple[Any, ...]] = []
        self.runs_once = True

    def expression(self, variables: list[str], depth: int) -> Node:
        """A random expression of some variables."""
        choices = self.choices
        kind = choices.choice(("variable", "number", "rule", "multiply", "add", "wrapper", "derivative"))
        self.left -= 1
        if depth <= 0 or self.left <= 0 or kind == "variable":
            return Node("variable", name=choices.choice(variables[::-1]))
        if kind == "number":
            return number(choices.choice((2.0, -1.0, 0.5)))
        if kind in ("add", "multiply"):
            return Node(kind, (self.expression(variables, depth - 1), self.expression(variables, depth - 1)))
        if kind == "rule":
            code, reads = choices.choice(tuple(CODES)), choices.choice(("input", "output", "middle"))
            how = choices.choice(RULES)
            a, b = HONEST.get((code, reads), (1.0, 0.5))
            if choices.randrange(3) == 2:
                a, b = choices.choice((1.0, -1.0, 0.0)), choices.choice((0.0, 0.5))
            if how == "Function with setup_context" and reads == "middle":
                how = "Function"
            if how == "custom_jvp of its own" and reads == "output":  # what it reads there is its own code
                how = "custom_jvp"
            self.runs_once = self.runs_once and how not in REPEATING
            return Node("rule", (self.expression(variables, depth - 1),), "", (how, code, reads, a, b))
        self.names += 1
        name = f"v{self.names}"
        how = choices.choice(tuple(WRAPPERS if kind == "wrapper" else DERIVATIVES))
        self.runs_once = self.runs_once and how in ONCE
        argument = self.expression(variables, depth - 2)
        return Node(kind, (self.expression([*variables, name], depth - 1), argument), name, (how,))

    def evaluated(self, node: Node, values: dict[str, Any], counter: Counter) -> Any:
        """The value of an expression, by func."""
        if node.kind == "variable":
            return values[node.name]
        if node.kind == "number":
            return float(node.name)
        if node.kind == "add":
            return self.evaluated(node.parts[0], values, counter) + self.evaluated(node.parts[1], values, counter)
        if node.kind == "multiply":
            return self.evaluated(node.parts[0], values, counter) * self.evaluated(node.parts[1], values, counter)
        if node.kind == "rule":
            return ruled(*node.options, counter)(self.evaluated(node.parts[0], values, counter))
        body, argument = node.parts
        table = WRAPPERS if node.kind == "wrapper" else DERIVATIVES

        def function(u: Any) -> Any:
            result = self.evaluated(body, {**values, node.name: u}, counter)
            return result + 0.0 * u  # a function that does not depend on its argument is another subject

        return table[node.options[0]](function)(np.multiply(1.0, self.evaluated(argument, values, counter)))


def rules_in(node: Node) -> int:
    """How many functions with rules a run of an expression calls."""
    return sum(map(rules_in, node.parts)) + (node.kind == "rule")


def case(choices: random.Random, tally: Tally) -> None:
    """One program: the expression is the body of up to three nested derivatives."""
    program = Program(choices)
    outer = [choices.choice(tuple(DERIVATIVES)) for _ in range(choices.randrange(1, 3))]
    body = program.expression(["x"], 5)
    tally.show(f"{' '.join(outer)} of {body}")
    node = body
    for how in reversed(outer):
        program.names += 1
        name = f"w{program.names}"
        x, w = Node("variable", name="x"), Node("variable", name=name)
        node = Node("derivative", (substituted(node, "x", w), x), name, (how,))
    point = choices.choice((0.7, 1.1, -0.6))
    expected = value_of(flat(node), {"x": point})
    if not abs(expected) < 1e9:
        return
    counter = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = program.evaluated(node, {"x": np.float64(point)}, counter)
        except FuncError as error:
            tally.refused(error)
            return
    got = np.asarray(got.detach() if hasattr(got, "detach") else got)
    tally.checked()
    assert np.allclose(got, expected, rtol=1e-6, atol=1e-8), f"func gives {got}, the rules {expected}"
    if program.runs_once and all([how in ONCE for how in outer]):
        tally.checked()
        count = rules_in(body)
        assert counter.runs == count, f"{counter.runs} runs of {count} forward functions"
