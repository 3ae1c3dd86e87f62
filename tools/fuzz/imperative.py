"""Random imperative programs against PyTorch: leaves, views, writes, modes, hooks, several backward passes.

A program is a list of lines that mean the same to both libraries. After every line all variables are compared: their
numbers, their flags, their gradients, and what the hooks saw. Where PyTorch refuses a line, func may refuse it or be
ahead of it; only writes to leaves must be refused by both.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import func
from func.errors import FuncError, LeafError
from tools.fuzz.cases import Tally

QUICK = 60

Shape = tuple[int, ...]


def unavailable() -> str | None:
    """Why the campaign cannot run here, or None."""
    return None if importlib.util.find_spec("torch") else "PyTorch is not installed (extra 'peers')"


def _gradients(grad: Callable[..., Any], zeros: Callable[[Any], Any], log: list[Any]) -> Callable[..., Any]:
    """`grad` that gives zeros for None, and notes which those are."""

    def gradients(out: Any, inputs: Sequence[Any], create_graph: bool) -> list[Any]:
        pulled = grad(out, inputs, retain_graph=True, create_graph=create_graph, allow_unused=True)
        log.append([g is None for g in pulled])
        # PyTorch may return one tensor twice, func never does.
        copied = [g.clone() for g in map(lambda x, g: zeros(x) if g is None else g, inputs, pulled)]
        return copied if create_graph else [g.detach() for g in copied]

    return gradients


def _hook(log: list[Any], numbers: Callable[[Any], Any]) -> Callable[[Any, float], None]:
    """A hook that scales the gradient and notes it."""

    def hook(x: Any, factor: float) -> None:
        def scale(gradient: Any) -> Any:
            log.append(float(np.sum(numbers(gradient))))
            return gradient * factor

        x.register_hook(scale)

    return hook


def _loss(total: Callable[[Any], Any]) -> Callable[..., Any]:
    """A number that depends on some tensors unevenly."""
    return lambda *tensors: sum([total(x * x * (i + 0.5) + x * 0.3) for i, x in enumerate(tensors)])


def _functions(base: Any, log: list[Any]) -> dict[str, Any]:
    """Functions with custom rules; each run of a rule is noted."""

    class Pair(base):  # type: ignore[misc]
        """Two outputs."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            log.append("forward")
            ctx.save_for_backward(x)
            return 2 * x, x * x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            log.append("backward")
            (x,) = ctx.saved_tensors
            return 2 * g + 2 * x * h

    class Marked(base):  # type: ignore[misc]
        """A second output that has no derivative, and a rule that differs from the code."""

        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            log.append("forward")
            positive = (x > 0) * 2.0
            ctx.mark_non_differentiable(positive)
            ctx.save_for_backward(positive)
            ctx.factor = factor
            return x * 0.5, positive

        @staticmethod
        def backward(ctx: Any, g: Any, unused: Any) -> Any:
            log.append("backward")
            return g * ctx.saved_tensors[0] * ctx.factor, None

    class Product(base):  # type: ignore[misc]
        """The style with setup_context, of two arguments."""

        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            log.append("forward")
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append("backward")
            x, y = ctx.saved_tensors
            return g * y, g * x

    class Doubled(base):  # type: ignore[misc]
        """Writes to its argument."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            log.append("forward")
            x *= 2
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append("backward")
            return g * 2

    return {f.__name__.lower(): f.apply for f in (Pair, Marked, Product, Doubled)}


def _step(no_grad: Callable[[], Any]) -> Callable[..., None]:
    """A step of an optimiser, where there is a gradient."""

    def step(*leaves: Any) -> None:
        with no_grad():
            for x in leaves:
                if x.grad is not None:
                    x -= 0.1 * x.grad

    return step


def _accumulation_hook(log: list[Any], numbers: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A hook that notes the gradient which a leaf has after a backward pass."""
    return lambda x: x.register_post_accumulate_grad_hook(lambda leaf: log.append(float(np.sum(numbers(leaf.grad)))))


