"""Machine 7, functions of Python that ask for values: small programs with up to three questions, under jit.

`values` is a program of questions in sequence or nested. Its arguments lead along all of its paths, in every order of
first visits, in every mode. Modes are jit, arguments by name, donated, nested jit, batches, threads, few paths,
exported source. `derivatives`: the same for derivatives through jit, inside and outside. `native`: both as native code.
The truth is the plain function: its value, its class, its error, and the eager derivative.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import func
from func.errors import FuncError, StagingError
from tools.enumerate.scope import Choices, OutOfScope, Part

QUICK = 20
LIMIT = "paths of one function"
"""The text of the error for more paths than `max_paths`."""

TRUTHS = (
    *("np.any(v > 0)", "np.all(v > 0)", "np.isnan(v).any()", "np.allclose(v, 1)", "np.sum(v) > 1", "v.size and v[0]"),
    *("np.array_equal(v, a)", "len(v[v > 0]) == 1", "int(np.sum(v > 0)) > 1", "not np.isfinite(v).all()"),
    *("np.max(v) == 1", "bool(np.count_nonzero(v))", "len(np.nonzero(v)[0])", "k > 0 or np.min(v) < 0"),
)
"""Questions for a truth value: `v` is the array that the program works on, `a` the argument, `k` a number of Python."""
STEPS = (
    *("v = v * 2", "v = 1 - v", "v = np.sqrt(v)", "v = v[::-1] + a", "v = np.where(v > 0, v, a)", "k = k + 1"),
    *("v[...] = v[::-1] * 2", "v[:1] += 1", "v[v > 1] = 0", "v = v[v > 0]", "v = v[np.nonzero(v)[0]]", "pass"),
    *("k = k + int(np.sum(v > 0))", "v = helper(v)", "v = v / v"),
)
"""The body of a branch; its writes are into arrays of the program."""
ENDS = ("raise ValueError('a path that raises')", "return v * 2", "return np.sum(v), k", "return {'a': a}", "return k")
KINDS = ("if", "if else", "if end", "while", "for", "if if", "else if", "step")
"""A statement with a question: one or two branches, an end, a loop, a question inside of a branch."""
RESULTS = ("v", "np.sum(v)", "(v, k)")
NUMBERS = (0.0, 1.0, -1.0, 2.0, np.nan, np.inf, -0.0, 0.25)
SHAPES = ((2,), (), (1,), (0,))
DTYPES = ("float64", "float32", "int64", "bool")
MODES = (
    "jit",
    "by name",
    "static",
    "donated",
    "nested",
    "vmap jit",
    "threads",
    "few paths",
    "one after the other",
    "source",
)
DERIVATIVES = (
    *("grad jit", "jit grad", "jvp jit", "jit jvp", "grad nested", "jit grad jit", "vmap grad jit", "vjp jit"),
    *("jit value_and_grad", "hessian jit"),
)


@dataclass(frozen=True)
class Asking:
    """A function of one array, its arguments in the order of the calls, and the mode."""

    lines: tuple[str, ...]
    result: str
    shape: tuple[int, ...]
    dtype: str
    mode: str
    compiler: str
    order: int
    """The permutation of the paths in the first calls."""

    def __str__(self) -> str:
        head = f"# {self.mode}, {self.compiler}, {self.dtype}{list(self.shape)}, order {self.order}"
        return f"{head}\n{self.text()}\n# calls: {[x.tolist() for x in self.calls()]}"

    def text(self) -> str:
        """The source of the function."""
        start = ["def f(a):", "    v, k = a * 1, 0"]
        return "\n".join([*start, *[f"    {line}" for line in self.lines], f"    return {self.result}"])

    def function(self, ask: Callable[[Any], Any] = lambda value: value, inner: Any = None) -> Callable[[Any], Any]:
        """The function; `ask` gets each value that it asks for, `inner` replaces the function that it calls."""
        space: dict[str, Any] = {"np": np, "ask": ask, "helper": inner or helper}
        exec(self.text(), space)
        f: Callable[[Any], Any] = space["f"]
        return f

    def arguments(self) -> list[Any]:
        """Arrays of special numbers."""
        numbers = NUMBERS if self.dtype.startswith("f") else (0, 1, -1, 2) if self.dtype == "int64" else (False, True)
        size = int(np.prod(self.shape, dtype=int))
        pairs = itertools.product(numbers, repeat=size)
        return [np.array(values, self.dtype).reshape(self.shape) for values in pairs]

    def calls(self) -> list[Any]:
        """Arguments along all paths: first each once in some order, then others that change the path."""
        by_path: dict[str, list[Any]] = {}
        for argument in self.arguments():
            answers: list[Any] = []
            end = outcome(
                self.function(lambda value, answers=answers: (answers.append(str(value)), value)[1]), argument
            )
            by_path.setdefault(f"{answers}{end[0]}", []).append(argument)
        firsts = list(by_path.values())[:4]
        orders = list(itertools.permutations(range(len(firsts))))
        if self.order >= len(orders):
            raise OutOfScope
        ordered = [firsts[place] for place in orders[self.order]]
        again = [paths[-1] for paths in ordered] + [paths[0] for paths in ordered] * 2
        pairs = [x for one, other in itertools.combinations(ordered, 2) for x in (one[-1], other[0], one[0])]
        return [*[paths[0] for paths in ordered], *again, *pairs[:9]]


def helper(v: Any) -> Any:
    """A function that asks."""
    return v * 0.5 if np.sum(v) > 0 else v


def body(choices: Choices, depth: int) -> list[str]:
    """The lines of one statement."""
    kind = choices.pick(KINDS if depth == 0 else ("step",))
    step = lambda: f"    {choices.pick(STEPS)}"  # noqa: E731
    if kind == "step":
        return [choices.pick(STEPS)]
    if kind == "for":
        return ["for _ in range(min(max(int(ask(np.sum(v > 0))), 0), 3)):", step()]
    test = f"ask({choices.pick(TRUTHS)})"
    if kind == "while":
        return [f"while k < 2 and {test}:", "    k = k + 1", step()]
    lines = [f"if {test}:"]
    if kind == "if end":
        return [*lines, f"    {choices.pick(ENDS)}"]
    if kind in ("if if", "else if"):
        inner = [f"    if ask({choices.pick(TRUTHS)}):", f"    {step()}", "    else:", f"    {step()}"]
        return [*lines, *inner] if kind == "if if" else [*lines, step(), "else:", *inner]
    return [*lines, step(), *(["else:", step()] if kind == "if else" else [])]


def program(choices: Choices, modes: Sequence[str], compilers: Sequence[str], dtypes: Sequence[str]) -> Asking:
    """A program of one, two or three statements."""
    count = choices.pick((1, 2, 3))
    mode, compiler = choices.pick(modes), choices.pick(compilers)
    dtype, shape = choices.pick(dtypes), choices.pick(SHAPES)
    lines = tuple([line for _ in range(count) for line in body(choices, 0)])
    if "ask(" not in "".join(lines) or (dtype == "bool" and "1 - v" in "".join(lines)):
        raise OutOfScope
    if shape == () and any(["[" in line for line in lines]):  # NumPy's scalars take no indices, where 0-d arrays do
        raise OutOfScope
    made = Asking(lines, choices.pick(RESULTS), shape, dtype, mode, compiler, choices.pick(range(24)))
    made.calls()
    return made


def values(choices: Choices) -> Asking:
    """One program of `values`."""
    return program(choices, MODES, ("numpy",), DTYPES)


def derivatives(choices: Choices) -> Asking:
    """One program of `derivatives`."""
    return program(choices, DERIVATIVES, ("numpy",), DTYPES[:2])


def native(choices: Choices) -> Asking:
    """One program of `native`."""
    return program(choices, (*MODES, *DERIVATIVES), ("llvm",), DTYPES[:1])


def total(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """The sum of all results."""
    return lambda a: sum([np.sum(leaf * 1.0) for leaf in func.tree.leaves(f(a))], np.sum(a) * 0.0)


def outcome(f: Callable[..., Any], argument: Any) -> tuple[str, Any]:
    """("result", (leaves, tree)) or ("error", its class, and the words of the function's own)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return "result", func.tree.flatten(f(argument.copy()))
        except FuncError:
            raise
        except Exception as error:
            words = {"a path that raises": "its own", "this code is for arguments": "another path"}
            kind = next((kind for text, kind in words.items() if text in str(error)), "of NumPy")
            return "error", (type(error).__name__, kind)


def differs(got: tuple[str, Any], right: tuple[str, Any]) -> bool:
    """Whether outcomes differ by more than rounding."""
    if got[0] != right[0] or got[0] == "error":
        return got != right
    if str(got[1][1]) != str(right[1][1]):
        return True
    for one, other in zip(got[1][0], right[1][0], strict=True):
        single = any([getattr(x, "dtype", None) == np.float32 for x in (one, other)])
        tolerance = 1e-4 if single else 1e-9
        if np.shape(one) != np.shape(other) or np.result_type(one) != np.result_type(other):
            return True
        if not np.allclose(one, other, tolerance, tolerance, equal_nan=True):
            return True
    return False


def jvp_of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """Value and tangent in the direction of ones."""
    return lambda a: func.jvp(f, (a,), (np.ones_like(a),))


def vjp_of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """Value and cotangent."""

    def pulled(a: Any) -> Any:
        out, pull = func.vjp(f, a)
        return out, pull(np.ones_like(out))

    return pulled


def compiled_and_plain(made: Asking) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The function in the mode of a program, and what it must equal."""
    f = made.function()
    nested = made.function(inner=func.jit(helper, compiler=made.compiler))
    jit = lambda g, **options: func.jit(g, compiler=made.compiler, **options)  # noqa: E731
    loss = total(f)
    match made.mode:
        case "by name":
            named = jit(f)
            return lambda a: named(a=a), f
        case "static":
            static = jit(lambda a, n: f(a), static_argnums=1)
            return lambda a: static(a, 3), f
        case "donated":
            return jit(f, donate_argnums=0), f
        case "nested":
            outer = jit(lambda a: jit(nested)(a))
            return outer, f
        case "grad jit":
            return func.grad(jit(loss)), func.grad(loss)
        case "jit grad":
            return jit(func.grad(loss)), func.grad(loss)
        case "grad nested":
            return func.grad(jit(total(nested))), func.grad(loss)
        case "jit grad jit":
            return jit(func.grad(jit(loss))), func.grad(loss)
        case "jvp jit":
            return jvp_of(jit(loss)), jvp_of(loss)
        case "jit jvp":
            return jit(jvp_of(loss)), jvp_of(loss)
        case "vjp jit":
            return vjp_of(jit(loss)), vjp_of(loss)
        case "jit value_and_grad":
            return jit(func.value_and_grad(loss)), func.value_and_grad(loss)
        case "hessian jit":
            return func.hessian(jit(loss)), func.hessian(loss)
        case _:
            return jit(f), f


def check(made: Asking) -> str | None:
    """The differences from the plain function, along all paths."""
    calls = made.calls()
    if made.mode in ("vmap jit", "vmap grad jit"):
        return check_batches(made, calls)
    if made.mode == "few paths":
        return check_few(made, calls)
    if made.mode == "source":
        return check_source(made, calls)
    compiled, plain = compiled_and_plain(made)
    rights = [outcome(plain, x) for x in calls]
    if made.mode == "threads":
        return check_threads(compiled, calls, rights)
    rounds = 3 if made.mode == "one after the other" else 1
    for number, (x, right) in enumerate([*zip(calls, rights, strict=True)] * rounds):
        kept = x.copy()
        got = outcome(compiled, x)
        if differs(got, right):
            return f"{made.mode}: another outcome\ncall {number}, {x!r}: {got}, right: {right}"
        if x.tobytes() != kept.tobytes():
            return f"{made.mode}: an argument was written\n{x!r}, it was {kept!r}"
    return None


def check_batches(made: Asking, calls: list[Any]) -> str | None:
    """A batch of the arguments: every element follows its own path."""
    f = total(made.function())
    element = func.grad(f) if "grad" in made.mode else f
    jitted = func.jit(f, compiler=made.compiler)
    batched = func.vmap(func.grad(jitted) if "grad" in made.mode else jitted)
    rights = [(x, outcome(element, x)) for x in calls]
    rights = [(x, right) for x, right in rights if right[0] == "result"]
    if not rights:
        return None
    for _ in range(2):
        got = outcome(batched, np.stack([x for x, _ in rights]))
        if got[0] == "error":
            return f"{made.mode}: an error\n{got}"
        right = np.stack([np.asarray(leaves[0]) for _, (_, (leaves, _)) in rights])
        if differs(got, ("result", ([right], got[1][1]))):
            return f"{made.mode}: another outcome\n{got}, right: {right}"
    return None


def check_few(made: Asking, calls: list[Any]) -> str | None:
    """One path too few: the error names the limit, and the paths that there are stay right."""
    f, traced = made.function(), 0

    def counted(a: Any) -> Any:
        nonlocal traced
        traced += 1
        return f(a)

    jitted = func.jit(counted, compiler=made.compiler, max_paths=2)
    for x in calls:
        right = outcome(f, x)
        try:
            got = outcome(jitted, x)
        except StagingError as error:
            if LIMIT not in str(error) or jitted.cache_info().currsize != 2:
                return f"few paths: another error\n{x!r}: {error}"
        else:
            if differs(got, right):
                return f"few paths: another outcome\n{x!r}: {got}, right: {right}"
    return None


def check_source(made: Asking, calls: list[Any]) -> str | None:
    """The source of the path of each call: it raises for arguments of other paths, and is right for its own."""
    f = made.function()
    for traced in calls[:4]:
        if outcome(f, traced)[0] == "error":
            continue
        space: dict[str, Any] = {}
        exec(func.to_source(f)(traced), space)
        for x in (traced, *calls):
            got, right = outcome(space["f"], x), outcome(f, x)
            is_refused = got == ("error", ("ValueError", "another path"))
            if (is_refused and x is traced) or (not is_refused and differs(got, right)):
                return f"source: another outcome\n{x!r}: {got}, right: {right}, traced {traced!r}"
    return None


def check_threads(compiled: Callable[[Any], Any], calls: list[Any], rights: list[Any]) -> str | None:
    """Threads that begin at unlike places."""
    found: list[str] = []
    start = threading.Barrier(3)

    def work(first: int) -> None:
        start.wait()
        for place in range(2 * len(calls)):
            x, right = calls[(place + first) % len(calls)], rights[(place + first) % len(calls)]
            try:
                got = outcome(compiled, x)
            except Exception as error:
                found.append(f"threads: {type(error).__name__}\n{x!r}: {error}")
            else:
                if differs(got, right):
                    found.append(f"threads: another outcome\n{x!r}: {got}, right: {right}")

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[0] if found else None


PARTS = (
    Part("values", values, check, 80),
    Part("derivatives", derivatives, check, 50),
    Part("native", native, check, 40),
)