def _checkpointed(checkpoint: Callable[..., Any], sin: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: checkpoint(lambda a, b: sin(a) * b + a * a, x, y, use_reentrant=False)


class Func:
    """The words of a program in func."""

    refusals = (FuncError,)

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.words: dict[str, Any] = {
            "leaf": lambda data, requires: func.tensor(data, requires_grad=requires),
            "sin": np.sin,
            "tanh": np.tanh,
            "square": np.square,
            "cat": lambda parts: func.numpy.ascontiguousarray(np.concatenate(parts)),  # not in the order of the parts
            "stack": np.stack,
            "clone": lambda x: x.clone(),
            "copy": lambda x: x.clone(),
            "detach": lambda x: x.detach(),
            "mask": np.array,
            "where": np.where,
            "transposed": lambda x: x.T,
            "fill": lambda x, number: x.fill(number),
            "no_grad": func.no_grad,
            "enable_grad": func.enable_grad,
            "hook": _hook(self.log, self.numbers),
            "loss": _loss(np.sum),
            "grad": _gradients(func.autograd.grad, lambda x: func.tensor(np.zeros(x.shape)), self.log),
            "backward": func.backward,
            "step": _step(func.no_grad),
            "accumulation_hook": _accumulation_hook(self.log, self.numbers),
            "checkpoint": _checkpointed(func.autograd.checkpoint, np.sin),
            "packing": lambda: func.autograd.graph.saved_tensors_hooks(
                lambda x: (x.clone(),), lambda packed: packed[0]
            ),
            **_functions(func.autograd.Function, self.log),
        }

    @staticmethod
    def numbers(x: Any) -> Any:
        """The numbers of a tensor."""
        return np.array(x.detach().tolist())


class Torch:
    """The words of a program in PyTorch."""

    refusals = (RuntimeError,)

    def __init__(self) -> None:
        torch = importlib.import_module("torch")
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        self.log: list[Any] = []
        self.words: dict[str, Any] = {
            "leaf": lambda data, requires: torch.tensor(data, requires_grad=requires),
            "sin": torch.sin,
            "tanh": torch.tanh,
            "square": torch.square,
            "cat": torch.cat,
            "stack": torch.stack,
            "clone": torch.clone,
            "copy": torch.clone,
            "detach": lambda x: x.detach(),
            "mask": torch.tensor,
            "where": torch.where,
            "transposed": lambda x: x.mT if x.ndim == 2 else x[:],
            "fill": lambda x, number: x.fill_(number),
            "no_grad": torch.no_grad,
            "enable_grad": torch.enable_grad,
            "hook": _hook(self.log, self.numbers),
            "loss": _loss(torch.sum),
            "grad": _gradients(torch.autograd.grad, torch.zeros_like, self.log),
            "backward": torch.autograd.backward,
            "step": _step(torch.no_grad),
            "accumulation_hook": _accumulation_hook(self.log, self.numbers),
            "checkpoint": _checkpointed(importlib.import_module("torch.utils.checkpoint").checkpoint, torch.sin),
            "packing": lambda: torch.autograd.graph.saved_tensors_hooks(
                lambda x: (x.clone(),), lambda packed: packed[0]
            ),
            **_functions(torch.autograd.Function, self.log),
        }

    @staticmethod
    def numbers(x: Any) -> Any:
        """The numbers of a tensor."""
        return np.array(x.detach().tolist())


class Program:
    """A program that is drawn line by line; it knows the shapes of its variables."""

    def __init__(self, choices: random.Random) -> None:
        self.choices = choices
        self.shapes: dict[str, Shape] = {}
        self.bases: dict[str, str] = {}
        """Of each view and alias, what it is a view of."""
        self.hooked: set[str] = set()
        self.with_hooks: set[str] = set()
        self.has_writes = False
        """Whether there are writes, by which a leaf that requires no gradient becomes a result."""
        self.silent = choices.random() < 0.5
        """Whether there are unrecorded writes. PyTorch gives views a new node after them, func leaves them theirs, so
        that in such programs no view is asked for a gradient."""
        self.creates = False
        """Whether a gradient was recorded. PyTorch does not record those that are zero."""
        self.thaws = False
        """Whether a leaf may have become one after it took part in something. PyTorch's recorded pullbacks depend on it
        where they use its values, but not through earlier results; to func it stays the constant it was."""
        self.computed: list[str] = []
        """The variables that are results of operations, not views: PyTorch crashes at hooks of some views."""
        self.leaves: list[str] = []
        self.watched: set[str] = set()
        """The leaves with hooks that run after accumulation, as PyTorch calls them for frozen ones, too."""
        self.recomputed: set[str] = set()
        """The arguments of checkpoints, and what they are views or aliases of."""
        self.retaining: set[str] = set()
        """The variables that retain their gradient, which PyTorch drops when a Function writes to them."""
        self.siblings: set[str] = set()
        """Outputs of a function with several. PyTorch runs the hooks of all of them where one has a gradient."""

    def new(self, shape: Shape) -> str:
        """The name of a new variable."""
        name = f"v{len(self.shapes)}"
        self.shapes[name] = shape
        return name

    def variable(self, shape: Shape | None = None) -> str:
        """Some variable, of a shape."""
        names = [name for name, present in self.shapes.items() if shape is None or present == shape]
        return self.choices.choice(names[::-1])

    def target(self) -> str:
        """A variable that can be asked for its gradient. If the gradient of a result's inputs is requested as well,
        PyTorch skips the hooks of the result. It reads the views of a view from the first base after a write.
        """
        excluded = {x for x in self.bases if self.silent or x in self.bases.values()} | self.hooked | self.siblings
        excluded |= self.with_hooks if self.has_writes else set()
        fits = [x for x in self.shapes if x not in excluded]
        return self.choices.choice(fits[::-1] or self.leaves)

    def targets(self, count: int) -> list[str]:
        """Some of these."""
        return list(dict.fromkeys([self.target() for _ in range(1 + self.choices.randrange(count))]))

    def some(self, count: int) -> list[str]:
        """Some variables."""
        return list(dict.fromkeys([self.variable() for _ in range(1 + self.choices.randrange(count))]))

    def number(self) -> float:
        """A number."""
        return self.choices.choice([0.5, 2.0, -1.0, 0.7])

    def line(self) -> str:
        """The next line."""
        kinds: list[tuple[Callable[[], str], int]] = [
            (self.compute, 6),
            (self.view, 4),
            (self.write, 6),
            (self.leaf, 1),
            (self.alias, 2 if self.silent else 0),
            (self.join, 1),
            (self.toggle, 1),
            (self.retain, 1),
            (self.hook, 1),
            (self.backward, 2),
            (self.gradient, 2),
            (self.reset, 1),
            (self.call, 3),
            (self.write_by_rule, 1),
            (self.recompute, 1),
            (self.step, 1),
            (self.accumulation_hook, 1),
        ]
        draw = self.choices.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        text = draw()
        # A view that is made without recording is a leaf in PyTorch, of which it says that it requires a gradient.
        is_silent = self.choices.random() > 0.8 and draw != self.view and (draw != self.write or self.silent)
        if is_silent and draw not in (self.call, self.write_by_rule, self.accumulation_hook):
            return f"with no_grad(): {text}"
        packs = draw in (self.compute, self.join, self.recompute) and self.choices.random() > 0.85
        return f"with packing(): {text}" if packs else text

    def leaf(self) -> str:
        """A new leaf."""
        shape: Shape = self.choices.choice([(3,), (2, 3)])
        numbers = [round(self.choices.random() * 2 - 1, 2) for _ in range(int(np.prod(shape)))]
        data = np.reshape(numbers, shape).tolist()
        name = self.new(shape)
        self.leaves.append(name)
        return f"{name} = leaf({data}, {self.choices.random() < 0.7})"

    def compute(self) -> str:
        """A new value."""
        x = self.variable()
        y = self.variable(self.shapes[x])
        c = self.number()
        forms = [
            f"sin({x})",
            f"{x} * {y}",
            f"{x} + {y} * {c}",
            f"tanh({x}) * 1.0",  # no variable is the tanh: its slope depends on the result in PyTorch alone
            f"square({x})",
            f"clone({x})",
            f"{c} * {x}",
        ]
        text = self.choices.choice(forms)
        name = self.new(self.shapes[x])
        self.computed.append(name)
        return f"{name} = {text}"

    def view(self) -> str:
        """A view of a variable."""
        x = self.variable()
        shape = self.shapes[x]
        forms: list[tuple[str, Shape]] = [(f"{x}[:]", shape), (f"transposed({x})", shape[::-1])]
        if shape[0] > 1:
            forms += [(f"{x}[1:]", (shape[0] - 1, *shape[1:])), (f"{x}[::2]", ((shape[0] + 1) // 2, *shape[1:]))]
        if len(shape) == 2:
            size = shape[0] * shape[1]
            forms += [(f"{x}[0]", shape[1:]), (f"{x}[:, :1]", (shape[0], 1)), (f"{x}.reshape({size})", (size,))]
        else:
            forms += [(f"{x}.reshape(1, {shape[0]})", (1, *shape))]
        text, shape = self.choices.choice(forms)
        name = self.new(shape)
        self.bases[name] = x
        return f"{name} = {text}"

    def alias(self) -> str:
        """A detached alias. PyTorch does not count writes through `.data`, and computes wrong gradients after them."""
        x = self.variable()
        name = self.new(self.shapes[x])
        self.bases[name] = x
        return f"{name} = detach({x})"

    def join(self) -> str:
        """Several variables in one."""
        x = self.variable()
        parts = [x, *[self.variable(self.shapes[x]) for _ in range(1 + self.choices.randrange(2))]]
        count, shape = len(parts), self.shapes[x]
        kind, shape = self.choices.choice(
            [("cat", (count * shape[0], *shape[1:])), ("stack", (count, *shape))] if len(shape) == 1 else
            [("cat", (count * shape[0], *shape[1:]))]
        )  # fmt: skip
        name = self.new(shape)
        self.computed.append(name)
        return f"{name} = {kind}([{', '.join(parts)}])"

    def write(self) -> str:
        """A write in place."""
        self.has_writes = True
        x = self.variable()
        shape = self.shapes[x]
        y = self.variable(shape)
        y = x if y == x else f"clone({y})"  # PyTorch does not copy operands that overlap
        c = self.number()
        mask = [self.choices.random() < 0.5 for _ in range(shape[0])]
        part = f"{x}[0]" if len(shape) > 1 else f"{x}[:1]"
        is_long = shape[:1] > (1,)
        forms = [f"{x} *= {c}", f"{x} += {y}", f"{x} *= {y}", f"{x} -= {c}", f"{x}[0] = {c}", f"{part} *= {c}"]
        forms += [f"{x}[:1] = clone({y}[-1:])", f"{x}[mask({mask})] = {c}", f"{x}[...] = {y}", f"fill({x}, {c})"]
        forms += [f"{x}[1:] += clone({y}[:-1])"] if is_long else []
        return self.choices.choice(forms)

    def toggle(self) -> str:
        """A leaf is frozen or unfrozen.

        Arguments of checkpoints do not change. PyTorch pairs the saved values of the second run by their order. If
        another argument requires a gradient by now, it silently takes wrong tensors. Leaves with hooks do not change
        either: PyTorch calls those of a frozen leaf depending on earlier writes.
        """
        kept = self.watched | self.recomputed | self.with_hooks
        fits = [x for x in self.shapes if not {x, self.bases.get(x, x)} & kept]
        if not fits:
            return self.compute()
        x = self.choices.choice(fits[::-1])
        self.silent = True  # writes to what is frozen are not recorded
        is_base = x in self.bases.values()  # in PyTorch its views would be leaves that require a gradient as well
        thaws = self.choices.random() < 0.5 and not is_base and x not in self.bases  # a view follows writes to its base
        self.thaws = self.thaws or thaws
        return f"{x}.requires_grad_({thaws})"

    def retain(self) -> str:
        """A variable retains its gradient."""
        fits = [x for x in self.shapes if x not in self.bases and x not in self.siblings]
        x = self.choices.choice(fits)
        self.retaining.add(x)
        return f"{x}.retain_grad()"

    def hook(self) -> str:
        """A hook of a leaf or of a computed variable."""
        x = self.choices.choice([*self.leaves, *[x for x in self.computed if x not in self.siblings]])
        if x in self.computed:
            self.hooked.add(x)
        else:
            self.with_hooks.add(x)
        return f"hook({x}, {self.number()})"

    def backward(self) -> str:
        """A backward pass to all leaves, or to some tensors."""
        inputs = self.targets(2) if self.choices.random() < 0.3 else []
        self.retaining.update(inputs)
        ending = f", inputs=[{', '.join(inputs)}]" if inputs else ""
        return f"backward(loss({', '.join(self.some(3))}), retain_graph=True{ending})"

    def gradient(self) -> str:
        """Gradients with respect to some tensors, which are new variables."""
        out, inputs = self.some(3), self.targets(3)
        gradients = [self.new(self.shapes[x]) for x in inputs]
        creates = self.choices.random() < 0.4 and not self.thaws
        self.creates = self.creates or creates
        return f"{', '.join(gradients)}, = grad(loss({', '.join(out)}), [{', '.join(inputs)}], {creates})"

    def call(self) -> str:
        """A call of a Function."""
        x = self.variable()
        y = self.variable(self.shapes[x])
        kind = self.choices.choice(["pair", "product", "marked"])
        names = [self.new(self.shapes[x]) for _ in range(1 if kind == "product" else 2)]
        self.computed += names[:1] if kind == "marked" else names
        self.siblings.update(names[:-1] and names)
        arguments = {"pair": x, "product": f"{x}, {y}", "marked": f"{x}, {self.number()}"}[kind]
        return f"{', '.join(names)} = {kind}({arguments})"

    def write_by_rule(self) -> str:
        """A Function that writes to its argument, of which there are no views."""
        fits = [x for x in self.computed if x not in self.bases.values() and x not in self.retaining]
        return f"doubled({self.choices.choice(fits[::-1])})" if fits else self.compute()

    def recompute(self) -> str:
        """A checkpoint."""
        x = self.variable()
        y = self.variable(self.shapes[x])
        name = self.new(self.shapes[x])
        self.computed.append(name)
        self.recomputed |= {x, y, self.bases.get(x, x), self.bases.get(y, y)}
        return f"{name} = checkpoint({x}, {y})"

    def step(self) -> str:
        """A step of an optimiser."""
        if not self.silent:
            return self.compute()
        return f"step({', '.join(dict.fromkeys(self.choices.choice(self.leaves) for _ in range(2)))})"

    def accumulation_hook(self) -> str:
        """A hook that sees the gradient of a leaf."""
        x = self.choices.choice(self.leaves)
        self.watched.add(x)
        return f"accumulation_hook({x})"

    def reset(self) -> str:
        """A gradient is dropped."""
        return f"{self.variable()}.grad = None"


def _run(line: str, side: Any) -> Exception | None:
    """Run a line; the refusal, if there is one."""
    try:
        with np.errstate(all="ignore"):
            exec(line, side.words)
    except side.refusals as error:
        return error
    return None


def _described(side: Any, name: str) -> dict[str, Any]:
    """All that is compared of a variable."""
    x = side.words[name]
    gradient = x.grad if x.is_leaf or x.retains_grad else None
    return {
        "numbers": side.numbers(x),
        "requires_grad": bool(x.requires_grad),
        "is_leaf": x.is_leaf,
        "retains_grad": x.retains_grad,
        "grad": None if gradient is None else side.numbers(gradient),
    }


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None or isinstance(left, bool):
        return left is right
    return np.shape(left) == np.shape(right) and np.allclose(left, right, rtol=1e-8, atol=1e-8, equal_nan=True)


def _compare(ours: Func, theirs: Torch, program: Program, tally: Tally) -> None:
    facts = ("numbers", "grad") if program.creates else ("numbers", "grad", "requires_grad", "is_leaf", "retains_grad")
    for name in program.shapes:
        mine, other = _described(ours, name), _described(theirs, name)
        for fact in facts:
            value = mine[fact]
            if fact == "grad" and program.creates and (value is None or other[fact] is None):
                present = [g for g in (value, other[fact]) if g is not None]
                assert not np.any(present), f"{name}, grad: func {value}, PyTorch {other[fact]}"
                continue
            assert _same(value, other[fact]), f"{name}, {fact}: func {value}, PyTorch {other[fact]}"
            tally.checked()
    # PyTorch runs the rule of a node whose outputs are asked for; func runs none in vain.
    ours_pulled, theirs_pulled = ours.log.count("backward"), theirs.log.count("backward")
    assert ours_pulled <= theirs_pulled, f"backward rules: func runs {ours_pulled}, PyTorch {theirs_pulled}"
    # Of a gradient with a graph, a derivative that is zero is None or an array of zeros, as its rules happen to be.
    unseen = (str, list) if program.creates else (str,)
    mine_seen, other_seen = [sorted([x for x in s.log if not isinstance(x, unseen)], key=str) for s in (ours, theirs)]
    assert len(mine_seen) == len(other_seen), f"hooks: func {mine_seen}, PyTorch {other_seen}"
    for left, right in zip(mine_seen, other_seen, strict=True):
        assert left == right or _same(left, right), f"hooks: func {mine_seen}, PyTorch {other_seen}"
    ours.log.clear()
    theirs.log.clear()


@functools.cache
def _ignored() -> None:
    """PyTorch warns of reading `grad` of tensors that are not leaves; the words do not differ in it."""
    importlib.import_module("warnings").filterwarnings("ignore", module="torch")


def case(choices: random.Random, tally: Tally) -> None:
    """One program."""
    _ignored()
    program, ours, theirs = Program(choices), Func(), Torch()
    lines: list[str] = []
    for i in range(4 + choices.randrange(20)):
        line = program.leaf() if i < 2 else program.line()
        lines.append(line)
        tally.show("\n".join(lines))
        refused = _run(line, theirs)
        try:
            mine = _run(line, ours)
        except Exception as error:
            if refused is not None:
                return
            raise AssertionError(f"func: {type(error).__name__}: {error}") from error
        if refused is None:
            assert mine is None, f"func refuses: {mine}"
        elif str(refused).startswith("a leaf Variable that requires grad"):
            assert isinstance(mine, LeafError), f"PyTorch refuses: {refused}; func: {mine!r}"
        if refused is not None:
            tally.refused(refused)
            if (
                mine is None
                or "backward(" in line
                or "grad(" in line
                or "doubled(" in line  # which PyTorch refuses after it has written
                or any(name not in ours.words for name in program.shapes)
            ):
                return  # func is ahead, or the states may differ now
        _compare(ours, theirs, program, tally)
